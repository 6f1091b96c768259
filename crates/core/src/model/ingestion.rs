//! An ingestion as the worker holds it; mirrors the CHECKs of `migrations/`.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId, Priority};

/// The state of an ingestion. Everything but `InProgress` is terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionStatus {
    /// Waiting, being worked on, or waiting for its next attempt.
    InProgress,
    /// Done; the data is in `structured_data`.
    Completed,
    /// Given up; `reason` says why, a person has to review it.
    Failed,
    /// Withdrawn by an operator or superseded by a newer object.
    Cancelled,
}

impl IngestionStatus {
    /// The text stored in Postgres and printed everywhere.
    pub fn code(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The inverse of [`IngestionStatus::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::InProgress, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.code() == code)
    }

    /// Whether nothing more will happen to the row by itself.
    pub fn is_terminal(self) -> bool {
        self != Self::InProgress
    }
}

/// How far a claimed ingestion has come; informational, never decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionStage {
    /// Claimed, nothing done yet.
    Claimed,
    /// Fetching the original from the store.
    Fetch,
    /// Reading the text of every page, by OCR where needed.
    Transcribe,
    /// Reading structured data from the text.
    Extract,
    /// Judging the data by deterministic rules.
    Gate,
    /// Writing the outcome to the database.
    Record,
}

impl IngestionStage {
    /// Every stage, in order.
    pub const ALL: [Self; 6] =
        [Self::Claimed, Self::Fetch, Self::Transcribe, Self::Extract, Self::Gate, Self::Record];

    /// The text stored in Postgres and used as metric label.
    pub fn code(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Fetch => "fetch",
            Self::Transcribe => "transcribe",
            Self::Extract => "extract",
            Self::Gate => "gate",
            Self::Record => "record",
        }
    }
}

/// The document of a claimed ingestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRef {
    /// Id of the row in `document`.
    pub id: DocumentId,
    /// Where the original lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// The name the file had with the person who sent it, for display only.
    pub original_name: Option<String>,
    /// ETag the fetch must match (documents registered from an S3 event); a newer object
    /// supersedes the ingestion.
    pub etag: Option<String>,
    /// Of a child: how many documents it lies in; 0: it was handed in itself.
    pub depth: u32,
    /// Of a child cut out of its parent: which of the parent's pages it consists of.
    pub pages: Option<PageRange>,
}

/// Consecutive pages of a document, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The first page.
    pub first: u32,
    /// The last page, not before the first.
    pub last: u32,
}

impl PageRange {
    /// Its parts if it is cut before these pages, in rising order; pages outside of it are no cuts.
    pub fn cut_before(self, cuts: &[u32]) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut first = self.first;
        for cut in cuts.iter().copied().chain([self.last.saturating_add(1)]) {
            if cut > first && cut <= self.last.saturating_add(1) {
                parts.push(Self { first, last: cut - 1 });
                first = cut;
            }
        }
        parts
    }

    /// The range that two columns hold; `None`: they hold none.
    pub fn from_columns(first: Option<i32>, last: Option<i32>) -> Option<Self> {
        let [first, last] = [u32::try_from(first?).ok()?, u32::try_from(last?).ok()?];
        (first >= 1 && last >= first).then_some(Self { first, last })
    }
}

/// An ingestion under our claim.
#[derive(Debug, Clone)]
pub struct ClaimedIngestion {
    /// Id of the claimed ingestion.
    pub id: IngestionId,
    /// Demanded by every later write.
    pub token: ClaimToken,
    /// The monotonic number of this claim; key of the `attempt` row.
    pub claims: i64,
    /// Attempts that count, this one included, since the last reopening.
    pub attempt: u32,
    /// The number of attempts up to which it may count; each reopening raises it.
    pub attempt_limit: u32,
    /// An earlier claim ended without an outcome: the worker died while it had this document, perhaps among
    /// others. Such a document is worked on alone, in its own child.
    pub suspect: bool,
    /// How long the current streak of deferrals has lasted, if one is running.
    pub deferred_for: Option<Duration>,
    /// Which tier of the queue its messages go to.
    pub priority: Priority,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Kind of document, if the producer named one.
    pub kind: Option<String>,
    /// Tenant, if the producer named one.
    pub tenant: Option<String>,
    /// The document that is to be read.
    pub document: DocumentRef,
    /// Transcript stored by an earlier attempt; without an identity: by the earlier system.
    pub transcription: Option<ArtefactRef>,
    /// Model reply stored by an earlier attempt.
    pub extraction: Option<ArtefactRef>,
    /// Local end of the lease: the monotonic time before the request, plus the lease.
    pub lease_until: Instant,
    /// When the ledger answered, by its own clock: what the attempt takes for today.
    pub claimed_at: OffsetDateTime,
}
