//! Mistral's reader of pages (`POST /ocr`): no chat model, but behind the same port, since it answers a
//! picture with text. Prompt, schema and token limit are not sent; the text is Markdown.
//!
//! Contract: the types of `PyPI`'s mistralai 3.7 (`OCRRequest`, `OCRResponse`), held by
//! `scripts/ocr_contracts.sh`. Pages are charged, not tokens.

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};

use super::exchange::{
    AuthHeaderFn, ChatResponse, ChatTransport, FailedTry, RetryableCall, call_with_retries,
    secret_header,
};
use super::form::{ReplyForm, ReplyForms};
use super::picture::data_url;
use super::{FinishReason, Llm, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::config::LlmConfig;
use docmill_core::fault::{Error, Result};
use docmill_core::model::ModelUsage;

/// Mistral OCR at Mistral's own API, or at a host that serves the same endpoint.
pub struct MistralOcrClient {
    exchange: ChatTransport,
    model: String,
    forms: ReplyForms,
}

impl MistralOcrClient {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let key: AuthHeaderFn =
            Box::new(|key| secret_header("authorization", &format!("Bearer {key}")).map(Some));
        Ok(Self {
            exchange: ChatTransport::new(config, "/ocr", HeaderMap::new(), key)?,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
        })
    }
}

/// One picture as a document. Tables stay in the text, and neither figures nor blocks come back.
#[derive(Serialize)]
struct OcrRequest<'a> {
    model: &'a str,
    document: PictureDocument,
    include_image_base64: bool,
    include_blocks: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "image_url")]
struct PictureDocument {
    image_url: String,
}

#[derive(Deserialize)]
struct OcrResponse {
    pages: Vec<OcrPage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct OcrPage {
    markdown: String,
}

/// The text of the one page of a response.
fn parse_reply(body: &[u8], asked: &str) -> std::result::Result<ModelReply, serde_json::Error> {
    use serde::de::Error as _;
    let response: OcrResponse = serde_json::from_slice(body)?;
    let Ok([page]) = <[OcrPage; 1]>::try_from(response.pages) else {
        return Err(serde_json::Error::custom("a picture is one page"));
    };
    Ok(ModelReply {
        text: page.markdown,
        stop: FinishReason::Complete,
        usage: ModelUsage::default(),
        model: response.model.unwrap_or_else(|| asked.to_owned()),
        limits: RateLimitHeaders::default(),
    })
}

#[async_trait]
impl RetryableCall for MistralOcrClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn forms(&self) -> &ReplyForms {
        &self.forms
    }

    async fn try_once(
        &self,
        prompt: &Prompt,
        _form: ReplyForm,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry> {
        let [picture] = prompt.pictures.as_slice() else {
            let error = Error::internal("Mistral OCR reads one picture at a time");
            return Err(FailedTry::without_retry(error));
        };
        let body = OcrRequest {
            model: &self.model,
            document: PictureDocument { image_url: data_url(&picture.image) },
            include_image_base64: false,
            include_blocks: false,
        };
        match self.exchange.post_json(&body, false, tries).await? {
            ChatResponse::No(call) => {
                let sent = self.exchange.options().for_call(prompt);
                Err(self.exchange.refused_try(call, sent, tries))
            }
            ChatResponse::Accepted(response) => {
                self.exchange.read_whole_reply(response, parse_reply, "page of text", tries).await
            }
        }
    }
}

#[async_trait]
impl Llm for MistralOcrClient {
    fn provider(&self) -> &'static str {
        "mistral"
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn ping(&self) -> Result<()> {
        self.exchange.check_server().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        call_with_retries(self, prompt).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_one_page_and_any_other_number_of_pages_is_no_reading() {
        let page = r#"{"index":0,"markdown":"Total 9,50","images":[],"dimensions":null}"#;
        let body = |pages: &str| {
            format!(r#"{{"pages":[{pages}],"model":"m","usage_info":{{"pages_processed":1}}}}"#)
        };
        let reply = parse_reply(body(page).as_bytes(), "asked").unwrap();
        assert_eq!((reply.text.as_str(), reply.model.as_str()), ("Total 9,50", "m"));
        for pages in [String::new(), format!("{page},{page}"), r#"{"index":0}"#.to_owned()] {
            assert!(parse_reply(body(&pages).as_bytes(), "asked").is_err(), "{pages}");
        }
    }
}
