//! Whether a store keeps the conditions that everything of ours relies on.

use bytes::Bytes;

use super::{Etag, ObjectStore, PutResult};
use docmill_core::fault::{Error, Fault, Result};

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

/// Locks are released by deletes on condition that they still are the version of the releasing
/// worker. Some services accept that condition and ignore it: then a worker that was taken for dead
/// deletes the lock of its successor. For places that hold locks, beside
/// [`check_conditional_writes`].
///
/// # Errors
/// Misconfigured: it deletes in spite of the condition. The store's own.
pub async fn check_conditional_deletes(store: &dyn ObjectStore, place: &str) -> Result<()> {
    let key = format!("{place}.probe-{}", uuid::Uuid::new_v4());
    if store.keeps_delete_conditions(&key).await? {
        return Ok(());
    }
    let text = "it ignores If-Match on DELETE, which the locks of buckets and workspaces stand on; \
                use a service that keeps it (AWS S3 does), a folder that the workers share, or \
                Postgres with SQS or Redis, where the store needs no locks";
    Err(Error::new(Fault::Misconfigured, text))
}
