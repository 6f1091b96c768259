//! A folder of this machine: files in it are taken when they are complete, and moved to `done` or
//! `failed` below it.
//!
//! A file is complete if two looks find it unchanged in size and time; a file that is renamed into
//! the folder always is. Links, hidden files and folders are left alone. A file that is replaced
//! while it is taken is not moved: the new one is taken next. Not promised: files whose writer pauses
//! for longer than the time between the looks; those are to be renamed into the folder.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::config::InboxSourceConfig;
use docmill_core::fault::{Error, Fault, Result};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncReadExt as _;

use super::{ArrivedItem, InboxSource, ItemMark, ItemReading, MAX_LISTED_ITEMS, write_piece};

/// Longest time between the two looks that must find a file unchanged.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 128 << 10;
/// Bytes of a document's name.
const MAX_NAME_BYTES: usize = 120;
/// Most files of one name beside each other.
const MAX_SAME_NAMES: u32 = 10_000;

/// A folder.
pub struct FolderSource {
    config: InboxSourceConfig,
    settle_pause: Duration,
    listed: HashMap<String, ListedFile>,
}

/// A file as the list had it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedFile {
    name: OsString,
    state: FileState,
}

/// A file is the same as long as these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl FolderSource {
    /// Nothing is read. `poll` bounds the time between the two looks.
    pub fn new(config: InboxSourceConfig, poll: Duration) -> Self {
        Self { config, settle_pause: poll.min(MAX_CHECK_INTERVAL), listed: HashMap::new() }
    }

    async fn look(&self) -> Result<Vec<ListedFile>> {
        let path = self.config.path.clone();
        let looked = run_blocking(move || list_files(&path)).await;
        looked.map_err(|error| unreadable("the folder cannot be read", error))
    }

    async fn read(
        &self,
        listed: &ListedFile,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let path = self.config.path.join(&listed.name);
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path).await;
        let mut source = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(ItemReading::Unsettled);
            }
            Err(error) => return Err(unreadable_file(error)),
        };
        if !is_unchanged(&source, listed).await? {
            return Ok(ItemReading::Unsettled);
        }
        let (mut piece, mut read) = (vec![0; PIECE_BYTES], 0_u64);
        loop {
            let count = source.read(&mut piece).await.map_err(unreadable_file)?;
            if count == 0 {
                break;
            }
            read += u64::try_from(count).unwrap_or(u64::MAX);
            if read > max_bytes {
                return Ok(ItemReading::TooLarge);
            }
            write_piece(file, piece.get(..count).unwrap_or_default()).await?;
        }
        match is_unchanged(&source, listed).await? {
            true => Ok(ItemReading::Whole),
            false => Ok(ItemReading::Unsettled),
        }
    }
}

#[async_trait]
impl InboxSource for FolderSource {
    fn describe(&self) -> String {
        format!("folder {}", self.config.path.display())
    }

    async fn open(&mut self) -> Result<()> {
        for name in [self.config.done_name(), self.config.failed_name()] {
            let target = self.config.path.join(name);
            match tokio::fs::create_dir(&target).await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let text = "the folders for taken files cannot be made: check path and rights";
                    return Err(Error::new(Fault::Denied, text).with_source(error));
                }
            }
            let found = tokio::fs::symlink_metadata(&target).await;
            if !found.is_ok_and(|found| found.is_dir()) {
                let text = "done and failed must be folders in path, and no links";
                return Err(Error::new(Fault::Misconfigured, text));
            }
        }
        Ok(())
    }

    async fn list_new(&mut self) -> Result<Vec<ArrivedItem>> {
        let before = self.look().await?;
        self.listed.clear();
        if before.is_empty() {
            return Ok(Vec::new());
        }
        tokio::time::sleep(self.settle_pause).await;
        let mut items = Vec::new();
        for file in self.look().await? {
            if !before.contains(&file) {
                continue;
            }
            let label = format!("inode {}", file.state.inode);
            items.push(ArrivedItem {
                label: label.clone(),
                size: Some(file.state.size),
                file_name: document_name(&file.name),
                identity: None,
            });
            self.listed.insert(label, file);
        }
        Ok(items)
    }

    async fn read_item(
        &mut self,
        item: &ArrivedItem,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        let Some(listed) = self.listed.get(&item.label) else { return Ok(ItemReading::Unsettled) };
        self.read(listed, file, max_bytes).await
    }

    async fn mark_item(&mut self, item: &ArrivedItem, mark: ItemMark) -> Result<()> {
        let Some(listed) = self.listed.remove(&item.label) else { return Ok(()) };
        let folder = match mark {
            ItemMark::Done => self.config.done_name(),
            ItemMark::Failed => self.config.failed_name(),
        };
        let (path, folder) = (self.config.path.clone(), self.config.path.join(folder));
        let moved = run_blocking(move || move_file(&path, &folder, &listed)).await;
        moved
            .map_err(|error| unreadable("a file cannot be moved: check the folder's rights", error))
    }

    async fn wait_for_items(&mut self, longest: Duration) -> Result<()> {
        tokio::time::sleep(longest).await;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "one at a time for each folder; it waits for a disk")]
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|died| Err(io::Error::other(died)))
}

fn unreadable(what: &'static str, error: io::Error) -> Error {
    Error::new(Fault::Unavailable, what).with_source(error)
}

fn unreadable_file(error: io::Error) -> Error {
    Error::new(Fault::Rejected, "the file cannot be read").with_source(error)
}

async fn is_unchanged(open: &File, listed: &ListedFile) -> Result<bool> {
    let metadata = open.metadata().await.map_err(unreadable_file)?;
    Ok(metadata.is_file() && FileState::of(&metadata) == listed.state)
}

/// The files of a folder that are neither hidden nor links.
fn list_files(folder: &Path) -> io::Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if files.len() >= MAX_LISTED_ITEMS {
            break;
        }
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match std::fs::symlink_metadata(entry.path()) {
            Ok(found) if found.is_file() => {
                files.push(ListedFile { name, state: FileState::of(&found) });
            }
            _ => {}
        }
    }
    Ok(files)
}

/// A name that any system takes.
fn document_name(name: &OsStr) -> String {
    let mut kept = String::new();
    for sign in name.to_string_lossy().chars().filter(|sign| !sign.is_control()) {
        if kept.len() + sign.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        kept.push(sign);
    }
    if kept.trim_matches(['.', ' ']).is_empty() { "document".to_owned() } else { kept }
}

/// Moves a file that was taken, unless another has its name by now.
fn move_file(folder: &Path, target: &Path, listed: &ListedFile) -> io::Result<()> {
    let source = folder.join(&listed.name);
    if !is_file(&source, listed)? {
        return Ok(());
    }
    let moved = move_to_free_name(&source, target, &listed.name)?;
    if is_file(&moved, listed)? {
        return Ok(());
    }
    // Replaced between the look and the move: it is a new file and belongs where it was.
    rename_new(&moved, &source)
}

fn is_file(path: &Path, listed: &ListedFile) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(found.is_file() && FileState::of(&found) == listed.state),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves a file into a folder, under a name that no other has there.
fn move_to_free_name(source: &Path, folder: &Path, name: &OsStr) -> io::Result<PathBuf> {
    for number in 0..MAX_SAME_NAMES {
        let target = match number {
            0 => folder.join(name),
            _ => {
                let mut numbered = OsString::from(format!("{number}-"));
                numbered.push(name);
                folder.join(numbered)
            }
        };
        match rename_new(source, &target) {
            Ok(()) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files of one name"))
}

/// Renames without replacing anything.
fn rename_new(source: &Path, target: &Path) -> io::Result<()> {
    match renameat_with(CWD, source, CWD, target, RenameFlags::NOREPLACE) {
        // File systems of networks may lack it.
        Err(Errno::INVAL | Errno::NOSYS) => match std::fs::symlink_metadata(target) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => std::fs::rename(source, target),
        },
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Watched {
        folder: tempfile::TempDir,
        source: FolderSource,
    }

    impl Watched {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let config = InboxSourceConfig {
                path: folder.path().to_owned(),
                ..InboxSourceConfig::default()
            };
            let config =
                InboxSourceConfig { source: docmill_core::config::InboxProtocol::Folder, ..config };
            let mut source = FolderSource::new(config, Duration::from_secs(60));
            source.open().await.unwrap();
            Self { folder, source }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let entries = std::fs::read_dir(self.folder.path().join(folder)).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        }

        async fn read(&mut self, item: &ArrivedItem, max_bytes: u64) -> ItemReading {
            let mut copy = File::from_std(tempfile::tempfile().unwrap());
            self.source.read_item(item, &mut copy, max_bytes).await.unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn links_hidden_files_and_folders_are_left_alone() {
        let mut watched = Watched::new().await;
        let outside = tempfile::NamedTempFile::new().unwrap();
        let path = watched.folder.path();
        std::os::unix::fs::symlink(outside.path(), path.join("link.pdf")).unwrap();
        std::fs::create_dir(path.join("below")).unwrap();
        watched.write(".part.pdf", "x");
        watched.write("below/b.pdf", "x");
        watched.write("\u{202e}חשבונית.pdf", "x");
        let items = watched.source.list_new().await.unwrap();
        let names: Vec<_> = items.iter().map(|item| item.file_name.as_str()).collect();
        assert_eq!(names, ["\u{202e}חשבונית.pdf"]);
        assert!(!items[0].label.contains("pdf"), "names are data: {}", items[0].label);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_grows_between_the_looks_is_not_listed() {
        let mut watched = Watched::new().await;
        watched.write("whole.pdf", "x");
        watched.write("grows.pdf", "x");
        let path = watched.folder.path().join("grows.pdf");
        let grow = async {
            tokio::time::sleep(MAX_CHECK_INTERVAL / 2).await;
            std::fs::write(&path, "xy").unwrap();
        };
        let (items, ()) = tokio::join!(watched.source.list_new(), grow);
        let names: Vec<_> = items.unwrap().into_iter().map(|item| item.file_name).collect();
        assert_eq!(names, ["whole.pdf"]);
        assert_eq!(watched.source.list_new().await.unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_replaced_while_it_is_taken_stays() {
        let mut watched = Watched::new().await;
        watched.write("a.pdf", "first");
        let items = watched.source.list_new().await.unwrap();
        assert_eq!(watched.read(&items[0], 5).await, ItemReading::Whole);
        watched.write("new.pdf", "second");
        let path = watched.folder.path();
        std::fs::rename(path.join("new.pdf"), path.join("a.pdf")).unwrap();
        watched.source.mark_item(&items[0], ItemMark::Done).await.unwrap();
        assert_eq!(watched.names("done"), Vec::<String>::new());
        assert_eq!(watched.names(""), ["a.pdf", "done", "failed"]);
        let items = watched.source.list_new().await.unwrap();
        assert_eq!(watched.read(&items[0], 5).await, ItemReading::TooLarge);
        watched.source.mark_item(&items[0], ItemMark::Failed).await.unwrap();
        assert_eq!(watched.names("failed"), ["a.pdf"]);
    }

    #[tokio::test(start_paused = true)]
    async fn files_of_one_name_do_not_replace_each_other() {
        let mut watched = Watched::new().await;
        for text in ["one", "two", "three"] {
            watched.write("a.pdf", text);
            let items = watched.source.list_new().await.unwrap();
            watched.source.mark_item(&items[0], ItemMark::Done).await.unwrap();
        }
        assert_eq!(watched.names("done"), ["1-a.pdf", "2-a.pdf", "a.pdf"]);
    }

    #[test]
    fn a_documents_name_is_one_that_any_system_takes() {
        for (name, kept) in [("a.pdf", "a.pdf"), ("a\u{7}\n.pdf", "a.pdf"), ("\u{1}", "document")] {
            assert_eq!(document_name(OsStr::new(name)), kept);
        }
        assert!(document_name(OsStr::new(&"ü".repeat(120))).len() <= MAX_NAME_BYTES);
    }
}
