//! From what Bedrock and its SDK say to the fault that asks for the right reaction.
//!
//! Codes: the errors of `Converse` in botocore's `bedrock-runtime/2023-09-30`, and AWS's common
//! ones.

use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError;
use reqwest::StatusCode;

use crate::options::RefusalWords;
use crate::refusal;
use docmill_client::aws::{self, SdkFailure, TransportError};
use docmill_core::fault::{Error, Fault};

/// The fault behind an error code and its HTTP status.
fn fault_of(code: &str, status: u16) -> Fault {
    match code {
        // The latter: the model is being loaded; the SDKs of the vendor wait and try again.
        "ServiceQuotaExceededException" | "ModelNotReadyException" => Fault::Throttled(None),
        "ModelTimeoutException"
        | "ModelErrorException"
        | "ModelStreamErrorException"
        | "InternalServerException" => Fault::Transient,
        "ResourceNotFoundException" => Fault::Denied,
        "ValidationException" => Fault::Internal,
        _ if status == 424 => Fault::Transient,
        _ => aws::fault_of_code(code).unwrap_or_else(|| aws::fault_of_status(status)),
    }
}

/// Which setting to check.
fn advice_for(code: &str, fault: Fault) -> &'static str {
    match (code, fault) {
        ("ResourceNotFoundException", _) => ": check llm.model and llm.region",
        (_, Fault::Denied) => {
            ": check the credentials, that their policy allows bedrock:InvokeModel and \
             bedrock:InvokeModelWithResponseStream on llm.model, and that the account has access \
             to the model"
        }
        (_, Fault::Internal) => {
            ": the service does not take our request; not every model knows prompt caching \
             (llm.prompt_cache) or a schema (llm.structured)"
        }
        _ => "",
    }
}

/// Whether the prompt did not fit into the model's window.
pub(super) fn is_prompt_too_long(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationException")
        && says_too_long(error.message().unwrap_or_default())
}

/// Whether an error's words say that the prompt did not fit. They are examined and never passed on: they
/// may quote the prompt.
pub(super) fn says_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    ["too long", "too many input tokens", "maximum context length", "context window"]
        .iter()
        .any(|words| message.contains(words))
}

/// Whether the service or its model does not take the schema of the request.
pub(super) fn is_schema_refused(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationException")
        && refusal::has_refused_schema(&error.message().unwrap_or_default().to_lowercase())
}

/// The message of a request that did not validate, in lower case; empty of any other failure. It is
/// compared and never passed on.
pub(super) fn refusal_message<E: ProvideErrorMetadata>(
    error: &SdkError<E, HttpResponse>,
) -> String {
    let error = error.as_service_error().filter(|it| it.code() == Some("ValidationException"));
    error.and_then(ProvideErrorMetadata::message).unwrap_or_default().to_lowercase()
}

/// The words that may name a field of the request, of such a message.
pub(super) fn field_words(message: &str) -> RefusalWords<'_> {
    RefusalWords { status: StatusCode::BAD_REQUEST, param: None, message }
}

/// The error of a refused request about batches.
pub(super) fn from_batch_answer(what: &str, model: &str, code: &str, status: u16) -> Error {
    let fault = fault_of(code, status);
    let code = crate::batch::plain_word(Some(code), "no code");
    let advice = match fault {
        Fault::Denied => {
            ": check the credentials, that their policy allows \
             bedrock:CreateModelInvocationJob, its kin and iam:PassRole on llm.batch.bedrock.role_arn, \
             and reading and writing below llm.batch.bedrock.prefix"
        }
        Fault::Internal => ": the service does not take our request; check [llm.batch.bedrock]",
        _ => "",
    };
    Error::new(fault, format!("{what}, model {model}: {code}, status {status}{advice}"))
}

/// Whether the vendor's own SDKs would retry at once. Throttled calls are left to the governor.
pub(super) fn may_try_again<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match aws::classify_failure(error) {
        // Our own time ran out: it may be billed already.
        SdkFailure::Silent(
            TransportError::Late | TransportError::Unbuilt | TransportError::Unsigned,
        ) => false,
        SdkFailure::Silent(_) => true,
        SdkFailure::Refused { code, status } => {
            matches!(fault_of(code, status), Fault::Transient | Fault::Unavailable)
        }
    }
}

/// The error that goes to the caller.
pub(super) fn from_sdk<E>(what: &str, model: &str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata,
{
    let (fault, words) = match aws::classify_failure(error) {
        SdkFailure::Silent(silence) => (silence.fault(), silence.message().to_owned()),
        SdkFailure::Refused { code, status } => {
            let fault = fault_of(code, status);
            let code = if code.is_empty() { "no code" } else { code };
            (fault, format!("{code}, status {status}{}", advice_for(code, fault)))
        }
    };
    Error::new(fault, format!("{what}, model {model}: {words}"))
}

/// The error of a stream that had begun. Errors within a stream carry no status, and their code
/// only in their type.
pub(super) fn from_stream<R>(
    what: &str,
    model: &str,
    error: &SdkError<ConverseStreamOutputError, R>,
) -> Error {
    use ConverseStreamOutputError as In;
    let code = match error.as_service_error() {
        None => {
            return Error::transient(format!("{what}, model {model}: the stream broke off"));
        }
        Some(In::ThrottlingException(_)) => "ThrottlingException",
        Some(In::ValidationException(_)) => "ValidationException",
        Some(In::ServiceUnavailableException(_)) => "ServiceUnavailableException",
        Some(_) => "ModelStreamErrorException",
    };
    let fault = fault_of(code, 0);
    let advice = advice_for(code, fault);
    Error::new(fault, format!("{what}, model {model}: {code} within the stream{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_asks_for_its_reaction() {
        use Fault::{Denied, Internal, Throttled, Transient, Unavailable};
        #[rustfmt::skip]
        let table = [
            ("ThrottlingException",           429, Throttled(None)),
            ("ModelNotReadyException",        429, Throttled(None)),
            ("ServiceQuotaExceededException", 400, Throttled(None)),
            ("ModelTimeoutException",         408, Transient),
            ("ModelErrorException",           424, Transient),
            ("InternalServerException",       500, Transient),
            ("ServiceUnavailableException",   503, Unavailable),
            ("AccessDeniedException",         403, Denied),
            ("ExpiredTokenException",         403, Denied),
            ("ResourceNotFoundException",     404, Denied),
            ("ValidationException",           400, Internal),
            ("Unheard",                       429, Throttled(None)),
            ("Unheard",                       403, Denied),
            ("Unheard",                       502, Unavailable),
            ("Unheard",                       500, Transient),
            ("Unheard",                       400, Internal),
        ];
        for (code, status, expected) in table {
            assert_eq!(fault_of(code, status), expected, "{code} {status}");
        }
    }
}
