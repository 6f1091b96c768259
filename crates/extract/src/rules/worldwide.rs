//! Layouts of senders of many countries, in the manner of `scripts/worldwide_pages` and
//! `scripts/later_pages`: each was misread before the rule that reads it. What real documents of these
//! layouts look like is not claimed.

use serde_json::json;

use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "the street of the sender is called by a day",
        kind: "invoice",
        page: "\
Clínica Amieiro, Lda
Rua 31 de Janeiro 88
8000-411 Northtown

Fatura-Recibo FR A/4471

Data Emissão     Contribuinte
2024-03-22       123456789

Total (EUR)      65,00",
        values: || json!({ "invoice_date": "2024-03-22", "supplier_address": "Rua 31 de Janeiro 88, 8000-411 Northtown" }),
    },
    DrawnLayout {
        what: "recipient and issuer stand beside each other, each with its own labels",
        kind: "invoice",
        page: "\
          ФАКТУРА   Оригинал
          Номер: 0000004471     Дата: 02.10.2024 г.

Получател                                    Доставчик
Име: Бреза ЕООД                              Име: Елша ООД
Адрес: гр. Север, ул. Мост 5                 Адрес: гр. Юг, бул. Река 88

Сума за плащане:   768,00 лв.",
        values: || json!({ "supplier_name": "Елша ООД", "supplier_address": "гр. Юг, бул. Река 88" }),
    },
    DrawnLayout {
        what: "the address has no postal code",
        kind: "invoice",
        page: "\
ALDER APA S.A.                              FACTURA
Str. Morii nr. 12, Northtown, jud. Bihor    Seria ACR  nr. 2024447
CIF: RO18547290                             Data emiterii: 04.11.2024

TOTAL DE PLATA                              132,54 lei",
        values: || json!({ "supplier_address": "Str. Morii nr. 12, Northtown, jud. Bihor" }),
    },
    DrawnLayout {
        what: "the address has no postal code, and the town before the street",
        kind: "invoice",
        page: "\
Елша Родопа ЕООД                              ФАКТУРА
гр. Север, ул. Бор 12                         № 0000004417 / 16.04.2024 г.
ЕИК 202994422

Сума за плащане:   768,00 лв.",
        values: || json!({ "supplier_address": "гр. Север, ул. Бор 12" }),
    },
    DrawnLayout {
        what: "the amounts of a credit note have a sign, and its title goes on with the number",
        kind: "credit_note",
        page: "\
DOBROPIS č. 7240018                 k faktúre č. 2240447
Jelša spol. s r. o.
Dátum vyhotovenia: 03.09.2024
Základ DPH 10 %      -64,00
DPH 10 %              -6,40
Spolu na vrátenie    -70,40 EUR",
        values: || json!({ "invoice_number": "7240018", "total": 70.4, "subtotal": 64, "vat_amount": 6.4 }),
    },
    DrawnLayout {
        what: "the total says what tax it includes",
        kind: "invoice",
        page: "\
Alder Electrical Pty Ltd
Invoice no: 2207
Issue date: 14 March 2024

Amount due               $676.50
Total includes GST of     $61.50",
        values: || json!({ "total": 676.5, "vat_amount": 61.5 }),
    },
    DrawnLayout {
        what: "the amount stands beside the day by which to pay it",
        kind: "invoice",
        page: "\
Alder Bau GmbH
Teilrechnung AR240771
Wörgl, am 30.09.2024

Zu zahlen bis 14.10.2024      6.400,00 €",
        values: || json!({ "total": 6400, "due_date": "2024-10-14" }),
    },
    DrawnLayout {
        what: "rates stand in rows with net amount, tax and total, and make the total together",
        kind: "invoice",
        page: "\
Hotel Alder
Rechnung-Nr.   10447
Datum          21.07.2024

Gesamt brutto                          498,00 EUR

MwSt %       Netto        MwSt        Brutto
7,00        378,50       26,50        405,00
19,00        60,50       11,50         72,00
0,00         21,00        0,00         21,00",
        values: || json!({ "total": 498, "vat_amount": 38 }),
    },
    DrawnLayout {
        what: "a labelled period ends with a day that nothing else names",
        kind: "invoice",
        page: "\
Szolgáltató: Éger Áram Zrt.                Elszámolt időszak:   2024.08.01 - 2024.08.31
4024 Debrecen, Kossuth utca 41.            Számla kelte:        2024.09.10
Számla sorszáma: 844771102933              Fizetési határidő:   2024.09.30

Fizetendő összeg     9 000 Ft",
        values: || json!({ "invoice_date": "2024-09-10", "due_date": "2024-09-30" }),
    },
    DrawnLayout {
        what: "street and town begin a line of other details, parted by dashes",
        kind: "invoice",
        page: "\
Dakwerken Els BV
Molenstraat 118 - 2440 Geel - 014 55 50 14 - BTW BE 0424.073.805

FACTUUR      Nummer: 2024/217      Datum: 05/08/2024
Te betalen   5.618,00 EUR",
        values: || json!({ "supplier_address": "Molenstraat 118, 2440 Geel" }),
    },
    DrawnLayout {
        what: "a trade under the name begins like the host of a mail address",
        kind: "invoice",
        page: "\
Ananya Alder
UX Research Consultant
22, 4th Cross, Jayanagar, Bengaluru 560041
PAN: AKXPK4471R    ananya@uxr.example

Invoice no : AK/2024/07
Invoice date : 31-Jul-2024
Billed to
Birch Health Pvt Ltd
91 Springboard, Bengaluru 560095

Total      85,000.00",
        values: || json!({ "supplier_name": "Ananya Alder" }),
    },
    DrawnLayout {
        what: "the only company is the recipient in the window, under the letterhead of another name",
        kind: "invoice",
        page: "\
Makelaarskantoor Claeys & Els
Graanmarkt 3
9700 Oudenaarde




Berk BV
Brugstraat 18
9700 Oudenaarde

FACTUUR nr. P24-20771




Te betalen      432,20 EUR",
        values: || json!({ "supplier_name": "Makelaarskantoor Claeys & Els" }),
    },
    DrawnLayout {
        what: "the reference of the payment has the form of an identifier",
        kind: "invoice",
        page: "\
Sokol Joha d.o.o.
Zagrebačka cesta 77, 10000 Zagreb
OIB: 87790482779

RAČUN br. 20771/VP1/3
Datum računa: 30.11.2024.
Ukupno s PDV-om   105,50 EUR
Poziv na broj: HR00 20771-2024",
        values: || json!({ "supplier_vat_id": "87790482779", "invoice_number": "20771/VP1/3" }),
    },
    DrawnLayout {
        what: "the issuer, its street and town stand behind a label at the foot, the recipient has a town with a code behind it",
        kind: "invoice",
        page: "\
cumulo                                    VAT Invoice
Bill to Address:                          VAT Invoice Number:    EU24-1180442
Birch Lantern Ltd                         VAT Invoice Date:      August 2, 2024
2 Quay Street
Bath, BA1 5QT, GB

Total for this invoice                    $382.08

Service Provider: Alder Web SARL, 38 Avenue du Plateau, L-1855 Luxembourg. VAT LU56044714",
        values: || json!({ "supplier_name": "Alder Web SARL", "supplier_address": "38 Avenue du Plateau, L-1855 Luxembourg" }),
    },
];
