//! CMS signed data (RFC 5652 §5) in BER (X.690), down to the content that is signed.
//!
//! A walk of our own over tags and lengths: the maintained readers of CMS take DER alone, and many
//! signers write the content as chunks of indefinite length. Nothing behind the content is read:
//! certificates and signatures are not verified.

use super::content_bound::too_large;
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// `1.2.840.113549.1.7`, the content types of PKCS #7, without the last number.
const PKCS_7: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];

/// The last number of the content types.
const SIGNED: u8 = 2;
const ENVELOPED: u8 = 3;
const SIGNED_AND_ENVELOPED: u8 = 4;
const ENCRYPTED: u8 = 6;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OCTET_CHUNKS: u8 = 0x24;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const EXPLICIT_0: u8 = 0xa0;

/// Levels of elements within each other: the chunks of a content need 2, algorithms 3.
const MAX_DEPTH: usize = 12;

/// Whether it begins as a sequence with a content type of PKCS #7.
pub(super) fn is_cms(bytes: &[u8]) -> bool {
    content_type(bytes).is_some()
}

/// The last number of the content type, and what follows it.
fn content_type(bytes: &[u8]) -> Option<(u8, &[u8])> {
    // The first bytes of a file are enough.
    let inside = parse_header(bytes).filter(|header| header.tag == SEQUENCE)?.rest;
    let (kind, rest) = read_element(inside, 0)?;
    let last = kind.content.strip_prefix(&PKCS_7).filter(|_| kind.tag == OBJECT_IDENTIFIER)?;
    match last {
        [number] => Some((*number, rest)),
        _ => None,
    }
}

/// The content that is signed, up to `most` bytes.
///
/// # Errors
/// `corrupt` for lengths that contradict the bytes, `too_large`, `encrypted`, and
/// `unsupported_type` for a signature without content.
pub(super) fn signed_content(bytes: &[u8], most: u64) -> Result<Vec<u8>, PageRefusal> {
    let (number, rest) = content_type(bytes).ok_or_else(damaged)?;
    match number {
        SIGNED => {}
        ENVELOPED | SIGNED_AND_ENVELOPED | ENCRYPTED => {
            let detail = "an encrypted envelope (CMS), which is not opened";
            return Err(PageRefusal::new(OutcomeReason::Encrypted, detail));
        }
        _ => {
            let detail = "an envelope (CMS) that is neither signed nor encrypted data";
            return Err(PageRefusal::new(OutcomeReason::UnsupportedType, detail));
        }
    }
    let signed = enter(rest, EXPLICIT_0).and_then(|inside| enter(inside, SEQUENCE));
    let encapsulated = signed.and_then(|inside| {
        let rest = skip(skip(inside, INTEGER)?, SET)?;
        read_header(rest).filter(|header| header.tag == SEQUENCE)
    });
    let encapsulated = encapsulated.ok_or_else(damaged)?;
    let rest = skip(encapsulated.rest, OBJECT_IDENTIFIER).ok_or_else(damaged)?;
    if is_end(&encapsulated, rest) {
        let detail = "a signature (CMS) without the document that it signs";
        return Err(PageRefusal::new(OutcomeReason::UnsupportedType, detail));
    }
    let octets = enter(rest, EXPLICIT_0).ok_or_else(damaged)?;
    let mut content = Vec::new();
    collect_octets(octets, MAX_DEPTH, &mut content).ok_or_else(damaged)?;
    if u64::try_from(content.len()).is_ok_and(|length| length <= most) {
        Ok(content)
    } else {
        Err(too_large(most))
    }
}

fn damaged() -> PageRefusal {
    let detail = "a signed envelope (CMS) that is damaged or cut off";
    PageRefusal::new(OutcomeReason::Corrupt, detail)
}

/// Tag and length of an element.
struct ElementHeader<'a> {
    tag: u8,
    /// Bytes of the content; `None`: up to an end marker.
    length: Option<usize>,
    /// The content and all that follows.
    rest: &'a [u8],
}

/// An element with all of its content.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// The header of the element that `bytes` begin with; `None` if there is none, or if its length
/// exceeds them. Tags above 30 do not occur.
fn read_header(bytes: &[u8]) -> Option<ElementHeader<'_>> {
    let header = parse_header(bytes)?;
    header.length.is_none_or(|length| length <= header.rest.len()).then_some(header)
}

/// As [`read_header`], however long the element is.
fn parse_header(bytes: &[u8]) -> Option<ElementHeader<'_>> {
    let (&tag, rest) = bytes.split_first().filter(|(tag, _)| **tag & 0x1f != 0x1f)?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0x80 if tag & 0x20 != 0 => return Some(ElementHeader { tag, length: None, rest }),
        0..0x80 => (usize::from(first), rest),
        0x81..=0x88 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0_u64, |sum, digit| sum << 8 | u64::from(*digit));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    Some(ElementHeader { tag, length: Some(length), rest })
}

/// The inside of an element of this tag, and all that follows it.
fn enter(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let header = read_header(bytes).filter(|header| header.tag == tag)?;
    Some(header.rest)
}

/// The bytes behind an element of this tag.
fn skip(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (element, rest) = read_element(bytes, MAX_DEPTH)?;
    (element.tag == tag).then_some(rest)
}

/// An element and what follows it. Those of indefinite length are walked through, down to `depth`
/// levels below it.
fn read_element(bytes: &[u8], depth: usize) -> Option<(Element<'_>, &[u8])> {
    let ElementHeader { tag, length, rest } = read_header(bytes)?;
    if let Some(length) = length {
        let (content, rest) = rest.split_at_checked(length)?;
        return Some((Element { tag, content }, rest));
    }
    let mut inside = rest;
    loop {
        if let Some(after) = inside.strip_prefix(&[0, 0]) {
            let content = rest.get(..rest.len().checked_sub(inside.len())?)?;
            return Some((Element { tag, content }, after));
        }
        inside = read_element(inside, depth.checked_sub(1)?)?.1;
    }
}

/// Whether the content of an element ends where `rest` begins.
fn is_end(header: &ElementHeader<'_>, rest: &[u8]) -> bool {
    match header.length {
        Some(length) => header.rest.len().saturating_sub(rest.len()) >= length,
        None => rest.starts_with(&[0, 0]),
    }
}

/// Adds the bytes of an octet string, in one piece or in chunks, and gives what follows it.
fn collect_octets<'a>(bytes: &'a [u8], depth: usize, found: &mut Vec<u8>) -> Option<&'a [u8]> {
    let header = read_header(bytes)?;
    match (header.tag, header.length) {
        (OCTETS, Some(length)) => {
            let (content, rest) = header.rest.split_at_checked(length)?;
            found.extend_from_slice(content);
            Some(rest)
        }
        (OCTET_CHUNKS, Some(length)) => {
            let (mut inside, rest) = header.rest.split_at_checked(length)?;
            while !inside.is_empty() {
                inside = collect_octets(inside, depth.checked_sub(1)?, found)?;
            }
            Some(rest)
        }
        (OCTET_CHUNKS, None) => {
            let mut inside = header.rest;
            loop {
                if let Some(rest) = inside.strip_prefix(&[0, 0]) {
                    return Some(rest);
                }
                inside = collect_octets(inside, depth.checked_sub(1)?, found)?;
            }
        }
        _ => None,
    }
}
