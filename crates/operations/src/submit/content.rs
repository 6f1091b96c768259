//! The content of a file: its size, whether it is a document, its SHA-256. Read in pieces, so that
//! a file of any size costs the memory of one piece. A file of at most one piece is kept and so
//! read once; a larger file is read again when it is uploaded.

use std::path::Path;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt as _;

use docmill_core::model::digest;
use docmill_documents::{DocumentFormat, may_be_container};

/// Bytes read at a time.
const PIECE_BYTES: usize = 128 << 10;

/// Facts about a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileContent {
    /// SHA-256 of the bytes, in hex.
    pub(super) sha256: String,
    /// Size of the file in bytes.
    pub(super) size: u64,
    /// All of it, if it is no more than one piece.
    pub(super) whole: Option<Bytes>,
}

fn describe(error: std::io::Error) -> String {
    error.to_string()
}

/// Inspects a file; the error is in words for the report.
pub(super) async fn inspect_file(path: &Path, largest: u64) -> Result<FileContent, String> {
    let mut file = tokio::fs::File::open(path).await.map_err(describe)?;
    let size = file.metadata().await.map_err(describe)?.len();
    check_size(size, largest)?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(size).unwrap_or(PIECE_BYTES))];
    let mut hash = Sha256::new();
    let (mut seen, mut last) = (0_u64, 0);
    loop {
        let read = file.read(&mut piece).await.map_err(describe)?;
        let bytes = piece.get(..read).unwrap_or_default();
        if seen == 0 {
            check_format(path, bytes)?;
        }
        if read == 0 {
            // Content of one piece is still in it.
            let in_one = u64::try_from(last).is_ok_and(|last| last == seen);
            piece.truncate(last);
            let (sha256, whole) =
                (digest::encode_hex(hash.finalize()), in_one.then(|| piece.into()));
            return Ok(FileContent { sha256, size: seen, whole });
        }
        last = read;
        seen += u64::try_from(read).unwrap_or(u64::MAX);
        check_size(seen, largest)?;
        hash.update(bytes);
    }
}

/// Refuses a file whose first bytes are those of no document, or of text under another format's name.
fn check_format(path: &Path, start: &[u8]) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match DocumentFormat::sniff(start) {
        Some(found) if found.is_misnamed(&name) => {
            Err(format!("named as another format, but the content is {}", found.code()))
        }
        None if !may_be_container(start) => {
            Err("not a document: neither PDF, image, Office document, web page, mail, archive nor \
             text, nor an e-invoice in XML or EDIFACT"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// The bytes of a file that was examined before; if it is read again, it must still be the same.
pub(super) async fn read_unchanged(path: &Path, known: &FileContent) -> Result<Bytes, String> {
    if let Some(whole) = &known.whole {
        return Ok(whole.clone());
    }
    let bytes = tokio::fs::read(path).await.map_err(|error| error.to_string())?;
    if digest::sha256_hex(&bytes) != known.sha256 {
        return Err("changed while it was being handed in".to_owned());
    }
    Ok(bytes.into())
}

fn check_size(size: u64, largest: u64) -> Result<(), String> {
    match size {
        0 => Err("empty".to_owned()),
        size if size > largest => Err(format!("{size} bytes, limits.document_bytes is {largest}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_over_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pdf");
        std::fs::write(&file, "%PDF-").unwrap();
        assert!(inspect_file(&file, 4).await.unwrap_err().contains("limits.document_bytes is 4"));
        assert_eq!(inspect_file(&file, 5).await.unwrap().size, 5);
    }

    #[tokio::test]
    async fn mails_and_archives_are_handed_in_and_other_bytes_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let files: [(&str, &[u8], bool); 5] = [
            ("a.eml", b"From: a@example.com\nSubject: x\n\ntext", true),
            ("a.zip", b"PK\x03\x04", true),
            ("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", true),
            ("winmail.dat", b"\x78\x9f\x3e\x22", true),
            ("a.bin", b"\x00\x01\x02\x03", false),
        ];
        for (name, bytes, expected) in files {
            let file = dir.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(inspect_file(&file, 100).await.is_ok(), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_file_that_changed_after_it_was_looked_at_is_not_handed_in() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pdf");
        let long = "%PDF-".to_owned() + &"x".repeat(3 * PIECE_BYTES);
        std::fs::write(&file, &long).unwrap();
        let known = inspect_file(&file, u64::MAX).await.unwrap();
        assert_eq!(known.whole, None, "a large file is not kept");
        assert_eq!(read_unchanged(&file, &known).await.unwrap(), long);
        std::fs::write(&file, long.replace('x', "y")).unwrap();
        assert!(read_unchanged(&file, &known).await.unwrap_err().contains("changed"));
    }

    #[tokio::test]
    async fn a_small_file_is_read_once_and_handed_in_as_it_was_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pdf");
        for size in [6, PIECE_BYTES - 5, PIECE_BYTES] {
            let text = "%PDF-".to_owned() + &"x".repeat(size - 5);
            std::fs::write(&file, &text).unwrap();
            let known = inspect_file(&file, u64::MAX).await.unwrap();
            std::fs::remove_file(&file).unwrap();
            assert_eq!(read_unchanged(&file, &known).await.unwrap(), text, "{size}");
            assert_eq!(known.sha256, digest::sha256_hex(&text));
        }
    }
}
