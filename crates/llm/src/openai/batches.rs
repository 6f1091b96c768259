//! OpenAI's batches, and those of Azure OpenAI: a file of questions, a batch over it, a file of answers and one of errors.
//!
//! Contract: `openai/openai-openapi` 2.3.0, held by `scripts/contracts.sh`. A batch carries our name
//! in its metadata, so that a list of batches says whether a submission arrived. The file of
//! questions expires by itself if nothing becomes of it.

use async_trait::async_trait;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::servers::{BatchProfile, ServerProfile};
use super::{connect_transport, wire};
use crate::batch::shared::{
    BatchListPage, CLOCK_SKEW, PAGE, PagedBatchList, REQUEST_TIMEOUT, UPLOAD_TIMEOUT,
    ignore_missing, join_lines, search_pages, settle_line,
};
use crate::batch::{
    BatchApi, BatchProgress, BatchQuestion, BatchResults, BatchSubmission, BatchedResult,
    FoundBatch, SoughtBatch, SubmissionFence, plain_word,
};
use crate::exchange::{ChatTransport, VendorRequest};
use crate::form::ReplyForms;
use crate::refusal::ApiErrorBody;
use crate::{FinishReason, ModelReply, Prompt};
use docmill_core::config::{LlmConfig, PromptCache};
use docmill_core::fault::Result;

/// Our name of a batch, in its metadata.
const NAMED: &str = "docmill_batch";
/// The code of a batch that fails because its model's limit of enqueued tokens is reached
/// (OpenAI's and Microsoft's guides to batches; openai-python issue 2084).
const QUEUE_IS_FULL: &str = "token_limit_exceeded";
/// Between two parts of an upload; in no question, whose JSON is one line.
const BOUNDARY: &str = "docmill-3f1c8a52b7e94d06";

/// Batches of a model on OpenAI's own service or on Azure.
pub struct OpenAiBatches {
    exchange: ChatTransport,
    place: String,
    model: String,
    /// The model that a question of a batch names.
    asked: String,
    forms: ReplyForms,
    cache: PromptCache,
    server: &'static ServerProfile,
}

impl OpenAiBatches {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let server = ServerProfile::from_config(config.server);
        let exchange = connect_transport(config, "/batches")?;
        let own = server.batches.own_deployment;
        let asked = if own { &config.batch.azure_deployment } else { &config.model };
        Ok(Self {
            place: exchange.place(),
            exchange,
            model: config.model.clone(),
            asked: asked.clone(),
            forms: ReplyForms::new(config),
            cache: config.prompt_cache,
            server,
        })
    }

    async fn show_batch(&self, handle: &str) -> Result<OpenAiBatch> {
        let path = format!("/batches/{handle}");
        self.exchange.ask_vendor(VendorRequest::get(&path).within(REQUEST_TIMEOUT)).await
    }
}

#[derive(Deserialize)]
struct OpenAiFile {
    id: String,
}

#[derive(Deserialize)]
struct OpenAiBatch {
    id: String,
    status: String,
    #[serde(default)]
    created_at: i64,
    #[serde(default)]
    input_file_id: Option<String>,
    #[serde(default)]
    output_file_id: Option<String>,
    #[serde(default)]
    error_file_id: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    errors: Option<Value>,
}

impl OpenAiBatch {
    fn is_named(&self, name: &str) -> bool {
        let metadata = self.metadata.as_ref().and_then(|all| all.get(NAMED)?.as_str());
        metadata == Some(name)
    }

    fn into_progress(self) -> BatchProgress {
        match self.status.as_str() {
            "completed" | "failed" | "expired" | "cancelled" => {
                let code =
                    self.errors.as_ref().and_then(|all| all.pointer("/data/0/code")?.as_str());
                let reason = plain_word(code, &plain_word(Some(&self.status), "ended"));
                if self.status == "failed" && code == Some(QUEUE_IS_FULL) {
                    return BatchProgress::TurnedAway { reason };
                }
                let files = [self.output_file_id, self.error_file_id];
                BatchProgress::Ended { files: files.into_iter().flatten().collect(), reason }
            }
            _ => BatchProgress::Working,
        }
    }
}

#[derive(Deserialize)]
struct OpenAiBatchList {
    data: Vec<OpenAiBatch>,
    #[serde(default)]
    has_more: bool,
}

/// The form of an upload: what it is for, when it expires, and the file.
fn multipart_body(name: &str, questions: &[BatchQuestion], at: &BatchProfile) -> Vec<u8> {
    let (mut body, endpoint) = (String::new(), at.endpoint);
    let seconds = at.file_seconds.to_string();
    for (field, value) in [
        ("purpose", "batch"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", &seconds),
    ] {
        body.push_str(&format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"
        ));
    }
    body.push_str(&format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}.jsonl\"\r\n\
         Content-Type: application/jsonl\r\n\r\n"
    ));
    body.push_str(&join_lines(questions, |BatchQuestion { custom_id, body }| {
        format!(
            "{{\"custom_id\":\"{custom_id}\",\"method\":\"POST\",\"url\":\"{endpoint}\",\
             \"body\":{body}}}"
        )
    }));
    body.push_str(&format!("\r\n--{BOUNDARY}--\r\n"));
    body.into_bytes()
}

#[derive(Deserialize)]
struct OpenAiResultLine {
    custom_id: String,
    #[serde(default)]
    response: Option<OpenAiResultResponse>,
    #[serde(default)]
    error: Option<OpenAiResultError>,
}

#[derive(Deserialize)]
struct OpenAiResultResponse {
    status_code: u16,
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
struct OpenAiResultError {
    #[serde(default)]
    code: Option<String>,
}

/// Reads a line of a file of answers, or of one of errors.
fn parse_result(line: &[u8], model: &str) -> Option<BatchedResult> {
    let line: OpenAiResultLine = serde_json::from_slice(line).ok()?;
    let answered = line.response.as_ref().and_then(|response| answer_of(response, model));
    // Beside an answer that is none an error says nothing.
    let told = line.error.and_then(|error| error.code).filter(|_| line.response.is_none());
    let outcome = settle_line(answered, told.as_deref(), "errored");
    Some(BatchedResult { custom_id: line.custom_id, outcome })
}

/// The reply, or the refusal in its place.
fn answer_of(response: &OpenAiResultResponse, model: &str) -> Option<ModelReply> {
    let body = serde_json::to_vec(&response.body).ok()?;
    let status = reqwest::StatusCode::from_u16(response.status_code).ok()?;
    if status.is_success() {
        return wire::parse_reply(&body, model).ok();
    }
    let refusal = ApiErrorBody::parse(&body);
    if refusal.is_prompt_too_long(status) {
        return Some(ModelReply::without_text(FinishReason::TooLong, model));
    }
    refusal.is_filtered(status).then(|| ModelReply::without_text(FinishReason::Refused, model))
}

#[async_trait]
impl PagedBatchList for OpenAiBatches {
    async fn read_page(
        &self,
        sought: SoughtBatch<'_>,
        after: Option<&str>,
    ) -> Result<BatchListPage> {
        let oldest = (sought.since - CLOCK_SKEW).unix_timestamp();
        let mut call = VendorRequest::get("/batches").with_query("limit", &PAGE.to_string());
        if let Some(after) = after {
            call = call.with_query("after", after);
        }
        let list: OpenAiBatchList = self.exchange.ask_vendor(call.within(REQUEST_TIMEOUT)).await?;
        let found = list.data.iter().find(|batch| batch.is_named(sought.name));
        let last = list.data.last().filter(|last| list.has_more && last.created_at >= oldest);
        Ok(BatchListPage {
            found: found.map(|batch| batch.id.clone()),
            is_undecided: false,
            next: last.map(|last| last.id.clone()),
        })
    }
}

#[async_trait]
impl BatchApi for OpenAiBatches {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn encode_prompt(&self, prompt: &Prompt) -> Result<String> {
        let options = wire::OpenAiOptions {
            stream: false,
            form: self.forms.of_prompt(prompt),
            cache: self.cache,
            effort: self.server.effort,
            call: self.exchange.options().for_batch(prompt),
        };
        self.exchange.encode_request(&wire::build_request(&self.asked, prompt, options))
    }

    async fn upload(&self, name: &str, questions: &[BatchQuestion]) -> Result<Option<String>> {
        let body = multipart_body(name, questions, self.server.batches);
        let form = format!("multipart/form-data; boundary={BOUNDARY}");
        let call = VendorRequest::new(Method::POST, "/files").with_body(body, &form);
        let file: OpenAiFile = self.exchange.ask_vendor(call.within(UPLOAD_TIMEOUT)).await?;
        Ok(Some(file.id))
    }

    async fn remove_input(&self, file: &str) -> Result<()> {
        let path = format!("/files/{file}");
        let call = VendorRequest::new(Method::DELETE, &path).within(REQUEST_TIMEOUT);
        ignore_missing(self.exchange.call_vendor(call).await.map(drop))
    }

    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String> {
        let body = json!({
            "input_file_id": batch.file,
            "endpoint": self.server.batches.endpoint,
            "completion_window": "24h",
            "metadata": {NAMED: batch.name},
        });
        let call = VendorRequest::new(Method::POST, "/batches");
        let call = call.with_body(body.to_string(), "application/json").within(REQUEST_TIMEOUT);
        fence.pass().await?;
        let made: OpenAiBatch = self.exchange.ask_vendor(call).await?;
        Ok(made.id)
    }

    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch> {
        search_pages(self, sought).await
    }

    async fn poll(&self, handle: &str) -> Result<BatchProgress> {
        self.show_batch(handle).await.map(OpenAiBatch::into_progress)
    }

    async fn open_results(&self, file: &str) -> Result<BatchResults> {
        let path = format!("/files/{file}/content");
        let response = self.exchange.call_vendor(VendorRequest::get(&path)).await?;
        let what = format!("reading the answers of {file}");
        let model = self.model.clone();
        Ok(BatchResults::new(response, what, move |line| parse_result(line, &model)))
    }

    async fn cancel(&self, handle: &str) -> Result<()> {
        let path = format!("/batches/{handle}/cancel");
        let call = VendorRequest::new(Method::POST, &path).within(REQUEST_TIMEOUT);
        self.exchange.call_vendor(call).await.map(drop)
    }

    async fn discard(&self, handle: &str) -> Result<()> {
        let batch = self.show_batch(handle).await?;
        let files = [batch.input_file_id, batch.output_file_id, batch.error_file_id];
        for file in files.into_iter().flatten() {
            self.remove_input(&file).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BatchOutcome;

    #[test]
    fn a_batch_is_turned_away_only_where_it_failed_for_the_tokens_that_wait() {
        #[rustfmt::skip]
        let table = [
            ("failed",      "token_limit_exceeded", "turned away"),
            ("failed",      "invalid_json_line",    "ended"),
            ("completed",   "token_limit_exceeded", "ended"),
            ("in_progress", "token_limit_exceeded", "working"),
        ];
        for (status, code, expected) in table {
            let batch = json!({"id": "b", "status": status, "errors": {"data": [{"code": code}]}});
            let batch: OpenAiBatch = serde_json::from_value(batch).unwrap();
            let progress = match batch.into_progress() {
                BatchProgress::Working => "working",
                BatchProgress::Ended { .. } => "ended",
                BatchProgress::TurnedAway { .. } => "turned away",
            };
            assert_eq!(progress, expected, "{status} {code}");
        }
    }

    #[test]
    fn a_line_of_answers_is_a_reply_a_refusal_or_a_reason() {
        let ok = r#"{"custom_id":"a","response":{"status_code":200,"body":{"model":"m-1",
            "choices":[{"finish_reason":"stop","message":{"content":"{}"}}],
            "usage":{"prompt_tokens":7,"completion_tokens":3}}},"error":null}"#;
        let long = r#"{"custom_id":"a","response":{"status_code":400,"body":
            {"error":{"code":"context_length_exceeded","message":"secret"}}}}"#;
        let other = r#"{"custom_id":"a","response":{"status_code":500,"body":{"error":{}}}}"#;
        let expired = r#"{"custom_id":"a","response":null,
            "error":{"code":"batch_expired","message":"secret"}}"#;
        #[rustfmt::skip]
        let table = [
            (ok,      Ok(FinishReason::Complete)),
            (long,    Ok(FinishReason::TooLong)),
            (other,   Err("errored")),
            (expired, Err("batch_expired")),
        ];
        for (line, expected) in table {
            let result = parse_result(line.as_bytes(), "asked").unwrap();
            let told = match &result.outcome {
                BatchOutcome::Answered(reply) => Ok(reply.stop),
                BatchOutcome::Unanswered(word) => Err(word.as_str()),
            };
            assert_eq!((result.custom_id.as_str(), told), ("a", expected));
        }
        assert!(parse_result(b"<html>", "asked").is_none());
    }
}
