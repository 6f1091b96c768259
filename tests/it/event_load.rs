//! Events about the same objects in every form in which AWS sends them, side by side and out of order.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use docmill_queue::OutgoingMessage;

use crate::support::documents;
use crate::support::recording_queue::RecordingQueue;
use crate::support::world::{World, until};

const OBJECTS: usize = 200;
/// Deliveries of each form.
const DELIVERIES: usize = 2;
/// Until all objects are read on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(600);
/// The first hiding of a message about a row at work, and its jitter.
const MAX_FIRST_HIDE: Duration = Duration::from_secs(20);
/// The order of the messages is the same in every run.
const SEED: u64 = 54;

/// The notification that a bucket sends to a queue.
fn notification(key: &str, etag: &str) -> String {
    serde_json::json!({"Records": [{
        "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "documents"}, "object": {
            "key": key, "size": 10, "eTag": etag, "sequencer": "0A"}}
    }]})
    .to_string()
}

/// The same as `EventBridge` delivers it.
fn bridge_event(key: &str, etag: &str) -> String {
    serde_json::json!({
        "version": "0", "detail-type": "Object Created", "source": "aws.s3",
        "detail": {"version": "0", "bucket": {"name": "documents"}, "reason": "PutObject",
            "object": {"key": key, "size": 10, "etag": etag, "sequencer": "0A"}},
    })
    .to_string()
}

/// All messages about one object: each form, and each of them more than once.
fn messages_about(key: &str, etag: &str) -> Vec<String> {
    let plain = notification(key, etag);
    let topic = serde_json::json!({"Type": "Notification", "Message": plain}).to_string();
    let forms = [plain, topic, bridge_event(key, etag)];
    std::iter::repeat_n(forms, DELIVERIES).flatten().collect()
}

/// Puts the objects into the store; returns their messages, out of order.
async fn put_objects(world: &World) -> Vec<OutgoingMessage> {
    let mut bodies = Vec::new();
    for number in 0..OBJECTS {
        let key = format!("documents/{number}.pdf");
        let bytes = Bytes::from(documents::invoice(&format!("L-{number}")));
        let etag = world.store.put(&key, bytes, &BTreeMap::new()).await.unwrap();
        bodies.extend(messages_about(&key, &etag.0));
    }
    fastrand::Rng::with_seed(SEED).shuffle(&mut bodies);
    bodies.into_iter().map(OutgoingMessage::from_body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_read_once_however_its_events_are_wrapped_repeated_and_ordered() {
    let mut world = World::new().await;
    let queue = RecordingQueue::install(&mut world);
    let messages = put_objects(&world).await;
    for answer in world.queue.send(&messages).await {
        answer.unwrap();
    }
    let workers = [world.worker().await, world.worker().await];
    let read = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'completed'";
    until(READ_TIMEOUT, || async { world.scalar(read).await == OBJECTS.to_string() }).await;
    // Messages that came while the other worker was at theirs are hidden for seconds, not for its lease.
    until(READ_TIMEOUT, || async { world.queue.depth().await.unwrap().ready == 0 }).await;
    world.pass(MAX_FIRST_HIDE).await;
    world.until_empty().await;
    for worker in workers {
        worker.stop().await;
    }
    let claims = "SELECT concat_ws(' ', count(*), sum(claims), max(claims)) FROM docmill.ingestion";
    assert_eq!(world.scalar(claims).await, format!("{OBJECTS} {OBJECTS} 1"), "each is read once");
    let receives = queue.fates().len();
    let most = messages.len() + OBJECTS;
    assert!((messages.len()..=most).contains(&receives), "{receives} receives");
}
