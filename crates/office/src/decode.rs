//! Text from bytes: by its mark, by the encoding that it declares, else UTF-8, else Windows-1252.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes of a web page in which its encoding is declared (WHATWG HTML §13.2.3.2).
const DECLARATION_BYTES: usize = 1024;

/// The text of `bytes`. `declared`: an encoding that the file names, used where it has no mark.
pub(crate) fn decode_text(bytes: &[u8], declared: Option<&'static Encoding>) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let text = encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default()).0;
        return text.into_owned();
    }
    // A declared UTF-16 was read as ASCII, so it is none.
    let declared = declared.filter(|it| ![UTF_16LE, UTF_16BE].contains(it));
    if let Some(encoding) = declared.filter(|it| *it != UTF_8) {
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) if declared.is_some() => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

/// The encoding that a web page declares near its start.
pub(crate) fn declared_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let window = bytes.get(..DECLARATION_BYTES).unwrap_or(bytes);
    let lower = window.to_ascii_lowercase();
    let at = ["charset", "encoding"]
        .into_iter()
        .find_map(|word| Some(memchr::memmem::find(&lower, word.as_bytes())? + word.len()))?;
    let rest = lower.get(at..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let label = rest.iter().take_while(|it| it.is_ascii_alphanumeric() || b"-_:.".contains(it));
    let length = label.count();
    Encoding::for_label(rest.get(..length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_by_mark_then_declaration_then_its_own_bytes() {
        #[rustfmt::skip]
        let table: [(&str, &[u8], &str); 8] = [
            ("UTF-8",                  "Büro".as_bytes(),                                        "Büro"),
            ("UTF-8 with a mark",      b"\xef\xbb\xbfB\xc3\xbcro",                               "Büro"),
            ("UTF-16 with a mark",     b"\xff\xfeB\0\xfc\0r\0o\0",                               "Büro"),
            ("bytes that are no UTF-8", b"B\xfcro 5 \x80",                                       "Büro 5 €"),
            ("a declared encoding",    b"<meta charset=\"iso-8859-2\">\xa3\xf3d\xbc",            "<meta charset=\"iso-8859-2\">Łódź"),
            ("the old form",           b"<meta content='text/html; charset=koi8-r'>\xc1",        "<meta content='text/html; charset=koi8-r'>а"),
            ("a mark and another name", b"\xef\xbb\xbf<meta charset=koi8-r>\xc3\xbc",            "<meta charset=koi8-r>ü"),
            ("an unknown name",        b"<meta charset=none>\xfc",                               "<meta charset=none>ü"),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(decode_text(bytes, declared_charset(bytes)), expected, "{name}");
        }
    }
}
