//! Heads and feet of papers on which parties were mixed up or missed, drawn anew with issuers of our own: rows that
//! gaps part, companies that the foot names, brands over companies, identifiers in the customer's row.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "an address and a telephone in one row, set in the middle under the name, and the recipient has the same code",
        kind: "invoice",
        page: "
Page 1 of 1
                    Kettle River Vets Ltd
           203 Mill Road, Tai Moor 7672         Ph 03 555 0140
               GST No. 104-906-028     office@kettlevets.example


TAX INVOICE / STATEMENT                                          Invoice         90412
                                                                 Date            26 Mar 2026
S & K Birch                                                      Client          2207
1184 Old Moor Road
RD 2
Northtown 7672

26/03/26    Consultation                                     1              78.00

            Total this invoice (incl. GST)                               $ 78.00
            GST content                                                  $ 10.17",
        values: || {
            json!({
                "supplier_name": "Kettle River Vets Ltd",
                "supplier_address": "203 Mill Road, Tai Moor 7672",
            })
        },
    },
    DrawnLayout {
        what: "a street behind its label, and a town without a code before its county",
        kind: "invoice",
        page: "\
Furnizor                                                          Client
Fierbator Nord SRL                                                Brazi Instal SA
CIF: RO18547290                                                   CIF: RO12447788
Reg. com.: J12/4471/2008                                          Reg. com.: J26/118/2001
Adresa: Str. Morii Vechi nr. 18                                   Adresa: Calea Lacului nr. 55
Nordova, jud. Cluj                                                Sudova, jud. Mureș
IBAN: RO96 BTCJ 0447 018R ON00 3447

                                            FACTURA

                                        Seria FN nr. 0926
                                        Data (zi/luna/an): 08/09/2026

Denumire                                 Cant.  Pret unitar      Valoare   Valoare TVA
Contor                                      10       214.50      2145.00        450.45

                                                   Total plata      2595.45 lei",
        values: || json!({ "supplier_address": "Str. Morii Vechi nr. 18, Nordova, jud. Cluj" }),
    },
    DrawnLayout {
        what: "a gap parts street and town under a till's name",
        kind: "receipt",
        page: "
    KETTLE BROS. LUMBER & HARDWARE, INC.
       88 DEPOT ST     ALDER, OR 97701
            PHONE (541) 555-0174

RECEIPT # 118342         ACCT: CASH
DATE 05/29/26  TIME 8:04 AM
2X4X8 DF STUD                25.68
TAX                            .00
TOTAL                       $25.68",
        values: || json!({ "supplier_address": "88 DEPOT ST, ALDER, OR 97701" }),
    },
    DrawnLayout {
        what: "a road that is called by a number, behind that of the house",
        kind: "receipt",
        page: "
        WELCOME TO
     BIRCH CORNER FUEL
       7705 HWY 290 E
      ALDER TX 78724

09/02/2026  06:51:44
PUMP# 04
GALLONS:                  11.284
FUEL SALE                 $39.03
TOTAL                     $39.03",
        values: || json!({ "supplier_address": "7705 HWY 290 E, ALDER TX 78724" }),
    },
    DrawnLayout {
        what: "the number of a ticket has its label glued",
        kind: "receipt",
        page: "
        Zwanenhof BV
       Molenplein 21
        8500 Noordstad
     BTW BE 0734.821.619

       BTW-KASTICKET
Ticketnr: 00018244
Za 14/02/2026 13:47:09
2 Pils 25cl    3,40        6,80 A
TOTAAL EUR                   6,80",
        values: || json!({ "invoice_number": "00018244" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[];
