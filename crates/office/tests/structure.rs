//! The layout of laid-out pages: headings, lists and tables of a file are those of its transcript.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::config::LimitsConfig;
use docmill_core::model::{PageText, Transcript};
use docmill_layout::{BlockContent, read_layout};
use docmill_office::{LaidPage, OfficeFormat, lay_out_document};

/// Each block in a line.
fn blocks(file: &str, format: OfficeFormat) -> Vec<String> {
    let pages = lay_out_document(file.as_bytes(), format, &LimitsConfig::default()).unwrap();
    let pages = pages.into_iter().filter_map(|page| match page {
        LaidPage::Text(page) => {
            Some(PageText::from_native(1, (page.width, page.height), 1.0, page.lines))
        }
        LaidPage::Picture(_) => None,
    });
    let transcript = Transcript {
        format: Transcript::FORMAT,
        sha256: String::new(),
        provider: String::new(),
        pages: pages.collect(),
        quality: 1.0,
    };
    let layout = read_layout(&transcript);
    let blocks = layout.pages.into_iter().flat_map(|page| page.blocks);
    blocks.map(|block| describe(&block.content)).collect()
}

fn describe(content: &BlockContent) -> String {
    match content {
        BlockContent::Title { text } => format!("title {text}"),
        BlockContent::Heading { level, text } => format!("heading {level} {text}"),
        BlockContent::Paragraph { text } => format!("paragraph {}", text.replace('\n', " ")),
        BlockContent::List { items } => {
            let items: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
            format!("list {}", items.join(" / "))
        }
        BlockContent::Table { rows, columns, cells } => {
            let cells: Vec<String> = cells
                .iter()
                .map(|cell| format!("{}{} {}", cell.row, cell.column, cell.text))
                .collect();
            format!("table {rows}x{columns} {}", cells.join(" / "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn headings_lists_and_tables_of_a_file_are_those_of_its_transcript() {
    let prose = "It was agreed that the goods are delivered within thirty days of the order, and \
                 that every delivery has a note with the number of that order on it.";
    let page = format!(
        "<h1>Terms of delivery</h1><p>{prose}</p><h2>Prices</h2><p>{prose}</p>\
         <ul><li>by road<li>by rail, where there is a line and the goods are heavy<li>by sea</ul>\
         <table><tr><th>Article<th>Quantity<th>Price<th>Amount\
         <tr><td>Steel screws of the better sort with a head that is <b>wide</b> enough for it<td>10\
         <td>1.50<td>15.00<tr><td>Oak panel<td>2<td><td>75.00</table><p>{prose}</p>"
    );
    assert_eq!(
        blocks(&page, OfficeFormat::Html),
        [
            "title Terms of delivery",
            &format!("paragraph {prose}"),
            "heading 1 Prices",
            &format!("paragraph {prose}"),
            "list by road / by rail, where there is a line and the goods are heavy / by sea",
            "table 3x4 00 Article / 01 Quantity / 02 Price / 03 Amount / 10 Steel screws of the \
             better sort with a head that is wide enough for it / 11 10 / 12 1.50 / 13 15.00 / \
             20 Oak panel / 21 2 / 23 75.00",
            &format!("paragraph {prose}"),
        ]
    );
    assert_eq!(
        blocks("Article;Price;Amount\nScrews;;3.00\nOak panel;5.00;6.00\n", OfficeFormat::Csv),
        ["table 3x3 00 Article / 01 Price / 02 Amount / 10 Screws / 12 3.00 / 20 Oak panel / \
          21 5.00 / 22 6.00"]
    );
}
