//! What happens to messages, in batches.
//!
//! Dispositions of many jobs share requests; a job waits for its own to be done, so that its
//! heartbeat outlives it. A failed disposition is tried again a few times and then left: the
//! message comes back and the row answers what to do with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::retry::RetryBackoff;
use docmill_queue::queue::{MessageQueue, ReceiptHandle};

/// How long the first of a batch waits for company: no slot waits with it, and a request for one
/// costs as much as a request for ten.
const LINGER: Duration = Duration::from_millis(20);
/// Requests of one kind at the same time.
const PARALLEL: usize = 8;
/// Most dispositions that go out together.
const BATCH: usize = 100;
/// The tries of one disposition.
const BACKOFF: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(200)).with_retries(3);

/// What is done with a message.
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

/// Takes dispositions and carries them out in batches.
#[derive(Clone)]
pub struct AckBatcher {
    items: mpsc::Sender<PendingDisposition>,
}

impl AckBatcher {
    /// Starts the batching task; it ends when the last `AckBatcher` is dropped and everything
    /// handed over is done.
    pub fn spawn(queue: Arc<dyn MessageQueue>) -> Self {
        let (items, inbox) = mpsc::channel(4 * BATCH);
        tokio::spawn(run_batches(queue, inbox));
        Self { items }
    }

    /// Carries out one disposition; returns when it is done, or given up.
    pub async fn dispose(&self, receipt: ReceiptHandle, what: MessageDisposition) {
        let (done, finished) = oneshot::channel();
        if self.items.send(PendingDisposition { receipt, what, done }).await.is_err() {
            tracing::error!("a disposition came after the end of the worker");
            return;
        }
        if finished.await.is_err() {
            tracing::error!("a batch of dispositions died");
        }
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

/// Waits a moment for more, unless there is a full request already.
async fn fill_batch(
    inbox: &mut mpsc::Receiver<PendingDisposition>,
    batch: &mut Vec<PendingDisposition>,
) {
    let until = tokio::time::Instant::now() + LINGER;
    while batch.len() < 10 {
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
        tracing::warn!(what = ?item.what, "a message was left as it is: the queue did not answer");
    }
}

/// One try; returns what failed.
async fn try_batch(
    queue: &dyn MessageQueue,
    items: Vec<PendingDisposition>,
) -> Vec<PendingDisposition> {
    let is_acknowledge = |item: &PendingDisposition| item.what == MessageDisposition::Acknowledge;
    let (deletes, hides): (Vec<PendingDisposition>, Vec<PendingDisposition>) =
        items.into_iter().partition(is_acknowledge);
    let receipts: Vec<ReceiptHandle> = deletes.iter().map(|item| item.receipt.clone()).collect();
    let delays: Vec<(ReceiptHandle, Duration)> = hides
        .iter()
        .map(|item| match item.what {
            MessageDisposition::Hide(after) => (item.receipt.clone(), after),
            MessageDisposition::Acknowledge => (item.receipt.clone(), Duration::ZERO),
        })
        .collect();
    let (deleted, hidden) = tokio::join!(
        async { if receipts.is_empty() { vec![] } else { queue.acknowledge(&receipts).await } },
        async { if delays.is_empty() { vec![] } else { queue.hide(&delays).await } },
    );
    let mut failed = settle_answers(deletes, deleted, "acknowledge");
    failed.extend(settle_answers(hides, hidden, "hide"));
    failed
}

fn settle_answers(
    items: Vec<PendingDisposition>,
    answers: Vec<fault::Result<()>>,
    label: &'static str,
) -> Vec<PendingDisposition> {
    let mut failed = Vec::new();
    for (item, answer) in items.into_iter().zip(answers) {
        // A receipt that a newer one has replaced: whoever got that one disposes of the message.
        let answer = match answer {
            Err(error) if error.fault == Fault::Missing => Ok(()),
            answer => answer,
        };
        match answer {
            Ok(()) => {
                metrics::count_disposition(label);
                // The job may have been dropped at the end of a drain; then nobody waits.
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
