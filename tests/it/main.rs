//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod docs;
mod folder_queue;
mod ledger_suite;
mod operators;
mod llm;
mod store_suite;
mod support;
