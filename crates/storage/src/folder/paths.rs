//! Keys as paths below the folder, and back.
//!
//! Segments stay readable; only what a file system may take for something else is
//! percent-encoded: control characters, non-ASCII bytes (macOS normalises them), `%`, `\`, `:` and
//! a leading dot (hidden files are ours). Every key has exactly one path. Not promised: keys that
//! differ only in case on a file system that ignores case.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use docmill_core::fault::{Error, Fault, Result};

/// S3's own limit, in bytes.
const MAX_KEY_BYTES: usize = 1024;
/// The limit of file systems for one name, in bytes; a side file's stamp has room beside it.
const MAX_NAME_BYTES: usize = 255;

const UNSAFE: &AsciiSet = &CONTROLS.add(b'%').add(b'\\').add(b':');

/// The path of `key` below `root`.
///
/// # Errors
/// `Rejected` for a key that could leave the folder or has no path: empty, absolute, with an empty,
/// `.` or `..` segment, too long, or naming another bucket.
pub(super) fn path_of(root: &Path, key: &str) -> Result<PathBuf> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(refuse("is empty or longer than 1024 bytes"));
    }
    if key.starts_with("s3://") {
        return Err(refuse("names a bucket; the folder backend has none"));
    }
    let mut path = root.to_owned();
    for segment in key.split('/') {
        if matches!(segment, "" | "." | "..") {
            return Err(refuse("has an empty, `.` or `..` segment"));
        }
        let name = encode(segment);
        if name.len() > MAX_NAME_BYTES {
            return Err(refuse("has a segment that is too long for a file name"));
        }
        path.push(name);
    }
    Ok(path)
}

fn refuse(what: &'static str) -> Error {
    Error::new(Fault::Rejected, format!("a key of the folder store {what}"))
}

/// One segment as a file name.
pub(super) fn encode(segment: &str) -> String {
    let encoded = utf8_percent_encode(segment, UNSAFE).to_string();
    match encoded.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    }
}

/// The segment of a file name; `None` for names that no key has (hidden files, foreign files under
/// a name that would have been encoded).
pub(super) fn decode(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let segment = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (encode(&segment) == name).then_some(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_survive_the_way_to_the_disk_and_back() {
        for segment in [
            "invoice.pdf",
            "we ird näme $(id);&#.pdf",
            ".hidden",
            "100%",
            "%2E",
            "a:b\\c",
            "line\nbreak",
            "发票.pdf",
            "-rf",
            "~",
            "tab\t",
        ] {
            let name = encode(segment);
            assert!(!name.starts_with('.') && name.is_ascii(), "{name}");
            assert_eq!(decode(OsStr::new(&name)).as_deref(), Some(segment));
        }
    }

    #[test]
    fn no_key_leaves_the_folder() {
        let root = Path::new("/r");
        for key in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/.", "s3://b/k", "s3:"]
        {
            let path = path_of(root, key);
            if key == "s3:" {
                assert_eq!(path.unwrap(), Path::new("/r/s3%3A"));
            } else {
                assert_eq!(path.unwrap_err().fault, Fault::Rejected, "{key}");
            }
        }
        assert!(path_of(root, &"a".repeat(1025)).is_err());
        assert!(path_of(root, &"ä".repeat(200)).is_err(), "too long once encoded");
    }

    #[test]
    fn file_names_that_no_key_has_are_no_objects() {
        for name in [".docmill-store", "näme.pdf", "100%", "%2e", "a:b"] {
            assert_eq!(decode(OsStr::new(name)), None, "{name}");
        }
    }
}
