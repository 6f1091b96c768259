//! Addresses away from the name, and identifiers away from their labels.

use super::super::certainty::certainty_of;
use super::super::label_matches::LabelMatches;
use super::super::layout::CellLayout;
use super::super::layout::tests::transcript;
use super::{SupplierSearch, find_supplier};
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

fn read(drawing: &str) -> [String; 3] {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = find_supplier(&LabelMatches::new(&layout, kind));
    [found.name, found.address, found.vat_id]
        .map(|found| found.map_or("-".to_owned(), |found| found.value))
}

#[test]
fn a_name_that_an_account_names_again_is_surer_than_one_that_stands_alone() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let certainty = |foot: &str| {
        let drawing = format!(
            "Reed Quarry Lettings\n5 Mill Road, Northtown\n\nJo Brand\nThe Moor\n\nInvoice 12\n\n\n\n{foot}"
        );
        let layout = CellLayout::new(&transcript(&[&drawing]));
        let found = find_supplier(&LabelMatches::new(&layout, kind)).name.unwrap();
        assert_eq!(found.value, "Reed Quarry Lettings");
        found.share.unwrap()
    };
    let alone = certainty("Thank you");
    let paid = certainty("IBAN DE58 7419 9944 0000 2211 70 Reed Quarry Lettings");
    assert!(paid > 0.9 && paid > alone, "{paid} {alone}");
}

#[test]
fn what_a_word_with_a_colon_calls_is_no_name_of_the_issuer() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let layout = CellLayout::new(&transcript(&["Invoice 12"]));
    let matches = LabelMatches::new(&layout, kind);
    let search = SupplierSearch::new(&matches);
    assert!(!search.is_name("General partner: Kettle Verwaltungs GmbH"));
    assert!(search.is_name("Kettle GmbH: Works of Northtown"));
    assert!(!search.is_name("Van"), "the heading over who writes");
}

#[test]
fn an_address_right_under_another_company_is_not_certain() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let read = |company: &str| {
        let drawing = format!(
            "KETTLE WORKS\n\n{company}\nMill Road 4, 82216 Northtown\n\n\nInvoice 12\n\n\nAsh Bank Ltd\n\ninfo@kettleworks.example"
        );
        let mut page = transcript(&[&drawing]);
        page.pages[0].lines[0].words.iter_mut().for_each(|word| {
            word.bounding_box.y -= 5.0;
            word.bounding_box.h = 15.0;
        });
        let layout = CellLayout::new(&page);
        let found = find_supplier(&LabelMatches::new(&layout, kind));
        assert!(found.name.unwrap().value.to_lowercase().starts_with("kettle works"));
        (found.address, certainty_of(&found.address_reading))
    };
    let (address, certainty) = read("Birch Tours Ltd");
    assert_eq!(address.unwrap().value, "Mill Road 4, 82216 Northtown");
    assert!(certainty < 0.85, "{certainty}");
    let (address, certainty) = read("Repairs and tours");
    assert_eq!(address.unwrap().value, "Mill Road 4, 82216 Northtown");
    assert!(certainty > 0.85, "{certainty}");
}

#[test]
fn the_senders_line_over_a_window_is_no_recipient() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let drawing = "Rheinbote Verlag KG, Pressehaus 1, 56068 Koblenz\nFrau\nGerlinde Fass\nMoselring 14\n56073 Koblenz\n\nRechnung 12";
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = find_supplier(&LabelMatches::new(&layout, kind)).name.unwrap();
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

/// The same with its first line in larger letters.
fn read_under_large(drawing: &str) -> [String; 2] {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let mut page = transcript(&[drawing]);
    page.pages[0].lines[0].words.iter_mut().for_each(|word| {
        word.bounding_box.y -= 5.0;
        word.bounding_box.h = 15.0;
    });
    let layout = CellLayout::new(&page);
    let found = find_supplier(&LabelMatches::new(&layout, kind));
    [found.name, found.address].map(|found| found.map_or("-".to_owned(), |found| found.value))
}

#[test]
fn a_name_in_large_letters_is_that_of_the_company_that_begins_with_it() {
    let drawing = "ALDER\n\n\nBill to\nBirk Ltd\nHafen 6\n64625 Westport\n\nInvoice 12\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\
                   Alder Works Ltd\n\nSouthport Banking Ltd";
    assert_eq!(read_under_large(drawing)[0], "Alder Works Ltd");
}

#[test]
fn a_house_with_a_name_under_large_letters_is_no_company() {
    let drawing = "                    B. Alder & Son\n           PLUMBING · HEATING\n\
                   The Forge, Mill Lane, Northtown, Westshire GL12 7EW     Tel 01453 555019\n\n\n\
                   Invoice 1847\n13th January 2023\nTotal   942.00";
    assert_eq!(
        read_under_large(drawing),
        ["B. Alder & Son", "The Forge, Mill Lane, Northtown, Westshire GL12 7EW"]
    );
}

#[test]
fn a_heading_that_has_the_title_of_the_document_within_is_no_name() {
    let drawing = "PRINTABLE INVOICE SHEET\n\n\n\n\n\n\n\n\n\n\n\n\n\nAlder, Birk and Dorn\n41 Mill Road\n\
                   Northtown, OH 45011\n+1 513 555 0147\n\n#204417\n03/14/2022";
    assert_eq!(read_under_large(drawing)[0], "Alder, Birk and Dorn");
}

#[test]
fn one_word_under_the_line_of_a_town_is_its_country() {
    use super::NameSign;
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let drawing = "Via Cadorna 27\n24060 Villongo\nItalia\n\nFattura 12";
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = super::name_evidence(&LabelMatches::new(&layout, kind));
    let (_, signs) = found.iter().find(|(name, _)| name == "Italia").unwrap();
    assert!(signs.contains(&NameSign::Place), "{signs:?}");
}

#[test]
fn an_address_is_found_in_the_last_lines_behind_its_label() {
    for foot in [
        "Register Nordstadt VR 140338 · Anschrift: Erfurter Straße 77, 99867 Nordstadt · gemeinnützig",
        "Registered office: Erfurter Straße 77, 99867 Nordstadt",
    ] {
        let drawing = format!(
            "Gartenverein Alder e. V.\n\nFamilie Krause\nLindenstr. 12\n99867 Westdorf\n\nRechnung 12{}{foot}",
            "\n".repeat(55)
        );
        assert_eq!(read(&drawing)[1], "Erfurter Straße 77, 99867 Nordstadt", "{foot}");
    }
}

#[test]
fn a_practice_and_its_doctor_are_one_firm_and_so_is_a_name_over_two_lines() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    for drawing in [
        "Dr. med. Ida Alder\nLange Reihe 70\n20099 Nordstadt\n\n\n\
         Praxis Dr. med. Ida Alder, Lange Reihe 70, 20099 Nordstadt\nHerrn\nDetlef Kuhl\n20253 Nordstadt\n\nRechnung 12",
        "Alder Plumbing &                 Tax Invoice 12\nHeating Ltd\nUnit 6 Mill Lane\nNorthtown BB5 4QR\n\n\n\n\
         Pay to: Alder Plumbing & Heating Ltd, sort code 20-44-91, account 60318827",
    ] {
        let layout = CellLayout::new(&transcript(&[drawing]));
        let found = find_supplier(&LabelMatches::new(&layout, kind)).name.unwrap();
        assert!(found.share.unwrap() > 0.95, "{} {:?}", found.value, found.share);
    }
}

#[test]
fn behind_a_company_a_part_with_the_number_of_a_house_begins_its_street() {
    let drawing = "Alder Services S.à r.l., 14, rue de la Mer, L-6686 Northtown\n\nBirk S.A.\nZ.I. Um Monkeler\n\
                   L-4149 Westport\n\nFacture 12";
    assert_eq!(
        read(drawing)[..2],
        ["Alder Services S.à r.l.", "14, rue de la Mer, L-6686 Northtown"]
    );
}

#[test]
fn the_front_of_an_account_is_no_rival_of_an_identifier() {
    use super::super::certainty::ReadingSign;
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let drawing = "Alder s.r.o.\nDlouhá 512/9\n460 01 Liberec\nDIČ: CZ46281916\n\nFaktura 12\n\n\
                   IBAN: CZ74 3698 2882 8905 5733 7142";
    let layout = CellLayout::new(&transcript(&[drawing]));
    let found = find_supplier(&LabelMatches::new(&layout, kind));
    assert!(!found.id_reading.contains(&ReadingSign::IdRivals), "{:?}", found.id_reading);
}
