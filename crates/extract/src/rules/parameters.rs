//! The reader's data, `config/reader.toml`, built in: weights of signs, bounds of certainty, words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use docmill_core::model::digest::{LengthOrder, sha256_of_parts};
use serde::Deserialize;
use toml::Spanned;

use super::certainty::ReadingSign;
use super::dates::DateSign;
use super::numbers::NumberSign;
use super::supplier::NameSign;
use super::vocabulary::Vocabulary;
use super::weighing;

const FILE: &str = include_str!("../../../../config/reader.toml");

/// Everything that the reader takes from its file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReaderParameters {
    pub(super) weights: FieldWeights,
    pub(super) certainty: CertaintyBounds,
    pub(super) words: Vocabulary,
}

/// Log-odds of signs, by field.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldWeights {
    pub(super) name: SignWeights<NameSign>,
    pub(super) number: SignWeights<NumberSign>,
    pub(super) issue_day: SignWeights<DateSign>,
    pub(super) other_day: SignWeights<DateSign>,
    /// Values that are not weighed against others.
    pub(super) claim: SignWeights<ReadingSign>,
}

/// Log-odds of the signs of one field.
#[derive(Debug, Deserialize)]
#[serde(from = "WrittenWeights<S>", bound(deserialize = "S: Ord + Deserialize<'de>"))]
pub(super) struct SignWeights<S> {
    /// Log-odds that no candidate is right.
    pub(super) none: f32,
    /// In the order of the file: sums of floats depend on it.
    signs: Vec<(S, f32)>,
}

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Ord + Deserialize<'de>"))]
struct WrittenWeights<S> {
    none: f32,
    signs: BTreeMap<S, Spanned<f32>>,
}

impl<S> From<WrittenWeights<S>> for SignWeights<S> {
    fn from(written: WrittenWeights<S>) -> Self {
        let mut signs: Vec<(S, Spanned<f32>)> = written.signs.into_iter().collect();
        signs.sort_by_key(|(_, weight)| weight.span().start);
        let signs = signs.into_iter().map(|(sign, weight)| (sign, weight.into_inner())).collect();
        Self { none: written.none, signs }
    }
}

impl<S> Default for SignWeights<S> {
    fn default() -> Self {
        Self { none: 0.0, signs: Vec::new() }
    }
}

impl<S: PartialEq> SignWeights<S> {
    /// The log-odds of a set of signs.
    pub(super) fn score(&self, signs: &[S]) -> f32 {
        self.signs.iter().filter(|(sign, _)| signs.contains(sign)).map(|(_, weight)| weight).sum()
    }

    /// The share of certainty of each candidate beside the others.
    pub(super) fn share_certainty(&self, candidates: &[&[S]]) -> Vec<f32> {
        let scores: Vec<f32> = candidates.iter().map(|signs| self.score(signs)).collect();
        weighing::share_certainty(&scores, self.none)
    }
}

/// Bounds of certainty, 0..1; the file explains each.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CertaintyBounds {
    pub(super) sure: f32,
    pub(super) sure_name: f32,
    pub(super) min_share: f32,
    pub(super) no_number: f32,
    pub(super) open_number: f32,
    pub(super) reference: f32,
    pub(super) doubtful_name: f32,
    pub(super) other_label: f32,
    pub(super) open_day_order: f32,
    pub(super) open_day: f32,
}

static BUILT_IN: LazyLock<ReaderParameters> = LazyLock::new(|| {
    // A test asserts that the file parses.
    toml::from_str(FILE).unwrap_or_default()
});

/// The parameters that ship.
pub(super) fn parameters() -> &'static ReaderParameters {
    &BUILT_IN
}

/// The identity of the rules reader, SHA-256 in hex: over the program's version and the file.
pub fn reader_identity() -> String {
    sha256_of_parts(LengthOrder::BigEndian, &["docmill rules", env!("CARGO_PKG_VERSION"), FILE])
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_formats::notation::{currency, fold_text};

    #[test]
    fn the_file_parses_and_every_word_can_be_found() {
        let read: Result<ReaderParameters, _> = toml::from_str(FILE);
        assert!(read.is_ok(), "{read:?}");
        let file: toml::Table = toml::from_str(FILE).unwrap();
        let words: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            file["words"].clone().try_into().unwrap();
        for (section, by_language) in words {
            assert!(!by_language.is_empty(), "{section}");
            for (language, words) in by_language {
                let known = currency::iso_code(&language).is_some() || language == "any";
                assert!(known || language.len() == 2, "{section}.{language}");
                assert!(!words.is_empty(), "{section}.{language}");
                for word in words {
                    assert!(!fold_text(&word).is_empty(), "{section}.{language}: {word}");
                }
            }
        }
    }

    #[test]
    fn the_identity_is_a_hash_of_the_file() {
        assert_eq!(reader_identity().len(), 64);
        let other = format!("{FILE} ");
        let changed = ["docmill rules", env!("CARGO_PKG_VERSION"), &other];
        assert_ne!(reader_identity(), sha256_of_parts(LengthOrder::BigEndian, &changed));
    }
}
