//! Pages that are written down as words with places, and what is said of any page at all.

use std::collections::BTreeMap;
use std::time::Duration;

use docmill_core::model::{BoundingBox, TextLine, TextWord};

use super::*;
use crate::{render_markdown, render_text, split_chunks};

/// CPU time of this thread, which no other process on the machine adds to.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// Letters are half as wide as they are high.
fn word(text: &str, x: f32, y: f32, size: f32) -> TextWord {
    let w = 0.5 * size * text.chars().count() as f32;
    let bounding_box = BoundingBox { x, y, w, h: size };
    TextWord { text: text.into(), bounding_box, confidence: 1.0, unwitnessed: false }
}

/// Pieces of a line at their left edges; words within a piece stand 0.3 letters apart.
fn line(y: f32, size: f32, pieces: &[(f32, &str)]) -> TextLine {
    let mut words = Vec::new();
    for (x, text) in pieces {
        let mut at = *x;
        for text in text.split(' ') {
            let word = word(text, at, y, size);
            at = word.bounding_box.right() + 0.3 * size;
            words.push(word);
        }
    }
    TextLine { words }
}

fn transcript(pages: Vec<Vec<TextLine>>) -> Transcript {
    let pages = (1..)
        .zip(pages)
        .map(|(number, lines)| PageText::from_native(number, (600.0, 800.0), 1.0, lines));
    Transcript {
        format: Transcript::FORMAT,
        sha256: "ab".to_owned(),
        provider: "none".to_owned(),
        pages: pages.collect(),
        quality: 1.0,
    }
}

/// Lines of 10 points, 12 apart, from `y` on.
fn lines(x: f32, y: f32, texts: &[&str]) -> Vec<TextLine> {
    let place = |(at, text): (usize, &&str)| line(y + 12.0 * at as f32, 10.0, &[(x, text)]);
    texts.iter().enumerate().map(place).collect()
}

/// Names of the blocks with what they begin with.
fn outline(read: &Transcript) -> Vec<String> {
    let found = read_layout(read);
    let blocks = found.pages.iter().flat_map(|page| &page.blocks);
    let name = |block: &PageBlock| {
        let text = block.content.text();
        let first = text.split_whitespace().next().unwrap_or_default().to_owned();
        let value = serde_json::to_value(block).unwrap();
        format!("{} {first}", value["type"].as_str().unwrap())
    };
    blocks.map(name).collect()
}

const PROSE: [&str; 5] = [
    "Words that fill the line of a column here",
    "and go on in the next one without a stop",
    "so that nobody takes them for cells in a",
    "table, which would be shorter than these",
    "lines of text are until the last one ends.",
];

#[test]
fn two_columns_are_read_one_after_the_other_below_a_title_across() {
    let mut page = vec![line(50.0, 24.0, &[(50.0, "Annual report")])];
    page.extend((0..5).map(|at| {
        let right = PROSE[at].replace("Words", "Right");
        line(100.0 + 12.0 * at as f32, 10.0, &[(50.0, PROSE[at]), (310.0, &right)])
    }));
    assert_eq!(
        outline(&transcript(vec![page])),
        ["title Annual", "paragraph Words", "paragraph Right"]
    );
}

#[test]
fn a_table_between_paragraphs_has_rows_columns_and_cells_across() {
    let mut page = lines(50.0, 100.0, &PROSE);
    page.extend([
        line(200.0, 10.0, &[(160.0, "Sales of both"), (330.0, "Costs of both years")]),
        line(
            214.0,
            10.0,
            &[(50.0, "Place"), (160.0, "2024"), (250.0, "2025"), (330.0, "2024"), (420.0, "2025")],
        ),
        line(
            228.0,
            10.0,
            &[(50.0, "North"), (160.0, "1.00"), (250.0, "2.00"), (330.0, "3.00"), (420.0, "4.00")],
        ),
        line(242.0, 10.0, &[(50.0, "South"), (160.0, "5.00"), (330.0, "7.00"), (420.0, "8.00")]),
    ]);
    page.extend(lines(50.0, 280.0, &PROSE));
    let found = read_layout(&transcript(vec![page]));
    let [above, table, below] = found.pages[0].blocks.as_slice() else { panic!("{found:#?}") };
    assert!(matches!(above.content, BlockContent::Paragraph { .. }));
    assert!(matches!(below.content, BlockContent::Paragraph { .. }));
    let BlockContent::Table { rows: 4, columns: 5, cells } = &table.content else {
        panic!("{table:#?}")
    };
    let places: Vec<_> = cells
        .iter()
        .map(|cell| (cell.row, cell.column, cell.column_span, cell.text.as_str()))
        .collect();
    #[rustfmt::skip]
    let expected = [
        (0, 1, 2, "Sales of both"), (0, 3, 2, "Costs of both years"),
        (1, 0, 1, "Place"), (1, 1, 1, "2024"), (1, 2, 1, "2025"), (1, 3, 1, "2024"), (1, 4, 1, "2025"),
        (2, 0, 1, "North"), (2, 1, 1, "1.00"), (2, 2, 1, "2.00"), (2, 3, 1, "3.00"), (2, 4, 1, "4.00"),
        (3, 0, 1, "South"), (3, 1, 1, "5.00"), (3, 3, 1, "7.00"), (3, 4, 1, "8.00"),
    ];
    assert_eq!(places, expected);
}

#[test]
fn lines_of_a_wrapped_cell_are_one_row() {
    let page = vec![
        line(100.0, 10.0, &[(50.0, "No"), (100.0, "What"), (400.0, "Price")]),
        line(
            122.0,
            10.0,
            &[(50.0, "1"), (100.0, "A thing that needs many words"), (400.0, "1.00")],
        ),
        line(134.0, 10.0, &[(100.0, "to be told")]),
        line(156.0, 10.0, &[(50.0, "2"), (100.0, "Another"), (400.0, "2.00")]),
    ];
    let found = read_layout(&transcript(vec![page]));
    let BlockContent::Table { rows: 3, columns: 3, cells } = &found.pages[0].blocks[0].content
    else {
        panic!("{found:#?}")
    };
    assert_eq!(cells[4].text, "A thing that needs many words to be told");
}

/// An address beside facts, a title, a line, items and their sums, as invoices have them.
fn invoice_page() -> Vec<TextLine> {
    vec![
        line(100.0, 10.0, &[(50.0, "Ann Reed"), (330.0, "Invoice number"), (450.0, "HF-4711")]),
        line(114.0, 10.0, &[(50.0, "Mill Lane 5"), (330.0, "Invoice date"), (450.0, "3 May 2026")]),
        line(128.0, 10.0, &[(50.0, "99448 Ford"), (330.0, "Order"), (450.0, "by letter")]),
        line(142.0, 10.0, &[(50.0, "England")]),
        line(166.0, 16.0, &[(50.0, "Invoice")]),
        line(196.0, 10.0, &[(50.0, "What"), (250.0, "Count"), (350.0, "Price"), (450.0, "Sum")]),
        line(214.0, 10.0, &[(50.0, "Table"), (250.0, "4"), (350.0, "2.00"), (450.0, "8.00")]),
        line(232.0, 10.0, &[(50.0, "Chair"), (250.0, "2"), (350.0, "1.00"), (450.0, "2.00")]),
        line(280.0, 10.0, &[(330.0, "Total"), (450.0, "10.00")]),
    ]
}

/// The columns of the tables of a page.
fn table_widths(read: &Transcript) -> Vec<u32> {
    let found = read_layout(read);
    let blocks = found.pages.iter().flat_map(|page| &page.blocks);
    let width = |block: &PageBlock| match block.content {
        BlockContent::Table { columns, .. } => Some(columns),
        _ => None,
    };
    blocks.filter_map(width).collect()
}

#[test]
fn an_address_the_facts_beside_it_the_title_and_the_items_of_an_invoice_are_told_apart() {
    let read = transcript(vec![invoice_page()]);
    let outlined = outline(&read);
    assert_eq!(
        outlined[..4],
        ["paragraph Ann", "table Invoice", "title Invoice", "table What"],
        "{outlined:?}"
    );
    let markdown = render_markdown(&read_layout(&read));
    for expected in [
        "Ann Reed\nMill Lane 5\n99448 Ford\nEngland\n",
        "| Invoice number | HF-4711 |\n",
        "| What | Count | Price | Sum |\n",
    ] {
        assert!(markdown.contains(expected), "{expected}: {markdown}");
    }
    assert_eq!(table_widths(&read)[..2], [2, 4], "{markdown}");
}

#[test]
fn addresses_beside_each_other_are_read_one_after_the_other() {
    let page = vec![
        line(100.0, 10.0, &[(50.0, "BILL TO:"), (250.0, "SHIP TO:"), (450.0, "REMIT TO:")]),
        line(114.0, 10.0, &[(50.0, "Ann Reed"), (250.0, "Bo Lund"), (450.0, "Cy Falk")]),
        line(128.0, 10.0, &[(50.0, "Mill 5"), (250.0, "Quay 6"), (450.0, "Hill 7")]),
        line(142.0, 10.0, &[(50.0, "99448 Ford"), (250.0, "79990 Dale"), (450.0, "37999 Berg")]),
    ];
    assert_eq!(
        outline(&transcript(vec![page])),
        ["paragraph BILL", "paragraph SHIP", "paragraph REMIT"]
    );
}

#[test]
fn values_that_stand_a_little_below_the_level_of_their_labels_are_beside_them() {
    let facts =
        [("Invoice number", "618205"), ("Day", "5.3.2026"), ("Order", "2026-7"), ("In", "EUR")];
    let place = |(at, (label, value)): (usize, &(&str, &str))| {
        let y = 100.0 + 12.0 * at as f32;
        [line(y, 10.0, &[(50.0, *label)]), line(y + 2.5, 10.0, &[(250.0, *value)])]
    };
    let page = facts.iter().enumerate().flat_map(place).collect();
    let markdown = render_markdown(&read_layout(&transcript(vec![page])));
    assert!(markdown.starts_with("| Invoice number | 618205 |\n"), "{markdown}");
}

#[test]
fn a_table_of_words_and_numbers_below_a_head_is_no_address_with_facts() {
    let page = vec![
        line(100.0, 10.0, &[(50.0, "Place"), (250.0, "Kind"), (450.0, "Sum")]),
        line(114.0, 10.0, &[(50.0, "Mill 5"), (250.0, "Quay"), (450.0, "10.00")]),
        line(128.0, 10.0, &[(50.0, "Ford 7"), (250.0, "Hill"), (450.0, "20.00")]),
        line(142.0, 10.0, &[(50.0, "Dale 9"), (250.0, "Lane"), (450.0, "30.00")]),
    ];
    assert_eq!(table_widths(&transcript(vec![page])), [3]);
}

#[test]
fn a_page_that_lay_askew_is_read_like_one_that_lay_straight() {
    let straight = outline(&transcript(vec![invoice_page()]));
    let mut page = invoice_page();
    for word in page.iter_mut().flat_map(|line| &mut line.words) {
        word.bounding_box.y -= 0.03 * word.bounding_box.x;
    }
    assert_eq!(outline(&transcript(vec![page])), straight);
}

/// Running text with something below it.
fn below_text(more: Vec<TextLine>) -> Vec<TextLine> {
    let mut page = lines(50.0, 100.0, &PROSE);
    page.extend(more);
    page
}

#[test]
fn what_a_line_begins_with_says_what_it_is() {
    let table: [(&str, Vec<TextLine>, &[&str]); 5] = [
        (
            "entries with bullets are one list",
            below_text(vec![
                line(180.0, 10.0, &[(50.0, "• One")]),
                line(192.0, 10.0, &[(50.0, "• Two goes on")]),
                line(204.0, 10.0, &[(57.0, "here")]),
            ]),
            &["paragraph Words", "list •"],
        ),
        (
            "a number before a lone line is no list",
            below_text(vec![line(180.0, 10.0, &[(50.0, "3. May is the day")])]),
            &["paragraph Words", "paragraph 3."],
        ),
        (
            "a box that is ticked",
            below_text(vec![
                line(180.0, 10.0, &[(50.0, "☑ Paid")]),
                line(192.0, 10.0, &[(50.0, "☐ Open")]),
            ]),
            &["paragraph Words", "checkbox ☑", "checkbox ☐"],
        ),
        (
            "labels with a colon are fields of a form",
            below_text(vec![
                line(190.0, 10.0, &[(50.0, "Name:"), (200.0, "Ann")]),
                line(204.0, 10.0, &[(50.0, "Born:"), (200.0, "1990")]),
            ]),
            &["paragraph Words", "form_field Name:", "form_field Born:"],
        ),
        (
            "a word for a table and its number are a caption",
            below_text(vec![line(190.0, 10.0, &[(50.0, "Tabelle 3: Was es kostet")])]),
            &["paragraph Words", "caption Tabelle"],
        ),
    ];
    for (name, page, expected) in table {
        assert_eq!(outline(&transcript(vec![page])), expected, "{name}");
    }
}

#[test]
fn where_a_line_stands_and_how_large_it_is_says_what_it_is() {
    let table: [(&str, Vec<TextLine>, &[&str]); 2] = [
        (
            "larger letters are a heading",
            below_text(vec![
                line(180.0, 13.0, &[(50.0, "Results")]),
                line(200.0, 10.0, &[(50.0, "They are good.")]),
            ]),
            &["paragraph Words", "heading Results", "paragraph They"],
        ),
        (
            "small print with a mark is a note, and a lone number the page's",
            below_text(vec![
                line(700.0, 7.0, &[(50.0, "1 See the other book")]),
                line(770.0, 8.0, &[(295.0, "12")]),
            ]),
            &["paragraph Words", "footnote 1", "page_number 12"],
        ),
    ];
    for (name, page, expected) in table {
        assert_eq!(outline(&transcript(vec![page])), expected, "{name}");
    }
}

#[test]
fn what_pages_have_in_common_at_their_ends_is_header_and_footer() {
    let page = |number: usize| {
        let mut page = vec![line(40.0, 10.0, &[(50.0, "The Journal"), (400.0, "Volume 7")])];
        page.extend(lines(50.0, 120.0, &PROSE));
        let foot = format!("Page {number} of 2");
        page.push(line(760.0, 10.0, &[(50.0, "Printed in Erfurt"), (400.0, &foot)]));
        page
    };
    let expected =
        ["header The", "header Volume", "paragraph Words", "footer Printed", "page_number Page"];
    assert_eq!(outline(&transcript(vec![page(1), page(2)])), [expected, expected].concat());
    let markdown = render_markdown(&read_layout(&transcript(vec![page(1), page(2)])));
    assert_eq!(markdown.matches("The Journal").count(), 1, "{markdown}");
}

#[test]
fn a_table_that_runs_upwards_is_read_like_one_that_stands() {
    let turn = |line: TextLine| {
        let turned = line.words.into_iter().map(|word| {
            let BoundingBox { x, y, w, h } = word.bounding_box;
            TextWord { bounding_box: BoundingBox { x: y, y: 800.0 - x - w, w: h, h: w }, ..word }
        });
        TextLine { words: turned.collect() }
    };
    let rows = (0..4).map(|row| {
        let y = 100.0 + 14.0 * row as f32;
        turn(line(
            y,
            10.0,
            &[(50.0, "Harbour"), (200.0, "Night"), (300.0, "Water"), (400.0, "Light")],
        ))
    });
    let found = read_layout(&transcript(vec![rows.collect()]));
    let [block] = found.pages[0].blocks.as_slice() else { panic!("{found:#?}") };
    assert!(matches!(block.content, BlockContent::Table { rows: 4, columns: 4, .. }), "{block:#?}");
    assert_eq!((block.bounding_box.x, block.bounding_box.h > 300.0), (100.0, true));
}

/// Any page: words of all sizes and places, some of them nowhere, some lines upright.
fn any_page(seed: u64) -> Transcript {
    let mut lot = fastrand::Rng::with_seed(seed);
    let texts =
        ["a", "•", "1.", "Total:", "12,50", "word", "|", "# no", "Table", "3", "☐", "-", "*x*"];
    let mut page = Vec::new();
    for _ in 0..lot.usize(0..60) {
        let (y, size) = (lot.f32() * 800.0, 4.0 + lot.f32() * 20.0);
        let upright = lot.u8(0..8) == 0;
        let mut words = Vec::new();
        for _ in 0..lot.usize(1..9) {
            let text = lot.choice(texts).unwrap().replace(' ', "");
            let mut word = word(&text, lot.f32() * 600.0, y, size);
            match lot.u8(0..40) {
                0 => word.bounding_box.x = f32::NAN,
                1 => word.bounding_box.h = f32::INFINITY,
                2 => word.bounding_box.w = -5.0,
                _ if upright => word.bounding_box.h = 4.0 * word.bounding_box.w,
                _ => {}
            }
            words.push(word);
        }
        words.sort_by(|one, other| one.bounding_box.x.total_cmp(&other.bounding_box.x));
        page.push(TextLine { words });
    }
    transcript(vec![page])
}

fn counted<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts
}

#[test]
fn every_word_is_in_exactly_one_block_and_plain_text_loses_none() {
    for seed in 0..400 {
        let read = any_page(seed);
        let found = read_layout(&read);
        let page = &read.pages[0];
        let mut seen: Vec<(u32, u32)> = Vec::new();
        for span in found.pages[0].blocks.iter().flat_map(|block| &block.words) {
            seen.extend((span.first..span.first + span.count).map(|word| (span.line, word)));
        }
        seen.sort_unstable();
        let mut all = Vec::new();
        for (at, line) in (0..).zip(&page.lines) {
            all.extend((0..u32::try_from(line.words.len()).unwrap()).map(|word| (at, word)));
        }
        assert_eq!(seen, all, "seed {seed}");
        let text = render_text(&found);
        let printed = counted(text.split_whitespace());
        let words = page.lines.iter().flat_map(|line| &line.words);
        assert_eq!(printed, counted(words.map(|word| word.text.as_str())), "seed {seed}");
    }
}

#[test]
fn pieces_hold_every_word_in_order_within_their_size_and_say_where_it_stands() {
    for seed in 0..200 {
        let read = any_page(seed);
        let found = read_layout(&read);
        let chunks = split_chunks(&found, 16);
        let joined: Vec<&str> =
            chunks.iter().flat_map(|chunk| chunk.text.split_whitespace()).collect();
        let text = render_text(&found);
        assert_eq!(joined, text.split_whitespace().collect::<Vec<_>>(), "seed {seed}");
        for chunk in &chunks {
            assert!(chunk.tokens <= 16 && chunk.text.len() <= 64, "seed {seed}: {chunk:?}");
            assert_eq!(chunk.spots.iter().map(|spot| spot.page).collect::<Vec<_>>(), [1]);
        }
    }
}

#[test]
fn a_page_of_thirty_thousand_words_is_read_in_bounded_cpu_time() {
    let mut lot = fastrand::Rng::with_seed(7);
    let count = 30_000_usize;
    let mut place = |shape: usize, at: usize| match shape {
        0 => (100.0, 100.0, 10.0),
        1 => (at as f32 * 0.01, 100.0, 10.0),
        2 => ((at % 300) as f32 * 30.0, (at / 300) as f32 * 12.0, 10.0),
        3 => (lot.f32() * 600.0, lot.f32() * 800.0, lot.f32() * 90.0),
        4 => ((at % 3) as f32 * 150.0, (at / 3 + at / 12) as f32 * 14.0, 10.0),
        _ => (100.0 + (at % 2) as f32 * 300.0, at as f32 * 0.008, 10.0),
    };
    for shape in 0..6 {
        for length in [1, count] {
            let words: Vec<TextWord> = (0..count)
                .map(|at| {
                    let (x, y, size) = place(shape, at);
                    word(if at % 2 == 0 { "x" } else { "7" }, x, y, size)
                })
                .collect();
            let lines = words.chunks(length).map(|words| TextLine { words: words.to_vec() });
            let read = transcript(vec![lines.collect()]);
            let before = thread_cpu_time();
            let found = read_layout(&read);
            let took = thread_cpu_time() - before;
            assert!(took < Duration::from_secs(6), "shape {shape}, {length} a line: {took:?}");
            let words: u32 = found.pages[0]
                .blocks
                .iter()
                .flat_map(|block| &block.words)
                .map(|span| span.count)
                .sum();
            assert_eq!(words as usize, count);
        }
    }
}
