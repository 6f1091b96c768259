//! A local folder with the guarantees of a bucket: what `docmill dev` and many tests run on.
//!
//! Keys are paths below the folder and stay readable there; user metadata lies in side files that
//! no listing shows. Writes are durable when they return. Several processes may use one folder.
//! Not promised: a key that is also the folder of other keys (`a` beside `a/b`), which a bucket
//! allows and a file system does not: such a write is refused.

mod disk;
mod listing;
mod paths;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;

use self::disk::{FileCondition, FileDraft, StoreDirectory};
use super::{Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult};
use docmill_core::fault::{Error, Fault, Result};

/// An object store whose objects are files of a folder.
#[derive(Debug, Clone)]
pub struct FolderStore {
    disk: StoreDirectory,
    /// The folder without links on the way, as files in it are compared with it.
    canonical: PathBuf,
}

impl FolderStore {
    /// Opens the folder, creating it if it is not there.
    ///
    /// # Errors
    /// The folder cannot be created or written to; the text names which and why.
    pub async fn open(path: &Path) -> Result<Self> {
        let root = path.to_owned();
        let (disk, canonical) = run_blocking(move || {
            let disk = StoreDirectory::open(&root)?;
            Ok((disk, std::fs::canonicalize(&root)?))
        })
        .await
        .map_err(|error| {
            let why = error.source.as_ref().map(ToString::to_string).unwrap_or_default();
            let text = format!("cannot use the folder {} as a store: {why}", path.display());
            Error { fault: error.fault, context: text.into(), source: error.source }
        })?;
        Ok(Self { disk, canonical })
    }

    /// Whether the folder is empty, or not there: nothing was ever stored in it.
    ///
    /// # Errors
    /// It cannot be listed.
    pub async fn is_unused(path: &Path) -> Result<bool> {
        let root = path.to_owned();
        run_blocking(move || match std::fs::read_dir(root) {
            Ok(mut entries) => Ok(entries.next().is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        })
        .await
    }

    async fn write_file(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: UserMetadata,
        condition: FileCondition,
    ) -> Result<PutResult> {
        let path = paths::path_of(&self.disk.root, key)?;
        let draft = FileDraft { path, bytes, metadata, condition };
        let disk = self.disk.clone();
        run_blocking(move || disk.write(&draft)).await
    }

    async fn remove_file(&self, key: &str, condition: FileCondition) -> Result<bool> {
        let path = paths::path_of(&self.disk.root, key)?;
        let disk = self.disk.clone();
        run_blocking(move || disk.delete(&path, &condition)).await
    }
}

type UserMetadata = BTreeMap<String, String>;

/// Runs file operations where they may block.
#[expect(
    clippy::disallowed_methods,
    reason = "what tokio::fs does for every single call, done once for a whole operation; no CPU \
              work, and the operating system's lock is not held across an await"
)]
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(error_from_io),
        Err(stopped) => {
            Err(Error::internal("a file operation did not finish").with_source(stopped))
        }
    }
}

/// The fault of an I/O error. The text does not repeat the path: it may hold a person's file name.
fn error_from_io(error: io::Error) -> Error {
    use io::ErrorKind as Kind;
    let (fault, what) = match error.kind() {
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            (Fault::Denied, "the folder store may not be read or written")
        }
        Kind::NotFound => {
            (Fault::Unavailable, "the folder store is not there: is its volume mounted?")
        }
        Kind::StorageFull | Kind::QuotaExceeded => {
            (Fault::Unavailable, "the folder store has no space left")
        }
        Kind::IsADirectory | Kind::NotADirectory | Kind::AlreadyExists => {
            (Fault::Rejected, "a key of the folder store is the folder of other keys, or below one")
        }
        Kind::InvalidFilename => (Fault::Rejected, "a key of the folder store has no file name"),
        _ => (Fault::Transient, "the folder store failed"),
    };
    Error::new(fault, what).with_source(error)
}

#[async_trait]
impl ObjectStore for FolderStore {
    fn describe(&self) -> String {
        format!("folder {}", self.disk.root.display())
    }

    fn key_of_file(&self, file: &Path) -> Option<String> {
        let below = file.strip_prefix(&self.canonical).ok()?;
        let segments = below.iter().map(paths::decode).collect::<Option<Vec<_>>>()?;
        (!segments.is_empty()).then(|| segments.join("/"))
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        let path = paths::path_of(&self.disk.root, key)?;
        let disk = self.disk.clone();
        run_blocking(move || disk.head(&path)).await
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        let path = paths::path_of(&self.disk.root, key)?;
        let disk = self.disk.clone();
        run_blocking(move || disk.get(&path, &what)).await
    }

    async fn put(&self, key: &str, bytes: Bytes, metadata: &UserMetadata) -> Result<Etag> {
        match self.write_file(key, bytes, lower_case_names(metadata), FileCondition::Always).await?
        {
            PutResult::Written(etag) => Ok(etag),
            PutResult::Refused => Err(Error::internal("a write without condition was refused")),
        }
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        self.write_file(key, bytes, UserMetadata::new(), FileCondition::Absent).await
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.write_file(key, bytes, UserMetadata::new(), FileCondition::Is(etag.clone())).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.remove_file(key, FileCondition::Always).await.map(drop)
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.remove_file(key, FileCondition::Is(etag.clone())).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let root = self.disk.root.clone();
        let (prefix, after) = (prefix.to_owned(), after.map(ToOwned::to_owned));
        run_blocking(move || {
            let wanted = listing::ListQuery { prefix: &prefix, after: after.as_deref(), max };
            let mut found = Vec::new();
            listing::collect_entries(&root, "", &wanted, &mut found)?;
            Ok(found)
        })
        .await
    }
}

fn lower_case_names(metadata: &UserMetadata) -> UserMetadata {
    metadata.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
}
