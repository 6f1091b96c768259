//! Waiting is not charged to `job_timeout`, and a backlog ends in order.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_client::throttle::{CallOutcome, Governor, LimiterKey, TokenEstimate};
use docmill_core::config::{ByteSize, ThrottleConfig};
use docmill_core::model::{ClaimToken, IngestionId};
use docmill_core::work_clock::WorkClock;
use docmill_documents::ImagePdf;
use docmill_documents::sandbox::CpuPool;
use docmill_pipeline::{ByteBudget, claim_handle};
use sqlx::Row;

use crate::long_documents::{Counting, reader, scanned_page, scans};
use crate::support::documents;
use crate::support::process::Process;
use crate::support::recording_queue::RecordingQueue;
use crate::support::world::{SOON, World, until};

/// Asserts that a job which waits for this has worked for no time after an hour of it.
async fn is_off_the_clock(what: &str, wait: impl Future) {
    let clock = WorkClock::start();
    let waiting = async {
        tokio::select! {
            _ = wait => panic!("{what}: it was to wait"),
            () = tokio::time::sleep(Duration::from_secs(3600)) => {}
        }
    };
    clock.run_job(waiting).await;
    assert_eq!(clock.time_worked(), Duration::ZERO, "{what}");
}

#[tokio::test(start_paused = true)]
async fn waiting_is_not_charged_to_a_jobs_time() {
    let budget = ByteBudget::new(ByteSize(4096));
    let _taken = budget.try_reserve(4096).unwrap();
    is_off_the_clock("bytes in memory", budget.take(1)).await;

    let (id, token) = (IngestionId::random(), ClaimToken::random());
    let (claim, _renewer) = claim_handle::claim_pair(id, token, Instant::now());
    is_off_the_clock("Postgres, to renew its claim", claim.ensure_live()).await;

    let pool = CpuPool::new(1).unwrap();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let mut busy = Box::pin(pool.run(move || gate.recv().is_ok()));
    assert!(futures::poll!(busy.as_mut()).is_pending());
    is_off_the_clock("a thread for CPU work", pool.run(|| ())).await;
    release.send(()).unwrap();

    let hours = Duration::from_secs(7200);
    let throttle = ThrottleConfig { longest_wait: hours * 2, ..ThrottleConfig::default() };
    let (governor, word) = (Governor::new(throttle), |text: &str| text.to_owned());
    let key = LimiterKey { provider: word("p"), account: word("a"), model: word("m") };
    let first = governor.admit(&key, TokenEstimate::default()).await.unwrap();
    let _down = first.report_outcome(&CallOutcome::Throttled(Some(hours)));
    is_off_the_clock("a provider's turn", governor.admit(&key, TokenEstimate::default())).await;
}

/// When the documents of a world ended, in the order of their claims: seconds from the first claim.
/// Each had one attempt, with this outcome. Claims within a second count as simultaneous: batches
/// of one receive do not wait for each other.
async fn ends_in_order(world: &World, outcome: &str) -> Vec<f64> {
    let outcomes = "SELECT string_agg(DISTINCT outcome, ', ') FROM docmill.attempt";
    assert_eq!(world.scalar(outcomes).await, outcome);
    let again = "SELECT count(*)::text FROM docmill.attempt WHERE claims > 1";
    assert_eq!(world.scalar(again).await, "0", "second attempts");
    let sql = "SELECT extract(epoch FROM ended_at - min(started_at) OVER ())::float8
        FROM docmill.attempt
        ORDER BY floor(extract(epoch FROM started_at - min(started_at) OVER ())), ended_at";
    let rows = sqlx::query(sql).fetch_all(&world.pool).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Of all documents, the latest end as a multiple of its share of the whole time: the tenth of a
/// hundred documents ends by its share when a tenth of the time has passed.
fn latest_of_its_share(ends: &[f64]) -> f64 {
    let (whole, count) = (ends.iter().copied().fold(0.0, f64::max), ends.len());
    let count = f64::from(u32::try_from(count).unwrap());
    let places = (1_u32..).map(f64::from);
    let ratios = ends.iter().zip(places).map(|(end, place)| end / (whole * place / count));
    ratios.fold(0.0, f64::max)
}

async fn until_all_ended(world: &World, patience: Duration) {
    let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    until(patience, || async { world.scalar(open).await == "0" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_that_takes_far_longer_than_the_time_of_a_job_completes_in_order() {
    const DOCUMENTS: u32 = 24;
    let mut world = World::new().await;
    world.config.worker.slots = DOCUMENTS;
    // Five times what a document takes alone, a fifth of what all of them take.
    world.config.worker.job_timeout = Duration::from_secs(2);
    let page_time = Duration::from_millis(100);
    let counting = Counting { page_time, quality: 0.9, ..Counting::default() };
    let (mut ids, document) = (Vec::new(), scans(8));
    for _ in 0..DOCUMENTS {
        ids.push(world.insert("scans.pdf", document.clone()).await);
    }
    world.send_all(&ids).await;
    let worker = world.worker_reading(reader(&counting, 100).await).await;
    until_all_ended(&world, Duration::from_secs(180)).await;
    worker.stop().await;
    // The rules reader finds no invoice on these pages.
    let ends = ends_in_order(&world, "gate_refused").await;
    // The time before the first page does not count.
    let ends: Vec<f64> = ends.into_iter().map(|end| end - 2.0).collect();
    let latest = latest_of_its_share(&ends);
    assert!(latest <= 2.0, "one ended after {latest:.1} times its share: {ends:.1?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_longer_than_the_time_of_a_job_goes_on_from_the_pages_that_were_kept() {
    let mut world = World::new().await;
    world.config.worker.job_timeout = Duration::from_secs(4);
    let page_time = Duration::from_millis(100);
    let counting = Counting { page_time, quality: 0.9, ..Counting::default() };
    let id = world.submit("scans.pdf", scans(100)).await;
    let worker = world.worker_reading(reader(&counting, 100).await).await;
    until_all_ended(&world, Duration::from_secs(180)).await;
    worker.stop().await;
    let attempts = world.attempts(id).await;
    let (last, before) = attempts.split_last().unwrap();
    assert!(last != "timeout" && !before.is_empty(), "{attempts:?}");
    assert!(before.iter().all(|outcome| outcome == "transient"), "{attempts:?}");
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1", "none of them counts");
    let pages = counting.pages.load(std::sync::atomic::Ordering::SeqCst);
    // A part of the journal, and what was on its way, are read again.
    assert!(pages <= 100 + 13 * before.len(), "{pages} pages were read in {attempts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_hands_out_more_than_it_was_asked_for_costs_no_document_its_claim() {
    let mut world = World::new().await;
    world.config.worker.slots = 1;
    world.queue = Arc::new(RecordingQueue::handing_out(Arc::clone(&world.queue), 1));
    let counting = Counting { quality: 0.9, ..Counting::default() };
    let ids = [world.insert("a.pdf", scans(2)).await, world.insert("b.pdf", scans(2)).await];
    world.send_all(&ids).await;
    let worker = world.worker_reading(reader(&counting, 100).await).await;
    until_all_ended(&world, SOON).await;
    worker.stop().await;
    for id in ids {
        let mut ends = world.attempts(id).await;
        assert_eq!(ends.pop().unwrap(), "gate_refused");
        assert!(ends.iter().all(|end| end == "interrupted"), "{ends:?}");
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
    }
}

/// `scripts/load_scans.sh`: `DOCUMENTS` documents of `PAGES` scanned pages, submitted at once to
/// one worker with two cores, with three times one document's duration as job timeout.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes of reading: scripts/load_scans.sh"]
async fn a_deep_backlog_of_long_scans_completes_in_order_at_the_first_attempt() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (documents, pages) = (number("DOCMILL_LOAD_DOCUMENTS"), number("DOCMILL_LOAD_PAGES"));
    let alone = Box::pin(time_alone(pages)).await;
    eprintln!("one document of {pages} pages alone: {alone:.1?}");
    let world = World::new().await;
    submit_scans(&world, documents, pages).await;
    let limit = format!("{}s", (alone * 3).as_secs().max(1));
    let settings = [("WORKER__JOB_TIMEOUT", limit.as_str()), ("WORKER__CPU_THREADS", "2")];
    let worker = Process::worker(&world, &settings);
    until_all_ended(&world, alone * documents * 4 + Duration::from_secs(120)).await;
    drop(worker);
    let ends = ends_in_order(&world, "completed").await;
    let whole = ends.iter().copied().fold(0.0, f64::max);
    let latest = latest_of_its_share(&ends);
    eprintln!(
        "{documents} documents of {pages} pages, worker.job_timeout {limit}: all completed at \
         their first attempt in {whole:.0} s, the first after {:.0} s; the latest of them after \
         {latest:.2} times its share",
        ends.first().unwrap()
    );
    assert!(latest <= 2.0, "{ends:.0?}");
}

/// A document of `pages` pages: each the one of `samples/scan_skewed.pdf`, or a straight and clean
/// scan of an invoice, which takes a third of the time.
fn scanned_pages(pages: u32) -> Vec<u8> {
    match std::env::var("DOCMILL_LOAD_SCAN").unwrap().as_str() {
        "skewed" => skewed_pages(pages),
        "clean" => {
            let page = scanned_page(documents::invoice("INV-2026-0042"), 150);
            let mut file = ImagePdf::default();
            (1..=pages).for_each(|number| file.add_page(number, &page).unwrap());
            file.finish()
        }
        other => panic!("{other}: neither skewed nor clean"),
    }
}

fn skewed_pages(pages: u32) -> Vec<u8> {
    let mut document = lopdf::Document::load("samples/scan_skewed.pdf").unwrap();
    let first = *document.get_pages().values().next().unwrap();
    let page = document.get_object(first).unwrap().clone();
    let parent = page.as_dict().unwrap().get(b"Parent").unwrap().as_reference().unwrap();
    let mut kids = vec![lopdf::Object::Reference(first)];
    for _ in 1..pages {
        kids.push(lopdf::Object::Reference(document.add_object(page.clone())));
    }
    let parent = document.get_object_mut(parent).unwrap().as_dict_mut().unwrap();
    parent.set("Count", i64::from(pages));
    parent.set("Kids", kids);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

/// Submits documents of `pages` scanned pages, all different by a few bytes that no reader uses.
async fn submit_scans(world: &World, documents: u32, pages: u32) {
    let mut ids = Vec::new();
    let scanned = scanned_pages(pages);
    for number in 0..documents {
        let mut bytes = scanned.clone();
        bytes.extend(format!("\n%{number}").bytes());
        ids.push(world.insert("scans.pdf", bytes).await);
    }
    world.send_all(&ids).await;
}

/// How long a worker takes for one such document.
async fn time_alone(pages: u32) -> Duration {
    let world = World::new().await;
    submit_scans(&world, 1, pages).await;
    let _worker = Process::worker(&world, &[("WORKER__CPU_THREADS", "2")]);
    until_all_ended(&world, Duration::from_secs(1200)).await;
    let ends = ends_in_order(&world, "completed").await;
    Duration::from_secs_f64(ends.first().copied().unwrap())
}
