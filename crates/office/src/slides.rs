//! PPTX: PresentationML (ISO/IEC 29500-1 §19): a page for each slide that is shown.
//!
//! Not read: hidden slides, shapes that are not seen, speaker notes, comments, text of masters and
//! layouts. These give the slide its ground.

use std::collections::HashMap;

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::colours::{
    RgbColour, ThemeColours, WHITE, drawing_colour, is_pictographic, shape_ground,
};
use crate::content::{DocumentFlow, FlowBlock, FlowWriter, PaperKind};
use crate::error::OfficeError;
use crate::package::{MainPart, OfficePackage, part_of_kind};
use crate::shapes::{PaintedArea, ShapeBounds, ShapeReader};
use crate::styling::plain_symbol;
use crate::tags::{all, attribute, child, drawing_size, elements};

/// Reads slides by its main part.
pub(crate) fn read_slides(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let tree = main.xml.parse_tree()?;
    let size = all(tree.root(), "sldSz").next();
    let [width, height] = ["cx", "cy"].map(|name| drawing_size(size, name));
    let bounds = (width > 0 && height > 0).then(|| ShapeBounds::of_page(width, height));
    let mut designs: HashMap<String, SlideDesign> = HashMap::new();
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
        let layout = part_of_kind(&relations, "slideLayout").unwrap_or_default();
        if !designs.contains_key(&layout) {
            designs.insert(layout.clone(), SlideDesign::read(&mut package, &layout)?);
        }
        if let Some(shapes) = all(tree.root(), "spTree").next()
            && let Some(design) = designs.get(&layout)
        {
            let ground = slide_ground(tree.root(), &design.theme).unwrap_or(design.ground);
            let reader = ShapeReader {
                theme: &design.theme,
                bounds,
                under: &design.under,
                bullet: design.bullet,
            };
            reader.read_shapes(shapes, ground, &mut blocks);
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

/// The ground that slides of one layout have.
#[derive(Debug, Default)]
struct SlideDesign {
    theme: ThemeColours,
    ground: Option<RgbColour>,
    /// Shapes of master and layout, painted under those of a slide.
    under: Vec<PaintedArea>,
    /// Of bodies that name none: a digit if any of the design is one.
    bullet: &'static str,
}

impl SlideDesign {
    /// The design of a layout and its master.
    fn read(package: &mut OfficePackage<'_>, layout: &str) -> Result<Self, OfficeError> {
        let master = part_of_kind(&package.relations(layout)?, "slideMaster").unwrap_or_default();
        let theme = part_of_kind(&package.relations(&master)?, "theme");
        let theme = match package.read_optional(theme)? {
            Some(xml) => ThemeColours::read(xml.parse_tree()?.root()),
            None => ThemeColours::default(),
        };
        let mut found = Self { theme, ground: Some(WHITE), under: Vec::new(), bullet: "•" };
        for part in [master.as_str(), layout] {
            let Some(xml) = package.read_xml(part)? else { continue };
            let tree = xml.parse_tree()?;
            found.ground = slide_ground(tree.root(), &found.theme).unwrap_or(found.ground);
            if all(tree.root(), "buChar").any(has_digit_char) {
                found.bullet = "9";
            }
            if let Some(shapes) = all(tree.root(), "spTree").next() {
                let reader =
                    ShapeReader { theme: &found.theme, bounds: None, under: &[], bullet: "•" };
                let painted = reader.painted_areas(shapes);
                found.under.extend(painted);
            }
        }
        Ok(found)
    }
}

/// Whether a bullet is a digit, in a font of letters.
fn has_digit_char(mark: XmlNode<'_, '_>) -> bool {
    let font = mark.parent().and_then(|it| attribute(child(it, "buFont")?, "typeface"));
    let text = attribute(mark, "char").unwrap_or_default();
    !font.is_some_and(is_pictographic) && text.chars().map(plain_symbol).any(char::is_numeric)
}

/// The ground that a slide, layout or master gives itself: `None` within if it is unknown.
fn slide_ground(root: XmlNode<'_, '_>, theme: &ThemeColours) -> Option<Option<RgbColour>> {
    let ground = all(root, "bg").next()?;
    if let Some(properties) = child(ground, "bgPr") {
        return Some(shape_ground(Some(properties), Some(WHITE), theme));
    }
    // Index into the theme's fills, with the colour of a solid one.
    let named = child(ground, "bgRef").filter(|it| attribute(*it, "idx") == Some("1001"))?;
    Some(elements(named).next().and_then(|_| drawing_colour(named, theme).0))
}
