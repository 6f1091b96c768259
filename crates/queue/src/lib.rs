//! Messages as a port, with SQS, Redis and objects in a folder or bucket behind it. What a message
//! means for an ingestion is for the worker and the ledger to say.

pub mod queue;
