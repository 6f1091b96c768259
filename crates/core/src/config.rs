//! The configuration: defaults, then a TOML file, then `DOCMILL__SECTION__KEY` from the
//! environment. One struct per section; every key has its default here and its unit in its value
//! (`"20s"`, `"50MiB"`).
//!
//! Loading does no I/O beyond reading the file and depends on no other module. [`Config::check`]
//! lists all problems at once, by key, before anything connects.

mod address;
mod bucket;
mod claim;
mod cost;
mod cpu;
mod daily_hours;
mod database;
mod einvoice;
mod hooks;
mod inbox;
mod janitor;
mod kinds;
mod layers;
mod limits;
mod llm;
mod llm_batch;
mod llm_request;
mod locations;
mod ocr;
mod ocr_azure;
mod ocr_providers;
mod ocr_vision;
mod packets;
mod parties;
mod queue;
mod retry;
mod review;
mod scheduler;
mod secret;
mod silent_errors;
mod store;
mod telemetry;
mod throttle;
mod tiers;
mod units;
mod web;
mod web_proxy;
mod webhooks;
mod worker;

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use address::strip_credentials;
pub use bucket::BucketConfig;
pub use claim::ClaimConfig;
pub use cost::{CostConfig, ModelPrice};
pub use cpu::{ConfinementMode, CpuConfig, ProcessSharing};
pub use daily_hours::DailyHours;
pub use database::DatabaseConfig;
pub use einvoice::EinvoiceConfig;
pub use hooks::{HookConfig, HookFailure, HookMoment, HooksConfig};
pub use inbox::{ImapAuth, ImapSecurity, InboxConfig, InboxMark, InboxProtocol, InboxSourceConfig};
pub use janitor::JanitorConfig;
pub use kinds::KindsConfig;
pub use limits::LimitsConfig;
pub use llm::{
    BedrockFamily, EscalationModelConfig, LlmAuth, LlmConfig, LlmProvider, LlmServer, PromptCache,
    ReplyNumbers, StructuredOutput,
};
pub use llm_batch::{BatchConfig, BatchWindow, BedrockBatchConfig};
pub use llm_request::{AutoOr, ExtraBody, ExtraHeaders, ModelEffort};
pub use locations::{AllowedLocation, AllowedPrefix};
pub use ocr::{OcrConfig, OcrEngineChoice};
pub use ocr_azure::DocumentIntelligenceConfig;
pub use ocr_providers::{DocumentAiConfig, OcrProvider, TextractConfig};
pub use ocr_vision::{VisionConfig, VisionRecipe};
pub use packets::{PacketMode, PacketsConfig};
pub use parties::PartiesConfig;
pub use queue::{AcknowledgeMode, ForeignItems, QueueBackend, QueueConfig};
pub use retry::RetryConfig;
pub use review::{OTHER_CURRENCIES, ReviewConfig};
pub use scheduler::{DeviceSource, SchedulerConfig};
pub use secret::SecretSource;
pub use silent_errors::SilentErrorsConfig;
pub use store::{DocumentPassword, StoreBackend, StoreConfig};
pub use telemetry::{QueueDestination, TelemetryConfig};
pub use throttle::ThrottleConfig;
pub use tiers::TierConfig;
pub use units::{ByteSize, SecretString};
pub use web::{WebConfig, WebRole, WebToken};
pub use web_proxy::{PROXY_SECRET_HEADER, ProxyGroup, ProxySignIn};
pub use webhooks::{DeliveredForm, NetworkRange, WebhookEvent, WebhookTarget, WebhooksConfig};
pub use worker::{LogFormat, WorkerConfig};

/// Everything that can be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[database]`: the Postgres server.
    pub database: DatabaseConfig,
    /// `[queue]`: where messages come from.
    pub queue: QueueConfig,
    /// `[store]`: where documents and artefacts are stored.
    pub store: StoreConfig,
    /// `[worker]`: slots, ports and logging of the worker process.
    pub worker: WorkerConfig,
    /// `[claim]`: how a worker owns an ingestion, and for how long.
    pub claim: ClaimConfig,
    /// `[retry]`: what follows a failed attempt.
    pub retry: RetryConfig,
    /// Caps on what one document may cost.
    pub limits: LimitsConfig,
    /// The child processes that read documents.
    pub cpu: CpuConfig,
    /// `[ocr]`: how page images are read.
    pub ocr: OcrConfig,
    /// `[throttle]`: how providers are called.
    pub throttle: ThrottleConfig,
    /// `[llm]`: which language models are called, and how.
    pub llm: LlmConfig,
    /// Providers' prices, and budgets.
    pub cost: CostConfig,
    /// `[kinds]`: where kinds of documents are defined.
    pub kinds: KindsConfig,
    /// `[einvoice]`: how e-invoices are checked.
    pub einvoice: EinvoiceConfig,
    /// `[parties]`: companies that documents are addressed to.
    pub parties: PartiesConfig,
    /// `[packets]`: when files of several documents are cut.
    pub packets: PacketsConfig,
    /// `[janitor]`: when and how maintenance runs.
    pub janitor: JanitorConfig,
    /// `[telemetry]`: where traces are sent.
    pub telemetry: TelemetryConfig,
    /// A bucket that is worked on without a database.
    pub bucket: BucketConfig,
    /// `[web]`: where the pages are, and who may see them.
    pub web: WebConfig,
    /// `[webhooks]`: targets of outcomes and decisions.
    pub webhooks: WebhooksConfig,
    /// `[hooks]`: services that are asked before and after a document is read.
    pub hooks: HooksConfig,
    /// `[inbox]`: mailboxes and folders that documents are taken from.
    pub inbox: InboxConfig,
    /// `[review]`: what holds for decisions of reviewers.
    pub review: ReviewConfig,
    /// `[silent_errors]`: the bound on errors that nobody was asked about.
    pub silent_errors: SilentErrorsConfig,
}

/// The parts of the configuration that a command needs; the others may be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigNeeds {
    /// Whether `database.url` must be set.
    pub database: bool,
    /// Whether the queue's address must be set.
    pub queue: bool,
    /// Whether the store's bucket or folder must be set.
    pub store: bool,
}

impl ConfigNeeds {
    /// What `docmill worker` needs.
    pub const WORKER: Self = Self { database: true, queue: true, store: true };
}

/// Everything that is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration has {} problem{}:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
pub struct InvalidConfig(pub Vec<String>);

impl Config {
    /// Loads defaults, the file (if given) and the environment, without checking ranges and
    /// relations.
    ///
    /// # Errors
    /// A file that cannot be read, or parsed, by position; a key that does not exist, by name; a
    /// value of the wrong type, by key. Never with the value.
    pub fn load(file: Option<&Path>) -> Result<Self, InvalidConfig> {
        let layers::LoadedConfig { config, problems } =
            layers::load_layers(file, environment_pairs());
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(InvalidConfig(problem_messages(problems)))
        }
    }

    /// Reads the text of a configuration file over the defaults, without the environment and without
    /// checking ranges and relations.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse_text(text: &str) -> Result<Self, InvalidConfig> {
        let file = Some((Path::new("configuration"), text));
        let layers::LoadedConfig { config, problems } = layers::merge_layers(file, Vec::new());
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(InvalidConfig(problem_messages(problems)))
        }
    }

    /// [`Config::load`] and [`Config::check`] in one: what is misspelt and what is missing or out
    /// of range are reported together.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load_for(file: Option<&Path>, needs: ConfigNeeds) -> Result<Self, InvalidConfig> {
        let layers::LoadedConfig { config, problems } =
            layers::load_layers(file, environment_pairs());
        let broken: Vec<String> = problems.iter().map(|(section, _)| section.clone()).collect();
        let mut all = problem_messages(problems);
        // The file was not read, so its settings are unknown.
        if broken.iter().any(String::is_empty) {
            return Err(InvalidConfig(all));
        }
        if let Err(InvalidConfig(more)) = config.check(needs) {
            // A section that could not be read has its defaults: what they lack says nothing.
            all.extend(more.into_iter().filter(|problem| {
                !broken.iter().any(|section| problem.starts_with(&format!("{section}.")))
            }));
        }
        if all.is_empty() { Ok(config) } else { Err(InvalidConfig(all)) }
    }

    /// Lists everything that is wrong, by key.
    ///
    /// # Errors
    /// At least one problem.
    pub fn check(&self, needs: ConfigNeeds) -> Result<(), InvalidConfig> {
        let mut problems = Vec::new();
        self.database.collect_problems(needs.database, &mut problems);
        self.queue.collect_problems(needs.queue, &mut problems);
        self.store.collect_problems(needs.store, &mut problems);
        self.worker.collect_problems(&mut problems);
        self.claim.collect_problems(&mut problems);
        self.retry.collect_problems(&mut problems);
        self.limits.collect_problems(&mut problems);
        self.packets.collect_problems(&mut problems);
        self.cpu.collect_problems(&self.limits, &mut problems);
        self.ocr.collect_problems(&mut problems);
        self.throttle.collect_problems(&mut problems);
        self.llm.collect_problems(&mut problems);
        self.cost.collect_problems(&mut problems);
        self.parties.collect_problems(&mut problems);
        self.janitor.collect_problems(&mut problems);
        self.telemetry.collect_problems(&mut problems);
        self.bucket.collect_problems(&mut problems);
        self.web.collect_problems(&mut problems);
        self.webhooks.collect_problems(&mut problems);
        self.hooks.collect_problems(self.webhooks.allow_http, &mut problems);
        self.inbox.collect_problems(&mut problems);
        self.review.collect_problems(&mut problems);
        self.silent_errors.collect_problems(&mut problems);
        self.check_relations(&mut problems);
        self.check_deliveries(&mut problems);
        if problems.is_empty() { Ok(()) } else { Err(InvalidConfig(problems)) }
    }

    /// The settings of every model that reads documents, the first one first.
    fn list_models(&self) -> impl Iterator<Item = LlmConfig> {
        let chain = self.llm.chain.iter().map(|model| model.inherit_from(&self.llm));
        std::iter::once(self.llm.clone()).chain(chain)
    }

    /// A budget of a day needs at least one price.
    fn check_budgets(&self, problems: &mut Vec<String>) {
        let mut models = self.list_models();
        let has_price = !self.cost.price.is_empty()
            || models.any(|llm| self.cost.has_price(llm.provider.name(), &llm.model));
        for key in self.cost.daily_budgets().iter().filter(|_| !has_price) {
            problems.push(format!(
                "cost.{key} needs prices: without [[cost.price]] nothing is ever spent"
            ));
        }
    }

    /// The models that may cost money and have no price on this day, as `provider model`: their
    /// cost is unknown, so no budget bounds it.
    pub fn unpriced_models(&self, day: time::Date) -> Vec<String> {
        let unpriced = self.list_models().filter(|llm| {
            let price = self.cost.price_on(llm.provider.name(), &llm.model, day);
            llm.may_be_charged() && price.is_none()
        });
        unpriced.map(|llm| format!("{} {}", llm.provider.name(), llm.model)).collect()
    }

    /// Settings that depend on each other across sections.
    fn check_relations(&self, problems: &mut Vec<String>) {
        self.check_budgets(problems);
        let signs = self.store.backend == StoreBackend::S3;
        for (at, _) in
            self.hooks.services.iter().enumerate().filter(|(_, it)| it.include_original && !signs)
        {
            problems.push(format!(
                "hooks.services[{at}].include_original needs store.backend = \"s3\""
            ));
        }
        let longest_poll = self.queue.wait + std::time::Duration::from_secs(5);
        if self.worker.drain < longest_poll {
            problems.push(format!(
                "worker.drain ({}) must be at least queue.wait + 5s ({}), or the last poll \
                 outlives the drain and its messages are lost for a visibility timeout",
                humantime::format_duration(self.worker.drain),
                humantime::format_duration(longest_poll),
            ));
        }
    }

    /// Results in a store must not be taken for new documents.
    fn check_deliveries(&self, problems: &mut Vec<String>) {
        for (at, target) in self.webhooks.targets.iter().enumerate() {
            let Some((bucket, prefix)) = target.bucket_and_prefix() else { continue };
            let key = format!("webhooks.targets[{at}].url");
            if bucket.is_some() && self.store.backend != StoreBackend::S3 {
                problems.push(format!("{key}: s3:// needs store.backend = \"s3\""));
            }
            let bucket = bucket.unwrap_or(&self.store.bucket);
            let is_taken = self.store.allow.iter().any(|place: &AllowedPrefix| {
                let own = place.literal_prefix();
                place.bucket == bucket && (prefix.starts_with(own) || own.starts_with(prefix))
            });
            if is_taken {
                problems.push(format!(
                    "{key} lies in a place of store.allow: its files would come back as documents"
                ));
            }
        }
    }

    /// The retry rules, as `queue.acknowledge` leaves them: a message that is deleted before the
    /// work allows one counted attempt.
    pub fn retry_terms(&self) -> RetryConfig {
        match self.queue.acknowledge {
            AcknowledgeMode::After => self.retry.clone(),
            AcknowledgeMode::Early => self.retry.clone().with_attempts(1),
        }
    }

    /// How often leases and visibilities are renewed: a third of the shorter.
    pub fn heartbeat_interval(&self) -> std::time::Duration {
        self.claim.lease.min(self.queue.visibility) / 3
    }
}

fn environment_pairs() -> Vec<(String, String)> {
    // Ours come last and win.
    let mut all = bucket::alias_variables(readable_variables());
    all.extend(readable_variables().filter(|(name, _)| name.starts_with("DOCMILL__")));
    all
}

/// Variables that are not UTF-8 cannot be docmill's settings; `std::env::vars` would panic over
/// them and quote them.
fn readable_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    })
}

fn problem_messages(problems: Vec<(String, String)>) -> Vec<String> {
    problems.into_iter().map(|(_, problem)| problem).collect()
}
