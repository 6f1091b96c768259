//! Shared parts of API requests and answers.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_path_to_error::Segment;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::failure::ConsoleFailure;
use super::fields::{FieldValues, without_nul};
use docmill_core::model::digest::encode_hex;

/// Rows of a page by default.
const DEFAULT_PAGE_ROWS: u32 = 50;
/// Most rows of a page.
pub(super) const MAX_PAGE_ROWS: u32 = 200;

/// A body of JSON; an empty body is `{}`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ConsoleFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let kind = request.headers().get(header::CONTENT_TYPE).cloned();
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| ConsoleFailure::from_status(error.status()))?;
        let is_json = kind.as_ref().and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
            let name = kind.split(';').next().unwrap_or_default().trim();
            name.eq_ignore_ascii_case("application/json")
        });
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        if !bytes.is_empty() && !is_json {
            return Err(ConsoleFailure::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let parsed = match text.windows(NUL.len()).any(|part| part == NUL) {
            true => serde_json::from_slice(text)
                .map_err(|error| refuse_body(&error, None))
                .and_then(|mut value| {
                    replace_nul(&mut value);
                    parse_body(value)
                }),
            false => parse_text(text),
        };
        parsed.map(Self)
    }
}

/// Reads the whole body as text.
fn parse_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, ConsoleFailure> {
    let mut body = serde_json::Deserializer::from_slice(text);
    let value = parse_body(&mut body)?;
    body.end().map_err(|error| refuse_body(&error, None))?;
    Ok(value)
}

/// Reads a body, and names the member that does not fit.
fn parse_body<'de, T: DeserializeOwned>(
    body: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, ConsoleFailure> {
    serde_path_to_error::deserialize(body).map_err(|error| {
        let member = error.path().iter().find_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            _ => None,
        });
        refuse_body(error.inner(), member.as_deref())
    })
}

/// The refusal of a body: where it is wrong and what is expected there, without the value that was
/// sent, which may be a document's.
fn refuse_body(error: &serde_json::Error, member: Option<&str>) -> ConsoleFailure {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
    let reason = match words.rsplit_once(", expected ") {
        Some((_, expected)) => format!(": expected {expected}"),
        None if words.starts_with("missing field ") => format!(": {words}"),
        None => String::new(),
    };
    let text = format!("The body is invalid at line {line}, column {column}{reason}.");
    let failure = ConsoleFailure::wrong_request(text);
    match member {
        Some(member) => failure.about(member),
        None => failure,
    }
}

/// How JSON writes the sign that Postgres does not take.
const NUL: &[u8] = b"\\u0000";

/// Replaces each NUL by the replacement character, as forms do.
fn replace_nul(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_nul(text),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(fields) => {
            let cleaned = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                replace_nul(&mut value);
                (without_nul(&name), value)
            });
            *fields = cleaned.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A whole number, however it is written: in JSON `3` and `3.0` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Number", bound(deserialize = "T: TryFrom<i64>"))]
pub(super) struct WholeNumber<T = i64>(pub(super) T);

/// Up to here floats hold every whole number.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// A float that represents exactly one whole number.
fn exact_float(number: &serde_json::Number) -> Option<i64> {
    let float = number.as_f64()?;
    let is_exact = float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT;
    is_exact.then(|| format!("{float:.0}"))?.parse().ok()
}

impl<T: TryFrom<i64>> TryFrom<serde_json::Number> for WholeNumber<T> {
    type Error = &'static str;

    fn try_from(number: serde_json::Number) -> Result<Self, Self::Error> {
        let whole = number.as_i64().or_else(|| exact_float(&number));
        whole.and_then(|whole| T::try_from(whole).ok()).map(Self).ok_or("no whole number")
    }
}

/// Why something is changed.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChangeRequest {
    pub(super) why: String,
}

/// JSON with an `ETag` of its content; 304 if the client has that already.
pub(super) fn tagged_json(
    headers: &HeaderMap,
    value: &impl Serialize,
) -> Result<Response, ConsoleFailure> {
    let text = serde_json::to_vec(value)
        .map_err(|_| ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    tagged_bytes(headers, "application/json", text.into())
}

/// The `ETag` of an answer, so that a client that has it need not load it again.
pub(super) struct ContentTag(String);

impl ContentTag {
    /// The tag of content that these texts determine.
    pub(super) fn of_parts(parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        Self::of_hash(hasher)
    }

    fn of_hash(hasher: Sha256) -> Self {
        let hash: String = encode_hex(hasher.finalize()).chars().take(32).collect();
        Self(format!("\"{hash}\""))
    }

    /// Whether the client has this version.
    pub(super) fn is_known(&self, headers: &HeaderMap) -> bool {
        let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        known.is_some_and(|known| known.split(',').any(|one| one.trim() == self.0))
    }

    /// The answer to a client that has this.
    pub(super) fn not_modified(&self) -> Result<Response, ConsoleFailure> {
        Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, self.value()?)]).into_response())
    }

    fn value(&self) -> Result<HeaderValue, ConsoleFailure> {
        HeaderValue::from_str(&self.0)
            .map_err(|_| ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

/// Bytes of this media type with an `ETag`; 304 if the client has them already.
pub(super) fn tagged_bytes(
    headers: &HeaderMap,
    kind: &'static str,
    bytes: Bytes,
) -> Result<Response, ConsoleFailure> {
    let tag = ContentTag::of_hash(Sha256::new_with_prefix(&bytes));
    if tag.is_known(headers) {
        return tag.not_modified();
    }
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::ETAG, tag.value()?)];
    Ok((headers, bytes).into_response())
}

/// Bytes that a browser may cache, if it revalidates each time: a visitor's access can be revoked.
pub(super) fn tagged_content(
    tag: &ContentTag,
    kind: &'static str,
    bytes: Bytes,
) -> Result<Response, ConsoleFailure> {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (header::ETAG, tag.value()?),
    ];
    Ok((headers, bytes).into_response())
}

/// The rows of a page that are asked for.
pub(super) fn read_limit(wanted: &FieldValues) -> Result<u32, ConsoleFailure> {
    let Some(text) = wanted.get("limit") else { return Ok(DEFAULT_PAGE_ROWS) };
    let limit = text.parse().ok().filter(|limit| (1..=MAX_PAGE_ROWS).contains(limit));
    limit.ok_or_else(|| {
        ConsoleFailure::wrong_request(format!("limit is a number from 1 to {MAX_PAGE_ROWS}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |text: &str| serde_json::from_str::<WholeNumber>(text).ok().map(|it| it.0);
        for (text, number) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("332261030.0", Some(332_261_030)),
            ("1e3", Some(1000)),
            ("-2", Some(-2)),
            ("3.5", None),
            ("1e300", None),
            ("18446744073709551615", None),
            ("\"3\"", None),
            ("null", None),
        ] {
            assert_eq!(read(text), number, "{text}");
        }
        let page = |text: &str| serde_json::from_str::<WholeNumber<u32>>(text).ok().map(|it| it.0);
        let pages = ["7.0", "-1", "4294967296"].map(page);
        assert_eq!(pages, [Some(7), None, None]);
    }

    #[test]
    fn a_sign_that_postgres_does_not_take_is_replaced_wherever_it_stands() {
        let mut value = json!({ "why": "a\0b", "f\0": [{ "x": "\0" }, 1, null, true] });
        replace_nul(&mut value);
        assert_eq!(
            value,
            json!({ "why": "a\u{fffd}b", "f\u{fffd}": [{ "x": "\u{fffd}" }, 1, null, true] })
        );
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum ReviewVerdict {
        Accept,
        Reject,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct VerdictRequest {
        #[expect(dead_code, reason = "only its absence and its form are looked at")]
        verdict: ReviewVerdict,
    }

    #[test]
    fn a_refused_body_is_answered_with_the_place_and_the_expected_words_without_its_own() {
        for (text, field, detail) in [
            (
                r#"{"verdict":"acepted"}"#,
                Some("verdict"),
                "at line 1, column 20: expected `accept` or `reject`.",
            ),
            (
                r#"{"verdict":"x, expected secret at line 9"}"#,
                Some("verdict"),
                "at line 1, column 41: expected `accept` or `reject`.",
            ),
            (r#"{"verdict":7}"#, Some("verdict"), "at line 1, column 12."),
            (
                r#"{"verdict":"accept","why":""}"#,
                Some("why"),
                "at line 1, column 25: expected `verdict`.",
            ),
            ("{}", None, "at line 1, column 2: missing field `verdict`."),
            (r#"{"verdict":"accept"} secret"#, None, "at line 1, column 22."),
        ] {
            let refusal = parse_text::<VerdictRequest>(text.as_bytes()).unwrap_err();
            assert_eq!(refusal.detail, format!("The body is invalid {detail}"), "{text}");
            assert_eq!(refusal.field.as_deref(), field, "{text}");
        }
    }
}
