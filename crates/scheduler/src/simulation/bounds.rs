//! How long a call can be kept waiting.

use std::collections::BTreeMap;

use super::*;

/// Calls of one length, one at a time, over a queue of `a` that never ends, with room for one
/// model: the longest wait of a call of the rare models.
fn longest_wait_of_the_rare(rare: &[&'static str], call_ms: u64) -> u64 {
    let models = std::iter::once("a").chain(rare.iter().copied());
    let budgets: Vec<_> = models.map(|model| (model, 2_500)).collect();
    let mut world = World::of(3_000, &budgets);
    let mut random = fastrand::Rng::with_seed(call_ms);
    let mut running: Option<(String, u64)> = None;
    // When a rare model's call came, or else when its next one comes.
    let mut calls: BTreeMap<&str, (Option<u64>, u64)> =
        rare.iter().map(|model| (*model, (None, 5_000))).collect();
    let mut longest = 0;
    while world.now_ms < 3 * 3_600_000 {
        while world.post("a").waiting < 20 {
            world.join("a", 1);
        }
        for (model, (since, next)) in &mut calls {
            if since.is_none() && world.now_ms >= *next {
                world.join(model, 1);
                *since = Some(world.now_ms);
            }
        }
        if let Some((model, since)) = running.take_if(|(_, since)| *since + call_ms <= world.now_ms)
        {
            world.queues.finish_call(&model, since, world.now_ms, CallEnd::Answered);
        }
        for model in world.look() {
            if let Some((since, next)) = calls.get_mut(model.as_str()) {
                longest = longest.max(world.now_ms - since.take().unwrap());
                *next = world.now_ms + random.u64(0..200_000);
            }
            running = Some((model, world.now_ms));
        }
        world.now_ms += 100;
    }
    longest
}

#[test]
fn nobody_waits_longer_than_the_age_bound_and_a_quantum() {
    for call_ms in [200, 1_000, 5_000, 29_000] {
        let longest = longest_wait_of_the_rare(&["b"], call_ms);
        assert!(longest > 100_000, "{longest} ms: the test does not starve anybody");
        let bound = RULES.overdue_ms + RULES.quantum_ms;
        assert!(longest < bound, "calls of {call_ms} ms: {longest} ms");
    }
}

#[test]
fn of_several_overdue_models_each_waits_a_quantum_longer_at_most() {
    let longest = longest_wait_of_the_rare(&["b", "c", "d"], 5_000);
    assert!(longest < RULES.overdue_ms + 3 * RULES.quantum_ms, "{longest} ms");
}

#[test]
fn a_call_longer_than_the_quantum_is_made_all_the_same_and_alone() {
    let call_ms = 50_000;
    let longest = longest_wait_of_the_rare(&["b"], call_ms);
    assert!(longest <= RULES.overdue_ms + call_ms, "{longest} ms");
}

/// Lets a call in that takes so long.
fn call(world: &mut World, model: &str, took_ms: u64) {
    assert_eq!(world.look(), [model]);
    let since = world.now_ms;
    world.now_ms += took_ms;
    world.queues.finish_call(model, since, world.now_ms, CallEnd::Answered);
}

#[test]
fn loading_a_model_is_not_taken_for_the_length_of_its_calls() {
    let mut world = World::of(3_000, &[("a", 2_500), ("b", 2_500)]);
    world.join("a", 9);
    world.join("b", 1);
    call(&mut world, "a", 17_000);
    let began = |world: &World| world.post("a").turn.unwrap().began_ms;
    let first = began(&world);
    assert_eq!(world.post("a").longest_ms, 0);
    call(&mut world, "a", 4_000);
    call(&mut world, "a", 1_000);
    assert_eq!(world.post("a").longest_ms, 4_000);
    // 22 s of 30 are over: one more of 4 s fits, a second does not.
    call(&mut world, "a", 4_000);
    assert_eq!(began(&world), first);
    world.look();
    assert_ne!(began(&world), first, "another turn");
}

#[test]
fn the_longest_of_the_last_32_calls_counts_and_older_ones_do_not() {
    let mut world = World::of(3_000, &[("a", 2_500)]);
    world.join("a", 40);
    call(&mut world, "a", 20_000);
    call(&mut world, "a", 9_000);
    (0..31).for_each(|_| call(&mut world, "a", 10));
    assert_eq!(world.post("a").longest_ms, 9_000);
    call(&mut world, "a", 10);
    assert_eq!(world.post("a").longest_ms, 10);
}

#[test]
fn an_overdue_large_model_is_not_kept_out_by_small_ones() {
    let mut world = World::of(10_000, &[("large", 9_000), ("one", 3_000), ("two", 3_000)]);
    let mut running: BTreeMap<String, u64> = BTreeMap::new();
    world.join("one", 1);
    running.extend(world.look().into_iter().map(|model| (model, 700)));
    world.join("large", 1);
    while world.now_ms < 300_000 && !running.contains_key("large") {
        for model in ["one", "two"] {
            while world.post(model).waiting < 3 {
                world.join(model, 1);
            }
        }
        let over: Vec<String> = running
            .extract_if(.., |_, until| *until <= world.now_ms)
            .map(|(model, _)| model)
            .collect();
        over.iter().for_each(|model| {
            world.queues.finish_call(model, world.now_ms - 700, world.now_ms, CallEnd::Answered)
        });
        let until = world.now_ms + 700;
        running.extend(world.look().into_iter().map(|model| (model, until)));
        world.now_ms += 100;
    }
    assert!(running.contains_key("large"), "it never came in");
    assert!(world.now_ms <= 151_000, "{} ms", world.now_ms);
}
