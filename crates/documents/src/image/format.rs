//! Format of a file, by its content, not by names or media types. Names count against text alone: it
//! has no signature, and a failed download is a web page under the name of a PDF.
//!
//! Signatures: PDF 32000-1 §7.5.2 and implementation note 13, PNG §5.2, JPEG SOI + marker, TIFF 6.0
//! §2 and its 64-bit form, RIFF with WEBP, GIF in both versions, BMP, boxes with a brand of HEIF
//! (ISO/IEC 14496-12 §4.3), JPEG XL bare or in boxes (ISO/IEC 18181-2 §4). The PDF header may be
//! anywhere in the first 1024 bytes; further in, behind the preamble of a gateway or a printer, if the
//! file also ends as a PDF and is not an archive. XML is recognised by its declaration, or by
//! the root of an e-invoice.
//! EDIFACT begins with the segment UNA or UNB (ISO 9735-1 §7 and annex B). An envelope around one of
//! these is recognised by [`crate::envelope`]; Office documents, web pages and text by
//! `docmill-office`, after all others.

use bytes::Bytes;

use crate::envelope;
use docmill_formats::einvoice::{XmlRootName, is_edifact};
use docmill_office::{OfficeFormat, describe_unread, sniff_office, sniff_text};

/// How far into the file a PDF header is searched for.
const HEADER_WINDOW: usize = 1024;

/// How far into a file that ends as a PDF does its header is searched for, ...
const FAR_WINDOW: usize = 1 << 20;
/// ... and its end marker within how many bytes of its end.
const END_WINDOW: usize = 2048;

/// How files begin that hold other files, PDFs among them, as they are: ZIP, OLE (Outlook's
/// messages), gzip, 7-Zip, RAR.
const CONTAINERS: [&[u8]; 5] =
    [b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!"];

/// Endings of names whose files begin with a signature.
const SIGNED_ENDINGS: [&str; 19] = [
    "pdf", "png", "jpg", "jpeg", "tif", "tiff", "webp", "gif", "bmp", "heic", "heif", "avif",
    "jxl", "docx", "xlsx", "pptx", "odt", "ods", "odp",
];

/// A format we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// Portable Document Format (PDF).
    Pdf,
    /// Portable Network Graphics (PNG).
    Png,
    /// JPEG, JFIF or EXIF.
    Jpeg,
    /// TIFF, also in its 64-bit form, one image per page.
    Tiff,
    /// WebP, lossy or lossless.
    WebP,
    /// GIF; its first frame.
    Gif,
    /// Windows bitmap (BMP).
    Bmp,
    /// HEIC and other HEIF; its primary picture.
    Heic,
    /// AVIF; its primary picture.
    Avif,
    /// JPEG XL; its first frame.
    JpegXl,
    /// XML; of use only if it is an e-invoice.
    Xml,
    /// UN/EDIFACT; of use only if it is an invoice.
    Edifact,
    /// An Office document, web page or text file.
    Office(OfficeFormat),
    /// An envelope around one of these: a CMS signature (`.p7m`), S/MIME, base64, gzip or a ZIP of
    /// one XML. The page process opens it.
    Envelope,
}

impl DocumentFormat {
    /// Recognises `bytes`; `None` for everything that is not read.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        Self::sniff_signed(bytes).or_else(|| sniff_text(bytes).map(Self::Office))
    }

    /// The same without plain text and CSV, which have no signature: for files that nobody named as
    /// documents.
    pub fn sniff_signed(bytes: &[u8]) -> Option<Self> {
        if envelope::is_envelope(bytes, Self::is_bare_document) {
            Some(Self::Envelope)
        } else {
            Self::sniff_bare(bytes)
        }
    }

    /// Recognises a document without an envelope around it by a signature.
    pub(crate) fn sniff_bare(bytes: &[u8]) -> Option<Self> {
        let image = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => {
                return (!is_camera_tiff(bytes)).then_some(Self::Tiff);
            }
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => sniff_heif(bytes),
            [0xff, 0x0a, ..]
            | [0, 0, 0, 12, b'J', b'X', b'L', b' ', b'\r', b'\n', 0x87, b'\n', ..] => {
                Some(Self::JpegXl)
            }
            _ => None,
        };
        // A bitmap's two letters are too weak a sign to win over a PDF header.
        let is_pdf = find_pdf_header(bytes).is_some() || has_pdf_object(bytes);
        image
            .or_else(|| is_pdf.then_some(Self::Pdf))
            .or_else(|| is_bitmap(bytes).then_some(Self::Bmp))
            // A web page may begin with an XML declaration.
            .or_else(|| sniff_office(bytes).map(Self::Office))
            .or_else(|| is_xml(bytes).then_some(Self::Xml))
            .or_else(|| is_edifact(bytes).then_some(Self::Edifact))
    }

    /// Whether `bytes` begin as a document without an envelope around it.
    pub(crate) fn is_bare_document(bytes: &[u8]) -> bool {
        Self::sniff_bare(bytes).is_some()
    }

    /// Whether a file of this name should have had a signature and is text or a web page instead.
    pub fn is_misnamed(self, name: &str) -> bool {
        let is_text = matches!(
            self,
            Self::Office(OfficeFormat::Html | OfficeFormat::Csv | OfficeFormat::Text)
        );
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        is_text && SIGNED_ENDINGS.iter().any(|signed| ending.eq_ignore_ascii_case(signed))
    }

    /// The stable word, as in `docmill process --json`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Tiff => "tiff",
            Self::WebP => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
            Self::Heic => "heic",
            Self::Avif => "avif",
            Self::JpegXl => "jxl",
            Self::Xml => "xml",
            Self::Edifact => "edifact",
            Self::Office(format) => format.code(),
            Self::Envelope => "envelope",
        }
    }
}

/// Position of the PDF header.
fn find_pdf_header(bytes: &[u8]) -> Option<usize> {
    let near = bytes.get(..HEADER_WINDOW).unwrap_or(bytes);
    memchr::memmem::find(near, b"%PDF-").or_else(|| {
        let ends = bytes.get(bytes.len().saturating_sub(END_WINDOW)..).unwrap_or_default();
        let is_whole = memchr::memmem::find(ends, b"%%EOF").is_some();
        let is_container = CONTAINERS.iter().any(|start| bytes.starts_with(start));
        let far = bytes.get(..FAR_WINDOW).unwrap_or(bytes);
        let mut headers = memchr::memmem::find_iter(far, b"%PDF-").filter(|at| {
            matches!(far.get(at + 5..at + 8), Some([major, b'.', minor])
                if major.is_ascii_digit() && minor.is_ascii_digit())
        });
        if is_whole && !is_container { headers.next() } else { None }
    })
}

/// A PDF without the bytes before its header, unless its table of objects counts these too.
pub(crate) fn strip_leading_junk(bytes: Bytes) -> Bytes {
    match find_pdf_header(&bytes) {
        Some(header) if header > 0 && !is_table_at(&bytes, 0) && is_table_at(&bytes, header) => {
            bytes.slice(header..)
        }
        _ => bytes,
    }
}

/// Whether the last `startxref`, counted from `base`, leads to a table or stream of objects.
fn is_table_at(bytes: &[u8], base: usize) -> bool {
    let Some(table) = cross_references(bytes, base) else { return false };
    let numbers = table.split(|byte| !byte.is_ascii_digit()).take(2);
    let is_object = numbers.filter(|number| !number.is_empty()).count() == 2;
    table.starts_with(b"xref") || is_object
}

/// The bytes to which the last `startxref` refers.
fn cross_references(bytes: &[u8], base: usize) -> Option<&[u8]> {
    let word = memchr::memmem::rfind(bytes, b"startxref")?;
    let after = bytes.get(word + b"startxref".len()..)?.trim_ascii_start();
    let digits = after.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(after.len());
    let offset: usize = std::str::from_utf8(after.get(..digits)?).ok()?.parse().ok()?;
    Some(bytes.get(base.checked_add(offset)?..)?.trim_ascii_start())
}

/// A PDF that lost its first line still has an object near its start: `12 0 obj` and a dictionary.
fn has_pdf_object(bytes: &[u8]) -> bool {
    let window = bytes.get(..HEADER_WINDOW).unwrap_or(bytes);
    let mut found = memchr::memmem::find_iter(window, b" obj");
    found.any(|at| {
        let before = window.get(..at).unwrap_or_default();
        let after = window.get(at + 4..).unwrap_or_default().trim_ascii_start();
        let numbers = before.rsplit(|byte| !byte.is_ascii_digit()).take(2);
        after.starts_with(b"<<") && numbers.filter(|number| !number.is_empty()).count() == 2
    })
}

/// `BM`, then, at byte 14, the size of one of the known information headers.
fn is_bitmap(bytes: &[u8]) -> bool {
    let header_size = bytes.get(14..18).and_then(|four| <[u8; 4]>::try_from(four).ok());
    bytes.starts_with(b"BM")
        && header_size.is_some_and(|size| {
            matches!(u32::from_le_bytes(size), 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124)
        })
}

/// An XML declaration, or the root of an e-invoice. A byte order mark may come first, and every
/// other byte may be zero, as in UTF-16.
fn is_xml(bytes: &[u8]) -> bool {
    const DECLARATION: &[u8] = b"<?xml";
    let window = bytes.get(..HEADER_WINDOW).unwrap_or(bytes);
    let marks = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
    let text = marks.iter().find_map(|mark| window.strip_prefix(*mark)).unwrap_or(window);
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    let text = text.trim_ascii_start();
    text.starts_with(DECLARATION)
        || text.starts_with(b"<") && XmlRootName::sniff(bytes).is_some_and(|root| root.is_read())
}

/// The format of an ISO base media file, by its brands. AV1 may be a compatible brand after a
/// general major brand.
fn sniff_heif(bytes: &[u8]) -> Option<DocumentFormat> {
    const BRANDS: [&[u8]; 8] =
        [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"];
    if is_avif(bytes) {
        return Some(DocumentFormat::Avif);
    }
    BRANDS.contains(&bytes.get(8..12)?).then_some(DocumentFormat::Heic)
}

/// Whether AV1 is among the brands of this file.
fn is_avif(bytes: &[u8]) -> bool {
    const BRANDS: [&[u8]; 2] = [b"avif", b"avis"];
    const MAX_BOX_BYTES: usize = 256;
    let size = read_u32(bytes, 0, false).unwrap_or_default().min(MAX_BOX_BYTES);
    let brands = bytes.get(8..size.min(bytes.len())).unwrap_or_default();
    bytes.get(4..8) == Some(b"ftyp") && brands.chunks(4).any(|brand| BRANDS.contains(&brand))
}

/// Whether a TIFF is the raw format of a camera (CR2, NEF, ARW, PEF, DNG): its first page is a small
/// preview, so it is not read as a scan. Canon's says so behind its header; Adobe's has the tag
/// `DNGVersion`; others have further directories (tag 330) and the name of a camera maker (tag 271).
fn is_camera_tiff(bytes: &[u8]) -> bool {
    const MAKERS: [&[u8]; 6] = [b"NIKON", b"SONY", b"PENTAX", b"SAMSUNG", b"Hasselblad", b"Leica"];
    const MAX_ENTRIES: usize = 512;
    if bytes.get(8..10) == Some(b"CR") {
        return true;
    }
    let is_small_end = bytes.starts_with(b"II");
    let Some(start) = read_u32(bytes, 4, is_small_end) else { return false };
    let Some(count) = read_u16(bytes, start, is_small_end) else { return false };
    let (mut has_directories, mut has_maker) = (false, false);
    for entry in 0..count.min(MAX_ENTRIES) {
        let at = start.saturating_add(2 + entry * 12);
        match read_u16(bytes, at, is_small_end) {
            Some(50_706) => return true,
            Some(330) => has_directories = true,
            Some(271) => {
                let name = read_u32(bytes, at.saturating_add(8), is_small_end);
                let name = name.and_then(|name| bytes.get(name..)).unwrap_or_default();
                has_maker = MAKERS.iter().any(|maker| name.starts_with(maker));
            }
            _ => {}
        }
    }
    has_directories && has_maker
}

fn read_u16(bytes: &[u8], at: usize, is_small_end: bool) -> Option<usize> {
    let two: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(usize::from(if is_small_end { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) }))
}

fn read_u32(bytes: &[u8], at: usize, is_small_end: bool) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(if is_small_end { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
        .ok()
}

/// Starts of other files of cameras' own formats: RAF, ORF, RW2, X3F, MRW.
const RAW_STARTS: [&[u8]; 6] = [b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"IIU\0", b"FOVb", b"\0MRM"];

/// A photo as a camera's sensor gave it, in a format of its maker.
fn is_camera_raw(bytes: &[u8]) -> bool {
    let is_cr3 = bytes.get(4..12) == Some(b"ftypcrx ");
    let is_tiff = bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*");
    is_cr3
        || is_tiff && is_camera_tiff(bytes)
        || RAW_STARTS.iter().any(|start| bytes.starts_with(start))
}

/// Likely format of an unreadable file, for a person: XML by its root.
pub(crate) fn describe_unsupported(bytes: &[u8]) -> String {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let known = if let Some(known) = describe_unread(bytes) {
        known
    } else if text.starts_with(b"<") {
        match XmlRootName::sniff(bytes) {
            Some(root) => return root.describe_refusal(),
            None => "markup that is no web page",
        }
    } else if text.starts_with(b"PK\x03\x04") {
        "a ZIP archive that is no Office document: send each file by itself"
    } else if is_camera_raw(bytes) {
        "a photo in the raw format of a camera, which is not read: send it as JPEG"
    } else {
        "neither PDF, image, Office document, web page nor text, nor an e-invoice in XML or EDIFACT"
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_under_the_name_of_a_signed_format_is_misnamed() {
        let (page, text) = (&b"<!doctype html><h1>404</h1>"[..], &b"Only a few words."[..]);
        let table = [
            ("failed download", page, "invoice.PDF", true),
            ("text as a picture", text, "in/invoice.tiff", true),
            ("text as a workbook", b"a;b\n1;2\n", "list.xlsx", true),
            ("a page by its name", page, "invoice.html", false),
            ("a page of an old Excel", page, "invoice.xls", false),
            ("a name without an ending", text, "pdf", false),
            ("a PDF by its name", b"%PDF-1.7", "invoice.pdf", false),
            ("a picture named PDF", b"\xff\xd8\xff\xe0", "invoice.pdf", false),
        ];
        for (case, bytes, name, misnamed) in table {
            let found = DocumentFormat::sniff(bytes).unwrap();
            assert_eq!(found.is_misnamed(name), misnamed, "{case}");
        }
    }

    #[test]
    fn the_format_is_recognised_by_content() {
        let junk = |count: usize, rest: &[u8]| [vec![b'x'; count], rest.to_vec()].concat();
        let bitmap = |size: u8| [&b"BM"[..], &[0; 12], &[size, 0, 0, 0]].concat();
        #[rustfmt::skip]
        let table: [(&str, Vec<u8>, Option<DocumentFormat>); 36] = [
            ("a PDF",                              b"%PDF-1.7\n".to_vec(),          Some(DocumentFormat::Pdf)),
            ("a PDF after junk",                   junk(1019, b"%PDF-1.4"),         Some(DocumentFormat::Pdf)),
            ("a PDF after too much junk",          junk(1020, b"%PDF-1.4"),         None),
            ("a whole PDF after much junk",        junk(5000, b"%PDF-1.4\n%%EOF"),  Some(DocumentFormat::Pdf)),
            ("a text about PDFs",                  junk(5000, b"starts with %PDF-, ends with %%EOF"), None),
            ("a PDF in an archive",                [b"PK\x03\x04", &junk(5000, b"%PDF-1.4\n%%EOF")[..]].concat(), None),
            ("a PDF without its first line",       b" 1 0 obj\r<</Type/Catalog".to_vec(), Some(DocumentFormat::Pdf)),
            ("a text about an obj",                b"part 1 obj <<".to_vec(),       None),
            ("a PNG that mentions PDF",            b"\x89PNG\r\n\x1a\n%PDF-1".to_vec(), Some(DocumentFormat::Png)),
            ("a JPEG",                             b"\xff\xd8\xff\xe0".to_vec(),    Some(DocumentFormat::Jpeg)),
            ("a little-endian TIFF",               b"II*\0".to_vec(),               Some(DocumentFormat::Tiff)),
            ("a big-endian BigTIFF",               b"MM\0+".to_vec(),               Some(DocumentFormat::Tiff)),
            ("a WebP",                             b"RIFF....WEBPVP8 ".to_vec(),    Some(DocumentFormat::WebP)),
            ("a RIFF that is sound",               b"RIFF....WAVEfmt ".to_vec(),    None),
            ("a GIF",                              b"GIF89a".to_vec(),              Some(DocumentFormat::Gif)),
            ("a bitmap",                           bitmap(40),                      Some(DocumentFormat::Bmp)),
            ("a photo of a phone",                 b"\0\0\0\x14ftypheic\0\0\0\0mif1".to_vec(), Some(DocumentFormat::Heic)),
            ("a photo of a general brand",         b"\0\0\0\x14ftypmif1\0\0\0\0heic".to_vec(), Some(DocumentFormat::Heic)),
            ("an AVIF photo",                      b"\0\0\0\x14ftypavif\0\0\0\0mif1".to_vec(), Some(DocumentFormat::Avif)),
            ("an AVIF of a general brand",         b"\0\0\0\x14ftypmif1\0\0\0\0avif".to_vec(), Some(DocumentFormat::Avif)),
            ("a bare JPEG XL",                     b"\xff\x0a\0".to_vec(),          Some(DocumentFormat::JpegXl)),
            ("a JPEG XL in boxes",                 b"\0\0\0\x0cJXL \r\n\x87\n".to_vec(), Some(DocumentFormat::JpegXl)),
            ("a film",                             b"\0\0\0\x14ftypisom\0\0\0\0avc1".to_vec(), None),
            ("a text that begins with BM",         b"BMW invoice, 2026".to_vec(),   None),
            ("a bitmap header of unknown size",    bitmap(41),                      None),
            ("XML",                                b"<?xml version='1.0'?>".to_vec(), Some(DocumentFormat::Xml)),
            ("XML after a mark",                   b"\xef\xbb\xbf <?xml ?>".to_vec(), Some(DocumentFormat::Xml)),
            ("XML in UTF-16",                      b"\xff\xfe<\0?\0x\0m\0l\0".to_vec(), Some(DocumentFormat::Xml)),
            ("an e-invoice without declaration",   b"<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'>".to_vec(), Some(DocumentFormat::Xml)),
            ("EDIFACT",                            b"UNA:+.? 'UNB+UNOC:3+4000004000002:14+4000004000099:14+260305:1000+1'".to_vec(), Some(DocumentFormat::Edifact)),
            ("a text that begins with UNB",        b"UNBELIEVABLE INVOICE".to_vec(), None),
            ("a signed document",                  [b"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02", &junk(9, b"%PDF-1.4")[..]].concat(), Some(DocumentFormat::Envelope)),
            ("a web page",                         b"<!DOCTYPE html><html>".to_vec(), Some(DocumentFormat::Office(OfficeFormat::Html))),
            ("an Office document",                 [b"PK\x03\x04", &[0; 22][..], b"\x13\0\0\0[Content_Types].xml", &junk(50, b"word/document.xml")[..]].concat(), Some(DocumentFormat::Office(OfficeFormat::Docx))),
            ("one byte",                           b"%".to_vec(),                   None),
            ("nothing",                            vec![],                          None),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(DocumentFormat::sniff_signed(&bytes), expected, "{name}");
        }
    }

    #[test]
    fn a_photo_in_a_format_that_is_not_read_is_refused_with_what_to_do() {
        let photo = |brand: &str| [b"\0\0\0\x18ftyp", brand.as_bytes(), b"\0\0\0\0"].concat();
        for (raw, words) in [
            (&photo("isom")[..], "neither PDF, image"),
            (b"FUJIFILMCCD-RAW 0201\0", "raw format of a camera"),
            (&photo("crx "), "raw format of a camera"),
            (b"II*\0\x10\0\0\0CR\x02\0", "raw format of a camera"),
            (
                b"II*\0\x08\0\0\0\x01\0\x12\xc6\x01\0\x04\0\0\0\x01\x04\0\0",
                "raw format of a camera",
            ),
        ] {
            assert_eq!(DocumentFormat::sniff(raw), None);
            assert!(describe_unsupported(raw).contains(words), "{words}");
        }
    }
}
