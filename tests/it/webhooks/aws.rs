//! SQS, SNS and `EventBridge` as targets, against a third-party stand-in.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use aws_sdk_sqs::types::QueueAttributeName;
use docmill_client::webhook::SharedCredentialsProvider;
use docmill_core::config::{Config, WebhookTarget};
use docmill_operations::webhooks::{SystemResolver, WebhookDelivery, WebhookTerms};
use docmill_pipeline::shutdown::Shutdown;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::receiver::{complete, document, fail_again, no_files, scalar, target, telling};
use crate::support::moto::Moto;
use crate::support::postgres::TestDatabase;
use crate::support::sqs;
use crate::support::world::{SOON, until};

const ACCOUNT: &str = "123456789012";

/// A target at the stand-in, without a secret.
fn aws_target(name: &str, arn: String, moto: &Moto) -> WebhookTarget {
    let (secret, endpoint) = (String::new().into(), format!("{}/", moto.endpoint()));
    WebhookTarget { secret, endpoint, concurrency: 1, ..target(name, &arn) }
}

/// Delivery with the stand-in's credentials, until aborted.
async fn deliver(database: &TestDatabase, config: &Config) -> JoinHandle<()> {
    let keys = aws_sdk_s3::config::Credentials::new("test", "test", None, None, "test");
    let terms = WebhookTerms::new(config);
    let delivery =
        WebhookDelivery::new(database.db(), terms, Arc::new(SystemResolver), &no_files());
    let delivery = delivery.unwrap();
    let delivery = delivery.unwrap().with_credentials(SharedCredentialsProvider::new(keys));
    delivery.register_targets().await.unwrap();
    tokio::spawn(delivery.run(Shutdown::default()))
}

/// A call to a service without a client here; the stand-in identifies it by the signature's scope.
async fn ask(moto: &Moto, service: &str, target: &str, kind: &str, body: String) -> String {
    let scope = format!(
        "AWS4-HMAC-SHA256 Credential=test/20261123/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=x"
    );
    let post =
        Client::builder().build().unwrap().post(moto.endpoint()).header("authorization", scope);
    let post = post.header("content-type", kind).header("x-amz-target", target);
    let answer = post.body(body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{text}");
    text
}

async fn events(moto: &Moto, action: &str, body: Value) {
    let target = format!("AWSEvents.{action}");
    ask(moto, "events", &target, "application/x-amz-json-1.1", body.to_string()).await;
}

async fn topics(moto: &Moto, form: &str) {
    let kind = "application/x-www-form-urlencoded";
    ask(moto, "sns", "", kind, format!("Version=2010-03-31&{form}")).await;
}

async fn make_queue(moto: &Moto, name: &str) -> String {
    let mut make = sqs::client(&moto.endpoint()).create_queue().queue_name(name);
    if name.ends_with(".fifo") {
        make = make.attributes(QueueAttributeName::FifoQueue, "true");
    }
    make.send().await.unwrap().queue_url.unwrap()
}

fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
}

/// Bodies and attributes of received messages, read until there are `count`.
async fn receive(moto: &Moto, queue: &str, count: usize) -> Vec<aws_sdk_sqs::types::Message> {
    let client = sqs::client(&moto.endpoint());
    let mut found = Vec::new();
    let deadline = tokio::time::Instant::now() + SOON;
    while found.len() < count {
        assert!(tokio::time::Instant::now() < deadline, "{} of {count}", found.len());
        let some = client.receive_message().queue_url(queue).max_number_of_messages(10);
        let some = some.message_attribute_names("All").wait_time_seconds(1).send().await.unwrap();
        for message in some.messages.unwrap_or_default() {
            let handle = message.receipt_handle.clone().unwrap();
            client.delete_message().queue_url(queue).receipt_handle(handle).send().await.unwrap();
            found.push(message);
        }
    }
    found
}

fn payload(message: &aws_sdk_sqs::types::Message) -> Value {
    serde_json::from_str(message.body.as_deref().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_a_topic_and_an_event_bus_receive_the_same_events_as_an_http_target() {
    let (moto, database) = (Moto::start().await, TestDatabase::create().await);
    let mut queues = Vec::new();
    for name in ["direct", "of-topic"] {
        queues.push(make_queue(&moto, name).await);
    }
    topics(&moto, "Action=CreateTopic&Name=told").await;
    let topic = format!("arn:aws:sns:us-east-1:{ACCOUNT}:told");
    let endpoint = queue_arn("of-topic");
    topics(&moto, &format!("Action=Subscribe&TopicArn={topic}&Protocol=sqs&Endpoint={endpoint}"))
        .await;
    events(&moto, "CreateEventBus", json!({ "Name": "told" })).await;
    let bus = format!("arn:aws:events:us-east-1:{ACCOUNT}:event-bus/told");
    let config = telling(vec![
        aws_target("queue", queue_arn("direct"), &moto),
        aws_target("topic", topic, &moto),
        aws_target("bus", bus, &moto),
    ]);
    let running = deliver(&database, &config).await;
    let (id, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    let direct = receive(&moto, &queues[0], 1).await.remove(0);
    let told = payload(&direct);
    assert_eq!(
        (&told["type"], &told["data"]["document_id"]),
        (&json!("document.completed"), &json!(id))
    );
    assert!(!told.to_string().contains("CONTENTMARK"), "{told}");
    let attributes = direct.message_attributes.unwrap();
    assert_eq!(attributes["event"].string_value.as_deref(), Some("document.completed"));
    let known = "SELECT event_id FROM webhook_delivery WHERE target = 'queue'";
    assert_eq!(attributes["webhook-id"].string_value, Some(scalar(&database, known).await));
    let of_topic = payload(&receive(&moto, &queues[1], 1).await[0]);
    let inside: Value = serde_json::from_str(of_topic["Message"].as_str().unwrap()).unwrap();
    assert_eq!(inside["data"]["document_id"], json!(id));
    let open = "SELECT count(*) FROM webhook_delivery WHERE state <> 'delivered'";
    until(SOON, || async { scalar(&database, open).await == "0" }).await;
    // For a bus the stand-in only checks that it is one and the event is complete.
    assert_eq!(scalar(&database, "SELECT count(*) FROM webhook_delivery").await, "3");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_queue_receives_all_events_in_order_per_document_after_an_outage() {
    let (moto, database) = (Moto::start().await, TestDatabase::create().await);
    let config = telling(vec![aws_target("queue", queue_arn("later.fifo"), &moto)]);
    let running = deliver(&database, &config).await;
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    fail_again(&database, ingestion).await;
    let problem = "SELECT max(last_problem) FROM webhook_delivery";
    until(SOON, || async { scalar(&database, problem).await.starts_with("400 ") }).await;
    let said = scalar(&database, problem).await;
    assert!(said.contains("NonExistentQueue") || said.contains("QueueDoesNotExist"), "{said}");
    let queue = make_queue(&moto, "later.fifo").await;
    let open = "SELECT count(*) FROM webhook_delivery WHERE state <> 'delivered'";
    database.advance(std::time::Duration::from_secs(3600)).await;
    let count: usize = scalar(&database, open).await.parse().unwrap();
    assert!(count >= 2, "{count}");
    let told = receive(&moto, &queue, count).await;
    let sequence = |message| payload(message)["data"]["sequence"].as_i64().unwrap();
    let numbers: Vec<i64> = told.iter().map(sequence).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_in_a_private_network_is_sent_nothing_unless_it_is_allowed() {
    let (moto, database) = (Moto::start().await, TestDatabase::create().await);
    let mut config = telling(vec![aws_target("queue", queue_arn("told"), &moto)]);
    config.webhooks.allowed_networks.clear();
    let terms = WebhookTerms::new(&config);
    let refused = WebhookDelivery::new(database.db(), terms, Arc::new(SystemResolver), &no_files());
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("webhooks.allowed_networks"), "{said}");
}
