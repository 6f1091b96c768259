//! Dead letters: what they stand for, sending lost triggers again, and moving them back by hand.
//!
//! A message lands in the dead-letter queue when it was received too often, whatever its row says.
//! A live row's dead letter is a lost trigger; a completed row's stands for nothing; a failed
//! row's stays, for a person to look at, reopen and redrive.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::db::Db;
use crate::db::janitor::{self as rows, RowState};
use crate::db::operators::{self, By};
use crate::fault;
use crate::metrics;
use crate::model::message::Body;
use crate::model::{IngestionId, Reason, Status};
use crate::queue::{DeadLetter, Outgoing, Queue, Receipt};

/// Letters that are read stay hidden from other readers for so long.
const HIDDEN: Duration = Duration::from_secs(30);
/// Letters asked for at a time.
const AT_A_TIME: usize = 10;

/// A dead letter and what is known about it.
#[derive(Debug, Clone, Serialize)]
pub struct Letter {
    /// The service's id of the message.
    pub message_id: String,
    /// The ingestion it stands for; `None`: it stands for none or for several.
    pub ingestion: Option<IngestionId>,
    /// `no row`, `in-progress`, `completed`, `failed`, `cancelled`, or `not one ingestion`.
    pub state: String,
    /// Why the ingestion failed.
    pub reason: Option<String>,
    /// How often the message was received.
    pub receive_count: u32,
    /// When it was sent, RFC 3339.
    pub sent_at: Option<String>,
    #[serde(skip)]
    receipt: Option<Receipt>,
    #[serde(skip)]
    body: String,
}

/// What a reconciliation did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Live rows whose message was sent again.
    pub revived: usize,
    /// Letters that stand for nothing any more.
    pub cleared: usize,
    /// Live rows whose attempts are used up by crashes: they failed, their letters stay.
    pub given_up: usize,
}

/// What a redrive did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Redriven {
    /// Ingestions reopened (or still open) and sent again.
    pub sent: Vec<IngestionId>,
    /// Letters sent again as they were: they stand for several ingestions.
    pub as_they_were: usize,
    /// Letters left where they are.
    pub left: usize,
}

/// Up to `max` dead letters. They stay where they are, hidden from other readers for half a
/// minute.
///
/// # Errors
/// Postgres or the queue does not answer; the queue has no dead-letter queue.
pub async fn list(db: &Db, queue: &dyn Queue, max: usize) -> fault::Result<Vec<Letter>> {
    let mut letters = Vec::new();
    while letters.len() < max {
        let batch = queue.dead_receive((max - letters.len()).min(AT_A_TIME), HIDDEN).await?;
        if batch.is_empty() {
            break;
        }
        letters.extend(batch);
    }
    describe(db, letters).await
}

async fn describe(db: &Db, letters: Vec<DeadLetter>) -> fault::Result<Vec<Letter>> {
    let ids: Vec<Option<IngestionId>> =
        letters.iter().map(|letter| ingestion_of(&letter.delivery.body)).collect();
    let states = states(db, ids.iter().flatten().copied().collect()).await?;
    let letter = |(letter, id): (DeadLetter, Option<IngestionId>)| {
        let row = id.and_then(|id| states.get(&id));
        let DeadLetter { delivery } = letter;
        Letter {
            message_id: delivery.message_id,
            ingestion: id,
            state: match (id, row) {
                (None, _) => "not one ingestion".to_owned(),
                (Some(_), None) => "no row".to_owned(),
                (Some(_), Some(row)) => row.status.code().to_owned(),
            },
            reason: row.and_then(|row| row.reason.clone()),
            receive_count: delivery.receive_count,
            sent_at: delivery.sent_at.and_then(|at| {
                let format = &time::format_description::well_known::Rfc3339;
                time::OffsetDateTime::from(at).format(format).ok()
            }),
            receipt: Some(delivery.receipt),
            body: delivery.body,
        }
    };
    Ok(letters.into_iter().zip(ids.clone()).map(letter).collect())
}

fn ingestion_of(body: &str) -> Option<IngestionId> {
    if let Body::Ingestion(id) = Body::parse(body) { Some(id) } else { None }
}

async fn states(db: &Db, ids: Vec<IngestionId>) -> fault::Result<HashMap<IngestionId, RowState>> {
    let states = rows::row_states(db, &ids).await?;
    Ok(states.into_iter().map(|state| (state.id, state)).collect())
}

/// Sends again what is a lost trigger, fails what no worker survived, deletes what stands for
/// nothing.
///
/// # Errors
/// As [`list`]; without a dead-letter queue there is nothing to do.
pub async fn reconcile(
    db: &Db,
    queue: &dyn Queue,
    (max, crash_limit): (usize, u32),
    dry_run: bool,
) -> fault::Result<Reconciled> {
    let mut done = Reconciled::default();
    if queue.depth().await?.dead.unwrap_or_default() == 0 {
        return Ok(done);
    }
    let letters = list(db, queue, max).await?;
    let states = states(db, letters.iter().filter_map(|l| l.ingestion).collect()).await?;
    for letter in &letters {
        let Some(row) = letter.ingestion.and_then(|id| states.get(&id)) else { continue };
        match (row.status, row.leased) {
            (Status::InProgress, false) if row.crashes >= crash_limit => {
                done.given_up += 1;
                if !dry_run {
                    let detail = format!("dead-lettered after {} deaths", row.crashes);
                    rows::give_up(db, row.id, Reason::Crashed, &detail).await?;
                }
            }
            (Status::InProgress, false) => {
                done.revived += 1;
                if !dry_run {
                    send(db, queue, letter, row.id).await?;
                }
            }
            (Status::Completed | Status::Cancelled, _) => {
                done.cleared += 1;
                if !dry_run {
                    forget(queue, letter).await?;
                }
            }
            (Status::InProgress, true) | (Status::Failed, _) => {}
        }
    }
    Ok(done)
}

/// Reopens the failed ingestions of dead letters and sends them again; `reason` narrows it to one
/// code. Reopened first: a message that came back before its row was open would find it terminal.
///
/// # Errors
/// As [`list`].
pub async fn redrive(
    db: &Db,
    queue: &dyn Queue,
    reason: Option<&str>,
    by: &By,
) -> fault::Result<Redriven> {
    let mut done = Redriven::default();
    for letter in list(db, queue, usize::MAX).await? {
        if reason.is_some() && letter.reason.as_deref() != reason {
            done.left += 1;
            continue;
        }
        match letter.ingestion {
            Some(id) if letter.state != "no row" => {
                operators::reopen(db, &[id], by).await?;
                send(db, queue, &letter, id).await?;
                done.sent.push(id);
            }
            _ if matches!(Body::parse(&letter.body), Body::Group(_) | Body::Objects(_)) => {
                resend_body(queue, &letter, letter.body.clone()).await?;
                done.as_they_were += 1;
            }
            _ => done.left += 1,
        }
    }
    Ok(done)
}

async fn send(db: &Db, queue: &dyn Queue, letter: &Letter, id: IngestionId) -> fault::Result<()> {
    rows::mark_enqueued(db, &[id]).await?;
    metrics::resent(1);
    resend_body(queue, letter, id.to_string()).await
}

/// Sent before it is deleted: a crash in between leaves one message too many, never none.
async fn resend_body(queue: &dyn Queue, letter: &Letter, body: String) -> fault::Result<()> {
    for answer in queue.send(&[Outgoing::now(body)]).await {
        answer?;
    }
    forget(queue, letter).await
}

async fn forget(queue: &dyn Queue, letter: &Letter) -> fault::Result<()> {
    let Some(receipt) = &letter.receipt else { return Ok(()) };
    for answer in queue.dead_acknowledge(std::slice::from_ref(receipt)).await {
        answer?;
    }
    Ok(())
}
