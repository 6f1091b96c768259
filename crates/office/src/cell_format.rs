//! Numbers of a sheet as people see them: decimals, percentages, currencies and dates by the number
//! format of the cell (ISO/IEC 29500-1 §18.8.30 and §18.8.31).
//!
//! Decimals have a point and thousands no separator, dates are written year-month-day: the signs
//! that are shown depend on the computer that opens the file.

use std::collections::HashMap;

use docmill_formats::xml::XmlNode;
use time::{Date, Duration};

use crate::styling::is_white;
use crate::tags::{all, attribute, child, elements, number};

/// Significant digits that a number of a sheet has.
const DIGITS: usize = 15;
/// Decimals that a format may ask for.
const MAX_DECIMALS: usize = 15;
/// The day before the first of either system, as a Julian day: 30 December 1899 and 1 January 1904.
const EPOCH_1900: i32 = 2_415_019;
const EPOCH_1904: i32 = 2_416_481;
/// Serial number of 29 February 1900, which never was.
const FALSE_LEAP_DAY: f64 = 60.0;

/// How a number is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CellNumberForm {
    General,
    Decimal {
        whole: usize,
        least: usize,
        most: usize,
        percent: bool,
        before: String,
        after: String,
    },
    Moment {
        has_date: bool,
        has_time: bool,
        is_duration: bool,
    },
    /// A format without any sign hides the number.
    Hidden,
}

/// The looks of cells, by the index that a cell names.
#[derive(Debug, Default)]
pub(crate) struct CellFormats {
    formats: Vec<CellLook>,
    is_1904: bool,
}

#[derive(Debug, Clone)]
struct CellLook {
    form: CellNumberForm,
    is_white: bool,
}

impl CellFormats {
    /// The looks that the styles of a workbook have.
    pub(crate) fn read(root: XmlNode<'_, '_>, is_1904: bool) -> Self {
        let custom: HashMap<u32, &str> = all(root, "numFmt")
            .filter_map(|it| Some((number(it, "numFmtId")?, attribute(it, "formatCode")?)))
            .collect();
        let white: Vec<bool> = entries(root, "fonts").map(is_white_font).collect();
        let filled: Vec<bool> = entries(root, "fills").map(is_filled).collect();
        let formats = entries(root, "cellXfs").map(|node| {
            let id = number(node, "numFmtId").unwrap_or(0);
            let code = custom.get(&id).copied().unwrap_or_else(|| usual_code(id));
            let font = number(node, "fontId")
                .and_then(|at| white.get(usize::try_from(at).ok()?))
                .copied()
                .unwrap_or(false);
            let fill = number(node, "fillId")
                .and_then(|at| filled.get(usize::try_from(at).ok()?))
                .copied()
                .unwrap_or(false);
            let is_white = (font || writes_in_white(code)) && !fill;
            CellLook { form: parse_code(code), is_white }
        });
        Self { formats: formats.collect(), is_1904 }
    }

    /// Whether a cell of a look has white text on white ground.
    pub(crate) fn is_white(&self, style: usize) -> bool {
        self.formats.get(style).is_some_and(|look| look.is_white)
    }

    /// The number of a cell as it is written; `None` if its format hides it.
    pub(crate) fn write_number(&self, style: usize, raw: &str) -> Option<String> {
        let form = self.formats.get(style).map_or(&CellNumberForm::General, |look| &look.form);
        let Ok(value) = raw.trim().parse::<f64>() else { return Some(raw.trim().to_owned()) };
        match form {
            CellNumberForm::Hidden => None,
            CellNumberForm::General => Some(write_general(value)),
            CellNumberForm::Decimal { whole, least, most, percent, before, after } => {
                let scaled = if *percent { value * 100.0 } else { value };
                let digits = trim_decimals(format!("{scaled:.most$}"), *least);
                let digits = format!("{digits:0>whole$}");
                let sign = if *percent { "%" } else { "" };
                Some(format!("{before}{digits}{sign}{after}"))
            }
            CellNumberForm::Moment { has_date, has_time, is_duration } => {
                let written = self.write_moment(value, *has_date, *has_time && !*is_duration);
                let elapsed = if *is_duration { write_duration(value) } else { None };
                Some(elapsed.or(written).unwrap_or_else(|| write_general(value)))
            }
        }
    }

    fn write_moment(&self, value: f64, has_date: bool, has_time: bool) -> Option<String> {
        if !(0.0..3_000_000.0).contains(&value) {
            return None;
        }
        let epoch = if self.is_1904 { EPOCH_1904 } else { EPOCH_1900 };
        let slip = i32::from(!self.is_1904 && value < FALSE_LEAP_DAY);
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let (days, seconds) =
            (value.trunc() as i32, ((value - value.trunc()) * 86_400.0).round() as i64);
        let date = Date::from_julian_day(epoch + days + slip).ok()?;
        let date = date.checked_add(Duration::days(seconds / 86_400))?;
        let seconds = seconds % 86_400;
        let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
        let day = format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day());
        Some(match (has_date, has_time) {
            (true, false) => day,
            (true, true) => format!("{day} {hour:02}:{minute:02}"),
            _ => format!("{hour:02}:{minute:02}"),
        })
    }
}

/// Hours and minutes that may be more than a day's.
fn write_duration(value: f64) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "compared with its bounds")]
    let minutes = (value * 1440.0).round().clamp(-1e9, 1e9) as i64;
    (minutes >= 0).then(|| format!("{}:{:02}", minutes / 60, minutes % 60))
}

fn entries<'a, 'b>(
    root: XmlNode<'a, 'b>,
    list: &'static str,
) -> impl Iterator<Item = XmlNode<'a, 'b>> {
    all(root, list).take(1).flat_map(elements)
}

fn is_white_font(font: XmlNode<'_, '_>) -> bool {
    let Some(colour) = child(font, "color") else { return false };
    // The first colour of a theme is that of windows; a tint darkens it.
    let is_theme_white =
        attribute(colour, "theme") == Some("0") && attribute(colour, "tint").is_none();
    attribute(colour, "rgb").is_some_and(is_white) || is_theme_white
}

fn is_filled(fill: XmlNode<'_, '_>) -> bool {
    let pattern = child(fill, "patternFill").and_then(|it| attribute(it, "patternType"));
    child(fill, "gradientFill").is_some() || !matches!(pattern, None | Some("none"))
}

/// The formats that every workbook has (§18.8.30).
fn usual_code(id: u32) -> &'static str {
    match id {
        1 => "0",
        2 | 4 | 39 | 40 => "0.00",
        3 | 37 | 38 => "0",
        9 => "0%",
        10 => "0.00%",
        14..=17 | 27..=31 | 34..=36 | 50..=58 => "yyyy-mm-dd",
        18..=21 | 32 | 33 | 45 | 47 => "hh:mm",
        22 => "yyyy-mm-dd hh:mm",
        46 => "[h]:mm",
        _ => "General",
    }
}

/// A number in general form: as many digits as a sheet keeps.
fn write_general(value: f64) -> String {
    if value != 0.0 && !(1e-9..1e15).contains(&value.abs()) {
        return format!("{value}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between -9 and 15"
    )]
    let before = value.abs().max(1.0).log10().floor() as usize + 1;
    let most = DIGITS.saturating_sub(before);
    trim_decimals(format!("{value:.most$}"), 0)
}

/// The number without zeros at its end, but with `least` decimals.
fn trim_decimals(digits: String, least: usize) -> String {
    let Some((whole, decimals)) = digits.split_once('.') else { return digits };
    let used = decimals.trim_end_matches('0').len().max(least.min(decimals.len()));
    let whole = if whole == "-0" && decimals.bytes().all(|it| it == b'0') { "0" } else { whole };
    match decimals.get(..used).filter(|decimals| !decimals.is_empty()) {
        Some(decimals) => format!("{whole}.{decimals}"),
        None => whole.to_owned(),
    }
}

/// The signs of a format code.
#[derive(Default)]
struct CodeSigns {
    placeholders: usize,
    has_point: bool,
    /// Zeros before the point.
    whole: usize,
    least: usize,
    most: usize,
    percent: bool,
    has_date: bool,
    has_time: bool,
    is_duration: bool,
    before: String,
    after: String,
    is_odd: bool,
}

impl CodeSigns {
    fn add_literal(&mut self, text: &str) {
        if self.placeholders == 0 { self.before.push_str(text) } else { self.after.push_str(text) }
    }

    fn add_sign(&mut self, sign: char) {
        match sign {
            '0' | '#' | '?' => {
                self.placeholders += 1;
                if self.has_point {
                    self.most += 1;
                    self.least += usize::from(sign == '0');
                } else {
                    self.whole += usize::from(sign == '0');
                }
            }
            '.' => self.has_point = true,
            ',' => {}
            '%' => self.percent = true,
            'y' | 'Y' | 'd' | 'D' => self.has_date = true,
            'h' | 'H' | 's' | 'S' => self.has_time = true,
            // Scientific notation and fractions.
            'E' | 'e' | '/' if self.placeholders > 0 => self.is_odd = true,
            'm' | 'M' | '/' | ':' | '@' => {}
            sign => self.add_literal(sign.encode_utf8(&mut [0; 4])),
        }
    }

    fn into_form(self) -> CellNumberForm {
        let Self { has_date, has_time, is_duration, percent, least, most, .. } = self;
        if has_date || has_time || is_duration {
            CellNumberForm::Moment { has_date, has_time, is_duration }
        } else if self.is_odd || self.placeholders == 0 {
            CellNumberForm::General
        } else {
            let most = most.min(MAX_DECIMALS);
            let (whole, least) = (self.whole.min(MAX_DECIMALS), least.min(most));
            CellNumberForm::Decimal {
                whole,
                least,
                most,
                percent,
                before: self.before,
                after: self.after,
            }
        }
    }
}

/// The form that the first section of a format code asks for.
fn parse_code(code: &str) -> CellNumberForm {
    if code.trim_matches(';').is_empty() {
        return if code.is_empty() { CellNumberForm::General } else { CellNumberForm::Hidden };
    }
    if code.eq_ignore_ascii_case("general") {
        return CellNumberForm::General;
    }
    let mut signs = CodeSigns::default();
    let mut rest = code.chars();
    while let Some(sign) = rest.next() {
        match sign {
            ';' => break,
            '"' => {
                let literal: String = rest.by_ref().take_while(|c| *c != '"').collect();
                signs.add_literal(&literal);
            }
            '[' => {
                let inside: String = rest.by_ref().take_while(|c| *c != ']').collect();
                match inside.strip_prefix('$') {
                    Some(currency) => signs.add_literal(currency.split('-').next().unwrap_or("")),
                    None => {
                        let is_time = !inside.is_empty()
                            && inside.chars().all(|c| matches!(c, 'h' | 'H' | 'm' | 's'));
                        signs.is_duration |= is_time;
                    }
                }
            }
            '\\' => {
                if let Some(literal) = rest.next() {
                    signs.add_literal(literal.encode_utf8(&mut [0; 4]));
                }
            }
            // A space as wide as the next sign, or that sign as filling.
            '_' | '*' => drop(rest.next()),
            sign => signs.add_sign(sign),
        }
    }
    signs.into_form()
}

/// Whether the first section of a format code writes in white.
fn writes_in_white(code: &str) -> bool {
    let section = code.split(';').next().unwrap_or_default().to_ascii_lowercase();
    section.contains("[white]") || section.contains("[color2]") || section.contains("[color 2]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(code: &str, raw: &str) -> Option<String> {
        let formats = vec![CellLook { form: parse_code(code), is_white: false }];
        CellFormats { formats, is_1904: false }.write_number(0, raw)
    }

    #[test]
    fn a_format_writes_in_white_by_its_first_section() {
        for (code, expected) in
            [("[White]0.00", true), ("[color 2]0", true), ("[Red]0;[White]0", false), ("0", false)]
        {
            assert_eq!(writes_in_white(code), expected, "{code}");
        }
    }

    #[test]
    fn a_number_is_written_as_its_cell_shows_it() {
        #[rustfmt::skip]
        let table = [
            ("General",                        "0.1",                Some("0.1")),
            ("General",                        "1190.0000000000002", Some("1190")),
            ("General",                        "-12.5",              Some("-12.5")),
            ("General",                        "1E+20",              Some("100000000000000000000")),
            ("0.00",                           "1234.5",             Some("1234.50")),
            ("#,##0.00\\ \"€\"",               "1234.5",             Some("1234.50 €")),
            ("#,##0.00\\ [$€-407]",            "-1234.5",            Some("-1234.50 €")),
            ("[$$-409]#,##0.00",               "7",                  Some("$7.00")),
            ("0.0##",                          "2.25",               Some("2.25")),
            ("0%",                             "0.19",               Some("19%")),
            ("_-* #,##0.00_-;[Red]-#,##0.00",  "3",                  Some("3.00")),
            ("dd.mm.yyyy",                     "46086",              Some("2026-03-05")),
            ("m/d/yy h:mm",                    "46086.604166666664", Some("2026-03-05 14:30")),
            ("d. mmm yyyy",                    "1",                  Some("1900-01-01")),
            ("hh:mm",                          "0.5",                Some("12:00")),
            ("[h]:mm",                         "1.5",                Some("36:00")),
            (";;;",                            "42",                 None),
            ("000000",                         "42",                 Some("000042")),
            ("0.00E+00",                       "1234.5",             Some("1234.5")),
            ("0.00",                           "no number",          Some("no number")),
        ];
        for (code, raw, expected) in table {
            assert_eq!(written(code, raw).as_deref(), expected, "{raw} as {code}");
        }
    }
}
