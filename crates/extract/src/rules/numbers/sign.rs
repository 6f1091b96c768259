//! The signs by which the document's own number is told, and what each is worth: log-odds, fitted
//! by `scripts/fit_reading.py` on the tune part of labelled documents.

/// Something that speaks for or against a text being the document's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum NumberSign {
    /// Beside a label that means this number and no other.
    OwnLabel,
    /// Beside a title such as "Invoice".
    WeakLabel,
    /// Beside the label of another number.
    OtherLabel,
    /// Behind `No.` alone.
    ShortLabel,
    /// Behind `#`.
    Marked,
    /// In the label's own text.
    Inline,
    /// Under its label.
    LabelAbove,
    /// Alone right under a title that stands alone.
    UnderTitle,
    /// Not the nearest text to its label.
    Further,
    /// The label does not begin its text.
    MidText,
    /// The label's text is long.
    LongText,
    /// Another label stands in its own text.
    OtherWithin,
    /// In the upper fifth of the first page.
    Head,
    /// In its upper half.
    Upper,
    /// In its lower half.
    Lower,
    /// On a later page alone.
    Later,
    /// On a row with amounts.
    AmountRow,
    /// Was hardly legible.
    Faint,
    /// One or two letters or digits.
    Short,
    /// Has letters.
    Letters,
    /// Has more than three digits.
    Long,
    /// Looks like a version or a small decimal number.
    Decimal,
    /// Comes back on the document, and no label calls it the document's own.
    Again,
    /// No other text stands beside such a label or mark.
    OnlyOwn,
    /// The label of the day of issue stands right over, under or behind its label.
    DayBeside,
}

use NumberSign as S;

/// Log-odds of each sign.
const WEIGHTS: [(NumberSign, f32); 25] = [
    (S::OwnLabel, 6.6),
    (S::WeakLabel, 1.6),
    (S::OtherLabel, -4.3),
    (S::ShortLabel, 7.5),
    (S::Marked, 4.8),
    (S::Inline, 3.9),
    (S::LabelAbove, -3.7),
    (S::Further, -1.0),
    (S::MidText, -5.2),
    (S::LongText, -1.5),
    (S::OtherWithin, -2.1),
    (S::Head, 2.3),
    (S::Upper, 1.4),
    (S::Lower, -1.6),
    (S::Later, -1.5),
    (S::AmountRow, -1.8),
    (S::Faint, -3.0),
    (S::Short, -3.1),
    (S::Letters, -1.4),
    (S::Long, 1.2),
    (S::Decimal, -1.5),
    (S::Again, -2.0),
    (S::DayBeside, 3.0),
    // Set by hand.
    (S::OnlyOwn, 1.0),
    (S::UnderTitle, 4.5),
];

/// What speaks for none of the texts being it.
pub(super) const NONE_OF_THEM: f32 = 1.1;

impl NumberSign {
    /// Whether a mention elsewhere without it takes it back: it is about the place of the label.
    pub(super) fn is_excused(self) -> bool {
        matches!(self, S::LabelAbove | S::MidText | S::LongText | S::Further)
    }

    /// Whether it says that the number may be the document's own.
    pub(super) fn is_own(self) -> bool {
        matches!(self, S::OwnLabel | S::WeakLabel | S::ShortLabel | S::Marked)
    }
}

/// The log-odds of a set of signs.
pub(super) fn weigh_signs(signs: &[NumberSign]) -> f32 {
    WEIGHTS.iter().filter(|(sign, _)| signs.contains(sign)).map(|(_, weight)| weight).sum()
}
