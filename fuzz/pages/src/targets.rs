//! Properties under arbitrary bytes of documents, and of answers of page processes and readers of
//! pages. No input may end the process, keep it busy for long or fill it; each target asserts its
//! own besides.

use bytes::Bytes;
use docmill_core::config::{ByteSize, LimitsConfig, VisionRecipe};
use docmill_core::model::{PageText, Transcript};
use docmill_documents::EinvoiceRules;
use docmill_documents::ocr::vision::VisionOcr;
use docmill_documents::open_document;
use docmill_documents::sandbox::believes_answer;
use docmill_documents::sandbox::wire::{DocumentAnswer, ReplyFrame, RequestFrame, read_frame};
use docmill_layout::{read_layout, render_markdown};
use docmill_office::{LaidPage, OfficeFormat, lay_out_document};

/// A target by its name.
type NamedTarget = (&'static str, fn(&[u8]));

/// All of them.
pub(crate) const TARGETS: [NamedTarget; 7] = [
    ("document", read_document),
    ("office", read_office),
    ("pdf", read_pdf),
    ("pdf_stream", read_pdf_stream),
    ("tiff", read_tiff),
    ("page_answer", read_page_answer),
    ("page_reply", read_page_reply),
];

/// As in production, only smaller, so that an input that breaks them is found soon.
fn limits() -> LimitsConfig {
    LimitsConfig {
        pages: 20,
        page_pixels: 1_000_000,
        decompressed_bytes: ByteSize::from_mib(4),
        page_words: 2_000,
        page_time: std::time::Duration::from_secs(5),
        ..LimitsConfig::default()
    }
}

/// A file in the format that its first byte names: no word leaves its page, and there are no more
/// pages than are allowed.
fn read_office(data: &[u8]) {
    const FORMATS: [OfficeFormat; 6] = [
        OfficeFormat::Docx,
        OfficeFormat::Odt,
        OfficeFormat::Rtf,
        OfficeFormat::Html,
        OfficeFormat::Csv,
        OfficeFormat::Text,
    ];
    let Some((first, rest)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let limits = limits();
    let Ok(pages) = lay_out_document(rest, format, &limits) else { return };
    assert!((1..=limits.pages as usize).contains(&pages.len()));
    for page in pages {
        let LaidPage::Text(page) = page else { continue };
        for word in page.lines.iter().flat_map(|line| &line.words) {
            let area = word.bounding_box;
            assert!(area.right() <= page.width && area.bottom() <= page.height);
            assert!(!word.text.is_empty() && !word.text.contains(char::is_whitespace));
        }
    }
}

/// A file of whatever format: opened, its e-invoices, its text, and the content of three pages.
fn read_document(data: &[u8]) {
    let limits = limits();
    let Ok(document) = open_document(Bytes::copy_from_slice(data), &limits, 50) else { return };
    assert!((1..=limits.pages).contains(&document.page_count()));
    let _found = document.find_einvoice(&EinvoiceRules::default());
    for index in 0..document.page_count().min(3) {
        if let Ok(page) = document.printed_page(index) {
            assert_eq!(page.text.number, index + 1);
        }
        drop(document.page_content(index));
    }
}

fn read_pdf(data: &[u8]) {
    read_document(&[b"%PDF-1.7\n", data].concat());
}

/// A whole file around one stream: its dictionary up to the first NUL, then its data.
fn read_pdf_stream(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (dictionary, content) = data.split_at(at);
    let content = content.get(1..).unwrap_or_default();
    let mut file = b"%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
        2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
        3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R\
        /Resources<</XObject<</I 4 0 R>>>>>>\nendobj\n4 0 obj\n<<"
        .to_vec();
    file.extend_from_slice(dictionary);
    file.extend_from_slice(format!("/Length {}>>\nstream\n", content.len()).as_bytes());
    file.extend_from_slice(content);
    file.extend_from_slice(b"\nendstream\nendobj\ntrailer\n<</Root 1 0 R/Size 5>>\n%%EOF\n");
    read_document(&file);
}

/// Both orders of bytes, and both sizes of offsets.
fn read_tiff(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let head: &[u8] = match first % 4 {
        0 => b"II*\0",
        1 => b"MM\0*",
        2 => b"II+\0\x08\0\0\0",
        _ => b"MM\0+\0\x08\0\0",
    };
    read_document(&[head, rest].concat());
}

/// A page process's answer, with a body of up to 64 KiB.
fn read_page_answer(data: &[u8]) {
    let most = 64 << 10;
    drop(read_frame::<RequestFrame>(data, most));
    let Ok(Some((reply, body))) = read_frame::<ReplyFrame>(data, most) else { return };
    let limits = limits();
    let page = match &reply.answer {
        DocumentAnswer::Printed { page } => Some(Box::new(page.text.clone())),
        DocumentAnswer::Read { page, .. }
        | DocumentAnswer::Known { page }
        | DocumentAnswer::LocalRead { page, .. } => Some(page.clone()),
        _ => None,
    };
    if believes_answer(reply.answer, body, &limits)
        && let Some(page) = page
    {
        // Accepted pages are processed further.
        show_page(*page);
    }
}

fn show_page(page: PageText) {
    let (sha256, provider) = (String::new(), String::new());
    let pages = vec![page];
    let format = Transcript::FORMAT;
    let layout = read_layout(&Transcript { format, sha256, provider, pages, quality: 1.0 });
    render_markdown(&layout);
}

/// A vision model's reply about a page.
fn read_page_reply(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let recipe = if first % 2 == 0 { VisionRecipe::General } else { VisionRecipe::Olmocr };
    for line in VisionOcr::parse_reply(recipe, text).unwrap_or_default() {
        assert!(!line.is_empty(), "a line has words");
        for word in line {
            let hidden = |c: char| c.is_control() || c.is_whitespace();
            assert!(!word.is_empty() && !word.contains(hidden), "a word has letters only");
        }
    }
}
