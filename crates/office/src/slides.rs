//! PPTX: PresentationML (ISO/IEC 29500-1 §19): a page for each slide that is shown.
//!
//! Not read: hidden slides and shapes, speaker notes, comments, text of masters and layouts, charts
//! and diagrams.

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::content::{DocumentFlow, FlowBlock, FlowWriter, PaperKind, SheetCellDraft, TableDraft};
use crate::error::OfficeError;
use crate::package::{MainPart, OfficePackage};
use crate::styling::{is_white, number_label};
use crate::tags::{all, attribute, child, chosen_branch, drawing_size, elements, number, own_text};

/// Size of a picture, in units of 1/914400 inch, from which on it is a page: half a slide of the
/// usual size each way.
const PAGE_PICTURE: (u64, u64) = (4_500_000, 3_400_000);

/// Reads slides by its main part.
pub(crate) fn read_slides(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let tree = main.xml.parse_tree()?;
    let mut flow = FlowWriter::new(limits);
    let slides = all(tree.root(), "sldId").filter_map(relation_id);
    let parts = slides.filter_map(|id| relations.get(id)?.part.clone());
    for part in parts {
        let Some(xml) = package.read_xml(&part)? else { continue };
        let tree = xml.parse_tree()?;
        if matches!(attribute(tree.root_element(), "show"), Some("0" | "false")) {
            flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
            continue;
        }
        flow.push(FlowBlock::PageBreak)?;
        let relations = package.relations(&part)?;
        if relations.values().any(|it| matches!(it.kind.as_str(), "notesSlide" | "comments")) {
            flow.push(FlowBlock::Note(PageNote::Comments))?;
        }
        let mut blocks = Vec::new();
        if let Some(shapes) = all(tree.root(), "spTree").next() {
            let on_dark = all(tree.root(), "bg").next().is_some();
            read_shapes(shapes, on_dark, &mut blocks);
        }
        // Titles come first, wherever they lie.
        blocks.sort_by_key(|block| !matches!(block, FlowBlock::Heading { .. }));
        for block in &mut blocks {
            if let FlowBlock::PicturePart(id) = block {
                let part = relations.get(id).and_then(|it| it.part.clone());
                *block =
                    part.map_or(FlowBlock::Note(PageNote::UnreadPicture), FlowBlock::PicturePart);
            }
        }
        flow.extend_from(&mut package, blocks)?;
    }
    Ok(flow.finish(PaperKind::Document))
}

/// The id of the relation to a slide; the other attribute of that name is the slide's own.
fn relation_id<'a>(node: XmlNode<'a, '_>) -> Option<&'a str> {
    let mut ids = node.attributes().filter(|it| it.name() == "id" && it.namespace().is_some());
    ids.next().map(|it| it.value())
}

/// `on_dark`: the slide has a ground of its own, so white letters may be seen.
fn read_shapes(node: XmlNode<'_, '_>, on_dark: bool, out: &mut Vec<FlowBlock>) {
    for shape in elements(node) {
        let properties = elements(shape).find(|it| it.tag_name().name().starts_with("nv"));
        let own = properties.and_then(|it| child(it, "cNvPr"));
        if own.is_some_and(|it| matches!(attribute(it, "hidden"), Some("1" | "true"))) {
            out.push(FlowBlock::Note(PageNote::HiddenText));
            continue;
        }
        match shape.tag_name().name() {
            "sp" | "cxnSp" => read_text_shape(shape, on_dark, out),
            "grpSp" => read_shapes(shape, on_dark, out),
            "graphicFrame" => {
                if let Some(table) = all(shape, "tbl").next() {
                    out.extend(read_table(table).into_blocks());
                } else {
                    out.push(FlowBlock::Note(PageNote::UnreadPicture));
                }
            }
            "AlternateContent" => {
                if let Some(branch) = chosen_branch(shape) {
                    read_shapes(branch, on_dark, out);
                }
            }
            "pic" => read_picture(shape, out),
            _ => {}
        }
    }
}

fn read_picture(shape: XmlNode<'_, '_>, out: &mut Vec<FlowBlock>) {
    let size = all(shape, "ext").find(|it| attribute(*it, "cx").is_some());
    let is_page =
        drawing_size(size, "cx") >= PAGE_PICTURE.0 && drawing_size(size, "cy") >= PAGE_PICTURE.1;
    let relation = all(shape, "blip").next().and_then(|it| attribute(it, "embed"));
    out.push(match relation.filter(|_| is_page) {
        Some(id) => FlowBlock::PicturePart(id.to_owned()),
        None => FlowBlock::Note(PageNote::UnreadPicture),
    });
}

fn read_text_shape(shape: XmlNode<'_, '_>, on_dark: bool, out: &mut Vec<FlowBlock>) {
    let Some(body) = child(shape, "txBody") else { return };
    let placeholder = all(shape, "ph").next();
    let kind = placeholder.map(|it| attribute(it, "type").unwrap_or("body"));
    // A white letter is hidden only where its shape has no ground of its own.
    let is_filled = on_dark
        || child(shape, "spPr").is_some_and(|it| {
            elements(it).any(|it| {
                it.tag_name().name().ends_with("Fill") && it.tag_name().name() != "noFill"
            })
        });
    let mut numbers = [0_u32; 9];
    for paragraph in all(body, "p") {
        let text = paragraph_text(paragraph, is_filled, out);
        if text.trim().is_empty() {
            continue;
        }
        out.push(match kind {
            Some("title" | "ctrTitle") => FlowBlock::Heading { level: 1, text },
            Some("subTitle") => FlowBlock::Heading { level: 3, text },
            kind => text_block(paragraph, kind == Some("body"), &mut numbers, text),
        });
    }
}

/// A paragraph of a shape; those of a body have bullets unless they say they have none.
fn text_block(
    paragraph: XmlNode<'_, '_>,
    is_body: bool,
    numbers: &mut [u32; 9],
    text: String,
) -> FlowBlock {
    let properties = child(paragraph, "pPr");
    let level = properties.and_then(|it| number(it, "lvl")).unwrap_or(0).min(8);
    let depth = u8::try_from(level).unwrap_or(0);
    let at = usize::try_from(level).unwrap_or(0);
    if has_child(properties, "buAutoNum") {
        let form = properties.and_then(|it| attribute(child(it, "buAutoNum")?, "type"));
        let form = form.unwrap_or("arabicPeriod");
        for number in numbers.iter_mut().skip(at + 1) {
            *number = 0;
        }
        let count = numbers.get_mut(at).map_or(1, |count| {
            *count = count.saturating_add(1);
            *count
        });
        let kind = if form.starts_with("alphaLc") {
            "a"
        } else if form.starts_with("alphaUc") {
            "A"
        } else if form.starts_with("romanLc") {
            "i"
        } else if form.starts_with("romanUc") {
            "I"
        } else {
            "1"
        };
        let marker = format!("{}.", number_label(kind, count));
        return FlowBlock::Item { depth, marker, text };
    }
    if has_child(properties, "buChar") || is_body && !has_child(properties, "buNone") {
        return FlowBlock::Item { depth, marker: "•".to_owned(), text };
    }
    FlowBlock::Paragraph(text)
}

fn has_child(node: Option<XmlNode<'_, '_>>, name: &str) -> bool {
    node.is_some_and(|it| child(it, name).is_some())
}

/// The visible text of a paragraph of DrawingML.
fn paragraph_text(paragraph: XmlNode<'_, '_>, is_filled: bool, out: &mut Vec<FlowBlock>) -> String {
    let mut text = String::new();
    for run in elements(paragraph) {
        match run.tag_name().name() {
            "r" | "fld" => {
                let found: String = all(run, "t").map(own_text).collect();
                if is_white_run(run) && !is_filled && !found.trim().is_empty() {
                    out.push(FlowBlock::Note(PageNote::HiddenText));
                } else {
                    text.push_str(&found);
                }
            }
            "br" => text.push('\n'),
            _ => {}
        }
    }
    text
}

/// Whether a run is white by a colour of its own.
fn is_white_run(run: XmlNode<'_, '_>) -> bool {
    let fill = child(run, "rPr").and_then(|it| child(it, "solidFill"));
    let colour = fill.and_then(|it| child(it, "srgbClr"));
    colour.and_then(|it| attribute(it, "val")).is_some_and(is_white)
}

fn read_table(table: XmlNode<'_, '_>) -> TableDraft {
    let mut draft = TableDraft::default();
    for row in elements(table).filter(|it| it.tag_name().name() == "tr") {
        let mut cells = Vec::new();
        for cell in elements(row).filter(|it| it.tag_name().name() == "tc") {
            if matches!(attribute(cell, "hMerge"), Some("1" | "true")) {
                continue;
            }
            let mut blocks = Vec::new();
            for paragraph in all(cell, "p") {
                // The style of a table may give it a ground.
                let text = paragraph_text(paragraph, true, &mut blocks);
                if !text.trim().is_empty() {
                    blocks.push(FlowBlock::Paragraph(text));
                }
            }
            let columns = number(cell, "gridSpan").unwrap_or(1).clamp(1, 1000);
            cells.push(SheetCellDraft { blocks, columns });
        }
        draft.rows.push(cells);
    }
    draft
}
