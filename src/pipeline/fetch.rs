//! The first step, fetch: reads the original's bytes, within the limits.
//!
//! The size is asked for before the body, so that an oversized upload costs one request and no
//! memory. The bytes count against one budget for the whole process until they are dropped.

use bytes::Bytes;

use crate::pipeline::byte_budget::{ByteBudget, ReservedBytes};
use crate::pipeline::step_error::StepError;
use docmill_core::config::LimitsConfig;
use docmill_core::fault::{self, Fault};
use docmill_core::model::{DocumentRef, OutcomeReason, digest};
use docmill_core::work_clock::wait_off_clock;
use docmill_ledger::ledger::AttemptLedger;
use docmill_storage::store::{Etag, GetOptions, GetResult, ObjectStore};

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
/// Rejected: `too_large`, `empty`, `blocked`, and `superseded`: the object is another version than
/// `document` names, which ends the input only if another ingestion reads that version. Faults:
/// `missing`, and what the store says.
pub async fn fetch_document(
    store: &dyn ObjectStore,
    ledger: &dyn AttemptLedger,
    document: &DocumentRef,
    limits: &LimitsConfig,
    budget: &ByteBudget,
) -> Result<FetchedDocument, StepError> {
    let meta = store.head(&document.file_path).await?.ok_or_else(missing_error)?;
    check_size(meta.size, limits)?;
    let permit = budget.take(meta.size).await?;
    let what =
        GetOptions { at_most: limits.document_bytes.0, if_match: document.etag.clone().map(Etag) };
    let (bytes, etag) = match store.get(&document.file_path, what).await? {
        GetResult::Found(object) => (object.bytes, object.etag),
        GetResult::Missing => return Err(missing_error().into()),
        GetResult::Changed => {
            let detail = "the object is another version than was registered";
            return Err(StepError::rejected(OutcomeReason::Superseded, detail));
        }
        GetResult::TooLarge { size } => return Err(too_large_error(size, limits)),
    };
    check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), limits)?;
    let sha256 = digest::sha256_hex(&bytes);
    if wait_off_clock(ledger.is_blocked(&sha256)).await? {
        return Err(StepError::rejected(
            OutcomeReason::Blocked,
            "the content is on the block list",
        ));
    }
    Ok(FetchedDocument { bytes, sha256, etag, _budget: permit })
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
