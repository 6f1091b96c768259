//! The filter of olmOCR's `--apply_filter`: skips PDFs that are forms, not in English, or search
//! engine spam.
//!
//! Source: `olmocr/filter/filter.py` of olmOCR 0.4.27. It samples the text layers of the first five
//! pages; a text of less than 200 letters, or with more other characters than letters, passes,
//! since it may be a scan. Language detection is by another library: uncertain documents pass.

use std::collections::BTreeSet;

use whatlang::Lang;

/// Maximum pages examined.
pub(super) const SAMPLED_PAGES: u32 = 5;
/// Minimum characters for a decision.
const ENOUGH: usize = 200;
/// Words of a text above which it is made to be found, per word.
const SPAM: f64 = 0.004;
/// Words by which it is.
const SPAM_WORDS: [&str; 12] = [
    "download",
    "pdf",
    "epub",
    "mobi",
    "free",
    "ebook",
    "file",
    "save",
    "casino",
    "viagra",
    "cialis",
    "ciprofloxacin",
];

/// The reason to skip a document with this text, without content; `None`: it passes.
pub(super) fn filter_text(text: &str) -> Option<String> {
    let signs = text.chars().count();
    let letters = text.chars().filter(|sign| sign.is_alphabetic()).count();
    if signs < ENOUGH || letters * 2 < signs {
        return None;
    }
    let language = whatlang::detect(text).filter(whatlang::Info::is_reliable);
    if let Some(language) = language.map(|found| found.lang()).filter(|found| *found != Lang::Eng) {
        return Some(format!("not in English ({})", language.code()));
    }
    is_spam(text).then(|| "search engine spam".to_owned())
}

fn is_spam(text: &str) -> bool {
    let spam: BTreeSet<&str> = SPAM_WORDS.into();
    let lower = text.to_lowercase();
    let words = lower.split(|sign| !is_word_char(sign)).filter(|word| !word.is_empty());
    let (mut all, mut of_spam) = (0_u32, 0_u32);
    for word in words {
        all += 1;
        of_spam += u32::from(spam.contains(word));
    }
    f64::from(of_spam) > SPAM * f64::from(all)
}

fn is_word_char(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "The committee met on the first day of the month to consider whether the \
        bridge over the river should be repaired before winter, and it was agreed that the work \
        could begin as soon as the money had been found. Nobody objected to this. ";
    const GERMAN: &str = "Der Ausschuss trat am ersten Tag des Monats zusammen, um zu beraten, ob \
        die Brücke über den Fluss noch vor dem Winter ausgebessert werden sollte, und man war sich \
        einig, dass die Arbeiten beginnen könnten, sobald das Geld gefunden sei. ";
    const RUSSIAN: &str = "Комитет собрался в первый день месяца, чтобы обсудить, следует ли до \
        наступления зимы отремонтировать мост через реку, и все согласились с тем, что работы \
        можно начать, как только будут найдены деньги. Никто против этого не возражал. ";

    #[test]
    fn english_and_texts_with_too_few_letters_pass() {
        let few_letters = "12.50 | 13.75 | 9.00 | a\n".repeat(20);
        let scan = "Le chat";
        for kept in [ENGLISH, &ENGLISH.repeat(3), "", scan, &few_letters] {
            assert_eq!(filter_text(kept), None, "{kept}");
        }
        // 199 characters are too few.
        let short: String = GERMAN.chars().take(199).collect();
        assert_eq!(filter_text(&short), None);
    }

    #[test]
    fn another_language_is_left_out_by_its_name_and_without_its_words() {
        for (text, language) in [(GERMAN, "deu"), (RUSSIAN, "rus")] {
            let reason = filter_text(text).unwrap();
            assert_eq!(reason, format!("not in English ({language})"));
        }
    }

    #[test]
    fn a_text_of_downloads_is_left_out_above_four_words_in_a_thousand() {
        let plain = ENGLISH.repeat(6);
        let words = plain.split_whitespace().count();
        let spam = |count: usize| format!("{plain}{}", "Download: FREE_PDF, free! ".repeat(count));
        assert_eq!(filter_text(&spam(0)), None);
        assert!(filter_text(&spam(1)).unwrap().contains("search engine"), "2 of {words}");
        // One word of many is nothing.
        assert_eq!(filter_text(&format!("{} pdf", ENGLISH.repeat(6))), None);
        assert!(!is_spam("files saved downloads"), "whole words");
    }
}
