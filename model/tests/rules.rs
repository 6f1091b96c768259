//! The checker's results: no violation under the product's rules, the known counterexample under
//! each rule of the earlier design and for each removed guard.

use docmill_model::checker::{Counterexample, StateGraph};
use docmill_model::neighbours::{self, Mend, NeighbourProtocol};
use docmill_model::protocol::{ClaimProtocol, EarlierRules, has_ended, has_no_orphan, property};

/// The first violated property under these rules, with this many faults and orders.
fn find_broken(rules: EarlierRules, faults: u8, orders: u8) -> Option<Counterexample> {
    let checked = ClaimProtocol { faults, orders, rules };
    let graph = StateGraph::explore(&checked);
    let found = graph.counterexample.clone();
    let found = found.or_else(|| graph.longest_way(&checked, property::ENDS, has_ended).err());
    found.or_else(|| graph.longest_way(&checked, property::IS_TAKEN_OVER, has_no_orphan).err())
}

fn assert_found(rules: EarlierRules, bounds: [u8; 2], expected: &str, step: &str) {
    let [faults, orders] = bounds;
    let Some(found) = find_broken(rules, faults, orders) else {
        panic!("nothing was found: {expected}")
    };
    assert_eq!(found.property, expected, "{:#?}", found.path);
    assert!(found.path.iter().any(|label| label == step), "{step}: {:#?}", found.path);
}

#[test]
fn our_rules_hold_for_every_fault_combined_with_every_order() {
    for (faults, orders) in [(1, 0), (0, 1), (2, 0)] {
        let found = find_broken(EarlierRules::default(), faults, orders);
        assert!(found.is_none(), "{faults} faults, {orders} orders: {found:#?}");
    }
}

#[test]
fn deleting_the_message_of_a_row_that_is_taken_loses_it() {
    let rules = EarlierRules { deletes_on_no_rows: true, ..Default::default() };
    let step = "messages are disposed of";
    assert_found(rules, [1, 0], property::DELETED_AFTER_THE_END, step);
}

#[test]
fn without_a_token_a_late_write_changes_an_ended_row() {
    let rules = EarlierRules { has_no_token: true, ..Default::default() };
    assert_found(rules, [1, 0], property::ONE_END, "a late end arrives");
}

#[test]
fn counting_attempts_when_they_end_lets_a_document_kill_workers_for_ever() {
    let rules = EarlierRules { counts_late: true, ..Default::default() };
    assert_found(rules, [0, 0], property::ENDS, "the document kills its worker");
}

#[test]
fn a_heartbeat_for_the_message_alone_lets_a_slow_job_be_taken_from_a_worker_that_is_well() {
    let rules = EarlierRules { renews_message_only: true, ..Default::default() };
    let step = "a hidden message is delivered again";
    assert_found(rules, [1, 0], property::CRASH_IS_A_CRASH, step);
}

#[test]
fn deleting_the_message_before_the_end_is_committed_is_seen_at_once() {
    let rules = EarlierRules { deletes_first: true, ..Default::default() };
    let step = "the row names the artefact";
    assert_found(rules, [0, 0], property::DELETED_AFTER_THE_END, step);
}

#[test]
fn asking_again_under_another_token_takes_a_lost_answer_for_a_crash() {
    let rules = EarlierRules { asks_under_new_token: true, ..Default::default() };
    assert_found(rules, [1, 0], property::CRASH_IS_A_CRASH, "the answer to a claim is lost");
}

#[test]
fn unconditional_writes_replace_a_newer_claims_artefacts() {
    let rules = EarlierRules { puts_blindly: true, ..Default::default() };
    assert_found(rules, [1, 0], property::ONLY_THE_HOLDER_WRITES, "a worker goes on");
}

#[test]
fn a_message_that_shares_the_fate_of_an_end_before_it_was_sent_is_lost() {
    let rules = EarlierRules { adopts_always: true, ..Default::default() };
    assert_found(rules, [0, 1], property::DELETED_AFTER_THE_END, "an operator opens it again");
}

/// The first violated property of so many documents beside each other, without a mend.
fn find_paid(documents: usize, faults: u8, without: Option<Mend>) -> Option<Counterexample> {
    let checked = NeighbourProtocol::new(documents, faults, without);
    let graph = StateGraph::explore(&checked);
    let found = graph.counterexample.clone();
    let goal = neighbours::property::ALL_END;
    found.or_else(|| graph.longest_way(&checked, goal, neighbours::has_ended).err())
}

#[test]
fn a_document_that_kills_convicts_nobody_beside_it_and_ends_by_deaths_over_it_alone() {
    let found = find_paid(2, 0, None);
    assert!(found.is_none(), "{found:#?}");
}

#[test]
fn without_a_mend_a_document_pays_for_its_surroundings() {
    use neighbours::property::{ALL_END, CONVICTED_ALONE, NO_FOREIGN_FAULT};
    #[rustfmt::skip]
    let table = [
        // mend                documents, faults  property          a step to it
        (Mend::LoneDeaths,      2, 0, CONVICTED_ALONE,  "the document kills its worker"),
        (Mend::OutcomeBreaker,  1, 1, NO_FOREIGN_FAULT, "everything fails in a worker"),
        (Mend::DeclinedStreak,  1, 1, NO_FOREIGN_FAULT, "the provider declines every call"),
        (Mend::WriterAsked,     1, 1, ALL_END,          "a failover leaves every connection at a replica"),
        (Mend::LeaseFate,       1, 1, ALL_END,          "a worker loses Postgres alone"),
        (Mend::LockedSkipped,   2, 1, ALL_END,          "a product locks a document's row"),
        (Mend::SurvivorSettled, 2, 1, NO_FOREIGN_FAULT, "a turn is over before its end is written"),
    ];
    for (mend, documents, faults, property, step) in table {
        let name = mend.name();
        let found = find_paid(documents, faults, Some(mend));
        let found = found.unwrap_or_else(|| panic!("nothing was found without {name}"));
        assert_eq!(found.property, property, "without {name}: {:#?}", found.path);
        let has_step = found.path.iter().any(|label| label == step);
        assert!(has_step, "without {name}: {:#?}", found.path);
    }
}
