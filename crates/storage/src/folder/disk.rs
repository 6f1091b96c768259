//! The file operations behind the folder store; all of them block.
//!
//! A file is never changed in place: it is written beside the tree, synced, and then linked (if
//! absent) or renamed (otherwise) to its name, so that a reader sees one version or the other and a
//! crash leaves at most a file in `tmp/`. Writers of one key exclude each other by a lock of the
//! operating system, which ends with its process. Local file systems only: network file systems
//! differ in the guarantees of links and locks. Symbolic links are neither objects nor folders: a
//! link placed in the tree cannot lead to reads or writes outside of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Etag, FetchedObject, GetOptions, GetResult, ObjectMeta, PutResult};
use docmill_core::model::digest;

/// Everything of ours inside the folder; no key has this name.
const OURS: &str = ".docmill-store";
/// A file in `tmp/` older than this belongs to no living writer.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// The condition of a write.
pub(super) enum FileCondition {
    Always,
    Absent,
    Is(Etag),
}

/// One object to be written.
pub(super) struct FileDraft {
    pub(super) path: PathBuf,
    pub(super) bytes: bytes::Bytes,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) condition: FileCondition,
}

/// The folder that holds the files of the store.
#[derive(Debug, Clone)]
pub(super) struct StoreDirectory {
    pub(super) root: PathBuf,
}

impl StoreDirectory {
    /// Creates what is missing and removes what a crash left behind.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        for part in ["tmp", "locks", "metadata"] {
            fs::create_dir_all(root.join(OURS).join(part))?;
        }
        // Absolute, so that a later change of the working directory does not move the store.
        let disk = Self { root: fs::canonicalize(root)? };
        disk.remove_leftovers()?;
        Ok(disk)
    }

    fn own_path(&self, part: &str) -> PathBuf {
        self.root.join(OURS).join(part)
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.own_path("tmp"))? {
            let entry = entry?;
            let age = entry.metadata().and_then(|meta| meta.modified()).map(|at| at.elapsed());
            if matches!(age, Ok(Ok(age)) if age > LEFTOVER_AGE) {
                ignore_missing(fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }

    /// Excludes other writers of the path, in this process and in others, until dropped. The lock
    /// files are a fixed set and never removed: a removed one could be locked twice.
    fn lock_path(&self, path: &Path) -> io::Result<File> {
        let shard = self.path_fingerprint(path).get(..2).unwrap_or_default().to_owned();
        let file = File::create(self.own_path("locks").join(shard))?;
        file.lock()?;
        Ok(file)
    }

    fn path_fingerprint(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        digest::sha256_hex(relative.as_os_str().as_encoded_bytes())
    }

    fn open_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.root, flags, Mode::empty())?)
    }

    /// The names between the root and the path.
    fn names<'a>(&self, path: &'a Path) -> impl Iterator<Item = &'a OsStr> {
        path.strip_prefix(&self.root).unwrap_or(path).iter()
    }

    /// Opens a file from folder to folder, so that no link leads elsewhere. `None`: there is none;
    /// folders and pipes are no objects.
    fn open_file(&self, path: &Path) -> io::Result<Option<File>> {
        let mut entry = self.open_root()?;
        let mut names = self.names(path).peekable();
        while let Some(name) = names.next() {
            // Opening a pipe without a writer does not block.
            let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
            match open_entry(&entry, name, kind)? {
                Some(found) => entry = found,
                None => return self.ensure_mounted().map(|()| None),
            }
        }
        let file = File::from(entry);
        let is_file = file.metadata()?.is_file();
        Ok(is_file.then_some(file))
    }

    /// Without our own folder this is the mount point of an unmounted volume, not a store: objects
    /// are not missing then.
    fn ensure_mounted(&self) -> io::Result<()> {
        fs::metadata(self.root.join(OURS)).map(drop)
    }

    /// Makes the folders of a path that are missing; a link in the place of one is refused.
    fn create_folders(&self, path: &Path) -> io::Result<()> {
        let mut folder = self.open_root()?;
        for name in self.names(path) {
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let made = open_entry(&folder, name, OFlags::DIRECTORY)?;
            folder = made.ok_or(io::ErrorKind::NotADirectory)?;
        }
        Ok(())
    }

    fn file_metadata(&self, path: &Path) -> io::Result<Option<fs::Metadata>> {
        self.open_file(path)?.map(|file| file.metadata()).transpose()
    }

    fn current_etag(&self, path: &Path) -> io::Result<Option<Etag>> {
        Ok(self.file_metadata(path)?.map(|meta| etag_of(&meta)))
    }

    pub(super) fn head(&self, path: &Path) -> io::Result<Option<ObjectMeta>> {
        loop {
            let Some(meta) = self.file_metadata(path)? else { return Ok(None) };
            let etag = etag_of(&meta);
            let metadata = self.read_metadata(path, &etag)?;
            // Without side file: either it has none, or a writer replaced both meanwhile.
            if metadata.is_none()
                && self.file_metadata(path)?.map(|now| etag_of(&now)).as_ref() != Some(&etag)
            {
                continue;
            }
            let metadata = metadata.unwrap_or_default();
            return Ok(Some(ObjectMeta {
                size: meta.len(),
                etag,
                modified: meta.modified()?,
                metadata,
            }));
        }
    }

    pub(super) fn get(&self, path: &Path, what: &GetOptions) -> io::Result<GetResult> {
        let Some(file) = self.open_file(path)? else { return Ok(GetResult::Missing) };
        // Of the open file, not of the name: it may have been replaced since.
        let meta = file.metadata()?;
        let etag = etag_of(&meta);
        if what.if_match.as_ref().is_some_and(|wanted| *wanted != etag) {
            return Ok(GetResult::Changed);
        }
        if meta.len() > what.at_most {
            return Ok(GetResult::TooLarge { size: meta.len() });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
        file.take(what.at_most.saturating_add(1)).read_to_end(&mut bytes)?;
        match u64::try_from(bytes.len()) {
            Ok(size) if size > what.at_most => Ok(GetResult::TooLarge { size }),
            _ => Ok(GetResult::Found(FetchedObject { bytes: bytes.into(), etag })),
        }
    }

    pub(super) fn write(&self, draft: &FileDraft) -> io::Result<PutResult> {
        let (temporary, etag) = self.write_temporary(&draft.bytes)?;
        let done = self.publish_file(draft, &temporary, &etag);
        ignore_missing(fs::remove_file(&temporary))?;
        Ok(if done? { PutResult::Written(etag) } else { PutResult::Refused })
    }

    /// A synced file beside the tree and the stamp it will keep. Its time is set explicitly
    /// because the file system's own clock ticks only every few milliseconds, and two versions
    /// written within one tick must be distinguishable.
    fn write_temporary(&self, bytes: &[u8]) -> io::Result<(PathBuf, Etag)> {
        let path = self.own_path("tmp").join(uuid::Uuid::new_v4().to_string());
        let mut file = File::create_new(&path)?;
        file.write_all(bytes)?;
        file.set_modified(SystemTime::now())?;
        file.sync_all()?;
        let etag = etag_of(&file.metadata()?);
        Ok((path, etag))
    }

    fn publish_file(&self, draft: &FileDraft, temporary: &Path, etag: &Etag) -> io::Result<bool> {
        let path = &draft.path;
        let parent = path.parent().unwrap_or(&self.root);
        self.create_folders(parent)?;
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let _lock = self.lock_path(path)?;
        match &draft.condition {
            FileCondition::Absent => match fs::hard_link(temporary, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                other => other?,
            },
            FileCondition::Is(wanted) if self.current_etag(path)?.as_ref() != Some(wanted) => {
                return Ok(false);
            }
            FileCondition::Always | FileCondition::Is(_) => {
                self.write_metadata(path, etag, &draft.metadata)?;
                fs::rename(temporary, path)?;
            }
        }
        self.remove_old_metadata(path, Some(etag))?;
        sync_directory(parent)?;
        Ok(true)
    }

    /// Deletes; `false` if the condition did not hold (a missing file fulfils `Always` only).
    pub(super) fn delete(&self, path: &Path, condition: &FileCondition) -> io::Result<bool> {
        let _lock = self.lock_path(path)?;
        let found = self.current_etag(path)?;
        match condition {
            FileCondition::Is(wanted) if found.as_ref() != Some(wanted) => return Ok(false),
            _ if found.is_none() => return Ok(true),
            _ => {}
        }
        ignore_missing(fs::remove_file(path))?;
        self.remove_old_metadata(path, None)?;
        sync_directory(path.parent().unwrap_or(&self.root))?;
        Ok(true)
    }

    /// Side files are named after the version they belong to, so that a crash between writing
    /// the two never pairs one version with the other's metadata.
    fn side_files(&self, path: &Path) -> PathBuf {
        self.own_path("metadata").join(self.path_fingerprint(path))
    }

    fn read_metadata(
        &self,
        path: &Path,
        etag: &Etag,
    ) -> io::Result<Option<BTreeMap<String, String>>> {
        match fs::read(self.side_files(path).join(&etag.0)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write_metadata(
        &self,
        path: &Path,
        etag: &Etag,
        metadata: &BTreeMap<String, String>,
    ) -> io::Result<()> {
        if metadata.is_empty() {
            return Ok(());
        }
        let folder = self.side_files(path);
        fs::create_dir_all(&folder)?;
        let mut file = File::create(folder.join(&etag.0))?;
        file.write_all(&serde_json::to_vec(metadata)?)?;
        file.sync_all()?;
        sync_directory(&folder)
    }

    /// Removes the side files of every version but `keep`.
    fn remove_old_metadata(&self, path: &Path, keep: Option<&Etag>) -> io::Result<()> {
        let folder = self.side_files(path);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let mut kept = false;
        for entry in entries {
            let entry = entry?;
            if keep.is_some_and(|etag| entry.file_name() == etag.0.as_str()) {
                kept = true;
            } else {
                ignore_missing(fs::remove_file(entry.path()))?;
            }
        }
        if kept { Ok(()) } else { ignore_missing(fs::remove_dir(&folder)) }
    }
}

/// The version of a file: changes with every write, also with one of the same bytes.
fn etag_of(meta: &fs::Metadata) -> Etag {
    Etag(format!("{:x}.{:09}-{:x}-{:x}", meta.mtime(), meta.mtime_nsec(), meta.size(), meta.ino()))
}

/// The entry of an open folder; `None` if there is none, or a link, or no folder where one has to
/// be.
fn open_entry(folder: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<Option<OwnedFd>> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(entry) => Ok(Some(entry)),
        // Not a folder, a link, or a socket, which cannot be opened.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::fault::Fault;

    use super::*;

    fn write(
        disk: &StoreDirectory,
        key: &str,
        bytes: &'static [u8],
        condition: FileCondition,
    ) -> PutResult {
        disk.write(&FileDraft {
            path: disk.root.join(key),
            bytes: bytes.into(),
            metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            condition,
        })
        .unwrap()
    }

    #[test]
    fn remains_of_a_crash_are_never_listed_and_removed_after_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StoreDirectory::open(folder.path()).unwrap();
        let young = disk.write_temporary(b"half").unwrap().0;
        let old = disk.write_temporary(b"half").unwrap().0;
        let past = SystemTime::now() - LEFTOVER_AGE - Duration::from_secs(1);
        File::options().write(true).open(&old).unwrap().set_modified(past).unwrap();
        StoreDirectory::open(folder.path()).unwrap();
        assert!(young.exists(), "another process may still be writing it");
        assert!(!old.exists());
    }

    #[test]
    fn no_object_is_missing_where_the_volume_of_the_folder_is_not_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StoreDirectory::open(folder.path()).unwrap();
        assert!(disk.head(&disk.root.join("k")).unwrap().is_none());
        fs::remove_dir_all(folder.path().join(OURS)).unwrap();
        let error = disk.head(&disk.root.join("k")).unwrap_err();
        assert_eq!(super::super::error_from_io(error).fault, Fault::Unavailable);
    }

    #[test]
    fn side_files_do_not_pile_up() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StoreDirectory::open(folder.path()).unwrap();
        for _ in 0..3 {
            write(&disk, "k", b"same", FileCondition::Always);
        }
        let side = disk.side_files(&disk.root.join("k"));
        assert_eq!(fs::read_dir(&side).unwrap().count(), 1);
        assert!(disk.delete(&disk.root.join("k"), &FileCondition::Always).unwrap());
        assert!(!side.exists());
        assert_eq!(fs::read_dir(disk.own_path("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn a_side_file_of_a_write_that_never_happened_is_not_taken_for_the_objects() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StoreDirectory::open(folder.path()).unwrap();
        write(&disk, "k", b"one", FileCondition::Always);
        let path = disk.root.join("k");
        let other = BTreeMap::from([("a".to_owned(), "never".to_owned())]);
        disk.write_metadata(&path, &Etag("never-renamed".to_owned()), &other).unwrap();
        assert_eq!(disk.head(&path).unwrap().unwrap().metadata["a"], "b");
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read_or_written_through_a_link_in_it() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk = StoreDirectory::open(folder.path()).unwrap();
        fs::write(outside.path().join("secret"), "of somebody else").unwrap();
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, disk.root.join(name)).unwrap();
        };
        link(&outside.path().join("secret"), "file");
        link(outside.path(), "folder");
        let whole = GetOptions { at_most: 1 << 20, if_match: None };
        for key in ["file", "folder/secret"] {
            let path = disk.root.join(key);
            assert!(matches!(disk.get(&path, &whole).unwrap(), GetResult::Missing), "{key}");
            assert!(disk.head(&path).unwrap().is_none(), "{key}");
            assert!(disk.delete(&path, &FileCondition::Always).unwrap(), "{key}");
        }
        let draft = |key: &str| FileDraft {
            path: disk.root.join(key),
            bytes: "ours".into(),
            metadata: BTreeMap::new(),
            condition: FileCondition::Always,
        };
        for key in ["folder/secret", "folder/new", "folder/new/deep"] {
            assert!(disk.write(&draft(key)).is_err(), "{key}");
        }
        assert!(matches!(
            write(&disk, "file", b"ours", FileCondition::Always),
            PutResult::Written(_)
        ));
        let secret = fs::read_to_string(outside.path().join("secret")).unwrap();
        assert_eq!(secret, "of somebody else");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        let own = disk.get(&disk.root.join("file"), &whole).unwrap();
        assert!(matches!(own, GetResult::Found(found) if found.bytes == "ours"));
    }
}
