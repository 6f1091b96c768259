//! Gathers what `docmill doctor` looks at, from implementations that only `app` may name.

use std::time::Duration;

use super::{App, providers};
use crate::config::{QueueBackend, StoreBackend};
use crate::fault::{Error, Fault, Result};
use crate::llm::Llm;
use crate::ops::doctor::process::{self, Surroundings};
use crate::ops::doctor::store::Notification;
use crate::ops::doctor::{Finding, Report, clock, database, queue, store};
use crate::queue::sqs::SqsQueue;
use crate::retry::with_deadline;
use crate::store::folder::FolderStore;
use crate::store::s3::S3Store;

/// A server that does not answer is reported after this, whatever the worker's own patience is.
const PATIENCE: Duration = Duration::from_secs(10);

impl App {
    /// Looks at everything a worker needs, each as far as it answers.
    pub async fn doctor(&self, around: &Surroundings) -> Report {
        let (database, queue, store, model, readers) = tokio::join!(
            self.look_at_database(),
            self.look_at_queue(),
            self.look_at_store(),
            self.look_at_provider(),
            self.look_at_page_readers()
        );
        let mut findings = process::check(&self.config, around);
        findings.extend([database, queue, store, model, readers].into_iter().flatten());
        Report::of(findings)
    }

    async fn look_at_database(&self) -> Vec<Finding> {
        let mut config = self.config.database.clone();
        config.connect_timeout = config.connect_timeout.min(PATIENCE);
        match crate::db::Db::connect(&config).await {
            Ok(db) => {
                let findings = database::check(&db, db.leaves_machine()).await;
                db.close().await;
                findings
            }
            Err(error) => vec![Finding::unusable("database", &error)],
        }
    }

    async fn look_at_queue(&self) -> Vec<Finding> {
        let config = &self.config.queue;
        if config.backend != QueueBackend::Sqs {
            return match self.queue().await {
                Ok(queue) => vec![Finding::ok("queue", queue.describe())],
                Err(error) => vec![Finding::unusable("queue", &error)],
            };
        }
        let address = self.address_of_queue();
        let (facts, time) = tokio::join!(self.sqs_facts(), clock::of_server(&address));
        let mut findings = match facts {
            Ok(facts) => queue::check(&facts),
            Err(error) => return vec![Finding::unusable("queue", &error)],
        };
        findings.push(told("clock.queue", "the queue", time));
        findings
    }

    fn queue_urls(&self) -> Vec<String> {
        self.config.queue.sqs_tiers().into_iter().map(|tier| tier.url).collect()
    }

    /// Where the service is asked, which need not be where its URLs point.
    fn address_of_queue(&self) -> String {
        let endpoint = &self.config.queue.endpoint;
        if endpoint.is_empty() {
            return self.queue_urls().into_iter().next().unwrap_or_default();
        }
        endpoint.clone()
    }

    async fn sqs_facts(&self) -> Result<queue::Facts> {
        let queue = SqsQueue::connect(&self.config.queue).await?;
        let found = Box::pin(queue.inspect()).await?;
        Ok(queue::Facts {
            receives: found.receives,
            retention: found.retention,
            dead_retention: found.dead_retention,
            denied: found.denied,
        })
    }

    async fn look_at_store(&self) -> Vec<Finding> {
        let config = &self.config.store;
        match config.backend {
            StoreBackend::Folder => match FolderStore::open(&config.path).await {
                Ok(_) => vec![Finding::ok("store", "the folder takes conditional writes")],
                Err(error) => vec![Finding::unusable("store", &error)],
            },
            StoreBackend::S3 => match S3Store::connect(config).await {
                Ok(store) => self.look_at_bucket(&store).await,
                Err(error) => vec![Finding::unusable("store", &error)],
            },
        }
    }

    async fn look_at_bucket(&self, bucket: &S3Store) -> Vec<Finding> {
        let config = &self.config.store;
        let address = self.address_of_store();
        let (missing, rules, time) = tokio::join!(
            bucket.tells_what_is_missing(),
            bucket.queue_rules(),
            clock::of_server(&address),
        );
        let mut findings = vec![Finding::ok(
            "store",
            "the bucket can be read and written, conditional writes are obeyed",
        )];
        findings.push(match missing {
            Ok(_) => {
                Finding::ok("store.permissions", "what is missing is told from what is denied")
            }
            Err(error) => Finding::wrong(
                "store.permissions",
                error.to_string(),
                "allow s3:ListBucket on the bucket: else a missing document looks like a refusal",
            ),
        });
        findings.push(match rules {
            Ok(rules) => {
                let rule = |rule: crate::store::s3::QueueRule| Notification {
                    queue: rule.queue,
                    prefix: rule.prefix,
                };
                let rules: Vec<Notification> = rules.into_iter().map(rule).collect();
                let allowed = config.allowed();
                store::check(&rules, &self.queue_urls(), &config.bucket, &allowed)
            }
            Err(error) => {
                let advice = match error.fault {
                    Fault::Denied => "run the doctor with s3:GetBucketNotification",
                    _ => "look yourself: no event of ingestions/ may reach the queue",
                };
                Finding::warn("store.notification", error.to_string(), advice)
            }
        });
        findings.push(told("clock.store", "the object store", time));
        findings
    }

    fn address_of_store(&self) -> String {
        let config = &self.config.store;
        if config.endpoint.is_empty() {
            return format!("https://{}.s3.amazonaws.com/", config.bucket);
        }
        config.endpoint.clone()
    }

    async fn look_at_provider(&self) -> Vec<Finding> {
        const CHECK: &str = "provider.llm";
        match self.models().await {
            Ok(models) if models.is_empty() => vec![Finding::ok(CHECK, "no model is configured")],
            Ok(models) => {
                let answers =
                    |llm: &dyn Llm| format!("{} answers for {}", llm.provider(), llm.model());
                models.iter().map(|rung| Finding::ok(CHECK, answers(rung.llm.as_ref()))).collect()
            }
            Err(error) => vec![Finding::unusable(CHECK, &error)],
        }
    }

    /// Those that read page images elsewhere, each asked for what it cannot do.
    async fn look_at_page_readers(&self) -> Vec<Finding> {
        const CHECK: &str = "provider.ocr";
        let named = match self.kinds() {
            Ok(kinds) => providers::named(&self.config, &kinds).await,
            Err(error) => Err(error),
        };
        let named = match named {
            Ok(named) if named.is_empty() => return vec![Finding::ok(CHECK, "pages stay here")],
            Ok(named) => named,
            Err(error) => return vec![Finding::unusable(CHECK, &error)],
        };
        let asked = named.values().map(async |provider| {
            let silent = || Error::transient(format!("{}: silent", provider.name()));
            match with_deadline(PATIENCE, provider.ping(), silent).await {
                Ok(()) => Finding::ok(CHECK, format!("{} takes our credentials", provider.name())),
                Err(error) => Finding::unusable(CHECK, &error),
            }
        });
        futures::future::join_all(asked).await
    }
}

/// A server that does not tell its time is not wrong for that.
fn told(check: &'static str, whose: &str, reading: Result<clock::Reading>) -> Finding {
    match reading {
        Ok(reading) => clock::check(check, whose, reading),
        Err(error) => Finding::ok(check, format!("{whose} does not tell its time: {error}")),
    }
}
