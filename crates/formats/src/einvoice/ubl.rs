//! UBL 2.1: invoice and credit note, which differ in the names of the line and its quantity.

use roxmltree::Node;
use serde_json::Value;

use super::defect::EinvoiceDefect;
use super::element::{
    amount_in_currency, date_value, elements_at, first_element, first_text_value, join_address,
    number_value, plain_text, text_value,
};
use super::fields::{InvoiceXmlFields, invoice_line_value, is_credit_note};

/// Namespace of a UBL invoice.
pub(super) const INVOICE: &str = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";
/// Namespace of a UBL credit note.
pub(super) const CREDIT_NOTE: &str = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2";

pub(super) fn parse_ubl(root: Node<'_, '_>) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    let is_note = root.tag_name().name() == "CreditNote";
    let whole = Some(root);
    let seller = first_element(whole, &["AccountingSupplierParty/Party"]);
    let currency = text_value(first_element(whole, &["DocumentCurrencyCode"]))?;
    let taxes = elements_at(root, "TaxTotal/TaxAmount");
    let sums = first_element(whole, &["LegalMonetaryTotal"]);
    let code = text_value(first_element(whole, &["InvoiceTypeCode", "CreditNoteTypeCode"]))?;
    let names = ["PartyName/Name", "PartyLegalEntity/RegistrationName"];
    let [trading, registered] = names.map(|path| first_element(seller, &[path]));
    Ok(InvoiceXmlFields {
        is_credit_note: is_note || is_credit_note(&code),
        supplier_name: first_text_value([trading, registered])?,
        supplier_address: postal_address(first_element(seller, &["PostalAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        number: text_value(first_element(whole, &["ID"]))?,
        date: date_value(first_element(whole, &["IssueDate"]))?,
        due_date: date_value(first_element(whole, &["DueDate", "PaymentMeans/PaymentDueDate"]))?,
        lines: invoice_lines(root, is_note)?,
        subtotal: number_value(first_element(sums, &["TaxExclusiveAmount"]))?,
        vat_amount: number_value(amount_in_currency(taxes, &currency))?,
        total: number_value(first_element(sums, &["TaxInclusiveAmount"]))?,
        currency,
    })
}

fn postal_address(place: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let part = |name| first_element(place, &[name]);
    let lines = [part("StreetName"), part("AdditionalStreetName"), part("AddressLine/Line")];
    let country = part("Country/IdentificationCode");
    join_address(&lines, part("PostalZone"), part("CityName"), country)
}

fn vat_id(seller: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let schemes = seller.map_or_else(Vec::new, |seller| elements_at(seller, "PartyTaxScheme"));
    for scheme in schemes {
        let id = plain_text(first_element(Some(scheme), &["TaxScheme/ID"]))?;
        if matches!(id.as_deref(), Some("VAT" | "VA")) {
            return text_value(first_element(Some(scheme), &["CompanyID"]));
        }
    }
    Ok(Value::Null)
}

fn invoice_lines(root: Node<'_, '_>, is_note: bool) -> Result<Vec<Value>, EinvoiceDefect> {
    let (name, quantity) = if is_note {
        ("CreditNoteLine", "CreditedQuantity")
    } else {
        ("InvoiceLine", "InvoicedQuantity")
    };
    let mut lines = Vec::new();
    for item in elements_at(root, name) {
        let part = |path| first_element(Some(item), &[path]);
        let what = first_text_value([part("Item/Name"), part("Item/Description")])?;
        let quantity = number_value(part(quantity))?;
        let price = number_value(part("Price/PriceAmount"))?;
        lines.push(invoice_line_value(
            what,
            quantity,
            price,
            number_value(part("LineExtensionAmount"))?,
        ));
    }
    Ok(lines)
}
