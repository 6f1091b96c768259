//! A transcript as cells: words that belong together, their neighbours, and the values in them.
//!
//! Cells are cut as the rules reader cuts them, by the gaps between words. Not promised: columns that
//! touch.

use std::ops::Range;
use std::str::FromStr as _;

use rust_decimal::Decimal;
use serde_json::{Number, Value};
use time::Date;

use docmill_core::model::{BoundingBox, TextLine, TextWord, Transcript};
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::number::DecimalSeparator;
use docmill_formats::notation::{fold_text, number};

/// Gap between two cells, in heights of a word.
const GAP_HEIGHTS: f32 = 0.85;
/// Gap between two cells, in widths of a character.
const GAP_CHARACTERS: f32 = 1.4;
/// Distance of a cell from the one above it, in heights of the cell.
const MAX_ROW_GAP: f32 = 2.5;
/// Cells that are looked at; a document of more teaches nothing behind them.
const MAX_CELLS: usize = 20_000;
/// Places of one value that are looked at.
const MAX_PLACES: usize = 6;
/// Words of a date.
const MAX_DATE_WORDS: usize = 8;
/// Words of an identifier.
const MAX_TEXT_WORDS: usize = 12;
/// Occurrences of a label that are looked at: one that stands in every row of a table labels nothing.
const MAX_MATCHES: usize = 64;
/// Words of a label.
const MAX_LABEL_WORDS: usize = 5;

/// Words that stand together.
struct PageCell {
    page: u32,
    area: BoundingBox,
    words: Vec<String>,
    /// The same, each folded; empty for marks.
    folded: Vec<String>,
}

/// The cells of a transcript.
pub(super) struct CellIndex {
    cells: Vec<PageCell>,
}

/// Words of a cell that hold a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellPlace {
    cell: usize,
    words: Range<usize>,
    notation: ValueNotation,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ValueNotation {
    /// So many words.
    Text(usize),
    /// A day, if its order is plain.
    Day(Option<DayMonthOrder>),
    /// A number with this mark before its decimals.
    Number(Option<DecimalSeparator>),
}

/// Words beside a value, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlaceLabel {
    /// Before it in its cell.
    Within(Vec<String>),
    /// The end of the cell left of it.
    Left(Vec<String>),
    /// The end of the cell above it.
    Above(Vec<String>),
}

impl CellPlace {
    /// How the value is written.
    pub(super) fn notation(&self) -> ValueNotation {
        self.notation
    }
}

impl CellIndex {
    pub(super) fn new(transcript: &Transcript) -> Self {
        let mut cells = Vec::new();
        for page in &transcript.pages {
            for line in &page.lines {
                add_cells(page.number, line, &mut cells);
            }
        }
        cells.truncate(MAX_CELLS);
        Self { cells }
    }

    /// Whether the words of a text are printed one behind the other.
    pub(super) fn prints(&self, text: &str) -> bool {
        !self.text_places(text).is_empty()
    }

    /// Whether every word of a text is printed somewhere.
    pub(super) fn prints_words(&self, text: &str) -> bool {
        let folded = fold_text(text);
        let mut words = folded.split(' ').filter(|word| !word.is_empty()).peekable();
        words.peek().is_some()
            && words.all(|word| {
                let parts = self.cells.iter().flat_map(|cell| &cell.folded);
                parts.into_iter().any(|own| own.split(' ').any(|part| part == word))
            })
    }

    /// The words of the transcript.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().flat_map(|cell| &cell.words).map(String::as_str)
    }

    /// The text of every cell.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.cells.iter().map(|cell| cell.words.join(" "))
    }

    /// The words of every cell.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.cells.iter().map(|cell| cell.words.iter().map(String::as_str).collect())
    }

    /// Where a confirmed value stands.
    pub(super) fn value_places(&self, value: &Value) -> Vec<CellPlace> {
        match value {
            Value::Number(_) => json_decimal(value).map(|number| self.number_places(number)),
            Value::String(text) => Some(match date::parse_iso(text) {
                Some(day) => self.day_places(day),
                None => self.text_places(text),
            }),
            _ => None,
        }
        .unwrap_or_default()
    }

    fn text_places(&self, text: &str) -> Vec<CellPlace> {
        let wanted = compact(&fold_text(text));
        let mut places = Vec::new();
        if wanted.is_empty() {
            return places;
        }
        for (at, cell) in self.cells.iter().enumerate() {
            for start in 0..cell.folded.len() {
                let mut own = String::new();
                for (word, end) in
                    cell.folded.iter().skip(start).take(MAX_TEXT_WORDS).zip(start + 1..)
                {
                    own.push_str(&compact(word));
                    if own == wanted && places.len() < MAX_PLACES {
                        let notation = ValueNotation::Text(end - start);
                        places.push(CellPlace { cell: at, words: start..end, notation });
                    }
                    if own.is_empty() || own.len() >= wanted.len() {
                        break;
                    }
                }
            }
        }
        places
    }

    fn day_places(&self, day: Date) -> Vec<CellPlace> {
        let mut places = Vec::new();
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| cell.has_digit()) {
            for found in date::find_dates(&cell.words.join(" ")) {
                let order = match (found.day_first == Some(day), found.month_first == Some(day)) {
                    (true, false) => Some(DayMonthOrder::DayFirst),
                    (false, true) => Some(DayMonthOrder::MonthFirst),
                    (true, true) => None,
                    (false, false) => continue,
                };
                if places.len() < MAX_PLACES {
                    let words = cell.words_of(&found.range);
                    places.push(CellPlace { cell: at, words, notation: ValueNotation::Day(order) });
                }
            }
        }
        places
    }

    fn number_places(&self, wanted: Decimal) -> Vec<CellPlace> {
        let mut places: Vec<CellPlace> = Vec::new();
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| cell.has_digit()) {
            let words: Vec<&str> = cell.words.iter().map(String::as_str).collect();
            for mark in [Some(DecimalSeparator::Comma), Some(DecimalSeparator::Point), None] {
                for found in number::find_numbers(&words, mark) {
                    let is_new = places.iter().all(|it| (it.cell, &it.words) != (at, &found.words));
                    let same = found.value.abs() == wanted.abs() && !found.percent;
                    if same && is_new && places.len() < MAX_PLACES {
                        let notation = ValueNotation::Number(mark);
                        places.push(CellPlace { cell: at, words: found.words, notation });
                    }
                }
            }
        }
        places
    }

    /// The labels beside a place.
    pub(super) fn labels_of(&self, place: &CellPlace) -> Vec<PlaceLabel> {
        let Some(cell) = self.cells.get(place.cell) else { return Vec::new() };
        let before = label_words(cell.folded.get(..place.words.start).unwrap_or_default());
        if !before.is_empty() {
            return vec![PlaceLabel::Within(before)];
        }
        if place.words.start > 0 {
            return Vec::new();
        }
        let end_of = |at: Option<usize>| {
            let other = at.and_then(|at| self.cells.get(at));
            label_words(other.map(|other| other.folded.as_slice()).unwrap_or_default())
        };
        let left = end_of(self.left_of(place.cell));
        let above = end_of(self.above(place.cell));
        let left = (!left.is_empty()).then_some(PlaceLabel::Left(left));
        let above = (!above.is_empty()).then_some(PlaceLabel::Above(above));
        left.into_iter().chain(above).collect()
    }

    /// The values beside a label, written as the notation says.
    pub(super) fn values_beside(&self, label: &PlaceLabel, notation: ValueNotation) -> Vec<Value> {
        let mut values = Vec::new();
        let mut matches = 0;
        for (at, cell) in self.cells.iter().enumerate() {
            let ends = match label {
                PlaceLabel::Within(words) => cell.ends_of(words),
                PlaceLabel::Left(words) | PlaceLabel::Above(words) => {
                    if cell.ends_with(words) {
                        vec![cell.words.len()]
                    } else {
                        Vec::new()
                    }
                }
            };
            matches += ends.len();
            if matches > MAX_MATCHES {
                return Vec::new();
            }
            let is_above = matches!(label, PlaceLabel::Above(_));
            let starts = ends.into_iter().filter_map(|end| match is_above {
                true => self.below(at).map(|other| (other, 0)),
                false => self.behind(at, cell, end),
            });
            let read = starts.filter_map(|(cell, word)| {
                self.cells.get(cell).and_then(|cell| cell.read_at(word, notation))
            });
            values.extend(read);
        }
        values
    }

    /// Where a value begins behind these words of a cell: in it, or in the one right of it.
    fn behind(&self, at: usize, cell: &PageCell, end: usize) -> Option<(usize, usize)> {
        let mut rest = end..cell.folded.len();
        let next = rest.find(|next| cell.folded.get(*next).is_some_and(|word| !word.is_empty()));
        match next {
            Some(next) => Some((at, next)),
            None => self.right_of(at).map(|other| (other, 0)),
        }
    }

    fn left_of(&self, at: usize) -> Option<usize> {
        let own = self.cells.get(at)?;
        let row =
            self.beside(own).filter(|(_, it)| it.area.right() <= own.area.x + own.area.h / 2.0);
        row.max_by(|a, b| a.1.area.right().total_cmp(&b.1.area.right())).map(|(at, _)| at)
    }

    fn right_of(&self, at: usize) -> Option<usize> {
        let own = self.cells.get(at)?;
        let row =
            self.beside(own).filter(|(_, it)| it.area.x >= own.area.right() - own.area.h / 2.0);
        row.min_by(|a, b| a.1.area.x.total_cmp(&b.1.area.x)).map(|(at, _)| at)
    }

    /// Other cells of one row.
    fn beside<'a>(&'a self, own: &'a PageCell) -> impl Iterator<Item = (usize, &'a PageCell)> {
        self.cells.iter().enumerate().filter(move |(_, it)| {
            let shared = it.area.bottom().min(own.area.bottom()) - it.area.y.max(own.area.y);
            it.page == own.page
                && !std::ptr::eq(*it, own)
                && shared > 0.5 * it.area.h.min(own.area.h)
        })
    }

    fn above(&self, at: usize) -> Option<usize> {
        let own = self.cells.get(at)?;
        let over = self.cells.iter().enumerate().filter(|(_, it)| is_under(own, it));
        over.max_by(|a, b| a.1.area.y.total_cmp(&b.1.area.y)).map(|(at, _)| at)
    }

    fn below(&self, at: usize) -> Option<usize> {
        let own = self.cells.get(at)?;
        let under = self.cells.iter().enumerate().filter(|(_, it)| is_under(it, own));
        under.min_by(|a, b| a.1.area.y.total_cmp(&b.1.area.y)).map(|(at, _)| at)
    }
}

impl PageCell {
    fn has_digit(&self) -> bool {
        self.words.iter().any(|word| has_digit(word))
    }

    /// The words that a range of bytes of their joined text touches.
    fn words_of(&self, bytes: &Range<usize>) -> Range<usize> {
        let mut end = 0;
        let ends: Vec<usize> = self
            .words
            .iter()
            .map(|word| {
                end += word.len() + 1;
                end
            })
            .collect();
        let first = ends.partition_point(|end| *end <= bytes.start);
        let last = ends.partition_point(|end| *end < bytes.end);
        first..(last + 1).min(self.words.len())
    }

    /// Whether its words, but for marks, end in these.
    fn ends_with(&self, words: &[String]) -> bool {
        label_words(&self.folded).ends_with(words)
    }

    /// Where these words end within it.
    fn ends_of(&self, words: &[String]) -> Vec<usize> {
        let mut ends = Vec::new();
        for start in 0..self.folded.len() {
            let mut wanted = words.iter();
            let mut next = wanted.next();
            for (at, own) in self.folded.iter().enumerate().skip(start) {
                match next {
                    Some(word) if word == own => next = wanted.next(),
                    Some(_) if own.is_empty() && at > start => {}
                    _ => break,
                }
                if next.is_none() {
                    ends.push(at + 1);
                    break;
                }
            }
        }
        ends
    }

    /// The value that begins at a word.
    fn read_at(&self, start: usize, notation: ValueNotation) -> Option<Value> {
        let words: Vec<&str> = self.words.get(start..)?.iter().map(String::as_str).collect();
        match notation {
            ValueNotation::Text(count) => {
                let text = words.get(..count)?.join(" ");
                let text = text.trim_matches(|c: char| ",;:".contains(c)).trim_end_matches('.');
                text.contains(|c: char| c.is_alphanumeric()).then(|| text.into())
            }
            ValueNotation::Day(order) => {
                let text = words.get(..words.len().min(MAX_DATE_WORDS))?.join(" ");
                let found = date::find_dates(&text).into_iter().next()?;
                let day = match order {
                    _ if found.range.start != 0 => None,
                    Some(order) => found.date_under(order),
                    None if found.is_ambiguous() => None,
                    None => found.day_first.or(found.month_first),
                };
                day.map(|day| date::to_iso(day).into())
            }
            ValueNotation::Number(mark) => {
                let found = number::find_numbers(&words, mark).into_iter().next()?;
                let is_first = found.words.start == 0 && !found.percent;
                is_first.then(|| decimal_to_json(found.value)).flatten()
            }
        }
    }
}

/// Whether one cell is the next below another.
fn is_under(one: &PageCell, other: &PageCell) -> bool {
    let gap = one.area.y - other.area.bottom();
    let shared = one.area.right().min(other.area.right()) - one.area.x.max(other.area.x);
    one.page == other.page
        && shared > 0.0
        && gap > -0.5 * other.area.h
        && gap < MAX_ROW_GAP * other.area.h
}

/// The words without digits at the end of folded ones, marks left out.
fn label_words(folded: &[String]) -> Vec<String> {
    let behind = folded.iter().rev().filter(|word| !word.is_empty());
    let words = behind.take_while(|word| !has_digit(word)).take(MAX_LABEL_WORDS);
    let mut words: Vec<String> = words.cloned().collect();
    words.reverse();
    words
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

fn compact(folded: &str) -> String {
    folded.chars().filter(|c| *c != ' ').collect()
}

fn add_cells(page: u32, line: &TextLine, cells: &mut Vec<PageCell>) {
    let mut words: Vec<&TextWord> = line.words.iter().collect();
    words.sort_by(|a, b| a.bounding_box.x.total_cmp(&b.bounding_box.x));
    let mut open: Option<PageCell> = None;
    for word in words {
        let area = word.bounding_box;
        let folded = fold_text(&word.text);
        match open.as_mut().filter(|cell| joins(cell, area)) {
            Some(cell) => {
                cell.area = cell.area.union(area);
                cell.words.push(word.text.to_string());
                cell.folded.push(folded);
            }
            None => {
                let (words, folded) = (vec![word.text.to_string()], vec![folded]);
                cells.extend(open.replace(PageCell { page, area, words, folded }));
            }
        }
    }
    cells.extend(open);
}

/// Whether a word belongs to the cell left of it.
#[expect(clippy::cast_precision_loss, reason = "a count of characters")]
fn joins(cell: &PageCell, area: BoundingBox) -> bool {
    let characters = cell.words.iter().map(|word| word.chars().count() + 1).sum::<usize>();
    let character = cell.area.w / characters.saturating_sub(1).max(1) as f32;
    let gap = (GAP_HEIGHTS * cell.area.h).max(GAP_CHARACTERS * character);
    area.x - cell.area.right() < gap
}

/// A JSON number as the decimal it was written as.
pub(super) fn json_decimal(value: &Value) -> Option<Decimal> {
    let text = value.as_number()?.to_string();
    Decimal::from_str(&text).or_else(|_| Decimal::from_scientific(&text)).ok()
}

pub(super) fn decimal_to_json(value: Decimal) -> Option<Value> {
    value.normalize().to_string().parse::<Number>().ok().map(Value::Number)
}
