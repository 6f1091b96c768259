//! An invoice as a person reads it: its values by the terms of EN 16931, in a language of the reader.
//!
//! The terms are data, `config/einvoice_terms.toml`. Not promised: parts of an XML that are no field
//! of the data; the transcript lists those.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A language that there are terms in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TermLanguage {
    /// English.
    En,
    /// German.
    De,
    /// French.
    Fr,
}

impl TermLanguage {
    /// All, the usual one first.
    pub const ALL: [Self; 3] = [Self::En, Self::De, Self::Fr];

    /// Its code of ISO 639-1.
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
        }
    }

    /// By its code, with or without a region: `de`, `de-AT`.
    pub fn from_code(code: &str) -> Option<Self> {
        let language = code.split('-').next().unwrap_or_default().trim();
        Self::ALL.into_iter().find(|one| one.code().eq_ignore_ascii_case(language))
    }

    /// The first that a browser's `Accept-Language` names, in its order; English if it names none.
    pub fn from_accepted(header: &str) -> Self {
        let named = header.split(',').filter_map(|part| part.split(';').next());
        named.filter_map(Self::from_code).next().unwrap_or(Self::En)
    }
}

/// A term of the standard and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TermValue {
    /// `BT-1`; empty: it has no number.
    pub term: String,
    /// Its name.
    pub label: String,
    /// The value.
    pub value: String,
}

/// Entries of one kind: lines, taxes, allowances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TermTable {
    /// `BG-25`; empty: it has no number.
    pub term: String,
    /// Its name.
    pub label: String,
    /// The columns that an entry has a value in; `value` is empty.
    pub columns: Vec<TermValue>,
    /// The entries, a value for each column.
    pub rows: Vec<Vec<String>>,
}

/// An invoice by the terms of the standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InvoiceView {
    /// The language of the names.
    pub language: TermLanguage,
    /// Values of the whole invoice.
    pub values: Vec<TermValue>,
    /// Its lists, those with an entry.
    pub tables: Vec<TermTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TermFile {
    value: Vec<NamedTerm>,
    list: Vec<NamedList>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedTerm {
    field: String,
    term: String,
    en: String,
    de: String,
    fr: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedList {
    field: String,
    term: String,
    en: String,
    de: String,
    fr: String,
    columns: Vec<NamedTerm>,
}

/// Built in; a test reads it.
static TERMS: LazyLock<Option<TermFile>> =
    LazyLock::new(|| toml::from_str(include_str!("../../../config/einvoice_terms.toml")).ok());

impl InvoiceView {
    /// The data of an invoice. Fields without a term are left out, and those without a value.
    pub fn of_data(data: &Map<String, Value>, language: TermLanguage) -> Self {
        let mut view = Self { language, values: Vec::new(), tables: Vec::new() };
        let Some(terms) = TERMS.as_ref() else { return view };
        for named in &terms.value {
            let value = data.get(&named.field).map(shown_value).unwrap_or_default();
            if !value.is_empty() {
                let label = named.label(language).to_owned();
                view.values.push(TermValue { term: named.term.clone(), label, value });
            }
        }
        let tables = terms.list.iter().filter_map(|list| list.table_of(data, language));
        view.tables = tables.collect();
        view
    }
}

impl NamedTerm {
    fn label(&self, language: TermLanguage) -> &str {
        match language {
            TermLanguage::En => &self.en,
            TermLanguage::De => &self.de,
            TermLanguage::Fr => &self.fr,
        }
    }
}

impl NamedList {
    fn table_of(&self, data: &Map<String, Value>, language: TermLanguage) -> Option<TermTable> {
        let entries = data.get(&self.field)?.as_array()?;
        let is_filled = |column: &&NamedTerm| {
            entries.iter().any(|entry| entry.get(&column.field).is_some_and(|it| !it.is_null()))
        };
        let columns: Vec<&NamedTerm> = self.columns.iter().filter(is_filled).collect();
        let rows = entries.iter().map(|entry| {
            let cell =
                |column: &&NamedTerm| entry.get(&column.field).map(shown_value).unwrap_or_default();
            columns.iter().map(cell).collect::<Vec<String>>()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let label = match language {
            TermLanguage::En => &self.en,
            TermLanguage::De => &self.de,
            TermLanguage::Fr => &self.fr,
        };
        let columns: Vec<TermValue> = columns
            .iter()
            .map(|column| TermValue {
                term: column.term.clone(),
                label: column.label(language).to_owned(),
                value: String::new(),
            })
            .collect();
        let (term, label) = (self.term.clone(), label.clone());
        (!columns.is_empty()).then_some(TermTable { term, label, columns, rows })
    }
}

/// A value without its notation in JSON; nothing for null.
fn shown_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invoice_is_shown_by_the_terms_of_the_standard_in_each_language() {
        let data = json!({
            "invoice_number": "R 1", "total": 11.9, "iban": null, "unheard_of": "x",
            "line_items": [{"description": "Mehl", "amount": 10, "unit": null}],
            "charges": [],
        });
        let data = data.as_object().unwrap();
        for (language, number, line) in [
            (TermLanguage::En, "Invoice number", "Invoice line"),
            (TermLanguage::De, "Rechnungsnummer", "Rechnungsposition"),
            (TermLanguage::Fr, "Numéro de facture", "Ligne de facture"),
        ] {
            let view = InvoiceView::of_data(data, language);
            let shown: Vec<_> =
                view.values.iter().map(|it| (it.term.as_str(), it.value.as_str())).collect();
            assert_eq!(shown, [("BT-1", "R 1"), ("BT-112", "11.9")]);
            assert_eq!(view.values[0].label, number);
            let [table] = &view.tables[..] else { panic!("{:?}", view.tables) };
            assert_eq!((table.term.as_str(), table.label.as_str()), ("BG-25", line));
            assert_eq!(table.rows, [["Mehl", "10"]]);
        }
    }

    #[test]
    fn the_language_is_the_first_that_a_browser_asks_for_and_that_there_is() {
        for (header, language) in [
            ("de-AT,de;q=0.9,en;q=0.8", TermLanguage::De),
            ("pl, fr;q=0.7", TermLanguage::Fr),
            ("pl", TermLanguage::En),
            ("", TermLanguage::En),
        ] {
            assert_eq!(TermLanguage::from_accepted(header), language, "{header}");
        }
    }
}
