//! Where the messages of an ingestion go: its priority, and the tenant it is for.

use uuid::Uuid;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::{IngestionId, Priority};

/// Where the messages of one ingestion go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRoute {
    /// Id of the ingestion, which is the message's body.
    pub id: IngestionId,
    /// The priority, which selects the queue's tier.
    pub priority: Priority,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
}

/// The routes of these ingestions, in their order; one without a row is left out.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_routes(db: &Db, ids: &[IngestionId]) -> Result<Vec<MessageRoute>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"SELECT i.id, i.priority, i.tenant
        FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (id, place)
        JOIN ingestion i ON i.id = wanted.id ORDER BY wanted.place"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("reading where messages go")?;
    let routes = rows.into_iter().map(|row| MessageRoute {
        id: IngestionId(row.id),
        // A CHECK holds the column to the known words.
        priority: Priority::from_code(&row.priority).unwrap_or_default(),
        tenant: row.tenant,
    });
    Ok(routes.collect())
}

/// Those of the ingestions that have not ended.
///
/// # Errors
/// No answer from Postgres.
pub async fn filter_open(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let open = sqlx::query_scalar!(
        "SELECT id FROM ingestion WHERE id = ANY ($1) AND status = 'in-progress'",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for open ingestions")?;
    Ok(open.into_iter().map(IngestionId).collect())
}

/// Gives ingestions that have not ended another priority. Returns those that no worker holds: a
/// message for each is to be sent to its new tier, where it overtakes the old one.
///
/// # Errors
/// No answer from Postgres.
pub async fn reprioritize(
    db: &Db,
    ids: &[IngestionId],
    priority: Priority,
    by: &AuditNote,
) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let waiting = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.lease_expires_at IS NULL OR i.lease_expires_at <= c.now AS waits,
        jsonb_build_object('priority', i.priority) AS before
    FROM ingestion i CROSS JOIN clock c
    WHERE i.id = ANY ($1) AND i.status = 'in-progress' ORDER BY i.id FOR NO KEY UPDATE OF i
), audited AS (
    INSERT INTO operator_action (done_at, operator, action, target, why, before)
    SELECT c.now, $3, 'reprioritize', h.id::text, $4, h.before FROM held h CROSS JOIN clock c
), changed AS (
    UPDATE ingestion i SET
        priority = $2, updated_at = c.now,
        enqueued_at = CASE WHEN h.waits THEN c.now ELSE i.enqueued_at END
    FROM held h, clock c WHERE i.id = h.id
    RETURNING i.id, h.waits
)
SELECT id FROM changed WHERE waits
"#,
        &ids,
        priority.code(),
        by.operator,
        by.why,
    )
    .fetch_all(db.pool())
    .await
    .context("changing priorities")?;
    Ok(waiting.into_iter().map(IngestionId).collect())
}
