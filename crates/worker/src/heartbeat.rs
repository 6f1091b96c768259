//! Renews both leases: the row's, for every running job, and the message's, from its receipt on.
//!
//! The row decides: only its answer "no such claim" is a loss. An expired receipt changes nothing.
//! The runner schedules both, so that neither waits for the other.

use std::time::{Duration, Instant as SystemInstant};

use tokio::time::Instant;

use crate::registry::{DueExtension, MessageRegistry};
use crate::runner::{DueRenewal, LeaseTerms, RenewalResult};
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::retry::with_deadline;
use docmill_ledger::{LeaseRenewal, LeaseStatus, Ledger};
use docmill_pipeline::failpoint::{FailureSeam, guard_batch, guard_call};
use docmill_queue::{MessageQueue, ReceiptHandle};

/// The queue counts in whole seconds.
const MIN_EXTENSION: Duration = Duration::from_secs(1);
/// Messages per call: a backend's batch, so that the answers of a slow queue count as they come.
const TOGETHER: usize = 80;

/// Renews claims, all in one statement, and writes their new stages on the way. One that outlives
/// its beat is given up: the next may find a better connection.
pub async fn renew_rows<J>(
    ledger: &dyn Ledger,
    due: &[DueRenewal<J>],
    terms: LeaseTerms,
) -> Vec<RenewalResult> {
    let claims: Vec<LeaseRenewal> = due.iter().map(lease_renewal).collect();
    let renewing = guard_call(FailureSeam::Lease, ledger.renew_leases(&claims, terms.lease));
    match with_deadline(terms.every, renewing, || {
        fault::Error::transient("no answer within one heartbeat")
    })
    .await
    {
        Ok(answers) => {
            let locked = answers.iter().filter(|held| **held == LeaseStatus::Locked).count();
            if locked > 0 {
                tracing::warn!(claims = locked, "{locked} claims are locked by another session");
            }
            answers.into_iter().map(renewal_result).collect()
        }
        Err(error) => {
            let count = claims.len();
            tracing::warn!(error = %error, claims = count, "renewal of {count} claims failed");
            vec![RenewalResult::Failed; count]
        }
    }
}

fn lease_renewal<J>(due: &DueRenewal<J>) -> LeaseRenewal {
    let DueRenewal { claim, new_stage, has_progress, is_over, .. } = due;
    LeaseRenewal {
        id: claim.id,
        token: claim.token,
        new_stage: *new_stage,
        has_progress: *has_progress,
        is_over: *is_over,
    }
}

fn renewal_result(held: LeaseStatus) -> RenewalResult {
    match held {
        LeaseStatus::Renewed => RenewalResult::Kept,
        LeaseStatus::Lost => RenewalResult::Lost,
        LeaseStatus::Locked => RenewalResult::Failed,
    }
}

/// Extends messages that were last hidden more than half a heartbeat ago, oldest first, for at most
/// one heartbeat. The rest comes first in the next. None is hidden for longer than the lease of its row
/// is known to live.
pub async fn extend_messages(
    registry: &MessageRegistry,
    queue: &dyn MessageQueue,
    every: Duration,
    visibility: Duration,
) {
    let started = Instant::now();
    let Some(before) = started.checked_sub(every / 2) else { return };
    report_let_go(registry.let_go_lapsed(started.into_std()));
    let due = registry.due_extensions(before.into_std());
    let Some(oldest) = due.first() else { return };
    let hidden_for = started.into_std().saturating_duration_since(oldest.renewed);
    metrics::visibility_remaining(visibility.saturating_sub(hidden_for));
    let mut left = due.len();
    let (full, short) = split_by_lease(&due, started.into_std(), visibility);
    let lease_left = short.iter().filter_map(|due| lease_left(due, started.into_std())).min();
    let extending = async {
        for part in full.chunks(TOGETHER) {
            left -= extend_part(registry, queue, part, visibility).await;
        }
        match hiding_time(lease_left, visibility) {
            Some(time) => {
                for part in short.chunks(TOGETHER) {
                    left -= extend_part(registry, queue, part, time).await;
                }
            }
            None => left -= short.len(),
        }
    };
    let _late = tokio::time::timeout(every, extending).await;
    registry.end_extensions(&due);
    if left > 0 {
        metrics::heartbeat_failure("queue");
        tracing::warn!(messages = left, "extension of {left} messages failed");
    }
}

/// For how long a message is hidden from now on: `visibility`, and no longer than the lease of its row is
/// known to live (`None`: it has none). `None`: less than the queue counts in, and it needs no call.
pub fn hiding_time(lease_left: Option<Duration>, visibility: Duration) -> Option<Duration> {
    match lease_left {
        Some(left) if left < MIN_EXTENSION => None,
        Some(left) => Some(left.min(visibility)),
        None => Some(visibility),
    }
}

fn lease_left(due: &DueExtension, now: SystemInstant) -> Option<Duration> {
    due.lease_until.map(|until| until.saturating_duration_since(now))
}

/// Those that are hidden for the whole time, and the others.
fn split_by_lease(
    due: &[DueExtension],
    now: SystemInstant,
    visibility: Duration,
) -> (Vec<DueExtension>, Vec<DueExtension>) {
    due.iter()
        .cloned()
        .partition(|due| hiding_time(lease_left(due, now), visibility) == Some(visibility))
}

fn report_let_go(messages: usize) {
    if messages > 0 {
        metrics::messages_let_go(messages);
        tracing::warn!(
            messages,
            "{messages} messages are let go: the leases of their rows could not be renewed, and others \
             may take them over"
        );
    }
}

/// Extends these messages; returns how many need no more of it.
async fn extend_part(
    registry: &MessageRegistry,
    queue: &dyn MessageQueue,
    part: &[DueExtension],
    visibility: Duration,
) -> usize {
    let asked = Instant::now();
    let receipts: Vec<ReceiptHandle> = part.iter().map(|due| due.receipt.clone()).collect();
    let extending = queue.extend_visibility(&receipts, visibility);
    let answers = guard_batch(FailureSeam::Visibility, receipts.len(), extending).await;
    let mut done = 0;
    for (due, answer) in part.iter().zip(answers) {
        // Missing: received again elsewhere, or deleted; the row decides.
        let has_failed = answer.is_err_and(|error| error.fault != Fault::Missing);
        if !has_failed {
            registry.note_extended(due.key, asked.into_std());
            done += 1;
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_hidden_no_longer_than_the_lease_of_its_row_is_known_to_live() {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        let visibility = s(80);
        for (lease_left, expected) in [
            (None, Some(s(80))),
            (Some(s(300)), Some(s(80))),
            (Some(s(80)), Some(s(80))),
            (Some(s(79)), Some(s(79))),
            (Some(s(1)), Some(s(1))),
            (Some(ms(999)), None),
            (Some(Duration::ZERO), None),
        ] {
            assert_eq!(hiding_time(lease_left, visibility), expected, "{lease_left:?}");
        }
    }
}
