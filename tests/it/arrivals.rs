//! Arriving documents: messages and rows are verified against the store, and untrusted senders
//! cannot harm other documents.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::StorageClass;
use bytes::Bytes;
use docmill_core::config::QueueDestination;
use docmill_core::fault::{Fault, Result};
use docmill_core::model::{DocumentId, IngestionId, Priority, digest};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::claims::registration::{self, NewDocument, NewIngestion};
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::{Ledger, ObjectRegistration};
use docmill_operations::erase::{self, ErasureBackends};
use docmill_operations::submit::{self, SubmitContext, SubmitOptions, SubmitStatus};
use docmill_queue::OutgoingMessage;
use docmill_storage::s3::S3Store;
use docmill_storage::{
    Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult, keys,
};

use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::postgres::TestDatabase;
use crate::support::refusing_bucket::RefusingBucket;
use crate::support::world::{SOON, World, s3_client, until};

const BUCKET: &str = "documents";

/// An event as the bucket sends it.
fn event(key: &str, etag: &str, sequencer: &str) -> String {
    serde_json::json!({"Records": [{
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": BUCKET}, "object": {
            "key": key, "size": 10, "eTag": etag, "sequencer": sequencer}}
    }]})
    .to_string()
}

/// Puts an invoice with this number; returns the version.
async fn put(world: &World, key: &str, number: &str) -> String {
    let bytes = Bytes::from(documents::invoice(number));
    world.store.put(key, bytes, &BTreeMap::new()).await.unwrap().0
}

/// `number status reason` of every ingestion, in order of number and status.
async fn ends(world: &World) -> Vec<String> {
    let all = world
        .scalar(
            "SELECT string_agg(concat_ws(' ', structured_data->>'invoice_number', status, reason),
                 ',' ORDER BY structured_data->>'invoice_number', status) FROM docmill.ingestion",
        )
        .await;
    all.split(',').filter(|end| !end.is_empty()).map(str::to_owned).collect()
}

async fn carried(world: &World) -> String {
    world
        .scalar(
            "SELECT string_agg(structured_data->>'invoice_number' || ' ' ||
        needs_human_review, ',') FROM docmill.document",
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_submit_keeps_tenant_kind_tags_and_priority_if_its_event_comes_first() {
    let world = World::new().await;
    let bytes = documents::invoice("E-1");
    let document = DocumentId::from_content(&digest::sha256_hex(&bytes), "acme");
    let key = keys::document_key(document, "a.pdf");
    // As far as `submit` is when the bucket sends the event of its upload.
    let uploaded = BTreeMap::from([(keys::SUBMITTED_AS.to_owned(), document.to_string())]);
    let etag = world.store.put(&key, Bytes::from(bytes.clone()), &uploaded).await.unwrap();
    world.send(event(&key, &etag.0, "0A")).await;
    let worker = world.worker().await;
    until(SOON, || async { world.queue.depth().await.unwrap().in_flight == 1 }).await;
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.document").await, "0");

    let file = world.logs.path().join("a.pdf");
    std::fs::write(&file, bytes).unwrap();
    let db = world.database.db();
    let desk = SubmitContext {
        db: &db,
        store: world.store.as_ref(),
        queue: world.queue.as_ref(),
        largest: 1 << 20,
        destination: &QueueDestination::default(),
    };
    let terms = SubmitOptions {
        tenant: Some("acme".to_owned()),
        kind: Some("invoice".to_owned()),
        priority: Priority::High,
        tags: BTreeMap::from([("from".to_owned(), "mail".to_owned())]),
        ..SubmitOptions::default()
    };
    let done = submit::submit_file(desk, &file, &terms).await.unwrap();
    assert_eq!(done.fate, SubmitStatus::Submitted);
    let id = done.ingestion_id.unwrap();
    world.until(id, "status", "completed").await;
    world.pass_until(|| async { world.queue.depth().await.unwrap().in_flight == 0 }).await;
    worker.stop().await;
    let row = "SELECT concat_ws(' ', i.tenant, d.tenant, i.kind, i.priority, d.tags->>'from',
            d.sha256 = i.sha256) FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id";
    assert_eq!(world.scalar(row).await, "acme acme invoice high mail t");
    assert_eq!(world.all_ids().await, [id], "one ingestion");
    assert_eq!(world.attempts(id).await, ["completed"]);
}

fn found_by_event(etag: &str) -> ObjectRegistration {
    ObjectRegistration {
        document: DocumentId::from_object("up", "in/a.pdf"),
        ingestion: IngestionId::from_object_version("up", "in/a.pdf", etag, "0A"),
        file_path: "s3://up/in/a.pdf".to_owned(),
        original_name: "a.pdf".to_owned(),
        etag: Some(etag.to_owned()),
        size: Some(7),
        sequencer: Some("0A".to_owned()),
        tenant: None,
    }
}

fn handed_in(etag: &str) -> (NewDocument, NewIngestion) {
    let document = NewDocument {
        id: DocumentId::from_object("up", "in/a.pdf"),
        file_path: "s3://up/in/a.pdf".to_owned(),
        original_name: Some("October.pdf".to_owned()),
        sha256: None,
        size: Some(7),
        tenant: Some("acme".to_owned()),
        tags: BTreeMap::from([("from".to_owned(), "mail".to_owned())]),
    };
    let ingestion = NewIngestion {
        id: IngestionId::from_object_version("up", "in/a.pdf", etag, ""),
        kind: Some("receipt".to_owned()),
        priority: Priority::High,
        object_etag: Some(etag.to_owned()),
        anew: false,
    };
    (document, ingestion)
}

#[tokio::test]
async fn an_object_that_is_handed_in_and_announced_is_one_ingestion_that_lacks_nothing() {
    for event_first in [true, false] {
        let database = TestDatabase::create().await;
        let (db, ledger) = (database.db(), PostgresLedger::new(database.db()));
        for turn in [event_first, !event_first] {
            if turn {
                ledger.register_object(&found_by_event("e1")).await.unwrap();
            } else {
                registration::register_documents(&db, &[handed_in("e1")]).await.unwrap();
            }
        }
        let rows: Vec<(String,)> = sqlx::query_as(
            "SELECT concat_ws(' ', i.tenant, d.tenant, i.kind, i.priority, d.tags->>'from', i.status)
             FROM ingestion i JOIN document d ON d.id = i.document_id",
        )
        .fetch_all(database.pool())
        .await
        .unwrap();
        let expected = [("acme acme receipt high mail in-progress".to_owned(),)];
        assert_eq!(rows, expected, "event first: {event_first}");
        // Quotes of earlier releases are ignored.
        let quoted = "UPDATE ingestion SET object_etag = '\"' || object_etag || '\"'";
        sqlx::query(quoted).execute(database.pool()).await.unwrap();
        let known: uuid::Uuid = sqlx::query_scalar("SELECT id FROM ingestion")
            .fetch_one(database.pool())
            .await
            .unwrap();
        let again = ObjectRegistration { ingestion: IngestionId::random(), ..found_by_event("e1") };
        assert_eq!(ledger.register_object(&again).await.unwrap().0, known);
        assert!(
            registration::register_documents(&db, &[handed_in("e1")]).await.unwrap().is_empty()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_replaced_before_it_was_read_is_read_as_it_is_now() {
    let world = World::new().await;
    // An event about a version that is gone, and a row that names one.
    let old = put(&world, "documents/a.pdf", "OLD-1").await;
    put(&world, "documents/a.pdf", "NEW-1").await;
    world.send(event("documents/a.pdf", &old, "0A")).await;
    let pinned = IngestionId::random();
    put(&world, "documents/b.pdf", "NEW-2").await;
    world.insert_rows(DocumentId::random(), pinned, "documents/b.pdf").await;
    let pin = format!("UPDATE docmill.ingestion SET object_etag = 'gone' WHERE id = '{pinned}'");
    world.execute(&pin).await;
    world.send(pinned.to_string()).await;
    let worker = world.worker().await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(ends(&world).await, ["NEW-1 completed", "NEW-2 completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_producer_that_looks_like_one_of_submit_is_read_in_every_version() {
    let world = World::new().await;
    let key = format!("documents/{}.pdf", DocumentId::from_content("anything", ""));
    let worker = world.worker().await;
    for (number, sequencer, count) in [("S-6", "0A", 1), ("S-7", "0B", 2)] {
        let etag = put(&world, &key, number).await;
        world.send(event(&key, &etag, sequencer)).await;
        until(SOON, || async { world.all_ids().await.len() == count }).await;
        until(SOON, || async { ends(&world).await.iter().all(|end| !end.contains("progress")) })
            .await;
        assert!(carried(&world).await.starts_with(number), "{:?}", ends(&world).await);
    }
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(ends(&world).await, ["S-6 completed", "S-7 completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_event_neither_silences_a_key_nor_has_it_read_again() {
    let world = World::new().await;
    let key = "documents/victim.pdf";
    let etag = put(&world, key, "T-1").await;
    // All three wait before the worker looks.
    world.send(event(key, &etag, "0055AED6DCD90281E5")).await;
    world.send(event(key, "00", &"f".repeat(64))).await;
    world.send(event(key, "00", &"f".repeat(32))).await;
    world.send(event(key, &etag, &"f".repeat(32))).await;
    let worker = world.worker().await;
    until(SOON, || async { carried(&world).await == "T-1 false" }).await;
    world.until_empty().await;
    assert_eq!(ends(&world).await, ["T-1 completed"]);
    let etag = put(&world, key, "T-2").await;
    world.send(event(key, &etag, "0055AED6DCD90281F7")).await;
    until(SOON, || async { carried(&world).await == "T-2 false" }).await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(ends(&world).await, ["T-1 completed", "T-2 completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_a_missing_object_makes_no_row_and_is_quarantined() {
    let world = World::new().await;
    world.send(event("documents/never.pdf", "00", "0A")).await;
    let worker = world
        .worker_with(|config| {
            config.queue.unknown_receives = 3;
            config.queue.unknown_age = Duration::ZERO;
        })
        .await;
    let kept = "SELECT reason FROM docmill.quarantined_message UNION ALL SELECT '' LIMIT 1";
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(60));
        world.scalar(kept).await == "unknown_object"
    })
    .await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.document").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_need_an_allow_list_which_assigns_the_tenant() {
    let mut world = World::new().await;
    world.config.store.allow = Vec::new();
    let etag = put(&world, "documents/a.pdf", "N-1").await;
    world.send(event("documents/a.pdf", &etag, "0A")).await;
    let worker = world.worker().await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(ends(&world).await, Vec::<String>::new());
    world.config.store.allow = vec!["documents/inbox/{tenant}/".parse().unwrap()];
    let etag = put(&world, "inbox/acme/a.pdf", "N-2").await;
    world.send(event("inbox/acme/a.pdf", &etag, "0A")).await;
    let worker = world.worker().await;
    until(SOON, || async { ends(&world).await == ["N-2 completed"] }).await;
    worker.stop().await;
    let whose = "SELECT i.tenant || ' ' || d.tenant || ' ' || d.file_path
        FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id";
    assert_eq!(world.scalar(whose).await, "acme acme inbox/acme/a.pdf");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_body_full_of_made_up_ids_neither_pauses_intake_nor_becomes_many_messages() {
    let world = World::new().await;
    let group = |count: usize| {
        let ids: Vec<_> = (0..count).map(|_| IngestionId::random()).collect();
        serde_json::json!({ "ingestion_ids": ids }).to_string()
    };
    world.send(group(600)).await;
    world.send(group(100)).await;
    let worker = world.worker().await;
    let kept = "SELECT count(*)::text FROM docmill.quarantined_message WHERE reason = 'malformed'";
    until(SOON, || async {
        let depth = world.queue.depth().await.unwrap();
        world.scalar(kept).await == "1" && depth.ready == 0 && depth.in_flight == 1
    })
    .await;
    let good = world.submit("a.pdf", documents::invoice("G-1")).await;
    world.until(good, "status", "completed").await;
    // The good one's message goes; the group is still one.
    until(SOON, || async {
        let depth = world.queue.depth().await.unwrap();
        depth.ready + depth.in_flight + depth.delayed == 1
    })
    .await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_ids_of_a_group_do_not_wait_for_unknown_ones() {
    let world = World::new().await;
    let known = world.insert("a.pdf", documents::invoice("K-1")).await;
    let (document, late) = (DocumentId::random(), IngestionId::random());
    world.send(serde_json::json!({ "ingestion_ids": [late, known] }).to_string()).await;
    let worker = world.worker().await;
    world.until(known, "status", "completed").await;
    put(&world, "documents/late.pdf", "K-2").await;
    world.insert_rows(document, late, "documents/late.pdf").await;
    until(SOON, || async {
        world.sqs.advance(Duration::from_secs(30));
        world.column(late, "status").await.as_deref() == Some("completed")
    })
    .await;
    worker.stop().await;
}

/// A store that never answers about one key.
struct SilentAbout {
    inner: Arc<dyn ObjectStore>,
    key: &'static str,
}

#[async_trait]
impl ObjectStore for SilentAbout {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        if key == self.key {
            std::future::pending::<()>().await;
        }
        self.inner.head(key).await
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        self.inner.get(key, what).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        self.inner.put(key, bytes, metadata).await
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        self.inner.put_if_absent(key, bytes).await
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.inner.put_if_match(key, etag, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.inner.delete_if_match(key, etag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.inner.list(prefix, after, max).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_takes_for_ever_does_not_hold_back_the_others_of_its_batch() {
    let mut world = World::new().await;
    let silent = SilentAbout { inner: Arc::clone(&world.store), key: "documents/silent.pdf" };
    world.store = Arc::new(silent);
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(world.insert("a.pdf", documents::invoice(&format!("B-{number}"))).await);
    }
    // One request, so that they come in one batch.
    let slow = event("documents/silent.pdf", "e", "0A");
    let bodies = std::iter::once(slow).chain(ids.iter().map(ToString::to_string));
    let messages: Vec<_> = bodies.map(OutgoingMessage::from_body).collect();
    for answer in world.queue.send(&messages).await {
        answer.unwrap();
    }
    let worker = world.worker_with(|config| config.worker.drain = Duration::from_secs(6)).await;
    for id in ids {
        world.until(id, "status", "completed").await;
    }
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_outside_its_tenants_places_is_never_read() {
    let mut world = World::new().await;
    world.config.store.allow = vec!["documents/inbox/{tenant}/".parse().unwrap()];
    world.config.retry.missing_attempts = 1;
    put(&world, "inbox/a/x.pdf", "A-1").await;
    let victim = IngestionId::random();
    put(&world, &keys::transcription_key(victim), "A-2").await;
    let row = async |path: &str, tenant: &str| {
        let (document, id) = (DocumentId::random(), IngestionId::random());
        world.insert_rows(document, id, path).await;
        let tenants = format!("UPDATE docmill.ingestion SET tenant = '{tenant}' WHERE id = '{id}'");
        world.execute(&tenants).await;
        world.send(id.to_string()).await;
        id
    };
    let refused = [
        row("inbox/a/x.pdf", "b").await,
        row("s3://documents/inbox/a/x.pdf", "b").await,
        row(&keys::transcription_key(victim), "b").await,
        row("s3://elsewhere/x.pdf", "b").await,
    ];
    let own = row("s3://documents/inbox/a/x.pdf", "a").await;
    let worker = world.worker().await;
    world.until(own, "status", "completed").await;
    for id in refused {
        world.until(id, "status", "failed").await;
        assert_eq!(world.column(id, "reason").await.unwrap(), "missing");
        let detail = world.column(id, "detail").await.unwrap();
        assert!(detail.contains("store.allow") || detail.contains("own files"), "{detail}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_refusal_of_one_object_is_distinguished_from_one_of_the_bucket() {
    let bucket = RefusingBucket::start().await;
    let store = S3Store::with_client(s3_client(&bucket.endpoint()), BUCKET);
    let read = async |key: &str| {
        let what = GetOptions { at_most: 100, if_match: None };
        store.get(key, what).await.map(|_| ()).map_err(|error| error.fault)
    };
    bucket.put("documents/good.pdf", "good");
    for key in ["documents/foreign-key.pdf", "documents/customer-key.pdf", "documents/archived.pdf"]
    {
        bucket.put(key, "unreadable");
        assert_eq!(read(key).await, Err(Fault::Missing), "{key}");
    }
    for key in ["documents/foreign-key.pdf", "documents/customer-key.pdf"] {
        assert_eq!(store.head(key).await.unwrap_err().fault, Fault::Missing, "{key}");
    }
    assert_eq!(read("documents/good.pdf").await, Ok(()));
    assert_eq!(read("documents/none.pdf").await, Ok(()), "what is not there is an answer");
    // Not the version that was asked for, and a write under way, are not the same.
    let pinned = GetOptions { at_most: 100, if_match: Some(Etag("\"busy\"".to_owned())) };
    let busy = store.get("documents/busy.pdf", pinned).await.unwrap_err();
    assert_eq!(busy.fault, Fault::Transient);
    // The key of the bucket itself is lost: nothing of ours can be read either.
    bucket.refuse("ingestions/");
    assert_eq!(read("documents/foreign-key.pdf").await, Err(Fault::Denied));
    bucket.refuse("documents/");
    assert_eq!(read("documents/good.pdf").await, Err(Fault::Denied));
    // The right to the prefix alone is lost.
    bucket.allow("ingestions/");
    assert_eq!(read("documents/good.pdf").await, Err(Fault::Denied));
    bucket.allow("documents/");
    assert_eq!(read("documents/good.pdf").await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_objects_end_missing_and_never_pause_intake() {
    let moto = Moto::start().await;
    let mut world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket(BUCKET).send().await.unwrap();
    world.store = Arc::new(S3Store::with_client(s3.clone(), BUCKET));
    world.config.retry.missing_attempts = 2;
    world.config.retry.missing_delay = Duration::from_millis(10);
    let mut archived = Vec::new();
    for number in 0..6 {
        let key = format!("documents/archived-{number}.pdf");
        let body = ByteStream::from(documents::invoice("X-1"));
        let request = s3.put_object().bucket(BUCKET).key(&key).body(body);
        request.storage_class(StorageClass::Glacier).send().await.unwrap();
        let id = IngestionId::random();
        world.insert_rows(DocumentId::random(), id, &key).await;
        archived.push(id);
    }
    world.send_all(&archived).await;
    let worker = world.worker().await;
    for id in archived {
        until(SOON, || async {
            world.sqs.advance(Duration::from_secs(2));
            world.column(id, "status").await.as_deref() == Some("failed")
        })
        .await;
        assert_eq!(world.column(id, "reason").await.unwrap(), "missing");
        assert_eq!(world.attempts(id).await, ["missing", "missing"], "both count");
        let detail = world.column(id, "detail").await.unwrap();
        assert!(detail.contains("InvalidObjectState"), "{detail}");
    }
    let good = world.submit("a.pdf", documents::invoice("Y-1")).await;
    world.until(good, "status", "completed").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_by_an_alias_takes_nothing_of_anybody_else_and_an_honest_one_is_complete() {
    let moto = Moto::start().await;
    let mut world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket(BUCKET).send().await.unwrap();
    world.store = Arc::new(S3Store::with_client(s3, BUCKET));
    let (a, b) = (IngestionId::random(), IngestionId::random());
    let original = "documents/x.pdf";
    let transcript = keys::transcription_key(a);
    for key in [original, &transcript] {
        put(&world, key, "A-1").await;
    }
    let row = async |id: IngestionId, tenant: &str, path: &str| {
        let document = DocumentId::random();
        world.insert_rows(document, id, path).await;
        world
            .execute(&format!(
                "UPDATE docmill.document SET tenant = '{tenant}' WHERE id = '{document}'"
            ))
            .await;
        world
            .execute(&format!(
                "UPDATE docmill.ingestion SET tenant = '{tenant}',
                     transcription_file_path = '{transcript}' WHERE id = '{id}'"
            ))
            .await;
    };
    row(a, "a", original).await;
    row(b, "b", "s3://documents/documents/x.pdf").await;
    let db = world.database.db();
    let backends =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    let by = AuditNote { operator: "ada".to_owned(), why: String::new() };
    let erased = erase::erase_tenant(backends, "b", Duration::ZERO, &by).await.unwrap();
    assert_eq!((erased.documents, erased.objects, erased.shared), (1, 0, 1));
    for key in [original, &transcript] {
        assert!(world.store.head(key).await.unwrap().is_some(), "{key} is another tenant's");
    }
    // The bucket's event registered the object too, as a second row without a tenant.
    let etag = world.store.head(original).await.unwrap().unwrap().etag.0;
    let ledger = PostgresLedger::new(db.clone());
    let twin = ObjectRegistration {
        document: DocumentId::from_object(BUCKET, original),
        file_path: original.to_owned(),
        etag: Some(etag),
        ..found_by_event("e")
    };
    ledger.register_object(&twin).await.unwrap();
    let erased = erase::erase_tenant(backends, "a", Duration::ZERO, &by).await.unwrap();
    assert_eq!((erased.documents, erased.objects, erased.shared), (2, 2, 0));
    let left = "SELECT (SELECT count(*) FROM docmill.document) + (SELECT count(*) FROM
        docmill.ingestion) || ''";
    assert_eq!(world.scalar(left).await, "0");
    assert!(world.store.list("", None, 10).await.unwrap().is_empty());
}
