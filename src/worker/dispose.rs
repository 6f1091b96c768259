//! What happens to messages, in batches.
//!
//! Dispositions of many jobs share requests; a job waits for its own to be done, so that its
//! heartbeat outlives it. A failed disposition is tried again a few times and then left: the
//! message comes back and the row answers what to do with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::fault::{self, Fault};
use crate::metrics;
use crate::queue::{Queue, Receipt};

/// How long the first of a batch waits for company: no slot waits with it, and a request for one
/// costs as much as a request for ten.
const LINGER: Duration = Duration::from_millis(20);
/// Requests of one kind at the same time.
const PARALLEL: usize = 8;
/// Most dispositions that go out together.
const BATCH: usize = 100;
/// Tries of one disposition.
const TRIES: u32 = 4;

/// What is done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Deleted for good.
    Acknowledge,
    /// Visible again after this time; zero: at once.
    Hide(Duration),
}

struct Item {
    receipt: Receipt,
    what: Disposition,
    done: oneshot::Sender<()>,
}

/// Takes dispositions and carries them out in batches.
#[derive(Clone)]
pub struct Disposer {
    items: mpsc::Sender<Item>,
}

impl Disposer {
    /// Starts the batching task; it ends when the last `Disposer` is dropped and everything
    /// handed over is done.
    pub fn start(queue: Arc<dyn Queue>) -> Self {
        let (items, inbox) = mpsc::channel(4 * BATCH);
        tokio::spawn(run(queue, inbox));
        Self { items }
    }

    /// Carries out one disposition; returns when it is done, or given up.
    pub async fn dispose(&self, receipt: Receipt, what: Disposition) {
        let (done, finished) = oneshot::channel();
        if self.items.send(Item { receipt, what, done }).await.is_err() {
            tracing::error!("a disposition came after the end of the worker");
            return;
        }
        if finished.await.is_err() {
            tracing::error!("a batch of dispositions died");
        }
    }
}

async fn run(queue: Arc<dyn Queue>, mut inbox: mpsc::Receiver<Item>) {
    let requests = Arc::new(Semaphore::new(PARALLEL));
    loop {
        let mut batch = Vec::new();
        if inbox.recv_many(&mut batch, BATCH).await == 0 {
            break;
        }
        linger(&mut inbox, &mut batch).await;
        let Ok(permit) = Arc::clone(&requests).acquire_owned().await else { break };
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            carry_out(queue.as_ref(), batch).await;
            drop(permit);
        });
    }
}

/// Waits a moment for more, unless there is a full request already.
async fn linger(inbox: &mut mpsc::Receiver<Item>, batch: &mut Vec<Item>) {
    let until = tokio::time::Instant::now() + LINGER;
    while batch.len() < 10 {
        match tokio::time::timeout_at(until, inbox.recv()).await {
            Ok(Some(item)) => batch.push(item),
            Ok(None) | Err(_) => return,
        }
    }
}

async fn carry_out(queue: &dyn Queue, mut items: Vec<Item>) {
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
        }
        items = once(queue, items).await;
        if items.is_empty() {
            return;
        }
    }
    for item in &items {
        metrics::disposition("failed");
        tracing::warn!(what = ?item.what, "a message was left as it is: the queue did not answer");
    }
}

/// One try; returns what failed.
async fn once(queue: &dyn Queue, items: Vec<Item>) -> Vec<Item> {
    let is_acknowledge = |item: &Item| item.what == Disposition::Acknowledge;
    let (deletes, hides): (Vec<Item>, Vec<Item>) = items.into_iter().partition(is_acknowledge);
    let receipts: Vec<Receipt> = deletes.iter().map(|item| item.receipt.clone()).collect();
    let delays: Vec<(Receipt, Duration)> = hides
        .iter()
        .map(|item| match item.what {
            Disposition::Hide(after) => (item.receipt.clone(), after),
            Disposition::Acknowledge => (item.receipt.clone(), Duration::ZERO),
        })
        .collect();
    let (deleted, hidden) = tokio::join!(
        async { if receipts.is_empty() { vec![] } else { queue.acknowledge(&receipts).await } },
        async { if delays.is_empty() { vec![] } else { queue.hide(&delays).await } },
    );
    let mut failed = settle(deletes, deleted, "acknowledge");
    failed.extend(settle(hides, hidden, "hide"));
    failed
}

fn settle(items: Vec<Item>, answers: Vec<fault::Result<()>>, label: &'static str) -> Vec<Item> {
    let mut failed = Vec::new();
    for (item, answer) in items.into_iter().zip(answers) {
        // A receipt that a newer one has replaced: whoever got that one disposes of the message.
        let answer = match answer {
            Err(error) if error.fault == Fault::Missing => Ok(()),
            answer => answer,
        };
        match answer {
            Ok(()) => {
                metrics::disposition(label);
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
