//! The streams of a file where they lie in it, found without parsing it, in work by its size.
//!
//! Every byte is looked at a few times at most: a dictionary begins behind the stream before it, and
//! one search finds the end of all streams that have the same. Overlapping scans are counted
//! ([`ScanWork`]). Not promised: that a dictionary is found that holds the word `stream` itself.

use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// How much text before the word `stream` is taken for the stream's dictionary.
const MAX_DICTIONARY_BYTES: usize = 16 << 10;
const KEYWORD: &[u8] = b"stream";
const END: &[u8] = b"endstream";
/// Blanks between data of the declared length and the keyword that ends it.
const MAX_BLANKS: usize = 64;
/// Bytes that may be looked at for each byte of a file. Honest files need three or four; streams
/// that hold others, which hold others, need as many as there are levels.
const MAX_LOOKS: u64 = 32;
/// The same of any file, however small.
const MIN_LOOKED_AT_BYTES: u64 = 4 << 20;

/// Bytes that a scan has looked at, of which it may only look at so many.
pub(super) struct ScanWork {
    counted: u64,
    most: u64,
}

impl ScanWork {
    pub(super) fn for_file(bytes: usize) -> Self {
        let most = (bytes as u64).saturating_mul(MAX_LOOKS).max(MIN_LOOKED_AT_BYTES);
        Self { counted: 0, most }
    }

    /// Counts a stream and its dictionary.
    ///
    /// # Errors
    /// `corrupt`: more is looked at than in any honest file.
    pub(super) fn count_stream(&mut self, data: &StreamData<'_>) -> Result<(), PageRefusal> {
        let dictionary = data.dictionary.map_or(0, <[u8]>::len);
        self.count_bytes((dictionary + data.content().len()) as u64)
    }

    /// Counts bytes that were looked at.
    ///
    /// # Errors
    /// As [`ScanWork::count_stream`].
    pub(super) fn count_bytes(&mut self, bytes: u64) -> Result<(), PageRefusal> {
        self.counted = self.counted.saturating_add(bytes);
        if self.counted <= self.most {
            return Ok(());
        }
        let detail = "streams within streams";
        Err(PageRefusal::new(OutcomeReason::Corrupt, detail))
    }

    #[cfg(test)]
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }
}

/// A stream where it lies in the file.
pub(super) struct StreamData<'a> {
    bytes: &'a [u8],
    start: usize,
    /// Where the data ends that has no length: before the next keyword for it.
    end: usize,
    /// `None` where none was found before it.
    pub(super) dictionary: Option<&'a [u8]>,
}

impl<'a> StreamData<'a> {
    /// Everything from its start to the end of the file.
    pub(super) fn open_data(&self) -> &'a [u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Its data: of the declared length if it ends there, else up to the keyword that ends it.
    pub(super) fn content(&self) -> &'a [u8] {
        let stated = self.dictionary.and_then(stated_length).and_then(|length| {
            let (content, after) = self.open_data().split_at_checked(length)?;
            let after = after.get(..MAX_BLANKS).unwrap_or(after);
            after.trim_ascii_start().starts_with(END).then_some(content)
        });
        stated.unwrap_or_else(|| self.bytes.get(self.start..self.end).unwrap_or_default())
    }
}

/// The streams of a file, in the order in which they lie in it.
pub(super) fn streams_of(bytes: &[u8]) -> impl Iterator<Item = StreamData<'_>> {
    StreamSearch { bytes, at: 0, end: NextEnd { keyword: 0, data: 0 } }
}

struct StreamSearch<'a> {
    bytes: &'a [u8],
    /// Behind the beginning of the last stream.
    at: usize,
    end: NextEnd,
}

/// The end of streams that was found last.
struct NextEnd {
    keyword: usize,
    /// Before the blanks in front of it.
    data: usize,
}

impl<'a> Iterator for StreamSearch<'a> {
    type Item = StreamData<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (bytes, before) = (self.bytes, self.at);
        let start = next_stream(bytes, before)?;
        self.at = start;
        if self.end.keyword < start {
            let open = bytes.get(start..).unwrap_or_default();
            let keyword = memchr::memmem::find(open, END).map_or(bytes.len(), |at| start + at);
            let data = bytes.get(start..keyword).unwrap_or_default().trim_ascii_end().len();
            self.end = NextEnd { keyword, data: start + data };
        }
        let dictionary = stream_dictionary(bytes, before, start);
        Some(StreamData { bytes, start, end: self.end.data.max(start), dictionary })
    }
}

/// Where the data of the next stream from `from` on starts.
fn next_stream(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find_iter(bytes.get(from..)?, KEYWORD).find_map(|at| {
        let word = from + at;
        let after = word + KEYWORD.len();
        let closes = bytes.get(..word).is_some_and(|before| before.ends_with(b"end"));
        match bytes.get(after..) {
            Some([b'\r', b'\n', ..]) if !closes => Some(after + 2),
            Some([b'\n' | b'\r', ..]) if !closes => Some(after + 1),
            _ => None,
        }
    })
}

/// Bytes between the object's start and its data; `None` if that is further away than dictionaries
/// are long, or before the stream that begins at `before`.
fn stream_dictionary(bytes: &[u8], before: usize, data: usize) -> Option<&[u8]> {
    let head = bytes.get(data.saturating_sub(MAX_DICTIONARY_BYTES).max(before)..data)?;
    let own = memchr::memmem::rfind(head, b" obj")?;
    head.get(own..)
}

/// The number behind `/Length`, if it is one.
fn stated_length(dictionary: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"/Length";
    let mut found = memchr::memmem::find_iter(dictionary, KEY);
    found.find_map(|at| {
        let value = dictionary.get(at + KEY.len()..)?.trim_ascii_start();
        let end = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
        let (digits, after) = value.split_at_checked(end)?;
        // `/Length 12 0 R` is a reference; its number is an object's.
        let is_reference = after.trim_ascii_start().first().is_some_and(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| !is_reference)
    })
}
