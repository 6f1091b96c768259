//! Figures, signatures and stamps among the blocks of a page. Where they lie is told by ink when a page is
//! read and stands in the transcript; here they get their words and their place in the order of reading,
//! beside their caption if they have one.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, PageText};

use super::block::{BlockContent, DocumentLayout, PageBlock, PageLayout};
use super::frame::PlacedWord;
use super::piece::join_words;

/// Shares of a page's sides by which two places are the same one.
const SAME_PLACE: f32 = 0.01;
/// Share of a page's height that a caption is from its figure at most.
const CAPTION_GAP: f32 = 0.05;

/// A word that is read at least this surely is print that a signature lies on.
const PRINTED: f32 = 0.7;

/// A figure, signature or stamp of a page before it has its place.
pub(super) struct OpenFigure<'a> {
    kind: PageMarkKind,
    area: BoundingBox,
    words: Vec<PlacedWord<'a>>,
}

/// A figure of a document, as its pictures are named and cut out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigurePlace {
    /// Number of its page, starting at 1.
    pub page: u32,
    /// Its number among the figures of the page, starting at 1.
    pub number: u32,
    /// Where it is, in the unit of the page's boxes.
    pub bounding_box: BoundingBox,
}

/// The figures of a document in the order of reading.
pub fn list_figures(layout: &DocumentLayout) -> Vec<FigurePlace> {
    let is_figure = |block: &&PageBlock| matches!(block.content, BlockContent::Figure { .. });
    let on_page = |page: &PageLayout| -> Vec<FigurePlace> {
        let figures = (1..).zip(page.blocks.iter().filter(is_figure));
        let place = |(number, block): (u32, &PageBlock)| FigurePlace {
            page: page.number,
            number,
            bounding_box: block.bounding_box,
        };
        figures.map(place).collect()
    };
    layout.pages.iter().flat_map(on_page).collect()
}

/// The figures, signatures and stamps of each page. A figure at the same place of a third of the pages is a
/// letterhead.
pub(super) fn open_figures<'a>(pages: &[PageText]) -> Vec<Vec<OpenFigure<'a>>> {
    let found: Vec<Vec<PageMark>> = pages.iter().map(sound_figures).collect();
    let figures = found.iter().flatten().filter(|mark| mark.kind == PageMarkKind::Figure);
    let mut all: Vec<BoundingBox> = figures.map(|mark| mark.bounding_box).collect();
    all.sort_by(|one, other| one.x.total_cmp(&other.x));
    let is_own = |mark: &PageMark| {
        mark.kind != PageMarkKind::Figure
            || !is_letterhead(count_like(&all, &mark.bounding_box), pages.len())
    };
    let to_figures = |(marks, page): (Vec<PageMark>, &PageText)| {
        let scaled = |mark: PageMark| OpenFigure {
            kind: mark.kind,
            area: mark.bounding_box.scaled(page.width, page.height),
            words: Vec::new(),
        };
        marks.into_iter().filter(is_own).map(scaled).collect()
    };
    found.into_iter().zip(pages).map(to_figures).collect()
}

/// Figures, signatures and stamps, their places in shares of the page's sides.
fn sound_figures(page: &PageText) -> Vec<PageMark> {
    let share = |mark: &PageMark| PageMark {
        bounding_box: BoundingBox {
            x: mark.bounding_box.x / page.width,
            y: mark.bounding_box.y / page.height,
            w: mark.bounding_box.w / page.width,
            h: mark.bounding_box.h / page.height,
        },
        ..*mark
    };
    let is_sound = |mark: &PageMark| {
        let BoundingBox { x, y, w, h } = mark.bounding_box;
        [x, y, w, h].iter().all(|it| (-0.1..=1.1).contains(it)) && w > 0.0 && h > 0.0
    };
    // Words by hand are text like others.
    let blocks = page.marks.iter().filter(|mark| mark.kind != PageMarkKind::Handwriting);
    blocks.take(PageMark::MAX_PER_PAGE).map(share).filter(is_sound).collect()
}

/// How many lie where this one lies, itself included; `all` is sorted by left edges.
fn count_like(all: &[BoundingBox], area: &BoundingBox) -> usize {
    let first = all.partition_point(|other| other.x < area.x - SAME_PLACE);
    let near = |one: f32, other: f32| (one - other).abs() <= SAME_PLACE;
    let is_same = |other: &&BoundingBox| {
        near(other.y, area.y) && near(other.w, area.w) && near(other.h, area.h)
    };
    let reach = all.iter().skip(first).take_while(|other| other.x <= area.x + SAME_PLACE);
    reach.filter(is_same).count()
}

fn is_letterhead(times: usize, pages: usize) -> bool {
    times >= 2 && times * 3 >= pages
}

/// Takes a word if its middle is in one of the figures; gives it back otherwise. Print on which a signature
/// lies is not the signature's.
pub(super) fn take_word<'a>(
    figures: &mut [OpenFigure<'a>],
    word: PlacedWord<'a>,
) -> Option<PlacedWord<'a>> {
    let BoundingBox { x, y, w, h } = word.on_page;
    let (across, down) = (x + w / 2.0, y + h / 2.0);
    let around = figures.iter_mut().find(|figure| {
        (figure.kind != PageMarkKind::Signature || word.confidence < PRINTED)
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

/// What a figure says, its words, and where it is.
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

/// Puts figures among the blocks of their page: beside their caption, else behind what stands above
/// them, else before what stands below.
pub(super) fn place_figures(blocks: &mut Vec<PageBlock>, figures: Vec<PageBlock>, height: f32) {
    for figure in figures {
        let at = find_place(blocks, figure.bounding_box, height);
        blocks.insert(at, figure);
    }
}

fn find_place(blocks: &[PageBlock], area: BoundingBox, height: f32) -> usize {
    let shares_column = |other: &BoundingBox| other.x < area.right() && area.x < other.right();
    let gap = CAPTION_GAP * height;
    let mut nearest: Option<(f32, usize)> = None;
    for (at, block) in blocks.iter().enumerate() {
        let place = block.bounding_box;
        if !matches!(block.content, BlockContent::Caption { .. }) || !shares_column(&place) {
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
    let middle = |block: &PageBlock| block.bounding_box.y + block.bounding_box.h / 2.0;
    let is_end = |block: &PageBlock| {
        matches!(block.content, BlockContent::Footer { .. } | BlockContent::PageNumber { .. })
    };
    let is_above = |block: &PageBlock| {
        shares_column(&block.bounding_box) && !is_end(block) && middle(block) <= area.y
    };
    if let Some(last) = blocks.iter().rposition(is_above) {
        return last + 1;
    }
    let is_below = |block: &PageBlock| {
        is_end(block) || shares_column(&block.bounding_box) && middle(block) > area.y
    };
    blocks.iter().position(is_below).unwrap_or(blocks.len())
}

#[cfg(test)]
mod tests;
