//! Page processes of real workers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_testkit::openai::{Answer, Script};

use crate::support::documents;
use crate::support::page_processes::{lives, parent, signal, until_gone};
use crate::support::process::{Process, calls, hanging_tesseract};
use crate::support::world::{SOON, World, until};

/// The processes of the first call of a Tesseract that hangs, itself and its page process.
fn family(folder: &std::path::Path) -> (String, String) {
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    let program = calls.lines().next().unwrap().to_owned();
    (parent(&program), program)
}

async fn hanging_worker(world: &World, documents: usize) -> (Process, tempfile::TempDir) {
    let programs = tempfile::tempdir().unwrap();
    let program = hanging_tesseract(programs.path());
    std::fs::write(programs.path().join("hang"), "").unwrap();
    let settings = [
        ("OCR__TESSERACT", program.to_str().unwrap()),
        // The program is a shell script.
        ("CPU__CONFINE", "false"),
        ("WORKER__CPU_THREADS", "4"),
        ("OCR__LANGUAGES", "eng"),
    ];
    let worker = Process::worker(world, &settings);
    for number in 0..documents {
        let invoice = documents::invoice(&format!("C-{number}"));
        world.submit("scan.png", documents::scan(invoice, 150.0)).await;
    }
    until(SOON, || async { calls(programs.path()) >= documents }).await;
    (worker, programs)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_process_killed_with_four_documents_in_it_costs_none_of_them_an_attempt() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let (mut worker, programs) = hanging_worker(&world, 4).await;
    let (cell, program) = family(programs.path());
    std::fs::remove_file(programs.path().join("hang")).unwrap();
    signal("-KILL", &cell);
    for id in world.all_ids().await {
        world.until(id, "status", "completed").await;
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
        assert_eq!(world.attempts(id).await, ["completed"]);
    }
    assert!(!lives(&program), "what it ran died with it");
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    let log = worker.log();
    let deaths: Vec<&str> = log.lines().filter(|line| line.contains(" died ")).collect();
    assert_eq!(deaths.len(), 1, "{log}");
    assert!(deaths.first().unwrap().contains("4 documents"), "{deaths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_takes_its_page_processes_along() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let (mut worker, programs) = hanging_worker(&world, 1).await;
    let (cell, program) = family(programs.path());
    assert!(lives(&cell) && lives(&program));
    worker.kill();
    until_gone(&cell).await;
    until_gone(&program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_cancelled_at_the_drain_deadline_end_their_pages() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let (mut worker, programs) = hanging_worker(&world, 1).await;
    let (cell, program) = family(programs.path());
    worker.terminate();
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    until_gone(&cell).await;
    until_gone(&program).await;
    for id in world.all_ids().await {
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "0", "given back");
    }
}
