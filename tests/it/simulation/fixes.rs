//! The simulation finds each removed fix (`docmill_core::regression`) by itself; all of them were first
//! found by review.

use docmill_core::regression::{FixToggle, without_fix};

use super::plan::{PlannedFault, PortCall, SchedulePlan};
use super::shrink::{self, run_guarded};
use super::world::ScheduleEnd;

/// A schedule that falls without a mend.
struct FoundSchedule {
    plan: SchedulePlan,
    end: ScheduleEnd,
}

/// Schedules that are looked at.
const SCHEDULES: u64 = 100;
/// A cut-down part of a failing schedule may fail only as a whole: this many are cut down until one
/// is small.
const CUT_SCHEDULES: usize = 5;

/// The schedules that fall without the mend.
fn falling_without(mend: FixToggle) -> impl Iterator<Item = FoundSchedule> {
    (0..SCHEDULES).filter_map(move |seed| {
        let plan = SchedulePlan::draw(seed);
        let end = without_fix(mend, || run_guarded(&plan));
        end.broken.is_err().then_some(FoundSchedule { plan, end })
    })
}

/// The first falls for this reason, and with the mend in force it does not fall.
fn assert_found(mend: FixToggle, says: &str) {
    let found = falling_without(mend).next();
    let found = found.unwrap_or_else(|| panic!("no schedule of {SCHEDULES} falls"));
    let broken = found.end.broken.clone().unwrap_err();
    eprintln!("{mend:?}: schedule {}: {broken}", found.plan.seed);
    assert!(broken.contains(says), "{broken}");
    assert_eq!(run_guarded(&found.plan).broken, Ok(()));
}

#[test]
fn with_the_clock_of_a_job_running_while_it_waits_the_simulation_finds_documents_ended_by_their_time()
 {
    assert_found(FixToggle::WaitClock, "Timeout");
}

#[test]
fn with_the_progress_of_a_stopped_job_forgotten_the_simulation_finds_documents_ended_by_their_time()
{
    assert_found(FixToggle::KeptProgress, "Timeout");
}

#[test]
fn with_refused_credentials_in_the_streak_of_deferrals_the_simulation_finds_documents_ended_by_it()
{
    assert_found(FixToggle::DenialStreak, "deferred too long");
}

#[test]
fn without_separate_handling_of_later_messages_the_simulation_finds_rows_without_a_message() {
    assert_found(FixToggle::MessageSeal, "is open without a message");
}

#[test]
fn with_messages_sent_again_because_others_came_first_the_simulation_finds_that_none_was_lost() {
    assert_found(FixToggle::ResendCount, "messages are sent again, and none is lost");
}

#[test]
fn with_bytes_kept_while_more_are_waited_for_the_simulation_finds_jobs_that_wait_for_each_other() {
    assert_found(FixToggle::BytesGivenBack, "wait for bytes that each other has");
}

#[test]
fn with_every_death_counted_the_simulation_finds_documents_convicted_for_their_neighbour() {
    assert_found(FixToggle::LoneDeaths, "convicted in company");
}

#[test]
fn with_every_failure_counted_the_simulation_finds_documents_that_pay_for_a_sick_worker() {
    assert_found(FixToggle::SharedFailures, "ended otherwise");
}

#[test]
fn with_turns_kept_by_ends_of_locked_rows_the_simulation_finds_documents_that_wait_for_them() {
    assert_found(FixToggle::StalledEnds, "waits for those that are locked");
}

#[test]
fn with_messages_hidden_whatever_becomes_of_their_lease_the_simulation_finds_documents_that_stand_still()
 {
    assert_found(FixToggle::LeaseFate, "stands still");
}

#[test]
fn with_claims_left_whose_answer_was_lost_the_simulation_finds_crashes_of_workers_that_live_and_the_few_faults_they_need()
 {
    let mend = FixToggle::ClaimRepeat;
    assert_found(mend, "lives and has crashed");
    let smallest =
        falling_without(mend).take(CUT_SCHEDULES).find_map(|FoundSchedule { plan, end }| {
            let all = plan.faults.len();
            let smallest = without_fix(mend, || shrink::shrink(plan, end));
            eprintln!("{}", smallest.describe());
            let left = smallest.plan.faults.len();
            (left <= 6 && left * 10 < all && smallest.falls > 0).then_some(smallest)
        });
    let smallest = smallest.expect("a schedule of few faults");
    let left = &smallest.plan.faults;
    assert_eq!(run_guarded(&smallest.plan).broken, Ok(()));
    let is_lost_claim =
        |fault: &PlannedFault| matches!(fault, PlannedFault::Call { call: PortCall::Claim, .. });
    assert!(left.iter().any(|(_, fault)| is_lost_claim(fault)), "{}", smallest.describe());
}
