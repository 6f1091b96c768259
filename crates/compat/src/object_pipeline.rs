//! The pipeline over an object store: for buckets and workspaces.
//!
//! The steps of a worker with Postgres, over a ledger and artefacts in the bucket or workspace
//! itself. Transcript, finished pages and model replies are stored before they are used and reused
//! by the next attempt. The day's spending of all workers is summed. The caller owns the document's
//! lock, and passes a claim for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::object_ledger::{KEPT_FOR, ObjectLedger};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, DocumentRef, IngestionId};
use docmill_operations::process::{ProcessReport, process_claimed};
use docmill_pipeline::{ClaimHandle, PipelineContext, PipelineServices};
use docmill_storage::ObjectStore;
use docmill_storage::memory::MemoryStore;

/// The original's key in its temporary store.
const KEY: &str = "document";

/// The pipeline of a bucket or workspace.
pub struct ObjectPipeline {
    services: Arc<PipelineServices>,
    ledger: Arc<ObjectLedger>,
}

impl ObjectPipeline {
    /// Over the store of a bucket or workspace, whose keys begin where that begins.
    pub fn new(services: PipelineServices, store: Arc<dyn ObjectStore>) -> Self {
        Self { services: Arc::new(services), ledger: ObjectLedger::new(store) }
    }

    /// The services that the pipeline works with.
    pub fn services(&self) -> &PipelineServices {
        &self.services
    }

    /// Takes a loaded document through every step, under `claim`; `name` identifies it in logs and
    /// reports.
    ///
    /// # Errors
    /// Faults other than the document's, or a lost claim: then nothing more was written.
    pub async fn process_document(
        &self,
        document: DocumentId,
        name: &Path,
        bytes: &Bytes,
        claim: &ClaimHandle,
    ) -> Result<ProcessReport> {
        let documents = Arc::new(MemoryStore::default());
        documents.put(KEY, bytes.clone(), &BTreeMap::new()).await?;
        let id = ingestion_of(document);
        let original = DocumentRef {
            id: document,
            file_path: KEY.to_owned(),
            original_name: None,
            etag: None,
            depth: 0,
            pages: None,
        };
        // A worker suspended for longer than its lock must not take the document from its new
        // owner.
        claim.ensure_live().await?;
        let (claimed, attempt) = self.ledger.begin_attempt(id, original).await?;
        let claim = claim.for_ingestion(id, claimed.token);
        let context = PipelineContext {
            documents,
            artefacts: self.ledger.artefacts(),
            ledger: Arc::new(attempt),
            services: Arc::clone(&self.services),
        };
        process_claimed(&context, &claimed, &claim, name, bytes).await
    }

    /// Removes abandoned artefacts, in the background.
    pub fn start_removal(&self) {
        let ledger = Arc::clone(&self.ledger);
        tokio::spawn(async move {
            let days = KEPT_FOR.as_secs() / 86_400;
            match ledger.remove_abandoned().await {
                Ok(0) => {}
                Ok(documents) => {
                    tracing::info!(documents, "removed artefacts older than {days} days");
                }
                Err(error) => {
                    tracing::warn!(error = %error, "old artefacts were not removed: {error}");
                }
            }
        });
    }
}

/// The id of the one ingestion of a document of a bucket or workspace, under which its artefacts
/// lie.
pub fn ingestion_of(document: DocumentId) -> IngestionId {
    IngestionId::first_for_document(document)
}
