//! The runner over a scripted job source: the guarantees to every job source. `job_source_suite`
//! checks that the real ones behave like this one.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::config::RetryConfig;
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{ClaimToken, IngestionId, OutcomeReason};
use docmill_core::work_clock::{CpuQueuePosition, note_progress, wait_off_clock};
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, StepError, claim_handle};
use docmill_worker::runner::{
    ClaimedJob, DueRenewal, FinishedJob, IntakeGate, JobConclusion, JobEnd, JobSource, LeaseTerms,
    RenewalResult, Runner, RunnerHandle, RunnerOptions, WorkerStats,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::job_source_suite::WorkPlan;

const S: fn(u64) -> Duration = Duration::from_secs;

/// The work on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Well,
    Fails(Fault),
    /// The job fails after this long.
    FailsAfter(Duration, Fault),
    IsRefused,
    Panics,
    Hangs,
    /// The job takes this long.
    Takes(Duration),
    /// The job waits this long for what others have.
    Waits(Duration),
    /// The job keeps something, then hangs.
    KeepsAndHangs,
    /// The plan for this name.
    AsPlanned(&'static str),
}

/// The fault beside the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpkeepScript {
    Well,
    SideLeasesHang,
    RenewalsPanic,
    SideLeasesPanic,
    BackgroundPanics,
    IntakePanics,
    /// Neither a poll nor an end is ever answered.
    NothingAnswers,
}

/// A job source in memory.
pub(crate) struct Script {
    jobs: Mutex<VecDeque<Does>>,
    lease: LeaseTerms,
    timeout: Duration,
    /// Whether supplying goes on when nothing is left.
    endless: bool,
    /// Whether a job that is given back waits again.
    returns: bool,
    /// For jobs that are done as planned.
    pub(crate) plan: WorkPlan,
    /// Names of planned jobs that are claimed, and of those claimed by another worker.
    held: Mutex<BTreeSet<&'static str>>,
    taken: Mutex<BTreeSet<&'static str>>,
    /// The answer to renewals, and its delay.
    renewal: Mutex<(RenewalResult, Duration)>,
    holds_back: AtomicBool,
    /// A dependency of every job that is down.
    outage: Option<&'static str>,
    /// How often the runner finds it down; from then on it is up.
    outage_answers: AtomicUsize,
    /// The behaviour of the upkeep tasks.
    upkeep: UpkeepScript,
    /// One permit for each end that may be written.
    writing: Semaphore,
    /// One permit for each disposal that may pass.
    disposal: Semaphore,
    /// When each renewal was asked for, and for how many claims.
    renewals: Mutex<Vec<(Instant, usize)>>,
    working: AtomicUsize,
    most_working: AtomicUsize,
    /// Jobs under work while the first slot was held to look for one.
    used_at_first: OnceLock<usize>,
    ended: Mutex<Vec<(Does, String)>>,
    claims: Mutex<Vec<ClaimHandle>>,
}

impl Script {
    fn of(jobs: impl IntoIterator<Item = Does>) -> Self {
        Self {
            jobs: Mutex::new(jobs.into_iter().collect()),
            lease: LeaseTerms { every: S(20), lease: S(60), lost_unrenewed: false, side: "row" },
            timeout: S(3600),
            endless: false,
            returns: false,
            plan: WorkPlan::default(),
            held: Mutex::default(),
            taken: Mutex::default(),
            renewal: Mutex::new((RenewalResult::Kept, Duration::ZERO)),
            holds_back: AtomicBool::new(false),
            outage: None,
            outage_answers: AtomicUsize::new(usize::MAX),
            upkeep: UpkeepScript::Well,
            writing: Semaphore::new(1000),
            disposal: Semaphore::new(1000),
            renewals: Mutex::default(),
            working: AtomicUsize::new(0),
            most_working: AtomicUsize::new(0),
            used_at_first: OnceLock::new(),
            ended: Mutex::default(),
            claims: Mutex::default(),
        }
    }

    /// Without jobs yet, for any number of runners at once; what is given back waits again.
    pub(crate) fn shared(every: Duration) -> Self {
        let lease = LeaseTerms { every, lease: every * 60, lost_unrenewed: false, side: "row" };
        Self { lease, endless: true, returns: true, ..Self::of([]) }
    }

    fn ended(&self) -> Vec<(Does, String)> {
        self.ended.lock().unwrap().clone()
    }

    /// One more job that waits.
    pub(crate) fn push(&self, job: Does) {
        self.jobs.lock().unwrap().push_back(job);
    }

    /// Whether the job is the caller's now; a planned one that is claimed or has ended is not.
    fn try_hold(&self, job: Does) -> bool {
        let Does::AsPlanned(name) = job else { return true };
        let has_ended = self.is_complete(name);
        !has_ended
            && !self.taken.lock().unwrap().contains(name)
            && self.held.lock().unwrap().insert(name)
    }

    /// Another worker takes the claim of a planned job.
    pub(crate) fn take_claim(&self, name: &'static str) {
        self.taken.lock().unwrap().insert(name);
    }

    pub(crate) fn is_claimed(&self, name: &str) -> bool {
        self.held.lock().unwrap().contains(name) || self.taken.lock().unwrap().contains(name)
    }

    pub(crate) fn is_complete(&self, name: &str) -> bool {
        let ended = self.ended.lock().unwrap();
        let is_it = |job: &Does| matches!(job, Does::AsPlanned(ended) if *ended == name);
        ended.iter().any(|(job, how)| is_it(job) && how == "completed")
    }

    /// Runs it until nothing is left.
    async fn run(self) -> (Arc<Self>, WorkerStats) {
        let script = Arc::new(self);
        let runner = runner(&script, S(60));
        let stats = runner.run(Shutdown::default()).await.unwrap();
        (script, stats)
    }
}

fn runner(script: &Arc<Script>, drain: Duration) -> Runner<Script> {
    let options = RunnerOptions { slots: 3, drain, supplying: S(0), drain_grace: S(5) };
    Runner::new(Arc::clone(script), options, Arc::new(IntakeGate::new(S(1), S(60))))
}

/// A conclusion in a word.
fn word(conclusion: &JobConclusion<()>) -> (JobEnd, String) {
    match conclusion {
        JobConclusion::Completed(()) => (JobEnd::Done, "completed".to_owned()),
        JobConclusion::Ended { reason, .. } => (JobEnd::Dead, format!("ended {}", reason.code())),
        JobConclusion::Again { fault, counted, .. } => {
            let end = if *counted { JobEnd::Failed } else { JobEnd::GivenBack };
            (end, format!("again {} {counted}", fault.code()))
        }
        JobConclusion::Withdrawn => (JobEnd::Cancelled, "withdrawn".to_owned()),
        JobConclusion::ClaimLost => (JobEnd::Lost, "lost".to_owned()),
    }
}

#[async_trait]
impl JobSource for Script {
    type Job = Does;
    type Output = ();
    type Rest = ();

    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        while let Some(slot) = runner.acquire_slot().await {
            self.used_at_first.get_or_init(|| runner.slot_counts().1);
            let next = self.jobs.lock().unwrap().pop_front();
            let Some(job) = next.filter(|job| self.try_hold(*job)) else {
                drop(slot);
                match self.upkeep {
                    UpkeepScript::IntakePanics => panic!("intake was told to panic"),
                    UpkeepScript::NothingAnswers => std::future::pending().await,
                    _ => {}
                }
                if !self.endless && runner.is_idle() {
                    return;
                }
                runner.wait_until(Instant::now() + S(1)).await;
                continue;
            };
            let since = Instant::now();
            let until = (since + self.lease.lease).into_std();
            let (claim, renewer) =
                claim_handle::claim_pair(IngestionId::random(), ClaimToken::random(), until);
            self.claims.lock().unwrap().push(claim.clone());
            let (trace, log) = (tracing::Span::none(), tracing::Span::none());
            let place = CpuQueuePosition::take();
            runner.start_job(ClaimedJob { job, claim, renewer, since, place, trace, log }, slot);
        }
    }

    async fn run_job(&self, job: &Does, _claim: &ClaimHandle) -> Result<(), StepError> {
        let working = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_working.fetch_max(working, Ordering::SeqCst);
        let _left = Left(&self.working);
        match *job {
            Does::Well => {}
            Does::Fails(fault) => return Err(Error::new(fault, "told to fail").into()),
            Does::FailsAfter(time, fault) => {
                tokio::time::sleep(time).await;
                return Err(Error::new(fault, "told to fail").into());
            }
            Does::IsRefused => {
                return Err(StepError::rejected(OutcomeReason::Encrypted, "told to"));
            }
            Does::Panics => panic!("told to panic"),
            Does::Hangs => std::future::pending().await,
            Does::Takes(time) => tokio::time::sleep(time).await,
            Does::Waits(time) => wait_off_clock(tokio::time::sleep(time)).await,
            Does::KeepsAndHangs => {
                note_progress();
                std::future::pending().await
            }
            Does::AsPlanned(name) => self.plan.perform(|job| job == name).await?,
        }
        Ok(())
    }

    fn lease_terms(&self) -> LeaseTerms {
        self.lease
    }

    async fn renew(&self, due: &[DueRenewal<Does>]) -> Vec<RenewalResult> {
        self.renewals.lock().unwrap().push((Instant::now(), due.len()));
        assert!(self.upkeep != UpkeepScript::RenewalsPanic, "renewals were told to panic");
        let (answer, takes) = *self.renewal.lock().unwrap();
        tokio::time::sleep(takes).await;
        let taken = self.taken.lock().unwrap();
        let is_taken = |job: &Does| matches!(job, Does::AsPlanned(name) if taken.contains(name));
        due.iter()
            .map(|due| if is_taken(&due.job) { RenewalResult::Lost } else { answer })
            .collect()
    }

    async fn finish_job(
        &self,
        job: &Does,
        _: &ClaimHandle,
        conclusion: JobConclusion<()>,
    ) -> FinishedJob<()> {
        if self.upkeep == UpkeepScript::NothingAnswers {
            std::future::pending::<()>().await;
        }
        self.writing.acquire().await.unwrap().forget();
        let (end, outcome) = word(&conclusion);
        self.ended.lock().unwrap().push((*job, outcome));
        if let Does::AsPlanned(name) = job {
            self.held.lock().unwrap().remove(name);
        }
        if self.returns && matches!(conclusion, JobConclusion::Again { counted: false, .. }) {
            self.push(*job);
        }
        FinishedJob { end, outcome: "scripted", rest: () }
    }

    async fn renew_side_leases(&self) {
        match self.upkeep {
            UpkeepScript::SideLeasesHang => std::future::pending().await,
            UpkeepScript::SideLeasesPanic => panic!("side leases were told to panic"),
            _ => {}
        }
    }

    async fn run_background(
        self: Arc<Self>,
        _runner: RunnerHandle<Self>,
        stop: tokio_util::sync::CancellationToken,
    ) {
        assert!(self.upkeep != UpkeepScript::BackgroundPanics, "told to panic");
        stop.cancelled().await;
    }

    async fn run_deferred(&self, _job: &Does, _rest: ()) {
        self.disposal.acquire().await.unwrap().forget();
    }

    fn retry_attempt(&self, _job: &Does) -> RetryAttempt {
        RetryAttempt { number: 1, deferred_for: None, jitter: 0.5 }
    }

    fn retry_config(&self) -> Cow<'_, RetryConfig> {
        Cow::Owned(RetryConfig::default())
    }

    fn job_timeout(&self, _job: &Does) -> Duration {
        self.timeout
    }

    fn describe(&self, _job: &Does) -> String {
        "job".to_owned()
    }

    fn is_job_paused(&self, _job: &Does) -> bool {
        self.holds_back.load(Ordering::SeqCst)
    }

    async fn find_outage(&self) -> Option<String> {
        let left = self.outage_answers.load(Ordering::SeqCst).checked_sub(1)?;
        self.outage_answers.store(left, Ordering::SeqCst);
        self.outage.map(str::to_owned)
    }
}

struct Left<'a>(&'a AtomicUsize);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lets simulated time pass until it holds.
async fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + S(7200);
    while !holds() {
        assert!(Instant::now() < deadline, "it did not happen within two hours");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_job_ends_by_the_failure_table_and_takes_no_other_with_it() {
    let table = [
        (Does::Well, "completed"),
        (Does::Panics, "again internal true"),
        (Does::Hangs, "ended timeout"),
        (Does::IsRefused, "ended encrypted"),
        (Does::Fails(Fault::Transient), "again transient true"),
        (Does::Fails(Fault::Rejected), "ended corrupt"),
        (Does::Fails(Fault::Throttled(None)), "again throttled false"),
        (Does::Fails(Fault::OverBudget(S(9))), "again over_budget false"),
        (Does::Fails(Fault::Denied), "again denied false"),
        (Does::Takes(S(30)), "completed"),
        (Does::Waits(S(100_000)), "completed"),
        (Does::KeepsAndHangs, "again transient false"),
    ];
    let (script, stats) = Script::of(table.map(|(does, _)| does)).run().await;
    let mut ended = script.ended();
    assert_eq!(ended.len(), table.len());
    for (does, expected) in table {
        let at = ended.iter().position(|(done, _)| *done == does).unwrap();
        assert_eq!(ended.remove(at).1, expected, "{does:?}");
    }
    let expected = WorkerStats { done: 3, failed: 2, dead: 3, given_back: 4, ..Default::default() };
    assert_eq!(stats, expected);
    assert_eq!(script.working.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_of_every_document_is_an_outage_and_not_counted() {
    let fails = Does::Fails(Fault::Transient);
    let (script, stats) = Script::of([fails; 6]).run().await;
    assert_eq!(script.ended(), vec![(fails, "again unavailable false".to_owned()); 6]);
    assert_eq!(stats.given_back, 6);
}

#[tokio::test(start_paused = true)]
async fn no_more_jobs_run_than_there_are_slots_and_a_disposal_holds_none() {
    let script = Script { disposal: Semaphore::new(0), ..Script::of([Does::Takes(S(5)); 12]) };
    let script = Arc::new(script);
    let running = tokio::spawn(runner(&script, S(60)).run(Shutdown::default()));
    until(|| script.ended().len() == 12).await;
    assert_eq!(script.most_working.load(Ordering::SeqCst), 3);
    assert_eq!(script.used_at_first.get(), Some(&0), "a slot held to look for work runs none");
    assert!(!running.is_finished(), "it ends when everything is disposed of");
    script.disposal.add_permits(12);
    assert_eq!(running.await.unwrap().unwrap().done, 12);
}

#[tokio::test(start_paused = true)]
async fn jobs_start_while_the_ends_of_others_wait_for_what_is_locked_nine_ends_for_each_slot() {
    let script = Script { writing: Semaphore::new(0), ..Script::of([Does::Well; 40]) };
    let script = Arc::new(script);
    let running = tokio::spawn(runner(&script, S(60)).run(Shutdown::default()));
    let begun = || script.claims.lock().unwrap().len();
    until(|| begun() == 30).await;
    tokio::time::sleep(S(600)).await;
    assert_eq!(begun(), 30, "27 ends wait without a slot, and three more keep theirs");
    script.writing.add_permits(1);
    until(|| begun() == 31).await;
    script.writing.add_permits(39);
    assert_eq!(running.await.unwrap().unwrap().done, 40);
}

#[tokio::test(start_paused = true)]
async fn claims_are_renewed_together_and_never_later_than_one_beat_after_the_last() {
    let mut last = Instant::now();
    let (script, _) = Script::of([Does::Takes(S(100)); 3]).run().await;
    let renewals = script.renewals.lock().unwrap().clone();
    assert!((4..=9).contains(&renewals.len()), "every 10 to 20 s: {renewals:?}");
    for (asked, claims) in renewals {
        assert_eq!(claims, 3);
        assert!(asked - last <= S(20), "{:?}", asked - last);
        last = asked;
    }
    assert!(last.elapsed() <= S(20));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_renewal_finds_lost_or_withdrawn_ends_its_job() {
    for (answer, expected) in
        [(RenewalResult::Lost, "lost"), (RenewalResult::Withdrawn, "withdrawn")]
    {
        let script = Script::of([Does::Hangs]);
        script.renewal.lock().unwrap().0 = answer;
        let (script, _) = script.run().await;
        assert_eq!(script.ended(), [(Does::Hangs, expected.to_owned())]);
        assert_eq!(script.claims.lock().unwrap()[0].is_lost(), answer == RenewalResult::Lost);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unrenewed_claim_counts_as_lost_at_its_deadline_where_no_answer_reports_it() {
    let began = Instant::now();
    let script = Script {
        lease: LeaseTerms { every: S(20), lease: S(60), lost_unrenewed: true, side: "lock" },
        ..Script::of([Does::Hangs])
    };
    script.renewal.lock().unwrap().0 = RenewalResult::Failed;
    let (script, stats) = script.run().await;
    assert_eq!((stats.lost, script.ended().len()), (1, 1));
    assert!(began.elapsed() < S(60), "before somebody else may take it");
    assert!(began.elapsed() >= S(30), "and not at the first failure");

    let script = Script { timeout: S(300), ..Script::of([Does::Hangs]) };
    script.renewal.lock().unwrap().0 = RenewalResult::Failed;
    let (script, _) = script.run().await;
    let expected = [(Does::Hangs, "ended timeout".to_owned())];
    assert_eq!(script.ended(), expected, "a failed renewal is no loss where an answer will come");
}

#[tokio::test]
async fn invariant_13_a_renewal_that_is_answered_late_counts_from_when_it_was_asked_for() {
    let (every, lease) = (Duration::from_millis(100), Duration::from_millis(400));
    let script = Script {
        lease: LeaseTerms { every, lease, lost_unrenewed: false, side: "row" },
        ..Script::of([Does::Hangs])
    };
    // The answer takes longer than what it grants.
    *script.renewal.lock().unwrap() = (RenewalResult::Kept, lease * 2);
    let script = Arc::new(script);
    let stop = Shutdown::default();
    let running = tokio::spawn(runner(&script, Duration::ZERO).run(stop.clone()));
    while script.renewals.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let claim = script.claims.lock().unwrap()[0].clone();
    let live = tokio::time::timeout(lease / 4, claim.ensure_live()).await;
    assert!(live.is_err(), "what was granted was over before the answer came");
    stop.request();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_jobs_end_and_gives_back_what_is_left_at_its_deadline() {
    let jobs = [Does::Takes(S(20)), Does::Hangs, Does::Takes(S(50)), Does::Well];
    let script = Arc::new(Script { endless: true, ..Script::of(jobs) });
    let (stop, runner) = (Shutdown::default(), runner(&script, S(30)));
    let monitor = runner.monitor();
    let running = tokio::spawn(runner.run(stop.clone()));
    until(|| monitor.running_jobs().len() == 3).await;
    let began = Instant::now();
    stop.request();
    until(|| monitor.is_draining()).await;
    let stats = running.await.unwrap().unwrap();
    assert_eq!((stats.done, stats.given_back), (1, 2), "the fourth was not begun");
    assert!(began.elapsed() < S(32), "{:?}", began.elapsed());
    let given_back = script.ended().into_iter().filter(|(_, how)| how == "again interrupted false");
    assert_eq!(given_back.count(), 2);
    assert!(!monitor.is_busy());
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_does_not_wait_for_the_deadline() {
    let script = Arc::new(Script { endless: true, ..Script::of([Does::Hangs]) });
    let (stop, runner) = (Shutdown::default(), runner(&script, S(3600)));
    let running = tokio::spawn(runner.run(stop.clone()));
    until(|| script.working.load(Ordering::SeqCst) == 1).await;
    let began = Instant::now();
    stop.request();
    tokio::time::sleep(S(1)).await;
    stop.abort_drain();
    assert_eq!(running.await.unwrap().unwrap().given_back, 1);
    assert!(began.elapsed() < S(3));
}

#[tokio::test(start_paused = true)]
async fn intake_pauses_grow_in_an_outage_despite_jobs_that_need_nothing() {
    let (fails, well) = (Does::Fails(Fault::Unavailable), Does::Well);
    let began = Instant::now();
    let jobs = [[fails, well, well]; 12].into_iter().flatten();
    let (_, stats) = Script { outage: Some("p"), ..Script::of(jobs) }.run().await;
    assert_eq!((stats.given_back, stats.done), (12, 24));
    // Three slots at a time may be taken before the first of them has failed.
    let waited = began.elapsed();
    assert!((S(7)..S(600)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_completed_job_after_the_outage_reopens_intake_at_once() {
    let (fails, soon) = (Does::Fails(Fault::Unavailable), Does::Takes(S(1) / 10));
    let jobs = [fails, soon, soon, Does::Well, Does::Well];
    let answers = AtomicUsize::new(1);
    let script = Script { outage: Some("p"), outage_answers: answers, ..Script::of(jobs) };
    let began = Instant::now();
    let (_, stats) = script.run().await;
    assert_eq!((stats.given_back, stats.done), (1, 4));
    // The first pause would have lasted a second.
    assert!(began.elapsed() < S(1) / 2, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_some_jobs_does_not_pause_intake() {
    let spent = Fault::OverBudget(S(3600));
    let faults = [Fault::Unavailable, Fault::Denied, Fault::Misconfigured, spent];
    let jobs = faults.map(|fault| [Does::Fails(fault), Does::Well]);
    let began = Instant::now();
    let (_, stats) = Script::of([jobs; 12].into_iter().flatten().flatten()).run().await;
    assert_eq!((stats.given_back, stats.done), (48, 48));
    assert!(began.elapsed() < S(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_counts_unless_a_common_dependency_is_down() {
    let passing = Does::Fails(Fault::Transient);
    for (outage, expected) in
        [(None, "again transient true"), (Some("the store"), "again unavailable false")]
    {
        let (script, _) = Script { outage, ..Script::of([passing]) }.run().await;
        assert_eq!(script.ended(), [(passing, expected.to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_job_is_released_unstarted() {
    let script = Script::of([Does::Well]);
    script.holds_back.store(true, Ordering::SeqCst);
    let (script, _) = script.run().await;
    assert_eq!(script.ended(), [(Does::Well, "again paused false".to_owned())]);
    assert_eq!(script.most_working.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_dropped_stops_where_it_is() {
    let script = Arc::new(Script { endless: true, ..Script::of([Does::Hangs]) });
    let running = tokio::spawn(runner(&script, S(60)).run(Shutdown::default()));
    until(|| script.working.load(Ordering::SeqCst) == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    until(|| script.working.load(Ordering::SeqCst) == 0).await;
    assert_eq!(script.ended(), [], "nothing is written any more");
}

#[tokio::test(start_paused = true)]
async fn unanswered_side_leases_delay_no_renewal_of_a_claim() {
    let upkeep = UpkeepScript::SideLeasesHang;
    let script = Script { upkeep, ..Script::of([Does::Takes(S(100))]) };
    let (script, stats) = script.run().await;
    assert_eq!(stats.done, 1);
    let renewals = script.renewals.lock().unwrap().len();
    assert!(renewals >= 4, "{renewals} renewals in 100 s, one is due each 20 s");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_task_ends_the_runner_with_an_error_and_its_jobs_are_released() {
    let table = [
        (UpkeepScript::RenewalsPanic, "the heartbeat panicked"),
        (UpkeepScript::SideLeasesPanic, "the heartbeat of the queue panicked"),
        (UpkeepScript::BackgroundPanics, "the background panicked"),
        // Without a heartbeat that is missing, jobs have the whole drain to end.
        (UpkeepScript::IntakePanics, "the intake loop panicked"),
    ];
    for (upkeep, expected) in table {
        let script = Arc::new(Script { upkeep, endless: true, ..Script::of([Does::Hangs]) });
        let began = Instant::now();
        let ended = runner(&script, S(60)).run(Shutdown::default()).await;
        let error = ended.unwrap_err();
        assert!(error.to_string().contains(expected), "{upkeep:?}: {error}");
        assert!(began.elapsed() < S(100), "{upkeep:?}: {:?}", began.elapsed());
        let ends = script.ended();
        let taken = script.claims.lock().unwrap().len();
        assert_eq!(ends.len(), taken, "{upkeep:?}: what was taken is given back: {ends:?}");
        assert!(ends.iter().all(|(_, how)| how == "again interrupted false"), "{ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_over_in_time_even_if_nothing_answers_any_more() {
    let upkeep = UpkeepScript::NothingAnswers;
    let script = Script { upkeep, endless: true, ..Script::of([Does::Hangs, Does::Well]) };
    *script.renewal.lock().unwrap() = (RenewalResult::Kept, S(3600));
    let script = Arc::new(script);
    let stop = Shutdown::default();
    let runner = runner(&script, S(30));
    let running = tokio::spawn(runner.run(stop.clone()));
    // In the middle of a renewal.
    until(|| !script.renewals.lock().unwrap().is_empty()).await;
    let began = Instant::now();
    stop.request();
    running.await.unwrap().unwrap();
    assert!(began.elapsed() <= S(36), "30 s and 5 s: {:?}", began.elapsed());
}

/// Ends of jobs, counted by word.
fn tally(script: &Script) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for (_, word) in script.ended() {
        *tally.entry(word).or_default() += 1;
    }
    tally
}

#[tokio::test(start_paused = true)]
async fn of_many_documents_that_fail_alike_none_is_counted_and_one_at_a_time_tries() {
    for bad in [Does::Fails(Fault::Internal), Does::Panics] {
        let (script, stats) = Script::of([bad; 40]).run().await;
        let counts = tally(&script);
        assert_eq!(counts.get("again internal false"), Some(&40), "{bad:?}: {counts:?}");
        assert_eq!((stats.failed, stats.given_back, stats.dead), (0, 40, 0));
    }
    let slow = Does::FailsAfter(S(5), Fault::Misconfigured);
    let script = Script { endless: true, ..Script::of([slow; 40]) };
    let script = Arc::new(script);
    let running = runner(&script, S(60));
    let monitor = running.monitor();
    let stop = Shutdown::default();
    let task = tokio::spawn(running.run(stop.clone()));
    until(|| monitor.open_failure().is_some()).await;
    until(|| script.working.load(Ordering::SeqCst) == 0).await;
    script.most_working.store(0, Ordering::SeqCst);
    until(|| script.ended().len() == 20).await;
    assert_eq!(script.most_working.load(Ordering::SeqCst), 1, "one document at a time tries");
    stop.request();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_document_that_fails_alone_between_others_that_pass_is_counted_each_time() {
    let mixed = [Does::Fails(Fault::Internal), Does::Well].repeat(30);
    let (script, _) = Script::of(mixed).run().await;
    let counts = tally(&script);
    assert_eq!(counts.get("again internal true"), Some(&30), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_job_that_passes_opens_intake_for_all_again() {
    let bad = Does::Fails(Fault::Misconfigured);
    let script = Script { endless: true, ..Script::of([bad; 6]) };
    let script = Arc::new(script);
    let running = runner(&script, S(60));
    let monitor = running.monitor();
    let stop = Shutdown::default();
    let task = tokio::spawn(running.run(stop.clone()));
    until(|| script.ended().len() == 6).await;
    assert!(monitor.open_failure().is_some());
    for _ in 0..12 {
        script.push(Does::Takes(S(10)));
    }
    let begun = Instant::now();
    until(|| script.ended().len() == 18).await;
    assert_eq!(monitor.open_failure(), None);
    assert!(begun.elapsed() < S(90), "one, then three at a time: {:?}", begun.elapsed());
    stop.request();
    task.await.unwrap().unwrap();
}
