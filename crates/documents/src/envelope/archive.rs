//! Compressed envelopes: gzip, and the ZIP in which Romania's RO e-Factura hands out an invoice: one XML and a
//! file of signatures.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::content_bound::too_large;
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;
use docmill_formats::einvoice::XmlRootName;

/// Files of a ZIP that is looked into: an invoice, its signatures, its attachments.
const MAX_FILES: usize = 16;

/// Local file header of a ZIP, up to the name of its file (APPNOTE 4.3.7).
const HEADER_BYTES: usize = 30;

/// The namespace of the root of a file of signatures.
const SIGNATURES: &str = "http://www.w3.org/2000/09/xmldsig#";

/// Deflate (method 8) is the only one there is.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// The first bytes that a gzip holds, up to `window`; fewer of one that is cut off.
pub(super) fn gzip_prefix(bytes: &[u8], window: usize) -> Vec<u8> {
    let mut start = Vec::new();
    let most = u64::try_from(window).unwrap_or(u64::MAX);
    // A damaged gzip gives the bytes up to the damage.
    drop(MultiGzDecoder::new(bytes).take(most).read_to_end(&mut start));
    start
}

pub(super) fn inflate_gzip(bytes: &[u8], most: u64) -> Result<Vec<u8>, PageRefusal> {
    read_up_to(MultiGzDecoder::new(bytes), most, "a gzip file")
}

fn read_up_to(reader: impl Read, most: u64, what: &str) -> Result<Vec<u8>, PageRefusal> {
    let mut found = Vec::new();
    let read = reader.take(most.saturating_add(1)).read_to_end(&mut found);
    if u64::try_from(found.len()).unwrap_or(u64::MAX) > most {
        return Err(too_large(most));
    }
    read.map_err(|_error| damaged(what))?;
    Ok(found)
}

fn damaged(what: &str) -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, format!("{what} that is damaged or cut off"))
}

/// Whether it is a ZIP whose first file lies in no folder and ends in `.xml`: no Office document
/// begins so.
pub(super) fn is_xml_archive(bytes: &[u8]) -> bool {
    let Some(header) = bytes.strip_prefix(b"PK\x03\x04").and(bytes.get(..HEADER_BYTES)) else {
        return false;
    };
    let length = match header.get(26..28) {
        Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
        _ => return false,
    };
    let name = bytes.get(HEADER_BYTES..HEADER_BYTES.saturating_add(length)).unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    lower.ends_with(b".xml") && lower != b"[content_types].xml" && !lower.contains(&b'/')
}

/// The only XML of a ZIP that is no file of signatures.
pub(super) fn only_document(bytes: &[u8], most: u64) -> Result<Vec<u8>, PageRefusal> {
    let mut archive =
        ZipArchive::new(Cursor::new(bytes)).map_err(|_error| damaged("a ZIP archive"))?;
    if archive.len() > MAX_FILES {
        let detail = format!("a ZIP archive of more than {MAX_FILES} files");
        return Err(PageRefusal::new(OutcomeReason::UnsupportedType, detail));
    }
    let mut found: Option<Vec<u8>> = None;
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(|_error| damaged("a ZIP archive"))?;
        let name = file.name().map_err(|_error| damaged("a ZIP archive"))?;
        if !name.to_ascii_lowercase().ends_with(".xml") {
            continue;
        }
        let content = read_up_to(file, most, "a ZIP archive")?;
        if XmlRootName::sniff(&content).is_some_and(|root| root.namespace == SIGNATURES) {
            continue;
        }
        if found.replace(content).is_some() {
            let detail = "a ZIP archive of several documents: send each by itself";
            return Err(PageRefusal::new(OutcomeReason::UnsupportedType, detail));
        }
    }
    let detail = "a ZIP archive without a document in XML";
    found.ok_or_else(|| PageRefusal::new(OutcomeReason::UnsupportedType, detail))
}
