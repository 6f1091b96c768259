//! Two real workers over one provider with an unknown, changing limit: 20 requests a second, after
//! 20 s 8, after 45 s 30. Prints the time relative to the limit's own, the share of calls refused
//! after the first 20 s, and the attempts. Then two more workers with a key that is invalid for a
//! while: prints the effect on the documents. Exit code 1 if a target is missed: every document
//! completed with one counted attempt, at most 1.2 times the limit's own time, less than 5 %
//! refused; no document ended while the key was invalid, and all of them without intervention
//! afterwards. Argument: number of jobs.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/support"]
mod support {
    pub(crate) mod documents;
    pub(crate) mod page_processes;
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
/// The duration of an admitted call.
const LATENCY: Duration = Duration::from_millis(300);
/// For the curve that is printed.
const WINDOW: Duration = Duration::from_secs(5);
/// Times the limit's own time.
const MAX_RATIO: f64 = 1.2;
/// Of the calls after the first 20 s.
const REFUSED: f64 = 0.05;
/// How long the key is wrong, and jobs of that part.
const DENIED: Duration = Duration::from_secs(15);
const DENIED_JOBS: u32 = 200;

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
    submit(&world, jobs).await;
    let workers = [(); 2].map(|()| Process::worker(&world, &[]));
    while limit.counts().accepted == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let since = Instant::now();
    let deadline = limit.ideal(jobs) * 4 + seconds(60);
    let (mut windows, mut before) = (Vec::new(), 0);
    while count(&world, "in-progress").await > 0 && since.elapsed() < deadline {
        if since.elapsed() >= WINDOW * (u32::try_from(windows.len()).unwrap() + 1) {
            let accepted = limit.counts().accepted;
            windows.push((accepted - before).to_string());
            before = accepted;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = since.elapsed();
    println!("let through in each {} s: {}", WINDOW.as_secs(), windows.join(" "));
    let well = report(&world, &limit, (jobs, took)).await;
    drop(workers);
    let well = Box::pin(denied()).await && well;
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn submit(world: &World, jobs: u32) {
    let mut ids = Vec::new();
    for number in 0..jobs {
        let bytes = documents::invoice(&format!("T-{number}"));
        ids.push(world.insert("invoice.pdf", bytes).await);
    }
    world.send_all(&ids).await;
}

/// Ingestions of this status.
async fn count(world: &World, status: &str) -> u32 {
    let sql = format!("SELECT count(*)::text FROM docmill.ingestion WHERE status = '{status}'");
    world.scalar(&sql).await.parse().unwrap()
}

/// The attempts that count against a document, each number once.
async fn counted(world: &World) -> String {
    let sql = "SELECT string_agg(DISTINCT attempt_count::text, ',') FROM docmill.ingestion";
    world.scalar(sql).await
}

/// A key that is wrong for a while.
async fn denied() -> bool {
    let world = World::with_model(script_with_key("right")).await;
    let server = world.llm.as_ref().unwrap();
    submit(&world, DENIED_JOBS).await;
    let settings = [
        ("LLM__API_KEY", "right"),
        ("WORKER__SLOTS", "4"),
        ("RETRY__UNAVAILABLE_DELAY", "2s"),
        ("THROTTLE__OPEN_FOR", "2s"),
    ];
    let _workers = [(); 2].map(|()| Process::worker(&world, &settings));
    while count(&world, "completed").await < DENIED_JOBS / 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.set(script_with_key("another"));
    // Calls that were under way keep their answer.
    tokio::time::sleep(LATENCY * 3).await;
    let before = count(&world, "completed").await;
    let calls = server.calls().len();
    tokio::time::sleep(DENIED).await;
    let (within, failed) = (count(&world, "completed").await, count(&world, "failed").await);
    let tried = server.calls().len() - calls;
    server.set(script_with_key("right"));
    let since = Instant::now();
    while count(&world, "in-progress").await > 0 && since.elapsed() < DENIED * 8 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (completed, counted) = (count(&world, "completed").await, counted(&world).await);
    println!(
        "wrong key for {} s after {before} of {DENIED_JOBS}: {} completed and {failed} failed \
         meanwhile, {tried} calls got through; {:.1} s after it was right {completed} were \
         completed, attempts counted: {counted}",
        DENIED.as_secs(),
        within - before,
        since.elapsed().as_secs_f64()
    );
    within == before && failed == 0 && completed == DENIED_JOBS && counted == "1"
}

fn script_with_key(key: &str) -> Script {
    Script { api_key: Some(key.to_owned()), ..Script::always(Answer::late(LATENCY)) }
}

/// Whether every target was reached.
async fn report(world: &World, limit: &RateLimit, (jobs, took): (u32, Duration)) -> bool {
    let (completed, attempts) = (count(world, "completed").await, counted(world).await);
    let outcomes = "SELECT string_agg(outcome || ' ' || n, ', ') FROM \
                    (SELECT outcome, count(*) AS n FROM docmill.attempt GROUP BY outcome) o";
    let outcomes = world.scalar(outcomes).await;
    let counts = limit.counts();
    let ideal = limit.ideal(jobs);
    let times = took.as_secs_f64() / ideal.as_secs_f64();
    let share = as_float(counts.late_refused) / as_float(counts.late.max(1));
    println!("{completed} of {jobs} completed, attempts counted: {attempts}; ended: {outcomes}");
    println!(
        "{:.1} s, the limit's own time {:.1} s: {times:.2} times (target {MAX_RATIO})",
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
    completed == jobs && attempts == "1" && times <= MAX_RATIO && share < REFUSED
}

fn as_float(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}
