//! Claimed to fetched: the original's bytes, within the limits.
//!
//! The size is asked for before the body, so that an oversized upload costs one request and no
//! memory. The bytes count against one budget for the whole process until they are dropped.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{ByteSize, LimitsConfig};
use crate::fault::{self, Fault};
use crate::ledger::AttemptLedger;
use crate::model::{DocumentRef, Reason, digest};
use crate::pipeline::step_error::StepError;
use crate::store::{Etag, Fetch, Get, Store};

/// Bytes per permit of the budget: permits are 32-bit numbers, documents may be large.
const PERMIT_BYTES: u64 = 4096;

/// The original document.
#[derive(Debug)]
pub struct Fetched {
    /// The untouched bytes.
    pub bytes: Bytes,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// The version of the object that they are.
    pub etag: Etag,
    /// Part of the budget, given back on drop.
    _budget: OwnedSemaphorePermit,
}

/// Bytes of documents that may be in memory at the same time.
#[derive(Debug, Clone)]
pub struct DocumentBudget(Arc<Semaphore>);

impl DocumentBudget {
    /// A budget of so many bytes, rounded down to 4 KiB.
    pub fn new(bytes: ByteSize) -> Self {
        let permits = usize::try_from(bytes.0 / PERMIT_BYTES).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Takes so many bytes if they are free now.
    pub(super) fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = permits(u64::try_from(bytes).unwrap_or(u64::MAX));
        Arc::clone(&self.0).try_acquire_many_owned(permits).ok()
    }

    /// Waits until so many bytes are free. Whoever waits here must hold none of them.
    pub(super) async fn take(&self, bytes: u64) -> Result<OwnedSemaphorePermit, StepError> {
        let taken = Arc::clone(&self.0).acquire_many_owned(permits(bytes)).await;
        taken.map_err(|_| fault::Error::internal("the document budget is closed").into())
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// Reads the original of `document`.
///
/// # Errors
/// Rejected: `too_large`, `empty`, `superseded` (the object is another version than registered),
/// `blocked`. Faults: `missing`, and what the store says.
pub async fn fetch(
    store: &dyn Store,
    ledger: &dyn AttemptLedger,
    document: &DocumentRef,
    limits: &LimitsConfig,
    budget: &DocumentBudget,
) -> Result<Fetched, StepError> {
    let missing = || fault::Error::new(Fault::Missing, "the document is not in the store");
    let meta = store.head(&document.file_path).await?.ok_or_else(missing)?;
    check_size(meta.size, limits)?;
    let permit = budget.take(meta.size).await?;
    let what = Get { at_most: limits.document_bytes.0, if_match: document.etag.clone().map(Etag) };
    let (bytes, etag) = match store.get(&document.file_path, what).await? {
        Fetch::Found(object) => (object.bytes, object.etag),
        Fetch::Missing => return Err(missing().into()),
        Fetch::Changed => {
            let detail = "the object is another version than the event named";
            return Err(StepError::rejected(Reason::Superseded, detail));
        }
        Fetch::TooLarge { size } => return Err(too_large(size, limits)),
    };
    check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), limits)?;
    let sha256 = digest::sha256(&bytes);
    if ledger.is_blocked(&sha256).await? {
        return Err(StepError::rejected(Reason::Blocked, "the content is on the block list"));
    }
    Ok(Fetched { bytes, sha256, etag, _budget: permit })
}

fn check_size(size: u64, limits: &LimitsConfig) -> Result<(), StepError> {
    if size == 0 {
        return Err(StepError::rejected(Reason::Empty, "0 bytes"));
    }
    if size > limits.document_bytes.0 {
        return Err(too_large(size, limits));
    }
    Ok(())
}

fn too_large(size: u64, limits: &LimitsConfig) -> StepError {
    let limit = limits.document_bytes.0;
    let detail = format!("{size} bytes, limits.document_bytes is {limit}");
    StepError::rejected(Reason::TooLarge, detail)
}
