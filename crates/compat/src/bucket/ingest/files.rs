//! The files below a folder that may be handed in, and what is in them.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use super::pointer::LfsPointer;
use docmill_core::model::digest;
use docmill_documents::DocumentFormat;
use docmill_operations::folder_walk::{FolderWalk, WalkStep};

/// Names whose Git LFS content counts as a document without being read.
const NAMED: [&str; 14] = [
    "pdf", "png", "jpg", "jpeg", "tif", "tiff", "webp", "gif", "bmp", "heic", "heif", "avif",
    "jxl", "xml",
];

/// A file that may be handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IngestFile {
    pub(super) path: PathBuf,
    /// Relative to what was named; `/` between folders.
    pub(super) name: String,
}

impl IngestFile {
    /// Of its name, in lower case.
    pub(super) fn extension(&self) -> String {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map(|(_, last)| last.to_ascii_lowercase()).unwrap_or_default()
    }
}

/// The files that were found below a folder.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) files: Vec<IngestFile>,
    /// Names and what is wrong with them.
    pub(super) refused: Vec<(String, String)>,
}

/// The content of a file.
#[derive(Debug)]
pub(super) enum IngestContent {
    /// The content is the document itself.
    Here { hash: String, extension: String, bytes: Bytes },
    /// The file is a pointer of Git LFS; the content lies elsewhere.
    Elsewhere(LfsPointer),
}

/// Lists folders and single files: PDFs by name, with `any_format` every readable format. Skips
/// hidden folders, and does not follow links.
pub(super) async fn find_files(roots: &[PathBuf], any_format: bool) -> FoundFiles {
    let mut all = FoundFiles::default();
    for root in roots {
        let found = walk_root(root, any_format).await;
        all.files.extend(found.files);
        all.refused.extend(found.refused);
    }
    all
}

async fn walk_root(root: &Path, any_format: bool) -> FoundFiles {
    let mut found = FoundFiles::default();
    if tokio::fs::metadata(root).await.is_ok_and(|meta| meta.is_file()) {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.files.push(IngestFile { path: root.to_owned(), name });
        return found;
    }
    let mut walk = FolderWalk::new(root);
    while let Some(step) = walk.next_step().await {
        match step {
            WalkStep::File(path) => {
                let file = IngestFile { name: name_of(&path, root), path };
                let extension = file.extension();
                if extension == "pdf" || (any_format && NAMED.contains(&extension.as_str())) {
                    found.files.push(file);
                }
            }
            // Links in a repository are untrusted.
            WalkStep::Link(_) => {}
            WalkStep::Unreadable(folder, error) => {
                let is_root = folder == root;
                let name =
                    if is_root { root.display().to_string() } else { name_of(&folder, root) };
                found.refused.push((name, error.to_string()));
            }
        }
    }
    found.files.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn name_of(path: &Path, root: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let parts = relative.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

/// Reads a file; the error is in words for the report.
pub(super) async fn read_content(path: &Path, largest: u64) -> Result<IngestContent, String> {
    let size = tokio::fs::metadata(path).await.map_err(|error| error.to_string())?.len();
    if size == 0 {
        return Err("empty".to_owned());
    }
    if size > largest {
        return Err(format!("{size} bytes, limits.document_bytes is {largest}"));
    }
    let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    // It may have grown meanwhile.
    file.take(largest.saturating_add(1))
        .read_to_end(&mut bytes)
        .await
        .map_err(|error| error.to_string())?;
    if let Some(pointer) = LfsPointer::parse(&bytes) {
        return Ok(IngestContent::Elsewhere(pointer));
    }
    let extension = match DocumentFormat::sniff_signed(&bytes) {
        None => return Err("not a document".to_owned()),
        Some(DocumentFormat::Jpeg) => "jpg",
        Some(format) => format.code(),
    };
    let hash = digest::sha256_hex(&bytes);
    Ok(IngestContent::Here { hash, extension: extension.to_owned(), bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_gives_its_pdfs_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "a.pdf",
            "b/we, \"ird\"\nnäme.PDF",
            "b/c/d.pdf",
            "scan.png",
            "notes.txt",
            ".git/x.pdf",
        ];
        for name in names {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "%PDF-1.7").unwrap();
        }
        let found = find_files(&[dir.path().to_owned()], false).await;
        let names: Vec<_> = found.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a.pdf", "b/c/d.pdf", "b/we, \"ird\"\nnäme.PDF"]);
        assert_eq!(find_files(&[dir.path().to_owned()], true).await.files.len(), 4);
    }

    #[tokio::test]
    async fn a_pdf_by_name_only_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pdf");
        for (bytes, problem) in [("hello", "not a document"), ("", "empty")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_content(&path, 100).await.unwrap_err(), problem);
        }
        std::fs::write(&path, "%PDF-1.7").unwrap();
        assert!(read_content(&path, 4).await.unwrap_err().contains("limits.document_bytes is 4"));
        assert!(matches!(read_content(&path, 8).await, Ok(IngestContent::Here { .. })));
    }
}
