//! Pages that the neural reader reads, with its real weights: `scripts/setup.sh` fetches them.

use std::path::Path;

use docmill_core::config::OcrEngineChoice;
use docmill_core::model::{BoundingBox, PageText};
use docmill_documents::ocr::page_engines::PageEngines;
use image::{GrayImage, Luma};

use super::*;

pub(crate) const LINES: [&str; 8] = [
    "Invoice number 4711 of the 13th of June",
    "Supplier Honest Parts Ltd, 12 Harbour Street",
    "Description Quantity Price Amount",
    "Hinge set forty millimetres 12 3.50 42.00",
    "Transport and packing 1 18.00 18.00",
    "Subtotal without tax 60.00",
    "Value added tax at twenty percent 12.00",
    "Total amount due 72.00 EUR",
];

/// The folder that `scripts/setup.sh` and the tests' runner fill.
fn weights() -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/ocr-models");
    assert!(folder.join("WEIGHTS").exists(), "scripts/models.sh fetches the weights");
    folder
}

pub(crate) fn engines(engine: OcrEngineChoice) -> PageEngines {
    let languages = vec!["eng".to_owned()];
    let config = OcrConfig { engine, models: weights(), languages, ..OcrConfig::default() };
    PageEngines::find_installed(&config, LimitsConfig::default().page_time).unwrap()
}

async fn read_picture(engine: OcrEngineChoice, picture: &GrayImage) -> PageText {
    let file = encoded(picture, ImageFormat::Png);
    let reader = reader(Arc::new(engines(engine)), LimitsConfig::default());
    let read = reader.read(file.into(), "sha", false).await.unwrap();
    read.pages.into_iter().next().unwrap()
}

/// Words of [`LINES`] that the page has, of all of them.
pub(super) fn found_words(page: &PageText) -> (usize, usize) {
    let mut read: Vec<String> =
        page.lines.iter().flat_map(|line| &line.words).map(|word| word.text.to_string()).collect();
    let expected: Vec<&str> = LINES.iter().flat_map(|line| line.split(' ')).collect();
    let all = expected.len();
    let found = expected.into_iter().filter(|word| {
        let at = read.iter().position(|read| read == word);
        at.map(|at| read.swap_remove(at)).is_some()
    });
    (found.count(), all)
}

fn shared(one: &BoundingBox, other: &BoundingBox) -> f32 {
    let across = one.right().min(other.right()) - one.x.max(other.x);
    let down = one.bottom().min(other.bottom()) - one.y.max(other.y);
    let both = across.max(0.0) * down.max(0.0);
    both / (one.w * one.h + other.w * other.h - both)
}

/// The box of the ink around `place`, which is in points; 150 dots per inch.
fn ink_box(picture: &GrayImage, place: &BoundingBox) -> BoundingBox {
    let scale = 150.0 / 72.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "on a page")]
    let pixel = |points: f32| (points * scale).max(0.0) as u32;
    let (mut x, mut y) = ((u32::MAX, 0), (u32::MAX, 0));
    for row in pixel(place.y - 1.0)..pixel(place.bottom() + 4.0).min(picture.height()) {
        for column in pixel(place.x - 0.5)..pixel(place.right() + 0.5).min(picture.width()) {
            if picture.get_pixel(column, row).0[0] < 128 {
                x = (x.0.min(column), x.1.max(column + 1));
                y = (y.0.min(row), y.1.max(row + 1));
            }
        }
    }
    let side = |from: u32, to: u32| f32::from(u16::try_from(to - from).unwrap());
    BoundingBox { x: side(0, x.0), y: side(0, y.0), w: side(x.0, x.1), h: side(y.0, y.1) }
}

#[tokio::test]
async fn words_of_the_neural_reader_lie_where_the_page_has_them() {
    let drawn = pdf(&[&content(&LINES)], "");
    let layer = read_blind(drawn.clone(), LimitsConfig::default()).await.unwrap();
    let picture = picture(drawn);
    let page = read_picture(OcrEngineChoice::Neural, &picture).await;
    let (found, all) = found_words(&page);
    assert!(found * 100 >= all * 97, "{found} of {all}: {}", page.text());
    let true_words: Vec<_> = layer.pages[0].lines.iter().flat_map(|line| &line.words).collect();
    let lost: Vec<_> = true_words
        .iter()
        .map(|truth| (&truth.text, ink_box(&picture, &truth.bounding_box)))
        .filter(|(text, place)| {
            let mut words = page.lines.iter().flat_map(|line| &line.words);
            !words.any(|word| word.text == **text && shared(&word.bounding_box, place) >= 0.5)
        })
        .collect();
    assert!(lost.len() * 20 <= true_words.len(), "{lost:?}\n{:?}", page.lines);
}

#[tokio::test]
async fn a_page_is_read_whichever_way_up_it_lies() {
    let upright = picture(pdf(&[&content(&LINES)], ""));
    let turned = [
        image::imageops::rotate90(&upright),
        image::imageops::rotate180(&upright),
        image::imageops::rotate270(&upright),
    ];
    for (turns, picture) in turned.iter().enumerate() {
        let page = read_picture(OcrEngineChoice::Neural, picture).await;
        let (found, all) = found_words(&page);
        assert!(found * 100 >= all * 95, "turned {}: {found} of {all}", turns + 1);
        assert!(page.height > page.width, "the stored page is upright");
    }
}

#[tokio::test]
async fn pages_that_are_no_pages_cost_neither_the_process_nor_much_time() {
    let mut random = fastrand::Rng::with_seed(7);
    let noise = GrayImage::from_fn(620, 877, |_, _| Luma([random.u8(..)]));
    // 10,000 of them.
    let specks = GrayImage::from_fn(2000, 2000, |x, y| {
        Luma([if x % 20 < 9 && y % 20 < 12 { 0 } else { 255 }])
    });
    let flat = |width, height| GrayImage::from_pixel(width, height, Luma([200]));
    for (name, picture) in [
        ("noise", noise),
        ("thousands of boxes", specks),
        ("one pixel", flat(1, 1)),
        ("one pixel high", flat(4000, 1)),
        ("one pixel wide", flat(1, 4000)),
        ("a strip of 35,000 pixels", flat(35_000, 64)),
    ] {
        let file = encoded(&picture, ImageFormat::Png);
        let reader = reader(Arc::new(engines(OcrEngineChoice::Neural)), LimitsConfig::default());
        let read = reader.read(file.into(), "sha", false).await;
        // Nothing to be read, or something that nobody should believe: never a failure of ours.
        match read {
            Ok(read) => assert!(name != "noise" || read.quality < 0.7, "{name}: {}", read.quality),
            Err(error) => assert_eq!(reason(Err(error)), Some(OutcomeReason::NoText), "{name}"),
        }
    }
}

/// A PNG that says to be `side` pixels wide and high, and has none of them.
pub(crate) fn promised_png(side: u32) -> Vec<u8> {
    let flat = GrayImage::from_pixel(1, 1, Luma([200]));
    let mut file = encoded(&flat, ImageFormat::Png);
    // Signature and length of the header, then its name, the two sides, and what its sum is over.
    file[16..20].copy_from_slice(&side.to_be_bytes());
    file[20..24].copy_from_slice(&side.to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&file[12..29]);
    file[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    file
}

#[tokio::test]
async fn a_page_of_35_000_pixels_by_as_many_is_refused_before_a_reader_sees_it() {
    for engine in [OcrEngineChoice::Neural, OcrEngineChoice::Auto] {
        let reader = reader(Arc::new(engines(engine)), LimitsConfig::default());
        let read = reader.read(promised_png(35_000).into(), "sha", false).await;
        assert_eq!(reason(read), Some(OutcomeReason::TooLarge), "{engine:?}");
    }
}

/// The program itself: confined, with its weights out of reach but for the one folder.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_confined_page_process_reads_with_the_weights_it_may_read() {
    let engines = engines(OcrEngineChoice::Neural);
    let (limits, cpu) = (LimitsConfig::default(), CpuConfig::default());
    let models = engines.weights().unwrap().to_owned();
    let ocr = OcrConfig { engine: OcrEngineChoice::Neural, models, ..OcrConfig::default() };
    let setup = ProcessSetup::new(&cpu, &limits, &ocr, recipe(), 2)
        .permitting(engines.process_permissions());
    let processes = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1000);
    let reader = DocumentReader {
        processes,
        ocr: Arc::new(engines),
        recipe: recipe(),
        remote_ocr: RemoteOcr::default(),
        second_looks: SecondLooks::default(),
    };
    let picture = picture(pdf(&[&content(&LINES)], ""));
    let file = encoded(&picture, ImageFormat::Png);
    let both = tokio::join!(
        reader.read(file.clone().into(), "sha", false),
        reader.read(file.into(), "sha", false)
    );
    for read in [both.0, both.1] {
        let (found, all) = found_words(&read.unwrap().pages[0]);
        assert!(found * 100 >= all * 97, "{found} of {all}");
    }
    // One thread for each page beside the first: the networks run on the threads of their pages.
    let names = page_process_threads();
    let pages = names.iter().filter(|name| name.starts_with("page-")).count();
    assert_eq!((pages, names.len()), (2, 3), "{names:?}");
}

/// Names of all threads of the page processes of this test.
#[cfg(target_os = "linux")]
fn page_process_threads() -> Vec<String> {
    let parent = format!(" {} ", std::process::id());
    let mut names = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // Behind the name: the state, and the parent's id.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        if !rest.get(1..).is_some_and(|rest| rest.starts_with(&parent)) {
            continue;
        }
        for task in std::fs::read_dir(process.path().join("task")).unwrap().flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[test]
fn without_weights_tesseract_reads_alone_and_a_folder_that_is_named_must_have_them() {
    let empty = tempfile::tempdir().unwrap();
    let page_time = LimitsConfig::default().page_time;
    let find = |engine, models: &Path| {
        let languages = vec!["eng".to_owned()];
        let models = models.to_owned();
        let config = OcrConfig { engine, models, languages, ..OcrConfig::default() };
        PageEngines::find_installed(&config, page_time)
    };
    let alone = find(OcrEngineChoice::Tesseract, Path::new("")).unwrap();
    assert!(alone.weights().is_none() && !alone.name().contains("neural"));
    let refused = find(OcrEngineChoice::Auto, empty.path()).unwrap_err().to_string();
    assert!(refused.contains("scripts/models.sh"), "{refused}");
    let both = find(OcrEngineChoice::Auto, &weights()).unwrap();
    assert!(both.name().starts_with("tesseract") && both.name().contains("neural"));
    assert!(both.identity().contains("recogniser.onnx"), "{}", both.identity());
    let neural = find(OcrEngineChoice::Neural, &weights()).unwrap();
    assert!(neural.identity().contains("words of tesseract"), "{}", neural.identity());
}
