//! Changing the course of ingestions: once more, not at all, not now.

use std::time::Duration;

use serde::Serialize;

use crate::db::Db;
use crate::db::operate::{self, Operator};
use crate::fault::{Error, Result};
use crate::ledger::Pause;
use crate::model::IngestionId;
use crate::queue::{Outgoing, Queue};

/// What became of one ingestion that was to be retried or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It had ended; it is open again and its message is sent.
    Reopened,
    /// It was waiting; it is due now and its message is sent again.
    SentAgain,
    /// A worker has it right now; nothing was done.
    BeingWorkedOn,
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
    by: &Operator,
) -> Result<Vec<Changed>> {
    let reopened = operate::reopen(db, ids, by).await?;
    let open: Vec<_> = ids.iter().copied().filter(|id| !reopened.contains(id)).collect();
    let hurried = operate::hurry(db, &open).await?;
    let due: Vec<_> = reopened.iter().chain(&hurried).copied().collect();
    let sent = send(queue, &due).await;
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

/// Sends a message for each.
async fn send(queue: &dyn Queue, ids: &[IngestionId]) -> Vec<Result<()>> {
    if ids.is_empty() {
        return Vec::new();
    }
    let messages: Vec<_> =
        ids.iter().map(|id| Outgoing { body: id.to_string(), delay: Duration::ZERO }).collect();
    queue.send(&messages).await
}

/// Withdraws ingestions. The messages of those that were waiting find nothing to do.
///
/// # Errors
/// No answer from Postgres.
pub async fn cancel(db: &Db, ids: &[IngestionId], by: &Operator) -> Result<Vec<Changed>> {
    let cancelled = operate::cancel(db, ids, by).await?;
    let line = |id: &IngestionId| {
        let done = cancelled.contains(id);
        let change = if done { Change::Cancelled } else { Change::AlreadyEnded };
        Changed { ingestion_id: *id, change, problem: None }
    };
    Ok(ids.iter().map(line).collect())
}

/// Stops workers from taking up what `what` says; they obey within seconds. `false`: it was so.
///
/// # Errors
/// No answer from Postgres; an empty name.
pub async fn pause(db: &Db, what: &Pause, by: &Operator) -> Result<bool> {
    let (scope, name) = parts(what)?;
    operate::pause(db, scope, name, by).await
}

/// The contrary of [`pause`].
///
/// # Errors
/// No answer from Postgres; an empty name.
pub async fn resume(db: &Db, what: &Pause, by: &Operator) -> Result<bool> {
    let (scope, name) = parts(what)?;
    operate::resume(db, scope, name, by).await
}

fn parts(what: &Pause) -> Result<(&'static str, &str)> {
    let (scope, name) = match what {
        Pause::All => return Ok(("all", "")),
        Pause::Kind(name) => ("kind", name),
        Pause::Tenant(name) => ("tenant", name),
        Pause::Provider(name) => ("provider", name),
    };
    if name.is_empty() {
        return Err(Error::internal(format!("a {scope} without name cannot be paused or resumed")));
    }
    Ok((scope, name))
}
