//! The same invoice in every national format, and what each format states otherwise.

use serde_json::{Value, json};

use super::*;

const FA_3: &str = ksef::NAMESPACES[1];
const ITALY: &str = fatturapa::NAMESPACES[0];
const SPAIN: &str = facturae::NAMESPACES[2];
const AUSTRIA: &str = ebinterface::NAMESPACES[5];

pub(super) fn ksef() -> String {
    format!(
        "<Faktura xmlns='{FA_3}'><Naglowek><KodFormularza>FA</KodFormularza></Naglowek>
        <Podmiot1><DaneIdentyfikacyjne><NIP>5260250274</NIP><Nazwa>Papier Sp.</Nazwa></DaneIdentyfikacyjne>
          <Adres><KodKraju>PL</KodKraju><AdresL1>Rynek 1</AdresL1><AdresL2>00-950 Warszawa</AdresL2></Adres></Podmiot1>
        <Podmiot2><DaneIdentyfikacyjne><KodUE>DE</KodUE><NrVatUE>123456788</NrVatUE><Nazwa>Buyer</Nazwa>
          </DaneIdentyfikacyjne></Podmiot2>
        <Fa><KodWaluty>EUR</KodWaluty><P_1>2026-03-05</P_1><P_2>RE-17</P_2>
          <P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>
          <Adnotacje><P_17>2</P_17><P_18A>2</P_18A></Adnotacje><RodzajFaktury>VAT</RodzajFaktury>
          <FaWiersz><P_7>Paper</P_7><P_8A>C62</P_8A><P_8B>20</P_8B><P_9A>9.00</P_9A><P_11>180.00</P_11><P_12>23</P_12></FaWiersz>
          <FaWiersz><P_7>Pens</P_7><P_8A>C62</P_8A><P_8B>4</P_8B><P_9A>5.00</P_9A><P_11>20.00</P_11><P_12>23</P_12></FaWiersz>
          <Platnosc><TerminPlatnosci><Termin>2026-04-04</Termin></TerminPlatnosci>
            <RachunekBankowy><NrRB>61109010140000071219812874</NrRB></RachunekBankowy></Platnosc></Fa></Faktura>"
    )
}

pub(super) fn italian() -> String {
    let line = |name: &str, quantity: &str, price: &str, amount: &str| {
        format!(
            "<DettaglioLinee><Descrizione>{name}</Descrizione><Quantita>{quantity}</Quantita>\
             <UnitaMisura>C62</UnitaMisura><PrezzoUnitario>{price}</PrezzoUnitario>\
             <PrezzoTotale>{amount}</PrezzoTotale><AliquotaIVA>23.00</AliquotaIVA></DettaglioLinee>"
        )
    };
    let lines = [line("Paper", "20.00", "9.00", "180.00"), line("Pens", "4.00", "5.00", "20.00")];
    format!(
        "<p:FatturaElettronica xmlns:p='{ITALY}' versione='FPR12'><FatturaElettronicaHeader><DatiTrasmissione/><CedentePrestatore><DatiAnagrafici><IdFiscaleIVA><IdPaese>IT</IdPaese>
          <IdCodice>12345678903</IdCodice></IdFiscaleIVA><Anagrafica><Nome>Papier</Nome><Cognome>Sp.</Cognome></Anagrafica>
          </DatiAnagrafici><Sede><Indirizzo>Via 1</Indirizzo><CAP>00100</CAP><Comune>Roma</Comune><Nazione>IT</Nazione></Sede>
        </CedentePrestatore><CessionarioCommittente><DatiAnagrafici><Anagrafica><Denominazione>Buyer</Denominazione>
          </Anagrafica></DatiAnagrafici></CessionarioCommittente></FatturaElettronicaHeader><FatturaElettronicaBody><DatiGenerali><DatiGeneraliDocumento><TipoDocumento>TD01</TipoDocumento>
          <Divisa>EUR</Divisa><Data>2026-03-05</Data><Numero>RE-17</Numero><ImportoTotaleDocumento>246.00</ImportoTotaleDocumento></DatiGeneraliDocumento></DatiGenerali>
        <DatiBeniServizi>{}<DatiRiepilogo><AliquotaIVA>23.00</AliquotaIVA><ImponibileImporto>200.00</ImponibileImporto><Imposta>46.00</Imposta></DatiRiepilogo></DatiBeniServizi>
        <DatiPagamento><DettaglioPagamento><DataScadenzaPagamento>2026-04-04</DataScadenzaPagamento>
          <ImportoPagamento>246.00</ImportoPagamento><IBAN>IT60X0542811101000000123456</IBAN></DettaglioPagamento></DatiPagamento></FatturaElettronicaBody></p:FatturaElettronica>",
        lines.concat()
    )
}

pub(super) fn spanish() -> String {
    let line = |name: &str, quantity: &str, price: &str, amount: &str| {
        format!(
            "<InvoiceLine><ItemDescription>{name}</ItemDescription><Quantity>{quantity}</Quantity>\
             <UnitPriceWithoutTax>{price}</UnitPriceWithoutTax><GrossAmount>{amount}</GrossAmount>\
             <TaxesOutputs><Tax><TaxRate>23.00</TaxRate></Tax></TaxesOutputs></InvoiceLine>"
        )
    };
    let lines = [line("Paper", "20", "9", "180.00"), line("Pens", "4", "5", "20.00")];
    format!(
        "<fe:Facturae xmlns:fe='{SPAIN}'><FileHeader><SchemaVersion>3.2.2</SchemaVersion></FileHeader><Parties><SellerParty><TaxIdentification><ResidenceTypeCode>R</ResidenceTypeCode>
          <TaxIdentificationNumber>A2800056F</TaxIdentificationNumber></TaxIdentification><LegalEntity>
          <CorporateName>Papier Sp.</CorporateName><AddressInSpain><Address>Calle 1</Address><PostCode>28001</PostCode>
          <Town>Madrid</Town><CountryCode>ESP</CountryCode></AddressInSpain></LegalEntity></SellerParty>
        <BuyerParty><TaxIdentification/><LegalEntity><CorporateName>Buyer</CorporateName></LegalEntity></BuyerParty></Parties>
        <Invoices><Invoice><InvoiceHeader><InvoiceNumber>17</InvoiceNumber><InvoiceSeriesCode>RE</InvoiceSeriesCode>
          <InvoiceClass>OO</InvoiceClass></InvoiceHeader><InvoiceIssueData><IssueDate>2026-03-05</IssueDate><InvoiceCurrencyCode>EUR</InvoiceCurrencyCode></InvoiceIssueData>
        <TaxesOutputs><Tax><TaxTypeCode>01</TaxTypeCode><TaxRate>23.00</TaxRate><TaxableBase><TotalAmount>200.00</TotalAmount>
          </TaxableBase><TaxAmount><TotalAmount>46.00</TotalAmount></TaxAmount></Tax></TaxesOutputs>
        <InvoiceTotals><TotalGrossAmountBeforeTaxes>200.00</TotalGrossAmountBeforeTaxes><TotalTaxOutputs>46.00</TotalTaxOutputs>
          <TotalTaxesWithheld>0.00</TotalTaxesWithheld><InvoiceTotal>246.00</InvoiceTotal><TotalExecutableAmount>246.00</TotalExecutableAmount></InvoiceTotals><Items>{}</Items>
        <PaymentDetails><Installment><InstallmentDueDate>2026-04-04</InstallmentDueDate><InstallmentAmount>246.00</InstallmentAmount>
          <AccountToBeCredited><IBAN>ES9121000418450200051332</IBAN></AccountToBeCredited></Installment></PaymentDetails></Invoice></Invoices></fe:Facturae>",
        lines.concat()
    )
}

pub(super) fn austrian() -> String {
    let line = |name: &str, quantity: &str, price: &str, amount: &str| {
        format!(
            "<ListLineItem><Description>{name}</Description><Quantity Unit='C62'>{quantity}</Quantity>\
             <UnitPrice>{price}</UnitPrice><TaxItem><TaxPercent TaxCategoryCode='S'>23</TaxPercent></TaxItem>\
             <LineItemAmount>{amount}</LineItemAmount></ListLineItem>"
        )
    };
    let lines = [line("Paper", "20", "9.00", "180.00"), line("Pens", "4", "5.00", "20.00")];
    format!(
        "<Invoice xmlns='{AUSTRIA}' GeneratingSystem='x' DocumentType='Invoice' InvoiceCurrency='EUR'><InvoiceNumber>RE-17</InvoiceNumber><InvoiceDate>2026-03-05</InvoiceDate>
        <Biller><VATIdentificationNumber>ATU12345675</VATIdentificationNumber><Address><Name>Papier Sp.</Name>
          <Street>Ring 1</Street><Town>Wien</Town><ZIP>1010</ZIP><Country CountryCode='AT'/></Address></Biller>
        <InvoiceRecipient><VATIdentificationNumber>00000000</VATIdentificationNumber><Address><Name>Buyer</Name></Address></InvoiceRecipient><Details><ItemList>{}</ItemList></Details>
        <Tax><TaxItem><TaxableAmount>200.00</TaxableAmount><TaxPercent TaxCategoryCode='S'>23</TaxPercent></TaxItem></Tax>
        <TotalGrossAmount>246.00</TotalGrossAmount><PayableAmount>246.00</PayableAmount>
        <PaymentMethod><UniversalBankTransaction><BeneficiaryAccount><IBAN>AT611904300234573201</IBAN></BeneficiaryAccount>
        </UniversalBankTransaction></PaymentMethod><PaymentConditions><DueDate>2026-04-04</DueDate></PaymentConditions></Invoice>",
        lines.concat()
    )
}

pub(super) fn edifact() -> String {
    "UNA:+.? '\nUNB+UNOC:3+1+2+260305:1000+1'\nUNH+1+INVOIC:D:96A:UN:EAN008'\nBGM+380+RE-17+9'\n\
     DTM+137:20260305:102'\nRFF+ON:PO 1'\nNAD+SU+4000004000002::9++Papier Sp.+Markt 1+Berlin++10115+DE'\n\
     RFF+VA:DE123456788'\nFII+RB+DE89370400440532013000+COBADEFFXXX'\nNAD+BY+1::9++Buyer'\nCUX+2:EUR:4'\nPAT+3'\nDTM+13:20260404:102'\n\
     LIN+1++4000862141404:EN'\nIMD+F++:::Paper'\nQTY+47:20:C62'\nMOA+203:180.00'\nPRI+AAA:9.00'\nTAX+7+VAT+++:::23+S'\n\
     LIN+2'\nIMD+F++:::Pens'\nQTY+47:4:C62'\nMOA+203:20'\nPRI+AAA:5'\nTAX+7+VAT+++:::23+S'\nUNS+S'\n\
     MOA+77:246.00'\nMOA+79:200'\nMOA+124:46.00'\nMOA+125:200.00'\nMOA+9:246.00'\nTAX+7+VAT+++:::23+S'\nMOA+124:46'\nMOA+125:200'\n\
     UNT+33+1'\nUNZ+1+1'\n"
        .to_owned()
}

pub(super) fn read(text: &str) -> ParsedInvoiceXml {
    parse_einvoice(text.as_bytes()).unwrap_or_else(|flaw| panic!("{flaw}: {text}"))
}

/// The text with some places changed, each of which it has.
pub(super) fn changed(mut text: String, changes: &[(&str, &str)]) -> String {
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// A fragment of an invoice, its replacement, and the resulting doubts.
type Contradiction<'a> = (&'a str, &'a str, &'a str);

/// Fails for every place whose change gives other doubts.
fn assert_doubts(format: fn() -> String, table: &[Contradiction<'_>]) {
    let mut wrong = Vec::new();
    for (from, to, expected) in table {
        let mut found = read(&changed(format(), &[(from, to)])).doubts().to_vec();
        found.sort_unstable();
        if found.join(" ") != *expected {
            wrong.push(format!("{to}: {found:?}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn contradictions_within_a_polish_invoice_are_doubts() {
    #[rustfmt::skip]
    let table = [
        ("<P_15>246.00</P_15>", "<P_15>246.00</P_15><P_15>999.00</P_15>", "several.total"),
        ("<P_2>RE-17</P_2>", "<P_2>RE-17</P_2><P_2>RE-18</P_2>", "several.invoice_number"),
        ("<P_2>RE-17</P_2>", "<P_2>RE-17</P_2><P_2>RE-17</P_2>", ""),
        ("<P_1>2026-03-05</P_1>", "<P_1>2026-03-05</P_1><P_1>2026-03-06</P_1>", "several.invoice_date"),
        ("<KodWaluty>EUR</KodWaluty>", "<KodWaluty>EUR</KodWaluty><KodWaluty>PLN</KodWaluty>", "several.currency"),
        ("<P_13_1>200.00</P_13_1>", "<P_13_1>200.00</P_13_1><P_13_1>20.00</P_13_1>", "several.p_13_1"),
        ("<P_11>180.00</P_11>", "<P_11>180.00</P_11><P_11>18.00</P_11>", "several.p_11"),
        ("<P_8B>20</P_8B>", "<P_8B>20</P_8B><P_8B>2</P_8B>", "several.p_8b"),
        ("<NIP>5260250274</NIP>", "<NIP>5260250274</NIP><NIP>1060000062</NIP>", "several.nip"),
        ("<Nazwa>Papier Sp.</Nazwa>", "<Nazwa>Papier Sp.</Nazwa><Nazwa>Other</Nazwa>", "several.nazwa"),
        ("<RodzajFaktury>VAT</RodzajFaktury>", "<RodzajFaktury>VAT</RodzajFaktury><RodzajFaktury>KOR</RodzajFaktury>", "several.rodzajfaktury"),
        ("<Termin>2026-04-04</Termin>", "<Termin>2026-04-04</Termin><Termin>2026-03-06</Termin>", "several.termin"),
        ("<P_11>180.00</P_11>", "<P_11>120.00</P_11>", "sum.subtotal"),
        ("<P_12>23</P_12></FaWiersz>\n          <FaWiersz><P_7>Pens", "<P_12>8</P_12></FaWiersz><FaWiersz><P_7>Pens", "sum.taxes"),
        ("<P_9A>9.00</P_9A>", "<P_9A>900.00</P_9A>", "product.line_items"),
        ("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1>", "<P_13_7>200.00</P_13_7><P_14_7>46.00</P_14_7>", "sum.taxes tax_category"),
    ];
    assert_doubts(ksef, &table);
}

#[test]
fn contradictions_within_an_italian_invoice_are_doubts() {
    #[rustfmt::skip]
    let table = [
        ("<Numero>RE-17</Numero>", "<Numero>RE-17</Numero><Numero>RE-18</Numero>", "several.invoice_number"),
        ("<Data>2026-03-05</Data>", "<Data>2026-03-05</Data><Data>2026-03-06</Data>", "several.invoice_date"),
        ("<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento>", "<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento><ImportoTotaleDocumento>999.00</ImportoTotaleDocumento>", "several.total"),
        ("<Divisa>EUR</Divisa>", "<Divisa>EUR</Divisa><Divisa>USD</Divisa>", "several.currency"),
        ("<IdCodice>12345678903</IdCodice>", "<IdCodice>12345678903</IdCodice><IdCodice>00743110157</IdCodice>", "several.idcodice"),
        ("<TipoDocumento>TD01</TipoDocumento>", "<TipoDocumento>TD01</TipoDocumento><TipoDocumento>TD04</TipoDocumento>", "several.tipodocumento"),
        ("<IBAN>IT60X0542811101000000123456</IBAN>", "<IBAN>IT60X0542811101000000123456</IBAN><IBAN>DE89370400440532013000</IBAN>", "several.iban"),
        ("</DatiGenerali>", "</DatiGenerali><DatiGenerali><x/></DatiGenerali>", "several.datigenerali"),
        ("<PrezzoTotale>180.00</PrezzoTotale>", "<PrezzoTotale>180.00</PrezzoTotale><PrezzoTotale>18.00</PrezzoTotale>", "several.prezzototale"),
        ("<PrezzoTotale>180.00", "<PrezzoTotale>120.00", "sum.subtotal"),
        ("<PrezzoUnitario>9.00", "<PrezzoUnitario>900.00", "product.line_items"),
        ("<AliquotaIVA>23.00</AliquotaIVA></DettaglioLinee>", "<AliquotaIVA>4.00</AliquotaIVA></DettaglioLinee>", "sum.taxes"),
        ("</Imposta>", "</Imposta><Natura>N4</Natura>", "tax_category"),
        ("<Divisa>", "<Causale>a</Causale><Causale>b</Causale><Divisa>", ""),
    ];
    assert_doubts(italian, &table);
}

#[test]
fn contradictions_within_a_spanish_invoice_are_doubts() {
    #[rustfmt::skip]
    let table = [
        ("<InvoiceTotal>246.00</InvoiceTotal>", "<InvoiceTotal>246.00</InvoiceTotal><InvoiceTotal>999.00</InvoiceTotal>", "several.total"),
        ("<InvoiceNumber>17</InvoiceNumber>", "<InvoiceNumber>17</InvoiceNumber><InvoiceNumber>18</InvoiceNumber>", "several.invoice_number"),
        ("<InvoiceSeriesCode>RE</InvoiceSeriesCode>", "<InvoiceSeriesCode>RE</InvoiceSeriesCode><InvoiceSeriesCode>X</InvoiceSeriesCode>", "several.invoiceseriescode"),
        ("<CorporateName>Papier Sp.</CorporateName>", "<CorporateName>Papier Sp.</CorporateName><CorporateName>Other</CorporateName>", "several.corporatename"),
        ("<TotalExecutableAmount>246.00</TotalExecutableAmount>", "<TotalExecutableAmount>246.00</TotalExecutableAmount><TotalExecutableAmount>24.00</TotalExecutableAmount>", "several.amount_due"),
        ("<GrossAmount>180.00</GrossAmount>", "<GrossAmount>180.00</GrossAmount><GrossAmount>18.00</GrossAmount>", "several.grossamount"),
        ("<GrossAmount>180.00", "<GrossAmount>120.00", "sum.subtotal"),
        ("<UnitPriceWithoutTax>9<", "<UnitPriceWithoutTax>900<", "product.line_items"),
        ("<TaxRate>23.00</TaxRate></Tax></TaxesOutputs></InvoiceLine>", "<TaxRate>10.00</TaxRate></Tax></TaxesOutputs></InvoiceLine>", "sum.taxes"),
        ("</SchemaVersion>", "</SchemaVersion><Batch><TotalInvoicesAmount><TotalAmount>24.60</TotalAmount></TotalInvoicesAmount></Batch>", "several.total"),
        ("</SchemaVersion>", "</SchemaVersion><Batch><TotalInvoicesAmount><TotalAmount>246.0</TotalAmount></TotalInvoicesAmount><InvoiceCurrencyCode>EUR</InvoiceCurrencyCode></Batch>", ""),
        ("</SchemaVersion>", "</SchemaVersion><Batch><InvoiceCurrencyCode>USD</InvoiceCurrencyCode></Batch>", "several.currency"),
        ("<InvoiceClass>", "<InvoiceDocumentType>AF</InvoiceDocumentType><InvoiceClass>", "type_389"),
        ("<InstallmentAmount>246", "<InstallmentAmount>999", "sum.instalments"),
        ("<TotalExecutableAmount>", "<TotalOutstandingAmount>99.00</TotalOutstandingAmount><TotalExecutableAmount>", "sum.amount_due"),
        ("<TotalExecutableAmount>", "<TotalOutstandingAmount>246</TotalOutstandingAmount><TotalExecutableAmount>", ""),
        ("<GrossAmount>180", "<TotalCost>900.00</TotalCost><GrossAmount>180", "sum.line_items"),
        ("<GrossAmount>180", "<TotalCost>190.005</TotalCost><DiscountsAndRebates><Discount><DiscountAmount>10</DiscountAmount></Discount></DiscountsAndRebates><GrossAmount>180", ""),
        ("<TotalTaxOutputs>", "<GeneralDiscounts><Discount><DiscountAmount>0</DiscountAmount></Discount></GeneralDiscounts><TotalGeneralDiscounts>90</TotalGeneralDiscounts><TotalTaxOutputs>", "sum.allowances"),
        ("<TotalExecutableAmount>", "<TotalPaymentsOnAccount>0</TotalPaymentsOnAccount><PaymentsOnAccount><PaymentOnAccount><PaymentOnAccountAmount>46</PaymentOnAccountAmount></PaymentOnAccount></PaymentsOnAccount><TotalExecutableAmount>", "sum.paid_amount"),
    ];
    assert_doubts(spanish, &table);
}

/// The end of a line without tax.
fn untaxed_line_end(code: &str) -> String {
    format!(
        "<TaxRate>0</TaxRate></Tax></TaxesOutputs><SpecialTaxableEvent><SpecialTaxableEventCode>{code}</SpecialTaxableEventCode>\
         <SpecialTaxableEventReason>art. 20</SpecialTaxableEventReason></SpecialTaxableEvent></InvoiceLine>"
    )
}

#[test]
fn a_spanish_invoice_says_why_it_has_no_tax_and_that_it_was_paid_on_account() {
    let payment = "<PaymentsOnAccount><PaymentOnAccount><PaymentOnAccountAmount>46</PaymentOnAccountAmount></PaymentOnAccount></PaymentsOnAccount><InvoiceTotal>";
    let paid = read(&changed(spanish(), &[("<InvoiceTotal>", payment)]));
    assert_eq!(paid.field("paid_amount"), json!(46));
    let of_line = "<TaxRate>23.00</TaxRate></Tax></TaxesOutputs></InvoiceLine>";
    let rate = ("<TaxRate>23.00", "<TaxRate>0.00");
    let amount = ("<TaxAmount><TotalAmount>46.00", "<TaxAmount><TotalAmount>0.00");
    for (first, second, category) in [("01", "01", "E"), ("02", "02", "O"), ("01", "02", "Z")] {
        let (one, other) = (untaxed_line_end(first), untaxed_line_end(second));
        let text = changed(spanish(), &[rate, amount, (of_line, &one), (of_line, &other)]);
        let found = read(&text);
        assert_eq!(found.field("taxes")[0]["category"], json!(category), "{first} {second}");
        let is_doubtful = found.doubts().iter().any(|it| it == "tax_category");
        assert_eq!(is_doubtful, first != second, "{first} {second}");
    }
    let bare = "<TaxRate>0</TaxRate></Tax></TaxesOutputs></InvoiceLine>";
    let one = untaxed_line_end("01");
    let text = changed(spanish(), &[rate, amount, (of_line, &one), (of_line, bare)]);
    assert!(read(&text).doubts().iter().any(|it| it == "tax_category"), "one without a reason");
}

#[test]
fn contradictions_within_an_austrian_invoice_are_doubts() {
    #[rustfmt::skip]
    let table = [
        ("<TotalGrossAmount>246.00</TotalGrossAmount>", "<TotalGrossAmount>246.00</TotalGrossAmount><TotalGrossAmount>999.00</TotalGrossAmount>", "several.total"),
        ("<InvoiceNumber>RE-17</InvoiceNumber>", "<InvoiceNumber>RE-17</InvoiceNumber><InvoiceNumber>RE-18</InvoiceNumber>", "several.invoice_number"),
        ("<PayableAmount>246.00</PayableAmount>", "<PayableAmount>246.00</PayableAmount><PayableAmount>24.00</PayableAmount>", "several.amount_due"),
        ("<DueDate>2026-04-04</DueDate>", "<DueDate>2026-04-04</DueDate><DueDate>2026-03-06</DueDate>", "several.duedate"),
        ("<IBAN>AT611904300234573201</IBAN>", "<IBAN>AT611904300234573201</IBAN><IBAN>DE89370400440532013000</IBAN>", "several.iban"),
        ("<LineItemAmount>180.00</LineItemAmount>", "<LineItemAmount>180.00</LineItemAmount><LineItemAmount>18.00</LineItemAmount>", "several.lineitemamount"),
        ("<LineItemAmount>180.00", "<LineItemAmount>120.00", "sum.subtotal"),
        ("<TaxPercent TaxCategoryCode='S'>23</TaxPercent></TaxItem><LineItem", "<TaxPercent TaxCategoryCode='S'>10</TaxPercent></TaxItem><LineItem", "sum.taxes"),
        ("</TaxableAmount><TaxPercent TaxCategoryCode='S'", "</TaxableAmount><TaxPercent TaxCategoryCode='E'", "tax_category"),
        ("<Description>Paper</Description>", "<Description>Paper</Description><Description>white</Description>", ""),
    ];
    assert_doubts(austrian, &table);
}

#[test]
fn contradictions_within_an_edifact_invoice_are_doubts() {
    #[rustfmt::skip]
    let table = [
        ("BGM+380+RE-17+9'", "BGM+380+RE-17+9'BGM+380+RE-18+9'", "segment_count several.invoice_number"),
        ("DTM+137:20260305:102'", "DTM+137:20260305:102'DTM+137:20260306:102'", "segment_count several.invoice_date"),
        ("CUX+2:EUR:4'", "CUX+2:EUR:4'CUX+2:USD:4'", "segment_count several.currency"),
        ("RFF+VA:DE123456788'", "RFF+VA:DE123456788'RFF+VA:FR40303265045'", "segment_count several.vat_id"),
        ("MOA+203:180.00'", "MOA+203:180.00'MOA+203:18.00'", "product.line_items segment_count several.line_items sum.line_items sum.taxes"),
        ("QTY+47:20:C62'", "QTY+47:20:C62'QTY+47:2:C62'", "product.line_items segment_count several.line_items"),
        ("MOA+9:246.00'", "MOA+9:246.00'MOA+9:24.60'", "segment_count several.amount_due several.total"),
        ("MOA+203:180.00'", "MOA+203:120.00'", "sum.line_items sum.taxes"),
        ("MOA+79:200'", "MOA+79:120'", "sum.line_items sum.subtotal"),
        ("TAX+7+VAT+++:::23+S'\nLIN", "TAX+7+VAT+++:::10+S'\nLIN", "sum.taxes"),
        ("BGM+380", "BGM+351", "type_unknown"),
        ("260305:1000+1'", "260305:1000+1++++++1'", "test"),
    ];
    assert_doubts(edifact, &table);
}

/// The Austrian invoice in a version before 5.0, whose attributes have a namespace.
fn old_austrian(namespace: &str) -> String {
    let tax = "<Tax><TaxItem><TaxableAmount>200.00</TaxableAmount><TaxPercent TaxCategoryCode='S'>23</TaxPercent></TaxItem></Tax>";
    let old_tax = "<Tax><VAT><VATItem><TaxedAmount>200.00</TaxedAmount><VATRate>23</VATRate><Amount>46</Amount></VATItem></VAT></Tax>";
    let attribute = format!(" xmlns:e='{namespace}' e:DocumentType=");
    changed(
        austrian().replace(AUSTRIA, namespace),
        &[(" DocumentType=", &attribute), (tax, old_tax)],
    )
}

#[test]
#[rustfmt::skip]
fn one_invoice_reads_the_same_in_every_national_format() {
    for (name, text) in [
        ("KSeF FA(3)", ksef()),
        ("KSeF FA(2)", ksef().replace(FA_3, ksef::NAMESPACES[0])),
        ("FatturaPA", italian()),
        ("Facturae", spanish()),
        ("ebInterface 6.1", austrian()),
        ("ebInterface 4.1", old_austrian(ebinterface::NAMESPACES[0])),
        ("ebInterface 4.2", old_austrian(ebinterface::NAMESPACES[1])),
        ("ebInterface 4.3", old_austrian(ebinterface::NAMESPACES[2])),
        ("INVOIC D.96A", edifact()),
        ("INVOIC with commas", changed(edifact().replace("6.00'", "6,00'").replace("0.00'", "0,00'").replace("9.00'", "9,00'"), &[("UNA:+.", "UNA:+,")])),
        ("INVOIC with commas and without UNA", changed(edifact().replace("6.00'", "6,00'").replace("0.00'", "0,00'"), &[("UNA:+.? '\n", "")])),
        ("INVOIC in a group", changed(edifact(), &[("UNH", "UNG+INVOIC+1+2+260305:1000+1+UN+D:96A'\nUNH"), ("UNZ", "UNE+1+1'\nUNZ")])),
        ("in an SBDH", format!("<S:StandardBusinessDocument xmlns:S='{}'>{}</S:StandardBusinessDocument>", root::STANDARD_BUSINESS_DOCUMENT, ksef())),
    ] {
        let read = read(&text);
        assert_eq!(read.doubts, Vec::<String>::new(), "{name}");
        assert!(read.is_complete() && read.is_sound() && !read.is_credit_note, "{name}");
        for (field, expected) in [
            ("document_type", json!("380")),
            ("supplier_name", json!("Papier Sp.")),
            ("buyer_name", json!("Buyer")),
            ("invoice_number", json!("RE-17")),
            ("invoice_date", json!("2026-03-05")),
            ("due_date", json!("2026-04-04")),
            ("currency", json!("EUR")),
            ("subtotal", json!(200)),
            ("vat_amount", json!(46)),
            ("total", json!(246)),
            ("amount_due", json!(246)),
        ] {
            assert_eq!(read.field(field), expected, "{name}: {field}");
        }
        let lines = read.field("line_items");
        for (index, cell, expected) in [
            (0, "description", json!("Paper")),
            (0, "quantity", json!(20)),
            (0, "unit_price", json!(9)),
            (0, "tax_rate", json!(23)),
            (0, "amount", json!(180)),
            (1, "description", json!("Pens")),
            (1, "amount", json!(20)),
        ] {
            assert_eq!(lines[index][cell], expected, "{name}: line {index}, {cell}");
        }
        let taxes = read.field("taxes");
        assert_eq!((&taxes[0]["rate"], &taxes[0]["base"], &taxes[0]["amount"]), (&json!(23), &json!(200), &json!(46)), "{name}");
        assert_eq!(taxes.as_array().map(Vec::len), Some(1), "{name}");
        assert!(read.field("iban").is_string() && read.field("supplier_address").is_string(), "{name}");
        assert!(read.field("supplier_vat_id").as_str().is_some_and(|id| id.len() > 9), "{name}");
    }
}

/// Changes, then fields with their values, then doubts.
type Case<'a> = (&'a str, String, Vec<(&'a str, Value)>, Vec<&'a str>);

#[test]
fn each_format_states_some_things_in_its_own_way() {
    #[rustfmt::skip]
    let table: Vec<Case<'_>> = vec![
        ("a Polish correction downwards, by lines before and after it", changed(ksef(), &[("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>", "<P_13_1>-60.00</P_13_1><P_14_1>-13.80</P_14_1><P_15>-73.80</P_15>"), ("<RodzajFaktury>VAT", "<RodzajFaktury>KOR"), ("<P_8B>20</P_8B><P_9A>9.00</P_9A><P_11>180.00</P_11><P_12>23</P_12>", "<P_8B>20</P_8B><P_9A>4.00</P_9A><P_11>80.00</P_11><P_12>23</P_12><StanPrzed>1</StanPrzed>")]), vec![("total", json!(73.8)), ("subtotal", json!(60)), ("document_type", json!("381"))], vec![]),
        ("a Polish correction upwards", changed(ksef(), &[("<RodzajFaktury>VAT", "<RodzajFaktury>KOR")]), vec![("total", json!(246)), ("document_type", json!("384"))], vec!["correction_upwards"]),
        ("a Polish advance that is paid", changed(ksef(), &[("<RodzajFaktury>VAT", "<RodzajFaktury>ZAL"), ("<Platnosc>", "<Platnosc><Zaplacono>1</Zaplacono>")]), vec![("paid_amount", json!(246)), ("amount_due", json!(0))], vec!["type_386"]),
        ("a factor's account, split payment, part paid", changed(ksef(), &[("<P_18A>2", "<P_18A>1"), ("<RachunekBankowy>", "<RachunekBankowyFaktora><NrRB>PL27114020040000300201355387</NrRB></RachunekBankowyFaktora><RachunekBankowy>"), ("<Platnosc>", "<Platnosc><ZnacznikZaplatyCzesciowej>1</ZnacznikZaplatyCzesciowej><ZaplataCzesciowa><KwotaZaplatyCzesciowej>46.00</KwotaZaplatyCzesciowej></ZaplataCzesciowa>")]), vec![("iban", json!("PL27114020040000300201355387")), ("amount_due", json!(200)), ("payment_terms", json!("mechanizm podzielonej płatności"))], vec![]),
        ("words for no tax", changed(ksef(), &[("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>", "<P_13_7>200.00</P_13_7><P_15>200.00</P_15>"), ("<P_12>23<", "<P_12>zw<")]), vec![("total", json!(200)), ("vat_amount", json!(0)), ("subtotal", json!(200))], vec![]),
        ("a Polish invoice without its sum", changed(ksef(), &[("<P_15>246.00</P_15>", "")]), vec![("total", Value::Null)], vec!["missing.p_15", "missing.total"]),
        ("an Italian credit note", changed(italian(), &[("TD01", "TD04")]), vec![("document_type", json!("381")), ("total", json!(246))], vec![]),
        ("stamp duty and withholding", changed(italian(), &[("<ImportoTotaleDocumento>246", "<DatiRitenuta><TipoRitenuta>RT01</TipoRitenuta><ImportoRitenuta>40.00</ImportoRitenuta></DatiRitenuta><DatiBollo><BolloVirtuale>SI</BolloVirtuale></DatiBollo><ImportoTotaleDocumento>248"), ("<ImportoPagamento>246", "<ImportoPagamento>208")]), vec![("total", json!(248)), ("subtotal", json!(202)), ("amount_due", json!(208)), ("payment_terms", json!("Ritenuta RT01: 40"))], vec![]),
        ("a total after withholding", changed(italian(), &[("<ImportoTotaleDocumento>246", "<DatiRitenuta><TipoRitenuta>RT01</TipoRitenuta><ImportoRitenuta>40.00</ImportoRitenuta></DatiRitenuta><ImportoTotaleDocumento>206"), ("<ImportoPagamento>246", "<ImportoPagamento>206")]), vec![("total", json!(246)), ("amount_due", json!(206))], vec!["total_after_withholding"]),
        ("VAT that the buyer pays, no total", changed(italian(), &[("<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento>", ""), ("</Imposta>", "</Imposta><EsigibilitaIVA>S</EsigibilitaIVA>"), ("<ImportoPagamento>246", "<ImportoPagamento>200")]), vec![("total", json!(246)), ("amount_due", json!(200))], vec![]),
        ("stamp duty that is paid, no total", changed(italian(), &[("<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento>", "<DatiBollo><BolloVirtuale>SI</BolloVirtuale></DatiBollo>"), ("<ImportoPagamento>246", "<ImportoPagamento>248")]), vec![("total", json!(248)), ("amount_due", json!(248))], vec![]),
        ("stamp duty that the seller bears, no total", changed(italian(), &[("<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento>", "<DatiBollo><BolloVirtuale>SI</BolloVirtuale></DatiBollo>")]), vec![("total", json!(246)), ("charges", Value::Null)], vec![]),
        ("stamp duty without total and payment", changed(italian(), &[("<ImportoTotaleDocumento>246.00</ImportoTotaleDocumento>", "<DatiBollo><BolloVirtuale>SI</BolloVirtuale></DatiBollo>"), ("<ImportoPagamento>246.00</ImportoPagamento>", "")]), vec![("total", json!(246))], vec!["total_from_sums"]),
        ("a Polish settlement after advances", changed(ksef(), &[("<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>", "<P_13_1>80.00</P_13_1><P_14_1>18.40</P_14_1><P_15>98.40</P_15>"), ("<RodzajFaktury>VAT</RodzajFaktury>", "<RodzajFaktury>ROZ</RodzajFaktury><FakturaZaliczkowa><NrFaZaliczkowej>Z/1</NrFaZaliczkowej></FakturaZaliczkowa>")]), vec![("total", json!(98.4)), ("allowances", json!([{"reason": "Zaliczki Z/1", "tax_rate": 23, "amount": 120}]))], vec![]),
        ("a Polish settlement of nothing", changed(ksef(), &[("<RodzajFaktury>VAT</RodzajFaktury>", "<RodzajFaktury>ROZ</RodzajFaktury><FakturaZaliczkowa><NrFaZaliczkowej>Z/1</NrFaZaliczkowej></FakturaZaliczkowa>")]), vec![("allowances", Value::Null)], vec!["rest_after_advances"]),
        ("a discount on the total", changed(italian(), &[("<ImportoTotaleDocumento>246", "<ScontoMaggiorazione><Tipo>SC</Tipo><Importo>6.00</Importo></ScontoMaggiorazione><ImportoTotaleDocumento>240"), ("<ImportoPagamento>246", "<ImportoPagamento>240")]), vec![("total", json!(246)), ("amount_due", json!(240)), ("allowances", Value::Null)], vec!["discount_after_tax"]),
        ("two payments, one of them missing", changed(italian(), &[("<ImportoPagamento>246", "<ImportoPagamento>100")]), vec![("amount_due", json!(100))], vec!["payments_are_not_due_amount"]),
        ("Spanish income tax withheld", changed(spanish(), &[("TotalTaxesWithheld>0.00", "TotalTaxesWithheld>30.00"), ("InvoiceTotal>246", "InvoiceTotal>216"), ("TotalExecutableAmount>246", "TotalExecutableAmount>216"), ("<InstallmentAmount>246", "<InstallmentAmount>216")]), vec![("total", json!(246)), ("amount_due", json!(216)), ("payment_terms", json!("Impuestos retenidos: 30"))], vec![]),
        ("a Spanish correction that replaces", changed(spanish(), &[("OO</InvoiceClass>", "OR</InvoiceClass><Corrective><CorrectionMethod>01</CorrectionMethod></Corrective>")]), vec![("document_type", json!("384"))], vec!["correction_replaces"]),
        ("an Austrian credit memo with another tax", changed(austrian(), &[("DocumentType='Invoice'", "DocumentType='CreditMemo'"), ("</TaxItem></Tax>", "</TaxItem><OtherTax><TaxAmount>5.00</TaxAmount><Comment>Werbeabgabe</Comment></OtherTax></Tax>"), ("TotalGrossAmount>246", "TotalGrossAmount>251")]), vec![("document_type", json!("381")), ("subtotal", json!(205)), ("total", json!(251))], vec![]),
        ("an Austrian duplicate", changed(austrian(), &[(" DocumentType", " IsDuplicate='true' DocumentType")]), vec![], vec!["copy"]),
        ("a price for ten", changed(austrian(), &[("<UnitPrice>5.00", "<UnitPrice BaseQuantity='10'>50.00")]), vec![("total", json!(246))], vec![]),
        ("EDIFACT with numbers for names", changed(edifact(), &[("+4000004000002::9++Papier Sp.", "+4000004000002::9++")]), vec![("supplier_name", json!("GLN 4000004000002"))], vec!["partner_by_number"]),
        ("a released sign, a charge, prepaid, a wrong count", changed(edifact(), &[("Papier Sp.", "Papier ?+ Sp?'"), ("CUX", "ALC+C++++FC:::Freight'MOA+8:10.00'CUX"), ("MOA+9:246", "MOA+113:46.00'MOA+9:200"), ("D:96A", "D:01C")]), vec![("supplier_name", json!("Papier + Sp'")), ("paid_amount", json!(46)), ("amount_due", json!(200)), ("charges", json!([{"reason": "Freight", "tax_rate": null, "amount": 10}]))], vec!["edifact_version", "segment_count", "sum.subtotal"]),
    ];
    for (name, text, fields, doubts) in table {
        let read = read(&text);
        assert_eq!(read.doubts, doubts, "{name}");
        for (field, expected) in fields {
            assert_eq!(read.field(field), expected, "{name}: {field}");
        }
        assert_eq!(read.is_credit_note, read.field("document_type") == "381", "{name}");
        assert!(read.is_sound(), "{name}");
    }
}

#[test]
fn the_lines_of_a_correction_add_up_to_the_difference_and_prices_stay_those_of_one_unit() {
    let correction = changed(
        ksef(),
        &[
            (
                "<P_13_1>200.00</P_13_1><P_14_1>46.00</P_14_1><P_15>246.00</P_15>",
                "<P_13_1>-60.00</P_13_1><P_14_1>-13.80</P_14_1><P_15>-73.80</P_15>",
            ),
            ("<RodzajFaktury>VAT", "<RodzajFaktury>KOR"),
            (
                "<P_8B>20</P_8B><P_9A>9.00</P_9A><P_11>180.00</P_11><P_12>23</P_12>",
                "<P_8B>20</P_8B><P_9A>4.00</P_9A><P_11>80.00</P_11><P_12>23</P_12><StanPrzed>1</StanPrzed>",
            ),
        ],
    );
    let lines = read(&correction).field("line_items");
    let cells = |line: &Value| ["quantity", "unit_price", "amount"].map(|cell| line[cell].clone());
    assert_eq!(cells(&lines[0]), [json!(20), json!(4), json!(80)], "taken back");
    assert_eq!(cells(&lines[1]), [json!(-4), json!(5), json!(-20)], "stays");
    let discounted = changed(
        italian(),
        &[(
            "<PrezzoUnitario>5.00</PrezzoUnitario>",
            "<PrezzoUnitario>10.00</PrezzoUnitario><ScontoMaggiorazione><Tipo>SC</Tipo><Percentuale>50</Percentuale></ScontoMaggiorazione>",
        )],
    );
    let lines = read(&discounted).field("line_items");
    assert_eq!(cells(&lines[1]), [json!(4), json!(5), json!(20)], "after its discount");
}

#[test]
fn oioubl_states_the_sum_of_its_taxes_where_ubl_has_the_total_without_vat() {
    let scheme = |id: &str, name: &str| {
        format!("<c:TaxScheme><b:ID>{id}</b:ID><b:Name>{name}</b:Name></c:TaxScheme>")
    };
    let (moms, duty) = (scheme("63", "Moms"), scheme("31", "Bæreposer"));
    let text = format!(
        "<Invoice xmlns='{}' xmlns:c='urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2'
          xmlns:b='urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2'>
        <b:CustomizationID>OIOUBL-2.02</b:CustomizationID><b:ID>7</b:ID><b:IssueDate>2026-03-05</b:IssueDate>
        <b:DocumentCurrencyCode>DKK</b:DocumentCurrencyCode><c:AccountingSupplierParty><c:Party>
        <c:PartyName><b:Name>Papir</b:Name></c:PartyName><c:PartyTaxScheme><b:CompanyID schemeID='DK:SE'>DK16356706</b:CompanyID>{moms}
        </c:PartyTaxScheme></c:Party></c:AccountingSupplierParty>
        <c:TaxTotal><b:TaxAmount>40</b:TaxAmount><c:TaxSubtotal><b:TaxableAmount>160</b:TaxableAmount><b:TaxAmount>40</b:TaxAmount>
        <c:TaxCategory><b:ID>StandardRated</b:ID><b:Percent>25</b:Percent>{moms}</c:TaxCategory></c:TaxSubtotal></c:TaxTotal>
        <c:TaxTotal><b:TaxAmount>60</b:TaxAmount><c:TaxSubtotal><b:TaxAmount>60</b:TaxAmount><c:TaxCategory><b:ID>Excise</b:ID>
        {duty}</c:TaxCategory></c:TaxSubtotal></c:TaxTotal>
        <c:LegalMonetaryTotal><b:LineExtensionAmount>100</b:LineExtensionAmount><b:TaxExclusiveAmount>100</b:TaxExclusiveAmount>
        <b:TaxInclusiveAmount>200</b:TaxInclusiveAmount><b:PayableAmount>200</b:PayableAmount></c:LegalMonetaryTotal></Invoice>",
        ubl::INVOICE
    );
    let read = read(&text);
    for (field, expected) in [
        ("subtotal", json!(160)),
        ("vat_amount", json!(40)),
        ("total", json!(200)),
        ("supplier_vat_id", json!("DK16356706")),
        ("charges", json!([{"reason": "Bæreposer", "tax_rate": null, "amount": 60}])),
    ] {
        assert_eq!(read.field(field), expected, "{field}");
    }
    assert_eq!(read.field("taxes").as_array().map(Vec::len), Some(1));
}

#[test]
#[rustfmt::skip]
fn several_invoices_in_one_file_and_other_messages_are_refused_by_name() {
    let twice = |text: String, part: &str| {
        let (open, close) = (format!("<{part}>"), format!("</{part}>"));
        let (from, to) = (text.find(&open).unwrap(), text.find(&close).unwrap() + close.len());
        let copy = text.get(from..to).unwrap().to_owned();
        changed(text, &[(close.as_str(), &format!("{close}{copy}"))])
    };
    let entity = format!("<!DOCTYPE x [<!ENTITY e 'x'>]>{}", ksef());
    #[rustfmt::skip]
    let table = [
        ("FatturaPA", twice(italian(), "FatturaElettronicaBody"), EinvoiceDefect::Batch),
        ("Facturae", twice(spanish(), "Invoice"), EinvoiceDefect::Batch),
        ("EDIFACT", changed(edifact(), &[("UNZ", "UNH+2+INVOIC:D:96A:UN'UNZ")]), EinvoiceDefect::Batch),
        ("an order in EDIFACT", changed(edifact(), &[("INVOIC", "ORDERS")]), EinvoiceDefect::NotAnInvoice),
        ("EDIFACT without a message", "UNB+UNOA:1+1+2+260305:1000+1'".to_owned(), EinvoiceDefect::NotAnInvoice),
        ("EDIFACT cut off", edifact().get(..300).unwrap().to_owned(), EinvoiceDefect::Edifact(EdifactError::CutOff)),
        ("EDIFACT that ends in a release", "UNB+UNOA:1+1?".to_owned(), EinvoiceDefect::Edifact(EdifactError::CutOff)),
        ("a segment without end", format!("UNB+UNOA:1{}'", ":".repeat(1000)), EinvoiceDefect::Edifact(EdifactError::TooLarge)),
        ("segments without end", format!("UNB+UNOA:1'{}", "'".repeat(200_000)), EinvoiceDefect::Edifact(EdifactError::TooLarge)),
        ("entities", entity, EinvoiceDefect::Xml(XmlError::Entities)),
        ("cut off", ksef().get(..900).unwrap().to_owned(), EinvoiceDefect::Xml(XmlError::Malformed)),
    ];
    for (name, text, flaw) in table {
        assert_eq!(parse_einvoice(text.as_bytes()).err(), Some(flaw), "{name}");
    }
    let gs1 = changed(edifact(), &[("MOA+77:246.00'\n", "MOA+86:246.00'"), ("PAT+3'", "PAT+1++5:3:D:30'PCD+12:2:13'"), ("UNT+33", "UNT+34")]);
    let gs1 = read(&gs1);
    assert_eq!((gs1.field("total"), gs1.doubts.len()), (json!(246), 0), "the total of the message is net and tax");
    assert_eq!(gs1.field("cash_discounts"), json!([{"percent": 2, "days": null}]));
    assert_eq!(gs1.field("payment_terms"), "30 D");
    let greek = [&b"UNB+UNOF:3+1+2'UNH+1+INVOIC:D:96A:UN'BGM+380+\xe1'"[..]].concat();
    assert_eq!(parse_einvoice(&greek).err(), Some(EinvoiceDefect::Edifact(EdifactError::Characters)));
}

/// The file with every text between two tags replaced.
fn with_values(whole: &str, value: &str) -> String {
    let mut replaced = String::new();
    for piece in whole.split_inclusive('>') {
        match piece.split_once('<') {
            Some((text, tag)) if !text.trim().is_empty() => {
                replaced.push_str(&format!("{value}<{tag}"));
            }
            _ => replaced.push_str(piece),
        }
    }
    replaced
}

#[test]
fn a_hostile_file_of_each_format_is_refused_by_its_limit_or_read_within_the_bounds() {
    let refused = |text: &str| parse_einvoice(text.as_bytes()).map(|_| ()).unwrap_err();
    let nested = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
    for (name, whole) in
        [("KSeF", ksef()), ("Italy", italian()), ("Spain", spanish()), ("Austria", austrian())]
    {
        let entities = format!("<!DOCTYPE x [<!ENTITY e 'x'>]>{whole}");
        assert_eq!(refused(&entities), EinvoiceDefect::Xml(XmlError::Entities), "{name}");
        let outside =
            format!("<!DOCTYPE x SYSTEM 'file:///etc/passwd' [<!ENTITY % e 'x'>]>{whole}");
        assert_eq!(refused(&outside), EinvoiceDefect::Xml(XmlError::Entities), "{name}");
        let deep = whole.replacen("Buyer", &nested, 1);
        assert_eq!(refused(&deep), EinvoiceDefect::Xml(XmlError::TooLarge), "{name}");
        for share in [4, 2] {
            let cut = whole.len() - whole.len() / share;
            let malformed = EinvoiceDefect::Xml(XmlError::Malformed);
            let begun: String = whole.chars().take(cut).collect();
            assert_eq!(refused(&begun), malformed, "{name}");
        }
        let long = "x".repeat(MAX_TEXT);
        let digits = "9".repeat(400);
        for value in ["-", "NaN", "1e999", "2026-13-45", "&#x202e;", &digits, &long] {
            let file = with_values(&whole, value);
            match parse_einvoice(file.as_bytes()) {
                Ok(invoice) => assert!(invoice.is_sound(), "{name} {value:.20}"),
                Err(defect) => assert!(defect.to_string().len() < 400, "{name} {value:.20}"),
            }
        }
    }
    for text in ["UNB+UNOC:3+A+B+1+1'", "UNA:+.? '", "UNH+1+INVOIC:D:96A:UN'UNT+1+1'"] {
        assert!(parse_einvoice(text.as_bytes()).is_err(), "{text}");
    }
}
