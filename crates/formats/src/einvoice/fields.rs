//! What both syntaxes of an e-invoice fill. Whether anything is there, and right, is not said here.

use serde_json::{Value, json};

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
    /// Invoice number (BT-1).
    pub(super) number: Value,
    /// Issue date (BT-2).
    pub(super) date: Value,
    /// Payment due date (BT-9).
    pub(super) due_date: Value,
    /// Invoice currency code (BT-5).
    pub(super) currency: Value,
    /// Invoice lines (BG-25).
    pub(super) lines: Vec<Value>,
    /// Total without VAT (BT-109).
    pub(super) subtotal: Value,
    /// Total VAT amount (BT-110).
    pub(super) vat_amount: Value,
    /// Total with VAT (BT-112).
    pub(super) total: Value,
}

/// A line of the invoice as the data has it.
pub(super) fn invoice_line_value(
    description: Value,
    quantity: Value,
    unit_price: Value,
    amount: Value,
) -> Value {
    json!({
        "description": description,
        "quantity": quantity,
        "unit_price": unit_price,
        "amount": amount,
    })
}

/// UNTDID 1001: the codes of EN 16931 that stand for credit notes.
pub(super) fn is_credit_note(type_code: &Value) -> bool {
    let codes =
        ["81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"];
    type_code.as_str().is_some_and(|code| codes.contains(&code))
}
