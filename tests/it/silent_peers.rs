//! Invariant 5: a call to a silent peer ends by itself, for every kind of peer.
//!
//! The peer's host still acknowledges data, so no TCP timer ends the call. Time is paused, so a
//! call without its own timeout is found at once. Not covered: Postgres, beside which real clocks
//! run (`outages.rs`), and lookups before a worker runs.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use docmill_client::webhook::{DestinationPolicy, SignedMessage, SystemResolver, WebhookSender};
use docmill_core::config::{
    BedrockBatchConfig, LlmConfig, QueueConfig, StoreConfig, WebhooksConfig,
};
use docmill_documents::ocr::RemoteOcrProvider as _;
use docmill_llm::batch::SoughtBatch;
use docmill_queue::redis::RedisQueue;
use docmill_queue::sqs::SqsQueue;
use docmill_queue::{MessageQueue, OutgoingMessage};
use docmill_storage::s3::{BucketAccess, S3Store};
use docmill_storage::{Etag, GetOptions, ObjectStore as _};
use docmill_testkit::silent_proxy::SilentProxy;
use docmill_testkit::{document_ai as google, openai, sqs};
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::llm::{prompt, vendors};
use crate::support::moto::Moto;
use crate::support::redis::Redis;
use crate::support::world::{SOON, until};
use crate::{providers, store_suite, support};

/// No setting lets a call take as long.
const WITHOUT_END: Duration = Duration::from_secs(24 * 3600);
/// Less than any limit: what ends sooner has ended for another reason.
const SILENCE: Duration = Duration::from_millis(500);

/// Awaits a call to a silent peer, which must fail by its timeout. `call` returns whether it
/// failed.
async fn assert_ends(what: &str, call: impl Future<Output = bool>) {
    let begun = Instant::now();
    let failed = tokio::time::timeout(WITHOUT_END, call).await;
    let failed = failed.unwrap_or_else(|_| panic!("{what} waits for a silent peer without end"));
    let waited = begun.elapsed();
    assert!(failed && waited >= SILENCE, "{what}: the peer was not silent ({waited:?})");
}

fn all_failed<T, E>(answers: &[Result<T, E>]) -> bool {
    answers.iter().all(Result::is_err)
}

/// `http://` to the proxy.
fn address(proxy: &SilentProxy) -> String {
    format!("http://{}", proxy.address())
}

async fn proxy_to(url: &str) -> SilentProxy {
    let (_, place) = url.split_once("://").unwrap();
    SilentProxy::start(place.split('/').next().unwrap()).await.unwrap()
}

/// A proxy without a peer, silent from the start.
async fn mute() -> SilentProxy {
    let proxy = SilentProxy::start("127.0.0.1:1").await.unwrap();
    proxy.fall_silent();
    proxy
}

/// Every call of a queue, on a message that was received while its server still spoke.
async fn assert_queue_calls_end(queue: &dyn MessageQueue, proxy: &SilentProxy) {
    let message = OutgoingMessage::from_body("a message");
    assert!(queue.send(std::slice::from_ref(&message)).await.iter().all(Result::is_ok));
    let taken = queue.receive(1, Duration::from_secs(5)).await.unwrap();
    let receipts: Vec<_> = taken.into_iter().map(|delivery| delivery.receipt).collect();
    assert_eq!(receipts.len(), 1);
    let hidden: Vec<_> =
        receipts.iter().map(|one| (one.clone(), Duration::from_secs(60))).collect();
    proxy.fall_silent();
    tokio::time::pause();
    let wait = Duration::from_secs(20);
    assert_ends("receive", async { queue.receive(1, wait).await.is_err() }).await;
    assert_ends("extend", async {
        all_failed(&queue.extend_visibility(&receipts, Duration::from_secs(60)).await)
    })
    .await;
    assert_ends("hide", async { all_failed(&queue.hide(&hidden).await) }).await;
    assert_ends("acknowledge", async { all_failed(&queue.acknowledge(&receipts).await) }).await;
    assert_ends("send", async { all_failed(&queue.send(&[message]).await) }).await;
    assert_ends("depth", async { queue.depth().await.is_err() }).await;
    assert_ends("dead letters", async { queue.receive_dead(1, wait).await.is_err() }).await;
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_sqs() {
    let server = sqs::Server::start().await.unwrap();
    let proxy = proxy_to(&server.endpoint()).await;
    let url = server.create_queue_with_dead("q", 3).unwrap();
    let config = QueueConfig { url, ..QueueConfig::default() };
    let client = support::sqs::client(&address(&proxy));
    let queue = SqsQueue::with_client(client, &config).await.unwrap();
    assert_queue_calls_end(&queue, &proxy).await;
}

/// A queue that is connected through a proxy, which still speaks.
async fn redis_behind_proxy() -> (Redis, SilentProxy, RedisQueue) {
    let server = Redis::start().await;
    let proxy = SilentProxy::start(&server.address()).await.unwrap();
    let mut config = server.config("silent");
    config.redis_url = format!("redis://{}/0", proxy.address()).into();
    let queue = RedisQueue::connect(&config).await.unwrap();
    (server, proxy, queue)
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_redis() {
    let (_server, proxy, queue) = redis_behind_proxy().await;
    assert_queue_calls_end(&queue, &proxy).await;
}

#[tokio::test]
async fn invariant_5_a_receive_that_waits_for_work_ends_though_redis_falls_silent_meanwhile() {
    let (server, proxy, queue) = redis_behind_proxy().await;
    let wait = Duration::from_secs(20);
    let waiting = tokio::spawn(async move { queue.receive(1, wait).await.is_err() });
    let is_blocked = || async {
        let mut direct = server.look().await;
        let clients: String =
            redis::cmd("INFO").arg("clients").query_async(&mut direct).await.unwrap();
        clients.contains("blocked_clients:1")
    };
    until(SOON, is_blocked).await;
    proxy.fall_silent();
    tokio::time::pause();
    assert_ends("receive", async { waiting.await.unwrap() }).await;
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_bucket() {
    let server = Moto::start().await;
    let proxy = proxy_to(&server.endpoint()).await;
    let bucket = store_suite::moto::make_bucket(&server).await;
    let config = StoreConfig {
        bucket,
        endpoint: address(&proxy),
        region: "us-east-1".to_owned(),
        path_style: true,
        ..StoreConfig::default()
    };
    let secret = "test".to_owned().into();
    let access = BucketAccess { keys: Some(("test", &secret)), place: "place/" };
    let store = S3Store::connect_as(&config, &access).await.unwrap();
    proxy.fall_silent();
    tokio::time::pause();
    let any = GetOptions { at_most: 1 << 20, if_match: None };
    let (bytes, etag) = (Bytes::from_static(b"bytes"), Etag("\"1\"".to_owned()));
    assert_ends("head", async { store.head("a").await.is_err() }).await;
    assert_ends("get", async { store.get("a", any).await.is_err() }).await;
    assert_ends("put", async { store.put_if_absent("a", bytes.clone()).await.is_err() }).await;
    assert_ends("a large put", async {
        store.put_if_absent("a", Bytes::from(vec![0; 2 << 20])).await.is_err()
    })
    .await;
    assert_ends("replace", async { store.put_if_match("a", &etag, bytes).await.is_err() }).await;
    assert_ends("delete", async { store.delete("a").await.is_err() }).await;
    assert_ends("list", async { store.list("", None, 10).await.is_err() }).await;
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_model() {
    let proxy = mute().await;
    let served = openai::Server::start(openai::Script::default()).await.unwrap();
    let (served_at, mute_at) = (served.address().to_string(), proxy.address().to_string());
    tokio::time::pause();
    for vendor in vendors::OWN_HOSTS {
        let spoken = vendors::config_of(vendor, &served);
        let base_url = spoken.base_url.replace(&served_at, &mute_at);
        for stream_above in [0, u32::MAX] {
            let config = LlmConfig { base_url: base_url.clone(), stream_above, ..spoken.clone() };
            let model = vendors::model(&config).await;
            let what = format!("{vendor:?}, streams above {stream_above}");
            assert_ends(&what, async { model.complete(&prompt()).await.is_err() }).await;
        }
        let mut config = LlmConfig { base_url, ..spoken };
        config.batch.bedrock = BedrockBatchConfig {
            bucket: "questions".to_owned(),
            access_key_id: "test".to_owned(),
            secret_access_key: "test".to_owned().into(),
            endpoint: address(&proxy),
            s3_endpoint: address(&proxy),
            ..BedrockBatchConfig::default()
        };
        let batches = vendors::batches(&config).await;
        let since = OffsetDateTime::now_utc();
        let sought = SoughtBatch { name: "docmill-1", requests: 1, since, others: &[] };
        let what = format!("{vendor:?}, batches");
        assert_ends(&what, async { batches.poll("batch").await.is_err() }).await;
        assert_ends(&what, async { batches.find(sought).await.is_err() }).await;
    }
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_reader_of_pages() {
    let (google, mute) =
        (google::Server::start(google::Script::default()).await.unwrap(), mute().await);
    let proxy = proxy_to(&google.endpoint()).await;
    let document_ai = providers::document_ai(&google, |config| config.endpoint = address(&proxy));
    document_ai.ping().await.unwrap();
    let without_token = providers::document_ai_with_tokens_of(&google, &address(&mute));
    let textract = providers::textract_at(&address(&mute));
    let azure = providers::document_intelligence::document_intelligence_at(address(&mute));
    let picture = providers::pictures::sent(1);
    proxy.fall_silent();
    tokio::time::pause();
    assert_ends("Document Intelligence", async {
        azure.read_pictures(std::slice::from_ref(&picture)).await.is_err()
    })
    .await;
    assert_ends("Document AI", async { document_ai.ping().await.is_err() }).await;
    assert_ends("a token", async { without_token.ping().await.is_err() }).await;
    assert_ends("Textract", async { textract.ping().await.is_err() }).await;
}

#[tokio::test]
async fn invariant_5_no_call_waits_without_end_for_a_silent_webhook() {
    let proxy = mute().await;
    let policy =
        DestinationPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true };
    let limit = WebhooksConfig::default().timeout;
    let sender = WebhookSender::new(policy, Arc::new(SystemResolver), limit).unwrap();
    let url = address(&proxy).parse().unwrap();
    let (id, signatures, body) = (String::new(), String::new(), String::new());
    let message = SignedMessage { id, timestamp: 0, signatures, body };
    tokio::time::pause();
    let question = message.clone();
    assert_ends("webhook", async { !sender.send_message(&url, message).await.is_taken() }).await;
    assert_ends("hook", async { sender.ask_question(&url, question, 1 << 10).await.is_err() })
        .await;
}
