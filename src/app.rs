//! The composition root: the only place that names implementations.
//!
//! All parts are built from the configuration on demand, so that a command connects only to what it needs.

mod bucket;
mod console;
mod descriptors;
mod doctor;
mod health;
mod inbox;
mod models;
mod page_process;
mod probe;
mod providers;
mod watched_task;
mod workspace;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use self::watched_task::{WatchedTask, watch_task};
use docmill_client::throttle::Governor;
use docmill_compat::objects::ObjectQueue;
use docmill_console::health_port::ServiceDependencies;
use docmill_core::config::{
    Config, DatabaseConfig, OcrConfig, OcrEngineChoice, OcrProvider, QueueBackend, StoreBackend,
};
use docmill_core::fault::{self, Fault};
use docmill_core::model::{ReadRecipe, RepairSwitches};
use docmill_documents::EinvoiceRules;
use docmill_documents::ocr::OcrEngine as _;
use docmill_documents::ocr::page_engines::PageEngines;
use docmill_documents::sandbox::{
    CpuPool, ProcessMemory, ProcessPool, ProcessProgram, ProcessSetup, process_memory,
};
use docmill_gate::kinds::KindSet;
use docmill_ledger::Ledger;
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::reports::row_security::require_all_rows;
use docmill_llm::chain::ModelChain;
use docmill_operations::batches::{BatchBackends, BatchCollector};
use docmill_operations::janitor::{Maintenance, MaintenanceBackends};
use docmill_operations::kind_drafts::KindReplayRunner;
use docmill_operations::process::LocalPipeline;
use docmill_operations::webhooks::{
    DeliveryStore, DestinationPolicy, SystemResolver, WebhookDelivery, WebhookTerms,
};
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{
    ByteBudget, CostTracker, DocumentReader, OwnCompanyBook, PipelineContext, PipelineHooks,
    PipelineServices, SecondLooks,
};
use docmill_queue::MessageQueue;
use docmill_queue::redis::RedisQueue;
use docmill_queue::sqs::SqsQueue;
use docmill_scheduler::Scheduler;
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use docmill_storage::s3::S3Store;
use docmill_worker::QueueWorker;
use docmill_worker::runner::RunnerMonitor;
use docmill_worker::scale_in_protection::{self, ContainerAgent, ProtectionTiming};

pub use console::OpenConsole;
pub use descriptors::raise_descriptor_limit;
pub use health::HealthPages;
pub use page_process::serve_page_process;
pub use workspace::WorkspaceParts;

/// How much longer than the worker its maintenance may take to end.
const MAINTENANCE_DRAIN: Duration = Duration::from_secs(1);

/// Builds what a command needs.
#[derive(Debug, Clone)]
pub struct App {
    config: Config,
}

/// The parts that a worker and its maintenance share.
pub struct ServiceBackends {
    /// The Postgres database.
    pub db: Db,
    /// Claims and their ends.
    pub ledger: Arc<dyn Ledger>,
    /// The queue of messages that name ingestions.
    pub queue: Arc<dyn MessageQueue>,
    /// The store of original documents and artefacts.
    pub store: Arc<dyn ObjectStore>,
}

impl ServiceBackends {
    /// The pipeline over these parts: originals and artefacts lie in one store.
    pub fn pipeline(&self, services: PipelineServices) -> PipelineContext {
        PipelineContext {
            documents: Arc::clone(&self.store),
            artefacts: Arc::clone(&self.store),
            ledger: Arc::clone(&self.ledger) as _,
            services: Arc::new(services),
        }
    }
}

impl App {
    /// From a configuration that was checked.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// The same, but pages are read as they are.
    #[must_use]
    pub fn without_repair(&self) -> Self {
        let mut config = self.config.clone();
        config.ocr.repair = RepairSwitches::NONE;
        Self { config }
    }

    /// The checked configuration of this process.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Postgres, its schema untouched and unchecked.
    ///
    /// # Errors
    /// It cannot be reached: which one, and what to check.
    pub async fn connect_database(&self) -> anyhow::Result<Db> {
        Ok(Db::connect(&self.config.database).await?)
    }

    /// The queue.
    ///
    /// # Errors
    /// It cannot be reached, or is of a sort we do not work with.
    pub async fn open_queue(&self) -> anyhow::Result<Arc<dyn MessageQueue>> {
        let config = &self.config.queue;
        Ok(match config.backend {
            QueueBackend::Sqs => Arc::new(SqsQueue::connect(config).await?),
            QueueBackend::Redis => Arc::new(RedisQueue::connect(config).await?),
            QueueBackend::Folder => {
                let store = Arc::new(FolderStore::open(&config.path).await?);
                Arc::new(ObjectQueue::new(store, config.visibility, config.dead_after()))
            }
            QueueBackend::Objects => {
                let store = self.open_store().await?;
                let queue = ObjectQueue::new(store, config.visibility, config.dead_after());
                Arc::new(match self.config.store.backend {
                    StoreBackend::S3 => queue.with_list_pace(self.config.bucket.list_every),
                    StoreBackend::Folder => queue,
                })
            }
        })
    }

    /// The Redis queue of this prefix.
    ///
    /// # Errors
    /// As [`App::open_queue`].
    pub async fn redis_queue(&self, prefix: &str) -> anyhow::Result<RedisQueue> {
        let mut config = self.config.queue.clone();
        prefix.clone_into(&mut config.redis_prefix);
        Ok(RedisQueue::connect(&config).await?)
    }

    /// The store.
    ///
    /// # Errors
    /// It cannot be reached: which one, and what to check.
    pub async fn open_store(&self) -> anyhow::Result<Arc<dyn ObjectStore>> {
        let config = &self.config.store;
        Ok(match config.backend {
            StoreBackend::S3 => Arc::new(S3Store::connect(config).await?),
            StoreBackend::Folder => Arc::new(FolderStore::open(&config.path).await?),
        })
    }

    /// Database (schema checked), ledger, queue and store.
    ///
    /// # Errors
    /// The first that cannot be reached.
    pub async fn open_backends(&self) -> anyhow::Result<ServiceBackends> {
        let db = self.connect_database().await?;
        db.require_schema().await?;
        Box::pin(self.open_backends_of(db)).await
    }

    /// The same for a worker, not beside the empty place of a volume.
    async fn open_worker_backends(&self) -> anyhow::Result<ServiceBackends> {
        let db = self.connect_database().await?;
        db.require_schema().await?;
        docmill_operations::mounted::require_mounted(&db, &self.config.store).await?;
        Box::pin(self.open_backends_of(db)).await
    }

    async fn open_backends_of(&self, db: Db) -> anyhow::Result<ServiceBackends> {
        let (queue, store) = tokio::try_join!(self.open_queue(), self.open_store())?;
        let ledger = PostgresLedger::with_slots(db.clone(), self.config.worker.slots);
        let ledger = Arc::new(ledger.with_silent_errors(self.config.silent_errors.clone()));
        Ok(ServiceBackends { db, ledger, queue, store })
    }

    /// The dependencies of the health pages: Postgres over a separate connection, so that health
    /// checks and jobs do not wait for each other.
    ///
    /// # Errors
    /// Postgres cannot be reached.
    pub async fn health_dependencies(
        &self,
        parts: &ServiceBackends,
    ) -> anyhow::Result<Arc<ServiceDependencies>> {
        let config = DatabaseConfig { max_connections: 1, ..self.config.database.clone() };
        let (database, queue) = (Db::connect(&config).await?, Arc::clone(&parts.queue));
        Ok(Arc::new(ServiceDependencies { database, queue }))
    }

    /// The models, each server asked whether it is there.
    ///
    /// # Errors
    /// One does not answer, or does not take our key.
    pub async fn connect_models(&self) -> anyhow::Result<ModelChain> {
        let scheduler = models::start_scheduler(&self.config.llm, false)?;
        let governor = self.make_governor();
        Ok(models::build_chain(&self.config.llm, &governor, scheduler.as_ref()).await?)
    }

    fn make_governor(&self) -> Arc<Governor> {
        Arc::new(Governor::new(self.config.throttle.clone()))
    }

    /// The pipeline's services.
    ///
    /// # Errors
    /// Tesseract is not installed, a kind cannot be read, the model does not answer.
    pub async fn pipeline_services(&self) -> anyhow::Result<PipelineServices> {
        let pool = Arc::new(CpuPool::new(self.config.worker.cpu_threads)?);
        let kinds = Arc::new(self.load_kinds()?);
        let governor = self.make_governor();
        let llm = &self.config.llm;
        let named = providers::named_providers(&self.config, &kinds);
        let scheduler = models::start_scheduler(llm, named.contains(&OcrProvider::Vision))?;
        let reader = self.build_reader(&pool, &kinds, &governor, scheduler.as_ref());
        let reader = Box::pin(reader).await?;
        start_reading(&reader).await?;
        let models = Box::pin(models::build_chain(llm, &governor, scheduler.as_ref())).await?;
        let textract = &self.config.ocr.textract;
        let expense = Box::pin(providers::connect_expense(textract, &governor)).await;
        for line in self.list_exceeded_limits(&kinds)? {
            tracing::warn!("{line}: {}", probe::EXCEEDED_ADVICE);
        }
        Ok(PipelineServices {
            reader,
            pool,
            models,
            scheduler,
            governor,
            kinds,
            budget: ByteBudget::new(self.config.limits.documents_in_memory)
                .with_text(self.config.limits.text_bytes),
            costs: Arc::new(CostTracker::new(self.config.cost.clone())),
            config: Arc::new(self.config.clone()),
            ignore_xml: false,
            companies: OwnCompanyBook::new(&self.config.parties),
            expense,
            hooks: None,
        })
    }

    /// The pipeline for documents without database, queue and store.
    ///
    /// # Errors
    /// As [`App::pipeline_services`].
    pub async fn local_pipeline(&self) -> anyhow::Result<LocalPipeline> {
        Ok(LocalPipeline::new(Box::pin(self.pipeline_services()).await?))
    }

    /// The pipeline of replays, whose spending counts in the day of this database.
    ///
    /// # Errors
    /// As [`App::pipeline_services`].
    pub async fn replay_pipeline(&self, db: &Db) -> anyhow::Result<LocalPipeline> {
        let ledger = Arc::new(PostgresLedger::new(db.clone()));
        let costs = Arc::new(CostTracker::new(self.config.cost.clone()));
        Ok(Box::pin(self.local_pipeline()).await?.spending_in(costs, ledger))
    }

    /// Builds the worker and its maintenance.
    ///
    /// # Errors
    /// A dependency cannot be reached.
    pub async fn build_worker(
        &self,
        parts: &ServiceBackends,
    ) -> anyhow::Result<(QueueWorker, Maintenance)> {
        let (worker, maintenance, _) = Box::pin(self.build_parts(parts)).await?;
        Ok((worker, maintenance))
    }

    /// The same, and the runner of kinds' replays.
    ///
    /// # Errors
    /// A dependency cannot be reached.
    pub async fn build_parts(
        &self,
        parts: &ServiceBackends,
    ) -> anyhow::Result<(QueueWorker, Maintenance, KindReplayRunner)> {
        let name = worker_name();
        let services = Box::pin(self.pipeline_services()).await?;
        let beside = LocalPipeline::new(services.for_replays());
        let replays = KindReplayRunner {
            db: parts.db.clone(),
            store: Arc::clone(&parts.store),
            pipeline: beside
                .spending_in(Arc::clone(&services.costs), Arc::clone(&parts.ledger) as _),
            worker: name.clone(),
        };
        let batches = self.batch_collector(parts, &services, name.clone());
        let policy = DestinationPolicy::of(&self.config.webhooks);
        let hooks = PipelineHooks::open(&self.config.hooks, policy)?;
        let pipeline = parts.pipeline(PipelineServices { hooks, ..services });
        let (ledger, queue) = (Arc::clone(&parts.ledger), Arc::clone(&parts.queue));
        let config = Arc::new(self.config.clone());
        let worker = QueueWorker::new(pipeline, ledger, queue, config, name.clone()).await?;
        let backends = MaintenanceBackends {
            db: parts.db.clone(),
            queue: Arc::clone(&parts.queue),
            store: Arc::clone(&parts.store),
        };
        let maintenance = Maintenance::new(backends, &self.config, name).with_batches(batches);
        Ok((worker, maintenance, replays))
    }

    /// The batch lane of a worker; `None` if no model may be asked in batches.
    pub fn batch_collector(
        &self,
        parts: &ServiceBackends,
        services: &PipelineServices,
        holder: String,
    ) -> Option<BatchCollector> {
        let backends = BatchBackends {
            db: parts.db.clone(),
            store: Arc::clone(&parts.store),
            costs: Arc::clone(&services.costs),
        };
        let (apis, config) = (services.models.batch_apis(), self.config.llm.batch.clone());
        BatchCollector::new(backends, apis, config, holder)
    }

    /// `docmill worker`: works, serves the health pages and takes part in maintenance until stopped.
    ///
    /// # Errors
    /// Something it needs cannot be reached at the start, or a part of the worker died.
    pub async fn serve(&self, stop: Shutdown) -> anyhow::Result<()> {
        let pages = self.health_pages().await?;
        let opening = Box::pin(self.open_worker_backends());
        let Some(parts) = stop.unless_requested(opening).await else { return Ok(()) };
        let parts = parts?;
        require_all_rows(&parts.db).await?;
        let (worker, maintenance, replays) = Box::pin(self.build_parts(&parts)).await?;
        tracing::info!(
            database = parts.db.description(),
            queue = parts.queue.describe(),
            store = parts.store.describe(),
            "worker ready, {}",
            pages.describe()
        );
        let watching = Box::pin(stop.unless_requested(self.health_dependencies(&parts))).await;
        let Some(watching) = watching else { return Ok(()) };
        let pages = pages.serve(worker.monitor(), watching?);
        let telling = self.start_webhooks(&parts.db, &parts.store, &stop).await?;
        let showing = self.start_console(&stop).await?;
        let replaying = watch_task("replays of kinds", &stop, replays.run(stop.clone()));
        let tending = watch_task("maintenance", &stop, maintenance.run(stop.clone()));
        let (ended, protecting) = self.start_protection(worker.monitor(), &stop)?;
        let worked = worker.run(stop.clone()).await;
        // The worker may have ended by itself; then the others are to end as well.
        stop.request();
        ended.cancel();
        pages.abort();
        let mut beside = vec![telling, replaying];
        beside.extend(protecting);
        beside.extend(showing);
        let beside = futures::future::join_all(beside.into_iter().map(WatchedTask::join)).await;
        // Asked to stop when the worker was: what is still under way hangs.
        let tended = tending.join_within(MAINTENANCE_DRAIN).await;
        parts.db.close().await;
        worked?;
        beside.into_iter().chain([tended]).collect()
    }

    /// Registers the targets of webhooks, if there are any, and delivers to them until the stop.
    ///
    /// # Errors
    /// An address may not be sent to, or a secret is none; no answer from Postgres.
    async fn start_webhooks(
        &self,
        db: &Db,
        store: &Arc<dyn ObjectStore>,
        stop: &Shutdown,
    ) -> anyhow::Result<WatchedTask> {
        let terms = WebhookTerms::new(&self.config);
        let delivery = WebhookDelivery::new(
            db.clone(),
            terms,
            Arc::new(SystemResolver),
            &self.delivery_store(store)?,
        )?;
        if let Some(delivery) = &delivery {
            // Before any ingestion can end whose outcome is to be delivered.
            delivery.register_targets().await?;
        }
        let until = stop.clone();
        Ok(watch_task("delivery of webhooks", stop, async move {
            if let Some(delivery) = delivery {
                delivery.run(until).await;
            }
        }))
    }

    /// The store as targets of webhooks write to it.
    fn delivery_store(&self, store: &Arc<dyn ObjectStore>) -> anyhow::Result<DeliveryStore> {
        Ok(DeliveryStore {
            store: Arc::clone(store),
            kinds: self.load_kinds()?,
            largest: self.config.limits.document_bytes.0,
        })
    }

    /// On ECS: keeps the task from being scaled in while the worker is busy.
    fn start_protection(
        &self,
        monitor: RunnerMonitor,
        stop: &Shutdown,
    ) -> anyhow::Result<(CancellationToken, Option<WatchedTask>)> {
        let ended = CancellationToken::new();
        let agent = match std::env::var("ECS_AGENT_URI") {
            Ok(uri) if self.config.worker.scale_in_protection => ContainerAgent::from_uri(&uri)?,
            _ => return Ok((ended, None)),
        };
        let run = scale_in_protection::run_protection(
            agent,
            monitor,
            ProtectionTiming::default(),
            ended.clone(),
        );
        Ok((ended, Some(watch_task("scale-in protection", stop, run))))
    }

    fn load_kinds(&self) -> anyhow::Result<KindSet> {
        Ok(KindSet::load(&self.config.kinds)?)
    }

    async fn build_reader(
        &self,
        pool: &Arc<CpuPool>,
        kinds: &KindSet,
        governor: &Arc<Governor>,
        scheduler: Option<&Arc<Scheduler>>,
    ) -> anyhow::Result<Arc<DocumentReader>> {
        let engines = self.find_engines()?;
        report_engines(&self.config.ocr, &engines);
        let recipe = self.page_recipe();
        let processes = self.build_processes(&engines, pool.thread_count())?;
        let remote_ocr =
            providers::build_remote_ocr(&self.config, kinds, pool, governor, scheduler).await?;
        let second_looks = SecondLooks::of_share(self.config.ocr.second_looks);
        let ocr = Arc::new(engines);
        Ok(Arc::new(DocumentReader { processes, ocr, recipe, remote_ocr, second_looks }))
    }

    fn find_engines(&self) -> fault::Result<PageEngines> {
        PageEngines::find_installed(&self.config.ocr, self.config.limits.page_time)
    }

    fn build_processes(
        &self,
        engines: &PageEngines,
        threads: usize,
    ) -> fault::Result<Arc<ProcessPool>> {
        let (program, setup) = self.prepare_processes(engines, threads)?;
        let memory = self.share_memory(&setup);
        let most = self.config.cpu.documents_per_process;
        Ok(ProcessPool::within(memory, program, setup, most))
    }

    /// The program and settings of page processes.
    fn prepare_processes(
        &self,
        engines: &PageEngines,
        threads: usize,
    ) -> fault::Result<(ProcessProgram, ProcessSetup)> {
        let Config { cpu, limits, ocr, einvoice, .. } = &self.config;
        let sets = EinvoiceRules::verify(&einvoice.rules)?;
        if !sets.is_empty() {
            tracing::info!(sets = sets.join(", "), "e-invoices are checked by official rules");
        }
        // Page processes do not search for weights: they get the folder, or none.
        let models = engines.weights().map(Path::to_owned).unwrap_or_default();
        let ocr = OcrConfig { models, ..ocr.clone() };
        let setup = ProcessSetup::new(cpu, limits, &ocr, self.page_recipe(), threads);
        let setup = setup.permitting(engines.process_permissions());
        let setup = setup.with_einvoice_rules(&einvoice.rules);
        let program = match cpu.program.as_os_str().is_empty() {
            true => ProcessProgram::current_binary()?,
            false => ProcessProgram::Binary(cpu.program.clone()),
        };
        Ok((program, setup))
    }

    /// The memory that page processes may use, by the container's limit or a setting.
    fn share_memory(&self, setup: &ProcessSetup) -> ProcessMemory {
        let Config { cpu, limits, .. } = &self.config;
        let granted = process_memory::granted_bytes();
        let Some(total) = process_memory::bytes_for_processes(cpu, limits, granted) else {
            return ProcessMemory::unbounded(setup);
        };
        let plan = ProcessMemory::within(total, setup);
        if plan.total_bytes() > total {
            tracing::warn!(
                granted_bytes = total,
                wanted_bytes = plan.total_bytes(),
                "page processes may exceed the available memory: see `docmill doctor`"
            );
        }
        plan
    }

    fn page_recipe(&self) -> ReadRecipe {
        let ocr = &self.config.ocr;
        ReadRecipe {
            dpi: ocr.dpi,
            languages: ocr.languages.clone(),
            repairs: ocr.repair,
            threshold: ocr.quality_threshold,
        }
    }
}

/// Logs the OCR engines at the start.
fn report_engines(config: &OcrConfig, engines: &PageEngines) {
    let engine = engines.name();
    if engines.weights().is_none() && config.engine == OcrEngineChoice::Auto {
        tracing::warn!(
            engine,
            "bad scans, photographs and receipts are read by Tesseract alone: the weights of the \
             neural reader are not there (scripts/models.sh FOLDER fetches them, ocr.models names \
             the folder)"
        );
    } else {
        tracing::info!(engine, "page images are read on this machine");
    }
}

/// Starts the first page process before the first document. Required confinement that fails is an
/// error here; a transient failure is only logged, since the next document starts another process.
async fn start_reading(reader: &DocumentReader) -> fault::Result<()> {
    match reader.processes.start_shared().await {
        Err(error) if error.fault == Fault::Misconfigured => Err(error),
        Err(error) => {
            tracing::warn!(error = %error, "starting a page process failed, retrying with the next document: {error}");
            Ok(())
        }
        Ok(_confinement) => Ok(()),
    }
}

/// Queries the health page of a worker on this machine.
///
/// # Errors
/// No answer within 5 s, or an unhealthy worker.
pub async fn check_health(config: &Config) -> anyhow::Result<()> {
    let mut address = config.worker.address;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let url = format!("http://{address}/livez").parse()?;
    let client = docmill_client::http::build_client(&url, Duration::from_secs(5))?;
    let answer = client.get(url.clone()).send().await;
    let status = answer.with_context(|| format!("no answer from {url}"))?.status();
    anyhow::ensure!(status.is_success(), "{url} answered {status}");
    Ok(())
}

/// Unique per process: host, process id and a random part (containers reuse both).
fn worker_name() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".to_owned());
    format!("{host}-{}-{:08x}", std::process::id(), fastrand::u32(..))
}
