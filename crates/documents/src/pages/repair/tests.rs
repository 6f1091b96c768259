//! Repairs on pages made in code.

use opencv::core::Point2f;

use super::*;
use crate::pages::quality::assess_page;
use crate::pages::quality::page_in_code::{
    compressed, noisy, photographed, scaled, shadowed, skewed, speckled, text_page,
};

fn page() -> PageRaster {
    text_page(1240, 1754, 24)
}

fn repaired(page: &PageRaster) -> Option<RepairedRaster> {
    repair_page(page, &assess_page(page).unwrap(), RepairSwitches::default()).unwrap()
}

#[test]
fn pages_without_defects_are_left_alone() {
    assert_eq!(repaired(&page()), None);
    let blank = PageRaster { width: 900, height: 900, dpi: 300, pixels: vec![250; 900 * 900] };
    assert_eq!(repaired(&blank), None);
}

#[test]
fn each_defect_gets_the_step_that_is_for_it_and_then_is_gone() {
    let small = text_page(1240, 1754, 9);
    let corners = [(90.0, 130.0), (1150.0, 90.0), (1180.0, 1620.0), (70.0, 1650.0)];
    let photo = photographed(&page(), corners.map(|(x, y)| Point2f::new(x, y)));
    #[rustfmt::skip]
    let table = [
        ("shadow",  shadowed(&page()),             RepairStep::Flatten),
        ("skew",    skewed(&page(), 4.0),          RepairStep::Deskew),
        ("dark",    scaled(&page(), 0.35, 5.0),    RepairStep::Stretch),
        ("small",   small,                         RepairStep::Upscale),
        ("grain",   noisy(&page(), 30),            RepairStep::Denoise),
        ("specks",  speckled(&page(), 0.005),      RepairStep::Denoise),
        ("photo",   photo,                         RepairStep::Perspective),
        ("on side", turn_page(&page(), 3).unwrap(),     RepairStep::Turn),
        ("on head", turn_page(&page(), 2).unwrap(),     RepairStep::Turn),
    ];
    for (name, spoilt, step) in table {
        let before = assess_page(&spoilt).unwrap();
        let Some(done) = repaired(&spoilt) else { panic!("{name}: nothing done, {before:?}") };
        assert!(done.steps.contains(&step), "{name}: {:?}", done.steps);
        let after = assess_page(&done.raster).unwrap();
        assert!(after.score > before.score, "{name}: {before:?} {after:?}");
        let again = repaired(&done.raster).map(|again| again.steps);
        assert_eq!(again, None, "{name} was repaired twice: {after:?}");
    }
}

#[test]
fn squares_of_a_coarse_jpeg_are_smoothed_before_they_are_enlarged_and_clean_letters_are_not() {
    let small = text_page(1240, 1754, 9);
    let steps = |page: &PageRaster| repaired(page).map(|done| done.steps);
    assert_eq!(steps(&small), Some(vec![RepairStep::Upscale]));
    let coarse = compressed(&small, 9);
    assert_eq!(steps(&coarse), Some(vec![RepairStep::Denoise, RepairStep::Upscale]));
    let large = compressed(&page(), 9);
    assert_eq!(steps(&large), None, "what is not enlarged is left alone");
}

#[test]
fn every_step_can_be_switched_off() {
    let spoilt = skewed(&shadowed(&page()), 4.0);
    let found = assess_page(&spoilt).unwrap();
    let steps = |switches| repair_page(&spoilt, &found, switches).unwrap().map(|done| done.steps);
    let all = RepairSwitches::default();
    assert_eq!(steps(RepairSwitches { enabled: false, ..all }), None);
    assert_eq!(steps(RepairSwitches::NONE), None);
    let level = steps(RepairSwitches { illumination: false, ..all }).unwrap();
    assert!(!level.contains(&RepairStep::Flatten), "{level:?}");
    let flat = steps(RepairSwitches { deskew: false, ..all }).unwrap();
    assert!(!flat.contains(&RepairStep::Deskew), "{flat:?}");
}

#[test]
fn flattening_leaves_white_paper_under_a_shadow() {
    let done = repaired(&shadowed(&page())).unwrap();
    let mean = done.raster.pixels.iter().map(|pixel| u64::from(*pixel)).sum::<u64>()
        / done.raster.pixels.len() as u64;
    let clean = page().pixels.iter().map(|pixel| u64::from(*pixel)).sum::<u64>()
        / page().pixels.len() as u64;
    assert!(mean.abs_diff(clean) <= 6, "{mean} instead of {clean}");
}

#[test]
fn the_same_page_gives_the_same_pixels() {
    let spoilt = skewed(&noisy(&shadowed(&page()), 12), 3.0);
    assert_eq!(repaired(&spoilt), repaired(&spoilt));
}

#[test]
fn four_quarter_turns_are_none() {
    let page = text_page(310, 440, 20);
    let mut turning = page.clone();
    for _ in 0..4 {
        turning = turn_page(&turning, 1).unwrap();
    }
    assert_eq!(turning, page);
    assert_eq!(turn_page(&page, 5).unwrap(), turn_page(&page, 1).unwrap());
}

#[test]
fn pages_of_any_shape_and_shade_are_repaired_without_failing() {
    for (width, height) in [(1, 1), (1, 10_000), (23, 5_000), (40, 9_000), (300, 300)] {
        for shade in [0, 30, 255] {
            let pixels = vec![shade; (width * height) as usize];
            let page = PageRaster { width, height, dpi: 300, pixels };
            let done = repaired(&page).map_or(page, |done| done.raster);
            assert_eq!(done.pixels.len(), (done.width * done.height) as usize);
            turn_page(&done, 1).unwrap();
        }
    }
}
