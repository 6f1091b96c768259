//! Models that share the memory of a worker's machine, for the overview of the whole service.

use serde::{Deserialize, Serialize};

/// The location of a local model, as far as its worker has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalModelState {
    /// Nobody asks for it, and it is probably not loaded.
    Absent,
    /// Calls wait, and it holds no memory.
    Waiting,
    /// It has its turn, and no call was answered since.
    Loading,
    /// It has its turn, and answers.
    Loaded,
    /// Without a turn, and probably still loaded.
    Idle,
}

/// A memory that models are loaded into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalDevice {
    /// The same name in every process of the machine.
    pub name: String,
    /// All of its memory.
    pub total_mib: u64,
    /// Free memory when it was measured.
    pub free_mib: u64,
    /// Memory held by the models of all workers of the machine.
    pub held_mib: u64,
}

/// How the calls of one worker to one local model go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalModelCalls {
    /// Name of the model.
    pub model: String,
    /// The memory it needs; `None`: not known, it runs alone.
    pub needs_mib: Option<u64>,
    /// Where it is.
    pub state: LocalModelState,
    /// The device that it has, or on which it is idle.
    pub device: Option<String>,
    /// Calls that are under way.
    pub running: u32,
    /// Calls that wait for its turn.
    pub waiting: u32,
    /// Seconds that the oldest of these has waited.
    pub oldest_s: Option<f64>,
}

/// One worker's view of the local models and the memory that they share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalModelReport {
    /// Tells machines apart, also from within containers; `None` where nothing does. Another one after
    /// a restart of the machine.
    pub machine: Option<String>,
    /// Seconds since the devices were read; they are not read while no call waits or runs.
    pub read_s: f64,
    /// The devices of the machine.
    pub devices: Vec<LocalDevice>,
    /// The models that this worker may call.
    pub models: Vec<LocalModelCalls>,
}
