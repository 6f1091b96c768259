//! The checks of the gate and the consequence of a failed check, as `rules.toml` defines them.

mod read;

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

pub(super) use read::{ParsedRules, parse_rules};

use docmill_core::model::{ExtractionMethod, RuleSeverity, StatedConfidence};

/// The consequence of a failed rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleConsequence {
    /// Completed, but a person should review the data.
    Flag,
    /// Refused: a person decides.
    Review,
    /// Ask the next model of the chain; refuse the data on the last one.
    Again,
}

/// The form that a value must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFormat {
    /// A text that is not empty.
    Text,
    /// A day of the calendar, `YYYY-MM-DD`.
    Date,
    /// A decimal number.
    Number,
    /// A code of ISO 4217.
    Currency,
    /// The form of its country's VAT identifier.
    VatId,
    /// As `VatId`, and its check digits hold where their rule is public.
    VatIdDigits,
    /// An IBAN: its country's length, and its check digits (ISO 13616, mod 97).
    Iban,
    /// A BIC of 8 or 11 characters (ISO 9362).
    Bic,
    /// A name: it has letters, and is no identifier, account or address.
    Name,
    /// A postal address: several words, no identifier.
    Address,
    /// A document's number: it has a digit, and is no date, account or VAT identifier.
    Identifier,
}

/// The condition that a rule checks. Null fields are not checked, except by `Required`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their keys mean, the names are the file's")]
pub enum RuleCheck {
    /// The fields are not null.
    Required(Vec<String>),
    /// The fields have this form.
    Format(Vec<String>, ValueFormat),
    /// Numbers of at most so many digits before and after the mark; of others before it in some
    /// currencies.
    Magnitude {
        fields: Vec<String>,
        digits: u32,
        decimals: u32,
        currency: Option<String>,
        digits_in: BTreeMap<String, u32>,
    },
    /// Amounts are not printed with the other sign alone. Says nothing of a credit note: its amounts have
    /// no sign.
    PrintedSign(Vec<String>),
    /// `terms` and `plus` without `minus` add up to `total`. All terms have to be known;
    /// allowances, charges and prepayments in `plus` and `minus` count nothing where they are null.
    /// Also if what is between them is printed beside one of the words `charges`, or is the
    /// rounding of the total that is usual in its currency.
    Sum {
        terms: Vec<String>,
        plus: Vec<String>,
        minus: Vec<String>,
        total: String,
        tolerance: Decimal,
        charges: Vec<String>,
        rounding: Option<CashRounding>,
    },
    /// Where some of `terms` are known and others not, the known ones make `total` without them.
    NoGap { terms: Vec<String>, total: String, tolerance: Decimal, charges: Vec<String> },
    /// `tax` is a share of `net` that no printed percentage, or `most` where none is printed,
    /// falls short of. Rates may differ by line, so only the highest binds.
    TaxRate { net: String, tax: String, most: Decimal, tolerance: Decimal },
    /// `tax` is what the printed rates make of `net`: one of them of all of it, several of parts of
    /// it, or the sum of a printed table of taxes. A rate is a percentage up to `most` on a line
    /// with one of `words`; nothing is said where there is none. Tax may be rounded for each of so
    /// many entries of `list`, by `per_item`.
    TaxByRate {
        net: String,
        tax: String,
        words: Vec<String>,
        most: Decimal,
        tolerance: Decimal,
        list: Option<String>,
        per_item: Decimal,
    },
    /// `total` is not what is left of a printed amount after a payment that is printed beside one
    /// of `words`.
    BeforePayment { total: String, words: Vec<String>, tolerance: Decimal },
    /// `due` is not the whole `total` where the page prints a payment beside one of `words`, and what
    /// is left after it.
    PaymentInData { total: String, due: String, words: Vec<String>, tolerance: Decimal },
    /// No line prints another amount than `total` beside a label of it or of what is to be paid.
    OneTotal { total: String, tolerance: Decimal },
    /// `list` has entries where a line with one of `words` prints amounts that make `total`.
    PartsInData { list: String, total: String, words: Vec<String>, tolerance: Decimal },
    /// Amounts that do not fall, signs aside: net before gross.
    AmountOrder { fields: Vec<String>, tolerance: Decimal },
    /// The items' amounts add up to one of `totals`, but for a rounding of `per_item` each. Also
    /// if their sum is printed (beside one of the words `sums`), or an allowance or charge (beside
    /// one of `charges`) is the rest; or with the charges in `plus` and the allowances in `minus`.
    ListSum {
        list: String,
        item: String,
        totals: Vec<String>,
        tolerance: Decimal,
        per_item: Decimal,
        charges: Vec<String>,
        sums: Vec<String>,
        plus: Vec<String>,
        minus: Vec<String>,
    },
    /// The entries of `list` are what a tax is made of: in each, `base` and the percentage `rate`
    /// make `amount`; together the amounts are the field `tax`, and the bases no more than the field
    /// `net`. Tax may be rounded for each entry of `lines`, by `per_item`.
    TaxBreakdown {
        list: String,
        base: String,
        rate: String,
        amount: String,
        net: String,
        tax: String,
        lines: Option<String>,
        tolerance: Decimal,
        per_item: Decimal,
    },
    /// In each item the factors' product is the amount, or is but for a printed percentage, another
    /// number of its row, or a price for ten, a hundred or a thousand.
    ListProduct { list: String, factors: Vec<String>, item: String, tolerance: Decimal },
    /// `total` is confirmed by `terms`, alone or with a printed one of `charges`, by the list, or by
    /// the page: by printed net and tax, by rows that are lines beyond doubt, or by how it was paid.
    Confirmed {
        terms: Vec<String>,
        total: String,
        list: String,
        item: String,
        tolerance: Decimal,
        charges: Vec<String>,
        payment: PaymentWords,
    },
    /// No later field is before an earlier one.
    DateOrder(Vec<String>),
    /// Dates not further from today than this.
    DateRange { fields: Vec<String>, days_ahead: i64, years_back: i64 },
    /// Values stand on the document; `list.item` means that field of every item. A number that does
    /// not is as good as printed if it is what two or more values of one of `sums` make, all printed:
    /// the tax of an invoice that prints it rate by rate.
    /// So is what the second field of `rest_of` leaves of the first, where both are printed.
    Grounded { fields: Vec<String>, sums: Vec<String>, rest_of: Vec<String> },
    /// At least `share` of a text's words, and all with digits, stand on the document.
    GroundedWords { fields: Vec<String>, share: f64 },
    /// The currency is printed, or none is.
    CurrencyPrinted(Vec<String>),
    /// Values were read with at least this confidence (1 in native text), where they are found.
    Legible { fields: Vec<String>, least: f32 },
    /// The reader holds it at least this likely that each field is right: its value, or that there
    /// is none. Says nothing of fields that the reader does not weigh.
    Certain { fields: Vec<String>, least: f32 },
    /// No line of the document addresses a model: one of `phrases`, or the names of our fields.
    /// Phrases are folded, a space before and behind each.
    NoInstructions { phrases: Vec<String> },
    /// The list holds at least this share of what looks like its rows on the pages, or makes the total
    /// of a rule on its sum.
    Complete { list: String, share: f64 },
    /// The pages do not print other values than the attached XML, nor an account that it has not. A
    /// number is as good as printed by `sums` and `rest_of`, as in `Grounded`.
    NotContradicted { fields: Vec<String>, sums: Vec<String>, rest_of: Vec<String> },
    /// The pages beside the attached XML print the day, or no other one beside one of `words`.
    DateBeside { fields: Vec<String>, words: Vec<String> },
    /// The pages beside the attached XML are text that it was held against, and show nothing else.
    EinvoiceSeen,
    /// The e-invoice that the document carries, if it does, could be used.
    EinvoiceUsable,
    /// The e-invoice breaks no official rule of this severity or a graver one.
    EinvoiceRules(RuleSeverity),
    /// No code on the pages orders another payment than these fields say.
    PaymentCode(PaymentFields),
    /// Codes for payments that the pages carry keep their own rules, and order the same.
    PaymentCodeUsable,
    /// Account and total of a payment code are printed as well.
    PaymentCodePrinted(PaymentFields),
    /// The account is one that was confirmed of this supplier, if one was.
    KnownAccount(Vec<String>),
    /// The account was not confirmed of another supplier alone.
    OwnAccount(Vec<String>),
    /// The account's country is that of the VAT identifier, or the document or what was confirmed explains
    /// the difference.
    AccountCountry { account: String, vat_id: String },
    /// The currency is one that was confirmed of this supplier, if one was.
    KnownCurrency(Vec<String>),
    /// The number has the form of all that were confirmed of this supplier.
    KnownForm(Vec<String>),
    /// The amount is no more than so many times the largest that was confirmed of this supplier.
    UsualAmount { fields: Vec<String>, most: Decimal },
    /// The supplier's fields are no own company's, nor left empty beside one's.
    NotOwnCompany(Vec<String>),
    /// Where the buyer is known, the document names an own company.
    AddressedToUs(Vec<String>),
    /// No earlier document has the same supplier and number.
    Duplicate,
    /// No earlier document shares day and total, and supplier or number. Asked at recording alone.
    NearDuplicate,
    /// The transcript's quality reaches the configured threshold.
    Quality,
    /// The reader reports success.
    ReaderSucceeded,
    /// The reader's own confidence is at least this.
    Confidence(StatedConfidence),
    /// The verdict's score is at least this. Applied after all others.
    Score { least: f32 },
}

/// Words, folded, beside which tills print how a total was paid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PaymentWords {
    /// Words beside the amount handed over.
    pub given: Vec<String>,
    /// Words beside the change given back.
    pub change: Vec<String>,
    /// Words beside the amount charged to a card.
    pub charged: Vec<String>,
}

/// The fields that codes for payments speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentFields {
    /// The account to pay to.
    pub account: String,
    /// How much.
    pub total: String,
    /// In which currency.
    pub currency: String,
}

/// How totals are rounded where there are no smaller coins.
#[derive(Debug, Clone, PartialEq)]
pub struct CashRounding {
    /// The field of the currency.
    pub currency: String,
    /// The unit that a total is a multiple of, by currency.
    pub to: BTreeMap<String, Decimal>,
    /// In which direction totals are rounded.
    pub mode: RoundingMode,
}

/// In which direction a total is rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundingMode {
    /// To the nearest multiple; halves either way, for both are in use.
    #[default]
    Nearest,
    /// To the next multiple away from zero.
    Up,
    /// To the next multiple towards zero.
    Down,
}

/// One named check with its consequence.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRule {
    /// Stable name: what a person sees as the reason.
    pub name: String,
    /// The condition that has to hold.
    pub check: RuleCheck,
    /// The consequence of a failure.
    pub consequence: RuleConsequence,
    /// Readers whose data it applies to; empty: all.
    pub readers: Vec<ExtractionMethod>,
    /// The loss of score by a failure, in log-odds; `None`: by the consequence.
    pub weight: Option<f32>,
    /// Only for documents of which a page was read by OCR.
    pub only_ocr: bool,
}

impl RuleCheck {
    /// Whether it fails only for lack of a second source, which a code on the page can be.
    pub fn asks_for_second_source(&self) -> bool {
        matches!(
            self,
            Self::Grounded { .. }
                | Self::Legible { .. }
                | Self::Certain { .. }
                | Self::Confirmed { .. }
        )
    }

    /// Whether it holds the data against what was confirmed of the supplier before.
    pub fn asks_for_history(&self) -> bool {
        matches!(
            self,
            Self::KnownAccount(_)
                | Self::OwnAccount(_)
                | Self::AccountCountry { .. }
                | Self::KnownCurrency(_)
                | Self::KnownForm(_)
                | Self::UsualAmount { .. }
        )
    }

    /// The fields it names, for holding them against the schema; `a.b` is a field of a list.
    pub fn named_fields(&self) -> Vec<String> {
        match self {
            Self::Required(fields)
            | Self::Format(fields, _)
            | Self::PrintedSign(fields)
            | Self::DateOrder(fields)
            | Self::DateRange { fields, .. }
            | Self::DateBeside { fields, .. }
            | Self::GroundedWords { fields, .. }
            | Self::Legible { fields, .. }
            | Self::Certain { fields, .. }
            | Self::KnownAccount(fields)
            | Self::OwnAccount(fields)
            | Self::KnownCurrency(fields)
            | Self::KnownForm(fields)
            | Self::UsualAmount { fields, .. }
            | Self::AmountOrder { fields, .. }
            | Self::NotOwnCompany(fields)
            | Self::AddressedToUs(fields)
            | Self::CurrencyPrinted(fields) => fields.clone(),
            Self::Magnitude { fields, currency, .. } => {
                fields.iter().chain(currency).cloned().collect()
            }
            Self::Grounded { fields, sums, rest_of }
            | Self::NotContradicted { fields, sums, rest_of } => {
                [fields.clone(), sums.clone(), rest_of.clone()].concat()
            }
            Self::Sum { terms, plus, minus, total, rounding, .. } => {
                let currency = rounding.iter().map(|rounding| rounding.currency.clone()).collect();
                let total = vec![total.clone()];
                [terms.clone(), plus.clone(), minus.clone(), total, currency].concat()
            }
            Self::BeforePayment { total, .. } => vec![total.clone()],
            Self::NoGap { terms, total, .. } => [terms.clone(), vec![total.clone()]].concat(),
            Self::Confirmed { terms, total, list, item, .. } => {
                [terms.clone(), vec![total.clone(), item_field(list, item)]].concat()
            }
            Self::Complete { list, .. } => vec![list.clone()],
            Self::AccountCountry { account, vat_id } => vec![account.clone(), vat_id.clone()],
            Self::PaymentInData { total, due, .. } => vec![total.clone(), due.clone()],
            Self::TaxRate { .. }
            | Self::TaxByRate { .. }
            | Self::TaxBreakdown { .. }
            | Self::ListSum { .. }
            | Self::PaymentCode(_)
            | Self::PaymentCodePrinted(_)
            | Self::OneTotal { .. }
            | Self::PartsInData { .. }
            | Self::ListProduct { .. } => self.fields_of_amounts(),
            Self::EinvoiceSeen
            | Self::EinvoiceUsable
            | Self::EinvoiceRules(_)
            | Self::PaymentCodeUsable
            | Self::Duplicate
            | Self::NearDuplicate
            | Self::Quality
            | Self::ReaderSucceeded
            | Self::Confidence(_)
            | Self::Score { .. }
            | Self::NoInstructions { .. } => Vec::new(),
        }
    }

    /// The same of a check of taxes, lines, totals or codes; none of any other.
    fn fields_of_amounts(&self) -> Vec<String> {
        match self {
            Self::TaxRate { net, tax, .. } => vec![net.clone(), tax.clone()],
            Self::TaxByRate { net, tax, list, .. } => {
                [net, tax].into_iter().chain(list).cloned().collect()
            }
            Self::TaxBreakdown { list, base, rate, amount, net, tax, lines, .. } => {
                let items = [base, rate, amount].map(|item| item_field(list, item));
                items.into_iter().chain([net.clone(), tax.clone()]).chain(lines.clone()).collect()
            }
            Self::ListSum { list, item, totals, plus, minus, .. } => {
                [totals.clone(), vec![item_field(list, item)], plus.clone(), minus.clone()].concat()
            }
            Self::PaymentCode(fields) | Self::PaymentCodePrinted(fields) => {
                let PaymentFields { account, total, currency } = fields.clone();
                vec![account, total, currency]
            }
            Self::OneTotal { total, .. } => vec![total.clone()],
            Self::PartsInData { list, total, .. } => vec![list.clone(), total.clone()],
            Self::ListProduct { list, factors, item, .. } => {
                factors.iter().chain([item]).map(|field| item_field(list, field)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The field of a list's items, as rules name it.
fn item_field(list: &str, item: &str) -> String {
    format!("{list}.{item}")
}
