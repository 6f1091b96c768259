//! Memory of other programs on a device, and models that servers had loaded before the start.

use super::*;
use docmill_core::model::LocalModelState;

/// A card on which 9000 MiB are free, for a model that needs 15000 and one that needs 4000.
fn half_used() -> World {
    let mut world = World::of(24_000, &[("large", 15_000), ("small", 4_000)]);
    world.reading.devices[0].free_mib = 9_000;
    world
}

#[test]
fn a_model_loaded_before_the_start_gets_its_turn_and_counts_from_then_on() {
    let mut world = half_used();
    for _ in 0..2 {
        world.join("large", 1);
        assert_eq!(world.look(), ["large"]);
        world.finish("large");
        world.look();
        assert_eq!(world.post("large").state(), LocalModelState::Idle);
    }
    world.join("large", 1);
    world.join("small", 1);
    assert_eq!(world.look(), ["large", "small"], "beside it there is room");
}

#[test]
fn a_model_that_does_not_fit_beside_others_is_tried_once_and_again_when_it_is_overdue() {
    let mut world = half_used();
    world.join("large", 4);
    assert_eq!(world.look(), ["large"]);
    for _ in 0..2 {
        world.finish_as("large", CallEnd::Failed);
        assert_eq!(world.look(), Vec::<String>::new(), "the rest of the line would fail as well");
        world.now_ms += RULES.overdue_ms - 2;
        assert_eq!(world.look(), Vec::<String>::new());
        world.now_ms += 1;
        assert_eq!(world.look(), ["large"]);
    }
}

#[test]
fn a_model_is_tried_on_a_device_without_turns_alone() {
    let mut world = half_used();
    world.join("small", 1);
    assert_eq!(world.look(), ["small"]);
    world.join("large", 1);
    assert_eq!(world.look(), Vec::<String>::new());
    world.finish("small");
    assert_eq!(world.look(), ["large"]);
}

#[test]
fn a_model_goes_where_there_is_room_before_it_is_tried_where_there_is_none() {
    let models = [("a", MemoryNeed::Mib(4_000))];
    let mut world = World::new(RULES, &[(5_000, 0), (9_000, 9_000)], &models);
    world.join("a", 1);
    world.look();
    assert_eq!(world.post("a").turn.unwrap().device, "d1");
}

/// Twenty minutes of both models' calls, of a second each, where those of the large one end so: how
/// often each was let in, and how long the small one never was, in milliseconds.
fn share_a_half_used_card(large: CallEnd) -> (World, [u32; 2], u64) {
    let mut world = half_used();
    let mut running: Vec<(String, u64)> = Vec::new();
    let (mut let_in, mut last_ms, mut longest) = ([0; 2], 0, 0);
    while world.now_ms < 20 * 60_000 {
        for model in ["large", "small"] {
            while world.post(model).waiting < 3 {
                world.join(model, 1);
            }
        }
        let now_ms = world.now_ms;
        for (model, since) in running.extract_if(.., |(_, since)| *since + 1_000 <= now_ms) {
            let end = if model == "large" { large } else { CallEnd::Answered };
            world.queues.finish_call(&model, since, now_ms, end);
        }
        for model in world.look() {
            let_in[usize::from(model == "small")] += 1;
            if model == "small" {
                world.reading.devices[0].free_mib = 5_000;
                longest = longest.max(now_ms - std::mem::replace(&mut last_ms, now_ms));
            }
            running.push((model, now_ms));
        }
        world.now_ms += 100;
    }
    (world, let_in, longest)
}

#[test]
fn an_overdue_model_that_does_not_fit_beside_others_reserves_no_device() {
    let (world, [large, small], longest) = share_a_half_used_card(CallEnd::Failed);
    assert!((9..=11).contains(&large), "tried {large} times");
    assert!(small > 1_000 && longest < 4_000, "{small} calls, {longest} ms without");
    let shut_out: Vec<_> = world.queues.list_shut_out().iter().collect();
    assert_eq!(shut_out, [(&"large".to_owned(), &15_000)]);
}

#[test]
fn beside_a_model_that_was_loaded_before_we_came_others_go_on() {
    let (world, let_in, longest) = share_a_half_used_card(CallEnd::Answered);
    assert!(let_in.iter().all(|count| *count > 500), "{let_in:?}");
    assert!(longest < RULES.overdue_ms + RULES.quantum_ms, "{longest} ms");
    assert!(world.queues.list_shut_out().is_empty());
}

#[test]
fn the_memory_of_an_idle_model_without_a_budget_is_free_for_others() {
    let models = [("known", MemoryNeed::Mib(4_000)), ("unknown", MemoryNeed::Alone)];
    let mut world = World::new(RULES, &[(8_000, 8_000)], &models);
    for (model, free_mib) in [("known", 4_000), ("unknown", 1_000)] {
        world.join(model, 1);
        assert_eq!(world.look(), [model]);
        world.reading.devices[0].free_mib = free_mib;
        world.look();
        world.finish(model);
        world.look();
    }
    assert_eq!(world.post("known").idle, None);
    assert_eq!(world.post("unknown").state(), LocalModelState::Idle);
    world.join("known", 1);
    assert_eq!(world.look(), ["known"]);
    assert!(world.post("known").turn.unwrap().evicts);
    world.look();
    assert_eq!(world.post("unknown").idle, None);
}

#[test]
fn a_model_that_has_answered_nothing_does_not_count_as_loaded() {
    for end in [CallEnd::Failed, CallEnd::Abandoned] {
        let mut world = World::of(12_000, &[("a", 6_000), ("b", 6_000)]);
        world.reading.devices[0].free_mib = 9_000;
        world.join("a", 2);
        assert_eq!(world.look(), ["a"]);
        world.finish_as("a", end);
        world.join("b", 1);
        assert_eq!(world.look().len(), 1, "{end:?}: there is room for one");
    }
}

#[test]
fn an_old_reading_begins_no_model_and_running_calls_continue() {
    let mut world = World::of(9_000, &[("a", 4_000), ("b", 4_000)]);
    world.join("a", 3);
    assert_eq!(world.look(), ["a"]);
    world.join("b", 1);
    world.now_ms += 10_001;
    assert_eq!(world.look_again(), Vec::<String>::new());
    world.finish("a");
    assert_eq!(world.look_again(), ["a"]);
    assert_eq!(world.look(), ["b"]);
}
