//! The real worker, from intake to disposition, under schedules drawn from a seed: two workers over
//! one queue and one ledger, in memory and in paused time, with faults in every call until they
//! cease. Then everything is counted. A failing schedule is cut down to the smallest that fails.
//!
//! `SEED=… ` runs one schedule, `FAULTS`, `DOCUMENTS` and `WORKERS` select parts of it;
//! `FIRST_SEED` and `SCHEDULES` choose others. The work is a script with the pipeline's order of
//! steps (`work`); the pipeline's own steps are tested elsewhere. A seed decides every fault and
//! delay. The runtime decides the order of futures that are ready at the same moment.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[cfg(debug_assertions)]
mod fixes;
mod plan;
mod ports;
mod shrink;
mod trouble;
mod work;
mod world;

use plan::SchedulePlan;
use shrink::run_guarded;

/// Schedules in the suite, in parts that run beside each other.
const SCHEDULES: u64 = 400;
const PARTS: u64 = 8;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A part of all schedules; of one that is named only the first part has it.
fn run_part(part: u64) {
    if let Some(seed) = number("SEED") {
        if part == 0 {
            let mut plan = SchedulePlan::draw(seed);
            plan.keep_named();
            eprintln!("{plan}");
            let end = run_guarded(&plan);
            assert_eq!(end.broken, Ok(()), "schedule {seed} falls");
        }
        return;
    }
    let first = number("FIRST_SEED").unwrap_or_default();
    let size = number("SCHEDULES").unwrap_or(SCHEDULES).div_ceil(PARTS);
    for seed in (first + part * size)..(first + (part + 1) * size) {
        let plan = SchedulePlan::draw(seed);
        let end = run_guarded(&plan);
        assert!(end.broken.is_ok(), "{}", shrink::shrink(plan, end).describe());
    }
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_under_all_faults() {
    run_part(0);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_second_part() {
    run_part(1);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_third_part() {
    run_part(2);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_fourth_part() {
    run_part(3);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_fifth_part() {
    run_part(4);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_sixth_part() {
    run_part(5);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_seventh_part() {
    run_part(6);
}

#[test]
fn each_document_ends_once_and_no_message_is_lost_in_the_last_part() {
    run_part(7);
}

/// Schedules in which each of three documents makes its worker panic, and no other one is left.
const LONE_BAD_DOCUMENTS: [u64; 3] = [503_876, 510_182, 528_737];

#[test]
fn documents_that_fail_alike_end_though_none_is_left_that_could_pass() {
    for seed in LONE_BAD_DOCUMENTS {
        let plan = SchedulePlan::draw(seed);
        assert_eq!(run_guarded(&plan).broken, Ok(()), "schedule {seed}");
    }
}
