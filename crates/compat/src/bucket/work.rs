//! A worker of a bucket: claims waiting documents, converts them, writes their ends, and takes its
//! turn as janitor, until stopped.
//!
//! It is a [`JobSource`] of the runner (`docmill_worker::runner`): listings are scanned for waiting
//! documents, a claim is a lock, an end is written beside the original. At a signal running
//! documents may go on for the drain time, none by default; then they are released, their runs not
//! counted. After faults of dependencies a document is released too, and skipped for a while.
//! Intake waits only for dependencies of every document.

mod background;
mod deferred;
mod job;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use self::deferred::DeferredDocuments;
use self::job::{BucketJob, JobConversion};
use super::claim::{BucketClaim, BucketClaimResult, LockRenewal, MarkerCandidate, claim_document};
use super::convert::DocumentConverter;
use super::registry::WorkerRegistration;
use super::todo_scanner::TodoScanner;
use super::worker_identity::WorkerIdentity;
use super::{BlobForgeBucket, BucketSettings, RunWindows, janitor};
use crate::objects::engine::UnreadableStreak;
use docmill_client::telemetry::spans;
use docmill_core::config::{QueueDestination, RetryConfig};
use docmill_core::fault::Result;
use docmill_core::metrics;
use docmill_core::model::{ClaimToken, DocumentId, IngestionId};
use docmill_core::work_clock::CpuQueuePosition;
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, StepError, claim_handle};
use docmill_worker::runner::{
    ClaimedJob, DueRenewal, FinishedJob, IntakeGate, JobConclusion, JobSource, LeaseTerms,
    PauseReason, RenewalResult, Runner, RunnerHandle, RunnerMonitor, RunnerOptions, SlotPermit,
    WorkerStats,
};

/// How long a worker waits after something that is not a document's fault, and the longest after
/// many in a row.
const OUTAGE_PAUSE: Duration = Duration::from_secs(15);
const MAX_OUTAGE_PAUSE: Duration = Duration::from_secs(60);
/// How long a document whose marks cannot be read is passed over at first.
const UNREADABLE: Duration = Duration::from_secs(60);
/// How long it may take at a stop until everything is released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a bucket worker.
#[derive(Debug, Clone)]
pub struct BucketWorkerOptions {
    /// How many documents are converted at the same time.
    pub jobs: usize,
    /// End once nothing waits any more.
    pub once: bool,
    /// Time between two scans for every listing request they take.
    pub each_list: Duration,
    /// The longest pause between two scans while nothing waits.
    pub longest_pause: Duration,
    /// Larger documents are refused; bytes.
    pub largest: u64,
    /// Replaces the machine's fingerprint.
    pub name: Option<String>,
    /// How long running documents may continue after a stop.
    pub drain: Duration,
    /// When documents are taken.
    pub windows: RunWindows,
}

/// The parts of a worker before it registers.
pub struct BucketWorkerSetup {
    /// The bucket to work on.
    pub bucket: Arc<BlobForgeBucket>,
    /// The converter of documents.
    pub convert: Arc<dyn DocumentConverter>,
    /// Limits and options of the worker.
    pub terms: BucketWorkerOptions,
}

/// A worker that is registered.
pub struct BucketWorker {
    runner: Runner<BucketJobSource>,
}

/// The documents that wait in a bucket, as work for a runner.
struct BucketJobSource {
    bucket: Arc<BlobForgeBucket>,
    convert: Arc<dyn DocumentConverter>,
    terms: BucketWorkerOptions,
    who: WorkerIdentity,
    registration: Mutex<WorkerRegistration>,
    settings: watch::Sender<BucketSettings>,
    deferred: SyncMutex<DeferredDocuments>,
    /// Documents in a row that could not be taken because their marks cannot be read.
    unreadable: SyncMutex<UnreadableStreak>,
    intake_gate: Arc<IntakeGate>,
    /// The bucket as traces name it.
    destination: QueueDestination,
}

impl BucketWorkerSetup {
    /// Registers the worker, and repairs what an earlier worker of the same name left.
    ///
    /// # Errors
    /// The store does not answer, or its settings make no sense.
    pub async fn open(self) -> Result<BucketWorker> {
        let Self { bucket, convert, terms } = self;
        let settings = BucketSettings::load(&bucket).await?;
        let registration =
            WorkerRegistration::register(&bucket, terms.name.as_deref(), &settings).await?;
        let who = registration.identity().clone();
        let swept = janitor::sweep_own_locks(&bucket, &settings, &who).await?;
        let (place, recovered) = (bucket.describe(), swept.acts.len());
        tracing::info!(worker = who.id, recovered, "working on {place}");
        let intake_gate = Arc::new(IntakeGate::new(OUTAGE_PAUSE, MAX_OUTAGE_PAUSE));
        let options = RunnerOptions {
            slots: terms.jobs,
            drain: terms.drain,
            supplying: Duration::ZERO,
            drain_grace: RELEASE_TIMEOUT,
        };
        let source = BucketJobSource {
            bucket,
            convert,
            terms,
            who,
            registration: Mutex::new(registration),
            settings: watch::Sender::new(settings),
            deferred: SyncMutex::default(),
            unreadable: SyncMutex::default(),
            intake_gate: Arc::clone(&intake_gate),
            destination: QueueDestination { system: "blobforge".to_owned(), name: place },
        };
        Ok(BucketWorker { runner: Runner::new(Arc::new(source), options, intake_gate) })
    }

    /// Works until stopped, or with `once` until nothing waits.
    ///
    /// # Errors
    /// As [`BucketWorkerSetup::open`] and [`Runner::run`]. Other failures are waited out.
    pub async fn run(self, stop: Shutdown) -> Result<WorkerStats> {
        self.open().await?.run(stop).await
    }
}

impl BucketWorker {
    /// For the health pages.
    pub fn monitor(&self) -> RunnerMonitor {
        self.runner.monitor()
    }

    /// Works until stopped, or with `once` until nothing waits.
    ///
    /// # Errors
    /// As [`Runner::run`]. Other failures are waited out.
    pub async fn run(self, stop: Shutdown) -> Result<WorkerStats> {
        self.runner.run(stop).await
    }
}

impl BucketJobSource {
    /// Records the deferral that the failure table demands.
    fn note_conclusion(&self, hash: &str, conclusion: &JobConclusion<JobConversion>) {
        let mut deferred = self.deferred.lock();
        match conclusion {
            JobConclusion::Again { counted: false, after, .. } if !after.is_zero() => {
                deferred.defer(hash, *after);
            }
            JobConclusion::Again { counted: false, .. } => {}
            _ => deferred.forget(hash),
        }
    }

    /// Whether the document was claimed; then its job runs.
    async fn begin_job(
        &self,
        runner: &RunnerHandle<Self>,
        candidate: &MarkerCandidate,
        slot: SlotPermit,
    ) -> bool {
        let settings = self.settings.borrow().clone();
        let since = tokio::time::Instant::now();
        let answer = claim_document(&self.bucket, &self.who, &settings, candidate).await;
        if answer.is_ok() {
            self.intake_gate.open(PauseReason::SOURCE);
            self.unreadable.lock().end_streak();
        }
        let document = &candidate.hash;
        match answer {
            Ok(BucketClaimResult::Ours(claim)) => {
                runner.start_job(self.claimed_job(*claim, since, settings.stale_after()), slot);
                true
            }
            Ok(BucketClaimResult::Busy) => {
                metrics::count_delivery("busy");
                false
            }
            Ok(BucketClaimResult::Settled) => {
                metrics::count_delivery("terminal");
                false
            }
            Err(error) if self.unreadable.lock().passes_over(&error) => {
                tracing::warn!(document, error = %error, "skipping a document for a while: {error}");
                metrics::count_delivery("unreadable");
                self.deferred.lock().defer(document, UNREADABLE);
                true
            }
            Err(error) => {
                tracing::warn!(document, error = %error, "cannot claim a document: {error}");
                metrics::count_delivery("trouble");
                self.intake_gate.close_with_backoff(PauseReason::SOURCE);
                // Not known to be unlocked or another worker's.
                true
            }
        }
    }

    fn claimed_job(
        &self,
        claim: BucketClaim,
        since: tokio::time::Instant,
        lease: Duration,
    ) -> ClaimedJob<BucketJob> {
        let (hash, run) = (claim.hash.clone(), claim.run);
        // The name a submitted document of these bytes has elsewhere.
        let ingestion = IngestionId::first_for_document(DocumentId::from_content(&hash, ""));
        let until = (since + lease).into_std();
        let (handle, renewer) = claim_handle::claim_pair(ingestion, ClaimToken::random(), until);
        let message = spans::TracedMessage {
            from: &self.destination,
            id: &hash,
            receive_count: run,
            traceparent: None,
        };
        let traced = spans::TracedAttempt { ingestion, document: &hash, attempt: run };
        let trace = spans::process_span(message, traced);
        let log = tracing::info_span!("job", document = hash, run);
        let job = BucketJob::new(claim);
        ClaimedJob {
            job,
            claim: handle,
            renewer,
            since,
            place: CpuQueuePosition::take(),
            trace,
            log,
        }
    }
}

#[async_trait]
impl JobSource for BucketJobSource {
    type Job = BucketJob;
    type Output = JobConversion;
    type Rest = ();

    /// Claims documents while there are any.
    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        let mut look = TodoScanner::new(self.terms.each_list, self.terms.longest_pause);
        while let Some(slot) = runner.acquire_slot().await {
            if let Some(closed) = self.terms.windows.closed_for() {
                drop(slot);
                if self.terms.once && runner.is_idle() {
                    return;
                }
                // Not longer: clocks are set, and days have hours more or less.
                let pause = closed.min(MAX_OUTAGE_PAUSE);
                runner.wait_until(tokio::time::Instant::now() + pause).await;
                continue;
            }
            match look.next_candidate(&self.bucket).await {
                Ok(Some(candidate)) => {
                    let is_running = runner.is_running(|job| job.hash == candidate.hash);
                    // Deferred documents still wait: the source is not exhausted.
                    if self.deferred.lock().is_deferred(&candidate.hash)
                        || !is_running && self.begin_job(&runner, &candidate, slot).await
                    {
                        look.mark_productive();
                    }
                }
                Ok(None) => {
                    drop(slot);
                    // One that was put back behind this look waits as well.
                    let waits = self.deferred.lock().has_deferred();
                    if self.terms.once && look.is_over() && runner.is_idle() && !waits {
                        return;
                    }
                    runner.wait_until(look.next_scan()).await;
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot list documents: {error}");
                    self.intake_gate.close_with_backoff(PauseReason::SOURCE);
                }
            }
        }
    }

    async fn run_job(
        &self,
        job: &BucketJob,
        claim: &ClaimHandle,
    ) -> std::result::Result<JobConversion, StepError> {
        Ok(job.convert(&self.bucket, self.convert.as_ref(), claim, self.terms.largest).await?)
    }

    fn lease_terms(&self) -> LeaseTerms {
        let settings = self.settings.borrow();
        let (every, lease) = (settings.heartbeat(), settings.stale_after());
        LeaseTerms { every, lease, lost_unrenewed: true, side: "lock" }
    }

    async fn renew(&self, due: &[DueRenewal<BucketJob>]) -> Vec<RenewalResult> {
        let renew = |due: &DueRenewal<BucketJob>| {
            let job = Arc::clone(&due.job);
            async move {
                match job.renew(&self.bucket).await {
                    Ok(None | Some(LockRenewal::Ours)) => RenewalResult::Kept,
                    Ok(Some(LockRenewal::Cancelled)) => RenewalResult::Withdrawn,
                    Ok(Some(LockRenewal::Lost)) => RenewalResult::Lost,
                    Err(error) => {
                        tracing::warn!(error = %error, "cannot renew a lock: {error}");
                        RenewalResult::Failed
                    }
                }
            }
        };
        futures::future::join_all(due.iter().map(renew)).await
    }

    async fn finish_job(
        &self,
        job: &BucketJob,
        _claim: &ClaimHandle,
        conclusion: JobConclusion<JobConversion>,
    ) -> FinishedJob<()> {
        let most = self.settings.borrow().max_retries;
        self.note_conclusion(&job.hash, &conclusion);
        job.finish_run(&self.bucket, &self.who, &conclusion, most).await
    }

    fn retry_attempt(&self, job: &BucketJob) -> RetryAttempt {
        RetryAttempt { number: job.run, deferred_for: None, jitter: fastrand::f64() }
    }

    /// The bucket's settings limit runs, whatever the fault.
    fn retry_config(&self) -> Cow<'_, RetryConfig> {
        Cow::Owned(RetryConfig::default().with_attempts(self.settings.borrow().max_retries))
    }

    fn job_timeout(&self, _job: &BucketJob) -> Duration {
        self.settings.borrow().timeout()
    }

    fn describe(&self, job: &BucketJob) -> String {
        format!("document {}", job.hash)
    }

    async fn find_outage(&self) -> Option<String> {
        self.convert.find_outage()
    }

    async fn run_background(self: Arc<Self>, runner: RunnerHandle<Self>, stop: CancellationToken) {
        background::run_background(&self, &runner, stop).await;
    }
}
