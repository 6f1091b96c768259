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
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[DrawnDoubt {
    what: "small print names a company with its register that has no word of the brand at the head",
    kind: "invoice",
    page: "\
Le Tilleul Gourmand                                                           FACTURE
27 place du Marché                                                       N° FA00000118
37460 Nordville                                                     Nordville, le 22/05/2024
Tél : 02 47 55 01 18

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
}];
