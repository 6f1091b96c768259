//! Decompressed size of a PDF's streams, found before the file reaches a parser without such a
//! limit, and counted as that parser (hayro) would decode them.
//!
//! The file is searched for streams without being parsed ([`check_expansion`]): that needs no table
//! of objects, so a broken one hides nothing. The filters of a dictionary are undone in their
//! order, with a cap. Anything that looks like zlib data is inflated and counted as well. Where
//! zlib gives up, hayro goes on with raw deflate, then with a decoder of its own that ignores most
//! damage: all three are counted (`deflate`), and the largest counts.
//!
//! Some files hide this: filters behind a reference, names written in another way, encryption,
//! pictures that together expand beyond the limit. Their objects are checked one by one once the
//! file is open ([`check_objects`]), with the filters and the decrypted bytes that hayro itself
//! will use.
//!
//! Images within the program of a page are no streams of the file; they are counted when they are
//! drawn ([`stream_bytes`]).
//!
//! Not covered: object streams of encrypted files, which have to be decoded first, and images
//! within the programs of patterns. The memory limit of the page process bounds these.

mod deflate;
mod filters;
mod objects;
mod stream_scan;

use std::io::Read;

use flate2::read::ZlibDecoder;

use filters::{StreamFilter, deflated_bytes, expanded_bytes, too_large_refusal};
pub(crate) use objects::{check_objects, stream_bytes};
use stream_scan::{ScanWork, StreamData, streams_of};

use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Filters upon filters upon filters: more is an attack, and is counted up to here.
const MAX_NESTING: u32 = 4;
/// More filters than this on one stream are no compression. lopdf undoes up to 8.
const MAX_FILTERS: usize = 8;
/// Questions that the search through the bytes leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionScan {
    /// Nothing.
    Complete,
    /// The objects have to be checked once the file is open.
    NeedsObjects,
}

/// Refuses a file whose streams expand to `limits.decompressed_bytes` or more.
///
/// Images count each by itself, because a page's images are decoded when the page is read and
/// freed after it; all other streams count together.
///
/// # Errors
/// `too_large`; `corrupt` for a chain of filters that no writer makes.
pub(crate) fn check_expansion(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<ExpansionScan, PageRefusal> {
    check_within(bytes, limits.decompressed_bytes.0, &mut ScanWork::for_file(bytes.len()))
}

fn check_within(
    bytes: &[u8],
    limit: u64,
    work: &mut ScanWork,
) -> Result<ExpansionScan, PageRefusal> {
    let mut is_open = memchr::memmem::find(bytes, b"/Encrypt").is_some();
    if !is_open && fits_at_worst(bytes, limit, work)? {
        return Ok(ExpansionScan::Complete);
    }
    let (mut others, mut images): (u64, u64) = (0, 0);
    for data in streams_of(bytes) {
        work.count_stream(&data)?;
        let filters = StreamFilters::from_dictionary(data.dictionary)?;
        is_open |= filters == StreamFilters::Unknown;
        let is_image = data.names(b"/Image");
        let allowed = if is_image { limit } else { limit.saturating_sub(others) };
        let expanded = data.expanded_bytes(&filters, allowed, work)?;
        if expanded >= allowed {
            return Err(too_large_refusal(limit));
        }
        let sum = if is_image { &mut images } else { &mut others };
        *sum = sum.saturating_add(expanded);
    }
    // Any stream may be declared an image: only the objects show whether it is drawn as one.
    is_open |= others.saturating_add(images) >= limit;
    Ok(if is_open { ExpansionScan::NeedsObjects } else { ExpansionScan::Complete })
}

/// Whether the streams together stay below `limit` even if every byte expands as far as deflate
/// allows. True of most small files, which then need not be expanded. False where a stream declares
/// another filter than deflate, or holds another stream.
fn fits_at_worst(bytes: &[u8], limit: u64, work: &mut ScanWork) -> Result<bool, PageRefusal> {
    let mut most: u64 = 0;
    for data in streams_of(bytes) {
        work.count_stream(&data)?;
        let filters = StreamFilters::from_dictionary(data.dictionary)?;
        let Some(own) = data.most_bytes(&filters) else { return Ok(false) };
        most = most.saturating_add(own);
        if most >= limit {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The filters that a dictionary names, in the order in which they are undone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StreamFilters {
    Known(Vec<StreamFilter>),
    /// They are named elsewhere, or in a way that only a parser understands.
    Unknown,
}

impl StreamFilters {
    fn from_dictionary(dictionary: Option<&[u8]>) -> Result<Self, PageRefusal> {
        let Some(dictionary) = dictionary else { return Ok(Self::Unknown) };
        const KEY: &[u8] = b"/Filter";
        let mut keys = memchr::memmem::find_iter(dictionary, KEY);
        let (first, second) = (keys.next(), keys.next());
        // `#` escapes any letter of a name, `%` starts a comment, `/F` is short for `/Filter`.
        let is_odd = second.is_some() || names_short_key(dictionary);
        if is_odd || dictionary.contains(&b'%') || escapes_letter(dictionary) {
            return Ok(Self::Unknown);
        }
        let Some(key) = first else { return Ok(Self::Known(Vec::new())) };
        let value = dictionary.get(key + KEY.len()..).unwrap_or_default().trim_ascii_start();
        let named = match value.split_first() {
            Some((b'[', list)) => {
                let end = list.iter().position(|byte| *byte == b']').unwrap_or(list.len());
                let list = list.get(..end).unwrap_or_default();
                let is_direct = !list.contains(&b'R') || !list.iter().any(u8::is_ascii_digit);
                let has_numbers = list.split(|byte| *byte == b'/').next().unwrap_or_default();
                if !is_direct && !has_numbers.trim_ascii().is_empty() {
                    return Ok(Self::Unknown);
                }
                list
            }
            Some((b'/', _)) => {
                let end = value.iter().skip(1).position(|byte| !byte.is_ascii_alphanumeric());
                value.get(..end.map_or(value.len(), |end| end + 1)).unwrap_or_default()
            }
            _ => return Ok(Self::Unknown),
        };
        let names = named.split(|byte| *byte == b'/').skip(1).map(<[u8]>::trim_ascii);
        let names: Vec<&[u8]> = names.collect();
        if names.len() > MAX_FILTERS {
            let detail = format!("a stream with {} filters", names.len());
            return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
        }
        if names.iter().any(|name| name.iter().any(u8::is_ascii_whitespace)) {
            // A reference among the names.
            return Ok(Self::Unknown);
        }
        Ok(Self::Known(names.into_iter().filter_map(parse_filter).collect()))
    }
}

/// Whether the dictionary has a key `F`: the filters of inline images, which some readers accept
/// anywhere.
fn names_short_key(dictionary: &[u8]) -> bool {
    memchr::memmem::find_iter(dictionary, b"/F").any(|at| {
        let next = dictionary.get(at + 2);
        next.is_some_and(|byte| {
            !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'+')
        })
    })
}

/// Whether a name may be written with `#` for one of its letters. A slash can be written in no
/// other way: a name with one (`text#2Fxml`, the type of the file that every e-invoice carries) is
/// no key and no filter.
fn escapes_letter(dictionary: &[u8]) -> bool {
    memchr::memchr_iter(b'#', dictionary).any(|at| {
        let code = dictionary.get(at + 1..at + 3).unwrap_or_default();
        !code.eq_ignore_ascii_case(b"2f")
    })
}

/// PDF 32000-1 tables 6 and 94 (the short names of inline images, which some readers take
/// anywhere).
fn parse_filter(name: &[u8]) -> Option<StreamFilter> {
    Some(match name {
        b"FlateDecode" | b"Fl" => StreamFilter::Flate,
        b"LZWDecode" | b"LZW" => StreamFilter::Lzw,
        b"RunLengthDecode" | b"RL" => StreamFilter::RunLength,
        b"ASCII85Decode" | b"A85" => StreamFilter::Ascii85,
        b"ASCIIHexDecode" | b"AHx" => StreamFilter::AsciiHex,
        _ => return None,
    })
}

impl StreamData<'_> {
    /// Bytes that it expands to, or at least `allowed` if it is that much.
    fn expanded_bytes(
        &self,
        filters: &StreamFilters,
        allowed: u64,
        work: &mut ScanWork,
    ) -> Result<u64, PageRefusal> {
        if matches!(filters, StreamFilters::Known(only) if only[..] == [StreamFilter::Flate])
            && let Some(plain) = plain_zlib_bytes(self.content(), allowed)
        {
            return Ok(plain);
        }
        let open = self.open_data();
        // Data that looks like zlib is counted as such, against the dictionary.
        let looked = inflated_bytes(open, allowed, work)?;
        let named = match filters {
            StreamFilters::Known(filters) => expanded_bytes(self.content(), filters, allowed),
            StreamFilters::Unknown if self.is_needed_to_open() => {
                // Decoded before anybody could look at it: the worst that its bytes can be.
                (self.content().len() as u64).saturating_mul(StreamFilter::Lzw.most_per_byte())
            }
            StreamFilters::Unknown => deflated_bytes(self.content(), allowed),
        };
        Ok(looked.max(named))
    }

    /// Upper bound of the bytes it can expand to; `None` if its length gives none.
    fn most_bytes(&self, filters: &StreamFilters) -> Option<u64> {
        match filters {
            StreamFilters::Known(none) if none.is_empty() => {
                (!is_zlib(self.open_data())).then_some(0)
            }
            StreamFilters::Known(only) if only[..] == [StreamFilter::Flate] => {
                let content = self.content();
                let most = (content.len() as u64).checked_mul(StreamFilter::Flate.most_per_byte());
                most.filter(|_| holds_no_zlib(content))
            }
            StreamFilters::Known(_) | StreamFilters::Unknown => None,
        }
    }

    /// Streams of objects and tables of them.
    fn is_needed_to_open(&self) -> bool {
        self.names(b"/ObjStm") || self.names(b"/XRef")
    }

    /// Whether its dictionary has this name in it.
    fn names(&self, name: &[u8]) -> bool {
        self.dictionary.is_some_and(|it| memchr::memmem::find(it, name).is_some())
    }
}

/// Bytes that `data` expands to, or at least `allowed` as soon as it is that much.
fn inflated_bytes(data: &[u8], allowed: u64, work: &mut ScanWork) -> Result<u64, PageRefusal> {
    if !is_zlib(data) {
        return Ok(0);
    }
    let mut decoder = ZlibDecoder::new(data);
    let count = count_bytes(&mut decoder, allowed, MAX_NESTING);
    work.count_bytes(decoder.total_in())?;
    Ok(count)
}

/// Bytes of sound zlib data that holds no other, of which every decoder makes the same; `None` for
/// anything else. Most streams of most files are so, and need not be decoded in all the ways there
/// are.
fn plain_zlib_bytes(content: &[u8], allowed: u64) -> Option<u64> {
    let (mut reader, mut buffer) = (ZlibDecoder::new(content), vec![0; 64 << 10]);
    let mut total: u64 = 0;
    while total < allowed {
        let more = reader.read(&mut buffer).ok()?;
        if total == 0 && is_zlib(buffer.get(..more).unwrap_or_default()) {
            return None;
        }
        if more == 0 {
            return is_zlib(content).then_some(total);
        }
        total += more as u64;
    }
    None
}

/// Whether this begins as zlib data does but does not inflate to such data.
fn holds_no_zlib(content: &[u8]) -> bool {
    let mut first = Vec::new();
    is_zlib(content)
        && flate2::bufread::ZlibDecoder::new(content).take(2).read_to_end(&mut first).is_ok()
        && !is_zlib(&first)
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

/// Counts the bytes that pass through.
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
    use flate2::write::{DeflateEncoder, ZlibEncoder};

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
    fn streams_beyond_the_limit_are_refused_before_parsing() {
        let zeros = vec![0; 100_000];
        let single = stream("/Filter/FlateDecode", &zlib(&zeros));
        let double = stream("/Filter[/FlateDecode/FlateDecode]", &zlib(&zlib(&zeros)));
        let unsaid = stream("/Filter/FlateDecode", &zlib(&zlib(&zeros)));
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
            ("compressed twice, said once",   unsaid,                  99_999,  Some(OutcomeReason::TooLarge)),
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

    #[test]
    fn a_file_passes_by_its_length_only_if_no_decoder_could_expand_it_further() {
        let packed = zlib(&[0; 100_000]);
        let worst = 1032 * packed.len() as u64;
        let flate = stream("/Filter/FlateDecode", &packed);
        let nested = stream("/Filter/FlateDecode", &zlib(&packed));
        let hidden = stream("/X(2 0 obj /Filter/Fl)/Filter[/Fl/Fl]", &packed);
        let picture = stream("/Subtype/Image/Filter/DCTDecode", &[0xff; 2000]);
        for (name, file, limit, expected) in [
            ("deflate data", flate.clone(), worst + 1, true),
            ("of a length that is too much", flate.clone(), worst, false),
            ("two together", [&flate[..], &flate].concat(), 2 * worst, false),
            ("two that fit", [&flate[..], &flate].concat(), 2 * worst + 1, true),
            ("beside a picture", [&flate[..], &picture].concat(), worst + 1, true),
            ("one within the other", nested, u64::MAX, false),
            ("filters of another object", hidden, u64::MAX, false),
            ("no zlib data at its beginning", stream("/Filter/Fl", b"text"), u64::MAX, false),
            ("zlib data that nobody names", stream("", &packed), u64::MAX, false),
            ("two filters", stream("/Filter[/AHx/Fl]", b"78>"), u64::MAX, false),
            ("filters elsewhere", stream("/Filter 9 0 R", &packed), u64::MAX, false),
            ("no dictionary", [b"stream\n", &packed[..]].concat(), u64::MAX, false),
        ] {
            assert_eq!(
                fits_at_worst(&file, limit, &mut ScanWork::for_file(file.len())).unwrap(),
                expected,
                "{name}"
            );
        }
    }

    fn raw(data: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn ascii_85(data: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for four in data.chunks(4) {
            let mut group = [0; 4];
            group[..four.len()].copy_from_slice(four);
            let mut number = u32::from_be_bytes(group);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = b'!' + u8::try_from(number % 85).unwrap();
                number /= 85;
            }
            text.extend(&digits[..=four.len()]);
        }
        text.extend(b"~>");
        text
    }

    #[test]
    fn the_bytes_that_hayro_would_decode_are_counted_not_the_declared_ones() {
        let zeros = vec![0; 1_100_000];
        let packed = zlib(&zeros);
        // hayro ignores a wrong checksum, because raw deflate or its own decoder follow.
        let mut wrong_sum = packed.clone();
        *wrong_sum.last_mut().unwrap() ^= 1;
        // A stored block that zlib refuses, with everything behind it.
        let lenient = [&[0, 2, 0, 0, 0, b'a', b'b'][..], &raw(&zeros)].concat();
        let cut = &packed[..packed.len() - 6];
        let flate = "/Filter/FlateDecode";
        let too_large = Some(OutcomeReason::TooLarge);
        #[rustfmt::skip]
        let table = [
            ("raw deflate",              stream(flate, &raw(&zeros)),                          too_large),
            ("raw deflate, short name",  stream("/Filter/Fl", &raw(&zeros)),                   too_large),
            ("a wrong checksum",         stream(flate, &wrong_sum),                            too_large),
            ("a block that zlib refuses", stream(flate, &lenient),                             too_large),
            ("cut off",                  stream(flate, cut),                                   too_large),
            ("text, then deflate",       stream("/Filter[/A85/Fl]", &ascii_85(&packed)),       too_large),
            ("text, then raw deflate",   stream("/Filter [ /ASCII85Decode /FlateDecode ]", &ascii_85(&raw(&zeros))), too_large),
            ("filters named elsewhere",  stream("/Filter 9 0 R", &raw(&zeros)),                too_large),
            ("one of them elsewhere",    stream("/Filter[/Fl 9 0 R]", &raw(&zeros)),           too_large),
            ("a name written otherwise", stream("/Filt#65r/FlateDecode", &raw(&zeros)),        too_large),
            ("the short key",            stream("/F/Fl", &raw(&zeros)),                        too_large),
            ("a comment in between",     stream("/Filter%\n/FlateDecode", &raw(&zeros)),       too_large),
            ("objects by an unknown filter", stream("/Type/ObjStm/Filter 9 0 R", &[7; 300]),   too_large),
            ("little, raw",              stream(flate, &raw(&[0; 900_000])),                   None),
            ("a picture is no deflate",  stream("/Subtype/Image/Filter/DCTDecode", &[0xff; 2000]), None),
        ];
        for (name, file, expected) in table {
            assert_eq!(reason(&file, 1_000_000), expected, "{name}");
        }
    }

    #[test]
    fn data_behind_an_end_keyword_within_a_streams_length_is_counted() {
        let mut data = vec![0, 9, 0, !9, 0xff];
        data.extend(b"endstream");
        data.extend(raw(&vec![0; 1_000_000]));
        let length = format!("/Length {}/Filter/FlateDecode", data.len());
        assert_eq!(reason(&stream(&length, &data), 1_000_000), Some(OutcomeReason::TooLarge));
    }

    /// Bytes looked at for each byte of the file, if it is not refused.
    fn looks(file: &[u8]) -> Option<u64> {
        let mut work = ScanWork::for_file(file.len());
        let scanned = check_within(file, 100_000_000, &mut work);
        match scanned {
            Ok(_) => Some(work.counted() / file.len() as u64),
            Err(refused) => {
                assert_eq!(refused.reason, OutcomeReason::Corrupt);
                None
            }
        }
    }

    #[test]
    fn a_file_is_scanned_in_work_by_its_size_whatever_it_repeats() {
        let packed = zlib(&[7; 30]);
        let honest = stream("/Filter/FlateDecode", &packed);
        // Each of them begins a stream that holds all behind it.
        let stored = b"stream\n\x78\x01\x00\x12\x00\xed\xffendstream".to_vec();
        let object = b"1 0 obj\n<</Length 1 0 R/Filter/FlateDecode>>\nstream\n".to_vec();
        let far = |gap: usize| {
            [b"stream\n".repeat(gap / 7), vec![b' '; gap], b"endstream".to_vec()].concat()
        };
        for (name, part, is_read) in [
            ("streams one behind the other", honest.clone(), true),
            ("keywords alone", b"stream\n".to_vec(), false),
            ("streams that are never closed", object, false),
            ("stored data within stored data", stored, false),
            ("ends alone", b"endstream\n".to_vec(), true),
            ("objects alone", b"1 0 obj\n".to_vec(), true),
        ] {
            for times in [4_000, 16_000] {
                let file = part.repeat(times);
                let looks = looks(&file);
                assert_eq!(looks.is_some(), is_read, "{name}");
                assert!(looks.is_none_or(|looks| looks < 8), "{name}: {looks:?}");
            }
        }
        assert_eq!(looks(&far(400_000)), None, "one end for many beginnings, far away");
        let few = [b"stream\n".repeat(40), honest.repeat(5_000)].concat();
        assert!(looks(&few).is_some(), "a few keywords without data are no attack");
    }

    #[test]
    fn questions_that_bytes_alone_leave_open_are_left_to_the_objects() {
        let limits = LimitsConfig { decompressed_bytes: ByteSize(150_000), ..Default::default() };
        let scanned = |file: &[u8]| check_expansion(file, &limits).unwrap();
        let some = zlib(&[0; 100_000]);
        let image = stream("/Subtype/Image/Filter/FlateDecode", &some);
        let plain = stream("/Filter/FlateDecode", &some);
        let encrypted = [&plain[..], b"trailer <</Encrypt 5 0 R>>"].concat();
        for (name, file, expected) in [
            ("a plain file", plain, ExpansionScan::Complete),
            ("one image", image.clone(), ExpansionScan::Complete),
            ("images beyond the limit", [&image[..], &image].concat(), ExpansionScan::NeedsObjects),
            ("encryption", encrypted, ExpansionScan::NeedsObjects),
            ("filters elsewhere", stream("/Filter 9 0 R", b"x"), ExpansionScan::NeedsObjects),
            ("a type of files", stream("/Subtype/text#2fxml", b"x"), ExpansionScan::Complete),
            (
                "letters otherwise",
                stream("/Subtype/t#65xt#2Fxml", b"x"),
                ExpansionScan::NeedsObjects,
            ),
        ] {
            assert_eq!(scanned(&file), expected, "{name}");
        }
    }
}
