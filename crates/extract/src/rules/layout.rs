//! The page as cells: runs of words without a wide gap, with the geometry of their neighbours.
//!
//! Built from word boxes alone, so that lines by row and lines by column give the same cells.

use std::cell::OnceCell;
use std::ops::Range;

use super::characters::{count_letters, has_digit};
use super::slope::PageSlope;
use super::tip::suggested_lines;
use docmill_core::model::{BoundingBox, PageSource, PageText, TextWord, Transcript};
use docmill_formats::notation::number::{DecimalSeparator, FoundNumber};
use docmill_formats::notation::{fold_text, number};

/// A gap wider than this many line heights separates two cells...
const CELL_GAP: f32 = 0.85;

/// ... if it is also wider than this many characters: typewriters' spaces are as wide as letters.
const CELL_GAP_IN_CHARACTERS: f32 = 1.4;

/// Text that ends in a comma continues over a gap wider by this factor: receipts space words
/// widely.
const GAP_BEHIND_COMMA: f32 = 1.5;

/// As many single capitals in a row are one word.
const SPACED_LETTERS: usize = 5;

/// Less than this is the noise of descenders, not a crooked page (a fifth of a degree).
const MIN_TILT: f32 = 0.004;

/// A run of words without a wide gap.
#[derive(Debug, Clone)]
pub(super) struct TextCell {
    /// Its place among [`CellLayout::cells`].
    pub(super) index: usize,
    /// Page index, from 0.
    pub(super) page: usize,
    /// Index of the row on its page.
    pub(super) row: usize,
    /// The line that the cell is part of: an index into `PageText::lines`.
    pub(super) line: u32,
    pub(super) words: Vec<String>,
    pub(super) boxes: Vec<BoundingBox>,
    pub(super) area: BoundingBox,
    /// How sure its least legible word was read, 0..1.
    pub(super) confidence: f32,
    /// Read off a picture, rather than text of the file.
    pub(super) from_picture: bool,
    /// The words folded, each with the index of the word it comes from.
    pub(super) folded: Vec<(String, usize)>,
}

impl TextCell {
    pub(super) fn joined_text(&self) -> String {
        self.words.join(" ")
    }

    /// Whether the text continues elsewhere.
    pub(super) fn ends_in_comma(&self) -> bool {
        self.words.last().is_some_and(|word| word.ends_with(','))
    }

    pub(super) fn all_words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// Some of the words; empty if out of range.
    pub(super) fn words_in(&self, words: Range<usize>) -> Vec<&str> {
        let words = self.words.get(words).unwrap_or_default();
        words.iter().map(String::as_str).collect()
    }

    pub(super) fn middle_y(&self) -> f32 {
        self.area.y + self.area.h / 2.0
    }

    /// Whether both are on one line of text.
    pub(super) fn is_on_same_line(&self, other: &Self) -> bool {
        let overlap = self.area.bottom().min(other.area.bottom()) - self.area.y.max(other.area.y);
        self.page == other.page && overlap > 0.5 * self.area.h.min(other.area.h)
    }

    /// How far their horizontal extents overlap; negative: the gap.
    pub(super) fn overlap_x(&self, other: &Self) -> f32 {
        self.area.right().min(other.area.right()) - self.area.x.max(other.area.x)
    }
}

/// All cells of a document, page by page, row by row, left to right.
#[derive(Debug)]
pub(super) struct CellLayout {
    pub(super) cells: Vec<TextCell>,
    /// Cells of each row: indexes into `cells`.
    pub(super) rows: Vec<Range<usize>>,
    /// Height of each page.
    heights: Vec<f32>,
    /// Which rows have an amount of money.
    amount_rows: OnceCell<Vec<bool>>,
    /// The amounts of money, each with the index of its cell.
    amounts: OnceCell<Vec<(FoundNumber, usize)>>,
    /// The document's decimal mark, if known.
    mark: Option<DecimalSeparator>,
}

/// Most cells of a row: each is compared with those that are in it. No table has as many columns.
const MAX_IN_ROW: usize = 300;
/// Rows among which the next line of a block is: columns side by side have rows of their own.
const NEXT_ROWS: usize = 8;
/// Most cells that are looked at for the one below another.
const MAX_BELOW: usize = 2_000;

impl CellLayout {
    pub(super) fn new(transcript: &Transcript) -> Self {
        Self::of_pages(transcript, |_| true)
    }

    fn empty() -> Self {
        Self {
            cells: Vec::new(),
            rows: Vec::new(),
            heights: Vec::new(),
            amount_rows: OnceCell::new(),
            amounts: OnceCell::new(),
            mark: None,
        }
    }

    /// Only the cells of some pages; pages keep their numbers.
    pub(super) fn of_pages(transcript: &Transcript, keep: impl Fn(usize) -> bool) -> Self {
        let mut layout = Self::empty();
        for (index, page) in transcript.pages.iter().enumerate() {
            layout.heights.push(page.height.max(1.0));
            if keep(index) {
                layout.add_page(index, page);
            }
        }
        let words = layout.cells.iter().flat_map(|cell| cell.words.iter().map(String::as_str));
        layout.mark = DecimalSeparator::from_words(words);
        layout
    }

    fn add_page(&mut self, index: usize, page: &PageText) {
        let mut cells = Vec::new();
        let steep = PageSlope::of_page(page).filter(|_| page.source == PageSource::Ocr);
        let tilt = page_tilt(page);
        let upright = |line| match &steep {
            Some(slope) => slope.level_line(line),
            None => straighten_line(line, tilt),
        };
        let suggested = suggested_lines(page);
        let printed = page.lines.iter().enumerate().zip(suggested).filter(|(_, tip)| !tip);
        for ((number, line), _) in printed {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            split_into_cells(index, number, &upright(line), &mut cells);
        }
        cells
            .retain(|cell| cell.area.h > 0.0 && cell.area.y.is_finite() && cell.area.x.is_finite());
        let from_picture = page.source == PageSource::Ocr;
        cells.iter_mut().for_each(|cell| cell.from_picture = from_picture);
        cells.sort_by(|a, b| a.middle_y().total_cmp(&b.middle_y()));
        let mut rows: Vec<Vec<TextCell>> = Vec::new();
        for cell in cells {
            // Against the cell nearest to the left edge of the new one, because a page may be
            // slightly askew. On a strongly skewed page boxes reach into the next line, and no cell
            // of a row is above another.
            let beside = |row: &Vec<TextCell>| {
                row.len() < MAX_IN_ROW
                    && row.iter().any(|other| other.is_on_same_line(&cell))
                    && !(steep.is_some() && row.iter().any(|other| other.overlap_x(&cell) > 0.0))
            };
            match rows.iter_mut().rev().take(3).find(|row| beside(row)) {
                Some(row) => row.push(cell),
                None => rows.push(vec![cell]),
            }
        }
        for mut row in rows {
            row.sort_by(|a, b| a.area.x.total_cmp(&b.area.x));
            let start = self.cells.len();
            for mut cell in row {
                cell.row = self.rows.len();
                cell.index = self.cells.len();
                self.cells.push(cell);
            }
            self.rows.push(start..self.cells.len());
        }
    }

    pub(super) fn row_cells(&self, row: usize) -> &[TextCell] {
        let range = self.rows.get(row).cloned().unwrap_or_default();
        self.cells.get(range).unwrap_or_default()
    }

    /// Whether the row of a cell ends in an amount of less than nothing.
    pub(super) fn is_on_deducting_row(&self, index: usize) -> bool {
        let row = self.cells.get(index).map(|cell| self.row_cells(cell.row)).unwrap_or_default();
        row.last().is_some_and(|last| {
            let words = last.all_words();
            let amount = number::find_numbers(&words, None).pop();
            amount.is_some_and(|one| one.is_money() && one.value.is_sign_negative())
        })
    }

    /// The cells right of the one at `index`, nearest first.
    pub(super) fn right_of(&self, index: usize) -> &[TextCell] {
        let Some(cell) = self.cells.get(index) else { return &[] };
        let end = self.rows.get(cell.row).map_or(index, |row| row.end);
        self.cells.get(index + 1..end).unwrap_or_default()
    }

    /// The cell right of another one.
    pub(super) fn next_in_row(&self, cell: &TextCell) -> Option<&TextCell> {
        self.right_of(cell.index).first()
    }

    /// The cell before another one in reading order.
    pub(super) fn cell_before(&self, cell: &TextCell) -> Option<&TextCell> {
        self.cells.get(cell.index.checked_sub(1)?)
    }

    /// The nearest cells below `cell`, within this many line heights, that it overlaps.
    pub(super) fn cell_below(&self, cell: &TextCell, reach: f32) -> Option<&TextCell> {
        let from = self.rows.get(cell.row).map_or(0, |row| row.end);
        let limit = cell.area.bottom() + reach * cell.area.h;
        let later = self.cells.iter().skip(from).take(MAX_BELOW);
        let under: Vec<&TextCell> = later
            // Rows come from top to bottom: far below there is nothing to look for.
            .take_while(|other| {
                other.page == cell.page && other.middle_y() < limit + 4.0 * cell.area.h
            })
            .filter(|other| other.area.y < limit && other.middle_y() > cell.area.bottom())
            .filter(|other| {
                let aligned = (other.area.x - cell.area.x).abs() < cell.area.h
                    || (other.area.right() - cell.area.right()).abs() < cell.area.h;
                aligned || other.overlap_x(cell) > 0.3 * other.area.w.min(cell.area.w)
            })
            .collect();
        let top = under.iter().map(|other| other.area.y).fold(f32::MAX, f32::min);
        let first = under.into_iter().filter(|other| other.area.y - top < 0.3 * cell.area.h);
        // Of cells side by side the one that lies most under it.
        first.reduce(
            |best, other| {
                if other.overlap_x(cell) > best.overlap_x(cell) { other } else { best }
            },
        )
    }

    /// Whether an amount of money is on the cell's row.
    pub(super) fn is_on_amount_row(&self, cell: &TextCell) -> bool {
        let rows = self.amount_rows.get_or_init(|| {
            self.rows
                .iter()
                .map(|row: &Range<usize>| {
                    self.cells.get(row.clone()).unwrap_or_default().iter().any(|cell: &TextCell| {
                        let words = cell.all_words();
                        number::find_numbers(&words, None).iter().any(FoundNumber::is_money)
                    })
                })
                .collect()
        });
        rows.get(cell.row).copied().unwrap_or(false)
    }

    /// The numbers of some words, under the document's decimal mark.
    pub(super) fn numbers_in(&self, words: &[&str]) -> Vec<FoundNumber> {
        number::find_numbers(words, self.mark)
    }

    /// The numbers of a cell, under the document's decimal mark.
    pub(super) fn numbers_of(&self, cell: &TextCell) -> Vec<FoundNumber> {
        self.numbers_in(&cell.all_words())
    }

    /// Every amount of money, with its cell. Computed once: labels ask for it by the thousand.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (&FoundNumber, &TextCell)> {
        let amounts = self.amounts.get_or_init(|| {
            let found = self.cells.iter().enumerate().flat_map(|(index, cell)| {
                let numbers = self.numbers_of(cell).into_iter();
                numbers.filter(FoundNumber::is_money).map(move |amount| (amount, index))
            });
            found.collect()
        });
        amounts.iter().filter_map(|(amount, cell)| Some((amount, self.cells.get(*cell)?)))
    }

    /// The last row of each page that has such a cell.
    pub(super) fn last_rows_with(&self, is_such: impl Fn(&TextCell) -> bool) -> Vec<Option<usize>> {
        let mut last = vec![None; self.heights.len()];
        for cell in self.cells.iter().filter(|cell| is_such(cell)) {
            if let Some(row) = last.get_mut(cell.page) {
                *row = Some(cell.row);
            }
        }
        last
    }

    /// The cells of the few rows before a cell's.
    pub(super) fn rows_before(&self, cell: &TextCell) -> impl Iterator<Item = &TextCell> {
        let first = cell.row.saturating_sub(NEXT_ROWS);
        let start = self.rows.get(first).map_or(0, |row| row.start);
        let end = self.rows.get(cell.row).map_or(start, |row| row.start.max(start));
        self.cells.get(start..end).unwrap_or_default().iter()
    }

    /// The cells of the next few rows after a cell's.
    pub(super) fn rows_from(&self, cell: &TextCell) -> impl Iterator<Item = &TextCell> {
        let start = self.rows.get(cell.row).map_or(0, |row| row.end);
        let last = (cell.row + NEXT_ROWS).min(self.rows.len().saturating_sub(1));
        let end = self.rows.get(last).map_or(start, |row| row.end.max(start));
        self.cells.get(start..end).unwrap_or_default().iter()
    }

    /// The depth of a cell on its page, 0..1.
    pub(super) fn depth_on_page(&self, cell: &TextCell) -> f32 {
        (cell.area.y / self.heights.get(cell.page).copied().unwrap_or(1.0)).clamp(0.0, 1.0)
    }
}

/// The fall of a page's lines per unit to the right: the median of its longer lines. On a crooked
/// scan the right end of a row is beside the left end of the next one; native text has none.
fn page_tilt(page: &PageText) -> f32 {
    let mut slopes: Vec<f32> = page
        .lines
        .iter()
        .filter_map(|line: &docmill_core::model::TextLine| {
            let (first, last) = (line.words.first()?.bounding_box, line.words.last()?.bounding_box);
            let run = last.x - first.x;
            let fall = (last.y + last.h / 2.0) - (first.y + first.h / 2.0);
            (run > 8.0 * first.h).then_some(fall / run)
        })
        .collect();
    slopes.sort_by(f32::total_cmp);
    let middle = slopes.get(slopes.len() / 2).copied().unwrap_or(0.0);
    if slopes.len() >= 3 && (MIN_TILT..0.2).contains(&middle.abs()) { middle } else { 0.0 }
}

/// The line on an upright page; for small angles a shear both ways is a rotation.
fn straighten_line(
    line: &docmill_core::model::TextLine,
    tilt: f32,
) -> docmill_core::model::TextLine {
    let mut line = line.clone();
    for word in &mut line.words {
        let area = &mut word.bounding_box;
        let (x, y) = (area.x + area.w / 2.0, area.y + area.h / 2.0);
        area.x += tilt * y;
        area.y -= tilt * x;
    }
    line
}

fn split_into_cells(
    page: usize,
    line: u32,
    from: &docmill_core::model::TextLine,
    cells: &mut Vec<TextCell>,
) {
    let parted: Vec<TextWord> = from.words.iter().flat_map(part_at_mark).collect();
    let mut words: Vec<&TextWord> = parted.iter().filter(|word| is_upright(word)).collect();
    words.sort_by(|a, b| a.bounding_box.x.total_cmp(&b.bounding_box.x));
    let mut heights: Vec<f32> = words.iter().map(|word| word.bounding_box.h).collect();
    heights.sort_by(f32::total_cmp);
    let height = heights.get(heights.len() / 2).copied().unwrap_or(1.0);
    let gap = (CELL_GAP * height).max(CELL_GAP_IN_CHARACTERS * character_width(&words));
    let mut current: Option<TextCell> = None;
    for word in words {
        let area = word.bounding_box;
        let joins = current.as_ref().is_some_and(|cell| {
            let reach = if cell.ends_in_comma() { GAP_BEHIND_COMMA * gap } else { gap };
            area.x - cell.area.right() < reach && !is_rule(&word.text)
        });
        if !joins {
            cells.extend(current.take().map(finish_cell));
        }
        if is_rule(&word.text) {
            continue;
        }
        let cell = current.get_or_insert_with(|| TextCell {
            index: 0,
            page,
            row: 0,
            line,
            words: Vec::new(),
            boxes: Vec::new(),
            area,
            confidence: 1.0,
            from_picture: false,
            folded: Vec::new(),
        });
        cell.area = cell.area.union(area);
        cell.confidence = cell.confidence.min(word.confidence);
        cell.words.push(word.text.to_string());
        cell.boxes.push(area);
    }
    cells.extend(current.map(finish_cell));
}

/// `Date:3.5.2020` is a label and its value, which an engine has read without their space, or a
/// till has printed so: `INV#118204`, `ID=118204`. A time or the address of a page is one word.
fn part_at_mark(word: &TextWord) -> Vec<TextWord> {
    let at = |mark: char| word.text.split_once(mark).map(|(label, value)| (label, mark, value));
    // Addresses of pages have `=` as well, behind more than a word.
    let parted = word
        .text
        .split_once(':')
        .map(|(label, value)| (label, ':', value))
        .or_else(|| at('#'))
        .or_else(|| {
            at('=')
                .filter(|(label, ..): &(&str, char, &str)| label.chars().all(char::is_alphabetic))
        });
    let Some((label, mark, value)) = parted else { return vec![word.clone()] };
    let lettered = count_letters(label) >= 2 && !has_digit(label);
    if !lettered || value.is_empty() || value.starts_with('/') || label.contains('@') {
        return vec![word.clone()];
    }
    let area = word.bounding_box;
    let share = (label.chars().count() + 1) as f32 / word.text.chars().count() as f32;
    let split = |text: String, x: f32, w: f32| TextWord {
        text: text.into(),
        bounding_box: BoundingBox { x, w, ..area },
        confidence: word.confidence,
        unwitnessed: word.unwitnessed,
    };
    let width = area.w * share;
    vec![
        split(format!("{label}{mark}"), area.x, width),
        split(value.to_owned(), area.x + width, area.w - width),
    ]
}

/// The median width of a character over the words that are long enough.
fn character_width(words: &[&TextWord]) -> f32 {
    let mut widths: Vec<f32> = words
        .iter()
        .filter_map(|word: &&TextWord| {
            let letters = word.text.chars().count();
            (letters >= 3).then_some(word.bounding_box.w / letters as f32)
        })
        .collect();
    widths.sort_by(f32::total_cmp);
    widths.get(widths.len() / 2).copied().unwrap_or(0.0)
}

/// Text set upwards along the margin would join all rows beside it.
fn is_upright(word: &TextWord) -> bool {
    let letters = word.text.trim().chars().count();
    let area = word.bounding_box;
    letters > 0 && (letters < 3 || area.h < 2.0 * area.w)
}

/// A bar or dot that separates two texts on one line.
fn is_rule(word: &str) -> bool {
    matches!(word, "|" | "●" | "•" | "·" | "¦" | "│")
}

fn finish_cell(mut cell: TextCell) -> TextCell {
    join_spaced_letters(&mut cell);
    for (index, word) in cell.words.iter().enumerate() {
        for part in fold_text(word).split(' ').filter(|part| !part.is_empty()) {
            cell.folded.push((part.to_owned(), index));
        }
    }
    cell
}

/// `I N V O I C E` and `I n v o i c e` are words that were set with spaces.
fn join_spaced_letters(cell: &mut TextCell) {
    let front = cell.words.iter().take_while(|word| is_single_letter(word)).count();
    let begins = cell.words.first().is_some_and(|word| word.starts_with(char::is_uppercase));
    if front < SPACED_LETTERS || !begins {
        return;
    }
    let word: String = cell.words.drain(..front).collect();
    let areas: Vec<BoundingBox> = cell.boxes.drain(..front).collect();
    if let Some(area) = areas.into_iter().reduce(BoundingBox::union) {
        cell.words.insert(0, word);
        cell.boxes.insert(0, area);
    }
}

fn is_single_letter(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use docmill_core::model::{PageSource, TextLine};

    /// A page drawn in characters: a column is 5 wide, a row 12 high; two or more spaces are a gap.
    pub(in super::super) fn page(number: u32, drawing: &str) -> PageText {
        let lines = drawing.lines().enumerate().filter_map(|(row, text)| {
            let mut words: Vec<TextWord> = Vec::new();
            let chars: Vec<char> = text.chars().chain([' ']).collect();
            let mut start = None;
            for (column, c) in chars.iter().enumerate() {
                match (c.is_whitespace(), start) {
                    (false, None) => start = Some(column),
                    (true, Some(from)) => {
                        let bounding_box = BoundingBox {
                            x: from as f32 * 5.0,
                            y: row as f32 * 12.0,
                            w: (column - from) as f32 * 5.0,
                            h: 10.0,
                        };
                        let text = chars[from..column].iter().collect();
                        words.push(TextWord {
                            text,
                            bounding_box,
                            confidence: 1.0,
                            unwitnessed: false,
                        });
                        start = None;
                    }
                    _ => {}
                }
            }
            (!words.is_empty()).then_some(TextLine { words })
        });
        PageText {
            number,
            source: PageSource::Native,
            width: 600.0,
            height: 840.0,
            quality: 1.0,
            defects: Vec::new(),
            languages: Vec::new(),
            repaired: false,
            provider: None,
            codes: Vec::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            lines: lines.collect(),
        }
    }

    pub(in super::super) fn transcript(drawings: &[&str]) -> Transcript {
        let pages = drawings.iter().zip(1..).map(|(drawing, number)| page(number, drawing));
        Transcript {
            format: Transcript::FORMAT,
            sha256: "0".repeat(64),
            provider: "test".to_owned(),
            pages: pages.collect(),
            quality: 1.0,
        }
    }

    #[test]
    fn words_apart_are_cells_and_cells_side_by_side_are_rows() {
        let layout =
            CellLayout::new(&transcript(&["Invoice date   Due date\n1 May 2024     3 June 2024"]));
        let texts: Vec<String> = layout.cells.iter().map(TextCell::joined_text).collect();
        assert_eq!(texts, ["Invoice date", "Due date", "1 May 2024", "3 June 2024"]);
        assert_eq!(layout.rows.len(), 2);
        let below = layout.cell_below(&layout.cells[1], 2.0).unwrap();
        assert_eq!(below.joined_text(), "3 June 2024");
        assert_eq!(layout.right_of(0).len(), 1);
    }

    #[test]
    fn of_cells_side_by_side_the_one_under_the_label_is_below_it() {
        let drawing = "Date        Payment due date\n19 September 2021  4 October 2021";
        let layout = CellLayout::new(&transcript(&[drawing]));
        let below = layout.cell_below(&layout.cells[1], 2.0).unwrap();
        assert_eq!(below.joined_text(), "4 October 2021");
    }

    #[test]
    fn text_along_the_margin_does_not_join_rows() {
        let mut transcript = transcript(&["Netto   1,00\nBrutto   1,19"]);
        let area = BoundingBox { x: 0.0, y: 0.0, w: 8.0, h: 300.0 };
        let word = TextWord {
            text: "Copyright".into(),
            bounding_box: area,
            confidence: 1.0,
            unwitnessed: false,
        };
        transcript.pages[0].lines.push(TextLine { words: vec![word] });
        assert_eq!(CellLayout::new(&transcript).rows.len(), 2);
    }

    #[test]
    fn a_crooked_page_has_the_rows_of_a_straight_one() {
        let drawing = "Subtotal, net of VAT          10,00\nVAT at the full rate           2,00\n\
                       Total due within days         12,00";
        let mut crooked = transcript(&[drawing]);
        for word in crooked.pages[0].lines.iter_mut().flat_map(|line| &mut line.words) {
            word.bounding_box.y += 0.08 * word.bounding_box.x;
        }
        let layout = CellLayout::new(&crooked);
        let rows: Vec<usize> = layout.rows.iter().map(|row| row.len()).collect();
        assert_eq!(rows, [2, 2, 2]);
    }

    #[test]
    fn a_page_that_lay_well_askew_has_the_rows_and_columns_of_a_straight_one() {
        let heads = [
            "Kettle Works of Northtown                    Invoice number       4471",
            "Mill Lane 5 and 6                            Day of issue   3 May 2024",
            "82216 Northtown Haven                        Payable until  2 Jun 2024",
            "Telephone 0421 910 085                       Your order of  1 May 2024",
        ];
        let works = ["Work in the yard", "Timber for the house", "Nails for both of them"];
        let sums = ["Total before the tax", "Tax on all of it", "Amount to be paid"];
        let amounts = works.iter().map(|text| format!("{text:45}300.00 EUR"));
        let sums = sums.iter().map(|text| format!("{text:45}900.00 EUR"));
        let drawn: Vec<String> =
            heads.iter().map(ToString::to_string).chain(amounts).chain(sums).collect();
        let drawn = drawn.join("\n");
        let rows = |page: &Transcript| {
            let layout = CellLayout::new(page);
            layout
                .rows
                .iter()
                .map(|row: &Range<usize>| {
                    let cells = layout.cells.get(row.clone()).unwrap_or_default();
                    cells.iter().map(TextCell::joined_text).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        let straight = transcript(&[&drawn]);
        for angle in [0.35_f32, -0.35] {
            let mut turned = straight.clone();
            turned.pages[0].source = PageSource::Ocr;
            let (sin, cos) = angle.sin_cos();
            for word in turned.pages[0].lines.iter_mut().flat_map(|line| &mut line.words) {
                let BoundingBox { x, y, w, h } = word.bounding_box;
                let (u, v) = (x + w / 2.0, y + h / 2.0);
                let wide = w * cos + h * sin.abs();
                let high = w * sin.abs() + h * cos;
                let (x, y) = (u * cos - v * sin, u * sin + v * cos);
                word.bounding_box =
                    BoundingBox { x: x - wide / 2.0, y: y - high / 2.0, w: wide, h: high };
            }
            assert_eq!(rows(&turned), rows(&straight), "{angle}");
        }
    }

    #[test]
    fn a_typewriters_spaces_do_not_part_words() {
        let mut typed = transcript(&["The Copper Kettle Ltd   24.30"]);
        for word in typed.pages[0].lines.iter_mut().flat_map(|line| &mut line.words) {
            let area = &mut word.bounding_box;
            (area.x, area.w) = (2.2 * area.x, 2.2 * area.w - 1.0);
        }
        let texts: Vec<String> =
            CellLayout::new(&typed).cells.iter().map(TextCell::joined_text).collect();
        assert_eq!(texts, ["The Copper Kettle Ltd", "24.30"]);
    }

    #[test]
    fn a_wide_space_parts_cells_but_not_behind_a_comma() {
        let count_cells = |text: &str, heights: f32| {
            let mut page = transcript(&[text]);
            let words = &mut page.pages[0].lines[0].words;
            let (last, height) = (words[0].bounding_box.right(), words[0].bounding_box.h);
            words[1].bounding_box.x = last + heights * height;
            CellLayout::new(&page).cells.len()
        };
        assert_eq!(count_cells("ROAD NORTHTOWN", 1.1), 2);
        assert_eq!(count_cells("ROAD, NORTHTOWN", 1.1), 1);
        assert_eq!(count_cells("ROAD, NORTHTOWN", 1.8), 2);
    }

    #[test]
    fn a_label_is_parted_from_a_value_that_was_read_without_a_space() {
        let drawing = "InvoiceDate:3.5.2020 14:30 https://shop.example";
        let cells = CellLayout::new(&transcript(&[drawing])).cells;
        let words: Vec<&str> = cells.iter().flat_map(|c| &c.words).map(String::as_str).collect();
        assert_eq!(words, ["InvoiceDate:", "3.5.2020", "14:30", "https://shop.example"]);
    }

    #[test]
    fn a_bar_separates_even_without_a_gap() {
        let layout = CellLayout::new(&transcript(&["Seller GmbH | VAT id DE123456789"]));
        let texts: Vec<String> = layout.cells.iter().map(TextCell::joined_text).collect();
        assert_eq!(texts, ["Seller GmbH", "VAT id DE123456789"]);
    }

    #[test]
    fn a_row_of_more_cells_than_a_table_has_columns_is_several() {
        let mut wide = page(1, "a");
        let word = |at: u16| TextWord {
            text: "7".into(),
            bounding_box: BoundingBox { x: f32::from(at) * 100.0, y: 0.0, w: 5.0, h: 10.0 },
            confidence: 1.0,
            unwitnessed: false,
        };
        wide.lines = vec![TextLine { words: (0..1_000).map(word).collect() }];
        let mut layout = CellLayout::empty();
        layout.add_page(0, &wide);
        let lengths: Vec<usize> = layout.rows.iter().map(|row| row.len()).collect();
        assert_eq!(lengths, [300, 300, 300, 100]);
    }
}
