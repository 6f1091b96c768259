//! Words that stand close together on a line, and the rows that such pieces make across a page.

use docmill_core::model::BoundingBox;

use super::frame::{DirectionFrame, PlacedWord, median};
use super::markers::is_bullet;

/// A gap of so many letter sizes may be one between columns.
const WIDE_GAP: f32 = 0.9;
/// A row of more pieces is no row that anyone reads; what comes then begins a new one.
const MAX_PIECES: usize = 48;
/// A piece is looked for a row among so many of the last ones.
const ROWS_BACK: usize = 8;

/// Words that stand close together on one baseline.
#[derive(Debug, Clone)]
pub(super) struct TextPiece<'a> {
    /// Left to right; never empty.
    pub(super) words: Vec<PlacedWord<'a>>,
    pub(super) area: BoundingBox,
    /// Size of its letters.
    pub(super) em: f32,
    pub(super) baseline: f32,
}

/// Pieces side by side.
#[derive(Debug, Clone)]
pub(super) struct PieceRow<'a> {
    /// Left to right, not on top of each other; never empty.
    pub(super) pieces: Vec<TextPiece<'a>>,
    pub(super) area: BoundingBox,
}

impl<'a> TextPiece<'a> {
    /// `None` of no words.
    pub(super) fn from_words(words: Vec<PlacedWord<'a>>) -> Option<Self> {
        let area = words.iter().map(|word| word.area).reduce(BoundingBox::union)?;
        let em = median(words.iter().map(|word| word.em));
        let baseline = median(words.iter().map(|word| word.baseline));
        Some(Self { words, area, em, baseline })
    }

    pub(super) fn text(&self) -> String {
        join_words(&self.words)
    }

    /// Half way down.
    pub(super) fn middle(&self) -> f32 {
        self.area.y + self.area.h / 2.0
    }
}

impl<'a> PieceRow<'a> {
    fn from_piece(piece: TextPiece<'a>) -> Self {
        Self { area: piece.area, pieces: vec![piece] }
    }

    pub(super) fn em(&self) -> f32 {
        median(self.pieces.iter().map(|piece| piece.em))
    }

    /// All words as one piece.
    pub(super) fn into_piece(self) -> Option<TextPiece<'a>> {
        TextPiece::from_words(self.pieces.into_iter().flat_map(|piece| piece.words).collect())
    }

    /// All words as the only piece.
    pub(super) fn into_joined(self) -> Self {
        let area = self.area;
        Self { pieces: self.into_piece().into_iter().collect(), area }
    }

    fn takes(&self, piece: &TextPiece<'a>) -> bool {
        let shares_line = self.pieces.first().is_some_and(|first| {
            let shared =
                first.area.bottom().min(piece.area.bottom()) - first.area.y.max(piece.area.y);
            shared > 0.4 * first.area.h.min(piece.area.h)
        });
        let slack = 0.3 * piece.em;
        shares_line
            && self.pieces.len() < MAX_PIECES
            && self.pieces.iter().all(|other| {
                other.area.right() - slack <= piece.area.x
                    || piece.area.right() - slack <= other.area.x
            })
    }
}

/// The words, separated by single spaces.
pub(super) fn join_words(words: &[PlacedWord<'_>]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text).collect();
    words.join(" ")
}

/// Cuts the lines of a direction where a gap is wide.
pub(super) fn cut_lines<'a>(frame: &DirectionFrame<'a>) -> Vec<TextPiece<'a>> {
    let mut pieces = Vec::new();
    for line in &frame.lines {
        let em = median(line.iter().map(|word| word.em));
        let mut words: Vec<PlacedWord<'a>> = Vec::new();
        for word in line {
            let gap = words.last().map_or(0.0, |last| word.area.x - last.area.right());
            // An entry is further from its mark than words from each other.
            let mark = words.last().is_some_and(|last| is_bullet(last.text));
            let most = if mark { 2.5 * em } else { WIDE_GAP * em };
            if !(-2.0 * em..most).contains(&gap) {
                pieces.extend(TextPiece::from_words(std::mem::take(&mut words)));
            }
            words.push(*word);
        }
        pieces.extend(TextPiece::from_words(words));
    }
    pieces
}

/// Pieces side by side as rows, top to bottom. Lines of two columns that do not share baselines
/// make rows as well.
pub(super) fn group_rows(mut pieces: Vec<TextPiece<'_>>) -> Vec<PieceRow<'_>> {
    pieces.sort_by(|one, other| one.middle().total_cmp(&other.middle()));
    let mut rows: Vec<PieceRow<'_>> = Vec::new();
    for piece in pieces {
        match rows.iter_mut().rev().take(ROWS_BACK).find(|row| row.takes(&piece)) {
            Some(row) => {
                row.area = row.area.union(piece.area);
                row.pieces.push(piece);
            }
            None => rows.push(PieceRow::from_piece(piece)),
        }
    }
    for row in &mut rows {
        row.pieces.sort_by(|one, other| one.area.x.total_cmp(&other.area.x));
    }
    rows.sort_by(|one, other| one.area.y.total_cmp(&other.area.y));
    rows
}
