//! A vision model that really looks, with Tesseract as its witness: behind the server the neural
//! reader reads the picture that was sent.

use std::collections::BTreeMap;

use docmill::pipeline::RemoteOcr;
use docmill_core::config::OcrProvider::{Tesseract, Vision};
use docmill_core::config::{ByteSize, OcrEngineChoice, VisionConfig};
use docmill_core::model::{PageText, TextWord};
use docmill_documents::cpu::CpuPool;
use docmill_documents::ocr::RemoteOcrProvider;
use docmill_documents::ocr::vision::VisionOcr;
use docmill_documents::pages::PageRaster;
use docmill_llm::llm::openai::OpenAiClient;
use docmill_testkit::models::{Answer, Script, SentPicture, Server};
use image::GrayImage;

use super::neural::{LINES, engines, found_words};
use super::*;

/// What the neural reader reads of a picture that was sent, line by line.
fn looked_at(picture: &SentPicture) -> Vec<String> {
    let seen = image::load_from_memory(&picture.bytes).unwrap().into_luma8();
    let (width, height) = seen.dimensions();
    let page = PageRaster { width, height, dpi: 134, pixels: seen.into_raw() };
    let mut reader = engines(OcrEngineChoice::Neural).make_recogniser().unwrap();
    let lines = reader.recognise(&page, &["eng".to_owned()]).unwrap();
    lines.iter().map(TextLine::text).collect()
}

/// What the model behind the server said, what Tesseract reads alone, and what comes of both.
async fn read_beside(picture: &GrayImage) -> (Vec<String>, PageText, PageText) {
    let script = Script::function(|request| {
        let lines = looked_at(&request.picture().unwrap());
        let content = serde_json::json!({"turn": "0", "lines": lines}).to_string();
        Answer::Text { content }
    });
    let server = Server::start(Script { record: true, ..script }).await.unwrap();
    let config = VisionConfig {
        base_url: server.base_url(),
        model: "seer".to_owned(),
        ..VisionConfig::default()
    };
    let llm = Arc::new(OpenAiClient::new(&config.model_config()).unwrap());
    let provider: Arc<dyn RemoteOcrProvider> =
        Arc::new(VisionOcr::new(llm, &config, Arc::new(CpuPool::new(1).unwrap())));
    let providers = BTreeMap::from([(Vision, provider)]);
    let file = encoded(picture, ImageFormat::Png);
    let ours = || reader(Arc::new(engines(OcrEngineChoice::Tesseract)), LimitsConfig::default());
    let alone = ours().read(file.clone().into(), "sha", false).await.unwrap();
    let mut both = ours();
    both.remote_ocr = RemoteOcr::new(vec![Vision, Tesseract], providers, ByteSize::from_mib(64));
    let both = both.read(file.into(), "sha", false).await.unwrap();
    let sent = server.exchanges().remove(0);
    let said = docmill_testkit::models::Request { body: sent.request, number: 0 }.picture();
    let page = |read: Transcript| read.pages.into_iter().next().unwrap();
    (looked_at(&said.unwrap()), page(alone), page(both))
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_model_that_really_looks_no_word_is_lost_none_is_new_and_every_digit_is_witnessed()
{
    let clean = picture(pdf(&[&content(&LINES)], ""));
    // So much that Tesseract loses more than half of the words, and the neural reader few.
    let blurred = image::imageops::blur(&clean, 3.8);
    for (name, picture, gains) in [("clean", clean, 0), ("blurred", blurred, 12)] {
        let (said, alone, both) = read_beside(&picture).await;
        assert_eq!(both.provider.as_ref().map(|it| it.name.as_str()), Some("vision"), "{name}");
        let ((ours, all), (found, _)) = (found_words(&alone), found_words(&both));
        assert!(found >= ours + gains, "{name}: {found} of {all} with the model, {ours} without");
        eprintln!("{name}: {ours} of {all} alone, {found} beside the model");
        let words = |page: &PageText| -> Vec<TextWord> {
            page.lines.iter().flat_map(|line| line.words.clone()).collect()
        };
        let (seen, said) = (words(&alone), said.join(" "));
        for word in words(&both) {
            let witnessed = seen.iter().any(|own| own.text == word.text);
            assert!(witnessed || said.contains(&word.text), "{name}: {} is new", word.text);
            let has_digit = word.text.contains(|c: char| c.is_ascii_digit());
            assert!(!has_digit || witnessed || word.unwitnessed, "{name}: {}", word.text);
        }
    }
}
