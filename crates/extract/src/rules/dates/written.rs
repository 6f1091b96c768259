//! Days where letters and bills are signed, `Done at Leeds, 3 May 2024` under everything else, and
//! right under title and number.

use super::calendar::ends_in_town;
use super::clock::is_time;
use super::{DateCandidate, DateSearch, DateSign};
use crate::rules::characters::has_digit;
use crate::rules::label_matches::{LabelMatch, LabelMatches};
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::{date, fold_text};

/// Heights of a line between a title and the day under it.
const UNDER_TITLE: f32 = 1.2;

/// Words of a line that is a sentence.
const SENTENCE: usize = 6;

/// Whether the only day of a cell ends a line of place and day under all amounts of its page: `Fait
/// à Lorient, le `. A time may follow.
pub(super) fn is_written_at(
    matches: &LabelMatches<'_>,
    cell: &TextCell,
    before: &str,
    after: &str,
) -> bool {
    let layout = matches.layout;
    if !ends_in_town(before) {
        return false;
    }
    // A footer may name a company's capital.
    let last = layout.last_rows_with(|cell: &TextCell| {
        cell.words.len() < SENTENCE && layout.is_on_amount_row(cell)
    });
    let last = last.get(cell.page).copied().flatten();
    last.is_some_and(|row| cell.row > row) && (after.trim().len() <= 2 || is_time(after))
}

impl DateSearch<'_> {
    /// Where the place of writing dates a page, the column of days in the table of lines is no
    /// label of it.
    pub(super) fn leave_out_columns(found: &mut [DateCandidate]) {
        if !found.iter().any(|one| one.signs.contains(&DateSign::Written)) {
            return;
        }
        let label = [DateSign::WeakLabel, DateSign::LabelAbove];
        for one in found.iter_mut().filter(|one| one.signs.contains(&DateSign::AmountRow)) {
            one.signs.retain(|sign| !label.contains(sign));
        }
    }

    /// Where nothing names another day as that of issue, the one beside the place of writing is it.
    pub(super) fn mark_written(&self, merged: &mut [DateCandidate], issued: bool) {
        use DateSign::{
            BehindNumber, NumberBefore, OwnLabel, SoleLabel, TillTime, Titled, Town, WeakLabel,
            Written,
        };
        let named =
            [BehindNumber, NumberBefore, OwnLabel, SoleLabel, TillTime, Titled, Town, WeakLabel];
        let days: Vec<_> =
            merged.iter().filter(|one| one.signs.contains(&Written)).map(|one| one.date).collect();
        // `le 07/04/2024` before an amount is a line's.
        let is_named = |one: &DateCandidate| {
            !one.signs.contains(&DateSign::AmountRow)
                && one.signs.iter().any(|it| named.contains(it))
        };
        let rival = merged.iter().any(|one| !days.contains(&one.date) && is_named(one));
        if issued && (rival || days.len() != 1) {
            merged.iter_mut().for_each(|one| one.signs.retain(|sign| *sign != Written));
        }
        if !issued || !merged.iter().any(|one| one.signs.contains(&Written)) {
            return;
        }
        // It is the place that names it, and the works that are charged came before.
        let own = [DateSign::Dated, DateSign::Latest, DateSign::OtherLabel];
        let others = [DateSign::First, DateSign::Repeated];
        for one in merged.iter_mut() {
            let written = one.signs.contains(&Written);
            let dropped = if written { own.as_slice() } else { others.as_slice() };
            one.signs.retain(|sign| !dropped.contains(sign));
        }
    }

    /// `Рахунок № 44` over `від 11 лютого 2026 р.`: a day behind a word such as "of", right under
    /// title and number.
    pub(super) fn mark_under_title(&self, label_match: &LabelMatch, found: &mut [DateCandidate]) {
        let layout = self.matches.layout;
        let Some(title) =
            self.matches.cell_of(label_match).filter(|_| label_match.words.start == 0)
        else {
            return;
        };
        let numbered = title
            .words
            .get(label_match.words.end..)
            .is_some_and(|rest| rest.iter().any(|word| has_digit(word)));
        let below = layout.cell_below(title, UNDER_TITLE).filter(|_| numbered);
        let Some(below) = below else { return };
        let text = below.joined_text();
        let days = date::find_dates(&text);
        let [day] = days.as_slice() else { return };
        let before = fold_text(text.get(..day.range.start).unwrap_or_default());
        let linked = vocabulary().after_value.has(&before) || vocabulary().of_day.has(&before);
        let own = |one: &&mut DateCandidate| one.place == (below.index, day.range.start);
        if linked && let Some(one) = found.iter_mut().find(own) {
            one.signs.retain(|sign| *sign != DateSign::Dated);
            one.signs.extend([DateSign::BehindNumber, DateSign::Titled]);
        }
    }
}
