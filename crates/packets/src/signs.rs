//! The signs of a page: what it says about the document that it is a page of.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::page_count::PageCount;
use crate::words::DATA;
use docmill_core::model::{Extraction, PageText, TextLine, Transcript};
use docmill_extract::rules::extract_by_rules;
use docmill_formats::notation::account::find_iban_at;
use docmill_formats::notation::fold_text;
use docmill_formats::notation::printed_vat_id;
use docmill_formats::notation::vat_id::normalise_vat_id;
use docmill_gate::kinds::{FieldRole, KindSet};

/// A page of so few words is blank, or the back of another.
const MAX_BLANK_WORDS: usize = 3;
/// Shares of the height that stationery is printed in.
const HEAD: f32 = 0.18;
const FOOT: f32 = 0.88;
/// Share of the height in which a title heads a page, and the words of its line.
const TITLE_DEPTH: f32 = 0.5;
const MAX_TITLE_WORDS: usize = 6;
/// Characters that a number needs to be looked for on other pages.
const MIN_NUMBER_CHARS: usize = 6;

/// Signs of a page, read as if it were a document of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageSigns {
    /// Nothing is on it.
    pub(crate) blank: bool,
    /// Which page it says it is.
    pub(crate) count: Option<PageCount>,
    /// A kind's title heads it.
    pub(crate) titled: bool,
    /// The title of a paper that goes with another heads it.
    pub(crate) supporting: bool,
    /// The document's number, as it is compared.
    pub(crate) number: Option<String>,
    /// The day of issue.
    pub(crate) day: Option<String>,
    /// The issuer's name, folded and without spaces.
    pub(crate) issuer: Option<String>,
    /// The issuer's VAT identifier.
    pub(crate) vat_id: Option<String>,
    /// Bank accounts.
    pub(crate) accounts: BTreeSet<String>,
    /// VAT identifiers of anybody.
    pub(crate) vat_ids: BTreeSet<String>,
    /// A total was read.
    pub(crate) closed: bool,
    /// Sums beside words for sums that are carried on.
    pub(crate) carried: BTreeSet<String>,
    /// Words of the stationery.
    pub(crate) head: BTreeSet<String>,
    pub(crate) foot: BTreeSet<String>,
    /// Width by height.
    pub(crate) ratio: f32,
    /// The lines' letters and digits alone.
    lines: Vec<String>,
}

impl PageSigns {
    /// Reads a page.
    pub fn read(page: &PageText, kinds: &KindSet) -> Self {
        let mut signs = Self {
            blank: page.lines.iter().map(|line| line.words.len()).sum::<usize>() <= MAX_BLANK_WORDS,
            count: PageCount::read(page),
            ratio: page.width / page.height.max(1.0),
            ..Self::default()
        };
        if signs.blank {
            return signs;
        }
        for line in &page.lines {
            signs.add_line(line, line.bounding_box().y / page.height.max(1.0));
        }
        signs.read_as_document(page, kinds);
        signs
    }

    fn add_line(&mut self, line: &TextLine, depth: f32) {
        let text = line.text();
        let folded = fold_text(&text);
        let stationery = match depth {
            _ if depth <= HEAD => Some(&mut self.head),
            _ if depth >= FOOT => Some(&mut self.foot),
            _ => None,
        };
        if let Some(words) = stationery {
            let plain = folded.split(' ').filter(|word| word.chars().count() > 2);
            words.extend(plain.filter(|word| !has_digit(word)).map(str::to_owned));
        }
        if DATA.words.carried.stands_in(&folded) {
            let sums = line.words.iter().map(|word| digits_of(&word.text));
            self.carried.extend(sums.filter(|digits| digits.len() > 2));
        }
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        for at in 0..words.len() {
            let rest = words.get(at..).unwrap_or_default();
            self.accounts.extend(find_iban_at(rest).map(|(account, _)| account));
            let vat_id = printed_vat_id::find_at(rest).map(|(id, _)| normalise_vat_id(&id));
            self.vat_ids.extend(vat_id);
        }
        self.lines.push(compared(&text));
    }

    /// Has the rules reader read the page by itself.
    fn read_as_document(&mut self, page: &PageText, kinds: &KindSet) {
        let titles = kinds.find_titles(page);
        self.supporting = heads_supporting(page) || (titles.excluded && titles.kind.is_none());
        self.titled = titles.kind.is_some() && !self.supporting;
        let alone = Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            quality: page.quality,
            pages: vec![PageText { number: 1, ..page.clone() }],
        };
        let classified = titles.kind.or_else(|| kinds.classify(&alone).map(|it| it.kind));
        let Some(kind) = classified else { return };
        let read = extract_by_rules(&alone, &kind);
        let [number, day, issuer, vat_id] = [
            FieldRole::DocumentNumber,
            FieldRole::IssueDate,
            FieldRole::SupplierName,
            FieldRole::SupplierVatId,
        ]
        .map(|role| certain_text(&read, kind.field_of(role)));
        // A delivery note has a number of its own and is no document of its own.
        let number = number.filter(|_| !self.supporting);
        self.number = number.map(compared).filter(|number| has_digit(number));
        self.day = day.map(str::to_owned);
        self.vat_id = vat_id.map(normalise_vat_id);
        // The largest line of a page of terms is no name.
        let is_named = self.titled || self.number.is_some() || self.day.is_some();
        let is_named = is_named || self.vat_id.is_some() || !self.accounts.is_empty();
        self.issuer = issuer.filter(|_| is_named).map(|name| fold_text(name).replace(' ', ""));
        let total = read.data.get(kind.field_of(FieldRole::Total));
        self.closed = total.is_some_and(|total| !total.is_null());
    }

    /// Whether the page prints a number of a document anywhere.
    pub(crate) fn mentions(&self, number: &str) -> bool {
        number.chars().count() >= MIN_NUMBER_CHARS
            && self.lines.iter().any(|line| line.contains(number))
    }
}

/// The value of a field that the reader is sure enough of.
fn certain_text<'e>(read: &'e Extraction, field: &str) -> Option<&'e str> {
    let weighed = read.certainties.iter().find(|it| it.field == field);
    let is_certain = weighed.is_none_or(|it| it.certainty >= DATA.thresholds.certainty);
    read.data.get(field).and_then(Value::as_str).filter(|_| is_certain)
}

/// Whether a short line in the upper half begins with the name of a paper that goes with others.
fn heads_supporting(page: &PageText) -> bool {
    page.lines.iter().any(|line| {
        let is_upper = line.bounding_box().y <= TITLE_DEPTH * page.height;
        is_upper
            && line.words.len() <= MAX_TITLE_WORDS
            && DATA.words.supporting.begins(&fold_text(&line.text()))
    })
}

/// Letters and digits alone, in capitals, with those that look alike as one.
fn compared(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase);
    letters
        .map(|c| match c {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        })
        .collect()
}

fn digits_of(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}
