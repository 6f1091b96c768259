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
