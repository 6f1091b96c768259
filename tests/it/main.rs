//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod docs;
mod folder_queue;
mod ledger_suite;
mod llm;
mod queue_suite;
mod sqs_probe;
mod store_suite;
mod support;
