//! Every defect on pages made in code.

use opencv::core::Point2f;

use super::page_in_code::{
    compressed, creased, curled, glaring, half_shaded, noisy, photographed, scaled, shadowed,
    skewed, speckled, spoilt, text_page,
};
use super::*;
use crate::image::opencv_mat;
use crate::repair::turn_page;

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
    let blurred =
        |sigma| spoilt(&clean, |plane| opencv_mat::smooth_gaussian(plane, sigma).unwrap());
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
fn letters_below_each_other_do_not_turn_a_page() {
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

/// How far the corners that were found are from those that were drawn, at most.
fn farthest_corner(found: [Point2f; 4], truth: [(f32, f32); 4]) -> f32 {
    let off =
        |(found, truth): (&Point2f, &(f32, f32))| (found.x - truth.0).hypot(found.y - truth.1);
    found.iter().zip(&truth).map(off).fold(0.0, f32::max)
}

#[test]
fn the_corners_of_a_photographed_sheet_are_found_at_any_angle_in_any_light() {
    let points = |corners: [(f32, f32); 4]| corners.map(|(x, y)| Point2f::new(x, y));
    let straight = [(90.0, 130.0), (1150.0, 90.0), (1180.0, 1620.0), (70.0, 1650.0)];
    let askew = [(420.0, 60.0), (1200.0, 420.0), (800.0, 1680.0), (40.0, 1300.0)];
    let small = [(210.0, 200.0), (1030.0, 160.0), (1080.0, 1490.0), (160.0, 1530.0)];
    #[rustfmt::skip]
    let table = [
        ("straight",             straight, photographed(&page(), points(straight))),
        ("in shadow",            straight, shadowed(&photographed(&page(), points(straight)))),
        ("under a hard shadow",  straight, half_shaded(&photographed(&page(), points(straight)))),
        ("lying askew",          askew,    photographed(&page(), points(askew))),
        ("creased",              straight, photographed(&creased(&page()), points(straight))),
        ("farther away",         small,    photographed(&page(), points(small))),
        ("on a grained table",   straight, noisy(&photographed(&page(), points(straight)), 12)),
    ];
    for (name, corners, photo) in table {
        let outline = assess_page(&photo).unwrap().outline;
        let PaperOutline::Sheet { corners: found, edges: 4 } = outline else {
            panic!("{name}: {outline:?}")
        };
        let off = farthest_corner(found, corners);
        assert!(off < 12.0, "{name}: {found:?} is {off} pixels off {corners:?}");
    }
}

#[test]
fn a_sheet_that_its_picture_cuts_off_is_found_by_the_edges_that_are_there() {
    let points = |corners: [(f32, f32); 4]| corners.map(|(x, y)| Point2f::new(x, y));
    let cut = [(200.0, 200.0), (1100.0, 160.0), (1150.0, 1900.0), (150.0, 1930.0)];
    let found = assess_page(&photographed(&page(), points(cut))).unwrap();
    let PaperOutline::Sheet { corners, edges: 3 } = found.outline else {
        panic!("{:?}", found.outline)
    };
    let [top_left, top_right, bottom_right, bottom_left] = corners;
    let near = |found: Point2f, (x, y): (f32, f32)| (found.x - x).hypot(found.y - y) < 12.0;
    assert!(near(top_left, cut[0]) && near(top_right, cut[1]), "{corners:?}");
    assert!(bottom_left.y >= 1740.0 && bottom_right.y >= 1740.0, "nothing is lost: {corners:?}");
    assert!(found.has_defect(PageDefectKind::DocumentCutoff));
}

#[test]
fn pictures_without_a_sheet_on_a_table_are_left_whole() {
    let mut barred = page();
    for row in barred.pixels.chunks_mut(1240).skip(500).take(60) {
        row[100..1140].fill(40);
    }
    let mut halves = page();
    for row in halves.pixels.chunks_mut(1240) {
        row[..400].iter_mut().for_each(|pixel| *pixel /= 2);
    }
    let table = [
        ("a page", page()),
        ("a page with a dark bar", barred),
        ("a page with a dark column", halves),
        ("a page in shadow", shadowed(&page())),
        ("a page under a hard shadow", half_shaded(&page())),
        ("noise", noisy(&scaled(&page(), 0.0, 120.0), 120)),
    ];
    for (name, page) in table {
        assert_eq!(assess_page(&page).unwrap().outline, PaperOutline::None, "{name}");
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

#[test]
fn bent_lines_are_found_by_how_far_they_bend_and_straight_ones_are_not() {
    let bend = |page: &PageRaster| assess_sheet(page).unwrap().1;
    for (name, page) in [("straight", page()), ("askew", skewed(&page(), 2.0))] {
        assert_eq!(bend(&page), None, "{name}");
    }
    for depth in [-40.0, 25.0, 40.0] {
        let found = bend(&curled(&page(), depth)).unwrap();
        // Between the middle and a place beside it, a third of the way down.
        let (y, drawn) = (585.0, |x: f64| depth * (5.0 / 6.0) * (x / 1240.0 * 3.0).sin());
        for x in [250.0, 450.0, 850.0, 1000.0] {
            let (found, drawn) =
                (found.offset(x, y) - found.offset(620.0, y), drawn(x) - drawn(620.0));
            assert!((found - drawn).abs() < 4.0, "{depth} at {x}: {found}, drawn {drawn}");
        }
    }
}
