//! Pages made in code, for tests: lines of "letters" of the right proportions, and ways to spoil
//! them.

use opencv::core::{self, Mat, Point, Point2f, Rect, Scalar, Size};
use opencv::imgproc;
use opencv::prelude::*;

use crate::image::opencv_mat;
use crate::page::PageRaster;

/// A page of text: every line has letters with and without ascender, a few with descender.
pub(crate) fn text_page(width: u32, height: u32, letter: i32) -> PageRaster {
    let (wide, tall) = (i32::try_from(width).unwrap(), i32::try_from(height).unwrap());
    let mut page = opencv_mat::uniform_mat(Size::new(wide, tall), 255.0).unwrap();
    let stroke = (letter / 7).max(2);
    let (mut x, mut y) = (wide / 8, tall / 10);
    let mut at = 0_i32;
    while y < tall - tall / 10 {
        // Word gaps, and lines of different lengths as in a paragraph.
        let top = if at % 5 < 2 { y - letter * 2 / 5 } else { y };
        let bottom = if at % 11 == 4 { y + letter * 7 / 5 } else { y + letter };
        let glyph = Rect::new(x, top, letter * 3 / 5, bottom - top);
        imgproc::rectangle(&mut page, glyph, Scalar::all(0.0), stroke, imgproc::LINE_8, 0).unwrap();
        at += 1;
        x += letter * if at % 6 == 0 { 2 } else { 1 };
        if x > wide * 7 / 8 - (at * 37) % (wide / 6) {
            (x, y) = (wide / 8, y + letter * 5 / 2);
        }
    }
    opencv_mat::raster_from_mat(&page, 300).unwrap()
}

/// The page through a change of its pixels.
pub(crate) fn spoilt(page: &PageRaster, spoil: impl Fn(&Mat) -> Mat) -> PageRaster {
    let plane = opencv_mat::view_raster(page).unwrap().try_clone().unwrap();
    opencv_mat::raster_from_mat(&spoil(&plane), page.dpi).unwrap()
}

/// Turned clockwise about its middle on white paper of the same size.
pub(crate) fn skewed(page: &PageRaster, degrees: f64) -> PageRaster {
    spoilt(page, |plane| {
        let size = plane.size().unwrap();
        let middle = Point2f::new(size.width as f32 / 2.0, size.height as f32 / 2.0);
        let turn = imgproc::get_rotation_matrix_2d(middle, -degrees, 1.0).unwrap();
        let (cubic, constant) = (imgproc::INTER_CUBIC, core::BORDER_CONSTANT);
        let mut skewed = Mat::default();
        imgproc::warp_affine(plane, &mut skewed, &turn, size, cubic, constant, Scalar::all(255.0))
            .unwrap();
        skewed
    })
}

/// As `gain * pixel + offset`.
pub(crate) fn scaled(page: &PageRaster, gain: f64, offset: f64) -> PageRaster {
    spoilt(page, |plane| {
        let mut scaled = Mat::default();
        plane.convert_to(&mut scaled, core::CV_8U, gain, offset).unwrap();
        scaled
    })
}

/// In a shadow that falls from full light at the left to three tenths at the right.
pub(crate) fn shadowed(page: &PageRaster) -> PageRaster {
    let mut dark = page.clone();
    let width = page.width as usize;
    for row in dark.pixels.chunks_mut(width) {
        for (x, pixel) in row.iter_mut().enumerate() {
            let lit = usize::from(*pixel) * (10 * width - 7 * x) / (10 * width);
            *pixel = u8::try_from(lit).unwrap();
        }
    }
    dark
}

/// With noise of about this deviation, the same on every run.
pub(crate) fn noisy(page: &PageRaster, deviation: i32) -> PageRaster {
    let mut grainy = page.clone();
    let mut random = fastrand::Rng::with_seed(7);
    for pixel in &mut grainy.pixels {
        // The sum of three even ones is near enough to a bell.
        let noise: i32 = (0..3).map(|_| random.i32(-deviation..=deviation)).sum();
        *pixel = (i32::from(*pixel) + noise).clamp(0, 255) as u8;
    }
    grainy
}

/// With this share of its pixels made black.
pub(crate) fn speckled(page: &PageRaster, share: f32) -> PageRaster {
    let mut dirty = page.clone();
    let mut random = fastrand::Rng::with_seed(7);
    for pixel in &mut dirty.pixels {
        if random.f32() < share {
            *pixel = 0;
        }
    }
    dirty
}

/// Grey paper with this share of its pixels made black, and a tenth as many specks of three by
/// three.
pub(crate) fn specked(page: &PageRaster, share: f32) -> PageRaster {
    let mut dirty = speckled(&scaled(page, 0.85, 0.0), share);
    let mut random = fastrand::Rng::with_seed(8);
    let across = dirty.width as usize;
    for at in 0..dirty.pixels.len() {
        if random.f32() < share / 10.0 {
            for row in 0..3 {
                let from = (at + row * across).min(dirty.pixels.len() - 3);
                dirty.pixels[from..from + 3].fill(0);
            }
        }
    }
    dirty
}

/// After JPEG of this quality, 1 to 100.
pub(crate) fn compressed(page: &PageRaster, quality: u8) -> PageRaster {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality);
    let color = image::ExtendedColorType::L8;
    encoder.encode(&page.pixels, page.width, page.height, color).unwrap();
    let decoded = image::load_from_memory(&bytes).unwrap().into_luma8();
    PageRaster { pixels: decoded.into_raw(), ..page.clone() }
}

/// Photographed: the corners of the sheet on a darker table.
pub(crate) fn photographed(page: &PageRaster, corners: [Point2f; 4]) -> PageRaster {
    spoilt(page, |plane| {
        let (width, height) = (plane.cols() as f32, plane.rows() as f32);
        let sheet = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
        let from = core::Vector::<Point2f>::from_iter(sheet.map(|(x, y)| Point2f::new(x, y)));
        let to = core::Vector::<Point2f>::from_slice(&corners);
        let view = imgproc::get_perspective_transform(&from, &to, core::DECOMP_LU).unwrap();
        let mut photo = Mat::default();
        imgproc::warp_perspective(
            plane,
            &mut photo,
            &view,
            plane.size().unwrap(),
            imgproc::INTER_LINEAR,
            core::BORDER_CONSTANT,
            Scalar::all(70.0),
        )
        .unwrap();
        photo
    })
}

/// With a bright spot of a lamp in its middle that has nothing in it.
pub(crate) fn glaring(page: &PageRaster) -> PageRaster {
    spoilt(page, |plane| {
        let mut lit = plane.try_clone().unwrap();
        let middle = Point::new(plane.cols() / 2, plane.rows() / 2);
        let (white, filled) = (Scalar::all(255.0), imgproc::FILLED);
        imgproc::circle(&mut lit, middle, plane.cols() / 6, white, filled, imgproc::LINE_8, 0)
            .unwrap();
        lit
    })
}

/// Under a hard shadow that runs aslant across it and leaves three tenths of the light.
pub(crate) fn half_shaded(page: &PageRaster) -> PageRaster {
    let mut dark = page.clone();
    let width = page.width as usize;
    for (y, row) in dark.pixels.chunks_mut(width).enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            if 3 * x + y < 2 * width {
                *pixel = u8::try_from(u32::from(*pixel) * 3 / 10).unwrap();
            }
        }
    }
    dark
}

/// Folded twice: its quarters turned to the light by different angles.
pub(crate) fn creased(page: &PageRaster) -> PageRaster {
    let mut folded = page.clone();
    let (width, height) = (page.width as usize, page.height as usize);
    for (y, row) in folded.pixels.chunks_mut(width).enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            let tenths = [[9, 7], [6, 8]][usize::from(2 * y > height)][usize::from(2 * x > width)];
            *pixel = u8::try_from(u32::from(*pixel) * tenths / 10).unwrap();
        }
    }
    folded
}

/// On paper that curls: its lines sag by `depth` pixels between the sides, those at the foot of the
/// page by half of that.
pub(crate) fn curled(page: &PageRaster, depth: f64) -> PageRaster {
    spoilt(page, |plane| {
        let (width, height) = (f64::from(plane.cols()), f64::from(plane.rows()));
        let place = |x: i32, y: i32| {
            let (x, y) = (f64::from(x), f64::from(y));
            let sag = depth * (1.0 - y / height / 2.0) * (x / width * 3.0).sin();
            (opencv_mat::to_f32(x), opencv_mat::to_f32(y - sag))
        };
        let (mut across, mut down) = (Vec::new(), Vec::new());
        for y in 0..plane.rows() {
            for x in 0..plane.cols() {
                let (from_x, from_y) = place(x, y);
                across.push(from_x);
                down.push(from_y);
            }
        }
        let (rows, cols) = (plane.rows(), plane.cols());
        let across = Mat::new_rows_cols_with_data(rows, cols, &across).unwrap();
        let down = Mat::new_rows_cols_with_data(rows, cols, &down).unwrap();
        let mut bent = Mat::default();
        let (linear, edge) = (imgproc::INTER_LINEAR, core::BORDER_REPLICATE);
        imgproc::remap(plane, &mut bent, &across, &down, linear, edge, Scalar::default()).unwrap();
        bent
    })
}
