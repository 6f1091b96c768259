//! Numbers as written: `1.234,56`, `1,234.56`, `1 234,56`, `1'234.56`, `1,23,456.00`, `-5`, `5-`,
//! with a currency or percent sign attached or beside. Money is negative in brackets as well, before `CR`,
//! behind `./.`, and beside a sign that stands alone with it: `( 5.00 )`, `5.00 CR`, `- 5,00`, `5,00 -`.
//!
//! Whether a lone `1.234` is a thousand or a fraction cannot be known from it alone: the document's
//! other numbers decide ([`DecimalSeparator::from_words`]), else three digits after a mark are
//! taken for a group.

use std::ops::Range;

use rust_decimal::Decimal;

use super::currency::{self, CurrencyMark};

/// Which character separates the decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalSeparator {
    /// A comma: `1.234,56`.
    Comma,
    /// A point: `1,234.56`.
    Point,
}

/// A number found among words.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundNumber {
    /// The exact value of the number.
    pub value: Decimal,
    /// Digits after the decimal mark.
    pub decimals: usize,
    /// Followed by a percent sign.
    pub percent: bool,
    /// How its currency is printed beside the number, if it is.
    pub mark: Option<CurrencyMark>,
    /// The words it is made of, the currency included.
    pub words: Range<usize>,
}

impl FoundNumber {
    /// Whether it looks like money: two decimals or a currency, and no percentage.
    pub fn is_money(&self) -> bool {
        !self.percent && (self.decimals == 2 || self.mark.is_some())
    }

    /// The code of the currency beside the number, of several with one sign the usual
    /// one.
    pub fn currency(&self) -> Option<&'static str> {
        self.mark.and_then(CurrencyMark::usual_code)
    }
}

/// Whether a text is digits with separators, and nothing else.
fn is_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| matches!(c, '0'..='9' | '.' | ',' | '\'' | '’' | '\u{a0}' | '\u{202f}'))
}

/// `.94`: tills of the United States print no nought before cents. With any other count of digits it is no
/// amount, and behind digits a piece of another number.
fn lone_cents(text: &str) -> Option<String> {
    let cents = text.strip_prefix('.')?;
    let two = cents.len() == 2 && cents.chars().all(|c| c.is_ascii_digit());
    two.then(|| format!("0{text}"))
}

fn ends_in_digit(word: &str) -> bool {
    word.ends_with(|c: char| c.is_ascii_digit())
}

/// The longest number that is read, in digits; what is longer is an identifier.
const MAX_DIGITS: usize = 20;

impl DecimalSeparator {
    /// The mark that most of the unambiguous numbers among `words` use.
    pub fn from_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (mut comma, mut point) = (0_u32, 0_u32);
        for word in words {
            let (digits, _) = split_decoration(word);
            let last = digits.rfind([',', '.']);
            let Some((whole, fraction)) = last.and_then(|at| digits.split_at_checked(at)) else {
                continue;
            };
            let grouped = whole.contains([',', '.']);
            let money = fraction.len() == 3 && whole.len() <= 3;
            let both = grouped && !whole.contains(fraction.get(..1).unwrap_or("."));
            let weight = u32::from(money) + 2 * u32::from(both && grouping_holds(whole));
            if fraction.starts_with(',') { comma += weight } else { point += weight }
        }
        match comma.cmp(&point) {
            std::cmp::Ordering::Greater => Some(Self::Comma),
            std::cmp::Ordering::Less => Some(Self::Point),
            std::cmp::Ordering::Equal => None,
        }
    }

    fn as_char(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Point => '.',
        }
    }
}

/// The digits of a word without sign, brackets and currency, and what was around them.
fn split_decoration(word: &str) -> (&str, NumberDecoration) {
    let mut around = NumberDecoration::default();
    let mut rest = word.trim_matches(['*', ':', ';']);
    if let Some(inner) = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
        (rest, around.brackets) = (inner, true);
    } else if let Some(inner) = rest.strip_suffix("%)") {
        // `(reduced 7%)`: the bracket belongs to another word.
        (rest, around.percent) = (inner, true);
    }
    loop {
        let before = rest;
        rest = rest.trim_start_matches('+');
        // `(-)0.26`: how Indian programs print what is taken off.
        let before_digits = rest.strip_prefix("(-)");
        if let Some(inner) = before_digits.or_else(|| rest.strip_prefix(['-', '−', '–'])) {
            (rest, around.minus) = (inner, true);
        }
        if let Some(inner) = rest.strip_suffix('%') {
            (rest, around.percent) = (inner, true);
        }
        if let Some(inner) = strip_credit(rest) {
            (rest, around.credit) = (inner, true);
        }
        if let Some(inner) = rest.strip_suffix(",-").or_else(|| rest.strip_suffix(",--")) {
            rest = inner;
        } else if let Some(inner) = rest.strip_suffix(['-', '−']) {
            (rest, around.minus) = (inner, true);
        }
        if let Some((mark, inner)) = currency::strip_currency(rest) {
            (rest, around.mark) = (inner, Some(mark));
        } else if let Some(inner) = rest.strip_prefix('R').filter(|inner| is_rand(inner)) {
            rest = inner;
        }
        if rest == before {
            return (without_unit(rest), around);
        }
    }
}

/// Letters of what a price is for.
const MAX_UNIT_LETTERS: usize = 4;

/// `2.050/L`: a price with decimals, and what it is for.
fn without_unit(text: &str) -> &str {
    let price = text.split_once('/').filter(|(price, unit)| {
        let letters = unit.chars().all(|c| c.is_alphabetic());
        let decimals = price.rsplit_once(['.', ',']).is_some_and(|(_, part)| part.len() >= 2);
        letters
            && (1..=MAX_UNIT_LETTERS).contains(&unit.chars().count())
            && decimals
            && is_digits(price)
    });
    price.map_or(text, |(price, _)| price)
}

/// `R1800.00`: what stands behind South Africa's letter for its money has cents; other codes have none.
fn is_rand(amount: &str) -> bool {
    amount.starts_with(|c: char| c.is_ascii_digit()) && currency::has_cents(amount)
}

/// `R14 212.28`: the first group of such an amount.
fn rand_group<'a>(words: &[&'a str], at: usize) -> Option<&'a str> {
    let group = words.get(at)?.strip_prefix('R')?;
    let short = (1..=3).contains(&group.len()) && group.chars().all(|c| c.is_ascii_digit());
    let (rest, ..) = join_groups(words, at + 1).filter(|_| short)?;
    currency::has_cents(&rest).then_some(group)
}

#[derive(Debug, Clone, Copy, Default)]
struct NumberDecoration {
    minus: bool,
    brackets: bool,
    credit: bool,
    percent: bool,
    mark: Option<CurrencyMark>,
}

/// Whether the separators of a whole part stand where groups end: `1.234.567`, `12,34,567`.
fn grouping_holds(whole: &str) -> bool {
    let separators = [',', '.', '\'', '’', '\u{a0}', '\u{202f}', ' '];
    let groups: Vec<&str> = whole.split(separators).collect();
    let Some(((first, last), middle)) = groups
        .split_first()
        .and_then(|(first, rest)| rest.split_last().map(|(last, mid)| ((first, last), mid)))
    else {
        return true;
    };
    let same = whole.chars().filter(|c| separators.contains(c)).collect::<Vec<_>>();
    let one_kind = same.windows(2).all(|pair| pair.first() == pair.last());
    let middle_holds = middle.iter().all(|g| g.len() == 3) || middle.iter().all(|g| g.len() == 2);
    one_kind && (1..=3).contains(&first.len()) && last.len() == 3 && middle_holds
}

/// Reads digits with separators.
fn parse_digits(digits: &str, mark: Option<DecimalSeparator>) -> Option<(Decimal, usize)> {
    if digits.chars().filter(char::is_ascii_digit).count() > MAX_DIGITS {
        return None;
    }
    let Some((at, last)) = digits.char_indices().rfind(|(_, c)| matches!(c, ',' | '.')) else {
        return grouping_holds(digits).then(|| parse_decimal(digits, "")).flatten();
    };
    let (whole, fraction) = digits.split_at_checked(at)?;
    let fraction = fraction.get(1..)?;
    let again = whole.contains(last);
    let fits_group = grouping_holds(digits);
    let may_be_group = whole != "0" && mark.is_none_or(|mark| mark.as_char() != last);
    match again || (fits_group && may_be_group) {
        true if fits_group => parse_decimal(digits, ""),
        false if !fraction.is_empty() && fraction.len() <= 6 && grouping_holds(whole) => {
            parse_decimal(whole, fraction)
        }
        _ => None,
    }
}

fn parse_decimal(whole: &str, fraction: &str) -> Option<(Decimal, usize)> {
    if !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let mut text: String = whole.chars().filter(char::is_ascii_digit).collect();
    text.push('.');
    text.push_str(fraction);
    let value = text.trim_end_matches('.').parse().ok()?;
    Some((value, fraction.len()))
}

/// Every number among `words`, in order. Dates, times and identifiers are not numbers.
pub fn find_numbers(words: &[&str], mark: Option<DecimalSeparator>) -> Vec<FoundNumber> {
    let mut found: Vec<FoundNumber> = Vec::new();
    let mut end = 0;
    for at in 0..words.len() {
        if at >= end
            && let Some(amount) = read_number_at(words, at, mark)
        {
            end = amount.words.end;
            found.push(amount);
        }
    }
    found
}

/// The one number that `text` is, if it is nothing else.
pub fn parse_number(text: &str, mark: Option<DecimalSeparator>) -> Option<Decimal> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = find_numbers(&words, mark).into_iter().next()?;
    (first.words == (0..words.len())).then_some(first.value)
}

/// `106 680`: words that are nothing but groups of digits are one whole number, where whoever asks knows
/// that nothing else stands beside it.
pub fn grouped_whole(words: &[&str]) -> Option<FoundNumber> {
    let (first, rest) = words.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let digits = words.iter().all(|word| word.chars().all(|c| c.is_ascii_digit()));
    let groups = rest.iter().all(|word| word.len() == 3);
    let fits = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let value = (digits && groups && fits).then(|| words.concat().parse().ok())??;
    Some(FoundNumber { value, decimals: 0, percent: false, mark: None, words: 0..words.len() })
}

/// As [`grouped_whole`], also with a unit behind it: `1 204 kWh` in a column of quantities.
pub fn grouped_quantity(words: &[&str]) -> Option<FoundNumber> {
    let unit = words.split_last().filter(|(last, _)| is_unit(last));
    grouped_whole(unit.map_or(words, |(_, groups)| groups))
}

/// A few letters that are no currency, as `kWh` and `m³`.
fn is_unit(word: &str) -> bool {
    let letters = word.chars().all(|c| c.is_alphabetic() || matches!(c, '²' | '³'));
    letters && word.chars().count() <= 4 && currency_beside(word).is_none()
}

fn read_number_at(
    words: &[&str],
    start: usize,
    mark: Option<DecimalSeparator>,
) -> Option<FoundNumber> {
    // A sign and a currency at most stand before the digits.
    words.iter().skip(start).take(3).find(|word| word.contains(|c: char| c.is_ascii_digit()))?;
    if words.get(start).is_some_and(|word| *word == "(") {
        return read_bracketed(words, start, mark);
    }
    let (at, around) = read_prefix(words, start);
    let word = words.get(at)?;
    // `(19 %)`, `(41,27 €)`: bracket and sign belong to two words.
    let closing = words.get(at + 1).filter(|_| word.starts_with('('));
    let enclosed = closing.and_then(|next| currency_beside(next.strip_suffix(')')?));
    let is_opened = enclosed.is_some() || closing.is_some_and(|next| next.starts_with("%)"));
    let (digits, own) =
        split_decoration(if is_opened { word.trim_start_matches('(') } else { word });
    let digits = rand_group(words, at).unwrap_or(digits);
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    let cents = lone_cents(digits).filter(|_| !before.is_some_and(|word| ends_in_digit(word)));
    if !is_digits(digits) && cents.is_none() {
        return None;
    }
    let mut text = cents.unwrap_or_else(|| digits.trim_end_matches('.').to_owned());
    let (mut end, mut last) = (at + 1, own);
    // Groups set apart by spaces: only if the whole then ends in decimals.
    let short = digits.len() <= 3 && digits.chars().all(|c| c.is_ascii_digit());
    if let Some((joined, next, after)) =
        join_groups(words, at + 1).filter(|_| short && !own.percent)
    {
        text.push_str(&joined);
        (end, last) = (next, after);
    }
    let (value, decimals) = parse_digits(&text, mark)?;
    let mut percent = own.percent || last.percent;
    let mut beside = own.mark.or(last.mark).or(around.mark);
    let mut credit = own.credit || last.credit;
    if let Some(next) = words.get(end) {
        if next.trim_end_matches([')', ':', ',', ';']) == "%" {
            (percent, end) = (true, end + 1);
        } else if enclosed.is_some() {
            (beside, end) = (enclosed, end + 1);
        } else if let (None, Some(after)) = (beside, currency_beside(next))
            && (decimals == 2 || !currency::is_also_word(next))
        {
            (beside, end) = (Some(after), end + 1);
        }
    }
    let is_money = !percent && (decimals == 2 || beside.is_some());
    let behind = read_sign_behind(words, end, is_money);
    if let Some((next, after)) = behind {
        (credit, end, beside) = (true, next, beside.or(after));
    }
    let found = FoundNumber { value, decimals, percent, mark: beside, words: start..end };
    let in_brackets = own.brackets || enclosed.is_some();
    let for_money = in_brackets || credit || around.credit;
    let negative = around.minus || own.minus || last.minus || found.is_money() && for_money;
    Some(if negative { FoundNumber { value: -value, ..found } } else { found })
}

/// `( 464,74 )`: money in brackets that stand apart, and the currency behind them.
fn read_bracketed(
    words: &[&str],
    start: usize,
    mark: Option<DecimalSeparator>,
) -> Option<FoundNumber> {
    let inner = read_number_at(words, start + 1, mark).filter(FoundNumber::is_money)?;
    let end = inner.words.end + 1;
    words.get(end - 1).filter(|next| **next == ")")?;
    let after = words.get(end).and_then(|next| currency_beside(next));
    let after = after.filter(|_| inner.mark.is_none());
    let words = start..end + usize::from(after.is_some());
    Some(FoundNumber { value: -inner.value.abs(), mark: inner.mark.or(after), words, ..inner })
}

/// A mark after an amount that negates it, with the currency after the mark: `CR`, or after money a
/// sign at the end.
fn read_sign_behind(
    words: &[&str],
    at: usize,
    is_money: bool,
) -> Option<(usize, Option<CurrencyMark>)> {
    let sign = words.get(at)?;
    let after = words.get(at + 1).and_then(|next| currency_beside(next));
    let end = at + 1 + usize::from(after.is_some());
    let ends = is_money && end == words.len() && matches!(*sign, "-" | "−" | "(-)" | DEDUCTED);
    (ends || strip_credit(sign) == Some("")).then_some((end, after))
}

/// The sign and the currency that stand alone before digits, and where the digits are.
fn read_prefix(words: &[&str], start: usize) -> (usize, NumberDecoration) {
    let mut at = start;
    let mut around = NumberDecoration::default();
    // A sign in front of a sentence is none.
    let is_signed = start == 0 && is_minus(words.first()) && words.len() <= MAX_SIGNED_WORDS;
    while let Some(word) = words.get(at) {
        if is_minus(Some(word)) && (at > start || is_signed) {
            around.minus = true;
        } else if *word == DEDUCTED {
            around.credit = true;
        } else if let Some(found) = word.strip_prefix(['-', '−']).and_then(currency_beside) {
            (around.minus, around.mark) = (true, Some(found));
        } else if let Some(found) = currency_beside(word)
            && (!currency::is_also_word(word)
                || words.get(at + 1).is_some_and(|next| is_money_word(next)))
        {
            around.mark = Some(found);
        } else {
            break;
        }
        at += 1;
    }
    (at, around)
}

/// The mark behind an amount in the customer's favour.
const CREDIT: &str = "CR";

/// The mark before a deducted amount in German typewriting (DIN 5008).
const DEDUCTED: &str = "./.";

/// Removes the trailing credit mark of an amount.
pub fn strip_credit(text: &str) -> Option<&str> {
    let plain = text.strip_suffix('.').unwrap_or(text);
    let (amount, mark) = plain.split_at_checked(plain.len().checked_sub(CREDIT.len())?)?;
    mark.eq_ignore_ascii_case(CREDIT).then_some(amount)
}

/// Words of an amount whose sign stands alone before it: the sign, a currency, groups, the mark behind.
const MAX_SIGNED_WORDS: usize = 4;

fn is_minus(word: Option<&&str>) -> bool {
    matches!(word, Some(&("-" | "−" | "–")))
}

/// The currency that a word beside a number is. Crowns' `kr` is left to whoever reads the page: it says
/// of none of its currencies that it is meant.
fn currency_beside(word: &str) -> Option<CurrencyMark> {
    CurrencyMark::from_word(word).filter(|mark| mark.usual_code().is_some())
}

/// Whether a word is a number of two decimals, or a price for a unit.
fn is_money_word(word: &str) -> bool {
    let (digits, _) = split_decoration(word);
    let price = without_unit(word) != word;
    digits.starts_with(|c: char| c.is_ascii_digit()) && (price || currency::has_cents(digits))
}

/// `234 567,89` after a first group, or `234 567 Ft`: whole numbers are parted so where a currency
/// follows.
fn join_groups(words: &[&str], start: usize) -> Option<(String, usize, NumberDecoration)> {
    let mut text = String::new();
    let mut last = NumberDecoration::default();
    for (at, word) in words.iter().enumerate().skip(start) {
        let (digits, around) = split_decoration(word);
        let (whole, fraction) = digits.split_once([',', '.']).unwrap_or((digits, ""));
        if whole.len() != 3 || !whole.chars().all(|c| c.is_ascii_digit()) {
            let money = currency::exact_currency(word).is_some() && !currency::is_also_word(word);
            return money.then_some((text, at, last));
        }
        last = around;
        text.push(' ');
        text.push_str(digits);
        if (1..=2).contains(&fraction.len()) {
            return Some((text, at + 1, around));
        }
        if !fraction.is_empty() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, mark: Option<DecimalSeparator>) -> Option<String> {
        parse_number(text, mark).map(|value| value.to_string())
    }

    #[test]
    fn groups_of_digits_that_stand_alone_are_one_number() {
        for (text, expected) in [
            ("106 680", Some("106680")),
            ("1 106 680", Some("1106680")),
            ("106", None),
            ("0106 680", None),
            ("012 680", None),
            ("106 68", None),
            ("10 100 Ft", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = grouped_whole(&words).map(|amount| amount.value.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn groups_before_a_unit_are_one_quantity_and_before_a_currency_or_a_word_none() {
        for (text, expected) in [
            ("1 204 kWh", Some("1204")),
            ("12 000 m³", Some("12000")),
            ("1 204", Some("1204")),
            ("10 100 Ft", None),
            ("1 204 EUR", None),
            ("1 204 Schrauben", None),
            ("204 kWh", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = grouped_quantity(&words).map(|amount| amount.value.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_in_every_notation() {
        use DecimalSeparator::{Comma, Point};
        for (text, mark, expected) in [
            ("1.234,56", None, Some("1234.56")),
            ("1,234.56", None, Some("1234.56")),
            ("1 234,56 €", None, Some("1234.56")),
            ("1\u{202f}234,56€", None, Some("1234.56")),
            ("1'234.56", None, Some("1234.56")),
            ("CHF 1’234’567.50", None, Some("1234567.50")),
            ("1,23,456.00", None, Some("123456.00")),
            ("12 345 678,90 NOK", None, Some("12345678.90")),
            ("$6.27", None, Some("6.27")),
            ("€ -7,46", None, Some("-7.46")),
            ("R1800.00", None, Some("1800.00")),
            ("R14 212.28", None, Some("14212.28")),
            ("R12", None, None),
            ("1234 567,89", None, None),
            ("12 pieces", None, None),
            ("19 %", None, Some("19")),
            ("106 680 Ft", None, Some("106680")),
            ("1 106 680 Ft", None, Some("1106680")),
            ("106 680", None, None),
            ("0,1347", None, Some("0.1347")),
            ("0.125", None, Some("0.125")),
            ("318,0000", None, Some("318.0000")),
            ("1.234", None, Some("1234")),
            ("1.234", Some(Comma), Some("1234")),
            ("1.234", Some(Point), Some("1.234")),
            ("1,234", Some(Point), Some("1234")),
            ("34,4538", Some(Comma), Some("34.4538")),
            ("1.234.567", Some(Point), Some("1234567")),
            ("1.2345.678", None, None),
            ("100", None, Some("100")),
            ("12345678901234567890", None, Some("12345678901234567890")),
            ("07.04.2019", None, None),
            ("1.2.3", None, None),
            ("1.23,456", None, None),
            ("08:30", None, None),
            ("DE123", None, None),
            ("", None, None),
            ("4111111111111111111111111", None, None),
        ] {
            assert_eq!(value(text, mark).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_sign_is_read_before_behind_and_around_its_amount() {
        for (text, expected) in [
            ("(-)0.26", Some("-0.26")),
            ("€ - 7,46", Some("-7.46")),
            ("- 7,46", Some("-7.46")),
            ("- € 7,46", Some("-7.46")),
            ("- 7,46 of a longer text", None),
            ("(7,46)", Some("-7.46")),
            ("(7)", Some("7")),
            ("(1 234,56)", None),
            ("7,46 CR", Some("-7.46")),
            ("7,46CR", Some("-7.46")),
            ("7 CR", Some("7")),
            ("7,46 cr", Some("-7.46")),
            ("7,46 Cr. EUR", Some("-7.46")),
            ("£7.46CR", Some("-7.46")),
            ("7,46 -", Some("-7.46")),
            ("7,46 - EUR", Some("-7.46")),
            ("7,46 EUR -", Some("-7.46")),
            ("7,46 (-)", Some("-7.46")),
            ("7 -", None),
            ("( 7,46 )", Some("-7.46")),
            ("( £7.46 )", Some("-7.46")),
            ("( 7,46 ) EUR", Some("-7.46")),
            ("( 7,46", None),
            ("( 7 )", None),
            ("-GBP 7.46", Some("-7.46")),
            ("-GBP7.46", Some("-7.46")),
            ("./. 7,46 EUR", Some("-7.46")),
            ("./. 3 %", Some("3")),
            ("-1 234,56", Some("-1234.56")),
            ("1 234,56-", Some("-1234.56")),
            ("-318,62 €", Some("-318.62")),
            ("100,00-", Some("-100.00")),
            ("(41,27 €)", Some("-41.27")),
            ("50,-", Some("50")),
        ] {
            assert_eq!(value(text, None).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_weight_in_kilograms_is_no_money() {
        for (words, money) in
            [(["14,220", "KGS"], false), (["14,220.00", "KGS"], true), (["14,220", "EUR"], true)]
        {
            let found = find_numbers(&words, Some(DecimalSeparator::Point));
            assert_eq!(found.iter().any(FoundNumber::is_money), money, "{words:?}");
        }
    }

    #[test]
    fn cents_need_no_nought_and_prices_name_their_unit() {
        for (text, expected) in [
            // Cents alone, and nothing of another number.
            (".94", Some("0.94")),
            ("-.94", Some("-0.94")),
            ("Rs.94", Some("94")),
            (".5", None),
            (".505", None),
            ("1 .94", None),
            ("2.050/L", Some("2.050")),
            ("12/A", None),
            ("2024/B", None),
        ] {
            let found = parse_number(text, Some(DecimalSeparator::Point));
            assert_eq!(found.map(|value| value.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_found_among_words() {
        let words: Vec<&str> = "BTW 21% : € 138,52 of 2 Stk. 19 % EUR".split(' ').collect();
        let found = find_numbers(&words, None);
        let seen: Vec<(String, bool, bool)> =
            found.iter().map(|a| (a.value.to_string(), a.percent, a.is_money())).collect();
        let expected = [("21", true, false), ("138.52", false, true), ("2", false, false)];
        for (seen, (value, percent, money)) in seen.iter().zip(expected) {
            assert_eq!(seen, &(value.to_owned(), percent, money));
        }
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn words_are_one_number_only_as_groups_of_one() {
        for (text, expected) in [
            ("19% 119,00", vec!["19%", "119.00"]),
            ("1 234,5%", vec!["1234.5%"]),
            ("12 34 Ft", vec!["12", "34"]),
            ("2 500 kg", vec!["2", "500"]),
            ("1,5 234,00", vec!["1.5", "234.00"]),
            ("12,00 - 15,00", vec!["12.00", "15.00"]),
            ("12,00 - a day", vec!["12.00"]),
            ("less ./. 12,00", vec!["-12.00"]),
            ("due ( 12,00 ) now", vec!["-12.00"]),
            ("due -EUR 12,00", vec!["-12.00"]),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = find_numbers(&words, None).into_iter();
            let seen = found.map(|it| format!("{}{}", it.value, if it.percent { "%" } else { "" }));
            assert_eq!(seen.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn two_decimals_or_a_currency_make_money_and_a_percent_sign_none() {
        for (text, money) in
            [("12.50", true), ("EUR 5", true), ("5", false), ("12.505", false), ("12.50 %", false)]
        {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(find_numbers(&words, None)[0].is_money(), money, "{text}");
        }
    }

    #[test]
    fn a_percentage_is_one_in_brackets_too() {
        for text in ["VAT (19 %)", "VAT (19%)", "VAT (reduced 19%)", "19 %:", "19%"] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = find_numbers(&words, None);
            let seen: Vec<(String, bool)> =
                found.iter().map(|it| (it.value.to_string(), it.percent)).collect();
            assert_eq!(seen, [("19".to_owned(), true)], "{text}");
        }
    }

    #[test]
    fn a_currency_that_is_also_a_word_counts_only_beside_an_amount() {
        for (text, expected) in [
            ("TRY 1.234,56", Some("TRY")),
            ("12.50 RM", Some("MYR")),
            ("ALL 5 ITEMS", None),
            ("Price for 2 TOP quality", None),
            ("RM 12", None),
            ("USD 12", Some("USD")),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = find_numbers(&words, None);
            assert_eq!(found.first().unwrap().currency(), expected, "{text}");
        }
    }

    #[test]
    fn the_documents_own_numbers_tell_its_decimal_mark() {
        for (text, mark) in [
            ("9,90 198,00 1.5", Some(DecimalSeparator::Comma)),
            ("1,980.00 5", Some(DecimalSeparator::Point)),
            ("07.04.2019 19", None),
            ("1.234 5.678", None),
        ] {
            assert_eq!(DecimalSeparator::from_words(text.split(' ')), mark, "{text}");
        }
    }
}
