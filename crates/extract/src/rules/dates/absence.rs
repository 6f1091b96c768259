//! Whether a day that was not found is absent, or printed without a known label.

use time::Date;

use super::{DateCandidate, DateRole, DateSearch, DateSign, is_open, sign};
use crate::rules::characters::count_letters;
use crate::rules::parameters::parameters;

impl DateSearch<'_> {
    /// How certain it is that no day has this role: no day is likely, and no unnamed day follows
    /// the issue.
    pub(in super::super) fn absence_certainty(
        &self,
        role: DateRole<'_>,
        issued: Option<Date>,
    ) -> f32 {
        let candidates = self.candidates_for(role, issued);
        let weights = sign::weights_of(role.issued);
        let signs: Vec<&[DateSign]> = candidates.iter().map(|one| one.signs.as_slice()).collect();
        let likely: f32 = weights.share_certainty(&signs).iter().sum();
        let open = candidates.iter().any(|one: &DateCandidate| {
            one.signs.contains(&DateSign::AfterIssue) && self.may_have_any_role(one)
        });
        let most = if open { parameters().certainty.open_day } else { 1.0 };
        (1.0 - likely).min(most)
    }

    /// Whether a day could have the role although no label names it: it is unnamed, part of a
    /// sentence (`to be paid no later than 3 May`, with amounts as well), or its label is followed
    /// by an unknown word: `Payment: transfer, until 3 May`.
    fn may_have_any_role(&self, one: &DateCandidate) -> bool {
        use DateSign::{AmountRow, OtherLabel, Prose};
        let excused = [
            (AmountRow, one.signs.contains(&Prose)),
            (OtherLabel, self.is_behind_open_word(one) || self.is_behind_half_label(one)),
        ];
        let mut rest = one.clone();
        for (sign, _) in excused.iter().filter(|(_, holds)| *holds) {
            rest.signs.retain(|own| own != sign);
        }
        is_open(&rest)
    }

    /// Whether a word outside any label is right before a day.
    fn is_behind_open_word(&self, one: &DateCandidate) -> bool {
        let Some(cell) = self.matches.layout.cells.get(one.place.0) else { return false };
        let text = cell.joined_text();
        let before = text.get(..one.place.1).unwrap_or_default();
        let words: Vec<&str> = before.split(' ').filter(|word| !word.is_empty()).collect();
        let (count, last) = (words.len(), words.last().copied().unwrap_or_default());
        let is_word = count_letters(last) >= 3;
        is_word
            && count > 1
            && !self.matches.in_cell(one.place.0).any(|label_match| label_match.words.end == count)
    }

    /// Whether the label beside a day, in its cell or left of it, begins behind an unknown word.
    fn is_behind_half_label(&self, one: &DateCandidate) -> bool {
        let layout = self.matches.layout;
        let Some(cell) = layout.cells.get(one.place.0) else { return false };
        let text = cell.joined_text();
        let before = text.get(..one.place.1).unwrap_or_default();
        let count = before.split(' ').filter(|word| !word.is_empty()).count();
        let left = one.place.0.checked_sub(1).and_then(|at| Some((at, layout.cells.get(at)?)));
        let left = left.filter(|(_, left)| count == 0 && left.row == cell.row);
        let (index, end) = left.map_or((one.place.0, count), |(at, left)| (at, left.words.len()));
        let mut labels =
            self.matches.in_cell(index).filter(|label_match| label_match.words.end == end);
        labels.any(|label_match| label_match.words.start > 0)
            && !self.matches.in_cell(index).any(|label_match| label_match.words.start == 0)
    }
}
