//! The lines of a page as a model is shown them: cells of a row apart, empty ones visible.
//!
//! A gap wider than a letter or two separates cells. A row of many cells, mostly the headings, gives
//! the columns of the rows below it: a row that lacks a cell keeps the others under their headings.
//! Lines without such gaps are unchanged. Boxes are untrusted: a page takes O(n · columns) steps in
//! its words, and no text is left out or moved.

use docmill_core::model::{PageText, TextLine};

/// Between two cells of a row.
const CELL_MARK: &str = " | ";
/// Least gap between two cells, in heights of the line's words.
const MIN_GAP_HEIGHTS: f32 = 1.5;
/// Rows of fewer cells give no columns: they are mostly two blocks beside each other.
const MIN_COLUMNS: usize = 3;
/// Rows of more cells give no columns: they are mostly drawings.
const MAX_COLUMNS: usize = 20;
/// Lines of one cell, mostly wrapped descriptions, after which the columns do not apply any more.
const MAX_PLAIN_LINES: usize = 6;

/// The text of every line of a page, in order.
pub(super) fn list_lines(page: &PageText) -> Vec<String> {
    let mut columns = TableColumns::default();
    page.lines.iter().map(|line| columns.write_line(split_cells(line))).collect()
}

/// Words of a line that stand together.
#[derive(Debug)]
struct LineCell {
    text: String,
    range: CellRange,
}

impl LineCell {
    fn of_word(text: &str, range: CellRange) -> Self {
        Self { text: text.to_owned(), range }
    }
}

/// The left and the right edge.
#[derive(Debug, Clone, Copy)]
struct CellRange {
    from: f32,
    to: f32,
}

impl CellRange {
    fn overlap(self, other: Self) -> f32 {
        self.to.min(other.to) - self.from.max(other.from)
    }

    fn middle(self) -> f32 {
        f32::midpoint(self.from, self.to)
    }
}

fn split_cells(line: &TextLine) -> Vec<LineCell> {
    let mut heights: Vec<f32> = line.words.iter().map(|word| word.bounding_box.h).collect();
    heights.sort_by(f32::total_cmp);
    let height = heights.get(heights.len() / 2).copied().unwrap_or_default();
    let mut cells: Vec<LineCell> = Vec::new();
    for word in &line.words {
        let (from, to) = (word.bounding_box.x, word.bounding_box.right());
        match cells.last_mut() {
            None => cells.push(LineCell::of_word(&word.text, CellRange { from, to })),
            Some(cell) if from - cell.range.to > MIN_GAP_HEIGHTS * height => {
                cells.push(LineCell::of_word(&word.text, CellRange { from, to }));
            }
            Some(cell) => {
                cell.text.push(' ');
                cell.text.push_str(&word.text);
                cell.range.to = to;
            }
        }
    }
    cells
}

/// The columns of the table that a line may belong to.
#[derive(Debug, Default)]
struct TableColumns {
    ranges: Vec<CellRange>,
    /// Lines of one cell since the last row.
    plain_lines: usize,
}

impl TableColumns {
    fn write_line(&mut self, cells: Vec<LineCell>) -> String {
        if cells.len() < 2 {
            self.plain_lines += 1;
            if self.plain_lines > MAX_PLAIN_LINES {
                self.ranges.clear();
            }
            return join_cells(cells);
        }
        self.plain_lines = 0;
        match self.find_places(&cells) {
            Some(places) => {
                self.widen(&cells, &places);
                fill_row(cells, &places)
            }
            None => {
                if (MIN_COLUMNS..=MAX_COLUMNS).contains(&cells.len()) {
                    self.ranges = cells.iter().map(|cell| cell.range).collect();
                }
                join_cells(cells)
            }
        }
    }

    /// The column of each cell, ascending; `None` for a row that does not fit.
    fn find_places(&self, cells: &[LineCell]) -> Option<Vec<usize>> {
        let mut places = Vec::with_capacity(cells.len());
        let mut next = 0;
        for cell in cells {
            let place = next + self.find_place(cell.range, next)?;
            places.push(place);
            next = place + 1;
        }
        Some(places)
    }

    /// The column that a cell shares most with, counted from `next`; without one the nearest.
    fn find_place(&self, cell: CellRange, next: usize) -> Option<usize> {
        let ahead = self.ranges.get(next..)?.iter().enumerate();
        let by_overlap = |one: &(usize, f32), other: &(usize, f32)| one.1.total_cmp(&other.1);
        let shared = ahead.clone().map(|(at, column)| (at, column.overlap(cell)));
        if let Some((at, _)) = shared.filter(|(_, shared)| *shared > 0.0).max_by(by_overlap) {
            return Some(at);
        }
        let apart = ahead.map(|(at, column)| (at, (column.middle() - cell.middle()).abs()));
        apart.min_by(by_overlap).map(|(at, _)| at)
    }

    /// Columns grow with their cells, up to their neighbours.
    fn widen(&mut self, cells: &[LineCell], places: &[usize]) {
        for (cell, &place) in cells.iter().zip(places) {
            let before = place.checked_sub(1).and_then(|at| self.ranges.get(at)).copied();
            let after = self.ranges.get(place + 1).copied();
            let Some(column) = self.ranges.get_mut(place) else { continue };
            let least = before.map_or(f32::MIN, |column| column.to);
            let most = after.map_or(f32::MAX, |column| column.from);
            column.from = column.from.min(cell.range.from.max(least));
            column.to = column.to.max(cell.range.to.min(most));
        }
    }
}

fn join_cells(cells: Vec<LineCell>) -> String {
    let texts: Vec<String> = cells.into_iter().map(|cell| cell.text).collect();
    texts.join(CELL_MARK)
}

/// A row with its empty cells; none are written behind the last full one.
fn fill_row(cells: Vec<LineCell>, places: &[usize]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for (cell, &place) in cells.into_iter().zip(places) {
        while at < place {
            text.push_str(CELL_MARK);
            at += 1;
        }
        text.push_str(&cell.text);
    }
    text.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{BoundingBox, TextWord};

    /// A line of words by their left edges; a letter is 5 wide and 10 high.
    fn line(words: &[(f32, &str)]) -> TextLine {
        let word = |(x, text): &(f32, &str)| TextWord {
            text: (*text).into(),
            bounding_box: BoundingBox { x: *x, y: 0.0, w: 5.0 * text.len() as f32, h: 10.0 },
            confidence: 1.0,
            unwitnessed: false,
        };
        TextLine { words: words.iter().map(word).collect() }
    }

    fn shown(lines: &[&[(f32, &str)]]) -> Vec<String> {
        let lines = lines.iter().map(|words| line(words)).collect();
        list_lines(&PageText::from_native(1, (595.0, 842.0), 1.0, lines))
    }

    const HEADINGS: &[(f32, &str)] =
        &[(50.0, "Item"), (200.0, "Qty"), (260.0, "Price"), (330.0, "Tax"), (400.0, "Amount")];

    #[test]
    fn a_gap_of_more_than_a_letter_separates_cells_and_a_space_does_not() {
        let lines = shown(&[
            &[(50.0, "Acme"), (75.0, "Ltd"), (300.0, "Invoice"), (340.0, "7")],
            &[(50.0, "One"), (79.9, "word")],
            &[(50.0, "plain")],
        ]);
        assert_eq!(lines, ["Acme Ltd | Invoice 7", "One word", "plain"]);
    }

    #[test]
    fn an_empty_cell_is_shown_and_the_others_stay_below_their_headings() {
        let lines = shown(&[
            HEADINGS,
            &[(50.0, "Widget"), (205.0, "2"), (262.0, "5.00"), (332.0, "20"), (405.0, "10.00")],
            &[(50.0, "Freight"), (405.0, "12.50")],
            &[(50.0, "wrapped"), (90.0, "text")],
            &[(50.0, "Rebate"), (332.0, "10")],
            &[(330.0, "Total"), (405.0, "22.50")],
        ]);
        assert_eq!(lines[1], "Widget | 2 | 5.00 | 20 | 10.00");
        assert_eq!(lines[2], "Freight |  |  |  | 12.50");
        assert_eq!(lines[3], "wrapped text");
        assert_eq!(lines[4], "Rebate |  |  | 10");
        assert_eq!(lines[5], "|  |  | Total | 22.50");
    }

    #[test]
    fn rows_that_do_not_fit_have_no_empty_cells_and_columns_end_with_their_table() {
        let two: &[(f32, &str)] = &[(50.0, "Freight"), (405.0, "12.50")];
        let crowded: &[(f32, &str)] = &[(395.0, "a"), (420.0, "b"), (445.0, "c")];
        assert_eq!(shown(&[HEADINGS, crowded])[1], "a | b | c");
        let text: &[(f32, &str)] = &[(50.0, "text")];
        let far = [&[HEADINGS][..], &[text; MAX_PLAIN_LINES + 1], &[two]].concat();
        assert_eq!(shown(&far).last().unwrap(), "Freight | 12.50");
    }

    #[test]
    fn no_box_can_lose_or_move_a_word() {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0e30, 0.0, 7.0];
        for (at, x) in odd.into_iter().enumerate() {
            let other = odd[(at + 1) % odd.len()];
            let words: &[(f32, &str)] = &[(x, "a"), (other, "b"), (x, "c"), (300.0, "d")];
            for line in shown(&[HEADINGS, words, words]).iter().skip(1) {
                let plain: Vec<&str> =
                    line.split([' ', '|']).filter(|word| !word.is_empty()).collect();
                assert_eq!(plain, ["a", "b", "c", "d"], "{line}");
            }
        }
    }
}
