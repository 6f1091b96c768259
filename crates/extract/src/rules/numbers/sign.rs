//! The signs of the document's own number. Their weights are in `config/reader.toml`.

use serde::{Deserialize, Serialize};

/// Something that speaks for or against a text being the document's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// Not the nearest text to its label.
    Further,
    /// The label does not begin its text.
    MidText,
    /// Its own text has another label.
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
    /// The label of the day of issue is right over, under or behind its label.
    DayBeside,
    /// No other text is beside such a label or mark.
    OnlyOwn,
    /// Alone, right under a title in a line of its own.
    UnderTitle,
}

use NumberSign as S;

impl NumberSign {
    /// Whether a mention elsewhere without it takes it back: it is about the place of the label.
    pub(super) fn is_excused(self) -> bool {
        matches!(self, S::LabelAbove | S::MidText | S::Further)
    }

    /// Whether the number may be the document's own by this sign.
    pub(super) fn is_own(self) -> bool {
        matches!(self, S::OwnLabel | S::WeakLabel | S::ShortLabel | S::Marked)
    }
}
