//! Words on one baseline, before columns are separated.

use crate::pdf::words::WordPiece;

/// Words on one baseline.
#[derive(Debug, Clone)]
pub(super) struct WordRow {
    pub(super) baseline: f64,
    pub(super) size: f64,
    pub(super) pieces: Vec<WordPiece>,
}

impl WordRow {
    pub(super) fn from_piece(piece: WordPiece) -> Self {
        Self { baseline: piece.baseline, size: piece.size, pieces: vec![piece] }
    }

    pub(super) fn extent(&self) -> (f64, f64) {
        let start = self.pieces.iter().map(|piece| piece.start).fold(f64::INFINITY, f64::min);
        let end = self.pieces.iter().map(|piece| piece.end).fold(f64::NEG_INFINITY, f64::max);
        (start, end)
    }
}
