//! Fax pages made here, coded with the tables of T.4 for runs of up to sixteen dots.

use bytes::Bytes;

use super::*;
use crate::image::picture::{DecodedPicture, decode_tiff};
use crate::image::tiff::list_directories;
use docmill_core::config::LimitsConfig;

const WIDTH: usize = 16;
#[rustfmt::skip]
const WHITE: [&str; 17] = [
    "00110101", "000111", "0111", "1000", "1011", "1100", "1110", "1111", "10011", "10100", "00111",
    "01000", "001000", "000011", "110100", "110101", "101010",
];
#[rustfmt::skip]
const BLACK: [&str; 17] = [
    "0000110111", "010", "11", "10", "011", "0011", "0010", "00011", "000101", "000100", "0000100",
    "0000101", "0000111", "00000100", "00000111", "000011000", "0000010111",
];
/// From three dots to the left to three to the right.
const VERTICAL: [&str; 7] = ["0000010", "000010", "010", "1", "011", "000011", "0000011"];
const EOL: &str = "000000000001";

/// Something with slanted, level and lone strokes; `#` is ink.
const DRAWN: [&str; 8] = [
    "................",
    "..####....##....",
    "...####..##.....",
    "....###.##......",
    "#######..####..#",
    "#...............",
    ".........#######",
    "...####..##.....",
];

fn is_ink(line: &str, at: usize) -> bool {
    line.as_bytes().get(at) == Some(&b'#')
}

/// Where the colour changes for the first time from `from` on, the dot before it being `ink`.
fn next_change(line: &str, from: usize, ink: bool) -> usize {
    (from..WIDTH).find(|at| is_ink(line, *at) != ink).unwrap_or(WIDTH)
}

fn run(length: usize, ink: bool) -> &'static str {
    if ink { BLACK[length] } else { WHITE[length] }
}

fn one_dimensional(line: &str) -> String {
    let (mut bits, mut at, mut ink) = (String::new(), 0, false);
    while at < WIDTH {
        let end = next_change(line, at, ink);
        bits += run(end - at, ink);
        (at, ink) = (end, !ink);
    }
    bits
}

fn two_dimensional(above: &str, line: &str) -> String {
    let (mut bits, mut at, mut ink, mut starts) = (String::new(), 0, false, true);
    while at < WIDTH {
        let change = next_change(line, at, ink);
        let from = if starts { 0 } else { at + 1 };
        let turns = |at: &usize| {
            is_ink(above, *at) != ink
                && (if *at == 0 { false } else { is_ink(above, at - 1) }) == ink
        };
        let first = (from..WIDTH).find(turns).unwrap_or(WIDTH);
        let second = next_change(above, first, !ink);
        starts = false;
        if second < change {
            bits += "0001";
            at = second;
        } else if change.abs_diff(first) <= 3 {
            bits += VERTICAL[change + 3 - first];
            (at, ink) = (change, !ink);
        } else {
            let end = next_change(line, change, !ink);
            bits += &["001", run(change - at, ink), run(end - change, !ink)].concat();
            at = end;
        }
    }
    bits
}

/// Bits as bytes, the last one filled up with zeros.
fn packed(bits: &str) -> Vec<u8> {
    let byte = |bits: &[u8]| {
        let text = format!("{:0<8}", std::str::from_utf8(bits).unwrap());
        u8::from_str_radix(&text, 2).unwrap()
    };
    bits.as_bytes().chunks(8).map(byte).collect()
}

/// Zeros before an end of line, so that it ends with a byte.
fn aligned(mut bits: String) -> String {
    while !(bits.len() + EOL.len()).is_multiple_of(8) {
        bits.push('0');
    }
    bits
}

fn group_3(lines: &[&str]) -> Vec<u8> {
    let lines: String =
        lines.iter().map(|line| format!("{EOL}{}", one_dimensional(line))).collect();
    packed(&(lines + &EOL.repeat(6)))
}

fn group_3_aligned(lines: &[&str]) -> Vec<u8> {
    let add = |bits: String, line: &&str| aligned(bits) + EOL + &one_dimensional(line);
    packed(&lines.iter().fold(String::new(), add))
}

/// Every fourth line in one dimension, the others against the line above.
fn group_3_2d(lines: &[&str]) -> Vec<u8> {
    let mut bits = String::new();
    for (at, line) in lines.iter().enumerate() {
        bits += &match at % 4 {
            0 => format!("{EOL}1{}", one_dimensional(line)),
            _ => format!("{EOL}0{}", two_dimensional(lines[at - 1], line)),
        };
    }
    packed(&(bits + &format!("{EOL}1").repeat(6)))
}

fn modified_huffman(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| packed(&one_dimensional(line))).collect()
}

fn group_4(lines: &[&str]) -> Vec<u8> {
    let above = std::iter::once(&"................").chain(lines);
    let bits: String = above.zip(lines).map(|(above, line)| two_dimensional(above, line)).collect();
    packed(&(bits + &EOL.repeat(2)))
}

/// A big-endian TIFF of one page in `strips`, with these further fields.
fn tiff(lines: usize, strips: &[Vec<u8>], fields: &[(u16, u32)]) -> Bytes {
    let mut file = b"MM\0*\0\0\0\0".to_vec();
    let mut place = |bytes: &[u8]| {
        let at = u32::try_from(file.len()).unwrap();
        file.extend_from_slice(bytes);
        at
    };
    let long = |value: usize| u32::try_from(value).unwrap();
    let offsets: Vec<u32> = strips.iter().map(|strip| place(strip)).collect();
    let list = |values: &[u32]| values.iter().flat_map(|it| it.to_be_bytes()).collect::<Vec<u8>>();
    let lengths: Vec<u32> = strips.iter().map(|strip| long(strip.len())).collect();
    let mut entries = vec![
        (IMAGE_WIDTH, 4, 1, long(WIDTH)),
        (IMAGE_LENGTH, 4, 1, long(lines)),
        (ROWS_PER_STRIP, 4, 1, long(lines.div_ceil(strips.len()))),
    ];
    for (tag, values) in [(STRIP_OFFSETS, &offsets), (STRIP_BYTE_COUNTS, &lengths)] {
        let value = if values.len() == 1 { values[0] } else { place(&list(values)) };
        entries.push((tag, 4, long(values.len()), value));
    }
    for (tag, value) in fields {
        let is_resolution = matches!(tag, 282 | 283);
        // Short numbers stand in the first half of their place.
        let kind = if is_resolution { 5 } else { 3 };
        let value = if is_resolution { place(&list(&[*value, 1])) } else { *value << 16 };
        entries.push((*tag, kind, 1, value));
    }
    entries.sort_unstable();
    let directory = long(file.len());
    file[4..8].copy_from_slice(&directory.to_be_bytes());
    file.extend(u16::try_from(entries.len()).unwrap().to_be_bytes());
    for (tag, kind, count, value) in entries {
        file.extend([tag.to_be_bytes(), u16::to_be_bytes(kind)].concat());
        file.extend([u32::to_be_bytes(count), value.to_be_bytes()].concat());
    }
    file.extend([0; 4]);
    file.into()
}

fn decode(file: &Bytes) -> Result<DecodedPicture, PageRefusal> {
    let page = list_directories(file, 10).unwrap()[0];
    decode_tiff(file, &page, &LimitsConfig::default())
}

/// The page as it was drawn.
fn shown(page: &DecodedPicture) -> Vec<String> {
    let rows = page.raster.pixels.chunks(page.raster.width as usize);
    let dot = |pixel: &u8| if *pixel == 0 { '#' } else { '.' };
    rows.map(|row| row.iter().map(dot).collect()).collect()
}

#[test]
fn fax_pages_are_read_in_every_coding_and_order_of_bits() {
    let turned = |bytes: Vec<u8>| bytes.iter().map(|byte| byte.reverse_bits()).collect::<Vec<u8>>();
    let swapped = DRAWN.map(|line| line.replace('#', "o").replace('.', "#").replace('o', "."));
    let negative: Vec<&str> = swapped.iter().map(String::as_str).collect();
    let halves = |code: fn(&[&str]) -> Vec<u8>| vec![code(&DRAWN[..4]), code(&DRAWN[4..])];
    #[rustfmt::skip]
    let table = [
        ("Group 3",                         vec![group_3(&DRAWN)],         vec![(259, 3)]),
        ("Group 3, lowest bit first",       vec![turned(group_3(&DRAWN))], vec![(259, 3), (266, 2)]),
        ("Group 3 with filled line ends",   vec![group_3_aligned(&DRAWN)], vec![(259, 3), (292, 4)]),
        ("Group 3 in two dimensions",       vec![group_3_2d(&DRAWN)],      vec![(259, 3), (292, 1)]),
        ("the same, lowest bit first",      vec![turned(group_3_2d(&DRAWN))], vec![(259, 3), (266, 2), (292, 5)]),
        ("Group 3 in strips",               halves(group_3_2d),            vec![(259, 3), (292, 1)]),
        ("modified Huffman",                vec![modified_huffman(&DRAWN)], vec![(259, 2)]),
        ("Group 4",                         vec![group_4(&DRAWN)],         vec![(259, 4)]),
        ("Group 4, lowest bit first",       vec![turned(group_4(&DRAWN))], vec![(259, 4), (266, 2)]),
        ("Group 4 in strips",               halves(group_4),               vec![(259, 4)]),
        ("Group 3, black is 0",             vec![group_3(&negative)],      vec![(259, 3), (262, 1)]),
    ];
    for (name, strips, fields) in table {
        let page = decode(&tiff(8, &strips, &fields)).unwrap();
        assert_eq!(shown(&page), DRAWN, "{name}");
        assert!(!page.is_cut, "{name}");
    }
}

#[test]
fn a_fax_in_standard_resolution_gets_square_pixels() {
    let dots = |across, down| vec![(259, 3), (282, across), (283, down), (296, 2)];
    let page = |fields: &[(u16, u32)]| decode(&tiff(8, &[group_3(&DRAWN)], fields)).unwrap();
    let standard = page(&dots(204, 98));
    let size = |page: &DecodedPicture| (page.raster.width, page.raster.height, page.raster.dpi);
    assert_eq!(size(&standard), (16, 16, 204));
    let twice: Vec<&str> = DRAWN.iter().flat_map(|line| [*line, *line]).collect();
    assert_eq!(shown(&standard), twice);
    assert_eq!(size(&page(&dots(204, 196))), (16, 8, 204));
    let finest = page(&dots(204, 391));
    assert_eq!(size(&finest), (32, 8, 391));
    assert_eq!(shown(&finest)[6], "..................##############");
}

#[test]
fn a_damaged_line_stays_white_and_a_lost_end_marks_the_page_cut() {
    let lines = DRAWN.map(one_dimensional);
    // A code that there is not, in the third line.
    let coded = |damaged: usize| {
        let line = |(at, bits): (usize, &String)| {
            let bits = if at == damaged { "000000001111" } else { bits.as_str() };
            format!("{EOL}{bits}")
        };
        packed(&lines.iter().enumerate().map(line).collect::<String>())
    };
    let page = decode(&tiff(8, &[coded(2)], &[(259, 3)])).unwrap();
    let mut expected = DRAWN;
    expected[2] = "................";
    assert_eq!(shown(&page), expected);
    let whole = group_3(&DRAWN[..5]);
    let page = decode(&tiff(8, &[whole], &[(259, 3)])).unwrap();
    assert!(page.is_cut);
    assert_eq!(shown(&page)[..5], DRAWN[..5]);
    assert!(shown(&page)[5..].iter().all(|line| !line.contains('#')));
}

#[test]
fn contradictory_fields_are_refused_before_anything_is_decoded() {
    let strip = group_3(&DRAWN);
    let limits = LimitsConfig { page_pixels: 1_000, ..LimitsConfig::default() };
    let refused = |file: &Bytes| {
        let page = list_directories(file, 10).unwrap()[0];
        decode_tiff(file, &page, &limits).unwrap_err().reason
    };
    let upon_each_other = {
        // Both strips name the whole file.
        let file = tiff(8, &[strip.clone(), strip.clone()], &[(259, 3)]).to_vec();
        let long = u32::try_from(strip.len()).unwrap().to_be_bytes();
        let at = memchr::memmem::rfind(&file, &[long, long].concat()).unwrap();
        let mut file = file;
        let all = u32::try_from(file.len()).unwrap().to_be_bytes();
        file[at..at + 8].copy_from_slice(&[all, all].concat());
        Bytes::from(file)
    };
    let bits = tiff(8, std::slice::from_ref(&strip), &[(258, 8), (259, 3)]);
    let garbage = tiff(8, &[vec![0xaa; 40]], &[(259, 4)]);
    let large = tiff(80, &[strip], &[(259, 3)]);
    #[rustfmt::skip]
    let table = [
        ("strips upon each other",  upon_each_other, OutcomeReason::Corrupt),
        ("eight bits a dot",        bits,            OutcomeReason::Corrupt),
        ("too many lines",          large,           OutcomeReason::TooLarge),
    ];
    for (name, file, expected) in table {
        assert_eq!(refused(&file), expected, "{name}");
    }
    // Garbage must not hang it.
    let _page = decode(&garbage);
}
