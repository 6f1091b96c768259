//! The parts of a payment code, and the notations that both sorts share. Each sort has its own
//! rules.

use rust_decimal::Decimal;

use crate::notation::account;

/// The payment that a code orders, and its payee.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentCode {
    /// By which rules it was read.
    pub scheme: PaymentScheme,
    /// The account to pay to, without spaces; length and check digits hold.
    pub iban: String,
    /// The bank of that account.
    pub bic: Option<String>,
    /// Whom to pay; none where the character set of the code is not read here.
    pub creditor: Option<String>,
    /// How much, above 0; none if whoever pays fills it in.
    pub amount: Option<Decimal>,
    /// Code of the currency, ISO 4217.
    pub currency: String,
    /// The payee's reference; check digits hold where the rules define any.
    pub reference: Option<String>,
}

/// The rules of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentScheme {
    /// The Swiss QR-bill.
    SwissBill,
    /// A SEPA credit transfer by EPC069-12.
    Epc,
}

/// Which rule of its own a code breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentCodeDefect {
    /// More characters or bytes than the rules allow.
    TooLong,
    /// Bytes or characters that the named character set does not have.
    Characters,
    /// Another version, coding or kind of transfer than there is.
    Header,
    /// Too few or too many lines, or no trailer.
    Lines,
    /// The account is no IBAN, or one that is not allowed.
    Account,
    /// The bank is no BIC, or missing where there has to be one.
    Bank,
    /// No sound name or address.
    Party,
    /// An amount in another form than there is.
    Amount,
    /// Another currency than there is.
    Currency,
    /// The reference is of no type there is, does not fit the account, or its check digits are wrong.
    Reference,
    /// A text for the payee or payer that is too long, or two where there may be one.
    Message,
}

impl PaymentCodeDefect {
    /// The word that reviewers see.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Characters => "characters",
            Self::Header => "header",
            Self::Lines => "lines",
            Self::Account => "account",
            Self::Bank => "bank",
            Self::Party => "party",
            Self::Amount => "amount",
            Self::Currency => "currency",
            Self::Reference => "reference",
            Self::Message => "message",
        }
    }
}

/// A line that may be empty, as one that is there or not.
pub(super) fn optional(line: &str) -> Option<&str> {
    (!line.is_empty()).then_some(line)
}

/// Digits, and up to `decimals` of them behind one point; no sign, and no zeros in front.
pub(super) fn read_amount(
    text: &str,
    decimals: std::ops::RangeInclusive<usize>,
) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let has_point = whole.len() != text.len();
    let is_sound = !whole.is_empty()
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
        && (whole == "0" || !whole.starts_with('0'))
        && decimals.contains(&fraction.len())
        && (!has_point || !fraction.is_empty());
    is_sound.then(|| text.parse().ok()).flatten()
}

/// Whether it is a reference of ISO 11649: `RF`, two check digits, up to 21 letters and digits.
pub(super) fn is_creditor_reference(text: &str) -> bool {
    text.starts_with("RF")
        && (5..=25).contains(&text.len())
        && text.bytes().skip(2).take(2).all(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && account::has_check_digits(text)
}

/// An IBAN as codes have it: without spaces.
pub(super) fn is_plain_iban(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && account::is_iban(text)
}

/// A row of the tests' tables: what is changed, which lines become what, and what is wrong then.
#[cfg(test)]
pub(super) type ChangedCode<'a> = (&'a str, &'a [(usize, &'a str)], Option<PaymentCodeDefect>);
