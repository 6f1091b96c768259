//! `queue.acknowledge = "early"`: the message goes before the work, and what was begun is not begun
//! again.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::config::{AcknowledgeMode, Config};
use docmill_testkit::openai::{Answer, Script};
use docmill_testkit::sqs::{Action, Failure};

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

const EARLY: (&str, &str) = ("QUEUE__ACKNOWLEDGE", "early");

fn early(config: &mut Config) {
    config.queue.acknowledge = AcknowledgeMode::Early;
}

async fn messages(world: &World) -> u64 {
    let depth = world.queue.depth().await.unwrap();
    depth.ready + depth.in_flight + depth.delayed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_job_whose_message_went_first_is_not_run_again() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let model = world.llm.as_ref().unwrap();
    let id = world.submit("a.pdf", documents::invoice("E-1")).await;
    let mut first = Process::worker(&world, &[EARLY]);
    assert!(model.arrived(1, SOON).await);
    assert_eq!(messages(&world).await, 0, "deleted before the work");
    first.kill();
    // A poll of the dead that is still open would be handed the message all the same.
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
    // As the janitor would, which finds a row without a message.
    world.send(id.to_string()).await;
    let _second = Process::worker(&world, &[EARLY]);
    world.until(id, "status", "failed").await;
    world.until_empty().await;
    assert_eq!(world.column(id, "reason").await.unwrap(), "crashed");
    assert_eq!(world.attempts(id).await, ["crashed"]);
    assert_eq!(model.calls().len(), 1, "nothing was asked of the model again");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_receivers_of_one_message_one_runs() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    world.sqs.faults().duplicate(1.0);
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(world.submit("a.pdf", documents::invoice(&format!("E-2-{number}"))).await);
    }
    let workers = [world.worker_with(early).await, world.worker_with(early).await];
    for id in &ids {
        world.until(*id, "status", "completed").await;
    }
    world.sqs.faults().duplicate(0.0);
    world.pass_until(|| async { messages(&world).await == 0 }).await;
    for worker in workers {
        worker.stop().await;
    }
    for id in ids {
        assert_eq!(world.attempts(id).await.len(), 1, "{id} was run once");
    }
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_begun_while_the_message_cannot_be_deleted() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let id = world.submit("a.pdf", documents::invoice("E-3")).await;
    world.sqs.faults().fail(Action::DeleteMessageBatch, 5, Failure::ServerError);
    let worker = world.worker_with(early).await;
    until(SOON, || async { !world.attempts(id).await.is_empty() }).await;
    assert_eq!(world.attempts(id).await, ["interrupted"], "given back");
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 0);
    assert_eq!(messages(&world).await, 1, "and the message is still there");
    world.pass(Duration::from_secs(200)).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_drain_cut_short_gets_a_new_message() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let id = world.submit("a.pdf", documents::invoice("E-4")).await;
    let first = world.worker_with(early).await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(1, SOON).await);
    first.hurry().await;
    assert_eq!(messages(&world).await, 1);
    model.set(Script::always(Answer::Read));
    let second = world.worker_with(early).await;
    world.until(id, "status", "completed").await;
    second.stop().await;
    assert_eq!(world.attempts(id).await, ["interrupted", "completed"]);
}
