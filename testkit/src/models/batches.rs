//! The vendors' batches: OpenAI's files and batches, Anthropic's message batches; Bedrock's jobs
//! and Gemini's batches are in submodules. When its batch ends, each request is checked by the
//! vendor's rules and answered by the script like a single call. A prompt answered both in a batch
//! and by itself is therefore recorded twice.
#![expect(clippy::indexing_slicing, reason = "a key of a JSON value: what is not there is null")]

mod bedrock;
mod gemini;

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::State;
use super::script::Request;
use super::vendor::{Said, Vendor};

/// The fate of batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPlan {
    /// They do not end by themselves.
    pub held: bool,
    /// Submissions that arrive but are not answered.
    pub lost: usize,
    /// Submissions refused with 500 that do not arrive.
    pub refused: usize,
    /// Questions expire: those whose number in the batch is in here.
    pub expired: Vec<usize>,
    /// The whole batch fails or expires: nothing is answered.
    pub fails: bool,
    /// Batches that fail because too many tokens wait at the vendor (OpenAI).
    pub turned_away: usize,
    /// A cancelled batch answers everything all the same.
    pub deaf: bool,
    /// Downloads of answers that break off after the first line.
    pub broken: usize,
}

/// A received batch.
#[derive(Debug, Clone)]
pub struct HeldBatch {
    /// The handle.
    pub id: String,
    /// The name in its metadata; empty at Anthropic.
    pub name: String,
    /// Ids of its questions.
    pub custom_ids: Vec<String>,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether it has failed as a whole.
    failed: bool,
    /// Whether it was turned away because too many tokens wait.
    pub turned_away: bool,
    input: String,
    requests: Vec<(String, Value)>,
    headers: HashMap<String, String>,
    lines: Vec<Value>,
}

/// Files and batches.
#[derive(Debug, Default)]
pub(crate) struct BatchShelf {
    pub(crate) plan: BatchPlan,
    pub(crate) batches: Vec<HeldBatch>,
    pub(crate) files: Vec<(String, String)>,
}

/// The answer to a request about batches.
pub(crate) enum BatchAnswer {
    /// JSON with this status.
    Json(u16, Value),
    /// JSON with headers.
    Told(Vec<(&'static str, String)>, Value),
    /// A file; `true`: it breaks off.
    Lines(String, bool),
    /// None: the connection is closed.
    Nothing,
}

/// The parts of a request.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) headers: &'a HashMap<String, String>,
    pub(crate) body: &'a [u8],
}

/// The rules for files of questions, by whose batches they are.
#[derive(Clone)]
struct FileRules {
    endpoint: &'static str,
    /// After how many seconds a file may expire.
    seconds: std::ops::RangeInclusive<u64>,
}

impl FileRules {
    /// An hour to 30 days (openai-openapi, `FileExpirationAfter`).
    const OPENAI: Self = Self { endpoint: "/v1/chat/completions", seconds: 3_600..=2_592_000 };
    /// 14 to 30 days (Microsoft's "Getting started with global batch").
    const AZURE: Self = Self { endpoint: "/chat/completions", seconds: 1_209_600..=2_592_000 };
}

/// A batch as it is handed in.
pub(crate) struct NewBatch {
    name: String,
    /// The file of its questions.
    input: String,
    requests: Vec<(String, Value)>,
}

/// The creation time of every batch: now, in the vendors' precision.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

impl State {
    pub(crate) fn shelf(&self) -> MutexGuard<'_, BatchShelf> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what is about batches or files; `None`: it is about something else.
    pub(crate) fn answer_batches(
        &self,
        vendor: Vendor,
        (method, whole_path): (&str, &str),
        sent: Sent<'_>,
    ) -> Option<BatchAnswer> {
        let path = whole_path.split('?').next().unwrap_or_default();
        let (path, rules) = match path.strip_prefix("/openai") {
            Some(path) => (path, FileRules::AZURE),
            None => (path, FileRules::OPENAI),
        };
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        match vendor {
            Vendor::Openai => self.answer_openai((method, &parts), sent, rules),
            Vendor::Anthropic => self.answer_anthropic(method, &parts, sent),
            Vendor::Bedrock => self.answer_bedrock((method, whole_path), sent),
            Vendor::Gemini => self.answer_gemini((method, whole_path), sent),
            Vendor::VertexGemini | Vendor::VertexClaude => None,
        }
    }

    fn answer_openai(
        &self,
        asked: (&str, &[&str]),
        sent: Sent<'_>,
        rules: FileRules,
    ) -> Option<BatchAnswer> {
        let answer = match asked {
            ("POST", ["files"]) => self.upload(&String::from_utf8_lossy(sent.body), rules),
            ("DELETE", ["files", id]) => {
                self.shelf().files.retain(|(known, _)| known != id);
                BatchAnswer::Json(200, json!({"id": id, "object": "file", "deleted": true}))
            }
            ("GET", ["files", id, "content"]) => self.download(id),
            ("POST", ["batches"]) => self.create_openai(sent, rules),
            ("GET", ["batches"]) => {
                self.end_all_due(Vendor::Openai);
                let data: Vec<Value> =
                    self.shelf().batches.iter().rev().map(openai_batch).collect();
                BatchAnswer::Json(200, json!({"object": "list", "data": data, "has_more": false}))
            }
            ("GET", ["batches", id]) => self.show(Vendor::Openai, id),
            ("POST", ["batches", id, "cancel"]) => self.cancel(Vendor::Openai, id),
            _ => return None,
        };
        Some(answer)
    }

    fn answer_anthropic(
        &self,
        method: &str,
        parts: &[&str],
        sent: Sent<'_>,
    ) -> Option<BatchAnswer> {
        let answer = match (method, parts) {
            ("POST", ["messages", "batches"]) => self.create_anthropic(sent),
            ("GET", ["messages", "batches"]) => {
                self.end_all_due(Vendor::Anthropic);
                let shelf = self.shelf();
                let data: Vec<Value> = shelf.batches.iter().rev().map(anthropic_batch).collect();
                let first = data.first().map(|batch| batch["id"].clone());
                let last = data.last().map(|batch| batch["id"].clone());
                let list =
                    json!({"data": data, "has_more": false, "first_id": first, "last_id": last});
                BatchAnswer::Json(200, list)
            }
            ("GET", ["messages", "batches", id]) => self.show(Vendor::Anthropic, id),
            ("POST", ["messages", "batches", id, "cancel"]) => self.cancel(Vendor::Anthropic, id),
            ("GET", ["messages", "batches", id, "results"]) => self.download(id),
            ("DELETE", ["messages", "batches", id]) => {
                BatchAnswer::Json(200, json!({"id": id, "type": "message_batch_deleted"}))
            }
            _ => return None,
        };
        Some(answer)
    }

    /// The file of a form, as OpenAI takes it.
    fn upload(&self, form: &str, rules: FileRules) -> BatchAnswer {
        let (Some(purpose), Some(file)) = (form_field(form, "purpose"), form_field(form, "file"))
        else {
            return refused("the form lacks a field");
        };
        if purpose != "batch" || !form.contains(".jsonl\"") {
            return refused("a file of questions has the purpose `batch` and ends in .jsonl");
        }
        let seconds = form_field(form, "expires_after[seconds]");
        let seconds = seconds.and_then(|text| text.parse::<u64>().ok());
        if !seconds.is_some_and(|seconds| rules.seconds.contains(&seconds)) {
            return refused("expires_after is out of range");
        }
        let mut shelf = self.shelf();
        let id = format!("file-{}", uuid::Uuid::new_v4().simple());
        let size = file.len();
        shelf.files.push((id.clone(), file));
        let shown = json!({"id": id, "object": "file", "bytes": size, "created_at": now(),
            "filename": "a.jsonl", "purpose": "batch", "status": "processed"});
        BatchAnswer::Json(200, shown)
    }

    fn create_openai(&self, sent: Sent<'_>, rules: FileRules) -> BatchAnswer {
        let Ok(asked) = serde_json::from_slice::<Value>(sent.body) else {
            return refused("no JSON");
        };
        if text_of(&asked, "completion_window") != "24h"
            || text_of(&asked, "endpoint") != rules.endpoint
        {
            return refused("completion_window or endpoint");
        }
        let file = {
            let shelf = self.shelf();
            let input = text_of(&asked, "input_file_id");
            shelf.files.iter().find(|(id, _)| *id == input).map(|(_, file)| file.clone())
        };
        let Some(file) = file else { return refused("no such file") };
        let mut requests = Vec::new();
        for line in file.lines().filter(|line| !line.is_empty()) {
            let Ok(line) = serde_json::from_str::<Value>(line) else { return refused("a line") };
            if line["method"] != "POST" || line["url"] != rules.endpoint {
                return refused("method or url of a line");
            }
            requests.push((
                line["custom_id"].as_str().unwrap_or_default().to_owned(),
                line["body"].clone(),
            ));
        }
        let name = asked["metadata"]["docmill_batch"].as_str().unwrap_or_default().to_owned();
        let new = NewBatch { name, input: text_of(&asked, "input_file_id"), requests };
        self.create(Vendor::Openai, new, sent.headers)
    }

    fn create_anthropic(&self, sent: Sent<'_>) -> BatchAnswer {
        let Ok(asked) = serde_json::from_slice::<Value>(sent.body) else {
            return refused("no JSON");
        };
        let Some(all) = asked["requests"].as_array() else { return refused("requests") };
        let requests = all
            .iter()
            .map(|it: &Value| {
                (it["custom_id"].as_str().unwrap_or_default().to_owned(), it["params"].clone())
            })
            .collect();
        let new = NewBatch { name: String::new(), input: String::new(), requests };
        self.create(Vendor::Anthropic, new, sent.headers)
    }

    /// The questions of an uploaded file, by the names of the id and the request of a line.
    fn read_lines(
        &self,
        file: &str,
        (id, request): (&str, &str),
    ) -> Result<Vec<(String, Value)>, BatchAnswer> {
        let found = self.shelf().files.iter().find(|(known, _)| known == file).cloned();
        let (_, text) = found.ok_or_else(|| refused("no such file"))?;
        let read = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let known = line.as_object()?.keys().all(|key| key == id || key == request);
            let asked = line[request].as_object().map(|_| line[request].clone())?;
            known.then_some((line[id].as_str()?.to_owned(), asked))
        };
        text.lines().map(|line| read(line).ok_or_else(|| refused("a line"))).collect()
    }

    fn create(
        &self,
        vendor: Vendor,
        new: NewBatch,
        headers: &HashMap<String, String>,
    ) -> BatchAnswer {
        let NewBatch { name, input, requests } = new;
        let custom_ids: Vec<String> = requests.iter().map(|(id, _)| id.clone()).collect();
        let unique: std::collections::HashSet<&String> = custom_ids.iter().collect();
        if requests.is_empty()
            || !custom_ids.iter().all(|id: &String| {
                (1..=64).contains(&id.len())
                    && id.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            })
            || unique.len() != custom_ids.len()
        {
            return refused("custom_id");
        }
        let mut shelf = self.shelf();
        if shelf.plan.refused > 0 {
            shelf.plan.refused -= 1;
            return BatchAnswer::Json(500, json!({"error": {"message": "scripted"}}));
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let batch = HeldBatch {
            id: match vendor {
                Vendor::Bedrock => id.chars().take(12).collect(),
                _ => format!("batch_{id}"),
            },
            name,
            custom_ids,
            cancelled: false,
            ended: false,
            failed: false,
            turned_away: false,
            input,
            requests,
            headers: headers.clone(),
            lines: Vec::new(),
        };
        let shown = match vendor {
            Vendor::Bedrock => bedrock::made_job(&batch),
            _ => shown_batch(vendor, &batch),
        };
        shelf.batches.push(batch);
        if shelf.plan.lost > 0 {
            shelf.plan.lost -= 1;
            return BatchAnswer::Nothing;
        }
        BatchAnswer::Json(200, shown)
    }

    fn show(&self, vendor: Vendor, id: &str) -> BatchAnswer {
        self.end_if_due(vendor, id);
        match self.shelf().batches.iter().find(|batch| batch.id == id) {
            Some(batch) => BatchAnswer::Json(200, shown_batch(vendor, batch)),
            None => BatchAnswer::Json(404, json!({"error": {"message": "no such batch"}})),
        }
    }

    fn cancel(&self, vendor: Vendor, id: &str) -> BatchAnswer {
        if let Some(batch) = self.shelf().batches.iter_mut().find(|batch| batch.id == id) {
            batch.cancelled = true;
        }
        self.show(vendor, id)
    }

    fn end_all_due(&self, vendor: Vendor) {
        let ids: Vec<String> = self.shelf().batches.iter().map(|batch| batch.id.clone()).collect();
        ids.iter().for_each(|id| self.end_if_due(vendor, id));
    }

    /// Answers the questions of a batch that is to end now.
    fn end_if_due(&self, vendor: Vendor, id: &str) {
        let (batch, plan) = {
            let shelf = self.shelf();
            let found = shelf.batches.iter().find(|batch| batch.id == id).cloned();
            let Some(batch) = found else { return };
            (batch, shelf.plan.clone())
        };
        let stopped = batch.cancelled && !plan.deaf;
        if batch.ended || (plan.held && !stopped) {
            return;
        }
        let turned_away = plan.turned_away > 0;
        let nothing = stopped || plan.fails || turned_away;
        let line = |(number, (id, body)): (usize, &(String, Value))| {
            let silent = nothing || plan.expired.contains(&number);
            let answered = (!silent).then(|| self.answer_question(vendor, &batch.headers, body));
            match vendor {
                Vendor::Bedrock => bedrock::bedrock_line(id, body, answered),
                Vendor::Gemini => gemini::gemini_line(id, answered),
                _ => result_line(vendor, id, answered),
            }
        };
        let lines: Vec<Value> = batch.requests.iter().enumerate().map(line).collect();
        let mut shelf = self.shelf();
        if let Some(batch) = shelf.batches.iter_mut().find(|batch| batch.id == id) {
            // Vendors promise no order.
            batch.lines = lines.into_iter().rev().collect();
            batch.ended = true;
            batch.failed = plan.fails;
            batch.turned_away = turned_away;
        }
        shelf.plan.turned_away = shelf.plan.turned_away.saturating_sub(1);
    }

    /// One question, as by itself.
    fn answer_question(
        &self,
        vendor: Vendor,
        headers: &HashMap<String, String>,
        body: &Value,
    ) -> (u16, Value) {
        let number = self.records.arrive(body);
        let rules = self.script.lock().unwrap_or_else(PoisonError::into_inner).rules();
        if let Err((param, wrong)) = vendor.check(headers, body, &rules) {
            self.records.end(number, 400, true);
            let error = json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": wrong, "param": param}});
            return (400, error);
        }
        let request = Request { body: body.clone(), number };
        let answer = self.script.lock().unwrap_or_else(PoisonError::into_inner).next(&request);
        let Some((text, end)) = answer.reply(&request) else {
            self.records.end(number, 500, true);
            return (500, json!({"type": "error", "error": {"type": "api_error", "message": "x"}}));
        };
        let tokens = self.records.tokens(body, &text);
        let said = Said { number, tokens, text, end };
        self.records.end(number, 200, true);
        (200, vendor.reply(body, &said))
    }

    fn download(&self, id: &str) -> BatchAnswer {
        let mut shelf = self.shelf();
        let of = id.trim_start_matches("file-out-");
        let found = shelf.batches.iter().find(|batch| batch.id == of && batch.ended);
        let Some(batch) = found else {
            return BatchAnswer::Json(404, json!({"error": {"message": "no such file"}}));
        };
        let lines: String = batch.lines.iter().map(|line| format!("{line}\n")).collect();
        let breaks = shelf.plan.broken > 0;
        shelf.plan.broken = shelf.plan.broken.saturating_sub(1);
        BatchAnswer::Lines(lines, breaks)
    }
}

fn text_of(asked: &Value, name: &str) -> String {
    asked[name].as_str().unwrap_or_default().to_owned()
}

fn form_field(form: &str, name: &str) -> Option<String> {
    let (_, rest) = form.split_once(&format!("name=\"{name}\""))?;
    let (_, value) = rest.split_once("\r\n\r\n")?;
    value.split_once("\r\n--").map(|(value, _)| value.to_owned())
}

/// A line of a file of answers.
fn result_line(vendor: Vendor, id: &str, answered: Option<(u16, Value)>) -> Value {
    match (vendor, answered) {
        (Vendor::Anthropic, Some((200, message))) => {
            json!({"custom_id": id, "result": {"type": "succeeded", "message": message}})
        }
        (Vendor::Anthropic, Some((_, error))) => json!({"custom_id": id,
                "result": {"type": "errored", "error": error}}),
        (Vendor::Anthropic, None) => json!({"custom_id": id, "result": {"type": "expired"}}),
        (_, Some((status, answer))) => json!({"id": format!("batch_req_{id}"), "custom_id": id,
                "response": {"status_code": status, "request_id": "r", "body": answer},
                "error": null}),
        (_, None) => json!({"id": format!("batch_req_{id}"), "custom_id": id, "response": null,
                "error": {"code": "batch_expired", "message": "scripted"}}),
    }
}

fn refused(why: &str) -> BatchAnswer {
    let error = json!({"type": "error",
        "error": {"type": "invalid_request_error", "message": why, "code": "invalid"}});
    BatchAnswer::Json(400, error)
}

fn shown_batch(vendor: Vendor, batch: &HeldBatch) -> Value {
    match vendor {
        Vendor::Anthropic => anthropic_batch(batch),
        Vendor::Bedrock => bedrock::bedrock_job(batch),
        Vendor::Gemini => gemini::gemini_batch(batch),
        _ => openai_batch(batch),
    }
}

fn openai_batch(batch: &HeldBatch) -> Value {
    if batch.turned_away {
        return turned_away_batch(batch);
    }
    let status = match (batch.ended, batch.cancelled) {
        (true, true) => "cancelled",
        (true, false) => "completed",
        (false, true) => "cancelling",
        (false, false) => "in_progress",
    };
    json!({
        "id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions", "errors": null,
        "input_file_id": batch.input, "completion_window": "24h", "status": status,
        "output_file_id": batch.ended.then(|| format!("file-out-{}", batch.id)),
        "error_file_id": null, "created_at": now(), "metadata": {"docmill_batch": batch.name},
        "request_counts": {"total": batch.requests.len(), "completed": 0, "failed": 0},
    })
}

/// A batch that failed its validation: it has no files of answers.
fn turned_away_batch(batch: &HeldBatch) -> Value {
    let error = json!({"code": "token_limit_exceeded", "line": null, "param": null,
        "message": "Enqueued token limit reached. Please try again once some batches are done."});
    json!({
        "id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions",
        "errors": {"object": "list", "data": [error]},
        "input_file_id": batch.input, "completion_window": "24h", "status": "failed",
        "output_file_id": null, "error_file_id": null, "created_at": now(), "failed_at": now(),
        "metadata": {"docmill_batch": batch.name},
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
    })
}

fn anthropic_batch(batch: &HeldBatch) -> Value {
    let status = match (batch.ended, batch.cancelled) {
        (true, _) => "ended",
        (false, true) => "canceling",
        (false, false) => "in_progress",
    };
    let count = batch.requests.len();
    let (processing, succeeded) = if batch.ended { (0, count) } else { (count, 0) };
    let url = format!("https://api.anthropic.com/v1/messages/batches/{}/results", batch.id);
    json!({
        "id": batch.id, "type": "message_batch", "processing_status": status,
        "request_counts": {"processing": processing, "succeeded": succeeded, "errored": 0,
            "canceled": 0, "expired": 0},
        "created_at": "2099-01-01T00:00:00Z", "expires_at": "2099-01-02T00:00:00Z",
        "ended_at": null, "cancel_initiated_at": null, "archived_at": null,
        "results_url": batch.ended.then_some(url),
    })
}
