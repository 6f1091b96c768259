//! Styles and numbering of WordprocessingML: which paragraphs are headings or entries of lists, and
//! which runs are hidden (ISO/IEC 29500-1 §17.7 and §17.9).

use std::collections::HashMap;

use docmill_formats::xml::XmlNode;

use crate::colours::{RgbColour, ThemeColours, WHITE, is_lost, is_pictographic};
use crate::styling::{LabelGap, ListLabel, number_label};
use crate::tags::{all, attribute, child, child_value, elements, number, switch};

/// Styles that a style is based on, one on the other: further ones are not followed, so that a circle
/// ends.
const MAX_BASES: usize = 16;

/// Letters of this size are specks.
const MAX_TINY_HALF_POINTS: u32 = 2;
/// Letters that are narrower than this, in percent of their width, are lines.
const MIN_SCALE_PERCENT: u32 = 10;

/// Minimum line height that shows text.
const MIN_LINE_TWIPS: i64 = 40;
/// Indents of this length begin beside the page, to either side.
const MAX_INDENT_TWIPS: i64 = 8_640;

/// Levels of a list.
const MAX_LEVELS: usize = 9;

/// The look of a run as far as it decides whether it is seen. `None`: not said here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunLook {
    pub(crate) hidden: Option<bool>,
    pub(crate) struck: Option<bool>,
    struck_twice: Option<bool>,
    /// `None` within: chosen by the program, so that it is seen.
    ink: Option<Option<RgbColour>>,
    /// A ground of its own; `None` within: a pattern.
    ground: Option<Option<RgbColour>>,
    tiny: Option<bool>,
    /// In a font of pictures.
    pub(crate) pictured: Option<bool>,
}

impl RunLook {
    /// The look that a `w:rPr` has.
    pub(crate) fn read(properties: XmlNode<'_, '_>, theme: &ThemeColours) -> Self {
        let scale = child(properties, "w").and_then(|it| number(it, "val"));
        let size = child(properties, "sz").and_then(|it| number(it, "val"));
        let is_squeezed = scale.map(|percent| percent < MIN_SCALE_PERCENT);
        let is_small = size.map(|size| size <= MAX_TINY_HALF_POINTS);
        let highlight = child(properties, "highlight").and_then(|it| attribute(it, "val"));
        let highlight = highlight.filter(|name| *name != "none").map(RgbColour::parse);
        let shading = child(properties, "shd").and_then(|it| shading_ground(it, theme));
        let font = child(properties, "rFonts").and_then(|it| attribute(it, "ascii"));
        Self {
            hidden: switch(properties, "vanish"),
            struck: switch(properties, "strike"),
            struck_twice: switch(properties, "dstrike"),
            ink: child(properties, "color").map(|it| word_colour(it, &INK, theme)),
            ground: highlight.or(shading),
            tiny: is_squeezed.filter(|squeezed| *squeezed).or(is_small),
            pictured: font.map(is_pictographic),
        }
    }

    /// This look where it says something, else the other one.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            hidden: self.hidden.or(other.hidden),
            struck: self.struck.or(other.struck),
            struck_twice: self.struck_twice.or(other.struck_twice),
            ink: self.ink.or(other.ink),
            ground: self.ground.or(other.ground),
            tiny: self.tiny.or(other.tiny),
            pictured: self.pictured.or(other.pictured),
        }
    }

    /// Whether it is invisible on a background; `None`: unknown background.
    pub(crate) fn is_unseen(self, ground: Option<RgbColour>) -> bool {
        self.hidden == Some(true)
            || self.tiny == Some(true)
            || self.pictured == Some(true)
            || is_lost(self.ink.flatten(), self.ground.unwrap_or(ground))
    }

    pub(crate) fn is_struck(self) -> bool {
        self.struck == Some(true) || self.struck_twice == Some(true)
    }
}

/// The attributes of a colour: its value, its name in the theme, and how the theme's is changed.
struct ColourNames {
    value: &'static str,
    theme: &'static str,
    tint: &'static str,
    shade: &'static str,
}

const INK: ColourNames =
    ColourNames { value: "val", theme: "themeColor", tint: "themeTint", shade: "themeShade" };
const FILL: ColourNames = ColourNames {
    value: "fill",
    theme: "themeFill",
    tint: "themeFillTint",
    shade: "themeFillShade",
};
const PATTERN: ColourNames = ColourNames { value: "color", ..INK };

/// A colour by the theme, else by its value; `None`: automatic.
fn word_colour(
    node: XmlNode<'_, '_>,
    names: &ColourNames,
    theme: &ThemeColours,
) -> Option<RgbColour> {
    let Some(name) = attribute(node, names.theme).filter(|name| *name != "none") else {
        return attribute(node, names.value).and_then(RgbColour::parse);
    };
    let colour = theme.named(name)?;
    let [tint, shade] = [names.tint, names.shade].map(|name| {
        let share = u8::from_str_radix(attribute(node, name)?, 16).ok()?;
        Some(1.0 - f32::from(share) / 255.0)
    });
    let darker = colour.mixed(RgbColour([0; 3]), shade.unwrap_or(0.0));
    Some(darker.mixed(WHITE, tint.unwrap_or(0.0)))
}

/// The background of a `w:shd`; `None`: no background; `None` within: a pattern.
pub(crate) fn shading_ground(
    node: XmlNode<'_, '_>,
    theme: &ThemeColours,
) -> Option<Option<RgbColour>> {
    match attribute(node, "val") {
        None | Some("clear" | "nil") => word_colour(node, &FILL, theme).map(Some),
        Some("solid") => Some(word_colour(node, &PATTERN, theme)),
        Some(_) => Some(None),
    }
}

/// Whether a paragraph is cut off or lies beside the page: lines of no height, indents and frames
/// that are wider than a page.
pub(crate) fn is_off_page(properties: XmlNode<'_, '_>) -> bool {
    let lines = child(properties, "spacing");
    let is_flat = lines.is_some_and(|it| {
        attribute(it, "lineRule") == Some("exact")
            && twips(it, &["line"]).is_some_and(|line| line < MIN_LINE_TWIPS)
    });
    let indent = child(properties, "ind");
    let left = indent.and_then(|it| twips(it, &["left", "start"])).unwrap_or(0);
    let first = indent.and_then(|it| twips(it, &["firstLine"])).unwrap_or(0);
    let frame = child(properties, "framePr");
    let frame = ["x", "y"].map(|name| frame.and_then(|it| twips(it, &[name])).unwrap_or(0));
    let [across, down] = frame;
    is_flat
        || [left.saturating_add(first), left, across, down]
            .iter()
            .any(|at| !(-MAX_INDENT_TWIPS..2 * MAX_INDENT_TWIPS).contains(at))
}

/// Whether a table row has zero height.
pub(crate) fn is_flat_row(properties: XmlNode<'_, '_>) -> bool {
    child(properties, "trHeight").is_some_and(|it| {
        attribute(it, "hRule") == Some("exact")
            && twips(it, &["val"]).is_some_and(|height| height < MIN_LINE_TWIPS)
    })
}

/// A length in twentieths of a point, by the first of the names that is there.
fn twips(node: XmlNode<'_, '_>, names: &[&str]) -> Option<i64> {
    names.iter().find_map(|name| attribute(node, name)?.trim().parse().ok())
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
    /// Of its paragraphs.
    ground: Option<Option<RgbColour>>,
    /// Any part of it has a ground, as of the cells of a table.
    has_shading: bool,
}

/// All styles of a document.
#[derive(Debug, Default)]
pub(crate) struct StyleSheet {
    styles: HashMap<String, StyleEntry>,
    /// The style of paragraphs that name none.
    usual: Option<String>,
    /// The default run style.
    base: RunLook,
}

impl StyleSheet {
    /// The styles below a node.
    pub(crate) fn read(root: XmlNode<'_, '_>, theme: &ThemeColours) -> Self {
        let (mut styles, mut usual) = (HashMap::new(), None);
        for node in all(root, "style") {
            let Some(id) = attribute(node, "styleId") else { continue };
            let is_usual = matches!(attribute(node, "default"), Some("1" | "true"));
            if is_usual && attribute(node, "type") == Some("paragraph") {
                usual = Some(id.to_owned());
            }
            let paragraph = child(node, "pPr");
            let outline = paragraph.and_then(outline_level);
            let entry = StyleEntry {
                name: child_value(node, "name").unwrap_or_default().to_ascii_lowercase(),
                base: child_value(node, "basedOn").map(str::to_owned),
                outline,
                look: child(node, "rPr").map(|it| RunLook::read(it, theme)).unwrap_or_default(),
                place: paragraph.map(ListPlace::read).unwrap_or_default(),
                ground: paragraph.and_then(|it| shading_ground(child(it, "shd")?, theme)),
                has_shading: all(node, "shd")
                    .any(|it| shading_ground(it, theme).is_some_and(|it| it != Some(WHITE))),
            };
            styles.insert(id.to_owned(), entry);
        }
        let base = all(root, "rPrDefault").find_map(|it| child(it, "rPr"));
        let base = base.map(|it| RunLook::read(it, theme)).unwrap_or_default();
        Self { styles, usual, base }
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

    /// The look of runs in a paragraph of a style, or of none.
    pub(crate) fn paragraph_look(&self, id: &str) -> RunLook {
        let id = if id.is_empty() { self.usual.as_deref().unwrap_or_default() } else { id };
        self.look(id).or(self.base)
    }

    /// The ground of paragraphs in a style.
    pub(crate) fn ground(&self, id: &str) -> Option<Option<RgbColour>> {
        self.chain(id).find_map(|style| style.ground)
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
        self.chain(id).any(|style| style.has_shading)
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
    gap: LabelGap,
    look: RunLook,
}

impl ListLevel {
    fn read(node: XmlNode<'_, '_>, theme: &ThemeColours) -> Self {
        let start = child_value(node, "start").and_then(|it| it.parse().ok());
        // A picture may be a sign.
        let picture = child(node, "lvlPicBulletId").map(|_| "-");
        let text = picture.or_else(|| child_value(node, "lvlText")).unwrap_or_default();
        Self {
            form: child_value(node, "numFmt").unwrap_or("decimal").to_owned(),
            text: text.to_owned(),
            start: start.unwrap_or(1),
            gap: match child_value(node, "suff") {
                Some("nothing") => LabelGap::Nothing,
                Some("space") => LabelGap::Space,
                _ => LabelGap::Wide,
            },
            look: child(node, "rPr").map(|it| RunLook::read(it, theme)).unwrap_or_default(),
        }
    }

    /// The label with the counts of the levels down to this one.
    fn label(&self, counts: &[(&str, u32)]) -> ListLabel {
        let mut text = self.text.clone();
        for (at, (form, count)) in counts.iter().enumerate() {
            text = text.replace(&format!("%{}", at + 1), &number_label(form, *count));
        }
        match self.form.as_str() {
            "bullet" | "none" => ListLabel::bullet(&text, self.gap),
            _ => ListLabel::new(text, self.gap),
        }
    }
}

/// A list: the definition that it counts with, and its levels.
#[derive(Debug)]
struct ListForm {
    base: String,
    levels: Vec<ListLevel>,
    /// Levels that restart with its first entry.
    restarts: Vec<usize>,
}

impl ListForm {
    /// The list of a `w:num` by the definition that it names.
    fn read(node: XmlNode<'_, '_>, base: XmlNode<'_, '_>, theme: &ThemeColours) -> Self {
        let levels = elements(base).filter(|it| it.tag_name().name() == "lvl").take(MAX_LEVELS);
        let mut found = Self {
            base: attribute(base, "abstractNumId").unwrap_or_default().to_owned(),
            levels: levels.map(|it| ListLevel::read(it, theme)).collect(),
            restarts: Vec::new(),
        };
        for change in elements(node).filter(|it| it.tag_name().name() == "lvlOverride") {
            let at = number(change, "ilvl").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
            let Some(level) = found.levels.get_mut(at) else { continue };
            if let Some(own) = child(change, "lvl") {
                *level = ListLevel::read(own, theme);
            }
            if let Some(start) = child(change, "startOverride").and_then(|it| number(it, "val")) {
                level.start = start;
                found.restarts.push(at);
            }
        }
        found
    }
}

/// Lists and how far they have counted.
#[derive(Debug, Default)]
pub(crate) struct ListCounter {
    lists: HashMap<String, ListForm>,
    /// By the definition: the last number of each level, if it has begun.
    counts: HashMap<String, [Option<u32>; MAX_LEVELS]>,
}

impl ListCounter {
    /// The lists below a node.
    pub(crate) fn read(root: XmlNode<'_, '_>, theme: &ThemeColours) -> Self {
        let mut found = Self::default();
        for node in all(root, "num") {
            let (id, base) = (attribute(node, "numId"), child_value(node, "abstractNumId"));
            let named = all(root, "abstractNum").find(|it| attribute(*it, "abstractNumId") == base);
            // A definition may name a style, which another one defines.
            let style = named.and_then(|it| child_value(it, "numStyleLink"));
            let linked = style.and_then(|style| {
                all(root, "abstractNum").find(|it| child_value(*it, "styleLink") == Some(style))
            });
            if let (Some(id), Some(base)) = (id, linked.or(named)) {
                found.lists.insert(id.to_owned(), ListForm::read(node, base, theme));
            }
        }
        found
    }

    /// The label of the next entry of a list and its look; `None` if there is no such list.
    pub(crate) fn next_label(&mut self, list: &str, level: usize) -> Option<(ListLabel, RunLook)> {
        let list = self.lists.get_mut(list)?;
        let level = level.min(list.levels.len().saturating_sub(1));
        let this = list.levels.get(level)?;
        let counts = self.counts.entry(list.base.clone()).or_default();
        for at in std::mem::take(&mut list.restarts) {
            counts.iter_mut().skip(at).take(1).for_each(|count| *count = None);
        }
        let mut shown = Vec::new();
        for (at, (form, count)) in list.levels.iter().zip(counts).enumerate() {
            match *count {
                Some(last) if at == level => *count = Some(last.saturating_add(1)),
                None if at <= level => *count = Some(form.start),
                Some(_) if at > level => *count = None,
                _ => {}
            }
            shown.push((form.form.as_str(), count.unwrap_or(form.start)));
        }
        let label = this.label(&shown);
        (!label.is_empty()).then_some((label, this.look))
    }
}
