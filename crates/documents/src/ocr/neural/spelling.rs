//! Correction of unsure words: a letter is exchanged for the recogniser's next candidate where that
//! makes a word of the language.
//!
//! The recogniser has letters and no dictionary. In bad print it reads `Fállig` and `Betrdg`, and
//! the right letter is its next candidate. So where a reading is no word, up to two letters are
//! exchanged for candidates. The dictionary decides which exchange is right (correction by a noisy
//! channel, Kernighan, Church and Gale, COLING 1990, with the network as the channel). One exchange
//! that makes a word is taken before any two.
//!
//! A capital I and a small l are the same stroke in many types, and the recogniser is sure of
//! either: they are exchanged however surely they were read (`Itd`, `lle`). No word has a small l
//! before a capital: there it is a capital I, in the language or not (`lBAN`, `USt-ldNr`). A nought
//! or a one among letters is a letter where that makes a word (`reservati0n`, `bil1`), and
//! otherwise stays.
//!
//! All else is for words of letters alone: numbers, names and short words stay as they were read.
//! Words joined by hyphens or slashes (`SUB-TCTAL`) are corrected part by part. A long word may
//! also become a compound of listed words (`Rechoungsdatum`), by one exchange of one letter for
//! another, not for the same one with an accent. The lists lack parts of many compounds, so short
//! ones and accents mislead (`Fahrtkosten` to `Fährtkosten`). Letters are exchanged, never added or
//! taken away.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

/// Letters of a word at least: of shorter ones too many are words.
const MIN_WORD_LETTERS: usize = 4;
/// The same where a stroke is exchanged for its twin.
const MIN_WITH_TWIN: usize = 3;
/// Noughts and ones that a word may have in letters' places, at most: of more it is a number.
const MAX_DIGITS: usize = 2;
/// Letters of a compound at least.
const MIN_COMPOUND_LETTERS: usize = 12;
/// Letters that are tried in a word, at most, the likeliest.
const TRIED: usize = 12;

/// The words of a language.
pub(super) trait Lexicon {
    /// Whether it is one of them, written in any case.
    fn has_word(&self, word: &str) -> bool;

    /// Whether it is one of them or put together of several.
    fn has_compound(&self, word: &str) -> bool;
}

/// A letter that the network thought of where it read another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LetterRival {
    /// Which character of the word.
    pub at: usize,
    /// The letter.
    pub letter: char,
    /// Its probability over that of what was read.
    pub odds: f32,
}

/// Result of looking a word up in the words of a language.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WordSpelling {
    /// It is one of them.
    Known,
    /// It becomes one of them by exchanging letters for rivals. Other characters around it stay.
    Corrected(String),
    /// It becomes one of them by taking a stroke for its twin, as sure as it was read.
    Twin(String),
    /// Neither; or nothing that words of a language can say something about.
    Unknown,
}

/// Holds `text`, some letters of which have `rivals`, against the words of a language.
pub(super) fn spell_word(
    text: &str,
    rivals: &[LetterRival],
    lexicon: &dyn Lexicon,
) -> WordSpelling {
    let characters: Vec<char> = text.chars().collect();
    let start = characters.iter().position(|it| it.is_alphanumeric()).unwrap_or(0);
    let end = characters.iter().rposition(|it| it.is_alphanumeric()).map_or(start, |it| it + 1);
    let core = characters.get(start..end).unwrap_or_default();
    if let Some(text) = with_capital_heads(&characters) {
        return WordSpelling::Twin(text);
    }
    let around = |part: Option<&[char]>| part.unwrap_or_default().iter().collect::<String>();
    let whole =
        |word: &str| around(characters.get(..start)) + word + &around(characters.get(end..));
    if let Some(word) = with_letters_for_digits(core, lexicon) {
        return WordSpelling::Corrected(whole(&word));
    }
    let rivals = rivals_within(rivals, start..end);
    let spelt = if core.iter().all(|it| it.is_alphabetic()) {
        spell_letters(core, rivals, lexicon)
    } else if core.iter().all(|it| it.is_alphabetic() || is_joint(*it)) {
        spell_joined(core, &rivals, lexicon)
    } else {
        WordSpelling::Unknown
    };
    match spelt {
        WordSpelling::Corrected(word) => WordSpelling::Corrected(whole(&word)),
        WordSpelling::Twin(word) => WordSpelling::Twin(whole(&word)),
        same => same,
    }
}

/// Those of a part of a word, counted from its first character.
fn rivals_within(rivals: &[LetterRival], part: Range<usize>) -> Vec<LetterRival> {
    let own = rivals.iter().filter(|rival| part.contains(&rival.at));
    own.map(|rival| LetterRival { at: rival.at - part.start, ..*rival }).collect()
}

/// Characters that join two words into one.
fn is_joint(character: char) -> bool {
    matches!(character, '-' | '\u{2010}' | '\u{2011}' | '/')
}

/// Spells the parts of a word one by one.
fn spell_joined(core: &[char], rivals: &[LetterRival], lexicon: &dyn Lexicon) -> WordSpelling {
    let (mut text, mut is_known, mut is_corrected, mut has_twin) =
        (String::new(), true, false, false);
    let mut start = 0;
    for part in core.split_inclusive(|it| is_joint(*it)) {
        let letters = match part.split_last() {
            Some((last, letters)) if is_joint(*last) => letters,
            _ => part,
        };
        let own = rivals_within(rivals, start..start + letters.len());
        start += part.len();
        match spell_letters(letters, own, lexicon) {
            WordSpelling::Corrected(word) => {
                is_corrected = true;
                text.push_str(&word);
            }
            WordSpelling::Twin(word) => {
                has_twin = true;
                text.push_str(&word);
            }
            same => {
                is_known &= same == WordSpelling::Known;
                text.extend(letters);
            }
        }
        text.extend(part.iter().skip(letters.len()));
    }
    match (is_corrected, has_twin) {
        (true, _) => WordSpelling::Corrected(text),
        (false, true) => WordSpelling::Twin(text),
        (false, false) if is_known => WordSpelling::Known,
        (false, false) => WordSpelling::Unknown,
    }
}

/// Spells a word of letters alone.
fn spell_letters(
    word: &[char],
    mut rivals: Vec<LetterRival>,
    lexicon: &dyn Lexicon,
) -> WordSpelling {
    if word.len() < MIN_WITH_TWIN {
        return WordSpelling::Unknown;
    }
    let is_known = lexicon.has_word(&word.iter().collect::<String>());
    if !is_known && let Some(twin) = with_twin(word, lexicon) {
        return WordSpelling::Twin(twin);
    }
    if word.len() < MIN_WORD_LETTERS {
        return WordSpelling::Unknown;
    }
    if is_known {
        return WordSpelling::Known;
    }
    rivals.sort_by(|one, other| other.odds.total_cmp(&one.odds));
    rivals.truncate(TRIED);
    let with = |exchanged: &[LetterRival]| -> String {
        let mut letters = word.to_vec();
        for rival in exchanged {
            if let Some(letter) = letters.get_mut(rival.at) {
                *letter = rival.letter;
            }
        }
        letters.into_iter().collect()
    };
    if let Some(found) = likeliest(&rivals, &|exchanged| lexicon.has_word(&with(exchanged))) {
        return WordSpelling::Corrected(with(&found));
    }
    if word.len() < MIN_COMPOUND_LETTERS || lexicon.has_compound(&word.iter().collect::<String>()) {
        return WordSpelling::Unknown;
    }
    let is_accent = |rival: &LetterRival| {
        word.get(rival.at).is_some_and(|it| is_accent_apart(*it, rival.letter))
    };
    let mut exchanged =
        rivals.iter().filter(|rival| !is_accent(rival)).map(|rival| with(&[*rival]));
    match exchanged.find(|word| lexicon.has_compound(word)) {
        Some(compound) => WordSpelling::Corrected(compound),
        None => WordSpelling::Unknown,
    }
}

/// Whether two letters are one but for its accent.
fn is_accent_apart(one: char, other: char) -> bool {
    let base = |letter: char| letter.to_lowercase().nfd().next();
    base(one) == base(other)
}

/// The word that `core` becomes where the stroke at its head is the other one: a small l for a capital
/// I, or the other way round.
fn with_twin(core: &[char], lexicon: &dyn Lexicon) -> Option<String> {
    let is_small =
        |part: Option<&[char]>| part.is_some_and(|it| it.iter().all(|c| c.is_lowercase()));
    if !is_small(core.get(1..)) {
        return None;
    }
    let (first, rest) = core.split_first()?;
    let twin = match first {
        'I' => 'l',
        'l' => 'I',
        _ => return None,
    };
    let word: String = std::iter::once(twin).chain(rest.iter().copied()).collect();
    lexicon.has_word(&word).then_some(word)
}

/// `characters` with a capital I for each small l that heads letters with a capital among them, if there is one.
fn with_capital_heads(characters: &[char]) -> Option<String> {
    let mut text = String::with_capacity(characters.len());
    for letters in characters.chunk_by(|one, next| one.is_alphabetic() == next.is_alphabetic()) {
        match letters {
            ['l', rest @ ..] if rest.iter().any(|it| it.is_uppercase()) => {
                text.push('I');
                text.extend(rest);
            }
            _ => text.extend(letters),
        }
    }
    (!characters.iter().copied().eq(text.chars())).then_some(text)
}

/// The word that `core` becomes with letters for its noughts and ones: capitals beside capitals.
fn with_letters_for_digits(core: &[char], lexicon: &dyn Lexicon) -> Option<String> {
    let digits = core.iter().filter(|it| matches!(it, '0' | '1')).count();
    let letters = core.iter().filter(|it| it.is_alphabetic()).count();
    if !(1..=MAX_DIGITS).contains(&digits)
        || letters < MIN_WITH_TWIN
        || digits + letters < core.len()
    {
        return None;
    }
    let is_small = core.iter().any(|it| it.is_lowercase());
    let with = |stroke: char| -> String {
        let exchanged = core.iter().enumerate().map(|(at, character)| {
            let letter = match character {
                '0' => 'o',
                '1' => stroke,
                other => return *other,
            };
            if is_small && at > 0 { letter } else { letter.to_ascii_uppercase() }
        });
        exchanged.collect()
    };
    ['l', 'i'].into_iter().map(with).find(|word| lexicon.has_word(word))
}

/// The one rival, or where none does the two, that make a word; of several the likeliest.
fn likeliest(
    rivals: &[LetterRival],
    is_known: &dyn Fn(&[LetterRival]) -> bool,
) -> Option<Vec<LetterRival>> {
    if let Some(one) = rivals.iter().find(|one| is_known(&[**one])) {
        return Some(vec![*one]);
    }
    let mut best: Option<(f32, [LetterRival; 2])> = None;
    for (at, one) in rivals.iter().enumerate() {
        for other in rivals.iter().skip(at + 1) {
            let odds = one.odds * other.odds;
            if best.is_none_or(|(most, _)| odds > most) && is_known(&[*one, *other]) {
                best = Some((odds, [*one, *other]));
            }
        }
    }
    best.map(|(_, both)| both.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FewWords(&'static [&'static str]);

    impl Lexicon for FewWords {
        fn has_word(&self, word: &str) -> bool {
            self.0.contains(&word.to_lowercase().as_str())
        }

        fn has_compound(&self, word: &str) -> bool {
            let ends = |start: &str| word.to_lowercase().strip_prefix(start).map(str::to_owned);
            let mut rests = self.0.iter().filter_map(|start| ends(start));
            self.has_word(word)
                || rests.any(|rest| self.has_word(rest.strip_prefix('s').unwrap_or(&rest)))
        }
    }

    /// `text` where `rivals` are place, letter and odds.
    fn spell(text: &str, rivals: &[(usize, char, f32)]) -> WordSpelling {
        let words = FewWords(&[
            "betrag", "netto", "total", "fällig", "rate", "late", "gate", "net", "ltd", "ile",
            "ill", "id", "rechnung", "datum", "fährt", "fahrten", "kosten",
        ]);
        let rivals: Vec<LetterRival> =
            rivals.iter().map(|&(at, letter, odds)| LetterRival { at, letter, odds }).collect();
        spell_word(text, &rivals, &words)
    }

    #[test]
    fn letters_that_make_a_word_take_the_place_of_those_that_make_none() {
        use WordSpelling::{Corrected, Known, Twin, Unknown};
        let corrected = |word: &str| Corrected(word.to_owned());
        let twin = |word: &str| Twin(word.to_owned());
        #[rustfmt::skip]
        let table: [(&str, &str, &[_], WordSpelling); 36] = [
            ("one letter",                    "Betrdg",   &[(4, 'a', 0.2)],                   corrected("Betrag")),
            ("signs around it stay",          "(Fállig:", &[(2, 'a', 0.9), (2, 'ä', 0.4)],    corrected("(Fällig:")),
            ("two letters",                   "nello",    &[(2, 't', 0.1), (3, 't', 0.1)],    corrected("netto")),
            ("one rather than two",           "lafe",     &[(0, 'r', 0.9), (2, 't', 0.1)],    corrected("late")),
            ("the likelier of two",           "hate",     &[(0, 'g', 0.2), (0, 'r', 0.3)],    corrected("rate")),
            ("it is a word already",          "gate,",    &[(0, 'r', 0.9)],                   Known),
            ("nothing makes it a word",       "Betrdg",   &[(4, 'o', 0.9)],                   Unknown),
            ("a number is spelt as it is",    "t2tal",    &[(1, 'o', 0.9)],                   Unknown),
            ("a nought in a word",            "t0tal",    &[],                                corrected("total")),
            ("a one in capitals",             "(TOTA1)",  &[],                                corrected("(TOTAL)")),
            ("a one at the head",             "1lle1",    &[],                                Unknown),
            ("a one that is an i",            "fäll1g",   &[],                                corrected("fällig")),
            ("a number of two letters",       "R01E",     &[],                                Unknown),
            ("a number in a word's clothes",  "net1",     &[],                                Unknown),
            ("a small l before capitals",     "lBAN:",    &[],                                twin("IBAN:")),
            ("the same behind a hyphen",      "USt-ldNr.", &[],                               twin("USt-IdNr.")),
            ("too short to be told",          "nel",      &[(2, 't', 0.9)],                   Unknown),
            ("a capital I for a small l",     "(Itd.)",   &[],                                twin("(ltd.)")),
            ("a small l for a capital I",     "lle",      &[],                                twin("Ile")),
            ("a word as it is",               "Ill,",     &[],                                Unknown),
            ("capitals",                      "ITD",      &[],                                Unknown),
            ("two strokes of one",            "ld",       &[],                                Unknown),
            ("twin and rival",                "Iate",     &[(0, 'r', 0.9)],                   twin("late")),
            ("a part behind a hyphen",        "SUB-TCTAL", &[(5, 'O', 0.9)],                  corrected("SUB-TOTAL")),
            ("both parts",                    "(nello/lafe)", &[(3, 't', 0.1), (4, 't', 0.1), (9, 't', 0.1)], corrected("(netto/late)")),
            ("parts that are words",          "Netto-Betrag", &[(7, 'r', 0.9)],               Known),
            ("parts of which one is none",    "Netto-Xy",     &[],                            Unknown),
            ("a twin in a part",              "Net-ltd-lle",  &[],                            twin("Net-ltd-Ile")),
            ("a joint at the end",            "Total-",       &[],                            Known),
            ("two joints",                    "Total--lafe",  &[(9, 't', 0.9)],               corrected("Total--late")),
            ("a compound",                    "Rechoungsdatum", &[(4, 'n', 0.3)],             corrected("Rechnungsdatum")),
            ("a compound already",            "Rechnungsdatum", &[(8, 'x', 0.3)],             Unknown),
            ("an accent makes a compound",    "Fahrtkosten,", &[(1, 'ä', 0.9)],               Unknown),
            ("too short for a compound",      "Xetdatum",     &[(0, 'n', 0.9)],               Unknown),
            ("signs alone",                   "--",       &[],                                Unknown),
            ("nothing",                       "",         &[],                                Unknown),
        ];
        for (name, text, rivals, expected) in table {
            assert_eq!(spell(text, rivals), expected, "{name}");
        }
    }

    #[test]
    fn of_a_word_without_end_only_some_letters_are_tried() {
        #[derive(Default)]
        struct NoWords(std::cell::Cell<usize>);
        impl Lexicon for NoWords {
            fn has_word(&self, _word: &str) -> bool {
                self.0.set(self.0.get() + 1);
                false
            }

            fn has_compound(&self, word: &str) -> bool {
                self.has_word(word)
            }
        }
        let words = NoWords::default();
        let rivals: Vec<LetterRival> =
            (0..500).map(|at| LetterRival { at, letter: 'b', odds: 0.5 }).collect();
        assert_eq!(spell_word(&"a".repeat(500), &rivals, &words), WordSpelling::Unknown);
        assert!(words.0.get() <= 2 + 2 * TRIED + TRIED * TRIED / 2, "{}", words.0.get());
    }
}
