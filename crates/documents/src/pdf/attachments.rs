//! E-invoices inside a PDF: the XML that PDF/A-3 carries as an attached file.
//!
//! Attachments are searched in every object of the file, not only in the name tree and under `AF`,
//! which some writers leave out: any file specification with an embedded file (PDF 32000-1
//! §7.11.3). An e-invoice is recognised by the root of its XML, under any name. A file with a name
//! of the standards (`ZUGFeRD` 1 and 2, Factur-X, `XRechnung`, in any case) counts whatever it
//! holds, and so does a file named `.xml` in which no root is found: an invoice may have been lost.
//! Other attachments are ignored, `order-x.xml` among them: an order is not an invoice. Envelopes
//! around an e-invoice are opened like those around a document.
//!
//! Promised: bytes within the limits, not that they are an invoice.

use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::hayro_syntax::object::{
    Dict, MaybeRef, Object, Stream, String as PdfString,
};

use crate::envelope::{is_envelope, open_envelopes};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;
use docmill_formats::einvoice::XmlRootName;
use docmill_formats::xml::MAX_BYTES;

/// Names of the file, the preferred one first.
const NAMES: [&str; 3] = ["factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"];

/// More e-invoices than this in one document are none.
const MAX_FILES: usize = 8;

/// Attachments that are looked into, and the bytes of all of them together.
const MAX_EXAMINED_FILES: usize = 256;
const MAX_EXAMINED_BYTES: usize = 2 * MAX_BYTES;

/// The sign of an attachment by its name, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameSign {
    /// A name of the standards, by its place in [`NAMES`].
    Standard(usize),
    /// Any other name that ends in `.xml`.
    Xml,
    /// Anything else.
    Other,
}

/// The e-invoices of a PDF, each content once, the preferred name first; empty if it carries none.
/// How far they expand was checked when it was opened. `is_cut`: a part of the file is missing.
///
/// # Errors
/// `too_large` for a file that carries too much; `corrupt` for an e-invoice that
/// is there but cannot be taken out. The pages may be sound all the same.
pub(crate) fn list_einvoices(pdf: &Pdf, is_cut: bool) -> Result<Vec<Vec<u8>>, PageRefusal> {
    let bytes: &[u8] = pdf.data().as_ref();
    if !may_carry(bytes) {
        return Ok(Vec::new());
    }
    let mut files: Vec<(NameSign, Dict<'_>)> = Vec::new();
    for object in pdf.objects() {
        files.extend(file_specifications(object).into_iter().map(|file| (name_sign(&file), file)));
    }
    files.sort_by_key(|(sign, _)| *sign);
    let (mut found, mut examined, mut lost): (Vec<Vec<u8>>, usize, _) = (Vec::new(), 0, None);
    for (index, (sign, file)) in files.iter().enumerate() {
        if *sign == NameSign::Other
            && (index >= MAX_EXAMINED_FILES || examined > MAX_EXAMINED_BYTES)
        {
            break;
        }
        let content = match open_file(file) {
            Ok(content) => content,
            Err(refusal) if matches!(sign, NameSign::Standard(_)) => return Err(refusal),
            Err(refusal) => {
                lost = lost.or(Some(refusal).filter(|_| *sign == NameSign::Xml));
                // Unsuccessful expansion counts towards the limit too.
                examined = examined.saturating_add(MAX_BYTES / MAX_FILES);
                continue;
            }
        };
        examined = examined.saturating_add(content.len());
        if examined > MAX_EXAMINED_BYTES && *sign != NameSign::Other {
            return Err(too_many());
        }
        if counts_as_einvoice(*sign, &content) && !found.contains(&content) {
            found.push(content);
        }
        if found.len() > MAX_FILES || found.iter().map(Vec::len).sum::<usize>() > MAX_BYTES {
            return Err(too_many());
        }
    }
    if let Some(refusal) = lost.filter(|_| found.is_empty()) {
        return Err(refusal);
    }
    if found.is_empty() && is_cut && names_einvoice(bytes) {
        let detail = "an e-invoice is named in it, but was cut off";
        return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
    }
    Ok(found)
}

fn too_many() -> PageRefusal {
    let detail = format!("more e-invoices than {MAX_FILES}, or than {MAX_BYTES} bytes");
    PageRefusal::new(OutcomeReason::TooLarge, detail)
}

/// Whether an attachment is, or may have been, an e-invoice.
fn counts_as_einvoice(sign: NameSign, content: &[u8]) -> bool {
    match sign {
        NameSign::Standard(_) => true,
        NameSign::Xml => XmlRootName::sniff(content).is_none_or(|root| root.is_read()),
        NameSign::Other => begins_einvoice(content),
    }
}

/// Whether it is worth looking at all objects of a PDF: the key of embedded files is in it, or
/// objects are compressed, where it may be. Scans, the largest of documents, usually have neither.
pub(super) fn may_carry(bytes: &[u8]) -> bool {
    [&b"/EF"[..], b"/ObjStm"].iter().any(|word| memchr::memmem::find(bytes, word).is_some())
}

/// Whether the bytes have the name of an e-invoice, in any case.
fn names_einvoice(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    NAMES.iter().any(|name| memchr::memmem::find(&lower, name.as_bytes()).is_some())
}

/// File specifications with an embedded file in `object`, those within arrays and dictionaries
/// included. References lead to objects of their own.
pub(super) fn file_specifications(object: Object<'_>) -> Vec<Dict<'_>> {
    let (mut found, mut open) = (Vec::new(), vec![object]);
    while let Some(object) = open.pop() {
        let dictionary = match object {
            Object::Dict(dictionary) => dictionary,
            Object::Stream(stream) => stream.dict().clone(),
            Object::Array(items) => {
                open.extend(items.raw_iter().filter_map(direct_container));
                continue;
            }
            _ => continue,
        };
        open.extend(dictionary.entries().filter_map(|(_, value)| direct_container(value)));
        if dictionary.contains_key(b"EF") {
            found.push(dictionary);
        }
    }
    found
}

/// Kinds of direct objects that may hold a file specification.
fn direct_container(value: MaybeRef<Object<'_>>) -> Option<Object<'_>> {
    match value {
        MaybeRef::NotRef(object @ (Object::Dict(_) | Object::Array(_))) => Some(object),
        _ => None,
    }
}

/// The sign that the file's name is.
fn name_sign(file: &Dict<'_>) -> NameSign {
    let names = [&b"UF"[..], b"F"].into_iter().filter_map(|key| file.get::<PdfString<'_>>(key));
    let signs = names.map(|name| {
        let name = file_name(name.as_bytes());
        match NAMES.iter().position(|known| *known == name) {
            Some(rank) => NameSign::Standard(rank),
            None if name.ends_with(".xml") => NameSign::Xml,
            None => NameSign::Other,
        }
    });
    signs.min().unwrap_or(NameSign::Other)
}

/// The last part of a path in lower case.
fn file_name(name: &[u8]) -> String {
    let text = full_name(name);
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    last.trim_matches(['\0', ' ']).to_ascii_lowercase()
}

/// A name as a text string: UTF-16 with a mark, or close to Latin 1 (PDF 32000-1 §7.9.2.2); the names of
/// e-invoices are ASCII in both.
pub(super) fn full_name(name: &[u8]) -> String {
    match name {
        [0xfe, 0xff, wide @ ..] => {
            let units = wide.chunks_exact(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            char::decode_utf16(units).filter_map(Result::ok).collect()
        }
        [0xef, 0xbb, 0xbf, narrow @ ..] => String::from_utf8_lossy(narrow).into_owned(),
        _ => name.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn file_content(file: &Dict<'_>) -> Result<Vec<u8>, PageRefusal> {
    let files = file.get::<Dict<'_>>(b"EF").ok_or_else(unreadable_attachment)?;
    let mut keys = [&b"F"[..], b"UF", b"DOS", b"Mac", b"Unix"].into_iter();
    let stream =
        keys.find_map(|key| files.get::<Stream<'_>>(key)).ok_or_else(unreadable_attachment)?;
    let content = stream.decoded_data().map_err(|_| unreadable_attachment())?;
    if content.len() > MAX_BYTES {
        let detail = format!("an attached e-invoice has more than {MAX_BYTES} bytes");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    Ok(content.into_owned())
}

/// The content of an attached file, without the envelopes around it.
fn open_file(file: &Dict<'_>) -> Result<Vec<u8>, PageRefusal> {
    open_einvoice(file_content(file)?)
}

/// The content within the envelopes around an e-invoice; other content as it is.
fn open_einvoice(content: Vec<u8>) -> Result<Vec<u8>, PageRefusal> {
    if !is_envelope(&content, begins_einvoice) {
        return Ok(content);
    }
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    open_envelopes(content.into(), most, begins_einvoice).map(Vec::from)
}

/// Whether an attached file is an e-invoice within envelopes.
pub(super) fn is_wrapped_einvoice(content: &[u8]) -> bool {
    is_envelope(content, begins_einvoice)
        && open_einvoice(content.to_vec()).is_ok_and(|content| begins_einvoice(&content))
}

fn begins_einvoice(bytes: &[u8]) -> bool {
    XmlRootName::sniff(bytes).is_some_and(|root| root.is_read())
}

fn unreadable_attachment() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "an attached e-invoice cannot be extracted")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use lopdf::{
        Document, EncryptionState, EncryptionVersion, Object, Permissions, Stream, StringFormat,
        dictionary,
    };

    use super::*;
    use crate::pdf::pdf_file::PdfFile;
    use docmill_core::config::LimitsConfig;

    /// A PDF with one empty page and these files, each as its own specification.
    fn carrying(files: &[(&[u8], &[u8])]) -> Vec<u8> {
        write_pdf(&mut document_with(files))
    }

    fn write_pdf(document: &mut Document) -> Vec<u8> {
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    fn document_with(files: &[(&[u8], &[u8])]) -> Document {
        let mut document = Document::with_version("1.7");
        let pages = document.new_object_id();
        let page = document.add_object(dictionary! {
            "Type" => "Page", "Parent" => pages,
            "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
        });
        let tree = dictionary! { "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1 };
        document.objects.insert(pages, Object::Dictionary(tree));
        for (name, content) in files {
            let mut stream =
                Stream::new(dictionary! { "Type" => "EmbeddedFile" }, content.to_vec());
            stream.compress().unwrap();
            let stream = document.add_object(stream);
            document.add_object(dictionary! {
                "Type" => "Filespec",
                "UF" => Object::String(name.to_vec(), StringFormat::Literal),
                "EF" => dictionary! { "F" => stream },
            });
        }
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
        document.trailer.set("Root", catalog);
        document
    }

    fn pdf(bytes: &[u8]) -> Result<Vec<Vec<u8>>, PageRefusal> {
        let bytes = Bytes::copy_from_slice(bytes);
        PdfFile::open(bytes, &LimitsConfig::default(), &[])?.list_einvoices()
    }

    fn found(files: &[(&[u8], &[u8])]) -> Vec<String> {
        let found = pdf(&carrying(files)).unwrap();
        found.into_iter().map(|file| String::from_utf8(file).unwrap()).collect()
    }

    #[test]
    fn the_e_invoice_of_an_encrypted_pdf_is_read_with_the_password() {
        for password in ["", "open"] {
            let mut document = document_with(&[(b"factur-x.xml", b"<a/>")]);
            let id = Object::String(vec![7; 16], StringFormat::Hexadecimal);
            document.trailer.set("ID", vec![id.clone(), id]);
            let version = EncryptionVersion::V2 {
                document: &document,
                owner_password: "owner",
                user_password: password,
                key_length: 128,
                permissions: Permissions::all(),
            };
            let state = EncryptionState::try_from(version).unwrap();
            document.encrypt(&state).unwrap();
            let bytes = Bytes::from(write_pdf(&mut document));
            assert_eq!(memchr::memmem::find(&bytes, b"factur-x"), None, "its name is in clear");
            let passwords = ["open".to_owned()];
            let file = PdfFile::open(bytes, &LimitsConfig::default(), &passwords).unwrap();
            assert_eq!(file.list_einvoices(), Ok(vec![b"<a/>".to_vec()]), "{password:?}");
        }
    }

    #[test]
    fn an_e_invoice_is_recognised_by_its_name_in_any_case_and_encoding() {
        let wide: Vec<u8> = [0xfe, 0xff]
            .into_iter()
            .chain("Factur-X.xml".encode_utf16().flat_map(u16::to_be_bytes))
            .collect();
        for (name, expected) in [
            (&b"factur-x.xml"[..], true),
            (b"ZUGFeRD-invoice.xml", true),
            (b"XRECHNUNG.XML", true),
            (b"out/2026/factur-x.xml", true),
            (&wide, true),
            (b"order-x.xml", false),
            (b"factur-x.xml.exe", false),
            (b"terms.pdf", false),
        ] {
            assert_eq!(found(&[(name, b"<a/>")]).len(), usize::from(expected), "{name:?}");
        }
    }

    #[test]
    fn an_e_invoice_is_recognised_by_its_root_under_any_name() {
        const UBL: &[u8] =
            b"<?xml version='1.0'?><Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'/>";
        for (name, content, expected) in [
            (&b"Rechnung-4711.xml"[..], UBL, true),
            (b"ZUGFeRD_001.XML", UBL, true),
            (b"faktura.ubl", UBL, true),
            (b"", UBL, true),
            (b"data.xml", b"<order xmlns='urn:mine'/>", false),
            (b"cut.xml", b"<?xml version='1.0", true),
            (b"terms.txt", b"<?xml version='1.0", false),
        ] {
            let found = found(&[(name, content)]);
            assert_eq!(found.len(), usize::from(expected), "{}", name.escape_ascii());
        }
        let both = [(&b"x.xml"[..], UBL), (b"factur-x.xml", b"<f/>")];
        assert_eq!(found(&both).first().map(String::as_str), Some("<f/>"), "the standard's first");
    }

    #[test]
    fn an_e_invoice_is_found_within_its_envelopes() {
        const UBL: &[u8] =
            b"<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'/>";
        let packed = |content: &[u8]| {
            let mut output = GzEncoder::new(Vec::new(), Compression::default());
            output.write_all(content).unwrap();
            output.finish().unwrap()
        };
        let whole = packed(UBL);
        let cut = whole.get(..whole.len() - 9).unwrap();
        for (name, content, expected) in [
            (&b"factur-x.xml.gz"[..], whole.as_slice(), Ok(1)),
            (b"factur-x.xml", &whole, Ok(1)),
            (b"data.bin", &packed(&whole), Ok(1)),
            (b"notes.gz", &packed(b"<order/>"), Ok(0)),
            (b"data.bin", cut, Ok(0)),
            (b"data.xml", cut, Err(OutcomeReason::Corrupt)),
        ] {
            let found = pdf(&carrying(&[(name, content)]));
            let opened = found.as_ref().is_ok_and(|files| files.iter().all(|file| file == UBL));
            let found = found.map(|files| files.len()).map_err(|refusal| refusal.reason);
            assert_eq!((found, opened), (expected, expected.is_ok()), "{}", name.escape_ascii());
        }
        assert!(is_wrapped_einvoice(&whole) && !is_wrapped_einvoice(&packed(b"<order/>")));
    }

    #[test]
    fn attachments_that_show_no_sign_are_looked_into_up_to_a_number() {
        let blank: Vec<Vec<u8>> = (0..MAX_EXAMINED_FILES).map(|n| n.to_string().into()).collect();
        let last = b"<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'/>";
        let mut files: Vec<(&[u8], &[u8])> =
            blank.iter().map(|content| (&b"a.bin"[..], content.as_slice())).collect();
        files.push((b"b.bin", last));
        assert_eq!(found(&files).len(), 0);
        assert_eq!(found(files.get(1..).unwrap()).len(), 1);
        files.push((b"c.xml", last));
        assert_eq!(found(&files).len(), 1, "a name is a sign");
    }

    #[test]
    fn of_several_the_preferred_name_comes_first_and_copies_count_once() {
        let three: [(&[u8], &[u8]); 4] = [
            (b"xrechnung.xml", b"<x/>"),
            (b"order-x.xml", b"<o/>"),
            (b"factur-x.xml", b"<f/>"),
            (b"factur-x.xml", b"<f/>"),
        ];
        assert_eq!(found(&three), ["<f/>", "<x/>"]);
    }

    #[test]
    fn too_many_and_too_large_e_invoices_are_refused() {
        let contents: Vec<Vec<u8>> =
            (0..=MAX_FILES).map(|n| format!("<a{n}/>").into_bytes()).collect();
        let files: Vec<(&[u8], &[u8])> =
            contents.iter().map(|content| (&b"factur-x.xml"[..], content.as_slice())).collect();
        let large = vec![b' '; MAX_BYTES + 1];
        for files in [files, vec![(b"factur-x.xml", &large)]] {
            let refused = pdf(&carrying(&files)).unwrap_err();
            assert_eq!(refused.reason, OutcomeReason::TooLarge);
        }
    }

    #[test]
    fn an_e_invoice_that_is_named_but_lost_is_reported() {
        let whole = carrying(&[(b"factur-x.xml", b"<a/>")]);
        let key = memchr::memmem::find(&whole, b"/EF").unwrap();
        let mut lost = whole.clone();
        // The specification leads to an object that is not there.
        let digit = whole[key..].iter().position(u8::is_ascii_digit).unwrap() + key;
        lost[digit] = b'9';
        let refused = pdf(&lost).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::Corrupt);
        // Only its name is left of the specification: the rest of the file is missing.
        let at = |word: &[u8]| memchr::memmem::find(&whole, word).unwrap();
        for (cut, expected) in [(at(b"/EF"), true), (at(b"/Filespec"), false)] {
            let torn = pdf(&whole[..cut + 4]);
            assert_eq!(torn.err().map(|it| it.reason), expected.then_some(OutcomeReason::Corrupt));
        }
    }

    #[test]
    fn only_objects_that_may_carry_attachments_are_parsed() {
        assert!(may_carry(&carrying(&[(b"factur-x.xml", b"<a/>")])));
        assert!(may_carry(b"%PDF-1.7\n1 0 obj <</Type /ObjStm"));
        assert!(!may_carry(&carrying(&[])));
    }
}
