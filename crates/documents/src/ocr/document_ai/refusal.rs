//! Faults of refused calls: `google.rpc.Status` in JSON, with its details.
//!
//! The message may repeat what we sent, so it is examined but never passed on.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use docmill_client::{google, http};
use docmill_core::fault::{Error, Fault};

/// Reasons (`google.rpc.ErrorInfo`) that only a person can mend.
const FOR_A_PERSON: [&str; 6] = [
    "BILLING_DISABLED",
    "SERVICE_DISABLED",
    "CONSUMER_SUSPENDED",
    "CONSUMER_INVALID",
    "API_KEY_INVALID",
    "ACCESS_TOKEN_EXPIRED",
];

/// The parts of an error body that decide what follows.
#[derive(Debug, Default)]
pub(super) struct ProviderRefusal {
    /// `RESOURCE_EXHAUSTED` and its like.
    status: String,
    /// The reason of an `ErrorInfo`, e.g. `RATE_LIMIT_EXCEEDED`.
    reason: String,
    /// The delay of a `RetryInfo`, if the error carries one.
    delay: Option<Duration>,
    /// The message speaks of the size of a message, not of a quota.
    about_size: bool,
}

impl ProviderRefusal {
    /// Reads what there is; a body of any other shape is an empty refusal.
    pub(super) fn parse_body(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = value.get("error").unwrap_or(&Value::Null);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Self {
            status: clean_code(error.get("status").and_then(Value::as_str)),
            reason: clean_code(google::find_detail(error, "reason")),
            delay: google::find_retry_delay(error),
            about_size: message.contains("larger than max"),
        }
    }

    /// The error that goes to the caller.
    pub(super) fn into_error(self, what: &str, status: StatusCode, headers: &HeaderMap) -> Error {
        let told = http::parse_retry_after(headers, SystemTime::now()).or(self.delay);
        let (fault, advice) = self.classify_fault(status, told);
        let mut said: Vec<&str> = vec![&self.status, &self.reason];
        said.retain(|word| !word.is_empty());
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
        Error::new(fault, format!("{what}: status {}{said}{advice}", status.as_u16()))
    }

    fn classify_fault(&self, status: StatusCode, told: Option<Duration>) -> (Fault, &'static str) {
        if FOR_A_PERSON.contains(&self.reason.as_str()) {
            return (Fault::Denied, ": check the project's billing and that the API is enabled");
        }
        match (self.status.as_str(), status.as_u16()) {
            // Not every exhausted resource is a quota: a message may be too large.
            ("RESOURCE_EXHAUSTED", _) if self.about_size => (Fault::Rejected, ""),
            ("RESOURCE_EXHAUSTED", _) | (_, 429) => (Fault::Throttled(told), ""),
            ("UNAVAILABLE", _) | (_, 503) if told.is_some() => (Fault::Throttled(told), ""),
            ("UNAVAILABLE", _) | (_, 502 | 503) => (Fault::Unavailable, ""),
            ("UNAUTHENTICATED" | "PERMISSION_DENIED", _) | (_, 401 | 403) => {
                (Fault::Denied, ": check the credentials and the role Document AI API User")
            }
            ("NOT_FOUND", _) | (_, 404) => {
                (Fault::Denied, ": check ocr.document_ai.project, location, processor and version")
            }
            ("FAILED_PRECONDITION", _) => {
                (Fault::Denied, ": check that the processor and its version are enabled")
            }
            ("INVALID_ARGUMENT" | "OUT_OF_RANGE" | "UNIMPLEMENTED", _) | (_, 400 | 413) => {
                (Fault::Rejected, "")
            }
            // A deadline is about this request: a slow page, not a service that is down.
            ("DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED" | "INTERNAL" | "UNKNOWN", _)
            | (_, 499 | 504) => (Fault::Transient, ""),
            (_, 300..=399) => (Fault::Denied, ": check ocr.document_ai.endpoint"),
            (_, 408 | 409 | 425 | 500..=599) => (Fault::Transient, ""),
            _ => (Fault::Rejected, ""),
        }
    }
}

/// The fault for a code of `google.rpc.Code` in a processed document.
pub(super) fn fault_of_rpc_code(code: i32) -> Fault {
    match code {
        8 => Fault::Throttled(None),
        14 => Fault::Unavailable,
        7 | 16 => Fault::Denied,
        1 | 2 | 4 | 10 | 13 => Fault::Transient,
        _ => Fault::Rejected,
    }
}

/// The text, if it has the form of a code.
fn clean_code(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let is_code = text.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    if text.len() <= 64 && is_code { text.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(status: &str, message: &str, details: &str) -> String {
        format!(
            r#"{{"error":{{"code":1,"message":"{message}","status":"{status}","details":[{details}]}}}}"#
        )
    }

    #[test]
    fn what_a_refused_call_asks_for() {
        let s = |seconds| Some(Duration::from_secs(seconds));
        let retry = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}"#;
        let billing = r#"{"reason":"BILLING_DISABLED","domain":"googleapis.com"}"#;
        let size = "Received message larger than max (5218782 vs. 4194304)";
        #[rustfmt::skip]
        let table = [
            ("a quota",                429, body("RESOURCE_EXHAUSTED", "Quota exceeded", ""),     None,      Fault::Throttled(None)),
            ("a quota with a delay",   429, body("RESOURCE_EXHAUSTED", "", retry),                None,      Fault::Throttled(s(7))),
            ("a header wins",          429, body("RESOURCE_EXHAUSTED", "", retry),                Some("3"), Fault::Throttled(s(3))),
            ("a message too large",    429, body("RESOURCE_EXHAUSTED", size, ""),                 None,      Fault::Rejected),
            ("down",                   503, body("UNAVAILABLE", "", ""),                          None,      Fault::Unavailable),
            ("busy",                   503, body("UNAVAILABLE", "", retry),                       None,      Fault::Throttled(s(7))),
            ("a slow page",            504, body("DEADLINE_EXCEEDED", "", ""),                    None,      Fault::Transient),
            ("broken",                 500, body("INTERNAL", "", ""),                             None,      Fault::Transient),
            ("a proxy's words",        502, "<html>".to_owned(),                                  None,      Fault::Unavailable),
            ("no token",               401, body("UNAUTHENTICATED", "", ""),                      None,      Fault::Denied),
            ("no role",                403, body("PERMISSION_DENIED", "", ""),                    None,      Fault::Denied),
            ("no money",               403, body("PERMISSION_DENIED", "", billing),               None,      Fault::Denied),
            ("no such processor",      404, body("NOT_FOUND", "", ""),                            None,      Fault::Denied),
            ("a disabled processor",   400, body("FAILED_PRECONDITION", "", ""),                  None,      Fault::Denied),
            ("too many pages",         400, body("INVALID_ARGUMENT", "Document pages exceed the limit: 15 got 16", ""), None, Fault::Rejected),
            ("too many bytes",         400, body("INVALID_ARGUMENT", "Document size (34381195) exceeds the limit: 20971520.", ""), None, Fault::Rejected),
            ("sent elsewhere",         302, String::new(),                                        None,      Fault::Denied),
        ];
        for (name, status, body, header, expected) in table {
            let headers =
                header.map(|value: &str| ("retry-after".parse().unwrap(), value.parse().unwrap()));
            let status = StatusCode::from_u16(status).unwrap();
            let error = ProviderRefusal::parse_body(body.as_bytes()).into_error(
                "x",
                status,
                &headers.into_iter().collect(),
            );
            assert_eq!(error.fault, expected, "{name}");
            assert!(!error.to_string().contains("limit"), "{name}: the message stays out of it");
        }
    }

    #[test]
    fn an_error_within_a_document_has_a_code_of_its_own() {
        for (code, expected) in [
            (3, Fault::Rejected),
            (4, Fault::Transient),
            (8, Fault::Throttled(None)),
            (14, Fault::Unavailable),
        ] {
            assert_eq!(fault_of_rpc_code(code), expected, "{code}");
        }
    }
}
