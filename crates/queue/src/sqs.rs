//! Amazon SQS, standard queues: one, or one per tier.
//!
//! Beyond [`MessageQueue`] it promises: a receive that was sent is never dropped before its wait
//! and 5 s are over, every call has a timeout, retries are fixed per operation
//! (`connect::SqsClients`), and no hide exceeds the rest of the twelve hours from the receive. Not
//! promised: FIFO queues are refused, counts are SQS's approximate ones.

mod batches;
mod connect;
mod envelope;
mod errors;
mod inspect;
mod polls;
mod receipt;
mod requests;
mod sqs_tiers;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use futures::FutureExt as _;

use self::batches::{SqsBatches, VisibilityChange};
use self::connect::{RedrivePolicy, SqsClients};
use self::errors::from_sdk;
pub use self::inspect::QueueInspection;
use self::inspect::SqsInspector;
use self::polls::{SqsPoll, SqsPoller};
use self::receipt::{MAX_HIDE, ReceiptClock, handle_of, tier_of};
use self::sqs_tiers::{SqsTier, SqsTiers};
use super::round_robin::WeightedRoundRobin;
use super::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, QueueTier, ReceiptHandle,
};
use docmill_core::config::{QueueConfig, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;
use parking_lot::Mutex;

const SECOND: Duration = Duration::from_secs(1);

/// One queue, or one per tier, each with its dead-letter queue if it has one.
#[derive(Debug)]
pub struct SqsQueue {
    clients: SqsClients,
    lines: SqsTiers,
    poller: SqsPoller,
    batches: SqsBatches,
    turns: Mutex<WeightedRoundRobin>,
    visibility: Duration,
    stamp: ReceiptClock,
}

impl SqsQueue {
    /// Connects with credentials from AWS's usual chain.
    ///
    /// # Errors
    /// The queue does not exist, is a FIFO queue, refuses us or does not answer for 20 s;
    ///   its dead-letter queue cannot be found. The text names the queue, its address and what to
    ///   check.
    pub async fn connect(config: &QueueConfig) -> Result<Self> {
        Self::with_client(connect::build_client(config).await, config).await
    }

    /// Connects with a client of the caller's, whose retries and timeouts are replaced.
    ///
    /// # Errors
    /// As [`SqsQueue::connect`].
    pub async fn with_client(client: Client, config: &QueueConfig) -> Result<Self> {
        Self::with_patience(&client, config, connect::START_TIMEOUT).await
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
        let clients = SqsClients::new(client, config.wait);
        let mut lines = Vec::new();
        for tier in config.sqs_tiers() {
            let found = connect::find_queue(&clients.quick, config, &tier, patience).await?;
            let max_receives = found.redrive.as_ref().map_or(0, |redrive| redrive.max_receives);
            lines.push(SqsTier {
                priority: tier.name,
                weight: tier.effective_weight(),
                url: tier.url,
                dead_letter_url: found.dead_letter_url,
                max_receives: AtomicU32::new(max_receives),
            });
        }
        let (lines, stamp) = (SqsTiers::new(lines)?, ReceiptClock::new());
        Ok(Self {
            poller: SqsPoller::new(clients.polls.clone(), config.wait, stamp),
            batches: SqsBatches::new(clients.clone(), config.fair),
            clients,
            turns: Mutex::new(WeightedRoundRobin::new(lines.iter().map(|line| line.weight))),
            lines,
            visibility: config.visibility,
            stamp,
        })
    }

    /// Inspects the queue without changing anything.
    ///
    /// # Errors
    /// SQS does not answer.
    pub async fn inspect(&self) -> Result<QueueInspection> {
        SqsInspector { clients: &self.clients, lines: &self.lines }.inspect().await
    }

    /// Receives from whichever tier has messages, each polled in its turn.
    async fn poll_in_turn(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let give_up = Instant::now() + wait;
        loop {
            let order = self.turns.lock().next_round();
            for at in order {
                let found = self.receive_from(at, most, Duration::ZERO).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            let left = give_up.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            tokio::time::sleep(left.min(SECOND)).await;
        }
    }

    /// The priority of the tier's messages; one queue for all has messages of every priority.
    fn priority_of(&self, line: &SqsTier) -> Option<Priority> {
        self.lines.are_tiers().then_some(line.priority)
    }

    /// Sets visibilities as far as each message's twelve hours allow.
    async fn change_within_limit(
        &self,
        wishes: impl Iterator<Item = (&ReceiptHandle, Duration)>,
    ) -> Vec<Result<()>> {
        let now = Instant::now();
        let allowed: Vec<Option<(usize, VisibilityChange)>> = wishes
            .map(|(receipt, wish)| {
                let seconds = self.stamp.allowed_seconds(receipt, wish, now)?;
                Some((
                    tier_of(receipt),
                    VisibilityChange { handle: handle_of(receipt).to_owned(), seconds },
                ))
            })
            .collect();
        let changes: Vec<(usize, VisibilityChange)> = allowed.iter().flatten().cloned().collect();
        let results = self
            .lines
            .run_by_tier(changes, |line, part| self.batches.change_owned(line, part))
            .await;
        let mut results = results.into_iter();
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

    async fn fetch_counts(&self, url: &str) -> Result<(QueueDepth, Option<RedrivePolicy>)> {
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
        let depth = QueueDepth {
            ready: number(Attribute::ApproximateNumberOfMessages)?,
            in_flight: number(Attribute::ApproximateNumberOfMessagesNotVisible)?,
            delayed: number(Attribute::ApproximateNumberOfMessagesDelayed)?,
            dead: None,
        };
        let policy = attributes.get(&Attribute::RedrivePolicy);
        Ok((depth, policy.and_then(|text| RedrivePolicy::parse(text))))
    }
}

/// A receipt that is no longer good is a success for who only wants the message back in the queue.
fn ignore_missing(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.fault == Fault::Missing => Ok(()),
        other => other,
    }
}

#[async_trait]
impl MessageQueue for SqsQueue {
    fn describe(&self) -> String {
        let urls: Vec<String> =
            self.lines.iter().map(|line| strip_credentials(&line.url)).collect();
        format!("SQS queue {}", urls.join(", "))
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        match self.lines.are_tiers() {
            true => self.poll_in_turn(max, wait).await,
            false => self.receive_from(0, max, wait).await,
        }
    }

    fn tiers(&self) -> Vec<QueueTier> {
        if !self.lines.are_tiers() {
            return Vec::new();
        }
        self.lines
            .iter()
            .map(|line: &SqsTier| QueueTier { priority: line.priority, weight: line.weight })
            .collect()
    }

    async fn receive_from(&self, tier: usize, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let (line, visibility) = (self.lines.get(tier)?, self.visibility);
        let (url, priority) = (line.url.as_str(), self.priority_of(line));
        self.poller.poll(SqsPoll { line: tier, priority, url, most: max, wait, visibility }).await
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.change_within_limit(receipts.iter().map(|receipt| (receipt, visibility))).await
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let entries = receipts.iter().map(|receipt| (tier_of(receipt), receipt)).collect();
        self.lines
            .run_by_tier(entries, |line, part| {
                async { self.batches.delete_messages(&line.url, part).await }.boxed()
            })
            .await
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        let wishes = receipts.iter().map(|(receipt, wish)| (receipt, *wish));
        self.change_within_limit(wishes).await.into_iter().map(ignore_missing).collect()
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        let entries = messages
            .iter()
            .map(|message| (self.lines.position_for(message.priority), message))
            .collect();
        self.lines
            .run_by_tier(entries, |line, part| {
                async { self.batches.send_all(&line.url, part).await }.boxed()
            })
            .await
    }

    async fn depth(&self) -> Result<QueueDepth> {
        let mut depth = QueueDepth::default();
        for line in self.lines.iter() {
            let (counted, redrive) = self.fetch_counts(&line.url).await?;
            let max_receives = redrive.map_or(0, |redrive| redrive.max_receives);
            line.max_receives.store(max_receives, Ordering::Relaxed);
            depth.ready += counted.ready;
            depth.in_flight += counted.in_flight;
            depth.delayed += counted.delayed;
        }
        for (_, url) in self.lines.with_dead_letters() {
            let (dead, _) = self.fetch_counts(url).await?;
            let dead = dead.ready + dead.in_flight + dead.delayed;
            depth.dead = Some(depth.dead.unwrap_or_default() + dead);
        }
        Ok(depth)
    }

    async fn tier_depths(&self) -> Result<Vec<QueueDepth>> {
        let mut depths = Vec::new();
        if self.lines.are_tiers() {
            for line in self.lines.iter() {
                depths.push(self.fetch_counts(&line.url).await?.0);
            }
        }
        Ok(depths)
    }

    fn longest_hide(&self) -> Duration {
        MAX_HIDE
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(self.lines.least_receives())
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        let mut letters = Vec::new();
        for (line, url) in self.lines.with_dead_letters() {
            while letters.len() < max {
                let most = max - letters.len();
                // A poll that waits asks all of the service's servers, one that does not a sample.
                let priority = self.priority_of(self.lines.get(line)?);
                let poll = SqsPoll { line, priority, url, most, wait: SECOND, visibility: hidden };
                let found = match self.poller.poll(poll).await {
                    Ok(found) => found,
                    // Received messages are hidden: they have to be handed over.
                    Err(_) if !letters.is_empty() => return Ok(letters),
                    Err(error) => return Err(error),
                };
                if found.is_empty() {
                    break;
                }
                letters.extend(found.into_iter().map(|delivery| DeadLetter { delivery }));
            }
        }
        Ok(letters)
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let entries = receipts.iter().map(|receipt| (tier_of(receipt), receipt)).collect();
        self.lines.run_by_tier(entries, |line, part| self.batches.delete_dead(line, part)).await
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let mut entries = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            let handle = handle_of(receipt).to_owned();
            entries.push((tier_of(receipt), VisibilityChange { handle, seconds: 0 }));
        }
        let released = self
            .lines
            .run_by_tier(entries, |line, part| self.batches.release_dead(line, part))
            .await;
        released.into_iter().map(ignore_missing).collect()
    }

    async fn run_maintenance(&self) -> Result<u64> {
        // The service cleans up by itself.
        Ok(0)
    }
}
