//! Limits on a page process's answers and resources, and on the number of processes.

use std::io::{PipeReader, PipeWriter};

use docmill_core::model::{PageCrop, PageText, PrintedPage, TextLine, TextWord};
use docmill_documents::sandbox::ProcessMemory;
use docmill_documents::sandbox::confine::ConfinementStatus;
use docmill_documents::sandbox::wire::{
    self, DocumentAnswer, DocumentRequest, ReadyFrame, ReplyFrame, RequestFrame,
};

use super::*;
use crate::support::page_processes::script_program;

fn setup(limits: &LimitsConfig, threads: usize) -> ProcessSetup {
    let cpu = CpuConfig { confine: ConfinementMode::Off, ..Default::default() };
    ProcessSetup::new(&cpu, limits, &OcrConfig::default(), recipe(), threads)
}

/// A compromised page process: it answers every request with a page of `words` words, declared
/// within the limits.
fn liar(words: usize) -> ProcessProgram {
    let serve = move |mut input: PipeReader, mut output: PipeWriter| {
        wire::read_frame::<ProcessSetup>(&mut input, 0).unwrap();
        let ready = ReadyFrame { confinement: ConfinementStatus::default() };
        wire::write_frame(&mut output, &ready, &[]).unwrap();
        while let Ok(Some((asked, _))) = wire::read_frame::<RequestFrame>(&mut input, 1 << 20) {
            let word = TextWord {
                text: "x".into(),
                bounding_box: Default::default(),
                confidence: 1.0,
                unwitnessed: false,
            };
            let lines = vec![TextLine { words: vec![word; words] }];
            let page = Box::new(PageText::from_native(1, (1.0, 1.0), 1.0, lines));
            let answer = match asked.request {
                DocumentRequest::Open { .. } => DocumentAnswer::Opened {
                    pages: 1,
                    members: Vec::new(),
                    members_left_out: false,
                    einvoice: None,
                },
                DocumentRequest::Read { .. } | DocumentRequest::LookAgain { .. } => {
                    DocumentAnswer::Read { page, image: None }
                }
                DocumentRequest::Show { .. } | DocumentRequest::ReadLocally { .. } => {
                    DocumentAnswer::Known { page }
                }
                DocumentRequest::Print { .. } => {
                    let page = PrintedPage { text: *page, shows_more: false };
                    DocumentAnswer::Printed { page: Box::new(page) }
                }
                DocumentRequest::Reread { .. } => DocumentAnswer::Reread { lines: page.lines },
                DocumentRequest::Draw { .. }
                | DocumentRequest::Paint { .. }
                | DocumentRequest::Copy { .. }
                | DocumentRequest::Cut { .. }
                | DocumentRequest::Fields { .. }
                | DocumentRequest::Member { .. }
                | DocumentRequest::Close { .. } => continue,
            };
            // The worker may have had enough.
            let _gone = wire::write_frame(&mut output, &ReplyFrame { id: asked.id, answer }, &[]);
        }
    };
    ProcessProgram::Thread(Arc::new(serve))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_counts_words_itself() {
    let limits = LimitsConfig { page_words: 100, ..Default::default() };
    for (words, expected) in [(100, Ok(())), (101, Err(Ok(OutcomeReason::TooLarge)))] {
        let cells = ProcessPool::new(liar(words), setup(&limits, 1), 1000);
        let document = cells.open_document(of(&["pid"]), false).await.unwrap();
        assert_eq!(told(document.read_page(0).await), expected, "{words}");
        let printed = document.printed_page(0).await.map(|_| ());
        assert_eq!(printed.is_ok(), expected.is_ok(), "{words}");
        let shown = document.show_page(0, docmill_core::model::PageViewMode::Facts).await;
        assert_eq!(shown.is_ok(), expected.is_ok(), "{words}");
        let piece = PageCrop::from_shares([0.0, 0.0, 0.5, 0.5]).unwrap();
        let reread = document.reread_crop(0, false, piece).await;
        assert_eq!(reread.is_ok(), expected.is_ok(), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_over_the_frame_limit_is_too_large_and_kills_no_process() {
    let (cells, _folder) = Driven::default().start();
    let other = cells.open_document(of(&["pid"]), false).await.unwrap();
    let before = pid(&other).await;
    let long = read(&cells, "say five megabytes", false).await;
    assert_eq!(told(long), Err(Ok(OutcomeReason::TooLarge)));
    assert_eq!(pid(&other).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_one_document_has_memory_for_one_page_and_reads_one_at_a_time() {
    let limits = LimitsConfig::default();
    let memory = ProcessMemory::unbounded(&setup(&limits, 4));
    let (cells, _folder) = Driven::default().start();
    for (alone, bytes) in [(false, memory.shared_bytes), (true, memory.own_bytes)] {
        let document = cells.open_document(of(&["limit", "threads"]), alone).await.unwrap();
        let limit = document.read_page(0).await.unwrap().page.text();
        assert_eq!(limit, bytes.to_string(), "alone {alone}");
        let threads = document.read_page(1).await.unwrap().page.text();
        assert_eq!(threads, if alone { "1" } else { "4" }, "alone {alone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_memory_for_two_shared_processes_there_is_never_more_than_one() {
    let (program, _folder) = script_program("");
    let setup = setup(&LimitsConfig::default(), 2);
    let least = ProcessMemory::within(0, &setup);
    assert_eq!((least.shared_processes, least.own_processes), (1, 1));
    let cells = ProcessPool::within(least, program, setup, 2);
    let staying = cells.open_document(of(&["pid"]), false).await.unwrap();
    let first = pid(&staying).await;
    for _ in 0..2 {
        assert_eq!(read(&cells, "pid", false).await.unwrap().page.text(), first);
    }
    let second = read(&cells, "pid", false).await.unwrap().page.text();
    assert_ne!(first, second);
    assert!(!lives(&first), "it was gone before the second was started");
    assert_eq!(pid(&staying).await, second, "its document goes on in the second");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_need_a_process_of_their_own_wait_for_the_memory_of_one() {
    let (program, _folder) = script_program("");
    let setup = setup(&LimitsConfig::default(), 2);
    let cells = ProcessPool::within(ProcessMemory::within(0, &setup), program, setup, 1000);
    let first = cells.open_document(of(&["pid"]), true).await.unwrap();
    let process = pid(&first).await;
    let mut second = Box::pin(cells.open_document(of(&["pid"]), true));
    let early = tokio::time::timeout(Duration::from_millis(500), second.as_mut()).await;
    assert!(early.is_err(), "two of them are more than there is memory for");
    drop(first);
    let second = second.await.unwrap();
    assert!(!lives(&process) && pid(&second).await != process);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_is_asked_to_end_page_processes_before_the_worker() {
    let setup = setup(&LimitsConfig::default(), 1);
    let cells = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1000);
    let _open = cells.open_document(of(&["pid"]), false).await.unwrap();
    let own = std::process::id().to_string();
    let children = std::process::Command::new("ps").args(["-o", "pid=", "--ppid", &own]).output();
    let children = String::from_utf8(children.unwrap().stdout).unwrap();
    let scores: Vec<String> = children
        .split_whitespace()
        .filter_map(|child| std::fs::read_to_string(format!("/proc/{child}/oom_score_adj")).ok())
        .collect();
    assert!(scores.iter().any(|score| score.trim() == "1000"), "{scores:?}");
}
