//! `labels.toml`: what stands beside a value on the page.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::notation::fold;

/// Labels of one field, as written in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FieldLabels {
    /// Labels that mean this field and nothing else.
    pub strong: Vec<String>,
    /// Labels that may mean something else as well.
    pub weak: Vec<String>,
}

/// All labels of a kind, indexed for finding the longest one at a place.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// Folded first word to labels, longest first.
    by_first: BTreeMap<String, Vec<Label>>,
    /// Endings of words (`*rechnung`).
    endings: Vec<Label>,
    /// Folded labels by field, for lookups of whole texts.
    fields: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
struct Label {
    field: String,
    strong: bool,
    words: Vec<String>,
}

/// A label found at some place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<'a> {
    /// Its field.
    pub field: &'a str,
    /// Whether it means that field and nothing else.
    pub strong: bool,
    /// How many folded words it takes.
    pub length: usize,
}

impl Labels {
    /// Reads the file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields: BTreeMap<String, FieldLabels> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let mut labels = Self::default();
        for (field, own) in fields {
            for (strong, texts) in [(true, own.strong), (false, own.weak)] {
                for text in texts {
                    labels.add(&field, strong, &text)?;
                }
            }
        }
        for list in labels.by_first.values_mut() {
            list.sort_by_key(|label| std::cmp::Reverse((label.words.len(), label.strong)));
        }
        labels.endings.sort_by_key(|label| std::cmp::Reverse(label.words.len()));
        Ok(labels)
    }

    fn add(&mut self, field: &str, strong: bool, text: &str) -> Result<(), String> {
        let folded = fold(text);
        let words: Vec<String> = folded.split(' ').map(str::to_owned).collect();
        let Some(first) = words.first().filter(|first| !first.is_empty()).cloned() else {
            return Err(format!("[{field}] has a label without a letter: `{text}`"));
        };
        let label = Label { field: field.to_owned(), strong, words };
        if text.starts_with('*') {
            self.endings.push(label);
        } else {
            self.by_first.entry(first).or_default().push(label);
        }
        self.fields.entry(field.to_owned()).or_default().push(folded);
        Ok(())
    }

    /// Every label of the greatest length that begins at the first of these folded words. More
    /// than one only if fields share a label (a column and a total).
    pub fn at(&self, words: &[&str]) -> Vec<Match<'_>> {
        let Some(first) = words.first() else { return Vec::new() };
        let whole = self.by_first.get(*first).into_iter().flatten();
        let found: Vec<&Label> = whole.filter(|label| begins(words, &label.words)).collect();
        let found = if found.is_empty() {
            self.endings.iter().filter(|label| ends_first(words, &label.words)).collect()
        } else {
            found
        };
        let longest = found.iter().map(|label| label.words.len()).max().unwrap_or(0);
        let best = found.into_iter().filter(|label| label.words.len() == longest);
        best.map(|label| Match { field: &label.field, strong: label.strong, length: longest })
            .collect()
    }

    /// Whether `folded` is, as a whole, a label of `field`.
    pub fn is(&self, field: &str, folded: &str) -> bool {
        self.of(field).any(|label| label == folded)
    }

    /// Whether a label of `field` begins at the first of these folded words.
    pub fn at_of(&self, field: &str, words: &[&str]) -> bool {
        let Some(first) = words.first() else { return false };
        let own = self.by_first.get(*first).into_iter().flatten();
        own.filter(|label| label.field == field).any(|label| begins(words, &label.words))
    }

    /// The folded labels of `field`.
    pub fn of(&self, field: &str) -> impl Iterator<Item = &str> {
        self.fields.get(field).into_iter().flatten().map(String::as_str)
    }

    /// The fields that have labels.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }
}

fn begins(words: &[&str], label: &[String]) -> bool {
    words.len() >= label.len() && words.iter().zip(label).all(|(word, own)| word == own)
}

fn ends_first(words: &[&str], label: &[String]) -> bool {
    let mut pairs = words.iter().zip(label);
    words.len() >= label.len()
        && pairs.next().is_some_and(|(word, own)| word.ends_with(own.as_str()))
        && pairs.all(|(word, own)| word == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_label_at_a_place_wins() {
        let labels = Labels::parse(
            "[number]\nstrong=['Invoice no.']\nweak=['invoice', '*rechnung']\n\
             [other]\nstrong=['invoice period']\n[total]\nweak=['Total']\n[column]\nstrong=['total']",
        )
        .unwrap();
        for (text, field, strong, length) in [
            ("invoice no 12", "number", true, 2),
            ("invoice 12", "number", false, 1),
            ("invoice period may", "other", true, 2),
            ("handelsrechnung 380", "number", false, 1),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(labels.at(&words), [Match { field, strong, length }], "{text}");
        }
        assert_eq!(labels.at(&["total"]).len(), 2);
        assert!(labels.at(&["unrelated"]).is_empty());
    }

    #[test]
    fn a_misspelt_key_and_an_empty_label_are_refused() {
        assert!(Labels::parse("[number]\nstong=['a']").unwrap_err().contains("stong"));
        assert!(Labels::parse("[number]\nweak=['--']").unwrap_err().contains("number"));
    }
}
