//! Workers killed while they wait for models: only calls in progress are paid for again.
//! `scripts/killed_calls.sh` runs it with 500 calls.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_core::model::IngestionId;
use docmill_testkit::models::{Answer, Request, Script, document_lines};

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// The default number of interrupted calls.
const FEW: usize = 16;
const LABEL: &str = "Invoice number: ";
const SETTINGS: [(&str, &str); 4] = [
    ("CLAIM__LEASE", "3s"),
    ("QUEUE__VISIBILITY", "3s"),
    ("WORKER__SLOTS", "20"),
    ("RETRY__CRASH_ATTEMPTS", "100"),
];

type Counts = Arc<Mutex<HashMap<String, usize>>>;

/// Counts calls by the invoice they are about, and answers each at its own time.
fn counting(counts: &Counts) -> Script {
    let counts = Arc::clone(counts);
    Script::function(move |request: &Request| {
        let lines = document_lines(&request.body);
        let number = lines.iter().find_map(|(_, text)| text.strip_prefix(LABEL)).unwrap();
        *counts.lock().unwrap().entry(number.trim().to_owned()).or_default() += 1;
        Answer::late(Duration::from_millis(100 + fastrand::u64(..900)))
    })
}

async fn unfinished(world: &World) -> usize {
    let sql = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    world.scalar(sql).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_calls_killed_at_random_points_are_made_once_more_and_no_oftener() {
    let wanted = std::env::var("KILLED_CALLS").map_or(FEW, |count| count.parse().unwrap());
    let counts = Counts::default();
    let world = World::with_model(counting(&counts)).await;
    let model = world.llm.as_ref().unwrap();
    let interrupted = || model.calls().iter().filter(|call| !call.completed).count();
    let mut numbers: HashMap<IngestionId, String> = HashMap::new();
    let mut kills = 0;
    while interrupted() < wanted {
        for _ in unfinished(&world).await..40 {
            let number = format!("KC-{}", numbers.len());
            let id = world.submit("a.pdf", documents::invoice(&number)).await;
            numbers.insert(id, number);
        }
        let mut worker = Process::worker(&world, &SETTINGS);
        // Several calls a time: a document may not be killed for ever (`crash_attempts`).
        let more = 4 + fastrand::usize(..12);
        assert!(model.arrived(model.calls().len() + more, SOON).await);
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..400))).await;
        worker.kill();
        kills += 1;
    }
    let interrupted = interrupted();
    let mut last = Process::worker(&world, &SETTINGS);
    until(SOON * 5, || async { unfinished(&world).await == 0 }).await;
    last.terminate();
    assert!(last.ended(SOON).await.success());

    let counts = counts.lock().unwrap().clone();
    let mut most = 0;
    for (id, number) in &numbers {
        let attempts = world.attempts(*id).await;
        assert_eq!(attempts.last().unwrap(), "completed", "{attempts:?}");
        let crashes = attempts.iter().filter(|end| *end == "crashed").count();
        let calls = counts.get(number).copied().unwrap_or_default();
        assert!((1..=1 + crashes).contains(&calls), "{number}: {calls} calls, {crashes} crashes");
        most = most.max(calls);
    }
    let again = model.completed_twice().len();
    eprintln!(
        "{} documents, {kills} kills, {interrupted} calls interrupted, at most {most} calls for \
         one document, {again} that were answered but not stored yet were made again",
        numbers.len()
    );
}
