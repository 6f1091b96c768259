//! Probes for docmill's stand-in only: moto has no move tasks, accepts old handles, and cannot
//! misbehave on request. Expectations follow the API reference of each action.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use docmill_testkit::sqs::{Action, Failure, Server};

use super::{client, code, count, receive, send};

async fn start() -> (Server, Client) {
    let server = Server::start().await.unwrap();
    let client = client(&server.endpoint());
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_move_back_as_new_messages() {
    let (server, client) = start().await;
    let url = server.create_queue_with_dead("work", 1).unwrap();
    for n in 0..12 {
        send(&client, &url, &format!("letter {n}")).await;
    }
    while !receive(&client, &url, 0, 0).await.is_empty() {}
    assert_eq!(server.depth("work-dead").ready, 12);
    let dead = server.queue_arn("work-dead");
    let started = client.start_message_move_task().source_arn(&dead).send().await.unwrap();
    assert!(started.task_handle().is_some());
    let finished = async {
        loop {
            let request = client.list_message_move_tasks().source_arn(&dead);
            let results = request.send().await.unwrap().results.unwrap();
            if results[0].status() == Some("COMPLETED") {
                return results[0].approximate_number_of_messages_moved();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let moved = tokio::time::timeout(Duration::from_secs(60), finished).await.unwrap();
    assert_eq!(moved, 12);
    let found = receive(&client, &url, 5, 30).await;
    assert!(found.iter().all(|message| count(message) == 1), "counted from the start");
    let not_dead = client.start_message_move_task().source_arn(server.queue_arn("work"));
    assert_eq!(code(not_dead.send().await), "InvalidParameterValue");
    let nowhere = client.start_message_move_task().source_arn(server.queue_arn("nowhere"));
    assert_eq!(code(nowhere.send().await), "ResourceNotFoundException");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_a_newer_one_replaced_is_refused() {
    let (server, client) = start().await;
    let url = server.create_queue("stale", &[]).unwrap();
    send(&client, &url, "twice").await;
    let old = receive(&client, &url, 0, 10).await.remove(0).receipt_handle.unwrap();
    server.advance(Duration::from_secs(10));
    let change = client.change_message_visibility().queue_url(&url).visibility_timeout(10);
    let late = change.clone().receipt_handle(&old).send().await.unwrap_err();
    assert!(late.into_service_error().is_message_not_inflight(), "visible again");
    let new = receive(&client, &url, 0, 10).await.remove(0).receipt_handle.unwrap();
    let stale = change.clone().receipt_handle(&old).send().await;
    assert_eq!(code(stale), "InvalidParameterValue");
    let delete = client.delete_message().queue_url(&url);
    let refused = delete.clone().receipt_handle(&old).send().await.unwrap_err();
    assert!(refused.into_service_error().is_receipt_handle_is_invalid());
    server.faults().ignore_stale_deletes(true);
    delete.clone().receipt_handle(&old).send().await.unwrap();
    assert_eq!(server.depth("stale").in_flight, 1, "a success that deleted nothing");
    delete.clone().receipt_handle(&new).send().await.unwrap();
    delete.receipt_handle(&new).send().await.unwrap();
    let gone = change.receipt_handle(&new).send().await.unwrap_err();
    assert!(gone.message().unwrap().contains("does not exist or is not available"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hiding_beyond_twelve_hours_from_the_receive_is_refused_not_shortened() {
    let (server, client) = start().await;
    let url = server.create_queue("long", &[]).unwrap();
    send(&client, &url, "long").await;
    let handle = receive(&client, &url, 0, 43_200).await.remove(0).receipt_handle.unwrap();
    server.advance(Duration::from_secs(3600));
    let change = client.change_message_visibility().queue_url(&url).receipt_handle(&handle);
    assert_eq!(
        code(change.clone().visibility_timeout(39_601).send().await),
        "InvalidParameterValue"
    );
    change.visibility_timeout(39_000).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_long_poll_is_answered_all_the_same() {
    let (server, client) = start().await;
    let url = server.create_queue("abandoned", &[]).unwrap();
    let poll = receive(&client, &url, 20, 30);
    let given_up = tokio::time::timeout(Duration::from_millis(500), poll).await;
    assert!(given_up.is_err());
    send(&client, &url, "lost for a while").await;
    let taken = async {
        while server.depth("abandoned").in_flight == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), taken).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_size_time_and_age_hold() {
    let (server, client) = start().await;
    let url = server.create_queue("limits", &[("MessageRetentionPeriod", "60")]).unwrap();
    let large = client.send_message().queue_url(&url).message_body("x".repeat(1_048_577));
    assert_eq!(code(large.send().await), "InvalidParameterValue");
    let control = client.send_message().queue_url(&url).message_body("a\u{0}b");
    assert_eq!(code(control.send().await), "InvalidMessageContents");
    let slow = client.send_message().queue_url(&url).message_body("x").delay_seconds(901);
    assert_eq!(code(slow.send().await), "InvalidParameterValue");
    client.purge_queue().queue_url(&url).send().await.unwrap();
    let again = client.purge_queue().queue_url(&url).send().await.unwrap_err();
    assert!(again.into_service_error().is_purge_queue_in_progress());
    send(&client, &url, "old").await;
    server.advance(Duration::from_secs(61));
    assert!(receive(&client, &url, 0, 30).await.is_empty(), "older than the queue keeps");
    assert_eq!(server.depth("limits"), docmill_testkit::sqs::Depth::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_faults_happen_the_requested_number_of_times() {
    let (server, _) = start().await;
    let url = server.create_queue("wrong", &[]).unwrap();
    let config = client(&server.endpoint()).config().to_builder();
    let once = aws_sdk_sqs::config::retry::RetryConfig::disabled();
    let client = Client::from_conf(config.retry_config(once).build());
    server.faults().fail(Action::SendMessage, 2, Failure::Throttle);
    let request = client.send_message().queue_url(&url).message_body("x");
    for _ in 0..2 {
        assert_eq!(code(request.clone().send().await), "RequestThrottled");
    }
    request.clone().send().await.unwrap();
    server.faults().fail(Action::SendMessage, 1, Failure::LoseReply);
    assert!(request.send().await.unwrap_err().as_service_error().is_none(), "no answer came");
    assert_eq!(server.depth("wrong").ready, 2, "the work was done");
    assert_eq!(server.counts().of(Action::SendMessage), 4);
}
