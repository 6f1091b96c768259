//! Photos in a HEIF container (ISO/IEC 23008-12): HEIC, as phones take them, and AVIF.
//!
//! The page is the primary picture. Its thumbnail, its depth and gain maps, and further pictures of
//! the file are no pages. Sizes are checked before anything is decoded: the stated one, and those
//! of all coded tiles together. The container's orientation is applied; Exif's is not, because it
//! is already applied (§A.2.1).

use heic_rs::boxes::BoxIter;
use heic_rs::grid::{self, Grid};
use heic_rs::hevc::{self, ChromaFormat, Frame};
use heic_rs::image::PixelLayout;
use heic_rs::meta::iref::{RefKind, targets};
use heic_rs::meta::{self, Meta};
use heic_rs::props::colr::{MatrixCoefficients, Nclx};
use heic_rs::props::hvcc::NAL_SPS;
use heic_rs::props::simple::{AuxKind, Mirror};
use heic_rs::props::{self, ItemProps, Transform};
use heic_rs::{color, transform};
use image::{DynamicImage, GrayImage, RgbImage, RgbaImage};

use crate::image::av1::decode_av1;
use crate::image::hevc_parameters::HevcParameters;
use crate::image::refusal::{check_size, undecodable, unread_encoding};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Bytes of the `meta` box. The crate's parser takes quadratic time in its size.
pub(super) const MAX_LIST_BYTES: usize = 256 << 10;
/// Coded pixels of tiles and alpha plane together, as a multiple of `limits.page_pixels`.
const MAX_CODED_PAGES: u64 = 2;

/// The item type of an AV1 picture (AV1 Image File Format §2.1).
const AV1: [u8; 4] = *b"av01";

/// `general_profile_idc` of the range extensions (ITU-T H.265 §A.3.5), which the crate decodes in
/// part.
const RANGE_EXTENSIONS: u8 = 4;

/// Decodes the primary picture, upright.
///
/// # Errors
/// `too_large`, `corrupt`, or `unsupported_type` for an encoding that is not read.
pub(crate) fn decode_heif(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DynamicImage, PageRefusal> {
    let list = BoxIter::new(bytes).require(b"meta", "meta").map_err(refusal_from_error)?;
    if list.payload.len() > MAX_LIST_BYTES {
        let detail = format!("a list of pictures of {} bytes", list.payload.len());
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    let meta = meta::parse(bytes).map_err(refusal_from_error)?;
    let most = limits.page_pixels.saturating_mul(MAX_CODED_PAGES);
    let mut file = HeifFile { bytes, meta, coded: 0, most };
    let primary = file.meta.primary;
    let picture = file.find_picture(primary)?;
    let transparency = file.find_transparency(primary)?;
    if let Some(size) = picture.stated_size() {
        check_size(size.0, size.1, limits)?;
    }
    let decoded = file.decode_picture(&picture)?;
    let transparency = transparency.map(|alpha| file.decode_picture(&alpha)).transpose()?;
    check_size(decoded.frame.width, decoded.frame.height, limits)?;
    let colour = picture.colour(decoded.colour);
    paint(decoded.frame, transparency.map(|alpha| alpha.frame), colour, &picture.props)
}

/// The file and its parsed `meta` box.
struct HeifFile<'a> {
    bytes: &'a [u8],
    meta: Meta<'a>,
    /// Pixels decoded so far, ...
    coded: u64,
    /// ... and their limit.
    most: u64,
}

/// A picture and the tiles it is made of.
struct HeifPicture<'a> {
    props: ItemProps<'a>,
    grid: Option<Grid>,
    /// The tiles of the grid, or the picture itself.
    tiles: Vec<HeifTile<'a>>,
}

/// A coded picture.
struct HeifTile<'a> {
    id: u32,
    props: ItemProps<'a>,
}

/// A decoded picture and its coded colour description.
struct DecodedFrame {
    frame: Frame,
    colour: Nclx,
}

impl HeifPicture<'_> {
    fn stated_size(&self) -> Option<(u32, u32)> {
        let of_grid = self.grid.map(|grid| (grid.output_width, grid.output_height));
        of_grid.or_else(|| self.props.ispe.map(|size| (size.width, size.height)))
    }

    /// The colour description: the container's before the coded one.
    fn colour(&self, of_coding: Nclx) -> Nclx {
        let of_tile = self.tiles.first().and_then(|tile| tile.props.nclx);
        let colour = self.props.nclx.or(of_tile).unwrap_or(of_coding);
        match colour.matrix {
            // The matrix of most photos (ISO/IEC 23000-22 §7.3.6.4).
            MatrixCoefficients::Unspecified => Nclx { matrix: MatrixCoefficients::Bt601, ..colour },
            _ => colour,
        }
    }
}

impl<'a> HeifFile<'a> {
    fn properties(&self, item: u32) -> Result<ItemProps<'a>, PageRefusal> {
        props::gather(&self.meta.props, item).map_err(refusal_from_error)
    }

    fn find_picture(&self, item: u32) -> Result<HeifPicture<'a>, PageRefusal> {
        let info = self.meta.item(item).ok_or_else(undecodable)?;
        let props = self.properties(item)?;
        if !info.is_grid() {
            let tiles = vec![HeifTile { id: item, props: props.clone() }];
            return Ok(HeifPicture { props, grid: None, tiles });
        }
        let data = self.meta.item_data(self.bytes, item).map_err(refusal_from_error)?;
        let grid = grid::parse(&data).map_err(refusal_from_error)?;
        let parts = targets(&self.meta.refs, item, RefKind::Dimg);
        grid::check_tiles(&grid, parts).map_err(refusal_from_error)?;
        let mut tiles = Vec::with_capacity(parts.len());
        for id in parts {
            tiles.push(HeifTile { id: *id, props: self.properties(*id)? });
        }
        Ok(HeifPicture { props, grid: Some(grid), tiles })
    }

    /// The alpha plane of `item`.
    fn find_transparency(&self, item: u32) -> Result<Option<HeifPicture<'a>>, PageRefusal> {
        for link in &self.meta.refs {
            if link.kind == RefKind::Auxl && link.to.contains(&item) {
                let aux = self.properties(link.from)?.auxc;
                if aux.is_some_and(|aux| aux.kind == AuxKind::Alpha) {
                    return self.find_picture(link.from).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn decode_picture(&mut self, picture: &HeifPicture<'a>) -> Result<DecodedFrame, PageRefusal> {
        let mut frames = Vec::with_capacity(picture.tiles.len());
        let mut colours = Vec::new();
        for tile in &picture.tiles {
            let DecodedFrame { frame, colour } = self.decode_tile(tile)?;
            frames.push(frame);
            colours.push(colour);
        }
        let frame = match picture.grid {
            Some(grid) => grid::compose(&grid, &frames, self.most).map_err(refusal_from_error)?,
            None => frames.pop().ok_or_else(undecodable)?,
        };
        Ok(DecodedFrame { frame, colour: *colours.first().ok_or_else(undecodable)? })
    }

    fn decode_tile(&mut self, tile: &HeifTile<'a>) -> Result<DecodedFrame, PageRefusal> {
        let data = self.meta.item_data(self.bytes, tile.id).map_err(refusal_from_error)?;
        if self.meta.item(tile.id).is_some_and(|it| it.item_type == AV1) {
            let (frame, colour) = decode_av1(&data, self.most - self.coded)?;
            self.count_pixels(u64::from(frame.width) * u64::from(frame.height))?;
            return Ok(DecodedFrame { frame, colour });
        }
        let Some(coding) = &tile.props.hvcc else { return Err(unread_encoding()) };
        let units = coding.arrays.iter().filter(|array| array.nal_type == NAL_SPS);
        let mut colour = None;
        let mut pixels = 0;
        for unit in units.flat_map(|array| &array.nals) {
            let stated = HevcParameters::from_unit(unit).ok_or_else(undecodable)?;
            pixels = pixels.max(u64::from(stated.width) * u64::from(stated.height));
            colour.get_or_insert(stated.colour);
        }
        self.count_pixels(pixels)?;
        let units = coding.split_nals(&data).map_err(refusal_from_error)?;
        let frame = hevc::decode_still(&coding.parameter_sets(), &units);
        let frame = frame.map_err(|error| match coding.general_profile_idc {
            RANGE_EXTENSIONS => unread_encoding(),
            _ => refusal_from_error(error),
        })?;
        Ok(DecodedFrame { frame, colour: colour.ok_or_else(undecodable)? })
    }

    fn count_pixels(&mut self, pixels: u64) -> Result<(), PageRefusal> {
        self.coded = self.coded.saturating_add(pixels);
        if self.coded > self.most {
            let detail = format!("more than {} pixels in its parts", self.most);
            return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        Ok(())
    }
}

/// Colours of the decoded picture, cropped and turned.
fn paint(
    frame: Frame,
    alpha: Option<Frame>,
    colour: Nclx,
    props: &ItemProps<'_>,
) -> Result<DynamicImage, PageRefusal> {
    if alpha.as_ref().is_some_and(|it| (it.width, it.height) != (frame.width, frame.height)) {
        return Err(undecodable());
    }
    let layout = match (&alpha, frame.chroma) {
        (Some(_), _) => PixelLayout::Rgba8,
        (None, ChromaFormat::Monochrome) => PixelLayout::Gray8,
        (None, _) => PixelLayout::Rgb8,
    };
    let painted = color::convert(&frame, alpha.as_ref(), colour, layout, u64::MAX, None);
    drop((frame, alpha));
    let turns: Vec<Transform> = props.transforms.iter().map(|turn| as_now(*turn)).collect();
    let upright = painted.and_then(|image| transform::apply_all(image, &turns));
    let heic_rs::Image { data, width, height, .. } = upright.map_err(refusal_from_error)?;
    let picture = match layout {
        PixelLayout::Gray8 => {
            GrayImage::from_raw(width, height, data).map(DynamicImage::ImageLuma8)
        }
        PixelLayout::Rgba8 => {
            RgbaImage::from_raw(width, height, data).map(DynamicImage::ImageRgba8)
        }
        _ => RgbImage::from_raw(width, height, data).map(DynamicImage::ImageRgb8),
    };
    picture.ok_or_else(undecodable)
}

/// A transform by the 2022 edition, which swaps the two mirror axes (§6.5.12). The crate follows
/// the 2017 edition; encoders follow 2022.
fn as_now(transform: Transform) -> Transform {
    match transform {
        Transform::Mirror(Mirror::LeftRight) => Transform::Mirror(Mirror::TopBottom),
        Transform::Mirror(Mirror::TopBottom) => Transform::Mirror(Mirror::LeftRight),
        other => other,
    }
}

fn refusal_from_error(error: heic_rs::Error) -> PageRefusal {
    match error {
        heic_rs::Error::Unsupported(_) => unread_encoding(),
        heic_rs::Error::PixelLimit { .. } | heic_rs::Error::BoxTooLarge { .. } => {
            PageRefusal::new(OutcomeReason::TooLarge, "a picture over the memory limit")
        }
        _ => undecodable(),
    }
}
