//! Documents of many pages: they stream, what was read of them survives the worker, and what was
//! repaired is kept.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::io::{Cursor, PipeReader, PipeWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill::app::App;
use docmill_core::config::Config;
use docmill_core::model::{
    BoundingBox, EncodedImage, ImageEncoding, ImageHeader, IngestionId, PageReadResult, PageSource,
    PageText, PageUsage, ReadRecipe, TextLine, TextWord,
};
use docmill_documents::reading::serve::{self, PageError, PageReader, PageReaderFactory};
use docmill_documents::sandbox::confine::ConfinementStatus;
use docmill_documents::sandbox::{ProcessPool, ProcessProgram};
use docmill_documents::{ImagePdf, PageRaster, ParsedDocument};
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_operations::process::LocalPipeline;
use docmill_pipeline::{
    DocumentReader, PageSink, PipelineServices, ReadOptions, ReadRequest, RemoteOcr, SecondLooks,
    StepError,
};
use docmill_storage::folder::FolderStore;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, keys};
use docmill_testkit::sqs::Action;
use serde_json::Value;

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// Renders the page of a PDF as a scan at `dpi` dots per inch.
pub(crate) fn scanned_page(pdf: Vec<u8>, dpi: u16) -> EncodedImage {
    let bytes = documents::scan(pdf, f32::from(dpi));
    let format = image::ImageFormat::Png;
    let reader = image::ImageReader::with_format(Cursor::new(&bytes), format);
    let (width, height) = reader.into_dimensions().unwrap();
    EncodedImage {
        header: ImageHeader { width, height, dpi: dpi.into(), encoding: ImageEncoding::Png },
        bytes,
    }
}

fn text_page(text: &str) -> EncodedImage {
    scanned_page(documents::pdf(&[(60.0, 60.0, text)]), 100)
}

/// A PDF of `pages` scans, each with its number on it.
pub(crate) fn scans(pages: u32) -> Vec<u8> {
    let mut file = ImagePdf::default();
    for number in 1..=pages {
        let page = text_page(&format!("Page number {number} of a long document"));
        file.add_page(number, &page).unwrap();
    }
    file.finish()
}

/// A reader that ignores pages, returns the same for each, and counts them.
#[derive(Clone, Default)]
pub(crate) struct Counting {
    pub(crate) pages: Arc<AtomicUsize>,
    pub(crate) quality: f32,
    /// How long a page takes.
    pub(crate) page_time: Duration,
    /// Pages that it claims to have repaired.
    pub(crate) repaired: BTreeSet<u32>,
}

impl PageReader for Counting {
    fn read_page(
        &mut self,
        _: &ParsedDocument,
        index: u32,
        _: &ReadRecipe,
    ) -> Result<PageReadResult, PageError> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        std::thread::park_timeout(self.page_time);
        let number = index + 1;
        let bounding_box = BoundingBox { x: 9.0, y: 9.0, w: 90.0, h: 9.0 };
        let word = TextWord {
            text: format!("word-{number}").into(),
            bounding_box,
            confidence: 0.6,
            unwitnessed: false,
        };
        let repaired = self.repaired.contains(&number);
        let page = PageText {
            number,
            source: PageSource::Ocr,
            width: 827.0,
            height: 1169.0,
            quality: self.quality,
            defects: Vec::new(),
            languages: Vec::new(),
            repaired,
            provider: None,
            codes: Vec::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            lines: vec![TextLine { words: vec![word] }],
        };
        let repaired = repaired.then(|| text_page(&format!("Repaired page {number}")));
        Ok(PageReadResult { page, repaired })
    }

    fn read_crop(
        &mut self,
        _: &ParsedDocument,
        _: &PageRaster,
        _: &ReadRecipe,
    ) -> Result<Vec<TextLine>, PageError> {
        Err(docmill_core::fault::Error::internal("nobody asks for a piece here").into())
    }
}

/// A reader around it, in a thread of this process.
pub(crate) async fn reader(counting: &Counting, dpi: u32) -> Arc<DocumentReader> {
    let mut config = Config::default();
    config.ocr.dpi = dpi;
    config.cpu.program = crate::support::page_processes::docmill();
    let usual = App::new(config.clone()).pipeline_services().await.unwrap().reader;
    let counting = counting.clone();
    let served = move |input: PipeReader, output: PipeWriter| {
        let counting = counting.clone();
        let prepare = move |_: &docmill_documents::sandbox::ProcessSetup| {
            let make: PageReaderFactory = Box::new(move || Ok(Box::new(counting.clone())));
            Ok((ConfinementStatus::default(), make))
        };
        serve::serve_pages(input, output, prepare).unwrap();
    };
    let recipe = usual.recipe.clone();
    let (cpu, limits, ocr) = (&config.cpu, &config.limits, &config.ocr);
    let setup = docmill_documents::sandbox::ProcessSetup {
        threads: 2,
        limits: limits.clone(),
        recipe: recipe.clone(),
        ocr: ocr.clone(),
        einvoice_rules: std::path::PathBuf::new(),
        page_memory: cpu.page_memory,
        address_space: 1 << 40,
        permissions: None,
        requires_confinement: false,
        sharing: docmill_core::config::ProcessSharing::All,
    };
    let processes = ProcessPool::new(ProcessProgram::Thread(Arc::new(served)), setup, 1000);
    let remote_ocr = RemoteOcr::default();
    Arc::new(DocumentReader {
        processes,
        ocr: Arc::clone(&usual.ocr),
        recipe,
        remote_ocr,
        second_looks: SecondLooks::default(),
    })
}

/// Notes how many pages were begun when each was kept.
struct Noting {
    pages: Arc<AtomicUsize>,
    begun: Vec<usize>,
}

#[async_trait]
impl PageSink for Noting {
    async fn store_page(&mut self, _: &PageText, _: Option<EncodedImage>) -> Result<(), StepError> {
        self.begun.push(self.pages.load(Ordering::SeqCst));
        Ok(())
    }

    async fn after_call(&mut self, _: &PageUsage, _: bool) -> Result<(), StepError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_handed_on_while_later_ones_have_not_been_looked_at() {
    let counting = Counting { quality: 0.9, ..Counting::default() };
    let reader = reader(&counting, 100).await;
    let mut sink = Noting { pages: counting.pages, begun: Vec::new() };
    let document = reader.open_document(scans(30).into(), false).await.unwrap();
    let (finished, options) = (Vec::new(), ReadOptions::default());
    let reading = ReadRequest { document, sha256: "sha".to_owned(), finished, options };
    let transcript = reader.read_remaining(reading, &mut sink).await.unwrap();
    let numbers: Vec<u32> = transcript.pages.iter().map(|page| page.number).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<u32>>());
    assert_eq!(sink.begun.len(), 30);
    for (kept, begun) in sink.begun.iter().enumerate() {
        let between = begun - kept;
        assert!(between <= reader.max_parallel_pages(), "{between} pages in between after {kept}");
    }
}

/// The object and its version.
async fn object(store: &dyn ObjectStore, key: &str) -> (Vec<u8>, Etag) {
    match store.get(key, GetOptions { at_most: 1 << 24, if_match: None }).await.unwrap() {
        GetResult::Found(object) => (object.bytes.to_vec(), object.etag),
        other => panic!("{key}: {other:?}"),
    }
}

async fn parts(world: &World, id: IngestionId) -> Vec<String> {
    let entries = world.store.list(&keys::page_parts_prefix(id), None, 100).await.unwrap();
    entries.into_iter().map(|entry| entry.key).collect()
}

/// Replaces every word of the stored finished pages by `kept`, to distinguish them from newly read
/// pages. Returns their numbers.
async fn mark(world: &World, id: IngestionId) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for key in parts(world, id).await {
        let (bytes, etag) = object(world.store.as_ref(), &key).await;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap();
        let rest = bytes.get(line.len()..).unwrap();
        let mut head: Value = serde_json::from_slice(line).unwrap();
        for page in head.get_mut("pages").unwrap().as_array_mut().unwrap() {
            numbers.insert(page.get("number").unwrap().as_u64().unwrap());
            for line in page.get_mut("lines").unwrap().as_array_mut().unwrap() {
                for word in line.get_mut("words").unwrap().as_array_mut().unwrap() {
                    *word.get_mut("text").unwrap() = "kept".into();
                }
            }
        }
        let marked = [serde_json::to_vec(&head).unwrap().as_slice(), rest].concat();
        world.store.put_if_match(&key, &etag, marked.into()).await.unwrap();
    }
    numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_costs_no_page_that_was_kept_and_no_part_outlives_the_transcript() {
    let world = World::new().await;
    let settings = [("OCR__DPI", "100"), ("LLM__PROVIDER", "none")];
    let id = world.submit("long.pdf", scans(24)).await;
    let mut first = Process::worker(&world, &settings);
    until(SOON * 2, || async { !parts(&world, id).await.is_empty() }).await;
    first.kill();
    assert_eq!(world.column(id, "transcription_file_path").await, None, "in the middle");
    let kept = mark(&world, id).await;
    assert!((1..24).contains(&kept.len()), "{kept:?}");
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
    let _second = Process::worker(&world, &settings);
    until(SOON * 2, || async { world.attempts(id).await.len() == 2 }).await;
    assert_eq!(world.attempts(id).await.first().unwrap(), "crashed");
    let (transcript, _) = object(world.store.as_ref(), &keys::transcription_key(id)).await;
    let transcript: Value = serde_json::from_slice(&transcript).unwrap();
    let pages = transcript.get("pages").unwrap().as_array().unwrap();
    assert_eq!(pages.len(), 24);
    for (number, page) in (1..).zip(pages) {
        let is_marked = page.to_string().contains("\"kept\"");
        assert_eq!(is_marked, kept.contains(&number), "page {number} of {kept:?}");
    }
    until(SOON, || async { parts(&world, id).await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_reads_no_page_and_a_changed_option_of_ocr_reads_it_again() {
    let world = World::new().await;
    let counting = Counting { quality: 0.9, ..Counting::default() };
    let id = world.submit("scan.pdf", scans(2)).await;
    let by = AuditNote { operator: "test".to_owned(), why: "a test".to_owned() };
    for (dpi, read) in [(100, 2), (100, 2), (120, 4)] {
        let worker = world.worker_reading(reader(&counting, dpi).await).await;
        until(SOON, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
        worker.stop().await;
        assert_eq!(counting.pages.load(Ordering::SeqCst), read, "at {dpi} dpi");
        operators::reopen_ingestions(&world.database.db(), &[id], &by).await.unwrap();
        world.send(id.to_string()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_a_dead_claim_left_beside_its_transcript_go_with_the_next_claim() {
    let world = World::new().await;
    let counting = Counting { quality: 0.9, ..Counting::default() };
    let id = world.submit("scan.pdf", scans(2)).await;
    let by = AuditNote { operator: "test".to_owned(), why: "a test".to_owned() };
    for claim in 1..=2 {
        let worker = world.worker_reading(reader(&counting, 100).await).await;
        until(SOON, || async { world.attempts(id).await.len() == claim }).await;
        worker.stop().await;
        assert_eq!(parts(&world, id).await, Vec::<String>::new(), "claim {claim}");
        // As if this claim had died before it could remove them.
        let left = keys::page_part_key(id, 1, 1);
        world.store.put_if_absent(&left, "{}\n".into()).await.unwrap();
        operators::reopen_ingestions(&world.database.db(), &[id], &by).await.unwrap();
        world.send(id.to_string()).await;
    }
    assert_eq!(counting.pages.load(Ordering::SeqCst), 2, "the transcript was used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_page_is_kept_as_repaired_with_its_score_and_paths_and_goes_on_to_the_gate() {
    let world = World::new().await;
    let repaired = BTreeSet::from([2, 12]);
    let counting = Counting { quality: 0.4, repaired, ..Counting::default() };
    let id = world.submit("bad.pdf", scans(12)).await;
    let worker = world.worker_reading(reader(&counting, 100).await).await;
    until(SOON, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
    worker.stop().await;
    let reason = world.column(id, "reason").await;
    assert_eq!(reason.as_deref(), Some("gate_refused"), "it got as far as the gate");
    assert_eq!(
        world.column(id, "round(transcription_quality_score::numeric, 2)").await.unwrap(),
        "0.40"
    );
    assert_eq!(
        world.column(id, "transcription_file_path").await,
        Some(keys::transcription_key(id))
    );
    let path = keys::preprocessed_key(id, "pdf");
    assert_eq!(world.column(id, "preprocessed_file_path").await, Some(path.clone()));
    let (file, _) = object(world.store.as_ref(), &path).await;
    let sha256 = world.column(id, "preprocessed_sha256").await.unwrap();
    let (transcript, _) = object(world.store.as_ref(), &keys::transcription_key(id)).await;
    let transcript: Value = serde_json::from_slice(&transcript).unwrap();
    let said = transcript.get("preprocessed").unwrap();
    assert_eq!(*said, serde_json::json!({"path": path, "sha256": sha256, "pages": [2, 12]}));
    let shown = lopdf::Document::load_mem(&file).unwrap();
    assert_eq!(shown.get_pages().len(), 2);
    assert!(parts(&world, id).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_pages_are_deleted_with_the_attempts_and_those_of_live_rows_stay() {
    let world = World::new().await;
    let by = AuditNote { operator: "test".to_owned(), why: "a test".to_owned() };
    let (ledger, db) = (world.ledger().await, world.database.db());
    let terms = docmill_ledger::ClaimTerms {
        worker: "other".to_owned(),
        lease: Duration::from_secs(600),
        crash_limit: 3,
    };
    let mut ids = Vec::new();
    for name in ["cancelled.pdf", "live.pdf"] {
        let id = world.insert(name, documents::invoice(name)).await;
        ledger.claim(&[id], &terms).await.unwrap();
        let key = keys::page_part_key(id, 1, 1);
        world.store.put_if_absent(&key, "{}\n".into()).await.unwrap();
        ids.push(id);
    }
    operators::cancel_ingestions(&db, &ids[..1], &by).await.unwrap();
    let backends = docmill_operations::janitor::MaintenanceBackends {
        db,
        queue: Arc::clone(&world.queue),
        store: Arc::clone(&world.store),
    };
    let maintenance =
        docmill_operations::janitor::Maintenance::new(backends, &world.config, "test".to_owned());
    let left = || async {
        let mut left = Vec::new();
        for id in &ids {
            left.push(
                world.store.list(&keys::page_parts_prefix(*id), None, 9).await.unwrap().len(),
            );
        }
        left
    };
    assert_eq!(maintenance.run_pass(false).await.failed, []);
    assert_eq!(left().await, [1, 1], "an operator may still reopen it");
    world.pass(world.config.janitor.row_retention * 2).await;
    assert_eq!(maintenance.run_pass(false).await.failed, []);
    assert_eq!(left().await, [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluations_cache_is_used_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting { quality: 0.9, ..Counting::default() };
    let reader = reader(&counting, 100).await;
    let mut config = Config::default();
    config.cpu.program = crate::support::page_processes::docmill();
    let (one, other) = (Bytes::from(scans(3)), Bytes::from(scans(2)));
    let mut texts = Vec::new();
    for document in [&one, &one, &other] {
        let services = App::new(config.clone()).pipeline_services().await.unwrap();
        let services = PipelineServices { reader: Arc::clone(&reader), ..services };
        let store = Arc::new(FolderStore::open(folder.path()).await.unwrap());
        let pipeline = LocalPipeline::new(services).keeping_artefacts(store);
        let done = pipeline.process_file(Path::new("scans.pdf"), document.clone()).await.unwrap();
        texts.push(done.transcript.unwrap().full_text());
    }
    assert_eq!(counting.pages.load(Ordering::SeqCst), 3 + 2, "each page was read once");
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}
