//! Dead letters: what they stand for, sending lost triggers again, and moving them back by hand.
//!
//! A message lands in the dead-letter queue when it was received too often, whatever its row says.
//! A live row's dead letter is a lost trigger; a completed row's stands for nothing; a failed
//! row's stays, for a person to look at, reopen and redrive.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{IngestionId, IngestionStatus, OutcomeReason};
use docmill_ledger::db::Db;
use docmill_ledger::db::janitor::{self as rows, DeadLetterRow};
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_queue::queue::{DeadLetter, MessageQueue, OutgoingMessage, ReceiptHandle};

/// Letters that are read stay hidden from other readers for so long.
const HIDDEN: Duration = Duration::from_secs(30);
/// Letters asked for at a time.
const AT_A_TIME: usize = 10;
/// Letters brought back together.
const AT_ONCE: usize = 100;

/// A dead letter and what is known about it.
#[derive(Debug, Clone, Serialize)]
pub struct DeadLetterView {
    /// The service's id of the message.
    pub message_id: String,
    /// The ingestion it stands for; `None`: it stands for none or for several.
    pub ingestion: Option<IngestionId>,
    /// `no row`, `in-progress`, `completed`, `failed`, `cancelled`, or `not one ingestion`.
    pub state: String,
    /// The reason for which the ingestion failed.
    pub reason: Option<String>,
    /// How often the message was received.
    pub receive_count: u32,
    /// When it was sent, RFC 3339.
    pub sent_at: Option<String>,
    #[serde(skip)]
    receipt: Option<ReceiptHandle>,
    /// What is sent in its place: same tier, tenant and trace.
    #[serde(skip)]
    successor: OutgoingMessage,
}

/// What a reconciliation did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReconcileReport {
    /// Live rows whose message was sent again.
    pub revived: usize,
    /// Letters that stand for nothing any more.
    pub cleared: usize,
    /// Live rows whose attempts are used up by crashes: they failed, their letters stay.
    pub given_up: usize,
}

/// The report of a redrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RedriveReport {
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
pub async fn list_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    max: usize,
) -> fault::Result<Vec<DeadLetterView>> {
    let letters = receive_letters(db, queue, max).await?;
    release_letters(queue, &letters.iter().collect::<Vec<_>>()).await;
    Ok(letters)
}

/// Lets other readers see letters again. One that cannot be released shows again by itself.
async fn release_letters(queue: &dyn MessageQueue, letters: &[&DeadLetterView]) {
    let receipts: Vec<ReceiptHandle> =
        letters.iter().filter_map(|letter| letter.receipt.clone()).collect();
    if receipts.is_empty() {
        return;
    }
    let answers = queue.release_dead(&receipts).await;
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        tracing::debug!(error = %error, "dead letters stay hidden for a while: {error}");
    }
}

/// Up to `max` dead letters, hidden from other readers for half a minute.
async fn receive_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    max: usize,
) -> fault::Result<Vec<DeadLetterView>> {
    let mut letters = Vec::new();
    while letters.len() < max {
        let batch = queue.receive_dead((max - letters.len()).min(AT_A_TIME), HIDDEN).await?;
        if batch.is_empty() {
            break;
        }
        letters.extend(batch);
    }
    describe_letters(db, letters).await
}

async fn describe_letters(db: &Db, letters: Vec<DeadLetter>) -> fault::Result<Vec<DeadLetterView>> {
    let ids: Vec<Option<IngestionId>> =
        letters.iter().map(|letter| ingestion_of(&letter.delivery.body)).collect();
    let states = load_rows(db, ids.iter().flatten().copied().collect()).await?;
    let letter = |(letter, id): (DeadLetter, Option<IngestionId>)| {
        let row = id.and_then(|id| states.get(&id));
        let DeadLetter { delivery } = letter;
        let successor = delivery.to_successor(delivery.body.clone());
        DeadLetterView {
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
    if let MessageBody::Ingestion(id) = MessageBody::parse(body) { Some(id) } else { None }
}

async fn load_rows(
    db: &Db,
    ids: Vec<IngestionId>,
) -> fault::Result<HashMap<IngestionId, DeadLetterRow>> {
    let states = rows::find_dead_letter_rows(db, &ids).await?;
    Ok(states.into_iter().map(|state| (state.id, state)).collect())
}

/// Sends again what is a lost trigger, fails what no worker survived, deletes what stands for
/// nothing.
///
/// # Errors
/// As [`list_letters`]; without a dead-letter queue there is nothing to do.
pub async fn reconcile_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    max: usize,
    crash_limit: u32,
    dry_run: bool,
) -> fault::Result<ReconcileReport> {
    let mut done = ReconcileReport::default();
    if queue.depth().await?.dead.unwrap_or_default() == 0 {
        return Ok(done);
    }
    let letters = receive_letters(db, queue, max).await?;
    let mut left = Vec::new();
    let states = load_rows(db, letters.iter().filter_map(|l| l.ingestion).collect()).await?;
    for letter in &letters {
        let Some(row) = letter.ingestion.and_then(|id| states.get(&id)) else {
            left.push(letter);
            continue;
        };
        match (row.status, row.leased) {
            (IngestionStatus::InProgress, false) if row.crashes >= crash_limit => {
                done.given_up += 1;
                left.push(letter);
                if !dry_run {
                    let detail = format!("dead-lettered after {} deaths", row.crashes);
                    rows::fail_unclaimed(db, row.id, OutcomeReason::Crashed, &detail).await?;
                }
            }
            (IngestionStatus::InProgress, false) => {
                done.revived += 1;
                if !dry_run {
                    send_anew(db, queue, letter, row.id).await?;
                }
            }
            (IngestionStatus::Completed | IngestionStatus::Cancelled, _) => {
                done.cleared += 1;
                if !dry_run {
                    delete_letter(queue, letter).await?;
                }
            }
            (IngestionStatus::InProgress, true) | (IngestionStatus::Failed, _) => left.push(letter),
        }
        if dry_run {
            left.push(letter);
        }
    }
    release_letters(queue, &left).await;
    Ok(done)
}

/// Reopens the failed ingestions of dead letters and sends them again; `reason` narrows it to one
/// code. Reopened first: a message that came back before its row was open would find it terminal.
///
/// # Errors
/// As [`list_letters`].
pub async fn redrive_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    reason: Option<&str>,
    by: &AuditNote,
) -> fault::Result<RedriveReport> {
    let mut done = RedriveReport::default();
    let letters = receive_letters(db, queue, usize::MAX).await?;
    let (mut known, mut several, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for letter in &letters {
        let is_wanted = reason.is_none() || letter.reason.as_deref() == reason;
        match letter.ingestion {
            _ if !is_wanted => left.push(letter),
            Some(id) if letter.state != "no row" => known.push((id, letter)),
            _ if matches!(
                MessageBody::parse(&letter.successor.body),
                MessageBody::Group(_) | MessageBody::Objects(_)
            ) =>
            {
                several.push(letter);
            }
            _ => left.push(letter),
        }
    }
    release_letters(queue, &left).await;
    done.left = left.len();
    for part in known.chunks(AT_ONCE) {
        let ids: Vec<IngestionId> = part.iter().map(|(id, _)| *id).collect();
        operators::reopen_ingestions(db, &ids, by).await?;
        rows::mark_enqueued(db, &ids).await?;
        let letters: Vec<&DeadLetterView> = part.iter().map(|(_, letter)| *letter).collect();
        resend_letters(queue, &letters).await?;
        metrics::count_resent(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        done.sent.extend(ids);
    }
    for part in several.chunks(AT_ONCE) {
        resend_letters(queue, part).await?;
        done.as_they_were += part.len();
    }
    Ok(done)
}

async fn send_anew(
    db: &Db,
    queue: &dyn MessageQueue,
    letter: &DeadLetterView,
    id: IngestionId,
) -> fault::Result<()> {
    rows::mark_enqueued(db, &[id]).await?;
    metrics::count_resent(1);
    resend_letters(queue, &[letter]).await
}

/// Sent before they are deleted: a crash in between leaves messages too many, never one too few.
/// One that was not sent keeps its letter.
async fn resend_letters(
    queue: &dyn MessageQueue,
    letters: &[&DeadLetterView],
) -> fault::Result<()> {
    let messages: Vec<OutgoingMessage> =
        letters.iter().map(|letter| letter.successor.clone()).collect();
    let sent = queue.send(&messages).await;
    let mut failed = None;
    let mut gone = Vec::new();
    for (letter, sent) in letters.iter().zip(sent) {
        match sent {
            Ok(()) => gone.extend(letter.receipt.clone()),
            Err(error) => failed = Some(error),
        }
    }
    for answer in queue.acknowledge_dead(&gone).await {
        answer?;
    }
    failed.map_or(Ok(()), Err)
}

async fn delete_letter(queue: &dyn MessageQueue, letter: &DeadLetterView) -> fault::Result<()> {
    let Some(receipt) = &letter.receipt else { return Ok(()) };
    for answer in queue.acknowledge_dead(std::slice::from_ref(receipt)).await {
        answer?;
    }
    Ok(())
}
