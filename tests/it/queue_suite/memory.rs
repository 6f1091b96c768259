//! The memory queue of the tests beyond the suite: failures on request.

use std::time::Duration;

use docmill_core::fault::Fault;
use docmill_queue::MessageQueue as _;

use super::{acknowledge, send, take_all};
use crate::support::memory_queue::{Call, MemoryQueue};

#[tokio::test]
async fn the_memory_queue_fails_and_duplicates_on_request() {
    let queue = MemoryQueue::new(Duration::from_secs(30), None);
    send(&queue, "told").await;
    queue.fail(Call::Receive, 1, Fault::Unavailable);
    let error = queue.receive(1, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.fault, Fault::Unavailable);
    queue.duplicate(1);
    let both = take_all(&queue, 2).await;
    assert_eq!(both[0].message_id, both[1].message_id);
    assert_ne!(both[0].receipt, both[1].receipt);
    acknowledge(&queue, &both[0].receipt).await;
    assert_eq!(queue.bodies(), ["told"], "the copy lives on");
    assert_eq!((queue.calls(Call::Receive), queue.calls(Call::Extend)), (3, 0));
}
