//! Measures pages with a text layer: `cargo bench -p docmill-documents --bench native_pages -- FILE…`
//!
//! Prints microseconds a page over all files whose pages are all text: of the first reading in this
//! process, and the least of several. Documents are opened anew each time, as a page process does.
//! Compare two builds in turn in one run.
#![expect(clippy::unwrap_used, reason = "a panic is how a measurement fails")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use docmill_core::config::LimitsConfig;
use docmill_documents::{PageContent, open_document};

const ROUNDS: usize = 9;

/// Time of all pages of a file, if all are text, and their number.
fn read(bytes: &Bytes) -> Option<(Duration, u32)> {
    let document = open_document(bytes.clone(), &LimitsConfig::default(), 300).ok()?;
    let started = Instant::now();
    for index in 0..document.page_count() {
        let content = document.page_content(index).ok()?;
        if !matches!(content, PageContent::Text { .. }) {
            return None;
        }
    }
    Some((started.elapsed(), document.page_count()))
}

fn main() {
    // Cargo adds `--bench`.
    let names = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let files: Vec<Bytes> = names.map(|name| std::fs::read(name).unwrap().into()).collect();
    let (mut first, mut least, mut pages, mut number) = (Duration::ZERO, Duration::ZERO, 0, 0);
    for bytes in &files {
        let Some((cold, count)) = read(bytes) else { continue };
        let again = (1..ROUNDS).filter_map(|_| read(bytes)).map(|(time, _)| time);
        first += cold;
        least += again.min().unwrap_or(cold);
        pages += count;
        number += 1;
    }
    println!(
        "{number} files, {pages} pages: first {:.1}, least {:.1} microseconds a page",
        first.as_secs_f64() * 1e6 / f64::from(pages),
        least.as_secs_f64() * 1e6 / f64::from(pages),
    );
}
