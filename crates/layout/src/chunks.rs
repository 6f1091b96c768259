//! A document in pieces for retrieval, each with its page and box.

use docmill_core::model::BoundingBox;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::block::{BlockContent, DocumentLayout, PageBlock, table_lines};

/// A piece of a document's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextChunk {
    /// Number of the piece, starting at 1.
    pub number: u32,
    /// Tokens of the text, estimated: a quarter of its bytes.
    pub tokens: u32,
    /// The headings above it, outermost first.
    pub headings: Vec<String>,
    /// The words, blocks set apart by an empty line.
    pub text: String,
    /// Its places: a box for every page.
    pub spots: Vec<TextSpot>,
}

/// The place of text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextSpot {
    /// Number of the page, starting at 1.
    pub page: u32,
    /// The box of the blocks that the text is from.
    #[serde(rename = "box")]
    #[schema(value_type = Object)]
    pub bounding_box: BoundingBox,
}

/// A chunk while it grows.
#[derive(Default)]
struct OpenChunk {
    headings: Vec<String>,
    parts: Vec<String>,
    bytes: usize,
    spots: Vec<TextSpot>,
}

/// Bytes of a token, for estimates.
const TOKEN_BYTES: usize = 4;

/// Cuts the text of a document into pieces of at most `tokens` estimated tokens, between blocks where
/// that is possible, else between lines, else between words; a single longer word is kept whole. Each
/// heading begins a piece if the one before is half full. Every block's text is in them, in order.
pub fn split_chunks(layout: &DocumentLayout, tokens: u32) -> Vec<TextChunk> {
    let most = (tokens.max(1) as usize).saturating_mul(TOKEN_BYTES);
    let mut chunks = Vec::new();
    let mut open = OpenChunk::default();
    let mut headings: Vec<(u8, String)> = Vec::new();
    for block in layout.pages.iter().flat_map(|page| &page.blocks) {
        let level = match &block.content {
            BlockContent::Title { .. } => Some(0),
            BlockContent::Heading { level, .. } => Some(*level),
            _ => None,
        };
        if let Some(level) = level {
            if open.bytes * 2 > most {
                close_chunk(&mut open, &mut chunks);
            }
            headings.retain(|(above, _)| *above < level);
            headings.push((level, block.content.text().replace('\n', " ")));
        }
        for part in split_block(&block.content, most) {
            if open.bytes > 0 && open.bytes + 2 + part.len() > most {
                close_chunk(&mut open, &mut chunks);
            }
            if open.parts.is_empty() {
                open.headings = headings.iter().map(|(_, text)| text.clone()).collect();
            }
            open.push(part, block);
        }
    }
    close_chunk(&mut open, &mut chunks);
    chunks
}

impl OpenChunk {
    fn push(&mut self, part: String, block: &PageBlock) {
        self.bytes += part.len() + if self.parts.is_empty() { 0 } else { 2 };
        self.parts.push(part);
        match self.spots.last_mut() {
            Some(spot) if spot.page == block.page => {
                spot.bounding_box = spot.bounding_box.union(block.bounding_box);
            }
            _ => self.spots.push(TextSpot { page: block.page, bounding_box: block.bounding_box }),
        }
    }
}

fn close_chunk(open: &mut OpenChunk, chunks: &mut Vec<TextChunk>) {
    let OpenChunk { headings, parts, bytes, spots } = std::mem::take(open);
    if parts.is_empty() {
        return;
    }
    chunks.push(TextChunk {
        number: to_u32(chunks.len() + 1),
        tokens: to_u32(bytes.div_ceil(TOKEN_BYTES)),
        headings,
        text: parts.join("\n\n"),
        spots,
    });
}

/// The text of a block in parts of at most so many bytes.
fn split_block(content: &BlockContent, most: usize) -> Vec<String> {
    let text = content.text();
    if text.len() <= most {
        return if text.is_empty() { Vec::new() } else { vec![text] };
    }
    let lines: Vec<String> = match content {
        BlockContent::Table { rows, cells, .. } => table_lines(*rows, cells),
        _ => text.split('\n').map(str::to_owned).collect(),
    };
    let mut parts: Vec<String> = Vec::new();
    for line in lines {
        if line.len() > most {
            parts.push(String::new());
            line.split(' ').for_each(|word| push_part(&mut parts, word, ' ', most));
            parts.push(String::new());
        } else {
            push_part(&mut parts, &line, '\n', most);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn push_part(parts: &mut Vec<String>, text: &str, between: char, most: usize) {
    match parts.last_mut() {
        Some(part) if part.is_empty() => part.push_str(text),
        Some(part) if part.len() + 1 + text.len() <= most => {
            part.push(between);
            part.push_str(text);
        }
        _ => parts.push(text.to_owned()),
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
