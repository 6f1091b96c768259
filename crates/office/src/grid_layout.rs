//! A flow laid out on pages: every character is as wide as every other, so that positions follow
//! from the text alone.
//!
//! Sizes are points. Headings are larger by their level, entries of lists are indented by their
//! depth, the rows of a table stand further apart than the lines within a cell: the signs by which
//! `docmill-layout` recognises them.

use docmill_core::model::{BoundingBox, PageNote, TextLine, TextWord};

use crate::content::{DocumentFlow, FlowBlock, FlowCell, PaperKind};
use crate::error::OfficeError;

/// Size of running text.
const BODY_POINTS: f32 = 10.0;
/// Width of a character by the size of its letters: Courier's.
const ADVANCE: f32 = 0.6;
/// Distance of lines by the size of their letters.
const LINE_PITCH: f32 = 1.2;
/// White between blocks, and between the rows of a table besides the distance of lines.
const BLOCK_GAP: f32 = 9.0;
const ROW_GAP: f32 = 6.0;
const MARGIN: f32 = 40.0;
/// A4.
const PAGE_WIDTH: f32 = 595.0;
const PAGE_HEIGHT: f32 = 842.0;
/// A page of a sheet: about a hundred rows.
const SHEET_HEIGHT: f32 = 1880.0;
/// Characters of a line of running text on A4.
const LINE_CELLS: usize = 85;
/// Characters of a line with spaces that align it; longer lines are broken.
const VERBATIM_CELLS: usize = 160;
/// Characters of a column of a sheet; longer texts are broken.
const SHEET_COLUMN_CELLS: usize = 60;
/// Characters between columns.
const COLUMN_GAP: usize = 3;
/// Columns of a table; those behind have no width.
const MAX_COLUMNS: usize = 16_384;
/// Indentation of one level of a list, in characters.
const INDENT_CELLS: usize = 3;
/// Levels of lists that are indented.
const MAX_INDENTS: u8 = 8;

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub enum LaidPage {
    /// Words on a grid.
    Text(GridPage),
    /// The file of a picture that is the whole page.
    Picture(Vec<u8>),
}

/// Words on a page, in points.
#[derive(Debug, Clone, PartialEq)]
pub struct GridPage {
    /// Width in points.
    pub width: f32,
    /// Height in points.
    pub height: f32,
    /// Lines from top to bottom; the boxes of words are as high as their letters are large.
    pub lines: Vec<TextLine>,
    /// Remarks, each once.
    pub notes: Vec<PageNote>,
}

/// Lays a flow out on at least one page.
///
/// # Errors
/// `too_large`: more than `most_pages` pages.
pub(crate) fn lay_out_flow(
    flow: DocumentFlow,
    most_pages: u32,
) -> Result<Vec<LaidPage>, OfficeError> {
    let mut writer = PageWriter::new(flow.paper, most_pages);
    let mut tabbed: Vec<Vec<FlowCell>> = Vec::new();
    for block in flow.blocks {
        if let FlowBlock::Paragraph(text) = &block
            && text.trim_end().contains('\t')
        {
            tabbed.extend(text.lines().map(tabbed_row));
            continue;
        }
        writer.add_table(&std::mem::take(&mut tabbed))?;
        writer.add_block(block)?;
    }
    writer.add_table(&tabbed)?;
    writer.finish()
}

/// The parts of a line between tabs: they are set below those of the lines around it.
fn tabbed_row(line: &str) -> Vec<FlowCell> {
    let is_indented = line.starts_with('\t');
    let parts = line.split('\t').map(str::trim).filter(|part| !part.is_empty());
    let parts = parts.map(FlowCell::new);
    is_indented.then(|| FlowCell::new("")).into_iter().chain(parts).collect()
}

/// Columns of the grid that a character takes: two for wide ones, none for marks on others.
fn cells_of_char(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2069 | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

fn cells_of(text: &str) -> usize {
    text.chars().map(cells_of_char).sum()
}

/// Points of so many columns of the grid.
#[expect(clippy::cast_precision_loss, reason = "below 2^24: texts of a column are broken")]
fn points(cells: usize, size: f32) -> f32 {
    cells as f32 * ADVANCE * size
}

/// A word and the column of the grid that it begins in.
type PlacedPart = (usize, String);

/// Breaks a text into lines of at most `most` columns; words that are longer are broken as well.
fn wrap(text: &str, most: usize) -> Vec<Vec<PlacedPart>> {
    let mut lines = Vec::new();
    for part in text.lines() {
        let (mut line, mut at) = (Vec::new(), 0);
        for word in part.split_whitespace().flat_map(|word| break_word(word, most)) {
            let width = cells_of(&word);
            if at > 0 && at + width > most {
                lines.push(std::mem::take(&mut line));
                at = 0;
            }
            line.push((at, word));
            at += width + 1;
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// The word without control characters, in pieces of at most `most` columns.
fn break_word(word: &str, most: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut width) = (Vec::new(), String::new(), 0);
    for c in word.chars().filter(|c| !c.is_control()) {
        let wide = cells_of_char(c);
        if width + wide > most.max(2) {
            pieces.push(std::mem::take(&mut piece));
            width = 0;
        }
        piece.push(c);
        width += wide;
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// A line of which the spaces are kept, in pieces of at most [`VERBATIM_CELLS`] columns. A word that
/// does not fit begins the next piece; one that fits on none is broken.
fn verbatim_lines(text: &str) -> Vec<Vec<PlacedPart>> {
    let (mut lines, mut line, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut at, mut start) = (0, 0);
    for c in text.chars() {
        if c.is_whitespace() {
            if !word.is_empty() {
                line.push((start, std::mem::take(&mut word)));
            }
            at = if c == '\t' { (at / 8 + 1) * 8 } else { at + 1 };
            continue;
        }
        if c.is_control() {
            continue;
        }
        if at >= VERBATIM_CELLS {
            if line.is_empty() && start == 0 && !word.is_empty() {
                line.push((0, std::mem::take(&mut word)));
            }
            lines.push(std::mem::take(&mut line));
            (start, at) = (0, cells_of(&word));
        }
        if word.is_empty() {
            start = at;
        }
        word.push(c);
        at += cells_of_char(c);
    }
    if !word.is_empty() {
        line.push((start, word));
    }
    lines.push(line);
    lines
}

/// The width of each column of a table in characters, for a line of `most` if the words allow it.
fn column_widths(rows: &[Vec<FlowCell>], paper: PaperKind) -> Vec<usize> {
    let most_of_one = match paper {
        PaperKind::Document => LINE_CELLS,
        PaperKind::Sheet => SHEET_COLUMN_CELLS,
    };
    let (mut wanted, mut least): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for row in rows {
        let mut column = 0;
        for cell in row {
            let span = usize::try_from(cell.columns).unwrap_or(1).clamp(1, MAX_COLUMNS - column);
            wanted.resize(wanted.len().max(column + span), 0);
            least.resize(wanted.len(), 0);
            let line = cell.text.lines().map(line_cells).max().unwrap_or(0);
            let word = cell.text.split_whitespace().map(cells_of).max().unwrap_or(0);
            if let (1, Some(wanted), Some(least)) =
                (span, wanted.get_mut(column), least.get_mut(column))
            {
                *wanted = (*wanted).max(line.min(most_of_one));
                *least = (*least).max(word.min(most_of_one));
            }
            column += span;
            if column >= MAX_COLUMNS {
                break;
            }
        }
    }
    if paper == PaperKind::Document {
        let gaps = COLUMN_GAP * wanted.iter().filter(|width| **width > 0).count();
        let room = LINE_CELLS.saturating_sub(gaps);
        let cap = fair_cap(&wanted, room);
        for (wanted, least) in wanted.iter_mut().zip(least) {
            *wanted = (*wanted).min(cap).max(least);
        }
    }
    wanted
}

/// Columns that a line takes with single spaces between its words.
fn line_cells(line: &str) -> usize {
    line.split_whitespace().map(|word| cells_of(word) + 1).sum::<usize>().saturating_sub(1)
}

/// The width that wide columns are cut to, so that all together take `room`.
fn fair_cap(wanted: &[usize], room: usize) -> usize {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    let (mut left, mut count) = (room, sorted.len());
    for width in sorted {
        let share = left / count.max(1);
        if width > share {
            return share.max(1);
        }
        left -= width;
        count -= 1;
    }
    usize::MAX
}

/// Fills pages from top to bottom.
struct PageWriter {
    paper: PaperKind,
    most_pages: u32,
    pages: Vec<LaidPage>,
    page: GridPage,
    /// Where the next line begins.
    top: f32,
    /// Whether nothing but a gap has to come between the last block and the next.
    is_open: bool,
}

impl PageWriter {
    fn new(paper: PaperKind, most_pages: u32) -> Self {
        let pages = Vec::new();
        Self { paper, most_pages, pages, page: empty_page(), top: MARGIN, is_open: false }
    }

    fn height(&self) -> f32 {
        match self.paper {
            PaperKind::Document => PAGE_HEIGHT,
            PaperKind::Sheet => SHEET_HEIGHT,
        }
    }

    fn add_block(&mut self, block: FlowBlock) -> Result<(), OfficeError> {
        match block {
            FlowBlock::Heading { level, text } => self.add_heading(level, &text),
            FlowBlock::Paragraph(text) => self.add_text(&text, 0, BODY_POINTS),
            FlowBlock::Item { depth, marker, text } => self.add_item(depth, &marker, &text),
            FlowBlock::Table(rows) => self.add_table(&rows),
            FlowBlock::Verbatim(text) => {
                for line in verbatim_lines(&text) {
                    self.add_line(line, 0, BODY_POINTS)?;
                }
                self.is_open = true;
                Ok(())
            }
            FlowBlock::PageBreak => self.end_page(),
            FlowBlock::Picture(bytes) => {
                self.end_page()?;
                self.add_page(LaidPage::Picture(bytes))
            }
            // Parts are read before a flow is laid out.
            FlowBlock::PicturePart(_) => Ok(()),
            FlowBlock::Note(note) => {
                if !self.page.notes.contains(&note) {
                    self.page.notes.push(note);
                }
                Ok(())
            }
        }
    }

    fn add_heading(&mut self, level: u8, text: &str) -> Result<(), OfficeError> {
        let size = match level {
            0 | 1 => 20.0,
            2 => 17.0,
            3 => 14.5,
            4 => 12.8,
            _ => 11.4,
        };
        self.top += if self.is_open { BLOCK_GAP } else { 0.0 };
        self.add_text(text, 0, size)
    }

    /// Running text, from the column `indent` on.
    fn add_text(&mut self, text: &str, indent: usize, size: f32) -> Result<(), OfficeError> {
        self.begin_block();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few dozen characters"
        )]
        let most = ((PAGE_WIDTH - 2.0 * MARGIN) / (ADVANCE * size)) as usize;
        for line in wrap(text, most.saturating_sub(indent)) {
            self.add_line(line, indent, size)?;
        }
        self.is_open = true;
        Ok(())
    }

    fn add_item(&mut self, depth: u8, marker: &str, text: &str) -> Result<(), OfficeError> {
        self.begin_block();
        self.top -= if self.is_open { BLOCK_GAP - 3.0 } else { 0.0 };
        let indent = INDENT_CELLS * usize::from(depth.min(MAX_INDENTS));
        let behind = indent + cells_of(marker) + 1;
        let mut lines = wrap(text, LINE_CELLS.saturating_sub(behind).max(20)).into_iter();
        let mut first = lines.next().unwrap_or_default();
        for (at, _) in &mut first {
            *at += behind - indent;
        }
        if !marker.is_empty() {
            first.insert(0, (0, marker.split_whitespace().collect()));
        }
        self.add_line(first, indent, BODY_POINTS)?;
        for line in lines {
            self.add_line(line, behind, BODY_POINTS)?;
        }
        self.is_open = true;
        Ok(())
    }

    fn add_table(&mut self, rows: &[Vec<FlowCell>]) -> Result<(), OfficeError> {
        if rows.iter().flatten().all(|cell| cell.text.trim().is_empty()) {
            return Ok(());
        }
        let widths = column_widths(rows, self.paper);
        let mut starts = Vec::with_capacity(widths.len());
        let mut at = 0;
        for width in &widths {
            starts.push(at);
            at += if *width > 0 { width + COLUMN_GAP } else { 0 };
        }
        self.begin_block();
        for row in rows {
            self.add_row(row, &starts, at)?;
        }
        self.top -= ROW_GAP;
        self.is_open = true;
        Ok(())
    }

    /// A row whose columns begin at `starts`; the table ends at `end`.
    fn add_row(
        &mut self,
        row: &[FlowCell],
        starts: &[usize],
        end: usize,
    ) -> Result<(), OfficeError> {
        let mut lines: Vec<Vec<PlacedPart>> = Vec::new();
        let mut column = 0;
        for cell in row {
            let next = column + usize::try_from(cell.columns).unwrap_or(1).max(1);
            let start = starts.get(column).copied().unwrap_or(end);
            let stop = starts.get(next).copied().unwrap_or(end);
            column = next;
            let room = stop.saturating_sub(start + COLUMN_GAP).max(2);
            for (at, line) in wrap(&cell.text, room).into_iter().enumerate() {
                lines.resize(lines.len().max(at + 1), Vec::new());
                let placed = line.into_iter().map(|(at, word)| (start + at, word));
                lines.get_mut(at).into_iter().for_each(|line| line.extend(placed.clone()));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.keep_together(lines.len());
        for line in lines {
            self.add_line(line, 0, BODY_POINTS)?;
        }
        self.top += ROW_GAP;
        Ok(())
    }

    /// Begins a page if so many lines do not fit on this one, and would on an empty one.
    fn keep_together(&mut self, lines: usize) {
        let room = self.height() - MARGIN;
        #[expect(clippy::cast_precision_loss, reason = "lines of one row")]
        let needed = lines as f32 * LINE_PITCH * BODY_POINTS;
        if self.top + needed > room && needed < room - MARGIN {
            self.top = self.height();
        }
    }

    fn begin_block(&mut self) {
        self.top += if self.is_open { BLOCK_GAP } else { 0.0 };
    }

    fn add_line(
        &mut self,
        line: Vec<PlacedPart>,
        indent: usize,
        size: f32,
    ) -> Result<(), OfficeError> {
        if self.top + size > self.height() - MARGIN {
            self.end_page()?;
        }
        let words: Vec<TextWord> = line
            .into_iter()
            .map(|(at, text)| TextWord {
                bounding_box: BoundingBox {
                    x: MARGIN + points(indent, BODY_POINTS) + points(at, size),
                    y: self.top,
                    w: points(cells_of(&text).max(1), size),
                    h: size,
                },
                text: text.into(),
                confidence: 1.0,
                unwitnessed: false,
            })
            .collect();
        // The file states another encoding than it has.
        if words.iter().any(|word| word.text.contains(char::REPLACEMENT_CHARACTER)) {
            self.add_block(FlowBlock::Note(PageNote::DoubtfulText))?;
        }
        if !words.is_empty() {
            self.page.lines.push(TextLine { words });
        }
        self.top += LINE_PITCH * size;
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OfficeError> {
        let mut page = std::mem::replace(&mut self.page, empty_page());
        let used = self.top.min(self.height()) + MARGIN;
        (self.top, self.is_open) = (MARGIN, false);
        if page.lines.is_empty() {
            self.page.notes = page.notes;
            return Ok(());
        }
        let boxes = page.lines.iter().flat_map(|line| line.words.last());
        let right = boxes.map(|word| word.bounding_box.right()).fold(0.0, f32::max);
        page.width = PAGE_WIDTH.max(right + MARGIN);
        page.height = match self.paper {
            PaperKind::Document => PAGE_HEIGHT,
            PaperKind::Sheet => used.clamp(PAGE_WIDTH, SHEET_HEIGHT),
        };
        self.add_page(LaidPage::Text(page))
    }

    fn add_page(&mut self, page: LaidPage) -> Result<(), OfficeError> {
        let most = self.most_pages;
        if u32::try_from(self.pages.len()).is_ok_and(|pages| pages >= most) {
            let detail = format!("more than {most} pages, which limits.pages allows");
            return Err(OfficeError::too_large(detail));
        }
        self.pages.push(page);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<LaidPage>, OfficeError> {
        self.end_page()?;
        // Remarks on something behind the last line belong to the last page of text.
        let left = std::mem::take(&mut self.page.notes);
        let last = self.pages.iter_mut().rev().find_map(|page| match page {
            LaidPage::Text(page) => Some(page),
            LaidPage::Picture(_) => None,
        });
        if let Some(page) = last {
            page.notes.extend(left);
            page.notes.sort_unstable();
            page.notes.dedup();
        } else if self.pages.is_empty() {
            self.pages.push(LaidPage::Text(GridPage { notes: left, ..empty_page() }));
        }
        Ok(self.pages)
    }
}

fn empty_page() -> GridPage {
    GridPage { width: PAGE_WIDTH, height: PAGE_HEIGHT, lines: Vec::new(), notes: Vec::new() }
}
