//! Repairs on pages made in code.

use opencv::core::Point2f;

use super::*;
use crate::quality::assess_page;
use crate::quality::page_in_code::{
    compressed, curled, noisy, photographed, scaled, shadowed, skewed, specked, speckled, text_page,
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
fn the_lines_of_a_curled_sheet_are_straight_after_its_repair() {
    let corners = [(90.0, 130.0), (1150.0, 90.0), (1180.0, 1620.0), (70.0, 1650.0)];
    let corners = corners.map(|(x, y)| Point2f::new(x, y));
    let photo = photographed(&curled(&page(), 30.0), corners);
    let done = repaired(&photo).unwrap();
    assert_eq!(done.steps.get(..2), Some(&[RepairStep::Perspective, RepairStep::Dewarp][..]));
    assert_eq!(quality::assess_sheet(&done.raster).unwrap().1, None, "nothing bends any more");
    let cut = cut_out_sheet(&photo, &assess_page(&photo).unwrap(), RepairSwitches::default());
    assert_eq!(cut.unwrap().unwrap().steps, [RepairStep::Perspective, RepairStep::Dewarp]);
    let flat = repaired(&photographed(&page(), corners)).unwrap();
    assert!(!flat.steps.contains(&RepairStep::Dewarp), "{:?}", flat.steps);
    let kept = RepairSwitches { perspective: false, ..RepairSwitches::default() };
    let left = repair_page(&photo, &assess_page(&photo).unwrap(), kept).unwrap();
    let steps = left.map(|left| left.steps).unwrap_or_default();
    assert!(!steps.iter().any(|step| matches!(step, RepairStep::Perspective | RepairStep::Dewarp)));
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
fn specks_of_grey_paper_go_before_they_are_enlarged_and_those_of_a_fax_are_its_letters() {
    let small = text_page(1240, 1754, 12);
    let steps = |page: &PageRaster| repaired(page).map(|done| done.steps);
    let (alone, among) = (RepairStep::Despeckle, RepairStep::Denoise);
    assert_eq!(steps(&specked(&small, 0.01)), Some(vec![alone, RepairStep::Upscale, among]));
    let fax = steps(&speckled(&small, 0.01)).unwrap();
    assert!(!fax.contains(&RepairStep::Despeckle), "{fax:?}");
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
fn hostile_photographs_are_repaired_within_bounds() {
    let mut random = fastrand::Rng::with_seed(11);
    let shapes = [(35_000, 64), (64, 30_000), (1_200, 1_200), (400, 300), (30_000, 1)];
    for (width, height) in shapes {
        let framed = |at: usize| {
            let (x, y) = (at % width, at / width);
            let is_frame = x < width / 8 || x > width * 7 / 8 || y < height / 8;
            if is_frame { 30 } else { 230 }
        };
        let noise: Vec<u8> = (0..width * height).map(|_| random.u8(..)).collect();
        let sheet: Vec<u8> = (0..width * height).map(framed).collect();
        // Lines that fall by twenty degrees.
        let aslant = |at: usize| {
            let level = (at / width) as f64 - (at % width) as f64 * 0.364;
            if (at % width / 9).is_multiple_of(2) && level.rem_euclid(20.0) < 10.0 {
                20
            } else {
                240
            }
        };
        let askew: Vec<u8> = (0..width * height).map(aslant).collect();
        for pixels in [noise, sheet, askew] {
            let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap());
            let page = PageRaster { width, height, dpi: 300, pixels };
            let most = 4 * page.pixels.len().max(20_000_000);
            let done = repaired(&page).map_or(page, |done| done.raster);
            assert!(done.pixels.len() <= most, "{width} x {height}: {}", done.pixels.len());
        }
    }
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
