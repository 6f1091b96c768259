//! Pages per second from file to text, in the page processes of a worker; then once more in this
//! process, for the share of recognition in the CPU time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use docmill::app::App;
use docmill_core::config::{Config, OcrEngineChoice};
use docmill_core::fault::Result;
use docmill_core::model::TextLine;
use docmill_documents::{PageRaster, PageRecogniser, open_document, read_page};
use docmill_pipeline::PipelineServices;
use futures::StreamExt;

use crate::support::whole::ReadWhole as _;

/// Ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux.
const TICKS: f64 = 100.0;

/// With the readers that there are by default.
pub(crate) async fn run_both(folder: &Path, out: &Path, languages: &[&str]) {
    let config = config_for(OcrEngineChoice::Auto, languages);
    let services = App::new(config).pipeline_services().await.unwrap();
    let weights = services.reader.ocr.name();
    assert!(weights.contains("neural"), "the weights are not there: scripts/models.sh");
    let figures = read_all(&services, &images_in(folder), out).await;
    println!("{figures}");
}

/// With Tesseract alone.
pub(crate) async fn run_tesseract(folder: &Path, out: &Path, languages: &[&str]) {
    run_alone(config_for(OcrEngineChoice::Tesseract, languages), folder, out).await;
}

/// With the neural reader alone.
pub(crate) async fn run_neural(folder: &Path, out: &Path, languages: &[&str]) {
    run_alone(config_for(OcrEngineChoice::Neural, languages), folder, out).await;
}

/// With one reader, and what share of the CPU time is not recognition.
async fn run_alone(config: Config, folder: &Path, out: &Path) {
    let services = App::new(config.clone()).pipeline_services().await.unwrap();
    let files = images_in(folder);
    let mut figures = read_all(&services, &files, out).await;
    let share = outside(&files, &services, &config).into();
    figures.as_object_mut().unwrap().insert("cpu_share_outside_recognition".to_owned(), share);
    println!("{figures}");
}

/// The weights lie beside the program that is measured, not beside this one.
fn config_for(engine: OcrEngineChoice, languages: &[&str]) -> Config {
    let mut config = Config::default();
    let program = Path::new(env!("CARGO_BIN_EXE_docmill"));
    config.cpu.program = program.into();
    config.ocr.engine = engine;
    config.ocr.languages = languages.iter().map(|name| (*name).to_owned()).collect();
    if engine != OcrEngineChoice::Tesseract {
        let target = program.parent().and_then(Path::parent).unwrap();
        config.ocr.models = target.join("tools/ocr-models");
    }
    config
}

fn images_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

async fn read_all(services: &PipelineServices, files: &[PathBuf], out: &Path) -> serde_json::Value {
    std::fs::create_dir_all(out).unwrap();
    let reader = &services.reader;
    reader.processes.start_shared().await.unwrap();
    let at_once = reader.max_parallel_pages();
    let (before, started) = (children_cpu(), Instant::now());
    let jobs = files.iter().map(|path| async move {
        let bytes = std::fs::read(path).unwrap();
        let read = reader.read(bytes.into(), "", false).await;
        let (pages, text) = read.map_or((1, String::new()), |t| (t.pages.len(), t.full_text()));
        let name = path.file_stem().unwrap().to_str().unwrap();
        std::fs::write(out.join(format!("{name}.txt")), text).unwrap();
        pages
    });
    let pages: usize = futures::stream::iter(jobs)
        .buffer_unordered(at_once)
        .fold(0, |sum, pages| async move { sum + pages })
        .await;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = children_cpu() - before;
    serde_json::json!({
        "files": files.len(), "pages": pages, "seconds": seconds, "cpu_seconds": cpu,
    })
}

/// CPU seconds of the living children and theirs.
fn children_cpu() -> f64 {
    super::memory::family(std::process::id()).iter().skip(1).map(|pid| cpu_of(*pid)).sum()
}

fn cpu_of(pid: u32) -> f64 {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0.0 };
    // The name, in brackets, may hold spaces. Then: state is field 3, utime 14, stime 15, and those
    // of children that were waited for 16 and 17.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(4).map(|field| field.parse::<f64>().unwrap_or(0.0));
    ticks.sum::<f64>() / TICKS
}

/// Which share of the CPU time of reading these files, one after the other, is not recognition.
fn outside(files: &[PathBuf], services: &PipelineServices, config: &Config) -> f64 {
    let spent = Arc::new(AtomicU64::new(0));
    let inner = services.reader.ocr.make_recogniser().unwrap();
    let mut timed = Timed { inner, spent: Arc::clone(&spent) };
    let started = thread_cpu();
    for path in files {
        let bytes = std::fs::read(path).unwrap();
        let Ok(document) = open_document(bytes.into(), &config.limits, config.ocr.dpi) else {
            continue;
        };
        for index in 0..document.page_count() {
            // Unreadable pages were counted as empty above.
            drop(read_page(&document, index, &services.reader.recipe, &mut timed));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "shares of a run of minutes")]
    let share = spent.load(Ordering::Relaxed) as f64 / (thread_cpu() - started).max(1) as f64;
    1.0 - share
}

/// Nanoseconds of CPU time of this thread.
fn thread_cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

struct Timed {
    inner: Box<dyn PageRecogniser>,
    spent: Arc<AtomicU64>,
}

impl PageRecogniser for Timed {
    fn languages(&self) -> &[String] {
        self.inner.languages()
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        let started = thread_cpu();
        let read = self.inner.recognise(page, languages);
        self.spent.fetch_add(thread_cpu() - started, Ordering::Relaxed);
        read
    }
}
