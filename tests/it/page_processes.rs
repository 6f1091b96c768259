//! Child processes that read documents: a crash fails only the guilty document, a hanging process
//! is killed, and resources that a document does not need are out of reach.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod budgets;
mod deeds;
mod escapes;
mod liars;
mod sharing;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use docmill_core::config::{ByteSize, ConfinementMode, CpuConfig, LimitsConfig, OcrConfig};
use docmill_core::fault::Fault;
use docmill_core::model::{OutcomeReason, PageReadResult};
use docmill_documents::sandbox::{
    DocumentReadError, OpenDocument, ProcessPool, ProcessProgram, ProcessSetup,
};
use futures::StreamExt as _;

use crate::reading::papers::{content, pdf};
use crate::support::page_processes::{Driven, docmill, lives, recipe, signal, until_gone};

/// A document with one page for each deed.
fn of(deeds: &[&str]) -> bytes::Bytes {
    let pages: Vec<String> = deeds.iter().map(|deed| content(&[deed])).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    pdf(&pages, "").into()
}

/// Opens a document and reads its first page.
async fn read(
    cells: &Arc<ProcessPool>,
    deed: &str,
    alone: bool,
) -> Result<PageReadResult, DocumentReadError> {
    cells.open_document(of(&[deed]), alone).await?.read_page(0).await
}

/// The process that a document is in.
async fn pid(document: &OpenDocument) -> String {
    document.read_page(0).await.unwrap().page.text()
}

fn told(
    result: Result<PageReadResult, DocumentReadError>,
) -> Result<(), Result<OutcomeReason, Fault>> {
    match result {
        Ok(_) => Ok(()),
        Err(DocumentReadError::Refused { reason, .. }) => Err(Ok(reason)),
        Err(DocumentReadError::Fault(error)) => Err(Err(error.fault)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_fails_the_guilty_document_and_no_other() {
    #[rustfmt::skip]
    let table = [
        ("ask for everything", Ok(OutcomeReason::TooLarge)),
        ("recurse",            Ok(OutcomeReason::Corrupt)),
        ("babble",             Ok(OutcomeReason::Corrupt)),
        ("leave",              Err(Fault::Internal)),
    ];
    let (cells, _folder) = Driven::default().start();
    for (deed, expected) in table {
        let (first, second, third, guilty) = tokio::join!(
            read(&cells, "wait", false),
            read(&cells, "wait", false),
            read(&cells, "wait", false),
            read(&cells, deed, false),
        );
        assert_eq!(told(guilty), Err(expected), "{deed}");
        for innocent in [first, second, third] {
            assert_eq!(told(innocent), Ok(()), "{deed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_hangs_is_killed_at_its_limit_and_is_the_only_one_that_fails() {
    let limits = LimitsConfig { page_time: Duration::from_millis(500), ..Default::default() };
    let (cells, _folder) = Driven { limits, ..Default::default() }.start();
    let document = cells.open_document(of(&["pid", "wait", "wait", "wait"]), false).await.unwrap();
    let before = pid(&document).await;
    let (hanging, first, second, third) = tokio::join!(
        read(&cells, "hang", false),
        document.read_page(1),
        document.read_page(2),
        async {
            // Begun shortly before the hanging one is over its time, and so in the middle then.
            tokio::time::sleep(Duration::from_secs(2)).await;
            document.read_page(3).await
        },
    );
    assert_eq!(told(hanging), Err(Ok(OutcomeReason::Timeout)));
    for innocent in [first, second, third] {
        assert_eq!(told(innocent), Ok(()));
    }
    assert!(!lives(&before));
    let other = cells.open_document(of(&["pid"]), false).await.unwrap();
    assert_eq!(pid(&document).await, pid(&other).await, "it is not under suspicion");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_had_no_core_is_not_to_blame_for_the_time_that_it_took() {
    let limits = LimitsConfig {
        page_time: Duration::from_millis(500),
        document_time: Duration::from_secs(4),
        ..Default::default()
    };
    let (cells, _folder) = Driven { limits, ..Default::default() }.start();
    let document = cells.open_document(of(&["wait"; 6]), false).await.unwrap();
    let (stopped, other) = tokio::join!(read(&cells, "stand still", false), document.read_page(0));
    assert_eq!((told(stopped), told(other)), (Err(Err(Fault::Transient)), Ok(())));
    for page in 1..6 {
        assert_eq!(told(document.read_page(page).await), Ok(()), "nor of its document's time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_together_have_a_limit_too() {
    let limits = LimitsConfig { document_time: Duration::from_millis(1500), ..Default::default() };
    let (cells, _folder) = Driven { limits, ..Default::default() }.start();
    let document = cells.open_document(of(&["work"; 4]), false).await.unwrap();
    assert_eq!(told(document.read_page(0).await), Ok(()));
    assert_eq!(told(document.read_page(1).await), Ok(()));
    assert_eq!(told(document.read_page(2).await), Err(Ok(OutcomeReason::Timeout)));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_share_a_process_and_a_suspect_has_its_own() {
    let (cells, _folder) = Driven::default().start();
    let open = |alone| cells.open_document(of(&["pid"]), alone);
    let (one, two) = (open(false).await.unwrap(), open(false).await.unwrap());
    let (suspect, other) = (open(true).await.unwrap(), open(true).await.unwrap());
    let shared = pid(&one).await;
    assert_eq!(shared, pid(&two).await);
    let (alone, apart) = (pid(&suspect).await, pid(&other).await);
    assert!(alone != shared && apart != shared && alone != apart);
    drop(suspect);
    until_gone(&alone).await;
    assert!(lives(&shared) && lives(&apart));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_goes_on_elsewhere_after_its_process_was_killed() {
    let (cells, _folder) = Driven::default().start();
    let document = cells.open_document(of(&["pid", "pid", "wait"]), false).await.unwrap();
    let bystander = cells.open_document(of(&["pid"]), false).await.unwrap();
    let first = pid(&document).await;
    let (in_the_middle, ()) = tokio::join!(document.read_page(2), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        signal("-KILL", &first);
    });
    assert_eq!(told(in_the_middle), Ok(()));
    let second = document.read_page(1).await.unwrap().page.text();
    assert_ne!(first, second);
    assert_ne!(second, pid(&bystander).await, "either may have been what killed it");
    // Killed again, alone and from outside: not the document's fault.
    signal("-KILL", &second);
    until_gone(&second).await;
    assert_eq!(told(document.read_page(0).await), Err(Err(Fault::Transient)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_only_lay_open_when_its_process_died_is_under_no_suspicion() {
    let (cells, _folder) = Driven::default().start();
    let idle = cells.open_document(of(&["pid"]), false).await.unwrap();
    let busy = cells.open_document(of(&["pid", "wait"]), false).await.unwrap();
    let before = pid(&idle).await;
    let (guilty, innocent) = tokio::join!(read(&cells, "leave", false), busy.read_page(1));
    assert_eq!((told(guilty), told(innocent)), (Err(Err(Fault::Internal)), Ok(())));
    let other = cells.open_document(of(&["pid"]), false).await.unwrap();
    let after = pid(&idle).await;
    assert_ne!(after, before);
    assert_eq!(after, pid(&other).await, "it shares a process as before");
    assert_ne!(after, pid(&busy).await, "this one may have been what killed it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_documents_next_page_waits_in_line_while_all_cores_are_its_own() {
    let (cells, _folder) = Driven { threads: 1, ..Default::default() }.start();
    let older = cells.open_document(of(&["wait"; 5]), false).await.unwrap();
    let younger = cells.open_document(of(&["wait"; 5]), false).await.unwrap();
    let done = AtomicUsize::new(0);
    let read_all = |document, done| {
        futures::stream::iter(0..5)
            .for_each_concurrent(2, move |page| read_one(document, page, done))
    };
    let uncounted = AtomicUsize::new(0);
    tokio::select! {
        biased;
        () = read_all(&older, &uncounted) => {}
        () = read_all(&younger, &done) => panic!("the younger one ends first"),
    }
    // A third of the cores' time is not by age.
    let done = done.load(Ordering::SeqCst);
    assert!(done <= 3, "{done} of 5 pages of the younger one were read before");
}

async fn read_one(document: &OpenDocument, page: u32, done: &AtomicUsize) {
    document.read_page(page).await.unwrap();
    done.fetch_add(1, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_page_processes_are_killed() {
    let (cells, _folder) = Driven::default().start();
    for alone in [false, true] {
        let document = Arc::new(cells.open_document(of(&["pid", "hang"]), alone).await.unwrap());
        let process = pid(&document).await;
        let reading = tokio::spawn({
            let document = Arc::clone(&document);
            async move { document.read_page(1).await.map(|_| ()) }
        });
        drop(document);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(lives(&process), "alone {alone}");
        reading.abort();
        until_gone(&process).await;
    }
    assert_eq!(told(read(&cells, "pid", false).await), Ok(()), "the next document finds a place");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_page_goes_on_while_others_need_its_process() {
    let (cells, _folder) = Driven::default().start();
    let other = cells.open_document(of(&["pid", "wait"]), false).await.unwrap();
    let process = pid(&other).await;
    let reading = tokio::spawn({
        let cells = Arc::clone(&cells);
        async move { read(&cells, "hang", false).await.map(|_| ()) }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    reading.abort();
    assert_eq!(told(other.read_page(1).await), Ok(()));
    assert_eq!(told(other.read_page(1).await), Ok(()));
    assert_eq!(pid(&other).await, process);
    drop(other);
    until_gone(&process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_served_enough_is_replaced_once_it_is_empty() {
    let cpu =
        CpuConfig { documents_per_process: 2, confine: ConfinementMode::Off, ..Default::default() };
    let (cells, _folder) = Driven { cpu, ..Default::default() }.start();
    let staying = cells.open_document(of(&["pid"]), false).await.unwrap();
    let first = pid(&staying).await;
    for _ in 0..2 {
        assert_eq!(read(&cells, "pid", false).await.unwrap().page.text(), first);
    }
    let second = read(&cells, "pid", false).await.unwrap().page.text();
    assert_ne!(first, second, "a new document goes elsewhere");
    assert_eq!(pid(&staying).await, first, "one that is in it is not disturbed");
    drop(staying);
    until_gone(&first).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn files_network_and_programs_are_out_of_reach() {
    let confined = CpuConfig::default();
    assert_eq!(confined.confine, ConfinementMode::Required);
    let (cells, _folder) = Driven { cpu: confined, ..Default::default() }.start();
    let seen = read(&cells, "look around", false).await.unwrap().page;
    assert_eq!(seen.lines.len(), 7);
    for line in &seen.lines {
        assert!(line.text().ends_with(": no"), "{}", line.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_stays_within_the_smallest_configuration() {
    let limits = LimitsConfig {
        page_pixels: 1_000_000,
        document_bytes: ByteSize::from_mib(1),
        documents_in_memory: ByteSize::from_mib(1),
        ..Default::default()
    };
    let cpu = CpuConfig {
        page_memory: ByteSize::from_mib(268),
        confine: ConfinementMode::Off,
        ..Default::default()
    };
    let config = docmill_core::config::Config {
        limits: limits.clone(),
        cpu: cpu.clone(),
        ..Default::default()
    };
    config.check(Default::default()).unwrap();
    let mut less = config.clone();
    less.cpu.page_memory = ByteSize::from_mib(267);
    assert!(less.check(Default::default()).unwrap_err().to_string().contains("cpu.page_memory"));

    let (cells, _folder) =
        Driven { limits: limits.clone(), cpu: cpu.clone(), threads: 1, ..Default::default() }
            .start();
    assert_eq!(told(read(&cells, "eat", false).await), Err(Ok(OutcomeReason::TooLarge)));

    // And the real program reads the largest allowed page with that.
    let setup = ProcessSetup::new(&cpu, &limits, &OcrConfig::default(), recipe(), 1);
    let cells = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1000);
    let page = crate::reading::papers::picture(pdf(&[&content(&["Invoice number 4711"])], ""));
    assert!(page.width() * page.height() < 1_000_000 || page.width() > 1000);
    let page = image::imageops::resize(&page, 840, 1190, image::imageops::FilterType::Triangle);
    let file = crate::reading::papers::encoded(&page, image::ImageFormat::Png);
    let read = cells.open_document(file.into(), false).await.unwrap().read_page(0).await.unwrap();
    assert!(read.page.text().contains("4711"), "{}", read.page.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_page_process_is_our_fault_and_not_the_documents() {
    let setup = ProcessSetup::new(
        &CpuConfig::default(),
        &LimitsConfig::default(),
        &OcrConfig::default(),
        recipe(),
        1,
    );
    for alone in [false, true] {
        let cells =
            ProcessPool::new(ProcessProgram::Binary("/bin/false".into()), setup.clone(), 1000);
        assert_eq!(told(read(&cells, "pid", alone).await), Err(Err(Fault::Internal)));
    }
}
