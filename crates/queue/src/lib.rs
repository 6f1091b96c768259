//! Messages as a port, with SQS, Redis and objects in a folder or bucket behind it. What a message
//! means for an ingestion is for the worker and the ledger to say.

pub mod queue;

use docmill_client::aws;
use docmill_core::{config, fault, metrics, model, retry};
use docmill_storage::store;
