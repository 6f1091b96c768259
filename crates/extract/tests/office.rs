//! An invoice as DOCX, XLSX, HTML, RTF and text: the rules reader finds in each what it finds in a PDF,
//! and what nobody sees of it is no value.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Cursor, Write as _};

use docmill_core::config::{KindsConfig, LimitsConfig};
use docmill_core::model::{PageText, Transcript};
use docmill_extract::rules::extract_by_rules;
use docmill_gate::kinds::KindSet;
use docmill_office::{LaidPage, lay_out_document, sniff_office, sniff_text};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const HEAD: [&str; 5] = [
    "Example Tools Ltd",
    "1 Harbour Road, Dublin",
    "VAT ID: IE6388047V",
    "Invoice number: EX-4711",
    "Invoice date: 2026-03-05",
];
const ROWS: [[&str; 4]; 3] = [
    ["Description", "Quantity", "Unit price", "Amount"],
    ["Steel screws", "10", "12.50", "125.00"],
    ["Oak panel", "2", "37.50", "75.00"],
];
const SUMS: [(&str, &str); 3] =
    [("Subtotal", "200.00"), ("VAT 23%", "46.00"), ("Total EUR", "246.00")];
/// Hidden text of each.
const TRAP: &str = "Total EUR 99999.00";

fn package(parts: &[(&str, String)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn main_relation(target: &str) -> (&'static str, String) {
    let list = format!(
        "<Relationships><Relationship Id='r' Type='x/officeDocument' Target='{target}'/></Relationships>"
    );
    ("_rels/.rels", list)
}

fn docx() -> Vec<u8> {
    let para = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let head: String = HEAD.iter().map(|line| para(line)).collect();
    let sums = SUMS.map(|(label, sum)| ["", "", label, sum]);
    let row = |row: &[&str; 4]| {
        let cells = row.iter().map(|cell| format!("<w:tc>{}</w:tc>", para(cell)));
        format!("<w:tr>{}</w:tr>", cells.collect::<String>())
    };
    let rows: String = ROWS.iter().chain(&sums).map(row).collect();
    let trap = format!("<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>{TRAP}</w:t></w:r></w:p>");
    let body = format!("{head}<w:tbl>{rows}</w:tbl>{trap}");
    package(&[
        ("[Content_Types].xml", "<Types/>".to_owned()),
        main_relation("word/document.xml"),
        (
            "word/document.xml",
            format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>"),
        ),
    ])
}

fn xlsx() -> Vec<u8> {
    let (mut rows, mut number) = (String::new(), 0);
    let mut add = |cells: &[&str], attributes: &str| {
        number += 1;
        let cells: String = cells
            .iter()
            .zip(["A", "B", "C", "D"])
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, column)| match text.parse::<f64>() {
                Ok(value) => {
                    let style = usize::from(text.contains('.'));
                    format!("<c r='{column}{number}' s='{style}'><v>{value}</v></c>")
                }
                Err(_) if *text == "2026-03-05" => {
                    format!("<c r='{column}{number}' s='2'><v>46086</v></c>")
                }
                Err(_) => {
                    format!("<c r='{column}{number}' t='inlineStr'><is><t>{text}</t></is></c>")
                }
            })
            .collect();
        rows.push_str(&format!("<row r='{number}' {attributes}>{cells}</row>"));
    };
    for line in HEAD {
        let (label, value) = line.split_once(": ").unwrap_or((line, ""));
        add(&[label, value], "");
    }
    add(&[], "");
    ROWS.iter().for_each(|row| add(row, ""));
    SUMS.iter().for_each(|(label, sum)| add(&["", "", label, sum], ""));
    add(&["", "", "Total EUR", "99999.00"], "hidden='1'");
    let book = "<workbook xmlns:r='r'><sheet name='Bill' r:id='a'/></workbook>";
    let links = "<Relationships><Relationship Id='a' Type='x/worksheet' Target='a.xml'/>\
                 <Relationship Id='s' Type='x/styles' Target='s.xml'/></Relationships>";
    let styles = "<styleSheet><cellXfs><xf numFmtId='0'/><xf numFmtId='4'/><xf numFmtId='14'/>\
                  </cellXfs></styleSheet>";
    package(&[
        ("[Content_Types].xml", "<Types/>".to_owned()),
        main_relation("xl/workbook.xml"),
        ("xl/workbook.xml", book.to_owned()),
        ("xl/_rels/workbook.xml.rels", links.to_owned()),
        ("xl/s.xml", styles.to_owned()),
        ("xl/a.xml", format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")),
    ])
}

fn html() -> Vec<u8> {
    let head: String = HEAD.iter().map(|line| format!("<div>{line}</div>")).collect();
    let sums = SUMS.map(|(label, sum)| ["", "", label, sum]);
    let rows = ROWS.iter().chain(&sums).map(|row| {
        let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>")
    });
    let rows: String = rows.collect();
    format!(
        "<html><body>{head}<table>{rows}</table><p style='display:none'>{TRAP}</p></body></html>"
    )
    .into_bytes()
}

fn rtf() -> Vec<u8> {
    let head: String = HEAD.iter().map(|line| format!("{line}\\par ")).collect();
    let sums = SUMS.map(|(label, sum)| ["", "", label, sum]);
    let rows = ROWS.iter().chain(&sums).map(|row| {
        let cells: String = row.iter().map(|cell| format!("{cell}\\cell ")).collect();
        format!("\\trowd\\intbl {cells}\\row ")
    });
    let rows: String = rows.collect();
    format!("{{\\rtf1\\ansi {head}{rows}\\pard {{\\v {TRAP}}}\\par}}").into_bytes()
}

fn text() -> Vec<u8> {
    let mut lines: Vec<String> = HEAD.iter().map(|line| (*line).to_owned()).collect();
    lines.push(String::new());
    let sums = SUMS.map(|(label, sum)| ["", "", label, sum]);
    let rows = ROWS.iter().chain(&sums);
    lines.extend(rows.map(|[a, b, c, d]| format!("{a:<24}{b:>10}{c:>14}{d:>12}")));
    lines.join("\n").into_bytes()
}

#[test]
fn an_invoice_of_an_office_program_is_read_as_one_that_was_printed() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let mut wrong = Vec::new();
    for (name, file) in
        [("DOCX", docx()), ("XLSX", xlsx()), ("HTML", html()), ("RTF", rtf()), ("text", text())]
    {
        let format = sniff_office(&file).or_else(|| sniff_text(&file)).unwrap();
        let pages = lay_out_document(&file, format, &LimitsConfig::default()).unwrap();
        let pages = pages.into_iter().map(|page| match page {
            LaidPage::Text(page) => {
                PageText::from_native(1, (page.width, page.height), 1.0, page.lines)
            }
            LaidPage::Picture(_) => panic!("{name} has no picture"),
        });
        let transcript = Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: pages.collect(),
            quality: 1.0,
        };
        let read = extract_by_rules(&transcript, kind).data;
        for (field, value) in [
            ("supplier_name", json!("Example Tools Ltd")),
            ("supplier_vat_id", json!("IE6388047V")),
            ("invoice_number", json!("EX-4711")),
            ("invoice_date", json!("2026-03-05")),
            ("currency", json!("EUR")),
        ] {
            if read.get(field) != Some(&value) {
                wrong.push(format!("{name}: {field} is {:?}", read.get(field)));
            }
        }
        for (field, value) in [("subtotal", 200.0), ("vat_amount", 46.0), ("total", 246.0)] {
            if read.get(field).and_then(serde_json::Value::as_f64) != Some(value) {
                wrong.push(format!("{name}: {field} is {:?}", read.get(field)));
            }
        }
        let items = read.get("line_items").and_then(|items| items.as_array());
        let amounts: Vec<Option<f64>> =
            items.into_iter().flatten().map(|item| item["amount"].as_f64()).collect();
        if amounts != [Some(125.0), Some(75.0)] {
            wrong.push(format!("{name}: line items are {items:?}"));
        }
        if transcript.full_text().contains("99999") {
            wrong.push(format!("{name}: hidden text was read"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
