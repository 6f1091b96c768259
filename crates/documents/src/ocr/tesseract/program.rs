//! Tesseract as a program: one process per page.
//!
//! It can be killed at a deadline, and a crash costs one page. It sees nothing of our environment
//! but where programs and language data lie. Its memory is bounded by the pixels it is given only.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::needs::locate_program;
use super::options::SEGMENTATION;
use super::tsv;
use crate::page::PageRaster;
use crate::reading::recognise::PageRecogniser;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::TextLine;

/// For answers about itself.
const INQUIRY: Duration = Duration::from_secs(30);

/// Version and languages of the program.
///
/// # Errors
/// It is missing or does not answer.
pub(super) fn query_program(program: &Path) -> Result<(String, Vec<String>)> {
    let version = run_query(program, "--version")?;
    let version = version.lines().next().unwrap_or_default();
    let version = version.trim_start_matches("tesseract").trim().to_owned();
    let installed = run_query(program, "--list-langs")?;
    let installed = installed.lines().skip(1).map(|line| line.trim().to_owned()).collect();
    Ok((version, installed))
}

fn run_query(program: &Path, question: &str) -> Result<String> {
    let child = bare_command(program).arg(question).stdin(Stdio::null()).spawn();
    let child = child.map_err(|error| missing_error(program, error))?;
    let shown = program.display();
    let ended = wait_with_limit(child, INQUIRY)?;
    let (status, output) =
        ended.ok_or_else(|| Error::transient(format!("`{shown} {question}` does not answer")))?;
    if !status.success() {
        return Err(Error::internal(format!("`{shown} {question}`: {status}")));
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Runs the program for each page.
pub(super) struct TesseractProgram {
    program: PathBuf,
    languages: Vec<String>,
    page_time: Duration,
}

impl TesseractProgram {
    /// A page may take `page_time`.
    pub(super) fn new(program: PathBuf, languages: Vec<String>, page_time: Duration) -> Self {
        Self { program, languages, page_time }
    }

    fn spawn(&self, dpi: u32, languages: &[String]) -> Result<Child> {
        let mut command = bare_command(&self.program);
        command.args(["stdin", "stdout", "--psm"]).arg(SEGMENTATION.to_string());
        command.args(["--dpi"]).arg(dpi.to_string()).args(["-l", &languages.join("+")]);
        command.args(["-c", "tessedit_create_tsv=1", "-c", "debug_file=/dev/null"]);
        command.stdin(Stdio::piped());
        command.spawn().map_err(|error| missing_error(&self.program, error))
    }
}

impl PageRecogniser for TesseractProgram {
    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        let mut child = self.spawn(page.dpi, languages)?;
        let stdin = child.stdin.take();
        let ended = thread::scope(|scope| {
            let feeder = scope.spawn(move || stdin.map(|stdin| write_pgm(stdin, page)));
            let ended = wait_with_limit(child, self.page_time);
            // It stopped reading early if feeding failed; its exit status is more precise.
            drop(feeder.join());
            ended
        })?;
        let Some((status, output)) = ended else {
            let limit = humantime::format_duration(self.page_time);
            let context = format!("tesseract took longer than {limit} for one page");
            return Err(Error::new(Fault::Rejected, context));
        };
        if !status.success() {
            return Err(exit_error(status));
        }
        Ok(tsv::parse_lines(&String::from_utf8_lossy(&output)))
    }
}

/// A binary PGM (netpbm): a header in ASCII, then the pixels as they are.
fn write_pgm(mut stdin: impl Write, page: &PageRaster) -> std::io::Result<()> {
    write!(stdin, "P5\n{} {}\n255\n", page.width, page.height)?;
    stdin.write_all(&page.pixels)
}

fn pipe_error(error: std::io::Error) -> Error {
    Error::transient("cannot talk to tesseract").with_source(error)
}

/// Waits for the end of the program and takes what it printed; `None` if it had to be killed.
fn wait_with_limit(mut child: Child, limit: Duration) -> Result<Option<(ExitStatus, Vec<u8>)>> {
    let Some(mut stdout) = child.stdout.take() else {
        return Err(Error::internal("tesseract was started without an output"));
    };
    let (done, waiting) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut output = Vec::new();
        let read = stdout.read_to_end(&mut output).map(|_length| output);
        // Nobody waits any more after the limit.
        drop(done.send(read));
    });
    let read = waiting.recv_timeout(limit);
    if read.is_err() {
        // Where the kernel refuses the signal, the wait lasts until the worker, which bounds the
        // page's time as well, kills the whole group.
        let _refused = child.kill();
    }
    let status = child.wait().map_err(pipe_error)?;
    match read {
        Ok(output) => {
            drop(reader.join());
            Ok(Some((status, output.map_err(pipe_error)?)))
        }
        Err(_elapsed) => Ok(None),
    }
}

/// A command that inherits nothing but where things lie.
fn bare_command(program: &Path) -> Command {
    // By its path: to look for a name, the standard library would fork with a pair of sockets, which
    // a confined process does not get.
    let mut command = Command::new(locate_program(program));
    command.env_clear().env("OMP_THREAD_LIMIT", "1").env("LC_ALL", "C.UTF-8");
    for name in ["PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn missing_error(program: &Path, error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        let context = format!("cannot start `{}`", program.display());
        return Error::transient(context).with_source(error);
    }
    Error::internal(format!(
        "`{}` is not there: install tesseract-ocr (Debian, Ubuntu) or tesseract (Homebrew), or set \
         ocr.tesseract to where it is",
        program.display()
    ))
}

/// The fault for an unsuccessful end. Killed from outside (mostly out of memory): another try may
/// succeed. A crash or an error exit: impossible on pixels that we made, so a person has to
/// investigate.
fn exit_error(status: ExitStatus) -> Error {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        const SIGKILL: i32 = 9;
        const SIGTERM: i32 = 15;
        if let Some(SIGKILL | SIGTERM) = status.signal() {
            return Error::transient("tesseract was killed from outside");
        }
    }
    Error::internal(format!("tesseract ended with {status}"))
}
