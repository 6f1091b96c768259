//! All dependencies of a worker, real where possible: Postgres, the SQS protocol, a folder store,
//! and a scripted model server. One world per test.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use docmill::app::{App, ServiceBackends};
use docmill_core::config::{Config, LlmProvider, OcrEngineChoice, QueueBackend, StoreBackend};
use docmill_core::model::{DocumentId, IngestionId};
use docmill_documents::ocr::textract::expense::TextractExpense;
use docmill_ledger::Ledger;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_llm::Llm;
use docmill_llm::chain::ModelChain;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{DocumentReader, PipelineContext, PipelineServices};
use docmill_queue::sqs::SqsQueue;
use docmill_queue::{MessageQueue, OutgoingMessage};
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use docmill_testkit::{openai, sqs};
use docmill_worker::QueueWorker;
use docmill_worker::runner::{RunnerMonitor, WorkerStats};
use sqlx::{PgPool, Row};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::postgres::TestDatabase;

/// How long a test waits for something that should be quick; generous, the machine may be busy.
pub(crate) const SOON: Duration = Duration::from_secs(180);

/// A database, a queue, a store and, on request, a model.
pub(crate) struct World {
    pub(crate) sqs: sqs::Server,
    pub(crate) queue_url: String,
    pub(crate) queue: Arc<dyn MessageQueue>,
    pub(crate) database: TestDatabase,
    pub(crate) pool: PgPool,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) llm: Option<openai::Server>,
    pub(crate) config: Config,
    _folder: TempDir,
    /// Where processes write their logs.
    pub(crate) logs: TempDir,
    /// How far [`World::pass`] has moved the clocks.
    passed: tokio::sync::Mutex<Duration>,
}

/// A worker of this process.
pub(crate) struct Running {
    pub(crate) stop: Shutdown,
    pub(crate) task: JoinHandle<docmill_core::fault::Result<WorkerStats>>,
    pub(crate) monitor: RunnerMonitor,
}

impl World {
    /// Without a model: the rules reader.
    pub(crate) async fn new() -> Self {
        Box::pin(Self::with(None, 1000)).await
    }

    /// With a redrive policy of `receives` receives.
    pub(crate) async fn with_redrive(receives: u32) -> Self {
        Box::pin(Self::with(None, receives)).await
    }

    /// With a model server that answers by this script.
    pub(crate) async fn with_model(script: openai::Script) -> Self {
        let server = openai::Server::start(script).await.unwrap();
        Box::pin(Self::with(Some(server), 1000)).await
    }

    /// Both of these.
    pub(crate) async fn with_redrive_and_model(receives: u32, script: openai::Script) -> Self {
        let server = openai::Server::start(script).await.unwrap();
        Box::pin(Self::with(Some(server), receives)).await
    }

    async fn with(llm: Option<openai::Server>, receives: u32) -> Self {
        let sqs = sqs::Server::start().await.unwrap();
        let queue_url = sqs.create_queue_with_dead("documents", receives).unwrap();
        let database = TestDatabase::create().await;
        let pool = PgPool::connect(&database.url()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.database.url = database.url().to_string().into();
        config.queue.backend = QueueBackend::Sqs;
        config.queue.url = queue_url.clone();
        config.queue.endpoint = sqs.endpoint();
        config.queue.region = "us-east-1".to_owned();
        config.queue.wait = Duration::from_secs(1);
        config.worker.drain = Duration::from_secs(30);
        config.worker.slots = 10;
        config.worker.address = ([127, 0, 0, 1], 0).into();
        config.store.backend = StoreBackend::Folder;
        config.store.path = folder.path().to_owned();
        config.store.bucket = "documents".to_owned();
        config.store.allow = vec!["documents/documents/".parse().unwrap()];
        config.janitor.enabled = false;
        config.cpu.program = super::page_processes::docmill();
        // The same whether the weights of the neural reader are installed or not.
        config.ocr.engine = OcrEngineChoice::Tesseract;
        if let Some(server) = &llm {
            config.llm.provider = LlmProvider::Openai;
            config.llm.base_url = server.base_url();
            config.llm.model = "scripted".to_owned();
        }
        let store: Arc<dyn ObjectStore> = Arc::new(FolderStore::open(folder.path()).await.unwrap());
        let queue: Arc<dyn MessageQueue> = Arc::new(sqs_queue(&config).await);
        let logs = tempfile::tempdir().unwrap();
        let passed = tokio::sync::Mutex::default();
        Self {
            sqs,
            queue_url,
            queue,
            database,
            pool,
            store,
            llm,
            config,
            _folder: folder,
            logs,
            passed,
        }
    }

    /// A ledger of its own, as another worker would have.
    pub(crate) async fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::new(PostgresLedger::with_slots(self.database.db(), self.config.worker.slots))
    }

    /// The parts that a worker is made of.
    pub(crate) async fn parts(&self) -> ServiceBackends {
        let db = self.database.db();
        ServiceBackends {
            ledger: Arc::new(PostgresLedger::with_slots(db.clone(), self.config.worker.slots)),
            db,
            queue: Arc::clone(&self.queue),
            store: Arc::clone(&self.store),
        }
    }

    /// Starts a worker with this world's configuration.
    pub(crate) async fn worker(&self) -> Running {
        self.worker_with(|_| ()).await
    }

    /// Starts a worker with a configuration changed for it alone.
    pub(crate) async fn worker_with(&self, change: impl FnOnce(&mut Config)) -> Running {
        let mut config = self.config.clone();
        change(&mut config);
        let (worker, _maintenance) =
            Box::pin(App::new(config).build_worker(&self.parts().await)).await.unwrap();
        Running::start(worker)
    }

    /// Starts a worker over this ledger and with this model (none: the rules reader).
    pub(crate) async fn worker_on(
        &self,
        ledger: Arc<dyn Ledger>,
        llm: Option<Arc<dyn Llm>>,
    ) -> Running {
        self.worker_on_with(ledger, llm, |_| ()).await
    }

    /// The same with a configuration changed for it alone.
    pub(crate) async fn worker_on_with(
        &self,
        ledger: Arc<dyn Ledger>,
        llm: Option<Arc<dyn Llm>>,
        change: impl FnOnce(&mut Config),
    ) -> Running {
        let mut config = self.config.clone();
        change(&mut config);
        config.llm.provider = LlmProvider::None;
        let services = Box::pin(App::new(config.clone()).pipeline_services()).await.unwrap();
        let models = llm.map(|llm| ModelChain::from_single(llm, 8_192)).unwrap_or_default();
        self.worker_of(config, PipelineServices { models, ..services }, ledger).await
    }

    /// Starts a worker that reads with this reader, and has no model.
    pub(crate) async fn worker_reading(&self, reader: Arc<DocumentReader>) -> Running {
        let mut config = self.config.clone();
        config.llm.provider = LlmProvider::None;
        let services = Box::pin(App::new(config.clone()).pipeline_services()).await.unwrap();
        let services = PipelineServices { reader, ..services };
        self.worker_of(config, services, self.ledger().await).await
    }

    /// Starts a worker without a model whose service reads fields a second time.
    pub(crate) async fn worker_reading_twice(
        &self,
        service: TextractExpense,
        change: impl FnOnce(&mut Config),
    ) -> Running {
        let mut config = self.config.clone();
        change(&mut config);
        let services = Box::pin(App::new(config.clone()).pipeline_services()).await.unwrap();
        let services = PipelineServices { expense: Some(Arc::new(service)), ..services };
        self.worker_of(config, services, self.ledger().await).await
    }

    async fn worker_of(
        &self,
        config: Config,
        services: PipelineServices,
        ledger: Arc<dyn Ledger>,
    ) -> Running {
        let pipeline = PipelineContext {
            documents: Arc::clone(&self.store),
            artefacts: Arc::clone(&self.store),
            ledger: Arc::clone(&ledger) as _,
            services: Arc::new(services),
        };
        let (queue, config) = (Arc::clone(&self.queue), Arc::new(config));
        let worker = QueueWorker::new(pipeline, ledger, queue, config, "test".to_owned()).await;
        Running::start(worker.unwrap())
    }

    /// Builds the configured model, if there is one.
    pub(crate) async fn model(&self) -> Option<Arc<dyn Llm>> {
        let app = App::new(self.config.clone());
        // One future for every vendor: too large to lie in those of all the tests.
        let chain = Box::pin(app.connect_models()).await.unwrap();
        chain.for_kind("").into_iter().next().map(|rung| rung.llm)
    }

    /// Uploads a document, inserts the two rows as a producer of the earlier system would, and
    /// does not send the message.
    pub(crate) async fn insert(&self, name: &str, bytes: Vec<u8>) -> IngestionId {
        let (document, ingestion) = (DocumentId::random(), IngestionId::random());
        let key = format!("documents/{document}-{name}");
        self.store.put(&key, Bytes::from(bytes), &BTreeMap::new()).await.unwrap();
        self.insert_rows(document, ingestion, &key).await;
        ingestion
    }

    /// Inserts the rows of a document and its ingestion, without a message.
    pub(crate) async fn insert_rows(
        &self,
        document: DocumentId,
        ingestion: IngestionId,
        key: &str,
    ) {
        let sql = "INSERT INTO docmill.document (id, file_path) VALUES ($1, $2)";
        sqlx::query(sql).bind(document.0).bind(key).execute(&self.pool).await.unwrap();
        let sql = "INSERT INTO docmill.ingestion (id, document_id) VALUES ($1, $2)";
        sqlx::query(sql).bind(ingestion.0).bind(document.0).execute(&self.pool).await.unwrap();
    }

    /// Sends a message with this body.
    pub(crate) async fn send(&self, body: impl Into<String>) {
        for answer in self.queue.send(&[OutgoingMessage::from_body(body)]).await {
            answer.unwrap();
        }
    }

    /// Inserts a document with its rows and sends its message.
    pub(crate) async fn submit(&self, name: &str, bytes: Vec<u8>) -> IngestionId {
        let id = self.insert(name, bytes).await;
        self.send(id.to_string()).await;
        id
    }

    /// One column of an ingestion as text.
    pub(crate) async fn column(&self, id: IngestionId, column: &str) -> Option<String> {
        let sql = format!("SELECT ({column})::text FROM docmill.ingestion WHERE id = $1");
        let sql = sqlx::AssertSqlSafe(sql);
        let row = sqlx::query(sql).bind(id.0).fetch_one(&self.pool).await.unwrap();
        row.get(0)
    }

    /// Any query's first column of its first row, as text.
    pub(crate) async fn scalar(&self, sql: &str) -> String {
        let row = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await;
        row.unwrap().get::<Option<String>, _>(0).unwrap_or_default()
    }

    /// Runs a statement in the database.
    pub(crate) async fn execute(&self, sql: &str) {
        sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.unwrap();
    }

    /// Waits until a column of an ingestion has this value.
    pub(crate) async fn until(&self, id: IngestionId, column: &str, value: &str) {
        let deadline = Instant::now() + SOON;
        loop {
            let now = self.column(id, column).await;
            if now.as_deref() == Some(value) {
                return;
            }
            let all =
                "coalesce(status,'') || ' ' || coalesce(reason,'') || ' ' || coalesce(detail,'')";
            assert!(
                Instant::now() < deadline,
                "{column} of {id} is {now:?}, not {value}: {:?}",
                self.column(id, all).await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until nothing is in the queue, neither visible nor hidden.
    pub(crate) async fn until_empty(&self) {
        until(SOON, || async {
            let depth = self.queue.depth().await.unwrap();
            depth.ready + depth.in_flight + depth.delayed == 0
        })
        .await;
    }

    /// The outcomes of an ingestion's attempts, oldest first.
    pub(crate) async fn attempts(&self, id: IngestionId) -> Vec<String> {
        let sql = "SELECT outcome FROM docmill.attempt WHERE ingestion_id = $1 ORDER BY claims";
        let rows = sqlx::query(sql).bind(id.0).fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The ids of all ingestions.
    pub(crate) async fn all_ids(&self) -> Vec<IngestionId> {
        let rows = sqlx::query("SELECT id FROM docmill.ingestion").fetch_all(&self.pool).await;
        rows.unwrap().iter().map(|row| IngestionId(row.get(0))).collect()
    }

    /// Sends a message for each.
    pub(crate) async fn send_all(&self, ids: &[IngestionId]) {
        let messages: Vec<OutgoingMessage> =
            ids.iter().map(|id| OutgoingMessage::from_body(id.to_string())).collect();
        for answer in self.queue.send(&messages).await {
            answer.unwrap();
        }
    }

    /// Receives every message so often that the redrive policy takes it.
    pub(crate) async fn receive_to_death(&self) {
        until(SOON, || async {
            self.queue.receive(10, Duration::from_secs(1)).await.unwrap();
            self.sqs.advance(Duration::from_secs(200));
            let depth = self.queue.depth().await.unwrap();
            depth.ready + depth.in_flight == 0
        })
        .await;
    }

    /// Deletes every message, as an operator's slip would.
    pub(crate) async fn purge(&self) {
        let client = super::sqs::client(&self.sqs.endpoint());
        client.purge_queue().queue_url(&self.queue_url).send().await.unwrap();
    }

    /// Moves the clock of Postgres and of the queue.
    pub(crate) async fn pass(&self, time: Duration) {
        let mut passed = self.passed.lock().await;
        *passed += time;
        self.database.advance(*passed).await;
        self.sqs.advance(time);
    }

    /// Waits for a state that needs hides to expire: after each half second without it, a minute
    /// passes. Never faster, because a pending disposition starts its hide when it arrives, and a
    /// claim in use must not lose its lease to a leaping clock.
    pub(crate) async fn pass_until<F: Future<Output = bool>>(&self, condition: impl Fn() -> F) {
        let deadline = Instant::now() + SOON * 3;
        let mut still_since = Instant::now();
        while !condition().await {
            assert!(Instant::now() < deadline, "it did not happen in time");
            tokio::time::sleep(Duration::from_millis(20)).await;
            if still_since.elapsed() >= Duration::from_millis(500) {
                self.pass(Duration::from_secs(60)).await;
                still_since = Instant::now();
            }
        }
    }
}

impl Running {
    fn start(worker: QueueWorker) -> Self {
        let stop = Shutdown::default();
        let monitor = worker.monitor();
        let task = tokio::spawn(worker.run(stop.clone()));
        Self { stop, task, monitor }
    }

    /// Drains and waits for the end.
    pub(crate) async fn stop(self) {
        self.stop.request();
        self.task.await.unwrap().unwrap();
    }

    /// Gives everything back at once.
    pub(crate) async fn hurry(self) {
        self.stop.abort_drain();
        self.task.await.unwrap().unwrap();
    }
}

/// The backend as tests use it: the real client with credentials that mean nothing.
pub(crate) async fn sqs_queue(config: &Config) -> SqsQueue {
    let client = super::sqs::client(&config.queue.endpoint);
    SqsQueue::with_client(client, &config.queue).await.unwrap()
}

/// Waits for a condition.
pub(crate) async fn until<F: Future<Output = bool>>(
    patience: Duration,
    mut condition: impl FnMut() -> F,
) {
    let deadline = Instant::now() + patience;
    while !condition().await {
        assert!(Instant::now() < deadline, "it did not happen within {patience:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// S3 as tests use it.
pub(crate) fn s3_client(endpoint: &str) -> aws_sdk_s3::Client {
    let credentials = aws_sdk_s3::config::Credentials::new("test", "test", None, None, "test");
    let config = aws_sdk_s3::config::Builder::new()
        .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
        .region(aws_sdk_s3::config::Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(credentials)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}
