//! Answers of the service. Fields that a later service adds are ignored, or kept in `more`.

use serde::Deserialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

/// The state of an ingestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionState {
    /// It waits or is worked on.
    InProgress,
    /// It has its data.
    Completed,
    /// It has none that is good; the reason says why.
    Failed,
    /// It was withdrawn.
    Cancelled,
}

impl IngestionState {
    /// Whether nothing more happens to it by itself.
    pub fn has_ended(self) -> bool {
        self != Self::InProgress
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A document that was handed in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UploadReceipt {
    /// The document: the same one for the same bytes of a tenant.
    pub document_id: Uuid,
    /// The ingestion to wait for and ask about.
    pub ingestion_id: Uuid,
    /// `submitted`, or what else became of it, such as `known`.
    pub fate: String,
    /// The state of the ingestion.
    pub status: Option<IngestionState>,
    /// The problem, for people.
    pub problem: Option<String>,
}

/// The view of an ingestion.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct IngestionView {
    /// The ingestion.
    pub id: Uuid,
    /// Its document.
    pub document_id: Uuid,
    /// Its state.
    pub status: IngestionState,
    /// Why it ended, if not completed.
    pub reason: Option<String>,
    /// The same in words.
    pub detail: Option<String>,
    /// The kind of document, once it is recognised.
    pub kind: Option<String>,
    /// Whose document it is.
    pub tenant: Option<String>,
    /// The name that it was handed in under.
    pub original_name: Option<String>,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// How often it was begun, as counted against its limit.
    pub attempt_count: i64,
    /// Whether a person is to look at it.
    pub needs_human_review: bool,
    /// Why.
    pub review_reasons: Vec<String>,
    /// The data, by the fields of its kind.
    pub structured_data: Value,
    /// Its attempts, oldest first; none in lists.
    #[serde(default)]
    pub attempts: Vec<AttemptView>,
    /// Everything else that the service says of it, as docs/reference/json.md names it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One attempt at an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AttemptView {
    /// Its number.
    pub claims: i64,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub ended_at: OffsetDateTime,
    /// The outcome.
    pub outcome: String,
    /// Details of the outcome.
    pub detail: Option<String>,
}

/// A page of ingestions, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct IngestionListing {
    /// The ingestions.
    pub items: Vec<IngestionView>,
    /// The cursor of the next page; `None` behind the last.
    pub next_cursor: Option<Uuid>,
}

/// An ingestion's data, and its document's.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EndedResult {
    /// The ingestion.
    pub ingestion_id: Uuid,
    /// Its document.
    pub document_id: Uuid,
    /// How it ended.
    pub status: IngestionState,
    /// Why, if not completed.
    pub reason: Option<String>,
    /// This ingestion's data; of a refused one perhaps a part.
    pub data: Value,
    /// The document's data now: of its newest completed ingestion, or a person's correction.
    pub document_data: Value,
    /// Whether a person is to look at it.
    pub needs_human_review: bool,
    /// Why.
    pub review_reasons: Vec<String>,
}

/// A change of an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChangeReceipt {
    /// The ingestion.
    pub ingestion_id: Uuid,
    /// The change, e.g. `reopened` or `cancelled`.
    pub change: String,
    /// Why nothing was done, for people.
    pub problem: Option<String>,
}

/// Changes of several ingestions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChangeListing {
    /// The changes.
    pub items: Vec<ChangeReceipt>,
    /// The cursor of the next request; `None`: no more match.
    pub next_cursor: Option<Uuid>,
}

/// The data of a document, as a person decided it or else as it was read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExportedView {
    /// The ingestion.
    pub ingestion_id: Uuid,
    /// Its document.
    pub document_id: Uuid,
    /// Whether a person is to look at it.
    pub needs_human_review: bool,
    /// The data, by the fields of its kind.
    pub data: Value,
    /// Everything else that the service says of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Data of documents, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExportListing {
    /// The documents.
    pub items: Vec<ExportedView>,
    /// The cursor of the next page; `None` behind the last.
    pub next_cursor: Option<Uuid>,
}

/// The rejection of one document of several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RejectionReceipt {
    /// The document.
    pub document_id: Uuid,
    /// `rejected`, or `changed`, `held` or `missing`: nothing was written.
    pub end: String,
    /// Until when it can be undone.
    #[serde(with = "time::serde::rfc3339::option")]
    pub undo_until: Option<OffsetDateTime>,
}

/// The undo of the newest decision about one document of several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UndoReceipt {
    /// The document.
    pub document_id: Uuid,
    /// `undone`, or `nothing`, `others`, `too_late`, `changed` or `missing`: nothing was written.
    pub end: String,
}

/// The undos of one call.
#[derive(Debug, Deserialize)]
pub(super) struct UndoListing {
    pub(super) items: Vec<UndoReceipt>,
}

/// The rejections of one call.
#[derive(Debug, Deserialize)]
pub(super) struct RejectionListing {
    pub(super) items: Vec<RejectionReceipt>,
}

/// A document that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueuedReview {
    /// The document.
    pub document_id: Uuid,
    /// The name that it was handed in under.
    pub original_name: Option<String>,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// Why a person is to look.
    pub review_reasons: Vec<String>,
    /// Since when it waits; also its version.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// The reviewer who has it open.
    pub held_by: Option<String>,
}

/// A page of documents that wait for a person, longest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReviewListing {
    /// The documents.
    pub items: Vec<QueuedReview>,
    /// The cursor of the next page; `None` behind the last.
    pub next_cursor: Option<Uuid>,
}

/// The reviewer's view of a document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ReviewView {
    /// The document.
    pub document_id: Uuid,
    /// Its newest ingestion.
    pub ingestion_id: Option<Uuid>,
    /// Whether it still waits for a person.
    pub needs_human_review: bool,
    /// Why.
    pub review_reasons: Vec<String>,
    /// The document's data.
    pub document_data: Value,
    /// The newest ingestion's data.
    pub ingestion_data: Value,
    /// Everything else that the service says of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A document as it was seen: a decision is about this version of it and no other.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenReview {
    /// The view that the reviewer saw.
    pub view: ReviewView,
    /// The version, as the service names it.
    pub version: String,
}

/// A decision that was written down, or undone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DecisionReceipt {
    /// The document.
    pub document_id: Uuid,
    /// The decision.
    pub decision: String,
    /// The document's new data.
    pub data: Value,
    /// Whether it counts only once a second person has said the same.
    pub awaits_second: bool,
    /// Until when it can be undone.
    #[serde(with = "time::serde::rfc3339::option")]
    pub undo_until: Option<OffsetDateTime>,
}
