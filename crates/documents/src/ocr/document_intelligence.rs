//! Azure AI Document Intelligence: the models `prebuilt-read` and `prebuilt-layout`.
//!
//! Contract: version 2024-11-30 of the REST API (`azure-rest-api-specs`, data plane). An analysis is
//! begun by one request and asked for at the address in `Operation-Location` until it has ended; its
//! result is removed from the service as soon as it has been read, which otherwise keeps it for a
//! day. The document itself is never sent: one page goes as its picture, several as a PDF of pictures.
//!
//! Not promised: that an analysis whose end was not seen is not charged. There are no idempotency
//! keys; store the reading to avoid paying twice.

mod pages;
mod refusal;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use tokio::time::Instant;

use super::governed_client::GovernedClient;
use super::{ProviderCallLimits, RemoteOcrProvider, call_content};
use docmill_client::access_token::AccessTokenCache;
use docmill_client::http;
use docmill_core::config::{DocumentIntelligenceConfig, SecretSource, SecretString};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ModelUsage, PagePicture, PageUsage, PriceClass, ProviderReading};
use docmill_core::retry::with_deadline;
use refusal::AzureRefusal;
use wire::{AnalysisAnswer, AnalysisResult};

const API_VERSION: &str = "2024-11-30";
/// Most bytes of an answer: the words of fifteen full pages with their boxes are a tenth of it.
const REPLY_CAP: usize = 96 << 20;
/// Most pages of a call; the service takes 2,000, the pictures of a call are in memory.
const MAX_PAGES: usize = 15;
/// Most bytes of a call. The service takes 500 MB, 4 MB in its free tier.
const MAX_BYTES: usize = 48_000_000;
/// The first question about an analysis comes after this; later ones after twice as long each time.
const FIRST_POLL: Duration = Duration::from_millis(250);

/// Shows who asks.
pub enum AzureCredential {
    /// The key of the resource.
    Key(SecretSource),
    /// A token of Entra ID.
    Token(AccessTokenCache),
}

/// Calls a model of Azure AI Document Intelligence.
pub struct DocumentIntelligence {
    client: Client,
    /// The model, below which analyses are.
    model_url: Url,
    credential: AzureCredential,
    governed: GovernedClient,
    model: String,
    timeout: Duration,
    poll: Duration,
}

impl DocumentIntelligence {
    /// The provider's name in the configuration.
    pub const NAME: &'static str = "document_intelligence";
    /// Its one operation, as traces name it.
    pub const ANALYZE: &'static str = "analyze";

    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(
        config: &DocumentIntelligenceConfig,
        credential: AzureCredential,
        governed: GovernedClient,
    ) -> Result<Self> {
        let server = config.endpoint.trim_end_matches('/');
        let model = &config.model;
        let address = format!("{server}/documentintelligence/documentModels/{model}");
        let model_url = Url::parse(&address).map_err(|error| {
            let context = "ocr.document_intelligence.endpoint is no valid address";
            Error::new(Fault::Misconfigured, context).with_source(error)
        })?;
        Ok(Self {
            client: http::build_client(&model_url, config.timeout)?,
            model_url,
            credential,
            governed,
            model: model.clone(),
            timeout: config.timeout,
            poll: config.poll,
        })
    }

    fn call_description(&self) -> String {
        format!("Document Intelligence at {}", self.model_url.origin().ascii_serialization())
    }

    /// The address of the model or, with `:analyze`, of its method.
    fn method_url(&self, method: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.model_url.clone();
        url.set_path(&format!("{}{method}", self.model_url.path()));
        url.query_pairs_mut().append_pair("api-version", API_VERSION).extend_pairs(query);
        url
    }

    /// Sends a request with the current key or token.
    ///
    /// # Errors
    /// No answer, or one without a status of success.
    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let what = self.call_description();
        let (request, token) = self.authorise(request).await?;
        let response = request.send().await.map_err(|error| http::no_answer_error(error, &what))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if let (AzureCredential::Token(tokens), Some(token)) = (&self.credential, &token)
            && status == StatusCode::UNAUTHORIZED
        {
            tokens.forget_token(token).await;
        }
        let headers = response.headers().clone();
        let body = http::read_capped_body(response, REPLY_CAP).await.ok().flatten();
        Err(AzureRefusal::parse_body(&body.unwrap_or_default()).into_error(&what, status, &headers))
    }

    async fn authorise(
        &self,
        request: RequestBuilder,
    ) -> Result<(RequestBuilder, Option<SecretString>)> {
        match &self.credential {
            AzureCredential::Key(key) => {
                let key = key.current_secret().map_err(|problem| {
                    let context = format!("ocr.document_intelligence.api_key_file: {problem}");
                    Error::new(Fault::Denied, context)
                })?;
                Ok((request.header("ocp-apim-subscription-key", key.reveal()), None))
            }
            AzureCredential::Token(tokens) => {
                let token = tokens.current_token().await?;
                Ok((request.bearer_auth(token.reveal()), Some(token)))
            }
        }
    }

    /// Begins an analysis, waits for its end, and removes its result.
    async fn analyze(&self, content: &Bytes, kind: &'static str) -> Result<AnalysisResult> {
        let begun = Instant::now();
        let url = self.method_url(":analyze", &[("stringIndexType", "unicodeCodePoint")]);
        let request = self.client.post(url).header(CONTENT_TYPE, kind).body(content.clone());
        let response = self.send(request).await?;
        let operation = self.operation_url(response.headers())?;
        let left = self.timeout.saturating_sub(begun.elapsed());
        let ended = with_deadline(left, self.wait_for_end(&operation), || {
            let context =
                format!("{}: the analysis has not ended in time", self.call_description());
            Error::transient(context)
        })
        .await;
        self.remove_result(operation).await;
        ended
    }

    /// The address of an analysis, which has to be the service's own: it gets the key.
    fn operation_url(&self, headers: &HeaderMap) -> Result<Url> {
        let named = headers.get("operation-location").and_then(|value| value.to_str().ok());
        let url = named.and_then(|text| Url::parse(text).ok());
        url.filter(|url| url.origin() == self.model_url.origin()).ok_or_else(|| {
            let context = "the analysis was begun, but names no address at the service";
            Error::transient(format!("{}: {context}", self.call_description()))
        })
    }

    async fn wait_for_end(&self, operation: &Url) -> Result<AnalysisResult> {
        let what = self.call_description();
        let mut wait = FIRST_POLL.min(self.poll);
        loop {
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(self.poll);
            let response = match self.send(self.client.get(operation.clone())).await {
                Ok(response) => response,
                // The question is repeated, not the analysis, which is paid for.
                Err(error) if is_passing(error.fault) => {
                    tracing::debug!(error = %error, "an analysis is asked for again");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let body = http::read_capped_body(response, REPLY_CAP).await;
            let body = body.map_err(|error| http::no_answer_error(error, &what))?;
            // The cause may quote the answer, which holds text of the document.
            let answer = serde_json::from_slice::<AnalysisAnswer>(&body.unwrap_or_default());
            let answer = answer.map_err(|_quotes| {
                Error::transient(format!("{what}: the answer is no AnalyzeResultOperation"))
            })?;
            match (answer.status.as_str(), answer.analyze_result) {
                ("notStarted" | "running", _) => {}
                ("succeeded", Some(result)) => return Ok(result),
                _ => return Err(answer.error.unwrap_or_default().into_failure(&what)),
            }
        }
    }

    /// Removes a result. Without success it is gone after a day.
    async fn remove_result(&self, operation: Url) {
        if let Err(error) = self.send(self.client.request(Method::DELETE, operation)).await {
            tracing::debug!(error = %error, "a result stays at the service for a day");
        }
    }
}

fn is_passing(fault: Fault) -> bool {
    matches!(fault, Fault::Throttled(_) | Fault::Transient | Fault::Unavailable)
}

#[async_trait]
impl RemoteOcrProvider for DocumentIntelligence {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn identity(&self) -> String {
        format!("document_intelligence {}; version {API_VERSION}", self.model)
    }

    fn call_limits(&self) -> ProviderCallLimits {
        ProviderCallLimits { pages: MAX_PAGES, bytes: MAX_BYTES }
    }

    fn is_down(&self) -> bool {
        self.governed.is_down()
    }

    /// The model is asked about itself, which is free.
    async fn ping(&self) -> Result<()> {
        self.send(self.client.get(self.method_url("", &[]))).await.map(drop)
    }

    async fn read_pictures(
        &self,
        pictures: &[PagePicture],
    ) -> Result<(Vec<ProviderReading>, PageUsage)> {
        let (content, kind) = call_content(pictures)?;
        let content = Bytes::from(content);
        let result = self.governed.call_with_retry(|| self.analyze(&content, kind)).await?;
        let readings = pages::parse_readings(&result, pictures).ok_or_else(|| {
            let (found, sent) = (result.pages.len(), pictures.len());
            Error::transient(format!("Document Intelligence answered {found} pages to {sent}"))
        })?;
        let pages = u32::try_from(pictures.len()).unwrap_or(u32::MAX);
        let model = self.model.clone();
        let (tokens, class) = (ModelUsage::default(), PriceClass::default());
        Ok((readings, PageUsage { provider: Self::NAME, model, pages, tokens, class }))
    }
}
