//! Judges stored transcripts (`docmill transcribe FILE --format json`): one line for each file, with
//! the boundaries that are not joined with certainty.
//!
//!     cargo run -p docmill-packets --example judge_transcripts -- FILE...
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for measuring")]

use docmill_core::config::KindsConfig;
use docmill_core::model::Transcript;
use docmill_gate::kinds::KindSet;
use docmill_packets::{PageSigns, judge_packet};

fn main() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(transcript) = serde_json::from_str::<Transcript>(&text) else { continue };
        let signs: Vec<PageSigns> =
            transcript.pages.iter().map(|page| PageSigns::read(page, &kinds)).collect();
        let judged = judge_packet(&signs);
        let word = match (judged.boundaries.is_empty(), judged.is_doubtful()) {
            (true, _) => "whole",
            (false, true) => "asked",
            (false, false) => "cut",
        };
        println!("{word}\t{}\t{path}", judged.pages);
        for boundary in judged.boundaries {
            let signs = serde_json::to_string(&boundary.signs).unwrap();
            println!("\tbefore {}: {:?} {signs}", boundary.page, boundary.verdict);
        }
    }
}
