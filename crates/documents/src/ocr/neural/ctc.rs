//! From the recogniser's probabilities for each column of a strip to characters and words.
//!
//! For each column the network gives every character a probability, and one to "none here". The
//! surest of each column, repeats taken together, are the text (connectionist temporal
//! classification; Graves and others, ICML 2006). The columns of a character give its position, to
//! about half its width. A space is easily lost between letters that nearly touch, so a gap counts
//! as one already where the space is not unlikely.

use std::ops::Range;

use super::spelling::LetterRival;

/// A space is taken from this probability on between two characters, though "none here" is surer.
const LIKELY_SPACE: f32 = 0.2;
/// A letter that is as likely as this where another one was read may be the right one, ...
const LIKELY_RIVAL: f32 = 0.01;
/// ... unless that one is as sure as this.
const SURE_LETTER: f32 = 0.98;

/// A character, its position and its confidence.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StripCharacter {
    /// The character; several letters where the network has a class for them.
    pub text: String,
    /// Its columns.
    pub columns: Range<usize>,
    /// How surely, 0 to 1.
    pub probability: f32,
    /// Other letters with their probabilities.
    pub rivals: Vec<(char, f32)>,
}

/// Characters between two spaces, at least one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StripWord {
    /// Its characters.
    pub text: String,
    /// From its first character's columns to its last one's.
    pub columns: Range<usize>,
    /// How surely all of it is right, 0 to 1.
    pub confidence: f32,
    /// Letters that it might have instead of unsure ones.
    pub rivals: Vec<LetterRival>,
}

/// Names of the network's classes.
#[derive(Debug, Clone)]
pub(super) struct CharacterClasses {
    names: Vec<String>,
}

impl CharacterClasses {
    /// From a file with a line for each class between the first, which is "none here", and the
    /// last, which is the space.
    pub(super) fn from_lines(lines: &str) -> Self {
        Self { names: lines.lines().map(str::to_owned).collect() }
    }

    /// How many classes a network that goes with them has.
    pub(super) fn count(&self) -> usize {
        self.names.len() + 2
    }

    fn space(&self) -> usize {
        self.names.len() + 1
    }

    fn name(&self, class: usize) -> Option<&str> {
        class.checked_sub(1).and_then(|at| self.names.get(at)).map(String::as_str)
    }

    /// The words of a strip; `values`: for each column the probability of each class.
    pub(super) fn decode(&self, values: &[f32]) -> Vec<StripWord> {
        let mut words = Vec::new();
        let mut word: Vec<StripCharacter> = Vec::new();
        let mut last = 0;
        let mut space = 0.0_f32;
        for (column, probabilities) in values.chunks_exact(self.count()).enumerate() {
            let (class, probability) = surest(probabilities);
            space = space.max(probabilities.get(self.space()).copied().unwrap_or(0.0));
            let repeats = class == last;
            last = class;
            if class == 0 {
                continue;
            }
            if repeats && let Some(character) = word.last_mut() {
                character.columns.end = column + 1;
                character.probability = character.probability.max(probability);
                self.note_rivals(character, probabilities);
                space = 0.0;
                continue;
            }
            let Some(name) = self.name(class) else {
                words.extend(join_characters(std::mem::take(&mut word)));
                continue;
            };
            if space >= LIKELY_SPACE {
                words.extend(join_characters(std::mem::take(&mut word)));
            }
            space = 0.0;
            let columns = column..column + 1;
            let text = name.to_owned();
            let mut character = StripCharacter { text, columns, probability, rivals: Vec::new() };
            self.note_rivals(&mut character, probabilities);
            word.push(character);
        }
        words.extend(join_characters(word));
        words
    }

    /// Adds what else the character may be, as one of its columns has it.
    fn note_rivals(&self, character: &mut StripCharacter, probabilities: &[f32]) {
        for (name, probability) in self.names.iter().zip(probabilities.iter().skip(1)) {
            let mut letters = name.chars();
            let (Some(letter), None) = (letters.next(), letters.next()) else { continue };
            if *probability < LIKELY_RIVAL || !letter.is_alphabetic() || *name == character.text {
                continue;
            }
            match character.rivals.iter_mut().find(|(known, _)| *known == letter) {
                Some((_, most)) => *most = most.max(*probability),
                None => character.rivals.push((letter, *probability)),
            }
        }
    }
}

/// The class with the highest probability.
fn surest(probabilities: &[f32]) -> (usize, f32) {
    let mut best = (0, f32::MIN);
    for (class, probability) in probabilities.iter().enumerate() {
        if *probability > best.1 {
            best = (class, *probability);
        }
    }
    best
}

/// How often words of such a probability are right. The network is too sure of bad print: on degraded
/// pages of 25 layouts nine in ten words are right at .97, three in four at .92, one in two at .8.
fn calibrate(probability: f32) -> f32 {
    probability.powi(3)
}

fn join_characters(characters: Vec<StripCharacter>) -> Option<StripWord> {
    let (first, last) = (characters.first()?, characters.last()?);
    let columns = first.columns.start..last.columns.end;
    let sum: f32 = characters.iter().map(|it| it.probability).sum();
    let lowest = characters.iter().map(|it| it.probability).fold(1.0_f32, f32::min);
    #[expect(clippy::cast_precision_loss, reason = "letters of a word")]
    let mean = sum / characters.len() as f32;
    let text = characters.iter().map(|it| it.text.as_str()).collect();
    let rivals = word_rivals(&characters);
    Some(StripWord { text, columns, confidence: calibrate(f32::midpoint(mean, lowest)), rivals })
}

/// Alternatives of a word's unsure characters, those of one letter.
fn word_rivals(characters: &[StripCharacter]) -> Vec<LetterRival> {
    let mut rivals = Vec::new();
    let mut at = 0;
    for character in characters {
        let letters = character.text.chars().count();
        if letters == 1 && character.probability <= SURE_LETTER {
            rivals.extend(character.rivals.iter().map(|(letter, probability)| LetterRival {
                at,
                letter: *letter,
                odds: probability / character.probability.max(LIKELY_RIVAL),
            }));
        }
        at += letters;
    }
    rivals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, the columns, and the words that they are.
    type DecodeCase<'a> = (&'a str, &'a str, &'a [(&'a str, Range<usize>)]);

    /// Columns as `a`, `b`, space, `.` for "none here"; after a `?` a space is likely beside it.
    fn read(columns: &str) -> Vec<(String, Range<usize>)> {
        let classes = CharacterClasses::from_lines("a\nb\n");
        let mut values = Vec::new();
        for (column, class) in columns.chars().enumerate() {
            let mut row = [0.01_f32; 4];
            match class {
                '.' => row[0] = 0.9,
                'a' => row[1] = 0.9,
                'b' => row[2] = 0.9,
                ' ' => row[3] = 0.9,
                '?' => (row[0], row[3]) = (0.6, 0.3),
                other => panic!("column {column} is {other}"),
            }
            values.extend(row);
        }
        classes.decode(&values).into_iter().map(|word| (word.text, word.columns)).collect()
    }

    #[test]
    fn columns_become_words_where_their_characters_stand() {
        #[rustfmt::skip]
        let table: [DecodeCase<'_>; 8] = [
            ("nothing",                       "....",      &[]),
            ("only a space",                  ".. .",      &[]),
            ("a character over two columns",  ".aa.",      &[("a", 1..3)]),
            ("the same character twice",      ".a.a.",     &[("aa", 1..4)]),
            ("two words",                     "ab..  ba",  &[("ab", 0..2), ("ba", 6..8)]),
            ("a space that is merely likely", "ab.?.ba",   &[("ab", 0..2), ("ba", 5..7)]),
            ("spaces at both ends",           " ab ",      &[("ab", 1..3)]),
            ("a space between two alike",     "a a",       &[("a", 0..1), ("a", 2..3)]),
        ];
        for (name, columns, expected) in table {
            let expected: Vec<(String, Range<usize>)> =
                expected.iter().map(|(text, place)| ((*text).to_owned(), place.clone())).collect();
            assert_eq!(read(columns), expected, "{name}");
        }
    }

    #[test]
    fn what_an_unsure_letter_might_be_instead_is_noted_and_nothing_of_a_sure_one() {
        let classes = CharacterClasses::from_lines("a\nb\n1\n");
        let rivals = |rows: &[[f32; 5]]| {
            let words = classes.decode(&rows.concat());
            let rivals = words.first().map(|word| word.rivals.clone()).unwrap_or_default();
            rivals.into_iter().map(|it| (it.at, it.letter, it.odds)).collect::<Vec<_>>()
        };
        let sure = [0.0, 0.985, 0.015, 0.0, 0.0];
        // An `a`, or a `b`; a digit is no alternative of a letter.
        let unsure = [0.1, 0.5, 0.2, 0.2, 0.0];
        let surer = [0.1, 0.5, 0.25, 0.15, 0.0];
        let nothing = [0.99, 0.0, 0.0, 0.0, 0.01];
        assert_eq!(rivals(&[sure, nothing, unsure, surer]), [(1, 'b', 0.5)]);
        assert!(rivals(&[sure]).is_empty());
        let hardly = [0.195, 0.8, 0.005, 0.0, 0.0];
        assert!(rivals(&[hardly]).is_empty());
    }

    #[test]
    fn a_word_is_as_sure_as_its_letters_and_its_least_sure_letter_counts_most() {
        let classes = CharacterClasses::from_lines("a\nb\n");
        let sure = [0.0, 1.0, 0.0, 0.0];
        let unsure = [0.3, 0.1, 0.6, 0.0];
        let confidence =
            |rows: &[[f32; 4]]| classes.decode(&rows.concat()).first().map(|word| word.confidence);
        assert_eq!(confidence(&[sure]), Some(1.0));
        let both = confidence(&[sure, unsure]).unwrap();
        assert!((both - 0.7_f32.powi(3)).abs() < 0.001, "{both}");
    }
}
