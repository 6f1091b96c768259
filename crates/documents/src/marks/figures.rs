//! Figures on a page's picture: regions of tone, darker over a good part of an inch than print,
//! that no words cover. Precision over recall.
//!
//! Not covered: line drawings on white, which are as light as print; regions at the edges of the
//! picture, where photographs have shadows and the table; regions that fill the page.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, TextLine};
use opencv::core::{CV_32S, Mat, Point, Rect, Size};
use opencv::imgproc;
use opencv::prelude::*;

use super::ruling_removal::box_of;
use crate::image::opencv_mat::{OpenCvError, count_values, shrink_mat, view_raster};
use crate::page::PageRaster;

/// Resolution at which tone is measured.
const TONE_DPI: u32 = 50;
/// Side of the square over which tone is averaged: two lines of print.
const AVERAGED_DOTS: i32 = 13;
/// Tone as a share of the paper's. Black print in small letters is at .75.
const MAX_TONE: f32 = 0.66;
/// An inch.
const MIN_SIDE_DOTS: i32 = 50;
/// Share of the page.
const AREA_SHARES: std::ops::Range<f64> = 0.02..0.85;
/// White between a figure and the edge of the picture.
const MIN_EDGE_DOTS: i32 = 7;
/// Share of its box that has tone.
const MIN_FILLED_SHARE: f64 = 0.6;
/// Share of its box that words cover.
const MAX_WORDS_SHARE: f32 = 0.1;
/// Standard deviation of its greys: shadows have less.
const MIN_DEVIATION: f64 = 12.0;

/// The figures, from the top; boxes in pixels of the picture, as those of `lines` are.
///
/// # Errors
/// No memory.
pub(super) fn find_figures(
    picture: &PageRaster,
    lines: &[TextLine],
) -> Result<Vec<PageMark>, OpenCvError> {
    let factor = (picture.dpi / TONE_DPI).clamp(1, 64);
    let factor = i32::try_from(factor).unwrap_or(1);
    let tones = shrink_mat(&view_raster(picture)?, factor)?;
    let mut found = Vec::new();
    for area in toned_areas(&tones)? {
        let scale = f32::from(i16::try_from(factor).unwrap_or(1));
        let bounding_box = scaled_box(area, scale);
        if differs(&tones, area)? && !has_words(&bounding_box, lines) {
            found.push(PageMark { kind: PageMarkKind::Figure, bounding_box });
        }
        if found.len() == PageMark::MAX_PER_PAGE {
            break;
        }
    }
    Ok(found)
}

/// Boxes around regions of tone that have the size and form of figures.
fn toned_areas(tones: &Mat) -> Result<Vec<Rect>, OpenCvError> {
    // The grey of which a tenth of the page is lighter.
    let paper = count_values(tones, &Mat::default())?.quantile(0.9);
    let (mut average, mut toned) = (Mat::default(), Mat::default());
    let (side, border) = (Size::new(AVERAGED_DOTS, AVERAGED_DOTS), opencv::core::BORDER_REPLICATE);
    imgproc::blur(tones, &mut average, side, Point::new(-1, -1), border)?;
    let darkest = f64::from(paper * MAX_TONE);
    imgproc::threshold(&average, &mut toned, darkest, 255.0, imgproc::THRESH_BINARY_INV)?;
    let (mut labels, mut stats, mut centres) = (Mat::default(), Mat::default(), Mat::default());
    imgproc::connected_components_with_stats(
        &toned,
        &mut labels,
        &mut stats,
        &mut centres,
        8,
        CV_32S,
    )?;
    let (across, down) = (tones.cols(), tones.rows());
    let whole = f64::from(across) * f64::from(down);
    let mut found = Vec::new();
    // The first piece is the paper.
    for numbers in stats.data_typed::<i32>()?.chunks_exact(5).skip(1) {
        let [left, top, width, height, count] = *numbers else { continue };
        let size = f64::from(width) * f64::from(height);
        if width.min(height) >= MIN_SIDE_DOTS
            && AREA_SHARES.contains(&(size / whole))
            && left.min(top) >= MIN_EDGE_DOTS
            && left + width <= across - MIN_EDGE_DOTS
            && top + height <= down - MIN_EDGE_DOTS
            && f64::from(count) >= MIN_FILLED_SHARE * size
        {
            found.push(Rect::new(left, top, width, height));
        }
    }
    Ok(found)
}

fn differs(tones: &Mat, area: Rect) -> Result<bool, OpenCvError> {
    let (mut mean, mut deviation) = (Mat::default(), Mat::default());
    let inside = tones.roi(area)?;
    opencv::core::mean_std_dev(&inside, &mut mean, &mut deviation, &opencv::core::no_array())?;
    Ok(deviation.data_typed::<f64>()?.first().is_some_and(|value| *value >= MIN_DEVIATION))
}

fn has_words(area: &BoundingBox, lines: &[TextLine]) -> bool {
    let words = lines.iter().flat_map(|line| &line.words);
    words.map(|word| area.shared_area(&word.bounding_box)).sum::<f32>()
        > MAX_WORDS_SHARE * area.w * area.h
}

fn scaled_box(area: Rect, scale: f32) -> BoundingBox {
    box_of(area).scaled(scale, scale)
}
