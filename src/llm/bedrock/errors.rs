//! From what Bedrock and its SDK say to the fault that asks for the right reaction.
//!
//! Codes: the errors of `Converse` in botocore's `bedrock-runtime/2023-09-30`, and AWS's common
//! ones.

use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata, SdkError};

use crate::fault::{Error, Fault};

/// The fault behind an error code and its HTTP status.
fn fault_of(code: &str, status: u16) -> Fault {
    match code {
        "ThrottlingException"
        | "Throttling"
        | "TooManyRequestsException"
        | "ServiceQuotaExceededException"
        // The model is being loaded: the SDKs of the vendor wait and try again.
        | "ModelNotReadyException" => Fault::Throttled(None),
        "ServiceUnavailableException" => Fault::Unavailable,
        "ModelTimeoutException" | "ModelErrorException" | "ModelStreamErrorException"
        | "InternalServerException" => Fault::Transient,
        "AccessDeniedException"
        | "ResourceNotFoundException"
        | "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "ExpiredTokenException"
        | "IncompleteSignature"
        | "MissingAuthenticationTokenException"
        | "OptInRequired" => Fault::Denied,
        "ValidationException" => Fault::Internal,
        _ => match status {
            429 => Fault::Throttled(None),
            401..=403 => Fault::Denied,
            408 | 424 => Fault::Transient,
            502..=504 => Fault::Unavailable,
            500.. => Fault::Transient,
            _ => Fault::Internal,
        },
    }
}

/// What to look at.
fn advice(code: &str, fault: Fault) -> &'static str {
    match (code, fault) {
        ("ResourceNotFoundException", _) => ": check llm.model and llm.region",
        (_, Fault::Denied) => {
            ": check the credentials, that their policy allows bedrock:InvokeModel on llm.model, \
             and that the account has access to the model"
        }
        (_, Fault::Internal) => {
            ": the service does not take our request; not every model knows prompt caching \
             (llm.prompt_cache) or a schema (llm.structured)"
        }
        _ => "",
    }
}

/// Whether the prompt did not fit into the model's window.
pub(super) fn prompt_is_too_long(error: &impl ProvideErrorMetadata) -> bool {
    // The words are looked at and never passed on: they may quote the prompt.
    let message = error.message().unwrap_or_default().to_lowercase();
    error.code() == Some("ValidationException")
        && ["too long", "too many input tokens", "maximum context length", "context window"]
            .iter()
            .any(|words| message.contains(words))
}

/// Whether the vendor's own SDKs would try again at once. What was throttled is the governor's.
pub(super) fn may_try_again<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        // Our own time ran out: it may be billed already.
        SdkError::TimeoutError(_) => false,
        SdkError::DispatchFailure(failure) => !failure.is_user(),
        SdkError::ResponseError(_) => true,
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            let fault = fault_of(service.err().code().unwrap_or_default(), status);
            matches!(fault, Fault::Transient | Fault::Unavailable)
        }
        _ => false,
    }
}

/// The error that goes to the caller.
pub(super) fn from_sdk<E>(what: &str, model: &str, error: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let (fault, words) = match &error {
        SdkError::TimeoutError(_) => (Fault::Transient, "no answer in time".to_owned()),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => {
            (Fault::Unavailable, "cannot connect in time".to_owned())
        }
        SdkError::DispatchFailure(failure) if failure.is_user() => {
            (Fault::Internal, "the request could not be sent".to_owned())
        }
        SdkError::DispatchFailure(failure) if failure.is_io() => {
            (Fault::Unavailable, "no connection".to_owned())
        }
        SdkError::DispatchFailure(failure) if failure.as_other().is_some() => {
            (Fault::Transient, "the connection ended before the answer".to_owned())
        }
        SdkError::DispatchFailure(_) => {
            (Fault::Denied, "not sent: no usable credentials".to_owned())
        }
        SdkError::ResponseError(_) => {
            (Fault::Transient, "the answer was cut or garbled".to_owned())
        }
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            let code = service.err().code().unwrap_or("no code");
            let fault = fault_of(code, status);
            (fault, format!("{code}, status {status}{}", advice(code, fault)))
        }
        _ => (Fault::Internal, "the request could not be built".to_owned()),
    };
    Error::new(fault, format!("{what}, model {model}: {words}"))
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
