//! From what SQS and its SDK say to the fault that asks for the right reaction.
//!
//! Codes are those of the query protocol, which the SDK reads from `x-amzn-query-error`
//! (API reference, "Common errors" and each action's list).

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;

use docmill_client::aws::{self, SdkFailure, TransportError};
use docmill_core::fault::{Error, Fault};

/// The fault behind an error code, with the HTTP status (0 if there is none) and the message, which
/// alone distinguishes a dead handle from another wrong parameter.
fn fault_of(code: &str, status: u16, message: &str) -> Fault {
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    match code {
        "KMS.ThrottlingException" | "OverLimit" => Fault::Throttled(None),
        "ReceiptHandleIsInvalid" | "MessageNotInflight" => Fault::Missing,
        "InvalidParameterValue" if is_about_handle(message) => Fault::Missing,
        "InvalidParameterValue"
        | "InvalidMessageContents"
        | "BatchRequestTooLong"
        | "InvalidAttributeValue" => Fault::Rejected,
        "NonExistentQueue" | "QueueDoesNotExist" | "InvalidAddress" | "InvalidSecurity" => {
            Fault::Unavailable
        }
        "InternalError"
        | "InternalFailure"
        | "ServiceUnavailable"
        | "RequestTimeout"
        | "RequestTimeoutException" => Fault::Transient,
        _ if code.starts_with("KMS.") => Fault::Unavailable,
        // To a queue a refusal of who we are is an outage like any other: nothing is received.
        _ => match aws::fault_of_code(code) {
            Some(Fault::Denied) => Fault::Unavailable,
            Some(fault) => fault,
            None if status >= 500 => Fault::Transient,
            None => Fault::Internal,
        },
    }
}

fn is_about_handle(message: &str) -> bool {
    message.contains("ReceiptHandle")
        || message.contains("receipt handle")
        || message.contains("not available for visibility")
}

/// The fault of a request without an answer: one poll without an answer is tried again, and the
/// next one shows more.
fn fault_of_silence(silence: TransportError) -> Fault {
    match silence {
        TransportError::LateConnection | TransportError::NoConnection => Fault::Transient,
        TransportError::Unsigned => Fault::Unavailable,
        silence => silence.fault(),
    }
}

/// The error of a whole request.
pub(super) fn from_sdk<E>(doing: &str, error: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let (fault, words) = match aws::classify_failure(&error) {
        SdkFailure::Silent(silence) => (fault_of_silence(silence), silence.message().to_owned()),
        SdkFailure::Refused { code, status } => {
            let fault = fault_of(code, status, error.message().unwrap_or_default());
            let code = if code.is_empty() { "no code" } else { code };
            (fault, format!("{code} (HTTP {status})"))
        }
    };
    Error::new(fault, format!("{doing}: {words}")).with_source(error)
}

/// The error of one entry of a batch.
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
            ("InvalidSecurity",                               403, "",                             Unavailable),
            ("SomethingNew",                                  400, "",                             Internal),
        ];
        for (code, status, message, expected) in table {
            assert_eq!(fault_of(code, status, message), expected, "{code} {status} {message}");
        }
    }
}
