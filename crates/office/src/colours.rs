//! Colours of text and background, and whether text is visible on its background.
//!
//! Not promised: that visible text is legible. Unknown colours, pictures and patterns count as
//! visible.

use std::collections::HashMap;

use docmill_formats::xml::XmlNode;

use crate::tags::{all, attribute, child, elements};

/// Minimum contrast (WCAG 2, 1 to 21) at which text is visible, for all colours.
const MIN_CONTRAST: f32 = 1.35;
/// Minimum difference in one channel at which two colours are distinct.
const MIN_PART_DISTANCE: u8 = 65;
/// Minimum opacity of visible text, in thousandths of a percent.
const MIN_OPACITY: f32 = 5_000.0;

/// An sRGB colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RgbColour(pub(crate) [u8; 3]);

/// The default page background.
pub(crate) const WHITE: RgbColour = RgbColour([255; 3]);

impl RgbColour {
    /// Parses a colour in hex, with or without `#` and alpha, or one of the names common to HTML,
    /// DrawingML and highlights.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('#');
        let digits = match text.len() {
            8 => text.get(2..)?,
            _ => text,
        };
        let nibbles: Option<Vec<u8>> =
            digits.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
        match nibbles.as_deref() {
            Some([r, g, b]) => Some(Self([r * 17, g * 17, b * 17])),
            Some([r, s, g, h, b, c]) => Some(Self([r * 16 + s, g * 16 + h, b * 16 + c])),
            _ => Self::by_name(&text.to_ascii_lowercase()),
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        let parts = match name {
            "white" | "snow" | "ivory" | "ghostwhite" | "floralwhite" | "azure" | "mintcream" => {
                [255; 3]
            }
            "whitesmoke" => [245; 3],
            "black" | "windowtext" => [0; 3],
            "red" => [255, 0, 0],
            "green" => [0, 128, 0],
            "lime" => [0, 255, 0],
            "blue" => [0, 0, 255],
            "navy" | "darkblue" => [0, 0, 128],
            "yellow" => [255, 255, 0],
            "cyan" | "aqua" => [0, 255, 255],
            "magenta" | "fuchsia" => [255, 0, 255],
            "gray" | "grey" => [128; 3],
            "silver" | "lightgray" | "lightgrey" => [211; 3],
            _ => return None,
        };
        Some(Self(parts))
    }

    /// Whether text of this colour is invisible on a background.
    pub(crate) fn is_lost_on(self, ground: Self) -> bool {
        let mut parts = self.0.into_iter().zip(ground.0);
        let (one, other) = (self.luminance(), ground.luminance());
        let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
        contrast < MIN_CONTRAST && parts.all(|(ink, paper)| ink.abs_diff(paper) < MIN_PART_DISTANCE)
    }

    /// Relative luminance (WCAG 2), 0 to 1.
    fn luminance(self) -> f32 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f32::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// This colour mixed with a share, 0 to 1, of another.
    pub(crate) fn mixed(self, other: Self, share: f32) -> Self {
        let share = share.clamp(0.0, 1.0);
        let [a, b, c] = self.0;
        let [d, e, f] = other.0;
        Self([(a, d), (b, e), (c, f)].map(|(own, other)| {
            let part = f32::from(own) * (1.0 - share) + f32::from(other) * share;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let part = part.round() as u8;
            part
        }))
    }

    /// Lighter with a tint above 0, darker below (ISO/IEC 29500-1 §18.8.19).
    pub(crate) fn tinted(self, tint: f32) -> Self {
        let end = if tint < 0.0 { Self([0; 3]) } else { WHITE };
        self.mixed(end, tint.abs())
    }
}

/// The default indexed palette of a workbook (§18.8.27).
const PALETTE: [u32; 64] = [
    0x00_0000, 0xff_ffff, 0xff_0000, 0x00_ff00, 0x00_00ff, 0xff_ff00, 0xff_00ff, 0x00_ffff,
    0x00_0000, 0xff_ffff, 0xff_0000, 0x00_ff00, 0x00_00ff, 0xff_ff00, 0xff_00ff, 0x00_ffff,
    0x80_0000, 0x00_8000, 0x00_0080, 0x80_8000, 0x80_0080, 0x00_8080, 0xc0_c0c0, 0x80_8080,
    0x99_99ff, 0x99_3366, 0xff_ffcc, 0xcc_ffff, 0x66_0066, 0xff_8080, 0x00_66cc, 0xcc_ccff,
    0x00_0080, 0xff_00ff, 0xff_ff00, 0x00_ffff, 0x80_0080, 0x80_0000, 0x00_8080, 0x00_00ff,
    0x00_ccff, 0xcc_ffff, 0xcc_ffcc, 0xff_ff99, 0x99_ccff, 0xff_99cc, 0xcc_99ff, 0xff_cc99,
    0x33_66ff, 0x33_cccc, 0x99_cc00, 0xff_cc00, 0xff_9900, 0xff_6600, 0x66_6699, 0x96_9696,
    0x00_3366, 0x33_9966, 0x00_3300, 0x33_3300, 0x99_3300, 0x99_3366, 0x33_3399, 0x33_3333,
];

/// The default colour of an index; system colours follow the palette.
pub(crate) fn palette_colour(index: usize) -> Option<RgbColour> {
    match index {
        64 => Some(RgbColour([0; 3])),
        65 => Some(WHITE),
        index => {
            let [_, red, green, blue] = PALETTE.get(index)?.to_be_bytes();
            Some(RgbColour([red, green, blue]))
        }
    }
}

/// Whether text is invisible on its background. An automatic colour is always visible.
pub(crate) fn is_lost(ink: Option<RgbColour>, ground: Option<RgbColour>) -> bool {
    ink.zip(ground).is_some_and(|(ink, ground)| ink.is_lost_on(ground))
}

/// Whether a font has symbols in place of letters, so that its text is not the visible one.
pub(crate) fn is_pictographic(font: &str) -> bool {
    let name = font.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    let known = ["wingdings", "webdings", "zapf dingbats", "zapfdingbats", "marlett"];
    known.iter().any(|known| name.starts_with(known))
}

/// The colours of a theme, by their names in DrawingML (ISO/IEC 29500-1 §20.1.6.2).
#[derive(Debug, Clone)]
pub(crate) struct ThemeColours {
    by_name: HashMap<String, RgbColour>,
}

impl Default for ThemeColours {
    fn default() -> Self {
        let usual = [("lt1", WHITE), ("dk1", RgbColour([0; 3]))];
        Self { by_name: usual.map(|(name, colour)| (name.to_owned(), colour)).into() }
    }
}

impl ThemeColours {
    /// Reads the colours of a theme part.
    pub(crate) fn read(root: XmlNode<'_, '_>) -> Self {
        let mut found = Self::default();
        let usual = found.clone();
        for entry in all(root, "clrScheme").take(1).flat_map(elements) {
            if let (Some(colour), _) = drawing_colour(entry, &usual) {
                found.by_name.insert(entry.tag_name().name().to_owned(), colour);
            }
        }
        found
    }

    /// The colour of a name, with the aliases of text and background colours.
    pub(crate) fn named(&self, name: &str) -> Option<RgbColour> {
        let name = match name {
            "bg1" | "background1" | "light1" => "lt1",
            "tx1" | "text1" | "dark1" => "dk1",
            "bg2" | "background2" | "light2" => "lt2",
            "tx2" | "text2" | "dark2" => "dk2",
            "hyperlink" => "hlink",
            "followedHyperlink" => "folHlink",
            name => name,
        };
        self.by_name.get(name).copied()
    }

    /// The colour of a SpreadsheetML index, in which light colours precede dark ones.
    pub(crate) fn indexed(&self, index: usize) -> Option<RgbColour> {
        const NAMES: [&str; 12] = [
            "lt1", "dk1", "lt2", "dk2", "accent1", "accent2", "accent3", "accent4", "accent5",
            "accent6", "hlink", "folHlink",
        ];
        self.named(NAMES.get(index)?)
    }
}

/// The colour within an element of DrawingML such as `a:solidFill`, and whether it is opaque.
/// Luminance changes approximate the standard's, which uses HSL.
pub(crate) fn drawing_colour(
    node: XmlNode<'_, '_>,
    theme: &ThemeColours,
) -> (Option<RgbColour>, DrawingOpacity) {
    let Some(found) = elements(node).find(|it| it.tag_name().name().ends_with("Clr")) else {
        return (None, DrawingOpacity::Full);
    };
    let value = attribute(found, "val").unwrap_or_default();
    let mut colour = match found.tag_name().name() {
        "srgbClr" | "prstClr" => RgbColour::parse(value),
        "schemeClr" => theme.named(value),
        "sysClr" => match attribute(found, "lastClr").and_then(RgbColour::parse) {
            Some(last) => Some(last),
            None if value == "window" => Some(WHITE),
            None => None,
        },
        "scrgbClr" => linear_colour(found),
        _ => None,
    };
    let mut opacity = DrawingOpacity::Full;
    for change in elements(found) {
        let amount = attribute(change, "val").and_then(|it| it.parse::<f32>().ok());
        let Some(amount) = amount else { continue };
        let share = amount / 100_000.0;
        colour = colour.map(|colour| match change.tag_name().name() {
            "lumMod" | "shade" => colour.mixed(RgbColour([0; 3]), 1.0 - share),
            "lumOff" => colour.mixed(WHITE, share),
            "tint" => colour.mixed(WHITE, 1.0 - share),
            _ => colour,
        });
        if change.tag_name().name() == "alpha" {
            opacity = match amount {
                amount if amount < MIN_OPACITY => DrawingOpacity::None,
                amount if amount < 100_000.0 => DrawingOpacity::Partial,
                _ => DrawingOpacity::Full,
            };
        }
    }
    (colour, opacity)
}

/// Share of the background that shows through paint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawingOpacity {
    Full,
    Partial,
    None,
}

fn linear_colour(node: XmlNode<'_, '_>) -> Option<RgbColour> {
    Some(RgbColour([linear_part(node, "r")?, linear_part(node, "g")?, linear_part(node, "b")?]))
}

/// An sRGB channel in linear light.
fn linear_part(node: XmlNode<'_, '_>, name: &str) -> Option<u8> {
    let value = attribute(node, name)?;
    let share = match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f32>().ok()? / 100.0,
        None => value.parse::<f32>().ok()? / 100_000.0,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    let part = (share.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0).round() as u8;
    Some(part)
}

/// The background by the properties of a shape: `None` within if unknown, `outer` without a fill.
pub(crate) fn shape_ground(
    properties: Option<XmlNode<'_, '_>>,
    outer: Option<RgbColour>,
    theme: &ThemeColours,
) -> Option<RgbColour> {
    let fills = properties.into_iter().flat_map(elements);
    let fill = fills.into_iter().find(|it| it.tag_name().name().ends_with("Fill"));
    match fill.map(|it| (it, it.tag_name().name())) {
        Some((_, "noFill")) => outer,
        Some((fill, "solidFill")) => match drawing_colour(fill, theme) {
            (_, DrawingOpacity::None) => outer,
            (colour, DrawingOpacity::Full) => colour,
            (_, DrawingOpacity::Partial) => None,
        },
        Some(_) => None,
        None => outer,
    }
}

/// Whether a DrawingML run is invisible on a background: by colour, by size, or without outline and
/// fill.
pub(crate) fn is_unseen_run(
    run: XmlNode<'_, '_>,
    ground: Option<RgbColour>,
    theme: &ThemeColours,
) -> bool {
    /// Hundredths of a point.
    const MAX_TINY: u32 = 100;
    let Some(look) = child(run, "rPr") else { return false };
    let size = attribute(look, "sz").and_then(|it| it.parse::<u32>().ok());
    let font = child(look, "latin").and_then(|it| attribute(it, "typeface"));
    if size.is_some_and(|size| size <= MAX_TINY) || font.is_some_and(is_pictographic) {
        return true;
    }
    if child(look, "noFill").is_some() && child(look, "ln").is_none() {
        return true;
    }
    let Some(fill) = child(look, "solidFill") else { return false };
    let (ink, opacity) = drawing_colour(fill, theme);
    opacity == DrawingOpacity::None || is_lost(ink, ground)
}

/// Whether a run of DrawingML is crossed out.
pub(crate) fn is_struck_run(run: XmlNode<'_, '_>) -> bool {
    let strike = child(run, "rPr").and_then(|it| attribute(it, "strike"));
    matches!(strike, Some("sngStrike" | "dblStrike"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_lost_on_a_ground_of_nearly_its_colour() {
        #[rustfmt::skip]
        let table = [
            ("FFFFFF", "FFFFFF", true), ("FEFEFE", "white", true), ("FFFFCC", "FFFFFF", true),
            ("000000", "000000", true), ("#1F3864", "1F3864", true), ("00FFFFFF", "FFF", true),
            ("D0D0D0", "FFFFFF", false), ("A6A6A6", "FFFFFF", false), ("FF0000", "008000", false),
            ("FFFF00", "FFFFFF", false), ("000000", "FFFFFF", false), ("FFFFFF", "1F3864", false),
        ];
        for (ink, ground, expected) in table {
            let [one, other] = [ink, ground].map(|it| RgbColour::parse(it).expect("a colour"));
            assert_eq!(one.is_lost_on(other), expected, "{ink} on {ground}");
        }
        assert!(!is_lost(None, Some(WHITE)) && !is_lost(Some(WHITE), None));
        assert_eq!(RgbColour::parse("auto"), None);
    }

    #[test]
    fn letters_of_fonts_of_pictures_are_no_letters() {
        for (font, expected) in
            [("Wingdings", true), ("Wingdings 2", true), ("Arial", false), ("Symbol", false)]
        {
            assert_eq!(is_pictographic(font), expected, "{font}");
        }
    }
}
