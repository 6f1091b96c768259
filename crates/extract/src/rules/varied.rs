//! Layouts of book-keeping programs, trades and shops, in the manner of `scripts/varied_pages`: each was
//! misread before the rule that reads it. What real documents of these layouts look like is not claimed.

use serde_json::json;

use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "the number stands behind an abbreviation with its accent",
        kind: "invoice",
        page: "\
Laura Beltrán
C/ Mayor 18
46002 Valencia

                      FACTURA
                      Núm.      23/014
                      Fecha     30/06/2023

Total                 1.484,00 €",
        values: || json!({ "invoice_number": "23/014" }),
    },
    DrawnLayout {
        what: "under the town of the issuer stands its country, and not its name",
        kind: "invoice",
        page: "\
Mittente                                       Destinatario
Termica F.lli Alder S.n.c. di Alder Ugo & C.   Condominio Le Betulle
Via Cadorna 27                                 Via Roma 4
24060 Villongo                                 24067 Sarnico
Italia
P.IVA IT09008190333

Fattura n. 112/A del 28/03/2023

Aliquota      Imponibile      Imposta
10%               681,20        68,12
22%               165,00        36,30
Totali            846,20       104,42

Scadenza      31/05/2023       950,62",
        values: || {
            json!({
                "supplier_name": "Termica F.lli Alder S.n.c. di Alder Ugo & C.",
                "subtotal": 846.2, "vat_amount": 104.42, "total": 950.62,
            })
        },
    },
    DrawnLayout {
        what: "the form stands under the name, which stands beside a label with its day below",
        kind: "invoice",
        page: "\
TAX INVOICE
                              Invoice Date              Wattle & Stone Gardens
Oakham Bowls Club             20 Feb 2023               Pty Ltd
37 Main Street                Invoice Number            18 Old Highway
OAKHAM VIC 3810               INV-0297                  BANKSIA VIC 3807
                              Reference
                              Green surrounds
                              ABN
                              49 281 165 701

TOTAL AUD                     3,256.00",
        values: || {
            json!({
                "supplier_name": "Wattle & Stone Gardens Pty Ltd",
                "supplier_address": "18 Old Highway, BANKSIA VIC 3807",
            })
        },
    },
    DrawnLayout {
        what: "the identifier of who is written to stands in his block",
        kind: "invoice",
        page: "\
Birk Revision P/S                              Havnens Brød ApS
Att. Lise Bach                                 Toldgade 5
9000 Aalborg                                   9000 Aalborg
CVR-nr. 19915956                               CVR-nr. 57416807



Faktura
Fakturanr.: 341
Fakturadato: 26. maj 2023
Total DKK            5.100,00",
        values: || json!({ "supplier_name": "Havnens Brød ApS", "supplier_vat_id": "57416807" }),
    },
    DrawnLayout {
        what: "the issuer's identifier stands in a line with its mail and web address, the customer's has a label",
        kind: "invoice",
        page: "\
Azur Fietsen BV
Steenweg 812
9000 Gent

Stad Eeklo
Industrielaan 2
9900 Eeklo
BTW: BE0207434468

Factuur 23/418
Totaal            1.315,00 EUR



+32 9 555 01 77 | info@azurfietsen.example | www.azurfietsen.example | BE0746332153",
        values: || json!({ "supplier_vat_id": "BE0746332153" }),
    },
    DrawnLayout {
        what: "a number of Canada's tax is told by its account, whatever its groups",
        kind: "invoice",
        page: "\
Alder Millwork Inc.
4411 Ogden Road
Calgary, AB  T2G 4V2
GST 81244 0975 RT0001

Invoice Number     0000562
Invoice Date       Mar 9, 2023
Total              CA$7,791.00",
        values: || {
            json!({
                "supplier_vat_id": "81244 0975 RT0001",
                "supplier_address": "4411 Ogden Road, Calgary, AB T2G 4V2",
            })
        },
    },
    DrawnLayout {
        what: "a row has what is taxed, each tax and both together, and the total stands elsewhere, rounded",
        kind: "invoice",
        page: "\
Alder Electricals
12 Mill Road, Northtown 600097
Invoice No. AE/22/0891      Dated 5-Dec-22

Batten        50 nos     210.00     10,500.00
Breaker       20 nos     450.00      9,000.00
Less: Round Off                        (-)0.26
Total                               ₹ 23,010.00

HSN       Taxable Value     CGST Amount     SGST Amount     Total Tax
9405          10,500.00          945.13          945.13       1,890.26
8536           9,000.00          810.00          810.00       1,620.00
Total         19,500.00        1,755.13        1,755.13       3,510.26",
        values: || json!({ "subtotal": 19500, "vat_amount": 3510.26, "total": 23010 }),
    },
    DrawnLayout {
        what: "the halves of a tax stand in rows without their rates",
        kind: "invoice",
        page: "\
Alder Papers
12 Mill Road, Northtown 641001
Invoice No. AP/0477      Dated 2-Jul-25

Description      Quantity        Rate          Amount
Paper            50 ream       250.00       12,500.00
Books            150 nos        40.00        6,000.00
                                            18,500.00
CGST                                         1,110.00
SGST                                         1,110.00
Total                                     ₹ 20,720.00",
        values: || json!({ "subtotal": 18500, "vat_amount": 2220, "total": 20720 }),
    },
    DrawnLayout {
        what: "the total stands alone under the amounts that make it",
        kind: "invoice",
        page: "\
Musikschule Alder
Bergstraße 2
01809 Nordstadt

Rechnung M-23-208
Datum 01.09.2023

Fach                       Monate        Betrag
Klavier                         3        144,00
Flöte                           3         72,00
                                       216,00 €",
        values: || json!({ "total": 216 }),
    },
    DrawnLayout {
        what: "who owns a shop is not its name",
        kind: "invoice",
        page: "\
Musikschule Alder                            Inh. Friedhelm Kuhl
                                             Bergstraße 2, 01809 Nordstadt
                                             Telefon 03529 555 018

Rechnung M-23-208
Gesamtbetrag 216,00 €",
        values: || json!({ "supplier_name": "Musikschule Alder" }),
    },
    DrawnLayout {
        what: "a trade stands between the name and the line with its street and town",
        kind: "invoice",
        page: "\
                    OÄ Dr. Karin Alder
         Fachärztin für Haut · alle Kassen
    Grazer Straße 33, 8600 Bruck · nach Vereinbarung

Frau
Theresa Kohl
Wiener Straße 8
8605 Kapfenberg

Honorarnote 2025/0417
Bruck, am 21. Mai 2025
Gesamthonorar          € 175,00",
        values: || {
            json!({
                "supplier_name": "OÄ Dr. Karin Alder",
                "supplier_address": "Grazer Straße 33, 8600 Bruck",
            })
        },
    },
    DrawnLayout {
        what: "a letter is South Africa's money, before groups and without a space",
        kind: "invoice",
        page: "\
Alder & Birk Inc
118 Stalker Road
Northtown 4001

Tax invoice A/3397
31 August 2021

Fees excluding VAT               12 358.50
VAT at 15%                        1 853.78
TOTAL OF THIS ACCOUNT          R14 212.28
Deposit                          R8000.00
Balance                         R6 212.28",
        values: || json!({ "total": 14212.28, "currency": "ZAR" }),
    },
    DrawnLayout {
        what: "a wide space parts the form from the name",
        kind: "invoice",
        page: "\
ALDER     LTD.
123 Mill Road
Northtown, NY 10001

INVOICE: INV-100
INVOICE DATE: 11/18/2019
TOTAL     $110.00",
        values: || json!({ "supplier_name": "ALDER LTD." }),
    },
    DrawnLayout {
        what: "each heading of a row has its block below, and what stands beside one is no name",
        kind: "invoice",
        page: "\
Final invoice for the January 2023 billing period
From                          For                        Details
Northbeam Cloud, Inc.         Sven Aalto                 Invoice number     5530017824
500 Mill Avenue               PO Box 771                 Date of issue      February 1, 2023
Austin, TX 78701              Waco, TX 76703             Payment due on     February 1, 2023

Total due                     $44.77",
        values: || {
            json!({
                "supplier_name": "Northbeam Cloud, Inc.",
                "supplier_address": "500 Mill Avenue, Austin, TX 78701",
            })
        },
    },
    DrawnLayout {
        what: "the issuer's identifier stands in a line with its register, the customer's in his block",
        kind: "invoice",
        page: "\
                                                      DR. ALDER
                                                      STEUERBERATUNG
                                                      Linzer Gasse 54
                                                      5020 Nordstadt
Bäckerei Kuhl KG                                      Tel. +43 662 555 018
Hauptplatz 7
5300 Westdorf
UID: ATU38274105

Honorarnote 1207
Nordstadt, am 8. November 2023

Honorar brutto                             1.572,00




Dr. Alder Steuerberatung GmbH    FN 318842k Landesgericht Nordstadt    UID ATU83149585",
        values: || {
            json!({
                "supplier_name": "Dr. Alder Steuerberatung GmbH",
                "supplier_vat_id": "ATU83149585",
            })
        },
    },
];
