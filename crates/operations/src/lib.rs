//! Operations behind commands and pages; each function returns a report and prints nothing.
//!
//! Commands use this layer and not the database below it; operations of a single statement are
//! re-exported here as they are.

pub mod answer;
pub mod batches;
pub mod bulk_export;
pub mod companies;
pub mod dashboard;
pub mod dead;
pub mod doctor;
mod erasable_keys;
pub mod erase;
pub mod export;
pub mod folder_walk;
pub mod inbox;
pub mod inspect;
pub mod invoice_view;
pub mod janitor;
pub mod kind_drafts;
pub mod master_data;
pub mod mounted;
pub mod moving;
pub mod page_drawing;
pub mod people;
mod printed_value;
pub mod process;
pub mod rejections;
pub mod replay;
pub mod retry;
pub mod review;
pub mod saved_views;
pub mod sending;
pub mod silent_errors;
pub mod submit;
pub mod suppliers;
pub mod tenant_shares;
pub mod webhooks;

pub use docmill_ledger::db::Db;
