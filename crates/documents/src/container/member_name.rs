//! Names of members: shown to people, never used as a path.

use unicode_normalization::UnicodeNormalization as _;

/// A longer name loses its middle.
const MAX_NAME_CHARS: usize = 150;
/// As much of the end is kept, so that the extension stays.
const KEPT_END_CHARS: usize = 20;

/// Characters that show nothing or turn the direction of what follows: a name with them shows another
/// extension than it has.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            u32::from(letter),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
                | 0xfff9..=0xfffb | 0xe0000..=0xe007f
        )
}

/// The last part of a path, without what does not show, of a bounded length; `None`: nothing is left.
pub(crate) fn clean_name(name: &str) -> Option<String> {
    let start = name.char_indices().rev().nth(4 * MAX_NAME_CHARS).map_or(0, |(at, _)| at);
    let last = name.get(start..)?.rsplit(['/', '\\']).next()?;
    let shown: String = last.nfc().filter(|letter| !is_hidden(*letter)).collect();
    let shown = shown.trim().trim_start_matches('.').trim();
    let count = shown.chars().count();
    if count == 0 {
        return None;
    }
    if count <= MAX_NAME_CHARS {
        return Some(shown.to_owned());
    }
    let begin = shown.chars().take(MAX_NAME_CHARS - KEPT_END_CHARS - 1);
    let end = shown.chars().skip(count - KEPT_END_CHARS);
    Some(begin.chain(['…']).chain(end).collect())
}

/// Whether a name is as [`clean_name`] leaves it.
pub(crate) fn is_clean_name(name: &str) -> bool {
    clean_name(name).as_deref() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_last_part_without_what_does_not_show() {
        #[rustfmt::skip]
        let table = [
            ("Rechnung 7.pdf",                 Some("Rechnung 7.pdf")),
            ("../../etc/passwd",               Some("passwd")),
            ("C:\\temp\\..\\x.pdf",            Some("x.pdf")),
            ("invoice\u{202e}fdp.exe",         Some("invoicefdp.exe")),
            ("a\u{0}b\r\nc.pdf",               Some("abc.pdf")),
            (".htaccess",                      Some("htaccess")),
            ("\u{feff}فاتورة.pdf",              Some("فاتورة.pdf")),
            ("  ",                             None),
            ("..",                             None),
            ("/",                              None),
        ];
        for (name, clean) in table {
            assert_eq!(clean_name(name).as_deref(), clean, "{name:?}");
            assert!(clean.is_none_or(is_clean_name), "{name:?}");
        }
        let long = clean_name(&format!("{}.pdf", "x".repeat(10_000))).unwrap();
        assert_eq!(long.chars().count(), MAX_NAME_CHARS);
        assert!(long.ends_with(".pdf") && is_clean_name(&long));
        assert!(!is_clean_name("a/b") && !is_clean_name("a\u{202e}b"));
    }
}
