//! How certain a value is that was not weighed against others, or that none was found: from how it
//! was found, and what else on the document makes it.
//!
//! A claim that a document has no such value can be wrong as well, so it has a certainty, too. The
//! weights are log-odds, fitted by `scripts/fit_reading.py` on the tune part of labelled documents.

use super::weighing::share_certainty;

/// How a value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadingSign {
    /// Net amount, tax and total are printed, and add up.
    AddsUp,
    /// They do, with a tax of nothing.
    AddsUpUntaxed,
    /// The label alone says so, and no other amount has as good a label.
    LabelAlone,
    /// Other amounts have as good a label.
    Rivals,
    /// The lines make this amount, or the net amount.
    LinesMakeIt,
    /// What was handed over, less the change, is the total.
    PaidMakesIt,
    /// No amount of money on the document is larger.
    Largest,
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
    /// No identifier was found.
    NoId,
    /// The address stands on one line with the name.
    AddressOnLine,
    /// It stands under the name.
    AddressUnder,
    /// It stands elsewhere.
    AddressElsewhere,
    /// No address was found.
    NoAddress,
    /// The issuer's name is doubtful.
    NameDoubtful,
    /// Read by OCR.
    Ocr,
    /// Was hardly legible.
    Faint,
}

use ReadingSign as S;

/// Log-odds of each sign.
const WEIGHTS: [(ReadingSign, f32); 31] = [
    (S::AddsUp, 3.7),
    (S::AddsUpUntaxed, 2.0),
    (S::LabelAlone, 1.3),
    (S::Rivals, 2.0),
    (S::LinesMakeIt, 1.7),
    (S::PaidMakesIt, 4.8),
    (S::Largest, 1.4),
    (S::Net, -0.4),
    (S::Tax, -0.6),
    (S::NoNet, 2.9),
    (S::NoTax, 3.4),
    (S::NoTotal, -3.5),
    (S::LabelSeen, -0.7),
    (S::CurrencyNamed, 4.0),
    (S::CurrencyOfTotal, 6.5),
    (S::CurrencyCounted, 2.0),
    (S::CurrencyGuessed, 1.2),
    (S::NoCurrency, 2.6),
    (S::IdLabelled, 4.2),
    (S::IdBare, 1.0),
    (S::IdNational, 2.6),
    (S::IdRivals, -4.8),
    (S::IdNearName, 3.9),
    (S::NoId, 5.9),
    (S::AddressOnLine, 2.8),
    (S::AddressUnder, 3.0),
    (S::AddressElsewhere, 2.4),
    (S::NoAddress, 1.4),
    (S::NameDoubtful, -1.2),
    (S::Ocr, -2.2),
    (S::Faint, -1.0),
];

/// The certainty that signs add up to, 0..1.
pub(super) fn certainty_of(signs: &[ReadingSign]) -> f32 {
    let of = WEIGHTS.iter().filter(|(sign, _)| signs.contains(sign));
    let score: f32 = of.map(|(_, weight)| weight).sum();
    share_certainty(&[score], 0.0).first().copied().unwrap_or(0.0)
}
