//! Units of the configuration language.
//!
//! An unreadable value is never repeated: it may be a misplaced secret.

use std::fmt;
use std::str::FromStr;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a text has letters and digits of ASCII and `also`, and at least one of them.
pub(super) fn is_plain_name(text: &str, also: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

/// A number of bytes, written `512`, `64KiB`, `50MiB` or `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// How a size is written.
const SIZE_FORM: &str = "a size such as 512, 64KiB, 50MiB or 2GiB";

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl ByteSize {
    /// A size of so many mebibytes (2^20 bytes).
    pub const fn from_mib(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
            .unwrap_or((text, 1));
        let count: u64 = number.trim().parse().map_err(|_| format!("write {SIZE_FORM}"))?;
        count.checked_mul(unit).map(Self).ok_or_else(|| "this size is too large".to_owned())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in UNITS {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteSizeVisitor)
    }
}

struct ByteSizeVisitor;

impl Visitor<'_> for ByteSizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SIZE_FORM)
    }

    fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<ByteSize, E> {
        Ok(ByteSize(count))
    }

    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<ByteSize, E> {
        u64::try_from(count)
            .map(ByteSize)
            .map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A value that is never printed. Only a text is one: a number would be read and written anew, and
/// lose its zeros.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretString(String);

impl<'de> Deserialize<'de> for SecretString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

struct SecretVisitor;

impl Visitor<'_> for SecretVisitor {
    type Value = SecretString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text in quotes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SecretString, E> {
        Ok(SecretString(text.to_owned()))
    }
}

impl SecretString {
    /// The value itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for SecretString {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(unset)" } else { "(set)" })
    }
}

impl Serialize for SecretString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0.is_empty() { "" } else { "***" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_printed_in_their_largest_whole_unit() {
        for (text, bytes, printed) in [
            ("512", 512, "512"),
            ("64KiB", 65_536, "64KiB"),
            ("50 MiB", 52_428_800, "50MiB"),
            ("1025KiB", 1_049_600, "1025KiB"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
        for wrong in ["", "MiB", "-1", "5MB", "99999999999GiB"] {
            assert!(wrong.parse::<ByteSize>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = SecretString::from("hunter2".to_owned());
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert!(!serde_json::to_string(&secret).unwrap().contains("hunter2"));
    }
}
