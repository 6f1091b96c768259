//! Figures on a page's picture: regions of tone, darker over a good part of an inch than print ever is,
//! that no words cover. Rather none than a wrong one.
//!
//! Not told: drawings of lines on white, which are as light as print; what touches the edges of the
//! picture, where shadows and tables lie that a page was photographed on; what fills the page.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, TextLine};
use opencv::core::{CV_32S, Mat, Point, Rect, Size};
use opencv::imgproc;
use opencv::prelude::*;

use crate::image::opencv_mat::{OpenCvError, count_values, shrink_mat, view_raster};
use crate::page::PageRaster;

/// Dots per inch at which tone is looked at.
const TONE_DPI: u32 = 50;
/// Over so many of them tone is averaged: two lines of print.
const AVERAGED: i32 = 13;
/// Tone as a share of the paper's. Black print in small letters is at .75.
const TONE: f32 = 0.66;
/// Least side, in dots: an inch.
const MIN_SIDE: i32 = 50;
/// Share of the page that a figure covers at least and at most.
const SIZES: std::ops::Range<f64> = 0.02..0.85;
/// White between a figure and the edge of the picture, in dots.
const EDGE: i32 = 7;
/// Share of its box that has tone.
const FILLED: f64 = 0.6;
/// Share of its box that words cover at most.
const WORDS: f32 = 0.1;
/// How much its greys differ, as a standard deviation: more than those of a shadow.
const TEXTURE: f64 = 12.0;

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
        let place = scaled_box(area, scale);
        if differs(&tones, area)? && !has_words(&place, lines) {
            found.push(PageMark { kind: PageMarkKind::Figure, bounding_box: place });
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
    let (side, border) = (Size::new(AVERAGED, AVERAGED), opencv::core::BORDER_REPLICATE);
    imgproc::blur(tones, &mut average, side, Point::new(-1, -1), border)?;
    let most = f64::from(paper * TONE);
    imgproc::threshold(&average, &mut toned, most, 255.0, imgproc::THRESH_BINARY_INV)?;
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
    let is_figure = |numbers: &&[i32]| match **numbers {
        [left, top, width, height, count] => {
            let size = f64::from(width) * f64::from(height);
            width.min(height) >= MIN_SIDE
                && SIZES.contains(&(size / whole))
                && left.min(top) >= EDGE
                && left + width <= across - EDGE
                && top + height <= down - EDGE
                && f64::from(count) >= FILLED * size
        }
        _ => false,
    };
    let area = |numbers: &[i32]| match *numbers {
        [left, top, width, height, _] => Some(Rect::new(left, top, width, height)),
        _ => None,
    };
    // The first piece is the paper.
    let pieces = stats.data_typed::<i32>()?.chunks_exact(5).skip(1);
    Ok(pieces.filter(is_figure).filter_map(area).collect())
}

fn differs(tones: &Mat, area: Rect) -> Result<bool, OpenCvError> {
    let (mut mean, mut deviation) = (Mat::default(), Mat::default());
    let inside = tones.roi(area)?;
    opencv::core::mean_std_dev(&inside, &mut mean, &mut deviation, &opencv::core::no_array())?;
    Ok(deviation.data_typed::<f64>()?.first().is_some_and(|value| *value >= TEXTURE))
}

fn has_words(area: &BoundingBox, lines: &[TextLine]) -> bool {
    let words = lines.iter().flat_map(|line| &line.words);
    words.map(|word| area.shared_area(&word.bounding_box)).sum::<f32>() > WORDS * area.w * area.h
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
fn scaled_box(area: Rect, scale: f32) -> BoundingBox {
    let length = |pixels: i32| pixels as f32 * scale;
    let (x, y) = (length(area.x), length(area.y));
    BoundingBox { x, y, w: length(area.width), h: length(area.height) }
}
