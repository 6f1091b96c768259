//! `ReceiveMessage`, and what is made of its answers.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Seen};

use super::envelope::{ORIGIN, TRACEPARENT};
use super::errors::from_sdk;
use super::receipt::{MAX_HIDE, ReceiptClock, ceil_seconds};
use super::{SECOND, connect};
use crate::{Delivery, MessageOrigin};
use docmill_core::fault::Result;
use docmill_core::model::Priority;

/// Messages per receive (API reference).
const MAX_MESSAGES: usize = 10;

/// The terms of one receive, and its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct SqsPoll<'a> {
    /// Index of the tier that the receipts are to name.
    pub(super) line: usize,
    /// The tier that its messages are of; `None` where there is one queue for all.
    pub(super) priority: Option<Priority>,
    /// The tier's queue, or its dead-letter queue.
    pub(super) url: &'a str,
    pub(super) most: usize,
    pub(super) wait: Duration,
    pub(super) visibility: Duration,
}

/// Receives messages from the queues of SQS.
#[derive(Debug)]
pub(super) struct SqsPoller {
    client: Client,
    /// The wait that the client's timeouts are set for.
    wait: Duration,
    stamp: ReceiptClock,
}

impl SqsPoller {
    pub(super) fn new(client: Client, wait: Duration, stamp: ReceiptClock) -> Self {
        Self { client, wait, stamp }
    }

    /// Makes one `ReceiveMessage` call.
    pub(super) async fn poll(&self, poll: SqsPoll<'_>) -> Result<Vec<Delivery>> {
        let SqsPoll { url, most, wait, visibility, .. } = poll;
        // Rounded up: a wait below a second would else become a busy loop of empty answers.
        let wait_seconds = ceil_seconds(wait).min(20);
        let received = Instant::now();
        let request = self.client.receive_message().queue_url(url);
        let request = request
            .max_number_of_messages(i32::try_from(most.clamp(1, MAX_MESSAGES)).unwrap_or(1))
            .wait_time_seconds(wait_seconds)
            .visibility_timeout(ceil_seconds(visibility.min(MAX_HIDE)))
            .message_system_attribute_names(Seen::ApproximateReceiveCount)
            .message_system_attribute_names(Seen::ApproximateFirstReceiveTimestamp)
            .message_system_attribute_names(Seen::SentTimestamp)
            .message_system_attribute_names(Seen::MessageGroupId)
            .message_attribute_names(TRACEPARENT)
            .message_attribute_names(ORIGIN);
        let sent = if wait == self.wait {
            request.send().await
        } else {
            let timeouts = connect::poll_timeouts(Duration::from_secs(20).min(wait) + SECOND);
            let other = aws_sdk_sqs::Config::builder().timeout_config(timeouts);
            request.customize().config_override(other).send().await
        };
        let answer = sent.map_err(|error| from_sdk("receiving from SQS", error))?;
        let messages = answer.messages.unwrap_or_default();
        Ok(messages
            .into_iter()
            .filter_map(|message| self.build_delivery(message, &poll, received))
            .collect())
    }

    /// A message without a handle cannot be worked with, nor be given back.
    fn build_delivery(
        &self,
        message: Message,
        poll: &SqsPoll<'_>,
        received: Instant,
    ) -> Option<Delivery> {
        let mut attributes = message.attributes.unwrap_or_default();
        let tenant = attributes.remove(&Seen::MessageGroupId);
        let own = message.message_attributes.unwrap_or_default();
        let text = |name: &str| own.get(name).and_then(|value| value.string_value.clone());
        let (traceparent, origin) = (text(TRACEPARENT), text(ORIGIN));
        let number = |name: Seen| attributes.get(&name).and_then(|text| text.parse::<u64>().ok());
        let time = |name: Seen| number(name).map(millis_since_epoch);
        let count = number(Seen::ApproximateReceiveCount).unwrap_or(1);
        let Some(handle) = message.receipt_handle else {
            tracing::error!("SQS handed out a message without a receipt handle");
            return None;
        };
        Some(Delivery {
            message_id: message.message_id.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
            receipt: self.stamp.seal_receipt(&handle, poll.line, received),
            receive_count: u32::try_from(count).unwrap_or(u32::MAX),
            sent_at: time(Seen::SentTimestamp),
            first_received_at: time(Seen::ApproximateFirstReceiveTimestamp),
            received,
            priority: poll.priority,
            tenant,
            traceparent,
            origin: origin.as_deref().and_then(MessageOrigin::from_text),
        })
    }
}

fn millis_since_epoch(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}
