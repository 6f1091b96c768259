//! Text against text. Reading order differs between readers, so words are compared as multisets
//! first and characters second.

use std::collections::HashMap;

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

/// Beyond so many characters the edit distance is not computed: it takes their square.
const MAX_CHARACTERS: usize = 10_000;

/// How much of a text was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextScore {
    /// 0..1: share of the truth's words, longer than one letter, that are there.
    pub word_recall: f64,
    /// Edits per character of the truth, white space collapsed; none for very long texts.
    pub character_error_rate: Option<f64>,
}

impl TextScore {
    /// Compares the known text with the one that was read, NFKC and case-folded.
    pub fn compare_texts(known: &str, read: &str) -> Self {
        let (known, read) = (normalise_text(known), normalise_text(read));
        Self {
            word_recall: word_recall(&known, &read),
            character_error_rate: error_rate(&known, &read),
        }
    }
}

fn normalise_text(text: &str) -> String {
    // Up and down again is full case folding but for a few scripts: ß as ss, final sigma as sigma.
    let folded = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let folded: String = folded.nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count_words(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    for word in words.filter(|word| word.chars().nth(1).is_some()) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

fn word_recall(known: &str, read: &str) -> f64 {
    let (known, read) = (count_words(known), count_words(read));
    let total: usize = known.values().sum();
    let found: usize =
        known.iter().map(|(word, count)| count.min(read.get(word).unwrap_or(&0))).sum();
    if total == 0 { 1.0 } else { found as f64 / total as f64 }
}

fn error_rate(known: &str, read: &str) -> Option<f64> {
    let (known, read): (Vec<char>, Vec<char>) = (known.chars().collect(), read.chars().collect());
    if known.is_empty() || known.len() > MAX_CHARACTERS || read.len() > MAX_CHARACTERS {
        return None;
    }
    Some(edit_distance(&known, &read) as f64 / known.len() as f64)
}

/// Levenshtein's distance, row by row.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (to, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *above;
            left = replaced.min(left + 1).min(diagonal + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_and_characters_edited() {
        #[rustfmt::skip]
        let table = [
            ("Total 12,50 EUR", "total 12,50 eur", 1.0, Some(0.0)),
            ("one two two", "two one", 2.0 / 3.0, None),
            ("kitten", "sitting", 0.0, Some(0.5)),
            ("a b c", "", 1.0, Some(1.0)),
            ("ﬁne", "fine", 1.0, Some(0.0)),
            ("Straße 12", "STRASSE 12", 1.0, Some(0.0)),
            ("", "anything", 1.0, None),
        ];
        for (known, read, recall, rate) in table {
            let score = TextScore::compare_texts(known, read);
            assert!((score.word_recall - recall).abs() < 1e-9, "{known}: {score:?}");
            if let Some(rate) = rate {
                let own = score.character_error_rate.unwrap();
                assert!((own - rate).abs() < 1e-9, "{known}: {score:?}");
            }
        }
    }
}
