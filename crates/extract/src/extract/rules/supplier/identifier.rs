//! The supplier's VAT identifier, told from the customer's.

use super::Search;
use crate::extract::rules::Found;
use crate::extract::rules::layout::Cell;
use crate::extract::rules::spots::Spot;
use crate::notation::vat_id;

impl Search<'_> {
    /// The identifier that is least likely the customer's.
    pub(super) fn vat_id(&self) -> Option<Found<String>> {
        let mut best: Option<(f32, Found<String>)> = None;
        for (index, cell) in self.layout.cells.iter().enumerate() {
            for start in 0..cell.words.len() {
                let before = cell.folded.iter().rev().filter(|(_, word)| *word < start);
                if before.take(2).any(|(text, _)| text == "iban") {
                    continue;
                }
                let words = cell.slice(start..cell.words.len());
                let glued = words.first().and_then(|w| w.rsplit_once(':')).map(|(_, id)| vec![id]);
                let found = vat_id::find_at(&words).or_else(|| vat_id::find_at(&glued?));
                let Some((id, _)) = found else { continue };
                let mut score = self.vat_score(cell, index, start);
                score -= index as f32 / (self.layout.cells.len() * 4).max(1) as f32;
                if score > 0.0 && best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, Found::at(id, score >= 3.0, cell, index)));
                }
                break;
            }
        }
        best.map(|(_, found)| found).or_else(|| self.national_id())
    }

    /// Without a country's prefix only a label tells such an identifier.
    pub(super) fn national_id(&self) -> Option<Found<String>> {
        self.spots.of("supplier_vat_id").find_map(|spot| {
            let cell = self.spots.cell(spot).filter(|cell| !self.is_customers(cell))?;
            let beside = self.spots.beside(spot);
            let first = beside.iter().find(|beside| !beside.below)?;
            let words = first.words();
            let id = words.iter().find(|word| word.contains(char::is_alphanumeric))?;
            let id = id.trim_matches([':', ',', ';', '.', '(', ')']);
            let compact: Vec<char> = id.chars().filter(|c| c.is_alphanumeric()).collect();
            let digits = compact.iter().filter(|c| c.is_ascii_digit()).count();
            let fits = (8..=15).contains(&compact.len()) && digits + 3 >= compact.len();
            (fits && !id.contains([',', '€', '%'])).then(|| Found::new(id.to_owned(), false, cell))
        })
    }

    pub(super) fn vat_score(&self, cell: &Cell, index: usize, start: usize) -> f32 {
        let before = |spot: &Spot| {
            let same = spot.cell == index && spot.words.start <= start;
            let left = spot.cell + 1 == index
                && self.spots.cell(spot).is_some_and(|label| label.row == cell.row);
            same || left
        };
        let mut score = 2.0;
        if self.spots.of("supplier_vat_id").any(before) {
            score += 2.0;
        }
        if self.spots.of("customer_vat_id").any(before) {
            score -= 9.0;
        }
        if self.is_customers(cell) {
            score -= 4.0;
        }
        score
    }
}
