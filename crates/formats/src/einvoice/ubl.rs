//! UBL 2.1: invoice and credit note, which differ in the names of the line and its quantity.

use roxmltree::Node;
use serde_json::Value;

use super::defect::EinvoiceDefect;
use super::element::{
    amount_in_currency, attribute_value, date_value, element_at, elements_at, first_element,
    first_text_value, join_address, number_value, plain_text, text_value,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, adjustment_value, cash_discount, iban_value, is_credit_note,
    parse_marked_discounts, tax_value,
};

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
    let buyer = first_element(whole, &["AccountingCustomerParty/Party"]);
    let terms = text_value(first_element(whole, &["PaymentTerms/Note"]))?;
    let (iban, bic) = find_account(root)?;
    let (allowances, charges) = read_adjustments(root)?;
    Ok(InvoiceXmlFields {
        is_credit_note: is_note || is_credit_note(&code),
        supplier_name: party_name(seller)?,
        supplier_address: postal_address(first_element(seller, &["PostalAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        buyer_name: party_name(buyer)?,
        buyer_vat_id: vat_id(buyer)?,
        order_number: text_value(first_element(whole, &["OrderReference/ID"]))?,
        cash_discounts: read_cash_discounts(root, &terms)?,
        payment_terms: terms,
        iban,
        bic,
        allowances,
        charges,
        taxes: read_taxes(root, &currency)?,
        number: text_value(first_element(whole, &["ID"]))?,
        date: date_value(first_element(whole, &["IssueDate"]))?,
        due_date: date_value(first_element(whole, &["DueDate", "PaymentMeans/PaymentDueDate"]))?,
        lines: invoice_lines(root, is_note)?,
        subtotal: number_value(first_element(sums, &["TaxExclusiveAmount"]))?,
        vat_amount: number_value(amount_in_currency(taxes, &currency))?,
        total: number_value(first_element(sums, &["TaxInclusiveAmount"]))?,
        paid_amount: number_value(first_element(sums, &["PrepaidAmount"]))?,
        rounding_amount: number_value(first_element(sums, &["PayableRoundingAmount"]))?,
        amount_due: number_value(first_element(sums, &["PayableAmount"]))?,
        currency,
    })
}

fn postal_address(place: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let lines = ["StreetName", "AdditionalStreetName", "AddressLine/Line"];
    let lines = lines.map(|name| first_element(place, &[name]));
    let [code, town, country] = ["PostalZone", "CityName", "Country/IdentificationCode"]
        .map(|name| first_element(place, &[name]));
    join_address(&lines, code, town, country)
}

fn party_name(party: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let names = ["PartyName/Name", "PartyLegalEntity/RegistrationName"];
    first_text_value(names.map(|path| first_element(party, &[path])))
}

fn vat_id(party: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let schemes = party.map_or_else(Vec::new, |party| elements_at(party, "PartyTaxScheme"));
    for scheme in schemes {
        let id = plain_text(first_element(Some(scheme), &["TaxScheme/ID"]))?;
        if matches!(id.as_deref(), Some("VAT" | "VA")) {
            return text_value(first_element(Some(scheme), &["CompanyID"]));
        }
    }
    Ok(Value::Null)
}

/// The first account of the payee that is an IBAN, and its bank.
fn find_account(root: Node<'_, '_>) -> Result<(Value, Value), EinvoiceDefect> {
    for account in elements_at(root, "PaymentMeans/PayeeFinancialAccount") {
        let iban = iban_value(&text_value(element_at(account, "ID"))?);
        if !iban.is_null() {
            let bank = element_at(account, "FinancialInstitutionBranch/ID");
            return Ok((iban, text_value(bank)?));
        }
    }
    Ok((Value::Null, Value::Null))
}

fn read_cash_discounts(root: Node<'_, '_>, terms: &Value) -> Result<Vec<Value>, EinvoiceDefect> {
    let mut found = parse_marked_discounts(terms)?;
    for term in elements_at(root, "PaymentTerms") {
        let percent = number_value(element_at(term, "SettlementDiscountPercent"))?;
        let period = element_at(term, "SettlementPeriod/DurationMeasure");
        let in_days = attribute_value(period, "unitCode").as_str() == Some("DAY");
        let days = if in_days { number_value(period)? } else { Value::Null };
        found.extend(cash_discount(percent, days));
    }
    Ok(found)
}

/// The breakdown of the tax that is stated in the invoice's own currency.
fn read_taxes(root: Node<'_, '_>, currency: &Value) -> Result<Vec<Value>, EinvoiceDefect> {
    let mut taxes = Vec::new();
    for total in elements_at(root, "TaxTotal") {
        let own = amount_in_currency(elements_at(total, "TaxAmount"), currency);
        let subtotals = elements_at(total, "TaxSubtotal").into_iter();
        for tax in subtotals.filter(|_| own.is_some()) {
            let rate = number_value(element_at(tax, "TaxCategory/Percent"))?;
            let base = number_value(element_at(tax, "TaxableAmount"))?;
            taxes.push(tax_value(rate, base, number_value(element_at(tax, "TaxAmount"))?));
        }
    }
    Ok(taxes)
}

/// Allowances and charges of the whole document.
fn read_adjustments(root: Node<'_, '_>) -> Result<(Vec<Value>, Vec<Value>), EinvoiceDefect> {
    let (mut allowances, mut charges) = (Vec::new(), Vec::new());
    for one in elements_at(root, "AllowanceCharge") {
        let value = adjustment_value(
            text_value(element_at(one, "AllowanceChargeReason"))?,
            number_value(element_at(one, "TaxCategory/Percent"))?,
            number_value(element_at(one, "Amount"))?,
        );
        match plain_text(element_at(one, "ChargeIndicator"))?.as_deref() {
            Some("true" | "1") => charges.push(value),
            Some("false" | "0") => allowances.push(value),
            _ => return Err(EinvoiceDefect::Amount),
        }
    }
    Ok((allowances, charges))
}

fn invoice_lines(root: Node<'_, '_>, is_note: bool) -> Result<Vec<Value>, EinvoiceDefect> {
    let (name, quantity) = if is_note {
        ("CreditNoteLine", "CreditedQuantity")
    } else {
        ("InvoiceLine", "InvoicedQuantity")
    };
    let mut lines = Vec::new();
    for item in elements_at(root, name) {
        let names = ["Item/Name", "Item/Description"];
        let what = first_text_value(names.map(|path| element_at(item, path)))?;
        let quantity = element_at(item, quantity);
        let articles = ["Item/SellersItemIdentification/ID", "Item/StandardItemIdentification/ID"];
        let line = InvoiceXmlLine {
            description: what,
            article_number: first_text_value(articles.map(|path| element_at(item, path)))?,
            quantity: number_value(quantity)?,
            unit: attribute_value(quantity, "unitCode"),
            unit_price: number_value(element_at(item, "Price/PriceAmount"))?,
            tax_rate: number_value(element_at(item, "Item/ClassifiedTaxCategory/Percent"))?,
            amount: number_value(element_at(item, "LineExtensionAmount"))?,
        };
        lines.push(line.into_value());
    }
    Ok(lines)
}
