//! Ports that misbehave at one place and are real everywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use docmill::fault::{Error, Result};
use docmill::ledger::{
    AttemptLedger, Claim, ClaimTerms, GiveBack, Held, Ledger, Pause, Quarantined, ReadBack, Record,
    Registration, Spending, SpentToday, TranscriptionSaved, Vitals,
};
use docmill::llm::{Llm, Prompt, Reply};
use docmill::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId, Stage};
use time::OffsetDateTime;

/// How `record` misbehaves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recording {
    /// It writes, but its reply is lost this often.
    ReplyLost(u32),
    /// It fails without writing, this often.
    Fails(u32),
}

/// A ledger whose `record` misbehaves.
pub(crate) struct FlakyLedger {
    pub(crate) inner: Arc<dyn Ledger>,
    pub(crate) recording: Recording,
    pub(crate) records: AtomicU32,
    /// Once set, no write of this worker arrives any more: as good as dead.
    pub(crate) dead: AtomicBool,
}

impl FlakyLedger {
    pub(crate) fn new(inner: Arc<dyn Ledger>, recording: Recording) -> Self {
        Self { inner, recording, records: AtomicU32::new(0), dead: AtomicBool::new(false) }
    }

    /// From now on the worker over this ledger is cut off, like one that was killed.
    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    async fn alive(&self) {
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl AttemptLedger for FlakyLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &TranscriptionSaved,
    ) -> Result<Held> {
        self.inner.save_transcription(id, token, saved).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<Held> {
        self.inner.save_extraction(id, token, artefact).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        supplier: &str,
        number: &str,
    ) -> Result<Option<IngestionId>> {
        self.inner.find_duplicate(document, tenant, supplier, number).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        self.inner.is_blocked(sha256).await
    }

    async fn spend(&self, id: IngestionId, claims: i64, spent: &Spending) -> Result<()> {
        self.inner.spend(id, claims, spent).await
    }

    async fn spent_today(&self) -> Result<SpentToday> {
        self.inner.spent_today().await
    }

    async fn now(&self) -> Result<OffsetDateTime> {
        self.inner.now().await
    }
}

#[async_trait]
impl Ledger for FlakyLedger {
    async fn record(&self, id: IngestionId, token: ClaimToken, end: &Record) -> Result<Held> {
        self.alive().await;
        let before = self.records.fetch_add(1, Ordering::SeqCst);
        match self.recording {
            Recording::ReplyLost(times) if before < times => {
                self.inner.record(id, token, end).await?;
                Err(Error::transient("the reply is lost"))
            }
            Recording::Fails(times) if before < times => Err(Error::transient("no connection")),
            _ => self.inner.record(id, token, end).await,
        }
    }

    async fn claim(&self, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<Claim>> {
        self.alive().await;
        self.inner.claim(ids, terms).await
    }

    async fn renew(
        &self,
        claims: &[(IngestionId, ClaimToken)],
        lease: Duration,
    ) -> Result<Vec<Held>> {
        self.alive().await;
        self.inner.renew(claims, lease).await
    }

    async fn give_back(&self, id: IngestionId, token: ClaimToken, how: &GiveBack) -> Result<Held> {
        self.alive().await;
        self.inner.give_back(id, token, how).await
    }

    async fn save_stage(&self, id: IngestionId, token: ClaimToken, stage: Stage) -> Result<Held> {
        self.inner.save_stage(id, token, stage).await
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        self.inner.read_back(id, token).await
    }

    async fn register(&self, objects: &[Registration]) -> Result<Vec<IngestionId>> {
        self.inner.register(objects).await
    }

    async fn quarantine(&self, message: &Quarantined) -> Result<()> {
        self.inner.quarantine(message).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        self.inner.pauses().await
    }

    async fn worker_alive(&self, worker: &str, vitals: &Vitals) -> Result<()> {
        self.inner.worker_alive(worker, vitals).await
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

    async fn ask(&self, _: &Prompt) -> Result<Reply> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a bug of ours")
    }
}
