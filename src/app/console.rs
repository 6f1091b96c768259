//! The pages of `docmill web`: what they need, and how they are served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::net::TcpListener;

use super::App;
use crate::ops::webhooks::{SystemResolver, WebhookDelivery, WebhookTerms};
use crate::shutdown::Shutdown;
use crate::web;
use crate::web::console::{ConsolePages, ConsoleParts, UploadLimits};
use docmill_core::config::DatabaseConfig;
use docmill_ledger::db::Db;

/// Connections to Postgres: a page takes one, for moments.
const CONNECTIONS: u32 = 5;
/// No page waits longer for a statement: what takes longer is a search that is too wide.
const LONGEST_STATEMENT: Duration = Duration::from_secs(5);

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
    /// The address is taken or not ours; something cannot be reached; a kind cannot be read.
    pub async fn open_console(&self) -> anyhow::Result<OpenConsole> {
        let listener = web::bind_console(self.config.web.address).await;
        let listener = listener.map_err(anyhow::Error::msg)?;
        let own = &self.config.database;
        let config = DatabaseConfig {
            max_connections: own.max_connections.min(CONNECTIONS),
            statement_timeout: own.statement_timeout.min(LONGEST_STATEMENT),
            ..own.clone()
        };
        let database = Db::connect_for_questions(&config).await?;
        database.require_schema().await?;
        let (queue, store) = tokio::try_join!(self.open_queue(), self.open_store())?;
        let parts = ConsoleParts {
            database: database.clone(),
            queue,
            store,
            kinds: self.load_kinds()?,
            review: self.config.review.clone(),
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
        let webhooks = WebhookDelivery::new(database.clone(), terms, names)?;
        Ok(OpenConsole { listener, pages, database, webhooks })
    }
}

impl OpenConsole {
    /// Where the pages are.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves the pages and delivers webhooks until it is asked to stop; what is being answered then is cut off, and
    /// Postgres undoes what was not committed.
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
