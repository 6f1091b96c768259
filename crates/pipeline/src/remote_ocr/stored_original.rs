//! Where a document lies, for a provider that fetches it by itself: exactly the version whose pages
//! we saw, or none.

use std::sync::Arc;

use docmill_core::fault;
use docmill_core::model::IngestionId;
use docmill_documents::ocr::StoredFile;
use docmill_storage::{Etag, ObjectStore, S3Address};

/// A document in the store, as a provider can fetch it.
#[derive(Clone)]
pub struct StoredOriginal {
    store: Arc<dyn ObjectStore>,
    name: String,
    etag: Etag,
    token: String,
}

impl StoredOriginal {
    /// The object `name` as it was when it had this ETag. The work that is done on it for an
    /// ingestion is called by the ingestion's id.
    pub fn new(store: Arc<dyn ObjectStore>, name: String, etag: Etag, id: IngestionId) -> Self {
        Self { store, name, etag, token: id.to_string() }
    }

    /// The location for a provider; `None` if no provider can read it there, or it was replaced.
    ///
    /// # Errors
    /// Store errors.
    pub(super) async fn provider_file(&self) -> fault::Result<Option<StoredFile>> {
        let found = self.store.locate_in_s3(&self.name).await?;
        let same = found.filter(|address| address.etag == self.etag);
        Ok(same.map(|S3Address { bucket, key, version, .. }| StoredFile {
            bucket,
            key,
            version,
            token: self.token.clone(),
        }))
    }

    /// Whether the object is unchanged. Only a versioned bucket guarantees it by itself.
    ///
    /// # Errors
    /// Store errors.
    pub(super) async fn is_unchanged(&self) -> fault::Result<bool> {
        Ok(self.provider_file().await?.is_some())
    }
}
