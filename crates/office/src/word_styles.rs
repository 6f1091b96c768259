//! Styles and numbering of WordprocessingML: which paragraphs are headings or entries of lists, and
//! which runs are hidden (ISO/IEC 29500-1 §17.7 and §17.9).

use std::collections::HashMap;

use docmill_formats::xml::XmlNode;

use crate::styling::{is_white, number_label};
use crate::tags::{all, attribute, child, child_value, elements, number, switch};

/// Styles that a style is based on, one on the other: further ones are not followed, so that a circle
/// ends.
const MAX_BASES: usize = 16;

/// Letters of this size are specks.
const MAX_TINY_HALF_POINTS: u32 = 2;
/// Letters that are narrower than this, in percent of their width, are lines.
const MIN_SCALE_PERCENT: u32 = 10;

/// Levels of a list.
const MAX_LEVELS: usize = 9;

/// The look of a run as far as it decides whether it is seen. `None`: not said here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunLook {
    pub(crate) hidden: Option<bool>,
    pub(crate) white: Option<bool>,
    /// A background of its own: white letters may be seen on it.
    pub(crate) shaded: Option<bool>,
    pub(crate) tiny: Option<bool>,
}

impl RunLook {
    /// The look that a `w:rPr` has.
    pub(crate) fn read(properties: XmlNode<'_, '_>) -> Self {
        let white = child(properties, "color").map(is_white_colour);
        let scale = child(properties, "w").and_then(|it| number(it, "val"));
        let size = child(properties, "sz").and_then(|it| number(it, "val"));
        let is_squeezed = scale.map(|percent| percent < MIN_SCALE_PERCENT);
        let is_small = size.map(|size| size <= MAX_TINY_HALF_POINTS);
        let highlight =
            child(properties, "highlight").map(|it| attribute(it, "val") != Some("none"));
        Self {
            hidden: switch(properties, "vanish"),
            white,
            shaded: highlight.or_else(|| child(properties, "shd").map(is_shading)),
            tiny: is_squeezed.filter(|squeezed| *squeezed).or(is_small),
        }
    }

    /// This look where it says something, else the other one.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            hidden: self.hidden.or(other.hidden),
            white: self.white.or(other.white),
            shaded: self.shaded.or(other.shaded),
            tiny: self.tiny.or(other.tiny),
        }
    }

    /// Whether nobody sees it, on white ground or on one of its own.
    pub(crate) fn is_unseen(self, on_white: bool) -> bool {
        self.hidden == Some(true)
            || self.tiny == Some(true)
            || on_white && self.white == Some(true) && self.shaded != Some(true)
    }
}

/// Whether a `w:color` is white, by itself or as the ground of the theme, which a shade darkens.
fn is_white_colour(node: XmlNode<'_, '_>) -> bool {
    let theme = attribute(node, "themeColor");
    let is_ground = matches!(theme, Some("background1" | "light1" | "bg1" | "lt1"))
        && attribute(node, "themeShade").is_none();
    is_ground || theme.is_none() && attribute(node, "val").is_some_and(is_white)
}

/// Whether a `w:shd` fills its ground with something else than white.
pub(crate) fn is_shading(node: XmlNode<'_, '_>) -> bool {
    let fill = attribute(node, "fill").unwrap_or("auto");
    let is_plain = fill == "auto" || is_white(fill);
    let has_pattern = !matches!(attribute(node, "val"), None | Some("clear" | "nil"));
    !is_plain || has_pattern || attribute(node, "themeFill").is_some()
}

/// The place of a paragraph in a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListPlace {
    pub(crate) list: Option<String>,
    pub(crate) level: Option<usize>,
}

impl ListPlace {
    /// The place that a `w:pPr` names.
    pub(crate) fn read(properties: XmlNode<'_, '_>) -> Self {
        let Some(node) = child(properties, "numPr") else { return Self::default() };
        Self {
            list: child_value(node, "numId").map(str::to_owned),
            level: child_value(node, "ilvl").and_then(|it| it.parse().ok()),
        }
    }
}

#[derive(Debug, Default)]
struct StyleEntry {
    name: String,
    base: Option<String>,
    outline: Option<u8>,
    look: RunLook,
    place: ListPlace,
    shaded: bool,
}

/// All styles of a document.
#[derive(Debug, Default)]
pub(crate) struct StyleSheet {
    styles: HashMap<String, StyleEntry>,
}

impl StyleSheet {
    /// The styles below a node.
    pub(crate) fn read(root: XmlNode<'_, '_>) -> Self {
        let mut styles = HashMap::new();
        for node in all(root, "style") {
            let Some(id) = attribute(node, "styleId") else { continue };
            let paragraph = child(node, "pPr");
            let outline = paragraph.and_then(outline_level);
            let entry = StyleEntry {
                name: child_value(node, "name").unwrap_or_default().to_ascii_lowercase(),
                base: child_value(node, "basedOn").map(str::to_owned),
                outline,
                look: child(node, "rPr").map(RunLook::read).unwrap_or_default(),
                place: paragraph.map(ListPlace::read).unwrap_or_default(),
                shaded: all(node, "shd").any(is_shading),
            };
            styles.insert(id.to_owned(), entry);
        }
        Self { styles }
    }

    fn chain(&self, id: &str) -> impl Iterator<Item = &StyleEntry> {
        let first = self.styles.get(id);
        let rest = std::iter::successors(first, |style| self.styles.get(style.base.as_deref()?));
        rest.take(MAX_BASES)
    }

    /// Level of the heading that paragraphs of a style are, from 1.
    pub(crate) fn heading_level(&self, id: &str) -> Option<u8> {
        self.chain(id).find_map(|style| {
            let numbered = style.name.strip_prefix("heading ").and_then(|it| it.parse().ok());
            let named = if style.name == "title" { Some(1) } else { numbered };
            named.or(style.outline)
        })
    }

    /// The look of runs in a style.
    pub(crate) fn look(&self, id: &str) -> RunLook {
        self.chain(id).fold(RunLook::default(), |look, style| look.or(style.look))
    }

    /// The list of paragraphs in a style.
    pub(crate) fn place(&self, id: &str) -> ListPlace {
        let mut found = ListPlace::default();
        for style in self.chain(id) {
            found.list = found.list.or_else(|| style.place.list.clone());
            found.level = found.level.or(style.place.level);
        }
        found
    }

    /// Whether a style gives its table, paragraph or text a ground that is not white.
    pub(crate) fn is_shaded(&self, id: &str) -> bool {
        self.chain(id).any(|style| style.shaded)
    }
}

/// The level that a `w:pPr` names, from 1.
pub(crate) fn outline_level(properties: XmlNode<'_, '_>) -> Option<u8> {
    let level = number(child(properties, "outlineLvl")?, "val")?;
    u8::try_from(level).ok().filter(|level| *level < 9).map(|level| level + 1)
}

#[derive(Debug, Clone)]
struct ListLevel {
    form: String,
    text: String,
    start: u32,
}

/// Lists and how far they have counted.
#[derive(Debug, Default)]
pub(crate) struct ListCounter {
    /// By the id of the list: the id of its definition.
    lists: HashMap<String, String>,
    levels: HashMap<String, Vec<ListLevel>>,
    counts: HashMap<String, Vec<u32>>,
}

impl ListCounter {
    /// The lists below a node.
    pub(crate) fn read(root: XmlNode<'_, '_>) -> Self {
        let mut found = Self::default();
        for node in all(root, "abstractNum") {
            let Some(id) = attribute(node, "abstractNumId") else { continue };
            let levels = elements(node).filter(|it| it.tag_name().name() == "lvl");
            let levels = levels.take(MAX_LEVELS).map(|level| {
                let start = child_value(level, "start").and_then(|it| it.parse().ok());
                ListLevel {
                    form: child_value(level, "numFmt").unwrap_or("decimal").to_owned(),
                    text: child_value(level, "lvlText").unwrap_or_default().to_owned(),
                    start: start.unwrap_or(1),
                }
            });
            found.levels.insert(id.to_owned(), levels.collect());
        }
        for node in all(root, "num") {
            let definition = child_value(node, "abstractNumId");
            if let (Some(id), Some(definition)) = (attribute(node, "numId"), definition) {
                found.lists.insert(id.to_owned(), definition.to_owned());
            }
        }
        found
    }

    /// The label of the next entry of a list; `None` if there is no such list.
    pub(crate) fn next_label(&mut self, list: &str, level: usize) -> Option<String> {
        let definition = self.lists.get(list)?;
        let levels = self.levels.get(definition)?;
        let level = level.min(levels.len().saturating_sub(1));
        let this = levels.get(level)?;
        let starts = levels.iter().map(|level| level.start.saturating_sub(1));
        let counts = self.counts.entry(definition.clone()).or_insert_with(|| starts.collect());
        if let Some(count) = counts.get_mut(level) {
            *count = count.saturating_add(1);
        }
        for (deeper, count) in levels.iter().zip(counts.iter_mut()).skip(level + 1) {
            *count = deeper.start.saturating_sub(1);
        }
        match this.form.as_str() {
            "bullet" => return Some("•".to_owned()),
            "none" => return None,
            _ => {}
        }
        let mut label = this.text.clone();
        for (at, (level, count)) in levels.iter().zip(counts).enumerate() {
            label = label.replace(&format!("%{}", at + 1), &number_label(&level.form, *count));
        }
        Some(label)
    }
}
