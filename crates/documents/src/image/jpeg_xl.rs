//! JPEG XL (ISO/IEC 18181), bare or in boxes: the first frame, turned as its header states it.

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};
use jxl::api::{
    AlphaMode, Event, ExtraChannel, JxlColorType, JxlDataFormat, JxlDecoder, JxlDecoderOptions,
    JxlOutputBuffer, JxlPixelFormat,
};

use crate::image::refusal::{check_size, undecodable};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;

/// Channels of colour and transparency in a picture that is read.
const MAX_CHANNELS: u64 = 4;

/// Decodes the first frame, upright.
///
/// # Errors
/// `too_large` or `corrupt`.
pub(super) fn decode_jpeg_xl(
    mut bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DynamicImage, PageRefusal> {
    let mut options = JxlDecoderOptions::default();
    options.alpha_mode = AlphaMode::Unpremultiplied;
    let samples = limits.page_pixels.saturating_mul(MAX_CHANNELS);
    options.sample_limit = usize::try_from(samples).ok();
    let mut decoder = JxlDecoder::new(options);
    read_until(&mut decoder, &mut bytes, None, |event| event == Event::BasicInfo)?;
    let info = decoder.basic_info().ok_or_else(undecodable)?;
    let width = u32::try_from(info.size.0).map_err(|_| undecodable())?;
    let height = u32::try_from(info.size.1).map_err(|_| undecodable())?;
    check_size(width, height, limits)?;
    let others = info.extra_channels.len();
    let is_clear = info.extra_channels.iter().any(|it| it.ec_type == ExtraChannel::Alpha);
    let is_grey = decoder.current_pixel_format().is_some_and(|it| it.color_type.is_grayscale());
    let color_type = match (is_grey, is_clear) {
        (true, false) => JxlColorType::Grayscale,
        (true, true) => JxlColorType::GrayscaleAlpha,
        (false, false) => JxlColorType::Rgb,
        (false, true) => JxlColorType::Rgba,
    };
    let format = JxlPixelFormat {
        color_type,
        color_data_format: Some(JxlDataFormat::U8 { bit_depth: 8 }),
        extra_channel_format: vec![None; others],
    };
    decoder.set_pixel_format(format).map_err(|_| undecodable())?;
    let stride = width as usize * color_type.samples_per_pixel();
    let mut pixels = vec![0; stride * height as usize];
    read_until(&mut decoder, &mut bytes, None, |event| event == Event::FrameHeader)?;
    let into = JxlOutputBuffer::new(&mut pixels, height as usize, stride);
    read_until(&mut decoder, &mut bytes, Some(into), |event| {
        matches!(event, Event::FrameComplete { .. })
    })?;
    let picture = match (is_grey, is_clear) {
        (true, false) => GrayImage::from_raw(width, height, pixels).map(DynamicImage::ImageLuma8),
        (true, true) => {
            GrayAlphaImage::from_raw(width, height, pixels).map(DynamicImage::ImageLumaA8)
        }
        (false, false) => RgbImage::from_raw(width, height, pixels).map(DynamicImage::ImageRgb8),
        (false, true) => RgbaImage::from_raw(width, height, pixels).map(DynamicImage::ImageRgba8),
    };
    picture.ok_or_else(undecodable)
}

/// Runs the decoder to its next event. All input was given, so a request for more means a truncated
/// file.
fn read_until(
    decoder: &mut JxlDecoder,
    bytes: &mut &[u8],
    mut into: Option<JxlOutputBuffer<'_>>,
    is_reached: impl Fn(Event) -> bool,
) -> Result<(), PageRefusal> {
    loop {
        let buffers = into.as_mut().map(std::slice::from_mut);
        let event = decoder.process(bytes, buffers, None).map_err(|_| undecodable())?;
        if is_reached(event) {
            return Ok(());
        }
        if matches!(event, Event::NeedMoreInput { .. } | Event::Complete) {
            return Err(undecodable());
        }
    }
}
