//! Amazon SQS, standard queues.
//!
//! What it promises beyond [`Queue`]: a receive that was sent is never dropped before its wait and
//! 5 s are over, every call has a timeout, how a call is retried is fixed per operation
//! (`connect::Clients`), and no wish to hide exceeds what twelve hours from the receive leave. What
//! it does not: FIFO queues are refused, counts are SQS's approximate ones.

mod batches;
mod connect;
mod errors;
mod inspect;
mod receipt;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    Message, MessageSystemAttributeName as Seen, QueueAttributeName as Attribute,
};

use self::batches::Change;
use self::connect::{Clients, Redrive};
use self::errors::from_sdk;
pub use self::inspect::Inspection;
use self::receipt::{LONGEST, Stamp, handle, seconds};
use super::{DeadLetter, Delivery, Depth, Outgoing, Queue, Receipt};
use crate::config::QueueConfig;
use crate::fault::{Error, Fault, Result};

/// Messages per receive (API reference).
const MOST: usize = 10;

/// One queue and, if it has one, its dead-letter queue.
#[derive(Debug)]
pub struct SqsQueue {
    clients: Clients,
    url: String,
    dead_letter_url: Option<String>,
    visibility: Duration,
    wait: Duration,
    stamp: Stamp,
    /// Of the redrive policy, zero without one; renewed whenever [`Queue::depth`] reads it.
    max_receives: AtomicU32,
}

impl SqsQueue {
    /// Connects with credentials from AWS's usual chain.
    ///
    /// # Errors
    /// The queue does not exist, is a FIFO queue, refuses us or does not answer for 20 s; its
    /// dead-letter queue cannot be found. The text says which queue, where, and what to check.
    pub async fn connect(config: &QueueConfig) -> Result<Self> {
        Self::with_client(connect::client(config).await, config).await
    }

    /// Connects with a client of the caller's, whose retries and timeouts are replaced.
    ///
    /// # Errors
    /// As [`SqsQueue::connect`].
    pub async fn with_client(client: Client, config: &QueueConfig) -> Result<Self> {
        Self::with_patience(&client, config, connect::PATIENCE).await
    }

    /// Connects, waiting up to `patience` for a service that does not answer.
    ///
    /// # Errors
    /// As [`SqsQueue::connect`].
    pub async fn with_patience(
        client: &Client,
        config: &QueueConfig,
        patience: Duration,
    ) -> Result<Self> {
        let clients = Clients::new(client, config.wait);
        let found = connect::find(&clients.quick, config, patience).await?;
        let max_receives = found.redrive.as_ref().map_or(0, |redrive| redrive.max_receives);
        Ok(Self {
            clients,
            url: config.url.clone(),
            dead_letter_url: found.dead_letter_url,
            visibility: config.visibility,
            wait: config.wait,
            stamp: Stamp::new(),
            max_receives: AtomicU32::new(max_receives),
        })
    }

    /// One `ReceiveMessage`.
    async fn poll(
        &self,
        url: &str,
        most: usize,
        wait: Duration,
        visibility: Duration,
    ) -> Result<Vec<Delivery>> {
        // Rounded up: a wait below a second would else become a busy loop of empty answers.
        let wait_seconds = seconds(wait).min(20);
        let received = Instant::now();
        let request = self.clients.polls.receive_message().queue_url(url);
        let request = request
            .max_number_of_messages(i32::try_from(most.clamp(1, MOST)).unwrap_or(1))
            .wait_time_seconds(wait_seconds)
            .visibility_timeout(seconds(visibility.min(LONGEST)))
            .message_system_attribute_names(Seen::ApproximateReceiveCount)
            .message_system_attribute_names(Seen::ApproximateFirstReceiveTimestamp)
            .message_system_attribute_names(Seen::SentTimestamp);
        let sent = if wait == self.wait {
            request.send().await
        } else {
            let timeouts = connect::poll_timeouts(Duration::from_secs(20).min(wait) + SECOND);
            let other = aws_sdk_sqs::Config::builder().timeout_config(timeouts);
            request.customize().config_override(other).send().await
        };
        let answer = sent.map_err(|error| from_sdk("receiving from SQS", error))?;
        let messages = answer.messages.unwrap_or_default();
        Ok(messages.into_iter().filter_map(|message| self.delivery(message, received)).collect())
    }

    /// A message without a handle cannot be worked with, nor be given back.
    fn delivery(&self, message: Message, received: Instant) -> Option<Delivery> {
        let attributes = message.attributes.unwrap_or_default();
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
            receipt: self.stamp.seal(&handle, received),
            receive_count: u32::try_from(count).unwrap_or(u32::MAX),
            sent_at: time(Seen::SentTimestamp),
            first_received_at: time(Seen::ApproximateFirstReceiveTimestamp),
            received,
        })
    }

    /// Sets visibilities as far as each message's twelve hours allow.
    async fn change_within_limit(
        &self,
        wishes: impl Iterator<Item = (&Receipt, Duration)>,
    ) -> Vec<Result<()>> {
        let now = Instant::now();
        let allowed: Vec<Option<Change>> = wishes
            .map(|(receipt, wish)| {
                let seconds = self.stamp.allowed(receipt, wish, now)?;
                Some(Change { handle: handle(receipt).to_owned(), seconds })
            })
            .collect();
        let changes: Vec<Change> = allowed.iter().flatten().cloned().collect();
        let mut results = self.change(&self.url, &changes).await.into_iter();
        let over =
            || Err(Error::new(Fault::Missing, "the message was hidden for twelve hours already"));
        allowed
            .iter()
            .map(|change| match change {
                Some(_) => results.next().unwrap_or_else(over),
                None => over(),
            })
            .collect()
    }

    async fn counts(&self, url: &str) -> Result<(Depth, Option<Redrive>)> {
        let request = self.clients.steady.get_queue_attributes().queue_url(url);
        let request = request.set_attribute_names(Some(vec![
            Attribute::ApproximateNumberOfMessages,
            Attribute::ApproximateNumberOfMessagesNotVisible,
            Attribute::ApproximateNumberOfMessagesDelayed,
            Attribute::RedrivePolicy,
        ]));
        let answer = request.send().await.map_err(|e| from_sdk("asking SQS for its depth", e))?;
        let attributes = answer.attributes.unwrap_or_default();
        let number = |name: Attribute| -> Result<u64> {
            let text = attributes.get(&name);
            text.and_then(|text| text.parse().ok())
                .ok_or_else(|| Error::transient(format!("SQS answered no {}", name.as_str())))
        };
        let depth = Depth {
            ready: number(Attribute::ApproximateNumberOfMessages)?,
            in_flight: number(Attribute::ApproximateNumberOfMessagesNotVisible)?,
            delayed: number(Attribute::ApproximateNumberOfMessagesDelayed)?,
            dead: None,
        };
        let policy = attributes.get(&Attribute::RedrivePolicy);
        Ok((depth, policy.and_then(|text| Redrive::read(text))))
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn millis_since_epoch(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// A receipt that is no longer good is a success for who only wants the message back in the queue.
fn missing_is_done(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.fault == Fault::Missing => Ok(()),
        other => other,
    }
}

#[async_trait]
impl Queue for SqsQueue {
    fn describe(&self) -> String {
        format!("SQS queue {}", self.url)
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        self.poll(&self.url, max, wait, self.visibility).await
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Vec<Result<()>> {
        self.change_within_limit(receipts.iter().map(|receipt| (receipt, visibility))).await
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        self.delete(&self.url, receipts).await
    }

    async fn hide(&self, receipts: &[(Receipt, Duration)]) -> Vec<Result<()>> {
        let wishes = receipts.iter().map(|(receipt, wish)| (receipt, *wish));
        self.change_within_limit(wishes).await.into_iter().map(missing_is_done).collect()
    }

    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<()>> {
        self.send_all(messages).await
    }

    async fn depth(&self) -> Result<Depth> {
        let (mut depth, redrive) = self.counts(&self.url).await?;
        let max_receives = redrive.map_or(0, |redrive| redrive.max_receives);
        self.max_receives.store(max_receives, Ordering::Relaxed);
        if let Some(url) = &self.dead_letter_url {
            let (dead, _) = self.counts(url).await?;
            depth.dead = Some(dead.ready + dead.in_flight + dead.delayed);
        }
        Ok(depth)
    }

    fn longest_hide(&self) -> Duration {
        LONGEST
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        let max_receives = self.max_receives.load(Ordering::Relaxed);
        Ok((max_receives > 0).then_some(max_receives))
    }

    async fn dead_receive(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        let Some(url) = &self.dead_letter_url else { return Ok(Vec::new()) };
        let mut letters = Vec::new();
        while letters.len() < max {
            // A poll that waits asks all of the service's servers, one that does not a sample.
            let poll = self.poll(url, max - letters.len(), SECOND, hidden).await;
            let found = match poll {
                Ok(found) => found,
                // What was received already is hidden: it has to be handed over.
                Err(_) if !letters.is_empty() => break,
                Err(error) => return Err(error),
            };
            if found.is_empty() {
                break;
            }
            letters.extend(found.into_iter().map(|delivery| DeadLetter { delivery }));
        }
        Ok(letters)
    }

    async fn dead_acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        match &self.dead_letter_url {
            Some(url) => self.delete(url, receipts).await,
            None => receipts
                .iter()
                .map(|_| Err(Error::internal("there is no dead-letter queue to delete from")))
                .collect(),
        }
    }

    async fn maintain(&self) -> Result<u64> {
        // The service looks after itself.
        Ok(0)
    }
}
