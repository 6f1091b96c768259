//! Whether a PDF is a form: one that people type into, as olmOCR's filter asks (fields of the type
//! `Tx`, PDF 32000-1 §12.7.3). Boxes and signatures alone are none. Not promised: forms of XFA alone,
//! and PDFs that cannot be taken apart, which are no forms here.

use std::collections::BTreeSet;

use lopdf::{Dictionary, LoadOptions, Object, ObjectId};

use super::format::DocumentFormat;
use super::refusal::catch_decoder;
use docmill_core::config::LimitsConfig;

/// More fields than this are looked at in no form.
const MOST_FIELDS: usize = 100_000;

/// Whether somebody is to type into it.
pub(super) fn has_text_fields(bytes: &[u8], format: DocumentFormat, limits: &LimitsConfig) -> bool {
    let worth = format == DocumentFormat::Pdf
        && [&b"/AcroForm"[..], b"/ObjStm"]
            .iter()
            .any(|word| memchr::memmem::find(bytes, word).is_some());
    worth && catch_decoder(|| Ok(find_text_field(bytes, limits))).unwrap_or(false)
}

/// How far the file expands was checked when it was opened.
fn find_text_field(bytes: &[u8], limits: &LimitsConfig) -> bool {
    let most = usize::try_from(limits.decompressed_bytes.0).unwrap_or(usize::MAX);
    let options = LoadOptions::with_max_decompressed_size(most);
    let Ok(document) = lopdf::Document::load_mem_with_options(bytes, options) else { return false };
    let form = document.catalog().ok().and_then(|catalog| entry(&document, catalog, b"AcroForm"));
    let Some(form) = form.and_then(|form| form.as_dict().ok()) else { return false };
    let (mut open, mut seen) = (children(&document, form, b"Fields"), BTreeSet::new());
    while let Some(field) = open.pop() {
        if !seen.insert(field) || seen.len() > MOST_FIELDS {
            continue;
        }
        let Ok(field) = document.get_dictionary(field) else { continue };
        let kind = entry(&document, field, b"FT").and_then(|kind| kind.as_name().ok());
        if kind == Some(b"Tx") {
            return true;
        }
        open.extend(children(&document, field, b"Kids"));
    }
    false
}

fn entry<'a>(document: &'a lopdf::Document, of: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    document.dereference(of.get(key).ok()?).ok().map(|(_, object)| object)
}

/// What a list of fields refers to; a field is an object of its own.
fn children(document: &lopdf::Document, of: &Dictionary, key: &[u8]) -> Vec<ObjectId> {
    let list = entry(document, of, key).and_then(|list| list.as_array().ok());
    list.into_iter().flatten().filter_map(|one| one.as_reference().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDF of these objects.
    fn pdf(objects: &[&str]) -> Vec<u8> {
        let mut bytes = b"%PDF-1.7\n".to_vec();
        let mut places = Vec::new();
        for (index, object) in objects.iter().enumerate() {
            places.push(bytes.len());
            bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).into_bytes());
        }
        let at = bytes.len();
        bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).into_bytes());
        for place in &places {
            bytes.extend(format!("{place:010} 00000 n \n").into_bytes());
        }
        let size = places.len() + 1;
        let end = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{at}\n%%EOF\n");
        bytes.extend(end.into_bytes());
        bytes
    }

    #[test]
    fn a_form_is_what_has_a_field_of_text_however_deep_and_no_circle_is_endless() {
        let (root, pages) = (
            "<< /Type /Catalog /Pages 2 0 R /AcroForm 3 0 R >>",
            "<< /Type /Pages /Kids [] /Count 0 >>",
        );
        let field = "<< /Fields [4 0 R] >>";
        for (objects, expected) in [
            (vec![root, pages, field, "<< /FT /Tx /T (name) >>"], true),
            (vec![root, pages, field, "<< /Kids [5 0 R] >>", "<< /FT /Tx >>"], true),
            (vec![root, pages, field, "<< /FT /Btn >>"], false),
            (vec![root, pages, field, "<< /FT /Sig >>"], false),
            (vec![root, pages, field, "<< /Kids [4 0 R 5 0 R] >>", "<< /Kids [4 0 R] >>"], false),
            (vec![root, pages, "<< /Fields [] >>"], false),
            (vec![root, pages, "<< /Fields 9 0 R >>"], false),
            (vec!["<< /Type /Catalog /Pages 2 0 R >>", pages], false),
        ] {
            let bytes = pdf(&objects);
            let found = has_text_fields(&bytes, DocumentFormat::Pdf, &LimitsConfig::default());
            assert_eq!(found, expected, "{objects:?}");
        }
        for nonsense in [&b"%PDF-1.7\n/AcroForm"[..], b"/AcroForm"] {
            let limits = LimitsConfig::default();
            assert!(!has_text_fields(nonsense, DocumentFormat::Pdf, &limits));
        }
    }
}
