//! The signs of a day's role. Their weights are in `config/reader.toml`.

use serde::{Deserialize, Serialize};

use super::super::parameters::{SignWeights, parameters};

/// Something that speaks for or against a date being the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum DateSign {
    /// Beside a label that means this day and no other.
    OwnLabel,
    /// Beside a label such as "Date".
    WeakLabel,
    /// That label is above it.
    LabelAbove,
    /// Beside the label of another day.
    OtherLabel,
    /// Beside a title such as "Invoice".
    Titled,
    /// After the document's number, before a weak label.
    NumberBefore,
    /// Behind a town under everything else, where what is signed is dated.
    Written,
    /// A label of this day is beside it and beside no other.
    SoleLabel,
    /// Behind title and number, at the end of their line.
    BehindNumber,
    /// After the number of an order or the like.
    OtherBefore,
    /// The weak label is in the middle of a text.
    MidSentence,
    /// Alone in its cell, but for a time.
    Alone,
    /// At the end of a short text.
    Dated,
    /// Behind a town at the head of a page, where letters are dated.
    Town,
    /// Before a time of day.
    WithTime,
    /// Before a time of day, printed by a till.
    TillTime,
    /// On a receipt, anywhere.
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
    /// In a sentence before what is left out for who pays by then, and before a later day.
    Early,
    /// No label of this day is beside it, anywhere.
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
    /// On a line about collecting money from an account, with a word such as "on" before it.
    Collected,
}

use DateSign as S;

/// The weights of the day of issue, or of another one.
pub(super) fn weights_of(issued: bool) -> &'static SignWeights<DateSign> {
    let weights = &parameters().weights;
    if issued { &weights.issue_day } else { &weights.other_day }
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
