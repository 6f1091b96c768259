//! One exchange with a model vendor over HTTP: what is sent, how often it is tried, and what a
//! failure to answer means.
//!
//! Habits of the vendors' own SDKs (`_base_client.py` of openai 3.52 and anthropic 2.11): two
//! retries, 0.5 s · 2^n up to 8 s, minus up to a quarter; `retry-after` and `x-should-retry`
//! obeyed. Differences, with their reasons: a 429 or 529 is not repeated here but by the throttle
//! governor, which makes every other job wait as well; a call that ran into our own time limit is
//! not repeated here (it may be billed already and its wait is long), nor is a stream that broke
//! after its first words; and a wait of more than 8 s is handed up instead of slept through, so
//! that the job's slot is free meanwhile.

mod calls;
mod credential;
mod ping;

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Serialize;
use time::OffsetDateTime;

use super::events::EventStreamError;
use super::form::{ReplyForm, ReplyForms};
use super::options::{CallOptions, OptionalField, RequestOptions};
use super::refusal::ApiErrorBody;
use super::{FinishReason, ModelReply, Prompt};
pub(super) use calls::VendorRequest;
pub(super) use credential::{AuthHeaderFn, key_error, secret_header};
use credential::{SignedHeaders, TransportCredential};
use docmill_client::http;
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::config::{ExtraBody, ExtraHeaders, LlmConfig, LlmServer, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{Jitter, RetryBackoff, retry, with_deadline};

/// Most bytes of a reply's body; a longer one is not read and counts as cut.
pub(super) const REPLY_CAP: usize = 10 << 20;
/// Most bytes of a list of models, and of an error.
const SMALL_CAP: usize = 4 << 20;
/// Repetitions after the first try.
const RETRIES: u32 = 2;
/// The longest wait between two tries; a server that asks for more is obeyed by the caller.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(8);
/// The waits where the server does not ask for one.
const WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(500))
    .up_to(MAX_RETRY_WAIT)
    .with_jitter(Jitter::Quarter);
/// Longest a streamed reply may take; the job's own limit is shorter.
const MAX_STREAM_TIME: Duration = Duration::from_secs(12 * 3600);

/// How one try ended that brought no reply.
#[derive(Debug)]
pub(super) struct FailedTry {
    pub(super) error: Error,
    /// When to try again; `None`: not here.
    pub(super) again: Option<Duration>,
    /// Whether the schema of the request was refused, or the way in which it was demanded.
    pub(super) refuses_schema: bool,
    /// The next try is another request, without the field that this one was refused for.
    pub(super) reworded: bool,
}

impl FailedTry {
    /// It is not tried again here.
    pub(super) fn without_retry(error: Error) -> Self {
        Self { error, again: None, refuses_schema: false, reworded: false }
    }
}

/// A call that can be tried several times.
#[async_trait]
pub(super) trait RetryableCall: Sync {
    /// The configured model, for the log.
    fn model(&self) -> &str;

    /// How the form of its replies is demanded.
    fn forms(&self) -> &ReplyForms;

    /// One try; `tries` were made before it.
    async fn try_once(
        &self,
        prompt: &Prompt,
        form: ReplyForm,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry>;
}

/// One try, and one by the text alone if the schema is refused: refusals come before any token.
async fn try_in_form(
    what: &impl RetryableCall,
    prompt: &Prompt,
    tries: u32,
) -> std::result::Result<ModelReply, FailedTry> {
    let form = what.forms().of_prompt(prompt);
    match what.try_once(prompt, form, tries).await {
        Err(failed) if failed.refuses_schema && !failed.reworded && form.has_schema() => {
            let form = what.forms().remember_refusal(prompt);
            what.try_once(prompt, form, tries).await
        }
        tried => tried,
    }
}

/// Retries as often as the vendor's own SDK. A token count that shows a truncated prompt is handled
/// as a prompt that is too long, for every vendor.
pub(super) async fn call_with_retries(
    what: &impl RetryableCall,
    prompt: &Prompt,
) -> Result<ModelReply> {
    let wait_after = |failed: &FailedTry, tries| {
        let throttled = matches!(failed.error.fault, Fault::Throttled(_));
        if failed.reworded {
            return Some(Duration::ZERO);
        }
        let wait = failed.again.filter(|wait| *wait <= MAX_RETRY_WAIT)?;
        if tries >= RETRIES || throttled {
            return None;
        }
        tracing::debug!(
            llm.model = what.model(),
            fault = failed.error.fault.code(),
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "model call failed and is repeated: {}",
            failed.error
        );
        Some(wait)
    };
    let reply = retry(|tries| try_in_form(what, prompt, tries), wait_after).await;
    let reply = reply.map_err(|failed| failed.error)?;
    Ok(reply.check_whitespace().check_count(prompt))
}

/// The wait before the next try after `tries`, as the vendors' SDKs choose it.
pub(super) fn retry_wait(tries: u32) -> Duration {
    WAITS.wait_after(tries)
}

/// The response to a request, by its status.
pub(super) enum ChatResponse {
    /// A status of success; the body is unread.
    Accepted(Response),
    /// Any other status: the call was refused.
    No(RefusedCall),
}

/// An answer without a status of success.
pub(super) struct RefusedCall {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The error body.
    pub(super) refusal: ApiErrorBody,
}

/// How long a stream may say nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct SilenceLimits {
    /// Longest silence before the first piece.
    pub(super) first: Duration,
    /// Longest silence between later pieces.
    pub(super) later: Duration,
}

/// A vendor's address and how to speak to it.
pub(super) struct ChatTransport {
    client: Client,
    /// The address of the settings.
    base: Url,
    url: Url,
    /// Where replies in pieces are asked for.
    stream_url: Url,
    models: Url,
    /// Whether the list of models has the name of ours, if it is there: Azure lists base models, not
    /// deployments.
    lists_our_model: bool,
    headers: HeaderMap,
    credential: TransportCredential,
    extra_headers: ExtraHeaders,
    extra_body: ExtraBody,
    options: RequestOptions,
    model: String,
    timeout: Duration,
    /// Longest silence within a stream.
    idle: Duration,
}

impl ChatTransport {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, there is no usable TLS set-up, or the key cannot be sent.
    /// [`Fault::Denied`]: there are no credentials for a token.
    pub(super) fn new(
        config: &LlmConfig,
        path: &str,
        headers: HeaderMap,
        authorised: AuthHeaderFn,
    ) -> Result<Self> {
        let url = join_url(&config.base_url, path)?;
        Ok(Self {
            credential: TransportCredential::find(config, authorised)?,
            extra_headers: config.extra_headers(),
            extra_body: config.extra_body.clone(),
            options: RequestOptions::new(config),
            client: http::build_client(&url, config.timeout)?,
            base: join_url(&config.base_url, "")?,
            models: join_url(&config.base_url, "/models")?,
            lists_our_model: config.server != LlmServer::Azure,
            stream_url: url.clone(),
            url,
            headers,
            model: config.model.clone(),
            timeout: config.timeout,
            idle: config.idle_timeout,
        })
    }

    /// Leaves fields out of its requests that the protocol, server or model is known not to take.
    pub(super) fn without_fields(self, unknown: &[OptionalField]) -> Self {
        self.options.leave_out(unknown);
        self
    }

    /// Asks for replies in pieces at another path below the vendor's address.
    ///
    /// # Errors
    /// The address is no URL.
    pub(super) fn stream_at(mut self, path: &str) -> Result<Self> {
        self.stream_url = join_url(self.base.as_str(), path)?;
        Ok(self)
    }

    /// The headers of a request, with the current key or token and those of the settings.
    async fn request_headers(&self) -> Result<SignedHeaders> {
        let mut signed = self.credential.sign_headers(&self.headers).await?;
        credential::add_extra_headers(&self.extra_headers, &mut signed.headers)?;
        Ok(signed)
    }

    /// The settings of its requests, and what was refused of them.
    pub(super) fn options(&self) -> &RequestOptions {
        &self.options
    }

    /// A request as JSON, with the fields of `llm.extra_body`.
    ///
    /// # Errors
    /// It cannot be written: our bug.
    pub(super) fn encode_request(&self, request: &impl Serialize) -> Result<String> {
        let written = if self.extra_body.is_empty() {
            serde_json::to_string(request)
        } else {
            serde_json::to_value(request).map(|mut request| {
                self.extra_body.merge_into(&mut request);
                request.to_string()
            })
        };
        written.map_err(|error| {
            Error::internal("a request to a model cannot be written").with_source(error)
        })
    }

    /// Name of the model, as configured.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// A description of the call for errors: `model call to https://…`.
    pub(super) fn call_description(&self) -> String {
        format!("model call to {}", strip_credentials(self.url.as_str()))
    }

    /// Longest silence within a stream.
    pub(super) fn silence_limits(&self) -> SilenceLimits {
        SilenceLimits { first: self.timeout, later: self.idle }
    }

    /// Sends a request, after `tries` that failed; `stream`: its answer comes in pieces.
    pub(super) async fn post_json(
        &self,
        body: &impl Serialize,
        stream: bool,
        tries: u32,
    ) -> std::result::Result<ChatResponse, FailedTry> {
        let signed = self.request_headers().await.map_err(FailedTry::without_retry)?;
        let body = self.encode_request(body).map_err(FailedTry::without_retry)?;
        let url = if stream { &self.stream_url } else { &self.url };
        let mut request = self.client.post(url.clone()).headers(signed.headers.clone());
        request = request.header(CONTENT_TYPE, "application/json").body(body);
        if stream {
            request = request.timeout(MAX_STREAM_TIME);
        }
        // Of a stream only the head is waited for here.
        let sent =
            async { request.send().await.map_err(|error| self.connection_failure(error, tries)) };
        let response = with_deadline(self.timeout, sent, || {
            FailedTry::without_retry(Error::transient(format!(
                "{}: no answer in time",
                self.call_description()
            )))
        })
        .await?;
        let status = response.status();
        if status.is_success() {
            return Ok(ChatResponse::Accepted(response));
        }
        self.credential.note_status(status, &signed).await;
        let headers = response.headers().clone();
        let body = http::read_capped_body(response, SMALL_CAP)
            .await
            .map_err(|e| self.connection_failure(e, tries))?;
        let refusal = ApiErrorBody::parse(&body.unwrap_or_default());
        Ok(ChatResponse::No(RefusedCall { status, headers, refusal }))
    }

    /// A connection that failed: tried again unless our own time ran out on an open one.
    pub(super) fn connection_failure(&self, error: reqwest::Error, tries: u32) -> FailedTry {
        let again = !error.is_timeout() || error.is_connect();
        let again = again.then(|| retry_wait(tries));
        let error = http::no_answer_error(error, &self.call_description());
        FailedTry { again, ..FailedTry::without_retry(error) }
    }

    /// Reads a reply that comes whole; `read` makes one of a body, which should be a `form`.
    pub(super) async fn read_whole_reply<E>(
        &self,
        response: Response,
        read: impl Fn(&[u8], &str) -> std::result::Result<ModelReply, E>,
        form: &str,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let limits = RateLimitHeaders::read(response.headers(), OffsetDateTime::now_utc());
        let body = http::read_capped_body(response, REPLY_CAP).await;
        let body = body.map_err(|error| self.connection_failure(error, tries))?;
        // A reply without end is a cut one: fewer pages may bring it to an end.
        let Some(body) = body else {
            return Ok(ModelReply::without_text(FinishReason::Cut, &self.model));
        };
        let reply = read(&body, &self.model).map(|reply| ModelReply { limits, ..reply });
        reply.map_err(|error| {
            let context = format!("{}: the answer is no {form}", self.call_description());
            let error = Error::transient(context).with_source(error);
            FailedTry { again: Some(retry_wait(tries)), ..FailedTry::without_retry(error) }
        })
    }

    /// A refused call as a failed try. A field that it was refused for is left out of the next.
    pub(super) fn refused_try(
        &self,
        call: RefusedCall,
        sent: CallOptions<'_>,
        tries: u32,
    ) -> FailedTry {
        let reworded = self.options.learn(sent, call.refusal.field_words(call.status));
        FailedTry { reworded, ..self.failed_try(call, tries) }
    }

    fn failed_try(&self, call: RefusedCall, tries: u32) -> FailedTry {
        let RefusedCall { status, headers, refusal } = call;
        let again = refusal.try_again_after(status, &headers, retry_wait(tries));
        let refuses_schema = refusal.is_schema_refused(status);
        let what = self.call_description();
        let error = refusal.into_error(&what, status, &headers, &self.model);
        let error = self.credential.name_role(error, status);
        FailedTry { again, refuses_schema, ..FailedTry::without_retry(error) }
    }

    /// An error that arrived within a stream. Tokens generated until then are billed and lost.
    pub(super) fn refused_stream(&self, refusal: ApiErrorBody) -> FailedTry {
        let status = refusal.status_in_stream();
        let call = RefusedCall { status, headers: HeaderMap::new(), refusal };
        FailedTry { again: None, ..self.failed_try(call, 0) }
    }

    /// A stream that ended without its last event.
    pub(super) fn early_end_failure(&self) -> FailedTry {
        let context = format!("{}: the stream ended before the reply did", self.call_description());
        FailedTry::without_retry(Error::transient(context))
    }

    /// A stream that broke off. Not tried again here: its beginning is billed already.
    pub(super) fn stream_failure(&self, broken: EventStreamError) -> FailedTry {
        let what = self.call_description();
        FailedTry::without_retry(match broken {
            EventStreamError::Connection(error) => http::no_answer_error(error, &what),
            EventStreamError::Silent => Error::transient(format!(
                "{what}: the stream fell silent (llm.timeout before its first piece, \
                 llm.idle_timeout after it)"
            )),
            EventStreamError::Endless => Error::transient(format!("{what}: a stream without end")),
        })
    }
}

/// An address under another: `https://host/v1?a=b` and `/models` make `https://host/v1/models?a=b`.
fn join_url(base: &str, path: &str) -> Result<Url> {
    let mut url = Url::parse(base).map_err(|error| {
        Error::new(Fault::Misconfigured, "llm.base_url is not a valid address").with_source(error)
    })?;
    let under = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&under);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn a_path_goes_between_the_base_and_its_query_and_a_password_is_not_shown() {
        let url = join_url("https://me:hunter2@models.example:8443/v1/?api-version=1", "/models");
        let url = url.unwrap();
        assert_eq!(url.path(), "/v1/models");
        assert_eq!(url.query(), Some("api-version=1"));
        let shown = strip_credentials(url.as_str());
        assert_eq!(shown, "https://models.example:8443/v1/models?***");
    }

    #[test]
    fn a_header_with_a_key_does_not_show_it() {
        let (_, value) = secret_header("x-api-key", "hunter2").unwrap();
        assert!(!format!("{value:?}").contains("hunter2"));
        assert!(secret_header("x-api-key", "line\nfeed").is_err());
    }

    #[tokio::test]
    async fn headers_of_the_settings_come_last_and_secret_ones_are_read_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "first\n").unwrap();
        let config = LlmConfig {
            base_url: "https://models.example/v1".to_owned(),
            headers: [("Anthropic-Version".to_owned(), "2023-06-01".to_owned())].into(),
            header_files: [("x-subscription".to_owned(), file.path().to_owned())].into(),
            ..LlmConfig::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2026-10-21"));
        let exchange =
            ChatTransport::new(&config, "/messages", headers, Box::new(|_| Ok(None))).unwrap();
        let sent = exchange.request_headers().await.unwrap().headers;
        assert_eq!(sent.get_all("anthropic-version").iter().count(), 1);
        assert_eq!(sent.get("anthropic-version").unwrap(), "2023-06-01");
        assert_eq!(sent.get("x-subscription").unwrap(), "first");
        assert!(!format!("{sent:?}").contains("first"), "it is never shown");
        std::fs::write(file.path(), "second").unwrap();
        let later = std::time::SystemTime::now() + Duration::from_secs(2);
        file.as_file().set_modified(later).unwrap();
        let sent = exchange.request_headers().await.unwrap().headers;
        assert_eq!(sent.get("x-subscription").unwrap(), "second");
    }
}
