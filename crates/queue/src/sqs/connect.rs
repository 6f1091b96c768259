//! Finding the queue at start: clients, existence, redrive policy, dead-letter queue.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;
use tokio::time::Instant;

use super::errors::from_sdk;
use super::requests::RequestCounter;
use docmill_core::config::{QueueConfig, TierConfig, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::retry;

/// How long a start waits for a queue that does not answer.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Between two tries of a start.
const START_RETRY_PAUSE: Duration = Duration::from_millis(500);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// One client per way of retrying; they share connections.
#[derive(Debug, Clone)]
pub(super) struct SqsClients {
    /// Receives. Never retried here: the intake loop owns the pace of polls, and a second attempt
    /// inside the call would outlive the time the caller planned for it.
    pub(super) polls: Client,
    /// Extensions and hiding. Retried fast and for a short time: a late extension is worth nothing
    /// and the next heartbeat asks again.
    pub(super) quick: Client,
    /// Everything else. Retried patiently: a lost acknowledgement costs a whole second delivery,
    /// and a message sent twice is harmless (the claim sees to that).
    pub(super) steady: Client,
}

/// Attempt and overall limits of one way of calling.
fn timeout_config(attempt: Duration, all: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(attempt)
        .operation_timeout(all)
        .build()
}

/// The limits of one receive that waits so long: the wait and 5 s for the answer to arrive.
/// Without them a receive can hang for ever (awslabs/aws-sdk-rust#1094).
pub(super) fn poll_timeouts(wait: Duration) -> TimeoutConfig {
    let longest = wait + Duration::from_secs(5);
    timeout_config(longest, longest)
}

impl SqsClients {
    pub(super) fn new(client: &Client, wait: Duration) -> Self {
        let with = |retry: RetryConfig, timeout: TimeoutConfig| {
            let builder = client.config().to_builder();
            let builder = builder.interceptor(RequestCounter);
            Client::from_conf(builder.retry_config(retry).timeout_config(timeout).build())
        };
        let quick = RetryConfig::standard()
            .with_max_attempts(4)
            .with_initial_backoff(Duration::from_millis(100))
            .with_max_backoff(Duration::from_millis(500));
        let steady = RetryConfig::standard()
            .with_max_attempts(5)
            .with_initial_backoff(Duration::from_millis(200))
            .with_max_backoff(Duration::from_secs(2));
        Self {
            polls: with(RetryConfig::disabled(), poll_timeouts(wait)),
            quick: with(quick, timeout_config(Duration::from_secs(3), Duration::from_secs(8))),
            steady: with(steady, timeout_config(Duration::from_secs(5), Duration::from_secs(20))),
        }
    }
}

/// The SDK's client for this configuration; credentials come from AWS's usual chain.
pub(super) async fn build_client(config: &QueueConfig) -> Client {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if !config.region.is_empty() {
        loader = loader.region(Region::new(config.region.clone()));
    }
    if !config.endpoint.is_empty() {
        loader = loader.endpoint_url(config.endpoint.clone());
    }
    Client::new(&loader.load().await)
}

/// A queue's attributes, read at start.
#[derive(Debug)]
pub(super) struct FoundQueue {
    pub(super) redrive: Option<RedrivePolicy>,
    pub(super) dead_letter_url: Option<String>,
}

/// The redrive policy of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RedrivePolicy {
    pub(super) target_arn: String,
    pub(super) max_receives: u32,
}

impl RedrivePolicy {
    /// Reads the attribute; the count is a number or, from some tools, a text.
    pub(super) fn parse(policy: &str) -> Option<Self> {
        let policy: Value = serde_json::from_str(policy).ok()?;
        let max = match policy.get("maxReceiveCount")? {
            Value::String(text) => text.parse().ok()?,
            number => u32::try_from(number.as_u64()?).ok()?,
        };
        let target_arn = policy.get("deadLetterTargetArn")?.as_str()?.to_owned();
        Some(Self { target_arn, max_receives: max })
    }
}

/// Checks that the queue is there and finds its dead-letter queue, trying for up to `patience`.
pub(super) async fn find_queue(
    client: &Client,
    config: &QueueConfig,
    tier: &TierConfig,
    patience: Duration,
) -> Result<FoundQueue> {
    if tier.url.trim_end_matches('/').ends_with(".fifo") {
        return Err(Error::new(
            Fault::Rejected,
            format!(
                "queue.url {} is a FIFO queue: one slow document would hold back every other of \
                 its group; use a standard queue",
                tier.url
            ),
        ));
    }
    let redrive = retry_patiently(patience, || fetch_redrive_policy(client, &tier.url)).await;
    let redrive = redrive.map_err(|error| explain_error(error, config, &tier.url))?;
    let dead_letter_url = match &redrive {
        _ if !tier.dead_letter_url.is_empty() => Some(tier.dead_letter_url.clone()),
        Some(redrive) => {
            let found = retry_patiently(patience, || url_of(client, &redrive.target_arn)).await;
            Some(found.map_err(|error| explain_dead_error(error, redrive))?)
        }
        None => None,
    };
    Ok(FoundQueue { redrive, dead_letter_url })
}

/// Tries again for as long as the failure is one that passes.
async fn retry_patiently<T, F>(patience: Duration, mut attempt: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let give_up = Instant::now() + patience;
    let wait_after = |error: &Error, _| {
        let passes = matches!(error.fault, Fault::Transient | Fault::Throttled(_));
        if !passes || Instant::now() >= give_up {
            return None;
        }
        tracing::info!(fault = error.fault.code(), "waiting for the queue: {error}");
        Some(START_RETRY_PAUSE)
    };
    retry(|_| attempt(), wait_after).await
}

async fn fetch_redrive_policy(client: &Client, url: &str) -> Result<Option<RedrivePolicy>> {
    let request = client
        .get_queue_attributes()
        .queue_url(url)
        .attribute_names(QueueAttributeName::QueueArn)
        .attribute_names(QueueAttributeName::RedrivePolicy);
    let answer = request.send().await.map_err(|e| from_sdk("looking up the SQS queue", e))?;
    let attributes = answer.attributes.unwrap_or_default();
    Ok(attributes
        .get(&QueueAttributeName::RedrivePolicy)
        .and_then(|text| RedrivePolicy::parse(text)))
}

/// The URL of the queue that `arn:aws:sqs:REGION:ACCOUNT:NAME` names.
async fn url_of(client: &Client, arn: &str) -> Result<String> {
    let mut parts = arn.split(':').skip(4);
    let (Some(account), Some(name)) = (parts.next(), parts.next()) else {
        return Err(Error::new(Fault::Rejected, "the redrive policy names no queue"));
    };
    let request = client.get_queue_url().queue_name(name).queue_owner_aws_account_id(account);
    let answer =
        request.send().await.map_err(|e| from_sdk("looking up the dead-letter queue", e))?;
    answer.queue_url.ok_or_else(|| Error::internal("SQS answered no URL"))
}

fn explain_error(error: Error, config: &QueueConfig, url: &str) -> Error {
    let address = match config.endpoint.as_str() {
        "" => "AWS".to_owned(),
        endpoint => strip_credentials(endpoint),
    };
    let advice = match error.fault {
        Fault::Unavailable => {
            "check queue.url and queue.region, that the queue exists, the credentials, and that \
             their policy allows sqs:GetQueueAttributes, sqs:ReceiveMessage, sqs:DeleteMessage, \
             sqs:ChangeMessageVisibility and sqs:SendMessage on it"
        }
        _ => "check queue.endpoint, the network and whether the service is up",
    };
    let context = format!(
        "SQS queue {} at {address} cannot be used: {error}; {advice}",
        strip_credentials(url)
    );
    Error { context: context.into(), ..error }
}

fn explain_dead_error(error: Error, redrive: &RedrivePolicy) -> Error {
    let context = format!(
        "the dead-letter queue {} of queue.url cannot be found: {error}; allow sqs:GetQueueUrl on \
         it or set queue.dead_letter_url",
        redrive.target_arn
    );
    Error { context: context.into(), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redrive_policy_is_read_with_its_count_as_number_or_text() {
        let policy = |max: &str| {
            format!(r#"{{"deadLetterTargetArn":"arn:aws:sqs:r:1:d","maxReceiveCount":{max}}}"#)
        };
        for (text, expected) in [
            (policy("5"), Some(5)),
            (policy("\"1000\""), Some(1000)),
            (policy("-1"), None),
            (policy("\"many\""), None),
            ("{}".to_owned(), None),
            ("not json".to_owned(), None),
        ] {
            let read = RedrivePolicy::parse(&text).map(|redrive| redrive.max_receives);
            assert_eq!(read, expected, "{text}");
        }
    }
}
