//! The scripted job source of the runner's own tests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use docmill_pipeline::shutdown::Shutdown;
use docmill_worker::runner::{IntakeGate, Runner, RunnerOptions};

use super::{JobSourceSite, SiteTerms, SiteWorker, WorkPlan};
use crate::runner::{Does, Script};

/// A script that several runners follow.
pub(crate) struct ScriptedSite(Arc<Script>);

#[async_trait(?Send)]
impl JobSourceSite for ScriptedSite {
    async fn open() -> Self {
        Self(Arc::new(Script::shared(Duration::from_secs(1))))
    }

    fn plan(&self) -> &WorkPlan {
        &self.0.plan
    }

    async fn add(&self, job: &'static str) {
        self.0.push(Does::AsPlanned(job));
    }

    async fn offer(&self, job: &'static str) {
        self.add(job).await;
    }

    async fn start(&self, terms: SiteTerms) -> SiteWorker {
        let drain_grace = Duration::from_secs(5);
        let options = RunnerOptions {
            slots: terms.slots,
            drain: terms.drain,
            supplying: Duration::ZERO,
            drain_grace,
        };
        let gate = Arc::new(IntakeGate::new(Duration::from_secs(1), Duration::from_secs(60)));
        let runner = Runner::new(Arc::clone(&self.0), options, gate);
        let (monitor, stop) = (runner.monitor(), Shutdown::default());
        let run = runner.run(stop.clone());
        SiteWorker {
            stop,
            monitor,
            task: tokio::spawn(async move {
                run.await.unwrap();
            }),
        }
    }

    async fn take_claim(&self, job: &'static str) {
        self.0.take_claim(job);
    }

    async fn is_claimed(&self, job: &'static str) -> bool {
        self.0.is_claimed(job)
    }

    async fn is_complete(&self, job: &'static str) -> bool {
        self.0.is_complete(job)
    }
}
