//! Postgres with a queue: jobs are ingestions, their work is the call of the model.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;
use docmill_llm::{Llm, ModelReply, Prompt};
use docmill_testkit::openai::{Answer, Script};

use super::{JobSourceSite, SiteTerms, SiteWorker, WorkPlan};
use crate::support::documents;
use crate::support::world::{Running, World};

/// A world of its own, and the ingestion of each job.
pub(crate) struct QueueSite {
    world: World,
    plan: Arc<WorkPlan>,
    ids: Mutex<BTreeMap<&'static str, IngestionId>>,
}

impl QueueSite {
    fn id(&self, job: &str) -> IngestionId {
        self.ids.lock().unwrap()[job]
    }
}

/// A model that does what is planned for the invoice's number before it answers.
struct PlannedLlm {
    plan: Arc<WorkPlan>,
    inner: Arc<dyn Llm>,
}

#[async_trait]
impl Llm for PlannedLlm {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        self.plan.perform(|job| prompt.user.contains(job)).await?;
        self.inner.complete(prompt).await
    }
}

#[async_trait(?Send)]
impl JobSourceSite for QueueSite {
    async fn open() -> Self {
        let world = World::with_model(Script::always(Answer::Read)).await;
        Self { world, plan: Arc::default(), ids: Mutex::default() }
    }

    fn plan(&self) -> &WorkPlan {
        &self.plan
    }

    async fn add(&self, job: &'static str) {
        let id = self.world.submit("a.pdf", documents::invoice(job)).await;
        self.ids.lock().unwrap().insert(job, id);
    }

    async fn offer(&self, job: &'static str) {
        self.world.send(self.id(job).to_string()).await;
    }

    async fn start(&self, terms: SiteTerms) -> SiteWorker {
        let inner = self.world.model().await.unwrap();
        let llm = Arc::new(PlannedLlm { plan: Arc::clone(&self.plan), inner });
        let change = |config: &mut docmill_core::config::Config| {
            config.worker.slots = u32::try_from(terms.slots).unwrap();
            config.worker.drain = terms.drain;
            if terms.quick_renewals {
                config.claim.lease = Duration::from_secs(6);
            }
        };
        let ledger = self.world.ledger().await;
        let worker = self.world.worker_on_with(ledger, Some(llm), change).await;
        let Running { stop, task, monitor } = worker;
        let task = tokio::spawn(async move {
            task.await.unwrap().unwrap();
        });
        SiteWorker { stop, monitor, task }
    }

    async fn take_claim(&self, job: &'static str) {
        let id = self.id(job);
        let sql = format!(
            "UPDATE docmill.ingestion SET claim_token = gen_random_uuid(), claims = claims + 1,
             lease_expires_at = now() + interval '1 hour' WHERE id = '{id}'"
        );
        self.world.execute(&sql).await;
    }

    async fn is_claimed(&self, job: &'static str) -> bool {
        self.world.column(self.id(job), "claim_token").await.is_some()
    }

    async fn is_complete(&self, job: &'static str) -> bool {
        self.world.column(self.id(job), "status").await.as_deref() == Some("completed")
    }

    async fn pass(&self) {
        self.world.pass(Duration::from_secs(3600)).await;
    }
}
