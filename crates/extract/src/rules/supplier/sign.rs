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
    /// Under the formula that ends a letter, over an address.
    Signatory,
    /// Stands over "registered office".
    Registered,
    /// Its number in a register stands in brackets behind it or right under it.
    Numbered,
    /// Ends in a company's legal form, or has one.
    LegalForm,
    /// No other name with a legal form is on the document, but the recipient's.
    OnlyCompany,
    /// The first text of the first page that can be a name.
    First,
    /// The same on a till's paper.
    TillFirst,
    /// On the upper part of a till's paper.
    TillHead,
    /// On a till's paper, wherever it stands.
    OnTill,
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
    /// Named again within a line about an account, an identifier or a register.
    Witnessed,
    /// Heads the first page with its address, where the recipient stands elsewhere as such.
    Letterhead,
    /// Comes back elsewhere on the document, and has no legal form.
    Repeated,
    /// Under or beside a heading such as "Bill to".
    Customer,
    /// A short line, not the first, right over another name with its address: a heading, most likely.
    OverName,
    /// A company, in large letters, and the first text of the page.
    Banner,
    /// Right under a name in large letters, several things parted by marks: what its owner does.
    Trades,
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
    /// Lies across another line, so that words of both may have been mixed.
    Tangled,
}

use NameSign as S;

/// Log-odds of each sign.
pub(super) const WEIGHTS: [(NameSign, f32); 42] = [
    (S::Labelled, 6.9),
    (S::Payee, -0.3),
    (S::SenderLine, 6.7),
    (S::Registered, 3.6),
    (S::LegalForm, 2.5),
    (S::OnlyCompany, 3.5),
    (S::First, 2.1),
    (S::TillFirst, -0.4),
    (S::TillHead, 1.9),
    (S::OnTill, 0.3),
    (S::Head, 3.4),
    (S::Upper, 1.1),
    (S::Foot, 2.8),
    (S::Later, -1.2),
    (S::Large, 1.5),
    (S::Largest, -1.6),
    (S::AddressBelow, 0.6),
    (S::Contact, 2.4),
    (S::VatNear, 4.0),
    (S::Domain, 4.4),
    (S::Witnessed, 3.0),
    (S::Letterhead, 2.5),
    (S::Repeated, -1.2),
    (S::Customer, -2.5),
    // Set by hand.
    (S::Numbered, 3.0),
    (S::Signatory, 6.0),
    (S::OverName, -4.0),
    (S::Trades, -3.0),
    (S::Banner, 2.5),
    (S::Attention, -3.0),
    (S::Window, -3.0),
    (S::PlainAddress, -0.7),
    (S::OtherValue, -2.6),
    (S::AmountRow, -4.9),
    (S::Prose, -3.2),
    (S::Digits, -4.3),
    (S::Small, -3.0),
    (S::OneWord, 0.0),
    (S::ManyWords, 1.8),
    (S::Place, -4.7),
    (S::Tangled, -3.6),
    (S::Faint, -3.0),
];

/// What speaks for none of the texts being it.
pub(super) const NONE_OF_THEM: f32 = 4.1;

/// The log-odds of a set of signs.
pub(super) fn weigh_signs(signs: &[NameSign]) -> f32 {
    WEIGHTS.iter().filter(|(sign, _)| signs.contains(sign)).map(|(_, weight)| weight).sum()
}

impl NameSign {
    /// Whether a mention elsewhere without it takes it back: it is about the place, not the name.
    pub(super) fn is_excused(self) -> bool {
        matches!(
            self,
            S::Window
                | S::PlainAddress
                | S::OtherValue
                | S::AmountRow
                | S::Later
                | S::Faint
                | S::Tangled
        )
    }
}
