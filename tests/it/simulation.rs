//! The real worker, from intake to disposition, under schedules drawn from a seed: two workers over one
//! queue and one ledger, in memory and in paused time, with faults in every call until they cease. At
//! the end everything is counted.
//!
//! `SEED=… ` runs one schedule, `SCHEDULES=…` as many as that. The work itself is a script with the
//! pipeline's order of steps (`work`); the pipeline's own steps have tests of their own. A seed decides
//! every fault and delay; the order in which futures that are ready at the same moment run is the
//! runtime's, so that a seed is a schedule to within that.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod ports;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use docmill::shutdown::Shutdown;
use docmill::worker::QueueWorker;
use docmill_core::config::Config;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, OutcomeReason};
use docmill_queue::queue::{MessageQueue as _, OutgoingMessage};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::memory_queue::MemoryQueue;
use ports::{Chance, FaultyLedger, FaultyQueue, SharedLedger};
use work::{DocumentPlan, ScriptedWork};

const MINUTE: Duration = Duration::from_secs(60);
/// Faults happen for so long.
const TROUBLE: Duration = Duration::from_secs(40 * 60);
/// Everything is over by then.
const PATIENCE: Duration = Duration::from_secs(48 * 3600);
const DOCUMENTS: usize = 6;
const SLOTS: u32 = 3;

/// One schedule: the world and its workers.
struct Schedule {
    chance: Arc<Chance>,
    ledger: Arc<SharedLedger>,
    queue: Arc<MemoryQueue>,
    work: Arc<ScriptedWork>,
    config: Arc<Config>,
    ids: Vec<IngestionId>,
    /// Workers that were started so far.
    started: usize,
    /// Names of those that died, or were at the end of their drain's time.
    gone: BTreeSet<String>,
}

/// A worker under way; dropping it is its death.
struct Worker {
    name: String,
    stop: Shutdown,
    task: JoinHandle<docmill_core::fault::Result<docmill::runner::WorkerStats>>,
}

impl Schedule {
    async fn new(seed: u64) -> Self {
        let chance = Arc::new(Chance::new(seed, TROUBLE));
        let ledger = Arc::new(SharedLedger::new());
        let queue = Arc::new(MemoryQueue::new(2 * MINUTE, Some(40)));
        let mut config = Config::default();
        config.worker.slots = SLOTS;
        config.store.allow = vec!["documents/".parse().unwrap()];
        let ids: Vec<IngestionId> = (0..DOCUMENTS).map(|_| IngestionId::random()).collect();
        let plans = ids.iter().map(|id| (*id, DocumentPlan::draw(&chance)));
        let work = Arc::new(ScriptedWork::new(plans, Arc::clone(&chance)));
        for id in &ids {
            let document = DocumentId::random();
            ledger.memory().insert_ingestion(*id, document, &format!("documents/{document}"));
            let sent = queue.send(&[OutgoingMessage::from_body(id.to_string())]).await;
            assert!(sent.iter().all(Result::is_ok));
        }
        let config = Arc::new(config);
        Self { chance, ledger, queue, work, config, ids, started: 0, gone: BTreeSet::new() }
    }

    async fn start_worker(&mut self) -> Worker {
        self.started += 1;
        let ledger = FaultyLedger::new(Arc::clone(&self.ledger), Arc::clone(&self.chance));
        let queue = FaultyQueue::new(Arc::clone(&self.queue), Arc::clone(&self.chance));
        let name = format!("worker-{}", self.started);
        let worker = QueueWorker::with_work(
            Arc::clone(&self.work) as _,
            Arc::new(ledger),
            Arc::new(queue),
            Arc::clone(&self.config),
            name.clone(),
        );
        let stop = Shutdown::default();
        let task = tokio::spawn(worker.await.unwrap().run(stop.clone()));
        Worker { name, stop, task }
    }

    /// Two workers through the trouble; deaths, stops, cancels and retries on the way.
    async fn run(&mut self) {
        let began = Instant::now();
        let mut workers = vec![self.start_worker().await, self.start_worker().await];
        while began.elapsed() < TROUBLE {
            sleep(self.chance.between(Duration::from_secs(5), 4 * MINUTE)).await;
            let at = self.chance.below(workers.len());
            match self.chance.below(10) {
                0 | 1 => {
                    let dead = workers.swap_remove(at);
                    dead.task.abort();
                    self.gone.insert(dead.name);
                    workers.push(self.start_worker().await);
                }
                2 => {
                    let (stopped, begun) = (workers.swap_remove(at), Instant::now());
                    let name = stopped.name.clone();
                    drain(stopped).await;
                    // At its deadline it leaves what a slow ledger has not taken back.
                    if begun.elapsed() >= self.config.worker.drain {
                        self.gone.insert(name);
                    }
                    workers.push(self.start_worker().await);
                }
                3 => self.operate(),
                4 => self.queue.duplicate(2),
                5 => self.resend_lost().await,
                _ => {}
            }
        }
        self.wait_for_end(began).await;
        for worker in workers {
            drain(worker).await;
        }
    }

    /// An operator's order about one document: withdrawn, or opened again with a message.
    fn operate(&self) {
        let id = self.ids[self.chance.below(self.ids.len())];
        if self.chance.below(3) == 0 {
            self.ledger.memory().cancel(id);
        } else if self.ledger.memory().reopen(id) {
            self.work.forget_bounds(id);
            let queue = Arc::clone(&self.queue);
            tokio::spawn(async move {
                let sent = queue.send(&[OutgoingMessage::from_body(id.to_string())]).await;
                assert!(sent.iter().all(Result::is_ok));
            });
        }
    }

    /// What the janitor's resends come to: open rows that nobody holds, of which no message is there.
    async fn resend_lost(&self) {
        self.ledger.sync();
        let bodies = self.queue.bodies();
        for id in &self.ids {
            let row = self.ledger.memory().row(*id).unwrap();
            let is_open = row.status == IngestionStatus::InProgress && row.claim_token.is_none();
            if is_open && !bodies.contains(&id.to_string()) {
                self.work.note_resend();
                let sent = self.queue.send(&[OutgoingMessage::from_body(id.to_string())]).await;
                assert!(sent.iter().all(Result::is_ok));
            }
        }
    }

    /// Without faults every document ends, and every message goes.
    async fn wait_for_end(&self, began: Instant) {
        loop {
            sleep(10 * MINUTE).await;
            let is_done = |id: &IngestionId| {
                self.ledger.memory().row(*id).unwrap().status != IngestionStatus::InProgress
            };
            if self.ids.iter().all(is_done) && self.queue.bodies().is_empty() {
                return;
            }
            let open: Vec<_> = self.ids.iter().filter(|id| !is_done(id)).collect();
            let left = self.queue.bodies();
            assert!(began.elapsed() < PATIENCE, "open {open:?}, messages {left:?}");
        }
    }

    /// What has to hold in the end, whatever happened.
    fn count(&self) {
        assert!(self.work.most_running() <= 2 * SLOTS, "more jobs than slots");
        for id in &self.ids {
            let row = self.ledger.memory().row(*id).unwrap();
            let attempts = self.ledger.memory().attempts(*id);
            assert!(row.status.is_terminal(), "{id} has not ended");
            assert!(row.claim_token.is_none() && row.lease_expires_at.is_none(), "{id} is held");
            assert_eq!(attempts.len(), usize::try_from(row.claims).unwrap(), "{id}: {attempts:?}");
            let counted = attempts.iter().filter(|attempt| attempt.counted).count();
            assert_eq!(counted, row.attempt_count as usize, "{id}: {attempts:?}");
            let crashed = attempts.iter().filter(|attempt| attempt.outcome == "crashed");
            let workers: Vec<_> = crashed.filter_map(|attempt| attempt.worker.as_ref()).collect();
            let is_gone = |worker: &&String| self.gone.contains(*worker);
            assert!(workers.iter().all(is_gone), "{id} crashed those that live: {attempts:?}");
            let by_waiting = [OutcomeReason::Timeout, OutcomeReason::DeferredTooLong];
            assert!(row.reason.is_none_or(|reason| !by_waiting.contains(&reason)), "{id}: {row:?}");
            self.work.assert_bounds(*id);
        }
        assert_eq!(self.work.resends(), 0, "a message was lost without the queue's doing");
    }
}

/// A worker that is asked to stop ends within its drain and what it needs to write that down.
async fn drain(worker: Worker) {
    let began = Instant::now();
    worker.stop.request();
    worker.task.await.unwrap().unwrap();
    assert!(began.elapsed() < 4 * MINUTE, "a drain took {:?}", began.elapsed());
}

fn run_schedule(seed: u64) {
    fastrand::seed(seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let mut schedule = Schedule::new(seed).await;
        schedule.run().await;
        schedule.count();
    });
}

#[test]
fn whatever_happens_each_document_ends_once_and_no_message_is_lost() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().unwrap());
    if let Some(seed) = number("SEED") {
        return run_schedule(seed);
    }
    let first = number("FIRST_SEED").unwrap_or_default();
    for seed in first..first + number("SCHEDULES").unwrap_or(100) {
        let ended = std::panic::catch_unwind(|| run_schedule(seed));
        assert!(ended.is_ok(), "schedule {seed} fell: SEED={seed} runs it alone");
    }
}
