//! A busy worker on ECS is not scaled in, an idle one may be.

use std::time::Duration;

use docmill_testkit::ecs_agent::Agent;
use docmill_testkit::openai::{Answer, Script};
use docmill_worker::scale_in_protection::{self, ProtectionTiming};
use tokio_util::sync::CancellationToken;

use crate::support::documents;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_protected_while_its_worker_is_busy_and_not_a_moment_longer() {
    let agent = Agent::start().await.unwrap();
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let worker = world.worker().await;
    let pace = ProtectionTiming {
        look: Duration::from_millis(20),
        linger: Duration::from_millis(200),
        expires: Duration::from_secs(2),
    };
    let (ended, monitor) = (CancellationToken::new(), worker.monitor.clone());
    let asking = scale_in_protection::ContainerAgent::from_uri(&agent.uri()).unwrap();
    let running =
        tokio::spawn(scale_in_protection::run_protection(asking, monitor, pace, ended.clone()));
    world.submit("a.pdf", documents::invoice("E-1")).await;
    // Renewed while the job goes on, with an expiry in case the worker dies.
    until(SOON, || async { agent.requests().len() >= 2 }).await;
    assert!(
        agent.requests().iter().all(|request| *request == (true, Some(1))),
        "{:?}",
        agent.requests()
    );
    // The job is released: nothing is claimed any more.
    worker.hurry().await;
    until(SOON, || async { agent.requests().last() == Some(&(false, None)) }).await;
    ended.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_on_ecs_finds_the_agent_and_an_agent_that_refuses_costs_nothing() {
    let agent = Agent::start().await.unwrap();
    agent.refuse(1);
    let world = World::with_model(Script::always(Answer::late(Duration::from_secs(3)))).await;
    let mut command = docmill(&world, &["worker"], &[]);
    command.env("ECS_AGENT_URI", agent.uri());
    let mut worker = Process::spawn(command, "warn,docmill=info", world.logs.path());
    let id = world.submit("a.pdf", documents::invoice("E-2")).await;
    world.until(id, "status", "completed").await;
    assert!(worker.log().contains("ecs:UpdateTaskProtection"), "{}", worker.log());
    worker.terminate();
    assert!(worker.ended(Duration::from_secs(30)).await.success());
}
