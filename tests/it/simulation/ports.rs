//! Ledger and queue as a network shows them: late, refusing, and with answers that are lost.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId};
use docmill_ledger::duplicate_key::DuplicateKeys;
use docmill_ledger::memory::MemoryLedger;
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms, DocumentSpending,
    IngestionResult, LeaseRenewal, LeaseStatus, Ledger, ObjectRegistration, OperatorPause,
    ProviderSpending, QuarantinedMessage, ReadBack, SpentToday, StoredTranscript, VersionOutcome,
    WorkerStatus, WriteResult,
};
use docmill_queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};

use super::plan::{CallFault, PortCall};
use super::trouble::{CallFate, PlannedTrouble, WorkerGate, lost};
use super::work::ScriptedDocuments;
use crate::support::memory_queue::MemoryQueue;

/// How long an end waits for a locked row.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The rows, by the time of the schedule.
pub(super) struct SharedLedger {
    memory: MemoryLedger,
    clock: Mutex<LedgerClock>,
}

struct LedgerClock {
    synced: Instant,
    /// How long it is frozen.
    owed: Duration,
    /// The time it shows, from its start.
    shown: Duration,
}

impl SharedLedger {
    pub(super) fn new() -> Self {
        let memory = MemoryLedger::new(OffsetDateTime::UNIX_EPOCH);
        let clock =
            LedgerClock { synced: Instant::now(), owed: Duration::ZERO, shown: Duration::ZERO };
        Self { memory, clock: Mutex::new(clock) }
    }

    /// The clock goes ahead of everybody else's.
    pub(super) fn put_ahead(&self, by: Duration) {
        self.memory().advance(by);
        self.clock.lock().unwrap().shown += by;
    }

    /// By its own clock.
    pub(super) fn time_passed(&self) -> Duration {
        self.memory();
        self.clock.lock().unwrap().shown
    }

    /// The clock falls behind everybody else's: never back, as Postgres' own.
    pub(super) fn put_behind(&self, by: Duration) {
        self.clock.lock().unwrap().owed += by;
    }

    pub(super) fn memory(&self) -> &MemoryLedger {
        let mut clock = self.clock.lock().unwrap();
        let now = Instant::now();
        let passed = now - clock.synced;
        let held = passed.min(clock.owed);
        clock.owed -= held;
        clock.synced = now;
        clock.shown += passed - held;
        self.memory.advance(passed - held);
        &self.memory
    }
}

/// Reopens documents.
pub(super) struct ScheduleOperator {
    pub ledger: Arc<SharedLedger>,
    pub queue: Arc<MemoryQueue>,
    pub documents: Arc<ScriptedDocuments>,
}

impl ScheduleOperator {
    /// Opens a document that has ended, and sends a message for it.
    pub(super) async fn reopen(&self, id: IngestionId) {
        if self.ledger.memory().reopen(id) {
            self.documents.forget_bounds(id);
            let sent = self.queue.send(&[OutgoingMessage::from_body(id.to_string())]).await;
            assert!(sent.iter().all(Result::is_ok));
        }
    }
}

/// The ledger as one worker reaches it.
pub(super) struct FaultyLedger {
    inner: Arc<SharedLedger>,
    operator: Arc<ScheduleOperator>,
    trouble: Arc<PlannedTrouble>,
    gate: Arc<WorkerGate>,
}

impl FaultyLedger {
    pub(super) fn new(
        operator: Arc<ScheduleOperator>,
        trouble: Arc<PlannedTrouble>,
        gate: Arc<WorkerGate>,
    ) -> Self {
        Self { inner: Arc::clone(&operator.ledger), operator, trouble, gate }
    }

    /// A call: on its way, done or not, and answered or not.
    async fn call<T>(
        &self,
        call: PortCall,
        work: impl AsyncFnOnce(&MemoryLedger) -> Result<T>,
    ) -> Result<T> {
        let fate = self.trouble.next(call);
        self.make_call(fate, work).await
    }

    async fn make_call<T>(
        &self,
        fate: CallFate,
        work: impl AsyncFnOnce(&MemoryLedger) -> Result<T>,
    ) -> Result<T> {
        self.gate.pass().await;
        self.trouble.travel(fate, 0).await;
        self.trouble.reach_ledger(&self.gate).await?;
        if fate.call != PortCall::ReadBack {
            self.trouble.require_writer()?;
        }
        if fate.fault == Some(CallFault::Refused) {
            return Err(lost());
        }
        let answer = work(self.inner.memory()).await?;
        self.trouble.travel(fate, 1).await;
        self.gate.pass().await;
        if fate.fault == Some(CallFault::AnswerLost) {
            return Err(lost());
        }
        Ok(answer)
    }

    /// A call with only the common faults.
    async fn reach(&self) -> Result<&MemoryLedger> {
        self.gate.pass().await;
        self.trouble.reach_ledger(&self.gate).await?;
        Ok(self.inner.memory())
    }
}

#[async_trait]
impl AttemptLedger for FaultyLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult> {
        self.trouble.require_writer()?;
        self.reach().await?.save_transcription(id, token, saved).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        self.trouble.require_writer()?;
        self.reach().await?.save_extraction(id, token, artefact).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>> {
        self.reach().await?.find_duplicate(document, tenant, keys).await
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        self.reach().await?.add_spending(id, claims, spent).await
    }

    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday> {
        self.reach().await?.spent_today(tenant).await
    }

    async fn spent_on(&self, id: IngestionId) -> Result<DocumentSpending> {
        self.reach().await?.spent_on(id).await
    }

    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome> {
        self.reach().await?.adopt_version(id, token, etag).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        self.reach().await?.is_blocked(sha256).await
    }
}

#[async_trait]
impl Ledger for FaultyLedger {
    async fn current_time(&self) -> Result<OffsetDateTime> {
        self.reach().await?.current_time().await
    }

    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>> {
        let begun = Instant::now();
        let claim = async |ledger: &MemoryLedger| ledger.claim_with_tokens(asked, terms).await;
        let mut answers = self.call(PortCall::Claim, claim).await?;
        for answer in &mut answers {
            if let ClaimOutcome::Claimed(claimed) = answer {
                // By the schedule's clock, which the memory ledger does not use.
                claimed.lease_until = (begun + terms.lease).into_std();
            }
        }
        Ok(answers)
    }

    async fn renew_leases(
        &self,
        claims: &[LeaseRenewal],
        lease: Duration,
    ) -> Result<Vec<LeaseStatus>> {
        let renew = async |ledger: &MemoryLedger| ledger.renew_leases(claims, lease).await;
        self.call(PortCall::Renew, renew).await
    }

    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult> {
        let release = async |ledger: &MemoryLedger| ledger.release_claim(id, token, how).await;
        self.call(PortCall::Release, release).await
    }

    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult> {
        let fate = self.trouble.next(PortCall::Record);
        if self.operator.documents.is_locked(id) && self.trouble.is_locking() {
            sleep(LOCK_TIMEOUT).await;
            return Err(lost());
        }
        let record = async |ledger: &MemoryLedger| {
            let answer = ledger.record_result(id, token, end).await;
            if fate.fault == Some(CallFault::Reopened) {
                self.operator.reopen(id).await;
            }
            answer
        };
        self.make_call(fate, record).await
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        let read = async |ledger: &MemoryLedger| ledger.read_back(id, token).await;
        self.call(PortCall::ReadBack, read).await
    }

    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId> {
        self.reach().await?.register_object(object).await
    }

    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
        self.reach().await?.find_unknown(ids).await
    }

    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()> {
        self.reach().await?.quarantine_message(message).await
    }

    async fn require_writer(&self) -> Result<()> {
        // The reading of the pauses that follows has the other faults.
        self.trouble.require_writer()?;
        self.inner.memory().require_writer().await
    }

    async fn active_pauses(&self) -> Result<Vec<OperatorPause>> {
        self.reach().await?.active_pauses().await
    }

    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()> {
        self.reach().await?.save_worker_status(worker, vitals).await
    }
}

/// The queue as one worker reaches it.
pub(super) struct FaultyQueue {
    inner: Arc<MemoryQueue>,
    trouble: Arc<PlannedTrouble>,
    gate: Arc<WorkerGate>,
}

/// A call about several entries that is under way: what becomes of each, and those that arrive.
struct SentEntries<E> {
    fates: Vec<CallFate>,
    arriving: Vec<E>,
}

impl FaultyQueue {
    pub(super) fn new(
        inner: Arc<MemoryQueue>,
        trouble: Arc<PlannedTrouble>,
        gate: Arc<WorkerGate>,
    ) -> Self {
        Self { inner, trouble, gate }
    }

    /// A call about entries, each of which may fail by itself.
    async fn depart<E: Clone + Sync>(
        &self,
        call: PortCall,
        entries: &[E],
        receipt_of: fn(&E) -> Option<&ReceiptHandle>,
    ) -> SentEntries<E> {
        let fates: Vec<CallFate> = entries.iter().map(|_| self.trouble.next(call)).collect();
        self.gate.pass().await;
        for fate in &fates {
            self.trouble.travel(*fate, 0).await;
        }
        let mut arriving = Vec::new();
        for (fate, entry) in fates.iter().zip(entries) {
            match fate.fault {
                Some(CallFault::Refused) => {}
                Some(CallFault::HandleExpired) => {
                    receipt_of(entry).into_iter().for_each(|receipt| self.inner.expire(receipt));
                }
                _ => arriving.push(entry.clone()),
            }
        }
        SentEntries { fates, arriving }
    }

    /// Its answers; an invalid receipt gets `expired`.
    async fn arrive<E>(
        &self,
        sent: &SentEntries<E>,
        answers: Vec<Result<()>>,
        expired: fn() -> Result<()>,
    ) -> Vec<Result<()>> {
        let mut answers = answers.into_iter();
        let mut all = Vec::new();
        for fate in &sent.fates {
            self.trouble.travel(*fate, 1).await;
            all.push(match fate.fault {
                Some(CallFault::Refused) => Err(lost()),
                Some(CallFault::HandleExpired) => expired(),
                Some(CallFault::AnswerLost) => answers.next().unwrap().and(Err(lost())),
                _ => answers.next().unwrap(),
            });
        }
        self.gate.pass().await;
        all
    }
}

fn say_expired() -> Result<()> {
    Err(Error::new(Fault::Missing, "the receipt has expired"))
}

/// As SQS may: what an old receipt deletes or hides is not there to be looked at.
fn say_done() -> Result<()> {
    Ok(())
}

#[async_trait]
impl MessageQueue for FaultyQueue {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let fate = self.trouble.next(PortCall::Receive);
        self.gate.pass().await;
        let received = Instant::now();
        let mut found = self.inner.receive(max, wait).await?;
        self.trouble.travel(fate, 1).await;
        self.gate.pass().await;
        match fate.fault {
            // They were handed out all the same.
            Some(CallFault::AnswerLost) => return Err(lost()),
            Some(CallFault::Reordered) => found.reverse(),
            _ => {}
        }
        for delivery in &mut found {
            delivery.received = received.into_std();
        }
        Ok(found)
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let sent = self.depart(PortCall::Extend, receipts, |receipt| Some(receipt)).await;
        let answers = self.inner.extend_visibility(&sent.arriving, visibility).await;
        self.arrive(&sent, answers, say_expired).await
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let sent = self.depart(PortCall::Delete, receipts, |receipt| Some(receipt)).await;
        let answers = self.inner.acknowledge(&sent.arriving).await;
        self.arrive(&sent, answers, say_done).await
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        let sent = self.depart(PortCall::Hide, receipts, |(receipt, _)| Some(receipt)).await;
        let answers = self.inner.hide(&sent.arriving).await;
        self.arrive(&sent, answers, say_done).await
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        let sent = self.depart(PortCall::Send, messages, |_| None).await;
        let answers = self.inner.send(&sent.arriving).await;
        self.arrive(&sent, answers, say_done).await
    }

    async fn depth(&self) -> Result<QueueDepth> {
        self.inner.depth().await
    }

    fn longest_hide(&self) -> Duration {
        self.inner.longest_hide()
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        self.inner.receives_before_dead().await
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        self.inner.receive_dead(max, hidden).await
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.inner.acknowledge_dead(receipts).await
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.inner.release_dead(receipts).await
    }

    async fn run_maintenance(&self) -> Result<u64> {
        self.inner.run_maintenance().await
    }
}
