//! Layouts of letters, bills and tills that were misread, drawn anew with issuers of our own: brands over companies of
//! small print, days where something is signed, subject lines, statements under invoices, parties in columns.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "a brand heads the page, and small print names the company that has its word, with form and register",
        kind: "invoice",
        page: "\
Maison Tilleul                                                                FACTURE
Traiteur depuis 1968                                                     N° FA00000118
27 place du Marché                                                  Nordville, le 22/05/2024
37460 Nordville
Tél : 02 47 55 01 18

                                            MECANIQUE DES PRES
                                            ZI du Pas Fleury
                                            37600 SUDVILLE

Buffet campagnard                                     110         19,00        2 090,00

                                                           Total HT            2 090,00 €
                                                           Total TVA             209,00 €
                                                           Total TTC           2 299,00 €


SARL TILLEUL ET FILLES au capital de 8 000 € - SIRET 912 540 663 00014 - RCS Nordville
APE 5621Z - TVA FR 22 912540663",
        values: || json!({
            "supplier_name": "SARL TILLEUL ET FILLES",
            "supplier_address": "27 place du Marché, 37460 Nordville",
        }),
    },
    DrawnLayout {
        what: "a register behind a company's name is no part of it",
        kind: "invoice",
        page: "\
KETTLE                                                                      INVOICE
office supplies

Invoice to                          Deliver to                          Invoice no     0041187
Vale Surveyors LLP                  Vale Surveyors LLP                  Date           12/03/2024
22 Canute Road                      Ocean Village
Northtown SO14 3AB                  Northtown SO14 3TL

A4-REC-80     Paper 80gsm, box                          2         17.90                35.80
                                                             Goods                      35.80
                                                             VAT @ 20.0%                 7.16
                                                             Total GBP                  42.96


Kettle Office Supplies Limited. Registered in England No. 0399118.
Registered office: Birch House, Mill Trading Estate, Southport SO15 0AD",
        values: || json!({ "supplier_name": "Kettle Office Supplies Limited" }),
    },
    DrawnLayout {
        what: "Mexico's number of a taxpayer begins with the letters of the name under a brand",
        kind: "invoice",
        page: "\
HIMONSA                                                           CFDI 4.0 - Factura
HIELO MODERNO DEL NORTE                                           Serie y folio         RB 118
RFC: HMN110304KJ8                                                 Fecha emisión         2024-03-20
Régimen fiscal: 601 General de Ley Personas Morales
Blvd. Fresno 1402-B, Col. Las Trojes
37227 Villanorte, Guanajuato

Receptor:   QUESOS DEL SUR          RFC: LSF980611QA4         Uso CFDI: G03

Servicio                                                          9,800.00         9,800.00

                                                                  Subtotal        $9,800.00
                                                                  IVA 16%         $1,568.00
                                                                  Total          $11,368.00",
        values: || json!({
            "supplier_name": "HIELO MODERNO DEL NORTE",
            "supplier_address": "Blvd. Fresno 1402-B, Col. Las Trojes, 37227 Villanorte, Guanajuato",
        }),
    },
    DrawnLayout {
        what: "a bill is dated where it is signed, and the days of its lines are others; a profession is no street",
        kind: "invoice",
        page: "
                                Docteur Anne TILLEUL
                                Médecin expert agréé
                             Diplôme de médecine du travail
                                     3 rue du Port
                                    29200 Nordville
                                 Tél. 02 98 55 50 31

                                                              Chantiers du Sud SAS
                                                              Port de commerce
                                                              29200 Nordville

Note d'honoraires n° 2024-0412

          le 07/04/2024      M. T. Hêtre                 78,00 €
          le 09/04/2024      Mme S. Orme                 78,00 €

Soit la somme de cent cinquante-six euros               156,00 €

Exonéré de TVA - article 261-4-1° du CGI



                                                              Fait à Nordville, le 14 avril 2024",
        values: || json!({
            "supplier_address": "3 rue du Port, 29200 Nordville",
            "invoice_date": "2024-04-14", "due_date": null, "total": 156.0,
        }),
    },
    DrawnLayout {
        what: "who writes signs with an address under the closing formula, and the day to pay by has no year",
        kind: "invoice",
        page: "

                    ida birkner
                    f l o r i s t i n

Hotel Erlenhof
Groninger Straße 109
26789 Nordstadt


Nordstadt, 2. Juni 2024


Rechnung 2024-14


danke für den schönen Tag bei Ihnen! Für den Schmuck der Zimmer am 28. Mai
berechne ich wie besprochen:

                    Sträuße                              290,00 €
                    Kränze                                95,00 €

                    zusammen                             385,00 €

Überweisen Sie das Geld bitte bis zum 16. Juni auf mein Konto bei der Sparkasse.

Herzliche Grüße


Ida Birkner
Norderstraße 19, 26789 Nordstadt
Steuernummer 60/119/05127",
        values: || json!({
            "supplier_name": "Ida Birkner", "supplier_address": "Norderstraße 19, 26789 Nordstadt",
            "invoice_date": "2024-06-02",
            "due_date": "2024-06-16", "total": 385.0,
        }),
    },
    DrawnLayout {
        what: "a letter's subject says kind and number, and a practice is called by the person with title and number",
        kind: "invoice",
        page: "
                              Studio Legale Nocciolo
                         Via dei Servi, 31 - 50122 Nordvilla (FI)
                          tel. 055 555 0177 - pec: studio@pec.example

Avv. Ludovica Nocciolo
P. IVA 08732430122
C.F. TRRLVC79C55D612Q
                                                           Spett.le
                                                           Conceria Faggio S.r.l.
                                                           Via delle Confina, 9
                                                           56029 Sudvilla (PI)
                                                           P. IVA 03521960108

Nordvilla, 30 aprile 2024

Oggetto: fattura n. 27/2024 - assistenza Conceria Faggio

     Fase di studio della controversia                                    €       900,00
     Accordo transattivo                                                  €       600,00
     Totale imponibile                                                    €     1.500,00
     I.V.A. 22 % su imponibile                                            €       330,00
     Totale documento                                                     €     1.830,00",
        values: || json!({
            "supplier_name": "Avv. Ludovica Nocciolo", "invoice_number": "27/2024",
            "supplier_address": "Via dei Servi, 31 - 50122 Nordvilla (FI)",
            "invoice_date": "2024-04-30",
        }),
    },
    DrawnLayout {
        what: "the recipient's column stands left of the issuer's, and an empty line parts it",
        kind: "invoice",
        page: "
                                         ФАКТУРА
                     № 0000003418      Дата: 09.02.2024 г.      Място: Севергад

ПОЛУЧАТЕЛ                                             ДОСТАВЧИК
Име:      „Ресторанти Дъб\" АД                        Име:      „Пчелин Леска\" ЕООД
Адрес:    1407 гр. Южен, бул. „Бук\" 76               Адрес:    ул. „Хан Аспарух\" № 17,
                                                                2500 гр. Севергад
ЕИК:      027547200                                   ЕИК:      925284706
ИН ЗДДС:  BG027547200                                 ИН ЗДДС:  BG925284706
МОЛ:      Иво Стоев                                   МОЛ:      Рада Пенева

                                                         Данъчна основа:          412,50
                                                         ДДС 20%:                  82,50
                                                         Сума за плащане:     495,00 EUR

Дата на данъчно събитие: 06.02.2024 г.                Плащане: по банков път до 23.02.2024 г.",
        values: || json!({ "supplier_vat_id": "BG925284706", "due_date": "2024-02-23" }),
    },
    DrawnLayout {
        what: "a day stands right under title and number, behind a word such as `of`",
        kind: "invoice",
        page: "
Постачальник:   ФОП Гай Ольга Степанівна
                ЄДРПОУ/ІПН 3017714482, тел. (032) 555-01-44
                Адреса: вул. Зелена, буд. 115, кв. 4, м. Львів, 79035

Одержувач:      ТОВ \"Карпатські меблі\"
Платник:        той самий
Замовлення:     договір № 12/25 від 03.11.2023
Об'єкт:         склад, 05.01.2024

                                     Рахунок-фактура № 44
                                     від 11 лютого 2024 р.

1    Підтримка сайту, січень 2024                        міс              1          9 600,00         9 600,00

                                                                                      Разом:          9 600,00",
        values: || json!({
            "supplier_vat_id": "3017714482", "invoice_number": "44", "invoice_date": "2024-02-11",
            "supplier_address": "вул. Зелена, буд. 115, кв. 4, м. Львів, 79035",
            "currency": "UAH", "total": 9600.0,
        }),
    },
    DrawnLayout {
        what: "a bill of a hotel is dated beside its clerk, and nights and arrival are other days",
        kind: "invoice",
        page: "
                                  HOTEL VAL
                               Račun R1 / Invoice  1187-HV1-2

Gost / Guest:       Herr Jan Ahorn                     Soba / Room:      214
Tvrtka / Company:   Ahorn Solar GmbH                   Dolazak / Arr.:   18.06.2024
                    Innstraße 71                       Odlazak / Dep.:   21.06.2024
                    94032 Südstadt, Deutschland        Osoba / Pax:      1/0

Datum         Opis / Description                         Kol.        EUR
18.06.2024    Noćenje s doručkom / Bed & breakfast          1        162,00
19.06.2024    Noćenje s doručkom / Bed & breakfast          1        162,00

              UKUPNO / TOTAL                                         324,00

Operater: 07 (Ivana)          Severnik, 21.06.2024 10:14

Jadranska vala d.o.o., Obala 12, 23000 Severnik, OIB: 74170461844",
        values: || json!({ "invoice_date": "2024-06-21", "due_date": null }),
    },
    DrawnLayout {
        what: "a statement of account is printed under an invoice, whose day comes back in it; rands stand apart",
        kind: "invoice",
        page: "\
KETTLE GUARDING                                               TAX INVOICE
Armed Response | CCTV                                         INV118840
                                                              01 June 2024
The Owner
Vale Cheese Company CC                                        Account no:    MID0077
P O Box 318                                                   Your VAT no:   4880117733

            Monitoring & armed response     R  1,450.00    R   217.50    R   1,667.50
            CCTV off-site monitoring        R    990.00    R   148.50    R   1,138.50
            Invoice total                   R  2,440.00    R   366.00    R   2,806.00

If you pay by EFT, kindly settle by 07 June 2024.

STATEMENT OF ACCOUNT  MID0077  as at 01 June 2024

Date          Reference         Description                        Debit         Credit        Balance
01/04/2024    INV117302         Tax invoice                     2,806.00                      2,806.00
07/04/2024    DO0426            Debit order - unpaid                           2,806.00           0.00
01/06/2024    INV118840         Tax invoice                     2,806.00                      2,806.00",
        values: || json!({
            "invoice_number": "INV118840", "invoice_date": "2024-06-01", "due_date": "2024-06-07",
            "currency": "ZAR", "total": 2806,
        }),
    },
    DrawnLayout {
        what: "a word of three capitals in a line is no currency beside the one of the total",
        kind: "receipt",
        page: "
   SOAP LAUNDROMAT
   204 Mill Street, Northtown 6011
   GST No. 112-604-837

   Kiosk receipt K1-9936
   16 Aug 2024  7:26 pm

   M03 Wash 14kg warm       9.00
   VND Powder sachet        2.50

   Charged NZD             11.50
   Incl. GST 15%            1.50",
        values: || json!({ "currency": "NZD", "invoice_number": "K1-9936", "total": 11.5 }),
    },
    DrawnLayout {
        what: "a till's number with its cashier is no number of the receipt, and the one beside the day is",
        kind: "receipt",
        page: "
         \"ЛЕСКА ТРЕЙД\" ЕООД
          ЕИК 203748168
   ул. \"Хан Крум\" 21, 9000 Севергад
#000021  КАСИЕР 7: Мариела

ХЛЯБ ДОБРУДЖА 650Г           0,92 Б
КАФЕ МЛЯНО 250Г              6,49 Б
ОБЩА СУМА В ЕВРО              7,41
В БРОЙ ЕВРО                  10,00
РЕСТО ЕВРО                    2,59

0058213  05.02.2024 12:08:44  4 АРТИКУЛА",
        values: || json!({ "invoice_number": "0058213" }),
    },
    DrawnLayout {
        what: "a company of Canada is called by its number, and a mark and a colon stand before the number; virement is paid later",
        kind: "invoice",
        page: "\
PAYSAGES TILLEUL
Déneigement  •  Tonte  •  Aménagement                                        FACTURE
9418-2206 Québec inc.
1440, rang Saint-Édouard                                         No :      F-26-0317
Nordville (Québec) J0L 2L0                                       Date :   2024-06-15

Vendu à :
Gestion Orme
3300, boul. Taschereau, bureau 210
Sudville (Québec)  J4V 2H1

4          Tonte et coupe-bordure                               240,00          960,00

                                                      Sous-total                960,00
                                                      TPS 5 %                    48,00
                                                      TVQ 9,975 %                95,76
                                                      TOTAL                 1 103,76 $

Chèque à l'ordre de 9418-2206 Québec inc. ou virement Interac à comptes@exemple.example",
        values: || json!({ "supplier_name": "9418-2206 Québec inc.", "invoice_number": "F-26-0317" }),
    },
    DrawnLayout {
        what: "which part invoice it is stands before the title, and what a row takes off is another one",
        kind: "invoice",
        page: "\
Trockenbau Birkner
Zwickauer Str. 201a
09116 Nordstadt
Tel. 0371 / 555 01 63

Bauunternehmung Erle GmbH
Wettinerstr. 4
08280 Südstadt
                                                                          08.04.2024

2. Abschlagsrechnung Nr. 26/039

Leistung kumuliert                                                        31.200,00 EUR
abzüglich 1. Abschlagsrechnung Nr. 26/011 vom 02.02.2024                 -12.800,00 EUR
Rechnungsbetrag                                                           18.400,00 EUR",
        values: || json!({ "invoice_number": "26/039", "invoice_date": "2024-04-08" }),
    },
    DrawnLayout {
        what: "the line of small print breaks before the town",
        kind: "invoice",
        page: "
KETTLE GUARDING                                               TAX INVOICE
Armed Response | CCTV                                         INV118840
                                                              01 June 2024
The Owner
Vale Cheese Company CC
P O Box 318

            Monitoring & armed response     R  1,450.00    R   217.50    R   1,667.50
            Invoice total                   R  1,450.00    R   217.50    R   1,667.50

Kettle Guarding (Pty) Ltd. Reg 2011/088114/07. VAT 4530218678. 14 Voortrekker Street,
Northtown, 3290. Tel 033 555 0118",
        values: || json!({ "supplier_address": "14 Voortrekker Street, Northtown, 3290" }),
    },
    DrawnLayout {
        what: "street and town begin a line of small print with telephone and account",
        kind: "invoice",
        page: "
                                                              Drukkerij Esdoorn
                                                              drukwerk | mailing

Stichting Rivierenland Marketing                              FACTUUR
Postbus 311                                                   Factuurnr.       26701893
4000 AH ZUIDSTAD                                              Factuurdatum     31-03-2024

263117     Fietskaart, A3 gevouwen naar A6            5.000                     487,50

                                                              Totaal excl. BTW     487,50
                                                              BTW hoog 21,00%      102,38
                                                              Te betalen EUR       589,88

Edisonweg 7, 4207 HE Noordstad, tel. 0183-555 010, IBAN NL77 QLNB 0855 7714 70, KvK 23099117,
BTW NL359384626B01, Drukkerij Esdoorn B.V.",
        values: || json!({ "supplier_address": "Edisonweg 7, 4207 HE Noordstad" }),
    },
    DrawnLayout {
        what: "a street over its town stands left of telephone and mail in the columns of a footer",
        kind: "invoice",
        page: "\
Pohjolan Huolto Koivu Oy                       LASKU
                                               Laskun pvm           27.2.2024
                                               Laskun numero        260881
Asunto Oy Leppä
PL 88
90101 ETELÄLÄ

110     Kiinteistönhoito                         1,00  kk        540,00    25,5    540,00         677,70

                                                            Veroton yhteensä        540,00
                                                            Alv 25,5 %              137,70
                                                            Maksettava yhteensä     677,70 EUR
















Teknologiantie 9                     Puh. 08 555 0144                  Y-tunnus 7264976-5
90590 Pohjola                        laskutus@koivu.example            Alv-rek. FI72649765
Saajan tilinumero      FI85 8351 8564 1342 48
Saaja                  Pohjolan Huolto Koivu Oy              Euro   677,70",
        values: || json!({ "supplier_address": "Teknologiantie 9, 90590 Pohjola" }),
    },
    DrawnLayout {
        what: "Serbia's number of a taxpayer stands in the issuer's block, and the customer's in his",
        kind: "invoice",
        page: "\
Ida Javor PR Agencija Poliglota
Obrenovićeva 46/3, 18000 Sever
PIB: 250722270        Matični broj: 66011774

Komitent:  Južna Dolina d.o.o.
           Industrijska zona bb, 16000 Jug
           PIB: 108833114

FAKTURA br. 19/2024                    Datum izdavanja: 02.04.2024.

                                                   Ukupno za uplatu (RSD)                    48.600,00",
        values: || json!({ "supplier_vat_id": "250722270" }),
    },
    DrawnLayout {
        what: "a tip is no tax, though it is a share of the sum",
        kind: "receipt",
        page: "
KETTLE TAXI CO-OP INC.
75 Mill Ave N
Northtown, ON L8R 1L3

TRIP  2217-0931
END   2024-10-28 23:19

FARE         $    31.42
HST 13%      $     4.08
SUBTOTAL     $    35.50
TIP 15%      $     5.33
TOTAL CAD    $    40.83

MASTERCARD C  ****6127",
        values: || json!({ "subtotal": 31.42, "vat_amount": 4.08, "total": 40.83 }),
    },
    DrawnLayout {
        what: "the total of the taxes by rate stands under them, and a rate of nothing is none",
        kind: "receipt",
        page: "
       S.C. FRASIN FUEL S.R.L.
   Șos. Națională 12, Mun. Nordiu

MOTORINĂ STANDARD            248.69 A
APĂ PLATĂ 0.5L                 4.50 B
GARANȚIE SGR                   0.50 D
SUBTOTAL                     253.69

TOTAL LEI                    253.69
CARD                         253.69
TVA A - 21.00%                43.16
TVA B - 11.00%                 0.45
TVA D -  0.00%                 0.00
TOTAL TVA BON                 43.61
Z: 1132         BF: 0187
DATA: 19-01-2024   ORA: 14-22-05",
        values: || json!({
            "invoice_number": "0187", "subtotal": null, "vat_amount": 43.61, "total": 253.69,
        }),
    },
    DrawnLayout {
        what: "a brand heads a till's paper, and its company stands at the end over its number",
        kind: "receipt",
        page: "
brent & bakt
Nygårdsgaten 61
5015 Nordby

Flat white dobbel         54,00
Kanelbolle                46,00

Sum å betale NOK         100,00
Vipps                    100,00

MVA grunnlag  sats     mva
       80,00   25%   20,00

Salgskvittering 102/55817
14.11.2024 08:49 / kasse 102
BRENT & BAKT DRIFT AS
Foretaksregisteret
NO 918 442 065 MVA",
        values: || json!({
            "supplier_name": "BRENT & BAKT DRIFT AS",
            "supplier_address": "Nygårdsgaten 61, 5015 Nordby",
        }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "small print names a company with its register that has no word of the brand at the head",
        kind: "invoice",
        page: "\
Le Tilleul Gourmand                                                           FACTURE
27 place du Marché                                                       N° FA00000118
37460 Nordville                                                     Nordville, le 22/05/2024
Tél : 02 47 55 01 18
contact@tilleul-gourmand.example

                                            MECANIQUE DES PRES
                                            ZI du Pas Fleury
                                            37600 SUDVILLE

Buffet campagnard                                     110         19,00        2 090,00

                                                           Total HT            2 090,00 €
                                                           Total TVA             209,00 €
                                                           Total TTC           2 299,00 €


SARL DURAND ET FILLES au capital de 8 000 € - SIRET 912 540 663 00014 - RCS Nordville",
        values: || json!({ "total": 2299 }),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a day on which the money is collected was doubted for a label in its sentence",
        kind: "invoice",
        page: "\
Stadtwerke Erlen GmbH, Am Wasserturm 2, 55583 Nordstadt

Bäckerei Birkner                                                     Rechnungsnr.   710 2266 10944
Kreuzstraße 31                                                       27. Dezember 2023
55543 Südstadt

Rechnungsbetrag netto                                                             2.318,62 €
Umsatzsteuer 19 %                                                                   440,54 €
Rechnungsbetrag brutto                                                            2.759,16 €

Die Nachzahlung von 229,16 € buchen wir zusammen mit dem ersten Abschlag am 16.01.2024 von Ihrem
Konto ab. Ihr neuer Abschlag beträgt 252,00 € monatlich (211,76 € netto zzgl. 40,24 € USt).

Stadtwerke Erlen GmbH, AG Nordstadt HRB 99003 · USt-IdNr. DE136695976",
        values: || json!({ "invoice_number": "710 2266 10944", "due_date": "2024-01-16" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
];
