//! The queue of marker objects over a folder: the races that the earlier system's bucket queue
//! lost, and its properties beyond the suite of all queues.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_compat::objects::ObjectQueue;
use docmill_compat::objects::engine::{RecordStore, StoreClock};
use docmill_core::fault::{Fault, Result};
use docmill_queue::{MessageQueue, OutgoingMessage, QueueDepth};
use docmill_storage::folder::FolderStore;
use docmill_storage::{
    Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult,
};

/// Locks that never end by themselves within a test.
const LONG: Duration = Duration::from_secs(600);
/// Locks that expire as soon as they are taken: their worker is presumed dead.
const DEAD_AT_ONCE: Duration = Duration::ZERO;

struct Place {
    store: Arc<FolderStore>,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(FolderStore::open(folder.path()).await.unwrap());
        Self { store, _folder: folder }
    }

    fn worker(&self, visibility: Duration) -> ObjectQueue {
        ObjectQueue::new(self.store.clone(), visibility, None)
    }

    async fn keys(&self) -> Vec<String> {
        let entries = self.store.list("queue/", None, 1000).await.unwrap();
        entries.into_iter().map(|entry| entry.key).collect()
    }
}

async fn send(queue: &dyn MessageQueue, body: &str) {
    for sent in queue.send(&[OutgoingMessage::from_body(body)]).await {
        sent.unwrap();
    }
}

async fn take(queue: &dyn MessageQueue) -> Option<docmill_queue::Delivery> {
    queue.receive(1, Duration::ZERO).await.unwrap().pop()
}

fn only(results: Vec<Result<()>>) -> Result<()> {
    assert_eq!(results.len(), 1);
    results.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_workers_share_forty_messages_without_sharing_one() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    for number in 0..40 {
        send(&queue, &format!("message {number}")).await;
    }
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let worker = place.worker(LONG);
            tokio::spawn(async move {
                let mut bodies = Vec::new();
                while let Some(delivery) = take(&worker).await {
                    bodies.push(delivery.body);
                    only(worker.acknowledge(&[delivery.receipt]).await).unwrap();
                }
                bodies
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    // A worker that finds every message locked by others stops early; what is left comes now.
    while let Some(delivery) = take(&queue).await {
        all.push(delivery.body.clone());
        only(queue.acknowledge(&[delivery.receipt]).await).unwrap();
    }
    assert_eq!(all.len(), 40, "none twice, none lost");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 40);
    assert!(place.keys().await.is_empty(), "nothing is left behind");
}

/// Answers every listing of waiting messages as it was when first asked.
struct OldListing {
    store: Arc<FolderStore>,
    first: Mutex<BTreeMap<String, Vec<ObjectEntry>>>,
}

#[async_trait]
impl ObjectStore for OldListing {
    fn describe(&self) -> String {
        "an old listing".to_owned()
    }
    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        self.store.head(key).await
    }
    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        self.store.get(key, what).await
    }
    async fn put(&self, key: &str, bytes: Bytes, meta: &BTreeMap<String, String>) -> Result<Etag> {
        self.store.put(key, bytes, meta).await
    }
    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        self.store.put_if_absent(key, bytes).await
    }
    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.store.put_if_match(key, etag, bytes).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.store.delete(key).await
    }
    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.store.delete_if_match(key, etag).await
    }
    async fn list(&self, prefix: &str, _: Option<&str>, max: usize) -> Result<Vec<ObjectEntry>> {
        if let Some(first) = self.first.lock().unwrap().get(prefix) {
            return Ok(first.clone());
        }
        let entries = self.store.list(prefix, None, max).await?;
        self.first.lock().unwrap().insert(prefix.to_owned(), entries.clone());
        Ok(entries)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_message_is_not_done_again_from_an_old_listing() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    send(&queue, "once").await;
    let old = OldListing { store: place.store.clone(), first: Mutex::default() };
    old.list("queue/todo/3_normal/", None, 10).await.unwrap();
    old.list("queue/processing/", None, 10).await.unwrap();
    let late = ObjectQueue::new(Arc::new(old), LONG, None);
    let delivery = take(&queue).await.unwrap();
    only(queue.acknowledge(&[delivery.receipt]).await).unwrap();
    assert!(take(&late).await.is_none(), "the marker is looked at again");
    assert!(place.keys().await.is_empty(), "no lock stays behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_hidden_after_it_was_listed_stays_hidden() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    send(&queue, "later").await;
    let old = OldListing { store: place.store.clone(), first: Mutex::default() };
    old.list("queue/todo/3_normal/", None, 10).await.unwrap();
    old.list("queue/processing/", None, 10).await.unwrap();
    let late = ObjectQueue::new(Arc::new(old), LONG, None);
    let delivery = take(&queue).await.unwrap();
    only(queue.hide(&[(delivery.receipt, LONG)]).await).unwrap();
    assert!(take(&late).await.is_none());
    assert!(take(&queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap(), depth(0, 0, 1, 0));
}

fn depth(ready: u64, in_flight: u64, delayed: u64, dead: u64) -> QueueDepth {
    QueueDepth { ready, in_flight, delayed, dead: Some(dead) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_presumed_dead_can_neither_keep_nor_finish_nor_return_the_message() {
    let place = Place::new().await;
    let zombie = place.worker(DEAD_AT_ONCE);
    let heir = place.worker(LONG);
    send(&zombie, "contested").await;
    let first = take(&zombie).await.unwrap();
    let second = take(&heir).await.unwrap();
    assert_eq!((first.receive_count, second.receive_count), (1, 2));
    let before = place.keys().await;
    let stale = std::slice::from_ref(&first.receipt);
    assert_eq!(
        only(zombie.extend_visibility(stale, LONG).await).unwrap_err().fault,
        Fault::Missing
    );
    assert_eq!(only(zombie.acknowledge(stale).await).unwrap_err().fault, Fault::Missing);
    only(zombie.hide(&[(first.receipt.clone(), Duration::ZERO)]).await).unwrap();
    assert_eq!(place.keys().await, before, "lock and marker are the heir's");
    assert!(take(&zombie).await.is_none(), "the heir's lock still holds");
    only(heir.extend_visibility(std::slice::from_ref(&second.receipt), LONG).await).unwrap();
    only(heir.acknowledge(&[second.receipt]).await).unwrap();
    assert!(place.keys().await.is_empty());
    only(zombie.acknowledge(stale).await).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_lock_is_taken_over_by_one_of_many() {
    let place = Place::new().await;
    send(&place.worker(LONG), "orphan").await;
    take(&place.worker(DEAD_AT_ONCE)).await.unwrap();
    let takers: Vec<_> = (0..16)
        .map(|_| {
            let worker = place.worker(LONG);
            tokio::spawn(async move { take(&worker).await })
        })
        .collect();
    let mut counts = Vec::new();
    for taker in takers {
        counts.extend(taker.await.unwrap().map(|delivery| delivery.receive_count));
    }
    assert_eq!(counts, [2], "one taker, counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_renewed_in_between_is_not_taken_over() {
    let place = Place::new().await;
    let slow = place.worker(DEAD_AT_ONCE);
    send(&slow, "slow").await;
    let delivery = take(&slow).await.unwrap();
    only(slow.extend_visibility(&[delivery.receipt], LONG).await).unwrap();
    assert!(take(&place.worker(LONG)).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_kills_its_workers_is_counted_and_given_up() {
    let place = Place::new().await;
    let queue = ObjectQueue::new(place.store.clone(), DEAD_AT_ONCE, Some(3));
    send(&queue, "poison").await;
    for count in 1..=3 {
        assert_eq!(take(&queue).await.unwrap().receive_count, count);
    }
    assert!(take(&queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap(), depth(0, 0, 0, 1));
    let dead = queue.receive_dead(10, LONG).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].delivery.body, "poison");
    assert!(queue.receive_dead(10, LONG).await.unwrap().is_empty(), "hidden from other readers");
    let receipt = dead[0].delivery.receipt.clone();
    only(queue.acknowledge_dead(&[receipt]).await).unwrap();
    assert!(place.keys().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_one_object_lose_none() {
    let place = Place::new().await;
    let engine = Arc::new(RecordStore::new(place.store.clone(), StoreClock::default()));
    assert!(engine.create("count", &0_u64).await.unwrap());
    let one_more = |engine: Arc<RecordStore>| async move {
        // After too many concurrent changes it gives up with an error.
        while engine.change("count", |count: &u64| Some(count + 1)).await.is_err() {}
    };
    let all: Vec<_> = (0..24).map(|_| tokio::spawn(one_more(engine.clone()))).collect();
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(engine.read::<u64>("count").await.unwrap().unwrap().value, 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_again_while_it_is_worked_on_comes_once_more() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    send(&queue, "again").await;
    let first = take(&queue).await.unwrap();
    send(&queue, "again").await;
    assert!(take(&queue).await.is_none(), "one message, and it is locked");
    only(queue.acknowledge(&[first.receipt]).await).unwrap();
    let second = take(&queue).await.unwrap();
    assert_eq!(second.receive_count, 1, "it counts as a fresh one");
    let later = OutgoingMessage { delay: LONG, ..OutgoingMessage::from_body("again") };
    only(queue.send(&[later]).await).unwrap();
    only(queue.acknowledge(&[second.receipt]).await).unwrap();
    assert!(take(&queue).await.is_none(), "a worker may replace a message by a delayed one");
    assert_eq!(queue.depth().await.unwrap(), depth(0, 0, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn deferring_a_message_does_not_defer_one_sent_meanwhile() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    send(&queue, "urgent").await;
    let first = take(&queue).await.unwrap();
    send(&queue, "urgent").await;
    only(queue.hide(&[(first.receipt, LONG)]).await).unwrap();
    assert_eq!(take(&queue).await.unwrap().body, "urgent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_again_while_it_is_hidden_is_visible_at_once() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    send(&queue, "sooner").await;
    let first = take(&queue).await.unwrap();
    only(queue.hide(&[(first.receipt, LONG)]).await).unwrap();
    assert!(take(&queue).await.is_none());
    send(&queue, "sooner").await;
    assert_eq!(take(&queue).await.unwrap().body, "sooner");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_whose_message_is_gone_is_swept() {
    let place = Place::new().await;
    let living = place.worker(LONG);
    send(&living, "alive").await;
    let alive = take(&living).await.unwrap().message_id;
    let dying = place.worker(DEAD_AT_ONCE);
    send(&dying, "orphan").await;
    let orphan = take(&dying).await.unwrap().message_id;
    assert_eq!(living.run_maintenance().await.unwrap(), 0, "its message still waits");
    for name in [&alive, &orphan] {
        place.store.delete(&format!("queue/todo/3_normal/{name}")).await.unwrap();
    }
    assert_eq!(living.run_maintenance().await.unwrap(), 1);
    assert_eq!(place.keys().await, [format!("queue/processing/{alive}")], "a live lock stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn blobforges_markers_are_received_by_priority() {
    let place = Place::new().await;
    let name = |c: &str| c.repeat(64);
    for (tier, name, body) in [
        ("3_normal", name("a"), ""),
        ("1_critical", name("b"), "{\"retries\":2,\"queued_at\":5,\"last_error\":\"e\"}"),
    ] {
        let key = format!("queue/todo/{tier}/{name}");
        place.store.put(&key, body.to_owned().into(), &BTreeMap::new()).await.unwrap();
    }
    let noise = "queue/todo/3_normal/readme.txt";
    place.store.put(noise, "hello".into(), &BTreeMap::new()).await.unwrap();
    let queue = place.worker(LONG);
    let bodies = [take(&queue).await.unwrap().body, take(&queue).await.unwrap().body];
    assert_eq!(bodies, [name("b"), name("a")]);
    assert!(take(&queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap(), depth(0, 2, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_receive_returns_a_new_message_soon() {
    let place = Place::new().await;
    let queue = place.worker(LONG);
    let receiver = place.worker(LONG);
    let waiting = tokio::spawn(async move { receiver.receive(5, LONG).await.unwrap() });
    send(&queue, "hello").await;
    let found = tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    assert_eq!(found[0].body, "hello");
}
