//! E-invoices inside a document: the XML that PDF/A-3 carries as an attached file, or the document
//! itself if it is XML.
//!
//! Attachments are looked for in every object of the file, not in the tree of names alone, which
//! some writers leave out: whatever is a file specification with an embedded file (PDF 32000-1
//! §7.11.3) and is called as the standards say (`ZUGFeRD` 1 and 2, Factur-X, `XRechnung`), in any case.
//! Other attachments are nobody's business, `order-x.xml` among them: an order is no invoice.
//!
//! What is promised is bytes within the limits, not that they are an invoice.

use lopdf::{Dictionary, LoadOptions, Object, Stream};

use super::format::DocumentFormat;
use super::refusal::{PageRefusal, catch_decoder};
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;
use docmill_formats::xml::MOST_BYTES;

/// Names of the file, the preferred one first.
const NAMES: [&str; 3] = ["factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"];

/// More e-invoices than this in one document are none.
const MOST: usize = 8;

/// The e-invoices of a document, each content once, the preferred name first. Empty for a document
/// that carries none, and for formats that cannot.
///
/// # Errors
/// `too_large` for a file that carries too much; `corrupt` for an e-invoice that
/// is there but cannot be taken out. The pages may be sound all the same.
pub(super) fn list_einvoices(
    bytes: &[u8],
    format: DocumentFormat,
    limits: &LimitsConfig,
) -> Result<Vec<Vec<u8>>, PageRefusal> {
    match format {
        DocumentFormat::Xml => Ok(vec![bytes.to_vec()]),
        DocumentFormat::Pdf if may_carry(bytes) => catch_decoder(|| attached_files(bytes, limits)),
        _ => Ok(Vec::new()),
    }
}

/// Whether it is worth taking a PDF apart: the key of embedded files is in it, or objects are
/// compressed, where it may be. Scans, the largest of documents, usually have neither.
fn may_carry(bytes: &[u8]) -> bool {
    [&b"/EF"[..], b"/ObjStm"].iter().any(|word| memchr::memmem::find(bytes, word).is_some())
}

/// How far the file expands was checked when it was opened.
fn attached_files(bytes: &[u8], limits: &LimitsConfig) -> Result<Vec<Vec<u8>>, PageRefusal> {
    let most = usize::try_from(limits.decompressed_bytes.0).unwrap_or(usize::MAX);
    let options = LoadOptions::with_max_decompressed_size(most);
    let Ok(document) = lopdf::Document::load_mem_with_options(bytes, options) else {
        return scan_unparsed(bytes);
    };
    let mut found: Vec<(usize, Vec<u8>)> = Vec::new();
    for object in document.objects.values() {
        for file in file_specifications(object) {
            let Some(rank) = name_rank(&document, file) else { continue };
            let content = file_content(&document, file)?;
            if !found.iter().any(|(_, known)| *known == content) {
                found.push((rank, content));
            }
            let bytes: usize = found.iter().map(|(_, content)| content.len()).sum();
            if found.len() > MOST || bytes > MOST_BYTES {
                let detail = format!("more e-invoices than {MOST}, or than {MOST_BYTES} bytes");
                return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
            }
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    Ok(found.into_iter().map(|(_, bytes)| bytes).collect())
}

/// A file that cannot be taken apart. The pages have a more tolerant reader; here only the question
/// is left whether something was lost.
fn scan_unparsed(bytes: &[u8]) -> Result<Vec<Vec<u8>>, PageRefusal> {
    let lower: Vec<u8> = bytes.to_ascii_lowercase();
    if NAMES.iter().any(|name| memchr::memmem::find(&lower, name.as_bytes()).is_some()) {
        let detail = "an e-invoice is named in it, but it cannot be taken apart";
        return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
    }
    Ok(Vec::new())
}

/// File specifications with an embedded file in `object`, those within arrays and dictionaries
/// included. What is referred to is an object of its own.
fn file_specifications(object: &Object) -> Vec<&Dictionary> {
    let (mut found, mut open) = (Vec::new(), vec![object]);
    while let Some(object) = open.pop() {
        let dictionary = match object {
            Object::Dictionary(dictionary) => dictionary,
            Object::Stream(stream) => &stream.dict,
            Object::Array(items) => {
                open.extend(items.iter().filter(|item| is_container(item)));
                continue;
            }
            _ => continue,
        };
        if dictionary.has(b"EF") {
            found.push(dictionary);
        }
        open.extend(dictionary.iter().map(|(_, value)| value).filter(|value| is_container(value)));
    }
    found
}

fn is_container(object: &Object) -> bool {
    matches!(object, Object::Dictionary(_) | Object::Array(_) | Object::Stream(_))
}

/// The place of the file's name among [`NAMES`]; none if it is called otherwise.
fn name_rank(document: &lopdf::Document, file: &Dictionary) -> Option<usize> {
    let names = [&b"UF"[..], b"F"].into_iter().filter_map(|key| file.get(key).ok());
    let mut names = names.filter_map(|name| document.dereference(name).ok()?.1.as_str().ok());
    names.find_map(|name| {
        let name = file_name(name);
        NAMES.iter().position(|known| *known == name)
    })
}

/// The last part of a path in lower case. Text strings are UTF-16 with a mark, or close to Latin 1
/// (PDF 32000-1 §7.9.2.2); the names that matter are ASCII in both.
fn file_name(name: &[u8]) -> String {
    let text: String = match name {
        [0xfe, 0xff, wide @ ..] => {
            let units = wide.chunks_exact(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            char::decode_utf16(units).filter_map(Result::ok).collect()
        }
        [0xef, 0xbb, 0xbf, narrow @ ..] => String::from_utf8_lossy(narrow).into_owned(),
        _ => name.iter().map(|byte| char::from(*byte)).collect(),
    };
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    last.trim_matches(['\0', ' ']).to_ascii_lowercase()
}

fn file_content(document: &lopdf::Document, file: &Dictionary) -> Result<Vec<u8>, PageRefusal> {
    let lost =
        || PageRefusal::new(OutcomeReason::Corrupt, "an attached e-invoice cannot be taken out");
    let files = file.get(b"EF").and_then(|files| document.dereference(files));
    let files = files.and_then(|(_, files)| files.as_dict()).map_err(|_| lost())?;
    let keys = [&b"F"[..], b"UF", b"DOS", b"Mac", b"Unix"];
    let stream =
        keys.iter().find_map(|key| embedded_stream(document, files, key)).ok_or_else(lost)?;
    stream.decompressed_content_with_limit(MOST_BYTES).map_err(|error| match error {
        lopdf::Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. }) => {
            let detail = format!("an attached e-invoice has more than {MOST_BYTES} bytes");
            PageRefusal::new(OutcomeReason::TooLarge, detail)
        }
        _ => lost(),
    })
}

fn embedded_stream<'a>(
    document: &'a lopdf::Document,
    files: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Stream> {
    let (_, object) = document.dereference(files.get(key).ok()?).ok()?;
    object.as_stream().ok()
}

#[cfg(test)]
mod tests {
    use lopdf::{Document, StringFormat, dictionary};

    use super::*;

    /// A PDF with one empty page and these files, each as its own specification.
    fn carrying(files: &[(&[u8], &[u8])]) -> Vec<u8> {
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
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    fn pdf(bytes: &[u8]) -> Result<Vec<Vec<u8>>, PageRefusal> {
        list_einvoices(bytes, DocumentFormat::Pdf, &LimitsConfig::default())
    }

    fn found(files: &[(&[u8], &[u8])]) -> Vec<String> {
        let found = pdf(&carrying(files)).unwrap();
        found.into_iter().map(|file| String::from_utf8(file).unwrap()).collect()
    }

    #[test]
    fn an_e_invoice_is_known_by_its_name_whatever_its_case_and_encoding() {
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
        let contents: Vec<Vec<u8>> = (0..=MOST).map(|n| format!("<a{n}/>").into_bytes()).collect();
        let files: Vec<(&[u8], &[u8])> =
            contents.iter().map(|content| (&b"factur-x.xml"[..], content.as_slice())).collect();
        let large = vec![b' '; MOST_BYTES + 1];
        for files in [files, vec![(b"factur-x.xml", &large)]] {
            let refused = pdf(&carrying(&files)).unwrap_err();
            assert_eq!(refused.reason, OutcomeReason::TooLarge);
        }
    }

    #[test]
    fn an_e_invoice_that_is_named_but_lost_is_said_to_be() {
        let whole = carrying(&[(b"factur-x.xml", b"<a/>")]);
        let key = memchr::memmem::find(&whole, b"/EF").unwrap();
        let mut lost = whole.clone();
        // The specification leads to an object that is not there.
        let digit = whole[key..].iter().position(u8::is_ascii_digit).unwrap() + key;
        lost[digit] = b'9';
        let refused = pdf(&lost).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::Corrupt);
        let torn = b"%PDF-1.7\n1 0 obj << /UF (factur-x.xml) /EF <<".to_vec();
        assert_eq!(pdf(&torn).unwrap_err().reason, OutcomeReason::Corrupt);
        let other = b"%PDF-1.7\n1 0 obj << /UF (terms.xml) /EF <<".to_vec();
        assert_eq!(pdf(&other), Ok(Vec::new()));
    }

    #[test]
    fn xml_is_its_own_e_invoice_and_a_picture_carries_none() {
        let limits = LimitsConfig::default();
        let xml =
            list_einvoices(b"<?xml version='1.0'?><a/>", DocumentFormat::Xml, &limits).unwrap();
        assert_eq!(xml, [b"<?xml version='1.0'?><a/>".to_vec()]);
        assert_eq!(
            list_einvoices(b"\xff\xd8\xff\xe0", DocumentFormat::Jpeg, &limits),
            Ok(Vec::new())
        );
    }

    #[test]
    fn only_what_may_carry_something_is_taken_apart() {
        assert!(may_carry(&carrying(&[(b"factur-x.xml", b"<a/>")])));
        assert!(may_carry(b"%PDF-1.7\n1 0 obj <</Type /ObjStm"));
        assert!(!may_carry(&carrying(&[])));
    }
}
