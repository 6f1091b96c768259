//! `winmail.dat`: what Outlook sends to others in place of a MIME structure (MS-OXTNEF).
//!
//! Attachments with their long names, and attached messages. The text of the message is read from its
//! plain form only.

use super::outlook::{self, PropertyKind};
use super::{MemberCollector, mail_text};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

const SIGNATURE: [u8; 4] = [0x78, 0x9f, 0x3e, 0x22];
/// Signature and key.
const HEAD_BYTES: usize = 6;

/// Attributes (MS-OXTNEF 2.1.3.3).
const BODY: u32 = 0x0002_800c;
const ATTACHMENT_BEGINS: u32 = 0x0006_9002;
const ATTACHMENT_TITLE: u32 = 0x0001_8010;
const ATTACHMENT_DATA: u32 = 0x0006_800f;
const ATTACHMENT_PROPERTIES: u32 = 0x0006_9005;

/// Properties of an attachment (MS-OXPROPS).
const LONG_NAME: u16 = 0x3707;
const DATA: u16 = 0x3701;
/// Before an attached message stands the identifier of its interface.
const INTERFACE_BYTES: usize = 16;

pub(super) fn is_tnef(bytes: &[u8]) -> bool {
    bytes.starts_with(&SIGNATURE)
}

/// An attachment, as far as it was read.
#[derive(Default)]
struct TnefAttachment {
    name: Option<String>,
    data: Option<Vec<u8>>,
}

impl TnefAttachment {
    fn add_to(self, found: &mut MemberCollector<'_>) -> Result<(), PageRefusal> {
        let Some(data) = self.data else { return Ok(()) };
        let usual = is_tnef(&data).then_some("message.dat");
        found.add(self.name.as_deref().or(usual), data)
    }
}

/// The members of a stream.
pub(super) fn add_members(
    bytes: &[u8],
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let mut rest = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let (mut attachment, mut text) = (TnefAttachment::default(), String::new());
    while !rest.is_empty() {
        let (id, value, after) = split_attribute(rest).ok_or_else(damaged)?;
        rest = after;
        match id {
            ATTACHMENT_BEGINS => std::mem::take(&mut attachment).add_to(found)?,
            ATTACHMENT_TITLE => {
                attachment.name = attachment.name.take().or_else(|| Some(narrow_text(value)));
            }
            ATTACHMENT_DATA => attachment.data = Some(value.to_vec()),
            ATTACHMENT_PROPERTIES => read_properties(value, &mut attachment),
            BODY => text = narrow_text(value),
            _ => {}
        }
    }
    attachment.add_to(found)?;
    if found.has_pictures_alone() && mail_text::states_amount(&text) {
        found.add(Some("mail.txt"), mail_text::as_plain_file(&text))?;
    }
    Ok(())
}

/// Level, identifier, length, value and checksum of the first attribute; its identifier, its value and
/// what follows.
fn split_attribute(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let id = u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?);
    let length = usize::try_from(u32::from_le_bytes(bytes.get(5..9)?.try_into().ok()?)).ok()?;
    let value = bytes.get(9..9_usize.checked_add(length)?)?;
    let after = bytes.get(9_usize.checked_add(length)?.checked_add(2)?..)?;
    Some((id, value, after))
}

/// Name and attached message out of the properties; those behind one that is damaged are lost.
fn read_properties(bytes: &[u8], attachment: &mut TnefAttachment) {
    let mut rest = bytes.get(4..).unwrap_or_default();
    while let Some((tag, kind, value, after)) = split_property(rest) {
        rest = after;
        match (tag, kind) {
            (LONG_NAME, _) => attachment.name = Some(outlook::decode_text(value, kind)),
            (DATA, PropertyKind::Object) => {
                attachment.data = value.get(INTERFACE_BYTES..).map(<[u8]>::to_vec);
            }
            _ => {}
        }
    }
}

/// Tag, kind and first value of the first property, and what follows (MS-OXTNEF 2.1.3.4).
fn split_property(bytes: &[u8]) -> Option<(u16, PropertyKind, &[u8], &[u8])> {
    let code = u16::from_le_bytes(bytes.get(0..2)?.try_into().ok()?);
    let tag = u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?);
    let mut at = 4;
    if tag >= 0x8000 {
        // A named property: its set, and a number or a name.
        let by_name = u32::from_le_bytes(bytes.get(at + 16..at + 20)?.try_into().ok()?) == 1;
        at += 20;
        let length =
            usize::try_from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()?;
        at += 4;
        at = if by_name { at.checked_add(padded(length)?)? } else { at };
    }
    let kind = PropertyKind::from_code(code & 0x0fff)?;
    let is_list = code & 0x1000 != 0;
    let Some(size) = kind.fixed_bytes().filter(|_| !is_list) else {
        let mut count = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        at += 4;
        let mut first: &[u8] = &[];
        let mut is_first = true;
        while count > 0 {
            let length = match kind.fixed_bytes() {
                Some(size) => size,
                None => {
                    let stated = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
                    at += 4;
                    usize::try_from(stated).ok()?
                }
            };
            let value = bytes.get(at..at.checked_add(length)?)?;
            if is_first {
                (first, is_first) = (value, false);
            }
            at = at.checked_add(padded(length)?)?;
            count -= 1;
        }
        return Some((tag, kind, first, bytes.get(at..)?));
    };
    let value = bytes.get(at..at.checked_add(size)?)?;
    Some((tag, kind, value, bytes.get(at.checked_add(padded(size)?)?..)?))
}

/// Values begin at multiples of four bytes.
fn padded(length: usize) -> Option<usize> {
    length.checked_next_multiple_of(4)
}

/// Text of one byte a letter.
fn narrow_text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    outlook::decode_text(text, PropertyKind::Narrow)
}

fn damaged() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "a winmail.dat that is damaged or cut off")
}
