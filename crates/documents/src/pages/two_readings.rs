//! Two readings of one page in one: where both have a word, the one that was read more surely;
//! where only one has a word, that one.
//!
//! A small or worn print is read now better unchanged, now better enlarged, and within one page
//! that changes from word to word, so the better of two readings of a receipt still misses words
//! that the other has. Voting among recognisers word by word is an old remedy (Lopresti and Zhou,
//! "Using consensus sequence voting to correct OCR errors", CVIU 67, 1997); with two voters their
//! confidence decides. It works on boxes, so both readings must be of the same page up to its
//! scale.

use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Two boxes are of one word if they share this much of the larger one.
const SAME: f32 = 0.6;
/// A box is taken if a word shares this much of the smaller of the two.
const TAKEN: f32 = 0.5;
/// How much surer the other reading of one reader must be of a word to replace it: confidences of two
/// pictures are not quite alike.
const SURER: f32 = 0.1;
/// The same of two readers: their mistakes are different ones, so either has as much to say.
const SURER_OF_READERS: f32 = 0.0;

/// Who two readings are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadingOrigins {
    /// Of one reader, which read two pictures.
    OneReader,
    /// Of two readers.
    TwoReaders,
}

impl ReadingOrigins {
    fn surer(self) -> f32 {
        match self {
            Self::OneReader => SURER,
            Self::TwoReaders => SURER_OF_READERS,
        }
    }
}
/// A word that only one reading has is believed from this confidence on: specks look like words
/// too.
const BELIEVED: f32 = 0.5;

/// `base` with what `other` read more surely, and with what only `other` has. Boxes of `other` are
/// multiplied by `scale` to be boxes of `base`; `origins`: who the two are of.
pub(super) fn merge_lines(
    mut base: Vec<TextLine>,
    other: &[TextLine],
    scale: f32,
    origins: ReadingOrigins,
) -> Vec<TextLine> {
    let others: Vec<TextLine> = other.iter().map(|line| scale_line(line, scale)).collect();
    let places: Vec<BoundingBox> =
        base.iter().flat_map(|line| &line.words).map(|word| word.bounding_box).collect();
    for word in base.iter_mut().flat_map(|line| &mut line.words) {
        let same = others.iter().flat_map(|line| &line.words);
        let same = same.map(|other| (shared_area(&word.bounding_box, &other.bounding_box), other));
        let same = same.filter(|(shared, other)| {
            *shared >= SAME * box_area(&word.bounding_box).max(box_area(&other.bounding_box))
        });
        if let Some((_, other)) = same.max_by(|one, other| one.0.total_cmp(&other.0))
            && other.confidence >= word.confidence + origins.surer()
        {
            *word = other.clone();
        }
    }
    let is_new = |word: &TextWord| {
        let place = &word.bounding_box;
        let takes = |taken: &BoundingBox| {
            shared_area(taken, place)
                >= TAKEN * box_area(taken).min(box_area(place)).max(f32::EPSILON)
        };
        word.confidence >= BELIEVED
            && word.text.chars().any(char::is_alphanumeric)
            && !places.iter().any(takes)
    };
    for mut line in others {
        line.words.retain(is_new);
        if !line.words.is_empty() {
            base.push(line);
        }
    }
    base
}

fn scale_line(line: &TextLine, scale: f32) -> TextLine {
    let word = |word: &TextWord| {
        let BoundingBox { x, y, w, h } = word.bounding_box;
        let bounding_box = BoundingBox { x: x * scale, y: y * scale, w: w * scale, h: h * scale };
        TextWord { bounding_box, ..word.clone() }
    };
    TextLine { words: line.words.iter().map(word).collect() }
}

fn box_area(place: &BoundingBox) -> f32 {
    place.w * place.h
}

fn shared_area(one: &BoundingBox, other: &BoundingBox) -> f32 {
    let across = one.right().min(other.right()) - one.x.max(other.x);
    let down = one.bottom().min(other.bottom()) - one.y.max(other.y);
    across.max(0.0) * down.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[(&str, f32, f32)], scale: f32) -> TextLine {
        let word = |(text, x, confidence): &(&str, f32, f32)| {
            let bounding_box =
                BoundingBox { x: x * scale, y: 10.0 * scale, w: 40.0 * scale, h: 12.0 * scale };
            TextWord { text: (*text).to_owned(), bounding_box, confidence: *confidence }
        };
        TextLine { words: words.iter().map(word).collect() }
    }

    fn read(base: &[(&str, f32, f32)], other: &[(&str, f32, f32)]) -> Vec<String> {
        let (base, other) = (vec![line(base, 2.0)], [line(other, 1.0)]);
        merge_lines(base, &other, 2.0, ReadingOrigins::OneReader)
            .iter()
            .map(TextLine::text)
            .collect()
    }

    #[test]
    fn of_two_readings_of_a_word_the_surer_one_stays_and_what_only_one_has_is_added() {
        #[rustfmt::skip]
        let table: [(&str, &[_], &[_], &[&str]); 6] = [
            ("the other is surer",          &[("T0tal", 0.0, 0.4)], &[("Total", 1.0, 0.9)],  &["Total"]),
            ("the other is hardly surer",   &[("Total", 0.0, 0.8)], &[("T0tal", 1.0, 0.85)], &["Total"]),
            ("only the other has it",       &[("Total", 0.0, 0.9)], &[("9.90", 60.0, 0.6)],  &["Total", "9.90"]),
            ("the other is not sure",       &[("Total", 0.0, 0.9)], &[("9.90", 60.0, 0.4)],  &["Total"]),
            ("the other saw specks",        &[("Total", 0.0, 0.9)], &[(".:-", 60.0, 0.9)],   &["Total"]),
            ("half of it is taken already", &[("Total", 0.0, 0.9)], &[("tal", 19.0, 0.95)],  &["Total"]),
        ];
        for (name, base, other, expected) in table {
            assert_eq!(read(base, other), expected, "{name}");
        }
    }

    #[test]
    fn of_two_readers_the_one_that_is_a_little_surer_of_a_word_is_believed() {
        let (base, other) = ([("T0tal", 0.0, 0.8)], [line(&[("Total", 1.0, 0.85)], 1.0)]);
        let read = |origins| {
            let merged = merge_lines(vec![line(&base, 2.0)], &other, 2.0, origins);
            merged.iter().map(TextLine::text).collect::<Vec<_>>()
        };
        assert_eq!(read(ReadingOrigins::OneReader), ["T0tal"]);
        assert_eq!(read(ReadingOrigins::TwoReaders), ["Total"]);
    }

    #[test]
    fn boxes_of_added_words_are_in_the_picture_of_the_kept_reading() {
        let origins = ReadingOrigins::OneReader;
        let found = merge_lines(Vec::new(), &[line(&[("9.90", 60.0, 0.9)], 1.0)], 2.0, origins);
        let place = found.first().unwrap().words.first().unwrap().bounding_box;
        assert_eq!(place, BoundingBox { x: 120.0, y: 20.0, w: 80.0, h: 24.0 });
    }
}
