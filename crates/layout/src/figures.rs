//! Figures, signatures and stamps among the blocks of a page. The transcript has their areas, found by
//! ink when the page was read. Here they get their words and their position in the reading order, beside
//! their caption if they have one.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, PageText};

use super::block::{BlockContent, DocumentLayout, PageBlock, PageLayout};
use super::frame::PlacedWord;
use super::piece::join_words;

/// Largest difference between two areas that count as the same, as a share of the page's sides.
const SAME_AREA: f32 = 0.01;
/// Largest distance of a caption from its figure, as a share of the page's height.
const MAX_CAPTION_GAP: f32 = 0.05;

/// A word below a signature that is read with this confidence or more is print.
const MIN_PRINT_CONFIDENCE: f32 = 0.7;

/// A figure, signature or stamp of a page without a position in the reading order.
pub(super) struct OpenFigure<'a> {
    kind: PageMarkKind,
    area: BoundingBox,
    words: Vec<PlacedWord<'a>>,
}

/// A figure of a document, as its pictures are named and cut out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureArea {
    /// Number of its page, starting at 1.
    pub page: u32,
    /// Its number among the figures of the page, starting at 1.
    pub number: u32,
    /// Where it is, in the unit of the page's boxes.
    pub bounding_box: BoundingBox,
}

/// The figures of a document in the order of reading.
pub fn list_figures(layout: &DocumentLayout) -> Vec<FigureArea> {
    layout.pages.iter().flat_map(figures_on_page).collect()
}

fn figures_on_page(page: &PageLayout) -> impl Iterator<Item = FigureArea> {
    let blocks = page.blocks.iter();
    let figures = blocks.filter(|block| matches!(block.content, BlockContent::Figure { .. }));
    (1..).zip(figures).map(|(number, block)| FigureArea {
        page: page.number,
        number,
        bounding_box: block.bounding_box,
    })
}

/// The figures, signatures and stamps of each page. A figure at the same place of a third of the pages is a
/// letterhead.
pub(super) fn open_figures<'a>(pages: &[PageText]) -> Vec<Vec<OpenFigure<'a>>> {
    let found: Vec<Vec<PageMark>> = pages.iter().map(sound_figures).collect();
    let figures = found.iter().flatten().filter(|mark| mark.kind == PageMarkKind::Figure);
    let mut all: Vec<BoundingBox> = figures.map(|mark| mark.bounding_box).collect();
    all.sort_by(|one, other| one.x.total_cmp(&other.x));
    let mut opened = Vec::new();
    for (mut marks, page) in found.into_iter().zip(pages) {
        marks.retain(|mark| {
            mark.kind != PageMarkKind::Figure
                || !is_letterhead(count_similar(&all, &mark.bounding_box), pages.len())
        });
        let figures = marks.into_iter().map(|mark| OpenFigure {
            kind: mark.kind,
            area: mark.bounding_box.scaled(page.width, page.height),
            words: Vec::new(),
        });
        opened.push(figures.collect());
    }
    opened
}

/// Figures, signatures and stamps with areas within the page, in shares of the page's sides.
fn sound_figures(page: &PageText) -> Vec<PageMark> {
    // Handwritten words are text like others.
    let marks = page.marks.iter().filter(|mark| mark.kind != PageMarkKind::Handwriting);
    let mut sound = Vec::new();
    for mark in marks.take(PageMark::MAX_PER_PAGE) {
        let BoundingBox { x, y, w, h } = mark.bounding_box;
        let (x, y, w, h) = (x / page.width, y / page.height, w / page.width, h / page.height);
        let is_within = [x, y, w, h].iter().all(|it| (-0.1..=1.1).contains(it));
        if is_within && w > 0.0 && h > 0.0 {
            sound.push(PageMark { bounding_box: BoundingBox { x, y, w, h }, ..*mark });
        }
    }
    sound
}

/// The number of areas equal to this one, itself included; `all` is sorted by left edges.
fn count_similar(all: &[BoundingBox], area: &BoundingBox) -> usize {
    let first = all.partition_point(|other| other.x < area.x - SAME_AREA);
    let reach = all.iter().skip(first).take_while(|other| other.x <= area.x + SAME_AREA);
    let same = reach.filter(|other| {
        let differences = [other.y - area.y, other.w - area.w, other.h - area.h];
        differences.iter().all(|difference| difference.abs() <= SAME_AREA)
    });
    same.count()
}

fn is_letterhead(times: usize, pages: usize) -> bool {
    times >= 2 && times * 3 >= pages
}

/// Moves a word into the figure that contains its middle; returns it if there is none. Print below a
/// signature does not belong to it.
pub(super) fn take_word<'a>(
    figures: &mut [OpenFigure<'a>],
    word: PlacedWord<'a>,
) -> Option<PlacedWord<'a>> {
    let BoundingBox { x, y, w, h } = word.on_page;
    let (across, down) = (x + w / 2.0, y + h / 2.0);
    let around = figures.iter_mut().find(|figure| {
        (figure.kind != PageMarkKind::Signature || word.confidence < MIN_PRINT_CONFIDENCE)
            && (figure.area.x..=figure.area.right()).contains(&across)
            && (figure.area.y..=figure.area.bottom()).contains(&down)
    });
    match around {
        Some(figure) => {
            figure.words.push(word);
            None
        }
        None => Some(word),
    }
}

/// The content, area and words of a figure.
pub(super) fn figure_parts(
    figure: OpenFigure<'_>,
) -> (BlockContent, BoundingBox, Vec<PlacedWord<'_>>) {
    let OpenFigure { kind, area, mut words } = figure;
    words.sort_by_key(|word| word.place);
    let text = join_words(&words);
    let content = match kind {
        PageMarkKind::Signature => BlockContent::Signature { text },
        PageMarkKind::Stamp => BlockContent::Stamp { text },
        PageMarkKind::Figure | PageMarkKind::Handwriting => BlockContent::Figure { text },
    };
    (content, area, words)
}

/// Inserts figures into the blocks of their page: beside their caption, else after the last block above
/// them, else before the first below.
pub(super) fn place_figures(blocks: &mut Vec<PageBlock>, figures: Vec<PageBlock>, height: f32) {
    for figure in figures {
        let at = find_place(blocks, figure.bounding_box, height);
        blocks.insert(at, figure);
    }
}

fn find_place(blocks: &[PageBlock], area: BoundingBox, height: f32) -> usize {
    let gap = MAX_CAPTION_GAP * height;
    let mut nearest: Option<(f32, usize)> = None;
    for (at, block) in blocks.iter().enumerate() {
        let place = block.bounding_box;
        if !matches!(block.content, BlockContent::Caption { .. }) || !shares_column(&place, &area) {
            continue;
        }
        let (above, below) = (area.y - place.bottom(), place.y - area.bottom());
        let (away, spot) = if below >= above { (below, at) } else { (above, at + 1) };
        if away <= gap && nearest.is_none_or(|(least, _)| away < least) {
            nearest = Some((away, spot));
        }
    }
    if let Some((_, spot)) = nearest {
        return spot;
    }
    let last_above = blocks.iter().rposition(|block| {
        !is_page_end(block) && shares_column(&block.bounding_box, &area) && middle(block) <= area.y
    });
    if let Some(last) = last_above {
        return last + 1;
    }
    let first_below = blocks.iter().position(|block| {
        is_page_end(block) || shares_column(&block.bounding_box, &area) && middle(block) > area.y
    });
    first_below.unwrap_or(blocks.len())
}

fn shares_column(one: &BoundingBox, other: &BoundingBox) -> bool {
    one.x < other.right() && other.x < one.right()
}

fn middle(block: &PageBlock) -> f32 {
    block.bounding_box.y + block.bounding_box.h / 2.0
}

fn is_page_end(block: &PageBlock) -> bool {
    matches!(block.content, BlockContent::Footer { .. } | BlockContent::PageNumber { .. })
}

#[cfg(test)]
mod tests;
