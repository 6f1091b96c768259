//! The meaning of a refused call or a failed analysis: `DocumentIntelligenceError`, of which only the
//! codes are passed on. Its messages may quote what was sent.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;

use docmill_client::http;
use docmill_core::fault::{Error, Fault};

/// An error of the service.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AzureRefusal {
    code: String,
    innererror: InnerRefusal,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InnerRefusal {
    code: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefusalBody {
    error: AzureRefusal,
}

impl AzureRefusal {
    /// Reads what there is; a body of any other shape is an empty refusal.
    pub(super) fn parse_body(body: &[u8]) -> Self {
        serde_json::from_slice::<RefusalBody>(body).unwrap_or_default().error
    }

    /// The codes in parentheses, if there are any.
    fn codes(&self) -> String {
        let codes = [&self.code, &self.innererror.code].map(|code| clean_code(code));
        let said: Vec<&str> = codes.into_iter().filter(|code| !code.is_empty()).collect();
        if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
    }

    /// The error of a call that was refused.
    pub(super) fn into_error(self, what: &str, status: StatusCode, headers: &HeaderMap) -> Error {
        let (fault, advice) = match http::fault_of_response(status, headers) {
            Fault::Missing => (
                Fault::Denied,
                ": check ocr.document_intelligence.endpoint and ocr.document_intelligence.model",
            ),
            Fault::Denied => (
                Fault::Denied,
                ": check ocr.document_intelligence.api_key, or the role Cognitive Services User",
            ),
            fault => (fault, ""),
        };
        let (status, codes) = (status.as_u16(), self.codes());
        Error::new(fault, format!("{what}: status {status}{codes}{advice}"))
    }

    /// The error of an analysis that was begun and failed: its pictures are at fault, unless the
    /// service says that it is itself.
    pub(super) fn into_failure(self, what: &str) -> Error {
        let is_own = self.code.starts_with("Internal") || self.code.is_empty();
        let fault = if is_own { Fault::Transient } else { Fault::Rejected };
        Error::new(fault, format!("{what}: the analysis failed{}", self.codes()))
    }
}

/// The text, if it has the form of a code.
fn clean_code(text: &str) -> &str {
    let is_code = text.bytes().all(|c| c.is_ascii_alphanumeric());
    if text.len() <= 64 && is_code { text } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_fault_and_its_codes_and_never_its_message() {
        let body = |code: &str, inner: &str| {
            format!(
                r#"{{"error":{{"code":"{code}","message":"secret","innererror":{{"code":"{inner}","message":"secret"}}}}}}"#
            )
        };
        #[rustfmt::skip]
        let table = [
            (400, body("InvalidRequest", "InvalidContent"), Fault::Rejected,         "InvalidContent"),
            (401, body("401", ""),                          Fault::Denied,           "api_key"),
            (403, body("Forbidden", ""),                    Fault::Denied,           "Cognitive Services User"),
            (404, body("NotFound", "ModelNotFound"),        Fault::Denied,           "ocr.document_intelligence.model"),
            (429, body("429", ""),                          Fault::Throttled(None),  "429"),
            (500, body("InternalServerError", ""),          Fault::Transient,        "InternalServerError"),
            (503, "<html>".to_owned(),                      Fault::Unavailable,      "503"),
        ];
        for (status, body, fault, words) in table {
            let refusal = AzureRefusal::parse_body(body.as_bytes());
            let status = StatusCode::from_u16(status).unwrap();
            let error = refusal.into_error("x", status, &HeaderMap::new());
            let text = error.to_string();
            assert_eq!(error.fault, fault, "{text}");
            assert!(text.contains(words) && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn an_analysis_that_fails_is_the_pictures_fault_unless_the_service_blames_itself() {
        let failed = |text: &str| {
            let refusal: AzureRefusal = serde_json::from_str(text).unwrap();
            refusal.into_failure("x").fault
        };
        assert_eq!(failed(r#"{"code":"InvalidRequest"}"#), Fault::Rejected);
        assert_eq!(failed(r#"{"code":"InternalServerError"}"#), Fault::Transient);
        assert_eq!(failed("{}"), Fault::Transient);
    }
}
