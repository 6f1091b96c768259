//! The formats of two neighbours, served as they are: BlobForge buckets and olmOCR workspaces. Queue,
//! ledger and job source over the objects of a store or folder, without a database.

pub mod bucket;
pub mod object_ledger;
pub mod object_pipeline;
pub mod objects;
pub mod workspace;
