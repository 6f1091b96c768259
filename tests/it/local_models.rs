//! Workers of one machine that share a device for local models.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use docmill::app::App;
use docmill_core::config::OcrProvider::{Tesseract, Vision};
use docmill_core::config::{Config, DeviceSource};
use docmill_scheduler::{ModelDemand, held_mib, read_states};
use docmill_testkit::models::{Answer, Script, Server};

use crate::long_documents::scans;
use crate::support::documents;
use crate::support::process::Process;
use crate::support::whole::ReadWhole as _;
use crate::support::world::{SOON, World, until};

/// A program that looks like `nvidia-smi` and shows one card of 10000 MiB, after these commands.
fn write_card(folder: &Path, before: &str) {
    let program = folder.join("nvidia-smi");
    let text = format!("#!/bin/sh\n{before}\necho '0, GPU-1234, 10000, 9000, [N/A]'\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_one_device_are_never_over_it_and_both_finish() {
    let world = World::with_model(Script::always(Answer::late(Duration::from_millis(50)))).await;
    let folder = tempfile::tempdir().unwrap();
    write_card(folder.path(), "");
    let board = folder.path().join("board");
    for number in 0..30 {
        world.submit("invoice.pdf", documents::invoice(&format!("L-{number}"))).await;
    }
    let board_text = board.display().to_string();
    let worker = |model: &str| {
        let settings = [
            ("LLM__MODEL", model),
            ("LLM__SCHEDULER__BUDGETS_MIB__ONE", "6000"),
            ("LLM__SCHEDULER__BUDGETS_MIB__TWO", "6000"),
            ("LLM__SCHEDULER__QUANTUM", "200ms"),
            ("LLM__SCHEDULER__OVERDUE_AFTER", "1s"),
            ("LLM__SCHEDULER__PATH", board_text.as_str()),
            ("WORKER__SLOTS", "4"),
        ];
        Process::worker_seeing(folder.path(), &world, &settings)
    };
    let _workers = [worker("one"), worker("two")];
    let left = "SELECT count(*)::text FROM docmill.ingestion WHERE status <> 'completed'";
    let (mut looks, mut held_looks, mut had) = (0, 0, [false; 2]);
    let deadline = std::time::Instant::now() + SOON * 3;
    while world.scalar(left).await != "0" {
        assert!(std::time::Instant::now() < deadline, "it did not end");
        let posts: Vec<ModelDemand> =
            read_states(&board).unwrap().into_iter().flat_map(|sheet| sheet.posts).collect();
        let held = held_mib("gpu0-1234", &posts);
        assert!(held <= 9_488, "{posts:?}");
        looks += 1;
        held_looks += usize::from(held > 0);
        for (had, name) in had.iter_mut().zip(["one", "two"]) {
            *had |= posts.iter().any(|post| post.model == name && post.turn.is_some());
        }
    }
    assert!(held_looks > 0 && had == [true; 2], "{held_looks} of {looks} looks, {had:?}");
    let models = "SELECT string_agg(DISTINCT extraction_model, ',') FROM docmill.ingestion";
    assert_eq!(world.scalar(models).await, "one,two");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_model_that_reads_pages_waits_for_its_turn_as_any_other() {
    let content = r#"{"turn": "0", "lines": ["Total 12,00"]}"#.to_owned();
    let server = Server::start(Script::always(Answer::Text { content })).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.cpu.program = env!("CARGO_BIN_EXE_docmill").into();
    config.ocr.providers = vec![Vision, Tesseract];
    config.ocr.vision.base_url = server.base_url();
    config.ocr.vision.model = "seer".to_owned();
    config.llm.scheduler.models = vec!["seer".to_owned()];
    config.llm.scheduler.devices = DeviceSource::Memory;
    config.llm.scheduler.path = folder.path().to_owned();
    let services = App::new(config).pipeline_services().await.unwrap();
    let scheduler = services.scheduler.unwrap();
    let held = scheduler.acquire_turn("seer").await.unwrap();
    let reading =
        tokio::spawn(
            async move { services.reader.read(scans(1).into(), "sha", false).await.map(drop) },
        );
    until(SOON, || async { scheduler.report().models[0].waiting == 1 }).await;
    assert!(server.calls().is_empty(), "it waits for its turn");
    drop(held);
    reading.await.unwrap().unwrap();
    assert!(!server.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_unresponsive_gpus_and_ends_its_running_jobs() {
    let world = World::with_model(Script::always(Answer::late(Duration::from_secs(15)))).await;
    let folder = tempfile::tempdir().unwrap();
    let read = folder.path().join("read").display().to_string();
    write_card(
        folder.path(),
        &format!("[ -e {read} ] && exec sleep 30\n[ $1 = --list-gpus ] || touch {read}"),
    );
    let id = world.submit("invoice.pdf", documents::invoice("L-1")).await;
    let board = folder.path().join("board").display().to_string();
    let settings = [
        ("LLM__MODEL", "one"),
        ("LLM__SCHEDULER__BUDGETS_MIB__ONE", "6000"),
        ("LLM__SCHEDULER__PATH", board.as_str()),
    ];
    let worker = Process::worker_seeing(folder.path(), &world, &settings);
    let said = "no local model can begin a turn: nvidia-smi has not answered within 10s";
    until(SOON, || async { worker.log().contains(said) }).await;
    world.until(id, "status", "completed").await;
}
