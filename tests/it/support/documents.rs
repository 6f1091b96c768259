//! Small documents made on the fly: invented companies, base-14 fonts, no files.
#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::AlphaColor;
use hayro::{PixmapSettings, RenderCache, RenderSettings};

/// A one-page A4 PDF with lines of text at (x, y from the top, in points).
pub(crate) fn pdf(lines: &[(f32, f32, &str)]) -> Vec<u8> {
    assemble(&page_objects(&text(lines)))
}

/// The same with a field to type into.
pub(crate) fn form(lines: &[(f32, f32, &str)]) -> Vec<u8> {
    let mut objects = page_objects(&text(lines));
    let field = objects.len() + 1;
    let form = format!("<< /Type /Catalog /AcroForm << /Fields [{field} 0 R] >>");
    let catalog = objects.first_mut().expect("a catalog");
    *catalog = catalog.replacen("<< /Type /Catalog", &form, 1);
    objects.push("<< /FT /Tx /T (name) >>".to_owned());
    assemble(&objects)
}

/// An A4 PDF of several such pages.
pub(crate) fn pages(pages: &[Vec<(f32, f32, String)>]) -> Vec<u8> {
    let font = 3;
    let number = |index: usize| font + 1 + 2 * index;
    let kids: Vec<String> =
        (0..pages.len()).map(|index| format!("{} 0 R", number(index))).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (index, lines) in pages.iter().enumerate() {
        let lines: Vec<(f32, f32, &str)> =
            lines.iter().map(|(x, y, text)| (*x, *y, text.as_str())).collect();
        let content = text(&lines);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
             /Resources << /Font << /F1 {font} 0 R >> >> >>",
            number(index) + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}endstream", content.len()));
    }
    assemble(&objects)
}

/// The same with files attached, each as (name, content).
pub(crate) fn carrying(lines: &[(f32, f32, &str)], files: &[(&str, &str)]) -> Vec<u8> {
    drawn_carrying(&text(lines), files)
}

/// A page with these drawing operations, and files attached.
pub(crate) fn drawn_carrying(content: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut objects = page_objects(content);
    for (name, content) in files {
        let (stream, length) = (objects.len() + 1, content.len());
        objects.push(format!(
            "<< /Type /EmbeddedFile /Subtype /text#2Fxml /Length {length} >>\nstream\n{content}\nendstream"
        ));
        objects.push(format!(
            "<< /Type /Filespec /AFRelationship /Alternative /F ({name}) /UF ({name}) \
             /EF << /F {stream} 0 R >> >>"
        ));
    }
    assemble(&objects)
}

/// Drawing operations for lines of text.
fn text(lines: &[(f32, f32, &str)]) -> String {
    let mut content = String::from("BT /F1 11 Tf\n");
    for (x, y, text) in lines {
        let escaped = text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        content.push_str(&format!("1 0 0 1 {x} {} Tm ({escaped}) Tj\n", 842.0 - y));
    }
    content.push_str("ET\n");
    content
}

fn page_objects(content: &str) -> Vec<String> {
    vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ]
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
    invoice_carrying(number, &[])
}

/// The same with files attached.
pub(crate) fn invoice_carrying(number: &str, files: &[(&str, &str)]) -> Vec<u8> {
    invoice_of_days(number, ["2026-03-14", "2026-04-13"], files)
}

/// The same of a day, and due on another.
pub(crate) fn invoice_of_days(
    number: &str,
    [day, due]: [&str; 2],
    files: &[(&str, &str)],
) -> Vec<u8> {
    let texts = [("Invoice number", number), ("Invoice date", day), ("Due date", due)]
        .map(|(label, value)| format!("{label}: {value}"));
    carrying(&invoice_lines(texts.each_ref().map(String::as_str)), files)
}

/// The invoice N-1 with drawing operations behind its text, and files attached.
pub(crate) fn drawn_invoice_carrying(operations: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let lines =
        invoice_lines(["Invoice number: N-1", "Invoice date: 2026-03-14", "Due date: 2026-04-13"]);
    let lines = text(&lines);
    drawn_carrying(&format!("{lines}{operations}\n"), files)
}

fn invoice_lines([number, day, due]: [&str; 3]) -> [(f32, f32, &str); 21] {
    [
        (60.0, 60.0, "Northwind Paper Ltd"),
        (60.0, 76.0, "12 Mill Lane, Leeds LS1 4AB"),
        (60.0, 92.0, "Tax ID: GB123456789"),
        (60.0, 140.0, "INVOICE"),
        (60.0, 164.0, number),
        (60.0, 180.0, day),
        (60.0, 196.0, due),
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
    ]
}

/// What [`invoice`] prints, as CII of the profile that Factur-X calls EN 16931.
pub(crate) fn cii(number: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n\
         <rsm:CrossIndustryInvoice \
         xmlns:rsm='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100' \
         xmlns:ram='urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100' \
         xmlns:udt='urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100'>\
         <rsm:ExchangedDocument><ram:ID>{number}</ram:ID><ram:TypeCode>380</ram:TypeCode>\
         <ram:IssueDateTime><udt:DateTimeString format='102'>20260314</udt:DateTimeString>\
         </ram:IssueDateTime></rsm:ExchangedDocument><rsm:SupplyChainTradeTransaction>\
         <ram:IncludedSupplyChainTradeLineItem><ram:SpecifiedTradeProduct>\
         <ram:Name>Copy paper A4, box</ram:Name></ram:SpecifiedTradeProduct>\
         <ram:SpecifiedLineTradeAgreement><ram:NetPriceProductTradePrice>\
         <ram:ChargeAmount>25.00</ram:ChargeAmount></ram:NetPriceProductTradePrice>\
         </ram:SpecifiedLineTradeAgreement><ram:SpecifiedLineTradeDelivery>\
         <ram:BilledQuantity unitCode='XBX'>4</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>\
         <ram:SpecifiedLineTradeSettlement><ram:SpecifiedTradeSettlementLineMonetarySummation>\
         <ram:LineTotalAmount>100.00</ram:LineTotalAmount>\
         </ram:SpecifiedTradeSettlementLineMonetarySummation></ram:SpecifiedLineTradeSettlement>\
         </ram:IncludedSupplyChainTradeLineItem><ram:ApplicableHeaderTradeAgreement>\
         <ram:SellerTradeParty><ram:Name>Northwind Paper Ltd</ram:Name><ram:PostalTradeAddress>\
         <ram:PostcodeCode>LS1 4AB</ram:PostcodeCode><ram:LineOne>12 Mill Lane</ram:LineOne>\
         <ram:CityName>Leeds</ram:CityName><ram:CountryID>GB</ram:CountryID></ram:PostalTradeAddress>\
         <ram:SpecifiedTaxRegistration><ram:ID schemeID='VA'>GB123456789</ram:ID>\
         </ram:SpecifiedTaxRegistration></ram:SellerTradeParty></ram:ApplicableHeaderTradeAgreement>\
         <ram:ApplicableHeaderTradeSettlement><ram:InvoiceCurrencyCode>GBP</ram:InvoiceCurrencyCode>\
         <ram:SpecifiedTradePaymentTerms><ram:DueDateDateTime>\
         <udt:DateTimeString format='102'>20260413</udt:DateTimeString></ram:DueDateDateTime>\
         </ram:SpecifiedTradePaymentTerms><ram:SpecifiedTradeSettlementHeaderMonetarySummation>\
         <ram:LineTotalAmount>100.00</ram:LineTotalAmount>\
         <ram:TaxBasisTotalAmount>100.00</ram:TaxBasisTotalAmount>\
         <ram:TaxTotalAmount currencyID='GBP'>20.00</ram:TaxTotalAmount>\
         <ram:GrandTotalAmount>120.00</ram:GrandTotalAmount>\
         <ram:DuePayableAmount>120.00</ram:DuePayableAmount>\
         </ram:SpecifiedTradeSettlementHeaderMonetarySummation>\
         </ram:ApplicableHeaderTradeSettlement></rsm:SupplyChainTradeTransaction>\
         </rsm:CrossIndustryInvoice>"
    )
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
