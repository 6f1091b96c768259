//! The fields that both syntaxes of an e-invoice fill. Presence and correctness are not checked
//! here.

use serde_json::{Map, Value, json};

use super::defect::EinvoiceDefect;
use super::element::decimal_value;

/// The header fields and lines that both syntaxes fill.
#[derive(Debug, Default)]
pub(super) struct InvoiceXmlFields {
    pub(super) is_credit_note: bool,
    /// Seller name (BT-27) or trading name (BT-28).
    pub(super) supplier_name: Value,
    /// Seller address (BG-5) on one line.
    pub(super) supplier_address: Value,
    /// Seller VAT identifier (BT-31).
    pub(super) supplier_vat_id: Value,
    /// Buyer name (BT-44) or trading name (BT-45).
    pub(super) buyer_name: Value,
    /// Buyer VAT identifier (BT-48).
    pub(super) buyer_vat_id: Value,
    /// Invoice number (BT-1).
    pub(super) number: Value,
    /// Purchase order reference (BT-13).
    pub(super) order_number: Value,
    /// Issue date (BT-2).
    pub(super) date: Value,
    /// Payment due date (BT-9).
    pub(super) due_date: Value,
    /// Payment terms (BT-20).
    pub(super) payment_terms: Value,
    /// Discounts for early payment: beside the terms, or written into them (`#SKONTO#`).
    pub(super) cash_discounts: Vec<Value>,
    /// Payment account identifier (BT-84), where it is an IBAN.
    pub(super) iban: Value,
    /// Payment service provider identifier (BT-86) of that account.
    pub(super) bic: Value,
    /// Invoice currency code (BT-5).
    pub(super) currency: Value,
    /// Invoice lines (BG-25).
    pub(super) lines: Vec<Value>,
    /// Document level allowances (BG-20).
    pub(super) allowances: Vec<Value>,
    /// Document level charges (BG-21).
    pub(super) charges: Vec<Value>,
    /// VAT breakdown (BG-23).
    pub(super) taxes: Vec<Value>,
    /// Total without VAT (BT-109).
    pub(super) subtotal: Value,
    /// Total VAT amount (BT-110).
    pub(super) vat_amount: Value,
    /// Total with VAT (BT-112).
    pub(super) total: Value,
    /// Paid amount (BT-113).
    pub(super) paid_amount: Value,
    /// Rounding amount (BT-114).
    pub(super) rounding_amount: Value,
    /// Amount due for payment (BT-115).
    pub(super) amount_due: Value,
}

/// A line of the invoice.
#[derive(Debug, Default)]
pub(super) struct InvoiceXmlLine {
    /// Item name (BT-153) or description (BT-154).
    pub(super) description: Value,
    /// Item Seller's identifier (BT-155), else the standard one (BT-157).
    pub(super) article_number: Value,
    /// Invoiced quantity (BT-129).
    pub(super) quantity: Value,
    /// Its unit (BT-130), a code of UN/ECE Recommendation 20 or 21.
    pub(super) unit: Value,
    /// Item net price (BT-146).
    pub(super) unit_price: Value,
    /// Invoiced item VAT rate (BT-152), in percent.
    pub(super) tax_rate: Value,
    /// Line net amount (BT-131).
    pub(super) amount: Value,
}

impl InvoiceXmlLine {
    /// The line as the data has it.
    pub(super) fn into_value(self) -> Value {
        json!({
            "description": self.description,
            "article_number": self.article_number,
            "quantity": self.quantity,
            "unit": self.unit,
            "unit_price": self.unit_price,
            "tax_rate": self.tax_rate,
            "amount": self.amount,
        })
    }
}

/// An allowance or charge of the document as the data has it.
pub(super) fn adjustment_value(reason: Value, tax_rate: Value, amount: Value) -> Value {
    json!({ "reason": reason, "tax_rate": tax_rate, "amount": amount })
}

/// One rate of the VAT breakdown as the data has it.
pub(super) fn tax_value(rate: Value, base: Value, amount: Value) -> Value {
    json!({ "rate": rate, "base": base, "amount": amount })
}

/// A discount for early payment as the data has it; `None` without a percentage.
pub(super) fn cash_discount(percent: Value, days: Value) -> Option<Value> {
    (!percent.is_null()).then(|| json!({ "percent": percent, "days": days }))
}

/// The discounts that German invoices write into the payment terms by the convention of
/// `XRechnung`: `#SKONTO#TAGE=14#PROZENT=2.00#`.
///
/// # Errors
/// A marked discount whose numbers are none.
pub(super) fn parse_marked_discounts(terms: &Value) -> Result<Vec<Value>, EinvoiceDefect> {
    let mut found = Vec::new();
    let marked = terms.as_str().unwrap_or_default().split("#SKONTO#").skip(1);
    for text in marked {
        let keys: Map<String, Value> = text
            .split('#')
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().into()))
            .collect();
        let [percent, days] = ["PROZENT", "TAGE"].map(|key| {
            let value = keys.get(key).and_then(Value::as_str);
            value.map_or(Ok(Value::Null), decimal_value)
        });
        found.extend(cash_discount(percent?, days?));
    }
    Ok(found)
}

/// A list as the data has it: null where there is nothing.
pub(super) fn list_value(entries: Vec<Value>) -> Value {
    if entries.is_empty() { Value::Null } else { Value::Array(entries) }
}

/// An account as an IBAN: without its spaces. Null for what does not begin like one: many accounts
/// outside of the IBAN's countries are given in the same element.
pub(super) fn iban_value(account: &Value) -> Value {
    let compact: String =
        account.as_str().unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    let head: Vec<u8> = compact.bytes().take(4).collect();
    let begins = matches!(head.as_slice(), [a, b, c, d]
        if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && c.is_ascii_digit() && d.is_ascii_digit());
    if begins { Value::String(compact.to_uppercase()) } else { Value::Null }
}

/// UNTDID 1001: the codes of EN 16931 that stand for credit notes.
pub(super) fn is_credit_note(type_code: &Value) -> bool {
    let codes =
        ["81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"];
    type_code.as_str().is_some_and(|code| codes.contains(&code))
}
