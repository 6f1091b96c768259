//! The signs at the boundary between two pages, and what each speaks for. Their weights are in
//! `config/packets.toml`.

use serde::{Deserialize, Serialize};

/// Something that speaks for or against a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundarySign {
    /// The next page says that it is the first.
    FirstPage,
    /// A kind's title heads the next page.
    Title,
    /// The next page has a document's number.
    OwnNumber,
    /// The next page has a day of issue.
    OwnDay,
    /// The next page has an issuer.
    OwnIssuer,
    /// The page before says that it is the last.
    LastPage,
    /// A total stands on the document before.
    Closed,
    /// A bank account stands on the document before.
    AccountNamed,
    /// A blank page lies between.
    BlankBack,
    /// The numbers are two.
    NumberDiffers,
    /// The accounts or the issuers' VAT identifiers are two.
    AccountDiffers,
    /// The issuers' names are two.
    IssuerDiffers,
    /// The days of issue are two.
    DayDiffers,
    /// Head and foot have hardly a word in common.
    StationeryDiffers,
    /// The paper has another format.
    SizeDiffers,
    /// The next page says that it follows, of as many pages.
    NextPage,
    /// The next page says that it follows.
    NextNumber,
    /// The next page says that it is a later page than the first.
    LaterPage,
    /// The page before says that more pages follow.
    Unfinished,
    /// The same sum is carried over.
    Carried,
    /// The number is the same.
    SameNumber,
    /// The number of the document before is printed on the next page.
    NumberMentioned,
    /// The account is the same, and neither another number nor a second total is there.
    SameAccount,
    /// Head or foot are the same, and neither another number nor a second total is there.
    SameStationery,
    /// The next page is a paper that goes with another: a delivery note, an order.
    Supporting,
    /// The next page has no title, number, day or account, and no total that would be a second one or stands
    /// on other stationery.
    Headless,
}

/// Conclusion that a sign supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvidenceSide {
    Begins,
    Ends,
    Differs,
    Continues,
}

impl BoundarySign {
    /// Every sign.
    pub const ALL: [Self; 26] = [
        Self::FirstPage,
        Self::Title,
        Self::OwnNumber,
        Self::OwnDay,
        Self::OwnIssuer,
        Self::LastPage,
        Self::Closed,
        Self::AccountNamed,
        Self::BlankBack,
        Self::NumberDiffers,
        Self::AccountDiffers,
        Self::IssuerDiffers,
        Self::DayDiffers,
        Self::StationeryDiffers,
        Self::SizeDiffers,
        Self::NextPage,
        Self::NextNumber,
        Self::LaterPage,
        Self::Unfinished,
        Self::Carried,
        Self::SameNumber,
        Self::NumberMentioned,
        Self::SameAccount,
        Self::SameStationery,
        Self::Supporting,
        Self::Headless,
    ];

    /// The conclusion that it supports.
    pub(crate) fn side(self) -> EvidenceSide {
        match self {
            Self::FirstPage | Self::Title | Self::OwnNumber | Self::OwnDay | Self::OwnIssuer => {
                EvidenceSide::Begins
            }
            Self::LastPage | Self::Closed | Self::AccountNamed | Self::BlankBack => {
                EvidenceSide::Ends
            }
            Self::NumberDiffers
            | Self::AccountDiffers
            | Self::IssuerDiffers
            | Self::DayDiffers
            | Self::StationeryDiffers
            | Self::SizeDiffers => EvidenceSide::Differs,
            Self::NextPage
            | Self::NextNumber
            | Self::LaterPage
            | Self::Unfinished
            | Self::Carried
            | Self::SameNumber
            | Self::NumberMentioned
            | Self::SameAccount
            | Self::SameStationery
            | Self::Supporting
            | Self::Headless => EvidenceSide::Continues,
        }
    }
}
