//! The signs by which the issuer's name is told from everything else on a page, and what each is
//! worth. The weights are log-odds, fitted by `scripts/fit_reading.py` on the tune part of labelled
//! documents; no sign decides alone, and none names an issuer or a layout.

/// Something that speaks for or against a text being the issuer's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum NameSign {
    /// Beside a heading such as "Seller", or named in its section.
    Labelled,
    /// Whose bank account it is, or under whom money is to be sent.
    Payee,
    /// First of name, street and town on one line.
    SenderLine,
    /// Stands over "registered office".
    Registered,
    /// Ends in a company's legal form, or has one.
    LegalForm,
    /// The first text of the first page that can be a name.
    First,
    /// In the upper sixth of the first page.
    Head,
    /// Above the middle of the first page, below its head.
    Upper,
    /// At the foot of a page.
    Foot,
    /// On a later page alone.
    Later,
    /// Clearly larger than the text around it, in the upper third.
    Large,
    /// The largest such text of all.
    Largest,
    /// An address follows.
    AddressBelow,
    /// Telephone, mail, web or bank details stand in its block.
    Contact,
    /// The issuer's VAT identifier stands in its block or beside it.
    VatNear,
    /// Part of a mail or web address on the page.
    Domain,
    /// Comes back elsewhere on the document.
    Repeated,
    /// Under or beside a heading such as "Bill to".
    Customer,
    /// "Attn" follows.
    Attention,
    /// Under the sender line, where a window envelope shows the recipient.
    Window,
    /// An address, but no details of any kind below, and other text above.
    PlainAddress,
    /// Beside or under the label of something else.
    OtherValue,
    /// On a row with amounts.
    AmountRow,
    /// Reads like a sentence.
    Prose,
    /// Has digits.
    Digits,
    /// Begins with a small letter.
    Small,
    /// One word.
    OneWord,
    /// More than five words.
    ManyWords,
    /// Looks like a street, a town or a country.
    Place,
    /// Was hardly legible.
    Faint,
}

use NameSign as S;

/// Log-odds of each sign.
pub(super) const WEIGHTS: [(NameSign, f32); 30] = [
    (S::Labelled, 4.0),
    (S::Payee, 1.5),
    (S::SenderLine, 3.0),
    (S::Registered, 2.0),
    (S::LegalForm, 2.0),
    (S::First, 1.5),
    (S::Head, 1.0),
    (S::Upper, 0.0),
    (S::Foot, 0.0),
    (S::Later, -1.0),
    (S::Large, 1.0),
    (S::Largest, 1.0),
    (S::AddressBelow, 1.5),
    (S::Contact, 1.0),
    (S::VatNear, 1.5),
    (S::Domain, 2.0),
    (S::Repeated, 1.0),
    (S::Customer, -4.0),
    (S::Attention, -3.0),
    (S::Window, -3.0),
    (S::PlainAddress, -1.0),
    (S::OtherValue, -2.0),
    (S::AmountRow, -2.0),
    (S::Prose, -3.0),
    (S::Digits, -1.0),
    (S::Small, -1.5),
    (S::OneWord, -0.5),
    (S::ManyWords, -1.0),
    (S::Place, -2.0),
    (S::Faint, -1.0),
];

/// What speaks for none of the texts being it.
pub(super) const NONE_OF_THEM: f32 = 2.5;

/// The log-odds of a set of signs.
pub(super) fn weigh_signs(signs: &[NameSign]) -> f32 {
    WEIGHTS.iter().filter(|(sign, _)| signs.contains(sign)).map(|(_, weight)| weight).sum()
}

impl NameSign {
    /// Whether a mention elsewhere without it takes it back: it is about the place, not the name.
    pub(super) fn is_excused(self) -> bool {
        matches!(
            self,
            S::Window | S::PlainAddress | S::OtherValue | S::AmountRow | S::Later | S::Faint
        )
    }
}
