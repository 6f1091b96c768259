//! A layout as plain text.

use super::block::DocumentLayout;

/// The text of all blocks in reading order: blocks set apart by an empty line, the cells of a table
/// by tabs, pages by form feeds.
pub fn render_text(layout: &DocumentLayout) -> String {
    let mut pages = Vec::new();
    for page in &layout.pages {
        let blocks: Vec<String> = page.blocks.iter().map(|block| block.content.text()).collect();
        pages.push(blocks.join("\n\n"));
    }
    pages.join("\n\u{c}\n")
}
