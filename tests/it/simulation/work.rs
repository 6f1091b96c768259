//! The work on a document as a script: the pipeline's order of fetch, two stages that are paid for and
//! stored before they are used, and a verdict, with the claim asked for before each call and put.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill::pipeline::{ClaimHandle, StepError, verdict};
use docmill::worker::work::IngestionWork;
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{ClaimedIngestion, IngestionId, IngestionStage, OutcomeReason};
use docmill_ledger::ledger::{IngestionResult, PauseTerms};
use docmill_storage::store::ObjectStore;
use docmill_storage::store::memory::MemoryStore;
use tokio::time::sleep;

use super::ports::Chance;

/// What a document does to its workers.
#[derive(Debug, Clone, Copy)]
pub(super) enum DocumentPlan {
    Reads,
    IsRefused,
    Panics,
    Slow,
}

impl DocumentPlan {
    pub(super) fn draw(chance: &Chance) -> Self {
        match chance.below(8) {
            0 => Self::IsRefused,
            1 => Self::Panics,
            2 | 3 => Self::Slow,
            _ => Self::Reads,
        }
    }
}

/// What was paid for one stage of one document, and how often that was cut short.
#[derive(Debug, Default)]
struct StageBill {
    paid: u32,
    cut_short: u32,
}

/// A document and the code of a stage of it.
type Stage = (IngestionId, &'static str);

/// The work on all documents of a schedule.
pub(super) struct ScriptedWork {
    plans: BTreeMap<IngestionId, DocumentPlan>,
    chance: Arc<Chance>,
    store: MemoryStore,
    stored: Mutex<BTreeSet<Stage>>,
    bills: Arc<Mutex<BTreeMap<Stage, StageBill>>>,
    running: Arc<AtomicU32>,
    most_running: AtomicU32,
    resends: AtomicU32,
}

/// Dropped before what was paid for is stored: cut short.
struct PaidCall {
    bills: Arc<Mutex<BTreeMap<Stage, StageBill>>>,
    stage: Stage,
    kept: bool,
}

impl Drop for PaidCall {
    fn drop(&mut self) {
        if !self.kept {
            self.bills.lock().unwrap().entry(self.stage).or_default().cut_short += 1;
        }
    }
}

/// One more job that runs, until it is dropped.
struct RunningWork(Arc<AtomicU32>);

impl Drop for RunningWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ScriptedWork {
    pub(super) fn new(
        plans: impl Iterator<Item = (IngestionId, DocumentPlan)>,
        chance: Arc<Chance>,
    ) -> Self {
        Self {
            plans: plans.collect(),
            chance,
            store: MemoryStore::default(),
            stored: Mutex::default(),
            bills: Arc::default(),
            running: Arc::default(),
            most_running: AtomicU32::new(0),
            resends: AtomicU32::new(0),
        }
    }

    pub(super) fn note_resend(&self) {
        self.resends.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn resends(&self) -> u32 {
        self.resends.load(Ordering::SeqCst)
    }

    pub(super) fn most_running(&self) -> u32 {
        self.most_running.load(Ordering::SeqCst)
    }

    /// The document was opened again.
    pub(super) fn forget_bounds(&self, id: IngestionId) {
        self.bills.lock().unwrap().retain(|(of, _), _| *of != id);
    }

    /// Nothing was paid for twice but what was cut short.
    pub(super) fn assert_bounds(&self, id: IngestionId) {
        for (stage, bill) in self.bills.lock().unwrap().iter().filter(|(stage, _)| stage.0 == id) {
            assert!(bill.paid <= 1 + bill.cut_short, "{stage:?}: {bill:?}");
        }
    }

    /// A stage that is paid for, once.
    async fn pay(
        &self,
        id: IngestionId,
        stage: IngestionStage,
        claim: &ClaimHandle,
        longest: Duration,
    ) -> Result<(), StepError> {
        claim.enter(stage);
        let stage = (id, stage.code());
        if self.stored.lock().unwrap().contains(&stage) {
            return Ok(());
        }
        claim.ensure_live().await?;
        self.bills.lock().unwrap().entry(stage).or_default().paid += 1;
        let mut call = PaidCall { bills: Arc::clone(&self.bills), stage, kept: false };
        sleep(self.chance.between(Duration::from_millis(10), longest)).await;
        if self.chance.strikes(12) {
            let faults = [Fault::Transient, Fault::Unavailable, Fault::Throttled(None)];
            let fault = faults[self.chance.below(faults.len())];
            return Err(Error::new(fault, "the provider says no").into());
        }
        claim.ensure_live().await?;
        if !self.stored.lock().unwrap().insert(stage) {
            return Err(
                Error::transient("another claim wrote this artefact in the meantime").into()
            );
        }
        call.kept = true;
        Ok(())
    }
}

#[async_trait]
impl IngestionWork for ScriptedWork {
    async fn run_attempt(
        &self,
        claimed: &ClaimedIngestion,
        claim: &ClaimHandle,
    ) -> Result<IngestionResult, StepError> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = RunningWork(Arc::clone(&self.running));
        self.most_running.fetch_max(now, Ordering::SeqCst);
        claim.enter(IngestionStage::Fetch);
        self.chance.take_time().await;
        let plan = self.plans[&claimed.id];
        let longest = Duration::from_secs(if matches!(plan, DocumentPlan::Slow) { 900 } else { 5 });
        self.pay(claimed.id, IngestionStage::Transcribe, claim, longest).await?;
        match plan {
            DocumentPlan::IsRefused => {
                return Err(StepError::rejected(OutcomeReason::Corrupt, "as planned".to_owned()));
            }
            DocumentPlan::Panics => panic!("as planned"),
            DocumentPlan::Reads | DocumentPlan::Slow => {}
        }
        self.pay(claimed.id, IngestionStage::Extract, claim, longest).await?;
        let failed =
            verdict::early_result(OutcomeReason::GateRefused, claim.stage(), String::new());
        Ok(IngestionResult { reason: None, needs_human_review: false, ..failed })
    }

    fn documents(&self) -> &dyn ObjectStore {
        &self.store
    }

    fn find_outage(&self) -> Option<String> {
        None
    }

    fn pause_terms(&self, _default_kind: &str) -> PauseTerms {
        PauseTerms::default()
    }
}
