//! Ports that misbehave at one place and are real everywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId};
use docmill_ledger::duplicate_key::DuplicateKeys;
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms, DocumentSpending,
    IngestionResult, LeaseRenewal, LeaseStatus, Ledger, ObjectRegistration, OperatorPause,
    ProviderSpending, QuarantinedMessage, ReadBack, SpentToday, StoredTranscript, VersionOutcome,
    WorkerStatus, WriteResult,
};
use docmill_llm::{Llm, ModelReply, Prompt};
use time::OffsetDateTime;

/// How the ledger's recording of results misbehaves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recording {
    /// It writes, but its reply is lost this often.
    ReplyLost(u32),
    /// It fails without writing, this often.
    Fails(u32),
}

/// A ledger whose recording of results misbehaves.
pub(crate) struct FlakyLedger {
    pub(crate) inner: Arc<dyn Ledger>,
    pub(crate) recording: Recording,
    pub(crate) records: AtomicU32,
    /// Claims still to be made without a reply.
    pub(crate) lost_claims: AtomicU32,
    /// Claims still to be released without a reply.
    pub(crate) lost_releases: AtomicU32,
    /// Once set, no write of this worker arrives any more: as good as dead.
    pub(crate) dead: AtomicBool,
    /// Once set, the worker knows that its ledger is out of reach.
    pub(crate) unreachable: AtomicBool,
    /// Once set, references to transcripts find another worker's claim.
    pub(crate) references_lost: AtomicBool,
}

impl FlakyLedger {
    pub(crate) fn new(inner: Arc<dyn Ledger>, recording: Recording) -> Self {
        Self {
            inner,
            recording,
            records: AtomicU32::new(0),
            lost_claims: AtomicU32::new(0),
            lost_releases: AtomicU32::new(0),
            dead: AtomicBool::new(false),
            unreachable: AtomicBool::new(false),
            references_lost: AtomicBool::new(false),
        }
    }

    /// From now on the worker over this ledger is cut off, like one that was killed.
    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// From now on the worker lives, and cannot reach the ledger.
    pub(crate) fn cut_off(&self) {
        self.unreachable.store(true, Ordering::SeqCst);
        self.die();
    }

    async fn alive(&self) {
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether there was one left.
fn take_one(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

#[async_trait]
impl AttemptLedger for FlakyLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult> {
        if self.references_lost.load(Ordering::SeqCst) {
            return Ok(WriteResult::ClaimLost);
        }
        self.inner.save_transcription(id, token, saved).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        self.inner.save_extraction(id, token, artefact).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>> {
        self.inner.find_duplicate(document, tenant, keys).await
    }

    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome> {
        self.inner.adopt_version(id, token, etag).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        self.inner.is_blocked(sha256).await
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        self.inner.add_spending(id, claims, spent).await
    }

    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday> {
        self.inner.spent_today(tenant).await
    }

    async fn spent_on(&self, id: IngestionId) -> Result<DocumentSpending> {
        self.inner.spent_on(id).await
    }
}

#[async_trait]
impl Ledger for FlakyLedger {
    async fn current_time(&self) -> Result<OffsetDateTime> {
        self.inner.current_time().await
    }

    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult> {
        self.alive().await;
        let before = self.records.fetch_add(1, Ordering::SeqCst);
        match self.recording {
            Recording::ReplyLost(times) if before < times => {
                self.inner.record_result(id, token, end).await?;
                Err(Error::transient("the reply is lost"))
            }
            Recording::Fails(times) if before < times => Err(Error::transient("no connection")),
            _ => self.inner.record_result(id, token, end).await,
        }
    }

    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>> {
        self.alive().await;
        let answers = self.inner.claim_with_tokens(asked, terms).await?;
        if take_one(&self.lost_claims) {
            return Err(Error::new(Fault::Unavailable, "the reply is lost"));
        }
        Ok(answers)
    }

    async fn renew_leases(
        &self,
        claims: &[LeaseRenewal],
        lease: Duration,
    ) -> Result<Vec<LeaseStatus>> {
        self.alive().await;
        self.inner.renew_leases(claims, lease).await
    }

    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult> {
        self.alive().await;
        let written = self.inner.release_claim(id, token, how).await?;
        if take_one(&self.lost_releases) {
            return Err(Error::new(Fault::Unavailable, "the reply is lost"));
        }
        Ok(written)
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        self.inner.read_back(id, token).await
    }

    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId> {
        self.inner.register_object(object).await
    }

    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
        self.inner.find_unknown(ids).await
    }

    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()> {
        self.inner.quarantine_message(message).await
    }

    async fn require_writer(&self) -> Result<()> {
        if self.unreachable.load(Ordering::SeqCst) {
            return Err(Error::new(Fault::Unavailable, "cut off"));
        }
        self.inner.require_writer().await
    }

    async fn active_pauses(&self) -> Result<Vec<OperatorPause>> {
        self.inner.active_pauses().await
    }

    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()> {
        self.inner.save_worker_status(worker, vitals).await
    }
}

/// A model whose first calls panic.
pub(crate) struct PanickingLlm(pub AtomicU32);

#[async_trait]
impl Llm for PanickingLlm {
    fn provider(&self) -> &'static str {
        "panicking"
    }

    fn model(&self) -> &'static str {
        "none"
    }

    async fn complete(&self, _: &Prompt) -> Result<ModelReply> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a bug of ours")
    }
}
