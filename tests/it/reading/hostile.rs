//! The shared samples, where they are: every hostile file in a process of its own, so that an abort
//! or a hang is that file's failure and not the test's; and how much of the scans is read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use docmill::config::{LimitsConfig, OcrConfig};
use docmill::ocr::tesseract::Tesseract;
use docmill::pipeline::StepError;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// Names the file for the child process.
const FILE: &str = "DOCMILL_TEST_HOSTILE_FILE";
/// For a whole document, Tesseract included.
const LONGEST: Duration = Duration::from_secs(120);

/// The folder of samples, if there is one.
fn samples() -> Option<PathBuf> {
    let named = std::env::var_os("DOCMILL_SHARED").map(PathBuf::from);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let near = ["../shared", "../../shared"].map(|path| here.join(path));
    named.into_iter().chain(near).map(|path| path.join("samples")).find(|path| path.is_dir())
}

/// One line on what became of the document: `ok`, or `error:CODE`.
async fn outcome(path: &Path) -> String {
    let limits = LimitsConfig::default();
    let config = OcrConfig { languages: vec!["eng".to_owned()], ..OcrConfig::default() };
    let tesseract = Tesseract::start(&config, limits.page_time).await.unwrap();
    let reader = super::reader(Arc::new(tesseract), limits);
    match reader.read(std::fs::read(path).unwrap().into(), "sha", false).await {
        Ok(_) => "ok".to_owned(),
        Err(StepError::Rejected { reason, .. }) => format!("error:{}", reason.code()),
        Err(other) => format!("fault: {other}"),
    }
}

/// Not a test of its own: what the child process of the next one runs.
#[tokio::test]
#[ignore = "run by every_hostile_sample_gets_an_expected_answer"]
async fn hostile_child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    eprintln!("outcome={}", outcome(Path::new(&path)).await);
}

async fn in_a_child(path: &Path) -> String {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "reading::hostile::hostile_child", "--ignored", "--nocapture"]);
    command.env(FILE, path).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let Ok(output) = tokio::time::timeout(LONGEST, command.output()).await else {
        return "hang".to_owned();
    };
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let outcome = said.lines().find_map(|line| line.strip_prefix("outcome="));
    outcome.map_or_else(|| format!("crash: {}", output.status), str::to_owned)
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

#[tokio::test]
async fn every_hostile_sample_gets_an_expected_answer() {
    let Some(folder) = samples().map(|samples| samples.join("hostile")) else { return };
    let table = std::fs::read_to_string(folder.join("EXPECT.tsv")).unwrap();
    let mut wrong = Vec::new();
    let mut slowest = (Duration::ZERO, String::new());
    for row in table.lines().skip(1) {
        let mut columns = row.split('\t');
        let (Some(name), _, Some(expected)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let start = Instant::now();
        let answer = in_a_child(&folder.join(name)).await;
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
#[tokio::test]
#[ignore = "minutes of OCR; run it with --run-ignored all --no-capture"]
async fn clean_scans_are_read_almost_to_the_last_word() {
    let Some(folder) = samples().map(|samples| samples.join("scans")) else { return };
    let limits = LimitsConfig::default();
    let tesseract = Tesseract::start(&OcrConfig::default(), limits.page_time).await.unwrap();
    let reader = super::reader(Arc::new(tesseract), limits);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let truth = folder.join("truth").join(path.file_stem().unwrap()).with_extension("txt");
        let Ok(truth) = std::fs::read_to_string(truth) else { continue };
        let start = Instant::now();
        let result = reader.read(std::fs::read(&path).unwrap().into(), "sha", false).await;
        let (text, quality) = result.map_or_else(|_| Default::default(), |t| (t.text(), t.quality));
        let (recall, name) = (recall(&truth, &text), path.file_name().unwrap());
        eprintln!("{name:?}: recall {recall:.2}, quality {quality:.2}, {:?}", start.elapsed());
        if quality >= 0.95 {
            assert!(recall > 0.9, "{name:?} is called good at a recall of {recall:.2}");
        }
    }
}
