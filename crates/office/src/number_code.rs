//! Format codes of numbers: the text that a program shows for a stored value (ISO/IEC 29500-1
//! §18.8.31).
//!
//! Decimals have a point and thousands no separator, dates with all their parts are written
//! year-month-day: the signs that are shown depend on the computer that opens the file. Scientific
//! notation and fractions are written as plain numbers.

use time::{Date, Duration, PrimitiveDateTime, Time};

use crate::colours::{RgbColour, palette_colour};

/// Significant digits that a number of a sheet has.
const DIGITS: usize = 15;
/// Decimals that a format may have.
const MAX_DECIMALS: usize = 15;
/// Sections of a format code: positive, negative, zero, text.
const MAX_SECTIONS: usize = 4;
/// The day before the first of either system, as a Julian day: 30 December 1899 and 1 January 1904.
const EPOCH_1900: i32 = 2_415_019;
const EPOCH_1904: i32 = 2_416_481;
/// Serial number of the non-existent 29 February 1900.
const FALSE_LEAP_DAY: f64 = 60.0;

/// A piece of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CodeToken {
    /// `0`, `#` or `?`.
    Digit(char),
    Point,
    Comma,
    Percent,
    Literal(String),
    /// The number in general form.
    General,
    /// The text of a cell.
    CellText,
    /// A part of a date or time, and how often its letter stands.
    Moment(char, usize),
    /// Hours, minutes or seconds that go on behind a day.
    Elapsed(char),
    /// Scientific notation or a fraction.
    Odd,
}

/// The numbers that a section is for, by a comparison of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberCondition {
    sign: String,
    bound: f64,
}

impl NumberCondition {
    /// A comparison by its sign and number, such as `>=100`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let sign = text.get(..text.len() - digits.len()).filter(|sign| !sign.is_empty())?;
        Some(Self { sign: sign.to_owned(), bound: digits.trim().parse().ok()? })
    }

    pub(crate) fn holds(&self, value: f64) -> bool {
        match self.sign.as_str() {
            "<" => value < self.bound,
            "<=" => value <= self.bound,
            ">" => value > self.bound,
            ">=" => value >= self.bound,
            "<>" => value != self.bound,
            _ => value == self.bound,
        }
    }

    /// Whether it applies to negative numbers only, which are then written without sign.
    fn is_negative(&self) -> bool {
        self.sign == "<" && self.bound <= 0.0 || self.sign == "<=" && self.bound < 0.0
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct CodeSection {
    tokens: Vec<CodeToken>,
    condition: Option<NumberCondition>,
    colour: Option<RgbColour>,
}

/// The text that a code gives, and the colour that it names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CodedText {
    pub(crate) text: String,
    pub(crate) colour: Option<RgbColour>,
}

/// A format code.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NumberCode {
    sections: Vec<CodeSection>,
}

impl NumberCode {
    pub(crate) fn parse(code: &str) -> Self {
        let mut reader = CodeReader { rest: code, sections: vec![CodeSection::default()] };
        while let Some(sign) = reader.next_char() {
            reader.take(sign);
        }
        Self { sections: reader.sections }
    }

    /// A number as it is written; `None` if the code hides it.
    pub(crate) fn write_number(&self, value: f64, is_1904: bool) -> Option<CodedText> {
        let numeric = self.numeric_sections();
        let Some((section, is_abs)) = choose_section(numeric, value) else {
            // Numbers in a code for text alone are written in general form.
            let text = numeric.is_empty().then(|| write_general(value))?;
            return Some(CodedText { text, colour: None });
        };
        let shown = if is_abs { value.abs() } else { value };
        let text = section.write(shown, is_1904)?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(CodedText { text, colour: section.colour })
    }

    /// The text of a cell as it is written; `None` if the code hides it.
    pub(crate) fn write_text(&self, text: &str) -> Option<CodedText> {
        let Some(section) = self.text_section() else {
            return Some(CodedText { text: text.to_owned(), colour: None });
        };
        let parts = section.tokens.iter().map(|token| match token {
            CodeToken::CellText | CodeToken::General => text,
            CodeToken::Literal(literal) => literal.as_str(),
            _ => "",
        });
        let text: String = parts.collect();
        (!text.trim().is_empty()).then_some(CodedText { text, colour: section.colour })
    }

    fn text_section(&self) -> Option<&CodeSection> {
        match self.sections.as_slice() {
            [_, _, _, text] => Some(text),
            [.., last] if last.tokens.contains(&CodeToken::CellText) => Some(last),
            _ => None,
        }
    }

    fn numeric_sections(&self) -> &[CodeSection] {
        let count = self.sections.len() - usize::from(self.text_section().is_some());
        self.sections.get(..count).unwrap_or_default()
    }
}

/// The section for a number, and whether it is written without its sign.
fn choose_section(sections: &[CodeSection], value: f64) -> Option<(&CodeSection, bool)> {
    let count = sections.len();
    let has_conditions = sections.iter().any(|section| section.condition.is_some());
    sections.iter().enumerate().find_map(|(at, section)| {
        let (holds, is_abs) = match &section.condition {
            Some(condition) => (condition.holds(value), condition.is_negative()),
            None if at + 1 == count => (true, count > 1 && !has_conditions),
            None if has_conditions => (at > 0 && value < 0.0 || at == 0 && value > 0.0, at > 0),
            None if at == 0 => (value > 0.0 || count == 2 && value == 0.0, false),
            None => (value < 0.0, true),
        };
        holds.then_some((section, is_abs))
    })
}

impl CodeSection {
    fn has(&self, wanted: impl Fn(&CodeToken) -> bool) -> bool {
        self.tokens.iter().any(wanted)
    }

    fn write(&self, value: f64, is_1904: bool) -> Option<String> {
        if self.has(|it| matches!(it, CodeToken::Moment(..) | CodeToken::Elapsed(_))) {
            return Some(self.write_moment(value, is_1904).unwrap_or_else(|| write_general(value)));
        }
        if self.has(|it| *it == CodeToken::Odd) {
            return Some(write_general(value));
        }
        if self.has(|it| matches!(it, CodeToken::Digit(_))) {
            return Some(self.write_digits(value));
        }
        let sign = if value < 0.0 && !self.tokens.is_empty() { "-" } else { "" };
        let parts = self.tokens.iter().map(|token| match token {
            CodeToken::General => write_general(value.abs()),
            CodeToken::Literal(text) => text.clone(),
            CodeToken::Percent => "%".to_owned(),
            _ => String::new(),
        });
        Some(parts.fold(sign.to_owned(), |text, part| text + &part))
    }

    /// The power of ten that signs and commas scale by, and the decimals that are shown.
    fn scale(&self) -> (i32, usize) {
        let (mut power, mut decimals, mut is_behind) = (0, 0, false);
        for (at, token) in self.tokens.iter().enumerate() {
            match token {
                CodeToken::Percent => power += 2,
                CodeToken::Point => is_behind = true,
                CodeToken::Digit(_) if is_behind => decimals += 1,
                CodeToken::Comma => {
                    let behind = self.tokens.get(at..).unwrap_or_default();
                    let mut whole = behind.iter().take_while(|it| **it != CodeToken::Point);
                    let is_separator =
                        !is_behind && whole.any(|it| matches!(it, CodeToken::Digit(_)));
                    let before = self.tokens.iter().take(at);
                    let follows = before.into_iter().any(|it| matches!(it, CodeToken::Digit(_)));
                    power -= if follows && !is_separator { 3 } else { 0 };
                }
                _ => {}
            }
        }
        (power, decimals.min(MAX_DECIMALS))
    }

    fn write_digits(&self, value: f64) -> String {
        let (power, places) = self.scale();
        let (whole, decimals) = round_scaled(value, power, places);
        let whole = whole.trim_start_matches('0');
        let is_zero = whole.is_empty() && decimals.bytes().all(|digit| digit == b'0');
        let point = self.tokens.iter().position(|it| *it == CodeToken::Point);
        let (before, behind) = self.tokens.split_at(point.unwrap_or(self.tokens.len()));
        let mut text = if value < 0.0 && !is_zero { "-".to_owned() } else { String::new() };
        text.push_str(&write_whole(before, whole));
        let decimals = write_decimals(behind, &decimals);
        // A point without decimals behind it is no decimal point for a reader.
        text.push_str(decimals.strip_suffix('.').unwrap_or(&decimals));
        text
    }

    /// A day and a time by the parts that the code asks for; `None` of a number that is no day.
    fn write_moment(&self, value: f64, is_1904: bool) -> Option<String> {
        let elapsed = self.tokens.iter().find_map(|token| match token {
            CodeToken::Elapsed(unit) => Some(*unit),
            _ => None,
        });
        if let Some(unit) = elapsed {
            return write_duration(value, unit);
        }
        let moment = moment_of(value, is_1904)?;
        let asks =
            |letter: char| self.has(|it| matches!(it, CodeToken::Moment(own, _) if *own == letter));
        let is_plain = !self.has(
            |it| matches!(it, CodeToken::Literal(text) if text.contains(|c: char| c.is_numeric())),
        );
        let is_date = asks('y') && asks('m') && asks('d');
        let has_date = asks('y') || asks('d') || asks('m');
        let is_time = asks('h') || asks('s');
        let time = format!("{:02}:{:02}", moment.hour(), moment.minute());
        let day = moment.date();
        let day = format!("{:04}-{:02}-{:02}", day.year(), u8::from(day.month()), day.day());
        Some(match (is_plain, is_date, is_time) {
            (true, true, true) => format!("{day} {time}"),
            (true, true, false) => day,
            (true, false, true) if !has_date => time,
            _ => self.write_parts(moment),
        })
    }

    /// The parts of a moment one by one, as of codes that leave some out or add digits to them.
    fn write_parts(&self, moment: PrimitiveDateTime) -> String {
        let parts = self.tokens.iter().map(|token| match token {
            CodeToken::Literal(text) => text.clone(),
            CodeToken::Moment('y', 1 | 2) => format!("{:02}", moment.year().rem_euclid(100)),
            CodeToken::Moment('y', _) => format!("{:04}", moment.year()),
            CodeToken::Moment('m', 1) => u8::from(moment.month()).to_string(),
            CodeToken::Moment('m', 2) => format!("{:02}", u8::from(moment.month())),
            CodeToken::Moment('m', _) => moment.month().to_string(),
            CodeToken::Moment('d', 1) => moment.day().to_string(),
            CodeToken::Moment('d', 2) => format!("{:02}", moment.day()),
            CodeToken::Moment('d', _) => moment.weekday().to_string(),
            CodeToken::Moment('h', _) => format!("{:02}", moment.hour()),
            CodeToken::Moment('n', _) => format!("{:02}", moment.minute()),
            CodeToken::Moment('s', _) => format!("{:02}", moment.second()),
            CodeToken::Point => ".".to_owned(),
            CodeToken::Comma => ",".to_owned(),
            _ => String::new(),
        });
        parts.collect()
    }
}

/// The digits before the point in their places, from the right; further ones stand at the first
/// place.
fn write_whole(tokens: &[CodeToken], digits: &str) -> String {
    let mut left: Vec<char> = digits.chars().collect();
    let first = tokens.iter().position(|it| matches!(it, CodeToken::Digit(_)));
    let mut parts: Vec<String> = Vec::new();
    for (at, token) in tokens.iter().enumerate().rev() {
        parts.push(match token {
            CodeToken::Digit(kind) => {
                let own = left.pop().or((*kind == '0').then_some('0'));
                let rest = if Some(at) == first { std::mem::take(&mut left) } else { Vec::new() };
                rest.into_iter().chain(own).collect()
            }
            CodeToken::Literal(text) => text.clone(),
            CodeToken::Percent => "%".to_owned(),
            _ => String::new(),
        });
    }
    // A code that begins with the point has no place for the digits before it.
    let leading: String = left.into_iter().collect();
    parts.into_iter().rev().fold(leading, |text, part| text + &part)
}

/// The point and the digits behind it; optional ones only as far as they are used.
fn write_decimals(tokens: &[CodeToken], digits: &str) -> String {
    let used = digits.trim_end_matches('0').len();
    let (mut text, mut at) = (String::new(), 0);
    for token in tokens {
        match token {
            CodeToken::Point if at == 0 => text.push('.'),
            CodeToken::Digit(kind) => {
                if *kind == '0' || at < used {
                    text.extend(digits.chars().nth(at));
                }
                at += 1;
            }
            CodeToken::Literal(literal) => {
                if text == "." {
                    text.clear();
                }
                text.push_str(literal);
            }
            CodeToken::Percent => text.push('%'),
            _ => {}
        }
    }
    text
}

/// The digits before and behind the point of a number times a power of ten, rounded half away from
/// zero in decimal digits, as sheets do.
fn round_scaled(value: f64, power: i32, places: usize) -> (String, String) {
    let written = format!("{:.*e}", DIGITS - 1, value.abs());
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent = exponent.parse::<i32>().unwrap_or(0).saturating_add(power).clamp(-400, 400);
    let before = usize::try_from(exponent.saturating_add(1)).unwrap_or(0);
    let zeros = usize::try_from(-exponent.saturating_add(1)).unwrap_or(0);
    let mut plain = format!("{}{digits}", "0".repeat(zeros));
    while plain.len() < before + places + 1 {
        plain.push('0');
    }
    let kept = before + places;
    let is_up = plain.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
    let mut kept_digits: Vec<u8> = plain.bytes().take(kept).collect();
    let mut carry = is_up;
    for digit in kept_digits.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == b'9';
        *digit = if carry { b'0' } else { *digit + 1 };
    }
    let mut text: String = kept_digits.into_iter().map(char::from).collect();
    if carry {
        text.insert(0, '1');
    }
    let decimals = text.split_off(text.len() - places);
    (text, decimals)
}

/// The day and time of a serial number.
fn moment_of(value: f64, is_1904: bool) -> Option<PrimitiveDateTime> {
    if !(0.0..3_000_000.0).contains(&value) {
        return None;
    }
    let epoch = if is_1904 { EPOCH_1904 } else { EPOCH_1900 };
    let slip = i32::from(!is_1904 && value < FALSE_LEAP_DAY);
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let (days, seconds) =
        (value.trunc() as i32, ((value - value.trunc()) * 86_400.0).round() as i64);
    let date = Date::from_julian_day(epoch + days + slip).ok()?;
    PrimitiveDateTime::new(date, Time::MIDNIGHT).checked_add(Duration::seconds(seconds))
}

/// Hours and minutes that may be more than a day's, or minutes or seconds alone.
fn write_duration(value: f64, unit: char) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "compared with its bounds")]
    let [minutes, seconds] =
        [1440.0, 86_400.0].map(|it| (value * it).round().clamp(-1e9, 1e9) as i64);
    (minutes >= 0).then(|| match unit {
        'h' => format!("{}:{:02}", minutes / 60, minutes % 60),
        'm' => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => seconds.to_string(),
    })
}

/// A number in general form: as many digits as a sheet keeps.
pub(crate) fn write_general(value: f64) -> String {
    if value != 0.0 && !(1e-9..1e15).contains(&value.abs()) {
        return format!("{value}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between -9 and 15"
    )]
    let before = value.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{value:.*}", DIGITS.saturating_sub(before));
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct CodeReader<'a> {
    rest: &'a str,
    sections: Vec<CodeSection>,
}

impl CodeReader<'_> {
    fn next_char(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
        Some(first)
    }

    fn take_until(&mut self, end: char) -> String {
        let mut taken = String::new();
        while let Some(sign) = self.next_char().filter(|sign| *sign != end) {
            taken.push(sign);
        }
        taken
    }

    fn take(&mut self, sign: char) {
        let token = match sign {
            ';' => {
                // Sections behind the fourth are for nothing: what stands there belongs to none.
                if self.sections.len() >= MAX_SECTIONS {
                    self.rest = "";
                } else {
                    self.sections.push(CodeSection::default());
                }
                return;
            }
            '"' => CodeToken::Literal(self.take_until('"')),
            '[' => match self.take_bracket() {
                Some(token) => token,
                None => return,
            },
            '\\' => CodeToken::Literal(self.next_char().map(String::from).unwrap_or_default()),
            // A space as wide as the next character.
            '_' => {
                self.next_char();
                CodeToken::Literal(" ".to_owned())
            }
            // A character that fills the column.
            '*' => match self.next_char().filter(|sign| sign.is_alphanumeric()) {
                Some(sign) => CodeToken::Literal(sign.to_string()),
                None => return,
            },
            '0' | '#' | '?' => CodeToken::Digit(sign),
            '.' => CodeToken::Point,
            ',' => CodeToken::Comma,
            '%' => CodeToken::Percent,
            '@' => CodeToken::CellText,
            'E' | 'e' if self.rest.starts_with(['+', '-']) => CodeToken::Odd,
            '/' if self.is_behind_digit() => CodeToken::Odd,
            sign if sign.is_ascii_alphabetic() => self.take_letters(sign),
            sign => CodeToken::Literal(sign.to_string()),
        };
        if let Some(section) = self.sections.last_mut() {
            section.tokens.push(token);
        }
    }

    fn is_behind_digit(&self) -> bool {
        let tokens = self.sections.last().map(|section| section.tokens.as_slice());
        matches!(tokens, Some([.., CodeToken::Digit(_)]))
    }

    /// A colour, a condition, a currency, or a time that goes on behind a day.
    fn take_bracket(&mut self) -> Option<CodeToken> {
        let inside = self.take_until(']');
        if let Some(currency) = inside.strip_prefix('$') {
            // The sign of the currency may be one that has a dash.
            let parts = currency.rsplit_once('-');
            let is_locale = |it: &str| it.bytes().all(|digit| digit.is_ascii_hexdigit());
            let sign = match parts.filter(|(_, locale)| is_locale(locale)) {
                Some((sign, _)) => sign,
                None => currency.split('-').next().unwrap_or_default(),
            };
            return Some(CodeToken::Literal(sign.to_owned()));
        }
        let lower = inside.to_ascii_lowercase();
        let mut letters = lower.chars();
        if let Some(unit) = letters.next().filter(|unit| matches!(unit, 'h' | 'm' | 's'))
            && letters.all(|letter| letter == unit)
        {
            return Some(CodeToken::Elapsed(unit));
        }
        let section = self.sections.last_mut()?;
        if let Some(condition) = NumberCondition::parse(&inside) {
            section.condition = Some(condition);
        } else if let Some(number) = lower.strip_prefix("color") {
            let number = number.trim().parse::<usize>().ok()?;
            section.colour = palette_colour(number.checked_add(7)?);
        } else {
            section.colour = RgbColour::parse(&lower);
        }
        None
    }

    /// A part of a date, `General`, or a letter that stands for itself.
    fn take_letters(&mut self, first: char) -> CodeToken {
        let is_general = first.eq_ignore_ascii_case(&'g')
            && self.rest.get(..6).is_some_and(|it| it.eq_ignore_ascii_case("eneral"));
        if is_general {
            self.rest = self.rest.get(6..).unwrap_or_default();
            return CodeToken::General;
        }
        for half in ["M/PM", "/P"] {
            let is_half = first.eq_ignore_ascii_case(&'a')
                && self.rest.get(..half.len()).is_some_and(|it| it.eq_ignore_ascii_case(half));
            if is_half {
                self.rest = self.rest.get(half.len()..).unwrap_or_default();
                return CodeToken::Literal(String::new());
            }
        }
        let letter = first.to_ascii_lowercase();
        if !matches!(letter, 'y' | 'm' | 'd' | 'h' | 's' | 'e') {
            return CodeToken::Literal(first.to_string());
        }
        let behind = self.rest.trim_start_matches([letter, letter.to_ascii_uppercase()]);
        let count = 1 + self.rest.len() - behind.len();
        self.rest = behind;
        let is_minute = letter == 'm' && (self.is_behind_hour() || is_before_second(behind));
        match letter {
            'm' if is_minute => CodeToken::Moment('n', count),
            'e' => CodeToken::Moment('y', 4),
            letter => CodeToken::Moment(letter, count),
        }
    }

    fn is_behind_hour(&self) -> bool {
        let tokens = self.sections.last().map(|section| section.tokens.as_slice());
        let last = tokens.unwrap_or_default().iter().rev().find_map(|token| match token {
            CodeToken::Moment(letter, _) | CodeToken::Elapsed(letter) => Some(*letter),
            _ => None,
        });
        last == Some('h')
    }
}

fn is_before_second(rest: &str) -> bool {
    rest.trim_start_matches([':', '.', ' ', '\\']).starts_with(['s', 'S'])
}
