//! The work on a claimed ingestion: the pipeline, or a script in simulations.
//!
//! Not promised: that the work ends by itself. The runner limits its time, and may drop it.

use async_trait::async_trait;

use docmill_core::model::{ClaimedIngestion, LocalModelReport, ProviderLane};
use docmill_ledger::{IngestionResult, PauseTerms};
use docmill_pipeline::{self, ClaimHandle, PipelineContext, StepError};
use docmill_storage::ObjectStore;

/// The work on claimed ingestions, and its properties that the worker needs.
#[async_trait]
pub trait IngestionWork: Send + Sync {
    /// Works on one ingestion, up to what is to be recorded. Dropped at any await.
    ///
    /// # Errors
    /// Why it could not be done.
    async fn run_attempt(
        &self,
        claimed: &ClaimedIngestion,
        claim: &ClaimHandle,
    ) -> Result<IngestionResult, StepError>;

    /// The store that originals are fetched from.
    fn documents(&self) -> &dyn ObjectStore;

    /// A provider that every document needs and that is known to be down.
    fn find_outage(&self) -> Option<String>;

    /// The scopes of operators' pauses that apply to this worker.
    fn pause_terms(&self, default_kind: &str) -> PauseTerms;

    /// How its calls to providers go.
    fn list_lanes(&self) -> Vec<ProviderLane>;

    /// Refreshes gauges that change with time alone. Called every few seconds.
    fn refresh_gauges(&self);

    /// The models of its machine; `None`: it schedules none.
    fn report_local_models(&self) -> Option<LocalModelReport>;
}

#[async_trait]
impl IngestionWork for PipelineContext {
    async fn run_attempt(
        &self,
        claimed: &ClaimedIngestion,
        claim: &ClaimHandle,
    ) -> Result<IngestionResult, StepError> {
        let output = docmill_pipeline::run_pipeline(self, claimed, claim).await;
        output.map(|output| output.record).map_err(|failed| failed.error)
    }

    fn documents(&self) -> &dyn ObjectStore {
        self.documents.as_ref()
    }

    fn find_outage(&self) -> Option<String> {
        self.services.find_outage()
    }

    fn pause_terms(&self, default_kind: &str) -> PauseTerms {
        self.services.pause_terms(default_kind)
    }

    fn list_lanes(&self) -> Vec<ProviderLane> {
        self.services.governor.list_lanes()
    }

    fn refresh_gauges(&self) {
        self.services.costs.end_spent_day();
    }

    fn report_local_models(&self) -> Option<LocalModelReport> {
        self.services.scheduler.as_ref().map(|scheduler| scheduler.report())
    }
}
