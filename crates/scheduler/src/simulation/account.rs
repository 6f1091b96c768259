//! Exactness over random operations of two processes.

use std::collections::BTreeSet;

use super::*;

/// One random step of a process.
fn random_step(world: &mut World, running: &mut Vec<(String, u64)>, random: &mut fastrand::Rng) {
    const MODELS: [&str; 4] = ["a", "b", "c", "d"];
    let model = random.choice(MODELS).unwrap();
    world.now_ms += random.u64(0..2_000);
    match random.u8(0..10) {
        0..=3 => {
            world.tickets += 1;
            // A full queue is one of the things that happen.
            let _full = world.queues.join(model, world.tickets, world.now_ms);
        }
        4 => world.queues.leave(model, random.u64(0..=world.tickets)),
        5..=7 if !running.is_empty() => {
            let (over, since_ms) = running.swap_remove(random.usize(0..running.len()));
            let ends = [CallEnd::Answered, CallEnd::Failed, CallEnd::Abandoned];
            let end = random.choice(ends).unwrap();
            world.queues.finish_call(&over, since_ms, world.now_ms, end);
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
    let rules = SchedulingRules { margin_mib: 100, calls_at_once: 2, max_queue_depth: 20, ..RULES };
    let models = [
        ("a", MemoryNeed::Mib(2_500)),
        ("b", MemoryNeed::Mib(5_000)),
        ("c", MemoryNeed::Mib(3_900)),
        ("d", MemoryNeed::Alone),
    ];
    let devices = [(8_000, 8_000), (4_000, 4_000)];
    let mut worlds = [(); 2].map(|()| World::new(rules, &devices, &models));
    let mut running = [Vec::new(), Vec::new()];
    let mut random = fastrand::Rng::with_seed(7);
    let (mut turns, mut most) = (0_u32, 0);
    for step in 0..100_000 {
        let at = random.usize(0..2);
        let others = worlds[1 - at].queues.model_demands();
        let (world, running) = (&mut worlds[at], &mut running[at]);
        random_step(world, running, &mut random);
        world.reading.at_ms = world.reading.at_ms.max(world.now_ms.saturating_sub(10_000));
        let let_in = world.queues.tick(world.now_ms, &world.reading.clone(), &others);
        turns += u32::from(!let_in.is_empty());
        running.extend(let_in.into_iter().map(|(model, _)| (model, world.now_ms)));
        let own = world.queues.model_demands();
        for post in &own {
            let count = running.iter().filter(|(model, _)| *model == post.model).count();
            assert_eq!(count, post.running as usize, "step {step}: {post:?}");
            assert!(post.running == 0 || post.turn.is_some(), "step {step}: {post:?}");
        }
        let all = [own, others].concat();
        for (name, total) in [("d0", 8_000), ("d1", 4_000)] {
            let held = plan::held_mib(name, &all);
            most = most.max(held);
            assert!(held + 100 <= total, "step {step}: {held} MiB held of {name}");
            let on_it: BTreeSet<&str> = all
                .iter()
                .filter(|post| post.turn.as_ref().is_some_and(|turn| turn.device == name))
                .map(|post| post.model.as_str())
                .collect();
            assert!(!on_it.contains("d") || on_it.len() == 1, "step {step}: {on_it:?}");
        }
    }
    assert!(turns > 10_000 && most == 7_500, "{turns} turns, {most} MiB at most: too tame");
    for (world, running) in worlds.iter_mut().zip(&mut running) {
        (0..=world.tickets).for_each(|it| models.iter().for_each(|m| world.queues.leave(m.0, it)));
        let now_ms = world.now_ms;
        running.drain(..).for_each(|(model, since)| {
            world.queues.finish_call(&model, since, now_ms, CallEnd::Answered)
        });
        world.look();
        assert_eq!((world.held(), world.queues.is_idle()), (0, true));
    }
}
