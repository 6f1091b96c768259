//! The fetch step: reads the original's bytes, within the limits.
//!
//! The bytes count against one budget of the process until they are dropped. A usual document's
//! size is reserved first, so that most need one request; a larger one is requested again once its
//! size is reserved. The size is checked before the body is read: an oversized upload costs one
//! request and no memory.

use bytes::Bytes;

use crate::byte_budget::{ByteBudget, ReservedBytes};
use crate::step_error::StepError;
use docmill_core::config::LimitsConfig;
use docmill_core::fault::{self, Fault};
use docmill_core::model::{DocumentRef, OutcomeReason, digest};
use docmill_core::work_clock::wait_off_clock;
use docmill_ledger::AttemptLedger;
use docmill_storage::{Etag, FetchedObject, GetOptions, GetResult, ObjectStore};

/// Reserved before the size is known: most invoices are smaller, scans too.
const USUAL_BYTES: u64 = 4 << 20;

/// The original document as it was fetched.
#[derive(Debug)]
pub struct FetchedDocument {
    /// The bytes exactly as they are stored.
    pub bytes: Bytes,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// The version of the object that they are.
    pub etag: Etag,
    /// The reserved part of the budget, released on drop.
    _budget: ReservedBytes,
}

/// Reads the original of `document`.
///
/// # Errors
/// Rejected: `too_large`, `empty`, `blocked`, and `superseded`: the object has another version than
/// `document` names. That ends the input only if another ingestion reads the version. Faults:
/// `missing`, and store errors.
pub async fn fetch_document(
    store: &dyn ObjectStore,
    ledger: &dyn AttemptLedger,
    document: &DocumentRef,
    limits: &LimitsConfig,
    budget: &ByteBudget,
) -> Result<FetchedDocument, StepError> {
    let (object, reserved) = get_within_budget(store, document, limits, budget).await?;
    let (bytes, etag) = (object.bytes, object.etag);
    let sha256 = digest::sha256_hex(&bytes);
    if wait_off_clock(ledger.is_blocked(&sha256)).await? {
        return Err(StepError::rejected(
            OutcomeReason::Blocked,
            "the content is on the block list",
        ));
    }
    Ok(FetchedDocument { bytes, sha256, etag, _budget: reserved })
}

/// The object, and as much of the budget as its bytes take.
async fn get_within_budget(
    store: &dyn ObjectStore,
    document: &DocumentRef,
    limits: &LimitsConfig,
    budget: &ByteBudget,
) -> Result<(FetchedObject, ReservedBytes), StepError> {
    let limit = limits.document_bytes.0;
    let usual = USUAL_BYTES.min(limit);
    let size = match budget.try_reserve(usual) {
        Some(mut reserved) => match get_object(store, document, usual).await? {
            Ok(object) => {
                let size = u64::try_from(object.bytes.len()).unwrap_or(u64::MAX);
                check_size(size, limits)?;
                reserved.shrink_to(size);
                return Ok((object, reserved));
            }
            Err(size) => size,
        },
        // Where not even that much is free, a small one is not made to wait for it.
        None => store.head(&document.file_path).await?.ok_or_else(missing_error)?.size,
    };
    check_size(size, limits)?;
    let reserved = budget.take(size).await?;
    let object = get_object(store, document, limit).await?;
    let object = object.map_err(|size| too_large_error(size, limits))?;
    check_size(u64::try_from(object.bytes.len()).unwrap_or(u64::MAX), limits)?;
    Ok((object, reserved))
}

/// The object in the version that `document` names, or its size if it has more bytes than these.
async fn get_object(
    store: &dyn ObjectStore,
    document: &DocumentRef,
    at_most: u64,
) -> Result<Result<FetchedObject, u64>, StepError> {
    let what = GetOptions { at_most, if_match: document.etag.clone().map(Etag) };
    match store.get(&document.file_path, what).await? {
        GetResult::Found(object) => Ok(Ok(object)),
        GetResult::TooLarge { size } => Ok(Err(size)),
        GetResult::Missing => Err(missing_error().into()),
        GetResult::Changed => {
            let detail = "the object is another version than was registered";
            Err(StepError::rejected(OutcomeReason::Superseded, detail))
        }
    }
}

/// The document is not there.
pub(super) fn missing_error() -> fault::Error {
    fault::Error::new(Fault::Missing, "the document is not in the store")
}

fn check_size(size: u64, limits: &LimitsConfig) -> Result<(), StepError> {
    if size == 0 {
        return Err(StepError::rejected(OutcomeReason::Empty, "0 bytes"));
    }
    if size > limits.document_bytes.0 {
        return Err(too_large_error(size, limits));
    }
    Ok(())
}

fn too_large_error(size: u64, limits: &LimitsConfig) -> StepError {
    let limit = limits.document_bytes.0;
    let detail = format!("{size} bytes, limits.document_bytes is {limit}");
    StepError::rejected(OutcomeReason::TooLarge, detail)
}
