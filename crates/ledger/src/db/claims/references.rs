//! References to what an attempt has stored: its transcript, the replies of models.
//!
//! Without waiting for the disk: the referenced artefact is in the store under the same identity. A
//! row that is locked, by a heartbeat for example, is waited for alone.

use serde::Serialize;
use uuid::Uuid;

use super::coalesce::{BatchedStatement, RowAnswer};
use super::{saturating_int, write_result};
use crate::db::{Db, SqlErrorContext};
use crate::{StoredTranscript, WriteResult, stored};
use docmill_core::fault::Result;
use docmill_core::model::{ArtefactRef, ClaimToken, IngestionId};

/// Writes references under the tokens of their claims; see
/// [`crate::AttemptLedger::save_transcription`] and
/// [`crate::AttemptLedger::save_extraction`].
pub(super) struct ReferenceStatement;

/// A reference in the form the statement reads.
#[derive(Debug, Serialize)]
pub(super) struct ReferenceRow {
    id: Uuid,
    token: Uuid,
    path: String,
    identity: String,
    /// Of a transcript; none: replies are referenced.
    #[serde(flatten)]
    transcript: Option<TranscriptColumns>,
}

#[derive(Debug, Serialize)]
struct TranscriptColumns {
    quality: f64,
    sha256: String,
    pages: i32,
    preprocessed_path: Option<String>,
    preprocessed_sha256: Option<String>,
}

impl ReferenceRow {
    /// The reference to a transcript.
    pub(super) fn to_transcript(
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Self {
        let transcript = TranscriptColumns {
            quality: f64::from(saved.quality),
            sha256: saved.sha256.clone(),
            pages: saturating_int(saved.pages),
            preprocessed_path: saved.preprocessed.as_ref().map(|file| file.path.clone()),
            preprocessed_sha256: saved.preprocessed.as_ref().map(|file| file.sha256.clone()),
        };
        Self { transcript: Some(transcript), ..Self::to_replies(id, token, &saved.artefact) }
    }

    /// The reference to stored replies of models.
    pub(super) fn to_replies(id: IngestionId, token: ClaimToken, artefact: &ArtefactRef) -> Self {
        Self {
            id: id.0,
            token: token.0,
            path: stored::strip_nul(&artefact.path).into_owned(),
            identity: stored::strip_nul(&artefact.identity).into_owned(),
            transcript: None,
        }
    }
}

impl BatchedStatement for ReferenceStatement {
    type Row = ReferenceRow;
    type Answer = WriteResult;

    async fn run_together(db: &Db, rows: &[ReferenceRow]) -> Result<Vec<RowAnswer<WriteResult>>> {
        let written = sqlx::query!(
            r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
), asked AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS a (
        id uuid, token uuid, path text, identity text, quality double precision, sha256 text,
        pages int, preprocessed_path text, preprocessed_sha256 text)
    -- All there are: read as one row by the planner (see `claims.rs`).
    WHERE a.id BETWEEN '00000000-0000-0000-0000-000000000000'
        AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), held AS MATERIALIZED (
    SELECT a.* FROM ingestion i JOIN asked a ON a.id = i.id AND a.token = i.claim_token
    ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), transcript AS (
    UPDATE ingestion i SET
        transcription_file_path = a.path, transcription_identity = a.identity,
        transcription_quality_score = a.quality, sha256 = a.sha256, pages = a.pages,
        preprocessed_file_path = a.preprocessed_path,
        preprocessed_sha256 = a.preprocessed_sha256, updated_at = c.now,
        -- A transcript that is used again is no progress.
        accused_at = CASE WHEN i.transcription_identity IS NOT DISTINCT FROM a.identity
            THEN i.accused_at END,
        crashes = CASE WHEN i.transcription_identity IS NOT DISTINCT FROM a.identity
            THEN i.crashes ELSE 0 END
    FROM held a, clock c
    WHERE i.id = a.id AND a.token = i.claim_token AND a.sha256 IS NOT NULL
    RETURNING i.id, a.token
), replies AS (
    UPDATE ingestion i SET
        extraction_output_file_path = a.path, extraction_identity = a.identity,
        updated_at = c.now, accused_at = NULL, crashes = 0
    FROM held a, clock c
    WHERE i.id = a.id AND a.token = i.claim_token AND a.sha256 IS NULL
    RETURNING i.id, a.token
), written AS (
    SELECT id, token FROM transcript UNION ALL SELECT id, token FROM replies
)
SELECT id AS "id!", token AS "token!", true AS "written!" FROM written
UNION ALL
SELECT a.id, a.token, false FROM asked a
WHERE (a.id, a.token) NOT IN (SELECT w.id, w.token FROM written w)
  AND EXISTS (SELECT 1 FROM ingestion i WHERE i.id = a.id AND i.claim_token = a.token)
"#,
            sqlx::types::Json(rows) as _,
        )
        .fetch_all(db.pool())
        .await
        .context("referencing artefacts")?;
        let answer = |row: &ReferenceRow| {
            let own = written.iter().find(|it| (it.id, it.token) == (row.id, row.token));
            match own {
                Some(row) if row.written => RowAnswer::Given(WriteResult::Applied),
                Some(_) => RowAnswer::Locked,
                None => RowAnswer::Given(WriteResult::ClaimLost),
            }
        };
        Ok(rows.iter().map(answer).collect())
    }

    async fn run_alone(db: &Db, row: &ReferenceRow) -> Result<WriteResult> {
        let Some(transcript) = &row.transcript else { return refer_to_replies(db, row).await };
        let done = sqlx::query!(
            "WITH clock AS MATERIALIZED (
                 SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast)
             UPDATE ingestion i SET
                 transcription_file_path = $3, transcription_identity = $4,
                 transcription_quality_score = $5, sha256 = $6, pages = $7,
                 preprocessed_file_path = $8, preprocessed_sha256 = $9, updated_at = c.now,
                 accused_at = CASE WHEN i.transcription_identity IS NOT DISTINCT FROM $4
                     THEN i.accused_at END,
                 crashes = CASE WHEN i.transcription_identity IS NOT DISTINCT FROM $4
                     THEN i.crashes ELSE 0 END
             FROM clock c
             WHERE i.id = $1 AND i.claim_token = $2",
            row.id,
            row.token,
            row.path,
            row.identity,
            transcript.quality,
            transcript.sha256,
            transcript.pages,
            transcript.preprocessed_path,
            transcript.preprocessed_sha256,
        )
        .execute(db.pool())
        .await
        .context("referencing the transcript")?;
        Ok(write_result(done.rows_affected()))
    }
}

async fn refer_to_replies(db: &Db, row: &ReferenceRow) -> Result<WriteResult> {
    let done = sqlx::query!(
        "WITH clock AS MATERIALIZED (
             SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast)
         UPDATE ingestion i SET
             extraction_output_file_path = $3, extraction_identity = $4, updated_at = c.now,
             accused_at = NULL, crashes = 0
         FROM clock c
         WHERE i.id = $1 AND i.claim_token = $2",
        row.id,
        row.token,
        row.path,
        row.identity,
    )
    .execute(db.pool())
    .await
    .context("referencing the reply")?;
    Ok(write_result(done.rows_affected()))
}
