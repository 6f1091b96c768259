//! Workers that die without a word, and workers that are asked to stop: real processes, real
//! signals.

use std::time::Duration;

use docmill_testkit::openai::{Answer, Request, Script};
use docmill_testkit::sqs::Action;

use crate::support::documents;
use crate::support::process::{Process, calls, hanging_tesseract};
use crate::support::world::{SOON, World, until};

/// Lets the lease and the visibility expire, once no poll of the dead worker is open: such a poll
/// would still be handed the message.
async fn over_the_lease(world: &World) {
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_during_ocr_is_taken_over_with_one_result() {
    let world = World::new().await;
    let programs = tempfile::tempdir().unwrap();
    let program = hanging_tesseract(programs.path());
    std::fs::write(programs.path().join("hang"), "").unwrap();
    let settings = [("OCR__TESSERACT", program.to_str().unwrap()), ("CPU__CONFINE", "false")];
    let id = world.submit("scan.png", documents::scan(documents::invoice("K-1"), 150.0)).await;
    let mut first = Process::worker(&world, &settings);
    until(SOON, || async { calls(programs.path()) > 0 }).await;
    first.kill();
    std::fs::remove_file(programs.path().join("hang")).unwrap();
    over_the_lease(&world).await;
    let mut second = Process::worker(&world, &settings);
    until(SOON, || async { world.attempts(id).await.len() == 2 }).await;
    world.until_empty().await;
    second.terminate();
    assert!(second.ended(SOON).await.success());
    assert_ne!(world.column(id, "status").await.unwrap(), "in-progress");
    assert_eq!(world.attempts(id).await.first().unwrap(), "crashed");
    assert_eq!(world.column(id, "claims").await.unwrap(), "2");
    assert!(world.column(id, "transcription_file_path").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_finished_before_the_worker_died_is_not_made_again() {
    let world = World::with_model(Script::of([Answer::Hang, Answer::Read])).await;
    let programs = tempfile::tempdir().unwrap();
    let program = hanging_tesseract(programs.path());
    let settings = [("OCR__TESSERACT", program.to_str().unwrap()), ("CPU__CONFINE", "false")];
    let id = world.submit("scan.png", documents::scan(documents::invoice("K-2"), 150.0)).await;
    let mut first = Process::worker(&world, &settings);
    assert!(world.llm.as_ref().unwrap().arrived(1, SOON).await);
    let read = calls(programs.path());
    assert!(read > 0);
    first.kill();
    over_the_lease(&world).await;
    let _second = Process::worker(&world, &settings);
    until(SOON, || async { world.attempts(id).await.len() == 2 }).await;
    assert_eq!(calls(programs.path()), read, "no page was read again");
    assert_eq!(world.attempts(id).await.first().unwrap(), "crashed");
}

/// The first death accuses it: its worker could have had others in hand.
#[tokio::test(flavor = "multi_thread")]
async fn three_deaths_on_one_document_alone_are_the_end_and_a_person_looks() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let id = world.submit("a.pdf", documents::invoice("K-3")).await;
    for death in 1..=4 {
        let mut worker = Process::worker(&world, &[]);
        assert!(world.llm.as_ref().unwrap().arrived(death, SOON).await);
        worker.kill();
        over_the_lease(&world).await;
    }
    let _last = Process::worker(&world, &[]);
    world.until(id, "status", "failed").await;
    world.until_empty().await;
    assert_eq!(world.column(id, "reason").await.unwrap(), "crashed");
    assert_eq!(world.column(id, "needs_human_review").await.unwrap(), "true");
    assert_eq!(world.attempts(id).await, ["crashed"; 4]);
    let document = "SELECT needs_human_review::text FROM docmill.document";
    assert_eq!(world.scalar(document).await, "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_kills_its_workers_takes_none_of_its_neighbours_along() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let killer = world.submit("a.pdf", documents::invoice("KILLER")).await;
    let mut neighbours = Vec::new();
    for number in 0..6 {
        let invoice = documents::invoice(&format!("N-{number}"));
        neighbours.push(world.submit("a.pdf", invoice).await);
    }
    let model = world.llm.as_ref().unwrap();
    let mut worker = Process::worker(&world, &[]);
    assert!(model.arrived(7, SOON).await, "all are in hand");
    worker.kill();
    let is_killer = |request: &Request| request.message("user").contains("KILLER");
    model.set(Script::function(move |request| match is_killer(request) {
        true => Answer::Hang,
        false => Answer::Read,
    }));
    let claims = "SELECT (claims || ' ' || (alone_claim IS NOT DISTINCT FROM claims))::text
        FROM docmill.ingestion WHERE claim_token IS NOT NULL
        AND lease_expires_at > docmill.docmill_now() ORDER BY claims DESC LIMIT 1";
    for death in 2..=4 {
        over_the_lease(&world).await;
        let mut worker = Process::worker(&world, &[]);
        let killed = format!("{death} true");
        world
            .pass_until(|| async {
                world.column(killer, "claims").await.unwrap() == death.to_string()
            })
            .await;
        assert_eq!(world.scalar(claims).await, killed, "alone");
        worker.kill();
    }
    over_the_lease(&world).await;
    let _last = Process::worker(&world, &[]);
    world.pass_until(|| async { world.column(killer, "status").await.unwrap() == "failed" }).await;
    assert_eq!(world.column(killer, "reason").await.unwrap(), "crashed");
    for id in &neighbours {
        world
            .pass_until(|| async { world.column(*id, "status").await.unwrap() == "completed" })
            .await;
        assert_eq!(world.column(*id, "crashes").await.unwrap(), "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_with_twenty_jobs_under_way_gives_every_one_of_them_back() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.push(world.submit("a.pdf", documents::invoice(&format!("T-{number}"))).await);
    }
    let mut first = Process::worker(&world, &[]);
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(20, SOON).await);
    first.terminate();
    assert!(first.ended(SOON).await.success(), "a clean drain ends with 0");
    let depth = world.queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (20, 0), "all visible at once");
    for id in &ids {
        assert_eq!(world.column(*id, "attempt_count").await.unwrap(), "0", "given back");
        assert_eq!(world.column(*id, "lease_expires_at").await, None);
        assert_eq!(world.attempts(*id).await, ["interrupted"]);
    }
    model.set(Script::always(Answer::Read));
    let second = world.worker().await;
    for id in &ids {
        world.until(*id, "status", "completed").await;
    }
    world.until_empty().await;
    second.stop().await;
    assert_eq!(model.completed_twice(), Vec::<String>::new(), "no answered call was made again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_gives_jobs_back_without_waiting_for_the_deadline() {
    let world = World::with_model(Script::always(Answer::Hang)).await;
    let id = world.submit("a.pdf", documents::invoice("T-1")).await;
    let mut worker = Process::worker(&world, &[("WORKER__DRAIN", "10m")]);
    assert!(world.llm.as_ref().unwrap().arrived(1, SOON).await);
    worker.terminate();
    // Two signals before the first is taken would be one.
    until(SOON, || async { worker.log().contains("stop signal") }).await;
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    assert_eq!(world.attempts(id).await, ["interrupted"]);
}
