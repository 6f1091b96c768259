//! Blocks in reading order, derived from the lines and words of a transcript.
//!
//! A pure function of the stored transcript: every transcript has a layout, whichever reader made
//! it, and a better layout needs no page to be read again. Every word of the transcript is in
//! exactly one block. The transcript has the areas of figures. Other evidence in ink is not used:
//! rulings, weight and slope of letters. A heading in the size of its text is recognised by its
//! isolation. Boxes are untrusted: a page takes O(n log n) steps in its words.

mod block;
mod chunks;
mod figures;
mod flow;
mod frame;
mod grid;
mod levels;
mod lines;
mod margins;
mod markdown;
mod markers;
mod page;
mod parties;
mod piece;
mod plain;
mod strips;
mod zones;

pub use block::{
    BlockContent, DocumentLayout, ListItem, PageBlock, PageLayout, TableCell, WordSpan,
};
pub use chunks::{TextChunk, TextSpot, split_chunks};
pub use figures::{FigureArea, list_figures};
pub use markdown::{PicturePaths, render_markdown, render_with_pictures};
pub use page::read_layout;
pub use plain::render_text;
