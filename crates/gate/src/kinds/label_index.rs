//! All labels of a kind: those of the files it includes and of its own, one behind the other. Files are
//! shared by the kinds that include them, so that tens of thousands of labels are kept once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::labels::{FieldLabel, LabelTable, ValueStyle};

/// A label found at some place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelHit<'a> {
    /// Name of the field of the label.
    pub field: &'a str,
    /// Whether it means that field and nothing else.
    pub strong: bool,
    /// How many folded words it takes.
    pub length: usize,
}

/// All labels of a kind, for finding the longest one at a place. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct LabelIndex {
    /// Where a later file repeats a label of an earlier one, its strength holds.
    files: Vec<Arc<LabelTable>>,
}

impl LabelIndex {
    /// The labels of several files, the last of which has the last word.
    pub(super) fn of_files(files: Vec<Arc<LabelTable>>) -> Self {
        Self { files }
    }

    fn files(&self) -> impl DoubleEndedIterator<Item = &LabelTable> {
        self.files.iter().map(Arc::as_ref)
    }

    /// The notation of a text field.
    pub fn value_style(&self, field: &str) -> ValueStyle {
        let mut said = self.files().rev().filter_map(|file| file.value_style(field));
        said.next().unwrap_or(ValueStyle::Identifier)
    }

    /// The languages there are labels in, ISO 639-1.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.files().flat_map(LabelTable::languages).collect::<BTreeSet<_>>().into_iter()
    }

    /// Every label of the greatest length that begins at the first of these folded words. More
    /// than one only if fields share a label (a column and a total).
    pub fn labels_at(&self, words: &[&str]) -> Vec<LabelHit<'_>> {
        let mut there: Vec<&FieldLabel> =
            self.files().flat_map(|file| file.whole_labels_at(words)).collect();
        let is_whole = !there.is_empty();
        if !is_whole {
            there.extend(self.files().flat_map(|file| file.endings_at(words)));
        }
        let length = there.iter().map(|label| label.words.len()).max().unwrap_or(0);
        let mut found = merge_labels(there.into_iter().filter(|label| label.words.len() == length));
        if is_whole {
            found.sort_by_key(|(_, strong)| std::cmp::Reverse(*strong));
        }
        let hits = found.into_iter();
        hits.map(|(label, strong)| LabelHit { field: &label.field, strong, length }).collect()
    }

    /// Whether a label of `field` begins at the first of these folded words.
    pub fn has_label_at(&self, field: &str, words: &[&str]) -> bool {
        let mut all = self.files().flat_map(|file| file.whole_labels_at(words));
        all.any(|label| *label.field == *field)
    }

    /// Whether these folded words are a label of `field`, all of them together.
    pub fn is_label(&self, field: &str, words: &[&str]) -> bool {
        self.labels_at(words).iter().any(|hit| hit.field == field && hit.length == words.len())
    }

    /// The folded labels of `field`.
    pub fn labels_of(&self, field: &str) -> impl Iterator<Item = &str> {
        self.files().flat_map(move |file| file.labels_of(field))
    }

    /// The fields that have labels.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.files().flat_map(LabelTable::fields).collect::<BTreeSet<_>>().into_iter()
    }
}

/// Labels of several files, each with the strength that the last of them gives it.
fn merge_labels<'a>(labels: impl Iterator<Item = &'a FieldLabel>) -> Vec<(&'a FieldLabel, bool)> {
    let mut merged: Vec<(&FieldLabel, bool)> = Vec::new();
    for label in labels {
        let same = merged
            .iter_mut()
            .find(|(other, _)| other.field == label.field && other.words == label.words);
        match same {
            Some((_, strong)) => *strong = label.strong,
            None => merged.push((label, label.strong)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::labels::tests::parse;
    use super::*;

    fn index_of(files: &[&str]) -> LabelIndex {
        LabelIndex::of_files(files.iter().map(|file| Arc::new(parse(file).unwrap())).collect())
    }

    #[test]
    fn the_longest_label_at_a_place_wins() {
        let labels = index_of(&[
            "[number]\nstrong.en=['Invoice no.']\nweak.en=['invoice']\nweak.de=['*rechnung']\n\
             [other]\nstrong.en=['invoice period']\n[total]\nweak.en=['Total']\n\
             [column]\nstrong.any=['total']",
        ]);
        for (text, field, strong, length) in [
            ("invoice no 12", "number", true, 2),
            ("invoice 12", "number", false, 1),
            ("invoice period may", "other", true, 2),
            ("handelsrechnung 380", "number", false, 1),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(labels.labels_at(&words), [LabelHit { field, strong, length }], "{text}");
        }
        assert_eq!(labels.labels_at(&["total"]).len(), 2);
        assert!(labels.labels_at(&["unrelated"]).is_empty());
        assert_eq!(labels.languages().collect::<Vec<_>>(), ["de", "en"]);
    }

    #[test]
    fn a_later_file_says_how_much_a_label_is_worth() {
        let [strong, weak] = ["[number]\nstrong.en=['invoice']", "[number]\nweak.en=['invoice']"];
        for (first, then, expected) in [(strong, weak, false), (weak, strong, true)] {
            let labels = index_of(&[first, then]);
            let found = labels.labels_at(&["invoice"]);
            assert!(matches!(found.as_slice(), [only] if only.strong == expected), "{found:?}");
        }
    }

    #[test]
    fn what_includes_a_file_finds_all_that_the_file_finds() {
        let text = "[number]\nstrong.en=['Tax invoice']\nweak.de=['*rechnung', 'Rechnung Nr.']\n\
                    [total]\nvalue='words'\nweak.nl=['Totaal te betalen', 'Totaal']";
        let (alone, labels) = (index_of(&[text]), index_of(&[text, ""]));
        for words in [
            &["taxinvoice"][..],
            &["teilrechnung"],
            &["totaal", "te", "betalen"],
            &["totaal", "12"],
        ] {
            assert!(!alone.labels_at(words).is_empty(), "{words:?}");
            assert_eq!(labels.labels_at(words), alone.labels_at(words), "{words:?}");
        }
        assert_eq!(labels.value_style("total"), ValueStyle::Words);
        assert!(labels.languages().eq(alone.languages()));
        for field in ["number", "total"] {
            assert!(labels.labels_of(field).eq(alone.labels_of(field)), "{field}");
        }
    }

    #[test]
    fn kinds_that_include_a_file_share_its_labels() {
        let kinds = crate::kinds::KindSet::load(&docmill_core::config::KindsConfig::default());
        let kinds = kinds.unwrap();
        let files = |name: &str| kinds.get(name).unwrap().labels.files.clone();
        let invoice = files("invoice");
        assert_eq!(invoice.len(), 1);
        for name in ["receipt", "credit_note"] {
            let own = files(name);
            assert_eq!(own.len(), 2, "{name}");
            assert!(Arc::ptr_eq(&own[0], &invoice[0]), "{name}");
        }
    }
}
