//! Figures about reading documents. No targets here; the scripts that run it judge.
//!
//!   steps                        milliseconds per A4 page of each step, on one core
//!   speed READERS DIR OUT [LANGUAGES]
//!                                reads the images in DIR as a worker would, writes OUT/NAME.txt and
//!                                prints pages, seconds and CPU seconds; READERS: `both`, or one
//!                                alone (`neural`, `tesseract`), with the CPU share that is not
//!                                recognition
//!   memory DOCUMENTS             a separate worker over this many mixed documents: memory of it and
//!                                its children over time
//!   long PAGES                   the same over one document of this many scans
//!
//! See `scripts/reading_steps.sh`, `reading_speed.sh` and `reading_memory.sh`. Linux only: CPU time
//! and memory are read from `/proc`.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[path = "reading/memory.rs"]
mod memory;
#[path = "reading/pictures.rs"]
mod pictures;
#[path = "reading/speed.rs"]
mod speed;
#[path = "reading/steps.rs"]
mod steps;
#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/support"]
mod support {
    pub(crate) mod documents;
    pub(crate) mod page_processes;
    pub(crate) mod postgres;
    pub(crate) mod process;
    pub(crate) mod sqs;
    pub(crate) mod whole;
    pub(crate) mod world;
}

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["steps"] => steps::run().await,
        ["speed", "both", folder, out, languages @ ..] => {
            speed::run_both(folder.as_ref(), out.as_ref(), languages).await;
        }
        ["speed", "neural", folder, out, languages @ ..] => {
            speed::run_neural(folder.as_ref(), out.as_ref(), languages).await;
        }
        ["speed", "tesseract", folder, out, languages @ ..] => {
            speed::run_tesseract(folder.as_ref(), out.as_ref(), languages).await;
        }
        ["memory", documents] => Box::pin(memory::mixed(documents.parse().unwrap())).await,
        ["long", pages] => Box::pin(memory::long(pages.parse().unwrap())).await,
        other => {
            panic!("steps, speed READERS DIR OUT [LANGUAGES], memory N or long N, not {other:?}")
        }
    }
}
