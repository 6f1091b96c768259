//! The probes of both stand-ins.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry as ChangeEntry,
    DeleteMessageBatchRequestEntry as DeleteEntry, MessageAttributeValue, QueueAttributeName,
    SendMessageBatchRequestEntry as SendEntry,
};

use super::{SOON, code, count, queue, receive, send};

/// All of them, side by side, each on queues of its own.
pub(super) async fn probe(client: &Client) {
    tokio::join!(
        a_long_poll_waits_and_wakes(client),
        a_message_comes_back_during_a_long_poll(client),
        checksums_and_attributes_come_along(client),
        visibility_is_changed_entry_by_entry(client),
        a_message_received_too_often_is_dead(client),
        a_delayed_message_is_late(client),
        wrong_requests_are_refused_by_name(client),
        a_purged_queue_is_empty(client),
        making_a_queue_twice_finds_it(client),
        deleting_entry_by_entry(client),
    );
}

async fn a_long_poll_waits_and_wakes(client: &Client) {
    let url = queue(client, &[]).await;
    let started = Instant::now();
    assert!(receive(client, &url, 2, 30).await.is_empty());
    assert!(started.elapsed() >= Duration::from_millis(1900), "{:?}", started.elapsed());
    let poll = async {
        let found = receive(client, &url, 20, 30).await;
        (found, Instant::now())
    };
    let late_send = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        send(client, &url, "wake").await;
        Instant::now()
    };
    let ((found, woken), sent) = tokio::join!(poll, late_send);
    assert_eq!(found.len(), 1);
    assert!(woken.saturating_duration_since(sent) < SOON);
}

async fn a_message_comes_back_during_a_long_poll(client: &Client) {
    let url = queue(client, &[]).await;
    send(client, &url, "again").await;
    let first = receive(client, &url, 5, 2).await;
    let second = receive(client, &url, 20, 30).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0].message_id, second[0].message_id);
    assert_ne!(first[0].receipt_handle, second[0].receipt_handle, "a new handle each time");
    assert_eq!((count(&first[0]), count(&second[0])), (1, 2));
}

/// Checksums: of the body (RFC 1321's own vector "abc") and of the attributes, whose value both
/// stand-ins must agree on.
async fn checksums_and_attributes_come_along(client: &Client) {
    const ABC: &str = "900150983cd24fb0d6963f7d28e17f72";
    let url = queue(client, &[]).await;
    let text = |value: &str| {
        let builder = MessageAttributeValue::builder().data_type("String");
        builder.string_value(value).build().unwrap()
    };
    let bytes = MessageAttributeValue::builder().data_type("Binary");
    let bytes = bytes.binary_value(aws_sdk_sqs::primitives::Blob::new([0_u8, 1, 255]));
    let sent = client
        .send_message()
        .queue_url(&url)
        .message_body("abc")
        .message_attributes("traceparent", text("00-aa-bb-01"))
        .message_attributes("other", text("x"))
        .message_attributes("bytes", bytes.build().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(sent.md5_of_message_body(), Some(ABC));
    assert_eq!(sent.md5_of_message_attributes(), Some("4293efbb0f769a6afdf0a43b262cbb6d"));
    let request = client.receive_message().queue_url(&url).wait_time_seconds(5);
    let request = request.visibility_timeout(0);
    let plain = request.clone().send().await.unwrap().messages.unwrap();
    assert_eq!(plain[0].md5_of_body(), Some(ABC));
    assert!(plain[0].attributes.is_none(), "only what was asked for");
    assert!(plain[0].message_attributes.is_none(), "only what was asked for");
    let asked = request.message_attribute_names("traceparent").send().await.unwrap();
    let asked = asked.messages.unwrap();
    let attributes = asked[0].message_attributes.as_ref().unwrap();
    assert_eq!(attributes["traceparent"].string_value(), Some("00-aa-bb-01"));
    assert_eq!(attributes.len(), 1);
}

fn change(id: &str, handle: &str, seconds: i32) -> ChangeEntry {
    let entry = ChangeEntry::builder().id(id).receipt_handle(handle);
    entry.visibility_timeout(seconds).build().unwrap()
}

async fn visibility_is_changed_entry_by_entry(client: &Client) {
    let url = queue(client, &[]).await;
    send(client, &url, "change").await;
    let handle = receive(client, &url, 5, 600).await.remove(0).receipt_handle.unwrap();
    let request = client.change_message_visibility_batch().queue_url(&url);
    let answer = request
        .entries(change("good", &handle, 0))
        .entries(change("bad", "nothing", 0))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.successful().len(), 1);
    assert_eq!(answer.successful()[0].id(), "good");
    assert_eq!(answer.failed().len(), 1);
    assert_eq!(
        (answer.failed()[0].id(), answer.failed()[0].code()),
        ("bad", "ReceiptHandleIsInvalid")
    );
    assert!(answer.failed()[0].sender_fault());
    let back = receive(client, &url, 5, 600).await;
    assert_eq!(back.len(), 1, "zero seconds: visible at once");
    let one = client.change_message_visibility().queue_url(&url).visibility_timeout(0);
    let bad = one.clone().receipt_handle("nothing").send().await;
    assert!(bad.unwrap_err().into_service_error().is_receipt_handle_is_invalid());
    one.receipt_handle(back[0].receipt_handle().unwrap()).send().await.unwrap();
    assert_eq!(receive(client, &url, 5, 600).await.len(), 1);
}

async fn a_message_received_too_often_is_dead(client: &Client) {
    let dead = queue(client, &[]).await;
    let request = client.get_queue_attributes().queue_url(&dead);
    let answer = request.attribute_names(QueueAttributeName::QueueArn).send().await.unwrap();
    let arn = answer.attributes.unwrap().remove(&QueueAttributeName::QueueArn).unwrap();
    let policy = format!("{{\"deadLetterTargetArn\":\"{arn}\",\"maxReceiveCount\":2}}");
    let url = queue(client, &[(QueueAttributeName::RedrivePolicy, &policy)]).await;
    send(client, &url, "poison").await;
    for expected in [1, 2] {
        let found = receive(client, &url, 5, 0).await;
        assert_eq!(found.len(), 1);
        assert_eq!(count(&found[0]), expected);
    }
    assert!(receive(client, &url, 1, 0).await.is_empty());
    let letters = receive(client, &dead, 5, 30).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].body(), Some("poison"));
}

async fn a_delayed_message_is_late(client: &Client) {
    let url = queue(client, &[]).await;
    let request = client.send_message().queue_url(&url).message_body("late");
    let sent = Instant::now();
    request.delay_seconds(2).send().await.unwrap();
    assert!(receive(client, &url, 0, 30).await.is_empty() || sent.elapsed().as_secs() >= 2);
    assert_eq!(receive(client, &url, 20, 30).await.len(), 1);
    assert!(sent.elapsed() >= Duration::from_millis(1500), "{:?}", sent.elapsed());
}

async fn wrong_requests_are_refused_by_name(client: &Client) {
    const BATCH: &str = "AWS.SimpleQueueService.";
    let url = queue(client, &[]).await;
    let nowhere = format!("{url}-not");
    let gone = client.receive_message().queue_url(&nowhere).send().await.unwrap_err();
    assert!(gone.into_service_error().is_queue_does_not_exist());
    let gone = client.get_queue_url().queue_name("not-there").send().await.unwrap_err();
    assert!(gone.into_service_error().is_queue_does_not_exist());
    let poll = client.receive_message().queue_url(&url);
    assert_eq!(code(poll.clone().wait_time_seconds(21).send().await), "InvalidParameterValue");
    assert_eq!(code(poll.max_number_of_messages(11).send().await), "InvalidParameterValue");
    let hide = client.change_message_visibility().queue_url(&url).receipt_handle("x");
    assert_ne!(code(hide.visibility_timeout(43_201).send().await), "(no code)");
    let entry = |id: &str| SendEntry::builder().id(id).message_body("x").build().unwrap();
    let names = |ids: Vec<String>| Some(ids.iter().map(|id| entry(id)).collect::<Vec<_>>());
    let batch = client.send_message_batch().queue_url(&url);
    for (ids, expected) in [
        (Vec::new(), "EmptyBatchRequest"),
        ((0..11).map(|n| n.to_string()).collect(), "TooManyEntriesInBatchRequest"),
        (vec!["a".to_owned(), "a".to_owned()], "BatchEntryIdsNotDistinct"),
        (vec!["not a word".to_owned()], "InvalidBatchEntryId"),
    ] {
        let refused = code(batch.clone().set_entries(names(ids)).send().await);
        assert_eq!(refused.strip_prefix(BATCH).unwrap_or(&refused), expected);
    }
    assert!(receive(client, &url, 0, 30).await.is_empty(), "nothing of a refused batch is sent");
}

async fn a_purged_queue_is_empty(client: &Client) {
    let url = queue(client, &[]).await;
    send(client, &url, "gone").await;
    client.purge_queue().queue_url(&url).send().await.unwrap();
    assert!(receive(client, &url, 1, 30).await.is_empty());
}

async fn making_a_queue_twice_finds_it(client: &Client) {
    let url = queue(client, &[(QueueAttributeName::VisibilityTimeout, "77")]).await;
    let name = url.rsplit('/').next().unwrap();
    let again = client.create_queue().queue_name(name);
    let again = again.attributes(QueueAttributeName::VisibilityTimeout, "77").send().await.unwrap();
    assert_eq!(again.queue_url(), Some(url.as_str()));
    let other = client.create_queue().queue_name(name);
    let other = other.attributes(QueueAttributeName::VisibilityTimeout, "78").send().await;
    assert_eq!(code(other), "QueueAlreadyExists");
    let found = client.get_queue_url().queue_name(name).send().await.unwrap();
    assert_eq!(found.queue_url(), Some(url.as_str()));
    let set = client.set_queue_attributes().queue_url(&url);
    set.attributes(QueueAttributeName::VisibilityTimeout, "55").send().await.unwrap();
    let request = client.get_queue_attributes().queue_url(&url);
    let answer = request.attribute_names(QueueAttributeName::VisibilityTimeout).send().await;
    let attributes = answer.unwrap().attributes.unwrap();
    assert_eq!(attributes[&QueueAttributeName::VisibilityTimeout], "55");
}

async fn deleting_entry_by_entry(client: &Client) {
    let url = queue(client, &[]).await;
    send(client, &url, "delete").await;
    let handle = receive(client, &url, 5, 600).await.remove(0).receipt_handle.unwrap();
    let entry = |id: &str, handle: &str| {
        DeleteEntry::builder().id(id).receipt_handle(handle).build().unwrap()
    };
    let request = client.delete_message_batch().queue_url(&url);
    let request = request.entries(entry("good", &handle)).entries(entry("bad", "nothing"));
    let answer = request.send().await.unwrap();
    assert_eq!((answer.successful().len(), answer.failed().len()), (1, 1));
    assert_eq!(answer.failed()[0].code(), "ReceiptHandleIsInvalid");
    let again = client.delete_message().queue_url(&url).receipt_handle(&handle);
    again.send().await.unwrap();
}
