//! The shared samples, where they are: what becomes of every hostile file, one after the other with
//! the same reader; and how much of the scans is read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use docmill::app::App;
use docmill_core::config::Config;
use docmill_pipeline::{DocumentReader, StepError};
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

use crate::support::page_processes::docmill;
use crate::support::whole::ReadWhole as _;

/// For a whole document, OCR included.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// The folder of samples, if there is one.
fn samples() -> Option<PathBuf> {
    let named = std::env::var_os("DOCMILL_SHARED").map(PathBuf::from);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let near = ["../shared", "../../shared"].map(|path| here.join(path));
    named.into_iter().chain(near).map(|path| path.join("samples")).find(|path| path.is_dir())
}

/// A reader as `docmill process` has it, in processes of their own.
async fn reader() -> Arc<DocumentReader> {
    let mut config = Config::default();
    config.cpu.program = docmill();
    config.ocr.languages = vec!["eng".to_owned()];
    App::new(config).pipeline_services().await.unwrap().reader
}

/// One line on what became of the document: `ok`, or `error:CODE`.
async fn outcome(reader: &DocumentReader, path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str());
    let read = reader.read_named(name, std::fs::read(path).unwrap().into());
    match tokio::time::timeout(READ_TIMEOUT, read).await {
        Ok(Ok(_)) => "ok".to_owned(),
        Ok(Err(StepError::Rejected { reason, .. })) => format!("error:{}", reason.code()),
        Ok(Err(other)) => format!("fault: {other}"),
        Err(_elapsed) => "hang".to_owned(),
    }
}

/// Whether an answer is in the `|`-separated set; what is only refused later is read by now.
fn is_expected(answer: &str, expected: &str) -> bool {
    expected.split('|').any(|one| {
        let one = one.split(';').next().unwrap_or_default();
        match one {
            "ok" => answer == "ok",
            "ok_empty" => answer == "error:no_text",
            "review" => matches!(answer, "ok" | "error:no_text"),
            code => answer == code,
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_sample_gets_an_expected_answer() {
    let Some(folder) = samples().map(|samples| samples.join("hostile")) else { return };
    let table = std::fs::read_to_string(folder.join("EXPECT.tsv")).unwrap();
    let reader = reader().await;
    let mut wrong = Vec::new();
    let mut slowest = (Duration::ZERO, String::new());
    for row in table.lines().skip(1) {
        let mut columns = row.split('\t');
        let (Some(name), _, Some(expected)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let start = Instant::now();
        let answer = outcome(&reader, &folder.join(name)).await;
        slowest = slowest.max((start.elapsed(), name.to_owned()));
        if !is_expected(&answer, expected) {
            wrong.push(format!("{name}: {answer}, expected {expected}"));
        }
    }
    eprintln!("slowest: {slowest:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words of more than one letter, normalised, with how often each occurs.
fn bag(text: &str) -> HashMap<String, usize> {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let mut bag = HashMap::new();
    for word in folded.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if word.chars().count() > 1 {
            *bag.entry(word.to_owned()).or_default() += 1;
        }
    }
    bag
}

fn recall(truth: &str, read: &str) -> f64 {
    let (truth, read) = (bag(truth), bag(read));
    let found: usize =
        truth.iter().map(|(word, count)| *count.min(read.get(word).unwrap_or(&0))).sum();
    found as f64 / truth.values().sum::<usize>().max(1) as f64
}

/// Prints how much is read of each scan whose text is known, and checks the clean ones.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes of OCR; run it with --run-ignored all --no-capture"]
async fn clean_scans_are_read_almost_to_the_last_word() {
    let Some(folder) = samples().map(|samples| samples.join("scans")) else { return };
    let reader = reader().await;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let truth = folder.join("truth").join(path.file_stem().unwrap()).with_extension("txt");
        let Ok(truth) = std::fs::read_to_string(truth) else { continue };
        let start = Instant::now();
        let result = reader.read(std::fs::read(&path).unwrap().into(), "sha", false).await;
        let (text, quality) =
            result.map_or_else(|_| Default::default(), |t| (t.full_text(), t.quality));
        let (recall, name) = (recall(&truth, &text), path.file_name().unwrap());
        eprintln!("{name:?}: recall {recall:.2}, quality {quality:.2}, {:?}", start.elapsed());
        if quality >= 0.95 {
            assert!(recall > 0.9, "{name:?} is called good at a recall of {recall:.2}");
        }
    }
}
