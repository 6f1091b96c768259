//! How far the compressed parts of a PDF expand, found out before a parser that has no such limit
//! meets them.
//!
//! The file is searched for streams without being parsed: whatever follows the word `stream` and
//! looks like zlib data is inflated and counted, never kept; what comes out and looks like zlib
//! data again is inflated again. That needs no table of objects, so a broken one hides nothing.
//! Streams whose dictionary names LZW or run lengths are decoded with a cap by lopdf. Not seen are
//! such filters behind an indirect reference, and the streams of encrypted files.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Filters upon filters upon filters: more is an attack, and is counted up to here.
const MAX_NESTING: u32 = 4;
/// More filters than this on one stream are no compression. lopdf undoes up to 8.
const MAX_FILTERS: usize = 8;
/// How much text before the word `stream` is taken for the stream's dictionary.
const DICTIONARY: usize = 16 << 10;
const KEYWORD: &[u8] = b"stream";

/// Refuses a file whose streams expand to `limits.decompressed_bytes` or more.
///
/// Images count each by itself, because a page's images are decoded when the page is read and
/// freed after it; all other streams count together.
///
/// # Errors
/// `too_large`.
pub(super) fn check_expansion(bytes: &[u8], limits: &LimitsConfig) -> Result<(), PageRefusal> {
    let limit = limits.decompressed_bytes.0;
    let mut others: u64 = 0;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(next_stream) {
        let start = at + found;
        at = start;
        let data = bytes.get(start..).unwrap_or_default();
        let dictionary = stream_dictionary(bytes, start);
        let filters = stream_filters(dictionary);
        if filters.len() > MAX_FILTERS {
            let detail = format!("a stream with {} filters", filters.len());
            return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
        }
        let is_image = memchr::memmem::find(dictionary, b"/Image").is_some();
        let allowed = if is_image { limit } else { limit.saturating_sub(others) };
        let expanded = if filters.iter().any(|filter| matches!(filter, StreamFilter::Other(_))) {
            decoded_bytes(data, &filters, allowed)
        } else {
            inflated_bytes(data, allowed, MAX_NESTING)
        };
        if !is_image {
            others += expanded.min(allowed);
        }
        if expanded >= allowed {
            let detail = format!("its compressed parts expand to {limit} bytes or more");
            return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
    }
    Ok(())
}

/// Where the data of the next stream starts.
fn next_stream(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let word = memchr::memmem::find(rest, KEYWORD)? + from;
        let after = word + KEYWORD.len();
        let closes = word >= 3 && bytes.get(word - 3..word) == Some(b"end");
        match bytes.get(after..) {
            Some([b'\r', b'\n', ..]) if !closes => return Some(after + 2),
            Some([b'\n' | b'\r', ..]) if !closes => return Some(after + 1),
            _ => from = after,
        }
    }
}

/// What stands between the object's start and its data, or the last part of it.
fn stream_dictionary(bytes: &[u8], data: usize) -> &[u8] {
    let head = bytes.get(data.saturating_sub(DICTIONARY)..data).unwrap_or_default();
    let own = memchr::memmem::rfind(head, b" obj").unwrap_or(0);
    head.get(own..).unwrap_or_default()
}

/// A compression filter of a stream, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFilter {
    /// Recognised by its data; or an image's, whose size its dimensions bound.
    Seen(&'static str),
    /// Recognised by its name only.
    Other(&'static str),
}

/// The filters that a dictionary names, in the order in which they are undone.
fn stream_filters(dictionary: &[u8]) -> Vec<StreamFilter> {
    let Some(key) = memchr::memmem::rfind(dictionary, b"/Filter") else { return Vec::new() };
    let value = dictionary.get(key + b"/Filter".len()..).unwrap_or_default().trim_ascii_start();
    let is_list = value.starts_with(b"[");
    let end = if is_list { value.iter().position(|byte| *byte == b']') } else { None };
    let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
    let names = value.split(|byte| *byte == b'/').skip(1).map(|rest| {
        let stop = |byte: &u8| !byte.is_ascii_alphanumeric();
        rest.split(stop).next().unwrap_or_default()
    });
    names.take(if is_list { usize::MAX } else { 1 }).filter_map(parse_filter).collect()
}

/// PDF 32000-1 tables 6 and 94 (the short names of inline images, which some readers take
/// anywhere).
fn parse_filter(name: &[u8]) -> Option<StreamFilter> {
    Some(match name {
        b"FlateDecode" | b"Fl" => StreamFilter::Seen("FlateDecode"),
        b"ASCII85Decode" | b"A85" => StreamFilter::Seen("ASCII85Decode"),
        b"ASCIIHexDecode" | b"AHx" => StreamFilter::Seen("ASCIIHexDecode"),
        b"LZWDecode" | b"LZW" => StreamFilter::Other("LZWDecode"),
        b"RunLengthDecode" | b"RL" => StreamFilter::Other("RunLengthDecode"),
        _ => return None,
    })
}

/// Bytes that `data` decodes to, or `allowed` if that or more. What lopdf cannot decode to its end
/// counts as much as it could be at worst, because others decode it up to the damage.
fn decoded_bytes(data: &[u8], filters: &[StreamFilter], allowed: u64) -> u64 {
    let end = memchr::memmem::find(data, b"endstream").unwrap_or(data.len());
    let names = filters.iter().map(|filter| match filter {
        StreamFilter::Seen(name) | StreamFilter::Other(name) => {
            lopdf::Object::Name(name.as_bytes().to_vec())
        }
    });
    let mut dictionary = lopdf::Dictionary::new();
    dictionary.set("Filter", lopdf::Object::Array(names.collect()));
    let content = data.get(..end).unwrap_or_default().trim_ascii_end().to_vec();
    let worst = filters.iter().fold(content.len() as u64, |size, filter| {
        size.saturating_mul(match filter {
            StreamFilter::Seen("FlateDecode") => 1032,
            StreamFilter::Seen(_) => 4,
            StreamFilter::Other("RunLengthDecode") => 64,
            StreamFilter::Other(_) => 4096,
        })
    });
    let stream = lopdf::Stream::new(dictionary, content);
    match stream.decompressed_content_with_limit(usize::try_from(allowed).unwrap_or(usize::MAX)) {
        Ok(content) => content.len() as u64,
        Err(lopdf::Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. })) => {
            allowed
        }
        Err(_undecodable) => worst.min(allowed),
    }
}

/// Bytes that `data` expands to, or at least `allowed` as soon as it is that much.
fn inflated_bytes(data: &[u8], allowed: u64, nesting: u32) -> u64 {
    if !is_zlib(data) {
        return 0;
    }
    count_bytes(ZlibDecoder::new(data), allowed, nesting)
}

/// Method 8, window up to 32 KiB, and the check bits (RFC 1950 §2.2).
fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [method, flags, ..]
        if method & 0x0f == 8 && method >> 4 <= 7
        && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31))
}

/// Reads to the end or to the first damage, which is where other readers stop as well.
fn count_bytes(mut reader: impl Read, allowed: u64, nesting: u32) -> u64 {
    let mut buffer = vec![0; 64 << 10];
    let first = match reader.read(&mut buffer) {
        Ok(count) => count,
        Err(_damage) => return 0,
    };
    let start = buffer.get(..first).unwrap_or_default().to_vec();
    if nesting > 0 && is_zlib(&start) {
        let inner: Box<dyn Read + '_> = Box::new(start.as_slice().chain(reader));
        return count_nested(inner, allowed, nesting);
    }
    let mut total = first as u64;
    while total < allowed {
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(more) => total += more as u64,
        }
    }
    total
}

fn count_nested(reader: Box<dyn Read + '_>, allowed: u64, nesting: u32) -> u64 {
    let mut outer = CountingReader { reader, count: 0 };
    let inner = count_bytes(
        Box::new(ZlibDecoder::new(&mut outer)) as Box<dyn Read + '_>,
        allowed,
        nesting - 1,
    );
    inner.max(outer.count)
}

/// Counts what passes through.
struct CountingReader<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;
    use docmill_core::config::ByteSize;

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
        let head = format!("1 0 obj\n<<{dictionary}>>\nstream\r\n");
        [head.as_bytes(), data, b"\nendstream\nendobj\n"].concat()
    }

    fn reason(file: &[u8], limit: u64) -> Option<OutcomeReason> {
        let limits =
            LimitsConfig { decompressed_bytes: ByteSize(limit), ..LimitsConfig::default() };
        check_expansion(file, &limits).err().map(|refused| refused.reason)
    }

    #[test]
    fn what_expands_beyond_the_limit_is_refused_before_it_is_parsed() {
        let zeros = vec![0; 100_000];
        let single = stream("/Filter/FlateDecode", &zlib(&zeros));
        let double = stream("/Filter[/FlateDecode/FlateDecode]", &zlib(&zlib(&zeros)));
        let image = stream("/Subtype/Image/Filter/FlateDecode", &zlib(&zeros));
        // A run of 128 zeros is two bytes: 129, 0.
        let run = |bytes: &[u8]| bytes.iter().flat_map(|byte| [129, *byte]).collect::<Vec<u8>>();
        let runs = stream("/Filter[/RL/RunLengthDecode]", &run(&run(&[0; 20])));
        let little = stream("/Filter/RL", &run(&[0; 10]));
        let chain = stream(&format!("/Filter[{}]", "/AHx".repeat(9)), b"61>");
        let twice = |file: &[u8]| [file, file].concat();
        #[rustfmt::skip]
        let table = [
            ("just within",                   single.clone(),          100_001, None),
            ("just over",                     single.clone(),          100_000, Some(OutcomeReason::TooLarge)),
            ("two together over",             twice(&single),          150_000, Some(OutcomeReason::TooLarge)),
            ("two images count one by one",   twice(&image),           150_000, None),
            ("an image over",                 image,                   99_999,  Some(OutcomeReason::TooLarge)),
            ("compressed twice",              double,                  99_999,  Some(OutcomeReason::TooLarge)),
            ("run lengths upon run lengths",  runs,                    99_999,  Some(OutcomeReason::TooLarge)),
            ("run lengths within",            little,                  99_999,  None),
            ("a chain of nine filters",       chain,                   99_999,  Some(OutcomeReason::Corrupt)),
            ("damaged data",                  stream("", b"\x78\x9c\xff\xff"), 10, None),
            ("no streams",                    b"%PDF-1.7\n".to_vec(),  1,       None),
        ];
        for (name, file, limit, expected) in table {
            assert_eq!(reason(&file, limit), expected, "{name}");
        }
    }
}
