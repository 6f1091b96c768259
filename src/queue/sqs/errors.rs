//! From what SQS and its SDK say to the fault that asks for the right reaction.
//!
//! Codes are those of the query protocol, which the SDK reads from `x-amzn-query-error`
//! (API reference, "Common errors" and each action's list).

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;

use crate::fault::{Error, Fault};

/// The fault behind an error code, with the HTTP status (0 if there is none) and the message,
/// which alone tells a dead handle from another wrong parameter.
pub(super) fn fault_of(code: &str, status: u16, message: &str) -> Fault {
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    match code {
        "RequestThrottled"
        | "RequestThrottledException"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "KMS.ThrottlingException"
        | "OverLimit" => Fault::Throttled(None),
        "ReceiptHandleIsInvalid" | "MessageNotInflight" => Fault::Missing,
        "InvalidParameterValue" if is_about_handle(message) => Fault::Missing,
        "InvalidParameterValue"
        | "InvalidMessageContents"
        | "BatchRequestTooLong"
        | "InvalidAttributeValue" => Fault::Rejected,
        "NonExistentQueue" | "QueueDoesNotExist" | "InvalidAddress" => Fault::Unavailable,
        _ if refuses_us(code) => Fault::Unavailable,
        _ if status >= 500 || matches!(code, "InternalError" | "InternalFailure") => {
            Fault::Transient
        }
        "ServiceUnavailable" | "RequestTimeout" | "RequestTimeoutException" => Fault::Transient,
        _ => Fault::Internal,
    }
}

/// Whether a code speaks of who we are rather than of what we asked.
fn refuses_us(code: &str) -> bool {
    const CODES: [&str; 12] = [
        "AccessDenied",
        "AccessDeniedException",
        "InvalidSecurity",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "ExpiredToken",
        "ExpiredTokenException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "OptInRequired",
    ];
    CODES.contains(&code) || code.starts_with("KMS.")
}

fn is_about_handle(message: &str) -> bool {
    message.contains("ReceiptHandle")
        || message.contains("receipt handle")
        || message.contains("not available for visibility")
}

/// What became of a whole request.
pub(super) fn from_sdk<E>(doing: &str, error: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let (fault, words) = match &error {
        SdkError::TimeoutError(_) => (Fault::Transient, "no answer in time".to_owned()),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => {
            (Fault::Transient, "no answer in time".to_owned())
        }
        SdkError::DispatchFailure(failure) if failure.is_io() => {
            (Fault::Transient, "no connection".to_owned())
        }
        SdkError::DispatchFailure(failure) if failure.is_user() => {
            (Fault::Internal, "the request could not be sent".to_owned())
        }
        // A connection that ended within the answer has a kind of retry of its own.
        SdkError::DispatchFailure(failure) if failure.as_other().is_some() => {
            (Fault::Transient, "the connection ended before the answer".to_owned())
        }
        // What is left of these is what went wrong before anything was sent, above all that no
        // credentials were found.
        SdkError::DispatchFailure(_) => {
            (Fault::Unavailable, "not sent: no usable credentials or connection".to_owned())
        }
        SdkError::ResponseError(_) => {
            (Fault::Transient, "the answer was cut or garbled".to_owned())
        }
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            let meta = service.err().meta();
            let code = meta.code().unwrap_or("no code");
            let fault = fault_of(code, status, meta.message().unwrap_or_default());
            (fault, format!("{code} (HTTP {status})"))
        }
        _ => (Fault::Internal, "the request could not be built".to_owned()),
    };
    Error::new(fault, format!("{doing}: {words}")).because(error)
}

/// What became of one entry of a batch.
pub(super) fn from_entry(doing: &str, entry: &BatchResultErrorEntry) -> Error {
    let status = if entry.sender_fault() { 400 } else { 500 };
    let fault = fault_of(entry.code(), status, entry.message().unwrap_or_default());
    Error::new(fault, format!("{doing}: {}", entry.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_asks_for_its_reaction() {
        use Fault::{Internal, Missing, Rejected, Throttled, Transient, Unavailable};
        #[rustfmt::skip]
        let table = [
            // code                                        status  message                         expected
            ("RequestThrottled",                              400, "",                             Throttled(None)),
            ("ThrottlingException",                           400, "",                             Throttled(None)),
            ("OverLimit",                                     403, "",                             Throttled(None)),
            ("AWS.SimpleQueueService.NonExistentQueue",       400, "",                             Unavailable),
            ("AccessDenied",                                  403, "",                             Unavailable),
            ("ExpiredToken",                                  403, "",                             Unavailable),
            ("KMS.AccessDeniedException",                     400, "",                             Unavailable),
            ("KMS.ThrottlingException",                       400, "",                             Throttled(None)),
            ("ReceiptHandleIsInvalid",                        400, "",                             Missing),
            ("AWS.SimpleQueueService.MessageNotInflight",     400, "",                             Missing),
            ("InvalidParameterValue",                         400, "Message does not exist or is not available for visibility timeout change", Missing),
            ("InvalidParameterValue",                         400, "Must be <= 43200",             Rejected),
            ("InvalidMessageContents",                        400, "",                             Rejected),
            ("InternalError",                                 500, "",                             Transient),
            ("ServiceUnavailable",                            503, "",                             Transient),
            ("SomethingNew",                                  502, "",                             Transient),
            ("SomethingNew",                                  400, "",                             Internal),
        ];
        for (code, status, message, expected) in table {
            assert_eq!(fault_of(code, status, message), expected, "{code} {status} {message}");
        }
    }
}
