//! Days by role. Every date of the document is a candidate for every role; its context and position
//! are weighed ([`sign`]), and the candidates against each other. Dates stay uncertain in a
//! document that shows no order of day and month.

mod absence;
mod calendar;
mod clock;
mod sign;
mod term;
mod written;
mod yearless;

use time::Date;

pub(super) use self::calendar::DateReader;
use self::clock::{is_clock, is_time};
pub(super) use self::sign::DateSign;
use super::FoundValue;
use super::characters::has_digit;
use super::label_matches::{LabelMatch, LabelMatches, ValueCandidate};
use super::layout::TextCell;
use super::parameters::parameters;
use super::vocabulary::vocabulary;
use super::weighing::{add_sign, share_certainty};
use docmill_formats::notation::{date, fold_text};

/// Dates that are weighed against each other.
const MAX_CANDIDATES: usize = 200;

/// Labels of one field that are looked at.
const MAX_LABELS: usize = 400;

/// Bytes between a label and its date in one cell, and in the next one.
const REACH_INLINE: usize = 14;
const REACH_BESIDE: usize = 24;
/// The document's number may be printed between a title and its date.
const REACH_TITLED: usize = 40;

/// Below this share of legible letters a date is faint.
const FAINT: f32 = 0.6;

/// Which day is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct DateRole<'a> {
    /// The field.
    pub(super) field: &'a str,
    /// It is the day the document was written.
    pub(super) issued: bool,
    /// Every field of the kind that holds a date.
    pub(super) dates: &'a [&'a str],
    /// The field of the document's own number.
    pub(super) number: &'a str,
}

/// A printed day with its signs.
#[derive(Debug, Clone)]
pub(super) struct DateCandidate {
    pub(super) date: Date,
    /// Its order of day and month is beyond doubt.
    certain: bool,
    /// Index of its cell, and the byte at which it begins there.
    place: (usize, usize),
    pub(super) signs: Vec<DateSign>,
}

/// The dates of a document.
pub(super) struct DateSearch<'a> {
    matches: &'a LabelMatches<'a>,
    calendar: &'a DateReader,
    printed: Vec<DateCandidate>,
}

impl<'a> DateSearch<'a> {
    pub(super) fn new(matches: &'a LabelMatches<'a>, calendar: &'a DateReader) -> Self {
        let mut search = Self { matches, calendar, printed: Vec::new() };
        for index in 0..matches.layout.cells.len() {
            search.add_dates_of(index);
            if search.printed.len() >= MAX_CANDIDATES {
                break;
            }
        }
        search
    }

    fn add_dates_of(&mut self, index: usize) {
        let Some(cell) = self.matches.layout.cells.get(index) else { return };
        let mut text = cell.joined_text();
        let mut found = date::find_dates(&text);
        if found.is_empty() && self.matches.style.printed_by_clock {
            // `APRIL   1,   2016`: receipts space the parts of a date.
            let end = text.len();
            for next in self.matches.layout.right_of(index).iter().take(3) {
                text = format!("{text} {}", next.joined_text());
            }
            found = date::find_dates(&text);
            found.retain(|one| one.range.start < end && one.range.end > end);
        }
        let alone = found.len() == 1;
        let head = cell.page == 0 && self.matches.layout.depth_on_page(cell) < 0.5;
        for (at, one) in found.iter().enumerate() {
            let Some((date, certain)) = self.calendar.resolve_date(one) else { continue };
            let before = text.get(..one.range.start).unwrap_or_default();
            let named =
                text.get(one.range.clone()).is_some_and(|day| day.contains(char::is_alphabetic));
            if named && calendar::ends_in_street(before) {
                continue;
            }
            let after = calendar::after_year_mark(text.get(one.range.end..).unwrap_or_default());
            let mut signs = place_signs(self.matches, cell);
            // Programs print no town beside the day of printing.
            if head && calendar::ends_in_town(before) && signs.contains(&DateSign::Margin) {
                signs.retain(|sign| *sign != DateSign::Margin);
                signs.push(DateSign::Upper);
            }
            if alone {
                signs.extend(self.signs_beside(index, before, after));
            }
            let timed = is_time(after) || self.has_time_beside(index);
            add_sign(&mut signs, DateSign::WithTime, timed);
            let written = alone && written::is_written_at(self.matches, cell, before, after);
            signs.extend(self.matches.style.day_signs(timed, written));
            let prose = before.split(' ').count() + after.split(' ').count() > 8;
            add_sign(&mut signs, DateSign::Prose, prose);
            add_sign(&mut signs, DateSign::SeveralInCell, !alone);
            let pay_by = term::is_to_pay_on(self.matches.layout, index, before);
            add_sign(&mut signs, DateSign::PayBy, pay_by);
            // `3 June net, with 2 % discount by 15 May`: the discount belongs to the day behind it.
            let later = |next: &&date::FoundDate| {
                self.calendar.resolve_date(next).is_some_and(|(next, _)| next > date)
            };
            let next = found.get(at + 1).filter(later);
            let between = next.and_then(|next| text.get(one.range.end..next.range.start));
            add_sign(&mut signs, DateSign::Early, between.is_some_and(term::is_paid_early));
            let collected = term::is_collected_on(self.matches.layout, index, before);
            add_sign(&mut signs, DateSign::Collected, collected);
            let place = (index, one.range.start);
            self.printed.push(DateCandidate { date, certain, place, signs });
        }
    }

    /// The signs of the only day of a cell from the text before and behind it.
    fn signs_beside(&self, index: usize, before: &str, after: &str) -> Vec<DateSign> {
        let rest = before.trim().len() + if is_time(after) { 0 } else { after.trim().len() };
        if rest <= 2 {
            return vec![DateSign::Alone];
        }
        let Some(cell) = self.matches.layout.cells.get(index) else { return Vec::new() };
        if before.len() >= 30 || after.len() > 2 {
            return Vec::new();
        }
        let head = cell.page == 0 && self.matches.layout.depth_on_page(cell) < 0.5;
        let labelled = self.matches.in_cell(index).any(|label_match| label_match.strong);
        if head && calendar::ends_in_number(before) {
            return vec![DateSign::BehindNumber];
        }
        let town = head && !labelled && calendar::ends_in_town(before);
        [DateSign::Dated].into_iter().chain(town.then_some(DateSign::Town)).collect()
    }

    /// Whether the next cell of the row is a time of day.
    fn has_time_beside(&self, index: usize) -> bool {
        let next = self.matches.layout.right_of(index).first();
        next.is_some_and(|cell| is_clock(&cell.joined_text()))
    }

    /// Every day that is printed, once, with all that speaks for it in this role.
    pub(super) fn candidates_for(
        &self,
        role: DateRole<'_>,
        issued: Option<Date>,
    ) -> Vec<DateCandidate> {
        let mut found = self.printed.clone();
        for field in role.dates {
            let own = *field == role.field;
            for label_match in self.matches.of_field(field).take(MAX_LABELS) {
                self.mark_labelled(label_match, own, &role, &mut found);
            }
        }
        // `Nummer/Datum`: a word that may be the document's number is no sign for days.
        let names_other = |label_match: &&LabelMatch| {
            let mut same = self.matches.in_cell(label_match.cell);
            !same.any(|own| own.field == role.number && own.token == label_match.token)
        };
        for label_match in self.matches.of_field("other").take(MAX_LABELS).filter(names_other) {
            self.mark_labelled(label_match, false, &role, &mut found);
        }
        if role.issued {
            for label_match in self.matches.leading(role.number) {
                self.mark_titled(label_match, &mut found);
                self.mark_under_title(label_match, &mut found);
            }
        }
        if !role.issued {
            self.mark_followed(&mut found);
            found.extend(issued.into_iter().flat_map(|day| self.days_without_year(day)));
        }
        if role.issued {
            Self::leave_out_columns(&mut found);
        }
        let mut merged = merge_days(found);
        rank_days(&mut merged, role.issued);
        if role.issued {
            mark_sole_label(&mut merged);
        }
        self.mark_written(&mut merged, role.issued);
        let since = issued.filter(|_| !role.issued);
        let terms = since.map_or(Vec::new(), |_| term::count_days(self.matches.layout));
        for one in &mut merged {
            one.signs.extend(relation_to(since, one.date));
            let after = since.map(|issued| (one.date - issued).whole_days());
            if after.is_some_and(|days| terms.contains(&days)) {
                one.signs.push(DateSign::ByTerm);
            }
            let labelled = [DateSign::OwnLabel, DateSign::WeakLabel, DateSign::PayBy];
            if !role.issued && !one.signs.iter().any(|sign| labelled.contains(sign)) {
                one.signs.push(DateSign::Unlabelled);
            }
        }
        merged
    }

    /// Gives the date beside a label the signs of that label.
    fn mark_labelled(
        &self,
        label_match: &LabelMatch,
        own: bool,
        role: &DateRole<'_>,
        found: &mut [DateCandidate],
    ) {
        if !label_match.strong && self.matches.heads_column(label_match) {
            return;
        }
        let beside = self.matches.value_candidates(label_match).into_iter();
        // A label of something else refers to the next text.
        let reach = if own { usize::MAX } else { 1 };
        let at = beside.take(reach).find_map(|one| Some((self.date_beside(&one)?, one.below)));
        let Some((place, below)) = at else {
            return;
        };
        let Some(one) = found.iter_mut().find(|one| one.place == place) else { return };
        // `less invoice 11 of 2 February   -120.00`: deductions refer to other documents.
        let own = own && !self.matches.layout.is_on_deducting_row(place.0);
        one.signs.push(match (own, label_match.strong) {
            (true, true) => DateSign::OwnLabel,
            (true, false) => DateSign::WeakLabel,
            (false, true) => DateSign::OtherLabel,
            (false, false) => return,
        });
        if !own {
            self.mark_end_of_period(place, found);
            return;
        }
        // The text before it is its label.
        one.signs.retain(|sign| *sign != DateSign::Dated);
        if below {
            one.signs.push(DateSign::LabelAbove);
        }
        if !label_match.strong {
            one.signs.extend(weak_context(self.matches, label_match, role.number));
        }
    }

    /// A period has two days: the sign of its label holds for the day behind the dash too.
    fn mark_end_of_period(&self, first: (usize, usize), found: &mut [DateCandidate]) {
        let Some(cell) = self.matches.layout.cells.get(first.0) else { return };
        let text = cell.joined_text();
        let dates = date::find_dates(&text);
        let ends = dates.windows(2).find_map(|pair| match pair {
            [one, next] if one.range.start == first.1 => {
                let between = text.get(one.range.end..next.range.start)?.trim();
                let dash = matches!(between, "-" | "–" | "—");
                (dash || vocabulary().until.has(&fold_text(between)))
                    .then_some((first.0, next.range.start))
            }
            _ => None,
        });
        let end = ends.and_then(|place| found.iter_mut().find(|one| one.place == place));
        if let Some(end) = end {
            end.signs.push(DateSign::OtherLabel);
        }
    }

    /// The date beside a title such as "Invoice", where letters are dated.
    fn mark_titled(&self, label_match: &LabelMatch, found: &mut [DateCandidate]) {
        let beside =
            self.matches.value_candidates(label_match).into_iter().filter(|one| !one.below);
        let at = beside.filter_map(|one| Some((self.date_within(&one, REACH_TITLED)?, one))).next();
        let Some((place, beside)) = at else { return };
        let Some(one) = found.iter_mut().find(|one| one.place == place) else { return };
        let text = beside.value_words().join(" ");
        let start = date::find_dates(&text).first().map_or(0, |day| day.range.start);
        // `Faktura nr 14/02/2025`: that is the number.
        if beside.inline
            && start == 0
            && (label_match.strong || self.matches.has_days_without_strokes(&beside.value_words()))
        {
            one.signs.push(DateSign::OtherLabel);
            return;
        }
        one.signs.push(DateSign::Titled);
        let title = self
            .matches
            .cell_of(label_match)
            .map(|cell| cell.words_in(label_match.words.end..cell.words.len()));
        let number = match beside.inline {
            true => text.get(..start).is_some_and(has_digit),
            false => title.is_some_and(|words| has_digit(&words.join(" "))),
        };
        let ends = [DateSign::Dated, DateSign::Alone].iter().any(|sign| one.signs.contains(sign));
        // `Invoice 17 of 3 May`: title and number precede the day.
        if number && ends && !self.matches.style.printed_by_clock {
            one.signs.retain(|sign| *sign != DateSign::Dated);
            one.signs.push(DateSign::BehindNumber);
        }
    }

    /// The day right before words such as `net` or `without deduction` is the one by which to pay.
    fn mark_followed(&self, found: &mut [DateCandidate]) {
        for label_match in self.matches.of_field("due_behind").take(MAX_LABELS) {
            let Some(cell) = self.matches.cell_of(label_match) else { continue };
            let text = cell.joined_text();
            let end = cell.words_in(0..label_match.words.start).join(" ").len();
            let mut dates = date::find_dates(&text).into_iter().rev();
            let day = dates.find(|one| one.range.end == end).map(|one| one.range.start);
            // `Der neue Abschlag ist ab 1. März fällig`: a payment that starts on that day.
            let before = day.and_then(|at| text.get(..at)).unwrap_or_default().trim_end();
            let word = fold_text(before.rsplit(' ').next().unwrap_or_default());
            if vocabulary().from_then_on.has(&word) {
                continue;
            }
            let one = found
                .iter_mut()
                .find(|one| Some(one.place) == day.map(|at| (label_match.cell, at)));
            if let Some(one) = one {
                one.signs.push(DateSign::OwnLabel);
            }
        }
    }

    /// Where the first date of some words begins, if that is near their front.
    fn date_beside(&self, beside: &ValueCandidate<'_>) -> Option<(usize, usize)> {
        self.date_within(beside, if beside.inline { REACH_INLINE } else { REACH_BESIDE })
    }

    fn date_within(&self, beside: &ValueCandidate<'_>, reach: usize) -> Option<(usize, usize)> {
        let text = beside.value_words().join(" ");
        let first = date::find_dates(&text).into_iter().next()?;
        let skipped = beside.cell.words_in(0..beside.words.start).join(" ").len();
        let offset = skipped + usize::from(beside.words.start > 0);
        (first.range.start <= reach).then_some((beside.cell.index, offset + first.range.start))
    }

    /// The best day for a role and its share of certainty.
    pub(super) fn find_day(
        &self,
        role: DateRole<'_>,
        issued: Option<Date>,
    ) -> Option<FoundValue<Date>> {
        let candidates = self.candidates_for(role, issued);
        let weights = sign::weights_of(role.issued);
        let scores: Vec<f32> = candidates.iter().map(|one| weights.score(&one.signs)).collect();
        let shares = share_certainty(&scores, weights.none);
        let ranked = candidates.iter().zip(&scores).zip(shares);
        let best = ranked
            .max_by(|((a, x), _), ((b, y), _)| x.total_cmp(y).then_with(|| b.place.cmp(&a.place)));
        let ((one, score), share) = best?;
        // Nothing at all speaks for it: rather none.
        if *score < weights.none - 1.5 {
            return None;
        }
        let cell = self.matches.layout.cells.get(one.place.0)?;
        let bounds = &parameters().certainty;
        let open = if one.certain { 1.0 } else { bounds.open_day_order };
        // The page names it something else, however isolated it is. `Factuurdatum / Datum` behind a
        // number: its own label outweighs the text before that.
        let own = one.signs.contains(&DateSign::OwnLabel);
        // `We collect the balance with the first instalment on 16 February`: the sentence names the
        // event.
        let told = !role.issued && one.signs.contains(&DateSign::Collected);
        let is_other = |sign: &DateSign| {
            *sign == DateSign::OtherLabel && !told || *sign == DateSign::OtherBefore && !own
        };
        let rivals = role.issued
            && candidates
                .iter()
                .filter(|one: &&DateCandidate| {
                    is_unnamed(one) && is_open(one) && !one.signs.contains(&DateSign::Prose)
                })
                .count()
                > 1;
        // `Objections are to be raised by 6 August`, where the money is collected on another day.
        let collected = !role.issued
            && !one.signs.contains(&DateSign::PayBy)
            && one.signs.contains(&DateSign::Prose)
            && candidates.iter().any(|other: &DateCandidate| {
                other.date != one.date && other.signs.contains(&DateSign::Collected)
            });
        // The text before it is an unknown label, and another day has a known one: `Packed 26
        // November` beside `Date 28 November`.
        let behind = role.issued
            && is_unnamed(one)
            && one.signs.contains(&DateSign::Dated)
            && candidates.iter().any(|other: &DateCandidate| {
                let own = [DateSign::OwnLabel, DateSign::WeakLabel];
                other.date != one.date && own.iter().any(|sign| other.signs.contains(sign))
            });
        // `Paid: 25/04/2026 13:02`, and no other day on a till's paper: a receipt is written when
        // it is paid.
        let timed = [DateSign::Only, DateSign::TillTime];
        let sole = role.issued && timed.iter().all(|sign| one.signs.contains(sign));
        // `Date in   2 November` over `Invoiced   3 November`: two days have labels of the same.
        let twice = role.issued
            && one.signs.contains(&DateSign::OwnLabel)
            && candidates
                .iter()
                .any(|other| other.date != one.date && other.signs.contains(&DateSign::OwnLabel));
        let doubted = !sole && one.signs.iter().any(is_other)
            || twice
            || rivals && is_unnamed(one)
            || collected
            || behind;
        let most = if doubted { bounds.other_label } else { 1.0 };
        Some(FoundValue::weighed(one.date, (share * open).min(most), cell))
    }
}

/// Marks the one day labelled as that of issue, where no other day has such a label and it has no
/// other name.
fn mark_sole_label(merged: &mut [DateCandidate]) {
    use DateSign::{
        AmountRow, BehindNumber, Later, MidSentence, NumberBefore, OtherBefore, OtherLabel,
        OwnLabel, Prose, SoleLabel, Titled, Town, WeakLabel,
    };
    let doubtful = [AmountRow, Later, MidSentence, OtherBefore, OtherLabel, Prose];
    let named = [BehindNumber, NumberBefore, OwnLabel, Titled, Town];
    for (wanted, rivals) in
        [(OwnLabel, named.to_vec()), (WeakLabel, [named.as_slice(), &[WeakLabel]].concat())]
    {
        let mut called = merged.iter_mut().filter(|one| has_any_sign(one, &rivals));
        if let (Some(one), None) = (called.next(), called.next())
            && one.signs.contains(&wanted)
            && !has_any_sign(one, &doubtful)
        {
            one.signs.push(SoleLabel);
            return;
        }
    }
}

fn has_any_sign(one: &DateCandidate, signs: &[DateSign]) -> bool {
    signs.iter().any(|sign| one.signs.contains(sign))
}

/// Whether a day has no label, title, number or town before it.
fn is_unnamed(one: &DateCandidate) -> bool {
    use DateSign::{
        BehindNumber, NumberBefore, OwnLabel, PayBy, TillTime, Titled, Town, WeakLabel, Written,
    };
    let named =
        [OwnLabel, WeakLabel, Titled, NumberBefore, BehindNumber, Town, TillTime, PayBy, Written];
    !one.signs.iter().any(|sign| named.contains(sign))
}

/// Whether a day is isolated from lines and other days, and has no other name.
fn is_open(one: &DateCandidate) -> bool {
    use DateSign::{AmountRow, Later, Margin, OtherBefore, OtherLabel, SeveralInCell};
    let told = [AmountRow, Later, Margin, OtherBefore, OtherLabel, SeveralInCell];
    !one.signs.iter().any(|sign| told.contains(sign))
}

/// How a day lies to the day of issue.
fn relation_to(issued: Option<Date>, date: Date) -> Option<DateSign> {
    let days = (date - issued?).whole_days();
    Some(match days {
        ..0 => DateSign::BeforeIssue,
        0 => DateSign::SameAsIssue,
        1..=120 => DateSign::AfterIssue,
        _ => DateSign::LongAfterIssue,
    })
}

/// The signs of a date's position.
fn place_signs(matches: &LabelMatches<'_>, cell: &TextCell) -> Vec<DateSign> {
    let depth = matches.layout.depth_on_page(cell);
    let mut signs = vec![match (cell.page, depth) {
        (0, ..0.04) => DateSign::Margin,
        (0, ..0.5) => DateSign::Upper,
        (0, _) => DateSign::Lower,
        _ => DateSign::Later,
    }];
    if matches.layout.is_on_amount_row(cell) {
        signs.push(DateSign::AmountRow);
    }
    if cell.confidence < FAINT {
        signs.push(DateSign::Faint);
    }
    signs
}

/// The rest of the cell of a weak label: `Invoice 12 of 3 May` is about the invoice, `as per order
/// 7 of 1 May` is not.
fn weak_context(
    matches: &LabelMatches<'_>,
    label_match: &LabelMatch,
    number: &str,
) -> Option<DateSign> {
    let before_it = |field: &str| {
        let same =
            matches.in_cell(label_match.cell).filter(|other| other.token < label_match.token);
        same.filter(|other| other.field == field).map(|other| other.token).collect::<Vec<_>>()
    };
    let numbers = before_it(number);
    // `Nummer/Datum`: a word that may be the document's number or another is the document's here.
    let others = before_it("other").iter().any(|token| !numbers.contains(token));
    // `Consegna del: 3/5/2024`: the text before the weak word names another day.
    let cell = matches.cell_of(label_match);
    let closed = cell.is_some_and(|cell| {
        let last = label_match.words.end.checked_sub(1).and_then(|last| cell.words.get(last));
        label_match.words.end == cell.words.len() || last.is_some_and(|word| word.ends_with(':'))
    });
    let before = label_match.words.start.checked_sub(1).and_then(|at| cell?.words.get(at));
    let named = closed && before.is_some_and(|word| !word.ends_with(','));
    match (!numbers.is_empty(), others || named && numbers.is_empty()) {
        (_, true) => Some(DateSign::OtherBefore),
        (true, _) => Some(DateSign::NumberBefore),
        _ if label_match.words.start > 2 => Some(DateSign::MidSentence),
        _ => None,
    }
}

/// Each day once. A label of something else counts only where the day has no better label of its
/// own, and a sign against a position only if every mention has it.
fn merge_days(found: Vec<DateCandidate>) -> Vec<DateCandidate> {
    let mut merged: Vec<DateCandidate> = Vec::new();
    for one in found {
        let Some(known) = merged.iter_mut().find(|known| known.date == one.date) else {
            merged.push(one);
            continue;
        };
        let both = |sign: &DateSign| known.signs.contains(sign) && one.signs.contains(sign);
        // `Leeds, 3 May`, the date line of a letter: no label makes it another day.
        let is_both = is_weak(known) || is_weak(&one);
        let mut signs: Vec<DateSign> = known.signs.iter().chain(&one.signs).copied().collect();
        let dropped: Vec<DateSign> =
            signs.iter().copied().filter(|sign| sign.is_excused() && !both(sign)).collect();
        signs.retain(|sign| !dropped.contains(sign));
        if is_both {
            signs.retain(|sign| *sign != DateSign::OtherLabel);
        }
        signs.push(DateSign::Repeated);
        signs.sort_unstable();
        signs.dedup();
        known.signs = signs;
        known.certain |= one.certain;
    }
    for one in &mut merged {
        let labelled = [DateSign::OwnLabel, DateSign::WeakLabel, DateSign::Titled];
        // A labelled day is no day of printing.
        if one.signs.iter().any(|sign| labelled.contains(sign)) {
            let margin = one.signs.iter_mut().filter(|sign| **sign == DateSign::Margin);
            margin.for_each(|sign| *sign = DateSign::Upper);
        }
        if one.signs.contains(&DateSign::OwnLabel) || one.signs.contains(&DateSign::Titled) {
            one.signs.retain(|sign| *sign != DateSign::OtherLabel);
        }
        one.signs.sort_unstable();
        one.signs.dedup();
    }
    merged
}

/// One mention has the label, another has a different name: the day is both.
fn is_weak(it: &DateCandidate) -> bool {
    it.signs.contains(&DateSign::WeakLabel) && !it.signs.contains(&DateSign::OtherLabel)
}

/// Marks the first, earliest, latest and only day. For the day of issue, days with another name do
/// not count unless there are no others: nearly every delivery precedes its invoice, and every
/// payment follows it.
fn rank_days(merged: &mut [DateCandidate], issued: bool) {
    let is_free = |one: &DateCandidate| {
        !one.signs
            .iter()
            .any(|sign: &DateSign| matches!(sign, DateSign::OtherLabel | DateSign::OtherBefore))
    };
    let apart = issued && merged.iter().any(is_free);
    let counts = |one: &DateCandidate| !apart || is_free(one);
    let ranked: Vec<&DateCandidate> = merged.iter().filter(|one| counts(one)).collect();
    let only = ranked.len() == 1;
    let place = ranked.iter().map(|one| one.place).min();
    let first = ranked.iter().map(|one| one.date).min();
    let last = ranked.iter().map(|one| one.date).max();
    for one in merged.iter_mut().filter(|one| counts(one)) {
        // Where a letter is dated, the works that it charges came before.
        let titled = [DateSign::BehindNumber, DateSign::Titled];
        let titled = titled.iter().all(|sign| one.signs.contains(sign));
        let letter = issued && (titled || one.signs.contains(&DateSign::Town));
        add_sign(&mut one.signs, DateSign::First, Some(one.place) == place);
        add_sign(&mut one.signs, DateSign::Only, only);
        add_sign(&mut one.signs, DateSign::Earliest, !only && Some(one.date) == first);
        add_sign(&mut one.signs, DateSign::Latest, !only && !letter && Some(one.date) == last);
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    /// The day of a role, and whether it is certain.
    fn find(drawing: &str, field: &str) -> Option<(String, bool)> {
        find_of("invoice", drawing, field)
    }

    fn find_of(kind: &str, drawing: &str, field: &str) -> Option<(String, bool)> {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout = CellLayout::new(&transcript(&[drawing]));
        let matches = LabelMatches::new(&layout, kinds.get(kind).unwrap());
        let currency = super::super::money::find_currency(&matches).map(|found| found.value);
        let calendar = DateReader::from_matches(&matches, currency);
        let search = DateSearch::new(&matches, &calendar);
        let dates = ["invoice_date", "due_date"];
        let role = |field| DateRole {
            field,
            issued: field == "invoice_date",
            dates: &dates,
            number: "invoice_number",
        };
        let issued = search.find_day(role("invoice_date"), None);
        let found = match field {
            "invoice_date" => issued,
            _ => search.find_day(role(field), issued.map(|found| found.value)),
        };
        found.map(|found| (date::to_iso(found.value), found.certain))
    }

    #[test]
    fn days_are_read_beside_their_labels() {
        for (drawing, field, expected) in [
            ("Invoice Date:   August 9 , 2016", "invoice_date", Some("2016-08-09")),
            ("Rechnung # A1 vom 12.09.2016", "invoice_date", Some("2016-09-12")),
            ("Rechnung gemäß Bestellung vom 02.05.2019.", "invoice_date", None),
            (
                "Zahlbar innerhalb 30 Tagen netto bis 08.06.2017, 3% Skonto",
                "due_date",
                Some("2017-06-08"),
            ),
            ("Fecha de vencimiento\n12/05/2021", "due_date", Some("2021-05-12")),
            ("Der Rest ist am 12.02.2025 fällig.", "due_date", Some("2025-02-12")),
            ("Der Rest ist ab 12.02.2025 fällig.", "due_date", None),
            ("Order date: 1.2.2020   Delivery date: 3.2.2020", "invoice_date", None),
            (
                "Rechnung\nNummer/Datum\n9100447182 / 06.03.2023\nReferenz-Nr./Datum\nBE-23 / 27.02.2023",
                "invoice_date",
                Some("2023-03-06"),
            ),
        ] {
            let found = find(drawing, field).filter(|(_, certain)| *certain);
            assert_eq!(found.map(|(date, _)| date).as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn a_letter_is_dated_after_the_works_that_it_charges() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout =
            CellLayout::new(&transcript(&["\n\n\n\nTannrode, 31.08.2025\n\nRechnung\n\n\
             04.08.2025   Birkau   61,80\n28.08.2025   Birkau   61,80"]));
        let matches = LabelMatches::new(&layout, kinds.get("invoice").unwrap());
        let calendar = DateReader::from_matches(&matches, None);
        let (field, number) = ("invoice_date", "invoice_number");
        let role = DateRole { field, issued: true, dates: &[field], number };
        let found = DateSearch::new(&matches, &calendar).candidates_for(role, None);
        let last = found.iter().max_by_key(|one| one.date).unwrap();
        assert_eq!(date::to_iso(last.date), "2025-08-31");
        assert!(!last.signs.contains(&DateSign::Latest), "{:?}", last.signs);
    }

    #[test]
    fn the_day_of_printing_on_the_margin_is_not_the_day_of_issue() {
        let drawing = "17.08.2022, 14:36\n\n\n\n\nInvoice\nDate   09.03.2022\nTotal   57,00";
        assert_eq!(find(drawing, "invoice_date").unwrap().0, "2022-03-09");
    }

    #[test]
    fn a_day_without_a_label_stands_alone_or_before_a_time() {
        for (drawing, expected) in [
            ("Corner Shop\n17 May 2019 16:42\nTea   2.00", Some("2019-05-17")),
            ("Corner Shop\n#0214 04/06/2019 19:37:52\nTea   RM 2.00", Some("2019-06-04")),
            ("Corner Shop\nElko, NV 89801\n04/06/2019 19:37\nTea   2.00", Some("2019-04-06")),
            ("Corner Shop\nTea   2.00\nMAY   11, 2017   9:14 AM", Some("2017-05-11")),
            ("Corner Shop\nTea   2.00\nReturns with receipt thru 06/30/2017", None),
        ] {
            let found = find_of("receipt", drawing, "invoice_date");
            let found = found.filter(|(_, certain)| *certain).map(|(date, _)| date);
            assert_eq!(found.as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn of_two_days_with_labels_of_the_day_of_issue_none_is_certain() {
        let page = "Kettle Auto Inc.\nDate in   NOV 02 2026\nInvoiced   NOV 03 2026\nTotal   12.00";
        assert!(!find_of("receipt", page, "invoice_date").unwrap().1);
        let page = page.replace("Date in   NOV 02 2026\n", "");
        assert!(find_of("receipt", &page, "invoice_date").unwrap().1);
    }

    #[test]
    fn an_english_date_of_either_order_is_not_certain() {
        let found = find("Invoice date: 10/06/2018 payment of the amount due", "invoice_date");
        assert!(!found.unwrap().1);
    }

    #[test]
    fn the_form_of_a_company_tells_the_order_of_day_and_month_where_no_currency_does() {
        for (company, certain) in [
            ("Kettle Foods Sdn. Bhd.", true),
            ("Kettle Foods Pty Ltd", true),
            ("Kettle Foods Ltd", false),
            ("Kettle Foods Inc, for Birch Pty Ltd", false),
        ] {
            let page = format!("{company}\nInvoice date: 10/06/2018 payment of the amount due");
            let (_, found) = find(&page, "invoice_date").unwrap();
            assert_eq!(found, certain, "{company}");
        }
    }
}
