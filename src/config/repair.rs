//! `[ocr.repair]`: what may be done to a page image before it is read.

use serde::{Deserialize, Serialize};

/// Which repairs are allowed. Each happens only to a page that has the defect it is for; a page
/// without defects is never touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one key each")]
pub struct RepairConfig {
    /// Whether pages are repaired at all.
    pub enabled: bool,
    /// Turning pages whose lines run along the columns, or that stand on their head.
    pub orientation: bool,
    /// Cutting a photographed page out of its surroundings and straightening it.
    pub perspective: bool,
    /// Evening out shadows.
    pub illumination: bool,
    /// Stretching faint or dark pages to the full range.
    pub contrast: bool,
    /// Smoothing noise and removing specks.
    pub noise: bool,
    /// Sharpening blurred pages.
    pub sharpen: bool,
    /// Straightening skewed pages.
    pub deskew: bool,
    /// Enlarging small text.
    pub upscale: bool,
}

impl RepairConfig {
    /// Nothing is repaired.
    pub const OFF: Self = Self {
        enabled: false,
        orientation: false,
        perspective: false,
        illumination: false,
        contrast: false,
        noise: false,
        sharpen: false,
        deskew: false,
        upscale: false,
    };
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            orientation: true,
            perspective: true,
            illumination: true,
            contrast: true,
            noise: true,
            sharpen: true,
            deskew: true,
            upscale: true,
        }
    }
}
