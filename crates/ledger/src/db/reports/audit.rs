//! The chain of hashes over the audit (`audit_link`).
//!
//! Not promised: that an owner of the tables cannot write a whole new chain. A head that is kept
//! elsewhere shows that: it is no longer in the chain.

use serde::Serialize;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::digest::encode_hex;

/// Links that one statement reads.
const PAGE_LINKS: i64 = 500;
/// Findings that are listed; the rest is counted.
const MAX_FINDINGS: usize = 100;

/// How a row of the audit differs from the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditDefect {
    /// The row is gone, and nothing says when and by whom.
    Removed,
    /// The row differs from what was written.
    Changed,
    /// The link does not continue the one before: a link is missing or was changed.
    Broken,
    /// The row has no link: it was written past the triggers.
    Unlinked,
}

/// A row of the audit that differs from the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The table: `operator_action` or `document_revision`.
    pub source: String,
    /// The id of the row.
    pub row_id: i64,
    /// How it differs.
    pub defect: AuditDefect,
}

/// The audit, held against its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditCheck {
    /// Links of the chain.
    pub links: u64,
    /// Those whose rows were deleted, by retention or erasure for instance, with when and by whom.
    pub erased: u64,
    /// The hash of the last link, in hex; `None`: the chain is empty.
    pub head: Option<String>,
    /// Whether the head that was asked for is in the chain; `None`: none was asked for.
    pub has_known_head: Option<bool>,
    /// All findings, listed or not.
    pub defects: u64,
    /// At most 100 of them.
    pub findings: Vec<AuditFinding>,
}

impl AuditCheck {
    /// Whether nothing was changed or removed unseen.
    pub fn is_whole(&self) -> bool {
        self.defects == 0 && self.has_known_head != Some(false)
    }

    fn add(&mut self, source: String, row_id: i64, defect: AuditDefect) {
        self.defects += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(AuditFinding { source, row_id, defect });
        }
    }
}

struct LinkRow {
    id: i64,
    source: String,
    row_id: i64,
    digest: Vec<u8>,
    before: Vec<u8>,
    hash: Vec<u8>,
    is_hash: bool,
    is_erased: bool,
    present: Option<Vec<u8>>,
}

impl LinkRow {
    fn find_defect(&self, last: &[u8]) -> Option<AuditDefect> {
        if self.before != last || !self.is_hash {
            return Some(AuditDefect::Broken);
        }
        match &self.present {
            None if !self.is_erased => Some(AuditDefect::Removed),
            Some(present) if *present != self.digest => Some(AuditDefect::Changed),
            _ => None,
        }
    }
}

/// Holds every row of the audit against the chain; `known_head`: a head of an earlier check, in hex.
///
/// # Errors
/// No answer from Postgres.
pub async fn check_audit(db: &Db, known_head: Option<&str>) -> Result<AuditCheck> {
    let mut check = AuditCheck {
        links: 0,
        erased: 0,
        head: None,
        has_known_head: known_head.map(|_| false),
        defects: 0,
        findings: Vec::new(),
    };
    let (mut after, mut last) = (0, Vec::new());
    loop {
        let links = load_links(db, after).await?;
        let Some(newest) = links.last() else { break };
        after = newest.id;
        for link in links {
            check.links += 1;
            check.erased += u64::from(link.is_erased);
            let defect = link.find_defect(&last);
            let hash = encode_hex(&link.hash);
            if known_head.is_some_and(|known| known.eq_ignore_ascii_case(&hash)) {
                check.has_known_head = Some(true);
            }
            check.head = Some(hash);
            last = link.hash;
            if let Some(defect) = defect {
                check.add(link.source, link.row_id, defect);
            }
        }
    }
    for (source, row_id) in load_unlinked(db).await? {
        check.add(source, row_id, AuditDefect::Unlinked);
    }
    Ok(check)
}

async fn load_links(db: &Db, after: i64) -> Result<Vec<LinkRow>> {
    sqlx::query_as!(
        LinkRow,
        r#"SELECT id, source, row_id, digest, before, hash,
             hash = sha256(before || digest) AS "is_hash!", erased_at IS NOT NULL AS "is_erased!",
             digest_audit_row(source, row_id) AS present
         FROM audit_link WHERE id > $1 ORDER BY id LIMIT $2"#,
        after,
        PAGE_LINKS,
    )
    .fetch_all(db.pool())
    .await
    .context("reading the audit")
}

/// Rows without a link, at most one more than are listed.
async fn load_unlinked(db: &Db) -> Result<Vec<(String, i64)>> {
    let found = sqlx::query!(
        r#"SELECT x.source AS "source!", x.id AS "id!" FROM (
             SELECT 'operator_action' AS source, a.id FROM operator_action a
             UNION ALL SELECT 'document_revision', r.id FROM document_revision r) AS x
         WHERE NOT EXISTS (SELECT 1 FROM audit_link l WHERE l.source = x.source AND l.row_id = x.id)
         ORDER BY x.source, x.id LIMIT $1"#,
        i64::try_from(MAX_FINDINGS + 1).unwrap_or(i64::MAX),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for rows past the audit's chain")?;
    Ok(found.into_iter().map(|row| (row.source, row.id)).collect())
}
