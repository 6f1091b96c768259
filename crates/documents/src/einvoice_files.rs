//! Files within an e-invoice in UBL or CII (BG-24) that are documents themselves: time sheets, proofs of
//! delivery. Pictures of the invoice itself are none. Plain text and CSV have no signature and are
//! listed by name alone, as in a PDF.

use crate::container::{MemberCollector, is_attached_document};
use crate::envelope::decode_base64;
use crate::refusal::PageRefusal;
use docmill_formats::einvoice::list_supporting_files;
use docmill_formats::xml::XmlText;

/// The ending of the elements that hold files.
const FILE_ELEMENT: &str = "BinaryObject";

/// Adds the documents; the result: whether all files could be decoded.
///
/// # Errors
/// `too_large`; those of XML.
pub(crate) fn add_supporting_files(
    bytes: &[u8],
    found: &mut MemberCollector<'_>,
) -> Result<bool, PageRefusal> {
    let xml = XmlText::decode(bytes)?;
    if !xml.contains(FILE_ELEMENT) {
        return Ok(true);
    }
    let mut are_whole = true;
    for file in list_supporting_files(&xml.parse_tree()?) {
        match decode_base64(file.base64.as_bytes()) {
            Ok(content) if is_attached_document(&content) => {
                found.add(file.name.as_deref(), content)?;
            }
            Ok(_) => {}
            Err(_damaged) => are_whole = false,
        }
    }
    Ok(are_whole)
}
