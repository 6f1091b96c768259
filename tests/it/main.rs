//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod configuration;
mod crashes;
mod docs;
mod earlier_schema;
mod eval;
mod folder_queue;
mod invariants;
mod ledger_suite;
mod llm;
mod messages;
mod operations;
mod operators;
mod queue_suite;
mod reading;
mod recovery;
mod samples;
mod schema;
mod sqs_probe;
mod store_suite;
mod support;
mod trigger;
