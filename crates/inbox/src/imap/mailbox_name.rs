//! Names of mailboxes in modified UTF-7 (RFC 3501 §5.1.3).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, general_purpose::NO_PAD};

/// Base64 with a comma for the slash, and no padding.
const IMAP_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::IMAP_MUTF7, NO_PAD);

/// A mailbox's name as it is sent.
pub(super) fn encode_mailbox(name: &str) -> String {
    let (mut encoded, mut shifted) = (String::new(), Vec::new());
    for sign in name.chars() {
        if (' '..='~').contains(&sign) {
            flush_shifted(&mut encoded, &mut shifted);
            encoded.push(sign);
            if sign == '&' {
                encoded.push('-');
            }
        } else {
            let mut units = [0; 2];
            for unit in sign.encode_utf16(&mut units) {
                shifted.extend(unit.to_be_bytes());
            }
        }
    }
    flush_shifted(&mut encoded, &mut shifted);
    encoded
}

fn flush_shifted(encoded: &mut String, shifted: &mut Vec<u8>) {
    if !shifted.is_empty() {
        encoded.push('&');
        encoded.push_str(&IMAP_BASE64.encode(&shifted));
        encoded.push('-');
        shifted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mailboxes_are_written_as_the_standard_says() {
        for (name, encoded) in [
            ("INBOX", "INBOX"),
            ("a & b", "a &- b"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("דואר", "&BdMF1QXQBeg-"),
            ("😀", "&2D3eAA-"),
        ] {
            assert_eq!(encode_mailbox(name), encoded);
        }
    }
}
