//! Pages as lists of their drawing operations.

use hayro::kurbo::{CircleSegment, RoundedRect, Shape};

use super::*;
use docmill_core::model::TextWord;

const PAGE: Rect = Rect::new(0.0, 0.0, 595.0, 842.0);

fn curves(x: f64, y: f64, count: usize) -> (Rect, BezPath) {
    let mut path = BezPath::new();
    path.move_to((x, y));
    for at in 0..count {
        #[expect(clippy::cast_precision_loss, reason = "few")]
        let step = at as f64 + 1.0;
        path.quad_to((x + step, y), (x + 10.0 * step, y + 5.0 * step));
    }
    (path.control_box(), path)
}

/// The page as the glance shows it: dark and light in turn everywhere, or white.
fn glance(blank: bool) -> PageRaster {
    let shade = |at: u32| if blank || at.is_multiple_of(2) { 255 } else { 40 };
    PageRaster { width: 595, height: 842, dpi: 72, pixels: (0..595 * 842).map(shade).collect() }
}

fn words_over(area: Rect, share: f64) -> Vec<TextLine> {
    let height = area.height() * share;
    let bounding_box = box_of(Rect::new(area.x0, area.y0, area.x1, area.y0 + height));
    let word = TextWord { text: "w".into(), bounding_box, confidence: 1.0, unwitnessed: false };
    vec![TextLine { words: vec![word] }]
}

#[test]
fn images_and_drawings_are_figures_and_letterheads_backgrounds_and_text_on_shades_are_not() {
    let middle = Rect::new(100.0, 200.0, 300.0, 400.0);
    #[rustfmt::skip]
    let table = [
        ("a picture",                middle,                                0.0,  false, 1),
        ("with a few words on it",   middle,                                0.08, false, 1),
        ("behind text",              middle,                                0.2,  false, 0),
        ("nothing to be seen",       middle,                                0.0,  true,  0),
        ("a logo of a few points",   Rect::new(100.0, 200.0, 140.0, 240.0), 0.0,  false, 0),
        ("a logo in the letterhead", Rect::new(400.0, 50.0, 550.0, 125.0),  0.0,  false, 0),
        ("a foot as wide as letters", Rect::new(0.0, 780.0, 595.0, 842.0),  0.0,  false, 0),
        ("the whole page",           PAGE,                                  0.0,  false, 0),
    ];
    for (name, area, share, blank, expected) in table {
        let mut drawn = DrawnFigures::default();
        drawn.note_image(area);
        let words = words_over(area, share);
        let found = find_figures(&drawn.list_areas(PAGE), &glance(blank), &words, &[]);
        assert_eq!(found.len(), expected, "{name}: {found:?}");
    }
}

#[test]
fn strips_of_an_image_are_one_figure() {
    let mut drawn = DrawnFigures::default();
    for strip in 0..20 {
        let top = 200.0 + 10.0 * f64::from(strip);
        drawn.note_image(Rect::new(100.0, top, 300.0, top + 10.0));
    }
    let places = drawn.list_areas(PAGE);
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].area, Rect::new(100.0, 200.0, 300.0, 400.0));
}

#[test]
fn a_drawing_has_curves_or_bars_and_a_table_with_shades_has_neither() {
    let places = |note: &dyn Fn(&mut DrawnFigures)| {
        let mut drawn = DrawnFigures::default();
        note(&mut drawn);
        drawn.list_areas(PAGE).len()
    };
    let curved = |count| {
        let (area, path) = curves(100.0, 300.0, count);
        places(&|drawn| drawn.note_shape(area, Some(&path), None))
    };
    assert_eq!((curved(20), curved(9)), (1, 0), "a curve, a short one");
    let frames = places(&|drawn| {
        for row in 0..6 {
            let top = 200.0 + 50.0 * f64::from(row);
            let frame = RoundedRect::new(60.0, top, 400.0, top + 45.0, 6.0);
            drawn.note_shape(frame.bounding_box(), Some(&frame.to_path(0.1)), None);
        }
    });
    assert_eq!(frames, 0, "fields with round corners");
    let slices = places(&|drawn| {
        for slice in 0..5 {
            let (start, sweep) = (1.2 * f64::from(slice), 1.2);
            let part = CircleSegment::new((200.0, 300.0), 60.0, 0.0, start, sweep).to_path(0.1);
            drawn.note_shape(part.bounding_box(), Some(&part), Some(90));
        }
    });
    assert_eq!(slices, 1, "a pie");
    let bars = |shade, lengths: [f64; 5]| {
        places(&|drawn| {
            for (at, length) in (0_u8..).zip(lengths) {
                let left = 100.0 + 27.0 * f64::from(at);
                let bar = Rect::new(left, 500.0 - length, left + 20.0, 500.0);
                drawn.note_shape(bar, None, Some(shade));
            }
        })
    };
    assert_eq!(bars(120, [80.0, 40.0, 60.0, 100.0, 20.0]), 1, "a chart");
    assert_eq!(bars(120, [80.0; 5]), 0, "cells of one height");
    assert_eq!(bars(230, [80.0, 40.0, 60.0, 100.0, 20.0]), 0, "fields of a form");
    let rules = places(&|drawn| {
        for row in 0..20 {
            let y = 200.0 + 12.0 * f64::from(row);
            drawn.note_shape(Rect::new(50.0, y, 500.0, y + 0.5), None, Some(0));
        }
    });
    assert_eq!(rules, 0, "a table");
}

#[test]
fn a_code_is_not_a_figure_and_two_areas_of_one_figure_are_merged() {
    let area = Rect::new(100.0, 200.0, 200.0, 300.0);
    let mut drawn = DrawnFigures::default();
    drawn.note_image(area);
    let (curved, path) = curves(110.0, 210.0, 20);
    drawn.note_shape(curved.intersect(area), Some(&path), None);
    let places = drawn.list_areas(PAGE);
    assert_eq!(places.len(), 2);
    assert_eq!(find_figures(&places, &glance(false), &[], &[]).len(), 1);
    let symbology = docmill_core::model::CodeSymbology::Qr;
    let code = PageCode::from_bytes(symbology, b"a".to_vec(), box_of(area)).unwrap();
    assert_eq!(find_figures(&places, &glance(false), &[], &[code]).len(), 0);
}

#[test]
fn no_page_costs_more_than_its_shapes() {
    let mut drawn = DrawnFigures::default();
    let (_, path) = curves(0.0, 0.0, 3);
    for at in 0..60_000_u32 {
        let left = f64::from(at % 500);
        drawn.note_shape(Rect::new(left, 0.0, left + 90.0, 700.0), Some(&path), None);
    }
    assert_eq!((drawn.shapes.len(), drawn.list_areas(PAGE).len()), (MAX_SHAPES, 0));
    let mut odd = DrawnFigures::default();
    odd.note_image(Rect::new(-1e12, -1e12, 1e12, 1e12));
    odd.note_image(Rect::new(f64::MAX / 4.0, 0.0, f64::MAX / 3.0, 100.0));
    assert_eq!(odd.list_areas(PAGE).len(), 0);
}
