//! The forms in which `transcribe` prints a document.

use clap::ValueEnum;
use docmill_core::model::{PageText, Transcript};
use docmill_layout::{self, DocumentLayout, PageBlock, PicturePaths, TextChunk};
use serde::Serialize;

/// How a document is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TranscriptFormat {
    /// Lines in page layout, pages separated by form feeds
    Lines,
    /// Blocks in reading order, cells separated by tabs, pages by form feeds
    Text,
    /// Headings, lists and tables, pages separated by rules
    Markdown,
    /// Lines and words with boxes and confidences, and each page's blocks
    Json,
    /// Chunks for retrieval with page and box, as JSON
    Chunks,
}

/// A transcript with the blocks of its pages.
#[derive(Serialize)]
pub(super) struct StructuredTranscript<'a> {
    format: u32,
    sha256: &'a str,
    provider: &'a str,
    pages: Vec<StructuredPage<'a>>,
    quality: f32,
}

/// A page with its blocks.
#[derive(Serialize)]
struct StructuredPage<'a> {
    #[serde(flatten)]
    page: &'a PageText,
    blocks: &'a [PageBlock],
}

/// The pieces of a document.
#[derive(Serialize)]
pub(super) struct DocumentChunks<'a> {
    sha256: &'a str,
    chunks: Vec<TextChunk>,
}

/// The transcript with its blocks, as JSON has it.
pub(super) fn join_blocks<'a>(
    read: &'a Transcript,
    found: &'a DocumentLayout,
) -> StructuredTranscript<'a> {
    let pages = read.pages.iter().zip(&found.pages);
    StructuredTranscript {
        format: read.format,
        sha256: &read.sha256,
        provider: &read.provider,
        pages: pages.map(|(page, found)| StructuredPage { page, blocks: &found.blocks }).collect(),
        quality: read.quality,
    }
}

/// Cuts the document into chunks of at most `most` estimated tokens.
pub(super) fn cut_document<'a>(
    read: &'a Transcript,
    found: &DocumentLayout,
    tokens: u32,
) -> DocumentChunks<'a> {
    DocumentChunks { sha256: &read.sha256, chunks: docmill_layout::split_chunks(found, tokens) }
}

/// The document for people.
pub(super) fn render_document(
    read: &Transcript,
    found: &DocumentLayout,
    pictures: &PicturePaths,
    format: TranscriptFormat,
) -> String {
    match format {
        TranscriptFormat::Text => docmill_layout::render_text(found),
        TranscriptFormat::Markdown => docmill_layout::render_with_pictures(found, pictures),
        TranscriptFormat::Lines | TranscriptFormat::Json | TranscriptFormat::Chunks => {
            let pages: Vec<String> = read.pages.iter().map(PageText::text).collect();
            pages.join("\u{c}\n")
        }
    }
}
