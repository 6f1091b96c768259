//! The rows of a table: its columns, which lines make one row, and cells that reach across columns.
//!
//! Columns are where pieces stand below each other; two of them stay two only if more rows keep them
//! apart than reach across. Cells that reach over rows are told only where their words stand between
//! the lines of the rows beside them.

use docmill_core::model::BoundingBox;

use super::block::TableCell;
use super::frame::{PlacedWord, box_around, median};
use super::piece::{PieceRow, TextPiece, join_words};

/// A table with its words in the order of its cells.
pub(super) struct FoundTable<'a> {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) cells: Vec<TableCell>,
    pub(super) words: Vec<PlacedWord<'a>>,
}

/// Where the pieces of a column stand.
#[derive(Debug, Clone, Copy)]
struct ColumnRange {
    from: f32,
    to: f32,
}

/// Words of one row between a first and a last column.
struct CellDraft<'a> {
    first: usize,
    last: usize,
    words: Vec<PlacedWord<'a>>,
}

/// A line of a table as it is drawn.
struct TableLine<'a> {
    /// The highest baseline of its cells.
    first: f32,
    /// The lowest.
    last: f32,
    cells: Vec<CellDraft<'a>>,
}

/// Tables of more columns are drawings.
const MAX_COLUMNS: usize = 40;

/// Builds a table of rows; the rows again if they make none.
pub(super) fn build_table(rows: Vec<PieceRow<'_>>) -> Result<FoundTable<'_>, Vec<PieceRow<'_>>> {
    let columns = find_columns(&rows);
    if columns.len() < 2 || columns.len() > MAX_COLUMNS {
        return Err(rows);
    }
    let lines: Vec<TableLine<'_>> = rows.into_iter().map(|row| line_of(row, &columns)).collect();
    let em = median(
        lines.iter().flat_map(|line| &line.cells).flat_map(|cell| &cell.words).map(|word| word.em),
    );
    let mut cells = Vec::new();
    let mut words = Vec::new();
    let grouped = group_lines(lines, columns.len(), em);
    let count = grouped.len();
    for (row, drafts) in (0_u32..).zip(grouped) {
        for draft in drafts {
            cells.push(TableCell {
                row,
                column: index(draft.first),
                row_span: 1,
                column_span: index(draft.last - draft.first + 1),
                text: join_words(&draft.words),
                bounding_box: box_around(&draft.words),
            });
            words.extend(draft.words);
        }
    }
    reach_right(&mut cells, index(columns.len()));
    reach_down(&mut cells, index(columns.len()));
    Ok(FoundTable { rows: index(count), columns: index(columns.len()), cells, words })
}

/// A first row of few cells above a full one names groups of columns: its cells reach to the next.
fn reach_right(cells: &mut [TableCell], columns: u32) {
    let names = cells.iter().filter(|cell| cell.row == 0).count();
    let second = cells.iter().filter(|cell| cell.row == 1);
    let full = second.map(|cell| cell.column_span).sum::<u32>() >= columns;
    if names < 2 || names * 2 > columns as usize + 1 || !full {
        return;
    }
    let mut end = columns;
    for cell in cells.iter_mut().take(names).rev() {
        if cell.column > 0 {
            cell.column_span = end - cell.column;
        }
        end = cell.column;
    }
}

/// A label in the first column holds for the rows below it that have a cell in every other column.
fn reach_down(cells: &mut [TableCell], columns: u32) {
    let mut label: Option<usize> = None;
    let mut at = 0;
    while let Some(row) = cells.get(at).map(|cell| cell.row) {
        let here = cells.iter().skip(at).take_while(|cell| cell.row == row);
        let count = here.clone().count();
        let plain = here.clone().all(|cell| cell.column_span == 1);
        let first = here.clone().next().is_some_and(|cell| cell.column == 0);
        if first {
            // The first row names the columns.
            label = (row > 0 && count > 1).then_some(at);
        } else if plain && count + 1 == columns as usize && columns > 2 {
            if let Some(cell) = label.and_then(|label| cells.get_mut(label)) {
                cell.row_span += 1;
            }
        } else {
            label = None;
        }
        at += count;
    }
}

/// A row or column as it is printed; there are at most as many as words on a page.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn line_of<'a>(row: PieceRow<'a>, columns: &[ColumnRange]) -> TableLine<'a> {
    let baselines = row.pieces.iter().map(|piece| piece.baseline);
    let first = baselines.clone().fold(f32::INFINITY, f32::min);
    let last = baselines.fold(f32::NEG_INFINITY, f32::max);
    TableLine { first, last, cells: fill_row(row, columns) }
}

/// The columns, left to right.
fn find_columns(rows: &[PieceRow<'_>]) -> Vec<ColumnRange> {
    let mut pieces: Vec<BoundingBox> =
        rows.iter().flat_map(|row| &row.pieces).map(|piece| piece.area).collect();
    pieces.sort_by(|one, other| one.w.total_cmp(&other.w));
    let mut columns: Vec<ColumnRange> = Vec::new();
    for area in pieces {
        let (from, to) = (area.x, area.right());
        let full = columns.len() > 2 * MAX_COLUMNS;
        let mut over = columns.iter_mut().filter(|column| overlaps(**column, from, to));
        match (over.next(), over.next()) {
            (None, _) if !full => {
                columns.push(ColumnRange { from, to });
                columns.sort_by(|one, other| one.from.total_cmp(&other.from));
            }
            (Some(column), None) => {
                (column.from, column.to) = (column.from.min(from), column.to.max(to));
            }
            _ => {}
        }
    }
    merge_columns(rows, columns)
}

/// Whether a stretch and a column have more in common than a slip of the boxes.
fn overlaps(column: ColumnRange, from: f32, to: f32) -> bool {
    let shared = to.min(column.to) - from.max(column.from);
    shared > 0.15 * (to - from).min(column.to - column.from)
}

/// Puts neighbours together that are kept apart by fewer rows than reach across them, or that no
/// row has both of.
fn merge_columns(rows: &[PieceRow<'_>], mut columns: Vec<ColumnRange>) -> Vec<ColumnRange> {
    let mut at = 0;
    while at + 1 < columns.len() {
        let (Some(&one), Some(&next)) = (columns.get(at), columns.get(at + 1)) else { break };
        if keeps_apart(rows, one, next) {
            at += 1;
        } else {
            let merged = ColumnRange { from: one.from.min(next.from), to: one.to.max(next.to) };
            columns.splice(at..at + 2, [merged]);
            at = at.saturating_sub(1);
        }
    }
    columns
}

fn keeps_apart(rows: &[PieceRow<'_>], one: ColumnRange, next: ColumnRange) -> bool {
    let (mut apart, mut across) = (0, 0);
    for row in rows {
        let within = [one, next].map(|column| {
            row.pieces.iter().position(|piece| overlaps(column, piece.area.x, piece.area.right()))
        });
        match within.into() {
            (Some(left), Some(right)) if left == right => across += 1,
            (Some(_), Some(_)) => apart += 1,
            _ => {}
        }
    }
    apart > across
}

/// The cells of a row. A piece that covers several columns is one cell, unless words of it keep
/// clear of the strip between two of them.
fn fill_row<'a>(row: PieceRow<'a>, columns: &[ColumnRange]) -> Vec<CellDraft<'a>> {
    let mut cells: Vec<CellDraft<'a>> = Vec::new();
    for piece in row.pieces {
        for part in cut_piece(piece, columns) {
            let (first, last) = reach_of(&part, columns);
            match cells.last_mut() {
                Some(before) if before.last >= first => {
                    before.last = before.last.max(last);
                    before.words.extend(part.words);
                }
                _ => cells.push(CellDraft { first, last, words: part.words }),
            }
        }
    }
    cells
}

/// Cuts a piece at gaps between words that are as wide as the strip between two columns.
fn cut_piece<'a>(piece: TextPiece<'a>, columns: &[ColumnRange]) -> Vec<TextPiece<'a>> {
    let (first, last) = reach_of(&piece, columns);
    if first == last {
        return vec![piece];
    }
    let strips: Vec<(f32, f32)> = columns
        .windows(2)
        .filter_map(|pair| match pair {
            [one, next] => Some((one.to.min(next.from), next.from.max(one.to))),
            _ => None,
        })
        .collect();
    let slack = 0.15 * piece.em;
    let mut parts: Vec<Vec<PlacedWord<'a>>> = Vec::new();
    let mut end = f32::MAX;
    for word in piece.words {
        let start = word.area.x;
        let is_clear = start - end > 0.35 * piece.em
            && strips.iter().any(|(from, to)| end <= from + slack && start >= to - slack);
        end = word.area.right();
        match parts.last_mut().filter(|_| !is_clear) {
            Some(part) => part.push(word),
            None => parts.push(vec![word]),
        }
    }
    parts.into_iter().filter_map(TextPiece::from_words).collect()
}

/// The first and the last column that a piece overlaps; the nearest if it overlaps none.
fn reach_of(piece: &TextPiece<'_>, columns: &[ColumnRange]) -> (usize, usize) {
    let (from, to) = (piece.area.x, piece.area.right());
    let mut over = (0..).zip(columns).filter(|(_, column)| overlaps(**column, from, to));
    if let Some((first, _)) = over.next() {
        return (first, over.last().map_or(first, |(last, _)| last));
    }
    let middle = piece.area.x + piece.area.w / 2.0;
    let distances = columns.iter().map(|column| (column.from - middle).max(middle - column.to));
    let nearest = (0..).zip(distances).min_by(|one, other| one.1.total_cmp(&other.1));
    nearest.map_or((0, 0), |(at, _)| (at, at))
}

/// Lines that make one row of the table: those that stand closer than rows do and add to what the
/// lines above leave open or begin.
fn group_lines<'a>(lines: Vec<TableLine<'a>>, columns: usize, em: f32) -> Vec<Vec<CellDraft<'a>>> {
    let pitches = lines.windows(2).filter_map(|pair| match pair {
        [one, next] => Some(next.first - one.last),
        _ => None,
    });
    let limit = row_limit(pitches.collect(), em);
    let padded = limit.is_some();
    let mut rows: Vec<Vec<CellDraft<'a>>> = Vec::new();
    let mut above = f32::NEG_INFINITY;
    for TableLine { first, last, cells } in lines {
        let near = limit.is_none_or(|limit| first - above <= limit);
        let beside = first - above < 0.9 * em;
        above = last;
        match rows.last_mut() {
            Some(row) if beside || (near && goes_on(row, &cells, columns, padded)) => {
                add_line(row, cells);
            }
            _ => rows.push(cells),
        }
    }
    rows
}

/// The distance of baselines up to which lines are wrapped ones of a row: below the first jump in
/// the distances, if there is one. `None`: rows and lines are at one distance.
fn row_limit(mut pitches: Vec<f32>, em: f32) -> Option<f32> {
    // Closer lines stand beside each other, set to the middle of their row.
    pitches.retain(|pitch| *pitch > em);
    pitches.sort_by(f32::total_cmp);
    let jump = pitches.windows(2).find_map(|pair| match pair {
        [one, next] if next - one > 0.22 * em => Some((one + next) / 2.0),
        _ => None,
    });
    let most = 1.42 * em;
    let limit = jump.map(|limit| limit.min(most));
    // Rows that are all far from each other have no wrapped lines.
    limit.or_else(|| pitches.first().is_none_or(|least| *least > most).then_some(most))
}

/// Whether a line goes on with the cells of a row.
fn goes_on(row: &[CellDraft<'_>], line: &[CellDraft<'_>], columns: usize, padded: bool) -> bool {
    let shared = line.iter().filter(|cell| {
        row.iter().any(|above| above.last >= cell.first && cell.last >= above.first)
    });
    let shared = shared.count();
    let spans = row.iter().chain(line).any(|cell| cell.last > cell.first);
    if spans {
        return false;
    }
    if padded {
        return shared * 2 <= columns;
    }
    // Rows and lines at one distance: only a lone cell that is not the first goes on.
    line.len() == 1 && row.len() > 1 && shared == 1 && line.iter().all(|cell| cell.first > 0)
}

fn add_line<'a>(row: &mut Vec<CellDraft<'a>>, line: Vec<CellDraft<'a>>) {
    for cell in line {
        match row.iter_mut().find(|above| above.first == cell.first) {
            Some(above) => above.words.extend(cell.words),
            None => row.push(cell),
        }
    }
    row.sort_by_key(|cell| cell.first);
}
