//! Strokes of a pen and stamps, drawn on pages of print, and what only looks like them.

use super::*;
use docmill_core::model::PageMarkKind::{self, Handwriting, Signature, Stamp};

const WIDTH: u32 = 1800;
const HEIGHT: u32 = 1500;

/// Print that was read: rows of words with letters that are not joined.
fn printed(paper: &mut Paper, said: &str, (left, top): (u32, u32)) -> TextLine {
    let mut x = left;
    let word = |text: &str| {
        let begin = x;
        for _ in text.chars() {
            paper.fill(x, top, (5, 30), 20);
            paper.fill(x + 14, top, (5, 30), 20);
            paper.fill(x, top + 12, (19, 5), 20);
            x += 26;
        }
        let area =
            BoundingBox { x: begin as f32, y: top as f32, w: (x - begin - 7) as f32, h: 30.0 };
        x += 20;
        TextWord { text: text.into(), bounding_box: area, confidence: 0.95, unwitnessed: false }
    };
    TextLine { words: said.split(' ').map(word).collect() }
}

/// A page with four rows of print and, at the label's place, this one.
fn page_with(label: &str) -> (Paper, Vec<TextLine>) {
    let mut paper = Paper::new(WIDTH, HEIGHT);
    let mut lines: Vec<TextLine> = (0..4)
        .map(|row| printed(&mut paper, "house water people market under", (120, 120 + 60 * row)))
        .collect();
    lines.push(printed(&mut paper, label, (200, 1010)));
    (paper, lines)
}

impl Paper {
    /// A stroke of a round pen along a parametric path.
    fn stroke(&mut self, thick: u32, path: impl Fn(f32) -> (f32, f32)) {
        for step in 0..6000 {
            let (x, y) = path(step as f32 / 6000.0);
            self.fill(x as u32, y as u32, (thick, thick), 40);
        }
    }

    /// Loops from left to right, as a hand makes them.
    fn scrawl(&mut self, left: f32, middle: f32, (width, height): (f32, f32)) {
        self.stroke(5, |part| {
            let turn = part * 75.0;
            let size = height * (0.5 - 0.2 * part) * (0.75 + 0.25 * (part * 23.0).sin());
            let x = left + width * part + 0.35 * size * (turn + 1.0).cos();
            (x, middle - size * turn.sin() - 0.1 * height * (part * 9.0).cos())
        });
    }

    /// A ring with a letter in each of so many directions.
    fn ring(&mut self, (x, y): (f32, f32), radius: f32, letters: u32) {
        let on = |part: f32, radius: f32| {
            let turn = part * std::f32::consts::TAU;
            (x + radius * turn.cos(), y + radius * turn.sin())
        };
        self.stroke(7, |part| on(part, radius));
        for at in 0..letters {
            let (left, top) = on(at as f32 / letters as f32, 0.76 * radius);
            self.fill(left as u32 - 9, top as u32 - 9, (18, 18), 40);
            self.fill(left as u32 - 3, top as u32 - 9, (6, 10), 250);
        }
    }

    /// A frame turned by so many degrees about its middle, with letters in it.
    fn turned_frame(&mut self, (x, y): (f32, f32), degrees: f32, letters: u32) {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let turned = move |across: f32, down: f32| {
            (x + across * cos - down * sin, y + across * sin + down * cos)
        };
        let (half, high) = (240.0, 90.0);
        self.stroke(7, |part| match part * 4.0 {
            side if side < 1.0 => turned(-half + 2.0 * half * side, -high),
            side if side < 2.0 => turned(half, -high + 2.0 * high * (side - 1.0)),
            side if side < 3.0 => turned(half - 2.0 * half * (side - 2.0), high),
            side => turned(-half, high - 2.0 * high * (side - 3.0)),
        });
        for at in 0..letters {
            let (left, top) = turned(-170.0 + 60.0 * at as f32, -10.0);
            self.fill(left as u32, top as u32, (10, 40), 40);
            self.fill(left as u32, top as u32, (30, 10), 40);
        }
    }
}

fn kinds_of(paper: &Paper, lines: &[TextLine]) -> Vec<PageMarkKind> {
    let known = find_marks(&paper.0, lines).unwrap();
    find_pen_marks(&paper.0, lines, &known).unwrap().iter().map(|mark| mark.kind).collect()
}

#[test]
fn joined_strokes_are_handwriting_and_a_signature_where_people_sign() {
    #[rustfmt::skip]
    let table = [
        ("beside other words",        "house water people", Handwriting),
        ("above a word for it",       "Signature of buyer", Signature),
        ("in German",                 "Ort, Datum, Unterschrift:", Signature),
        ("the word as part of one",   "signatureless paper", Handwriting),
    ];
    for (name, label, kind) in table {
        let (mut paper, lines) = page_with(label);
        paper.fill(200, 990, (700, 3), 20);
        paper.scrawl(260.0, 930.0, (420.0, 130.0));
        assert_eq!(kinds_of(&paper, &lines), [kind], "{name}");
    }
    // Below the words that end a letter.
    let (mut paper, lines) = page_with("Kind regards");
    paper.scrawl(260.0, 1150.0, (420.0, 130.0));
    assert_eq!(kinds_of(&paper, &lines), [Signature]);
    let known = PageMarks::default();
    let [mark] = find_pen_marks(&paper.0, &lines, &known).unwrap()[..] else { panic!("one") };
    let BoundingBox { x, y, w, h } = mark.bounding_box;
    assert!((200.0..280.0).contains(&x) && (1040.0..1110.0).contains(&y), "{mark:?}");
    assert!((380.0..560.0).contains(&w) && (80.0..200.0).contains(&h), "{mark:?}");
}

#[test]
fn confident_words_are_not_handwriting_and_badly_read_pages_have_none() {
    let (mut paper, mut lines) = page_with("house water people");
    paper.scrawl(260.0, 800.0, (420.0, 130.0));
    assert_eq!(kinds_of(&paper, &lines), [Handwriting]);
    let mut read = lines.clone();
    let area = BoundingBox { x: 240.0, y: 740.0, w: 460.0, h: 120.0 };
    let word =
        TextWord { text: "Anno".into(), bounding_box: area, confidence: 0.9, unwitnessed: false };
    read.push(TextLine { words: vec![word] });
    assert_eq!(kinds_of(&paper, &read), [], "surely read");
    for line in &mut lines {
        line.words.iter_mut().skip(1).for_each(|word| word.confidence = 0.4);
    }
    assert_eq!(kinds_of(&paper, &lines), [], "most of the page is doubtful");
    assert_eq!(kinds_of(&paper, &[]), [], "nothing was read");
}

#[test]
fn rulings_crosses_curves_and_blocks_are_not_handwriting() {
    let (mut paper, lines) = page_with("Signature");
    for row in 0..6 {
        paper.fill(1000, 400 + 60 * row, (600, 4), 20);
        paper.fill(1000 + 120 * row, 400, (4, 300), 20);
    }
    paper.fill(200, 990, (700, 3), 20);
    paper.stroke(5, |part| (250.0 + 300.0 * part, 820.0 + 130.0 * part));
    paper.stroke(5, |part| (250.0 + 300.0 * part, 950.0 - 130.0 * part));
    paper.stroke(5, |part| (700.0 + 300.0 * part, 900.0 - 80.0 * (part * 3.0).sin()));
    paper.fill(1200, 900, (300, 120), 60);
    paper.code(1300, 1100, b"nobody signed this", 6);
    assert_eq!(kinds_of(&paper, &lines), []);
}

#[test]
fn a_ring_with_letters_along_it_is_a_stamp_unless_it_is_in_the_letterhead() {
    #[rustfmt::skip]
    let table = [
        ("a stamp",             (1200.0, 900.0), 160.0, 18, vec![Stamp]),
        ("over print",          (330.0, 960.0),  170.0, 18, vec![Stamp]),
        ("without letters",     (1200.0, 900.0), 160.0, 0,  vec![]),
        ("with few letters",    (1200.0, 900.0), 160.0, 5,  vec![]),
        ("too small",           (1200.0, 900.0), 90.0,  12, vec![]),
        ("in the letterhead",   (1500.0, 200.0), 160.0, 18, vec![]),
    ];
    for (name, middle, radius, letters, expected) in table {
        let (mut paper, lines) = page_with("house water people");
        paper.ring(middle, radius, letters);
        assert_eq!(kinds_of(&paper, &lines), expected, "{name}");
    }
}

#[test]
fn a_skewed_frame_is_a_stamp_and_an_upright_one_is_not() {
    for (degrees, letters, expected) in
        [(8.0, 6, vec![Stamp]), (-15.0, 6, vec![Stamp]), (0.0, 6, vec![]), (8.0, 0, vec![])]
    {
        let (mut paper, lines) = page_with("house water people");
        paper.turned_frame((1100.0, 900.0), degrees, letters);
        assert_eq!(kinds_of(&paper, &lines), expected, "{degrees} {letters}");
    }
}

#[test]
fn pages_of_scrawls_and_of_specks_are_searched_in_bounded_work() {
    let (mut paper, lines) = page_with("Signature");
    for row in 0..40_u32 {
        for column in 0..60_u32 {
            paper.fill(column * 30, 400 + row * 27, (22, 3 + (row + column) % 12), 30);
        }
    }
    let before = thread_cpu_time();
    assert_eq!(kinds_of(&paper, &lines), []);
    for row in 0..20_u32 {
        for column in 0..6_u32 {
            paper.ring((150.0 + 300.0 * column as f32, 450.0 + 50.0 * row as f32), 130.0, 3);
        }
    }
    assert!(kinds_of(&paper, &lines).len() <= PageMark::MAX_PER_PAGE);
    let took = thread_cpu_time() - before;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn joined_letters_within_a_badge_are_not_handwriting() {
    for (is_badge, expected) in [(true, vec![]), (false, vec![Handwriting])] {
        let (mut paper, mut lines) = page_with("house water people");
        paper.scrawl(1340.0, 250.0, (220.0, 120.0));
        if is_badge {
            paper.ring((1450.0, 250.0), 240.0, 18);
            // Skewed words are read with boxes that reach over much of their badge.
            let area = BoundingBox { x: 1210.0, y: 310.0, w: 480.0, h: 190.0 };
            let (text, confidence) = ("BADGE".to_owned(), 0.95);
            let word =
                TextWord { text: text.into(), bounding_box: area, confidence, unwitnessed: false };
            lines.push(TextLine { words: vec![word] });
        }
        assert_eq!(kinds_of(&paper, &lines), expected, "in a badge: {is_badge}");
    }
}
