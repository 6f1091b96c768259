//! The worker's process of the bench: the real worker with one of three works.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "the first process reads it")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use docmill::app::App;
use docmill_core::config::{Config, LlmProvider, QueueBackend, StoreBackend};
use docmill_core::fault::Result;
use docmill_core::metrics;
use docmill_core::model::{
    ClaimedIngestion, IngestionStage, LocalModelReport, ModelUsage, ProviderLane,
};
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::{IngestionResult, Ledger, PauseTerms};
use docmill_llm::chain::ModelChain;
use docmill_llm::{Llm, ModelReply, Prompt};
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, PipelineContext, PipelineServices, StepError};
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use docmill_worker::QueueWorker;
use docmill_worker::work::IngestionWork;
use tokio::sync::{mpsc, watch};

use crate::answering::Answering;
use crate::support::world::sqs_queue;
use crate::{Variant, support};

/// Interval of the metrics upkeep without a scraper, as in the service.
const UPKEEP: Duration = Duration::from_secs(5);

/// Work that is done as soon as it is begun: what is left is the worker itself.
struct EmptyWork {
    documents: Arc<FolderStore>,
}

#[async_trait]
impl IngestionWork for EmptyWork {
    async fn run_attempt(
        &self,
        _claimed: &ClaimedIngestion,
        _claim: &ClaimHandle,
    ) -> std::result::Result<IngestionResult, StepError> {
        Ok(IngestionResult {
            reason: None,
            stage: IngestionStage::Record,
            structured_data: Some(serde_json::Map::new()),
            needs_human_review: false,
            review_reasons: Vec::new(),
            reader: Some("rules".to_owned()),
            kind: Some("invoice".to_owned()),
            model: None,
            usage: ModelUsage::default(),
            judged: None,
            stated: None,
            sha256: None,
            duplicate_rule: None,
            near_rule: None,
            near_keys: None,
            master_match: None,
            duplicate_keys: None,
            einvoice_rules: None,
            einvoice_reference: None,
            hooks: None,
            detail: String::new(),
            lesson: None,
            children: Vec::new(),
        })
    }

    fn documents(&self) -> &dyn ObjectStore {
        self.documents.as_ref()
    }

    fn find_outage(&self) -> Option<String> {
        None
    }

    fn pause_terms(&self, default_kind: &str) -> PauseTerms {
        PauseTerms { default_kind: default_kind.to_owned(), providers: Vec::new() }
    }

    fn refresh_gauges(&self) {}

    fn list_lanes(&self) -> Vec<ProviderLane> {
        Vec::new()
    }

    fn report_local_models(&self) -> Option<LocalModelReport> {
        None
    }
}

/// A model that answers only after all requests have arrived and the first process gives the
/// signal.
struct HeldModel {
    inner: Answering,
    asked: AtomicUsize,
    expected: usize,
    released: watch::Receiver<bool>,
}

#[async_trait]
impl Llm for HeldModel {
    fn provider(&self) -> &'static str {
        "answering"
    }

    fn model(&self) -> &'static str {
        "line-by-line"
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        if self.asked.fetch_add(1, Ordering::Relaxed) + 1 == self.expected {
            say("waiting");
        }
        self.released.clone().wait_for(|released| *released).await.unwrap();
        self.inner.complete(prompt).await
    }
}

/// Works from the first line on standard input to its end; at a second line a model that was held
/// answers.
pub(crate) async fn run(arguments: Vec<String>) {
    let [database, queue, endpoint, folder, variant, jobs, slots, looks] =
        <[String; 8]>::try_from(arguments).unwrap();
    let (variant, jobs) = (Variant::from_name(&variant).unwrap(), jobs.parse().unwrap());
    let mut config = configure(&database, &queue, endpoint, folder);
    // Empty: as by default.
    if !slots.is_empty() {
        config.worker.slots = slots.parse().unwrap();
    }
    if !looks.is_empty() {
        config.ocr.second_looks = looks.parse::<f32>().unwrap() / 100.0;
    }
    let recorder = metrics::install_metrics().unwrap();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            recorder.run_upkeep();
        }
    });
    let (release, released) = watch::channel(variant != Variant::Waiting);
    let db = Db::connect(&config.database).await.unwrap();
    let ledger = Arc::new(PostgresLedger::with_slots(db, config.worker.slots));
    let store = Arc::new(FolderStore::open(&config.store.path).await.unwrap());
    let work: Arc<dyn IngestionWork> = match variant {
        Variant::Empty => Arc::new(EmptyWork { documents: store }),
        _ => {
            let inner = Answering::new(|_| Duration::ZERO);
            let model = HeldModel { inner, asked: AtomicUsize::new(0), expected: jobs, released };
            Arc::new(pipeline(&config, store, Arc::clone(&ledger), model).await)
        }
    };
    let queue = Arc::new(sqs_queue(&config).await);
    let ledger = ledger as Arc<dyn Ledger>;
    let worker =
        QueueWorker::with_work(work, ledger, queue, Arc::new(config), "bench".to_owned()).await;

    let mut lines = standard_input();
    say("ready");
    lines.recv().await;
    let stop = Shutdown::default();
    let work = tokio::spawn(worker.unwrap().run(stop.clone()));
    while lines.recv().await.is_some() {
        release.send_replace(true);
    }
    stop.request();
    work.await.unwrap().unwrap();
}

fn configure(database: &str, queue: &str, endpoint: String, folder: String) -> Config {
    let mut config = Config::default();
    config.database.url = database.to_owned().into();
    config.queue.backend = QueueBackend::Sqs;
    config.queue.url = queue.to_owned();
    config.queue.endpoint = endpoint;
    config.queue.region = "us-east-1".to_owned();
    config.store.backend = StoreBackend::Folder;
    config.store.path = folder.into();
    config.llm.provider = LlmProvider::None;
    // The bench itself would be started as a page process, and it cannot be one.
    config.cpu.program = support::page_processes::docmill();
    config
}

async fn pipeline(
    config: &Config,
    store: Arc<FolderStore>,
    ledger: Arc<PostgresLedger>,
    model: HeldModel,
) -> PipelineContext {
    let services = App::new(config.clone()).pipeline_services().await.unwrap();
    let models = ModelChain::from_single(Arc::new(model), 8_192);
    PipelineContext {
        documents: Arc::clone(&store) as _,
        artefacts: store,
        ledger,
        services: Arc::new(PipelineServices { models, ..services }),
    }
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().unwrap();
}

/// Lines of standard input; the channel ends with it.
fn standard_input() -> mpsc::UnboundedReceiver<String> {
    let (lines, inbox) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(std::result::Result::ok) {
            drop(lines.send(line));
        }
    });
    inbox
}
