//! A document that might be of several kinds: a model chooses, once, and its call is one like every
//! other.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::config::Config;
use docmill_core::model::IngestionId;
use docmill_testkit::models::{Answer, Request, Script, read_document};
use serde_json::json;

use crate::support::documents;
use crate::support::world::{SOON, World, until};

/// Titles of two kinds, and no other feature.
fn undecided() -> Vec<u8> {
    documents::pdf(&[
        (60.0, 60.0, "Corner Tools Ltd"),
        (60.0, 90.0, "Invoice"),
        (60.0, 120.0, "Receipt"),
        (60.0, 150.0, "Number: T-17"),
        (60.0, 180.0, "2024-05-06"),
        (60.0, 210.0, "Hammer"),
        (300.0, 210.0, "2"),
        (380.0, 210.0, "5.00"),
        (460.0, 210.0, "10.00"),
        (60.0, 240.0, "Sum EUR 10.00"),
    ])
}

fn is_choice(request: &Request) -> bool {
    request.message("system").contains("what kind of document")
}

/// Chooses `kind`, and reads what it is asked to read.
fn choosing(kind: &'static str) -> Script {
    Script::function(move |request: &Request| match is_choice(request) {
        true => Answer::Ok { content: json!({"kind": kind}) },
        false => Answer::Ok { content: read_document(&request.body) },
    })
}

/// No second question about what the first left empty.
fn ask_once(config: &mut Config) {
    config.llm.ask_again = false;
}

async fn ended(world: &World, id: IngestionId) {
    until(SOON, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_settles_a_tie_and_its_call_is_stored_and_counted() {
    let world = World::with_model(choosing("receipt")).await;
    let id = world.submit("undecided.pdf", undecided()).await;
    let worker = world.worker_with(ask_once).await;
    ended(&world, id).await;
    worker.stop().await;
    assert_eq!(world.column(id, "kind").await.unwrap(), "receipt");
    let reasons = world.column(id, "array_to_string(review_reasons, ' ')").await;
    assert!(!reasons.unwrap_or_default().contains("kind_"));
    let calls = world.llm.as_ref().unwrap().calls();
    assert_eq!(calls.len(), 2, "one to choose, one to read");
    let spent = "SELECT sum(calls) || ' ' || (sum(s.output_tokens) = \
                 max(i.extraction_output_tokens)) FROM docmill.spending s \
                 JOIN docmill.ingestion i ON i.id = s.ingestion_id";
    assert_eq!(world.scalar(spent).await, "2 true");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_a_kind_that_was_paid_for_is_not_asked_for_again() {
    let script = Script::function(|request: &Request| match (is_choice(request), request.number) {
        (true, _) => Answer::Ok { content: json!({"kind": "invoice"}) },
        (false, 1) => Answer::status(400),
        (false, _) => Answer::Ok { content: read_document(&request.body) },
    });
    let world = World::with_model(script).await;
    let id = world.submit("undecided.pdf", undecided()).await;
    let worker = world.worker_with(ask_once).await;
    world.pass_until(|| async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
    worker.stop().await;
    assert!(world.attempts(id).await.len() > 1, "the first attempt failed while reading");
    let spent = "SELECT string_agg(claims || ':' || calls, ' ' ORDER BY claims) \
                 FROM docmill.spending WHERE provider = 'openai'";
    assert_eq!(world.scalar(spent).await, "1:1 2:1");
    assert_eq!(world.column(id, "kind").await.unwrap(), "invoice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_answer_or_no_model_leaves_the_tie_to_a_person() {
    for (ask, calls) in [(true, 2), (false, 1)] {
        let world = World::with_model(choosing("an invoice, I think")).await;
        let id = world.submit("undecided.pdf", undecided()).await;
        let worker = world
            .worker_with(|config| {
                ask_once(config);
                config.kinds.ask_on_ties = ask;
            })
            .await;
        ended(&world, id).await;
        worker.stop().await;
        let reasons = world.column(id, "array_to_string(review_reasons, ' ')").await.unwrap();
        assert!(reasons.contains("kind_uncertain"), "{reasons}");
        assert_eq!(world.llm.as_ref().unwrap().calls().len(), calls);
    }
}
