//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod cli;
mod configuration;
mod crashes;
mod docs;
mod earlier_schema;
mod eval;
mod events;
mod fetching;
mod folder_queue;
mod invariants;
mod ledger_suite;
mod llm;
mod messages;
mod operations;
mod operators;
mod ownership;
mod queue_suite;
mod reading;
mod recovery;
mod samples;
mod schema;
mod silence;
mod sqs_probe;
mod store_suite;
mod support;
mod trigger;
