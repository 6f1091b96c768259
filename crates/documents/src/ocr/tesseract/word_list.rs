//! Word lists of Tesseract's language data, for readers without a dictionary of their own.
//!
//! `NAME.traineddata` holds, beside the network, a list of the language's words as a graph: each
//! edge is a letter, with the position of the next letters and whether a word ends here
//! (Tesseract's `SquishedDawg`). The library's wrapper gives no access to it, so it is parsed here:
//! an edge is 64 bits, from the lowest the letter's number, three flags, the position of the next
//! node.
//!
//! Not promised: words beside those that the data has. Compounds are missing unless they are taken apart, so
//! is most of what is no prose; nothing is wrong because it is not in the list.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::linked::DATA;
use docmill_core::fault::{Error, Result};

/// Parts of a data file, by their place in its table.
const WORDS: usize = 19;
const LETTERS: usize = 21;
/// First bytes of the graph.
const MAGIC: [u8; 2] = 42_i16.to_le_bytes();
/// Bytes before its edges: the magic, how many letters there are, how many edges.
const HEAD: usize = 10;
/// Flags of an edge: the last of its node; a word ends here. One between them is not used here.
const LAST: u64 = 1;
const ENDS: u64 = 4;
const FLAG_BITS: u32 = 3;
/// Minimum letters of a part of a compound; below, the joints between two parts.
const MIN_PART_LETTERS: usize = 4;
const JOINT: char = 's';
/// Longer words are no compounds, and would be slow to split.
const MAX_COMPOUND_LETTERS: usize = 40;
/// Lists that are kept, of 1 to 4 MB each.
const KEPT: usize = 3;

/// Word lists of the languages that are installed, each read when it is first asked for.
#[derive(Debug)]
pub(in crate::ocr) struct LanguageWords {
    data: PathBuf,
    languages: Vec<String>,
    kept: Mutex<Vec<(String, Arc<WordList>)>>,
}

impl LanguageWords {
    /// Of these languages, whose data lies in the folder `data`.
    pub(super) fn new(data: PathBuf, languages: Vec<String>) -> Self {
        Self { data, languages, kept: Mutex::default() }
    }

    /// The languages there are.
    pub(in crate::ocr) fn languages(&self) -> &[String] {
        &self.languages
    }

    /// The words of `language`; empty where its data has no list, or one of another format. Pages
    /// are then read without a dictionary.
    ///
    /// # Errors
    /// The data cannot be read.
    pub(in crate::ocr) fn of_language(&self, language: &str) -> Result<Arc<WordList>> {
        if let Some(words) = self.find_kept(language) {
            return Ok(words);
        }
        // Not under the lock: readers of other languages would wait for the disk. Two requests at
        // once for the same one read it twice.
        let words = Arc::new(WordList::read(&self.data.join(format!("{language}.{DATA}")))?);
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((language.to_owned(), Arc::clone(&words)));
        Ok(words)
    }

    fn find_kept(&self, language: &str) -> Option<Arc<WordList>> {
        let kept = self.kept.lock();
        kept.iter().find(|(name, _)| name == language).map(|(_, words)| Arc::clone(words))
    }
}

/// The words of one language.
#[derive(Debug, Default)]
pub(in crate::ocr) struct WordList {
    edges: Vec<u64>,
    letters: HashMap<char, u64>,
    letter_bits: u32,
}

impl WordList {
    fn read(file: &Path) -> Result<Self> {
        let what = format!("the words in `{}`", file.display());
        let bytes = std::fs::read(file)
            .map_err(|error| Error::internal(format!("cannot read {what}")).with_source(error))?;
        Ok(Self::parse(&bytes).unwrap_or_else(|| {
            tracing::warn!("{what} are not understood: what is read is not held against them");
            Self::default()
        }))
    }

    /// From a data file's bytes; `None`: they are none.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let Some(graph) = part_of(bytes, WORDS)? else { return Some(Self::default()) };
        let names = std::str::from_utf8(part_of(bytes, LETTERS)??).ok()?;
        let mut lines = names.lines();
        let count: usize = lines.next()?.trim().parse().ok()?;
        let mut letters = HashMap::new();
        for (number, line) in lines.take(count).enumerate() {
            let mut name = line.split(' ').next()?.chars();
            if let (Some(letter), None) = (name.next(), name.next()) {
                letters.insert(letter, u64::try_from(number).ok()?);
            }
        }
        if graph.get(..2)? != MAGIC {
            return None;
        }
        let known = u32::try_from(read_i32(graph, 2)?).ok()?;
        let count = usize::try_from(read_i32(graph, 6)?).ok()?;
        let edges = graph.get(HEAD..HEAD.checked_add(count.checked_mul(8)?)?)?;
        let edges = edges.chunks_exact(8).filter_map(|edge| edge.try_into().ok());
        Some(Self {
            edges: edges.map(u64::from_le_bytes).collect(),
            letters,
            letter_bits: u32::BITS - known.leading_zeros(),
        })
    }

    /// Whether `word` is one of them as it stands, in small letters, or with a capital first.
    pub(in crate::ocr) fn knows(&self, word: &str) -> bool {
        let small: String = word.chars().flat_map(char::to_lowercase).collect();
        let mut rest = small.chars();
        let capital: String =
            rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
        [word, small.as_str(), capital.as_str()].into_iter().any(|word| self.has(word))
    }

    /// Whether it is one of them, or put together of two or more: `Rechnungsersteller`. The lists have few
    /// of the words that German and its neighbours make so.
    pub(in crate::ocr) fn knows_parts(&self, word: &str) -> bool {
        if word.chars().nth(MAX_COMPOUND_LETTERS).is_some() {
            return false;
        }
        self.knows(word)
            || word.char_indices().skip(MIN_PART_LETTERS).any(|(at, _)| {
                let (first, rest) = word.split_at(at);
                rest.chars().nth(MIN_PART_LETTERS - 1).is_some()
                    && self.knows(first)
                    && [Some(rest), rest.strip_prefix(JOINT)]
                        .into_iter()
                        .flatten()
                        .any(|rest| self.knows_parts(rest))
            })
    }

    fn has(&self, word: &str) -> bool {
        let mut letters = word.chars().peekable();
        let mut node = 0;
        while let Some(letter) = letters.next() {
            let is_last = letters.peek().is_none();
            let Some(edge) = self.letters.get(&letter).and_then(|it| self.edge(node, *it, is_last))
            else {
                return false;
            };
            if is_last {
                return true;
            }
            node = usize::try_from(edge >> (self.letter_bits + FLAG_BITS)).unwrap_or(0);
            if node == 0 {
                // Nothing follows here: no edge leads back to the beginning.
                return false;
            }
        }
        false
    }

    /// The edge of the node that begins at `node` with this letter, one at which a word ends where
    /// that is asked for.
    fn edge(&self, node: usize, letter: u64, ends: bool) -> Option<u64> {
        for edge in self.edges.get(node..)? {
            let flags = edge >> self.letter_bits;
            let is_letter = edge & !(u64::MAX << self.letter_bits) == letter;
            if is_letter && (!ends || flags & ENDS != 0) {
                return Some(*edge);
            }
            if flags & LAST != 0 {
                return None;
            }
        }
        None
    }
}

/// Offset of a part by the table of a data file.
fn part_offset(bytes: &[u8], part: usize) -> Option<i64> {
    let from = part.checked_mul(8)?.checked_add(4)?;
    Some(i64::from_le_bytes(bytes.get(from..from.checked_add(8)?)?.try_into().ok()?))
}

/// A part of a data file: `Some(None)` where it has none; `None` where the table is broken. The table
/// is how many parts there may be, and where each begins, -1 for none; a part ends where the next
/// one begins.
fn part_of(bytes: &[u8], part: usize) -> Option<Option<&[u8]>> {
    let count = usize::try_from(read_i32(bytes, 0)?).ok()?;
    if part >= count {
        return Some(None);
    }
    let Ok(start) = usize::try_from(part_offset(bytes, part)?) else { return Some(None) };
    let mut end = bytes.len();
    for later in part + 1..count {
        if let Ok(next) = usize::try_from(part_offset(bytes, later)?) {
            end = next;
            break;
        }
    }
    bytes.get(start..end).map(Some)
}

fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data file with the words `ab`, `abc` and `Öa`.
    fn data() -> Vec<u8> {
        let letters = "5\nNULL 0\na 3\nb 3\nc 3\nÖ 5\n";
        let edge = |letter: u64, flags: u64, next: u64| letter | flags << 3 | next << 6;
        let edges = [
            edge(1, 0, 2),
            edge(4, LAST, 3),
            edge(2, LAST | ENDS, 4),
            edge(1, LAST | ENDS, 0),
            edge(3, LAST | ENDS, 0),
        ];
        let mut graph = MAGIC.to_vec();
        graph.extend(5_i32.to_le_bytes());
        graph.extend(5_i32.to_le_bytes());
        graph.extend(edges.iter().flat_map(|edge| edge.to_le_bytes()));
        let table = 4 + 22 * 8;
        let mut begins = [-1_i64; 22];
        begins[WORDS] = table;
        begins[LETTERS] = table + i64::try_from(graph.len()).unwrap();
        let mut bytes = 22_i32.to_le_bytes().to_vec();
        bytes.extend(begins.iter().flat_map(|begin| begin.to_le_bytes()));
        bytes.extend(graph);
        bytes.extend(letters.bytes());
        bytes
    }

    #[test]
    fn words_are_known_whatever_their_case_and_parts_of_words_are_none() {
        let words = WordList::parse(&data()).unwrap();
        let known = ["ab", "abc", "Öa", "AB", "Abc", "öa"];
        assert!(known.iter().all(|word| words.knows(word)));
        for unknown in ["a", "b", "abcc", "ba", "Ö", "Öab", "abcab", "x", ""] {
            assert!(!words.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn data_without_words_knows_none_and_broken_data_is_told_from_it() {
        let mut without = data();
        without[4 + WORDS * 8..4 + WORDS * 8 + 8].copy_from_slice(&(-1_i64).to_le_bytes());
        assert!(!WordList::parse(&without).unwrap().knows("ab"));
        let whole = data();
        assert!(WordList::parse(&whole[..200]).is_none(), "cut in its graph");
        assert!(WordList::parse(&whole[..40]).is_none(), "cut in its table");
        let mut other = data();
        other[4 + 22 * 8] = 7;
        assert!(WordList::parse(&other).is_none(), "another graph");
        // An edge that leads beyond the end leads nowhere.
        let mut beyond = data();
        let first = 4 + 22 * 8 + HEAD;
        beyond[first..first + 8].copy_from_slice(&(1_u64 | 9999 << 6).to_le_bytes());
        assert!(!WordList::parse(&beyond).unwrap().knows("ab"));
    }

    #[test]
    fn the_data_that_is_installed_has_words_of_its_language() {
        let data = super::super::linked::data_folder().unwrap();
        let words = LanguageWords::new(data, vec!["eng".to_owned()]);
        let english = words.of_language("eng").unwrap();
        for word in ["amount", "Total", "RECEIPT", "quantity"] {
            assert!(english.knows(word), "{word}");
        }
        for word in ["anount", "Tctal", "quanuty"] {
            assert!(!english.knows(word), "{word}");
        }
        assert!(words.of_language("none").is_err());
    }

    #[test]
    fn a_compound_is_known_by_its_parts_unless_one_is_no_word_or_hardly_one() {
        let data = super::super::linked::data_folder().unwrap();
        let words = LanguageWords::new(data, vec!["eng".to_owned()]);
        let english = words.of_language("eng").unwrap();
        for compound in ["amount", "Amountpayment", "amountspayment", "totalamountpayment"] {
            assert!(english.knows_parts(compound), "{compound}");
        }
        let endless = "amount".repeat(500);
        for none in ["anountpayment", "amountxpayment", "amountpay", "amountpaynent", &endless] {
            assert!(!english.knows_parts(none), "{none}");
        }
    }

    #[test]
    fn data_whose_list_is_not_understood_is_read_without_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("xxx.traineddata"), &data()[..200]).unwrap();
        let words = LanguageWords::new(folder.path().to_owned(), vec!["xxx".to_owned()]);
        assert!(!words.of_language("xxx").unwrap().knows("ab"));
    }
}
