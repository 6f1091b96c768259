//! The one integration test binary: one link, real Postgres, real protocols, real processes.
mod folder_queue;
mod ledger_suite;
mod operators;
mod store_suite;
mod support;
