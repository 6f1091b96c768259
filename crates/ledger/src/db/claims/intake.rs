//! The ledger's part in intake beside claims and objects: quarantine, pauses, passwords, worker
//! status.

use sqlx::types::Json;

use super::saturating_int;
use crate::db::{Db, SqlErrorContext};
use crate::{OperatorPause, QuarantinedMessage, WorkerStatus, stored};
use docmill_core::config::SecretString;
use docmill_core::fault::Result;
use docmill_core::model::DocumentId;

/// Keeps a message that is not ours; see [`crate::Ledger::quarantine_message`].
/// Producers may use an id again for other data: both copies are kept.
pub(super) async fn quarantine_message(db: &Db, message: &QuarantinedMessage) -> Result<()> {
    sqlx::query!(
        "INSERT INTO quarantined_message (message_id, body, reason, receive_count)
         VALUES (CASE WHEN EXISTS (SELECT 1 FROM quarantined_message
             WHERE message_id = $1 AND body <> $2) THEN $1 || ' ' || md5($2) ELSE $1 END,
             $2, $3, $4) ON CONFLICT (message_id) DO NOTHING",
        &stored::strip_nul(&message.message_id),
        &stored::strip_nul(&message.body),
        message.reason,
        saturating_int(message.receive_count),
    )
    .execute(db.pool())
    .await
    .context("keeping a copy of a message")?;
    Ok(())
}

/// See [`crate::AttemptLedger::document_passwords`].
pub(super) async fn document_passwords(db: &Db, document: DocumentId) -> Result<Vec<SecretString>> {
    let found = sqlx::query_scalar!(
        "SELECT password FROM document_password WHERE document_id = $1
         ORDER BY given_at DESC, password LIMIT 10",
        document.0,
    )
    .fetch_all(db.pool())
    .await
    .context("asking for a document's passwords")?;
    Ok(found.into_iter().map(SecretString::from).collect())
}

/// The active pauses; see [`crate::Ledger::active_pauses`].
pub(super) async fn active_pauses(db: &Db) -> Result<Vec<OperatorPause>> {
    let rows = sqlx::query!("SELECT scope, name FROM pause ORDER BY scope, name")
        .fetch_all(db.pool())
        .await
        .context("reading the pauses")?;
    // Scopes of newer releases do not concern this one.
    Ok(rows
        .into_iter()
        .filter_map(|row| match row.scope.as_str() {
            "all" => Some(OperatorPause::All),
            "kind" => Some(OperatorPause::Kind(row.name)),
            "tenant" => Some(OperatorPause::Tenant(row.name)),
            "provider" => Some(OperatorPause::Provider(row.name)),
            _ => None,
        })
        .collect())
}

/// Writes what a worker reports of itself; see [`crate::Ledger::save_worker_status`].
pub(super) async fn save_worker_status(db: &Db, worker: &str, vitals: &WorkerStatus) -> Result<()> {
    sqlx::query!(
        "WITH clock AS MATERIALIZED (
             SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast)
         INSERT INTO worker AS w (id, started_at, seen_at, slots, slots_used, lanes, local_models)
         SELECT $1, c.now, c.now, $2, $3, $4, $5 FROM clock c
         ON CONFLICT (id) DO UPDATE SET
             seen_at = excluded.seen_at, slots = excluded.slots,
             slots_used = excluded.slots_used, lanes = excluded.lanes,
             local_models = excluded.local_models",
        &stored::strip_nul(worker),
        saturating_int(vitals.slots),
        saturating_int(vitals.slots_used),
        Json(&vitals.lanes) as _,
        vitals.local_models.as_ref().map(Json) as _,
    )
    .execute(db.pool())
    .await
    .context("saying that the worker lives")?;
    Ok(())
}
