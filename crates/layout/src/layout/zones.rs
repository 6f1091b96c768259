//! Which rows of a page stand in columns, make a table, or are plain lines.
//!
//! A zone is a run of rows through which at least one strip of white runs from top to bottom. Its
//! columns are read one after the other if they are running text or do not share baselines; else it
//! is a table.

use super::frame::median;
use super::markers::starts_with_bullet;
use super::piece::{PieceRow, TextPiece};

/// From left to right, in the unit of the page.
pub(super) type WhiteStrip = (f32, f32);

/// Rows that belong together.
pub(super) enum PageZone<'a> {
    /// Lines across.
    Flow(Vec<PieceRow<'a>>),
    /// Columns from left to right, each to be read by itself.
    Columns(Vec<Vec<TextPiece<'a>>>),
    /// The rows of a table, and the strips that run through all of it.
    Table(Vec<PieceRow<'a>>),
}

/// A run of rows while it grows.
struct OpenZone<'a> {
    rows: Vec<PieceRow<'a>>,
    strips: Vec<WhiteStrip>,
    gaps: Vec<f32>,
    words: usize,
    pieces: usize,
}

/// The narrowest strip between columns, in letter sizes.
const NARROWEST: f32 = 0.6;

impl<'a> OpenZone<'a> {
    fn start(row: PieceRow<'a>) -> Self {
        let strips = inner_strips(&row);
        let mut zone = Self { rows: Vec::new(), strips, gaps: Vec::new(), words: 0, pieces: 0 };
        zone.count(&row);
        zone.rows.push(row);
        zone
    }

    fn count(&mut self, row: &PieceRow<'a>) {
        self.words += row.pieces.iter().map(|piece| piece.words.len()).sum::<usize>();
        self.pieces += row.pieces.len();
    }

    /// The strips that are left with one more row; `None` if it does not belong here.
    fn strips_with(&self, row: &PieceRow<'a>) -> Option<Vec<WhiteStrip>> {
        let em = row.em();
        let last = self.rows.last()?;
        let gap = row.area.y - last.area.bottom();
        let prose = self.words >= 3 * self.pieces;
        let most = if prose {
            4.0 * em
        } else {
            (1.3 * em).max(2.2 * median(self.gaps.iter().copied()) + 0.3 * em)
        };
        if gap > most {
            return None;
        }
        let left = cut_strips(&self.strips, row, NARROWEST * em);
        (!left.is_empty()).then_some(left)
    }

    fn push(&mut self, row: PieceRow<'a>, strips: Vec<WhiteStrip>) {
        if let Some(last) = self.rows.last() {
            self.gaps.push((row.area.y - last.area.bottom()).max(0.0));
        }
        self.count(&row);
        self.strips = strips;
        self.rows.push(row);
    }
}

/// The white between the pieces of a row.
fn inner_strips(row: &PieceRow<'_>) -> Vec<WhiteStrip> {
    let em = row.em();
    let between = |pair: &[TextPiece<'_>]| match pair {
        [one, next] => Some((one.area.right(), next.area.x)),
        _ => None,
    };
    let strips = row.pieces.windows(2).filter_map(between);
    strips.filter(|(from, to)| to - from > NARROWEST * em).collect()
}

/// What the pieces of a row leave of strips.
fn cut_strips(strips: &[WhiteStrip], row: &PieceRow<'_>, narrowest: f32) -> Vec<WhiteStrip> {
    let mut left = Vec::new();
    for &(from, to) in strips {
        let (mut from, mut kept) = (from, Vec::new());
        for piece in &row.pieces {
            if piece.area.right() <= from || piece.area.x >= to {
                continue;
            }
            kept.push((from, piece.area.x));
            from = piece.area.right();
        }
        kept.push((from, to));
        kept.retain(|(from, to)| to - from >= narrowest);
        // Where a piece stands in the middle of a strip only one side of it goes on.
        left.extend(kept.into_iter().max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))));
    }
    left
}

/// Sorts the rows of a region into zones, top to bottom.
pub(super) fn find_zones(rows: Vec<PieceRow<'_>>) -> Vec<PageZone<'_>> {
    let mut zones: Vec<PageZone<'_>> = Vec::new();
    let mut open: Option<OpenZone<'_>> = None;
    for row in rows {
        let strips = open.as_ref().and_then(|zone| zone.strips_with(&row));
        match (open.as_mut(), strips) {
            (Some(zone), Some(strips)) => zone.push(row, strips),
            _ => {
                if let Some(zone) = open.take() {
                    close_zone(zone, &mut zones);
                }
                if inner_strips(&row).is_empty() {
                    push_flow(&mut zones, vec![row]);
                } else {
                    open = Some(OpenZone::start(row));
                }
            }
        }
    }
    if let Some(zone) = open {
        close_zone(zone, &mut zones);
    }
    join_tables(zones)
}

fn push_flow<'a>(zones: &mut Vec<PageZone<'a>>, rows: Vec<PieceRow<'a>>) {
    if rows.is_empty() {
        return;
    }
    match zones.last_mut() {
        Some(PageZone::Flow(before)) => before.extend(rows),
        _ => zones.push(PageZone::Flow(rows)),
    }
}

/// Says what a run of rows is.
fn close_zone<'a>(zone: OpenZone<'a>, zones: &mut Vec<PageZone<'a>>) {
    let OpenZone { mut rows, strips, gaps, .. } = zone;
    let shared = rows.iter().filter(|row| row.pieces.len() > 1).count();
    let columns = split_at(&rows, &strips);
    let is_columns = shared >= 2
        && (columns.iter().all(|column| is_prose(column))
            || !shares_baselines(&rows)
            || columns.iter().all(|column| is_bulleted(column)));
    if is_columns {
        let mut columns = columns;
        take_lines_above(zones, &mut columns, &strips);
        zones.push(PageZone::Columns(columns));
        return;
    }
    // Single pieces below a table are its own only if they stand as close as wrapped lines do.
    let mut after = Vec::new();
    let tight = median(gaps.iter().copied()).min(median(rows.iter().map(PieceRow::em)) * 0.6);
    while let [.., above, last] = rows.as_slice() {
        let gap = last.area.y - above.area.bottom();
        let own = gap <= tight && last.pieces.first().is_some_and(|piece| piece.words.len() < 6);
        if last.pieces.len() > 1 || (own && above.pieces.len() > 1) {
            break;
        }
        after.extend(rows.pop());
    }
    after.reverse();
    if shared >= 2 {
        zones.push(PageZone::Table(rows));
    } else {
        push_flow(zones, rows);
    }
    push_flow(zones, after);
}

/// The pieces between strips, as lines of each column.
fn split_at<'a>(rows: &[PieceRow<'a>], strips: &[WhiteStrip]) -> Vec<Vec<TextPiece<'a>>> {
    let mut columns: Vec<Vec<TextPiece<'a>>> = vec![Vec::new(); strips.len() + 1];
    for row in rows {
        for piece in &row.pieces {
            let middle = piece.area.x + piece.area.w / 2.0;
            let at = strips.partition_point(|strip| strip.1 <= middle);
            if let Some(column) = columns.get_mut(at) {
                column.push(piece.clone());
            }
        }
    }
    columns.retain(|column| !column.is_empty());
    columns
}

/// Lines of a column that stand above the first one that has a neighbour.
fn take_lines_above<'a>(
    zones: &mut Vec<PageZone<'a>>,
    columns: &mut [Vec<TextPiece<'a>>],
    strips: &[WhiteStrip],
) {
    let Some(PageZone::Flow(above)) = zones.last_mut() else { return };
    let mut top = columns.iter().flatten().map(|piece| piece.area.y).fold(f32::INFINITY, f32::min);
    let mut taken = Vec::new();
    while let Some(row) = above.last() {
        let inside = row.pieces.iter().all(|piece| {
            strips
                .iter()
                .all(|&(from, to)| piece.area.right() <= from + 1.0 || piece.area.x >= to - 1.0)
        });
        if !inside || row.pieces.len() > 1 || top - row.area.bottom() > row.em() {
            break;
        }
        top = row.area.y;
        taken.extend(above.pop());
    }
    if above.is_empty() {
        zones.pop();
    }
    for piece in taken.into_iter().flat_map(|row| row.pieces) {
        let at = strips.partition_point(|strip| strip.1 - 1.0 <= piece.area.x);
        let at = at.min(columns.len().saturating_sub(1));
        if let Some(column) = columns.get_mut(at) {
            column.insert(0, piece);
        }
    }
}

/// Many lines of several words that fill their column.
fn is_prose(column: &[TextPiece<'_>]) -> bool {
    let left = column.iter().map(|piece| piece.area.x).fold(f32::INFINITY, f32::min);
    let right = column.iter().map(|piece| piece.area.right()).fold(f32::NEG_INFINITY, f32::max);
    let width = right - left;
    let full = column.iter().filter(|piece| piece.area.w > 0.7 * width).count();
    let words: usize = column.iter().map(|piece| piece.words.len()).sum();
    column.len() >= 3 && words >= 3 * column.len() && full * 2 >= column.len()
}

/// At least two entries, and most lines belong to one.
fn is_bulleted(column: &[TextPiece<'_>]) -> bool {
    let marked = column.iter().filter(|piece| starts_with_bullet(&piece.words)).count();
    marked >= 2 && marked * 3 >= column.len()
}

/// Whether most rows with several pieces have them on one baseline.
fn shares_baselines(rows: &[PieceRow<'_>]) -> bool {
    let (mut even, mut all) = (0, 0);
    for row in rows.iter().filter(|row| row.pieces.len() > 1) {
        let lowest =
            row.pieces.iter().map(|piece| piece.baseline).fold(f32::NEG_INFINITY, f32::max);
        let highest = row.pieces.iter().map(|piece| piece.baseline).fold(f32::INFINITY, f32::min);
        all += 1;
        even += usize::from(lowest - highest < 0.3 * row.em());
    }
    even * 2 > all
}

/// Two tables with one line between them that reaches across are one, with a cell across.
fn join_tables(zones: Vec<PageZone<'_>>) -> Vec<PageZone<'_>> {
    let mut joined: Vec<PageZone<'_>> = Vec::new();
    for zone in zones {
        let PageZone::Table(next) = zone else {
            joined.push(zone);
            continue;
        };
        let between = match joined.as_slice() {
            [.., PageZone::Table(above), PageZone::Flow(lines)] => {
                are_one_table(above, lines, &next)
            }
            _ => false,
        };
        if !between {
            joined.push(PageZone::Table(next));
            continue;
        }
        if let (Some(PageZone::Flow(lines)), Some(PageZone::Table(above))) =
            (joined.pop(), joined.last_mut())
        {
            above.extend(lines);
            above.extend(next);
        }
    }
    joined
}

fn are_one_table(above: &[PieceRow<'_>], lines: &[PieceRow<'_>], below: &[PieceRow<'_>]) -> bool {
    let ([line], Some(last), Some(first)) = (lines, above.last(), below.first()) else {
        return false;
    };
    let em = line.em();
    let usual = median(above.windows(2).filter_map(|pair| match pair {
        [one, next] => Some(next.area.y - one.area.bottom()),
        _ => None,
    }));
    let near = |gap: f32| gap < usual.max(0.3 * em) * 1.6 + 0.2 * em;
    let strips =
        above.iter().chain(below).fold(None, |left: Option<Vec<WhiteStrip>>, row| match left {
            None => Some(inner_strips(row)),
            Some(left) => Some(cut_strips(&left, row, NARROWEST * em)),
        });
    line.pieces.len() == 1
        && near(line.area.y - last.area.bottom())
        && near(first.area.y - line.area.bottom())
        && strips.is_some_and(|strips| !strips.is_empty())
}
