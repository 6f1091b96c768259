//! The bytes of a document that an index names: a local file, or an object of S3.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;

use crate::fault::{Error, Fault, Result};
use crate::store::{Fetch, Get, Store};

/// Where documents are read from.
pub struct Sources {
    /// For `s3://` addresses; none: local files only.
    pub s3: Option<Arc<dyn Store>>,
    /// Larger documents are refused; bytes.
    pub largest: u64,
}

/// A document as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// Its bytes.
    Bytes(Bytes),
    /// It has more than allowed.
    TooLarge,
}

impl Sources {
    /// Reads a document.
    ///
    /// # Errors
    /// Missing: there is none. The store's, or the file system's. No text holds the path.
    pub async fn fetch(&self, path: &str) -> Result<Fetched> {
        if !path.starts_with("s3://") {
            return self.file(path).await;
        }
        let store = self.s3.as_ref().ok_or_else(|| {
            let text = "the index names s3:// documents since this worker began: start it again";
            Error::new(Fault::Unavailable, text)
        })?;
        match store.get(path, Get { at_most: self.largest, if_match: None }).await? {
            Fetch::Found(object) => Ok(Fetched::Bytes(object.bytes)),
            Fetch::TooLarge { .. } => Ok(Fetched::TooLarge),
            Fetch::Missing | Fetch::Changed => Err(missing()),
        }
    }

    async fn file(&self, path: &str) -> Result<Fetched> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => missing(),
            _ => Error::transient("a document's file cannot be read").because(error),
        };
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        if !file.metadata().await.map_err(failed)?.is_file() {
            // A pipe would never end.
            return Err(missing());
        }
        let mut bytes = Vec::new();
        file.take(self.largest.saturating_add(1)).read_to_end(&mut bytes).await.map_err(failed)?;
        match u64::try_from(bytes.len()) {
            Ok(size) if size <= self.largest => Ok(Fetched::Bytes(bytes.into())),
            _ => Ok(Fetched::TooLarge),
        }
    }
}

fn missing() -> Error {
    Error::new(Fault::Missing, "there is no document where the index says")
}
