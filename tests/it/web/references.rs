//! Handing in what lies in a bucket already, and what is put there past the pages.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;

use docmill_core::config::AllowedPrefix;
use docmill_storage::ObjectStore as _;
use docmill_storage::s3::S3Store;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::api::{differences, run_example};
use super::desk::{PageAnswer, WebConsole, send};
use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::world::s3_client;

const BUCKET: &str = "papers";
const DOCUMENTS: &str = "SELECT count(*) FROM document";

/// Pages over a bucket of their own; whose documents lie where says `store.allow`.
async fn open(moto: &Moto) -> WebConsole {
    let client = s3_client(&moto.endpoint());
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    let store = Arc::new(S3Store::with_client(client, BUCKET));
    let console = WebConsole::open_over_store(store, |config| {
        config.limits.document_bytes.0 = 1 << 20;
        config.store.bucket = BUCKET.to_owned();
        let place = |text: &str, tenant: Option<&str>| AllowedPrefix {
            tenant: tenant.map(str::to_owned),
            ..text.parse().unwrap()
        };
        config.store.allow = vec![
            place("papers/in/acme/", Some("acme")),
            place("papers/in/rival/", Some("rival")),
            place("papers/in/", None),
        ];
    });
    Box::pin(console).await
}

async fn store(moto: &Moto, key: &str, bytes: Vec<u8>) {
    let store = S3Store::with_client(s3_client(&moto.endpoint()), BUCKET);
    store.put(key, bytes.into(), &BTreeMap::new()).await.unwrap();
}

fn post(desk: &WebConsole, path: &str, name: &str, body: &Value) -> RequestBuilder {
    desk.call(Method::POST, path, name).json(body)
}

async fn refer(desk: &WebConsole, name: &str, object: &str) -> PageAnswer {
    send(post(desk, "/documents/reference", name, &json!({ "object": object }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_handed_in_by_its_name_only_where_the_events_of_its_bucket_are_taken() {
    let moto = Moto::start().await;
    let desk = open(&moto).await;
    for key in ["in/acme/a.pdf", "in/rival/a.pdf", "in/b.pdf", "secret/a.pdf", "ingestions/x/a.pdf"]
    {
        store(&moto, key, documents::invoice(key)).await;
    }
    for (name, object, status) in [
        ("producer", "in/rival/a.pdf", 403),
        ("producer", "in/b.pdf", 403),
        ("producer", "secret/a.pdf", 403),
        ("producer", "in/acme/", 403),
        ("producer", "", 403),
        ("producer", "s3://others/in/acme/a.pdf", 403),
        ("producer", "s3://papers", 403),
        ("producer", "in/acme/../rival/a.pdf", 422),
        ("producer", "in/acme/none.pdf", 422),
        ("viewer", "in/acme/a.pdf", 403),
        ("operator", "secret/a.pdf", 403),
        ("operator", "ingestions/x/a.pdf", 403),
        ("operator", "uploads/x/a.pdf", 403),
    ] {
        let answer = refer(&desk, name, object).await;
        assert_eq!(answer.status.as_u16(), status, "{name} {object}: {answer:?}");
    }
    let tenant = json!({ "object": "in/rival/a.pdf", "tenant": "acme" });
    let other = send(post(&desk, "/documents/reference", "operator", &tenant)).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN, "the place says whose it is");
    assert_eq!(desk.scalar(DOCUMENTS).await, "0");

    let description = desk.get("/openapi.json", "viewer").await.json();
    let done = refer(&desk, "producer", "in/acme/a.pdf").await.json();
    assert_eq!(differences(&description, "/documents/reference", &done), [""; 0]);
    assert_eq!(done["fate"], "submitted");
    let same = refer(&desk, "operator", "s3://papers/in/acme/a.pdf").await.json();
    assert_eq!((&same["fate"], &same["ingestion_id"]), (&json!("known"), &done["ingestion_id"]));
    assert_eq!(refer(&desk, "operator", "in/b.pdf").await.json()["fate"], "submitted");
    let tenants = "SELECT string_agg(coalesce(tenant, '-'), ',' ORDER BY tenant) FROM document";
    assert_eq!(desk.scalar(tenants).await, "acme,-");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_is_repeated_under_its_key_is_answered_the_same_and_another_is_refused() {
    let moto = Moto::start().await;
    let desk = open(&moto).await;
    store(&moto, "in/acme/a.pdf", documents::invoice("L-1")).await;
    let keyed = |object: &str| {
        let body = json!({ "object": object });
        post(&desk, "/documents/reference", "producer", &body).header("idempotency-key", "k1")
    };
    let first = send(keyed("in/acme/a.pdf")).await;
    let second = send(keyed("in/acme/a.pdf")).await;
    assert_eq!(first.json(), second.json());
    assert_eq!(second.header("idempotency-replayed"), "true");
    assert_eq!(send(keyed("in/acme/b.pdf")).await.json()["code"], "idempotency_key_reused");
}

/// Sends bytes to the address, with the headers that it wants.
async fn send_to(address: &Value, bytes: Vec<u8>) {
    let mut put = Client::builder().build().unwrap().put(address["url"].as_str().unwrap());
    for (name, value) in address["headers"].as_object().unwrap() {
        put = put.header(name, value.as_str().unwrap());
    }
    let done = put.body(bytes).send().await.unwrap();
    assert!(done.status().is_success(), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_to_an_address_for_its_size_and_is_handed_in_by_whoever_asked_for_it() {
    let moto = Moto::start().await;
    let desk = open(&moto).await;
    let description = desk.get("/openapi.json", "viewer").await.json();
    let bytes = documents::invoice("L-1");
    let asked = json!({ "size": bytes.len() });
    let address = send(post(&desk, "/uploads", "producer", &asked)).await.json();
    assert_eq!(differences(&description, "/uploads", &address), [""; 0]);
    let url = address["url"].as_str().unwrap();
    // The store refuses another length, and everything after a quarter of an hour.
    let signed = url.split("X-Amz-SignedHeaders=").nth(1).unwrap().split('&').next().unwrap();
    assert!(signed.split("%3B").any(|name| name == "content-length"), "{signed}");
    assert!(url.contains("X-Amz-Expires=900") && url.contains("/uploads/"), "{url}");
    let id = address["upload_id"].as_str().unwrap();
    let complete = format!("/uploads/{id}/complete");
    let early = send(post(&desk, &complete, "producer", &json!({}))).await;
    assert_eq!(early.status, StatusCode::NOT_FOUND, "nothing has come yet");
    send_to(&address, bytes.clone()).await;
    let other = send(post(&desk, &complete, "operator", &json!({}))).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND, "it is another's");
    assert_eq!(desk.scalar(DOCUMENTS).await, "0");
    let terms = json!({ "name": "march.pdf", "kind": "invoice" });
    let keyed = || post(&desk, &complete, "producer", &terms).header("idempotency-key", "c1");
    let done = send(keyed()).await.json();
    assert_eq!(differences(&description, "/uploads/{upload_id}/complete", &done), [""; 0]);
    assert_eq!(done["fate"], "submitted");
    assert_eq!(send(keyed()).await.json(), done, "asked again it is answered the same");
    // A holder of the address cannot change the document afterwards.
    send_to(&address, vec![b'x'; bytes.len()]).await;
    let path = desk.scalar("SELECT file_path FROM document").await;
    let kept = s3_client(&moto.endpoint()).get_object().bucket(BUCKET).key(&path).send().await;
    assert_eq!(kept.unwrap().body.collect().await.unwrap().into_bytes(), bytes);
    assert!(path.starts_with("documents/"), "{path}");
    let by_body = desk.call(Method::POST, "/documents", "producer").body(bytes);
    assert_eq!(send(by_body).await.json()["fate"], "known", "the same bytes are one document");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_too_large_or_no_document_is_refused_and_a_folder_takes_none() {
    let moto = Moto::start().await;
    let desk = open(&moto).await;
    let ask = async |body: Value| send(post(&desk, "/uploads", "producer", &body)).await;
    assert_eq!(ask(json!({ "size": 2 << 20 })).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(ask(json!({ "size": 0 })).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(ask(json!({})).await.status, StatusCode::BAD_REQUEST);
    let address = ask(json!({ "size": 12 })).await.json();
    let complete = format!("/uploads/{}/complete", address["upload_id"].as_str().unwrap());
    send_to(&address, b"no document\0".to_vec()).await;
    let refused = send(post(&desk, &complete, "producer", &json!({}))).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    // A store that did not hold the sender to the size is not believed.
    let url = address["url"].as_str().unwrap();
    let key = url.split("/papers/").nth(1).unwrap().split('?').next().unwrap();
    store(&moto, key, vec![b'%'; 3 << 20]).await;
    let refused = send(post(&desk, &complete, "producer", &json!({}))).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{refused:?}");
    assert_eq!(desk.scalar(DOCUMENTS).await, "0");
    let folder = WebConsole::open().await;
    let none = send(post(&folder, "/uploads", "producer", &json!({ "size": 9 }))).await;
    assert_eq!(none.json()["code"], "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_references_and_uploads_in_the_docs_run_as_they_stand() {
    let moto = Moto::start().await;
    let desk = open(&moto).await;
    store(&moto, "in/b.pdf", documents::invoice("L-2")).await;
    let printed = run_example(&desk, 1, &[("OBJECT", "s3://papers/in/b.pdf")]).await;
    assert_eq!(printed.matches("\"fate\":\"submitted\"").count(), 2, "{printed}");
    let names = "SELECT string_agg(original_name, ',' ORDER BY original_name) FROM document";
    assert_eq!(desk.scalar(names).await, "april.pdf,b.pdf");
}
