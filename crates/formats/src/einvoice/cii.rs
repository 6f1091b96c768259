//! UN/CEFACT Cross Industry Invoice: `ZUGFeRD` 1.0 and its successors, whose elements differ in the
//! names of the aggregates but not in what they hold.

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
    let buyer = first_element(agreement, &["BuyerTradeParty"]);
    let currency = text_value(first_element(settlement, &["InvoiceCurrencyCode"]))?;
    let taxes = sums.map_or_else(Vec::new, |sums| elements_at(sums, "TaxTotalAmount"));
    let issued = first_element(document, &["IssueDateTime/DateTimeString", "IssueDateTime"]);
    let due = ["DueDateDateTime/DateTimeString", "DueDateDateTime"]
        .map(|path| format!("SpecifiedTradePaymentTerms/{path}"));
    let [due_string, due] = &due;
    let terms = text_value(first_element(settlement, &["SpecifiedTradePaymentTerms/Description"]))?;
    let (iban, bic) = find_account(settlement)?;
    let (allowances, charges) = read_adjustments(settlement)?;
    let order = ["IssuerAssignedID", "ID"].map(|id| format!("BuyerOrderReferencedDocument/{id}"));
    let [order, order_1] = &order;
    Ok(InvoiceXmlFields {
        is_credit_note: is_credit_note(&text_value(first_element(document, &["TypeCode"]))?),
        supplier_name: text_value(first_element(seller, &["Name"]))?,
        supplier_address: postal_address(first_element(seller, &["PostalTradeAddress"]))?,
        supplier_vat_id: vat_id(seller)?,
        buyer_name: text_value(first_element(buyer, &["Name"]))?,
        buyer_vat_id: vat_id(buyer)?,
        order_number: text_value(first_element(agreement, &[order, order_1]))?,
        cash_discounts: read_cash_discounts(settlement, &terms)?,
        payment_terms: terms,
        iban,
        bic,
        allowances,
        charges,
        taxes: read_taxes(settlement)?,
        number: text_value(first_element(document, &["ID"]))?,
        date: date_value(issued)?,
        due_date: date_value(first_element(settlement, &[due_string, due]))?,
        lines: invoice_lines(trade)?,
        subtotal: number_value(first_element(sums, &["TaxBasisTotalAmount"]))?,
        vat_amount: number_value(amount_in_currency(taxes, &currency))?,
        total: number_value(first_element(sums, &["GrandTotalAmount"]))?,
        paid_amount: number_value(first_element(sums, &["TotalPrepaidAmount"]))?,
        rounding_amount: number_value(first_element(sums, &["RoundingAmount"]))?,
        amount_due: number_value(first_element(sums, &["DuePayableAmount"]))?,
        currency,
    })
}

fn postal_address(place: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let [code, town, country] =
        ["PostcodeCode", "CityName", "CountryID"].map(|name| first_element(place, &[name]));
    let lines = ["LineOne", "LineTwo", "LineThree"].map(|name| first_element(place, &[name]));
    join_address(&lines, code, town, country)
}

fn vat_id(party: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let ids =
        party.map_or_else(Vec::new, |party| elements_at(party, "SpecifiedTaxRegistration/ID"));
    text_value(ids.into_iter().find(|id| id.attribute("schemeID") == Some("VA")))
}

/// Every element of this name in the settlement.
fn settlement_parts<'a, 'i: 'a>(
    settlement: Option<Node<'a, 'i>>,
    name: &'a str,
) -> Vec<Node<'a, 'i>> {
    settlement.map_or_else(Vec::new, |settlement| elements_at(settlement, name))
}

/// The first account of the payee that is an IBAN, and its bank.
fn find_account(settlement: Option<Node<'_, '_>>) -> Result<(Value, Value), EinvoiceDefect> {
    for means in settlement_parts(settlement, "SpecifiedTradeSettlementPaymentMeans") {
        let account = element_at(means, "PayeePartyCreditorFinancialAccount/IBANID");
        let iban = iban_value(&text_value(account)?);
        if !iban.is_null() {
            let bank = element_at(means, "PayeeSpecifiedCreditorFinancialInstitution/BICID");
            return Ok((iban, text_value(bank)?));
        }
    }
    Ok((Value::Null, Value::Null))
}

fn read_cash_discounts(
    settlement: Option<Node<'_, '_>>,
    terms: &Value,
) -> Result<Vec<Value>, EinvoiceDefect> {
    let mut found = parse_marked_discounts(terms)?;
    let path = "SpecifiedTradePaymentTerms/ApplicableTradePaymentDiscountTerms";
    for discount in settlement_parts(settlement, path) {
        let percent = number_value(element_at(discount, "CalculationPercent"))?;
        let period = element_at(discount, "BasisPeriodMeasure");
        let in_days = attribute_value(period, "unitCode").as_str() == Some("DAY");
        let days = if in_days { number_value(period)? } else { Value::Null };
        found.extend(cash_discount(percent, days));
    }
    Ok(found)
}

/// The rate of a tax: `ZUGFeRD` 1.0 has another name for it.
const RATES: [&str; 2] = ["RateApplicablePercent", "ApplicablePercent"];

fn read_taxes(settlement: Option<Node<'_, '_>>) -> Result<Vec<Value>, EinvoiceDefect> {
    let taxes = settlement_parts(settlement, "ApplicableTradeTax").into_iter();
    taxes
        .map(|tax| {
            let rate = number_value(first_element(Some(tax), &RATES))?;
            let base = number_value(element_at(tax, "BasisAmount"))?;
            Ok(tax_value(rate, base, number_value(element_at(tax, "CalculatedAmount"))?))
        })
        .collect()
}

/// Allowances and charges of the whole document.
fn read_adjustments(
    settlement: Option<Node<'_, '_>>,
) -> Result<(Vec<Value>, Vec<Value>), EinvoiceDefect> {
    let (mut allowances, mut charges) = (Vec::new(), Vec::new());
    let rates = RATES.map(|name| format!("CategoryTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    for part in settlement_parts(settlement, "SpecifiedTradeAllowanceCharge") {
        let one = Some(part);
        let value = adjustment_value(
            text_value(first_element(one, &["Reason"]))?,
            number_value(first_element(one, &[rate, rate_1]))?,
            number_value(first_element(one, &["ActualAmount"]))?,
        );
        match plain_text(first_element(one, &["ChargeIndicator/Indicator", "ChargeIndicator"]))?
            .as_deref()
        {
            Some("true" | "1") => charges.push(value),
            Some("false" | "0") => allowances.push(value),
            _ => return Err(EinvoiceDefect::Amount),
        }
    }
    let rates = RATES.map(|name| format!("AppliedTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    for part in settlement_parts(settlement, "SpecifiedLogisticsServiceCharge") {
        let one = Some(part);
        charges.push(adjustment_value(
            text_value(first_element(one, &["Description"]))?,
            number_value(first_element(one, &[rate, rate_1]))?,
            number_value(first_element(one, &["AppliedAmount"]))?,
        ));
    }
    Ok((allowances, charges))
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
    let billed = first_element(delivery, &["BilledQuantity"]);
    let quantity = number_value(billed)?;
    let amount = number_value(amount)?;
    // ZUGFeRD 1.0 has lines that hold nothing but a note.
    if what.is_null() && quantity.is_null() && amount.is_null() {
        return Ok(None);
    }
    let rates = RATES.map(|name| format!("ApplicableTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    let article = ["SellerAssignedID", "GlobalID"].map(|name| first_element(product, &[name]));
    let line = InvoiceXmlLine {
        description: what,
        article_number: first_text_value(article)?,
        unit: attribute_value(billed, "unitCode"),
        quantity,
        unit_price: number_value(first_element(
            agreement,
            &["NetPriceProductTradePrice/ChargeAmount"],
        ))?,
        tax_rate: number_value(first_element(settlement, &[rate, rate_1]))?,
        amount,
    };
    Ok(Some(line.into_value()))
}
