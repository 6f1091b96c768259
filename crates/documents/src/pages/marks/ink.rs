//! The ink of a picture as its connected pieces.

use opencv::core::{CV_32S, Mat, Rect};
use opencv::imgproc;
use opencv::prelude::*;

use crate::pages::page::PageRaster;
use crate::pages::plane::{OpenCvError, shrink_mat, view_raster};
use docmill_core::model::BoundingBox;

/// Pixels that are looked at: A4 at 350 dpi. A larger picture is looked at smaller.
const MOST_PIXELS: u64 = 12_000_000;
/// Side of the surroundings that ink has to be darker than, in pixels at any resolution in use: wider
/// than a corner pattern of a code.
pub(super) const SURROUNDINGS: i32 = 151;
/// By how much it has to be darker.
pub(super) const DARKER: f64 = 18.0;

/// Places across and down by which the ink of an area is estimated.
const SAMPLES: u16 = 32;

/// A change between ink and paper in so many pixels at least is busy: a code has one a module or two, and
/// where a module has more pixels it is read.
const BUSY: i64 = 12;

/// A connected piece of ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InkPiece {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    /// Its pixels.
    pub(super) count: i32,
}

/// The ink of a picture.
pub(super) struct PageInk {
    bits: Mat,
    /// Which piece each pixel is of, row by row; 0 is paper.
    labels: Mat,
    /// The pieces; the first one is the paper.
    pub(super) pieces: Vec<InkPiece>,
    /// How much larger the picture is than what was looked at.
    pub(super) scale: f32,
}

impl PageInk {
    pub(super) fn from_raster(picture: &PageRaster) -> Result<Self, OpenCvError> {
        let pixels = u64::from(picture.width) * u64::from(picture.height);
        let factor = (1_u8..=8)
            .find(|factor| pixels / (u64::from(*factor) * u64::from(*factor)) <= MOST_PIXELS);
        let factor = factor.unwrap_or(8);
        let small = shrink_mat(&view_raster(picture)?, i32::from(factor))?;
        let mut bits = Mat::default();
        let (mean, inverse) = (imgproc::ADAPTIVE_THRESH_MEAN_C, imgproc::THRESH_BINARY_INV);
        imgproc::adaptive_threshold(&small, &mut bits, 255.0, mean, inverse, SURROUNDINGS, DARKER)?;
        Self::from_bits(bits, f32::from(factor))
    }

    fn from_bits(bits: Mat, scale: f32) -> Result<Self, OpenCvError> {
        let (mut labels, mut stats, mut centres) = (Mat::default(), Mat::default(), Mat::default());
        imgproc::connected_components_with_stats(
            &bits,
            &mut labels,
            &mut stats,
            &mut centres,
            4,
            CV_32S,
        )?;
        let piece = |numbers: &[i32]| match *numbers {
            [left, top, width, height, count] => Some(InkPiece { left, top, width, height, count }),
            _ => None,
        };
        let pieces = stats.data_typed::<i32>()?.chunks_exact(5).filter_map(piece).collect();
        Ok(Self { bits, labels, pieces, scale })
    }

    /// A part of it by itself: what is connected only outside of it is not.
    pub(super) fn cut_out(&self, area: Rect) -> Result<Self, OpenCvError> {
        let mut bits = Mat::default();
        self.bits.roi(area)?.copy_to(&mut bits)?;
        Self::from_bits(bits, self.scale)
    }

    /// Whether ink and paper change about as often as on a code, along rows and along columns.
    pub(super) fn is_busy(&self) -> Result<bool, OpenCvError> {
        let changes = |from: Rect, to: Rect| -> Result<i64, OpenCvError> {
            let mut differs = Mat::default();
            let (one, other) = (self.bits.roi(from)?, self.bits.roi(to)?);
            opencv::core::absdiff(&one, &other, &mut differs)?;
            Ok(i64::from(opencv::core::count_non_zero(&differs)?))
        };
        let (width, height) = (self.width(), self.height());
        if width < 2 || height < 2 {
            return Ok(false);
        }
        let across =
            changes(Rect::new(0, 0, width - 1, height), Rect::new(1, 0, width - 1, height))?;
        let down = changes(Rect::new(0, 0, width, height - 1), Rect::new(0, 1, width, height - 1))?;
        let pixels = i64::from(width) * i64::from(height);
        Ok(across.min(down) * BUSY >= pixels)
    }

    /// Rows of what was looked at.
    pub(super) fn height(&self) -> i32 {
        self.labels.rows()
    }

    /// Pixels per row.
    pub(super) fn width(&self) -> i32 {
        self.labels.cols()
    }

    /// The pieces that the pixels of a row are of.
    pub(super) fn row(&self, at: i32) -> &[i32] {
        self.labels.at_row::<i32>(at).unwrap_or_default()
    }

    /// The piece that a pixel is of; 0 beyond the picture.
    pub(super) fn label_at(&self, x: i32, y: i32) -> i32 {
        let at = usize::try_from(x).ok().filter(|_| (0..self.height()).contains(&y));
        at.and_then(|x| self.row(y).get(x).copied()).unwrap_or_default()
    }

    /// Whether there is ink.
    pub(super) fn is_ink(&self, x: i32, y: i32) -> bool {
        self.label_at(x, y) != 0
    }

    /// Whether so much of an area is ink as of codes, and hardly of anything else: of places side by
    /// side in it a quarter.
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
    pub(super) fn is_dense(&self, area: &BoundingBox) -> bool {
        let places = (0..SAMPLES).flat_map(|row| (0..SAMPLES).map(move |column| (column, row)));
        let at = |start: f32, length: f32, index: u16| {
            (start + length * (f32::from(index) + 0.5) / f32::from(SAMPLES)) as i32
        };
        let is_ink = |(column, row): &(u16, u16)| {
            self.is_ink(at(area.x, area.w, *column), at(area.y, area.h, *row))
        };
        places.filter(is_ink).count() * 4 > usize::from(SAMPLES) * usize::from(SAMPLES)
    }

    pub(super) fn piece(&self, label: i32) -> Option<InkPiece> {
        usize::try_from(label).ok().and_then(|at| self.pieces.get(at)).copied()
    }
}
