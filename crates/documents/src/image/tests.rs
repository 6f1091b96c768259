//! Photos in HEIC, AVIF and JPEG XL against the picture that `scripts/draw_photos.py` drew.

use bytes::Bytes;
use image::GrayImage;
use image::imageops::{crop_imm, flip_horizontal, flip_vertical, rotate90, rotate180, rotate270};

use super::format::DocumentFormat;
use super::heif::MAX_LIST_BYTES;
use super::picture::{DecodedPicture, decode_picture};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

const SCENE: &[u8] = include_bytes!("../../../../tests/photos/scene.png");

fn limits(page_pixels: u64) -> LimitsConfig {
    LimitsConfig { page_pixels, ..LimitsConfig::default() }
}

fn decode(photo: &[u8], most: u64) -> Result<DecodedPicture, PageRefusal> {
    let bytes = Bytes::copy_from_slice(photo);
    let format = DocumentFormat::sniff(photo).unwrap();
    decode_picture(&bytes, format, &limits(most))
}

fn as_grey(photo: &[u8]) -> GrayImage {
    let page = decode(photo, 1_000_000).unwrap().raster;
    GrayImage::from_raw(page.width, page.height, page.pixels).unwrap()
}

/// Peak signal-to-noise ratio of two pictures of one size, in decibels.
fn likeness(one: &GrayImage, other: &GrayImage) -> f64 {
    assert_eq!(one.dimensions(), other.dimensions());
    let pairs = one.as_raw().iter().zip(other.as_raw());
    let sum: f64 = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    let mean = sum / f64::from(one.width() * one.height());
    20.0 * 255_f64.log10() - 10.0 * mean.max(1e-9).log10()
}

macro_rules! photo {
    ($name:literal) => {
        ($name, &include_bytes!(concat!("../../../../tests/photos/", $name))[..])
    };
}

#[test]
fn a_photo_is_the_picture_that_was_drawn_upright_and_in_its_colours() {
    let scene = as_grey(SCENE);
    let cut = |picture: &GrayImage, x: u32, y: u32, width: u32, height: u32| {
        crop_imm(picture, x, y, width, height).to_image()
    };
    let part = cut(&scene, 0, 0, 150, 100);
    let mut masked = scene.clone();
    masked.enumerate_pixels_mut().filter(|(_, y, _)| *y >= 84).for_each(|it| it.2.0 = [255]);
    let table = [
        (photo!("scene.heic"), scene.clone()),
        (photo!("grey.heic"), scene.clone()),
        (photo!("ten_bits.heic"), scene.clone()),
        (photo!("stated_by_coding.heic"), scene.clone()),
        (photo!("limited_by_coding.heic"), scene.clone()),
        (photo!("second_is_primary.heic"), scene.clone()),
        (photo!("turned.heic"), rotate270(&scene)),
        (photo!("upside_down.heic"), rotate180(&scene)),
        (photo!("turned_back.heic"), rotate90(&scene)),
        (photo!("mirrored.heic"), flip_vertical(&scene)),
        (photo!("flipped.heic"), flip_horizontal(&scene)),
        (photo!("turned_and_mirrored.heic"), flip_vertical(&rotate270(&scene))),
        (photo!("phone.heic"), rotate90(&scene)),
        (photo!("grid.heic"), rotate90(&part)),
        (photo!("cropped.heic"), cut(&scene, 0, 0, 96, 64)),
        (photo!("transparent.heic"), masked.clone()),
        (photo!("scene.avif"), scene.clone()),
        (photo!("grey.avif"), scene.clone()),
        (photo!("ten_bits.avif"), scene.clone()),
        (photo!("every_colour.avif"), scene.clone()),
        (photo!("half_the_colours.avif"), scene.clone()),
        (photo!("without_loss.avif"), scene.clone()),
        (photo!("stated_by_coding.avif"), scene.clone()),
        (photo!("limited_by_coding.avif"), scene.clone()),
        (photo!("phone.avif"), rotate90(&scene)),
        (photo!("grid.avif"), rotate90(&part)),
        (photo!("transparent.avif"), masked.clone()),
        (photo!("scene.jxl"), scene.clone()),
        (photo!("boxes.jxl"), scene.clone()),
        (photo!("lossless.jxl"), scene.clone()),
        (photo!("grey.jxl"), scene.clone()),
        (photo!("16_bits.jxl"), scene.clone()),
        (photo!("turned.jxl"), rotate90(&scene)),
        (photo!("transparent.jxl"), masked),
    ];
    for ((name, photo), expected) in table {
        let found = likeness(&as_grey(photo), &expected);
        assert!(found > 34.0, "{name}: {found:.1} dB");
    }
}

#[test]
fn a_photo_that_ends_early_or_has_no_primary_picture_is_corrupt() {
    for (name, photo) in [
        photo!("scene.heic"),
        photo!("grid.heic"),
        photo!("ten_bits.heic"),
        photo!("scene.avif"),
        photo!("grid.avif"),
        photo!("without_loss.avif"),
        photo!("scene.jxl"),
        photo!("boxes.jxl"),
        photo!("lossless.jxl"),
        photo!("turned.jxl"),
    ] {
        for end in (64..photo.len()).step_by(64) {
            let Err(refusal) = decode(&photo[..end], 1_000_000) else {
                panic!("{name} up to {end}")
            };
            assert_eq!(refusal.reason, OutcomeReason::Corrupt, "{name} up to {end}");
        }
    }
    let (_, photo) = photo!("no_primary.heic");
    assert_eq!(decode(photo, 1_000_000).unwrap_err().reason, OutcomeReason::Corrupt);
}

#[test]
fn a_photo_with_more_pixels_than_are_allowed_is_refused_before_they_are_decoded() {
    for ((name, photo), most, words) in [
        (photo!("scene.heic"), 192 * 128 - 1, "192 x 128 pixels"),
        (photo!("grid.heic"), 150 * 100 - 1, "150 x 100 pixels"),
        (photo!("lying_size.heic"), 192 * 128 / 2 - 1, "pixels in its parts"),
        (photo!("repeated_tile.heic"), 100_000, "pixels in its parts"),
        (photo!("scene.avif"), 192 * 128 - 1, "192 x 128 pixels"),
        (photo!("lying_size.avif"), 192 * 128 / 2 - 1, "in its parts"),
        (photo!("repeated_tile.avif"), 100_000, "in its parts"),
        (photo!("scene.jxl"), 192 * 128 - 1, "192 x 128 pixels"),
    ] {
        let refusal = decode(photo, most).unwrap_err();
        assert_eq!(refusal.reason, OutcomeReason::TooLarge, "{name}");
        assert!(refusal.detail.contains(words), "{name}: {}", refusal.detail);
    }
}

#[test]
fn a_photo_with_a_list_of_pictures_without_end_is_refused() {
    let head = b"\0\0\0\x14ftypheic\0\0\0\0mif1";
    let list = |size: usize| {
        let size = u32::try_from(size).unwrap();
        [&head[..], &(size + 8).to_be_bytes(), b"meta", &vec![0; size as usize]].concat()
    };
    for (size, reason) in [
        (MAX_LIST_BYTES, OutcomeReason::UnsupportedType),
        (MAX_LIST_BYTES + 1, OutcomeReason::TooLarge),
    ] {
        assert_eq!(decode(&list(size), 1_000_000).unwrap_err().reason, reason, "{size}");
    }
}
