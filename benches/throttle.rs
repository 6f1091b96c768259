//! Two real workers over one provider whose limit they do not know and that changes: 20 requests a
//! second, after 20 s 8, after 45 s 30. Prints the time against the limit's own, the share of calls
//! that were refused after the first 20 s, and the attempts. Exit code 1 if a target is missed: every
//! document completed with one attempt counted, at most 1.2 times the limit's own time, less than
//! 5 % refused. Argument: how many jobs.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/support"]
mod support {
    pub(crate) mod cells;
    pub(crate) mod documents;
    pub(crate) mod postgres;
    pub(crate) mod process;
    pub(crate) mod sqs;
    pub(crate) mod world;
}

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_testkit::models::{Answer, RateLimit, Script};
use support::documents;
use support::process::Process;
use support::world::World;

const JOBS: u32 = 1_000;
/// What a call takes that is let through.
const LATENCY: Duration = Duration::from_millis(300);
/// Times the limit's own time.
const LONGEST: f64 = 1.2;
/// Of the calls after the first 20 s.
const REFUSED: f64 = 0.05;

#[tokio::main]
async fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let jobs = arguments.next().map_or(JOBS, |jobs| jobs.parse().unwrap());
    let seconds = Duration::from_secs;
    let phases = [(seconds(0), 20.0), (seconds(20), 8.0), (seconds(45), 30.0)];
    let limit = Arc::new(RateLimit::new(&phases));
    let asked = Arc::clone(&limit);
    let world =
        World::with_model(Script::function(move |_| asked.answer(Answer::late(LATENCY)))).await;
    let mut ids = Vec::new();
    for number in 0..jobs {
        let bytes = documents::invoice(&format!("T-{number}"));
        ids.push(world.insert("invoice.pdf", bytes).await);
    }
    world.send_all(&ids).await;
    let _workers = [(); 2].map(|()| Process::worker(&world, &[]));
    while limit.counts().accepted == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let since = Instant::now();
    let deadline = limit.ideal(jobs) * 4 + seconds(60);
    let left = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    while world.scalar(left).await != "0" && since.elapsed() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = since.elapsed();
    report(&world, &limit, (jobs, took)).await
}

async fn report(world: &World, limit: &RateLimit, (jobs, took): (u32, Duration)) -> ExitCode {
    let completed = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'completed'";
    let completed = world.scalar(completed).await;
    let counted = "SELECT string_agg(DISTINCT attempt_count::text, ',') FROM docmill.ingestion";
    let counted = world.scalar(counted).await;
    let outcomes = "SELECT string_agg(outcome || ' ' || n, ', ') FROM \
                    (SELECT outcome, count(*) AS n FROM docmill.attempt GROUP BY outcome) o";
    let outcomes = world.scalar(outcomes).await;
    let counts = limit.counts();
    let ideal = limit.ideal(jobs);
    let times = took.as_secs_f64() / ideal.as_secs_f64();
    let count = |n: usize| f64::from(u32::try_from(n).unwrap());
    let share = count(counts.late_refused) / count(counts.late.max(1));
    println!("{completed} of {jobs} completed, attempts counted: {counted}; ended: {outcomes}");
    println!(
        "{:.1} s, the limit's own time {:.1} s: {times:.2} times (target {LONGEST})",
        took.as_secs_f64(),
        ideal.as_secs_f64()
    );
    println!(
        "calls: {} let through, {} refused; after 20 s {:.1} % refused (target {:.0} %)",
        counts.accepted,
        counts.refused,
        share * 100.0,
        REFUSED * 100.0
    );
    let well =
        completed == jobs.to_string() && counted == "1" && times <= LONGEST && share < REFUSED;
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
