//! Prefixes of keys as targets: the files of documents whose data holds, under the layout's names.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use docmill_core::config::DeliveredForm::{self, Csv, CsvLines, Json, Original, Ubl};
use docmill_core::config::{KindsConfig, ReviewConfig, SecretString, WebhookTarget};
use docmill_core::model::{DocumentId, IngestionId, digest};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::lanes::webhooks::replay_delivery;
use docmill_operations::review::{self, AcceptedData, DecidingReviewer};
use docmill_operations::webhooks;
use docmill_storage::memory::MemoryStore;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore};
use serde_json::{Value, json};

use super::receiver::{
    RunningDelivery, complete, document, execute, scalar, target, telling, until_delivered,
};
use super::telling::{by, state_of};
use crate::store_suite::moto;
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, until};

fn files_at(url: &str, layout: &str, forms: &[DeliveredForm]) -> WebhookTarget {
    WebhookTarget {
        secret: SecretString::default(),
        layout: layout.to_owned(),
        forms: forms.to_vec(),
        ..target("files", url)
    }
}

/// Every object by its key, with its version.
async fn objects(store: &dyn ObjectStore, prefix: &str) -> BTreeMap<String, (Etag, String)> {
    let mut found = BTreeMap::new();
    for entry in store.list(prefix, None, 100).await.unwrap() {
        let get = GetOptions { at_most: 1 << 20, if_match: None };
        let GetResult::Found(object) = store.get(&entry.key, get).await.unwrap() else { continue };
        let text = String::from_utf8(object.bytes.to_vec()).unwrap();
        found.insert(entry.key, (object.etag, text));
    }
    found
}

/// A document with a name and data, which is completed.
async fn completed(database: &TestDatabase, tenant: &str, name: &str) -> (DocumentId, IngestionId) {
    let (id, ingestion) = document(database, tenant).await;
    let data = json!({"total": "CONTENTMARK"});
    let sha256 = digest::sha256_hex(b"%PDF-1.7");
    let named = format!(
        "UPDATE document SET original_name = '{name}', structured_data = '{data}',
             sha256 = '{sha256}', file_path = 'in/a.pdf' WHERE id = '{id}';
         UPDATE ingestion SET tenant = '{tenant}', sha256 = '{sha256}' WHERE id = '{ingestion}'"
    );
    execute(database, &named).await;
    complete(database, ingestion).await;
    (id, ingestion)
}

/// Delivers everything once more, and waits for it.
async fn replay(database: &TestDatabase) {
    let db = database.db();
    let all = "SELECT string_agg(id::text, ',') FROM webhook_delivery WHERE state = 'delivered'";
    let all = scalar(database, all).await;
    for id in all.split(',') {
        assert!(replay_delivery(&db, id.parse().unwrap()).await.unwrap(), "{id}");
    }
    until_delivered(database, all.split(',').count()).await;
}

async fn check_delivery(store: Arc<dyn ObjectStore>, prefix: &str, url: &str) {
    let database = TestDatabase::create().await;
    store.put("in/a.pdf", "%PDF-1.7".into(), &BTreeMap::new()).await.unwrap();
    let layout = "{tenant}/{kind}/{name}-{id}";
    let mut files = files_at(url, layout, &[Json, Csv, CsvLines, Original]);
    files.tenant = "acme".to_owned();
    files.kinds = vec!["invoice".to_owned()];
    let _running = RunningDelivery::start_in(&database, &telling(vec![files]), &store).await;
    let (id, ingestion) = completed(&database, "acme", "../../etc/=pass wd.pdf").await;
    completed(&database, "umbrella", "x.pdf").await;
    let (_, other) = document(&database, "acme").await;
    let contract = format!("UPDATE ingestion SET kind = 'contract' WHERE id = '{other}'");
    execute(&database, &contract).await;
    complete(&database, other).await;
    until_delivered(&database, 2).await;

    let first = objects(&*store, prefix).await;
    let stem = format!("{prefix}acme/invoice/_pass_wd-{ingestion}");
    let expected = ["-lines.csv", "-original.pdf", ".csv", ".json"].map(|it| format!("{stem}{it}"));
    assert_eq!(first.keys().cloned().collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    let told: Value = serde_json::from_str(&first[&format!("{stem}.json")].1).unwrap();
    let whole = json!({"document_id": id.to_string(), "ingestion_id": ingestion.to_string(),
        "tenant": "acme", "kind": "invoice", "name": "../../etc/=pass wd.pdf",
        "data": {"total": "CONTENTMARK"}});
    assert_eq!(told, whole);
    assert!(first[&format!("{stem}.csv")].1.contains("CONTENTMARK"), "{first:?}");

    replay(&database).await;
    assert_eq!(objects(&*store, prefix).await, first, "a repeated delivery writes nothing new");
    let newer = format!(
        "UPDATE ingestion SET structured_data = '{{\"total\": \"NEWER\"}}' WHERE id = '{ingestion}'"
    );
    execute(&database, &newer).await;
    replay(&database).await;
    let second = objects(&*store, prefix).await;
    assert!(second.keys().eq(first.keys()), "{second:?}");
    for (key, (version, text)) in &second {
        let has_head = [".json", ".csv"].iter().any(|it| *key == format!("{stem}{it}"));
        assert_eq!(text.contains("NEWER"), has_head, "{key}");
        assert_eq!(*version != first[key].0, has_head, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_documents_files_lie_once_below_the_prefix_however_often_it_is_delivered() {
    check_delivery(Arc::new(MemoryStore::default()), "out/", "store:out/").await;
    let (_server, bucket) = moto::store().await;
    check_delivery(Arc::new(bucket), "out/a/", "store:out/a/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn doubtful_data_is_written_once_a_person_has_decided_and_a_rejected_document_never() {
    let database = TestDatabase::create().await;
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::default());
    let config = telling(vec![files_at("store:out/", "{id}", &[Json])]);
    let _running = RunningDelivery::start_in(&database, &config, &store).await;
    execute(
        &database,
        "CREATE FUNCTION doubt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             NEW.needs_human_review := NEW.status = 'completed';
             NEW.review_reasons := CASE WHEN NEW.status = 'completed' THEN ARRAY['total'] ELSE '{}' END;
             RETURN NEW; END $$;
         CREATE TRIGGER doubt BEFORE UPDATE ON ingestion FOR EACH ROW EXECUTE FUNCTION doubt()",
    )
    .await;
    let (accepted, ingestion) = completed(&database, "acme", "a.pdf").await;
    let (rejected, _) = completed(&database, "acme", "b.pdf").await;
    until_delivered(&database, 2).await;
    assert!(objects(&*store, "out/").await.is_empty(), "nobody has decided yet");
    let (db, config) = (database.db(), ReviewConfig::default());
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let ann = DecidingReviewer {
        by: by(),
        config: &config,
        kinds: &kinds,
        take_over: false,
        effort: None,
    };
    let case = review::load_case(&db, &accepted.to_string()).await.unwrap();
    review::accept_document(&db, &case, AcceptedData::Document, &ann).await.unwrap();
    let case = review::load_case(&db, &rejected.to_string()).await.unwrap();
    review::reject_document(&db, &case, &ann).await.unwrap();
    replay(&database).await;
    assert!(objects(&*store, "out/").await.is_empty(), "the decision can still be undone");
    database.advance(config.undo).await;
    let key = format!("out/{ingestion}.json");
    until(SOON, || async { objects(&*store, "out/").await.contains_key(&key) }).await;
    assert_eq!(objects(&*store, "out/").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_cannot_carry_the_data_keeps_no_other_back_and_is_not_tried_again() {
    let database = TestDatabase::create().await;
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::default());
    let config = telling(vec![files_at("store:out/", "{id}", &[Ubl, Json])]);
    let _running = RunningDelivery::start_in(&database, &config, &store).await;
    completed(&database, "acme", "a.pdf").await;
    let dead = "SELECT count(*) FROM webhook_delivery WHERE state = 'dead' AND tries = 1";
    until(SOON, || async { scalar(&database, dead).await == "1" }).await;
    assert_eq!(objects(&*store, "out/").await.len(), 1);
    let problem = scalar(&database, "SELECT last_problem FROM webhook_delivery").await;
    assert!(problem.contains("BT-1") && !problem.contains("CONTENTMARK"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_writes_an_object_that_is_no_result_and_a_missing_bucket_is_named() {
    let database = TestDatabase::create().await;
    let (_server, bucket) = moto::store().await;
    let store: Arc<dyn ObjectStore> = Arc::new(bucket);
    let lost = files_at("s3://docmill-lost/out/", "{id}.test", &[Json]);
    let lost = WebhookTarget { name: "lost".to_owned(), ..lost };
    let config = telling(vec![files_at("store:out/", "{id}.test", &[Json]), lost]);
    let _running = RunningDelivery::start_in(&database, &config, &store).await;
    let mut written = Vec::new();
    for (target, key) in [("files", ""), ("files", ""), ("lost", "s3://docmill-lost/out/lost.test")]
    {
        assert!(webhooks::ask_test(&database.db(), target, &by()).await.unwrap());
        let ended = || async { state_of(&database, target).await.test_ended_at.is_some() };
        until(SOON, ended).await;
        let state = state_of(&database, target).await;
        let problem = state.test_problem.unwrap_or_default();
        assert_eq!(state.test_status, key.is_empty().then_some(204), "{problem}");
        assert_eq!(problem.split(": ").next(), Some(key), "{problem}");
        written.push(objects(&*store, "out/").await);
    }
    let told: Value = serde_json::from_str(&written[0]["out/files.test"].1).unwrap();
    assert_eq!((&told["type"], &told["data"]["target"]), (&json!("webhook.test"), &json!("files")));
    assert!(written.iter().all(|all| all.len() == 1), "{written:?}");
    assert_ne!(written[0], written[1], "a repeated test writes too");
}
