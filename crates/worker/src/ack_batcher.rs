//! Acknowledges, hides and releases messages in batches.
//!
//! Dispositions of many jobs share requests. A job waits for its own to be done, so that its
//! heartbeat outlives it. A failed disposition is retried a few times and then dropped: the message
//! is delivered again, and its row decides.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::retry::RetryBackoff;
use docmill_pipeline::failpoint::{FailureSeam, guard_batch};
use docmill_queue::{MessageQueue, ReceiptHandle};

/// How long a batch waits to fill after its first disposition. No slot waits meanwhile, and a
/// request for one costs as much as a request for ten. A longer wait would fill more requests at
/// some hundred jobs a second, but leave as many more messages in flight.
const BATCH_LINGER: Duration = Duration::from_millis(20);
/// Messages in one request.
const REQUEST: usize = 10;
/// Requests of one kind at the same time.
const PARALLEL: usize = 8;
/// Most dispositions that go out together.
const BATCH: usize = 100;
/// The tries of one disposition.
const BACKOFF: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(200)).with_retries(3);

/// The disposition of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDisposition {
    /// The message is deleted for good.
    Acknowledge,
    /// The message is visible again after this time; zero: at once.
    Hide(Duration),
}

struct PendingDisposition {
    receipt: ReceiptHandle,
    what: MessageDisposition,
    done: oneshot::Sender<()>,
}

/// Takes dispositions; [`DispositionInbox::run`] carries them out in batches.
#[derive(Clone)]
pub struct AckBatcher {
    acknowledges: mpsc::Sender<PendingDisposition>,
    hides: mpsc::Sender<PendingDisposition>,
}

/// Executes the submitted dispositions. Deletes and hides are sent separately, so that a queue that
/// does not answer to one does not delay the other.
pub struct DispositionInbox {
    acknowledges: mpsc::Receiver<PendingDisposition>,
    hides: mpsc::Receiver<PendingDisposition>,
}

impl AckBatcher {
    /// The two ends of it.
    pub fn with_inbox() -> (Self, DispositionInbox) {
        let (acknowledges, inbox) = mpsc::channel(4 * BATCH);
        let (hides, other) = mpsc::channel(4 * BATCH);
        (Self { acknowledges, hides }, DispositionInbox { acknowledges: inbox, hides: other })
    }

    /// Carries out one disposition; returns when it is done, or given up.
    pub async fn dispose(&self, receipt: ReceiptHandle, what: MessageDisposition) {
        let (done, finished) = oneshot::channel();
        let items = match what {
            MessageDisposition::Acknowledge => &self.acknowledges,
            MessageDisposition::Hide(_) => &self.hides,
        };
        if items.send(PendingDisposition { receipt, what, done }).await.is_err() {
            tracing::error!("disposition dropped: the worker has ended");
            return;
        }
        if finished.await.is_err() {
            tracing::error!("a batch of dispositions panicked");
        }
    }
}

impl DispositionInbox {
    /// Carries out what is handed over, until the last [`AckBatcher`] is dropped.
    pub async fn run(self, queue: Arc<dyn MessageQueue>) {
        let Self { acknowledges, hides } = self;
        tokio::join!(run_batches(Arc::clone(&queue), acknowledges), run_batches(queue, hides));
    }
}

async fn run_batches(queue: Arc<dyn MessageQueue>, mut inbox: mpsc::Receiver<PendingDisposition>) {
    let requests = Arc::new(Semaphore::new(PARALLEL));
    loop {
        let mut batch = Vec::new();
        if inbox.recv_many(&mut batch, BATCH).await == 0 {
            break;
        }
        fill_batch(&mut inbox, &mut batch).await;
        let Ok(permit) = Arc::clone(&requests).acquire_owned().await else { break };
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            apply_dispositions(queue.as_ref(), batch).await;
            drop(permit);
        });
    }
}

/// Waits up to [`BATCH_LINGER`] for more, unless every request is full.
async fn fill_batch(
    inbox: &mut mpsc::Receiver<PendingDisposition>,
    batch: &mut Vec<PendingDisposition>,
) {
    let until = tokio::time::Instant::now() + BATCH_LINGER;
    while !batch.len().is_multiple_of(REQUEST) {
        match tokio::time::timeout_at(until, inbox.recv()).await {
            Ok(Some(item)) => batch.push(item),
            Ok(None) | Err(_) => return,
        }
    }
}

async fn apply_dispositions(queue: &dyn MessageQueue, mut items: Vec<PendingDisposition>) {
    for failed in 0.. {
        items = try_batch(queue, items).await;
        if items.is_empty() {
            return;
        }
        let Some(wait) = BACKOFF.next_wait(failed) else { break };
        tokio::time::sleep(wait).await;
    }
    for item in &items {
        metrics::count_disposition("failed");
        tracing::warn!(what = ?item.what, "disposition given up: the queue did not answer");
    }
}

/// One try at dispositions of one sort; returns what failed.
async fn try_batch(
    queue: &dyn MessageQueue,
    items: Vec<PendingDisposition>,
) -> Vec<PendingDisposition> {
    let hides: Vec<(ReceiptHandle, Duration)> = items
        .iter()
        .filter_map(|item| match item.what {
            MessageDisposition::Hide(after) => Some((item.receipt.clone(), after)),
            MessageDisposition::Acknowledge => None,
        })
        .collect();
    if hides.len() == items.len() {
        let hiding = queue.hide(&hides);
        let answers = guard_batch(FailureSeam::Hide, hides.len(), hiding).await;
        return settle_answers(items, answers, "hide");
    }
    let receipts: Vec<ReceiptHandle> = items.iter().map(|item| item.receipt.clone()).collect();
    let deleting = queue.acknowledge(&receipts);
    let answers = guard_batch(FailureSeam::Delete, receipts.len(), deleting).await;
    settle_answers(items, answers, "acknowledge")
}

fn settle_answers(
    items: Vec<PendingDisposition>,
    answers: Vec<fault::Result<()>>,
    label: &'static str,
) -> Vec<PendingDisposition> {
    let mut failed = Vec::new();
    for (item, answer) in items.into_iter().zip(answers) {
        // A newer receipt exists: its holder disposes of the message.
        let answer = match answer {
            Err(error) if error.fault == Fault::Missing => Ok(()),
            answer => answer,
        };
        match answer {
            Ok(()) => {
                metrics::count_disposition(label);
                // The job may have been dropped at the end of a drain.
                let _gone = item.done.send(());
            }
            Err(error) => {
                tracing::debug!(error = %error, what = label, "{label} failed");
                failed.push(item);
            }
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> PendingDisposition {
        let (done, _) = oneshot::channel();
        let receipt = ReceiptHandle("a receipt".into());
        PendingDisposition { receipt, what: MessageDisposition::Acknowledge, done }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_for_more_until_full_or_the_linger_ends() {
        let soon = BATCH_LINGER / 2;
        #[rustfmt::skip]
        let table = [
            // pending, late arrivals, batch size, waited
            (10, 3, 10, Duration::ZERO),
            (3, 7, 10, soon),
            (13, 9, 20, soon),
            (3, 4, 7, BATCH_LINGER),
        ];
        for (at_hand, later, together, waited) in table {
            let (items, mut inbox) = mpsc::channel(64);
            let mut batch: Vec<_> = (0..at_hand).map(|_| pending()).collect();
            let company = items.clone();
            tokio::spawn(async move {
                tokio::time::sleep(soon).await;
                for _ in 0..later {
                    let _over_already = company.send(pending()).await;
                }
            });
            let began = tokio::time::Instant::now();
            fill_batch(&mut inbox, &mut batch).await;
            assert_eq!((batch.len(), began.elapsed()), (together, waited), "{at_hand}, {later}");
            drop(items);
        }
    }
}
