//! Drawn pictures with truth, and pictures made to exhaust the search.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "places on small pictures"
)]

use std::time::Duration;

use docmill_core::model::{PageCode, TextWord};
use qrcode::{Color, EcLevel, QrCode};

use super::*;

mod linear;
mod pen;

const BILL: &str =
    "BCD\n002\n1\nSCT\n\nKorkstein GmbH\nDE89370400440532013000\nEUR441.87\n\n\nRE-17";

/// CPU time of this thread, which no other process on the machine adds to.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// White paper at 300 dots per inch.
struct Paper(PageRaster);

impl Paper {
    fn new(width: u32, height: u32) -> Self {
        let pixels = vec![250; (width * height) as usize];
        Self(PageRaster { width, height, dpi: 300, pixels })
    }

    fn fill(&mut self, left: u32, top: u32, (width, height): (u32, u32), grey: u8) {
        for y in top..(top + height).min(self.0.height) {
            for x in left..(left + width).min(self.0.width) {
                self.0.pixels[(y * self.0.width + x) as usize] = grey;
            }
        }
    }

    /// Draws a code whose top left corner pattern begins there, in modules of so many pixels;
    /// returns its side.
    fn code(&mut self, left: u32, top: u32, said: &[u8], module: u32) -> u32 {
        let code = QrCode::with_error_correction_level(said, EcLevel::M).unwrap();
        let side = code.width() as u32;
        for (at, color) in (0_u32..).zip(code.to_colors()) {
            if color == Color::Dark {
                let (x, y) = (left + at % side * module, top + at / side * module);
                self.fill(x, y, (module, module), 20);
            }
        }
        side * module
    }

    fn frame(&mut self, left: u32, top: u32, side: u32, thick: u32) {
        self.fill(left, top, (side, side), 20);
        let inside = side - 2 * thick;
        self.fill(left + thick, top + thick, (inside, inside), 250);
    }

    /// A cross within a box.
    fn cross(&mut self, left: u32, top: u32, side: u32) {
        for at in 0..side {
            for x in [at, side - 1 - at] {
                self.fill(left + x, top + at, (3, 3), 20);
            }
        }
    }

    fn turned(self) -> Self {
        let PageRaster { width, height, dpi, pixels } = self.0;
        let at = |x: u32, y: u32| pixels[((height - 1 - x) * width + y) as usize];
        let turned = (0..width).flat_map(|y| (0..height).map(move |x| (x, y)));
        let pixels = turned.map(|(x, y)| at(x, y)).collect();
        Self(PageRaster { width: height, height: width, dpi, pixels })
    }

    fn codes(&self) -> Vec<PageCode> {
        find_marks(&self.0, &[]).unwrap().codes
    }
}

#[test]
fn a_code_is_read_with_its_position_at_any_size_and_orientation() {
    for module in [3, 6, 12] {
        let mut paper = Paper::new(1200, 1000);
        let side = paper.code(200, 300, BILL.as_bytes(), module);
        for (name, paper) in [("upright", Paper(paper.0.clone())), ("turned", paper.turned())] {
            let codes = paper.codes();
            assert_eq!(codes.len(), 1, "{name}, {module}");
            assert_eq!((codes[0].payload.as_str(), codes[0].bytes), (BILL, false));
            let place = codes[0].bounding_box;
            let near = |one: f32, other: u32| (one - other as f32).abs() < 3.0 * module as f32;
            assert!(near(place.w, side) && near(place.h, side), "{name}, {module}: {place:?}");
            if name == "upright" {
                assert!(near(place.x, 200) && near(place.y, 300), "{place:?}");
            }
        }
    }
}

#[test]
fn a_code_with_binary_payload_is_kept_as_bytes() {
    let mut paper = Paper::new(700, 700);
    paper.code(100, 100, b"BCD\xff\xfe\x00", 8);
    let codes = paper.codes();
    assert_eq!(codes.len(), 1);
    assert!(codes[0].bytes && codes[0].payload.starts_with("BCD\u{ff}"));
}

#[test]
fn a_page_of_a_hundred_codes_gives_as_many_as_are_kept_and_each_is_right() {
    let mut paper = Paper::new(2400, 2400);
    for at in 0..100_u32 {
        paper.code(30 + at % 10 * 230, 30 + at / 10 * 230, format!("code {at}").as_bytes(), 6);
    }
    let codes = paper.codes();
    assert_eq!(codes.len(), PageCode::MAX_PER_PAGE);
    let said: std::collections::BTreeSet<&str> =
        codes.iter().map(|code| code.payload.as_str()).collect();
    assert_eq!(said.len(), codes.len(), "none twice");
    assert!(said.iter().all(|said| said.starts_with("code ")));
}

#[test]
fn broken_and_partial_codes_give_no_payload() {
    let mut broken = Paper::new(700, 700);
    let side = broken.code(100, 100, BILL.as_bytes(), 8);
    broken.fill(100 + side / 4, 100 + side / 3, (side / 2, side / 2), 20);
    assert_eq!(broken.codes(), []);
    let mut part = Paper::new(700, 700);
    part.code(100, 100, BILL.as_bytes(), 8);
    part.fill(100, 100 + side / 2, (side, side), 250);
    assert_eq!(part.codes(), []);
}

#[test]
fn pictures_made_to_keep_the_reader_busy_end_soon() {
    let noise = |width: u32, height: u32| {
        let mut random = fastrand::Rng::with_seed(7);
        let pixels = (0..width * height).map(|_| random.u8(..)).collect();
        PageRaster { width, height, dpi: 300, pixels }
    };
    // A corner pattern within another's reach everywhere: each may belong to each.
    let mut finders = Paper::new(2400, 2400);
    for at in 0..3_600_u32 {
        let (x, y) = (4 + at % 60 * 40, 4 + at / 60 * 40);
        finders.fill(x, y, (28, 28), 20);
        finders.fill(x + 4, y + 4, (20, 20), 250);
        finders.fill(x + 8, y + 8, (12, 12), 20);
    }
    let mut boxes = Paper::new(2400, 2400);
    for at in 0..3_600_u32 {
        boxes.frame(4 + at % 60 * 40, 4 + at / 60 * 40, 30, 3);
    }
    let black = PageRaster { width: 900, height: 900, dpi: 300, pixels: vec![0; 810_000] };
    for (name, picture) in [
        ("noise", noise(2480, 3508)),
        ("one row", noise(3000, 1)),
        ("one column", noise(1, 3000)),
        ("one pixel", noise(1, 1)),
        ("corner patterns", finders.0),
        ("boxes", boxes.0),
        ("black", black),
    ] {
        let before = thread_cpu_time();
        let marks = find_marks(&picture, &[]).unwrap();
        assert_eq!(marks, PageMarks::default(), "{name}");
        // Without the bounds the corner patterns alone take hours.
        let took = thread_cpu_time() - before;
        assert!(took < Duration::from_secs(60), "{name}: {took:?}");
    }
}

/// A line with words of 30 pixels in height from there on.
fn line(words: &[(&str, f32)], y: f32) -> TextLine {
    let word = |(text, x): &(&str, f32)| TextWord {
        text: (*text).into(),
        bounding_box: BoundingBox { x: *x, y, w: 18.0 * text.len() as f32, h: 30.0 },
        confidence: 0.9,
        unwitnessed: false,
    };
    TextLine { words: words.iter().map(word).collect() }
}

fn texts(paper: &Paper, mut lines: Vec<TextLine>) -> Vec<String> {
    let boxes = find_marks(&paper.0, &lines).unwrap().boxes;
    write_boxes(&mut lines, &boxes);
    lines.iter().map(TextLine::text).collect()
}

#[test]
fn boxes_beside_words_are_found_ticked_or_empty() {
    let mut paper = Paper::new(1200, 800);
    paper.frame(100, 100, 40, 3);
    paper.frame(100, 200, 40, 3);
    paper.cross(106, 206, 26);
    paper.frame(100, 300, 36, 2);
    paper.fill(112, 312, (14, 14), 20);
    paper.frame(100, 400, 44, 4);
    paper.frame(400, 400, 44, 4);
    paper.cross(408, 408, 26);
    let lines = vec![
        line(&[("Delivery", 170.0)], 105.0),
        // Words read from the ink of the box are dropped.
        line(&[("X", 110.0), ("Collection", 170.0)], 205.0),
        line(&[("Insurance", 165.0)], 303.0),
        line(&[("yes", 170.0), ("no", 470.0)], 405.0),
    ];
    assert_eq!(texts(&paper, lines), ["☐ Delivery", "☒ Collection", "☒ Insurance", "☐ yes ☒ no"]);
}

#[test]
fn outlines_that_are_not_boxes_beside_words_are_left_out() {
    let mut paper = Paper::new(1600, 1400);
    // A row of fields for letters.
    for at in 0..6 {
        paper.frame(100 + 44 * at, 100, 40, 3);
    }
    // A solid square, a bar, a half-open box, a box alone, one with a letter, one that is too
    // large.
    paper.fill(100, 200, (40, 40), 20);
    paper.frame(100, 300, 40, 3);
    paper.fill(130, 306, (10, 28), 250);
    paper.frame(100, 400, 40, 3);
    paper.frame(100, 500, 40, 3);
    paper.cross(110, 510, 18);
    paper.frame(100, 600, 130, 3);
    // A round one, as the letter O is.
    for y in 0..40_i32 {
        for x in 0..40_i32 {
            let from = (x - 20).pow(2) + (y - 20).pow(2);
            if (270..400).contains(&from) {
                paper.fill(100 + x as u32, 800 + y as u32, (1, 1), 20);
            }
        }
    }
    let lines = vec![
        line(&[("Account", 400.0)], 105.0),
        line(&[("Solid", 170.0)], 205.0),
        line(&[("Open", 170.0)], 305.0),
        line(&[("far", 900.0)], 405.0),
        line(&[("A", 110.0), ("letter", 170.0)], 505.0),
        line(&[("large", 260.0)], 650.0),
        line(&[("pera", 150.0)], 805.0),
    ];
    let before: Vec<String> = lines.iter().map(TextLine::text).collect();
    assert_eq!(texts(&paper, lines), before);

    // In scripts that have squares for letters nothing is a box.
    let mut paper = Paper::new(600, 300);
    paper.frame(100, 100, 40, 3);
    let lines = vec![line(&[("入口", 160.0), ("出口", 300.0)], 105.0)];
    assert_eq!(texts(&paper, lines), ["入口 出口"]);
}
