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

Alder Headquarters                                 INVOICE: INV-100
12 Mill St                                         INVOICE DATE: 11/15/2019
Northtown, NY, 10001                               DUE DATE: 12/15/2019
                                                   CUSTOMER NAME: BIRCH CORPORATION
BILL TO:
Birch Finance
123 Harbour St
Southport, WA, 98052

DESCRIPTION                  QTY      PRICE      AMOUNT
Consulting Services            2     $50.00     $100.00

                                   SUBTOTAL     $100.00
                                  SALES TAX      $10.00
                                      TOTAL     $110.00



REMIT TO:
Alder Billing
12 Mill St
Northtown, NY, 10001"],
        || json!({ "supplier_name": "ALDER LTD.", "invoice_number": "INV-100", "total": 110 }),
    ),
    (
        "a value of the table of lines was taken for the seller that a visualisation names",
        "invoice",
        &[
            "\
Visualisierung eRechnung

Lesbarmachung der XML-Daten von elektronischen Rechnungen

Stylesheet-Version:   2.5 vom 10.01.2023

Handelsrechnung (380) Nr. 471102 vom 05.06.2018
Währung:   EUR
Bestellung Nr. Kunde:   2018-471331

Verkäufer
Nummer:         549910
Name:           Erle Metallbau GmbH
Anschrift:      Mühlweg 20
                DE 80333 Nordstadt
USt.-Id.-Nr.:   DE123456789

Käufer/Leistungsempfänger
Nummer:         GE2020211
Name:           Birke AG Mitte
Anschrift:      Hafen 15
                DE 69876 Südhafen",
            "\
Pos   Beschreibung              Nettopreis   Menge   Steuersatz   Nettobetrag
1     Art-Nr-Lieferant:   Medium     5,4900     20          19%        109,80

Rechnungssumme ohne USt.   109,80
Steuerbetrag                20,86
Bruttosumme                130,66",
        ],
        || {
            json!({
                "supplier_name": "Erle Metallbau GmbH", "invoice_number": "471102",
                "invoice_date": "2018-06-05", "subtotal": 109.8, "vat_amount": 20.86, "total": 130.66,
            })
        },
    ),
    (
        "a total half a line below its label was not seen",
        "invoice",
        &["\
ALDER MARITIME SERVICES                                       INVOICE
12 Harbour St., Northtown 6801283                             No: INV2025001
accounts@aldermaritime.example.com                            Date: 15/01/2025
                                                              Due: 14/02/2025

BILL TO:
BIRCH SHIPPING LTD.
42 Mill St., Southport

1   Ocean Freight               1 x 40HQ   USD   3,748.00

                                     Subtotal   3,748.00
                                     VAT (0%)   0.00
                                     TOTAL (USD)   3,748.00"],
        || {
            json!({
                "supplier_name": "ALDER MARITIME SERVICES", "invoice_number": "INV2025001",
                "invoice_date": "2025-01-15", "due_date": "2025-02-14", "total": 3748,
            })
        },
    ),
    (
        "a total whose label nobody knows is what net amount and tax make",
        "invoice",
        &["\
ALDER LTD.
60 RUE DU MOULIN                              Date d'émission : 15/09/2021
34560 NORDVILLE

FACTURE: ABC12345

Client: Marie Bouleau

                                              Sous total        40,00 €
                                              TVA                8,00 €
                                              Montante T.       48,00 €"],
        || json!({ "subtotal": 40, "vat_amount": 8, "total": 48 }),
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
ALDER BOOKSTORES
12 Mill Road
80333 Northtown

22/03/2018 18:24

Novel                       31.47

Total Amount (incl. GST)    31.47
Rounding                    -0.02
                            31.45
CASH                        50.00
CHANGE                      18.55"],
        || json!({ "supplier_name": "ALDER BOOKSTORES", "invoice_date": "2018-03-22", "total": 31.45 }),
    ),
    (
        "an address in the middle of the paper, under the number of a register, was not read; `RM` in \
         brackets was no currency; the register's number became part of the name",
        "receipt",
        &["\
    ALDER FOODS SDN BHD (482123-U)
         Company No: 734055-M
        Lot F1-01, 6, Mill Road,
            53300 Northtown,
         Tel: 03-5555 0199

16/04/201816:28        #002348863
Desc                     Amt (RM)
Tea                         17.00
TOTAL                       17.00
CASH                        20.00
CHANGE                       3.00"],
        || {
            json!({
                "supplier_name": "ALDER FOODS SDN BHD", "currency": "MYR", "total": 17,
                "supplier_address": "Lot F1-01, 6, Mill Road, 53300 Northtown",
                "invoice_date": "2018-04-16",
            })
        },
    ),
    (
        "the sum of one rate of tax was taken for what was paid",
        "receipt",
        &["\
ALDER BAKERY
12 Mill Road
80333 Northtown

Date: 29/10/2017

White bread                      44.76
Chocolate                        13.30
Total 6% supplies (excl. GST)    13.30
GST                               0.80
Total 6% supplies (incl. GST)    14.10
Total 0% supplies                44.76
Total Payable                    58.86"],
        || json!({ "total": 58.86, "invoice_date": "2017-10-29" }),
    ),
    (
        "the tax that the total includes was not read, though a printed rate makes it",
        "receipt",
        &["\
ALDER TEA
12 Mill Road
80333 Northtown

Date: 2018-03-18 13:18:48

Black tea                   RM29.30
Grand Total                 RM29.30
(Bill inclusive of 6% GST : RM1.66)
Cash                        RM30.30
Change                       RM1.00"],
        || json!({ "total": 29.3, "vat_amount": 1.66, "currency": "MYR" }),
    ),
    (
        "a sum before tax was taken for the total, though the tax and what both make stood below",
        "receipt",
        &["\
ALDER SHIRTS
12 Mill Road
80333 Northtown

2017-08-26

Shirt              10.00
Total              10.00
Sales tax           0.70
EFT payment        10.70"],
        || json!({ "subtotal": 10, "vat_amount": 0.7, "total": 10.7 }),
    ),
    (
        "the day until which goods may be returned was taken for the day of the receipt, which a gap \
         parted; greetings and waiters were taken for the shop",
        "receipt",
        &["\
Welcome to
ALDER PHARMACY
12 Mill Road
Reno, NV 89503
Server: Somebody

Aloe                         18.88
SUBTOTAL                     18.88
TAX                           1.53
TOTAL                        20.41

RETURNS WITH RECEIPT THRU 05/31/2016
APRIL   1, 2016     8:39 AM"],
        || {
            json!({
                "supplier_name": "ALDER PHARMACY", "invoice_date": "2016-04-01", "total": 20.41,
                "supplier_address": "12 Mill Road, Reno, NV 89503",
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

Date de facture   16/11/2017
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

HANDELSRECHNUNG (380)   Nr. 471102   vom
06.12.2018

Liefer- und Leistungsdatum : 05.12.2018

Verkäufer:
Nummer            : 549910
Globale Nummer    : 4000001123452
Erle Metallbau
Mühlweg 20
DE 80333 Nordstadt

Käufer:
Nummer            : GE2020211
Birke AG Mitte
Hafen 15
DE 69876 Südhafen

Summe netto    100,00
Steuer 19 %     19,00
Summe brutto   119,00"],
        || {
            json!({
                "supplier_name": "Erle Metallbau", "invoice_number": "471102",
                "invoice_date": "2018-12-06", "total": 119,
            })
        },
    ),
    (
        "the customer's VAT identifier, repeated at the head of the page, was taken for the issuer's",
        "invoice",
        &["\
Invoice
Invoice number 762538150004
Date of issue  April 13, 2023
Date due       April 13, 2023
VAT Number     DE999000113

Alderblok GmbH                      Bill to
Am Ufer 2                           Birch Analytics GmbH
A-4020 Linz                         Hafen 4
Austria                             06108 Nordstadt
billing@alderblok.example.com       Germany
                                    DE VAT DE999000113

Description               Qty    Unit price    Amount
Entry                       1        €99.00    €99.00

                          Subtotal             €99.00
                          Total                €99.00

VAT of Alderblok GmbH ATU99900013"],
        || json!({ "supplier_name": "Alderblok GmbH", "supplier_vat_id": "ATU99900013" }),
    ),
    (
        "a Canadian address was not found, because its postal code was not known as one",
        "invoice",
        &["\
Invoice
Invoice number B172FB370003
Date of issue  April 16, 2023

Aldersoft Limited                   Bill to
88 No. 3 Road                       Felix Birke
Richmond British Columbia V6Y 0L4   Hafen 4
Canada                              06108 Nordstadt
                                    Germany

Description               Qty    Unit price    Amount
Plus Plan                   1        $19.00    $19.00

                          Total                $19.00"],
        || {
            json!({
                "supplier_name": "Aldersoft Limited",
                "supplier_address": "88 No. 3 Road, Richmond British Columbia V6Y 0L4, Canada",
            })
        },
    ),
    (
        "net amount and tax in the summary of a till were not read, because a sum before rounding was \
         taken for the net amount",
        "receipt",
        &["\
Alder and Tea 28
No 53, Mill Road
80333 Northtown

Date: 25 Mar 2018 9:27PM

Noodles                105.00
Subtotal:              105.00
Total:                 105.00
Cash:                  105.00
Change:                  0.00
*****GST S*****
Tax Code    Amount        Tax
S @6%        99.06       5.94"],
        || json!({ "subtotal": 99.06, "vat_amount": 5.94, "total": 105 }),
    ),
    (
        "of two taxes without rates one was taken for the total",
        "receipt",
        &["\
PEGASUS TEA
Mill Airport
12 Mill Road
80333 Northtown

Date: Jan 31, 2017 18:17:38

1 Pita           8.99
1 Drink          2.59
1 Cookies        2.29
Subtotal        13.87
Tax 1            1.30
Tax 2            0.38
Total           15.55
VISA           -15.55
Balance          0.00"],
        || json!({ "subtotal": 13.87, "vat_amount": 1.68, "total": 15.55 }),
    ),
    (
        "a national tax number of seven digits, a tax written with points, and a day under `Échéance le \
         paiement` were not read",
        "invoice",
        &["\
ALDER LTD.
60 RUE DU MOULIN                        Date d'émission : 15/09/2021
34560 NORDVILLE                Échéance le paiement : 01/12/2021
FRANCE
Nº TVA.: 123456-7

FACTURE: ABC12345

Client: Marie Bouleau

                                              Sous total        40,00 €
                                              T.V.A.             8,00 €
                                              Total TTC         48,00 €"],
        || json!({ "supplier_vat_id": "123456-7", "due_date": "2021-12-01", "vat_amount": 8 }),
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
