//! Office documents, web pages and text files as pages of words with positions.
//!
//! Each file becomes a flow of headings, paragraphs, lists and tables, and that flow is laid out on
//! pages of a fixed grid: the same bytes give the same positions. Sheets and slides begin pages of
//! their own. Text that a person does not see is not read: hidden sheets, rows, columns and runs,
//! deleted text, comments; a [`PageNote`](docmill_core::model::PageNote) records that there was some.
//!
//! Nothing is run and nothing is fetched: macros, links, templates and pictures from elsewhere are
//! skipped, and formulas have the values that were stored with them. Part sizes, members, cells,
//! nesting and text are bounded, and every bound is named in the error. Not promised: the look of
//! the page in the program that wrote it.

mod bindings;
mod cell_area;
mod cell_format;
mod colours;
mod conditional_format;
mod content;
mod decode;
mod delimited;
mod element_look;
mod error;
mod fields;
mod format;
mod grid_layout;
mod html;
mod number_code;
mod odf_styles;
mod opendocument;
mod package;
mod rich_text;
mod run_seams;
mod shapes;
mod slides;
mod stored_formula;
mod style_sheet;
mod styling;
mod tags;
mod word;
mod word_styles;
mod workbook;

use docmill_core::config::LimitsConfig;

pub use error::OfficeError;
pub use format::{OfficeFormat, describe_unread, sniff_office, sniff_text};
pub use grid_layout::{GridPage, LaidPage};
pub use html::OTHER_TEXT_MARK;

/// Lays the document out on pages.
///
/// # Errors
/// [`OfficeError`]: it is damaged, encrypted, of another format, or exceeds a limit.
pub fn lay_out_document(
    bytes: &[u8],
    format: OfficeFormat,
    limits: &LimitsConfig,
) -> Result<Vec<LaidPage>, OfficeError> {
    let flow = match format {
        OfficeFormat::Docx | OfficeFormat::Xlsx | OfficeFormat::Pptx => {
            read_open_xml(bytes, limits)
        }
        OfficeFormat::Odt | OfficeFormat::Ods | OfficeFormat::Odp => {
            opendocument::read_open_document(bytes, limits)
        }
        OfficeFormat::Rtf => rich_text::read_rich_text(bytes, limits),
        OfficeFormat::Html => html::read_web_page(bytes, limits),
        OfficeFormat::Csv => delimited::read_table_text(bytes, limits),
        OfficeFormat::Text => delimited::read_plain_text(bytes, limits),
    }?;
    grid_layout::lay_out_flow(flow, limits.pages)
}

fn read_open_xml(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<content::DocumentFlow, OfficeError> {
    let mut package = package::OfficePackage::open(bytes, limits)?;
    let main = package.find_main_part()?;
    match main.kind {
        package::MainPartKind::Document => word::read_word(package, &main, limits),
        package::MainPartKind::Workbook => workbook::read_workbook(package, &main, limits),
        package::MainPartKind::Slides => slides::read_slides(package, &main, limits),
    }
}

#[cfg(test)]
mod tests;
