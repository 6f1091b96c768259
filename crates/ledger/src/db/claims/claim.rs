//! Taking claims: one statement for a whole received batch.
//!
//! The CASE in it is [`crate::ledger::decide::decide_claim`] in SQL, with the same order of
//! questions.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::{count_from_int, saturating_int};
use crate::db::{Db, SqlErrorContext, erasure};
use crate::ledger::decide::{SOON, used_attempts};
use crate::ledger::{ClaimOutcome, ClaimTerms};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{
    ArtefactRef, ClaimToken, ClaimedIngestion, DocumentId, DocumentRef, IngestionId,
    IngestionStatus,
};

/// One answer of the statement; what is not claimed has only the first columns.
struct ClaimRow {
    id: Uuid,
    answer: String,
    status: Option<String>,
    wait_seconds: Option<f64>,
    token: Uuid,
    claims: i64,
    attempt_count: i32,
    attempt_limit: i32,
    crashes: i32,
    deferred_seconds: Option<f64>,
    kind: Option<String>,
    tenant: Option<String>,
    transcription_file_path: Option<String>,
    transcription_identity: Option<String>,
    extraction_output_file_path: Option<String>,
    extraction_identity: Option<String>,
    document_id: Uuid,
    file_path: String,
    original_name: Option<String>,
    object_etag: Option<String>,
}

/// Claims a batch of ingestions; see [`crate::ledger::Ledger::claim`].
pub(super) async fn claim_batch(
    db: &Db,
    ids: &[IngestionId],
    terms: &ClaimTerms,
) -> Result<Vec<ClaimOutcome>> {
    let begun = Instant::now();
    let asked: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let tokens: Vec<Uuid> = ids.iter().map(|_| ClaimToken::random().0).collect();
    let rows = query_claims(db, &asked, &tokens, terms).await?;
    let lease_until = begun + terms.lease;
    let mut answers = rows
        .into_iter()
        .map(|row| outcome_from_row(row, lease_until))
        .collect::<Result<Vec<_>>>()?;
    mark_erased(db, ids, &mut answers).await?;
    Ok(answers)
}

/// An id without a row is on its way, or was erased: then its message has nothing to wait for.
async fn mark_erased(db: &Db, ids: &[IngestionId], answers: &mut [ClaimOutcome]) -> Result<()> {
    let is_unknown = |answer: &ClaimOutcome| matches!(answer, ClaimOutcome::Unknown);
    let unknown = ids.iter().zip(&*answers).filter(|(_, answer)| is_unknown(answer));
    let unknown: Vec<IngestionId> = unknown.map(|(id, _)| *id).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let erased = erasure::find_erased(db, &unknown).await?;
    for (id, answer) in ids.iter().zip(answers) {
        if is_unknown(answer) && erased.contains(id) {
            *answer = ClaimOutcome::Terminal(IngestionStatus::Cancelled);
        }
    }
    Ok(())
}

async fn query_claims(
    db: &Db,
    ids: &[Uuid],
    tokens: &[Uuid],
    terms: &ClaimTerms,
) -> Result<Vec<ClaimRow>> {
    sqlx::query_file_as!(
        ClaimRow,
        "src/db/claims/claim.sql",
        ids,
        tokens,
        terms.worker,
        terms.lease.as_secs_f64(),
        saturating_int(terms.crash_limit),
        SOON.as_secs_f64(),
    )
    .fetch_all(db.pool())
    .await
    .context("claiming ingestions")
}

fn outcome_from_row(row: ClaimRow, lease_until: Instant) -> Result<ClaimOutcome> {
    let wait = Duration::try_from_secs_f64(row.wait_seconds.unwrap_or(0.0)).unwrap_or_default();
    Ok(match row.answer.as_str() {
        "claimed" => ClaimOutcome::Claimed(Box::new(claimed_from_row(row, lease_until))),
        "busy" => ClaimOutcome::Busy(wait),
        "not due" => ClaimOutcome::NotDue(wait),
        "exhausted" => ClaimOutcome::Exhausted,
        "unknown" => ClaimOutcome::Unknown,
        "terminal" => match row.status.as_deref().and_then(IngestionStatus::from_code) {
            Some(status) => ClaimOutcome::Terminal(status),
            None => return Err(Error::internal(format!("{}: a status we do not know", row.id))),
        },
        other => return Err(Error::internal(format!("{}: claim answered {other}", row.id))),
    })
}

fn claimed_from_row(row: ClaimRow, lease_until: Instant) -> ClaimedIngestion {
    ClaimedIngestion {
        id: IngestionId(row.id),
        token: ClaimToken(row.token),
        claims: row.claims,
        attempt: used_attempts(
            count_from_int(row.attempt_count),
            count_from_int(row.attempt_limit),
        ),
        suspect: row.crashes > 0,
        deferred_for: row
            .deferred_seconds
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        kind: row.kind,
        tenant: row.tenant,
        document: DocumentRef {
            id: DocumentId(row.document_id),
            file_path: row.file_path,
            original_name: row.original_name,
            etag: row.object_etag,
        },
        transcription: artefact_ref(row.transcription_file_path, row.transcription_identity),
        extraction: artefact_ref(row.extraction_output_file_path, row.extraction_identity),
        lease_until,
    }
}

/// A reference is whole or not there: a transcript of the earlier system has no identity, so it
/// is made again.
fn artefact_ref(path: Option<String>, identity: Option<String>) -> Option<ArtefactRef> {
    Some(ArtefactRef { path: path?, identity: identity? })
}
