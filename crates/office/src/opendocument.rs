//! ODT, ODS and ODP: OASIS OpenDocument 1.3 part 3.
//!
//! Read are visible text, cells as they are shown, and slides. Not read: deleted and crossed-out
//! text, text in the colour of its ground, annotations, hidden sections, text, sheets, rows and
//! columns, notes of slides. A cell whose text is not its stored number is noted as doubtful.

use std::collections::HashMap;

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::colours::WHITE;
use crate::content::{
    DocumentFlow, FlowBlock, FlowCell, FlowWriter, PaperKind, SheetCellDraft, TableDraft,
    push_labelled,
};
use crate::error::OfficeError;
use crate::odf_styles::{InlineLook, OdfStyle, OdfStyles, centimetres, collect_styles, hash_of};
use crate::package::OfficePackage;
use crate::run_seams::{LastLook, is_blank, mark_drawing};
use crate::styling::{LabelGap, ListLabel};
use crate::tags::{all, attribute, child, elements, number, own_text};

/// Columns of a sheet that are read: those behind repeat emptiness.
const MAX_COLUMNS: usize = 16_384;
/// Times that a row or cell with text is repeated.
const MAX_REPEATS: u32 = 1_000;
/// Decimals of a cell's text that are compared with its number.
const MAX_PLACES: usize = 12;
/// Styles based on styles that are followed.
const MAX_BASES: usize = 16;
/// Centimetres each way from which on a picture is a page.
const PAGE_PICTURE: (f32, f32) = (10.5, 14.0);

/// Shapes that may have text.
const FRAMES: [&str; 13] = [
    "frame",
    "custom-shape",
    "rect",
    "g",
    "ellipse",
    "circle",
    "polygon",
    "regular-polygon",
    "path",
    "line",
    "polyline",
    "connector",
    "caption",
];
/// Longest side of a shape that may be a sign or a digit.
const MAX_SIGN_CENTIMETRES: f32 = 1.0;

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
    let pages = styles_tree.iter().flat_map(|tree| all(tree.root(), "page-layout-properties"));
    let mut grounds = pages.filter_map(|it| attribute(it, "background-color"));
    let is_painted = grounds.any(|it| it != "transparent");
    let look = InlineLook { ground: (!is_painted).then_some(WHITE), ..InlineLook::default() };
    let reader = OdfReader { styles, values: field_values(tree.root()) };
    let frame = BlockFrame { depth: 0, look };
    let mut flow = FlowWriter::new(limits);
    let body = all(tree.root(), "body").next().and_then(|it| elements(it).next());
    let body = body.ok_or_else(|| OfficeError::corrupt("an OpenDocument file without a body"))?;
    match body.tag_name().name() {
        "text" => {
            let [header, footer] = ["header", "footer"]
                .map(|name| styles_tree.as_ref().and_then(|tree| all(tree.root(), name).next()));
            let mut blocks = Vec::new();
            for part in [header, Some(body), footer].into_iter().flatten() {
                reader.read_blocks(part, frame, &mut blocks);
            }
            flow.extend_from(&mut package, blocks)?;
            Ok(flow.finish(PaperKind::Document))
        }
        "spreadsheet" => {
            reader.read_sheets(body, look, &mut flow)?;
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
                // Slides have the ground of their master.
                let look = InlineLook { ground: None, ..look };
                reader.read_blocks(page, BlockFrame { depth: 0, look }, &mut blocks);
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

/// List depth and text style around a block.
#[derive(Debug, Clone, Copy)]
struct BlockFrame {
    depth: u8,
    look: InlineLook,
}

struct OdfReader {
    styles: OdfStyles,
    /// The values of fields by their names, of those that have one value.
    values: HashMap<String, Option<String>>,
}

impl OdfReader {
    fn style(&self, name: &str) -> OdfStyle {
        let first = self.styles.get(name);
        let chain = std::iter::successors(first, |it| self.styles.get(it.base.as_deref()?));
        let mut found = first.cloned().unwrap_or_default();
        for style in chain.skip(1).take(MAX_BASES) {
            found.hidden |= style.hidden;
            found.struck = found.struck.or(style.struck);
            found.ink = found.ink.or(style.ink);
            found.ground = found.ground.or(style.ground);
            found.letters = found.letters.or(style.letters);
        }
        found
    }

    fn style_of(&self, node: XmlNode<'_, '_>) -> OdfStyle {
        attribute(node, "style-name").map(|name| self.style(name)).unwrap_or_default()
    }

    fn read_blocks(&self, node: XmlNode<'_, '_>, frame: BlockFrame, out: &mut Vec<FlowBlock>) {
        for item in elements(node) {
            match item.tag_name().name() {
                "h" | "p" => self.read_paragraph(item, frame.look, out),
                "list" => self.read_list(item, frame, None, out),
                "numbered-paragraph" => self.read_numbered(item, frame, out),
                "table" => {
                    let look = frame.look.within(&self.style_of(item));
                    out.extend(self.read_table(item, look).into_blocks());
                }
                "tracked-changes" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "annotation" | "notes" => out.push(FlowBlock::Note(PageNote::Comments)),
                "section" if is_hidden_node(item) || self.style_of(item).hidden => {
                    out.push(FlowBlock::Note(PageNote::HiddenText));
                }
                name if FRAMES.contains(&name) => self.read_frame(item, frame.look, out),
                "section" | "index-body" | "table-of-content" | "text-box" | "a" => {
                    self.read_blocks(item, frame, out);
                }
                _ => {}
            }
        }
    }

    fn read_frame(&self, node: XmlNode<'_, '_>, look: InlineLook, out: &mut Vec<FlowBlock>) {
        let is_title = matches!(attribute(node, "class"), Some("title"));
        let start = out.len();
        let style = self.style_of(node);
        // Shapes without a fill of their own have that of a style which is not read.
        let is_shape = !matches!(node.tag_name().name(), "frame" | "g");
        let outer = InlineLook { ground: look.ground.filter(|_| !is_shape), ..look };
        self.read_blocks(node, BlockFrame { depth: 0, look: outer.within(&style) }, out);
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
        frame: BlockFrame,
        outer: Option<&str>,
        out: &mut Vec<FlowBlock>,
    ) {
        let BlockFrame { depth, look } = frame;
        let name = attribute(node, "style-name").or(outer);
        let levels = name.map(|name| self.style(name).list_levels).unwrap_or_default();
        let level = levels.get(usize::from(depth));
        let mut next = level.map_or(1, |it| it.start);
        for item in elements(node) {
            let count = number(item, "start-value").unwrap_or(next);
            let mut label = None;
            if item.tag_name().name() == "list-item" {
                next = count.saturating_add(1);
                let usual = || ListLabel::bullet("•", LabelGap::Wide);
                label = Some(level.map_or_else(usual, |it| it.label(count)));
            }
            for part in elements(item) {
                match part.tag_name().name() {
                    "list" => {
                        let inner = BlockFrame { depth: depth.saturating_add(1), look };
                        self.read_list(part, inner, name, out);
                    }
                    "p" | "h" => {
                        let label = label.take().unwrap_or_default();
                        self.read_entry(part, frame, label, out);
                    }
                    _ => {}
                }
            }
        }
    }

    /// A paragraph that is an entry of a list elsewhere: its label is the one that was stored.
    fn read_numbered(&self, node: XmlNode<'_, '_>, frame: BlockFrame, out: &mut Vec<FlowBlock>) {
        let level = number(node, "list-level").unwrap_or(1).saturating_sub(1);
        let depth = u8::try_from(level).unwrap_or(u8::MAX);
        let gap = self.style_of(node).list_levels.get(usize::from(depth)).map(|it| it.gap);
        let stored = child(node, "number").map(own_text).unwrap_or_default();
        let mut label = Some(ListLabel::new(stored, gap.unwrap_or_default()));
        for part in elements(node).filter(|it| matches!(it.tag_name().name(), "p" | "h")) {
            let label = label.take().unwrap_or_default();
            self.read_entry(part, BlockFrame { depth, ..frame }, label, out);
        }
    }

    /// A paragraph of an entry of a list. The label is that of the first text in it.
    fn read_entry(
        &self,
        node: XmlNode<'_, '_>,
        frame: BlockFrame,
        label: ListLabel,
        out: &mut Vec<FlowBlock>,
    ) {
        let (mut blocks, mut label) = (Vec::new(), Some(label));
        self.read_paragraph(node, frame.look, &mut blocks);
        for block in blocks {
            let (heading, text) = match block {
                FlowBlock::Paragraph(text) => (None, text),
                FlowBlock::Heading { level, text } => (Some(level), text),
                block => {
                    out.push(block);
                    continue;
                }
            };
            let label = label.take().unwrap_or_default();
            let is_plain_heading = heading.is_some() && label.is_empty();
            push_labelled(heading, (!is_plain_heading).then_some((frame.depth, label)), text, out);
        }
        push_labelled(None, label.map(|label| (frame.depth, label)), String::new(), out);
    }

    fn read_paragraph(&self, node: XmlNode<'_, '_>, outer: InlineLook, out: &mut Vec<FlowBlock>) {
        let style = self.style_of(node);
        if style.starts_page {
            out.push(FlowBlock::PageBreak);
        }
        let (mut inline, mut others) = (InlineText::default(), Vec::new());
        self.read_inline(node, outer.within(&style), &mut inline, &mut others);
        let text = inline.text;
        if !is_blank(&text) {
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
        inline: &mut InlineText,
        others: &mut Vec<FlowBlock>,
    ) {
        for item in node.children() {
            if item.is_text() {
                let found = item.text().unwrap_or_default();
                match look.note() {
                    None => {
                        inline.last_look.begin(look.letters, &mut inline.text);
                        push_collapsed(&mut inline.text, found);
                    }
                    Some(_) if found.trim().is_empty() => {}
                    Some(note) => others.push(FlowBlock::Note(note)),
                }
                continue;
            }
            match item.tag_name().name() {
                "s" => {
                    let count = number(item, "c").unwrap_or(1).min(80);
                    inline.text.extend((0..count).map(|_| ' '));
                }
                "tab" => inline.text.push('\t'),
                "line-break" => inline.text.push('\n'),
                "annotation" => others.push(FlowBlock::Note(PageNote::Comments)),
                // Programs re-evaluate the condition.
                "hidden-paragraph" => others.push(FlowBlock::Note(PageNote::DoubtfulText)),
                "hidden-text" => {
                    others.push(FlowBlock::Note(match attribute(item, "string-value") {
                        Some(text) if text.contains(char::is_numeric) => PageNote::DoubtfulText,
                        _ => PageNote::HiddenText,
                    }))
                }
                "note" => {
                    let mark = child(item, "note-citation").map(own_text).unwrap_or_default();
                    inline.text.push_str(&format!("[{mark}]"));
                    if let Some(body) = child(item, "note-body") {
                        self.read_blocks(body, BlockFrame { depth: 0, look }, others);
                    }
                }
                name if FRAMES.contains(&name) => {
                    if is_within_line(item) {
                        mark_drawing(&mut inline.text);
                    }
                    self.read_frame(item, look, others);
                }
                "span" | "a" => {
                    let style = self.style_of(item);
                    let look = look.within(&style);
                    self.read_inline(item, look, inline, others);
                }
                // Values of fields, which programs recompute.
                name => {
                    if self.is_calculated_anew(item) {
                        others.push(FlowBlock::Note(PageNote::DoubtfulText));
                    }
                    let letters = hash_of(&(look.letters, name));
                    self.read_inline(item, InlineLook { letters, ..look }, inline, others);
                }
            }
        }
    }

    /// Whether a field has another value than its text.
    fn is_calculated_anew(&self, field: XmlNode<'_, '_>) -> bool {
        let text: String =
            field.descendants().filter(|it| it.is_text()).filter_map(|it| it.text()).collect();
        let kind = field.tag_name().name();
        let is_named = ["-get", "-input"].iter().any(|ending| kind.ends_with(ending));
        let name = attribute(field, "name").filter(|_| is_named);
        let named = name.and_then(|name| self.values.get(name)?.as_deref());
        let formula = attribute(field, "formula").and_then(|it| it.split_once(':'));
        let stated = [attribute(field, "value"), formula.map(|(_, it)| it), named];
        let branches =
            ["string-value-if-true", "string-value-if-false"].map(|it| attribute(field, it));
        stated.into_iter().flatten().any(|value| match value.trim().parse() {
            Ok(value) => contradicts(&text, value, text.contains('%')),
            Err(_) => named == Some(value) && digits_of(value) != digits_of(&text),
        }) || branches.into_iter().flatten().any(|it| digits_of(it) != digits_of(&text))
    }

    fn read_table(&self, node: XmlNode<'_, '_>, look: InlineLook) -> TableDraft {
        let mut draft = TableDraft::default();
        for row in table_rows(node) {
            let mut cells = Vec::new();
            for cell in elements(row).filter(|it| it.tag_name().name() == "table-cell") {
                let mut blocks = Vec::new();
                let look = look.within(&self.style_of(cell));
                self.read_blocks(cell, BlockFrame { depth: 0, look }, &mut blocks);
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
        look: InlineLook,
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
            self.read_sheet(sheet, look, flow)?;
        }
        Ok(())
    }

    fn read_sheet(
        &self,
        sheet: XmlNode<'_, '_>,
        look: InlineLook,
        flow: &mut FlowWriter<'_>,
    ) -> Result<(), OfficeError> {
        let columns = self.sheet_columns(sheet);
        let mut rows: Vec<Vec<FlowCell>> = Vec::new();
        for row in table_rows(sheet) {
            if is_collapsed(row) || self.style_of(row).is_flat {
                flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
                continue;
            }
            let cells = self.read_cells(row, &columns, look, flow)?;
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
        columns: &[OdfColumns<'_>],
        look: InlineLook,
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
            // A cell without a style has that of its row or column.
            let usual = columns.iter().find(|it| (it.first..it.end).contains(&first));
            let style = ["style-name", "default-cell-style-name"]
                .iter()
                .zip([cell, row])
                .find_map(|(name, node)| attribute(node, name))
                .or_else(|| usual.and_then(|it| it.style))
                .map(|name| self.style(name))
                .unwrap_or_default();
            let text = self.cell_text(cell, look.within(&style), flow)?;
            let repeats = if text.is_empty() { repeats } else { repeats.min(MAX_REPEATS) };
            let span = number(cell, "number-columns-spanned").unwrap_or(1).clamp(1, 1000);
            for at in 0..usize::try_from(repeats).unwrap_or(0) {
                let at = first + at;
                if at >= MAX_COLUMNS {
                    break;
                }
                if columns.iter().any(|it| it.is_hidden && (it.first..it.end).contains(&at)) {
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
        look: InlineLook,
        flow: &mut FlowWriter<'_>,
    ) -> Result<String, OfficeError> {
        let mut blocks = Vec::new();
        self.read_blocks(cell, BlockFrame { depth: 0, look }, &mut blocks);
        let mut lines: Vec<String> = Vec::new();
        for block in blocks {
            match block {
                FlowBlock::Paragraph(text) | FlowBlock::Item { text, .. } => lines.push(text),
                FlowBlock::Note(note) => flow.push(FlowBlock::Note(note))?,
                _ => {}
            }
        }
        let has_value = cell.attributes().any(|it| it.name().ends_with("value"));
        if attribute(cell, "formula").is_some() && !has_value && lines.is_empty() {
            flow.push(FlowBlock::Note(PageNote::FormulaWithoutValue))?;
        }
        let text = lines.join("\n");
        let value = attribute(cell, "value").and_then(|it| it.parse().ok());
        let is_percent = attribute(cell, "value-type") == Some("percentage");
        if value.is_some_and(|value| contradicts(&text, value, is_percent)) {
            flow.push(FlowBlock::Note(PageNote::DoubtfulText))?;
        }
        Ok(text)
    }

    /// The columns of a sheet in their order.
    fn sheet_columns<'a>(&self, sheet: XmlNode<'a, '_>) -> Vec<OdfColumns<'a>> {
        let (mut found, mut first) = (Vec::new(), 0_usize);
        for column in all(sheet, "table-column") {
            let repeats = number(column, "number-columns-repeated").unwrap_or(1);
            let end = first.saturating_add(usize::try_from(repeats).unwrap_or(usize::MAX));
            found.push(OdfColumns {
                first,
                end,
                is_hidden: is_collapsed(column) || self.style_of(column).is_flat,
                style: attribute(column, "default-cell-style-name"),
            });
            first = end;
        }
        found
    }
}

/// The values that fields of a name have, if it is one.
fn field_values(root: XmlNode<'_, '_>) -> HashMap<String, Option<String>> {
    let mut values = HashMap::new();
    let sources = root.descendants();
    for node in
        sources.filter(|it| matches!(it.tag_name().name(), "user-field-decl" | "variable-set"))
    {
        let value = attribute(node, "value").or_else(|| attribute(node, "string-value"));
        if let (Some(name), Some(value)) = (attribute(node, "name"), value) {
            let known = values.entry(name.to_owned()).or_insert_with(|| Some(value.to_owned()));
            if known.as_deref() != Some(value) {
                *known = None;
            }
        }
    }
    values
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| c.is_numeric()).collect()
}

/// Whether a shape without text is inline, or as small as a character.
fn is_within_line(node: XmlNode<'_, '_>) -> bool {
    let sizes = ["width", "height"].map(|name| attribute(node, name).and_then(centimetres));
    let is_small = sizes.iter().all(|size| size.is_none_or(|size| size <= MAX_SIGN_CENTIMETRES));
    let has_text = node.descendants().any(|it| it.tag_name().name() == "p");
    !has_text && (is_small || attribute(node, "anchor-type") == Some("as-char"))
}

/// Columns of one style, from 0, end exclusive.
struct OdfColumns<'a> {
    first: usize,
    end: usize,
    is_hidden: bool,
    style: Option<&'a str>,
}

fn is_collapsed(node: XmlNode<'_, '_>) -> bool {
    matches!(attribute(node, "visibility"), Some("collapse" | "filter"))
}

/// Whether a text in digits is not its number, rounded to as many decimals as it has. The program
/// writes the text anew from the number. Texts with other letters than digits are not compared.
fn contradicts(text: &str, value: f64, is_percent: bool) -> bool {
    let bare = text.trim_matches(|c: char| !is_figure(c)).trim();
    if !bare.contains(|c: char| c.is_ascii_digit()) || !bare.chars().all(is_figure) {
        return false;
    }
    let value = if is_percent { value * 100.0 } else { value };
    let digits: String = bare.chars().filter(char::is_ascii_digit).collect();
    // The last mark may part decimals or thousands; without one there are no decimals.
    let behind = bare.rfind(['.', ',']).map(|at| bare.len().saturating_sub(at + 1));
    let places = [Some(0), behind.filter(|places| *places <= MAX_PLACES)];
    !places.into_iter().flatten().any(|places| {
        let scale = 10_f64.powi(i32::try_from(places).unwrap_or(0));
        let shown = digits.parse::<f64>().unwrap_or(f64::INFINITY) / scale;
        (shown - value.abs()).abs() <= 0.501 / scale
    })
}

fn is_figure(c: char) -> bool {
    c.is_ascii_digit() || ".,' -+()\u{a0}\u{202f}".contains(c)
}

/// Text of a paragraph while its spans are read.
#[derive(Default)]
struct InlineText {
    text: String,
    last_look: LastLook<u64>,
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
