//! Reads `rules.toml` into one flat form that has every key, so that a misspelt key is refused by
//! name and line; then each check takes what it needs and says what is missing.

use std::collections::BTreeMap;
use std::ops::Range;

use rust_decimal::Decimal;
use serde::Deserialize;
use toml::Spanned;

use super::{
    CashRounding, GateRule, PaymentFields, PaymentWords, RoundingMode, RuleCheck, RuleConsequence,
    ValueFormat,
};
use docmill_core::model::{ExtractionMethod, RuleSeverity, StatedConfidence};
use docmill_formats::notation::fold_text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRuleFile {
    #[serde(default)]
    include: Vec<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

/// The file's content, each part with its range in the text.
#[derive(Debug, Default)]
pub(in crate::kinds) struct ParsedRules {
    /// Kinds whose rules apply as well.
    pub(in crate::kinds) include: Vec<Spanned<String>>,
    pub(in crate::kinds) rules: Vec<(Range<usize>, GateRule)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    check: String,
    consequence: RuleConsequence,
    #[serde(default)]
    readers: Vec<ExtractionMethod>,
    weight: Option<f32>,
    #[serde(default)]
    only_ocr: bool,
    fields: Option<Vec<String>>,
    form: Option<ValueFormat>,
    digits: Option<u32>,
    due: Option<String>,
    decimals: Option<u32>,
    terms: Option<Vec<String>>,
    total: Option<String>,
    account: Option<String>,
    vat_id: Option<String>,
    totals: Option<Vec<String>>,
    list: Option<String>,
    lines: Option<String>,
    item: Option<String>,
    factors: Option<Vec<String>>,
    tolerance: Option<Decimal>,
    days_ahead: Option<i64>,
    years_back: Option<i64>,
    share: Option<f64>,
    level: Option<StatedConfidence>,
    severity: Option<RuleSeverity>,
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
    #[serde(default)]
    rest_of: Vec<String>,
    least: Option<f32>,
    #[serde(default)]
    phrases: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    given: Vec<String>,
    #[serde(default)]
    change: Vec<String>,
    #[serde(default)]
    charged: Vec<String>,
    currency: Option<String>,
    round_to: Option<BTreeMap<String, Decimal>>,
    #[serde(default)]
    digits_in: BTreeMap<String, u32>,
    #[serde(default)]
    round_mode: RoundingMode,
}

/// Reads the file; every problem at once, with its offset in the text.
pub(in crate::kinds) fn parse_rules(text: &str) -> Result<ParsedRules, Vec<(usize, String)>> {
    let file: RawRuleFile = toml::from_str(text).map_err(|error| {
        vec![(error.span().map_or(0, |span| span.start), error.message().to_owned())]
    })?;
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    let mut ends = file.rule.iter().skip(1).map(|raw| raw.span().start).collect::<Vec<_>>();
    ends.push(text.len());
    for (raw, end) in file.rule.into_iter().zip(ends) {
        let (start, raw) = (raw.span().start, raw.into_inner());
        let (name, consequence, readers) = (raw.name.clone(), raw.consequence, raw.readers.clone());
        let (weight, only_ocr) = (raw.weight, raw.only_ocr);
        match raw.into_check() {
            Ok(RuleCheck::NearDuplicate) if consequence != RuleConsequence::Flag => {
                problems.push((start, format!("rule `{name}`: near_duplicate can only flag")));
            }
            Ok(check) => {
                let rule = GateRule { name, check, consequence, readers, weight, only_ocr };
                rules.push((start..end, rule));
            }
            Err(problem) => problems.push((start, format!("rule `{name}`: {problem}"))),
        }
    }
    if problems.is_empty() {
        Ok(ParsedRules { include: file.include, rules })
    } else {
        Err(problems)
    }
}

impl RawRule {
    fn into_check(self) -> Result<RuleCheck, String> {
        let check = self.check.clone();
        Ok(match check.as_str() {
            "sum" | "no_gap" | "tax_rate" | "tax_by_rate" | "before_payment"
            | "payment_in_data" | "one_total" | "parts_in_data" | "amount_order" | "list_sum"
            | "list_product" | "tax_breakdown" | "confirmed" => self.into_amount_check()?,
            "einvoice_seen" => RuleCheck::EinvoiceSeen,
            "einvoice_usable" => RuleCheck::EinvoiceUsable,
            "einvoice_rules" => {
                RuleCheck::EinvoiceRules(self.severity.unwrap_or(RuleSeverity::Fatal))
            }
            "payment_code" => RuleCheck::PaymentCode(self.into_payment_fields()?),
            "payment_code_printed" => RuleCheck::PaymentCodePrinted(self.into_payment_fields()?),
            "payment_code_usable" => RuleCheck::PaymentCodeUsable,
            "account_country" => {
                let account = needed(self.account, &check, "account")?;
                RuleCheck::AccountCountry {
                    account,
                    vat_id: needed(self.vat_id, &check, "vat_id")?,
                }
            }
            "duplicate" => RuleCheck::Duplicate,
            "near_duplicate" => RuleCheck::NearDuplicate,
            "quality" => RuleCheck::Quality,
            "reader_succeeded" => RuleCheck::ReaderSucceeded,
            "confidence" => RuleCheck::Confidence(needed(self.level, &check, "level")?),
            "score" => RuleCheck::Score { least: needed(self.least, &check, "least")? },
            "no_instructions" => {
                let folded = self.phrases.iter().map(|phrase| format!(" {} ", fold_text(phrase)));
                RuleCheck::NoInstructions { phrases: folded.collect() }
            }
            "complete" => {
                let list = needed(self.list, &check, "list")?;
                RuleCheck::Complete { list, share: needed(self.share, &check, "share")? }
            }
            _ => self.into_value_check()?,
        })
    }

    /// The fields that codes for payments speak of.
    fn into_payment_fields(self) -> Result<PaymentFields, String> {
        Ok(PaymentFields {
            account: needed(self.account, &self.check, "account")?,
            total: needed(self.total, &self.check, "total")?,
            currency: needed(self.currency, &self.check, "currency")?,
        })
    }

    /// Checks of fields, each for itself.
    fn into_value_check(self) -> Result<RuleCheck, String> {
        let check = self.check.clone();
        let fields = needed(self.fields, &check, "fields");
        Ok(match check.as_str() {
            "required" => RuleCheck::Required(fields?),
            "format" => RuleCheck::Format(fields?, needed(self.form, &check, "form")?),
            "magnitude" => RuleCheck::Magnitude {
                fields: fields?,
                digits: needed(self.digits, &check, "digits")?,
                decimals: needed(self.decimals, &check, "decimals")?,
                currency: self.currency,
                digits_in: self.digits_in,
            },
            "printed_sign" => RuleCheck::PrintedSign(fields?),
            "date_order" => RuleCheck::DateOrder(fields?),
            "date_range" => RuleCheck::DateRange {
                fields: fields?,
                days_ahead: needed(self.days_ahead, &check, "days_ahead")?,
                years_back: needed(self.years_back, &check, "years_back")?,
            },
            "grounded" => {
                let (sums, rest_of) = (self.sums, self.rest_of);
                RuleCheck::Grounded { fields: fields?, sums, rest_of }
            }
            "not_contradicted" => {
                let (sums, rest_of) = (self.sums, self.rest_of);
                RuleCheck::NotContradicted { fields: fields?, sums, rest_of }
            }
            "date_beside" => RuleCheck::DateBeside { fields: fields?, words: self.words },
            "not_own_company" => RuleCheck::NotOwnCompany(fields?),
            "addressed_to_us" => RuleCheck::AddressedToUs(fields?),
            "grounded_words" => RuleCheck::GroundedWords {
                fields: fields?,
                share: needed(self.share, &check, "share")?,
            },
            "currency_printed" => RuleCheck::CurrencyPrinted(fields?),
            "known_account" => RuleCheck::KnownAccount(fields?),
            "own_account" => RuleCheck::OwnAccount(fields?),
            "known_currency" => RuleCheck::KnownCurrency(fields?),
            "known_form" => RuleCheck::KnownForm(fields?),
            "usual_amount" => {
                RuleCheck::UsualAmount { fields: fields?, most: needed(self.most, &check, "most")? }
            }
            "legible" => {
                RuleCheck::Legible { fields: fields?, least: needed(self.least, &check, "least")? }
            }
            "certain" => {
                RuleCheck::Certain { fields: fields?, least: needed(self.least, &check, "least")? }
            }
            other => return Err(format!("there is no check `{other}`")),
        })
    }

    /// Checks of amounts against each other.
    fn into_amount_check(self) -> Result<RuleCheck, String> {
        let check = self.check.clone();
        let tolerance = needed(self.tolerance, &check, "tolerance")?;
        Ok(match check.as_str() {
            "amount_order" => {
                let fields = needed(self.fields, &check, "fields")?;
                RuleCheck::AmountOrder { fields, tolerance }
            }
            "tax_rate" | "tax_by_rate" => {
                let net = needed(self.net, &check, "net")?;
                let tax = needed(self.tax, &check, "tax")?;
                let most = needed(self.most, &check, "most")?;
                let (list, per_item, words) = (self.list, self.per_item, self.words);
                match check.as_str() {
                    "tax_rate" => RuleCheck::TaxRate { net, tax, most, tolerance },
                    _ => RuleCheck::TaxByRate { net, tax, words, most, tolerance, list, per_item },
                }
            }
            "sum" => self.into_sum_check(tolerance)?,
            "no_gap" => {
                let terms = needed(self.terms, &check, "terms")?;
                let total = needed(self.total, &check, "total")?;
                let charges = self.charges;
                RuleCheck::NoGap { terms, total, tolerance, charges }
            }
            "before_payment" => {
                let total = needed(self.total, &check, "total")?;
                RuleCheck::BeforePayment { total, words: self.words, tolerance }
            }
            "payment_in_data" => {
                let total = needed(self.total, &check, "total")?;
                let due = needed(self.due, &check, "due")?;
                RuleCheck::PaymentInData { total, due, words: self.words, tolerance }
            }
            "one_total" => {
                RuleCheck::OneTotal { total: needed(self.total, &check, "total")?, tolerance }
            }
            "parts_in_data" => RuleCheck::PartsInData {
                list: needed(self.list, &check, "list")?,
                total: needed(self.total, &check, "total")?,
                words: self.words,
                tolerance,
            },
            _ => self.into_list_check(tolerance)?,
        })
    }

    fn into_sum_check(self, tolerance: Decimal) -> Result<RuleCheck, String> {
        let mode = self.round_mode;
        let rounding = match self.round_to {
            Some(to) => {
                let currency = needed(self.currency, "sum", "currency")?;
                Some(CashRounding { currency, to, mode })
            }
            None => None,
        };
        Ok(RuleCheck::Sum {
            terms: needed(self.terms, "sum", "terms")?,
            total: needed(self.total, "sum", "total")?,
            plus: self.plus,
            minus: self.minus,
            tolerance,
            charges: self.charges,
            rounding,
        })
    }

    /// Checks of a list's amounts.
    fn into_list_check(self, tolerance: Decimal) -> Result<RuleCheck, String> {
        let check = self.check.clone();
        let list = needed(self.list, &check, "list")?;
        let item = needed(self.item, &check, "item")?;
        Ok(match check.as_str() {
            "list_sum" => {
                let totals = needed(self.totals, &check, "totals")?;
                let (per_item, charges, sums) = (self.per_item, self.charges, self.sums);
                let (plus, minus) = (self.plus, self.minus);
                RuleCheck::ListSum {
                    list,
                    item,
                    totals,
                    tolerance,
                    per_item,
                    charges,
                    sums,
                    plus,
                    minus,
                }
            }
            "tax_breakdown" => {
                let factors = self.factors.unwrap_or_default();
                let [base, rate] = <[String; 2]>::try_from(factors)
                    .map_err(|_| format!("check `{check}` needs `factors`: base and rate"))?;
                RuleCheck::TaxBreakdown {
                    list,
                    base,
                    rate,
                    amount: item,
                    net: needed(self.net, &check, "net")?,
                    tax: needed(self.tax, &check, "tax")?,
                    lines: self.lines,
                    tolerance,
                    per_item: self.per_item,
                }
            }
            "list_product" => {
                let factors = needed(self.factors, &check, "factors")?;
                RuleCheck::ListProduct { list, factors, item, tolerance }
            }
            _ => {
                let terms = needed(self.terms, &check, "terms")?;
                let total = needed(self.total, &check, "total")?;
                let (given, change, charged) = (self.given, self.change, self.charged);
                let payment = PaymentWords { given, change, charged };
                let charges = self.charges;
                RuleCheck::Confirmed { terms, total, list, item, tolerance, charges, payment }
            }
        })
    }
}

/// The value of a key that the check cannot do without.
fn needed<T>(value: Option<T>, check: &str, key: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("check `{check}` needs `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_lacks_is_said_by_name() {
        for (text, problem) in [
            ("check='required'\nconsequence='flag'", "needs `fields`"),
            ("check='sum'\nconsequence='flag'\ntotal='t'\ntolerance='0.1'", "needs `terms`"),
            (
                "check='sum'\nconsequence='flag'\nterms=['a']\ntotal='t'\ntolerance='0.1'\nround_to={SEK='1'}",
                "needs `currency`",
            ),
            ("check='summ'\nconsequence='flag'", "no check `summ`"),
            (
                "check='tax_breakdown'\nconsequence='flag'\nlist='t'\nitem='a'\ntolerance='0.1'\nfactors=['b']",
                "needs `factors`: base and rate",
            ),
            ("check='quality'\nconsequence='flga'", "flga"),
            ("check='quality'\nconsequence='flag'\nfeilds=[]", "feilds"),
        ] {
            let problems = parse_rules(&format!("[[rule]]\nname='r'\n{text}\n")).unwrap_err();
            assert!(problems.iter().any(|(_, it)| it.contains(problem)), "{problems:?}");
        }
    }

    #[test]
    fn a_rule_is_read_with_its_consequence_and_readers() {
        let text = "[[rule]]\nname='r'\ncheck='sum'\nterms=['a','b']\ntotal='c'\n\
                    tolerance='0.05'\nconsequence='again'\nreaders=['llm']";
        let rules = parse_rules(text).unwrap();
        let (_, rule) = rules.rules.first().unwrap();
        assert_eq!(
            (rule.consequence, &rule.readers[..]),
            (RuleConsequence::Again, &[ExtractionMethod::Llm][..])
        );
        let RuleCheck::Sum { tolerance, .. } = &rule.check else { panic!("{:?}", rule.check) };
        assert_eq!(tolerance.to_string(), "0.05");
    }
}
