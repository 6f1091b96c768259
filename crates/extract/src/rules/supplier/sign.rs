//! The signs of the issuer's name. Their weights are in `config/reader.toml`; no sign decides
//! alone, and none names an issuer or a layout.

use serde::{Deserialize, Serialize};

/// Something that speaks for or against a text being the issuer's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum NameSign {
    /// Beside a heading such as "Seller", or named in its section.
    Labelled,
    /// Whose bank account it is, or under whom money is to be sent.
    Payee,
    /// First of name, street and town on one line.
    SenderLine,
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
    /// On a receipt, anywhere.
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
    /// Its block has telephone, mail, web or bank details.
    Contact,
    /// The issuer's VAT identifier is in its block or beside it.
    VatNear,
    /// Part of a mail or web address on the page.
    Domain,
    /// Named again within a line about an account, an identifier or a register.
    Witnessed,
    /// Heads the first page with its address, where the recipient is labelled elsewhere.
    Letterhead,
    /// Comes back elsewhere on the document, and has no legal form.
    Repeated,
    /// Under or beside a heading such as "Bill to".
    Customer,
    /// Its number in a register is in brackets behind it, or right under it.
    Numbered,
    /// Under the formula that ends a letter, over an address.
    Signatory,
    /// A short line, not the first, right over another name with its address: likely a heading.
    OverName,
    /// Right under a name in large letters, several things parted by marks: what its owner does.
    Trades,
    /// A company, in large letters, and the first text of the page.
    Banner,
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
    /// Lies across another line, so that words of both may have been mixed.
    Tangled,
    /// Was hardly legible.
    Faint,
}

use NameSign as S;

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
