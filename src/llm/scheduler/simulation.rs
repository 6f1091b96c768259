//! The rules of turns in made-up time, without files, devices or tasks.

use std::collections::BTreeMap;

use super::desk::{Desk, Refused};
use super::plan::{self, Device, Need, Post, Reading, Rules};

const RULES: Rules = Rules {
    margin_mib: 0,
    quantum_ms: 30_000,
    overdue_ms: 120_000,
    calls_at_once: 1,
    max_queue_depth: 500,
};

/// One process, and the devices it sees.
struct World {
    desk: Desk,
    reading: Reading,
    now_ms: u64,
    tickets: u64,
}

impl World {
    fn new(rules: Rules, devices: &[(u64, u64)], models: &[(&str, Need)]) -> Self {
        let device = |(index, (total_mib, free_mib)): (usize, &(u64, u64))| Device {
            name: format!("d{index}"),
            total_mib: *total_mib,
            free_mib: *free_mib,
        };
        let devices = devices.iter().enumerate().map(device).collect();
        let models = models.iter().map(|(name, need)| ((*name).to_owned(), *need));
        Self {
            desk: Desk::new(rules, models),
            reading: Reading { devices, at_ms: 0 },
            now_ms: 1,
            tickets: 0,
        }
    }

    /// A device of so many MiB, all free, and models with budgets.
    fn of(mib: u64, models: &[(&str, u64)]) -> Self {
        let models: Vec<_> = models.iter().map(|(name, mib)| (*name, Need::Mib(*mib))).collect();
        Self::new(RULES, &[(mib, mib)], &models)
    }

    fn join(&mut self, model: &str, count: usize) {
        for _ in 0..count {
            self.tickets += 1;
            self.desk.join(model, self.tickets, self.now_ms).unwrap();
        }
    }

    /// Looks, with a reading of this moment; returns the models that were let in.
    fn look(&mut self) -> Vec<String> {
        self.look_beside(&[])
    }

    fn look_beside(&mut self, others: &[Post]) -> Vec<String> {
        self.reading.at_ms = self.now_ms;
        let let_in = self.desk.tick(self.now_ms, &self.reading, others);
        let_in.into_iter().map(|(model, _)| model).collect()
    }

    fn finish(&mut self, model: &str) {
        self.desk.finished(model, self.now_ms);
        self.now_ms += 1;
    }

    fn post(&self, model: &str) -> Post {
        self.desk.posts().into_iter().find(|post| post.model == model).unwrap()
    }

    fn held(&self) -> u64 {
        let posts = self.desk.posts();
        self.reading.devices.iter().map(|device| plan::held_mib(&device.name, &posts)).sum()
    }
}

#[test]
fn the_deepest_line_gets_the_first_turn() {
    let mut world = World::of(3_000, &[("letters", 2_500), ("research", 2_500)]);
    world.join("letters", 1);
    world.join("research", 3);
    assert_eq!(world.look(), ["research"]);
}

#[test]
fn within_a_model_calls_go_in_the_order_they_came() {
    let mut world = World::of(3_000, &[("a", 2_500)]);
    world.join("a", 3);
    let mut tickets = Vec::new();
    for _ in 0..3 {
        tickets.extend(world.desk.tick(world.now_ms, &world.reading, &[]));
        world.finish("a");
    }
    assert_eq!(tickets.iter().map(|(_, ticket)| *ticket).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn models_that_fit_together_run_together_and_those_that_do_not_wait() {
    let budgets = [("a", 2_500), ("b", 5_000), ("c", 2_501)];
    let mut world = World::of(10_000, &budgets);
    for (model, _) in budgets {
        world.join(model, 1);
    }
    let mut let_in = world.look();
    let_in.sort();
    assert_eq!(let_in, ["a", "b"]);
    world.finish("b");
    assert_eq!(world.look(), ["c"]);
}

#[test]
fn a_call_that_comes_during_a_turn_is_served_in_it() {
    let mut world = World::of(3_000, &[("a", 2_500)]);
    world.join("a", 1);
    world.look();
    let began = world.post("a").turn.unwrap().began_ms;
    world.join("a", 1);
    world.finish("a");
    assert_eq!(world.look(), ["a"]);
    assert_eq!(world.post("a").turn.unwrap().began_ms, began);
}

#[test]
fn a_turn_ends_with_its_last_call_and_holds_nothing_then() {
    let mut world = World::of(3_000, &[("a", 2_500)]);
    world.join("a", 1);
    world.look();
    assert_eq!(world.held(), 2_500);
    world.finish("a");
    assert_eq!(world.look(), Vec::<String>::new());
    assert_eq!((world.held(), world.desk.is_idle()), (0, true));
}

#[test]
fn one_model_asked_for_in_many_ways_is_held_once() {
    let rules = Rules { calls_at_once: 3, ..RULES };
    let mut world = World::new(rules, &[(3_000, 3_000)], &[("a", Need::Mib(2_500))]);
    world.join("a", 5);
    assert_eq!(world.look().len(), 3);
    assert_eq!(world.held(), 2_500);
}

#[test]
fn the_line_over_its_limit_takes_nobody_and_stays_as_it_is() {
    let rules = Rules { max_queue_depth: 2, ..RULES };
    let mut world = World::new(rules, &[(1, 1)], &[("a", Need::Mib(5))]);
    world.join("a", 2);
    assert_eq!(world.desk.join("a", 9, 1), Err(Refused::Full));
    assert_eq!(world.desk.join("b", 9, 1), Err(Refused::Unknown));
    assert_eq!(world.post("a").waiting, 2);
}

#[test]
fn devices_are_filled_each_by_itself_and_not_as_one() {
    let models = [("a", Need::Mib(3_000)), ("b", Need::Mib(3_000)), ("c", Need::Mib(3_000))];
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
    let models = [("small", Need::Mib(2_000)), ("large", Need::Mib(7_000))];
    let mut world = World::new(RULES, &[(8_000, 8_000), (3_000, 3_000)], &models);
    world.join("small", 2);
    world.join("large", 1);
    assert_eq!(world.look().len(), 2);
    assert_eq!(world.post("small").turn.unwrap().device, "d1");
}

#[test]
fn a_model_without_a_budget_runs_alone_on_its_device_and_leaves_the_other_alone() {
    let models = [("known", Need::Mib(1_000)), ("unknown", Need::Alone), ("late", Need::Mib(10))];
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
    let let_in = world.desk.tick(world.now_ms, &world.reading, &[]);
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

#[test]
fn the_loaded_model_goes_on_before_a_line_that_is_a_little_deeper() {
    for (depth, next) in [(5, "loaded"), (20, "other")] {
        let mut world = World::of(3_000, &[("loaded", 2_500), ("other", 2_500)]);
        world.join("loaded", 1);
        world.look();
        world.finish("loaded");
        world.reading.devices[0].free_mib = 500;
        world.look();
        world.join("loaded", 1);
        world.join("other", depth);
        assert_eq!(world.look(), [next], "a line of {depth}");
    }
}

#[test]
fn a_shared_model_costs_nothing_more_and_a_foreign_one_is_left_its_room() {
    let [mut one, mut two] = [(); 2].map(|()| World::of(4_000, &[("a", 3_000), ("b", 3_000)]));
    one.join("a", 1);
    assert_eq!(one.look(), ["a"]);
    two.join("a", 1);
    two.join("b", 9);
    assert_eq!(two.look_beside(&one.desk.posts()), ["a"], "loaded by the other process");
    let all = [one.desk.posts(), two.desk.posts()].concat();
    assert_eq!(plan::held_mib("d0", &all), 3_000);
    // b of the second process waits for longest: the first must not begin with a again.
    for world in [&mut one, &mut two] {
        world.finish("a");
    }
    one.join("a", 1);
    for world in [&mut one, &mut two] {
        world.now_ms = 130_000;
    }
    let posts = two.desk.posts();
    assert_eq!(one.look_beside(&posts), Vec::<String>::new());
    assert_eq!(two.look_beside(&one.desk.posts()), ["b"]);
}

/// Two models, room for one, a line of `a` that never ends: the longest wait of a call of `b`.
fn longest_wait_of_the_rare(call_ms: u64) -> u64 {
    let mut world = World::of(3_000, &[("a", 2_500), ("b", 2_500)]);
    let mut random = fastrand::Rng::with_seed(call_ms);
    let (mut running, mut since) = (None::<(String, u64)>, None::<u64>);
    let mut longest = 0;
    let mut next_b = 5_000;
    while world.now_ms < 3 * 3_600_000 {
        while world.post("a").waiting < 20 {
            world.join("a", 1);
        }
        if since.is_none() && world.now_ms >= next_b {
            world.join("b", 1);
            since = Some(world.now_ms);
        }
        if let Some((model, _)) = running.take_if(|(_, until)| *until <= world.now_ms) {
            world.desk.finished(&model, world.now_ms);
        }
        for model in world.look() {
            if model == "b" {
                longest = longest.max(world.now_ms - since.take().unwrap());
                next_b = world.now_ms + random.u64(0..200_000);
            }
            running = Some((model, world.now_ms + call_ms));
        }
        world.now_ms += 100;
    }
    longest
}

#[test]
fn nobody_waits_longer_than_the_age_bound_and_a_quantum() {
    for call_ms in [200, 1_000, 5_000] {
        let longest = longest_wait_of_the_rare(call_ms);
        let bound = RULES.overdue_ms + RULES.quantum_ms;
        assert!(longest > 30_000, "{longest} ms: the test does not starve anybody");
        assert!(longest < bound + call_ms, "calls of {call_ms} ms: {longest} ms");
    }
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
        over.iter().for_each(|model| world.desk.finished(model, world.now_ms));
        let until = world.now_ms + 700;
        running.extend(world.look().into_iter().map(|model| (model, until)));
        world.now_ms += 100;
    }
    assert!(running.contains_key("large"), "it never came in");
    assert!(world.now_ms <= 151_000, "{} ms", world.now_ms);
}

/// What one process may do next.
fn random_step(world: &mut World, running: &mut Vec<String>, random: &mut fastrand::Rng) {
    const MODELS: [&str; 4] = ["a", "b", "c", "d"];
    let model = random.choice(MODELS).unwrap();
    world.now_ms += random.u64(0..2_000);
    match random.u8(0..10) {
        0..=3 => {
            world.tickets += 1;
            // A full line is one of the things that happen.
            let _full = world.desk.join(model, world.tickets, world.now_ms);
        }
        4 => world.desk.leave(model, random.u64(0..=world.tickets)),
        5..=7 if !running.is_empty() => {
            let over = running.swap_remove(random.usize(0..running.len()));
            world.desk.finished(&over, world.now_ms);
        }
        8 => {
            let device = random.usize(0..world.reading.devices.len());
            let device = &mut world.reading.devices[device];
            device.free_mib = random.u64(0..=device.total_mib);
            world.reading.at_ms = world.now_ms;
        }
        _ => {}
    }
}

#[test]
fn over_a_hundred_thousand_random_steps_of_two_processes_the_account_is_exact() {
    let rules = Rules { margin_mib: 100, calls_at_once: 2, max_queue_depth: 20, ..RULES };
    let models = [
        ("a", Need::Mib(2_500)),
        ("b", Need::Mib(5_000)),
        ("c", Need::Mib(3_900)),
        ("d", Need::Alone),
    ];
    let devices = [(8_000, 8_000), (4_000, 4_000)];
    let mut worlds = [(); 2].map(|()| World::new(rules, &devices, &models));
    let mut running = [Vec::new(), Vec::new()];
    let mut random = fastrand::Rng::with_seed(7);
    let (mut turns, mut most) = (0_u32, 0);
    for step in 0..100_000 {
        let at = random.usize(0..2);
        let others = worlds[1 - at].desk.posts();
        let (world, running) = (&mut worlds[at], &mut running[at]);
        random_step(world, running, &mut random);
        let let_in = world.desk.tick(world.now_ms, &world.reading.clone(), &others);
        turns += u32::from(!let_in.is_empty());
        running.extend(let_in.into_iter().map(|(model, _)| model));
        let own = world.desk.posts();
        for post in &own {
            let count = running.iter().filter(|model| **model == post.model).count();
            assert_eq!(count, post.running as usize, "step {step}: {post:?}");
            assert!(post.running == 0 || post.turn.is_some(), "step {step}: {post:?}");
        }
        let all = [own, others].concat();
        for (name, total) in [("d0", 8_000), ("d1", 4_000)] {
            let held = plan::held_mib(name, &all);
            most = most.max(held);
            assert!(held + 100 <= total, "step {step}: {held} MiB held of {name}");
            let on_it: std::collections::BTreeSet<&str> = all
                .iter()
                .filter(|post| post.turn.as_ref().is_some_and(|turn| turn.device == name))
                .map(|post| post.model.as_str())
                .collect();
            assert!(!on_it.contains("d") || on_it.len() == 1, "step {step}: {on_it:?}");
        }
    }
    assert!(turns > 10_000 && most == 7_500, "{turns} turns, {most} MiB at most: too tame");
    for (world, running) in worlds.iter_mut().zip(&mut running) {
        (0..=world.tickets).for_each(|it| models.iter().for_each(|m| world.desk.leave(m.0, it)));
        running.drain(..).for_each(|model| world.desk.finished(&model, world.now_ms));
        world.look();
        assert_eq!((world.held(), world.desk.is_idle()), (0, true));
    }
}
