//! Objects whose content is known by its SHA-256: originals that are read once more, long after what is
//! kept of them was made from their bytes.

use super::{GetOptions, GetResult, ObjectStore};
use docmill_core::fault::Result;
use docmill_core::model::digest;

/// Reads an object that once had this SHA-256 (hex), at most so many bytes of it;
/// [`GetResult::Changed`] if it has another one now.
///
/// # Errors
/// The store's own.
pub async fn get_known_content(
    store: &dyn ObjectStore,
    key: &str,
    sha256: &str,
    at_most: u64,
) -> Result<GetResult> {
    let found = store.get(key, GetOptions { at_most, if_match: None }).await?;
    Ok(match found {
        GetResult::Found(object) if digest::sha256_hex(&object.bytes) != sha256 => {
            GetResult::Changed
        }
        found => found,
    })
}
