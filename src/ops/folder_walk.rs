//! The files below a folder, found one folder at a time, so that a tree of any size costs no more
//! memory than the names of one folder.
//!
//! Names that begin with a dot are passed over. Links to folders are not followed, so that no walk
//! leaves its folder or goes in a circle; whether links to files are is a matter of whose folder it
//! is. Not promised: a whole picture of a folder that changes meanwhile.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Folders are followed so deep.
const DEEPEST: usize = 64;

/// Whether links to files are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLinks {
    /// A link stands for the file: the folder is of the person who asks.
    Followed,
    /// A link is nothing: the folder may be somebody else's work, and its links lead anywhere.
    PassedOver,
}

/// One step of a walk.
#[derive(Debug)]
pub(super) enum WalkStep {
    /// A file.
    File(PathBuf),
    /// A folder that cannot be read, or not to its end; the walk goes on with the others.
    Unreadable(PathBuf, io::Error),
}

/// A walk through a folder and those below it.
#[derive(Debug)]
pub(super) struct FolderWalk {
    links: FileLinks,
    /// Of the folder that was read last, by name.
    files: VecDeque<PathBuf>,
    /// Folders still to be read, the next one last, and how deep they lie.
    folders: Vec<(PathBuf, usize)>,
}

impl FolderWalk {
    /// A walk that begins at this folder, which may itself be a link.
    pub(super) fn new(root: &Path, links: FileLinks) -> Self {
        Self { links, files: VecDeque::new(), folders: vec![(root.to_owned(), 0)] }
    }

    /// The next step; the files of a folder by name, then its folders by name. `None` at the end.
    pub(super) async fn next_step(&mut self) -> Option<WalkStep> {
        loop {
            if let Some(file) = self.files.pop_front() {
                return Some(WalkStep::File(file));
            }
            let (folder, depth) = self.folders.pop()?;
            if let Err(error) = self.read_folder(&folder, depth).await {
                return Some(WalkStep::Unreadable(folder, error));
            }
        }
    }

    async fn read_folder(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        let mut entries = tokio::fs::read_dir(folder).await?;
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        while let Some(entry) = entries.next_entry().await? {
            let (path, kind) = (entry.path(), entry.file_type().await?);
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if kind.is_file() || kind.is_symlink() && self.is_file_behind(&path).await {
                files.push(path);
            }
        }
        files.sort();
        folders.sort_by(|a, b| b.0.cmp(&a.0));
        self.files = files.into();
        self.folders.append(&mut folders);
        Ok(())
    }

    async fn is_file_behind(&self, link: &Path) -> bool {
        self.links == FileLinks::Followed
            && tokio::fs::metadata(link).await.is_ok_and(|meta| meta.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_walk_stays_in_its_folder_and_follows_links_to_files_only_where_it_may() {
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
        for (links, expected) in [
            (FileLinks::Followed, vec!["link", "z", "b/y", "b/a/x"]),
            (FileLinks::PassedOver, vec!["z", "b/y", "b/a/x"]),
        ] {
            let (mut walk, mut found) = (FolderWalk::new(dir.path(), links), Vec::new());
            while let Some(step) = walk.next_step().await {
                let WalkStep::File(file) = step else { panic!("{step:?}") };
                found.push(file);
            }
            let expected: Vec<PathBuf> = expected.into_iter().map(at).collect();
            assert_eq!(found, expected, "{links:?}");
        }
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_read_is_one_step_and_not_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let mut walk = FolderWalk::new(&gone, FileLinks::PassedOver);
        let step = walk.next_step().await;
        assert!(matches!(&step, Some(WalkStep::Unreadable(folder, _)) if *folder == gone));
        assert!(walk.next_step().await.is_none());
    }
}
