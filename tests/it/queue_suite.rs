//! What every queue does, whatever is behind it: one set of cases, run over SQS (on the stand-in),
//! the queue of marker objects (in a folder and in a bucket of moto's) and the memory queue of the tests.
//!
//! A new backend is one [`Harness`] and one line at `queues!`. Cases use a fresh queue each and
//! bodies that differ (a queue may take the same body sent twice for one message). What backends
//! may do differently is not asked: order, exact ids, what becomes of an acknowledgement by a
//! receipt that somebody else's replaced.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod harness;
mod memory;
mod sqs;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use docmill::fault::{Fault, Result};
use docmill::queue::{Delivery, Depth, Outgoing, Queue, Receipt};

/// A kind of queue and the time it lives in.
#[async_trait]
pub(crate) trait Harness: Send + Sync {
    /// A fresh, empty queue whose messages are dead after so many receives.
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue>;
    /// How long its deliveries are hidden; at least 2 s, in whole seconds.
    fn visibility(&self) -> Duration;
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
    let extended = queue.extend(std::slice::from_ref(&old), h.visibility()).await;
    assert_eq!(faults(&extended), [Some(Fault::Missing)]);
    all_done(queue.hide(&[(old, Duration::ZERO)]).await);
    assert!(look(&*queue).await.is_none(), "the second receiver's hiding still holds");
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
    let late = Outgoing { body: "late".to_owned(), delay: part(h, 1000) };
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
    let later = Outgoing { body: "later".to_owned(), delay: Duration::from_secs(600) };
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
        ]);)*
    };
}

queues!(
    on_sqs => crate::queue_suite::harness::Sqs::start(),
    on_folder => crate::queue_suite::harness::Folder::start(),
    on_a_bucket => crate::queue_suite::harness::Bucket::start(),
    in_memory => crate::queue_suite::harness::Memory::start(),
);
