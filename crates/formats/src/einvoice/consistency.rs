//! Contradictions within an invoice: repeated single elements, wrong sums, document codes other
//! than of an invoice. Each is a doubt about the invoice. Sums apply to every format: without a
//! stated sum of lines, the lines are compared with the total without VAT.
//!
//! The rules are those that EN 16931-1 and its code lists make of any invoice. Amounts may be off by
//! what rounding does to them. Not covered: quantities and prices, which make the amount of a line in
//! most invoices and not in all; the official rules say so (`crate::einvoice` is read without them).

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::Value;

use super::amounts::{column_sum, sums_by_rate};
use super::element::{
    ValueReader, decimal_of, elements_below, first_element, flag_value, whole_text,
};
use super::fields::{CREDIT_NOTES, InvoiceXmlFields, SPECIAL_TYPES};

/// Codes of UNTDID 1001 that stand for invoices in EN 16931 and PINT, the special ones apart.
const INVOICES: [&str; 34] = [
    "71", "80", "82", "84", "102", "218", "219", "295", "308", "331", "380", "382", "383", "384",
    "385", "387", "388", "390", "394", "395", "456", "457", "471", "472", "473", "480", "553",
    "575", "623", "633", "780", "817", "870", "935",
];

/// Tolerances of sums: as a whole, and for each line.
const TOLERANCE: Decimal = Decimal::from_parts(2, 0, 0, false, 2);
const TOLERANCE_PER_LINE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);
/// Rounding (BT-114) beyond this amount and this share of the total is none.
const MAX_ROUNDING: Decimal = Decimal::ONE;
const MAX_ROUNDING_SHARE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// Sums that an invoice states of its parts: lines (BT-106), allowances (BT-107), charges (BT-108).
#[derive(Debug, Default)]
pub(super) struct StatedSums {
    /// Whether each line has an amount by the rules of its format.
    pub(super) has_all_amounts: bool,
    pub(super) lines: Value,
    pub(super) allowances: Value,
    pub(super) charges: Value,
}

impl StatedSums {
    /// Reads them below the totals, by the names of their elements.
    pub(super) fn read(
        totals: Option<Node<'_, '_>>,
        [lines, allowances, charges]: [&str; 3],
        reader: &mut ValueReader,
    ) -> Self {
        Self {
            has_all_amounts: true,
            lines: reader.number("line_items", first_element(totals, &[lines])),
            allowances: reader.number("allowances", first_element(totals, &[allowances])),
            charges: reader.number("charges", first_element(totals, &[charges])),
        }
    }
}

/// Notes the fields that are stated several times and not alike. Paths are those of elements that
/// an invoice has once.
pub(super) fn note_repeated(
    node: Option<Node<'_, '_>>,
    fields: &[(&str, &str)],
    reader: &mut ValueReader,
) {
    for (field, path) in fields {
        let mut texts = elements_below(node, path).into_iter().map(whole_text);
        let first = texts.next();
        if texts.any(|text| Some(text) != first) {
            reader.note(format!("several.{field}"));
        }
    }
}

/// Notes that the sender calls it a copy or a test.
pub(super) fn note_indicator(
    doubt: &str,
    node: Option<Node<'_, '_>>,
    path: &str,
    reader: &mut ValueReader,
) {
    if elements_below(node, path).into_iter().any(|flag| flag_value(Some(flag)) == Some(true)) {
        reader.note(doubt);
    }
}

impl InvoiceXmlFields {
    /// Notes a type code (BT-3) that is missing, unknown, or not of the root.
    pub(super) fn check_type(&self, is_credit_root: bool, reader: &mut ValueReader) {
        let Some(code) = self.document_type.as_str() else {
            if !is_credit_root {
                reader.note("missing.document_type");
            }
            return;
        };
        let is_credit = CREDIT_NOTES.contains(&code);
        let is_invoice = INVOICES.contains(&code) || SPECIAL_TYPES.contains(&code);
        if !is_credit && (is_credit_root || !is_invoice) {
            reader.note("type_unknown");
        }
    }

    /// Notes lines that do not make their sum (BR-CO-10), allowances and charges that do not make theirs
    /// (BR-CO-11, BR-CO-12), a sum that does not make the total without VAT (BR-CO-13), and a rounding
    /// that is none.
    pub(super) fn check_sums(&self, stated: &StatedSums, reader: &mut ValueReader) {
        if stated.has_all_amounts && self.lines.iter().any(|line| line["amount"].is_null()) {
            reader.note("missing.line_items.amount");
        }
        let count = Decimal::from(self.lines.len());
        let slack = TOLERANCE.saturating_add(TOLERANCE_PER_LINE.saturating_mul(count));
        let are_known = self.lines.iter().all(|line| !line["amount"].is_null());
        let lines = column_sum(&self.lines, "amount").filter(|_| are_known);
        let of_lines = decimal_of(&stated.lines);
        // Lines that state their amounts with the tax make the total.
        let are_gross = lines.zip(decimal_of(&self.total));
        let are_gross = are_gross.is_some_and(|(lines, total)| is_near(lines, total, slack));
        if let Some((lines, of_lines)) = lines.zip(of_lines).filter(|_| !are_gross)
            && !is_near(lines, of_lines, slack)
        {
            reader.note("sum.line_items");
        }
        let [charges, allowances] = [&self.charges, &self.allowances]
            .map(|list| column_sum(list, "amount").unwrap_or_default());
        for (doubt, sum, stated) in [
            ("sum.allowances", allowances, &stated.allowances),
            ("sum.charges", charges, &stated.charges),
        ] {
            if decimal_of(stated).is_some_and(|stated| !is_near(sum, stated, slack)) {
                reader.note(doubt);
            }
        }
        let net = of_lines.or(lines).map(|lines| lines.saturating_add(charges));
        let net = net.map(|net| net.saturating_sub(allowances));
        let is_net = net.zip(decimal_of(&self.subtotal));
        let is_net = is_net.map(|(net, subtotal)| is_near(net, subtotal, slack));
        if is_net == Some(false) {
            reader.note("sum.subtotal");
        }
        let rounding = decimal_of(&self.rounding_amount).unwrap_or_default().abs();
        let total = decimal_of(&self.total).unwrap_or_default().abs();
        if rounding > MAX_ROUNDING && rounding > total.saturating_mul(MAX_ROUNDING_SHARE) {
            reader.note("large.rounding_amount");
        }
        if !are_gross && is_net == Some(true) {
            self.check_rates(slack, reader);
        }
        self.check_categories(reader);
    }

    /// Notes a breakdown whose bases are not what lines, allowances and charges of their rates make
    /// (BR-S-08). Where one of them has no rate, nothing is known.
    fn check_rates(&self, slack: Decimal, reader: &mut ValueReader) {
        let Some(rest) = sums_by_rate([
            (&self.taxes, "base", Decimal::NEGATIVE_ONE),
            (&self.lines, "amount", Decimal::ONE),
            (&self.charges, "amount", Decimal::ONE),
            (&self.allowances, "amount", Decimal::NEGATIVE_ONE),
        ]) else {
            return;
        };
        let are_known = !self.lines.is_empty() && !self.taxes.is_empty();
        if are_known && rest.values().any(|rest| rest.abs() > slack) {
            reader.note("sum.taxes");
        }
    }

    /// Notes a tax where its category bears none (BR-E-09 and others).
    fn check_categories(&self, reader: &mut ValueReader) {
        let contradicts = self.taxes.iter().any(|row| {
            let is_free =
                matches!(row["category"].as_str(), Some("E" | "AE" | "K" | "G" | "O" | "Z"));
            is_free && decimal_of(&row["amount"]).is_some_and(|amount| !amount.is_zero())
        });
        if contradicts {
            reader.note("tax_category");
        }
    }
}

fn is_near(one: Decimal, other: Decimal, tolerance: Decimal) -> bool {
    one.saturating_sub(other).abs() <= tolerance
}

#[cfg(test)]
mod tests {
    use crate::einvoice::parse_einvoice;

    const UBL: &str = r#"<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
        xmlns:a="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
        xmlns:b="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"><b:ID>R-1</b:ID><b:IssueDate>2026-03-05</b:IssueDate><b:InvoiceTypeCode>380</b:InvoiceTypeCode>
        <b:DocumentCurrencyCode>EUR</b:DocumentCurrencyCode><a:AccountingSupplierParty><a:Party><a:PartyTaxScheme><b:CompanyID>DE123456788</b:CompanyID>
          <a:TaxScheme><b:ID>VAT</b:ID></a:TaxScheme></a:PartyTaxScheme><a:PartyLegalEntity><b:RegistrationName>Mühle GmbH</b:RegistrationName></a:PartyLegalEntity></a:Party>
        </a:AccountingSupplierParty><a:PaymentMeans><a:PayeeFinancialAccount><b:ID>DE89370400440532013000</b:ID></a:PayeeFinancialAccount></a:PaymentMeans>
        <a:TaxTotal><b:TaxAmount currencyID="EUR">19.00</b:TaxAmount><a:TaxSubtotal>
          <b:TaxableAmount currencyID="EUR">100.00</b:TaxableAmount><b:TaxAmount currencyID="EUR">19.00</b:TaxAmount>
          <a:TaxCategory><b:ID>S</b:ID><b:Percent>19</b:Percent></a:TaxCategory></a:TaxSubtotal></a:TaxTotal>
        <a:LegalMonetaryTotal><b:LineExtensionAmount currencyID="EUR">100.00</b:LineExtensionAmount>
          <b:TaxExclusiveAmount currencyID="EUR">100.00</b:TaxExclusiveAmount><b:TaxInclusiveAmount currencyID="EUR">119.00</b:TaxInclusiveAmount>
          <b:PayableAmount currencyID="EUR">119.00</b:PayableAmount></a:LegalMonetaryTotal><a:InvoiceLine><b:InvoicedQuantity unitCode="C62">12</b:InvoicedQuantity>
          <b:LineExtensionAmount currencyID="EUR">100.00</b:LineExtensionAmount>
          <a:Item><a:ClassifiedTaxCategory><b:Percent>19</b:Percent></a:ClassifiedTaxCategory></a:Item>
          <a:Price><b:PriceAmount currencyID="EUR">8.33</b:PriceAmount></a:Price></a:InvoiceLine></Invoice>"#;

    const CII: &str = r#"<r:CrossIndustryInvoice
        xmlns:r="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
        xmlns:a="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"><r:ExchangedDocumentContext/><r:ExchangedDocument><a:ID>R-1</a:ID>
        <a:TypeCode>380</a:TypeCode><a:IssueDateTime>20260305</a:IssueDateTime></r:ExchangedDocument><r:SupplyChainTradeTransaction><a:IncludedSupplyChainTradeLineItem>
        <a:SpecifiedTradeProduct><a:Name>Mehl</a:Name></a:SpecifiedTradeProduct><a:SpecifiedLineTradeAgreement><a:NetPriceProductTradePrice><a:ChargeAmount>8.33</a:ChargeAmount>
        </a:NetPriceProductTradePrice></a:SpecifiedLineTradeAgreement><a:SpecifiedLineTradeDelivery><a:BilledQuantity unitCode="C62">12</a:BilledQuantity></a:SpecifiedLineTradeDelivery>
        <a:SpecifiedLineTradeSettlement><a:SpecifiedTradeSettlementLineMonetarySummation><a:LineTotalAmount>100.00</a:LineTotalAmount></a:SpecifiedTradeSettlementLineMonetarySummation>
        </a:SpecifiedLineTradeSettlement></a:IncludedSupplyChainTradeLineItem><a:ApplicableHeaderTradeAgreement><a:SellerTradeParty><a:Name>Mühle GmbH</a:Name>
        </a:SellerTradeParty></a:ApplicableHeaderTradeAgreement><a:ApplicableHeaderTradeSettlement><a:InvoiceCurrencyCode>EUR</a:InvoiceCurrencyCode><a:ApplicableTradeTax>
        <a:CalculatedAmount>19.00</a:CalculatedAmount><a:BasisAmount>100.00</a:BasisAmount>
        <a:CategoryCode>S</a:CategoryCode><a:RateApplicablePercent>19</a:RateApplicablePercent></a:ApplicableTradeTax>
        <a:SpecifiedTradeSettlementHeaderMonetarySummation><a:LineTotalAmount>100.00</a:LineTotalAmount>
        <a:TaxBasisTotalAmount>100.00</a:TaxBasisTotalAmount><a:TaxTotalAmount>19.00</a:TaxTotalAmount>
        <a:GrandTotalAmount>119.00</a:GrandTotalAmount><a:DuePayableAmount>119.00</a:DuePayableAmount>
        </a:SpecifiedTradeSettlementHeaderMonetarySummation></a:ApplicableHeaderTradeSettlement></r:SupplyChainTradeTransaction></r:CrossIndustryInvoice>"#;

    /// The doubts about an XML with one part exchanged.
    fn doubts(xml: &str, part: &str, other: &str) -> String {
        assert!(xml.contains(part), "{part}");
        let invoice = parse_einvoice(xml.replacen(part, other, 1).as_bytes()).unwrap();
        invoice.doubts().join(" ")
    }

    #[test]
    fn contradictions_within_a_ubl_invoice_are_doubts() {
        let after = |element: &str, more: &str| (element.to_owned(), format!("{element}{more}"));
        let whole = "<b:LineExtensionAmount currencyID=\"EUR\">100.00</b:LineExtensionAmount>\n          <b:TaxEx";
        let of_line =
            "</b:InvoicedQuantity>\n          <b:LineExtensionAmount currencyID=\"EUR\">100.00";
        #[rustfmt::skip]
        let table: &[((String, String), &str)] = &[
            (after("R-1", ""), ""),
            (after("<b:ID>R-1</b:ID>", "<b:ID>R-1</b:ID>"), ""),
            (after("<b:ID>R-1</b:ID>", "<b:ID>R-2</b:ID>"), "several.invoice_number"),
            (after("<b:IssueDate>2026-03-05</b:IssueDate>", "<b:IssueDate>2026-03-06</b:IssueDate>"), "several.invoice_date"),
            (after("<b:RegistrationName>Mühle GmbH</b:RegistrationName>", "<b:RegistrationName>Other</b:RegistrationName>"), "several.supplier_name"),
            (after("</a:TaxSubtotal></a:TaxTotal>", "<a:TaxTotal><b:TaxAmount currencyID=\"EUR\">9.00</b:TaxAmount></a:TaxTotal>"), "several.vat_amount"),
            (after("</a:TaxSubtotal></a:TaxTotal>", "<a:TaxTotal><b:TaxAmount currencyID=\"PLN\">81.00</b:TaxAmount></a:TaxTotal>"), ""),
            (after("119.00</b:TaxInclusiveAmount>", "<b:TaxInclusiveAmount currencyID=\"EUR\">999.00</b:TaxInclusiveAmount>"), "several.total"),
            (after("</a:PartyTaxScheme>", "<a:PartyTaxScheme><b:CompanyID>FR40303265045</b:CompanyID><a:TaxScheme><b:ID>VAT</b:ID></a:TaxScheme></a:PartyTaxScheme>"), "several.supplier_vat_id"),
            (after("</a:PartyTaxScheme>", "<a:PartyTaxScheme><b:CompanyID>22/123</b:CompanyID><a:TaxScheme><b:ID>FC</b:ID></a:TaxScheme></a:PartyTaxScheme>"), ""),
            (after("<b:ID>R-1</b:ID>", "<b:CopyIndicator>true</b:CopyIndicator>"), "copy"),
            ((">380<".into(), ">384<".into()), ""),
            ((">380<".into(), ">480<".into()), ""),
            ((">380<".into(), ">4711<".into()), "type_unknown"),
            ((">380<".into(), "><".into()), "missing.document_type"),
            ((">EUR</b:Doc".into(), ">eur</b:Doc".into()), ""),
            ((whole.into(), whole.replace("100.00", "90.00")), "sum.line_items sum.subtotal"),
            ((of_line.into(), of_line.replace("100.00", "60.00")), "sum.line_items sum.taxes"),
            ((of_line.into(), of_line.replace("EUR", "USD")), "currency_of.line_items.amount"),
            ((">119.00</b:Payable".into(), ">1.19E2</b:Payable".into()), ""),
            ((">119.00</b:Payable".into(), "></b:Payable".into()), "missing.amount_due"),
            ((">119.00</b:Payable".into(), "><b:x/>119.00</b:Payable".into()), "mixed_content"),
            ((">R-1<".into(), ">R-\u{202e}1<".into()), "text_direction"),
            ((">R-1<".into(), ">\u{420}-1<".into()), ""),
            ((">R-1<".into(), ">R\u{41e}-1<".into()), "mixed_letters.invoice_number"),
            ((">R-1<".into(), ">R-1\u{338}<".into()), "mixed_letters.invoice_number"),
            (("PriceAmount currencyID=\"EUR".into(), "PriceAmount currencyID=\"USD".into()), "currency_of.amounts"),
            ((">8.33<".into(), ">833<".into()), "product.line_items"),
            ((">8.33<".into(), ">-8.33<".into()), "product.line_items"),
            ((">12</b:Inv".into(), ">-12</b:Inv".into()), "product.line_items"),
            ((">12</b:Inv".into(), ">0</b:Inv".into()), "product.line_items"),
            (("<a:InvoiceLine><b:InvoicedQuantity unitCode=\"C62\">12".into(), "<a:InvoiceLine><a:AllowanceCharge/><b:InvoicedQuantity unitCode=\"C62\">-12".into()), "product.line_items"),
            (("<a:InvoiceLine><b:InvoicedQuantity unitCode=\"C62\">12".into(), "<a:InvoiceLine><a:AllowanceCharge/><b:InvoicedQuantity unitCode=\"C62\">99".into()), ""),
            (after("12</b:InvoicedQuantity>", "<b:InvoicedQuantity>99</b:InvoicedQuantity>"), "several.line_items"),
            (("<a:InvoiceLine>".into(), "<a:CreditNoteLine/><a:InvoiceLine>".into()), "unread.line_items"),
            (after("119.00</b:TaxInclusiveAmount>", "<b:AllowanceTotalAmount>9</b:AllowanceTotalAmount>"), "sum.allowances"),
            (after("</a:TaxSubtotal>", "<a:TaxSubtotal><b:TaxableAmount>100.00</b:TaxableAmount><b:TaxAmount>0</b:TaxAmount><a:TaxCategory><b:ID>S</b:ID><b:Percent>0</b:Percent></a:TaxCategory></a:TaxSubtotal>"), "sum.taxes"),
            ((of_line.into(), of_line.replace("100.00", "119.00")), ""),
            (after("119.00</b:TaxInclusiveAmount>", "<b:PayableRoundingAmount>-100</b:PayableRoundingAmount>"), "large.rounding_amount"),
            (after("119.00</b:TaxInclusiveAmount>", "<b:PayableRoundingAmount>0.01</b:PayableRoundingAmount>"), ""),
            (("DE893704".into(), "D\u{415}893704".into()), "unread.iban"),
        ];
        for ((part, other), expected) in table {
            assert_eq!(doubts(UBL, part, other), *expected, "{other}");
        }
    }

    #[test]
    fn contradictions_within_a_cii_invoice_are_doubts() {
        let after = |element: &str, more: &str| (element.to_owned(), format!("{element}{more}"));
        #[rustfmt::skip]
        let table: &[((String, String), &str)] = &[
            (after("R-1", ""), ""),
            (after("</r:ExchangedDocument>", "<r:ExchangedDocument><a:ID>R-9</a:ID></r:ExchangedDocument>"), "several.invoice_number"),
            (after("</a:ApplicableHeaderTradeSettlement>", "<a:ApplicableHeaderTradeSettlement/>"), "several.total"),
            ((">119.00</a:Due".into(), "></a:Due".into()), "missing.amount_due"),
            (("<a:CategoryCode>S".into(), "<a:CategoryCode>E".into()), "tax_category"),
            (after("<a:InvoiceCurrencyCode>EUR</a:InvoiceCurrencyCode>", "<a:SpecifiedAdvancePayment/>"), "unread.paid_amount"),
            (("<a:BasisAmount>100.00".into(), "<a:BasisAmount currencyID=\"USD\">100.00".into()), "currency_of.amounts"),
            (after("<a:ID>R-1</a:ID>", "<a:ID>R-2</a:ID>"), "several.invoice_number"),
            (after("</a:SellerTradeParty>", "<a:SellerTradeParty><a:Name>Other</a:Name></a:SellerTradeParty>"), "several.supplier_name"),
            (after("119.00</a:GrandTotalAmount>", "<a:GrandTotalAmount>999.00</a:GrandTotalAmount>"), "several.total"),
            (after("19.00</a:TaxTotalAmount>", "<a:TaxTotalAmount currencyID=\"PLN\">81.00</a:TaxTotalAmount>"), ""),
            (after("<r:ExchangedDocument>", "<a:CopyIndicator><a:Indicator>true</a:Indicator></a:CopyIndicator>"), "copy"),
            (("<r:ExchangedDocumentContext/>".into(), "<r:ExchangedDocumentContext><a:TestIndicator><a:Indicator>true</a:Indicator></a:TestIndicator></r:ExchangedDocumentContext>".into()), "test"),
            ((">380<".into(), "><".into()), "missing.document_type"),
            ((">8.33<".into(), ">8.3333<".into()), ""),
            ((">8.33<".into(), ">-8.33<".into()), "product.line_items"),
            ((">12<".into(), ">-12<".into()), "product.line_items"),
            (after("</a:SpecifiedLineTradeDelivery>", ""), ""),
            (("<a:LineTotalAmount>100.00</a:LineTotalAmount>\n        <a:TaxBasis".into(), "<a:LineTotalAmount>90.00</a:LineTotalAmount><a:TaxBasis".into()), "sum.line_items sum.subtotal"),
        ];
        for ((part, other), expected) in table {
            assert_eq!(doubts(CII, part, other), *expected, "{other}");
        }
    }

    #[test]
    fn parts_of_a_cii_invoice_are_told_from_its_discounts_and_doubted() {
        let term = |day: &str, amount: &str, text: &str| {
            format!(
                "<a:SpecifiedTradePaymentTerms><a:Description>{text}</a:Description><a:DueDateDateTime>202604{day}\
                 </a:DueDateDateTime><a:PartialPaymentAmount>{amount}</a:PartialPaymentAmount></a:SpecifiedTradePaymentTerms>"
            )
        };
        let stated = "<a:ApplicableTradePaymentDiscountTerms/><a:DueDateDateTime>";
        #[rustfmt::skip]
        let table = [
            ("discount", [term("04", "", "2 % Skonto"), term("14", "", "netto")], "2026-04-14", 0),
            ("marked discount", [term("04", "", "#SKONTO#TAGE=9#PROZENT=2.00#"), term("14", "", "")], "2026-04-14", 0),
            ("stated discount", [term("04", "", "2").replace("<a:DueDateDateTime>", stated), term("14", "", "")], "2026-04-14", 0),
            ("interest on the last day", [term("14", "", "9 % Zinsen"), term("04", "", "2,5% Skonto")], "2026-04-14", 0),
            ("discount on the last day", [term("04", "", ""), term("14", "", "2 % Skonto")], "2026-04-04", 2),
            ("shares", [term("04", "", "30 % deposit"), term("14", "", "70 % balance")], "2026-04-04", 2),
            ("small share", [term("04", "", "5 % deposit"), term("14", "", "Rest")], "2026-04-04", 2),
            ("share and no discount", [term("04", "", "30 % ohne Skonto"), term("14", "", "Rest")], "2026-04-04", 2),
            ("amount", [term("04", "9", "1. Rate, 2 % Skonto"), term("14", "110", "2. Rate")], "2026-04-04", 2),
            ("amount, stated", [term("04", "9", "").replace("<a:DueDateDateTime>", stated), term("14", "110", "")], "2026-04-04", 2),
            ("interest alone", [term("04", "", "Skonto 2 v.H."), term("14", "", "9 % Zinsen")], "2026-04-04", 2),
        ];
        for (name, terms, due, parts) in table {
            let end = "</a:ApplicableHeaderTradeSettlement>";
            let xml = CII.replacen(end, &(terms.concat() + end), 1);
            let invoice = parse_einvoice(xml.as_bytes()).unwrap();
            let found = invoice.field("instalments").as_array().map_or(0, Vec::len);
            assert_eq!((invoice.field("due_date").as_str(), found), (Some(due), parts), "{name}");
            let doubts = if parts > 0 { "several_due_dates" } else { "" };
            assert_eq!(invoice.doubts().join(" "), doubts, "{name}");
        }
    }
}
