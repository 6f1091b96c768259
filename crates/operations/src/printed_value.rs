//! Numbers and dates as a reviewer copies them from a document.
//!
//! A text with two readings is refused with both: a silent error of a person is found by nobody.

use serde_json::Value;

use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::number;

/// Why a typed text is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PrintedValueError {
    /// It is not of the type.
    Unreadable,
    /// It has two readings; the ways to write each, without the text.
    Ambiguous(&'static str),
}

/// A number as JSON has it, or as documents print it: `1.700,00`, `1,700.00`, `1 700,00`.
///
/// # Errors
/// It is no number, or `1.700` may be one thousand seven hundred or one and seven tenths.
pub(super) fn read_number(text: &str) -> Result<Value, PrintedValueError> {
    if is_ambiguous_group(text) {
        return Err(PrintedValueError::Ambiguous("write 1700 or 1.7000, not 1.700"));
    }
    let exact = serde_json::from_str(text).ok().filter(Value::is_number);
    let printed = || {
        let number = number::parse_number(text, None)?;
        serde_json::from_str(&number.normalize().to_string()).ok()
    };
    exact.or_else(printed).ok_or(PrintedValueError::Unreadable)
}

/// One separator before exactly three digits: it groups them, or it is the decimal sign.
fn is_ambiguous_group(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((whole, rest)) = digits.split_once(['.', ',']) else { return false };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    is_digits(whole) && is_digits(rest) && rest.len() == 3 && whole.len() <= 3 && whole != "0"
}

/// A date in ISO 8601, or as documents print it: `05.03.2018`, `5 March 2018`.
///
/// # Errors
/// It is no date, or its slashes leave open which number is the day.
pub(super) fn read_date(text: &str) -> Result<Value, PrintedValueError> {
    if date::parse_iso(text).is_some() {
        return Ok(Value::String(text.to_owned()));
    }
    let found = date::find_dates(text);
    let [only] = found.as_slice() else { return Err(PrintedValueError::Unreadable) };
    if only.range != (0..text.len()) {
        return Err(PrintedValueError::Unreadable);
    }
    if only.is_ambiguous() && !only.points {
        let how = "write 2018-03-05 for the fifth of March, with the year first";
        return Err(PrintedValueError::Ambiguous(how));
    }
    let day = only.date_under(DayMonthOrder::DayFirst).ok_or(PrintedValueError::Unreadable)?;
    Ok(Value::String(date::to_iso(day)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_dates_are_read_as_they_are_printed_and_never_in_two_ways() {
        for (text, value) in [
            ("1700.5", Some(json!(1700.5))),
            ("1.700,00", Some(json!(1700))),
            ("1,700.00", Some(json!(1700))),
            ("12,50", Some(json!(12.5))),
            ("0.125", Some(json!(0.125))),
            ("-3,20", Some(json!(-3.2))),
            ("1.700", None),
            ("1,700", None),
            ("12 apples", None),
        ] {
            assert_eq!(read_number(text).ok(), value, "{text}");
        }
        for (text, value) in [
            ("2018-03-05", Some("2018-03-05")),
            ("05.03.2018", Some("2018-03-05")),
            ("5 March 2018", Some("2018-03-05")),
            ("25/03/2018", Some("2018-03-25")),
            ("03/05/2018", None),
            ("due 05.03.2018", None),
            ("soon", None),
        ] {
            assert_eq!(read_date(text).ok(), value.map(|it| json!(it)), "{text}");
        }
    }
}
