//! Layouts of senders of many countries, in the manner of `scripts/abroad_pages`: each was misread, or read
//! right and doubted, before the rule that reads it. What real documents of these layouts look like is
//! not claimed.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "headings of both parties beside each other, each field behind its label",
        kind: "invoice",
        page: "\
Cedente/prestatore (fornitore)                  Cessionario/committente (cliente)
Codice fiscale: 04130790639                     Denominazione: Betulla S.r.l.
Denominazione: Officina Ontano & C. S.n.c.      Indirizzo: Via Porto 140
Indirizzo: Via Mulino 88                        Comune: Sudporto   Provincia: NT
Comune: Nordborgo   Provincia: NT               Cap: 22063   Nazione: IT
Cap: 22060   Nazione: IT

Numero documento     412/A",
        values: || json!({ "supplier_name": "Officina Ontano & C. S.n.c.", "supplier_address": "Via Mulino 88, 22060 Nordborgo" }),
    },
    DrawnLayout {
        what: "a trade beside the name ends in hours, and details follow the address behind commas",
        kind: "invoice",
        page: "\
Haustechnik Erle e.U.                    Gas - Wasser - Heizung - Notdienst 0-24
Mühlweg 61, 80333 Nordstadt, 03332 55501, UID ATU91521531, Bank AT48 4404 0093 8545 1730

An                                                  Rechnung           R-2025-402
Pension Birke                                       Rechnungsdatum     25.03.2025",
        values: || json!({ "supplier_name": "Haustechnik Erle e.U.", "supplier_address": "Mühlweg 61, 80333 Nordstadt" }),
    },
    DrawnLayout {
        what: "the name at the foot has the legal form, and street and town stand in columns",
        kind: "invoice",
        page: "\
Gemeinde Birke                                      atelier erle & weide
Hafenplatz 1
8477 Südhafen

Honorarrechnung 1904-07
Nordstadt, 15. Juli 2025

Total CHF inkl. MWST      20'214.70




Atelier Erle & Weide AG       Dipl. Arch. ETH       Tel. 052 555 01 88
Mühlweg 31                    8400 Nordstadt        post@erleweide.example",
        values: || json!({ "supplier_address": "Mühlweg 31, 8400 Nordstadt" }),
    },
    DrawnLayout {
        what: "a trade stands between the name and its address, which has no postal code",
        kind: "invoice",
        page: "\
Laboratorio Dental Aliso SpA
Fabricación de prótesis dentales
Avenida del Molino 18, Norteville
Teléfono 45 255 5018

FACTURA N° 4471
TOTAL   $ 571.200",
        values: || json!({ "supplier_address": "Avenida del Molino 18, Norteville" }),
    },
    DrawnLayout {
        what: "district and province end the address",
        kind: "invoice",
        page: "\
Kuzey Ambalaj Ltd. Şti.
Değirmen Bölgesi 4. Cad. No:18 Kuzey / Bursa
Tel: 0224 555 01 88

Fatura No: KZY2025000000318",
        values: || json!({ "supplier_address": "Değirmen Bölgesi 4. Cad. No: 18 Kuzey / Bursa" }),
    },
    DrawnLayout {
        what: "a sentence says by when to pay",
        kind: "invoice",
        page: "\
Alder Cricket Club                                   Invoice no. M25/064
Mill Lane, Northtown EX7 0QE                         6th April 2025

To pay                       £138.00

Please pay the Treasurer by 1st May 2025, or by transfer to sort code 30-55-12.",
        values: || json!({ "due_date": "2025-05-01", "total": 138.0 }),
    },
    DrawnLayout {
        what: "the front of the account has an identifier's form, and the issuer's has no country",
        kind: "invoice",
        page: "\
Faktura VAT FS-1184/05/2025/MAG

Sprzedawca:                                   Nabywca:
Hurtownia Olcha Sp. j.                        Sklep Brzoza
ul. Młyńska 14, 18-400 Północ                 ul. Portowa 3, 18-312 Południe
NIP: 7348864056                               NIP: 4903256996

Do zapłaty: 2 400,96 PLN
przelew, PL23 2259 0014 5581 2025 4983 7501",
        values: || json!({ "supplier_vat_id": "7348864056" }),
    },
    DrawnLayout {
        what: "the recipient has no heading but an identifier that is called the customer's, and R is money",
        kind: "invoice",
        page: "\
Alder Sand & Stone CC                               TAX INVOICE
PO Box 3318, Northtown, 1020
VAT Reg No 4271412290                               Document No      TI008844
Birch Civils (Pty) Ltd                              Date           2025/02/28
Stand 44, Southport
Customer VAT Reg No: 4230697296

Tax 15%             R 4,776.90
Total              R 36,622.90",
        values: || json!({ "supplier_name": "Alder Sand & Stone CC", "currency": "ZAR" }),
    },
    DrawnLayout {
        what: "a mark stands before the number under its title, and the reference of the payment is the number",
        kind: "invoice",
        page: "\
Penzión Jelša, s. r. o.                            FAKTÚRA
Mlynská 118, 033 01 Severné                        č. 2025070044
IČ DPH SK2047875819
                                                   Dátum vystavenia: 13. 7. 2025
                                                   Variabilný symbol: 2025070044
Spolu s DPH            540,00 €",
        values: || json!({ "invoice_number": "2025070044" }),
    },
    DrawnLayout {
        what: "dollars beside a tax on goods and services and a postal code of Canada's shape",
        kind: "invoice",
        page: "\
Alder Childcare Society                            Invoice no. 2025-03-117
1265 Mill St., Northtown BC V9S 2K4

Total for March                                    $905.00
Child care is exempt from GST.",
        values: || json!({ "currency": "CAD" }),
    },
    DrawnLayout {
        what: "behind title and number stands the day of issue, whatever came in and went out before",
        kind: "invoice",
        page: "\
Dentallabor Erle                         Praxis Birke
Hafen 6                                  Mühlweg 31
69876 Südhafen                           80333 Nordstadt

Auftrag: 9917          Eingang: 12.05.25          Ausgang: 20.05.25

Rechnung 25/3306 · 21.05.25

Zwischensumme                                        100,00
+ 19,00 % MwSt                                        19,00
Endsumme                                           € 119,00",
        values: || json!({ "invoice_number": "25/3306", "invoice_date": "2025-05-21" }),
    },
    DrawnLayout {
        what: "a number like a day is no day, and the mark of a year stands behind one",
        kind: "invoice",
        page: "\
FAKTURA nr 17/03/2025                              Nordbork, 28 marca 2025 r.

SPRZEDAWCA                                         NABYWCA
Biuro OLSZA Jan Wierzba                            Brzoza S.A.
ul. Portowa 31                                     ul. Polna 7
80-333 Nordbork                                    69-876 Sudbork

Razem          100,00          23,00          123,00 zł",
        values: || json!({ "invoice_number": "17/03/2025", "invoice_date": "2025-03-28" }),
    },
    DrawnLayout {
        what: "number and day parted by a stroke",
        kind: "invoice",
        page: "\
Florăria Arinul P.F.A.                           Factura nr. 417 / 08.03.2025
Str. Portului 31, Nordeni

Cumpărător: Teatrul Mesteacăn

TOTAL                                                   640,00 lei
Scutit de TVA, art. 310 din Codul fiscal.",
        values: || {
            json!({ "supplier_name": "Florăria Arinul P.F.A.", "invoice_number": "417", "invoice_date": "2025-03-08" })
        },
    },
    DrawnLayout {
        what: "a series in Greek capitals before the number",
        kind: "invoice",
        page: "\
Ξενώνας Σκλήθρο Ο.Ε.
Λιμάνι 31, 37010

Τιμολόγιο Παροχής Υπηρεσιών
Αριθμός: ΤΠΥ 417                                  Ημερομηνία: 16/02/2025

Σύνολο με ΦΠΑ                                                300,00 €",
        values: || json!({ "invoice_number": "ΤΠΥ 417" }),
    },
    DrawnLayout {
        what: "who is treated is no issuer, and the one at the foot is",
        kind: "invoice",
        page: "\
INVOICE                                         91-5508
                                                5/11/2025
Patient:   Robin Birch                          DOB 3/02/1984
           31 Harbour Street                    Claim 2025-118840

Standard consultation                                          85.00
Total invoice                                                  85.00
GST                                                             0.00

Alder Osteopathy and Movement      Shop 2, 31 Mill Street, Northtown NSW 2533      ABN 53 004 085 616",
        values: || json!({ "supplier_name": "Alder Osteopathy and Movement" }),
    },
    DrawnLayout {
        what: "headings of both parties, the issuer a woman",
        kind: "invoice",
        page: "\
                    Flores Nortel

Factura                                                           FV-0417
                                                                  03.11.2025
Datos de la emisora                          Datos del cliente
Nuria Aliso Sauce                            Cofradía Abedul
Calle del Molino 31, bajo                    Plaza del Puerto 6
28004 Norteville                             28011 Surville

Total con IVA                                                      270,00 €",
        values: || json!({ "supplier_name": "Nuria Aliso Sauce" }),
    },
    DrawnLayout {
        what: "Finnish days of issue",
        kind: "invoice",
        page: "\
Kustannus Leppä ry                               Lasku
Satamakatu 31 B 4                                L-2025-417
33200 Pohjola
                                                 Laskupäivä 7.2.2025
Kirjakahvila Koivu                               Maksuehto 14 pv netto
                                                 Tilaus 31.1.2025
Maksettava                                                                   153,00 €",
        values: || json!({ "invoice_date": "2025-02-07" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "a name without a legal form heads the letter, and another one is the recipient's by its form",
        kind: "invoice",
        page: "\
Nuohous Leppä                                 LASKU
Myllypolku 31
33200 Pohjola                                 Päiväys                11.9.2025
                                              Laskun nro                  2218
Asunto Oy Koivu                               Viitenumero               22188
c/o Isännöinti Haapa                          Asiakasnro                  118
Satamakatu 6                                  Eräpäivä               25.9.2025
33200 Pohjola

Yhteensä                                                       190,00 €",
        values: || json!({ "supplier_name": "Nuohous Leppä" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "an address without a postal code stands between the issuer's numbers",
        kind: "invoice",
        page: "\
No 0000002218                                              Дата на издаване: 17.04.2025 г.

ПОЛУЧАТЕЛ                                                  ДОСТАВЧИК
Сдружение „Бреза“                                          „Ателие Елша“ ЕООД
ЕИК 181660000                                              ЕИК 175074752, ДДС № BG175074752
гр. Североград, ул. „Мелница“ 6                            гр. Южноград, ул. „Пристан“ 31

Данъчна основа                1 120,00 лв.
ДДС 20 %                        224,00 лв.
Сума за плащане               1 344,00 лв.",
        values: || json!({ "supplier_address": "гр. Южноград, ул. „Пристан“ 31" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "identifier and account are of one country, and no currency is printed",
        kind: "invoice",
        page: "\
Alder Joinery Ltd
Mill Lane 7
Northtown DE1 9ZZ
VAT No. GB 123 4567 82

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal          100.00
VAT 20%            20.00
Total             120.00

IBAN GB33 BUKB 2020 1555 5555 55",
        values: || json!({ "currency": "GBP" }),
        reason: "doubtful_reading",
        doubtful: false,
    },
    DrawnDoubt {
        what: "an identifier and an account of two countries tell no currency beyond doubt",
        kind: "invoice",
        page: "\
Alder Joinery Ltd
Mill Lane 7
12345 Northtown
VAT No. GB 123 4567 82

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal          100.00
VAT 20%            20.00
Total             120.00

IBAN DE02 1203 0000 0000 2020 51",
        values: || json!({ "currency": "GBP" }),
        reason: "doubtful_reading",
        doubtful: true,
    },
    DrawnDoubt {
        what: "an identifier alone tells the currency",
        kind: "invoice",
        page: "\
Alder Joinery Ltd
Mill Lane 7
12345 Northtown
VAT No. GB 123 4567 82

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal          100.00
VAT 20%            20.00
Total             120.00",
        values: || json!({ "currency": "GBP" }),
        reason: "doubtful_reading",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the number beside its day is that of the invoice",
        kind: "invoice",
        page: "\
Erle Kältetechnik GmbH - Mühlweg 20 - 80333 Nordstadt

Birke OHG                                            R E C H N U N G
Hafen 6                                              Nummer              240 1187
69876 Südhafen                                       Datum               04.11.2024

Nettobetrag          100,00 €
zzgl. 19 % USt        19,00 €
Gesamtbetrag         119,00 €",
        values: || json!({ "invoice_number": "240 1187" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a number without a label of its own that comes back under the amount",
        kind: "invoice",
        page: "\
Elektro Erle Inh. Jens Erle
Kirchgasse 3
07743 Nordstadt

Abschlagsrechnung AR-118
vom 16.04.2024

Nettobetrag          100,00 €
zzgl. 19 % USt        19,00 €
Gesamtbetrag         119,00 €

Bitte angeben: AR-118",
        values: || json!({ "invoice_number": "AR-118" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the day by which to pay is as many days after that of issue as the term has",
        kind: "invoice",
        page: "\
Erle GmbH - Mühlweg 20 - 80333 Nordstadt

Rechnung Nr. 90041187
Datum 14.08.2024
Zahlungsbeding.   innerhalb 30 Tagen netto (13.09.2024)

Nettobetrag          100,00 €
zzgl. 19 % USt        19,00 €
Gesamtbetrag         119,00 €",
        values: || json!({ "due_date": "2024-09-13" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "an identifier that begins with a letter of its own has its label",
        kind: "invoice",
        page: "\
Talleres Aliso S.L.
Calle Molino 12
48001 Norteville
CIF B48123456

Factura nº 4471
Fecha de factura 03/07/2024

Base imponible       100,00 €
IVA 21 %              21,00 €
Total                121,00 €",
        values: || json!({ "supplier_vat_id": "B48123456" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "houses with names have no number, but a postal code that nothing else looks like",
        kind: "invoice",
        page: "\
Alder Broadband Ltd
Mill House, Station Road, Northtown CB7 4ZZ

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal          £100.00
VAT 20%            £20.00
Total             £120.00",
        values: || json!({ "supplier_address": "Mill House, Station Road, Northtown CB7 4ZZ" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "where a street stands under the name, an address is not held for absent",
        kind: "invoice",
        page: "\
Alder Broadband Ltd
Mill House 12 Station Road
Tel. 0999 55

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal          £100.00
VAT 20%            £20.00
Total             £120.00",
        values: || json!({ "supplier_address": null }),
        reason: "uncertain:supplier_address",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a company's headquarters are its own, and a numbered street ends in its kind",
        kind: "invoice",
        page: "\
ALDER LTD.                                                INVOICE



Alder Headquarters                             INVOICE: ALD-100
1200 5th St                                    DATE: 03/22/2021
Northtown, NY, 12207                       DUE DATE: 04/21/2021

CUSTOMER NAME: BIRCH CORPORATION
77 Harbour Rd,
Eastville WA, 98052

SUBTOTAL          $150.00
SALES TAX          $12.00
TOTAL             $162.00",
        values: || {
            json!({
                "supplier_address": "1200 5th St, Northtown, NY, 12207",
            })
        },
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "seven digits before Israel are a town's code",
        kind: "invoice",
        page: "\
ALDER MARITIME SERVICES
Shipping agents and brokers
14 Mill St., Northtown 6099914, Israel
Tel: +972 3 999 0147   office@alder.example

INVOICE
No: ALD-2025-31
Date: 22/02/2025

BILL TO:
BIRCH SHIPPING LTD.
42 Harbour St., Eastville, Israel

Subtotal                     2,615.00
TOTAL (USD)                  2,615.00",
        values: || json!({ "supplier_address": "14 Mill St., Northtown 6099914, Israel" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a total that is larger by what was owed before does not outdo the invoice's own",
        kind: "invoice",
        page: "\
Alder Utilities Ltd
12 Mill Lane, Northtown CB7 4ZZ

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal                     £100.00
VAT 20%                       £20.00
Total                        £120.00
Previous balance              £480.00
Total due                    £600.00",
        values: || json!({ "total": 120 }),
        reason: "uncertain:total",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a total that is larger by something else does",
        kind: "invoice",
        page: "\
Alder Utilities Ltd
12 Mill Lane, Northtown CB7 4ZZ

Invoice No. 4471
Invoice Date 03/07/2024

Subtotal                     £100.00
VAT 20%                       £20.00
Total                        £120.00
Connection work               £480.00
Total due                    £600.00",
        values: || json!({ "total": 120 }),
        reason: "uncertain:total",
        doubtful: true,
    },
    DrawnDoubt {
        what: "amounts under no heading make what is untaxed",
        kind: "invoice",
        page: "\
ALDER FORWARDING
12 Mill Lane, Northtown CB7 4ZZ

Invoice No. 4471
Invoice Date 23/07/2024

VESSEL  MV KETTLE                     PORT  Southport
1  Freight                  1 x 20GP      USD 1,150.00
2  Handling at the terminal 1 x 20GP        USD 275.00
3  Papers                   1                USD 75.00

Subtotal                                      1,500.00
VAT (0%)                                          0.00
TOTAL (USD)                                   1,500.00",
        values: || json!({ "subtotal": 1500, "total": 1500 }),
        reason: "uncertain:subtotal",
        doubtful: false,
    },
    DrawnDoubt {
        what: "amounts under no heading that make something else do not",
        kind: "invoice",
        page: "\
ALDER FORWARDING
12 Mill Lane, Northtown CB7 4ZZ

Invoice No. 4471
Invoice Date 23/07/2024

VESSEL  MV KETTLE                     PORT  Southport
1  Freight                  1 x 20GP      USD 1,150.00
2  Handling at the terminal 1 x 20GP        USD 275.00
3  Papers                   1                USD 95.00

Subtotal                                      1,500.00
VAT (0%)                                          0.00
TOTAL (USD)                                   1,500.00",
        values: || json!({ "total": 1500 }),
        reason: "uncertain:subtotal",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a number in Canada's register of businesses is no open identifier",
        kind: "invoice",
        page: "\
Alder Software Limited                    Bill to
118-2207 Mill Road                        Ida Kettle
Northtown British Columbia V5K 0A1        12 Harbour St
Canada
CA BN 811204477

Invoice No. 4471
Invoice Date July 23, 2024

Subtotal                     $100.00
Total                        $100.00",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
];
