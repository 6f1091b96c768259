//! Text regions of a page image: the image in cells of about the height of a line, each with a
//! share of ink and letter-like strokes. Independent of the text's content.

use crate::page::PageRaster;
use docmill_core::model::{TextLine, TextMap};

/// A pixel is ink if it is this much darker than its surroundings.
const MIN_INK_CONTRAST: u32 = 40;
/// A cell is text if this share of it is ink; more is a picture, less is dirt.
const TEXT_INK_SHARES: std::ops::RangeInclusive<f32> = 0.03..=0.60;

/// The page in square cells, and which of them look like text.
#[derive(Clone)]
pub(crate) struct TextCells {
    across: usize,
    cell: usize,
    is_text: Vec<bool>,
}

/// A part of a page, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RasterPart {
    /// Left edge of the part.
    pub left: usize,
    /// Top edge of the part.
    pub top: usize,
    /// Width of the part.
    pub width: usize,
    /// Height of the part.
    pub height: usize,
}

impl TextCells {
    /// Looks at every cell of `page`, each a tenth of an inch wide: about the height of a line.
    pub(crate) fn from_raster(page: &PageRaster) -> Self {
        let cell = (page.dpi / 10).clamp(8, 64) as usize;
        let (width, height) = (page.width as usize, page.height as usize);
        let (across, down) = (width / cell, height / cell);
        let paper = PaperShades::from_raster(page, cell);
        let mut is_text = Vec::with_capacity(across * down);
        for row in 0..down {
            for column in 0..across {
                is_text.push(looks_like_text(page, &paper, (column * cell, row * cell), cell));
            }
        }
        Self { across, cell, is_text }
    }

    /// Share of the text cells that a word's box touches; 1 if there are next to none.
    pub(crate) fn coverage(&self, lines: &[TextLine]) -> f32 {
        let text = self.is_text.iter().filter(|is_text| **is_text).count();
        // A handful of cells is dust or the edge of the paper.
        if text * 2000 < self.is_text.len() || text < 8 {
            return 1.0;
        }
        let found = text - self.uncovered(lines);
        #[expect(clippy::cast_precision_loss, reason = "a share of some thousand cells")]
        let share = found as f32 / text as f32;
        share
    }

    /// How many text cells no word's box touches.
    pub(crate) fn uncovered(&self, lines: &[TextLine]) -> usize {
        let mut read = vec![false; self.is_text.len()];
        for word in lines.iter().flat_map(|line| &line.words) {
            let place = word.bounding_box;
            let column_end = self.cell_of(place.right()).min(self.across.saturating_sub(1));
            for row in self.cell_of(place.y)..=self.cell_of(place.bottom()) {
                for column in self.cell_of(place.x)..=column_end {
                    if let Some(seen) = read.get_mut(row * self.across + column) {
                        *seen = true;
                    }
                }
            }
        }
        let left = self.is_text.iter().zip(&read).filter(|(is_text, read)| **is_text && !**read);
        left.count()
    }

    /// The grid as plain data that can be stored and sent.
    pub(crate) fn to_map(&self) -> TextMap {
        let text = self.is_text.iter().enumerate().filter(|(_, is_text)| **is_text);
        let text = text.map(|(cell, _)| cell).collect();
        TextMap { across: self.across, cells: self.is_text.len(), cell: self.cell, text }
    }

    /// The inverse of [`TextCells::to_map`].
    pub(crate) fn from_map(map: &TextMap) -> Self {
        let mut is_text = vec![false; map.cells];
        for cell in &map.text {
            if let Some(is_text) = is_text.get_mut(*cell) {
                *is_text = true;
            }
        }
        Self { across: map.across, cell: map.cell.max(1), is_text }
    }

    /// The part of at most `columns` by `rows` cells with the most text; `None` on a page without.
    pub(crate) fn densest_part(&self, columns: usize, rows: usize) -> Option<RasterPart> {
        let down = self.is_text.len().checked_div(self.across)?;
        let (columns, rows) = (columns.min(self.across), rows.min(down));
        let mut best = (0, 0, 0);
        for top in (0..=down - rows).step_by((rows / 2).max(1)) {
            for left in (0..=self.across - columns).step_by((columns / 4).max(1)) {
                let cells = (top..top + rows).filter_map(|row| {
                    let start = row * self.across + left;
                    self.is_text.get(start..start + columns)
                });
                let text = cells.flatten().filter(|is_text| **is_text).count();
                if text > best.0 {
                    best = (text, left, top);
                }
            }
        }
        let (text, left, top) = best;
        let cell = self.cell;
        let part = RasterPart {
            left: left * cell,
            top: top * cell,
            width: columns * cell,
            height: rows * cell,
        };
        (text > 0).then_some(part)
    }

    /// The same without the text in a part.
    pub(crate) fn without(&self, part: RasterPart) -> Self {
        let mut left = self.clone();
        let RasterPart { left: x, top, width, height } = part;
        for row in top / self.cell..(top + height) / self.cell {
            let start = row * self.across + x / self.cell;
            if let Some(cells) = left.is_text.get_mut(start..start + width / self.cell) {
                cells.fill(false);
            }
        }
        left
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a page")]
    fn cell_of(&self, position: f32) -> usize {
        position.max(0.0) as usize / self.cell
    }
}

/// The shade of the paper around each cell, so that shadows are not taken for ink: the brightest
/// of the means of sixteen blocks in the cell and in its neighbours.
struct PaperShades {
    across: usize,
    shades: Vec<u8>,
}

impl PaperShades {
    fn from_raster(page: &PageRaster, cell: usize) -> Self {
        let (across, down) = (page.width as usize / cell, page.height as usize / cell);
        let mut own = Vec::with_capacity(across * down);
        for row in 0..down {
            for column in 0..across {
                own.push(brightest_block(page, (column * cell, row * cell), cell));
            }
        }
        let mut shades = Vec::with_capacity(own.len());
        for index in 0..own.len() {
            let (row, column) = (index / across.max(1), index % across.max(1));
            let columns = column.saturating_sub(1)..(column + 2).min(across);
            let rows = row.saturating_sub(1)..(row + 2).min(down);
            let lightest = rows
                .filter_map(|row| own.get(row * across + columns.start..row * across + columns.end))
                .filter_map(|cells| cells.iter().max())
                .max();
            shades.push(lightest.copied().unwrap_or(255));
        }
        Self { across, shades }
    }
}

fn brightest_block(page: &PageRaster, (left, top): (usize, usize), cell: usize) -> u8 {
    let block = (cell / 4).max(1);
    let mut best = 0;
    for y in (top..top + cell).step_by(block) {
        for x in (left..left + cell).step_by(block) {
            let rows = (y..y + block).filter_map(|y| row_pixels(page, y)?.get(x..x + block));
            // Row by row: a sum over a flattened iterator is several times as dear.
            let (mut sum, mut count) = (0, 0);
            for row in rows {
                sum += row.iter().map(|value| usize::from(*value)).sum::<usize>();
                count += row.len();
            }
            best = best.max(sum.checked_div(count).unwrap_or(0));
        }
    }
    u8::try_from(best).unwrap_or(u8::MAX)
}

fn row_pixels(page: &PageRaster, y: usize) -> Option<&[u8]> {
    let width = page.width as usize;
    page.pixels.get(y * width..(y + 1) * width)
}

/// Some ink, and strokes in both directions: a ruled line has edges in one direction only.
fn looks_like_text(
    page: &PageRaster,
    paper: &PaperShades,
    (left, top): (usize, usize),
    cell: usize,
) -> bool {
    let index = (top / cell) * paper.across + left / cell;
    let shade = u32::from(paper.shades.get(index).copied().unwrap_or(255));
    let Some(threshold) = shade.checked_sub(MIN_INK_CONTRAST) else { return false };
    let mut above = vec![false; cell];
    let (mut ink, mut across, mut down) = (0_usize, 0_usize, 0_usize);
    for y in top..top + cell {
        let Some(values) = row_pixels(page, y).and_then(|row| row.get(left..left + cell)) else {
            break;
        };
        let mut before = false;
        for (value, above) in values.iter().zip(&mut above) {
            let dark = u32::from(*value) < threshold;
            ink += usize::from(dark);
            across += usize::from(dark && !before);
            down += usize::from(dark && !*above);
            (before, *above) = (dark, dark);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 64 x 64 pixels")]
    let share = ink as f32 / (cell * cell) as f32;
    // Strokes begun per row and per column, on average over the cell.
    TEXT_INK_SHARES.contains(&share) && across * 3 >= cell && down * 3 >= cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_the_most_text_is_where_the_lines_are() {
        let (width, height) = (800_usize, 800_usize);
        let mut pixels = vec![255_u8; width * height];
        for y in 600..660 {
            for x in 400..700 {
                // A pattern of strokes in both directions.
                if (x / 4) % 3 == 0 && (y / 4) % 3 != 0 {
                    pixels[y * width + x] = 0;
                }
            }
        }
        let page = PageRaster { width: 800, height: 800, dpi: 100, pixels };
        let part = TextCells::from_raster(&page).densest_part(30, 8).unwrap();
        assert!((300..=500).contains(&part.left) && (550..=640).contains(&part.top), "{part:?}");
        assert_eq!((part.width, part.height), (300, 80));
        let blank = PageRaster { pixels: vec![255; width * height], ..page };
        assert_eq!(TextCells::from_raster(&blank).densest_part(30, 8), None);
    }
}
