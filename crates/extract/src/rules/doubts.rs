//! Pages that were read right and flagged all the same, drawn anew with issuers of our own: what is
//! plain asks for nobody. Beside each a page on which the same doubt is one.

use serde_json::{Value, json};
use time::macros::date;

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;
use docmill_gate::{EinvoiceState, GateLookups, judge_extraction};

/// A page that was flagged, and what asked for a person.
pub(super) struct DrawnDoubt {
    pub(super) what: &'static str,
    pub(super) kind: &'static str,
    pub(super) page: &'static str,
    pub(super) values: fn() -> Value,
    /// The reason that is not to come back, or has to be there.
    pub(super) reason: &'static str,
    pub(super) doubtful: bool,
}

const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "the customer's VAT identifier was held for a rival of the issuer's",
        kind: "invoice",
        page: "\
Erle Metallbau GmbH
Mühlweg 20
82216 Nordstadt

Birke AG                          Rechnungsnummer      618205
Hafen 15                          Rechnungsdatum   12.09.2023
66812 Südhafen                    Fällig am        12.10.2023

Ihre USt.-IdentNr.: DE318764520

Rechnung

Bezeichnung                  Menge   Einzelpreis       Betrag
Geländer                         1        100,00       100,00

                                  Nettobetrag          100,00 €
                                  zzgl. 19 % USt        19,00 €
                                  Gesamtbetrag         119,00 €



Bankname: Hausbank      USt.-IdentNr.: DE123456789",
        values: || json!({ "supplier_vat_id": "DE123456789", "buyer_vat_id": "DE318764520" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "of two identifiers that nothing tells apart neither is certain",
        kind: "invoice",
        page: "\
Erle Metallbau GmbH
Mühlweg 20
82216 Nordstadt

Birke AG                          Rechnungsnummer      618205
Hafen 15                          Rechnungsdatum   12.09.2023
66812 Südhafen                    Fällig am        12.10.2023

DE318764520

Rechnung

Bezeichnung                  Menge   Einzelpreis       Betrag
Geländer                         1        100,00       100,00

                                  Nettobetrag          100,00 €
                                  zzgl. 19 % USt        19,00 €
                                  Gesamtbetrag         119,00 €



Bankname: Hausbank      DE123456789",
        values: || json!({}),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a day of issue was doubted because payment was due on the same day",
        kind: "credit_note",
        page: "\
Aulnaie SARL - 12 rue du Tisserand - 29200 Brest - France
TVA : FR48618402754

Avoir NC-2019-0031
                                        Bouleau SA
                                        48 rue du Port
                                        14000 Caen
Date de facture           21/08/2019
Date d'échéance           21/08/2019

Description                 Quantité   Prix unitaire    Prix HT
Farine                            10           10,00     100,00

                                        Total HT       100,00 €
                                        TVA 20 %        20,00 €
                                        Total TTC      120,00 €",
        values: || json!({ "invoice_date": "2019-08-21" }),
        reason: "uncertain:invoice_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a day that only the label of another day names is doubtful",
        kind: "invoice",
        page: "\
Aulnaie SARL - 12 rue du Tisserand - 29200 Brest - France
TVA : FR48618402754

Facture FC-2019-0031
                                        Bouleau SA
                                        48 rue du Port
                                        14000 Caen
Date de livraison         21/08/2019

Description                 Quantité   Prix unitaire    Prix HT
Farine                            10           10,00     100,00

                                        Total HT       100,00 €
                                        TVA 20 %        20,00 €
                                        Total TTC      120,00 €",
        values: || json!({}),
        reason: "uncertain:invoice_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a number that comes back with a dash behind it was held for its own rival",
        kind: "invoice",
        page: "\
ALDERPOSTE                                          BIRCH SAS
                                                    27 rue du Port
                                                    71100 Nordville

                        Facture n° 2023174506

Date : 17/04/2023
Numéro de dossier : 508273

Désignation                     Nombre     P.U. HT     Montant HT
Affiche                              1       62,40        62,40 €

                                              Total HT :  62,40 €
                                              TVA 20% :   12,48 €
                                              Total TTC : 74,88 €



Siège social : 23 rue du Moulin - 63200 VILLE - Siret 73282932000074
Facture n° 2023174506 - Page 1/1",
        values: || json!({ "invoice_number": "2023174506" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a name over two lines was held for two rivals",
        kind: "invoice",
        page: "\
Verkäufer:
BVA Alderkasse
Sterbekassenverein Nordstadt a.G.
Mühlweg 20
82216 Nordstadt

Käufer:
Herrn
Ole Birke
Hafen 15
66812 Südhafen

Rechnung Nr. 618205 vom 12.09.2023

Bezeichnung                  Menge   Einzelpreis       Betrag
Beitrag                          1        100,00       100,00

                                  Nettobetrag          100,00 €
                                  zzgl. 19 % USt        19,00 €
                                  Gesamtbetrag         119,00 €",
        values: || json!({ "supplier_name": "BVA Alderkasse Sterbekassenverein Nordstadt a.G." }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the customer's address beside its heading was held for one of the issuer that was not read",
        kind: "invoice",
        page: "\
Alder Ltd.                                     Invoice
                                               Date: 11/9/2021
                                               Invoice No.: A-77

Sold To   Birch Pans
          718 Harbour Way
          Millet, WY 82936

Description                  Price   Amount
Mounting                 $4,200.00   $4,200.00

                          Subtotal   $4,200.00
                         Sales Tax   $126.00
                             Total   $4,326.00",
        values: || json!({ "supplier_address": null }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a day after the issue stands in a sentence of words that nobody knows: it may be the one to pay by",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Leeds LS1 4AB

INVOICE

Invoice number   A-77
Invoice date     5 June 2023

Product                          Amount
Gate                             £74.50

                         Total   £74.50

Ordainketa egin behar da beranduenez 19 June 2023 baino lehen eta osorik.",
        values: || json!({ "invoice_date": "2023-06-05", "due_date": null }),
        reason: "uncertain:due_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "of two days behind words that nobody knows none is surely that of issue",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Leeds LS1 4AB

INVOICE

Invoice number   A-77
Igorpena         2 June 2023
Entrega          5 June 2023

Product                          Amount
Gate                             £74.50

                         Total   £74.50",
        values: || json!({}),
        reason: "uncertain:invoice_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a number behind a word that nobody knows may be the receipt's",
        kind: "receipt",
        page: "\
ALDER TEA LTD
12 Mill Road
Leeds LS1 4AB
05/06/2023 14:25
Zkia 118204
Tea                      2.00
Cake                     3.50
TOTAL  GBP               5.50
CASH                     5.50",
        values: || json!({ "invoice_number": null, "total": 5.5 }),
        reason: "uncertain:invoice_number",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a receipt without a number was to be read without a person as well",
        kind: "receipt",
        page: "\
ALDER TEA LTD
12 Mill Road
Leeds LS1 4AB
05/06/2023 14:25
Tea                      2.00
Cake                     3.50
TOTAL  GBP               5.50
CASH                     5.50",
        values: || json!({ "invoice_number": null, "total": 5.5 }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "an abbreviation that nobody knows stands before what can be an identifier",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Leeds LS1 4AB
QZX: 44771820

INVOICE

Invoice number   A-77
Invoice date     5 June 2023

Product                          Amount
Gate                             £74.50

                         Total   £74.50",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a number of a taxpayer has no label, and no other number has its form",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Leeds LS1 4AB
Zenbakia: APB044771KX2

INVOICE

Invoice number   A-77
Invoice date     5 June 2023

Product                          Amount
Gate                             £74.50

                         Total   £74.50",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "under the total stands it again but for cents, behind a word that nobody knows",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Nordstadt

Rechnungsnummer   A-77
Rechnungsdatum    05.06.2023

Gate                                    236,30
Total                EUR                236,30
Biribilduta                             236,00",
        values: || json!({ "total": 236.3 }),
        reason: "uncertain:total",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a word that nobody knows stands over a name and its street",
        kind: "invoice",
        page: "\
INVOICE                                              No.: A-77
                                                     Date: 5 June 2023

Hornitzailea
Kettle Works
Mill Road 12
Leeds LS1 4AB

Product                          Amount
Gate                             £74.50

                         Total   £74.50",
        values: || json!({}),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a long number behind a word that nobody knows stands in the issuer's block",
        kind: "invoice",
        page: "\
Kettle Works Ltd
Mill Road 12
82216 Northtown
Zergaduna 550409432

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    236,30
Total                EUR                236,30",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a long number stands alone under the name of a tax",
        kind: "invoice",
        page: "\
Kettle Works Ltd                    Sales tax zenbakia
Mill Road 12                        119944223
82216 Northtown

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    236,30
Total                EUR                236,30",
        values: || json!({}),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "amounts that nothing names make the total as a net amount and its tax do",
        kind: "invoice",
        page: "\
Kettle Works Ltd
Mill Road 12
82216 Northtown

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    286,00
Hinge                                   154,00
Salneurria                              400,00
Zerga                                    40,00
Total                EUR                440,00",
        values: || json!({ "subtotal": null, "vat_amount": null, "total": 440 }),
        reason: "uncertain:vat_amount",
        doubtful: true,
    },
    DrawnDoubt {
        what: "two lines stood to each other as a net amount and its tax by accident",
        kind: "invoice",
        page: "\
Kettle Works Ltd
Mill Road 12
82216 Northtown

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    400,00
Hinge                                    40,00
Total                EUR                440,00",
        values: || json!({ "subtotal": null, "vat_amount": null, "total": 440 }),
        reason: "uncertain:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the tax that a rate makes within the total stands under it, and nothing names it",
        kind: "invoice",
        page: "\
Kettle Works Ltd
Mill Road 12
82216 Northtown

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    286,00
Hinge                                   154,00
Total                EUR                440,00
Zerga                                    40,00",
        values: || json!({ "vat_amount": null, "total": 440 }),
        reason: "uncertain:vat_amount",
        doubtful: true,
    },
    DrawnDoubt {
        what: "behind the label of something else a word that nobody knows names a day after the issue",
        kind: "invoice",
        page: "\
Kettle Works Ltd
Mill Road 12
82216 Northtown

INVOICE
Invoice number   A-77
Invoice date     05.06.2023

Gate                                    236,30
Total                EUR                236,30

Payment method:      transfer, epemuga 19.06.2023",
        values: || json!({ "due_date": null }),
        reason: "uncertain:due_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "one word with an identifier beside it is no certain name",
        kind: "invoice",
        page: "\
INVOICE                                              No.: A-77
Kopia 1                                              Date: 5 June 2023

Hornitzailea               VAT DE136695976
Mill Road

Product                          Amount
Gate                             €74.50

                         Total   €74.50",
        values: || json!({ "supplier_name": "Hornitzailea" }),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
    DrawnDoubt {
        what: "the recipient's identifier under his address was a rival of the one beside the issuer's mail",
        kind: "invoice",
        page: "\
Erle Metallbau GmbH
Mühlweg 20
82216 Nordstadt

                                  Birke AG
                                  Hafen 15
                                  66812 Südhafen
                                  USt-IdNr. DE811193231

Rechnungsnummer      618205
Rechnungsdatum   12.09.2023

Geländer                                  100,00

                     Nettobetrag          100,00 €
                     zzgl. 19 % USt        19,00 €
                     Gesamtbetrag         119,00 €

info@erle.example       USt-IdNr. DE136695976",
        values: || json!({ "supplier_vat_id": "DE136695976" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the only day with a label was doubted for the days of its lines",
        kind: "invoice",
        page: "\
Alder Plumbing Ltd
Mill Road 12
82216 Northtown

Invoice number   A-77
Date             07.09.2023

06.09.2023   Labour                             690.00
06.09.2023   Fittings                           272.40
Total                       EUR                 962.40",
        values: || json!({ "invoice_date": "2023-09-07" }),
        reason: "uncertain:invoice_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a number with the label of its day behind another one's was doubted",
        kind: "invoice",
        page: "\
Alder Plumbing Ltd
Mill Road 12
82216 Northtown

Bestelnummer / Order no.     4471
Factuurdatum / Datum         07-09-2023
Factuurnummer                A-77

Labour                                          690.00
Total                       EUR                 690.00",
        values: || json!({ "invoice_date": "2023-09-07" }),
        reason: "uncertain:invoice_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the only number beside a title within its line was doubted",
        kind: "invoice",
        page: "\
Alder Roofs Ltd
Mill Road 12
82216 Northtown
                                              7 September 2023
Progress invoice AR 25-0317

Labour                                          690.00
Total                       EUR                 690.00",
        values: || json!({ "invoice_number": "AR 25-0317" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "in the United States some write the month first with points, too",
        kind: "invoice",
        page: "\
Alder Photography LLC
811 Mill Road
Northtown, WA 98225

Invoice number   24-031
Invoice date     06.02.2023

Wedding                                       $2,800.00
Total                                         $2,800.00",
        values: || json!({}),
        reason: "uncertain:invoice_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a domain speaks for one company, and for another one an identifier of which nobody knows whose it is",
        kind: "invoice",
        page: "\
Birke Revision GmbH
Hafen 15
66812 Südhafen
DE811193231









                                  Erlenhof Metallbau GmbH
                                  Mühlweg 20
                                  82216 Nordstadt

Rechnungsnummer      618205
Rechnungsdatum   12.09.2023

Geländer                                  100,00

                     Nettobetrag          100,00 €
                     zzgl. 19 % USt        19,00 €
                     Gesamtbetrag         119,00 €

Fragen an service@erlenhof.example",
        values: || json!({}),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
];

#[test]
fn what_is_plain_is_not_doubted_and_what_is_not_is() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let lookups = GateLookups {
        duplicate_of: None,
        today: date!(2024 - 01 - 15),
        quality_threshold: 0.7,
        einvoice: EinvoiceState::Absent,
        pictures_shown: false,
    };
    let mut wrong = Vec::new();
    let doubts = DOUBTS
        .iter()
        .chain(super::abroad::DOUBTS)
        .chain(super::amounts::DOUBTS)
        .chain(super::outside::DOUBTS)
        .chain(super::letterbox::DOUBTS)
        .chain(super::postbag::DOUBTS)
        .chain(super::inbox::DOUBTS)
        .chain(super::parties::DOUBTS)
        .chain(super::unnamed::DOUBTS);
    for DrawnDoubt { what, kind, page, values, reason, doubtful } in doubts {
        let (page, kind) = (transcript(&[page]), kinds.get(kind).unwrap());
        let read = extract_by_rules(&page, kind);
        for (field, value) in values().as_object().unwrap() {
            let given = read.data.get(field).unwrap_or(&Value::Null);
            if given != value {
                wrong.push(format!("{what}: {field} is {given}, not {value}"));
            }
        }
        let reasons = judge_extraction(&read, &page, kind, &lookups).review_reasons();
        if reasons.iter().any(|one| one == reason) != *doubtful {
            wrong.push(format!("{what}: {reasons:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
