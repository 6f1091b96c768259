//! Figures on pages that are written down as words with places.

use docmill_core::model::{TextLine, TextWord, Transcript};

use super::*;
use crate::{PicturePaths, read_layout, render_text, render_with_pictures};

fn area(x: f32, y: f32, w: f32, h: f32) -> BoundingBox {
    BoundingBox { x, y, w, h }
}

fn line(x: f32, y: f32, text: &str) -> TextLine {
    let mut at = x;
    let word = |text: &str| {
        let w = 5.0 * text.chars().count() as f32;
        let bounding_box = area(at, y, w, 10.0);
        at += w + 3.0;
        TextWord { text: text.into(), bounding_box, confidence: 1.0, unwitnessed: false }
    };
    TextLine { words: text.split(' ').map(word).collect() }
}

fn page(number: u32, lines: Vec<TextLine>, figures: &[BoundingBox]) -> PageText {
    let mark = |area: &BoundingBox| PageMark { kind: PageMarkKind::Figure, bounding_box: *area };
    let marks = figures.iter().map(mark).collect();
    PageText { marks, ..PageText::from_native(number, (600.0, 800.0), 1.0, lines) }
}

fn layout_of(pages: Vec<PageText>) -> DocumentLayout {
    let (format, sha256, provider) = (Transcript::FORMAT, "ab".to_owned(), "none".to_owned());
    read_layout(&Transcript { format, sha256, provider, pages, quality: 1.0 })
}

fn outline(layout: &DocumentLayout) -> Vec<String> {
    let blocks = layout.pages.iter().flat_map(|page| &page.blocks);
    let name = |block: &PageBlock| {
        let kind = serde_json::to_value(block).unwrap()["type"].as_str().unwrap().to_owned();
        let text = block.content.text();
        format!("{kind} {}", text.split_whitespace().next().unwrap_or_default())
    };
    blocks.map(name).collect()
}

#[test]
fn a_figure_stands_by_its_caption_and_without_one_behind_what_is_above_it() {
    let above = line(50.0, 100.0, "Above it there is a sentence that ends here.");
    let below = line(50.0, 600.0, "Below it there is another sentence that ends.");
    let figure = area(50.0, 200.0, 300.0, 200.0);
    let caption = |y| line(50.0, y, "Figure 3: how it went on");
    let lines = |more: Option<TextLine>| {
        let mut lines = vec![above.clone()];
        lines.extend(more);
        lines.push(below.clone());
        lines
    };
    let outline = |more| outline(&layout_of(vec![page(1, lines(more), &[figure])]));
    assert_eq!(outline(None), ["paragraph Above", "figure ", "paragraph Below"]);
    let captioned = ["paragraph Above", "figure ", "caption Figure", "paragraph Below"];
    assert_eq!(outline(Some(caption(410.0))), captioned, "below");
    let headed = ["paragraph Above", "caption Figure", "figure ", "paragraph Below"];
    assert_eq!(outline(Some(caption(180.0))), headed, "above");
}

#[test]
fn words_on_a_figure_are_the_figures_and_no_word_is_lost() {
    let figure = area(50.0, 200.0, 300.0, 200.0);
    let lines = vec![
        line(50.0, 100.0, "A sentence stands above the figure."),
        line(100.0, 250.0, "Income"),
        line(100.0, 350.0, "2024 2025"),
    ];
    let layout = layout_of(vec![page(1, lines, &[figure])]);
    let [_, block] = layout.pages[0].blocks.as_slice() else { panic!("{layout:#?}") };
    assert_eq!(block.content, BlockContent::Figure { text: "Income 2024 2025".to_owned() });
    assert_eq!(block.words.iter().map(|span| span.count).sum::<u32>(), 3);
    assert!(render_text(&layout).ends_with("\n\nIncome 2024 2025"));
}

#[test]
fn what_lies_at_one_place_of_several_pages_is_a_letterhead_and_no_figure() {
    let logo = area(400.0, 20.0, 100.0, 60.0);
    let own = [area(50.0, 200.0, 300.0, 200.0), area(60.0, 300.0, 200.0, 100.0)];
    let text = |number: u32| {
        let words = if number == 1 { "One page." } else { "Another page." };
        vec![line(50.0, 700.0, words)]
    };
    let pages = (1..).zip(own).map(|(number, own)| page(number, text(number), &[logo, own]));
    let found = list_figures(&layout_of(pages.collect()));
    let places: Vec<_> = found.iter().map(|it| (it.page, it.number)).collect();
    assert_eq!(places, [(1, 1), (2, 1)], "{found:?}");
    assert!(found[0].bounding_box.w > 299.0);
    // On a page by itself it is undecided.
    assert_eq!(list_figures(&layout_of(vec![page(1, text(1), &[logo])])).len(), 1);
}

#[test]
fn markdown_leads_to_a_picture_where_there_is_one_and_says_so_where_there_is_none() {
    let figure = area(50.0, 200.0, 300.0, 200.0);
    let layout = layout_of(vec![page(1, Vec::new(), &[figure]), page(2, Vec::new(), &[figure; 1])]);
    assert_eq!(list_figures(&layout).len(), 0, "the same place twice");
    let second = area(50.0, 400.0, 300.0, 100.0);
    let layout = layout_of(vec![page(1, Vec::new(), &[figure]), page(2, Vec::new(), &[second])]);
    let paths = PicturePaths::from([((2, 1), "assets/b.png".to_owned())]);
    let text = render_with_pictures(&layout, &paths);
    assert_eq!(text, "![Figure 1 of page 1]()\n\n---\n\n![Figure 1 of page 2](assets/b.png)\n");
}

#[test]
fn places_that_are_none_are_no_figures() {
    let wrong = [
        area(f32::NAN, 1.0, 2.0, 3.0),
        area(0.0, 0.0, f32::INFINITY, 1.0),
        area(10.0, 10.0, -5.0, 5.0),
        area(1e9, 10.0, 5.0, 5.0),
    ];
    assert_eq!(list_figures(&layout_of(vec![page(1, Vec::new(), &wrong)])).len(), 0);
    let empty = PageText { width: 0.0, ..page(1, Vec::new(), &[area(0.0, 0.0, 1.0, 1.0)]) };
    assert_eq!(list_figures(&layout_of(vec![empty])).len(), 0);
}

#[test]
fn a_figure_across_two_columns_stands_by_its_caption_in_the_first() {
    let block =
        |content, bounding_box| PageBlock { content, page: 1, bounding_box, words: Vec::new() };
    let paragraph = || BlockContent::Paragraph { text: "so it goes".to_owned() };
    let caption = BlockContent::Caption { text: "Figure 1: both".to_owned() };
    let mut blocks = vec![
        block(paragraph(), area(50.0, 100.0, 200.0, 50.0)),
        block(caption, area(50.0, 410.0, 200.0, 10.0)),
        block(paragraph(), area(320.0, 100.0, 200.0, 90.0)),
    ];
    let figure = BlockContent::Figure { text: String::new() };
    place_figures(&mut blocks, vec![block(figure, area(50.0, 200.0, 480.0, 200.0))], 800.0);
    let at = blocks.iter().position(|it| matches!(it.content, BlockContent::Figure { .. }));
    assert_eq!(at, Some(1), "{blocks:#?}");
}

#[test]
fn a_signature_and_a_stamp_are_blocks_by_name_and_print_below_a_signature_stays_print() {
    let mark = |kind, area| PageMark { kind, bounding_box: area };
    let mut scrawl = line(60.0, 320.0, "Jhvu");
    scrawl.words[0].confidence = 0.3;
    let lines = vec![
        line(50.0, 100.0, "A sentence stands above all of them."),
        scrawl,
        line(60.0, 345.0, "Signature of the buyer"),
        line(330.0, 320.0, "PAID 2026"),
    ];
    let marks = vec![
        mark(PageMarkKind::Signature, area(50.0, 300.0, 200.0, 60.0)),
        mark(PageMarkKind::Stamp, area(300.0, 280.0, 150.0, 80.0)),
        mark(PageMarkKind::Handwriting, area(50.0, 90.0, 200.0, 30.0)),
    ];
    let layout = layout_of(vec![PageText { marks, ..page(1, lines, &[]) }]);
    let mut found = outline(&layout);
    found.sort();
    assert_eq!(found, ["paragraph A", "paragraph Signature", "signature Jhvu", "stamp PAID"]);
    let text = render_with_pictures(&layout, &PicturePaths::new());
    assert!(text.contains("\\[Signature\\]\n\nJhvu\n"), "{text}");
    assert!(text.contains("\\[Stamp\\]\n\nPAID 2026\n"), "{text}");
    assert!(list_figures(&layout).is_empty(), "no pictures are cut out of them");
}
