//! Separator sheets: pages that only say that a document ends before them.
//!
//! The codes are those that a page process read from the pictures. A sheet is a page with such a code
//! and hardly a word; a page with more words is a document with a code on its first page, and stays.

use docmill_core::model::{CodeSymbology, PageRange, PageText};

/// Words of a sheet: a page with more of them is a page of a document.
const MAX_SHEET_WORDS: usize = 40;
/// A page of so few words behind a sheet is its back.
const MAX_BACK_WORDS: usize = 3;

/// Which codes separate documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeparatorCodes {
    /// Payloads; one with `*` at its end is the beginning of payloads.
    pub texts: Vec<String>,
}

impl SeparatorCodes {
    /// Whether a page has one of the codes. Patch codes always separate.
    fn stands_on(&self, page: &PageText) -> bool {
        page.codes.iter().any(|code| {
            let is_text = self.texts.iter().any(|text| match text.strip_suffix('*') {
                Some(beginning) => code.payload.starts_with(beginning),
                None => code.payload == *text,
            });
            code.symbology == CodeSymbology::Patch || is_text
        })
    }
}

/// The documents between separators, without sheets and their backs; none if nothing separates.
pub fn find_separators(pages: &[PageText], codes: &SeparatorCodes) -> Option<Vec<PageRange>> {
    let mut parts: Vec<PageRange> = Vec::new();
    let (mut is_open, mut is_found) = (false, false);
    for (number, page) in (1_u32..).zip(pages) {
        let words: usize = page.lines.iter().map(|line| line.words.len()).sum();
        if codes.stands_on(page) {
            is_found = true;
            is_open = false;
            if words <= MAX_SHEET_WORDS {
                continue;
            }
        }
        match parts.last_mut().filter(|_| is_open) {
            Some(part) => part.last = number,
            None if words <= MAX_BACK_WORDS => continue,
            None => parts.push(PageRange { first: number, last: number }),
        }
        is_open = true;
    }
    is_found.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{BoundingBox, PageCode, TextLine, TextWord};

    /// A page of so many words, with a code.
    fn page(words: usize, code: Option<(CodeSymbology, &str)>) -> PageText {
        let word = TextWord {
            text: "word".into(),
            bounding_box: BoundingBox::default(),
            confidence: 1.0,
            unwitnessed: false,
        };
        let lines = (0..words).map(|_| TextLine { words: vec![word.clone()] }).collect();
        let mut page = PageText::from_native(1, (600.0, 800.0), 1.0, lines);
        page.codes.extend(code.and_then(|(symbology, text)| {
            PageCode::from_bytes(symbology, text.into(), BoundingBox::default())
        }));
        page
    }

    #[test]
    fn sheets_are_left_out_with_their_backs_and_a_page_of_text_with_a_code_begins_a_document() {
        let (patch, text) = (CodeSymbology::Patch, CodeSymbology::Code128);
        let codes = SeparatorCodes { texts: vec!["NEXT".to_owned(), "DOC-*".to_owned()] };
        let sheet = || page(5, Some((patch, "T")));
        #[rustfmt::skip]
        let table = [
            (vec![page(90, None), page(90, None)], None),
            (vec![sheet(), page(90, None), sheet(), page(90, None), page(2, None)], Some(vec![(2, 2), (4, 5)])),
            (vec![page(90, None), sheet(), page(0, None), page(90, None)], Some(vec![(1, 1), (4, 4)])),
            (vec![page(90, None), page(90, Some((text, "DOC-7")))], Some(vec![(1, 1), (2, 2)])),
            (vec![page(90, None), page(9, Some((text, "NEXT"))), page(90, None)], Some(vec![(1, 1), (3, 3)])),
            (vec![page(90, None), page(9, Some((text, "NEXT "))), page(90, Some((CodeSymbology::Qr, "DOC")))], None),
            (vec![sheet(), sheet()], Some(vec![])),
        ];
        for (pages, expected) in table {
            let found = find_separators(&pages, &codes);
            let found = found.map(|parts| parts.iter().map(|it| (it.first, it.last)).collect());
            assert_eq!(found, expected, "{:?}", pages.len());
        }
    }
}
