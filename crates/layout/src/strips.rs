//! Strips of white between pieces side by side, and what is left of them further down.

use super::piece::PieceRow;

/// From left to right, in the unit of the page.
pub(super) type WhiteStrip = (f32, f32);

/// The narrowest strip between columns, in letter sizes.
pub(super) const MIN_STRIP_WIDTH: f32 = 0.6;

/// The white between the pieces of a row.
pub(super) fn inner_strips(row: &PieceRow<'_>) -> Vec<WhiteStrip> {
    let em = row.em();
    let strips = row.pieces.windows(2).filter_map(|pair| match pair {
        [one, next] => Some((one.area.right(), next.area.x)),
        _ => None,
    });
    strips.filter(|(from, to)| to - from > MIN_STRIP_WIDTH * em).collect()
}

/// The parts of strips that the pieces of a row leave free.
pub(super) fn cut_strips(
    strips: &[WhiteStrip],
    row: &PieceRow<'_>,
    narrowest: f32,
) -> Vec<WhiteStrip> {
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
        // Of a strip with a piece in its middle only one side goes on.
        left.extend(kept.into_iter().max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))));
    }
    left
}
