//! Starting a page process: its program, its environment, and its first frame.

use std::ffi::OsStr;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::confine::ConfinementStatus;
use super::process_setup::ProcessSetup;
use super::wire::{self, ReadyFrame};
use crate::runtime_telemetry::TELEMETRY_SWITCH;
use docmill_core::fault::{Error, Result};

/// The command of our binary that a page process runs.
pub const COMMAND: &str = "page-process";
/// Time for a page process to report that it is ready, on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Search paths; nothing else of our environment is passed on.
const PASSED_VARIABLES: [&str; 4] =
    ["PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// A page process served by a thread: given its input and its output, until the input ends.
pub type ServeFunction = dyn Fn(PipeReader, PipeWriter) + Send + Sync;

/// The program of a page process.
#[derive(Clone)]
pub enum ProcessProgram {
    /// A docmill of the same version.
    Binary(PathBuf),
    /// A thread of this process, which can neither be confined nor killed: for tests of readings.
    Thread(Arc<ServeFunction>),
}

impl ProcessProgram {
    /// This very program, also when its file was replaced meanwhile.
    ///
    /// # Errors
    /// The system does not report its path.
    pub fn current_binary() -> Result<Self> {
        let running = PathBuf::from("/proc/self/exe");
        if running.exists() {
            return Ok(Self::Binary(running));
        }
        let path = std::env::current_exe();
        path.map(Self::Binary).map_err(|error| {
            Error::internal("cannot tell where this program lies").with_source(error)
        })
    }
}

impl std::fmt::Debug for ProcessProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Binary(path) => f.debug_tuple("Binary").field(path).finish(),
            Self::Thread(_) => f.write_str("Thread"),
        }
    }
}

/// A page process that is ready.
pub(super) struct StartedProcess {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// The child process; `None` if a thread serves instead.
    pub process: Option<ChildProcess>,
    pub ready: ReadyFrame,
}

/// The child process that serves pages.
pub(super) struct ChildProcess {
    /// Before the child, so that it goes first: the id is the child's own until that is waited for.
    pub group: ProcessGroupGuard,
    pub child: Child,
    /// Also the number of its process group.
    pub pid: Pid,
    /// Whether its last lines on standard error were about memory.
    pub starved: JoinHandle<bool>,
    /// Closed once the process has ended; its id is its own until the child is waited for.
    pub gone: oneshot::Receiver<()>,
}

/// Kills a process group when it is dropped, unless that is done already: programs of a page
/// process must not outlive a worker that ends in a hurry.
pub(super) struct ProcessGroupGuard(Option<Pid>);

impl ProcessGroupGuard {
    /// Kills the group, once.
    pub(super) fn kill_group(&mut self) {
        if let Some(pid) = self.0.take() {
            let _gone_already = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Starts a page process and waits until it is ready.
///
/// # Errors
/// It cannot be started, or ends before it is ready.
pub(super) async fn start_process(
    program: &ProcessProgram,
    setup: &ProcessSetup,
) -> Result<StartedProcess> {
    let mut started = match program {
        ProcessProgram::Binary(path) => spawn_binary(path.as_os_str(), setup)?,
        ProcessProgram::Thread(serve) => spawn_thread(Arc::clone(serve))?,
    };
    let (input, output) = (&mut started.input, &mut started.output);
    let greeted = async {
        wire::send_frame(input, setup, &[]).await?;
        wire::receive_frame::<ReadyFrame>(output, 0).await
    };
    let greeting = tokio::time::timeout(READY_TIMEOUT, greeted).await;
    if let Ok(Ok(Some((ready, _)))) = greeting {
        started.ready = ready;
        return Ok(started);
    }
    // Its standard error is not trusted; its exit status is a clue.
    let status = match &mut started.process {
        Some(ChildProcess { child, group, .. }) => {
            group.kill_group();
            child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string())
        }
        None => "a thread".to_owned(),
    };
    let context = format!("a page process ended before it was ready ({status})");
    Err(Error::internal(context))
}

fn spawn_binary(program: &OsStr, setup: &ProcessSetup) -> Result<StartedProcess> {
    let mut command = Command::new(program);
    command.arg0("docmill").arg(COMMAND).env_clear();
    command.env("LC_ALL", "C.UTF-8").env("OMP_THREAD_LIMIT", "1");
    command.env(TELEMETRY_SWITCH.0, TELEMETRY_SWITCH.1);
    // Each heap of its own takes address space; more of them than threads are of no use.
    command.env("MALLOC_ARENA_MAX", setup.threads.to_string());
    for name in PASSED_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: programs that it runs die with it, and a Ctrl-C at the terminal reaches
    // only us. Dropping it kills the group: killing the child alone would leave its programs.
    command.process_group(0);
    let mut child = command.spawn().map_err(start_error)?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(pid), (Some(input), Some(output), Some(words))) = (pid, pipes) else {
        return Err(Error::internal("a page process without pipes"));
    };
    let group = ProcessGroupGuard(Some(pid));
    let starved = tokio::spawn(watch_for_memory_error(words));
    let gone = watch_exit(pid).map_err(start_error)?;
    Ok(StartedProcess {
        input: Box::new(input),
        output: Box::new(output),
        process: Some(ChildProcess { group, child, pid, starved, gone }),
        ready: ReadyFrame { confinement: ConfinementStatus::default() },
    })
}

/// Notices the end of a child without taking its status, so that its id stays its own. The wait
/// blocks, so a thread does it, which ends with the child.
fn watch_exit(pid: Pid) -> std::io::Result<oneshot::Receiver<()>> {
    /// Enough for one call.
    const WATCH_STACK_BYTES: usize = 64 << 10;
    let (ended, gone) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("page-process-end".to_owned());
    thread.stack_size(WATCH_STACK_BYTES).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // On failure it is no child any more, so it has ended as well.
        let _ended = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
        drop(ended);
    })?;
    Ok(gone)
}

fn start_error(error: std::io::Error) -> Error {
    Error::transient("cannot start a page process").with_source(error)
}

fn pipe_error(error: std::io::Error) -> Error {
    Error::transient("cannot make a pipe").with_source(error)
}

/// Reads the standard error of a page process to its end. It may hold text of documents, so nothing
/// of it is kept or logged. Returns whether it reports a failed allocation, in Rust's or C++'s
/// words.
async fn watch_for_memory_error(mut words: ChildStderr) -> bool {
    const SIGNS: [&[u8]; 2] = [b"memory allocation of", b"std::bad_alloc"];
    const MAX_SIGN_BYTES: usize = 32;
    let (mut seen, mut chunk, mut starved) = (Vec::new(), [0; 4096], false);
    while let Ok(count @ 1..) = words.read(&mut chunk).await {
        seen.extend_from_slice(chunk.get(..count).unwrap_or_default());
        starved |= SIGNS.iter().any(|sign| memchr::memmem::find(&seen, sign).is_some());
        // A sign may be cut by the end of a chunk.
        seen.drain(..seen.len().saturating_sub(MAX_SIGN_BYTES));
    }
    starved
}

fn spawn_thread(serve: Arc<ServeFunction>) -> Result<StartedProcess> {
    let (theirs, input) = std::io::pipe().map_err(pipe_error)?;
    let (output, ours) = std::io::pipe().map_err(pipe_error)?;
    std::thread::spawn(move || serve(theirs, ours));
    for end in [
        OwnedFd::from(input.try_clone().map_err(pipe_error)?),
        output.try_clone().map_err(pipe_error)?.into(),
    ] {
        let flags = rustix::fs::fcntl_getfl(&end).map_err(|error| pipe_error(error.into()))?;
        rustix::fs::fcntl_setfl(&end, flags | rustix::fs::OFlags::NONBLOCK)
            .map_err(|error| pipe_error(error.into()))?;
    }
    Ok(StartedProcess {
        input: Box::new(pipe::Sender::from_owned_fd(input.into()).map_err(pipe_error)?),
        output: Box::new(pipe::Receiver::from_owned_fd(output.into()).map_err(pipe_error)?),
        process: None,
        ready: ReadyFrame { confinement: ConfinementStatus::default() },
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use super::*;
    use docmill_core::config::{CpuConfig, LimitsConfig, OcrConfig};
    use docmill_core::model::{ReadRecipe, RepairSwitches};

    #[tokio::test]
    async fn what_a_page_process_runs_dies_with_whoever_drops_it() {
        let folder = tempfile::tempdir().unwrap();
        let (program, started) = (folder.path().join("program"), folder.path().join("started"));
        let script = format!(
            "#!/bin/sh\nsleep 1000 &\necho $! >'{0}.new'\nmv '{0}.new' '{0}'\nwait\n",
            started.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let recipe = ReadRecipe {
            dpi: 100,
            languages: Vec::new(),
            repairs: RepairSwitches::ALL,
            threshold: 0.7,
        };
        let (cpu, limits, ocr) =
            (CpuConfig::default(), LimitsConfig::default(), OcrConfig::default());
        let setup = ProcessSetup::new(&cpu, &limits, &ocr, recipe, 1);
        let process = spawn_binary(program.as_os_str(), &setup).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let until = async |done: &dyn Fn() -> bool| {
            while !done() {
                assert!(Instant::now() < deadline, "too late");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        until(&|| started.exists()).await;
        let pid: i32 = std::fs::read_to_string(&started).unwrap().trim().parse().unwrap();
        drop(process);
        let status = format!("/proc/{pid}/stat");
        until(&|| std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")))
            .await;
    }
}
