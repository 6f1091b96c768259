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
Korkstein GmbH - Hafenschanze 8 - 82216 Maisach

Pappel AG                                Rechnungsnummer:  RE-2021/17
Ahornstr. 137                            Rechnungsdatum:   11.06.2021
66812 Waldstett                          Fällig am:        11.07.2021

Beschreibung            Menge   Einzelpreis     Betrag
Kopierpapier A4            20          8,90     178,00
Erbsen im Glas             50          4,30     215,00

                           Summe netto          393,00 €
                           MwSt                  48,87 €
                           Gesamtbetrag         441,87 €

USt-IdNr. DE123456789";

#[test]
fn an_invoice_is_read_whole() {
    let extraction = read(INVOICE);
    let expected = serde_json::json!({
        "supplier_name": "Korkstein GmbH", "supplier_trading_name": null, "payee_name": null,
        "document_type": null, "delivery_date": null, "period_start": null, "period_end": null,
        "payment_reference": null, "instalments": null, "further_accounts": null,
        "paid_amount": null, "rounding_amount": null, "amount_due": null,
        "supplier_address": "Hafenschanze 8, 82216 Maisach",
        "supplier_vat_id": "DE123456789",
        "buyer_name": null, "buyer_vat_id": null,
        "invoice_number": "RE-2021/17",
        "order_number": null,
        "invoice_date": "2021-06-11",
        "due_date": "2021-07-11",
        "payment_terms": null, "cash_discounts": null, "iban": null, "bic": null,
        "currency": "EUR",
        "line_items": [
            {"description": "Kopierpapier A4", "article_number": null, "quantity": 20, "unit": null,
             "unit_price": 8.9, "price_base_quantity": null, "price_base_unit": null,
             "tax_rate": null, "amount": 178},
            {"description": "Erbsen im Glas", "article_number": null, "quantity": 50, "unit": null,
             "unit_price": 4.3, "price_base_quantity": null, "price_base_unit": null,
             "tax_rate": null, "amount": 215},
        ],
        "allowances": null, "charges": null, "taxes": null,
        "subtotal": 393, "vat_amount": 48.87, "total": 441.87,
    });
    assert_eq!(Value::Object(extraction.data), expected);
    assert!(extraction.successful);
    assert_eq!(extraction.confidence, StatedConfidence::High);
    assert!(!extraction.missing_fields.contains(&"total".to_owned()));
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
    let drawing = "Avoir AV-7\nDate de facture   21/09/2018\nTotal HT   -305,20 €\n\
                       Taxes   18,31 €\nTotal TTC   -323,51 €";
    let extraction = read(drawing);
    assert_eq!(extraction.data.get("total").unwrap().as_f64(), Some(323.51));
    assert_eq!(extraction.data.get("subtotal").unwrap().as_f64(), Some(305.2));
}

/// The invoice with its last line and its totals taken back, and this text for that line.
fn taken_back(line: &str, amount: fn(&str) -> String) -> String {
    let mut drawing = INVOICE.replace("Erbsen im Glas             50", line);
    for text in ["178,00", "215,00", "393,00", "48,87", "441,87"] {
        drawing = drawing.replace(text, &amount(text));
    }
    drawing
}

#[test]
fn a_line_named_credit_makes_no_credit_note() {
    let line = "Gutschrift                -50";
    let extraction = read(&taken_back(line, |text| format!("-{text}")));
    assert_eq!(extraction.data["total"], serde_json::json!(-441.87));
    assert_eq!(extraction.data["line_items"][1]["amount"], serde_json::json!(-215));
}

#[test]
fn amounts_in_brackets_behind_a_minus_or_before_a_mark_of_credit_are_negative() {
    let notations: [fn(&str) -> String; 11] = [
        |text| format!("( {text} )"),
        |text| format!("{text} -"),
        |text| format!("{text} cr"),
        |text| format!("-EUR {text}"),
        |text| format!("./. {text}"),
        // A tax's code is in capitals behind points as well.
        |text| format!("{}CR", text.replace(',', ".")),
        |text| format!("({text})"),
        |text| format!("- {text}"),
        |text| format!("{text} CR"),
        |text| format!("{text}-"),
        |text| format!("\u{2212}{text}"),
    ];
    for notation in notations {
        let drawing = taken_back("Erbsen im Glas            -50", notation).replace(" €", "");
        let extraction = read(&drawing);
        for (field, value) in [("subtotal", -393.0), ("vat_amount", -48.87), ("total", -441.87)] {
            assert_eq!(extraction.data[field].as_f64(), Some(value), "{drawing}");
        }
        assert_eq!(extraction.data["line_items"][1]["amount"].as_f64(), Some(-215.0), "{drawing}");
    }
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

const PAYABLE: &str = "\
Korkstein GmbH - Hafenschanze 8 - 82216 Maisach

Rechnungsempfänger                       Rechnungsnummer:  RE-2021/17
Birke Möbel AG                           Rechnungsdatum:   11.06.2021
Ahornstr. 137                            Ihre Bestellung:  PO-4711
66812 Waldstett                          Fällig am:        11.07.2021
Ihre USt-IdNr.: ATU12345675

Art-Nr.   Beschreibung          Menge   Einheit   MwSt %   Einzelpreis     Betrag
P-100     Kopierpapier A4          20   Stk         19 %          8,90     178,00
J-2       Erbsen im Glas           50   Gläser       7 %          4,30     215,00

                                Summe netto                      393,00 €
                                MwSt 19 %       178,00            33,82 €
                                MwSt 7 %        215,00            15,05 €
                                Gesamtbetrag                     441,87 €

Zahlungsbedingungen: 30 Tage netto
2 % Skonto innerhalb von 10 Tagen

USt-IdNr. DE123456789
IBAN: DE89 3704 0044 0532 0130 00    BIC: COBADEFFXXX";

#[test]
fn what_accounts_payable_needs_is_read_where_it_is_printed() {
    let data = Value::Object(read(PAYABLE).data);
    let expected = serde_json::json!({
        "buyer_name": "Birke Möbel AG",
        "buyer_vat_id": "ATU12345675",
        "order_number": "PO-4711",
        "payment_terms": "30 Tage netto",
        "cash_discounts": [{"percent": 2, "days": 10}],
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "taxes": [
            {"rate": 19, "base": 178, "amount": 33.82},
            {"rate": 7, "base": 215, "amount": 15.05},
        ],
        "line_items": [
            {"description": "Kopierpapier A4", "article_number": "P-100", "quantity": 20,
             "unit": "Stk", "unit_price": 8.9, "price_base_quantity": null,
             "price_base_unit": null, "tax_rate": 19, "amount": 178},
            {"description": "Erbsen im Glas", "article_number": "J-2", "quantity": 50,
             "unit": "Gläser", "unit_price": 4.3, "price_base_quantity": null,
             "price_base_unit": null, "tax_rate": 7, "amount": 215},
        ],
        "supplier_name": "Korkstein GmbH", "supplier_vat_id": "DE123456789",
        "invoice_number": "RE-2021/17", "total": 441.87,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(data.get(field), Some(value), "{field}");
    }
}

#[test]
fn every_account_that_is_printed_is_read_once_and_over_the_end_of_a_row() {
    let (own, other) = ("DE89370400440532013000", "NL91ABNA0417164300");
    let none = Value::Null;
    for (printed, further) in [
        ("IBAN: de89 3704 0044 0532 0130 00", none.clone()),
        ("IBANDE89370400440532013000,BIC:COBADEFFXXX", none.clone()),
        ("IBAN DE89 3704 0044\n0532 0130 00", none.clone()),
        ("IBAN DE89 3704 0044 0532 0130 00\n\nDE89370400440532013000", none),
        (
            "IBAN DE89 3704 0044 0532 0130 00 oder NL91 ABNA 0417 1643 00",
            serde_json::json!([other]),
        ),
    ] {
        let (before, _) = PAYABLE.split_once("IBAN:").unwrap();
        let data = read(&format!("{before}{printed}")).data;
        assert_eq!(
            (&data["iban"], &data["further_accounts"]),
            (&own.into(), &further),
            "{printed}"
        );
    }
}

#[test]
fn what_leaves_a_doubt_is_not_read() {
    let field = |drawing: &str, field: &str| read(drawing).data[field].clone();
    let wrong = PAYABLE.replace("0130 00 ", "0130 01 ");
    assert_eq!(field(&wrong, "iban"), Value::Null, "check digits");
    assert_eq!(field(&wrong, "bic"), Value::Null, "a bank without its account");
    let foreign = PAYABLE.replace("COBADEFFXXX", "BNPAFRPPXXX");
    assert_eq!(field(&foreign, "bic"), Value::Null, "a bank of another country");
    let debited = PAYABLE.replace("IBAN:", "Mandatsreferenz: M-1 IBAN:");
    assert_eq!(field(&debited, "further_accounts"), Value::Null, "nor is it another one");
    assert_eq!(field(&debited, "iban"), Value::Null, "the account that is debited");
    let other = PAYABLE.replace("33,82", "33,28");
    assert_eq!(field(&other, "taxes"), Value::Null, "taxes that are not the tax");
}
