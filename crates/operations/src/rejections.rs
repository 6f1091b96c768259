//! One rejection of many documents, each in the version that was seen in a list, and its undo.
//!
//! Each is a decision of its own, with its row in `document_revision`, its undo and its webhooks. Not
//! promised: all or none.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::review::{
    DecidingReviewer, DecisionRefusal, ReviewCase, ReviewRow, load_case, reject_document,
};
use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::reviews::decisions::{UndoEnd, undo_decision};

/// Documents that are rejected by one request.
pub const MAX_REJECTED: usize = 200;

/// A document as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SeenDocumentRequest)]
pub struct SeenDocument {
    /// Id of the document.
    pub document_id: Uuid,
    /// Its version: `since` of the queue, or the ETag of the review.
    #[serde(with = "time::serde::rfc3339")]
    pub version: OffsetDateTime,
}

/// How the rejection of one document ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RejectionEnd {
    /// It is rejected.
    Rejected,
    /// It is no longer as it was seen; nothing was written.
    Changed,
    /// Another reviewer has it open; nothing was written.
    Held,
    /// There is no such document.
    Missing,
}

impl RejectionEnd {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Changed, Self::Held, Self::Missing];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Changed => "changed since they were listed: nothing was written",
            Self::Held => "open at another reviewer: nothing was written",
            Self::Missing => "no such document",
        }
    }
}

/// The result for one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DocumentRejection {
    /// Id of the document.
    pub document_id: Uuid,
    /// The end.
    pub end: RejectionEnd,
    /// Until when it can be undone; `None`: it cannot.
    #[serde(with = "time::serde::rfc3339::option")]
    pub undo_until: Option<OffsetDateTime>,
}

impl DocumentRejection {
    /// Its id and end, for people.
    pub fn describe(&self) -> [String; 2] {
        [self.document_id.to_string(), self.end.words().to_owned()]
    }

    /// Nothing was written.
    fn unwritten(document_id: Uuid, end: RejectionEnd) -> Self {
        Self { document_id, end, undo_until: None }
    }
}

/// How the undo of the newest decision about one of many documents ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkUndoEnd {
    /// It is as it was before the decision.
    Undone,
    /// No decision to undo.
    Nothing,
    /// The newest decision is another reviewer's.
    Others,
    /// The undo period is over.
    TooLate,
    /// The document has changed since the decision.
    Changed,
    /// There is no such document.
    Missing,
}

impl BulkUndoEnd {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Undone, Self::Nothing, Self::Others, Self::TooLate, Self::Changed, Self::Missing];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Undone => "undone",
            Self::Nothing => "without a decision to undo",
            Self::Others => "decided by another reviewer: nothing was written",
            Self::TooLate => "too late (review.undo): nothing was written",
            Self::Changed => "changed since the decision: nothing was written",
            Self::Missing => "no such document",
        }
    }
}

impl From<UndoEnd> for BulkUndoEnd {
    fn from(end: UndoEnd) -> Self {
        match end {
            UndoEnd::Undone(_) => Self::Undone,
            UndoEnd::Nothing => Self::Nothing,
            UndoEnd::Others(_) => Self::Others,
            UndoEnd::TooLate => Self::TooLate,
            UndoEnd::Changed => Self::Changed,
        }
    }
}

/// The result of an undo for one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DocumentUndo {
    /// Id of the document.
    pub document_id: Uuid,
    /// The end.
    pub end: BulkUndoEnd,
}

impl DocumentUndo {
    /// Its id and end, for people.
    pub fn describe(&self) -> [String; 2] {
        [self.document_id.to_string(), self.end.words().to_owned()]
    }
}

/// Rejects documents, of this tenant alone if one is named. An error keeps the work done before it.
///
/// # Errors
/// `Rejected` for more than [`MAX_REJECTED`], or without a reason in words; no answer from Postgres.
pub async fn reject_documents(
    db: &Db,
    seen: &[SeenDocument],
    tenant: Option<&str>,
    by: &DecidingReviewer<'_>,
) -> Result<Vec<DocumentRejection>> {
    if seen.len() > MAX_REJECTED {
        let text = format!("at most {MAX_REJECTED} documents are rejected together");
        return Err(Error::new(Fault::Rejected, text));
    }
    by.require_reason()?;
    let mut done = Vec::with_capacity(seen.len());
    for one in seen {
        done.push(reject_seen(db, *one, tenant, by).await?);
    }
    Ok(done)
}

/// Rejects any number of documents. An error keeps the work done before it.
///
/// # Errors
/// As [`reject_documents`].
pub async fn reject_all(
    db: &Db,
    seen: &[SeenDocument],
    by: &DecidingReviewer<'_>,
) -> Result<Vec<DocumentRejection>> {
    let mut done = Vec::with_capacity(seen.len());
    for some in seen.chunks(MAX_REJECTED) {
        done.extend(reject_documents(db, some, None, by).await?);
    }
    Ok(done)
}

/// Undoes the reviewer's own newest decisions about documents, of this tenant alone if one is named. An
/// error keeps the work done before it.
///
/// # Errors
/// No answer from Postgres.
pub async fn undo_decisions(
    db: &Db,
    documents: &[Uuid],
    tenant: Option<&str>,
    by: &AuditNote,
) -> Result<Vec<DocumentUndo>> {
    let mut done = Vec::with_capacity(documents.len());
    for document_id in documents.iter().copied() {
        let end = match find_of_tenant(db, document_id, tenant).await? {
            Some(_) => undo_decision(db, document_id, by).await?.into(),
            None => BulkUndoEnd::Missing,
        };
        done.push(DocumentUndo { document_id, end });
    }
    Ok(done)
}

impl From<&ReviewRow> for SeenDocument {
    fn from(row: &ReviewRow) -> Self {
        Self { document_id: row.document_id, version: row.since }
    }
}

/// The document, if there is one, of this tenant if one is named.
async fn find_of_tenant(db: &Db, id: Uuid, tenant: Option<&str>) -> Result<Option<ReviewCase>> {
    match load_case(db, &id.to_string()).await {
        Err(error) if error.fault == Fault::Missing => Ok(None),
        case => Ok(Some(case?).filter(|case| tenant.is_none() || case.tenant.as_deref() == tenant)),
    }
}

async fn reject_seen(
    db: &Db,
    seen: SeenDocument,
    tenant: Option<&str>,
    by: &DecidingReviewer<'_>,
) -> Result<DocumentRejection> {
    let SeenDocument { document_id, version } = seen;
    let Some(case) = find_of_tenant(db, document_id, tenant).await? else {
        return Ok(DocumentRejection::unwritten(document_id, RejectionEnd::Missing));
    };
    if case.version != version {
        return Ok(DocumentRejection::unwritten(document_id, RejectionEnd::Changed));
    }
    match reject_document(db, &case, by).await {
        Ok(done) => {
            let (end, undo_until) = (RejectionEnd::Rejected, done.undo_until);
            Ok(DocumentRejection { document_id, end, undo_until })
        }
        Err(DecisionRefusal::Changed) => {
            Ok(DocumentRejection::unwritten(document_id, RejectionEnd::Changed))
        }
        Err(DecisionRefusal::Held(_)) => {
            Ok(DocumentRejection::unwritten(document_id, RejectionEnd::Held))
        }
        Err(refusal) => Err(refusal.into()),
    }
}
