//! A queue's attributes and our rights on it: for `docmill doctor`.
//!
//! Permissions are found out by requests that cannot succeed (an unused handle, a delay that is too
//! long): the service checks the caller before the request, so such a request is either denied or
//! refused for its content. Nothing is received, sent or deleted.

use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName as Attribute;

use super::connect::{RedrivePolicy, SqsClients};
use super::errors::from_sdk;
use super::sqs_tiers::{SqsTier, SqsTiers};
use docmill_core::fault::{Fault, Result};

/// A receipt handle that no message has.
const NOBODYS: &str = "docmill-doctor";

/// The results of the inspection of all configured queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueInspection {
    /// The least `maxReceiveCount` of a redrive policy; `None`: a queue is without one.
    pub receives: Option<u32>,
    /// For how long a queue keeps a message: `MessageRetentionPeriod`.
    pub retention: Option<Duration>,
    /// The same of the dead-letter queue.
    pub dead_retention: Option<Duration>,
    /// Actions of the worker's that are not allowed, as a policy names them.
    pub denied: Vec<&'static str>,
}

/// Inspects the queues without changing anything.
pub(super) struct SqsInspector<'a> {
    pub(super) clients: &'a SqsClients,
    pub(super) lines: &'a SqsTiers,
}

impl SqsInspector<'_> {
    /// Inspects every queue.
    ///
    /// # Errors
    /// SQS does not answer.
    pub(super) async fn inspect(&self) -> Result<QueueInspection> {
        let mut all = QueueInspection::default();
        let mut endless = false;
        for line in self.lines.iter() {
            let one = Box::pin(self.inspect_line(line)).await?;
            endless |= one.receives.is_none();
            all.receives = least_known(all.receives, one.receives);
            all.retention = least_known(all.retention, one.retention);
            all.dead_retention = least_known(all.dead_retention, one.dead_retention);
            all.denied.extend(one.denied);
        }
        all.denied.sort_unstable();
        all.denied.dedup();
        if endless {
            all.receives = None;
        }
        Ok(all)
    }

    async fn inspect_line(&self, line: &SqsTier) -> Result<QueueInspection> {
        let (receives, retention) = self.attributes_of(&line.url).await?;
        let dead_retention = match &line.dead_letter_url {
            Some(url) => self.attributes_of(url).await?.1,
            None => None,
        };
        let denied = Box::pin(self.denied_actions(&line.url)).await;
        Ok(QueueInspection { receives, retention, dead_retention, denied })
    }

    async fn attributes_of(&self, url: &str) -> Result<(Option<u32>, Option<Duration>)> {
        let request = self.clients.quick.get_queue_attributes().queue_url(url);
        let request = request
            .attribute_names(Attribute::RedrivePolicy)
            .attribute_names(Attribute::MessageRetentionPeriod);
        let answer = request.send().await.map_err(|e| from_sdk("looking at the queue", e))?;
        let attributes = answer.attributes.unwrap_or_default();
        let policy = attributes.get(&Attribute::RedrivePolicy);
        let retention = attributes.get(&Attribute::MessageRetentionPeriod);
        let seconds = retention.and_then(|text| text.parse().ok());
        let receives =
            policy.and_then(|text| RedrivePolicy::parse(text)).map(|found| found.max_receives);
        Ok((receives, seconds.map(Duration::from_secs)))
    }

    async fn denied_actions(&self, url: &str) -> Vec<&'static str> {
        let client = &self.clients.quick;
        let receive = client.receive_message().queue_url(url).max_number_of_messages(11);
        let delete = client.delete_message().queue_url(url).receipt_handle(NOBODYS);
        let hide = client.change_message_visibility().queue_url(url);
        let hide = hide.receipt_handle(NOBODYS).visibility_timeout(0);
        let send = client.send_message().queue_url(url).message_body("probe");
        let send = send.delay_seconds(901);
        let (receive, delete, hide, send) =
            tokio::join!(receive.send(), delete.send(), hide.send(), send.send());
        let answers = [
            ("sqs:ReceiveMessage", receive.map(drop).map_err(|e| from_sdk("probing", e))),
            ("sqs:DeleteMessage", delete.map(drop).map_err(|e| from_sdk("probing", e))),
            ("sqs:ChangeMessageVisibility", hide.map(drop).map_err(|e| from_sdk("probing", e))),
            ("sqs:SendMessage", send.map(drop).map_err(|e| from_sdk("probing", e))),
        ];
        let denied = answers.into_iter().filter(|(_, answer)| matches!(answer, Err(error) if matches!(error.fault, Fault::Unavailable | Fault::Denied)));
        denied.map(|(action, _)| action).collect()
    }
}

/// Of what is known of two queues the smaller: the weakest of several is what a person has to know.
fn least_known<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
