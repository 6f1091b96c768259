//! Dates as written: ISO, day or month first, two-digit years, month names in 22 languages. Croatian
//! October is not among them: it is Poland's November.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use time::{Date, Month};
use unicode_normalization::char::is_combining_mark;

use super::fold_text;

/// Which of two numbers is the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayMonthOrder {
    /// The day comes first: `31/12/2024`.
    DayFirst,
    /// The month comes first: `12/31/2024`.
    MonthFirst,
}

/// A date found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDate {
    /// The date with the day first (the only reading if the month is named or comes between).
    pub day_first: Option<Date>,
    /// The date with the month first.
    pub month_first: Option<Date>,
    /// Written with slashes, as both orders are.
    pub slashes: bool,
    /// Written with points, where the day is first nearly everywhere.
    pub points: bool,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

impl FoundDate {
    /// The date under `order`; the other order if only that makes a date.
    pub fn date_under(&self, order: DayMonthOrder) -> Option<Date> {
        match order {
            DayMonthOrder::DayFirst => self.day_first.or(self.month_first),
            DayMonthOrder::MonthFirst => self.month_first.or(self.day_first),
        }
    }

    /// Whether the two orders give two dates.
    pub fn is_ambiguous(&self) -> bool {
        matches!((self.day_first, self.month_first), (Some(a), Some(b)) if a != b)
    }

    fn from_certain(date: Date, range: Range<usize>) -> Self {
        Self {
            day_first: Some(date),
            month_first: Some(date),
            slashes: false,
            points: false,
            range,
        }
    }
}

/// The order that most of the unambiguous dates of a document show, day first if as many show either.
pub fn infer_order<'a>(found: impl Iterator<Item = &'a FoundDate>) -> Option<DayMonthOrder> {
    let (mut day, mut month) = (0, 0);
    for date in found {
        match (date.day_first, date.month_first) {
            (Some(_), None) => day += 1,
            (None, Some(_)) => month += 1,
            _ => {}
        }
    }
    match (day, month) {
        (0, 0) => None,
        (day, month) if day >= month => Some(DayMonthOrder::DayFirst),
        _ => Some(DayMonthOrder::MonthFirst),
    }
}

/// The first letters of folded month names, January first: EN DE FR NL ES IT PT SV DA NO PL.
const MONTHS: [&[&str]; 12] = [
    &["jan", "januar", "janv", "ene", "gen", "sty"],
    &["feb", "fev", "fevr", "febr", "lut"],
    &["mar", "marz", "mrz", "maart", "mrt", "maerz", "mars"],
    &["apr", "avr", "abr", "kwi"],
    &["may", "mai", "mei", "maj", "mag", "mayo"],
    &["jun", "juin", "giu", "cze"],
    &["jul", "juil", "lug", "lip"],
    &["aug", "aout", "ago", "sie"],
    &["sep", "set", "wrz"],
    &["oct", "okt", "ott", "out", "paz"],
    &["nov", "lis"],
    &["dec", "dez", "dic", "des", "gru"],
];

/// Whole folded month names, so that a word that merely begins like a month is none.
#[rustfmt::skip]
const NAMES: [&[&str]; 12] = [
    &[
        "january", "januar", "janner", "janvier", "januari", "enero", "gennaio", "janeiro",
        "stycznia", "ledna", "januara", "ianuarie", "sausio", "janvaris", "janvari", "jaanuar",
        "tammikuu", "tammikuuta", "ιανουαριοσ", "ιανουαριου", "януари", "ocak", "januarja",
        "sijecnja",
        "січня",
    ],
    &[
        "february", "februar", "fevrier", "februari", "febrero", "febbraio", "fevereiro", "lutego",
        "unora", "februara", "februarie", "vasario", "februaris", "veebruar", "helmikuu", "helmikuuta",
        "φεβρουαριοσ", "φεβρουαριου", "февруари", "subat", "februarja",
        "veljace",
        "лютого",
    ],
    &[
        "march", "marz", "maerz", "mars", "maart", "marzo", "marco", "marts",
        "marca", "brezna", "marcius", "martie", "kovo", "marta", "maaliskuu", "maaliskuuta",
        "μαρτιοσ", "μαρτιου", "март", "mart", "marec",
        "ozujka",
        "березня",
    ],
    &[
        "april", "avril", "abril", "aprile", "kwietnia", "dubna", "aprila", "aprilis",
        "aprilie", "balandzio", "aprili", "aprill", "huhtikuu", "huhtikuuta", "απριλιοσ", "απριλιου",
        "април", "nisan",
        "travnja",
        "квітня",
    ],
    &[
        "may", "mai", "mei", "mayo", "maggio", "maio", "maj", "maja",
        "kvetna", "majus", "geguzes", "maijs", "maija", "toukokuu", "toukokuuta", "μαιοσ",
        "μαιου", "май", "маи", "mayis", "mayıs",
        "svibnja",
        "травня",
    ],
    &[
        "june", "juni", "juin", "junio", "giugno", "junho", "czerwca", "cervna",
        "juna", "junius", "iunie", "birzelio", "junijs", "junija", "juuni", "kesakuu",
        "kesakuuta", "ιουνιοσ", "ιουνιου", "юни", "haziran", "junij",
        "lipnja",
        "червня",
    ],
    &[
        "july", "juli", "juillet", "julio", "luglio", "julho", "lipca", "cervence",
        "jula", "julius", "iulie", "liepos", "julijs", "julija", "juuli", "heinakuu",
        "heinakuuta", "ιουλιοσ", "ιουλιου", "юли", "temmuz", "julij",
        "srpnja",
        "липня",
    ],
    &[
        "august", "aout", "augustus", "agosto", "augusti", "sierpnia", "srpna", "augusta",
        "augusztus", "rugpjucio", "augusts", "elokuu", "elokuuta", "αυγουστοσ", "αυγουστου", "август",
        "agustos", "avgust", "avgusta",
        "kolovoza",
        "серпня", "agust",
    ],
    &[
        "september", "septembre", "septiembre", "settembre", "setembro", "wrzesnia", "zari", "septembra",
        "szeptember", "septembrie", "rugsejo", "septembris", "syyskuu", "syyskuuta", "σεπτεμβριοσ", "σεπτεμβριου",
        "септември", "eylul",
        "rujna",
        "вересня",
    ],
    &[
        "october", "oktober", "octobre", "octubre", "ottobre", "outubro", "pazdziernika", "rijna",
        "oktobra", "octombrie", "spalio", "oktobris", "oktoober", "lokakuu", "lokakuuta", "οκτωβριοσ",
        "οκτωβριου", "октомври", "ekim",
        "жовтня",
    ],
    &[
        "november", "novembre", "noviembre", "novembro", "listopada", "listopadu", "novembra", "noiembrie",
        "lapkricio", "novembris", "marraskuu", "marraskuuta", "νοεμβριοσ", "νοεμβριου", "ноември", "kasim",
        "kasım",
        "studenoga", "studenog",
        "листопада",
    ],
    &[
        "december", "dezember", "decembre", "diciembre", "dicembre", "dezembro", "desember", "grudnia",
        "prosince", "decembra", "decembrie", "gruodzio", "decembris", "detsember", "joulukuu", "joulukuuta",
        "δεκεμβριοσ", "δεκεμβριου", "декември", "aralik", "aralık",
        "prosinca",
        "грудня",
    ],
];

fn parse_month(name: &str) -> Option<Month> {
    let name = fold_text(name);
    let mut tables = [&NAMES, &MONTHS].into_iter();
    let known = tables.find_map(|table| table.iter().position(|row| row.contains(&name.as_str())));
    let at = known.or_else(|| (name == "sept").then_some(8))?;
    Month::try_from(u8::try_from(at + 1).ok()?).ok()
}

/// The letters of a month's name, and what else is not ASCII: whether they are one's name is asked
/// afterwards. The classes of Unicode (`\p{L}`, `\d`) made these expressions a hundred times as large, and
/// every process that looks for dates compiles them anew.
const NAME: &str = r"[A-Za-z\x{80}-\x{10FFFF}]{3,12}";

/// A form, with `NAME` for a name of letters.
fn compile_form(form: &str) -> Option<Regex> {
    Regex::new(&form.replace("NAME", NAME)).ok()
}

static ISO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(r"\b([0-9]{4})([-/.])([0-9]{1,2})([-/.])([0-9]{1,2})(?:\b|T[012][0-9]:)")
});
static NUMERIC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(r"\b([0-9]{1,2})\s?([./-])\s?([0-9]{1,2})\s?([./-])\s?([0-9]{4}|[0-9]{2})\b")
});
/// Before a time without a space: `23/07/201914:52`.
static NUMERIC_AND_TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(r"\b([0-9]{1,2})([./-])([0-9]{1,2})([./-])([0-9]{4})[012][0-9]:[0-5][0-9]")
});
static DAY_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(
        r"\b([0-9]{1,2})(?i:st|nd|rd|th|er|º|\.)?[ /-]*(?i:of |de )?(NAME)\.?,?[ /-]*(?i:del? )?([0-9]{4}|[0-9]{2})\b",
    )
});
/// `Mar17'26` as tills have it: two digits of a year only behind their apostrophe.
static NAME_DAY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(
        r"\b(NAME)\.? ?([0-9]{1,2})(?i:st|nd|rd|th)?(?: ?,? ?([0-9]{4})| ?['’]([0-9]{2}))\b",
    )
});
/// `2024. gada 14. marts`, `2024. május 21.`, `2024 m. kovo 7 d.`
static YEAR_FIRST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile_form(
        r"\b([0-9]{4})(?:(?i:\. ?gada )([0-9]{1,2})\. ?(NAME)|(?i:\.| m\.) ?(NAME) ([0-9]{1,2}))\b",
    )
});

/// Makes a date of what a form matched.
type DateParser = fn(&Captures<'_>) -> Option<FoundDate>;

/// Signs without which no date form matches. Most lines lack them, and this test is cheaper than a
/// search.
struct DateSigns {
    digits: usize,
    /// Whether a day or a month is between separators.
    has_short_group: bool,
    /// A month's name may begin in it.
    names_month: bool,
}

impl DateSigns {
    fn of_text(text: &str) -> Self {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let (has_short_group, names_month) = match digits {
            0..3 => (false, false),
            _ => (has_short_group(text), may_name_month(text)),
        };
        Self { digits, has_short_group, names_month }
    }

    fn allow_numeric(&self) -> bool {
        self.digits >= 4 && self.has_short_group
    }

    /// `1 May 26` is the shortest.
    fn allow_named(&self) -> bool {
        self.names_month
    }
}

/// Whether one or two digits, and nothing else but space, stand between two separators: few lines
/// of amounts have that, every date of numbers does.
fn has_short_group(text: &str) -> bool {
    let mut since_separator: Option<usize> = None;
    text.chars().any(|c| {
        let closes = matches!(c, '.' | '/' | '-') && matches!(since_separator, Some(1 | 2));
        since_separator = match c {
            '.' | '/' | '-' => Some(0),
            _ if c.is_ascii_digit() => since_separator.map(|digits| digits + 1),
            _ => since_separator.filter(|_| c.is_whitespace()),
        };
        closes
    })
}

/// Which first three letters names of months have, those of ASCII alone: a bit for each [`letters_code`].
static MONTH_STARTS: LazyLock<[u64; 512]> = LazyLock::new(|| {
    let mut starts = [0; 512];
    for name in MONTHS.iter().chain(&NAMES).copied().flatten() {
        let first = name.as_bytes().first_chunk::<3>().filter(|first| first.is_ascii());
        let code = first.map_or(0, |first| letters_code(first));
        if let Some(bits) = starts.get_mut(code >> 6) {
            *bits |= 1 << (code & 63);
        }
    }
    starts
});

/// Whether the first three letters of some name stand where one may begin: at the first letter of a word,
/// behind the ending of an ordinal (`1stMay`), or with letters that folding would change.
fn may_name_month(text: &str) -> bool {
    let starts = &*MONTH_STARTS;
    let bytes = text.as_bytes();
    for (at, three) in bytes.windows(3).enumerate() {
        if !three.iter().all(u8::is_ascii_alphabetic) {
            continue;
        }
        let code = letters_code(three);
        let is_start = starts.get(code >> 6).is_some_and(|bits| bits >> (code & 63) & 1 == 1);
        if is_start && may_begin_word(bytes, at) {
            return true;
        }
    }
    !text.is_ascii()
        && text.chars().any(|c| !c.is_ascii() && (c.is_alphabetic() || is_combining_mark(c)))
}

/// Whether no letter precedes this place, other than the ending of an ordinal number (`3rd`).
fn may_begin_word(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(at.saturating_sub(3)..at).unwrap_or_default();
    match before {
        [digit, ending @ ..] if ending.len() == 2 && digit.is_ascii_digit() => true,
        _ => before.last().is_none_or(|byte| !byte.is_ascii_alphabetic()),
    }
}

/// Three letters of ASCII as one number of fifteen bits, small ones and capitals the same.
fn letters_code(letters: &[u8]) -> usize {
    letters.iter().fold(0, |code, letter| code << 5 | usize::from(letter & 31))
}

/// Every date in `text`, in order, without overlaps.
pub fn find_dates(text: &str) -> Vec<FoundDate> {
    let signs = DateSigns::of_text(text);
    // By where they start: what a date overlaps can only be its neighbours.
    let mut found: BTreeMap<usize, FoundDate> = BTreeMap::new();
    let numeric: [(&LazyLock<Option<Regex>>, DateParser); 3] = [
        (&ISO, date_from_iso),
        (&NUMERIC, date_from_numeric),
        (&NUMERIC_AND_TIME, date_from_numeric),
    ];
    let named: [(&LazyLock<Option<Regex>>, DateParser); 3] = [
        (&DAY_NAME, parse_day_month),
        (&NAME_DAY, parse_month_day),
        (&YEAR_FIRST, parse_year_first),
    ];
    let numeric = numeric.into_iter().filter(|_| signs.allow_numeric());
    for (regex, reader) in numeric.chain(named.into_iter().filter(|_| signs.allow_named())) {
        let Some(regex) = regex.as_ref() else { continue };
        let mut from = 0;
        while let Some(captures) = regex.captures_at(text, from) {
            let Some(whole) = captures.get(0) else { break };
            let Some(date) = reader(&captures).filter(|date| stands_alone(text, &date.range))
            else {
                // A date may begin within what looked like one: `#27- 18/09/2019`.
                let first = text.get(whole.start()..).and_then(|rest| rest.chars().next());
                from = whole.start() + first.map_or(1, char::len_utf8);
                continue;
            };
            from = whole.end();
            let before = found.range(..date.range.end).next_back();
            if before.is_none_or(|(_, other)| other.range.end <= date.range.start) {
                found.insert(date.range.start, date);
            }
        }
    }
    found.into_values().collect()
}

/// Whether a match is not a piece of something longer, such as `00.123.45.67-2014`.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let mut before = text.get(..range.start).unwrap_or("").chars().rev();
    let mut after = text.get(range.end..).unwrap_or("").chars();
    let glued_before = matches!(before.next(), Some('.' | '/' | ','))
        && before.next().is_some_and(|c| c.is_ascii_digit());
    let (mark, next) = (after.next(), after.next());
    let glued_after = matches!(mark, Some('.' | '/' | ',')) && next.is_some_and(|c| c.is_ascii_digit())
        // `11/09/2024/EX` is a number.
        || mark == Some('/') && next.is_some_and(char::is_alphabetic);
    !glued_before && !glued_after
}

fn capture_number(captures: &Captures<'_>, group: usize) -> Option<i32> {
    captures.get(group)?.as_str().parse().ok()
}

/// Two digits stand for 2000 to 2079 or 1980 to 1999.
fn capture_year(captures: &Captures<'_>, group: usize) -> Option<i32> {
    match capture_number(captures, group)? {
        short @ 0..80 => Some(2000 + short),
        short @ 80..100 => Some(1900 + short),
        long @ 1900..2100 => Some(long),
        _ => None,
    }
}

fn build_date(year: i32, month: i32, day: i32) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()
}

fn date_from_iso(captures: &Captures<'_>) -> Option<FoundDate> {
    if captures.get(2)?.as_str() != captures.get(4)?.as_str() {
        return None;
    }
    let date = build_date(
        capture_year(captures, 1)?,
        capture_number(captures, 3)?,
        capture_number(captures, 5)?,
    )?;
    Some(FoundDate::from_certain(date, captures.get(0)?.range()))
}

fn date_from_numeric(captures: &Captures<'_>) -> Option<FoundDate> {
    let separator = captures.get(2)?.as_str();
    if separator != captures.get(4)?.as_str() {
        return None;
    }
    let (first, second, year) =
        (capture_number(captures, 1)?, capture_number(captures, 3)?, capture_year(captures, 5)?);
    let day_first = build_date(year, second, first);
    let (slashes, points) = (separator == "/", separator == ".");
    // Few write the month first with points.
    let month_first = day_first.filter(|_| points).or_else(|| build_date(year, first, second));
    day_first.or(month_first)?;
    let range = captures.get(0)?.start()..captures.get(5)?.end();
    Some(FoundDate { day_first, month_first, slashes, points, range })
}

fn parse_day_month(captures: &Captures<'_>) -> Option<FoundDate> {
    let month = parse_month(captures.get(2)?.as_str())?;
    let date = build_date(
        capture_year(captures, 3)?,
        i32::from(u8::from(month)),
        capture_number(captures, 1)?,
    )?;
    Some(FoundDate::from_certain(date, captures.get(0)?.range()))
}

fn parse_month_day(captures: &Captures<'_>) -> Option<FoundDate> {
    let month = parse_month(captures.get(1)?.as_str())?;
    let date = build_date(
        capture_year(captures, 3).or_else(|| capture_year(captures, 4))?,
        i32::from(u8::from(month)),
        capture_number(captures, 2)?,
    )?;
    Some(FoundDate::from_certain(date, captures.get(0)?.range()))
}

fn parse_year_first(captures: &Captures<'_>) -> Option<FoundDate> {
    let day_last = captures.get(4).is_some();
    let (month, day) = if day_last { (4, 5) } else { (3, 2) };
    let month = parse_month(captures.get(month)?.as_str())?;
    let date = build_date(
        capture_year(captures, 1)?,
        i32::from(u8::from(month)),
        capture_number(captures, day)?,
    )?;
    Some(FoundDate::from_certain(date, captures.get(0)?.range()))
}

/// Reads `YYYY-MM-DD`, the form of the extracted data.
pub fn parse_iso(text: &str) -> Option<Date> {
    let (year, rest) = text.split_at_checked(4)?;
    let (month, day) = rest.strip_prefix('-')?.split_once('-')?;
    // Numbers may have signs, days have none: `2024-+3-05`.
    let is_plain = [year, month, day].concat().bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || month.len() != 2 || day.len() != 2 {
        return None;
    }
    build_date(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)
}

/// Reads a date of eight digits and nothing else, as ISO 8601 allows: `20260815`.
pub fn parse_compact(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = text.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2)?;
    let year = year.parse().ok().filter(|year| (1900..2100).contains(year))?;
    build_date(year, month.parse().ok()?, day.parse().ok()?)
}

/// Writes a date in ISO 8601: `YYYY-MM-DD`.
pub fn to_iso(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_a_date_only_if_they_name_a_day() {
        for (text, expected) in [
            ("20260815", Some("2026-08-15")),
            ("20240229", Some("2024-02-29")),
            ("20230229", None),
            ("20261508", None),
            ("15082026", None),
            ("99991231", None),
            ("+2026815", None),
            ("2026081", None),
            ("202608150", None),
        ] {
            assert_eq!(parse_compact(text).map(to_iso).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn dates_are_read_in_every_notation() {
        for (text, order, expected) in [
            ("2016-09-12", DayMonthOrder::DayFirst, Some("2016-09-12")),
            ("12.09.2016", DayMonthOrder::MonthFirst, Some("2016-09-12")),
            ("23.08.15", DayMonthOrder::DayFirst, Some("2015-08-23")),
            ("23.08.95", DayMonthOrder::DayFirst, Some("1995-08-23")),
            ("10/06/2018", DayMonthOrder::DayFirst, Some("2018-06-10")),
            ("10/06/2018", DayMonthOrder::MonthFirst, Some("2018-10-06")),
            ("10/19/2018", DayMonthOrder::DayFirst, Some("2018-10-19")),
            ("17-11-2013", DayMonthOrder::DayFirst, Some("2013-11-17")),
            ("14. März 2019", DayMonthOrder::DayFirst, Some("2019-03-14")),
            ("9. Mai 2019", DayMonthOrder::DayFirst, Some("2019-05-09")),
            ("26 april 2019", DayMonthOrder::DayFirst, Some("2019-04-26")),
            ("1er août 2021", DayMonthOrder::DayFirst, Some("2021-08-01")),
            ("5 de enero de 2020", DayMonthOrder::DayFirst, Some("2020-01-05")),
            ("August 9 , 2016", DayMonthOrder::DayFirst, Some("2016-08-09")),
            ("Sept. 12, 2021", DayMonthOrder::DayFirst, Some("2021-09-12")),
            ("2024-03-12T10:44:18", DayMonthOrder::DayFirst, Some("2024-03-12")),
            ("12-Mar-24", DayMonthOrder::DayFirst, Some("2024-03-12")),
            ("Mar17'24 14:40", DayMonthOrder::DayFirst, Some("2024-03-17")),
            ("Mar 17 24", DayMonthOrder::DayFirst, None),
            ("12/Mar/2024", DayMonthOrder::MonthFirst, Some("2024-03-12")),
            ("2024. gada 14. marts", DayMonthOrder::DayFirst, Some("2024-03-14")),
            ("2024. május 21.", DayMonthOrder::DayFirst, Some("2024-05-21")),
            ("2024 m. rugsėjo 7 d.", DayMonthOrder::DayFirst, Some("2024-09-07")),
            ("3. února 2024", DayMonthOrder::DayFirst, Some("2024-02-03")),
            ("3. maaliskuuta 2024", DayMonthOrder::DayFirst, Some("2024-03-03")),
            ("3 Μαΐου 2024", DayMonthOrder::DayFirst, Some("2024-05-03")),
            ("3 май 2024", DayMonthOrder::DayFirst, Some("2024-05-03")),
            ("3 Ağustos 2024", DayMonthOrder::DayFirst, Some("2024-08-03")),
            ("3 Kasım 2024", DayMonthOrder::DayFirst, Some("2024-11-03")),
            ("2024 Stück 14", DayMonthOrder::DayFirst, None),
            ("31.02.2019", DayMonthOrder::DayFirst, None),
            ("00.12.2014-1", DayMonthOrder::DayFirst, None),
            ("1.2.3", DayMonthOrder::DayFirst, None),
            ("7.12.03.2014", DayMonthOrder::DayFirst, None),
            ("12.03.2014.5", DayMonthOrder::DayFirst, None),
            ("11/09/2024/EX", DayMonthOrder::DayFirst, None),
            ("ORD #62 -REG #27- 18/09/2019 16:35", DayMonthOrder::DayFirst, Some("2019-09-18")),
            ("23/07/201914:52", DayMonthOrder::DayFirst, Some("2019-07-23")),
            ("12 Stück 14", DayMonthOrder::DayFirst, None),
            ("Page 1 of 2014", DayMonthOrder::DayFirst, None),
        ] {
            let found = find_dates(text);
            let date = found.first().and_then(|found| found.date_under(order));
            assert_eq!(date.map(to_iso).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn amounts_do_not_look_like_dates_before_the_forms_are_tried_and_dates_of_numbers_do() {
        for text in ["12.09.2016", "2016-09-12", "10 / 6 / 2018", "23/07/201914:52", "1.2.3"] {
            assert!(has_short_group(text), "{text}");
        }
        for text in ["1.234.567,89", "2 x 12.50 = 25.00 EUR", "1,200.00 3.50", "RE-2024-0815"] {
            assert!(!has_short_group(text), "{text}");
        }
    }

    #[test]
    fn no_name_of_a_month_is_passed_over_before_the_forms_are_tried() {
        for name in MONTHS.iter().chain(&NAMES).copied().flatten() {
            for text in [
                format!("Rng1.{name}"),
                name.to_uppercase(),
                format!("€{name}"),
                format!("3rd{name}"),
            ] {
                assert!(may_name_month(&text), "{text}");
            }
        }
        for text in
            ["", "Ja n", "12.50 EUR", "Invoice no. 4711", "Qty Price Total", "Lubmay 1.234,50 €"]
        {
            assert!(!may_name_month(text), "{text}");
        }
    }

    #[test]
    fn of_two_forms_that_share_digits_the_first_form_counts() {
        for (text, expected) in [
            ("5 May 12, 2014", vec!["2012-05-05"]),
            ("1.2.2014 3.4.2015", vec!["2014-02-01", "2015-04-03"]),
            ("3 May 2014 - 2014-05-04", vec!["2014-05-03", "2014-05-04"]),
        ] {
            let found = find_dates(text).into_iter().filter_map(|date| date.day_first);
            assert_eq!(found.map(to_iso).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn a_period_is_two_dates() {
        assert_eq!(find_dates("01.07.2016 - 30.09.2016").len(), 2);
        assert_eq!(find_dates("01.08.16-31.08.16").len(), 2);
    }

    #[test]
    fn one_unambiguous_date_settles_the_order_of_the_others() {
        let dates = find_dates("10/06/2018 and 10/19/2018");
        assert_eq!(infer_order(dates.iter()), Some(DayMonthOrder::MonthFirst));
        for (text, order) in [
            ("10/06/2018", None),
            ("19/10/2018 10/06/2018", Some(DayMonthOrder::DayFirst)),
            ("19/10/2018 10/19/2018", Some(DayMonthOrder::DayFirst)),
            ("19/10/2018 10/19/2018 10/20/2018", Some(DayMonthOrder::MonthFirst)),
        ] {
            assert_eq!(infer_order(find_dates(text).iter()), order, "{text}");
        }
    }

    #[test]
    fn a_date_is_ambiguous_if_both_orders_make_another_day_of_it() {
        for (text, is_ambiguous, slashes) in [
            ("10/06/2018", true, true),
            ("10-06-2018", true, false),
            ("10/10/2018", false, true),
            ("10/19/2018", false, true),
            ("10.06.2018", false, false),
            ("10.19.2018", false, false),
            ("10 June 2018", false, false),
        ] {
            let date = find_dates(text).remove(0);
            assert_eq!((date.is_ambiguous(), date.slashes), (is_ambiguous, slashes), "{text}");
        }
    }

    #[test]
    fn the_form_of_the_data_reads_back() {
        assert_eq!(parse_iso("2024-02-29").map(to_iso).as_deref(), Some("2024-02-29"));
        for text in
            ["2023-02-29", "2024-2-09", "2024-02-9", "2024-02", "2024-+3-05", "+024-03-05", ""]
        {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }
}
