//! UBL 2.1: invoice and credit note, which differ in the names of the line and its quantity.

use roxmltree::Node;
use serde_json::Value;

use super::element::{address, all, day, first, first_text, in_currency, number, plain, text};
use super::{Fields, Flaw, is_credit_note, line};

/// An invoice.
pub(super) const INVOICE: &str = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";
/// A credit note.
pub(super) const CREDIT_NOTE: &str = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2";

pub(super) fn read(root: Node<'_, '_>) -> Result<Fields, Flaw> {
    let is_note = root.tag_name().name() == "CreditNote";
    let whole = Some(root);
    let seller = first(whole, &["AccountingSupplierParty/Party"]);
    let currency = text(first(whole, &["DocumentCurrencyCode"]))?;
    let taxes = all(root, "TaxTotal/TaxAmount");
    let sums = first(whole, &["LegalMonetaryTotal"]);
    let code = text(first(whole, &["InvoiceTypeCode", "CreditNoteTypeCode"]))?;
    let names = ["PartyName/Name", "PartyLegalEntity/RegistrationName"];
    let [trading, registered] = names.map(|path| first(seller, &[path]));
    Ok(Fields {
        is_credit_note: is_note || is_credit_note(&code),
        supplier_name: first_text([trading, registered])?,
        supplier_address: postal(first(seller, &["PostalAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        number: text(first(whole, &["ID"]))?,
        date: day(first(whole, &["IssueDate"]))?,
        due_date: day(first(whole, &["DueDate", "PaymentMeans/PaymentDueDate"]))?,
        lines: lines(root, is_note)?,
        subtotal: number(first(sums, &["TaxExclusiveAmount"]))?,
        vat_amount: number(in_currency(taxes, &currency))?,
        total: number(first(sums, &["TaxInclusiveAmount"]))?,
        currency,
    })
}

fn postal(place: Option<Node<'_, '_>>) -> Result<Value, Flaw> {
    let part = |name| first(place, &[name]);
    let lines = [part("StreetName"), part("AdditionalStreetName"), part("AddressLine/Line")];
    let country = part("Country/IdentificationCode");
    address(&lines, part("PostalZone"), part("CityName"), country)
}

fn vat_id(seller: Option<Node<'_, '_>>) -> Result<Value, Flaw> {
    let schemes = seller.map_or_else(Vec::new, |seller| all(seller, "PartyTaxScheme"));
    for scheme in schemes {
        let id = plain(first(Some(scheme), &["TaxScheme/ID"]))?;
        if matches!(id.as_deref(), Some("VAT" | "VA")) {
            return text(first(Some(scheme), &["CompanyID"]));
        }
    }
    Ok(Value::Null)
}

fn lines(root: Node<'_, '_>, is_note: bool) -> Result<Vec<Value>, Flaw> {
    let (name, quantity) = if is_note {
        ("CreditNoteLine", "CreditedQuantity")
    } else {
        ("InvoiceLine", "InvoicedQuantity")
    };
    let mut lines = Vec::new();
    for item in all(root, name) {
        let part = |path| first(Some(item), &[path]);
        let what = first_text([part("Item/Name"), part("Item/Description")])?;
        let quantity = number(part(quantity))?;
        let price = number(part("Price/PriceAmount"))?;
        lines.push(line(what, quantity, price, number(part("LineExtensionAmount"))?));
    }
    Ok(lines)
}
