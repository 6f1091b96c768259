//! Taking claims: one statement for a whole received batch.
//!
//! The CASE in it is [`crate::ledger::decide::decide`] in SQL, with the same order of questions.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::{count, int};
use crate::db::{Context, Db};
use crate::fault::{Error, Result};
use crate::ledger::decide::{SOON, used_attempts};
use crate::ledger::{Claim, ClaimTerms};
use crate::model::{
    ArtefactRef, ClaimToken, Claimed, DocumentId, DocumentRef, IngestionId, Status,
};

/// One answer of the statement; what is not claimed has only the first columns.
struct Row {
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

/// See [`crate::ledger::Ledger::claim`].
pub(super) async fn claim(db: &Db, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<Claim>> {
    let begun = Instant::now();
    let asked: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let tokens: Vec<Uuid> = ids.iter().map(|_| ClaimToken::random().0).collect();
    let rows = statement(db, &asked, &tokens, terms).await?;
    rows.into_iter().map(|row| answer(row, begun + terms.lease)).collect()
}

async fn statement(db: &Db, ids: &[Uuid], tokens: &[Uuid], terms: &ClaimTerms) -> Result<Vec<Row>> {
    sqlx::query_as!(
        Row,
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
), asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (id, token, place)
), held AS MATERIALIZED (
    SELECT i.id, i.status, i.lease_expires_at, i.next_attempt_at, i.crashes, i.claims,
        i.claim_token, i.worker, i.started_at, i.stage
    FROM ingestion i WHERE i.id = ANY ($1) ORDER BY i.id FOR UPDATE
), decided AS MATERIALIZED (
    SELECT h.*, c.now,
        CASE
            WHEN h.status <> 'in-progress' THEN 'terminal'
            WHEN h.lease_expires_at > c.now THEN 'busy'
            WHEN h.crashes + (h.lease_expires_at IS NOT NULL)::int >= $5 THEN 'exhausted'
            WHEN h.next_attempt_at > c.now + make_interval(secs => $6) THEN 'not due'
            ELSE 'claimed'
        END AS answer
    FROM held h CROSS JOIN clock c
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage,
        'crashed', answer = 'exhausted', 'the lease ended without a word of the worker'
    FROM decided WHERE answer IN ('claimed', 'exhausted') AND lease_expires_at IS NOT NULL
), given_up AS (
    UPDATE ingestion i SET
        status = 'failed', reason = 'crashed', completed_at = d.now, updated_at = d.now,
        crashes = d.crashes + (d.lease_expires_at IS NOT NULL)::int,
        claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL,
        deferred_since = NULL, valid_structured_data = false, needs_human_review = true,
        review_reasons = ARRAY['crashed'],
        detail = format('workers died on it %s times',
            d.crashes + (d.lease_expires_at IS NOT NULL)::int)
    FROM decided d WHERE i.id = d.id AND d.answer = 'exhausted'
), taken AS (
    UPDATE ingestion i SET
        claim_token = a.token, lease_expires_at = d.now + make_interval(secs => $4),
        worker = $3, stage = 'claimed', started_at = d.now, updated_at = d.now,
        claims = i.claims + 1, attempt_count = i.attempt_count + 1,
        crashes = d.crashes + (d.lease_expires_at IS NOT NULL)::int, next_attempt_at = NULL
    FROM decided d JOIN asked a ON a.id = d.id
    WHERE i.id = d.id AND d.answer = 'claimed'
    RETURNING i.*
)
SELECT
    a.id AS "id!", a.token AS "token!",
    COALESCE(d.answer, 'unknown') AS "answer!", d.status AS "status?",
    extract(epoch FROM CASE d.answer
        WHEN 'busy' THEN d.lease_expires_at - d.now
        WHEN 'not due' THEN d.next_attempt_at - d.now END)::float8 AS wait_seconds,
    COALESCE(t.claims, 0) AS "claims!", COALESCE(t.attempt_count, 0) AS "attempt_count!",
    COALESCE(t.attempt_limit, 0) AS "attempt_limit!", COALESCE(t.crashes, 0) AS "crashes!",
    extract(epoch FROM d.now - t.deferred_since)::float8 AS deferred_seconds,
    t.kind AS "kind?", t.tenant AS "tenant?",
    t.transcription_file_path AS "transcription_file_path?",
    t.transcription_identity AS "transcription_identity?",
    t.extraction_output_file_path AS "extraction_output_file_path?",
    t.extraction_identity AS "extraction_identity?",
    COALESCE(t.document_id, a.id) AS "document_id!", COALESCE(o.file_path, '') AS "file_path!",
    o.original_name AS "original_name?", t.object_etag AS "object_etag?"
FROM asked a
LEFT JOIN decided d ON d.id = a.id
LEFT JOIN taken t ON t.id = a.id
LEFT JOIN document o ON o.id = t.document_id
ORDER BY a.place
"#,
        ids,
        tokens,
        terms.worker,
        terms.lease.as_secs_f64(),
        int(terms.crash_limit),
        SOON.as_secs_f64(),
    )
    .fetch_all(db.pool())
    .await
    .context("claiming ingestions")
}

fn answer(row: Row, lease_until: Instant) -> Result<Claim> {
    let wait = Duration::try_from_secs_f64(row.wait_seconds.unwrap_or(0.0)).unwrap_or_default();
    Ok(match row.answer.as_str() {
        "claimed" => Claim::Claimed(Box::new(claimed(row, lease_until))),
        "busy" => Claim::Busy(wait),
        "not due" => Claim::NotDue(wait),
        "exhausted" => Claim::Exhausted,
        "unknown" => Claim::Unknown,
        "terminal" => match row.status.as_deref().and_then(Status::from_code) {
            Some(status) => Claim::Terminal(status),
            None => return Err(Error::internal(format!("{}: a status we do not know", row.id))),
        },
        other => return Err(Error::internal(format!("{}: claim answered {other}", row.id))),
    })
}

fn claimed(row: Row, lease_until: Instant) -> Claimed {
    Claimed {
        id: IngestionId(row.id),
        token: ClaimToken(row.token),
        claims: row.claims,
        attempt: used_attempts(count(row.attempt_count), count(row.attempt_limit)),
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
        transcription: artefact(row.transcription_file_path, row.transcription_identity),
        extraction: artefact(row.extraction_output_file_path, row.extraction_identity),
        lease_until,
    }
}

/// A reference is whole or not there: a transcript of the earlier system has no identity, so it
/// is made again.
fn artefact(path: Option<String>, identity: Option<String>) -> Option<ArtefactRef> {
    Some(ArtefactRef { path: path?, identity: identity? })
}
