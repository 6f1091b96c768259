//! Words of languages that the reader knows whatever kind a document is of: `config/words.toml`, built in.
//! Labels of values are the kind's, and stand in its `labels.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use docmill_formats::notation::fold_text;
use serde::Deserialize;

/// The words of one purpose, folded, of all languages.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Vec<String>>")]
pub(super) struct WordList(BTreeSet<String>);

impl From<BTreeMap<String, Vec<String>>> for WordList {
    fn from(by_language: BTreeMap<String, Vec<String>>) -> Self {
        Self(by_language.values().flatten().map(|word| fold_text(word)).collect())
    }
}

impl WordList {
    /// Whether a folded word, or several with single spaces, is one of them.
    pub(super) fn has(&self, folded: &str) -> bool {
        self.0.contains(folded)
    }

    /// Whether one of them, of at most two words, is among the words of a folded text.
    pub(super) fn is_within(&self, folded: &str) -> bool {
        let words: Vec<&str> = folded.split(' ').collect();
        let pairs = || words.windows(2).any(|pair| self.has(&pair.join(" ")));
        words.iter().any(|word| self.has(word)) || pairs()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Folded words by the code of the currency that they speak for.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Vec<String>>")]
pub(super) struct CurrencyWords(BTreeMap<String, WordList>);

impl From<BTreeMap<String, Vec<String>>> for CurrencyWords {
    fn from(by_code: BTreeMap<String, Vec<String>>) -> Self {
        let folded =
            |(code, words)| (code, WordList::from(BTreeMap::from([(String::new(), words)])));
        Self(by_code.into_iter().map(folded).collect())
    }
}

impl CurrencyWords {
    pub(super) fn by_code(&self) -> impl Iterator<Item = (&str, &WordList)> {
        self.0.iter().map(|(code, words)| (code.as_str(), words))
    }
}

/// The sections of `config/words.toml`, which says what each is for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vocabulary {
    pub(super) including: WordList,
    pub(super) includes: WordList,
    pub(super) amounts_to: WordList,
    pub(super) excluding: WordList,
    pub(super) denied: WordList,
    pub(super) number_mark: WordList,
    pub(super) number_front: WordList,
    pub(super) number_front_marked: WordList,
    pub(super) before_value: WordList,
    pub(super) after_value: WordList,
    pub(super) series: WordList,
    pub(super) counted: WordList,
    pub(super) day: WordList,
    pub(super) by: WordList,
    pub(super) by_the: WordList,
    pub(super) paying: WordList,
    pub(super) on: WordList,
    pub(super) collecting: WordList,
    pub(super) until: WordList,
    pub(super) from_then_on: WordList,
    pub(super) since: WordList,
    pub(super) of_day: WordList,
    pub(super) year_mark: WordList,
    pub(super) clock: WordList,
    pub(super) plain_english: WordList,
    pub(super) plain_other: WordList,
    pub(super) american: WordList,
    pub(super) street: WordList,
    pub(super) street_of: WordList,
    pub(super) room: WordList,
    pub(super) post_box: WordList,
    pub(super) town_label: WordList,
    pub(super) code_label: WordList,
    pub(super) reach: WordList,
    pub(super) office: WordList,
    pub(super) registration: WordList,
    pub(super) account: WordList,
    pub(super) register: WordList,
    pub(super) court: WordList,
    pub(super) salesperson: WordList,
    pub(super) form_before: WordList,
    pub(super) form_ending: WordList,
    pub(super) title: WordList,
    pub(super) owner: WordList,
    pub(super) and: WordList,
    pub(super) crowns: CurrencyWords,
    pub(super) dollars: CurrencyWords,
    pub(super) foreign_tax: WordList,
    pub(super) half_tax: WordList,
    pub(super) taxed: CurrencyWords,
}

static BUILT_IN: LazyLock<Vocabulary> = LazyLock::new(|| {
    // A test holds that the file can be read.
    toml::from_str(include_str!("../../../../../config/words.toml")).unwrap_or_default()
});

/// The words that ship.
pub(super) fn vocabulary() -> &'static Vocabulary {
    &BUILT_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../../../../config/words.toml");

    #[test]
    fn every_section_is_known_and_holds_words_that_can_be_found() {
        let read: Result<Vocabulary, _> = toml::from_str(FILE);
        assert!(read.is_ok(), "{read:?}");
        let sections: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            toml::from_str(FILE).unwrap();
        for (section, by_language) in sections {
            assert!(!by_language.is_empty(), "{section}");
            for (language, words) in by_language {
                let currency = docmill_formats::notation::currency::iso_code(&language).is_some();
                assert!(
                    currency || language == "any" || language.len() == 2,
                    "{section}.{language}"
                );
                assert!(!words.is_empty(), "{section}.{language}");
                for word in words {
                    assert!(!fold_text(&word).is_empty(), "{section}.{language}: {word}");
                }
            }
        }
    }

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
