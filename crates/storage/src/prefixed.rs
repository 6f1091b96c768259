//! A part of a store, seen as a store of its own: every key gets the same beginning.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult};
use docmill_core::fault::Result;

/// Objects below a prefix.
pub struct PrefixedStore {
    inner: Arc<dyn ObjectStore>,
    prefix: String,
}

impl PrefixedStore {
    /// The part of `inner` whose keys begin with `prefix`; a missing `/` at its end is added, one
    /// at its beginning left out.
    pub fn new(inner: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { inner, prefix: Self::normalize_prefix(prefix) }
    }

    /// Normalises the prefix of every key: empty, or a path with a `/` at its end.
    pub fn normalize_prefix(prefix: &str) -> String {
        match prefix.trim_matches('/') {
            "" => String::new(),
            trimmed => format!("{trimmed}/"),
        }
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

#[async_trait]
impl ObjectStore for PrefixedStore {
    fn describe(&self) -> String {
        format!("{} below {}", self.inner.describe(), self.prefix)
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        self.inner.head(&self.full_key(key)).await
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        self.inner.get(&self.full_key(key), what).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        self.inner.put(&self.full_key(key), bytes, metadata).await
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        self.inner.put_if_absent(&self.full_key(key), bytes).await
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.inner.put_if_match(&self.full_key(key), etag, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(&self.full_key(key)).await
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.inner.delete_if_match(&self.full_key(key), etag).await
    }

    async fn keeps_delete_conditions(&self, probe: &str) -> Result<bool> {
        self.inner.keeps_delete_conditions(&self.full_key(probe)).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let after = after.map(|after| self.full_key(after));
        let found = self.inner.list(&self.full_key(prefix), after.as_deref(), max).await?;
        Ok(found
            .into_iter()
            .filter_map(|entry: ObjectEntry| {
                let key = entry.key.strip_prefix(&self.prefix)?.to_owned();
                Some(ObjectEntry { key, ..entry })
            })
            .collect())
    }
}
