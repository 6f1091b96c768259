//! Shared parts of the integration tests.

pub(crate) mod browser;
pub(crate) mod controlled_store;
pub(crate) mod documents;
pub(crate) mod endless_letters;
pub(crate) mod flaky;
pub(crate) mod memory_queue;
pub(crate) mod model_reading;
pub(crate) mod moto;
pub(crate) mod page_processes;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod recording_queue;
pub(crate) mod redis;
pub(crate) mod refusing_bucket;
pub(crate) mod row_reads;
pub(crate) mod sqs;
pub(crate) mod whole;
pub(crate) mod world;
