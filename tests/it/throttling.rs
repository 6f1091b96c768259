//! Workers under a provider that refuses: too many requests, or wrong credentials.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use docmill_testkit::models::{Answer, RateLimit, Script};

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

async fn submit(world: &World, count: usize) {
    for number in 0..count {
        world.submit("invoice.pdf", documents::invoice(&format!("T-{number}"))).await;
    }
}

/// How many ingestions are completed, and how many have ended.
async fn progress(world: &World) -> (String, String) {
    let completed = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'completed'";
    let ended = "SELECT count(*)::text FROM docmill.ingestion WHERE status <> 'in-progress'";
    (world.scalar(completed).await, world.scalar(ended).await)
}

async fn no_attempt_counted_twice(world: &World) {
    let counts = "SELECT string_agg(DISTINCT attempt_count::text, ',') FROM docmill.ingestion";
    assert_eq!(world.scalar(counts).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_under_a_limit_that_they_do_not_know_and_that_changes_complete_everything() {
    let seconds = Duration::from_secs;
    let limit =
        Arc::new(RateLimit::new(&[(seconds(0), 20.0), (seconds(3), 8.0), (seconds(8), 30.0)]));
    let (asked, jobs) = (Arc::clone(&limit), 150);
    let script = Script::function(move |_| asked.answer(Answer::late(Duration::from_millis(100))));
    let world = World::with_model(script).await;
    submit(&world, jobs).await;
    let _workers = [(); 2].map(|()| Process::worker(&world, &[]));
    let all = (jobs.to_string(), jobs.to_string());
    until(SOON * 3, || async { progress(&world).await == all }).await;
    no_attempt_counted_twice(&world).await;
    let counts = limit.counts();
    assert_eq!(counts.accepted, jobs, "nothing is asked twice");
    assert!(counts.refused > 0, "the limit was never met: {counts:?}");
    assert!(counts.refused < jobs, "{counts:?}");
}

/// The worker's metrics as text.
async fn metrics(worker: &Process) -> String {
    let log = worker.log();
    let (_, rest) = log.split_once("health pages on http://").unwrap();
    let address: String =
        rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':')).collect();
    let answer = reqwest::get(format!("http://{address}/metrics")).await.unwrap();
    answer.text().await.unwrap()
}

/// Whether a metric with this label, if any, has this value.
fn shows(metrics: &str, name: &str, label: &str, value: &str) -> bool {
    metrics.lines().any(|line| {
        line.starts_with(name) && line.contains(label) && line.ends_with(&format!(" {value}"))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_in_the_middle_fail_nothing_and_work_goes_on_once_they_are_right() {
    let script = |key: &str| Script {
        api_key: Some(key.to_owned()),
        ..Script::always(Answer::late(Duration::from_millis(50)))
    };
    let world = World::with_model(script("right")).await;
    let server = world.llm.as_ref().unwrap();
    submit(&world, 40).await;
    let worker = Process::worker(
        &world,
        &[
            ("LLM__API_KEY", "right"),
            ("WORKER__SLOTS", "2"),
            ("RETRY__UNAVAILABLE_DELAY", "1s"),
            ("THROTTLE__OPEN_FOR", "1s"),
        ],
    );
    let completed = || async { progress(&world).await.0.parse::<usize>().unwrap() };
    until(SOON, || async { completed().await >= 3 }).await;
    server.set(script("another"));
    until(SOON, || async {
        let metrics = metrics(&worker).await;
        shows(&metrics, "docmill_provider_denied", "openai", "1")
            && shows(&metrics, "docmill_breaker_state", "openai", "2")
            && shows(&metrics, "docmill_intake_paused", "dependency", "1")
    })
    .await;
    let (before, ended) = progress(&world).await;
    assert_eq!(before, ended, "nothing failed");
    assert_ne!(before, "40", "it happened in the middle");
    server.set(script("right"));
    until(SOON, || async { completed().await == 40 }).await;
    no_attempt_counted_twice(&world).await;
    let metrics = metrics(&worker).await;
    assert!(shows(&metrics, "docmill_provider_denied", "openai", "0"), "{metrics}");
    let given_back = "SELECT count(*)::text FROM docmill.attempt \
                      WHERE outcome = 'denied' AND NOT counted AND NOT final";
    assert_ne!(world.scalar(given_back).await, "0");
}
