//! The composition root: the only place that names implementations.
//!
//! Everything is built from the configuration on demand, so that a command connects to what it
//! needs and to nothing else.

mod bucket;
mod doctor;
mod models;
mod page_process;
mod providers;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, QueueBackend, StoreBackend};
use crate::cpu::{Cells, Pool, Program, Setup};
use crate::db::Db;
use crate::kinds::Kinds;
use crate::ledger::Ledger;
use crate::ledger::postgres::PostgresLedger;
use crate::llm::chain::Chain;
use crate::model::{Recipe, Repairs};
use crate::ocr::tesseract::Tesseract;
use crate::ops::janitor::Maintenance;
use crate::pipeline::offline::Offline;
use crate::pipeline::{ByteBudget, Costs, Ports, Reader, StepsConfig};
use crate::queue::Queue;
use crate::queue::objects::ObjectQueue;
use crate::queue::redis::RedisQueue;
use crate::queue::sqs::SqsQueue;
use crate::shutdown::Stop;
use crate::store::Store;
use crate::store::folder::FolderStore;
use crate::store::s3::S3Store;
use crate::web::{self, Health};
use crate::worker::protection::{self, Agent, Pace};
use crate::worker::{Monitor, Settings, Worker};

pub use page_process::page_process;
pub use workspace::WorkspaceParts;

/// Builds what a command needs.
#[derive(Debug, Clone)]
pub struct App {
    config: Config,
}

/// The parts that a worker and its maintenance share.
pub struct Parts {
    /// Postgres.
    pub db: Db,
    /// Claims and their ends.
    pub ledger: Arc<dyn Ledger>,
    /// Messages.
    pub queue: Arc<dyn Queue>,
    /// Documents and artefacts.
    pub store: Arc<dyn Store>,
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
        config.ocr.repair = Repairs::NONE;
        Self { config }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Postgres, its schema untouched and unchecked.
    ///
    /// # Errors
    /// It cannot be reached: which one, and what to check.
    pub async fn database(&self) -> anyhow::Result<Db> {
        Ok(Db::connect(&self.config.database).await?)
    }

    /// The queue.
    ///
    /// # Errors
    /// It cannot be reached, or is of a sort we do not work with.
    pub async fn queue(&self) -> anyhow::Result<Arc<dyn Queue>> {
        let config = &self.config.queue;
        Ok(match config.backend {
            QueueBackend::Sqs => Arc::new(SqsQueue::connect(config).await?),
            QueueBackend::Redis => Arc::new(RedisQueue::connect(config).await?),
            QueueBackend::Folder => {
                let store = Arc::new(FolderStore::open(&config.path).await?);
                Arc::new(ObjectQueue::new(store, config.visibility, config.dead_after()))
            }
            QueueBackend::Objects => {
                let store = self.store().await?;
                let queue = ObjectQueue::new(store, config.visibility, config.dead_after());
                Arc::new(match self.config.store.backend {
                    StoreBackend::S3 => queue.paced(self.config.bucket.list_every),
                    StoreBackend::Folder => queue,
                })
            }
        })
    }

    /// The Redis queue of this prefix.
    ///
    /// # Errors
    /// As [`App::queue`].
    pub async fn redis_queue(&self, prefix: &str) -> anyhow::Result<RedisQueue> {
        let mut config = self.config.queue.clone();
        prefix.clone_into(&mut config.redis_prefix);
        Ok(RedisQueue::connect(&config).await?)
    }

    /// The store.
    ///
    /// # Errors
    /// It cannot be reached: which one, and what to check.
    pub async fn store(&self) -> anyhow::Result<Arc<dyn Store>> {
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
    pub async fn parts(&self) -> anyhow::Result<Parts> {
        let db = self.database().await?;
        db.require_schema().await?;
        let (queue, store) = tokio::try_join!(self.queue(), self.store())?;
        let ledger = Arc::new(PostgresLedger::new(db.clone()));
        Ok(Parts { db, ledger, queue, store })
    }

    /// The models, each server asked whether it is there.
    ///
    /// # Errors
    /// One does not answer, or does not take our key.
    pub async fn models(&self) -> anyhow::Result<Chain> {
        Ok(models::chain(&self.config.llm, &self.config.throttle).await?)
    }

    /// What one document needs when there is neither database nor queue.
    ///
    /// # Errors
    /// Tesseract is not installed, a kind cannot be read, the model does not answer.
    pub async fn offline(&self) -> anyhow::Result<Offline> {
        let pool = Arc::new(Pool::new(self.config.worker.cpu_threads)?);
        let kinds = Arc::new(self.kinds()?);
        Ok(Offline {
            reader: Box::pin(self.reader(pool.threads(), &kinds)).await?,
            pool,
            models: Box::pin(self.models()).await?,
            kinds,
            config: self.steps(),
        })
    }

    /// The worker and its maintenance, ready to run.
    ///
    /// # Errors
    /// Whatever it needs and cannot reach.
    pub async fn worker(&self, parts: &Parts) -> anyhow::Result<(Worker, Maintenance)> {
        let name = worker_name();
        let offline = Box::pin(self.offline()).await?;
        let reader = Arc::clone(&offline.reader);
        tokio::spawn(async move {
            if let Err(error) = reader.cells.warm().await {
                tracing::warn!(error = %error, "{error}: documents will wait for another");
            }
        });
        let ports = Ports {
            store: Arc::clone(&parts.store),
            ledger: Arc::clone(&parts.ledger),
            reader: offline.reader,
            pool: offline.pool,
            models: offline.models,
            kinds: offline.kinds,
            budget: ByteBudget::new(self.config.limits.documents_in_memory),
            config: offline.config,
        };
        let settings = Settings::new(&self.config, name.clone());
        let worker = Worker::new(ports, Arc::clone(&parts.queue), settings).await?;
        let maintenance = Maintenance {
            db: parts.db.clone(),
            queue: Arc::clone(&parts.queue),
            store: Arc::clone(&parts.store),
            config: self.config.janitor.clone(),
            crash_limit: self.config.retry_terms().crash_attempts,
            holder: name,
        };
        Ok((worker, maintenance))
    }

    /// `docmill worker`: works, serves the health pages and takes part in maintenance until
    /// stopped.
    ///
    /// # Errors
    /// Something it needs cannot be reached at the start.
    pub async fn serve(&self, stop: Stop) -> anyhow::Result<()> {
        let listener = web::bind(self.config.worker.address).await.map_err(anyhow::Error::msg)?;
        let address = listener.local_addr().context("reading the address of the health pages")?;
        let metrics = crate::metrics::install().context("installing the metrics recorder")?;
        let parts = Box::pin(self.parts()).await?;
        let (worker, maintenance) = self.worker(&parts).await?;
        tracing::info!(
            database = parts.db.describe(),
            queue = parts.queue.describe(),
            store = parts.store.describe(),
            "worker ready, health pages on http://{address}"
        );
        let health = Health {
            monitor: worker.monitor(),
            ledger: Arc::clone(&parts.ledger),
            queue: Arc::clone(&parts.queue),
            metrics,
        };
        let pages = tokio::spawn(web::serve(listener, health));
        let tending = tokio::spawn(maintenance.run(stop.clone()));
        let (ended, protecting) = self.protect(worker.monitor())?;
        worker.run(stop).await;
        ended.cancel();
        if let Some(protecting) = protecting {
            protecting.await.context("the task protection died")?;
        }
        pages.abort();
        tending.await.context("the maintenance task died")?;
        parts.db.close().await;
        Ok(())
    }

    /// On ECS: keeps the task from being scaled in while the worker is busy.
    fn protect(
        &self,
        monitor: Monitor,
    ) -> anyhow::Result<(CancellationToken, Option<JoinHandle<()>>)> {
        let ended = CancellationToken::new();
        let agent = match std::env::var("ECS_AGENT_URI") {
            Ok(uri) if self.config.worker.scale_in_protection => Agent::at(&uri)?,
            _ => return Ok((ended, None)),
        };
        let run = protection::run(agent, monitor, Pace::default(), ended.clone());
        Ok((ended, Some(tokio::spawn(run))))
    }

    fn kinds(&self) -> anyhow::Result<Kinds> {
        Ok(Kinds::load(&self.config.kinds)?)
    }

    async fn reader(&self, threads: usize, kinds: &Kinds) -> anyhow::Result<Arc<Reader>> {
        let Config { cpu, limits, ocr, .. } = &self.config;
        let tesseract = Tesseract::start(ocr, limits.page_time)?;
        let recipe = self.recipe();
        let permissions = tesseract.permissions();
        let setup = Setup::new((cpu, limits, ocr), recipe.clone(), threads, permissions);
        let program = match cpu.program.as_os_str().is_empty() {
            true => Program::this()?,
            false => Program::Binary(cpu.program.clone()),
        };
        let cells = Cells::new(program, setup, cpu.documents_per_process);
        let elsewhere = providers::elsewhere(&self.config, kinds).await?;
        Ok(Arc::new(Reader { cells, ocr: Arc::new(tesseract), recipe, elsewhere }))
    }

    fn recipe(&self) -> Recipe {
        let ocr = &self.config.ocr;
        Recipe {
            dpi: ocr.dpi,
            languages: ocr.languages.clone(),
            repairs: ocr.repair,
            threshold: ocr.quality_threshold,
        }
    }

    fn steps(&self) -> StepsConfig {
        StepsConfig {
            limits: self.config.limits.clone(),
            retry: self.config.retry_terms(),
            default_kind: self.config.kinds.default.clone(),
            classify: self.config.kinds.classify,
            ask_on_ties: self.config.kinds.ask_on_ties,
            quality_threshold: self.config.ocr.quality_threshold,
            parts_at_once: self.config.llm.parts_at_once,
            costs: Arc::new(Costs::new(self.config.cost.clone())),
            ignore_xml: false,
        }
    }
}

/// Asks the health page of a worker on this machine.
///
/// # Errors
/// It does not answer within 5 s, or says that it is not well.
pub async fn healthcheck(config: &Config) -> anyhow::Result<()> {
    let mut address = config.worker.address;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let url = format!("http://{address}/livez").parse()?;
    let client = crate::http::client(&url, Duration::from_secs(5))?;
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
