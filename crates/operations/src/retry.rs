//! Changing the course of ingestions: once more, not at all, not now.

use serde::Serialize;
use utoipa::ToSchema;

pub use docmill_ledger::db::operators::{
    AuditNote, PauseRow, PauseScope, block_content, list_pauses, note_download, note_export,
    unblock_content,
};

use crate::sending;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{IngestionId, Priority};
use docmill_ledger::db::reports::{self, IngestionFilter};
use docmill_ledger::db::{Db, operators, operators::routes};
use docmill_queue::MessageQueue;

/// The result for one ingestion that was to be retried or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IngestionAction {
    /// It had ended; it is open again and its message is sent.
    Reopened,
    /// It was waiting; it is due now and its message is sent again.
    SentAgain,
    /// A worker has it right now; it goes on.
    BeingWorkedOn,
    /// It has the new priority, and its message is sent there.
    Moved,
    /// It will not be worked on any more.
    Cancelled,
    /// It had ended before; nothing changed.
    AlreadyEnded,
    /// It is open, but its message could not be sent: the janitor will do that, or try again.
    NotSent,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IngestionChange {
    /// The id of the ingestion.
    #[schema(value_type = uuid::Uuid)]
    pub ingestion_id: IngestionId,
    /// The action taken.
    pub change: IngestionAction,
    /// Why nothing changed, in words.
    pub problem: Option<String>,
}

/// Why an ingestion is not opened again.
const BEING_ERASED: &str = "its document is past its tenant's retention and being erased";
/// Ingestions that one statement changes.
pub const MAX_TOGETHER: usize = 500;
/// Ids that are read together.
const IDS_PER_PAGE: u32 = 10_000;

/// Retries every ingestion that failed for a reason since then, newest first; see
/// [`retry_ingestions`].
///
/// # Errors
/// As [`retry_ingestions`].
pub async fn retry_failed(
    db: &Db,
    queue: &dyn MessageQueue,
    failed: &IngestionFilter,
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    let mut changes = Vec::new();
    for ids in find_matching(db, failed).await?.chunks(MAX_TOGETHER) {
        changes.extend(retry_ingestions(db, queue, ids, by).await?);
    }
    Ok(changes)
}

/// Every ingestion that passes the filter, newest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_matching(db: &Db, filter: &IngestionFilter) -> Result<Vec<IngestionId>> {
    let mut found = Vec::new();
    loop {
        let after = found.last().copied();
        let ids = reports::list_ingestion_ids(db, filter, IDS_PER_PAGE, after).await?;
        if ids.is_empty() {
            return Ok(found);
        }
        found.extend(ids);
    }
}

/// A change of the course of ingestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CourseChange {
    /// See [`retry_ingestions`].
    Retry,
    /// See [`cancel_ingestions`].
    Cancel,
    /// See [`reprioritize_ingestions`].
    Reprioritize(Priority),
}

/// Changes the course of ingestions.
///
/// # Errors
/// As the function of the change.
pub async fn change_ingestions(
    db: &Db,
    queue: &dyn MessageQueue,
    ids: &[IngestionId],
    change: CourseChange,
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    match change {
        CourseChange::Retry => retry_ingestions(db, queue, ids, by).await,
        CourseChange::Cancel => cancel_ingestions(db, ids, by).await,
        CourseChange::Reprioritize(priority) => {
            reprioritize_ingestions(db, queue, ids, priority, by).await
        }
    }
}

/// Works on ingestions once more, from the stored artefacts. Reopened first, then sent:
/// a message for a row that is still closed would be acknowledged as done.
///
/// # Errors
/// No answer from Postgres. A refusal of the queue is reported per ingestion.
pub async fn retry_ingestions(
    db: &Db,
    queue: &dyn MessageQueue,
    ids: &[IngestionId],
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    let reopened = operators::reopen_ingestions(db, ids, by).await?;
    let open: Vec<_> = ids.iter().copied().filter(|id| !reopened.contains(id)).collect();
    let hurried = operators::make_due_now(db, &open).await?;
    let due: Vec<_> = reopened.iter().chain(&hurried).copied().collect();
    let doomed = match ids.len() > due.len() {
        true => operators::find_doomed(db, &open).await?,
        false => Vec::new(),
    };
    let sent = sending::send_messages(db, queue, &due).await?;
    let changes = ids.iter().map(|id| {
        let failed = due.iter().zip(&sent).find(|(due, _)| *due == id).map(|(_, sent)| sent);
        let (change, problem) = match failed {
            None if doomed.contains(id) => {
                (IngestionAction::AlreadyEnded, Some(BEING_ERASED.to_owned()))
            }
            None => (IngestionAction::BeingWorkedOn, None),
            Some(Err(error)) => (IngestionAction::NotSent, Some(error.to_string())),
            Some(Ok(())) if reopened.contains(id) => (IngestionAction::Reopened, None),
            Some(Ok(())) => (IngestionAction::SentAgain, None),
        };
        IngestionChange { ingestion_id: *id, change, problem }
    });
    Ok(changes.collect())
}

/// Characters of a document's password, as PDF has it at most.
const MAX_PASSWORD_CHARS: usize = 127;

/// Gives a password for the document of an ingestion, and works on it once more.
///
/// # Errors
/// `Rejected` for an empty password or one that is too long; no answer from Postgres or the queue.
pub async fn retry_with_password(
    db: &Db,
    queue: &dyn MessageQueue,
    id: IngestionId,
    password: &str,
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    if password.is_empty() || password.chars().count() > MAX_PASSWORD_CHARS {
        let text = format!("a password has 1 to {MAX_PASSWORD_CHARS} characters");
        return Err(Error::new(Fault::Rejected, text));
    }
    operators::give_password(db, id, password, by).await?;
    retry_ingestions(db, queue, &[id], by).await
}

/// Withdraws ingestions. Messages of waiting ones find nothing to do.
///
/// # Errors
/// No answer from Postgres.
pub async fn cancel_ingestions(
    db: &Db,
    ids: &[IngestionId],
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    let cancelled = operators::cancel_ingestions(db, ids, by).await?;
    let changes = ids.iter().map(|id| {
        let done = cancelled.contains(id);
        let change = if done { IngestionAction::Cancelled } else { IngestionAction::AlreadyEnded };
        IngestionChange { ingestion_id: *id, change, problem: None }
    });
    Ok(changes.collect())
}

/// Gives ingestions that have not ended another priority. Waiting ones get a message in its
/// tier; the old message finds the row taken, or ended.
///
/// # Errors
/// No answer from Postgres. A refusal of the queue is reported per ingestion.
pub async fn reprioritize_ingestions(
    db: &Db,
    queue: &dyn MessageQueue,
    ids: &[IngestionId],
    priority: Priority,
    by: &AuditNote,
) -> Result<Vec<IngestionChange>> {
    let open: Vec<_> = routes::filter_open(db, ids).await?;
    let waiting = routes::reprioritize(db, &open, priority, by).await?;
    let sent = sending::send_messages(db, queue, &waiting).await?;
    let changes = ids.iter().map(|id| {
        let answer = waiting.iter().zip(&sent).find(|(of, _)| *of == id).map(|(_, sent)| sent);
        let (change, problem) = match answer {
            Some(Ok(())) => (IngestionAction::Moved, None),
            Some(Err(error)) => (IngestionAction::NotSent, Some(error.to_string())),
            None if open.contains(id) => (IngestionAction::BeingWorkedOn, None),
            None => (IngestionAction::AlreadyEnded, None),
        };
        IngestionChange { ingestion_id: *id, change, problem }
    });
    Ok(changes.collect())
}

/// Stops workers from claiming documents of this scope; it takes effect within seconds.
///
/// # Errors
/// No answer from Postgres; the scope lacks a name, or has one that it must not have.
pub async fn pause_target(db: &Db, what: &PauseTarget, by: &AuditNote) -> Result<()> {
    operators::add_pause(db, what.scope, what.checked_name()?, by).await
}

/// The contrary of [`pause_target`]; `false` if it was not paused.
///
/// # Errors
/// As [`pause_target`].
pub async fn resume_target(db: &Db, what: &PauseTarget, by: &AuditNote) -> Result<bool> {
    operators::remove_pause(db, what.scope, what.checked_name()?, by).await
}

/// The scope of a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseTarget {
    /// Whether everything, a kind, a tenant or a provider is meant.
    pub scope: PauseScope,
    /// Name of the kind, tenant or provider; empty for everything.
    pub name: String,
}

impl PauseTarget {
    fn checked_name(&self) -> Result<&str> {
        if (self.scope == PauseScope::All) == self.name.is_empty() {
            return Ok(&self.name);
        }
        let text = format!("`{}` takes a name exactly if it is not everything", self.scope.code());
        Err(Error::new(Fault::Rejected, text))
    }
}
