//! The names of companies and people, folded so that two spellings of one name are the same.
//!
//! Accents, case, marks, letters that look alike and the legal form at the end do not count. Not
//! promised: names in another script or order, transcribed umlauts, misspellings.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

/// Letters and digits in lower case, without accents, those that look alike as one.
pub fn fold_letters(text: &str) -> String {
    let letters = text.nfkd().flat_map(char::to_lowercase).nfkd();
    let kept = letters.filter(|c| c.is_alphanumeric()).map(look_alike);
    kept.collect::<String>().replace('ß', "ss")
}

/// The words of a name, folded as [`fold_letters`].
pub fn name_words(name: &str) -> Vec<String> {
    // Compatible forms first: what was a letter with its accent is a word's part then.
    let name: String = name.nfkc().collect();
    let words = name.split(|c: char| !c.is_alphanumeric() && !JOINING_MARKS.contains(&c));
    words.map(fold_letters).filter(|word| !word.is_empty()).collect()
}

/// A name in the form in which two are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoldedName {
    /// Its words without the legal form at their end; of a name that is nothing but a form, all.
    pub words: Vec<String>,
    /// The legal form's words as one; empty: it has none.
    pub form: String,
}

impl FoldedName {
    /// Folds a name.
    pub fn new(name: &str) -> Self {
        let mut words = name_words(name);
        let all = words.clone();
        while let Some(length) = form_length(&words) {
            words.truncate(words.len() - length);
        }
        let form = all.get(words.len()..).unwrap_or_default().concat();
        Self { words, form }
    }

    /// Whether both may be one party: the same words, and no two different legal forms.
    pub fn may_equal(&self, other: &Self) -> bool {
        let forms = [&self.form, &other.form];
        self.words.concat() == other.words.concat()
            && (self.form == other.form || forms.iter().any(|form| form.is_empty()))
    }
}

/// The name's words without the legal form at their end, as one.
pub fn name_key(name: &str) -> String {
    FoldedName::new(name).words.concat()
}

/// How many words at the end are a legal form, behind one that is not.
fn form_length(words: &[String]) -> Option<usize> {
    let longest = MAX_FORM_WORDS.min(words.len().saturating_sub(1));
    (1..=longest).rev().find(|length| {
        let end = words.get(words.len() - length..).unwrap_or_default();
        FORMS.contains(&end.concat())
    })
}

/// Marks within a word: `S.p.A.`, a combining accent.
const JOINING_MARKS: [char; 6] = ['.', '\'', '\u{2019}', '\u{300}', '\u{301}', '\u{308}'];

/// Words of a legal form, at most.
const MAX_FORM_WORDS: usize = 4;

/// Legal forms as they are written; their spellings with dots and blanks fold to the same.
static FORMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = LEGAL_FORMS.split_whitespace().map(fold_letters);
    words.chain(LONG_FORMS.iter().map(|form| fold_letters(form))).collect()
});

const LEGAL_FORMS: &str = "\
    GmbH gGmbH mbH GesmbH AG KG KGaA OHG oHG GbR UG haftungsbeschränkt PartG PartGmbB mbB eK eKfm eKfr \
    eU eG eV SE Co Cie Ltd Limited LLC LLP LP PLC Inc Incorporated Corp Corporation Company Pty Pte Pvt \
    Bhd SA SAS SASU SARL EURL SCI SNC SCA SCS SRL SRLS SpA Sapa SAGL SL SLU SAU SLP Lda Ltda EIRELI \
    SAdeCV SdeRLdeCV NV BV BVBA VOF CV VZW ASBL CommV AB ASA AS ApS IS KS Oy Oyj Tmi SPZOO SPK SPJ Kft Zrt \
    Nyrt Bt sro as vos doo jdoo dd DOOEL EOOD OOD EAD AD ООД ЕООД АД ЕАД ООО ЗАО ПАО ОАО ТОВ ΑΕ ΕΠΕ ΙΚΕ ΟΕ ΕΕ \
    OÜ MTÜ UAB MB SIA ehf hf AŞ FZE FZCO WLL PJSC PSC";

const LONG_FORMS: [&str; 9] = [
    "Aktiengesellschaft",
    "Gesellschaft mit beschränkter Haftung",
    "Kommanditgesellschaft",
    "Aktiebolag",
    "spol s r.o.",
    "Sp. z o.o.",
    "Société anonyme",
    "und Co",
    "and Co",
];

/// The Latin letter that looks like this one, mostly as a capital.
fn look_alike(letter: char) -> char {
    match letter {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' | 'đ' | 'ð' => 'd',
        'е' | 'ε' => 'e',
        'ɡ' => 'g',
        'н' | 'һ' | 'η' => 'h',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ł' => 'l',
        'м' | 'μ' => 'm',
        'ν' => 'n',
        'о' | 'ο' | 'ø' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'ү' | 'υ' => 'y',
        'ζ' => 'z',
        'ς' => 'σ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_may_be_one_party_unless_their_legal_forms_differ() {
        for (one, other, same) in [
            ("Muster GmbH", "MUSTER G.m.b.H.", true),
            ("Muster GmbH", "Muster", true),
            ("Muster GmbH", "Muster AG", false),
            ("Muster GmbH", "Muster GmbH & Co. KG", false),
            ("Muster GmbH", "Muster Bau GmbH", false),
            ("AG", "ag", true),
            ("AG", "AB", false),
        ] {
            let [one, other] = [one, other].map(FoldedName::new);
            assert_eq!(one.may_equal(&other), same, "{one:?} {other:?}");
        }
    }
}
