//! The account guard, and the other checks against what a tenant confirmed of a supplier before.
//!
//! They are apart from doubts of reading: a value may be read without any doubt and be news. An
//! unknown supplier has no history, and nothing is said of it. Not promised: that a confirmed account
//! is the supplier's; only that people confirmed it.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::checks::FailedFields;
use super::subject::{GateSubject, json_decimal};
use crate::kinds::RuleCheck;
use docmill_formats::notation::account::is_iban;
use docmill_formats::notation::printed_vat_id;
use docmill_formats::notation::vat_id::{has_valid_form, normalise_vat_id};

/// Confirmed numbers from which on their form says what is usual.
const MIN_NUMBERS: usize = 2;
/// Confirmed amounts from which on they say what is usual.
const MIN_AMOUNTS: usize = 3;
/// Digits by which a running number may be longer or shorter than those before it.
const MAX_DIGITS_APART: usize = 1;

/// Confirmed values of a document's supplier, and of other suppliers of its tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SupplierHistory {
    /// Accounts that count as the supplier's: letters and digits in upper case.
    pub accounts: BTreeSet<String>,
    /// Accounts of this document that were confirmed of other suppliers.
    pub accounts_of_others: BTreeSet<String>,
    /// Currencies of confirmed documents.
    pub currencies: BTreeSet<String>,
    /// Values of single fields in confirmed documents, the newest first.
    pub values: BTreeMap<String, Vec<Value>>,
}

impl SupplierHistory {
    /// Whether others than this account were confirmed of the supplier, and it was not.
    pub fn is_unknown_account(&self, account: &str) -> bool {
        !self.accounts.is_empty() && !self.accounts.contains(&plain_number(account))
    }

    /// Whether the account was confirmed of another supplier alone.
    pub fn is_account_of_other(&self, account: &str) -> bool {
        let account = plain_number(account);
        self.accounts_of_others.contains(&account) && !self.accounts.contains(&account)
    }
}

/// Letters and digits in upper case.
fn plain_number(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).collect()
}

/// The form of a number: runs of letters as they are, runs of digits as their length, marks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FormPart {
    Letters(String),
    Digits(usize),
    Mark(char),
}

/// The form of an identifier, for comparison by [`has_number_form`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberForm(Vec<FormPart>);

/// Reads the form of an identifier.
pub fn read_number_form(text: &str) -> NumberForm {
    let mut parts: Vec<FormPart> = Vec::new();
    for c in text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_uppercase) {
        match (parts.last_mut(), c) {
            (Some(FormPart::Digits(length)), '0'..='9') => *length += 1,
            (_, '0'..='9') => parts.push(FormPart::Digits(1)),
            (Some(FormPart::Letters(run)), c) if c.is_alphabetic() => run.push(c),
            (_, c) if c.is_alphabetic() => parts.push(FormPart::Letters(c.to_string())),
            (_, c) => parts.push(FormPart::Mark(c)),
        }
    }
    NumberForm(parts)
}

/// Whether both forms have the same parts; a run of digits may differ by one in length.
pub fn has_number_form(one: &NumberForm, other: &NumberForm) -> bool {
    one.0.len() == other.0.len()
        && one.0.iter().zip(&other.0).all(|pair| match pair {
            (FormPart::Digits(one), FormPart::Digits(other)) => {
                one.abs_diff(*other) <= MAX_DIGITS_APART
            }
            (one, other) => one == other,
        })
}

impl GateSubject<'_> {
    /// The fields that fail a check against what was confirmed.
    pub(super) fn failed_history(&self, check: &RuleCheck) -> FailedFields {
        match check {
            RuleCheck::KnownAccount(fields) => self.unknown_accounts(fields),
            RuleCheck::OwnAccount(fields) => self.accounts_of_others(fields),
            RuleCheck::AccountCountry { account, vat_id } => self
                .is_account_abroad(account, vat_id)
                .then(|| Some(account.clone()))
                .into_iter()
                .collect(),
            RuleCheck::KnownCurrency(fields) => self.unknown_currencies(fields),
            RuleCheck::KnownForm(fields) => self.unusual_numbers(fields),
            RuleCheck::UsualAmount { fields, most } => self.unusual_amounts(fields, *most),
            _ => Vec::new(),
        }
    }

    /// Accounts that were not confirmed of this supplier, of which others were.
    fn unknown_accounts(&self, fields: &[String]) -> FailedFields {
        let history = &self.lookups.history;
        self.fields_where(fields, |value| {
            value.as_str().is_some_and(|account| history.is_unknown_account(account))
        })
    }

    /// Accounts that were confirmed of another supplier and not of this one.
    fn accounts_of_others(&self, fields: &[String]) -> FailedFields {
        let history = &self.lookups.history;
        self.fields_where(fields, |value| {
            value.as_str().is_some_and(|account| history.is_account_of_other(account))
        })
    }

    /// Whether the account is of another country than the VAT identifier, and neither a confirmed
    /// document nor another VAT identifier on the pages is of the account's country.
    fn is_account_abroad(&self, account: &str, vat_id: &str) -> bool {
        let (Some(account), Some(vat_id)) =
            (self.field_value(account).as_str(), self.field_value(vat_id).as_str())
        else {
            return false;
        };
        let (account, vat_id) = (plain_number(account), normalise_vat_id(vat_id));
        if !is_iban(&account) || has_valid_form(&vat_id) != Some(true) {
            return false;
        }
        let of_account = match account.get(..2).unwrap_or_default() {
            // Companies of Monaco have French identifiers.
            "MC" => "FR",
            country => country,
        };
        !self.lookups.history.accounts.contains(&account)
            && country_of_vat_id(&vat_id) != of_account
            && !self.prints_vat_id_of(of_account)
    }

    /// Whether the pages print a VAT identifier of this country.
    fn prints_vat_id_of(&self, country: &str) -> bool {
        let lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        lines.into_iter().any(|line| {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            (0..words.len()).any(|at| {
                let found = printed_vat_id::find_at(words.get(at..).unwrap_or_default());
                found.is_some_and(|(id, _)| country_of_vat_id(&normalise_vat_id(&id)) == country)
            })
        })
    }

    /// Currencies that no confirmed document of this supplier has.
    fn unknown_currencies(&self, fields: &[String]) -> FailedFields {
        let known = &self.lookups.history.currencies;
        self.fields_where(fields, |value| {
            !known.is_empty() && value.as_str().is_some_and(|code| !known.contains(code))
        })
    }

    /// Numbers that have another form than all confirmed ones, where these have one form.
    fn unusual_numbers(&self, fields: &[String]) -> FailedFields {
        let unusual = fields.iter().filter(|field| {
            let Some(own) = self.field_value(field).as_str().map(read_number_form) else {
                return false;
            };
            let known = self.lookups.history.values.get(*field).into_iter().flatten();
            let known: Vec<NumberForm> =
                known.filter_map(Value::as_str).map(read_number_form).collect();
            let is_one_form = known.windows(2).all(|pair| match pair {
                [one, other] => has_number_form(one, other),
                _ => true,
            });
            known.len() >= MIN_NUMBERS
                && is_one_form
                && !known.iter().any(|form| has_number_form(form, &own))
        });
        unusual.map(|field| Some(field.clone())).collect()
    }

    /// Amounts of more than `most` times the largest confirmed one.
    fn unusual_amounts(&self, fields: &[String], most: Decimal) -> FailedFields {
        let unusual = fields.iter().filter(|field| {
            let known = self.lookups.history.values.get(*field).into_iter().flatten();
            let known: Vec<Decimal> =
                known.filter_map(json_decimal).map(|amount| amount.abs()).collect();
            let largest = known.iter().max().copied().unwrap_or_default();
            let bound = largest.checked_mul(most).unwrap_or(Decimal::MAX);
            let own = self.field_number(field).map(|amount| amount.abs());
            known.len() >= MIN_AMOUNTS
                && !largest.is_zero()
                && own.is_some_and(|amount| amount > bound)
        });
        unusual.map(|field| Some(field.clone())).collect()
    }
}

/// The country of a VAT identifier, as an IBAN names it.
fn country_of_vat_id(vat_id: &str) -> &str {
    match vat_id.get(..2).unwrap_or_default() {
        "EL" => "GR",
        "XI" => "GB",
        country => country,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_number_keeps_its_form_and_another_series_has_another() {
        let first = read_number_form("RE-2026/0099");
        for (other, same) in [
            ("RE-2026/0100", true),
            ("re-2027/10000", true),
            ("RE-2026-0100", false),
            ("GS-2026/0100", false),
            ("RE-2026/0100a", false),
            ("20260100", false),
            ("RE-2026/000100", false),
        ] {
            assert_eq!(has_number_form(&first, &read_number_form(other)), same, "{other}");
        }
    }

    #[test]
    fn the_country_of_a_vat_id_is_named_as_that_of_an_account() {
        for (vat_id, country) in [("DE1", "DE"), ("EL1", "GR"), ("CHE1", "CH"), ("XI1", "GB")] {
            assert_eq!(country_of_vat_id(vat_id), country);
        }
    }
}
