//! A second document with the same supplier and number, by the kind's rule.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::reviews::similar::{SimilarityKeys, find_similar};
use docmill_ledger::duplicate_key::{NearKeys, PaymentFacts};

use crate::support::documents;
use crate::support::row_reads::rows_read_by;
use crate::support::world::World;

/// The shipped invoice without its examples, with another consequence of its rule against duplicates.
fn invoice_kind(consequence: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kinds/invoice");
    let own = folder.path().join("invoice");
    std::fs::create_dir_all(&own).unwrap();
    for name in ["kind.toml", "schema.json", "prompt.md", "labels.toml", "rules.toml"] {
        let text = std::fs::read_to_string(shipped.join(name)).unwrap();
        std::fs::write(own.join(name), text).unwrap();
    }
    let rule = |consequence| format!("check = \"duplicate\"\nconsequence = \"{consequence}\"");
    let rules = std::fs::read_to_string(own.join("rules.toml")).unwrap();
    assert!(rules.contains(&rule("flag")));
    std::fs::write(own.join("rules.toml"), rules.replace(&rule("flag"), &rule(consequence)))
        .unwrap();
    folder
}

/// An invoice, and the same with an attachment, one after the other.
async fn read_twice(consequence: &str) -> (World, IngestionId, IngestionId) {
    let mut world = World::new().await;
    let kinds = invoice_kind(consequence);
    world.config.kinds.path = kinds.path().to_owned();
    let worker = world.worker_with(|_| {}).await;
    let first = world.submit("first.pdf", documents::invoice("D-1")).await;
    world.until(first, "status", "completed").await;
    let copy = documents::invoice_carrying("D-1", &[("note.txt", "a copy")]);
    let second = world.submit("second.pdf", copy).await;
    world.until_empty().await;
    worker.stop().await;
    (world, first, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_is_flagged_is_no_reason_to_doubt_what_was_read() {
    let (world, first, second) = read_twice("flag").await;
    let of = async |id, column| world.column(id, column).await.unwrap();
    assert_eq!(of(second, "status").await, "completed");
    assert_eq!(of(second, "needs_human_review").await, "true");
    assert_eq!(of(second, "review_reasons").await, "{duplicate}");
    assert_eq!(of(second, "gate_score").await, of(first, "gate_score").await);
    assert_eq!(of(first, "review_reasons").await, "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_the_kind_refuses_is_not_completed() {
    let (world, first, second) = read_twice("review").await;
    let of = async |id, column| world.column(id, column).await.unwrap();
    assert_eq!(of(first, "status").await, "completed");
    assert_eq!(of(second, "status").await, "failed");
    assert_eq!(of(second, "reason").await, "gate_refused");
    assert_eq!(of(second, "review_reasons").await, "{duplicate}");
}

/// The standard invoice under another number, or with another supplier's spelling.
async fn read_beside(second: &str) -> (World, IngestionId, IngestionId) {
    let world = World::new().await;
    let worker = world.worker().await;
    let first = world.submit("first.pdf", documents::invoice("D-100")).await;
    world.until(first, "status", "completed").await;
    let other = world.submit("second.pdf", documents::invoice(second)).await;
    world.until_empty().await;
    worker.stop().await;
    (world, first, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bill_under_another_number_is_a_near_duplicate_and_one_under_its_own_an_exact_one() {
    for (second, reasons) in [("D-200", "{near_duplicate}"), ("D-100", "{duplicate}")] {
        let (world, first, other) = read_beside(second).await;
        let of = async |id, column| world.column(id, column).await.unwrap();
        assert_eq!(of(other, "status").await, "completed");
        assert_eq!(of(other, "review_reasons").await, reasons, "{second}");
        assert_eq!(of(first, "review_reasons").await, "{}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn near_duplicates_of_another_tenant_are_not_seen() {
    let world = World::new().await;
    let worker = world.worker().await;
    let first = world.submit("first.pdf", documents::invoice("D-100")).await;
    world.until(first, "status", "completed").await;
    world.execute("UPDATE docmill.ingestion SET tenant = 'acme'").await;
    let other = world.submit("second.pdf", documents::invoice("D-200")).await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.column(other, "review_reasons").await.unwrap(), "{}");
}

/// The keys that the standard invoice of this number shares with a near duplicate.
fn keys_of(number: &str) -> SimilarityKeys {
    let facts = PaymentFacts {
        supplier: Some("Northwind Paper"),
        number: Some(number),
        issued: Some("2026-03-14"),
        total: Some("120"),
        kind: "invoice",
    };
    SimilarityKeys { exact: None, near: NearKeys::new(&facts) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_duplicate_is_found_among_many_results_and_shown_with_what_differs() {
    let (world, first, other) = read_beside("D-200").await;
    for statement in [
        "INSERT INTO docmill.document (id, file_path)
         SELECT md5('d' || n)::uuid, 'documents/' || n FROM generate_series(1, 20000) n",
        "INSERT INTO docmill.ingestion (id, document_id, status, completed_at, started_at, attempt_count,
             valid_structured_data, near_amount, near_number)
         SELECT md5('i' || n)::uuid, md5('d' || n)::uuid, 'completed', docmill.docmill_now(),
             docmill.docmill_now(), 1, true, md5('a' || n)::uuid, md5('n' || n)::uuid
         FROM generate_series(1, 20000) n",
        "ANALYZE docmill.ingestion",
    ] {
        world.execute(statement).await;
    }
    let document = world.column(other, "document_id").await.unwrap().parse().unwrap();
    let of_first = "(near_amount, near_number)";
    assert_ne!(world.column(first, of_first).await, world.column(other, of_first).await);
    let keys = keys_of("D-200");
    let db = world.database.db();
    let found = find_similar(&db, DocumentId(document), None, &keys).await.unwrap().unwrap();
    assert_eq!(found.ingestion, first);
    assert_eq!(found.data["invoice_number"], "D-100");
    let none = find_similar(&db, DocumentId(document), Some("acme"), &keys).await.unwrap();
    assert_eq!(none, None, "another tenant's");
}

/// Results that share a key, and rows of results that may be read to find one of them.
const SHARED: u32 = 20_000;
const MAX_ROWS_READ: i64 = 1_000;

/// Results of other documents with the keys of this one, each of a tenant of its own or all of one.
async fn share_keys(world: &World, first: IngestionId, tenant: &str) {
    for statement in [
        "INSERT INTO docmill.document (id, file_path, tenant)
         SELECT md5('d' || n)::uuid, 'documents/' || n, TENANT FROM generate_series(1, SHARED) n",
        "INSERT INTO docmill.ingestion (id, document_id, tenant, status, completed_at, started_at,
             attempt_count, valid_structured_data, duplicate_key, near_amount, near_number)
         SELECT md5('i' || n)::uuid, md5('d' || n)::uuid, TENANT, 'completed', docmill.docmill_now(),
             docmill.docmill_now(), 1, true, k.duplicate_key, k.near_amount, k.near_number
         FROM generate_series(1, SHARED) n, docmill.ingestion k WHERE k.id = 'FIRST'",
        "ANALYZE docmill.ingestion",
    ] {
        let statement = statement.replace("TENANT", tenant).replace("SHARED", &SHARED.to_string());
        world.execute(&statement.replace("FIRST", &first.0.to_string())).await;
    }
}

/// Rows of results that are read while a second document is read, judged and shown beside another.
async fn rows_read_beside(tenant: &str) -> i64 {
    let world = World::new().await;
    let worker = world.worker().await;
    let first = world.submit("first.pdf", documents::invoice("D-100")).await;
    world.until(first, "status", "completed").await;
    worker.stop().await;
    share_keys(&world, first, tenant).await;
    let keys = keys_of("D-100");
    let read = rows_read_by(&world.database, async |db| {
        let worker = world.worker().await;
        let other = world.submit("second.pdf", documents::invoice("D-100")).await;
        world.until(other, "status", "completed").await;
        worker.stop().await;
        let document = world.column(other, "document_id").await.unwrap().parse().unwrap();
        assert!(find_similar(&db, DocumentId(document), None, &keys).await.unwrap().is_some());
    });
    read.await.get("ingestion").map_or(i64::MAX, |rows| rows.iter().sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_other_tenants_with_the_same_keys_are_not_read() {
    let read = Box::pin(rows_read_beside("'t' || n")).await;
    assert!(read < MAX_ROWS_READ, "{read} rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_results_of_one_tenant_with_the_same_keys_few_are_read() {
    let read = Box::pin(rows_read_beside("NULL")).await;
    assert!(read < MAX_ROWS_READ, "{read} rows");
}
