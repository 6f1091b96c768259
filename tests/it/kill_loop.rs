//! Workers that are killed repeatedly, over each queue: every document ends once, none is lost.
//!
//! A few documents and kills here; `scripts/kill_loop.sh` runs many, by `DOCMILL_KILL_DOCUMENTS`
//! and `DOCMILL_KILLS`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill::app::App;
use docmill_compat::objects::ObjectQueue;
use docmill_core::config::QueueBackend;
use docmill_storage::ObjectStore;
use docmill_storage::s3::S3Store;
use docmill_testkit::openai::{Answer, Script};

use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::process::Process;
use crate::support::redis::Redis;
use crate::support::world::{World, s3_client};

/// Short, so that what a dead worker had claimed is free again soon.
const SHORT: [(&str, &str); 4] = [
    ("QUEUE__VISIBILITY", "3s"),
    ("CLAIM__LEASE", "5s"),
    ("WORKER__SLOTS", "4"),
    // Every death counts for every document the worker had.
    ("RETRY__CRASH_ATTEMPTS", "100"),
];

fn number(variable: &str, else_: u64) -> u64 {
    std::env::var(variable).map_or(else_, |text| text.parse().unwrap())
}

async fn kill_all_the_time(world: &World, more: &[(&str, &str)]) {
    let (documents, kills) = (number("DOCMILL_KILL_DOCUMENTS", 16), number("DOCMILL_KILLS", 4));
    let mut ids = Vec::new();
    for count in 0..documents {
        ids.push(world.insert("a.pdf", documents::invoice(&format!("L-{count}"))).await);
    }
    world.send_all(&ids).await;
    let settings: Vec<(&str, &str)> = SHORT.iter().chain(more).copied().collect();
    let mut workers = [Process::worker(world, &settings), Process::worker(world, &settings)];
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(500..2500))).await;
        let at = usize::try_from(kill).unwrap() % 2;
        workers[at].kill();
        workers[at] = Process::worker(world, &settings);
    }
    let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    let deadline = Instant::now() + Duration::from_secs(60 + 8 * documents);
    while world.scalar(open).await != "0" {
        assert!(Instant::now() < deadline, "{} are still open", world.scalar(open).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.until_empty().await;
    let completed = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'completed'";
    assert_eq!(world.scalar(completed).await, documents.to_string());
    let ends = "SELECT count(*)::text || ' of ' || count(DISTINCT ingestion_id)::text
                FROM docmill.attempt WHERE final";
    assert_eq!(world.scalar(ends).await, format!("{documents} of {documents}"), "each ended once");
    let crashed = "SELECT count(*)::text FROM docmill.attempt WHERE outcome = 'crashed'";
    eprintln!(
        "{documents} documents, {kills} kills: {} attempts crashed",
        world.scalar(crashed).await
    );
}

async fn slow_enough_to_be_killed() -> World {
    World::with_model(Script::always(Answer::Read)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_over_sqs_end_every_document_once() {
    let world = slow_enough_to_be_killed().await;
    kill_all_the_time(&world, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_over_redis_end_every_document_once() {
    let redis = Redis::start().await;
    let mut world = slow_enough_to_be_killed().await;
    world.config.queue.backend = QueueBackend::Redis;
    world.config.queue.redis_url = redis.url().into();
    world.queue = App::new(world.config.clone()).open_queue().await.unwrap();
    let url = redis.url();
    kill_all_the_time(&world, &[("QUEUE__BACKEND", "redis"), ("QUEUE__REDIS_URL", &url)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_over_a_folder_end_every_document_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = slow_enough_to_be_killed().await;
    world.config.queue.backend = QueueBackend::Folder;
    world.config.queue.path = folder.path().to_owned();
    world.queue = App::new(world.config.clone()).open_queue().await.unwrap();
    let path = folder.path().to_str().unwrap();
    kill_all_the_time(&world, &[("QUEUE__BACKEND", "folder"), ("QUEUE__PATH", path)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_over_a_bucket_end_every_document_once() {
    let server = Moto::start().await;
    let client = s3_client(&server.endpoint());
    client.create_bucket().bucket("documents").send().await.unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(S3Store::with_client(client, "documents"));
    let mut world = slow_enough_to_be_killed().await;
    let visibility = world.config.queue.visibility;
    world.queue = Arc::new(ObjectQueue::new(Arc::clone(&store), visibility, None));
    world.store = store;
    let endpoint = server.endpoint();
    let settings: [(&str, &str); 7] = [
        ("QUEUE__BACKEND", "objects"),
        ("STORE__BACKEND", "s3"),
        ("STORE__BUCKET", "documents"),
        ("STORE__ENDPOINT", &endpoint),
        ("STORE__PATH_STYLE", "true"),
        ("BUCKET__LIST_EVERY", "1s"),
        ("QUEUE__VISIBILITY", "6s"),
    ];
    kill_all_the_time(&world, &settings).await;
}
