//! Where labels are printed, and the words beside them.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Bound, Range};

use super::SUMS;
use super::characters::{count_digits, is_digits};
use super::layout::{CellLayout, TextCell};
use super::style::PageStyle;
use super::vocabulary::vocabulary;
use docmill_core::model::BoundingBox;
use docmill_formats::notation::{currency, date};
use docmill_gate::kinds::{FieldRole, Kind, LabelHit, LabelIndex};

/// The headings that make a row of a table's header.
const MAIN_COLUMNS: [&str; 4] =
    ["column_description", "column_quantity", "column_unit_price", "column_amount"];

/// Lines between a row of labels and the row of their values.
const ORDERED_REACH: f32 = 3.0;

/// A label found in a cell.
#[derive(Debug, Clone)]
pub(super) struct LabelMatch {
    /// The field, or the section of labels of something else.
    pub(super) field: String,
    /// The field's role.
    pub(super) role: Option<FieldRole>,
    pub(super) strong: bool,
    /// The cell that holds the label: an index into `CellLayout::cells`.
    pub(super) cell: usize,
    /// Words of the cell that are the label.
    pub(super) words: Range<usize>,
    /// Where it begins among the cell's folded words; a word may hold several: `Nummer/Datum`.
    pub(super) token: usize,
}

impl LabelMatch {
    pub(super) fn has_role(&self, role: FieldRole) -> bool {
        self.role == Some(role)
    }

    /// Whether it names a sum of the document, which is no line.
    pub(super) fn is_sum(&self) -> bool {
        self.role.is_some_and(|role| SUMS.contains(&role)) || self.field == "payable"
    }

    /// Whether a value is expected beside it: column headings, titles and legal forms have none.
    fn names_value(&self) -> bool {
        let field = self.field.as_str();
        !field.starts_with("column_")
            && !matches!(field, "legal_form" | "credit_note")
            && !is_side_note(field)
    }
}

/// Words that may hold a label's value.
#[derive(Debug)]
pub(super) struct ValueCandidate<'a> {
    pub(super) cell: &'a TextCell,
    /// The words of that cell.
    pub(super) words: Range<usize>,
    /// The label's own cell, rather than one right of or below it.
    pub(super) inline: bool,
    /// Whether the cell is below the label's.
    pub(super) below: bool,
}

impl ValueCandidate<'_> {
    pub(super) fn value_words(&self) -> Vec<&str> {
        self.cell.words_in(self.words.clone())
    }
}

/// Whether a section holds words that names and addresses have as well: `Freight Lane`, `Port
/// Talbot`.
pub(super) fn is_side_note(field: &str) -> bool {
    matches!(field, "charge" | "withheld" | "due_behind")
}

/// Every label of every field, in reading order. Fields that share a label each get a match.
pub(super) fn find_labels(layout: &CellLayout, kind: &Kind) -> Vec<LabelMatch> {
    let labels: &LabelIndex = &kind.labels;
    let mut matches = Vec::new();
    let read = layout.cells.iter().any(|cell| cell.from_picture);
    let known = read.then(|| KnownWords::of_kind(kind));
    for (index, cell) in layout.cells.iter().enumerate() {
        let known = known.as_ref().filter(|_| cell.from_picture);
        let folded = cell.folded.iter().map(|(text, _)| text.as_str());
        let folded: Vec<&str> =
            folded.map(|text| known.and_then(|known| known.mend(text)).unwrap_or(text)).collect();
        let spoken = tokens_without_fillers(cell);
        let mut at = 0;
        while at < folded.len() {
            let mut hits = labels.labels_at(folded.get(at..).unwrap_or_default());
            let mut length = hits.first().map_or(0, |found| found.length);
            if let Some((longer, tokens)) = labels_over_fillers(labels, &folded, &spoken, at)
                && tokens > length
            {
                (hits, length) = (longer, tokens);
            }
            let word = |token: usize| cell.folded.get(token).map(|(_, word)| *word);
            if let (Some(start), Some(last)) = (word(at), word((at + length).saturating_sub(1))) {
                let code = cell.words.get(start).filter(|_| length == 1);
                let hits = if code.is_some_and(|word| is_code(word)) { vec![] } else { hits };
                for found in hits {
                    matches.push(LabelMatch {
                        field: found.field.to_owned(),
                        role: kind.role_of(found.field),
                        strong: found.strong,
                        cell: index,
                        words: start..last + 1,
                        token: at,
                    });
                }
            }
            at += length.max(1);
        }
    }
    matches.retain(|label_match| {
        !label_match.has_role(FieldRole::TaxAmount) || !is_named_only(layout, label_match)
    });
    matches
}

/// Letters of the longest code prefix that is not part of a label.
const MAX_FRONT_LETTERS: usize = 3;

/// `KM-2024-0071182`: a code begins as some label does, and goes on with numbers behind dashes.
fn is_code(word: &str) -> bool {
    let mut parts = word.split('-');
    let front = parts.next().unwrap_or_default();
    let numbers: Vec<&str> = parts.collect();
    front.chars().count() <= MAX_FRONT_LETTERS
        && front.chars().all(char::is_uppercase)
        && !numbers.is_empty()
        && numbers.iter().all(|part: &&str| part.len() > 1 && is_digits(part))
}

/// Which of a cell's folded words are no fillers: `Total EUR excl. VAT` and `Total incl. 8.1 % VAT`
/// are the labels without the currency and the rate. Empty where there are none.
fn tokens_without_fillers(cell: &TextCell) -> Vec<usize> {
    let fillers: Vec<bool> = (0..cell.words.len())
        .map(|at: usize| {
            let word = cell.words.get(at).map_or("", String::as_str);
            let next = cell.words.get(at + 1).map_or("", String::as_str);
            let rate = word.contains('%')
                || next.starts_with('%') && word.starts_with(|c: char| c.is_ascii_digit());
            is_currency_code(word) || rate || word == "in" && is_currency_code(next)
        })
        .collect();
    if !fillers.contains(&true) {
        return Vec::new();
    }
    let spoken = |(_, word): &(String, usize)| !fillers.get(*word).copied().unwrap_or_default();
    let tokens = cell.folded.iter().enumerate().filter(|(_, token)| spoken(token));
    tokens.map(|(at, _)| at).collect()
}

fn is_currency_code(word: &str) -> bool {
    currency::iso_code(word.trim_matches(['(', ')'])).is_some() && !currency::is_also_word(word)
}

/// The longest labels that begin at a word, with fillers within, and how many words they take with
/// these.
fn labels_over_fillers<'l>(
    labels: &'l LabelIndex,
    folded: &[&str],
    spoken: &[usize],
    at: usize,
) -> Option<(Vec<LabelHit<'l>>, usize)> {
    let from = spoken.binary_search(&at).ok()?;
    let tokens = spoken.get(from..)?;
    let words: Vec<&str> = tokens.iter().filter_map(|at| folded.get(*at)).copied().collect();
    let found = labels.labels_at(&words);
    let last = found.first()?.length.checked_sub(1)?;
    let end = tokens.get(last)? + 1;
    Some((found, end - at))
}

/// Sections whose labels are found despite one misread letter per word, with those of [`SUMS`]: sums
/// confirm their values.
const MENDED: [&str; 4] = ["payable", "tendered", "change", "rounding"];

/// Shorter words are too near to others.
const MIN_MENDED: usize = 5;

/// Noughts and ones in the place of letters, at most, and letters at least, of a word that is a
/// label's.
const MAX_DIGITS: usize = 3;
const MIN_WITH_DIGITS: usize = 4;

fn words_of_field<'a>(labels: &'a LabelIndex, field: &'a str) -> impl Iterator<Item = &'a str> {
    labels.labels_of(field).flat_map(|label| label.split(' '))
}

/// The words of labels, for words that were read off a picture.
struct KnownWords<'a> {
    all: BTreeSet<&'a str>,
    /// Those of [`SUMS`] and [`MENDED`].
    mended: BTreeSet<&'a str>,
}

impl<'a> KnownWords<'a> {
    fn of_kind(kind: &'a Kind) -> Self {
        let labels: &LabelIndex = &kind.labels;
        let mended = SUMS.into_iter().map(|role| kind.field_of(role)).chain(MENDED);
        let mended = mended.flat_map(|field| words_of_field(labels, field));
        Self {
            all: labels.fields().flat_map(|field| words_of_field(labels, field)).collect(),
            mended: mended.filter(|word| word.chars().count() >= MIN_MENDED).collect(),
        }
    }

    /// The one word of a label that this is but for one letter, or for digits read in letters'
    /// places.
    fn mend(&self, word: &str) -> Option<&'a str> {
        let length = word.chars().count();
        let digits = count_digits(word);
        if digits > 0
            && let Some(spelt) = self.spell_with_letters(word)
        {
            return Some(spelt);
        }
        if length < MIN_MENDED || digits > 1 || self.all.contains(word) {
            return None;
        }
        let mut near = self.mended.iter().filter(|own| {
            own.chars().count() == length
                && own.chars().zip(word.chars()).filter(|(a, b)| a != b).count() == 1
        });
        near.next().filter(|_| near.next().is_none()).copied()
    }

    /// The one word of a label that begins as this does and has letters in the places of its
    /// noughts and ones: `bi11`, `t0ta1`.
    fn spell_with_letters(&self, word: &str) -> Option<&'a str> {
        let digits = count_digits(word);
        let first = word.chars().next().filter(|first| first.is_alphabetic())?;
        if digits > MAX_DIGITS || word.chars().count() < MIN_WITH_DIGITS {
            return None;
        }
        let front = word.get(..first.len_utf8())?;
        let from_first = self.all.range::<str, _>((Bound::Included(front), Bound::Unbounded));
        let mut spelt = from_first.take_while(|own| own.starts_with(first)).filter(|own| {
            own.chars().count() == word.chars().count()
                && own.chars().zip(word.chars()).all(|(a, b)| a == b || is_like_digit(a, b))
        });
        spelt.next().filter(|own| **own != word && spelt.next().is_none()).copied()
    }
}

/// Whether a letter looks like a digit in small print.
fn is_like_digit(letter: char, digit: char) -> bool {
    matches!((letter, digit), ('o', '0') | ('l' | 'i', '1'))
}

/// Whether the word before a tax puts it in or out of another amount.
fn is_named_only(layout: &CellLayout, label_match: &LabelMatch) -> bool {
    let before = label_match.words.start.checked_sub(1);
    let folded = layout.cells.get(label_match.cell).map_or(&[][..], |cell| &cell.folded);
    let previous = folded.iter().rev().find(|(_, word)| Some(*word) == before);
    let next = folded.iter().find(|(_, word)| *word == label_match.words.end);
    let amount = next.is_some_and(|(text, _)| vocabulary().amounts_to.has(text));
    let said = previous.is_some_and(|(text, _)| vocabulary().includes.has(text));
    if said && amount {
        return false;
    }
    let named = previous.is_some_and(|(text, _)| {
        vocabulary().including.has(text) || vocabulary().excluding.has(text)
    });
    named || is_denied(layout, label_match, folded)
}

/// How far from it, in words.
const DENIAL: usize = 3;

/// Whether the words beside a tax deny it, and its row has no amount.
fn is_denied(layout: &CellLayout, label_match: &LabelMatch, folded: &[(String, usize)]) -> bool {
    let near = label_match.words.start.saturating_sub(DENIAL)..label_match.words.end + DENIAL;
    let denied =
        folded.iter().any(|(text, word)| near.contains(word) && vocabulary().denied.has(text));
    let Some(cell) = layout.cells.get(label_match.cell).filter(|_| denied) else { return false };
    // `Total (no VAT charged)   100.00`: the amount is the total's.
    label_match.words.start > 0 || !layout.is_on_amount_row(cell)
}

/// The label matches of a document, with cached answers.
pub(super) struct LabelMatches<'a> {
    pub(super) layout: &'a CellLayout,
    pub(super) all: Vec<LabelMatch>,
    /// Where in `all` the labels of each field are: asked for every cell, of a page of thousands of
    /// labels too.
    by_field: HashMap<String, Vec<usize>>,
    pub(super) kind: &'a Kind,
    /// How documents of the kind are set.
    pub(super) style: &'static PageStyle,
}

impl<'a> LabelMatches<'a> {
    pub(super) fn new(layout: &'a CellLayout, kind: &'a Kind) -> Self {
        let all = find_labels(layout, kind);
        let mut by_field: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, label_match) in all.iter().enumerate() {
            by_field.entry(label_match.field.clone()).or_default().push(at);
        }
        Self { layout, all, by_field, kind, style: PageStyle::of_labels(&kind.labels) }
    }

    /// The labels of a field, in the order of the pages.
    pub(super) fn of_field<'s>(
        &'s self,
        field: &str,
    ) -> impl Iterator<Item = &'s LabelMatch> + use<'s, 'a> {
        let places = self.by_field.get(field).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|at| self.all.get(*at))
    }

    /// The labels of a field that begin their texts.
    pub(super) fn leading<'s>(
        &'s self,
        field: &str,
    ) -> impl Iterator<Item = &'s LabelMatch> + use<'s, 'a> {
        self.of_field(field).filter(|label_match| label_match.words.start == 0)
    }

    /// The labels of the field with a role, in the order of the pages.
    pub(super) fn of_role<'s>(
        &'s self,
        role: FieldRole,
    ) -> impl Iterator<Item = &'s LabelMatch> + use<'s, 'a> {
        self.of_field(self.kind.field_of(role))
    }

    pub(super) fn cell_of(&self, label_match: &LabelMatch) -> Option<&'a TextCell> {
        self.layout.cells.get(label_match.cell)
    }

    /// Whether words with strokes are no days: the page writes its days otherwise.
    pub(super) fn has_days_without_strokes(&self, words: &[&str]) -> bool {
        let [word] = words else { return false };
        let days = self.layout.cells.iter().flat_map(|cell| {
            let text = cell.joined_text();
            let days = date::find_dates(&text).into_iter();
            let other = days.filter(|day| text.get(day.range.clone()) != Some(*word));
            other.map(|day| day.slashes).collect::<Vec<_>>()
        });
        let days: Vec<bool> = days.collect();
        !days.is_empty() && !days.contains(&true)
    }

    /// Whether a cell begins with the label of a value.
    pub(super) fn begins_with_label(&self, index: usize) -> bool {
        self.in_cell(index)
            .any(|label_match| label_match.words.start == 0 && label_match.names_value())
    }

    /// The tax included by the label of a total, with its amount behind: `Total includes GST of`.
    pub(super) fn included_in(&self, total: &LabelMatch) -> Option<&LabelMatch> {
        let cell = self.cell_of(total)?;
        self.in_cell(total.cell).find(|label_match| {
            let before = label_match.words.start.checked_sub(1);
            let mut folded = cell.folded.iter();
            let says =
                folded.any(|(text, word)| Some(*word) == before && vocabulary().includes.has(text));
            says && label_match.has_role(FieldRole::TaxAmount)
                && label_match.words.start >= total.words.end
        })
    }

    /// Whether the label is among the headings of a table of lines.
    pub(super) fn heads_column(&self, label_match: &LabelMatch) -> bool {
        let row =
            self.cell_of(label_match).and_then(|cell| self.layout.rows.get(cell.row)).cloned();
        let mut fields: Vec<&str> = self
            .in_cells(row.unwrap_or_default())
            .filter(|other| other.cell != label_match.cell)
            .map(|other| other.field.as_str())
            .filter(|field| MAIN_COLUMNS.contains(field))
            .collect();
        fields.sort_unstable();
        fields.dedup();
        fields.len() >= 2
    }

    /// The matches in some cells. A search, not a scan: done for every row of a long document.
    pub(super) fn in_cells(&self, cells: Range<usize>) -> impl Iterator<Item = &LabelMatch> {
        let from = self.all.partition_point(|label_match| label_match.cell < cells.start);
        self.all.iter().skip(from).take_while(move |label_match| label_match.cell < cells.end)
    }

    pub(super) fn in_cell(&self, index: usize) -> impl Iterator<Item = &LabelMatch> {
        self.in_cells(index..index + 1)
    }

    /// The value under a label whose cell continues with the next label, for headings without gaps.
    /// Only text under its own words counts.
    fn value_below(&self, label_match: &LabelMatch, cell: &TextCell) -> Option<ValueCandidate<'a>> {
        let own = cell.boxes.get(label_match.words.clone())?;
        let area = own.iter().copied().reduce(BoundingBox::union)?;
        let below = self.layout.cell_below(&TextCell { area, ..cell.clone() }, 1.8)?;
        let within = below.area.x < area.right() && below.area.right() > area.x;
        (within && !self.begins_with_label(below.index)).then_some(ValueCandidate {
            cell: below,
            words: 0..below.words.len(),
            inline: false,
            below: true,
        })
    }

    /// The values of a label: after it in its cell, right of it, below it.
    pub(super) fn value_candidates(&self, label_match: &LabelMatch) -> Vec<ValueCandidate<'a>> {
        let mut found = Vec::new();
        let Some(cell) = self.cell_of(label_match) else { return found };
        let next = self
            .in_cell(label_match.cell)
            .filter(|other| other.words.start >= label_match.words.end)
            .filter(|other| other.strong && other.names_value() && other.field != "prose")
            .map(|other| other.words.start)
            .min();
        let words = label_match.words.end..next.unwrap_or(cell.words.len());
        let has_rest =
            cell.words_in(words.clone()).iter().any(|w| w.contains(char::is_alphanumeric));
        if has_rest {
            found.push(ValueCandidate { cell, words, inline: true, below: false });
        }
        if let Some(next) = next {
            if next == label_match.words.end {
                found.extend(self.value_below(label_match, cell));
            }
            return found;
        }
        let right = self.layout.right_of(label_match.cell).iter();
        let right = right.take_while(|cell| !self.begins_with_label(cell.index)).take(4);
        found.extend(right.map(|cell| ValueCandidate {
            cell,
            words: 0..cell.words.len(),
            inline: false,
            below: false,
        }));
        if found.is_empty() {
            found.extend(self.value_after_slash(label_match, cell));
        }
        // Under the label, not under another one before it in the cell.
        let rest = cell.boxes.get(label_match.words.start..).unwrap_or_default();
        let area = rest.iter().copied().reduce(BoundingBox::union).unwrap_or(cell.area);
        let below = self.layout.cell_below(&TextCell { area, ..cell.clone() }, 1.8);
        if let Some(cell) = below.filter(|below| !self.begins_with_label(below.index)) {
            let words = 0..cell.words.len();
            found.push(ValueCandidate { cell, words, inline: false, below: true });
        }
        if found.is_empty() {
            found.extend(self.value_in_column(cell));
        }
        found
    }

    /// `Invoice date` over `/delivery date   3 May 2024`: a label that continues in the next line,
    /// and the value beside that.
    fn value_after_slash(
        &self,
        label_match: &LabelMatch,
        cell: &TextCell,
    ) -> Option<ValueCandidate<'a>> {
        let below = self.layout.cell_below(cell, 1.2)?;
        let is_continued_by = label_match.words.end == cell.words.len()
            && (below.area.x - cell.area.x).abs() < below.area.h
            && below.words.first().is_some_and(|word| word.starts_with('/'));
        let value = self.layout.next_in_row(below).filter(|_| is_continued_by)?;
        let words = 0..value.words.len();
        Some(ValueCandidate { cell: value, words, inline: false, below: false })
    }

    /// Under a row of labels a row with values for some of them: the value with its middle between
    /// this label and the next. Left-aligned labels, right-aligned numbers.
    fn value_in_column(&self, label: &TextCell) -> Option<ValueCandidate<'a>> {
        let labels = self.layout.row_cells(label.row);
        let begins_next = labels.iter().map(|cell| cell.area.x).filter(|x| *x > label.area.x);
        let end = begins_next.fold(f32::MAX, f32::min);
        let mut values = self.layout.row_cells(label.row + 1).iter().filter(|value: &&TextCell| {
            let middle = value.area.x + value.area.w / 2.0;
            (label.area.x..end).contains(&middle)
                && value.page == label.page
                && (0.0..ORDERED_REACH * label.area.h)
                    .contains(&(value.area.y - label.area.bottom()))
        });
        let (value, None) = (values.next()?, values.next()) else { return None };
        let is_free = labels.len() > 1
            && !self.in_cell(value.index).any(LabelMatch::names_value)
            && labels
                .iter()
                .all(|other| other.overlap_x(value) <= 0.0 || std::ptr::eq(other, label));
        let words = 0..value.words.len();
        is_free.then_some(ValueCandidate { cell: value, words, inline: false, below: true })
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_core::model::PageSource;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn a_label_with_one_misread_letter_is_found_on_a_picture_only() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("receipt").unwrap();
        let found = |text: &str, source: PageSource| {
            let mut read = transcript(&[text]);
            read.pages.iter_mut().for_each(|page| page.source = source);
            let layout = CellLayout::new(&read);
            LabelMatches::new(&layout, kind).of_field("total").next().is_some()
        };
        assert!(found("Jotal   12.84", PageSource::Ocr));
        assert!(!found("Jotal   12.84", PageSource::Native), "a file's letters are what they are");
        assert!(!found("Jotel   12.84", PageSource::Ocr), "two letters");
    }

    #[test]
    fn a_label_with_digits_in_letters_places_is_found_on_a_picture_only() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("receipt").unwrap();
        let find = |text: &str, field: &str, source: PageSource| {
            let mut read = transcript(&[text]);
            read.pages.iter_mut().for_each(|page| page.source = source);
            let layout = CellLayout::new(&read);
            LabelMatches::new(&layout, kind).of_field(field).next().is_some()
        };
        for (text, field) in [
            ("Bi11#: K114-220917", "invoice_number"),
            ("B111 No.: 004-7718", "invoice_number"),
            ("T0TA1   12.84", "total"),
        ] {
            assert!(find(text, field, PageSource::Ocr), "{text}");
            assert!(!find(text, field, PageSource::Native), "{text}: a file's letters are sure");
        }
        assert!(!find("7111#: K114-220917", "invoice_number", PageSource::Ocr), "a number");
    }

    #[test]
    fn values_are_found_after_right_of_and_below_their_label() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        for (drawing, expected) in [
            ("Invoice number: A-1", "A-1"),
            ("Invoice number:     A-1", "A-1"),
            ("Invoice number   Due date\nA-1              2024-01-01", "A-1"),
            ("Rechnungsnr. A-1 Kundennr. 7", "A-1"),
            ("Invoice number        Customer    Our ref\n                A-1", "A-1"),
            (
                "Invoice number Invoice date Due date\nA-1            1 May 2024   3 June 2024",
                "A-1",
            ),
        ] {
            let layout = CellLayout::new(&transcript(&[drawing]));
            let matches = LabelMatches::new(&layout, kind);
            let label_match = matches.of_field("invoice_number").next().unwrap();
            let beside = matches.value_candidates(label_match);
            let texts: Vec<String> =
                beside.iter().map(|b| b.value_words().join(" ").replace(": ", "")).collect();
            assert!(texts.iter().any(|text| text == expected), "{drawing}: {texts:?}");
        }
    }
}
