//! Which bucket and key a name means, and how user metadata travels in headers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use docmill_core::fault::{Error, Fault, Result};

/// S3's own limit, in bytes.
const MAX_KEY_BYTES: usize = 1024;

/// Characters encoded by Python's `urllib.parse.quote(value, safe='')`: the form in which BlobForge
/// writes `original-name`, `tags` and `size`.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// Bucket and key of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct S3Location<'a> {
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    /// Not our own bucket: what goes wrong there concerns one document, not the service.
    pub(super) foreign: bool,
}

impl<'a> S3Location<'a> {
    /// A key of `own`, or `s3://bucket/key`.
    pub(super) fn parse_name(own: &'a str, name: &'a str) -> Result<Self> {
        let (bucket, key) = match name.strip_prefix("s3://") {
            None => (own, name),
            Some(rest) => rest
                .split_once('/')
                .ok_or_else(|| Error::new(Fault::Rejected, "an s3:// address has no key"))?,
        };
        if bucket.is_empty() || key.is_empty() || key.len() > MAX_KEY_BYTES {
            let text = "an object's bucket or key is empty, or the key is above 1024 bytes";
            return Err(Error::new(Fault::Rejected, text));
        }
        Ok(Self { bucket, key, foreign: bucket != own })
    }

    /// The same for the beginning of keys, which may be empty; and what the keys of a listing begin
    /// with, so that they are names as well.
    pub(super) fn parse_prefix(own: &'a str, name: &'a str) -> Result<(Self, String)> {
        let Some(rest) = name.strip_prefix("s3://") else {
            return Ok((Self { bucket: own, key: name, foreign: false }, String::new()));
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || key.len() > MAX_KEY_BYTES {
            let text = "a prefix has no bucket, or is above 1024 bytes";
            return Err(Error::new(Fault::Rejected, text));
        }
        Ok((Self { bucket, key, foreign: bucket != own }, format!("s3://{bucket}/")))
    }
}

/// A metadata value as a header can carry it.
pub(super) fn encode_value(value: &str) -> String {
    utf8_percent_encode(value, QUOTED).to_string()
}

/// The inverse of [`encode_value`]; a value that was never encoded stays as it is.
pub(super) fn decode_value(value: &str) -> String {
    percent_decode_str(value).decode_utf8().map_or_else(|_| value.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_another_bucket_and_a_key_our_own() {
        for (name, expected) in [
            ("documents/a.pdf", Some(("own", "documents/a.pdf", false))),
            ("s3://other/a/b c.pdf", Some(("other", "a/b c.pdf", true))),
            ("s3://own/a", Some(("own", "a", false))),
            ("s3://other", None),
            ("s3:///a", None),
            ("s3://other/", None),
            ("", None),
        ] {
            let place = S3Location::parse_name("own", name).ok();
            assert_eq!(place.map(|p| (p.bucket, p.key, p.foreign)), expected, "{name}");
        }
    }

    #[test]
    fn metadata_is_written_as_blobforge_writes_it() {
        assert_eq!(encode_value("[\"lorem\"]"), "%5B%22lorem%22%5D");
        for value in ["we ird näme $(id);&#.pdf", "a-b_c.d~e", "", "100%", "发票"] {
            assert_eq!(decode_value(&encode_value(value)), value);
        }
        assert_eq!(decode_value("never%encoded"), "never%encoded");
    }
}
