//! A vendor's program that measures devices: run for a bounded time, never twice at once.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::probe::ADVICE;
use docmill_core::fault::{Error, Fault, Result};

/// How long a program may take: beside a driver that hangs it never ends.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked whether it has ended.
const PROBE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A program of a vendor of cards.
#[derive(Debug)]
pub(super) struct MeasuringProgram {
    program: PathBuf,
    timeout: Duration,
    /// One that was killed for taking too long. Waiting for its end could take as long, and without
    /// it a second one would hang as well.
    pub(super) given_up: Mutex<Option<Child>>,
}

impl MeasuringProgram {
    pub(super) fn new(program: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { program: program.into(), timeout, given_up: Mutex::new(None) }
    }

    /// Whether it is there, working or not.
    pub(super) fn is_installed(&self, arguments: &[&str]) -> bool {
        !matches!(self.run(arguments), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The text that it prints.
    ///
    /// # Errors
    /// It cannot be run, hangs, or fails.
    pub(super) fn read_output(&self, arguments: &[&str]) -> Result<String> {
        let name = self.program.file_name().unwrap_or_default().display();
        let output = self.run(arguments).map_err(|error| {
            let context = match error.kind() {
                io::ErrorKind::TimedOut => {
                    format!("{name} has not answered within {:.0?}", self.timeout)
                }
                _ => format!("{name} cannot be run; {ADVICE}"),
            };
            Error::new(Fault::Unavailable, context).with_source(error)
        })?;
        if !output.status.success() {
            let context = format!("{name} lists no graphics cards ({}); {ADVICE}", output.status);
            return Err(Error::new(Fault::Unavailable, context));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The program's output.
    ///
    /// # Errors
    /// It cannot be run; `TimedOut` if it hangs, or an earlier one still does.
    #[expect(clippy::disallowed_methods, reason = "called where blocking is allowed")]
    fn run(&self, arguments: &[&str]) -> io::Result<Output> {
        let mut given_up = self.given_up.lock();
        if let Some(earlier) = given_up.as_mut() {
            if earlier.try_wait()?.is_none() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            *given_up = None;
        }
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        // Its text may be longer than a pipe holds, so it is read while the program runs.
        let reading = child.stdout.take().map(|mut out| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                io::Read::read_to_end(&mut out, &mut text).map(|_| text)
            })
        });
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if began.elapsed() >= self.timeout {
                let killed = child.kill();
                *given_up = Some(child);
                return killed.and(Err(io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(PROBE_POLL_INTERVAL);
        };
        let stdout = match reading.map(std::thread::JoinHandle::join) {
            Some(Ok(text)) => text?,
            _ => Vec::new(),
        };
        Ok(Output { status, stdout, stderr: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn script(file: &Path, text: &str) {
        std::fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn only_the_text_of_a_program_that_succeeded_counts_however_long_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("smi");
        script(&file, "echo a; exit 1");
        let program = MeasuringProgram::new(&file, PROBE_TIMEOUT);
        assert_eq!(program.read_output(&[]).unwrap_err().fault, Fault::Unavailable);
        script(&file, "head -c 300000 /dev/zero | tr '\\0' x");
        assert_eq!(program.read_output(&[]).unwrap().len(), 300_000);
        assert!(program.is_installed(&[]));
        assert!(!MeasuringProgram::new("/none/smi", PROBE_TIMEOUT).is_installed(&[]));
    }

    #[test]
    fn a_program_that_hangs_is_given_up_and_asked_again_when_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (file, healthy) = (folder.path().join("smi"), folder.path().join("healthy"));
        script(&file, &format!("[ -e {} ] || exec sleep 600\necho healthy", healthy.display()));
        let program = MeasuringProgram::new(file, Duration::from_millis(200));
        let error = program.read_output(&[]).unwrap_err();
        assert_eq!(error.fault, Fault::Unavailable);
        assert!(error.to_string().contains("smi has not answered within 200ms"), "{error}");

        // One that cannot be killed is not joined by others.
        let stuck = Command::new("sleep").arg("600").spawn().unwrap();
        *program.given_up.lock() = Some(stuck);
        std::fs::write(healthy, "").unwrap();
        program.read_output(&[]).unwrap_err();
        let mut stuck = program.given_up.lock().take().unwrap();
        stuck.kill().unwrap();
        stuck.wait().unwrap();
        *program.given_up.lock() = Some(stuck);
        assert_eq!(program.read_output(&[]).unwrap(), "healthy\n");
    }
}
