//! Cost and effect of assessing and repairing a page image: `scripts/bench.sh page_repair [--write
//! DIR] [--degrees] FILE...` prints one line per first page; `--write` stores the repaired pages as
//! PGM files, for any OCR program.
#![expect(clippy::print_stdout, reason = "a program that prints figures")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use docmill_core::config::LimitsConfig;
use docmill_core::model::RepairSwitches;
use docmill_documents::quality::{PageAssessment, assess_page};
use docmill_documents::repair::{RepairedRaster, repair_page};
use docmill_documents::{PageContent, PageRaster, open_document};

fn main() -> anyhow::Result<()> {
    let mut write: Option<PathBuf> = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            "--write" => write = arguments.next().map(PathBuf::from),
            file => {
                if let Err(error) = run(Path::new(file), write.as_deref()) {
                    println!("{}\t{error}", name_of(Path::new(file)));
                }
            }
        }
    }
    Ok(())
}

fn run(file: &Path, write: Option<&Path>) -> anyhow::Result<()> {
    let document = open_document(std::fs::read(file)?.into(), &LimitsConfig::default(), 300)?;
    let PageContent::Image(page) = document.page_content(0)? else {
        anyhow::bail!("has a text layer")
    };
    let start = Instant::now();
    let found = assess_page(&page)?;
    let judged = start.elapsed();
    let start = Instant::now();
    let repaired = repair_page(&page, &found, RepairSwitches::ALL)?;
    let repairing = start.elapsed();
    println!(
        "{}\t{}x{}\t{:.0}+{:.0} ms\t{:.3}\t{}\t{}",
        name_of(file),
        page.width,
        page.height,
        judged.as_secs_f64() * 1e3,
        repairing.as_secs_f64() * 1e3,
        found.score,
        told(&found),
        repaired.as_ref().map_or_else(|| "-".to_owned(), steps),
    );
    if let (Some(folder), Some(repaired)) = (write, repaired) {
        write_pgm(&folder.join(format!("{}.pgm", name_of(file))), &repaired.raster)?;
    }
    Ok(())
}

fn name_of(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn told(found: &PageAssessment) -> String {
    let defects: Vec<String> = found
        .defects
        .iter()
        .map(|defect| format!("{:?} {:.2}", defect.kind, defect.confidence))
        .collect();
    let direction = found.direction;
    format!(
        "h {:.0} {:?} x{:.1} {:.2} deg feet {:.2} [{}]",
        found.letter_height,
        direction.axis,
        direction.clarity,
        direction.skew_degrees,
        direction.feet,
        defects.join(", ")
    )
}

fn steps(repaired: &RepairedRaster) -> String {
    let names: Vec<&str> = repaired.steps.iter().map(|step| step.name()).collect();
    format!(
        "{} -> {}x{} at {}",
        names.join(", "),
        repaired.raster.width,
        repaired.raster.height,
        repaired.raster.dpi
    )
}

fn write_pgm(file: &Path, page: &PageRaster) -> anyhow::Result<()> {
    let mut bytes = format!("P5\n{} {}\n255\n", page.width, page.height).into_bytes();
    bytes.extend_from_slice(&page.pixels);
    Ok(std::fs::write(file, bytes)?)
}
