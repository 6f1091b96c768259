//! One schedule from its beginning to its count: workers, documents, and what happens to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_core::config::Config;
use docmill_core::fault::Error;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, OutcomeReason};
use docmill_ledger::memory::{LedgerAttempt, LedgerRow};
use docmill_operations::janitor::lost_messages;
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::{MessageQueue as _, OutgoingMessage};
use docmill_worker::QueueWorker;
use time::OffsetDateTime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::plan::{DocumentPlan, FAULT_PHASE, HalfFailure, PlannedFault, SchedulePlan, WorldEvent};
use super::ports::{FaultyLedger, FaultyQueue, ScheduleOperator, SharedLedger};
use super::trouble::{PlannedTrouble, WorkerGate};
use super::work::{ScriptedDocuments, ScriptedWork};
use crate::support::memory_queue::MemoryQueue;

const SECOND: Duration = Duration::from_secs(1);
/// Everything is over by then.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(3 * 3600);
/// Messages are counted this often.
const WATCH: Duration = Duration::from_secs(20);
pub(super) const SLOTS: u32 = 3;
/// A row silent for this long may have lost its message (`janitor.quiet`).
const QUIET: Duration = Duration::from_secs(60);
/// So long after the end of its lease a row is taken over, a suspect as well.
const MAX_ORPHANED: Duration = Duration::from_secs(180);
/// So long after the beginning all are done that no product has locked.
const MAX_BESIDE_LOCKED: Duration = Duration::from_secs(500);
/// A worker that is silent for longer may lose its claims: with what else may go wrong, a third of a
/// lease is enough.
const SILENT: Duration = Duration::from_secs(40);

/// The violated property, in words.
pub(super) type Broken = Result<(), String>;

fn ensure(holds: bool, says: impl FnOnce() -> String) -> Broken {
    if holds { Ok(()) } else { Err(says()) }
}

/// A period in which a worker, or all of them, could not be reached.
struct Silence {
    /// `None`: all.
    worker: Option<String>,
    from: OffsetDateTime,
    until: OffsetDateTime,
}

/// A worker under way; aborting its task is its death.
struct Worker {
    name: String,
    stop: Shutdown,
    gate: Arc<WorkerGate>,
    task: JoinHandle<docmill_core::fault::Result<docmill_worker::runner::WorkerStats>>,
}

/// One schedule under way.
struct SimulatedWorld {
    plan: SchedulePlan,
    trouble: Arc<PlannedTrouble>,
    ledger: Arc<SharedLedger>,
    queue: Arc<MemoryQueue>,
    documents: Arc<ScriptedDocuments>,
    operator: Arc<ScheduleOperator>,
    config: Arc<Config>,
    workers: Vec<Worker>,
    /// Workers that were started so far.
    started: usize,
    most_running: Arc<AtomicU32>,
    silences: Arc<Mutex<Vec<Silence>>>,
    drains: Vec<JoinHandle<Broken>>,
}

/// The result of a schedule.
pub(super) struct ScheduleEnd {
    pub broken: Broken,
    /// Numbers of the faults that have struck.
    pub met: BTreeSet<usize>,
}

/// Runs a schedule in paused time.
pub(super) fn run_schedule(plan: &SchedulePlan) -> ScheduleEnd {
    fastrand::seed(plan.seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let mut world = SimulatedWorld::new(plan.clone()).await;
        let broken = match world.run().await {
            Ok(()) => world.count(),
            Err(broken) => Err(broken),
        };
        ScheduleEnd { broken, met: world.trouble.met() }
    })
}

/// The name of a document, the same in every run of the schedule.
fn ingestion(number: usize) -> IngestionId {
    IngestionId(Uuid::from_u128((0x51_u128 << 64) | number as u128))
}

/// Minutes instead of hours, so that many of them are in a schedule.
fn short_times() -> Config {
    let mut config = Config::default();
    config.worker.slots = SLOTS;
    config.worker.drain = 60 * SECOND;
    // Longer than a stage, shorter than two of the slowest.
    config.worker.job_timeout = 110 * SECOND;
    config.claim.lease = 120 * SECOND;
    config.queue.visibility = 50 * SECOND;
    config.retry.longest_delay = 120 * SECOND;
    config.retry.max_deferral = 240 * SECOND;
    config.store.allow = vec!["documents/".parse().unwrap()];
    config
}

impl SimulatedWorld {
    async fn new(plan: SchedulePlan) -> Self {
        // Twelve hours are seven minutes here.
        let queue = MemoryQueue::new(50 * SECOND, Some(40)).with_longest(420 * SECOND);
        let documents = plan.documents.iter().map(|(at, plan)| (ingestion(*at), (*at, *plan)));
        let (ledger, queue) = (Arc::new(SharedLedger::new()), Arc::new(queue));
        let documents = ScriptedDocuments::new(documents, |number| plan.is_locked(number));
        let documents = Arc::new(documents);
        let operator = ScheduleOperator {
            ledger: Arc::clone(&ledger),
            queue: Arc::clone(&queue),
            documents: Arc::clone(&documents),
        };
        let world = Self {
            trouble: Arc::new(PlannedTrouble::new(&plan)),
            ledger,
            queue,
            documents,
            operator: Arc::new(operator),
            config: Arc::new(short_times()),
            workers: Vec::new(),
            started: 0,
            most_running: Arc::default(),
            silences: Arc::default(),
            drains: Vec::new(),
            plan,
        };
        for id in world.ids() {
            let document = DocumentId(id.0);
            world.ledger.memory().insert_ingestion(id, document, &format!("documents/{id}"));
            world.send(id).await;
        }
        world
    }

    fn ids(&self) -> Vec<IngestionId> {
        self.plan.documents.iter().map(|(number, _)| ingestion(*number)).collect()
    }

    async fn send(&self, id: IngestionId) {
        let sent = self.queue.send(&[OutgoingMessage::from_body(id.to_string())]).await;
        assert!(sent.iter().all(Result::is_ok));
    }

    async fn start_worker(&mut self) -> Worker {
        self.started += 1;
        let (trouble, gate) = (Arc::clone(&self.trouble), Arc::new(WorkerGate::new()));
        let shared = || (Arc::clone(&trouble), Arc::clone(&gate));
        let ledger = FaultyLedger::new(Arc::clone(&self.operator), shared().0, shared().1);
        let queue = FaultyQueue::new(Arc::clone(&self.queue), shared().0, shared().1);
        let (documents, most) = (Arc::clone(&self.documents), Arc::clone(&self.most_running));
        let work = ScriptedWork::new(documents, shared().0, shared().1, most);
        let name = format!("worker-{}", self.started);
        let worker = QueueWorker::with_work(
            Arc::new(work),
            Arc::new(ledger),
            Arc::new(queue),
            Arc::clone(&self.config),
            name.clone(),
        );
        let stop = Shutdown::default();
        let (worker, running, killer) = (worker.await.unwrap(), stop.clone(), Arc::clone(&gate));
        let task = tokio::spawn(async move {
            tokio::select! {
                ended = worker.run(running) => ended,
                () = killer.wait_until_killed() => Err(Error::internal("killed by a document")),
            }
        });
        Worker { name, stop, gate, task }
    }

    /// Runs the workers through the faults, until no work is left.
    async fn run(&mut self) -> Broken {
        let began = Instant::now();
        while self.workers.len() < self.plan.workers {
            let worker = self.start_worker().await;
            self.workers.push(worker);
        }
        let mut events: Vec<_> = self
            .plan
            .faults
            .iter()
            .filter_map(|(number, fault)| match fault {
                PlannedFault::At { at, event } => Some((*at, *number, *event)),
                PlannedFault::Call { .. } => None,
            })
            .collect();
        events.sort_by_key(|(at, number, _)| (*at, *number));
        for (at, number, event) in events {
            self.watch_until(began, began + at).await?;
            self.trouble.note_met(number);
            self.act(event).await;
        }
        self.watch_until(began, began + FAULT_PHASE).await?;
        loop {
            self.wait_for_end(began).await?;
            for worker in std::mem::take(&mut self.workers) {
                self.drain(worker);
            }
            for drained in std::mem::take(&mut self.drains) {
                drained.await.map_err(|died| format!("a drain died: {died}"))??;
            }
            if self.open_documents().is_empty() {
                return Ok(());
            }
            // Reopened by an operator, at an end that was still being written.
            let worker = self.start_worker().await;
            self.workers.push(worker);
        }
    }

    fn open_documents(&self) -> Vec<IngestionId> {
        let is_open = |id: &IngestionId| {
            self.ledger.memory().row(*id).unwrap().status == IngestionStatus::InProgress
        };
        self.ids().into_iter().filter(is_open).collect()
    }

    async fn act(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Death { worker } => {
                let dead = self.replace(worker).await;
                dead.task.abort();
                self.note_silence(Some(dead.name), RECOVERY_TIMEOUT);
            }
            WorldEvent::Stop { worker } => {
                let stopped = self.replace(worker).await;
                self.drain(stopped);
            }
            WorldEvent::Standstill { worker, lasts } => {
                let worker = &self.workers[worker % self.workers.len()];
                worker.gate.close_for(lasts);
                self.note_silence(Some(worker.name.clone()), lasts);
            }
            WorldEvent::Cancel { document } => {
                self.ledger.memory().cancel(ingestion(document));
            }
            WorldEvent::Retry { document } => {
                self.operator.reopen(ingestion(document)).await;
            }
            WorldEvent::Duplicates { count } => self.queue.duplicate(count),
            WorldEvent::ClockAhead { by } => self.ledger.put_ahead(by),
            WorldEvent::ClockBehind { by } => self.ledger.put_behind(by),
            WorldEvent::LedgerSilent { lasts } => {
                self.trouble.silence_ledger(lasts);
                self.note_silence(None, lasts);
            }
            WorldEvent::Refusal { lasts } => self.trouble.refuse_credentials(lasts),
            WorldEvent::Rush { lasts } => self.trouble.begin_rush(lasts),
            WorldEvent::Half { failure, lasts } => self.begin_half(failure, lasts),
        }
    }

    fn begin_half(&self, failure: HalfFailure, lasts: Duration) {
        self.trouble.begin_half(failure, lasts);
        match failure {
            HalfFailure::Cut { worker } => {
                let worker = &self.workers[worker % self.workers.len()];
                worker.gate.cut_for(lasts);
                self.note_silence(Some(worker.name.clone()), lasts);
            }
            HalfFailure::Sick { worker } => {
                self.workers[worker % self.workers.len()].gate.sicken_for(lasts);
            }
            HalfFailure::Replica => self.note_silence(None, lasts),
            HalfFailure::Declining | HalfFailure::Locked => {}
        }
    }

    /// Starts another worker for each that a document has killed.
    async fn replace_killed(&mut self) {
        for at in 0..self.workers.len() {
            if self.workers[at].task.is_finished() {
                let dead = self.replace(at).await;
                let from = self.now() - WATCH;
                let silence =
                    Silence { worker: Some(dead.name), from, until: from + RECOVERY_TIMEOUT };
                self.silences.lock().unwrap().push(silence);
            }
        }
    }

    /// Where half failures are the only faults nothing stands still: what a silent worker held is taken
    /// over, and what a product has locked holds up nothing else.
    fn find_stuck(&self, began: Instant) -> Broken {
        if !self.plan.is_beside {
            return Ok(());
        }
        let now = self.now();
        for (number, plan) in &self.plan.documents {
            let row = self.ledger.memory().row(ingestion(*number)).unwrap();
            let is_open = row.status == IngestionStatus::InProgress;
            let over = row
                .lease_expires_at
                .map_or(Duration::ZERO, |end| Duration::try_from(now - end).unwrap_or_default());
            ensure(over < MAX_ORPHANED || !self.plan.is_cut(), || {
                format!("document {number} stands still, its lease over for {over:?}")
            })?;
            let waits = is_open && *plan == DocumentPlan::Reads && self.trouble.is_locking();
            let is_late = began.elapsed() > MAX_BESIDE_LOCKED && !self.plan.is_locked(*number);
            ensure(!waits || !is_late, || {
                format!("document {number} waits for those that are locked")
            })?;
        }
        Ok(())
    }

    /// Takes a worker away and puts another in its place.
    async fn replace(&mut self, at: usize) -> Worker {
        let (at, fresh) = (at % self.workers.len(), self.start_worker().await);
        std::mem::replace(&mut self.workers[at], fresh)
    }

    fn note_silence(&self, worker: Option<String>, lasts: Duration) {
        if lasts < SILENT {
            return;
        }
        let from = self.now();
        let silence = Silence { worker, from, until: from + lasts };
        self.silences.lock().unwrap().push(silence);
    }

    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + self.ledger.time_passed()
    }

    /// A worker is asked to stop; it ends within its drain and what it needs to write that down.
    fn drain(&mut self, worker: Worker) {
        let (began, from, drain) = (Instant::now(), self.now(), self.config.worker.drain);
        let (silences, name) = (Arc::clone(&self.silences), worker.name.clone());
        self.drains.push(tokio::spawn(async move {
            worker.stop.request();
            let ended = worker.task.await.map_err(|died| format!("{name} died: {died}"))?;
            ended.map_err(|error| format!("{name} failed: {error}"))?;
            let took = began.elapsed();
            let mut silences = silences.lock().unwrap();
            let until = from + took;
            let is_heard = silences.iter().all(|silence| !silence.is_of(&name, from, until));
            // At its deadline it leaves what a slow ledger has not taken back.
            if took >= drain {
                silences.push(Silence {
                    worker: Some(name.clone()),
                    from,
                    until: until + RECOVERY_TIMEOUT,
                });
            }
            ensure(!is_heard || took < drain + 60 * SECOND, || {
                format!("the drain of {name} took {took:?}")
            })
        }));
    }

    /// Lets time pass, and checks that no unclaimed open row is without a message.
    async fn watch_until(&mut self, began: Instant, then: Instant) -> Broken {
        while Instant::now() < then {
            sleep_until(then.min(Instant::now() + WATCH)).await;
            self.replace_killed().await;
            self.find_stuck(began)?;
            let bodies = self.queue.bodies();
            for id in self.ids() {
                let row = self.ledger.memory().row(id).unwrap();
                let is_open = row.status == IngestionStatus::InProgress;
                let has_message = row.claim_token.is_some() || bodies.contains(&id.to_string());
                ensure(!is_open || has_message, || format!("{id} is open without a message"))?;
            }
            self.count_lost(&bodies).await?;
            ensure(!self.documents.wait_for_each_other(), || {
                "jobs wait for bytes that each other has".to_owned()
            })?;
        }
        Ok(())
    }

    /// As maintenance counts, none is lost while each open row has a message, however long its own has
    /// been waiting behind others.
    async fn count_lost(&self, bodies: &[String]) -> Broken {
        let now = self.now();
        let rows = self.ids().into_iter().map(|id| (id, self.ledger.memory().row(id).unwrap()));
        let open: Vec<(IngestionId, LedgerRow)> =
            rows.filter(|(_, row)| row.status == IngestionStatus::InProgress).collect();
        let silence = |(id, row): &(IngestionId, LedgerRow)| {
            let ended = self.ledger.memory().attempts(*id).last().map(|last| last.ended_at);
            let heard = [Some(row.created_at), ended, row.next_attempt_at, row.lease_expires_at];
            let since = heard.into_iter().flatten().max().unwrap();
            Duration::try_from(now - since).unwrap_or_default()
        };
        let longest = open.iter().map(silence).max().unwrap_or_default();
        let all_there = open.iter().all(|(id, _)| bodies.contains(&id.to_string()));
        if longest < QUIET || !all_there {
            return Ok(());
        }
        let depth = self.queue.depth().await.unwrap();
        let messages = depth.ready + depth.delayed + depth.in_flight;
        let lost = lost_messages(messages, open.len() as u64);
        ensure(lost == 0, || format!("{lost} messages are sent again, and none is lost"))
    }

    /// Without faults every document ends, and every message goes.
    async fn wait_for_end(&mut self, began: Instant) -> Broken {
        loop {
            self.replace_killed().await;
            let open = self.open_documents();
            let left = self.queue.bodies();
            if open.is_empty() && left.is_empty() {
                return Ok(());
            }
            ensure(began.elapsed() < RECOVERY_TIMEOUT, || {
                format!("without an end: open {open:?}, messages {left:?}")
            })?;
            sleep(WATCH).await;
        }
    }

    /// Checks the final properties.
    fn count(&self) -> Broken {
        let most = self.most_running.load(Ordering::SeqCst);
        ensure(most <= SLOTS, || format!("{most} jobs in {SLOTS} slots"))?;
        for id in self.ids() {
            let row = self.ledger.memory().row(id).unwrap();
            let attempts = self.ledger.memory().attempts(id);
            self.count_document(id, &row, &attempts).map_err(|broken| {
                let ends: Vec<_> = attempts
                    .iter()
                    .map(|it| (it.worker.as_deref().unwrap_or_default(), it.outcome, it.counted))
                    .collect();
                format!("document {id}: {broken}; {:?}; attempts {ends:?}", row.reason)
            })?;
        }
        Ok(())
    }

    fn count_document(
        &self,
        id: IngestionId,
        row: &LedgerRow,
        attempts: &[LedgerAttempt],
    ) -> Broken {
        ensure(row.status.is_terminal(), || "has not ended".to_owned())?;
        let is_free = row.claim_token.is_none() && row.lease_expires_at.is_none();
        ensure(is_free, || "is held".to_owned())?;
        let claims = usize::try_from(row.claims).unwrap();
        ensure(attempts.len() == claims, || format!("{claims} claims without as many ends"))?;
        let counted = attempts.iter().filter(|attempt| attempt.counted).count();
        ensure(counted == row.attempt_count as usize, || {
            format!("{counted} attempts counted, {} said", row.attempt_count)
        })?;
        for crashed in attempts.iter().filter(|attempt| attempt.outcome == "crashed") {
            let worker = crashed.worker.as_deref().unwrap();
            ensure(self.was_silent(crashed), || format!("{worker} lives and has crashed"))?;
        }
        self.documents.find_overpaid(id).map_or(Ok(()), Err)?;
        let plan = self.documents.plan(id);
        if self.plan.is_beside {
            let is_convicted = |it: &&LedgerAttempt| it.counted && it.outcome == "crashed";
            let deaths = attempts.iter().filter(is_convicted);
            ensure(deaths.clone().all(|it| it.alone), || "convicted in company".to_owned())?;
            return ensure(row.reason == expected_end(plan), || {
                format!("{plan:?} ended otherwise")
            });
        }
        match row.reason {
            Some(OutcomeReason::DeferredTooLong) => {
                let streak = deferral_streak(attempts);
                ensure(streak > self.config.retry.max_deferral, || {
                    format!("deferred too long after {streak:?}")
                })
            }
            // By an operator, by silences, by chance: each has its own count above.
            Some(OutcomeReason::Cancelled | OutcomeReason::Crashed | OutcomeReason::Transient) => {
                Ok(())
            }
            reason => ensure(reason == expected_end(plan), || format!("{plan:?} ended otherwise")),
        }
    }

    /// Whether its worker, or all of them, could not be reached during this attempt.
    fn was_silent(&self, attempt: &LedgerAttempt) -> bool {
        let (began, ended) = (attempt.started_at.unwrap(), attempt.ended_at);
        let worker = attempt.worker.as_deref().unwrap();
        let silences = self.silences.lock().unwrap();
        silences.iter().any(|silence| silence.is_of(worker, began, ended))
    }
}

impl Silence {
    fn is_of(&self, name: &str, from: OffsetDateTime, until: OffsetDateTime) -> bool {
        let is_meant = self.worker.as_deref().is_none_or(|worker| worker == name);
        is_meant && self.from <= until && from <= self.until
    }
}

fn expected_end(plan: DocumentPlan) -> Option<OutcomeReason> {
    match plan {
        DocumentPlan::Reads | DocumentPlan::Slow => None,
        DocumentPlan::IsRefused => Some(OutcomeReason::Corrupt),
        DocumentPlan::Panics => Some(OutcomeReason::Internal),
        DocumentPlan::Kills => Some(OutcomeReason::Crashed),
    }
}

/// How long the last attempts were put off by nothing but throttling and what was down.
fn deferral_streak(attempts: &[LedgerAttempt]) -> Duration {
    let Some((last, earlier)) = attempts.split_last() else { return Duration::ZERO };
    let is_part = |attempt: &&LedgerAttempt| {
        ["throttled", "unavailable", "interrupted", "crashed"].contains(&attempt.outcome)
    };
    let streak = earlier.iter().rev().take_while(is_part);
    let begins = |attempt: &&LedgerAttempt| ["throttled", "unavailable"].contains(&attempt.outcome);
    let first = streak.filter(begins).last();
    let length = first.map(|first| last.ended_at - first.ended_at).unwrap_or_default();
    length.try_into().unwrap_or_default()
}
