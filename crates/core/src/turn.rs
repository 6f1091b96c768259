//! A job's turn at a provider that it shares with other jobs.
//!
//! Jobs of different tenants and priorities take turns; among those of one tenant and priority the
//! oldest comes first, however often it was put off. A job runs within its [`JobTurn`]
//! ([`with_turn`]); those who serve jobs in order read it ([`current_turn`]). A task that a job spawns
//! has none.

use std::time::Duration;

use time::OffsetDateTime;

use crate::model::{IngestionId, Priority};

/// A provider that answered anybody within this time serves: a job that it puts off stands in line.
/// Longer than the slowest learned pace (a call a minute) and a local model's change of memory.
pub const SERVED_LATELY: Duration = Duration::from_secs(15 * 60);

/// No job in a line is put off for longer at once.
const MAX_PUT_OFF: Duration = Duration::from_secs(3600);

tokio::task_local! {
    /// The turn of the job that the current task works on.
    static TURN: JobTurn;
}

/// Facts that decide when a job's call comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTurn {
    /// Its ingestion.
    pub id: IngestionId,
    /// More urgent jobs get more turns.
    pub priority: Priority,
    /// The tenant, if the producer named one.
    pub tenant: Option<String>,
    /// When the ingestion was created: the older comes first.
    pub created_at: OffsetDateTime,
    /// Its age at the claim, by the ledger's clock.
    pub waited: Duration,
}

impl JobTurn {
    /// The time after which a job that is `away` from its turn comes back: half of it, since the
    /// pace may grow meanwhile. At least `least`; at most a quarter of what it has waited already
    /// (10 s if that is less), so that a wrong guess costs little of its wait, and an hour.
    pub fn put_off_time(waited: Duration, away: Duration, least: Duration) -> Duration {
        const SHORT: Duration = Duration::from_secs(10);
        (away / 2).clamp(least.min(SHORT), (waited / 4).clamp(SHORT, MAX_PUT_OFF))
    }
}

/// Does a job's work within its turn.
pub async fn with_turn<F: Future>(turn: JobTurn, work: F) -> F::Output {
    TURN.scope(turn, work).await
}

/// The turn of the job that the current task works on; `None`: no job's.
pub fn current_turn() -> Option<JobTurn> {
    TURN.try_with(Clone::clone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_after_half_of_its_wait_and_a_quarter_of_its_age_at_most() {
        let s = Duration::from_secs;
        #[rustfmt::skip]
        let table = [
            // name                                   waited    away        back after
            ("its turn is here",                      0,        0,          1),
            ("half of a short wait",                  0,        12,         6),
            ("a young job far back",                  0,        5_000,      10),
            ("a quarter of its age",                  400,      5_000,      100),
            ("half of its wait if that is less",      4_000,    300,        150),
            ("an hour, however old",                  700_000,  700_000,    3_600),
        ];
        for (name, waited, away, back) in table {
            assert_eq!(JobTurn::put_off_time(s(waited), s(away), s(1)), s(back), "{name}");
        }
    }

    #[tokio::test]
    async fn a_job_sees_its_own_turn_and_nobody_else_does() {
        let turn = JobTurn {
            id: IngestionId(uuid::Uuid::nil()),
            priority: Priority::High,
            tenant: Some("a".to_owned()),
            created_at: OffsetDateTime::UNIX_EPOCH,
            waited: Duration::ZERO,
        };
        assert_eq!(current_turn(), None);
        let seen = with_turn(turn.clone(), async { current_turn() }).await;
        assert_eq!((seen, current_turn()), (Some(turn), None));
    }
}
