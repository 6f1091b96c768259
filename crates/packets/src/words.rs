//! The words and weights of `config/packets.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::boundary_sign::BoundarySign;
use docmill_formats::notation::fold_text;

const FILE: &str = include_str!("../../../config/packets.toml");

/// The file's contents; it explains each.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PacketData {
    pub(crate) thresholds: Thresholds,
    pub(crate) weights: BTreeMap<BoundarySign, f32>,
    pub(crate) words: PacketWords,
}

/// How much is enough.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Thresholds {
    pub(crate) begins: f32,
    pub(crate) ends: f32,
    pub(crate) differs: f32,
    pub(crate) continues: f32,
    pub(crate) margin: f32,
    pub(crate) certainty: f32,
}

/// Folded words.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PacketWords {
    pub(crate) page: FoldedPhrases,
    pub(crate) of: FoldedPhrases,
    pub(crate) carried: FoldedPhrases,
    pub(crate) supporting: FoldedPhrases,
}

/// Phrases as they are compared.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub(crate) struct FoldedPhrases(BTreeSet<String>);

impl From<Vec<String>> for FoldedPhrases {
    fn from(phrases: Vec<String>) -> Self {
        Self(phrases.iter().map(|phrase| fold_text(phrase)).collect())
    }
}

impl FoldedPhrases {
    /// Whether a folded word is one of them.
    pub(crate) fn contains(&self, folded: &str) -> bool {
        self.0.contains(folded)
    }

    /// Whether a folded line begins with one of them, as whole words.
    pub(crate) fn begins(&self, folded: &str) -> bool {
        self.0.iter().any(|phrase| {
            let rest = folded.strip_prefix(phrase.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }

    /// Whether one of them stands in a folded line, as whole words.
    pub(crate) fn stands_in(&self, folded: &str) -> bool {
        self.0.iter().any(|phrase| {
            let mut found = folded.match_indices(phrase.as_str());
            found.any(|(at, _)| {
                let before = folded.get(..at).unwrap_or_default();
                let behind = folded.get(at + phrase.len()..).unwrap_or_default();
                (before.is_empty() || before.ends_with(' '))
                    && (behind.is_empty() || behind.starts_with(' '))
            })
        })
    }
}

pub(crate) static DATA: LazyLock<PacketData> = LazyLock::new(|| {
    // A test asserts that the file parses.
    toml::from_str(FILE).unwrap_or_default()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_file_is_sound_and_weighs_every_sign() {
        let data: PacketData = toml::from_str(FILE).unwrap();
        for sign in BoundarySign::ALL {
            assert!(data.weights.contains_key(&sign), "{sign:?} has no weight");
        }
        assert!(data.words.page.contains("pagina") && data.words.carried.stands_in("ubertrag 12"));
        assert!(!data.words.carried.stands_in("reporting 12"));
    }
}
