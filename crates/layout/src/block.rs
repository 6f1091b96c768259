//! The blocks of a page. `docmill transcribe --format json` prints the serialised form.

use docmill_core::model::{BoundingBox, PageSource};
use serde::{Deserialize, Serialize};

/// The blocks of a document, page by page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DocumentLayout {
    /// The pages, in the order of the transcript.
    pub pages: Vec<PageLayout>,
}

/// The blocks of one page in reading order: headers first, footers and page numbers last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageLayout {
    /// Number of the page, starting at 1.
    pub number: u32,
    /// By which method its text was read.
    pub source: PageSource,
    /// The blocks.
    pub blocks: Vec<PageBlock>,
}

/// Something on a page that is read as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageBlock {
    /// Its type and text.
    #[serde(flatten)]
    pub content: BlockContent,
    /// Number of its page, starting at 1.
    pub page: u32,
    /// The smallest box around its words, of a figure around what is drawn; in the unit of the page's
    /// boxes.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
    /// Which words of the page's lines it has, in the order in which they are read.
    pub words: Vec<WordSpan>,
}

/// Words of one line that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordSpan {
    /// Index of the line among the page's lines.
    pub line: u32,
    /// Index of the first word in the line.
    pub first: u32,
    /// Number of words, at least 1.
    pub count: u32,
}

/// The type of a block, with its text. Line feeds separate the lines of a text; the cells of tables
/// are one line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockContent {
    /// The name of the document.
    Title {
        /// The words.
        text: String,
    },
    /// A heading.
    Heading {
        /// 1 for the outermost; at most 6.
        level: u8,
        /// The words.
        text: String,
    },
    /// Running text, or anything that is nothing else.
    Paragraph {
        /// The words.
        text: String,
    },
    /// Entries with a mark or number each.
    List {
        /// The entries, at least one.
        items: Vec<ListItem>,
    },
    /// Cells in rows and columns.
    Table {
        /// Number of rows.
        rows: u32,
        /// Number of columns, at least 2.
        columns: u32,
        /// Cells with words, row by row; a place that no cell covers is empty.
        cells: Vec<TableCell>,
    },
    /// A picture or drawing.
    Figure {
        /// The words on it; mostly none.
        text: String,
    },
    /// Writing by hand where people sign.
    Signature {
        /// The text read from it; mostly wrong or empty.
        text: String,
    },
    /// A stamp.
    Stamp {
        /// The text read from it.
        text: String,
    },
    /// The description of a figure or table.
    Caption {
        /// The words.
        text: String,
    },
    /// Text at the top of every page.
    Header {
        /// The words.
        text: String,
    },
    /// Text at the bottom of every page.
    Footer {
        /// The words.
        text: String,
    },
    /// The printed number of the page.
    PageNumber {
        /// The words, e.g. `Page 2 of 3`.
        text: String,
    },
    /// A note at the foot of the page or column.
    Footnote {
        /// The words, with its mark.
        text: String,
    },
    /// A label with what was filled in beside it.
    FormField {
        /// The label, with its colon if it has one.
        label: String,
        /// The value; empty if nothing was filled in.
        value: String,
    },
    /// A box that was ticked or not, as a sign of its own in the text.
    Checkbox {
        /// Whether it is ticked.
        checked: bool,
        /// The sign and the words beside it.
        text: String,
    },
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListItem {
    /// Its mark or number as printed, e.g. `•` or `2.`.
    pub marker: String,
    /// The words behind the mark.
    pub text: String,
    /// 0 for the outermost entries.
    pub depth: u8,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableCell {
    /// Row of its top left place, from 0.
    pub row: u32,
    /// Column of its top left place, from 0.
    pub column: u32,
    /// Rows that it covers, at least 1.
    pub row_span: u32,
    /// Columns that it covers, at least 1.
    pub column_span: u32,
    /// Its words on one line.
    pub text: String,
    /// The smallest box around its words.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
}

impl BlockContent {
    /// Its words without its structure: one line per entry or row, cells separated by tabs.
    pub fn text(&self) -> String {
        match self {
            Self::Title { text }
            | Self::Heading { text, .. }
            | Self::Paragraph { text }
            | Self::Figure { text }
            | Self::Signature { text }
            | Self::Stamp { text }
            | Self::Caption { text }
            | Self::Header { text }
            | Self::Footer { text }
            | Self::PageNumber { text }
            | Self::Footnote { text }
            | Self::Checkbox { text, .. } => text.clone(),
            Self::FormField { label, value } => format!("{label} {value}").trim_end().to_owned(),
            Self::List { items } => {
                let lines: Vec<String> = items.iter().map(ListItem::line).collect();
                lines.join("\n")
            }
            Self::Table { rows, cells, .. } => table_lines(*rows, cells).join("\n"),
        }
    }
}

impl ListItem {
    /// The entry with its mark, indented by its depth.
    pub(super) fn line(&self) -> String {
        let indent = "  ".repeat(usize::from(self.depth));
        format!("{indent}{} {}", self.marker, self.text).trim_end().to_owned()
    }
}

/// The rows of a table, cells separated by tabs.
pub(super) fn table_lines(rows: u32, cells: &[TableCell]) -> Vec<String> {
    let mut lines = vec![String::new(); rows as usize];
    let mut reached = vec![0; rows as usize];
    for cell in cells {
        let row = cell.row as usize;
        let (Some(line), Some(column)) = (lines.get_mut(row), reached.get_mut(row)) else {
            continue;
        };
        while *column < cell.column {
            line.push('\t');
            *column += 1;
        }
        line.push_str(&cell.text);
    }
    lines
}
