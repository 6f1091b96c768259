//! Whole files of every format: seen text is read in its order, hidden text is not, and hostile
//! files end at a limit that is named.

use std::io::{Cursor, Write};

use docmill_core::config::{ByteSize, LimitsConfig};
use docmill_core::model::{OutcomeReason, PageNote};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{LaidPage, OTHER_TEXT_MARK, OfficeError, OfficeFormat, lay_out_document, sniff_office};

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn package<'a>(parts: impl IntoIterator<Item = (&'a str, String)>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        let stored = name == "mimetype";
        let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        writer.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn relations(list: &[(&str, &str, &str)]) -> String {
    let list = list.iter().map(|(id, kind, target)| {
        format!("<Relationship Id='{id}' Type='{RELATIONS}/{kind}' Target='{target}'/>")
    });
    format!("<Relationships>{}</Relationships>", list.collect::<String>())
}

fn open_xml(main: &str, more: &[(&str, String)]) -> Vec<u8> {
    let mut parts = vec![
        ("[Content_Types].xml", "<Types/>".to_owned()),
        ("_rels/.rels", relations(&[("r1", "officeDocument", main)])),
    ];
    parts.extend(more.iter().cloned());
    package(parts)
}

fn docx_with(body: &str, more: &[(&str, String)]) -> Vec<u8> {
    let document = format!(
        "<w:document xmlns:w='w' xmlns:r='r' xmlns:a='a' xmlns:wp='wp' xmlns:mc='mc'>\
         <w:body>{body}</w:body></w:document>"
    );
    let mut parts = vec![("word/document.xml", document)];
    parts.extend(more.iter().cloned());
    open_xml("word/document.xml", &parts)
}

fn docx(body: &str) -> Vec<u8> {
    docx_with(body, &[])
}

fn run(text: &str) -> String {
    format!("<w:r><w:t>{text}</w:t></w:r>")
}

fn para(text: &str) -> String {
    format!("<w:p>{}</w:p>", run(text))
}

/// A workbook with these sheets: name, attributes, content of the worksheet.
fn xlsx(sheets: &[(&str, &str, &str)], styles: &str) -> Vec<u8> {
    xlsx_with(sheets, styles, "")
}

/// The same with these entries of the workbook.
fn xlsx_with(sheets: &[(&str, &str, &str)], styles: &str, entries: &str) -> Vec<u8> {
    let mut list = String::new();
    let mut links = vec![("s", "styles", "styles.xml"), ("t", "sharedStrings", "strings.xml")];
    let names: Vec<(String, String)> =
        (1..=sheets.len()).map(|at| (format!("r{at}"), format!("sheet{at}.xml"))).collect();
    for ((name, attributes, _), (id, file)) in sheets.iter().zip(&names) {
        list.push_str(&format!("<sheet name='{name}' {attributes} r:id='{id}'/>"));
        links.push((id, "worksheet", file));
    }
    let workbook = format!("<workbook xmlns:r='r'><sheets>{list}</sheets>{entries}</workbook>");
    let strings = "<sst><si><t>Shared</t></si><si><r><t>two </t></r><r><t>runs</t></r>\
                   <rPh><t>phonetic</t></rPh></si></sst>";
    let mut parts = vec![
        ("xl/workbook.xml".to_owned(), workbook),
        ("xl/_rels/workbook.xml.rels".to_owned(), relations(&links)),
        ("xl/strings.xml".to_owned(), strings.to_owned()),
        ("xl/styles.xml".to_owned(), format!("<styleSheet>{styles}</styleSheet>")),
    ];
    for ((_, _, content), (_, file)) in sheets.iter().zip(&names) {
        parts.push((format!("xl/{file}"), format!("<worksheet>{content}</worksheet>")));
    }
    let parts: Vec<(&str, String)> =
        parts.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    open_xml("xl/workbook.xml", &parts)
}

fn odf(kind: &str, body: &str, styles: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:style='s' \
         xmlns:fo='f' xmlns:draw='d' xmlns:xlink='x'><office:automatic-styles>{styles}\
         </office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>\
         </office:body></office:document-content>"
    );
    package([
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        ("content.xml", content),
    ])
}

fn limits() -> LimitsConfig {
    LimitsConfig { pages: 20, text_bytes: ByteSize::from_mib(1), ..LimitsConfig::default() }
}

/// Lines of each page; a picture page is its bytes in brackets.
fn read_as(bytes: &[u8], format: OfficeFormat) -> Result<Vec<String>, OfficeError> {
    let pages = lay_out_document(bytes, format, &limits())?;
    Ok(pages
        .into_iter()
        .map(|page| match page {
            LaidPage::Text(page) => {
                let lines: Vec<String> = page.lines.iter().map(|line| line.text()).collect();
                lines.join("|")
            }
            LaidPage::Picture(bytes) => format!("[{}]", String::from_utf8_lossy(&bytes)),
        })
        .collect())
}

fn read(bytes: &[u8]) -> Result<Vec<String>, OfficeError> {
    read_as(bytes, sniff_office(bytes).expect("a format"))
}

fn notes_of(bytes: &[u8]) -> Vec<PageNote> {
    let format = sniff_office(bytes).expect("a format");
    let pages = lay_out_document(bytes, format, &limits()).unwrap();
    let pages = pages.into_iter().filter_map(|page| match page {
        LaidPage::Text(page) => Some(page.notes),
        LaidPage::Picture(_) => None,
    });
    pages.flatten().collect()
}

/// A body with a heading, a note, two levels of a list, a table, a shape and two pages.
fn ordered_body() -> String {
    let item = |level: u32, text: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='3'/></w:numPr></w:pPr>{}</w:p>",
            run(text)
        )
    };
    [
        "<w:p><w:pPr><w:pStyle w:val='berschrift1'/></w:pPr>",
        &run("Invoice"),
        "</w:p><w:p><w:pPr><w:pStyle w:val='x'/></w:pPr>",
        &run("In a circle of styles"),
        "<w:r><w:footnoteReference w:id='2'/></w:r></w:p>",
        &item(0, "one"),
        &item(1, "deeper"),
        &item(1, "again"),
        &item(0, "two"),
        "<w:tbl><w:tr><w:tc>",
        &para("Item"),
        "</w:tc><w:tc>",
        &para("Price"),
        "</w:tc></w:tr><w:tr><w:tc>",
        &para("Screws"),
        "</w:tc><w:tc>",
        &para("5.00"),
        "</w:tc></w:tr></w:tbl>",
        "<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>shape</w:t></w:r></mc:Choice>\
         <mc:Fallback><w:r><w:t>shape</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>",
        "<w:p><w:r><w:br w:type='page'/></w:r></w:p>",
        &para("Second page"),
        "<w:sectPr><w:headerReference r:id='h'/><w:headerReference r:id='h'/>\
         <w:footerReference r:id='f'/></w:sectPr>",
    ]
    .concat()
}

#[test]
fn a_document_is_read_in_its_order_with_letterhead_notes_and_lists() {
    let numbering = "<w:numbering xmlns:w='w'><w:abstractNum w:abstractNumId='7'>\
        <w:lvl><w:start w:val='1'/><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl>\
        <w:lvl><w:start w:val='1'/><w:numFmt w:val='lowerLetter'/><w:lvlText w:val='%1.%2)'/></w:lvl>\
        </w:abstractNum><w:num w:numId='3'><w:abstractNumId w:val='7'/></w:num></w:numbering>";
    let styles = "<w:styles xmlns:w='w'><w:style w:styleId='berschrift1'>\
        <w:name w:val='heading 1'/></w:style><w:style w:styleId='x'><w:basedOn w:val='y'/></w:style>\
        <w:style w:styleId='y'><w:basedOn w:val='x'/></w:style></w:styles>";
    let part = |text: &str| format!("<w:hdr xmlns:w='w'>{}</w:hdr>", para(text));
    let links = [
        ("h", "header", "header1.xml"),
        ("f", "footer", "footer1.xml"),
        ("n", "numbering", "numbering.xml"),
        ("s", "styles", "styles.xml"),
        ("e", "footnotes", "footnotes.xml"),
    ];
    let file = docx_with(
        &ordered_body(),
        &[
            ("word/_rels/document.xml.rels", relations(&links)),
            ("word/header1.xml", part("Example Ltd")),
            ("word/footer1.xml", part("IBAN DE02")),
            ("word/numbering.xml", numbering.to_owned()),
            ("word/styles.xml", styles.to_owned()),
            (
                "word/footnotes.xml",
                format!(
                    "<w:footnotes xmlns:w='w'><w:footnote w:type='separator'>{}</w:footnote>\
                     <w:footnote w:id='2'>{}</w:footnote></w:footnotes>",
                    para("line"),
                    para("a note")
                ),
            ),
        ],
    );
    assert_eq!(
        read(&file).unwrap(),
        [
            "Example Ltd|Invoice|In a circle of styles[2]|1. one|1.a) deeper|1.b) again|2. two|\
             Item Price|Screws 5.00|shape",
            "Second page|a note|IBAN DE02"
        ]
    );
}

#[test]
fn a_label_is_read_as_it_is_seen_and_doubted_where_it_joins_a_number() {
    let level = |form: &str, text: &str, more: &str| {
        format!(
            "<w:lvl><w:start w:val='9'/><w:numFmt w:val='{form}'/>{more}<w:lvlText w:val='{text}'/></w:lvl>"
        )
    };
    let bare = "<w:suff w:val='nothing'/>";
    #[rustfmt::skip]
    let table = [
        ("a digit",              level("bullet", "9", bare),              "1,100.00", "9 1,100.00",  true),
        ("a digit and a tab",    level("bullet", "9", ""),                "1,100.00", "9 1,100.00",  true),
        ("a sign",               level("bullet", "-", bare),              "1,100.00", "• 1,100.00",  true),
        ("a sign and a tab",     level("bullet", "-", ""),                "1,100.00", "• 1,100.00",  false),
        ("a count",              level("decimal", "%1", bare),            "1,100.00", "9 1,100.00",  true),
        ("a count with a zero",  level("decimalZero", "%1", bare),        "1,100.00", "09 1,100.00", true),
        ("a count and a tab",    level("decimal", "%1", ""),              "1,100.00", "9. 1,100.00", false),
        ("a usual label",        level("decimal", "%1.", ""),             "1,100.00", "9. 1,100.00", false),
        ("a usual label at words", level("decimal", "%1.", bare),         "Paper",    "9. Paper",    false),
        ("a usual bullet",       level("bullet", "\u{f0b7}", bare),       "1,100.00", "• 1,100.00",  false),
        ("a picture",            level("bullet", "", "<w:suff w:val='nothing'/><w:lvlPicBulletId w:val='0'/>"), "1,100.00", "• 1,100.00", true),
        ("words",                level("none", "Total", ""),              "1,100.00", "Total 1,100.00", false),
        ("nothing",              level("none", "", ""),                   "1,100.00", "1,100.00",    false),
        ("hidden",               level("bullet", "9", "<w:suff w:val='nothing'/><w:rPr><w:vanish/></w:rPr>"), "1,100.00", "1,100.00", false),
        ("a picture of a font",  level("bullet", "9", "<w:suff w:val='nothing'/><w:rPr><w:rFonts w:ascii='Wingdings'/></w:rPr>"), "1,100.00", "• 1,100.00", false),
        ("a count alone",        level("decimal", "%1.", ""),             "",         "9.",          false),
        ("an amount alone",      level("bullet", "9,900.00", ""),         "",         "9,900.00",    true),
        ("a bullet alone",       level("bullet", "o", ""),                "",         "",            false),
    ];
    let paragraph = |text: &str| {
        format!("<w:p><w:pPr><w:numPr><w:numId w:val='3'/></w:numPr></w:pPr>{}</w:p>", run(text))
    };
    let file = |body: &str, level: &str, list: &str| {
        let numbering = format!(
            "<w:numbering xmlns:w='w'><w:abstractNum w:abstractNumId='7'>{level}</w:abstractNum>\
             <w:num w:numId='3'><w:abstractNumId w:val='7'/>{list}</w:num></w:numbering>"
        );
        let links = relations(&[("n", "numbering", "numbering.xml")]);
        let parts = [("word/_rels/document.xml.rels", links), ("word/numbering.xml", numbering)];
        docx_with(&[para("Start"), body.to_owned()].concat(), &parts)
    };
    for (name, level, text, read_as, is_doubtful) in table {
        let file = file(&paragraph(text), &level, "");
        let expected =
            if read_as.is_empty() { "Start".to_owned() } else { format!("Start|{read_as}") };
        assert_eq!(read(&file).unwrap(), [expected], "{name}");
        assert_eq!(notes_of(&file).contains(&PageNote::DoubtfulText), is_doubtful, "{name}");
    }
    let restart = "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='4'/></w:lvlOverride>";
    let items = [paragraph("a"), paragraph(""), paragraph("b")].concat();
    let file = file(&items, &level("decimal", "%1.", ""), restart);
    assert_eq!(read(&file).unwrap(), ["Start|4. a|5.|6. b"]);
}

#[test]
fn hidden_deleted_and_white_text_of_a_document_is_not_read_but_noted() {
    let with = |look: &str, text: &str| {
        format!("<w:p><w:r><w:rPr>{look}</w:rPr><w:t>{text}</w:t></w:r></w:p>")
    };
    #[rustfmt::skip]
    let table = [
        ("hidden",              with("<w:vanish/>", "trap"),                                    "",     vec![PageNote::HiddenText]),
        ("not hidden after all", with("<w:vanish w:val='0'/>", "seen"),                         "seen", vec![]),
        ("white on white",      with("<w:color w:val='FFFFFF'/>", "trap"),                      "",     vec![PageNote::HiddenText]),
        ("white on black",      with("<w:color w:val='FFFFFF'/><w:shd w:fill='000000'/>", "seen"), "seen", vec![]),
        ("of no size",          with("<w:sz w:val='1'/>", "trap"),                              "",     vec![PageNote::HiddenText]),
        ("of no width",         with("<w:w w:val='1'/>", "trap"),                               "",     vec![PageNote::HiddenText]),
        ("a little narrower",   with("<w:w w:val='90'/>", "seen"),                              "seen", vec![]),
        ("as the ground",       with("<w:color w:val='auto' w:themeColor='background1'/>", "trap"), "", vec![PageNote::HiddenText]),
        ("darker than the ground", with("<w:color w:val='FFFFFF' w:themeColor='background1' w:themeShade='80'/>", "seen"), "seen", vec![]),
        ("deleted",             "<w:p><w:del><w:r><w:delText>trap</w:delText></w:r></w:del></w:p>".to_owned(), "", vec![PageNote::DeletedText]),
        ("inserted",            format!("<w:p><w:ins>{}</w:ins></w:p>", run("seen")),           "seen", vec![]),
        ("a comment",           format!("<w:p>{}<w:r><w:commentReference w:id='1'/></w:r></w:p>", run("seen")), "seen", vec![PageNote::Comments]),
        ("a field",             format!("<w:p><w:r><w:instrText>DDEAUTO cmd</w:instrText></w:r>{}</w:p>", run("seen")), "seen", vec![]),
        ("text in a field's instruction", format!("<w:p><w:r><w:fldChar w:fldCharType='begin'/></w:r>{}<w:r><w:fldChar w:fldCharType='separate'/></w:r>{}<w:r><w:fldChar w:fldCharType='end'/></w:r>{}</w:p>", run("trap"), run("se"), run("en")), "seen", vec![PageNote::HiddenText]),
        ("a branch that nobody knows", format!("<w:p><mc:AlternateContent xmlns:mc='mc'><mc:Choice Requires='nope'>{}</mc:Choice><mc:Fallback>{}</mc:Fallback></mc:AlternateContent></w:p>", run("trap"), run("seen")), "seen", vec![]),
        ("branches of other digits", format!("<w:p><mc:AlternateContent xmlns:mc='mc' xmlns:wps='http://schemas.microsoft.com/office/word/2010/wordprocessingShape'><mc:Choice Requires='wps'>{}</mc:Choice><mc:Fallback>{}</mc:Fallback></mc:AlternateContent></w:p>", run("9"), run("1")), "9", vec![PageNote::DoubtfulText]),
        ("a line at a number",  format!("<w:p>{}<w:r><w:pict><v:line xmlns:v='v'/></w:pict></w:r></w:p>", run("1,100.00")), "1,100.00", vec![PageNote::DoubtfulText]),
        ("a line beside words", format!("<w:p>{}<w:r><w:pict><v:line xmlns:v='v'/></w:pict></w:r></w:p>", run("seen")), "seen", vec![]),
        ("nearly white",        with("<w:color w:val='FEFEFA'/>", "trap"),                      "",     vec![PageNote::HiddenText]),
        ("black on black",      with("<w:color w:val='000000'/><w:shd w:fill='000000'/>", "trap"), "", vec![PageNote::HiddenText]),
        ("white, highlighted in white", with("<w:color w:val='FFFFFF'/><w:highlight w:val='white'/>", "trap"), "", vec![PageNote::HiddenText]),
        ("crossed out",         with("<w:strike/>", "trap"),                                    "",     vec![PageNote::DeletedText]),
        ("crossed out twice",   with("<w:dstrike/>", "trap"),                                   "",     vec![PageNote::DeletedText]),
        ("not crossed out",     with("<w:strike w:val='false'/>", "seen"),                      "seen", vec![]),
        ("in pictures",         with("<w:rFonts w:ascii='Wingdings'/>", "trap"),                "",     vec![PageNote::HiddenText]),
        ("symbols that are digits", "<w:p><w:r><w:sym w:font='Arial' w:char='0039'/><w:sym w:font='Symbol' w:char='F038'/><w:sym w:font='Wingdings' w:char='F037'/></w:r></w:p>".to_owned(), "98", vec![]),
        ("in a flat line",      format!("<w:p><w:pPr><w:spacing w:line='2' w:lineRule='exact'/></w:pPr>{}</w:p>", run("trap")), "", vec![PageNote::HiddenText]),
        ("beside the page",     format!("<w:p><w:pPr><w:ind w:left='-20000'/></w:pPr>{}</w:p>", run("trap")), "", vec![PageNote::HiddenText]),
        ("under a merged cell", format!("<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", para("a"), para("b"), para("trap"), para("c")), "a b|c", vec![PageNote::HiddenCells]),
        ("in a flat row",       format!("<w:tbl><w:tr><w:trPr><w:trHeight w:val='1' w:hRule='exact'/></w:trPr><w:tc>{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc></w:tr></w:tbl>", para("trap"), para("seen")), "seen", vec![PageNote::HiddenCells]),
        ("white in a white cell", format!("<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:val='clear' w:fill='FFFFFF'/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", with("<w:color w:val='FFFFFF'/>", "trap"), para("seen")), "seen", vec![PageNote::HiddenText]),
        ("dark in a dark cell", format!("<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:val='clear' w:fill='1F3864'/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", with("<w:color w:val='1F3864'/>", "trap"), para("seen")), "seen", vec![PageNote::HiddenText]),
        ("turned round",        "<w:p><w:bdo w:val='rtl'><w:r><w:t>0011</w:t></w:r></w:bdo></w:p>".to_owned(), "\u{202e}0011", vec![PageNote::DoubtfulText]),
        ("in a white box",      format!("<w:p><w:r><w:drawing><a:wsp><a:spPr><a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill></a:spPr><a:txbx><w:txbxContent>{}</w:txbxContent></a:txbx></a:wsp></w:drawing></w:r></w:p>", with("<w:color w:val='FFFFFF'/>", "trap")), "", vec![PageNote::HiddenText]),
        ("in a dark box",       format!("<w:p><w:r><w:drawing><a:wsp><a:spPr><a:solidFill><a:srgbClr val='1F3864'/></a:solidFill></a:spPr><a:txbx><w:txbxContent>{}</w:txbxContent></a:txbx></a:wsp></w:drawing></w:r></w:p>", with("<w:color w:val='FFFFFF'/>", "seen")), "seen", vec![]),
        ("in a box beside the page", format!("<w:p><w:r><w:drawing><wp:anchor><wp:positionH><wp:posOffset>-9000000</wp:posOffset></wp:positionH><wp:extent cx='900' cy='900'/><a:wsp><w:txbxContent>{}</w:txbxContent></a:wsp></wp:anchor></w:drawing></w:r></w:p>", para("trap")), "", vec![PageNote::HiddenText]),
        ("white in a dark cell", format!("<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:fill='1F3864'/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", with("<w:color w:val='FFFFFF'/>", "seen"), para("too")), "seen too", vec![]),
    ];
    for (name, body, text, notes) in table {
        let file = docx(&[&para("Start"), body.as_str()].concat());
        let expected = if text.is_empty() { "Start".to_owned() } else { format!("Start|{text}") };
        assert_eq!(read(&file).unwrap(), [expected], "{name}");
        assert_eq!(notes_of(&file), notes, "{name}");
    }
}

#[test]
fn what_word_makes_anew_or_draws_at_a_number_is_doubted() {
    let field = |instruction: &str, more: &str, result: &str| {
        format!(
            "<w:r><w:fldChar w:fldCharType='begin' {more}/></w:r><w:r><w:instrText>{instruction}\
             </w:instrText></w:r><w:r><w:fldChar w:fldCharType='separate'/></w:r>{}\
             <w:r><w:fldChar w:fldCharType='end'/></w:r>",
            run(result)
        )
    };
    #[rustfmt::skip]
    let table = [
        ("a field before a number", format!("<w:p>{}{}{}</w:p>", field("PAGE", "", "9"), run("1,100.00"), run("")), "91,100.00", vec![PageNote::DoubtfulText]),
        ("a field of a number", format!("<w:p>{}</w:p>", field("MERGEFIELD x", "", "1,100.00")), "1,100.00", vec![]),
        ("a field that is made anew", format!("<w:p>{}</w:p>", field("= 9900", "w:dirty='true'", "1,100.00")), "1,100.00", vec![PageNote::DoubtfulText]),
        ("a simple one",        format!("<w:p><w:fldSimple w:instr='= 9900' w:dirty='1'>{}</w:fldSimple></w:p>", run("1,100.00")), "1,100.00", vec![PageNote::DoubtfulText]),
        ("the day of opening",  format!("<w:p>{}</w:p>", field("DATE \\@ yyyy", "", "24.03.2026")), "24.03.2026", vec![PageNote::DoubtfulText]),
        ("a page that is counted anew", format!("<w:p>{}</w:p>", field("PAGE", "w:dirty='true'", "1")), "1", vec![]),
        ("a field of a symbol", format!("<w:p>{}{}</w:p>", field("SYMBOL 57 \\f Arial", "", ""), run("1,100.00")), "1,100.00", vec![PageNote::DoubtfulText]),
        ("a field of its instruction", format!("<w:p>{}{}</w:p>", field("MACROBUTTON NoMacro 9,900.00", "", ""), run("seen")), "seen", vec![PageNote::DoubtfulText]),
        ("a button",            format!("<w:p>{}{}</w:p>", field("MACROBUTTON NoMacro Print", "", ""), run("seen")), "seen", vec![]),
        ("the year of today",   format!("<w:p><w:r><w:yearShort/></w:r>{}</w:p>", run("1,100.00")), "1,100.00", vec![PageNote::DoubtfulText]),
        ("under small letters", format!("<w:p><w:r><w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby></w:r></w:p>", run("trap"), run("seen")), "seen", vec![]),
        ("a master's part",     format!("<w:p><w:subDoc r:id='r9'/>{}</w:p>", run("seen")), "seen", vec![PageNote::DoubtfulText]),
    ];
    for (name, body, text, notes) in table {
        let file = docx(&[&para("Start"), body.as_str()].concat());
        assert_eq!(read(&file).unwrap(), [format!("Start|{text}")], "{name}");
        assert_eq!(notes_of(&file), notes, "{name}");
    }
    for (instruction, is_doubtful) in [("= 9900", true), ("MERGEFIELD x", false)] {
        let settings = "<w:settings xmlns:w='w'><w:updateFields w:val='true'/></w:settings>";
        let parts = [
            ("word/_rels/document.xml.rels", relations(&[("s", "settings", "s.xml")])),
            ("word/s.xml", settings.to_owned()),
        ];
        let file = docx_with(&format!("<w:p>{}</w:p>", field(instruction, "", "1,100.00")), &parts);
        let is_noted = notes_of(&file).contains(&PageNote::DoubtfulText);
        assert_eq!(is_noted, is_doubtful, "{instruction}");
    }
}

#[test]
fn content_that_is_bound_to_another_value_is_doubted() {
    let data = "<d xmlns='d'><sum at='9'>9,900.00</sum><sum>1,100.00</sum><day>2026-03-24</day>\
                <kind>2</kind></d>";
    #[rustfmt::skip]
    let table = [
        ("another value",   "/d[1]/sum[1]",        "",                 "1,100.00",   true),
        ("its value",       "/x:d[1]/x:sum[2]",    "",                 "1,100.00",   false),
        ("an attribute",    "/d/sum/@at",          "",                 "1",          true),
        ("a missing value", "/d/other",            "",                 "1,100.00",   false),
        ("an open path",    "//sum",               "",                 "1,100.00",   true),
        ("a placeholder",   "/d/sum",              "<w:showingPlcHdr/>", "Amount",   true),
        ("its day",         "/d/day",              "<w:date/>",        "24.03.2026", false),
        ("its day in words", "/d/day",             "<w:date/>",        "24 March 2026", false),
        ("another day",     "/d/day",              "<w:date/>",        "25.03.2026", true),
        ("a choice",        "/d/kind",             "<w:dropDownList><w:listItem w:value='2' w:displayText='Paper'/></w:dropDownList>", "Paper", false),
        ("a box",           "/d/kind",             "<w:checkbox/>",    "x",          false),
    ];
    for (name, path, form, text, is_doubtful) in table {
        let body = format!(
            "<w:sdt><w:sdtPr><w:dataBinding w:xpath='{path}'/>{form}</w:sdtPr><w:sdtContent>{}\
             </w:sdtContent></w:sdt>",
            para(text)
        );
        let links = relations(&[("d", "customXml", "../customXml/item1.xml")]);
        let parts =
            [("word/_rels/document.xml.rels", links), ("customXml/item1.xml", data.to_owned())];
        let file = docx_with(&body, &parts);
        assert_eq!(read(&file).unwrap(), [text], "{name}");
        assert_eq!(notes_of(&file).contains(&PageNote::DoubtfulText), is_doubtful, "{name}");
    }
}

#[test]
fn a_file_within_a_document_is_read_and_doubted_or_ends_with_its_reason() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &str); 5] = [
        ("a page",      b"<html><p>Total</p><p>9,900.00</p></html>",   "Start|Total|9,900.00|End"),
        ("its middle",  b"<h1>Total</h1><p>9,900.00",                  "Start|Total|9,900.00|End"),
        ("rich text",   br"{\rtf1 Total\par 9,900.00\par}",         "Start|Total|9,900.00|End"),
        ("text",        b"Total\n9,900.00",                           "Start|Total|9,900.00|End"),
        ("no part",     b"",                                           "Start|End"),
    ];
    let file = |name: &str, bytes: &[u8]| {
        let links = relations(&[("c", "aFChunk", name)]);
        let body = [para("Start"), "<w:altChunk r:id='c'/>".to_owned(), para("End")].concat();
        let chunk = String::from_utf8_lossy(bytes).into_owned();
        docx_with(&body, &[("word/_rels/document.xml.rels", links), ("word/c", chunk)])
    };
    for (name, bytes, expected) in table {
        let file = file(if bytes.is_empty() { "nowhere" } else { "c" }, bytes);
        assert_eq!(read(&file).unwrap(), [expected], "{name}");
        assert_eq!(notes_of(&file), [PageNote::DoubtfulText], "{name}");
    }
    let error = read(&file("c", b"MIME-Version: 1.0\nReceived: now\n\nx")).unwrap_err();
    assert_eq!(error.reason, OutcomeReason::UnsupportedType);
    assert!(error.detail.contains("imports another file"), "{error}");
}

#[test]
fn a_scan_in_a_document_is_a_page_and_a_logo_is_a_note() {
    let picture = |cx: u32, cy: u32| {
        format!(
            "<w:p><w:r><w:drawing><wp:inline><wp:extent cx='{cx}' cy='{cy}'/>\
             <a:blip r:embed='p'/></wp:inline></w:drawing></w:r></w:p>"
        )
    };
    let links = relations(&[("p", "image", "media/scan.png")]);
    let more =
        [("word/_rels/document.xml.rels", links), ("word/media/scan.png", "pixels".to_owned())];
    let scan = docx_with(&picture(7_000_000, 9_000_000), &more);
    assert_eq!(read(&scan).unwrap(), ["[pixels]"]);
    let logo = docx_with(&[picture(900_000, 900_000), para("Text")].concat(), &more);
    assert_eq!(read(&logo).unwrap(), ["Text"]);
    assert_eq!(notes_of(&logo), [PageNote::UnreadPicture]);
    let outside = "<Relationships><Relationship Id='p' Type='x/image' TargetMode='External' \
                   Target='http://203.0.113.7/p.png'/></Relationships>";
    let linked = docx_with(
        &[picture(7_000_000, 9_000_000), para("Text")].concat(),
        &[("word/_rels/document.xml.rels", outside.to_owned())],
    );
    assert_eq!(read(&linked).unwrap(), ["Text"], "nothing is fetched");
}

#[test]
fn a_sheet_is_read_as_it_is_seen() {
    let styles = "<numFmts><numFmt numFmtId='164' formatCode='#,##0.00\\ \"€\"'/>\
        <numFmt numFmtId='165' formatCode=';;;'/></numFmts>\
        <fonts><font/><font><color rgb='FFFFFFFF'/></font></fonts>\
        <fills><fill><patternFill patternType='none'/></fill>\
        <fill><patternFill patternType='solid'/></fill></fills>\
        <cellXfs><xf numFmtId='0'/><xf numFmtId='164'/><xf numFmtId='14'/><xf numFmtId='165'/>\
        <xf fontId='1' fillId='0'/><xf fontId='1' fillId='1'/></cellXfs>";
    let sheet = "<cols><col min='4' max='4' hidden='1'/></cols><sheetData>\
        <row r='1'><c r='A1' t='s'><v>0</v></c><c r='B1' t='s'><v>1</v></c>\
        <c r='C1' t='inlineStr'><is><t>Inline</t></is></c><c r='D1'><v>666</v></c></row>\
        <row r='2'><c r='A2' s='1'><v>1234.5</v></c><c r='B2' s='2'><v>46086</v></c>\
        <c r='C2' t='b'><v>1</v></c></row>\
        <row r='3' hidden='1'><c r='A3'><v>666</v></c></row>\
        <row r='4'><c r='A4' s='3'><v>666</v></c><c r='B4' s='4' t='str'><v>trap</v></c>\
        <c r='C4' s='5' t='str'><v>white on dark</v></c></row>\
        <row r='5'><c r='A5'><f>SUM(A1)</f><v>7</v></c><c r='B5'><f>NOW()</f></c>\
        <c r='C5' t='e'><v>#REF!</v></c></row></sheetData>";
    let hidden = "<sheetData><row r='1'><c r='A1'><v>666</v></c></row></sheetData>";
    let file = xlsx(&[("Bill", "", sheet), ("Trap", "state='veryHidden'", hidden)], styles);
    assert_eq!(
        read(&file).unwrap(),
        ["Shared two runs Inline|1234.50 € 2026-03-05 TRUE|white on dark|7 #REF!"]
    );
    let mut notes = notes_of(&file);
    notes.sort_unstable();
    assert_eq!(notes, [PageNote::HiddenText, PageNote::HiddenCells, PageNote::FormulaWithoutValue]);
}

/// Styles with these formats of cells and of conditions.
fn cell_styles(formats: &str, changes: &str) -> String {
    format!(
        "<numFmts><numFmt numFmtId='164' formatCode='0.00,'/></numFmts><fonts><font/>\
         <font><color theme='0'/></font><font><color indexed='9'/></font><font><strike/></font>\
         <font><color rgb='FF1F3864'/></font></fonts><fills><fill><patternFill/></fill>\
         <fill><patternFill patternType='solid'><fgColor rgb='FFFFFFFF'/></patternFill></fill>\
         <fill><patternFill patternType='solid'><fgColor rgb='FF1F3864'/></patternFill></fill>\
         </fills><cellXfs><xf/>{formats}</cellXfs><dxfs>\
         <dxf><font><color rgb='FFFFFFFF'/></font></dxf>{changes}</dxfs>"
    )
}

#[test]
fn a_value_that_is_calculated_anew_when_the_file_is_opened_is_doubtful() {
    let anew = "<calcPr fullCalcOnLoad='1'/>";
    #[rustfmt::skip]
    let table = [
        ("a stored value",       "<calcPr calcId='191029'/>", "<f>A1*2</f><v>9900</v>",        vec![]),
        ("all are calculated",   anew,                        "<f>A1*2</f><v>9900</v>",        vec![PageNote::DoubtfulText]),
        ("the one that it makes", anew,                       "<f>ROUND(SUM(B1:C$1,2)*(4949+1)*100%,2)-B2</f><v>9900</v>", vec![]),
        ("it is not decided",    anew,                        "<f>IF(B1=0,9900,1)</f><v>9900</v>", vec![PageNote::DoubtfulText]),
        ("of values as shown",   "<calcPr fullCalcOnLoad='1' fullPrecision='0'/>", "<f>9900</f><v>9900</v>", vec![PageNote::DoubtfulText]),
        ("this one always is",   "",                          "<f ca='1'>A1*2</f><v>9900</v>", vec![PageNote::DoubtfulText]),
        ("it is the day of today", "",                        "<f>TODAY()+30</f><v>9900</v>",  vec![PageNote::DoubtfulText]),
        ("it is no formula",     anew,                        "<v>9900</v>",                   vec![]),
    ];
    for (name, entries, cell, notes) in table {
        let sheet = format!("<sheetData><row r='1'><c r='A1'>{cell}</c></row></sheetData>");
        let file = xlsx_with(&[("S", "", &sheet)], &cell_styles("<xf/>", ""), entries);
        assert_eq!(read(&file).unwrap(), ["9900"], "{name}");
        assert_eq!(notes_of(&file), notes, "{name}");
    }
}

#[test]
fn a_cell_is_read_by_its_colours_conditions_and_place() {
    let row = "<row r='1'><c r='A1'><v>5</v></c><c r='B1' s='1'><v>9900</v></c></row>";
    let rule = |inner: &str| {
        format!(
            "<sheetData>{row}</sheetData><conditionalFormatting sqref='B1:B9'><cfRule dxfId='0' \
             priority='1' {inner}</cfRule></conditionalFormatting>"
        )
    };
    let merged = "<mergeCells><mergeCell ref='A1:C1'/></mergeCells>";
    let data = |more: &str| format!("<sheetData>{row}</sheetData>{more}");
    #[rustfmt::skip]
    let table = [
        ("plain",               "<xf/>",                       data(""),                          "5 9900", vec![]),
        ("white by the theme",  "<xf fontId='1'/>",            data(""),                          "5",      vec![PageNote::HiddenText]),
        ("white by its index",  "<xf fontId='2'/>",            data(""),                          "5",      vec![PageNote::HiddenText]),
        ("white on a white fill", "<xf fontId='1' fillId='1'/>", data(""),                        "5",      vec![PageNote::HiddenText]),
        ("white on a dark fill", "<xf fontId='1' fillId='2'/>", data(""),                         "5 9900", vec![]),
        ("dark on a dark fill", "<xf fontId='4' fillId='2'/>", data(""),                          "5",      vec![PageNote::HiddenText]),
        ("crossed out",         "<xf fontId='3'/>",            data(""),                          "5",      vec![PageNote::DeletedText]),
        ("in thousands",        "<xf numFmtId='164'/>",        data(""),                          "5 9.90", vec![]),
        ("under a merged cell", "<xf/>",                       data(merged),                      "5",      vec![PageNote::HiddenCells]),
        ("in a narrow column",  "<xf/>",                       format!("<cols><col min='2' max='2' width='0.2'/></cols>{}", data("")), "5", vec![PageNote::HiddenCells]),
        ("cut by its column",   "<xf/>",                       format!("<cols><col min='2' max='2' width='3.7'/></cols>{}", data("")), "5 9900", vec![PageNote::DoubtfulText]),
        ("made to fit",         "<xf><alignment shrinkToFit='1'/></xf>", format!("<cols><col min='2' max='2' width='3.7'/></cols>{}", data("")), "5 9900", vec![]),
        ("in a column of no width", "<xf/>",                   format!("<sheetFormatPr defaultColWidth='0'/><cols><col min='1' max='1' width='9'/></cols>{}", data("")), "5", vec![PageNote::HiddenCells]),
        ("a condition that holds", "<xf/>",                    rule("type='cellIs' operator='greaterThan'><formula>100</formula>"), "5", vec![PageNote::HiddenText]),
        ("one that does not",   "<xf/>",                       rule("type='cellIs' operator='between'><formula>1</formula><formula>10</formula>"), "5 9900", vec![]),
        ("one that always holds", "<xf/>",                     rule("type='expression'><formula>TRUE</formula>"), "5", vec![PageNote::HiddenText]),
        ("one that is not decided", "<xf/>",                   rule("type='expression'><formula>$A$1=5</formula>"), "5 9900", vec![PageNote::DoubtfulText]),
        ("one that hides nothing", "<xf fontId='4' fillId='2'/>", rule("type='expression'><formula>TRUE</formula>"), "5 9900", vec![]),
        ("a bar for the value", "<xf/>",                       rule("type='dataBar'><dataBar showValue='0'/>"), "5", vec![PageNote::HiddenText]),
        ("formulas in place of values", "<xf/>",               "<sheetView showFormulas='1'/><sheetData><row r='1'><c r='A1'><v>5</v></c><c r='B1'><f>A1*2</f><v>9900</v></c></row></sheetData>".to_owned(), "5 =A1*2", vec![]),
        ("zeros that are hidden", "<xf/>",                     "<sheetView showZeros='0'/><sheetData><row r='1'><c r='A1'><v>5</v></c><c r='B1'><v>0</v></c></row></sheetData>".to_owned(), "5", vec![]),
        ("runs of a text",      "<xf/>",                       "<sheetData><row r='1'><c r='A1' t='inlineStr'><is><r><t>EUR 1</t></r><r><rPr><color rgb='FFFFFFFF'/></rPr><t>9</t></r><r><rPr><strike/></rPr><t>8</t></r><r><t>00</t></r></is></c></row></sheetData>".to_owned(), "EUR 100", vec![PageNote::DeletedText]),
    ];
    for (name, format, sheet, text, notes) in table {
        let file = xlsx(&[("S", "", &sheet)], &cell_styles(format, ""));
        assert_eq!(read(&file).unwrap(), [text], "{name}");
        assert_eq!(notes_of(&file), notes, "{name}");
    }
}

#[test]
fn a_shape_over_cells_hides_them_and_a_picture_makes_them_doubtful() {
    let cells =
        "<sheetData><row r='1'><c r='A1'><v>1</v></c><c r='B1'><v>2</v></c></row></sheetData>";
    let anchor = |inner: &str| {
        format!(
            "<d:wsDr xmlns:d='d' xmlns:a='a'><d:twoCellAnchor><d:from><d:col>1</d:col><d:colOff>0\
             </d:colOff><d:row>0</d:row><d:rowOff>0</d:rowOff></d:from><d:to><d:col>2</d:col>\
             <d:colOff>0</d:colOff><d:row>2</d:row><d:rowOff>0</d:rowOff></d:to>{inner}\
             </d:twoCellAnchor></d:wsDr>"
        )
    };
    let filled =
        "<d:sp><d:spPr><a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill></d:spPr></d:sp>";
    #[rustfmt::skip]
    let table = [
        ("a filled shape",  filled.to_owned(), "1", vec![PageNote::HiddenCells]),
        ("a clear shape",   filled.replace("val='FFFFFF'/>", "val='FFFFFF'><a:alpha val='0'/></a:srgbClr>"), "1 2", vec![]),
        ("a picture",       "<d:pic><d:spPr/></d:pic>".to_owned(), "1 2", vec![PageNote::UnreadPicture, PageNote::DoubtfulText]),
        ("a hidden shape",  filled.replace("<d:spPr>", "<d:nvSpPr><d:cNvPr hidden='1'/></d:nvSpPr><d:spPr>"), "1 2", vec![]),
    ];
    for (name, shape, text, notes) in table {
        let workbook =
            "<workbook xmlns:r='r'><sheets><sheet name='S' r:id='a'/></sheets></workbook>";
        let file = open_xml(
            "xl/workbook.xml",
            &[
                ("xl/workbook.xml", workbook.to_owned()),
                ("xl/_rels/workbook.xml.rels", relations(&[("a", "worksheet", "s.xml")])),
                ("xl/s.xml", format!("<worksheet>{cells}</worksheet>")),
                ("xl/_rels/s.xml.rels", relations(&[("d", "drawing", "d.xml")])),
                ("xl/d.xml", anchor(&shape)),
            ],
        );
        assert_eq!(read(&file).unwrap(), [text], "{name}");
        let mut found = notes_of(&file);
        found.sort_unstable();
        assert_eq!(found, notes, "{name}");
    }
}

#[test]
#[rustfmt::skip]
fn a_shape_of_a_slide_is_read_where_it_is_seen() {
    let shape = |at: &str, fill: &str, look: &str, text: &str| {
        format!(
            "<p:sp><p:spPr><a:xfrm>{at}</a:xfrm>{fill}</p:spPr><p:txBody><a:p><a:r>\
             <a:rPr {look}</a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    let here = "<a:off x='10' y='10'/><a:ext cx='50' cy='20'/>";
    let away = "<a:off x='-900' y='10'/><a:ext cx='50' cy='20'/>";
    let white = "<a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill>";
    let dark = "<a:solidFill><a:schemeClr val='tx1'/></a:solidFill>";
    let clear =
        "<a:solidFill><a:srgbClr val='FFFFFF'><a:alpha val='40000'/></a:srgbClr></a:solidFill>";
    let in_group = |inner: &str| {
        format!(
            "<p:grpSp><p:grpSpPr><a:xfrm><a:off x='-900' y='0'/><a:ext cx='100' cy='100'/>\
             <a:chOff x='0' y='0'/><a:chExt cx='100' cy='100'/></a:xfrm></p:grpSpPr>{inner}</p:grpSp>"
        )
    };
    #[rustfmt::skip]
    let table = [
        ("plain",              shape(here, "", ">", "seen"),                                          "seen"),
        ("off the slide",      shape(away, "", ">", "trap"),                                          ""),
        ("in a group off it",  in_group(&shape(here, "", ">", "trap")),                               ""),
        ("under a shape",      shape(here, "", ">", "trap") + &shape(here, white, ">", ""),           ""),
        ("over a shape",       shape(here, white, ">", "") + &shape(here, "", ">", "seen"),           "seen"),
        ("under a clear one",  shape(here, "", ">", "seen") + &shape(here, clear, ">", ""),           "seen"),
        ("white on white",     shape(here, "", &format!(">{white}"), "trap"),                         ""),
        ("white in a white shape", shape(here, white, &format!(">{white}"), "trap"),                  ""),
        ("white in a dark shape", shape(here, dark, &format!(">{white}"), "seen"),                    "seen"),
        ("white over a dark shape", shape(here, dark, ">", "") + &shape(here, "", &format!(">{white}"), "seen"), "seen"),
        ("crossed out",        shape(here, "", "strike='sngStrike'>", "trap"),                        ""),
        ("of one point",       shape(here, "", "sz='100'>", "trap"),                                  ""),
    ];
    for (name, shapes, text) in table {
        let slide = format!("<p:sld xmlns:p='p' xmlns:a='a'><p:spTree>{shapes}</p:spTree></p:sld>");
        let main = "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldSz cx='1000' cy='800'/>\
                    <p:sldId id='256' r:id='a'/></p:presentation>";
        let file = open_xml(
            "ppt/presentation.xml",
            &[("ppt/presentation.xml", main.to_owned()), ("ppt/_rels/presentation.xml.rels", relations(&[("a", "slide", "s.xml")])), ("ppt/s.xml", slide)],
        );
        assert_eq!(read(&file).unwrap().concat(), text, "{name}");
        assert_eq!(notes_of(&file).is_empty(), !text.is_empty(), "{name}");
    }
}

#[test]
fn a_label_on_a_slide_is_doubted_where_it_joins_a_number() {
    let number = "<a:r><a:t>1,100.00</a:t></a:r>";
    #[rustfmt::skip]
    let table = [
        ("a digit",         "", format!("<a:pPr indent='0'><a:buChar char='9'/></a:pPr>{number}"),             "9 1,100.00",  true),
        ("a digit apart",   "", format!("<a:pPr indent='-342900'><a:buChar char='9'/></a:pPr>{number}"),       "9 1,100.00",  true),
        ("of its list",     "<a:lstStyle><a:lvl1pPr><a:buChar char='9'/></a:lvl1pPr></a:lstStyle>", number.to_owned(), "9 1,100.00", true),
        ("a sign",          "", format!("<a:pPr><a:buChar char='-'/></a:pPr>{number}"),                        "• 1,100.00",  true),
        ("a sign apart",    "", format!("<a:pPr indent='-342900'><a:buChar char='-'/></a:pPr>{number}"),       "• 1,100.00",  false),
        ("a picture",       "", format!("<a:pPr><a:buBlip/></a:pPr>{number}"),                                 "• 1,100.00",  true),
        ("of a font of pictures", "", format!("<a:pPr><a:buFont typeface='Wingdings'/><a:buChar char='9'/></a:pPr>{number}"), "• 1,100.00", false),
        ("a count",         "", format!("<a:pPr><a:buAutoNum type='arabicPlain' startAt='9'/></a:pPr>{number}"), "9 1,100.00", true),
        ("a usual count",   "", format!("<a:pPr indent='-342900'><a:buAutoNum type='arabicParenR' startAt='9'/></a:pPr>{number}"), "9) 1,100.00", false),
        ("none",            "", format!("<a:pPr><a:buNone/></a:pPr>{number}"),                                 "1,100.00",    false),
        ("of its design",   "<body/>", number.to_owned(),                                                      "9 1,100.00",  true),
        ("a slide's number", "", format!("<a:fld type='slidenum'><a:t>9</a:t></a:fld>{number}"),               "91,100.00",   true),
        ("a formula",       "", "<m><r><t>1,100.00</t></r></m>".to_owned(),                                    "1,100.00",    false),
    ];
    for (name, style, paragraph, text, is_doubtful) in table {
        let slide = format!(
            "<p:sld xmlns:p='p' xmlns:a='a'><p:spTree><p:sp>{}<p:txBody>{style}<a:p>{paragraph}</a:p>\
             </p:txBody></p:sp></p:spTree></p:sld>",
            if style == "<body/>" { "<p:nvPr><p:ph/></p:nvPr>" } else { "" }
        );
        let design = "<p:sldLayout xmlns:p='p' xmlns:a='a'><a:buChar char='9'/></p:sldLayout>";
        let main =
            "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldId id='256' r:id='a'/></p:presentation>";
        let links = relations(&[("a", "slide", "s.xml")]);
        let file = open_xml(
            "ppt/presentation.xml",
            &[
                ("ppt/presentation.xml", main.to_owned()),
                ("ppt/_rels/presentation.xml.rels", links),
                ("ppt/s.xml", slide),
                ("ppt/_rels/s.xml.rels", relations(&[("l", "slideLayout", "l.xml")])),
                ("ppt/l.xml", design.to_owned()),
            ],
        );
        assert_eq!(read(&file).unwrap(), [text], "{name}");
        assert_eq!(notes_of(&file).contains(&PageNote::DoubtfulText), is_doubtful, "{name}");
    }
}

#[test]
fn text_of_an_open_document_is_read_where_it_is_seen() {
    let styles = "<style:style style:name='w'><style:text-properties fo:color='#ffffff'/></style:style>\
        <style:style style:name='s'><style:text-properties style:text-line-through-style='solid'/></style:style>\
        <style:style style:name='d'><style:table-cell-properties fo:background-color='#1f3864'/></style:style>\
        <style:style style:name='f'><style:table-row-properties style:row-height='0cm'/></style:style>";
    let text = "<text:p>a<text:span text:style-name='w'>trap</text:span>\
        <text:span text:style-name='s'>trap</text:span></text:p><table:table><table:table-row>\
        <table:table-cell><text:p text:style-name='w'>trap</text:p></table:table-cell>\
        <table:table-cell table:style-name='d'><text:p text:style-name='w'>seen</text:p></table:table-cell>\
        </table:table-row></table:table>";
    let file = odf("text", text, styles);
    assert_eq!(read(&file).unwrap(), ["a|seen"]);
    let sheet = |cell: &str| {
        format!(
            "<table:table><table:table-column table:default-cell-style-name='w'/><table:table-row \
             table:style-name='f'><table:table-cell><text:p>trap</text:p></table:table-cell>\
             </table:table-row><table:table-row><table:table-cell><text:p>trap</text:p>\
             </table:table-cell><table:table-cell {cell}</table:table-cell></table:table-row></table:table>"
        )
    };
    for (cell, is_doubtful) in [
        ("office:value='1100'><text:p>1.100,00 €</text:p>", false),
        ("office:value='9900'><text:p>1.100,00 €</text:p>", true),
        ("office:value='0.19' office:value-type='percentage'><text:p>19%</text:p>", false),
        ("office:value='-2.675'><text:p>-2.68</text:p>", false),
        ("office:value='11'><text:p>1.1</text:p>", false),
        ("office:value='7'><text:p>seven</text:p>", false),
    ] {
        let file = odf("spreadsheet", &sheet(cell), styles);
        assert!(!read(&file).unwrap().concat().contains("trap"), "{cell}");
        assert_eq!(notes_of(&file).contains(&PageNote::DoubtfulText), is_doubtful, "{cell}");
    }
}

#[test]
fn labels_and_fields_of_an_open_document_are_doubted_where_they_join_or_differ() {
    let level = |kind: &str, attributes: &str, followed: &str| {
        format!(
            "<text:list-style style:name='l'><text:list-level-style-{kind} {attributes}>\
             <style:list-level-properties><style:list-level-label-alignment \
             text:label-followed-by='{followed}'/></style:list-level-properties>\
             </text:list-level-style-{kind}></text:list-style>"
        )
    };
    let list = "<text:list text:style-name='l'><text:list-item><text:p>1,100.00</text:p></text:list-item></text:list>";
    let alone =
        "<text:list text:style-name='l'><text:list-item><text:p/></text:list-item></text:list>";
    let field = |name: &str, attributes: &str| {
        format!("<text:p><text:{name} {attributes}>1,100.00</text:{name}></text:p>")
    };
    let usual = "text:num-format='1' text:num-suffix='.' text:start-value='9'";
    #[rustfmt::skip]
    let table = [
        ("a digit",         list.to_owned(),  level("bullet", "text:bullet-char='9'", "nothing"),   "9 1,100.00",  true),
        ("a sign",          list.to_owned(),  level("bullet", "text:bullet-char='-'", "nothing"),   "• 1,100.00",  true),
        ("a prefix",        list.to_owned(),  level("number", "text:num-prefix='9' text:num-format=''", "nothing"), "9 1,100.00", true),
        ("a picture",       list.to_owned(),  level("image", "", "nothing"),                        "• 1,100.00",  true),
        ("a count",         list.to_owned(),  level("number", usual, "nothing"),                    "9. 1,100.00", true),
        ("a usual count",   list.to_owned(),  level("number", usual, "listtab"),                    "9. 1,100.00", false),
        ("a usual bullet",  list.to_owned(),  level("bullet", "text:bullet-char='•'", "space"),     "• 1,100.00",  false),
        ("a label alone",   alone.to_owned(), level("bullet", "text:bullet-char='9,900.00'", "listtab"), "9,900.00", true),
        ("an entry apart",  "<text:numbered-paragraph text:list-level='1' text:style-name='l'><text:number>9</text:number><text:p>1,100.00</text:p></text:numbered-paragraph>".to_owned(), level("number", usual, "nothing"), "9 1,100.00", true),
        ("another value",   field("user-field-get", "text:name='t'"),                    "9900".to_owned(), "1,100.00", true),
        ("its value",       field("user-field-get", "text:name='t'"),                    "1100".to_owned(), "1,100.00", false),
        ("another text",    field("user-field-get", "text:name='t'"),                    "A-9".to_owned(),  "1,100.00", true),
        ("another result",  field("expression", "text:formula='ooow:9900'"),             String::new(),     "1,100.00", true),
        ("its result",      field("expression", "text:formula='ooow:a+b' office:value='1100'"), String::new(), "1,100.00", false),
        ("a percentage",    field("expression", "office:value='11'").replace(",100.00", "100 %"), String::new(), "1100 %", false),
        ("a condition",     field("conditional-text", "text:string-value-if-true='9,900.00'"), String::new(), "1,100.00", true),
        ("hidden by one",   "<text:p>1,100.00<text:hidden-paragraph/></text:p>".to_owned(), String::new(), "1,100.00", true),
        ("a line at it",    "<text:p><draw:line/>1,100.00</text:p>".to_owned(),          String::new(),     "1,100.00", true),
        ("a logo before it", "<text:p><draw:frame text:anchor-type='paragraph' svg:width='5cm' svg:height='2cm'/>1,100.00</text:p>".replace("svg:", ""), String::new(), "1,100.00", false),
        ("in an ellipse",   "<draw:ellipse><text:p>seen</text:p></draw:ellipse>".to_owned(), String::new(), "seen",    false),
    ];
    for (name, body, style, text, is_doubtful) in table {
        let value = format!("<text:user-field-decl text:name='t' office:value='{style}'/>");
        let is_value = !style.is_empty() && !style.starts_with('<');
        let (value, style) = if is_value { (value, "") } else { (String::new(), style.as_str()) };
        let file = odf("text", &[value, body].concat(), style);
        assert_eq!(read(&file).unwrap(), [text], "{name}");
        assert_eq!(notes_of(&file).contains(&PageNote::DoubtfulText), is_doubtful, "{name}");
    }
}

#[test]
fn sheets_and_slides_are_pages() {
    let sheet = |text: &str| {
        format!("<sheetData><row r='1'><c r='A1' t='str'><v>{text}</v></c></row></sheetData>")
    };
    let book = xlsx(&[("One", "", &sheet("first")), ("Two", "", &sheet("second"))], "");
    assert_eq!(read(&book).unwrap(), ["One|first", "Two|second"]);
    let slide = |attributes: &str, shapes: &str| {
        format!("<p:sld xmlns:p='p' xmlns:a='a' {attributes}><p:spTree>{shapes}</p:spTree></p:sld>")
    };
    let shape = |kind: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:cNvPr/><p:nvPr><p:ph {kind}/></p:nvPr></p:nvSpPr><p:txBody>\
             <a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    let links = [("a", "slide", "s1.xml"), ("b", "slide", "s2.xml"), ("c", "slide", "s3.xml")];
    let file = open_xml(
        "ppt/presentation.xml",
        &[
            (
                "ppt/presentation.xml",
                "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldId id='256' r:id='b'/>\
                 <p:sldId id='257' r:id='a'/><p:sldId id='258' r:id='c'/></p:presentation>"
                    .to_owned(),
            ),
            ("ppt/_rels/presentation.xml.rels", relations(&links)),
            ("ppt/s1.xml", slide("", &shape("", "later"))),
            (
                "ppt/s2.xml",
                slide("", &[shape("idx='1'", "point"), shape("type='title'", "Title")].concat()),
            ),
            ("ppt/s3.xml", slide("show='0'", &shape("", "trap"))),
        ],
    );
    assert_eq!(read(&file).unwrap(), ["Title|• point", "• later"]);
    assert_eq!(notes_of(&file), [PageNote::HiddenCells]);
}

#[test]
fn an_open_document_is_read_as_it_is_seen() {
    let styles = "<style:style style:name='h'><style:text-properties text:display='none'/></style:style>\
        <style:style style:name='ta'><style:table-properties table:display='false'/></style:style>";
    let text = "<text:tracked-changes><text:p>trap</text:p></text:tracked-changes>\
        <text:h text:outline-level='1'>Invoice</text:h>\
        <text:p>A<text:s text:c='2'/>b<text:span text:style-name='h'>trap</text:span>\
        <office:annotation><text:p>trap</text:p></office:annotation></text:p>\
        <text:list><text:list-item><text:p>one</text:p><text:list><text:list-item>\
        <text:p>two</text:p></text:list-item></text:list></text:list-item></text:list>\
        <table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>\
        <table:table-cell><text:p>y</text:p></table:table-cell></table:table-row></table:table>";
    let file = odf("text", text, styles);
    assert_eq!(read(&file).unwrap(), ["Invoice|A b|• one|• two|x y"]);
    assert_eq!(notes_of(&file), [PageNote::HiddenText, PageNote::DeletedText, PageNote::Comments]);
    let cell = |text: &str| {
        format!("<table:table-cell office:value='1'><text:p>{text}</text:p></table:table-cell>")
    };
    let sheets = [
        "<table:table table:name='A'><table:table-column/>\
         <table:table-column table:visibility='collapse'/><table:table-row>",
        &cell("a"),
        &cell("trap"),
        &cell("c"),
        "<table:table-cell table:number-columns-repeated='16000'/></table:table-row>\
         <table:table-row table:visibility='collapse'>",
        &cell("trap"),
        "</table:table-row><table:table-row table:number-rows-repeated='1048000'>\
         <table:table-cell/></table:table-row></table:table>\
         <table:table table:name='B' table:style-name='ta'><table:table-row>",
        &cell("trap"),
        "</table:table-row></table:table>",
    ]
    .concat();
    let file = odf("spreadsheet", &sheets, styles);
    assert_eq!(read(&file).unwrap(), ["a c"]);
    assert_eq!(notes_of(&file), [PageNote::HiddenCells]);
    let sealed = package([
        ("mimetype", "application/vnd.oasis.opendocument.text".to_owned()),
        ("META-INF/manifest.xml", "<m><encryption-data/></m>".to_owned()),
    ]);
    assert_eq!(read(&sealed).unwrap_err().reason, OutcomeReason::Encrypted);
}

#[test]
fn a_web_page_is_read_as_it_is_seen() {
    #[rustfmt::skip]
    let table = [
        ("blocks",         "<html><head><title>no</title></head><body><h1>A</h1><p>b<br>c<p>d</body></html>", "A|b|c|d"),
        ("entities",       "<p>5&nbsp;&euro; &lt;b&gt; &#x41;</p>",                          "5 € <b> A"),
        ("stated counts",  "<body><ol><li value=7>x<li>y</ol></body>",                       "7. x|8. y"),
        ("a picture in its place", "<style>.h{content:url(a.png)}</style><p>a<p class=h>trap", "a"),
        ("lists",          "<body><ol start=3><li>x<ul><li>y</ul><li>z</ol></body>",         "3. x|• y|4. z"),
        ("a table",        "<table><tr><th>a<th>b<tr><td>1<td>2</table>",                    "a b|1 2"),
        ("layout tables",  "<table><tr><td><table><tr><td>1<td>2</table><td>3</table>",      "1 2|3"),
        ("scripts",        "<body><script>if (a<b) trap</script>x<style>p{}</style></body>", "x"),
        ("hidden",         "<body>x<p style='display:none'>trap<b>trap</b></p> y</body>",    "x y"),
        ("hidden by class", "<html><style>.t{display:none}</style><p class='a t'>trap</p>x",  "x"),
        ("white",          "<body>x<font color=white>trap</font></body>",                    "x"),
        ("white on dark",  "<body><div style='background:#000;color:#fff'>x</div></body>",   "x"),
        ("white on white",  "<body><div style='background:#fff'><p style='color:#fefefe'>trap</p>x</div></body>", "x"),
        ("dark on dark",    "<body><div style='background:#333'><p style='color:#333'>trap</p></div>x</body>", "x"),
        ("sized again",     "<body><div style='font-size:0'>trap<p style='font-size:14px'>x</p></div></body>", "x"),
        ("of one pixel",    "<body>x<p style='font-size: 1px; color: red'>trap</p></body>",   "x"),
        ("in pictures",     "<body>x<span style='font-family:Wingdings'>trap</span></body>",  "x"),
        ("preformatted",   "<body><pre>a   b\n  c</pre></body>",                             "a b|c"),
        ("unclosed",       "<div><p>a<div>b<td>c",                                           "a|b|c"),
        ("ends alone",     "<p>a</table></td></div>b",                                       "ab"),
        ("another encoding", "<meta charset=windows-1252><p>x</p>",                           "x"),
    ];
    for (name, page, expected) in table {
        assert_eq!(read(page.as_bytes()).unwrap(), [expected], "{name}");
    }
    assert_eq!(notes_of(b"<p>x<p hidden>trap"), [PageNote::HiddenText]);
    assert_eq!(notes_of(b"<meta charset=utf-8><p>M\xfcller"), [PageNote::DoubtfulText]);
    for page in [
        "<style>b::before{content:'9'}</style><p><b>900</b>",
        "<style>b::before{content:'-'}</style><p><b>900</b>",
        "<style>b::before{content:var(--a)}</style><p><b>900</b>",
        "<style>p::first-letter{font-size:0}</style><p>9900",
        "<p>a<p style='color:lab(100% 0 0)'>9900",
        "<p>a<p style='filter:opacity(0)'>9900",
        "<p><bdo dir=rtl>0011</bdo>",
        &format!("{OTHER_TEXT_MARK}<p>9"),
    ] {
        assert_eq!(notes_of(page.as_bytes()), [PageNote::DoubtfulText], "{page}");
    }
}

#[test]
fn elements_side_by_side_are_apart_and_those_of_one_number_are_not() {
    #[rustfmt::skip]
    let table = [
        ("a flexible box",    "<div style='display:flex'><span>No</span><span>A7</span></div>", "No A7", false),
        ("of blocks",         "<div style='display:flex'><div>No</div><div>A7</div></div>",    "No A7", false),
        ("from above",        "<div style='display:flex;flex-direction:column'><b>a</b><b>b</b></div>", "ab", false),
        ("floats",            "<p><span style='float:left'>No</span>A7",                       "No A7", false),
        ("boxes in a line",   "<p><b style='display:inline-block;width:9em'>No</b>A7",          "No A7", false),
        ("rows of a grid",    "<div style='display:grid;grid-template-columns:1fr 1fr'><b>a</b><b>b</b><b>c</b><b>d</b></div>", "a b|c d", false),
        ("a table of boxes",  "<div style='display:table'><div style='display:table-row'><p style='display:table-cell'>1</p><p style='display:table-cell'>2</p></div></div>", "1 2", false),
        ("a cell by itself",  "<table><tr><td>a<div style='display:table-cell'>b</div><td>c</table>", "a c|b", false),
        ("lines of spans",    "<p><span style='display:block'>a</span><span style='display:block'>b</span>", "a|b", false),
        ("blocks in a line",  "<body><div style='display:inline'>9</div><div style='display:inline'>900</div>", "9900", true),
        ("parts of a number", "<div style='display:flex'><b class=x>9</b><b>900</b></div>",     "9900", true),
        ("numbers apart",     "<div style='display:flex'><b style='width:40px'>9</b><b>900</b></div>", "9 900", false),
        ("numbers that meet", "<div style='display:flex'><b style='width:40px;text-align:right'>9</b><b class=x>900</b></div>", "9900", true),
        ("another order",     "<div style='display:flex;flex-direction:row-reverse'><b>9</b></div>", "9", true),
        ("another place",     "<div style='display:grid'><b style='grid-row:2'>9</b></div>",    "9", true),
    ];
    for (name, page, text, is_doubtful) in table {
        assert_eq!(read(page.as_bytes()).unwrap(), [text], "{name}");
        let is_noted = notes_of(page.as_bytes()).contains(&PageNote::DoubtfulText);
        assert_eq!(is_noted, is_doubtful, "{name}");
    }
}

#[test]
fn a_number_of_several_looks_makes_its_page_doubtful() {
    #[rustfmt::skip]
    let table = [
        ("of one look",         "<p>EUR <span class=a>1,100.00</span>", r"{\rtf1 EUR{\fs18  1,100.00}\par}", false),
        ("heavier in part",     "<p>1,<b>100</b>.00",                   r"{\rtf1 1,{\b 100}.00\par}",       false),
        ("a class of its own",  "<p><span class=a>9</span>1,100.00",    r"{\rtf1{\fs8 9}1,100.00\par}",    true),
        ("raised",              "<p>1,100<sup>00</sup>",                r"{\rtf1 1,100{\super 00}\par}",   true),
        ("a sign of its own",   "<p><i class=a>-</i>1,100.00",          r"{\rtf1{\up12 -}1,100.00\par}",   true),
    ];
    for (page, expected) in [
        ("<p>1,100<small>.00</small>", false),
        ("<p>1<span>,</span>100", false),
        ("<p><small><small>9</small></small>1,100.00", true),
        ("<style>span{letter-spacing:-1em}</style><p>1<span>9</span>00", true),
        ("<p>GBP <svg><path d='M0 6H6'/></svg>1,100.00", true),
        ("<p>GBP <img src=9.png>1,100.00", true),
        ("<p><img src=logo.png> 1,100.00", false),
        ("<p>GBP <span style='border-top:1px solid;width:5px'></span>1,100.00", true),
        ("<p>GBP <span style='border-top:0 solid'></span>1,100.00", false),
        ("<p>GBP <span style='border:1px solid'>1,100.00</span>", false),
        ("<table><tr><td style='border:1px solid'></td><td>1,100.00</td></table>", false),
        ("<body><ul style=\"list-style:'9' inside\"><li>1,100.00</ul>", true),
        ("<body><ul style='list-style:square'><li>1,100.00</ul>", false),
        ("<body><ul style='list-style:inside symbols(\"9\")'><li>1,100.00</ul>", true),
        ("<body><ul style='list-style:q inside'><li>1,100.00</ul>", true),
        ("<body><ul style='list-style-image:url(9.svg)'><li>1,100.00</ul>", true),
        ("<style>@counter-style q{symbols:'9'}</style><p>1,100.00", true),
        ("<body><ol start=9 style='list-style-position:inside'><li>1,100.00</ol>", true),
        ("<body><ul style='list-style:decimal inside'><li><b>1,100.00</b></ul>", true),
        (
            "<body>GBP <span style='display:list-item;list-style:inside decimal'>1,100.00</span>",
            true,
        ),
        ("<body><ol style='list-style:inside'><li>500 sheets of paper, 1,100.00</ol>", false),
        ("<body><ol style='list-style:inside'><li>Paper <b>1,100.00</b></ol>", false),
        ("<body><ol start=9><li>1,100.00</ol>", false),
        ("<body><ol style='list-style:none inside'><li>1,100.00</ol>", false),
        ("<style>.h{content:url(a.png)}</style><p>GBP <b class=h>9,900.00</b>", true),
        ("<style>.h{content:attr(x)}</style><p>GBP <b class=h>9,900.00</b>", false),
        ("<style>.h{content:url(a.png)}</style><h1 class=h>Example Ltd</h1><p>9,900.00", false),
        ("<p>GBP <input placeholder=9>1,100.00", true),
        ("<p>GBP <input type=button value=9>1,100.00", true),
        ("<p>GBP <input value='1,100.00'><input type=hidden>", false),
        ("<style>q{quotes:'9' '0'}</style><p><q>1,100.00</q>", true),
        ("<style>li::marker{content:'9'}</style><ul><li>1,100.00</ul>", true),
    ] {
        assert_eq!(notes_of(page.as_bytes()).contains(&PageNote::DoubtfulText), expected, "{page}");
    }
    for (name, page, file, expected) in table {
        for bytes in [page.as_bytes(), file.as_bytes()] {
            assert_eq!(notes_of(bytes).contains(&PageNote::DoubtfulText), expected, "{name}");
        }
    }
}

#[test]
fn rich_text_is_read_as_it_is_seen() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &str); 20] = [
        ("a font's letters", br"{\rtf1\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset238 Arial;}}\f1\'a3\'f3d\'9f {\f0\'a3}\'a3\plain\'a3\par}", "Łódź £Ł£"),
        ("text",       br"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title no}}B\'fcro\par \b 5 \u8364?\par}", "Büro|5 €"),
        ("surrogates", br"{\rtf1 \u-10179?\u-8704?\par}",                                      "😀"),
        ("a table",    br"{\rtf1\trowd\intbl a\cell b\cell\row\trowd\intbl 1\cell 2\cell\row\pard end\par}", "a b|1 2|end"),
        ("a list",     br"{\rtf1{\pard\ls1{\listtext 1.\tab}one\par}{\pard\ls1{\listtext\'b7\tab}two\par}}", "1. one|• two"),
        ("hidden",     br"{\rtf1 a{\v trap}b{\deleted trap}\par}",                             "ab"),
        ("white",      br"{\rtf1{\colortbl;\red255\green255\blue255;}a{\cf1 trap}\par}",       "a"),
        ("crossed out", br"{\rtf1 a{\strike trap}{\strike0 b}{\striked1 trap}\par}",           "ab"),
        ("white in a table", br"{\rtf1{\colortbl;\red255\green255\blue255;}\trowd\cellx9\cellx18\intbl{\cf1 trap}\cell b\cell\row\pard c\par}", "b|c"),
        ("white in a dark cell", br"{\rtf1{\colortbl;\red255\green255\blue255;\red0\green0\blue80;}\trowd\clcbpat2\cellx9\cellx18\intbl{\cf1 a}\cell b\cell\row\pard c\par}", "a b|c"),
        ("white in a white cell", br"{\rtf1{\colortbl;\red255\green255\blue255;}\trowd\clcbpat1\cellx9\cellx18\intbl{\cf1 trap}\cell b\cell\row\pard c\par}", "b|c"),
        ("dark on dark", br"{\rtf1{\colortbl;\red0\green0\blue80;}a{\cf1\chcbpat1 trap}\par}",  "a"),
        ("under a merged cell", br"{\rtf1\trowd\clmgf\cellx9\clmrg\cellx18\intbl a\cell trap\cell\row\pard c\par}", "a|c"),
        ("of one point", br"{\rtf1 a{\fs2 trap\fs24 b}\par}",                                 "ab"),
        ("in a flat line", br"{\rtf1 a\par\pard\sl-1 trap\par\pard b\par}",                  "a|b"),
        ("in pictures", br"{\rtf1{\fonttbl{\f0 Arial;}{\f1\fnil{\*\panose 05}Wingdings;}}a{\f1 trap}{\f0 b}\par}", "ab"),
        ("squeezed",   br"{\rtf1 a{\charscalex1 trap}\charscalex80 b\par}",                     "ab"),
        ("skipped",    br"{\rtf1{\*\unheard trap}{\pict 00ff}{\object{\*\objdata ff}}a\par}",  "a"),
        ("a field",    br"{\rtf1{\field{\*\fldinst HYPERLINK x}{\fldrslt seen}}\par}",         "seen"),
        ("a header",   br"{\rtf1{\header Example Ltd}text\par}",                               "Example Ltd|text"),
    ];
    for (name, file, expected) in table {
        assert_eq!(read(file).unwrap(), [expected], "{name}");
    }
}

#[test]
fn labels_and_fields_of_rich_text_are_doubted_where_they_join_a_number() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &str, bool); 15] = [
        ("a usual label",     br"{\rtf1{\pard\ls1{\listtext 9.\tab}1,100.00\par}}",   "9. 1,100.00", false),
        ("a bare one",        br"{\rtf1{\pard\ls1{\listtext 9\tab}1,100.00\par}}",    "9. 1,100.00", false),
        ("without a tab",     br"{\rtf1{\pard\ls1{\listtext 9}1,100.00\par}}",        "9 1,100.00", true),
        ("an older one",      br"{\rtf1{\pard{\pntext -}1,100.00\par}}",              "\u{2022} 1,100.00", true),
        ("a usual bullet",    br"{\rtf1{\pard\ls1{\listtext\'b7}1,100.00\par}}",      "\u{2022} 1,100.00", false),
        ("a label in a line",  br"{\rtf1 GBP {\listtext 9}1,100.00\par}",                "9 GBP 1,100.00", true),
        ("a list without tabs", br"{\rtf1{\listtable{\list{\listlevel\levelfollow2}}}{\pard\ls1{\listtext 1.\tab}1,100.00\par}}", "1. 1,100.00", true),
        ("one of words",      br"{\rtf1{\listtable{\list{\listlevel\levelfollow2}}}{\pard\ls1{\listtext 1.\tab}500 sheets\par}}", "1. 500 sheets", false),
        ("a list of digits",  br"{\rtf1{\listtable{\list{\listlevel{\leveltext\'01 9;}}}}{\pard\ls1{\listtext 1.\tab}1,100.00\par}}", "1. 1,100.00", true),
        ("a usual list",      br"{\rtf1{\listtable{\list{\listlevel\levelfollow0{\leveltext\'02\'00.;}}}}{\pard\ls1{\listtext 1.\tab}1,100.00\par}}", "1. 1,100.00", false),
        ("a label alone",     br"{\rtf1{\pard\ls1{\listtext 9,900.00\tab}\par}}",     "9,900.00",  true),
        ("a page",            br"{\rtf1{\field{\*\fldinst PAGE}{\fldrslt 9}}1,100.00\par}", "91,100.00", true),
        ("a merged number",   br"{\rtf1 2026-{\field{\*\fldinst MERGEFIELD n}{\fldrslt 12}}\par}", "2026-12", false),
        ("a symbol",          br"{\rtf1{\field{\*\fldinst{SYMBOL 57}}}1,100.00\par}",  "1,100.00",  true),
        ("a button",          br"{\rtf1{\field{\*\fldinst MACROBUTTON x 9,900.00}}seen\par}", "seen", true),
    ];
    for (name, file, expected, is_doubtful) in table {
        assert_eq!(read(file).unwrap(), [expected], "{name}");
        assert_eq!(notes_of(file).contains(&PageNote::DoubtfulText), is_doubtful, "{name}");
    }
}

#[test]
fn text_keeps_its_columns_and_fields_become_cells() {
    let text = "Invoice   4711\r\n\r\nTotal\t5.00\u{c}next";
    let pages = lay_out_document(text.as_bytes(), OfficeFormat::Text, &limits()).unwrap();
    let [LaidPage::Text(first), LaidPage::Text(second)] = pages.as_slice() else {
        panic!("two pages: {pages:?}")
    };
    let places: Vec<(&str, f32)> = first
        .lines
        .iter()
        .flat_map(|line| &line.words)
        .map(|word| (word.text.as_str(), word.bounding_box.x))
        .collect();
    assert_eq!(places, [("Invoice", 40.0), ("4711", 100.0), ("Total", 40.0), ("5.00", 88.0)]);
    assert_eq!(second.lines.len(), 1);
    let fields = b"a;\"b\nc\";d\n1;=\"007\";3\n4;;6\n";
    assert_eq!(read_as(fields, OfficeFormat::Csv).unwrap(), ["a b d|c|1 007 3|4 6"]);
}

#[test]
#[rustfmt::skip]
fn hostile_files_end_at_a_limit_that_is_named() {
    let deep = format!("{}{}{}", "<w:sdt><w:sdtContent>".repeat(99), para("x"), "</w:sdtContent></w:sdt>".repeat(99));
    let entity = "<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><w:document xmlns:w='w'/>";
    let cells = "<sheetData>".to_owned()
        + &(1..=1500)
            .map(|at| {
                let name = [at / 676 % 26, at / 26 % 26, at % 26]
                    .map(|it| char::from(b'A' + u8::try_from(it).unwrap()));
                format!("<row r='{at}'><c r='{}{at}'><v>1</v></c></row>", name.iter().collect::<String>())
            })
            .collect::<String>()
        + "</sheetData>";
    let repeated = "<table:table><table:table-row table:number-rows-repeated='99999'>".to_owned()
        + &"<table:table-cell table:number-columns-repeated='9999'><text:p>x</text:p></table:table-cell>".repeat(20)
        + "</table:table-row></table:table>";
    let members: Vec<String> = (0..10_001).map(|at| format!("word/{at}")).collect();
    let crowd = members.iter().map(|name| (name.as_str(), String::new()));
    let crowd = package([("[Content_Types].xml", String::new())].into_iter().chain(crowd));
    #[rustfmt::skip]
    let table: [(&str, Vec<u8>, OutcomeReason, &str); 16] = [
        ("a bomb",             docx(&" ".repeat(40 << 20)),                             OutcomeReason::TooLarge, "33554432 bytes"),
        ("elements too deep",  docx(&deep),                                             OutcomeReason::TooLarge, "64 levels"),
        ("an entity",          open_xml("word/document.xml", &[("word/document.xml", entity.to_owned())]), OutcomeReason::Corrupt, "entities"),
        ("many members",       crowd,                                                   OutcomeReason::TooLarge, "limits.archive_entries"),
        ("much text",          docx(&para(&"word ".repeat(20_000))),                    OutcomeReason::TooLarge, "limits.text_bytes"),
        ("many pages",         docx(&"<w:p><w:r><w:br w:type='page'/><w:t>x</w:t></w:r></w:p>".repeat(30)), OutcomeReason::TooLarge, "limits.pages"),
        ("a sheet of holes",   xlsx(&[("S", "", &cells)], ""),                          OutcomeReason::TooLarge, "1000000 cells"),
        ("repeated cells",     odf("spreadsheet", &repeated, ""),                       OutcomeReason::TooLarge, "1000000 cells"),
        ("a page of divs",     "<div>".repeat(100_000).into(),                          OutcomeReason::TooLarge, "512 levels"),
        ("tables in tables",   "<table><tr><td>".repeat(100).into(),                    OutcomeReason::TooLarge, "64 levels"),
        ("groups in groups",   [b"{\\rtf1".to_vec(), b"{".repeat(100_000)].concat(),    OutcomeReason::TooLarge, "1000 levels"),
        ("no main part",       open_xml("word/document.xml", &[]),                      OutcomeReason::Corrupt, "main part"),
        ("its own main part",  open_xml("_rels/.rels", &[]),                            OutcomeReason::UnsupportedType, "neither document"),
        ("a binary workbook",  open_xml("xl/workbook.bin", &[]),                        OutcomeReason::UnsupportedType, "XLSB"),
        ("half a package",     docx(&para("x")).split_at(300).0.to_vec(),               OutcomeReason::Corrupt, "cut off"),
        ("a path out of it",   open_xml("../../../../etc/passwd", &[]),                 OutcomeReason::Corrupt, "main part"),
    ];
    for (name, file, reason, words) in table {
        let error = read(&file).unwrap_err();
        assert_eq!(error.reason, reason, "{name}: {error}");
        assert!(error.detail.contains(words), "{name}: {error}");
    }
}

#[test]
fn a_package_expands_to_no_more_than_all_its_parts_may() {
    let body = para(&"x".repeat(600_000));
    let header = format!("<w:hdr xmlns:w='w'>{body}</w:hdr>");
    let links = relations(&[("h", "header", "h.xml")]);
    let reference = "<w:sectPr><w:headerReference r:id='h'/></w:sectPr>";
    let file = docx_with(
        &[body.as_str(), reference].concat(),
        &[("word/_rels/document.xml.rels", links), ("word/h.xml", header)],
    );
    let small =
        LimitsConfig { decompressed_bytes: ByteSize::from_mib(1), ..LimitsConfig::default() };
    let error = lay_out_document(&file, OfficeFormat::Docx, &small).unwrap_err();
    assert!(error.detail.contains("limits.decompressed_bytes"), "{error}");
    assert!(lay_out_document(&file, OfficeFormat::Docx, &LimitsConfig::default()).is_ok());
}

#[test]
#[rustfmt::skip]
fn the_same_bytes_give_the_same_positions_and_no_word_leaves_its_page() {
    let row =
        |text: &str| format!("<w:tr>{}</w:tr>", format!("<w:tc>{}</w:tc>", para(text)).repeat(9));
    let body = format!("<w:tbl>{}</w:tbl>", row("a very long word: Donaudampfschifffahrtsgesellschaft").repeat(60));
    let file = docx(&body);
    let pages = lay_out_document(&file, OfficeFormat::Docx, &limits()).unwrap();
    assert_eq!(pages, lay_out_document(&file, OfficeFormat::Docx, &limits()).unwrap());
    assert!(pages.len() > 1);
    for page in &pages {
        let LaidPage::Text(page) = page else { panic!("text") };
        for word in page.lines.iter().flat_map(|line| &line.words) {
            let area = word.bounding_box;
            assert!(area.right() <= page.width && area.bottom() <= page.height, "{word:?}");
        }
        for line in &page.lines {
            let mut words = line.words.windows(2);
            assert!(words.all(|pair| pair[0].bounding_box.right() <= pair[1].bounding_box.x), "{line:?}");
        }
    }
}
