//! Names, addresses and identifiers by the relation of the lines of a head or a foot.

use super::super::{SupplierDetails, find_supplier};
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::CellLayout;
use crate::rules::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

/// A page of which the first line is so much larger than the others.
struct DrawnHead {
    what: &'static str,
    kind: &'static str,
    larger: f32,
    page: &'static str,
    /// Name, address, identifier.
    expected: [&'static str; 3],
}

fn find(kinds: &KindSet, head: &DrawnHead) -> SupplierDetails {
    let kind = kinds.get(head.kind).unwrap();
    let mut page = transcript(&[head.page]);
    for word in &mut page.pages[0].lines[0].words {
        // Upwards, so that what follows stays where it is.
        word.bounding_box.y -= word.bounding_box.h * (head.larger - 1.0);
        word.bounding_box.h *= head.larger;
    }
    let layout = CellLayout::new(&page);
    find_supplier(&LabelMatches::new(&layout, kind))
}

const HEADS: &[DrawnHead] = &[
    DrawnHead {
        what: "a till's paper is one column, though no line is in the middle",
        kind: "receipt",
        larger: 1.0,
        page: "   MODEHAUS ALDER KG\n         Uferstraße 30\n             33602 Nordstadt\n\nBon 90417\nSumme   12,00",
        expected: ["MODEHAUS ALDER KG", "Uferstraße 30, 33602 Nordstadt", "-"],
    },
    DrawnHead {
        what: "a till's paper is one column under a picture, too",
        kind: "receipt",
        larger: 1.0,
        page: "Bon\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n   MODEHAUS ALDER KG\n         Uferstraße 30\n             33602 Nordstadt\n\nSumme   12,00",
        expected: ["MODEHAUS ALDER KG", "Uferstraße 30, 33602 Nordstadt", "-"],
    },
    DrawnHead {
        what: "who runs the shop stands between its name and its street, with a label",
        kind: "receipt",
        larger: 1.0,
        page: "Tankpunkt Alder\nInh. Jutta Birke\nUferstraße 88\n48431 Nordstadt\n\nBeleg 12\nSumme   12,00",
        expected: ["Tankpunkt Alder", "Uferstraße 88, 48431 Nordstadt", "-"],
    },
    DrawnHead {
        what: "who runs the shop stands between its name and its street, without one",
        kind: "receipt",
        larger: 1.0,
        page: "ALDER-APOTHEKE\nApothekerin Dr. Ines Birke\nMarktplatz 3\n72764 Nordstadt\n\nBon 12\nSumme   12,00",
        expected: ["ALDER-APOTHEKE", "Marktplatz 3, 72764 Nordstadt", "-"],
    },
    DrawnHead {
        what: "houses have no numbers, and the county begins like a legal form",
        kind: "receipt",
        larger: 1.0,
        page: "The Alder Café\nBridge Street, Westbridge, Co. Mayo\nVAT No. IE2156484P\nTable 7\nTotal   11.40",
        expected: ["The Alder Café", "Bridge Street, Westbridge, Co. Mayo", "IE2156484P"],
    },
    DrawnHead {
        what: "the town has no postal code, and its county begins like a legal form",
        kind: "receipt",
        larger: 1.0,
        page: "ALDER PHARMACY\n4 Bridge Street\nWestbridge, Co. Mayo\nPh: 071 955 0114\n\nTotal   11.40",
        expected: ["ALDER PHARMACY", "4 Bridge Street, Westbridge, Co. Mayo", "-"],
    },
    DrawnHead {
        what: "a district and its province behind a house's number",
        kind: "receipt",
        larger: 1.0,
        page: "Alder Taksi Mehmet Aydın\n1. Kordon No: 18, Konak / İzmir\n\nFİŞ NO: 0047\nTOPLAM   312,00",
        expected: ["Alder Taksi Mehmet Aydın", "1. Kordon No: 18, Konak / İzmir", "-"],
    },
    DrawnHead {
        what: "a district and its province under the street",
        kind: "invoice",
        larger: 1.0,
        page: "Alder Ambalaj Sanayi Ltd. Şti.\nKuzey OSB 118. Sokak No: 14\nKemalpaşa / İzmir\nVKN: 8887233296\n\nFATURA",
        expected: [
            "Alder Ambalaj Sanayi Ltd. Şti.",
            "Kuzey OSB 118. Sokak No: 14, Kemalpaşa / İzmir",
            "8887233296",
        ],
    },
    DrawnHead {
        what: "the letters of a postal code are a legal form elsewhere",
        kind: "invoice",
        larger: 1.0,
        page: "Fam. Beuk\nHavenlaan 14                         Hoveniersbedrijf De Els\n3721 AR Zuidhaven                    Dorpsweg 81\n\
               \x20                                    3738 CC Noordhaven\n                                     KvK 30117744\n\
               \x20                                    btw-id NL160567075B01\n\nFactuur",
        expected: ["Hoveniersbedrijf De Els", "Dorpsweg 81, 3738 CC Noordhaven", "NL160567075B01"],
    },
    DrawnHead {
        what: "a heading, and a family under it that is not in its middle",
        kind: "invoice",
        larger: 1.5,
        page: "                  Gasthof-Pension Birkblick\n             Familie Huber\n      Dorfstr. 31, 6167 Tannrode\n\n\n\
               Beispiel Reisen GmbH\nMag. Ines Linde\nLedergasse 20\n4020 Linz\n\n\nHotelrechnung 412",
        expected: ["Gasthof-Pension Birkblick", "Dorfstr. 31, 6167 Tannrode", "-"],
    },
    DrawnHead {
        what: "a trade between the name at the head and the address, none in the middle",
        kind: "invoice",
        larger: 1.0,
        page: "          Cabinet Aune-Mollière\n               Avocats à la Cour\n       33 cours du Nord, 13100 Aix-en-Bois\n\n\n\
               Madame Solange Bouleau\n8 impasse du Sud\n13090 Aix-en-Bois\n\nNOTE D'HONORAIRES N° 2024/118",
        expected: ["Cabinet Aune-Mollière", "33 cours du Nord, 13100 Aix-en-Bois", "-"],
    },
    DrawnHead {
        what: "a motto stands between a heading and the address, and a gap over it",
        kind: "invoice",
        larger: 1.5,
        page: "        NORTHSIDE SLIPWAY\n\n Haul-outs and rigging since 1978\nLot 6 Wharf Rd, Northtown NSW 2104\nABN 51 824 753 556\n\n\nTAX INVOICE J5582",
        expected: ["NORTHSIDE SLIPWAY", "Lot 6 Wharf Rd, Northtown NSW 2104", "51 824 753 556"],
    },
    DrawnHead {
        what: "a trade heads the letter, over a person with a title",
        kind: "invoice",
        larger: 1.0,
        page: "STUDIO TECNICO\nGeom. Carlo Bianchi\nVia Garibaldi 27 - 43039 Salsomaggiore\n\n\nSpett.le\nBetulla S.r.l.\nViale Nord 8\n43036 Fidenza\n\nPARCELLA N. 14",
        expected: ["Geom. Carlo Bianchi", "Via Garibaldi 27 - 43039 Salsomaggiore", "-"],
    },
    DrawnHead {
        what: "street and town stand behind the name in the footer, in cells of their own",
        kind: "invoice",
        larger: 1.0,
        page: "Sprachbüro Alder                    Übersetzungen\nFlora Alder, dipl. Übersetzerin\n\nStiftung Birke\nBahnhofplatz 3\n7000 Chur\n\n\nRechnung 2025.31\n\n\n\n\n\n\n\n\
               Sprachbüro Alder        Via Nova 14, 7130 Ilanz        081 555 01 88",
        expected: ["Sprachbüro Alder", "Via Nova 14, 7130 Ilanz", "-"],
    },
    DrawnHead {
        what: "what is called the customer's identifier tells nothing of the issuer",
        kind: "invoice",
        larger: 1.0,
        page: "                                     ALDER SPEDITION\n                                     Alder Spedition GmbH\n\
               \x20                                    Am Hafen 40\nBirk Møbler ApS                      24159 Nordhafen\nHavnegade 12\n\
               6000 Kolding                         Tel. 0431 555 0144\nDANMARK\n\
               USt-ID des Kunden: DK29447711        USt-ID: DE136695976\n\nRECHNUNG 240881",
        expected: ["Alder Spedition GmbH", "Am Hafen 40, 24159 Nordhafen", "DE136695976"],
    },
    DrawnHead {
        what: "the identifier in the block of somebody who is spoken to is the customer's",
        kind: "invoice",
        larger: 1.0,
        page: "                                     Garage Beuk & Zn\nFiduciaire Els BV                    De heer Luc Beuk\n\
               Stationsstraat 112                   Zuidweg 204\n1702 Noordwijk                       1700 Zuidbeek\n\
               \x20                                    BTW/TVA BE0799442217\n\nFACTUUR 2025/00446\n\n\n\n\n\
               Fiduciaire Els BV - RPR Brussel - BTW BE0499442213",
        expected: ["Fiduciaire Els BV", "Stationsstraat 112, 1702 Noordwijk", "BE0499442213"],
    },
];

#[test]
fn the_lines_of_a_head_say_by_their_places_which_is_which() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let wrong: Vec<String> = HEADS
        .iter()
        .filter_map(|head| {
            let found = find(&kinds, head);
            let read = [found.name, found.address, found.vat_id]
                .map(|found| found.map_or("-".to_owned(), |found| found.value));
            (read != head.expected.map(str::to_owned)).then(|| format!("{}: {read:?}", head.what))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_two_names_over_each_other_at_the_head_of_a_till_none_is_certain() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let certainty = |first: &'static str| {
        let page = format!(
            "{first}Erlen Gastro S.L.\nC/ Feria 41\n41003 Sevilla\nCIF: B41178824\n\nTotal   12,00"
        );
        let page: &'static str = page.leak();
        let what = "a till's head";
        let head = DrawnHead { what, kind: "receipt", larger: 1.0, page, expected: ["-"; 3] };
        let name = find(&kinds, &head).name.unwrap();
        assert_eq!(name.value, "Erlen Gastro S.L.");
        name.share.unwrap()
    };
    let (alone, under) = (certainty(""), certainty("Bodega La Esquina\n"));
    assert!(alone > 0.9 && under <= 0.8, "{alone} {under}");
}
