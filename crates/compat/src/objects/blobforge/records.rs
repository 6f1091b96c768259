//! The records in a BlobForge bucket. Pure.
//!
//! BlobForge's fields keep their names and meaning, docmill's are added, and unknown fields survive
//! a rewrite. Times are milliseconds since 1970 by the store's clock unless a name says otherwise.
//! `retries` counts earlier runs; `run` counts from 1.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::objects::engine::LockRecord;

/// How many failures are remembered of one document.
const REMEMBERED: usize = 20;

/// Something that waits: the authoritative object of it, changed by If-Match only. BlobForge's own
/// new markers are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueMarker {
    /// The number of runs begun. Counted at the start, so that a worker that dies is counted too.
    pub retries: u32,
    /// When it was put here, in milliseconds since 1970.
    pub queued_at: u64,
    /// The worker it was taken from, or what gave it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered_from: Option<String>,
    /// The error of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Data for its next mark.
    #[serde(flatten)]
    pub past: DocumentHistory,
    /// Unknown fields, kept in a rewrite.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Data that follows a document from mark to mark.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentHistory {
    /// The latest failures, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<RecordedFailure>,
    /// The type of an original that is no PDF: the extension of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
}

/// The right to work on something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkerLock {
    /// Name of the worker that holds the lock.
    pub worker: String,
    /// When the lock was taken, in milliseconds since 1970.
    pub started: u64,
    /// When it was renewed, in milliseconds by the holder's own clock; decides nothing.
    pub last_heartbeat: u64,
    /// The priority under which the marker lies.
    pub priority: String,
    /// How often it was begun before this time.
    pub retries: u32,
    /// Different each time the lock is taken.
    pub nonce: String,
    /// 2: the form with a nonce.
    pub lock_version: u32,
    /// Which run this is, already counted in the marker; 0: no run is counted yet, or the lock is an
    /// operator's. Absent in BlobForge's own locks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The start of the worker that holds it: a later start of the same worker holds others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// How far the worker is with the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<LockProgress>,
    /// Whether an operator wants the work to stop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Whether its holder removes the document: a takeover of the abandoned lock completes the
    /// removal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
    /// Of the queue of messages: when anybody may take it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Unknown fields, kept in a rewrite.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl MarkerLock {
    /// A lock with a nonce of its own, under which no run is counted yet.
    pub fn new(worker: &str, priority: &str, now: u64) -> Self {
        Self {
            worker: worker.to_owned(),
            started: now,
            last_heartbeat: now,
            priority: priority.to_owned(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            lock_version: 2,
            run: Some(0),
            ..Self::default()
        }
    }

    /// How often the document was begun, this time included.
    pub fn run_count(&self) -> u32 {
        self.run.unwrap_or(self.retries.saturating_add(1))
    }
}

impl LockRecord for MarkerLock {
    fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// How far a worker is with a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockProgress {
    /// `fetching`, `converting` or `publishing`.
    pub stage: String,
    /// Seconds since the lock was taken.
    pub elapsed_seconds: u64,
    /// Unknown fields, kept in a rewrite.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One failure of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedFailure {
    /// When it failed: RFC 3339, UTC.
    pub at: String,
    /// Name of the worker whose run failed.
    pub worker: String,
    /// Number of the run that failed, starting at 1.
    pub run: u32,
    /// The error: codes and counts, never content.
    pub error: String,
}

/// Appends to the history; drops the oldest.
pub fn append_failure(history: &mut Vec<RecordedFailure>, failure: RecordedFailure) {
    history.push(failure);
    let surplus = history.len().saturating_sub(REMEMBERED);
    history.drain(..surplus);
}

/// A document that failed and is to be tried again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedMarker {
    /// The error: codes and counts, never content.
    pub error: String,
    /// Name of the worker whose run failed.
    pub worker: String,
    /// When it failed: RFC 3339, UTC.
    pub failed_at: String,
    /// The same time as a number.
    pub timestamp: u64,
    /// How often it was begun before the run that failed.
    pub retries: u32,
    /// Where it is to wait again; absent in BlobForge's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Data for the next marker, see [`QueueMarker::past`].
    #[serde(flatten)]
    pub past: DocumentHistory,
    /// Unknown fields, kept in a rewrite.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl FailedMarker {
    /// How often the document was begun, the failed run included.
    pub fn run_count(&self) -> u32 {
        self.retries.saturating_add(1)
    }
}

/// Something that was given up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeadMarker {
    /// The error of the last failure.
    pub error: String,
    /// When it was given up: RFC 3339, UTC.
    pub moved_to_dead_at: String,
    /// How often the document was begun.
    pub total_retries: u32,
    /// `exceeded_max_retries`, `cancelled`, or why the document itself is at fault.
    pub reason: String,
    /// The priority under which it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Data for a new marker, see [`QueueMarker::past`].
    #[serde(flatten)]
    pub past: DocumentHistory,
    /// Fields of others, and those of the queue of messages.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The reason of what was begun too often.
pub(crate) const EXCEEDED: &str = "exceeded_max_retries";
/// The reason of what an operator withdrew.
pub const CANCELLED: &str = "cancelled";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_of_blobforge_are_read_and_unknown_fields_kept() {
        let marker: QueueMarker = serde_json::from_value(
            json!({"retries": 2, "queued_at": 7, "recovered_from": "w", "colour": "red"}),
        )
        .unwrap();
        assert_eq!((marker.retries, marker.recovered_from.as_deref()), (2, Some("w")));
        assert_eq!(serde_json::to_value(&marker).unwrap()["colour"], "red");
        let lock: MarkerLock = serde_json::from_value(
            json!({"worker": "w", "started": 1, "last_heartbeat": 2, "priority": "2_high",
                   "retries": 1, "progress": {"stage": "ocr", "pages": 3}}),
        )
        .unwrap();
        assert_eq!(lock.run_count(), 2, "its marker does not count the run yet");
        assert_eq!(serde_json::to_value(&lock).unwrap()["progress"]["pages"], 3);
        let failed: FailedMarker =
            serde_json::from_value(json!({"error": "e", "retries": 0, "timestamp": 5})).unwrap();
        assert_eq!((failed.run_count(), failed.priority), (1, None));
    }

    #[test]
    fn the_oldest_failure_is_forgotten_first() {
        let mut history = Vec::new();
        for run in 1..=25 {
            append_failure(&mut history, RecordedFailure { run, ..RecordedFailure::default() });
        }
        let runs: Vec<u32> = history.iter().map(|failure| failure.run).collect();
        assert_eq!(runs, (6..=25).collect::<Vec<_>>());
    }
}
