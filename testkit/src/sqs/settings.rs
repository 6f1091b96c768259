//! The attributes of a queue: defaults, ranges, redrive policy.

use std::collections::BTreeMap;

use serde_json::Value;

use super::clock::Millis;
use super::refusal::{Answer, Kind, refuse};

/// Names, defaults and ranges of the numeric attributes (API reference, `SetQueueAttributes`).
const NUMBERS: [(&str, u64, u64, u64); 5] = [
    ("DelaySeconds", 0, 0, 900),
    ("MaximumMessageSize", 1_048_576, 1024, 1_048_576),
    ("MessageRetentionPeriod", 345_600, 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", 0, 0, 20),
    ("VisibilityTimeout", 30, 0, 43_200),
];

/// Kept and shown, without effect.
const INERT: [&str; 4] = ["Policy", "RedriveAllowPolicy", "KmsMasterKeyId", "SqsManagedSseEnabled"];

/// Where messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redrive {
    pub(super) target_arn: String,
    pub(super) max_receives: u32,
}

/// The attributes of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    given: BTreeMap<String, String>,
    numbers: BTreeMap<&'static str, u64>,
    pub(super) redrive: Option<Redrive>,
}

impl Settings {
    /// The defaults with these attributes set.
    pub(super) fn new(given: &BTreeMap<String, String>) -> Answer<Self> {
        let numbers = NUMBERS.iter().map(|(name, default, ..)| (*name, *default)).collect();
        let mut settings = Self { given: BTreeMap::new(), numbers, redrive: None };
        settings.set(given)?;
        Ok(settings)
    }

    /// Sets attributes; nothing is set if one of them is refused.
    pub(super) fn set(&mut self, given: &BTreeMap<String, String>) -> Answer<()> {
        let mut next = self.clone();
        for (name, value) in given {
            next.set_one(name, value)?;
        }
        *self = next;
        Ok(())
    }

    fn set_one(&mut self, name: &str, value: &str) -> Answer<()> {
        if let Some((name, _, least, most)) = NUMBERS.iter().find(|(known, ..)| *known == name) {
            let number = value.parse().ok().filter(|number| (least..=most).contains(&number));
            let Some(number) = number else { return invalid(name) };
            self.numbers.insert(name, number);
        } else if name == "RedrivePolicy" {
            self.redrive = redrive(value)?;
        } else if name == "FifoQueue" {
            return refuse(Kind::InvalidAttributeValue, "FIFO queues are not offered here.");
        } else if !INERT.contains(&name) {
            return refuse(Kind::InvalidAttributeName, format!("Unknown Attribute {name}."));
        }
        if value.is_empty() {
            self.given.remove(name);
        } else {
            self.given.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// Every attribute as `GetQueueAttributes` shows it.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        let numbers = self.numbers.iter().map(|(name, n)| ((*name).to_owned(), n.to_string()));
        numbers.chain(self.given.clone()).collect()
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or_default()
    }

    pub(super) fn visibility_seconds(&self) -> u64 {
        self.number("VisibilityTimeout")
    }

    pub(super) fn delay_seconds(&self) -> u64 {
        self.number("DelaySeconds")
    }

    pub(super) fn wait_seconds(&self) -> u64 {
        self.number("ReceiveMessageWaitTimeSeconds")
    }

    pub(super) fn retention(&self) -> Millis {
        self.number("MessageRetentionPeriod") * 1000
    }

    pub(super) fn largest_message(&self) -> usize {
        usize::try_from(self.number("MaximumMessageSize")).unwrap_or(usize::MAX)
    }
}

fn invalid<T>(name: &str) -> Answer<T> {
    refuse(Kind::InvalidAttributeValue, format!("Invalid value for the parameter {name}."))
}

/// An empty policy takes it away, as in the service.
fn redrive(value: &str) -> Answer<Option<Redrive>> {
    if value.is_empty() {
        return Ok(None);
    }
    let Ok(policy) = serde_json::from_str::<Value>(value) else { return invalid("RedrivePolicy") };
    let target = policy.get("deadLetterTargetArn").and_then(Value::as_str);
    let max = policy.get("maxReceiveCount").and_then(|max| match max {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    });
    let max = max.and_then(|max| u32::try_from(max).ok()).filter(|max| (1..=1000).contains(max));
    match (target, max) {
        (Some(target), Some(max_receives)) => {
            Ok(Some(Redrive { target_arn: target.to_owned(), max_receives }))
        }
        _ => invalid("RedrivePolicy"),
    }
}
