//! Page processes of real workers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_testkit::openai::{Answer, Script};

use crate::reading::neural::promised_png;
use crate::reading::picture_stream;
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

#[tokio::test(flavor = "multi_thread")]
async fn invariant_9_pixels_and_expanded_bytes_end_their_document_as_too_large_and_no_other() {
    let world = World::new().await;
    let mut worker = Process::worker(&world, &[("LIMITS__DECOMPRESSED_BYTES", "1MiB")]);
    let pixels = world.submit("a.png", promised_png(35_000)).await;
    let bytes = world.submit("b.pdf", picture_stream(&vec![b' '; 2 << 20])).await;
    let good = world.submit("c.pdf", documents::invoice("B-1")).await;
    for bomb in [pixels, bytes] {
        world.until(bomb, "status", "failed").await;
        assert_eq!(world.attempts(bomb).await, ["too_large"]);
    }
    world.until(good, "status", "completed").await;
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    assert!(!worker.log().contains(" died "), "no page process fell over one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_9_with_room_for_one_document_and_one_page_at_a_time_all_come_to_their_ends() {
    let world = World::new().await;
    let scan = |number| documents::scan(documents::invoice(&format!("O-{number}")), 150.0);
    let size = scan(0).len();
    // Two of them do not fit beside each other.
    let room = format!("{}KiB", size * 3 / 2 / 1024);
    let settings = [
        ("LIMITS__DOCUMENT_BYTES", room.as_str()),
        ("LIMITS__DOCUMENTS_IN_MEMORY", room.as_str()),
        ("WORKER__CPU_THREADS", "1"),
        ("WORKER__SLOTS", "8"),
    ];
    let mut worker = Process::worker(&world, &settings);
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(world.submit("scan.png", scan(number)).await);
    }
    for id in ids {
        world.until(id, "status", "completed").await;
    }
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
}
