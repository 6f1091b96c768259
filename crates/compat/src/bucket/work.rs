//! A worker of a bucket: claims what waits, converts it, writes how it ended, and takes its turn as
//! janitor, until it is stopped.
//!
//! It is a [`Backlog`] of the one runner (`docmill_worker::runner`): listings are scanned for what waits, a
//! claim is a lock, an end is written beside the original. At a signal the documents in work may go
//! on for as long as the drain lasts, none by default; then they are released, their runs not
//! counted. What is not the documents' fault (the store or a model does not answer) is released as
//! well, and passed over for a while; intake waits only for what every document needs.

mod background;
mod job;
mod put_off;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use self::job::{BucketJob, JobConversion};
use self::put_off::PutOffDocuments;
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
use docmill_core::work_clock::LinePlace;
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, StepError, claim_handle};
use docmill_worker::runner::{
    Backlog, ClaimedJob, DueRenewal, FinishedJob, IntakeGate, JobConclusion, LeaseTerms,
    PauseReason, RenewalResult, Runner, RunnerHandle, RunnerMonitor, RunnerOptions, SlotPermit,
    WorkerStats,
};

/// How long a worker waits after something that is not a document's fault, and the longest after
/// many in a row.
const BREATH: Duration = Duration::from_secs(15);
const MAX_BREATH: Duration = Duration::from_secs(60);
/// How long a document whose marks cannot be read is passed over at first.
const UNREADABLE: Duration = Duration::from_secs(60);
/// How long it may take at a stop until everything is released.
const PUTTING_BACK: Duration = Duration::from_secs(60);

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
    /// How long documents in work may go on after a stop.
    pub drain: Duration,
    /// When documents are taken.
    pub windows: RunWindows,
}

/// What a worker needs before it registers.
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
    runner: Runner<BucketBacklog>,
}

/// The documents that wait in a bucket, as work for a runner.
struct BucketBacklog {
    bucket: Arc<BlobForgeBucket>,
    convert: Arc<dyn DocumentConverter>,
    terms: BucketWorkerOptions,
    who: WorkerIdentity,
    registration: Mutex<WorkerRegistration>,
    settings: watch::Sender<BucketSettings>,
    put_off: SyncMutex<PutOffDocuments>,
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
        let intake_gate = Arc::new(IntakeGate::new(BREATH, MAX_BREATH));
        let options = RunnerOptions {
            slots: terms.jobs,
            drain: terms.drain,
            supplying: Duration::ZERO,
            settling: PUTTING_BACK,
        };
        let backlog = BucketBacklog {
            bucket,
            convert,
            terms,
            who,
            registration: Mutex::new(registration),
            settings: watch::Sender::new(settings),
            put_off: SyncMutex::default(),
            unreadable: SyncMutex::default(),
            intake_gate: Arc::clone(&intake_gate),
            destination: QueueDestination { system: "blobforge".to_owned(), name: place },
        };
        Ok(BucketWorker { runner: Runner::new(Arc::new(backlog), options, intake_gate) })
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

impl BucketBacklog {
    /// Keeps in mind what is to stay away, for as long as the failure table says.
    fn note_conclusion(&self, hash: &str, conclusion: &JobConclusion<JobConversion>) {
        let mut put_off = self.put_off.lock();
        match conclusion {
            JobConclusion::Again { counted: false, after, .. } if !after.is_zero() => {
                put_off.put_off(hash, *after);
            }
            JobConclusion::Again { counted: false, .. } => {}
            _ => put_off.forget(hash),
        }
    }

    /// Whether the document is ours now; then its job runs.
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
                tracing::warn!(document, error = %error, "a document is passed over: {error}");
                metrics::count_delivery("unreadable");
                self.put_off.lock().put_off(document, UNREADABLE);
                true
            }
            Err(error) => {
                tracing::warn!(document, error = %error, "cannot take a document: {error}");
                metrics::count_delivery("trouble");
                self.intake_gate.close_with_backoff(PauseReason::SOURCE);
                // It is not known to be nobody's or somebody else's.
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
        ClaimedJob { job, claim: handle, renewer, since, place: LinePlace::take(), trace, log }
    }
}

#[async_trait]
impl Backlog for BucketBacklog {
    type Job = BucketJob;
    type Output = JobConversion;
    type Rest = ();

    /// Takes documents as long as there are.
    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        let mut look = TodoScanner::new(self.terms.each_list, self.terms.longest_pause);
        while let Some(slot) = runner.acquire_slot().await {
            if let Some(closed) = self.terms.windows.closed_for() {
                drop(slot);
                if self.terms.once && runner.is_idle() {
                    return;
                }
                // Not longer: clocks are set, and days have hours more or less.
                let pause = closed.min(MAX_BREATH);
                runner.wait_until(tokio::time::Instant::now() + pause).await;
                continue;
            }
            match look.next_candidate(&self.bucket).await {
                Ok(Some(candidate)) => {
                    let is_running = runner.is_running(|job| job.hash == candidate.hash);
                    // What is put off still waits: there is more to come.
                    if self.put_off.lock().is_put_off(&candidate.hash)
                        || !is_running && self.begin_job(&runner, &candidate, slot).await
                    {
                        look.mark_productive();
                    }
                }
                Ok(None) => {
                    drop(slot);
                    if self.terms.once && look.is_over() && runner.is_idle() {
                        return;
                    }
                    runner.wait_until(look.next_scan()).await;
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot look for documents: {error}");
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

    /// The bucket says how often a document is begun, whatever went wrong.
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
