//! Digests as text: SHA-256 names content, artefacts and messages everywhere, in lower-case hex.
//!
//! For equal spelling in one place; nothing here compares secrets.

use sha2::{Digest, Sha256};

/// The SHA-256 of these bytes, as 64 characters of lower-case hex.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    encode_hex(Sha256::digest(bytes))
}

/// Byte order of the length before each part in [`sha256_of_parts`]. Stored identities use both
/// orders: neither may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthOrder {
    /// Lowest byte first: transcripts, text layers.
    LittleEndian,
    /// Highest byte first: extractions, choices of a kind, calls to models and the fences in them.
    BigEndian,
}

/// The SHA-256 over parts that cannot run into each other: each follows its length in bytes, as a
/// number of 64 bits in the given order.
pub fn sha256_of_parts(order: LengthOrder, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let length = part.len() as u64;
        hash.update(match order {
            LengthOrder::LittleEndian => length.to_le_bytes(),
            LengthOrder::BigEndian => length.to_be_bytes(),
        });
        hash.update(part.as_bytes());
    }
    encode_hex(hash.finalize())
}

/// Bytes in lower-case hex, two characters each.
pub fn encode_hex(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(bytes)
}

/// The bytes that [`encode_hex`] wrote; `None` for what it never writes but capital letters, which
/// are read as small ones.
pub fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    hex::decode(digits).ok()
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
            assert_eq!(sha256_hex(text), digest, "{text}");
        }
        assert_eq!(encode_hex([0, 9, 255]), "0009ff");
    }

    #[test]
    fn hex_reads_back_and_nonsense_does_not() {
        let table: [(&str, Option<&[u8]>); 6] = [
            ("0009ff", Some(&[0, 9, 255])),
            ("00FF", Some(&[0, 255])),
            ("", Some(&[])),
            ("f", None),
            ("fg", None),
            ("ü", None),
        ];
        for (digits, bytes) in table {
            assert_eq!(decode_hex(digits).as_deref(), bytes, "{digits}");
        }
    }

    #[test]
    fn identities_over_parts_are_those_that_are_stored() {
        // Computed with Python's hashlib and struct.pack("<Q"), struct.pack(">Q").
        #[rustfmt::skip]
        let table: [(&[&str], &str, &str); 6] = [
            (&[],
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (&["a"],
             "ae6121c88ba555f64c3d812123eb799d128015541f850c5e9bf1d54c08ad8481",
             "3b196fd4907bedf51c3090e9835f2f7cb61e7ee1b2299ea3b8fed9b4183a822a"),
            (&["a", ""],
             "49a1af1b982d48d444434b4fdd5a935bad437b5e211cfd8c9f18b975e2cc1e31",
             "6aa98e17c109dd8e2ae23a478ceb48e193c730289ba48d741388a3cc8b38ef4f"),
            (&["ab", "c"],
             "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617",
             "601d5476e2ccfe2c87a2bba7a322659734a05749d5b5aa781f513e4912db0d5f"),
            (&["a", "bc"],
             "9a8acca1b6c6c0befd3fbc756aed625da998c998f7252e738c4ef061906b9b21",
             "3fafa1cf2f19a7c1129beb20cf0983f73a489a221fc0dd2f16d1be292d089205"),
            (&["docmill extraction", "1", "größer"],
             "2a4a0cd17d9b3edfca261d47647520b27f9ed9a0bddb0503924d60d5c4e9a3ba",
             "e8791d2c4f06ef6d38898682aad2ba4a2e8f89783b9094f5675de642c8f4ecef"),
        ];
        for (parts, little, big) in table {
            assert_eq!(sha256_of_parts(LengthOrder::LittleEndian, parts), little, "{parts:?}");
            assert_eq!(sha256_of_parts(LengthOrder::BigEndian, parts), big, "{parts:?}");
        }
    }
}
