//! A tenant's own companies: never the supplier, and a sign of the buyer wherever they are printed.
//!
//! Values are compared folded, and names with their legal forms: `Muster AG` is not `Muster GmbH`. On
//! pages a mark counts from the beginning of a word to the end of one. Not promised: a name that is
//! wrapped over two lines, or misread.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::checks::FailedFields;
use super::subject::GateSubject;
use crate::kinds::{FieldRole, Kind};
use docmill_core::model::{OwnCompany, TextLine, Transcript};
use docmill_formats::notation::party_name::{FoldedName, fold_letters, name_words};
use docmill_formats::notation::printed_vat_id;

/// Companies that the prompt of a model names.
const MAX_PROMPT_COMPANIES: usize = 40;

/// Letters of a part of an address that is a mark: a house number is none.
const MIN_ADDRESS_LETTERS: usize = 5;

/// Words behind the number of a VAT identifier, as in Switzerland and Norway.
const VAT_SUFFIXES: [&str; 5] = ["mwst", "tva", "iva", "mva", "vat"];

/// The sort of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkSort {
    Name,
    VatId,
    Account,
    /// A part of the address with this index.
    Address(usize),
}

/// A text by which a company is found on a page.
#[derive(Debug, Clone, PartialEq)]
struct CompanyMark {
    /// Folded, without spaces.
    letters: String,
    sort: MarkSort,
}

/// A mark on a page.
#[derive(Debug, Clone, PartialEq)]
struct PrintedMark {
    page: usize,
    line: usize,
    words: Range<usize>,
    sort: MarkSort,
    /// Which of the marks it is.
    letters: String,
}

/// The own companies of one tenant, ready for comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnCompanies {
    names: HashMap<Vec<String>, Vec<FoldedName>>,
    vat_ids: HashSet<String>,
    accounts: HashSet<String>,
    /// By their first letter.
    marks: HashMap<char, Vec<CompanyMark>>,
    /// How many parts each address has.
    address_parts: Vec<usize>,
    prompt: Arc<str>,
}

impl OwnCompanies {
    /// Prepares the companies of one tenant.
    pub fn new(companies: &[OwnCompany]) -> Self {
        let mut own = Self::default();
        for company in companies {
            own.add_company(company);
        }
        own.prompt = write_prompt(companies).into();
        own
    }

    fn add_company(&mut self, company: &OwnCompany) {
        for name in std::iter::once(&company.name).chain(&company.other_names) {
            let folded = FoldedName::new(name);
            self.add_mark(name_words(name).concat(), MarkSort::Name);
            // One word alone may be anybody's.
            if folded.words.len() > 1 {
                self.add_mark(folded.words.concat(), MarkSort::Name);
            }
            self.names.entry(folded.words.clone()).or_default().push(folded);
        }
        for id in &company.vat_ids {
            self.add_mark(fold_letters(id), MarkSort::VatId);
            self.vat_ids.insert(fold_vat_id(id));
        }
        for account in &company.accounts {
            self.add_mark(fold_letters(account), MarkSort::Account);
            self.accounts.insert(fold_letters(account));
        }
        for address in &company.addresses {
            let parts = address.split([',', ';']).map(fold_letters);
            let parts: HashSet<String> =
                parts.filter(|part| part.chars().count() >= MIN_ADDRESS_LETTERS).collect();
            let at = self.address_parts.len();
            self.address_parts.push(parts.len());
            parts.into_iter().for_each(|part| self.add_mark(part, MarkSort::Address(at)));
        }
    }

    fn add_mark(&mut self, letters: String, sort: MarkSort) {
        if let Some(first) = letters.chars().next() {
            self.marks.entry(first).or_default().push(CompanyMark { letters, sort });
        }
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The paragraph for the stable part of a model's prompt; empty: there is nothing to say.
    pub fn prompt(&self) -> &Arc<str> {
        &self.prompt
    }

    /// Whether a field of this role names an own company.
    pub fn is_own_value(&self, role: FieldRole, value: &Value) -> bool {
        let Some(text) = value.as_str() else { return false };
        match role {
            FieldRole::SupplierName | FieldRole::BuyerName => self.is_own_name(text),
            FieldRole::SupplierVatId | FieldRole::BuyerVatId => {
                self.vat_ids.contains(&fold_vat_id(text))
            }
            FieldRole::Iban => self.accounts.contains(&fold_letters(text)),
            _ => false,
        }
    }

    fn is_own_name(&self, name: &str) -> bool {
        let name = FoldedName::new(name);
        let alike = self.names.get(&name.words).into_iter().flatten();
        alike.into_iter().any(|own| own.may_equal(&name))
    }

    /// Whether a field of data names an own company.
    pub fn is_own_field(&self, data: &Map<String, Value>, kind: &Kind, role: FieldRole) -> bool {
        data.get(kind.field_of(role)).is_some_and(|value| self.is_own_value(role, value))
    }

    /// The transcript without the words that are an own company's: for a search of the other party.
    pub fn without_marks(&self, transcript: &Transcript) -> Transcript {
        let marks = self.find_marks(transcript);
        let mut rest = transcript.clone();
        for (at, page) in rest.pages.iter_mut().enumerate() {
            for (row, line) in page.lines.iter_mut().enumerate() {
                let own = marks.iter().filter(|mark| mark.page == at && mark.line == row);
                let own: Vec<&Range<usize>> = own.map(|mark| &mark.words).collect();
                let mut word = 0..;
                line.words.retain(|_| {
                    let here = word.next().unwrap_or_default();
                    own.iter().all(|range| !range.contains(&here))
                });
            }
            page.lines.retain(|line| !line.words.is_empty());
        }
        rest
    }

    /// The marks on the pages; an address counts if all its parts are there.
    fn find_marks(&self, transcript: &Transcript) -> Vec<PrintedMark> {
        let mut found = Vec::new();
        for (page, text) in transcript.pages.iter().enumerate() {
            for (line, text) in text.lines.iter().enumerate() {
                self.add_marks_of_line(text, (page, line), &mut found);
            }
        }
        let mut parts: HashMap<usize, HashSet<&str>> = HashMap::new();
        for mark in &found {
            if let MarkSort::Address(at) = mark.sort {
                parts.entry(at).or_default().insert(&mark.letters);
            }
        }
        let whole: HashSet<usize> = parts
            .into_iter()
            .filter(|(at, parts)| self.address_parts.get(*at) == Some(&parts.len()))
            .map(|(at, _)| at)
            .collect();
        found.retain(|mark| match mark.sort {
            MarkSort::Address(at) => whole.contains(&at),
            _ => true,
        });
        found
    }

    fn add_marks_of_line(
        &self,
        line: &TextLine,
        (page, row): (usize, usize),
        found: &mut Vec<PrintedMark>,
    ) {
        let words = line.words.iter().enumerate();
        let pieces: Vec<(usize, String)> = words
            .flat_map(|(at, word)| name_words(&word.text).into_iter().map(move |it| (at, it)))
            .collect();
        for (at, (word, piece)) in pieces.iter().enumerate() {
            let marks = piece.chars().next().and_then(|first| self.marks.get(&first));
            for mark in marks.into_iter().flatten() {
                let rest = pieces.get(at..).unwrap_or_default();
                let Some(last) = last_piece(&mark.letters, rest) else { continue };
                let (words, letters) = (*word..last + 1, mark.letters.clone());
                found.push(PrintedMark { page, line: row, words, sort: mark.sort, letters });
            }
        }
    }
}

/// The word in which letters end that begin with the first piece, and end with one.
fn last_piece(letters: &str, pieces: &[(usize, String)]) -> Option<usize> {
    let mut rest = letters;
    for (word, piece) in pieces {
        rest = rest.strip_prefix(piece.as_str())?;
        if rest.is_empty() {
            return Some(*word);
        }
    }
    None
}

fn fold_vat_id(id: &str) -> String {
    let letters = fold_letters(id);
    let bare = VAT_SUFFIXES.iter().find_map(|suffix| letters.strip_suffix(suffix));
    bare.unwrap_or(&letters).to_owned()
}

/// Names as JSON, so that none can be read as an instruction.
fn write_prompt(companies: &[OwnCompany]) -> String {
    if companies.is_empty() {
        return String::new();
    }
    let mut text = "\nThe documents come to these companies. They are the buyer and never the supplier; \
                    their VAT identifiers are never the supplier's, their accounts never those to pay \
                    to:"
        .to_owned();
    for company in companies.iter().take(MAX_PROMPT_COMPANIES) {
        let names: Vec<&String> =
            std::iter::once(&company.name).chain(&company.other_names).collect();
        let shown = serde_json::json!({ "names": names, "vat_ids": company.vat_ids });
        // Writing to a string cannot fail.
        _ = write!(text, " {shown}");
    }
    text.push('\n');
    text
}

impl GateSubject<'_> {
    /// Fields of the supplier that are an own company's, and those left empty where only an own value
    /// was printed: an account to pay to, or a VAT identifier beside another.
    pub(super) fn fields_of_own_company(&self, fields: &[String]) -> FailedFields {
        let own = &self.lookups.own;
        if own.is_empty() {
            return Vec::new();
        }
        let marks = own.find_marks(self.transcript);
        let is_printed = |sort| marks.iter().any(|mark| mark.sort == sort);
        let failed = fields.iter().filter(|field| {
            let Some(role) = self.kind.role_of(field) else { return false };
            let value = self.field_value(field);
            let hidden = value.is_null()
                && match role {
                    FieldRole::Iban => is_printed(MarkSort::Account),
                    FieldRole::SupplierVatId => {
                        is_printed(MarkSort::VatId) && self.prints_other_vat_id()
                    }
                    _ => false,
                };
            hidden || own.is_own_value(role, value)
        });
        failed.map(|field| Some(field.clone())).collect()
    }

    /// Whether a VAT identifier is printed that is no own company's.
    fn prints_other_vat_id(&self) -> bool {
        let mut lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        lines.any(|line| {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            let mut ids = (0..words.len())
                .filter_map(|at| printed_vat_id::find_at(words.get(at..).unwrap_or_default()));
            ids.any(|(id, _)| !self.lookups.own.vat_ids.contains(&fold_vat_id(&id)))
        })
    }

    /// The first known field of the buyer, if neither the data nor the pages name an own company.
    pub(super) fn fields_of_other_buyer(&self, fields: &[String]) -> FailedFields {
        let own = &self.lookups.own;
        let known: Vec<&String> =
            fields.iter().filter(|field| !self.field_value(field).is_null()).collect();
        let is_own = |field: &&String| {
            let role = self.kind.role_of(field);
            role.is_some_and(|role| own.is_own_value(role, self.field_value(field)))
        };
        let (Some(first), false) = (known.first(), own.is_empty()) else { return Vec::new() };
        if known.iter().any(is_own) || self.names_own_company(&known) {
            return Vec::new();
        }
        vec![Some((**first).clone())]
    }

    /// Whether a mark of an own company stands in these fields, or on the pages.
    fn names_own_company(&self, fields: &[&String]) -> bool {
        let own = &self.lookups.own;
        let within = fields.iter().any(|field| {
            let text = self.field_value(field).as_str().unwrap_or_default();
            let pieces: Vec<(usize, String)> = name_words(text).into_iter().enumerate().collect();
            let marks = own.marks.values().flatten().filter(|mark| mark.sort == MarkSort::Name);
            marks.into_iter().any(|mark| {
                (0..pieces.len()).any(|at| {
                    last_piece(&mark.letters, pieces.get(at..).unwrap_or_default()).is_some()
                })
            })
        });
        within || !own.find_marks(self.transcript).is_empty()
    }
}
