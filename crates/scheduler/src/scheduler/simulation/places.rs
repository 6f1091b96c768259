//! Where a model goes, and what is really free there.

use super::*;

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
fn what_others_use_is_not_given_away_and_running_calls_go_on() {
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
