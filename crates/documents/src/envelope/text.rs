//! Envelopes of text: PEM (RFC 7468), base64 (RFC 4648 §4) and S/MIME (RFC 8551).

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// The labels under which CMS is written as PEM.
const LABELS: [&str; 4] = ["PKCS7", "CMS", "PKCS #7 SIGNED DATA", "SIGNED MESSAGE"];

const PEM_BEGIN: &[u8] = b"-----BEGIN ";
/// Bytes of explanatory text before a PEM block.
const MAX_EXPLANATION_BYTES: usize = 1024;

/// The media types of CMS in a mail, the older one last.
const CMS_TYPES: [&str; 2] = ["application/pkcs7-mime", "application/x-pkcs7-mime"];

/// How long the headers of a mail may be.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Shorter texts are taken for words, not for base64.
const MIN_BASE64_CHARS: usize = 32;

/// Base64 with or without the padding at its end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn is_base64_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The decoded first `window` bytes, if they are base64 and nothing else.
pub(super) fn base64_prefix(bytes: &[u8], window: usize) -> Option<Vec<u8>> {
    let text = without_mark(bytes);
    let text = text.get(..window).unwrap_or(text);
    let is_base64 = text.iter().all(|byte| is_base64_char(*byte) || byte.is_ascii_whitespace());
    let mut digits = compact(text);
    if !is_base64 || digits.len() < MIN_BASE64_CHARS {
        return None;
    }
    digits.truncate(digits.len() / 4 * 4);
    BASE64.decode(digits).ok()
}

/// The characters without the white space between them.
fn compact(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// The bytes that a text in base64 stands for.
pub(crate) fn decode_base64(bytes: &[u8]) -> Result<Vec<u8>, PageRefusal> {
    BASE64.decode(compact(without_mark(bytes))).map_err(|_error| damaged("text in base64"))
}

fn damaged(what: &str) -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, format!("{what} that is damaged or cut off"))
}

/// The text behind the first line of a CMS structure as PEM. Text may explain it before (RFC 7468 §5.2).
fn pem_body(bytes: &[u8]) -> Option<&[u8]> {
    let text = without_mark(bytes);
    let window = text.get(..MAX_EXPLANATION_BYTES).unwrap_or(text);
    let start = memchr::memmem::find(window, PEM_BEGIN)?;
    let (before, text) = text.split_at_checked(start)?;
    let is_line = before.is_ascii() && before.last().is_none_or(u8::is_ascii_whitespace);
    let text = text.strip_prefix(PEM_BEGIN).filter(|_| is_line)?;
    LABELS.iter().find_map(|label| {
        text.strip_prefix(label.as_bytes()).and_then(|text| text.strip_prefix(b"-----"))
    })
}

pub(super) fn is_pem(bytes: &[u8]) -> bool {
    pem_body(bytes).is_some()
}

/// The structure within a PEM.
pub(super) fn decode_pem(bytes: &[u8]) -> Result<Vec<u8>, PageRefusal> {
    let body = pem_body(bytes).and_then(|body| {
        let end = memchr::memmem::find(body, b"-----END")?;
        body.get(..end)
    });
    let body = body.ok_or_else(|| damaged("a signed envelope (PEM)"))?;
    BASE64.decode(compact(body)).map_err(|_error| damaged("a signed envelope (PEM)"))
}

/// The headers of a mail or of one of its parts that matter here, and what follows them.
struct MailPart<'a> {
    /// `Content-Type`, with its parameters.
    media_type: String,
    /// `Content-Transfer-Encoding` in lower case.
    encoding: String,
    body: &'a [u8],
}

impl<'a> MailPart<'a> {
    /// Header lines up to an empty one (RFC 5322 §2.2, RFC 2045 §5 and §6).
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let window = bytes.get(..MAX_HEADER_BYTES).unwrap_or(bytes);
        let mut part = Self { media_type: String::new(), encoding: String::new(), body: bytes };
        let (mut at, mut name) = (0_usize, String::new());
        loop {
            let end = at.checked_add(memchr::memchr(b'\n', window.get(at..)?)?)?;
            let line = std::str::from_utf8(window.get(at..end)?).ok()?.trim_end();
            at = end.checked_add(1)?;
            if line.is_empty() {
                part.body = bytes.get(at..)?;
                return Some(part);
            }
            let value = if line.starts_with([' ', '\t']) {
                line
            } else {
                let (head, value) = line.split_once(':')?;
                if !head.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return None;
                }
                name = head.to_ascii_lowercase();
                value
            };
            match name.as_str() {
                "content-type" => part.media_type.push_str(value.trim()),
                "content-transfer-encoding" => {
                    part.encoding.push_str(&value.trim().to_ascii_lowercase());
                }
                _ => {}
            }
        }
    }

    fn has_type(&self, name: &str) -> bool {
        let own = self.media_type.split(';').next().unwrap_or_default();
        own.trim().eq_ignore_ascii_case(name)
    }

    fn is_cms(&self) -> bool {
        CMS_TYPES.iter().any(|name| self.has_type(name))
    }

    /// The line between the parts, for `multipart/signed`.
    fn boundary(&self) -> Option<String> {
        let parameters = self.media_type.split(';').skip(1);
        let value = parameters.filter_map(|parameter| parameter.split_once('=')).find_map(
            |(name, value)| name.trim().eq_ignore_ascii_case("boundary").then_some(value),
        )?;
        let value = value.trim().trim_matches('"');
        (self.has_type("multipart/signed") && !value.is_empty()).then(|| format!("--{value}"))
    }

    fn decoded_body(&self) -> Result<Vec<u8>, PageRefusal> {
        match self.encoding.as_str() {
            "base64" => decode_base64(self.body),
            "quoted-printable" => Ok(decode_quoted(self.body)),
            _ => Ok(self.body.to_vec()),
        }
    }
}

/// Whether it is a mail that is nothing but a signed content.
pub(super) fn is_signed_mail(bytes: &[u8]) -> bool {
    MailPart::parse(without_mark(bytes))
        .is_some_and(|part| part.is_cms() || part.boundary().is_some())
}

/// The CMS structure of an S/MIME message, or the first part of a `multipart/signed`.
pub(super) fn signed_part(bytes: &[u8]) -> Result<Vec<u8>, PageRefusal> {
    let whole = MailPart::parse(without_mark(bytes)).ok_or_else(|| damaged("a signed mail"))?;
    let Some(boundary) = whole.boundary() else { return whole.decoded_body() };
    let begins = find_line(whole.body, &boundary).ok_or_else(|| damaged("a signed mail"))?;
    let first = whole.body.get(begins.saturating_add(boundary.len())..).unwrap_or_default();
    let first = memchr::memchr(b'\n', first).and_then(|end| first.get(end.checked_add(1)?..));
    let first = first.ok_or_else(|| damaged("a signed mail"))?;
    let end = find_line(first, &boundary).ok_or_else(|| damaged("a signed mail"))?;
    let part = first.get(..end).and_then(MailPart::parse);
    let part = part.ok_or_else(|| damaged("a signed mail"))?;
    if part.media_type.trim_start().to_ascii_lowercase().starts_with("multipart/") {
        let detail = "a signed mail of several parts: send the attached document by itself";
        return Err(PageRefusal::new(OutcomeReason::UnsupportedType, detail));
    }
    part.decoded_body()
}

/// The place of a line that begins with `text`.
fn find_line(bytes: &[u8], text: &str) -> Option<usize> {
    let mut found = memchr::memmem::find_iter(bytes, text.as_bytes());
    found.find(|at| at.checked_sub(1).is_none_or(|before| bytes.get(before) == Some(&b'\n')))
}

/// Quoted-printable (RFC 2045 §6.7). A mark that is none stays as it is.
pub(crate) fn decode_quoted(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'=', [b'\r', b'\n', left @ ..] | [b'\n', left @ ..]) => rest = left,
            (b'=', [high, low, left @ ..]) => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => {
                    found.push(high << 4 | low);
                    rest = left;
                }
                _ => found.push(byte),
            },
            _ => found.push(byte),
        }
    }
    found
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
