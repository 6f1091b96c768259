//! The health port under idle connections, and under endless requests.

use docmill_testkit::sqs::Action;
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

async fn started(world: &World) -> Process {
    let worker = Process::worker(world, &[]);
    until(SOON, || async { worker.log().contains("health pages on ") }).await;
    worker
}

/// Returns once the other side has closed the connection.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_within_seconds_and_take_no_descriptors_from_the_work() {
    let world = World::new().await;
    let worker = started(&world).await;
    let address = worker.pages();
    let mut idle = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\n").await.ok();
        idle.push(stream);
    }
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", worker.id())).unwrap().count();
    assert!(descriptors < 200, "{descriptors} descriptors are open");
    let alive = reqwest::get(format!("http://{address}/livez"));
    let alive = timeout(SOON, alive).await.expect("who asks is answered");
    assert_eq!(alive.unwrap().status().as_u16(), 200);
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    world.until(id, "status", "completed").await;
    let all = futures::future::join_all(idle.into_iter().map(closed));
    timeout(SOON, all).await.expect("all of them are closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_questions_costs_one_call_to_the_queue_every_two_seconds() {
    let world = World::new().await;
    let worker = started(&world).await;
    let address = worker.pages();
    let depths = || world.sqs.counts().of(Action::GetQueueAttributes);
    let (before, begun) = (depths(), Instant::now());
    let ask = |at: u32| {
        let page = if at.is_multiple_of(2) { "readyz" } else { "metrics" };
        let url = format!("http://{address}/{page}");
        async move { reqwest::get(url).await.unwrap().status().as_u16() }
    };
    let mut answers = futures::stream::iter(0..400).map(ask).buffer_unordered(20);
    while let Some(status) = answers.next().await {
        assert_eq!(status, 200);
    }
    // One query each for readiness and gauges every two seconds, each of one request per queue and
    // dead-letter queue; the worker itself makes neither.
    let windows = begun.elapsed().as_secs() / 2 + 1;
    let asked = depths() - before;
    assert!(asked <= 4 * windows, "{asked} calls for 400 questions in {windows} windows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_may_have_as_many_descriptors_open_as_the_platform_allows() {
    let world = World::new().await;
    let worker = started(&world).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", worker.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers.first(), numbers.get(1), "{line}");
}
