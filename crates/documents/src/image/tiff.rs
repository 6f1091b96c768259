//! The pages of a TIFF: its chain of image file directories (TIFF 6.0 §2, and its 64-bit form).
//!
//! The `image` crate decodes the first directory only. Walking the chain here and showing it the
//! same bytes with another first directory gives every page with all of its decoders.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};

use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

const COMPRESSION: u16 = 259;
const NEW_SUBFILE_TYPE: u16 = 254;
const X_RESOLUTION: u16 = 282;
const Y_RESOLUTION: u16 = 283;
const RESOLUTION_UNIT: u16 = 296;
const CENTIMETRE: u64 = 3;

/// One page of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TiffDirectory {
    /// Its offset in the file.
    pub offset: u64,
    /// Dots per inch, if stated.
    pub dpi: Option<u32>,
    rows_per_inch: Option<u32>,
    compression: u64,
    big: bool,
    little_endian: bool,
}

impl TiffDirectory {
    /// Whether the page is in one of the registered compressions that are not decoded: the old form
    /// of JPEG, JPEG 2000, LZMA, Zstandard, JBIG and others. Decoded are none, Group 3 in its
    /// forms, Group 4, LZW, JPEG, Deflate (both numbers) and `PackBits`; of Group 3 no tiles.
    pub(crate) fn is_unread_compression(&self) -> bool {
        !matches!(self.compression, 0 | 1 | 4 | 5 | 7 | 8 | 32_773 | 32_946)
    }

    /// The value of its field `Compression`.
    pub(crate) fn compression(&self) -> u64 {
        self.compression
    }

    /// Dots per inch across and down, if both are stated.
    pub(crate) fn dots_per_inch(&self) -> Option<(u32, u32)> {
        self.dpi.zip(self.rows_per_inch)
    }

    /// The whole numbers of its field `tag` in the file `bytes`; none if the page has no such
    /// field, or if it leads out of the file.
    pub(crate) fn numbers(&self, bytes: &[u8], tag: u16) -> Vec<u64> {
        let file = ByteCursor { bytes, little_endian: self.little_endian };
        file.field_numbers(self, tag).unwrap_or_default()
    }
}

/// Lists the pages, thumbnails left out, up to one more than `limit`.
///
/// # Errors
/// `corrupt` if there is no readable directory or the chain runs in a circle before any page.
pub(crate) fn list_directories(
    bytes: &[u8],
    limit: u32,
) -> Result<Vec<TiffDirectory>, PageRefusal> {
    let file = ByteCursor { bytes, little_endian: bytes.starts_with(b"I") };
    let big = file.read_number(2, 2) == Some(43);
    let mut next = if big { file.read_number(8, 8) } else { file.read_number(4, 4) };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(offset) = next.filter(|offset| *offset != 0) {
        if !seen.insert(offset) || seen.len() > 4 * (limit as usize + 1) {
            break;
        }
        let Some(directory) = file.read_directory(offset, big) else { break };
        if !directory.is_thumbnail {
            found.push(directory.place);
        }
        if found.len() > limit as usize {
            break;
        }
        next = directory.next;
    }
    if found.is_empty() {
        return Err(PageRefusal::new(OutcomeReason::Corrupt, "its list of pages is damaged"));
    }
    Ok(found)
}

struct ByteCursor<'a> {
    bytes: &'a [u8],
    little_endian: bool,
}

struct DirectoryEntry {
    place: TiffDirectory,
    is_thumbnail: bool,
    next: Option<u64>,
}

impl ByteCursor<'_> {
    /// An unsigned number of `size` bytes at `at`.
    fn read_number(&self, at: u64, size: u64) -> Option<u64> {
        let start = usize::try_from(at).ok()?;
        let end = usize::try_from(at.checked_add(size)?).ok()?;
        let digits = self.bytes.get(start..end)?;
        let mut number = 0;
        for at in 0..digits.len() {
            let at = if self.little_endian { digits.len() - 1 - at } else { at };
            number = number << 8 | u64::from(*digits.get(at)?);
        }
        Some(number)
    }

    /// Where the value of a field of the directory at `offset` is, or its offset.
    fn value_at(&self, offset: u64, big: bool, tag: u16) -> Option<u64> {
        let (count_size, entry_size, pointer) = if big { (8, 20, 8) } else { (2, 12, 4) };
        let count = self.read_number(offset, count_size)?;
        let first = offset + count_size;
        let mut entries = (0..count.min(200)).map(|index| first + index * entry_size);
        let named = entries.find(|at| self.read_number(*at, 2) == Some(u64::from(tag)));
        named.map(|at| at + entry_size - pointer)
    }

    /// A resolution in dots per inch, if it is plausible.
    fn read_resolution(&self, offset: u64, big: bool, tag: u16) -> Option<u32> {
        let at = self.value_at(offset, big, tag)?;
        let fraction = if big { at } else { self.read_number(at, 4)? };
        let dots =
            self.read_number(fraction, 4)?.checked_div(self.read_number(fraction + 4, 4)?)?;
        let unit = self.value_at(offset, big, RESOLUTION_UNIT);
        let is_metric = unit.and_then(|at| self.read_number(at, 2)) == Some(CENTIMETRE);
        let dots = if is_metric { dots * 254 / 100 } else { dots };
        u32::try_from(dots).ok().filter(|dots| (60..=2400).contains(dots))
    }

    fn read_directory(&self, offset: u64, big: bool) -> Option<DirectoryEntry> {
        let (count_size, entry_size, pointer) = if big { (8, 20, 8) } else { (2, 12, 4) };
        let count = self.read_number(offset, count_size)?;
        let end = offset.checked_add(count_size)?.checked_add(count.checked_mul(entry_size)?)?;
        let subfile = self.value_at(offset, big, NEW_SUBFILE_TYPE);
        let subfile = subfile.and_then(|at| self.read_number(at, 4)).unwrap_or(0);
        let compression = self.value_at(offset, big, COMPRESSION);
        let compression = compression.and_then(|at| self.read_number(at, 2)).unwrap_or(1);
        Some(DirectoryEntry {
            place: TiffDirectory {
                offset,
                dpi: self.read_resolution(offset, big, X_RESOLUTION),
                rows_per_inch: self.read_resolution(offset, big, Y_RESOLUTION),
                compression,
                big,
                little_endian: self.little_endian,
            },
            is_thumbnail: subfile & 1 == 1,
            next: self.read_number(end, pointer),
        })
    }

    /// The whole numbers of a field, which are within the file, so never more than it has bytes.
    fn field_numbers(&self, page: &TiffDirectory, tag: u16) -> Option<Vec<u64>> {
        let (count_size, entry_size, pointer) = if page.big { (8, 20, 8) } else { (2, 12, 4) };
        let entries = self.read_number(page.offset, count_size)?;
        let first = page.offset.checked_add(count_size)?;
        let mut places = (0..entries.min(200)).map(|index| first + index * entry_size);
        let at = places.find(|at| self.read_number(*at, 2) == Some(u64::from(tag)))?;
        let size = match self.read_number(at + 2, 2)? {
            1 => 1,
            3 => 2,
            4 => 4,
            16 => 8,
            _ => return None,
        };
        let count = self.read_number(at + 4, pointer)?;
        let value = at + entry_size - pointer;
        let length = count.checked_mul(size)?;
        let start = if length <= pointer { value } else { self.read_number(value, pointer)? };
        let end = start.checked_add(length)?;
        if end > self.bytes.len() as u64 {
            return None;
        }
        (0..count).map(|index| self.read_number(start + index * size, size)).collect()
    }
}

/// The file's bytes with the pointer to the first directory turned to another one.
pub(crate) struct TiffWindow<'a> {
    bytes: &'a [u8],
    head: Vec<u8>,
    at: u64,
}

impl<'a> TiffWindow<'a> {
    /// Shows `bytes` as if `directory` were the first.
    pub(crate) fn new(bytes: &'a [u8], directory: &TiffDirectory) -> Self {
        let (length, width) = if directory.big { (16, 8) } else { (8, 4) };
        let mut head = bytes.get(..length - width).unwrap_or_default().to_vec();
        let digits = directory.offset.to_le_bytes().into_iter().take(width);
        if directory.little_endian {
            head.extend(digits);
        } else {
            head.extend(digits.rev());
        }
        Self { bytes, head, at: 0 }
    }
}

impl Read for TiffWindow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(self.at).unwrap_or(usize::MAX);
        let source = self.head.get(at..).filter(|head| !head.is_empty());
        let source = source.or_else(|| self.bytes.get(at..)).unwrap_or_default();
        let count = (&mut &*source).read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for TiffWindow<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => (self.bytes.len() as u64).checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use bytes::Bytes;

    use super::*;
    use crate::image::picture::decode_tiff;
    use docmill_core::config::LimitsConfig;

    fn one_page(value: u8) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let picture = image::GrayImage::from_pixel(2, 2, image::Luma([value]));
        picture.write_to(&mut bytes, image::ImageFormat::Tiff).unwrap();
        bytes.into_inner()
    }

    /// Two little-endian pages in one file: the second directory's absolute offsets are shifted.
    fn two_pages() -> Vec<u8> {
        let (mut all, second) = (one_page(10), one_page(200));
        let shift = u32::try_from(all.len()).unwrap();
        let read =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let end_of = |bytes: &[u8]| {
            let directory = read(bytes, 4) as usize;
            let count = u16::from_le_bytes(bytes[directory..directory + 2].try_into().unwrap());
            (directory, directory + 2 + usize::from(count) * 12)
        };
        let mut moved = second.clone();
        let (directory, end) = end_of(&second);
        for entry in (directory + 2..end).step_by(12) {
            let kind = u16::from_le_bytes(second[entry + 2..entry + 4].try_into().unwrap());
            let size = [0, 1, 1, 2, 4, 8][usize::from(kind)] * read(&second, entry + 4);
            let tag = u16::from_le_bytes(second[entry..entry + 2].try_into().unwrap());
            if size > 4 || tag == 273 {
                let value = read(&second, entry + 8) + shift;
                moved[entry + 8..entry + 12].copy_from_slice(&value.to_le_bytes());
            }
        }
        let (_, end) = end_of(&all);
        let next = read(&second, 4) + shift;
        all[end..end + 4].copy_from_slice(&next.to_le_bytes());
        all.extend(moved);
        all
    }

    #[test]
    fn every_directory_is_a_page() {
        let bytes = Bytes::from(two_pages());
        let pages = list_directories(&bytes, 10).unwrap();
        let limits = LimitsConfig::default();
        let values: Vec<u8> = pages
            .iter()
            .map(|page| decode_tiff(&bytes, page, &limits).unwrap().raster.pixels[0])
            .collect();
        assert_eq!(values, [10, 200]);
    }

    #[test]
    fn a_chain_in_a_circle_ends_and_a_long_one_is_cut_above_the_limit() {
        let mut bytes = two_pages();
        let pages = list_directories(&bytes, 10).unwrap();
        assert_eq!(list_directories(&bytes, 1).unwrap().len(), 2, "one more than allowed");
        let last = usize::try_from(pages[1].offset).unwrap();
        let count = u16::from_le_bytes(bytes[last..last + 2].try_into().unwrap());
        let end = last + 2 + usize::from(count) * 12;
        bytes.copy_within(4..8, end);
        assert_eq!(list_directories(&bytes, 10).unwrap().len(), 2);
        assert_eq!(
            list_directories(b"II*\0\xff\xff\0\0", 10).unwrap_err().reason,
            OutcomeReason::Corrupt
        );
    }
}
