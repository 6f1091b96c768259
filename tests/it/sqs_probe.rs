//! SQS's behaviour, probed with the bare SDK at two independent stand-ins: moto's server and
//! docmill's. Where both pass, docmill's is also trusted for features that moto lacks. Probes of
//! those are in `ours`, by the documentation.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod ours;
mod shared;

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};

use crate::support::moto::Moto;
use crate::support::sqs::client;

/// A queue of the given attributes, of a fresh name.
async fn queue(client: &Client, attributes: &[(QueueAttributeName, &str)]) -> String {
    let mut request = client.create_queue().queue_name(format!("p-{}", uuid::Uuid::new_v4()));
    for (name, value) in attributes {
        request = request.attributes(name.clone(), *value);
    }
    request.send().await.unwrap().queue_url.unwrap()
}

async fn send(client: &Client, url: &str, body: &str) {
    client.send_message().queue_url(url).message_body(body).send().await.unwrap();
}

/// Receives up to ten with all their system attributes.
async fn receive(client: &Client, url: &str, wait: i32, visibility: i32) -> Vec<Message> {
    let request = client.receive_message().queue_url(url).max_number_of_messages(10);
    let request = request.wait_time_seconds(wait).visibility_timeout(visibility);
    let request = request.message_system_attribute_names(MessageSystemAttributeName::All);
    request.send().await.unwrap().messages.unwrap_or_default()
}

fn count(message: &Message) -> u32 {
    let attributes = message.attributes.as_ref().unwrap();
    attributes[&MessageSystemAttributeName::ApproximateReceiveCount].parse().unwrap()
}

/// The code that a refusal came with.
fn code<T: std::fmt::Debug, E: ProvideErrorMetadata>(result: Result<T, E>) -> String {
    result.map(drop).unwrap_err().code().unwrap_or("(no code)").to_owned()
}

/// Less than the wait of a receive, which has been woken then, not timed out.
const SOON: Duration = Duration::from_secs(18);

#[tokio::test(flavor = "multi_thread")]
async fn moto_passes_the_sqs_probes() {
    let moto = Moto::start().await;
    Box::pin(shared::probe(&client(&moto.endpoint()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_stand_in_passes_the_sqs_probes() {
    let server = docmill_testkit::sqs::Server::start().await.unwrap();
    Box::pin(shared::probe(&client(&server.endpoint()))).await;
}
