//! The files that paths mean.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;

/// A folder's folders are followed so deep.
const DEEPEST: usize = 32;

/// What is to be handed in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Files, in the order of the paths, within a folder by name.
    pub files: Vec<PathBuf>,
    /// Paths that lead to nothing, and folders' files that are no documents.
    pub skipped: Vec<Skipped>,
}

/// A path that is not handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which.
    pub file: PathBuf,
    /// Why.
    pub problem: String,
    /// Whether the person named this path, rather than a folder it lies in.
    pub named: bool,
}

/// Looks through paths: files as they are; folders with all below them but what is hidden, their
/// files only if the beginning is that of a document. Links to folders are not followed.
pub async fn find(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        match tokio::fs::metadata(path).await {
            Ok(meta) if meta.is_dir() => folder(path, &mut found).await,
            Ok(meta) if meta.is_file() => found.files.push(path.clone()),
            Ok(_) => found.skip(path, "neither a file nor a folder", true),
            Err(error) => found.skip(path, error.to_string(), true),
        }
    }
    // The same file may be below two of the paths.
    let mut seen = std::collections::HashSet::new();
    found.files.retain(|file| seen.insert(file.clone()));
    found
}

impl Found {
    fn skip(&mut self, file: &Path, problem: impl Into<String>, named: bool) {
        self.skipped.push(Skipped { file: file.to_owned(), problem: problem.into(), named });
    }
}

async fn folder(root: &Path, found: &mut Found) {
    let before = found.files.len();
    let mut waiting = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = waiting.pop() {
        let mut folders = Vec::new();
        let names = match names(&dir).await {
            Ok(names) => names,
            Err(error) => {
                found.skip(&dir, error.to_string(), dir == root);
                continue;
            }
        };
        for (path, kind) in names {
            if kind.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if tokio::fs::metadata(&path).await.is_ok_and(|meta| meta.is_file()) {
                sort_in(path, found).await;
            }
        }
        waiting.extend(folders.into_iter().rev());
    }
    if found.files.len() == before {
        found.skip(root, "no documents in this folder", true);
    }
}

async fn names(dir: &Path) -> std::io::Result<Vec<(PathBuf, std::fs::FileType)>> {
    let mut entries = tokio::fs::read_dir(dir).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        if !entry.file_name().to_string_lossy().starts_with('.') {
            names.push((entry.path(), entry.file_type().await?));
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

/// A file of a folder is handed in if it looks like a document.
async fn sort_in(path: PathBuf, found: &mut Found) {
    match beginning(&path).await {
        Ok(bytes) if crate::pages::Format::sniff(&bytes).is_some() => found.files.push(path),
        Ok(bytes) if bytes.is_empty() => found.skip(&path, "empty", false),
        Ok(_) => found.skip(&path, "not a document", false),
        Err(error) => found.skip(&path, error.to_string(), false),
    }
}

async fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(4096).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads a file, its size checked before; the error is in words for the report.
pub(super) async fn read(path: &Path, largest: u64) -> Result<Bytes, String> {
    let size = tokio::fs::metadata(path).await.map_err(|error| error.to_string())?.len();
    if size == 0 {
        return Err("empty".to_owned());
    }
    if size > largest {
        return Err(format!("{size} bytes, limits.document_bytes is {largest}"));
    }
    tokio::fs::read(path).await.map(Bytes::from).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_gives_its_documents_and_names_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("b/c")).unwrap();
        std::fs::create_dir_all(at("empty")).unwrap();
        for (name, bytes) in [
            ("z.pdf", "%PDF-1.7"),
            ("b/c/we ird näme $(id);&#.pdf", "%PDF-1.7"),
            ("notes.txt", "hello"),
            ("nothing.pdf", ""),
            (".hidden.pdf", "%PDF-1.7"),
        ] {
            std::fs::write(at(name), bytes).unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), at("b/loop")).unwrap();
        let paths = [dir.path().to_owned(), at("z.pdf"), at("empty"), at("gone.pdf")];
        let found = find(&paths).await;
        assert_eq!(found.files, [at("z.pdf"), at("b/c/we ird näme $(id);&#.pdf")]);
        let skipped: Vec<_> =
            found.skipped.iter().map(|skip| (skip.file.clone(), skip.named)).collect();
        let expected = [
            (at("notes.txt"), false),
            (at("nothing.pdf"), false),
            (at("empty"), true),
            (at("gone.pdf"), true),
        ];
        assert_eq!(skipped, expected);
    }

    #[tokio::test]
    async fn a_file_over_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pdf");
        std::fs::write(&file, "12345").unwrap();
        assert!(read(&file, 4).await.unwrap_err().contains("limits.document_bytes is 4"));
        assert_eq!(read(&file, 5).await.unwrap().len(), 5);
    }
}
