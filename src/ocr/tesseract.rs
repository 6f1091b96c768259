//! Reading pages with the `tesseract` program: one child process per page.
//!
//! A child, because Tesseract and Leptonica are C++ that meets hostile pixels: it can be killed at
//! a deadline, a crash costs one page, and each page gets a fresh process, so a suspect document
//! needs nothing special. No more children run than there are cores, and each is held to one thread
//! (`OMP_THREAD_LIMIT=1`): with threads beyond the cores OpenMP slows down tenfold. The child sees
//! nothing of our environment but where programs and language data lie. Its memory is bounded by
//! the pixels it is given only.

mod needs;
mod tsv;

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::{Ocr, PageImage, Reading};
use crate::config::OcrConfig;
use crate::cpu::confine::Permissions;
use crate::fault::{Error, Fault, Result};

/// Languages that are used if they are installed and none are configured.
const USUAL_LANGUAGES: [&str; 5] = ["eng", "deu", "fra", "nld", "spa"];
/// For answers about itself.
const INQUIRY: Duration = Duration::from_secs(30);
/// Page segmentation mode 3: automatic, without orientation detection, which costs as much as
/// reading the page.
const SEGMENTATION: &str = "3";

/// The program, asked once for its version and languages.
#[derive(Debug)]
pub struct Tesseract {
    program: PathBuf,
    version: String,
    languages: Vec<String>,
    page_time: Duration,
    children: Semaphore,
}

impl Tesseract {
    /// Finds the program and its languages. A page may take `page_time`.
    ///
    /// # Errors
    /// The program is missing, does not answer, or lacks a configured language; the message says
    /// what to install.
    pub async fn start(config: &OcrConfig, page_time: Duration) -> Result<Self> {
        let given = config.tesseract.as_os_str();
        let program = if given.is_empty() { PathBuf::from("tesseract") } else { given.into() };
        let version = ask(&program, "--version").await?;
        let version = version.lines().next().unwrap_or_default();
        let version = version.trim_start_matches("tesseract").trim().to_owned();
        let installed = ask(&program, "--list-langs").await?;
        let installed: Vec<&str> = installed.lines().skip(1).map(str::trim).collect();
        let languages = choose_languages(&config.languages, &installed)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { program, version, languages, page_time, children: Semaphore::new(cores) })
    }

    /// What a process that runs the program must be allowed.
    pub fn permissions(&self) -> Permissions {
        needs::permissions(&self.program)
    }

    fn command(&self, dpi: u32) -> Command {
        let mut command = bare(&self.program);
        command.args(["stdin", "stdout", "--psm", SEGMENTATION, "--dpi"]).arg(dpi.to_string());
        command.args(["-l", &self.languages.join("+")]);
        command.args(["-c", "tessedit_create_tsv=1", "-c", "debug_file=/dev/null"]);
        command.stdin(Stdio::piped());
        command
    }

    /// Feeds the child and collects what it prints.
    async fn run(&self, page: PageImage) -> Result<Output> {
        let mut child =
            self.command(page.dpi).spawn().map_err(|error| missing(&self.program, error))?;
        let stdin = child.stdin.take();
        let feed = async move {
            let Some(mut stdin) = stdin else { return };
            // A binary PGM (netpbm): a header in ASCII, then the pixels as they are.
            let header = format!("P5\n{} {}\n255\n", page.width, page.height);
            let fed = async {
                stdin.write_all(header.as_bytes()).await?;
                stdin.write_all(&page.pixels).await?;
                stdin.shutdown().await
            };
            if let Err(error) = fed.await {
                // It stopped reading; how it ended says more.
                tracing::debug!(%error, "tesseract closed its input early");
            }
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), feed);
        output.map_err(|error| Error::transient("cannot talk to tesseract").because(error))
    }
}

#[async_trait]
impl Ocr for Tesseract {
    fn name(&self) -> String {
        format!("tesseract {}", self.version)
    }

    fn identity(&self) -> String {
        let languages = self.languages.join("+");
        format!("tesseract {}; psm {SEGMENTATION}; {languages}", self.version)
    }

    async fn read(&self, page: PageImage, _alone: bool) -> Result<Reading> {
        let _permit = self
            .children
            .acquire()
            .await
            .map_err(|_| Error::internal("the slots for tesseract are closed"))?;
        // Dropping the future of a run kills its child.
        let Ok(output) = tokio::time::timeout(self.page_time, self.run(page)).await else {
            let limit = humantime::format_duration(self.page_time);
            let context = format!("tesseract took longer than {limit} for one page");
            return Err(Error::new(Fault::Rejected, context));
        };
        let output = output?;
        if !output.status.success() {
            return Err(failure(output.status));
        }
        let lines = tsv::lines(&String::from_utf8_lossy(&output.stdout));
        Ok(Reading { lines, languages: self.languages.clone() })
    }
}

/// The configured languages, or the usual ones, as far as installed.
fn choose_languages(configured: &[String], installed: &[&str]) -> Result<Vec<String>> {
    let absent: Vec<&str> = configured
        .iter()
        .map(String::as_str)
        .filter(|language| !installed.contains(language))
        .collect();
    if !absent.is_empty() {
        let packages: Vec<String> = absent.iter().map(|language| package(language)).collect();
        return Err(Error::internal(format!(
            "ocr.languages: {} not installed; install {} (Debian, Ubuntu) or take it out",
            absent.join(", "),
            packages.join(" "),
        )));
    }
    let chosen: Vec<String> = if configured.is_empty() {
        let usual = USUAL_LANGUAGES.iter().filter(|language| installed.contains(language));
        usual.map(|language| (*language).to_owned()).collect()
    } else {
        configured.to_vec()
    };
    if chosen.is_empty() {
        let message = "tesseract has no language to read; install tesseract-ocr-eng (Debian, \
                       Ubuntu) or tesseract-lang (Homebrew)";
        return Err(Error::internal(message));
    }
    Ok(chosen)
}

fn package(language: &str) -> String {
    format!("tesseract-ocr-{}", language.to_lowercase().replace('_', "-"))
}

/// A command that inherits nothing but where things lie, and dies with its handle.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("OMP_THREAD_LIMIT", "1").env("LC_ALL", "C.UTF-8");
    for name in ["PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command
}

async fn ask(program: &Path, question: &str) -> Result<String> {
    let answer = bare(program).arg(question).output();
    let answer = tokio::time::timeout(INQUIRY, answer).await.map_err(|_elapsed| {
        Error::transient(format!("`{} {question}` does not answer", program.display()))
    })?;
    let output = answer.map_err(|error| missing(program, error))?;
    if !output.status.success() {
        let shown = program.display();
        return Err(Error::internal(format!("`{shown} {question}`: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn missing(program: &Path, error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        let context = format!("cannot start `{}`", program.display());
        return Error::transient(context).because(error);
    }
    Error::internal(format!(
        "`{}` is not there: install tesseract-ocr (Debian, Ubuntu) or tesseract (Homebrew), or set \
         ocr.tesseract to where it is",
        program.display()
    ))
}

/// What an unsuccessful end asks for. Killed from outside (no memory left on the machine, most
/// often): another try may succeed. A crash or a refusal of its own: it should not happen on pixels
/// that we made, a person has to look.
fn failure(status: ExitStatus) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_the_configured_ones_or_the_usual_ones_that_are_there() {
        let installed = ["deu", "eng", "osd", "chi_sim"];
        let choose = |configured: &[&str]| {
            let configured: Vec<String> =
                configured.iter().map(|name| (*name).to_owned()).collect();
            choose_languages(&configured, &installed).map_err(|error| error.to_string())
        };
        assert_eq!(choose(&[]).unwrap(), ["eng", "deu"]);
        assert_eq!(choose(&["chi_sim"]).unwrap(), ["chi_sim"]);
        let refused = choose(&["eng", "chi_tra"]).unwrap_err();
        assert!(refused.contains("tesseract-ocr-chi-tra"), "{refused}");
        assert!(choose_languages(&[], &["osd"]).is_err());
    }

    #[tokio::test]
    async fn a_missing_program_is_named_with_the_package_to_install() {
        let config = OcrConfig { tesseract: "/nowhere/tesseract".into(), ..OcrConfig::default() };
        let error = Tesseract::start(&config, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error.fault, Fault::Internal);
        let message = error.to_string();
        assert!(
            message.contains("/nowhere/tesseract") && message.contains("install tesseract-ocr")
        );
    }
}
