//! Units of the configuration language and the reading of file and environment.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Config;

/// A number of bytes, written `512`, `64KiB`, `50MiB` or `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

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
        let count: u64 = number
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is not a size: write 512, 64KiB, 50MiB or 2GiB"))?;
        count.checked_mul(unit).map(Self).ok_or_else(|| format!("`{text}` is too large a size"))
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
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawByteSize {
            Number(u64),
            Text(String),
        }
        match RawByteSize::deserialize(deserializer)? {
            RawByteSize::Number(count) => Ok(Self(count)),
            RawByteSize::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// A value that is never printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretString(String);

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

/// Merges the file and the environment (`DOCMILL__SECTION__KEY`) over the defaults.
///
/// A single underscore after the prefix is deliberately not ours: Kubernetes injects variables
/// such as `DOCMILL_PORT` for a service of that name.
pub(super) fn load_layers(file: Option<&Path>, environment: Vec<(String, String)>) -> LoadedConfig {
    let mut builder = config::Config::builder();
    if let Some(path) = file {
        builder = builder.add_source(config::File::from(path).format(config::FileFormat::Toml));
    }
    let source = config::Environment::with_prefix("DOCMILL")
        .prefix_separator("__")
        .separator("__")
        .try_parsing(true)
        .list_separator(",")
        .with_list_parse_key("ocr.languages")
        .with_list_parse_key("llm.scheduler.models")
        .with_list_parse_key("ocr.providers")
        .with_list_parse_key("store.allow")
        .with_list_parse_key("ocr.document_ai.languages")
        .source(Some(environment.into_iter().collect()));
    match builder.add_source(source).build() {
        Ok(merged) => every_problem(&merged),
        Err(error) => LoadedConfig::from_problems(vec![(String::new(), error.to_string())]),
    }
}

/// What could be read, and what could not.
pub(super) struct LoadedConfig {
    /// Sections that could not be read have their defaults.
    pub(super) config: Config,
    /// Section (empty: the file as a whole) and what is wrong with it.
    pub(super) problems: Vec<(String, String)>,
}

impl LoadedConfig {
    fn from_problems(problems: Vec<(String, String)>) -> Self {
        Self { config: Config::default(), problems }
    }
}

/// Reads the merged settings; on failure reads section by section, so that one wrong section does
/// not hide the mistakes of the next.
fn every_problem(merged: &config::Config) -> LoadedConfig {
    let error = match merged.clone().try_deserialize::<Config>() {
        Ok(config) => return LoadedConfig { config, problems: Vec::new() },
        Err(error) => error,
    };
    let mut problems = Vec::new();
    let mut readable = config::Config::builder();
    for (section, value) in merged.cache.clone().into_table().unwrap_or_default() {
        let alone = config::Config::builder()
            .set_override(section.as_str(), value.clone())
            .and_then(|builder| builder.build())
            .and_then(config::Config::try_deserialize::<Config>);
        match alone {
            Ok(_) => {
                readable = match readable.set_override(section.as_str(), value) {
                    Ok(readable) => readable,
                    Err(error) => {
                        return LoadedConfig::from_problems(vec![(section, error.to_string())]);
                    }
                }
            }
            Err(error) => problems.push((section, error.to_string())),
        }
    }
    if problems.is_empty() {
        problems.push((String::new(), error.to_string()));
    }
    problems.sort();
    let config = readable.build().and_then(config::Config::try_deserialize::<Config>);
    LoadedConfig { config: config.unwrap_or_default(), problems }
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

    #[test]
    fn misspelt_keys_of_several_sections_are_refused_at_once_by_name() {
        let variable = |name: &str| (name.to_owned(), "1s".to_owned());
        let environment =
            vec![variable("DOCMILL__QUEUE__VISIBILTY"), variable("DOCMILL__WORKER__DRIAN")];
        let all = format!("{:?}", load_layers(None, environment).problems);
        assert!(all.contains("visibilty") && all.contains("drian"), "{all}");
    }

    #[test]
    fn a_service_link_variable_of_kubernetes_is_not_taken_for_a_setting() {
        let environment = vec![("DOCMILL_PORT".to_owned(), "tcp://10.0.0.1:80".to_owned())];
        let loaded = load_layers(None, environment);
        assert!(loaded.problems.is_empty());
        assert_eq!(loaded.config, Config::default());
    }

    #[test]
    fn the_order_of_providers_may_come_from_the_environment() {
        use crate::config::OcrProvider::{DocumentAi, Tesseract};
        let order = ("DOCMILL__OCR__PROVIDERS".to_owned(), "document_ai,tesseract".to_owned());
        let loaded = load_layers(None, vec![order]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        assert_eq!(loaded.config.ocr.providers, [DocumentAi, Tesseract]);
    }

    #[test]
    fn places_may_come_from_the_environment_and_as_tables_from_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let table = "[[store.allow]]\nbucket = 'up'\nprefix = 'in/'\ntenant = 'acme'\n";
        std::fs::write(file.path(), table).unwrap();
        let loaded = load_layers(Some(file.path()), Vec::new());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        assert_eq!(loaded.config.store.allow[0].tenant.as_deref(), Some("acme"));
        let allow = ("DOCMILL__STORE__ALLOW".to_owned(), "a/b/,c/{tenant}/".to_owned());
        let loaded = load_layers(None, vec![allow]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let places: Vec<String> =
            loaded.config.store.allow.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["a/b/", "c/{tenant}/"]);
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[queue]\nwait = '3s'\nvisibility = '40s'\n").unwrap();
        let environment = vec![("DOCMILL__QUEUE__WAIT".to_owned(), "7s".to_owned())];
        let config = load_layers(Some(file.path()), environment).config;
        assert_eq!(config.queue.wait.as_secs(), 7);
        assert_eq!(config.queue.visibility.as_secs(), 40);
    }
}
