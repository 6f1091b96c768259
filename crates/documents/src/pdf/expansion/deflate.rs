//! Bytes that a deflate stream expands to in hayro's fallback decoder, which goes on where zlib
//! gives up: it ignores the length check of stored blocks, takes any table of codes, and skips
//! copies from before the beginning. Output is counted, not kept, so this takes no memory for any
//! stream.
//!
//! Follows `hayro-syntax` 0.9 (`filter/lzw_flate.rs`, `fallback`), which follows pdf.js. Where both
//! zlib and this can read a stream they agree (see the tests).

/// Base and extra bits of the lengths 257 to 285 (RFC 1951 §3.2.5).
const LENGTHS: [(u8, u64); 29] = [
    (0, 3),
    (0, 4),
    (0, 5),
    (0, 6),
    (0, 7),
    (0, 8),
    (0, 9),
    (0, 10),
    (1, 11),
    (1, 13),
    (1, 15),
    (1, 17),
    (2, 19),
    (2, 23),
    (2, 27),
    (2, 31),
    (3, 35),
    (3, 43),
    (3, 51),
    (3, 59),
    (4, 67),
    (4, 83),
    (4, 99),
    (4, 115),
    (5, 131),
    (5, 163),
    (5, 195),
    (5, 227),
    (0, 258),
];
/// The same of the distances.
const DISTANCES: [(u8, u64); 30] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 4),
    (1, 5),
    (1, 7),
    (2, 9),
    (2, 13),
    (3, 17),
    (3, 25),
    (4, 33),
    (4, 49),
    (5, 65),
    (5, 97),
    (6, 129),
    (6, 193),
    (7, 257),
    (7, 385),
    (8, 513),
    (8, 769),
    (9, 1025),
    (9, 1537),
    (10, 2049),
    (10, 3073),
    (11, 4097),
    (11, 6145),
    (12, 8193),
    (12, 12289),
    (13, 16385),
    (13, 24577),
];
/// In which order the lengths of the codes for lengths come.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The end of a block.
const END: u16 = 256;

/// Bytes that `data`, with or without the header of zlib, expands to, or some number of at least
/// `allowed` as soon as it is that much.
pub(super) fn count_tolerantly(data: &[u8], allowed: u64) -> u64 {
    let body = match data {
        [method, flags, rest @ ..]
            if method & 0x0f == 8
                && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
                && flags & 0x20 == 0 =>
        {
            rest
        }
        _ => data,
    };
    let mut counter = BlockCounter { input: body.iter(), bits: 0, held: 0, total: 0, allowed };
    // `None` is the end: regular, by damage, or because it is enough.
    while counter.count_block().is_some() {}
    counter.total
}

struct BlockCounter<'a> {
    input: std::slice::Iter<'a, u8>,
    bits: u32,
    held: u8,
    total: u64,
    allowed: u64,
}

impl BlockCounter<'_> {
    /// Counts one block; `None` if none follows.
    fn count_block(&mut self) -> Option<()> {
        let header = self.take_bits(3)?;
        match header >> 1 {
            0 => self.count_stored()?,
            1 => {
                let (literals, distances) = fixed_tables();
                self.count_compressed(&literals, &distances)?;
            }
            2 => {
                let (literals, distances) = self.read_tables()?;
                self.count_compressed(&literals, &distances)?;
            }
            _ => return None,
        }
        (header & 1 == 0 && self.total < self.allowed && !self.input.as_slice().is_empty())
            .then_some(())
    }

    fn count_stored(&mut self) -> Option<()> {
        (self.bits, self.held) = (0, 0);
        let [low, high, _, _] =
            [self.next_byte()?, self.next_byte()?, self.next_byte()?, self.next_byte()?];
        let wanted = usize::from(u16::from_le_bytes([low, high]));
        let rest = self.input.as_slice();
        let taken = wanted.min(rest.len());
        self.input = rest.get(taken..).unwrap_or_default().iter();
        self.total += taken as u64;
        (taken == wanted).then_some(())
    }

    fn count_compressed(&mut self, literals: &CodeTable, distances: &CodeTable) -> Option<()> {
        while self.total < self.allowed {
            let code = self.take_code(literals)?;
            if code < END {
                self.total += 1;
                continue;
            }
            if code == END {
                return Some(());
            }
            // A code without a length copies nothing.
            let (extra, base) =
                LENGTHS.get(usize::from(code - END - 1)).copied().unwrap_or_default();
            let length = base + u64::from(self.take_bits(extra)?);
            let (extra, base) = *DISTANCES.get(usize::from(self.take_code(distances)?))?;
            let distance = base + u64::from(self.take_bits(extra)?);
            if distance <= self.total {
                self.total += length;
            }
        }
        None
    }

    fn read_tables(&mut self) -> Option<(CodeTable, CodeTable)> {
        let literals = usize::try_from(self.take_bits(5)?).ok()? + 257;
        let distances = usize::try_from(self.take_bits(5)?).ok()? + 1;
        let own = usize::try_from(self.take_bits(4)?).ok()? + 4;
        let mut lengths = [0_u8; 19];
        for place in ORDER.iter().take(own) {
            let length = u8::try_from(self.take_bits(3)?).ok()?;
            *lengths.get_mut(*place)? = length;
        }
        let table = CodeTable::from_lengths(&lengths);
        let all = literals + distances;
        let mut lengths: Vec<u8> = Vec::with_capacity(all);
        while lengths.len() < all {
            let code = self.take_code(&table)?;
            let (times, value) = match code {
                0..=15 => (1, u8::try_from(code).ok()?),
                16 => (3 + self.take_bits(2)?, lengths.last().copied().unwrap_or(0)),
                17 => (3 + self.take_bits(3)?, 0),
                18 => (11 + self.take_bits(7)?, 0),
                _ => return None,
            };
            let room = all - lengths.len();
            let times = usize::try_from(times).ok()?.min(room);
            lengths.extend(std::iter::repeat_n(value, times));
        }
        let (first, second) = lengths.split_at_checked(literals)?;
        Some((CodeTable::from_lengths(first), CodeTable::from_lengths(second)))
    }

    fn next_byte(&mut self) -> Option<u8> {
        self.input.next().copied()
    }

    fn take_bits(&mut self, count: u8) -> Option<u32> {
        while self.held < count {
            let byte = self.next_byte()?;
            self.bits |= u32::from(byte) << self.held;
            self.held += 8;
        }
        let taken = self.bits & ((1 << count) - 1);
        self.bits >>= count;
        self.held -= count;
        Some(taken)
    }

    fn take_code(&mut self, table: &CodeTable) -> Option<u16> {
        while self.held < table.longest {
            let Some(byte) = self.next_byte() else { break };
            self.bits |= u32::from(byte) << self.held;
            self.held += 8;
        }
        let index = usize::try_from(self.bits & ((1 << table.longest) - 1)).ok()?;
        let (length, code) = *table.codes.get(index)?;
        if length == 0 || self.held < length {
            return None;
        }
        self.bits >>= length;
        self.held -= length;
        Some(code)
    }
}

/// Codes by the bits that are next in the stream.
struct CodeTable {
    /// Length of the code in bits, 0 for none, and its symbol.
    codes: Vec<(u8, u16)>,
    longest: u8,
}

impl CodeTable {
    fn from_lengths(lengths: &[u8]) -> Self {
        let longest = lengths.iter().copied().max().unwrap_or(0).min(15);
        if longest == 0 {
            return Self { codes: vec![(0, 0)], longest: 1 };
        }
        let size = 1_usize << longest;
        let mut codes = vec![(0, 0); size];
        let mut next = 0_u32;
        for length in 1..=longest {
            for (code, _) in lengths.iter().enumerate().filter(|(_, own)| **own == length) {
                let reversed = next.reverse_bits() >> (32 - u32::from(length));
                let first = usize::try_from(reversed).unwrap_or(usize::MAX);
                let entry = (length, u16::try_from(code).unwrap_or(u16::MAX));
                let places = codes.iter_mut().skip(first).step_by(1 << length);
                places.for_each(|place| *place = entry);
                next = next.wrapping_add(1);
            }
            next = next.wrapping_shl(1);
        }
        Self { codes, longest }
    }
}

/// RFC 1951 §3.2.6.
fn fixed_tables() -> (CodeTable, CodeTable) {
    let mut literals = vec![8_u8; 144];
    literals.extend([9; 112]);
    literals.extend([7; 24]);
    literals.extend([8; 8]);
    (CodeTable::from_lengths(&literals), CodeTable::from_lengths(&[5; 30]))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};

    use super::*;

    fn raw(data: &[u8], level: Compression) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn data_that_zlib_reads_is_counted_to_the_byte() {
        let text: Vec<u8> = (0..60_000_u32).flat_map(|n| (n * n % 977).to_be_bytes()).collect();
        let noise: Vec<u8> =
            (0..9_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let contents = [Vec::new(), b"a".to_vec(), vec![0; 1_000_000], text, noise];
        for content in &contents {
            for level in 0..=9 {
                let packed = raw(content, Compression::new(level));
                let counted = count_tolerantly(&packed, u64::MAX);
                assert_eq!(counted, content.len() as u64, "level {level}");
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(content).unwrap();
                let packed = encoder.finish().unwrap();
                assert_eq!(count_tolerantly(&packed, u64::MAX), content.len() as u64);
            }
        }
    }

    #[test]
    fn counting_stops_where_it_is_enough() {
        let packed = raw(&vec![7; 10_000_000], Compression::best());
        let counted = count_tolerantly(&packed, 1_000);
        assert!((1_000..2_000).contains(&counted), "{counted}");
    }

    #[test]
    fn data_behind_a_stored_block_with_a_wrong_check_is_counted() {
        // Stored, not the last, two bytes, a check that is wrong; then a million zeros.
        let mut packed = vec![0, 2, 0, 0, 0, b'a', b'b'];
        packed.extend(raw(&vec![0; 1_000_000], Compression::best()));
        assert_eq!(count_tolerantly(&packed, u64::MAX), 1_000_002);
    }

    #[test]
    fn decoding_of_invalid_deflate_data_ends() {
        for length in 0..300_usize {
            for seed in [0_u8, 1, 77, 255] {
                let data: Vec<u8> = (0..length)
                    .map(|at| {
                        seed.wrapping_mul(31).wrapping_add((at * at % 256).try_into().unwrap())
                    })
                    .collect();
                let counted = count_tolerantly(&data, u64::MAX);
                assert!(counted <= 1032 * length as u64 + 258, "{length} {seed}: {counted}");
            }
        }
    }
}
