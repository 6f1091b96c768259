//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod configuration;
mod docs;
mod earlier_schema;
mod eval;
mod folder_queue;
mod invariants;
mod ledger_suite;
mod llm;
mod operations;
mod schema;
mod messages;
mod operators;
mod samples;
mod store_suite;
mod support;
mod reading;
mod docs;
mod folder_queue;
mod ledger_suite;
mod llm;
mod queue_suite;
mod sqs_probe;
mod store_suite;
mod support;
mod trigger;
