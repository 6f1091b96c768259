//! Paths on standard input, in the place of a path that is `-`.

use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::UsageError;

/// Read and not yet parsed.
const AHEAD: usize = 1024;

/// Whether standard input is meant.
pub(super) fn is_dash(path: impl AsRef<Path>) -> bool {
    path.as_ref().as_os_str() == "-"
}

/// Refuses `--null` where no list is read.
pub(super) fn check_null<P: AsRef<Path>>(null: bool, paths: &[P]) -> Result<(), UsageError> {
    if null && !paths.iter().any(is_dash) {
        let text = "--null is about paths on standard input: give `-` as a path";
        return Err(UsageError(text.to_owned()));
    }
    Ok(())
}

/// The paths as they come in, one a line or, with `null`, each ended by a NUL byte; no empty ones.
pub(super) fn read_paths(null: bool) -> mpsc::Receiver<PathBuf> {
    let (paths, inbox) = mpsc::channel(AHEAD);
    // A separate thread: a blocking read of standard input must not delay the end.
    std::thread::spawn(move || {
        let end = if null { b'\0' } else { b'\n' };
        for path in std::io::stdin().lock().split(end).map_while(Result::ok) {
            if !path.is_empty() && paths.blocking_send(path_of(path)).is_err() {
                return;
            }
        }
    });
    inbox
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(bytes).into()
}
