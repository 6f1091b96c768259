//! UN/CEFACT Cross Industry Invoice: `ZUGFeRD` 1.0 and its successors, whose elements differ in the
//! names of the aggregates but not in what they hold.

use roxmltree::Node;
use serde_json::Value;

use super::defect::EinvoiceDefect;
use super::element::{
    amount_in_currency, date_value, elements_at, first_element, first_text_value, join_address,
    number_value, plain_text, text_value,
};
use super::fields::{InvoiceXmlFields, invoice_line_value, is_credit_note};

/// Namespace of CII, used since `ZUGFeRD` 2 and by Factur-X.
pub(super) const NAMESPACE: &str = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100";
/// Namespace of `ZUGFeRD` 1.0, an older form of CII.
pub(super) const ZUGFERD_1: &str = "urn:ferd:CrossIndustryDocument:invoice:1p0";

pub(super) fn parse_cii(root: Node<'_, '_>) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    let root = Some(root);
    let document = first_element(root, &["ExchangedDocument", "HeaderExchangedDocument"]);
    let trade = first_element(
        root,
        &["SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction"],
    );
    let agreement = first_element(
        trade,
        &["ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement"],
    );
    let settlement = first_element(
        trade,
        &["ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement"],
    );
    let sums = first_element(
        settlement,
        &[
            "SpecifiedTradeSettlementHeaderMonetarySummation",
            "SpecifiedTradeSettlementMonetarySummation",
        ],
    );
    let seller = first_element(agreement, &["SellerTradeParty"]);
    let currency = text_value(first_element(settlement, &["InvoiceCurrencyCode"]))?;
    let taxes = sums.map_or_else(Vec::new, |sums| elements_at(sums, "TaxTotalAmount"));
    let issued = first_element(document, &["IssueDateTime/DateTimeString", "IssueDateTime"]);
    let due = ["DueDateDateTime/DateTimeString", "DueDateDateTime"]
        .map(|path| format!("SpecifiedTradePaymentTerms/{path}"));
    let [due_string, due] = &due;
    Ok(InvoiceXmlFields {
        is_credit_note: is_credit_note(&text_value(first_element(document, &["TypeCode"]))?),
        supplier_name: text_value(first_element(seller, &["Name"]))?,
        supplier_address: postal_address(first_element(seller, &["PostalTradeAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        number: text_value(first_element(document, &["ID"]))?,
        date: date_value(issued)?,
        due_date: date_value(first_element(settlement, &[due_string, due]))?,
        lines: invoice_lines(trade)?,
        subtotal: number_value(first_element(sums, &["TaxBasisTotalAmount"]))?,
        vat_amount: number_value(amount_in_currency(taxes, &currency))?,
        total: number_value(first_element(sums, &["GrandTotalAmount"]))?,
        currency,
    })
}

fn postal_address(place: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let part = |name| first_element(place, &[name]);
    let lines = [part("LineOne"), part("LineTwo"), part("LineThree")];
    join_address(&lines, part("PostcodeCode"), part("CityName"), part("CountryID"))
}

fn vat_id(seller: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let ids =
        seller.map_or_else(Vec::new, |seller| elements_at(seller, "SpecifiedTaxRegistration/ID"));
    text_value(ids.into_iter().find(|id| id.attribute("schemeID") == Some("VA")))
}

fn invoice_lines(trade: Option<Node<'_, '_>>) -> Result<Vec<Value>, EinvoiceDefect> {
    let items =
        trade.map_or_else(Vec::new, |trade| elements_at(trade, "IncludedSupplyChainTradeLineItem"));
    let mut lines = Vec::new();
    for item in items {
        lines.extend(invoice_line(item)?);
    }
    Ok(lines)
}

/// One line; none for a subtotal or a remark among the lines.
fn invoice_line(item: Node<'_, '_>) -> Result<Option<Value>, EinvoiceDefect> {
    let item = Some(item);
    let status = first_element(item, &["AssociatedDocumentLineDocument/LineStatusReasonCode"]);
    if matches!(plain_text(status)?.as_deref(), Some("GROUP" | "INFORMATION")) {
        return Ok(None);
    }
    let product = first_element(item, &["SpecifiedTradeProduct"]);
    let agreement =
        first_element(item, &["SpecifiedLineTradeAgreement", "SpecifiedSupplyChainTradeAgreement"]);
    let delivery =
        first_element(item, &["SpecifiedLineTradeDelivery", "SpecifiedSupplyChainTradeDelivery"]);
    let settlement = first_element(
        item,
        &["SpecifiedLineTradeSettlement", "SpecifiedSupplyChainTradeSettlement"],
    );
    let amount = first_element(
        settlement,
        &[
            "SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
            "SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
        ],
    );
    let what = first_text_value([
        first_element(product, &["Name"]),
        first_element(product, &["Description"]),
    ])?;
    let quantity = number_value(first_element(delivery, &["BilledQuantity"]))?;
    let amount = number_value(amount)?;
    // ZUGFeRD 1.0 has lines that hold nothing but a note.
    if what.is_null() && quantity.is_null() && amount.is_null() {
        return Ok(None);
    }
    let price =
        number_value(first_element(agreement, &["NetPriceProductTradePrice/ChargeAmount"]))?;
    Ok(Some(invoice_line_value(what, quantity, price, amount)))
}
