//! Pages per second of everything between the file and its text, in the processes that a worker
//! would use; then once more in this process, to see what part of the CPU time is recognition.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use docmill::app::App;
use docmill_core::config::Config;
use docmill_core::fault::Result;
use docmill_core::model::TextLine;
use docmill_documents::pages::{PageRaster, PageRecogniser, open_document, read_page};
use futures::StreamExt;

use crate::support::whole::ReadWhole as _;

/// Ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux.
const TICKS: f64 = 100.0;

pub(crate) async fn run(folder: &Path, out: &Path, languages: &[&str]) {
    let mut config = Config::default();
    config.cpu.program = env!("CARGO_BIN_EXE_docmill").into();
    config.ocr.languages = languages.iter().map(|name| (*name).to_owned()).collect();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    std::fs::create_dir_all(out).unwrap();

    let services = App::new(config.clone()).pipeline_services().await.unwrap();
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
    let outside = outside(&files, &services, &config);
    let figures = serde_json::json!({
        "files": files.len(), "pages": pages, "seconds": seconds, "cpu_seconds": cpu,
        "cpu_share_outside_recognition": outside,
    });
    println!("{figures}");
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
fn outside(
    files: &[PathBuf],
    services: &docmill::pipeline::PipelineServices,
    config: &Config,
) -> f64 {
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
            // What cannot be read was counted as read nothing above.
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
