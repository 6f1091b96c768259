//! Workers without a database, compatible with two other systems: BlobForge buckets and olmOCR
//! workspaces.
//!
//! 1. [`objects`]: the layers over a store: conditional writes and locks ([`objects::engine`]), the
//!    two layouts ([`objects::blobforge`], [`objects::olmocr`]), and a message queue of markers.
//! 2. [`object_ledger`], [`object_pipeline`]: ledger and pipeline over the same store; both systems
//!    use them.
//! 3. [`bucket`]: a BlobForge bucket: ingest, claim, convert, repair, report.
//! 4. [`workspace`]: an olmOCR workspace: populate, claim, read, reopen, count.

pub mod bucket;
pub mod object_ledger;
pub mod object_pipeline;
pub mod objects;
pub mod workspace;
