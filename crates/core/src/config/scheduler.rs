//! `[llm.scheduler]`: who may use this machine's memory for models, and in which order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the memory for models is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceSource {
    /// The graphics cards that `nvidia-smi` lists; without that program those of `rocm-smi`; without
    /// either, main memory.
    Auto,
    /// The graphics cards that `nvidia-smi` lists.
    Nvidia,
    /// The graphics cards that AMD's `rocm-smi` lists.
    Amd,
    /// Main memory, from `/proc/meminfo`.
    Memory,
}

/// The memory scheduler for models that run on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerConfig {
    /// Models that a server on this machine runs, besides those in `budgets_mib`. Calls to any
    /// other model are not scheduled.
    pub models: Vec<String>,
    /// Memory that a model needs on one device while it is loaded, in MiB. A model in `models` only
    /// runs alone on its device.
    pub budgets_mib: BTreeMap<String, u64>,
    /// How the memory of devices is read.
    pub devices: DeviceSource,
    /// Whether all devices count as one, with the memory of all: for servers that split each model
    /// over all cards.
    pub join_devices: bool,
    /// Left free on each device, in MiB.
    pub margin_mib: u64,
    /// Calls to one model at the same time, of one process.
    pub calls_at_once: u32,
    /// How long a model keeps its memory while others wait for it: no call is let in that would
    /// probably end later. A single call that takes longer is let in all the same.
    #[serde(with = "humantime_serde")]
    pub quantum: Duration,
    /// A model that has waited for so long goes before every other.
    #[serde(with = "humantime_serde")]
    pub overdue_after: Duration,
    /// How long a job waits for its model with its slot; then it is put off.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// Calls that may wait for one model; one more is put off at once.
    pub max_queue_depth: usize,
    /// Folder in which workers of this machine share their holdings; empty: a folder
    /// `docmill-scheduler` among the system's temporary files.
    pub path: PathBuf,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            budgets_mib: BTreeMap::new(),
            devices: DeviceSource::Auto,
            join_devices: false,
            margin_mib: 512,
            calls_at_once: 1,
            quantum: Duration::from_secs(30),
            overdue_after: Duration::from_secs(120),
            longest_wait: Duration::from_secs(300),
            max_queue_depth: 500,
            path: PathBuf::new(),
        }
    }
}

impl SchedulerConfig {
    /// Whether a model is scheduled at all.
    pub fn is_local(&self, model: &str) -> bool {
        self.budgets_mib.contains_key(model) || self.models.iter().any(|name| name == model)
    }

    /// Every scheduled model and its budget, each once.
    pub fn local_models(&self) -> BTreeMap<String, Option<u64>> {
        let mut all: BTreeMap<String, Option<u64>> =
            self.models.iter().map(|name| (name.clone(), None)).collect();
        all.extend(self.budgets_mib.iter().map(|(name, mib)| (name.clone(), Some(*mib))));
        all
    }

    /// The folder in which workers share their holdings.
    pub fn shared_folder(&self) -> PathBuf {
        if self.path.as_os_str().is_empty() {
            return std::env::temp_dir().join("docmill-scheduler");
        }
        self.path.clone()
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if let Some(name) =
            self.budgets_mib.iter().find_map(|(name, mib)| (*mib == 0).then_some(name))
        {
            problems.push(format!(
                "llm.scheduler.budgets_mib.{name} must be above 0; to run it alone on its device, \
                 name it in llm.scheduler.models instead"
            ));
        }
        if self.calls_at_once == 0 || self.max_queue_depth == 0 {
            problems
                .push("llm.scheduler.calls_at_once and max_queue_depth must be above 0".to_owned());
        }
        if self.quantum.is_zero() {
            problems.push("llm.scheduler.quantum must be above 0".to_owned());
        }
        if self.longest_wait < self.overdue_after + self.quantum {
            problems.push(
                "llm.scheduler.longest_wait must be at least overdue_after + quantum, or jobs of a \
                 seldom used model are put off before its turn comes"
                    .to_owned(),
            );
        }
    }
}
