//! Documents of many pages: they stream, and what was read of them survives the worker.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use docmill::config::{LimitsConfig, OcrConfig};
use docmill::cpu::Pool;
use docmill::db::operators::{self, By};
use docmill::fault;
use docmill::model::{Encoding, IngestionId, PageText, RepairedPage};
use docmill::ocr::{Ocr, PageImage, Reading as OcrReading};
use docmill::pages::ImagePdf;
use docmill::pipeline::{PageSink, Reader, Reading, StepError};
use docmill::store::{Fetch, Get, keys};
use docmill_testkit::sqs::Action;

use crate::support::documents;
use crate::support::process::{Process, calls};
use crate::support::world::{SOON, World, until};

/// A PDF of so many scans, each with its own number on it.
fn scans(pages: u32) -> Vec<u8> {
    let mut file = ImagePdf::default();
    for number in 1..=pages {
        let text = format!("Page number {number} of a long document");
        let png = documents::scan(documents::pdf(&[(60.0, 60.0, &text)]), 100.0);
        let (width, height) =
            image::ImageReader::with_format(Cursor::new(&png), image::ImageFormat::Png)
                .into_dimensions()
                .unwrap();
        let page = RepairedPage { width, height, dpi: 100, encoding: Encoding::Png, bytes: png };
        file.add(number, &page).unwrap();
    }
    file.finish()
}

/// Counts the pages that were handed over for reading.
#[derive(Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Ocr for Counting {
    fn name(&self) -> String {
        "counting".to_owned()
    }

    fn identity(&self) -> String {
        "counting".to_owned()
    }

    async fn read(&self, page: PageImage, _alone: bool) -> fault::Result<OcrReading> {
        self.0.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let word = docmill::model::Word {
            text: format!("{}x{}", page.width, page.height),
            bounding_box: docmill::model::BoundingBox { x: 9.0, y: 9.0, w: 90.0, h: 9.0 },
            confidence: 0.9,
        };
        let lines = vec![docmill::model::Line { words: vec![word] }];
        Ok(OcrReading { lines, languages: Vec::new() })
    }
}

/// Notes how many pages were handed over when each was kept.
struct Noting {
    ocr: Arc<Counting>,
    begun: Vec<usize>,
}

#[async_trait]
impl PageSink for Noting {
    async fn keep(&mut self, _: &PageText, _: Option<RepairedPage>) -> Result<(), StepError> {
        self.begun.push(self.ocr.0.load(Ordering::SeqCst));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_handed_on_while_later_ones_have_not_been_looked_at() {
    let ocr = Arc::new(Counting::default());
    let pool = Arc::new(Pool::new(2).unwrap());
    let reader = Reader {
        pool,
        ocr: Arc::clone(&ocr) as Arc<dyn Ocr>,
        limits: LimitsConfig::default(),
        ocr_config: OcrConfig { dpi: 100, ..OcrConfig::default() },
    };
    let mut sink = Noting { ocr, begun: Vec::new() };
    let (bytes, sha256) = (scans(30).into(), "sha".to_owned());
    let reading = Reading { bytes, sha256, alone: false, finished: Vec::new() };
    let transcript = reader.read_on(reading, &mut sink).await.unwrap();
    let numbers: Vec<u32> = transcript.pages.iter().map(|page| page.number).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<u32>>());
    assert_eq!(sink.begun.len(), 30);
    for (kept, begun) in sink.begun.iter().enumerate() {
        let between = begun - kept;
        assert!(between <= reader.at_once(), "{between} pages in between after {kept}");
    }
}

/// A program that looks like Tesseract, notes every page it is asked for, and hangs from the page
/// after `free` on as long as `hang` exists.
fn stopping_tesseract(folder: &Path, free: usize) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("tesseract");
    let (hang, calls) = (folder.join("hang"), folder.join("calls"));
    let text = format!(
        "#!/bin/sh\n\
         case \"$*\" in *--version*|*--list-langs*) exec tesseract \"$@\";; esac\n\
         echo $$ >> '{calls}'\n\
         while [ -e '{hang}' ] && [ $(wc -l < '{calls}') -gt {free} ]; do sleep 0.1; done\n\
         exec tesseract \"$@\"\n",
        calls = calls.display(),
        hang = hang.display(),
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// The numbers of the pages that are kept in the store.
async fn kept(world: &World, id: IngestionId) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for entry in world.store.list(&keys::page_parts(id), None, 100).await.unwrap() {
        let what = Get { at_most: 1 << 24, if_match: None };
        let Fetch::Found(part) = world.store.get(&entry.key, what).await.unwrap() else {
            panic!("{} is gone", entry.key)
        };
        let head = part.bytes.split(|byte| *byte == b'\n').next().unwrap();
        let head: serde_json::Value = serde_json::from_slice(head).unwrap();
        let pages = head.get("pages").and_then(|pages| pages.as_array()).unwrap();
        numbers.extend(pages.iter().map(|page| page.get("number").unwrap().as_u64().unwrap()));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_costs_no_page_that_was_kept_and_no_part_outlives_the_transcript() {
    let world = World::new().await;
    let programs = tempfile::tempdir().unwrap();
    let program = stopping_tesseract(programs.path(), 24);
    std::fs::write(programs.path().join("hang"), "").unwrap();
    let settings = [("OCR__TESSERACT", program.to_str().unwrap()), ("OCR__DPI", "100")];
    let id = world.submit("long.pdf", scans(30)).await;
    let mut first = Process::worker(&world, &settings);
    until(SOON * 2, || async { kept(&world, id).await.len() >= 20 }).await;
    first.kill();
    let survived = kept(&world, id).await.len();
    std::fs::remove_file(programs.path().join("hang")).unwrap();
    std::fs::remove_file(programs.path().join("calls")).unwrap();
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
    let _second = Process::worker(&world, &settings);
    until(SOON, || async { world.attempts(id).await.len() == 2 }).await;
    assert_eq!(calls(programs.path()), 30 - survived, "each of the others once");
    assert_eq!(world.attempts(id).await.first().unwrap(), "crashed");
    assert_eq!(world.column(id, "pages").await.unwrap(), "30");
    until(SOON, || async { kept(&world, id).await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_reads_no_page_and_a_changed_option_of_ocr_reads_it_again() {
    let world = World::new().await;
    let programs = tempfile::tempdir().unwrap();
    let program = stopping_tesseract(programs.path(), 1_000_000);
    let id = world.submit("scan.png", documents::scan(documents::invoice("O-7"), 150.0)).await;
    let by = By { operator: "test".to_owned(), why: "a test".to_owned() };
    let db = world.database.db();
    // The last one reads with another set of languages.
    for (languages, read) in [("eng", 1), ("eng", 1), ("eng,deu", 2)] {
        let languages = languages.split(',').map(str::to_owned).collect::<Vec<_>>();
        let worker = world
            .worker_with(|config| {
                config.ocr.tesseract.clone_from(&program);
                config.ocr.languages.clone_from(&languages);
            })
            .await;
        until(SOON, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
        worker.stop().await;
        assert_eq!(calls(programs.path()), read, "with {languages:?}");
        assert!(operators::reopen(&db, &[id], &by).await.is_ok());
        world.send(id.to_string()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_nobody_came_back_for_go_with_the_attempts_and_those_of_live_rows_stay() {
    let world = World::new().await;
    let by = By { operator: "test".to_owned(), why: "a test".to_owned() };
    let (ledger, db) = (world.ledger().await, world.database.db());
    let terms = docmill::ledger::ClaimTerms {
        worker: "other".to_owned(),
        lease: Duration::from_secs(600),
        crash_limit: 3,
    };
    let mut ids = Vec::new();
    for name in ["cancelled.pdf", "live.pdf"] {
        let id = world.insert(name, documents::invoice(name)).await;
        ledger.claim(&[id], &terms).await.unwrap();
        let key = keys::page_part(id, 1, 1);
        world.store.put_if_absent(&key, "{}\n".into()).await.unwrap();
        ids.push(id);
    }
    operators::cancel(&db, &ids[..1], &by).await.unwrap();
    let maintenance = docmill::ops::janitor::Maintenance {
        db,
        queue: Arc::clone(&world.queue),
        store: Arc::clone(&world.store),
        config: world.config.janitor.clone(),
        crash_limit: 3,
        holder: "test".to_owned(),
    };
    let left = || async {
        let mut left = Vec::new();
        for id in &ids {
            left.push(world.store.list(&keys::page_parts(*id), None, 9).await.unwrap().len());
        }
        left
    };
    maintenance.pass(false).await.unwrap();
    assert_eq!(left().await, [1, 1], "an operator may still reopen it");
    world.pass(world.config.janitor.row_retention * 2).await;
    maintenance.pass(false).await.unwrap();
    assert_eq!(left().await, [0, 1]);
}
