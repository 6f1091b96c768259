//! All labels of a kind: those of the files it includes and of its own, one behind the other. Files are
//! shared by the kinds that include them, so that tens of thousands of labels are kept once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::labels::{FieldLabel, LabelTable, ValueStyle};
use super::role::RoleNames;

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
    /// Sections of included files are of the roles that they name.
    roles: RoleNames,
}

impl LabelIndex {
    /// The labels of several files, the last of which has the last word.
    pub(super) fn of_files(files: Vec<Arc<LabelTable>>, roles: RoleNames) -> Self {
        Self { files, roles }
    }

    fn files(&self) -> impl DoubleEndedIterator<Item = &LabelTable> {
        self.files.iter().map(Arc::as_ref)
    }

    /// The notation of a text field.
    pub fn value_style(&self, field: &str) -> ValueStyle {
        let name = self.roles.name_of(field);
        let mut said = self
            .files()
            .rev()
            .filter_map(|file| file.value_style(field).or_else(|| file.value_style(name)));
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
        let longest = there.into_iter().filter(|label| label.words.len() == length);
        let mut found = self.merge_labels(longest);
        if is_whole {
            found.sort_by_key(|(_, strong)| std::cmp::Reverse(*strong));
        }
        let hits = found.into_iter();
        hits.map(|(label, strong)| LabelHit { field: self.field_of(label), strong, length })
            .collect()
    }

    /// Whether a label of `field` begins at the first of these folded words.
    pub fn has_label_at(&self, field: &str, words: &[&str]) -> bool {
        let mut all = self.files().flat_map(|file| file.whole_labels_at(words));
        all.any(|label| self.field_of(label) == field)
    }

    /// Whether these folded words are a label of `field`, all of them together.
    pub fn is_label(&self, field: &str, words: &[&str]) -> bool {
        self.labels_at(words).iter().any(|hit| hit.field == field && hit.length == words.len())
    }

    /// The folded labels of `field`.
    pub fn labels_of<'n>(&'n self, field: &'n str) -> impl Iterator<Item = &'n str> {
        let name = self.roles.name_of(field);
        let renamed = Some(name).filter(|name| *name != field);
        let sections = [field].into_iter().chain(renamed);
        sections.flat_map(|section| self.files().flat_map(move |file| file.labels_of(section)))
    }

    /// The fields that have labels.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let sections = self.files().flat_map(LabelTable::fields);
        sections.map(|section| self.roles.field_of(section)).collect::<BTreeSet<_>>().into_iter()
    }

    fn field_of<'n>(&'n self, label: &'n FieldLabel) -> &'n str {
        self.roles.field_of(&label.field)
    }

    /// Labels of several files, each with the strength that the last of them gives it.
    fn merge_labels<'l>(
        &self,
        labels: impl Iterator<Item = &'l FieldLabel>,
    ) -> Vec<(&'l FieldLabel, bool)> {
        let mut merged: Vec<(&FieldLabel, bool)> = Vec::new();
        for label in labels {
            let same = merged.iter_mut().find(|(other, _)| {
                self.field_of(other) == self.field_of(label) && other.words == label.words
            });
            match same {
                Some((_, strong)) => *strong = label.strong,
                None => merged.push((label, label.strong)),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::super::labels::tests::parse;
    use super::*;

    fn index_of(files: &[&str]) -> LabelIndex {
        let files = files.iter().map(|file| Arc::new(parse(file).unwrap())).collect();
        LabelIndex::of_files(files, RoleNames::default())
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
    fn labels_of_a_role_are_those_of_the_field_that_has_it() {
        let files = [
            "[total]\nvalue='words'\nweak.en=['Total']",
            "[sum]\nstrong.en=['total']\nweak.de=['Summe']",
        ];
        let files = files.iter().map(|file| Arc::new(parse(file).unwrap())).collect();
        let renamed = [("total".to_owned(), "sum".to_owned())];
        let labels = LabelIndex::of_files(files, RoleNames(renamed.into()));
        let hit = LabelHit { field: "sum", strong: true, length: 1 };
        assert_eq!(labels.labels_at(&["total"]), [hit], "one label of one field");
        assert!(
            labels.has_label_at("sum", &["total"]) && !labels.has_label_at("total", &["total"])
        );
        assert!(labels.labels_of("sum").eq(["total", "summe", "total"]));
        assert!(labels.fields().eq(["sum"]));
        assert_eq!(labels.value_style("sum"), ValueStyle::Words);
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
