//! Payment details beside the totals: account, terms, discount, taxes by rate.
//!
//! Each is read only with check digits, a sum or a label of its own; likely values stay null,
//! because these fields are not reviewed when missing.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::characters::{count_letters, has_digit};
use super::label_matches::LabelMatches;
use super::layout::TextCell;
use super::vocabulary::vocabulary;
use super::{FoundValue, RulesExtractor, abs_close, decimal_to_json, totals};
use docmill_formats::notation::{account, fold_text, number};
use docmill_gate::kinds::FieldRole;

/// No country's value added tax is higher, in percent.
const MAX_RATE: Decimal = Decimal::from_parts(27, 0, 0, false, 0);
/// A discount for early payment is no more than this, in percent.
const MAX_DISCOUNT: Decimal = Decimal::TEN;
/// A tax that was rounded.
const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);
/// Rows of taxes that are looked at, and combinations of them that are tried.
const MAX_TAX_ROWS: usize = 200;
const MAX_COMBINATIONS: usize = 10_000;
/// Letters of payment terms.
const MAX_TERMS_LETTERS: usize = 200;
/// Rows up or down from the account in which its bank is named.
const MAX_ROWS_TO_BANK: usize = 6;
/// One rate, the taxed amount where it is printed, and the tax.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TaxAtRate {
    /// Its name, if it is one of two on the same amount.
    name: Option<&'static str>,
    rate: Decimal,
    base: Option<Decimal>,
    amount: Decimal,
}

impl RulesExtractor<'_> {
    /// Reads them. After the totals, which taxes are held against.
    pub(super) fn read_payables(&mut self, matches: &LabelMatches<'_>) {
        let mut accounts = find_accounts(matches).into_iter();
        let iban = accounts.next();
        let bank = iban.as_ref().and_then(|iban| find_bank(matches, iban));
        self.put_text(FieldRole::Bic, bank);
        self.put_text(FieldRole::Iban, iban);
        let all: Value = accounts.as_slice().iter().map(|it| it.value.clone()).collect();
        let further = accounts.next().map(|it| it.map_value(|_| all));
        self.put_role(FieldRole::FurtherAccounts, further);
        self.put_text(FieldRole::PaymentTerms, find_terms(matches));
        self.put_role(FieldRole::CashDiscounts, self.find_discounts(matches));
        if self.value_of(FieldRole::OrderNumber).is_some_and(Value::is_null) {
            self.put_text(FieldRole::OrderNumber, find_glued_order(matches));
        }
        self.put_role(FieldRole::Taxes, self.find_taxes(matches));
    }

    /// `2 % Skonto innerhalb von 14 Tagen`: a percentage beside a word for the discount.
    fn find_discounts(&self, matches: &LabelMatches<'_>) -> Option<FoundValue<Value>> {
        let mut found: Vec<Value> = Vec::new();
        let mut place = None;
        for label_match in matches.of_role(FieldRole::CashDiscounts) {
            let Some(cell) = matches.cell_of(label_match) else { continue };
            let words = cell.all_words();
            let numbers = matches.layout.numbers_in(&words);
            let (shares, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|it| it.percent);
            let [share] = shares.as_slice() else { continue };
            if share.value <= Decimal::ZERO || share.value > MAX_DISCOUNT {
                continue;
            }
            let is_days = |end: usize| {
                words.get(end).is_some_and(|next| vocabulary().day.has(&fold_text(next)))
            };
            let days: Vec<Decimal> = others
                .iter()
                .filter(|it| it.decimals == 0 && is_days(it.words.end))
                .map(|it| it.value)
                .collect();
            // With more than one time the discount's own is ambiguous.
            let days = match days.as_slice() {
                [days] => decimal_to_json(*days),
                _ => Value::Null,
            };
            let entry = json!({ "percent": decimal_to_json(share.value), "days": days });
            if !found.contains(&entry) {
                found.push(entry);
                place = place.or(Some(cell));
            }
        }
        place.map(|cell| FoundValue::new(Value::Array(found), true, cell))
    }

    /// Taxes by rate, if together they are the tax that was read.
    fn find_taxes(&self, matches: &LabelMatches<'_>) -> Option<FoundValue<Value>> {
        let amount = |role: FieldRole| {
            let text = self.value_of(role)?.as_number()?.to_string();
            text.parse::<Decimal>().ok()
        };
        let tax = amount(FieldRole::TaxAmount).filter(|tax| !tax.is_zero())?;
        let sign = if tax.is_sign_negative() { -Decimal::ONE } else { Decimal::ONE };
        let net = amount(FieldRole::NetAmount).map(|net| net * sign);
        let (tax, net) = (tax.abs(), net.filter(|net| net.is_sign_positive()));
        let rows = self.tax_rows(matches);
        let first = rows.first().map(|(_, cell)| *cell);
        let by_rate = group_by_rate(rows.into_iter().map(|(one, _)| one));
        let made = combine_to_tax(&by_rate, tax, net).or_else(|| {
            // One rate for everything needs no table.
            let rate = *by_rate.first().filter(|_| by_rate.len() == 1)?.first()?;
            let made = net? * rate.rate / Decimal::ONE_HUNDRED;
            let whole = TaxAtRate { base: net, amount: tax, ..rate };
            abs_close(made, tax, CENT + CENT).then(|| vec![whole])
        })?;
        let value = |number: Option<Decimal>| number.map_or(Value::Null, decimal_to_json);
        let list = Value::Array(
            made.iter()
                .map(|it: &TaxAtRate| {
                    // The only rate is that of the whole net amount, if it makes the tax.
                    let whole = net.filter(|net| {
                        made.len() == 1
                            && abs_close(
                                net * it.rate / Decimal::ONE_HUNDRED,
                                it.amount,
                                CENT + CENT,
                            )
                    });
                    json!({
                        "rate": value(Some(it.rate)),
                        "base": value(it.base.or(whole).map(|base| base * sign)),
                        "amount": value(Some(it.amount * sign)),
                    })
                })
                .collect(),
        );
        first.map(|cell| FoundValue::new(list, true, cell))
    }

    /// Rows with a rate and the tax that it makes of a number beside it, or with a rate, a word for
    /// the tax, and one amount.
    fn tax_rows<'l>(&self, matches: &LabelMatches<'l>) -> Vec<(TaxAtRate, &'l TextCell)> {
        let mut found = Vec::new();
        let parts = totals::tax_parts(matches);
        for (at, range) in matches.layout.rows.iter().enumerate() {
            let cells = matches.layout.cells.get(range.clone()).unwrap_or_default();
            let numbers: Vec<number::FoundNumber> =
                cells.iter().flat_map(|it| matches.layout.numbers_of(it)).collect();
            let (shares, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|it| it.percent);
            let (Some(cell), [share]) = (cells.first(), shares.as_slice()) else { continue };
            let rate = share.value;
            if rate <= Decimal::ZERO || rate > MAX_RATE || found.len() >= MAX_TAX_ROWS {
                continue;
            }
            let money: Vec<Decimal> =
                others.iter().filter(|it| it.is_money()).map(|it| it.value.abs()).collect();
            let named = matches
                .in_cells(range.clone())
                .any(|label_match| label_match.has_role(FieldRole::TaxAmount));
            let name = parts.iter().find(|part| part.row == at).map(|part| part.name);
            if let Some((base, amount)) = base_and_tax(&money, rate) {
                // The base of two taxes is not part of the net amount for each.
                let base = Some(base).filter(|_| name.is_none());
                found.push((TaxAtRate { name, rate, base, amount }, cell));
            } else if let ([amount], true) = (money.as_slice(), named) {
                found.push((TaxAtRate { name, rate, base: None, amount: *amount }, cell));
            }
        }
        found
    }
}

/// Two of the amounts of which the second is the tax on the first.
fn base_and_tax(amounts: &[Decimal], rate: Decimal) -> Option<(Decimal, Decimal)> {
    amounts.iter().find_map(|base| {
        let made = base.checked_mul(rate)?.checked_div(Decimal::ONE_HUNDRED)?;
        let tax = amounts.iter().find(|tax| !tax.is_zero() && abs_close(**tax, made, CENT))?;
        Some((*base, *tax))
    })
}

/// By rate, and those of one rate by their names.
fn group_by_rate(rows: impl Iterator<Item = TaxAtRate>) -> Vec<Vec<TaxAtRate>> {
    let mut groups: Vec<Vec<TaxAtRate>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| {
            group.iter().any(|it: &TaxAtRate| it.rate == row.rate && it.name == row.name)
        }) {
            Some(group) if group.contains(&row) => {}
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// One row of each rate so that their taxes are the whole tax and their bases not more than the net
/// amount. Rows of the lines carry rates too: those do not add up.
fn combine_to_tax(
    groups: &[Vec<TaxAtRate>],
    tax: Decimal,
    net: Option<Decimal>,
) -> Option<Vec<TaxAtRate>> {
    let count = groups.iter().try_fold(1_usize, |all, group| all.checked_mul(group.len()))?;
    if groups.is_empty() || count > MAX_COMBINATIONS {
        return None;
    }
    (0..count).find_map(|number| {
        let mut rest = number;
        let chosen: Option<Vec<TaxAtRate>> = groups
            .iter()
            .map(|group| {
                let at = rest % group.len();
                rest /= group.len();
                group.get(at).copied()
            })
            .collect();
        let chosen = chosen?;
        let sum: Decimal = chosen.iter().map(|it| it.amount).sum();
        let bases: Decimal = chosen.iter().filter_map(|it| it.base).sum();
        let fits = net.is_none_or(|net| bases <= net + CENT);
        (sum == tax && fits).then_some(chosen)
    })
}

/// The printed accounts without duplicates and without the debited one. An account may be broken at
/// the end of its row.
fn find_accounts(matches: &LabelMatches<'_>) -> Vec<FoundValue<String>> {
    let debits = matches.of_field("debit").filter_map(|it| matches.cell_of(it));
    let debited: Vec<usize> = debits.map(|cell| cell.row).collect();
    let cells = &matches.layout.cells;
    let mut found: Vec<FoundValue<String>> = Vec::new();
    for cell in cells.iter().filter(|cell| debited.iter().all(|row| row.abs_diff(cell.row) > 1)) {
        let next =
            cells.get(cell.index + 1).filter(|it| cell.page == it.page && it.row == cell.row + 1);
        let words: Vec<_> =
            [Some(cell), next].iter().flatten().flat_map(|it| it.all_words()).collect();
        for start in 0..cell.words.len() {
            let account = account::find_iban_at(words.get(start..).unwrap_or_default());
            let new = account.filter(|(iban, _)| found.iter().all(|it| it.value != *iban));
            found.extend(new.map(|it| FoundValue::new(it.0, true, cell)));
        }
    }
    found
}

/// The bank of the account: named near it, and of its country.
fn find_bank(matches: &LabelMatches<'_>, iban: &FoundValue<String>) -> Option<FoundValue<String>> {
    let country = iban.value.get(..2)?;
    let row = matches
        .layout
        .cells
        .iter()
        .find(|cell| cell.page == iban.page && cell.line == iban.line)
        .map(|cell| cell.row)?;
    matches.of_role(FieldRole::Bic).find_map(|label_match| {
        let label = matches.cell_of(label_match)?;
        if label.page != iban.page || label.row.abs_diff(row) > MAX_ROWS_TO_BANK {
            return None;
        }
        matches.value_candidates(label_match).into_iter().find_map(|beside| {
            let words = beside.value_words();
            let mut plain =
                words.iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
            let bic =
                plain.find(|word| account::is_bic(word) && word.get(4..6) == Some(country))?;
            Some(FoundValue::new(bic.to_owned(), true, beside.cell))
        })
    })
}

/// `PO-4711`: the label is a part of the number, and no value of another label either.
fn find_glued_order(matches: &LabelMatches<'_>) -> Option<FoundValue<String>> {
    matches.of_role(FieldRole::OrderNumber).filter(|label_match| label_match.strong).find_map(
        |label_match| {
            let cell = matches.cell_of(label_match)?;
            let word = cell.words.get(label_match.words.end.checked_sub(1)?)?;
            let plain = word.trim_matches([':', ',', ';', '.', '(', ')']);
            let numbered = has_digit(plain);
            numbered.then(|| FoundValue::new(plain.to_owned(), true, cell))
        },
    )
}

/// The text beside the label of the terms: right of it, else below.
fn find_terms(matches: &LabelMatches<'_>) -> Option<FoundValue<String>> {
    matches
        .of_role(FieldRole::PaymentTerms)
        .filter(|label_match| label_match.words.start == 0)
        .find_map(|label_match| {
            let own = matches.cell_of(label_match)?;
            // To the end of the line: "30 days net" holds the label of a sum.
            let rest = own.words_in(label_match.words.end..own.words.len()).join(" ");
            let (text, cell) = if rest.contains(char::is_alphanumeric) {
                (rest, own)
            } else {
                let beside = matches.value_candidates(label_match).into_iter().next()?;
                (beside.value_words().join(" "), beside.cell)
            };
            let text = text.trim_matches([':', '-', '–', ' ', '.']);
            let letters = count_letters(text);
            (letters >= 3 && text.chars().count() <= MAX_TERMS_LETTERS)
                .then(|| FoundValue::new(text.to_owned(), true, cell))
        })
}
