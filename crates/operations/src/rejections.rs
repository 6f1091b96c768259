//! One rejection of many documents, each in the version that was seen in a list.
//!
//! Each is a decision of its own, with its row in `document_revision`, its undo and its webhooks. Not
//! promised: all or none.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::review::{DecidingReviewer, DecisionRefusal, ReviewRow, load_case, reject_document};
use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;

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
    let mut done = Vec::with_capacity(seen.len());
    for one in seen {
        let end = reject_seen(db, *one, tenant, by).await?;
        done.push(DocumentRejection { document_id: one.document_id, end });
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

impl From<&ReviewRow> for SeenDocument {
    fn from(row: &ReviewRow) -> Self {
        Self { document_id: row.document_id, version: row.since }
    }
}

async fn reject_seen(
    db: &Db,
    seen: SeenDocument,
    tenant: Option<&str>,
    by: &DecidingReviewer<'_>,
) -> Result<RejectionEnd> {
    let case = match load_case(db, &seen.document_id.to_string()).await {
        Err(error) if error.fault == Fault::Missing => return Ok(RejectionEnd::Missing),
        case => case?,
    };
    if tenant.is_some() && case.tenant.as_deref() != tenant {
        return Ok(RejectionEnd::Missing);
    }
    if case.version != seen.version {
        return Ok(RejectionEnd::Changed);
    }
    match reject_document(db, &case, by).await {
        Ok(_) => Ok(RejectionEnd::Rejected),
        Err(DecisionRefusal::Changed) => Ok(RejectionEnd::Changed),
        Err(DecisionRefusal::Held(_)) => Ok(RejectionEnd::Held),
        Err(refusal) => Err(refusal.into()),
    }
}
