//! Addresses that stand apart from the name, and identifiers whose labels stand apart from them.

use super::super::layout::CellLayout;
use super::super::layout::tests::transcript;
use super::super::spots::LabelMatches;
use super::find_supplier;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

fn read(drawing: &str) -> [String; 3] {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let labels = &kinds.get("invoice").unwrap().labels;
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = find_supplier(&LabelMatches::new(&layout, labels), labels);
    [found.name, found.address, found.vat_id]
        .map(|found| found.map_or("-".to_owned(), |found| found.value))
}

#[test]
fn a_name_that_an_account_names_again_is_surer_than_one_that_stands_alone() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let labels = &kinds.get("invoice").unwrap().labels;
    let certainty = |foot: &str| {
        let drawing = format!(
            "Reed Quarry Lettings\n5 Mill Road, Northtown\n\nJo Brand\nThe Moor\n\nInvoice 12\n\n\n\n{foot}"
        );
        let layout = CellLayout::new(&transcript(&[&drawing]));
        let found = find_supplier(&LabelMatches::new(&layout, labels), labels).name.unwrap();
        assert_eq!(found.value, "Reed Quarry Lettings");
        found.share.unwrap()
    };
    let alone = certainty("Thank you");
    let paid = certainty("IBAN DE58 7419 9944 0000 2211 70 Reed Quarry Lettings");
    assert!(paid > 0.9 && paid > alone, "{paid} {alone}");
}

#[test]
fn the_senders_line_over_a_window_is_no_recipient() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let labels = &kinds.get("invoice").unwrap().labels;
    let drawing = "Rheinbote Verlag KG, Pressehaus 1, 56068 Koblenz\nFrau\nGerlinde Fass\nMoselring 14\n56073 Koblenz\n\nRechnung 12";
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = find_supplier(&LabelMatches::new(&layout, labels), labels).name.unwrap();
    assert_eq!(found.value, "Rheinbote Verlag KG");
    assert!(found.share.unwrap() > 0.9, "{:?}", found.share);
}

#[test]
fn an_address_is_found_apart_from_the_name() {
    #[rustfmt::skip]
    let table = [
        ("a street in the footer where the head has a post box",
            "Alder GmbH · Postfach 11 40 · 64645 Nordstadt\nBirke OHG\nHafen 6\n64625 Südhafen\n\n\n\
             Rechnung\n\n\n\nAlder GmbH · Am Ufer 21 · 64653 Nordstadt",
            "Alder GmbH", "Am Ufer 21, 64653 Nordstadt"),
        ("behind the registered office",
            "ALDER AIR            INVOICE\n\n\n\n\n\n\n\n\n\n\n\
             Alder Air Limited. Registered office: Mill Road, Northtown KW15 9ZZ, United Kingdom. VAT no. GB 199 4422 18",
            "Alder Air Limited.", "Mill Road, Northtown KW15 9ZZ, United Kingdom"),
        ("in a post box under the number of a register",
            "Alder Plumbing Pty Ltd\nABN: 51 994 422 170\nPO Box 417\nNorthtown NSW 2464\n\nTax Invoice",
            "Alder Plumbing Pty Ltd", "PO Box 417, Northtown NSW 2464"),
        ("the town before the street", "Szállító:\nÉger Kft.\n9027 Északváros, Malom utca 12.\n\nSzámla",
            "Éger Kft.", "9027 Északváros, Malom utca 12."),
    ];
    let wrong: Vec<String> = table
        .into_iter()
        .filter_map(|(what, drawing, name, address)| {
            let found = read(drawing);
            (found[0] != name || found[1] != address).then(|| format!("{what}: {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_identifier_without_a_country_is_found_under_its_label_and_beside_the_account() {
    for (drawing, expected) in [
        ("Alder Ltd\n\nGST Number\n119944223\n\nInvoice 12", "119944223"),
        ("Alder Pvt Ltd\nGSTIN 29AAJCM9944Q1Z3", "29AAJCM9944Q1Z3"),
        (
            "Birch, S.A.\nNIF A31099442\n\n\n\n\nAlder, S.L. - NIF B31994422 - Tel. 948 555 014",
            "B31994422",
        ),
        ("Alder Ltd\nVAT Reg No.: 418 2209 36", "418 2209 36"),
        (
            "Birch bv\nBTW BE0499442213\n\n\n\n\nmail@alder.example   BTW BE0799442217   IBAN BE68 5390 0754 7034",
            "BE0799442217",
        ),
    ] {
        assert_eq!(read(drawing)[2], expected, "{drawing}");
    }
}
