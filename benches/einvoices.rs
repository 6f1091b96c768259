//! CPU cost of documents whose XML has all data: CPU time of this process and of its page
//! processes, warm, for every document of a folder that the e-invoice reader reads.
//!
//! Each runs through every step that needs no database, [`RUNS`] times after one uncounted run; the
//! figure is the mean. CPU time is read from `/proc`, so on Linux only. Exit code 1 if the median
//! over the documents is not below [`MAX_MEDIAN_CPU`].
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use docmill::app::App;
use docmill_core::config::Config;

const RUNS: u32 = 20;
const MAX_MEDIAN_CPU: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() -> ExitCode {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let Some(folder) = folder else {
        println!("usage: einvoices FOLDER");
        return ExitCode::FAILURE;
    };
    let mut config = Config::default();
    config.cpu.program = PathBuf::from(env!("CARGO_BIN_EXE_docmill"));
    let pipeline = App::new(config).local_pipeline().await.unwrap();
    let mut costs = Vec::new();
    for path in files(Path::new(&folder)) {
        let bytes = bytes::Bytes::from(fs::read(&path).unwrap());
        let first = pipeline.process_file(&path, bytes.clone()).await.unwrap();
        if first.reader.as_deref() != Some("einvoice") {
            continue;
        }
        let before = cpu_time();
        for _ in 0..RUNS {
            pipeline.process_file(&path, bytes.clone()).await.unwrap();
        }
        let cost = cpu_time().saturating_sub(before) / RUNS;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name:<32} {:>9.2} ms", cost.as_secs_f64() * 1e3);
        costs.push(cost);
    }
    costs.sort();
    let Some(median) = costs.get(costs.len() / 2) else {
        println!("no document of {folder} is read by its XML");
        return ExitCode::FAILURE;
    };
    let largest = costs.last().copied().unwrap_or_default();
    println!(
        "{} documents, CPU a document: median {:.2} ms, most {:.2} ms (target: median below {MAX_MEDIAN_CPU:?})",
        costs.len(),
        median.as_secs_f64() * 1e3,
        largest.as_secs_f64() * 1e3,
    );
    if *median < MAX_MEDIAN_CPU { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The files of a folder by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// CPU time of this process and everything it started that still runs.
fn cpu_time() -> Duration {
    let mut open = vec![std::process::id()];
    let mut nanoseconds = 0;
    while let Some(process) = open.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.filter_map(Result::ok) {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let on_cpu = read("schedstat");
            nanoseconds += on_cpu.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
            open.extend(
                read("children").split_whitespace().filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    Duration::from_nanos(nanoseconds)
}
