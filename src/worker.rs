//! Runs jobs until told to stop.
//!
//! Five parts: [`intake`] receives, [`batch`] answers every delivery, [`job`] runs one ingestion,
//! [`heartbeat`] renews, [`vitals`] obeys pauses. [`Worker::run`] starts them and stops them in
//! the order of the design: intake first, then jobs, then acknowledgements, the heartbeat last.
//! The worker knows nothing of documents; `pipeline` does.

pub mod batch;
pub mod dispose;
pub mod heartbeat;
pub mod intake;
pub mod job;
pub mod lanes;
pub mod pauses;
pub mod protection;
pub mod registry;
pub mod settle;
pub mod vitals;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Acknowledge, AllowedPrefix, Config, Destination, RetryConfig};
use crate::fault;
use crate::ledger::{ClaimTerms, Ledger, Vitals};
use crate::metrics;
use crate::model::IngestionId;
use crate::pipeline::PipelineContext;
use crate::queue::{Delivery, Outgoing, Queue};
use crate::shutdown::Stop;
use dispose::{Disposer, Disposition};
use heartbeat::Beat;
use pauses::Pauses;
use registry::{Registry, Ticket};

/// Jobs that were cancelled may take so long to write that down.
const SETTLE: Duration = Duration::from_secs(8);
/// A message with a delay waits at most so long before it is visible (SQS).
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);

/// What the worker needs of the configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Jobs at the same time.
    pub slots: usize,
    /// How long one poll waits.
    pub wait: Duration,
    /// How long jobs may go on after the stop.
    pub drain: Duration,
    /// The longest one attempt may take.
    pub job_timeout: Duration,
    /// Renewals.
    pub beat: Beat,
    /// Terms of our claims.
    pub terms: ClaimTerms,
    /// What follows a failed attempt.
    pub retry: RetryConfig,
    /// See `queue.unknown_receives`.
    pub unknown_receives: u32,
    /// See `queue.unknown_age`.
    pub unknown_age: Duration,
    /// Whether messages are deleted before the work (`queue.acknowledge`).
    pub early: bool,
    /// Places whose events are taken.
    pub allowed: Vec<AllowedPrefix>,
    /// The queue as traces name it.
    pub destination: Destination,
}

impl Settings {
    /// From the configuration; `worker` names this process.
    pub fn new(config: &Config, worker: String) -> Self {
        Self {
            slots: usize::try_from(config.worker.slots).unwrap_or(usize::MAX),
            wait: config.queue.wait,
            drain: config.worker.drain,
            job_timeout: config.worker.job_timeout,
            beat: Beat {
                every: config.heartbeat(),
                lease: config.claim.lease,
                visibility: config.queue.visibility,
            },
            terms: ClaimTerms {
                worker,
                lease: config.claim.lease,
                crash_limit: config.retry_terms().crash_attempts,
            },
            retry: config.retry_terms(),
            unknown_receives: config.queue.unknown_receives,
            unknown_age: config.queue.unknown_age,
            early: config.queue.acknowledge == Acknowledge::Early,
            allowed: config.store.allowed(),
            destination: config.destination(),
        }
    }
}

/// What the parts of one worker share.
pub struct Context {
    ports: PipelineContext,
    ledger: Arc<dyn Ledger>,
    queue: Arc<dyn Queue>,
    settings: Settings,
    registry: Arc<Registry>,
    disposer: Disposer,
    pauses: Pauses,
    slots: Arc<Semaphore>,
    jobs: TaskTracker,
    stop_intake: CancellationToken,
    cancel_jobs: CancellationToken,
    /// Names that an operator may pause.
    providers: Vec<String>,
    /// A message received this often is replaced instead of hidden.
    replace_at: Option<u32>,
    started: Instant,
    /// Milliseconds after `started` of the last turn of the intake loop.
    pulse_ms: AtomicU64,
    /// When the newest message that we were first to receive was sent.
    position: Mutex<Option<SystemTime>>,
}

impl Context {
    fn pulse(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.pulse_ms.store(elapsed, Ordering::Relaxed);
    }

    async fn acknowledge(&self, ticket: &Ticket) {
        self.dispose(ticket, Disposition::Acknowledge).await;
    }

    async fn release(&self, ticket: &Ticket) {
        self.hide(ticket, None, Duration::ZERO).await;
    }

    /// Hides the message; replaces it by a fresh one when it was received so often that the
    /// redrive policy would soon take it (only where the ingestion it stands for is known).
    async fn hide(&self, ticket: &Ticket, id: Option<IngestionId>, after: Duration) {
        let worn = self.replace_at.is_some_and(|limit| ticket.receive_count() >= limit);
        if let (true, Some(id)) = (worn, id) {
            let delay = after.min(LONGEST_DELAY);
            let fresh = Outgoing { delay, ..ticket.successor(id.to_string()) };
            let sent = self.queue.send(std::slice::from_ref(&fresh)).await;
            if sent.into_iter().all(|answer| answer.is_ok()) {
                metrics::disposition("replace");
                return self.acknowledge(ticket).await;
            }
        }
        self.dispose(ticket, Disposition::Hide(after.min(self.queue.longest_hide()))).await;
    }

    /// The message was deleted before the work: a fresh one takes its place. If that fails, the
    /// janitor finds the row without a message.
    async fn send_anew(&self, ticket: &Ticket, id: IngestionId, after: Duration) {
        let delay = after.min(LONGEST_DELAY);
        let fresh = Outgoing { delay, ..ticket.successor(id.to_string()) };
        match self.queue.send(std::slice::from_ref(&fresh)).await.into_iter().find_map(Result::err)
        {
            None => metrics::disposition("replace"),
            Some(error) => {
                metrics::disposition("failed");
                tracing::warn!(
                    ingestion.id = %id,
                    error = %error,
                    "no new message for {id} could be sent; the janitor will send one: {error}"
                );
            }
        }
        // What was adopted meanwhile.
        self.acknowledge(ticket).await;
    }

    /// Until nothing is left: a delivery that is adopted meanwhile shares the fate.
    async fn dispose(&self, ticket: &Ticket, what: Disposition) {
        loop {
            let receipts = ticket.take_receipts();
            if receipts.is_empty() {
                return;
            }
            let all = receipts.into_iter().map(|receipt| self.disposer.dispose(receipt, what));
            futures::future::join_all(all).await;
        }
    }

    /// Remembers how far the queue has come, for the janitor of lost messages.
    fn note_receipt(&self, delivery: &Delivery) {
        if delivery.receive_count > 1 {
            return;
        }
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        *position = (*position).max(delivery.sent_at);
    }

    fn vitals(&self) -> Vitals {
        let position = self.position.lock().unwrap_or_else(PoisonError::into_inner).take();
        let used = self.settings.slots.saturating_sub(self.slots.available_permits());
        Vitals {
            slots: u32::try_from(self.settings.slots).unwrap_or(u32::MAX),
            slots_used: u32::try_from(used).unwrap_or(u32::MAX),
            queue_position: position.map(Into::into),
        }
    }
}

/// One worker.
pub struct Worker {
    context: Arc<Context>,
}

/// What a worker shows to the health pages and the embedded mode.
#[derive(Clone)]
pub struct Monitor(Arc<Context>);

impl Monitor {
    /// How long ago the intake loop last turned.
    pub fn intake_age(&self) -> Duration {
        let pulse = Duration::from_millis(self.0.pulse_ms.load(Ordering::Relaxed));
        self.0.started.elapsed().saturating_sub(pulse)
    }

    /// Whether it was told to stop.
    pub fn is_draining(&self) -> bool {
        self.0.stop_intake.is_cancelled()
    }

    /// Whether it holds a message.
    pub fn is_busy(&self) -> bool {
        !self.0.registry.is_empty()
    }

    /// The ingestions that are worked on, and their stages.
    pub fn working(&self) -> Vec<(IngestionId, crate::model::Stage)> {
        self.0.registry.working()
    }
}

impl Worker {
    /// Puts a worker together; nothing is received yet.
    ///
    /// # Errors
    /// The queue does not say after how many receives it gives a message up.
    pub async fn new(
        ports: PipelineContext,
        ledger: Arc<dyn Ledger>,
        queue: Arc<dyn Queue>,
        settings: Settings,
    ) -> fault::Result<Self> {
        let replace_at = queue.receives_before_dead().await?.map(|most| (most / 2).max(2));
        let disposer = Disposer::start(Arc::clone(&queue));
        let mut providers = vec![ports.services.reader.asked_first()];
        providers.extend(ports.services.models.providers());
        let context = Context {
            slots: Arc::new(Semaphore::new(settings.slots)),
            ports,
            ledger,
            queue,
            settings,
            registry: Arc::new(Registry::default()),
            disposer,
            pauses: Pauses::at_start(),
            jobs: TaskTracker::new(),
            stop_intake: CancellationToken::new(),
            cancel_jobs: CancellationToken::new(),
            providers,
            replace_at,
            started: Instant::now(),
            pulse_ms: AtomicU64::new(0),
            position: Mutex::new(None),
        };
        Ok(Self { context: Arc::new(context) })
    }

    /// For the health pages.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.context))
    }

    /// Works until told to stop, then drains.
    ///
    /// Every job that is still running at the drain deadline is cancelled, its attempt given back
    /// and its message made visible. Returns when nothing is held any more.
    pub async fn run(self, stop: Stop) {
        let context = self.context;
        let last = CancellationToken::new();
        let beats = tokio::spawn(heartbeat::run(
            Arc::clone(&context.registry),
            Arc::clone(&context.ledger),
            Arc::clone(&context.queue),
            context.settings.beat,
            last.clone(),
        ));
        let vitals = tokio::spawn(vitals::run(Arc::clone(&context), last.clone()));
        let intake = tokio::spawn(intake::run(Arc::clone(&context)));

        stop.until_asked().await;
        let started = Instant::now();
        context.stop_intake.cancel();
        let drained = async {
            let ended = intake.await;
            if let Err(error) = ended {
                tracing::error!(error = %error, "the intake loop died");
            }
            context.jobs.close();
            context.jobs.wait().await;
        };
        drain(&context, drained, &stop).await;

        // Every job has waited for its own disposition: now nothing is held and nothing to beat
        // for.
        last.cancel();
        for (task, name) in [(beats, "heartbeat"), (vitals, "vitals")] {
            if let Err(error) = task.await {
                tracing::error!(error = %error, "the {name} died");
            }
        }
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(elapsed_ms, "drained in {elapsed_ms} ms");
    }
}

/// Lets jobs end until the deadline, then cancels them and waits until that is written down.
async fn drain(context: &Context, drained: impl Future<Output = ()>, stop: &Stop) {
    tokio::pin!(drained);
    tokio::select! {
        () = &mut drained => return,
        () = stop.until_deadline(context.settings.drain) => {}
    }
    let held = context.registry.len();
    tracing::warn!(messages = held, "drain deadline: giving {held} jobs back");
    context.cancel_jobs.cancel();
    // A poll that is still out may take its whole wait; its messages are then released too.
    let longest = context.settings.wait + Duration::from_secs(5) + SETTLE;
    if tokio::time::timeout(longest, drained).await.is_err() {
        let left = context.registry.len();
        tracing::error!(messages = left, "{left} messages could not be given back");
    }
}
