//! The content of a document in its order, before it has positions.

use docmill_core::config::LimitsConfig;
use docmill_core::model::{PageNote, TextAmount};

use crate::error::OfficeError;
use crate::package::OfficePackage;
use crate::run_seams::{close_seams, is_blank};
use crate::styling::ListLabel;

/// Cells of all tables of one document.
const MAX_CELLS: u64 = 1_000_000;

/// Pictures of one document that are pages.
const MAX_PICTURES: usize = 200;

/// How the names of pictures end that are read as pages.
const PICTURE_ENDINGS: [&str; 8] =
    [".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp"];

/// Maximum digits of an empty entry's label that is a number of the list.
const MAX_COUNT_DIGITS: usize = 2;

/// A piece of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FlowBlock {
    /// A heading; 1 is the highest level.
    Heading { level: u8, text: String },
    /// Running text; lines that the author broke are separated by line feeds, cells by tabs.
    Paragraph(String),
    /// An entry of a list.
    Item { depth: u8, marker: String, text: String },
    /// Rows of cells.
    Table(Vec<Vec<FlowCell>>),
    /// A line with spaces that align it.
    Verbatim(String),
    /// The next block begins a page.
    PageBreak,
    /// A picture that is a page: the bytes of its file.
    Picture(Vec<u8>),
    /// The same by the name of its part, before that is read.
    PicturePart(String),
    /// A remark on the page that it stands on.
    Note(PageNote),
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FlowCell {
    pub(crate) text: String,
    /// Columns that it covers, at least 1.
    pub(crate) columns: u32,
}

impl FlowCell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), columns: 1 }
    }
}

/// The pages that a flow is laid out on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaperKind {
    /// A4, wider where a table needs it.
    Document,
    /// As wide as its columns.
    Sheet,
}

/// A whole document.
#[derive(Debug)]
pub(crate) struct DocumentFlow {
    pub(crate) blocks: Vec<FlowBlock>,
    pub(crate) paper: PaperKind,
}

/// Collects blocks, and counts their text against the limits.
#[derive(Debug)]
pub(crate) struct FlowWriter<'a> {
    limits: &'a LimitsConfig,
    blocks: Vec<FlowBlock>,
    amount: TextAmount,
    cells: u64,
    pictures: usize,
}

impl<'a> FlowWriter<'a> {
    pub(crate) fn new(limits: &'a LimitsConfig) -> Self {
        Self { limits, blocks: Vec::new(), amount: TextAmount::default(), cells: 0, pictures: 0 }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// `too_large`: more text or cells than a document may have.
    pub(crate) fn push(&mut self, mut block: FlowBlock) -> Result<(), OfficeError> {
        if close_block(&mut block) {
            self.blocks.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        match &block {
            FlowBlock::Heading { text, .. }
            | FlowBlock::Paragraph(text)
            | FlowBlock::Item { text, .. }
            | FlowBlock::Verbatim(text) => {
                if text.trim().is_empty() && !matches!(block, FlowBlock::Verbatim(_)) {
                    return Ok(());
                }
                self.count_text(text)?;
            }
            FlowBlock::Table(rows) => {
                self.admit_cells(rows.iter().map(Vec::len).sum())?;
                for cell in rows.iter().flatten().filter(|cell| !cell.text.is_empty()) {
                    self.count_text(&cell.text)?;
                }
            }
            FlowBlock::Note(note) => {
                if matches!(self.blocks.last(), Some(FlowBlock::Note(last)) if last == note) {
                    return Ok(());
                }
            }
            FlowBlock::PageBreak | FlowBlock::Picture(_) | FlowBlock::PicturePart(_) => {}
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Counts cells that are about to be kept, before memory is taken for them.
    ///
    /// # Errors
    /// `too_large`: more cells than a document may have.
    pub(crate) fn admit_cells(&mut self, count: usize) -> Result<(), OfficeError> {
        self.cells = self.cells.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.cells > MAX_CELLS {
            return Err(OfficeError::too_large(format!("tables of more than {MAX_CELLS} cells")));
        }
        Ok(())
    }

    pub(crate) fn extend(&mut self, blocks: Vec<FlowBlock>) -> Result<(), OfficeError> {
        blocks.into_iter().try_for_each(|block| self.push(block))
    }

    /// Adds blocks and reads the pictures among them. One in a format that is not read becomes a
    /// remark.
    pub(crate) fn extend_from(
        &mut self,
        package: &mut OfficePackage<'_>,
        blocks: Vec<FlowBlock>,
    ) -> Result<(), OfficeError> {
        for block in blocks {
            let block = match block {
                FlowBlock::PicturePart(part) => self.read_picture(package, &part)?,
                block => block,
            };
            self.push(block)?;
        }
        Ok(())
    }

    fn read_picture(
        &mut self,
        package: &mut OfficePackage<'_>,
        part: &str,
    ) -> Result<FlowBlock, OfficeError> {
        self.pictures += 1;
        if self.pictures > MAX_PICTURES {
            let detail = format!("more than {MAX_PICTURES} pictures of the size of a page");
            return Err(OfficeError::too_large(detail));
        }
        let name = part.to_ascii_lowercase();
        let bytes = match PICTURE_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            true => package.read_part(part, u64::MAX)?,
            false => None,
        };
        Ok(bytes.map_or(FlowBlock::Note(PageNote::UnreadPicture), FlowBlock::Picture))
    }

    pub(crate) fn finish(self, paper: PaperKind) -> DocumentFlow {
        DocumentFlow { blocks: self.blocks, paper }
    }

    fn count_text(&mut self, text: &str) -> Result<(), OfficeError> {
        // Bidirectional controls show letters in another order than the file's.
        if text.contains(['\u{202d}', '\u{202e}']) && text.contains(|c: char| c.is_numeric()) {
            self.blocks.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        let words = text.split_whitespace().count();
        self.amount.words += u64::try_from(words).unwrap_or(u64::MAX);
        self.amount.letters += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.amount.lines += 1;
        let limit = self.limits.text_bytes.0;
        if self.amount.memory_bytes() > limit {
            let detail = format!("text of more than {limit} bytes, which limits.text_bytes allows");
            return Err(OfficeError::too_large(detail));
        }
        Ok(())
    }
}

/// A table whose cells hold blocks.
#[derive(Debug, Default)]
pub(crate) struct TableDraft {
    pub(crate) rows: Vec<Vec<SheetCellDraft>>,
}

/// A cell with the blocks in it.
#[derive(Debug, Default)]
pub(crate) struct SheetCellDraft {
    pub(crate) blocks: Vec<FlowBlock>,
    pub(crate) columns: u32,
}

impl SheetCellDraft {
    fn is_plain(&self) -> bool {
        !self.blocks.iter().any(|it| {
            matches!(
                it,
                FlowBlock::Table(_)
                    | FlowBlock::Picture(_)
                    | FlowBlock::PicturePart(_)
                    | FlowBlock::PageBreak
            )
        })
    }

    fn into_cell(self, notes: &mut Vec<FlowBlock>) -> FlowCell {
        let mut text = String::new();
        for block in self.blocks {
            let (marker, line) = match block {
                FlowBlock::Item { marker, text, .. } => (marker, text),
                FlowBlock::Heading { text, .. }
                | FlowBlock::Paragraph(text)
                | FlowBlock::Verbatim(text) => (String::new(), text),
                note @ FlowBlock::Note(_) => {
                    notes.push(note);
                    continue;
                }
                FlowBlock::Table(_)
                | FlowBlock::PageBreak
                | FlowBlock::Picture(_)
                | FlowBlock::PicturePart(_) => continue,
            };
            if !text.is_empty() {
                text.push('\n');
            }
            if !marker.is_empty() {
                text.push_str(&marker);
                text.push(' ');
            }
            text.push_str(&line);
        }
        FlowCell { text, columns: self.columns.max(1) }
    }
}

impl TableDraft {
    /// The table as blocks. One that holds tables, or has one column, arranges the page: its cells
    /// are read one after the other.
    pub(crate) fn into_blocks(self) -> Vec<FlowBlock> {
        let is_frame = self.rows.iter().flatten().any(|cell| !cell.is_plain())
            || self.rows.iter().all(|row| row.len() < 2);
        let mut blocks = Vec::new();
        let mut rows = Vec::new();
        for row in self.rows {
            if !is_frame {
                rows.push(row.into_iter().map(|cell| cell.into_cell(&mut blocks)).collect());
                continue;
            }
            let is_plain = row.len() > 1 && row.iter().all(SheetCellDraft::is_plain);
            if is_plain {
                let cells = row.into_iter().map(|cell| cell.into_cell(&mut blocks)).collect();
                blocks.push(FlowBlock::Table(vec![cells]));
            } else {
                blocks.extend(row.into_iter().flat_map(|cell| cell.blocks));
            }
        }
        if !rows.is_empty() {
            blocks.push(FlowBlock::Table(rows));
        }
        blocks
    }
}

/// Adds a paragraph as a heading or list item, with its label. The label of an empty item is
/// visible, and may be an amount.
pub(crate) fn push_labelled(
    heading: Option<u8>,
    label: Option<(u8, ListLabel)>,
    text: String,
    out: &mut Vec<FlowBlock>,
) {
    if is_blank(&text) {
        let alone = label.as_ref().and_then(|(_, label)| label.alone());
        if alone.is_some_and(|it| it.chars().filter(|c| c.is_numeric()).count() > MAX_COUNT_DIGITS)
        {
            out.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        out.extend(alone.map(|it| FlowBlock::Paragraph(it.to_owned())));
        return;
    }
    if label.as_ref().is_some_and(|(_, label)| label.joins(&text)) {
        out.push(FlowBlock::Note(PageNote::DoubtfulText));
    }
    out.push(match (heading, label) {
        (Some(level), Some((_, label))) => {
            FlowBlock::Heading { level, text: format!("{} {text}", label.marker(&text)) }
        }
        (Some(level), None) => FlowBlock::Heading { level, text },
        (None, Some((depth, label))) => {
            FlowBlock::Item { depth, marker: label.marker(&text), text }
        }
        (None, None) => FlowBlock::Paragraph(text),
    });
}

/// Removes the seams of a block. Returns whether one was within a number.
fn close_block(block: &mut FlowBlock) -> bool {
    match block {
        FlowBlock::Heading { text, .. }
        | FlowBlock::Paragraph(text)
        | FlowBlock::Item { text, .. }
        | FlowBlock::Verbatim(text) => close_seams(text),
        FlowBlock::Table(rows) => {
            let mut is_uneven = false;
            for cell in rows.iter_mut().flatten() {
                is_uneven |= close_seams(&mut cell.text);
            }
            is_uneven
        }
        _ => false,
    }
}
