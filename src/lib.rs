//! The docmill program: commands, composition root, and a private Postgres. Everything else is a
//! library in `crates/`; see docs/explanation/architecture.md.

pub mod app;
pub mod cli;
pub mod cluster;
