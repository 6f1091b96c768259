//! Pictures in the form of vendors over HTTP. They are sent unchanged: the renderer sizes them by
//! the vendor's rule. Vendors advise pictures before text, each behind a short text that names it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Prompt;
use super::form::ReplyForm;
use docmill_core::model::{EncodedImage, ImageEncoding};

/// A part of the user's turn.
pub(super) enum TurnPart<'p> {
    /// Text.
    Text(Cow<'p, str>),
    /// A picture.
    Picture(&'p EncodedImage),
}

/// The user's turn in order: the pictures of pages with their numbers, the text, other pictures.
pub(super) fn turn_parts(prompt: &Prompt, form: ReplyForm) -> Vec<TurnPart<'_>> {
    let mut parts = Vec::new();
    for picture in &prompt.pictures {
        if let Some(page) = picture.page {
            parts.push(TurnPart::Text(format!("Page {page}:").into()));
            parts.push(TurnPart::Picture(&picture.image));
        }
    }
    parts.push(TurnPart::Text(form.write_user_text(prompt)));
    let others = prompt.pictures.iter().filter(|picture| picture.page.is_none());
    parts.extend(others.map(|picture| TurnPart::Picture(&picture.image)));
    parts
}

/// The media type of the picture.
pub(super) fn media_type(picture: &EncodedImage) -> &'static str {
    match picture.header.encoding {
        ImageEncoding::Png => "image/png",
        ImageEncoding::Jpeg => "image/jpeg",
    }
}

/// The picture as an address that holds it.
pub(super) fn data_url(picture: &EncodedImage) -> String {
    format!("data:{};base64,{}", media_type(picture), encode_base64(picture))
}

/// The picture as text.
pub(super) fn encode_base64(picture: &EncodedImage) -> String {
    STANDARD.encode(&picture.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PromptPicture, PromptThinking};
    use docmill_core::config::LlmConfig;
    use docmill_core::model::{ImageHeader, PictureRule};

    #[test]
    fn pictures_of_pages_come_before_the_text_behind_their_numbers_and_others_after_it() {
        let header = ImageHeader { width: 9, height: 9, dpi: 99, encoding: ImageEncoding::Png };
        let picture = |byte: u8| {
            let image = EncodedImage { header, bytes: vec![byte] };
            PromptPicture::new(image.into(), PictureRule::OTHER)
        };
        let prompt = Prompt {
            system: "s".into(),
            user: "u".to_owned(),
            schema_name: "n".to_owned(),
            schema: serde_json::json!({}).into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: vec![picture(1), picture(2).of_page(4), picture(3).of_page(7)],
        };
        let form = ReplyForm::from_config(&LlmConfig::default());
        let order: Vec<String> = turn_parts(&prompt, form)
            .into_iter()
            .map(|part| match part {
                TurnPart::Text(text) => text.into_owned(),
                TurnPart::Picture(image) => format!("{:?}", image.bytes),
            })
            .collect();
        assert_eq!(order, ["Page 4:", "[2]", "Page 7:", "[3]", "u", "[1]"]);
    }
}
