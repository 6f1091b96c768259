//! Checks files by every set of a rules file, meant for them or not, and writes a line of JSON for
//! each: `scripts/einvoice_rules.sh` compares them with the reference processor. Paths are read
//! from standard input.
//!
//! ```sh
//! find invoices -name '*.xml' | cargo run -p docmill-schematron --example check_einvoices -- rules.json
//! ```

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use docmill_formats::xml::XmlText;
use docmill_schematron::RuleLibrary;

/// Runs of which the shortest counts, so that other work on the machine does not.
const TIMED_RUNS: usize = 5;

/// Microseconds to parse a document and check it by the sets that are meant for it.
fn shortest_us(library: &RuleLibrary, text: &XmlText) -> Option<u64> {
    let runs = (0..TIMED_RUNS).filter_map(|_| {
        let start = Instant::now();
        let tree = text.parse_tree().ok()?;
        let report = library.check(&tree);
        let spent = start.elapsed();
        drop(report);
        u64::try_from(spent.as_micros()).ok()
    });
    runs.min()
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("the path of a rules file is missing")?;
    let start = Instant::now();
    let library = RuleLibrary::from_json(&std::fs::read_to_string(path)?)?;
    let loaded_us = start.elapsed().as_micros();
    let mut output = io::stdout().lock();
    writeln!(output, "{}", serde_json::json!({ "loaded_us": u64::try_from(loaded_us)? }))?;
    for line in io::stdin().lock().lines() {
        let path = line?;
        let bytes = std::fs::read(&path)?;
        let text = match XmlText::decode(&bytes) {
            Ok(text) => text,
            Err(error) => {
                writeln!(
                    output,
                    "{}",
                    serde_json::json!({ "file": path, "refused": error.code() })
                )?;
                continue;
            }
        };
        let tree = text.parse_tree()?;
        let own = library.check(&tree);
        let spent_us = shortest_us(&library, &text);
        let mut sets = serde_json::Map::new();
        for title in library.titles() {
            let report = library.check_by_set(title, &tree);
            sets.insert(title.to_owned(), serde_json::to_value(report)?);
        }
        let line = serde_json::json!({
            "file": path, "us": spent_us, "meant": own.sets, "sets": sets,
        });
        writeln!(output, "{line}")?;
    }
    Ok(())
}
