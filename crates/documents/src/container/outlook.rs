//! Messages as Outlook stores them: `.msg`, a compound file with a stream for each property (MS-OXMSG).
//!
//! Attachments of an attached message are members of the outer one. The text is read in its HTML and
//! plain forms; RTF is not read.

use std::io::{Cursor, Read as _};
use std::path::Path;

use cfb::CompoundFile;
use encoding_rs::WINDOWS_1252;

use super::mail::is_small_picture;
use super::{MemberCollector, mail_text};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

const SIGNATURE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// The storage that maps names of properties: only messages have it.
const NAMED_PROPERTIES: &str = "__nameid_version1.0";
const ATTACHMENT: &str = "__attach_version1.0_#";
/// The storage of a message within an attachment.
const ATTACHED_MESSAGE: &str = "__substg1.0_3701000D";

/// Streams of properties, without their type.
const SUBJECT: &str = "__substg1.0_0037";
const TEXT: &str = "__substg1.0_1000";
const HTML: &str = "__substg1.0_1013";
const DATA: &str = "__substg1.0_37010102";
const NAMES: [&str; 3] = ["__substg1.0_3707", "__substg1.0_3704", "__substg1.0_3001"];
const CONTENT_ID: &str = "__substg1.0_3712";

/// Messages within messages; attachments deeper within are not read.
const MAX_NESTED_MESSAGES: usize = 5;
/// Bytes of a name or subject that are read, and of a text.
const MAX_NAME_BYTES: u64 = 4096;
const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Types of properties (MS-OXCDATA 2.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PropertyKind {
    /// A number or time of so many bytes.
    Number(usize),
    /// Text of one byte a letter.
    Narrow,
    /// Text in UTF-16.
    Wide,
    /// Bytes.
    Binary,
    /// An object with its interface.
    Object,
}

impl PropertyKind {
    pub(super) fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            0x02 | 0x0b => Self::Number(2),
            0x03 | 0x04 | 0x0a => Self::Number(4),
            0x05 | 0x06 | 0x07 | 0x14 | 0x40 => Self::Number(8),
            0x48 => Self::Number(16),
            0x1e => Self::Narrow,
            0x1f => Self::Wide,
            0x102 => Self::Binary,
            0x0d => Self::Object,
            _ => return None,
        })
    }

    /// Bytes of a value, if all have as many.
    pub(super) fn fixed_bytes(self) -> Option<usize> {
        match self {
            Self::Number(size) => Some(size),
            _ => None,
        }
    }
}

/// The text of a property.
pub(super) fn decode_text(bytes: &[u8], kind: PropertyKind) -> String {
    let text: String = if kind == PropertyKind::Wide {
        let units = bytes.chunks_exact(2).map(|pair| match pair {
            [low, high] => u16::from_le_bytes([*low, *high]),
            _ => 0,
        });
        char::decode_utf16(units)
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    } else {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        }
    };
    text.trim_end_matches('\0').to_owned()
}

/// Whether it is a compound file, of a message or of an older Office document.
pub(super) fn is_compound(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// Whether it is a compound file of a message: the name of a storage of it is in it.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let name: Vec<u8> = NAMED_PROPERTIES.encode_utf16().flat_map(u16::to_le_bytes).collect();
    is_compound(bytes) && memchr::memmem::find(bytes, &name).is_some()
}

type Compound<'a> = CompoundFile<Cursor<&'a [u8]>>;

/// The members of a message.
pub(super) fn add_members(
    bytes: &[u8],
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let mut file = CompoundFile::open(Cursor::new(bytes)).map_err(|_error| damaged())?;
    let mut open = vec![("/".to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for attachment in list_attachments(&file, &folder)? {
            let nested = format!("{attachment}/{ATTACHED_MESSAGE}");
            if !file.is_storage(&nested) {
                add_attachment(&mut file, &attachment, found)?;
            } else if depth < MAX_NESTED_MESSAGES {
                open.push((nested, depth + 1));
            } else {
                let detail = format!("messages in it lie deeper than {MAX_NESTED_MESSAGES} levels");
                return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
            }
        }
    }
    if found.has_pictures_alone() { add_text(&mut file, found) } else { Ok(()) }
}

/// The storages of a message's attachments, in their order.
fn list_attachments(file: &Compound<'_>, folder: &str) -> Result<Vec<String>, PageRefusal> {
    let entries = file.read_storage(folder).map_err(|_error| damaged())?;
    let own = entries.filter(|entry| entry.is_storage() && entry.name().starts_with(ATTACHMENT));
    let mut paths: Vec<String> =
        own.map(|entry| format!("{}/{}", folder.trim_end_matches('/'), entry.name())).collect();
    paths.sort_unstable();
    Ok(paths)
}

fn add_attachment(
    file: &mut Compound<'_>,
    path: &str,
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let data = format!("{path}/{DATA}");
    // Of one by reference there are no bytes.
    if !file.is_stream(&data) {
        return Ok(());
    }
    let content = read_stream(file, &data, found.room().saturating_add(1))?;
    let name =
        NAMES.iter().find_map(|name| read_text(file, &format!("{path}/{name}"), MAX_NAME_BYTES));
    let is_inline = read_text(file, &format!("{path}/{CONTENT_ID}"), MAX_NAME_BYTES).is_some();
    if is_inline && is_small_picture(&content) {
        return Ok(());
    }
    found.add(name.as_deref(), content)
}

/// The text of the message, if it states an amount.
fn add_text(file: &mut Compound<'_>, found: &mut MemberCollector<'_>) -> Result<(), PageRefusal> {
    let subject = read_text(file, &format!("/{SUBJECT}"), MAX_NAME_BYTES);
    let subject = subject.as_deref().unwrap_or("mail");
    let html = format!("/{HTML}0102");
    if file.is_stream(&html) {
        // Its own statement of its letters holds.
        let content = read_stream(file, &html, MAX_TEXT_BYTES)?;
        if mail_text::states_amount(&decode_text(&content, PropertyKind::Narrow)) {
            return found.add(Some(&format!("{subject}.html")), content);
        }
        // Outlook shows the HTML only; plain text beside it is never displayed.
        return Ok(());
    }
    for (form, extension) in [(HTML, "html"), (TEXT, "txt")] {
        let Some(text) = read_text(file, &format!("/{form}"), MAX_TEXT_BYTES) else { continue };
        if mail_text::states_amount(&text) {
            let content = match extension {
                "html" => mail_text::as_file(&text),
                _ => mail_text::as_plain_file(&text),
            };
            return found.add(Some(&format!("{subject}.{extension}")), content);
        }
        break;
    }
    Ok(())
}

/// A property of text; `None`: it is not there.
fn read_text(file: &mut Compound<'_>, path: &str, most: u64) -> Option<String> {
    for (code, kind) in [("001F", PropertyKind::Wide), ("001E", PropertyKind::Narrow)] {
        let path = format!("{path}{code}");
        if file.is_stream(&path) {
            let text = decode_text(&read_stream(file, &path, most).ok()?, kind);
            return Some(text).filter(|text| !text.is_empty());
        }
    }
    None
}

/// The bytes of a stream, up to `most`.
fn read_stream(file: &mut Compound<'_>, path: &str, most: u64) -> Result<Vec<u8>, PageRefusal> {
    let stream = file.open_stream(Path::new(path)).map_err(|_error| damaged())?;
    let mut content = Vec::new();
    stream.take(most).read_to_end(&mut content).map_err(|_error| damaged())?;
    Ok(content)
}

fn damaged() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "an Outlook message that is damaged or cut off")
}
