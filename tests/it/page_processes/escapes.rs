//! A compromised page process can harm no other process, and nothing outlives it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use docmill_core::config::{ConfinementMode, CpuConfig, LimitsConfig, OcrConfig};
use docmill_core::fault::Fault;
use docmill_core::model::OutcomeReason;
use docmill_documents::ocr::tesseract::TesseractEngine;
use docmill_documents::sandbox::{ProcessPool, ProcessProgram, ProcessSetup};

use super::{of, read, told};
use crate::support::documents;
use crate::support::page_processes::{Driven, docmill, lives, recipe, signal};
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// Some process of the same user.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Its state and limits, as far as anybody can see them.
    fn look(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id()));
        let status = read("status").unwrap();
        let fixed = |line: &&str| line.starts_with("State") || line.starts_with("Cpus_allowed");
        // It may not have come to its sleep yet, or is being loaded; stopped or dead it is not.
        let status = ["R (running)", "D (disk sleep)"]
            .iter()
            .fold(status, |status, state| status.replace(state, "S (sleeping)"));
        let status: Vec<&str> = status.lines().filter(fixed).collect();
        format!("{status:?} {}", read("limits").unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn required() -> CpuConfig {
    CpuConfig { confine: ConfinementMode::Required, ..Default::default() }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_process_reaches_no_other_process() {
    let victim = Victim::start();
    let before = victim.look();
    let (cells, _folder) = Driven { cpu: required(), ..Default::default() }.start();
    let seen = read(&cells, &format!("reach {}", victim.pid()), false).await.unwrap().page;
    assert_eq!(seen.lines.len(), 14);
    for line in &seen.lines {
        assert!(line.text().ends_with(": no"), "{}", line.text());
    }
    assert_eq!(victim.look(), before);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_process_that_runs_no_program_starts_neither_processes_nor_threads() {
    let (cells, _folder) = Driven { cpu: required(), ..Default::default() }.start();
    let seen = read(&cells, "breed", false).await.unwrap().page;
    let lines: Vec<String> = seen.lines.iter().map(docmill_core::model::TextLine::text).collect();
    assert_eq!(lines, ["start a thread: no", "start a process: no"]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_a_page_process_reaches_no_other_process_and_does_not_leave_its_group() {
    let victim = Victim::start();
    let before = victim.look();
    let names = ["true", "prlimit", "taskset", "renice", "setsid", "ipcmk", "unshare", "kill"];
    let programs = names.map(|name| format!("/usr/bin/{name}").into()).to_vec();
    let (cells, _folder) = Driven { cpu: required(), programs, ..Default::default() }.start();
    let seen = read(&cells, &format!("run {}", victim.pid()), false).await.unwrap().page;
    let expected =
        |name: &str| format!("/usr/bin/{name}: {}", if name == "true" { "yes" } else { "no" });
    let lines: Vec<String> = seen.lines.iter().map(docmill_core::model::TextLine::text).collect();
    assert_eq!(lines, names.map(expected));
    assert_eq!(victim.look(), before);
}

/// A child that left the process group keeps the pipes of a page process open beyond its life.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_process_that_leaves_something_behind_is_over_when_it_is_killed() {
    const LEAVE: &str = "rm -f \"$here/left\"\n\
                         setsid sh -c 'echo $$ > \"$0/left\"; exec sleep 600' \"$here\" &\n\
                         while [ ! -s \"$here/left\" ]; do :; done";
    let limits = LimitsConfig { page_time: Duration::from_secs(1), ..Default::default() };
    let (cells, folder) =
        Driven { limits, threads: 1, before: LEAVE, ..Default::default() }.start();
    let document = cells.open_document(of(&["hang"]), false).await.unwrap();
    let left = std::fs::read_to_string(folder.path().join("left")).unwrap();
    let left = left.trim();
    let ended = tokio::time::timeout(SOON, document.read_page(0)).await;
    assert!(lives(left), "it has to outlive the page process for this to say anything");
    signal("-KILL", left);
    let ended = ended.unwrap_or_else(|_| panic!("still waiting for a process that was killed"));
    assert_eq!(told(ended), Err(Ok(OutcomeReason::Timeout)));
    // The only core is free again.
    let next = tokio::time::timeout(SOON, read(&cells, "pid", false)).await;
    assert_eq!(told(next.unwrap_or_else(|_| panic!("the core is taken for ever"))), Ok(()));
    let left = std::fs::read_to_string(folder.path().join("left")).unwrap();
    signal("-KILL", left.trim());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_confined_page_process_reads_by_the_library_and_by_the_program() {
    for program in ["", "tesseract"] {
        let languages = vec!["eng".to_owned()];
        let ocr = OcrConfig { tesseract: program.into(), languages, ..Default::default() };
        let limits = LimitsConfig::default();
        let engine = TesseractEngine::find_installed(&ocr, limits.page_time).unwrap();
        let setup = ProcessSetup::new(&required(), &limits, &ocr, recipe(), 1)
            .permitting(engine.process_permissions());
        let processes = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1000);
        let scan = documents::scan(documents::invoice("C-4711"), 150.0);
        let document = processes.open_document(scan.into(), false).await.unwrap();
        let text = document.read_page(0).await.unwrap().page.text();
        assert!(text.contains("4711"), "`{program}`: {text}");
    }
}

/// A page process that reports confined calls but unconfined files, as on a kernel without
/// Landlock, and then stays silent.
fn unconfined_program(folder: &std::path::Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let head = br#"{"confinement":{"files":false,"calls":true}}"#;
    let lengths = [u32::try_from(head.len()).unwrap().to_le_bytes().as_slice(), &[0; 8]].concat();
    std::fs::write(folder.join("ready"), [lengths.as_slice(), head].concat()).unwrap();
    let program = folder.join("page-process");
    std::fs::write(&program, "#!/bin/sh\ncat \"${0%/*}/ready\"\nexec cat > /dev/null\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_not_opened_where_confinement_is_required_and_only_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let program = ProcessProgram::Binary(unconfined_program(folder.path()));
    let pool = |confine| {
        let cpu = CpuConfig { confine, ..Default::default() };
        let (limits, ocr) = (LimitsConfig::default(), OcrConfig::default());
        let setup = ProcessSetup::new(&cpu, &limits, &ocr, recipe(), 1);
        ProcessPool::new(program.clone(), setup, 1000)
    };
    for alone in [false, true] {
        let refused = read(&pool(ConfinementMode::Required), "pid", alone).await;
        assert!(format!("{:?}", refused.as_ref().err()).contains("no Landlock"), "{refused:?}");
        assert_eq!(told(refused), Err(Err(Fault::Misconfigured)));
    }
    let status = pool(ConfinementMode::Attempted).start_shared().await.unwrap();
    assert!(!status.is_complete(), "it is tried, and what is missing is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_page_processes_cannot_be_confined_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let program = unconfined_program(folder.path());
    let world = World::new().await;
    let settings = [("CPU__PROGRAM", program.to_str().unwrap())];
    let mut worker = Process::worker(&world, &settings);
    assert!(!worker.ended(SOON).await.success());
    assert!(worker.log().contains("no Landlock"), "{}", worker.log());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_whether_its_page_processes_are_confined() {
    let world = World::new().await;
    for (confine, expected) in [("required", "1"), ("off", "0")] {
        let worker = Process::worker(&world, &[("CPU__CONFINE", confine)]);
        until(SOON, || async { worker.log().contains("health pages on http://") }).await;
        let url = format!("http://{}/metrics", worker.pages());
        let text = reqwest::get(url).await.unwrap().text().await.unwrap();
        let line = format!("docmill_page_processes_confined {expected}\n");
        assert!(text.contains(&line), "{confine}: {text}");
    }
}

/// A command as a user without any rights, if this is root: root may look everywhere.
fn as_nobody(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", program]);
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_of_ours_is_closed_to_others_of_its_user() {
    let program = docmill();
    // A user without rights has to reach it.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let copy = folder.path().join("docmill");
    if std::fs::hard_link(&program, &copy).is_err() {
        std::fs::copy(&program, &copy).unwrap();
    }
    let mut ours = as_nobody(copy.to_str().unwrap())
        .arg("page-process")
        .env("DOCMILL__DATABASE__URL", "postgres://u:SECRETMARK@h/d")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let environment = format!("/proc/{}/environ", ours.id());
    let deadline = Instant::now() + SOON;
    let told = loop {
        let read = as_nobody("cat").arg(&environment).output().unwrap();
        if !read.status.success() {
            break String::from_utf8_lossy(&read.stderr).into_owned();
        }
        // Before it has begun it is what started it.
        assert!(Instant::now() < deadline, "others can read its environment");
    };
    assert!(ours.try_wait().unwrap().is_none(), "it has to live for this to say anything");
    ours.kill().unwrap();
    ours.wait().unwrap();
    assert!(told.contains("Permission denied"), "{told}");
}
