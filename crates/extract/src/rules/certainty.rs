//! The certainty of a value that was not weighed against others, or of its absence: from how it was
//! found, and from other values that make it.
//!
//! A wrong claim of absence is possible, so absence has a certainty as well. The weights are log-odds
//! in `config/reader.toml`, fitted by `scripts/corpus/fit_reading.py` on the tune part of labelled
//! documents.

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
    /// Only a label supports it, and no other amount has as good a label.
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
    /// An unlabelled amount under the total is larger, or the same but for cents.
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
    /// The total was paid, and no label of this amount is printed.
    PaidWithout,
    /// A label of the field is printed all the same.
    LabelSeen,
    /// The currency is named as such.
    CurrencyNamed,
    /// It is beside the total.
    CurrencyOfTotal,
    /// It is beside most amounts.
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
    /// It has no such label.
    IdBare,
    /// It has no country's prefix.
    IdNational,
    /// The document has several identifiers.
    IdRivals,
    /// It is in the issuer's block.
    IdNearName,
    /// Its check digits hold.
    IdSound,
    /// No identifier was found.
    NoId,
    /// A possible identifier has no known label.
    IdOpen,
    /// It is right under another company or the recipient.
    AddressOfOther,
    /// The address is on one line with the name.
    AddressOnLine,
    /// It is under the name.
    AddressUnder,
    /// It is elsewhere.
    AddressElsewhere,
    /// It is beside its label in the section of the name.
    AddressLabelled,
    /// It is under the name, without a postal code.
    AddressWithoutCode,
    /// The issuer's telephone, mail, account or identifier is in its block.
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
