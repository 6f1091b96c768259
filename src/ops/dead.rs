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
/// Letters brought back together.
const AT_ONCE: usize = 100;

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
    /// What is sent in its place: same tier, tenant and trace.
    #[serde(skip)]
    successor: Outgoing,
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

/// Up to `max` dead letters, which stay where they are and are seen by the next reader at once.
///
/// # Errors
/// Postgres or the queue does not answer; the queue has no dead-letter queue.
pub async fn list(db: &Db, queue: &dyn Queue, max: usize) -> fault::Result<Vec<Letter>> {
    let letters = take(db, queue, max).await?;
    release(queue, &letters.iter().collect::<Vec<_>>()).await;
    Ok(letters)
}

/// Lets other readers see letters again. One that cannot be released shows again by itself.
async fn release(queue: &dyn Queue, letters: &[&Letter]) {
    let receipts: Vec<Receipt> =
        letters.iter().filter_map(|letter| letter.receipt.clone()).collect();
    if receipts.is_empty() {
        return;
    }
    let answers = queue.dead_release(&receipts).await;
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        tracing::debug!(error = %error, "dead letters stay hidden for a while: {error}");
    }
}

/// Up to `max` dead letters, hidden from other readers for half a minute.
async fn take(db: &Db, queue: &dyn Queue, max: usize) -> fault::Result<Vec<Letter>> {
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
        let successor = delivery.successor(delivery.body.clone());
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
            successor,
            receipt: Some(delivery.receipt),
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
    max: usize,
    crash_limit: u32,
    dry_run: bool,
) -> fault::Result<Reconciled> {
    let mut done = Reconciled::default();
    if queue.depth().await?.dead.unwrap_or_default() == 0 {
        return Ok(done);
    }
    let letters = take(db, queue, max).await?;
    let mut left = Vec::new();
    let states = states(db, letters.iter().filter_map(|l| l.ingestion).collect()).await?;
    for letter in &letters {
        let Some(row) = letter.ingestion.and_then(|id| states.get(&id)) else {
            left.push(letter);
            continue;
        };
        match (row.status, row.leased) {
            (Status::InProgress, false) if row.crashes >= crash_limit => {
                done.given_up += 1;
                left.push(letter);
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
            (Status::InProgress, true) | (Status::Failed, _) => left.push(letter),
        }
        if dry_run {
            left.push(letter);
        }
    }
    release(queue, &left).await;
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
    let letters = take(db, queue, usize::MAX).await?;
    let (mut known, mut several, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for letter in &letters {
        let is_wanted = reason.is_none() || letter.reason.as_deref() == reason;
        match letter.ingestion {
            _ if !is_wanted => left.push(letter),
            Some(id) if letter.state != "no row" => known.push((id, letter)),
            _ if matches!(
                Body::parse(&letter.successor.body),
                Body::Group(_) | Body::Objects(_)
            ) =>
            {
                several.push(letter);
            }
            _ => left.push(letter),
        }
    }
    release(queue, &left).await;
    done.left = left.len();
    for part in known.chunks(AT_ONCE) {
        let ids: Vec<IngestionId> = part.iter().map(|(id, _)| *id).collect();
        operators::reopen(db, &ids, by).await?;
        rows::mark_enqueued(db, &ids).await?;
        let letters: Vec<&Letter> = part.iter().map(|(_, letter)| *letter).collect();
        resend(queue, &letters).await?;
        metrics::resent(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        done.sent.extend(ids);
    }
    for part in several.chunks(AT_ONCE) {
        resend(queue, part).await?;
        done.as_they_were += part.len();
    }
    Ok(done)
}

async fn send(db: &Db, queue: &dyn Queue, letter: &Letter, id: IngestionId) -> fault::Result<()> {
    rows::mark_enqueued(db, &[id]).await?;
    metrics::resent(1);
    resend(queue, &[letter]).await
}

/// Sent before they are deleted: a crash in between leaves messages too many, never one too few.
/// One that was not sent keeps its letter.
async fn resend(queue: &dyn Queue, letters: &[&Letter]) -> fault::Result<()> {
    let messages: Vec<Outgoing> = letters.iter().map(|letter| letter.successor.clone()).collect();
    let sent = queue.send(&messages).await;
    let mut failed = None;
    let mut gone = Vec::new();
    for (letter, sent) in letters.iter().zip(sent) {
        match sent {
            Ok(()) => gone.extend(letter.receipt.clone()),
            Err(error) => failed = Some(error),
        }
    }
    for answer in queue.dead_acknowledge(&gone).await {
        answer?;
    }
    failed.map_or(Ok(()), Err)
}

async fn forget(queue: &dyn Queue, letter: &Letter) -> fault::Result<()> {
    let Some(receipt) = &letter.receipt else { return Ok(()) };
    for answer in queue.dead_acknowledge(std::slice::from_ref(receipt)).await {
        answer?;
    }
    Ok(())
}
