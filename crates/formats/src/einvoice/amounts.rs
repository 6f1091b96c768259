//! Exact arithmetic with the amounts of national formats, which leave totals to the reader that
//! EN 16931 states.

use std::collections::BTreeMap;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

use roxmltree::Node;

use super::element::{ValueReader, decimal_of, decimal_value, element_at};
use super::fields::{InvoiceXmlFields, InvoiceXmlLine, TaxRow, adjustment_value};

/// The number as the data has it; null for one that cannot be carried.
pub(super) fn value_of(number: Option<Decimal>) -> Value {
    number.and_then(decimal_value).unwrap_or_default()
}

/// The sum of the values that are numbers; `None` if there are none.
pub(super) fn sum_of<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<Decimal> {
    values.into_iter().filter_map(decimal_of).reduce(|sum, next| sum.saturating_add(next))
}

/// The value with its sign turned around; null stays null.
pub(super) fn negated(value: &Value) -> Value {
    value_of(decimal_of(value).map(|number| -number))
}

/// The sum of one cell of all entries of a list.
pub(super) fn column_sum(entries: &[Value], cell: &str) -> Option<Decimal> {
    sum_of(entries.iter().filter_map(|entry| entry.get(cell)))
}

/// The sums of the entries of each rate: lists with the cell of the amount and their sign. `None`: an
/// entry has no rate or no amount.
pub(super) fn sums_by_rate<'a>(
    lists: impl IntoIterator<Item = (&'a Vec<Value>, &'a str, Decimal)>,
) -> Option<BTreeMap<Decimal, Decimal>> {
    let mut sums: BTreeMap<Decimal, Decimal> = BTreeMap::new();
    for (list, amount, sign) in lists {
        let rate = if amount == "base" { "rate" } else { "tax_rate" };
        for entry in list {
            let (rate, amount) = (decimal_of(&entry[rate])?, decimal_of(&entry[amount])?);
            let sum = sums.entry(rate.normalize()).or_default();
            *sum = sum.saturating_add(amount.saturating_mul(sign));
        }
    }
    Some(sums)
}

/// A percentage of an amount, to the cent.
pub(super) fn share_of(base: &Value, percent: &Value) -> Value {
    let share = decimal_of(base).zip(decimal_of(percent));
    value_of(share.and_then(|(base, percent)| {
        let exact = base.checked_mul(percent)? / Decimal::ONE_HUNDRED;
        Some(exact.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero))
    }))
}

/// Notes the mandatory elements of a schema that are missing, by their names.
pub(super) fn note_missing(root: Node<'_, '_>, paths: &[&str], reader: &mut ValueReader) {
    for path in paths {
        if element_at(root, path).is_none() {
            let name = path.rsplit('/').next().unwrap_or_default();
            reader.note(format!("missing.{}", name.to_ascii_lowercase()));
        }
    }
}

impl InvoiceXmlLine {
    /// Makes the price that of the amount: for lines whose price stands before their own discounts.
    pub(super) fn take_price_from_amount(&mut self) {
        if decimal_of(&self.quantity).is_some_and(|quantity| !quantity.is_zero()) {
            self.price = self.amount.clone();
            self.price_base = self.quantity.clone();
            self.price_base_unit = Value::Null;
        }
    }
}

impl InvoiceXmlFields {
    /// Turns all signs around: a correction that takes money back becomes a credit note, whose
    /// amounts have none.
    pub(super) fn negate_amounts(&mut self) {
        for amount in [
            &mut self.subtotal,
            &mut self.vat_amount,
            &mut self.total,
            &mut self.paid_amount,
            &mut self.rounding_amount,
            &mut self.amount_due,
        ] {
            *amount = negated(amount);
        }
        for tax in &mut self.taxes {
            negate_cells(tax, &["base", "amount"]);
        }
        for entry in self.allowances.iter_mut().chain(&mut self.charges) {
            negate_cells(entry, &["amount"]);
        }
        for part in &mut self.instalments {
            negate_cells(part, &["amount"]);
        }
        for line in &mut self.lines {
            let price = line.get("unit_price").and_then(decimal_of);
            let quantity = line.get("quantity").and_then(decimal_of);
            let by_price = price.is_some_and(|price| price.is_sign_negative())
                && quantity.is_some_and(|quantity| !quantity.is_sign_negative());
            negate_cells(line, &["amount", if by_price { "unit_price" } else { "quantity" }]);
        }
    }

    /// Adds an amount that is part of the total and bears no VAT: stamp duty, other taxes.
    pub(super) fn add_untaxed_charge(&mut self, reason: Value, amount: Value) {
        self.subtotal = value_of(sum_of([&self.subtotal, &amount]));
        let row = TaxRow {
            rate: 0.into(),
            base: amount.clone(),
            amount: 0.into(),
            category: "O".into(),
            exemption_reason: reason.clone(),
        };
        self.taxes.push(row.into_value());
        self.charges.push(adjustment_value(reason, 0.into(), amount));
    }

    /// Adds a tax to the breakdown row with the same category and rate, or as a new row.
    pub(super) fn add_tax(&mut self, row: Value) {
        let alike = self.taxes.iter_mut().find(|own| {
            let mut cells = ["rate", "category", "exemption_reason"].iter();
            cells.all(|cell| own.get(*cell) == row.get(*cell))
        });
        let Some(own) = alike else {
            self.taxes.push(row);
            return;
        };
        for cell in ["base", "amount"] {
            let sum = sum_of([own.get(cell), row.get(cell)].into_iter().flatten());
            if let Some(value) = own.get_mut(cell) {
                *value = value_of(sum);
            }
        }
    }

    /// Subtotal and VAT as the sums of the breakdown.
    pub(super) fn sum_taxes(&mut self) {
        self.subtotal = value_of(column_sum(&self.taxes, "base"));
        self.vat_amount = value_of(column_sum(&self.taxes, "amount"));
    }
}

fn negate_cells(entry: &mut Value, cells: &[&str]) {
    for cell in cells {
        if let Some(value) = entry.get_mut(*cell) {
            *value = negated(value);
        }
    }
}
