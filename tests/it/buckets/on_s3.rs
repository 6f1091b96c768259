//! The same over an independent S3 implementation (moto), below a prefix that needs encoding.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Cursor, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use docmill_compat::bucket::{
    self as bucket, BlobForgeBucket, BucketManifest, BucketState, BucketWorkerSetup, IngestOptions,
    IngestSource as From, LockRenewal,
};
use docmill_compat::objects::blobforge::out_key;
use docmill_compat::objects::engine::StoreClock;
use docmill_core::model::Priority;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::prefixed::PrefixedStore;
use docmill_storage::s3::S3Store;
use docmill_storage::{GetOptions, GetResult, ObjectStore, PutResult};

use super::{Fake, Manner, terms};
use crate::support::moto::Moto;

async fn client(server: &Moto) -> Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(server.endpoint())
        .force_path_style(true)
        .build();
    let client = Client::from_conf(config);
    client.create_bucket().bucket("papers").send().await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_below_an_odd_prefix_is_worked_on_by_four_workers() {
    let server = Moto::start().await;
    let whole = Arc::new(S3Store::with_client(client(&server).await, "papers"));
    let store: Arc<dyn ObjectStore> = Arc::new(PrefixedStore::new(whole.clone(), "a+b/100% é"));
    docmill_storage::conditions::check_conditional_writes(&*store, "").await.unwrap();
    let bucket = Arc::new(BlobForgeBucket::new(store.clone(), StoreClock::default()));
    let dir = tempfile::tempdir().unwrap();
    for number in 0..24 {
        let name = format!("r+e%20d, \"{number}\"\n.pdf");
        std::fs::write(dir.path().join(name), format!("%PDF-{number}")).unwrap();
    }
    let how = IngestOptions {
        priority: Priority::Low,
        tags: vec!["spring".to_owned()],
        any_format: false,
        dry_run: false,
        largest: 1 << 20,
        git: PathBuf::from("git"),
        trusts_folders: false,
    };
    let from = From::Local(dir.path().to_owned());
    bucket::ingest_all(&bucket, &from, &how, &|_, _| {}).await.unwrap();
    let convert = Fake::new(Manner::Well);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (bucket, convert) = (bucket.clone(), convert.clone());
            tokio::spawn(
                BucketWorkerSetup { bucket, convert, terms: terms(true) }.run(Shutdown::default()),
            )
        })
        .collect();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    assert_eq!(convert.count(), 24, "each once");
    let manifest = BucketManifest::load(&bucket).await.unwrap();
    assert_eq!(manifest.entries.len(), 24);
    for (hash, entry) in &manifest.entries {
        assert_eq!(bucket.state(hash).await.unwrap(), Some(BucketState::Done));
        let what = GetOptions { at_most: 1 << 20, if_match: None };
        let GetResult::Found(zip) = store.get(&out_key(hash), what).await.unwrap() else {
            panic!("no result")
        };
        let mut zip = zip::ZipArchive::new(Cursor::new(zip.bytes)).unwrap();
        let mut text = String::new();
        zip.by_name("content.md").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, entry.paths[0], "its label came back as it was");
    }
    let all = whole.list("", None, 1000).await.unwrap();
    assert!(all.iter().all(|entry| entry.key.starts_with("a+b/100% é/")), "nothing elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_take_one_document_one_has_it_and_keeps_it() {
    let server = Moto::start().await;
    let store: Arc<dyn ObjectStore> =
        Arc::new(S3Store::with_client(client(&server).await, "papers"));
    let bucket = Arc::new(BlobForgeBucket::new(store.clone(), StoreClock::default()));
    let hash = "ab".repeat(32);
    let marker = docmill_compat::objects::blobforge::todo_key(Priority::Normal, &hash);
    store.put(&marker, "".into(), &Default::default()).await.unwrap();
    let tries: Vec<_> = (0..12)
        .map(|number| {
            let (bucket, hash) = (bucket.clone(), hash.clone());
            tokio::spawn(async move {
                let who = bucket::WorkerIdentity::new(format!("w-{number}"));
                let candidate = bucket::MarkerCandidate { priority: Priority::Normal, hash };
                let settings = bucket::BucketSettings::default();
                bucket::claim_document(&bucket, &who, &settings, &candidate).await.unwrap()
            })
        })
        .collect();
    let mut ours = Vec::new();
    for one in tries {
        if let bucket::BucketClaimResult::Ours(claim) = one.await.unwrap() {
            ours.push(claim);
        }
    }
    assert_eq!(ours.len(), 1);
    for _ in 0..3 {
        assert_eq!(ours[0].renew(&bucket, "converting").await.unwrap(), LockRenewal::Ours);
    }
}

/// Moto behind a hand that takes If-Match off every DELETE, as services do that only pretend.
async fn pretending_endpoint(server: &Moto) -> (String, tokio::task::JoinHandle<()>) {
    use axum::extract::{Request, State};
    type Parts = (String, reqwest::Client);
    async fn pass_on(
        State((to, client)): State<Parts>,
        request: Request,
    ) -> axum::response::Response {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        let mut headers = parts.headers;
        if parts.method == axum::http::Method::DELETE {
            headers.remove("if-match");
        }
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let sent = client.request(parts.method, format!("{to}{path}")).headers(headers).body(body);
        let answer = sent.send().await.unwrap();
        let mut reply = axum::response::Response::builder().status(answer.status());
        reply.headers_mut().unwrap().extend(answer.headers().clone());
        reply.body(answer.bytes().await.unwrap().into()).unwrap()
    }
    let client = reqwest::Client::builder().timeout(std::time::Duration::from_secs(30));
    let state = (server.endpoint(), client.build().unwrap());
    let router = axum::Router::new().fallback(pass_on).with_state(state);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_only_pretends_to_delete_on_condition_holds_locks_all_the_same() {
    use docmill_storage::conditions::{check_conditional_writes, keep_delete_conditions};
    let server = Moto::start().await;
    let real = client(&server).await;
    let (endpoint, serving) = pretending_endpoint(&server).await;
    let pretending = Client::from_conf(real.config().to_builder().endpoint_url(endpoint).build());
    for (client, left) in [(real.clone(), 0), (pretending, 1)] {
        let plain: Arc<dyn ObjectStore> = Arc::new(S3Store::with_client(client, "papers"));
        let plain: Arc<dyn ObjectStore> = Arc::new(PrefixedStore::new(plain, "pdf"));
        check_conditional_writes(plain.as_ref(), "").await.unwrap();
        let store = keep_delete_conditions(Arc::clone(&plain), "").await.unwrap();
        assert!(plain.list("", None, 10).await.unwrap().is_empty(), "the probes are gone");
        let PutResult::Written(mine) = store.put_if_absent("lock", "mine".into()).await.unwrap()
        else {
            panic!("a fresh lock was refused")
        };
        let theirs = store.put_if_match("lock", &mine, "theirs".into()).await.unwrap();
        let PutResult::Written(theirs) = theirs else { panic!("not taken over") };
        assert!(!store.delete_if_match("lock", &mine).await.unwrap(), "it is another's by now");
        assert!(store.head("lock").await.unwrap().is_some(), "and still there");
        assert!(store.delete_if_match("lock", &theirs).await.unwrap());
        assert!(store.list("", None, 10).await.unwrap().is_empty());
        assert_eq!(plain.list("", None, 10).await.unwrap().len(), left, "a mark");
        let again = store.put_if_absent("lock", "again".into()).await.unwrap();
        let PutResult::Written(again) = again else { panic!("a released lock was refused") };
        store.delete_if_match("lock", &again).await.unwrap();
        plain.delete("lock").await.unwrap();
    }
    serving.abort();
}
