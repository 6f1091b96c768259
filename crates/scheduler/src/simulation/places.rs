//! Where a model goes, and what is really free there.

use super::*;
use docmill_core::model::LocalModelState;

#[test]
fn devices_are_filled_each_by_itself_and_not_as_one() {
    let models = [
        ("a", MemoryNeed::Mib(3_000)),
        ("b", MemoryNeed::Mib(3_000)),
        ("c", MemoryNeed::Mib(3_000)),
    ];
    let mut world = World::new(RULES, &[(4_000, 4_000), (4_000, 4_000)], &models);
    for (model, _) in models {
        world.join(model, 1);
    }
    assert_eq!(world.look().len(), 2, "6000 MiB of 8000, but no third 3000 on one device");
    let places: Vec<_> =
        ["a", "b"].map(|model| world.post(model).turn.unwrap().device).into_iter().collect();
    assert_ne!(places[0], places[1]);
}

#[test]
fn the_smallest_room_that_does_is_taken() {
    let models = [("small", MemoryNeed::Mib(2_000)), ("large", MemoryNeed::Mib(7_000))];
    let mut world = World::new(RULES, &[(8_000, 8_000), (3_000, 3_000)], &models);
    world.join("small", 2);
    world.join("large", 1);
    assert_eq!(world.look().len(), 2);
    assert_eq!(world.post("small").turn.unwrap().device, "d1");
}

#[test]
fn a_model_without_a_budget_runs_alone_on_its_device_and_leaves_the_other_alone() {
    let models = [
        ("known", MemoryNeed::Mib(1_000)),
        ("unknown", MemoryNeed::Alone),
        ("late", MemoryNeed::Mib(10)),
    ];
    let mut world = World::new(RULES, &[(8_000, 8_000), (8_000, 7_000)], &models);
    world.join("known", 2);
    world.join("unknown", 1);
    assert_eq!(world.look(), ["known", "unknown"]);
    let (known, unknown) = (world.post("known").turn.unwrap(), world.post("unknown").turn.unwrap());
    assert_ne!(known.device, unknown.device);
    world.join("late", 1);
    assert_eq!(world.look(), ["late"]);
    assert_eq!(world.post("late").turn.unwrap().device, known.device);
}

#[test]
fn memory_of_others_is_not_given_away_and_running_calls_continue() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 4_000)]);
    world.join("a", 2);
    assert_eq!(world.look(), ["a"]);
    world.reading.devices[0].free_mib = 2_000;
    world.finish("a");
    world.join("b", 1);
    assert_eq!(world.look(), ["a"], "a is loaded; b would not fit into 2000 MiB");
    world.finish("a");
    world.reading.devices[0].free_mib = 3_999;
    assert_eq!(world.look(), ["b"], "a is idle, its server lets it go for b");
    world.finish("b");
    world.look();
    // Somebody else has taken everything: b is loaded still, a is not.
    world.reading.devices[0].free_mib = 0;
    world.join("a", 1);
    world.join("b", 1);
    assert_eq!(world.look(), ["b"]);
}

#[test]
fn memory_that_is_being_loaded_into_is_not_given_away_twice() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 4_000)]);
    world.reading.devices[0].free_mib = 7_000;
    world.join("a", 1);
    assert_eq!(world.look(), ["a"]);
    world.join("b", 1);
    assert_eq!(world.look(), Vec::<String>::new(), "7000 are free, 4000 of them as good as gone");
    world.finish("a");
    // The last reading is older than the load: b goes in because a can be let go, not beside it.
    let let_in = world.queues.tick(world.now_ms, &world.reading, &[]);
    assert_eq!(let_in.len(), 1);
    assert!(world.post("b").turn.unwrap().evicts);
    world.finish("b");
    world.look();
    assert!(world.post("a").idle.is_none());
}

#[test]
fn a_model_that_its_server_has_let_go_does_not_count_as_loaded() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 9_000)]);
    world.reading.devices[0].free_mib = 9_000;
    world.join("b", 1);
    world.look();
    world.finish("b");
    for free_mib in [0, 9_000] {
        world.reading.devices[0].free_mib = free_mib;
        world.look();
    }
    world.join("a", 1);
    world.look();
    world.finish("a");
    world.reading.devices[0].free_mib = 5_000;
    world.look();
    assert!(world.post("a").idle.is_some());
    world.reading.devices[0].free_mib = 8_000;
    world.join("b", 1);
    assert_eq!(world.look(), Vec::<String>::new(), "8000 are free and nothing would be let go");
    assert!(world.post("a").idle.is_none());
}

#[test]
fn a_model_that_takes_the_memory_of_idle_ones_does_so_on_its_device_alone() {
    for (device, is_idle) in [("d1", true), ("d0", false)] {
        let models = [("a", MemoryNeed::Mib(4_000)), ("b", MemoryNeed::Mib(4_000))];
        let mut world = World::new(RULES, &[(5_000, 5_000), (9_000, 9_000)], &models);
        world.join("a", 1);
        world.look();
        world.finish("a");
        world.reading.devices[0].free_mib = 1_000;
        world.look();
        assert_eq!(world.post("a").idle.unwrap().device, "d0");
        let mut other = world.post("b");
        other.turn = Some(ModelTurn {
            device: device.to_owned(),
            began_ms: world.now_ms,
            loaded_ms: None,
            evicts: true,
        });
        world.look_beside(&[other]);
        assert_eq!(world.post("a").idle.is_some(), is_idle, "{device}");
    }
}

#[test]
fn models_that_only_others_wait_for_are_begun_by_them_and_loaded_ones_are_shared() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 4_000)]);
    let mut other = world.post("b");
    (other.waiting, other.oldest_ms) = (1, Some(1));
    world.join("a", 1);
    assert_eq!(world.look_beside(std::slice::from_ref(&other)), ["a"]);
    assert_eq!(world.post("b").turn, None, "nobody waits for it here");

    let turn = ModelTurn { device: "d0".into(), began_ms: 1, loaded_ms: Some(1), evicts: true };
    other.turn = Some(turn.clone());
    world.join("b", 1);
    assert_eq!(world.look_beside(&[other]), ["b"]);
    let shared = ModelTurn { evicts: false, ..turn };
    assert_eq!(world.post("b").turn, Some(shared), "the other one made room for it");
}

#[test]
fn free_memory_beside_an_idle_model_is_less_than_an_earlier_reading_shows() {
    for is_read_again in [false, true] {
        let mut world = World::of(10_000, &[("a", 4_000)]);
        world.reading.devices[0].free_mib = 9_000;
        world.join("a", 1);
        world.look();
        world.finish("a");
        if is_read_again {
            world.reading.devices[0].free_mib = 5_000;
            world.look();
        } else {
            world.queues.tick(world.now_ms, &world.reading, &[]);
        }
        assert_eq!(world.post("a").idle.unwrap().free_mib, 5_000);
    }
}

#[test]
fn a_model_is_waited_for_loading_loaded_and_idle_one_after_the_other() {
    let mut world = World::of(10_000, &[("a", 4_000)]);
    let state = |world: &World| {
        let post = world.post("a");
        (post.state(), post.device().map(str::to_owned))
    };
    let there = Some("d0".to_owned());
    assert_eq!(state(&world), (LocalModelState::Absent, None));
    world.join("a", 2);
    assert_eq!(state(&world), (LocalModelState::Waiting, None));
    world.look();
    assert_eq!(state(&world), (LocalModelState::Loading, there.clone()));
    world.finish("a");
    world.look();
    assert_eq!(state(&world), (LocalModelState::Loaded, there.clone()));
    world.finish("a");
    world.look();
    assert_eq!(state(&world), (LocalModelState::Idle, there.clone()));
    world.join("a", 1);
    assert_eq!(state(&world), (LocalModelState::Waiting, there));
}

#[test]
fn memory_loaded_after_a_reading_is_subtracted_only_once() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 4_000)]);
    world.join("a", 2);
    world.look();
    world.finish("a");
    world.reading.devices[0].free_mib = 6_000;
    world.join("b", 1);
    assert_eq!(world.look(), ["a", "b"]);
    assert!(!world.post("b").turn.unwrap().evicts, "there is room beside");
}

#[test]
fn an_idle_model_is_loaded_until_half_of_its_memory_has_come_free() {
    let idle = IdleModel { device: "d0".into(), since_ms: 5, free_mib: 3_000 };
    for (at_ms, free_mib, need, expected) in [
        (6, 4_999, MemoryNeed::Mib(4_000), true),
        (6, 5_000, MemoryNeed::Mib(4_000), false),
        // A reading from before it was loaded cannot know.
        (5, 9_000, MemoryNeed::Mib(4_000), true),
        // Of the 6000 that were in use.
        (6, 5_999, MemoryNeed::Alone, true),
        (6, 6_000, MemoryNeed::Alone, false),
    ] {
        let device = MemoryDevice { name: "d0".into(), total_mib: 9_000, free_mib };
        let reading = DeviceMemory { devices: vec![device], at_ms };
        let loaded = plan::is_still_loaded(&idle, need, &reading);
        assert_eq!(loaded, expected, "{free_mib} free at {at_ms}");
    }
}

#[test]
fn an_overdue_model_reserves_no_device_that_it_could_never_run_on() {
    let models = [("busy", 8_000), ("large", 9_000), ("small", 2_000)]
        .map(|(name, mib)| (name, MemoryNeed::Mib(mib)));
    let mut world = World::new(RULES, &[(10_000, 10_000), (3_000, 3_000)], &models);
    world.join("busy", 1);
    assert_eq!(world.look(), ["busy"]);
    world.join("large", 1);
    world.now_ms += RULES.overdue_ms;
    world.join("small", 2);
    assert_eq!(world.look(), ["small"]);
    assert_eq!(world.post("small").turn.unwrap().device, "d1");
    world.now_ms += RULES.quantum_ms;
    world.finish("small");
    assert_eq!(world.look(), ["small"], "nor does its turn end for that one");
}

#[test]
fn of_two_models_that_come_together_one_begins_where_both_would_not_fit() {
    let mut world = World::of(10_000, &[("a", 4_000), ("b", 4_000)]);
    world.reading.devices[0].free_mib = 7_000;
    world.join("a", 1);
    world.join("b", 1);
    assert_eq!(world.look().len(), 1);
}

#[test]
fn a_model_goes_where_it_is_loaded_and_not_into_a_smaller_room() {
    let models = [("a", MemoryNeed::Mib(4_000)), ("b", MemoryNeed::Mib(4_500))];
    let mut world = World::new(RULES, &[(5_000, 5_000), (6_000, 6_000)], &models);
    world.join("b", 2);
    world.join("a", 1);
    assert_eq!(world.look().len(), 2);
    for model in ["a", "b"] {
        world.queues.leave(model, 2);
        world.finish(model);
    }
    (world.reading.devices[0].free_mib, world.reading.devices[1].free_mib) = (500, 2_000);
    world.look();
    world.join("a", 1);
    assert_eq!(world.look(), ["a"]);
    assert_eq!(world.post("a").turn.unwrap().device, "d1", "the smaller one would do as well");
}

#[test]
fn a_model_without_a_budget_runs_regardless_of_free_memory() {
    let mut world = World::new(RULES, &[(8_000, 0)], &[("unknown", MemoryNeed::Alone)]);
    world.join("unknown", 1);
    assert_eq!(world.look(), ["unknown"]);
}

#[test]
fn a_turn_of_several_processes_begins_and_is_loaded_with_the_first() {
    let world = World::of(10_000, &[("a", 4_000)]);
    let with = |began_ms, loaded_ms, evicts| {
        let turn = ModelTurn { device: "d0".into(), began_ms, loaded_ms, evicts };
        ModelDemand { turn: Some(turn), ..world.post("a") }
    };
    for (one, two, expected) in [
        (with(5, Some(9), false), with(3, Some(7), true), (3, Some(7), true)),
        (with(3, None, true), with(5, Some(7), false), (3, Some(7), true)),
        (with(3, None, false), with(5, None, false), (3, None, false)),
    ] {
        for posts in [[one.clone(), two.clone()], [two, one]] {
            let turn = plan::find_turn("a", &posts, &world.reading).unwrap();
            assert_eq!((turn.began_ms, turn.loaded_ms, turn.evicts), expected);
        }
    }
}
