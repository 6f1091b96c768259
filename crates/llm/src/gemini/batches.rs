//! Gemini's batches: an uploaded file of questions, a batch over it, a file of answers.
//!
//! Contract: `PyPI`'s google-genai 3.4, held by `scripts/contracts.sh`. A batch carries our name as
//! its display name, by which a list of batches shows whether a submission arrived. Files expire by
//! themselves after two days.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{connect_transport, has_thinking_budget, model_path, wire};
use crate::batch::shared::{
    BatchListPage, PAGE, PagedBatchList, REQUEST_TIMEOUT, UPLOAD_TIMEOUT, ignore_missing,
    join_lines, search_pages, settle_line,
};
use crate::batch::{
    BatchApi, BatchProgress, BatchQuestion, BatchResults, BatchSubmission, BatchedResult,
    FoundBatch, SoughtBatch, SubmissionFence, plain_word,
};
use crate::exchange::{ChatTransport, VendorRequest};
use crate::form::ReplyForms;
use crate::refusal::ApiErrorBody;
use crate::{FinishReason, ModelReply, Prompt};
use docmill_core::config::{LlmConfig, LlmProvider};
use docmill_core::fault::{Error, Result};

/// The header with the address of an upload.
const UPLOAD_URL: &str = "x-goog-upload-url";
/// Longest the answers of a batch may be on their way.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(240);

/// Batches of a model of Google's.
pub struct GeminiBatches {
    exchange: ChatTransport,
    place: String,
    model: String,
    forms: ReplyForms,
}

impl GeminiBatches {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let exchange = connect_transport(config)?;
        Ok(Self {
            place: exchange.place(),
            exchange,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
        })
    }

    /// Uploads a file of questions, as the vendor's own client does: first its size, then all of it.
    async fn upload_file(&self, name: &str, file: String) -> Result<String> {
        let about = json!({"file": {"displayName": name, "mimeType": "application/jsonl"}});
        let begin = VendorRequest::new(Method::POST, "/files")
            .above_base("/upload")
            .with_header("x-goog-upload-protocol", "resumable")
            .with_header("x-goog-upload-command", "start")
            .with_header("x-goog-upload-header-content-length", &file.len().to_string())
            .with_header("x-goog-upload-header-content-type", "application/jsonl")
            .with_body(about.to_string(), "application/json");
        let begun = self.exchange.call_vendor(begin.within(REQUEST_TIMEOUT)).await?;
        let told = begun.headers().get(UPLOAD_URL).and_then(|url| url.to_str().ok());
        let Some(url) = told.map(str::to_owned) else {
            return Err(Error::transient(
                "an upload was begun, but its address is missing from the answer",
            ));
        };
        let all = VendorRequest::new(Method::POST, &url)
            .with_header("x-goog-upload-command", "upload, finalize")
            .with_header("x-goog-upload-offset", "0")
            .with_body(file, "application/jsonl");
        let uploaded: GeminiUpload =
            self.exchange.ask_vendor_at(all.within(UPLOAD_TIMEOUT)).await?;
        Ok(uploaded.file.name)
    }

    async fn show_batch(&self, handle: &str) -> Result<GeminiOperation> {
        let path = format!("/{handle}");
        self.exchange.ask_vendor(VendorRequest::get(&path).within(REQUEST_TIMEOUT)).await
    }

    async fn remove(&self, name: &str) -> Result<()> {
        let path = format!("/{name}");
        let call = VendorRequest::new(Method::DELETE, &path).within(REQUEST_TIMEOUT);
        self.exchange.call_vendor(call).await.map(drop)
    }
}

#[derive(Deserialize)]
struct GeminiUpload {
    file: GeminiFile,
}

#[derive(Deserialize)]
struct GeminiFile {
    name: String,
}

/// A batch, as the long-running operation that it is.
#[derive(Deserialize)]
struct GeminiOperation {
    name: String,
    #[serde(default)]
    metadata: GeminiBatchState,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    response: Option<GeminiOutput>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiBatchState {
    display_name: String,
    state: String,
    input_config: GeminiInput,
    output: Option<GeminiOutput>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiInput {
    file_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiOutput {
    #[serde(default)]
    responses_file: Option<String>,
}

impl GeminiOperation {
    fn into_progress(self) -> BatchProgress {
        let state = self.metadata.state.as_str();
        let word = state.strip_prefix("BATCH_STATE_").or_else(|| state.strip_prefix("JOB_STATE_"));
        let word = word.unwrap_or(state);
        let over = ["SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"];
        if !self.done && !over.contains(&word) {
            return BatchProgress::Working;
        }
        let reason = plain_word(Some(word), "ended");
        let output = self.response.and_then(|it| it.responses_file);
        let file = output.or_else(|| self.metadata.output.and_then(|it| it.responses_file));
        BatchProgress::Ended { files: file.into_iter().collect(), reason }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBatchList {
    #[serde(default)]
    operations: Vec<GeminiOperation>,
    #[serde(default)]
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct GeminiResultLine {
    key: String,
    #[serde(default)]
    response: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Reads a line of a file of answers.
fn parse_result(line: &[u8], model: &str) -> Option<BatchedResult> {
    let line: GeminiResultLine = serde_json::from_slice(line).ok()?;
    let reply = match (&line.response, &line.error) {
        (Some(response), _) => {
            let body = serde_json::to_vec(response).ok()?;
            wire::parse_reply(&body, model).ok()
        }
        (None, error) => error.as_ref().and_then(|error| refusal_of(error, model)),
    };
    let status = line.error.as_ref().and_then(|error| error.get("status")?.as_str());
    let code = line.error.as_ref().and_then(|error| error.get("code")?.as_u64());
    let told = status.map(str::to_owned).or_else(|| code.map(|code| format!("error_{code}")));
    Some(BatchedResult {
        custom_id: line.key,
        outcome: settle_line(reply, told.as_deref(), "errored"),
    })
}

/// The refusal in place of a reply: the question did not fit.
fn refusal_of(error: &Value, model: &str) -> Option<ModelReply> {
    let refusal = ApiErrorBody::parse(&serde_json::to_vec(&json!({"error": error})).ok()?);
    let is_too_long = refusal.is_prompt_too_long(reqwest::StatusCode::BAD_REQUEST);
    is_too_long.then(|| ModelReply::without_text(FinishReason::TooLong, model))
}

#[async_trait]
impl PagedBatchList for GeminiBatches {
    async fn read_page(
        &self,
        sought: SoughtBatch<'_>,
        after: Option<&str>,
    ) -> Result<BatchListPage> {
        let mut call = VendorRequest::get("/batches").with_query("pageSize", &PAGE.to_string());
        if let Some(token) = after {
            call = call.with_query("pageToken", token);
        }
        let list: GeminiBatchList = self.exchange.ask_vendor(call.within(REQUEST_TIMEOUT)).await?;
        let mut batches = list.operations.into_iter();
        let found = batches.find(|batch| batch.metadata.display_name == sought.name);
        Ok(BatchListPage {
            found: found.map(|batch| batch.name),
            is_undecided: false,
            // In which order they are listed is not said: all of them are examined.
            next: list.next_page_token.filter(|token| !token.is_empty()),
        })
    }
}

#[async_trait]
impl BatchApi for GeminiBatches {
    fn provider(&self) -> &'static str {
        "gemini"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn encode_prompt(&self, prompt: &Prompt) -> Result<String> {
        let options = wire::GeminiOptions {
            form: self.forms.of_prompt(prompt),
            has_budget: has_thinking_budget(&self.model),
            call: self.exchange.options().for_batch(prompt),
        };
        self.exchange.encode_request(&wire::build_request(prompt, options))
    }

    async fn upload(&self, name: &str, questions: &[BatchQuestion]) -> Result<Option<String>> {
        let file = join_lines(questions, |BatchQuestion { custom_id, body }| {
            format!("{{\"key\":\"{custom_id}\",\"request\":{body}}}")
        });
        self.upload_file(name, file).await.map(Some)
    }

    async fn remove_input(&self, file: &str) -> Result<()> {
        ignore_missing(self.remove(file).await)
    }

    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String> {
        let BatchSubmission { name, file, .. } = batch;
        let body = json!({"batch": {"displayName": name, "inputConfig": {"fileName": file}}});
        let path =
            format!("/{}:batchGenerateContent", model_path(LlmProvider::Gemini, &self.model));
        let call = VendorRequest::new(Method::POST, &path);
        let call = call.with_body(body.to_string(), "application/json").within(REQUEST_TIMEOUT);
        fence.pass().await?;
        let made: GeminiOperation = self.exchange.ask_vendor(call).await?;
        Ok(made.name)
    }

    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch> {
        search_pages(self, sought).await
    }

    async fn poll(&self, handle: &str) -> Result<BatchProgress> {
        self.show_batch(handle).await.map(GeminiOperation::into_progress)
    }

    async fn open_results(&self, file: &str) -> Result<BatchResults> {
        let path = format!("/{file}:download");
        let call = VendorRequest::get(&path).with_query("alt", "media").within(DOWNLOAD_TIMEOUT);
        let response = self.exchange.call_vendor(call).await?;
        let what = format!("reading the answers of {file}");
        let model = self.model.clone();
        Ok(BatchResults::new(response, what, move |line| parse_result(line, &model)))
    }

    async fn cancel(&self, handle: &str) -> Result<()> {
        let path = format!("/{handle}:cancel");
        let call = VendorRequest::new(Method::POST, &path).within(REQUEST_TIMEOUT);
        self.exchange.call_vendor(call).await.map(drop)
    }

    /// The file of answers goes with its batch.
    async fn discard(&self, handle: &str) -> Result<()> {
        let batch = self.show_batch(handle).await?;
        if let Some(file) = &batch.metadata.input_config.file_name {
            self.remove(file).await?;
        }
        self.remove(handle).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BatchOutcome;

    #[test]
    fn a_line_of_answers_is_a_reply_a_refusal_or_a_reason() {
        let ok = r#"{"key":"a","response":{"candidates":[{"content":{"parts":[{"text":"{}"}]},
            "finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7}}}"#;
        let long = r#"{"key":"a","error":{"code":400,"status":"INVALID_ARGUMENT","message":
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."}}"#;
        let other = r#"{"key":"a","error":{"code":500,"status":"INTERNAL","message":"secret"}}"#;
        let bare = r#"{"key":"a","error":{"code":13,"message":"secret"}}"#;
        #[rustfmt::skip]
        let table = [
            (ok,    Ok(FinishReason::Complete)),
            (long,  Ok(FinishReason::TooLong)),
            (other, Err("INTERNAL")),
            (bare,  Err("error_13")),
            (r#"{"key":"a"}"#, Err("errored")),
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

    #[test]
    fn a_batch_has_ended_by_its_state_or_its_operation() {
        let ended = |text: &str| {
            let operation: GeminiOperation = serde_json::from_str(text).unwrap();
            match operation.into_progress() {
                BatchProgress::Working => None,
                BatchProgress::Ended { files, reason } => Some((files.join(" "), reason)),
                BatchProgress::TurnedAway { reason } => panic!("turned away: {reason}"),
            }
        };
        let told = |file: &str, reason: &str| Some((file.to_owned(), reason.to_owned()));
        let running = r#"{"name":"batches/a","metadata":{"state":"BATCH_STATE_RUNNING"}}"#;
        assert_eq!(ended(running), None);
        assert_eq!(ended(r#"{"name":"batches/a"}"#), None);
        let by_state = r#"{"name":"batches/a","metadata":{"state":"BATCH_STATE_SUCCEEDED",
            "output":{"responsesFile":"files/b"}}}"#;
        assert_eq!(ended(by_state), told("files/b", "SUCCEEDED"));
        let by_response = r#"{"name":"batches/a","metadata":{"state":"JOB_STATE_SUCCEEDED"},
            "done":true,"response":{"responsesFile":"files/c"}}"#;
        assert_eq!(ended(by_response), told("files/c", "SUCCEEDED"));
        let expired = r#"{"name":"batches/a","metadata":{"state":"BATCH_STATE_EXPIRED"}}"#;
        assert_eq!(ended(expired), told("", "EXPIRED"));
    }
}
