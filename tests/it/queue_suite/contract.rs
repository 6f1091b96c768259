//! The integration contract of redis-work-queue: workers of its Rust client, `docmill redis
//! cleaner` as the cleaner, docmill's queue as one of the workers, and a saboteur that corrupts the
//! lists. Every expected result must exist in the end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use docmill_core::config::QueueConfig;
use docmill_queue::MessageQueue as _;
use docmill_queue::redis::RedisQueue;
use redis::AsyncCommands as _;
use redis_work_queue::{Item, KeyPrefix, WorkQueue};
use serde_json::{Value, json};

use crate::support::redis::Redis;

/// The real program, asked over its standard input.
struct Cleaner {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Cleaner {
    fn start(server: &Redis) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_docmill"))
            .args(["redis", "cleaner"])
            .env("DOCMILL__QUEUE__BACKEND", "redis")
            .env("DOCMILL__QUEUE__REDIS_URL", server.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    fn clean(&mut self, how: &str, name: &str) {
        writeln!(self.input, "{how}:{name}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{how} cleaned {name}\n"));
    }
}

/// State shared by the tasks of one test.
struct Scene {
    server: Redis,
    over: AtomicBool,
    turns: AtomicU64,
}

type Peer = redis_of_peer::aio::MultiplexedConnection;

impl Scene {
    async fn peer(&self) -> Peer {
        let client = redis_of_peer::Client::open(self.server.url()).unwrap();
        client.get_multiplexed_async_std_connection().await.unwrap()
    }

    /// Every seventh item is dropped by its holder, as by a crash.
    fn drops(&self) -> bool {
        self.turns.fetch_add(1, Ordering::Relaxed) % 7 == 6
    }

    /// Their worker: one byte in, one byte out, two shared jobs for each that it completed.
    async fn bytes_by_them(&self) {
        let (mut db, mut out) = (self.peer().await, self.server.look().await);
        let (jobs, shared) = (queue("rust_jobs"), queue("shared_jobs"));
        while !self.over.load(Ordering::Relaxed) {
            let Some(item) = lease(&jobs, &mut db).await else { continue };
            let byte = item.data[0];
            let result = vec![byte.wrapping_mul(7)];
            let _: () = out.set(format!("results:rust:{}", item.id), result).await.unwrap();
            if self.drops() || !jobs.complete(&mut db, &item).await.unwrap() {
                continue;
            }
            let [one, two] =
                [3, 5].map(|a| Item::from_json_data(&json!({"a": a, "b": byte})).unwrap());
            assert!(shared.add_item(&mut db, &one).await.unwrap());
            shared.add_unique_item(&mut db, &two).await.unwrap();
        }
    }

    async fn shared_by_them(&self) {
        let (mut db, mut out) = (self.peer().await, self.server.look().await);
        let shared = queue("shared_jobs");
        while !self.over.load(Ordering::Relaxed) {
            let Some(item) = lease(&shared, &mut db).await else { continue };
            store_shared(&mut out, &item.id, &item.data).await;
            if !self.drops() {
                shared.complete(&mut db, &item).await.unwrap();
            }
        }
    }

    async fn shared_by_us(&self) {
        let config =
            QueueConfig { visibility: Duration::from_secs(3), ..self.server.config("shared_jobs") };
        let ours = RedisQueue::connect(&config).await.unwrap();
        let mut out = self.server.look().await;
        while !self.over.load(Ordering::Relaxed) {
            for delivery in ours.receive(5, Duration::from_millis(100)).await.unwrap() {
                store_shared(&mut out, &delivery.message_id, delivery.body.as_bytes()).await;
                if !self.drops() {
                    ours.try_acknowledge(&[delivery.receipt]).await;
                }
            }
        }
    }

    /// Takes ids out of the lists, and puts one in a second time.
    async fn breaks(&self, name: &str) {
        let mut db = self.server.look().await;
        let lost: Option<String> = db.rpop(format!("{name}:processing"), None).await.unwrap();
        let _: Option<String> = db.rpop(format!("{name}:queue"), None).await.unwrap();
        if let Some(id) = lost {
            let _: () = db.lpush(format!("{name}:queue"), id).await.unwrap();
        }
        let twice: Option<String> = db.lindex(format!("{name}:queue"), 0).await.unwrap();
        if let Some(id) = twice {
            let _: () = db.lpush(format!("{name}:queue"), id).await.unwrap();
        }
    }

    async fn results(&self, of: &str) -> Vec<String> {
        let mut db = self.server.look().await;
        db.keys(format!("results:{of}:*")).await.unwrap()
    }
}

fn queue(name: &str) -> WorkQueue {
    WorkQueue::new(KeyPrefix::from(name))
}

async fn lease(queue: &WorkQueue, db: &mut Peer) -> Option<Item> {
    let leased = queue.lease(db, Some(Duration::ZERO), Duration::from_secs(1)).await.unwrap();
    if leased.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    leased
}

async fn store_shared(db: &mut redis::aio::MultiplexedConnection, id: &str, data: &[u8]) {
    let asked: Value = serde_json::from_slice(data).unwrap();
    let (a, b) = (asked["a"].as_u64().unwrap(), asked["b"].as_u64().unwrap());
    let result = json!({"a": a, "sum": a + b, "prod": a * b, "worker": "rust"});
    let _: () = db.set(format!("results:shared:{id}"), result.to_string()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_integration_contract_of_the_other_clients_is_met_by_our_cleaner_and_our_worker() {
    let server = Redis::start().await;
    let scene = Arc::new(Scene { server, over: AtomicBool::new(false), turns: AtomicU64::new(0) });
    let mut db = scene.peer().await;
    let mut bytes = std::collections::BTreeMap::new();
    for byte in 0..=255_u8 {
        let item = Item::new(vec![byte].into());
        queue("rust_jobs").add_item(&mut db, &item).await.unwrap();
        bytes.insert(format!("results:rust:{}", item.id), byte);
    }
    let workers = [
        tokio::spawn({
            let s = Arc::clone(&scene);
            async move { s.bytes_by_them().await }
        }),
        tokio::spawn({
            let s = Arc::clone(&scene);
            async move { s.shared_by_them().await }
        }),
        tokio::spawn({
            let s = Arc::clone(&scene);
            async move { s.shared_by_us().await }
        }),
    ];
    let mut cleaner = Cleaner::start(&scene.server);
    let deadline = Instant::now() + Duration::from_secs(150);
    let mut round = 0;
    while scene.results("shared").await.len() < 512 {
        assert!(Instant::now() < deadline, "{} of 512", scene.results("shared").await.len());
        assert!(workers.iter().all(|worker| !worker.is_finished()), "a worker died");
        for name in ["rust_jobs", "shared_jobs"] {
            if round < 20 {
                scene.breaks(name).await;
            }
            cleaner.clean("light", name);
            cleaner.clean("deep", name);
        }
        round += 1;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    scene.over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let mut db = scene.server.look().await;
    assert_eq!(scene.results("rust").await.len(), 256);
    for (key, byte) in bytes {
        let result: Vec<u8> = db.get(&key).await.unwrap();
        assert_eq!(result, [byte.wrapping_mul(7)], "{key}");
    }
    let mut pairs = std::collections::BTreeSet::new();
    for key in scene.results("shared").await {
        let result: Vec<u8> = db.get(&key).await.unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        pairs.insert((result["a"].as_u64(), result["sum"].as_u64(), result["prod"].as_u64()));
    }
    assert_eq!(pairs.len(), 512, "every value exactly once");
}
