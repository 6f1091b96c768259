//! A layout as plain text.

use super::block::DocumentLayout;

/// The text of all blocks in reading order: blocks set apart by an empty line, the cells of a table
/// by tabs, pages by form feeds.
pub fn render_text(layout: &DocumentLayout) -> String {
    let mut pages = Vec::new();
    for page in &layout.pages {
        let texts = page.blocks.iter().map(|block| block.content.text());
        // A figure may be without words.
        let blocks: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        pages.push(blocks.join("\n\n"));
    }
    pages.join("\n\u{c}\n")
}
