//! What the simulation finds by itself once a mend is taken out (`docmill_core::mend`): each of these is a
//! finding that a person had made by reading.

use docmill_core::mend::{SwitchableMend, run_without};

use super::plan::SchedulePlan;
use super::shrink::{self, SmallestSchedule, run_guarded};

/// The first schedule that falls without the mend, cut down.
fn find_without(mend: SwitchableMend, within: u64) -> SmallestSchedule {
    run_without(mend, || {
        let falls = |seed| {
            let plan = SchedulePlan::draw(seed);
            let end = run_guarded(&plan);
            end.broken.is_err().then_some((plan, end))
        };
        let (plan, end) = (0..within).find_map(falls).expect("a schedule that falls");
        let found = shrink::shrink(plan, end);
        println!("{}", found.describe());
        found
    })
}

/// The same schedule with the mend in force.
fn holds_with_mend(found: &SmallestSchedule) -> bool {
    run_guarded(&found.plan).broken.is_ok()
}

#[test]
fn with_the_clock_of_a_job_running_while_it_waits_the_simulation_finds_documents_ended_by_their_time()
 {
    let found = find_without(SwitchableMend::WaitClock, 100);
    assert!(found.broken.contains("Timeout"), "{}", found.broken);
    assert!(holds_with_mend(&found));
}

#[test]
fn with_refused_credentials_in_the_streak_of_deferrals_the_simulation_finds_documents_ended_by_it()
{
    let found = find_without(SwitchableMend::DenialStreak, 100);
    assert!(found.broken.contains("deferred too long"), "{}", found.broken);
    assert!(holds_with_mend(&found));
}

#[test]
fn with_claims_left_whose_answer_was_lost_the_simulation_finds_crashes_of_workers_that_live() {
    let found = find_without(SwitchableMend::ClaimRepeat, 100);
    assert!(found.broken.contains("lives and has crashed"), "{}", found.broken);
    assert!(found.plan.faults.len() <= 3 && found.falls > 0, "{}", found.describe());
    assert!(holds_with_mend(&found));
}

#[test]
fn with_the_progress_of_a_stopped_job_forgotten_the_simulation_finds_documents_ended_by_their_time()
{
    let found = find_without(SwitchableMend::KeptProgress, 100);
    assert!(found.broken.contains("Timeout"), "{}", found.broken);
    assert!(holds_with_mend(&found));
}
