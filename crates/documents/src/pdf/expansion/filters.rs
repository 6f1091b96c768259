//! The compression filters of PDF streams: decoded data, counted with a cap. Not covered: filters
//! of images, whose dimensions bound their output.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::deflate;
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// Expansion of a byte of deflate data: 258 bytes in two bits.
const MAX_DEFLATED: u64 = 1032;

/// A compression filter of a stream. Those of images are left out: their dimensions bound the
/// output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFilter {
    Flate,
    Lzw,
    RunLength,
    Ascii85,
    AsciiHex,
}

impl StreamFilter {
    /// Expansion of a byte of its input.
    pub(super) fn most_per_byte(self) -> u64 {
        match self {
            Self::Flate => MAX_DEFLATED,
            Self::Lzw => 4096,
            Self::RunLength => 64,
            Self::Ascii85 | Self::AsciiHex => 4,
        }
    }

    fn name(self) -> &'static [u8] {
        match self {
            Self::Flate => b"FlateDecode",
            Self::Lzw => b"LZWDecode",
            Self::RunLength => b"RunLengthDecode",
            Self::Ascii85 => b"ASCII85Decode",
            Self::AsciiHex => b"ASCIIHexDecode",
        }
    }

    /// `data` decoded by this filter. Data that cannot be decoded to its end counts as its worst
    /// case, because other decoders go on up to the damage.
    fn undo(self, data: &[u8], allowed: u64) -> Result<Vec<u8>, u64> {
        if self == Self::Flate {
            return inflate_within(data, allowed);
        }
        let mut dictionary = lopdf::Dictionary::new();
        dictionary.set("Filter", lopdf::Object::Name(self.name().to_vec()));
        let stream = lopdf::Stream::new(dictionary, data.to_vec());
        let most = usize::try_from(allowed).unwrap_or(usize::MAX);
        stream.decompressed_content_with_limit(most).map_err(|error| match error {
            lopdf::Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. }) => allowed,
            _ => (data.len() as u64).saturating_mul(self.most_per_byte()),
        })
    }
}

/// Bytes that `content` takes at most while these filters are undone one after the other, or at
/// least `allowed` if that or more.
pub(super) fn expanded_bytes(content: &[u8], filters: &[StreamFilter], allowed: u64) -> u64 {
    let Some((first, mut rest)) = filters.split_first() else { return 0 };
    let (mut data, mut next) = (std::borrow::Cow::Borrowed(content), *first);
    let mut most: u64 = 0;
    loop {
        if next == StreamFilter::Flate && rest.is_empty() {
            return most.max(deflated_bytes(&data, allowed));
        }
        match next.undo(&data, allowed) {
            Ok(undone) => {
                most = most.max(undone.len() as u64);
                data = undone.into();
            }
            Err(at_least) => {
                let worst = rest
                    .iter()
                    .fold(at_least, |size, filter| size.saturating_mul(filter.most_per_byte()));
                return most.max(worst);
            }
        }
        let Some((first, others)) = rest.split_first() else { return most };
        (next, rest) = (*first, others);
        if most >= allowed {
            return most;
        }
    }
}

/// Size of flate data in the decoder that hayro ends up with: the next one is tried only where one
/// gives up, after the first one's output.
pub(super) fn deflated_bytes(data: &[u8], allowed: u64) -> u64 {
    let (zlib, is_whole) = drain(ZlibDecoder::new(data), allowed);
    if is_whole || zlib >= allowed {
        return zlib;
    }
    let (raw, is_whole) = drain(DeflateDecoder::new(data), allowed);
    if is_whole || raw >= allowed {
        return zlib.max(raw);
    }
    zlib.max(raw).max(deflate::count_tolerantly(data, allowed))
}

/// Decoded flate data, for a filter behind it.
fn inflate_within(data: &[u8], allowed: u64) -> Result<Vec<u8>, u64> {
    fn read_within(reader: impl Read, allowed: u64) -> Result<Vec<u8>, bool> {
        let mut content = Vec::new();
        match reader.take(allowed).read_to_end(&mut content) {
            Ok(_) if content.len() as u64 >= allowed => Err(true),
            Ok(_) => Ok(content),
            Err(_damage) => Err(false),
        }
    }
    let is_over = match read_within(ZlibDecoder::new(data), allowed) {
        Err(false) => match read_within(DeflateDecoder::new(data), allowed) {
            Ok(content) => return Ok(content),
            Err(is_over) => is_over,
        },
        Ok(content) => return Ok(content),
        Err(is_over) => is_over,
    };
    Err(if is_over { allowed } else { deflate::count_tolerantly(data, allowed) })
}

/// Reads to the end, to damage, or to `allowed`: the bytes, and whether it was the end.
fn drain(mut reader: impl Read, allowed: u64) -> (u64, bool) {
    let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
    while total < allowed {
        match reader.read(&mut buffer) {
            Ok(0) => return (total, true),
            Ok(more) => total += more as u64,
            Err(_damage) => return (total, false),
        }
    }
    (total, false)
}

/// A document whose parts expand to more than `limit` bytes.
pub(super) fn too_large_refusal(limit: u64) -> PageRefusal {
    let detail = format!("its compressed parts expand to {limit} bytes or more");
    PageRefusal::new(OutcomeReason::TooLarge, detail)
}
