//! Both leases of what is in flight: the row's, of every running job, and the queue's, of every
//! message from the moment of its receipt.
//!
//! The row decides: only its answer "no such claim" is a loss. A receipt that is no longer good
//! changes nothing. The runner says when.

use std::time::{Duration, Instant};

use crate::runner::{DueRenewal, LeaseTerms, RenewalResult};
use crate::worker::registry::MessageRegistry;
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::retry::with_deadline;
use docmill_ledger::ledger::{Ledger, WriteResult};
use docmill_queue::queue::{MessageQueue, ReceiptHandle};

/// Renews claims, all in one statement.
pub async fn renew_rows<J>(
    ledger: &dyn Ledger,
    due: &[DueRenewal<J>],
    terms: LeaseTerms,
) -> Vec<RenewalResult> {
    let claims: Vec<_> = due.iter().map(|due| (due.claim.id, due.claim.token)).collect();
    let renewals =
        match with_deadline(terms.every, ledger.renew_leases(&claims, terms.lease), late).await {
            Ok(answers) => answers
                .into_iter()
                .map(|held| {
                    if held == WriteResult::Yes { RenewalResult::Kept } else { RenewalResult::Lost }
                })
                .collect(),
            Err(error) => {
                let count = claims.len();
                tracing::warn!(error = %error, claims = count, "renewing {count} claims failed");
                vec![RenewalResult::Failed; count]
            }
        };
    for DueRenewal { claim, new_stage, .. } in due {
        let Some(stage) = *new_stage else { continue };
        // Informational: a failure is seen by the next renewal anyway.
        if let Err(error) =
            with_deadline(terms.every, ledger.save_stage(claim.id, claim.token, stage), late).await
        {
            let id = claim.id;
            tracing::debug!(ingestion.id = %id, error = %error, "stage of {id} not written");
            break;
        }
    }
    renewals
}

/// Extends messages that were last hidden more than half a heartbeat ago.
pub async fn extend_messages(
    registry: &MessageRegistry,
    queue: &dyn MessageQueue,
    every: Duration,
    visibility: Duration,
) {
    let started = Instant::now();
    let Some(before) = started.checked_sub(every / 2) else { return };
    let due = registry.due_extensions(before);
    if due.receipts.is_empty() {
        return;
    }
    let receipts: Vec<ReceiptHandle> = due.receipts.iter().map(|(_, r)| r.clone()).collect();
    if let Some(oldest) = due.oldest {
        let hidden_for = started.saturating_duration_since(oldest);
        metrics::visibility_remaining(visibility.saturating_sub(hidden_for));
    }
    let answers = queue.extend_visibility(&receipts, visibility).await;
    let mut failed = 0_usize;
    for ((key, _), answer) in due.receipts.iter().zip(answers) {
        match answer {
            Ok(()) => registry.note_extended(*key, started),
            // Received again by somebody, or deleted: the row decides what that means.
            Err(error) if error.fault == Fault::Missing => registry.note_extended(*key, started),
            Err(_) => failed += 1,
        }
    }
    if failed > 0 {
        metrics::heartbeat_failure("queue");
        tracing::warn!(messages = failed, "extending {failed} messages failed");
    }
}

/// What is said of a ledger that does not answer before the next beat.
fn late() -> fault::Error {
    fault::Error::transient("no answer within one heartbeat")
}
