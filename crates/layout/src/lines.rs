//! A line of running text.

use docmill_core::model::BoundingBox;

use super::frame::{PlacedWord, median, part_below};
use super::piece::{PieceRow, TextPiece, join_words};

/// All words of a line within its column.
#[derive(Debug, Clone)]
pub(super) struct FlowLine<'a> {
    pub(super) words: Vec<PlacedWord<'a>>,
    pub(super) area: BoundingBox,
    pub(super) em: f32,
    pub(super) baseline: f32,
}

impl<'a> FlowLine<'a> {
    pub(super) fn from_row(row: PieceRow<'a>) -> Option<Self> {
        row.into_piece().map(Self::from_piece)
    }

    fn from_piece(piece: TextPiece<'a>) -> Self {
        let TextPiece { words, area, em, baseline } = piece;
        Self { words, area, em, baseline }
    }

    pub(super) fn text(&self) -> String {
        join_words(&self.words)
    }

    fn ends_with(&self, signs: &[char]) -> bool {
        self.words
            .last()
            .is_some_and(|word| word.text.trim_end_matches(['”', '"', '»', ')']).ends_with(signs))
    }

    pub(super) fn ends_sentence(&self) -> bool {
        self.ends_with(&['.', '!', '?', ':', '…'])
    }

    pub(super) fn ends_clause(&self) -> bool {
        self.ends_with(&['.', '!', '?', ':', '…', ',', ';'])
    }

    pub(super) fn starts_upper(&self) -> bool {
        let first =
            self.words.first().and_then(|word| word.text.chars().find(|c| c.is_alphanumeric()));
        first.is_some_and(|c| c.is_uppercase() || c.is_numeric())
    }
}

/// The usual measures of the lines of a region.
pub(super) struct LineMeasure {
    /// From baseline to baseline within a paragraph.
    pub(super) pitch: f32,
    pub(super) left: f32,
    pub(super) right: f32,
}

impl LineMeasure {
    pub(super) fn of_lines(lines: &[FlowLine<'_>]) -> Self {
        let em = median(lines.iter().map(|line| line.em));
        let pitches = lines.windows(2).filter_map(|pair| match pair {
            [one, next] => {
                let pitch = next.baseline - one.baseline;
                let even = one.em.max(next.em) < 1.2 * one.em.min(next.em);
                (even && pitch > 0.8 * em && pitch < 2.2 * em).then_some(pitch)
            }
            _ => None,
        });
        let pitch = part_below(pitches, 3);
        let pitch = if pitch > 0.0 { pitch } else { 1.3 * em };
        let left = part_below(lines.iter().map(|line| line.area.x), 10);
        let right = lines.iter().map(|line| line.area.right()).fold(f32::NEG_INFINITY, f32::max);
        Self { pitch, left, right }
    }
}
