//! The queues that a bucket notifies of new objects: for `docmill doctor`. Pure.

use aws_sdk_s3::operation::get_bucket_notification_configuration::GetBucketNotificationConfigurationOutput;
use aws_sdk_s3::types::{FilterRuleName, QueueConfiguration};

/// A rule by which the bucket notifies a queue of new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketQueueRule {
    /// ARN of the queue.
    pub queue: String,
    /// Keys begin with this; empty: all keys.
    pub prefix: String,
}

/// The rules in the bucket's answer.
pub(super) fn queue_rules_of(
    answer: &GetBucketNotificationConfigurationOutput,
) -> Vec<BucketQueueRule> {
    let rules = answer.queue_configurations().iter();
    rules
        .map(|rule| BucketQueueRule { queue: rule.queue_arn().to_owned(), prefix: prefix_of(rule) })
        .collect()
}

/// The prefix in the filter of a rule; empty: all keys.
fn prefix_of(rule: &QueueConfiguration) -> String {
    let filters = rule.filter().and_then(|filter| filter.key()).map(|key| key.filter_rules());
    let prefix = filters.unwrap_or_default().iter().find(|filter| {
        // Services write the name in either case.
        let name = filter.name().map(FilterRuleName::as_str).unwrap_or_default();
        name.eq_ignore_ascii_case("prefix")
    });
    prefix.and_then(|filter| filter.value()).unwrap_or_default().to_owned()
}
