//! Files attached to a PDF that are documents themselves, and the files of a portfolio (PDF 32000-1
//! §7.11.4 and §12.3.5).
//!
//! A file that is the source of the pages or another form of them (`AFRelationship`) is none, nor is an
//! e-invoice, which belongs to the pages. A portfolio's files all are; its own page is a cover.

use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::hayro_syntax::object::{
    Dict, Name, Object, Stream, String as PdfString,
};

use super::attachments::{file_specifications, full_name, is_wrapped_einvoice, may_carry};
use crate::container::{MemberCollector, is_attached_document};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;
use docmill_core::model::digest::sha256_hex;

/// Attached files that are looked at.
const MAX_EXAMINED_FILES: usize = 2000;

/// Whether a PDF is a portfolio: its pages are a cover around its files.
pub(crate) fn is_portfolio(pdf: &Pdf) -> bool {
    may_carry(pdf.data().as_ref())
        && pdf.objects().into_iter().any(|object| match object {
            Object::Dict(dictionary) => {
                dictionary.contains_key(b"Collection")
                    && dictionary
                        .get::<Name<'_>>(b"Type")
                        .is_some_and(|name| name.as_ref() == b"Catalog")
            }
            _ => false,
        })
}

/// Adds the attached documents; of a portfolio every file.
///
/// # Errors
/// `too_large`; `corrupt` for a file of a portfolio that cannot be taken out.
pub(crate) fn add_attached_files(
    pdf: &Pdf,
    is_portfolio: bool,
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    if !may_carry(pdf.data().as_ref()) {
        return Ok(());
    }
    let mut files: Vec<Dict<'_>> = Vec::new();
    for object in pdf.objects() {
        files.extend(file_specifications(object));
    }
    if files.len() > MAX_EXAMINED_FILES {
        let detail = format!("more than {MAX_EXAMINED_FILES} files are attached to it");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    let mut known: Vec<String> = Vec::new();
    for file in &files {
        let Some(content) = content_of(file) else {
            if is_portfolio {
                let detail = "a file of a PDF portfolio cannot be taken out";
                return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
            }
            continue;
        };
        // The same specification may stand in several places.
        let digest = sha256_hex(&content);
        if known.contains(&digest) || !(is_portfolio || is_document(file, &content)) {
            continue;
        }
        known.push(digest);
        let name = [&b"UF"[..], b"F"].into_iter().find_map(|key| file.get::<PdfString<'_>>(key));
        let name = name.map(|name| full_name(name.as_bytes()));
        found.add(name.as_deref(), content)?;
    }
    Ok(())
}

/// Whether an attached file is a document of its own.
fn is_document(file: &Dict<'_>, content: &[u8]) -> bool {
    let relation = file.get::<Name<'_>>(b"AFRelationship");
    let is_same =
        relation.is_some_and(|name| [&b"Source"[..], b"Alternative"].contains(&name.as_ref()));
    !is_same && is_attached_document(content) && !is_wrapped_einvoice(content)
}

fn content_of(file: &Dict<'_>) -> Option<Vec<u8>> {
    let files = file.get::<Dict<'_>>(b"EF")?;
    let mut keys = [&b"F"[..], b"UF", b"DOS", b"Mac", b"Unix"].into_iter();
    let stream = keys.find_map(|key| files.get::<Stream<'_>>(key))?;
    Some(stream.decoded_data().ok()?.into_owned())
}
