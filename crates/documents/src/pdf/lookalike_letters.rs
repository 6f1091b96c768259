//! Letters of Cyrillic and Greek that are drawn as Latin ones, and words that pass for others by
//! them.
//!
//! Not promised: that an exchange among letters without a Latin twin is detected.

use docmill_core::model::TextLine;

/// Letters, and the Latin ones that every font draws the same.
const CYRILLIC_TWINS: [(char, char); 29] = [
    ('\u{410}', 'A'),
    ('\u{412}', 'B'),
    ('\u{415}', 'E'),
    ('\u{41c}', 'M'),
    ('\u{41d}', 'H'),
    ('\u{41e}', 'O'),
    ('\u{420}', 'P'),
    ('\u{421}', 'C'),
    ('\u{422}', 'T'),
    ('\u{425}', 'X'),
    ('\u{430}', 'a'),
    ('\u{435}', 'e'),
    ('\u{43e}', 'o'),
    ('\u{440}', 'p'),
    ('\u{441}', 'c'),
    ('\u{443}', 'y'),
    ('\u{445}', 'x'),
    ('\u{401}', '\u{cb}'),
    ('\u{405}', 'S'),
    ('\u{406}', 'I'),
    ('\u{407}', '\u{cf}'),
    ('\u{408}', 'J'),
    ('\u{451}', '\u{eb}'),
    ('\u{455}', 's'),
    ('\u{456}', 'i'),
    ('\u{457}', '\u{ef}'),
    ('\u{458}', 'j'),
    ('\u{4ae}', 'Y'),
    ('\u{501}', 'd'),
];
const GREEK_TWINS: [(char, char); 15] = [
    ('\u{391}', 'A'),
    ('\u{392}', 'B'),
    ('\u{395}', 'E'),
    ('\u{396}', 'Z'),
    ('\u{397}', 'H'),
    ('\u{399}', 'I'),
    ('\u{39a}', 'K'),
    ('\u{39c}', 'M'),
    ('\u{39d}', 'N'),
    ('\u{39f}', 'O'),
    ('\u{3a1}', 'P'),
    ('\u{3a4}', 'T'),
    ('\u{3a5}', 'Y'),
    ('\u{3a7}', 'X'),
    ('\u{3bf}', 'o'),
];

/// A script some of whose letters are drawn as Latin ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TwinScript {
    Cyrillic,
    Greek,
}

impl TwinScript {
    const ALL: [Self; 2] = [Self::Cyrillic, Self::Greek];

    fn of_letter(letter: char) -> Option<Self> {
        match letter {
            '\u{400}'..='\u{52f}' => Some(Self::Cyrillic),
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Self::Greek),
            _ => None,
        }
        .filter(|_| letter.is_alphabetic())
    }

    fn twins(self) -> &'static [(char, char)] {
        match self {
            Self::Cyrillic => &CYRILLIC_TWINS,
            Self::Greek => &GREEK_TWINS,
        }
    }
}

/// The Latin letter that is drawn as this letter of another script.
pub(crate) fn latin_twin(letter: char) -> Option<char> {
    let twins = TwinScript::of_letter(letter)?.twins();
    twins.iter().find(|(own, _)| *own == letter).map(|(_, latin)| *latin)
}

/// Marks words that pass for Latin ones: that mix Latin letters with letters drawn like some, or
/// that have such letters on a page without any other letter of their script.
pub(crate) fn mark_lookalikes(lines: &mut [TextLine]) {
    let words = lines.iter().flat_map(|line| &line.words);
    let letters = words.flat_map(|word| word.text.chars());
    let is_written = TwinScript::ALL
        .map(|script| letters.clone().any(|it| is_own_letter(it, script)).then_some(script));
    for word in lines.iter_mut().flat_map(|line| &mut line.words) {
        let has_latin = word.text.chars().any(is_latin);
        let twins = word.text.chars().filter(|letter| latin_twin(*letter).is_some());
        word.unwitnessed |= twins
            .filter_map(TwinScript::of_letter)
            .any(|script| has_latin || !is_written.contains(&Some(script)));
    }
}

/// Whether a letter is of this script and drawn as no Latin one.
fn is_own_letter(letter: char, script: TwinScript) -> bool {
    TwinScript::of_letter(letter) == Some(script) && latin_twin(letter).is_none()
}

fn is_latin(letter: char) -> bool {
    letter.is_alphabetic()
        && letter < '\u{250}'
        && !matches!(letter, '\u{aa}' | '\u{b5}' | '\u{ba}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{BoundingBox, TextWord};

    #[test]
    fn a_word_that_passes_for_a_latin_one_is_marked() {
        #[rustfmt::skip]
        let table = [
            ("Latin",                      "Harbour Ltd",                      "Harbour Ltd"),
            ("one letter of Cyrillic",     "H\u{430}rbour Ltd",                "H\u{430}rbour* Ltd"),
            ("one letter of Greek",        "Harb\u{3bf}ur Ltd",                "Harb\u{3bf}ur* Ltd"),
            ("all letters",                "\u{410}\u{421}\u{41c}\u{415} Ltd", "\u{410}\u{421}\u{41c}\u{415}* Ltd"),
            ("on a page in Russian",       "\u{410}\u{41e} \u{43f}\u{440}\u{438}\u{43d}\u{442}", "\u{410}\u{41e} \u{43f}\u{440}\u{438}\u{43d}\u{442}"),
            ("mixed there",                "\u{41e}O\u{41e} \u{43f}\u{438}",   "\u{41e}O\u{41e}* \u{43f}\u{438}"),
            ("units and formulas",         "5 k\u{3a9} 3 \u{3bc}m \u{b5}g \u{394}T", "5 k\u{3a9} 3 \u{3bc}m \u{b5}g \u{394}T"),
        ];
        for (name, text, expected) in table {
            let word = |text: &str| TextWord {
                text: text.into(),
                bounding_box: BoundingBox { x: 0.0, y: 0.0, w: 9.0, h: 9.0 },
                confidence: 1.0,
                unwitnessed: false,
            };
            let mut lines = [TextLine { words: text.split(' ').map(word).collect() }];
            mark_lookalikes(&mut lines);
            let words = lines[0].words.iter();
            let marked: Vec<String> = words
                .map(|word| format!("{}{}", word.text, if word.unwitnessed { "*" } else { "" }))
                .collect();
            assert_eq!(marked.join(" "), expected, "{name}");
        }
    }
}
