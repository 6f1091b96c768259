//! Figures on pages with a text layer and on pictures of the same pages, cut out by page processes.

use std::process::{Command, Output, Stdio};

use super::*;
use docmill_core::model::{BoundingBox, PageMarkKind, PageText};
use docmill_layout::{BlockContent, read_layout};

/// Where the figure of [`illustrated`] is, in points from the top left.
const PLACE: BoundingBox = BoundingBox { x: 100.0, y: 242.0, w: 300.0, h: 200.0 };

/// A page of text with a picture that is dark at its left and less so at its right, and a caption.
pub(crate) fn illustrated() -> Vec<u8> {
    let row: String = (0..30).map(|column| format!("{:02X}", 20 + 4 * column)).collect();
    let data = row.repeat(20);
    let text = content(&INVOICE);
    let image = format!(
        "q 300 0 0 200 100 400 cm BI /W 30 /H 20 /CS /G /BPC 8 /F /AHx ID {data}> EI Q \
         BT /F1 10 Tf 100 380 Td (Figure 1: the harbour at low tide) Tj ET"
    );
    pdf(&[&format!("{text} {image}")], "")
}

fn is_at_place(page: &PageText, found: BoundingBox, off: f32) -> bool {
    let scale = page.width / 595.0;
    let near = |one: f32, other: f32| (one / scale - other).abs() <= off;
    near(found.x, PLACE.x)
        && near(found.y, PLACE.y)
        && near(found.w, PLACE.w)
        && near(found.h, PLACE.h)
}

#[tokio::test]
async fn a_picture_on_a_page_is_a_figure_before_its_caption_on_text_and_on_scans() {
    let native = read_blind(illustrated(), LimitsConfig::default()).await.unwrap();
    let scan = encoded(&picture(illustrated()), ImageFormat::Png);
    let scanned = read_with_tesseract(scan).await.unwrap();
    for (name, read, off) in [("native", native, 1.0), ("scanned", scanned, 14.0)] {
        let page = &read.pages[0];
        let [mark] = page.marks.as_slice() else { panic!("{name}: {:?}", page.marks) };
        assert_eq!(mark.kind, PageMarkKind::Figure);
        assert!(is_at_place(page, mark.bounding_box, off), "{name}: {mark:?}");
        let layout = read_layout(&read);
        let blocks = &layout.pages[0].blocks;
        let figure = |it: &_| matches!(it, BlockContent::Figure { .. });
        let at = blocks.iter().position(|block| figure(&block.content)).unwrap();
        let next = &blocks[at + 1].content;
        assert!(matches!(next, BlockContent::Caption { .. }), "{name}: {next:?}");
    }
}

#[tokio::test]
async fn a_page_without_figures_says_the_same_as_before_they_were_looked_for() {
    let page = &read_blind(pdf(&[&content(&INVOICE)], ""), LimitsConfig::default()).await.unwrap();
    let stored = serde_json::to_string(&page.pages[0]).unwrap();
    assert!(!stored.contains("marks"), "{stored}");
}

fn transcribe(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL")) {
        command.env_remove(name);
    }
    // Where figures lie is told whoever reads the words.
    command.env("DOCMILL__OCR__ENGINE", "tesseract");
    command.arg("transcribe").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Mean greys of the left and right quarters.
fn sides(picture: &[u8]) -> (u32, u32, u64, u64) {
    let grey = image::load_from_memory(picture).unwrap().into_luma8();
    let (width, height) = grey.dimensions();
    let mean = |from: u32| {
        let part = image::imageops::crop_imm(&grey, from, 0, width / 4, height).to_image();
        let sum: u64 = part.pixels().map(|pixel| u64::from(pixel[0])).sum();
        sum / (u64::from(width / 4) * u64::from(height))
    };
    (width, height, mean(0), mean(width - width / 4))
}

#[test]
fn the_pictures_of_figures_are_written_where_markdown_leads_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let scan = encoded(&picture(illustrated()), ImageFormat::Png);
    for (name, bytes) in [("paper.pdf", illustrated()), ("scan.png", scan)] {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let (file, folder) = (file.to_str().unwrap(), dir.path().join(format!("{name}.assets")));
        let folder = folder.to_str().unwrap();
        let plain = transcribe(&[file, "--format", "markdown"]);
        let text = String::from_utf8(plain.stdout).unwrap();
        assert!(
            text.contains("![Figure 1 of page 1]()\n\n*Figure 1: the harbour"),
            "{name}: {text}"
        );
        let led = transcribe(&[file, "--format", "markdown", "--assets", folder]);
        let said = String::from_utf8_lossy(&led.stderr).into_owned();
        let text = String::from_utf8(led.stdout).unwrap();
        let path = format!("{folder}/_page_0_Figure_1.jpeg");
        assert!(
            text.contains(&format!("![Figure 1 of page 1]({path})\n")),
            "{name}: {text} {said}"
        );
        let (width, height, left, right) = sides(&std::fs::read(&path).unwrap());
        let finest = if name == "paper.pdf" { 200.0 } else { 150.0 };
        let wide = f64::from(width) / (300.0 / 72.0 * finest);
        assert!((0.85..1.1).contains(&wide), "{name}: {width} x {height}");
        assert!(left < 70 && (95..160).contains(&right), "{name}: {left} and {right}");
    }
}
