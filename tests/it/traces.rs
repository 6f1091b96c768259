//! Traces: one document's way from `submit` through the queue to the record is one trace.
#![expect(clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use docmill_testkit::otlp::{Collector, Span};

use crate::support::documents;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, until};
use docmill_testkit::openai::{Answer, Script};

/// Kinds as the protocol counts them.
const CLIENT: i32 = 3;
const PRODUCER: i32 = 4;
const CONSUMER: i32 = 5;

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
    assert_eq!(found.len(), 1, "one span `{name}` among {names:?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn one_document_is_one_trace_from_submit_through_the_queue_to_the_record() {
    let collector = Collector::start().await.unwrap();
    let world = World::with_model(Script::always(Answer::Read)).await;
    let file = world.logs.path().join("secretname.pdf");
    std::fs::write(&file, documents::invoice("T-1")).unwrap();
    let endpoint = collector.endpoint();
    let traced = [("TELEMETRY__OTLP_ENDPOINT", endpoint.as_str())];
    let submitted = docmill(&world, &["submit", file.to_str().unwrap()], &traced).output().unwrap();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));

    let mut worker = Process::worker(&world, &traced);
    until(SOON, || async {
        world.scalar("SELECT status FROM docmill.ingestion").await == "completed"
    })
    .await;
    world.until_empty().await;
    worker.terminate();
    assert!(worker.ended(Duration::from_secs(30)).await.success());

    let spans = collector.spans();
    let traces: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let sent = named(&spans, "send documents");
    let processed = named(&spans, "process documents");
    assert_eq!((sent.parent_id.as_str(), sent.kind), ("", PRODUCER));
    assert_eq!((&processed.parent_id, processed.kind), (&sent.span_id, CONSUMER));
    for step in
        ["receive", "claim", "fetch", "transcribe", "extract", "gate", "record", "settle documents"]
    {
        let span = named(&spans, step);
        assert_eq!(span.parent_id, processed.span_id, "{step} is part of the processing");
        assert!(span.start <= span.end, "{step} ends after its begin");
    }
    let call = named(&spans, "chat scripted");
    assert_eq!((&call.parent_id, call.kind), (&named(&spans, "extract").span_id, CLIENT));
    let tokens: u64 = call.attributes["gen_ai.usage.input_tokens"].parse().unwrap();
    assert!(tokens > 0);

    let ingestion = world.scalar("SELECT id::text FROM docmill.ingestion").await;
    let expected = BTreeMap::from([
        ("messaging.system", "aws_sqs"),
        ("messaging.destination.name", "documents"),
        ("docmill.ingestion.id", ingestion.as_str()),
        ("docmill.outcome", "completed"),
        ("docmill.attempt", "1"),
    ]);
    for (key, value) in expected {
        assert_eq!(processed.attributes.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(processed.resource["service.name"], "docmill");
    // Nothing of the document, its name, the prompt or the reply.
    let all = format!("{spans:?}").to_lowercase();
    for word in ["secretname", "t-1", "invoice number", "supplier"] {
        assert!(!all.contains(word), "a trace holds `{word}`");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_no_document() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("T-2")).await;
    let traced = [("TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:9")];
    let mut worker = Process::worker(&world, &traced);
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.terminate();
    assert!(worker.ended(Duration::from_secs(30)).await.success());
    assert!(worker.log().contains("sending traces failed"), "{}", worker.log());
}
