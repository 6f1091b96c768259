//! The pages of `docmill web`: what they need, and how they are served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::net::TcpListener;

use super::App;
use super::watched_task::{WatchedTask, watch_task};
use docmill_console::{ConsolePages, ConsoleParts, UploadLimits};
use docmill_core::config::{
    Config, CpuConfig, DatabaseConfig, OcrConfig, OcrEngineChoice, ProcessSharing, WebConfig,
};
use docmill_core::fault;
use docmill_documents::sandbox::ProcessPool;
use docmill_ledger::db::Db;
use docmill_operations::page_drawing::PageDrawer;
use docmill_operations::webhooks::{SystemResolver, WebhookDelivery, WebhookTerms};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;

/// Connections to Postgres: a page takes one, for moments.
const CONNECTIONS: u32 = 5;
/// No page waits longer for a statement: what takes longer is a search that is too wide.
const MAX_STATEMENT: Duration = Duration::from_secs(5);

/// The pages and their port, not served yet.
pub struct OpenConsole {
    listener: TcpListener,
    pages: ConsolePages,
    database: Db,
    webhooks: Option<WebhookDelivery>,
}

impl App {
    /// Opens the port of the pages (`web.address`) and connects to what they show.
    ///
    /// # Errors
    /// The address is in use or not local; a dependency cannot be reached; a kind cannot be read.
    pub async fn open_console(&self) -> anyhow::Result<OpenConsole> {
        let listener = docmill_console::health_port::bind_console(self.config.web.address).await;
        let listener = listener.map_err(anyhow::Error::msg)?;
        let own = &self.config.database;
        let config = DatabaseConfig {
            max_connections: own.max_connections.min(CONNECTIONS),
            statement_timeout: own.statement_timeout.min(MAX_STATEMENT),
            ..own.clone()
        };
        let database = Db::connect_for_questions(&config).await?;
        database.require_schema().await?;
        let (queue, store) = tokio::try_join!(self.open_queue(), self.open_store())?;
        let parts = ConsoleParts {
            database: database.clone(),
            queue,
            drawer: self.build_page_drawer(&store),
            store: Arc::clone(&store),
            kinds: self.load_kinds()?,
            review: self.config.review.clone(),
            silent_errors: self.config.silent_errors.clone(),
            config: self.config.web.clone(),
            places: self.config.store.clone(),
            limits: UploadLimits {
                largest: self.config.limits.document_bytes.0,
                destination: self.config.queue_destination(),
            },
        };
        let pages = ConsolePages::new(parts).map_err(anyhow::Error::msg)?;
        let terms = WebhookTerms::new(&self.config);
        let names = Arc::new(SystemResolver);
        let webhooks =
            WebhookDelivery::new(database.clone(), terms, names, &self.delivery_store(&store)?)?;
        Ok(OpenConsole { listener, pages, database, webhooks })
    }

    /// The pages in a worker, until the stop; `None`: they are served elsewhere, or nowhere. Webhooks
    /// are the worker's own.
    ///
    /// # Errors
    /// As [`App::open_console`].
    pub(super) async fn start_console(
        &self,
        stop: &Shutdown,
    ) -> anyhow::Result<Option<WatchedTask>> {
        if !self.config.web.in_worker {
            return Ok(None);
        }
        let console = OpenConsole { webhooks: None, ..Box::pin(self.open_console()).await? };
        console.announce(&self.config.web)?;
        Ok(Some(watch_task("console", stop, console.serve(stop.clone()))))
    }

    /// The page drawer for originals; `None` if it is switched off or impossible here.
    fn build_page_drawer(&self, store: &Arc<dyn ObjectStore>) -> Option<Arc<PageDrawer>> {
        if !self.config.web.page_pictures {
            return None;
        }
        match self.build_drawing_processes() {
            Ok(processes) => {
                let largest = self.config.limits.document_bytes.0;
                let (store, places) = (Arc::clone(store), self.config.store.clone());
                Some(Arc::new(PageDrawer::new(store, places, largest, processes)))
            }
            Err(error) => {
                tracing::warn!("page images are unavailable: {error}");
                None
            }
        }
    }

    /// Page processes that draw pages for people: one for each document, ended with its picture, so
    /// that none stays in memory and no two documents share one.
    fn build_drawing_processes(&self) -> fault::Result<Arc<ProcessPool>> {
        // A page process finds a reader when it starts; drawing needs none, so the lightest does.
        let ocr = OcrConfig { engine: OcrEngineChoice::Tesseract, ..self.config.ocr.clone() };
        let cpu = CpuConfig { shared: ProcessSharing::None, ..self.config.cpu.clone() };
        let drawing = Self { config: Config { ocr, cpu, ..self.config.clone() } };
        let engines = drawing.find_engines()?;
        let (program, setup) = drawing.prepare_processes(&engines, 1)?;
        Ok(ProcessPool::new(program, setup, 1))
    }
}

impl OpenConsole {
    /// The address of the pages.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Logs the address of the pages, and whether they are open without sign-in.
    ///
    /// # Errors
    /// The system does not report the address.
    pub fn announce(&self, config: &WebConfig) -> std::io::Result<()> {
        tracing::info!("pages on http://{}{}/", self.address()?, config.base_path);
        if config.is_open() {
            tracing::warn!(
                "without web.tokens, web.users and web.proxy everybody on this machine may do everything \
                 (docs/guides/web.md)"
            );
        }
        Ok(())
    }

    /// Serves the pages and delivers webhooks until stopped. Requests in progress are cut off, and
    /// Postgres rolls back uncommitted changes.
    pub async fn serve(self, stop: Shutdown) {
        let Self { listener, pages, database, webhooks } = self;
        let telling = webhooks.map(|delivery| delivery.run(stop.clone()));
        let served = async {
            tokio::select! {
                () = pages.serve(listener) => stop.request(),
                () = stop.wait_until_requested() => {}
            }
        };
        tokio::join!(served, OptionFuture::from(telling));
        database.close().await;
    }
}
