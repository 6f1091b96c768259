//! Renewals of claims, and with them the stage and what progress clears.

use std::time::Duration;

use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use crate::{LeaseRenewal, LeaseStatus};
use docmill_core::fault::Result;

/// Extends the leases of claims; see [`crate::Ledger::renew_leases`].
pub(super) async fn renew_leases(
    db: &Db,
    claims: &[LeaseRenewal],
    lease: Duration,
) -> Result<Vec<LeaseStatus>> {
    let ids: Vec<Uuid> = claims.iter().map(|claim| claim.id.0).collect();
    let tokens: Vec<Uuid> = claims.iter().map(|claim| claim.token.0).collect();
    // Empty: no news. Arrays of this library have no NULLs without a type of their own.
    let stages: Vec<String> = claims
        .iter()
        .map(|claim| claim.new_stage.map_or("", |stage| stage.code()).to_owned())
        .collect();
    let progress: Vec<bool> =
        claims.iter().map(|claim| claim.has_progress || claim.is_over).collect();
    let over: Vec<bool> = claims.iter().map(|claim| claim.is_over).collect();
    let renewed = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
), asked AS MATERIALIZED (
    SELECT a.id, a.token, NULLIF(a.stage, '') AS stage, a.progress, a.is_over, a.place
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $5::bool[], $6::bool[])
        WITH ORDINALITY AS a (id, token, stage, progress, is_over, place)
    -- All there are: read as one row by the planner (see `claims.rs`).
    WHERE a.id BETWEEN '00000000-0000-0000-0000-000000000000'
        AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), held AS MATERIALIZED (
    SELECT i.id, a.stage, a.progress, a.is_over
    FROM ingestion i JOIN asked a ON a.id = i.id AND a.token = i.claim_token
    ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), renewed AS (
    UPDATE ingestion i SET lease_expires_at = c.now + make_interval(secs => $4),
        stage = COALESCE(h.stage, i.stage),
        accused_at = CASE WHEN NOT h.progress THEN i.accused_at END,
        crashes = CASE WHEN h.progress THEN 0 ELSE i.crashes END,
        alone_claim = CASE WHEN NOT h.is_over THEN i.alone_claim END,
        updated_at = CASE WHEN h.stage IS NULL THEN i.updated_at ELSE c.now END
    FROM held h, clock c WHERE i.id = h.id
    RETURNING i.id, i.claim_token
)
SELECT a.renewed AS "renewed!",
    NOT a.renewed
        AND EXISTS (SELECT 1 FROM ingestion i WHERE i.id = a.id AND i.claim_token = a.token)
        AS "stands!"
FROM (
    SELECT *, (id, token) IN (SELECT r.id, r.claim_token FROM renewed r) AS renewed FROM asked
) AS a
ORDER BY a.place
"#,
        &ids,
        &tokens,
        &stages,
        lease.as_secs_f64(),
        &progress,
        &over,
    )
    .fetch_all(db.pool())
    .await
    .context("renewing claims")?;
    Ok(renewed.into_iter().map(|row| lease_status(row.renewed, row.stands)).collect())
}

/// `stands`: another session has locked the row; the token in it was still ours.
fn lease_status(renewed: bool, stands: bool) -> LeaseStatus {
    match (renewed, stands) {
        (true, _) => LeaseStatus::Renewed,
        (false, true) => LeaseStatus::Locked,
        (false, false) => LeaseStatus::Lost,
    }
}
