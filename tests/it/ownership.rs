//! Ownership of messages and claims at critical moments: during claiming, during a replacement,
//! during the stop, after a loss.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use docmill_core::fault::Fault;
use docmill_core::model::{ClaimToken, IngestionId};
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::{ClaimTerms, Ledger};
use docmill_operations::retry;
use docmill_queue::{Delivery, MessageQueue, ReceiptHandle};
use docmill_testkit::openai::{Answer, Script};
use docmill_worker::registry::MessageRegistry;

use crate::support::documents;
use crate::support::flaky::{FlakyLedger, Recording};
use crate::support::memory_queue::{Call, MemoryQueue};
use crate::support::recording_queue::{Fate, RecordingQueue};
use crate::support::world::{SOON, World, until};

/// Gives the row to another worker, as a takeover would.
async fn steal(world: &World, id: IngestionId) -> ClaimToken {
    let thief = ClaimToken::random();
    world
        .execute(&format!(
            "UPDATE docmill.ingestion SET claim_token = '{thief}', claims = claims + 1,
             lease_expires_at = now() + interval '1 hour' WHERE id = '{id}'"
        ))
        .await;
    thief
}

/// The terms of a claim of another worker.
fn others() -> ClaimTerms {
    ClaimTerms { worker: "other".to_owned(), lease: Duration::from_secs(600), crash_limit: 3 }
}

/// A delivery whose receive call was sent `ago`.
fn received_ago(ago: Duration) -> Delivery {
    Delivery {
        message_id: "m".to_owned(),
        body: String::new(),
        receipt: ReceiptHandle("r".to_owned()),
        receive_count: 1,
        sent_at: None,
        first_received_at: None,
        received: Instant::now().checked_sub(ago).unwrap(),
        priority: None,
        tenant: None,
        traceparent: None,
        origin: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_a_group_is_deleted_only_after_its_members_were_accepted_by_the_queue() {
    let mut world = World::new().await;
    let queue = Arc::new(MemoryQueue::new(Duration::from_secs(120), None));
    world.queue = Arc::clone(&queue) as Arc<dyn MessageQueue>;
    let mut ids = Vec::new();
    for number in ["G-1", "G-2"] {
        ids.push(world.insert("g.pdf", documents::invoice(number)).await);
    }
    world.send(serde_json::json!({"ingestion_ids": ids}).to_string()).await;
    queue.fail(Call::Send, 1, Fault::Transient);
    let worker = world.worker_on(world.ledger().await, None).await;
    until(SOON, || async { queue.calls(Call::Hide) > 0 }).await;
    assert_eq!(queue.calls(Call::Acknowledge), 0, "nothing was sent, nothing is deleted");
    queue.advance(Duration::from_secs(30));
    for id in ids {
        world.until(id, "status", "completed").await;
    }
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_a_worn_message_is_deleted_only_after_its_successor_was_accepted() {
    let mut world = World::new().await;
    let queue = Arc::new(MemoryQueue::new(Duration::from_secs(120), Some(4)));
    world.queue = Arc::clone(&queue) as Arc<dyn MessageQueue>;
    let id = world.insert("a.pdf", documents::invoice("W-1")).await;
    world.ledger().await.claim(&[id], &others()).await.unwrap();
    world.send(id.to_string()).await;
    let worker = world.worker_on(world.ledger().await, None).await;
    let disposed = || queue.calls(Call::Hide) + queue.calls(Call::Acknowledge);
    until(SOON, || async { disposed() == 1 }).await;
    // At its second receive it is to be replaced, but the queue takes nothing; then it does.
    queue.fail(Call::Send, 1, Fault::Transient);
    queue.advance(Duration::from_secs(700));
    until(SOON, || async { disposed() == 2 }).await;
    assert_eq!(queue.calls(Call::Acknowledge), 0, "no successor, so it stays");
    queue.advance(Duration::from_secs(700));
    until(SOON, || async { disposed() == 3 }).await;
    assert_eq!(queue.calls(Call::Acknowledge), 1);
    assert_eq!(queue.bodies(), [id.to_string()], "its successor is there");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_a_lost_claim_ends_the_call_that_is_under_way() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let id = world.submit("a.pdf", documents::invoice("O-1")).await;
    let worker = world.worker_with(|config| config.claim.lease = Duration::from_secs(3)).await;
    assert!(world.llm.as_ref().unwrap().arrived(1, SOON).await);
    steal(&world, id).await;
    until(SOON, || async { worker.monitor.running_jobs().is_empty() }).await;
    worker.stop().await;
    assert!(world.attempts(id).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_a_loss_reported_by_a_write_stops_the_job_before_any_heartbeat() {
    let prose = Answer::Text { content: "Here you are.".to_owned() };
    let late = Answer::Late { millis: 2000, then: Box::new(prose) };
    let mut world = World::with_model(Script::always(late)).await;
    let queue = RecordingQueue::install(&mut world);
    let id = world.submit("a.pdf", documents::invoice("O-2")).await;
    let worker = world.worker().await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(1, SOON).await);
    // The next heartbeat is 40 s away.
    let thief = steal(&world, id).await;
    until(SOON, || async { worker.monitor.running_jobs().is_empty() }).await;
    worker.stop().await;
    assert_eq!(model.calls().len(), 1, "no repair was paid for");
    assert_eq!(world.column(id, "claim_token").await.unwrap(), thief.to_string());
    let fates = queue.fates();
    assert_eq!(fates.len(), 1);
    assert!(fates.iter().all(|fate| fate.acknowledged + fate.hidden == 0), "left alone: {fates:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_3_a_message_is_kept_hidden_while_it_still_waits_for_its_claim() {
    let mut world = World::new().await;
    world.config.queue.visibility = Duration::from_secs(3);
    let queue = RecordingQueue::install(&mut world);
    let id = world.submit("a.pdf", documents::invoice("O-3")).await;
    let slow = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    // Claims hang from now on.
    slow.die();
    let worker = world.worker_on(slow, None).await;
    let extended = || queue.fates().iter().map(|fate| fate.extended).max().unwrap_or(0);
    until(SOON, || async { extended() >= 4 }).await;
    let receipts = queue.fates().len();
    assert_eq!((receipts, queue.depth().await.unwrap().ready), (1, 0), "nobody else could have it");
    assert_eq!(world.column(id, "claims").await.unwrap(), "0");
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_3_a_stopping_worker_keeps_both_leases_until_its_last_job_is_done() {
    let script = Script::always(Answer::late(Duration::from_secs(8)));
    let world = World::with_model(script).await;
    let id = world.submit("a.pdf", documents::invoice("O-4")).await;
    let short = |config: &mut docmill_core::config::Config| {
        config.claim.lease = Duration::from_secs(3);
        config.queue.visibility = Duration::from_secs(3);
    };
    let first = world.worker_with(short).await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(1, SOON).await);
    let stopping = tokio::spawn(first.stop());
    let second = world.worker_with(short).await;
    world.until(id, "status", "completed").await;
    stopping.await.unwrap();
    world.until_empty().await;
    second.stop().await;
    assert_eq!(world.attempts(id).await, ["completed"], "nobody else could take it");
    assert_eq!(model.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_7_every_delivery_has_one_disposition_and_every_claim_one_outcome() {
    let mut world = World::new().await;
    let queue = RecordingQueue::install(&mut world);
    let good = world.submit("a.pdf", documents::invoice("O-5")).await;
    let corrupt = world.submit("b.pdf", b"%PDF-1.4 nothing more".to_vec()).await;
    let gone = IngestionId::random();
    let missing = docmill_core::model::DocumentId::random();
    world.insert_rows(missing, gone, "documents/not-there.pdf").await;
    let busy = world.insert("c.pdf", documents::invoice("O-6")).await;
    world.ledger().await.claim(&[busy], &others()).await.unwrap();
    let bodies = [gone.to_string(), busy.to_string(), IngestionId::random().to_string()];
    for body in bodies.into_iter().chain([good.to_string(), "what is this?".to_owned()]) {
        world.send(body).await;
    }
    let worker = world.worker_on(world.ledger().await, None).await;
    world.until(good, "status", "completed").await;
    world.until(corrupt, "status", "failed").await;
    let done = |fate: &Fate| fate.acknowledged + fate.hidden > 0;
    until(SOON, || async {
        let fates = queue.fates();
        fates.len() == 7 && fates.iter().all(done)
    })
    .await;
    worker.stop().await;
    for fate in queue.fates() {
        assert_eq!(fate.acknowledged + fate.hidden, 1, "{fate:?}");
    }
    let unequal = "SELECT count(*)::text FROM docmill.ingestion i WHERE lease_expires_at IS NULL
        AND claims <> (SELECT count(*) FROM docmill.attempt a WHERE a.ingestion_id = i.id)";
    assert_eq!(world.scalar(unequal).await, "0");
    assert_eq!(world.attempts(gone).await, ["missing"]);
}

#[test]
fn invariant_3_the_time_to_renew_is_counted_from_before_the_receive() {
    let registry = Arc::new(MessageRegistry::default());
    let delivery = received_ago(Duration::from_secs(20));
    let sent = delivery.received;
    let _ticket = registry.hold(&delivery);
    assert!(registry.due_extensions(sent).is_empty());
    let due = registry.due_extensions(sent + Duration::from_secs(1));
    assert_eq!(due.len(), 1, "a long poll has used up some of its time already");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_past_its_local_deadline_a_job_pays_for_nothing_until_it_is_renewed() {
    let mut world = World::with_model(Script::of([Answer::Hang, Answer::Read])).await;
    let id = world.submit("a.pdf", documents::invoice("O-8")).await;
    let model = world.model().await;
    let calls = || world.llm.as_ref().unwrap().calls().len();
    // A first attempt leaves a transcript, so that the second writes nothing before it asks.
    let first = world.worker_on(world.ledger().await, model.clone()).await;
    until(SOON, || async { calls() == 1 }).await;
    first.hurry().await;
    world.config.claim.lease = Duration::from_secs(2);
    let mut busy = world.pool.begin().await.unwrap();
    let lock = "LOCK TABLE docmill.blocked_content IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *busy).await.unwrap();
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    let second = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, model).await;
    world.until(id, "claims", "2").await;
    // No renewal arrives any more, and the job goes on only when its deadline is over.
    flaky.die();
    tokio::time::sleep(Duration::from_secs(3)).await;
    busy.rollback().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(calls(), 1, "it asked the model although its claim may be another's");
    flaky.dead.store(false, Ordering::SeqCst);
    world.until(id, "status", "completed").await;
    assert_eq!(calls(), 2);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_a_message_sent_after_the_end_outlives_the_message_of_the_end() {
    let mut world = World::new().await;
    let queue = Arc::new(RecordingQueue::holding_deletions(Arc::clone(&world.queue)));
    world.queue = Arc::clone(&queue) as _;
    let worker = world.worker().await;
    let id = world.submit("a.pdf", documents::invoice("I-1")).await;
    world.until(id, "status", "completed").await;
    let deletions = || queue.fates().iter().filter(|fate| fate.acknowledged > 0).count();
    until(SOON, || async { deletions() == 1 }).await;
    // An operator wants it once more while the queue has not yet deleted the message.
    let by = AuditNote { operator: "ada".to_owned(), why: "because".to_owned() };
    retry::retry_ingestions(&world.database.db(), queue.as_ref(), &[id], &by).await.unwrap();
    until(SOON, || async { queue.fates().len() == 2 }).await;
    queue.let_delete();
    until(SOON, || async { world.attempts(id).await.len() == 2 }).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
}
