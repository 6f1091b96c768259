//! Trustworthiness of a page read by OCR, 0 to 1.
//!
//! The mean confidence of the words does not cover text that was not found at all: a page half in
//! shadow loses half its text at a mean of 0.95. So the page is cut into cells of about the height
//! of a line, and cells that look like text are counted, with and without words on them. The score
//! is the product of the words' confidence, the share of text that was found, and a discount for
//! letters too small to be read reliably.
//!
//! The constants are starting values, set on synthetic pages and not calibrated on real ones.

use crate::quality::text_cells::TextCells;
use docmill_core::model::TextLine;

/// Share of text cells found that counts as everything: logos, stamps and signatures look like
/// text as well.
const FULL_COVERAGE: f32 = 0.95;
/// Height of a word's box, in pixels, that Tesseract reads well, and that it hardly reads.
const READABLE_HEIGHT: f32 = 14.0;
const UNREADABLE_HEIGHT: f32 = 5.0;
/// Share of the score that a page whose image is worth nothing loses.
const IMAGE_WEIGHT: f32 = 0.3;

/// Factors of the score, each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LegibilityScore {
    /// Mean confidence of the words, longer words counting more.
    pub confidence: f32,
    /// Share of the text cells that lie under words.
    pub coverage: f32,
    /// 1 for letters of good size, less for small ones.
    pub size: f32,
}

impl LegibilityScore {
    /// The page's quality, combined with the score of its image (0 to 1): confident readings of a
    /// bad image may still be wrong.
    pub(crate) fn quality(self) -> f32 {
        let found = (self.coverage / FULL_COVERAGE).min(1.0);
        (self.confidence * found * self.size).clamp(0.0, 1.0)
    }

    /// The page's quality, the score of its image (0 to 1) considered: what the reader of a bad
    /// image is sure of may still be wrong.
    pub(crate) fn combine_with_image(self, image: f32) -> f32 {
        self.quality() * (1.0 - IMAGE_WEIGHT * (1.0 - image))
    }
}

/// Scores the reading of the page whose cells are `text`. A page without text and without text
/// cells is perfectly legible.
pub(crate) fn score_legibility(text: &TextCells, lines: &[TextLine]) -> LegibilityScore {
    let coverage = text.coverage(lines);
    let words: Vec<_> = lines.iter().flat_map(|line| &line.words).collect();
    if words.is_empty() {
        let legible = if coverage >= 1.0 { 1.0 } else { 0.0 };
        return LegibilityScore { confidence: legible, coverage, size: 1.0 };
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
    LegibilityScore { confidence: sum / weight.max(1.0), coverage, size: size.clamp(0.2, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageRaster;
    use docmill_core::model::{BoundingBox, TextWord};

    /// A page at 200 dpi with "letters": little crosses of 12 x 12 pixels.
    fn page(letters: &[(usize, usize)], rule_at: Option<usize>) -> PageRaster {
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
        PageRaster { width: 400, height: 400, dpi: 200, pixels }
    }

    fn cells(letters: &[(usize, usize)], rule_at: Option<usize>) -> TextCells {
        TextCells::from_raster(&page(letters, rule_at))
    }

    fn text_line(y: usize) -> Vec<(usize, usize)> {
        (1..20).map(|letter| (letter * 18, y)).collect()
    }

    fn word(y: f32, confidence: f32) -> TextLine {
        let bounding_box = BoundingBox { x: 10.0, y, w: 380.0, h: 20.0 };
        TextLine {
            words: vec![TextWord {
                text: "xxxxxxxx".into(),
                bounding_box,
                confidence,
                unwitnessed: false,
            }],
        }
    }

    #[test]
    fn missing_text_lowers_the_score_of_confident_words_too() {
        let both = [text_line(80), text_line(200)].concat();
        let all = score_legibility(&cells(&both, None), &[word(78.0, 0.95), word(198.0, 0.95)]);
        let half = score_legibility(&cells(&both, None), &[word(78.0, 0.95)]);
        assert!(all.quality() > 0.9, "{all:?}");
        assert!((0.4..0.7).contains(&half.quality()), "{half:?}");
    }

    #[test]
    fn ruled_lines_are_not_missing_text() {
        let ruled = score_legibility(&cells(&text_line(80), Some(300)), &[word(78.0, 0.95)]);
        assert!(ruled.quality() > 0.9, "{ruled:?}");
    }

    #[test]
    fn a_blank_page_is_perfectly_legible_and_an_unread_one_not_at_all() {
        assert!(score_legibility(&cells(&[], None), &[]).quality() >= 1.0);
        assert!(score_legibility(&cells(&text_line(80), None), &[]).quality() <= 0.0);
    }
}
