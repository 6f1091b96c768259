//! Between a receive and its end: hidden, extended, released, abandoned by a dead worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_core::fault::Fault;
use docmill_queue::{Delivery, OutgoingMessage, ReceiptHandle};

use super::{Harness, PATIENT, acknowledge, all_done, faults, look, part, send, take, take_all};

pub(super) async fn is_hidden_until_its_time_is_over(h: &dyn Harness) {
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

pub(super) async fn stays_hidden_while_it_is_extended(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "extended").await;
    let delivery = take(&*queue).await;
    let twice = part(h, 2000);
    all_done(queue.extend_visibility(std::slice::from_ref(&delivery.receipt), twice).await);
    h.pass(part(h, 1200)).await;
    assert!(look(&*queue).await.is_none(), "its first time is over, the extension is not");
    h.pass(part(h, 1000)).await;
    assert_eq!(take(&*queue).await.receive_count, 2);
}

pub(super) async fn an_old_receipt_is_good_for_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "taken over").await;
    let old = take(&*queue).await.receipt;
    h.pass(part(h, 1000)).await;
    let new = take(&*queue).await.receipt;
    if h.forgets_old_receipts() {
        let extended = queue.extend_visibility(std::slice::from_ref(&old), h.visibility()).await;
        assert_eq!(faults(&extended), [Some(Fault::Missing)]);
        all_done(queue.hide(&[(old, Duration::ZERO)]).await);
        assert!(look(&*queue).await.is_none(), "the second receiver's hiding still holds");
    }
    all_done(queue.extend_visibility(std::slice::from_ref(&new), h.visibility()).await);
    acknowledge(&*queue, &new).await;
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "acknowledged is gone");
}

pub(super) async fn comes_back_at_once_when_released(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "released").await;
    for count in 1..=3 {
        let delivery = take(&*queue).await;
        assert_eq!(delivery.receive_count, count);
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
}

pub(super) async fn comes_back_when_the_time_to_hide_is_over(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "put off").await;
    let delivery = take(&*queue).await;
    all_done(queue.hide(&[(delivery.receipt, part(h, 3000))]).await);
    h.pass(part(h, 1500)).await;
    assert!(look(&*queue).await.is_none(), "put off for longer than the visibility");
    h.pass(part(h, 1500)).await;
    assert_eq!(take(&*queue).await.body, "put off");
}

pub(super) async fn a_waiting_receive_wakes_when_a_hidden_message_comes_back(h: &dyn Harness) {
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
    assert!(
        hidden.elapsed() < PATIENT.mul_f64(0.9),
        "woken, not timed out: {:?}",
        hidden.elapsed()
    );
}

pub(super) async fn a_receiver_that_dies_at_any_step_loses_nothing(h: &dyn Harness) {
    let queue = h.queue(None).await;
    let long = part(h, 1200);
    for step in ["received", "extended", "hidden", "replaced"] {
        send(&*queue, step).await;
        let Delivery { receipt, .. } = take(&*queue).await;
        match step {
            "extended" => {
                all_done(queue.extend_visibility(std::slice::from_ref(&receipt), long).await)
            }
            "hidden" => all_done(queue.hide(&[(receipt, long)]).await),
            "replaced" => {
                all_done(queue.send(&[OutgoingMessage::from_body("its successor")]).await)
            }
            _ => {}
        }
    }
    // Not acknowledged; another worker takes the successor and dies as well.
    assert_eq!(take(&*queue).await.body, "its successor");
    h.pass(part(h, 1500)).await;
    let left = take_all(&*queue, 5).await;
    let bodies: BTreeSet<&str> = left.iter().map(|delivery| delivery.body.as_str()).collect();
    assert_eq!(bodies.len(), 5, "{bodies:?}");
    let receipts: Vec<ReceiptHandle> = left.into_iter().map(|delivery| delivery.receipt).collect();
    all_done(queue.acknowledge(&receipts).await);
    h.pass(part(h, 1500)).await;
    assert!(look(&*queue).await.is_none(), "and each is there once");
}
