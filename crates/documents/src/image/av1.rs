//! AV1 still pictures (AV1 Bitstream & Decoding Process Specification), as AVIF holds them.

use heic_rs::hevc::{ChromaFormat, Frame};
use heic_rs::props::colr::{MatrixCoefficients, Nclx, Range};
use re_rav1d::pixel::YUVRange;
use re_rav1d::{Decoder, Error, Picture, PixelLayout, PlanarImageComponent, Settings};

use crate::image::refusal::{undecodable, unread_encoding};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// Decodes the first displayed frame with its coded colour description; of a layered picture, the
/// last layer. Runs on the calling thread only. `max_pixels` limits one frame.
///
/// # Errors
/// `too_large`, `corrupt`, or `unsupported_type` for an encoding that is not read.
pub(super) fn decode_av1(data: &[u8], max_pixels: u64) -> Result<(Frame, Nclx), PageRefusal> {
    let mut settings = Settings::new();
    settings.set_n_threads(1);
    settings.set_max_frame_delay(1);
    settings.set_all_layers(false);
    settings.set_apply_grain(false);
    // Zero would mean unlimited.
    settings.set_frame_size_limit(u32::try_from(max_pixels).unwrap_or(u32::MAX).max(1));
    let mut decoder = Decoder::with_settings(&settings).map_err(refusal_from_error)?;
    let mut sent = decoder.send_data(data.to_vec(), None, None, None);
    let picture = loop {
        let has_more = match sent {
            Ok(()) => false,
            Err(Error::Again) => true,
            Err(error) => return Err(refusal_from_error(error)),
        };
        match decoder.get_picture() {
            Ok(picture) => break picture,
            Err(Error::Again) if has_more => sent = decoder.send_pending_data(),
            Err(error) => return Err(refusal_from_error(error)),
        }
    };
    Ok((copy_frame(&picture)?, stated_colour(&picture)))
}

fn copy_frame(picture: &Picture) -> Result<Frame, PageRefusal> {
    let (width, height) = (picture.width(), picture.height());
    let chroma = match picture.pixel_layout() {
        PixelLayout::I400 => ChromaFormat::Monochrome,
        PixelLayout::I420 => ChromaFormat::Yuv420,
        PixelLayout::I422 => ChromaFormat::Yuv422,
        PixelLayout::I444 => ChromaFormat::Yuv444,
    };
    let (across, down) = chroma.chroma_size(width, height);
    Ok(Frame {
        width,
        height,
        bit_depth: u8::try_from(picture.bit_depth()).map_err(|_| undecodable())?,
        chroma,
        y: copy_plane(picture, PlanarImageComponent::Y, width, height),
        cb: copy_plane(picture, PlanarImageComponent::U, across, down),
        cr: copy_plane(picture, PlanarImageComponent::V, across, down),
        y_stride: width,
        c_stride: across,
    })
}

/// The samples of a plane without row padding. Samples of more than 8 bits take two bytes each.
fn copy_plane(picture: &Picture, plane: PlanarImageComponent, width: u32, height: u32) -> Vec<u16> {
    if width == 0 {
        return Vec::new();
    }
    let samples = picture.plane(plane);
    let rows = samples.chunks_exact(picture.stride(plane) as usize).take(height as usize);
    let width = width as usize;
    if picture.bit_depth() > 8 {
        let deep = rows.flat_map(|row| row.as_chunks().0.iter().take(width));
        deep.map(|sample| u16::from_ne_bytes(*sample)).collect()
    } else {
        rows.flat_map(|row| row.iter().take(width)).map(|sample| u16::from(*sample)).collect()
    }
}

fn stated_colour(picture: &Picture) -> Nclx {
    // The discriminants are the codes of ITU-T H.273.
    let code = picture.matrix_coefficients() as u16;
    Nclx {
        primaries: 2,
        transfer: 2,
        matrix: MatrixCoefficients::from_code(code),
        matrix_code: code,
        range: if picture.color_range() == YUVRange::Full { Range::Full } else { Range::Limited },
    }
}

fn refusal_from_error(error: Error) -> PageRefusal {
    match error {
        Error::UnsupportedBitstream => unread_encoding(),
        // The only other decoder error that a file can cause is a frame over the limit.
        Error::NotEnoughMemory | Error::UnknownError(_) => {
            PageRefusal::new(OutcomeReason::TooLarge, "more pixels than allowed in its parts")
        }
        _ => undecodable(),
    }
}
