//! Documents to transcripts, with the real Tesseract where a page is a picture.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

pub(crate) mod figures;
mod hostile;
pub(crate) mod marks;
pub(crate) mod neural;
pub(crate) mod papers;
#[cfg(unix)]
mod programs;
mod vision;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_core::config::{ByteSize, ConfinementMode, CpuConfig, LimitsConfig, OcrConfig};
use docmill_core::fault::{self, Fault};
use docmill_core::model::{OutcomeReason, PageSource, TextLine, Transcript};
use docmill_documents::ocr::OcrEngine;
use docmill_documents::ocr::tesseract::TesseractEngine;
use docmill_documents::sandbox::{ProcessPool, ProcessProgram, ProcessSetup};
use docmill_documents::{PageRaster, PageRecogniser};
use docmill_pipeline::reading::DocumentReader;
use docmill_pipeline::{RemoteOcr, SecondLooks, StepError};
use image::ImageFormat;

use crate::support::page_processes::{docmill, lives, reader_here as reader, recipe};
use crate::support::whole::ReadWhole as _;
use papers::{
    content, damaged_table, encoded, encrypted, encrypted_by_aes, pdf, pdf_of, picture, scan,
    stream, with_handler,
};

const INVOICE: [&str; 3] = ["Invoice number 4711", "Supplier Honest Parts Ltd", "Total 480.00 EUR"];

/// An OCR that sees nothing and remembers how many pages it held at the same time.
#[derive(Clone, Default)]
struct Blind(Arc<Seen>);

#[derive(Default)]
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    sizes: Mutex<Vec<(u32, u32)>>,
}

impl OcrEngine for Blind {
    fn name(&self) -> String {
        "blind".to_owned()
    }

    fn identity(&self) -> String {
        "blind".to_owned()
    }

    fn make_recogniser(&self) -> fault::Result<Box<dyn PageRecogniser>> {
        Ok(Box::new(self.clone()))
    }
}

impl PageRecogniser for Blind {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, page: &PageRaster, _: &[String]) -> fault::Result<Vec<TextLine>> {
        let Seen { now, most, sizes } = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sizes.lock().unwrap().push((page.width, page.height));
        std::thread::yield_now();
        now.fetch_sub(1, Ordering::SeqCst);
        Ok(Vec::new())
    }
}

async fn read_blind(file: Vec<u8>, limits: LimitsConfig) -> Result<Transcript, StepError> {
    reader(Arc::new(Blind::default()), limits).read(file.into(), "sha", false).await
}

async fn read_with_tesseract(file: Vec<u8>) -> Result<Transcript, StepError> {
    let limits = LimitsConfig::default();
    let config = OcrConfig { languages: vec!["eng".to_owned()], ..OcrConfig::default() };
    let tesseract = TesseractEngine::find_installed(&config, limits.page_time).unwrap();
    reader(Arc::new(tesseract), limits).read(file.into(), "sha", false).await
}

fn reason(result: Result<Transcript, StepError>) -> Option<OutcomeReason> {
    match result {
        Ok(_) => None,
        Err(StepError::Rejected { reason, .. }) => Some(reason),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_text_layer_is_read_with_positions_and_without_ocr() {
    let transcript =
        read_blind(pdf(&[&content(&INVOICE)], ""), LimitsConfig::default()).await.unwrap();
    let page = &transcript.pages[0];
    assert_eq!(page.text(), INVOICE.join("\n"));
    assert_eq!((page.number, page.source, page.quality), (1, PageSource::Native, 1.0));
    assert_eq!((page.width, page.height), (595.0, 842.0));
    let first = page.lines[0].words[0].bounding_box;
    // Written from x 60 on a baseline 780 above the page's lower edge, which is 62 below its upper.
    assert!((first.x - 60.0).abs() < 0.2 && first.y < 62.0 && first.bottom() > 62.0, "{first:?}");
    assert!((40.0..60.0).contains(&first.w), "{first:?}");
    assert_eq!(transcript.sha256, "sha");
}

#[tokio::test]
async fn a_page_that_is_shown_turned_is_read_as_it_is_shown() {
    // Drawn so that it stands upright as shown; on a wide page 300 points lower.
    let upright = content(&INVOICE);
    for (rotate, drawn, size) in [
        (90, "0 1 -1 0 895 0", (842.0, 595.0)),
        (180, "-1 0 0 -1 595 842", (595.0, 842.0)),
        (270, "0 -1 1 0 -300 842", (842.0, 595.0)),
    ] {
        let turned = format!("q {drawn} cm {upright} Q");
        let file = pdf(&[&turned], &format!("/Rotate {rotate}"));
        let page = &read_blind(file, LimitsConfig::default()).await.unwrap().pages[0];
        assert_eq!((page.width, page.height), size);
        assert_eq!(page.text(), INVOICE.join("\n"), "turned by {rotate}");
        let first = page.lines[0].bounding_box();
        assert!(first.x >= 0.0 && first.right() <= page.width, "{first:?}");
        assert!(first.y >= 0.0 && first.bottom() <= page.height, "{first:?}");
    }
}

#[tokio::test]
async fn text_that_does_not_show_is_not_read() {
    #[rustfmt::skip]
    let table = [
        ("render mode 3",              "BT 3 Tr /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
        ("white on white",             "BT 1 g /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
        ("outside the page",           "BT /F1 14 Tf 60 -400 Td (Total 9999) Tj ET"),
        ("outside the clip",           "0 0 10 10 re W n BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
        ("under a white rectangle",    "BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET 1 g 0 380 400 50 re f"),
        ("in a size nobody can read",  "BT /F1 0.5 Tf 60 400 Td (Total 9999) Tj ET"),
        ("in one point",               "BT /F1 1.01 Tf 60 400 Td (Total 9999) Tj ET"),
        ("squeezed to a line",         "BT /F1 14 Tf 2 Tz 60 400 Td (Total 9999) Tj ET"),
        ("nearly white on white",      "BT 0.957 g /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
        ("light on a light bar",       "0.9 g 0 380 400 50 re f 0.8 g BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
        ("under a white polygon",      "BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET 1 g 50 380 m 400 380 l 401 430 l 50 430 l h f"),
        ("under a thick white line",   "BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET 1 G 40 w 50 405 m 400 405 l S"),
        ("outside a clip's shape",     "0 0 m 595 0 l 595 10 l 10 10 l 10 842 l 0 842 l h W n BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET"),
    ];
    for (name, hidden) in table {
        let file = pdf(&[&format!("q {} Q q {hidden} Q", content(&INVOICE))], "");
        let text = read_blind(file, LimitsConfig::default()).await.unwrap().full_text();
        assert_eq!(text, INVOICE.join("\n"), "{name}");
    }
}

#[tokio::test]
async fn text_that_shows_is_read_whatever_is_painted_around_it() {
    #[rustfmt::skip]
    let table = [
        ("white on a dark bar",           "0 g 0 380 400 50 re f 1 g BT /F1 14 Tf 60 400 Td (Total 480) Tj ET"),
        ("black on a shaded row",         "0.9 g 0 380 400 50 re f 0 g BT /F1 8 Tf 60 400 Td (Total 480) Tj ET"),
        ("grey print",                    "0.6 g BT /F1 6 Tf 60 400 Td (Total 480) Tj ET"),
        ("red print",                     "0.8 0 0 rg BT /F1 8 Tf 60 400 Td (Total 480) Tj ET"),
        ("heavy print in a box",          "3 w 50 390 120 30 re S 2 Tr 1 w BT /F1 14 Tf 60 400 Td (Total 480) Tj ET"),
        ("beside a polygon",              "BT /F1 14 Tf 60 400 Td (Total 480) Tj ET 1 g 50 300 m 400 300 l 401 350 l 50 350 l h f"),
        ("in the hole of a shape",        "BT /F1 14 Tf 60 400 Td (Total 480) Tj ET 0.5 g 20 300 400 200 re 50 380 300 60 re f*"),
        ("in a clip of any shape",        "40 380 m 300 380 l 310 430 l 40 430 l h W n BT /F1 14 Tf 60 400 Td (Total 480) Tj ET"),
        ("over what a polygon has hidden", "BT /F1 14 Tf 60 400 Td (Total 9999) Tj ET 1 g 50 380 m 400 380 l 401 430 l 50 430 l h f 0 g BT /F1 14 Tf 60 400 Td (Total 480) Tj ET"),
    ];
    for (name, shown) in table {
        let file = pdf(&[shown], "");
        let text = read_blind(file, LimitsConfig::default()).await.unwrap().full_text();
        assert_eq!(text, "Total 480", "{name}");
    }
}

/// A page whose font says of its glyphs what `map` says, in hexadecimal: drawn code to character.
fn mapped(shown: &str, font: &str, map: &[(&str, &str)]) -> Vec<u8> {
    let pairs: String = map.iter().map(|(code, text)| format!("<{code}> <{text}>\n")).collect();
    let to_unicode = format!(
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 \
         def\n1 begincodespacerange <00> <FF> endcodespacerange\n1 beginbfrange <20> <7E> <0020> \
         endbfrange\n{} beginbfchar\n{pairs}endbfchar\nendcmap CMapName currentdict /CMap \
         defineresource pop end end",
        map.len()
    );
    let content = content(&[shown]);
    pdf_of(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R\
          /Resources<</Font<</F1 5 0 R>>>>>>"
            .to_vec(),
        stream("", content.as_bytes()),
        format!("<</Type/Font/Subtype/Type1/BaseFont/{font}/ToUnicode 6 0 R>>").into_bytes(),
        stream("", to_unicode.as_bytes()),
    ])
}

#[tokio::test]
async fn an_amount_is_read_as_it_is_drawn_and_not_as_its_font_says() {
    let shown = "Invoice total: 1100.00 EUR payable";
    for font in ["Courier", "Helvetica", "Times-Bold"] {
        for (name, map) in [
            ("a 1 that is called 9", ("31", "0039")),
            ("a 1 that is called a wide 9", ("31", "FF19")),
            ("a 0 that is called 8", ("30", "0038")),
            ("a 1 that is called nothing", ("31", "0020")),
            ("a 1 that is called 99", ("31", "00390039")),
        ] {
            let read = read_with_tesseract(mapped(shown, font, &[map])).await.unwrap();
            let text = read.full_text();
            assert!(text.contains("1100.00"), "{font}, {name}: {text}");
            // A glyph without a name contradicts nothing.
            let mut words = read.pages[0].lines.iter().flat_map(|line| &line.words);
            let is_marked = words.any(|word| word.unwitnessed && word.text == "1100.00");
            assert_eq!(is_marked, name != "a 1 that is called nothing", "{font}, {name}");
        }
        let honest = read_blind(mapped(shown, font, &[("31", "0031")]), LimitsConfig::default());
        assert_eq!(honest.await.unwrap().full_text(), shown, "{font}");
    }
}

#[tokio::test]
async fn a_page_image_is_read_by_tesseract_and_judged() {
    let page = picture(pdf(&[&content(&INVOICE)], ""));
    for format in [ImageFormat::Png, ImageFormat::Tiff] {
        let transcript = read_with_tesseract(encoded(&page, format)).await.unwrap();
        let read = &transcript.pages[0];
        assert_eq!(read.text(), INVOICE.join("\n"), "{format:?}");
        assert_eq!(read.source, PageSource::Ocr);
        assert_eq!(read.languages, ["eng"]);
        assert!(read.quality > 0.7, "{format:?}: {}", read.quality);
        assert!(transcript.provider.starts_with("tesseract "), "{}", transcript.provider);
    }
}

#[tokio::test]
async fn a_photo_of_an_invoice_is_read_like_its_picture() {
    let drawn = include_bytes!("../photos/invoice.png");
    let drawn = read_with_tesseract(drawn.to_vec()).await.unwrap().full_text();
    assert!(drawn.contains("Invoice number: NP-4711") && drawn.contains("GBP 120.00"), "{drawn}");
    let photos = [
        ("HEIC", &include_bytes!("../photos/invoice.heic")[..]),
        ("AVIF", include_bytes!("../photos/invoice.avif")),
        ("JPEG XL", include_bytes!("../photos/invoice.jxl")),
    ];
    for (format, photo) in photos {
        let read = read_with_tesseract(photo.to_vec()).await.unwrap().full_text();
        assert_eq!(read, drawn, "{format}");
    }
}

#[tokio::test]
async fn what_a_scan_shows_wins_over_its_hidden_layer() {
    let page = picture(pdf(&[&content(&INVOICE)], ""));
    let file = scan(&page, "Total 9999.00 EUR", "595 0 0 842 0 0");
    let transcript = read_with_tesseract(file).await.unwrap();
    assert_eq!(transcript.full_text(), INVOICE.join("\n"));
    assert_eq!(transcript.pages[0].source, PageSource::Ocr);
}

#[tokio::test]
async fn a_scan_is_taken_out_as_it_lies_on_the_page() {
    let upright = picture(pdf(&[&content(&INVOICE)], ""));
    // Stored upside down and put right by the matrix.
    let stored = image::imageops::rotate180(&upright);
    let file = scan(&stored, "", "-595 0 0 -842 595 842");
    assert_eq!(read_with_tesseract(file).await.unwrap().full_text(), INVOICE.join("\n"));
    // At its own resolution, not at that for rendering.
    let blind = Blind::default();
    let reader = reader(Arc::new(blind.clone()), LimitsConfig::default());
    let file = scan(&upright, "", "595 0 0 842 0 0");
    assert_eq!(reason(reader.read(file.into(), "sha", false).await), Some(OutcomeReason::NoText));
    assert!(blind.0.sizes.lock().unwrap().contains(&upright.dimensions()));
}

/// A PDF with this list of pages and nothing else.
fn kids(kids: &str) -> Vec<u8> {
    let pages = format!("<</Type/Pages/Kids[{kids}]/Count 1>>").into_bytes();
    pdf_of(&[b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), pages])
}

/// A PDF whose page names a content stream that is not there.
fn lost() -> Vec<u8> {
    pdf_of(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 9 0 R>>".to_vec(),
    ])
}

/// A drawing that draws a drawing ten times, and so on: 10 to the power of `depth` at the bottom.
fn forms(depth: usize) -> Vec<u8> {
    let ten = "/X Do ".repeat(10);
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R\
          /Resources<</XObject<</X 5 0 R>>>>>>"
            .to_vec(),
        stream("", ten.as_bytes()),
    ];
    for level in 1..depth {
        let next = 5 + level;
        let form = format!(
            "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {next} 0 R>>>>"
        );
        objects.push(stream(&form, ten.as_bytes()));
    }
    objects.push(stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"0 0 9 9 re f"));
    pdf_of(&objects)
}

#[tokio::test]
async fn every_boundary_has_its_code() {
    let page = content(&INVOICE);
    let good = pdf(&[&page], "");
    let with = |change: fn(&mut LimitsConfig)| {
        let mut limits = LimitsConfig::default();
        change(&mut limits);
        limits
    };
    let default = LimitsConfig::default;
    let grey = |width, height| encoded(&image::GrayImage::new(width, height), ImageFormat::Png);
    let junk = |length: usize, file: &[u8]| [&vec![b'\n'; length][..], file].concat();
    let header = b"POST /scan HTTP/1.1\r\nContent-Type: application/pdf\r\n\r\n".repeat(60);
    let by_certificate = with_handler(
        &good,
        "/Filter/Adobe.PubSec/SubFilter/adbe.pkcs7.s5/V 4/StmF/DefaultCryptFilter\
         /StrF/DefaultCryptFilter/CF<</DefaultCryptFilter<</CFM/AESV2/Recipients[<30>]>>>>",
    );
    #[rustfmt::skip]
    let table = [
        ("a good page",               good.clone(),                      default(), None),
        ("junk before the header",    junk(1000, &good),                 default(), None),
        ("much junk before the header", junk(5000, &good),               default(), None),
        ("a request before the header", [&header[..], &good].concat(),   default(), None),
        ("an empty user password",    encrypted(&good, ""),              default(), None),
        ("an empty password for AES-256", encrypted_by_aes(&good, ""),   default(), None),
        ("the same after much junk",  junk(5000, &encrypted_by_aes(&good, "")), default(), None),
        ("no bytes",                  vec![],                            default(), Some(OutcomeReason::Empty)),
        ("no pages",                  kids(""),                          default(), Some(OutcomeReason::Empty)),
        ("pages that lead nowhere",   kids("2 0 R"),                     default(), Some(OutcomeReason::Corrupt)),
        ("a header and no more",      b"%PDF-1.7\n".to_vec(),            default(), Some(OutcomeReason::Corrupt)),
        ("a page whose content is gone", lost(),                           default(), Some(OutcomeReason::Corrupt)),
        ("a picture cut in half",     grey(90, 90)[..60].to_vec(),       default(), Some(OutcomeReason::Corrupt)),
        ("plain text",                b"Invoice 4711".to_vec(),          default(), None),
        ("bytes of no format",        b"Invoice\0\x01".to_vec(),         default(), Some(OutcomeReason::UnsupportedType)),
        ("XML that says nothing",     b"<?xml version='1.0'?><a/>".to_vec(), default(), Some(OutcomeReason::UnsupportedType)),
        ("a password",                encrypted(&good, "secret"),        default(), Some(OutcomeReason::Encrypted)),
        ("a password for AES-256",    encrypted_by_aes(&good, "secret"), default(), Some(OutcomeReason::Encrypted)),
        ("the same password after much junk", junk(5000, &encrypted_by_aes(&good, "secret")), default(), Some(OutcomeReason::Encrypted)),
        ("a certificate",             by_certificate.clone(),            default(), Some(OutcomeReason::Encrypted)),
        ("a certificate, its table damaged", damaged_table(&by_certificate), default(), Some(OutcomeReason::Encrypted)),
        ("a handler that nobody knows", with_handler(&good, "/Filter/Ours/V 1"), default(), Some(OutcomeReason::Encrypted)),
        ("encryption that says nothing of itself", with_handler(&good, "/Filter/Standard"), default(), Some(OutcomeReason::Encrypted)),
        ("as many pages as allowed",  pdf(&[page.as_str(); 3], ""),              with(|l| l.pages = 3), None),
        ("a page too many",           pdf(&[page.as_str(); 4], ""),              with(|l| l.pages = 3), Some(OutcomeReason::TooLarge)),
        ("as many pixels as allowed", grey(1000, 1000),                  with(|l| l.page_pixels = 1_000_000), Some(OutcomeReason::NoText)),
        ("a pixel too many",          grey(1000, 1001),                  with(|l| l.page_pixels = 1_000_000), Some(OutcomeReason::TooLarge)),
        ("a nested drawing",          forms(2),                          default(), Some(OutcomeReason::NoText)),
        ("a bomb of nested drawings", forms(9),                          default(), Some(OutcomeReason::TooLarge)),
        ("no time at all",            forms(5),                          with(|l| l.page_time = Duration::ZERO), Some(OutcomeReason::Timeout)),
        ("a blank page",              pdf(&[""], ""),                    default(), Some(OutcomeReason::NoText)),
        ("as many words as allowed",  pdf(&[&content(&["a b", "c d"])], ""),    with(|l| l.page_words = 4), None),
        ("a word too many",           pdf(&[&content(&["a b", "c d e"])], ""),  with(|l| l.page_words = 4), Some(OutcomeReason::TooLarge)),
        ("more words than are put in order", words(2_000),                with(|l| l.page_words = 4), Some(OutcomeReason::TooLarge)),
        ("a page of usual text, ten times", pdf(&[page.as_str(); 10], ""), with(|l| l.text_bytes = ByteSize(64 << 10)), None),
        ("more text than allowed on all pages", pdf(&[page.as_str(); 10], ""), with(|l| l.text_bytes = ByteSize(8 << 10)), Some(OutcomeReason::TooLarge)),
    ];
    for (name, file, limits, expected) in table {
        assert_eq!(reason(read_blind(file, limits).await), expected, "{name}");
    }
}

#[tokio::test]
async fn what_expands_too_far_is_refused_before_it_is_parsed() {
    let zeros = vec![b' '; 2_000_000];
    let file = picture_stream(&zeros);
    let limits = LimitsConfig { decompressed_bytes: ByteSize(1_000_000), ..Default::default() };
    assert_eq!(reason(read_blind(file, limits).await), Some(OutcomeReason::TooLarge));
}

#[tokio::test]
async fn text_that_nobody_sees_has_the_limits_of_text_that_is_read() {
    let with = |words: u32, kibibytes: u64| LimitsConfig {
        page_words: words,
        text_bytes: ByteSize(kibibytes << 10),
        ..Default::default()
    };
    // 2,000 pieces below the size that can be read, which may be 500 words, beside ten that show.
    let line =
        |row: u32| format!("BT /F1 1 Tf 60 {} Td (a b c d e f g h i j ) Tj ET\n", 100 + 3 * row);
    let lines: String = (0..200).map(line).collect();
    let hidden = format!("{} {lines}", content(&INVOICE));
    let scanned = |pages: usize| pdf(&vec![hidden.as_str(); pages], "");
    #[rustfmt::skip]
    let table = [
        ("as many words as allowed",        scanned(1), with(503, 1 << 10), None),
        ("more words than allowed",         scanned(1), with(502, 1 << 10), Some(OutcomeReason::TooLarge)),
        ("as much text as allowed",         scanned(4), with(503, 200),     None),
        ("more text on all pages together", scanned(6), with(503, 200),     Some(OutcomeReason::TooLarge)),
    ];
    for (name, file, limits, expected) in table {
        assert_eq!(reason(read_blind(file, limits).await), expected, "{name}");
    }
}

/// A PDF whose page has so many words.
fn words(count: usize) -> Vec<u8> {
    let line = "a b c d e f g h i j ";
    pdf(&[&content(&vec![line; count / 10])], "")
}

#[tokio::test]
async fn a_program_that_calls_itself_an_image_is_counted_as_what_it_is() {
    let zeros = vec![b' '; 600_000];
    let limits = || LimitsConfig { decompressed_bytes: ByteSize(1_000_000), ..Default::default() };
    let compressed = |data: &[u8]| {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    };
    let image = "/Type/XObject/Subtype/Image/Width 775/Height 775/ColorSpace/DeviceGray\
                 /BitsPerComponent 8/Filter/FlateDecode";
    let file = |contents: &str, objects: &str, more: &[u8]| {
        pdf_of(&[
            b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
            format!(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {contents}\
                 /Resources<</XObject {objects}>>>>"
            )
            .into_bytes(),
            stream(image, &compressed(&zeros)),
            stream(image, &compressed(&zeros)),
            stream("", b"q 595 0 0 421 0 0 cm /A Do Q q 595 0 0 421 0 421 cm /B Do Q"),
            more.to_vec(),
        ])
    };
    for (name, contents, objects, more, expected) in [
        ("two images", "6 0 R", "<</A 4 0 R/B 5 0 R>>", "null", OutcomeReason::NoText),
        ("two named elsewhere", "6 0 R", "7 0 R", "<</A 4 0 R/B 5 0 R>>", OutcomeReason::NoText),
        ("two programs", "[4 0 R 5 0 R]", "<<>>", "null", OutcomeReason::TooLarge),
        (
            "two programs listed elsewhere",
            "7 0 R",
            "<<>>",
            "[4 0 R 5 0 R]",
            OutcomeReason::TooLarge,
        ),
    ] {
        let file = file(contents, objects, more.as_bytes());
        assert_eq!(reason(read_blind(file, limits()).await), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn an_image_within_a_pages_program_is_no_way_around_the_limits() {
    use std::io::Write;
    let inline = |bytes: usize| {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![0; bytes]).unwrap();
        let data = encoder.finish().unwrap();
        let head = b"q 595 0 0 842 0 0 cm BI /W 10 /H 10 /BPC 8 /CS /G /F /Fl ID ";
        let content = [&head[..], &data, b"\nEI Q"].concat();
        pdf_of(&[
            b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R>>".to_vec(),
            stream("", &content),
        ])
    };
    for (bytes, expected) in [(100, OutcomeReason::NoText), (4 << 20, OutcomeReason::TooLarge)] {
        let read = read_blind(inline(bytes), LimitsConfig::default()).await;
        assert_eq!(reason(read), Some(expected), "{bytes}");
    }
}

#[tokio::test]
async fn what_is_encrypted_or_filtered_elsewhere_is_counted_once_it_is_open() {
    let zeros = vec![b' '; 2_000_000];
    let limits = || LimitsConfig { decompressed_bytes: ByteSize(1_000_000), ..Default::default() };
    let small = LimitsConfig { decompressed_bytes: ByteSize(3_000_000), ..Default::default() };
    let bomb = encrypted(&picture_stream(&zeros), "");
    assert_eq!(reason(read_blind(bomb.clone(), limits()).await), Some(OutcomeReason::TooLarge));
    assert_eq!(reason(read_blind(bomb, small).await), Some(OutcomeReason::NoText));
}

/// A PDF whose page content is `data`, compressed.
pub(crate) fn picture_stream(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    pdf_of(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R>>".to_vec(),
        stream("/Filter/FlateDecode", &encoder.finish().unwrap()),
    ])
}

#[tokio::test]
async fn a_page_that_is_lost_among_good_ones_shows_in_the_quality() {
    let mut file = pdf(&[&content(&INVOICE), "BT ET"], "");
    let at = file.windows(5).position(|window| window == b"BT ET").unwrap();
    // The length stays, so that the table of objects holds.
    file[at..at + 5].copy_from_slice(b"\x01\x02\x03\x04\x05");
    let transcript = read_blind(file, LimitsConfig::default()).await.unwrap();
    assert_eq!(transcript.pages.iter().map(|page| page.quality).collect::<Vec<_>>(), [1.0, 0.0]);
    assert!(transcript.quality < 0.7, "{}", transcript.quality);
}

#[tokio::test]
async fn page_images_are_never_all_held_at_once() {
    // A drawing and no text: such a page is rendered.
    let drawn = "0 0 100 100 re f";
    let blind = Blind::default();
    let reader = reader(Arc::new(blind.clone()), LimitsConfig::default());
    let file = pdf(&[drawn; 8], "");
    assert_eq!(reason(reader.read(file.into(), "sha", false).await), Some(OutcomeReason::NoText));
    assert_eq!(blind.0.sizes.lock().unwrap().len(), 8);
    let most = blind.0.most.load(Ordering::SeqCst);
    assert!(most <= reader.processes.thread_count() + 1, "{most} at once");
}
