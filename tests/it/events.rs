//! A PDF in S3 and its event on SQS, both served by third-party software.

use std::sync::Arc;

use aws_sdk_s3::primitives::ByteStream;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::Ledger;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_queue::sqs::SqsQueue;
use docmill_storage::s3::S3Store;
use docmill_testkit::openai::{Answer, Script};

use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::world::{SOON, World, s3_client, until};

const KEY: &str = "documents/red flower.pdf";

fn event(etag: &str) -> String {
    serde_json::json!({"Records": [{
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "documents"}, "object": {
            "key": "documents/red+flower.pdf", "size": 900, "eTag": etag, "sequencer": "0A"}}
    }]})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_a_pdf_in_s3_ends_as_one_completed_row_however_often_it_comes() {
    let moto = Moto::start().await;
    let mut world = World::with_model(Script::always(Answer::Read)).await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket("documents").send().await.unwrap();
    let body = ByteStream::from(documents::invoice("S-3"));
    let put = s3.put_object().bucket("documents").key(KEY).body(body).send().await.unwrap();
    let etag = put.e_tag().unwrap().trim_matches('"').to_owned();

    let sqs = crate::support::sqs::client(&moto.endpoint());
    let created = sqs.create_queue().queue_name("documents").send().await.unwrap();
    world.config.queue.url = created.queue_url().unwrap().to_owned();
    world.config.queue.endpoint = moto.endpoint();
    let queue = SqsQueue::with_client(sqs.clone(), &world.config.queue).await.unwrap();
    world.queue = Arc::new(queue);
    world.store = Arc::new(S3Store::with_client(s3.clone(), "documents"));

    let plain = event(&etag);
    let wrapped = serde_json::json!({"Type": "Notification", "Message": plain}).to_string();
    for message in [plain.clone(), plain.clone(), plain, wrapped] {
        world.send(message).await;
    }
    let ledger: Arc<dyn Ledger> = Arc::new(PostgresLedger::new(world.database.db()));
    let model = world.model().await;
    let worker = world.worker_on(ledger, model).await;
    until(SOON, || async { world.all_ids().await.len() == 1 }).await;
    let ids = world.all_ids().await;
    let id = *ids.first().unwrap();
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;

    assert_eq!(world.all_ids().await, ids, "one ingestion");
    assert_eq!(world.attempts(id).await, ["completed"]);
    assert_eq!(world.column(id, "extraction_model").await.unwrap(), "scripted");
    assert!(world.column(id, "extraction_input_tokens").await.unwrap().parse::<u64>().unwrap() > 0);
    let number = "SELECT structured_data->>'invoice_number' FROM docmill.document";
    assert_eq!(world.scalar(number).await, "S-3", "carried over by the trigger");
    for key in
        [docmill_storage::keys::transcription_key(id), docmill_storage::keys::extraction_key(id)]
    {
        assert!(world.store.head(&key).await.unwrap().is_some(), "{key} is stored");
    }
    assert_eq!(
        world.column(id, "transcription_file_path").await.unwrap(),
        docmill_storage::keys::transcription_key(id)
    );
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.in_flight, 0, "every message is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_an_object_that_was_replaced_since_has_it_read_as_it_is() {
    let moto = Moto::start().await;
    let mut world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket("documents").send().await.unwrap();
    let body = ByteStream::from(documents::invoice("S-4"));
    s3.put_object().bucket("documents").key(KEY).body(body).send().await.unwrap();
    world.store = Arc::new(S3Store::with_client(s3.clone(), "documents"));
    world.send(event("0123456789abcdef0123456789abcdef")).await;
    let worker = world.worker_on(world.ledger().await, None).await;
    until(SOON, || async { world.all_ids().await.len() == 1 }).await;
    let id = *world.all_ids().await.first().unwrap();
    world.until(id, "status", "completed").await;
    // Replaced while its ingestion waits, in a bucket without events.
    let body = ByteStream::from(documents::invoice("S-5"));
    let waiting = IngestionId::random();
    let document = DocumentId::random();
    s3.put_object().bucket("documents").key("documents/b.pdf").body(body).send().await.unwrap();
    world.insert_rows(document, waiting, "documents/b.pdf").await;
    let pin =
        format!("UPDATE docmill.ingestion SET object_etag = '\"0123\"' WHERE id = '{waiting}'");
    world.execute(&pin).await;
    world.send(waiting.to_string()).await;
    world.until(waiting, "status", "completed").await;
    worker.stop().await;
    let number = world.column(waiting, "structured_data->>'invoice_number'").await;
    assert_eq!(number.as_deref(), Some("S-5"));
}
