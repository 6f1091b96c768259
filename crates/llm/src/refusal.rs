//! The meaning of a refused call: the error body with status and headers, in the forms of
//! OpenAI-compatible servers and Anthropic.
//!
//! The message of an error body may repeat parts of the prompt, so it is examined but never
//! passed on; `code`, `type` and `param` are passed on where they look like identifiers.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::options::RefusalWords;
use docmill_client::body_size::BodyTooLarge;
use docmill_client::{google, http};
use docmill_core::fault::{Error, Fault};

/// Codes and types that mean that the account has no money left or a limit of spending was set.
/// Many come as 429 and would never pass by waiting.
const MONEY_OUT: [&str; 12] = [
    "billing_error",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
    "organization_on_hold",
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "enforced_spend_limit_reached",
    "insufficient_balance",
    "insufficient_credits",
];

/// Codes and types of servers whose window the prompt did not fit into (OpenAI; llama.cpp).
const TOO_LONG: [&str; 4] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
    // Anthropic's own 413.
    "request_too_large",
];

/// Words for money that come without a code, in lower case. Anthropic's limits of spending are a 400:
/// "You have reached your specified API usage limits. You will regain access on …"
/// (platform.claude.com/docs/en/api/errors). Gemini's are a 429 like that of a quota: "Your prepayment credits are
/// depleted", "Your project has exceeded its monthly spending cap".
const MONEY_OUT_WORDS: [&str; 5] = [
    "credit balance is too low",
    "api usage limits",
    "regain access on",
    "credits are depleted",
    "spending cap",
];

/// Codes of filters before the model (Azure): this document is declined, no other.
const FILTERED: [&str; 2] = ["content_filter", "content_policy_violation"];

/// Words of servers that give no code (vLLM, older llama.cpp, Anthropic, Gemini, gateways), in lower
/// case.
const TOO_LONG_WORDS: [&str; 8] = [
    "exceed context limit",
    "maximum context length",
    "context length exceeded",
    "context window",
    "available context size",
    "maximum model length",
    "prompt is too long",
    "exceeds the maximum number of tokens",
];

/// The pause of a provider whose quota of the day is spent and that names no time.
const DAY_QUOTA_PAUSE: Duration = Duration::from_secs(3600);
/// Such a pause is no shorter, whatever time is named: Google names half a minute for both kinds of
/// quota where both are spent.
const MIN_DAY_QUOTA_PAUSE: Duration = Duration::from_secs(900);

/// The beginning of a server's message, in lower case, if it could not parse the reply that it
/// generated itself (llama.cpp, for a reply that was cut or broke its form). The model's text
/// follows.
const UNREAD_REPLY: [&str; 3] = [
    "failed to parse input at pos ",
    "failed to parse tool call arguments as json",
    "the model produced output that does not match the expected ",
];

/// Words of refused schemas, in lower case: limits of their grammars (Anthropic, Bedrock; Gemini; llama.cpp,
/// vLLM), keywords, and the way in which the form was demanded (a tool that must be used, a `response_format` that a server lacks).
const REFUSED_SCHEMA: [&str; 14] = [
    "union types",
    "optional parameters",
    "strict tools",
    "grammar",
    "too complex for compilation",
    "too many states for serving",
    "maximum allowed nesting depth",
    "output_config.format",
    "input_schema",
    "response_format",
    "json_schema",
    "json schema",
    "tool_choice",
    "outputconfig",
];

/// The parts of an error body that decide what follows.
#[derive(Debug, Default)]
pub(super) struct ApiErrorBody {
    code: Option<String>,
    kind: Option<String>,
    param: Option<String>,
    /// The more exact code of Anthropic and Gemini.
    detail: Option<String>,
    /// In lower case. Never passed on.
    message: String,
    /// The wait that the body asks for (Google).
    delay: Option<Duration>,
    /// Whether a quota of the day is spent (Google).
    is_day_spent: bool,
    /// Whether moderation flagged the prompt (`OpenRouter`).
    is_flagged: bool,
}

impl ApiErrorBody {
    /// Reads what there is; a body of any other shape is an empty refusal.
    pub(super) fn parse(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        // OpenAI nests it in `error`; vLLM has had it at the top as well.
        let error = value.get("error").unwrap_or(&value);
        let identifier = |pointer: &str| {
            let text = error.pointer(pointer)?.as_str()?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            (!text.is_empty() && text.len() <= 64 && text.chars().all(plain))
                .then(|| text.to_owned())
        };
        let message = error.as_str().or_else(|| error.get("message")?.as_str());
        Self {
            code: identifier("/code"),
            // Gemini's is its `status`.
            kind: identifier("/type").or_else(|| identifier("/status")),
            param: identifier("/param"),
            detail: identifier("/details/error_code").or_else(|| identifier("/details/0/reason")),
            message: message.unwrap_or_default().to_lowercase(),
            delay: google::find_retry_delay(error),
            is_day_spent: google::has_spent_day(error),
            is_flagged: error.pointer("/metadata/flagged_input").is_some(),
        }
    }

    /// The wait that is asked for, a header before the body.
    fn told_wait(&self, headers: &HeaderMap) -> Option<Duration> {
        http::parse_retry_after(headers, SystemTime::now()).or(self.delay)
    }

    /// Whether the body said nothing of why.
    pub(super) fn is_empty(&self) -> bool {
        self.code.is_none() && self.kind.is_none() && self.message.is_empty()
    }

    fn has_code_of(&self, names: &[&str]) -> bool {
        let said = [&self.code, &self.kind, &self.detail].into_iter().flatten();
        said.into_iter().any(|name| names.contains(&name.as_str()))
    }

    fn is_out_of_money(&self) -> bool {
        self.has_code_of(&MONEY_OUT)
            || MONEY_OUT_WORDS.iter().any(|words| self.message.contains(words))
    }

    /// Whether a filter declined this prompt.
    pub(super) fn is_filtered(&self, status: StatusCode) -> bool {
        match status {
            StatusCode::BAD_REQUEST => self.has_code_of(&FILTERED),
            StatusCode::FORBIDDEN => self.is_flagged,
            _ => false,
        }
    }

    /// The status that this would have had, had it not come within a stream that began well.
    pub(super) fn status_in_stream(&self) -> StatusCode {
        let kind = self.kind.as_deref().or(self.code.as_deref()).unwrap_or_default();
        match kind {
            "overloaded_error" | "rate_limit_error" => StatusCode::TOO_MANY_REQUESTS,
            "authentication_error" => StatusCode::UNAUTHORIZED,
            "permission_error" | "billing_error" => StatusCode::FORBIDDEN,
            "invalid_request_error" => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the prompt did not fit: fewer pages may.
    pub(super) fn is_prompt_too_long(&self, status: StatusCode) -> bool {
        match status.as_u16() {
            400 | 413 | 422 | 500 => {
                self.has_code_of(&TOO_LONG)
                    || TOO_LONG_WORDS.iter().any(|words| self.message.contains(words))
            }
            _ => false,
        }
    }

    /// Whether the schema of the request is refused, or the way in which it is demanded.
    pub(super) fn is_schema_refused(&self, status: StatusCode) -> bool {
        let param = self.param.as_deref().unwrap_or_default();
        matches!(status.as_u16(), 400 | 422)
            && (has_refused_schema(&self.message) || param.starts_with("response_format"))
    }

    /// Whether there was a reply, of which the server could make nothing: the same call brings the same.
    pub(super) fn is_unread_reply(&self, status: StatusCode) -> bool {
        status == StatusCode::INTERNAL_SERVER_ERROR
            && UNREAD_REPLY.iter().any(|words| self.message.starts_with(words))
    }

    /// The words that may name a field of the request.
    pub(super) fn field_words(&self, status: StatusCode) -> RefusalWords<'_> {
        RefusalWords { status, param: self.param.as_deref(), message: &self.message }
    }

    /// When to try again, `backoff` if the server leaves that to us; `None`: not at all.
    pub(super) fn try_again_after(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        backoff: Duration,
    ) -> Option<Duration> {
        let told = headers.get("x-should-retry").and_then(|value| value.to_str().ok());
        let worth_it = match told {
            _ if self.is_out_of_money() => false,
            Some("true") => true,
            Some("false") => false,
            _ => is_passing(status),
        };
        worth_it.then(|| self.told_wait(headers).unwrap_or(backoff))
    }

    /// The error that goes to the caller.
    pub(super) fn into_error(
        self,
        what: &str,
        status: StatusCode,
        headers: &HeaderMap,
        model: &str,
    ) -> Error {
        let said: Vec<&str> = [&self.code, &self.kind, &self.detail, &self.param]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
        let (fault, advice) = if self.is_out_of_money() {
            (Fault::Denied, ": the account has no money left or reached its limit of spending")
        } else {
            match http::fault_of_response(status, headers) {
                Fault::Throttled(_) if self.is_day_spent => {
                    let wait = self.told_wait(headers).unwrap_or(DAY_QUOTA_PAUSE);
                    let wait = wait.max(MIN_DAY_QUOTA_PAUSE);
                    (Fault::OverBudget(wait), ": the provider's quota of the day is spent")
                }
                Fault::Throttled(_) => (Fault::Throttled(self.told_wait(headers)), ""),
                // Gemini's answer to a wrong key is 400.
                _ if self.has_code_of(&["API_KEY_INVALID"]) => {
                    (Fault::Denied, ": check llm.api_key and llm.base_url")
                }
                // No model of that name, or no such path: no job can succeed.
                Fault::Missing => (Fault::Denied, ": check llm.model and llm.base_url"),
                Fault::Denied => (Fault::Denied, ": check llm.api_key and llm.base_url"),
                // Our request is at fault, not the document: the same form goes out for every one.
                Fault::Rejected => (Fault::Internal, ": the server does not take our request"),
                fault => (fault, ""),
            }
        };
        let error = Error::new(
            fault,
            format!("{what}, model {model}: status {}{said}{advice}", status.as_u16()),
        );
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => error.with_source(BodyTooLarge),
            _ => error,
        }
    }
}

/// Whether an error's words, in lower case, refuse a schema. They are examined and never passed on.
pub(super) fn has_refused_schema(message: &str) -> bool {
    REFUSED_SCHEMA.iter().any(|words| message.contains(words))
}

/// Whether waiting for `status` to pass makes sense at all.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, status, body, headers; then fault, seconds to the next try, whether it is too long.
    type Case<'a> = (&'a str, u16, &'a str, Pairs, Fault, Option<u64>, bool);
    type Pairs = &'static [(&'static str, &'static str)];

    fn refusal(
        status: u16,
        body: &str,
        headers: &[(&'static str, &str)],
    ) -> (Fault, Option<u64>, bool) {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect();
        let status = StatusCode::from_u16(status).unwrap();
        let refusal = ApiErrorBody::parse(body.as_bytes());
        let again = refusal.try_again_after(status, &headers, Duration::from_secs(1));
        let long = refusal.is_prompt_too_long(status);
        let error = refusal.into_error("call", status, &headers, "m-1");
        (error.fault, again.map(|wait| wait.as_secs()), long)
    }

    #[test]
    fn refused_calls_are_sorted_into_faults() {
        let s = Duration::from_secs;
        let error = |name: &str| format!(r#"{{"error":{{"message":"x","code":"{name}"}}}}"#);
        let quota = error("insufficient_quota");
        let context = error("context_length_exceeded");
        let large = error("request_too_large");
        let overloaded =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#.to_owned();
        let spend = r#"{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        let credit = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#;
        let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
        let limit = r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#;
        let workspace = r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#;
        let minute = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},{"retryDelay":"7s"}]}}"#;
        let day = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"35640s"}]}}"#;
        let depleted = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing."}}"#;
        let capped = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Your project has exceeded its monthly spending cap."}}"#;
        let soon = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"7s"}]}}"#;
        let gemini = r#"{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#;
        let badkey = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let vllm =
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens"}"#;
        #[rustfmt::skip]
        let table: [Case<'_>; 31] = [
            ("throttled",                   429, "{}",     &[],                          Fault::Throttled(None),       Some(1),  false),
            ("throttled for a time",        429, "{}",     &[("retry-after", "3")],      Fault::Throttled(Some(s(3))), Some(3),  false),
            ("money out",                   429, &quota,   &[],                          Fault::Denied,                None,     false),
            ("money out, told to retry",    429, &quota,   &[("x-should-retry", "true")],Fault::Denied,                None,     false),
            ("overloaded",                  529, &overloaded, &[],                       Fault::Throttled(None),       Some(1),  false),
            ("spend limit, in the details", 429, spend,    &[],                          Fault::Denied,                None,     false),
            ("no credit, in words",         400, credit,   &[],                          Fault::Denied,                None,     false),
            ("spending limit, Anthropic's 400", 400, limit, &[],                     Fault::Denied,                None,     false),
            ("a workspace's spending limit", 400, workspace, &[],                    Fault::Denied,                None,     false),
            ("a wait in Google's body",     429, minute,   &[],                      Fault::Throttled(Some(s(7))), Some(7),  false),
            ("a day's quota of Google",     429, day,      &[],                      Fault::OverBudget(s(35_640)), Some(35_640), false),
            ("a day's quota, oddly soon",   429, soon,     &[],                      Fault::OverBudget(s(900)),    Some(7),  false),
            ("money of Google",             429, depleted, &[],                      Fault::Denied,                None,     false),
            ("its cap on spending",         429, capped,   &[],                      Fault::Denied,                None,     false),
            ("key without permission",      403, "{}",     &[],                          Fault::Denied,                None,     false),
            ("a gateway's timeout",         504, "{}",     &[],                          Fault::Unavailable,           Some(1),  false),
            ("too long, Anthropic's words", 400, long,     &[],                          Fault::Internal,              None,     true),
            ("payment required",            402, "",       &[],                          Fault::Denied,                None,     false),
            ("wrong key",                   401, "{}",     &[],                          Fault::Denied,                None,     false),
            ("no such model",               404, "{}",     &[],                          Fault::Denied,                None,     false),
            ("broken",                      500, "{}",     &[],                          Fault::Transient,             Some(1),  false),
            ("broken for good",             500, "{}",     &[("x-should-retry", "false")],Fault::Transient,            None,     false),
            ("down",                        503, "<html>", &[],                          Fault::Unavailable,           Some(1),  false),
            ("conflict",                    409, "{}",     &[],                          Fault::Transient,             Some(1),  false),
            ("bad request",                 400, "{}",     &[],                          Fault::Internal,              None,     false),
            ("too long, by code",           400, &context, &[],                          Fault::Internal,              None,     true),
            ("too long, by words",          400, vllm,     &[],                          Fault::Internal,              None,     true),
            ("too long, Gemini's words",    400, gemini,   &[],                          Fault::Internal,              None,     true),
            ("wrong key, Gemini's 400",     400, badkey,   &[],                          Fault::Denied,                None,     false),
            ("too large for Anthropic",     413, &large,   &[],                          Fault::Internal,              None,     true),
            ("too large for a gateway",     413, "",       &[],                          Fault::Internal,              None,     false),
        ];
        for (name, status, body, headers, fault, again, long) in table {
            assert_eq!(refusal(status, body, headers), (fault, again, long), "{name}");
        }
    }

    #[test]
    fn an_error_names_the_model_and_the_code_but_never_repeats_the_message() {
        let body = r#"{"error":{"message":"invalid value: ACME Ltd","type":"not_found","code":"two words"}}"#;
        let refusal = ApiErrorBody::parse(body.as_bytes());
        let error = refusal.into_error("call", StatusCode::NOT_FOUND, &HeaderMap::new(), "m-1");
        let text = error.to_string();
        assert!(
            text.contains("m-1") && text.contains("not_found") && text.contains("404"),
            "{text}"
        );
        assert!(!text.contains("ACME") && !text.contains("two words"), "{text}");
    }

    #[test]
    fn a_filter_before_the_model_declines_this_document_and_no_other() {
        let body = br#"{"error":{"code":"content_filter","message":"x"}}"#;
        assert!(ApiErrorBody::parse(body).is_filtered(StatusCode::BAD_REQUEST));
        assert!(!ApiErrorBody::parse(b"{}").is_filtered(StatusCode::BAD_REQUEST));
        let body = br#"{"error":{"code":403,"metadata":{"reasons":["x"],"flagged_input":"y"}}}"#;
        assert!(ApiErrorBody::parse(body).is_filtered(StatusCode::FORBIDDEN));
        let key = br#"{"error":{"code":403,"message":"x"}}"#;
        assert!(!ApiErrorBody::parse(key).is_filtered(StatusCode::FORBIDDEN));
    }

    #[test]
    fn a_reply_that_its_server_could_not_read_is_no_failure_of_the_server() {
        for (message, unread) in [
            ("Failed to parse input at pos 13: {\"fields\"", true),
            ("The model produced output that does not match the expected peg-native format", true),
            ("Failed to load the model", false),
            ("it said: Failed to parse input at pos 13", false),
        ] {
            let body = serde_json::json!({"error": {"code": 500, "message": message}}).to_string();
            let refusal = ApiErrorBody::parse(body.as_bytes());
            assert_eq!(refusal.is_unread_reply(StatusCode::INTERNAL_SERVER_ERROR), unread);
            assert!(!refusal.is_unread_reply(StatusCode::BAD_REQUEST), "our own mistake");
        }
    }

    #[test]
    fn an_error_within_a_stream_has_the_status_it_would_have_had_before_it() {
        for (kind, status) in [
            ("overloaded_error", 429),
            ("rate_limit_error", 429),
            ("authentication_error", 401),
            ("api_error", 500),
            ("timeout_error", 500),
            ("", 500),
        ] {
            let body = format!(r#"{{"type":"error","error":{{"type":"{kind}"}}}}"#);
            assert_eq!(ApiErrorBody::parse(body.as_bytes()).status_in_stream(), status, "{kind}");
        }
    }

    #[test]
    fn a_refused_schema_is_distinguished_from_any_other_bad_request() {
        for (message, param, refused) in [
            ("Schemas contains too many parameters with union types (20 …)", None, true),
            ("Schemas contains too many optional parameters (87), …", None, true),
            ("The compiled grammar is too large, …", None, true),
            ("Schema is too complex for compilation.", None, true),
            ("… a constraint that has too many states for serving.", None, true),
            ("output_config.format.schema: For 'integer' type, …", None, true),
            ("11 levels of nesting exceeds limit of 10.", Some("response_format"), true),
            ("prompt is too long: 210000 tokens > 200000 maximum", None, false),
            ("messages: first message must use the \"user\" role", None, false),
            ("Unsupported parameter: 'max_tokens'", Some("max_tokens"), false),
        ] {
            let body = serde_json::json!({"error": {"message": message, "param": param}});
            let refusal = ApiErrorBody::parse(body.to_string().as_bytes());
            assert_eq!(refusal.is_schema_refused(StatusCode::BAD_REQUEST), refused, "{message}");
            assert!(!refusal.is_schema_refused(StatusCode::INTERNAL_SERVER_ERROR), "{message}");
        }
    }
}
