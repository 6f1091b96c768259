//! One test per invariant of the design, named after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use docmill_core::model::ClaimToken;
use docmill_ledger::{ClaimTerms, Ledger};
use docmill_testkit::openai::{Answer, Script};
use docmill_testkit::sqs::Action;

use crate::support::documents;
use crate::support::flaky::{FlakyLedger, PanickingLlm, Recording};
use crate::support::world::{SOON, World, until};

fn terms(worker: &str, lease: u64) -> ClaimTerms {
    ClaimTerms { worker: worker.to_owned(), lease: Duration::from_secs(lease), crash_limit: 3 }
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_a_claim_that_finds_the_row_held_by_another_worker_never_deletes() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("I-1")).await;
    let other = world.ledger().await;
    other.claim(&[id], &terms("other", 600)).await.unwrap();
    let worker = world.worker().await;
    until(SOON, || async {
        world.sqs.counts().of(Action::ChangeMessageVisibility)
            + world.sqs.counts().of(Action::ChangeMessageVisibilityBatch)
            > 0
    })
    .await;
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.in_flight, 1, "the message is still there");
    assert_eq!(world.column(id, "status").await.unwrap(), "in-progress");
    world.pass(Duration::from_secs(700)).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_1_a_message_outlives_every_failed_try_to_record_its_outcome() {
    let world = World::new().await;
    world.execute("ALTER TABLE docmill.ingestion ADD CONSTRAINT broken CHECK (status = 'in-progress') NOT VALID").await;
    let id = world.submit("a.pdf", documents::invoice("I-1")).await;
    let worker = world.worker().await;
    // Neither the result nor a failure could be written.
    until(SOON, || async { world.attempts(id).await.len() == 1 }).await;
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.in_flight, 1, "nothing was recorded, nothing is deleted");
    world.execute("ALTER TABLE docmill.ingestion DROP CONSTRAINT broken").await;
    // Without any end, it was released for a while.
    world
        .pass_until(|| async { world.column(id, "status").await.as_deref() == Some("completed") })
        .await;
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_a_worker_whose_claim_was_taken_writes_nothing_more() {
    let script = Script::always(Answer::late(Duration::from_secs(5)));
    let world = World::with_model(script).await;
    let id = world.submit("a.pdf", documents::invoice("I-2")).await;
    let worker = world.worker_with(|config| config.claim.lease = Duration::from_secs(3)).await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(1, SOON).await);
    let thief = ClaimToken::random();
    world
        .execute(&format!(
            "UPDATE docmill.ingestion SET claim_token = '{thief}', claims = claims + 1,
             lease_expires_at = now() + interval '1 hour' WHERE id = '{id}'"
        ))
        .await;
    until(SOON, || async { worker.monitor.running_jobs().is_empty() }).await;
    worker.stop().await;
    assert_eq!(world.column(id, "claim_token").await.unwrap(), thief.to_string());
    assert_eq!(world.column(id, "status").await.unwrap(), "in-progress");
    assert_eq!(world.column(id, "extraction_output_file_path").await, None);
    let key = docmill_storage::keys::extraction_key(id);
    assert!(world.store.head(&key).await.unwrap().is_none(), "no artefact after the loss");
    assert!(world.attempts(id).await.is_empty());
    let depth = world.queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (0, 1), "the message was left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_3_both_leases_are_renewed_for_as_long_as_a_job_takes() {
    let script = Script::always(Answer::late(Duration::from_secs(8)));
    let world = World::with_model(script).await;
    let id = world.submit("a.pdf", documents::invoice("I-3")).await;
    let short = |config: &mut docmill_core::config::Config| {
        config.claim.lease = Duration::from_secs(3);
        config.queue.visibility = Duration::from_secs(3);
    };
    let first = world.worker_with(short).await;
    let second = world.worker_with(short).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    assert_eq!(world.attempts(id).await, ["completed"], "nobody else could take it");
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1);
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_4_an_attempt_is_counted_at_the_claim_and_given_back_when_throttled() {
    let script = Script::of([Answer::throttled("0.3"), Answer::Read]);
    let world = World::with_model(script).await;
    let id = world.submit("a.pdf", documents::invoice("I-4")).await;
    let ledger = world.ledger().await;
    ledger.claim(&[id], &terms("dies", 3)).await.unwrap();
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1", "before any work is done");
    world.database.advance(Duration::from_secs(10)).await;
    // No wait is short: the message is hidden for each.
    let worker = world.worker_with(|config| config.throttle.longest_wait = Duration::ZERO).await;
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" }).await;
    let mut ends = world.attempts(id).await;
    // The provider's clock is not moved: a job may have to wait more than once.
    ends.dedup();
    assert_eq!(ends, ["crashed", "throttled", "completed"]);
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "2", "the throttled one is free");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_5_a_poll_under_way_at_the_stop_is_waited_for_and_its_messages_released() {
    let world = World::new().await;
    let worker = world.worker_with(|config| config.queue.wait = Duration::from_secs(5)).await;
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) > 0 }).await;
    let stopping = tokio::spawn(worker.stop());
    // The poll is out and the worker is stopping: a message received now is lost unless the poll is
    // awaited.
    until(SOON, || async { !stopping.is_finished() }).await;
    let id = world.submit("a.pdf", documents::invoice("I-5")).await;
    stopping.await.unwrap();
    let depth = world.queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (1, 0), "visible at once for others");
    assert_eq!(world.column(id, "claims").await.unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_6_no_more_is_received_than_there_are_slots_and_a_slow_job_holds_back_none() {
    let script = Script::function(|request| {
        if request.message("user").contains("SLOW") {
            Answer::late(Duration::from_secs(20))
        } else {
            Answer::Read
        }
    });
    let world = World::with_model(script).await;
    let slow = world.insert("slow.pdf", documents::invoice("SLOW-1")).await;
    world.send(slow.to_string()).await;
    let mut quick = Vec::new();
    // Many more than may be in flight at once.
    for number in 0..24 {
        quick.push(world.submit("q.pdf", documents::invoice(&format!("Q-{number}"))).await);
    }
    let worker = world.worker_with(|config| config.worker.slots = 3).await;
    let deadline = Instant::now() + SOON;
    for id in quick {
        while world.column(id, "status").await.as_deref() != Some("completed") {
            let depth = world.queue.depth().await.unwrap();
            assert!(depth.in_flight <= 3 + 3 + 10, "slots, ends and a request to delete");
            let (ending, working): (Vec<_>, Vec<_>) =
                worker.monitor.running_jobs().into_iter().partition(|job| job.is_ending);
            assert!(working.len() <= 3, "one in each slot: {working:?}");
            assert!(working.len() + ending.len() <= 3 + 3, "and a turn each: {ending:?}");
            assert!(Instant::now() < deadline, "{id} is still not completed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(world.column(slow, "status").await.unwrap(), "in-progress", "still at it");
    worker.hurry().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_a_claim_that_is_lost_before_the_row_refers_to_the_transcript_pays_for_no_call()
{
    let world = World::new().await;
    world.submit("a.pdf", documents::invoice("I-2")).await;
    let ledger = FlakyLedger::new(world.ledger().await, Recording::Fails(0));
    ledger.references_lost.store(true, Ordering::SeqCst);
    let llm = Arc::new(PanickingLlm(AtomicU32::new(0)));
    let worker = world.worker_on(Arc::new(ledger), Some(Arc::clone(&llm) as _)).await;
    until(SOON, || async { worker.monitor.stats().lost > 0 }).await;
    assert_eq!(llm.0.load(Ordering::SeqCst), 0);
    worker.hurry().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_7_a_lost_commit_reply_is_read_back_and_recorded_once() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("I-7")).await;
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::ReplyLost(1)));
    let worker = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, None).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["completed"]);
    assert_eq!(flaky.records.load(Ordering::SeqCst), 1, "read back instead of written again");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_7_a_failed_record_is_tried_again_in_place() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("I-7")).await;
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(3)));
    let worker = world.worker_on(flaky, None).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_7_a_panic_is_one_failed_attempt_and_three_of_them_are_the_end() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("I-7")).await;
    let llm = Arc::new(PanickingLlm(AtomicU32::new(0)));
    let worker = world.worker_on(world.ledger().await, Some(Arc::clone(&llm) as _)).await;
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "failed" }).await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.column(id, "reason").await.unwrap(), "internal");
    assert_eq!(world.attempts(id).await, ["internal"; 3]);
    assert_eq!(llm.0.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_a_stored_reply_is_never_paid_for_twice() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let id = world.submit("a.pdf", documents::invoice("I-8")).await;
    // The worker dies between the reply and its record: the record never succeeds.
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(u32::MAX)));
    let zombie = world.worker_on(Arc::clone(&flaky) as _, world.model().await).await;
    until(SOON, || async { world.column(id, "extraction_output_file_path").await.is_some() }).await;
    // It takes nothing new and dies with what it has.
    let stopping = tokio::spawn(zombie.stop());
    flaky.die();
    world.pass(Duration::from_secs(600)).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["crashed", "completed"]);
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1, "the stored reply was used");
    assert_eq!(world.column(id, "extraction_model").await.unwrap(), "scripted");
    stopping.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_9_a_document_over_the_limit_is_refused_before_its_body_is_read() {
    let world = World::new().await;
    let mut bytes = documents::invoice("I-9");
    bytes.resize(300 << 10, b' ');
    let id = world.submit("a.pdf", bytes).await;
    let worker = world
        .worker_with(|config| {
            config.limits.document_bytes = docmill_core::config::ByteSize(200 << 10)
        })
        .await;
    world.until(id, "reason", "too_large").await;
    worker.stop().await;
    let detail = world.column(id, "detail").await.unwrap();
    assert!(detail.contains("307200 bytes") && detail.contains("204800"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_11_a_cut_reply_is_never_a_completed_result() {
    let content = r#"{"extraction_successful": true, "confidence": "high", "total": 12"#;
    let script = Script::always(Answer::Cut { content: content.to_owned() });
    let world = World::with_model(script).await;
    let id = world.submit("a.pdf", documents::invoice("I-11")).await;
    let worker = world.worker().await;
    world.until(id, "status", "failed").await;
    worker.stop().await;
    assert_eq!(world.column(id, "reason").await.unwrap(), "cut");
    assert_eq!(world.column(id, "valid_structured_data").await.unwrap(), "false");
    assert_eq!(world.column(id, "needs_human_review").await.unwrap(), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_11_refused_data_is_never_completed_and_kept_for_a_person() {
    let world = World::with_model(Script::always(Answer::WrongSums)).await;
    let id = world.submit("a.pdf", documents::invoice("I-11")).await;
    let worker = world.worker().await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.column(id, "status").await.unwrap(), "failed");
    assert_eq!(world.column(id, "reason").await.unwrap(), "gate_refused");
    assert_eq!(world.column(id, "valid_structured_data").await.unwrap(), "false");
    assert_eq!(world.column(id, "structured_data->>'invoice_number'").await.unwrap(), "I-11");
    let document = "SELECT concat_ws(' ', structured_data, needs_human_review)
        FROM docmill.document";
    assert_eq!(world.scalar(document).await, "t", "nothing is passed on, a person looks");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_13_ownership_follows_the_clock_of_postgres_alone() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("I-13")).await;
    // A claim of one minute, and a database clock two minutes ahead: the lease is over although
    // hardly any time has passed on this machine.
    world.ledger().await.claim(&[id], &terms("gone", 60)).await.unwrap();
    world.database.advance(Duration::from_secs(120)).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["crashed", "completed"]);
    let started = "SELECT (started_at > now() + interval '100 seconds')::text
        FROM docmill.ingestion";
    assert_eq!(world.scalar(started).await, "true", "times come from docmill_now()");
}
