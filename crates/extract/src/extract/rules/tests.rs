//! Whole documents, drawn in characters.

use super::layout::tests::transcript;
use super::*;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

fn read(drawing: &str) -> Extraction {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    extract_by_rules(&transcript(&[drawing]), kinds.get("invoice").unwrap())
}

const INVOICE: &str = "\
Lieferant GmbH - Lieferantenstr. 20 - 80333 München

Kunden AG                                Rechnungsnummer:  RE-2018/17
Kundenstr. 15                            Rechnungsdatum:   05.03.2018
69876 Frankfurt                          Fällig am:        04.04.2018

Beschreibung            Menge   Einzelpreis     Betrag
Trennblätter A4            20          9,90     198,00
Joghurt Banane             50          5,50     275,00

                           Summe netto          473,00 €
                           MwSt                  56,87 €
                           Gesamtbetrag         529,87 €

USt-IdNr. DE123456789";

#[test]
fn an_invoice_is_read_whole() {
    let extraction = read(INVOICE);
    let expected = serde_json::json!({
        "supplier_name": "Lieferant GmbH",
        "supplier_address": "Lieferantenstr. 20, 80333 München",
        "supplier_vat_id": "DE123456789",
        "invoice_number": "RE-2018/17",
        "invoice_date": "2018-03-05",
        "due_date": "2018-04-04",
        "currency": "EUR",
        "line_items": [
            {"description": "Trennblätter A4", "quantity": 20, "unit_price": 9.9, "amount": 198},
            {"description": "Joghurt Banane", "quantity": 50, "unit_price": 5.5, "amount": 275},
        ],
        "subtotal": 473, "vat_amount": 56.87, "total": 529.87,
    });
    assert_eq!(Value::Object(extraction.data), expected);
    assert!(extraction.successful);
    assert_eq!(extraction.confidence, StatedConfidence::High);
    assert!(extraction.missing_fields.is_empty());
}

#[test]
fn every_value_names_the_line_it_was_read_from() {
    let extraction = read(INVOICE);
    let total = extraction.evidence.iter().find(|e| e.field == "total").unwrap();
    assert_eq!((total.page, total.lines.as_slice()), (1, [9].as_slice()));
    assert!(extraction.evidence.iter().any(|e| e.field == "line_items[1]"));
}

#[test]
fn a_letter_is_not_read_as_an_invoice() {
    let extraction = read("Dear Sir,\nthank you for your visit.\nYours, Somebody");
    assert!(!extraction.successful);
    assert_eq!(extraction.confidence, StatedConfidence::Low);
    assert!(extraction.data.values().filter(|v| !v.is_null()).count() <= 1);
}

#[test]
fn the_amounts_of_a_credit_note_have_no_sign() {
    let drawing = "Avoir AV-7\nDate de facture   16/11/2017\nTotal HT   -218,48 €\n\
                       Taxes   14,99 €\nTotal TTC   -233,47 €";
    let extraction = read(drawing);
    assert_eq!(extraction.data.get("total").unwrap().as_f64(), Some(233.47));
    assert_eq!(extraction.data.get("subtotal").unwrap().as_f64(), Some(218.48));
}

#[test]
fn empty_and_broken_pages_give_nothing_and_do_not_panic() {
    let mut broken = transcript(&["Total   5,00"]);
    for page in &mut broken.pages {
        page.height = 0.0;
        for word in page.lines.iter_mut().flat_map(|line| &mut line.words) {
            word.bounding_box.x = f32::NAN;
        }
    }
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    for transcript in [transcript(&[]), transcript(&[""]), broken] {
        assert!(!extract_by_rules(&transcript, kinds.get("invoice").unwrap()).successful);
    }
}
