//! The audit: its entries, newest first, and the chain of hashes over them (`audit_link`).
//!
//! Not promised: that an owner of the tables cannot write a whole new chain. A head that is kept
//! elsewhere shows that: it is no longer in the chain.

use serde::Serialize;
use time::OffsetDateTime;

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

/// Links that one page of a filtered list looks through.
const SEARCHED_LINKS: u32 = 2_000;

/// Which entries of the audit are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only by this person or program, as the audit writes it.
    pub who: Option<String>,
    /// Only this action or decision.
    pub action: Option<String>,
    /// Only about this target or document.
    pub target: Option<String>,
    /// Only since then.
    pub since: Option<OffsetDateTime>,
    /// Only before this link.
    pub before: Option<i64>,
}

impl AuditFilter {
    fn is_plain(&self) -> bool {
        let Self { who, action, target, since, before: _ } = self;
        who.is_none() && action.is_none() && target.is_none() && since.is_none()
    }
}

/// An action of an operator or a decision of a reviewer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    /// Its link of the chain; the cursor of the list.
    pub link: i64,
    /// The table of its row.
    pub source: String,
    /// When; of a row that was erased, when it was erased.
    #[serde(with = "time::serde::rfc3339::option")]
    pub at: Option<OffsetDateTime>,
    /// Who; of a row that was erased, the login that erased it.
    pub who: Option<String>,
    /// The database login that wrote it.
    pub login: Option<String>,
    /// The action or decision; `erased`, or `removed` for a row that is gone unseen.
    pub action: String,
    /// The target of an action, or the id of the document of a decision.
    pub target: Option<String>,
    /// The words of who did it.
    pub why: String,
    /// Whether the row is as it was written; `None`: it is gone.
    pub is_whole: Option<bool>,
}

/// A page of the audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// The link before which the next page begins; `None`: there is no more.
    pub next: Option<i64>,
}

/// Up to `limit` entries, newest first. With a filter as many links are looked through as one page may,
/// so that it may have fewer and still a next one.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_entries(db: &Db, filter: &AuditFilter, limit: u32) -> Result<AuditPage> {
    let piece = if filter.is_plain() { limit } else { SEARCHED_LINKS.max(limit) };
    let piece = i64::from(piece);
    let entries = load_entries(db, filter, piece, i64::from(limit)).await?;
    let full = entries.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next = match entries.last().filter(|_| full) {
        Some(last) => Some(last.link),
        None => end_of_piece(db, filter, piece).await?,
    };
    Ok(AuditPage { entries, next })
}

async fn load_entries(
    db: &Db,
    filter: &AuditFilter,
    piece: i64,
    limit: i64,
) -> Result<Vec<AuditEntry>> {
    // A row is found by its key alone, however many links the planner expects.
    sqlx::query_as!(
        AuditEntry,
        r#"
WITH piece AS MATERIALIZED (
    SELECT l.id, l.source, l.row_id, l.digest, l.erased_at, l.erased_by FROM audit_link l
    WHERE ($1::bigint IS NULL OR l.id < $1) ORDER BY l.id DESC LIMIT $2
), entry AS MATERIALIZED (
    SELECT p.id, p.source, p.row_id, p.digest, COALESCE(f.at, p.erased_at) AS at,
        COALESCE(f.who, p.erased_by) AS who, f.login,
        COALESCE(f.action, CASE WHEN p.erased_at IS NULL THEN 'removed' ELSE 'erased' END) AS action,
        f.target, COALESCE(f.why, '') AS why
    FROM piece p LEFT JOIN LATERAL (
        SELECT a.done_at AS at, a.operator AS who, a.login, a.action, a.target, a.why
        FROM operator_action a WHERE p.source = 'operator_action' AND a.id = p.row_id
        UNION ALL
        SELECT r.decided_at, r.reviewer, r.login, r.decision, r.document_id::text, r.why
        FROM document_revision r WHERE p.source = 'document_revision' AND r.id = p.row_id
        LIMIT 1) AS f ON true
), wanted AS MATERIALIZED (
    SELECT * FROM entry e
    WHERE ($4::text IS NULL OR e.who = $4) AND ($5::text IS NULL OR e.action = $5)
      AND ($6::text IS NULL OR e.target = $6) AND ($7::timestamptz IS NULL OR e.at >= $7)
    ORDER BY e.id DESC LIMIT $3
)
SELECT w.id AS "link!", w.source AS "source!", w.at, w.who, w.login, w.action AS "action!", w.target,
    w.why AS "why!", digest_audit_row(w.source, w.row_id) = w.digest AS is_whole
FROM wanted w ORDER BY w.id DESC
"#,
        filter.before,
        piece,
        limit,
        filter.who,
        filter.action,
        filter.target,
        filter.since,
    )
    .fetch_all(db.pool())
    .await
    .context("listing the audit")
}

/// The oldest link of a piece, if there may be older ones that are wanted.
async fn end_of_piece(db: &Db, filter: &AuditFilter, piece: i64) -> Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"SELECT x.id FROM (
             SELECT l.id, l.source, l.row_id FROM audit_link l
             WHERE ($1::bigint IS NULL OR l.id < $1) ORDER BY l.id DESC OFFSET $2::bigint - 1 LIMIT 1) AS x
         LEFT JOIN LATERAL (
             SELECT a.done_at AS at FROM operator_action a
             WHERE x.source = 'operator_action' AND a.id = x.row_id
             UNION ALL
             SELECT r.decided_at FROM document_revision r
             WHERE x.source = 'document_revision' AND r.id = x.row_id
             LIMIT 1) AS f ON true
         WHERE $3::timestamptz IS NULL OR f.at IS NULL OR f.at >= $3"#,
        filter.before,
        piece,
        filter.since,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the end of the audit")
}
