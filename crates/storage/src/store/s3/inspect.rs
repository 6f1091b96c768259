//! What a bucket says about itself: for `docmill doctor`. That it is there, that it may be read
//! and written, and that it takes conditional writes, is seen at [`S3Store::connect`] already.

use aws_sdk_s3::types::FilterRuleName;

use super::S3Store;
use super::faults::failure_of;
use super::place::Place;
use crate::fault::Result;
use crate::store::Store;

/// A rule by which the bucket tells a queue of new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRule {
    /// ARN of the queue.
    pub queue: String,
    /// Keys begin with this; empty: all keys.
    pub prefix: String,
}

impl S3Store {
    /// The rules that tell queues of new objects.
    ///
    /// # Errors
    /// The bucket does not answer, or not to us (`s3:GetBucketNotification`, which a worker does
    /// not need).
    pub async fn queue_rules(&self) -> Result<Vec<QueueRule>> {
        let request = self.client.get_bucket_notification_configuration().bucket(&self.bucket);
        let place = Place { bucket: &self.bucket, key: "", foreign: false };
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => {
                let failure = failure_of(error, &place, "look at the notifications");
                return Err(failure.into_error(&place));
            }
        };
        let prefix_of = |rule: &aws_sdk_s3::types::QueueConfiguration| {
            let filters =
                rule.filter().and_then(|filter| filter.key()).map(|key| key.filter_rules());
            let prefix = filters.unwrap_or_default().iter().find(|filter| {
                // Services write the name in either case.
                let name = filter.name().map(FilterRuleName::as_str).unwrap_or_default();
                name.eq_ignore_ascii_case("prefix")
            });
            prefix.and_then(|filter| filter.value()).unwrap_or_default().to_owned()
        };
        let rules = answer.queue_configurations().iter();
        Ok(rules
            .map(|rule| QueueRule { queue: rule.queue_arn().to_owned(), prefix: prefix_of(rule) })
            .collect())
    }

    /// Whether a key that is not there is told from one that we may not see: without
    /// `s3:ListBucket` S3 answers both alike, and missing documents look like wrong credentials.
    ///
    /// # Errors
    /// The bucket does not answer, or refuses.
    pub async fn tells_what_is_missing(&self) -> Result<bool> {
        let key = format!("ingestions/.probe-{}", uuid::Uuid::new_v4());
        Ok(self.head(&key).await?.is_none())
    }
}
