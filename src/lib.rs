//! docmill reads documents that queue messages name, extracts structured data, checks it, and
//! records the outcome in Postgres exactly once. `docs/architecture.md` is the map. The libraries in
//! `crates/` are layered by their manifests; the modules of this package, listed lowest first, by
//! `tests/architecture.rs`.

pub use docmill_client::{aws, http, telemetry, throttle};
pub use docmill_core::{config, fault, metrics, model, retry};
pub use docmill_documents::{cpu, ocr, pages};
pub use docmill_eval::eval;
pub use docmill_extract::extract;
pub use docmill_formats::{notation, xml};
pub use docmill_gate::{gate, kinds};
pub use docmill_ledger::{db, ledger};
pub use docmill_llm::llm;
pub use docmill_queue::queue;
pub use docmill_scheduler::scheduler;
pub use docmill_storage::store;

pub mod cluster;
pub mod shutdown;

pub mod pipeline;

pub mod runner;

pub mod ops;
pub mod worker;

pub mod web;

pub mod app;

pub mod cli;
