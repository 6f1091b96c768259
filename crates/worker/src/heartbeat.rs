//! Renews both leases: the row's, for every running job, and the message's, from its receipt on.
//!
//! The row decides: only its answer "no such claim" is a loss. An expired receipt changes nothing.
//! The runner schedules both, so that neither waits for the other.

use std::time::Duration;

use tokio::time::Instant;

use crate::registry::{DueExtension, MessageRegistry};
use crate::runner::{DueRenewal, LeaseTerms, RenewalResult};
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::retry::with_deadline;
use docmill_ledger::{LeaseRenewal, LeaseStatus, Ledger};
use docmill_pipeline::failpoint::{FailureSeam, guard_batch, guard_call};
use docmill_queue::{MessageQueue, ReceiptHandle};

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
    LeaseRenewal { id: due.claim.id, token: due.claim.token, new_stage: due.new_stage }
}

fn renewal_result(held: LeaseStatus) -> RenewalResult {
    match held {
        LeaseStatus::Renewed => RenewalResult::Kept,
        LeaseStatus::Lost => RenewalResult::Lost,
        LeaseStatus::Locked => RenewalResult::Failed,
    }
}

/// Extends messages that were last hidden more than half a heartbeat ago, oldest first, for at most
/// one heartbeat. The rest comes first in the next.
pub async fn extend_messages(
    registry: &MessageRegistry,
    queue: &dyn MessageQueue,
    every: Duration,
    visibility: Duration,
) {
    let started = Instant::now();
    let Some(before) = started.checked_sub(every / 2) else { return };
    let due = registry.due_extensions(before.into_std());
    let Some(oldest) = due.first() else { return };
    let hidden_for = started.into_std().saturating_duration_since(oldest.renewed);
    metrics::visibility_remaining(visibility.saturating_sub(hidden_for));
    let mut left = due.len();
    let extending = async {
        for part in due.chunks(TOGETHER) {
            left -= extend_part(registry, queue, part, visibility).await;
        }
    };
    let _late = tokio::time::timeout(every, extending).await;
    registry.end_extensions(&due);
    if left > 0 {
        metrics::heartbeat_failure("queue");
        tracing::warn!(messages = left, "extension of {left} messages failed");
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
