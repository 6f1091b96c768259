//! A webhook receiver, and a service that delivers.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use docmill_core::config::{Config, KindsConfig, WebhookTarget};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_gate::kinds::KindSet;
use docmill_operations::webhooks::{
    DeliveryStore, NameResolver, SystemResolver, WebhookDelivery, WebhookTerms,
};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use docmill_storage::memory::MemoryStore;
use parking_lot::Mutex;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, until};

/// Bytes 0 to 31 and 1 to 32.
pub(super) const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(super) const OTHER: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

/// A message that arrived.
#[derive(Debug, Clone)]
pub(super) struct ReceivedMessage {
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) signatures: String,
    pub(super) body: String,
    /// Whether it was taken.
    pub(super) taken: bool,
}

impl ReceivedMessage {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn event(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    pub(super) fn document(&self) -> String {
        self.json()["data"]["document_id"].as_str().unwrap().to_owned()
    }

    pub(super) fn sequence(&self) -> i64 {
        self.json()["data"]["sequence"].as_i64().unwrap()
    }
}

/// How it answers.
#[derive(Debug, Clone)]
pub(super) enum ReceiverMood {
    Status(u16),
    /// Never.
    Hang,
    Redirect(String),
    /// With this body.
    Answer(String),
    /// With a body that does not end.
    Endless,
}

#[derive(Clone)]
struct ReceiverState {
    mood: Arc<Mutex<ReceiverMood>>,
    received: Arc<Mutex<Vec<ReceivedMessage>>>,
}

/// A server that receives webhooks.
pub(super) struct WebhookReceiver {
    pub(super) address: SocketAddr,
    state: ReceiverState,
    serving: JoinHandle<()>,
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl WebhookReceiver {
    pub(super) async fn start(mood: ReceiverMood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = ReceiverState { mood: Arc::new(Mutex::new(mood)), received: Arc::default() };
        let router = Router::new().fallback(take).with_state(state.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, serving }
    }

    pub(super) fn answer(&self, mood: ReceiverMood) {
        *self.state.mood.lock() = mood;
    }

    /// Everything that arrived, in order.
    pub(super) fn received(&self) -> Vec<ReceivedMessage> {
        self.state.received.lock().clone()
    }

    /// The accepted messages.
    pub(super) fn taken(&self) -> Vec<ReceivedMessage> {
        let mut all = self.received();
        all.retain(|message| message.taken);
        all
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks?key=SECRETMARK", self.address)
    }
}

async fn take(State(state): State<ReceiverState>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    let mood = state.mood.lock().clone();
    let taken = matches!(mood, ReceiverMood::Status(200..=299) | ReceiverMood::Answer(_));
    state.received.lock().push(ReceivedMessage {
        id: text("webhook-id"),
        timestamp: text("webhook-timestamp"),
        signatures: text("webhook-signature"),
        body: String::from_utf8(body.to_vec()).unwrap(),
        taken,
    });
    // A connection of its own for every message: each is looked up anew.
    let close = [("connection", "close".to_owned())];
    match mood {
        ReceiverMood::Hang => std::future::pending().await,
        ReceiverMood::Status(code) => {
            (StatusCode::from_u16(code).unwrap(), close, "SECRETANSWER").into_response()
        }
        ReceiverMood::Redirect(to) => {
            let headers = [close[0].clone(), ("location", to)];
            (StatusCode::TEMPORARY_REDIRECT, headers).into_response()
        }
        ReceiverMood::Answer(body) => (close, body).into_response(),
        ReceiverMood::Endless => {
            let chunks = futures::stream::repeat_with(|| Ok::<_, Infallible>(vec![b' '; 4096]));
            Body::from_stream(chunks).into_response()
        }
    }
}

/// A target at this address.
pub(super) fn target(name: &str, url: &str) -> WebhookTarget {
    WebhookTarget {
        name: name.to_owned(),
        url: url.to_owned().into(),
        endpoint: String::new(),
        secret: SECRET.to_owned().into(),
        secret_file: Path::new("").to_owned(),
        events: Vec::new(),
        tenant: String::new(),
        kinds: Vec::new(),
        layout: String::new(),
        forms: Vec::new(),
        include_data: false,
        concurrency: 4,
    }
}

/// Settings for these targets, local and quick.
pub(super) fn telling(targets: Vec<WebhookTarget>) -> Config {
    let mut config = Config::default();
    config.webhooks.targets = targets;
    config.webhooks.allow_http = true;
    config.webhooks.allowed_networks = vec!["127.0.0.1/32".parse().unwrap()];
    config.webhooks.poll = Duration::from_millis(20);
    config
}

/// A store for targets that are none.
pub(super) fn no_files() -> DeliveryStore {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    DeliveryStore { store: Arc::new(MemoryStore::default()), kinds, largest: 1 << 20 }
}

/// Delivery that runs until dropped.
pub(super) struct RunningDelivery {
    stop: Shutdown,
    task: JoinHandle<()>,
}

impl Drop for RunningDelivery {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningDelivery {
    pub(super) async fn start(database: &TestDatabase, config: &Config) -> Self {
        Self::start_with(database, config, Arc::new(SystemResolver)).await.unwrap()
    }

    /// With files in this store.
    pub(super) async fn start_in(
        database: &TestDatabase,
        config: &Config,
        store: &Arc<dyn ObjectStore>,
    ) -> Self {
        let files = DeliveryStore { store: Arc::clone(store), ..no_files() };
        Self::start_whole(database, config, Arc::new(SystemResolver), &files).await.unwrap()
    }

    pub(super) async fn start_with(
        database: &TestDatabase,
        config: &Config,
        names: Arc<dyn NameResolver>,
    ) -> Result<Self> {
        Self::start_whole(database, config, names, &no_files()).await
    }

    async fn start_whole(
        database: &TestDatabase,
        config: &Config,
        names: Arc<dyn NameResolver>,
        files: &DeliveryStore,
    ) -> Result<Self> {
        let terms = WebhookTerms::new(config);
        let delivery = WebhookDelivery::new(database.db(), terms, names, files)?;
        let delivery = delivery.unwrap();
        delivery.register_targets().await?;
        let stop = Shutdown::default();
        let task = tokio::spawn(delivery.run(stop.clone()));
        Ok(Self { stop, task })
    }

    pub(super) async fn stop(mut self) {
        self.stop.request();
        (&mut self.task).await.unwrap();
    }
}

/// The scripted addresses of a name.
#[derive(Clone, Default)]
pub(super) struct MovingName {
    pub(super) addresses: Arc<Mutex<Vec<IpAddr>>>,
    /// How often it was asked.
    pub(super) asked: Arc<Mutex<usize>>,
}

impl NameResolver for MovingName {
    fn look_up(
        &self,
        _name: &str,
    ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        *self.asked.lock() += 1;
        let found = self.addresses.lock().clone();
        Box::pin(async move { Ok(found) })
    }
}

pub(super) async fn execute(database: &TestDatabase, sql: &str) {
    database.pool().execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
}

pub(super) async fn scalar(database: &TestDatabase, sql: &str) -> String {
    let sql = format!("SELECT ({sql})::text");
    let found: Option<String> =
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(database.pool()).await.unwrap();
    found.unwrap_or_default()
}

/// Waits until `count` deliveries are recorded. Before the clock leaps: a delivery in progress then
/// loses its lease, and is sent again.
pub(super) async fn until_delivered(database: &TestDatabase, count: usize) {
    let delivered = "SELECT count(*) FROM webhook_delivery WHERE state = 'delivered'";
    until(SOON, || async { scalar(database, delivered).await == count.to_string() }).await;
}

/// A document of a tenant and its ingestion.
pub(super) async fn document(database: &TestDatabase, tenant: &str) -> (DocumentId, IngestionId) {
    let (document, ingestion) = (DocumentId::random(), IngestionId::random());
    let sql = format!(
        "INSERT INTO document (id, file_path, tenant) VALUES ('{document}', 'x.pdf', '{tenant}');
         INSERT INTO ingestion (id, document_id, kind) VALUES ('{ingestion}', '{document}', 'invoice')"
    );
    execute(database, &sql).await;
    (document, ingestion)
}

/// Completes it with data.
pub(super) async fn complete(database: &TestDatabase, ingestion: IngestionId) {
    let sql = format!(
        "UPDATE ingestion SET status = 'completed', completed_at = docmill_now(),
             valid_structured_data = true, structured_data = '{{\"total\": \"CONTENTMARK\"}}'
         WHERE id = '{ingestion}'"
    );
    execute(database, &sql).await;
}

/// Opens it again and lets it fail.
pub(super) async fn fail_again(database: &TestDatabase, ingestion: IngestionId) {
    let sql = format!(
        "UPDATE ingestion SET status = 'in-progress', reason = NULL, completed_at = NULL,
             valid_structured_data = NULL, structured_data = NULL, needs_human_review = false,
             review_reasons = '{{}}' WHERE id = '{ingestion}';
         UPDATE ingestion SET status = 'failed', reason = 'no_text', completed_at = docmill_now(),
             valid_structured_data = false, needs_human_review = true,
             review_reasons = ARRAY['no_text'] WHERE id = '{ingestion}'"
    );
    execute(database, &sql).await;
}
