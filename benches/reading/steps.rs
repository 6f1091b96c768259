//! The cost of each step on one A4 page at 300 dpi, in order, on one core.

use std::time::{Duration, Instant};

use bytes::Bytes;
use docmill::app::App;
use docmill_core::config::{Config, LimitsConfig, OcrConfig};
use docmill_documents::{PageContent, PageRaster, open_document};

use super::{pictures, support::documents};

const DPI: u16 = 300;
/// How long a step is repeated, after one uncounted run.
const STEP_TIME: Duration = Duration::from_secs(2);

pub(crate) async fn run() {
    let build = if cfg!(debug_assertions) { "with debug assertions" } else { "release" };
    println!("ms per A4 page at {DPI} dpi, one core, build {build}");
    let png: Bytes = pictures::picture(pictures::dense("S-1"), DPI).bytes.into();
    let jpeg: Bytes = pictures::jpeg(pictures::dense("S-1"), DPI).into();
    let scan: Bytes = pictures::scans(1, DPI).into();
    let text: Bytes = pictures::dense("S-1").into();
    let drawn: Bytes = drawn().into();
    step("decode a PNG", || page(&png));
    step("decode a JPEG", || page(&jpeg));
    step("take a scan out of a PDF", || page(&scan));
    step("text layer of a PDF", || page(&text));
    step("render a PDF", || page(&drawn));
    let PageContent::Image(clean) = page(&png) else { panic!("a picture is not a picture") };
    let bad = degraded(&clean);
    assess_and_repair(&clean, &bad);
    recognise(&clean).await;
}

/// The mean of as many turns as fit.
fn step<T>(name: &str, mut work: impl FnMut() -> T) {
    std::hint::black_box(work());
    let (mut turns, started) = (0_u32, Instant::now());
    while turns == 0 || started.elapsed() < STEP_TIME {
        std::hint::black_box(work());
        turns += 1;
    }
    let each = started.elapsed().as_secs_f64() * 1e3 / f64::from(turns);
    println!("{name:<28}{each:>9.1}");
}

fn page(bytes: &Bytes) -> PageContent {
    let document = open_document(bytes.clone(), &LimitsConfig::default(), DPI.into()).unwrap();
    document.page_content(0).unwrap()
}

/// A page whose text cannot be trusted, so that it has to be drawn: shapes over a picture-like
/// pattern, and no text layer.
fn drawn() -> Vec<u8> {
    let mut content = String::from("0.2 g\n");
    for row in 0_u16..44 {
        for column in 0_u16..60 {
            let (x, y) = (40 + column * 8, 60 + row * 16);
            content.push_str(&format!("{x} {y} 5 9 re f\n"));
        }
    }
    documents::assemble(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
    ])
}

/// Uneven light, grain, and lines that climb: everything that repair has to do at once.
fn degraded(page: &PageRaster) -> PageRaster {
    let (width, height) =
        (usize::try_from(page.width).unwrap(), usize::try_from(page.height).unwrap());
    let mut grain = fastrand::Rng::with_seed(7);
    let mut pixels = Vec::with_capacity(page.pixels.len());
    for y in 0..height {
        for x in 0..width {
            // Two degrees: the tangent is about 1 in 28.6.
            let from = (y + x * 10 / 286).min(height - 1);
            let ink = f32::from(page.pixels.get(from * width + x).copied().unwrap_or(255));
            #[expect(clippy::cast_precision_loss, reason = "positions on a page")]
            let light = 0.45 + 0.5 * x as f32 / width as f32;
            let noise = grain.f32() * 40.0 - 20.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            pixels.push((ink * light + noise).clamp(0.0, 255.0) as u8);
        }
    }
    PageRaster { width: page.width, height: page.height, dpi: page.dpi, pixels }
}

fn assess_and_repair(clean: &PageRaster, bad: &PageRaster) {
    use docmill_core::model::RepairSwitches;
    use docmill_documents::quality::assess_page;
    use docmill_documents::repair::repair_page;
    step("assess a clean page", || assess_page(clean).unwrap());
    step("assess a bad page", || assess_page(bad).unwrap());
    let found = assess_page(bad).unwrap();
    let repaired = repair_page(bad, &found, RepairSwitches::ALL).unwrap();
    let steps: Vec<&str> = repaired.iter().flat_map(|r| &r.steps).map(|step| step.name()).collect();
    println!("{:<28}{}", "  its repair", steps.join(", "));
    step("repair a bad page", || repair_page(bad, &found, RepairSwitches::ALL).unwrap());
}

async fn recognise(clean: &PageRaster) {
    let ocr = OcrConfig { languages: vec!["eng".to_owned()], ..OcrConfig::default() };
    let config = Config { ocr, ..Config::default() };
    let ocr = App::new(config).pipeline_services().await.unwrap();
    let mut recogniser = ocr.reader.ocr.make_recogniser().unwrap();
    let languages = ["eng".to_owned()];
    step("recognise a dense page", || recogniser.recognise(clean, &languages).unwrap());
}
