//! Everything that is written in SQL: schema and login, who holds which ingestion, what operators
//! look up and change. Nothing outside this crate writes SQL.

pub mod db;
pub mod ledger;
