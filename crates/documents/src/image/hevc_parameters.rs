//! Coded size and colour description of an HEVC picture, from its sequence parameter set (ITU-T
//! H.265 §7.3.2.2 and annex E).
//!
//! The decoder's crate reports the cropped size and no colour description. The uncropped size is
//! allocated, and phones state the full value range here.

use heic_rs::props::colr::{MatrixCoefficients, Nclx, Range};

/// Values that the standard allows for `num_short_term_ref_pic_sets`.
const MAX_REFERENCE_SETS: u32 = 64;

/// The default colour description (§E.3.1).
const UNSTATED_COLOUR: Nclx = Nclx {
    primaries: 2,
    transfer: 2,
    matrix: MatrixCoefficients::Unspecified,
    matrix_code: 2,
    range: Range::Limited,
};

/// Size and colour of the coded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HevcParameters {
    /// Luma samples in a row, before the crop.
    pub width: u32,
    /// Rows of luma samples, before the crop.
    pub height: u32,
    /// Matrix and range.
    pub colour: Nclx,
}

impl HevcParameters {
    /// Reads the NAL unit of a sequence parameter set. `None`: truncated or invalid.
    pub(crate) fn from_unit(unit: &[u8]) -> Option<Self> {
        let payload = without_emulation(unit.get(2..)?);
        let mut bits = BitCursor { bytes: &payload, at: 0 };
        bits.skip(4)?;
        let sublayers = bits.read(3)?;
        bits.skip(1)?;
        bits.skip_profiles(sublayers)?;
        bits.exp_golomb()?;
        let chroma = bits.exp_golomb()?;
        if chroma == 3 {
            bits.skip(1)?;
        }
        let (width, height) = (bits.exp_golomb()?, bits.exp_golomb()?);
        if bits.flag()? {
            bits.skip_numbers(4)?;
        }
        bits.skip_numbers(2)?;
        let order_bits = bits.exp_golomb()?.checked_add(4)?;
        let layers = if bits.flag()? { sublayers + 1 } else { 1 };
        bits.skip_numbers(3 * layers + 6)?;
        if bits.flag()? && bits.flag()? {
            bits.skip_scaling_lists()?;
        }
        bits.skip(2)?;
        if bits.flag()? {
            bits.skip(8)?;
            bits.skip_numbers(2)?;
            bits.skip(1)?;
        }
        bits.skip_reference_sets()?;
        if bits.flag()? {
            for _ in 0..bits.exp_golomb()?.min(u32::from(u8::MAX)) {
                bits.skip(order_bits.checked_add(1)?)?;
            }
        }
        bits.skip(2)?;
        let colour = if bits.flag()? { bits.video_signal()? } else { UNSTATED_COLOUR };
        Some(Self { width, height, colour })
    }
}

/// The payload of a NAL unit without emulation prevention bytes: a 3 after two zeros (§7.4.2).
fn without_emulation(unit: &[u8]) -> Vec<u8> {
    let mut zeros = 0;
    let mut payload = Vec::with_capacity(unit.len());
    for byte in unit {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        payload.push(*byte);
    }
    payload
}

struct BitCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitCursor<'_> {
    fn flag(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    /// An unsigned number of at most 32 bits.
    fn read(&mut self, bits: u32) -> Option<u32> {
        (0..bits).try_fold(0, |number, _| Some(number << 1 | u32::from(self.flag()?)))
    }

    fn skip(&mut self, bits: u32) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bits).ok()?)?;
        (self.at <= self.bytes.len() * 8).then_some(())
    }

    /// An unsigned number in Exp-Golomb coding (§9.2).
    fn exp_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
        }
        let base = 1_u32.checked_shl(zeros).filter(|_| zeros < 32)? - 1;
        base.checked_add(self.read(zeros)?)
    }

    fn skip_numbers(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.exp_golomb().map(drop))
    }

    /// `profile_tier_level` (§7.3.3).
    fn skip_profiles(&mut self, sublayers: u32) -> Option<()> {
        const PROFILE_BITS: u32 = 88;
        const LEVEL_BITS: u32 = 8;
        self.skip(PROFILE_BITS + LEVEL_BITS)?;
        let mut bits = 0;
        for _ in 0..sublayers {
            bits += if self.flag()? { PROFILE_BITS } else { 0 };
            bits += if self.flag()? { LEVEL_BITS } else { 0 };
        }
        if sublayers > 0 {
            self.skip(2 * 8_u32.checked_sub(sublayers)?)?;
        }
        self.skip(bits)
    }

    /// `scaling_list_data` (§7.3.4).
    fn skip_scaling_lists(&mut self) -> Option<()> {
        for size in 0..4_u32 {
            for _ in 0..if size == 3 { 2 } else { 6 } {
                if self.flag()? {
                    let numbers = (1 << (4 + 2 * size)).min(64) + u32::from(size > 1);
                    self.skip_numbers(numbers)?;
                } else {
                    self.exp_golomb()?;
                }
            }
        }
        Some(())
    }

    /// The count of `st_ref_pic_set`, and all of them (§7.3.7).
    fn skip_reference_sets(&mut self) -> Option<()> {
        let count = self.exp_golomb().filter(|count| *count <= MAX_REFERENCE_SETS)?;
        let mut pictures = 0_u32;
        for index in 0..count {
            if index > 0 && self.flag()? {
                self.skip(1)?;
                self.exp_golomb()?;
                let mut kept = 0;
                for _ in 0..=pictures {
                    kept += u32::from(self.flag()? || self.flag()?);
                }
                pictures = kept;
            } else {
                pictures = self.exp_golomb()?.checked_add(self.exp_golomb()?)?;
                for _ in 0..pictures {
                    self.exp_golomb()?;
                    self.skip(1)?;
                }
            }
        }
        Some(())
    }

    /// The beginning of `vui_parameters`, up to the colours (§E.2.1).
    fn video_signal(&mut self) -> Option<Nclx> {
        const EXTENDED_ASPECT: u32 = 255;
        if self.flag()? && self.read(8)? == EXTENDED_ASPECT {
            self.skip(32)?;
        }
        if self.flag()? {
            self.skip(1)?;
        }
        if !self.flag()? {
            return Some(UNSTATED_COLOUR);
        }
        self.skip(3)?;
        let range = if self.flag()? { Range::Full } else { Range::Limited };
        let mut colour = Nclx { range, ..UNSTATED_COLOUR };
        if self.flag()? {
            self.skip(16)?;
            let code = self.read(8)?;
            colour.matrix = MatrixCoefficients::from_code(u16::try_from(code).ok()?);
        }
        Some(colour)
    }
}
