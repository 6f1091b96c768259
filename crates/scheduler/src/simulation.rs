//! The rules of turns in made-up time, without files, devices or tasks.

mod account;
mod bounds;
mod foreign;
mod places;

use super::call_queues::{CallEnd, CallQueues, QueueRefusal};
use super::plan::{
    self, DeviceMemory, IdleModel, MemoryDevice, MemoryNeed, ModelDemand, ModelTurn,
    SchedulingRules,
};

const RULES: SchedulingRules = SchedulingRules {
    margin_mib: 0,
    quantum_ms: 30_000,
    overdue_ms: 120_000,
    calls_at_once: 1,
    max_queue_depth: 500,
};

/// One process, and the devices it sees.
struct World {
    queues: CallQueues,
    reading: DeviceMemory,
    now_ms: u64,
    tickets: u64,
}

impl World {
    fn new(rules: SchedulingRules, devices: &[(u64, u64)], models: &[(&str, MemoryNeed)]) -> Self {
        let devices = devices
            .iter()
            .enumerate()
            .map(|(index, (total_mib, free_mib)): (usize, &(u64, u64))| MemoryDevice {
                name: format!("d{index}"),
                total_mib: *total_mib,
                free_mib: *free_mib,
            })
            .collect();
        let models = models.iter().map(|(name, need)| ((*name).to_owned(), *need));
        Self {
            queues: CallQueues::new(rules, models),
            reading: DeviceMemory { devices, at_ms: 0 },
            now_ms: 1,
            tickets: 0,
        }
    }

    /// A device of so many MiB, all free, and models with budgets.
    fn of(mib: u64, models: &[(&str, u64)]) -> Self {
        let models: Vec<_> =
            models.iter().map(|(name, mib)| (*name, MemoryNeed::Mib(*mib))).collect();
        Self::new(RULES, &[(mib, mib)], &models)
    }

    fn join(&mut self, model: &str, count: usize) {
        for _ in 0..count {
            self.tickets += 1;
            self.queues.join(model, self.tickets, self.now_ms).unwrap();
        }
    }

    /// Looks, with a reading of this moment; returns the models that were let in.
    fn look(&mut self) -> Vec<String> {
        self.look_beside(&[])
    }

    fn look_beside(&mut self, others: &[ModelDemand]) -> Vec<String> {
        self.reading.at_ms = self.now_ms;
        self.tick_beside(others)
    }

    /// Looks, with the reading of before.
    fn look_again(&mut self) -> Vec<String> {
        self.tick_beside(&[])
    }

    fn tick_beside(&mut self, others: &[ModelDemand]) -> Vec<String> {
        let let_in = self.queues.tick(self.now_ms, &self.reading, others);
        let_in.into_iter().map(|(model, _)| model).collect()
    }

    fn finish(&mut self, model: &str) {
        self.finish_as(model, CallEnd::Answered);
    }

    fn finish_as(&mut self, model: &str, end: CallEnd) {
        self.queues.finish_call(model, self.now_ms, self.now_ms, end);
        self.now_ms += 1;
    }

    fn post(&self, model: &str) -> ModelDemand {
        self.queues.model_demands().into_iter().find(|post| post.model == model).unwrap()
    }

    fn held(&self) -> u64 {
        let posts = self.queues.model_demands();
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
fn ten_seconds_of_waiting_weigh_as_much_as_one_more_call() {
    for (waited_ms, first) in [(5_000, "research"), (15_000, "letters")] {
        let mut world = World::of(3_000, &[("letters", 2_500), ("research", 2_500)]);
        world.join("letters", 1);
        world.now_ms += waited_ms;
        world.join("research", 2);
        assert_eq!(world.look(), [first], "after {waited_ms} ms");
    }
}

#[test]
fn within_a_model_calls_go_in_the_order_they_came() {
    let mut world = World::of(3_000, &[("a", 2_500)]);
    world.join("a", 3);
    let mut tickets = Vec::new();
    for _ in 0..3 {
        tickets.extend(world.queues.tick(world.now_ms, &world.reading, &[]));
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
    assert_eq!((world.held(), world.queues.is_idle()), (0, true));
}

#[test]
fn one_model_asked_for_in_many_ways_is_held_once() {
    let rules = SchedulingRules { calls_at_once: 3, ..RULES };
    let mut world = World::new(rules, &[(3_000, 3_000)], &[("a", MemoryNeed::Mib(2_500))]);
    world.join("a", 5);
    assert_eq!(world.look().len(), 3);
    assert_eq!(world.held(), 2_500);
}

#[test]
fn a_full_queue_takes_no_call_and_stays_unchanged() {
    let rules = SchedulingRules { max_queue_depth: 2, ..RULES };
    let mut world = World::new(rules, &[(1, 1)], &[("a", MemoryNeed::Mib(5))]);
    world.join("a", 2);
    assert_eq!(world.queues.join("a", 9, 1), Err(QueueRefusal::Full));
    assert_eq!(world.queues.join("b", 9, 1), Err(QueueRefusal::Unknown));
    assert_eq!(world.post("a").waiting, 2);
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
    assert_eq!(two.look_beside(&one.queues.model_demands()), ["a"], "loaded by the other process");
    let all = [one.queues.model_demands(), two.queues.model_demands()].concat();
    assert_eq!(plan::held_mib("d0", &all), 3_000);
    // b of the second process waits for longest: the first must not begin with a again.
    for world in [&mut one, &mut two] {
        world.finish("a");
    }
    one.join("a", 1);
    for world in [&mut one, &mut two] {
        world.now_ms = 130_000;
    }
    let posts = two.queues.model_demands();
    assert_eq!(one.look_beside(&posts), Vec::<String>::new());
    assert_eq!(two.look_beside(&one.queues.model_demands()), ["b"]);
}
