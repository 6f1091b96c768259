//! `labels.toml`: what stands beside a value on the page, by language. One file as it is; what a kind finds
//! in those it includes as well is [`super::LabelIndex`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::ProblemReport;
use docmill_formats::notation::fold_text;

/// Sections that are no fields: what the rules reader has to know of the rest of a page.
pub(super) const SECTIONS: [&str; 32] = [
    "remittance_slip",
    "own_reference",
    "charge",
    "withheld",
    "due_behind",
    "payable",
    "tendered",
    "card_payment",
    "change",
    "rounding",
    "customer_vat_id",
    "debit",
    "supplier",
    "customer",
    "attention",
    "party_name",
    "party_address",
    "registered_office",
    "payee",
    "currency",
    "credit_note",
    "other",
    "legal_form",
    "prose",
    "column_description",
    "column_quantity",
    "column_unit_price",
    "column_amount",
    "column_unit",
    "column_tax_rate",
    "column_article_number",
    "column_other",
];

/// Labels of several words of at least so many letters are found without their spaces as well: some
/// engines lose them (`taxinvoice`). Shorter ones would be words of their own.
const MIN_JOINED: usize = 6;

/// The text that is read beside the labels of a text field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStyle {
    /// A number or code: it has a digit.
    Identifier,
    /// Words, up to the end of the line or a mark that ends them.
    Words,
    /// The document's title; it has no label.
    Title,
}

/// The labels of one file, indexed for finding those that begin at a place.
#[derive(Debug, Default)]
pub(super) struct LabelTable {
    /// Folded first word to labels, longest first.
    by_first: BTreeMap<String, Vec<FieldLabel>>,
    /// Endings of words (`*rechnung`).
    endings: Vec<FieldLabel>,
    /// Folded labels by field, for lookups of whole texts.
    fields: BTreeMap<String, Vec<String>>,
    /// Fields of text that are no identifiers.
    written: BTreeMap<String, ValueStyle>,
    languages: BTreeSet<String>,
}

/// A label as one file has it.
#[derive(Debug)]
pub(super) struct FieldLabel {
    /// Shared by all labels of the field.
    pub(super) field: Arc<str>,
    pub(super) strong: bool,
    pub(super) words: Vec<String>,
}

impl LabelTable {
    /// The labels of one file by itself, as far as they can be understood.
    pub(super) fn parse(text: &str) -> Self {
        let mut labels = Self::default();
        if let Ok(table) = DeTable::parse(text) {
            let mut unsaid = ProblemReport::new(Path::new(""), text);
            labels.add_file(table.get_ref(), |_| true, &mut unsaid);
        }
        labels
    }

    /// Adds a file's labels. `knows` says which sections there may be.
    pub(super) fn add_file(
        &mut self,
        table: &DeTable<'_>,
        knows: impl Fn(&str) -> bool,
        report: &mut ProblemReport<'_>,
    ) {
        for (name, section) in table {
            if name.get_ref() != "include" {
                self.add_section(name, section, &knows, report);
            }
        }
        self.sort_by_length();
    }

    fn add_section(
        &mut self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        section: &Spanned<DeValue<'_>>,
        knows: &impl Fn(&str) -> bool,
        report: &mut ProblemReport<'_>,
    ) {
        let field = name.get_ref().as_ref();
        if !knows(field) {
            let problem = format!(
                "[{field}] is neither a field of schema.json nor one of the sections {}",
                SECTIONS.join(", ")
            );
            report.report_at(name.span().start, problem);
        }
        let Some(table) = section.get_ref().as_table() else {
            report.report_at(name.span().start, format!("`{field}` must be a section, [{field}]"));
            return;
        };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "value" => self.set_value(field, value, report),
                "strong" => self.add_labels(field, true, value, report),
                "weak" => self.add_labels(field, false, value, report),
                other => {
                    let problem = format!("`{other}` is none of value, strong and weak");
                    report.report_at(key.span().start, problem);
                }
            }
        }
    }

    fn set_value(
        &mut self,
        field: &str,
        value: &Spanned<DeValue<'_>>,
        report: &mut ProblemReport<'_>,
    ) {
        let written = match value.get_ref().as_str() {
            Some("words") => ValueStyle::Words,
            Some("identifier") => ValueStyle::Identifier,
            Some("title") => ValueStyle::Title,
            _ => {
                report.report_at(
                    value.span().start,
                    "`value` is \"identifier\", \"words\" or \"title\"",
                );
                return;
            }
        };
        self.written.insert(field.to_owned(), written);
    }

    fn add_labels(
        &mut self,
        field: &str,
        strong: bool,
        value: &Spanned<DeValue<'_>>,
        report: &mut ProblemReport<'_>,
    ) {
        let key = if strong { "strong" } else { "weak" };
        let field: Arc<str> = field.into();
        for (language, text) in texts_by_language(key, value, report) {
            if self.add_label(&field, strong, text.get_ref()).is_none() {
                let problem = format!("`{}` has no letter or digit", text.get_ref());
                report.report_at(text.span().start, problem);
            }
            self.languages.insert(language);
        }
    }

    /// None if the text has nothing that could be found.
    fn add_label(&mut self, field: &Arc<str>, strong: bool, text: &str) -> Option<()> {
        let folded = fold_text(text);
        let words: Vec<String> = folded.split(' ').map(str::to_owned).collect();
        words.first().filter(|first| !first.is_empty())?;
        self.fields.entry(field.to_string()).or_default().push(folded.clone());
        let ending = text.starts_with('*');
        let joined = words.concat();
        if !ending && words.len() > 1 && joined.chars().count() >= MIN_JOINED {
            self.insert_label(field, strong, vec![joined], ending);
        }
        self.insert_label(field, strong, words, ending);
        Some(())
    }

    fn insert_label(&mut self, field: &Arc<str>, strong: bool, words: Vec<String>, ending: bool) {
        let Some(first) = words.first().cloned() else { return };
        let list = match ending {
            true => &mut self.endings,
            false => self.by_first.entry(first).or_default(),
        };
        match list.iter_mut().find(|label| label.words == words && label.field == *field) {
            // Two languages may share a word; the surer meaning of the two holds.
            Some(known) => known.strong |= strong,
            None => list.push(FieldLabel { field: Arc::clone(field), strong, words }),
        }
    }

    fn sort_by_length(&mut self) {
        for list in self.by_first.values_mut() {
            list.sort_by_key(|label| std::cmp::Reverse((label.words.len(), label.strong)));
        }
        self.endings.sort_by_key(|label| std::cmp::Reverse(label.words.len()));
    }

    /// The notation of a text field, if the file names one.
    pub(super) fn value_style(&self, field: &str) -> Option<ValueStyle> {
        self.written.get(field).copied()
    }

    /// The languages there are labels in, ISO 639-1.
    pub(super) fn languages(&self) -> impl Iterator<Item = &str> {
        self.languages.iter().map(String::as_str).filter(|language| *language != ANY)
    }

    /// The labels that begin at the first of these folded words, the longest first.
    pub(super) fn whole_labels_at(&self, words: &[&str]) -> impl Iterator<Item = &FieldLabel> {
        let own = words.first().and_then(|first| self.by_first.get(*first));
        own.into_iter().flatten().filter(|label| starts_with_label(words, &label.words))
    }

    /// The labels of which the first word is the end of the first of these.
    pub(super) fn endings_at(&self, words: &[&str]) -> impl Iterator<Item = &FieldLabel> {
        self.endings.iter().filter(|label| ends_first(words, &label.words))
    }

    /// The folded labels of `field`.
    pub(super) fn labels_of(&self, field: &str) -> impl Iterator<Item = &str> {
        self.fields.get(field).into_iter().flatten().map(String::as_str)
    }

    /// The fields that have labels.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }
}

fn starts_with_label(words: &[&str], label: &[String]) -> bool {
    words.len() >= label.len() && words.iter().zip(label).all(|(word, own)| word == own)
}

fn ends_first(words: &[&str], label: &[String]) -> bool {
    let mut pairs = words.iter().zip(label);
    words.len() >= label.len()
        && pairs.next().is_some_and(|(word, own)| word.ends_with(own.as_str()))
        && pairs.all(|(word, own)| word == own)
}

/// For words that are the same everywhere, such as `IBAN`.
const ANY: &str = "any";

/// Texts with their languages: `en = ["..."], de = ["..."]`.
pub(super) fn texts_by_language<'v>(
    key: &str,
    value: &'v Spanned<DeValue<'_>>,
    report: &mut ProblemReport<'_>,
) -> Vec<(String, Spanned<&'v str>)> {
    let Some(table) = value.get_ref().as_table() else {
        let problem =
            format!("what `{key}` holds has no language: write {key}.en = [\"...\"], or {key}.any");
        report.report_at(value.span().start, problem);
        return Vec::new();
    };
    let mut texts = Vec::new();
    for (language, list) in table {
        let name = language.get_ref().as_ref();
        let code = name.len() == 2 && name.chars().all(|c| c.is_ascii_lowercase());
        if !code && name != ANY {
            let problem = format!("`{name}` is no language: two letters of ISO 639-1, or any");
            report.report_at(language.span().start, problem);
        }
        let Some(list) = list.get_ref().as_array() else {
            report.report_at(list.span().start, format!("{key}.{name} must be a list of texts"));
            continue;
        };
        for text in list {
            match text.get_ref().as_str() {
                Some(own) => texts.push((name.to_owned(), Spanned::new(text.span(), own))),
                None => {
                    report.report_at(text.span().start, format!("{key}.{name} holds texts only"))
                }
            }
        }
    }
    texts
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn parse(text: &str) -> Result<LabelTable, String> {
        let mut labels = LabelTable::default();
        let mut report = ProblemReport::new(Path::new("labels.toml"), text);
        match DeTable::parse(text) {
            Ok(table) => labels.add_file(table.get_ref(), |name| name != "nonsense", &mut report),
            Err(error) => report.report_toml(&error),
        }
        let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
        if problems.is_empty() { Ok(labels) } else { Err(problems.join("\n")) }
    }

    #[test]
    fn what_is_wrong_with_labels_is_said_by_line() {
        for (text, problem) in [
            ("[number]\nstong.en=['a']", "labels.toml:2: `stong`"),
            ("[number]\nstrong=['a']", "labels.toml:2: what `strong` holds has no language"),
            ("[number]\n\nstrong.eng=['a']", "labels.toml:3: `eng` is no language"),
            ("[number]\nweak.en=[\n'a',\n'--']", "labels.toml:4: `--` has no letter"),
            ("[number]\nweak.en=[1]", "labels.toml:2: weak.en holds texts only"),
            ("[number]\nvalue='date'", "labels.toml:2: `value` is"),
            ("\n[nonsense]\nweak.en=['a']", "labels.toml:2: [nonsense] is neither"),
            ("[number]\nstrong.en=['a'", "labels.toml:2:"),
        ] {
            let problems = parse(text).unwrap_err();
            assert!(problems.starts_with(problem), "{text}: {problems}");
        }
    }
}
