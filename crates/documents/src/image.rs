//! Page pictures: image files decoded and encoded, grey pixels handed to `OpenCV` and back.

mod av1;
pub(crate) mod encode;
mod fax;
pub(crate) mod format;
mod heif;
mod hevc_parameters;
pub(crate) mod image_pdf;
mod jpeg_xl;
pub(crate) mod luminance;
pub(crate) mod opencv_mat;
pub(crate) mod picture;
mod refusal;
pub(crate) mod srgb_profile;
#[cfg(test)]
mod tests;
pub(crate) mod tiff;
