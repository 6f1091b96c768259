//! Decisions of reviewers, each with its row in `document_revision` in one transaction, under the lock
//! of the document's row: whether it is as it was seen, who has it, and whether a second person is
//! needed is read there. Whether data fits its kind, and what needs two, is the caller's to say.

use std::time::Duration;

use serde_json::Value;
use sqlx::{Executor, Postgres};
use time::OffsetDateTime;
use uuid::Uuid;

use super::leases::ReviewHold;
use super::{PendingDecision, ReviewCase, ReviewDecision};
use crate::db::claims::children;
use crate::db::connection::statements::StatementTransaction;
use crate::db::operators::AuditNote;
use crate::db::suppliers::{self, DecidedLesson};
use crate::db::{Db, SqlErrorContext};
use crate::supplier::{LessonSource, SupplierLesson};
use crate::{NewChild, WriteResult};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// Why a document that waits for a second person calls for review.
pub const SECOND_PERSON: &str = "second_person";
/// The trigger's error for a decision that was delivered to others.
const TOLD: &str = "DM001";

/// Longest time of a decision that is recorded, in seconds.
pub const MAX_DECISION_SECONDS: i32 = 86_400;
/// Most keys of a decision that are recorded.
pub const MAX_DECISION_KEYS: i32 = 100_000;

/// The effort of a decision, as the page measured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionEffort {
    /// From the opening of the page on, at most [`MAX_DECISION_SECONDS`].
    pub seconds: i32,
    /// How many keys were pressed, at most [`MAX_DECISION_KEYS`].
    pub keys: i32,
}

/// A decision that is to be written down.
#[derive(Debug, Clone)]
pub struct DecisionDraft<'a> {
    /// The decision.
    pub decision: ReviewDecision,
    /// The document's new data; `None`: nothing.
    pub data: Option<&'a Value>,
    /// Whether two people have to say so.
    pub needs_second: bool,
    /// Whether it also holds while another reviewer has the document.
    pub take_over: bool,
    /// How long it can be undone.
    pub undo: Duration,
    /// Its effort, if it was measured.
    pub effort: Option<DecisionEffort>,
    /// Facts remembered of the supplier once it holds.
    pub lesson: Option<SupplierLesson>,
    /// The documents that the file is cut into, which become children of its newest ingestion.
    pub children: &'a [NewChild],
}

/// How a decision ended.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionEnd {
    /// It is written.
    Recorded(WrittenDecision),
    /// The document is no longer as it was seen; nothing is written.
    Changed,
    /// Somebody else has the document; nothing is written.
    Held(ReviewHold),
    /// It waits for a second person, and this is the first; nothing is written.
    SamePerson,
    /// It waits for a second person, and both decide on the command line by this database login;
    /// nothing is written.
    SameLogin(String),
}

/// A decision as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDecision {
    /// It holds only once a second person has said the same.
    pub awaits_second: bool,
    /// Until when it can be undone; `None`: it cannot.
    pub undo_until: Option<OffsetDateTime>,
}

/// How an undo ended.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoEnd {
    /// The document carries this again.
    Undone(Option<Value>),
    /// No decision exists, or it is undone already.
    Nothing,
    /// Another reviewer has decided.
    Others(String),
    /// The time for it is over.
    TooLate,
    /// Something else has happened to the document since.
    Changed,
}

/// Whether two names of the audit are one person's: a user of the pages is `web:` and a name, on
/// the command line the name alone.
fn is_same_person(one: &str, other: &str) -> bool {
    normalize_person(one) == normalize_person(other)
}

/// The person behind a name, on the web or on the command line.
fn normalize_person(name: &str) -> String {
    name.strip_prefix("web:").unwrap_or(name).trim().to_lowercase()
}

/// A document as it is, its row locked.
struct LockedDocument {
    structured_data: Option<Value>,
    needs_human_review: bool,
    review_reasons: Vec<String>,
    corrected_at: Option<OffsetDateTime>,
    corrected_by: Option<String>,
    updated_at: OffsetDateTime,
    now: OffsetDateTime,
}

impl LockedDocument {
    /// The version of the document's row after a change now.
    fn next_version(&self) -> OffsetDateTime {
        self.now.max(self.updated_at + time::Duration::MICROSECOND)
    }
}

async fn lock_document(
    connection: &mut StatementTransaction,
    document: Uuid,
) -> Result<Option<LockedDocument>> {
    // The clock is asked once the lock is held.
    let locked =
        sqlx::query_scalar!("SELECT id FROM document WHERE id = $1 FOR NO KEY UPDATE", document)
            .fetch_optional(&mut *connection)
            .await
            .context("locking a document")?;
    if locked.is_none() {
        return Ok(None);
    }
    sqlx::query_as!(
        LockedDocument,
        r#"SELECT structured_data, needs_human_review, review_reasons, corrected_at, corrected_by,
             updated_at, docmill_now() AS "now!" FROM document WHERE id = $1"#,
        document,
    )
    .fetch_optional(&mut *connection)
    .await
    .context("reading a document that is decided about")
}

/// The decision that waits for a second person, if nothing else has happened since.
pub(super) async fn find_pending<'e>(
    executor: impl Executor<'e, Database = Postgres>,
    document: Uuid,
) -> Result<Option<PendingDecision>> {
    sqlx::query_as!(
        PendingDecision,
        r#"
SELECT p.id, p.reviewer, p.decision, p.decided_at, p.data_after AS "data!"
FROM document d
CROSS JOIN LATERAL (
    SELECT r.* FROM document_revision r WHERE r.document_id = d.id ORDER BY r.id DESC LIMIT 1
) AS last
LEFT JOIN document_revision undone ON undone.id = last.undoes
JOIN document_revision p ON p.document_id = d.id AND p.awaits_second
    AND p.id = CASE WHEN last.undoes IS NULL THEN last.id ELSE undone.awaiting_before END
WHERE d.id = $1 AND last.version_after = d.updated_at
"#,
        document,
    )
    .fetch_optional(executor)
    .await
    .context("looking for a decision that waits for a second person")
}

/// The database login of both decisions, if both are made on the command line: there a name is a word
/// of the environment, and only the login is checked by Postgres.
async fn find_shared_login(
    connection: &mut StatementTransaction,
    first: &PendingDecision,
    by: &AuditNote,
) -> Result<Option<String>> {
    if [&first.reviewer, &by.operator].iter().any(|name| name.starts_with("web:")) {
        return Ok(None);
    }
    let login = sqlx::query_scalar!(
        "SELECT login FROM document_revision WHERE id = $1 AND login = session_user::text",
        first.id,
    );
    let found = login.fetch_optional(connection).await.context("asking who decided first")?;
    Ok(found.flatten())
}

async fn find_other_holder(
    connection: &mut StatementTransaction,
    document: Uuid,
    by: &AuditNote,
) -> Result<Option<ReviewHold>> {
    let found = sqlx::query_as!(
        ReviewHold,
        "SELECT reviewer, taken_at AS since, expires_at AS until FROM review_lease
         WHERE document_id = $1 AND expires_at > (SELECT docmill_now()) FOR UPDATE",
        document,
    )
    .fetch_optional(connection)
    .await
    .context("asking who has a document")?;
    Ok(found.filter(|hold| !is_same_person(&hold.reviewer, &by.operator)))
}

/// Writes a decision down: the document carries its data from now on, and no ingestion overwrites
/// it; or it waits for a second person. The lease of the document ends.
///
/// # Errors
/// No answer from Postgres.
pub async fn record_decision(
    db: &Db,
    case: &ReviewCase,
    draft: &DecisionDraft<'_>,
    by: &AuditNote,
) -> Result<DecisionEnd> {
    let doing = "recording a decision";
    let mut transaction = db.pool().begin().await.context(doing)?;
    let held = lock_document(&mut transaction, case.document_id).await?;
    let Some(held) = held.filter(|held| held.updated_at == case.version) else {
        return Ok(DecisionEnd::Changed);
    };
    let holder = find_other_holder(&mut transaction, case.document_id, by).await?;
    if let Some(holder) = holder.filter(|_| !draft.take_over) {
        return Ok(DecisionEnd::Held(holder));
    }
    let pending = find_pending(&mut transaction, case.document_id).await?;
    let same_said =
        pending.as_ref().filter(|it| draft.needs_second && Some(&it.data) == draft.data);
    if same_said.is_some_and(|first| is_same_person(&first.reviewer, &by.operator)) {
        return Ok(DecisionEnd::SamePerson);
    }
    if let Some(first) = same_said
        && let Some(login) = find_shared_login(&mut transaction, first, by).await?
    {
        return Ok(DecisionEnd::SameLogin(login));
    }
    let revision = NewRevision {
        case,
        draft,
        by,
        pending: pending.as_ref().map(|it| it.id),
        first_by: same_said.map(|first| first.reviewer.as_str()),
        awaits_second: draft.needs_second && same_said.is_none(),
        undo_until: (!draft.undo.is_zero()).then(|| held.now + draft.undo),
    };
    insert_revision(&mut transaction, &held, &revision).await?;
    carry_decision(&mut transaction, &held, &revision).await?;
    teach(&mut transaction, &held, &revision).await?;
    super::drafts::end_unfinished(&mut transaction, case.document_id).await?;
    if let Some(parent) = case.ingestion_id.filter(|_| !draft.children.is_empty()) {
        let parent = IngestionId(parent);
        let adding = children::insert_children(&mut transaction, parent, None, draft.children);
        if adding.await? == WriteResult::ClaimLost {
            // It is worked on again: nothing is committed.
            return Ok(DecisionEnd::Changed);
        }
    }
    transaction.commit().await.context(doing)?;
    let NewRevision { awaits_second, undo_until, .. } = revision;
    Ok(DecisionEnd::Recorded(WrittenDecision { awaits_second, undo_until }))
}

struct NewRevision<'a> {
    case: &'a ReviewCase,
    draft: &'a DecisionDraft<'a>,
    by: &'a AuditNote,
    pending: Option<i64>,
    first_by: Option<&'a str>,
    awaits_second: bool,
    undo_until: Option<OffsetDateTime>,
}

async fn insert_revision(
    connection: &mut StatementTransaction,
    held: &LockedDocument,
    new: &NewRevision<'_>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO document_revision (document_id, ingestion_id, decided_at, reviewer, decision,
             why, reasons_before, data_before, data_after, awaits_second, first_by, awaiting_before,
             undo_until, version_after, needed_before, corrected_at_before, corrected_by_before,
             seconds_spent, keys_pressed)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19)",
        new.case.document_id,
        new.case.ingestion_id,
        held.now,
        new.by.operator,
        new.draft.decision.code(),
        new.by.why,
        &held.review_reasons,
        held.structured_data,
        new.draft.data,
        new.awaits_second,
        new.first_by,
        new.pending,
        new.undo_until,
        held.next_version(),
        held.needs_human_review,
        held.corrected_at,
        held.corrected_by,
        new.draft.effort.map(|effort| effort.seconds),
        new.draft.effort.map(|effort| effort.keys),
    )
    .execute(connection)
    .await
    .context("writing a decision down")?;
    Ok(())
}

async fn carry_decision(
    connection: &mut StatementTransaction,
    held: &LockedDocument,
    new: &NewRevision<'_>,
) -> Result<()> {
    let done = match new.awaits_second {
        true => {
            let mut reasons = held.review_reasons.clone();
            if !reasons.iter().any(|reason| reason == SECOND_PERSON) {
                reasons.push(SECOND_PERSON.to_owned());
            }
            sqlx::query!(
                "UPDATE document SET needs_human_review = true, review_reasons = $2, updated_at = $3
                 WHERE id = $1",
                new.case.document_id,
                &reasons,
                held.next_version(),
            )
            .execute(connection)
            .await
        }
        false => {
            sqlx::query!(
                "UPDATE document SET structured_data = $2, corrected_at = $3, corrected_by = $4,
                     needs_human_review = false, review_reasons = '{}', updated_at = $5
                 WHERE id = $1",
                new.case.document_id,
                new.draft.data,
                held.now,
                new.by.operator,
                held.next_version(),
            )
            .execute(connection)
            .await
        }
    };
    done.context("carrying a decision into its document").map(drop)
}

/// Remembers the supplier by a decision that holds. One that waits for a second person teaches nothing.
async fn teach(
    connection: &mut StatementTransaction,
    held: &LockedDocument,
    new: &NewRevision<'_>,
) -> Result<()> {
    let source = match new.draft.decision {
        ReviewDecision::Accepted => LessonSource::Accepted,
        ReviewDecision::Corrected => LessonSource::Corrected,
        ReviewDecision::Rejected | ReviewDecision::Undone => return Ok(()),
    };
    let taught = new.draft.lesson.as_ref().filter(|_| !new.awaits_second);
    let (Some(lesson), Some(ingestion)) = (taught, new.case.ingestion_id) else { return Ok(()) };
    let (document, decided_at) = (new.case.document_id, held.now);
    let decided = DecidedLesson { document, ingestion, lesson, source, decided_at };
    suppliers::learn_decision(connection, &decided).await
}

/// The newest decision about a document.
struct LastDecision {
    id: i64,
    reviewer: String,
    decision: String,
    undo_until: Option<OffsetDateTime>,
    version_after: Option<OffsetDateTime>,
    data_before: Option<Value>,
    reasons_before: Vec<String>,
    needed_before: Option<bool>,
    corrected_at_before: Option<OffsetDateTime>,
    corrected_by_before: Option<String>,
}

/// Undoes the newest decision about a document: it is as it was before, and the undo is written
/// beside the decision. Undone decisions are never delivered.
///
/// # Errors
/// No answer from Postgres.
pub async fn undo_decision(db: &Db, document: Uuid, by: &AuditNote) -> Result<UndoEnd> {
    let doing = "undoing a decision";
    let mut transaction = db.pool().begin().await.context(doing)?;
    let Some(held) = lock_document(&mut transaction, document).await? else {
        return Ok(UndoEnd::Nothing);
    };
    let last = sqlx::query_as!(
        LastDecision,
        "SELECT id, reviewer, decision, undo_until, version_after, data_before, reasons_before,
             needed_before, corrected_at_before, corrected_by_before
         FROM document_revision WHERE document_id = $1 ORDER BY id DESC LIMIT 1",
        document,
    )
    .fetch_optional(&mut transaction)
    .await
    .context("looking for the decision to be undone")?;
    let Some(last) = last.filter(|last| last.decision != ReviewDecision::Undone.code()) else {
        return Ok(UndoEnd::Nothing);
    };
    if !is_same_person(&last.reviewer, &by.operator) {
        return Ok(UndoEnd::Others(last.reviewer));
    }
    if last.version_after != Some(held.updated_at) {
        return Ok(UndoEnd::Changed);
    }
    if last.undo_until.is_none_or(|until| held.now >= until) {
        return Ok(UndoEnd::TooLate);
    }
    if !insert_undo(&mut transaction, document, &held, &last, by).await? {
        return Ok(UndoEnd::TooLate);
    }
    sqlx::query!(
        "UPDATE document SET structured_data = $2, corrected_at = $3, corrected_by = $4,
             needs_human_review = $5, review_reasons = $6, updated_at = $7
         WHERE id = $1",
        document,
        last.data_before,
        last.corrected_at_before,
        last.corrected_by_before,
        last.needed_before.unwrap_or(true),
        &last.reasons_before,
        held.next_version(),
    )
    .execute(&mut transaction)
    .await
    .context("restoring the data of a document")?;
    transaction.commit().await.context(doing)?;
    Ok(UndoEnd::Undone(last.data_before))
}

/// `false`: the decision was delivered in this very moment.
async fn insert_undo(
    connection: &mut StatementTransaction,
    document: Uuid,
    held: &LockedDocument,
    last: &LastDecision,
    by: &AuditNote,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO document_revision (document_id, decided_at, reviewer, decision, why, undoes,
             reasons_before, data_before, data_after, version_after, needed_before,
             corrected_at_before, corrected_by_before)
         VALUES ($1, $2, $3, 'undone', $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        document,
        held.now,
        by.operator,
        by.why,
        last.id,
        &held.review_reasons,
        held.structured_data,
        last.data_before,
        held.next_version(),
        held.needs_human_review,
        held.corrected_at,
        held.corrected_by,
    )
    .execute(connection)
    .await;
    match done {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(TOLD) => Ok(false),
        other => other.context("writing an undo down").map(|_| true),
    }
}

/// Until when this reviewer can undo the newest decision about a document; `None`: not.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_undoable(db: &Db, document: Uuid, by: &str) -> Result<Option<OffsetDateTime>> {
    let found = sqlx::query!(
        r#"
SELECT r.reviewer, r.undo_until AS "until!"
FROM document d
CROSS JOIN LATERAL (
    SELECT * FROM document_revision x WHERE x.document_id = d.id ORDER BY x.id DESC LIMIT 1
) AS r
WHERE d.id = $1 AND r.version_after = d.updated_at AND r.undoes IS NULL
  AND r.undo_until > (SELECT docmill_now())
"#,
        document,
    )
    .fetch_optional(db.pool())
    .await
    .context("asking whether a decision can be undone")?;
    Ok(found.filter(|row| is_same_person(&row.reviewer, by)).map(|row| row.until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_has_the_same_name_on_pages_and_on_the_command_line() {
        for (one, other, same) in [
            ("web:ann", "ann", true),
            ("web:Ann", "web:ann", true),
            ("ann", "web:bob", false),
            ("web:ann", "web:anna", false),
        ] {
            assert_eq!(is_same_person(one, other), same, "{one} {other}");
        }
    }
}
