//! The queue suite: one set of cases, run over SQS (on the stand-in), the queue of marker objects
//! (in a folder and in moto's S3), Redis and the memory queue of the tests; over moto's SQS where
//! that supports them.
//!
//! A new backend is one [`Harness`] and one line at `queues!`. Each case uses a fresh queue and
//! different bodies (a queue may merge equal bodies). Permitted differences are not tested: order,
//! exact ids, the effect of an acknowledgement by a replaced receipt.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod contract;
mod deliveries;
mod ends;
mod harness;
mod hiding;
mod jobs;
mod memory;
mod redis;
mod redis_access;
mod sqs;
mod tiers;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Fault, Result};
use docmill_queue::{Delivery, MessageQueue, OutgoingMessage, ReceiptHandle};

/// A kind of queue and the time it lives in.
#[async_trait]
pub(crate) trait Harness: Send + Sync {
    /// A fresh, empty queue whose messages are dead after `dead_after` receives.
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue>;
    /// The same with the tiers `high` and `low` beside the normal one, where those are a matter of
    /// configuration.
    async fn tiered(&self) -> Arc<dyn MessageQueue> {
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

/// Times are thousandths of the harness's visibility, rounded up to whole seconds for queue calls,
/// because SQS has no finer unit.
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

async fn send(queue: &dyn MessageQueue, body: &str) {
    all_done(queue.send(&[OutgoingMessage::from_body(body)]).await);
}

/// Receives one message that must be there.
async fn take(queue: &dyn MessageQueue) -> Delivery {
    let mut found = queue.receive(1, PATIENT).await.unwrap();
    assert_eq!(found.len(), 1, "a message is there");
    found.remove(0)
}

/// Receives without waiting.
async fn look(queue: &dyn MessageQueue) -> Option<Delivery> {
    queue.receive(1, Duration::ZERO).await.unwrap().pop()
}

async fn acknowledge(queue: &dyn MessageQueue, receipt: &ReceiptHandle) {
    all_done(queue.acknowledge(std::slice::from_ref(receipt)).await);
}

/// Receives until `count` messages were found.
async fn take_all(queue: &dyn MessageQueue, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    while all.len() < count {
        let found = queue.receive(count - all.len(), PATIENT).await.unwrap();
        assert!(!found.is_empty(), "{} of {count} messages are missing", count - all.len());
        all.extend(found);
    }
    all
}

/// One test per case and queue.
macro_rules! cases {
    ($name:ident, $harness:expr, { $($group:ident: [$($case:ident),* $(,)?]),* $(,)? }) => {
        mod $name {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$group::$case(&$harness.await).await;
                }
            )*)*
        }
    };
}

macro_rules! queues {
    ($($name:ident => $harness:expr),* $(,)?) => {
        $(cases!($name, $harness, {
            deliveries: [
                arrives_whole,
                is_delayed_when_it_is_sent_so,
                batches_of_any_size_fail_only_where_they_must,
                an_empty_batch_is_nothing,
                depth_counts_ready_in_flight_and_delayed_separately,
                many_receivers_never_share_a_message,
                a_receive_returns_at_most_the_requested_number,
                an_empty_receive_waits_its_time,
                a_waiting_receive_wakes_for_a_new_message,
                urgent_tiers_are_polled_more_often_and_metrics_show_it,
                a_messages_content_is_never_another_messages,
            ],
            hiding: [
                is_hidden_until_its_time_is_over,
                stays_hidden_while_it_is_extended,
                an_old_receipt_is_good_for_nothing,
                comes_back_at_once_when_released,
                comes_back_when_the_time_to_hide_is_over,
                a_waiting_receive_wakes_when_a_hidden_message_comes_back,
                a_receiver_that_dies_at_any_step_loses_nothing,
            ],
            ends: [
                acknowledging_twice_is_a_success,
                acknowledged_before_the_work_it_never_comes_back,
                is_dead_after_the_maximum_number_of_receives,
                never_dies_without_a_limit,
                a_dead_letter_is_shown_without_being_taken_and_comes_back_when_redriven,
            ],
        });)*
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
