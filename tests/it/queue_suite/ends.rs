//! How a message ends: acknowledged, or received too often.

use std::time::Duration;

use docmill_queue::Delivery;

use super::{Harness, acknowledge, all_done, look, part, send, take};

pub(super) async fn acknowledging_twice_is_a_success(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "twice").await;
    let receipt = take(&*queue).await.receipt;
    acknowledge(&*queue, &receipt).await;
    acknowledge(&*queue, &receipt).await;
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none());
}

pub(super) async fn acknowledged_before_the_work_it_never_comes_back(h: &dyn Harness) {
    let queue = h.queue(None).await;
    send(&*queue, "begun").await;
    let receipt = take(&*queue).await.receipt;
    let won = queue.try_acknowledge(std::slice::from_ref(&receipt)).await;
    assert!(matches!(won.as_slice(), [Ok(true)]), "{won:?}");
    h.pass(part(h, 1000)).await;
    assert!(look(&*queue).await.is_none(), "whatever became of who took it");
}

pub(super) async fn is_dead_after_the_maximum_number_of_receives(h: &dyn Harness) {
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
    let letters = queue.receive_dead(10, hidden).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].delivery.body, "poison");
    assert!(queue.receive_dead(10, hidden).await.unwrap().is_empty(), "hidden from others");
    h.pass(hidden).await;
    let again = queue.receive_dead(10, hidden).await.unwrap();
    assert_eq!(again.len(), 1, "left alone, it stays where it was");
    all_done(queue.acknowledge_dead(&[again[0].delivery.receipt.clone()]).await);
    h.pass(hidden).await;
    assert!(queue.receive_dead(10, hidden).await.unwrap().is_empty());
    assert_eq!(queue.depth().await.unwrap().dead, Some(0));
}

pub(super) async fn never_dies_without_a_limit(h: &dyn Harness) {
    let queue = h.queue(None).await;
    assert_eq!(queue.receives_before_dead().await.unwrap(), None);
    send(&*queue, "tough").await;
    for count in 1..=12 {
        let delivery = take(&*queue).await;
        assert_eq!(delivery.receive_count, count);
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
    assert!(queue.receive_dead(10, h.visibility()).await.unwrap().is_empty());
}

pub(super) async fn a_dead_letter_is_shown_without_being_taken_and_comes_back_when_redriven(
    h: &dyn Harness,
) {
    let queue = h.queue(Some(1)).await;
    send(&*queue, "given up").await;
    let Delivery { receipt, .. } = take(&*queue).await;
    all_done(queue.hide(&[(receipt, Duration::ZERO)]).await);
    assert!(look(&*queue).await.is_none());
    let hidden = part(h, 1000);
    for reader in ["first", "second"] {
        let letters = queue.receive_dead(10, hidden).await.unwrap();
        assert_eq!(letters.len(), 1, "the {reader} reader sees it at once");
        all_done(queue.release_dead(&[letters[0].delivery.receipt.clone()]).await);
    }
    if h.forgets_old_receipts() {
        let letters = queue.receive_dead(10, hidden).await.unwrap();
        h.pass(hidden).await;
        let mut newer = queue.receive_dead(10, hidden).await.unwrap();
        assert_eq!(newer.len(), 1);
        // Another reader holds it now, whatever the first one is answered.
        let old = [letters[0].delivery.receipt.clone()];
        drop(queue.release_dead(&old).await);
        assert!(queue.receive_dead(10, hidden).await.unwrap().is_empty());
        drop(queue.acknowledge_dead(&old).await);
        all_done(queue.release_dead(&[newer.remove(0).delivery.receipt]).await);
    }
    let letters = queue.receive_dead(10, hidden).await.unwrap();
    assert_eq!(letters.len(), 1, "who read it earlier has not ended it");
    let letter = &letters[0].delivery;
    all_done(queue.send(&[letter.to_successor(letter.body.clone())]).await);
    all_done(queue.acknowledge_dead(std::slice::from_ref(&letter.receipt)).await);
    let again = take(&*queue).await;
    assert_eq!((again.body.as_str(), again.receive_count), ("given up", 1));
    assert_eq!(queue.depth().await.unwrap().dead, Some(0));
}
