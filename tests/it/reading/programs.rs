//! A Tesseract that misbehaves.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::support::whole::ReadWhole as _;

/// A program that answers as Tesseract does about itself and then does `page`.
fn program(folder: &Path, page: &str) -> OcrConfig {
    let path = folder.join("tesseract");
    let script = format!(
        "#!/bin/sh\ncase $1 in\n--version) echo 'tesseract 9';;\n\
         --list-langs) printf 'List:\\neng\\n';;\n*) {page};;\nesac\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    OcrConfig { tesseract: path, ..OcrConfig::default() }
}

async fn reader_with(page: &str, page_time: Duration) -> (DocumentReader, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = program(folder.path(), page);
    let tesseract = TesseractEngine::find_installed(&config, page_time).unwrap();
    (reader(Arc::new(tesseract), LimitsConfig::default()), folder)
}

fn grey() -> Vec<u8> {
    encoded(&image::GrayImage::new(3000, 3000), ImageFormat::Png)
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_page_over_its_time_is_the_inputs_fault_and_leaves_no_child() {
    let (reader, folder) = reader_with(
        "echo $$ >\"$(dirname \"$0\")/pid\"; exec sleep 600",
        Duration::from_millis(300),
    )
    .await;
    assert_eq!(
        reason(reader.read(grey().into(), "sha", false).await),
        Some(OutcomeReason::Timeout)
    );
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    until("the child is gone", || !lives(pid.trim())).await;
}

#[tokio::test]
async fn dropping_the_future_stops_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let config = program(folder.path(), "echo $$ >\"$(dirname \"$0\")/pid\"; exec sleep 600");
    let limits = LimitsConfig::default();
    let tesseract = TesseractEngine::find_installed(&config, limits.page_time).unwrap();
    // The program is a script, which a confined process could not run.
    let cpu = CpuConfig { confine: ConfinementMode::Off, ..CpuConfig::default() };
    let setup = ProcessSetup::new(&cpu, &limits, &config, recipe(), 2)
        .permitting(tesseract.process_permissions());
    let processes = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1000);
    let reader = DocumentReader {
        processes,
        ocr: Arc::new(tesseract),
        recipe: recipe(),
        remote_ocr: RemoteOcr::default(),
        second_looks: SecondLooks::default(),
    };
    let reading = tokio::spawn(async move { reader.read(grey().into(), "sha", false).await });
    let note = folder.path().join("pid");
    until("the child runs", || std::fs::read_to_string(&note).is_ok_and(|pid| pid.ends_with('\n')))
        .await;
    let pid = std::fs::read_to_string(&note).unwrap();
    assert!(lives(pid.trim()));
    reading.abort();
    until("the child is gone", || !lives(pid.trim())).await;
}

#[tokio::test]
async fn how_the_program_ends_decides_what_follows() {
    #[rustfmt::skip]
    let table = [
        ("killed from outside",       "kill -KILL $$", Fault::Transient),
        ("crashed",                   "kill -SEGV $$", Fault::Internal),
        ("refused, input unread",     "exit 3",        Fault::Internal),
    ];
    for (name, page, expected) in table {
        let (reader, _folder) = reader_with(page, Duration::from_secs(60)).await;
        match reader.read(grey().into(), "sha", false).await {
            Err(StepError::Fault(error)) => assert_eq!(error.fault, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_child_sees_nothing_of_our_environment() {
    let page = "env >\"$(dirname \"$0\")/env\"; cat >/dev/null";
    let (reader, folder) = reader_with(page, Duration::from_secs(60)).await;
    assert_eq!(reason(reader.read(grey().into(), "sha", false).await), Some(OutcomeReason::NoText));
    let seen = std::fs::read_to_string(folder.path().join("env")).unwrap();
    assert!(seen.contains("OMP_THREAD_LIMIT=1"), "{seen}");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!seen.contains("CARGO_"), "{seen}");
}
