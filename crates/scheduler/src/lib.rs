//! Turns for models that share the memory of one machine, agreed on between processes.
//! docs/scheduler.md says how.

pub mod scheduler;
