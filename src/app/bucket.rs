//! A BlobForge bucket and its worker, put together from `[bucket]`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::App;
use docmill_compat::bucket::{
    BlobForgeBucket, BucketWorkerOptions, BucketWorkerSetup, PipelineConverter, RunWindows,
};
use docmill_compat::object_pipeline::ObjectPipeline;
use docmill_compat::objects::engine::StoreClock;
use docmill_core::config::StoreConfig;
use docmill_storage::folder::FolderStore;
use docmill_storage::prefixed::PrefixedStore;
use docmill_storage::s3::{BucketAccess, S3Store};
use docmill_storage::{ObjectStore, conditions};

/// Interval of listings of a folder, which are free.
const FOLDER_EVERY: Duration = Duration::from_millis(500);

impl App {
    /// Opens the configured bucket, and checks the conditional writes that its locks need.
    ///
    /// # Errors
    /// None or two are configured; it cannot be reached; it ignores conditions.
    pub async fn open_bucket(&self) -> anyhow::Result<BlobForgeBucket> {
        let config = &self.config.bucket;
        config.check_place()?;
        let start = PrefixedStore::normalize_prefix(&config.prefix);
        let store: Arc<dyn ObjectStore> = match config.name.as_str() {
            "" => {
                let folder = FolderStore::open(&config.path).await?;
                conditions::check_conditional_writes(&folder, &start)
                    .await
                    .context("the folder cannot hold locks")?;
                Arc::new(folder)
            }
            name => {
                let place = StoreConfig {
                    bucket: name.to_owned(),
                    endpoint: config.endpoint.clone(),
                    region: config.region.clone(),
                    // Custom endpoints rarely have a host name per bucket.
                    path_style: !config.endpoint.is_empty(),
                    ..StoreConfig::default()
                };
                let id = config.access_key_id.as_str();
                let keys = (!id.is_empty()).then_some((id, &config.secret_access_key));
                let access = BucketAccess { keys, place: &start };
                Arc::new(S3Store::connect_as(&place, &access).await?)
            }
        };
        let store = conditions::keep_delete_conditions(store, &start).await?;
        let store = PrefixedStore::new(store, &config.prefix);
        Ok(BlobForgeBucket::new(Arc::new(store), StoreClock::default()))
    }

    /// The parts of a bucket worker: `jobs` documents in parallel, drained for `drain` after a
    /// stop; with `once` it ends when nothing is waiting.
    ///
    /// # Errors
    /// As [`App::open_bucket`] and [`App::pipeline_services`].
    pub async fn bucket_worker_setup(
        &self,
        jobs: usize,
        once: bool,
        drain: Duration,
    ) -> anyhow::Result<BucketWorkerSetup> {
        let config = &self.config.bucket;
        let bucket = Arc::new(self.open_bucket().await?);
        let pipeline =
            ObjectPipeline::new(Box::pin(self.pipeline_services()).await?, bucket.store());
        pipeline.start_removal();
        let convert = Arc::new(PipelineConverter { pipeline });
        let each_list = match config.name.is_empty() {
            true => FOLDER_EVERY.min(config.list_every),
            false => config.list_every,
        };
        let terms = BucketWorkerOptions {
            jobs,
            once,
            each_list,
            longest_pause: config.longest_pause,
            largest: self.config.limits.document_bytes.0,
            name: Some(config.worker_id.clone()).filter(|id| !id.is_empty()),
            drain,
            windows: RunWindows::default(),
        };
        Ok(BucketWorkerSetup { bucket, convert, terms })
    }
}
