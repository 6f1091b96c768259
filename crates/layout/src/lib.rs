//! Blocks in reading order, derived from the lines and words of a transcript.
//!
//! A pure function of what is stored: every transcript has a layout, whatever read it and whenever,
//! and a better layout asks for no page to be read again. Every word of the transcript is in exactly
//! one block. Where figures lie the transcript says. What else only ink shows is not told: rulings,
//! weight and slope of letters; a heading in the size of its text is told by where it stands alone. Boxes may
//! say anything: a page takes O(n log n) steps in its words.

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
