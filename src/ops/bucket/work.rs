//! A worker of a bucket: takes what waits, converts it, tells how it ended, and takes its turn at
//! mending, until it is stopped.
//!
//! At a signal the documents in work are put back at once, their runs not counted. What is not the
//! documents' fault (the store or a model does not answer) is put back as well, and the worker
//! waits a while.

mod chores;
mod job;
mod tally;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::tally::Counts;
pub use self::tally::Tally;
use super::claim::{Candidate, Claimed, claim};
use super::convert::Convert;
use super::end::Ended;
use super::look::Look;
use super::registry::Seat;
use super::who::Who;
use super::{Bucket, Settings, janitor};
use crate::fault::Result;
use crate::shutdown::Stop;

/// How long a worker waits after something that is not a document's fault.
const BREATH: Duration = Duration::from_secs(15);

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
}

/// A worker, ready to run.
pub struct Work {
    /// Where.
    pub bucket: Arc<Bucket>,
    /// How documents are converted.
    pub convert: Arc<dyn Convert>,
    /// How it works.
    pub terms: Terms,
}

/// What the jobs of a worker share.
struct Shared {
    bucket: Arc<Bucket>,
    convert: Arc<dyn Convert>,
    largest: u64,
    who: Who,
    settings: watch::Receiver<Settings>,
    tally: Counts,
    jobs: Mutex<BTreeSet<String>>,
    paused_until: Mutex<Instant>,
    stop: Stop,
}

impl Shared {
    fn pause(&self) {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + BREATH;
    }

    fn paused_until(&self) -> Instant {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn works_on(&self, hash: &str) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    fn begins(&self, hash: &str) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.to_owned());
    }

    fn ends(&self, hash: &str) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }

    fn a_job(&self) -> Option<String> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

impl Work {
    /// Works until stopped, or with `once` until nothing waits.
    ///
    /// # Errors
    /// The store does not answer at the start, or its settings make no sense. Later failures are
    /// waited out.
    pub async fn run(self, stop: Stop) -> Result<Tally> {
        let Self { bucket, convert, terms } = self;
        let settings = Settings::load(&bucket).await?;
        let seat = Seat::take(&bucket, terms.name.as_deref(), &settings).await?;
        let who = seat.who().clone();
        let swept = janitor::own(&bucket, &settings, &who).await?;
        tracing::info!(
            worker = who.id,
            recovered = swept.acts.len(),
            "working on {}",
            bucket.describe()
        );
        let (sender, receiver) = watch::channel(settings);
        let shared = Arc::new(Shared {
            bucket,
            convert,
            largest: terms.largest,
            who,
            settings: receiver,
            tally: Counts::default(),
            jobs: Mutex::default(),
            paused_until: Mutex::new(Instant::now()),
            stop,
        });
        let chores = tokio::spawn(chores::run(Arc::clone(&shared), seat, sender));
        take(&shared, &terms).await;
        // A seat is given up by its chores once they are told; without a stop they would go on.
        shared.stop.ask();
        if let Err(died) = chores.await {
            tracing::error!(error = %died, "the worker's chores died");
        }
        Ok(shared.tally.now())
    }
}

/// Takes documents as long as there are, and waits for those in work.
async fn take(shared: &Arc<Shared>, terms: &Terms) {
    let mut look = Look::new(terms.each_list, terms.longest_pause);
    let mut jobs = JoinSet::new();
    loop {
        fill(shared, terms, &mut look, &mut jobs).await;
        let over = terms.once && look.is_over() && jobs.is_empty();
        if over || shared.stop.is_asked() {
            break;
        }
        let room = jobs.len() < terms.jobs;
        let next = look.next_look().max(shared.paused_until());
        tokio::select! {
            Some(ended) = jobs.join_next() => ended_well(ended),
            () = tokio::time::sleep_until(next), if room => {}
            () = shared.stop.until_asked() => {}
        }
    }
    while let Some(ended) = jobs.join_next().await {
        ended_well(ended);
    }
}

/// Starts jobs until there is no room or nothing to take.
async fn fill(shared: &Arc<Shared>, terms: &Terms, look: &mut Look, jobs: &mut JoinSet<()>) {
    while jobs.len() < terms.jobs
        && !shared.stop.is_asked()
        && shared.paused_until() <= Instant::now()
    {
        let candidate = match look.next(&shared.bucket).await {
            Ok(Some(candidate)) => candidate,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(error = %error, "cannot look for documents: {error}");
                return shared.pause();
            }
        };
        if !shared.works_on(&candidate.hash) && begin(shared, &candidate, jobs).await {
            look.bears_fruit();
        }
    }
}

/// Whether the document is ours now; then its job runs.
async fn begin(shared: &Arc<Shared>, candidate: &Candidate, jobs: &mut JoinSet<()>) -> bool {
    let settings = shared.settings.borrow().clone();
    match claim(&shared.bucket, &shared.who, &settings, candidate).await {
        Ok(Claimed::Ours(claim)) => {
            shared.begins(&claim.hash);
            let shared = Arc::clone(shared);
            jobs.spawn(async move {
                let hash = claim.hash.clone();
                let ended = job::run(&shared, *claim).await;
                shared.ends(&hash);
                if let Some(ended) = ended {
                    shared.tally.add(ended);
                }
            });
            true
        }
        Ok(Claimed::Busy | Claimed::Settled) => false,
        Err(error) => {
            tracing::warn!(error = %error, "cannot take a document: {error}");
            shared.pause();
            // It is not known to be nobody's or somebody else's.
            true
        }
    }
}

fn ended_well(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(died) = ended {
        // Its lock stays, and is found abandoned; the run is counted.
        tracing::error!(error = %died, "a job died");
    }
}

impl Ended {
    /// The word for it in logs and counts.
    pub fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::GivenBack => "given_back",
            Self::Lost => "lost",
        }
    }
}
