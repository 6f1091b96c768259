//! Which rows of a page stand in columns, make a table, or are plain lines.
//!
//! A zone is a run of rows through which at least one strip of white runs from top to bottom. Its
//! columns are read one after the other if they are running text or do not share baselines; else it
//! is a table.

use super::frame::{median, part_below};
use super::markers::{is_lone_marker, starts_with_bullet};
use super::parties::{find_heads, has_digit, join_facts, strip_between_parties};
use super::piece::{PieceRow, TextPiece};
use super::strips::{MIN_STRIP_WIDTH, WhiteStrip, cut_strips, inner_strips};

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
    /// Its first row names the columns of a table.
    headed: bool,
}

/// No address beside facts or another one has more rows.
const MAX_PARTY_ROWS: usize = 24;

impl<'a> OpenZone<'a> {
    fn start(row: PieceRow<'a>, headed: bool) -> Self {
        let strips = inner_strips(&row);
        let mut zone = Self { rows: Vec::new(), strips, gaps: Vec::new(), words: 0, headed };
        zone.count(&row);
        zone.rows.push(row);
        zone
    }

    fn count(&mut self, row: &PieceRow<'a>) {
        self.words += row.pieces.iter().map(|piece| piece.words.len()).sum::<usize>();
    }

    /// The strips that are left with one more row; `None` if it does not belong here.
    fn strips_with(&self, row: &PieceRow<'a>) -> Option<Vec<WhiteStrip>> {
        let em = row.em();
        let last = self.rows.last()?;
        let gap = row.area.y - last.area.bottom();
        let prose = self.words >= 2 * self.rows.len() * (self.strips.len() + 1);
        // A note at the foot of a column may stand far below its text.
        let note = row.pieces.len() == 1 && em < 0.9 * self.em();
        let most = if prose && note {
            80.0 * em
        } else if prose {
            4.0 * em
        } else {
            (2.0 * em).max(2.2 * self.usual_gap() + 0.3 * em)
        };
        if gap > most || (prose && gap > 0.8 * em && self.is_heading(row)) {
            return None;
        }
        if prose && gap > 0.8 * em && self.leaves_edges(row) && self.is_running() {
            return None;
        }
        let left = cut_strips(&self.strips, row, MIN_STRIP_WIDTH * em);
        (!left.is_empty()).then_some(left)
    }

    /// Whether something else begins: large print alone, or the head of a table with other columns
    /// below rows that have numbers already.
    fn ends_before(&self, row: &PieceRow<'a>, head: bool) -> bool {
        let em = self.em();
        let gap = self.rows.last().map_or(0.0, |last| row.area.y - last.area.bottom());
        let title = row.pieces.len() == 1 && row.em() > 1.25 * em && gap > 0.3 * em;
        let other = head
            && gap > 0.5 * em
            && (inner_strips(row).len() > self.strips.len()
                || gap > 1.5 * self.usual_gap() + 0.5 * em)
            && self.rows.iter().rev().take(12).any(|row| row.pieces.iter().any(has_digit));
        let far = gap > 1.5 * self.usual_gap() + em && row.pieces.len() > 1;
        ((title || other) && !self.is_running())
            || (far
                && (4..MAX_PARTY_ROWS).contains(&self.rows.len())
                && strip_between_parties(&self.rows).is_some())
    }

    fn em(&self) -> f32 {
        median(self.rows.iter().rev().take(12).map(PieceRow::em))
    }

    /// Large print below all columns that begins where they do: short, but across.
    fn is_heading(&self, row: &PieceRow<'a>) -> bool {
        let begins = self.strips.first().is_some_and(|strip| row.area.x < strip.0);
        self.rows.len() > 3 && row.pieces.len() == 1 && begins && row.em() > 1.25 * self.em()
    }

    /// The white between the last rows.
    fn usual_gap(&self) -> f32 {
        median(self.gaps.iter().rev().take(24).copied())
    }

    /// Whether the columns are running text so far: the last lines tell.
    fn is_running(&self) -> bool {
        let from = self.rows.len().saturating_sub(40);
        let columns = split_at(self.rows.get(from..).unwrap_or_default(), &self.strips);
        columns.iter().all(|column| is_prose(column))
    }

    /// Whether what stands right of a strip begins nowhere near it, or a column has a wide gap of
    /// its own, after rows that all kept to the columns.
    fn leaves_edges(&self, row: &PieceRow<'a>) -> bool {
        let em = row.em();
        let mut inside = inner_strips(row).into_iter().filter(|gap| {
            gap.1 - gap.0 > 2.0 * em
                && !self.strips.iter().any(|strip| strip.0 < gap.1 && gap.0 < strip.1)
        });
        let (first, last) = (self.strips.first(), self.strips.last());
        let across = first.is_some_and(|strip| row.area.x < strip.0)
            && last.is_some_and(|strip| row.area.right() > strip.1);
        self.rows.len() > 3
            && across
            && (inside.next().is_some()
                || self.strips.iter().any(|&(_, edge)| {
                    let first = row.pieces.iter().find(|piece| piece.area.x >= edge - 0.5 * em);
                    first.is_some_and(|piece| piece.area.x > edge + 2.5 * em)
                }))
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

/// Sorts the rows of a region into zones, top to bottom.
pub(super) fn find_zones(rows: Vec<PieceRow<'_>>) -> Vec<PageZone<'_>> {
    let mut zones: Vec<PageZone<'_>> = Vec::new();
    let mut open: Option<OpenZone<'_>> = None;
    let heads = find_heads(&rows);
    for (row, head) in rows.into_iter().zip(heads) {
        let zone = open.as_ref().filter(|zone| !zone.ends_before(&row, head));
        let strips = zone.and_then(|zone| zone.strips_with(&row));
        match (open.as_mut(), strips) {
            (Some(zone), Some(strips)) => zone.push(row, strips),
            _ => {
                if let Some(zone) = open.take() {
                    close_zone(zone, &mut zones);
                }
                if inner_strips(&row).is_empty() {
                    push_flow(&mut zones, vec![row]);
                } else {
                    open = Some(OpenZone::start(row, head));
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
    let OpenZone { mut rows, strips, gaps, headed, .. } = zone;
    let shared = rows.iter().filter(|row| row.pieces.len() > 1).count();
    if is_marked(&rows) {
        push_flow(zones, rows);
        return;
    }
    let apart = cut_lone_end(&mut rows);
    if let Some(strip) = strip_between_parties(&rows) {
        let mut columns = split_at(&rows, &[strip]);
        take_lines_above(zones, &mut columns, &[strip]);
        zones.push(PageZone::Columns(columns));
        push_flow(zones, apart);
        return;
    }
    rows.extend(apart);
    let columns = split_at(&rows, &strips);
    let is_columns = shared >= 2
        && (columns.iter().all(|column| is_prose(column))
            || (!headed
                && !shares_baselines(&rows)
                && columns.iter().all(|column| is_dense(column)))
            || columns.iter().all(|column| is_bulleted(column)));
    let mut columns = if is_columns { join_facts(columns) } else { Vec::new() };
    if columns.len() > 1 {
        take_lines_above(zones, &mut columns, &strips);
        zones.push(PageZone::Columns(columns));
        return;
    }
    if is_spread(&rows) {
        push_flow(zones, rows);
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
        take_row_above(zones, &mut rows);
        zones.push(PageZone::Table(rows));
    } else {
        push_flow(zones, rows);
    }
    push_flow(zones, after);
}

/// Takes away the last rows of one piece that stand further below than lines of a paragraph do.
fn cut_lone_end<'a>(rows: &mut Vec<PieceRow<'a>>) -> Vec<PieceRow<'a>> {
    let from = rows.iter().rposition(|row| row.pieces.len() > 1).map_or(0, |at| at + 1);
    let far =
        rows.windows(2).enumerate().skip(from.saturating_sub(1)).find(|(_, pair)| match pair {
            [one, next] => next.area.y - one.area.bottom() > 1.6 * one.em(),
            _ => false,
        });
    match far {
        Some((at, _)) => rows.split_off(at + 1),
        None => Vec::new(),
    }
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

/// A wrapped cell of the first row, set to its middle, begins above the others.
fn take_row_above<'a>(zones: &mut Vec<PageZone<'a>>, rows: &mut Vec<PieceRow<'a>>) {
    let Some(PageZone::Flow(above)) = zones.last_mut() else { return };
    let beside = match (above.last(), rows.first()) {
        (Some(last), Some(first)) => {
            last.pieces.len() == 1 && last.area.bottom() > first.area.y + 0.2 * first.em()
        }
        _ => false,
    };
    if beside {
        rows.splice(0..0, above.pop());
    }
    if above.is_empty() {
        zones.pop();
    }
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
    let mut tops: Vec<Vec<TextPiece<'a>>> = vec![Vec::new(); columns.len()];
    for piece in taken.into_iter().rev().flat_map(|row| row.pieces) {
        let at = strips.partition_point(|strip| strip.1 - 1.0 <= piece.area.x);
        if let Some(top) = tops.get_mut(at.min(columns.len().saturating_sub(1))) {
            top.push(piece);
        }
    }
    for (column, top) in columns.iter_mut().zip(tops) {
        column.splice(0..0, top);
    }
}

/// Marks of a list with its entries beside them.
fn is_marked(rows: &[PieceRow<'_>]) -> bool {
    let left = rows.iter().map(|row| row.area.x).fold(f32::INFINITY, f32::min);
    let firsts = rows.iter().filter_map(|row| row.pieces.first());
    let mut marks = firsts.filter(|first| first.area.x < left + first.em).peekable();
    marks.peek().is_some()
        && rows.iter().all(|row| row.pieces.len() <= 2)
        && marks.all(|first| is_lone_marker(&first.words))
}

/// Joins the pieces of lines that are spread over the width of a region, as running text is that is
/// set to both edges.
pub(super) fn join_spread(rows: Vec<PieceRow<'_>>) -> Vec<PieceRow<'_>> {
    let left = part_below(rows.iter().map(|row| row.area.x), 5);
    let right = -part_below(rows.iter().map(|row| -row.area.right()), 5);
    if rows.iter().filter(|row| is_flush(row, left, right)).count() * 2 < rows.len() {
        return rows;
    }
    let mut joined = Vec::with_capacity(rows.len());
    for row in rows {
        let is_spread = row.pieces.len() > 1 && is_flush(&row, left, right) && has_even_gaps(&row);
        joined.push(if is_spread { row.into_joined() } else { row });
    }
    joined
}

/// Whether a row reaches both edges.
fn is_flush(row: &PieceRow<'_>, left: f32, right: f32) -> bool {
    let slack = 0.4 * row.em();
    (row.area.x - left).abs() < slack && (row.area.right() - right).abs() < slack
}

/// No wide gaps, and no numbers as tables have them.
fn has_even_gaps(row: &PieceRow<'_>) -> bool {
    let widest = inner_strips(row).iter().map(|strip| strip.1 - strip.0).fold(0.0, f32::max);
    let mut words = row.pieces.iter().flat_map(|piece| &piece.words);
    widest < 3.0 * row.em() && words.all(|word| !word.text.contains(|c: char| c.is_ascii_digit()))
}

/// Words spread over the width of a column: lines without numbers that begin and end in one place.
fn is_spread(rows: &[PieceRow<'_>]) -> bool {
    let left = rows.iter().map(|row| row.area.x).fold(f32::INFINITY, f32::min);
    let right = rows.iter().map(|row| row.area.right()).fold(f32::NEG_INFINITY, f32::max);
    let spread = rows.iter().filter(|row| {
        let em = row.em();
        let flush = row.area.x - left < 0.5 * em && right - row.area.right() < 0.5 * em;
        flush && has_even_gaps(row)
    });
    // The first and the last line of a paragraph may be shorter.
    spread.count() * 3 >= rows.len() * 2
}

/// The lines of a column, pieces on one of them joined.
fn join_lines<'a>(column: &[TextPiece<'a>]) -> Vec<TextPiece<'a>> {
    let mut lines: Vec<TextPiece<'a>> = Vec::new();
    for piece in column {
        match lines.last_mut() {
            Some(line) if (line.baseline - piece.baseline).abs() < 0.3 * piece.em => {
                line.area = line.area.union(piece.area);
                line.words.extend(piece.words.iter().copied());
            }
            _ => lines.push(piece.clone()),
        }
    }
    lines
}

/// Many lines of several words that fill their column, or that go on in the middle of a sentence.
fn is_prose(column: &[TextPiece<'_>]) -> bool {
    let column = join_lines(column);
    let left = column.iter().map(|piece| piece.area.x).fold(f32::INFINITY, f32::min);
    let right = column.iter().map(|piece| piece.area.right()).fold(f32::NEG_INFINITY, f32::max);
    let width = right - left;
    let full = column.iter().filter(|piece| piece.area.w > 0.7 * width).count();
    let words: usize = column.iter().map(|piece| piece.words.len()).sum();
    let inside = column.iter().filter(|piece| starts_lower(piece)).count();
    let running = words >= 3 * column.len() || inside * 3 >= column.len();
    column.len() >= 3 && running && full * 2 >= column.len()
}

fn starts_lower(piece: &TextPiece<'_>) -> bool {
    piece.words.first().is_some_and(|word| word.text.starts_with(char::is_lowercase))
}

/// At least two entries, and most lines belong to one.
fn is_bulleted(column: &[TextPiece<'_>]) -> bool {
    let marked = column.iter().filter(|piece| starts_with_bullet(&piece.words)).count();
    marked >= 2 && marked * 3 >= column.len()
}

/// Whether the lines of a column fill it from top to bottom, as those of no column of a table do
/// whose cells are set to the middle of their rows.
fn is_dense(column: &[TextPiece<'_>]) -> bool {
    let column = join_lines(column);
    let top = column.iter().map(|line| line.area.y).fold(f32::INFINITY, f32::min);
    let bottom = column.iter().map(|line| line.area.bottom()).fold(f32::NEG_INFINITY, f32::max);
    let lines: f32 = column.iter().map(|line| 1.3 * line.em).sum();
    column.len() > 2 && lines > 0.55 * (bottom - top)
}

/// Whether most rows with several pieces have them on one baseline.
fn shares_baselines(rows: &[PieceRow<'_>]) -> bool {
    let (mut even, mut all) = (0, 0);
    for row in rows.iter().filter(|row| row.pieces.len() > 1) {
        let lowest =
            row.pieces.iter().map(|piece| piece.baseline).fold(f32::NEG_INFINITY, f32::max);
        let highest = row.pieces.iter().map(|piece| piece.baseline).fold(f32::INFINITY, f32::min);
        all += 1;
        even += usize::from(lowest - highest < 0.16 * row.em());
    }
    even * 3 > all * 2
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
    let most = usual.max(0.3 * em) * 1.6 + 0.2 * em;
    let strips =
        above.iter().chain(below).fold(None, |left: Option<Vec<WhiteStrip>>, row| match left {
            None => Some(inner_strips(row)),
            Some(left) => Some(cut_strips(&left, row, MIN_STRIP_WIDTH * em)),
        });
    line.pieces.len() == 1
        && line.area.y - last.area.bottom() < most
        && first.area.y - line.area.bottom() < most
        && strips.is_some_and(|strips| !strips.is_empty())
}
