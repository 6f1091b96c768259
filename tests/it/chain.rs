//! Several models: the next one of the chain reads in the same claim, nothing is lost, and nothing
//! is paid for twice; and vendors whose credentials are invalid for a while.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::config::{EscalationModelConfig, LlmProvider};
use docmill_testkit::models::{Answer, Request, Script, Server, Vendor};

use crate::llm::vendors::config_of;
use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// A stronger model on another server.
fn rung(vendor: Vendor, server: &Server) -> EscalationModelConfig {
    let whole = config_of(vendor, server);
    let text = format!(
        "model = 'stronger'\nbase_url = '{}'\napi_key = 'key'\nregion = 'us-east-1'",
        whole.base_url
    );
    let rung: EscalationModelConfig = toml::from_str(&text).unwrap();
    EscalationModelConfig { provider: Some(whole.provider), ..rung }
}

/// An empty field in the form that the vendor's schema has for it.
fn blank(content: &serde_json::Value) -> serde_json::Value {
    match content["fields"].as_object().unwrap().values().any(serde_json::Value::is_null) {
        true => serde_json::Value::Null,
        false => serde_json::json!(""),
    }
}

pub(crate) fn without_supplier(request: &Request) -> Answer {
    let mut content = docmill_testkit::models::read_document(&request.body);
    content["fields"]["supplier_name"] = blank(&content);
    Answer::Ok { content }
}

fn without_lines(request: &Request) -> Answer {
    let mut content = docmill_testkit::models::read_document(&request.body);
    content["fields"]["currency"] = blank(&content);
    content["fields"]["line_items"] = serde_json::json!([]);
    Answer::Ok { content }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_model_reads_in_the_same_claim_and_keeps_earlier_values() {
    for vendor in [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock] {
        let world = World::with_model(Script::function(without_supplier)).await;
        let script = Script::function(without_lines).from(vendor);
        let stronger = Server::start(script).await.unwrap();
        let chain = vec![rung(vendor, &stronger)];
        let worker = world.worker_with(|config| config.llm.chain = chain).await;
        let id = world.submit("a.pdf", documents::invoice("C-1")).await;
        world.until(id, "status", "completed").await;
        worker.stop().await;
        assert_eq!(world.attempts(id).await, ["completed"], "{vendor:?}");
        let (first, second) = (world.llm.as_ref().unwrap().calls(), stronger.calls());
        assert_eq!((first.len(), second.len()), (1, 1), "{vendor:?}");
        assert_eq!(world.column(id, "extraction_model").await.unwrap(), "stronger");
        let data = |path: &str| format!("structured_data->>'{path}'");
        // The second model read the supplier, the first one what the second left out.
        assert!(world.column(id, &data("supplier_name")).await.is_some());
        assert_eq!(world.column(id, &data("currency")).await.unwrap(), "GBP");
        let lines = world.column(id, "jsonb_array_length(structured_data->'line_items')").await;
        assert_ne!(lines.unwrap(), "0", "{vendor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_a_worker_that_dies_at_the_second_model_does_not_pay_the_first_again() {
    let world = World::with_model(Script::function(without_supplier)).await;
    let stronger = Server::start(Script::of([Answer::Hang])).await.unwrap();
    let file = world.logs.path().join("chain.toml");
    let text = format!("[[llm.chain]]\nmodel = 'stronger'\nbase_url = '{}'\n", stronger.base_url());
    std::fs::write(&file, text).unwrap();
    let id = world.submit("a.pdf", documents::invoice("C-2")).await;
    let mut first = Process::worker_with(&world, &file, &[]);
    assert!(stronger.arrived(1, SOON).await);
    first.kill();
    until(SOON, || async {
        world.sqs.counts().open(docmill_testkit::sqs::Action::ReceiveMessage) == 0
    })
    .await;
    world.pass(Duration::from_secs(700)).await;
    let _second = Process::worker_with(&world, &file, &[]);
    world.until(id, "status", "completed").await;
    assert_eq!(world.attempts(id).await, ["crashed", "completed"]);
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1, "its reply was stored");
    assert_eq!(stronger.calls().len(), 2, "one call was interrupted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_goes_in_circles_is_left_for_the_next_one_after_one_call() {
    let content = r#"{"fields":{"line_items":["#.to_owned() + &r#"{"amount":1.00},"#.repeat(500);
    let world = World::with_model(Script::always(Answer::Cut { content })).await;
    let stronger = Server::start(Script::default()).await.unwrap();
    let chain = vec![rung(Vendor::Openai, &stronger)];
    let worker = world.worker_with(|config| config.llm.chain = chain).await;
    let id = world.submit("a.pdf", documents::invoice("C-9")).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!((world.llm.as_ref().unwrap().calls().len(), stronger.calls().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_document_whose_reply_is_cut_is_left_for_the_next_model_after_one_call() {
    let content = r#"{"fields":{"supplier_name":"Harbour"#.to_owned();
    let world = World::with_model(Script::always(Answer::Cut { content })).await;
    let stronger = Server::start(Script::default()).await.unwrap();
    let chain = vec![rung(Vendor::Openai, &stronger)];
    let worker = world.worker_with(|config| config.llm.chain = chain).await;
    let id = world.submit("a.pdf", documents::invoice("C-10")).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!((world.llm.as_ref().unwrap().calls().len(), stronger.calls().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_of_any_vendor_fail_no_document_and_it_goes_on_when_they_are_mended() {
    for vendor in [Vendor::Anthropic, Vendor::Bedrock] {
        let world = World::new().await;
        let server = Server::start(Script::default().from(vendor)).await.unwrap();
        let config = config_of(vendor, &server);
        let provider = if vendor == Vendor::Anthropic { "anthropic" } else { "bedrock" };
        let worker = Process::worker(
            &world,
            &[
                ("LLM__PROVIDER", provider),
                ("LLM__BASE_URL", &config.base_url),
                ("LLM__API_KEY", config.api_key.reveal()),
                ("LLM__MODEL", &config.model),
                ("THROTTLE__OPEN_FOR", "300ms"),
                ("RETRY__UNAVAILABLE_DELAY", "1s"),
            ],
        );
        until(SOON, || async { worker.log().contains("worker ready") }).await;
        let wrong = Script { api_key: Some("another".to_owned()), ..Script::default() };
        server.set(wrong.from(vendor));
        let id = world.submit("a.pdf", documents::invoice("C-3")).await;
        until(SOON, || async { !world.attempts(id).await.is_empty() }).await;
        until(SOON, || async { worker.log().contains("intake paused: dependency") }).await;
        assert_eq!(world.column(id, "status").await.unwrap(), "in-progress", "{vendor:?}");
        assert!(server.calls().is_empty(), "what was denied is no call");
        server.set(Script { api_key: Some("key".to_owned()), ..Script::default() }.from(vendor));
        world
            .pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" })
            .await;
        let mut ends = world.attempts(id).await;
        ends.dedup();
        assert_eq!(ends, ["denied", "completed"], "{vendor:?}");
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1", "{vendor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_model_of_every_vendor_are_recorded() {
    for vendor in [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock] {
        let world = World::new().await;
        let server = Server::start(Script::default().from(vendor)).await.unwrap();
        let worker = world.worker_with(|config| config.llm = config_of(vendor, &server)).await;
        let id = world.submit("a.pdf", documents::invoice("C-4")).await;
        world.until(id, "status", "completed").await;
        worker.stop().await;
        assert_eq!(world.column(id, "extraction_model").await.unwrap(), "model-1", "{vendor:?}");
        for column in ["extraction_input_tokens", "extraction_output_tokens"] {
            let count: u64 = world.column(id, column).await.unwrap().parse().unwrap();
            assert!(count > 0, "{vendor:?} {column}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_refused_with_all_that_was_read_when_the_last_model_fails_too() {
    let world = World::with_model(Script::always(Answer::WrongSums)).await;
    let stronger = Server::start(Script::always(Answer::Refusal)).await.unwrap();
    let chain = vec![rung(Vendor::Openai, &stronger)];
    let worker = world
        .worker_with(|config| {
            assert_eq!(config.llm.provider, LlmProvider::Openai);
            config.llm.chain = chain;
        })
        .await;
    let id = world.submit("a.pdf", documents::invoice("C-5")).await;
    world.until(id, "status", "failed").await;
    worker.stop().await;
    assert_eq!(world.column(id, "reason").await.unwrap(), "gate_refused");
    assert_eq!(world.column(id, "structured_data->>'invoice_number'").await.unwrap(), "C-5");
    assert_eq!(stronger.calls().len(), 1);
}

/// Omits the supplier until it is asked for it.
fn without_supplier_at_first(request: &Request) -> Answer {
    let told = "An earlier reply left these fields empty: supplier_name. ";
    if request.body.to_string().contains(told) {
        return Answer::Ok { content: docmill_testkit::models::read_document(&request.body) };
    }
    without_supplier(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_model_is_asked_once_more_for_missing_fields_before_review() {
    let world = World::with_model(Script::function(without_supplier_at_first)).await;
    let worker = world.worker().await;
    let id = world.submit("a.pdf", documents::invoice("C-9")).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    let calls = world.llm.as_ref().unwrap().calls();
    assert_eq!((world.attempts(id).await, calls.len()), (vec!["completed".to_owned()], 2));
    assert!(world.column(id, "structured_data->>'supplier_name'").await.is_some());
    // Both readings are paid for, and the reader's note is where the earlier worker had it.
    let one = World::with_model(Script::default()).await;
    let worker = one.worker().await;
    let plain = one.submit("a.pdf", documents::invoice("C-9")).await;
    one.until(plain, "status", "completed").await;
    worker.stop().await;
    let tokens = "extraction_input_tokens::text";
    let (twice, once) = (world.column(id, tokens).await, one.column(plain, tokens).await);
    let number = |tokens: Option<String>| tokens.unwrap().parse::<i64>().unwrap();
    assert!(number(twice) > number(once.clone()), "{once:?}");
    for view in ["ingestion_as_before WHERE id", "document_as_before WHERE id"] {
        let of = if view.starts_with("document") {
            world.column(id, "document_id::text").await.unwrap()
        } else {
            id.to_string()
        };
        let sql = format!(
            "SELECT (structured_data->>'extraction_successful') || ' '
                || (structured_data->>'confidence') || ' '
                || jsonb_typeof(structured_data->'missing_fields') || ' '
                || (structured_data ? 'supplier_name') FROM docmill.{view} = '{of}'"
        );
        let said: String = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(world.database.pool())
            .await
            .unwrap();
        assert_eq!(said, "true high array true", "{view}");
    }
    assert_eq!(world.column(id, "extraction_confidence").await.unwrap(), "high");
    assert_eq!(world.column(id, "structured_data->>'confidence'").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_missing_twice_go_to_review_without_a_third_call() {
    for (ask_again, calls) in [(true, 2), (false, 1)] {
        let world = World::with_model(Script::function(without_supplier)).await;
        let worker = world.worker_with(|config| config.llm.ask_again = ask_again).await;
        let id = world.submit("a.pdf", documents::invoice("C-9")).await;
        world.until(id, "status", "failed").await;
        worker.stop().await;
        assert_eq!(world.llm.as_ref().unwrap().calls().len(), calls);
        assert_eq!(world.attempts(id).await, ["gate_refused"]);
    }
}
