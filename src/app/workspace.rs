//! An olmOCR workspace and its worker, put together from an address and `[store]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::App;
use docmill_compat::object_pipeline::ObjectPipeline;
use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::{LEDGER, WorkspaceFormat};
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, PipelineReader, Workspace, WorkspaceReading,
};
use docmill_core::config::StoreConfig;
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use docmill_storage::prefixed::PrefixedStore;
use docmill_storage::s3::{BucketAccess, S3Store};

/// The parts of a command on a workspace.
pub struct WorkspaceParts {
    /// The workspace with its groups.
    pub workspace: Arc<Workspace>,
    /// For documents and prefixes of `s3://`; a workspace in a folder has one only where it was asked for.
    pub s3: Option<Arc<dyn ObjectStore>>,
}

impl App {
    /// Opens the workspace at a folder's path or an `s3://bucket/prefix`.
    ///
    /// # Errors
    /// It cannot be reached; it ignores the conditions that locks rely on.
    pub async fn open_workspace(
        &self,
        address: &str,
        format: WorkspaceFormat,
        timeout: Duration,
    ) -> anyhow::Result<WorkspaceParts> {
        let (store, s3): (Arc<dyn ObjectStore>, _) = match address.strip_prefix("s3://") {
            None => (Arc::new(FolderStore::open(Path::new(address)).await?), None),
            Some(rest) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                let place = format!("{}{LEDGER}", PrefixedStore::normalize_prefix(prefix));
                let access = BucketAccess { keys: None, place: &place };
                let whole = S3Store::connect_as(&self.s3_store_config(bucket), &access).await?;
                let whole: Arc<dyn ObjectStore> = Arc::new(whole);
                (Arc::new(PrefixedStore::new(Arc::clone(&whole), prefix)), Some(whole))
            }
        };
        let workspace = Workspace::open(store, StoreClock::default(), format, timeout)
            .await
            .with_context(|| format!("{address} cannot hold a workspace"))?;
        Ok(WorkspaceParts { workspace: Arc::new(workspace), s3 })
    }

    /// The sources of documents; `s3`: whether any are in S3, `local`: whether local files are allowed.
    pub async fn workspace_sources(
        &self,
        parts: &WorkspaceParts,
        s3: bool,
        local: bool,
    ) -> DocumentSources {
        let store = match (&parts.s3, s3) {
            (Some(store), _) => Some(Arc::clone(store)),
            (None, false) => None,
            (None, true) => {
                let store: Arc<dyn ObjectStore> =
                    Arc::new(S3Store::connect_unchecked(&self.s3_store_config("")).await);
                Some(store)
            }
        };
        let limits = &self.config.limits;
        let (largest, archives) = (limits.document_bytes.0, ArchiveLimits::from(limits));
        DocumentSources { s3: store, largest, local, archives }
    }

    /// The reader of documents.
    ///
    /// # Errors
    /// As [`App::pipeline_services`].
    pub async fn workspace_reader(
        &self,
        workspace: &Workspace,
        reading: WorkspaceReading,
    ) -> anyhow::Result<Arc<PipelineReader>> {
        let pipeline =
            ObjectPipeline::new(Box::pin(self.pipeline_services()).await?, workspace.store());
        Ok(Arc::new(PipelineReader { pipeline, reading }))
    }

    fn s3_store_config(&self, bucket: &str) -> StoreConfig {
        let config = &self.config.store;
        StoreConfig {
            bucket: bucket.to_owned(),
            endpoint: config.endpoint.clone(),
            region: config.region.clone(),
            // Custom endpoints rarely have a host name per bucket.
            path_style: config.path_style || !config.endpoint.is_empty(),
            ..StoreConfig::default()
        }
    }
}
