//! Gathers what `docmill doctor` checks, from implementations that only `app` may name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{App, providers};
use docmill_operations::doctor::process::{self, PlatformLimits};
use docmill_operations::doctor::store::BucketNotification;
use docmill_operations::doctor::{
    DoctorFinding, DoctorReport, clock, database, prices, queue, store,
};
use time::OffsetDateTime;

use docmill_core::config::{OcrProvider, QueueBackend, StoreBackend};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::with_deadline;
use docmill_documents::ocr::{OcrEngine as _, RemoteOcrProvider};
use docmill_documents::sandbox::CpuPool;
use docmill_gate::kinds::KindSet;
use docmill_llm::Llm;
use docmill_queue::sqs::SqsQueue;
use docmill_storage::folder::FolderStore;
use docmill_storage::s3::S3Store;

/// Timeout of each check, whatever the worker's own timeouts are.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

impl App {
    /// Looks at everything a worker needs, each as far as it answers; with `probe` every schema is sent to its
    /// models, which costs money.
    pub async fn run_doctor(&self, around: &PlatformLimits, probe: bool) -> DoctorReport {
        let (database, queue, store, model, readers, inboxes, confinement) = tokio::join!(
            self.check_database(),
            self.check_queue(),
            self.check_store(),
            self.check_provider(),
            self.check_page_readers(),
            self.check_inboxes(),
            self.check_confinement()
        );
        let mut findings = process::check(&self.config, around);
        findings.push(confinement);
        findings.push(self.check_engines());
        findings.push(self.check_schemas());
        findings.push(prices::check(&self.config, OffsetDateTime::now_utc().date()));
        findings.extend([database, queue, store, model, readers, inboxes].into_iter().flatten());
        if probe {
            findings.extend(Box::pin(self.probe_models()).await);
        }
        DoctorReport::from_findings(findings)
    }

    /// Starts a page process and asks it.
    async fn check_confinement(&self) -> DoctorFinding {
        let found = async {
            let processes = self.build_processes(&self.find_engines()?, 1)?;
            processes.start_shared().await
        };
        process::check_confinement(self.config.cpu.confine, found.await)
    }

    /// Asks what reads page images here, and whether its data is there.
    fn check_engines(&self) -> DoctorFinding {
        let found = self.find_engines();
        let found = found.map(|engines| (engines.name(), engines.weights().is_some()));
        process::check_engines(self.config.ocr.engine, found)
    }

    async fn check_database(&self) -> Vec<DoctorFinding> {
        let mut config = self.config.database.clone();
        config.connect_timeout = config.connect_timeout.min(PROBE_TIMEOUT);
        match docmill_ledger::db::Db::connect(&config).await {
            Ok(db) => {
                let findings = database::check(&db).await;
                db.close().await;
                findings
            }
            Err(error) => vec![DoctorFinding::unusable("database", &error)],
        }
    }

    async fn check_queue(&self) -> Vec<DoctorFinding> {
        let config = &self.config.queue;
        if config.backend != QueueBackend::Sqs {
            return match self.open_queue().await {
                Ok(queue) => vec![DoctorFinding::ok("queue", queue.describe())],
                Err(error) => vec![DoctorFinding::unusable("queue", &error)],
            };
        }
        let address = self.queue_address();
        let (facts, time) = tokio::join!(self.sqs_facts(), clock::sample_server(&address));
        let mut findings = match facts {
            Ok(facts) => queue::check(&facts),
            Err(error) => return vec![DoctorFinding::unusable("queue", &error)],
        };
        findings.push(clock_finding("clock.queue", "the queue", time));
        findings
    }

    fn queue_urls(&self) -> Vec<String> {
        self.config.queue.sqs_tiers().into_iter().map(|tier| tier.url).collect()
    }

    /// Where the service is asked, which need not be where its URLs point.
    fn queue_address(&self) -> String {
        let endpoint = &self.config.queue.endpoint;
        if endpoint.is_empty() {
            return self.queue_urls().into_iter().next().unwrap_or_default();
        }
        endpoint.clone()
    }

    async fn sqs_facts(&self) -> Result<queue::QueueFacts> {
        let queue = SqsQueue::connect(&self.config.queue).await?;
        let found = Box::pin(queue.inspect()).await?;
        Ok(queue::QueueFacts {
            receives: found.receives,
            retention: found.retention,
            dead_retention: found.dead_retention,
            denied: found.denied,
        })
    }

    async fn check_store(&self) -> Vec<DoctorFinding> {
        let config = &self.config.store;
        match config.backend {
            StoreBackend::Folder => match FolderStore::open(&config.path).await {
                Ok(_) => vec![DoctorFinding::ok("store", "the folder takes conditional writes")],
                Err(error) => vec![DoctorFinding::unusable("store", &error)],
            },
            StoreBackend::S3 => match S3Store::connect(config).await {
                Ok(store) => self.check_bucket(&store).await,
                Err(error) => vec![DoctorFinding::unusable("store", &error)],
            },
        }
    }

    async fn check_bucket(&self, bucket: &S3Store) -> Vec<DoctorFinding> {
        let config = &self.config.store;
        let address = self.store_address();
        let (missing, rules, time) = tokio::join!(
            bucket.distinguishes_missing(),
            bucket.queue_rules(),
            clock::sample_server(&address),
        );
        let mut findings = vec![DoctorFinding::ok(
            "store",
            "the bucket can be read and written, conditional writes are obeyed",
        )];
        findings.push(match missing {
            Ok(_) => DoctorFinding::ok(
                "store.permissions",
                "what is missing is told from what is denied",
            ),
            Err(error) => DoctorFinding::wrong(
                "store.permissions",
                error.to_string(),
                "allow s3:ListBucket on the bucket: else a missing document looks like a refusal",
            ),
        });
        findings.push(match rules {
            Ok(rules) => {
                let rule = |rule: docmill_storage::s3::BucketQueueRule| BucketNotification {
                    queue: rule.queue,
                    prefix: rule.prefix,
                };
                let rules: Vec<BucketNotification> = rules.into_iter().map(rule).collect();
                store::check(&rules, &self.queue_urls(), &config.bucket, &config.allow)
            }
            Err(error) => {
                let advice = match error.fault {
                    Fault::Denied => "run the doctor with s3:GetBucketNotification",
                    _ => "look yourself: no event of ingestions/ may reach the queue",
                };
                DoctorFinding::warn("store.notification", error.to_string(), advice)
            }
        });
        findings.push(clock_finding("clock.store", "the object store", time));
        findings
    }

    fn store_address(&self) -> String {
        let config = &self.config.store;
        if config.endpoint.is_empty() {
            return format!("https://{}.s3.amazonaws.com/", config.bucket);
        }
        config.endpoint.clone()
    }

    async fn check_provider(&self) -> Vec<DoctorFinding> {
        const CHECK: &str = "provider.llm";
        match self.connect_models().await {
            Ok(models) if models.is_empty() => {
                vec![DoctorFinding::ok(CHECK, "no model is configured")]
            }
            Ok(models) => {
                let answers =
                    |llm: &dyn Llm| format!("{} answers for {}", llm.provider(), llm.model());
                models
                    .iter()
                    .map(|model| DoctorFinding::ok(CHECK, answers(model.llm.as_ref())))
                    .collect()
            }
            Err(error) => vec![DoctorFinding::unusable(CHECK, &error)],
        }
    }

    async fn connect_page_readers(
        &self,
        kinds: &KindSet,
    ) -> anyhow::Result<BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>>> {
        let pool = Arc::new(CpuPool::new(1)?);
        let governor = self.make_governor();
        // Asked whether they are there, which takes no turn.
        providers::connect_providers(&self.config, kinds, &pool, &governor, None).await
    }

    /// Checks the remote OCR providers with requests that they must refuse.
    async fn check_page_readers(&self) -> Vec<DoctorFinding> {
        const CHECK: &str = "provider.ocr";
        let named = match self.load_kinds() {
            Ok(kinds) => self.connect_page_readers(&kinds).await,
            Err(error) => Err(error),
        };
        let expense = self.check_expense().await;
        let named = match named {
            Ok(named) if named.is_empty() && expense.is_none() => {
                return vec![DoctorFinding::ok(CHECK, "pages stay here")];
            }
            Ok(named) => named,
            Err(error) => return vec![DoctorFinding::unusable(CHECK, &error)],
        };
        let asked = named.values().map(async |provider| {
            match with_deadline(PROBE_TIMEOUT, provider.ping(), || {
                Error::transient(format!("{}: no answer", provider.name()))
            })
            .await
            {
                Ok(()) => {
                    DoctorFinding::ok(CHECK, format!("{} accepts the credentials", provider.name()))
                }
                Err(error) => DoctorFinding::unusable(CHECK, &error),
            }
        });
        futures::future::join_all(asked).await.into_iter().chain(expense).collect()
    }

    /// Whether the service that reads fields a second time is there, if one is asked for.
    async fn check_expense(&self) -> Option<DoctorFinding> {
        const CHECK: &str = "provider.expense";
        let (textract, governor) = (&self.config.ocr.textract, self.make_governor());
        let service = Box::pin(providers::connect_expense(textract, &governor)).await?;
        let no_answer = || Error::transient("textract, AnalyzeExpense: no answer");
        Some(match with_deadline(PROBE_TIMEOUT, service.ping(), no_answer).await {
            Ok(()) => {
                DoctorFinding::ok(CHECK, "textract accepts the credentials for AnalyzeExpense")
            }
            Err(error) => DoctorFinding::unusable(CHECK, &error),
        })
    }
}

/// A server that does not report its time is not wrong for that.
fn clock_finding(
    check: &'static str,
    whose: &str,
    reading: Result<clock::ClockSample>,
) -> DoctorFinding {
    match reading {
        Ok(reading) => clock::check(check, whose, reading),
        Err(error) => DoctorFinding::ok(check, format!("the clock of {whose} is unknown: {error}")),
    }
}
