//! Layouts of letters, forms and tills that were misread, drawn anew with issuers of our own: numbers and days
//! written as few programs write them, amounts before their words, companies that are named in small print alone.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "Greek letters that look like `No` stand before a number",
        kind: "invoice",
        page: "\
Ελένη Δρυάδη
Κήπων 12, 54623 Βορεινή
ΑΦΜ 070141140

                       Τιμολόγιο Παροχής Υπηρεσιών  Νο 47
                       Βορεινή, 2 Μαρτίου 2024

Εργασίες                                                                        350,00 €
                                          Γενικό σύνολο                         350,00 €",
        values: || json!({ "invoice_number": "47" }),
    },
    DrawnLayout {
        what: "tills write a day with the month's name, the day and an apostrophe before the year",
        kind: "receipt",
        page: "
            KETTLE INN
   Mill Street, Northtown, Co. Clare

Tbl 4/2   Chk 118204     Mar17'24 14:40
---------------------------------------
 2 Soup             6.20     12.40   A
---------------------------------------
   TOTAL DUE                €12.40
   CARD                      12.40",
        values: || json!({ "invoice_date": "2024-03-17", "invoice_number": "118204" }),
    },
    DrawnLayout {
        what: "the mark of a number is written right behind its word, and the number right behind that",
        kind: "receipt",
        page: "
         KETTLE HARDWARE
           118 E MAIN ST
        NORTHTOWN MN 56265

03/14/24  9:41AM   MARLYS  552   SALE
-------------------------------------
440017    1 EA     8.99 EA       8.99
SUB-TOTAL:     8.99   TAX:       0.62
                    TOTAL:       9.61
            CHARGE AMT:          9.61

==>> JRNL#B18204     INV#471204
CUST NO: *5",
        values: || json!({ "invoice_number": "471204" }),
    },
    DrawnLayout {
        what: "amounts stand before their words",
        kind: "invoice",
        page: "
                                     KETTLE & VALE, P.C.
                                     55 Main Street, Suite 300
                                     Northtown, Vermont 05602

INVOICE NO. 20418                         March 2, 2024

02/04/24  Review draft lease; telephone conference              1.80 hrs
02/11/24  Revise lease, sections 4, 11 and 19                   3.20 hrs

        $2,130.00    SUBTOTAL
            15.00    SALES TAX
        $2,145.00    TOTAL THIS INVOICE

Thank you.",
        values: || json!({ "subtotal": 2130.0, "vat_amount": 15.0, "total": 2145.0 }),
    },
    DrawnLayout {
        what: "two titles with a stroke between them have one number",
        kind: "credit_note",
        page: "\
Erlenhafen GmbH · Ludwigstraße 33 · 76133 Nordstadt
Kanzlei Birkner
Karlstraße 77
76137 Südstadt


Gutschrift / Korrekturrechnung GS-2024-00412 vom 17.03.2024

        Kundennummer: 558102        Korrigiert: RE-2024-01877 vom 02.01.2024

   1  Server, Erstattung                                                  19 %           99,00
      Zwischensumme netto                                                                 99,00
      19 % USt                                                                            18,81
      Gesamtbetrag                                                                       117,81",
        values: || json!({ "invoice_number": "GS-2024-00412", "invoice_date": "2024-03-17" }),
    },
    DrawnLayout {
        what: "a day stands behind the number and a stroke",
        kind: "invoice",
        page: "
                                            ФАКТУРА
                                   № 0000009381 / 14.11.2024 г.

Получател                                            Доставчик
„Пекарна Дъб“ ООД                                    „Леска“ ЕООД
гр. Севергад, ул. „Речна“ 8                          гр. Южен, бул. „Кукленско шосе“ 21

Данъчна основа                                                                        2 150,00
ДДС 20 %                                                                                430,00
Сума за плащане                                                                   2 580,00 лв.
Дата на данъчно събитие: 12.11.2024 г.               Падеж: 21.11.2024 г.",
        values: || json!({ "invoice_date": "2024-11-14", "invoice_number": "0000009381" }),
    },
    DrawnLayout {
        what: "the province stands in brackets behind the town",
        kind: "receipt",
        page: "
            Asador Fresno, S.L.
              CIF B12345674
             Calle Mayor, 31
        31700 Norteville (Navarra)
             948 99 04 47

Factura simplificada 26-00882
Mesa 7   Comensales 2   08/03/2024 15:31

  2  Menú fin de semana     22,00    44,00
                  Total (€)          44,00",
        values: || json!({ "supplier_address": "Calle Mayor, 31, 31700 Norteville (Navarra)" }),
    },
    DrawnLayout {
        what: "a tax of Canada in capitals with its rate says whose dollars they are",
        kind: "receipt",
        page: "
         Birch Row Foodmart
    220 King St E, Northtown ON K7G 1G1
            613-555-0144

 2% MILK 4L BAGS                   5.79
 DISH SOAP 740ML              H    3.99
SUBTOTAL                           9.78
H=HST 13%   3.99 @ 13.000%         0.52
TOTAL                             10.30
CASH                              10.30
HST # 794624775 RT0001
02/19/24 5:41 PM   0204-03-7563   Opr 12",
        values: || json!({ "currency": "CAD" }),
    },
    DrawnLayout {
        what: "an engineer is named with his titles, beside his customer, and no line of the text is a name",
        kind: "invoice",
        page: "
                                                            Spett.le
                                                            CONDOMINIO «LE VELE»
dott. ing. Tommaso Nocciolo                               c/o Studio Faggio
strutture - sicurezza - pratiche sismiche                   Lungomare Marconi 118
                                                            60019 NORDVILLA (AN)
Via dei Mille 7/b                                           C.F. 92018360427
60019 Nordvilla (AN)
tel. 071 990 0417

                    Avviso di parcella / Fattura n. 9 del 04/03/2024

Direzione lavori e contabilità relativa alle opere di consolidamento dei balconi
lato mare, dal 1° al 4° piano, come da incarico prot. 44 del 12/09/2023.
II e ultimo acconto.

                         Onorario                                           € 1.200,00
                         Imponibile IVA                                     € 1.200,00
                         IVA 22%                                            €   264,00
                         TOTALE FATTURA                                     € 1.464,00

Bonifico a 30 gg d.f.: IT61 T079 1560 6430 0004 2994 395 - Credito Adriatico, filiale di Nordvilla

P.IVA IT03516690413 - C.F. BLLTMS74C11D488G - Ordine Ingegneri n. A1979 - Inarcassa 881979",
        values: || json!({ "supplier_name": "dott. ing. Tommaso Nocciolo" }),
    },
    DrawnLayout {
        what: "a till's number stands alone beside day and time",
        kind: "receipt",
        page: "
       „ЖЕЛЕЗАРИЯ ЛЕСКА“ ЕООД
   гр. Севергад, ул. „Речна“ 12
          ЕИК 233672933

БОЯ ЗА МЕТАЛ 2,5Л              24,90 Б
ОБЩА СУМА                    24,90 лв.

0027818      11-03-2024 10:57:03
        ФИСКАЛЕН БОН",
        values: || json!({ "invoice_number": "0027818" }),
    },
    DrawnLayout {
        what: "a label with its value beside it is no name, and the provider of Greek receipts issues none",
        kind: "receipt",
        page: "
              ΑΦΟΙ ΔΡΥΑΔΗ ΟΕ
       ΚΑΠΟΔΙΣΤΡΙΟΥ 18, 49131 ΒΟΡΕΙΝΗ
         ΑΦΜ: 965051305   ΔΟΥ ΒΟΡΕΙΝΗΣ

ΑΠΟΔΕΙΞΗ ΛΙΑΝΙΚΩΝ ΣΥΝΑΛΛΑΓΩΝ Α 118432
28-02-2024  08:21           ΤΑΜΕΙΟ 01
ΨΩΜΙ ΧΩΡΙΑΤΙΚΟ   2 x 1,60   13%      3,20
ΣΥΝΟΛΟ                               3,20€
ΠΑΡΟΧΟΣ: ΨΗΦΙΑΚΗ ΑΕ   ΑΥΘ. 4E3222C20B",
        values: || json!({ "supplier_name": "ΑΦΟΙ ΔΡΥΑΔΗ ΟΕ" }),
    },
    DrawnLayout {
        what: "Chile dates by `Emisión`",
        kind: "invoice",
        page: "
MADERAS LOS COIHUES LIMITADA                                         FACTURA ELECTRÓNICA
Casa matriz: Camino Km 2, Villanorte                                 Nº 18442

Emisión: 06 de marzo del 2024

SEÑOR(ES):   Cabañas Nogal SpA                                       R.U.T.: 76.025.794-K
                                                        NETO              $     184.900
                                                        I.V.A. 19%        $      35.131
                                                        TOTAL             $     220.031",
        values: || json!({ "invoice_date": "2024-03-06" }),
    },
    DrawnLayout {
        what: "the company that trades under a brand is named in small print and beside its account",
        kind: "invoice",
        page: "\
BRIGHTER WINDOW CLEANING
Commercial & domestic  |  Reach & wash  |  Gutter clearance
www.brighterwindows.example       0161 496 0417

                                                                              INVOICE
Invoice to
Lancaster Road Surgery
Lancaster Road                                                       Invoice no           SI-4471
Northtown SK3 9QT                                                    Tax date          31/01/2024

07/01/24      Windows, external, front and rear elevations                148.00     29.60      177.60

Totals                                                                    148.00     29.60      177.60

Please pay by bank transfer, quoting SI-4471
Harrow Facilities Ltd    Sort code 40-88-17    Account 66065256

Brighter Window Cleaning is a trading name of Harrow Facilities Ltd. Registered in England and Wales 09118740.
Registered office and place of business: Unit 4 Bridge Park, Southport SK5 7DL. VAT registration GB 317 5079 99",
        values: || json!({ "supplier_name": "Harrow Facilities Ltd" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
DrawnDoubt {
    what: "of two companies beside each other, each with its identifier, the one on the left was taken for the issuer",
    kind: "invoice",
    page: "
Darilni butik Hrast d.o.o.                                 med, vosek, darila
Ljubljanska cesta 4                                        Čebelarstvo Podlesnik
4260 Severno                                               Anže Podlesnik s.p., Zgornje polje 41, 4247 Zgornje polje
ID za DDV: SI69140472                                      ID za DDV: SI60929995
                                                           TRR: SI56 0459 5163 8003 093

Račun št.: 26-340-000021
Kraj in datum izdaje: Zgornje polje, 26. 2. 2024

Cvetlični med 450 g                            24  kos     8,20         10      9,5         177,12
                                              Osnova                                        177,12
                                              DDV                                            16,83
                                              Za plačilo EUR                                193,95",
    values: || json!({ "total": 193.95 }),
    reason: "uncertain:supplier_name",
    doubtful: true,
},
DrawnDoubt {
    what: "a number behind a word that nobody knows and a mark of numbers was held for none",
    kind: "receipt",
    page: "
        QUITTUNG
     Taxi Fresno GmbH
    Bahnhofstrasse 3
       6410 Nordau

Fahrt Nr.            771
Wagen   SZ 62012      04
Datum         19.03.2024
TOTAL CHF          34.60
inkl. 8.1% MWST     2.59",
    values: || json!({ "total": 34.6 }),
    reason: "uncertain:invoice_number",
    doubtful: true,
},
];
