//! The ends of a claim: given back, or recorded as the end of the ingestion.
//!
//! The row and its attempt are written by one statement, which is one transaction.

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::children;
use super::coalesce::{BatchedStatement, RowAnswer};
use crate::db::{Db, SqlErrorContext};
use crate::decide::{
    DeferralStreak, MAX_STRETCH, deferral_streak, is_denial, recorded_keys, recorded_near_keys,
};
use crate::duplicate_key::NearKeys;
use crate::supplier::SupplierLesson;
use crate::{
    ClaimRelease, IngestionResult, NewChild, ReadBack, VerdictDetails, WriteResult, stored,
};
use docmill_core::config::SilentErrorsConfig;
use docmill_core::fault::{Error, Result};
use docmill_core::model::{
    AttemptOutcome, ClaimToken, GroundedField, IngestionId, IngestionStatus, InvoiceReference,
    MasterMatch, RuleReport,
};

const RECORDING: &str = "recording an outcome";

/// Gives a claim back; see [`crate::Ledger::release_claim`].
pub(super) async fn release_claim(
    db: &Db,
    id: IngestionId,
    token: ClaimToken,
    how: &ClaimRelease,
) -> Result<WriteResult> {
    let streak = deferral_streak(how);
    let done = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.claims, i.worker, i.started_at, i.alone_claim, c.now,
        CASE WHEN $4::float8 > 0 THEN c.now + make_interval(
                secs => $4 * CASE WHEN $10 THEN least(2 ^ least(i.denials, 16), $11) ELSE 1 END)
            WHEN $8 THEN c.now END AS due
    FROM ingestion i CROSS JOIN clock c
    WHERE i.id = $1 AND i.claim_token = $2
    FOR NO KEY UPDATE OF i SKIP LOCKED
), given AS (
    UPDATE ingestion i SET
        claim_token = NULL, lease_expires_at = NULL, stage = $5, detail = $6,
        next_attempt_at = h.due, updated_at = h.now,
        attempt_count = i.attempt_count - CASE WHEN $3 THEN 0 ELSE 1 END,
        denials = CASE WHEN $10 THEN i.denials + 1 WHEN $8 THEN i.denials ELSE 0 END,
        deferred_since = CASE
            WHEN $9 THEN NULL
            WHEN $8 THEN i.deferred_since
            ELSE COALESCE(i.deferred_since, h.now) END
    FROM held h WHERE i.id = h.id
    RETURNING i.id
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage, outcome,
        counted, alone, next_attempt_at, detail)
    SELECT h.id, h.claims, $2, h.worker, h.started_at, h.now, $5, $7, $3,
        COALESCE(h.alone_claim = h.claims, false), h.due, $6
    FROM held h JOIN given g ON g.id = h.id
)
SELECT EXISTS (SELECT 1 FROM given) AS "given!",
    EXISTS (SELECT 1 FROM ingestion i WHERE i.id = $1 AND i.claim_token = $2) AS "stood!"
"#,
        id.0,
        token.0,
        how.counted,
        how.after.as_secs_f64(),
        how.stage.code(),
        &stored::strip_nul(&how.detail),
        AttemptOutcome::Fault(how.fault).code(),
        streak == DeferralStreak::Stays,
        streak == DeferralStreak::Ends,
        is_denial(how),
        MAX_STRETCH,
    )
    .fetch_one(db.pool())
    .await
    .context("giving a claim back")?;
    match (done.given, done.stood) {
        (true, _) => Ok(WriteResult::Applied),
        (false, false) => Ok(WriteResult::ClaimLost),
        // Waiting for it would hold a connection: it is tried again.
        (false, true) => Err(Error::transient("giving a claim back: the row is locked")),
    }
}

/// One end in the form the statement reads.
#[derive(Debug, Serialize)]
pub(super) struct ResultRow {
    id: Uuid,
    token: Uuid,
    status: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    stage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_data: Option<Map<String, Value>>,
    review: bool,
    review_reasons: Vec<String>,
    reader: Option<String>,
    kind: Option<String>,
    model: Option<String>,
    input_tokens: i64,
    output_tokens: i64,
    sha256: Option<String>,
    duplicate_key: Option<String>,
    /// The key that earlier releases recorded for the same invoice.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_duplicate_key: Option<String>,
    /// Only of one that has a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near_amount: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near_number: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near_rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    master_match: Option<MasterMatch>,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certainty: Option<f32>,
    /// Only of a kind with a stated bound on silent errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    draw_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draws_per_day: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate_score: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grounded: Option<Vec<GroundedField>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    successful: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_fields: Option<Vec<String>>,
    /// Written by a statement of their own, in the same transaction.
    #[serde(skip)]
    children: Vec<NewChild>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lesson: Option<SupplierLesson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    einvoice_rules: Option<RuleReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    einvoice_reference: Option<Box<InvoiceReference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<Map<String, Value>>,
}

impl ResultRow {
    pub(super) fn new(id: IngestionId, token: ClaimToken, end: &IngestionResult) -> Self {
        let status = end.reason.map_or(IngestionStatus::Completed, |reason| reason.status());
        let keys = recorded_keys(end);
        let duplicate_key = keys.map(|keys| keys.current.clone());
        let earlier_duplicate_key = keys.map(|keys| keys.earlier.clone());
        let duplicate_rule = stored::strip_nul_optional(end.duplicate_rule.as_deref())
            .filter(|_| duplicate_key.is_some());
        let near = recorded_near_keys(end);
        let near_rule =
            stored::strip_nul_optional(end.near_rule.as_deref()).filter(|_| near.is_some());
        let NearKeys { amount: near_amount, number: near_number } = near.unwrap_or_default();
        let outcome = end.reason.map_or(AttemptOutcome::Completed, AttemptOutcome::Ended);
        Self {
            id: id.0,
            token: token.0,
            status: status.code(),
            outcome: outcome.code(),
            reason: end.reason.map(|reason| reason.code()),
            stage: end.stage.code(),
            structured_data: end.structured_data.as_ref().map(stored::strip_nul_object),
            // A failure always wants a person (and a CHECK says so).
            review: end.needs_human_review || status == IngestionStatus::Failed,
            review_reasons: end
                .review_reasons
                .iter()
                .map(|r| stored::strip_nul(r).into())
                .collect(),
            reader: stored::strip_nul_optional(end.reader.as_deref()),
            kind: stored::strip_nul_optional(end.kind.as_deref()),
            model: stored::strip_nul_optional(end.model.as_deref()),
            input_tokens: i64::try_from(end.usage.prompt_tokens()).unwrap_or(i64::MAX),
            output_tokens: i64::try_from(end.usage.output).unwrap_or(i64::MAX),
            sha256: end.sha256.clone(),
            duplicate_key,
            earlier_duplicate_key,
            duplicate_rule,
            near_amount,
            near_number,
            near_rule,
            master_match: end.master_match.clone(),
            detail: stored::strip_nul(&end.detail).into_owned(),
            certainty: end.judged.as_ref().map(VerdictDetails::least_certainty),
            draw_share: None,
            draws_per_day: None,
            gate_score: end.judged.as_ref().map(|judged| judged.score),
            grounded: end.judged.as_ref().map(|judged| judged.grounded.clone()),
            successful: end.stated.as_ref().map(|stated| stated.successful),
            confidence: end.stated.as_ref().map(|stated| stated.confidence.code()),
            missing_fields: end.stated.as_ref().map(|stated| stated.missing_fields.clone()),
            children: end.children.clone(),
            lesson: end.lesson.clone().filter(|_| status == IngestionStatus::Completed),
            einvoice_rules: end.einvoice_rules.as_deref().cloned(),
            einvoice_reference: end.einvoice_reference.clone(),
            hooks: end.hooks.as_ref().map(stored::strip_nul_object),
        }
    }

    /// With the terms of draws for the bound on silent errors, if its kind has one.
    pub(super) fn with_draws(self, terms: &SilentErrorsConfig) -> Self {
        let is_bound = self.kind.as_deref().and_then(|kind| terms.one_in(kind)).is_some();
        Self {
            draw_share: is_bound.then_some(terms.share),
            draws_per_day: is_bound.then_some(terms.draws_per_day),
            ..self
        }
    }
}

/// The ends of ingestions, see [`crate::Ledger::record_result`].
pub(super) struct EndStatement;

impl BatchedStatement for EndStatement {
    type Row = ResultRow;
    type Answer = WriteResult;

    /// An end with children is a transaction of its own.
    async fn run_together(db: &Db, ends: &[ResultRow]) -> Result<Vec<RowAnswer<WriteResult>>> {
        let alike: Vec<&ResultRow> = ends.iter().filter(|end| end.children.is_empty()).collect();
        let mut written = write_ends(db, &alike).await?.into_iter();
        let mut answers = Vec::with_capacity(ends.len());
        for end in ends {
            let of_it = if end.children.is_empty() { written.next() } else { None };
            answers.push(of_it.unwrap_or(RowAnswer::Locked));
        }
        Ok(answers)
    }

    /// An end whose row is locked is an error, and writes nothing: it is tried again.
    async fn run_alone(db: &Db, end: &ResultRow) -> Result<WriteResult> {
        match write_ends(db, &[end]).await?.pop() {
            Some(RowAnswer::Given(written)) => Ok(written),
            Some(RowAnswer::Locked) => {
                Err(Error::transient("recording an outcome: the row is locked"))
            }
            None => Ok(WriteResult::ClaimLost),
        }
    }

    fn claim(end: &ResultRow) -> Option<ClaimToken> {
        Some(ClaimToken(end.token))
    }
}

/// Writes ends, and the children of a lone one: one answer for each, in their order.
async fn write_ends(db: &Db, ends: &[&ResultRow]) -> Result<Vec<RowAnswer<WriteResult>>> {
    let keys = keys_to_lock(ends);
    let parent = ends.first().filter(|end| !end.children.is_empty());
    let statement = || sqlx::query_file!("src/db/claims/record.sql", sqlx::types::Json(ends) as _);
    if ends.is_empty() {
        return Ok(Vec::new());
    }
    let written = if keys.is_empty() && parent.is_none() {
        statement().fetch_all(db.pool()).await.context(RECORDING)?
    } else {
        let mut transaction = db.pool().begin_locked(&keys).await.context(RECORDING)?;
        if let Some(parent) = parent {
            let (id, token) = (IngestionId(parent.id), Some(ClaimToken(parent.token)));
            let adding = children::insert_children(&mut transaction, id, token, &parent.children);
            if adding.await? == WriteResult::ClaimLost {
                transaction.rollback().await.context(RECORDING)?;
                return Ok(vec![RowAnswer::Given(WriteResult::ClaimLost)]);
            }
        }
        // Sees what was committed while this one waited for its keys.
        let written = statement().fetch_all(&mut transaction).await.context(RECORDING)?;
        let is_whole = parent.is_none() || written.iter().any(|row| row.recorded);
        let ended =
            if is_whole { transaction.commit().await } else { transaction.rollback().await };
        ended.context(RECORDING)?;
        written
    };
    let answer = |end: &&ResultRow| {
        let mut own = written.iter().filter(|row| row.id == end.id && row.token == end.token);
        match own.next() {
            Some(row) if row.recorded => RowAnswer::Given(WriteResult::Applied),
            Some(_) => RowAnswer::Locked,
            None => RowAnswer::Given(WriteResult::ClaimLost),
        }
    };
    Ok(ends.iter().map(answer).collect())
}

/// The advisory locks for recording ends whose supplier and number, or day and total, must be unique:
/// halves of their keys (of both exact ones: a worker of the previous release locks the earlier one).
/// Taken in one order by every worker, before any row is locked.
fn keys_to_lock(ends: &[&ResultRow]) -> Vec<i64> {
    let asked = ends.iter().filter(|end| end.duplicate_rule.is_some());
    let keys = asked.flat_map(|end| [&end.duplicate_key, &end.earlier_duplicate_key]);
    let keys = keys.filter_map(|key| key.as_deref()?.get(..16));
    let exact = keys.filter_map(|half| u64::from_str_radix(half, 16).ok());
    let near = ends.iter().filter(|end| end.near_rule.is_some());
    let near = near.flat_map(|end| [end.near_amount, end.near_number]).flatten();
    let near = near.map(|key| key.as_u64_pair().0);
    let mut keys: Vec<i64> = exact.chain(near).map(u64::cast_signed).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Reads back the end of a claim; see [`crate::Ledger::read_back`]. An attempt closed as crashed or
/// cancelled was closed by another process.
pub(super) async fn read_back(db: &Db, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
    let row = sqlx::query!(
        r#"SELECT
            EXISTS (SELECT 1 FROM attempt WHERE ingestion_id = $1 AND token = $2
                AND outcome NOT IN ('crashed', 'cancelled')) AS "recorded!",
            EXISTS (SELECT 1 FROM ingestion
                WHERE id = $1 AND claim_token = $2) AS "held!""#,
        id.0,
        token.0,
    )
    .fetch_one(db.pool())
    .await
    .context("reading an outcome back")?;
    Ok(match (row.recorded, row.held) {
        (true, _) => ReadBack::Recorded,
        (false, true) => ReadBack::StillHeld,
        (false, false) => ReadBack::Lost,
    })
}
