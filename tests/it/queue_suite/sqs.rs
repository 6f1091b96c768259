//! The SQS queue beyond the suite: failures of the service and of the network.

use std::time::{Duration, Instant};

use docmill_core::config::QueueConfig;
use docmill_core::fault::Fault;
use docmill_queue::sqs::SqsQueue;
use docmill_queue::{MessageQueue, OutgoingMessage, ReceiptHandle};
use docmill_testkit::sqs::{Action, Failure};

use super::harness::Sqs;
use super::{Harness as _, all_done, faults, look, send, take, take_all};
use crate::support::sqs::client;
use crate::support::world::SOON;

async fn queue() -> (Sqs, SqsQueue) {
    let sqs = Sqs::start().await;
    let queue = sqs.connect(&sqs.config(Some(100))).await;
    (sqs, queue)
}

fn numbered(count: usize) -> Vec<OutgoingMessage> {
    (0..count).map(|n| OutgoingMessage::from_body(format!("number {n}"))).collect()
}

async fn receipts(queue: &SqsQueue, count: usize) -> Vec<ReceiptHandle> {
    take_all(queue, count).await.into_iter().map(|delivery| delivery.receipt).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_fail_on_the_service_s_side_are_tried_again_singly() {
    let (sqs, queue) = queue().await;
    sqs.server.faults().fail_entries(Action::SendMessageBatch, 2);
    all_done(queue.send(&numbered(12)).await);
    let receipts = receipts(&queue, 12).await;
    sqs.server.faults().fail_entries(Action::ChangeMessageVisibilityBatch, 4);
    all_done(queue.extend_visibility(&receipts, Duration::from_secs(60)).await);
    sqs.server.faults().fail_entries(Action::DeleteMessageBatch, 3);
    all_done(queue.acknowledge(&receipts).await);
    let counts = sqs.server.counts();
    for (batch, batches, single, singles) in [
        (Action::SendMessageBatch, 2, Action::SendMessage, 2),
        (Action::ChangeMessageVisibilityBatch, 2, Action::ChangeMessageVisibility, 4),
        (Action::DeleteMessageBatch, 2, Action::DeleteMessage, 3),
    ] {
        assert_eq!((counts.of(batch), counts.of(single)), (batches, singles), "{batch:?}");
    }
    let depth = queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_trouble_with_an_acknowledgement_is_ridden_out() {
    let (sqs, queue) = queue().await;
    for failure in [Failure::Throttle, Failure::ServerError, Failure::LoseReply] {
        send(&queue, "once").await;
        let receipts = receipts(&queue, 1).await;
        sqs.server.faults().fail(Action::DeleteMessageBatch, 2, failure);
        all_done(queue.acknowledge(&receipts).await);
        sqs.server.advance(Duration::from_secs(60));
        assert!(look(&queue).await.is_none(), "{failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_receive_is_reported_at_once() {
    let (sqs, queue) = queue().await;
    for (failure, expected) in [
        (Failure::Throttle, Fault::Throttled(None)),
        (Failure::ServerError, Fault::Transient),
        (Failure::Unavailable, Fault::Transient),
        (Failure::LoseReply, Fault::Transient),
        (Failure::AccessDenied, Fault::Unavailable),
    ] {
        let before = sqs.server.counts().of(Action::ReceiveMessage);
        sqs.server.faults().fail(Action::ReceiveMessage, 1, failure);
        let error = queue.receive(1, Duration::ZERO).await.unwrap_err();
        assert_eq!(error.fault, expected, "{failure:?}: {error}");
        let after = sqs.server.counts().of(Action::ReceiveMessage);
        assert_eq!(after - before, 1, "{failure:?}: retried by the intake loop, not here");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receive_that_is_never_answered_ends_five_seconds_after_its_wait() {
    let (sqs, queue) = queue().await;
    sqs.server.faults().fail(Action::ReceiveMessage, 1, Failure::Hang);
    let started = Instant::now();
    let ended = tokio::time::timeout(SOON, queue.receive(1, Duration::from_secs(1))).await;
    let error = ended.expect("it is never answered").unwrap_err();
    let took = started.elapsed().as_secs_f64();
    assert_eq!(error.fault, Fault::Transient, "{error}");
    assert!(took >= 5.9, "{took}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_was_deleted_or_refuses_us_stops_everything_not_one_job() {
    let (sqs, queue) = queue().await;
    send(&queue, "before").await;
    let receipts = receipts(&queue, 1).await;
    sqs.server.faults().outage(Some(Failure::AccessDenied));
    assert_eq!(faults(&queue.acknowledge(&receipts).await), [Some(Fault::Unavailable)]);
    assert_eq!(faults(&queue.send(&numbered(1)).await), [Some(Fault::Unavailable)]);
    assert_eq!(queue.depth().await.unwrap_err().fault, Fault::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_is_an_error_for_every_entry() {
    let (sqs, queue) = queue().await;
    sqs.server.faults().outage(Some(Failure::Throttle));
    let results = queue.send(&numbered(10)).await;
    assert_eq!(faults(&results), vec![Some(Fault::Throttled(None)); 10]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hiding_of_twelve_hours_is_cut_to_the_remaining_limit() {
    let (sqs, queue) = queue().await;
    send(&queue, "long").await;
    let delivery = take(&queue).await;
    let longest = queue.longest_hide();
    all_done(queue.extend_visibility(std::slice::from_ref(&delivery.receipt), longest).await);
    all_done(queue.hide(&[(delivery.receipt, longest * 2)]).await);
    sqs.server.advance(longest - Duration::from_secs(60));
    assert!(look(&queue).await.is_none());
    sqs.server.advance(Duration::from_secs(60));
    assert_eq!(take(&queue).await.receive_count, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_and_disorder_lose_nothing() {
    let (sqs, queue) = queue().await;
    sqs.server.faults().duplicate(0.3);
    sqs.server.faults().reorder(true);
    all_done(queue.send(&numbered(40)).await);
    let mut seen = std::collections::BTreeSet::new();
    let mut received = 0;
    loop {
        let found = queue.receive(10, Duration::ZERO).await.unwrap();
        if found.is_empty() {
            break;
        }
        received += found.len();
        for delivery in found {
            all_done(queue.acknowledge(std::slice::from_ref(&delivery.receipt)).await);
            seen.insert(delivery.body);
        }
    }
    assert_eq!(seen.len(), 40);
    assert!(received > 40, "some came twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_cannot_be_used_is_named_with_what_to_check() {
    let sqs = Sqs::start().await;
    let good = sqs.config(None);
    let missing = QueueConfig { url: sqs.server.queue_url("nowhere"), ..good.clone() };
    let fifo = QueueConfig { url: sqs.server.queue_url("orders.fifo"), ..good.clone() };
    let patience = Duration::from_millis(200);
    let here = client(&sqs.server.endpoint());
    // A port without a listener: it was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = client(&format!("http://{free}"));
    for (name, client, config, fault, words) in [
        ("no such queue", &here, &missing, Fault::Unavailable, "queue exists"),
        ("a FIFO queue", &here, &fifo, Fault::Rejected, "standard queue"),
        ("nobody listens", &nobody, &good, Fault::Transient, "queue.endpoint"),
    ] {
        let ended =
            tokio::time::timeout(SOON, SqsQueue::with_patience(client, config, patience)).await;
        let error = ended.unwrap_or_else(|_| panic!("{name} does not end")).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.fault, fault, "{name}: {text}");
        assert!(text.contains(&config.url) && text.contains(words), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_slow_to_answer_at_start_is_waited_for() {
    let sqs = Sqs::start().await;
    sqs.server.faults().fail(Action::GetQueueAttributes, 6, Failure::Unavailable);
    sqs.connect(&sqs.config(None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_redrive_policy_is_noticed() {
    let sqs = Sqs::start().await;
    let config = sqs.config(None);
    let queue = sqs.connect(&config).await;
    assert_eq!(queue.receives_before_dead().await.unwrap(), None);
    sqs.server.create_queue("graveyard", &[]).unwrap();
    let policy = format!(
        "{{\"deadLetterTargetArn\":\"{}\",\"maxReceiveCount\":7}}",
        sqs.server.queue_arn("graveyard")
    );
    let request = client(&sqs.server.endpoint()).set_queue_attributes().queue_url(&config.url);
    let name = aws_sdk_sqs::types::QueueAttributeName::RedrivePolicy;
    request.attributes(name, policy).send().await.unwrap();
    queue.depth().await.unwrap();
    assert_eq!(queue.receives_before_dead().await.unwrap(), Some(7));
    assert_eq!(sqs.visibility(), config.visibility);
}
