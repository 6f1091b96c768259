//! Pages that were read right and flagged all the same, drawn anew with issuers of our own: what is
//! plain asks for nobody. Beside each a page on which the same doubt is one.

use serde_json::{Value, json};
use time::macros::date;

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::gate::{EinvoiceState, GateLookups, judge_extraction};
use docmill_gate::kinds::KindSet;

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
80333 Nordstadt

Birke AG                          Rechnungsnummer      471102
Hafen 15                          Rechnungsdatum   05.06.2023
69876 Südhafen                    Fällig am        05.07.2023

Ihre USt.-IdentNr.: DE234567890

Rechnung

Bezeichnung                  Menge   Einzelpreis       Betrag
Geländer                         1        100,00       100,00

                                  Nettobetrag          100,00 €
                                  zzgl. 19 % USt        19,00 €
                                  Gesamtbetrag         119,00 €



Bankname: Hausbank      USt.-IdentNr.: DE123456789",
        values: || json!({ "supplier_vat_id": "DE123456789", "buyer_vat_id": "DE234567890" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "of two identifiers that nothing tells apart neither is certain",
        kind: "invoice",
        page: "\
Erle Metallbau GmbH
Mühlweg 20
80333 Nordstadt

Birke AG                          Rechnungsnummer      471102
Hafen 15                          Rechnungsdatum   05.06.2023
69876 Südhafen                    Fällig am        05.07.2023

DE234567890

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
Au bon aulne SARL - 12 rue du Moulin - 75001 Paris - France
TVA : FR11999999998

Avoir AV-2017-0005
                                        Bouleau SA
                                        35 rue du Port
                                        69001 Lyon
Date de facture           16/11/2017
Date d'échéance           16/11/2017

Description                 Quantité   Prix unitaire    Prix HT
Farine                            10           10,00     100,00

                                        Total HT       100,00 €
                                        TVA 20 %        20,00 €
                                        Total TTC      120,00 €",
        values: || json!({ "invoice_date": "2017-11-16" }),
        reason: "uncertain:invoice_date",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a day that only the label of another day names is doubtful",
        kind: "invoice",
        page: "\
Au bon aulne SARL - 12 rue du Moulin - 75001 Paris - France
TVA : FR11999999998

Facture FA-2017-0005
                                        Bouleau SA
                                        35 rue du Port
                                        69001 Lyon
Date de livraison         16/11/2017

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
ALDERPRESS                                          BIRCH SAS
                                                    27 rue du Port
                                                    69100 Nordville

                        Facture n° 2022089083

Date : 28/11/2022
Numéro de dossier : 365146

Désignation                     Nombre     P.U. HT     Montant HT
Annonce                              1       45,93        45,93 €

                                              Total HT :  45,93 €
                                              TVA 20% :    9,19 €
                                              Total TTC : 55,12 €



Siège social : 16 rue du Moulin - 92100 VILLE - Siret 53084813400017
Facture n° 2022089083 - Page 1/1",
        values: || json!({ "invoice_number": "2022089083" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a name over two lines was held for two rivals",
        kind: "invoice",
        page: "\
Verkäufer:
ABV Alderhafter
Versicherungsverein Nordstadt a.G.
Mühlweg 20
80333 Nordstadt

Käufer:
Herrn
Max Birke
Hafen 15
69876 Südhafen

Rechnung Nr. 471102 vom 05.06.2023

Bezeichnung                  Menge   Einzelpreis       Betrag
Beitrag                          1        100,00       100,00

                                  Nettobetrag          100,00 €
                                  zzgl. 19 % USt        19,00 €
                                  Gesamtbetrag         119,00 €",
        values: || json!({ "supplier_name": "ABV Alderhafter Versicherungsverein Nordstadt a.G." }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the customer's address beside its heading was held for one of the issuer that was not read",
        kind: "invoice",
        page: "\
Alder Ltd.                                     Invoice
                                               Date: 12/5/2020
                                               Invoice No.: A-77

Sold To   Birch Toys
          554 Harbour Way
          Walnut, WY 98432

Description                  Price   Amount
Training                 $3,500.00   $3,500.00

                          Subtotal   $3,500.00
                         Sales Tax   $105.00
                             Total   $3,605.00",
        values: || json!({ "supplier_address": null }),
        reason: "uncertain:supplier_address",
        doubtful: false,
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
    let doubts = DOUBTS.iter().chain(super::abroad::DOUBTS);
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
