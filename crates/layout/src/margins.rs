//! Headers, footers and page numbers: text at the top and bottom of every page.

use std::collections::HashMap;

use super::block::BlockContent;
use super::flow::DraftBlock;
use super::frame::median;
use super::markers::is_page_number;
use super::piece::{PieceRow, TextPiece};

/// The part of a page's height in which headers and footers are looked for.
const ZONE: f32 = 0.13;
/// Rows looked at from each end of a page.
const ROWS: usize = 5;

/// The rows of a page's main text, and what was taken from its ends.
pub(super) struct PageMargins<'a> {
    pub(super) rows: Vec<PieceRow<'a>>,
    pub(super) above: Vec<DraftBlock<'a>>,
    pub(super) below: Vec<DraftBlock<'a>>,
}

/// Texts at the ends of pages with the number of pages that have them.
#[derive(Debug, Default)]
pub(super) struct MarginTexts {
    pages: HashMap<String, usize>,
}

/// Which end of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageEnd {
    Top,
    Bottom,
}

impl MarginTexts {
    /// Adds the text at the ends of a page of this height.
    pub(super) fn add_page(&mut self, rows: &[PieceRow<'_>], height: f32) {
        let mut keys: Vec<String> = Vec::new();
        for end in [PageEnd::Top, PageEnd::Bottom] {
            for row in end_rows(rows, end).take_while(|row| in_zone(row, end, height)) {
                keys.extend(row.pieces.iter().map(|piece| key_of(piece, end)));
            }
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            *self.pages.entry(key).or_default() += 1;
        }
    }

    fn repeats(&self, piece: &TextPiece<'_>, end: PageEnd) -> bool {
        self.pages.get(&key_of(piece, end)).is_some_and(|pages| *pages > 1)
    }
}

/// The same for a text with another number in it.
fn key_of(piece: &TextPiece<'_>, end: PageEnd) -> String {
    let text = piece.text();
    let plain: String = text.chars().map(|c| if c.is_numeric() { '#' } else { c }).collect();
    let mark = if end == PageEnd::Top { 't' } else { 'b' };
    format!("{mark}{plain}")
}

fn end_rows<'r, 'a>(
    rows: &'r [PieceRow<'a>],
    end: PageEnd,
) -> Box<dyn Iterator<Item = &'r PieceRow<'a>> + 'r> {
    match end {
        PageEnd::Top => Box::new(rows.iter().take(ROWS)),
        PageEnd::Bottom => Box::new(rows.iter().rev().take(ROWS)),
    }
}

fn in_zone(row: &PieceRow<'_>, end: PageEnd, height: f32) -> bool {
    match end {
        PageEnd::Top => row.area.y < ZONE * height,
        PageEnd::Bottom => row.area.bottom() > (1.0 - ZONE) * height,
    }
}

/// Takes headers, footers and page numbers from the rows of a page.
pub(super) fn take_margins<'a>(
    mut rows: Vec<PieceRow<'a>>,
    height: f32,
    texts: &MarginTexts,
) -> PageMargins<'a> {
    let body = median(rows.iter().flat_map(|row| &row.pieces).map(|piece| piece.em));
    let top = count_margin(&rows, PageEnd::Top, height, texts, body);
    let bottom = count_margin(&rows, PageEnd::Bottom, height, texts, body);
    let foot = rows.split_off(rows.len().saturating_sub(bottom));
    let rest = rows.split_off(top.min(rows.len()));
    let above = blocks_of(rows, PageEnd::Top);
    PageMargins { rows: rest, above, below: blocks_of(foot, PageEnd::Bottom) }
}

/// Rows from one end of the page that are no part of its text.
fn count_margin(
    rows: &[PieceRow<'_>],
    end: PageEnd,
    height: f32,
    texts: &MarginTexts,
    body: f32,
) -> usize {
    let ordered: Vec<&PieceRow<'_>> = match end {
        PageEnd::Top => rows.iter().take(ROWS + 1).collect(),
        PageEnd::Bottom => rows.iter().rev().take(ROWS + 1).collect(),
    };
    let mut count = 0;
    for (at, row) in ordered.iter().enumerate().take(ROWS) {
        if !in_zone(row, end, height) {
            break;
        }
        let gap = ordered.get(at + 1).map_or(f32::INFINITY, |next| match end {
            PageEnd::Top => next.area.y - row.area.bottom(),
            PageEnd::Bottom => row.area.y - next.area.bottom(),
        });
        let number = row.pieces.iter().all(|piece| is_page_number(&piece.words));
        let some_number = row.pieces.iter().any(|piece| is_page_number(&piece.words));
        let again = row.pieces.iter().any(|piece| texts.repeats(piece, end));
        let outside = match end {
            PageEnd::Top => row.area.bottom() < 0.075 * height,
            PageEnd::Bottom => row.area.y > 0.925 * height,
        };
        let small = row.em() < 0.97 * body;
        let apart = gap > 1.5 * body;
        if again || (at == count && (number || some_number) && apart) || (outside && apart && small)
        {
            count = at + 1;
        }
    }
    // A page of nothing but margins has none.
    if count >= rows.len() { 0 } else { count }
}

/// A block for every piece: the parts of a footer stand side by side and are read apart.
fn blocks_of(rows: Vec<PieceRow<'_>>, end: PageEnd) -> Vec<DraftBlock<'_>> {
    let mut blocks = Vec::new();
    for piece in rows.into_iter().flat_map(|row| row.pieces) {
        let text = piece.text();
        let content = match end {
            _ if is_page_number(&piece.words) => BlockContent::PageNumber { text },
            PageEnd::Top => BlockContent::Header { text },
            PageEnd::Bottom => BlockContent::Footer { text },
        };
        let em = piece.em;
        blocks.push(DraftBlock { content, words: piece.words, em, lines: 1, stands_alone: false });
    }
    blocks
}
