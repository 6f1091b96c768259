//! Formats by their content.
//!
//! Office Open XML and OpenDocument are ZIP files whose first member has a name that the format
//! asks for (ISO/IEC 29500-2 annex B, OpenDocument 1.3 part 2 §3.3). RTF begins with `{\rtf`, web
//! pages with a document type or an element. Plain text has no sign: it is what has no control
//! characters and more letters than other signs.

use crate::decode::decode_text;
use crate::delimited::find_separator;

/// Bytes by which text is recognised.
const TEXT_WINDOW: usize = 64 << 10;
/// Bytes at the start in which a web page names itself.
const MARKUP_WINDOW: usize = 4096;
/// The first bytes of a compound file (MS-CFB §2.2): Office before 2007, mails, encrypted packages.
const COMPOUND_FILE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// Names at the start of the first member of an Office Open XML package.
const PACKAGE_STARTS: [&[u8]; 7] =
    [b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/", b"customXml/"];
/// Names that only such a package has. The first that is found names the format; where only the last
/// ones are, the package says when it is opened.
const PACKAGE_PARTS: [(&[u8], OfficeFormat); 5] = [
    (b"word/document.xml", OfficeFormat::Docx),
    (b"xl/workbook.", OfficeFormat::Xlsx),
    (b"ppt/presentation.xml", OfficeFormat::Pptx),
    (b"[Content_Types].xml", OfficeFormat::Docx),
    (b"_rels/.rels", OfficeFormat::Docx),
];
/// The start of the types of OpenDocument.
const OPEN_DOCUMENT: &[u8] = b"application/vnd.oasis.opendocument.";

/// A format that is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfficeFormat {
    /// A document of Word since 2007, also with macros, which are not run.
    Docx,
    /// A workbook of Excel since 2007, as above.
    Xlsx,
    /// Slides of PowerPoint since 2007, as above.
    Pptx,
    /// A text of OpenDocument.
    Odt,
    /// A spreadsheet of OpenDocument.
    Ods,
    /// Slides or a drawing of OpenDocument.
    Odp,
    /// Rich Text Format.
    Rtf,
    /// A web page.
    Html,
    /// Lines of fields between commas, semicolons, tabs or bars.
    Csv,
    /// Plain text.
    Text,
}

impl OfficeFormat {
    /// The stable word, as in `docmill process --json`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Docx => "docx",
            Self::Xlsx => "xlsx",
            Self::Pptx => "pptx",
            Self::Odt => "odt",
            Self::Ods => "ods",
            Self::Odp => "odp",
            Self::Rtf => "rtf",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Text => "txt",
        }
    }
}

/// Recognises a file by a signature; `None` for all others, text among them.
pub fn sniff_office(bytes: &[u8]) -> Option<OfficeFormat> {
    if let Some(name) = first_member(bytes) {
        if name == b"mimetype" {
            let rest = bytes.get(ZIP_HEADER_BYTES + name.len()..)?;
            return open_document_format(rest.strip_prefix(OPEN_DOCUMENT)?);
        }
        let is_start = PACKAGE_STARTS.iter().any(|start| name.starts_with(start));
        return if is_start { open_xml_format(bytes) } else { None };
    }
    if bytes.starts_with(b"{\\rtf") {
        return Some(OfficeFormat::Rtf);
    }
    is_web_page(bytes).then_some(OfficeFormat::Html)
}

fn open_xml_format(bytes: &[u8]) -> Option<OfficeFormat> {
    let mut parts = PACKAGE_PARTS.iter();
    parts.find(|(part, _)| memchr::memmem::find(bytes, part).is_some()).map(|(_, format)| *format)
}

fn open_document_format(kind: &[u8]) -> Option<OfficeFormat> {
    let kinds: [(&[u8], OfficeFormat); 4] = [
        (b"text", OfficeFormat::Odt),
        (b"spreadsheet", OfficeFormat::Ods),
        (b"presentation", OfficeFormat::Odp),
        (b"graphics", OfficeFormat::Odp),
    ];
    kinds.into_iter().find(|(name, _)| kind.starts_with(name)).map(|(_, format)| format)
}

/// Bytes before the name of a member (APPNOTE 4.3.7).
const ZIP_HEADER_BYTES: usize = 30;

/// The name of the first member of a ZIP.
fn first_member(bytes: &[u8]) -> Option<&[u8]> {
    let header = bytes.get(..ZIP_HEADER_BYTES).filter(|it| it.starts_with(b"PK\x03\x04"))?;
    let length = match header.get(26..28)? {
        [low, high] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => return None,
    };
    bytes.get(ZIP_HEADER_BYTES..ZIP_HEADER_BYTES.checked_add(length)?)
}

/// A document type, the root, or an element that mails begin with, behind comments and an XML
/// declaration.
fn is_web_page(bytes: &[u8]) -> bool {
    const STARTS: [&str; 10] = [
        "<!doctype html",
        "<html",
        "<head",
        "<body",
        "<meta",
        "<table",
        "<div",
        "<p>",
        "<center",
        "<style",
    ];
    let text = decode_text(bytes.get(..MARKUP_WINDOW).unwrap_or(bytes), None).to_ascii_lowercase();
    let mut rest = text.trim_start_matches(['\u{feff}', '\0']).trim_start();
    loop {
        let end = match rest {
            rest if rest.starts_with("<!--") => "-->",
            rest if rest.starts_with("<?xml") => "?>",
            _ => break,
        };
        let Some((_, behind)) = rest.split_once(end) else { return false };
        rest = behind.trim_start();
    }
    STARTS.iter().any(|start| {
        let behind = rest.strip_prefix(start);
        behind.is_some_and(|it| {
            start.ends_with('>') || !it.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// Recognises text, which has no signature: ask for every other format first.
pub fn sniff_text(bytes: &[u8]) -> Option<OfficeFormat> {
    let window = bytes.get(..TEXT_WINDOW).unwrap_or(bytes);
    let is_marked = window.starts_with(b"\xff\xfe") || window.starts_with(b"\xfe\xff");
    if !is_marked && window.iter().any(is_control_byte) {
        return None;
    }
    let text = decode_text(without_cut_character(window), None);
    if is_mail(&text) {
        return None;
    }
    let (mut signs, mut letters) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        signs += 1;
        letters += usize::from(c.is_alphanumeric());
        if c.is_control() && c != '\u{feff}' || c == char::REPLACEMENT_CHARACTER {
            return None;
        }
    }
    if letters == 0 || letters * 2 < signs {
        return None;
    }
    Some(if find_separator(&text).is_some() { OfficeFormat::Csv } else { OfficeFormat::Text })
}

/// Control characters that no text has.
fn is_control_byte(byte: &u8) -> bool {
    *byte < 0x20 && !b"\t\n\r\x0c".contains(byte) || *byte == 0x7f
}

/// Whether a text begins with the headers of a mail: its parts are encoded, so it is no text.
fn is_mail(text: &str) -> bool {
    const SIGNS: [&str; 3] = ["mime-version", "message-id", "received"];
    let headers = text.lines().take_while(|line| !line.trim().is_empty());
    let names: Vec<String> = headers
        .filter(|line| !line.starts_with([' ', '\t']))
        .map_while(|line| line.split_once(':').map(|(name, _)| name.to_ascii_lowercase()))
        .take_while(|name| !name.contains(' '))
        .collect();
    names.len() > 1 && names.iter().any(|name| SIGNS.contains(&name.as_str()))
}

/// A window may end within a character of UTF-8.
fn without_cut_character(window: &[u8]) -> &[u8] {
    match std::str::from_utf8(window) {
        Err(error) if error.error_len().is_none() => {
            window.get(..error.valid_up_to()).unwrap_or(window)
        }
        _ => window,
    }
}

/// The likely format of a file of the neighbourhood that is not read, for a person.
pub fn describe_unread(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(COMPOUND_FILE) {
        return None;
    }
    Some(if has_wide_name(bytes, "EncryptedPackage") {
        "an Office document that is encrypted: save it without a password"
    } else if has_wide_name(bytes, "WordDocument") {
        "a document of Word before 2007 (DOC), which is not read: save it as DOCX or PDF"
    } else if has_wide_name(bytes, "PowerPoint Document") {
        "slides of PowerPoint before 2007 (PPT), which are not read: save them as PPTX or PDF"
    } else if has_wide_name(bytes, "Workbook") || has_wide_name(bytes, "Book") {
        "a workbook of Excel before 2007 (XLS), which is not read: save it as XLSX or PDF"
    } else {
        "a compound file of an older program, which is not read: send it as PDF"
    })
}

/// Whether a directory names a stream, in UTF-16 and with a zero behind it.
fn has_wide_name(bytes: &[u8], name: &str) -> bool {
    let wide: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    memchr::memmem::find(bytes, &wide).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_bytes() {
        #[rustfmt::skip]
        let table: [(&str, &[u8], Option<OfficeFormat>); 12] = [
            ("words",               b"Invoice 4711\nTotal 119.00 EUR\n",  Some(OfficeFormat::Text)),
            ("words of another age", b"Rechnung f\xfcr B\xfcro\n",        Some(OfficeFormat::Text)),
            ("wide words",          b"\xff\xfeB\0\xfc\0r\0o\0",           Some(OfficeFormat::Text)),
            ("fields",              b"a;b\n1;2\n",                        Some(OfficeFormat::Csv)),
            ("a zero",              b"Invoice\0",                         None),
            ("a mail",              b"From: a@example.org\r\nSubject: b\r\nMIME-Version: 1.0\r\n\r\nText", None),
            ("a label of a bill",   b"Received: 5 boxes on Monday",       Some(OfficeFormat::Text)),
            ("labels",              b"Invoice: 4711\nTotal: 5\n",         Some(OfficeFormat::Text)),
            ("an escape",           b"\x1b[31mInvoice",                   None),
            ("signs",               b"----====----",                      None),
            ("bytes of no letters", b"\x81\x8d\x8f",                      None),
            ("nothing",             b"",                                  None),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(sniff_text(bytes), expected, "{name}");
        }
    }

    #[test]
    fn a_web_page_is_recognised_behind_comments_and_declarations() {
        for (text, expected) in [
            ("<!DOCTYPE html><html>", true),
            ("  <!-- made by a program -->\n<HTML>", true),
            ("<?xml version='1.0'?><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0'>", true),
            ("<p>Dear all", true),
            ("<?xml version='1.0'?><Invoice/>", false),
            ("<params>", false),
            ("<headline>", false),
            ("Dear all", false),
        ] {
            assert_eq!(is_web_page(text.as_bytes()), expected, "{text}");
        }
    }
}
