//! How far a page that was read by OCR can be trusted, 0 to 1.
//!
//! The mean confidence of the words says nothing about text that was not found at all: a page half
//! in shadow loses half its text at a mean of 0.95. So the page is cut into cells of about the
//! height of a line, the cells that look like text are counted, and so are those among them that
//! lie under words. The score is the product of the words' confidence, the share of text that was
//! found, and a discount for letters too small to be read reliably.
//!
//! The constants are starting values, set on synthetic pages and not calibrated on real ones.

use super::Raster;
use crate::model::Line;

/// A pixel is ink if it is this much darker than its surroundings.
const INK_CONTRAST: u32 = 40;
/// A cell is text if this share of it is ink; more is a picture, less is dirt.
const TEXT_INK: std::ops::RangeInclusive<f32> = 0.03..=0.60;
/// Share of text cells found that counts as everything: logos, stamps and signatures look like
/// text as well.
const FULL_COVERAGE: f32 = 0.95;
/// Height of a word's box, in pixels, that Tesseract reads well, and that it hardly reads.
const READABLE_HEIGHT: f32 = 14.0;
const UNREADABLE_HEIGHT: f32 = 5.0;

/// What the score is made of, each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Legibility {
    /// Mean confidence of the words, longer words counting more.
    pub confidence: f32,
    /// Share of what looks like text that lies under words.
    pub coverage: f32,
    /// 1 for letters of good size, less for small ones.
    pub size: f32,
}

impl Legibility {
    /// The page's quality.
    pub fn quality(self) -> f32 {
        let found = (self.coverage / FULL_COVERAGE).min(1.0);
        (self.confidence * found * self.size).clamp(0.0, 1.0)
    }
}

/// Judges what was read from `page`. A page without text and without anything that looks like text
/// is perfectly legible.
pub fn legibility(page: &Raster, lines: &[Line]) -> Legibility {
    let cell = (page.dpi / 10).clamp(8, 64) as usize;
    let grid = TextCells::of(page, cell);
    let coverage = grid.coverage(lines);
    let words: Vec<_> = lines.iter().flat_map(|line| &line.words).collect();
    if words.is_empty() {
        let legible = if coverage >= 1.0 { 1.0 } else { 0.0 };
        return Legibility { confidence: legible, coverage, size: 1.0 };
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for word in &words {
        let letters = f32::from(u16::try_from(word.text.chars().count()).unwrap_or(u16::MAX));
        sum += word.confidence * letters;
        weight += letters;
    }
    let mut heights: Vec<f32> = words.iter().map(|word| word.bounding_box.h).collect();
    heights.sort_by(f32::total_cmp);
    let median = heights.get(heights.len() / 2).copied().unwrap_or(0.0);
    let size = (median - UNREADABLE_HEIGHT) / (READABLE_HEIGHT - UNREADABLE_HEIGHT);
    Legibility { confidence: sum / weight.max(1.0), coverage, size: size.clamp(0.2, 1.0) }
}

/// The page in square cells, and which of them look like text.
struct TextCells {
    across: usize,
    cell: usize,
    is_text: Vec<bool>,
}

impl TextCells {
    fn of(page: &Raster, cell: usize) -> Self {
        let (width, height) = (page.width as usize, page.height as usize);
        let (across, down) = (width / cell, height / cell);
        let paper = Paper::of(page, cell);
        let mut is_text = Vec::with_capacity(across * down);
        for row in 0..down {
            for column in 0..across {
                is_text.push(looks_like_text(page, &paper, (column * cell, row * cell), cell));
            }
        }
        Self { across, cell, is_text }
    }

    /// Share of the text cells that a word's box touches; 1 if there are next to none.
    fn coverage(&self, lines: &[Line]) -> f32 {
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
        let text = self.is_text.iter().filter(|is_text| **is_text).count();
        let found = self.is_text.iter().zip(&read).filter(|(is_text, read)| **is_text && **read);
        // A handful of cells is dust or the edge of the paper.
        if text * 2000 < self.is_text.len() || text < 8 {
            return 1.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a share of some thousand cells")]
        let share = found.count() as f32 / text as f32;
        share
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a page")]
    fn cell_of(&self, position: f32) -> usize {
        position.max(0.0) as usize / self.cell
    }
}

/// The shade of the paper around each cell, so that shadows are not taken for ink: the brightest
/// of the means of sixteen blocks in the cell and in its neighbours.
struct Paper {
    across: usize,
    shades: Vec<u8>,
}

impl Paper {
    fn of(page: &Raster, cell: usize) -> Self {
        let (across, down) = (page.width as usize / cell, page.height as usize / cell);
        let mut own = Vec::with_capacity(across * down);
        for row in 0..down {
            for column in 0..across {
                own.push(brightest(page, (column * cell, row * cell), cell));
            }
        }
        let neighbours = |index: usize| {
            let (row, column) = (index / across.max(1), index % across.max(1));
            let rows = row.saturating_sub(1)..=(row + 1).min(down.saturating_sub(1));
            rows.flat_map(move |row| {
                let columns = column.saturating_sub(1)..=(column + 1).min(across.saturating_sub(1));
                columns.map(move |column| row * across + column)
            })
        };
        let shades = (0..own.len())
            .map(|index| {
                neighbours(index).filter_map(|at| own.get(at)).max().copied().unwrap_or(255)
            })
            .collect();
        Self { across, shades }
    }
}

fn brightest(page: &Raster, (left, top): (usize, usize), cell: usize) -> u8 {
    let block = (cell / 4).max(1);
    let mut best = 0;
    for y in (top..top + cell).step_by(block) {
        for x in (left..left + cell).step_by(block) {
            let rows = (y..y + block).filter_map(|y| row(page, y)?.get(x..x + block));
            let (mut sum, mut count) = (0_u32, 0_u32);
            for value in rows.flatten() {
                sum += u32::from(*value);
                count += 1;
            }
            best = best.max(sum.checked_div(count).unwrap_or(0));
        }
    }
    u8::try_from(best).unwrap_or(u8::MAX)
}

fn row(page: &Raster, y: usize) -> Option<&[u8]> {
    let width = page.width as usize;
    page.pixels.get(y * width..(y + 1) * width)
}

/// Some ink, and strokes in both directions: a ruled line has edges in one direction only.
fn looks_like_text(page: &Raster, paper: &Paper, (left, top): (usize, usize), cell: usize) -> bool {
    let index = (top / cell) * paper.across + left / cell;
    let shade = u32::from(paper.shades.get(index).copied().unwrap_or(255));
    let Some(threshold) = shade.checked_sub(INK_CONTRAST) else { return false };
    let mut above = vec![false; cell];
    let (mut ink, mut across, mut down) = (0_usize, 0_usize, 0_usize);
    for y in top..top + cell {
        let Some(values) = row(page, y).and_then(|row| row.get(left..left + cell)) else { break };
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
    TEXT_INK.contains(&share) && across * 3 >= cell && down * 3 >= cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BoundingBox, Word};

    /// A page at 200 dpi with "letters": little crosses of 12 x 12 pixels.
    fn page(letters: &[(usize, usize)], rule_at: Option<usize>) -> Raster {
        let (width, height) = (400, 400);
        let mut pixels = vec![230_u8; width * height];
        for (left, top) in letters {
            for step in 0..12 {
                for thick in 0..3 {
                    pixels[(top + step) * width + left + 5 + thick] = 20;
                    pixels[(top + 5 + thick) * width + left + step] = 20;
                }
            }
        }
        if let Some(y) = rule_at {
            pixels[y * width..(y + 4) * width].fill(20);
        }
        Raster { width: 400, height: 400, dpi: 200, pixels }
    }

    fn text_line(y: usize) -> Vec<(usize, usize)> {
        (1..20).map(|letter| (letter * 18, y)).collect()
    }

    fn word(y: f32, confidence: f32) -> Line {
        let bounding_box = BoundingBox { x: 10.0, y, w: 380.0, h: 20.0 };
        Line { words: vec![Word { text: "xxxxxxxx".to_owned(), bounding_box, confidence }] }
    }

    #[test]
    fn text_that_was_not_found_lowers_the_score_however_sure_the_words_are() {
        let both = [text_line(80), text_line(200)].concat();
        let all = legibility(&page(&both, None), &[word(78.0, 0.95), word(198.0, 0.95)]);
        let half = legibility(&page(&both, None), &[word(78.0, 0.95)]);
        assert!(all.quality() > 0.9, "{all:?}");
        assert!((0.4..0.7).contains(&half.quality()), "{half:?}");
    }

    #[test]
    fn ruled_lines_are_not_missing_text() {
        let ruled = legibility(&page(&text_line(80), Some(300)), &[word(78.0, 0.95)]);
        assert!(ruled.quality() > 0.9, "{ruled:?}");
    }

    #[test]
    fn a_blank_page_is_perfectly_legible_and_an_unread_one_not_at_all() {
        assert!(legibility(&page(&[], None), &[]).quality() >= 1.0);
        assert!(legibility(&page(&text_line(80), None), &[]).quality() <= 0.0);
    }
}
