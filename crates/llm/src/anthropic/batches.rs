//! Anthropic's message batches.
//!
//! Contract: the types of `PyPI`'s anthropic 2.11, held by `scripts/contracts.sh`. A batch carries
//! no name and no metadata, so one whose submission was not answered is identified by its time, its
//! number of questions and, once it has ended, by the ids of its answers, which begin with our
//! name. Until then a search is undecided. Its questions come with it, so that nothing at the
//! vendor's can be reused by a try that was given up: a batch made by a worker that was suspended
//! between the fence and its request is cancelled as soon as the worker resumes.

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;

use super::host::{AnthropicHost, VERSION};
use super::wire;
use crate::Prompt;
use crate::batch::shared::{
    BatchListPage, CLOCK_SKEW, PAGE, PagedBatchList, REQUEST_TIMEOUT, UPLOAD_TIMEOUT, search_pages,
    settle_line,
};
use crate::batch::{
    BatchApi, BatchProgress, BatchQuestion, BatchResults, BatchSubmission, BatchedResult,
    FoundBatch, SoughtBatch, SubmissionFence, plain_word,
};
use crate::exchange::{AuthHeaderFn, ChatTransport, VendorRequest, secret_header};
use crate::form::ReplyForms;
use crate::options::OptionalField;
use docmill_core::config::{LlmConfig, PromptCache};
use docmill_core::fault::Result;

/// Batches of a model of Anthropic's.
pub struct AnthropicBatches {
    exchange: ChatTransport,
    place: String,
    model: String,
    forms: ReplyForms,
    cache: PromptCache,
}

impl AnthropicBatches {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        let key: AuthHeaderFn = Box::new(|key| secret_header("x-api-key", key).map(Some));
        let exchange = ChatTransport::new(config, "/messages/batches", headers, key)?;
        let exchange = exchange.without_fields(&OptionalField::OPENAI_ONLY);
        Ok(Self {
            place: exchange.place(),
            exchange,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            cache: config.prompt_cache,
        })
    }

    /// Whether the answers of a batch that has ended are those to our questions.
    async fn is_ours(&self, handle: &str, name: &str) -> Result<bool> {
        let mut results = self.open_results(handle).await?;
        let first = results.next().await?;
        Ok(first.is_some_and(|result| result.custom_id.starts_with(name)))
    }
}

#[derive(Deserialize)]
struct AnthropicBatch {
    id: String,
    processing_status: String,
    #[serde(default)]
    created_at: String,
    #[serde(default)]
    results_url: Option<String>,
    #[serde(default)]
    request_counts: AnthropicRequestCounts,
}

impl AnthropicBatch {
    fn has_ended(&self) -> bool {
        self.processing_status == "ended"
    }

    fn made_at(&self) -> Option<OffsetDateTime> {
        let form = &time::format_description::well_known::Rfc3339;
        OffsetDateTime::parse(&self.created_at, form).ok()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicRequestCounts {
    processing: u64,
    succeeded: u64,
    errored: u64,
    canceled: u64,
    expired: u64,
}

impl AnthropicRequestCounts {
    fn total(&self) -> u64 {
        self.processing + self.succeeded + self.errored + self.canceled + self.expired
    }
}

#[derive(Deserialize)]
struct AnthropicBatchList {
    data: Vec<AnthropicBatch>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
struct AnthropicResultLine {
    custom_id: String,
    result: AnthropicResult,
}

#[derive(Deserialize)]
struct AnthropicResult {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    error: Value,
}

/// Reads a line of a file of answers.
fn parse_result(line: &[u8], model: &str) -> Option<BatchedResult> {
    let AnthropicResultLine { custom_id, result } = serde_json::from_slice(line).ok()?;
    let answered = (result.kind == "succeeded")
        .then(|| {
            let body = serde_json::to_vec(&result.message).ok()?;
            wire::parse_reply(&body, model).ok()
        })
        .flatten();
    let told = result.error.pointer("/error/type").and_then(Value::as_str);
    let outcome = settle_line(answered, told, &plain_word(Some(&result.kind), "errored"));
    Some(BatchedResult { custom_id, outcome })
}

#[async_trait]
impl PagedBatchList for AnthropicBatches {
    async fn read_page(
        &self,
        sought: SoughtBatch<'_>,
        after: Option<&str>,
    ) -> Result<BatchListPage> {
        let oldest = sought.since - CLOCK_SKEW;
        let path = "/messages/batches";
        let mut call = VendorRequest::get(path).with_query("limit", &PAGE.to_string());
        if let Some(after) = after {
            call = call.with_query("after_id", after);
        }
        let list: AnthropicBatchList =
            self.exchange.ask_vendor(call.within(REQUEST_TIMEOUT)).await?;
        let is_recent = |batch: &&AnthropicBatch| batch.made_at().is_none_or(|at| at >= oldest);
        let mut page = BatchListPage::default();
        for batch in list.data.iter().filter(is_recent) {
            let counts = batch.request_counts.total() == sought.requests;
            if !counts || sought.others.contains(&batch.id) {
                continue;
            }
            if !batch.has_ended() {
                page.is_undecided = true;
            } else if batch.results_url.is_some() && self.is_ours(&batch.id, sought.name).await? {
                page.found = Some(batch.id.clone());
                return Ok(page);
            }
        }
        let last = list.data.last().filter(|last| list.has_more && is_recent(last));
        page.next = last.map(|last| last.id.clone());
        Ok(page)
    }
}

#[async_trait]
impl BatchApi for AnthropicBatches {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn encode_prompt(&self, prompt: &Prompt) -> Result<String> {
        let form = self.forms.of_prompt(prompt);
        let call = self.exchange.options().for_batch(prompt);
        let (host, cache) = (AnthropicHost::Own, self.cache);
        let options = wire::AnthropicOptions { host, form, cache, stream: false, call };
        self.exchange.encode_request(&wire::build_request(&self.model, prompt, options))
    }

    async fn upload(&self, _name: &str, _questions: &[BatchQuestion]) -> Result<Option<String>> {
        Ok(None)
    }

    async fn remove_input(&self, _file: &str) -> Result<()> {
        Ok(())
    }

    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String> {
        let mut body = String::from("{\"requests\":[");
        for (number, question) in batch.questions.iter().enumerate() {
            if number > 0 {
                body.push(',');
            }
            let BatchQuestion { custom_id, body: params } = question;
            body.push_str(&format!("{{\"custom_id\":\"{custom_id}\",\"params\":{params}}}"));
        }
        body.push_str("]}");
        let call = VendorRequest::new(Method::POST, "/messages/batches");
        let call = call.with_body(body, "application/json").within(UPLOAD_TIMEOUT);
        fence.pass().await?;
        let made: AnthropicBatch = self.exchange.ask_vendor(call).await?;
        Ok(made.id)
    }

    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch> {
        search_pages(self, sought).await
    }

    async fn poll(&self, handle: &str) -> Result<BatchProgress> {
        let path = format!("/messages/batches/{handle}");
        let call = VendorRequest::get(&path).within(REQUEST_TIMEOUT);
        let batch: AnthropicBatch = self.exchange.ask_vendor(call).await?;
        if !batch.has_ended() {
            return Ok(BatchProgress::Working);
        }
        let files = batch.results_url.map(|_| batch.id).into_iter().collect();
        Ok(BatchProgress::Ended { files, reason: "ended".to_owned() })
    }

    async fn open_results(&self, file: &str) -> Result<BatchResults> {
        let path = format!("/messages/batches/{file}/results");
        let response = self.exchange.call_vendor(VendorRequest::get(&path)).await?;
        let what = format!("reading the answers of {file}");
        let model = self.model.clone();
        Ok(BatchResults::new(response, what, move |line| parse_result(line, &model)))
    }

    async fn cancel(&self, handle: &str) -> Result<()> {
        let path = format!("/messages/batches/{handle}/cancel");
        let call = VendorRequest::new(Method::POST, &path).within(REQUEST_TIMEOUT);
        self.exchange.call_vendor(call).await.map(drop)
    }

    async fn discard(&self, handle: &str) -> Result<()> {
        let path = format!("/messages/batches/{handle}");
        let call = VendorRequest::new(Method::DELETE, &path).within(REQUEST_TIMEOUT);
        self.exchange.call_vendor(call).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FinishReason;
    use crate::batch::BatchOutcome;

    #[test]
    fn a_line_of_answers_is_a_reply_or_a_reason() {
        let ok = r#"{"custom_id":"a","result":{"type":"succeeded","message":{"model":"m-1",
            "content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn",
            "usage":{"input_tokens":7,"output_tokens":3}}}}"#;
        let errored = r#"{"custom_id":"a","result":{"type":"errored","error":{"type":"error",
            "error":{"type":"invalid_request_error","message":"secret"}}}}"#;
        let expired = r#"{"custom_id":"a","result":{"type":"expired"}}"#;
        #[rustfmt::skip]
        let table = [
            (ok,      Ok(FinishReason::Complete)),
            (errored, Err("invalid_request_error")),
            (expired, Err("expired")),
        ];
        for (line, expected) in table {
            let result = parse_result(line.as_bytes(), "asked").unwrap();
            let told = match &result.outcome {
                BatchOutcome::Answered(reply) => Ok(reply.stop),
                BatchOutcome::Unanswered(word) => Err(word.as_str()),
            };
            assert_eq!((result.custom_id.as_str(), told), ("a", expected));
        }
    }
}
