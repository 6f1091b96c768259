//! Blocks side by side as letters and invoices have them: addresses, and labels with their values.
//!
//! The text itself is not understood. An address is short lines below each other with a number
//! among them. Facts are labels without numbers beside values with them. Sides that look like
//! neither are left alone.

use super::piece::{PieceRow, TextPiece, group_rows};
use super::strips::{WhiteStrip, cut_strips, inner_strips};

/// Lines of an address stand closer than this, from baseline to baseline, in letter sizes.
const ADDRESS_PITCH: f32 = 2.6;
/// No row of addresses and facts has more pieces.
const MAX_PIECES: usize = 7;
/// Rows below the head of a table that are searched for its numbers.
const ROWS_BELOW: usize = 3;

/// The strip between an address and the facts or the address beside it, if the rows are that.
pub(super) fn strip_between_parties(rows: &[PieceRow<'_>]) -> Option<WhiteStrip> {
    if rows.iter().any(|row| row.pieces.len() > MAX_PIECES) {
        return None;
    }
    let widest = rows.iter().filter(|row| row.pieces.len() > 1).take(3).flat_map(inner_strips);
    widest.filter_map(|strip| common_part(strip, rows)).find(|strip| {
        let (left, right) = split_sides(rows, *strip);
        (is_address(&left) && is_facts(&right))
            || (is_facts(&left) && is_address(&right))
            || (are_addresses(&left) && are_addresses(&right))
    })
}

/// The part of a strip that is free in all rows.
fn common_part(strip: WhiteStrip, rows: &[PieceRow<'_>]) -> Option<WhiteStrip> {
    let mut left = vec![strip];
    for row in rows {
        left = cut_strips(&left, row, row.em());
    }
    left.first().copied()
}

type SideLines<'r, 'a> = Vec<Vec<&'r TextPiece<'a>>>;

/// The pieces on both sides of a strip, row by row.
fn split_sides<'r, 'a>(
    rows: &'r [PieceRow<'a>],
    strip: WhiteStrip,
) -> (SideLines<'r, 'a>, SideLines<'r, 'a>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for row in rows {
        let (before, behind): (Vec<_>, Vec<_>) =
            row.pieces.iter().partition(|piece| piece.area.right() <= strip.0 + 1.0);
        left.push(before);
        right.push(behind);
    }
    left.retain(|line| !line.is_empty());
    right.retain(|line| !line.is_empty());
    (left, right)
}

pub(super) fn has_digit(piece: &TextPiece<'_>) -> bool {
    piece.words.iter().any(|word| word.text.contains(|c: char| c.is_ascii_digit()))
}

fn has_letter(piece: &TextPiece<'_>) -> bool {
    piece.words.iter().any(|word| word.text.contains(char::is_alphabetic))
}

/// Short lines of words that begin below each other, one of them with a number.
fn is_address(side: &[Vec<&TextPiece<'_>>]) -> bool {
    let lines: Vec<&TextPiece<'_>> = side.iter().flatten().copied().collect();
    let left = lines.iter().map(|line| line.area.x).fold(f32::INFINITY, f32::min);
    let close = lines.windows(2).all(|pair| match pair {
        [one, next] => next.baseline - one.baseline < ADDRESS_PITCH * one.em,
        _ => true,
    });
    lines.len() >= 2
        && lines.len() == side.len()
        && close
        && lines.iter().any(|line| has_digit(line))
        && lines.first().is_some_and(|line| has_letter(line))
        // A telephone number may stand below.
        && lines.iter().filter(|line| has_letter(line)).count() * 3 >= lines.len() * 2
        && lines.iter().all(|line| line.words.len() < 8 && line.area.x - left < line.em)
}

/// One address or up to three beside each other, each with a place.
fn are_addresses(side: &[Vec<&TextPiece<'_>>]) -> bool {
    let count = side.iter().map(Vec::len).max().unwrap_or(0);
    (1..=3).contains(&count)
        && (0..count).all(|at| {
            let column: Vec<Vec<&TextPiece<'_>>> =
                side.iter().filter_map(|line| line.get(at)).map(|piece| vec![*piece]).collect();
            has_place(&column)
        })
}

/// An address of at least three lines with a town's number before its last ones.
fn has_place(side: &[Vec<&TextPiece<'_>>]) -> bool {
    side.len() >= 3
        && is_address(side)
        && side.iter().skip(1).flatten().any(|piece| has_postcode(piece))
}

fn has_postcode(piece: &TextPiece<'_>) -> bool {
    piece.words.len() > 1
        && has_letter(piece)
        && piece.words.iter().any(|word| {
            word.text.chars().filter(char::is_ascii_digit).count() >= 4 && word.text.len() < 8
        })
}

/// Labels that all differ, with values beside most of them of which most have numbers; the first
/// row has a value like that: it is no head of a table.
fn is_facts(side: &[Vec<&TextPiece<'_>>]) -> bool {
    let mut labels: Vec<String> = Vec::new();
    let (mut valued, mut numbers, mut begins) = (0, 0, false);
    for line in side {
        let (Some(label), rest) = (line.first(), line.get(1..).unwrap_or_default()) else {
            return false;
        };
        if line.len() > 2 || label.words.len() > 5 {
            return false;
        }
        let Some(value) = rest.first() else { continue };
        if has_digit(label) || !has_letter(label) {
            return false;
        }
        valued += 1;
        numbers += usize::from(has_digit(value));
        let colon = label.words.last().is_some_and(|word| word.text.ends_with(':'));
        begins |= valued == 1 && (has_digit(value) || colon);
        labels.push(label.text());
    }
    labels.sort_unstable();
    let differ = labels.windows(2).all(|pair| pair.first() != pair.last());
    begins && valued >= 2 && valued * 3 >= side.len() * 2 && numbers * 2 >= valued && differ
}

/// Puts columns together of which one has the values of the labels in the other.
pub(super) fn join_facts(columns: Vec<Vec<TextPiece<'_>>>) -> Vec<Vec<TextPiece<'_>>> {
    let mut joined: Vec<Vec<TextPiece<'_>>> = Vec::new();
    for column in columns {
        match joined.last_mut() {
            Some(labels) if are_beside(labels, &column) => labels.extend(column),
            _ => joined.push(column),
        }
    }
    joined
}

fn are_beside(labels: &[TextPiece<'_>], values: &[TextPiece<'_>]) -> bool {
    let rows = group_rows(labels.iter().chain(values).cloned().collect());
    let side: Vec<Vec<&TextPiece<'_>>> =
        rows.iter().map(|row| row.pieces.iter().collect()).collect();
    is_facts(&side)
}

/// Which rows are heads of tables of at least three columns: short words without numbers, and below
/// them in the same columns numbers.
pub(super) fn find_heads(rows: &[PieceRow<'_>]) -> Vec<bool> {
    let heads = rows.iter().enumerate().map(|(at, row)| {
        row.pieces.len() >= 3
            && row.pieces.iter().all(|piece| piece.words.len() <= 4 && !has_digit(piece))
            && rows.iter().skip(at + 1).take(ROWS_BELOW).any(|below| {
                let numbers = below.pieces.iter().filter(|piece| has_digit(piece)).count();
                let near = below.area.y - row.area.bottom() < 5.0 * row.em();
                near && numbers >= 2
                    && cut_strips(&inner_strips(row), below, 0.6 * row.em()).len() >= 2
            })
    });
    heads.collect()
}
