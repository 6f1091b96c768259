//! Codes of bars on drawn sheets: printed, tilted, faint, turned.

use super::super::linear::{draw_code_39, draw_code_128};
use super::*;
use docmill_core::model::CodeSymbology;

/// Bars of a patch code `T`, in units of 0.04 inches.
const PATCH: [i32; 7] = [2, 2, 5, 2, 2, 2, 5];

/// Draws bars and spaces from there on, in modules of so many pixels.
fn bars(paper: &mut Paper, (left, top): (u32, u32), widths: &[i32], (module, height): (u32, u32)) {
    let mut x = left;
    for (at, width) in widths.iter().enumerate() {
        let width = *width as u32 * module;
        if at % 2 == 0 {
            paper.fill(x, top, (width, height), 20);
        }
        x += width;
    }
}

/// The sheet turned by some degrees around its middle.
fn tilted(paper: &Paper, degrees: f32) -> Paper {
    let PageRaster { width, height, dpi, ref pixels } = paper.0;
    let (sin, cos) = degrees.to_radians().sin_cos();
    let middle = (width as f32 / 2.0, height as f32 / 2.0);
    let mut turned = vec![250; pixels.len()];
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (x as f32 - middle.0, y as f32 - middle.1);
            let from = (middle.0 + cos * dx - sin * dy, middle.1 + sin * dx + cos * dy);
            let inside = from.0 >= 0.0
                && from.1 >= 0.0
                && (from.0 as u32) < width
                && (from.1 as u32) < height;
            if inside {
                let source = from.1 as u32 * width + from.0 as u32;
                turned[(y * width + x) as usize] = pixels[source as usize];
            }
        }
    }
    Paper(PageRaster { width, height, dpi, pixels: turned })
}

/// The same with less ink.
fn faded(paper: &Paper, ink: u8) -> Paper {
    let mut faded = Paper(paper.0.clone());
    faded.0.pixels.iter_mut().filter(|grey| **grey < 100).for_each(|grey| *grey = ink);
    faded
}

/// The sheet turned by quarters.
fn turned_times(paper: &Paper, quarters: usize) -> Paper {
    (0..quarters).fold(Paper(paper.0.clone()), |paper, _| paper.turned())
}

#[test]
fn codes_of_separator_sheets_are_read_upright_and_turned_tilted_and_faint() {
    let mut patch = Paper::new(1600, 1200);
    bars(&mut patch, (400, 200), &PATCH, (12, 600));
    let mut code_128 = Paper::new(1600, 1200);
    bars(&mut code_128, (300, 300), &draw_code_128("NEXT-7"), (5, 260));
    let mut code_39 = Paper::new(1600, 1200);
    bars(&mut code_39, (200, 300), &draw_code_39("NEXT"), (5, 260));
    for (name, sheet, symbology, payload) in [
        ("patch", patch, CodeSymbology::Patch, "T"),
        ("code 128", code_128, CodeSymbology::Code128, "NEXT-7"),
        ("code 39", code_39, CodeSymbology::Code39, "NEXT"),
    ] {
        for quarters in 0..4 {
            for degrees in [0.0, 2.0, -4.0] {
                for ink in [20, 170] {
                    let scan = turned_times(&tilted(&faded(&sheet, ink), degrees), quarters);
                    let codes = scan.codes();
                    let read: Vec<(CodeSymbology, &str)> =
                        codes.iter().map(|it| (it.symbology, it.payload.as_str())).collect();
                    let scan = format!("{name}, {quarters} quarters, {degrees} degrees, ink {ink}");
                    assert_eq!(read, [(symbology, payload)], "{scan}");
                }
            }
        }
    }
}

#[test]
fn bars_that_are_no_separator_are_none() {
    // The other patches, one whose bars are short, bars within a table, and a code without its margin.
    let mut paper = Paper::new(2000, 2400);
    for (at, widths) in
        [[5, 2, 5, 2, 2, 2, 2], [2, 2, 5, 2, 5, 2, 2], [2, 2, 2, 2, 5, 2, 5]].iter().enumerate()
    {
        bars(&mut paper, (200, 100 + 400 * at as u32), widths, (12, 300));
    }
    bars(&mut paper, (1000, 100), &PATCH, (12, 60));
    bars(&mut paper, (1000, 500), &[2, 2, 2, 2, 5, 2, 2, 2, 5, 2, 2], (12, 400));
    bars(&mut paper, (200, 1500), &draw_code_128("NEXT-7"), (4, 200));
    paper.fill(192, 1500, (4, 200), 20);
    assert_eq!(paper.codes(), []);
}
