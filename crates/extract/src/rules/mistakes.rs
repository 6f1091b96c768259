//! Mistakes that were made on documents of others, drawn anew with issuers of our own: what each
//! field has to be, so that none of them comes back.

use serde_json::{Value, json};

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

/// What went wrong, the kind, the pages, and the fields as they are.
type DrawnMistake = (&'static str, &'static str, &'static [&'static str], fn() -> Value);

const MISTAKES: &[DrawnMistake] = &[
    (
        "the number of a register in the footer was taken for the issuer's address",
        "invoice",
        &["\
Pennick Marine Services Ltd
14 Quayside Row, Whitmouth WM3 7QT, United Kingdom
accounts@pennick.example

Bill to:                                Invoice number         PM-7719
Larkfield Community Library             Invoice date    3 September 2026
2 Chapel Street
Larkfield LF1 4AB

Invoice

Description                  Qty      Unit price      Amount
Stacking chair, beech         24           58.50    1,404.00

                                        Subtotal   £1,404.00
                                         VAT 20%     £280.80
                                       Total due   £1,684.80



Pennick Marine Services Ltd · Registered in England 09990001 · VAT No. GB 999 0001 03 · Sort code 00-99-99"],
        || {
            json!({
                "supplier_name": "Pennick Marine Services Ltd",
                "supplier_address": "14 Quayside Row, Whitmouth WM3 7QT, United Kingdom",
            })
        },
    ),
    (
        "an address on one line with a point in its middle was not found",
        "invoice",
        &["\
Möbelwerk Tannrode GmbH
Sägemühlstraße 9 · 99448 Tannrode
Tel. 036450 990 12

Hotel Zur alten Post                Rechnungsnummer      RE-20263371
Frau Edda Lüdecke                   Rechnungsdatum        14.08.2026
Marktplatz 3                        Kundennummer              K-4402
37999 Bergheim                      Lieferdatum           11.08.2026

Rechnung

Bezeichnung                  Menge   Einzelpreis       Betrag
Bettgestell Esche 140 x 200      6        389,00     2.334,00

                                     Nettobetrag     2.334,00 €
                                  zzgl. 19 % USt       443,46 €
                                    Gesamtbetrag     2.777,46 €



Möbelwerk Tannrode GmbH · Amtsgericht Tannrode HRB 99911 · USt-IdNr. DE999000113"],
        || {
            json!({
                "supplier_name": "Möbelwerk Tannrode GmbH",
                "supplier_address": "Sägemühlstraße 9, 99448 Tannrode",
            })
        },
    ),
    (
        "an account under `Remit to` was taken for the issuer in the letterhead",
        "invoice",
        &["\
ALDER LTD.                                                      INVOICE

Alder Works Centre                                 INVOICE: INV-213
12 Mill St                                         INVOICE DATE: 10/18/2021
Northtown, OH, 43004                               DUE DATE: 11/17/2021
                                                   CUSTOMER NAME: BIRCH INDUSTRIES
BILL TO:
Birch Accounts
218 Harbour St
Southport, OR, 97003

DESCRIPTION                  QTY      PRICE      AMOUNT
Layout of a brochure           2     $60.00     $120.00

                                   SUBTOTAL     $120.00
                                  SALES TAX       $9.60
                                      TOTAL     $129.60



REMIT TO:
Alder Ledgers
12 Mill St
Northtown, OH, 43004"],
        || json!({ "supplier_name": "ALDER LTD.", "invoice_number": "INV-213", "total": 129.6 }),
    ),
    (
        "a value of the table of lines was taken for the seller that a visualisation names",
        "invoice",
        &[
            "\
Visualisierung eRechnung

Lesbarmachung der XML-Daten von elektronischen Rechnungen

Stylesheet-Version:   1.8 vom 03.02.2022

Handelsrechnung (380) Nr. 618205 vom 14.06.2021
Währung:   EUR
Bestellung Nr. Kunde:   2021-618444

Verkäufer
Nummer:         702315
Name:           Erle Metallbau GmbH
Anschrift:      Mühlweg 20
                DE 82216 Nordstadt
USt.-Id.-Nr.:   DE123456789

Käufer/Leistungsempfänger
Nummer:         KD3140562
Name:           Birke AG Mitte
Anschrift:      Hafen 15
                DE 66812 Südhafen",
            "\
Pos   Beschreibung              Nettopreis   Menge   Steuersatz   Nettobetrag
1     Art-Nr-Lieferant:   Kittel     6,3500     20          19%        127,00

Rechnungssumme ohne USt.   127,00
Steuerbetrag                24,13
Bruttosumme                151,13",
        ],
        || {
            json!({
                "supplier_name": "Erle Metallbau GmbH", "invoice_number": "618205",
                "invoice_date": "2021-06-14", "subtotal": 127, "vat_amount": 24.13, "total": 151.13,
            })
        },
    ),
    (
        "a total half a line below its label was not seen",
        "invoice",
        &["\
ALDER HAULAGE COMPANIES                                       INVOICE
12 Harbour St., Northtown 4902716                             No: INV2024117
accounts@alderhaulage.example.com                             Date: 18/03/2024
                                                              Due: 17/04/2024

BILL TO:
BIRCH PACKING LTD.
67 Mill St., Southport

1   Barge Freight               2 x 20DV   USD   2,916.00

                                     Subtotal   2,916.00
                                     VAT (0%)   0.00
                                     TOTAL (USD)   2,916.00"],
        || {
            json!({
                "supplier_name": "ALDER HAULAGE COMPANIES", "invoice_number": "INV2024117",
                "invoice_date": "2024-03-18", "due_date": "2024-04-17", "total": 2916,
            })
        },
    ),
    (
        "a total whose label nobody knows is what net amount and tax make",
        "invoice",
        &["\
ALDER LTD.
27 RUE DU MOULIN                              Date d'émission : 12/10/2022
41230 NORDVILLE

FACTURE: DEF67341

Client: Marie Bouleau

                                              Sous total        55,00 €
                                              TVA               11,00 €
                                              Cumulo fin.       66,00 €"],
        || json!({ "subtotal": 55, "vat_amount": 11, "total": 66 }),
    ),
    (
        "labels that lost their spaces were not found",
        "invoice",
        &["\
AlderMetalworksGmbH                                TaxInvoice
12MillRoad,Northtown
                                                   InvoiceNo:A-2041
                                                   InvoiceDate:15.03.2024
                                                   DueDate:14.04.2024

                                                   NetAmount     100.00
                                                   VAT            20.00
                                                   GrandTotal    120.00"],
        || {
            json!({
                "invoice_number": "A-2041", "invoice_date": "2024-03-15",
                "due_date": "2024-04-14", "subtotal": 100, "vat_amount": 20, "total": 120,
            })
        },
    ),
    (
        "the total of a till is what was handed over, less the change",
        "receipt",
        &["\
ALDER STATIONERS
12 Mill Road
82216 Northtown

17/05/2019 16:42

Paper                       27.62

Total Amount (incl. GST)    27.62
Rounding                    -0.02
                            27.60
CASH                        40.00
CHANGE                      12.40"],
        || json!({ "supplier_name": "ALDER STATIONERS", "invoice_date": "2019-05-17", "total": 27.6 }),
    ),
    (
        "an address in the middle of the paper, under the number of a register, was not read; `RM` in \
         brackets was no currency; the register's number became part of the name",
        "receipt",
        &["\
    ALDER FOODS SDN BHD (604518-H)
         Company No: 815297-K
        Lot G2-07, 9, Mill Road,
            47850 Northtown,
         Tel: 03-5555 0199

23/07/201914:52        #004715926
Desc                     Amt (RM)
Tea                         13.00
TOTAL                       13.00
CASH                        20.00
CHANGE                       7.00"],
        || {
            json!({
                "supplier_name": "ALDER FOODS SDN BHD", "currency": "MYR", "total": 13,
                "supplier_address": "Lot G2-07, 9, Mill Road, 47850 Northtown",
                "invoice_date": "2019-07-23",
            })
        },
    ),
    (
        "the sum of one rate of tax was taken for what was paid",
        "receipt",
        &["\
ALDER BAKERY
12 Mill Road
82216 Northtown

Date: 18/06/2019

Spelt bread                      37.42
Sunflower                        16.50
Total 6% supplies (excl. GST)    16.50
GST                               0.99
Total 6% supplies (incl. GST)    17.49
Total 0% supplies                37.42
Total Payable                    54.91"],
        || json!({ "total": 54.91, "invoice_date": "2019-06-18" }),
    ),
    (
        "the tax that the total includes was not read, though a printed rate makes it",
        "receipt",
        &["\
ALDER TEA
12 Mill Road
82216 Northtown

Date: 2019-05-21 11:42:36

Black tea                   RM24.70
Grand Total                 RM24.70
(Bill inclusive of 6% GST : RM1.40)
Cash                        RM30.00
Change                       RM5.30"],
        || json!({ "total": 24.7, "vat_amount": 1.4, "currency": "MYR" }),
    ),
    (
        "a sum before tax was taken for the total, though the tax and what both make stood below",
        "receipt",
        &["\
ALDER GLOVES
12 Mill Road
82216 Northtown

2018-09-14

Glove              12.00
Total              12.00
Sales tax           0.84
EFT payment        12.84"],
        || json!({ "subtotal": 12, "vat_amount": 0.84, "total": 12.84 }),
    ),
    (
        "the day until which goods may be returned was taken for the day of the receipt, which a gap \
         parted; greetings and waiters were taken for the shop",
        "receipt",
        &["\
Welcome to
ALDER PHARMACY
12 Mill Road
Elko, NV 89801
Server: Somebody

Lint                         21.45
SUBTOTAL                     21.45
TAX                           1.74
TOTAL                        23.19

RETURNS WITH RECEIPT THRU 06/30/2017
MAY   11, 2017     9:14 AM"],
        || {
            json!({
                "supplier_name": "ALDER PHARMACY", "invoice_date": "2017-05-11", "total": 23.19,
                "supplier_address": "12 Mill Road, Elko, NV 89801",
            })
        },
    ),
    (
        "a VAT identifier behind its label was taken for the number of the invoice",
        "invoice",
        &["\
ALDER SARL - 12 rue du Moulin - 75001 Paris

Facture
TVA FR11123456782

Date de facture   21/09/2018
Total HT    100,00 €
TVA 20 %     20,00 €
Total TTC   120,00 €"],
        || json!({ "invoice_number": null, "supplier_vat_id": "FR11123456782", "total": 120 }),
    ),
    (
        "numbers between the heading of a seller and the name hid the name, and a line that broke behind \
         `vom` the day",
        "invoice",
        &["\
Lesbarmachung der XML-Daten von Rechnungen

HANDELSRECHNUNG (380)   Nr. 618205   vom
09.11.2021

Liefer- und Leistungsdatum : 08.11.2021

Verkäufer:
Nummer            : 702315
Globale Nummer    : 4399901870031
Erle Metallbau
Mühlweg 20
DE 82216 Nordstadt

Käufer:
Nummer            : KD3140562
Birke AG Mitte
Hafen 15
DE 66812 Südhafen

Summe netto    130,00
Steuer 19 %     24,70
Summe brutto   154,70"],
        || {
            json!({
                "supplier_name": "Erle Metallbau", "invoice_number": "618205",
                "invoice_date": "2021-11-09", "total": 154.7,
            })
        },
    ),
    (
        "the customer's VAT identifier, repeated at the head of the page, was taken for the issuer's",
        "invoice",
        &["\
Invoice
Invoice number 504719260007
Date of issue  June 21, 2022
Date due       June 21, 2022
VAT Number     DE999000113

Alderware GmbH                      Bill to
Am Ufer 2                           Birch Analytics GmbH
A-8010 Graz                         Hafen 4
Austria                             04103 Nordstadt
billing@alderware.example.com       Germany
                                    DE VAT DE999000113

Description               Qty    Unit price    Amount
Seats                       1        €74.00    €74.00

                          Subtotal             €74.00
                          Total                €74.00

VAT of Alderware GmbH ATU99900013"],
        || json!({ "supplier_name": "Alderware GmbH", "supplier_vat_id": "ATU99900013" }),
    ),
    (
        "a Canadian address was not found, because its postal code was not known as one",
        "invoice",
        &["\
Invoice
Invoice number C508AD410006
Date of issue  May 24, 2022

Aldertone Limited                   Bill to
52 No. 7 Lane                       Jonas Birke
Westmoor British Columbia V1K 7H3   Hafen 4
Canada                              04103 Nordstadt
                                    Germany

Description               Qty    Unit price    Amount
Team Plan                   1        $23.00    $23.00

                          Total                $23.00"],
        || {
            json!({
                "supplier_name": "Aldertone Limited",
                "supplier_address": "52 No. 7 Lane, Westmoor British Columbia V1K 7H3, Canada",
            })
        },
    ),
    (
        "net amount and tax in the summary of a till were not read, because a sum before rounding was \
         taken for the net amount",
        "receipt",
        &["\
Alder and Rice 5
No 37, Mill Road
82216 Northtown

Date: 14 Jun 2019 8:41PM

Noodles                 92.00
Subtotal:               92.00
Total:                  92.00
Cash:                   92.00
Change:                  0.00
*****GST S*****
Tax Code    Amount        Tax
S @6%        86.79       5.21"],
        || json!({ "subtotal": 86.79, "vat_amount": 5.21, "total": 92 }),
    ),
    (
        "of two taxes without rates one was taken for the total",
        "receipt",
        &["\
KESTREL TEA
Mill Station
12 Mill Road
82216 Northtown

Date: Mar 12, 2018 17:26:41

1 Wrap           7.49
1 Juice          3.19
1 Muffin         2.79
Subtotal        13.47
Tax 1            1.21
Tax 2            0.35
Total           15.03
VISA           -15.03
Balance          0.00"],
        || json!({ "subtotal": 13.47, "vat_amount": 1.56, "total": 15.03 }),
    ),
    (
        "a national tax number of seven digits, a tax written with points, and a day under `Échéance du \
         paiement` were not read",
        "invoice",
        &["\
ALDER LTD.
27 RUE DU MOULIN                        Date d'émission : 12/10/2022
41230 NORDVILLE                Échéance du paiement : 15/12/2022
FRANCE
Nº TVA.: 284613-5

FACTURE: DEF67341

Client: Marie Bouleau

                                              Sous total        55,00 €
                                              T.V.A.            11,00 €
                                              Total TTC         66,00 €"],
        || json!({ "supplier_vat_id": "284613-5", "due_date": "2022-12-15", "vat_amount": 11 }),
    ),
];

#[test]
fn mistakes_of_the_past_are_not_made_again() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut wrong = Vec::new();
    for (what, kind, pages, expected) in MISTAKES {
        let data = extract_by_rules(&transcript(pages), kinds.get(kind).unwrap()).data;
        for (field, value) in expected().as_object().unwrap() {
            let given = data.get(field).unwrap_or(&Value::Null);
            if given != value {
                wrong.push(format!("{what}: {field} is {given}, not {value}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
