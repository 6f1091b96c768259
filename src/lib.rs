//! docmill reads documents that queue messages name, extracts structured data, checks it, and
//! records the outcome in Postgres exactly once. `docs/architecture.md` is the map; the layers
//! below are listed lowest first and held by `tests/architecture.rs`.

pub mod fault;

pub mod model;
pub mod retry;

pub mod config;
pub mod metrics;
pub mod notation;

pub mod aws;
pub mod cluster;
pub mod cpu;
pub mod http;
pub mod kinds;
pub mod shutdown;
pub mod telemetry;

pub mod db;
pub mod pages;
pub mod store;

pub mod ledger;
pub mod llm;
pub mod ocr;
pub mod queue;

pub mod extract;
pub mod gate;

pub mod pipeline;

pub mod eval;
pub mod ops;
pub mod worker;

pub mod throttle;
pub mod web;

pub mod app;

pub mod cli;
