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
        "supplier_name": "Papier & Söhne GmbH",
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
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "currency": "EUR",
        "line_items": [
            {"description": "Paper", "article_number": "P-1", "quantity": 20, "unit": "C62",
             "unit_price": 9.9, "tax_rate": 19, "amount": 198},
            {"description": "Return", "article_number": "R-2", "quantity": -1, "unit": "C62",
             "unit_price": 5.5, "tax_rate": 19, "amount": -5.5},
        ],
        "allowances": [{"reason": "Rebate", "tax_rate": 19, "amount": 10}],
        "charges": [{"reason": "Freight", "tax_rate": 19, "amount": 10}],
        "taxes": [{"rate": 19, "base": 192.5, "amount": 36.58}],
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
        </r:SellerTradeParty><r:BuyerTradeParty><r:Name>Buyer</r:Name>
          <r:SpecifiedTaxRegistration><r:ID schemeID='VA'>ATU12345675</r:ID></r:SpecifiedTaxRegistration>
          </r:BuyerTradeParty><r:BuyerOrderReferencedDocument><r:IssuerAssignedID>PO 4711</r:IssuerAssignedID>
          </r:BuyerOrderReferencedDocument></r:ApplicableHeaderTradeAgreement>
        <r:ApplicableHeaderTradeSettlement><r:InvoiceCurrencyCode>EUR</r:InvoiceCurrencyCode>
          <r:SpecifiedTradeSettlementPaymentMeans><r:TypeCode>59</r:TypeCode><r:PayerPartyDebtorFinancialAccount>
            <r:IBANID>NO9386011117947</r:IBANID></r:PayerPartyDebtorFinancialAccount>
          </r:SpecifiedTradeSettlementPaymentMeans>
          <r:SpecifiedTradeSettlementPaymentMeans><r:PayeePartyCreditorFinancialAccount>
            <r:IBANID>DE89 3704 0044 0532 0130 00</r:IBANID></r:PayeePartyCreditorFinancialAccount>
            <r:PayeeSpecifiedCreditorFinancialInstitution><r:BICID>COBADEFFXXX</r:BICID>
            </r:PayeeSpecifiedCreditorFinancialInstitution></r:SpecifiedTradeSettlementPaymentMeans>
          <r:ApplicableTradeTax><r:CalculatedAmount>36.58</r:CalculatedAmount><r:BasisAmount>192.50</r:BasisAmount>
            <r:RateApplicablePercent>19</r:RateApplicablePercent></r:ApplicableTradeTax>
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
        <c:OrderReference><b:ID>PO 4711</b:ID></c:OrderReference>
        <c:AccountingSupplierParty><c:Party><c:PartyName><b:Name>Papier &amp; Söhne GmbH</b:Name></c:PartyName>
          <c:PostalAddress><b:StreetName>Am Markt 1</b:StreetName><b:AdditionalStreetName>Hof 2\
          </b:AdditionalStreetName><b:CityName>Berlin</b:CityName><b:PostalZone>10115</b:PostalZone>
          <c:Country><b:IdentificationCode>DE</b:IdentificationCode></c:Country></c:PostalAddress>
          <c:PartyTaxScheme><b:CompanyID>11/222</b:CompanyID><c:TaxScheme><b:ID>FC</b:ID></c:TaxScheme>
          </c:PartyTaxScheme><c:PartyTaxScheme><b:CompanyID>DE123456789</b:CompanyID>
          <c:TaxScheme><b:ID>VAT</b:ID></c:TaxScheme></c:PartyTaxScheme>
          <c:PartyLegalEntity><b:RegistrationName>P. und S. GmbH</b:RegistrationName></c:PartyLegalEntity>
        </c:Party></c:AccountingSupplierParty><c:AccountingCustomerParty><c:Party>
          <c:PartyTaxScheme><b:CompanyID>ATU12345675</b:CompanyID><c:TaxScheme><b:ID>VAT</b:ID></c:TaxScheme>
          </c:PartyTaxScheme><c:PartyLegalEntity><b:RegistrationName>Buyer</b:RegistrationName></c:PartyLegalEntity>
        </c:Party></c:AccountingCustomerParty>
        <c:PaymentMeans><c:PayeeFinancialAccount><b:ID>12-3456</b:ID></c:PayeeFinancialAccount></c:PaymentMeans>
        <c:PaymentMeans><c:PayeeFinancialAccount><b:ID>DE89370400440532013000</b:ID>
          <c:FinancialInstitutionBranch><b:ID>COBADEFFXXX</b:ID></c:FinancialInstitutionBranch>
        </c:PayeeFinancialAccount></c:PaymentMeans>
        <c:PaymentTerms><b:Note>30 days #SKONTO#TAGE=10#PROZENT=2.00#</b:Note></c:PaymentTerms>
        {adjustments}
        <c:TaxTotal><b:TaxAmount currencyID='SEK'>401.00</b:TaxAmount><c:TaxSubtotal>
          <b:TaxAmount currencyID='SEK'>401.00</b:TaxAmount></c:TaxSubtotal></c:TaxTotal>
        <c:TaxTotal><b:TaxAmount currencyID='EUR'>36.58</b:TaxAmount><c:TaxSubtotal>
          <b:TaxableAmount>192.50</b:TaxableAmount><b:TaxAmount currencyID='EUR'>36.58</b:TaxAmount>
          <c:TaxCategory><b:Percent>19</b:Percent></c:TaxCategory></c:TaxSubtotal></c:TaxTotal>
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
        .replace("InvoiceTypeCode", "CreditNoteTypeCode")
}

#[test]
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
        (
            "other prefixes",
            cii()
                .replace("<r:", "<ram:")
                .replace("</r:", "</ram:")
                .replace("xmlns:r=", "xmlns:ram="),
            false,
        ),
    ] {
        let read = parse_einvoice(xml.as_bytes()).unwrap_or_else(|flaw| panic!("{name}: {flaw}"));
        let extraction = extract_einvoice(&read, &kind());
        let known = extraction.data.into_iter().filter(|(_, value)| !value.is_null());
        assert_eq!(Value::Object(known.collect()), expected(), "{name}");
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
    let part = |from: &str, to: &str| cii().replacen(from, to, 1);
    let long = "1".repeat(30);
    let cut = |text: String| text.get(..text.len() / 2).unwrap().to_owned();
    #[rustfmt::skip]
    let table: Vec<(&str, String, EinvoiceDefect)> = vec![
        ("an amount of 30 digits",   part(">229.08<", &format!(">{long}<")),     EinvoiceDefect::Amount),
        ("30 decimals",              part(">229.08<", &format!(">0.{long}<")),   EinvoiceDefect::Amount),
        ("more digits than a number carries", part(">229.08<", ">12345678901234567.89<"), EinvoiceDefect::Amount),
        ("more decimals than a number carries", part(">229.08<", ">0.1234567890123456789<"), EinvoiceDefect::Amount),
        ("a quantity that is a word", part(">20.0000<", ">twenty<"),             EinvoiceDefect::Amount),
        ("NaN",                      part(">229.08<", ">NaN<"),                  EinvoiceDefect::Amount),
        ("a power of ten",           part(">229.08<", ">1e3<"),                  EinvoiceDefect::Amount),
        ("a comma",                  part(">229.08<", ">229,08<"),               EinvoiceDefect::Amount),
        ("a sign alone",             part(">229.08<", ">-<"),                    EinvoiceDefect::Amount),
        ("an underscore",            part(">229.08<", ">2_29.08<"),              EinvoiceDefect::Amount),
        ("no day of the calendar",   part(">20260305<", ">20260231<"),           EinvoiceDefect::Date),
        ("a week",                   part(">20260305<", ">202610<"),             EinvoiceDefect::Date),
        ("a digit too many",         part(">20260305<", ">202603051<"),          EinvoiceDefect::Date),
        ("a time of letters",        part(">20260305<", ">20260305noon<"),       EinvoiceDefect::Date),
        ("a day with a sign",        part(">20260305<", ">2026-+3-05<"),         EinvoiceDefect::Date),
        ("a due date in words",      part(">20260404<", ">soon<"),               EinvoiceDefect::Date),
        ("an order",                 cii().replace("CrossIndustryInvoice", "SCRDMCCBDACIOMessageStructure"), EinvoiceDefect::NotAnInvoice),
        ("a namespace of our own",   cii().replace("CrossIndustryInvoice:100", "CrossIndustryInvoice:999"), EinvoiceDefect::NotAnInvoice),
        ("no namespace",             "<Invoice/>".to_owned(),                     EinvoiceDefect::NotAnInvoice),
        ("UBL, but an order",        ubl().replace("Invoice", "Order"),           EinvoiceDefect::NotAnInvoice),
        ("cut off",                  cut(cii()),                                  EinvoiceDefect::Xml(XmlError::Malformed)),
        ("an entity",                format!("<!DOCTYPE x [<!ENTITY e 'x'>]>{}", ubl()), EinvoiceDefect::Xml(XmlError::Entities)),
        ("an endless name",          part("Papier", &"P".repeat(20_000)),        EinvoiceDefect::Xml(XmlError::TooLarge)),
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
        let lacking = cii().replacen(value, "><", 1);
        assert!(!parse_einvoice(lacking.as_bytes()).unwrap().is_complete(), "{value}");
    }
    assert!(parse_einvoice(cii().replacen(">36.58<", "><", 1).as_bytes()).unwrap().is_complete());
}

#[test]
fn days_are_read_in_both_forms_and_amounts_with_every_digit() {
    let with = |date: &str, total: &str| {
        let text = cii().replacen(">20260305<", &format!(">{date}<"), 1);
        let text = text.replacen(">229.08<", &format!(">{total}<"), 1);
        let invoice = parse_einvoice(text.as_bytes()).unwrap();
        let data = extract_einvoice(&invoice, &kind()).data;
        (data["invoice_date"].clone(), data["total"].to_string())
    };
    for (date, total, expected) in [
        ("2026-03-05", "229.0800", "229.08"),
        ("2026-03-05T10:00:00", "+0.10", "0.1"),
        ("202603051000", "-0.0001", "-0.0001"),
        ("20260305", "123456789.1234", "123456789.1234"),
        ("2026-03-05+01:00", "100000000000000000", "100000000000000000"),
        (" 20260305 ", "0.30", "0.3"),
    ] {
        assert_eq!(with(date, total), (json!("2026-03-05"), expected.to_owned()));
    }
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
fn an_adjustment_that_does_not_say_which_way_it_goes_makes_the_xml_unusable() {
    let xml = ubl().replace(">false</b:ChargeIndicator>", ">maybe</b:ChargeIndicator>");
    assert_eq!(parse_einvoice(xml.as_bytes()).unwrap_err(), EinvoiceDefect::Amount);
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
