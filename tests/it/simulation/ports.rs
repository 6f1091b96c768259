//! Ledger and queue as a network shows them: late, refusing, and with answers that are lost.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId};
use docmill_ledger::ledger::memory::MemoryLedger;
use docmill_ledger::ledger::{
    AttemptLedger, ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms, IngestionResult,
    LeaseRenewal, LeaseStatus, Ledger, ObjectRegistration, OperatorPause, ProviderSpending,
    QuarantinedMessage, ReadBack, SpentToday, StoredTranscript, VersionOutcome, WorkerStatus,
    WriteResult,
};
use docmill_queue::queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};

use crate::support::memory_queue::MemoryQueue;

/// What a schedule draws, from its seed.
pub(super) struct Chance {
    random: Mutex<fastrand::Rng>,
    calm_from: Instant,
}

impl Chance {
    pub(super) fn new(seed: u64, trouble: Duration) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { random, calm_from: Instant::now() + trouble }
    }

    pub(super) fn below(&self, end: usize) -> usize {
        self.random.lock().unwrap().usize(..end)
    }

    pub(super) fn between(&self, least: Duration, most: Duration) -> Duration {
        least + (most - least).mul_f64(self.random.lock().unwrap().f64())
    }

    /// One in so many, until the faults cease.
    pub(super) fn strikes(&self, one_in: usize) -> bool {
        Instant::now() < self.calm_from && self.below(one_in) == 0
    }

    /// A call takes its time, now and then very long.
    pub(super) async fn take_time(&self) {
        let most = if self.strikes(40) { 12_000 } else { 40 };
        sleep(self.between(Duration::ZERO, Duration::from_millis(most))).await;
    }
}

fn lost() -> Error {
    Error::new(Fault::Unavailable, "no answer")
}

/// The rows, by the time of the schedule.
pub(super) struct SharedLedger {
    memory: MemoryLedger,
    synced: Mutex<Instant>,
}

impl SharedLedger {
    pub(super) fn new() -> Self {
        let memory = MemoryLedger::new(OffsetDateTime::UNIX_EPOCH);
        Self { memory, synced: Mutex::new(Instant::now()) }
    }

    pub(super) fn sync(&self) {
        let mut synced = self.synced.lock().unwrap();
        let now = Instant::now();
        self.memory.advance(now - *synced);
        *synced = now;
    }

    pub(super) fn memory(&self) -> &MemoryLedger {
        self.sync();
        &self.memory
    }
}

/// The ledger as one worker reaches it.
pub(super) struct FaultyLedger {
    inner: Arc<SharedLedger>,
    chance: Arc<Chance>,
}

impl FaultyLedger {
    pub(super) fn new(inner: Arc<SharedLedger>, chance: Arc<Chance>) -> Self {
        Self { inner, chance }
    }

    /// A call: on its way, done or not, and answered or not.
    async fn call<T>(&self, work: impl AsyncFnOnce(&MemoryLedger) -> Result<T>) -> Result<T> {
        self.chance.take_time().await;
        if self.chance.strikes(25) {
            return Err(lost());
        }
        let answer = work(self.inner.memory()).await?;
        self.chance.take_time().await;
        if self.chance.strikes(25) {
            return Err(lost());
        }
        Ok(answer)
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
        self.call(async |ledger| ledger.save_transcription(id, token, saved).await).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        self.call(async |ledger| ledger.save_extraction(id, token, artefact).await).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        supplier: &str,
        number: &str,
    ) -> Result<Option<IngestionId>> {
        self.inner.memory().find_duplicate(document, tenant, supplier, number).await
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        self.inner.memory().add_spending(id, claims, spent).await
    }

    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday> {
        self.inner.memory().spent_today(tenant).await
    }

    async fn spent_on(&self, id: IngestionId) -> Result<u64> {
        self.inner.memory().spent_on(id).await
    }

    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome> {
        self.inner.memory().adopt_version(id, token, etag).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        self.inner.memory().is_blocked(sha256).await
    }

    async fn current_time(&self) -> Result<OffsetDateTime> {
        self.inner.memory().current_time().await
    }
}

#[async_trait]
impl Ledger for FaultyLedger {
    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>> {
        let begun = Instant::now();
        let claim = async |ledger: &MemoryLedger| ledger.claim_with_tokens(asked, terms).await;
        let mut answers = self.call(claim).await?;
        for answer in &mut answers {
            if let ClaimOutcome::Claimed(claimed) = answer {
                // By the schedule's clock, which the ledger in memory does not know.
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
        self.call(async |ledger| ledger.renew_leases(claims, lease).await).await
    }

    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult> {
        self.call(async |ledger| ledger.release_claim(id, token, how).await).await
    }

    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult> {
        self.call(async |ledger| ledger.record_result(id, token, end).await).await
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        self.call(async |ledger| ledger.read_back(id, token).await).await
    }

    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId> {
        self.inner.memory().register_object(object).await
    }

    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
        self.inner.memory().find_unknown(ids).await
    }

    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()> {
        self.inner.memory().quarantine_message(message).await
    }

    async fn active_pauses(&self) -> Result<Vec<OperatorPause>> {
        self.inner.memory().active_pauses().await
    }

    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()> {
        self.inner.memory().save_worker_status(worker, vitals).await
    }
}

/// The queue as one worker reaches it.
pub(super) struct FaultyQueue {
    inner: Arc<MemoryQueue>,
    chance: Arc<Chance>,
}

impl FaultyQueue {
    pub(super) fn new(inner: Arc<MemoryQueue>, chance: Arc<Chance>) -> Self {
        Self { inner, chance }
    }

    /// A call about several entries, each of which may fail by itself.
    async fn call(
        &self,
        entries: usize,
        work: impl AsyncFnOnce(&MemoryQueue) -> Vec<Result<()>>,
    ) -> Vec<Result<()>> {
        self.chance.take_time().await;
        if self.chance.strikes(25) {
            return (0..entries).map(|_| Err(lost())).collect();
        }
        let mut answers = work(self.inner.as_ref()).await;
        self.chance.take_time().await;
        for answer in &mut answers {
            if self.chance.strikes(25) {
                *answer = Err(lost());
            }
        }
        answers
    }
}

#[async_trait]
impl MessageQueue for FaultyQueue {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let received = Instant::now();
        let mut found = self.inner.receive(max, wait).await?;
        self.chance.take_time().await;
        if self.chance.strikes(20) {
            // They were handed out all the same.
            return Err(lost());
        }
        for delivery in &mut found {
            delivery.received = received.into_std();
        }
        // In any order.
        let turn = self.chance.below(found.len().max(1));
        found.rotate_left(turn);
        Ok(found)
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let extend =
            async |queue: &MemoryQueue| queue.extend_visibility(receipts, visibility).await;
        self.call(receipts.len(), extend).await
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.call(receipts.len(), async |queue| queue.acknowledge(receipts).await).await
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        self.call(receipts.len(), async |queue| queue.hide(receipts).await).await
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        self.call(messages.len(), async |queue| queue.send(messages).await).await
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
