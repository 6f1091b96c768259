//! Digests as text: SHA-256 names content, artefacts and messages everywhere, in lower-case hex.
//!
//! For equal spelling in one place; nothing here compares secrets.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The SHA-256 of these bytes, as 64 characters of lower-case hex.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hex, two characters each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        if write!(text, "{byte:02x}").is_err() {
            unreachable!("a String takes every write");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_spelt_as_the_standard_spells_it() {
        // FIPS 180-4, the one-block example, and the empty message.
        for (text, digest) in [
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ] {
            assert_eq!(sha256(text), digest, "{text}");
        }
        assert_eq!(hex(&[0, 9, 255]), "0009ff");
    }
}
