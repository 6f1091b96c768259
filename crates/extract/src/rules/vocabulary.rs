//! Words for all kinds of documents: `[words]` of `config/reader.toml`. Labels of values belong to a
//! kind's `labels.toml`.

use std::collections::{BTreeMap, BTreeSet};

use docmill_formats::notation::fold_text;
use serde::Deserialize;

use super::parameters::parameters;

/// The words of one purpose, folded, of all languages.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Vec<String>>")]
pub(super) struct FoldedWords(BTreeSet<String>);

impl From<BTreeMap<String, Vec<String>>> for FoldedWords {
    fn from(by_language: BTreeMap<String, Vec<String>>) -> Self {
        Self(by_language.values().flatten().map(|word| fold_text(word)).collect())
    }
}

impl FoldedWords {
    /// Whether a folded word, or several with single spaces, is one of them.
    pub(super) fn has(&self, folded: &str) -> bool {
        self.0.contains(folded)
    }

    /// Whether one of them, of at most two words, is among the words of a folded text.
    pub(super) fn is_within(&self, folded: &str) -> bool {
        let words: Vec<&str> = folded.split(' ').collect();
        words.iter().any(|word| self.has(word))
            || words.windows(2).any(|pair| self.has(&pair.join(" ")))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Folded words by the code of the currency that they speak for.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Vec<String>>")]
pub(super) struct CurrencyWords(BTreeMap<String, FoldedWords>);

impl From<BTreeMap<String, Vec<String>>> for CurrencyWords {
    fn from(by_code: BTreeMap<String, Vec<String>>) -> Self {
        Self(
            by_code
                .into_iter()
                .map(|(code, words)| {
                    (code, FoldedWords::from(BTreeMap::from([(String::new(), words)])))
                })
                .collect(),
        )
    }
}

impl CurrencyWords {
    pub(super) fn by_code(&self) -> impl Iterator<Item = (&str, &FoldedWords)> {
        self.0.iter().map(|(code, words)| (code.as_str(), words))
    }
}

/// The sections of `[words]`; the file describes each.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vocabulary {
    pub(super) including: FoldedWords,
    pub(super) includes: FoldedWords,
    pub(super) within: FoldedWords,
    pub(super) amounts_to: FoldedWords,
    pub(super) excluding: FoldedWords,
    pub(super) denied: FoldedWords,
    pub(super) number_mark: FoldedWords,
    pub(super) number_front: FoldedWords,
    pub(super) number_front_marked: FoldedWords,
    pub(super) before_value: FoldedWords,
    pub(super) after_value: FoldedWords,
    pub(super) series: FoldedWords,
    pub(super) counted: FoldedWords,
    pub(super) day: FoldedWords,
    pub(super) by: FoldedWords,
    pub(super) by_the: FoldedWords,
    pub(super) paying: FoldedWords,
    pub(super) on: FoldedWords,
    pub(super) collecting: FoldedWords,
    pub(super) early: FoldedWords,
    pub(super) until: FoldedWords,
    pub(super) from_then_on: FoldedWords,
    pub(super) since: FoldedWords,
    pub(super) of_day: FoldedWords,
    pub(super) year_mark: FoldedWords,
    pub(super) clock: FoldedWords,
    pub(super) owed_before: FoldedWords,
    pub(super) profession: FoldedWords,
    pub(super) closing: FoldedWords,
    pub(super) plain_english: FoldedWords,
    pub(super) plain_other: FoldedWords,
    pub(super) american: FoldedWords,
    pub(super) day_first_form: FoldedWords,
    pub(super) street: FoldedWords,
    pub(super) street_ending: FoldedWords,
    pub(super) street_of: FoldedWords,
    pub(super) car_park: FoldedWords,
    pub(super) highway: FoldedWords,
    pub(super) county: FoldedWords,
    pub(super) room: FoldedWords,
    pub(super) suggested_tip: FoldedWords,
    pub(super) post_box: FoldedWords,
    pub(super) town_label: FoldedWords,
    pub(super) code_label: FoldedWords,
    pub(super) reach: FoldedWords,
    pub(super) office: FoldedWords,
    pub(super) registration: FoldedWords,
    pub(super) account: FoldedWords,
    pub(super) terminal: FoldedWords,
    pub(super) register: FoldedWords,
    pub(super) court: FoldedWords,
    pub(super) salesperson: FoldedWords,
    pub(super) party_from: FoldedWords,
    pub(super) party_to: FoldedWords,
    pub(super) form_before: FoldedWords,
    pub(super) form_ending: FoldedWords,
    pub(super) title: FoldedWords,
    pub(super) owner: FoldedWords,
    pub(super) trading_name: FoldedWords,
    pub(super) trading_as: FoldedWords,
    pub(super) branch: FoldedWords,
    pub(super) and: FoldedWords,
    pub(super) crowns: CurrencyWords,
    pub(super) dollars: CurrencyWords,
    pub(super) foreign_tax: FoldedWords,
    pub(super) half_tax: FoldedWords,
    pub(super) reduction: FoldedWords,
    pub(super) tax_pair: FoldedWords,
    pub(super) taxed: CurrencyWords,
}

/// The words that ship.
pub(super) fn vocabulary() -> &'static Vocabulary {
    &parameters().words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_folded_in_any_language() {
        for (list, word, expected) in [
            (&vocabulary().since, "Seit", true),
            (&vocabulary().since, "until", false),
            (&vocabulary().until, "t/m", true),
            (&vocabulary().by, "Έως", true),
        ] {
            assert_eq!(list.has(&fold_text(word)), expected, "{word}");
        }
        let crowns: Vec<&str> = vocabulary().crowns.by_code().map(|(code, _)| code).collect();
        assert_eq!(crowns, ["DKK", "NOK", "SEK"]);
    }
}
