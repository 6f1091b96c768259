//! Valid invoices that a simple reader misreads, with the values that each format's specification
//! gives.

use serde_json::{Value, json};

use super::national_tests::{austrian, changed, edifact, italian, ksef, read, spanish};
use super::{fatturapa_simplified, ubl};

/// A name, a legal invoice, values (`LIST.CELL`: of the first entry), and doubts with one blank between.
type LegalCase = (&'static str, String, Value, &'static str);

fn assert_cases(cases: Vec<LegalCase>) {
    let mut wrong = Vec::new();
    for (name, text, fields, doubts) in cases {
        let invoice = read(&text);
        assert!(invoice.is_sound() && invoice.is_complete(), "{name}");
        if invoice.doubts().join(" ") != doubts {
            wrong.push(format!("{name}: {:?}, not {doubts}", invoice.doubts()));
        }
        for (field, expected) in fields.as_object().unwrap() {
            let found = match field.split_once('.') {
                Some((list, cell)) => invoice.field(list)[0][cell].clone(),
                None => invoice.field(field),
            };
            if found != *expected {
                wrong.push(format!("{name}, {field}: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[rustfmt::skip]
fn polish_invoices_have_days_of_supply_on_lines_and_corrections_by_the_buyer() {
    let days = |first: &str, second: &str| changed(ksef(), &[("<P_7>Paper", &format!("<P_6A>{first}</P_6A><P_7>Paper")), ("<P_7>Pens", &format!("<P_6A>{second}</P_6A><P_7>Pens"))]);
    let by_buyer = changed(ksef(), &[
        ("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>", "<P_13_1>-200.00</P_13_1><P_14_1>-46.00</P_14_1><P_15>-246.00</P_15>"),
        ("<P_8B>20</P_8B><P_9A>9.00</P_9A><P_11>180", "<P_8B>-20</P_8B><P_9A>9.00</P_9A><P_11>-180"),
        ("<P_8B>4</P_8B><P_9A>5.00</P_9A><P_11>20", "<P_8B>-4</P_8B><P_9A>5.00</P_9A><P_11>-20"),
        ("<P_17>2", "<P_17>1"), ("<RodzajFaktury>VAT", "<RodzajFaktury>KOR"),
    ]);
    let special = ksef().replace("<P_12>23</P_12></FaWiersz>\n          <Pl", "<P_12_XII>19</P_12_XII></FaWiersz><Pl").replace("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00", "<P_13_1>180</P_13_1><P_14_1>41.40</P_14_1><P_13_5>20</P_13_5><P_14_5>3.80</P_14_5><P_15>225.20");
    let row = |rate: i64, base: i64, amount: f64| json!({"rate": rate, "base": base, "amount": amount, "category": "S", "exemption_reason": null});
    assert_cases(vec![
        ("the rate of another member state", special, json!({"taxes": [row(23, 180, 41.4), row(19, 20, 3.8)]}), ""),
        ("one day on all lines", days("2026-02-27", "2026-02-27"), json!({"delivery_date": "2026-02-27"}), ""),
        ("two days", days("2026-02-27", "2026-02-28"), json!({"delivery_date": null}), ""),
        ("a correction that the buyer wrote", by_buyer, json!({"document_type": "261", "total": 246, "line_items.amount": 180, "line_items.quantity": 20}), "type_261"),
    ]);
}

#[test]
#[rustfmt::skip]
fn italian_invoices_have_days_by_reference_transport_and_lines_issuers_and_duty_beside_other_amounts() {
    let issuer = "</CessionarioCommittente><SoggettoEmittente>CC</SoggettoEmittente>";
    let days = "<DataRiferimentoTerminiPagamento>2026-03-31</DataRiferimentoTerminiPagamento><GiorniTerminiPagamento>30</GiorniTerminiPagamento>";
    let period = italian().replace("</DettaglioLinee>", "<DataInizioPeriodo>2026-02-01</DataInizioPeriodo><DataFinePeriodo>2026-02-28</DataFinePeriodo></DettaglioLinee>");
    let transport = "<DatiTrasporto><DataOraConsegna>2026-03-02T10:30:00</DataOraConsegna></DatiTrasporto></DatiGenerali>";
    let stamped = |total: &str, more: &str| changed(italian(), &[("<ImportoTotaleDocumento>246.00", &format!("{more}<DatiBollo/><ImportoTotaleDocumento>{total}")), ("<ImportoPagamento>246.00", &format!("<ImportoPagamento>{total}"))]);
    let off = |kind: &str, percent: &str| changed(italian().replace("246.00", "221.40"), &[("<ImportoTotale", &format!("<ScontoMaggiorazione><Tipo>{kind}</Tipo><Percentuale>{percent}</Percentuale></ScontoMaggiorazione><ImportoTotale")), ("<ImponibileImporto>200.00", "<ImponibileImporto>180.00"), ("<Imposta>46.00", "<Imposta>41.40")]);
    let half = italian().replace("<ImportoPagamento>246.00", "<ImportoPagamento>123.00");
    let (start, rest) = half.split_once("<DettaglioPagamento>").unwrap();
    let (part, end) = rest.split_once("</DettaglioPagamento>").unwrap();
    let twice = format!("{start}{0}{0}{end}", format!("<DettaglioPagamento>{part}</DettaglioPagamento>"));
    let codes = changed(twice.clone(), &[("<IBAN>IT60X0542811101000000123456</IBAN>", "<CodicePagamento>A</CodicePagamento>"), ("<IBAN>", "<CodicePagamento>B</CodicePagamento><IBAN>")]);
    let withheld = "<DatiRitenuta><ImportoRitenuta>40.00</ImportoRitenuta></DatiRitenuta>";
    assert_cases(vec![
        ("issued by the buyer", changed(italian(), &[("</CessionarioCommittente>", issuer)]), json!({"document_type": "389"}), "type_389"),
        ("a credit note issued by the buyer", changed(italian(), &[("</CessionarioCommittente>", issuer), ("TD01", "TD04")]), json!({"document_type": "261", "total": 246}), "type_261"),
        ("days from a day of reference on", changed(italian(), &[("<DataScadenzaPagamento>2026-04-04</DataScadenzaPagamento>", days)]), json!({"due_date": "2026-04-30", "payment_terms": "30 giorni"}), ""),
        ("delivery by the transport, period by the lines", changed(period, &[("</DatiGenerali>", transport)]), json!({"delivery_date": "2026-03-02", "period_start": "2026-02-01", "period_end": "2026-02-28"}), ""),
        ("a discount by percentage", off("SC", "10"), json!({"allowances.amount": 20, "subtotal": 180, "amount_due": 221.4}), ""),
        ("a percentage that the tax basis does not have", off("SC", "40"), json!({"allowances": null}), "sum.subtotal unread.allowances"),
        ("a surcharge by percentage beside it", off("MG", "10").replace("180.00</Imp", "220.00</Imp").replace("41.40</Imposta", "50.60</Imposta").replace("221.40", "270.60"), json!({"charges.amount": 20}), ""),
        ("the code of the payment to the IBAN", codes, json!({"iban": "IT60X0542811101000000123456", "payment_reference": "B"}), "several.payment_reference"),
        ("two payments on one day", twice, json!({"due_date": "2026-04-04"}), ""),
        ("duty and rounding", stamped("248.01", "<Arrotondamento>0.01</Arrotondamento>"), json!({"subtotal": 202, "total": 248, "rounding_amount": 0.01, "amount_due": 248.01}), ""),
        ("duty in a total after withholding", stamped("208.00", withheld), json!({"subtotal": 202, "total": 248, "amount_due": 208}), "total_after_withholding"),
    ]);
}

fn simplified(items: &str) -> String {
    format!(
        "<p:FatturaElettronicaSemplificata xmlns:p='{}' versione='FSM10'><FatturaElettronicaHeader><DatiTrasmissione/>
        <CedentePrestatore><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>12345678903</IdCodice></IdFiscaleIVA>
        <Nome>Ada</Nome><Cognome>Rossi</Cognome><Sede><Indirizzo>Via 1</Indirizzo><CAP>00100</CAP><Comune>Roma</Comune>
        <Nazione>IT</Nazione></Sede></CedentePrestatore><CessionarioCommittente><IdentificativiFiscali><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>00743110157</IdCodice></IdFiscaleIVA></IdentificativiFiscali>
        <AltriDatiIdentificativi><Denominazione>Buyer</Denominazione></AltriDatiIdentificativi></CessionarioCommittente></FatturaElettronicaHeader><FatturaElettronicaBody><DatiGenerali><DatiGeneraliDocumento>
        <TipoDocumento>TD07</TipoDocumento><Divisa>EUR</Divisa><Data>2026-03-05</Data><Numero>7</Numero>
        </DatiGeneraliDocumento></DatiGenerali>{items}</FatturaElettronicaBody></p:FatturaElettronicaSemplificata>",
        fatturapa_simplified::NAMESPACE
    )
}

#[test]
#[rustfmt::skip]
fn a_simplified_italian_invoice_has_amounts_with_vat_and_its_tax_or_rate() {
    let item = |amount: &str, tax: &str| format!("<DatiBeniServizi><Descrizione>Pranzo</Descrizione><Importo>{amount}</Importo><DatiIVA>{tax}</DatiIVA></DatiBeniServizi>");
    let rate = item("122.00", "<Aliquota>22.00</Aliquota>");
    let amount = item("11.00", "<Imposta>1.00</Imposta><Aliquota>10.00</Aliquota>");
    let exempt = item("50.00", "").replace("</DatiIVA>", "</DatiIVA><Natura>N4</Natura>");
    let unknown = simplified(&item("10.00", ""));
    let taxes = json!([
        {"rate": 22, "base": 200, "amount": 44, "category": "S", "exemption_reason": null},
        {"rate": 10, "base": 10, "amount": 1, "category": "S", "exemption_reason": null},
        {"rate": 0, "base": 50, "amount": 0, "category": "E", "exemption_reason": "N4"},
    ]);
    let whole = json!({
        "document_type": "380", "supplier_name": "Ada Rossi", "supplier_vat_id": "IT12345678903", "supplier_address": "Via 1, 00100 Roma, IT",
        "buyer_name": "Buyer", "buyer_vat_id": "IT00743110157", "line_items.amount": 100, "taxes": taxes,
        "subtotal": 260, "vat_amount": 45, "total": 305, "amount_due": 305,
    });
    assert_cases(vec![
        ("by rate, by amount, exempt", simplified(&[rate.as_str(), &rate, &amount, &exempt].concat()), whole, ""),
        ("a credit note", changed(simplified(&rate), &[("TD07", "TD08")]), json!({"document_type": "381", "total": 122}), ""),
        ("neither rate nor tax", unknown.clone(), json!({"total": 10}), "gross_line_amounts"),
    ]);
    let two = unknown.replace("</FatturaElettronicaBody>", "</FatturaElettronicaBody><FatturaElettronicaBody/>");
    assert_eq!(super::parse_einvoice(two.as_bytes()), Err(super::EinvoiceDefect::Batch));
}

#[test]
#[rustfmt::skip]
fn spanish_and_austrian_invoices_have_days_on_lines_and_tax_to_the_cent() {
    let class = ("<InvoiceClass>OO", "<InvoiceDocumentType>AF</InvoiceDocumentType><InvoiceClass>OR");
    let mut credit = changed(spanish(), &[class, ("<Quantity>20<", "<Quantity>-20<"), ("<Quantity>4<", "<Quantity>-4<")]);
    for amount in ["180.00", "20.00", "200.00", "46.00", "246.00"] {
        credit = credit.replace(&format!("Amount>{amount}"), &format!("Amount>-{amount}"));
    }
    let credit = credit.replace("Taxes>200", "Taxes>-200").replace("Outputs>46", "Outputs>-46").replace("Total>246", "Total>-246");
    let halves = [(">23<", ">10<"), ("180.00", "180.25"), ("200.00", "200.25"), ("246.00", "220.28")];
    let halves = halves.iter().fold(austrian(), |text, (from, to)| text.replace(from, to));
    let delivered = austrian().replace("</ListLineItem>", "<Delivery><Date>2026-02-27</Date></Delivery></ListLineItem>");
    let done = spanish().replace("</InvoiceLine>", "<TransactionDate>2026-02-27</TransactionDate></InvoiceLine>");
    assert_cases(vec![
        ("Spain, a credit note that the buyer wrote", credit, json!({"document_type": "261", "total": 246, "vat_amount": 46, "line_items.quantity": 20}), "type_261"),
        ("Spain, a series that ends in a stroke", spanish().replace(">RE<", ">2026/<"), json!({"invoice_number": "2026/17"}), ""),
        ("Spain, a unit with a code", spanish().replace("<UnitPrice", "<UnitOfMeasure>36</UnitOfMeasure><UnitPrice"), json!({"line_items.unit": "KWH"}), ""),
        ("Spain, a unit of no list", spanish().replace("<UnitPrice", "<UnitOfMeasure>05</UnitOfMeasure><UnitPrice"), json!({"line_items.unit": null}), ""),
        ("Spain, days of transactions", done, json!({"delivery_date": "2026-02-27"}), ""),
        ("Austria, half a cent of tax that is not stated", halves, json!({"vat_amount": 20.03, "total": 220.28}), ""),
        ("Austria, days of lines", delivered, json!({"delivery_date": "2026-02-27"}), ""),
    ]);
}

/// An EDIFACT file with changes, whose segments are counted anew.
fn counted(changes: &[(&str, &str)]) -> String {
    let text = changed(edifact(), changes);
    let segments = text.matches('\'').count() - 3;
    changed(text, &[("UNT+33+", &format!("UNT+{segments}+"))])
}

#[test]
#[rustfmt::skip]
fn edifact_partners_currencies_taxes_and_days_are_told_by_their_codes() {
    let of_line = "TAX+7+VAT+++:::23+S'\nLIN+2'";
    let lines = counted(&[("LIN+2'", "NAD+SU+9::9++Maker'NAD+IV+8::9++Branch'LIN+2'")]);
    let seller = counted(&[("NAD+BY", "NAD+SE+9::9++Other'RFF+VA:FR40303265045'NAD+BY")]);
    let factor = counted(&[("CUX+2:EUR:4'", "CUX+2:EUR:4'NAD+PE+7::9++Factor'FII+RB+DE02120300000000202051+BYLADEM1001'")]);
    let header = counted(&[(of_line, "LIN+2'"), ("TAX+7+VAT+++:::23+S'\nUNS", "UNS"), ("CUX", "TAX+7+VAT+++:::23+S'CUX")]);
    let discount = counted(&[("DTM+13:20260404:102'", "DTM+13:20260404:102'PAT+22'DTM+12:20260319:102'PCD+12:2'")]);
    let net_days = counted(&[("PAT+3'\nDTM+13:20260404:102'", "PAT+22'DTM+13:20260315:102'PCD+12:2'PAT+1++5:3:D:30'")]);
    let share = |before: &str, percent: &str| counted(&[("CUX", &format!("ALC+A++++DI:::Rabatt'{before}{percent}CUX")), ("MOA+77:246.00", "MOA+77:233.7"), ("MOA+9:246.00", "MOA+9:233.7"), ("MOA+124:46.00", "MOA+124:43.7"), ("MOA+125:200.00", "MOA+125:190"), ("MOA+124:46'", "MOA+124:43.7'"), ("MOA+125:200'", "MOA+125:190'")]);
    let day = |text: &str| counted(&[("DTM+137:20260305:102", &format!("DTM+137:{text}"))]);
    let delivered = counted(&[("QTY+47:20:C62'", "QTY+47:20:C62'DTM+35:20260301:102'"), ("QTY+47:4:C62'", "QTY+47:4:C62'DTM+35:20260301:102'")]);
    assert_cases(vec![
        ("partners of a line", lines, json!({"supplier_name": "Papier Sp.", "supplier_address": "Markt 1, 10115 Berlin, DE", "buyer_name": "Buyer"}), ""),
        ("supplier and seller are two", seller, json!({"supplier_name": "Papier Sp.", "supplier_vat_id": "DE123456788"}), "several.supplier_name"),
        ("the currency of prices before that of the invoice", counted(&[("CUX+2:EUR:4'", "CUX+2:USD:10+3:EUR:4+0.9'")]), json!({"currency": "EUR"}), ""),
        ("another payee and its account", factor, json!({"payee_name": "Factor", "iban": "DE02120300000000202051", "bic": "BYLADEM1001", "further_accounts": ["DE89370400440532013000"]}), ""),
        ("a rate in the header alone", header, json!({"line_items.tax_rate": 23, "vat_amount": 46}), ""),
        ("another tax of a line", counted(&[(of_line, "TAX+7+VAT+++:::23+S'TAX+7+ENV+++:::5'LIN+2'")]), json!({"line_items.tax_rate": 23}), ""),
        ("another tax of the invoice, in no sum of it", counted(&[("UNT+33", "TAX+7+ENV+++:::5'MOA+124:5'UNT+33")]), json!({"vat_amount": 46, "charges": [{"reason": "ENV", "tax_rate": null, "amount": 5}]}), "sum.subtotal"),
        ("days from the invoice on", counted(&[("PAT+3'\nDTM+13:20260404:102'", "PAT+3++5:3:D:30'")]), json!({"due_date": "2026-04-04", "payment_terms": "30 D"}), ""),
        ("days of terms behind a discount with a last day", net_days, json!({"due_date": "2026-04-04", "cash_discounts": [{"percent": 2, "days": 10}]}), ""),
        ("a share of an amount", share("", "PCD+1:5'MOA+25:200'"), json!({"allowances.amount": 10, "subtotal": 190}), ""),
        ("a share of nothing that is stated", share("", "PCD+1:5'"), json!({"allowances": null, "subtotal": 190}), "sum.subtotal unread.allowances"),
        ("a share of nothing", counted(&[("CUX", "ALC+A++++DI:::Rabatt'PCD+1:0'CUX")]), json!({"allowances": null}), ""),
        ("a day of two digits and minutes", day("2603051200:201"), json!({"invoice_date": "2026-03-05"}), ""),
        ("a day and minutes", day("202603051200:203"), json!({"invoice_date": "2026-03-05"}), ""),
        ("a day without a form", day("20260305"), json!({"invoice_date": "2026-03-05"}), ""),
        ("the last day of a discount", discount, json!({"due_date": "2026-04-04", "cash_discounts": [{"percent": 2, "days": 14}]}), ""),
        ("the period of the charges", counted(&[("RFF+ON", "DTM+167:20260201:102'DTM+168:20260228:102'RFF+ON")]), json!({"period_start": "2026-02-01", "period_end": "2026-02-28"}), ""),
        ("a currency of the amounts alone", counted(&[("CUX+2:EUR:4'\n", ""), ("MOA+77:246.00'", "MOA+77:246.00:EUR:4'")]), json!({"currency": "EUR"}), ""),
        ("a charge of the summary", counted(&[("MOA+77:246.00", "MOA+77:258.30"), ("MOA+9:246.00", "MOA+9:258.30"), ("MOA+124:46.00", "MOA+124:48.30"), ("MOA+125:200.00", "MOA+125:210"), ("MOA+124:46'\nMOA+125:200'", "MOA+124:48.30'\nMOA+125:210'\nALC+C++++FC:::Fracht'TAX+7+VAT+++:::23+S'MOA+131:10'")]), json!({"charges": [{"reason": "Fracht", "tax_rate": 23, "amount": 10}]}), ""),
        ("one day of delivery on all lines", delivered, json!({"delivery_date": "2026-03-01"}), ""),
    ]);
}

#[test]
fn edifact_days_of_other_forms_and_messages_that_are_no_originals_are_doubts() {
    for (part, other, expected) in [
        ("+9'", "+9'", ""),
        ("+9'", "'", ""),
        ("+9'", "+42'", ""),
        ("+9'", "+1'", "cancels_another"),
        ("+9'", "+3'", "cancels_another"),
        ("+9'", "+5'", "correction_replaces"),
        ("+9'", "+31'", "copy"),
        ("+9'", "+43'", "copy"),
        ("+9'", "+53'", "test"),
        ("+9'", "+16'", "message_function"),
        ("+9'", "+ZZ'", "message_function"),
        ("20260404:102", "2012030512:203", "unread.due_date"),
        ("20260404:102", "2012030512:102", "unread.due_date"),
        ("20260404:102", "04042026:4", "unread.due_date"),
        ("20260404:102", "20260404:999", "unread.due_date"),
    ] {
        let doubts = read(&changed(edifact(), &[(part, other)])).doubts().join(" ");
        assert_eq!(doubts, expected, "{other}");
    }
}

/// UBL of a country outside of EN 16931, with a way to pay and the price of its line.
fn foreign_ubl(customization: &str, scheme: &str, means: &str, price: &str) -> String {
    let scheme = format!("<c:TaxScheme><b:ID>{scheme}</b:ID></c:TaxScheme>");
    let is_danish = customization.starts_with("OIOUBL");
    let [category, exclusive] = if is_danish { ["StandardRated", "25"] } else { ["S", "100"] };
    format!(
        "<Invoice xmlns='{}' xmlns:c='urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2' xmlns:b='urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2'>
        <b:CustomizationID>{customization}</b:CustomizationID><b:ID>7</b:ID><b:IssueDate>2026-03-05</b:IssueDate><b:InvoiceTypeCode>380</b:InvoiceTypeCode><b:DocumentCurrencyCode>DKK</b:DocumentCurrencyCode>
        <c:AccountingSupplierParty><c:Party><c:PartyName><b:Name>Papir</b:Name></c:PartyName><c:PostalAddress>
        <b:StreetName>Torvet</b:StreetName><b:BuildingNumber>12</b:BuildingNumber><b:CityName>Odense</b:CityName>
        <b:PostalZone>5000</b:PostalZone></c:PostalAddress><c:PartyTaxScheme><b:CompanyID>16356706</b:CompanyID>{scheme}
        </c:PartyTaxScheme></c:Party></c:AccountingSupplierParty>{means}
        <c:TaxTotal><b:TaxAmount>25</b:TaxAmount><c:TaxSubtotal><b:TaxableAmount>100</b:TaxableAmount><b:TaxAmount>25</b:TaxAmount>
        <c:TaxCategory><b:ID>{category}</b:ID><b:Percent>25</b:Percent>{scheme}</c:TaxCategory></c:TaxSubtotal></c:TaxTotal>
        <c:LegalMonetaryTotal><b:LineExtensionAmount>100</b:LineExtensionAmount><b:TaxExclusiveAmount>{exclusive}</b:TaxExclusiveAmount>
        <b:TaxInclusiveAmount>125</b:TaxInclusiveAmount><b:PayableAmount>125</b:PayableAmount></c:LegalMonetaryTotal>
        <c:InvoiceLine><b:InvoicedQuantity unitCode='CT'>2</b:InvoicedQuantity><b:LineExtensionAmount>100</b:LineExtensionAmount>
        <c:TaxTotal><c:TaxSubtotal><c:TaxCategory><b:Percent>5</b:Percent><c:TaxScheme><b:ID>31</b:ID></c:TaxScheme></c:TaxCategory></c:TaxSubtotal>
        <c:TaxSubtotal><c:TaxCategory><b:Percent>25</b:Percent>{scheme}</c:TaxCategory></c:TaxSubtotal></c:TaxTotal><c:Item><b:Name>Papir</b:Name></c:Item><c:Price>{price}</c:Price></c:InvoiceLine></Invoice>",
        ubl::INVOICE
    )
}

#[test]
#[rustfmt::skip]
fn ubl_beyond_en_16931_has_other_ways_to_pay_taxes_units_of_prices_and_ends_of_discounts() {
    let price = "<b:PriceAmount>50</b:PriceAmount>";
    let danish = |code: &str, means: &str| foreign_ubl("OIOUBL-2.1", "63", &format!("<c:PaymentMeans><b:PaymentMeansCode>{code}</b:PaymentMeansCode>{means}</c:PaymentMeans>"), price);
    let account = |id: &str, bank: &str| format!("<c:PayeeFinancialAccount><b:ID>{id}</b:ID><b:PaymentNote>R-7</b:PaymentNote><c:FinancialInstitutionBranch>{bank}</c:FinancialInstitutionBranch></c:PayeeFinancialAccount>");
    let branch = account("0001234567", "<b:ID>9541</b:ID>");
    let iban = account("DK5000400440116243", "<c:FinancialInstitution><b:ID>DABADKKK</b:ID></c:FinancialInstitution>");
    let card = "<b:InstructionID>000000000012345</b:InstructionID><b:PaymentID>71</b:PaymentID><c:CreditAccount><b:AccountID>12345678</b:AccountID></c:CreditAccount>";
    let giro = "<b:InstructionID>0000000000123456</b:InstructionID><b:PaymentID>04</b:PaymentID><c:PayeeFinancialAccount><b:ID>3456789</b:ID></c:PayeeFinancialAccount>";
    let terms = "<c:PaymentTerms><b:SettlementDiscountPercent>2</b:SettlementDiscountPercent><c:SettlementPeriod><b:EndDate>2026-03-19</b:EndDate></c:SettlementPeriod></c:PaymentTerms>";
    let carton = "<b:PriceAmount>10</b:PriceAmount><b:BaseQuantity>2</b:BaseQuantity><b:OrderableUnitFactorRate>10</b:OrderableUnitFactorRate>";
    let way = |id: &str, account: &str| format!("<c:PaymentMeans><b:PaymentID>{id}</b:PaymentID><c:PayeeFinancialAccount><b:ID>{account}</b:ID></c:PayeeFinancialAccount></c:PaymentMeans>");
    let [own, other] = ["DE89370400440532013000", "NL91ABNA0417164300"];
    let ways = |first: &str, second: &str| foreign_ubl("urn:cen.eu:en16931:2017", "VAT", &(first.to_owned() + second), price);
    let cards = format!("<c:PaymentMeans><b:PaymentMeansCode>93</b:PaymentMeansCode>{card}</c:PaymentMeans><c:PaymentMeans><b:PaymentMeansCode>42</b:PaymentMeansCode>{branch}</c:PaymentMeans>");
    let second = "<c:TaxTotal><b:TaxAmount currencyID='AUD'>5</b:TaxAmount><c:TaxSubtotal><b:TaxAmount currencyID='AUD'>5</b:TaxAmount><c:TaxCategory><b:ID>S</b:ID></c:TaxCategory></c:TaxSubtotal></c:TaxTotal>";
    let row = json!({"rate": 25, "base": 100, "amount": 25, "category": "S", "exemption_reason": null});
    assert_cases(vec![
        ("Denmark, a joint card", danish("93", card), json!({"payment_reference": "000000000012345", "further_accounts": ["12345678"], "supplier_vat_id": "16356706", "supplier_address": "Torvet 12, 5000 Odense", "subtotal": 100, "line_items.tax_rate": 25}), ""),
        ("Denmark, a giro card", danish("50", giro), json!({"payment_reference": "0000000000123456", "further_accounts": ["3456789"]}), ""),
        ("Denmark, an account of a bank", danish("42", &branch), json!({"payment_reference": "R-7", "further_accounts": ["9541 0001234567"]}), ""),
        ("Denmark, a joint card and an account", foreign_ubl("OIOUBL-2.1", "63", &cards, price), json!({"payment_reference": "000000000012345", "further_accounts": ["12345678", "9541 0001234567"]}), "several.payment_reference"),
        ("a supplier that is a person", ways("", "").replace("<c:PartyName><b:Name>Papir</b:Name></c:PartyName>", "<c:Person><b:FirstName>Ada</b:FirstName><b:FamilyName>Papir</b:FamilyName></c:Person>"), json!({"supplier_name": "Ada Papir"}), ""),
        ("a supplier with a person", ways("", "").replace("</c:PartyName>", "</c:PartyName><c:Person><b:FirstName>Ada</b:FirstName></c:Person>"), json!({"supplier_name": "Papir"}), ""),
        ("one reference of two accounts", ways(&way("RF18", own), &way("RF18", other)), json!({"iban": own, "payment_reference": "RF18"}), ""),
        ("a reference without an account", ways(&way("", own), "<c:PaymentMeans><b:PaymentID>RF18</b:PaymentID></c:PaymentMeans>"), json!({"iban": own, "payment_reference": "RF18"}), ""),
        ("the reference of the second account", ways(&way("", own), &way("RF7", other)), json!({"iban": own, "payment_reference": null}), "several.payment_reference"),
        ("the reference of the IBAN behind a bankgiro", ways(&way("12", "5342-1234"), &way("RF7", other)), json!({"iban": other, "payment_reference": "RF7"}), "several.payment_reference"),
        ("Denmark, an IBAN and its bank", danish("31", &iban), json!({"iban": "DK5000400440116243", "bic": "DABADKKK"}), ""),
        ("Denmark, the price of a pair and a carton of ten pairs", foreign_ubl("OIOUBL-2.1", "63", terms, carton), json!({"line_items.unit_price": 50, "cash_discounts": [{"percent": 2, "days": 14}]}), ""),
        ("Australia, tax in two currencies", foreign_ubl("urn:peppol:pint:billing-1@aunz-1", "GST", second, price), json!({"supplier_vat_id": "16356706", "vat_amount": 25, "taxes": [row], "subtotal": 100, "line_items.tax_rate": 25}), ""),
    ]);
}
