//! Turns for models that share the memory of one machine, agreed on between processes.
//! docs/scheduler.md says how.

pub mod scheduler;

#[cfg(test)]
use docmill_client::throttle;
#[cfg(test)]
use docmill_core::model;
use docmill_core::{config, fault, metrics};
use docmill_llm::llm;
