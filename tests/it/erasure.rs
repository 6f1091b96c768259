//! Erasing a tenant: no row, object or message of it is left, and no other tenant loses anything.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use docmill_core::config::QueueDestination;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::operators::erasure;
use docmill_operations::erase::{self, ErasureBackends, RetentionSweep};
use docmill_operations::submit::{self, SubmitContext, SubmitOptions};
use docmill_storage::keys;
use docmill_storage::s3::S3Store;

use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::world::{SOON, World, s3_client, until};

const FORGOTTEN: &str = "tenant-to-forget";
const KEPT: &str = "tenant-to-keep";

fn by() -> AuditNote {
    AuditNote { operator: "ada".to_owned(), why: "asked to".to_owned() }
}

async fn hand_in(world: &World, tenant: &str, number: &str) -> IngestionId {
    let parts = world.parts().await;
    let file = world.logs.path().join(format!("{number}.pdf"));
    std::fs::write(&file, documents::invoice(number)).unwrap();
    let desk = SubmitContext {
        db: &parts.db,
        store: parts.store.as_ref(),
        queue: parts.queue.as_ref(),
        largest: 1 << 20,
        destination: &QueueDestination::default(),
    };
    let terms = SubmitOptions { tenant: Some(tenant.to_owned()), ..SubmitOptions::default() };
    submit::submit_file(desk, &file, &terms).await.unwrap().ingestion_id.unwrap()
}

/// Every row that mentions a word, as `table: row`, other than the memory of the erasure itself.
async fn rows_with(world: &World, word: &str) -> Vec<String> {
    let tables = world
        .scalar(
            "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'docmill'
             AND tablename NOT IN ('erased_ingestion', '_sqlx_migrations')",
        )
        .await;
    let mut found = Vec::new();
    for table in tables.split(',') {
        let rows = world
            .scalar(&format!(
                "SELECT string_agg(t::text, ' / ') FROM docmill.{table} t
                 WHERE t::text LIKE '%{word}%' AND t::text NOT LIKE '%,erase,tenant:%'"
            ))
            .await;
        if !rows.is_empty() {
            found.push(format!("{table}: {rows}"));
        }
    }
    found
}

async fn objects(world: &World) -> Vec<String> {
    let all = world.store.list("", None, 10_000).await.unwrap();
    all.into_iter().map(|entry| entry.key).collect()
}

/// Words that lead to an ingestion: its id and its document's.
async fn words(world: &World, id: IngestionId) -> [String; 2] {
    [id.to_string(), world.column(id, "document_id").await.unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_tenant_leaves_no_row_object_or_message_of_it_and_the_others_alone() {
    let mut world = World::with_redrive(3).await;
    world.config.claim.lease = Duration::from_secs(3);
    let worker = world.worker().await;
    let done = hand_in(&world, FORGOTTEN, "F-1").await;
    let kept = hand_in(&world, KEPT, "K-1").await;
    for id in [done, kept] {
        world.until(id, "status", "completed").await;
    }
    world.until_empty().await;
    worker.stop().await;
    // One whose message died, and one whose message waits; and an operator has been there.
    let dead = hand_in(&world, FORGOTTEN, "F-2").await;
    let kept_dead = hand_in(&world, KEPT, "K-2").await;
    world.receive_to_death().await;
    let waiting = hand_in(&world, FORGOTTEN, "F-3").await;
    let kept_waiting = hand_in(&world, KEPT, "K-3").await;
    let db = world.database.db();
    docmill_ledger::db::operators::cancel_ingestions(&db, &[dead], &by()).await.unwrap();
    let mut all_words = vec![FORGOTTEN.to_owned()];
    for id in [done, dead, waiting] {
        all_words.extend(words(&world, id).await);
    }
    let before = objects(&world).await;
    let of_kept: Vec<_> = before
        .iter()
        .filter(|key| !all_words.iter().any(|word| key.contains(word.as_str())))
        .cloned()
        .collect();

    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    let preview = erase::preview_erasure(places, FORGOTTEN).await.unwrap();
    assert_eq!((preview.documents, preview.ingestions, preview.cancelled), (3, 3, 1));
    assert_eq!(preview.objects, before.len() - of_kept.len());
    assert_eq!(objects(&world).await, before, "a dry run changes nothing");

    let erased = erase::erase_tenant(places, FORGOTTEN, Duration::ZERO, &by()).await.unwrap();
    assert_eq!((erased.documents, erased.cancelled, erased.dead_letters), (3, 1, 1));
    assert_eq!(erased.objects, preview.objects);
    for word in &all_words {
        assert_eq!(rows_with(&world, word).await, Vec::<String>::new(), "{word}");
    }
    assert_eq!(objects(&world).await, of_kept);

    // Messages still in the queue are deleted when received.
    let worker = world.worker().await;
    world.until(kept_waiting, "status", "completed").await;
    until(SOON, || async {
        let depth = world.queue.depth().await.unwrap();
        depth.ready + depth.in_flight + depth.delayed == 0
    })
    .await;
    worker.stop().await;
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(1), "the other tenant's stays");
    for word in &all_words {
        assert_eq!(rows_with(&world, word).await, Vec::<String>::new(), "{word} came back");
    }
    assert_eq!(world.column(kept, "status").await.unwrap(), "completed");
    assert_eq!(world.column(kept_dead, "status").await.unwrap(), "in-progress");
    let audit = "SELECT operator || ' ' || target || ' ' || why FROM docmill.operator_action
        WHERE action = 'erase'";
    assert_eq!(world.scalar(audit).await, format!("ada tenant:{FORGOTTEN} asked to"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_ingestion_is_taken_from_its_worker_before_erasure() {
    let mut world = World::with_model(docmill_testkit::openai::Script::always(
        docmill_testkit::openai::Answer::Hang,
    ))
    .await;
    world.config.claim.lease = Duration::from_secs(3);
    let worker = world.worker().await;
    let id = hand_in(&world, FORGOTTEN, "F-9").await;
    let llm = world.llm.as_ref().unwrap();
    assert!(llm.arrived(1, SOON).await, "the worker is in the middle of it");
    let db = world.database.db();
    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    let notice = Duration::from_secs(3);
    let erased = erase::erase_tenant(places, FORGOTTEN, notice, &by()).await.unwrap();
    assert_eq!((erased.documents, erased.cancelled), (1, 1));
    until(SOON, || async { worker.monitor.running_jobs().is_empty() }).await;
    // The worker left the message alone, as with any claim that is lost: it comes back.
    world
        .pass_until(|| async {
            let depth = world.queue.depth().await.unwrap();
            depth.ready + depth.in_flight == 0
        })
        .await;
    worker.stop().await;
    assert_eq!(rows_with(&world, &id.to_string()).await, Vec::<String>::new());
    assert_eq!(objects(&world).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_documents_past_their_tenants_retention_expire() {
    let world = World::new().await;
    let worker = world.worker().await;
    let old = hand_in(&world, FORGOTTEN, "R-1").await;
    let kept = hand_in(&world, KEPT, "R-2").await;
    for id in [old, kept] {
        world.until(id, "status", "completed").await;
    }
    worker.stop().await;
    let db = world.database.db();
    erasure::set_retention(&db, FORGOTTEN, Some(30), &by()).await.unwrap();
    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    let day = Duration::from_secs(24 * 3600);
    world.database.advance(day * 29).await;
    let expire = async || {
        let done = erase::erase_expired(places, &RetentionSweep::default(), None).await.unwrap();
        assert!(done.failed.is_none(), "{:?}", done.failed);
        done.erased
    };
    assert_eq!(expire().await, 0, "not yet");
    let open = hand_in(&world, FORGOTTEN, "R-3").await;
    world.database.advance(day * 31).await;
    assert_eq!(expire().await, 1);
    assert_eq!(world.all_ids().await.len(), 2);
    assert_eq!(world.column(open, "status").await.unwrap(), "in-progress", "not ended: kept");
    erasure::set_retention(&db, FORGOTTEN, None, &by()).await.unwrap();
    assert_eq!(erasure::list_retentions(&db).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_keeps_an_original_that_a_younger_row_uses_under_any_name() {
    let moto = Moto::start().await;
    let mut world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket("documents").send().await.unwrap();
    world.store = Arc::new(S3Store::with_client(s3, "documents"));
    let db = world.database.db();
    erasure::set_retention(&db, "acme", Some(30), &by()).await.unwrap();
    let others = keys::transcription_key(IngestionId::random());
    for key in ["documents/x.pdf", &others] {
        world.store.put(key, documents::invoice("A-1").into(), &BTreeMap::new()).await.unwrap();
    }
    let end = async |id: IngestionId| {
        world
            .execute(&format!(
                "UPDATE docmill.ingestion SET tenant = 'acme', status = 'completed',
                     created_at = docmill.docmill_now(), completed_at = docmill.docmill_now(),
                     transcription_file_path = '{others}', valid_structured_data = true
                 WHERE id = '{id}'"
            ))
            .await;
    };
    let expire = async || {
        let backends =
            ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
        let done = erase::erase_expired(backends, &RetentionSweep::default(), None).await.unwrap();
        let key = world.store.head("documents/x.pdf").await.unwrap();
        (done.erased, done.failed.is_some(), key.is_some())
    };
    let (old, young) = (IngestionId::random(), IngestionId::random());
    world.insert_rows(DocumentId::random(), old, "documents/x.pdf").await;
    end(old).await;
    world.pass(Duration::from_secs(20 * 86_400)).await;
    world.insert_rows(DocumentId::random(), young, "s3://documents/documents/x.pdf").await;
    end(young).await;
    world.execute("UPDATE docmill.document SET tenant = 'acme'").await;
    world.pass(Duration::from_secs(20 * 86_400)).await;
    assert_eq!(expire().await, (1, false, true), "the same tenant still needs it");
    world.pass(Duration::from_secs(20 * 86_400)).await;
    assert_eq!(expire().await, (1, false, false));
    assert!(world.store.head(&others).await.unwrap().is_some(), "its row only named it");
}
