//! Conditional deletes over a service that ignores `If-Match` on DELETE, by conditional writes alone.
//!
//! An object is deleted by replacing exactly the version that was seen by a mark, which counts as no
//! object. Creating an object where a mark is replaces exactly that mark. So every change names the
//! version that it follows, and the service keeps the conditions of all of them. Marks stay: nothing
//! could remove one without a conditional delete. Not promised: that other programs at the same
//! bucket know a mark for what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult};
use docmill_core::fault::Result;

/// The content of a deleted object. No record, document or result has a single byte.
const MARK: &[u8] = b"-";

/// A store whose conditional deletes leave marks.
pub struct MarkedDeletes {
    inner: Arc<dyn ObjectStore>,
}

impl MarkedDeletes {
    /// Over a store that keeps the conditions of writes.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner }
    }
}

fn is_mark(bytes: u64) -> bool {
    bytes == MARK.len() as u64
}

#[async_trait]
impl ObjectStore for MarkedDeletes {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        Ok(self.inner.head(key).await?.filter(|found| !is_mark(found.size)))
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        Ok(match self.inner.get(key, what).await? {
            GetResult::Found(found) if found.bytes.len() == MARK.len() => GetResult::Missing,
            GetResult::TooLarge { size } if is_mark(size) => GetResult::Missing,
            found => found,
        })
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        self.inner.put(key, bytes, metadata).await
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        let put = self.inner.put_if_absent(key, bytes.clone()).await?;
        if put != PutResult::Refused {
            return Ok(put);
        }
        match self.inner.head(key).await? {
            Some(found) if is_mark(found.size) => {
                self.inner.put_if_match(key, &found.etag, bytes).await
            }
            _ => Ok(PutResult::Refused),
        }
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.inner.put_if_match(key, etag, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        let put = self.inner.put_if_match(key, etag, Bytes::from_static(MARK)).await?;
        Ok(put != PutResult::Refused)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let mut found: Vec<ObjectEntry> = Vec::new();
        let mut after = after.map(str::to_owned);
        while found.len() < max {
            let wanted = max - found.len();
            let page = self.inner.list(prefix, after.as_deref(), wanted).await?;
            let is_last = page.len() < wanted;
            after = page.last().map(|last| last.key.clone());
            found.extend(page.into_iter().filter(|entry| !is_mark(entry.size)));
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    /// Deletes whatever the condition says, as some services do.
    #[derive(Default)]
    struct PretendingStore(MemoryStore);

    #[async_trait]
    impl ObjectStore for PretendingStore {
        fn describe(&self) -> String {
            "pretending".to_owned()
        }

        async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
            self.0.head(key).await
        }

        async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
            self.0.get(key, what).await
        }

        async fn put(
            &self,
            key: &str,
            bytes: Bytes,
            metadata: &BTreeMap<String, String>,
        ) -> Result<Etag> {
            self.0.put(key, bytes, metadata).await
        }

        async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
            self.0.put_if_absent(key, bytes).await
        }

        async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
            self.0.put_if_match(key, etag, bytes).await
        }

        async fn delete(&self, key: &str) -> Result<()> {
            self.0.delete(key).await
        }

        async fn delete_if_match(&self, key: &str, _: &Etag) -> Result<bool> {
            self.0.delete(key).await.map(|()| true)
        }

        async fn list(
            &self,
            prefix: &str,
            after: Option<&str>,
            max: usize,
        ) -> Result<Vec<ObjectEntry>> {
            self.0.list(prefix, after, max).await
        }
    }

    fn written(put: PutResult) -> Etag {
        match put {
            PutResult::Written(etag) => etag,
            PutResult::Refused => panic!("refused"),
        }
    }

    #[tokio::test]
    async fn over_a_store_that_ignores_conditions_of_deletes_nobody_removes_anothers_lock() {
        let store = MarkedDeletes::new(Arc::new(PretendingStore::default()));
        let everything = GetOptions { at_most: 99, if_match: None };
        let first = written(store.put_if_absent("lock", "first".into()).await.unwrap());
        let second = written(store.put_if_match("lock", &first, "second".into()).await.unwrap());
        assert!(!store.delete_if_match("lock", &first).await.unwrap(), "it is another's by now");
        let found = store.get("lock", everything.clone()).await.unwrap();
        assert!(matches!(found, GetResult::Found(found) if found.bytes == "second"));

        assert!(store.delete_if_match("lock", &second).await.unwrap());
        assert!(!store.delete_if_match("lock", &second).await.unwrap(), "it is gone");
        assert!(store.head("lock").await.unwrap().is_none());
        for at_most in [0, 99] {
            let what = GetOptions { at_most, ..everything.clone() };
            assert!(matches!(store.get("lock", what).await.unwrap(), GetResult::Missing));
        }
        // Of those who want a free lock one gets it.
        let again = || store.put_if_absent("lock", "again".into());
        let (a, b, c) = tokio::join!(again(), again(), again());
        let got = [a, b, c].into_iter().filter(|put| *put.as_ref().unwrap() != PutResult::Refused);
        assert_eq!(got.count(), 1);
    }

    #[tokio::test]
    async fn a_listing_shows_no_deleted_object_and_ends_at_the_last() {
        let store = MarkedDeletes::new(Arc::new(PretendingStore::default()));
        for number in 0..9 {
            let key = format!("k{number}");
            let etag = written(store.put_if_absent(&key, "content".into()).await.unwrap());
            if number % 3 != 0 {
                assert!(store.delete_if_match(&key, &etag).await.unwrap());
            }
        }
        for (after, max, expected) in [
            (None, 9, vec!["k0", "k3", "k6"]),
            (None, 2, vec!["k0", "k3"]),
            (Some("k3"), 2, vec!["k6"]),
            (Some("k6"), 2, vec![]),
        ] {
            let found = store.list("k", after, max).await.unwrap();
            let keys: Vec<_> = found.iter().map(|entry| entry.key.as_str()).collect();
            assert_eq!(keys, expected, "{after:?} {max}");
        }
    }
}
