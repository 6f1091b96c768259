//! The work on a document as a script: the pipeline's order of fetch, two stages that are paid for
//! and stored before they are used, and a verdict, with the claim checked before each call and
//! write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::config::ByteSize;
use docmill_core::fault::Error;
use docmill_core::model::{
    ClaimedIngestion, IngestionId, IngestionStage, LocalModelReport, OutcomeReason, ProviderLane,
};
use docmill_core::work_clock::{note_progress, wait_off_clock};
use docmill_ledger::{IngestionResult, PauseTerms};
use docmill_pipeline::{ByteBudget, ClaimHandle, StepError, verdict};
use docmill_storage::ObjectStore;
use docmill_storage::memory::MemoryStore;
use docmill_worker::work::IngestionWork;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::plan::{CallFault, DocumentPlan, PortCall};
use super::trouble::{PlannedTrouble, WorkerGate};
use super::world::SLOTS;

/// Bytes of the repaired pages of a document, and of the file that is made of them.
const PICTURES: u64 = 4096;

/// Payments for one stage of one document, and how often it was interrupted.
#[derive(Debug, Default)]
struct StageBill {
    paid: u32,
    cut_short: u32,
}

/// A job's share of the bytes for pictures, and whether it waits for more.
#[derive(Debug, Default)]
struct JobBytes {
    holds: AtomicBool,
    waits: AtomicBool,
}

/// The jobs of one worker that may have some.
type WorkerBytes = Arc<Mutex<Vec<Weak<JobBytes>>>>;

/// A document and the code of a stage of it.
type Stage = (IngestionId, &'static str);

/// State of a schedule's documents, shared by all workers.
pub(super) struct ScriptedDocuments {
    plans: BTreeMap<IngestionId, (usize, DocumentPlan)>,
    /// Documents whose rows a product locks.
    locked: BTreeSet<IngestionId>,
    stored: Mutex<BTreeSet<Stage>>,
    bills: Arc<Mutex<BTreeMap<Stage, StageBill>>>,
    workers: Mutex<Vec<WorkerBytes>>,
}

/// The work of one worker, whose jobs share one core, and bytes for the pictures of as many jobs as
/// there are slots.
pub(super) struct ScriptedWork {
    documents: Arc<ScriptedDocuments>,
    trouble: Arc<PlannedTrouble>,
    gate: Arc<WorkerGate>,
    core: Semaphore,
    pictures: ByteBudget,
    bytes: WorkerBytes,
    store: MemoryStore,
    running: Arc<AtomicU32>,
    most_running: Arc<AtomicU32>,
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

impl ScriptedDocuments {
    pub(super) fn new(
        plans: impl Iterator<Item = (IngestionId, (usize, DocumentPlan))>,
        is_locked: impl Fn(usize) -> bool,
    ) -> Self {
        let plans: BTreeMap<_, _> = plans.collect();
        let locked = plans.iter().filter(|(_, (number, _))| is_locked(*number));
        let locked = locked.map(|(id, _)| *id).collect();
        Self {
            plans,
            locked,
            stored: Mutex::default(),
            bills: Arc::default(),
            workers: Mutex::default(),
        }
    }

    /// Whether all jobs of a worker that have some of its bytes wait for more of them.
    pub(super) fn wait_for_each_other(&self) -> bool {
        self.workers.lock().unwrap().iter().any(|worker| {
            let jobs: Vec<_> = worker.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
            let mut holding = jobs.iter().filter(|job| job.holds.load(Ordering::SeqCst)).peekable();
            holding.peek().is_some() && holding.all(|job| job.waits.load(Ordering::SeqCst))
        })
    }

    pub(super) fn is_locked(&self, id: IngestionId) -> bool {
        self.locked.contains(&id)
    }

    pub(super) fn plan(&self, id: IngestionId) -> DocumentPlan {
        self.plans[&id].1
    }

    /// The document was opened again.
    pub(super) fn forget_bounds(&self, id: IngestionId) {
        self.bills.lock().unwrap().retain(|(of, _), _| *of != id);
    }

    /// A stage paid for twice without an interruption.
    pub(super) fn find_overpaid(&self, id: IngestionId) -> Option<String> {
        let bills = self.bills.lock().unwrap();
        let mut of_document = bills.iter().filter(|(stage, _)| stage.0 == id);
        let overpaid = of_document.find(|(_, bill)| bill.paid > 1 + bill.cut_short);
        overpaid.map(|(stage, bill)| format!("paid too often: {stage:?}: {bill:?}"))
    }
}

impl ScriptedWork {
    pub(super) fn new(
        documents: Arc<ScriptedDocuments>,
        trouble: Arc<PlannedTrouble>,
        gate: Arc<WorkerGate>,
        most_running: Arc<AtomicU32>,
    ) -> Self {
        let bytes = WorkerBytes::default();
        documents.workers.lock().unwrap().push(Arc::clone(&bytes));
        Self {
            documents,
            trouble,
            gate,
            core: Semaphore::new(1),
            pictures: ByteBudget::new(ByteSize(PICTURES * u64::from(SLOTS))),
            bytes,
            store: MemoryStore::default(),
            running: Arc::default(),
            most_running,
        }
    }

    /// One more job that may have some of the bytes.
    fn note_bytes(&self, holds: bool) -> Arc<JobBytes> {
        let bytes = Arc::new(JobBytes { holds: holds.into(), waits: false.into() });
        let mut jobs = self.bytes.lock().unwrap();
        jobs.retain(|job| job.strong_count() > 0);
        jobs.push(Arc::downgrade(&bytes));
        bytes
    }

    /// A stage that is paid for, once.
    async fn pay(
        &self,
        id: IngestionId,
        stage: IngestionStage,
        claim: &ClaimHandle,
    ) -> Result<(), StepError> {
        claim.enter(stage);
        let key = (id, stage.code());
        if self.documents.stored.lock().unwrap().contains(&key) {
            return Ok(());
        }
        claim.ensure_live().await?;
        let fate = self.trouble.next(PortCall::Provider);
        self.trouble.enter_provider(fate)?;
        let paid = {
            let mut bills = self.documents.bills.lock().unwrap();
            let bill = bills.entry(key).or_default();
            bill.paid += 1;
            bill.paid
        };
        let bills = Arc::clone(&self.documents.bills);
        let mut call = PaidCall { bills, stage: key, kept: false };
        let (number, plan) = self.documents.plans[&id];
        let longest = Duration::from_secs(if plan == DocumentPlan::Slow { 100 } else { 5 });
        let place = [number as u64, stage as u64, u64::from(paid)];
        sleep(self.trouble.spread(&place, longest)).await;
        // Its standing still is not what its work takes.
        wait_off_clock(self.gate.pass()).await;
        if let Some(CallFault::Fails(fault)) = fate.fault {
            return Err(Error::new(fault, "the provider says no").into());
        }
        claim.ensure_live().await?;
        if !self.documents.stored.lock().unwrap().insert(key) {
            return Err(
                Error::transient("another claim wrote this artefact in the meantime").into()
            );
        }
        call.kept = true;
        note_progress();
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
        sleep(Duration::from_millis(20)).await;
        if self.gate.is_sick() {
            return Err(Error::internal("nothing works here").into());
        }
        if self.documents.plan(claimed.id) == DocumentPlan::Kills {
            sleep(Duration::from_secs(2)).await;
            self.gate.kill();
            std::future::pending::<()>().await;
        }
        // As the journal of pages: without room they would be written at once.
        let mut pages = self.pictures.try_reserve(PICTURES);
        let bytes = self.note_bytes(pages.is_some());
        {
            let _core = wait_off_clock(self.core.acquire()).await.unwrap();
            self.pay(claimed.id, IngestionStage::Transcribe, claim).await?;
        }
        match self.documents.plan(claimed.id) {
            DocumentPlan::IsRefused => {
                return Err(StepError::rejected(OutcomeReason::Corrupt, "as planned".to_owned()));
            }
            // Without the panic's message: there would be thousands of them.
            DocumentPlan::Panics => std::panic::resume_unwind(Box::new("as planned")),
            DocumentPlan::Reads | DocumentPlan::Slow | DocumentPlan::Kills => {}
        }
        let written = async || -> Result<(), StepError> {
            drop(pages.take());
            bytes.holds.store(false, Ordering::SeqCst);
            Ok(())
        };
        bytes.waits.store(true, Ordering::SeqCst);
        drop(self.pictures.take_giving_back(PICTURES, written).await?);
        drop((pages, bytes));
        self.pay(claimed.id, IngestionStage::Extract, claim).await?;
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

    fn refresh_gauges(&self) {}

    fn list_lanes(&self) -> Vec<ProviderLane> {
        Vec::new()
    }

    fn report_local_models(&self) -> Option<LocalModelReport> {
        None
    }
}
