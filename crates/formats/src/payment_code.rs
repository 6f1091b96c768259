//! The payment that a code on a bill orders: the Swiss QR-bill (SIX, Implementation Guidelines
//! QR-bill 2.3) and the QR code of EPC069-12 version 3.1 (`GiroCode`, Stuzza).
//!
//! Strict: a code that breaks its own rules is rejected, because a payer's app may show other
//! values than were read here. Not checked: whether the account exists, and whether it is the one
//! on the page. Codes of other forms are ignored.

mod epc;
mod order;
mod swiss;

pub use order::{PaymentCode, PaymentCodeDefect, PaymentScheme};

/// Reads the payload of a code. `bytes`: it is no UTF-8, and each byte stands as the character of its
/// number. None if it is no code for payments, nor meant to be one.
pub fn read_payment_code(
    payload: &str,
    bytes: bool,
) -> Option<Result<PaymentCode, PaymentCodeDefect>> {
    let lines: Vec<&str> =
        payload.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    // A text that only a less strict reader accepts breaks the rules.
    let head = lines.first()?.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    match head.to_ascii_uppercase().as_str() {
        "SPC" => Some(swiss::read_bill(payload, &lines, bytes)),
        "BCD" => Some(epc::read_transfer(payload, &lines, bytes)),
        _ => None,
    }
}
