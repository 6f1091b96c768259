//! Where documents and artefacts lie, behind one small trait.
//!
//! A key is relative to the configured bucket or folder; `s3://bucket/key` names another bucket
//! (backend `s3` only). Conditional writes are the ground on which invariant 8 and the queue over
//! a store stand, so an implementation without them is refused at start. Every implementation
//! passes the same suite, `tests/it/store_suite.rs`. Not promised: listing order across writes
//! that happen meanwhile.

pub mod conditions;
pub mod folder;
pub mod keys;
pub mod known_content;
pub mod marked_deletes;
pub mod memory;
pub mod prefixed;
pub mod s3;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;

use docmill_core::fault::Result;

/// Changes with every write of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etag(pub String);

/// An object's attributes, known without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Size in bytes.
    pub size: u64,
    /// Changes with every write.
    pub etag: Etag,
    /// When it was last written, by the store's clock.
    pub modified: std::time::SystemTime,
    /// User metadata, keys in lower case, decoded.
    pub metadata: BTreeMap<String, String>,
}

/// An object as it was read.
#[derive(Debug, Clone)]
pub struct FetchedObject {
    /// The object's whole content.
    pub bytes: Bytes,
    /// The version that was read.
    pub etag: Etag,
}

/// How a conditional write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutResult {
    /// Written; this is the new version.
    Written(Etag),
    /// The condition did not hold; nothing was written.
    Refused,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// The whole key, not only what follows the prefix.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was last written, by the store's clock.
    pub modified: std::time::SystemTime,
}

/// The part of an object to read.
#[derive(Debug, Clone)]
pub struct GetOptions {
    /// Of an object of more bytes than this nothing is read: [`GetResult::TooLarge`].
    pub at_most: u64,
    /// Read only this version; another one is [`GetResult::Changed`].
    pub if_match: Option<Etag>,
}

/// How a read ended.
#[derive(Debug, Clone)]
pub enum GetResult {
    /// The object was read.
    Found(FetchedObject),
    /// There is no such object.
    Missing,
    /// The object is another version than asked for.
    Changed,
    /// More bytes than allowed; nothing was kept.
    TooLarge {
        /// Size of the object in bytes.
        size: u64,
    },
}

/// Where S3, and services beside it, find an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Address {
    /// Name of the bucket.
    pub bucket: String,
    /// Key of the object in the bucket.
    pub key: String,
    /// Its current version, in a bucket that keeps versions.
    pub version: Option<String>,
    /// ETag of its current content.
    pub etag: Etag,
}

/// The meaning of a name in S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// Name of the bucket.
    pub bucket: &'a str,
    /// Key of the object in the bucket.
    pub key: &'a str,
    /// Whether it is another bucket than the store's own.
    pub foreign: bool,
}

/// An address that accepts one object for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresignedWrite {
    /// The address for PUT; it is its own permission.
    pub url: String,
    /// Headers that are signed and have to be sent as they stand here.
    pub headers: BTreeMap<String, String>,
}

/// A store of objects by key, with conditional writes.
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// A few words for logs: backend and address, without credentials.
    fn describe(&self) -> String;

    /// Bucket and key that a name means, nothing asked; `None`: no such name, or no such store.
    fn split_name<'a>(&'a self, _name: &'a str) -> Option<ObjectName<'a>> {
        None
    }

    /// Size, version and metadata; `None` if there is no such object.
    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>>;

    /// Where other services find the object as it is now; `None` if there is no such object, or if
    /// the objects do not lie where any other service could find them.
    async fn locate_in_s3(&self, _key: &str) -> Result<Option<S3Address>> {
        Ok(None)
    }

    /// Reads an object, its size checked before the body.
    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult>;

    /// Writes unconditionally, with user metadata (values of any characters).
    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag>;

    /// An address that takes an object of exactly `size` bytes at this key for so long; `None`: the
    /// store cannot be written to past us.
    async fn presign_write(
        &self,
        _key: &str,
        _size: u64,
        _valid: std::time::Duration,
    ) -> Result<Option<PresignedWrite>> {
        Ok(None)
    }

    /// An address that gives the object at this key for so long; `None`: the store cannot be read past us.
    async fn presign_read(
        &self,
        _key: &str,
        _valid: std::time::Duration,
    ) -> Result<Option<String>> {
        Ok(None)
    }

    /// Writes only if there is no such object.
    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult>;

    /// Writes only if the object still is the given version. A missing object is `Refused`.
    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult>;

    /// Deletes; an object that is not there is a success.
    async fn delete(&self, key: &str) -> Result<()>;

    /// Deletes only if the object still is the given version; `false` if it is another or gone.
    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool>;

    /// Whether [`ObjectStore::delete_if_match`] compares and deletes in one step, also where another
    /// writes in between: a store in this process's hands does; what a service does has to be tried.
    /// `probe` is a fresh key that may be written and is gone afterwards.
    async fn keeps_delete_conditions(&self, _probe: &str) -> Result<bool> {
        Ok(true)
    }

    /// The key of a local file (absolute, without links) that lies in this store already; a store
    /// that is no folder has none.
    fn key_of_file(&self, file: &std::path::Path) -> Option<String> {
        let _ = file;
        None
    }

    /// Up to `max` entries whose keys begin with `prefix` and come after `after`, in byte order.
    /// A prefix `s3://bucket/…` lists another bucket, its keys in the same form (`s3` only).
    async fn list(&self, prefix: &str, after: Option<&str>, max: usize)
    -> Result<Vec<ObjectEntry>>;
}
