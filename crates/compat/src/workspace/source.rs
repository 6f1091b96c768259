//! The bytes of a document that an index names: a local file, or an object of S3.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;

use super::archive::ArchiveLimits;
use docmill_core::fault::{Error, Fault, Result};
use docmill_storage::{GetOptions, GetResult, ObjectStore};

/// The places from which documents are read.
pub struct DocumentSources {
    /// For `s3://` addresses; none: local files only.
    pub s3: Option<Arc<dyn ObjectStore>>,
    /// Larger documents are refused; bytes.
    pub largest: u64,
    /// Whether the index may name files of this machine.
    pub local: bool,
    /// How much of an archive is read.
    pub archives: ArchiveLimits,
}

/// A document as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceContent {
    /// The bytes of the document.
    Bytes(Bytes),
    /// The document has more bytes than allowed.
    TooLarge,
}

impl DocumentSources {
    /// Reads a document.
    ///
    /// # Errors
    /// Missing: there is none. The store's, or the file system's. No text contains the path.
    pub async fn fetch(&self, path: &str) -> Result<SourceContent> {
        self.fetch_up_to(path, self.largest).await
    }

    /// Reads an archive, as it is packed.
    ///
    /// # Errors
    /// As [`DocumentSources::fetch`].
    pub(crate) async fn fetch_archive(&self, path: &str) -> Result<SourceContent> {
        self.fetch_up_to(path, self.archives.bytes).await
    }

    async fn fetch_up_to(&self, path: &str, largest: u64) -> Result<SourceContent> {
        if !path.starts_with("s3://") {
            if !self.local {
                let text = "the index names a file of this machine, and whoever may write to the \
                            bucket wrote it: say --local-files if it is meant";
                return Err(Error::new(Fault::Rejected, text));
            }
            return read_file(path, largest).await;
        }
        let store = self.s3.as_ref().ok_or_else(|| {
            let text = "the index contains s3:// documents since this worker started: restart it";
            Error::new(Fault::Unavailable, text)
        })?;
        match store.get(path, GetOptions { at_most: largest, if_match: None }).await? {
            GetResult::Found(object) => Ok(SourceContent::Bytes(object.bytes)),
            GetResult::TooLarge { .. } => Ok(SourceContent::TooLarge),
            GetResult::Missing | GetResult::Changed => Err(missing_store_error()),
        }
    }
}

async fn read_file(path: &str, largest: u64) -> Result<SourceContent> {
    let file = tokio::fs::File::open(path).await.map_err(read_error)?;
    if !file.metadata().await.map_err(read_error)?.is_file() {
        // A pipe would never end.
        return Err(missing_store_error());
    }
    let mut bytes = Vec::new();
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes).await.map_err(read_error)?;
    match u64::try_from(bytes.len()) {
        Ok(size) if size <= largest => Ok(SourceContent::Bytes(bytes.into())),
        _ => Ok(SourceContent::TooLarge),
    }
}

fn read_error(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => missing_store_error(),
        _ => Error::transient("a document's file cannot be read").with_source(error),
    }
}

fn missing_store_error() -> Error {
    Error::new(Fault::Missing, "no document at the index's path")
}
