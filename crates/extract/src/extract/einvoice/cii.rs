//! UN/CEFACT Cross Industry Invoice: `ZUGFeRD` 1.0 and its successors, whose elements differ in the
//! names of the aggregates but not in what they hold.

use roxmltree::Node;
use serde_json::Value;

use super::element::{address, all, day, first, first_text, in_currency, number, plain, text};
use super::{Fields, Flaw, is_credit_note, line};

/// Since `ZUGFeRD` 2 and Factur-X.
pub(super) const NAMESPACE: &str = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100";
/// `ZUGFeRD` 1.0.
pub(super) const ZUGFERD_1: &str = "urn:ferd:CrossIndustryDocument:invoice:1p0";

pub(super) fn read(root: Node<'_, '_>) -> Result<Fields, Flaw> {
    let root = Some(root);
    let document = first(root, &["ExchangedDocument", "HeaderExchangedDocument"]);
    let trade =
        first(root, &["SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction"]);
    let agreement =
        first(trade, &["ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement"]);
    let settlement =
        first(trade, &["ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement"]);
    let sums = first(
        settlement,
        &[
            "SpecifiedTradeSettlementHeaderMonetarySummation",
            "SpecifiedTradeSettlementMonetarySummation",
        ],
    );
    let seller = first(agreement, &["SellerTradeParty"]);
    let currency = text(first(settlement, &["InvoiceCurrencyCode"]))?;
    let taxes = sums.map_or_else(Vec::new, |sums| all(sums, "TaxTotalAmount"));
    let issued = first(document, &["IssueDateTime/DateTimeString", "IssueDateTime"]);
    let due = ["DueDateDateTime/DateTimeString", "DueDateDateTime"]
        .map(|path| format!("SpecifiedTradePaymentTerms/{path}"));
    let [due_string, due] = &due;
    Ok(Fields {
        is_credit_note: is_credit_note(&text(first(document, &["TypeCode"]))?),
        supplier_name: text(first(seller, &["Name"]))?,
        supplier_address: postal(first(seller, &["PostalTradeAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        number: text(first(document, &["ID"]))?,
        date: day(issued)?,
        due_date: day(first(settlement, &[due_string, due]))?,
        lines: lines(trade)?,
        subtotal: number(first(sums, &["TaxBasisTotalAmount"]))?,
        vat_amount: number(in_currency(taxes, &currency))?,
        total: number(first(sums, &["GrandTotalAmount"]))?,
        currency,
    })
}

fn postal(place: Option<Node<'_, '_>>) -> Result<Value, Flaw> {
    let part = |name| first(place, &[name]);
    let lines = [part("LineOne"), part("LineTwo"), part("LineThree")];
    address(&lines, part("PostcodeCode"), part("CityName"), part("CountryID"))
}

fn vat_id(seller: Option<Node<'_, '_>>) -> Result<Value, Flaw> {
    let ids = seller.map_or_else(Vec::new, |seller| all(seller, "SpecifiedTaxRegistration/ID"));
    text(ids.into_iter().find(|id| id.attribute("schemeID") == Some("VA")))
}

fn lines(trade: Option<Node<'_, '_>>) -> Result<Vec<Value>, Flaw> {
    let items = trade.map_or_else(Vec::new, |trade| all(trade, "IncludedSupplyChainTradeLineItem"));
    let mut lines = Vec::new();
    for item in items {
        lines.extend(line_of(item)?);
    }
    Ok(lines)
}

/// One line; none for a subtotal or a remark among the lines.
fn line_of(item: Node<'_, '_>) -> Result<Option<Value>, Flaw> {
    let item = Some(item);
    let status = first(item, &["AssociatedDocumentLineDocument/LineStatusReasonCode"]);
    if matches!(plain(status)?.as_deref(), Some("GROUP" | "INFORMATION")) {
        return Ok(None);
    }
    let product = first(item, &["SpecifiedTradeProduct"]);
    let agreement =
        first(item, &["SpecifiedLineTradeAgreement", "SpecifiedSupplyChainTradeAgreement"]);
    let delivery =
        first(item, &["SpecifiedLineTradeDelivery", "SpecifiedSupplyChainTradeDelivery"]);
    let settlement =
        first(item, &["SpecifiedLineTradeSettlement", "SpecifiedSupplyChainTradeSettlement"]);
    let amount = first(
        settlement,
        &[
            "SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
            "SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
        ],
    );
    let what = first_text([first(product, &["Name"]), first(product, &["Description"])])?;
    let quantity = number(first(delivery, &["BilledQuantity"]))?;
    let amount = number(amount)?;
    // ZUGFeRD 1.0 has lines that hold nothing but a note.
    if what.is_null() && quantity.is_null() && amount.is_null() {
        return Ok(None);
    }
    let price = number(first(agreement, &["NetPriceProductTradePrice/ChargeAmount"]))?;
    Ok(Some(line(what, quantity, price, amount)))
}
