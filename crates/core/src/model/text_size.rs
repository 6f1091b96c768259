//! How much text a document has, held against how much it may have: where its pages are read, and
//! once more where they are received. Nothing here looks at what the text says.

use std::collections::BTreeMap;

use super::PageText;

/// Memory of a word besides its letters: position, confidence, and the rounding of a small
/// allocation.
const WORD_BYTES: u64 = 80;
/// Bytes that a line takes in memory besides its words.
const LINE_BYTES: u64 = 32;

/// Bytes that a code takes besides what it says.
const CODE_BYTES: u64 = 128;

/// Most text that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// Words of one page.
    pub page_words: u64,
    /// Bytes in memory of all pages of a document, as [`PageText::memory_bytes`] counts them.
    pub document_bytes: u64,
}

/// More text than is kept. Names numbers and settings, never text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextOverflow {
    /// One page has too many words.
    #[error("page {page} has {words} words, limits.page_words is {limit}")]
    Page {
        /// Number of the page, starting at 1.
        page: u32,
        /// Words on it.
        words: u64,
        /// Words that it may have.
        limit: u64,
    },
    /// All pages together have too much text.
    #[error("the text of its pages takes more than {limit} bytes, which limits.text_bytes allows")]
    Document {
        /// Bytes that it may take.
        limit: u64,
    },
}

/// How much text there is in one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextAmount {
    /// Words.
    pub words: u64,
    /// Bytes of their letters, as UTF-8, and of what is kept of codes.
    pub letters: u64,
    /// Lines.
    pub lines: u64,
}

impl TextAmount {
    /// About how many bytes it takes in memory: the letters, and for each word and line what is kept
    /// of it besides.
    pub fn memory_bytes(self) -> u64 {
        self.letters + WORD_BYTES * self.words + LINE_BYTES * self.lines
    }
}

impl PageText {
    /// How much text it has.
    pub fn amount(&self) -> TextAmount {
        let words = self.lines.iter().flat_map(|line| &line.words);
        let letters: u64 = words.map(|word| count(word.text.len())).sum();
        let codes: u64 = self.codes.iter().map(|code| code_bytes(&code.payload)).sum();
        let lines = count(self.lines.len());
        TextAmount { words: self.word_count(), letters: letters + codes, lines }
    }

    /// Number of its words.
    pub fn word_count(&self) -> u64 {
        self.lines.iter().map(|line| count(line.words.len())).sum()
    }

    /// About how many bytes its text takes in memory, see [`TextAmount::memory_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.amount().memory_bytes()
    }
}

impl TextLimits {
    /// Holds one page against them.
    ///
    /// # Errors
    /// It has too many words, or more text than a whole document may have.
    pub fn check_page(&self, page: &PageText) -> Result<(), TextOverflow> {
        self.check_amount(page.number, page.amount())
    }

    fn check_amount(&self, page: u32, amount: TextAmount) -> Result<(), TextOverflow> {
        let (words, limit) = (amount.words, self.page_words);
        if words > limit {
            return Err(TextOverflow::Page { page, words, limit });
        }
        let limit = self.document_bytes;
        if amount.memory_bytes() > limit { Err(TextOverflow::Document { limit }) } else { Ok(()) }
    }
}

/// Adds up the text of a document's pages as they come in. A page that comes again counts as it was
/// last.
#[derive(Debug, Clone)]
pub struct TextMeter {
    limits: TextLimits,
    pages: BTreeMap<u32, u64>,
    bytes: u64,
}

impl TextMeter {
    /// A document without pages so far.
    pub fn new(limits: TextLimits) -> Self {
        Self { limits, pages: BTreeMap::new(), bytes: 0 }
    }

    /// Counts a page in; returns the bytes of all pages so far.
    ///
    /// # Errors
    /// The page, or the document with it, has more text than is kept.
    pub fn add_page(&mut self, page: &PageText) -> Result<u64, TextOverflow> {
        self.add_amount(page.number, page.amount())
    }

    /// Counts in how much text the page of this number, from 1, has.
    ///
    /// # Errors
    /// As [`TextMeter::add_page`].
    pub fn add_amount(&mut self, page: u32, amount: TextAmount) -> Result<u64, TextOverflow> {
        self.limits.check_amount(page, amount)?;
        let bytes = amount.memory_bytes();
        let before = self.pages.insert(page, bytes).unwrap_or(0);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(bytes);
        let limit = self.limits.document_bytes;
        if self.bytes > limit { Err(TextOverflow::Document { limit }) } else { Ok(self.bytes) }
    }
}

/// About how many bytes a code takes. Control characters, which words never have, take six bytes each
/// where they are stored.
fn code_bytes(payload: &str) -> u64 {
    CODE_BYTES + 3 * count(payload.len())
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{BoundingBox, CodeSymbology, PageCode, TextLine, TextWord};
    use super::*;

    fn page(number: u32, words: usize, letters: usize) -> PageText {
        let word = || TextWord {
            text: "x".repeat(letters).into(),
            bounding_box: BoundingBox::default(),
            confidence: 1.0,
            unwitnessed: false,
        };
        let lines = vec![TextLine { words: (0..words).map(|_| word()).collect() }];
        PageText::from_native(number, (1.0, 1.0), 1.0, lines)
    }

    #[test]
    fn a_page_with_too_many_words_is_refused_whatever_the_limit_of_the_document() {
        let limits = TextLimits { page_words: 3, document_bytes: 1 << 20 };
        assert_eq!(limits.check_page(&page(1, 3, 1)), Ok(()));
        let over = TextOverflow::Page { page: 2, words: 4, limit: 3 };
        assert_eq!(limits.check_page(&page(2, 4, 1)), Err(over));
    }

    #[test]
    fn the_text_of_all_pages_adds_up_and_a_page_that_comes_again_counts_once() {
        // 10 letters and 80 bytes for each of two words, 32 for the line.
        let each = 2 * (10 + 80) + 32;
        let limits = TextLimits { page_words: 10, document_bytes: 3 * each };
        let mut meter = TextMeter::new(limits);
        assert_eq!(meter.add_page(&page(1, 2, 10)), Ok(each));
        assert_eq!(meter.add_page(&page(2, 2, 10)), Ok(2 * each));
        assert_eq!(meter.add_page(&page(2, 2, 10)), Ok(2 * each));
        assert_eq!(meter.add_page(&page(3, 2, 10)), Ok(3 * each));
        let over = TextOverflow::Document { limit: 3 * each };
        assert_eq!(meter.add_page(&page(4, 1, 1)), Err(over));
    }

    #[test]
    fn a_page_takes_at_most_twice_its_memory_in_the_form_it_is_stored_in() {
        let worst = |text: &str, words| {
            let place = -1.175_494_4e-38;
            let word = TextWord {
                text: text.into(),
                bounding_box: BoundingBox { x: place, y: place, w: place, h: place },
                confidence: place,
                unwitnessed: false,
            };
            let lines: Vec<TextLine> = vec![TextLine { words: vec![word; words] }; 100];
            PageText { lines, ..page(u32::MAX, 1, 1) }
        };
        let place = -1.175_494_4e-38;
        let code = PageCode {
            symbology: CodeSymbology::Qr,
            payload: "\u{1d}".repeat(PageCode::MAX_BYTES),
            bytes: true,
            bounding_box: BoundingBox { x: place, y: place, w: place, h: place },
        };
        let codes = |payload: &str| {
            let code = PageCode { payload: payload.to_owned(), ..code.clone() };
            PageText { codes: vec![code; PageCode::MAX_PER_PAGE], ..page(1, 0, 0) }
        };
        let coded = [codes(&code.payload), codes("")];
        for page in coded.into_iter().chain([
            worst("\"", 1),
            worst("\"\\", 50),
            worst(&"\\".repeat(500), 3),
            page(1, 9, 9),
        ]) {
            let stored = serde_json::to_vec(&page).unwrap().len() as u64;
            // The page's other attributes take less than this.
            assert!(stored <= 2 * page.memory_bytes() + 500, "{stored} {}", page.memory_bytes());
        }
    }

    #[test]
    fn one_long_word_is_as_much_text_as_many_short_ones() {
        let limits = TextLimits { page_words: 10, document_bytes: 1000 };
        assert!(limits.check_page(&page(1, 1, 2000)).is_err());
    }
}
