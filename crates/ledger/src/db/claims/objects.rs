//! Objects of events, and their versions: registered once, whichever event comes first.
//!
//! Registration is two statements in one transaction: the document's row is locked by the first, so
//! that the second sees what another registration of the same object has committed. Not promised:
//! order between documents.

use uuid::Uuid;

use crate::db::connection::statements::StatementTransaction;
use crate::db::{Db, SqlErrorContext};
use crate::decide::Sequencer;
use crate::{ObjectRegistration, VersionOutcome, stored};
use docmill_core::fault::Result;
use docmill_core::model::{ClaimToken, IngestionId};

const REGISTERING: &str = "registering an object";

/// See [`crate::Ledger::register_object`].
///
/// Older rows are superseded with SKIP LOCKED: a locked row is being claimed, renewed or ended by a
/// worker, and waiting here for a row whose end waits for the document's row would be a deadlock. A
/// row that is missed fails at its fetch, which demands the older version of the object.
pub(super) async fn register_object(db: &Db, object: &ObjectRegistration) -> Result<IngestionId> {
    let mut transaction = db.pool().begin().await.context(REGISTERING)?;
    if !lock_document(&mut transaction, object).await? {
        // Erased: its message finds that out.
        transaction.rollback().await.context(REGISTERING)?;
        return Ok(object.ingestion);
    }
    let sequencer = object.sequencer.as_deref();
    let sequencer = sequencer.and_then(|text| Sequencer::new(&stored::strip_nul(text)));
    let id = sqlx::query_file_scalar!(
        "src/db/claims/register.sql",
        object.document.0,
        object.ingestion.0,
        stored::strip_nul_optional(object.etag.as_deref()),
        size_of(object),
        sequencer.map(|sequencer| sequencer.0),
    )
    .fetch_one(&mut transaction)
    .await
    .context(REGISTERING)?;
    transaction.commit().await.context(REGISTERING)?;
    Ok(IngestionId(id))
}

/// Makes the document if it is not there, and locks its row; `false`: its ingestion was erased.
async fn lock_document(
    connection: &mut StatementTransaction,
    object: &ObjectRegistration,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO document AS d (id, file_path, original_name, size_bytes, tenant)
         SELECT $1, $2, $3, $4::bigint, $5
         WHERE NOT EXISTS (SELECT 1 FROM erased_ingestion e WHERE e.id = $6)
         ON CONFLICT (id) DO UPDATE SET tenant = COALESCE(d.tenant, excluded.tenant)",
        object.document.0,
        &stored::strip_nul(&object.file_path),
        &stored::strip_nul(&object.original_name),
        size_of(object),
        stored::strip_nul_optional(object.tenant.as_deref()),
        object.ingestion.0,
    )
    .execute(connection)
    .await
    .context(REGISTERING)?;
    Ok(done.rows_affected() > 0)
}

fn size_of(object: &ObjectRegistration) -> Option<i64> {
    object.size.map(|size| i64::try_from(size).unwrap_or(i64::MAX))
}

/// See [`crate::AttemptLedger::adopt_version`].
pub(super) async fn adopt_version(
    db: &Db,
    id: IngestionId,
    token: ClaimToken,
    etag: &str,
) -> Result<VersionOutcome> {
    let adopted = sqlx::query_scalar!(
        r#"WITH mine AS MATERIALIZED (
            SELECT id, document_id FROM ingestion WHERE id = $1 AND claim_token = $2 FOR NO KEY UPDATE
        ), successor AS MATERIALIZED (
            SELECT i.id FROM ingestion i JOIN mine m ON m.document_id = i.document_id
            WHERE i.id <> m.id AND i.status <> 'cancelled'
              AND trim(BOTH '"' FROM i.object_etag) = $3
            ORDER BY i.created_at DESC, i.id DESC LIMIT 1
        )
        UPDATE ingestion i SET
            superseded_by = s.id, updated_at = docmill_now(),
            object_etag = CASE WHEN s.id IS NULL THEN $3 ELSE i.object_etag END
        FROM mine m LEFT JOIN successor s ON true
        WHERE i.id = m.id
        RETURNING i.superseded_by"#,
        id.0,
        token.0,
        &stored::strip_nul(etag),
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the newer version of an object")?;
    Ok(match adopted {
        None => VersionOutcome::Lost,
        Some(None) => VersionOutcome::Adopted,
        Some(Some(successor)) => VersionOutcome::SupersededBy(IngestionId(successor)),
    })
}

/// See [`crate::Ledger::find_unknown`].
pub(super) async fn find_unknown(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let asked: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let unknown = sqlx::query_scalar!(
        r#"SELECT a.id AS "id!" FROM unnest($1::uuid[]) WITH ORDINALITY AS a (id, place)
        WHERE NOT EXISTS (SELECT 1 FROM ingestion i WHERE i.id = a.id)
          AND NOT EXISTS (SELECT 1 FROM erased_ingestion e WHERE e.id = a.id)
        ORDER BY a.place"#,
        &asked,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for the rows of a group")?;
    Ok(unknown.into_iter().map(IngestionId).collect())
}
