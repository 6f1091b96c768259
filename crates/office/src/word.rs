//! DOCX: WordprocessingML (ISO/IEC 29500-1 §17).
//!
//! Read are the body, letterheads and feet (once), notes, and text in shapes. Not read: deleted and
//! moved-away text, comments, hidden runs, field codes, embedded objects.

use std::collections::{HashMap, HashSet};

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::{XmlNode, XmlText};

use crate::content::{DocumentFlow, FlowBlock, FlowWriter, PaperKind, SheetCellDraft, TableDraft};
use crate::error::OfficeError;
use crate::package::{MainPart, OfficePackage, PartRelation, part_of_kind};
use crate::tags::{all, attribute, child, chosen_branch, drawing_size, elements, number, own_text};
use crate::word_styles::{ListCounter, ListPlace, RunLook, StyleSheet, is_shading, outline_level};

/// Size of a picture, in units of 1/914400 inch, from which on it is a page of its own: more than
/// half of A4 each way.
const PAGE_PICTURE: (u64, u64) = (3_800_000, 5_000_000);

/// Reads a document by its main part.
pub(crate) fn read_word(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let [styles, numbering, footnotes, endnotes] =
        ["styles", "numbering", "footnotes", "endnotes"].map(|kind| part_of_kind(&relations, kind));
    let styles = match read_optional(&mut package, styles)? {
        Some(xml) => StyleSheet::read(xml.parse_tree()?.root()),
        None => StyleSheet::default(),
    };
    let lists = match read_optional(&mut package, numbering)? {
        Some(xml) => ListCounter::read(xml.parse_tree()?.root()),
        None => ListCounter::default(),
    };
    let tree = main.xml.parse_tree()?;
    let mut reader = WordReader {
        styles,
        lists,
        relations,
        flow: FlowWriter::new(limits),
        on_white: all(tree.root(), "background").next().is_none(),
    };
    let edges = reader.edge_parts(tree.root());
    reader.read_edges(&mut package, &edges, "header")?;
    if let Some(body) = all(tree.root(), "body").next() {
        reader.read_part(&mut package, body)?;
    }
    for notes in [footnotes, endnotes] {
        if let Some(xml) = read_optional(&mut package, notes)? {
            reader.read_notes(&mut package, &xml)?;
        }
    }
    reader.read_edges(&mut package, &edges, "footer")?;
    Ok(reader.flow.finish(PaperKind::Document))
}

fn read_optional(
    package: &mut OfficePackage<'_>,
    part: Option<String>,
) -> Result<Option<XmlText>, OfficeError> {
    part.map_or(Ok(None), |part| package.read_xml(&part))
}

struct WordReader<'a> {
    styles: StyleSheet,
    lists: ListCounter,
    relations: HashMap<String, PartRelation>,
    flow: FlowWriter<'a>,
    /// Whether the ground of the page is white.
    on_white: bool,
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
    on_white: bool,
    ends_page: bool,
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
                self.read_part(package, tree.root_element())?;
                self.relations = outer;
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
        self.read_blocks(node, self.on_white, &mut blocks);
        self.flow.extend_from(package, blocks)
    }

    fn read_blocks(&mut self, node: XmlNode<'_, '_>, on_white: bool, out: &mut Vec<FlowBlock>) {
        for item in elements(node) {
            match item.tag_name().name() {
                "p" => self.read_paragraph(item, on_white, out),
                "tbl" => self.read_table(item, on_white, out),
                "del" | "moveFrom" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "sdt" => {
                    if let Some(content) = child(item, "sdtContent") {
                        self.read_blocks(content, on_white, out);
                    }
                }
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.read_blocks(branch, on_white, out);
                    }
                }
                "ins" | "moveTo" | "customXml" | "smartTag" => {
                    self.read_blocks(item, on_white, out);
                }
                _ => {}
            }
        }
    }

    fn read_table(&mut self, node: XmlNode<'_, '_>, on_white: bool, out: &mut Vec<FlowBlock>) {
        let properties = child(node, "tblPr");
        let style = properties.and_then(|it| child(it, "tblStyle"));
        let style = style.and_then(|it| attribute(it, "val"));
        let on_white = on_white
            && !style.is_some_and(|id| self.styles.is_shaded(id))
            && !properties.and_then(|it| child(it, "shd")).is_some_and(is_shading);
        let mut draft = TableDraft::default();
        self.read_rows(node, on_white, &mut draft, out);
        out.extend(draft.into_blocks());
    }

    fn read_rows(
        &mut self,
        node: XmlNode<'_, '_>,
        on_white: bool,
        draft: &mut TableDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "tr" => {
                    let properties = child(item, "trPr");
                    if properties.is_some_and(|it| child(it, "del").is_some()) {
                        out.push(FlowBlock::Note(PageNote::DeletedText));
                    } else if properties.is_some_and(|it| child(it, "hidden").is_some()) {
                        out.push(FlowBlock::Note(PageNote::HiddenCells));
                    } else {
                        let mut row = Vec::new();
                        self.read_cells(item, on_white, &mut row);
                        draft.rows.push(row);
                    }
                }
                "sdt" | "sdtContent" | "ins" | "customXml" => {
                    self.read_rows(item, on_white, draft, out);
                }
                _ => {}
            }
        }
    }

    fn read_cells(&mut self, node: XmlNode<'_, '_>, on_white: bool, row: &mut Vec<SheetCellDraft>) {
        for item in elements(node) {
            match item.tag_name().name() {
                "tc" => {
                    let properties = child(item, "tcPr");
                    let span = properties.and_then(|it| number(child(it, "gridSpan")?, "val"));
                    let ground = properties.and_then(|it| child(it, "shd"));
                    let mut cell = SheetCellDraft {
                        blocks: Vec::new(),
                        columns: span.unwrap_or(1).clamp(1, 63),
                    };
                    let on_white = on_white && !ground.is_some_and(is_shading);
                    self.read_blocks(item, on_white, &mut cell.blocks);
                    row.push(cell);
                }
                "sdt" | "sdtContent" | "ins" | "customXml" => {
                    self.read_cells(item, on_white, row);
                }
                _ => {}
            }
        }
    }

    fn read_paragraph(&mut self, node: XmlNode<'_, '_>, on_white: bool, out: &mut Vec<FlowBlock>) {
        let properties = child(node, "pPr");
        let style = properties.and_then(|it| attribute(child(it, "pStyle")?, "val"));
        let style = style.unwrap_or_default();
        let ground = properties.and_then(|it| child(it, "shd"));
        let on_white = on_white && !ground.is_some_and(is_shading) && !self.styles.is_shaded(style);
        let mut draft =
            ParagraphDraft { look: self.styles.look(style), on_white, ..ParagraphDraft::default() };
        self.read_runs(node, &mut draft, out);
        let has_break = properties.is_some_and(|it| child(it, "pageBreakBefore").is_some());
        if has_break {
            out.push(FlowBlock::PageBreak);
        }
        let text = std::mem::take(&mut draft.text);
        if !text.trim().is_empty() {
            let block = self.paragraph_block(properties, style, text);
            out.push(block);
        }
        out.append(&mut draft.shapes);
        out.extend(draft.pictures.into_iter().map(FlowBlock::PicturePart));
        if draft.ends_page {
            out.push(FlowBlock::PageBreak);
        }
    }

    fn paragraph_block(
        &mut self,
        properties: Option<XmlNode<'_, '_>>,
        style: &str,
        text: String,
    ) -> FlowBlock {
        let own = properties.map(ListPlace::read).unwrap_or_default();
        let styled = self.styles.place(style);
        let list = own.list.or(styled.list).filter(|list| list != "0");
        let level = own.level.or(styled.level).unwrap_or(0);
        let label = list.as_ref().and_then(|list| self.lists.next_label(list, level));
        let outline = properties.and_then(outline_level);
        if let Some(level) = self.styles.heading_level(style).or(outline) {
            let text = label.map_or(text.clone(), |label| format!("{label} {text}"));
            return FlowBlock::Heading { level, text };
        }
        match label {
            Some(marker) => {
                let depth = u8::try_from(level).unwrap_or(u8::MAX);
                FlowBlock::Item { depth, marker, text }
            }
            None => FlowBlock::Paragraph(text),
        }
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
                    draft.text.extend(all(item, "t").map(own_text));
                }
                "hyperlink" | "ins" | "moveTo" | "smartTag" | "sdt" | "sdtContent"
                | "fldSimple" | "customXml" | "bdo" | "dir" => self.read_runs(item, draft, out),
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
        let look = properties.map(RunLook::read).unwrap_or_default().or(styled).or(draft.look);
        if look.is_unseen(draft.on_white) {
            if all(node, "t").any(|it| !own_text(it).trim().is_empty()) {
                out.push(FlowBlock::Note(PageNote::HiddenText));
            }
            return;
        }
        self.read_run_content(node, draft, out);
    }

    fn read_run_content(
        &mut self,
        node: XmlNode<'_, '_>,
        draft: &mut ParagraphDraft,
        out: &mut Vec<FlowBlock>,
    ) {
        for item in elements(node) {
            match item.tag_name().name() {
                "t" => draft.text.push_str(&own_text(item)),
                "tab" | "ptab" => draft.text.push('\t'),
                "br" if attribute(item, "type") == Some("page") => draft.ends_page = true,
                "br" | "cr" => draft.text.push('\n'),
                "noBreakHyphen" => draft.text.push('-'),
                "delText" => out.push(FlowBlock::Note(PageNote::DeletedText)),
                "commentReference" => out.push(FlowBlock::Note(PageNote::Comments)),
                "footnoteReference" | "endnoteReference" => {
                    draft
                        .text
                        .push_str(&format!("[{}]", attribute(item, "id").unwrap_or_default()));
                }
                "drawing" | "pict" | "object" => self.read_shape(item, draft),
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.read_run_content(branch, draft, out);
                    }
                }
                _ => {}
            }
        }
    }

    /// Text in shapes, whose ground is unknown, and pictures.
    fn read_shape(&mut self, node: XmlNode<'_, '_>, draft: &mut ParagraphDraft) {
        let hidden = all(node, "docPr").any(|it| attribute(it, "hidden") == Some("1"));
        if hidden {
            draft.shapes.push(FlowBlock::Note(PageNote::HiddenText));
            return;
        }
        let boxes = outermost_boxes(node);
        for text in boxes {
            self.read_blocks(text, false, &mut draft.shapes);
        }
        let size = all(node, "extent").next();
        let is_page = drawing_size(size, "cx") >= PAGE_PICTURE.0
            && drawing_size(size, "cy") >= PAGE_PICTURE.1;
        for picture in all(node, "blip") {
            let relation = attribute(picture, "embed").and_then(|id| self.relations.get(id));
            match relation.and_then(|it| it.part.clone()).filter(|_| is_page) {
                Some(part) => draft.pictures.push(part),
                None => draft.shapes.push(FlowBlock::Note(PageNote::UnreadPicture)),
            }
        }
    }
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
