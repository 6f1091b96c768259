//! From a transcript to its layout.

#[cfg(test)]
mod tests;

use docmill_core::model::{PageSource, PageText, Transcript};

use super::block::{BlockContent, DocumentLayout, PageBlock, PageLayout, WordSpan};
use super::figures::{OpenFigure, figure_parts, open_figures, place_figures, take_word};
use super::flow::{DraftBlock, read_lines};
use super::frame::{DirectionFrame, PlacedWord, box_around, median, sort_directions};
use super::grid::{FoundTable, build_table};
use super::levels::{DraftPage, body_size, name_headings};
use super::lines::FlowLine;
use super::margins::{MarginTexts, take_margins};
use super::piece::{PieceRow, cut_lines, group_rows, join_words};
use super::zones::{PageZone, find_zones, join_spread};

/// Columns within columns within columns: deeper is no layout that anyone reads.
const MAX_DEPTH: u32 = 4;

/// The rows of the main text of a page, and the text that runs in other directions or has no place.
struct OpenPage<'a> {
    page: &'a PageText,
    rows: Vec<PieceRow<'a>>,
    height: f32,
    others: Vec<DirectionFrame<'a>>,
    nowhere: Vec<PlacedWord<'a>>,
    figures: Vec<OpenFigure<'a>>,
}

/// Finds the blocks of every page. Headers and footers are recognized by the text that pages have in common,
/// and levels of headings by their sizes in the whole document.
pub fn read_layout(transcript: &Transcript) -> DocumentLayout {
    let figures = open_figures(&transcript.pages);
    let pages = transcript.pages.iter().zip(figures);
    let mut open: Vec<OpenPage<'_>> =
        pages.map(|(page, figures)| open_page(page, figures)).collect();
    let figures: Vec<Vec<OpenFigure<'_>>> =
        open.iter_mut().map(|page| std::mem::take(&mut page.figures)).collect();
    let mut texts = MarginTexts::default();
    for page in &open {
        texts.add_page(&page.rows, page.height);
    }
    let guessed = transcript.pages.iter().any(|page| page.source == PageSource::Ocr);
    let mut drafts: Vec<DraftPage<'_>> =
        open.into_iter().map(|page| draft_page(page, &texts)).collect();
    name_headings(&mut drafts, guessed);
    let pages = transcript.pages.iter().zip(drafts).zip(figures);
    let pages = pages.map(|((page, draft), figures)| finish_page(page, draft, figures));
    DocumentLayout { pages: pages.collect() }
}

fn open_page<'a>(page: &'a PageText, mut figures: Vec<OpenFigure<'a>>) -> OpenPage<'a> {
    let mut found = sort_directions(page);
    found.set_apart(|word| take_word(&mut figures, word));
    let mut frames = found.frames.into_iter();
    let rows = frames.next().map_or_else(Vec::new, |frame| group_rows(cut_lines(&frame)));
    // A page that is read turned has its height across.
    let reach = rows.iter().map(|row| row.area.bottom()).fold(0.0, f32::max);
    let turned = reach > 1.02 * page.height;
    let height = if turned { page.width } else { page.height };
    OpenPage { page, rows, height, others: frames.collect(), nowhere: found.nowhere, figures }
}

fn draft_page<'a>(open: OpenPage<'a>, texts: &MarginTexts) -> DraftPage<'a> {
    let OpenPage { page, rows, height, others, nowhere, .. } = open;
    let body = median(
        rows.iter().flat_map(|row| &row.pieces).flat_map(|piece| &piece.words).map(|word| word.em),
    );
    let margins = take_margins(rows, height, texts);
    let mut blocks = margins.above;
    read_region(margins.rows, 0, body, &mut blocks);
    for frame in others {
        read_region(group_rows(cut_lines(&frame)), 0, body, &mut blocks);
    }
    blocks.extend(margins.below);
    if !nowhere.is_empty() {
        let text = join_words(&nowhere);
        let content = BlockContent::Paragraph { text };
        let lines = page.lines.len();
        blocks.push(DraftBlock { content, words: nowhere, em: 0.0, lines, stands_alone: false });
    }
    DraftPage { body: body_size(&blocks), blocks }
}

/// The blocks of a region in reading order.
fn read_region<'a>(
    rows: Vec<PieceRow<'a>>,
    depth: u32,
    body: f32,
    blocks: &mut Vec<DraftBlock<'a>>,
) {
    if depth >= MAX_DEPTH {
        read_flow(rows, body, blocks);
        return;
    }
    // Of two columns that are set to both edges every line of the page would look spread over both.
    let whole = (depth == 0).then(|| find_zones(rows.clone()));
    let zones = whole
        .filter(|zones| zones.iter().any(|zone| matches!(zone, PageZone::Columns(_))))
        .unwrap_or_else(|| find_zones(join_spread(rows)));
    for zone in zones {
        match zone {
            PageZone::Flow(rows) => read_flow(rows, body, blocks),
            PageZone::Columns(columns) => {
                for column in columns {
                    read_region(group_rows(column), depth + 1, body, blocks);
                }
            }
            PageZone::Table(rows) => match fields_of(rows) {
                Ok(fields) => blocks.extend(fields),
                Err(rows) => match build_table(rows) {
                    Ok(table) => blocks.push(table_block(table)),
                    Err(rows) => read_flow(rows, body, blocks),
                },
            },
        }
    }
}

fn read_flow<'a>(rows: Vec<PieceRow<'a>>, body: f32, blocks: &mut Vec<DraftBlock<'a>>) {
    let lines = rows.into_iter().filter_map(FlowLine::from_row).collect();
    blocks.extend(read_lines(lines, body));
}

fn table_block(table: FoundTable<'_>) -> DraftBlock<'_> {
    let FoundTable { rows, columns, cells, words } = table;
    let content = BlockContent::Table { rows, columns, cells };
    let em = median(words.iter().map(|word| word.em));
    DraftBlock { content, em, lines: rows as usize, stands_alone: false, words }
}

/// Labels with a colon and the values beside them; otherwise the rows unchanged.
fn fields_of(rows: Vec<PieceRow<'_>>) -> Result<Vec<DraftBlock<'_>>, Vec<PieceRow<'_>>> {
    let firsts = rows.iter().filter_map(|row| row.pieces.first()?.words.last());
    let labelled = firsts.filter(|word| word.text.ends_with(':')).count();
    if rows.iter().any(|row| row.pieces.len() > 2) || labelled * 5 < rows.len() * 4 {
        return Err(rows);
    }
    Ok(rows.into_iter().filter_map(field_block).collect())
}

fn field_block(row: PieceRow<'_>) -> Option<DraftBlock<'_>> {
    let mut pieces = row.pieces.into_iter();
    let first = pieces.next()?;
    let label = first.text();
    let (em, mut words) = (first.em, first.words);
    let rest: Vec<PlacedWord<'_>> = pieces.flat_map(|piece| piece.words).collect();
    let value = join_words(&rest);
    words.extend(rest);
    let content = BlockContent::FormField { label, value };
    Some(DraftBlock { content, words, em, lines: 1, stands_alone: false })
}

fn finish_page(page: &PageText, draft: DraftPage<'_>, figures: Vec<OpenFigure<'_>>) -> PageLayout {
    let blocks = draft.blocks.into_iter().map(|block| PageBlock {
        content: block.content,
        page: page.number,
        bounding_box: box_around(&block.words),
        words: spans_of(&block.words),
    });
    let mut blocks: Vec<PageBlock> = blocks.collect();
    let figures = figures.into_iter().map(|figure| {
        let (content, bounding_box, words) = figure_parts(figure);
        PageBlock { content, page: page.number, bounding_box, words: spans_of(&words) }
    });
    place_figures(&mut blocks, figures.collect(), page.height);
    PageLayout { number: page.number, source: page.source, blocks }
}

fn spans_of(words: &[PlacedWord<'_>]) -> Vec<WordSpan> {
    let mut spans: Vec<WordSpan> = Vec::new();
    for &PlacedWord { place: (line, word), .. } in words {
        match spans.last_mut() {
            Some(span) if span.line == line && span.first + span.count == word => span.count += 1,
            _ => spans.push(WordSpan { line, first: word, count: 1 }),
        }
    }
    spans
}
