//! Closes intake for operators' pauses, and while most messages do not fit the database.

use crate::runner::{IntakeGate, PauseReason};
use docmill_core::model::ClaimedIngestion;
use docmill_ledger::{FirstProvider, OperatorPause, PauseTerms};
use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Most messages name ingestions that are not in the database.
const UNKNOWN: PauseReason = PauseReason::from_label("unknown_ingestions");
/// How long a known ingestion proves that the database is the right one.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// An operator paused everything.
const OPERATOR: PauseReason = PauseReason::from_label("operator");

/// Partial pauses, and the results of recent claims.
#[derive(Debug, Default)]
pub struct PauseTracker {
    state: Mutex<PauseState>,
}

#[derive(Debug, Default)]
struct PauseState {
    partial: Vec<OperatorPause>,
    /// Claims asked for and not known, of late.
    recent: (u32, u32),
    /// When a message last named an ingestion that is in the database.
    known: Option<Instant>,
}

impl PauseTracker {
    fn lock_state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock()
    }

    /// Takes over what operators have paused now; the gate is closed while that is everything.
    pub fn apply_pauses(&self, pauses: Vec<OperatorPause>, intake_gate: &IntakeGate) {
        let all = pauses.contains(&OperatorPause::All);
        self.lock_state().partial = pauses;
        if all { intake_gate.close(OPERATOR) } else { intake_gate.open(OPERATOR) }
    }

    /// Whether a kind, a tenant or a provider is paused: then ingestions are checked against the
    /// pauses.
    pub fn is_partly_paused(&self) -> bool {
        self.lock_state().partial.iter().any(|pause| *pause != OperatorPause::All)
    }

    /// Whether a pause holds this ingestion back, as far as is known here.
    pub fn is_paused(&self, claimed: &ClaimedIngestion, terms: &PauseTerms) -> bool {
        let kind = claimed.kind.as_deref();
        let is_first = |name: &str| {
            let of_kind = |first: &&FirstProvider| first.kind == kind.unwrap_or_default();
            terms.providers.iter().filter(of_kind).any(|first| first.provider == name)
        };
        self.lock_state().partial.iter().any(|pause| match pause {
            OperatorPause::All => false,
            OperatorPause::Kind(name) => name == kind.unwrap_or(&terms.default_kind),
            OperatorPause::Tenant(name) => claimed.tenant.as_deref() == Some(name),
            OperatorPause::Provider(name) => is_first(name),
        })
    }

    /// Counts messages received for the first time. Intake closes when most of the last twenty or
    /// more named unknown ingestions, and no known one came for a while: the database is probably
    /// the wrong one. A sender of invented ids cannot stop a worker that also receives known ones.
    pub fn count_unknown(&self, asked: u32, unknown: u32, intake_gate: &IntakeGate) {
        let mut state = self.lock_state();
        if unknown < asked {
            state.known = Some(Instant::now());
        }
        let is_right = state.known.is_some_and(|known| known.elapsed() < KNOWN_FOR);
        let (total, missing) = (state.recent.0 + asked, state.recent.1 + unknown);
        if total < 20 {
            state.recent = (total, missing);
            return;
        }
        state.recent = (0, 0);
        drop(state);
        if is_right {
            intake_gate.open(UNKNOWN);
        } else if missing * 2 > total {
            tracing::error!(
                unknown = missing,
                asked = total,
                "{missing} of the last {total} messages name ingestions that are not in the \
                 database: is it the right one?"
            );
            intake_gate.close_with_backoff(UNKNOWN);
        } else {
            intake_gate.open(UNKNOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn intake_gate() -> IntakeGate {
        IntakeGate::new(Duration::from_secs(1), Duration::from_secs(60))
    }

    #[test]
    fn a_pause_of_everything_closes_intake_until_it_is_lifted_and_one_of_a_part_does_not() {
        let (pauses, intake_gate) = (PauseTracker::default(), intake_gate());
        pauses.apply_pauses(vec![OperatorPause::Kind("invoice".to_owned())], &intake_gate);
        assert!(!intake_gate.is_paused() && pauses.is_partly_paused());
        pauses.apply_pauses(vec![OperatorPause::All], &intake_gate);
        assert!(intake_gate.is_paused());
        pauses.apply_pauses(vec![], &intake_gate);
        assert!(!intake_gate.is_paused());
    }

    #[tokio::test(start_paused = true)]
    async fn messages_with_unknown_ids_pause_intake_unless_others_name_known_ones() {
        let (pauses, intake_gate) = (PauseTracker::default(), intake_gate());
        pauses.count_unknown(10, 10, &intake_gate);
        assert!(!intake_gate.is_paused(), "ten are too few to judge by");
        pauses.count_unknown(10, 10, &intake_gate);
        assert!(intake_gate.is_paused());
        pauses.count_unknown(20, 19, &intake_gate);
        assert!(!intake_gate.is_paused(), "one that is there: it is the right database");
        for _ in 0..30 {
            pauses.count_unknown(20, 20, &intake_gate);
            assert!(!intake_gate.is_paused(), "somebody sends names of nothing");
        }
        tokio::time::advance(KNOWN_FOR).await;
        pauses.count_unknown(20, 20, &intake_gate);
        assert!(intake_gate.is_paused());
    }
}
