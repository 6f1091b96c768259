//! Processes that die between the record and the delivery.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use super::receiver::{ReceiverMood, SECRET, WebhookReceiver};
use crate::support::documents;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, until};

/// A file with the target, and how often it is looked for what is due.
fn settings(world: &World, receiver: &WebhookReceiver, poll: &str) -> std::path::PathBuf {
    let file = world.logs.path().join(format!("{poll}.toml"));
    let url = receiver.url();
    let text = format!(
        "[webhooks]\nallow_http = true\nallowed_networks = [\"127.0.0.0/8\"]\npoll = \"{poll}\"\n\
         [[webhooks.targets]]\nname = \"erp\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_between_the_record_and_the_delivery_loses_no_event() {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Hang).await;
    // It looks for what is due when it starts, and then not for an hour: what it records stays there.
    let mut worker = Process::worker_with(&world, &settings(&world, &receiver, "1h"), &[]);
    let registered = "SELECT count(*)::text FROM docmill.webhook_target";
    until(SOON, || async { world.scalar(registered).await == "1" }).await;
    let id = world.submit("a.pdf", documents::invoice("L-1")).await;
    world.until(id, "status", "completed").await;
    worker.kill();
    let open = "SELECT string_agg(state || ' ' || tries, ',')::text FROM docmill.webhook_delivery";
    assert_eq!(world.scalar(open).await, "due 0");
    assert_eq!(receiver.received().len(), 0);
    // The next one dies while it delivers.
    let quick = settings(&world, &receiver, "50ms");
    let mut worker = Process::worker_with(&world, &quick, &[]);
    until(SOON, || async { receiver.received().len() == 1 }).await;
    worker.kill();
    assert_eq!(world.scalar(open).await, "due 1");
    receiver.answer(ReceiverMood::Status(200));
    let _worker = Process::worker_with(&world, &quick, &[]);
    world.pass(Duration::from_secs(60)).await; // its lease
    until(SOON, || async { world.scalar(open).await == "delivered 2" }).await;
    let (first, taken) = (receiver.received().remove(0), receiver.taken());
    assert_eq!(taken.len(), 1);
    assert_eq!(taken.first().map(|message| &message.id), Some(&first.id), "the same event");
    assert_eq!(first.event(), "document.completed");
    let shown = docmill(&world, &["webhooks", "targets", "--json"], &[]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let target = shown.get(0).unwrap();
    assert_eq!((&target["name"], &target["open"]), (&"erp".into(), &0.into()));
}
