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
    /// `terms` add up to `total`.
    Sum { terms: Vec<String>, total: String, tolerance: Decimal },
    /// The items' amounts add up to one of `totals`.
    ListSum { list: String, item: String, totals: Vec<String>, tolerance: Decimal },
    /// In each item the factors' product is the amount.
    ListProduct { list: String, factors: Vec<String>, item: String, tolerance: Decimal },
    /// `total` is confirmed by `terms` or by the list.
    Confirmed { terms: Vec<String>, total: String, list: String, item: String, tolerance: Decimal },
    /// No later field is before an earlier one.
    DateOrder(Vec<String>),
    /// Dates not further from today than this.
    DateRange { fields: Vec<String>, days_ahead: i64, years_back: i64 },
    /// Values stand on the document; `list.item` means that field of every item.
    Grounded(Vec<String>),
    /// The list holds at least this share of what looks like its rows on the pages.
    Complete { list: String, share: f64 },
    /// No earlier document has the same supplier and number.
    Duplicate,
    /// The transcript's quality reaches the configured threshold.
    Quality,
    /// The reader says that it succeeded.
    ReaderSucceeded,
    /// The reader's own confidence is at least this.
    Confidence(Confidence),
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
        match raw.check() {
            Ok(check) => rules.push((start..end, Rule { name, check, consequence, readers })),
            Err(problem) => problems.push((start, format!("rule `{name}`: {problem}"))),
        }
    }
    if problems.is_empty() { Ok(Rules { include: file.include, rules }) } else { Err(problems) }
}

impl Raw {
    fn check(self) -> Result<Check, String> {
        let check = self.check.clone();
        let need = |key: &str| format!("check `{check}` needs `{key}`");
        let fields = self.fields.ok_or_else(|| need("fields"));
        let list = self.list.ok_or_else(|| need("list"));
        let item = self.item.ok_or_else(|| need("item"));
        let terms = self.terms.ok_or_else(|| need("terms"));
        let total = self.total.ok_or_else(|| need("total"));
        let tolerance = self.tolerance.ok_or_else(|| need("tolerance"));
        Ok(match check.as_str() {
            "required" => Check::Required(fields?),
            "format" => Check::Format(fields?, self.form.ok_or_else(|| need("form"))?),
            "magnitude" => Check::Magnitude {
                fields: fields?,
                digits: self.digits.ok_or_else(|| need("digits"))?,
                decimals: self.decimals.ok_or_else(|| need("decimals"))?,
            },
            "sum" => Check::Sum { terms: terms?, total: total?, tolerance: tolerance? },
            "list_sum" => {
                let totals = self.totals.ok_or_else(|| need("totals"))?;
                Check::ListSum { list: list?, item: item?, totals, tolerance: tolerance? }
            }
            "list_product" => {
                let factors = self.factors.ok_or_else(|| need("factors"))?;
                Check::ListProduct { list: list?, factors, item: item?, tolerance: tolerance? }
            }
            "confirmed" => {
                let (terms, total, tolerance) = (terms?, total?, tolerance?);
                Check::Confirmed { terms, total, list: list?, item: item?, tolerance }
            }
            "date_order" => Check::DateOrder(fields?),
            "date_range" => Check::DateRange {
                fields: fields?,
                days_ahead: self.days_ahead.ok_or_else(|| need("days_ahead"))?,
                years_back: self.years_back.ok_or_else(|| need("years_back"))?,
            },
            "grounded" => Check::Grounded(fields?),
            "complete" => {
                Check::Complete { list: list?, share: self.share.ok_or_else(|| need("share"))? }
            }
            "duplicate" => Check::Duplicate,
            "quality" => Check::Quality,
            "reader_succeeded" => Check::ReaderSucceeded,
            "confidence" => Check::Confidence(self.level.ok_or_else(|| need("level"))?),
            other => return Err(format!("there is no check `{other}`")),
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
            | Self::Grounded(fields) => fields.clone(),
            Self::Sum { terms, total, .. } => [terms.clone(), vec![total.clone()]].concat(),
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
            Self::Duplicate | Self::Quality | Self::ReaderSucceeded | Self::Confidence(_) => {
                Vec::new()
            }
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
