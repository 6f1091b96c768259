//! Secrets: values that are never printed, and files that may be replaced while we run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::units::SecretString;
use parking_lot::Mutex;

/// A secret as a value, or in a file that may be replaced at run time (a mounted Kubernetes secret,
/// a sidecar that rotates it). Clones share the value.
#[derive(Clone, Default)]
pub struct SecretSource {
    value: SecretString,
    file: PathBuf,
    read: Arc<Mutex<Option<SecretFileContent>>>,
}

/// The file's content, and when it was last changed.
struct SecretFileContent {
    modified: SystemTime,
    secret: SecretString,
}

impl SecretSource {
    /// The value, unless a file is named.
    pub fn new(value: &SecretString, file: &Path) -> Self {
        Self { value: value.clone(), file: file.to_owned(), read: Arc::default() }
    }

    /// Whether it lies in a file.
    pub fn is_file(&self) -> bool {
        !self.file.as_os_str().is_empty()
    }

    /// The secret as it is now; white space around the content of a file is not part of it. A file
    /// that cannot be read any more keeps its last content.
    ///
    /// # Errors
    /// The file could never be read. The text does not name it: the secret itself may have been
    /// written in its place.
    pub fn current_secret(&self) -> Result<SecretString, String> {
        if !self.is_file() {
            return Ok(self.value.clone());
        }
        let mut read = self.read.lock();
        let modified = std::fs::metadata(&self.file).and_then(|found| found.modified()).ok();
        if let Some(known) = &*read
            && modified.is_none_or(|modified| modified == known.modified)
        {
            return Ok(known.secret.clone());
        }
        match (std::fs::read_to_string(&self.file), modified) {
            (Ok(text), Some(modified)) => {
                let secret = SecretString::from(text.trim().to_owned());
                *read = Some(SecretFileContent { modified, secret: secret.clone() });
                Ok(secret)
            }
            (answer, _) => match &*read {
                Some(known) => Ok(known.secret.clone()),
                None => {
                    let why = answer.err().map(|error| error.to_string()).unwrap_or_default();
                    Err(format!("the file with this secret cannot be read: {why}"))
                }
            },
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_file() {
            return self.value.fmt(f);
        }
        write!(f, "(in {})", self.file.display())
    }
}

/// Says what is wrong with a secret that can be set in two ways.
pub(super) fn check_secret(
    value: &SecretString,
    file: &Path,
    key: &str,
    problems: &mut Vec<String>,
) {
    if file.as_os_str().is_empty() {
        return;
    }
    if !value.is_empty() {
        problems.push(format!("{key} and {key}_file are both set: leave one of them out"));
    }
    if let Err(problem) = SecretSource::new(value, file).current_secret() {
        problems.push(format!("{key}_file: {problem}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_is_replaced_is_read_again_and_one_that_is_gone_keeps_its_last_word() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        let source = SecretSource::new(&SecretString::default(), &file);
        let problem = source.current_secret().unwrap_err();
        assert!(problem.contains("cannot be read") && !problem.contains("password"), "{problem}");
        let write = |text: &str, seconds: u64| {
            std::fs::write(&file, text).unwrap();
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
        };
        write("first\n", 1);
        assert_eq!(source.current_secret().unwrap().reveal(), "first");
        write("second", 2);
        assert_eq!(source.current_secret().unwrap().reveal(), "second");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(source.current_secret().unwrap().reveal(), "second");
        assert!(!format!("{source:?}").contains("second"));
    }
}
