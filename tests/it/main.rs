//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod configuration;
mod docs;
mod eval;
mod folder_queue;
mod invariants;
mod ledger_suite;
mod llm;
mod messages;
mod operators;
mod samples;
mod store_suite;
mod support;
mod reading;
