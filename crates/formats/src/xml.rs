//! XML from strangers: decoded, checked, and only then parsed.
//!
//! A document type with declarations is refused, and one without is left out, so that no entity is
//! ever expanded and nothing outside is ever asked for. One pass over the text, before the parser reads it, bounds what the parser's time and
//! memory grow with: nesting, marks, attributes of an element, namespaces in scope. Whether the XML
//! means anything is for others to say.
//!
//! Encodings: UTF-16, and those of the WHATWG Encoding Standard that the XML declaration names; without
//! one UTF-8. Bytes that are not the declared UTF-8 or US-ASCII are read as Windows-1252, UTF-8 under
//! another name as UTF-8: [`XmlText::is_misdeclared`] reports both. Any other encoding is refused.

pub use roxmltree::{Document as XmlTree, Node as XmlNode, NodeType as XmlNodeType};
use roxmltree::{Document, ParsingOptions};
use serde::{Deserialize, Serialize};

use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Most bytes of an XML file. Invoices carry other documents inside, as base64 text.
pub const MAX_BYTES: usize = 32 << 20;
/// Levels of nested elements. The supported formats need 9.
const MAX_DEPTH: usize = 64;
/// Most of `<` and of `=` each, by whose numbers the parser reserves memory.
const MAX_MARKS: usize = 2_000_000;
/// Most attributes of one element: the parser compares each with each.
const MAX_ATTRIBUTES: usize = 64;
/// Most entries of namespaces that elements take over from their parents: the parser copies them.
const MAX_INHERITED: usize = 10_000_000;
/// Longer values (documents within the document) are left out of the text.
const MAX_VALUE: usize = 500;
/// Most lines of text.
const MAX_LINES: usize = 20_000;

/// Why an XML file is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum XmlError {
    /// Bytes that contradict the declaration, or an encoding that is not read.
    #[error("XML in an encoding that is not read, or that it is not written in")]
    Encoding,
    /// The XML is not well-formed.
    #[error("XML that is damaged or cut off")]
    Malformed,
    /// A document type with declarations, which is where entities are.
    #[error("XML with a document type that declares something: entities are not expanded")]
    Entities,
    /// Over one of the caps.
    #[error("XML that is larger, deeper or fuller than is read")]
    TooLarge,
}

impl XmlError {
    /// The stable word for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Encoding => "encoding",
            Self::Malformed => "malformed",
            Self::Entities => "entities",
            Self::TooLarge => "too_large",
        }
    }
}

/// The text of an XML file that is safe to parse.
#[derive(Debug)]
pub struct XmlText {
    text: String,
    is_misdeclared: bool,
}

impl XmlText {
    /// Decodes `bytes` and checks them.
    ///
    /// # Errors
    /// Every [`XmlError`]; damage inside tags is only seen by [`XmlText::parse_tree`].
    pub fn decode(bytes: &[u8]) -> Result<Self, XmlError> {
        if bytes.len() > MAX_BYTES {
            return Err(XmlError::TooLarge);
        }
        let (text, is_misdeclared) = decode_bytes(bytes)?;
        let text = text.trim_matches(is_padding);
        // Text behind the last tag is none of the XML's.
        let text = match text.rsplit_once('>') {
            Some((_, behind)) if !behind.contains('<') => text.strip_suffix(behind).unwrap_or(text),
            _ => text,
        };
        let text = without_doctype(text);
        prescan_tags(&text)?;
        Ok(Self { text, is_misdeclared })
    }

    /// Whether it is written in another encoding than it declares.
    pub fn is_misdeclared(&self) -> bool {
        self.is_misdeclared
    }

    /// The elements.
    ///
    /// # Errors
    /// [`XmlError::Malformed`], and [`XmlError::TooLarge`] for more nodes than are read.
    pub fn parse_tree(&self) -> Result<Document<'_>, XmlError> {
        let nodes_limit = u32::try_from(MAX_MARKS).unwrap_or(u32::MAX);
        let options = ParsingOptions { allow_dtd: false, nodes_limit, entity_resolver: None };
        Document::parse_with_options(&self.text, options).map_err(|error| match error {
            roxmltree::Error::NodesLimitReached
            | roxmltree::Error::AttributesLimitReached
            | roxmltree::Error::NamespacesLimitReached => XmlError::TooLarge,
            _ => XmlError::Malformed,
        })
    }
}

/// The values of a tree as the lines of a page, each behind the local name of its element, up to
/// `most_words` words. Lines stand one under the other, 12 units apart.
pub fn tree_lines(tree: &Document<'_>, most_words: usize) -> Vec<TextLine> {
    let elements = tree.descendants().filter(|node| node.is_element());
    let valued =
        elements.filter_map(|node| Some((node.tag_name().name(), node.text().map(str::trim)?)));
    value_lines(valued, most_words)
}

/// Named values as lines of a page, as [`tree_lines`].
pub(crate) fn value_lines<'a>(
    valued: impl Iterator<Item = (&'a str, &'a str)>,
    most_words: usize,
) -> Vec<TextLine> {
    let valued = valued.filter(|(_, value)| !value.is_empty() && value.len() <= MAX_VALUE);
    let (mut top, mut left_over) = (0.0, most_words);
    let mut lines = Vec::new();
    for (name, value) in valued.take(MAX_LINES) {
        let mut left = 0.0;
        let words = std::iter::once(name).chain(value.split_whitespace()).map(|text| {
            let width = text.chars().map(|_| 6.0_f32).sum();
            let word = TextWord {
                text: text.into(),
                bounding_box: BoundingBox { x: left, y: top, w: width, h: 10.0 },
                confidence: 1.0,
                unwitnessed: false,
            };
            left += width + 6.0;
            word
        });
        let line = TextLine { words: words.collect() };
        let Some(rest) = left_over.checked_sub(line.words.len()) else { break };
        left_over = rest;
        lines.push(line);
        top += 12.0;
    }
    lines
}

/// Characters around an XML that are no part of it: white space, padding of blocks, a mark.
fn is_padding(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\0' | '\u{feff}')
}

/// The text without a document type in front of the root that declares nothing.
fn without_doctype(text: &str) -> String {
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let skipped = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let (opening, closing) = match rest {
            rest if rest.starts_with("<?") => ("<?", "?>"),
            rest if rest.starts_with("<!--") => ("<!--", "-->"),
            rest if rest.starts_with("<!DOCTYPE") => ("<!DOCTYPE", ">"),
            _ => break,
        };
        let Some(end) = rest.find(closing).map(|end| end + closing.len()) else { break };
        let (from, to) = (at + skipped, at + skipped + end);
        if opening == "<!DOCTYPE" {
            let (before, after) = (text.get(..from), text.get(to..));
            let declares = text.get(from..to).is_none_or(|kind| kind.contains('['));
            return match before.zip(after).filter(|_| !declares) {
                Some((before, after)) => [before, after].concat(),
                None => text.to_owned(),
            };
        }
        at = to;
    }
    text.to_owned()
}

/// The text of `bytes` by their mark or the encoding that the declaration names, and whether they
/// contradict it.
fn decode_bytes(bytes: &[u8]) -> Result<(String, bool), XmlError> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => return Ok((decode_utf16(rest, u16::from_le_bytes)?, false)),
        [0xfe, 0xff, rest @ ..] => return Ok((decode_utf16(rest, u16::from_be_bytes)?, false)),
        // Without a mark (XML 1.0, appendix F).
        [b'<', 0, ..] => return Ok((decode_utf16(bytes, u16::from_le_bytes)?, false)),
        [0, b'<', ..] => return Ok((decode_utf16(bytes, u16::from_be_bytes)?, false)),
        _ => {}
    }
    let declared = declared_encoding(bytes);
    let is_ascii = matches!(declared.as_deref(), Some("us-ascii" | "ascii"));
    let encoding = match declared.as_deref() {
        None | Some("us-ascii" | "ascii") => encoding_rs::UTF_8,
        Some(label) => {
            encoding_rs::Encoding::for_label(label.as_bytes()).ok_or(XmlError::Encoding)?
        }
    };
    let is_utf_8 = encoding == encoding_rs::UTF_8;
    let is_wide = [encoding_rs::UTF_16LE, encoding_rs::UTF_16BE].contains(&encoding);
    match std::str::from_utf8(bytes) {
        // Single-byte text that is valid UTF-8 throughout is UTF-8.
        Ok(text) if is_utf_8 || is_wide || encoding.is_single_byte() => {
            let is_other = !is_utf_8 || is_ascii;
            Ok((text.to_owned(), is_other && !text.trim_matches(is_padding).is_ascii()))
        }
        Err(_) if is_utf_8 => Ok((decode_mixed(bytes), true)),
        _ => {
            let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
            text.map(|text| (text.into_owned(), false)).ok_or(XmlError::Encoding)
        }
    }
}

/// UTF-8, and as Windows-1252 the bytes that are none.
fn decode_mixed(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let (rest, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(chunk.invalid());
        text.push_str(&rest);
    }
    text
}

fn decode_utf16(bytes: &[u8], join: fn([u8; 2]) -> u16) -> Result<String, XmlError> {
    if !bytes.len().is_multiple_of(2) {
        return Err(XmlError::Encoding);
    }
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [one, two] => join([*one, *two]),
        _ => 0,
    });
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map_err(|_| XmlError::Encoding)
}

/// The encoding that an XML declaration names, in lower case.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let start = bytes.iter().position(|byte| *byte == b'<')?;
    let declaration = bytes.get(start..)?.strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(declaration, b"?>")?;
    let declaration = declaration.get(..end)?;
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration.get(at..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let end = value.iter().position(|byte| byte == quote)?;
    let name = std::str::from_utf8(value.get(..end)?).ok()?;
    Some(name.to_ascii_lowercase())
}

/// Bounds what the parser's work grows with.
fn prescan_tags(text: &str) -> Result<(), XmlError> {
    let mut marks = [b'<', b'='].into_iter();
    if marks.any(|mark| memchr::memchr_iter(mark, text.as_bytes()).count() > MAX_MARKS) {
        return Err(XmlError::TooLarge);
    }
    let mut rest = text;
    // Namespaces in scope, element by element down to where we are.
    let mut scopes: Vec<usize> = Vec::new();
    let mut inherited = 0_usize;
    while let Some((_, after)) = rest.split_once('<') {
        let aside = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];
        let aside = aside.into_iter().find_map(|(opening, closing)| {
            after.strip_prefix(opening).map(|inside| inside.split_once(closing))
        });
        if let Some(inside) = aside {
            rest = inside.ok_or(XmlError::Malformed)?.1;
            continue;
        }
        if after.starts_with('!') {
            return Err(XmlError::Entities);
        }
        let tag = XmlTag::from_text(after)?;
        rest = tag.rest;
        if after.starts_with('/') {
            scopes.pop();
            continue;
        }
        let outer = scopes.last().copied().unwrap_or(0);
        if tag.attributes > MAX_ATTRIBUTES || scopes.len() >= MAX_DEPTH {
            return Err(XmlError::TooLarge);
        }
        if tag.namespaces > 0 {
            inherited = inherited.saturating_add(outer);
        }
        if inherited > MAX_INHERITED {
            return Err(XmlError::TooLarge);
        }
        if !tag.is_empty {
            scopes.push(outer + tag.namespaces);
        }
    }
    Ok(())
}

/// A tag, as far as it has to be known before it is parsed.
struct XmlTag<'a> {
    attributes: usize,
    namespaces: usize,
    is_empty: bool,
    rest: &'a str,
}

impl<'a> XmlTag<'a> {
    /// The tag whose `<` precedes `text`. A `>` within quotes does not end it.
    fn from_text(text: &'a str) -> Result<Self, XmlError> {
        let (mut quote, mut attributes) = (None, 0);
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (Some(open), byte) if open == byte => quote = None,
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    attributes += 1;
                }
                (None, b'>') => {
                    let (inside, rest) = text.split_at_checked(at).ok_or(XmlError::Malformed)?;
                    let namespaces = memchr::memmem::find_iter(inside.as_bytes(), b"xmlns").count();
                    let is_empty = inside.ends_with('/');
                    return Ok(Self { attributes, namespaces, is_empty, rest });
                }
                _ => {}
            }
        }
        Err(XmlError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<String, XmlError> {
        let xml = XmlText::decode(text)?;
        let tree = xml.parse_tree()?;
        Ok(tree.root_element().text().unwrap_or_default().to_owned())
    }

    fn declared(encoding: &str, bytes: &[u8]) -> Vec<u8> {
        let head = format!("<?xml version='1.0' encoding=\"{encoding}\"?><a>");
        [head.as_bytes(), bytes, b"</a>"].concat()
    }

    #[test]
    fn text_is_decoded_as_it_says_and_what_contradicts_it_is_reported() {
        let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(bytes).collect()
        };
        let umlaut = "<a>Büro</a>";
        #[rustfmt::skip]
        let table: [(&str, Vec<u8>, Result<&str, XmlError>); 25] = [
            ("UTF-8 without a declaration", umlaut.into(),                                   Ok("Büro")),
            ("UTF-8 with its mark",    [b"\xef\xbb\xbf", umlaut.as_bytes()].concat(),      Ok("Büro")),
            ("UTF-8 as declared",      declared("UTF-8", "Büro".as_bytes()),               Ok("Büro")),
            ("UTF-16, small end",      [vec![0xff, 0xfe], wide(umlaut, u16::to_le_bytes)].concat(), Ok("Büro")),
            ("UTF-16, big end",        [vec![0xfe, 0xff], wide(umlaut, u16::to_be_bytes)].concat(), Ok("Büro")),
            ("UTF-16 cut in a unit",   [vec![0xff, 0xfe], wide(umlaut, u16::to_le_bytes), vec![0]].concat(), Err(XmlError::Encoding)),
            ("half a surrogate",       vec![0xff, 0xfe, 0x3c, 0, 0, 0xd8],                 Err(XmlError::Encoding)),
            ("small end, no mark",     wide(umlaut, u16::to_le_bytes),                     Ok("Büro")),
            ("big end, no mark",       wide(umlaut, u16::to_be_bytes),                     Ok("Büro")),
            ("not the Latin 1 it says", declared("ISO-8859-1", "Büro".as_bytes()),         Ok("Büro")),
            ("not the one of its mark", [b"\xef\xbb\xbf".to_vec(), declared("ISO-8859-1", "Büro".as_bytes())].concat(), Ok("Büro")),
            ("not the UTF-16 it says", declared("utf-16", "Büro".as_bytes()),              Ok("Büro")),
            ("ASCII in other letters", declared("utf-16", b"Buro"),                        Ok("Buro")),
            ("ISO 8859-1",             declared("ISO-8859-1", b"B\xfcro"),                 Ok("Büro")),
            ("Windows-1252",           declared("windows-1252", b"5 \x80"),                Ok("5 €")),
            ("ISO 8859-15",            declared("ISO-8859-15", b"5 \xa4"),                 Ok("5 €")),
            ("ISO 8859-2",             declared("iso-8859-2", b"\xa3\xf3d\xbc"),           Ok("Łódź")),
            ("not the UTF-8 it says",  declared("UTF-8", b"B\xfcro"),                      Ok("Büro")),
            ("in parts only",          declared("UTF-8", b"\xc3\xbc \xfcro"),              Ok("ü üro")),
            ("not the ASCII it says",  declared("US-ASCII", b"B\xfcro"),                   Ok("Büro")),
            ("nor ASCII in UTF-8",     declared("US-ASCII", "Büro".as_bytes()),            Ok("Büro")),
            ("ASCII as declared",      declared("US-ASCII", b"Buro"),                      Ok("Buro")),
            ("padding around",         [b"\0 \n\xef\xbb\xbf".to_vec(), declared("UTF-8", b"x"), vec![0; 9]].concat(), Ok("x")),
            ("text behind the end",    [declared("UTF-8", b"x"), b" --part--".to_vec()].concat(), Ok("x")),
            ("an encoding not read",   declared("EBCDIC-CP-DK", b"x"),                     Err(XmlError::Encoding)),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(read(&bytes), expected.map(str::to_owned), "{name}");
            let contradicts = ["not the", "nor", "in parts"].iter().any(|it| name.starts_with(it));
            let reported = XmlText::decode(&bytes).is_ok_and(|xml| xml.is_misdeclared());
            assert_eq!(reported, contradicts, "{name}");
        }
    }

    #[test]
    fn what_would_cost_the_parser_dearly_never_reaches_it() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        let attributes =
            |count: usize| (0..count).map(|n| format!(" a{n}='>'")).collect::<String>();
        let spaces: String = (0..60).map(|n| format!(" xmlns:n{n}='u:{n}'")).collect();
        let (deep, up) = (format!("<a{spaces}>").repeat(40), "</a>".repeat(40));
        let heir = "<a xmlns:x='y'/>";
        let within = format!("{deep}<b>{}</b>{up}", heir.repeat(1000));
        let many = format!("{deep}<b>{}</b>{up}", heir.repeat(20_000));
        let wide =
            format!("<a{}>", (0..50).map(|n| format!(" xmlns:n{n}='u'")).collect::<String>());
        let heirs = MAX_INHERITED / 50;
        #[rustfmt::skip]
        let table: [(&str, String, Option<XmlError>); 24] = [
            ("as deep as is read",   nested(MAX_DEPTH),                                  None),
            ("deeper",               nested(MAX_DEPTH + 1),                              Some(XmlError::TooLarge)),
            ("very deep",            nested(1_000_000),                                Some(XmlError::TooLarge)),
            ("wide, not deep",       format!("<a>{}</a>", "<b/><c></c>".repeat(1000)), None),
            ("many attributes",      format!("<a{}/>", attributes(64)),                None),
            ("too many attributes",  format!("<a{}/>", attributes(65)),                Some(XmlError::TooLarge)),
            ("namespaces handed down", within,                                         None),
            ("and down and down",    many,                                             Some(XmlError::TooLarge)),
            ("and nothing added",    format!("{deep}<b>{}</b>{up}", "<c/>".repeat(5000)), None),
            ("handed down to the last", format!("{wide}{}</a>", "<b xmlns:x='y'/>".repeat(heirs)), None),
            ("and one more",         format!("{wide}{}</a>", "<b xmlns:x='y'/>".repeat(heirs + 1)), Some(XmlError::TooLarge)),
            ("marks in a comment",   format!("<a><!--{}--></a>", "<".repeat(MAX_MARKS - 3)), None),
            ("too many",             format!("<a><!--{}--></a>", "<".repeat(MAX_MARKS - 2)), Some(XmlError::TooLarge)),
            ("signs of equality",    format!("<a>{}</a>", "=".repeat(MAX_MARKS)),     None),
            ("too many of them",     format!("<a>{}</a>", "=".repeat(MAX_MARKS + 1)), Some(XmlError::TooLarge)),
            ("an entity",            "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>".into(), Some(XmlError::Entities)),
            ("a document type only", "<?xml version='1.0'?><!-- [ --><!DOCTYPE a><a/>".into(), None),
            ("one by an address",    "<!DOCTYPE a SYSTEM 'http://a/b'><a/>".into(),    None),
            ("one within",           "<a><!DOCTYPE a></a>".into(),                     Some(XmlError::Entities)),
            ("two",                  "<!DOCTYPE a><!DOCTYPE a [<!ENTITY e 'x'>]><a/>".into(), Some(XmlError::Entities)),
            ("a type in a comment",  "<!-- <!DOCTYPE a> --><a/>".into(),               None),
            ("a type in CDATA",      "<a><![CDATA[<!DOCTYPE a>]]></a>".into(),         None),
            ("cut in a tag",         "<a><b c='".into(),                               Some(XmlError::Malformed)),
            ("cut in a comment",     "<a><!-- ".into(),                                Some(XmlError::Malformed)),
        ];
        for (name, text, expected) in table {
            assert_eq!(XmlText::decode(text.as_bytes()).err(), expected, "{name}");
        }
        let mut large = vec![b' '; MAX_BYTES];
        assert_eq!(XmlText::decode(&large).err(), None);
        large.push(b' ');
        assert_eq!(XmlText::decode(&large).err(), Some(XmlError::TooLarge));
    }

    #[test]
    fn what_the_parser_finds_wrong_has_a_name_too() {
        for (name, text) in [
            ("unclosed", "<a><b></b>"),
            ("crossed", "<a><b></a></b>"),
            ("an unknown entity", "<a>&e;</a>"),
            ("no element", "just text"),
            ("an unknown prefix", "<x:a/>"),
            ("nothing", ""),
        ] {
            assert_eq!(read(text.as_bytes()), Err(XmlError::Malformed), "{name}");
        }
        let spaces: String = (0..70_000).map(|n| format!("<b xmlns='u:{n}'/>")).collect();
        let full = read(format!("<a>{spaces}</a>").as_bytes());
        assert_eq!(full, Err(XmlError::TooLarge), "more namespaces than the parser counts");
    }

    #[test]
    fn values_become_lines_behind_the_names_of_their_elements() {
        let long = "x".repeat(MAX_VALUE + 1);
        let text = format!("<a xmlns='u'><b>\n 1 2 </b><c><d>3</d></c><e/><f>{long}</f></a>");
        let xml = XmlText::decode(text.as_bytes()).unwrap();
        let lines: Vec<String> =
            tree_lines(&xml.parse_tree().unwrap(), 100).iter().map(TextLine::text).collect();
        assert_eq!(lines, ["b 1 2", "d 3"]);
        let places: Vec<(f32, f32)> = tree_lines(&xml.parse_tree().unwrap(), 100)
            .iter()
            .flat_map(|line| line.words.iter().map(|it| (it.bounding_box.x, it.bounding_box.y)))
            .collect();
        assert_eq!(places, [(0.0, 0.0), (12.0, 0.0), (24.0, 0.0), (0.0, 12.0), (12.0, 12.0)]);
        assert_eq!(tree_lines(&xml.parse_tree().unwrap(), 4).len(), 1, "three words and no more");
    }
}
