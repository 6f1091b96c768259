//! ODT, ODS and ODP: OASIS OpenDocument 1.3 part 3.
//!
//! Read are visible text, cells as they are shown, and slides. Not read: deleted text, annotations,
//! hidden sections, text, sheets, rows and columns, notes of slides.

use std::collections::HashMap;

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::content::{
    DocumentFlow, FlowBlock, FlowCell, FlowWriter, PaperKind, SheetCellDraft, TableDraft,
};
use crate::error::OfficeError;
use crate::package::OfficePackage;
use crate::styling::{is_white, number_label};
use crate::tags::{all, attribute, child, elements, number, own_text};

/// Columns of a sheet that are read: those behind repeat emptiness.
const MAX_COLUMNS: usize = 16_384;
/// Times that a row or cell with text is repeated.
const MAX_REPEATS: u32 = 1_000;
/// Styles based on styles that are followed.
const MAX_BASES: usize = 16;
/// Centimetres each way from which on a picture is a page.
const PAGE_PICTURE: (f32, f32) = (10.5, 14.0);

/// Reads a document.
pub(crate) fn read_open_document(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let mut package = OfficePackage::open(bytes, limits)?;
    if let Some(manifest) = package.read_xml("META-INF/manifest.xml")?
        && all(manifest.parse_tree()?.root(), "encryption-data").next().is_some()
    {
        return Err(OfficeError::encrypted());
    }
    let styles_xml = package.read_xml("styles.xml")?;
    let styles_tree = styles_xml.as_ref().map(|xml| xml.parse_tree()).transpose()?;
    let xml = package.need_xml("content.xml")?;
    let tree = xml.parse_tree()?;
    let mut styles = HashMap::new();
    if let Some(tree) = &styles_tree {
        collect_styles(tree.root(), &mut styles);
    }
    collect_styles(tree.root(), &mut styles);
    let reader = OdfReader { styles };
    let mut flow = FlowWriter::new(limits);
    let body = all(tree.root(), "body").next().and_then(|it| elements(it).next());
    let body = body.ok_or_else(|| OfficeError::corrupt("an OpenDocument file without a body"))?;
    match body.tag_name().name() {
        "text" => {
            let [header, footer] = ["header", "footer"]
                .map(|name| styles_tree.as_ref().and_then(|tree| all(tree.root(), name).next()));
            let mut blocks = Vec::new();
            for part in [header, Some(body), footer].into_iter().flatten() {
                reader.read_blocks(part, 0, &mut blocks);
            }
            flow.extend_from(&mut package, blocks)?;
            Ok(flow.finish(PaperKind::Document))
        }
        "spreadsheet" => {
            reader.read_sheets(body, &mut flow)?;
            Ok(flow.finish(PaperKind::Sheet))
        }
        "presentation" | "drawing" => {
            for page in elements(body).filter(|it| it.tag_name().name() == "page") {
                if reader.style_of(page).hidden_page {
                    flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
                    continue;
                }
                flow.push(FlowBlock::PageBreak)?;
                let mut blocks = Vec::new();
                reader.read_blocks(page, 0, &mut blocks);
                blocks.sort_by_key(|block| !matches!(block, FlowBlock::Heading { .. }));
                flow.extend_from(&mut package, blocks)?;
            }
            Ok(flow.finish(PaperKind::Document))
        }
        _ => Err(OfficeError::unsupported(
            "an OpenDocument file that is neither text, spreadsheet nor presentation",
        )),
    }
}

/// A style as far as it decides what is seen.
#[derive(Debug, Clone, Default)]
struct OdfStyle {
    base: Option<String>,
    hidden: bool,
    white: bool,
    shaded: bool,
    hidden_table: bool,
    hidden_page: bool,
    starts_page: bool,
    list_forms: Vec<Option<String>>,
}

/// Keys are the family and the name.
type OdfStyles = HashMap<String, OdfStyle>;

fn collect_styles(root: XmlNode<'_, '_>, styles: &mut OdfStyles) {
    for node in root.descendants() {
        match node.tag_name().name() {
            "style" => {
                let Some(name) = attribute(node, "name") else { continue };
                styles.insert(name.to_owned(), read_style(node));
            }
            "list-style" => {
                let Some(name) = attribute(node, "name") else { continue };
                let forms = elements(node).map(|level| {
                    let is_number = level.tag_name().name() == "list-level-style-number";
                    is_number.then(|| attribute(level, "num-format").unwrap_or("1").to_owned())
                });
                let list_forms = forms.take(10).collect();
                styles.insert(name.to_owned(), OdfStyle { list_forms, ..OdfStyle::default() });
            }
            _ => {}
        }
    }
}

fn read_style(node: XmlNode<'_, '_>) -> OdfStyle {
    let mut style = OdfStyle {
        base: attribute(node, "parent-style-name").map(str::to_owned),
        ..OdfStyle::default()
    };
    for properties in elements(node) {
        let ground = attribute(properties, "background-color")
            .is_some_and(|it| it != "transparent" && !is_white(it));
        style.shaded |= ground;
        style.starts_page |= attribute(properties, "break-before") == Some("page");
        match properties.tag_name().name() {
            "text-properties" => {
                style.hidden |= attribute(properties, "display") == Some("none");
                style.white |= attribute(properties, "color").is_some_and(is_white);
                style.hidden |= attribute(properties, "font-size")
                    .is_some_and(|it| it.starts_with("0pt") || it == "1pt");
            }
            "table-properties" => {
                style.hidden_table |= attribute(properties, "display") == Some("false")
            }
            "section-properties" => {
                style.hidden |= attribute(properties, "display") == Some("none")
            }
            "drawing-page-properties" => {
                style.hidden_page |= attribute(properties, "visibility") == Some("hidden");
            }
            _ => {}
        }
    }
    style
}

struct OdfReader {
    styles: OdfStyles,
}

impl OdfReader {
    fn style(&self, name: &str) -> OdfStyle {
        let first = self.styles.get(name);
        let chain = std::iter::successors(first, |it| self.styles.get(it.base.as_deref()?));
        let mut found = first.cloned().unwrap_or_default();
        for style in chain.skip(1).take(MAX_BASES) {
            found.hidden |= style.hidden;
            found.white |= style.white;
            found.shaded |= style.shaded;
        }
        found
    }

    fn style_of(&self, node: XmlNode<'_, '_>) -> OdfStyle {
        attribute(node, "style-name").map(|name| self.style(name)).unwrap_or_default()
    }

    fn read_blocks(&self, node: XmlNode<'_, '_>, depth: u8, out: &mut Vec<FlowBlock>) {
        for item in elements(node) {
            match item.tag_name().name() {
                "h" | "p" => self.read_paragraph(item, out),
                "list" => self.read_list(item, depth, None, out),
                "table" => out.extend(self.read_table(item).into_blocks()),
                "tracked-changes" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "annotation" | "notes" => out.push(FlowBlock::Note(PageNote::Comments)),
                "section" if is_hidden_node(item) || self.style_of(item).hidden => {
                    out.push(FlowBlock::Note(PageNote::HiddenText));
                }
                "frame" | "custom-shape" | "rect" | "g" => self.read_frame(item, out),
                "section" | "index-body" | "table-of-content" | "text-box" | "a" => {
                    self.read_blocks(item, depth, out);
                }
                _ => {}
            }
        }
    }

    fn read_frame(&self, node: XmlNode<'_, '_>, out: &mut Vec<FlowBlock>) {
        let is_title = matches!(attribute(node, "class"), Some("title"));
        let start = out.len();
        self.read_blocks(node, 0, out);
        if is_title {
            for block in out.iter_mut().skip(start) {
                if let FlowBlock::Paragraph(text) = block {
                    let text = std::mem::take(text);
                    *block = FlowBlock::Heading { level: 1, text };
                }
            }
        }
        let Some(image) = child(node, "image") else { return };
        let [width, height] = ["width", "height"]
            .map(|name| attribute(node, name).and_then(centimetres).unwrap_or(0.0));
        let is_page = width >= PAGE_PICTURE.0 && height >= PAGE_PICTURE.1;
        let part = attribute(image, "href").filter(|it| it.starts_with("Pictures/") && is_page);
        out.push(match part {
            Some(part) => FlowBlock::PicturePart(part.to_owned()),
            None => FlowBlock::Note(PageNote::UnreadPicture),
        });
    }

    fn read_list(
        &self,
        node: XmlNode<'_, '_>,
        depth: u8,
        outer: Option<&str>,
        out: &mut Vec<FlowBlock>,
    ) {
        let name = attribute(node, "style-name").or(outer);
        let forms = name.map(|name| self.style(name).list_forms).unwrap_or_default();
        let form = forms.get(usize::from(depth)).cloned().flatten();
        let mut count = 0_u32;
        for item in elements(node) {
            let is_item = item.tag_name().name() == "list-item";
            count = number(item, "start-value").unwrap_or(count.saturating_add(1));
            let mut marker = match &form {
                Some(form) if is_item => format!("{}.", number_label(form, count)),
                None if is_item => "•".to_owned(),
                _ => String::new(),
            };
            for part in elements(item) {
                if part.tag_name().name() == "list" {
                    self.read_list(part, depth.saturating_add(1), name, out);
                    continue;
                }
                let mut blocks = Vec::new();
                if matches!(part.tag_name().name(), "p" | "h") {
                    self.read_paragraph(part, &mut blocks);
                }
                out.extend(blocks.into_iter().map(|block| match block {
                    FlowBlock::Paragraph(text) => {
                        FlowBlock::Item { depth, marker: std::mem::take(&mut marker), text }
                    }
                    block => block,
                }));
            }
        }
    }

    fn read_paragraph(&self, node: XmlNode<'_, '_>, out: &mut Vec<FlowBlock>) {
        let style = self.style_of(node);
        if style.starts_page {
            out.push(FlowBlock::PageBreak);
        }
        let (mut text, mut others) = (String::new(), Vec::new());
        let look = InlineLook {
            hidden: style.hidden,
            white: style.white,
            shaded: style.shaded || is_in_cell(node),
        };
        self.read_inline(node, look, &mut text, &mut others);
        if !text.trim().is_empty() {
            let level = number(node, "outline-level").and_then(|it| u8::try_from(it).ok());
            out.push(match level.filter(|_| node.tag_name().name() == "h") {
                Some(level) => FlowBlock::Heading { level, text },
                None => FlowBlock::Paragraph(text),
            });
        }
        out.append(&mut others);
    }

    fn read_inline(
        &self,
        node: XmlNode<'_, '_>,
        look: InlineLook,
        text: &mut String,
        others: &mut Vec<FlowBlock>,
    ) {
        for item in node.children() {
            if item.is_text() {
                let found = item.text().unwrap_or_default();
                if !look.is_unseen() {
                    push_collapsed(text, found);
                } else if !found.trim().is_empty() {
                    others.push(FlowBlock::Note(PageNote::HiddenText));
                }
                continue;
            }
            match item.tag_name().name() {
                "s" => {
                    let count = number(item, "c").unwrap_or(1).min(80);
                    text.extend((0..count).map(|_| ' '));
                }
                "tab" => text.push('\t'),
                "line-break" => text.push('\n'),
                "annotation" => others.push(FlowBlock::Note(PageNote::Comments)),
                "hidden-text" | "hidden-paragraph" => {
                    others.push(FlowBlock::Note(PageNote::HiddenText));
                }
                "note" => {
                    let mark = child(item, "note-citation").map(own_text).unwrap_or_default();
                    text.push_str(&format!("[{mark}]"));
                    if let Some(body) = child(item, "note-body") {
                        self.read_blocks(body, 0, others);
                    }
                }
                "frame" | "custom-shape" | "rect" | "g" => self.read_frame(item, others),
                "span" | "a" => {
                    let style = self.style_of(item);
                    let look = look.within(&style);
                    self.read_inline(item, look, text, others);
                }
                _ => self.read_inline(item, look, text, others),
            }
        }
    }

    fn read_table(&self, node: XmlNode<'_, '_>) -> TableDraft {
        let mut draft = TableDraft::default();
        for row in table_rows(node) {
            let mut cells = Vec::new();
            for cell in elements(row).filter(|it| it.tag_name().name() == "table-cell") {
                let mut blocks = Vec::new();
                self.read_blocks(cell, 0, &mut blocks);
                let columns = number(cell, "number-columns-spanned").unwrap_or(1).clamp(1, 1000);
                cells.push(SheetCellDraft { blocks, columns });
            }
            draft.rows.push(cells);
        }
        draft
    }

    fn read_sheets(
        &self,
        body: XmlNode<'_, '_>,
        flow: &mut FlowWriter<'_>,
    ) -> Result<(), OfficeError> {
        let tables = elements(body).filter(|it| it.tag_name().name() == "table");
        let (hidden, shown): (Vec<_>, Vec<_>) =
            tables.partition(|it| self.style_of(*it).hidden_table);
        if !hidden.is_empty() {
            flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
        }
        let has_names = shown.len() > 1;
        for sheet in shown {
            flow.push(FlowBlock::PageBreak)?;
            if has_names {
                let text = attribute(sheet, "name").unwrap_or_default().to_owned();
                flow.push(FlowBlock::Heading { level: 2, text })?;
            }
            self.read_sheet(sheet, flow)?;
        }
        Ok(())
    }

    fn read_sheet(
        &self,
        sheet: XmlNode<'_, '_>,
        flow: &mut FlowWriter<'_>,
    ) -> Result<(), OfficeError> {
        let hidden = hidden_columns(sheet);
        let mut rows: Vec<Vec<FlowCell>> = Vec::new();
        for row in table_rows(sheet) {
            if matches!(attribute(row, "visibility"), Some("collapse" | "filter")) {
                flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
                continue;
            }
            let cells = self.read_cells(row, &hidden, flow)?;
            if cells.iter().all(|cell| cell.text.is_empty()) {
                flush_rows(&mut rows, flow)?;
                continue;
            }
            let repeats = number(row, "number-rows-repeated").unwrap_or(1).clamp(1, MAX_REPEATS);
            let copies = usize::try_from(repeats).unwrap_or(1);
            flow.admit_cells(cells.len().saturating_mul(copies))?;
            rows.extend(std::iter::repeat_n(cells, copies));
        }
        flush_rows(&mut rows, flow)
    }

    fn read_cells(
        &self,
        row: XmlNode<'_, '_>,
        hidden: &[(usize, usize)],
        flow: &mut FlowWriter<'_>,
    ) -> Result<Vec<FlowCell>, OfficeError> {
        let (mut cells, mut column) = (Vec::new(), 0_usize);
        for cell in elements(row) {
            let repeats = number(cell, "number-columns-repeated").unwrap_or(1).max(1);
            let first = column;
            column = column.saturating_add(usize::try_from(repeats).unwrap_or(usize::MAX));
            if cell.tag_name().name() == "covered-table-cell" {
                continue;
            }
            let text = self.cell_text(cell, flow)?;
            let repeats = if text.is_empty() { repeats } else { repeats.min(MAX_REPEATS) };
            let span = number(cell, "number-columns-spanned").unwrap_or(1).clamp(1, 1000);
            for at in 0..usize::try_from(repeats).unwrap_or(0) {
                let at = first + at;
                if at >= MAX_COLUMNS {
                    break;
                }
                if hidden.iter().any(|(from, to)| (*from..*to).contains(&at)) {
                    if !text.is_empty() {
                        flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
                    }
                } else {
                    cells.push(FlowCell { text: text.clone(), columns: span });
                }
            }
        }
        let used = cells.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |at| at + 1);
        cells.truncate(used);
        Ok(cells)
    }

    /// A cell as it is shown.
    fn cell_text(
        &self,
        cell: XmlNode<'_, '_>,
        flow: &mut FlowWriter<'_>,
    ) -> Result<String, OfficeError> {
        let mut blocks = Vec::new();
        self.read_blocks(cell, 0, &mut blocks);
        let mut lines: Vec<String> = Vec::new();
        for block in blocks {
            match block {
                FlowBlock::Paragraph(text) | FlowBlock::Item { text, .. } => lines.push(text),
                FlowBlock::Note(note) => flow.push(FlowBlock::Note(note))?,
                _ => {}
            }
        }
        let style = self.style_of(cell);
        if style.white && !style.shaded && !lines.is_empty() {
            flow.push(FlowBlock::Note(PageNote::HiddenText))?;
            return Ok(String::new());
        }
        let has_value = cell.attributes().any(|it| it.name().ends_with("value"));
        if attribute(cell, "formula").is_some() && !has_value && lines.is_empty() {
            flow.push(FlowBlock::Note(PageNote::FormulaWithoutValue))?;
        }
        Ok(lines.join("\n"))
    }
}

/// The look of text within its spans.
#[derive(Debug, Clone, Copy)]
struct InlineLook {
    hidden: bool,
    white: bool,
    shaded: bool,
}

impl InlineLook {
    fn within(self, style: &OdfStyle) -> Self {
        Self {
            hidden: self.hidden || style.hidden,
            white: self.white || style.white,
            shaded: self.shaded || style.shaded,
        }
    }

    fn is_unseen(self) -> bool {
        self.hidden || self.white && !self.shaded
    }
}

/// White space in XML is one space, and none behind another (OpenDocument part 3 §6.1.2).
fn push_collapsed(text: &mut String, found: &str) {
    for c in found.chars() {
        if !c.is_whitespace() {
            text.push(c);
        } else if !text.ends_with(char::is_whitespace) {
            text.push(' ');
        }
    }
}

fn is_hidden_node(node: XmlNode<'_, '_>) -> bool {
    matches!(attribute(node, "display"), Some("none" | "condition"))
}

/// Cells and shapes may have a ground of their own, which the styles of their text do not name.
fn is_in_cell(node: XmlNode<'_, '_>) -> bool {
    node.ancestors().any(|it| {
        matches!(it.tag_name().name(), "table-cell" | "text-box" | "custom-shape" | "page")
    })
}

/// The rows of a table, also those in groups and headings.
fn table_rows<'a, 'b>(node: XmlNode<'a, 'b>) -> Vec<XmlNode<'a, 'b>> {
    let mut rows = Vec::new();
    for item in elements(node) {
        match item.tag_name().name() {
            "table-row" => rows.push(item),
            "table-header-rows" | "table-rows" | "table-row-group" => rows.extend(table_rows(item)),
            _ => {}
        }
    }
    rows
}

/// Ranges of columns that are not shown, from 0, the end not included.
fn hidden_columns(sheet: XmlNode<'_, '_>) -> Vec<(usize, usize)> {
    let (mut hidden, mut at) = (Vec::new(), 0_usize);
    let columns = sheet.descendants().filter(|it| it.tag_name().name() == "table-column");
    for column in columns {
        let repeats = number(column, "number-columns-repeated").unwrap_or(1);
        let end = at.saturating_add(usize::try_from(repeats).unwrap_or(usize::MAX));
        if matches!(attribute(column, "visibility"), Some("collapse" | "filter")) {
            hidden.push((at, end));
        }
        at = end;
    }
    hidden
}

fn flush_rows(rows: &mut Vec<Vec<FlowCell>>, flow: &mut FlowWriter<'_>) -> Result<(), OfficeError> {
    let rows = std::mem::take(rows);
    let is_list =
        rows.iter().all(|row| row.iter().filter(|cell| !cell.text.is_empty()).count() < 2);
    if is_list {
        let texts = rows.into_iter().flatten().map(|cell| FlowBlock::Paragraph(cell.text));
        return texts.into_iter().try_for_each(|block| flow.push(block));
    }
    flow.push(FlowBlock::Table(rows))
}

/// A length in centimetres.
fn centimetres(length: &str) -> Option<f32> {
    let digits = length.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: f32 = digits.parse().ok()?;
    let factor = match length.get(digits.len()..)? {
        "cm" => 1.0,
        "mm" => 0.1,
        "in" => 2.54,
        "pt" => 2.54 / 72.0,
        _ => return None,
    };
    Some(value * factor)
}
