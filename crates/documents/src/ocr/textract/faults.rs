//! Faults for Textract's errors. Codes are those of the service model and of "Common errors".

use aws_sdk_textract::config::http::HttpResponse;
use aws_sdk_textract::error::{ProvideErrorMetadata, SdkError};

use docmill_client::aws::{self, SdkFailure};
use docmill_core::fault::{Error, Fault};

/// The fault behind an error code, with the HTTP status.
fn fault_of_error_code(code: &str, status: u16) -> Fault {
    match code {
        // Too many jobs at the same time: it passes as they end.
        "LimitExceededException" => Fault::Throttled(None),
        "UnsupportedDocumentException"
        | "BadDocumentException"
        | "DocumentTooLargeException"
        | "InvalidParameterException"
        // It cannot reach the object: the bucket is in another region, or not open to it.
        | "InvalidS3ObjectException"
        | "InvalidKMSKeyException"
        | "ValidationException" => Fault::Rejected,
        "InvalidJobIdException" => Fault::Missing,
        _ => aws::fault_of_code(code).unwrap_or_else(|| aws::fault_of_status(status)),
    }
}

/// The error of a call to `operation`. Textract's own words are left out: they may name the object.
pub(super) fn textract_error<E>(operation: &str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata,
{
    let (fault, words) = match aws::classify_failure(error) {
        SdkFailure::Silent(silence) => (silence.fault(), silence.message().to_owned()),
        SdkFailure::Refused { code, status } => match fault_of_error_code(code, status) {
            Fault::Denied => {
                let advice = "check the credentials and their right to use Textract";
                (Fault::Denied, format!("status {status}, {code}: {advice}"))
            }
            fault => (fault, format!("status {status}, {code}")),
        },
    };
    Error::new(fault, format!("Textract, {operation}: {words}"))
}

/// Whether the error says that a token belongs to a job with other parameters.
pub(super) fn is_token_mismatch<E: ProvideErrorMetadata>(
    error: &SdkError<E, HttpResponse>,
) -> bool {
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
            assert_eq!(fault_of_error_code(code, status), expected, "{code} {status}");
        }
    }
}
