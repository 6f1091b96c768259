//! Tiers of urgency from the message to the worker, and changing one's mind about them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use docmill_core::config::TierConfig;
use docmill_core::fault::Fault;
use docmill_core::model::{IngestionId, Priority};
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::dashboard;
use docmill_operations::retry::{self, IngestionAction};
use docmill_operations::sending;
use docmill_queue::OutgoingMessage;
use docmill_testkit::openai::{Answer, Script};

use crate::support::documents;
use crate::support::world::{SOON, World, sqs_queue, until};

/// The queues `high` and `low` beside the normal one.
async fn tiered(mut world: World) -> World {
    for name in [Priority::High, Priority::Low] {
        let url = world.sqs.create_queue_with_dead(name.code(), 1000).unwrap();
        world.config.queue.tiers.push(TierConfig { name, url, ..TierConfig::default() });
    }
    world.queue = Arc::new(sqs_queue(&world.config).await);
    world
}

fn by() -> AuditNote {
    AuditNote { operator: "ann".to_owned(), why: "a person waits".to_owned() }
}

async fn submit(world: &World, priority: Priority, name: &str) -> IngestionId {
    let id = world.insert("a.pdf", documents::invoice(name)).await;
    let message = OutgoingMessage { priority, ..OutgoingMessage::from_body(id.to_string()) };
    for answer in world.queue.send(&[message]).await {
        answer.unwrap();
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_6_no_more_is_received_than_there_are_slots_over_all_tiers_together() {
    let world = tiered(World::with_model(Script::always(Answer::Hang)).await).await;
    let model = world.llm.as_ref().unwrap();
    let mut ids = Vec::new();
    for number in 0..4 {
        for priority in [Priority::High, Priority::Normal, Priority::Low] {
            ids.push(submit(&world, priority, &format!("P-{priority}-{number}")).await);
        }
    }
    let worker = world.worker_with(|config| config.worker.slots = 2).await;
    assert!(model.arrived(2, SOON).await);
    // Anything else received would be in flight by the next short poll.
    for _ in 0..30 {
        let depth = world.queue.depth().await.unwrap();
        assert_eq!((depth.ready, depth.in_flight), (10, 2));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.hurry().await;
    model.set(Script::always(Answer::Read));
    let worker = world.worker_with(|config| config.worker.slots = 2).await;
    for id in ids {
        world.until(id, "status", "completed").await;
    }
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_receives_a_message_of_any_tier_at_once() {
    let world = tiered(World::new().await).await;
    let worker = world.worker_with(|config| config.queue.wait = Duration::from_secs(5)).await;
    for (number, priority) in Priority::ALL.into_iter().enumerate() {
        let id = submit(&world, priority, &format!("I-{number}")).await;
        world.until(id, "status", "completed").await;
    }
    worker.hurry().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reprioritized_ingestion_goes_to_its_tier_and_ends_once() {
    let world = tiered(World::new().await).await;
    let id = submit(&world, Priority::Low, "R-1").await;
    let db = world.database.db();
    let moved =
        retry::reprioritize_ingestions(&db, world.queue.as_ref(), &[id], Priority::High, &by())
            .await;
    assert_eq!(moved.unwrap()[0].change, IngestionAction::Moved);
    assert_eq!(world.column(id, "priority").await.unwrap(), "high");
    assert_eq!((world.sqs.depth("high").ready, world.sqs.depth("low").ready), (1, 1));
    let audit = "SELECT action || ' ' || why || ' ' || (before ->> 'priority')
                 FROM docmill.operator_action";
    assert_eq!(world.scalar(audit).await, "reprioritize a person waits normal");
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    world.pass_until(|| async { world.sqs.depth("low").ready == 0 }).await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["completed"], "the old message found it ended");
    let again =
        retry::reprioritize_ingestions(&db, world.queue.as_ref(), &[id], Priority::Low, &by())
            .await;
    assert_eq!(again.unwrap()[0].change, IngestionAction::AlreadyEnded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_again_goes_to_the_tier_and_the_group_of_its_row() {
    let world = tiered(World::new().await).await;
    let id = world.insert("a.pdf", documents::invoice("S-1")).await;
    world.execute("UPDATE docmill.ingestion SET priority = 'high', tenant = 'acme'").await;
    let unknown = IngestionId::random();
    let db = world.database.db();
    let sent = sending::send_messages(&db, world.queue.as_ref(), &[unknown, id]).await.unwrap();
    assert_eq!(sent[0].as_ref().unwrap_err().fault, Fault::Missing);
    assert!(sent[1].is_ok());
    until(SOON, || async { world.sqs.depth("high").ready == 1 }).await;
    let found = world.queue.receive(1, Duration::from_secs(1)).await.unwrap();
    assert_eq!(found[0].tenant.as_deref(), Some("acme"));
    assert_eq!(found[0].priority, Some(Priority::High));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_lists_the_tiers() {
    let world = tiered(World::new().await).await;
    submit(&world, Priority::High, "D-1").await;
    submit(&world, Priority::Low, "D-2").await;
    submit(&world, Priority::Low, "D-3").await;
    let db = world.database.db();
    let seen = dashboard::load_overview(&db, world.queue.as_ref()).await.unwrap();
    let ready: Vec<_> = seen.tiers.iter().map(|tier| (tier.priority, tier.ready)).collect();
    assert_eq!(ready, [(Priority::High, 1), (Priority::Normal, 0), (Priority::Low, 2)]);
    assert_eq!(seen.queue.unwrap().ready, 3, "all tiers together");
}
