//! Every defect on pages made in code.

use opencv::core::Point2f;

use super::page_in_code::{
    compressed, glaring, noisy, photographed, scaled, shadowed, skewed, speckled, spoilt, text_page,
};
use super::*;
use crate::pages::plane;
use crate::pages::repair::turn_page;

fn page() -> PageRaster {
    text_page(1240, 1754, 24)
}

#[test]
fn a_clean_page_has_no_defect() {
    let found = assess_page(&page()).unwrap();
    assert_eq!(found.defects, [], "{found:?}");
    assert!(found.score >= 0.99, "{found:?}");
    assert_eq!(found.quarter_turns(), 0);
}

#[test]
fn each_defect_is_found_and_named() {
    let clean = page();
    let blurred = |sigma| spoilt(&clean, |plane| plane::smooth_gaussian(plane, sigma).unwrap());
    let cut = PageRaster {
        pixels: clean.pixels.chunks(1240).flat_map(|row| &row[300..900]).copied().collect(),
        width: 600,
        ..clean.clone()
    };
    let corners = [(80.0, 90.0), (1180.0, 60.0), (1150.0, 1760.0), (60.0, 1790.0)]
        .map(|(x, y)| Point2f::new(x, y));
    #[rustfmt::skip]
    let table = [
        ("out of focus",             blurred(2.5),                        PageDefectKind::Blurry),
        ("grain",                    noisy(&clean, 30),                   PageDefectKind::Noisy),
        ("specks",                   speckled(&clean, 0.005),             PageDefectKind::Noisy),
        ("under-exposed",            scaled(&clean, 0.35, 5.0),           PageDefectKind::Dark),
        ("pale ink",                 scaled(&clean, 0.2, 204.0),          PageDefectKind::Faint),
        ("seven pixels of x-height", text_page(1240, 1754, 9),            PageDefectKind::TextTooSmall),
        ("a side is cut off",        cut,                                 PageDefectKind::TextCutoff),
        ("the sheet is cut off",     photographed(&clean, corners),       PageDefectKind::DocumentCutoff),
        ("a lamp",                   glaring(&scaled(&clean, 0.7, 0.0)),  PageDefectKind::Glare),
        ("crooked",                  skewed(&clean, 3.0),                 PageDefectKind::Skewed),
        ("on its side",              turn_page(&clean, 1).unwrap(),            PageDefectKind::Rotated),
        ("on its head",              turn_page(&clean, 2).unwrap(),            PageDefectKind::Rotated),
        ("in shadow",                shadowed(&clean),                    PageDefectKind::Shadowed),
    ];
    for (name, spoilt, kind) in table {
        let found = assess_page(&spoilt).unwrap();
        assert!(found.has_defect(kind), "{name}: {found:?}");
        assert!(found.score < 0.96, "{name}: {found:?}");
    }
}

#[test]
fn the_angle_is_found_to_a_tenth_of_a_degree() {
    for degrees in [-14.0, -3.3, -0.6, 1.25, 7.0, 16.5] {
        let found = assess_page(&skewed(&page(), degrees)).unwrap().direction;
        let skew = f64::from(found.skew_degrees);
        assert!((skew - degrees).abs() < 0.1, "{degrees}: {found:?}");
        assert_eq!(found.axis, LineAxis::Rows, "{degrees}");
    }
}

#[test]
fn the_quarter_turns_that_make_a_page_upright_are_found() {
    for turns in 0..4 {
        let found = assess_page(&turn_page(&page(), turns).unwrap()).unwrap();
        assert_eq!((found.quarter_turns() + turns) % 4, 0, "{turns}: {found:?}");
    }
}

#[test]
fn letters_that_stand_below_each_other_do_not_turn_a_page() {
    // A typewriter: every letter has the same width, so columns are as clear as rows.
    let found = assess_page(&text_page(900, 700, 20)).unwrap();
    assert_eq!(found.direction.axis, LineAxis::Rows, "{found:?}");
}

#[test]
fn a_coloured_band_is_no_shadow() {
    let mut banded = page();
    let width = 1240;
    for row in banded.pixels.chunks_mut(width).take(400) {
        for pixel in row {
            *pixel = u8::try_from(u32::from(*pixel) * 3 / 5).unwrap();
        }
    }
    let found = assess_page(&banded).unwrap();
    assert!(!found.has_defect(PageDefectKind::Shadowed), "{found:?}");
}

#[test]
fn coarse_compression_and_grain_make_a_page_rough_and_fine_compression_does_not() {
    #[rustfmt::skip]
    let table = [
        ("as it was made",          page(),                    false),
        ("stored well",             compressed(&page(), 90),   false),
        ("stored to be small",      compressed(&page(), 9),    true),
        ("with a scanner's grain",  noisy(&scaled(&page(), 0.9, 0.0), 2), true),
    ];
    for (name, page, rough) in table {
        assert_eq!(assess_page(&page).unwrap().rough, rough, "{name}");
    }
}

#[test]
fn the_corners_of_a_photographed_sheet_are_found() {
    let corners = [(90.0, 130.0), (1150.0, 90.0), (1180.0, 1620.0), (70.0, 1650.0)];
    let corners = corners.map(|(x, y)| Point2f::new(x, y));
    for photo in [photographed(&page(), corners), shadowed(&photographed(&page(), corners))] {
        let PaperOutline::Sheet(found) = assess_page(&photo).unwrap().outline else {
            panic!("no sheet")
        };
        for (found, truth) in found.iter().zip(&corners) {
            let off = (found.x - truth.x).hypot(found.y - truth.y);
            assert!(off < 12.0, "{found:?} is not {truth:?}");
        }
    }
}

#[test]
fn pages_of_any_shape_and_shade_are_judged_without_failing() {
    let shapes = [(1, 1), (1, 10_000), (10_000, 1), (23, 5_000), (24, 24), (40, 9_000), (300, 300)];
    for (width, height) in shapes {
        for shade in [0, 128, 255] {
            let pixels = vec![shade; (width * height) as usize];
            let found = assess_page(&PageRaster { width, height, dpi: 300, pixels }).unwrap();
            assert!((0.0..=1.0).contains(&found.score), "{width}x{height} {shade}: {found:?}");
        }
    }
}
