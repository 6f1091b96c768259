//! Several SQS queues as one: each message goes to its own tier, and every later call about it
//! reaches the same queue.

use std::time::{Duration, SystemTime};

use docmill_core::config::TierConfig;
use docmill_core::model::Priority;
use docmill_queue::{MessageOrigin, MessageQueue as _, OutgoingMessage, ReceiptHandle};

use super::harness::Sqs;
use super::{Harness as _, all_done, look, take, take_all};

fn of(priority: Priority, body: &str) -> OutgoingMessage {
    OutgoingMessage { priority, ..OutgoingMessage::from_body(body) }
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_all_tiers_in_one_batch_reach_their_queues() {
    let sqs = Sqs::start().await;
    let queue = sqs.tiered().await;
    let tiers: Vec<Priority> = queue.tiers().iter().map(|tier| tier.priority).collect();
    assert_eq!(tiers, [Priority::High, Priority::Normal, Priority::Low]);
    let messages = Priority::ALL.map(|priority| of(priority, priority.code()));
    all_done(queue.send(&messages).await);
    let found = take_all(&*queue, 5).await;
    for delivery in &found {
        let expected = match delivery.body.as_str() {
            // Without a tier of their own: the next less urgent one, or the last there is.
            "critical" => Priority::High,
            "background" => Priority::Low,
            own => own.parse().unwrap(),
        };
        assert_eq!(delivery.priority, Some(expected), "{delivery:?}");
    }
    let receipts: Vec<ReceiptHandle> = found.into_iter().map(|delivery| delivery.receipt).collect();
    all_done(queue.extend_visibility(&receipts, Duration::from_secs(60)).await);
    sqs.server.advance(Duration::from_secs(45));
    assert!(look(&*queue).await.is_none(), "all were extended");
    let (back, done) = receipts.split_at(2);
    let back: Vec<_> = back.iter().map(|receipt| (receipt.clone(), Duration::ZERO)).collect();
    all_done(queue.hide(&back).await);
    all_done(queue.acknowledge(done).await);
    let depth = queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_a_shared_queue_are_counted_once_and_go_back_to_their_tier() {
    let sqs = Sqs::start().await;
    let mut config = sqs.config(Some(1));
    let own = sqs.config(Some(1));
    config.tiers =
        vec![TierConfig { name: Priority::High, url: own.url.clone(), ..TierConfig::default() }];
    let queue = sqs.connect(&config).await;
    all_done(queue.send(&[of(Priority::High, "urgent"), of(Priority::Normal, "usual")]).await);
    for delivery in take_all(&queue, 2).await {
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
    assert!(look(&queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap().dead, Some(2));
    for letter in queue.receive_dead(10, Duration::from_secs(30)).await.unwrap() {
        let delivery = letter.delivery;
        all_done(queue.send(&[delivery.to_successor(delivery.body.clone())]).await);
        all_done(queue.acknowledge_dead(&[delivery.receipt]).await);
    }
    assert_eq!(queue.depth().await.unwrap().dead, Some(0));
    for _ in 0..2 {
        let delivery = take(&queue).await;
        let expected = if delivery.body == "urgent" { Priority::High } else { Priority::Normal };
        assert_eq!(delivery.priority, Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_trace_and_origin_travel_with_the_message_and_its_successor() {
    let sqs = Sqs::start().await;
    let queue = sqs.connect(&sqs.config(None)).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first_sent = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_340_000);
    let origin = Some(MessageOrigin { first_sent, revivals: 2 });
    let sent = OutgoingMessage {
        origin,
        tenant: Some("acme".to_owned()),
        traceparent: Some(trace.to_owned()),
        ..OutgoingMessage::from_body("x")
    };
    all_done(queue.send(&[sent]).await);
    let delivery = take(&queue).await;
    assert_eq!(delivery.tenant.as_deref(), Some("acme"));
    assert_eq!(delivery.traceparent.as_deref(), Some(trace));
    assert_eq!(delivery.origin, origin);
    all_done(queue.send(&[delivery.to_successor("y".to_owned())]).await);
    let again = take(&queue).await;
    assert_eq!((again.tenant, again.traceparent), (delivery.tenant, delivery.traceparent));
    assert_eq!(again.origin, origin);
}
