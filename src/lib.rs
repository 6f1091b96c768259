//! docmill reads documents that queue messages name, extracts structured data, checks it, and
//! records the outcome in Postgres exactly once. `docs/architecture.md` is the map. The libraries in
//! `crates/` are layered by their manifests; the modules of this package, listed lowest first, by
//! `tests/architecture.rs`.

pub mod cluster;
pub mod failpoint;
pub mod shutdown;

pub mod pipeline;

pub mod runner;

pub mod ops;
pub mod worker;

pub mod web;

pub mod app;

pub mod cli;
