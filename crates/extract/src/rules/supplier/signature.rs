//! Signatures of letters: the name under the closing formula, with an address or a tax number.

use super::postal_code::has_postal_code;
use super::{NameCandidate, NameSign, SupplierSearch, compact_name};
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;

/// Words of a closing formula, with its continuation.
const MAX_WORDS: usize = 6;

/// Rows under the formula that may hold the name.
const ROWS: usize = 2;

/// Heights of a line that are left for the hand that signs.
const MAX_GAP: f32 = 4.5;

/// Lines under the name that may hold its contact details.
const LINES: usize = 4;

impl SupplierSearch<'_> {
    /// Marks the name under a closing formula over its address: recipients do not sign.
    pub(super) fn mark_signatory(&self, candidates: &mut [NameCandidate<'_>]) {
        if !self.matches.style.letter {
            return;
        }
        let signed: Vec<&TextCell> = self
            .layout
            .cells
            .iter()
            .zip(&self.folded)
            .filter(|(cell, text)| is_closing_formula(cell, text))
            .flat_map(|(formula, _)| self.names_under(formula))
            .collect();
        let names: Vec<String> =
            signed.iter().map(|cell| compact_name(&cell.joined_text())).collect();
        for one in candidates.iter_mut() {
            if names.contains(&compact_name(&one.name)) {
                one.signs.push(NameSign::Signatory);
            }
        }
    }

    /// The lines right under a formula, in its column, that are over an address.
    fn names_under<'s>(&'s self, formula: &'s TextCell) -> Vec<&'s TextCell> {
        let rows =
            (formula.row + 1..=formula.row + ROWS).flat_map(|row| self.layout.row_cells(row));
        let column = rows.filter(|cell| {
            let gap = cell.area.y - formula.area.bottom();
            cell.page == formula.page
                && (cell.area.x - formula.area.x).abs() < formula.area.h
                && gap < MAX_GAP * formula.area.h
        });
        column
            .filter(|cell: &&TextCell| {
                let block = self.block_below(cell);
                block.iter().take(LINES).any(|line| has_postal_code(&self.line_text(line)))
            })
            .collect()
    }
}

/// Whether a line is nothing but the formula that ends a letter.
fn is_closing_formula(cell: &TextCell, folded: &str) -> bool {
    cell.words.len() <= MAX_WORDS
        && vocabulary().closing.iter().any(|formula| {
            folded
                .strip_prefix(formula)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
}
