//! Decided documents with what was read of them, for a replay.

use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Which decided documents are meant; `None` does not matter.
#[derive(Debug, Clone)]
pub struct ReplayFilter {
    /// Only documents of this tenant.
    pub tenant: Option<String>,
    /// Only documents of this kind.
    pub kind: Option<String>,
    /// Only decisions numbered higher than this; 0: all.
    pub after: i64,
    /// Only decisions numbered no higher than this; `i64::MAX`: all.
    pub up_to: i64,
    /// Only this share of the documents, chosen deterministically; 1: all.
    pub share: f64,
}

impl Default for ReplayFilter {
    fn default() -> Self {
        Self { tenant: None, kind: None, after: 0, up_to: i64::MAX, share: 1.0 }
    }
}

/// A document that a person decided about, and its newest reading by rules or a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayableDocument {
    /// Order of the decisions.
    pub revision: i64,
    /// Id of the document.
    pub document_id: Uuid,
    /// The ingestion that read it.
    pub ingestion_id: Uuid,
    /// The tenant; `None`: nobody in particular.
    pub tenant: Option<String>,
    /// The kind that it was read as.
    pub kind: String,
    /// Where the original lies.
    pub file_path: String,
    /// Where its transcript lies.
    pub transcription_file_path: String,
    /// Where the replies of models lie.
    pub extraction_output_file_path: Option<String>,
    /// Identities of the sources of those.
    pub extraction_identity: Option<String>,
    /// When the ingestion ended: the day that rules about dates go by.
    pub ended_at: OffsetDateTime,
    /// The data that was read.
    pub data: Option<Value>,
    /// Whether a person was asked.
    pub flagged: bool,
    /// Whether the ingestion failed.
    pub failed: bool,
    /// The data that was decided.
    pub decided: Option<Value>,
}

/// Up to `limit` documents about which a decision of people holds that has data, the newest decision
/// first, before the one numbered `before`. Documents read from XML are left out.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_replayable(
    db: &Db,
    wanted: &ReplayFilter,
    before: i64,
    limit: u32,
) -> Result<Vec<ReplayableDocument>> {
    sqlx::query_as!(
        ReplayableDocument,
        r#"
SELECT r.id AS revision, d.id AS document_id, i.id AS ingestion_id,
    COALESCE(d.tenant, i.tenant) AS tenant, i.kind AS "kind!", d.file_path,
    i.transcription_file_path AS "transcription_file_path!", i.extraction_output_file_path,
    i.extraction_identity, i.completed_at AS "ended_at!", i.structured_data AS data,
    i.needs_human_review AS flagged, i.status = 'failed' AS "failed!", r.data_after AS decided
FROM document_revision r
JOIN document d ON d.id = r.document_id
JOIN LATERAL (
    SELECT x.* FROM ingestion x WHERE x.document_id = d.id AND x.status <> 'cancelled'
    ORDER BY x.created_at DESC, x.id DESC LIMIT 1
) AS i ON true
WHERE r.id < $1 AND r.id > $5 AND NOT r.awaits_second
  AND abs(hashtextextended(r.document_id::text, 0) % 1000000) < $6::float8 * 1000000 AND r.decision IN ('accepted', 'corrected')
  AND i.completed_at IS NOT NULL AND i.reader IN ('rules', 'llm') AND i.kind IS NOT NULL
  AND i.transcription_file_path IS NOT NULL AND jsonb_typeof(r.data_after) = 'object'
  AND ($2::text IS NULL OR COALESCE(d.tenant, i.tenant) = $2)
  AND ($3::text IS NULL OR i.kind = $3)
  -- The newest decision that holds.
  AND NOT EXISTS (SELECT 1 FROM document_revision u
    WHERE u.document_id = r.document_id AND u.undoes = r.id)
  AND NOT EXISTS (SELECT 1 FROM document_revision n
    WHERE n.document_id = r.document_id AND n.id > r.id AND NOT n.awaits_second
      AND n.undoes IS NULL AND NOT EXISTS (SELECT 1 FROM document_revision u
        WHERE u.document_id = r.document_id AND u.undoes = n.id))
ORDER BY r.id DESC LIMIT $4
"#,
        before,
        wanted.tenant,
        wanted.kind,
        i64::from(limit),
        wanted.after,
        wanted.share,
    )
    .fetch_all(db.pool())
    .await
    .context("listing documents to replay")
}
