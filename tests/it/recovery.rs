//! Throttling, outages, lost messages and dead letters: nothing fails that was not at fault.

use std::sync::Arc;
use std::time::Duration;

use docmill_core::model::IngestionId;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::{ClaimOutcome, ClaimTerms};
use docmill_operations::dead::{self, LetterChoice};
use docmill_operations::janitor::{JanitorReport, Maintenance, MaintenanceBackends};
use docmill_testkit::openai::{Answer, Script};

use crate::support::documents;
use crate::support::world::{SOON, World};

fn maintenance(world: &World) -> Maintenance {
    let mut config = world.config.clone();
    config.janitor.quiet = Duration::from_secs(60);
    let backends = MaintenanceBackends {
        db: world.database.db(),
        queue: Arc::clone(&world.queue),
        store: Arc::clone(&world.store),
    };
    Maintenance::new(backends, &config, "test".to_owned())
}

fn somebody() -> AuditNote {
    AuditNote { operator: "test".to_owned(), why: "a test".to_owned() }
}

async fn pass(world: &World) -> JanitorReport {
    let pass = maintenance(world).run_pass(false).await;
    assert_eq!(pass.failed, [], "every chore succeeds");
    pass
}

#[tokio::test(flavor = "multi_thread")]
async fn one_429_leaves_the_count_of_attempts_at_one() {
    let world = World::with_model(Script::of([Answer::throttled("0.3"), Answer::Read])).await;
    let id = world.submit("a.pdf", documents::invoice("R-1")).await;
    // No wait is short: the message is hidden for each.
    let worker = world.worker_with(|config| config.throttle.longest_wait = Duration::ZERO).await;
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" }).await;
    worker.stop().await;
    let mut ends = world.attempts(id).await;
    // The provider's clock is not moved: a job may have to wait more than once.
    ends.dedup();
    assert_eq!(ends, ["throttled", "completed"]);
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_document_fails_while_the_provider_is_down_for_ten_minutes() {
    let world = World::with_model(Script::always(Answer::status(503))).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(world.submit("a.pdf", documents::invoice(&format!("P-{number}"))).await);
    }
    let worker = world.worker().await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(3, SOON).await);
    for _ in 0..10 {
        world.pass(Duration::from_secs(60)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let failed = "SELECT count(*)::text FROM docmill.ingestion WHERE status <> 'in-progress'";
    assert_eq!(world.scalar(failed).await, "0");
    worker.hurry().await;
    model.set(Script::always(Answer::Read));
    // A fresh worker, as a deploy would bring; the pauses of the old one are gone with it.
    let worker = world.worker().await;
    for id in ids {
        world
            .pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" })
            .await;
        // They are alike but for their numbers.
        let reasons = world.column(id, "review_reasons").await.unwrap();
        assert!(["{}", "{near_duplicate}"].contains(&&*reasons), "{reasons}");
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_put_off_more_often_than_the_queue_allows_receives_still_completes() {
    let world = World::with_redrive_and_model(4, Script::always(Answer::status(503))).await;
    let id = world.submit("a.pdf", documents::invoice("D-1")).await;
    let worker = world.worker().await;
    world.pass_until(|| async { world.attempts(id).await.len() >= 5 }).await;
    world.llm.as_ref().unwrap().set(Script::always(Answer::Read));
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" }).await;
    worker.stop().await;
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1", "none of them counted");
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(0), "replaced in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_a_live_row_is_sent_again_and_one_that_died_is_for_a_person() {
    let world = World::with_redrive(3).await;
    let live = world.submit("a.pdf", documents::invoice("L-1")).await;
    let died = world.submit("b.pdf", documents::invoice("L-2")).await;
    world.receive_to_death().await;
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(2));
    world
        .execute(&format!(
            "UPDATE docmill.ingestion SET status = 'failed', reason = 'transient',
             completed_at = docmill.docmill_now(), valid_structured_data = false,
             needs_human_review = true WHERE id = '{died}'"
        ))
        .await;
    let pass = pass(&world).await;
    assert_eq!((pass.revived, pass.cleared), (1, 0));
    world.sqs.advance(Duration::from_secs(60));
    let letters = dead::list_letters(&world.database.db(), world.queue.as_ref(), 10).await.unwrap();
    let [letter] = letters.as_slice() else { panic!("{} letters", letters.len()) };
    assert_eq!(letter.ingestion, Some(died));
    assert_eq!(letter.reason.as_deref(), Some("transient"));
    let worker = world.worker().await;
    world.until(live, "status", "completed").await;
    world.sqs.advance(Duration::from_secs(60));
    let db = world.database.db();
    let driven = dead::redrive_letters(&db, world.queue.as_ref(), &LetterChoice::All, &somebody())
        .await
        .unwrap();
    assert_eq!(driven.sent, [died]);
    world.until(died, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(0));
    let trail = "SELECT action || ' ' || (before->>'reason') FROM docmill.operator_action";
    assert_eq!(world.scalar(trail).await, "reopen transient");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_line_a_few_messages_are_sent_again_and_of_a_wiped_queue_all() {
    let world = World::new().await;
    let count = 5_000_usize;
    world
        .execute(&format!(
            "WITH d AS (INSERT INTO docmill.document (id, file_path)
                 SELECT gen_random_uuid(), 'documents/' || n FROM generate_series(1, {count}) n
                 RETURNING id)
             INSERT INTO docmill.ingestion (id, document_id) SELECT gen_random_uuid(), id FROM d"
        ))
        .await;
    let ids = world.all_ids().await;
    world.send_all(&ids).await;
    world.database.advance(Duration::from_secs(180)).await;
    let mut resent: Vec<IngestionId> = Vec::new();
    for _ in 0..3 {
        let pass = pass(&world).await;
        assert_eq!((pass.resent.len(), pass.queue_is_behind), (20, true));
        resent.extend(pass.resent);
    }
    world.purge().await;
    // A second loss of the same messages: their rows are quiet for longer.
    world.database.advance(Duration::from_secs(360)).await;
    resent.clear();
    for _ in 0..11 {
        resent.extend(pass(&world).await.resent);
    }
    resent.sort();
    let mut expected = ids;
    expected.sort();
    assert_eq!(resent, expected, "each exactly once");
    assert_eq!(world.queue.depth().await.unwrap().ready, 5_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_no_worker_survived_is_not_sent_round_again() {
    let world = World::with_redrive(3).await;
    let id = world.submit("a.pdf", documents::invoice("X-1")).await;
    world.receive_to_death().await;
    world
        .execute("UPDATE docmill.ingestion SET crashes = 3, accused_at = docmill.docmill_now()")
        .await;
    let pass = pass(&world).await;
    assert_eq!((pass.revived, pass.cleared, pass.given_up), (0, 0, 1));
    assert_eq!(world.column(id, "reason").await.unwrap(), "crashed");
    assert_eq!(world.column(id, "needs_human_review").await.unwrap(), "true");
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(1), "there for a person");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_an_absent_object_ends_in_quarantine_however_few_receives_are_allowed() {
    let world = World::with_redrive(2).await;
    let bucket = &world.config.store.bucket;
    let object = serde_json::json!({ "key": "documents/never.pdf", "size": 10, "eTag": "00" });
    let event = serde_json::json!({ "Records": [{
        "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": { "bucket": { "name": bucket }, "object": object },
    }]});
    world.send(event.to_string()).await;
    let worker = world.worker_with(|config| config.queue.unknown_age = Duration::ZERO).await;
    let kept = "SELECT count(*)::text FROM docmill.quarantined_message";
    let mut revived = 0;
    let deadline = std::time::Instant::now() + SOON;
    while world.scalar(kept).await != "1" {
        assert!(std::time::Instant::now() < deadline, "revived {revived} times");
        world.sqs.advance(Duration::from_secs(30));
        revived += pass(&world).await.revived;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.stop().await;
    assert_eq!(revived, 2, "its history goes on in those that take its place");
    let depth = world.queue.depth().await.unwrap();
    assert_eq!((depth.ready + depth.in_flight, depth.dead), (0, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_reopens_failed_ingestions_only() {
    let world = World::with_redrive(3).await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(world.submit("a.pdf", documents::invoice(&format!("R-{number}"))).await);
    }
    world.receive_to_death().await;
    let states = [
        "status = 'failed', reason = 'transient', valid_structured_data = false,
         needs_human_review = true",
        "status = 'completed', valid_structured_data = true",
        "status = 'cancelled', reason = 'cancelled'",
    ];
    for (id, state) in ids.iter().zip(states) {
        let sql = format!(
            "UPDATE docmill.ingestion SET {state}, completed_at = docmill.docmill_now()
             WHERE id = '{id}'"
        );
        world.execute(&sql).await;
    }
    let held = ids[3];
    let worker = "it".to_owned();
    let terms = ClaimTerms { worker, lease: Duration::from_secs(3600), crash_limit: 3 };
    let claimed = world.ledger().await.claim(&[held], &terms).await.unwrap();
    assert!(matches!(claimed.as_slice(), [ClaimOutcome::Claimed(_)]), "{claimed:?}");
    let db = world.database.db();
    let letters = dead::list_letters(&db, world.queue.as_ref(), 10).await.unwrap();
    let wanted: Vec<_> =
        letters.iter().filter(|letter| letter.would_be_sent(&LetterChoice::All)).collect();
    assert_eq!(wanted.iter().filter_map(|it| it.ingestion).collect::<Vec<_>>(), ids[..1]);
    world.sqs.advance(Duration::from_secs(60));
    let done = dead::redrive_letters(&db, world.queue.as_ref(), &LetterChoice::All, &somebody())
        .await
        .unwrap();
    assert_eq!((done.sent.as_slice(), done.cleared, done.left), (&ids[..1], 2, 1));
    let mut now = Vec::new();
    for id in &ids {
        now.push(world.column(*id, "status").await.unwrap());
    }
    assert_eq!(now, ["in-progress", "completed", "cancelled", "in-progress"]);
    assert_eq!(world.queue.depth().await.unwrap().ready, 1);
    world.sqs.advance(Duration::from_secs(60));
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(1), "the letter of what is held");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_lettered_group_or_event_comes_back_by_itself() {
    let world = World::with_redrive(3).await;
    let id = world.insert("a.pdf", documents::invoice("G-1")).await;
    let group = serde_json::json!({ "ingestion_ids": [id.to_string()] });
    world.send(group.to_string()).await;
    world.send("no form that we know").await;
    world.receive_to_death().await;
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(2));
    assert_eq!(pass(&world).await.revived, 1);
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(1), "what is nothing stays");
}
