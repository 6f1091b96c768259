//! Changing the course of ingestions: once more, not at all, not now.

use serde::Serialize;

pub use crate::db::operators::{By, PauseRow, Scope, block, pauses, unblock};

use crate::db::{Db, operators, routes};
use crate::fault::{Error, Fault, Result};
use crate::model::{IngestionId, Priority};
use crate::ops::sending;
use crate::queue::Queue;

/// What became of one ingestion that was to be retried or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
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
    /// It had ended before; nothing was done.
    AlreadyEnded,
    /// It is open, but its message could not be sent: the janitor will do that, or try again.
    NotSent,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// Which.
    pub ingestion_id: IngestionId,
    /// What happened.
    pub change: Change,
    /// Why not, in words.
    pub problem: Option<String>,
}

/// Works on ingestions once more, from the artefacts that are stored. Reopened first, then sent:
/// a message for a row that is still closed would be acknowledged as done.
///
/// # Errors
/// No answer from Postgres. What the queue refuses is said per ingestion.
pub async fn retry(
    db: &Db,
    queue: &dyn Queue,
    ids: &[IngestionId],
    by: &By,
) -> Result<Vec<Changed>> {
    let reopened = operators::reopen(db, ids, by).await?;
    let open: Vec<_> = ids.iter().copied().filter(|id| !reopened.contains(id)).collect();
    let hurried = operators::hurry(db, &open).await?;
    let due: Vec<_> = reopened.iter().chain(&hurried).copied().collect();
    let sent = sending::send(db, queue, &due).await?;
    let line = |id: &IngestionId| {
        let failed = due.iter().zip(&sent).find(|(due, _)| *due == id).map(|(_, sent)| sent);
        let (change, problem) = match failed {
            None => (Change::BeingWorkedOn, None),
            Some(Err(error)) => (Change::NotSent, Some(error.to_string())),
            Some(Ok(())) if reopened.contains(id) => (Change::Reopened, None),
            Some(Ok(())) => (Change::SentAgain, None),
        };
        Changed { ingestion_id: *id, change, problem }
    };
    Ok(ids.iter().map(line).collect())
}

/// Withdraws ingestions. The messages of those that were waiting find nothing to do.
///
/// # Errors
/// No answer from Postgres.
pub async fn cancel(db: &Db, ids: &[IngestionId], by: &By) -> Result<Vec<Changed>> {
    let cancelled = operators::cancel(db, ids, by).await?;
    let line = |id: &IngestionId| {
        let done = cancelled.contains(id);
        let change = if done { Change::Cancelled } else { Change::AlreadyEnded };
        Changed { ingestion_id: *id, change, problem: None }
    };
    Ok(ids.iter().map(line).collect())
}

/// Gives ingestions that have not ended another priority. Those that wait get a message in its
/// tier; the old one finds the row taken, or ended.
///
/// # Errors
/// No answer from Postgres. What the queue refuses is said per ingestion.
pub async fn reprioritize(
    db: &Db,
    queue: &dyn Queue,
    ids: &[IngestionId],
    priority: Priority,
    by: &By,
) -> Result<Vec<Changed>> {
    let open: Vec<_> = routes::open(db, ids).await?;
    let waiting = routes::reprioritize(db, &open, priority, by).await?;
    let sent = sending::send(db, queue, &waiting).await?;
    let line = |id: &IngestionId| {
        let answer = waiting.iter().zip(&sent).find(|(of, _)| *of == id).map(|(_, sent)| sent);
        let (change, problem) = match answer {
            Some(Ok(())) => (Change::Moved, None),
            Some(Err(error)) => (Change::NotSent, Some(error.to_string())),
            None if open.contains(id) => (Change::BeingWorkedOn, None),
            None => (Change::AlreadyEnded, None),
        };
        Changed { ingestion_id: *id, change, problem }
    };
    Ok(ids.iter().map(line).collect())
}

/// Stops workers from taking up what is named; they obey within seconds.
///
/// # Errors
/// No answer from Postgres; a name that is missing, or one where none belongs.
pub async fn pause(db: &Db, what: &Paused, by: &By) -> Result<()> {
    operators::pause(db, what.scope, what.checked()?, by).await
}

/// The contrary of [`pause`]; `false` if it was not paused.
///
/// # Errors
/// As [`pause`].
pub async fn resume(db: &Db, what: &Paused, by: &By) -> Result<bool> {
    operators::resume(db, what.scope, what.checked()?, by).await
}

/// What is paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Which sort of thing.
    pub scope: Scope,
    /// Which one; empty for everything.
    pub name: String,
}

impl Paused {
    fn checked(&self) -> Result<&str> {
        if (self.scope == Scope::All) == self.name.is_empty() {
            return Ok(&self.name);
        }
        let text = format!("`{}` takes a name exactly if it is not everything", self.scope.code());
        Err(Error::new(Fault::Rejected, text))
    }
}
