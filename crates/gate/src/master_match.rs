//! Which supplier and order of the master data a document belongs to, and what contradicts that.
//!
//! A VAT identifier counts more than an account, and an account more than a name. Not promised: the sum
//! of several invoices against one order.

use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::GateFinding;
use super::subject::json_decimal;
use crate::kinds::{FieldRole, Kind, RuleConsequence};
use docmill_core::model::{
    MasterHits, MasterMarkSort, MasterMatch, MasterOrder, MasterQuery, OrderMatch, SupplierMatch,
};
use docmill_formats::notation::party_name::{fold_letters, name_key};

/// A value belongs to another supplier than the surer ones.
const CONTRADICTED: &str = "supplier_contradicted";
/// The values belong to several suppliers alike.
const AMBIGUOUS: &str = "supplier_ambiguous";
/// The order is another supplier's.
const OTHER_SUPPLIER: &str = "order_of_other_supplier";
/// The document is over the order's amount, or in another currency.
const EXCEEDED: &str = "order_exceeded";

/// The values of data that are searched for in master data, folded as [`fold_mark`].
pub fn master_query(data: &Map<String, Value>, kind: &Kind) -> MasterQuery {
    MasterQuery {
        vat_id: fold_mark(MasterMarkSort::VatId, text_of(data, kind, FieldRole::SupplierVatId)),
        account: fold_mark(MasterMarkSort::Account, text_of(data, kind, FieldRole::Iban)),
        name: fold_mark(MasterMarkSort::Name, text_of(data, kind, FieldRole::SupplierName)),
        order: fold_letters(text_of(data, kind, FieldRole::OrderNumber)),
    }
}

fn text_of<'d>(data: &'d Map<String, Value>, kind: &Kind, role: FieldRole) -> &'d str {
    data.get(kind.field_of(role)).and_then(Value::as_str).unwrap_or_default()
}

/// A value as suppliers are found by it.
pub fn fold_mark(sort: MasterMarkSort, value: &str) -> String {
    match sort {
        MasterMarkSort::Name => name_key(value),
        MasterMarkSort::VatId | MasterMarkSort::Account => fold_letters(value),
    }
}

/// The match, and the findings that a person is to see.
pub fn match_master_data(
    data: &Map<String, Value>,
    kind: &Kind,
    hits: &MasterHits,
) -> (MasterMatch, Vec<GateFinding>) {
    let mut findings = Vec::new();
    let supplier = match_supplier(hits, kind, &mut findings);
    let order = match_order(hits, supplier.as_ref());
    if let Some(order) = order {
        let other = supplier.as_ref().zip(order.supplier.as_ref());
        if other.is_some_and(|(found, of_order)| found.number != *of_order) {
            findings.push(finding(OTHER_SUPPLIER, kind.field_of(FieldRole::OrderNumber)));
        }
        if is_exceeded(data, kind, order) {
            findings.push(finding(EXCEEDED, kind.field_of(FieldRole::Total)));
        }
    }
    let order = order.cloned().map(|order| {
        let MasterOrder { number, supplier, amount, currency } = order;
        OrderMatch { number, supplier, amount, currency }
    });
    (MasterMatch { supplier, order }, findings)
}

fn finding(rule: &str, field: &str) -> GateFinding {
    let (rule, field) = (rule.to_owned(), Some(field.to_owned()));
    GateFinding { rule, field, consequence: RuleConsequence::Flag }
}

/// Weights of evidence: each counts more than all behind it.
fn weight_of(sort: MasterMarkSort) -> u8 {
    match sort {
        MasterMarkSort::VatId => 4,
        MasterMarkSort::Account => 2,
        MasterMarkSort::Name => 1,
    }
}

fn field_of_sort(kind: &Kind, sort: MasterMarkSort) -> &str {
    kind.field_of(match sort {
        MasterMarkSort::VatId => FieldRole::SupplierVatId,
        MasterMarkSort::Account => FieldRole::Iban,
        MasterMarkSort::Name => FieldRole::SupplierName,
    })
}

fn match_supplier(
    hits: &MasterHits,
    kind: &Kind,
    findings: &mut Vec<GateFinding>,
) -> Option<SupplierMatch> {
    let mut numbers: Vec<&str> = hits.suppliers.iter().map(|hit| hit.number.as_str()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let weights: Vec<u8> = numbers.iter().map(|number| weight_of_number(hits, number)).collect();
    let most = *weights.iter().max()?;
    let mut best = numbers.iter().zip(&weights).filter(|(_, weight)| **weight == most);
    let (number, _) = best.next()?;
    if best.next().is_some() {
        findings.push(finding(AMBIGUOUS, kind.field_of(FieldRole::SupplierName)));
        return None;
    }
    let own = hits.suppliers.iter().filter(|hit| hit.number == **number);
    let mut by: Vec<MasterMarkSort> = own.clone().map(|hit| hit.sort).collect();
    by.sort_unstable();
    let mut against: Vec<MasterMarkSort> = hits.suppliers.iter().map(|hit| hit.sort).collect();
    against.sort_unstable();
    against.dedup();
    against.retain(|sort| !by.contains(sort));
    // Names are shared; an identifier or account is not.
    let grave = against
        .iter()
        .filter(|sort| **sort != MasterMarkSort::Name || by == [MasterMarkSort::Account]);
    findings.extend(grave.map(|sort| finding(CONTRADICTED, field_of_sort(kind, *sort))));
    let name = own.map(|hit| hit.name.clone()).next().unwrap_or_default();
    Some(SupplierMatch { number: (*number).to_owned(), name, by, against })
}

fn weight_of_number(hits: &MasterHits, number: &str) -> u8 {
    hits.suppliers.iter().filter(|hit| hit.number == number).map(|hit| weight_of(hit.sort)).sum()
}

/// The one order of the number; of several that of the supplier.
fn match_order<'h>(
    hits: &'h MasterHits,
    supplier: Option<&SupplierMatch>,
) -> Option<&'h MasterOrder> {
    if let [order] = hits.orders.as_slice() {
        return Some(order);
    }
    let number = supplier.map(|supplier| &supplier.number)?;
    let mut own = hits.orders.iter().filter(|order| order.supplier.as_ref() == Some(number));
    own.next().filter(|_| own.next().is_none())
}

/// Whether net and gross are over the order's amount, which may be either, or in another currency.
fn is_exceeded(data: &Map<String, Value>, kind: &Kind, order: &MasterOrder) -> bool {
    let currency = text_of(data, kind, FieldRole::Currency);
    let other =
        order.currency.as_deref().is_some_and(|own| !currency.is_empty() && own != currency);
    let amounts = [FieldRole::NetAmount, FieldRole::Total]
        .map(|role| data.get(kind.field_of(role)).and_then(json_decimal));
    let least = amounts.into_iter().flatten().min();
    let most = order.amount.as_deref().and_then(|amount| Decimal::from_str(amount).ok());
    other || least.zip(most).is_some_and(|(least, most)| least > most)
}
