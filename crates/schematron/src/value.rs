//! Values of XPath: items, their types, casts between them, comparison and arithmetic.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::decimal::DecimalNumber;
use crate::expression::{ArithmeticOperator, AtomicType, Comparison};
use crate::tree::{NodeList, NodeNumber};

/// Why an expression has no value. The codes are those of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// `XPTY0004`: a value of another type, or more values than one.
    Type,
    /// `FORG0001`: a text that is no value of the type it is cast to.
    Cast,
    /// `FORG0006`: a value that is neither true nor false.
    Truth,
    /// `FOAR0001`: division by zero.
    Zero,
    /// `FOAR0002`: a number longer than is computed with.
    Overflow,
    /// `FORX0002`: a pattern that is no regular expression.
    Pattern,
    /// A variable that depends on itself, or calls nested too deep.
    Recursion,
    /// Over the budget of steps.
    Budget,
}

impl EvaluationError {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Type => "XPTY0004",
            Self::Cast => "FORG0001",
            Self::Truth => "FORG0006",
            Self::Zero => "FOAR0001",
            Self::Overflow => "FOAR0002",
            Self::Pattern => "FORX0002",
            Self::Recursion => "XTDE0640",
            Self::Budget => "budget",
        }
    }
}

/// A value without parts. Texts of the document and of the rules are borrowed.
#[derive(Debug, Clone)]
pub(crate) enum AtomicValue<'a> {
    Text(Cow<'a, str>),
    /// Text of the document, whose type the operation determines.
    Untyped(Cow<'a, str>),
    Boolean(bool),
    Integer(DecimalNumber),
    Decimal(DecimalNumber),
    Double(f64),
    /// Minutes from a fixed day to its begin.
    Date {
        minutes: i64,
    },
}

/// A node or a value.
#[derive(Debug, Clone)]
pub(crate) enum XPathItem<'a> {
    Node(NodeNumber),
    Atomic(AtomicValue<'a>),
}

/// Items in order.
pub(crate) type ItemSequence<'a> = Vec<XPathItem<'a>>;

impl From<bool> for XPathItem<'_> {
    fn from(truth: bool) -> Self {
        Self::Atomic(AtomicValue::Boolean(truth))
    }
}

impl From<usize> for XPathItem<'_> {
    fn from(count: usize) -> Self {
        Self::Atomic(AtomicValue::Integer(count.into()))
    }
}

impl<'a> From<Cow<'a, str>> for XPathItem<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Atomic(AtomicValue::Text(text))
    }
}

/// Nodes as items.
pub(crate) fn node_items<'a>(nodes: NodeList) -> ItemSequence<'a> {
    nodes.into_iter().map(XPathItem::Node).collect()
}

/// The nodes among which there are no values.
pub(crate) fn nodes_of(items: &[XPathItem<'_>]) -> Result<NodeList, EvaluationError> {
    let nodes = items.iter().map(|item| match item {
        XPathItem::Node(node) => Ok(*node),
        XPathItem::Atomic(_) => Err(EvaluationError::Type),
    });
    nodes.collect()
}

/// Nodes, each once.
pub(crate) fn in_document_order(
    items: ItemSequence<'_>,
) -> Result<ItemSequence<'_>, EvaluationError> {
    let mut nodes = nodes_of(&items)?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(node_items(nodes))
}

/// The spaces of XML.
pub(crate) fn is_xml_space(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '\r')
}

impl<'a> AtomicValue<'a> {
    /// Its text.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) | Self::Untyped(text) => text,
            Self::Boolean(truth) => Cow::Borrowed(if truth { "true" } else { "false" }),
            Self::Integer(number) | Self::Decimal(number) => Cow::Owned(number.to_string()),
            Self::Double(number) => Cow::Owned(double_text(number)),
            Self::Date { minutes } => Cow::Owned(date_text(minutes)),
        }
    }

    /// Whether it is true: a number but zero, a text with signs.
    ///
    /// # Errors
    /// A date is neither.
    pub(crate) fn truth(&self) -> Result<bool, EvaluationError> {
        match self {
            Self::Text(text) | Self::Untyped(text) => Ok(!text.is_empty()),
            Self::Boolean(truth) => Ok(*truth),
            Self::Integer(number) | Self::Decimal(number) => Ok(!number.is_zero()),
            Self::Double(number) => Ok(*number != 0.0 && !number.is_nan()),
            Self::Date { .. } => Err(EvaluationError::Truth),
        }
    }

    /// As a double, where it is a number or untyped.
    ///
    /// # Errors
    /// Another type, or a text that is no number.
    pub(crate) fn to_double(&self) -> Result<f64, EvaluationError> {
        match self {
            Self::Integer(number) | Self::Decimal(number) => Ok(number.to_double()),
            Self::Double(number) => Ok(*number),
            Self::Untyped(text) => parse_double(text).ok_or(EvaluationError::Cast),
            _ => Err(EvaluationError::Type),
        }
    }

    /// As a value of another type.
    ///
    /// # Errors
    /// The text is none of that type, or the types cannot be cast.
    pub(crate) fn cast(self, target: AtomicType) -> Result<Self, EvaluationError> {
        match target {
            AtomicType::Any => Ok(self),
            AtomicType::Text => Ok(Self::Text(self.into_text())),
            AtomicType::Boolean => match &self {
                Self::Text(text) | Self::Untyped(text) => match text.trim_matches(is_xml_space) {
                    "true" | "1" => Ok(Self::Boolean(true)),
                    "false" | "0" => Ok(Self::Boolean(false)),
                    _ => Err(EvaluationError::Cast),
                },
                other => other.truth().map(Self::Boolean),
            },
            AtomicType::Integer => Ok(Self::Integer(self.to_decimal(true)?.truncate())),
            AtomicType::Decimal => Ok(Self::Decimal(self.to_decimal(false)?)),
            AtomicType::Double => match &self {
                Self::Text(text) | Self::Untyped(text) => {
                    parse_double(text).map(Self::Double).ok_or(EvaluationError::Cast)
                }
                Self::Boolean(truth) => Ok(Self::Double(if *truth { 1.0 } else { 0.0 })),
                other => other.to_double().map(Self::Double),
            },
            AtomicType::Date => match self {
                Self::Text(text) | Self::Untyped(text) => {
                    let minutes = parse_date(text.trim_matches(is_xml_space));
                    let date = minutes.map(|minutes| Self::Date { minutes });
                    date.ok_or(EvaluationError::Cast)
                }
                Self::Date { .. } => Ok(self),
                _ => Err(EvaluationError::Type),
            },
        }
    }

    /// As a decimal; `is_whole`: a text has to be that of a whole number.
    fn to_decimal(&self, is_whole: bool) -> Result<DecimalNumber, EvaluationError> {
        match self {
            Self::Text(text) | Self::Untyped(text) => {
                let text = text.trim_matches(is_xml_space);
                let fits = !is_whole || !text.contains('.');
                let number = DecimalNumber::from_text(text).filter(|_| fits);
                number.ok_or(EvaluationError::Cast)
            }
            Self::Boolean(truth) => Ok(i64::from(*truth).into()),
            Self::Integer(number) | Self::Decimal(number) => Ok(number.clone()),
            Self::Double(number) => {
                DecimalNumber::from_double(*number).ok_or(EvaluationError::Overflow)
            }
            Self::Date { .. } => Err(EvaluationError::Type),
        }
    }

    /// The type of a value that is passed to a parameter, converted as the standard says: untyped
    /// text is cast, a decimal becomes a double.
    ///
    /// # Errors
    /// A value of another type.
    pub(crate) fn convert(self, target: AtomicType) -> Result<Self, EvaluationError> {
        match (target, self) {
            (target, value @ Self::Untyped(_)) => value.cast(target),
            (AtomicType::Any, value)
            | (AtomicType::Text, value @ Self::Text(_))
            | (AtomicType::Boolean, value @ Self::Boolean(_))
            | (AtomicType::Integer, value @ Self::Integer(_))
            | (AtomicType::Decimal, value @ (Self::Integer(_) | Self::Decimal(_)))
            | (AtomicType::Date, value @ Self::Date { .. }) => Ok(value),
            (
                AtomicType::Double,
                value @ (Self::Integer(_) | Self::Decimal(_) | Self::Double(_)),
            ) => value.to_double().map(Self::Double),
            _ => Err(EvaluationError::Type),
        }
    }

    /// Whether a general comparison is true of two values: untyped text takes the other's type, or
    /// that of a double beside a number.
    ///
    /// # Errors
    /// Types that cannot be compared; untyped text that is none of the other's type.
    pub(crate) fn is_related(
        &self,
        comparison: Comparison,
        other: &AtomicValue<'_>,
    ) -> Result<bool, EvaluationError> {
        match (self, other) {
            (Self::Untyped(_) | Self::Text(_), AtomicValue::Untyped(_) | AtomicValue::Text(_)) => {
                self.is_comparable(comparison, other)
            }
            (Self::Untyped(text), typed) => {
                let left = AtomicValue::Untyped(Cow::Borrowed(text.as_ref()));
                left.cast(typed.comparison_type())?.is_comparable(comparison, typed)
            }
            (typed, AtomicValue::Untyped(text)) => {
                let right = AtomicValue::Untyped(Cow::Borrowed(text.as_ref()));
                typed.is_comparable(comparison, &right.cast(typed.comparison_type())?)
            }
            (left, right) => left.is_comparable(comparison, right),
        }
    }

    /// The type that untyped text takes beside this value.
    fn comparison_type(&self) -> AtomicType {
        match self {
            Self::Text(_) | Self::Untyped(_) => AtomicType::Text,
            Self::Boolean(_) => AtomicType::Boolean,
            Self::Integer(_) | Self::Decimal(_) | Self::Double(_) => AtomicType::Double,
            Self::Date { .. } => AtomicType::Date,
        }
    }

    /// Whether a comparison is true of two values, untyped text as text.
    ///
    /// # Errors
    /// Types that cannot be compared.
    pub(crate) fn is_comparable(
        &self,
        comparison: Comparison,
        other: &AtomicValue<'_>,
    ) -> Result<bool, EvaluationError> {
        match (self, other) {
            (
                Self::Untyped(left) | Self::Text(left),
                AtomicValue::Untyped(right) | AtomicValue::Text(right),
            ) => Ok(comparison.accepts(left.as_ref().cmp(right.as_ref()))),
            (Self::Boolean(left), AtomicValue::Boolean(right)) => {
                Ok(comparison.accepts(left.cmp(right)))
            }
            (Self::Date { minutes: left }, AtomicValue::Date { minutes: right }) => {
                Ok(comparison.accepts(left.cmp(right)))
            }
            (
                Self::Integer(left) | Self::Decimal(left),
                AtomicValue::Integer(right) | AtomicValue::Decimal(right),
            ) => Ok(comparison.accepts(left.cmp(right))),
            (Self::Untyped(_), _) | (_, AtomicValue::Untyped(_)) => Err(EvaluationError::Type),
            (left, right) => Ok(match left.to_double()?.partial_cmp(&right.to_double()?) {
                Some(order) => comparison.accepts(order),
                // NaN is unequal to everything.
                None => comparison == Comparison::NotEqual,
            }),
        }
    }

    /// The value of an operator on two numbers; untyped text is a double.
    ///
    /// # Errors
    /// Values that are no numbers, division by zero, numbers that are too long.
    pub(crate) fn calculate(
        self,
        operator: ArithmeticOperator,
        other: Self,
    ) -> Result<Self, EvaluationError> {
        let (left, right) = match (&self, &other) {
            (
                Self::Integer(left) | Self::Decimal(left),
                Self::Integer(right) | Self::Decimal(right),
            ) => (left, right),
            _ => {
                let (left, right) = (self.to_double()?, other.to_double()?);
                return calculate_doubles(operator, left, right);
            }
        };
        let result = match operator {
            ArithmeticOperator::Plus => left.plus(right),
            ArithmeticOperator::Minus => left.minus(right),
            ArithmeticOperator::Times => left.times(right),
            ArithmeticOperator::Div => left.divided_by(right).ok_or(EvaluationError::Zero)?,
            ArithmeticOperator::WholeDiv => {
                left.whole_quotient(right).ok_or(EvaluationError::Zero)?
            }
            ArithmeticOperator::Mod => left.remainder(right).ok_or(EvaluationError::Zero)?,
        };
        if result.is_too_long() {
            return Err(EvaluationError::Overflow);
        }
        let is_integer = match operator {
            ArithmeticOperator::WholeDiv => true,
            ArithmeticOperator::Div => false,
            _ => matches!((&self, &other), (Self::Integer(_), Self::Integer(_))),
        };
        Ok(if is_integer { Self::Integer(result) } else { Self::Decimal(result) })
    }
}

fn calculate_doubles<'a>(
    operator: ArithmeticOperator,
    left: f64,
    right: f64,
) -> Result<AtomicValue<'a>, EvaluationError> {
    Ok(AtomicValue::Double(match operator {
        ArithmeticOperator::Plus => left + right,
        ArithmeticOperator::Minus => left - right,
        ArithmeticOperator::Times => left * right,
        ArithmeticOperator::Div => left / right,
        ArithmeticOperator::Mod => left % right,
        ArithmeticOperator::WholeDiv => {
            if right == 0.0 {
                return Err(EvaluationError::Zero);
            }
            let whole = DecimalNumber::from_double((left / right).trunc());
            return whole.map(AtomicValue::Integer).ok_or(EvaluationError::Overflow);
        }
    }))
}

impl Comparison {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// The double of a text in the form of XML Schema.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    match text.trim_matches(is_xml_space) {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        number => {
            let is_number = number.bytes().all(|byte| {
                byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
            });
            is_number.then(|| number.parse().ok()).flatten()
        }
    }
}

/// A double as text: without an exponent from a millionth to a million.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    if number == 0.0 || (1e-6..1e6).contains(&number.abs()) {
        return format!("{number}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    }
}

/// Days from 1 March of the year 0 of the proleptic calendar.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1
}

/// Days of a month.
fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap =
        year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The first minute of an ISO date, with its offset from UTC if it has one.
fn parse_date(text: &str) -> Option<i64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (year, rest) = text.split_once('-')?;
    let (month, rest) = rest.split_once('-')?;
    let (day, zone) = rest.split_at_checked(2)?;
    if !(4..=9).contains(&year.len()) || month.len() != 2 {
        return None;
    }
    let year = if is_negative { -parse_digits(year)? } else { parse_digits(year)? };
    let (month, day) = (parse_digits(month)?, parse_digits(day)?);
    let is_day = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    is_day.then_some(())?;
    Some(days_from_date(year, month, day) * 1440 - parse_offset(zone)?)
}

/// Digits alone, as a number.
fn parse_digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Minutes of an offset from UTC; none is UTC.
fn parse_offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z") {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (parse_digits(hours)?, parse_digits(minutes)?);
    let offset = hours * 60 + minutes;
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    (minutes < 60 && offset <= 14 * 60).then_some(sign * offset)
}

/// The ISO form of a day in UTC.
fn date_text(minutes: i64) -> String {
    let days = minutes.div_euclid(1440);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_the_standard_writes_them() {
        for (number, text) in [
            (57.0, "57"),
            (0.5, "0.5"),
            (1e6, "1.0E6"),
            (1.5e-7, "1.5E-7"),
            (-3.0, "-3"),
            (0.0, "0"),
            (f64::INFINITY, "INF"),
        ] {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn a_date_is_one_of_the_calendar_and_compared_in_utc() {
        for (text, day) in [
            ("2024-02-29", Some("2024-02-29")),
            ("2023-02-29", None),
            ("1900-02-29", None),
            ("2000-02-29", Some("2000-02-29")),
            ("2026-12-31Z", Some("2026-12-31")),
            ("2026-01-01+01:00", Some("2025-12-31")),
            ("2026-01-01-05:00", Some("2026-01-01")),
            ("2026-1-01", None),
            ("20260101", None),
            ("2026-01-01T00:00:00", None),
            ("0001-03-01", Some("0001-03-01")),
        ] {
            assert_eq!(parse_date(text).map(date_text).as_deref(), day, "{text}");
        }
    }
}
