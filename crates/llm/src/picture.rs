//! Pictures in the form of vendors over HTTP. They are sent unchanged: the renderer sizes them by
//! the vendor's rule.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use docmill_core::model::{EncodedImage, ImageEncoding};

/// The media type of the picture.
pub(super) fn media_type(picture: &EncodedImage) -> &'static str {
    match picture.header.encoding {
        ImageEncoding::Png => "image/png",
        ImageEncoding::Jpeg => "image/jpeg",
    }
}

/// The picture as text.
pub(super) fn encode_base64(picture: &EncodedImage) -> String {
    STANDARD.encode(&picture.bytes)
}
