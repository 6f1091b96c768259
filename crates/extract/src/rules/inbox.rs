//! What was flagged without need on pages as programs and offices print them daily, drawn anew with issuers of our own:
//! days by which to pay in the words of their countries, and days of money that is collected.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "who has the initial of his first name over the window of an envelope is called as in the letterhead",
        kind: "invoice",
        page: "\
                                                            Jens Birke
                                                            Malermeister
                                                            Innen- und Außenanstriche
                                                            Lindenstraße 18
                                                            30455 Nordstadt
J. Birke, Lindenstraße 18, 30455 Nordstadt
                                                            Tel. 0511 555 0164
Eheleute
Karin und Holger Erle
Am Weiher 3 c
30449 Nordstadt
                                                            Nordstadt, den 3. März 2024

Schlussrechnung Nr. 2024-031

1       Wände spachteln, zweimal streichen       100,00 m²        5,00         500,00 €

        Summe netto                                                            500,00 €
        zzgl. 19 % Mehrwertsteuer                                               95,00 €
        Gesamtbetrag                                                           595,00 €

Mit freundlichem Gruß

Jens Birke",
        values: || json!({
            "supplier_name": "Jens Birke",
            "supplier_address": "Lindenstraße 18, 30455 Nordstadt",
        }),
    },
    DrawnLayout {
        what: "whom a bill is sent to has a name of his own, whatever the initial of who sends it",
        kind: "invoice",
        page: "\
                                                            Rechnung
                                                            Nr. 2024-031
J. Birke, Lindenstraße 18, 30455 Nordstadt                  Datum 03.03.2024

An:
Jens Birke
Am Weiher 3 c
30449 Nordstadt

1       Wände spachteln, zweimal streichen       100,00 m²        5,00         500,00 €

        Summe netto                                                            500,00 €
        zzgl. 19 % Mehrwertsteuer                                               95,00 €
        Gesamtbetrag                                                           595,00 €

J. Birke, Tel. 0511 555 0164",
        values: || json!({ "supplier_name": "J. Birke" }),
    },
    DrawnLayout {
    what: "a company's partner and register under its name at the foot are no address: that stands in the next column",
    kind: "invoice",
    page: "\
                                                                          KETTLE
                                                                          Stahl - Bleche
Kettle Stahlhandel GmbH & Co. KG - Postfach 10 05 55 - 57005 Nordstadt

FIRMA
METALLBAU BIRKE GMBH
HAMMERWEG 2                                               RECHNUNG            7090218
57234 SÜDSTADT                                            DATUM               24.06.24
                                                          KUNDEN-NR.          10447

POS ARTIKEL     BEZEICHNUNG                             MENGE ME     PREIS             BETRAG
010 RR4040-3    FORMROHR S235 40X40X3 LG 6 M           100,00 M      5,00              500,00

                         WARENWERT     MWST-%      MWST-BETRAG             RECHNUNG EUR
                            500,00      19,00            95,00                   595,00




Kettle Stahlhandel GmbH & Co. KG       Am Güterbahnhof 40-46            Amtsgericht Nordstadt HRA 5551
Komplementärin: Kettle                 57072 Nordstadt                  USt-IdNr. DE136695976
Verwaltungs-GmbH, HRB 5550             Telefon 0271 555-0               Siegbank eG
Geschäftsführer: Ole Kettle            kettle-stahl.example             IBAN DE25 3704 0044 2803 8588 15",
    values: || json!({
        "supplier_name": "Kettle Stahlhandel GmbH & Co. KG",
        "supplier_address": "Am Güterbahnhof 40-46, 57072 Nordstadt",
    }),
}];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "a term of payment with a day behind it is the day by which to pay",
        kind: "invoice",
        page: "\
Garage Tilleul SA
Route du Moulin 14
1610 Nordville                                              Nordville, le 9 avril 2024
TVA CHE-123.456.788

                                                            Monsieur Luc Bouleau
                                                            Chemin des Prés 3
                                                            1612 Sudville

Facture no 4471

Service annuel                                                        200.00
TVA 8,1 %                                                              16.20
Total CHF                                                             216.20

Délai de paiement: 09.05.2024",
        values: || json!({ "invoice_date": "2024-04-09", "due_date": "2024-05-09" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a sentence asks for money before a day",
        kind: "invoice",
        page: "\
Bureau Berkenlaan B.V.
Berkenlaan 14
3811 AB Noordstad
Btw-nummer NL123456782B90

Familie Linde
Molenweg 3
3812 CD Zuidstad

Noordstad, 31 mei 2024

Factuurnummer: 2024.0063

Ontwerp, tweede fase                                               €      400,00
21 % btw                                                           €       84,00
te betalen                                                         €      484,00

Wij verzoeken u dit bedrag voor 30 juni 2024 over te maken.",
        values: || json!({ "invoice_date": "2024-05-31", "due_date": "2024-06-30" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a line that begins with its amount goes on from the one above, which says that money is collected",
        kind: "invoice",
        page: "\
Kettle Telecom plc                                           Your bill
                                                             Bill number     M018 4471 22
Ms O Birch                                                   Bill date       16 July 2024
3 Mill Parade
Northtown BS6 5XX
                                                             We'll collect by Direct Debit
                                                             £41.00 on 30 July 2024

Broadband and calls                                                  £34.17
VAT at 20%                                                            £6.83
Total for this bill                                                  £41.00

Kettle Telecom plc. Registered office: Kettle House, Temple Gate, Southport BS1 6XX. VAT no. GB 123 4567 82",
        values: || json!({ "invoice_date": "2024-07-16", "due_date": "2024-07-30" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a sentence goes on in the next line, which says that money is collected",
        kind: "invoice",
        page: "\
Birke Handels GmbH
Lindenstraße 18
30455 Nordstadt                                             Rechnung 4471
                                                            Datum 05.03.2024
Erle KG
Am Weiher 3
30449 Nordstadt

Trennblätter                               20        5,00          100,00
Netto                                                              100,00
USt. 19 %                                                           19,00
Rechnungsbetrag EUR                                                119,00

Der Betrag in Höhe von EUR 119,00 wird am 20.03.2024 von Ihrem Konto bei der
Siegbank durch eine Lastschrift eingezogen. USt-IdNr. DE136695976",
        values: || json!({ "invoice_date": "2024-03-05", "due_date": "2024-03-20" }),
        reason: "uncertain:due_date",
        doubtful: false,
    },
];
