//! Whether a PDF is a form with text fields, as olmOCR's filter defines it (fields of the type
//! `Tx`, PDF 32000-1 §12.7.3). Checkboxes and signatures alone do not count. Not covered: forms of
//! XFA alone.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, MaybeRef, Name, Object, ObjectIdentifier,
};

/// Fields of a form that are searched.
const MAX_FIELDS: usize = 100_000;

/// Whether somebody is to type into it.
pub(crate) fn has_text_fields(pdf: &Pdf) -> bool {
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let Some(form) = catalog.and_then(|catalog| catalog.get::<Dict<'_>>(b"AcroForm")) else {
        return false;
    };
    let (mut open, mut seen) = (children(&form, b"Fields"), HashSet::new());
    while let Some(field) = open.pop() {
        if !seen.insert(field) || seen.len() > MAX_FIELDS {
            continue;
        }
        let Some(field) = pdf.xref().get::<Dict<'_>>(field) else { continue };
        if field.get::<Name<'_>>(b"FT").is_some_and(|kind| kind.as_ref() == b"Tx") {
            return true;
        }
        open.extend(children(&field, b"Kids"));
    }
    false
}

/// Objects that a list of fields refers to.
fn children(of: &Dict<'_>, key: &[u8]) -> Vec<ObjectIdentifier> {
    let list = of.get::<Array<'_>>(key);
    let items = list.iter().flat_map(|list| list.raw_iter());
    let references = items.filter_map(|item: MaybeRef<Object<'_>>| match item {
        MaybeRef::Ref(to) => Some(to.into()),
        MaybeRef::NotRef(_) => None,
    });
    references.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDF of these objects.
    fn pdf(objects: &[&str]) -> Pdf {
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
        Pdf::new(bytes).unwrap()
    }

    #[test]
    fn a_form_has_a_text_field_at_any_depth_and_cyclic_fields_end() {
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
            assert_eq!(has_text_fields(&pdf(&objects)), expected, "{objects:?}");
        }
    }
}
