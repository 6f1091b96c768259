//! The store's clock, so that machines with different clocks agree on deadlines.
//!
//! Every time that decides about ownership is the store's: the modification time of a written
//! object, and this machine's clock corrected by the measured offset. The precision is the store's:
//! whole seconds with S3.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use docmill_core::fault::{Error, Result};
use docmill_storage::ObjectStore;

/// How long a measurement is good; clocks drift by seconds a day at most.
const GOOD: Duration = Duration::from_secs(600);
/// Differences below this are the store's whole seconds and the network's time, not a wrong clock.
const NOISE: i64 = 3_000;

/// A clock that agrees with the store's.
pub struct StoreClock {
    local: fn() -> SystemTime,
    measured: Mutex<Option<(Instant, i64)>>,
}

impl Default for StoreClock {
    fn default() -> Self {
        Self::with_local(SystemTime::now)
    }
}

impl StoreClock {
    /// Over this clock of the machine, wrong as it may be.
    pub fn with_local(local: fn() -> SystemTime) -> Self {
        Self { local, measured: Mutex::default() }
    }

    /// Milliseconds since 1970 by the store's clock; measured at first and again now and then.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn now(&self, store: &dyn ObjectStore) -> Result<u64> {
        let offset = match self.known_offset() {
            Some(offset) => offset,
            None => self.measure_offset(store).await?,
        };
        Ok(to_millis((self.local)()).saturating_add_signed(offset))
    }

    fn known_offset(&self) -> Option<i64> {
        let measured = *self.measured.lock();
        measured.filter(|(at, _)| at.elapsed() < GOOD).map(|(_, offset)| offset)
    }

    /// Writes an object, asks when that was, and removes it.
    async fn measure_offset(&self, store: &dyn ObjectStore) -> Result<i64> {
        let key = format!("registry/clock-{}", uuid::Uuid::new_v4());
        store.put(&key, Bytes::new(), &BTreeMap::new()).await?;
        let local = to_millis((self.local)());
        let written = store.head(&key).await?.map(|meta| to_millis(meta.modified));
        store.delete(&key).await?;
        let written = written.ok_or_else(|| Error::transient("the store lost a fresh object"))?;
        let apart = i64::try_from(i128::from(written) - i128::from(local)).unwrap_or_default();
        let offset = if apart.abs() < NOISE { 0 } else { apart };
        if offset != 0 {
            tracing::warn!(offset_ms = offset, "this machine's clock differs from the store's");
        }
        *self.measured.lock() = Some((Instant::now(), offset));
        Ok(offset)
    }
}

/// A time in milliseconds since 1970.
pub(crate) fn to_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The inverse of `to_millis`.
pub fn time_of(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// Milliseconds since 1970 as RFC 3339, UTC.
pub(crate) fn format_rfc3339(millis: u64) -> String {
    OffsetDateTime::from(time_of(millis)).format(&Rfc3339).unwrap_or_default()
}
