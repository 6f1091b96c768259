//! How a vendor takes pictures: up to what size as they are, and for how many tokens.
//!
//! Not promised: that a vendor bills what is counted here. Models of one vendor differ, and newer
//! ones take more than the rule that is safe with all of them.

use serde::{Deserialize, Serialize};

use super::PictureFit;

/// Most pixels of a side that no rule names.
const FREE_SIDE: u32 = 1568;

/// The rule by which a vendor sizes and counts pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureRule {
    /// Most pixels of the longer side that are looked at as they are.
    pub longest_side: u32,
    /// Most pixels in all.
    pub pixels: u64,
    /// Pixels of a side of one piece; a part of a piece counts as a whole one.
    pub piece: u32,
    /// Tokens for a hundred pieces.
    pub tokens_per_hundred: u64,
}

impl PictureRule {
    /// Anthropic's models, at home and on Bedrock: 1,568 pieces of 28 by 28 pixels. Newer ones take
    /// more; they are counted the same here.
    pub const ANTHROPIC: Self =
        Self { longest_side: 1568, pixels: 1568 * 28 * 28, piece: 28, tokens_per_hundred: 100 };
    /// OpenAI's models with `detail: high`: 2,500 pieces of 32 by 32 pixels, each 1.2 tokens.
    pub const OPENAI: Self =
        Self { longest_side: 2048, pixels: 2500 * 32 * 32, piece: 32, tokens_per_hundred: 120 };
    /// Servers whose rule is their model's.
    pub const OTHER: Self = Self {
        longest_side: FREE_SIDE,
        pixels: FREE_SIDE as u64 * FREE_SIDE as u64,
        piece: 28,
        tokens_per_hundred: 100,
    };

    /// The largest picture that is sent: the vendor's, and no more than these limits where they are
    /// not 0.
    #[must_use]
    pub fn fit_within(self, longest_side: u32, pixels: u64) -> PictureFit {
        let side = if longest_side == 0 { self.longest_side } else { longest_side };
        // Part of a piece counts as one: a row and a column of them are left free.
        let most = self.pixels.saturating_sub(64 * u64::from(side.min(2048)));
        let pixels = if pixels == 0 { most } else { pixels.min(most) };
        PictureFit { longest_side: side, pixels, quarter_turns: 0 }
    }

    /// Tokens that a picture of this size counts for.
    #[must_use]
    pub fn count_tokens(self, width: u32, height: u32) -> u64 {
        let pieces = u64::from(width.div_ceil(self.piece.max(1)))
            .saturating_mul(u64::from(height.div_ceil(self.piece.max(1))));
        pieces.saturating_mul(self.tokens_per_hundred).div_ceil(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_counts_as_many_tokens_as_its_vendors_rule() {
        #[rustfmt::skip]
        let table = [
            // A page of A4 as each takes it, with the counts of the vendors' own pages.
            (PictureRule::ANTHROPIC, 924, 1307, 33 * 47),
            (PictureRule::OPENAI,    911, 1288, 1_427),
            (PictureRule::OTHER,     29, 28, 2),
        ];
        for (rule, width, height, tokens) in table {
            assert_eq!(rule.count_tokens(width, height), tokens, "{rule:?}");
        }
    }

    #[test]
    fn no_limit_enlarges_a_vendors_own() {
        let rule = PictureRule::ANTHROPIC;
        assert!(rule.fit_within(0, u64::MAX).pixels < rule.pixels);
        assert_eq!(rule.fit_within(0, 500_000).pixels, 500_000);
        assert_eq!(rule.fit_within(800, 0).longest_side, 800);
    }
}
