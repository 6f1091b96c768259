//! A server that grants tokens: one request, and the meaning of its refusal.

use std::time::{Duration, SystemTime};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::GrantedToken;
use crate::http;
use docmill_core::config::SecretString;
use docmill_core::fault::{Error, Fault, Result};

/// Longest one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of an answer: tokens with many claims have a few thousand.
const ANSWER_CAP: usize = 1 << 20;

/// A server that grants tokens.
pub(super) struct TokenServer {
    pub(super) client: Client,
    pub(super) url: Url,
    /// The thing to check if it refuses.
    advice: String,
}

impl TokenServer {
    /// Nothing is sent.
    ///
    /// # Errors
    /// The address is none, or would carry credentials unencrypted to another machine.
    pub(super) fn new(address: &str, advice: &str) -> Result<Self> {
        let url = Url::parse(address).ok().filter(|url| {
            url.scheme() == "https" || (url.scheme() == "http" && http::is_local_service(url))
        });
        let Some(url) = url else {
            let context = format!("a token server must have an https:// address: {advice}");
            return Err(Error::new(Fault::Denied, context));
        };
        let client = http::build_client(&url, REQUEST_TIMEOUT)?;
        Ok(Self { client, url, advice: advice.to_owned() })
    }

    /// A request with the fields of a form.
    pub(super) fn post_form(&self, fields: &[(&str, &str)]) -> RequestBuilder {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.client.post(self.url.clone());
        request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)
    }

    /// Sends a request and returns the answer's text.
    ///
    /// # Errors
    /// [`Fault::Denied`]: it was refused; other faults: there was no answer.
    pub(super) async fn ask_text(&self, request: RequestBuilder) -> Result<String> {
        let what = format!("token server {}", self.url.origin().ascii_serialization());
        let response = request.send().await;
        let response = response.map_err(|error| http::no_answer_error(error, &what))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = http::read_capped_body(response, ANSWER_CAP).await;
        let body = body.map_err(|error| http::no_answer_error(error, &what))?.unwrap_or_default();
        if status.is_success() {
            // The bytes may be the credential itself.
            return String::from_utf8(body.to_vec()).map_err(|_quotes| self.form_error());
        }
        let fault = match http::fault_of_response(status, &headers) {
            Fault::Rejected | Fault::Missing => Fault::Denied,
            fault => fault,
        };
        let code = refusal_code(&body).map(|code| format!(" ({code})")).unwrap_or_default();
        let (status, advice) = (status.as_u16(), &self.advice);
        Err(Error::new(fault, format!("no access token, {what}: status {status}{code}: {advice}")))
    }

    /// The same, and reads its JSON.
    ///
    /// # Errors
    /// As [`TokenServer::ask_text`]; the answer is of another form.
    pub(super) async fn ask_json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let text = self.ask_text(request).await?;
        serde_json::from_str(&text).map_err(|_quotes| self.form_error())
    }

    fn form_error(&self) -> Error {
        let origin = self.url.origin().ascii_serialization();
        let context = format!("no access token, token server {origin}: an answer of another form");
        Error::transient(format!("{context}: {}", self.advice))
    }
}

/// The code of a refusal (RFC 6749 §5.2, or Google's `error.status`), if it has the form of one.
fn refusal_code(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let code = body.get("error")?;
    let code = code.as_str().or_else(|| code.get("status")?.as_str())?;
    let is_code = code.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'));
    (code.len() <= 64 && is_code).then(|| code.to_owned())
}

/// The answer of a token endpoint (RFC 6749 §5.1). Some servers write numbers as text, and Azure App
/// Service says when a token ends instead of how long it is valid.
#[derive(Deserialize)]
pub(super) struct TokenAnswer {
    access_token: String,
    #[serde(default, deserialize_with = "number_or_text")]
    expires_in: Option<u64>,
    #[serde(default, deserialize_with = "number_or_text")]
    expires_on: Option<u64>,
}

impl TokenAnswer {
    /// The token, and how long it is valid from `now`. A server that does not say is taken to mean
    /// one use.
    pub(super) fn into_token(self, now: SystemTime) -> GrantedToken {
        let until = self.expires_on.map(|end| SystemTime::UNIX_EPOCH + Duration::from_secs(end));
        let left = until.and_then(|end| end.duration_since(now).ok());
        let lifetime = self.expires_in.map(Duration::from_secs).or(left).unwrap_or_default();
        GrantedToken { value: self.access_token.into(), lifetime }
    }
}

/// The answer of `generateAccessToken` of Google's IAM Service Account Credentials API.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImpersonatedAnswer {
    access_token: SecretString,
    expire_time: String,
}

impl ImpersonatedAnswer {
    pub(super) fn into_token(self, now: OffsetDateTime) -> GrantedToken {
        let end = OffsetDateTime::parse(&self.expire_time, &Rfc3339).ok();
        let left = end.and_then(|end| Duration::try_from(end - now).ok());
        GrantedToken { value: self.access_token, lifetime: left.unwrap_or_default() }
    }
}

fn number_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}
