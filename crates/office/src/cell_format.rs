//! Cell styles and the displayed text (ISO/IEC 29500-1 §18.8): number formats, fonts, fills, and
//! differential styles of conditional formats.

use std::collections::HashMap;

use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::colours::{RgbColour, ThemeColours, WHITE, is_lost, is_pictographic, palette_colour};
use crate::number_code::NumberCode;
use crate::tags::{all, attribute, child, elements, number, own_text};

/// Maximum size of illegible letters, in points.
const MAX_TINY_POINTS: f32 = 1.0;
/// Size of letters where none is stated.
const USUAL_POINTS: f32 = 11.0;

/// Font properties that decide whether letters are visible.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CellFont {
    /// `None`: the automatic colour, which is visible.
    ink: Option<RgbColour>,
    is_struck: bool,
    /// Illegibly small, or in a symbol font.
    is_unread: bool,
}

/// A run of a cell's text, with its font if it has one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellRun {
    pub(crate) text: String,
    pub(crate) font: Option<CellFont>,
}

/// The style of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellLook {
    code: NumberCode,
    font: CellFont,
    /// `None`: a pattern or gradient.
    ground: Option<RgbColour>,
    /// The size of its letters by the usual one; `None`: they are turned or made to fit.
    pub(crate) fits: Option<f32>,
}

impl Default for CellLook {
    fn default() -> Self {
        let (code, font) = (NumberCode::default(), CellFont::default());
        Self { code, font, ground: Some(WHITE), fits: Some(1.0) }
    }
}

/// The differential style of a conditional format.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LookChange {
    code: Option<NumberCode>,
    ink: Option<RgbColour>,
    is_struck: Option<bool>,
    ground: Option<Option<RgbColour>>,
}

/// The content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellContent {
    /// A number as it is stored.
    Number(String),
    Text(Vec<CellRun>),
    /// A text that no number format changes.
    Fixed(String),
}

/// The displayed text of a cell, and a note on invisible text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShownCell {
    pub(crate) text: String,
    pub(crate) note: Option<PageNote>,
}

impl CellLook {
    pub(crate) fn changed(mut self, change: &LookChange) -> Self {
        self.code = change.code.clone().unwrap_or(self.code);
        self.font.ink = change.ink.or(self.font.ink);
        self.font.is_struck = change.is_struck.unwrap_or(self.font.is_struck);
        self.ground = change.ground.unwrap_or(self.ground);
        self
    }

    /// The text that the cell shows.
    pub(crate) fn show(&self, content: &CellContent, is_1904: bool) -> ShownCell {
        match content {
            CellContent::Number(raw) => {
                let Ok(value) = raw.trim().parse::<f64>() else {
                    return self.show_text(raw.trim(), self.font);
                };
                match self.code.write_number(value, is_1904) {
                    Some(coded) => {
                        let ink = coded.colour.or(self.font.ink);
                        let shown = self.show_text(&coded.text, CellFont { ink, ..self.font });
                        let is_doubtful =
                            shown.note.is_none() && self.loses_sign(value, &coded.text, is_1904);
                        let note = is_doubtful.then_some(PageNote::DoubtfulText).or(shown.note);
                        ShownCell { note, ..shown }
                    }
                    None => ShownCell { text: String::new(), note: Some(PageNote::HiddenText) },
                }
            }
            CellContent::Fixed(text) => self.show_text(text, self.font),
            CellContent::Text(runs) => self.show_runs(runs),
        }
    }

    /// Whether a negative number is displayed without sign, for example in red.
    fn loses_sign(&self, value: f64, text: &str, is_1904: bool) -> bool {
        let has_amount = text.contains(|c| matches!(c, '1'..='9'));
        let opposite = (value < 0.0 && has_amount).then(|| self.code.write_number(-value, is_1904));
        opposite.flatten().is_some_and(|it| it.text == text)
    }

    fn show_runs(&self, runs: &[CellRun]) -> ShownCell {
        let plain: String = runs.iter().map(|run| run.text.as_str()).collect();
        let Some(coded) = self.code.write_text(&plain) else {
            let is_blank = plain.trim().is_empty();
            let note = (!is_blank).then_some(PageNote::HiddenText);
            return ShownCell { text: String::new(), note };
        };
        if coded.text != plain || coded.colour.is_some() {
            let ink = coded.colour.or(self.font.ink);
            return self.show_text(&coded.text, CellFont { ink, ..self.font });
        }
        let mut shown = ShownCell::default();
        for run in runs {
            let own = self.show_text(&run.text, run.font.unwrap_or(self.font));
            shown.text.push_str(&own.text);
            shown.note = own.note.or(shown.note);
        }
        shown
    }

    fn show_text(&self, text: &str, font: CellFont) -> ShownCell {
        let is_unseen = font.is_unread || is_lost(font.ink, self.ground);
        let note = match (is_unseen, font.is_struck) {
            _ if text.trim().is_empty() => None,
            (true, _) => Some(PageNote::HiddenText),
            (false, true) => Some(PageNote::DeletedText),
            (false, false) => None,
        };
        let text = if note.is_none() { text.to_owned() } else { String::new() };
        ShownCell { text, note }
    }
}

/// Cell styles by index, and differential styles.
#[derive(Debug, Default)]
pub(crate) struct CellFormats {
    looks: Vec<CellLook>,
    changes: Vec<LookChange>,
    colours: WorkbookColours,
    usual: CellLook,
    pub(crate) is_1904: bool,
}

impl CellFormats {
    /// The looks that the styles of a workbook have.
    pub(crate) fn read(root: XmlNode<'_, '_>, theme: ThemeColours, is_1904: bool) -> Self {
        let codes: HashMap<u32, &str> = entries(root, "numFmts")
            .filter_map(|it| Some((number(it, "numFmtId")?, attribute(it, "formatCode")?)))
            .collect();
        let own = entries(root, "indexedColors");
        let own = own.map(|it| attribute(it, "rgb").and_then(RgbColour::parse));
        let colours = WorkbookColours { theme, own: own.collect() };
        let fonts: Vec<CellFont> = entries(root, "fonts").map(|it| colours.font(it)).collect();
        let sizes: Vec<f32> =
            entries(root, "fonts").map(|it| font_points(it).unwrap_or(USUAL_POINTS)).collect();
        let usual = sizes.first().copied().unwrap_or(USUAL_POINTS);
        let grounds: Vec<Option<RgbColour>> =
            entries(root, "fills").map(|it| colours.ground(it).unwrap_or(Some(WHITE))).collect();
        let looks = entries(root, "cellXfs").map(|node| {
            let id = number(node, "numFmtId").unwrap_or(0);
            let code = codes.get(&id).copied().unwrap_or_else(|| usual_code(id));
            CellLook {
                code: NumberCode::parse(code),
                font: entry_of(node, "fontId", &fonts).unwrap_or_default(),
                ground: entry_of(node, "fillId", &grounds).unwrap_or(Some(WHITE)),
                fits: entry_of(node, "fontId", &sizes)
                    .map_or(Some(1.0), |size| is_upright(node).then_some(size / usual)),
            }
        });
        let looks = looks.collect();
        let changes = entries(root, "dxfs").map(|it| colours.change(it)).collect();
        Self { looks, changes, colours, usual: CellLook::default(), is_1904 }
    }

    /// The style of an index.
    pub(crate) fn look(&self, style: usize) -> &CellLook {
        self.looks.get(style).unwrap_or(&self.usual)
    }

    /// The differential style of a rule, by index or inline.
    pub(crate) fn change_of(&self, rule: XmlNode<'_, '_>) -> Option<LookChange> {
        let index = number(rule, "dxfId").and_then(|it| usize::try_from(it).ok());
        let named = index.and_then(|at| self.changes.get(at)).cloned();
        named.or_else(|| child(rule, "dxf").map(|it| self.colours.change(it)))
    }

    /// The runs of a text with the fonts of their own.
    pub(crate) fn runs(&self, node: XmlNode<'_, '_>) -> Vec<CellRun> {
        let texts = all(node, "t").filter_map(|it| {
            let parent = it.parent()?;
            let font = child(parent, "rPr").map(|it| self.colours.font(it));
            let is_phonetic = parent.tag_name().name() == "rPh";
            (!is_phonetic).then(|| CellRun { text: own_text(it), font })
        });
        texts.collect()
    }
}

fn entry_of<T: Copy>(node: XmlNode<'_, '_>, name: &str, list: &[T]) -> Option<T> {
    let at = number(node, name).unwrap_or(0);
    list.get(usize::try_from(at).ok()?).copied()
}

fn entries<'a, 'b>(
    root: XmlNode<'a, 'b>,
    list: &'static str,
) -> impl Iterator<Item = XmlNode<'a, 'b>> {
    all(root, list).take(1).flat_map(elements)
}

/// The colours that a workbook names by index and theme.
#[derive(Debug, Default)]
struct WorkbookColours {
    theme: ThemeColours,
    /// Its own palette, if it has one.
    own: Vec<Option<RgbColour>>,
}

impl WorkbookColours {
    fn colour(&self, node: XmlNode<'_, '_>) -> Option<RgbColour> {
        let [theme, indexed] = ["theme", "indexed"]
            .map(|name| number(node, name).and_then(|it| usize::try_from(it).ok()));
        let colour = match (attribute(node, "rgb"), theme, indexed) {
            (Some(rgb), ..) => RgbColour::parse(rgb),
            (None, Some(theme), _) => self.theme.indexed(theme),
            (None, None, Some(at)) => {
                self.own.get(at).copied().flatten().or_else(|| palette_colour(at))
            }
            _ => None,
        }?;
        let tint = attribute(node, "tint").and_then(|it| it.parse().ok()).unwrap_or(0.0);
        Some(colour.tinted(tint))
    }

    fn font(&self, node: XmlNode<'_, '_>) -> CellFont {
        let size = font_points(node);
        let name = child(node, "name").or_else(|| child(node, "rFont"));
        let name = name.and_then(|it| attribute(it, "val"));
        CellFont {
            ink: child(node, "color").and_then(|it| self.colour(it)),
            is_struck: is_struck(node).unwrap_or(false),
            is_unread: size.is_some_and(|size| size <= MAX_TINY_POINTS)
                || name.is_some_and(is_pictographic),
        }
    }

    /// The background of a fill; `None`: no fill.
    fn ground(&self, fill: XmlNode<'_, '_>) -> Option<Option<RgbColour>> {
        let Some(pattern) = child(fill, "patternFill") else {
            return child(fill, "gradientFill").map(|_| None);
        };
        let [front, back] =
            ["fgColor", "bgColor"].map(|name| child(pattern, name).map(|it| self.colour(it)));
        match attribute(pattern, "patternType") {
            None => back,
            Some("none") => None,
            Some("solid") => front.or(back).or(Some(None)),
            Some(_) => Some(None),
        }
    }

    fn change(&self, format: XmlNode<'_, '_>) -> LookChange {
        let font = child(format, "font");
        let code = child(format, "numFmt").and_then(|it| attribute(it, "formatCode"));
        let fill = child(format, "fill");
        // A solid fill of a differential style has its colour in `bgColor`.
        let pattern = fill.and_then(|it| child(child(it, "patternFill")?, "bgColor"));
        LookChange {
            code: code.map(NumberCode::parse),
            ink: font.and_then(|it| child(it, "color")).and_then(|it| self.colour(it)),
            is_struck: font.and_then(is_struck),
            ground: pattern
                .map(|it| self.colour(it))
                .or_else(|| fill.and_then(|it| self.ground(it))),
        }
    }
}

fn font_points(font: XmlNode<'_, '_>) -> Option<f32> {
    let size: f32 = attribute(child(font, "sz")?, "val")?.parse().ok()?;
    Some(size).filter(|it| *it > 0.0)
}

/// Whether letters stand upright in their own size.
fn is_upright(format: XmlNode<'_, '_>) -> bool {
    let place = child(format, "alignment");
    let [shrinks, turn] =
        ["shrinkToFit", "textRotation"].map(|name| place.and_then(|it| attribute(it, name)));
    matches!(shrinks, None | Some("0" | "false")) && matches!(turn, None | Some("0"))
}

fn is_struck(font: XmlNode<'_, '_>) -> Option<bool> {
    let strike = child(font, "strike")?;
    Some(!matches!(attribute(strike, "val"), Some("0" | "false")))
}

/// The built-in number formats (§18.8.30).
fn usual_code(id: u32) -> &'static str {
    match id {
        1 | 3 | 37 | 38 | 41 | 42 => "0",
        2 | 4 | 39 | 40 | 43 | 44 => "0.00",
        9 => "0%",
        10 => "0.00%",
        14..=17 | 27..=31 | 34..=36 | 50..=58 => "yyyy-mm-dd",
        18..=21 | 32 | 33 | 45 | 47 => "hh:mm",
        22 => "yyyy-mm-dd hh:mm",
        46 => "[h]:mm",
        _ => "General",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(code: &str, content: CellContent) -> ShownCell {
        CellLook { code: NumberCode::parse(code), ..CellLook::default() }.show(&content, false)
    }

    #[test]
    fn a_section_in_white_is_not_seen_and_one_in_another_colour_is() {
        for (code, raw, expected) in [
            ("[White]0.00", "1", ""),
            ("[color 2]0", "1", ""),
            ("[Red]0;[White]0", "1", "1"),
            ("[Red]0;[White]0", "-1", ""),
            ("0;-0;[Color2]0", "0", ""),
            ("[Color 1]0", "1", "1"),
        ] {
            let found = shown(code, CellContent::Number(raw.to_owned()));
            assert_eq!(found.text, expected, "{code}");
            assert_eq!(found.note.is_some(), expected.is_empty(), "{code}");
        }
    }

    #[test]
    fn a_number_below_zero_that_is_written_without_a_sign_is_doubtful() {
        for (code, raw, expected) in [
            ("0.00;[Red]0.00", "-5", Some(PageNote::DoubtfulText)),
            ("0.00;0.00", "-5", Some(PageNote::DoubtfulText)),
            ("0.00;[Red]0.00", "5", None),
            ("0.00;[Red]0.00", "-0.001", None),
            ("0.00;[Red]-0.00", "-5", None),
            ("0.00_);(0.00)", "-5", None),
            ("0.00;0.00\" CR\"", "-5", None),
        ] {
            assert_eq!(
                shown(code, CellContent::Number(raw.to_owned())).note,
                expected,
                "{code} {raw}"
            );
        }
    }

    #[test]
    fn a_number_is_written_as_its_cell_shows_it() {
        #[rustfmt::skip]
        let table = [
            ("General",                        "0.1",                "0.1"),
            ("General",                        "1190.0000000000002", "1190"),
            ("General",                        "-12.5",              "-12.5"),
            ("General",                        "1E+20",              "100000000000000000000"),
            ("0.00",                           "1234.5",             "1234.50"),
            ("#,##0.00\\ \"€\"",               "1234.5",             "1234.50 €"),
            ("#,##0.00\\ [$€-407]",            "-1234.5",            "-1234.50 €"),
            ("[$$-409]#,##0.00",               "7",                  "$7.00"),
            ("0.0##",                          "2.25",               "2.25"),
            ("0.##",                           "5",                  "5"),
            ("0%",                             "0.19",               "19%"),
            ("_-* #,##0.00_-;[Red]-#,##0.00",  "3",                  "3.00"),
            ("_-* #,##0.00_-;[Red]-#,##0.00",  "-3",                 "-3.00"),
            ("#,##0.00_);(#,##0.00)",          "-1234.5",            "(1234.50)"),
            ("dd.mm.yyyy",                     "46086",              "2026-03-05"),
            ("m/d/yy h:mm",                    "46086.604166666664", "2026-03-05 14:30"),
            ("d. mmm yyyy",                    "1",                  "1900-01-01"),
            ("hh:mm",                          "0.5",                "12:00"),
            ("[h]:mm",                         "1.5",                "36:00"),
            (";;;",                            "42",                 ""),
            ("000000",                         "42",                 "000042"),
            ("0.00E+00",                       "1234.5",             "1234.5"),
            ("0.00",                           "no number",          "no number"),
            ("0.00,",                          "9900000",            "9900.00"),
            ("0,.00",                          "9900000",            "9900.00"),
            ("#,##0,,",                        "1500000",            "2"),
            ("0.00%",                          "11",                 "1100.00%"),
            ("0%%",                            "0.11",               "1100%%"),
            ("\"9,900.00\"",                   "1100",               "9,900.00"),
            ("\"9\"000",                       "900",                "9900"),
            ("0\".\"00",                       "990",                "9.90"),
            ("0\"0\"",                         "99",                 "990"),
            ("0\"1\"0",                        "55",                 "515"),
            ("General\"0\"",                   "99",                 "990"),
            ("\"1\"General",                   "99",                 "199"),
            ("dd.mm.\"2031\"",                 "46086",              "05.03.2031"),
            ("mmm yyyy",                       "46086",              "March 2026"),
            ("0;0;\"nil\"",                    "0",                  "nil"),
            ("0.00;0.00",                      "-5",                 "5.00"),
            ("[>1000]\"1,100.00\";0.00",       "9900",               "1,100.00"),
            ("[>1000]\"1,100.00\";0.00",       "-5",                 "-5.00"),
            ("[=0]\"-\";0.00",                 "0",                  "-"),
            ("0.00;;",                         "0",                  ""),
            ("@",                              "42",                 "42"),
            (".00",                            "12.5",               "12.50"),
            ("0.00",                           "2.675",              "2.68"),
            ("0.00",                           "0.125",              "0.13"),
            ("0.00",                           "-0.001",             "0.00"),
            ("0",                              "999.5",              "1000"),
            ("0.00",                           "0.05",               "0.05"),
            ("0.00",                           "0.995",              "1.00"),
        ];
        for (code, raw, expected) in table {
            let found = shown(code, CellContent::Number(raw.to_owned()));
            assert_eq!(found.text, expected, "{raw} as {code}");
        }
    }

    #[test]
    fn a_text_is_written_as_its_cell_shows_it() {
        for (code, expected) in [
            ("General", "EUR 5"),
            ("0.00", "EUR 5"),
            ("0;0;0;", ""),
            (";;;", ""),
            ("@", "EUR 5"),
            ("@\"00\"", "EUR 500"),
            ("0;0;0;\"9,900\"", "9,900"),
            (";;;@", "EUR 5"),
            ("[White]@", ""),
        ] {
            let run = CellRun { text: "EUR 5".to_owned(), font: None };
            assert_eq!(shown(code, CellContent::Text(vec![run])).text, expected, "{code}");
        }
    }
}
