//! Gemini's files and batches (`PyPI`'s google-genai 3.4): an upload in two steps, a batch over the
//! file, and long-running operations with its state.
#![expect(clippy::indexing_slicing, reason = "a key of a JSON value: what is not there is null")]

use serde_json::{Value, json};

use super::{BatchAnswer, HeldBatch, NewBatch, Sent, State, Vendor, refused};

impl State {
    pub(super) fn answer_gemini(
        &self,
        (method, path): (&str, &str),
        sent: Sent<'_>,
    ) -> Option<BatchAnswer> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path == "/upload/v1beta/files" && method == "POST" {
            return Some(self.take_upload(query, sent));
        }
        let path = path.strip_prefix("/v1beta/")?;
        let answer = match (method, path.split_once('/')) {
            ("GET", None) if path == "batches" => self.list_gemini(),
            ("GET", Some(("batches", id))) => self.show(Vendor::Gemini, id),
            ("POST", Some(("batches", id))) => {
                self.cancel(Vendor::Gemini, id.strip_suffix(":cancel")?);
                BatchAnswer::Json(200, json!({}))
            }
            ("DELETE", Some(("batches", _))) => BatchAnswer::Json(200, json!({})),
            ("GET", Some(("files", id))) => self.download(id.strip_suffix(":download")?),
            ("DELETE", Some(("files", id))) => {
                self.shelf().files.retain(|(known, _)| known != id);
                BatchAnswer::Json(200, json!({}))
            }
            ("POST", Some(("models", call))) if call.ends_with(":batchGenerateContent") => {
                self.create_gemini(sent)
            }
            _ => return None,
        };
        Some(answer)
    }

    /// An upload starts without a query; its content comes with the returned one.
    fn take_upload(&self, query: &str, sent: Sent<'_>) -> BatchAnswer {
        if query.is_empty() {
            let announced =
                header_of(&sent, "x-goog-upload-header-content-length").parse::<usize>();
            let (Ok(size), "resumable", "start") = (
                announced,
                header_of(&sent, "x-goog-upload-protocol"),
                header_of(&sent, "x-goog-upload-command"),
            ) else {
                return refused("the headers of an upload");
            };
            let id = uuid::Uuid::new_v4().simple();
            let url = format!(
                "http://{}/upload/v1beta/files?id={id}&size={size}",
                header_of(&sent, "host")
            );
            return BatchAnswer::Told(vec![("x-goog-upload-url", url)], json!({}));
        }
        let size = query.split_once("&size=").and_then(|(_, size)| size.parse().ok());
        let whole = header_of(&sent, "x-goog-upload-command") == "upload, finalize"
            && header_of(&sent, "x-goog-upload-offset") == "0"
            && size == Some(sent.body.len());
        if !whole {
            return refused("an upload that is not what was announced");
        }
        let id = query.trim_start_matches("id=").split('&').next().unwrap_or_default();
        let text = String::from_utf8_lossy(sent.body).into_owned();
        self.shelf().files.push((id.to_owned(), text));
        let file = json!({"name": format!("files/{id}"), "mimeType": "application/jsonl",
            "sizeBytes": sent.body.len().to_string(), "state": "ACTIVE", "source": "UPLOADED"});
        let done = vec![("x-goog-upload-status", "final".to_owned())];
        BatchAnswer::Told(done, json!({"file": file}))
    }

    fn create_gemini(&self, sent: Sent<'_>) -> BatchAnswer {
        let Ok(asked) = serde_json::from_slice::<Value>(sent.body) else {
            return refused("no JSON");
        };
        let input = asked["batch"]["inputConfig"]["fileName"].as_str().unwrap_or_default();
        let input = input.trim_start_matches("files/").to_owned();
        let Some(name) = asked["batch"]["displayName"].as_str() else {
            return refused("displayName");
        };
        let requests = match self.read_lines(&input, ("key", "request")) {
            Ok(requests) => requests,
            Err(wrong) => return wrong,
        };
        let new = NewBatch { name: name.to_owned(), input, requests };
        self.create(Vendor::Gemini, new, sent.headers)
    }

    fn list_gemini(&self) -> BatchAnswer {
        self.end_all_due(Vendor::Gemini);
        let operations: Vec<Value> = self.shelf().batches.iter().map(gemini_batch).collect();
        BatchAnswer::Json(200, json!({"operations": operations}))
    }
}

fn header_of<'a>(sent: &Sent<'a>, name: &str) -> &'a str {
    sent.headers.get(name).map(String::as_str).unwrap_or_default()
}

/// A batch as a long-running operation.
pub(super) fn gemini_batch(batch: &HeldBatch) -> Value {
    let state = match (batch.ended, batch.failed, batch.cancelled) {
        (true, true, _) => "BATCH_STATE_FAILED",
        (true, false, true) => "BATCH_STATE_CANCELLED",
        (true, false, false) => "BATCH_STATE_SUCCEEDED",
        (false, _, _) => "BATCH_STATE_RUNNING",
    };
    let count = batch.requests.len().to_string();
    let mut metadata = json!({
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "model": "models/m", "displayName": batch.name, "state": state,
        "createTime": "2099-01-01T00:00:00Z", "updateTime": "2099-01-01T00:00:00Z",
        "inputConfig": {"fileName": format!("files/{}", batch.input)},
        "batchStats": {"requestCount": count}, "name": format!("batches/{}", batch.id),
    });
    let mut operation = json!({"name": format!("batches/{}", batch.id)});
    if batch.ended && !batch.failed {
        let output = json!({"responsesFile": format!("files/file-out-{}", batch.id)});
        metadata["output"] = output.clone();
        operation["response"] = output;
    }
    operation["metadata"] = metadata;
    operation["done"] = json!(batch.ended);
    operation
}

/// A line of a file of answers.
pub(super) fn gemini_line(id: &str, answered: Option<(u16, Value)>) -> Value {
    match answered {
        Some((200, response)) => json!({"key": id, "response": response}),
        Some((code, _)) => json!({"key": id,
            "error": {"code": code, "message": "scripted", "status": "INVALID_ARGUMENT"}}),
        None => json!({"key": id,
            "error": {"code": 504, "message": "scripted", "status": "DEADLINE_EXCEEDED"}}),
    }
}
