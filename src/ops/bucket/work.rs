//! A worker of a bucket: takes what waits, converts it, tells how it ended, and takes its turn at
//! mending, until it is stopped.
//!
//! It is a [`Backlog`] of the one runner (`crate::runner`): listings are looked through for what
//! waits, a claim is a lock, an end is written beside the original. At a signal the documents in
//! work may go on for as long as the drain lasts, none by default; then they are put back, their
//! runs not counted. What is not the documents' fault (the store or a model does not answer) is
//! put back as well, and the worker waits a while.

mod chores;
mod job;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use self::job::{BucketJob, Conversion};
use super::claim::{Candidate, Claim, Claimed, Kept, claim};
use super::convert::Convert;
use super::look::Look;
use super::registry::Seat;
use super::who::Who;
use super::{Bucket, Settings, janitor};
use crate::config::{Destination, RetryConfig};
use crate::fault::Result;
use crate::metrics;
use crate::model::{ClaimToken, DocumentId, IngestionId};
use crate::pipeline::failure::Attempt;
use crate::pipeline::{ClaimHandle, StepError, claim_handle};
use crate::runner::{
    Backlog, ClaimedJob, Conclusion, Door, Doors, DueRenewal, LeaseTerms, Monitor, Renewal, Runner,
    RunnerHandle, RunnerOptions, Settlement, SlotPermit, WorkerStats,
};
use crate::shutdown::Stop;
use crate::telemetry::spans;

/// How long a worker waits after something that is not a document's fault, and the longest after
/// many in a row.
const BREATH: Duration = Duration::from_secs(15);
const LONGEST_BREATH: Duration = Duration::from_secs(60);
/// How long it may take at a stop until everything is put back.
const PUTTING_BACK: Duration = Duration::from_secs(60);

/// How a worker works.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Documents at the same time.
    pub jobs: usize,
    /// End once nothing waits any more.
    pub once: bool,
    /// Time between two looks for every listing request they take.
    pub each_list: Duration,
    /// The longest pause between two looks while nothing waits.
    pub longest_pause: Duration,
    /// Larger documents are refused; bytes.
    pub largest: u64,
    /// Replaces the machine's fingerprint.
    pub name: Option<String>,
    /// How long documents in work may go on after a stop.
    pub drain: Duration,
}

/// A worker, ready to take its seat.
pub struct Work {
    /// Where.
    pub bucket: Arc<Bucket>,
    /// How documents are converted.
    pub convert: Arc<dyn Convert>,
    /// How it works.
    pub terms: Terms,
}

/// A worker that has its seat.
pub struct BucketWorker {
    runner: Runner<BucketBacklog>,
}

/// What waits in a bucket.
struct BucketBacklog {
    bucket: Arc<Bucket>,
    convert: Arc<dyn Convert>,
    terms: Terms,
    who: Who,
    seat: Mutex<Seat>,
    settings: watch::Sender<Settings>,
    doors: Arc<Doors>,
    /// The bucket as traces name it.
    destination: Destination,
}

impl Work {
    /// Takes a seat, and up what an earlier worker in it left.
    ///
    /// # Errors
    /// The store does not answer, or its settings make no sense.
    pub async fn open(self) -> Result<BucketWorker> {
        let Self { bucket, convert, terms } = self;
        let settings = Settings::load(&bucket).await?;
        let seat = Seat::take(&bucket, terms.name.as_deref(), &settings).await?;
        let who = seat.who().clone();
        let swept = janitor::own(&bucket, &settings, &who).await?;
        let (place, recovered) = (bucket.describe(), swept.acts.len());
        tracing::info!(worker = who.id, recovered, "working on {place}");
        let doors = Arc::new(Doors::new(BREATH, LONGEST_BREATH));
        let options =
            RunnerOptions { slots: terms.jobs, drain: terms.drain, settling: PUTTING_BACK };
        let backlog = BucketBacklog {
            bucket,
            convert,
            terms,
            who,
            seat: Mutex::new(seat),
            settings: watch::Sender::new(settings),
            doors: Arc::clone(&doors),
            destination: Destination { system: "blobforge".to_owned(), name: place },
        };
        Ok(BucketWorker { runner: Runner::new(Arc::new(backlog), options, doors) })
    }

    /// Works until stopped, or with `once` until nothing waits.
    ///
    /// # Errors
    /// As [`Work::open`]. Later failures are waited out.
    pub async fn run(self, stop: Stop) -> Result<WorkerStats> {
        Ok(self.open().await?.run(stop).await)
    }
}

impl BucketWorker {
    /// For the health pages.
    pub fn monitor(&self) -> Monitor {
        self.runner.monitor()
    }

    /// Works until stopped, or with `once` until nothing waits.
    pub async fn run(self, stop: Stop) -> WorkerStats {
        self.runner.run(stop).await
    }
}

impl BucketBacklog {
    /// Whether the document is ours now; then its job runs.
    async fn begin(
        &self,
        runner: &RunnerHandle<Self>,
        candidate: &Candidate,
        slot: SlotPermit,
    ) -> bool {
        let settings = self.settings.borrow().clone();
        let since = tokio::time::Instant::now();
        match claim(&self.bucket, &self.who, &settings, candidate).await {
            Ok(Claimed::Ours(claim)) => {
                runner.start(self.claimed(*claim, since, settings.stale()), slot);
                true
            }
            Ok(Claimed::Busy) => {
                metrics::delivery("busy");
                false
            }
            Ok(Claimed::Settled) => {
                metrics::delivery("terminal");
                false
            }
            Err(error) => {
                tracing::warn!(error = %error, "cannot take a document: {error}");
                metrics::delivery("trouble");
                self.doors.close_for_a_while(Door::SOURCE);
                // It is not known to be nobody's or somebody else's.
                true
            }
        }
    }

    fn claimed(
        &self,
        claim: Claim,
        since: tokio::time::Instant,
        lease: Duration,
    ) -> ClaimedJob<BucketJob> {
        let (hash, run) = (claim.hash.clone(), claim.run);
        // The name a submitted document of these bytes has elsewhere.
        let ingestion = IngestionId::first_of(DocumentId::of_content(&hash, ""));
        let until = (since + lease).into_std();
        let (handle, renewer) = claim_handle::pair(ingestion, ClaimToken::random(), until);
        let message = spans::Message {
            from: &self.destination,
            id: &hash,
            receive_count: run,
            traceparent: None,
        };
        let traced = spans::TracedAttempt { ingestion, document: &hash, attempt: run };
        let trace = spans::process(message, traced);
        let log = tracing::info_span!("job", document = hash, run);
        let job = BucketJob::new(claim);
        ClaimedJob { job, claim: handle, renewer, since, trace, log }
    }
}

#[async_trait]
impl Backlog for BucketBacklog {
    type Job = BucketJob;
    type Output = Conversion;
    type Rest = ();

    /// Takes documents as long as there are.
    async fn supply(self: Arc<Self>, runner: RunnerHandle<Self>) {
        let mut look = Look::new(self.terms.each_list, self.terms.longest_pause);
        while let Some(slot) = runner.slot().await {
            match look.next(&self.bucket).await {
                Ok(Some(candidate)) => {
                    if !runner.runs(|job| job.hash == candidate.hash)
                        && self.begin(&runner, &candidate, slot).await
                    {
                        look.bears_fruit();
                    }
                }
                Ok(None) => {
                    drop(slot);
                    if self.terms.once && look.is_over() && runner.is_idle() {
                        return;
                    }
                    runner.rest_until(look.next_look()).await;
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot look for documents: {error}");
                    self.doors.close_for_a_while(Door::SOURCE);
                }
            }
        }
    }

    async fn work(
        &self,
        job: &BucketJob,
        claim: &ClaimHandle,
    ) -> std::result::Result<Conversion, StepError> {
        Ok(job.convert(&self.bucket, self.convert.as_ref(), claim, self.terms.largest).await?)
    }

    fn lease(&self) -> LeaseTerms {
        let settings = self.settings.borrow();
        let (every, lease) = (settings.heartbeat(), settings.stale());
        LeaseTerms { every, lease, lost_unrenewed: true, side: "lock" }
    }

    async fn renew(&self, due: &[DueRenewal<BucketJob>]) -> Vec<Renewal> {
        let renew = |due: &DueRenewal<BucketJob>| {
            let job = Arc::clone(&due.job);
            async move {
                match job.renew(&self.bucket).await {
                    Ok(None | Some(Kept::Ours)) => Renewal::Kept,
                    Ok(Some(Kept::Cancelled)) => Renewal::Withdrawn,
                    Ok(Some(Kept::Lost)) => Renewal::Lost,
                    Err(error) => {
                        tracing::warn!(error = %error, "cannot renew a lock: {error}");
                        Renewal::Failed
                    }
                }
            }
        };
        futures::future::join_all(due.iter().map(renew)).await
    }

    async fn settle(
        &self,
        job: &BucketJob,
        _claim: &ClaimHandle,
        conclusion: Conclusion<Conversion>,
    ) -> Settlement<()> {
        let most = self.settings.borrow().max_retries;
        job.settle(&self.bucket, &self.who, &conclusion, most).await
    }

    fn attempt(&self, job: &BucketJob) -> Attempt {
        Attempt { number: job.run, deferred_for: None, jitter: fastrand::f64() }
    }

    /// The bucket says how often a document is begun, whatever went wrong.
    fn retry(&self) -> Cow<'_, RetryConfig> {
        Cow::Owned(RetryConfig::default().with_attempts(self.settings.borrow().max_retries))
    }

    fn job_timeout(&self, _job: &BucketJob) -> Duration {
        self.settings.borrow().timeout()
    }

    fn describe(&self, job: &BucketJob) -> String {
        format!("document {}", job.hash)
    }

    /// A marker that was put back is there for everybody at once.
    fn puts_off(&self) -> bool {
        false
    }

    async fn tend(self: Arc<Self>, runner: RunnerHandle<Self>, stop: CancellationToken) {
        chores::run(&self, &runner, stop).await;
    }
}
