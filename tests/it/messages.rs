//! Every form of message ends as designed, and nothing is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use docmill::app::App;
use docmill_core::config::{ForeignItems, QueueBackend};
use docmill_core::model::{DocumentId, IngestionId};
use redis::AsyncCommands as _;

use docmill_testkit::sqs::Action;

use crate::support::documents;
use crate::support::recording_queue::RecordingQueue;
use crate::support::redis::Redis;
use crate::support::world::{SOON, World, until};

fn event(bucket: &str, key: &str, sequencer: &str) -> String {
    serde_json::json!({"Records": [{
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": bucket}, "object": {
            "key": key, "size": 10, "sequencer": sequencer}}
    }]})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_with_two_columns_and_a_bare_id_gets_its_result() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("A-1")).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    assert_eq!(world.column(id, "valid_structured_data").await.unwrap(), "true");
    assert_eq!(world.column(id, "structured_data->>'invoice_number'").await.unwrap(), "A-1");
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
    let document = "SELECT (structured_data->>'total')::numeric::text FROM docmill.document";
    assert!(world.scalar(document).await.starts_with("120"));
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_before_its_row_waits_for_the_row() {
    let world = World::new().await;
    let (document, id) = (DocumentId::random(), IngestionId::random());
    world.send(id.to_string()).await;
    let worker = world.worker().await;
    until(SOON, || async { world.queue.depth().await.unwrap().in_flight == 1 }).await;
    let key = format!("documents/{document}.pdf");
    let bytes = Bytes::from(documents::invoice("B-1"));
    world.store.put(&key, bytes, &BTreeMap::new()).await.unwrap();
    world.insert_rows(document, id, &key).await;
    world.sqs.advance(Duration::from_secs(30));
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_body_is_kept_in_quarantine_and_then_deleted() {
    let world = World::new().await;
    world.send("what is this?").await;
    let worker = world.worker().await;
    world.until_empty().await;
    let kept = "SELECT body || '|' || reason FROM docmill.quarantined_message";
    assert_eq!(world.scalar(kept).await, "what is this?|malformed");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_an_unusable_body_is_deleted_only_once_its_copy_is_kept() {
    let world = World::new().await;
    let away = "ALTER TABLE docmill.quarantined_message RENAME TO out_of_reach";
    world.execute(away).await;
    world.send("what is this?").await;
    let worker = world.worker().await;
    // Each receive resolved the message, and all but the last refused the copy.
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        world.sqs.counts().of(Action::ReceiveMessage) > 8
    })
    .await;
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.in_flight, 1, "it went without a copy");
    let back = "ALTER TABLE docmill.out_of_reach RENAME TO quarantined_message";
    world.execute(back).await;
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        world.scalar("SELECT count(*)::text FROM docmill.quarantined_message").await != "0"
    })
    .await;
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_never_gets_a_row_is_put_aside_after_many_receives() {
    let world = World::new().await;
    let id = IngestionId::random();
    world.send(id.to_string()).await;
    let worker = world
        .worker_with(|config| {
            config.queue.unknown_receives = 3;
            config.queue.unknown_age = Duration::ZERO;
        })
        .await;
    // More often, where it comes again before the first receives are dealt with.
    let kept = "SELECT concat_ws('|', body, reason, receive_count >= 3)
        FROM docmill.quarantined_message UNION ALL SELECT '' LIMIT 1";
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        !world.scalar(kept).await.is_empty()
    })
    .await;
    assert_eq!(world.scalar(kept).await, format!("{id}|unknown_ingestion|t"));
    // A deletion that came after the message's time is followed by one more receive.
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        let depth = world.queue.depth().await.unwrap();
        depth.ready + depth.in_flight + depth.delayed == 0
    })
    .await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_without_a_row_is_never_put_aside_while_it_is_young() {
    let mut world = World::new().await;
    let queue = RecordingQueue::install(&mut world);
    let id = IngestionId::random();
    world.send(id.to_string()).await;
    let worker = world.worker_with(|config| config.queue.unknown_receives = 2).await;
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        queue.fates().len() > 4
    })
    .await;
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.in_flight, 1, "its row may still come");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_twice_in_one_receive_is_worked_on_once() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("C-1")).await;
    world.send(id.to_string()).await;
    world.send(id.to_string()).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    assert_eq!(world.attempts(id).await, ["completed"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_fanned_out_one_message_each() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for number in ["G-1", "G-2", "G-3"] {
        ids.push(world.insert("g.pdf", documents::invoice(number)).await);
    }
    let body = serde_json::json!({"ingestion_ids": ids}).to_string();
    world.send(body).await;
    let worker = world.worker().await;
    for id in ids {
        world.until(id, "status", "completed").await;
        assert_eq!(world.attempts(id).await, ["completed"]);
    }
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_not_ours_ask_for_nothing() {
    let world = World::new().await;
    let id = IngestionId::random();
    for body in [
        r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"documents"}"#.to_owned(),
        event("elsewhere", "documents/a.pdf", "01"),
        event("documents", "private/a.pdf", "01"),
        event("documents", &format!("ingestions/{id}/transcription-output.json"), "01"),
        event("documents", "documents/a.pdf", "01")
            .replace("ObjectCreated:Put", "ObjectRemoved:Delete"),
    ] {
        world.send(body).await;
    }
    let worker = world.worker().await;
    world.until_empty().await;
    let rows = "SELECT (SELECT count(*) FROM docmill.ingestion)
        + (SELECT count(*) FROM docmill.quarantined_message) || ''";
    assert_eq!(world.scalar(rows).await, "0");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_another_program_stays_in_a_shared_redis_and_is_kept_whole_in_one_of_our_own() {
    let redis = Redis::start().await;
    let mut world = World::new().await;
    world.config.queue.backend = QueueBackend::Redis;
    world.config.queue.redis_url = redis.url().into();
    world.queue = App::new(world.config.clone()).open_queue().await.unwrap();
    let db = &mut redis.look().await;
    // Larger than any message of ours, and no text.
    let picture: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let _: () = db.set("docmill:item:resize", &picture).await.unwrap();
    let _: () = db.lpush("docmill:queue", "resize").await.unwrap();
    let worker = world.worker().await;
    let id = world.submit("a.pdf", documents::invoice("F-1")).await;
    world.until(id, "status", "completed").await;
    until(SOON, || async { world.queue.depth().await.unwrap().in_flight == 0 }).await;
    worker.stop().await;
    let queued: Vec<String> = db.lrange("docmill:queue", 0, -1).await.unwrap();
    let whole: Vec<u8> = db.get("docmill:item:resize").await.unwrap();
    assert_eq!((queued, whole == picture), (vec!["resize".to_owned()], true));
    let kept = "SELECT count(*)::text FROM docmill.quarantined_message";
    assert_eq!(world.scalar(kept).await, "0");

    world.config.queue.redis_foreign = ForeignItems::Quarantine;
    world.queue = App::new(world.config.clone()).open_queue().await.unwrap();
    let _: () = db.del("docmill:docmill:foreign").await.unwrap();
    let worker = world.worker().await;
    until(SOON, || async { world.scalar(kept).await == "1" }).await;
    // The same id again, for something else.
    let second = b"another \x00 job";
    let free =
        || async { !redis.look().await.exists::<_, bool>("docmill:item:resize").await.unwrap() };
    until(SOON, free).await;
    let _: () = db.set("docmill:item:resize", second).await.unwrap();
    let _: () = db.lpush("docmill:queue", "resize").await.unwrap();
    until(SOON, || async { world.scalar(kept).await == "2" }).await;
    worker.stop().await;
    let bodies = "SELECT string_agg(body, ' ' ORDER BY length(body) DESC)
        FROM docmill.quarantined_message";
    let address =
        |data: &[u8]| format!("data:application/octet-stream;base64,{}", STANDARD.encode(data));
    let expected = [address(&picture), address(second)].join(" ");
    assert!(world.scalar(bodies).await == expected, "not every byte is there");
}
