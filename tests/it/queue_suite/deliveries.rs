//! Sending and receiving: what arrives, how much at once, in which share, and how much waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use docmill_core::fault::Fault;
use docmill_core::model::Priority;
use docmill_queue::{MessageOrigin, OutgoingMessage, QueueDepth, ReceiptHandle};

use super::{Harness, PATIENT, acknowledge, all_done, faults, look, part, send, take, take_all};

pub(super) async fn arrives_whole(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let body = "{\"id\": \"ä\\\"ö\\\\\"}\n\ttab <&> \u{1F600}";
    send(&*queue, body).await;
    let before = Instant::now();
    let delivery = take(&*queue).await;
    assert_eq!(delivery.body, body);
    assert_eq!(delivery.receive_count, 1);
    assert!(!delivery.message_id.is_empty());
    assert!(delivery.received >= before, "its hiding is counted from the call");
    assert!(delivery.received <= Instant::now());
    for time in [delivery.sent_at, delivery.first_received_at].into_iter().flatten() {
        let age = SystemTime::now().duration_since(time).unwrap_or_default();
        assert!(age < Duration::from_secs(60), "{age:?}");
    }
}

pub(super) async fn is_delayed_when_it_is_sent_so(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let late = OutgoingMessage { delay: part(h, 1000), ..OutgoingMessage::from_body("late") };
    all_done(queue.send(&[late, OutgoingMessage::from_body("soon")]).await);
    assert_eq!(take(&*queue).await.body, "soon");
    assert!(look(&*queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap().delayed, 1);
    h.pass(part(h, 1000)).await;
    let bodies: BTreeSet<String> =
        take_all(&*queue, 2).await.into_iter().map(|delivery| delivery.body).collect();
    assert!(bodies.contains("late"), "{bodies:?}");
}

pub(super) async fn batches_of_any_size_fail_only_where_they_must(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let messages: Vec<OutgoingMessage> =
        (0..23).map(|n| OutgoingMessage::from_body(format!("one of {n}"))).collect();
    assert_eq!(queue.send(&messages).await.len(), 23);
    let mut receipts: Vec<ReceiptHandle> =
        take_all(&*queue, 23).await.into_iter().map(|delivery| delivery.receipt).collect();
    receipts.insert(12, ReceiptHandle("no receipt of this queue".to_owned()));
    let expected: Vec<Option<Fault>> =
        (0..24).map(|at| (at == 12).then_some(Fault::Missing)).collect();
    assert_eq!(faults(&queue.extend_visibility(&receipts, h.visibility()).await), expected);
    let (back, kept) = receipts.split_at(13);
    let hide: Vec<_> = back.iter().map(|receipt| (receipt.clone(), Duration::ZERO)).collect();
    assert_eq!(faults(&queue.hide(&hide).await), [None; 13], "given back or not ours any more");
    let again = take_all(&*queue, 12).await.into_iter().map(|delivery| delivery.receipt);
    let all: Vec<ReceiptHandle> = again.chain(kept.iter().cloned()).collect();
    assert_eq!(faults(&queue.acknowledge(&all).await), [None; 23]);
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "all are gone");
}

pub(super) async fn an_empty_batch_is_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    assert!(queue.send(&[]).await.is_empty());
    assert!(queue.extend_visibility(&[], h.visibility()).await.is_empty());
    assert!(queue.hide(&[]).await.is_empty());
    assert!(queue.acknowledge(&[]).await.is_empty());
    assert!(queue.acknowledge_dead(&[]).await.is_empty());
}

pub(super) async fn depth_counts_ready_in_flight_and_delayed_separately(h: &dyn Harness) {
    let queue = h.queue(Some(100)).await;
    let later =
        OutgoingMessage { delay: Duration::from_secs(600), ..OutgoingMessage::from_body("later") };
    let now = ["a", "b", "c"].map(OutgoingMessage::from_body);
    all_done(queue.send(&now).await);
    all_done(queue.send(&[later]).await);
    take(&*queue).await;
    let expected = QueueDepth { ready: 2, in_flight: 1, delayed: 1, dead: Some(0) };
    assert_eq!(queue.depth().await.unwrap(), expected);
}

pub(super) async fn many_receivers_never_share_a_message(h: &dyn Harness) {
    const MESSAGES: usize = 60;
    let queue = h.queue(None).await;
    let messages: Vec<OutgoingMessage> =
        (0..MESSAGES).map(|n| OutgoingMessage::from_body(format!("number {n}"))).collect();
    all_done(queue.send(&messages).await);
    let receivers: Vec<_> = (0..8)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let found = queue.receive(5, Duration::ZERO).await.unwrap();
                    if found.is_empty() {
                        return mine;
                    }
                    for delivery in found {
                        acknowledge(&*queue, &delivery.receipt).await;
                        mine.push(delivery);
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for receiver in receivers {
        all.extend(receiver.await.unwrap());
    }
    // A reader that lost every race may have left early.
    while let Some(delivery) = look(&*queue).await {
        acknowledge(&*queue, &delivery.receipt).await;
        all.push(delivery);
    }
    let distinct: BTreeSet<_> = all.iter().map(|delivery| delivery.body.clone()).collect();
    assert_eq!((all.len(), distinct.len()), (MESSAGES, MESSAGES), "none twice, none lost");
}

pub(super) async fn a_receive_returns_at_most_the_requested_number(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let messages: Vec<OutgoingMessage> =
        (0..8).map(|n| OutgoingMessage::from_body(format!("asked {n}"))).collect();
    all_done(queue.send(&messages).await);
    for most in [1, 3] {
        let found = queue.receive(most, PATIENT).await.unwrap();
        assert!(!found.is_empty() && found.len() <= most, "{} of {most}", found.len());
    }
}

pub(super) async fn an_empty_receive_waits_its_time(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let wait = Duration::from_secs(1);
    let started = Instant::now();
    assert!(queue.receive(10, wait).await.unwrap().is_empty());
    assert!(started.elapsed() >= wait.mul_f64(0.9), "{:?}", started.elapsed());
}

pub(super) async fn a_waiting_receive_wakes_for_a_new_message(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let waiting = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { take(&*queue).await })
    };
    tokio::task::yield_now().await;
    let sent = Instant::now();
    send(&*queue, "awaited").await;
    assert_eq!(waiting.await.unwrap().body, "awaited");
    assert!(sent.elapsed() < PATIENT.mul_f64(0.9), "woken, not timed out: {:?}", sent.elapsed());
}

pub(super) async fn urgent_tiers_are_polled_more_often_and_metrics_show_it(h: &dyn Harness) {
    const EACH: usize = 9;
    let queue = h.tiered().await;
    let of = |priority: Priority| {
        let name = move |n| format!("{priority} {n}");
        (0..EACH).map(move |n| OutgoingMessage { priority, ..OutgoingMessage::from_body(name(n)) })
    };
    // The others first: a plain line would serve them first.
    let messages: Vec<OutgoingMessage> = of(Priority::Low).chain(of(Priority::High)).collect();
    all_done(queue.send(&messages).await);
    let mut order = Vec::new();
    while order.len() < 2 * EACH {
        let delivery = take(&*queue).await;
        acknowledge(&*queue, &delivery.receipt).await;
        assert!(delivery.body.starts_with(delivery.priority.unwrap().code()), "{delivery:?}");
        order.push(delivery.priority.unwrap());
    }
    let first_half = order.iter().take(EACH);
    let urgent = first_half.filter(|priority| **priority == Priority::High).count();
    assert!(urgent * 2 > EACH, "{order:?}");
}

pub(super) async fn a_messages_content_is_never_another_messages(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first_sent = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_340_000);
    let origin = MessageOrigin { first_sent, revivals: 2 };
    let marked = OutgoingMessage {
        tenant: Some("acme".to_owned()),
        traceparent: Some(trace.to_owned()),
        origin: Some(origin),
        ..OutgoingMessage::from_body("marked")
    };
    all_done(queue.send(&[OutgoingMessage::from_body("plain"), marked]).await);
    for delivery in take_all(&*queue, 2).await {
        let is_marked = delivery.body == "marked";
        let right = |found: &Option<String>, sent: &str| match found.as_deref() {
            // Not every format has room for it.
            None => true,
            Some(found) => is_marked && found == sent,
        };
        assert!(right(&delivery.tenant, "acme"), "{delivery:?}");
        assert!(right(&delivery.traceparent, trace), "{delivery:?}");
        assert!(delivery.origin.is_none_or(|found| is_marked && found == origin), "{delivery:?}");
    }
}
