//! Readers and page processes for tests: served by a thread of the test, by the real program, or by
//! a script of deeds that real documents hardly ever do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_core::config::{ConfinementMode, CpuConfig, LimitsConfig, OcrConfig};
use docmill_core::model::{ReadRecipe, RepairSwitches};
use docmill_documents::ocr::OcrEngine;
use docmill_documents::reading::serve::{self, PageReaderFactory};
use docmill_documents::sandbox::confine::{ConfinementStatus, ProcessPermissions};
use docmill_documents::sandbox::{ProcessPool, ProcessProgram, ProcessSetup, ServeFunction};
use docmill_pipeline::{DocumentReader, RemoteOcr, SecondLooks};
use tempfile::TempDir;

/// Names the test that is run as a cell.
const CELL: &str = "page_processes::deeds::cell";

/// One language and a resolution that is read quickly.
pub(crate) fn recipe() -> ReadRecipe {
    ReadRecipe {
        dpi: 100,
        languages: vec!["eng".to_owned()],
        repairs: RepairSwitches::ALL,
        threshold: 0.7,
    }
}

/// A reader whose documents are read by a thread of this process.
pub(crate) fn reader_here(ocr: Arc<dyn OcrEngine>, limits: LimitsConfig) -> DocumentReader {
    reader_of(ocr, limits, recipe())
}

/// The same, which reads by another recipe.
pub(crate) fn reader_of(
    ocr: Arc<dyn OcrEngine>,
    limits: LimitsConfig,
    recipe: ReadRecipe,
) -> DocumentReader {
    let (cpu, config) =
        (CpuConfig { confine: ConfinementMode::Off, ..Default::default() }, OcrConfig::default());
    let setup = ProcessSetup::new(&cpu, &limits, &config, recipe.clone(), 2);
    let shared = Arc::clone(&ocr);
    let serve: Arc<ServeFunction> = Arc::new(move |input, output| {
        let ocr = Arc::clone(&shared);
        let make: PageReaderFactory = Box::new(move || Ok(Box::new(ocr.make_recogniser()?)));
        // Ends when the cell does, whichever way.
        let _ended =
            serve::serve_pages(input, output, |_| Ok((ConfinementStatus::default(), make)));
    });
    let processes = ProcessPool::new(ProcessProgram::Thread(serve), setup, 1000);
    DocumentReader {
        processes,
        ocr,
        recipe,
        remote_ocr: RemoteOcr::default(),
        second_looks: SecondLooks::default(),
    }
}

/// The path of the real program.
pub(crate) fn docmill() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_docmill"))
}

/// Settings of cells that are driven by deeds.
pub(crate) struct Driven {
    pub(crate) limits: LimitsConfig,
    pub(crate) cpu: CpuConfig,
    pub(crate) threads: usize,
    /// Programs that confined processes may run.
    pub(crate) programs: Vec<PathBuf>,
    /// Lines of shell that come before the process; `$here` is the folder of the script.
    pub(crate) before: &'static str,
}

impl Default for Driven {
    fn default() -> Self {
        let cpu = CpuConfig { confine: ConfinementMode::Off, ..Default::default() };
        let (limits, programs) = (LimitsConfig::default(), Vec::new());
        Self { limits, cpu, threads: 4, programs, before: "" }
    }
}

impl Driven {
    /// Page processes that run this very test program, and execute the commands on their pages (see
    /// `page_processes::deeds`). The folder holds the script that starts it.
    pub(crate) fn start(self) -> (Arc<ProcessPool>, TempDir) {
        let (program, folder) = script_program(self.before);
        let Self { limits, cpu, threads, programs, .. } = self;
        let setup = ProcessSetup::new(&cpu, &limits, &OcrConfig::default(), recipe(), threads);
        let setup = match programs.first() {
            None => setup,
            Some(first) => {
                let more = ProcessPermissions::for_program(first.clone(), []);
                setup.permitting(ProcessPermissions { programs, ..more })
            }
        };
        let cells = ProcessPool::new(program, setup, cpu.documents_per_process);
        (cells, folder)
    }
}

/// A page process that runs this very test program, after these lines of shell, to which `$here` is
/// the folder of the script. The folder holds the script that starts it.
pub(crate) fn script_program(before: &str) -> (ProcessProgram, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("cell");
    let this = std::env::current_exe().unwrap();
    // The harness prints on standard output, so the wire moves to another number.
    let text = format!(
        "#!/bin/sh\nhere='{}'\nexec 3>&1 1>/dev/null\n{before}\n\
         exec '{}' --exact {CELL} --ignored --nocapture\n",
        folder.path().display(),
        this.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    (ProcessProgram::Binary(script), folder)
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: &str) -> bool {
    let stat = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let stat = String::from_utf8(stat.unwrap().stdout).unwrap();
    !stat.trim().is_empty() && !stat.starts_with('Z')
}

/// The process that started this one.
pub(crate) fn parent(pid: &str) -> String {
    let parent = std::process::Command::new("ps").args(["-o", "ppid=", "-p", pid]).output();
    String::from_utf8(parent.unwrap().stdout).unwrap().trim().to_owned()
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, pid: &str) {
    let sent = std::process::Command::new("kill").args([name, pid]).status();
    assert!(sent.unwrap().success(), "{name} to {pid}");
}

/// Waits for a process to be gone.
pub(crate) async fn until_gone(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while lives(pid) {
        assert!(Instant::now() < deadline, "{pid} still lives");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
