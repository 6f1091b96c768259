//! A part of a store, seen as a store of its own: every key gets the same beginning.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Entry, Etag, Fetch, Get, Meta, Put, Store};
use crate::fault::Result;

/// Objects below a prefix.
pub struct Prefixed {
    inner: Arc<dyn Store>,
    prefix: String,
}

impl Prefixed {
    /// The part of `inner` whose keys begin with `prefix`; a missing `/` at its end is added, one
    /// at its beginning left out.
    pub fn new(inner: Arc<dyn Store>, prefix: &str) -> Self {
        Self { inner, prefix: Self::start(prefix) }
    }

    /// What every key below `prefix` begins with: nothing, or a path with a `/` at its end.
    pub fn start(prefix: &str) -> String {
        match prefix.trim_matches('/') {
            "" => String::new(),
            trimmed => format!("{trimmed}/"),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

#[async_trait]
impl Store for Prefixed {
    fn describe(&self) -> String {
        format!("{} below {}", self.inner.describe(), self.prefix)
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>> {
        self.inner.head(&self.key(key)).await
    }

    async fn get(&self, key: &str, what: Get) -> Result<Fetch> {
        self.inner.get(&self.key(key), what).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        self.inner.put(&self.key(key), bytes, metadata).await
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<Put> {
        self.inner.put_if_absent(&self.key(key), bytes).await
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<Put> {
        self.inner.put_if_match(&self.key(key), etag, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(&self.key(key)).await
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.inner.delete_if_match(&self.key(key), etag).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<Vec<Entry>> {
        let after = after.map(|after| self.key(after));
        let found = self.inner.list(&self.key(prefix), after.as_deref(), max).await?;
        let inside = |entry: Entry| {
            let key = entry.key.strip_prefix(&self.prefix)?.to_owned();
            Some(Entry { key, ..entry })
        };
        Ok(found.into_iter().filter_map(inside).collect())
    }
}
