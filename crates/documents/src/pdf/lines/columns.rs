//! Reading order of the rows of a page: rows in columns side by side, and rows of a table across
//! them.

use super::row::WordRow;

/// Columns within columns within columns: deeper is no layout that anyone reads.
const MAX_DEPTH: u32 = 6;

/// Reading order by recursive cuts (XY-cut): into columns where there are columns, else into
/// bands between which there is white space, else row by row.
pub(super) fn order_rows(rows: Vec<WordRow>, depth: u32, ordered: &mut Vec<WordRow>) {
    if depth >= MAX_DEPTH || rows.len() < 2 {
        ordered.extend(rows);
        return;
    }
    let parts = split_columns(&rows).unwrap_or_else(|| split_bands(rows));
    if parts.len() == 1 {
        ordered.extend(parts.into_iter().flatten());
        return;
    }
    for part in parts {
        order_rows(part, depth + 1, ordered);
    }
}

fn split_bands(rows: Vec<WordRow>) -> Vec<Vec<WordRow>> {
    let mut bands: Vec<Vec<WordRow>> = Vec::new();
    for row in rows {
        let last = bands.last().and_then(|band| band.last());
        let apart = last.is_none_or(|above| {
            row.baseline - 0.8 * row.size - above.baseline > 1.2 * row.size.min(above.size)
        });
        match bands.last_mut() {
            Some(band) if !apart => band.push(row),
            _ => bands.push(vec![row]),
        }
    }
    bands
}

/// Splits `rows` at the widest gutter, if both sides of it are columns: into these two, or, where a
/// table crosses the gutter, into the rows above it, the table, and the rows below.
fn split_columns(rows: &[WordRow]) -> Option<Vec<Vec<WordRow>>> {
    let cut = find_gutter(rows)?;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for row in rows {
        let (before, behind): (Vec<_>, Vec<_>) =
            row.pieces.iter().cloned().partition(|piece| piece.start < cut);
        for (side, pieces) in [(&mut left, before), (&mut right, behind)] {
            if !pieces.is_empty() {
                side.push(WordRow { pieces, ..row.clone() });
            }
        }
    }
    if is_prose(&left) && is_prose(&right) {
        return Some(vec![left, right]);
    }
    let fewer = left.len().min(right.len());
    if fewer < 2 || are_aligned(rows, cut) {
        return None;
    }
    Some(cut_around_tables(rows, cut).unwrap_or_else(|| vec![left, right]))
}

/// Whether a row has words on both sides of a gutter.
fn reaches_across(row: &WordRow, cut: f64) -> bool {
    row.pieces.iter().any(|piece| piece.start < cut)
        && !row.pieces.iter().all(|piece| piece.start < cut)
}

/// Whether half of the lines of the shorter side share their row with one of the other side.
fn are_aligned(rows: &[WordRow], cut: f64) -> bool {
    let (mut left, mut right, mut shared) = (0_usize, 0_usize, 0_usize);
    for row in rows {
        let across = reaches_across(row, cut);
        let is_left = row.pieces.first().is_some_and(|piece| piece.start < cut);
        shared += usize::from(across);
        left += usize::from(across || is_left);
        right += usize::from(across || !is_left);
    }
    shared * 2 >= left.min(right)
}

/// Lines between two rows of a table across a gutter.
const TABLE_STEP: f64 = 5.0;

fn are_near(rows: &[WordRow], one: usize, next: usize) -> bool {
    match (rows.get(one), rows.get(next)) {
        (Some(one), Some(next)) => next.baseline - one.baseline <= TABLE_STEP * next.size,
        _ => false,
    }
}

/// Cuts `rows` above and below each table that reaches across the gutter: two rows or more that do,
/// with little between them. `None`: there is no table.
fn cut_around_tables(rows: &[WordRow], cut: f64) -> Option<Vec<Vec<WordRow>>> {
    let across: Vec<usize> = (0..rows.len())
        .filter(|at| rows.get(*at).is_some_and(|row| reaches_across(row, cut)))
        .collect();
    let (mut parts, mut done) = (Vec::new(), 0);
    for table in across.chunk_by(|one, next| are_near(rows, *one, *next)) {
        let (&[first, ..], &[.., last]) = (table, table) else { continue };
        let Some(inside) = rows.get(first..=last) else { continue };
        if first < last && are_aligned(inside, cut) {
            parts.push(rows.get(done..first).unwrap_or_default().to_vec());
            parts.push(inside.to_vec());
            done = last + 1;
        }
    }
    parts.push(rows.get(done..).unwrap_or_default().to_vec());
    parts.retain(|part: &Vec<WordRow>| !part.is_empty());
    (parts.len() > 1).then_some(parts)
}

/// Many full lines of several words each.
fn is_prose(rows: &[WordRow]) -> bool {
    let extents: Vec<(f64, f64)> = rows.iter().map(WordRow::extent).collect();
    let start = extents.iter().map(|extent| extent.0).fold(f64::INFINITY, f64::min);
    let end = extents.iter().map(|extent| extent.1).fold(f64::NEG_INFINITY, f64::max);
    let full = extents.iter().filter(|extent| extent.1 - extent.0 > 0.75 * (end - start)).count();
    let words: usize = rows.iter().map(|row| row.pieces.len()).sum();
    rows.len() >= 6 && words >= 4 * rows.len() && full * 4 >= rows.len() * 3
}

/// The middle of the widest vertical white strip that no word crosses, if wide enough.
fn find_gutter(rows: &[WordRow]) -> Option<f64> {
    let mut spans: Vec<(f64, f64)> =
        rows.iter().flat_map(|row| &row.pieces).map(|piece| (piece.start, piece.end)).collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut sizes: Vec<f64> = rows.iter().map(|row| row.size).collect();
    sizes.sort_by(f64::total_cmp);
    let narrowest = 1.5 * sizes.get(sizes.len() / 2).copied()?;
    let mut widest: Option<(f64, f64)> = None;
    let mut reached = spans.first()?.1;
    for (start, end) in spans {
        let gap = start - reached;
        if gap > narrowest && widest.is_none_or(|(width, _)| gap > width) {
            widest = Some((gap, reached + gap / 2.0));
        }
        reached = reached.max(end);
    }
    widest.map(|(_, middle)| middle)
}
