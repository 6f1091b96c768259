//! An olmOCR workspace in a folder: jobs are groups of one document, their work is its reading.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::{WorkspaceFormat, all_lock_keys, group_hash, result_key};
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, DocumentText, ReadOutcome, Workspace, WorkspaceOptions,
    WorkspaceReader, WorkspaceWorkerSetup, populate_workspace,
};
use docmill_core::fault::Result;
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::folder::FolderStore;
use docmill_storage::{GetOptions, GetResult, ObjectStore};
use tempfile::TempDir;

use super::{JobSourceSite, SiteTerms, SiteWorker, WorkPlan};

/// olmOCR's timeout of a lock.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A folder with a workspace, and one with documents.
pub(crate) struct WorkspaceSite {
    folder: TempDir,
    papers: TempDir,
    store: Arc<dyn ObjectStore>,
    plan: Arc<WorkPlan>,
}

/// Reads as planned for the document's name.
struct PlannedReader(Arc<WorkPlan>);

#[async_trait]
impl WorkspaceReader for PlannedReader {
    async fn count_pages(&self, _: Bytes) -> Result<Option<u32>> {
        Ok(Some(1))
    }

    async fn read_document(
        &self,
        path: &str,
        bytes: Bytes,
        _: &ClaimHandle,
    ) -> Result<ReadOutcome> {
        self.0.perform(|job| Path::new(path).file_stem().unwrap() == job).await?;
        let pages = vec![(1, String::from_utf8(bytes.to_vec()).unwrap())];
        Ok(ReadOutcome::Whole(Box::new(DocumentText { pages, ..DocumentText::default() })))
    }
}

impl WorkspaceSite {
    fn path_of(&self, job: &str) -> String {
        self.papers.path().join(format!("{job}.pdf")).to_str().unwrap().to_owned()
    }

    fn hash_of(&self, job: &str) -> String {
        group_hash(&[self.path_of(job)])
    }

    /// As a process of its own would open it.
    async fn workspace(&self, timeout: Duration) -> Workspace {
        let store = Arc::new(FolderStore::open(self.folder.path()).await.unwrap());
        let (clock, format) = (StoreClock::default(), WorkspaceFormat::Both);
        Workspace::open(store, clock, format, timeout).await.unwrap()
    }
}

#[async_trait(?Send)]
impl JobSourceSite for WorkspaceSite {
    async fn open() -> Self {
        let (folder, papers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store: Arc<dyn ObjectStore> = Arc::new(FolderStore::open(folder.path()).await.unwrap());
        Self { folder, papers, store, plan: Arc::default() }
    }

    fn plan(&self) -> &WorkPlan {
        &self.plan
    }

    async fn add(&self, job: &'static str) {
        std::fs::write(self.path_of(job), format!("paper {job}")).unwrap();
        self.offer(job).await;
    }

    async fn offer(&self, job: &'static str) {
        let workspace = self.workspace(TIMEOUT).await;
        populate_workspace(&workspace, &[self.path_of(job)], 1, false).await.unwrap();
    }

    async fn start(&self, terms: SiteTerms) -> SiteWorker {
        let timeout = if terms.quick_renewals { Duration::from_secs(6) } else { TIMEOUT };
        let worker = WorkspaceWorkerSetup {
            workspace: Arc::new(self.workspace(timeout).await),
            reader: Arc::new(PlannedReader(Arc::clone(&self.plan))),
            sources: Arc::new(DocumentSources {
                s3: None,
                largest: 1 << 20,
                local: true,
                archives: ArchiveLimits::default(),
            }),
            terms: WorkspaceOptions {
                jobs: terms.slots,
                tries: 100,
                document_time: Duration::from_secs(600),
                page_error_rate: 0.004,
                retry_pause: Duration::from_secs(60),
                poll_interval: Duration::from_millis(20),
                leave_locked: false,
                drain: terms.drain,
            },
        };
        let worker = worker.open().await.unwrap();
        let (monitor, stop) = (worker.monitor(), Shutdown::default());
        let run = worker.run(stop.clone());
        SiteWorker {
            stop,
            monitor,
            task: tokio::spawn(async move {
                run.await.unwrap();
            }),
        }
    }

    /// As olmOCR takes a lock.
    async fn take_claim(&self, job: &'static str) {
        let [lock, _] = all_lock_keys(&self.hash_of(job));
        self.store.put(&lock, Bytes::new(), &BTreeMap::new()).await.unwrap();
    }

    async fn is_claimed(&self, job: &'static str) -> bool {
        let [newer, older] = all_lock_keys(&self.hash_of(job));
        let (newer, older) = tokio::join!(self.store.head(&newer), self.store.head(&older));
        newer.unwrap().is_some() || older.unwrap().is_some()
    }

    async fn is_complete(&self, job: &'static str) -> bool {
        let options = GetOptions { at_most: 1 << 20, if_match: None };
        match self.store.get(&result_key(&self.hash_of(job)), options).await.unwrap() {
            GetResult::Found(result) => !result.bytes.is_empty(),
            _ => false,
        }
    }
}
