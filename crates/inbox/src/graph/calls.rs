//! Requests to Microsoft Graph: addresses, tokens, and the meaning of refusals.
//!
//! A request is sent once, and once more with a new token after a 401. Throttling (429 with
//! `Retry-After`) ends the pass; the worker waits as long as it was asked to.

use bytes::Bytes;
use docmill_client::access_token::AccessTokenCache;
use docmill_client::http;
use docmill_core::fault::{Error, Fault, Result};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most bytes of an answer in JSON: a page of ids has some ten thousand.
const ANSWER_CAP: usize = 4 << 20;
/// Asks for ids that a move does not change.
const IMMUTABLE_IDS: (&str, &str) = ("prefer", "IdType=\"ImmutableId\"");

/// Calls for one user's mailbox.
pub(super) struct GraphCalls {
    pub(super) client: Client,
    pub(super) endpoint: Url,
    pub(super) user: String,
    pub(super) tokens: AccessTokenCache,
}

impl GraphCalls {
    /// The address of a resource of the user.
    pub(super) fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("users").push(&self.user).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// The address of a next page. It gets our token, so it must lie at the same server.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn check_link(&self, link: &str) -> Result<Url> {
        let url = Url::parse(link).ok().filter(|url| url.origin() == self.endpoint.origin());
        let text = "Graph: the next page lies at another server";
        url.ok_or_else(|| Error::new(Fault::Denied, text))
    }

    /// GET.
    ///
    /// # Errors
    /// By [`http::fault_of_response`]; no answer.
    pub(super) async fn get(&self, url: Url, what: &str) -> Result<Response> {
        self.send(&self.client.request(Method::GET, url), what).await
    }

    /// GET, and its JSON.
    ///
    /// # Errors
    /// As [`GraphCalls::get`]; an answer of another form.
    pub(super) async fn get_json<T: DeserializeOwned>(&self, url: Url, what: &str) -> Result<T> {
        let body = read_body(self.get(url, what).await?, what).await?;
        serde_json::from_slice(&body).map_err(|_quotes| {
            Error::transient(format!("Graph: {what}: an answer of another form"))
        })
    }

    /// POST of JSON.
    ///
    /// # Errors
    /// As [`GraphCalls::get`].
    pub(super) async fn post_json(&self, url: Url, body: &Value, what: &str) -> Result<Bytes> {
        let request = self.client.request(Method::POST, url).json(body);
        read_body(self.send(&request, what).await?, what).await
    }

    /// PATCH with JSON.
    ///
    /// # Errors
    /// As [`GraphCalls::get`].
    pub(super) async fn patch_json(&self, url: Url, body: &Value, what: &str) -> Result<Bytes> {
        let request = self.client.request(Method::PATCH, url).json(body);
        read_body(self.send(&request, what).await?, what).await
    }

    async fn send(&self, request: &RequestBuilder, what: &str) -> Result<Response> {
        let response = self.send_once(request, what).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return require_success(response, what).await;
        }
        // The token was revoked, or it ended sooner than it said.
        require_success(self.send_once(request, what).await?, what).await
    }

    async fn send_once(&self, request: &RequestBuilder, what: &str) -> Result<Response> {
        let token = self.tokens.current_token().await?;
        let request = request.try_clone().ok_or_else(|| Error::internal("a body is a stream"))?;
        let request = request.bearer_auth(token.reveal()).header(IMMUTABLE_IDS.0, IMMUTABLE_IDS.1);
        let response = request.send().await;
        let response =
            response.map_err(|error| http::no_answer_error(error, &format!("Graph: {what}")))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.tokens.forget_token(&token).await;
        }
        Ok(response)
    }
}

async fn read_body(response: Response, what: &str) -> Result<Bytes> {
    let body = http::read_capped_body(response, ANSWER_CAP).await;
    let body = body.map_err(|error| http::no_answer_error(error, &format!("Graph: {what}")))?;
    body.ok_or_else(|| Error::transient(format!("Graph: {what}: an answer beyond the limit")))
}

async fn require_success(response: Response, what: &str) -> Result<Response> {
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_success() {
        return Ok(response);
    }
    let fault = http::fault_of_response(status, &headers);
    let body = http::read_capped_body(response, ANSWER_CAP).await.ok().flatten();
    let code = body.and_then(|body| refusal_code(&body)).map(|code| format!(" ({code})"));
    let (code, status) = (code.unwrap_or_default(), status.as_u16());
    let advice = match fault {
        Fault::Denied => ": check the application's right Mail.ReadWrite and user",
        _ => "",
    };
    Err(Error::new(fault, format!("Graph: {what}: status {status}{code}{advice}")))
}

/// The code of a refusal, such as `ErrorItemNotFound`, if it has the form of one.
fn refusal_code(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let code = body.get("error")?.get("code")?.as_str()?;
    let is_code = code.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.'));
    (code.len() <= 64 && is_code).then(|| code.to_owned())
}
