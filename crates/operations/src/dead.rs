//! Dead letters: the ingestion behind each, sending lost triggers again, and redrive by hand.
//!
//! A message lands in the dead-letter queue when it was received too often, whatever its row says.
//! A live row's dead letter is a lost trigger; a completed row's is obsolete; a failed row's stays,
//! for a person to inspect, reopen and redrive.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::janitor::ChoreTurn;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{IngestionId, IngestionStatus, OutcomeReason};
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::janitor::{self as rows, DeadLetterRow};
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_queue::{DeadLetter, MessageQueue, OutgoingMessage, ReceiptHandle};

/// Inspected letters stay hidden from other readers this long.
const INSPECTION_HIDE: Duration = Duration::from_secs(30);
/// Letters that are worked on: longer than the work, or they would come round again.
pub(crate) const REDRIVE_HIDE: Duration = Duration::from_secs(600);
/// Letters asked for at a time.
const RECEIVE_BATCH: usize = 10;
/// Letters worked on together.
const REDRIVE_BATCH: usize = 100;

/// A dead letter and what is known about it.
#[derive(Debug, Clone, Serialize)]
pub struct DeadLetterView {
    /// The service's id of the message.
    pub message_id: String,
    /// Its ingestion; `None` if there is none or several.
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
    /// The replacement message: same tier, tenant, trace and history.
    #[serde(skip)]
    successor: OutgoingMessage,
    #[serde(skip)]
    row: Option<DeadLetterRow>,
}

impl DeadLetterView {
    /// Whether it is an event or a group, which intake takes in when it comes again.
    fn stands_for_several(&self) -> bool {
        matches!(
            MessageBody::parse(&self.successor.body),
            MessageBody::Group(_) | MessageBody::Objects(_)
        )
    }

    /// Whether a redrive sends it again.
    pub fn would_be_sent(&self, choice: &LetterChoice) -> bool {
        let is_over =
            |status| matches!(status, IngestionStatus::Completed | IngestionStatus::Cancelled);
        self.is_meant(choice) && !self.status().is_some_and(is_over)
    }

    fn is_meant(&self, choice: &LetterChoice) -> bool {
        self.is_redriven()
            && match choice {
                LetterChoice::All => true,
                LetterChoice::Reason(reason) => self.reason.as_ref() == Some(reason),
                LetterChoice::Named(ids) => self.has_one_of(ids),
            }
    }

    /// Whether its message or its ingestion is among these.
    fn has_one_of(&self, ids: &HashSet<String>) -> bool {
        ids.contains(&self.message_id)
            || self.ingestion.is_some_and(|id| ids.contains(&id.to_string()))
    }

    fn status(&self) -> Option<IngestionStatus> {
        self.row.as_ref().map(|row| row.status)
    }

    /// Whether sending it again may help, or it may go: what a worker holds right now is left, and
    /// what names a row that is not there.
    fn is_redriven(&self) -> bool {
        match &self.row {
            Some(row) => !row.leased,
            None => self.stands_for_several(),
        }
    }
}

/// Which dead letters are sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterChoice {
    /// All of them.
    All,
    /// Those whose ingestion failed for this reason.
    Reason(String),
    /// Those whose message or ingestion has one of these ids.
    Named(HashSet<String>),
}

/// Counts of a reconciliation, or of its dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReconcileReport {
    /// Live rows whose message was sent again.
    pub revived: usize,
    /// Obsolete letters.
    pub cleared: usize,
    /// Live rows whose attempts are used up by crashes: they failed, their letters stay.
    pub given_up: usize,
}

/// How a reconciliation goes about it.
#[derive(Debug, Clone, Copy)]
pub struct ReconcileTerms {
    /// Maximum dead letters read.
    pub most: usize,
    /// Crashed attempts after which a row is failed; see `retry.crash_attempts`.
    pub crash_limit: u32,
    /// Nothing is changed.
    pub dry_run: bool,
}

/// The report of a redrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RedriveReport {
    /// Failed ingestions that were reopened, and open ones that waited; sent again.
    pub sent: Vec<IngestionId>,
    /// Letters sent again unchanged: they name several ingestions.
    pub as_they_were: usize,
    /// Letters of ingestions that were completed or cancelled: deleted.
    pub cleared: usize,
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
    let mut reader = DeadLetterPager::new(queue, INSPECTION_HIDE, max);
    let mut letters = Vec::new();
    loop {
        let batch = reader.read_letters(REDRIVE_BATCH).await?;
        if batch.is_empty() {
            break;
        }
        letters.extend(describe_letters(db, batch).await?);
    }
    reader.release_others(receipts_of(&letters)).await;
    Ok(letters)
}

/// Reads a dead-letter queue once: to its end, to the first letter that comes a second time, or to
/// the limit. The letters read stay hidden from other readers meanwhile.
pub(crate) struct DeadLetterPager<'a> {
    queue: &'a dyn MessageQueue,
    hidden: Duration,
    left: usize,
    seen: HashSet<String>,
    /// Letters that came again: not ours to work on twice.
    again: Vec<ReceiptHandle>,
    is_at_end: bool,
}

impl<'a> DeadLetterPager<'a> {
    pub(crate) fn new(queue: &'a dyn MessageQueue, hidden: Duration, most: usize) -> Self {
        Self {
            queue,
            hidden,
            left: most,
            seen: HashSet::new(),
            again: Vec::new(),
            is_at_end: false,
        }
    }

    /// Up to `most` further letters; empty at the end.
    pub(crate) async fn read_letters(&mut self, most: usize) -> fault::Result<Vec<DeadLetter>> {
        let mut read = Vec::new();
        while !self.is_at_end && read.len() < most && self.left > 0 {
            let wanted = (most - read.len()).min(RECEIVE_BATCH).min(self.left);
            let batch = self.queue.receive_dead(wanted, self.hidden).await?;
            self.is_at_end = batch.is_empty();
            for letter in batch {
                if self.seen.insert(letter.delivery.message_id.clone()) {
                    self.left -= 1;
                    read.push(letter);
                } else {
                    self.is_at_end = true;
                    self.again.push(letter.delivery.receipt);
                }
            }
        }
        Ok(read)
    }

    /// Releases these letters and their duplicates to other readers. A letter that cannot be
    /// released reappears when its visibility timeout ends.
    pub(crate) async fn release_others(self, mut receipts: Vec<ReceiptHandle>) {
        receipts.extend(self.again);
        if receipts.is_empty() {
            return;
        }
        let answers = self.queue.release_dead(&receipts).await;
        if let Some(error) = answers.into_iter().find_map(Result::err) {
            tracing::debug!(error = %error, "dead letters stay hidden for a while: {error}");
        }
    }
}

fn receipts_of<'a>(letters: impl IntoIterator<Item = &'a DeadLetterView>) -> Vec<ReceiptHandle> {
    letters.into_iter().filter_map(|letter| letter.receipt.clone()).collect()
}

async fn describe_letters(db: &Db, letters: Vec<DeadLetter>) -> fault::Result<Vec<DeadLetterView>> {
    let ids: Vec<Option<IngestionId>> =
        letters.iter().map(|letter| ingestion_of(&letter.delivery.body)).collect();
    let states = load_rows(db, ids.iter().flatten().copied().collect()).await?;
    let letter = |(letter, id): (DeadLetter, Option<IngestionId>)| {
        let row = id.and_then(|id| states.get(&id));
        let DeadLetter { delivery } = letter;
        let successor = delivery.to_revival();
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
            row: row.cloned(),
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

/// The action for a letter.
enum DeadLetterAction {
    /// It stays for a person, or until its row can be judged.
    Stay,
    /// It is obsolete.
    Clear,
    /// Its row lost its trigger, or it is an event or a group that intake has not taken in.
    Revive,
    /// No worker survived its row, which fails; the letter stays.
    GiveUp,
}

fn decide_action(letter: &DeadLetterView, crash_limit: u32) -> DeadLetterAction {
    let Some(row) = &letter.row else {
        return if letter.stands_for_several() {
            DeadLetterAction::Revive
        } else {
            DeadLetterAction::Stay
        };
    };
    match row.status {
        IngestionStatus::InProgress if row.leased => DeadLetterAction::Stay,
        IngestionStatus::InProgress if row.crashes >= crash_limit => DeadLetterAction::GiveUp,
        IngestionStatus::InProgress => DeadLetterAction::Revive,
        IngestionStatus::Completed | IngestionStatus::Cancelled => DeadLetterAction::Clear,
        IngestionStatus::Failed => DeadLetterAction::Stay,
    }
}

/// Sends lost triggers again, fails rows whose workers crashed too often, deletes obsolete letters;
/// batch by batch, until `turn` is over.
///
/// # Errors
/// As [`list_letters`]; without a dead-letter queue there is nothing to do.
pub async fn reconcile_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    terms: ReconcileTerms,
    turn: Option<ChoreTurn<'_>>,
) -> fault::Result<ReconcileReport> {
    let mut done = ReconcileReport::default();
    if queue.depth().await?.dead.unwrap_or_default() == 0 {
        return Ok(done);
    }
    let mut reader = DeadLetterPager::new(queue, REDRIVE_HIDE, terms.most);
    let mut left = Vec::new();
    let ended = loop {
        if turn.is_some_and(|turn| turn.is_over()) {
            break Ok(());
        }
        let batch = match reader.read_letters(REDRIVE_BATCH).await {
            Ok(batch) if batch.is_empty() => break Ok(()),
            Ok(batch) => batch,
            Err(error) => break Err(error),
        };
        let receipts: Vec<_> = batch.iter().map(|letter| letter.delivery.receipt.clone()).collect();
        match reconcile_batch(db, queue, batch, &terms, &mut done).await {
            Ok(stay) => left.extend(stay),
            Err(error) => {
                left.extend(receipts);
                break Err(error);
            }
        }
    };
    reader.release_others(left).await;
    ended.map(|()| done)
}

/// Fails a document that workers crashed on; `false` if it is claimed or has ended.
async fn give_up(db: &Db, row: &DeadLetterRow) -> fault::Result<bool> {
    let detail = format!("dead-lettered after {} deaths", row.crashes);
    let failed = rows::fail_unclaimed(db, row.id, OutcomeReason::Crashed, &detail).await?;
    if failed {
        metrics::count_given_up();
        tracing::warn!(ingestion.id = %row.id, "ingestion {} given up: crashed, {detail}", row.id);
    }
    Ok(failed)
}

/// Returns the letters that stay.
async fn reconcile_batch(
    db: &Db,
    queue: &dyn MessageQueue,
    batch: Vec<DeadLetter>,
    terms: &ReconcileTerms,
    done: &mut ReconcileReport,
) -> fault::Result<Vec<ReceiptHandle>> {
    let letters = describe_letters(db, batch).await?;
    let (mut revived, mut cleared, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for letter in &letters {
        match decide_action(letter, terms.crash_limit) {
            DeadLetterAction::Revive => revived.push(letter),
            DeadLetterAction::Clear => cleared.push(letter),
            DeadLetterAction::Stay => left.push(letter),
            DeadLetterAction::GiveUp => {
                left.push(letter);
                if let Some(row) = &letter.row
                    && (terms.dry_run || give_up(db, row).await?)
                {
                    done.given_up += 1;
                }
            }
        }
    }
    done.revived += revived.len();
    done.cleared += cleared.len();
    if terms.dry_run {
        return Ok(receipts_of(&letters));
    }
    let messages = revived.iter().map(|letter| letter.successor.clone()).collect();
    resend_letters(queue, &revived, messages).await?;
    metrics::count_resent(u64::try_from(revived.len()).unwrap_or(u64::MAX));
    let ids: Vec<IngestionId> = revived.iter().filter_map(|letter| letter.ingestion).collect();
    rows::mark_enqueued(db, &ids).await?;
    delete_letters(queue, &cleared).await?;
    Ok(receipts_of(left))
}

/// Reopens the failed ingestions of the chosen dead letters and sends them again. Open ingestions are
/// sent; completed and cancelled ones stay so and their letters are deleted. Reopened first: a message
/// that came back before its row was open would find it terminal. Batch by batch; an error keeps the
/// work done before it.
///
/// # Errors
/// As [`list_letters`].
pub async fn redrive_letters(
    db: &Db,
    queue: &dyn MessageQueue,
    choice: &LetterChoice,
    by: &AuditNote,
) -> fault::Result<RedriveReport> {
    let mut done = RedriveReport::default();
    let mut reader = DeadLetterPager::new(queue, REDRIVE_HIDE, usize::MAX);
    let mut left = Vec::new();
    let ended = loop {
        let batch = match reader.read_letters(REDRIVE_BATCH).await {
            Ok(batch) if batch.is_empty() => break Ok(()),
            Ok(batch) => batch,
            Err(error) => break Err(error),
        };
        let receipts: Vec<_> = batch.iter().map(|letter| letter.delivery.receipt.clone()).collect();
        let letters = match describe_letters(db, batch).await {
            Ok(letters) => letters,
            Err(error) => {
                left.extend(receipts);
                break Err(error);
            }
        };
        let (wanted, others): (Vec<_>, Vec<_>) =
            letters.into_iter().partition(|letter| letter.is_meant(choice));
        left.extend(receipts_of(&others));
        if let Err(error) = redrive_batch(db, queue, &wanted, by, &mut done).await {
            left.extend(receipts_of(&wanted));
            break Err(error);
        }
    };
    done.left = left.len();
    reader.release_others(left).await;
    ended.map(|()| done)
}

fn ingestions_in(letters: &[DeadLetterView], state: IngestionStatus) -> Vec<IngestionId> {
    let letters = letters.iter().filter(|letter| letter.status() == Some(state));
    letters.filter_map(|letter| letter.ingestion).collect()
}

async fn redrive_batch(
    db: &Db,
    queue: &dyn MessageQueue,
    letters: &[DeadLetterView],
    by: &AuditNote,
    done: &mut RedriveReport,
) -> fault::Result<()> {
    let failed = ingestions_in(letters, IngestionStatus::Failed);
    let mut ids = operators::reopen_failed(db, &failed, by).await?;
    ids.extend(ingestions_in(letters, IngestionStatus::InProgress));
    let (sent, over): (Vec<&DeadLetterView>, Vec<&DeadLetterView>) =
        letters.iter().partition(|letter| letter.ingestion.is_none_or(|id| ids.contains(&id)));
    // A person has ordered it: it waits anew for what was not there.
    let messages =
        sent.iter().map(|letter| OutgoingMessage { origin: None, ..letter.successor.clone() });
    resend_letters(queue, &sent, messages.collect()).await?;
    metrics::count_resent(u64::try_from(sent.len()).unwrap_or(u64::MAX));
    rows::mark_enqueued(db, &ids).await?;
    done.as_they_were += sent.iter().filter(|letter| letter.ingestion.is_none()).count();
    done.sent.extend(sent.iter().filter_map(|letter| letter.ingestion));
    // Completed or cancelled, perhaps a moment ago: its letter is obsolete.
    done.cleared += over.len();
    delete_letters(queue, &over).await
}

/// Sends a message for each letter. Sent before they are deleted: a crash in between leaves messages too many, never one too few.
/// One that was not sent keeps its letter.
async fn resend_letters(
    queue: &dyn MessageQueue,
    letters: &[&DeadLetterView],
    messages: Vec<OutgoingMessage>,
) -> fault::Result<()> {
    if letters.is_empty() {
        return Ok(());
    }
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

async fn delete_letters(
    queue: &dyn MessageQueue,
    letters: &[&DeadLetterView],
) -> fault::Result<()> {
    let receipts = receipts_of(letters.iter().copied());
    if receipts.is_empty() {
        return Ok(());
    }
    queue.acknowledge_dead(&receipts).await.into_iter().collect()
}
