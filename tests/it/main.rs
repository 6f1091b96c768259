//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod docs;
mod earlier_schema;
mod folder_queue;
mod ledger_suite;
mod llm;
mod operations;
mod schema;
mod store_suite;
mod support;
mod trigger;
