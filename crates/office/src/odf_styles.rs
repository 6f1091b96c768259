//! Styles of OpenDocument: visibility, list labels and text spans.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::colours::{RgbColour, is_lost, is_pictographic};
use crate::styling::{LabelGap, ListLabel, number_label};
use crate::tags::{attribute, child, elements, number};

/// Minimum size of rows and columns that show text.
const MIN_LINE_CENTIMETRES: f32 = 0.07;
/// Properties that move, shrink, fade or strike through text.
const UNEVEN: [&str; 14] = [
    "color",
    "opacity",
    "background-color",
    "font-size",
    "text-position",
    "text-scale",
    "letter-spacing",
    "text-rotation-angle",
    "text-line-through-text",
    "text-combine",
    "font-relief",
    "text-outline",
    "use-window-font-color",
    "text-blinking",
];

/// Properties of a style that decide visibility.
#[derive(Debug, Clone, Default)]
pub(crate) struct OdfStyle {
    pub(crate) base: Option<String>,
    pub(crate) hidden: bool,
    pub(crate) struck: Option<bool>,
    pub(crate) ink: Option<RgbColour>,
    /// `None` within: of pictures or patterns.
    pub(crate) ground: Option<Option<RgbColour>>,
    pub(crate) hidden_table: bool,
    pub(crate) is_flat: bool,
    pub(crate) hidden_page: bool,
    pub(crate) starts_page: bool,
    pub(crate) list_levels: Vec<OdfListLevel>,
    /// Hash of its other text properties.
    pub(crate) letters: Option<u64>,
}

/// The labels of one level of a list.
#[derive(Debug, Clone)]
pub(crate) struct OdfListLevel {
    /// The form of its numbers, if it has some.
    pub(crate) form: Option<String>,
    /// The text before the number, or in place of it, and behind it.
    pub(crate) prefix: String,
    pub(crate) suffix: String,
    pub(crate) start: u32,
    pub(crate) gap: LabelGap,
}

impl OdfListLevel {
    pub(crate) fn read(node: XmlNode<'_, '_>) -> Self {
        let text = |name| attribute(node, name).unwrap_or_default();
        let (form, middle) = match node.tag_name().name() {
            "list-level-style-number" => (Some(text("num-format").to_owned()), ""),
            // A picture may be a sign.
            "list-level-style-image" => (None, "-"),
            _ => (None, text("bullet-char")),
        };
        let place = child(node, "list-level-properties");
        let aligned = place.and_then(|it| child(it, "list-level-label-alignment"));
        let widths = ["min-label-width", "min-label-distance"]
            .map(|name| place.and_then(|it| centimetres(attribute(it, name)?)).unwrap_or_default());
        let gap = match aligned.map(|it| attribute(it, "label-followed-by")) {
            Some(Some("nothing")) => LabelGap::Nothing,
            Some(Some("space")) => LabelGap::Space,
            Some(_) => LabelGap::Wide,
            None if widths.iter().any(|width| *width > 0.0) => LabelGap::Wide,
            None => LabelGap::Nothing,
        };
        let prefix = [text("num-prefix"), middle].concat();
        let suffix = text("num-suffix").to_owned();
        Self { form, prefix, suffix, start: number(node, "start-value").unwrap_or(1), gap }
    }

    pub(crate) fn label(&self, count: u32) -> ListLabel {
        let Self { form, prefix, suffix, gap, .. } = self;
        match form {
            Some(form) => {
                ListLabel::new([prefix, number_label(form, count).as_str(), suffix].concat(), *gap)
            }
            None => ListLabel::bullet(&[prefix.as_str(), suffix].concat(), *gap),
        }
    }
}

/// Keys are the family and the name.
pub(crate) type OdfStyles = HashMap<String, OdfStyle>;

pub(crate) fn collect_styles(root: XmlNode<'_, '_>, styles: &mut OdfStyles) {
    for node in root.descendants() {
        match node.tag_name().name() {
            "style" => {
                let Some(name) = attribute(node, "name") else { continue };
                styles.insert(name.to_owned(), read_style(node));
            }
            "list-style" => {
                let Some(name) = attribute(node, "name") else { continue };
                let list_levels = elements(node).map(OdfListLevel::read).take(10).collect();
                styles.insert(name.to_owned(), OdfStyle { list_levels, ..OdfStyle::default() });
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
        let ground = attribute(properties, "background-color").filter(|it| *it != "transparent");
        style.ground = ground.map(RgbColour::parse).or(style.ground);
        style.starts_page |= attribute(properties, "break-before") == Some("page");
        match properties.tag_name().name() {
            "text-properties" => read_text_style(properties, &mut style),
            "graphic-properties" => match attribute(properties, "fill") {
                Some("solid") => {
                    let colour = attribute(properties, "fill-color").and_then(RgbColour::parse);
                    style.ground = Some(colour);
                }
                Some("none") | None => {}
                Some(_) => style.ground = Some(None),
            },
            "table-row-properties" | "table-column-properties" => {
                let sizes = ["row-height", "column-width"];
                let mut sizes = sizes.iter().filter_map(|name| attribute(properties, name));
                style.is_flat |=
                    sizes.any(|it| centimetres(it).is_some_and(|it| it < MIN_LINE_CENTIMETRES));
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

fn read_text_style(properties: XmlNode<'_, '_>, style: &mut OdfStyle) {
    style.hidden |= attribute(properties, "display") == Some("none")
        || attribute(properties, "font-size")
            .is_some_and(|it| it.starts_with("0pt") || it == "1pt")
        || attribute(properties, "font-name").is_some_and(is_pictographic)
        || attribute(properties, "text-scale")
            .and_then(|it| it.strip_suffix('%')?.parse().ok())
            .is_some_and(|percent: f32| percent < 10.0);
    style.ink = attribute(properties, "color").and_then(RgbColour::parse);
    let lines = ["text-line-through-style", "text-line-through-type"];
    let mut lines = lines.iter().filter_map(|name| attribute(properties, name)).peekable();
    style.struck = lines.peek().is_some().then(|| lines.all(|line| line != "none"));
    let uneven = properties.attributes().filter(|it| UNEVEN.contains(&it.name()));
    let stated: Vec<(&str, &str)> = uneven.map(|it| (it.name(), it.value())).collect();
    style.letters = (!stated.is_empty()).then(|| hash_of(&stated));
}

pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The look of text within its spans.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InlineLook {
    pub(crate) hidden: bool,
    pub(crate) struck: bool,
    pub(crate) ink: Option<RgbColour>,
    pub(crate) ground: Option<RgbColour>,
    /// Hash of the properties of its letters.
    pub(crate) letters: u64,
}

impl InlineLook {
    pub(crate) fn within(self, style: &OdfStyle) -> Self {
        Self {
            hidden: self.hidden || style.hidden,
            struck: style.struck.unwrap_or(self.struck),
            ink: style.ink.or(self.ink),
            ground: style.ground.unwrap_or(self.ground),
            letters: style.letters.unwrap_or(self.letters),
        }
    }

    /// The note on invisible text; `None`: visible.
    pub(crate) fn note(self) -> Option<PageNote> {
        if self.hidden || is_lost(self.ink, self.ground) {
            return Some(PageNote::HiddenText);
        }
        self.struck.then_some(PageNote::DeletedText)
    }
}

/// A length in centimetres.
pub(crate) fn centimetres(length: &str) -> Option<f32> {
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
