//! Whole workers that read by providers: what a throttled burst, a repair and a `kill -9` cost.

use docmill_core::config::OcrProvider::DocumentAi as Google;
use docmill_core::config::{CostConfig, ModelPrice};
use docmill_core::model::{DocumentId, IngestionId};
use docmill_storage::{GetOptions, GetResult, keys};
use docmill_testkit::document_ai::{Said, Script, Seen, Server, Trouble};
use docmill_testkit::sqs::Action;
use docmill_testkit::textract::{DETECT, EXPENSE, File, GET, START};
use serde_json::Value;

use super::*;
use crate::support::moto::Moto;
use crate::support::process::Process;
use crate::support::world::{SOON, World, s3_client, until};

/// Settings of a worker that reads by this server alone.
fn reads_by(
    server: &Server,
    folder: &tempfile::TempDir,
) -> impl Fn(&mut docmill_core::config::Config) {
    let mut settings = document_ai_config(server);
    settings.credentials = key_file(server, folder);
    move |config| {
        config.ocr.providers = vec![Google];
        config.ocr.document_ai = settings.clone();
        config.ocr.dpi = 100;
    }
}

async fn is_over(world: &World, id: IngestionId) -> bool {
    world.column(id, "status").await.unwrap() != "in-progress"
}

async fn transcript(world: &World, id: IngestionId) -> Value {
    let what = GetOptions { at_most: 1 << 24, if_match: None };
    match world.store.get(&keys::transcription_key(id), what).await.unwrap() {
        GetResult::Found(object) => serde_json::from_slice(&object.bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_burst_ends_with_every_document_read_and_no_attempt_counted_for_it() {
    let world = World::new().await;
    let burst = Script::default().troubled(vec![Trouble::throttled(Some("0.2")); 15]);
    let server = Server::start(burst).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = reads_by(&server, &folder);
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(world.submit(&format!("{number}.pdf"), pictures::scans(1)).await);
    }
    let worker = world
        .worker_with(|config| {
            settings(config);
            // No wait is short: the message is hidden for each.
            config.throttle.longest_wait = Duration::ZERO;
        })
        .await;
    for id in &ids {
        world.pass_until(|| async { is_over(&world, *id).await }).await;
    }
    worker.stop().await;
    let mut throttled = 0;
    for id in ids {
        let mut ends = world.attempts(id).await;
        let last = ends.pop().unwrap();
        assert!(
            ends.iter().all(|end| end == "throttled") && last != "throttled",
            "{ends:?} {last}"
        );
        throttled += ends.len();
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
        let reason = world.column(id, "reason").await;
        assert_eq!(reason.as_deref(), Some("gate_refused"), "it was read, and got to the gate");
    }
    assert!(throttled >= 8, "the burst was seen: {throttled}");
    assert_eq!(server.read().len(), 8, "no page was paid for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_repaired_picture_that_was_read_is_stored_with_its_path_and_score() {
    let world = World::new().await;
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let script = Script::default().reading(move |seen| {
        let first = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        Said { score: if first { 0.3 } else { 0.8 }, ..Said::of_size(seen) }
    });
    let server = Server::start(script).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let id = world.submit("dark.pdf", pictures::scans_on(110, 1)).await;
    let worker = world.worker_with(reads_by(&server, &folder)).await;
    until(SOON, || async { is_over(&world, id).await }).await;
    worker.stop().await;
    let path = keys::preprocessed_key(id, "pdf");
    assert_eq!(world.column(id, "preprocessed_file_path").await, Some(path.clone()));
    let score = "round(transcription_quality_score::numeric, 2)";
    assert_eq!(world.column(id, score).await.unwrap(), "0.80");
    let stored = transcript(&world, id).await;
    assert_eq!(stored.pointer("/preprocessed/path").unwrap(), path.as_str());
    let page = stored.pointer("/pages/0").unwrap();
    assert_eq!(page.pointer("/provider/name").unwrap(), "document_ai");
    assert!(page.get("repaired").unwrap().as_bool().unwrap());
    assert!(page.pointer("/provider/provisional").is_none());
    assert_eq!(stored.get("provider").unwrap(), "document_ai");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_written_down_with_their_price_and_a_spent_budget_sends_no_further_one() {
    let world = World::new().await;
    let server = Server::start(Script::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = reads_by(&server, &folder);
    let price = ModelPrice {
        provider: "document_ai".to_owned(),
        from: "2026-01-01".to_owned(),
        pages: "1.5".parse().unwrap(),
        ..ModelPrice::default()
    };
    let worker = world
        .worker_with(|config| {
            settings(config);
            // Less than what three pages cost.
            let daily_budget = "0.004".parse().unwrap();
            config.cost = CostConfig { daily_budget, price: vec![price], ..CostConfig::default() };
        })
        .await;
    let first = world.submit("first.pdf", pictures::scans(3)).await;
    until(SOON, || async { is_over(&world, first).await }).await;
    let rows = "SELECT string_agg(concat_ws(' ', provider, model, calls, pages, cost_nanos), ';') \
                FROM docmill.spending";
    assert_eq!(world.scalar(rows).await, "document_ai abc123 1 3 4500000");
    let second = world.submit("second.pdf", pictures::scans(1)).await;
    until(SOON, || async { world.attempts(second).await == ["over_budget"] }).await;
    worker.stop().await;
    assert_eq!(server.read().len(), 3, "a page was sent beyond the budget");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_for_pages_is_a_span_below_the_reading_and_says_nothing_of_them() {
    let collector = docmill_testkit::otlp::Collector::start().await.unwrap();
    let world = World::new().await;
    let troubles = [Trouble::refused(500, "INTERNAL")];
    let server = Server::start(Script::default().troubled(troubles)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, traces) = (server.endpoint(), collector.endpoint());
    let key = key_file(&server, &folder);
    let settings = [
        ("OCR__PROVIDERS", "document_ai"),
        ("OCR__DPI", "100"),
        ("OCR__DOCUMENT_AI__PROJECT", "project-1"),
        ("OCR__DOCUMENT_AI__PROCESSOR", "abc123"),
        ("OCR__DOCUMENT_AI__ENDPOINT", endpoint.as_str()),
        ("OCR__DOCUMENT_AI__CREDENTIALS", key.to_str().unwrap()),
        ("TELEMETRY__OTLP_ENDPOINT", traces.as_str()),
    ];
    let id = world.submit("scan.pdf", pictures::scans(1)).await;
    let mut worker = Process::worker(&world, &settings);
    until(SOON, || async { is_over(&world, id).await }).await;
    world.until_empty().await;
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    let spans = collector.spans();
    let reading = spans.iter().find(|span| span.name == "transcribe").unwrap();
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "process document_ai").collect();
    assert_eq!(calls.len(), 2, "the one that failed and the one after it: {spans:#?}");
    let failed = calls.iter().filter(|call| call.attributes.contains_key("error.type"));
    assert_eq!(failed.count(), 1);
    for call in calls {
        assert_eq!(call.parent_id, reading.span_id);
        assert_eq!(call.attributes["docmill.provider"], "document_ai");
        let said = format!("{call:?}");
        assert!(!said.contains("abc123") && !said.contains("Gr\u{f6}\u{df}e"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_pays_for_no_page_twice_that_was_answered() {
    let world = World::new().await;
    let troubles = [Trouble::Late(0), Trouble::Silence, Trouble::Silence];
    let server = Server::start(Script::default().troubled(troubles)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, key) = (server.endpoint(), key_file(&server, &folder));
    let settings = [
        ("OCR__PROVIDERS", "document_ai"),
        ("OCR__DPI", "100"),
        ("OCR__DOCUMENT_AI__PROJECT", "project-1"),
        ("OCR__DOCUMENT_AI__PROCESSOR", "abc123"),
        ("OCR__DOCUMENT_AI__ENDPOINT", endpoint.as_str()),
        ("OCR__DOCUMENT_AI__CREDENTIALS", key.to_str().unwrap()),
    ];
    let id = world.submit("long.pdf", pictures::scans(40)).await;
    let mut first = Process::worker(&world, &settings);
    let kept = || async {
        let parts = world.store.list(&keys::page_parts_prefix(id), None, 9).await.unwrap();
        !parts.is_empty()
    };
    until(SOON, kept).await;
    assert!(server.arrived(3, SOON).await);
    first.kill();
    let paid: Vec<Seen> = server.read();
    assert!(!paid.is_empty() && paid.len() < 40, "{}", paid.len());
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
    let _second = Process::worker(&world, &settings);
    until(SOON, || async { is_over(&world, id).await }).await;
    let mut widths: Vec<u32> = server.read().iter().map(|seen| seen.width).collect();
    widths.sort_unstable();
    assert_eq!(widths, (1..=40).map(pictures::width).collect::<Vec<u32>>(), "each page once");
    let stored = transcript(&world, id).await;
    for (number, page) in (1..).zip(stored.get("pages").unwrap().as_array().unwrap()) {
        let text = page.get("lines").unwrap().to_string();
        assert!(text.contains(&pictures::width(number).to_string()), "page {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_during_a_job_is_followed_by_one_that_finds_it_and_starts_no_second() {
    let (world, moto) = (World::new().await, Moto::start().await);
    let job = File { running: usize::MAX, ..File::of_pages(3) };
    let script = amazon::Script::default().with_any_file(job);
    let server = amazon::Server::start(script).await.unwrap();
    let client = s3_client(&moto.endpoint());
    client.create_bucket().bucket("documents").send().await.unwrap();
    let (document, id) = (DocumentId::random(), IngestionId::random());
    let key = format!("documents/{document}.pdf");
    let put = client.put_object().bucket("documents").key(&key);
    put.body(pictures::scans(3).into()).send().await.unwrap();
    world.insert_rows(document, id, &key).await;
    world.send(id.to_string()).await;
    let (endpoint, store) = (server.endpoint(), moto.endpoint());
    let settings = [
        ("STORE__BACKEND", "s3"),
        ("STORE__BUCKET", "documents"),
        ("STORE__ENDPOINT", store.as_str()),
        ("STORE__PATH_STYLE", "true"),
        ("OCR__PROVIDERS", "textract"),
        ("OCR__DPI", "100"),
        ("OCR__REPAIR__ENABLED", "false"),
        ("OCR__TEXTRACT__ENDPOINT", endpoint.as_str()),
        ("OCR__TEXTRACT__POLL", "100ms"),
    ];
    let mut first = Process::worker(&world, &settings);
    until(SOON, || async { server.answered(GET) > 1 }).await;
    first.kill();
    assert_eq!((server.jobs(), server.answered(START)), (1, 1));
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    world.pass(Duration::from_secs(700)).await;
    server.finish_jobs();
    let _second = Process::worker(&world, &settings);
    until(SOON, || async { is_over(&world, id).await }).await;
    assert_eq!(server.jobs(), 1, "no second job");
    assert_eq!((server.answered(START), server.answered(DETECT)), (2, 0));
    assert_eq!(world.attempts(id).await.first().unwrap(), "crashed");
    let sql = format!(
        "SELECT transcription_file_path FROM docmill.ingestion WHERE id = '{id}' AND \
         reason = 'gate_refused'"
    );
    assert_eq!(world.scalar(&sql).await, keys::transcription_key(id), "it was read, by the job");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_a_vision_model_is_shown_is_written_down_with_the_price_of_its_tokens() {
    use docmill_testkit::models;
    let world = World::new().await;
    let content = r#"{"turn": "0", "lines": ["Invoice 1"]}"#.to_owned();
    let server =
        models::Server::start(models::Script::always(models::Answer::Text { content })).await;
    let server = server.unwrap();
    let (base_url, model) = (server.base_url(), "seer-1".to_owned());
    let price = ModelPrice {
        provider: "vision".to_owned(),
        model: model.clone(),
        from: "2026-01-01".to_owned(),
        input: 10.into(),
        cache_read: 10.into(),
        cache_write: 10.into(),
        ..ModelPrice::default()
    };
    let worker = world
        .worker_with(|config| {
            config.ocr.providers = vec![OcrProvider::Vision, OcrProvider::Tesseract];
            config.ocr.vision.base_url = base_url;
            config.ocr.vision.model = model;
            config.ocr.dpi = 100;
            config.cost = CostConfig { price: vec![price], ..CostConfig::default() };
        })
        .await;
    let id = world.submit("scan.pdf", pictures::scans(1)).await;
    until(SOON, || async { is_over(&world, id).await }).await;
    worker.stop().await;
    let rows = "SELECT string_agg(concat_ws(' ', provider, model, calls, pages, \
                cost_nanos BETWEEN 1000000 AND 10000000), ';') FROM docmill.spending";
    assert_eq!(world.scalar(rows).await, "vision seer-1 1 1 t");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_read_a_second_time_are_paid_once_per_page_and_what_differs_is_flagged() {
    let world = World::new().await;
    let price = ModelPrice {
        provider: "textract".to_owned(),
        model: EXPENSE.to_owned(),
        from: "2026-01-01".to_owned(),
        pages: 10.into(),
        ..ModelPrice::default()
    };
    let script = amazon::Script::default().with_summary(&[("INVOICE_RECEIPT_ID", "A-2")]);
    let server = amazon::Server::start(script).await.unwrap();
    let worker = world
        .worker_reading_twice(expense_at(&server.endpoint()), |config| {
            config.ocr.textract.expense_pages = 1;
            config.cost = CostConfig { price: vec![price], ..CostConfig::default() };
        })
        .await;
    let other = world.submit("a.pdf", crate::support::documents::invoice("A-1")).await;
    until(SOON, || async { is_over(&world, other).await }).await;
    let same = world.submit("a.pdf", crate::support::documents::invoice("A-2")).await;
    until(SOON, || async { is_over(&world, same).await }).await;
    let long = world.submit("b.pdf", pictures::scans(2)).await;
    until(SOON, || async { is_over(&world, long).await }).await;
    worker.stop().await;
    let flagged = "('read_otherwise:invoice_number' = ANY (review_reasons))";
    assert_eq!(world.column(other, flagged).await.unwrap(), "true");
    assert_eq!(world.column(same, flagged).await.unwrap(), "false");
    assert_eq!(server.answered(EXPENSE), 2, "one page of each, and none of the long one");
    let rows = "SELECT string_agg(concat_ws(' ', model, pages, cost_nanos), ';')
                FROM docmill.spending";
    let row = "AnalyzeExpense 1 10000000";
    assert_eq!(world.scalar(rows).await, format!("{row};{row}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_goes_on_without_a_second_reading_of_its_fields_while_the_service_fails() {
    for (code, status, fault) in [
        ("InternalServerError", 500, "transient"),
        ("ProvisionedThroughputExceededException", 400, "throttled"),
        ("AccessDeniedException", 400, "denied"),
    ] {
        let world = World::new().await;
        let script = amazon::Script::default().with_summary(&[("INVOICE_RECEIPT_ID", "A-2")]);
        let script = script.troubled(EXPENSE, [(code, status); 20]);
        let server = amazon::Server::start(script).await.unwrap();
        let worker = world
            .worker_reading_twice(expense_at(&server.endpoint()), |config| {
                config.ocr.textract.expense_pages = 1;
            })
            .await;
        let id = world.submit("a.pdf", crate::support::documents::invoice("A-1")).await;
        world.until(id, "status", "completed").await;
        worker.stop().await;
        assert_eq!(world.attempts(id).await, ["completed"], "{code}");
        let detail = world.column(id, "detail").await.unwrap_or_default();
        let told = format!("its fields were not read a second time: {fault}");
        assert!(detail.contains(&told), "{code}: {detail}");
        assert_eq!(world.column(id, "review_reasons").await.unwrap(), "{}", "{code}");
        let row = "SELECT count(*)::text FROM docmill.spending";
        assert_eq!(world.scalar(row).await, "0", "nothing was read, nothing is paid");
    }
}
