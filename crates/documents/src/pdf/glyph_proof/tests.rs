//! Pages whose letters are drawn as something else than their text says, in each kind of font.
#![expect(clippy::cast_possible_truncation, reason = "coordinates of a font, and its few glyphs")]

mod compact_font;

use std::collections::BTreeMap;
use std::sync::Arc;

use hayro::hayro_interpret::font::StandardFont;
use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, TransformExt as _, interpret_page,
};
use hayro::kurbo::flatten;

use super::*;
use crate::page::PageContent;
use crate::pdf::contested_digits::tests::maps_of;
use crate::pdf::glyphless_font::{glyphless_font, lay_out};
use crate::{DocumentFormat, open_document};
use docmill_core::config::LimitsConfig;
use docmill_core::model::{TextLine, TextWord};

/// Letters that the fonts made here have.
const LETTERS: &str = "0123456789.,EINRTUVabcdefghilmnorstuvx";
const WINDOWS: &str = "/Encoding/WinAnsiEncoding";

fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<<{entries}/Length {}>>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

/// A page that runs `content`; `objects` begin with the font, number 3.
fn page_with(content: &str, objects: &[Vec<u8>]) -> Vec<u8> {
    page_of(content, objects, ["", ""])
}

/// The same with these entries of its resources and of the catalogue.
fn page_of(content: &str, objects: &[Vec<u8>], [resources, catalogue]: [&str; 2]) -> Vec<u8> {
    let first = objects.len() + 3;
    let mut all = vec![
        format!("<</Type/Catalog/Pages 2 0 R{catalogue}>>").into_bytes(),
        format!("<</Type/Pages/Kids[{first} 0 R]/Count 1>>").into_bytes(),
    ];
    all.extend_from_slice(objects);
    let font = if resources.contains("/Font<<") { "" } else { "/Font<</F1 3 0 R>>" };
    all.push(
        format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {} 0 R\
             /Resources<<{font}{resources}>>>>",
            first + 1
        )
        .into_bytes(),
    );
    all.push(stream("", content.as_bytes()));
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut places = String::new();
    for (at, object) in all.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.extend(format!("{} 0 obj\n", at + 1).bytes());
        file.extend_from_slice(object);
        file.extend(b"\nendobj\n");
    }
    let (start, size) = (file.len(), all.len() + 1);
    let end = format!(
        "xref\n0 {size}\n0000000000 65535 f \n{places}\
         trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    );
    file.extend(end.bytes());
    file
}

/// A map of codes, in hexadecimal digits, to texts.
fn to_unicode(said: &[(String, &str)]) -> Vec<u8> {
    let width = said.first().map_or(2, |(code, _)| code.len());
    let rows: String = said
        .iter()
        .map(|(code, text)| {
            let units: String = text.encode_utf16().map(|unit| format!("{unit:04x}")).collect();
            format!("<{code}> <{units}>\n")
        })
        .collect();
    let (low, high) = ("0".repeat(width), "f".repeat(width));
    let map = format!(
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def \
         /CMapType 2 def\n1 begincodespacerange <{low}> <{high}> endcodespacerange\n\
         {} beginbfchar\n{rows}endbfchar\nendcmap CMapName currentdict /CMap defineresource pop \
         end end",
        said.len()
    );
    stream("", map.as_bytes())
}

/// One-byte codes as Windows has them, but for some.
fn said<'a>(lies: &[(&'a str, &'a str)]) -> Vec<(String, &'a str)> {
    let letters = LETTERS.split("").filter(|letter| !letter.is_empty());
    let true_or_lie = |letter: &'static str| {
        let lie = lies.iter().find(|(drawn, _)| *drawn == letter).map(|(_, lie)| *lie);
        (format!("{:02x}", letter.as_bytes()[0]), lie.unwrap_or(letter))
    };
    letters.map(true_or_lie).chain([("20".to_owned(), " ")]).collect()
}

/// Outlines of the letters of Helvetica, as straight pieces.
fn outlines() -> BTreeMap<char, Vec<Vec<(i16, i16)>>> {
    struct Taker(BTreeMap<char, Vec<Vec<(i16, i16)>>>);
    impl<'a> Device<'a> for Taker {
        fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
            for glyph in run.glyphs() {
                let Glyph::Outline(outline) = &**glyph else { continue };
                let mut contours: Vec<Vec<(i16, i16)>> = Vec::new();
                flatten(outline.outline().iter(), 4.0, |element| match element {
                    PathEl::MoveTo(to) => contours.push(vec![(to.x as i16, to.y as i16)]),
                    PathEl::LineTo(to) => {
                        contours.last_mut().unwrap().push((to.x as i16, to.y as i16));
                    }
                    _ => {}
                });
                self.0.insert(char::from_u32(glyph.char_code()).unwrap(), contours);
            }
        }
        fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
        fn push_clip_path(&mut self, _: &ClipPath) {}
        fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
        fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
        fn pop_clip(&mut self) {}
        fn pop_transparency_group(&mut self) {}
    }
    let content = format!("BT /F1 10 Tf 60 700 Td ({LETTERS}) Tj ET");
    let font = format!("<</Type/Font/Subtype/Type1/BaseFont/Helvetica{WINDOWS}>>");
    let pdf = Pdf::new(Arc::new(page_with(&content, &[font.into_bytes()]))).unwrap();
    let (page, cache) = (&pdf.pages()[0], InterpreterCache::new());
    let (upright, settings) =
        (page.initial_transform(true).to_kurbo(), InterpreterSettings::default());
    let area = Rect::new(0.0, 0.0, 595.0, 842.0);
    let mut taker = Taker(BTreeMap::new());
    interpret_page(
        page,
        &mut Context::new(upright, area, &cache, page.xref(), settings),
        &mut taker,
    );
    taker.0
}

/// One of the standard fonts as it is, with a map of its own.
fn standard(lies: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let font = format!("<</Type/Font/Subtype/Type1/BaseFont/Helvetica{WINDOWS}/ToUnicode 4 0 R>>");
    vec![font.into_bytes(), to_unicode(&said(lies))]
}

/// The same with its program in the file.
fn embedded(encoding: &str, lies: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let (program, _) = StandardFont::Helvetica.get_font_data();
    let widths = "556 ".repeat(224);
    let font = format!(
        "<</Type/Font/Subtype/Type1/BaseFont/ABCDEF+Own{encoding}/ToUnicode 4 0 R/FirstChar 32\
         /LastChar 255/Widths[{widths}]/FontDescriptor<</Type/FontDescriptor/FontName/ABCDEF+Own\
         /Flags 32/FontFile 5 0 R>>>>"
    );
    // Not to the letter the one that stands in for fonts without a program.
    let program = [(*program).as_ref(), b"\n"].concat();
    vec![font.into_bytes(), to_unicode(&said(lies)), stream("", &program)]
}

/// The operators that make the path of a letter.
fn operators_of(contours: &[Vec<(i16, i16)>]) -> String {
    let mut path = String::new();
    for contour in contours {
        for (at, (x, y)) in contour.iter().enumerate() {
            path.push_str(&format!("{x} {y} {} ", if at == 0 { "m" } else { "l" }));
        }
    }
    path
}

/// A Type 3 font that draws `letter` with very many pieces of no size besides.
fn many_pieces(letter: char, lies: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let drawn = operators_of(&outlines()[&letter]);
    let pieces = "0 0 m 1 0 l 0 0 l ".repeat(200);
    type_3(lies, |path| filled(&format!("{path} {}", if path == drawn { &pieces } else { "" })))
}

/// A Type 3 font whose procedures are made from the operators that draw each letter.
fn type_3(lies: &[(&str, &str)], procedure: impl Fn(&str) -> String) -> Vec<Vec<u8>> {
    let mut drawings = Vec::new();
    let (mut names, mut differences) = (String::new(), String::new());
    for (letter, contours) in outlines() {
        let path = operators_of(&contours);
        names.push_str(&format!("/c{} {} 0 R", u32::from(letter), 5 + drawings.len()));
        differences.push_str(&format!("{0}/c{0} ", u32::from(letter)));
        drawings.push(stream("", procedure(&path).as_bytes()));
    }
    let widths = "556 ".repeat(224);
    let font = format!(
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 1000 1000]/FontMatrix[.001 0 0 .001 0 0]\
         /CharProcs<<{names}>>/Encoding<</Differences[{differences}]>>/FirstChar 32/LastChar 255\
         /Widths[{widths}]/ToUnicode 4 0 R>>"
    );
    [vec![font.into_bytes(), to_unicode(&said(lies))], drawings].concat()
}

fn filled(path: &str) -> String {
    format!("556 0 0 -300 1000 1000 d1 {path} f")
}

/// A composite font without any map of its own around a TrueType program; codes as Windows has
/// them, of two bytes.
fn composite(program: &[u8], order: &str, lies: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let wide: Vec<(String, &str)> =
        said(lies).into_iter().map(|(code, text)| (format!("00{code}"), text)).collect();
    let mut glyphs = vec![0_u8; 512];
    for (glyph, code) in (1..).zip(order.bytes()) {
        glyphs[usize::from(code) * 2 + 1] = glyph;
    }
    let font = "<</Type/Font/Subtype/Type0/BaseFont/ABCDEF+Own/Encoding/Identity-H/ToUnicode 4 0 R\
         /DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/ABCDEF+Own\
         /CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 556\
         /CIDToGIDMap 6 0 R/FontDescriptor<</Type/FontDescriptor/FontName/ABCDEF+Own/Flags 4\
         /FontFile2 5 0 R>>>>]>>";
    vec![font.as_bytes().to_vec(), to_unicode(&wide), stream("", program), stream("", &glyphs)]
}

/// A TrueType program without map or names, whose glyphs from 1 are these letters.
fn true_type(order: &str) -> Vec<u8> {
    lay_out(&tables_of(order))
}

/// A simple font of two letters, whose codes its maps lead to these glyphs.
fn mapped(order: &str, maps: &[(u16, u16, u16)], glyphs: &[u16]) -> Vec<Vec<u8>> {
    let code = u16::from(order.as_bytes()[0]);
    let mut tables = tables_of(order);
    tables.insert(0, (b"cmap", maps_of(maps, code, glyphs)));
    simple_font(&tables)
}

/// A simple font of these tables.
fn simple_font(tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<Vec<u8>> {
    let font = "<</Type/Font/Subtype/TrueType/BaseFont/ABCDEF+Own/FirstChar 32/LastChar 57/ToUnicode 4 0 R\
                /FontDescriptor<</Type/FontDescriptor/FontName/ABCDEF+Own/Flags 4/FontFile2 5 0 R>>>>";
    vec![font.as_bytes().to_vec(), to_unicode(&said(&[])), stream("", &lay_out(tables))]
}

/// The tables of such a program.
fn tables_of(order: &str) -> Vec<(&'static [u8; 4], Vec<u8>)> {
    fn words(values: &[i16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_be_bytes()).collect()
    }
    let known = outlines();
    let (mut glyf, mut loca) = (Vec::new(), words(&[0, 0]));
    for letter in order.chars() {
        let contours = &known[&letter];
        let points: Vec<(i16, i16)> = contours.concat();
        let bounds = |all: Vec<i16>| [*all.iter().min().unwrap(), *all.iter().max().unwrap()];
        let [left, right] = bounds(points.iter().map(|point| point.0).collect());
        let [low, high] = bounds(points.iter().map(|point| point.1).collect());
        glyf.extend(words(&[contours.len() as i16, left, low, right, high]));
        let mut last = -1;
        for contour in contours {
            last += contour.len() as i16;
            glyf.extend(words(&[last]));
        }
        glyf.extend(words(&[0]));
        glyf.extend(vec![1_u8; points.len()]);
        for coordinate in [|point: &(i16, i16)| point.0, |point: &(i16, i16)| point.1] {
            let mut before = 0;
            for point in &points {
                glyf.extend(words(&[coordinate(point) - before]));
                before = coordinate(point);
            }
        }
        glyf.resize(glyf.len().next_multiple_of(4), 0);
        loca.extend(words(&[(glyf.len() / 2) as i16]));
    }
    let count = order.len() as i16 + 1;
    let mut head = words(&[1, 0, 1, 0, 0, 0, 0x5f0f, 0x3cf5, 3, 1000]);
    head.extend([0; 16]);
    head.extend(words(&[0, -300, 1000, 1000, 0, 8, 2, 0, 0]));
    let mut hhea = words(&[1, 0, 1000, -300, 0, 556, 0, 0, 0, 1, 0, 0]);
    hhea.extend([0; 10]);
    hhea.extend(words(&[count]));
    let mut maxp = words(&[1, 0, count, 4000, 90, 0, 0, 1]);
    maxp.extend([0; 16]);
    let mut post = words(&[3, 0, 0, 0, 0, 0, 0, 0]);
    post.extend([0; 16]);
    let hmtx = words(&[556, 0]).repeat(count as usize);
    vec![
        (b"glyf", glyf),
        (b"head", head),
        (b"hhea", hhea),
        (b"hmtx", hmtx),
        (b"loca", loca),
        (b"maxp", maxp),
        (b"post", post),
    ]
}

fn shown(text: &str) -> String {
    format!("BT /F1 12 Tf 60 700 Td ({text}) Tj ET")
}

fn shown_wide(text: &str) -> String {
    let codes: String = text.bytes().map(|code| format!("00{code:02x}")).collect();
    format!("BT /F1 12 Tf 60 700 Td <{codes}> Tj ET")
}

/// The words of a page, marked where their drawing does not show them.
fn read(content: &str, objects: &[Vec<u8>]) -> String {
    read_file(page_with(content, objects))
}

fn read_file(bytes: Vec<u8>) -> String {
    let document = open_document(bytes.into(), &LimitsConfig::default(), 150).unwrap();
    assert_eq!(document.format(), DocumentFormat::Pdf);
    let lines: Vec<TextLine> = match document.page_content(0).unwrap() {
        PageContent::Text { lines, .. } => lines,
        PageContent::Doubtful { layer, .. } => layer.lines,
        PageContent::Image(_) => return "(a picture)".to_owned(),
        other => panic!("{other:?}"),
    };
    let words = lines.iter().flat_map(|line| &line.words);
    let marked =
        |word: &TextWord| format!("{}{}", word.text, if word.unwitnessed { "*" } else { "" });
    words.map(marked).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_text_is_proven_only_where_its_letters_are_drawn_in_any_kind_of_font() {
    let nine = [("1", "9")];
    let exchanged = [("h", "g"), ("v", "b")];
    let order = LETTERS.replace('9', "");
    let (own, nines) = (true_type(LETTERS), true_type(&LETTERS.replace('9', "1")));
    let differences = "/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[49/nine]>>";
    let text = "RTU harbour 1,100.02 vx";
    #[rustfmt::skip]
    let table = [
        ("a standard font",              shown(text), standard(&[]),                        text),
        ("called another digit",         shown(text), standard(&nine),                      "RTU harbour 9,900.02* vx"),
        ("called other letters",         shown(text), standard(&exchanged),                 "RTU garbour* 1,100.02 bx*"),
        ("a point called a comma",       shown(text), standard(&[(".", ",")]),              "RTU harbour 1,100,02* vx"),
        ("one glyph a sentence",         shown(text), standard(&[(".", ".PAY TO ME")]),     "RTU harbour 1,100\u{fffd}02* vx"),
        ("one glyph two digits",         shown(text), standard(&[("2", "29")]),             "RTU harbour 1,100.029* vx"),
        ("a digit called a blank",       shown(text), standard(&[("2", " ")]),              "RTU harbour 1,100.0\u{fffd}* vx"),
        ("a digit called a dash",        shown(text), standard(&[("2", "\u{2500}")]),       "RTU harbour 1,100.0\u{2500}* vx"),
        ("a digit of another script",    shown(text), standard(&[("2", "\u{669}")]),        "RTU harbour 1,100.0\u{669}* vx"),
        ("a digit without a meaning",    shown(text), standard(&[("2", "\u{e032}")]),       "RTU harbour 1,100.0\u{e032}* vx"),
        ("full-width digits",            shown(text), standard(&[("2", "\u{ff12}")]),       "RTU harbour 1,100.0\u{ff12} vx"),
        ("Type 1",                       shown(text), embedded(WINDOWS, &[]),               text),
        ("Type 1 that lies",             shown(text), embedded(WINDOWS, &nine),             "RTU harbour 9,900.02* vx"),
        ("Type 1 drawn by its name",     shown(text), embedded(differences, &nine),         "RTU harbour 9,900.02 vx"),
        ("Type 1 named another digit",   shown(text), embedded(differences, &[]),           "RTU harbour 1,100.02* vx"),
        ("Type 3",                       shown(text), type_3(&[], filled),                  text),
        ("Type 3 that lies",             shown(text), type_3(&nine, filled),                "RTU harbour 9,900.02* vx"),
        ("Type 3 called a blank",        shown(text), many_pieces('2', &[("2", " ")]),      "RTU harbour 1,100.0\u{fffd}* vx"),
        ("Type 3 of strokes",            shown("11"), type_3(&[], |path| format!("556 0 d0 40 w {path} S")), "11*"),
        ("Type 3 that draws nothing",    shown(text), type_3(&[], |_| "556 0 d0".to_owned()), ""),
        ("Type 3 of specks",             shown(text), type_3(&[], |_| filled("0 0 m 9 0 l 9 9 l")), ""),
        ("Type 3 in white",              shown(text), type_3(&[], |path| format!("556 0 d0 1 g {path} f")), ""),
        ("Type 3 drawn elsewhere",       shown("12"), type_3(&[], |path| format!("556 0 d0 1 0 0 1 0 9000 cm {path} f")), ""),
        ("composite",                    shown_wide("RTU 1,100.02"), composite(&own, LETTERS, &[]),   "RTU 1,100.02"),
        ("composite that lies",          shown_wide("RTU 1,100.02"), composite(&own, LETTERS, &nine), "RTU 9,900.02*"),
        ("a program that lies",          shown_wide("RTU 9,900.02"), composite(&nines, LETTERS, &[]), "RTU 9,900.02*"),
        ("a program without letters",    shown_wide("RTU 1,100.02"), composite(&glyphless_font(), LETTERS, &[]), ""),
        ("a missing glyph",              shown_wide("RTU 900"), composite(&true_type(&order), &order, &[]), "RTU 00"),
        ("mirrored",                     "BT /F1 12 Tf 1 0 0 -1 60 700 Tm (RTU 25) Tj ET".to_owned(), standard(&[]), "RTU* 25*"),
        ("invisible mode",               format!("3 Tr {}", shown("99")), standard(&[]),    ""),
        ("without size",                 "BT /F1 0 Tf 60 700 Td (99) Tj ET".to_owned(), standard(&[]), ""),
        ("squeezed to nothing",          "BT /F1 12 Tf 0 Tz 60 700 Td (99) Tj ET".to_owned(), standard(&[]), ""),
    ];
    for (name, content, objects, expected) in table {
        assert_eq!(read(&content, &objects), expected, "{name}");
    }
}

/// The shown words of a page where `{}` of `content` draws a number in doubt.
fn read_number(content: &str, resources: &str, layers: &str) -> String {
    let number = "BT /F1 12 Tf 60 650 Td (9,900) Tj ET";
    let content = format!("{} {}", shown("RTU"), content.replace("{}", number));
    // 4 is a layer, 5 another one, which its usage hides. 6 is a form on neither, 7 a layer for design,
    // 8 one that is missing in the list of all, 9 a form without a box, 10 one that leaves a layer open.
    let layer = b"<</Type/OCG/Name(a)>>".to_vec();
    let hidden = b"<</Type/OCG/Name(b)/Usage<</View<</ViewState/OFF>>>>>>".to_vec();
    let font = standard(&[]).swap_remove(0);
    let font = String::from_utf8(font).unwrap().replace("/ToUnicode 4 0 R", "");
    let form = stream(
        "/Subtype/Form/BBox[0 0 595 842]/OC<</Type/OCMD/VE[/Not 4 0 R]>>",
        b"1 g 0 600 400 80 re f",
    );
    let layers = format!("/OCProperties<</OCGs[4 0 R 5 0 R 7 0 R]{layers}>>");
    let design = b"<</Type/OCG/Name(c)/Intent/Design>>".to_vec();
    let boundless = stream("/Subtype/Form", b"1 g 0 600 400 80 re f");
    let open = stream("/Subtype/Form/BBox[0 0 9 9]/Resources<<>>", b"/OC/M BDC");
    let objects = [font.into_bytes(), layer.clone(), hidden, form, design, layer, boundless, open];
    read_file(page_of(&content, &objects, [resources, &layers]))
}

#[test]
fn a_number_that_viewers_do_not_show_is_not_read() {
    let (seen, unseen) = ("RTU 9,900", "RTU");
    let marked = "/OC/M BDC {} EMC";
    #[rustfmt::skip]
    let table = [
        ("plainly",                 "{}",     "", "", seen),
        ("multiplied with paper",   "/G gs {}", "/ExtGState<</G<</BM/Multiply>>>>", "", seen),
        ("lightened by paper",      "/G gs {}", "/ExtGState<</G<</BM/Lighten>>>>", "", unseen),
        ("on a screen of paper",    "/G gs {}", "/ExtGState<</G<</BM/Screen>>>>", "", unseen),
        ("as the paper's hue",      "/G gs {}", "/ExtGState<</G<</BM/Hue>>>>", "", unseen),
        ("outlined in white",       "q 2 Tr 8 w 1 G {} Q", "", "", unseen),
        ("below a white letter",    "{} 1 g BT /F1 500 Tf 10 300 Td (I) Tj ET", "", "", "RTU*"),
        ("a layer",                 marked, "/Properties<</M 4 0 R>>", "", seen),
        ("a layer that is off",     marked, "/Properties<</M 4 0 R>>", "/D<</OFF[4 0 R]>>", unseen),
        ("a layer off on screen",   marked, "/Properties<</M 5 0 R>>", "", unseen),
        ("all layers off",          marked, "/Properties<</M<</Type/OCMD/OCGs[4 0 R]/P/AllOff>>>>", "", unseen),
        ("any layer off",           marked, "/Properties<</M<</Type/OCMD/OCGs[4 0 R 5 0 R]/P/AnyOff>>>>", "", "RTU*"),
        ("a digit on it by a layer", "{} /OC/M BDC BT /F1 12 Tf 53 650 Td (1) Tj ET EMC", "/Properties<</M 4 0 R>>", "/D<</OFF[4 0 R]>>", seen),
        ("by a layer off on screen", "{} /OC/M BDC BT /F1 12 Tf 53 650 Td (1) Tj ET EMC", "/Properties<</M 5 0 R>>", "", "RTU 9,900*"),
        ("drawn by such a layer",   "{} /OC/M BDC 53 650 5 8 re f EMC", "/Properties<</M 5 0 R>>", "", "RTU 9,900*"),
        ("beside a form of layers", "{} q 1 0 0 1 0 -500 cm /X Do Q", "/XObject<</X 6 0 R>>", "", "RTU* 9,900*"),
        ("beside endless drawings", "{}", &format!("/XObject<<{}>>", (0..2001).map(|n| format!("/X{n} 4 0 R")).collect::<String>()), "", "RTU* 9,900*"),
        ("in colours of its own",   "{}", "/ColorSpace<</DefaultGray[/Separation/A/DeviceGray<</FunctionType 2/Domain[0 1]/C0[1]/C1[1]/N 1>>]>>", "", "RTU* 9,900*"),
        ("in a colour of no ink",   "{}", "/ColorSpace<</S[/Separation/None/DeviceGray<</FunctionType 2/Domain[0 1]/C0[1]/C1[0]/N 1>>]>>", "", "RTU* 9,900*"),
        ("in a named ink",          "{}", "/ColorSpace<</S[/Separation/Gold/DeviceGray<</FunctionType 2/Domain[0 1]/C0[1]/C1[0]/N 1>>]>>", "", seen),
        ("by a transfer function",  "{}", "/ExtGState<</G<</TR<</FunctionType 2/Domain[0 1]/C0[1]/C1[1]/N 1>>>>>>", "", "RTU* 9,900*"),
        ("by the usual function",   "{}", "/ExtGState<</G<</TR/Identity/TR2/Default>>>>", "", seen),
        ("an unused layer off but meant for design", "{}", "/Properties<</M 7 0 R>>", "/D<</OFF[7 0 R]>>", "RTU* 9,900*"),
        ("a layer changed on opening", "{}", "/Properties<</M 4 0 R>>", ">>/OpenAction<</S/SetOCGState/State[/OFF 4 0 R]>>/A<<", "RTU* 9,900*"),
        ("opened at a page",        "{}", "/Properties<</M 4 0 R>>", ">>/OpenAction<</S/GoTo>>/A<<", seen),
        ("in colours of a device",  "{}", "/ColorSpace<</DefaultGray[/CalGray<</WhitePoint[.95 1 1.09]/Gamma 2.2>>]>>", "", seen),
        ("by such a layer, tagged otherwise", "{} /Span/M BDC 1 g 0 600 400 80 re f EMC", "/Properties<</M 4 0 R>>", "/D<</OFF[4 0 R]>>", "RTU* 9,900*"),
        ("behind a tag of a layer that is on", "/Span/M BDC {} EMC", "/Properties<</M 4 0 R>>", "", seen),
        ("by an expression, not by a list", "{}", "/Properties<</M<</Type/OCMD/OCGs 4 0 R/VE[/Not 4 0 R]>>>>", "/D<</OFF[4 0 R]>>", "RTU* 9,900*"),
        ("a layer off that is not listed", "{}", "/Properties<</M 8 0 R>>", "/D<</OFF[8 0 R]>>", "RTU* 9,900*"),
        ("beside a form that opens a layer", "{}", "/Properties<</M 4 0 R>>/XObject<</X 10 0 R>>", "/D<</OFF[4 0 R]>>", "RTU* 9,900*"),
        ("beside a form without a box", "{}", "/XObject<</X 9 0 R>>", "", "RTU* 9,900*"),
        ("one layer of a group",    marked, "/Properties<</M<</Type/OCMD/OCGs 4 0 R>>>>", "", seen),
        ("not a layer",             marked, "/Properties<</M<</Type/OCMD/VE[/Not 4 0 R]>>>>", "", unseen),
        ("a layer or another",      marked, "/Properties<</M<</Type/OCMD/VE[/Or 5 0 R[/Not 5 0 R]]>>>>", "", seen),
        ("a layer and another",     marked, "/Properties<</M<</Type/OCMD/VE[/And 4 0 R 5 0 R]>>>>", "", unseen),
        ("a cover of a layer off",  "{} /OC/M BDC 1 g 0 600 400 80 re f EMC", "/Properties<</M 4 0 R>>", "/D<</OFF[4 0 R]>>", seen),
        ("of one off on screen",    "{} /OC/M BDC 1 g 0 600 400 80 re f EMC", "/Properties<</M 5 0 R>>", "", "RTU 9,900*"),
        ("a mark of a tiny font",   "{} BT /F1 1.9 Tf 92 650 Td (b) Tj ET", "", "", "RTU 9,900*"),
        ("a mark in a pale hue",    "{} .93 g BT /F1 12 Tf 53 650 Td (1) Tj ET", "", "", "RTU 9,900*"),
        ("a white mark",            "{} 1 g BT /F1 12 Tf 53 650 Td (1) Tj ET", "", "", seen),
        ("a digit nearly on it",    "{} BT /F1 12 Tf 62 650 Td (9) Tj ET", "", "", "RTU 9,900*"),
        ("a bold digit",            "{} BT /F1 12 Tf 60.4 650 Td (9) Tj ET", "", "", seen),
        ("in thin outlines",        "1 Tr .4 w {}", "", "", seen),
        ("in thick outlines",       "1 Tr 3 w {}", "", "", "RTU 9,900*"),
        ("in dashes",               "1 Tr .4 w [3 9] 0 d {}", "", "", "RTU 9,900*"),
        ("another number on it",    "{} BT /F1 12 Tf 60 650 Td (1,100) Tj ET", "", "", "RTU 9,900* 1* 1*"),
        ("a digit drawn before it", "{} 53 650 5 8 re f", "", "", "RTU 9,900*"),
        ("a minus drawn before it", "{} 2 w 54 654 m 59 654 l S", "", "", "RTU -9,900*"),
        ("a rule below it",         "{} 50 646 60 0.5 re f", "", "", seen),
    ];
    for (name, content, resources, layers, expected) in table {
        assert_eq!(read_number(content, resources, layers), expected, "{name}");
    }
}

#[test]
fn a_page_beyond_the_stated_number_of_pages_is_marked() {
    let mut unshown = page_with(&shown("9,900"), &standard(&[]));
    let count = unshown.windows(8).position(|it| it == b"/Count 1").unwrap();
    unshown[count + 7] = b'0';
    assert_eq!(read_file(unshown), "9,900*");
}

#[test]
fn a_page_with_a_font_that_programs_draw_by_different_programs_is_marked() {
    let (seen, marked) = ("RTU 9,900", "RTU* 9,900*");
    #[rustfmt::skip]
    let table = [
        ("a font of symbols", "<</Type/Font/Subtype/TrueType/BaseFont/Wingdings>>", marked),
        ("a bullet of symbols", "<</Type/Font/Subtype/TrueType/BaseFont/Wingdings/FirstChar 167/LastChar 167>>", seen),
        ("a program of another kind", "<</Subtype/TrueType/FontDescriptor<</FontFile3 6 0 R>>>>", marked),
        ("two programs of one font", "<</Subtype/Type1/FontDescriptor<</FontFile 6 0 R/FontFile3 6 0 R>>>>", marked),
        ("a program that is none", "<</Subtype/TrueType/FontDescriptor<</FontFile2 6 0 R>>>>", marked),
        ("a font of no known kind", "<</Subtype/Other>>", marked),
        ("a composite font drawn by its map", "<</Subtype/Type0/ToUnicode 6 0 R/DescendantFonts[<</Subtype/CIDFontType2>>]>>", marked),
        ("a composite font of the machine", "<</Subtype/Type0/DescendantFonts[<</Subtype/CIDFontType2>>]>>", seen),
    ];
    for (name, font, expected) in table {
        let fonts = format!("/Font<</F1 3 0 R/F2{font}>>");
        assert_eq!(read_number("{}", &fonts, ""), expected, "{name}");
    }
}

#[test]
fn a_glyph_that_draws_over_others_leaves_them_unproven() {
    #[rustfmt::skip]
    let table = [
        ("where it stands",        "1 g 0 0 500 700 re f",      false),
        ("far away from it",       "1 g 5000 0 500 700 re f",   false),
        ("back over the number",   "1 g -8000 0 4000 700 re f", true),
        ("a picture over it",      "4000 0 0 700 -8000 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \u{7f} EI", true),
    ];
    let letter = operators_of(&outlines()[&'i']);
    for (name, procedure, is_marked) in table {
        let drawn = |path: &str| match path == letter {
            true => format!("556 0 d0 {procedure}"),
            false => filled(path),
        };
        let content = "BT /F1 12 Tf 60 700 Td (RTU 9,900) Tj 1 0 0 1 190 700 Tm (i) Tj ET";
        let read = read(content, &type_3(&[("i", " ")], drawn));
        assert_eq!(read.contains("9,900*"), is_marked, "{name}: {read}");
    }
}

#[test]
fn a_digit_that_the_maps_of_its_font_name_differently_is_marked_for_good() {
    let (symbols, western, old) = ((3, 0, 4), (3, 1, 12), (1, 0, 6));
    #[rustfmt::skip]
    let table = [
        ("one map",               vec![symbols],               vec![1],       (false, 1.0)),
        ("maps that agree",       vec![symbols, western, old], vec![1, 1, 1], (false, 1.0)),
        ("another glyph, drawn",  vec![symbols, old],          vec![2, 1],    (true, 1.0)),
        ("another glyph, not drawn", vec![symbols, old],       vec![1, 2],    (true, TextWord::CONTRADICTED)),
        ("another by its code",   vec![western, old],          vec![1, 2],    (true, TextWord::CONTRADICTED)),
    ];
    for (name, maps, glyphs, expected) in table {
        assert_eq!(marks_of_nine(&mapped("91", &maps, &glyphs)), expected, "{name}");
    }
}

#[test]
fn a_digit_of_a_composite_font_is_chosen_by_no_map_where_no_simple_font_may_draw_it() {
    let mut tables = tables_of("91");
    tables.insert(0, (b"cmap", maps_of(&[(3, 1, 4)], u16::from(b'1'), &[2])));
    let program = lay_out(&tables);
    let mut objects = composite(&program, "1", &[("1", "9")]);
    let page = |objects: &[Vec<u8>], resources| page_of(&shown_wide("1"), objects, [resources, ""]);
    assert_eq!(marks_of_last(page(&objects, "")), (false, 1.0));
    objects.push(simple_font(&tables).swap_remove(0));
    let beside = "/Font<</F1 3 0 R/F2 7 0 R>>";
    assert_eq!(marks_of_last(page(&objects, beside)), (true, TextWord::CONTRADICTED));
    objects.push(stream("/Type/XObject/Subtype/Form/BBox[0 0 1 1]", b""));
    let form = "/Font<</F1 3 0 R>>/XObject<</X 8 0 R>>";
    assert_eq!(marks_of_last(page(&objects, form)), (true, TextWord::CONTRADICTED));
}

/// Whether a nine of a font is marked, and its confidence.
fn marks_of_nine(font: &[Vec<u8>]) -> (bool, f32) {
    marks_of_last(page_with(&shown("9"), font))
}

/// Whether the last word of a page is marked, and its confidence.
fn marks_of_last(page: Vec<u8>) -> (bool, f32) {
    let document = open_document(page.into(), &LimitsConfig::default(), 150).unwrap();
    let PageContent::Text { lines, .. } = document.page_content(0).unwrap() else {
        panic!("no text")
    };
    let word = lines.iter().flat_map(|line| &line.words).last().unwrap();
    (word.unwitnessed, word.confidence)
}

#[test]
fn a_digit_of_another_name_or_a_damaged_program_is_marked_for_good() {
    // Two of the names of the Macintosh, or one of its own.
    let named = |names: [u16; 3], own: &[u8]| {
        let words: Vec<u8> = names.iter().flat_map(|name| name.to_be_bytes()).collect();
        [&[0, 2, 0, 0][..], &[0; 28], &[0, 3], &words, own].concat()
    };
    let version = |version: [u8; 4]| [&version[..], &[0; 28]].concat();
    #[rustfmt::skip]
    let table = [
        ("named as drawn",       b"post", named([0, 28, 20], b""),            (false, 1.0)),
        ("named as another",     b"post", named([0, 20, 28], b""),            (true, TextWord::CONTRADICTED)),
        ("named anew",           b"post", named([0, 20, 258], b"\x04nine"),   (true, TextWord::CONTRADICTED)),
        ("named otherwise anew", b"post", named([0, 258, 259], b"\x01a\x01b"), (false, 1.0)),
        ("without names",        b"post", version([0, 3, 0, 0]),              (false, 1.0)),
        ("without a needed one", b"hmtx", Vec::new(),                         (true, TextWord::CONTRADICTED)),
    ];
    for (name, tag, content, expected) in table {
        let mut tables = tables_of("91");
        tables.insert(0, (b"cmap", maps_of(&[(3, 0, 4)], u16::from(b'9'), &[1])));
        match content.is_empty() {
            true => tables.retain(|table| table.0 != tag),
            false => {
                tables.iter_mut().filter(|it| it.0 == tag).for_each(|it| it.1 = content.clone())
            }
        }
        assert_eq!(marks_of_nine(&simple_font(&tables)), expected, "{name}");
    }
    let mut numbered = mapped("91", &[(3, 0, 4), (1, 0, 6)], &[1, 2]);
    let font = String::from_utf8(numbered.swap_remove(0)).unwrap();
    let font = font.replace("/ToUnicode 4 0 R", "");
    numbered.insert(0, font.into_bytes());
    numbered.push(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec());
    let content = "BT /F2 12 Tf 60 700 Td (Our invoice) Tj /F1 12 Tf 90 0 Td (9) Tj ET";
    let page = page_of(content, &numbered, ["/Font<</F1 3 0 R/F2 6 0 R>>", ""]);
    assert_eq!(marks_of_last(page), (true, TextWord::CONTRADICTED), "a digit by its drawing alone");
}

#[test]
fn a_number_of_which_a_part_may_not_show_is_marked() {
    let (sound, marked) = ("RTU 9,900", "RTU 9,900*");
    let shading = "<</ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 1 0]/Extend[true true]\
                   /Function<</FunctionType 2/Domain[0 1]/C0[1]/C1[0]/N 1>>>>";
    let pattern = format!("/Pattern<</P<</PatternType 2/Shading {shading}>>>>");
    let mode = |name: &str| format!("/ExtGState<</G<</BM/{name}>>>>");
    #[rustfmt::skip]
    let table = [
        ("in a pattern",               "/Pattern cs /P scn {}",                        pattern.clone(),   marked),
        ("a pattern over a part",      "{} /Pattern cs /P scn 60 648 4 3 re f",        pattern,           marked),
        ("lightened in part",          "{} q /G gs 1 g 60 648 3 12 re f Q",            mode("Lighten"),   marked),
        ("dodged in part",             "{} q /G gs 1 g 60 648 3 12 re f Q",            mode("ColorDodge"), marked),
        ("a line through its zeros",   "{} 77 653 200 .5 re f",                        String::new(),     marked),
        ("an image cut short",         "{} BI /W 90 /H 1 /BPC 8 /CS /G ID xx EI",      String::new(),     "RTU* 9,900*"),
        ("in a mode of its own",       "/G gs {}",                                     mode("HardLight"), marked),
        ("multiplied",                 "/G gs {}",                                     mode("Multiply"),  sound),
        ("a wide stroke over a part",  "{} 1 G 12 w 60 654 m 63 654 l S",              String::new(),     marked),
        ("a pale frame around it",     "{} .8 G 1 w 50 640 80 30 re S",                String::new(),     sound),
        ("a notch in its clip",        "q 50 640 m 200 640 l 200 680 l 50 680 l 64 660 l h W n {} Q", String::new(), marked),
        ("a wide clip of any shape",   "q 40 630 m 200 630 l 210 690 l 40 690 l h W n {} Q", String::new(), sound),
        ("white on dark",              "50 640 90 30 re f 1 g {}",                     String::new(),     sound),
        ("white, dark under a part",   "63 640 90 30 re f 1 g {}",                     String::new(),     marked),
        ("white, a hole in the dark",  "50 640 90 30 re f 1 g 60 650 2 8 re f {}",     String::new(),     marked),
    ];
    for (name, content, resources, expected) in table {
        assert_eq!(read_number(content, &resources, ""), expected, "{name}");
    }
}

#[test]
fn letters_of_other_scripts_and_joined_ones_are_no_lie() {
    #[rustfmt::skip]
    let table = [
        ("Cyrillic",              "\u{430}",  "a", false),
        ("Cyrillic, as a digit",  "\u{437}",  "3", false),
        ("Cyrillic, as another",  "\u{430}",  "x", true),
        ("Cyrillic, in italics",  "\u{43f}",  "n", false),
        ("Cyrillic, a capital",   "\u{415}",  "E", false),
        ("Cyrillic, another one", "\u{415}",  "R", true),
        ("Greek",                 "\u{3bf}",  "o", false),
        ("Greek, a capital",      "\u{39d}",  "N", false),
        ("Greek, another one",    "\u{39d}",  "U", true),
        ("Polish",                "\u{142}",  "l", false),
        ("Chinese as a digit",    "\u{4f60}", "2", true),
        ("Polish as another",     "\u{142}",  "a", true),
        ("an accent that is not", "e\u{301}", "x", true),
        ("joined, and is not",    "tt",       "x", true),
        ("three digits",          "100",      "x", true),
    ];
    for (name, claimed, drawn, is_marked) in table {
        // With letters of each script that have no twin, so that it is a page in that.
        let lies = [(drawn, claimed), ("v", "\u{43b}"), ("u", "\u{3bb}")];
        let found = read(&shown(&format!("{drawn} v u 00")), &standard(&lies));
        assert_eq!(found.split(' ').next().unwrap().ends_with('*'), is_marked, "{name}: {found}");
    }
    for (name, drawn, claimed, is_marked) in [
        ("a point as a colon", ".", ":", true),
        ("a comma as a quote", ",", "'", true),
        ("a comma", ",", ",", false),
    ] {
        let found = read(&shown(&format!("0{drawn}0")), &standard(&[(drawn, claimed)]));
        assert_eq!(found.ends_with('*'), is_marked, "{name}: {found}");
    }
    let joined = "/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[49/fi]>>";
    assert_eq!(read(&shown("1b"), &embedded(joined, &[("1", "fi")])), "fib");
}

#[test]
fn a_procedure_that_draws_without_end_is_too_large() {
    let many = "0 0 9 9 re f ".repeat(usize::try_from(MAX_TYPE3_OPERATIONS).unwrap() + 1);
    let objects = type_3(&[], |_| format!("556 0 d0 {many}"));
    let bytes = page_with(&shown("1"), &objects);
    let document = open_document(bytes.into(), &LimitsConfig::default(), 150).unwrap();
    let refused = document.page_content(0).unwrap_err();
    assert_eq!(refused.reason, OutcomeReason::TooLarge);
}

#[test]
fn digits_that_stand_apart_are_no_number_whatever_widths_the_font_states() {
    for (width, expected) in [("556 ", "1900"), ("700 ", "1900"), ("3000 ", "1 900")] {
        let mut objects = embedded(WINDOWS, &[]);
        let font = String::from_utf8(objects[0].clone()).unwrap();
        // Behind the widths of the blank and 16 signs is that of 1.
        let known = "556 ".repeat(17);
        let lying = font.replacen(&format!("[{known}556 "), &format!("[{known}{width}"), 1);
        objects[0] = lying.into_bytes();
        let found = read(&shown("1900"), &objects);
        assert_eq!(found.replace('*', ""), expected, "{width}");
    }
}

/// Lines with all digits and signs of amounts.
const SOUND_LINES: [&str; 9] = [
    "Invoice 4711 of 24.03.2026, page 1 of 2",
    "Storgatan 17, 35 890 Byg, DE89 3704 0044 0532 0130 00",
    "0123456789 9876543210 1,234,567.89 1.234.567,89",
    "The quick brown fox jumps over 13 lazy dogs of 1 & 7",
    "Copy paper A4, box  3 x 19.90  59.70",
    "Discount 5 % of 59.70  -2.99  \\(2.99\\)",
    "10:30-11:45  +49 30 901820  INV-2026/0099",
    "EUR 1 000.00  $ 80.70  \\243 11.11  \\200 77.77",
    "VAT 19.0 %  10.78  0.00  Total 67.49",
];

/// A table with rules and a dark head, lines close to each other, set wide, on a tint and in a frame.
fn sound_page() -> String {
    let mut content = ".2 g 50 778 500 18 re f 1 g BT /F1 11 Tf 60 783 Td (Pos. 2026 1.00) Tj ET \
                       .9 g 50 560 500 110 re f 0 g .5 w 50 540 500 235 re S "
        .to_owned();
    for (row, line) in SOUND_LINES.iter().enumerate() {
        let [close, tinted, wide] = [760 - 11 * row, 660 - 11 * row, 520 - 18 * row];
        content.push_str(&format!(
            "BT /F1 10 Tf 60 {close} Td ({line}) Tj ET .4 w 57 {} m 57 {} l S \
             BT /F1 9 Tf .4 Tc 60 {tinted} Td [({line}) -20 ( 1.00)] TJ ET \
             BT /F1 12 Tf 95 Tz 0 0 .5 rg 60 {wide} Td ({line}) Tj ET 0 g ",
            close - 3,
            close + 10
        ));
    }
    content + "1 w 60 330 m 300 330 l S BT /F1 16 Tf 60 335 Td (Total 1,067.49) Tj ET"
}

#[test]
fn sound_pages_get_no_doubt_of_their_letters() {
    let names = ["invoice_en", "facture_fr", "factuur_nl", "factura_es", "rechnung_de"];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut pages: Vec<(String, Vec<u8>)> = names
        .map(|name| {
            (name.to_owned(), std::fs::read(folder.join(name).with_extension("pdf")).unwrap())
        })
        .into();
    for family in [
        "Helvetica -Bold -Oblique -BoldOblique",
        "Courier -Bold -Oblique -BoldOblique",
        "Times -Roman -Bold -Italic -BoldItalic",
    ] {
        let (family, faces) = family.split_once(' ').unwrap();
        let plain = Some("").filter(|_| family != "Times");
        for face in faces.split(' ').chain(plain) {
            let font = format!("<</Type/Font/Subtype/Type1/BaseFont/{family}{face}{WINDOWS}>>");
            pages.push((format!("{family}{face}"), page_with(&sound_page(), &[font.into_bytes()])));
        }
    }
    assert_eq!(pages.len(), 17);
    for (name, bytes) in pages {
        let document = open_document(bytes.into(), &LimitsConfig::default(), 150).unwrap();
        let PageContent::Text { lines, .. } = document.page_content(0).unwrap() else {
            panic!("{name}: the whole page is doubted")
        };
        let words: Vec<&TextWord> = lines.iter().flat_map(|line| &line.words).collect();
        let doubted = words.iter().filter(|word| word.unwitnessed || word.confidence < 1.0);
        let doubted: Vec<&str> = doubted.map(|word| word.text.as_str()).collect();
        assert!(words.len() > 40 && doubted.is_empty(), "{name}: {doubted:?}");
    }
}
