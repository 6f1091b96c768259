//! Whole invoices in eight layouts and languages, drawn in characters.

use serde_json::Value;

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

/// Supplier, number, date, due date, currency and total of each drawing.
const INVOICES: [(&str, [&str; 6]); 8] = [
    (
        r#"Invoice

Invoice number  7D1C2A44-0003
Date of issue   March 7, 2023
Date due        April 6, 2023

Example Cloud Software, Inc.         Bill to
1 Sample Street                 Jane Doe
Suite 200                         12 Rue de Rivoli
San Francisco, California 94104   75001 Paris
United States                     France
billing@acme.example
EU VAT EU123456789

$1,234.00 USD due April 6, 2023

Pay online

Description                          Qty   Unit price        Amount
Team plan                            10       $120.00     $1,200.00
Mar 7 - Apr 7, 2023
Add-on                                1        $34.00        $34.00

                                        Subtotal          $1,234.00
                                        Total             $1,234.00
                                        Amount due    $1,234.00 USD"#,
        [
            "Example Cloud Software, Inc.",
            "7D1C2A44-0003",
            "2023-03-07",
            "2023-04-06",
            "USD",
            "1234",
        ],
    ),
    (
        r#"                                                    FACTURE
LE FOURNISSEUR SARL                                 N° F20230087
48 rue du Pré                                       du 15/02/2023
80000 AMIENS
SIRET : 73282932000074
TVA : FR11123456782                                 LE CLIENT SA
                                                    MONSIEUR CLIENT
Votre Référence : BC308164275                       27 rue de la Fontaine
                                                    14000 Caen

Désignation               Qté     P.U. HT      TVA      Total HT
PRESTATION SUPPORT          3      200,00   20,00%        600,00
FRAIS DE PORT               1       24,50   20,00%         24,50

                                  TOTAL HT                624,50 €
                                  TOTAL TVA               124,90 €
                                  TOTAL TTC               749,40 €
                                  Acompte                 200,00 €
                                  NET A PAYER             549,40 €
Date d'échéance : 17/03/2023"#,
        ["LE FOURNISSEUR SARL", "F20230087", "2023-02-15", "2023-03-17", "EUR", "749.4"],
    ),
    (
        r#"SUMINISTROS DEL NORTE, S.L.                       FACTURA
C/ Mayor, 25                                      Nº factura: 2023/A-0154
28013 Madrid                                      Fecha: 12/05/2023
CIF: B12345678                                    Vencimiento: 11/06/2023

Cliente:
Talleres Pérez S.A.
Avda. Constitución 8
41001 Sevilla
CIF: A87654321

Concepto                      Cantidad     Precio      Importe
Tornillos M8                       200       0,15        30,00
Taladro percutor                     2     149,50       299,00

                          Base imponible               329,00
                          IVA 21%                       69,09
                          TOTAL FACTURA              398,09 €
Forma de pago: transferencia ES91 2100 0418 4502 0005 1332"#,
        ["SUMINISTROS DEL NORTE, S.L.", "2023/A-0154", "2023-05-12", "2023-06-11", "EUR", "398.09"],
    ),
    (
        r#"Northern Widgets Ltd                                           INVOICE
Unit 4, Mill Lane
Leeds LS1 4AB                               Invoice No:          10457
VAT Reg No: GB 123 4567 89                  Invoice Date:   03/04/2023
                                            Account No:         WID001
                                            Due Date:       03/05/2023
To:
Southern Shops plc
1 High Street
Brighton BN1 1AA

Code     Description              Qty    Unit Price     VAT %       Net
W100     Widget, blue              12         10.60     20.00    127.20
W200     Widget, red                5         11.00     20.00     55.00

                                             Total Net           182.20
                                             Total VAT            36.44
                                             Invoice Total      £218.64
Bank: sort code 12-34-56"#,
        ["Northern Widgets Ltd", "10457", "2023-04-03", "2023-05-03", "GBP", "218.64"],
    ),
    (
        r#"                                                         Tanner Industrieservice GmbH
Tanner Industrieservice GmbH · Quellenstraße 24 · 97840 Quellbergen
Planungsbetriebe GmbH                                    Rechnung
Kornstr. 29                                              Nr. 260417358
38226 Feldhusen
                                                         Kunden-Nr.: 28174
                                                         Datum: 16.05.2023
Projekt: 21840357   Kläranlage

Pos   Bezeichnung                      Menge   EH      EP         GP
1     Arbeitsstunden                    3,00   Std   46,00     138,00
2     Fahrtkosten                      12,00   km     0,80       9,60

                                        Nettosumme               147,60
                                        19,00 % MwSt.             28,04
                                        Rechnungsbetrag        175,64 €
Zahlbar bis 30.05.2023 ohne Abzug.
Ust.-IdNr.: DE123456789    Geschäftsführer: Uli Tanner"#,
        ["Tanner Industrieservice GmbH", "260417358", "2023-05-16", "2023-05-30", "EUR", "175.64"],
    ),
    (
        r#"                              Bakkerij Jansen v.o.f.
                              Dorpsstraat 12, 3511 AB Utrecht
                              KvK 12345678 - BTW NL001234567B01 - IBAN NL91ABNA0417164300

Factuur                                                Utrecht, 4 maart 2023

De Vries B.V.
t.a.v. crediteuren
Postbus 100
1000 AA Amsterdam

Factuurnummer 2023-118         Vervaldatum 18-03-2023

Aantal   Omschrijving             Stukprijs    Totaal
   20    Broden                        2,50     50,00
    4    Taarten                      18,00     72,00
                      Totaal excl. btw         122,00
                      Btw 9%                    10,98
                      Te betalen             € 132,98"#,
        ["Bakkerij Jansen v.o.f.", "2023-118", "2023-03-04", "2023-03-18", "EUR", "132.98"],
    ),
    (
        r#"Rossi Meccanica S.r.l.
Via Roma 10 - 20121 Milano (MI)
P. IVA IT01234567890

FATTURA N. 45/2023 del 20/03/2023

Spett.le
Bianchi S.p.A.
Corso Torino 5
10100 Torino

Descrizione                   Q.tà      Prezzo       Importo
Ingranaggi                      10       25,00        250,00

Imponibile                                           250,00
IVA 22%                                               55,00
Totale fattura                                     € 305,00
Scadenza: 20/04/2023"#,
        ["Rossi Meccanica S.r.l.", "45/2023", "2023-03-20", "2023-04-20", "EUR", "305"],
    ),
    (
        r#"DATA SYSTEMS B.V.
Molenkade 19
1015 CN Amsterdam
Netherlands
VAT: NL123456789B01

                                                        INVOICE #2023-77
                                                        2023-06-30
INVOICE TO
Big Customer AG
Ringstrasse 5
8001 Zurich

ITEM            DATE          HOURS    RATE    TOTAL
Consulting      2023-06-01      8      95.00     760.00
Consulting      2023-06-02      4.5    95.00     427.50

SUBTOTAL  VAT (0%)  TOTAL EUR
1,187.50      0.00   1,187.50"#,
        ["DATA SYSTEMS B.V.", "2023-77", "2023-06-30", "-", "EUR", "1187.5"],
    ),
];

#[test]
fn invoices_of_many_layouts_and_languages_are_read() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let fields =
        ["supplier_name", "invoice_number", "invoice_date", "due_date", "currency", "total"];
    for (drawing, expected) in INVOICES {
        let extraction = extract_by_rules(&transcript(&[drawing]), kinds.get("invoice").unwrap());
        let read = fields.map(|field| match extraction.data.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => "-".to_owned(),
        });
        assert_eq!(read, expected.map(str::to_owned), "{drawing}");
    }
}
