//! What was flagged without need on pages as programs and offices print them daily, drawn anew with issuers of our own:
//! days by which to pay in the words of their countries, and days of money that is collected.

use serde_json::json;

use super::doubts::DrawnDoubt;

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
];
