//! The bucket's event notifications: those of our own artefacts must not come back as documents.

use super::DoctorFinding;
use docmill_core::config::AllowedPrefix;
use docmill_storage::keys;

/// A rule by which a bucket sends a queue events about new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketNotification {
    /// ARN of the queue.
    pub queue: String,
    /// Keys begin with this; empty: all keys.
    pub prefix: String,
}

/// A key of every place we write to while working.
const OWN: [&str; 2] = ["ingestions/", "queue/todo/"];

/// The notifications of `bucket` that lead to one of `queues` (their URLs or ARNs).
pub fn check(
    rules: &[BucketNotification],
    queues: &[String],
    bucket: &str,
    allowed: &[AllowedPrefix],
) -> DoctorFinding {
    const CHECK: &str = "store.notification";
    let names: Vec<_> = queues.iter().map(|queue| queue.rsplit(['/', ':']).next()).collect();
    let ours: Vec<&BucketNotification> =
        rules.iter().filter(|rule| names.contains(&rule.queue.rsplit(':').next())).collect();
    if ours.is_empty() {
        return DoctorFinding::ok(CHECK, "the bucket notifies other queues or none");
    }
    if let Some(rule) = ours.iter().find(|rule| catches_own(rule)) {
        return DoctorFinding::wrong(
            CHECK,
            format!("the notification for prefix `{}` fires for our own artefacts", rule.prefix),
            "give it a prefix filter such as documents/: every transcript would send a message",
        );
    }
    let unheard = ours.iter().find(|rule| {
        !allowed.iter().any(|place| {
            let prefix = place.literal_prefix();
            place.bucket == bucket
                && (rule.prefix.starts_with(prefix) || prefix.starts_with(&rule.prefix))
        })
    });
    if let Some(rule) = unheard {
        return DoctorFinding::wrong(
            CHECK,
            format!("the notification for prefix `{}` is outside store.allow", rule.prefix),
            "add the prefix to store.allow: its events are dropped without work",
        );
    }
    DoctorFinding::ok(CHECK, format!("{} notification(s) to our queue, filtered", ours.len()))
}

fn catches_own(rule: &BucketNotification) -> bool {
    keys::is_own_artefact(&rule.prefix) || OWN.iter().any(|own| own.starts_with(&rule.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_notification_must_be_filtered_and_wanted() {
        let allowed: [AllowedPrefix; 1] = ["b/documents/".parse().unwrap()];
        for (queue, prefix, verdict) in [
            ("arn:aws:sqs:r:1:q", "documents/", Severity::Ok),
            ("arn:aws:sqs:r:1:urgent", "", Severity::Wrong),
            ("arn:aws:sqs:r:1:q", "documents/inbox/", Severity::Ok),
            ("arn:aws:sqs:r:1:q", "", Severity::Wrong),
            ("arn:aws:sqs:r:1:q", "ing", Severity::Wrong),
            ("arn:aws:sqs:r:1:q", "ingestions/", Severity::Wrong),
            ("arn:aws:sqs:r:1:q", "inbox/", Severity::Wrong),
            ("arn:aws:sqs:r:1:other", "", Severity::Ok),
        ] {
            let rule = BucketNotification { queue: queue.to_owned(), prefix: prefix.to_owned() };
            let tiers = ["urgent", "q"].map(|name| format!("https://sqs.r.amazonaws.com/1/{name}"));
            let found = check(&[rule], &tiers, "b", &allowed);
            assert_eq!(found.verdict, verdict, "{queue} {prefix}");
        }
    }
}
