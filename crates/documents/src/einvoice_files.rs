//! Files within an e-invoice in UBL or CII (BG-24) that are documents themselves: time sheets, proofs of
//! delivery. Pictures of the invoice itself are none. Plain text and CSV have no signature and are
//! listed by name alone, as in a PDF.

use bytes::Bytes;

use crate::container::{FoundMembers, MemberCollector, is_attached_document};
use crate::envelope::decode_base64;
use docmill_formats::einvoice::list_supporting_files;
use docmill_formats::xml::XmlTree;

/// The documents within an e-invoice; empty where they are too many or too large. The e-invoice is
/// read in any case.
pub(crate) fn find_supporting_files(
    tree: &XmlTree<'_>,
    mut members: MemberCollector<'_>,
) -> FoundMembers {
    let mut are_left_out = false;
    for file in list_supporting_files(tree) {
        match decode_base64(file.base64.as_bytes()) {
            Ok(content) if is_attached_document(&content) => {
                if members.add(file.name.as_deref(), content).is_err() {
                    return FoundMembers::left_out();
                }
            }
            Ok(_) => {}
            Err(_damaged) => are_left_out = true,
        }
    }
    let mut found = members.finish(Bytes::new());
    found.are_left_out = are_left_out;
    found
}
