//! Taking claims: one statement for what is received at the same time, of as many batches as there are.
//!
//! The CASE in it is [`crate::decide::decide_claim`] in SQL, with the same order of
//! questions; only a claim that was made under the very token it is asked for comes before all
//! that, and is answered again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use uuid::Uuid;

use super::coalesce::{BatchedStatement, RowAnswer, StatementBatcher};
use super::{count_from_int, saturating_int};
use crate::db::{Db, SqlErrorContext};
use crate::decide::{SOON, used_attempts};
use crate::{ClaimOutcome, ClaimRequest, ClaimTerms};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{
    ArtefactRef, ClaimToken, ClaimedIngestion, DocumentId, DocumentRef, IngestionId,
    IngestionStatus, PageRange, Priority,
};

/// How long a row is left alone whose status a newer program has written.
const NEWER_KIND_DELAY: Duration = Duration::from_secs(60);

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
    suspect: bool,
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
    depth: i32,
    first_page: Option<i32>,
    last_page: Option<i32>,
    /// Of the request, from 1: what the rows are ordered by.
    #[expect(dead_code, reason = "a UNION is ordered by what it gives")]
    place: i64,
    answered_at: OffsetDateTime,
    created_at: OffsetDateTime,
    priority: String,
}

/// Claims ingestions, see [`crate::Ledger::claim_with_tokens`].
pub(super) struct ClaimStatement;

/// A claim that is asked for.
pub(super) struct RequestedClaim {
    asked: ClaimRequest,
    /// Those of its whole batch.
    terms: Arc<ClaimTerms>,
}

impl BatchedStatement for ClaimStatement {
    type Row = RequestedClaim;
    type Answer = ClaimOutcome;

    /// An ingestion is in a statement once, and its terms are those of all: what else is asked for goes
    /// by itself.
    async fn run_together(
        db: &Db,
        rows: &[RequestedClaim],
    ) -> Result<Vec<RowAnswer<ClaimOutcome>>> {
        let Some(RequestedClaim { terms, .. }) = rows.first() else { return Ok(Vec::new()) };
        let mut known = HashSet::with_capacity(rows.len());
        let is_asked: Vec<bool> = rows
            .iter()
            .map(|row: &RequestedClaim| row.terms == *terms && known.insert(row.asked.id))
            .collect();
        let asked = rows.iter().zip(&is_asked).filter(|(_, is_asked)| **is_asked);
        let asked: Vec<ClaimRequest> = asked.map(|(row, _)| row.asked).collect();
        let mut answers = claim_together(db, &asked, terms).await?.into_iter();
        let given =
            is_asked.into_iter().map(|is_asked: bool| is_asked.then(|| answers.next()).flatten());
        Ok(given.map(|given| given.map_or(RowAnswer::Locked, RowAnswer::Given)).collect())
    }

    async fn run_alone(db: &Db, row: &RequestedClaim) -> Result<ClaimOutcome> {
        let answer = claim_together(db, &[row.asked], &row.terms).await?.pop();
        answer.ok_or_else(|| Error::internal("a claim without an answer"))
    }
}

/// Claims a batch of ingestions; see [`crate::Ledger::claim_with_tokens`].
///
/// If Postgres refuses the whole statement (a trigger waits for a locked document, for example),
/// the rows are claimed one by one: one row that cannot be claimed delays no other. After a missing
/// answer the caller asks again, since the claims may have been made.
pub(super) async fn claim_batch(
    claims: &StatementBatcher<ClaimStatement>,
    asked: &[ClaimRequest],
    terms: &ClaimTerms,
) -> Result<Vec<ClaimOutcome>> {
    let terms = Arc::new(terms.clone());
    settle_claims(
        claims
            .run_many(
                asked
                    .iter()
                    .map(|asked: &ClaimRequest| RequestedClaim {
                        asked: *asked,
                        terms: Arc::clone(&terms),
                    })
                    .collect(),
            )
            .await,
    )
}

/// The answers of claims. One that Postgres refuses even by itself comes again as if it were locked,
/// unless it is all that was asked for. One whose answer is missing may have been made, and then the
/// whole batch is asked for again.
fn settle_claims(answers: Vec<Result<ClaimOutcome>>) -> Result<Vec<ClaimOutcome>> {
    let is_alone = answers.len() == 1;
    let mut outcomes = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(outcome) => outcomes.push(outcome),
            // The statement's task is gone: its outcome is unknown.
            Err(Error { fault: Fault::Interrupted, context, .. }) => {
                return Err(Error::new(Fault::Unavailable, context));
            }
            Err(error) if is_alone || error.fault == Fault::Unavailable => return Err(error),
            Err(error) => {
                tracing::warn!(error = %error, "an ingestion could not be claimed: {error}");
                outcomes.push(ClaimOutcome::Locked);
            }
        }
    }
    Ok(outcomes)
}

async fn claim_together(
    db: &Db,
    asked: &[ClaimRequest],
    terms: &ClaimTerms,
) -> Result<Vec<ClaimOutcome>> {
    let begun = Instant::now();
    let rows = query_claims(db, asked, terms).await?;
    let lease_until = begun + terms.lease;
    Ok(rows.into_iter().map(|row| outcome_from_row(row, lease_until)).collect())
}

async fn query_claims(
    db: &Db,
    asked: &[ClaimRequest],
    terms: &ClaimTerms,
) -> Result<Vec<ClaimRow>> {
    let ids: Vec<Uuid> = asked.iter().map(|asked| asked.id.0).collect();
    let tokens: Vec<Uuid> = asked.iter().map(|asked| asked.token.0).collect();
    let company: Vec<i32> = asked.iter().map(|asked| asked.company.code()).collect();
    sqlx::query_file_as!(
        ClaimRow,
        "src/db/claims/claim.sql",
        &ids,
        &tokens,
        terms.worker,
        terms.lease.as_secs_f64(),
        saturating_int(terms.crash_limit),
        SOON.as_secs_f64(),
        &company,
    )
    .fetch_all(db.pool())
    .await
    .context("claiming ingestions")
}

/// Never an error: by now the claims of the batch are made.
fn outcome_from_row(row: ClaimRow, lease_until: Instant) -> ClaimOutcome {
    let wait = Duration::try_from_secs_f64(row.wait_seconds.unwrap_or(0.0)).unwrap_or_default();
    match row.answer.as_str() {
        "claimed" => ClaimOutcome::Claimed(Box::new(claimed_from_row(row, lease_until))),
        "busy" => ClaimOutcome::Busy(wait),
        "not due" => ClaimOutcome::NotDue(wait),
        "suspect" => ClaimOutcome::Suspect(wait),
        "exhausted" => ClaimOutcome::Exhausted,
        // An id without a row is on its way, or was erased: then its message waits for nothing.
        "unknown" => ClaimOutcome::Unknown,
        "erased" => ClaimOutcome::Terminal(IngestionStatus::Cancelled),
        "terminal" => match row.status.as_deref().and_then(IngestionStatus::from_code) {
            Some(status) => ClaimOutcome::Terminal(status),
            None => {
                tracing::error!(ingestion.id = %row.id, "{}: a status we do not know", row.id);
                ClaimOutcome::Busy(NEWER_KIND_DELAY)
            }
        },
        _locked => ClaimOutcome::Locked,
    }
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
        attempt_limit: count_from_int(row.attempt_limit),
        suspect: row.suspect,
        deferred_for: row
            .deferred_seconds
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        priority: Priority::from_code(&row.priority).unwrap_or_default(),
        created_at: row.created_at,
        kind: row.kind,
        tenant: row.tenant,
        document: DocumentRef {
            id: DocumentId(row.document_id),
            file_path: row.file_path,
            original_name: row.original_name,
            etag: row.object_etag,
            depth: count_from_int(row.depth),
            pages: PageRange::from_columns(row.first_page, row.last_page),
        },
        transcription: row.transcription_file_path.map(|path| ArtefactRef {
            path,
            identity: row.transcription_identity.unwrap_or_default(),
        }),
        extraction: artefact_ref(row.extraction_output_file_path, row.extraction_identity),
        lease_until,
        claimed_at: row.answered_at,
    }
}

/// A reference is whole or not there.
fn artefact_ref(path: Option<String>, identity: Option<String>) -> Option<ArtefactRef> {
    Some(ArtefactRef { path: path?, identity: identity? })
}
