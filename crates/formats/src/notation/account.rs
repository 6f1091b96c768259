//! Bank accounts: IBAN (ISO 13616) and BIC (ISO 9362). Form and check digits, not whether the
//! account exists.

/// Country and length of its IBAN: SWIFT's IBAN registry, the countries of SEPA and those near it.
const LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NL", 18),
    ("NO", 15),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("SA", 24),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("XK", 20),
];

/// Whether `text` is an IBAN: its country's length (15 to 34 where we know none) and the remainder
/// 1 modulo 97. Spaces are allowed.
pub fn is_iban(text: &str) -> bool {
    let iban: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let Some((head, account)) = iban.split_at_checked(4) else { return false };
    let form = head.iter().take(2).all(u8::is_ascii_uppercase)
        && head.iter().skip(2).all(u8::is_ascii_digit)
        && account.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let known = LENGTHS.iter().find(|(country, _)| head.starts_with(country.as_bytes()));
    let length = known.map_or((15..=34).contains(&iban.len()), |(_, length)| iban.len() == *length);
    form && length && remainder_modulo_97(account.iter().chain(head)) == 1
}

/// Whether `text` begins with the code of a country that numbers its accounts by IBAN.
pub fn begins_with_iban_country(text: &str) -> bool {
    LENGTHS.iter().any(|(country, _)| text.starts_with(country))
}

/// Most groups that an IBAN is printed in.
const MAX_GROUPS: usize = 9;

/// The account that the words begin with, printed in groups, without its spaces and the marks around it:
/// `IBAN:DE89 … 00,BIC:…`, `IBANDE89…`, `(de89 … 00)`, `DE89-… 00/BIC`; and how many words it takes.
pub fn find_iban_at(words: &[&str]) -> Option<(String, usize)> {
    account_starts(words.first()?).find_map(|first| read_iban(first, words.get(1..)?))
}

/// The account whose first word is this one.
fn read_iban(first: &str, rest: &[&str]) -> Option<(String, usize)> {
    let known = begins_with_iban_country(&first.to_ascii_uppercase());
    let mut text = String::new();
    let groups = rest.iter().take(MAX_GROUPS - 1);
    for (at, word) in [&first].into_iter().chain(groups).enumerate() {
        for group in word.split(|c: char| !c.is_alphanumeric()) {
            // Of another country no length is known: a mark within is no separator of groups then.
            let whole = known || group.len() == word.len();
            text.push_str(group);
            if known {
                text.make_ascii_uppercase();
            }
            if whole && is_iban(&text) {
                return Some((text, at + 1));
            }
        }
    }
    None
}

/// The suffixes of a word that begin like an IBAN, with two letters and two digits: the word
/// itself, after punctuation, or after a name joined to it.
fn account_starts(word: &str) -> impl Iterator<Item = &str> {
    let marks = word.char_indices().filter(|(_, c)| !c.is_alphanumeric());
    let starts = std::iter::once(0).chain(marks.map(|(at, mark)| at + mark.len_utf8()));
    let ends = starts.filter_map(|at| word.get(at..)).map(|end| {
        let name = end.get(..4).filter(|name| name.eq_ignore_ascii_case("IBAN"));
        name.and_then(|_| end.get(4..)).unwrap_or(end)
    });
    ends.filter(|end| begins_as_account(end))
}

fn begins_as_account(text: &str) -> bool {
    text.as_bytes().split_at_checked(4).is_some_and(|(head, _)| {
        head.iter().take(2).all(u8::is_ascii_alphabetic)
            && head.iter().skip(2).all(u8::is_ascii_digit)
    })
}

/// The beginning of an account where the words name one, `IBAN DE89 3704`, in upper case: whole, broken at the
/// end of the line, or with wrong check digits.
pub fn find_account_start(words: &[&str]) -> Option<String> {
    let (before, rest) = words.split_first()?;
    if !before.to_ascii_uppercase().contains("IBAN") {
        return None;
    }
    let behind = rest.iter().position(|word| word.contains(char::is_alphanumeric));
    let (start, rest) = match account_starts(before).next() {
        Some(start) => (start, rest),
        None => (account_starts(rest.get(behind?)?).next()?, rest.get(behind? + 1..)?),
    };
    let mut text = String::new();
    let length = LENGTHS
        .iter()
        .find(|(country, _)| start.get(..2).is_some_and(|it| it.eq_ignore_ascii_case(country)));
    let (_, length) = length?;
    let groups = [&start]
        .into_iter()
        .chain(rest)
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric()));
    for group in groups.filter(|group| !group.is_empty()) {
        if text.len() >= *length || !group.contains(|c: char| c.is_ascii_digit()) {
            break;
        }
        text.push_str(&group.to_ascii_uppercase());
    }
    Some(text)
}

/// Whether the digits in the third and fourth place are the check digits of the others (ISO 7064, modulo
/// 97 and 10), as in an IBAN or a reference of ISO 11649. Ascii letters and digits alone count.
pub fn has_check_digits(text: &str) -> bool {
    let Some((head, rest)) = text.as_bytes().split_at_checked(4) else { return false };
    remainder_modulo_97(rest.iter().chain(head)) == 1
}

/// The number that digits and letters (A is 10) make, modulo 97.
pub(super) fn remainder_modulo_97<'a>(characters: impl Iterator<Item = &'a u8>) -> u32 {
    characters.fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        b'A'..=b'Z' => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        _ => rest,
    })
}

/// Whether `text` has the form of a BIC: four letters, a country of two, two and possibly three
/// letters or digits.
pub fn is_bic(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    matches!(bytes.len(), 8 | 11)
        && bytes.iter().take(6).all(u8::is_ascii_uppercase)
        && bytes.iter().skip(6).all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iban_has_its_countrys_length_and_check_digits() {
        for (text, expected) in [
            ("DE89 3704 0044 0532 0130 00", true),
            ("GB82WEST12345698765432", true),
            ("NO9386011117947", true),
            ("FR1420041010050500013M02606", true),
            ("DE89370400440532013001", false),
            ("DE98370400440532013000", false),
            ("DE8937040044053201300", false),
            ("de89370400440532013000", false),
            ("DE8é370400440532013000", false),
            ("NO02 8601-117947", false),
            ("NO0286011a17947", false),
            ("1215370400440532013000", false),
            ("DECZ370400440532013000", false),
            ("DE", false),
            ("", false),
        ] {
            assert_eq!(is_iban(text), expected, "{text}");
        }
    }

    #[test]
    fn an_iban_is_found_in_its_groups() {
        let words = ["DE89", "3704", "0044", "0532", "0130", "00", "BIC"];
        assert_eq!(find_iban_at(&words), Some(("DE89370400440532013000".to_owned(), 6)));
        assert_eq!(find_iban_at(&words[1..]), None);
        assert_eq!(find_iban_at(&["DE", "89370400440532013000"]), None, "no first group");
        assert_eq!(find_iban_at(&["NO9386011117947"]).map(|(_, count)| count), Some(1));
    }

    #[test]
    fn marks_around_an_iban_are_no_part_of_it() {
        for text in [
            "DE89 3704 0044 0532 0130 00.",
            "DE89 3704 0044 0532 0130 00, BIC",
            "(DE89 3704 0044 0532 0130 00)",
            "IBAN:DE89370400440532013000;",
            "DE89370400440532013000/COBADEFFXXX",
            "DE89-3704-0044-0532-0130-00",
            "DE89.3704.0044.0532.0130.00.",
            "IBAN:DE89370400440532013000,BIC:COBADEFFXXX",
            "IBANDE89370400440532013000",
            "de89 3704 0044 0532 0130 00",
            "IBAN-Nr.DE89 3704 0044 0532 0130 00",
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let found = find_iban_at(&words).map(|(iban, _)| iban);
            assert_eq!(found.as_deref(), Some("DE89370400440532013000"), "{text}");
        }
        assert_eq!(find_iban_at(&["DE89", "3704", "0044", "0532", "0130", "01."]), None);
        assert_eq!(find_iban_at(&["ZZ61-12345", "67890", "12345"]), None, "of no known length");
    }

    #[test]
    fn what_begins_as_an_account_is_found_where_one_is_named() {
        for (text, expected) in [
            ("IBAN DE89 3704 0044", Some("DE8937040044")),
            ("IBAN: DE89 3704 0044 0532 0130 01 BIC", Some("DE89370400440532013001")),
            ("iban:de89370400440532013001,BIC:X", Some("DE89370400440532013001")),
            ("IBAN DE89 Bank 1234", Some("DE89")),
            ("IBANDE89 3704", Some("DE893704")),
            ("IBAN : DE89 3704", Some("DE893704")),
            ("Order DE89 3704", None),
            ("IBAN XX89 3704", None),
            ("IBAN", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(find_account_start(&words).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_reference_has_check_digits_however_many_letters_it_is_made_of() {
        for (text, expected) in [
            ("RF18539007547034", true),
            ("RF57ABCDEFGHIJKLMNOP", true),
            ("RF57ABCDEFGHIJKLMNPO", false),
            ("RF1", false),
        ] {
            assert_eq!(has_check_digits(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bic_has_eight_or_eleven_characters() {
        for (text, expected) in [
            ("COBADEFFXXX", true),
            ("DEUTDEFF", true),
            ("DEUTDEF", false),
            ("DEUT1EFF", false),
            ("deutdeff", false),
        ] {
            assert_eq!(is_bic(text), expected, "{text}");
        }
    }
}
