//! The docmill program: the composition root, the commands, and membership in a cluster. Everything
//! else is a library in `crates/`; docs/explanation/architecture.md is the map.

pub mod app;
pub mod cli;
pub mod cluster;
