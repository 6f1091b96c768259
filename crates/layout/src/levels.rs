//! Which paragraphs are headings, and of which level: by the size of their letters among those of
//! the document, and by standing alone before running text.

use super::block::BlockContent;
use super::flow::DraftBlock;
use super::frame::median;

/// The blocks of a page, with the size of its running text and the unit of its boxes.
pub(super) struct DraftPage<'a> {
    pub(super) blocks: Vec<DraftBlock<'a>>,
    /// Size of running text; 0 of an empty page.
    pub(super) body: f32,
}

/// A heading has letters larger than running text by this factor.
const LARGER: f32 = 1.13;
/// The same on a picture, where sizes are guessed from boxes.
const MUCH_LARGER: f32 = 1.2;
/// Sizes closer to each other are one level.
const SAME_LEVEL: f32 = 1.1;

/// The size of running text: that of most words.
pub(super) fn body_size(blocks: &[DraftBlock<'_>]) -> f32 {
    median(blocks.iter().flat_map(|block| &block.words).map(|word| word.em))
}

/// Names the headings of a document.
pub(super) fn name_headings(pages: &mut [DraftPage<'_>], guessed: bool) {
    let least = if guessed { MUCH_LARGER } else { LARGER };
    let mut sizes: Vec<f32> = Vec::new();
    for page in pages.iter() {
        let larger = page.blocks.iter().filter(|block| is_larger(block, page.body, least));
        sizes.extend(larger.map(|block| block.em / page.body));
    }
    let levels = size_levels(sizes);
    let title = find_title(pages, &levels, least);
    for (number, page) in pages.iter_mut().enumerate() {
        let body = page.body;
        let mut followed = vec![false; page.blocks.len()];
        for (at, pair) in page.blocks.windows(2).enumerate() {
            if let ([_, next], Some(followed)) = (pair, followed.get_mut(at)) {
                *followed = is_running(next);
            }
        }
        for (at, block) in page.blocks.iter_mut().enumerate() {
            let followed = followed.get(at).copied().unwrap_or_default();
            let BlockContent::Paragraph { text } = &block.content else { continue };
            let text = text.clone();
            if title == Some((number, at)) {
                block.content = BlockContent::Title { text };
            } else if is_larger(block, body, least) {
                let shift = usize::from(title.is_some());
                let level = level_of(block.em / body, &levels).saturating_sub(shift).max(1);
                block.content = BlockContent::Heading { level: narrow(level), text };
            } else if block.stands_alone && followed && block.em > 0.93 * body {
                let level = levels.len().saturating_sub(usize::from(title.is_some())) + 1;
                block.content = BlockContent::Heading { level: narrow(level), text };
            }
        }
    }
}

fn narrow(level: usize) -> u8 {
    u8::try_from(level.clamp(1, 6)).unwrap_or(6)
}

fn is_larger(block: &DraftBlock<'_>, body: f32, least: f32) -> bool {
    body > 0.0
        && block.em > least * body
        && block.lines <= 3
        && block.words.len() <= 30
        && matches!(block.content, BlockContent::Paragraph { .. })
        && block.words.iter().any(|word| word.text.chars().any(char::is_alphabetic))
}

/// Running text, such as follows a heading.
fn is_running(block: &DraftBlock<'_>) -> bool {
    match block.content {
        BlockContent::Paragraph { .. } => block.lines > 1 || block.words.len() > 8,
        BlockContent::List { .. } | BlockContent::Table { .. } => true,
        _ => false,
    }
}

/// The sizes of the levels, largest first.
fn size_levels(mut sizes: Vec<f32>) -> Vec<f32> {
    sizes.sort_by(|one, other| other.total_cmp(one));
    let mut levels: Vec<f32> = Vec::new();
    for size in sizes {
        if levels.last().is_none_or(|last| *last > SAME_LEVEL * size) {
            levels.push(size);
        }
    }
    levels
}

/// 1 for the largest.
fn level_of(size: f32, levels: &[f32]) -> usize {
    1 + levels.iter().take_while(|level| **level > SAME_LEVEL * size).count()
}

/// The first block of the largest size, if it is on the first page and the only one.
fn find_title(pages: &[DraftPage<'_>], levels: &[f32], least: f32) -> Option<(usize, usize)> {
    let page = pages.first()?;
    let mut count = 0;
    for page in pages {
        count += page.blocks.iter().filter(|it| has_top_level(it, page, levels, least)).count();
    }
    let at = page.blocks.iter().position(|it| has_top_level(it, page, levels, least))?;
    let size = page.blocks.get(at).map_or(0.0, |block| block.em / page.body);
    (count == 1 && size > 1.3 && at < 6).then_some((0, at))
}

fn has_top_level(block: &DraftBlock<'_>, page: &DraftPage<'_>, levels: &[f32], least: f32) -> bool {
    is_larger(block, page.body, least) && level_of(block.em / page.body, levels) == 1
}
