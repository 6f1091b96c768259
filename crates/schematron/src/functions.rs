//! The functions of XPath that work on values alone.

use std::borrow::Cow;

use crate::decimal::DecimalNumber;
use crate::expression::{ArithmeticOperator, AtomicType, Comparison, CoreFunction};
use crate::pattern_cache::PatternCache;
use crate::pattern_text::translate_replacement;
use crate::value::{AtomicValue, EvaluationError, ItemSequence, XPathItem, is_xml_space};

/// The values of one argument.
pub(crate) type ArgumentValues<'a> = Vec<AtomicValue<'a>>;
type Called<'a> = Result<ItemSequence<'a>, EvaluationError>;

/// Arguments in their order; one that is absent is empty.
pub(crate) struct CallArguments<'a> {
    values: std::vec::IntoIter<ArgumentValues<'a>>,
}

impl<'a> CallArguments<'a> {
    pub(crate) fn new(values: Vec<ArgumentValues<'a>>) -> Self {
        Self { values: values.into_iter() }
    }

    fn next_values(&mut self) -> ArgumentValues<'a> {
        self.values.next().unwrap_or_default()
    }

    /// At most one value.
    fn next_value(&mut self) -> Result<Option<AtomicValue<'a>>, EvaluationError> {
        let mut values = self.next_values();
        if values.len() > 1 {
            return Err(EvaluationError::Type);
        }
        Ok(values.pop())
    }

    /// A text; none is empty.
    fn next_text(&mut self) -> Result<Cow<'a, str>, EvaluationError> {
        match self.next_value()? {
            None => Ok(Cow::Borrowed("")),
            Some(AtomicValue::Text(text) | AtomicValue::Untyped(text)) => Ok(text),
            Some(_) => Err(EvaluationError::Type),
        }
    }

    /// A number, which has to be there.
    fn next_double(&mut self) -> Result<f64, EvaluationError> {
        self.next_value()?.ok_or(EvaluationError::Type)?.to_double()
    }
}

/// The value of a function that needs no nodes and no focus.
///
/// # Errors
/// Arguments of another type or number; patterns that are none.
pub(crate) fn call_function<'a>(
    function: CoreFunction,
    arguments: Vec<ArgumentValues<'a>>,
    patterns: &PatternCache,
) -> Called<'a> {
    use CoreFunction as F;
    let mut given = CallArguments::new(arguments);
    match function {
        F::Abs | F::Ceiling | F::Floor | F::Round => round_value(function, &mut given),
        F::Number => number_of(&mut given),
        F::Avg | F::Max | F::Min | F::Sum => aggregate(function, &mut given),
        F::Matches | F::Replace | F::Tokenize => match_text(function, &mut given, patterns),
        F::StringJoin => {
            let parts = given.next_values();
            let parts: Vec<Cow<'_, str>> = parts.into_iter().map(AtomicValue::into_text).collect();
            let separator = given.next_text()?;
            Ok(one_text(Cow::Owned(parts.join(separator.as_ref()))))
        }
        F::StringOf => {
            let value = given.next_value()?;
            Ok(one_text(value.map(AtomicValue::into_text).unwrap_or_default()))
        }
        F::StringToCodepoints => {
            let text = given.next_text()?;
            Ok(text.chars().map(|sign| integer_item(i64::from(u32::from(sign)))).collect())
        }
        F::CodepointsToString => {
            let mut text = String::new();
            for value in given.next_values() {
                text.push(codepoint_of(&value)?);
            }
            Ok(one_text(Cow::Owned(text)))
        }
        F::Data => Ok(given.next_values().into_iter().map(XPathItem::Atomic).collect()),
        F::DistinctValues => Ok(distinct_values(given.next_values())),
        F::IndexOf => {
            let (values, sought) = (given.next_values(), given.next_value()?);
            let sought = sought.ok_or(EvaluationError::Type)?;
            let places = values.iter().enumerate();
            let places = places.filter(|(_, value)| is_same_value(value, &sought));
            Ok(places.map(|(place, _)| place.saturating_add(1).into()).collect())
        }
        _ => change_text(function, &mut given),
    }
}

/// The value of a function of one text or two.
pub(crate) fn apply_to_texts<'a>(
    function: CoreFunction,
    text: Cow<'a, str>,
    part: &str,
) -> AtomicValue<'a> {
    use CoreFunction as F;
    match function {
        F::Contains => AtomicValue::Boolean(text.contains(part)),
        F::StartsWith => AtomicValue::Boolean(text.starts_with(part)),
        F::EndsWith => AtomicValue::Boolean(text.ends_with(part)),
        F::StringLength => AtomicValue::Integer(text.chars().count().into()),
        F::UpperCase => AtomicValue::Text(Cow::Owned(text.to_uppercase())),
        F::LowerCase => AtomicValue::Text(Cow::Owned(text.to_lowercase())),
        F::SubstringBefore | F::SubstringAfter => {
            let (before, after) = text.split_once(part).unwrap_or_default();
            let is_before = function == F::SubstringBefore;
            AtomicValue::Text(Cow::Owned(if is_before { before } else { after }.to_owned()))
        }
        _ => AtomicValue::Text(normalize_space(text)),
    }
}

fn one_text(text: Cow<'_, str>) -> ItemSequence<'_> {
    vec![text.into()]
}

fn owned_item<'a>(text: &str) -> XPathItem<'a> {
    Cow::<str>::Owned(text.to_owned()).into()
}

fn integer_item<'a>(number: i64) -> XPathItem<'a> {
    XPathItem::Atomic(AtomicValue::Integer(number.into()))
}

fn codepoint_of(value: &AtomicValue<'_>) -> Result<char, EvaluationError> {
    let AtomicValue::Integer(number) = value else { return Err(EvaluationError::Type) };
    let code = number.to_i64().and_then(|code| u32::try_from(code).ok());
    code.and_then(char::from_u32).ok_or(EvaluationError::Cast)
}

fn is_same_value(left: &AtomicValue<'_>, right: &AtomicValue<'_>) -> bool {
    left.is_comparable(Comparison::Equal, right).unwrap_or(false)
}

fn distinct_values(values: ArgumentValues<'_>) -> ItemSequence<'_> {
    let mut kept: ArgumentValues<'_> = Vec::new();
    for value in values {
        if !kept.iter().any(|known| is_same_value(known, &value)) {
            kept.push(value);
        }
    }
    kept.into_iter().map(XPathItem::Atomic).collect()
}

/// The functions from text to text.
fn change_text<'a>(function: CoreFunction, given: &mut CallArguments<'a>) -> Called<'a> {
    use CoreFunction as F;
    let text = given.next_text()?;
    Ok(one_text(match function {
        F::Translate => {
            let (from, to) = (given.next_text()?, given.next_text()?);
            let to: Vec<char> = to.chars().collect();
            let changed = text.chars().filter_map(|sign| {
                from.chars().position(|it| it == sign).map_or(Some(sign), |at| to.get(at).copied())
            });
            Cow::Owned(changed.collect())
        }
        F::Substring => {
            let start = round_half_up(given.next_double()?);
            let length = match given.values.len() {
                0 => f64::INFINITY,
                _ => round_half_up(given.next_double()?),
            };
            let end = start + length;
            let mut at = 0.0;
            let part = text.chars().filter(|_| {
                at += 1.0;
                at >= start && at < end
            });
            Cow::Owned(part.collect())
        }
        _ => return Err(EvaluationError::Type),
    }))
}

/// The nearest whole number; of two as near, the larger one.
fn round_half_up(number: f64) -> f64 {
    (number + 0.5).floor()
}

/// Without spaces at both ends, and single ones between.
fn normalize_space(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = text.trim_matches(is_xml_space);
    let is_normal =
        trimmed.len() == text.len() && !text.contains("  ") && !text.contains(['\t', '\n', '\r']);
    if is_normal {
        return text;
    }
    let words = trimmed.split(is_xml_space).filter(|word| !word.is_empty());
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

fn number_of<'a>(given: &mut CallArguments<'a>) -> Called<'a> {
    let number = match given.next_value()? {
        None => f64::NAN,
        Some(value) => match value.cast(AtomicType::Double) {
            Ok(AtomicValue::Double(number)) => number,
            _ => f64::NAN,
        },
    };
    Ok(vec![XPathItem::Atomic(AtomicValue::Double(number))])
}

fn round_value<'a>(function: CoreFunction, given: &mut CallArguments<'a>) -> Called<'a> {
    let Some(value) = given.next_value()? else { return Ok(Vec::new()) };
    let change = match function {
        CoreFunction::Abs => DecimalNumber::absolute,
        CoreFunction::Floor => DecimalNumber::floor,
        CoreFunction::Ceiling => ceiling,
        _ => DecimalNumber::round,
    };
    Ok(vec![XPathItem::Atomic(match value {
        AtomicValue::Integer(number) => AtomicValue::Integer(change(&number)),
        AtomicValue::Decimal(number) => AtomicValue::Decimal(change(&number)),
        other => {
            let number = other.to_double()?;
            AtomicValue::Double(match function {
                CoreFunction::Abs => number.abs(),
                CoreFunction::Floor => number.floor(),
                CoreFunction::Ceiling => number.ceil(),
                _ if number.fract() == 0.0 => number,
                _ => round_half_up(number),
            })
        }
    })])
}

fn ceiling(number: &DecimalNumber) -> DecimalNumber {
    number.negated().floor().negated()
}

/// Untyped text as a double, as aggregates take it.
fn to_number(value: AtomicValue<'_>) -> Result<AtomicValue<'_>, EvaluationError> {
    match value {
        AtomicValue::Untyped(_) => value.cast(AtomicType::Double),
        value => Ok(value),
    }
}

fn aggregate<'a>(function: CoreFunction, given: &mut CallArguments<'a>) -> Called<'a> {
    let values = given.next_values();
    let count = values.len();
    let mut values = values.into_iter();
    let Some(first) = values.next() else {
        return Ok(match (function, given.values.len()) {
            (CoreFunction::Sum, 0) => vec![integer_item(0)],
            (CoreFunction::Sum, _) => {
                given.next_values().into_iter().map(XPathItem::Atomic).collect()
            }
            _ => Vec::new(),
        });
    };
    let mut total = to_number(first)?;
    if matches!(function, CoreFunction::Sum | CoreFunction::Avg) {
        let is_number = matches!(
            total,
            AtomicValue::Integer(_) | AtomicValue::Decimal(_) | AtomicValue::Double(_)
        );
        if !is_number {
            return Err(EvaluationError::Type);
        }
    }
    for value in values {
        let value = to_number(value)?;
        total = match function {
            CoreFunction::Sum | CoreFunction::Avg => {
                total.calculate(ArithmeticOperator::Plus, value)?
            }
            CoreFunction::Max if value.is_comparable(Comparison::Greater, &total)? => value,
            CoreFunction::Min if value.is_comparable(Comparison::Less, &total)? => value,
            _ => total,
        };
    }
    if function == CoreFunction::Avg {
        let count = AtomicValue::Integer(count.into());
        total = total.calculate(ArithmeticOperator::Div, count)?;
    }
    Ok(vec![XPathItem::Atomic(total)])
}

/// The functions on regular expressions.
fn match_text<'a>(
    function: CoreFunction,
    given: &mut CallArguments<'a>,
    patterns: &PatternCache,
) -> Called<'a> {
    let text = given.next_text()?;
    if function == CoreFunction::Tokenize && given.values.len() == 0 {
        let words = text.split(is_xml_space).filter(|word| !word.is_empty());
        return Ok(words.map(owned_item).collect());
    }
    let pattern = given.next_text()?;
    let replacement = match function {
        CoreFunction::Replace => Some(given.next_text()?),
        _ => None,
    };
    let flags = given.next_text()?;
    let regex = patterns.find(&pattern, &flags).ok_or(EvaluationError::Pattern)?;
    match function {
        CoreFunction::Matches => Ok(vec![regex.is_match(&text).into()]),
        // A pattern that fits nothing at all has no place.
        _ if regex.is_match("") => Err(EvaluationError::Pattern),
        CoreFunction::Replace => {
            let replacement = replacement.unwrap_or_default();
            let replacement = translate_replacement(&replacement, regex.captures_len());
            let replacement = replacement.ok_or(EvaluationError::Pattern)?;
            Ok(one_text(Cow::Owned(regex.replace_all(&text, replacement.as_str()).into_owned())))
        }
        _ if text.is_empty() => Ok(Vec::new()),
        _ => Ok(regex.split(&text).map(owned_item).collect()),
    }
}
