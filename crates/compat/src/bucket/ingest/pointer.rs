//! Git LFS pointers: parsing, and fetching of their content.
//!
//! Format: <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>. The content is fetched by
//! `git lfs smudge`, which reads the pointer from standard input. Unlike `git lfs pull --include`
//! it takes no pattern, so paths with commas or stars are literal.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::objects::blobforge::is_hash;
use docmill_core::model::digest;

/// The first line of every pointer.
const VERSION: &str = "version https://git-lfs.github.com/spec/v1";
/// The format's limit for pointers.
const MAX_POINTER_BYTES: usize = 1024;
/// The longest that one content may take.
const SMUDGE_TIMEOUT: Duration = Duration::from_secs(1800);

/// The fields of a Git LFS pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LfsPointer {
    /// SHA-256 of the content, in hex.
    pub(super) hash: String,
    /// Bytes of the content.
    pub(super) size: u64,
    text: String,
}

impl LfsPointer {
    /// `None` for what is no pointer.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() < MAX_POINTER_BYTES)?;
        let mut lines = text.lines();
        if lines.next()? != VERSION {
            return None;
        }
        let (mut hash, mut size) = (None, None);
        for line in lines {
            match line.split_once(' ')? {
                ("oid", oid) => hash = oid.strip_prefix("sha256:").filter(|hash| is_hash(hash)),
                ("size", bytes) => size = bytes.parse().ok(),
                _ => {}
            }
        }
        Some(Self { hash: hash?.to_owned(), size: size?, text: text.to_owned() })
    }

    /// Fetches the content through the repository that `path` lies in; the error is in words for
    /// the report.
    pub(super) async fn fetch(
        &self,
        git: &Path,
        path: &Path,
        largest: u64,
    ) -> Result<Bytes, String> {
        if self.size > largest {
            return Err(format!("{} bytes, limits.document_bytes is {largest}", self.size));
        }
        let fetched = tokio::time::timeout(SMUDGE_TIMEOUT, self.smudge(git, path)).await;
        let bytes = match fetched {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(format!("cannot run `git lfs smudge`: {error}")),
            Err(_) => return Err("`git lfs smudge` took too long".to_owned()),
        };
        if digest::sha256_hex(&bytes) != self.hash {
            return Err("Git LFS did not give the content that the pointer names: is git-lfs \
                        installed, and may this user read the repository's LFS store?"
                .to_owned());
        }
        Ok(bytes.into())
    }

    async fn smudge(&self, git: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
        let mut child = Command::new(git)
            .args(["lfs", "smudge"])
            .current_dir(path.parent().unwrap_or(path))
            // It would give the pointer back.
            .env_remove("GIT_LFS_SKIP_SMUDGE")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(self.text.as_bytes()).await?;
        }
        let mut bytes = Vec::new();
        if let Some(output) = child.stdout.take() {
            // Content longer than the pointer's size is wrong, and not read further.
            output.take(self.size.saturating_add(1)).read_to_end(&mut bytes).await?;
        }
        // The hash verifies the content, whatever the exit code.
        child.wait().await?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_distinguished_from_a_document() {
        let hash = "4d7a".repeat(16);
        let good = format!("{VERSION}\noid sha256:{hash}\nsize 12345\n");
        let pointer = LfsPointer::parse(good.as_bytes()).unwrap();
        assert_eq!((pointer.hash.as_str(), pointer.size), (hash.as_str(), 12345));
        let extended = format!("{VERSION}\next-0-foo sha256:{hash}\noid sha256:{hash}\nsize 1\n");
        assert!(LfsPointer::parse(extended.as_bytes()).is_some());
        for wrong in [
            "%PDF-1.7",
            "",
            "version 2\n",
            &format!("{VERSION}\noid sha256:short\nsize 1\n"),
            &format!("{VERSION}\noid md5:{hash}\nsize 1\n"),
            &format!("{VERSION}\noid sha256:{hash}\nsize many\n"),
            &format!("{VERSION}\noid sha256:{hash}\n"),
            &format!("{good}{}", "x".repeat(2000)),
        ] {
            assert_eq!(LfsPointer::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
