//! The files below a folder, found one folder at a time, so that a tree of any size costs no more
//! memory than the names of one folder.
//!
//! Names that begin with a dot are skipped. Links are reported and not followed: no walk leaves its
//! folder or loops, and a writer of the folder cannot add other files by a link. Not promised: a
//! consistent picture of a folder that changes meanwhile.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Folders are followed so deep.
const MAX_DEPTH: usize = 64;

/// One step of a walk.
#[derive(Debug)]
pub enum WalkStep {
    /// A file.
    File(PathBuf),
    /// A link, which is not followed.
    Link(PathBuf),
    /// A folder that cannot be read, or not to its end; the walk goes on with the others.
    Unreadable(PathBuf, io::Error),
}

/// A walk through a folder and those below it.
#[derive(Debug)]
pub struct FolderWalk {
    /// Files and links of the folder that was read last, by name.
    entries: VecDeque<WalkEntry>,
    /// Folders still to be read, the next one last, and how deep they lie.
    folders: Vec<(PathBuf, usize)>,
}

/// Something in a folder that is no folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WalkEntry {
    path: PathBuf,
    is_link: bool,
}

impl FolderWalk {
    /// A walk that begins at this folder, which may itself be a link.
    pub fn new(root: &Path) -> Self {
        Self { entries: VecDeque::new(), folders: vec![(root.to_owned(), 0)] }
    }

    /// The next step; the files and links of a folder by name, then its folders by name. `None` at
    /// the end.
    pub async fn next_step(&mut self) -> Option<WalkStep> {
        loop {
            match self.entries.pop_front() {
                Some(WalkEntry { path, is_link: true }) => return Some(WalkStep::Link(path)),
                Some(WalkEntry { path, is_link: false }) => return Some(WalkStep::File(path)),
                None => {}
            }
            let (folder, depth) = self.folders.pop()?;
            if let Err(error) = self.read_folder(&folder, depth).await {
                return Some(WalkStep::Unreadable(folder, error));
            }
        }
    }

    async fn read_folder(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        let mut entries = tokio::fs::read_dir(folder).await?;
        let (mut found, mut folders) = (Vec::new(), Vec::new());
        while let Some(entry) = entries.next_entry().await? {
            let (path, kind) = (entry.path(), entry.file_type().await?);
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file() || kind.is_symlink() {
                found.push(WalkEntry { path, is_link: kind.is_symlink() });
            }
        }
        found.sort();
        folders.sort_by(|a, b| b.0.cmp(&a.0));
        self.entries = found.into();
        self.folders.append(&mut folders);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_walk_stays_in_its_folder_and_names_links_without_following_them() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("b/a")).unwrap();
        std::fs::create_dir_all(at(".git")).unwrap();
        for name in ["z", "b/y", "b/a/x", ".hidden", ".git/w"] {
            std::fs::write(at(name), "x").unwrap();
        }
        std::fs::write(elsewhere.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("secret"), at("link")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("b/folder")).unwrap();
        std::os::unix::fs::symlink(dir.path(), at("b/loop")).unwrap();
        std::os::unix::fs::symlink(at("gone"), at("broken")).unwrap();
        let (mut walk, mut files, mut links) =
            (FolderWalk::new(dir.path()), Vec::new(), Vec::new());
        while let Some(step) = walk.next_step().await {
            match step {
                WalkStep::File(file) => files.push(file),
                WalkStep::Link(link) => links.push(link),
                WalkStep::Unreadable(..) => panic!("{step:?}"),
            }
        }
        assert_eq!(files, ["z", "b/y", "b/a/x"].map(at));
        assert_eq!(links, ["broken", "link", "b/folder", "b/loop"].map(at));
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_read_is_one_step_and_not_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let mut walk = FolderWalk::new(&gone);
        let step = walk.next_step().await;
        assert!(matches!(&step, Some(WalkStep::Unreadable(folder, _)) if *folder == gone));
        assert!(walk.next_step().await.is_none());
    }
}
