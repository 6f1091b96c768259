//! DOCX: WordprocessingML (ISO/IEC 29500-1 §17).
//!
//! Read are the body, letterheads and feet (once), notes, and text in shapes. Not read: deleted,
//! crossed-out and moved-away text, comments, hidden runs, text in the colour of its ground, cells
//! under a merged one, field codes, embedded objects.

use std::collections::{HashMap, HashSet};

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::{XmlNode, XmlText};

use crate::bindings::BoundData;
use crate::colours::{RgbColour, ThemeColours, WHITE, is_pictographic, shape_ground};
use crate::content::{
    DocumentFlow, FlowBlock, FlowWriter, PaperKind, SheetCellDraft, TableDraft, push_labelled,
};
use crate::delimited::read_plain_text;
use crate::error::OfficeError;
use crate::fields::FieldKind;
use crate::format::{OfficeFormat, sniff_office, sniff_text};
use crate::html::read_web_page;
use crate::package::{MainPart, OfficePackage, PartRelation, part_of_kind};
use crate::rich_text::read_rich_text;
use crate::run_seams::{LastLook, look_of, mark_drawing};
use crate::styling::{LabelGap, ListLabel, plain_symbol};
use crate::tags::{
    all, attribute, child, chosen_branch, drawing_size, elements, has_disputed_digits, number,
    own_text, switch,
};
use crate::word_styles::{
    ListCounter, ListPlace, RunLook, StyleSheet, is_flat_row, is_off_page, outline_level,
    shading_ground,
};

/// Size of a picture, in units of 1/914400 inch, from which on it is a page of its own: more than
/// half of A4 each way.
const PAGE_PICTURE: (u64, u64) = (3_800_000, 5_000_000);

/// Run properties without effect on position or colour.
const EVEN_PROPERTIES: [&str; 12] =
    ["rFonts", "lang", "noProof", "b", "bCs", "i", "iCs", "u", "kern", "szCs", "snapToGrid", "rtl"];
/// Elements around runs without visual effect.
const PLAIN_WRAPPERS: [&str; 4] = ["p", "hyperlink", "smartTag", "proofErr"];

/// Longest side of a drawing that may be a sign or a digit, in units of 1/914400 inch: a centimetre.
const MAX_SIGN_EMU: u64 = 360_000;
/// Maximum bytes of an embedded file.
const MAX_IMPORT_BYTES: u64 = 32 << 20;
/// Distances of an anchored shape, in units of 1/914400 inch, beyond which it lies beside the page:
/// its end before the margin, and its start behind the largest page.
const MIN_OFFSET: i64 = -1_828_800;
const MAX_OFFSET: i64 = 20_000_000;

/// Reads a document by its main part.
pub(crate) fn read_word(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let [styles, numbering, footnotes, endnotes, theme, settings] =
        ["styles", "numbering", "footnotes", "endnotes", "theme", "settings"]
            .map(|kind| part_of_kind(&relations, kind));
    let theme = match package.read_optional(theme)? {
        Some(xml) => ThemeColours::read(xml.parse_tree()?.root()),
        None => ThemeColours::default(),
    };
    let styles = match package.read_optional(styles)? {
        Some(xml) => StyleSheet::read(xml.parse_tree()?.root(), &theme),
        None => StyleSheet::default(),
    };
    let lists = match package.read_optional(numbering)? {
        Some(xml) => ListCounter::read(xml.parse_tree()?.root(), &theme),
        None => ListCounter::default(),
    };
    let updates_fields = match package.read_optional(settings)? {
        Some(xml) => switch(xml.parse_tree()?.root_element(), "updateFields") == Some(true),
        None => false,
    };
    let data = relations.values().filter(|it| it.kind == "customXml");
    let data = BoundData::read(&mut package, data.filter_map(|it| it.part.clone()))?;
    let tree = main.xml.parse_tree()?;
    let mut reader = WordReader {
        styles,
        lists,
        relations,
        imports: HashMap::new(),
        data,
        updates_fields,
        is_edge: false,
        limits,
        flow: FlowWriter::new(limits),
        ground: all(tree.root(), "background").next().map_or(Some(WHITE), |_| None),
        theme,
    };
    let edges = reader.edge_parts(tree.root());
    reader.read_edges(&mut package, &edges, "header")?;
    if let Some(body) = all(tree.root(), "body").next() {
        reader.read_part(&mut package, body)?;
    }
    for notes in [footnotes, endnotes] {
        if let Some(xml) = package.read_optional(notes)? {
            reader.read_notes(&mut package, &xml)?;
        }
    }
    reader.read_edges(&mut package, &edges, "footer")?;
    Ok(reader.flow.finish(PaperKind::Document))
}

struct WordReader<'a> {
    styles: StyleSheet,
    lists: ListCounter,
    relations: HashMap<String, PartRelation>,
    data: BoundData,
    /// Programs update all fields when they open the document.
    updates_fields: bool,
    /// Letterheads or feet are read.
    is_edge: bool,
    /// Embedded files imported by the part, by relationship id.
    imports: HashMap<String, Vec<FlowBlock>>,
    limits: &'a LimitsConfig,
    flow: FlowWriter<'a>,
    theme: ThemeColours,
    /// The ground of the page; `None` if it is unknown.
    ground: Option<RgbColour>,
}

/// A paragraph while its runs are read.
#[derive(Default)]
struct ParagraphDraft {
    text: String,
    /// Blocks of shapes that are anchored in it.
    shapes: Vec<FlowBlock>,
    /// Parts of pictures that are pages.
    pictures: Vec<String>,
    look: RunLook,
    ground: Option<RgbColour>,
    is_off_page: bool,
    ends_page: bool,
    /// Whether a small drawing is anchored in it, which may lie at any of its letters.
    has_drawing: bool,
    /// Open fields, the innermost one last.
    fields: Vec<FieldDraft>,
    last_look: LastLook<String>,
    updates_fields: bool,
    /// Whether it is in a header or footer, where a print date is not the document's.
    is_edge: bool,
    /// Whether a digit is in the result of a recomputed field, or in its field code.
    is_doubtful: bool,
}

impl ParagraphDraft {
    /// Begins a field, its result, or ends it.
    fn step_field(&mut self, mark: XmlNode<'_, '_>) {
        match attribute(mark, "fldCharType") {
            Some("begin") => self.fields.push(FieldDraft::new(mark)),
            Some("separate") => {
                if let Some(field) = self.fields.last_mut() {
                    field.has_result = true;
                }
            }
            _ => {
                if let Some(field) = self.fields.pop() {
                    self.end_field(&field);
                }
            }
        }
    }

    /// Text of a field's instruction that is shown counts as a drawing in the line.
    fn end_field(&mut self, field: &FieldDraft) {
        let kind = field.kind();
        if matches!(kind, FieldKind::Sign | FieldKind::Text) {
            mark_drawing(&mut self.text);
        }
        self.is_doubtful |= kind == FieldKind::Text && field.instruction.contains(char::is_numeric);
    }

    fn add_text(&mut self, text: &str) {
        let is_stale = self.fields.iter().any(|it| {
            let kind = it.kind();
            kind == FieldKind::Clock && !self.is_edge
                || it.is_dirty && kind != FieldKind::Count
                || self.updates_fields && it.is_formula()
        });
        self.is_doubtful |= is_stale && text.contains(char::is_numeric);
        self.text.push_str(text);
    }
}

/// A field while it is open.
#[derive(Default)]
struct FieldDraft {
    instruction: String,
    has_result: bool,
    /// Its result is recomputed when the file is opened.
    is_dirty: bool,
}

impl FieldDraft {
    fn new(node: XmlNode<'_, '_>) -> Self {
        Self {
            instruction: attribute(node, "instr").unwrap_or_default().to_owned(),
            has_result: node.tag_name().name() == "fldSimple",
            is_dirty: matches!(attribute(node, "dirty"), Some("1" | "true" | "on")),
        }
    }

    fn is_formula(&self) -> bool {
        self.instruction.trim_start().starts_with('=')
    }

    fn kind(&self) -> FieldKind {
        FieldKind::of(&self.instruction)
    }
}

impl WordReader<'_> {
    /// The parts at the edges of pages that the sections name, each once: their kind and name.
    fn edge_parts(&self, root: XmlNode<'_, '_>) -> Vec<(String, String)> {
        let mut seen = HashSet::new();
        let named = root
            .descendants()
            .filter(|it| matches!(it.tag_name().name(), "headerReference" | "footerReference"));
        named
            .filter_map(|it| self.relations.get(attribute(it, "id")?))
            .filter_map(|it| Some((it.kind.clone(), it.part.clone()?)))
            .filter(|edge| seen.insert(edge.clone()))
            .collect()
    }

    /// Letterheads come before the text, feet after it; the same text once.
    fn read_edges(
        &mut self,
        package: &mut OfficePackage<'_>,
        edges: &[(String, String)],
        kind: &str,
    ) -> Result<(), OfficeError> {
        let mut seen = HashSet::new();
        for (_, part) in edges.iter().filter(|(found, _)| found == kind) {
            let Some(xml) = package.read_xml(part)? else { continue };
            let tree = xml.parse_tree()?;
            let text: String = all(tree.root(), "t").map(own_text).collect();
            if seen.insert(text) {
                let outer = std::mem::replace(&mut self.relations, package.relations(part)?);
                self.is_edge = true;
                self.read_part(package, tree.root_element())?;
                (self.relations, self.is_edge) = (outer, false);
            }
        }
        Ok(())
    }

    fn read_notes(
        &mut self,
        package: &mut OfficePackage<'_>,
        xml: &XmlText,
    ) -> Result<(), OfficeError> {
        let tree = xml.parse_tree()?;
        // Separators have a type.
        let notes = elements(tree.root_element()).filter(|it| attribute(*it, "type").is_none());
        for note in notes {
            self.read_part(package, note)?;
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        package: &mut OfficePackage<'_>,
        node: XmlNode<'_, '_>,
    ) -> Result<(), OfficeError> {
        let mut blocks = Vec::new();
        self.imports.clear();
        for id in all(node, "altChunk").filter_map(|it| attribute(it, "id")) {
            let part = self.relations.get(id).and_then(|it| it.part.as_deref());
            if let Some(part) = part.filter(|_| !self.imports.contains_key(id))
                && let Some(bytes) = package.read_part(part, MAX_IMPORT_BYTES)?
            {
                self.imports.insert(id.to_owned(), read_import(&bytes, self.limits)?);
            }
        }
        self.read_blocks(node, self.ground, &mut blocks);
        if all(node, "AlternateContent").any(has_disputed_digits)
            || all(node, "sdt").any(|it| self.data.contradicts(it))
        {
            blocks.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        self.flow.extend_from(package, blocks)
    }

    fn read_blocks(
        &mut self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "p" => self.read_paragraph(item, ground, out),
                "tbl" => self.read_table(item, ground, out),
                "del" | "moveFrom" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "sdt" => {
                    if let Some(content) = child(item, "sdtContent") {
                        self.read_blocks(content, ground, out);
                    }
                }
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.read_blocks(branch, ground, out);
                    }
                }
                // Programs differ in how they show embedded files.
                "altChunk" => {
                    out.push(FlowBlock::Note(PageNote::DoubtfulText));
                    let id = attribute(item, "id").unwrap_or_default();
                    out.extend(self.imports.remove(id).unwrap_or_default());
                }
                "ins" | "moveTo" | "customXml" | "smartTag" => {
                    self.read_blocks(item, ground, out);
                }
                _ => {}
            }
        }
    }

    fn read_table(
        &mut self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        let properties = child(node, "tblPr");
        let style = properties.and_then(|it| child(it, "tblStyle"));
        let style = style.and_then(|it| attribute(it, "val"));
        // The style of a table gives grounds to some of its cells.
        let outer = ground.filter(|_| !style.is_some_and(|id| self.styles.is_shaded(id)));
        let own = properties.and_then(|it| shading_ground(child(it, "shd")?, &self.theme));
        let ground = own.unwrap_or(outer);
        let mut draft = TableDraft::default();
        self.read_rows(node, ground, &mut draft, out);
        out.extend(draft.into_blocks());
    }

    fn read_rows(
        &mut self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        draft: &mut TableDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "tr" => {
                    let properties = child(item, "trPr");
                    if properties.is_some_and(|it| child(it, "del").is_some()) {
                        out.push(FlowBlock::Note(PageNote::DeletedText));
                    } else if properties
                        .is_some_and(|it| child(it, "hidden").is_some() || is_flat_row(it))
                    {
                        out.push(FlowBlock::Note(PageNote::HiddenCells));
                    } else {
                        let mut row = Vec::new();
                        self.read_cells(item, ground, &mut row);
                        draft.rows.push(row);
                    }
                }
                "sdt" | "sdtContent" | "ins" | "customXml" => {
                    self.read_rows(item, ground, draft, out);
                }
                _ => {}
            }
        }
    }

    fn read_cells(
        &mut self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        row: &mut Vec<SheetCellDraft>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "tc" => {
                    let properties = child(item, "tcPr");
                    let span = properties.and_then(|it| number(child(it, "gridSpan")?, "val"));
                    let own =
                        properties.and_then(|it| shading_ground(child(it, "shd")?, &self.theme));
                    let mut cell = SheetCellDraft {
                        blocks: Vec::new(),
                        columns: span.unwrap_or(1).clamp(1, 63),
                    };
                    self.read_blocks(item, own.unwrap_or(ground), &mut cell.blocks);
                    if is_under_merged(properties) && !cell.blocks.is_empty() {
                        cell.blocks = vec![FlowBlock::Note(PageNote::HiddenCells)];
                    }
                    row.push(cell);
                }
                "sdt" | "sdtContent" | "ins" | "customXml" => {
                    self.read_cells(item, ground, row);
                }
                _ => {}
            }
        }
    }

    fn read_paragraph(
        &mut self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        let properties = child(node, "pPr");
        let style = properties.and_then(|it| attribute(child(it, "pStyle")?, "val"));
        let style = style.unwrap_or_default();
        let own = properties.and_then(|it| shading_ground(child(it, "shd")?, &self.theme));
        let mut draft = ParagraphDraft {
            look: self.styles.paragraph_look(style),
            ground: own.or_else(|| self.styles.ground(style)).unwrap_or(ground),
            is_off_page: properties.is_some_and(is_off_page),
            updates_fields: self.updates_fields,
            is_edge: self.is_edge,
            ..ParagraphDraft::default()
        };
        self.read_runs(node, &mut draft, out);
        let has_break = properties.is_some_and(|it| child(it, "pageBreakBefore").is_some());
        if has_break {
            out.push(FlowBlock::PageBreak);
        }
        let text = std::mem::take(&mut draft.text);
        if draft.is_doubtful || draft.has_drawing && text.contains(char::is_numeric) {
            out.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        let label = self.next_label(properties, style, &draft);
        let outline = properties.and_then(outline_level);
        push_labelled(self.styles.heading_level(style).or(outline), label, text, out);
        out.append(&mut draft.shapes);
        out.extend(draft.pictures.into_iter().map(FlowBlock::PicturePart));
        if draft.ends_page {
            out.push(FlowBlock::PageBreak);
        }
    }

    /// The label of a paragraph in a list, and its level. None is seen of one that is deleted.
    fn next_label(
        &mut self,
        properties: Option<XmlNode<'_, '_>>,
        style: &str,
        draft: &ParagraphDraft,
    ) -> Option<(u8, ListLabel)> {
        let mark = properties.and_then(|it| child(it, "rPr"));
        if mark.is_some_and(|it| child(it, "del").is_some() || child(it, "moveFrom").is_some()) {
            return None;
        }
        let own = properties.map(ListPlace::read).unwrap_or_default();
        let styled = self.styles.place(style);
        let list = own.list.or(styled.list).filter(|list| list != "0")?;
        let level = own.level.or(styled.level).unwrap_or(0);
        let (label, look) = self.lists.next_label(&list, level)?;
        let mark = mark.map(|it| RunLook::read(it, &self.theme)).unwrap_or_default();
        let look = look.or(mark).or(draft.look);
        let label = if look.pictured == Some(true) {
            ListLabel::bullet("•", LabelGap::Wide)
        } else if look.is_unseen(draft.ground) || draft.is_off_page {
            return None;
        } else {
            label
        };
        Some((u8::try_from(level).unwrap_or(u8::MAX), label))
    }

    fn read_runs(
        &mut self,
        node: XmlNode<'_, '_>,
        draft: &mut ParagraphDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "r" => self.read_run(item, draft, out),
                "del" | "moveFrom" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.read_runs(branch, draft, out);
                    }
                }
                // The letters of a formula in their order.
                "oMath" | "oMathPara" => {
                    for (part, text) in all(item, "t").map(own_text).enumerate() {
                        draft.last_look.begin(format!("formula {part}"), &mut draft.text);
                        draft.text.push_str(&text);
                    }
                }
                "bdo" if attribute(item, "val") == Some("rtl") => {
                    draft.text.push('\u{202e}');
                    self.read_runs(item, draft, out);
                }
                "fldSimple" => {
                    draft.fields.push(FieldDraft::new(item));
                    self.read_runs(item, draft, out);
                    draft.fields.pop().into_iter().for_each(|field| draft.end_field(&field));
                }
                "subDoc" => draft.is_doubtful = true,
                "hyperlink" | "ins" | "moveTo" | "smartTag" | "sdt" | "sdtContent"
                | "customXml" | "bdo" | "dir" => self.read_runs(item, draft, out),
                _ => {}
            }
        }
    }

    fn read_run(
        &mut self,
        node: XmlNode<'_, '_>,
        draft: &mut ParagraphDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        let properties = child(node, "rPr");
        let style = properties.and_then(|it| attribute(child(it, "rStyle")?, "val"));
        let styled = style.map(|id| self.styles.look(id)).unwrap_or_default();
        let own = properties.map(|it| RunLook::read(it, &self.theme)).unwrap_or_default();
        let look = own.or(styled).or(draft.look);
        let note = if look.is_unseen(draft.ground) || draft.is_off_page {
            PageNote::HiddenText
        } else if look.is_struck() {
            PageNote::DeletedText
        } else {
            let wrapper = node.parent().map_or("", |it| it.tag_name().name());
            let wrapper = if PLAIN_WRAPPERS.contains(&wrapper) { "" } else { wrapper };
            let is_count = draft
                .fields
                .iter()
                .any(|it| matches!(it.kind(), FieldKind::Count | FieldKind::Clock));
            let wrapper = if is_count { "field" } else { wrapper };
            let look = properties.map(|it| look_of(it, &EVEN_PROPERTIES)).unwrap_or_default();
            draft.last_look.begin(format!("{wrapper} {look}"), &mut draft.text);
            return self.read_run_content(node, draft, out);
        };
        if all(node, "t").any(|it| !own_text(it).trim().is_empty()) {
            out.push(FlowBlock::Note(note));
        }
    }

    fn read_run_content(
        &mut self,
        node: XmlNode<'_, '_>,
        draft: &mut ParagraphDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "fldChar" => draft.step_field(item),
                "instrText" => {
                    let open = draft.fields.last_mut().filter(|it| !it.has_result);
                    open.into_iter().for_each(|it| it.instruction.push_str(&own_text(item)));
                }
                // Field codes are not displayed.
                "t" | "sym" if draft.fields.iter().any(|it| !it.has_result) => {
                    out.push(FlowBlock::Note(PageNote::HiddenText));
                }
                "t" => draft.add_text(&own_text(item)),
                // Of today, or of the page.
                "pgNum" | "dayShort" | "dayLong" | "monthShort" | "monthLong" | "yearShort"
                | "yearLong" => mark_drawing(&mut draft.text),
                "ruby" => {
                    if let Some(base) = child(item, "rubyBase") {
                        self.read_runs(base, draft, out);
                    }
                    mark_drawing(&mut draft.text);
                }
                "tab" | "ptab" => draft.text.push('\t'),
                "br" if attribute(item, "type") == Some("page") => draft.ends_page = true,
                "br" | "cr" => draft.text.push('\n'),
                "noBreakHyphen" => draft.text.push('-'),
                "sym" => draft.text.extend(symbol(item)),
                "delText" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "commentReference" => out.push(FlowBlock::Note(PageNote::Comments)),
                "footnoteReference" | "endnoteReference" => {
                    draft
                        .text
                        .push_str(&format!("[{}]", attribute(item, "id").unwrap_or_default()));
                }
                "drawing" | "pict" | "object" | "contentPart" => self.read_shape(item, draft),
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.read_run_content(branch, draft, out);
                    }
                }
                _ => {}
            }
        }
    }

    /// Text in shapes and pictures.
    fn read_shape(&mut self, node: XmlNode<'_, '_>, draft: &mut ParagraphDraft) {
        let hidden = all(node, "docPr").any(|it| attribute(it, "hidden") == Some("1"));
        if hidden || all(node, "anchor").any(is_beside_page) {
            draft.shapes.push(FlowBlock::Note(PageNote::HiddenText));
            return;
        }
        let boxes = outermost_boxes(node);
        let size = all(node, "extent").next();
        if boxes.is_empty() {
            mark_drawing(&mut draft.text);
            draft.has_drawing |= all(node, "inline").next().is_none()
                && drawing_size(size, "cx").max(drawing_size(size, "cy")) <= MAX_SIGN_EMU;
        }
        for text in boxes {
            self.read_blocks(text, self.box_ground(text, draft.ground), &mut draft.shapes);
        }
        let is_page = drawing_size(size, "cx") >= PAGE_PICTURE.0
            && drawing_size(size, "cy") >= PAGE_PICTURE.1;
        let pictures = node.descendants();
        for picture in pictures.filter(|it| matches!(it.tag_name().name(), "blip" | "imagedata")) {
            let relation = attribute(picture, "embed").and_then(|id| self.relations.get(id));
            match relation.and_then(|it| it.part.clone()).filter(|_| is_page) {
                Some(part) => draft.pictures.push(part),
                None => draft.shapes.push(FlowBlock::Note(PageNote::UnreadPicture)),
            }
        }
    }

    /// The ground of a text box: `outer` where its shape has no fill. Styles and older shapes have
    /// one that is unknown.
    fn box_ground(&self, text: XmlNode<'_, '_>, outer: Option<RgbColour>) -> Option<RgbColour> {
        let shape = text.ancestors().find(|it| it.tag_name().name() == "wsp")?;
        let outer = outer.filter(|_| child(shape, "style").is_none());
        shape_ground(child(shape, "spPr"), outer, &self.theme)
    }
}

/// The content of an embedded file. Depth is limited: packages could nest without end.
fn read_import(bytes: &[u8], limits: &LimitsConfig) -> Result<Vec<FlowBlock>, OfficeError> {
    let is_markup = bytes.trim_ascii_start().starts_with(b"<");
    let flow = match sniff_office(bytes).or_else(|| sniff_text(bytes)) {
        Some(OfficeFormat::Rtf) => read_rich_text(bytes, limits),
        Some(OfficeFormat::Html) => read_web_page(bytes, limits),
        Some(OfficeFormat::Text | OfficeFormat::Csv) if is_markup => read_web_page(bytes, limits),
        Some(OfficeFormat::Text | OfficeFormat::Csv) => read_plain_text(bytes, limits),
        _ => Err(OfficeError::unsupported(
            "a document that imports another file, which is not read: save it in Word once",
        )),
    };
    flow.map(|flow| flow.blocks)
}

/// A character by its number. Those of the private area are the letters and digits of a font of
/// symbols; of a font of pictures there is none.
fn symbol(node: XmlNode<'_, '_>) -> Option<char> {
    let font = attribute(node, "font").unwrap_or_default();
    let code = u32::from_str_radix(attribute(node, "char")?, 16).ok()?;
    let letter = char::from_u32(code).map(plain_symbol);
    letter.filter(|c| !is_pictographic(font) && !c.is_control())
}

/// Whether a cell continues a merged one, of which only the first cell's content is displayed.
fn is_under_merged(properties: Option<XmlNode<'_, '_>>) -> bool {
    let merges = properties.into_iter().flat_map(elements);
    let mut merges = merges.filter(|it| matches!(it.tag_name().name(), "vMerge" | "hMerge"));
    merges.any(|it| attribute(it, "val") != Some("restart"))
}

/// Whether a shape is anchored far beside the page, to either side.
fn is_beside_page(anchor: XmlNode<'_, '_>) -> bool {
    let size = child(anchor, "extent");
    [("positionH", "cx"), ("positionV", "cy")].into_iter().any(|(name, side)| {
        let offset = child(anchor, name).and_then(|it| child(it, "posOffset"));
        let offset = offset.and_then(|it| own_text(it).trim().parse::<i64>().ok()).unwrap_or(0);
        let length = i64::try_from(drawing_size(size, side)).unwrap_or(0);
        offset.saturating_add(length) <= MIN_OFFSET || offset >= MAX_OFFSET
    })
}

/// The text boxes below a node that lie in no other one, one branch of each alternative.
fn outermost_boxes<'a, 'b>(node: XmlNode<'a, 'b>) -> Vec<XmlNode<'a, 'b>> {
    let mut found = Vec::new();
    for item in elements(node) {
        match item.tag_name().name() {
            "txbxContent" => found.push(item),
            "AlternateContent" => {
                found.extend(chosen_branch(item).map(outermost_boxes).unwrap_or_default());
            }
            _ => found.extend(outermost_boxes(item)),
        }
    }
    found
}
