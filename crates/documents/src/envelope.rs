//! Envelopes around a document: signatures, compression and transport encodings, opened one after
//! the other until the document itself is reached.
//!
//! Read are CMS signed data in BER or DER, bare or as PEM (`.p7m`; RFC 5652 §5, RFC 7468 §8), the
//! S/MIME forms of it and of `multipart/signed` (RFC 8551 §3), base64, gzip (RFC 1952), and a ZIP
//! of one XML file and signatures (the download form of Romania's RO e-Factura). **No signature is verified**:
//! the content is taken as it is.
//!
//! Bounds: [`MAX_ENVELOPES`] around one document, and `limits.document_bytes` for what each one
//! holds. An envelope whose lengths exceed its bytes is refused as `corrupt`.

mod archive;
mod cms;
mod content_bound;
mod text;

use bytes::Bytes;

use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;
pub(crate) use text::{decode_base64, decode_quoted};

/// Envelopes around one document: base64 twice, two signatures, and two of transport.
const MAX_ENVELOPES: usize = 6;

/// How many are looked through: one more, so that it is named.
const MAX_RECOGNISED: usize = MAX_ENVELOPES + 1;

/// How much of a text in base64 is decoded to see what it holds.
const PREFIX_BYTES: usize = 4096;

/// How an envelope is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvelopeForm {
    Cms,
    Pem,
    Mime,
    Base64,
    Gzip,
    Zip,
}

/// Whether bytes begin as a document without an envelope.
type DocumentSign = fn(&[u8]) -> bool;

/// The form of an envelope, by its first bytes. Base64, gzip and ZIP are envelopes only if what they
/// hold begins like a document: nothing else distinguishes them from other files.
fn recognise(bytes: &[u8], depth: usize, is_document: DocumentSign) -> Option<EnvelopeForm> {
    let depth = depth.checked_sub(1)?;
    if cms::is_cms(bytes) {
        Some(EnvelopeForm::Cms)
    } else if archive::is_gzip(bytes) {
        let start = archive::gzip_prefix(bytes, PREFIX_BYTES);
        holds_document(&start, depth, is_document).then_some(EnvelopeForm::Gzip)
    } else if archive::is_xml_archive(bytes) {
        Some(EnvelopeForm::Zip)
    } else if text::is_pem(bytes) {
        Some(EnvelopeForm::Pem)
    } else if text::is_signed_mail(bytes) {
        Some(EnvelopeForm::Mime)
    } else {
        let start = text::base64_prefix(bytes, PREFIX_BYTES)?;
        holds_document(&start, depth, is_document).then_some(EnvelopeForm::Base64)
    }
}

fn holds_document(start: &[u8], depth: usize, is_document: DocumentSign) -> bool {
    is_document(start) || recognise(start, depth, is_document).is_some()
}

/// Whether `bytes`, or the first of them, are an envelope that is opened; `is_document` recognises
/// what may be in one.
pub(crate) fn is_envelope(bytes: &[u8], is_document: DocumentSign) -> bool {
    recognise(bytes, MAX_RECOGNISED, is_document).is_some()
}

/// The document within its envelopes, each up to `most` bytes; `bytes` itself if there are none.
///
/// # Errors
/// `corrupt` for an envelope that is damaged; `too_large`; `encrypted`; `unsupported_type` for a
/// signature without the document that it signs, and for several documents in one.
pub(crate) fn open_envelopes(
    bytes: Bytes,
    most: u64,
    is_document: DocumentSign,
) -> Result<Bytes, PageRefusal> {
    let mut inner = bytes;
    for _ in 0..MAX_ENVELOPES {
        let Some(form) = recognise(&inner, MAX_RECOGNISED, is_document) else { return Ok(inner) };
        let content = match form {
            EnvelopeForm::Cms => cms::signed_content(&inner, most),
            EnvelopeForm::Pem => text::decode_pem(&inner),
            EnvelopeForm::Mime => text::signed_part(&inner),
            EnvelopeForm::Base64 => decode_base64(&inner),
            EnvelopeForm::Gzip => archive::inflate_gzip(&inner, most),
            EnvelopeForm::Zip => archive::only_document(&inner, most),
        }?;
        inner = content.into();
    }
    if is_envelope(&inner, is_document) {
        let detail = format!("more than {MAX_ENVELOPES} envelopes around the document");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    Ok(inner)
}

#[cfg(test)]
mod tests;
