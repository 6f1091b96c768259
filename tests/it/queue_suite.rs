//! What every queue does, whatever is behind it: one set of cases, run over SQS (on the stand-in),
//! the queue of marker objects (in a folder and in moto's S3), Redis and the memory queue of the
//! tests; over moto's SQS as far as it goes.
//!
//! A new backend is one [`Harness`] and one line at `queues!`. Cases use a fresh queue each and
//! bodies that differ (a queue may take the same body sent twice for one message). What backends
//! may do differently is not asked: order, exact ids, what becomes of an acknowledgement by a
//! receipt that somebody else's replaced.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod contract;
mod harness;
mod memory;
mod redis;
mod sqs;
mod tiers;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use docmill::fault::{Fault, Result};
use docmill::model::Priority;
use docmill::queue::{Delivery, Depth, Outgoing, Queue, Receipt};

/// A kind of queue and the time it lives in.
#[async_trait]
pub(crate) trait Harness: Send + Sync {
    /// A fresh, empty queue whose messages are dead after so many receives.
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue>;
    /// The same with the tiers `high` and `low` beside the normal one, where those are a matter of
    /// configuration.
    async fn tiered(&self) -> Arc<dyn Queue> {
        self.queue(None).await
    }
    /// How long its deliveries are hidden; at least 2 s, in whole seconds.
    fn visibility(&self) -> Duration;
    /// Whether a receipt is worth nothing once the message was received again. SQS does not
    /// promise it, and moto goes on taking them.
    fn forgets_old_receipts(&self) -> bool {
        true
    }
    /// Lets time go by for its queues.
    async fn pass(&self, time: Duration);
}

/// Times are given in thousandths of the harness's visibility, rounded up to whole seconds where
/// they are asked of a queue, because SQS knows no less.
fn part(h: &dyn Harness, thousandths: u32) -> Duration {
    h.visibility() * thousandths / 1000
}

/// Long enough that nothing waits for it to end.
const PATIENT: Duration = Duration::from_secs(20);

fn all_done(results: Vec<Result<()>>) {
    for result in results {
        result.unwrap();
    }
}

fn faults(results: &[Result<()>]) -> Vec<Option<Fault>> {
    results.iter().map(|result| result.as_ref().err().map(|error| error.fault)).collect()
}

async fn send(queue: &dyn Queue, body: &str) {
    all_done(queue.send(&[Outgoing::now(body)]).await);
}

/// Receives one message that must be there.
async fn take(queue: &dyn Queue) -> Delivery {
    let mut found = queue.receive(1, PATIENT).await.unwrap();
    assert_eq!(found.len(), 1, "a message is there");
    found.remove(0)
}

/// Receives without waiting.
async fn look(queue: &dyn Queue) -> Option<Delivery> {
    queue.receive(1, Duration::ZERO).await.unwrap().pop()
}

async fn acknowledge(queue: &dyn Queue, receipt: &Receipt) {
    all_done(queue.acknowledge(std::slice::from_ref(receipt)).await);
}

/// Receives until so many messages were found.
async fn take_all(queue: &dyn Queue, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    while all.len() < count {
        let found = queue.receive(count - all.len(), PATIENT).await.unwrap();
        assert!(!found.is_empty(), "{} of {count} messages are missing", count - all.len());
        all.extend(found);
    }
    all
}

async fn arrives_whole(h: &dyn Harness) {
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

async fn is_hidden_until_its_time_is_over(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "hidden").await;
    let first = take(&*queue).await;
    assert!(look(&*queue).await.is_none(), "hidden from everybody else");
    h.pass(part(h, 1000)).await;
    let second = take(&*queue).await;
    assert_eq!(second.message_id, first.message_id);
    assert_eq!(second.body, first.body);
    assert_ne!(second.receipt, first.receipt);
    assert_eq!(second.receive_count, 2);
}

async fn stays_hidden_while_it_is_extended(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "extended").await;
    let delivery = take(&*queue).await;
    let twice = part(h, 2000);
    all_done(queue.extend(std::slice::from_ref(&delivery.receipt), twice).await);
    h.pass(part(h, 1200)).await;
    assert!(look(&*queue).await.is_none(), "its first time is over, the extension is not");
    h.pass(part(h, 1000)).await;
    assert_eq!(take(&*queue).await.receive_count, 2);
}

async fn an_old_receipt_is_good_for_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "taken over").await;
    let old = take(&*queue).await.receipt;
    h.pass(part(h, 1000)).await;
    let new = take(&*queue).await.receipt;
    if h.forgets_old_receipts() {
        let extended = queue.extend(std::slice::from_ref(&old), h.visibility()).await;
        assert_eq!(faults(&extended), [Some(Fault::Missing)]);
        all_done(queue.hide(&[(old, Duration::ZERO)]).await);
        assert!(look(&*queue).await.is_none(), "the second receiver's hiding still holds");
    }
    all_done(queue.extend(std::slice::from_ref(&new), h.visibility()).await);
    acknowledge(&*queue, &new).await;
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "acknowledged is gone");
}

async fn comes_back_at_once_when_released(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "released").await;
    for count in 1..=3 {
        let delivery = take(&*queue).await;
        assert_eq!(delivery.receive_count, count);
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
}

async fn comes_back_when_the_time_to_hide_is_over(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "put off").await;
    let delivery = take(&*queue).await;
    all_done(queue.hide(&[(delivery.receipt, part(h, 3000))]).await);
    h.pass(part(h, 1500)).await;
    assert!(look(&*queue).await.is_none(), "put off for longer than the visibility");
    h.pass(part(h, 1500)).await;
    assert_eq!(take(&*queue).await.body, "put off");
}

async fn is_delayed_when_it_is_sent_so(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let late = Outgoing { delay: part(h, 1000), ..Outgoing::now("late") };
    all_done(queue.send(&[late, Outgoing::now("soon")]).await);
    assert_eq!(take(&*queue).await.body, "soon");
    assert!(look(&*queue).await.is_none());
    assert_eq!(queue.depth().await.unwrap().delayed, 1);
    h.pass(part(h, 1000)).await;
    let bodies: BTreeSet<String> =
        take_all(&*queue, 2).await.into_iter().map(|delivery| delivery.body).collect();
    assert!(bodies.contains("late"), "{bodies:?}");
}

async fn batches_of_any_size_fail_only_where_they_must(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let messages: Vec<Outgoing> = (0..23).map(|n| Outgoing::now(format!("one of {n}"))).collect();
    assert_eq!(queue.send(&messages).await.len(), 23);
    let mut receipts: Vec<Receipt> =
        take_all(&*queue, 23).await.into_iter().map(|delivery| delivery.receipt).collect();
    receipts.insert(12, Receipt("no receipt of this queue".to_owned()));
    let expected: Vec<Option<Fault>> =
        (0..24).map(|at| (at == 12).then_some(Fault::Missing)).collect();
    assert_eq!(faults(&queue.extend(&receipts, h.visibility()).await), expected);
    let (back, kept) = receipts.split_at(13);
    let hide: Vec<_> = back.iter().map(|receipt| (receipt.clone(), Duration::ZERO)).collect();
    assert_eq!(faults(&queue.hide(&hide).await), [None; 13], "given back or not ours any more");
    let again = take_all(&*queue, 12).await.into_iter().map(|delivery| delivery.receipt);
    let all: Vec<Receipt> = again.chain(kept.iter().cloned()).collect();
    assert_eq!(faults(&queue.acknowledge(&all).await), [None; 23]);
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "all are gone");
}

async fn an_empty_batch_is_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    assert!(queue.send(&[]).await.is_empty());
    assert!(queue.extend(&[], h.visibility()).await.is_empty());
    assert!(queue.hide(&[]).await.is_empty());
    assert!(queue.acknowledge(&[]).await.is_empty());
    assert!(queue.dead_acknowledge(&[]).await.is_empty());
}

async fn acknowledging_twice_is_a_success(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "twice").await;
    let receipt = take(&*queue).await.receipt;
    acknowledge(&*queue, &receipt).await;
    acknowledge(&*queue, &receipt).await;
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none());
}

async fn is_dead_after_so_many_receives(h: &dyn Harness) {
    let queue = h.queue(Some(2)).await;
    assert_eq!(queue.receives_before_dead().await.unwrap(), Some(2));
    send(&*queue, "poison").await;
    for _ in 0..2 {
        let delivery = take(&*queue).await;
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
    assert!(look(&*queue).await.is_none(), "not delivered a third time");
    assert_eq!(queue.depth().await.unwrap().dead, Some(1));
    let hidden = part(h, 1000);
    let letters = queue.dead_receive(10, hidden).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].delivery.body, "poison");
    assert!(queue.dead_receive(10, hidden).await.unwrap().is_empty(), "hidden from others");
    h.pass(hidden).await;
    let again = queue.dead_receive(10, hidden).await.unwrap();
    assert_eq!(again.len(), 1, "left alone, it stays where it was");
    all_done(queue.dead_acknowledge(&[again[0].delivery.receipt.clone()]).await);
    h.pass(hidden).await;
    assert!(queue.dead_receive(10, hidden).await.unwrap().is_empty());
    assert_eq!(queue.depth().await.unwrap().dead, Some(0));
}

async fn never_dies_without_a_limit(h: &dyn Harness) {
    let queue = h.queue(None).await;
    assert_eq!(queue.receives_before_dead().await.unwrap(), None);
    send(&*queue, "tough").await;
    for count in 1..=12 {
        let delivery = take(&*queue).await;
        assert_eq!(delivery.receive_count, count);
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
    assert!(queue.dead_receive(10, h.visibility()).await.unwrap().is_empty());
}

async fn depth_tells_ready_from_in_flight_from_delayed(h: &dyn Harness) {
    let queue = h.queue(Some(100)).await;
    let later = Outgoing { delay: Duration::from_secs(600), ..Outgoing::now("later") };
    let now = ["a", "b", "c"].map(Outgoing::now);
    all_done(queue.send(&now).await);
    all_done(queue.send(&[later]).await);
    take(&*queue).await;
    let expected = Depth { ready: 2, in_flight: 1, delayed: 1, dead: Some(0) };
    assert_eq!(queue.depth().await.unwrap(), expected);
}

async fn many_receivers_never_share_a_message(h: &dyn Harness) {
    const MESSAGES: usize = 60;
    let queue = h.queue(None).await;
    let messages: Vec<Outgoing> =
        (0..MESSAGES).map(|n| Outgoing::now(format!("number {n}"))).collect();
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
    // One that lost every race for a moment may have left early.
    while let Some(delivery) = look(&*queue).await {
        acknowledge(&*queue, &delivery.receipt).await;
        all.push(delivery);
    }
    let distinct: BTreeSet<_> = all.iter().map(|delivery| delivery.body.clone()).collect();
    assert_eq!((all.len(), distinct.len()), (MESSAGES, MESSAGES), "none twice, none lost");
}

async fn a_receive_gives_at_most_what_was_asked_for(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let messages: Vec<Outgoing> = (0..8).map(|n| Outgoing::now(format!("asked {n}"))).collect();
    all_done(queue.send(&messages).await);
    for most in [1, 3] {
        let found = queue.receive(most, PATIENT).await.unwrap();
        assert!(!found.is_empty() && found.len() <= most, "{} of {most}", found.len());
    }
}

async fn an_empty_receive_waits_its_time(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let wait = Duration::from_secs(1);
    let started = Instant::now();
    assert!(queue.receive(10, wait).await.unwrap().is_empty());
    assert!(started.elapsed() >= wait.mul_f64(0.9), "{:?}", started.elapsed());
}

async fn a_waiting_receive_wakes_for_a_new_message(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let waiting = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { take(&*queue).await })
    };
    tokio::task::yield_now().await;
    let sent = Instant::now();
    send(&*queue, "awaited").await;
    assert_eq!(waiting.await.unwrap().body, "awaited");
    assert!(sent.elapsed() < PATIENT / 2, "woken, not timed out: {:?}", sent.elapsed());
}

async fn a_waiting_receive_wakes_when_a_hidden_message_comes_back(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "returned").await;
    take(&*queue).await;
    let waiting = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { take(&*queue).await })
    };
    tokio::task::yield_now().await;
    let hidden = Instant::now();
    h.pass(part(h, 1000)).await;
    assert_eq!(waiting.await.unwrap().receive_count, 2);
    assert!(hidden.elapsed() < PATIENT / 2, "woken, not timed out: {:?}", hidden.elapsed());
}

async fn the_urgent_is_served_more_and_says_so(h: &dyn Harness) {
    const EACH: usize = 9;
    let queue = h.tiered().await;
    let of = |priority: Priority| {
        let name = move |n| format!("{priority} {n}");
        (0..EACH).map(move |n| Outgoing { priority, ..Outgoing::now(name(n)) })
    };
    // The others first: a plain line would serve them first.
    let messages: Vec<Outgoing> = of(Priority::Low).chain(of(Priority::High)).collect();
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

async fn what_a_message_carries_is_never_somebody_else_s(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let marked = Outgoing {
        tenant: Some("acme".to_owned()),
        traceparent: Some(trace.to_owned()),
        ..Outgoing::now("marked")
    };
    all_done(queue.send(&[Outgoing::now("plain"), marked]).await);
    for delivery in take_all(&*queue, 2).await {
        let is_marked = delivery.body == "marked";
        let right = |found: &Option<String>, sent: &str| match found.as_deref() {
            // Not every format has room for it.
            None => true,
            Some(found) => is_marked && found == sent,
        };
        assert!(right(&delivery.tenant, "acme"), "{delivery:?}");
        assert!(right(&delivery.traceparent, trace), "{delivery:?}");
    }
}

async fn a_receiver_that_dies_at_any_step_loses_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let long = part(h, 1200);
    for step in ["received", "extended", "hidden", "replaced"] {
        send(&*queue, step).await;
        let Delivery { receipt, .. } = take(&*queue).await;
        match step {
            "extended" => all_done(queue.extend(std::slice::from_ref(&receipt), long).await),
            "hidden" => all_done(queue.hide(&[(receipt, long)]).await),
            "replaced" => all_done(queue.send(&[Outgoing::now("its successor")]).await),
            _ => {}
        }
    }
    // Nobody acknowledges; the successor is taken by somebody who dies as well.
    assert_eq!(take(&*queue).await.body, "its successor");
    h.pass(part(h, 1500)).await;
    let left = take_all(&*queue, 5).await;
    let bodies: BTreeSet<&str> = left.iter().map(|delivery| delivery.body.as_str()).collect();
    assert_eq!(bodies.len(), 5, "{bodies:?}");
    let receipts: Vec<Receipt> = left.into_iter().map(|delivery| delivery.receipt).collect();
    all_done(queue.acknowledge(&receipts).await);
    h.pass(part(h, 1500)).await;
    assert!(look(&*queue).await.is_none(), "and each is there once");
}

async fn a_dead_letter_is_shown_without_being_taken_and_comes_back_when_redriven(h: &dyn Harness) {
    let queue = h.queue(Some(1)).await;
    send(&*queue, "given up").await;
    let Delivery { receipt, .. } = take(&*queue).await;
    all_done(queue.hide(&[(receipt, Duration::ZERO)]).await);
    assert!(look(&*queue).await.is_none());
    let hidden = part(h, 1000);
    for reader in ["first", "second"] {
        let letters = queue.dead_receive(10, hidden).await.unwrap();
        assert_eq!(letters.len(), 1, "the {reader} reader sees it at once");
        all_done(queue.dead_release(&[letters[0].delivery.receipt.clone()]).await);
    }
    let letters = queue.dead_receive(10, hidden).await.unwrap();
    let letter = &letters[0].delivery;
    all_done(queue.send(&[letter.successor(letter.body.clone())]).await);
    all_done(queue.dead_acknowledge(std::slice::from_ref(&letter.receipt)).await);
    let again = take(&*queue).await;
    assert_eq!((again.body.as_str(), again.receive_count), ("given up", 1));
    assert_eq!(queue.depth().await.unwrap().dead, Some(0));
}

async fn acknowledged_before_the_work_it_never_comes_back(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "begun").await;
    let receipt = take(&*queue).await.receipt;
    let won = queue.win(std::slice::from_ref(&receipt)).await;
    assert!(matches!(won.as_slice(), [Ok(true)]), "{won:?}");
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "whatever became of who took it");
}

/// One test per case and queue.
macro_rules! cases {
    ($name:ident, $harness:expr, [$($case:ident),* $(,)?]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$case(&$harness.await).await;
                }
            )*
        }
    };
}

macro_rules! queues {
    ($($name:ident => $harness:expr),* $(,)?) => {
        $(cases!($name, $harness, [
            arrives_whole,
            is_hidden_until_its_time_is_over,
            stays_hidden_while_it_is_extended,
            an_old_receipt_is_good_for_nothing,
            comes_back_at_once_when_released,
            comes_back_when_the_time_to_hide_is_over,
            is_delayed_when_it_is_sent_so,
            batches_of_any_size_fail_only_where_they_must,
            an_empty_batch_is_nothing,
            acknowledging_twice_is_a_success,
            is_dead_after_so_many_receives,
            never_dies_without_a_limit,
            depth_tells_ready_from_in_flight_from_delayed,
            many_receivers_never_share_a_message,
            a_receive_gives_at_most_what_was_asked_for,
            an_empty_receive_waits_its_time,
            a_waiting_receive_wakes_for_a_new_message,
            a_waiting_receive_wakes_when_a_hidden_message_comes_back,
            the_urgent_is_served_more_and_says_so,
            what_a_message_carries_is_never_somebody_else_s,
            a_receiver_that_dies_at_any_step_loses_nothing,
            a_dead_letter_is_shown_without_being_taken_and_comes_back_when_redriven,
            acknowledged_before_the_work_it_never_comes_back,
        ]);)*
    };
}

queues!(
    on_sqs => crate::queue_suite::harness::Sqs::start(),
    on_folder => crate::queue_suite::harness::Folder::start(),
    on_s3 => crate::queue_suite::harness::Bucket::start(),
    on_redis => crate::queue_suite::harness::RedisServer::start(),
    on_moto => crate::queue_suite::harness::MotoSqs::start(),
    in_memory => crate::queue_suite::harness::Memory::start(),
);
