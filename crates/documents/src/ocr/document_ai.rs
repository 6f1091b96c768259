//! Google Document AI: an OCR processor, called online (`:process`) over REST.
//!
//! Contract: the discovery document of v1, revision 20260929. REST and not gRPC, whose clients
//! refuse replies of more than 4 MB. Online calls are limited to 15 pages (30 with `imagelessMode`)
//! and 40 MB, so a document goes in slices. The document itself is never sent. One page goes as its
//! picture, several as a PDF of pictures, so that neither a hidden text layer nor an attachment
//! leaves the machine. Batch processing is not used: it takes its input from Google's own storage
//! only.
//!
//! Not promised: that a call that broke off was not charged. There are no idempotency keys; store
//! the reading to avoid paying twice.

mod geometry;
mod pages;
mod refusal;
mod wire;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Client, StatusCode, Url};

use super::governed_client::GovernedClient;
use super::{ProviderCallLimits, RemoteOcrProvider, call_content};
use docmill_client::access_token::AccessTokenCache;
use docmill_client::http;
use docmill_core::config::DocumentAiConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ModelUsage, PagePicture, PageUsage, PriceClass, ProviderReading};
use refusal::ProviderRefusal;
use wire::{OcrCallOptions, ProcessResponse};

/// Most bytes of a reply: the words of thirty full pages with their boxes are a tenth of it.
const REPLY_CAP: usize = 96 << 20;
/// Most bytes of a file in an online call (cloud.google.com/document-ai/limits), a little less for
/// the frame of the PDF.
const MAX_BYTES: usize = 39_000_000;
/// Most pages of an online call, and with `imagelessMode`.
const MAX_PAGES: usize = 15;
const MAX_PAGES_IMAGELESS: usize = 30;

/// Calls an OCR processor of Google Document AI.
pub struct DocumentAi {
    client: Client,
    process: Url,
    tokens: AccessTokenCache,
    governed: GovernedClient,
    options: OcrCallOptions,
    processor: String,
    version: Option<String>,
}

impl DocumentAi {
    /// The provider's name in the configuration.
    pub const NAME: &'static str = "document_ai";
    /// Its one operation, as traces name it.
    pub const PROCESS: &'static str = "process";

    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(
        config: &DocumentAiConfig,
        tokens: AccessTokenCache,
        governed: GovernedClient,
    ) -> Result<Self> {
        let process = process_url(config)?;
        Ok(Self {
            client: http::build_client(&process, config.timeout)?,
            process,
            tokens,
            governed,
            options: OcrCallOptions {
                imageless: config.imageless,
                languages: config.languages.clone(),
            },
            processor: config.processor.clone(),
            version: (!config.version.is_empty()).then(|| config.version.clone()),
        })
    }

    async fn process_document(&self, body: &Bytes) -> Result<ProcessResponse> {
        let what = format!("Document AI at {}", self.process.origin().ascii_serialization());
        let token = self.tokens.current_token().await?;
        let request = self.client.post(self.process.clone()).bearer_auth(token.reveal());
        let request = request.header("content-type", "application/json").body(body.clone());
        let response = request.send().await.map_err(|error| http::no_answer_error(error, &what))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = http::read_capped_body(response, REPLY_CAP).await;
        let body = body.map_err(|error| http::no_answer_error(error, &what))?;
        let Some(body) = body else {
            let context = format!("{what}: the answer has more than {REPLY_CAP} bytes");
            return Err(Error::new(Fault::Rejected, context));
        };
        if status == StatusCode::UNAUTHORIZED {
            self.tokens.forget_token(&token).await;
        }
        if !status.is_success() {
            return Err(ProviderRefusal::parse_body(&body).into_error(&what, status, &headers));
        }
        // The cause may quote the answer, which holds text of the document.
        let answer: ProcessResponse = serde_json::from_slice(&body).map_err(|_quotes| {
            Error::transient(format!("{what}: the answer is no ProcessResponse"))
        })?;
        match answer.document.error.as_ref().map(|error| error.code) {
            None | Some(0) => Ok(answer),
            Some(code) => {
                let context = format!("{what}: the document was answered with code {code}");
                Err(Error::new(refusal::fault_of_rpc_code(code), context))
            }
        }
    }
}

/// The URL of the processor's `process` method.
fn process_url(config: &DocumentAiConfig) -> Result<Url> {
    let DocumentAiConfig { project, location, processor, version, endpoint, .. } = config;
    let server = match endpoint.trim_end_matches('/') {
        "" => format!("https://{location}-documentai.googleapis.com"),
        endpoint => endpoint.to_owned(),
    };
    let version = match version.as_str() {
        "" => String::new(),
        version => format!("/processorVersions/{version}"),
    };
    let path = format!("projects/{project}/locations/{location}/processors/{processor}{version}");
    Url::parse(&format!("{server}/v1/{path}:process")).map_err(|error| {
        let context = "ocr.document_ai: location or endpoint make no valid address";
        Error::new(Fault::Denied, context).with_source(error)
    })
}

#[async_trait]
impl RemoteOcrProvider for DocumentAi {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn identity(&self) -> String {
        let version = self.version.as_deref().unwrap_or("default");
        let hints = self.options.languages.join("+");
        format!("document_ai {}; version {version}; hints {hints}", self.processor)
    }

    fn call_limits(&self) -> ProviderCallLimits {
        let pages = if self.options.imageless { MAX_PAGES_IMAGELESS } else { MAX_PAGES };
        ProviderCallLimits { pages, bytes: MAX_BYTES }
    }

    fn is_down(&self) -> bool {
        self.governed.is_down()
    }

    /// A request without a document is checked after who sends it and what it is sent to.
    async fn ping(&self) -> Result<()> {
        match self.process_document(&Bytes::from_static(b"{}")).await {
            Err(error) if error.fault != Fault::Rejected => Err(error),
            _ => Ok(()),
        }
    }

    async fn read_pictures(
        &self,
        pictures: &[PagePicture],
    ) -> Result<(Vec<ProviderReading>, PageUsage)> {
        let body = {
            let (content, kind) = call_content(pictures)?;
            let body = wire::encode_request(&content, kind, &self.options);
            Bytes::from(body.map_err(|error| {
                Error::internal("a call to Document AI cannot be written").with_source(error)
            })?)
        };
        let answer = self.governed.call_with_retry(|| self.process_document(&body)).await?;
        let found = answer.document.pages.len();
        let readings = pages::parse_readings(&answer.document, pictures, self.version.as_deref());
        let readings = readings.ok_or_else(|| {
            let sent = pictures.len();
            Error::transient(format!("Document AI answered {found} pages to {sent}"))
        })?;
        let pages = u32::try_from(pictures.len()).unwrap_or(u32::MAX);
        let usage = PageUsage {
            provider: Self::NAME,
            model: self.processor.clone(),
            pages,
            tokens: ModelUsage::default(),
            class: PriceClass::default(),
        };
        Ok((readings, usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_to_the_region_that_is_configured_or_to_the_address_that_is() {
        let config = DocumentAiConfig {
            project: "p-1".to_owned(),
            processor: "abc".to_owned(),
            ..DocumentAiConfig::default()
        };
        let path = "/v1/projects/p-1/locations/eu/processors/abc";
        let url = process_url(&config).unwrap().to_string();
        assert_eq!(url, format!("https://eu-documentai.googleapis.com{path}:process"));
        let endpoint = "http://127.0.0.1:9/".to_owned();
        let version = "pretrained-ocr-v2.1-2024-08-07".to_owned();
        let url =
            process_url(&DocumentAiConfig { endpoint, version, ..config }).unwrap().to_string();
        let expected = format!(
            "http://127.0.0.1:9{path}/processorVersions/pretrained-ocr-v2.1-2024-08-07:process"
        );
        assert_eq!(url, expected);
    }
}
