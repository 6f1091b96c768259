//! An invoice of thousands of lines comes out whole or not at all.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::model::IngestionId;
use docmill_testkit::openai::{Answer, Request, Script, read_document};
use serde_json::Value;

use crate::support::documents;
use crate::support::world::{SOON, World, until};

const ROWS: usize = 3_200;
const PAGES: usize = 66;

/// Numbered rows of 3.00 each, net 9600.00, VAT 20 %, total 11520.00.
fn invoice() -> Vec<u8> {
    let mut pages = Vec::new();
    let mut next = 1;
    for page in 0..PAGES {
        let mut lines: Vec<(f32, f32, String)> = Vec::new();
        let mut y = 40.0;
        let mut write = |text: &str| {
            lines.push((60.0, y, text.to_owned()));
            y += 14.0;
        };
        if page == 0 {
            write("Northwind Paper Ltd");
            write("INVOICE");
            write("Invoice number: N-3200");
            write("Invoice date: 2026-03-14");
        }
        let rows = ROWS / PAGES + usize::from(page < ROWS % PAGES);
        for number in next..next + rows {
            write(&format!("Part{number:04} 2 1.50 3.00"));
        }
        next += rows;
        if page + 1 == PAGES {
            write("Subtotal GBP 9,600.00");
            write("VAT 20% GBP 1,920.00");
            write("Total GBP 11,520.00");
        }
        pages.push(lines);
    }
    assert_eq!(next, ROWS + 1);
    documents::pages(&pages)
}

/// How it ended, and what was read.
async fn run(script: Script) -> (World, IngestionId, String, Value) {
    let world = World::with_model(script).await;
    let id = world.submit("long.pdf", invoice()).await;
    let worker = world.worker().await;
    until(SOON * 3, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
    worker.stop().await;
    let end = world.column(id, "concat_ws(' ', status, reason)").await.unwrap();
    let data = world.column(id, "structured_data").await.unwrap_or_default();
    let data = serde_json::from_str(&data).unwrap_or(Value::Null);
    (world, id, end, data)
}

fn numbers(data: &Value) -> Vec<String> {
    let items = data.get("line_items").and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |item: &Value| item.get("description").unwrap().as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

fn all_numbers() -> Vec<String> {
    (1..=ROWS).map(|number| format!("Part{number:04}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_of_3200_rows_on_66_pages_comes_out_whole() {
    let (world, id, end, data) = Box::pin(run(Script::default())).await;
    assert_eq!(end, "completed", "{:?}", world.column(id, "detail").await);
    assert_eq!(numbers(&data), all_numbers());
    assert_eq!(data.get("total"), Some(&Value::from(11_520.0)));
    assert_eq!(data.get("supplier_name"), Some(&Value::from("Northwind Paper Ltd")));
    let calls = world.llm.as_ref().unwrap().calls().len();
    assert!((10..=66).contains(&calls), "{calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_truncates_long_replies_costs_calls_but_no_row() {
    let (_, _, end, data) = Box::pin(run(Script::always(Answer::CutAbove { lines: 60 }))).await;
    assert_eq!(end, "completed");
    assert_eq!(numbers(&data), all_numbers());
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_11_a_server_that_cuts_every_reply_ends_it_as_cut() {
    let (_, _, end, _) = Box::pin(run(Script::function(|request: &Request| {
        let text = read_document(&request.body).to_string();
        let content = text.chars().take(text.chars().count() * 3 / 10).collect();
        Answer::Cut { content }
    })))
    .await;
    assert_eq!(end, "failed cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_claim_of_completeness_is_verified() {
    let (world, id, _, data) = Box::pin(run(Script::function(|request: &Request| {
        let mut content = read_document(&request.body);
        let items = content.pointer_mut("/fields/line_items").unwrap().as_array_mut().unwrap();
        items.truncate(items.len() * 3 / 10);
        Answer::Ok { content }
    })))
    .await;
    assert!(numbers(&data).len() < ROWS);
    let reasons = world.column(id, "needs_human_review || ' ' || review_reasons::text").await;
    let reasons = reasons.unwrap();
    assert!(reasons.starts_with("true ") && reasons.contains("lines_incomplete"), "{reasons}");
}
