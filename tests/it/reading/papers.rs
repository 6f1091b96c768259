//! Small documents made on the spot: PDFs written by hand, and pictures of their pages.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use image::{GrayImage, ImageFormat};
use lopdf::encryption::crypt_filters::{Aes256CryptFilter, CryptFilter};

/// A PDF of the given objects, numbered from 1; the first is the catalog.
pub(crate) fn pdf_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).into_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for offset in offsets {
        file.extend(format!("{offset:010} 00000 n \n").into_bytes());
    }
    let size = objects.len() + 1;
    let trailer = format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n");
    file.extend(trailer.into_bytes());
    file
}

pub(crate) fn stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<<{dictionary}/Length {}>>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

/// A PDF with a page of A4 per content stream; `extra` goes into every page's dictionary.
pub(crate) fn pdf(pages: &[&str], extra: &str) -> Vec<u8> {
    let first = 4;
    let kids: Vec<String> = (0..pages.len()).map(|n| format!("{} 0 R", first + 2 * n)).collect();
    let (kids, count) = (kids.join(" "), pages.len());
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        format!("<</Type/Pages/Kids[{kids}]/Count {count}>>").into_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    for (index, content) in pages.iter().enumerate() {
        let contents = first + 2 * index + 1;
        let page = format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]{extra}\
             /Resources<</Font<</F1 3 0 R>>>>/Contents {contents} 0 R>>"
        );
        objects.push(page.into_bytes());
        objects.push(stream("", content.as_bytes()));
    }
    pdf_of(&objects)
}

/// A content stream that writes lines from the top, 18 points apart.
pub(crate) fn content(lines: &[&str]) -> String {
    let shown: Vec<String> = lines.iter().map(|line| format!("({line}) Tj T*")).collect();
    format!("BT /F1 14 Tf 60 780 Td 18 TL {} ET", shown.join(" "))
}

/// The first page, drawn at 150 dpi.
pub(crate) fn picture(pdf: Vec<u8>) -> GrayImage {
    let pdf = Pdf::new(pdf).unwrap();
    let scale = 150.0 / 72.0;
    let settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let pixmap = render(
        &pdf.pages()[0],
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &settings,
    );
    let pixels = pixmap.data().iter().map(|pixel| pixel.r).collect();
    GrayImage::from_raw(pixmap.width().into(), pixmap.height().into(), pixels).unwrap()
}

pub(crate) fn encoded(picture: &GrayImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A PDF whose only page is a scan, with `hidden` as an invisible layer of text, lying on the page
/// as `matrix` says.
pub(crate) fn scan(picture: &GrayImage, hidden: &str, matrix: &str) -> Vec<u8> {
    let (width, height) = picture.dimensions();
    let content = format!("BT 3 Tr /F1 14 Tf 60 700 Td ({hidden}) Tj ET q {matrix} cm /Im Do Q");
    let image = format!(
        "/Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray\
         /BitsPerComponent 8"
    );
    pdf_of(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[4 0 R]/Count 1>>".to_vec(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R\
          /Resources<</Font<</F1 3 0 R>>/XObject<</Im 6 0 R>>>>>>"
            .to_vec(),
        stream("", content.as_bytes()),
        stream(&image, picture.as_raw()),
    ])
}

/// The same document, encrypted with this password.
pub(crate) fn encrypted(pdf: &[u8], password: &str) -> Vec<u8> {
    let mut document = lopdf::Document::load_mem(pdf).unwrap();
    let id = || lopdf::Object::string_literal("0123456789abcdef");
    document.trailer.set("ID", lopdf::Object::Array(vec![id(), id()]));
    let version = lopdf::EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: password,
        key_length: 128,
        permissions: lopdf::Permissions::all(),
    };
    let state = lopdf::EncryptionState::try_from(version).unwrap();
    document.encrypt(&state).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

/// The same document, encrypted with AES of 256 bits and this password.
pub(crate) fn encrypted_by_aes(pdf: &[u8], password: &str) -> Vec<u8> {
    let mut document = lopdf::Document::load_mem(pdf).unwrap();
    let filter: Arc<dyn CryptFilter> = Arc::new(Aes256CryptFilter);
    let version = lopdf::EncryptionVersion::V5 {
        encrypt_metadata: true,
        crypt_filters: BTreeMap::from([(b"StdCF".to_vec(), filter)]),
        file_encryption_key: &[7; 32],
        stream_filter: b"StdCF".to_vec(),
        string_filter: b"StdCF".to_vec(),
        owner_password: "owner",
        user_password: password,
        permissions: lopdf::Permissions::all(),
    };
    document.encrypt(&lopdf::EncryptionState::try_from(version).unwrap()).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

/// The same document, with this dictionary saying how it is encrypted.
pub(crate) fn with_handler(pdf: &[u8], dictionary: &str) -> Vec<u8> {
    let text =
        String::from_utf8_lossy(pdf).replace("/Root", &format!("/Encrypt<<{dictionary}>>/Root"));
    text.into_bytes()
}

/// The same document, with its start of the table of objects leading nowhere.
pub(crate) fn damaged_table(pdf: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(pdf).replace("startxref\n", "startxref\n9").into_bytes()
}
