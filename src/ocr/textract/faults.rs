//! What Textract's errors ask for. Codes are those of the service model and of "Common errors".

use aws_sdk_textract::config::http::HttpResponse;
use aws_sdk_textract::error::{ProvideErrorMetadata, SdkError};

use crate::fault::{Error, Fault};

/// The fault behind an error code, with the HTTP status (0 if there is none).
fn fault_of(code: &str, status: u16) -> Fault {
    match code {
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        // Too many jobs at the same time: it passes as they end.
        | "LimitExceededException" => Fault::Throttled(None),
        "UnsupportedDocumentException"
        | "BadDocumentException"
        | "DocumentTooLargeException"
        | "InvalidParameterException"
        // It cannot reach the object: the bucket is in another region, or not open to it.
        | "InvalidS3ObjectException"
        | "InvalidKMSKeyException"
        | "ValidationException" => Fault::Rejected,
        "InvalidJobIdException" => Fault::Missing,
        "AccessDeniedException"
        | "AccessDenied"
        | "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "ExpiredTokenException"
        | "ExpiredToken"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignatureException"
        | "MissingAuthenticationTokenException"
        | "OptInRequired" => Fault::Denied,
        "ServiceUnavailable" | "ServiceUnavailableException" => Fault::Unavailable,
        _ => match status {
            429 => Fault::Throttled(None),
            401 | 403 => Fault::Denied,
            502..=504 => Fault::Unavailable,
            500..=599 => Fault::Transient,
            _ => Fault::Internal,
        },
    }
}

/// What silence asks for.
fn fault_without_reply<E>(error: &SdkError<E, HttpResponse>) -> (Fault, &'static str) {
    match error {
        SdkError::TimeoutError(_) => (Fault::Transient, "no answer in time"),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => {
            (Fault::Transient, "no answer in time")
        }
        SdkError::DispatchFailure(failure) if failure.is_io() => {
            (Fault::Unavailable, "cannot connect: check ocr.textract.region and the network")
        }
        // A connection that ended within the answer has a kind of retry of its own.
        SdkError::DispatchFailure(failure) if failure.as_other().is_some() => {
            (Fault::Transient, "the connection broke")
        }
        SdkError::DispatchFailure(_) | SdkError::ConstructionFailure(_) => {
            (Fault::Denied, "not sent: no usable AWS credentials or region were found")
        }
        _ => (Fault::Transient, "the answer makes no sense"),
    }
}

/// The error of a call to `operation`. Textract's own words are left out: they may name the object.
pub(super) fn error_of<E>(operation: &str, error: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let code = error.code().unwrap_or_default();
    let (fault, words) = match status {
        // An answer of 200 that cannot be read is no refusal.
        Some(200..=299) => fault_without_reply(&error),
        Some(status) => (fault_of(code, status), code),
        None => fault_without_reply(&error),
    };
    let advice = match fault {
        Fault::Denied if status.is_some() => {
            ": check the credentials and their right to use Textract"
        }
        _ => "",
    };
    let status = status.map_or_else(String::new, |status| format!("status {status}, "));
    Error::new(fault, format!("Textract, {operation}: {status}{words}{advice}"))
}

/// Whether a token stands for a job with other parameters.
pub(super) fn is_mismatch<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    error.code() == Some("IdempotentParameterMismatchException")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_asks_for() {
        let throttled = Fault::Throttled(None);
        for (code, status, expected) in [
            ("ProvisionedThroughputExceededException", 400, throttled),
            ("ThrottlingException", 500, throttled),
            ("LimitExceededException", 400, throttled),
            ("InternalServerError", 500, Fault::Transient),
            ("UnsupportedDocumentException", 400, Fault::Rejected),
            ("BadDocumentException", 400, Fault::Rejected),
            ("DocumentTooLargeException", 400, Fault::Rejected),
            ("InvalidS3ObjectException", 400, Fault::Rejected),
            ("InvalidJobIdException", 400, Fault::Missing),
            ("AccessDeniedException", 400, Fault::Denied),
            ("ExpiredTokenException", 400, Fault::Denied),
            ("", 403, Fault::Denied),
            ("", 503, Fault::Unavailable),
            ("", 500, Fault::Transient),
            ("SerializationException", 400, Fault::Internal),
        ] {
            assert_eq!(fault_of(code, status), expected, "{code} {status}");
        }
    }
}
