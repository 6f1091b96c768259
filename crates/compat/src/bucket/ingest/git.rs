//! Sources of documents: a folder, or a repository that is cloned first.
//!
//! A clone fetches no Git LFS content (`GIT_LFS_SKIP_SMUDGE=1`) and no history.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use docmill_core::config::strip_credentials;
use docmill_core::fault::{Error, Fault, Result};

/// The source of documents that are handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestSource {
    /// A file or folder of this machine; may be the working tree of a repository.
    Local(PathBuf),
    /// Files and folders of this machine, one by one; what is wrong with one is in the report.
    Listed(Vec<PathBuf>),
    /// The address of a repository.
    Repository(String),
}

impl IngestSource {
    /// An address if it looks like one and is no local path.
    pub fn parse(text: &str) -> Self {
        let remote = ["https://", "http://", "ssh://", "git://", "file://", "git@"];
        let named = remote.iter().any(|start| text.starts_with(start));
        match named && !Path::new(text).exists() {
            true => Self::Repository(text.to_owned()),
            false => Self::Local(PathBuf::from(text)),
        }
    }
}

/// A place that can be read.
pub(super) struct SourceCheckout {
    pub(super) roots: Vec<PathBuf>,
    /// For the manifest; without credentials.
    pub(super) source: String,
    clone: Option<tempfile::TempDir>,
}

impl SourceCheckout {
    /// Whether it was cloned for this: then its settings are those that a clone has.
    pub(super) fn is_clone(&self) -> bool {
        self.clone.is_some()
    }
}

pub(super) async fn open_source(place: &IngestSource, git: &Path) -> Result<SourceCheckout> {
    match place {
        IngestSource::Local(path) => {
            let missing = || {
                let text = format!("there is no file or folder {}", path.display());
                Error::new(Fault::Missing, text)
            };
            tokio::fs::metadata(path).await.map_err(|error| missing().with_source(error))?;
            let source = path.display().to_string();
            Ok(SourceCheckout { roots: vec![path.clone()], source, clone: None })
        }
        IngestSource::Listed(paths) => {
            Ok(SourceCheckout { roots: paths.clone(), source: "list".to_owned(), clone: None })
        }
        IngestSource::Repository(address) => {
            let folder = tempfile::tempdir()
                .map_err(|error| Error::transient("cannot create a folder").with_source(error))?;
            clone_repository(address, git, folder.path()).await?;
            let source = strip_credentials(address);
            let roots = vec![folder.path().to_owned()];
            Ok(SourceCheckout { roots, source, clone: Some(folder) })
        }
    }
}

async fn clone_repository(address: &str, git: &Path, folder: &Path) -> Result<()> {
    let ran = Command::new(git)
        .args(["clone", "--quiet", "--depth", "1", "--", address])
        .arg(folder)
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let shown = strip_credentials(address);
    let output = ran.map_err(|error| {
        Error::new(Fault::Misconfigured, "cannot run git: is it installed?").with_source(error)
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).replace(address, &shown);
    let text = format!("cannot clone {shown}: {}", said.trim());
    Err(Error::new(Fault::Denied, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_distinguished_from_a_path() {
        assert_eq!(IngestSource::parse("a/b"), IngestSource::Local("a/b".into()));
        assert!(matches!(
            IngestSource::parse("https://host/repo.git"),
            IngestSource::Repository(_)
        ));
    }
}
