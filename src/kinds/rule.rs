//! `rules.toml`: what the gate checks, and what follows when a check fails.
//!
//! The file is read into one flat form that knows every key, so that a misspelt key is refused by
//! name and line; then each check takes what it needs and says what is missing.

use std::ops::Range;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::model::{Confidence, Reader};

/// What a failed rule leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// Completed, but a person should look.
    Flag,
    /// Refused: a person decides.
    Review,
    /// Try the next rung; refused on the last one.
    Again,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A text that is not empty.
    Text,
    /// A day of the calendar, `YYYY-MM-DD`.
    Date,
    /// A number.
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

/// What is checked. Fields that are null are not checked, except by `Required`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their keys mean, the names are the file's")]
pub enum Check {
    /// The fields are not null.
    Required(Vec<String>),
    /// The fields have this form.
    Format(Vec<String>, Form),
    /// Numbers of at most so many digits before and after the mark.
    Magnitude { fields: Vec<String>, digits: u32, decimals: u32 },
    /// `terms` and `plus` without `minus` add up to `total`. All terms have to be known; allowances,
    /// charges and prepayments in `plus` and `minus` count nothing where they are null.
    Sum {
        terms: Vec<String>,
        plus: Vec<String>,
        minus: Vec<String>,
        total: String,
        tolerance: Decimal,
    },
    /// `tax` is a share of `net` that no printed percentage, or `most` where none is printed,
    /// falls short of. Rates may differ by line, so only the highest binds.
    TaxRate { net: String, tax: String, most: Decimal, tolerance: Decimal },
    /// Amounts that do not fall, signs aside: net before gross.
    AmountOrder { fields: Vec<String>, tolerance: Decimal },
    /// The items' amounts add up to one of `totals`, but for a rounding of `per_item` each. Also
    /// if their sum is printed (beside one of the words `sums`), or an allowance or charge (beside
    /// one of `charges`) is the rest.
    ListSum {
        list: String,
        item: String,
        totals: Vec<String>,
        tolerance: Decimal,
        per_item: Decimal,
        charges: Vec<String>,
        sums: Vec<String>,
    },
    /// In each item the factors' product is the amount, or is but for a printed amount or
    /// percentage.
    ListProduct { list: String, factors: Vec<String>, item: String, tolerance: Decimal },
    /// `total` is confirmed by `terms`, by the list, or by the page: by printed net and tax, or by
    /// rows that are lines beyond doubt.
    Confirmed { terms: Vec<String>, total: String, list: String, item: String, tolerance: Decimal },
    /// No later field is before an earlier one.
    DateOrder(Vec<String>),
    /// Dates not further from today than this.
    DateRange { fields: Vec<String>, days_ahead: i64, years_back: i64 },
    /// Values stand on the document; `list.item` means that field of every item.
    Grounded(Vec<String>),
    /// At least `share` of a text's words, and all with digits, stand on the document.
    GroundedWords { fields: Vec<String>, share: f64 },
    /// The currency is printed, or none is.
    CurrencyPrinted(Vec<String>),
    /// Values were read with at least this confidence (1 in native text), where they are found.
    Legible { fields: Vec<String>, least: f32 },
    /// No line of the document speaks to a model: one of `phrases`, or the names of our fields.
    NoInstructions { phrases: Vec<String> },
    /// The list holds at least this share of what looks like its rows on the pages.
    Complete { list: String, share: f64 },
    /// The pages do not print other values in place of those that the attached XML says.
    NotContradicted(Vec<String>),
    /// The e-invoice that the document carries, if it does, could be used.
    EinvoiceUsable,
    /// No earlier document has the same supplier and number.
    Duplicate,
    /// The transcript's quality reaches the configured threshold.
    Quality,
    /// The reader says that it succeeded.
    ReaderSucceeded,
    /// The reader's own confidence is at least this.
    Confidence(Confidence),
    /// The verdict's score is at least this. Applied after all others.
    Score { least: f32 },
}

/// One named check with its consequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Stable name: what a person sees as the reason.
    pub name: String,
    /// What is checked.
    pub check: Check,
    /// What follows when it fails.
    pub consequence: Consequence,
    /// Readers whose data it applies to; empty: all.
    pub readers: Vec<Reader>,
    /// What a failure takes off the score, in units of log-odds; none: by the consequence.
    pub weight: Option<f32>,
    /// Only for documents of which a page was read by OCR.
    pub only_ocr: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    include: Vec<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Spanned<Raw>>,
}

/// What the file says, with the part of the text that each says it in.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Kinds whose rules apply as well.
    pub(super) include: Vec<Spanned<String>>,
    pub(super) rules: Vec<(Range<usize>, Rule)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    check: String,
    consequence: Consequence,
    #[serde(default)]
    readers: Vec<Reader>,
    weight: Option<f32>,
    #[serde(default)]
    only_ocr: bool,
    fields: Option<Vec<String>>,
    form: Option<Form>,
    digits: Option<u32>,
    decimals: Option<u32>,
    terms: Option<Vec<String>>,
    total: Option<String>,
    totals: Option<Vec<String>>,
    list: Option<String>,
    item: Option<String>,
    factors: Option<Vec<String>>,
    tolerance: Option<Decimal>,
    days_ahead: Option<i64>,
    years_back: Option<i64>,
    share: Option<f64>,
    level: Option<Confidence>,
    #[serde(default)]
    plus: Vec<String>,
    #[serde(default)]
    minus: Vec<String>,
    net: Option<String>,
    tax: Option<String>,
    most: Option<Decimal>,
    #[serde(default)]
    per_item: Decimal,
    #[serde(default)]
    charges: Vec<String>,
    #[serde(default)]
    sums: Vec<String>,
    least: Option<f32>,
    #[serde(default)]
    phrases: Vec<String>,
}

/// Reads the file; every problem at once, with its offset in the text.
pub(super) fn parse(text: &str) -> Result<Rules, Vec<(usize, String)>> {
    let file: File = toml::from_str(text).map_err(|error| {
        vec![(error.span().map_or(0, |span| span.start), error.message().to_owned())]
    })?;
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    let mut ends = file.rule.iter().skip(1).map(|raw| raw.span().start).collect::<Vec<_>>();
    ends.push(text.len());
    for (raw, end) in file.rule.into_iter().zip(ends) {
        let (start, raw) = (raw.span().start, raw.into_inner());
        let (name, consequence, readers) = (raw.name.clone(), raw.consequence, raw.readers.clone());
        let (weight, only_ocr) = (raw.weight, raw.only_ocr);
        match raw.check() {
            Ok(check) => {
                let rule = Rule { name, check, consequence, readers, weight, only_ocr };
                rules.push((start..end, rule));
            }
            Err(problem) => problems.push((start, format!("rule `{name}`: {problem}"))),
        }
    }
    if problems.is_empty() { Ok(Rules { include: file.include, rules }) } else { Err(problems) }
}

impl Raw {
    fn check(self) -> Result<Check, String> {
        let check = self.check.clone();
        let need = |key: &str| format!("check `{check}` needs `{key}`");
        Ok(match check.as_str() {
            "sum" | "tax_rate" | "amount_order" | "list_sum" | "list_product" | "confirmed" => {
                self.amounts()?
            }
            "einvoice_usable" => Check::EinvoiceUsable,
            "duplicate" => Check::Duplicate,
            "quality" => Check::Quality,
            "reader_succeeded" => Check::ReaderSucceeded,
            "confidence" => Check::Confidence(self.level.ok_or_else(|| need("level"))?),
            "score" => Check::Score { least: self.least.ok_or_else(|| need("least"))? },
            "no_instructions" => Check::NoInstructions { phrases: self.phrases },
            "complete" => {
                let list = self.list.ok_or_else(|| need("list"))?;
                Check::Complete { list, share: self.share.ok_or_else(|| need("share"))? }
            }
            _ => self.values()?,
        })
    }

    /// Checks of fields, each for itself.
    fn values(self) -> Result<Check, String> {
        let check = self.check.clone();
        let need = |key: &str| format!("check `{check}` needs `{key}`");
        let fields = self.fields.ok_or_else(|| need("fields"));
        Ok(match check.as_str() {
            "required" => Check::Required(fields?),
            "format" => Check::Format(fields?, self.form.ok_or_else(|| need("form"))?),
            "magnitude" => Check::Magnitude {
                fields: fields?,
                digits: self.digits.ok_or_else(|| need("digits"))?,
                decimals: self.decimals.ok_or_else(|| need("decimals"))?,
            },
            "date_order" => Check::DateOrder(fields?),
            "date_range" => Check::DateRange {
                fields: fields?,
                days_ahead: self.days_ahead.ok_or_else(|| need("days_ahead"))?,
                years_back: self.years_back.ok_or_else(|| need("years_back"))?,
            },
            "grounded" => Check::Grounded(fields?),
            "not_contradicted" => Check::NotContradicted(fields?),
            "grounded_words" => Check::GroundedWords {
                fields: fields?,
                share: self.share.ok_or_else(|| need("share"))?,
            },
            "currency_printed" => Check::CurrencyPrinted(fields?),
            "legible" => {
                Check::Legible { fields: fields?, least: self.least.ok_or_else(|| need("least"))? }
            }
            other => return Err(format!("there is no check `{other}`")),
        })
    }

    /// Checks of amounts against each other.
    fn amounts(self) -> Result<Check, String> {
        let check = self.check.clone();
        let need = |key: &str| format!("check `{check}` needs `{key}`");
        let tolerance = self.tolerance.ok_or_else(|| need("tolerance"))?;
        let list = self.list.ok_or_else(|| need("list"));
        let item = self.item.ok_or_else(|| need("item"));
        let terms = self.terms.ok_or_else(|| need("terms"));
        let total = self.total.ok_or_else(|| need("total"));
        Ok(match check.as_str() {
            "sum" => {
                let (plus, minus) = (self.plus, self.minus);
                Check::Sum { terms: terms?, plus, minus, total: total?, tolerance }
            }
            "tax_rate" => Check::TaxRate {
                net: self.net.ok_or_else(|| need("net"))?,
                tax: self.tax.ok_or_else(|| need("tax"))?,
                most: self.most.ok_or_else(|| need("most"))?,
                tolerance,
            },
            "amount_order" => {
                let fields = self.fields.ok_or_else(|| need("fields"))?;
                Check::AmountOrder { fields, tolerance }
            }
            "list_sum" => {
                let totals = self.totals.ok_or_else(|| need("totals"))?;
                let (per_item, charges, sums) = (self.per_item, self.charges, self.sums);
                let (list, item) = (list?, item?);
                Check::ListSum { list, item, totals, tolerance, per_item, charges, sums }
            }
            "list_product" => {
                let factors = self.factors.ok_or_else(|| need("factors"))?;
                Check::ListProduct { list: list?, factors, item: item?, tolerance }
            }
            _ => Check::Confirmed {
                terms: terms?,
                total: total?,
                list: list?,
                item: item?,
                tolerance,
            },
        })
    }
}

impl Check {
    /// The fields it names, for holding them against the schema; `a.b` is a field of a list.
    pub(super) fn fields(&self) -> Vec<String> {
        let within = |list: &String, item: &String| format!("{list}.{item}");
        match self {
            Self::Required(fields)
            | Self::Format(fields, _)
            | Self::Magnitude { fields, .. }
            | Self::DateOrder(fields)
            | Self::DateRange { fields, .. }
            | Self::NotContradicted(fields)
            | Self::GroundedWords { fields, .. }
            | Self::Legible { fields, .. }
            | Self::AmountOrder { fields, .. }
            | Self::CurrencyPrinted(fields)
            | Self::Grounded(fields) => fields.clone(),
            Self::Sum { terms, plus, minus, total, .. } => {
                [terms.as_slice(), plus, minus, std::slice::from_ref(total)].concat()
            }
            Self::TaxRate { net, tax, .. } => vec![net.clone(), tax.clone()],
            Self::ListSum { list, item, totals, .. } => {
                [totals.clone(), vec![within(list, item)]].concat()
            }
            Self::ListProduct { list, factors, item, .. } => {
                factors.iter().chain([item]).map(|field| within(list, field)).collect()
            }
            Self::Confirmed { terms, total, list, item, .. } => {
                [terms.clone(), vec![total.clone(), within(list, item)]].concat()
            }
            Self::Complete { list, .. } => vec![list.clone()],
            Self::EinvoiceUsable
            | Self::Duplicate
            | Self::Quality
            | Self::ReaderSucceeded
            | Self::Confidence(_)
            | Self::Score { .. }
            | Self::NoInstructions { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_lacks_is_said_by_name() {
        for (text, problem) in [
            ("check='required'\nconsequence='flag'", "needs `fields`"),
            ("check='sum'\nconsequence='flag'\ntotal='t'\ntolerance='0.1'", "needs `terms`"),
            ("check='summ'\nconsequence='flag'", "no check `summ`"),
            ("check='quality'\nconsequence='flga'", "flga"),
            ("check='quality'\nconsequence='flag'\nfeilds=[]", "feilds"),
        ] {
            let problems = parse(&format!("[[rule]]\nname='r'\n{text}\n")).unwrap_err();
            assert!(problems.iter().any(|(_, it)| it.contains(problem)), "{problems:?}");
        }
    }

    #[test]
    fn a_rule_is_read_with_its_consequence_and_readers() {
        let text = "[[rule]]\nname='r'\ncheck='sum'\nterms=['a','b']\ntotal='c'\n\
                    tolerance='0.05'\nconsequence='again'\nreaders=['llm']";
        let rules = parse(text).unwrap();
        let (_, rule) = rules.rules.first().unwrap();
        assert_eq!((rule.consequence, &rule.readers[..]), (Consequence::Again, &[Reader::Llm][..]));
        let Check::Sum { tolerance, .. } = &rule.check else { panic!("{:?}", rule.check) };
        assert_eq!(tolerance.to_string(), "0.05");
    }
}
