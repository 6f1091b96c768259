//! Text of visible shapes of DrawingML (ISO/IEC 29500-1 §19.3 and §20.5).
//!
//! Not read: hidden shapes, shapes off the page, those under a filled one, text in the colour of
//! its ground, crossed-out text, charts and diagrams. Shapes positioned by a layout count as
//! visible.

use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::cell_area::CellArea;
use crate::colours::{
    DrawingOpacity, RgbColour, ThemeColours, drawing_colour, is_pictographic, is_struck_run,
    is_unseen_run, shape_ground,
};
use crate::content::{FlowBlock, SheetCellDraft, TableDraft, push_labelled};
use crate::run_seams::{LastLook, is_blank, look_of};
use crate::styling::{LabelGap, ListLabel, number_label};
use crate::tags::{all, attribute, child, chosen_branch, drawing_size, elements, number, own_text};

/// Size of a picture, in units of 1/914400 inch, from which on it is a page: half a slide of the
/// usual size each way.
const PAGE_PICTURE: (u64, u64) = (4_500_000, 3_400_000);
/// Run properties without effect on position or colour.
const EVEN_PROPERTIES: [&str; 13] = [
    "lang",
    "altLang",
    "b",
    "i",
    "u",
    "dirty",
    "err",
    "noProof",
    "kern",
    "ea",
    "cs",
    "latin",
    "hlinkClick",
];
/// Elements for the labels of paragraphs.
const MARKS: [&str; 4] = ["buNone", "buChar", "buAutoNum", "buBlip"];
/// Shapes of one page that are compared with those under them.
const MAX_COMPARED: usize = 500;
/// Minimum visible part of a cell, in EMU, that shows its text.
const MAX_COVER_INSET: u64 = 100_000;
/// Minimum overlap with a cell, in EMU, that hides its text.
const MIN_COVER_REACH: u64 = 400_000;
/// Groups within groups.
const MAX_GROUPS: usize = 32;

/// A place on the page, in units of DrawingML.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShapeBounds {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl ShapeBounds {
    /// The whole of a page.
    pub(crate) fn of_page(width: u64, height: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 on every page")]
        let (right, bottom) = (width as f64, height as f64);
        Self { left: 0.0, top: 0.0, right, bottom }
    }

    fn read(transform: XmlNode<'_, '_>, names: [&str; 2]) -> Option<Self> {
        let [offset, size] = names.map(|name| child(transform, name));
        let (left, top) = (measure(offset?, "x")?, measure(offset?, "y")?);
        let (width, height) = (measure(size?, "cx")?, measure(size?, "cy")?);
        Some(Self { left, top, right: left + width, bottom: top + height })
    }

    fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }

    fn is_apart_from(&self, other: &Self) -> bool {
        self.right <= other.left
            || self.left >= other.right
            || self.bottom <= other.top
            || self.top >= other.bottom
    }

    /// These bounds, in units of a group's inside, in those of the group's place.
    fn moved(&self, inside: &Self, place: &Self) -> Option<Self> {
        let (width, height) = (inside.right - inside.left, inside.bottom - inside.top);
        if width <= 0.0 || height <= 0.0 {
            return None;
        }
        let across = (place.right - place.left) / width;
        let down = (place.bottom - place.top) / height;
        Some(Self {
            left: place.left + (self.left - inside.left) * across,
            top: place.top + (self.top - inside.top) * down,
            right: place.left + (self.right - inside.left) * across,
            bottom: place.top + (self.bottom - inside.top) * down,
        })
    }
}

fn measure(node: XmlNode<'_, '_>, name: &str) -> Option<f64> {
    attribute(node, name)?.trim().parse().ok()
}

/// A part of the page that a shape paints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PaintedArea {
    /// `None`: that of a layout.
    bounds: Option<ShapeBounds>,
    /// `None`: a picture, or a blend of colours.
    colour: Option<RgbColour>,
}

/// A shape with its place, in the order of painting.
struct PlacedShape<'a, 'b> {
    node: XmlNode<'a, 'b>,
    bounds: Option<ShapeBounds>,
    painted: Option<PaintedArea>,
    /// Nothing under it is seen.
    is_opaque: bool,
}

/// Reads the shapes of a page.
pub(crate) struct ShapeReader<'t> {
    pub(crate) theme: &'t ThemeColours,
    /// Of the page; `None` if it has no edges.
    pub(crate) bounds: Option<ShapeBounds>,
    /// Shapes that lie under all those that are read.
    pub(crate) under: &'t [PaintedArea],
    /// Of bodies that name none.
    pub(crate) bullet: &'t str,
}

impl ShapeReader<'_> {
    /// The seen text of the shapes below a node, on a ground that is `None` if it is unknown.
    pub(crate) fn read_shapes(
        &self,
        node: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        let mut shapes = Vec::new();
        self.collect(node, None, 0, &mut shapes);
        for (at, shape) in shapes.iter().enumerate() {
            let (before, over) = shapes.split_at(at);
            if self.is_seen(shape, over.get(1..).unwrap_or_default()) {
                let painted = before.iter().rev().take(MAX_COMPARED).filter_map(|it| it.painted);
                let painted = painted.chain(self.under.iter().rev().copied());
                let ground = ground_under(shape.bounds, painted, ground);
                self.read_shape(shape.node, ground, out);
            } else if all(shape.node, "t").any(|it| !own_text(it).trim().is_empty()) {
                out.push(FlowBlock::Note(PageNote::HiddenText));
            }
        }
    }

    /// The parts of the page that the shapes below a node paint.
    pub(crate) fn painted_areas(&self, node: XmlNode<'_, '_>) -> Vec<PaintedArea> {
        let mut shapes = Vec::new();
        self.collect(node, None, 0, &mut shapes);
        shapes.into_iter().filter_map(|shape| shape.painted).take(MAX_COMPARED).collect()
    }

    /// Whether a shape lies on the page and under none of those over it.
    fn is_seen(&self, shape: &PlacedShape<'_, '_>, over: &[PlacedShape<'_, '_>]) -> bool {
        if is_hidden_shape(shape.node) {
            return false;
        }
        let Some(own) = shape.bounds else { return true };
        let is_off = self.bounds.is_some_and(|page| own.is_apart_from(&page));
        let covers = over.iter().take(MAX_COMPARED).filter(|it| it.is_opaque);
        !is_off && !covers.filter_map(|it| it.bounds).any(|cover| cover.contains(&own))
    }

    /// The shapes in groups and out of them. `frame` is the inside and the place of the group.
    fn collect<'a, 'b>(
        &self,
        node: XmlNode<'a, 'b>,
        frame: Option<(ShapeBounds, ShapeBounds)>,
        depth: usize,
        out: &mut Vec<PlacedShape<'a, 'b>>,
    ) {
        for item in elements(node) {
            let is_group = item.tag_name().name() == "grpSp";
            let properties = child(item, if is_group { "grpSpPr" } else { "spPr" });
            let transform = properties.and_then(|it| child(it, "xfrm"));
            let transform = transform.or_else(|| child(item, "xfrm"));
            let own = transform.and_then(|it| ShapeBounds::read(it, ["off", "ext"]));
            let bounds = match frame {
                Some((inside, place)) => own.and_then(|own| own.moved(&inside, &place)),
                None => own,
            };
            match item.tag_name().name() {
                "grpSp" if is_hidden_shape(item) || depth >= MAX_GROUPS => {
                    out.push(PlacedShape {
                        node: item,
                        bounds: None,
                        painted: None,
                        is_opaque: false,
                    });
                }
                "grpSp" => {
                    let inside = transform.and_then(|it| ShapeBounds::read(it, ["chOff", "chExt"]));
                    self.collect(item, inside.zip(bounds), depth + 1, out);
                }
                "AlternateContent" => {
                    if let Some(branch) = chosen_branch(item) {
                        self.collect(branch, frame, depth, out);
                    }
                }
                "sp" | "cxnSp" | "graphicFrame" | "pic" => {
                    let is_opaque = self.is_opaque(item, properties);
                    let painted = self.painted_area(item, bounds);
                    out.push(PlacedShape { node: item, bounds, painted, is_opaque });
                }
                _ => {}
            }
        }
    }

    fn painted_area(
        &self,
        shape: XmlNode<'_, '_>,
        bounds: Option<ShapeBounds>,
    ) -> Option<PaintedArea> {
        let properties = child(shape, "spPr").filter(|_| !is_hidden_shape(shape))?;
        if shape.tag_name().name() == "pic" {
            return Some(PaintedArea { bounds, colour: None });
        }
        let mut fills = elements(properties).filter(|it| it.tag_name().name().ends_with("Fill"));
        let is_filled = match fills.next() {
            Some(fill) => fill.tag_name().name() != "noFill",
            None => child(shape, "style").is_some(),
        };
        let colour = shape_ground(Some(properties), None, self.theme);
        is_filled.then_some(PaintedArea { bounds, colour })
    }

    /// Whether a shape hides those under it: a rectangle of one colour.
    fn is_opaque(&self, shape: XmlNode<'_, '_>, properties: Option<XmlNode<'_, '_>>) -> bool {
        let Some(properties) = properties.filter(|_| !is_hidden_shape(shape)) else { return false };
        let form = child(properties, "prstGeom").and_then(|it| attribute(it, "prst"));
        let fill = child(properties, "solidFill");
        form.is_none_or(|form| form == "rect")
            && fill.is_some_and(|it| drawing_colour(it, self.theme).1 == DrawingOpacity::Full)
    }

    fn read_shape(
        &self,
        shape: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        match shape.tag_name().name() {
            "graphicFrame" => match all(shape, "tbl").next() {
                Some(table) => out.extend(self.read_table(table, ground).into_blocks()),
                None => out.push(FlowBlock::Note(PageNote::UnreadPicture)),
            },
            "pic" => read_picture(shape, out),
            _ => self.read_text_shape(shape, ground, out),
        }
    }

    fn read_text_shape(
        &self,
        shape: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) {
        let Some(body) = child(shape, "txBody") else { return };
        let placeholder = all(shape, "ph").next();
        let kind = placeholder.map(|it| attribute(it, "type").unwrap_or("body"));
        // The style of a shape, or its layout, may give it a ground.
        let is_styled = child(shape, "style").is_some();
        let outer = ground.filter(|_| !is_styled);
        let ground = shape_ground(child(shape, "spPr"), outer, self.theme);
        let mut numbers = [None; 9];
        for paragraph in all(body, "p") {
            let text = self.paragraph_text(paragraph, ground, out);
            // Programs show no label of a paragraph without text.
            if is_blank(&text) {
                continue;
            }
            let level = match kind {
                Some("title" | "ctrTitle") => Some(1),
                Some("subTitle") => Some(3),
                _ => None,
            };
            let bullet = (kind == Some("body")).then_some(self.bullet);
            let label = entry_label(paragraph, child(body, "lstStyle"), bullet, &mut numbers);
            let label = label.filter(|_| level.is_none());
            push_labelled(level, label, text, out);
        }
    }

    /// The visible text of a paragraph.
    fn paragraph_text(
        &self,
        paragraph: XmlNode<'_, '_>,
        ground: Option<RgbColour>,
        out: &mut Vec<FlowBlock>,
    ) -> String {
        let (mut text, mut last_look) = (String::new(), LastLook::default());
        for run in elements(paragraph) {
            match run.tag_name().name() {
                "r" | "fld" => {
                    let found: String = all(run, "t").map(own_text).collect();
                    if is_struck_run(run) {
                        out.push(FlowBlock::Note(PageNote::DeletedText));
                    } else if !is_unseen_run(run, ground, self.theme) {
                        let look = child(run, "rPr").map(|it| look_of(it, &EVEN_PROPERTIES));
                        // Slide numbers and dates are recomputed.
                        let kind = run.tag_name().name();
                        let look = format!("{kind} {}", look.unwrap_or_default());
                        last_look.begin(look, &mut text);
                        text.push_str(&found);
                    } else if !found.trim().is_empty() {
                        out.push(FlowBlock::Note(PageNote::HiddenText));
                    }
                }
                "br" => text.push('\n'),
                // The letters of a formula in their order.
                "m" | "AlternateContent" => {
                    let branch =
                        if run.tag_name().name() == "m" { Some(run) } else { chosen_branch(run) };
                    for (part, found) in branch.into_iter().flat_map(|it| all(it, "t")).enumerate()
                    {
                        last_look.begin(format!("formula {part}"), &mut text);
                        text.push_str(&own_text(found));
                    }
                }
                _ => {}
            }
        }
        text
    }

    fn read_table(&self, table: XmlNode<'_, '_>, ground: Option<RgbColour>) -> TableDraft {
        let mut draft = TableDraft::default();
        // The style of a table may give its cells a ground.
        let style = child(table, "tblPr").and_then(|it| child(it, "tableStyleId"));
        let outer = ground.filter(|_| style.is_none());
        for row in elements(table).filter(|it| it.tag_name().name() == "tr") {
            let mut cells = Vec::new();
            for cell in elements(row).filter(|it| it.tag_name().name() == "tc") {
                if matches!(attribute(cell, "hMerge"), Some("1" | "true")) {
                    continue;
                }
                let mut blocks = Vec::new();
                let ground = shape_ground(child(cell, "tcPr"), outer, self.theme);
                let mut numbers = [None; 9];
                let is_under = matches!(attribute(cell, "vMerge"), Some("1" | "true"));
                for paragraph in all(cell, "p").filter(|_| !is_under) {
                    let text = self.paragraph_text(paragraph, ground, &mut blocks);
                    let label = entry_label(paragraph, None, None, &mut numbers);
                    if !is_blank(&text) {
                        push_labelled(None, label, text, &mut blocks);
                    }
                }
                let columns = number(cell, "gridSpan").unwrap_or(1).clamp(1, 1000);
                cells.push(SheetCellDraft { blocks, columns });
            }
            draft.rows.push(cells);
        }
        draft
    }
}

/// The background of a shape: the last of those painted under it.
fn ground_under(
    own: Option<ShapeBounds>,
    painted: impl Iterator<Item = PaintedArea>,
    page: Option<RgbColour>,
) -> Option<RgbColour> {
    for area in painted {
        match own.zip(area.bounds) {
            Some((own, under)) if under.contains(&own) => return area.colour,
            Some((own, under)) if under.is_apart_from(&own) => {}
            _ => return None,
        }
    }
    page
}

/// Cells that a shape of a sheet lies over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CellCover {
    pub(crate) area: CellArea,
    /// Nothing under it is seen; a picture may have holes.
    pub(crate) is_opaque: bool,
}

impl CellCover {
    /// The cells under the shape of an anchor, if it has a fill or a picture.
    pub(crate) fn read(anchor: XmlNode<'_, '_>, theme: &ThemeColours) -> Option<Self> {
        let shape = elements(anchor).find(|it| matches!(it.tag_name().name(), "sp" | "pic"))?;
        let reader = ShapeReader { theme, bounds: None, under: &[], bullet: "•" };
        let is_picture = shape.tag_name().name() == "pic";
        let is_opaque = !is_picture && reader.is_opaque(shape, child(shape, "spPr"));
        if is_hidden_shape(shape) || !is_opaque && !is_picture {
            return None;
        }
        let (from, to) = (child(anchor, "from")?, child(anchor, "to")?);
        let (left, right) = cover_range(from, to, ["col", "colOff"])?;
        let (top, bottom) = cover_range(from, to, ["row", "rowOff"])?;
        let area = CellArea { columns: (left, right), rows: (top, bottom) };
        Some(Self { area, is_opaque })
    }
}

/// The columns or rows, from 1, of which a cover hides the text.
fn cover_range(
    from: XmlNode<'_, '_>,
    to: XmlNode<'_, '_>,
    [name, offset]: [&str; 2],
) -> Option<(u32, u32)> {
    let [first, last] = [from, to].map(|it| own_text(child(it, name)?).trim().parse::<u32>().ok());
    let [before, behind] =
        [from, to].map(|it| own_text(child(it, offset)?).trim().parse::<u64>().ok());
    let first = first?.checked_add(if before? > MAX_COVER_INSET { 2 } else { 1 })?;
    let reach = if name == "col" { MIN_COVER_REACH } else { MAX_COVER_INSET };
    let last = last?.checked_add(u32::from(behind? > reach))?;
    Some((first, last))
}

fn is_hidden_shape(shape: XmlNode<'_, '_>) -> bool {
    let properties = elements(shape).find(|it| it.tag_name().name().starts_with("nv"));
    let own = properties.and_then(|it| child(it, "cNvPr"));
    own.is_some_and(|it| matches!(attribute(it, "hidden"), Some("1" | "true")))
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

/// The label of a paragraph of a shape, and its level; those of a body have the usual bullet unless
/// they say they have none.
fn entry_label(
    paragraph: XmlNode<'_, '_>,
    styles: Option<XmlNode<'_, '_>>,
    usual: Option<&str>,
    numbers: &mut [Option<u32>; 9],
) -> Option<(u8, ListLabel)> {
    let own = child(paragraph, "pPr");
    let level = own.and_then(|it| number(it, "lvl")).unwrap_or(0).min(8);
    let at = usize::try_from(level).unwrap_or(0);
    let name = format!("lvl{}pPr", level + 1);
    let style = styles.and_then(|it| elements(it).find(|it| it.tag_name().name() == name));
    let sources: Vec<XmlNode<'_, '_>> = [own, style].into_iter().flatten().collect();
    let mark = sources
        .iter()
        .find_map(|it| elements(*it).find(|it| MARKS.contains(&it.tag_name().name())));
    let indent = sources.iter().find_map(|it| attribute(*it, "indent")?.parse::<i64>().ok());
    let gap = match indent {
        Some(indent) if indent >= 0 => LabelGap::Nothing,
        None if usual.is_none() => LabelGap::Nothing,
        _ => LabelGap::Wide,
    };
    let font = sources.iter().find_map(|it| attribute(child(*it, "buFont")?, "typeface"));
    let label = match mark.map(|it| (it.tag_name().name(), it)) {
        Some(("buAutoNum", form)) => number_entry(form, at, numbers, gap),
        Some(("buChar", _)) if font.is_some_and(is_pictographic) => ListLabel::bullet("•", gap),
        Some(("buChar", mark)) => {
            ListLabel::bullet(attribute(mark, "char").unwrap_or_default(), gap)
        }
        // A picture may be a sign.
        Some(("buBlip", _)) => ListLabel::bullet("-", gap),
        Some(_) => return None,
        None => ListLabel::bullet(usual?, gap),
    };
    Some((u8::try_from(level).unwrap_or(0), label))
}

/// The label of the next entry of a level that counts.
fn number_entry(
    node: XmlNode<'_, '_>,
    at: usize,
    numbers: &mut [Option<u32>; 9],
    gap: LabelGap,
) -> ListLabel {
    let form = attribute(node, "type").unwrap_or("arabicPeriod");
    for deeper in numbers.iter_mut().skip(at + 1) {
        *deeper = None;
    }
    let start = number(node, "startAt").unwrap_or(1);
    let count = numbers.get(at).copied().flatten().map_or(start, |last| last.saturating_add(1));
    if let Some(last) = numbers.get_mut(at) {
        *last = Some(count);
    }
    let kinds = [("alphaLc", "a"), ("alphaUc", "A"), ("romanLc", "i"), ("romanUc", "I")];
    let kind = kinds.iter().find(|(start, _)| form.starts_with(start)).map_or("1", |it| it.1);
    let count = number_label(kind, count);
    let text = match form {
        form if form.ends_with("ParenBoth") => format!("({count})"),
        form if form.ends_with("ParenR") => format!("{count})"),
        form if form.ends_with("Plain") => count,
        _ => format!("{count}."),
    };
    ListLabel::new(text, gap)
}
