//! The computed style of an HTML element, as far as it decides visibility and position of its text.

use crate::colours::{RgbColour, WHITE, is_pictographic};

/// Maximum opacity of invisible text.
const MAX_CLEAR_OPACITY: f32 = 0.05;
/// Properties that may hide, move or change text.
const OPEN_STYLES: [&str; 13] = [
    "filter",
    "mask",
    "mask-image",
    "-webkit-mask",
    "-webkit-mask-image",
    "mix-blend-mode",
    "translate",
    "scale",
    "rotate",
    "zoom",
    "animation",
    "-webkit-text-security",
    "-webkit-text-stroke",
];
/// Values of `list-style-type` that are numbers.
const COUNTING_MARKS: [&str; 10] = [
    "decimal",
    "decimal-leading-zero",
    "lower-alpha",
    "upper-alpha",
    "lower-latin",
    "upper-latin",
    "lower-roman",
    "upper-roman",
    "lower-greek",
    "armenian",
];

/// The outer display of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementFlow {
    /// Inline.
    Inline,
    /// Inline with a gap: floats, and items of a flex or grid container.
    Apart,
    Block,
    Table,
    Row,
    Cell,
}

impl ElementFlow {
    fn of_display(value: &str) -> Option<Self> {
        Some(match value {
            "inline" | "contents" => Self::Inline,
            "inline-block" | "inline-flex" | "inline-grid" | "inline-table" => Self::Apart,
            "block" | "flex" | "grid" | "flow-root" | "list-item" => Self::Block,
            "table" => Self::Table,
            "table-row" => Self::Row,
            "table-cell" => Self::Cell,
            _ => return None,
        })
    }
}

/// The inner display of an element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ItemLayout {
    /// Whether items are side by side.
    pub(crate) is_across: bool,
    /// Items in a row of a grid.
    pub(crate) columns: Option<usize>,
}

/// The style by all declarations; later ones take precedence.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ElementLook {
    /// Whether the last `display` is `none`.
    pub(crate) taken_out: Option<bool>,
    pub(crate) hidden: bool,
    pub(crate) ink: Option<Option<RgbColour>>,
    /// The text fill colour, which overrides the other one.
    pub(crate) fill: Option<Option<RgbColour>>,
    pub(crate) clear: Option<bool>,
    pub(crate) unread: Option<bool>,
    pub(crate) ground: Option<Option<RgbColour>>,
    pub(crate) is_reversed: bool,
    /// Whether a declaration has an unknown effect.
    pub(crate) is_open: bool,
    /// Whether it has a border at some side.
    pub(crate) is_lined: bool,
    /// Whether a picture replaces it.
    pub(crate) is_replaced: bool,
    pub(crate) flow: Option<ElementFlow>,
    pub(crate) is_floating: bool,
    pub(crate) items: ItemLayout,
    /// Whether a gap separates it from its neighbours, or its items.
    pub(crate) has_room: bool,
    pub(crate) is_right: Option<bool>,
    /// Whether it has a list marker.
    pub(crate) is_entry: bool,
    /// Whether list markers are inside of the lines, and whether they are numbers.
    pub(crate) mark_inside: Option<bool>,
    pub(crate) mark_counts: Option<bool>,
}

impl ElementLook {
    /// Adds a text or background colour.
    fn add_colour(&mut self, name: &str, value: &str) {
        let is_none = matches!(value, "none" | "inherit" | "initial" | "unset");
        match name {
            "color" if value != "inherit" => {
                self.ink = Some(css_colour(value));
                self.clear = Some(is_clear_value(value));
                self.is_open |= self.ink == Some(None) && value.contains(['(', '#']);
            }
            "color" => {}
            "-webkit-text-fill-color" => {
                self.fill = Some(css_colour(value));
                self.hidden |= is_clear_value(value);
            }
            _ if is_none || is_clear_value(value) => {}
            _ => self.ground = Some(css_ground(value)),
        }
    }

    /// Adds a style of list markers; custom markers are text.
    fn add_mark(&mut self, value: &str) {
        for word in value.split_whitespace() {
            match word {
                "inside" | "outside" => self.mark_inside = Some(word == "inside"),
                "none" | "disc" | "circle" | "square" | "disclosure-open" | "disclosure-closed" => {
                    self.mark_counts = Some(false);
                }
                "inherit" | "initial" | "unset" | "revert" => {}
                word if COUNTING_MARKS.contains(&word) => self.mark_counts = Some(true),
                _ => self.is_open = true,
            }
        }
    }

    /// Adds a layout property; returns whether it is one. A visual order other than the source's
    /// may separate labels from values.
    fn add_placement(&mut self, name: &str, value: &str) -> bool {
        match name {
            "float" => self.is_floating = matches!(value, "left" | "right"),
            "text-align" => self.is_right = Some(matches!(value, "right" | "end")),
            "flex-direction" | "flex-flow" | "order" => {
                self.is_open |= value.contains("reverse");
                self.is_open |= value.parse().is_ok_and(|at: i32| at != 0);
                self.items.is_across &= !value.contains("column");
            }
            "grid-template-columns" => self.items.columns = count_tracks(value),
            "grid-row" | "grid-column" | "grid-area" | "grid-template-areas" => {
                self.is_open |= !matches!(value, "auto" | "1 / -1" | "1/-1" | "none");
            }
            _ => return false,
        }
        true
    }

    /// Whether it is hidden.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden || self.taken_out == Some(true)
    }

    /// Adds the declarations of a style.
    pub(crate) fn add(&mut self, style: &str) {
        let look = self;
        let (mut is_cut, mut is_flat) = (false, false);
        for declaration in style.split(';') {
            let Some((name, value)) = declaration.split_once(':') else { continue };
            let value = value.trim().to_ascii_lowercase();
            let value = value.trim_end_matches("!important").trim();
            let name = name.trim().to_ascii_lowercase();
            look.is_lined |= draws_lines(&name, value);
            look.has_room |= gives_room(&name, value);
            match name.as_str() {
                "display" => {
                    look.taken_out = Some(value == "none");
                    look.flow = ElementFlow::of_display(value);
                    look.items.is_across = value.ends_with("flex") || value.ends_with("grid");
                    look.is_entry |= value.contains("list-item");
                }
                "text-decoration" | "text-decoration-line" => {
                    look.hidden |= value.contains("line-through");
                }
                "content-visibility" => look.hidden |= value == "hidden",
                "visibility" => look.hidden |= matches!(value, "hidden" | "collapse"),
                "mso-hide" => look.hidden |= value == "all",
                "opacity" => look.hidden |= is_clear(value),
                "font-size" if !value.ends_with(['%', 'm']) || is_no_size(value) => {
                    look.unread = Some(is_no_size(value));
                }
                "font-family" if is_pictographic(value) => look.unread = Some(true),
                "unicode-bidi" => look.is_reversed |= value.contains("override"),
                "color"
                | "-webkit-text-fill-color"
                | "background"
                | "background-color"
                | "background-image" => look.add_colour(&name, value),
                "height" | "max-height" | "width" | "max-width" => is_flat |= is_no_size(value),
                "overflow" | "overflow-x" | "overflow-y" => {
                    is_cut |= matches!(value, "hidden" | "clip");
                }
                "left" | "right" | "top" | "bottom" | "text-indent" | "margin-left"
                | "margin-top" => look.hidden |= is_off_page(value),
                "transform" => {
                    look.hidden |= is_scaled_away(value);
                    look.is_open |= value != "none";
                }
                name if look.add_placement(name, value) => {}
                name if OPEN_STYLES.contains(&name) => {
                    look.is_open |= !matches!(value, "none" | "normal" | "1" | "100%");
                }
                // Custom quotes are text.
                "quotes" => look.is_open |= value.contains(['"', '\'']),
                "list-style" | "list-style-type" | "list-style-position" | "list-style-image" => {
                    look.add_mark(value);
                }
                "content" => look.is_replaced |= draws_content(value),
                "clip-path" => look.hidden |= value.starts_with("inset(100%"),
                "clip" => look.hidden |= is_empty_clip(value),
                _ => {}
            }
        }
        look.hidden |= is_cut && is_flat;
    }
}

/// Whether a declaration adds a gap between neighbours or items.
fn gives_room(name: &str, value: &str) -> bool {
    const NAMES: [&str; 8] = [
        "width",
        "min-width",
        "flex",
        "flex-basis",
        "gap",
        "column-gap",
        "justify-content",
        "grid-template-columns",
    ];
    let is_named =
        NAMES.contains(&name) || name.starts_with("padding") || name.starts_with("margin");
    is_named
        && !is_no_size(value)
        && !matches!(value, "auto" | "none" | "normal" | "flex-start" | "start")
}

/// The columns of a grid; `None` if their number depends on the width.
fn count_tracks(value: &str) -> Option<usize> {
    let (mut depth, mut flat) = (0_u32, String::new());
    for c in value.chars() {
        depth = if c == '(' { depth + 1 } else { depth.saturating_sub(u32::from(c == ')')) };
        flat.push(if depth > 0 && c.is_whitespace() { '_' } else { c });
    }
    let counts = flat.split_whitespace().map(|track| {
        let Some(inner) = track.strip_prefix("repeat(") else { return Some(1) };
        let (times, tracks) = inner.split_once(',')?;
        let each = tracks.trim_matches(['_', ')']).split('_').filter(|it| !it.is_empty()).count();
        times.parse::<usize>().ok()?.checked_mul(each)
    });
    counts.sum::<Option<usize>>().filter(|count| *count > 0)
}

/// Whether `content` replaces an element's text by a picture; strings and counters do not.
fn draws_content(value: &str) -> bool {
    const PICTURES: [&str; 7] =
        ["url(", "image", "gradient(", "cross-fade(", "element(", "paint(", "var("];
    PICTURES.iter().any(|picture| value.contains(picture))
}

/// An offset that moves an element off the page: thousands of pixels to the left or up.
fn is_off_page(value: &str) -> bool {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let unit = value.get(digits.len()..).unwrap_or_default();
    let least = if matches!(unit, "em" | "rem") { -50.0 } else { -500.0 };
    digits.parse::<f32>().is_ok_and(|distance| distance <= least)
}

/// A scaling by zero.
fn is_scaled_away(value: &str) -> bool {
    let factor = value.strip_prefix("scale").and_then(|rest| rest.split_once('('));
    let first = factor.and_then(|(_, factors)| factors.split([',', ')']).next());
    first.is_some_and(|factor| factor.trim().parse() == Ok(0.0))
}

/// `rect(0,0,0,0)`, and with one pixel, as for readers of screens.
fn is_empty_clip(value: &str) -> bool {
    let inner = value.strip_prefix("rect(").and_then(|rest| rest.strip_suffix(')'));
    inner.is_some_and(|inner| {
        let sides = inner.split([',', ' ']).filter(|side| !side.is_empty());
        sides.into_iter().all(is_no_size)
    })
}

/// An opacity at which text is invisible.
fn is_clear(value: &str) -> bool {
    let (digits, share) = match value.strip_suffix('%') {
        Some(digits) => (digits, 0.01),
        None => (value, 1.0),
    };
    digits.trim().parse::<f32>().is_ok_and(|opacity| opacity * share <= MAX_CLEAR_OPACITY)
}

/// A fully transparent colour.
fn is_clear_value(value: &str) -> bool {
    let compact: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let alpha = compact.strip_suffix(')').and_then(|inner| inner.rsplit([',', '/']).next());
    let has_alpha = compact.starts_with("rgba(") || compact.starts_with("hsla(");
    compact == "transparent"
        || has_alpha && alpha.is_some_and(|alpha| alpha.trim_end_matches('%').parse() == Ok(0.0))
}

/// Whether a declaration draws lines around an element or at some of its sides.
fn draws_lines(name: &str, value: &str) -> bool {
    const STYLES: [&str; 8] =
        ["solid", "dashed", "dotted", "double", "groove", "ridge", "inset", "outset"];
    let is_absent = |part: &str| {
        part.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse() == Ok(0.0_f32)
    };
    (name == "outline" || name.starts_with("border"))
        && value.split_whitespace().any(|part| STYLES.contains(&part))
        && !value.split_whitespace().any(is_absent)
}

/// A size of one pixel or point or less.
fn is_no_size(value: &str) -> bool {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = value.get(digits.len()..).unwrap_or_default();
    digits
        .parse::<f32>()
        .is_ok_and(|size| size <= 0.0 || size <= 1.0 && matches!(unit, "px" | "pt"))
}

/// A colour in the notations of style sheets; `None` if it is not known.
fn css_colour(value: &str) -> Option<RgbColour> {
    let compact: String = value.chars().filter(|c| !c.is_whitespace() || *c == ' ').collect();
    let Some((kind, inner)) = compact.split_once('(') else { return RgbColour::parse(&compact) };
    let mut parts = inner.trim_end_matches(')').split([',', ' ', '/']).filter(|it| !it.is_empty());
    let parts = [parts.next()?, parts.next()?, parts.next()?];
    if kind.starts_with("rgb") {
        let [red, green, blue] = parts.map(colour_part);
        return Some(RgbColour([red?, green?, blue?]));
    }
    // Of HSL colours, white and black are known.
    let lightness = parts.get(2)?.strip_suffix('%')?.parse::<f32>().ok()?;
    match lightness {
        light if kind.starts_with("hsl") && light >= 97.0 => Some(WHITE),
        light if kind.starts_with("hsl") && light <= 3.0 => Some(RgbColour([0; 3])),
        _ => None,
    }
}

fn colour_part(text: &str) -> Option<u8> {
    let part = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f32>().ok()? * 2.55,
        None => text.parse::<f32>().ok()?,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    let part = part.clamp(0.0, 255.0).round() as u8;
    Some(part)
}

/// A background colour; `None` of pictures, gradients and translucent colours.
fn css_ground(value: &str) -> Option<RgbColour> {
    if value.contains("url(") || value.contains("gradient(") || value.contains("rgba(") {
        return None;
    }
    css_colour(value).or_else(|| value.split_whitespace().find_map(css_colour))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colours::is_lost;

    #[test]
    fn a_style_hides_by_display_size_and_sight() {
        for (style, expected) in [
            ("display: none", true),
            ("DISPLAY:NONE !important", true),
            ("visibility:hidden", true),
            ("opacity:0.0", true),
            ("height:0;overflow:hidden", true),
            ("max-height: 0px; overflow: hidden", true),
            ("height:0", false),
            ("overflow:hidden", false),
            ("position:absolute;left:-9999px", true),
            ("position:absolute;left:-10px", false),
            ("text-indent:-999em", true),
            ("transform:scale(0)", true),
            ("transform:scale(1, 0.5)", false),
            ("clip-path:inset(100%)", true),
            ("position:absolute;clip:rect(0, 0, 0, 0)", true),
            ("clip:rect(0,80px,20px,0)", false),
            ("mso-hide:all", true),
            ("display:block; font-size:12px", false),
            ("display:none; display:block", false),
            ("text-decoration: line-through red", true),
            ("opacity: 1%", true),
            ("opacity: 40%", false),
        ] {
            let mut look = ElementLook::default();
            look.add(style);
            assert_eq!(look.is_hidden(), expected, "{style}");
        }
    }

    #[test]
    fn a_grid_has_as_many_columns_as_its_style_states() {
        for (style, expected) in [
            ("1fr 1fr", Some(2)),
            ("120px minmax(10px, 1fr) auto", Some(3)),
            ("repeat(3, 1fr)", Some(3)),
            ("repeat(2, 10px 1fr) auto", Some(5)),
            ("repeat(auto-fill, 100px)", None),
        ] {
            assert_eq!(count_tracks(style), expected, "{style}");
        }
    }

    #[test]
    fn letters_without_colour_and_those_in_the_colour_of_their_ground_are_unseen() {
        for (style, expected) in [
            ("color:#fff", true),
            ("color:rgb(254, 254, 254)", true),
            ("color:#fff;background:#333 none", false),
            ("color:#fff;background-image:url(x.png)", false),
            ("color:#333;background:#333", true),
            ("color:black;-webkit-text-fill-color:white", true),
            ("color:inherit", false),
            ("color:rgba(0,0,0,0)", true),
            ("color:transparent", true),
            ("color:hsl(0, 0%, 100%)", true),
            ("color:rgba(0,0,0,0.87)", false),
            ("color:hsl(0, 0%, 10%)", false),
        ] {
            let mut look = ElementLook::default();
            look.add(style);
            let ink = look.fill.or(look.ink).flatten();
            let is_unseen =
                look.clear == Some(true) || is_lost(ink, look.ground.unwrap_or(Some(WHITE)));
            assert_eq!(is_unseen, expected, "{style}");
        }
    }
}
