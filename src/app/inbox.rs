//! The sources of `docmill inbox`: which implementation each entry of `inbox.sources` has.

use docmill_client::access_token::AccessTokenCache;
use docmill_client::access_token::ambient::AmbientVariables;
use docmill_client::access_token::entra::{EntraApplication, EntraGrant};
use docmill_core::config::{ImapAuth, InboxProtocol, InboxSourceConfig};
use docmill_core::retry::with_deadline;
use docmill_inbox::InboxSource;
use docmill_inbox::folder::FolderSource;
use docmill_inbox::graph::GraphSource;
use docmill_inbox::imap::ImapSource;
use docmill_operations::doctor::DoctorFinding;
use docmill_operations::inbox::{InboxReport, InboxTerms, InboxWorker};
use docmill_operations::submit::{SubmitContext, SubmitOptions};
use docmill_pipeline::shutdown::Shutdown;

use super::{App, ServiceBackends};
use docmill_core::config::QueueDestination;
use docmill_core::fault::{Error, Result};

impl App {
    /// Takes mails and files from the sources of these names (none: all) until stopped.
    ///
    /// # Errors
    /// There is no such source; a dependency cannot be reached.
    pub async fn serve_inboxes(&self, names: &[String], stop: &Shutdown) -> anyhow::Result<()> {
        let workers = self.inbox_workers(names)?;
        let pages = self.health_pages_if_free().await?;
        tracing::info!("{}", pages.describe());
        let parts = Box::pin(self.open_backends()).await?;
        let pages = pages.serve_metrics();
        for worker in &workers {
            tracing::info!("inbox {}", worker.describe());
        }
        let destination = self.config.queue_destination();
        let context = self.inbox_context(&parts, &destination);
        let work = workers.into_iter().map(|worker| worker.run(context, stop));
        futures::future::join_all(work).await;
        pages.abort();
        parts.db.close().await;
        Ok(())
    }

    /// Takes what the sources of these names (none: all) have now.
    ///
    /// # Errors
    /// As [`App::serve_inboxes`].
    pub async fn take_inboxes_once(
        &self,
        names: &[String],
        stop: &Shutdown,
    ) -> anyhow::Result<Vec<InboxReport>> {
        let mut workers = self.inbox_workers(names)?;
        let parts = Box::pin(self.open_backends()).await?;
        let destination = self.config.queue_destination();
        let context = self.inbox_context(&parts, &destination);
        let work = workers.iter_mut().map(|worker| worker.run_once(context, stop));
        let reports = futures::future::join_all(work).await;
        parts.db.close().await;
        Ok(reports)
    }

    fn inbox_context<'a>(
        &self,
        parts: &'a ServiceBackends,
        destination: &'a QueueDestination,
    ) -> SubmitContext<'a> {
        SubmitContext {
            db: &parts.db,
            store: parts.store.as_ref(),
            queue: parts.queue.as_ref(),
            largest: self.config.limits.document_bytes.0,
            destination,
        }
    }

    fn inbox_workers(&self, names: &[String]) -> anyhow::Result<Vec<InboxWorker>> {
        let sources = &self.config.inbox.sources;
        for name in names {
            let is_known = sources.iter().any(|source| source.name == *name);
            anyhow::ensure!(is_known, "no entry of inbox.sources is named `{name}`");
        }
        let kinds = self.load_kinds()?;
        let mut workers = Vec::new();
        for source in sources {
            let is_known = source.kind.is_empty() || kinds.get(&source.kind).is_some();
            anyhow::ensure!(is_known, "inbox source `{}`: no such kind", source.name);
            if names.is_empty() || names.contains(&source.name) {
                workers.push(InboxWorker::new(self.inbox_source(source)?, self.terms_of(source)));
            }
        }
        anyhow::ensure!(!workers.is_empty(), "inbox.sources is empty: there is nothing to take");
        Ok(workers)
    }

    fn terms_of(&self, source: &InboxSourceConfig) -> InboxTerms {
        let options = SubmitOptions {
            kind: Some(source.kind.clone()).filter(|kind| !kind.is_empty()),
            tenant: Some(source.tenant.clone()).filter(|tenant| !tenant.is_empty()),
            priority: source.priority,
            tags: [("inbox".to_owned(), source.name.clone())].into(),
            ..SubmitOptions::default()
        };
        InboxTerms { name: source.name.clone(), options, poll: self.config.inbox.poll }
    }

    fn inbox_source(&self, source: &InboxSourceConfig) -> Result<Box<dyn InboxSource>> {
        let timeout = self.config.inbox.timeout;
        match source.source {
            InboxProtocol::Imap => {
                let tokens = match source.auth {
                    ImapAuth::Entra => Some(entra_tokens(source, EntraGrant::EXCHANGE)?),
                    ImapAuth::Password => None,
                };
                Ok(Box::new(ImapSource::new(source.clone(), timeout, tokens)))
            }
            InboxProtocol::Graph => {
                let tokens = entra_tokens(source, &GraphSource::token_resource(source)?)?;
                Ok(Box::new(GraphSource::new(source.clone(), timeout, tokens)?))
            }
            InboxProtocol::Folder => {
                Ok(Box::new(FolderSource::new(source.clone(), self.config.inbox.poll)))
            }
        }
    }

    /// Opens each source: login, folder, and whether marks are kept.
    pub(super) async fn check_inboxes(&self) -> Vec<DoctorFinding> {
        const CHECK: &str = "inbox";
        let checked = self.config.inbox.sources.iter().map(async |source| {
            let opened = async {
                let mut opened = self.inbox_source(source)?;
                with_deadline(self.config.inbox.timeout, opened.open(), no_answer).await?;
                Ok::<_, Error>(opened.describe())
            };
            match opened.await {
                Ok(place) => DoctorFinding::ok(CHECK, format!("{}: {place}", source.name)),
                Err(error) => DoctorFinding::unusable(CHECK, &format!("{}: {error}", source.name)),
            }
        });
        futures::future::join_all(checked).await
    }
}

fn no_answer() -> Error {
    Error::transient("no answer within inbox.timeout")
}

/// Tokens of the application that the entry names, or of the platform's identity.
fn entra_tokens(source: &InboxSourceConfig, resource: &str) -> Result<AccessTokenCache> {
    if source.client_id.is_empty() {
        let variables = AmbientVariables::from_process();
        return Ok(AccessTokenCache::new(EntraGrant::find(resource, &variables)?));
    }
    let application = EntraApplication {
        authority: source.authority.clone(),
        directory_id: source.directory_id.clone(),
        client_id: source.client_id.clone(),
        secret: source.client_secret_source(),
    };
    Ok(AccessTokenCache::new(EntraGrant::for_application(resource, application)?))
}
