//! How certain a value is that was not weighed against others, or that none was found: from how it
//! was found, and what else on the document makes it.
//!
//! A claim that a document has no such value can be wrong as well, so it has a certainty, too. The
//! weights are log-odds (`config/reader.toml`, `weights.claim`).

use serde::{Deserialize, Serialize};

use super::parameters::parameters;

/// How a value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReadingSign {
    /// Net amount, tax and total are printed, and add up.
    AddsUp,
    /// They do, with a tax of nothing.
    AddsUpUntaxed,
    /// The label alone says so, and no other amount has as good a label.
    LabelAlone,
    /// Other amounts have as good a label.
    Rivals,
    /// The tax that a printed rate makes of the total, where it is included.
    TaxByRate,
    /// The lines make this amount, or the net amount.
    LinesMakeIt,
    /// The lines make the total: nothing that was not found is added to them.
    AllByLines,
    /// The total was paid: what was handed over, less the change, or by card.
    PaidMakesIt,
    /// No amount of money on the document is larger.
    Largest,
    /// Another labelled total is larger.
    Outdone,
    /// Under the total stands an amount that nothing names, and that is larger, or the same but for cents.
    OpenBelow,
    /// Amounts that nothing names make the total as a net amount and its tax do, or are the same.
    OpenParts,
    /// The field is the net amount.
    Net,
    /// The field is the tax.
    Tax,
    /// No net amount was found.
    NoNet,
    /// No tax was found.
    NoTax,
    /// No total was found.
    NoTotal,
    /// Taxes by rate make the total, and what they are on together is not printed.
    TaxedApart,
    /// The total was paid, and no label of this amount is printed.
    PaidWithout,
    /// A label of the field is printed all the same.
    LabelSeen,
    /// The currency is named as such.
    CurrencyNamed,
    /// It stands beside the total.
    CurrencyOfTotal,
    /// It stands beside most amounts.
    CurrencyCounted,
    /// It is that of the country, or what the language makes of a sign.
    CurrencyGuessed,
    /// It is that of the one country whose tax the page names, of those that share a sign.
    CurrencyByTax,
    /// It has a sign that several countries share, and the page names a tax of another one.
    CurrencyForeign,
    /// No currency was found.
    NoCurrency,
    /// The identifier is labelled as the issuer's.
    IdLabelled,
    /// It stands without such a label.
    IdBare,
    /// It has no country's prefix.
    IdNational,
    /// The document has several identifiers.
    IdRivals,
    /// It stands in the issuer's block.
    IdNearName,
    /// Its check digits hold.
    IdSound,
    /// No identifier was found.
    NoId,
    /// A text that can be one stands there, and nothing that is known names it.
    IdOpen,
    /// It stands right under another company or the recipient.
    AddressOfOther,
    /// The address stands on one line with the name.
    AddressOnLine,
    /// It stands under the name.
    AddressUnder,
    /// It stands elsewhere.
    AddressElsewhere,
    /// It stands beside its label in the section of the name.
    AddressLabelled,
    /// It stands under the name, without a postal code.
    AddressWithoutCode,
    /// Telephone, mail, account or identifier of the issuer stand in its block.
    AddressWithContact,
    /// It has a street with a number beside the town.
    AddressFull,
    /// A line of it was hardly legible.
    AddressFaint,
    /// None was found, but a line with a postal code is printed that is not the customer's.
    AddressSeen,
    /// No address was found.
    NoAddress,
    /// The issuer's name is doubtful.
    NameDoubtful,
    /// Read by OCR.
    Ocr,
    /// Read by OCR, and confirmed by a sum.
    OcrSum,
    /// Read by OCR, and nothing found.
    OcrAbsent,
    /// Read by OCR, and an address.
    OcrAddress,
    /// Read by OCR, and not confirmed by a sum.
    OcrAlone,
    /// Printed by a till.
    Till,
    /// Printed by a till, and nothing found.
    TillAbsent,
    /// Printed by a till, and an address.
    TillAddress,
    /// Was hardly legible.
    Faint,
}

use ReadingSign as S;

/// The sign of a value with these signs on a page read by OCR.
pub(super) fn sign_of_ocr(signs: &[ReadingSign]) -> ReadingSign {
    let has = |wanted: &[ReadingSign]| signs.iter().any(|sign| wanted.contains(sign));
    if has(&[S::NoNet, S::NoTax, S::NoTotal, S::NoCurrency, S::NoId, S::NoAddress]) {
        S::OcrAbsent
    } else if has(&[
        S::AddressOnLine,
        S::AddressUnder,
        S::AddressElsewhere,
        S::AddressLabelled,
        S::AddressWithoutCode,
    ]) {
        S::OcrAddress
    } else if has(&[S::AddsUp, S::AddsUpUntaxed, S::TaxByRate]) {
        S::OcrSum
    } else if has(&[S::LabelAlone, S::Rivals]) && !has(&[S::PaidMakesIt, S::LinesMakeIt]) {
        S::OcrAlone
    } else {
        S::Ocr
    }
}

/// The sign of a value with these signs on a receipt.
pub(super) fn sign_of_till(signs: &[ReadingSign]) -> ReadingSign {
    match sign_of_ocr(signs) {
        S::OcrAbsent => S::TillAbsent,
        S::OcrAddress => S::TillAddress,
        _ => S::Till,
    }
}

/// The certainty that signs add up to, 0..1.
pub(super) fn certainty_of(signs: &[ReadingSign]) -> f32 {
    parameters().weights.claim.share_certainty(&[signs]).first().copied().unwrap_or(0.0)
}
