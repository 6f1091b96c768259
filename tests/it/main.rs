//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod docs;
mod folder_queue;
mod ledger_suite;
mod configuration;
mod operators;
mod llm;
mod store_suite;
mod support;
mod invariants;
mod messages;
mod eval;
mod samples;
mod store_suite;
mod support;
