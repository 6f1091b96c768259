//! Decimals without a bound on their digits but [`MAX_DIGITS`]: `xs:decimal` and `xs:integer`.
//!
//! Account numbers are checked by the remainder of a number with 68 digits, which no decimal of a
//! fixed width contains.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, Sign};

/// Most digits of a number that is read, and of a result.
pub(crate) const MAX_DIGITS: usize = 400;
/// Digits behind the point of a quotient, as the reference processor has them at least.
const QUOTIENT_SCALE: u32 = 18;

/// A decimal number: `coefficient` times ten to the minus `scale`.
#[derive(Debug, Clone)]
pub(crate) struct DecimalNumber {
    coefficient: BigInt,
    scale: u32,
}

/// Ten to the `power`.
fn power_of_ten(power: u32) -> BigInt {
    BigInt::from(10_u8).pow(power)
}

fn is_zero(number: &BigInt) -> bool {
    number.sign() == Sign::NoSign
}

impl DecimalNumber {
    /// Its lexical form without spaces: sign, digits, at most one point.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole, fraction].concat();
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if digits.is_empty() || !are_digits || digits.len() > MAX_DIGITS {
            return None;
        }
        let coefficient: BigInt = digits.parse().ok()?;
        let coefficient = if text.starts_with('-') { -coefficient } else { coefficient };
        Some(Self { coefficient, scale: u32::try_from(fraction.len()).ok()? })
    }

    /// The exact value of a double; `None` for infinities and what is no number.
    pub(crate) fn from_double(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let bits = number.to_bits();
        let exponent = i32::try_from((bits >> 52) & 0x7ff).ok()?;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, power) = match exponent {
            0 => (fraction, -1074),
            _ => (fraction | (1 << 52), exponent - 1075),
        };
        let mantissa = BigInt::from(mantissa);
        let mantissa = if number.is_sign_negative() { -mantissa } else { mantissa };
        let steps = power.unsigned_abs();
        let number = if power >= 0 {
            Self { coefficient: mantissa * BigInt::from(2_u8).pow(steps), scale: 0 }
        } else {
            Self { coefficient: mantissa * BigInt::from(5_u8).pow(steps), scale: steps }
        };
        Some(number.without_trailing_zeros())
    }

    /// The nearest double.
    pub(crate) fn to_double(&self) -> f64 {
        if let Some(number) = self.to_exact_quotient() {
            return number;
        }
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// The nearest double, where coefficient and power of ten are exact doubles: their quotient is
    /// rounded once.
    fn to_exact_quotient(&self) -> Option<f64> {
        let coefficient = i32::try_from(&self.coefficient).ok()?;
        Some(f64::from(coefficient) / f64::from(10_u32.checked_pow(self.scale)?))
    }

    /// The value as a count or index; `None`: negative, no whole number, or too large.
    pub(crate) fn to_index(&self) -> Option<usize> {
        let whole = self.truncate();
        (whole == *self).then(|| usize::try_from(&whole.coefficient).ok()).flatten()
    }

    /// The value as a small whole number.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        i64::try_from(&self.truncate().coefficient).ok()
    }

    pub(crate) fn is_zero(&self) -> bool {
        is_zero(&self.coefficient)
    }

    /// Whether it is beyond [`MAX_DIGITS`]: no result is.
    pub(crate) fn is_too_long(&self) -> bool {
        let bits = self.coefficient.bits();
        // A digit has more than three bits.
        bits > 3 * u64::try_from(MAX_DIGITS).unwrap_or(u64::MAX) || self.scale > 1_100
    }

    fn align(&self, other: &Self) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        (self.rescaled(scale), other.rescaled(scale), scale)
    }

    fn rescaled(&self, scale: u32) -> BigInt {
        match scale.saturating_sub(self.scale) {
            0 => self.coefficient.clone(),
            more => &self.coefficient * power_of_ten(more),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (left, right, scale) = self.align(other);
        Self { coefficient: left + right, scale }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        let (left, right, scale) = self.align(other);
        Self { coefficient: left - right, scale }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let coefficient = &self.coefficient * &other.coefficient;
        Self { coefficient, scale: self.scale.saturating_add(other.scale) }
    }

    /// The quotient to 18 digits behind the point, or as many as one of both has if that is more;
    /// half a unit is rounded towards zero. `None`: division by zero.
    pub(crate) fn divided_by(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let scale = QUOTIENT_SCALE.max(self.scale).max(other.scale);
        // self / other = (own / 10^s) / (theirs / 10^t); the result is times 10^scale.
        let dividend = &self.coefficient * power_of_ten(scale.saturating_add(other.scale));
        let divisor = &other.coefficient * power_of_ten(self.scale);
        let (quotient, rest) = (&dividend / &divisor, &dividend % &divisor);
        let twice = BigInt::from(rest.magnitude().clone()) * 2_u8;
        let is_over_half = twice > BigInt::from(divisor.magnitude().clone());
        let quotient = match (is_over_half, dividend.sign() == divisor.sign()) {
            (false, _) => quotient,
            (true, true) => quotient + 1_u8,
            (true, false) => quotient - 1_u8,
        };
        Some(Self { coefficient: quotient, scale }.without_trailing_zeros())
    }

    /// The remainder with the sign of the dividend; `None`: division by zero.
    pub(crate) fn remainder(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let (left, right, scale) = self.align(other);
        Some(Self { coefficient: left % right, scale })
    }

    /// The quotient without its fraction; `None`: division by zero.
    pub(crate) fn whole_quotient(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let (left, right, _) = self.align(other);
        Some(Self { coefficient: left / right, scale: 0 })
    }

    pub(crate) fn negated(&self) -> Self {
        Self { coefficient: -&self.coefficient, scale: self.scale }
    }

    pub(crate) fn absolute(&self) -> Self {
        let coefficient = BigInt::from(self.coefficient.magnitude().clone());
        Self { coefficient, scale: self.scale }
    }

    /// Without the digits behind the point.
    pub(crate) fn truncate(&self) -> Self {
        Self { coefficient: &self.coefficient / power_of_ten(self.scale), scale: 0 }
    }

    /// The largest whole number that is not larger.
    pub(crate) fn floor(&self) -> Self {
        let whole = self.truncate();
        if whole > *self { whole.minus(&Self::from(1_i64)) } else { whole }
    }

    /// The nearest whole number; of two as near, the larger one.
    pub(crate) fn round(&self) -> Self {
        self.plus(&Self { coefficient: BigInt::from(5_u8), scale: 1 }).floor()
    }

    fn without_trailing_zeros(mut self) -> Self {
        let ten = BigInt::from(10_u8);
        while self.scale > 0 && is_zero(&(&self.coefficient % &ten)) {
            self.coefficient /= &ten;
            self.scale -= 1;
        }
        self
    }
}

impl From<i64> for DecimalNumber {
    fn from(number: i64) -> Self {
        Self { coefficient: BigInt::from(number), scale: 0 }
    }
}

impl From<usize> for DecimalNumber {
    fn from(number: usize) -> Self {
        Self { coefficient: BigInt::from(number), scale: 0 }
    }
}

impl PartialEq for DecimalNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for DecimalNumber {}

impl PartialOrd for DecimalNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DecimalNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.coefficient.cmp(&other.coefficient);
        }
        let (left, right, _) = self.align(other);
        left.cmp(&right)
    }
}

impl fmt::Display for DecimalNumber {
    /// The canonical form: no trailing zeros, no point without digits behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.clone().without_trailing_zeros();
        let scale = usize::try_from(short.scale).unwrap_or(usize::MAX);
        let digits = short.coefficient.magnitude().to_string();
        let sign = if short.coefficient.sign() == Sign::Minus { "-" } else { "" };
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = scale.saturating_add(1));
        match padded.split_at_checked(padded.len().saturating_sub(scale)) {
            Some((whole, fraction)) => write!(f, "{sign}{whole}.{fraction}"),
            None => f.write_str(&padded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> DecimalNumber {
        DecimalNumber::from_text(text).unwrap()
    }

    #[test]
    fn a_quotient_has_eighteen_digits_and_half_a_unit_is_dropped() {
        for (dividend, divisor, quotient) in [
            ("1", "3", "0.333333333333333333"),
            ("2", "3", "0.666666666666666667"),
            ("-2", "3", "-0.666666666666666667"),
            ("1", "4", "0.25"),
            ("0.000000000000000001", "2", "0"),
            ("0.000000000000000003", "2", "0.000000000000000001"),
            ("100", "0.01", "10000"),
        ] {
            let found = number(dividend).divided_by(&number(divisor)).unwrap();
            assert_eq!(found.to_string(), quotient, "{dividend} / {divisor}");
        }
        assert!(number("1").divided_by(&number("0.00")).is_none());
    }

    #[test]
    fn numbers_are_rounded_up_at_half_and_negative_ones_too() {
        for (text, rounded) in
            [("2.5", "3"), ("-2.5", "-2"), ("2.4999", "2"), ("-2.51", "-3"), ("1005", "1005")]
        {
            assert_eq!(number(text).round().to_string(), rounded, "{text}");
        }
    }

    #[test]
    fn the_remainder_of_an_account_number_with_68_digits_is_exact() {
        let long = "9".repeat(68);
        assert_eq!(number(&long).remainder(&number("97")).unwrap().to_string(), "23");
        assert!(DecimalNumber::from_text(&"9".repeat(MAX_DIGITS + 1)).is_none());
    }

    #[test]
    fn a_double_becomes_the_decimal_that_it_is() {
        for (double, text) in [
            (0.5, "0.5"),
            (0.1, "0.1000000000000000055511151231257827021181583404541015625"),
            (-1e3, "-1000"),
        ] {
            assert_eq!(DecimalNumber::from_double(double).unwrap().to_string(), text);
        }
        assert!(DecimalNumber::from_double(f64::NAN).is_none());
    }

    #[test]
    fn text_that_is_no_decimal_is_none() {
        for text in ["", "+", ".", "1e3", "1,5", "1.2.3", " 1", "--1"] {
            assert!(DecimalNumber::from_text(text).is_none(), "{text:?}");
        }
        for (text, canonical) in [("+01.50", "1.5"), ("-.5", "-0.5"), ("5.", "5"), ("-0", "0")] {
            assert_eq!(number(text).to_string(), canonical);
        }
    }
}
