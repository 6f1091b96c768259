//! Denmark's OIOUBL 2.01 to 2.1 (`CustomizationID` OIOUBL-2.x, guidelines of the Danish Business
//! Authority): UBL 2.0 with two meanings of its own. `TaxExclusiveAmount` is the sum of the taxes,
//! and duties stand among them beside VAT, whose scheme is `63` (Moms). Here duties become charges,
//! and the total without VAT is the total less the VAT. A payment by card (`PaymentMeansCode` 50 and
//! 93) has the kind of the card as its identifier: what it is for is the instruction. An account of a
//! Danish bank is its registration number and its own.

use roxmltree::Node;
use serde_json::Value;

use super::amounts::{column_sum, value_of};
use super::element::{ValueReader, decimal_of, element_at, elements_at, first_element, plain_text};
use super::fields::{DANISH_VAT, InvoiceXmlFields, PaymentAccounts, TaxRow, adjustment_value};
use super::ubl::bank_of;

/// Whether a UBL document is one of OIOUBL.
pub(super) fn is_oioubl(root: Node<'_, '_>) -> bool {
    plain_text(element_at(root, "CustomizationID")).is_some_and(|id| id.starts_with("OIOUBL-2"))
}

/// Sets the fields that OIOUBL states otherwise than UBL.
pub(super) fn settle_oioubl(
    root: Node<'_, '_>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    settle_payment(root, fields, reader);
    fields.taxes.clear();
    for row in elements_at(root, "TaxTotal/TaxSubtotal") {
        let one = Some(row);
        let scheme = first_element(one, &["TaxCategory/TaxScheme"]);
        let amount = reader.number("taxes", first_element(one, &["TaxAmount"]));
        if plain_text(first_element(scheme, &["ID"])).as_deref() != Some(DANISH_VAT) {
            let name = reader.text(first_element(scheme, &["Name"]));
            fields.charges.push(adjustment_value(name, Value::Null, amount));
            continue;
        }
        let category = match plain_text(first_element(one, &["TaxCategory/ID"])).as_deref() {
            Some("StandardRated") => Some("S"),
            Some("ZeroRated") => Some("Z"),
            Some("ReverseCharge") => Some("AE"),
            _ => None,
        };
        let tax = TaxRow {
            rate: reader.number("taxes", first_element(one, &["TaxCategory/Percent"])),
            base: reader.number("taxes", first_element(one, &["TaxableAmount"])),
            amount,
            category: category.into(),
            exemption_reason: Value::Null,
        };
        fields.taxes.push(tax.into_value());
    }
    fields.vat_amount = value_of(column_sum(&fields.taxes, "amount"));
    let net = decimal_of(&fields.total)
        .map(|total| total - decimal_of(&fields.vat_amount).unwrap_or_default());
    fields.subtotal = value_of(net);
    for (party, id) in [
        ("AccountingSupplierParty/Party", &mut fields.supplier_vat_id),
        ("AccountingCustomerParty/Party", &mut fields.buyer_vat_id),
    ] {
        for scheme in elements_at(root, &format!("{party}/PartyTaxScheme")) {
            let is_vat =
                plain_text(element_at(scheme, "TaxScheme/ID")).as_deref() == Some(DANISH_VAT);
            if is_vat && id.is_null() {
                *id = reader.text(element_at(scheme, "CompanyID"));
            }
        }
    }
}

/// Accounts and reference of the payment.
fn settle_payment(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let mut accounts = PaymentAccounts::default();
    for means in elements_at(root, "PaymentMeans") {
        let code = plain_text(element_at(means, "PaymentMeansCode")).unwrap_or_default();
        let is_card = matches!(code.as_str(), "50" | "93");
        let reference = if is_card { "InstructionID" } else { "PaymentID" };
        let references = [reference, "PayeeFinancialAccount/PaymentNote"];
        let reference = reader.first_text(references.map(|path| element_at(means, path)));
        let card = reader.text(element_at(means, "CreditAccount/AccountID"));
        accounts.add_way(card, Value::Null, reference.clone());
        for account in elements_at(means, "PayeeFinancialAccount") {
            let number = reader.text(element_at(account, "ID"));
            let bank = bank_of(account, reader);
            let parts = bank.as_str().zip(number.as_str()).filter(|_| code == "42");
            let whole = parts.map(|(bank, number)| format!("{bank} {number}").into());
            accounts.add_way(whole.unwrap_or(number), bank, reference.clone());
        }
    }
    fields.accounts = accounts;
}
