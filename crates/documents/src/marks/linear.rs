//! Codes of bars: code 128, code 39 and patch codes of separator sheets, along rows and columns.
//!
//! A code counts if several lines across it read the same: a line of print may look like a short code.
//! Codes that are tilted so far that no line crosses all their bars are not read.

mod bar_run;
mod code_128;
mod code_39;
mod patch;

use self::bar_run::BarRun;
use super::ink::{BarLine, PageInk};
use super::ruling_removal::to_f32;
use crate::image::opencv_mat::OpenCvError;
use docmill_core::model::{BoundingBox, CodeSymbology, PageCode};

#[cfg(test)]
pub(super) use code_39::draw as draw_code_39;
#[cfg(test)]
pub(super) use code_128::draw as draw_code_128;

/// Codes of bars that are kept of a page.
const MAX_CODES: usize = 8;
/// Codes that are collected before those that too few lines read are dropped.
const MAX_CANDIDATES: usize = 64;
/// Pixels between two lines that read the same code.
const MAX_GAP_PIXELS: i32 = 36;

/// A code as one line reads it.
struct LineCode {
    symbology: CodeSymbology,
    payload: String,
    /// Its first and last edge on the line.
    span: (i32, i32),
}

/// A code as lines beside each other read it.
struct CodeCandidate {
    code: LineCode,
    first: i32,
    last: i32,
    lines: usize,
}

/// Reads the codes of bars; boxes in pixels of the picture.
pub(super) fn read_codes(ink: &PageInk) -> Result<Vec<PageCode>, OpenCvError> {
    let mut codes: Vec<PageCode> = Vec::new();
    let rows = ink.list_rows();
    let columns = ink.list_columns()?;
    for (lines, is_upright) in [(rows, true), (columns, false)] {
        for candidate in find_candidates(&lines) {
            if !candidate.is_certain() || codes.len() == MAX_CODES {
                continue;
            }
            let area = candidate.area(is_upright, ink.scale);
            let CodeCandidate { code, .. } = candidate;
            codes.extend(PageCode::from_bytes(code.symbology, code.payload.into_bytes(), area));
        }
    }
    Ok(codes)
}

fn find_candidates(lines: &[BarLine]) -> Vec<CodeCandidate> {
    let mut candidates: Vec<CodeCandidate> = Vec::new();
    for line in lines {
        for code in read_line(line) {
            let is_full = candidates.len() >= MAX_CANDIDATES;
            let known = candidates.iter_mut().find(|it| it.goes_on(&code, line.at));
            match known {
                Some(known) => {
                    known.lines += 1;
                    known.last = line.at;
                    known.code.span = code.span;
                }
                None if !is_full => {
                    let (first, last) = (line.at, line.at);
                    candidates.push(CodeCandidate { code, first, last, lines: 1 });
                }
                None => candidates.retain(CodeCandidate::is_certain),
            }
        }
    }
    candidates
}

impl CodeCandidate {
    /// Whether the next line reads the same code at the same place.
    fn goes_on(&self, code: &LineCode, at: i32) -> bool {
        let own = &self.code;
        own.symbology == code.symbology
            && own.payload == code.payload
            && at - self.last <= MAX_GAP_PIXELS
            && own.span.0 < code.span.1
            && code.span.0 < own.span.1
    }

    fn is_certain(&self) -> bool {
        let height = self.last - self.first;
        match self.code.symbology {
            CodeSymbology::Patch => {
                patch::is_long_enough(self.code.span.1 - self.code.span.0, height)
            }
            // It has no check digit.
            CodeSymbology::Code39 => self.lines >= 4,
            CodeSymbology::Code128 | CodeSymbology::Qr => self.lines >= 2,
        }
    }

    fn area(&self, is_upright: bool, scale: f32) -> BoundingBox {
        let (from, to) = self.code.span;
        let (along, across) = (to_f32(from) * scale, to_f32(self.first) * scale);
        let (length, height) =
            (to_f32(to - from) * scale, to_f32(self.last - self.first + 1) * scale);
        match is_upright {
            true => BoundingBox { x: along, y: across, w: length, h: height },
            false => BoundingBox { x: across, y: along, w: height, h: length },
        }
    }
}

/// The codes on a line, read in both directions.
fn read_line(line: &BarLine) -> Vec<LineCode> {
    let widths = line.edges.windows(2).map(|pair| match pair {
        [from, to] => to - from,
        _ => 0,
    });
    let mut widths: Vec<i32> = widths.collect();
    let mut found = Vec::new();
    read_direction(&widths, |from, to| (from, to), line, &mut found);
    widths.reverse();
    let count = widths.len();
    read_direction(&widths, |from, to| (count - to, count - from), line, &mut found);
    found
}

/// Reads bars in the order given; `place` takes a range of them to that of the line.
fn read_direction(
    widths: &[i32],
    place: impl Fn(usize, usize) -> (usize, usize),
    line: &BarLine,
    found: &mut Vec<LineCode>,
) {
    let mut at = 0;
    while at < widths.len() {
        let before = at.checked_sub(1).and_then(|at| widths.get(at)).copied();
        let rest = BarRun { widths: widths.get(at..).unwrap_or_default(), before };
        let read = patch::read_at(&rest)
            .or_else(|| code_128::read_at(&rest))
            .or_else(|| code_39::read_at(&rest));
        let Some((symbology, payload, count)) = read else {
            at += 2;
            continue;
        };
        let (from, to) = place(at, at + count);
        let edge = |at: usize| line.edges.get(at).copied().unwrap_or_default();
        found.push(LineCode { symbology, payload, span: (edge(from), edge(to)) });
        at += count + 1;
    }
}
