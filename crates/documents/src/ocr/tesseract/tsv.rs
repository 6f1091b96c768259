//! Tesseract's table of words.
//!
//! Twelve columns, tab-separated: level, page, block, paragraph, line, word, left, top, width,
//! height, confidence (0 to 100, -1 where there is none), text. Rows of level 5 are words.

use docmill_core::model::{BoundingBox, TextLine, TextWord};

const WORD: &str = "5";

/// The words of the table, one line for each line that Tesseract saw.
pub(super) fn parse_lines(table: &str) -> Vec<TextLine> {
    let mut lines: Vec<TextLine> = Vec::new();
    let mut current = None;
    for (place, word) in table.lines().filter_map(parse_word) {
        match lines.last_mut() {
            Some(line) if current == Some(place) => line.words.push(word),
            _ => lines.push(TextLine { words: vec![word] }),
        }
        current = Some(place);
    }
    lines
}

/// Block, paragraph and line of a word, and the word; `None` for every other row.
fn parse_word(row: &str) -> Option<([u32; 3], TextWord)> {
    let mut columns = row.splitn(12, '\t');
    if columns.next()? != WORD {
        return None;
    }
    let mut numbers = [0.0_f32; 10];
    for number in &mut numbers {
        *number = columns.next()?.trim().parse().ok()?;
    }
    let [_page, block, paragraph, line, _word, x, y, w, h, confidence] = numbers;
    let text = columns.next()?.trim();
    let is_word = !text.is_empty() && confidence >= 0.0;
    is_word.then(|| {
        let word = TextWord {
            text: text.into(),
            bounding_box: BoundingBox { x, y, w, h },
            confidence: (confidence / 100.0).min(1.0),
            unwitnessed: false,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
        let place = [block, paragraph, line].map(|number| number.max(0.0) as u32);
        (place, word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_the_lines_that_tesseract_saw() {
        let table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
                     4\t1\t1\t1\t1\t0\t10\t20\t100\t12\t-1\t\n\
                     5\t1\t1\t1\t1\t1\t10\t20\t40\t12\t96.5\tTotal\n\
                     5\t1\t1\t1\t1\t2\t60\t20\t50\t12\t91\t120,00\n\
                     5\t1\t1\t1\t2\t1\t10\t40\t50\t12\t95\t \n\
                     5\t1\t1\t1\t2\t2\t10\t40\t50\t12\t-1\tghost\n\
                     5\t1\t2\t1\t2\t1\t10\t60\t50\t12\t80\tEUR\n\
                     5\t1\t2\t1\tbroken\n";
        let found = parse_lines(table);
        assert_eq!(found.iter().map(TextLine::text).collect::<Vec<_>>(), ["Total 120,00", "EUR"]);
        let total = &found[0].words[0];
        assert_eq!(total.bounding_box, BoundingBox { x: 10.0, y: 20.0, w: 40.0, h: 12.0 });
        assert!((total.confidence - 0.965).abs() < 1e-6);
    }
}
