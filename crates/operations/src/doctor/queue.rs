//! The queue: redrive policy, retention, permissions.

use std::time::Duration;

use humantime::format_duration;

use super::DoctorFinding;

/// Hides raise a message's receive count: fewer than this and messages that only wait die.
const MIN_RECEIVES: u32 = 50;

/// Facts that a queue reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// Receives after which a message goes to the dead-letter queue; `None`: never.
    pub receives: Option<u32>,
    /// The retention period of a message, if the service reports it.
    pub retention: Option<Duration>,
    /// The same of the dead-letter queue.
    pub dead_retention: Option<Duration>,
    /// Names of operations that we may not do.
    pub denied: Vec<&'static str>,
}

/// Every check of the queue.
pub fn check(facts: &QueueFacts) -> Vec<DoctorFinding> {
    vec![check_redrive(facts), check_retention(facts), check_permissions(facts)]
}

fn check_redrive(facts: &QueueFacts) -> DoctorFinding {
    const CHECK: &str = "queue.redrive";
    let advice = "set a redrive policy with a dead-letter queue and maxReceiveCount 1000: every \
                  hide counts as a receive, so a low count kills messages that only wait, and \
                  without a policy a message nobody can handle comes back for ever";
    match facts.receives {
        None => DoctorFinding::wrong(CHECK, "the queue has no redrive policy", advice),
        Some(count) if count < MIN_RECEIVES => {
            DoctorFinding::wrong(CHECK, format!("maxReceiveCount is {count}"), advice)
        }
        Some(count) => DoctorFinding::ok(CHECK, format!("dead-lettered after {count} receives")),
    }
}

fn check_retention(facts: &QueueFacts) -> DoctorFinding {
    const CHECK: &str = "queue.retention";
    let (Some(queue), Some(dead)) = (facts.retention, facts.dead_retention) else {
        return DoctorFinding::ok(CHECK, "the queue does not say how long it keeps messages");
    };
    let text = format!(
        "messages are kept {}, dead letters {}",
        format_duration(queue),
        format_duration(dead)
    );
    if dead < queue || (dead == queue && dead < Duration::from_secs(14 * 24 * 3600)) {
        let advice = "set MessageRetentionPeriod of the dead-letter queue to 14 days: a dead \
                      letter keeps the age it had, so it may vanish before anybody looks";
        return DoctorFinding::warn(CHECK, text, advice);
    }
    DoctorFinding::ok(CHECK, text)
}

fn check_permissions(facts: &QueueFacts) -> DoctorFinding {
    const CHECK: &str = "queue.permissions";
    if facts.denied.is_empty() {
        return DoctorFinding::ok(CHECK, "may receive, hide, delete and send");
    }
    let denied = facts.denied.join(", ");
    let advice = format!("allow {denied} on the queue to the worker's role");
    DoctorFinding::wrong(CHECK, format!("not allowed: {denied}"), advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_low_receive_count_and_a_short_lived_dead_letter_are_named() {
        let days = |days: u64| Some(Duration::from_secs(days * 24 * 3600));
        let facts = |receives, dead_retention| QueueFacts {
            receives,
            retention: days(14),
            dead_retention,
            denied: Vec::new(),
        };
        let verdicts =
            |facts: &QueueFacts| [check_redrive(facts).verdict, check_retention(facts).verdict];
        assert_eq!(verdicts(&facts(Some(1000), days(14))), [Severity::Ok, Severity::Ok]);
        assert_eq!(verdicts(&facts(Some(5), days(4))), [Severity::Wrong, Severity::Warn]);
        assert_eq!(check_redrive(&facts(None, None)).verdict, Severity::Wrong);
    }
}
