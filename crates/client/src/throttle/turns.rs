//! A backlog at a slow provider, in virtual time: jobs of several processes that take turns, are put
//! off, come back through a queue in any order, and are served by age.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use time::OffsetDateTime;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::{GovernedAnswer, GovernedCall, Governor, LimiterKey, RateLimitHeaders, TokenEstimate};
use docmill_core::config::ThrottleConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{IngestionId, Priority};
use docmill_core::turn::{JobTurn, with_turn};

/// Calls a second that the provider takes; a call beyond is refused.
const PACE: f64 = 2.0;
/// Time that a call takes.
const LATENCY: Duration = Duration::from_millis(300);

/// A token bucket of a second's worth.
struct Provider {
    level: f64,
    at: Instant,
    refused: usize,
}

impl Provider {
    fn open() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { level: PACE, at: Instant::now(), refused: 0 }))
    }

    fn take_call(&mut self) -> bool {
        let now = Instant::now();
        self.level = (self.level + (now - self.at).as_secs_f64() * PACE).min(PACE);
        self.at = now;
        let taken = self.level >= 1.0;
        if taken {
            self.level -= 1.0;
        } else {
            self.refused += 1;
        }
        taken
    }
}

/// The course of a run.
struct Backlog {
    /// Jobs of tenants, the oldest first; each arrives so many seconds after the begin.
    jobs: Vec<(&'static str, f64)>,
    processes: usize,
    slots: usize,
    seed: u64,
}

/// How a run went.
struct Served {
    /// Of each job, seconds from its arrival to its answer.
    waits: Vec<f64>,
    /// Seconds from the begin to each answer, in the order of the jobs.
    ends: Vec<f64>,
    /// Attempts of all jobs.
    attempts: usize,
}

/// Processes that poll one queue: what was sent first is received first, where a slot is free.
struct Fleet {
    governors: Vec<Governor>,
    state: Mutex<FleetState>,
}

struct FleetState {
    free: Vec<usize>,
    ready: BTreeMap<usize, oneshot::Sender<usize>>,
    random: fastrand::Rng,
}

impl Fleet {
    /// Waits for a slot; returns its process.
    async fn receive(&self, number: usize) -> usize {
        let (sender, received) = oneshot::channel();
        self.state.lock().ready.insert(number, sender);
        self.hand_out();
        received.await.unwrap()
    }

    fn give_back(&self, process: usize) {
        self.state.lock().free[process] += 1;
        self.hand_out();
    }

    fn hand_out(&self) {
        let mut state = self.state.lock();
        loop {
            let open: Vec<usize> = (0..state.free.len()).filter(|it| state.free[*it] > 0).collect();
            let Some(process) = state.random.choice(open) else { return };
            let Some((_, job)) = state.ready.pop_first() else { return };
            state.free[process] -= 1;
            job.send(process).unwrap();
        }
    }
}

fn key() -> LimiterKey {
    LimiterKey { provider: "p".into(), account: "a".into(), model: "m".into() }
}

async fn call_once(governor: &Governor, provider: &Mutex<Provider>) -> Result<()> {
    let call = GovernedCall {
        governor,
        key: &key(),
        estimate: TokenEstimate::default(),
        quick_retries: 0,
    };
    call.make(|| async {
        if !provider.lock().take_call() {
            return Err(Error::new(Fault::Throttled(None), "429"));
        }
        tokio::time::sleep(LATENCY).await;
        Ok(GovernedAnswer { value: (), limits: RateLimitHeaders::default(), tokens: None })
    })
    .await
}

/// One job from its arrival to its answer: its seconds and its attempts.
async fn serve_job(
    (number, turn): (usize, JobTurn),
    fleet: Arc<Fleet>,
    provider: Arc<Mutex<Provider>>,
    mut random: fastrand::Rng,
) -> (f64, usize) {
    let arrived = Instant::now();
    for attempt in 1.. {
        tokio::time::sleep(Duration::from_millis(random.u64(0..200))).await;
        let process = fleet.receive(number).await;
        let turn = JobTurn { waited: arrived.elapsed(), ..turn.clone() };
        let ended = with_turn(turn, call_once(&fleet.governors[process], &provider)).await;
        fleet.give_back(process);
        match ended {
            Ok(()) => return (arrived.elapsed().as_secs_f64(), attempt),
            Err(Error { fault: Fault::InLine(wait) | Fault::Throttled(Some(wait)), .. }) => {
                tokio::time::sleep(wait).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    unreachable!()
}

async fn run(backlog: Backlog) -> Served {
    // The governor's own jitter.
    fastrand::seed(backlog.seed);
    let provider = Provider::open();
    let governors = (0..backlog.processes).map(|_| Governor::new(ThrottleConfig::default()));
    let state = FleetState {
        free: vec![backlog.slots; backlog.processes],
        ready: BTreeMap::new(),
        random: fastrand::Rng::with_seed(backlog.seed),
    };
    let fleet = Arc::new(Fleet { governors: governors.collect(), state: Mutex::new(state) });
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, (tenant, arrives)) in backlog.jobs.into_iter().enumerate() {
        let turn = JobTurn {
            id: IngestionId(Uuid::from_u128(u128::try_from(number).unwrap())),
            priority: Priority::Normal,
            tenant: Some(tenant.to_owned()),
            created_at: OffsetDateTime::UNIX_EPOCH
                + time::Duration::microseconds(i64::try_from(number).unwrap()),
            waited: Duration::ZERO,
        };
        let random = fastrand::Rng::with_seed(backlog.seed ^ u64::try_from(number).unwrap());
        let (fleet, provider) = (Arc::clone(&fleet), Arc::clone(&provider));
        tasks.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(arrives)).await;
            let (wait, attempts) = serve_job((number, turn), fleet, provider, random).await;
            (wait, began.elapsed().as_secs_f64(), attempts)
        }));
    }
    let mut served = Served { waits: Vec::new(), ends: Vec::new(), attempts: 0 };
    for task in tasks {
        let (wait, end, attempts) = task.await.unwrap();
        served.waits.push(wait);
        served.ends.push(end);
        served.attempts += attempts;
    }
    served
}

fn seconds(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / PACE
}

/// The share of the provider's pace that was used until so many were served.
fn share_used(ends: &[f64], count: usize) -> f64 {
    let mut ends = ends.to_vec();
    ends.sort_by(f64::total_cmp);
    seconds(count) / ends[count - 1]
}

/// The worst of all jobs: how many times its wait is that of its place, `allowed` seconds more.
fn worst_wait(arrivals: &[f64], waits: &[f64], allowed: f64) -> f64 {
    let waits = arrivals
        .iter()
        .zip(waits)
        .enumerate()
        .map(|(place, (arrived, wait))| wait / ((seconds(place) - arrived).max(0.0) + allowed));
    waits.fold(0.0, f64::max)
}

#[tokio::test(start_paused = true)]
async fn a_backlog_at_a_slow_provider_is_served_by_age_and_the_provider_is_never_idle() {
    // Several processes find a limit of two a second among themselves less well.
    for (processes, slots, share) in [(1, 64, 0.95), (1, 16, 0.95), (4, 16, 0.9), (4, 64, 0.9)] {
        for seed in 0..3 {
            let name = format!("{processes} x {slots}, seed {seed}");
            let jobs: Vec<_> = (0..500).map(|n| ("a", f64::from(n) / 200.0)).collect();
            let arrivals: Vec<f64> = jobs.iter().map(|(_, at)| *at).collect();
            let served = run(Backlog { jobs, processes, slots, seed }).await;
            let used = share_used(&served.ends, 500);
            // A job may keep a slot for 30 s.
            let worst = worst_wait(&arrivals, &served.waits, 30.0);
            let attempts = served.attempts;
            assert!(used >= share, "{name}: {used:.3} of the pace used");
            assert!(worst <= 2.0, "{name}: a job waited {worst:.2} times as long as its place");
            assert!(attempts <= 500 * 10, "{name}: {attempts} attempts");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_that_arrive_faster_than_they_are_served_wait_in_the_order_of_their_age() {
    let jobs: Vec<_> = (0..1_200).map(|n| ("a", seconds(n) / 1.5)).collect();
    let arrivals: Vec<f64> = jobs.iter().map(|(_, at)| *at).collect();
    let served = run(Backlog { jobs, processes: 2, slots: 32, seed: 7 }).await;
    let used = share_used(&served.ends, 1_200);
    let worst = worst_wait(&arrivals, &served.waits, 30.0);
    assert!(used >= 0.93, "{used:.3} of the pace used");
    assert!(worst <= 2.0, "{worst:.2}");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_one_job_does_not_wait_behind_the_backlog_of_another() {
    let mut jobs: Vec<_> = (0..600).map(|_| ("many", 0.0)).collect();
    jobs.extend((0..10_u8).map(|n| ("few", 60.0 + 20.0 * f64::from(n))));
    // Slots are no matter here: the queue has its own turns.
    let served = run(Backlog { jobs, processes: 2, slots: 1_000, seed: 3 }).await;
    let few = served.waits.iter().skip(600).copied().fold(0.0, f64::max);
    assert!(few <= 15.0, "{few:.1} s behind a backlog of five minutes");
}
