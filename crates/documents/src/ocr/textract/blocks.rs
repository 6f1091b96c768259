//! From Textract's blocks to lines of words, page by page.
//!
//! Blocks come in parts, and a line may come before the words it consists of, so everything is kept
//! until the last part is there. Boxes are shares of the page's width and height.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use aws_sdk_textract::operation::get_document_text_detection::GetDocumentTextDetectionOutput;
use aws_sdk_textract::types::{Block, BlockType, RelationshipType, TextType};

use super::super::handwriting::HandwrittenRuns;
use super::super::pixels_to_f32;
use docmill_core::model::{BoundingBox, ProviderReading, TextLine, TextWord};

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct TextractBlocks {
    /// Pages that the whole result is about.
    pub(super) pages: u32,
    /// Version of the model, if it says.
    pub(super) version: Option<String>,
    found: BTreeMap<u32, TextractPage>,
    /// Pages that were not read, as its warnings say.
    lost: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct TextractPage {
    /// Ids of the words of each line.
    lines: Vec<Vec<String>>,
    words: HashMap<String, TextWord>,
    /// Ids of those that were written by hand.
    by_hand: HashSet<String>,
    /// Ids in the order of the response.
    order: Vec<String>,
}

impl TextractBlocks {
    /// Of a whole answer.
    pub(super) fn from_blocks(blocks: Vec<Block>) -> Self {
        let mut all = Self { pages: 1, ..Self::default() };
        for block in blocks {
            all.add_block(block);
        }
        all
    }

    /// Adds a part of a result; the token of the next one.
    pub(super) fn add_part(&mut self, part: GetDocumentTextDetectionOutput) -> Option<String> {
        let pages = part.document_metadata().and_then(|about| about.pages());
        if let Some(pages) = pages.and_then(|pages| u32::try_from(pages).ok()) {
            self.pages = pages;
        }
        let version = part.detect_document_text_model_version().map(str::to_owned);
        self.version = version.or(self.version.take());
        let lost = part.warnings().iter().flat_map(|warning| warning.pages());
        self.lost.extend(lost.filter_map(|page| u32::try_from(*page).ok()));
        let next = part.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
        for block in part.blocks.unwrap_or_default() {
            self.add_block(block);
        }
        next
    }

    fn add_block(&mut self, block: Block) {
        // A single page need not say that it is the first.
        let number = block.page().and_then(|page| u32::try_from(page).ok()).unwrap_or(1);
        let page = self.found.entry(number).or_default();
        match block.block_type() {
            Some(BlockType::Line) => page.lines.push(child_ids(&block)),
            Some(BlockType::Word) => {
                let id = block.id().unwrap_or_default().to_owned();
                page.order.push(id.clone());
                if block.text_type() == Some(&TextType::Handwriting) {
                    page.by_hand.insert(id.clone());
                }
                page.words.insert(id, word_of_block(&block));
            }
            _ => {}
        }
    }

    /// Whether a page was read.
    pub(super) fn has_page(&self, page: u32) -> bool {
        self.found.contains_key(&page) && !self.lost.contains(&page)
    }

    /// Takes out what was read from a page, positions for a picture of this size.
    pub(super) fn take_reading(
        &mut self,
        page: u32,
        (width, height): (u32, u32),
        version: Option<&str>,
    ) -> ProviderReading {
        let found = self.found.remove(&page).unwrap_or_default();
        let TextractPage { mut lines, mut words, by_hand, order } = found;
        // A word of no line is a line.
        let placed: HashSet<String> = lines.iter().flatten().cloned().collect();
        lines.extend(order.into_iter().filter(|id| !placed.contains(id)).map(|id| vec![id]));
        let (width, height) = (pixels_to_f32(width), pixels_to_f32(height));
        let mut marks = HandwrittenRuns::default();
        let mut take = |id: &String, marks: &mut HandwrittenRuns| {
            let mut word = words.remove(id)?;
            word.bounding_box = word.bounding_box.scaled(width, height);
            marks.add_word(word.bounding_box, by_hand.contains(id));
            Some(word)
        };
        let mut read = Vec::new();
        for ids in &lines {
            let words = ids.iter().filter_map(|id| take(id, &mut marks)).collect();
            read.push(TextLine { words });
            marks.end_line();
        }
        read.retain(|line| !line.words.is_empty());
        ProviderReading {
            lines: read,
            marks: marks.found,
            version: version.map(str::to_owned),
            ..ProviderReading::default()
        }
    }
}

fn child_ids(block: &Block) -> Vec<String> {
    let children = block
        .relationships()
        .iter()
        .filter(|related| related.r#type() == Some(&RelationshipType::Child));
    children.flat_map(|related| related.ids()).cloned().collect()
}

fn word_of_block(block: &Block) -> TextWord {
    let place = block.geometry().and_then(|geometry| geometry.bounding_box());
    let bounding_box = place.map_or_else(BoundingBox::default, |place| BoundingBox {
        x: place.left(),
        y: place.top(),
        w: place.width(),
        h: place.height(),
    });
    TextWord {
        text: block.text().unwrap_or_default().split_whitespace().collect(),
        bounding_box,
        confidence: (block.confidence().unwrap_or_default() / 100.0).clamp(0.0, 1.0),
        unwitnessed: false,
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::model::{PageMark, PageMarkKind};

    use aws_sdk_textract::types::{
        BoundingBox as Place, DocumentMetadata, Geometry, Relationship, Warning,
    };

    use super::*;

    fn block(
        kind: BlockType,
        page: i32,
        id: &str,
    ) -> aws_sdk_textract::types::builders::BlockBuilder {
        Block::builder().block_type(kind).page(page).id(id)
    }

    fn word_block(page: i32, id: &str, text: &str) -> Block {
        let place = Place::builder().left(0.1).top(0.2).width(0.3).height(0.05).build();
        let geometry = Geometry::builder().bounding_box(place).build();
        block(BlockType::Word, page, id).text(text).confidence(87.5).geometry(geometry).build()
    }

    fn line_block(page: i32, id: &str, ids: &[&str]) -> Block {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let child = Relationship::builder().r#type(RelationshipType::Child).set_ids(Some(ids));
        block(BlockType::Line, page, id).relationships(child.build()).build()
    }

    fn part(blocks: Vec<Block>, next: Option<&str>) -> GetDocumentTextDetectionOutput {
        GetDocumentTextDetectionOutput::builder()
            .document_metadata(DocumentMetadata::builder().pages(3).build())
            .set_blocks(Some(blocks))
            .set_next_token(next.map(str::to_owned))
            .build()
    }

    #[test]
    #[rustfmt::skip]
    fn a_line_finds_its_words_in_a_later_part_and_a_word_without_a_line_is_one() {
        let mut blocks = TextractBlocks::default();
        let first = vec![block(BlockType::Page, 1, "p1").build(), line_block(1, "l1", &["w1", "w2"]), word_block(1, "w1", "Total")];
        assert_eq!(blocks.add_part(part(first, Some("next"))).as_deref(), Some("next"));
        let second = vec![word_block(1, "w2", "12.00"), block(BlockType::Page, 2, "p2").build(), word_block(2, "w3", "alone")];
        assert_eq!(blocks.add_part(part(second, None)), None);
        assert_eq!((blocks.pages, blocks.has_page(1), blocks.has_page(2), blocks.has_page(3)), (3, true, true, false));
        let reading = blocks.take_reading(1, (1000, 2000), Some("1.0"));
        assert_eq!(reading.lines.iter().map(TextLine::text).collect::<Vec<_>>(), ["Total 12.00"]);
        let word = &reading.lines[0].words[0];
        assert!((word.confidence - 0.875).abs() < 1e-6);
        let BoundingBox { x, y, w, h } = word.bounding_box;
        assert!([x - 100.0, y - 400.0, w - 300.0, h - 100.0].iter().all(|off| off.abs() < 0.01));
        assert_eq!(blocks.take_reading(2, (1, 1), None).lines[0].text(), "alone");
    }

    #[test]
    fn words_by_hand_that_follow_each_other_on_a_line_are_one_mark() {
        let word = |id: &str, left: f32, by_hand: bool| {
            let place = Place::builder().left(left).top(0.2).width(0.1).height(0.05).build();
            let geometry = Geometry::builder().bounding_box(place).build();
            let kind = if by_hand { TextType::Handwriting } else { TextType::Printed };
            let word = block(BlockType::Word, 1, id).text(id).geometry(geometry);
            word.text_type(kind).build()
        };
        let mut blocks = TextractBlocks::default();
        let all = vec![
            line_block(1, "l1", &["Name", "Ada", "Lovelace"]),
            word("Name", 0.1, false),
            word("Ada", 0.3, true),
            word("Lovelace", 0.5, true),
            word("alone", 0.8, true),
        ];
        blocks.add_part(part(all, None));
        let reading = blocks.take_reading(1, (1000, 1000), None);
        let places: Vec<(f32, f32)> = reading
            .marks
            .iter()
            .map(|mark| (mark.bounding_box.x.round(), mark.bounding_box.right().round()))
            .collect();
        assert_eq!(places, [(300.0, 600.0), (800.0, 900.0)], "one on the line, one of no line");
        assert!(reading.marks.iter().all(|mark| mark.kind == PageMarkKind::Handwriting));
        let many = (0..100).map(|at| word(&format!("w{at}"), 0.1, true)).collect();
        blocks.add_part(part(many, None));
        let found = blocks.take_reading(1, (10, 10), None).marks;
        assert_eq!(found.len(), PageMark::MAX_PER_PAGE);
    }

    #[test]
    fn a_page_with_a_warning_was_not_read_and_a_blank_one_was() {
        let mut blocks = TextractBlocks::default();
        let mut answer = part(
            vec![block(BlockType::Page, 1, "a").build(), block(BlockType::Page, 2, "b").build()],
            None,
        );
        answer.warnings = Some(vec![Warning::builder().error_code("X").pages(2).build()]);
        blocks.add_part(answer);
        assert_eq!((blocks.has_page(1), blocks.has_page(2)), (true, false));
        assert!(blocks.take_reading(1, (10, 10), None).lines.is_empty());
    }
}
