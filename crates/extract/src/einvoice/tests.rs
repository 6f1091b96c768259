//! The same invoice in every syntax, and what may be wrong with one.

use std::sync::Arc;

use serde_json::json;

use super::*;
use docmill_core::config::KindsConfig;
use docmill_formats::einvoice::{EinvoiceDefect, EinvoiceFinding, parse_einvoice};
use docmill_formats::xml::XmlError;
use docmill_gate::kinds::KindSet;

const ZUGFERD_1: &str = "urn:ferd:CrossIndustryDocument:invoice:1p0";

fn kind() -> Arc<Kind> {
    Arc::clone(KindSet::load(&KindsConfig::default()).unwrap().get("invoice").unwrap())
}

/// Its data; the numbers are those of [`cii`], [`zugferd_1`] and [`ubl`].
fn expected() -> Value {
    json!({
        "document_type": "380",
        "supplier_name": "Papier & Söhne GmbH",
        "supplier_trading_name": "P & S",
        "supplier_address": "Am Markt 1, Hof 2, 10115 Berlin, DE",
        "supplier_vat_id": "DE123456789",
        "buyer_name": "Buyer",
        "buyer_vat_id": "ATU12345675",
        "invoice_number": "RE-17",
        "order_number": "PO 4711",
        "invoice_date": "2026-03-05",
        "due_date": "2026-04-04",
        "payment_terms": "30 days #SKONTO#TAGE=10#PROZENT=2.00#",
        "cash_discounts": [{"percent": 2, "days": 10}],
        "delivery_date": "2026-03-01", "period_start": "2026-02-01", "period_end": "2026-02-28",
        "payment_reference": "RF18 5390",
        "payee_name": "Factor AG",
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "further_accounts": ["12-3456", "98-7654"],
        "currency": "EUR",
        "line_items": [
            {"description": "Paper", "article_number": "P-1", "quantity": 20, "unit": "C62",
             "unit_price": 9.9, "price_base_quantity": null, "price_base_unit": null,
             "tax_rate": 19, "amount": 198},
            {"description": "Return", "article_number": "R-2", "quantity": -1, "unit": "C62",
             "unit_price": 5.5, "price_base_quantity": null, "price_base_unit": null,
             "tax_rate": 19, "amount": -5.5},
        ],
        "allowances": [{"reason": "Rebate", "tax_rate": 19, "amount": 10}],
        "charges": [{"reason": "Freight", "tax_rate": 19, "amount": 10}],
        "taxes": [{"rate": 19, "base": 192.5, "amount": 36.58, "category": "S",
                   "exemption_reason": null}],
        "subtotal": 192.5, "vat_amount": 36.58, "total": 229.08,
        "paid_amount": 100, "rounding_amount": 0.02, "amount_due": 129.1,
    })
}

fn cii_line(
    note: &str,
    [name, article]: [&str; 2],
    [price, quantity, amount]: [&str; 3],
) -> String {
    format!(
        "<r:IncludedSupplyChainTradeLineItem>\
         <r:AssociatedDocumentLineDocument>{note}</r:AssociatedDocumentLineDocument>\
         <r:SpecifiedTradeProduct><r:GlobalID>0012</r:GlobalID><r:SellerAssignedID>{article}\
         </r:SellerAssignedID><r:Name>{name}</r:Name></r:SpecifiedTradeProduct>\
         <r:SpecifiedLineTradeAgreement><r:NetPriceProductTradePrice><r:ChargeAmount>{price}\
         </r:ChargeAmount></r:NetPriceProductTradePrice></r:SpecifiedLineTradeAgreement>\
         <r:SpecifiedLineTradeDelivery><r:BilledQuantity unitCode='C62'>{quantity}\
         </r:BilledQuantity></r:SpecifiedLineTradeDelivery><r:SpecifiedLineTradeSettlement>\
         <r:ApplicableTradeTax><r:RateApplicablePercent>19.00</r:RateApplicablePercent>\
         </r:ApplicableTradeTax>\
         <r:SpecifiedTradeSettlementLineMonetarySummation><r:LineTotalAmount>{amount}\
         </r:LineTotalAmount></r:SpecifiedTradeSettlementLineMonetarySummation>\
         </r:SpecifiedLineTradeSettlement></r:IncludedSupplyChainTradeLineItem>"
    )
}

fn cii_adjustment(charge: bool, reason: &str) -> String {
    format!(
        "<r:SpecifiedTradeAllowanceCharge><r:ChargeIndicator><u:Indicator>{charge}</u:Indicator>\
         </r:ChargeIndicator><r:ActualAmount>10.00</r:ActualAmount><r:Reason>{reason}</r:Reason>\
         <r:CategoryTradeTax><r:RateApplicablePercent>19</r:RateApplicablePercent>\
         </r:CategoryTradeTax></r:SpecifiedTradeAllowanceCharge>"
    )
}

/// The means of payment of [`cii`]: accounts of the payee, and one of the payer.
const CII_MEANS: &str = "<r:SpecifiedTradeSettlementPaymentMeans><r:PayeePartyCreditorFinancialAccount>
            <r:ProprietaryID>12-3456</r:ProprietaryID></r:PayeePartyCreditorFinancialAccount>
          </r:SpecifiedTradeSettlementPaymentMeans>
          <r:SpecifiedTradeSettlementPaymentMeans><r:TypeCode>59</r:TypeCode><r:PayerPartyDebtorFinancialAccount>
            <r:IBANID>NO9386011117947</r:IBANID></r:PayerPartyDebtorFinancialAccount>
          </r:SpecifiedTradeSettlementPaymentMeans>
          <r:SpecifiedTradeSettlementPaymentMeans><r:PayeePartyCreditorFinancialAccount>
            <r:IBANID>DE89 3704 0044 0532 0130 00</r:IBANID></r:PayeePartyCreditorFinancialAccount>
            <r:PayeeSpecifiedCreditorFinancialInstitution><r:BICID>COBADEFFXXX</r:BICID>
            </r:PayeeSpecifiedCreditorFinancialInstitution></r:SpecifiedTradeSettlementPaymentMeans>
          <r:SpecifiedTradeSettlementPaymentMeans><r:PayeePartyCreditorFinancialAccount>
            <r:ProprietaryID>98-7654</r:ProprietaryID></r:PayeePartyCreditorFinancialAccount>
          </r:SpecifiedTradeSettlementPaymentMeans>";

/// The same of [`ubl`], with the payee and the delivery.
const UBL_MEANS: &str = "<c:PayeeParty><c:PartyName><b:Name>Factor AG</b:Name></c:PartyName></c:PayeeParty>
        <c:Delivery><b:ActualDeliveryDate>2026-03-01</b:ActualDeliveryDate></c:Delivery>
        <c:PaymentMeans><c:PayeeFinancialAccount><b:ID>12-3456</b:ID></c:PayeeFinancialAccount></c:PaymentMeans>
        <c:PaymentMeans><b:PaymentID>RF18 5390</b:PaymentID>
          <c:PayeeFinancialAccount><b:ID>DE89370400440532013000</b:ID>
          <c:FinancialInstitutionBranch><b:ID>COBADEFFXXX</b:ID></c:FinancialInstitutionBranch>
        </c:PayeeFinancialAccount></c:PaymentMeans>
        <c:PaymentMeans><c:PayeeFinancialAccount><b:ID>98-7654</b:ID></c:PayeeFinancialAccount></c:PaymentMeans>";

/// CII as of Factur-X.
fn cii() -> String {
    let lines = [
        cii_line("", ["Paper", "P-1"], ["9.9000", "20.0000", "198.00"]),
        cii_line(
            "<r:LineStatusReasonCode>GROUP</r:LineStatusReasonCode>",
            ["All", ""],
            ["1", "1", "198.00"],
        ),
        cii_line("", ["Return", "R-2"], ["5.50", "-1", "-5.50"]),
    ]
    .concat();
    let adjustments = [cii_adjustment(false, "Rebate"), cii_adjustment(true, "Freight")].concat();
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>
        <i:CrossIndustryInvoice xmlns:i='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100'
          xmlns:r='urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100'
          xmlns:u='urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100'>
        <i:ExchangedDocument><r:ID> RE-17 </r:ID><r:TypeCode>380</r:TypeCode>
          <r:IssueDateTime><u:DateTimeString format='102'>20260305</u:DateTimeString></r:IssueDateTime>
        </i:ExchangedDocument>
        <i:SupplyChainTradeTransaction>{lines}
        <r:ApplicableHeaderTradeAgreement><r:SellerTradeParty><r:Name>Papier &amp; Söhne
          <!-- a comment -->GmbH</r:Name>
          <r:PostalTradeAddress><r:PostcodeCode>10115</r:PostcodeCode><r:LineOne>Am Markt 1</r:LineOne>
          <r:LineTwo>Hof 2</r:LineTwo><r:CityName>Berlin</r:CityName><r:CountryID>DE</r:CountryID>
          </r:PostalTradeAddress>
          <r:SpecifiedTaxRegistration><r:ID schemeID='FC'>11/222</r:ID></r:SpecifiedTaxRegistration>
          <r:SpecifiedTaxRegistration><r:ID schemeID='VA'>DE123456789</r:ID></r:SpecifiedTaxRegistration>
          <r:SpecifiedLegalOrganization><r:TradingBusinessName>P &amp; S</r:TradingBusinessName>
          </r:SpecifiedLegalOrganization></r:SellerTradeParty><r:BuyerTradeParty><r:Name>Buyer</r:Name>
          <r:SpecifiedTaxRegistration><r:ID schemeID='VA'>ATU12345675</r:ID></r:SpecifiedTaxRegistration>
          </r:BuyerTradeParty><r:BuyerOrderReferencedDocument><r:IssuerAssignedID>PO 4711</r:IssuerAssignedID>
          </r:BuyerOrderReferencedDocument></r:ApplicableHeaderTradeAgreement>
        <r:ApplicableHeaderTradeDelivery><r:ActualDeliverySupplyChainEvent><r:OccurrenceDateTime>
          <u:DateTimeString format='102'>20260301</u:DateTimeString></r:OccurrenceDateTime>
          </r:ActualDeliverySupplyChainEvent></r:ApplicableHeaderTradeDelivery>
        <r:ApplicableHeaderTradeSettlement><r:PaymentReference>RF18 5390</r:PaymentReference>
          <r:InvoiceCurrencyCode>EUR</r:InvoiceCurrencyCode>
          <r:PayeeTradeParty><r:Name>Factor AG</r:Name></r:PayeeTradeParty>
          {CII_MEANS}
          <r:ApplicableTradeTax><r:CalculatedAmount>36.58</r:CalculatedAmount><r:BasisAmount>192.50</r:BasisAmount>
            <r:CategoryCode>S</r:CategoryCode>
            <r:RateApplicablePercent>19</r:RateApplicablePercent></r:ApplicableTradeTax>
          <r:BillingSpecifiedPeriod><r:StartDateTime><u:DateTimeString format='102'>20260201
            </u:DateTimeString></r:StartDateTime><r:EndDateTime><u:DateTimeString format='102'>20260228
            </u:DateTimeString></r:EndDateTime></r:BillingSpecifiedPeriod>
          {adjustments}
          <r:SpecifiedTradePaymentTerms><r:Description>30 days #SKONTO#TAGE=10#PROZENT=2.00#</r:Description>
          <r:DueDateDateTime><u:DateTimeString format='102'>20260404</u:DateTimeString></r:DueDateDateTime>
          </r:SpecifiedTradePaymentTerms>
          <r:SpecifiedTradeSettlementHeaderMonetarySummation><r:LineTotalAmount>192.50</r:LineTotalAmount>
          <r:TaxBasisTotalAmount>192.50</r:TaxBasisTotalAmount>
          <r:TaxTotalAmount currencyID='SEK'>401.00</r:TaxTotalAmount>
          <r:TaxTotalAmount currencyID='EUR'>36.58</r:TaxTotalAmount>
          <r:GrandTotalAmount>229.08</r:GrandTotalAmount><r:TotalPrepaidAmount>100.00</r:TotalPrepaidAmount>
          <r:RoundingAmount>0.02</r:RoundingAmount><r:DuePayableAmount>129.10</r:DuePayableAmount></r:SpecifiedTradeSettlementHeaderMonetarySummation>
        </r:ApplicableHeaderTradeSettlement></i:SupplyChainTradeTransaction></i:CrossIndustryInvoice>"
    )
}

/// `ZUGFeRD` 1.0: other namespaces, other names of the aggregates, a line that is a note.
fn zugferd_1() -> String {
    let note = "<r:IncludedSupplyChainTradeLineItem><r:AssociatedDocumentLineDocument><r:IncludedNote>\
                <r:Content>Thank you</r:Content></r:IncludedNote></r:AssociatedDocumentLineDocument>\
                </r:IncludedSupplyChainTradeLineItem></i:SpecifiedSupplyChainTradeTransaction>";
    cii()
        .replace("urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100", ZUGFERD_1)
        .replace("Entity:100", "Entity:12")
        .replace("DataType:100", "DataType:15")
        .replace("CrossIndustryInvoice", "CrossIndustryDocument")
        .replace("i:ExchangedDocument", "i:HeaderExchangedDocument")
        .replace("</i:SupplyChainTradeTransaction>", note)
        .replace("i:SupplyChainTradeTransaction", "i:SpecifiedSupplyChainTradeTransaction")
        .replace("ApplicableHeaderTrade", "ApplicableSupplyChainTrade")
        .replace("SpecifiedLineTrade", "SpecifiedSupplyChainTrade")
        .replace("SettlementHeaderMonetary", "SettlementMonetary")
        .replace("SettlementLineMonetary", "SettlementMonetary")
        .replace("RateApplicablePercent", "ApplicablePercent")
        .replace("IssuerAssignedID", "ID")
}

/// UBL without prefixes on its own elements.
fn ubl() -> String {
    let line = |[name, article]: [&str; 2], [price, quantity, amount]: [&str; 3]| {
        format!(
            "<c:InvoiceLine><b:ID>1</b:ID><b:InvoicedQuantity unitCode='C62'>{quantity}\
             </b:InvoicedQuantity><b:LineExtensionAmount currencyID='EUR'>{amount}\
             </b:LineExtensionAmount><c:Item><b:Name>{name}</b:Name>\
             <c:SellersItemIdentification><b:ID>{article}</b:ID></c:SellersItemIdentification>\
             <c:ClassifiedTaxCategory><b:Percent>19</b:Percent></c:ClassifiedTaxCategory>\
             </c:Item><c:Price>\
             <b:PriceAmount>{price}</b:PriceAmount></c:Price></c:InvoiceLine>"
        )
    };
    let lines = [
        line(["Paper", "P-1"], ["9.90", "20", "198.00"]),
        line(["Return", "R-2"], ["5.50", "-1", "-5.50"]),
    ]
    .concat();
    let adjustment = |charge: bool, reason: &str| {
        format!(
            "<c:AllowanceCharge><b:ChargeIndicator>{charge}</b:ChargeIndicator>\
             <b:AllowanceChargeReason>{reason}</b:AllowanceChargeReason><b:Amount>10.00</b:Amount>\
             <c:TaxCategory><b:Percent>19</b:Percent></c:TaxCategory></c:AllowanceCharge>"
        )
    };
    let adjustments = [adjustment(false, "Rebate"), adjustment(true, "Freight")].concat();
    format!(
        "<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'
          xmlns:c='urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2'
          xmlns:b='urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2'>
        <b:ID>RE-17</b:ID><b:IssueDate>2026-03-05</b:IssueDate><b:DueDate>2026-04-04</b:DueDate>
        <b:InvoiceTypeCode>380</b:InvoiceTypeCode><b:DocumentCurrencyCode>EUR</b:DocumentCurrencyCode>
        <c:InvoicePeriod><b:StartDate>2026-02-01</b:StartDate><b:EndDate>2026-02-28</b:EndDate></c:InvoicePeriod>
        <c:OrderReference><b:ID>PO 4711</b:ID></c:OrderReference>
        <c:AccountingSupplierParty><c:Party><c:PartyName><b:Name>P &amp; S</b:Name></c:PartyName>
          <c:PostalAddress><b:StreetName>Am Markt 1</b:StreetName><b:AdditionalStreetName>Hof 2\
          </b:AdditionalStreetName><b:CityName>Berlin</b:CityName><b:PostalZone>10115</b:PostalZone>
          <c:Country><b:IdentificationCode>DE</b:IdentificationCode></c:Country></c:PostalAddress>
          <c:PartyTaxScheme><b:CompanyID>11/222</b:CompanyID><c:TaxScheme><b:ID>FC</b:ID></c:TaxScheme>
          </c:PartyTaxScheme><c:PartyTaxScheme><b:CompanyID>DE123456789</b:CompanyID>
          <c:TaxScheme><b:ID>VAT</b:ID></c:TaxScheme></c:PartyTaxScheme>
          <c:PartyLegalEntity><b:RegistrationName>Papier &amp; Söhne GmbH</b:RegistrationName></c:PartyLegalEntity>
        </c:Party></c:AccountingSupplierParty><c:AccountingCustomerParty><c:Party>
          <c:PartyTaxScheme><b:CompanyID>ATU12345675</b:CompanyID><c:TaxScheme><b:ID>VAT</b:ID></c:TaxScheme>
          </c:PartyTaxScheme><c:PartyLegalEntity><b:RegistrationName>Buyer</b:RegistrationName></c:PartyLegalEntity>
        </c:Party></c:AccountingCustomerParty>
        {UBL_MEANS}
        <c:PaymentTerms><b:Note>30 days #SKONTO#TAGE=10#PROZENT=2.00#</b:Note></c:PaymentTerms>
        {adjustments}
        <c:TaxTotal><b:TaxAmount currencyID='SEK'>401.00</b:TaxAmount><c:TaxSubtotal>
          <b:TaxAmount currencyID='SEK'>401.00</b:TaxAmount></c:TaxSubtotal></c:TaxTotal>
        <c:TaxTotal><b:TaxAmount currencyID='EUR'>36.58</b:TaxAmount><c:TaxSubtotal>
          <b:TaxableAmount>192.50</b:TaxableAmount><b:TaxAmount currencyID='EUR'>36.58</b:TaxAmount>
          <c:TaxCategory><b:ID>S</b:ID><b:Percent>19</b:Percent></c:TaxCategory></c:TaxSubtotal></c:TaxTotal>
        <c:LegalMonetaryTotal><b:TaxExclusiveAmount>192.50</b:TaxExclusiveAmount>
          <b:TaxInclusiveAmount>229.08</b:TaxInclusiveAmount><b:PrepaidAmount>100</b:PrepaidAmount>
          <b:PayableRoundingAmount>0.02</b:PayableRoundingAmount><b:PayableAmount>129.10</b:PayableAmount>
        </c:LegalMonetaryTotal>{lines}</Invoice>"
    )
}

/// The same as a credit note.
fn ubl_credit_note() -> String {
    ubl()
        .replace("xsd:Invoice-2", "xsd:CreditNote-2")
        .replace("<Invoice", "<CreditNote")
        .replace("</Invoice>", "</CreditNote>")
        .replace("InvoicedQuantity", "CreditedQuantity")
        .replace("InvoiceLine", "CreditNoteLine")
        .replace("InvoiceTypeCode>380<", "CreditNoteTypeCode>381<")
        .replace("InvoiceTypeCode", "CreditNoteTypeCode")
}

#[test]
#[rustfmt::skip]
fn one_invoice_reads_the_same_in_every_syntax() {
    let credit = |text: String| text.replace(">380<", ">381<");
    for (name, xml, is_credit_note) in [
        ("CII", cii(), false),
        ("CII credit note", credit(cii()), true),
        ("ZUGFeRD 1.0", zugferd_1(), false),
        ("UBL", ubl(), false),
        ("UBL credit note", ubl_credit_note(), true),
        ("an invoice in UBL that says it is a credit note", credit(ubl()), true),
        ("a corrected invoice", cii().replace(">380<", ">384<"), false),
        ("other prefixes", cii().replace("<r:", "<ram:").replace("</r:", "</ram:").replace("xmlns:r=", "xmlns:ram="), false),
    ] {
        let read = parse_einvoice(xml.as_bytes()).unwrap_or_else(|flaw| panic!("{name}: {flaw}"));
        let extraction = extract_einvoice(&read, &kind());
        let mut data = Value::Object(extraction.data);
        assert_eq!(data["instalments"].take(), Value::Null, "{name}");
        let mut wanted = expected();
        for (key, value) in
            [("instalments", Value::Null), ("document_type", data["document_type"].clone())]
        {
            wanted[key] = value;
        }
        assert_eq!(data, wanted, "{name}");
        assert_eq!(read.doubts(), Vec::<String>::new(), "{name}");
        assert_eq!(read.is_credit_note, is_credit_note, "{name}");
        assert!(read.is_complete(), "{name}");
    }
}

#[test]
fn the_smallest_profile_lacks_lines_and_address_and_is_complete() {
    let all = cii();
    let without = |text: &str, name: &str| {
        let (open, close) = (format!("<r:{name}>"), format!("</r:{name}>"));
        let mut rest = text.to_owned();
        while let (Some(from), Some(to)) = (rest.find(&open), rest.find(&close)) {
            rest.replace_range(from..to + close.len(), "");
        }
        rest
    };
    let minimum =
        ["IncludedSupplyChainTradeLineItem", "PostalTradeAddress", "SpecifiedTradePaymentTerms"]
            .iter()
            .fold(all, |text, name| without(&text, name));
    let read = parse_einvoice(minimum.as_bytes()).unwrap();
    assert!(read.is_complete());
    let extraction = extract_einvoice(&read, &kind());
    let missing = ["supplier_address", "due_date", "payment_terms", "cash_discounts", "line_items"];
    assert!(missing.iter().all(|field| extraction.missing_fields.contains(&(*field).to_owned())));
    assert_eq!(extraction.data["total"], 229.08);
}

#[test]
fn each_fault_has_its_name() {
    let cut = |text: String| text.get(..text.len() / 2).unwrap().to_owned();
    #[rustfmt::skip]
    let table: Vec<(&str, String, EinvoiceDefect)> = vec![
        ("an order",                 cii().replace("CrossIndustryInvoice", "SCRDMCCBDACIOMessageStructure"), EinvoiceDefect::NotAnInvoice),
        ("a namespace of our own",   cii().replace("CrossIndustryInvoice:100", "CrossIndustryInvoice:999"), EinvoiceDefect::NotAnInvoice),
        ("no namespace and no header", "<Invoice/>".to_owned(),                   EinvoiceDefect::NotAnInvoice),
        ("UBL, but an order",        ubl().replace("Invoice", "Order"),           EinvoiceDefect::NotAnInvoice),
        ("cut off",                  cut(cii()),                                  EinvoiceDefect::Xml(XmlError::Malformed)),
        ("an entity",                format!("<!DOCTYPE x [<!ENTITY e 'x'>]>{}", ubl()), EinvoiceDefect::Xml(XmlError::Entities)),
    ];
    for (name, xml, flaw) in table {
        assert_eq!(parse_einvoice(xml.as_bytes()), Err(flaw), "{name}");
    }
}

#[test]
fn elements_of_a_foreign_namespace_are_not_read() {
    let foreign = cii().replace("ReusableAggregateBusinessInformationEntity", "Mine");
    let foreign = foreign.replace("urn:un:unece:uncefact:data:standard:Mine", "urn:mine");
    assert!(!parse_einvoice(foreign.as_bytes()).unwrap().is_complete());
}

#[test]
fn without_number_date_currency_seller_or_total_it_is_incomplete() {
    for value in ["> RE-17 <", ">20260305<", ">EUR<", ">229.08<"] {
        let lacking = cii().replacen(value, "><", 1).replacen(">129.10<", "><", 1);
        assert!(!parse_einvoice(lacking.as_bytes()).unwrap().is_complete(), "{value}");
    }
    assert!(parse_einvoice(cii().replacen(">36.58<", "><", 1).as_bytes()).unwrap().is_complete());
}

#[test]
fn a_value_that_cannot_be_carried_is_null_and_named_and_costs_nothing_else() {
    let long = "P".repeat(20_000);
    #[rustfmt::skip]
    let table: [(&str, &str, &str, Value, &[&str]); 16] = [
        ("a day with a time",     ">20260305<", ">2026-03-05T10:00:00<", json!({"invoice_date": "2026-03-05"}), &[]),
        ("a day with a zone",     ">20260305<", ">2026-03-05+01:00<",    json!({"invoice_date": "2026-03-05"}), &[]),
        ("a day and minutes",     ">20260305<", ">202603051000<",        json!({"invoice_date": "2026-03-05"}), &[]),
        ("no day of the calendar", ">20260305<", ">20260231<",           json!({"invoice_date": null}), &["unread.invoice_date"]),
        ("a month",               ">20260404<", ">202604<",              json!({"due_date": null}), &["unread.due_date"]),
        ("a day in another form", ">20260404<", ">04/04/2026<",          json!({"due_date": null}), &["unread.due_date"]),
        ("a due date in words",   ">20260404<", ">soon<",                json!({"due_date": null}), &["unread.due_date"]),
        ("a total of a comma",    ">229.08<",   ">229,08<",              json!({"total": 229.08}), &["total_from_due", "unread.total"]),
        ("a total of 30 digits",  ">229.08<",   ">111111111111111111111111111111<", json!({"total": 229.08}), &["total_from_due", "unread.total"]),
        ("a binary total",        ">229.08<",   ">229.08000000000001<",  json!({"total": 229.08}), &[]),
        ("a word for a quantity", ">20.0000<",  ">twenty<",              json!({"total": 229.08}), &["unread.line_items.quantity"]),
        ("no net amount",         "<r:TaxBasisTotalAmount>192.50<", "<r:TaxBasisTotalAmount><", json!({"subtotal": null}), &["missing.subtotal"]),
        ("a discount in free text", "PROZENT=2.00#", "PROZENT=2,00 %#", json!({"cash_discounts": [{"percent": 2, "days": 10}]}), &[]),
        ("one without a number",  "PROZENT=2.00#", "PROZENT=two#",       json!({"cash_discounts": null}), &["unread.cash_discounts"]),
        ("a charge or allowance", ">false</u:Indicator>", ">maybe</u:Indicator>", json!({"allowances": null}), &["sum.subtotal", "unread.allowances"]),
        ("a long name",           "<r:Name>Buyer", &format!("<r:Name>{long}"), json!({"total": 229.08}), &["text_cut"]),
    ];
    for (name, from, to, expected, doubts) in table {
        assert!(cii().contains(from), "{name}");
        let read = parse_einvoice(cii().replacen(from, to, 1).as_bytes()).unwrap();
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(read.field(field), *value, "{name}");
        }
        assert_eq!(read.doubts(), doubts, "{name}");
        assert!(read.is_sound(), "{name}");
    }
}

#[test]
#[rustfmt::skip]
fn a_price_is_that_of_one_unit_or_carries_what_it_is_for() {
    let priced = |price: &str, base: &str, unit: &str| {
        let base = format!("<b:BaseQuantity unitCode='{unit}'>{base}</b:BaseQuantity>");
        let xml = ubl().replacen("<b:PriceAmount>9.90</b:PriceAmount>", &format!("<b:PriceAmount>{price}</b:PriceAmount>{base}"), 1);
        let read = parse_einvoice(xml.as_bytes()).unwrap();
        let line = read.field("line_items")[0].clone();
        let cell = |name: &str| line[name].clone();
        let cells = ["unit_price", "price_base_quantity", "price_base_unit"].map(cell);
        // The amount stays that of another price.
        let doubts = read.doubts().iter().filter(|doubt| *doubt != "product.line_items");
        (cells, doubts.cloned().collect::<Vec<_>>())
    };
    let none = Vec::<String>::new;
    let refused = vec!["unread.line_items.price_base_quantity".to_owned()];
    for (price, base, unit, cells, doubts) in [
        ("2.00", "100", "C62", json!([0.02, null, null]), none()),
        ("2.00", "100000", "C62", json!([0.000_02, null, null]), none()),
        ("0.10", "0.5", "", json!([0.2, null, null]), none()),
        ("2.00", "1", "C62", json!([2, null, null]), none()),
        ("2.00", "3", "C62", json!([2, 3, null]), none()),
        ("18.00", "1000", "KGM", json!([18, 1000, "KGM"]), none()),
        ("2.00", "0", "C62", json!([2, null, null]), refused.clone()),
        ("2.00", "-1", "C62", json!([2, null, null]), refused),
        ("", "100", "C62", json!([null, null, null]), none()),
    ] {
        let (read, noted) = priced(price, base, unit);
        assert_eq!((json!(read), noted), (cells, doubts), "{price} for {base} {unit}");
    }
    let gross = "<r:GrossPriceProductTradePrice><r:BasisQuantity>100</r:BasisQuantity>\
                 </r:GrossPriceProductTradePrice><r:NetPriceProductTradePrice>";
    let xml = cii().replacen("<r:NetPriceProductTradePrice>", gross, 1);
    let read = parse_einvoice(xml.as_bytes()).unwrap().field("line_items");
    assert_eq!(read[0]["unit_price"], json!(0.099), "stated at the gross price alone");
}

#[test]
#[rustfmt::skip]
fn a_document_that_is_no_ordinary_demand_is_named_by_its_code_or_its_sign() {
    let code = |code: &str| cii().replace(">380<", &format!(">{code}<"));
    let negative =
        |text: String| text.replace(">229.08<", ">-229.08<").replace(">129.10<", ">-329.06<");
    for (name, xml, is_credit_note, doubts) in [
        ("an invoice", code("380"), false, vec![]),
        ("a correction", code("384"), false, vec![]),
        ("a credit note", code("381"), true, vec![]),
        ("pro forma", code("325"), false, vec!["type_325"]),
        ("a prepayment", code("386"), false, vec!["type_386"]),
        ("written by the buyer", code("389"), false, vec!["type_389"]),
        ("factored", code("393"), false, vec!["type_393"]),
        ("for bookkeeping", code("751"), false, vec!["type_751"]),
        ("of construction work", code("876"), false, vec!["type_876"]),
        ("a code of nothing", code("<secret>"), false, vec![]),
        ("a demand below zero", negative(code("380")), false, vec!["negative_total"]),
        ("a credit note below zero", negative(code("381")), true, vec!["negative_credit_note"]),
        ("the same in UBL", negative(ubl_credit_note()), true, vec!["negative_credit_note"]),
    ] {
        let Ok(read) = parse_einvoice(xml.as_bytes()) else { continue };
        assert_eq!((read.is_credit_note, read.doubts().to_vec()), (is_credit_note, doubts.into_iter().map(str::to_owned).collect()), "{name}");
    }
}

#[test]
fn a_vat_identifier_is_found_under_every_scheme_that_has_one() {
    let registration = "<c:PartyTaxScheme><b:CompanyID>DE123456789</b:CompanyID> \
                        <c:TaxScheme><b:ID>VAT</b:ID></c:TaxScheme></c:PartyTaxScheme>";
    let ubl = ubl().replace("\n          ", " ");
    assert!(ubl.contains(registration), "{ubl}");
    let of_ubl = |other: &str| ubl.replacen(registration, other, 1);
    let scheme = |text: &str| registration.replace("<b:ID>VAT</b:ID>", text);
    let id = |tag: &str, scheme: &str| {
        format!("<c:{tag}><b:ID schemeID='{scheme}'>DE123456789</b:ID></c:{tag}>")
    };
    let of_cii = |scheme: &str| cii().replacen("schemeID='VA'", scheme, 1);
    for (name, xml, found) in [
        ("in small letters", of_ubl(&scheme("<b:ID>vat</b:ID>")), true),
        ("by its name", of_ubl(&scheme("<b:Name>VAT</b:Name>")), true),
        ("without a scheme", of_ubl(&scheme("")), true),
        ("of another tax", of_ubl(&scheme("<b:ID>EXC</b:ID>")), false),
        ("GST", of_ubl(&scheme("<b:ID>GST</b:ID>")), true),
        ("9930", of_ubl(&id("PartyIdentification", "9930")), true),
        ("0213", of_ubl(&id("PartyIdentification", "0213")), true),
        ("9909", of_ubl(&id("PartyIdentification", "9909")), true),
        ("an address", of_ubl("<b:EndpointID schemeID='9930'>DE123456789</b:EndpointID>"), true),
        ("a mail address", of_ubl("<b:EndpointID schemeID='EM'>DE123456789</b:EndpointID>"), false),
        ("a company number", of_ubl(&id("PartyIdentification", "0208")), false),
        ("CII, VAT", of_cii("schemeID='VAT'"), true),
        ("CII, no scheme", of_cii(""), true),
        ("CII, a tax number", of_cii("schemeID='FC'"), false),
    ] {
        let read = parse_einvoice(xml.as_bytes()).unwrap().field("supplier_vat_id");
        let expected = if found { json!("DE123456789") } else { Value::Null };
        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn several_due_dates_are_instalments_unless_one_is_that_of_a_discount() {
    let term = |day: &str, amount: &str, text: &str| {
        format!(
            "<r:SpecifiedTradePaymentTerms><r:Description>{text}</r:Description><r:DueDateDateTime>\
             <u:DateTimeString>{day}</u:DateTimeString></r:DueDateDateTime>\
             <r:PartialPaymentAmount>{amount}</r:PartialPaymentAmount></r:SpecifiedTradePaymentTerms>"
        )
    };
    let text = cii();
    let from = text.find("<r:SpecifiedTradePaymentTerms>").unwrap();
    let end = text.find("</r:SpecifiedTradePaymentTerms>").unwrap() + 31;
    let with = |terms: &[String]| {
        let mut xml = text.clone();
        xml.replace_range(from..end, &terms.concat());
        let read = parse_einvoice(xml.as_bytes()).unwrap();
        (read.field("due_date"), read.field("instalments"), read.doubts().to_vec())
    };
    let two = json!([{"due_date": "2026-04-04", "amount": 100}, {"due_date": "2026-05-04", "amount": null}]);
    let (first, second) = (term("20260404", "100", "1."), term("20260504", "", "2."));
    let discount = term("20260315", "", "2 % Skonto");
    let none = Vec::<String>::new();
    for (terms, due, instalments, doubts) in [
        (vec![first.clone()], "2026-04-04", Value::Null, none.clone()),
        (vec![discount.clone(), first.clone()], "2026-04-04", Value::Null, none.clone()),
        (vec![discount], "2026-03-15", Value::Null, none.clone()),
        (
            vec![first.clone(), first.clone()],
            "2026-04-04",
            json!([{"due_date": "2026-04-04", "amount": 100}, {"due_date": "2026-04-04", "amount": 100}]),
            none.clone(),
        ),
        (vec![first, second], "2026-04-04", two, vec!["several_due_dates".to_owned()]),
    ] {
        assert_eq!(with(&terms), (json!(due), instalments, doubts), "{terms:?}");
    }
}

#[test]
#[rustfmt::skip]
fn totals_are_those_of_the_invoices_currency_and_a_missing_one_is_what_is_due_and_paid() {
    let all = ["TaxExclusiveAmount", "TaxInclusiveAmount", "PrepaidAmount", "PayableAmount"];
    let foreign = all.iter().fold(ubl(), |text, name| {
        text.replace(&format!("<b:{name}>"), &format!("<b:{name} currencyID='USD'>"))
    });
    let lacking = ubl().replace("<b:TaxInclusiveAmount>229.08</b:TaxInclusiveAmount>", "");
    let second = cii().replace("<r:GrandTotalAmount>", "<r:GrandTotalAmount currencyID='SEK'>2500</r:GrandTotalAmount><r:GrandTotalAmount>");
    for (name, xml, doubts) in [
        ("in another currency", foreign, vec!["currency_of.amount_due", "currency_of.paid_amount", "currency_of.subtotal", "currency_of.total"]),
        ("no total", lacking, vec!["total_from_due"]),
        ("in both", second, vec![]),
    ] {
        let read = parse_einvoice(xml.as_bytes()).unwrap();
        assert_eq!((read.field("total"), read.doubts().to_vec()), (json!(229.08), doubts.into_iter().map(str::to_owned).collect()), "{name}");
    }
}

#[test]
fn an_invoice_without_its_namespace_is_read_and_named() {
    let bare =
        ubl().replacen(" xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'", "", 1);
    let read = parse_einvoice(bare.as_bytes()).unwrap();
    assert_eq!(
        (read.field("total"), read.doubts()),
        (json!(229.08), &["no_namespace".to_owned()][..])
    );
}

#[test]
fn pages_fill_what_an_einvoice_lacks_and_nothing_that_it_has() {
    let read = |total: f64, lines: Value| Extraction {
        data: json!({"total": total, "line_items": lines}).as_object().unwrap().clone(),
        ..extract_einvoice(&parse_einvoice(cii().as_bytes()).unwrap(), &kind())
    };
    let mut xml = read(1.0, Value::Null);
    let filled = fill_absent_fields(&mut xml, read(2.0, json!([{"amount": 2}])));
    assert_eq!(filled, ["line_items"]);
    assert_eq!(Value::Object(xml.data), json!({"total": 1.0, "line_items": [{"amount": 2}]}));
}

#[test]
fn a_kind_without_an_invoices_fields_is_not_told_by_one() {
    let mut contract = (*kind()).clone();
    assert!(kind_uses_einvoice(&contract));
    contract.schema["properties"].as_object_mut().unwrap().remove("total");
    assert!(!kind_uses_einvoice(&contract));
}

#[test]
fn several_files_say_one_thing_or_are_not_used() {
    let other = cii().replace("RE-17", "RE-18");
    let incomplete = cii().replacen(">EUR<", "><", 1);
    let found = |files: &[&str], is_document| {
        let files: Vec<Vec<u8>> = files.iter().map(|file| file.as_bytes().to_vec()).collect();
        let found = EinvoiceFinding::from_files(&files, is_document).invoice;
        found.map(|invoice| invoice.map(|invoice| invoice.field("invoice_number")))
    };
    let sound = Ok(Some(json!("RE-17")));
    for (name, files, is_document, expected) in [
        ("none", vec![], false, Ok(None)),
        ("one", vec![cii()], false, sound.clone()),
        ("two that agree", vec![cii(), ubl()], false, sound.clone()),
        ("two that do not", vec![cii(), other], false, Err(EinvoiceDefect::Several)),
        ("a broken one beside it", vec!["<a>".to_owned(), cii()], false, sound.clone()),
        ("an incomplete one", vec![incomplete.clone()], false, Err(EinvoiceDefect::Incomplete)),
        ("an incomplete one that is all there is", vec![incomplete], true, sound),
    ] {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        assert_eq!(found(&files, is_document), expected, "{name}");
    }
}

#[test]
#[expect(clippy::string_slice, reason = "at places that were found in it")]
fn more_lines_or_words_than_one_message_holds_are_no_invoice() {
    let text = cii();
    let line = text.find("<r:IncludedSupplyChainTradeLineItem>").unwrap();
    let end = text.find("</r:IncludedSupplyChainTradeLineItem>").unwrap() + 37;
    let with = |lines: usize, name: &str| {
        let one = text[line..end].replace("Paper", name);
        let xml = format!("{}{}{}", &text[..end], one.repeat(lines - 3), &text[end..]);
        parse_einvoice(xml.as_bytes()).map(|_| ())
    };
    let refused = Err(EinvoiceDefect::Xml(XmlError::TooLarge));
    assert_eq!(with(20_000, "P"), Ok(()));
    assert_eq!(with(20_100, "P"), refused);
    assert_eq!(with(200, &"P".repeat(9_000)), refused);
}

#[test]
fn discounts_and_charges_of_the_extended_profile_are_read_too() {
    let terms = "<r:ApplicableTradePaymentDiscountTerms><r:BasisPeriodMeasure unitCode='DAY'>7\
                 </r:BasisPeriodMeasure><r:CalculationPercent>3</r:CalculationPercent>\
                 </r:ApplicableTradePaymentDiscountTerms></r:SpecifiedTradePaymentTerms>";
    let freight = "<r:SpecifiedLogisticsServiceCharge><r:Description>Pallets</r:Description>\
                   <r:AppliedAmount>4.20</r:AppliedAmount></r:SpecifiedLogisticsServiceCharge>";
    let xml = cii()
        .replace(" #SKONTO#TAGE=10#PROZENT=2.00#", "")
        .replace("</r:SpecifiedTradePaymentTerms>", &format!("{terms}{freight}"));
    let read = parse_einvoice(xml.as_bytes()).unwrap();
    assert_eq!(read.field("cash_discounts"), json!([{"percent": 3, "days": 7}]));
    let pallets = json!({"reason": "Pallets", "tax_rate": null, "amount": 4.2});
    assert_eq!(read.field("charges")[1], pallets);
    assert!(read.is_sound());
    for (unit, days) in [("DAY", json!(7)), ("MON", json!(null))] {
        let period = format!(
            "<b:SettlementDiscountPercent>3</b:SettlementDiscountPercent><c:SettlementPeriod>\
             <b:DurationMeasure unitCode='{unit}'>7</b:DurationMeasure></c:SettlementPeriod>\
             </c:PaymentTerms>"
        );
        let xml = ubl().replacen("</c:PaymentTerms>", &period, 1);
        let read = parse_einvoice(xml.as_bytes()).unwrap();
        assert_eq!(read.field("cash_discounts")[1], json!({"percent": 3, "days": days}), "{unit}");
    }
}

#[test]
fn a_line_that_lacks_something_is_a_line_all_the_same() {
    for (name, quantity, amount) in
        [("", "2", "4.00"), ("Paper", "", "4.00"), ("Paper", "2", ""), ("Paper", "", "")]
    {
        let line = cii_line("", [name, ""], ["2.00", quantity, amount]);
        let xml =
            cii().replacen("<r:IncludedSupplyChain", &format!("{line}<r:IncludedSupplyChain"), 1);
        let read = parse_einvoice(xml.as_bytes()).unwrap().field("line_items");
        assert_eq!(read.as_array().map(Vec::len), Some(3), "{name}, {quantity}, {amount}");
    }
}

#[test]
fn an_account_that_is_no_iban_is_none_and_a_mistyped_one_is_kept_for_the_gate() {
    let other = ubl().replace("DE89370400440532013000", "87-654321");
    assert_eq!(parse_einvoice(other.as_bytes()).unwrap().field("iban"), json!(null));
    let typo = ubl().replace("DE89370400440532013000", "DE89370400440532013001");
    let read = parse_einvoice(typo.as_bytes()).unwrap();
    assert_eq!(read.field("iban"), "DE89370400440532013001");
}

#[test]
fn two_xmls_that_name_two_accounts_are_no_word_to_go_by() {
    let other = ubl().replace("DE89370400440532013000", "NO9386011117947").into_bytes();
    let none = ubl().replace("DE89370400440532013000", "87-654321").into_bytes();
    let read = |second: Vec<u8>| {
        EinvoiceFinding::from_files(&[cii().into_bytes(), second], false)
            .invoice
            .map(|it| it.is_some())
    };
    assert_eq!(read(ubl().into_bytes()), Ok(true));
    assert_eq!(read(none), Ok(true));
    assert_eq!(read(other), Err(EinvoiceDefect::Several));
}
