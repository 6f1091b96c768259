//! Children: documents found in others, and the messages that are sent for them.

use uuid::Uuid;

use crate::db::connection::statements::StatementTransaction;
use crate::db::{Db, SqlErrorContext};
use crate::{FamilySize, NewChild, WriteResult, stored};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{ClaimToken, IngestionId};

const ADDING: &str = "adding the children of an ingestion";

/// Adds children to an ingestion: to one that is held under `token`, or without a token to one that
/// has ended. A place that is taken stays as it is. The ingestion's row is locked until the end of the
/// transaction.
///
/// # Errors
/// `Transient`: another session has locked its row. No answer from Postgres.
pub(crate) async fn insert_children(
    transaction: &mut StatementTransaction,
    parent: IngestionId,
    token: Option<ClaimToken>,
    children: &[NewChild],
) -> Result<WriteResult> {
    let children: Vec<NewChild> = children.iter().map(without_nul).collect();
    let added = sqlx::query_file!(
        "src/db/claims/children.sql",
        parent.0,
        token.map(|token| token.0),
        sqlx::types::Json(&children) as _,
    )
    .fetch_one(transaction)
    .await
    .context(ADDING)?;
    match (added.done, added.stood) {
        (true, _) => Ok(WriteResult::Applied),
        (false, true) => Err(Error::transient("adding children: the row is locked")),
        (false, false) => Ok(WriteResult::ClaimLost),
    }
}

/// Their names come out of foreign files.
fn without_nul(child: &NewChild) -> NewChild {
    NewChild { name: stored::strip_nul_optional(child.name.as_deref()), ..child.clone() }
}

/// See [`crate::Ledger::note_sent`].
pub(super) async fn note_sent(db: &Db, children: &[IngestionId]) -> Result<()> {
    let ids: Vec<Uuid> = children.iter().map(|id| id.0).collect();
    sqlx::query!(
        "WITH held AS MATERIALIZED (
             SELECT id FROM ingestion
             WHERE id = ANY ($1) AND status = 'in-progress' AND claims = 0
               AND parked_by IS NULL AND parked_until IS NOT NULL
             ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
         UPDATE ingestion i SET parked_until = NULL, enqueued_at = docmill_now()
         FROM held h WHERE i.id = h.id",
        &ids,
    )
    .execute(db.pool())
    .await
    .context("recording the messages of children")?;
    Ok(())
}

/// See [`crate::AttemptLedger::family_size`].
pub(super) async fn family_size(db: &Db, id: IngestionId) -> Result<FamilySize> {
    let row = sqlx::query!(
        r#"SELECT count(*) AS "documents!", COALESCE(sum(d.size_bytes), 0)::bigint AS "bytes!"
        FROM ingestion m JOIN document d ON d.id = m.document_id
        WHERE m.root_id = (SELECT COALESCE(i.root_id, i.id) FROM ingestion i WHERE i.id = $1)
          AND m.parent_id <> $1"#,
        id.0,
    )
    .fetch_one(db.pool())
    .await
    .context("counting the documents of a family")?;
    let [documents, bytes] =
        [row.documents, row.bytes].map(|number| u64::try_from(number).unwrap_or(0));
    Ok(FamilySize { documents, bytes })
}
