//! Small documents made on the fly: invented companies, base-14 fonts, no files.
#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::AlphaColor;
use hayro::{PixmapSettings, RenderCache, RenderSettings};

/// A one-page A4 PDF with lines of text at (x, y from the top, in points).
pub(crate) fn pdf(lines: &[(f32, f32, &str)]) -> Vec<u8> {
    let mut content = String::from("BT /F1 11 Tf\n");
    for (x, y, text) in lines {
        let escaped = text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        content.push_str(&format!("1 0 0 1 {x} {} Tm ({escaped}) Tj\n", 842.0 - y));
    }
    content.push_str("ET\n");
    assemble(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ])
}

/// A PDF of these objects, numbered from 1; the first is the catalog.
pub(crate) fn assemble(objects: &[String]) -> Vec<u8> {
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(out.len());
        out.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).bytes());
    }
    let xref = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for offset in offsets {
        out.extend(format!("{offset:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    out.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n").bytes(),
    );
    out
}

/// An invoice whose sums are right: net 100.00, VAT 20 %, total 120.00.
pub(crate) fn invoice(number: &str) -> Vec<u8> {
    pdf(&[
        (60.0, 60.0, "Northwind Paper Ltd"),
        (60.0, 76.0, "12 Mill Lane, Leeds LS1 4AB"),
        (60.0, 92.0, "Tax ID: GB123456789"),
        (60.0, 140.0, "INVOICE"),
        (60.0, 164.0, &format!("Invoice number: {number}")),
        (60.0, 180.0, "Invoice date: 2026-03-14"),
        (60.0, 196.0, "Due date: 2026-04-13"),
        (60.0, 240.0, "Description"),
        (300.0, 240.0, "Quantity"),
        (380.0, 240.0, "Unit price"),
        (480.0, 240.0, "Amount"),
        (60.0, 258.0, "Copy paper A4, box"),
        (300.0, 258.0, "4"),
        (380.0, 258.0, "25.00"),
        (480.0, 258.0, "100.00"),
        (380.0, 300.0, "Subtotal"),
        (480.0, 300.0, "GBP 100.00"),
        (380.0, 316.0, "VAT 20%"),
        (480.0, 316.0, "GBP 20.00"),
        (380.0, 332.0, "Total"),
        (480.0, 332.0, "GBP 120.00"),
    ])
}

/// The same page as a picture (PNG): what a scanner would send.
pub(crate) fn scan(pdf: Vec<u8>, dpi: f32) -> Vec<u8> {
    let document = Pdf::new(pdf).expect("the PDF is ours");
    let page = document.pages().first().expect("one page");
    let scale = dpi / 72.0;
    let size = PixmapSettings {
        x_scale: scale,
        y_scale: scale,
        bg_color: AlphaColor::from_rgba8(255, 255, 255, 255),
    };
    let (cache, how) = (RenderCache::new(), InterpreterSettings::default());
    let picture = hayro::render(page, &cache, &how, &RenderSettings::default(), &size);
    let (width, height) = (u32::from(picture.width()), u32::from(picture.height()));
    let grey: Vec<u8> = picture.data_as_u8_slice().iter().step_by(4).copied().collect();
    let image = image::GrayImage::from_raw(width, height, grey).expect("four bytes a pixel");
    let mut png = std::io::Cursor::new(Vec::new());
    image.write_to(&mut png, image::ImageFormat::Png).expect("memory takes every write");
    png.into_inner()
}
