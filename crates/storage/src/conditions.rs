//! Whether a store keeps the conditions that everything of ours relies on.

use std::sync::Arc;

use bytes::Bytes;

use super::marked_deletes::MarkedDeletes;
use super::{Etag, ObjectStore, PutResult};
use docmill_core::fault::{Error, Result};

/// Some services accept the headers of conditional writes and ignore them; artefacts and queues
/// would be overwritten in silence. `place` is where a probe may be written and removed.
///
/// # Errors
/// Internal: it ignores them. The store's own.
pub async fn check_conditional_writes(store: &dyn ObjectStore, place: &str) -> Result<()> {
    let key = format!("{place}.probe-{}", uuid::Uuid::new_v4());
    let first = store.put_if_absent(&key, Bytes::from_static(b"1")).await?;
    let second = store.put_if_absent(&key, Bytes::from_static(b"2")).await?;
    let PutResult::Written(etag) = first else {
        return Err(Error::internal("a fresh key was refused"));
    };
    let stale = Etag("\"00000000000000000000000000000000\"".to_owned());
    let third = store.put_if_match(&key, &stale, Bytes::from_static(b"3")).await?;
    let unharmed = store.delete_if_match(&key, &etag).await?;
    if second == PutResult::Refused && third == PutResult::Refused && unharmed {
        return Ok(());
    }
    store.delete(&key).await?;
    Err(Error::internal("it ignores If-None-Match or If-Match, which docmill relies on"))
}

/// The store for a place that holds locks, beside [`check_conditional_writes`]. Locks are released by
/// deletes on condition that they still are the version of the releasing worker. Some services
/// accept that condition and ignore it: a worker that was taken for dead would delete the lock of
/// its successor. There deletes leave marks ([`MarkedDeletes`]).
///
/// # Errors
/// The store's own.
pub async fn keep_delete_conditions(
    store: Arc<dyn ObjectStore>,
    place: &str,
) -> Result<Arc<dyn ObjectStore>> {
    let key = format!("{place}.probe-{}", uuid::Uuid::new_v4());
    if store.keeps_delete_conditions(&key).await? {
        return Ok(store);
    }
    Ok(Arc::new(MarkedDeletes::new(store)))
}
