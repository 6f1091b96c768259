//! An olmOCR workspace without a database: populate, work, count.
//!
//! A workspace is an index of work groups beside locks, marks and results, in a folder or below an
//! `s3://` prefix; nodes of olmOCR may share it. Work on a group needs its lock, which is taken,
//! renewed, released and taken over conditionally, so that exactly one docmill worker has it. Locks
//! that olmOCR overwrites unconditionally are noticed at the next renewal. The status of each
//! document is stored until its group is finished, and longer for failed ones. Not promised: that
//! an olmOCR node that overwrites a lock between two renewals does not start the group as well (one
//! result is kept), nor features that need Postgres (see `docs/guides/workspaces.md`).

mod archive;
mod claim;
mod dolma;
mod english_filter;
mod finished;
mod group_run;
mod job;
mod ledger;
mod markdown;
mod populate;
mod read;
mod reopen;
mod source;
mod stats;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use archive::{ArchiveLimits, is_archive};
pub use claim::{GroupClaim, GroupClaimResult};
pub use ledger::{DocumentStatus, GroupEntry};
pub use populate::{PopulateReport, RefusedPath, populate_workspace, sample_group_size};
pub use read::{DocumentText, PipelineReader, ReadOutcome, WorkspaceReader, WorkspaceReading};
pub use reopen::reopen_groups;
pub use source::{DocumentSources, SourceContent};
pub use stats::{UnreadDocument, WorkspaceStats, load_stats};
pub use work::{WorkspaceOptions, WorkspaceTally, WorkspaceWorker, WorkspaceWorkerSetup};

use crate::objects::engine::{RecordStore, StoreClock};
use crate::objects::olmocr::index::{MAX_INDEX_BYTES, WorkIndex};
use crate::objects::olmocr::{
    FLAGS, INDEX, LEDGER, RESULTS, WorkspaceFormat, finished_group, flag_key, result_key,
};
use async_trait::async_trait;
use docmill_core::fault::{Error, Result};
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, conditions};
use docmill_worker::runner::{ServiceHealth, probe_dependency};

/// An olmOCR workspace in an object store or a folder.
pub struct Workspace {
    engine: RecordStore,
    format: WorkspaceFormat,
    timeout: Duration,
}

impl Workspace {
    /// Opens a workspace over a store whose keys are relative to it. A lock not renewed for
    /// `timeout` is abandoned; all nodes must agree on it.
    ///
    /// # Errors
    /// The store does not answer, or ignores the conditions of writes that locks rely on.
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        clock: StoreClock,
        format: WorkspaceFormat,
        timeout: Duration,
    ) -> Result<Self> {
        conditions::check_conditional_writes(store.as_ref(), LEDGER).await?;
        let store = conditions::keep_delete_conditions(store, LEDGER).await?;
        Ok(Self { engine: RecordStore::new(store, clock), format, timeout })
    }

    /// A few words for people: which workspace, without credentials.
    pub fn describe(&self) -> String {
        self.engine.store().describe()
    }

    /// The store of the workspace.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        self.engine.shared_store()
    }

    /// Asks whether the store answers.
    ///
    /// # Errors
    /// Store errors.
    pub async fn probe(&self) -> Result<()> {
        self.engine.exists(INDEX).await.map(drop)
    }

    /// The index and its version; an empty one if there is none.
    ///
    /// # Errors
    /// Store errors; rejected if it is torn or of a form that olmOCR cannot read.
    pub async fn load_index(&self) -> Result<(WorkIndex, Option<Etag>)> {
        match self
            .engine
            .store()
            .get(INDEX, GetOptions { at_most: MAX_INDEX_BYTES, if_match: None })
            .await?
        {
            GetResult::Found(object) => Ok((WorkIndex::decode(&object.bytes)?, Some(object.etag))),
            GetResult::Missing | GetResult::Changed => Ok((WorkIndex::default(), None)),
            GetResult::TooLarge { size } => {
                Err(Error::internal(format!("{INDEX} has {size} bytes, more than any index")))
            }
        }
    }

    /// The groups that have a flag or a result, in either layout.
    async fn finished_groups(&self) -> Result<BTreeSet<String>> {
        let (flags, results) =
            tokio::try_join!(self.engine.list_all(FLAGS), self.engine.list_all(RESULTS))?;
        let keys = flags.iter().chain(&results);
        Ok(keys.filter_map(|entry| finished_group(&entry.key).map(str::to_owned)).collect())
    }

    /// Whether the group has a flag or a result. A result without a flag, as older nodes leave it,
    /// gets one, so that newer nodes see it too.
    async fn is_done(&self, hash: &str) -> Result<bool> {
        let (flag, result) = (flag_key(hash), result_key(hash));
        let (flagged, there) =
            tokio::try_join!(self.engine.exists(&flag), self.engine.exists(&result))?;
        if there && !flagged && self.format.has_flags() {
            self.engine.store().put_if_absent(&flag, Bytes::new()).await?;
        }
        Ok(flagged || there)
    }
}

#[async_trait]
impl ServiceHealth for Workspace {
    async fn check_all(&self) -> Vec<(&'static str, bool)> {
        vec![("store", probe_dependency(self.probe()).await.is_some())]
    }
}
