//! The signs by which a day's role is told, and what each is worth: log-odds, fitted by
//! `scripts/fit_reading.py` on the tune part of labelled documents.

/// Something that speaks for or against a date being the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum DateSign {
    /// Beside a label that means this day and no other.
    OwnLabel,
    /// Beside a label such as "Date".
    WeakLabel,
    /// That label stands above it.
    LabelAbove,
    /// Beside the label of another day.
    OtherLabel,
    /// Beside a title such as "Invoice".
    Titled,
    /// After the document's number, before a weak label.
    NumberBefore,
    /// Behind title and number, at the end of their line.
    BehindNumber,
    /// After the number of an order or the like.
    OtherBefore,
    /// The weak label stands in the middle of a text.
    MidSentence,
    /// Alone in its cell, but for a time.
    Alone,
    /// At the end of a short text.
    Dated,
    /// Behind a town at the head of a page, where letters are dated.
    Town,
    /// Behind a town under everything else, where what is signed is dated.
    Written,
    /// Before a time of day.
    WithTime,
    /// Before a time of day, printed by a till.
    TillTime,
    /// Printed by a till, wherever it stands.
    OnTill,
    /// Within a long text.
    Prose,
    /// Beside other dates.
    SeveralInCell,
    /// On the upper margin, where programs print the day of printing.
    Margin,
    /// In the upper half of the first page.
    Upper,
    /// In its lower half.
    Lower,
    /// On a later page alone.
    Later,
    /// On a row with amounts.
    AmountRow,
    /// Was hardly legible.
    Faint,
    /// The first of the document.
    First,
    /// The only one.
    Only,
    /// Comes back.
    Repeated,
    /// No other is before it.
    Earliest,
    /// No other is after it.
    Latest,
    /// A label of this day stands beside it and beside no other.
    SoleLabel,
    /// No label of this day is beside it, wherever it stands.
    Unlabelled,
    /// Before the day of issue.
    BeforeIssue,
    /// The day of issue itself.
    SameAsIssue,
    /// In the four months after it.
    AfterIssue,
    /// Later than that.
    LongAfterIssue,
    /// As many days after it as the page counts: `30 days net`.
    ByTerm,
    /// Behind a word such as "by", on a line that asks for money: `Please pay by 3 May`.
    PayBy,
    /// In a sentence before what is left out for who pays by then, and before a later day.
    Early,
    /// On a line about collecting money from an account, with a word such as "on" before it.
    Collected,
}

use DateSign as S;

/// Log-odds of the signs of the day of issue.
const ISSUED: [(DateSign, f32); 30] = [
    (S::OwnLabel, 3.3),
    (S::WeakLabel, 2.2),
    (S::LabelAbove, -1.1),
    (S::OtherLabel, -5.2),
    (S::Titled, 4.0),
    (S::NumberBefore, 3.5),
    // Set by hand.
    (S::Written, 12.0),
    (S::SoleLabel, 2.0),
    (S::BehindNumber, 3.5),
    (S::OtherBefore, -4.0),
    (S::MidSentence, -2.1),
    (S::Alone, 0.7),
    (S::Dated, -4.0),
    (S::Town, 4.5),
    (S::WithTime, -0.6),
    (S::TillTime, 2.2),
    (S::OnTill, 0.5),
    (S::Prose, -1.5),
    (S::SeveralInCell, -2.9),
    (S::Margin, -6.0),
    (S::Upper, 4.6),
    (S::Lower, -0.4),
    (S::Later, -2.0),
    (S::AmountRow, -1.6),
    (S::Faint, 0.0),
    (S::First, 5.5),
    (S::Only, 2.5),
    (S::Repeated, 2.7),
    (S::Earliest, 0.2),
    (S::Latest, -5.0),
];

/// Log-odds of the signs of another day, such as the one by which to pay.
const OTHER: [(DateSign, f32); 31] = [
    // Set by hand.
    (S::Written, -6.0),
    (S::Early, -12.0),
    (S::OwnLabel, 10.3),
    (S::Unlabelled, -1.2),
    (S::WeakLabel, 2.0),
    (S::LabelAbove, 0.7),
    (S::OtherLabel, -3.5),
    (S::OtherBefore, -3.0),
    (S::MidSentence, -1.0),
    (S::Alone, 0.4),
    (S::Dated, 0.7),
    (S::WithTime, -1.7),
    (S::Prose, -0.7),
    (S::SeveralInCell, -2.6),
    (S::Margin, -1.0),
    (S::Upper, -0.4),
    (S::Lower, 2.8),
    (S::Later, -1.9),
    (S::AmountRow, 0.2),
    (S::Faint, -0.5),
    (S::Latest, 3.6),
    (S::BeforeIssue, -2.1),
    (S::SameAsIssue, -1.3),
    (S::AfterIssue, 1.8),
    (S::LongAfterIssue, -2.3),
    (S::ByTerm, 4.0),
    (S::PayBy, 8.0),
    (S::Earliest, 1.3),
    (S::First, -0.1),
    (S::Only, 0.6),
    (S::Repeated, 1.1),
];

/// The weights of the day of issue, or of another one.
pub(super) fn weights_of(issued: bool) -> &'static [(DateSign, f32)] {
    if issued { &ISSUED } else { &OTHER }
}

/// What speaks for none of the dates being it.
pub(super) fn none_of_them(issued: bool) -> f32 {
    if issued { 2.9 } else { 5.5 }
}

/// The log-odds of a set of signs.
pub(super) fn weigh_signs(weights: &[(DateSign, f32)], signs: &[DateSign]) -> f32 {
    weights.iter().filter(|(sign, _)| signs.contains(sign)).map(|(_, weight)| weight).sum()
}

impl DateSign {
    /// Whether a mention elsewhere without it takes it back.
    pub(super) fn is_excused(self) -> bool {
        matches!(
            self,
            S::Margin
                | S::Dated
                | S::Prose
                | S::SeveralInCell
                | S::Lower
                | S::Later
                | S::AmountRow
                | S::Faint
        )
    }
}
