//! Real worker processes that die or freeze at each seam in turn: after any commit, deletion, write
//! or renewal, one document has one end, one result and no more paid calls than were interrupted,
//! and no message or claim is left.
//!
//! The seams are those of `docmill_pipeline::failpoint`. A frozen worker stays frozen past its
//! lease, while another takes over, and then continues beside it. A bucket's lock lasts at least a
//! minute, so `scripts/chaos.sh` freezes workers there.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use docmill_core::model::IngestionId;
use docmill_testkit::openai::{Answer, Script};
use docmill_testkit::sqs::Action;
use futures::StreamExt as _;
use serde_json::Value;

use crate::support::documents;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, until};

/// Worlds at the same time: most of a case is waiting.
const AT_ONCE: usize = 4;
const SIGKILL: i32 = 9;

/// A worker's action at a failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Dies,
    StandsStill,
}

impl Deed {
    fn plan(self, point: &str) -> String {
        let (place, pass) = point.split_once('@').unwrap_or((point, "1"));
        format!("{place}={}@{pass}", if self == Self::Dies { "kill" } else { "stop" })
    }
}

/// The model's behaviour that reaches the seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It answers at once.
    Straight,
    /// It takes longer than a heartbeat.
    Renewed,
    /// It has no capacity at first, so that the claim is given back and the message hidden.
    PutOff,
    /// The same, of a message that was received so often that another takes its place.
    Replaced,
}

/// A seam, the way to it, and the maximum calls for one document: two where the answer had come and
/// was not stored yet.
type SeamCase = (&'static str, Way, usize);

const BEFORE_THE_END: [SeamCase; 9] = [
    ("claim.before", Way::Straight, 1),
    ("claim.after", Way::Straight, 1),
    ("artefact.before", Way::Straight, 1),
    ("artefact.after", Way::Straight, 1),
    ("reference.before", Way::Straight, 1),
    ("reference.after", Way::Straight, 1),
    ("reply.before", Way::Straight, 2),
    ("artefact.after@2", Way::Straight, 1),
    ("reply.after", Way::Straight, 1),
];
/// The seams at which freezing differs from dying: another worker exists when it continues.
const STILL_BEFORE_THE_END: [SeamCase; 5] = [
    ("claim.after", Way::Straight, 1),
    ("artefact.before", Way::Straight, 1),
    ("reference.after", Way::Straight, 1),
    ("reply.before", Way::Straight, 2),
    ("reply.after", Way::Straight, 1),
];
const AT_THE_END: [SeamCase; 4] = [
    ("result.before", Way::Straight, 1),
    ("result.after", Way::Straight, 1),
    ("delete.before", Way::Straight, 1),
    ("delete.after", Way::Straight, 1),
];
const RENEWALS: [SeamCase; 4] = [
    // The call is cut short.
    ("lease.before", Way::Renewed, 2),
    ("lease.after", Way::Renewed, 2),
    ("visibility.before", Way::Renewed, 2),
    ("visibility.after", Way::Renewed, 2),
];
/// The call that was refused is one of them.
const RETURNS: [SeamCase; 6] = [
    ("release.before", Way::PutOff, 2),
    ("release.after", Way::PutOff, 2),
    ("hide.before", Way::PutOff, 2),
    ("hide.after", Way::PutOff, 2),
    ("replace.before", Way::Replaced, 2),
    ("replace.after", Way::Replaced, 2),
];

const STILL_RETURNS: [SeamCase; 3] = [
    ("release.after", Way::PutOff, 2),
    ("hide.before", Way::PutOff, 2),
    ("replace.after", Way::Replaced, 2),
];

async fn open_world(way: Way) -> World {
    let no_capacity = || Script::of([Answer::throttled("120"), Answer::Read]);
    match way {
        Way::Straight => World::with_model(Script::always(Answer::Read)).await,
        Way::Renewed => World::with_model(Script::always(Answer::late(SLOW))).await,
        Way::PutOff => World::with_model(no_capacity()).await,
        Way::Replaced => World::with_redrive_and_model(3, no_capacity()).await,
    }
}

/// Longer than a heartbeat of [`SHORT`].
const SLOW: Duration = Duration::from_millis(2500);
/// For cases in which leases expire in real time, as seen by the frozen process.
const SHORT: [(&str, &str); 2] = [("CLAIM__LEASE", "5s"), ("QUEUE__VISIBILITY", "5s")];
const PAST_THE_LEASE: Duration = Duration::from_millis(5500);

/// How time goes by in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// By itself.
    Real,
    /// In leaps, of Postgres and the queue.
    Leaping,
}

impl Clock {
    fn for_case(way: Way, deed: Deed) -> Self {
        let has_live_claim = deed == Deed::StandsStill || way == Way::Renewed;
        match way {
            Way::Straight | Way::Renewed if has_live_claim => Self::Real,
            _ => Self::Leaping,
        }
    }

    async fn wait_until<F: Future<Output = bool>>(self, world: &World, condition: impl Fn() -> F) {
        match self {
            Self::Real => until(SOON, condition).await,
            Self::Leaping => world.pass_until(condition).await,
        }
    }

    /// Waits until claims of dead holders have expired.
    async fn outlast_lease(self, world: &World) {
        match self {
            Self::Real => tokio::time::sleep(PAST_THE_LEASE).await,
            Self::Leaping => world.pass(Duration::from_secs(700)).await,
        }
    }
}

/// Whether the process is frozen.
fn is_stopped(process: &Process) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

pub(crate) fn send_signal(process: &Process, signal: &str) {
    let pid = process.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// A worker whose failpoint acts; back when it has.
pub(crate) async fn worker_that_fails(
    world: &World,
    settings: &[(&str, &str)],
    plan: &str,
) -> Process {
    let mut command = docmill(world, &["worker"], settings);
    command.env("DOCMILL_FAILPOINTS", plan);
    let mut worker = Process::spawn(command, "warn,docmill=info", world.logs.path());
    if plan.contains("=stop") {
        until(SOON, || async { is_stopped(&worker) }).await;
    } else {
        assert_eq!(worker.ended(SOON).await.signal(), Some(SIGKILL), "{plan}");
    }
    worker
}

async fn number(world: &World, sql: &str) -> i64 {
    world.scalar(sql).await.parse().unwrap()
}

/// Time leaps while processes start. A message that replaced a worn one may reach its receive limit
/// unseen; maintenance sends it again.
fn settings_of_second<'a>(way: Way, own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let tending = [("JANITOR__ENABLED", "true"), ("JANITOR__INTERVAL", "1s")];
    own.iter().copied().chain(tending.into_iter().filter(|_| way == Way::Replaced)).collect()
}

/// One document over a queue, and a worker that fails at the seam.
async fn run_over_queue((point, way, most_calls): SeamCase, deed: Deed) {
    let case = format!("{point}, {deed:?}");
    let world = open_world(way).await;
    let clock = Clock::for_case(way, deed);
    let settings = if clock == Clock::Real { &SHORT[..] } else { &[] };
    let id = world.submit("a.pdf", documents::invoice("F-1")).await;
    let mut first = worker_that_fails(&world, settings, &deed.plan(point)).await;
    // A poll of the dead would be handed the message all the same.
    until(SOON, || async { world.sqs.counts().open(Action::ReceiveMessage) == 0 }).await;
    clock.outlast_lease(&world).await;
    let mut second = Process::worker(&world, &settings_of_second(way, settings));
    if deed == Deed::StandsStill {
        let taken = "SELECT count(*)::text FROM docmill.ingestion
                     WHERE status <> 'in-progress' OR claims > 1 OR claim_token IS NULL";
        until(SOON, || async { number(&world, taken).await == 1 }).await;
        send_signal(&first, "-CONT");
    }
    let ended = async || world.column(id, "status").await.as_deref() != Some("in-progress");
    clock.wait_until(&world, &ended).await;
    clock.wait_until(&world, || async { is_empty(&world).await }).await;
    // Before that a signal ends it at once.
    until(SOON, || async { second.log().contains("worker ready") }).await;
    for worker in [&mut first, &mut second] {
        if worker.is_running() {
            worker.terminate();
            assert!(worker.ended(SOON).await.success(), "{case}: a drain");
        }
    }
    assert_one_end(&world, id, &case).await;
    // A worn message that its worker left behind may reach its receive limit unseen.
    let dead = world.queue.receive_dead(10, Duration::ZERO).await.unwrap();
    assert!(dead.is_empty() || way == Way::Replaced, "{case}: a dead letter");
    let calls = world.llm.as_ref().unwrap().calls().len();
    assert!((1..=most_calls).contains(&calls), "{case}: {calls} calls, {most_calls} at most");
}

/// Whether no message is there, nor among those that were given up.
async fn is_empty(world: &World) -> bool {
    let depth = world.queue.depth().await.unwrap();
    depth.ready + depth.in_flight + depth.delayed == 0
}

async fn assert_one_end(world: &World, id: IngestionId, case: &str) {
    assert_eq!(world.column(id, "status").await.unwrap(), "completed", "{case}");
    assert_eq!(world.column(id, "lease_expires_at").await, None, "{case}: a lease is left");
    assert_eq!(world.column(id, "claim_token").await, None, "{case}: a claim is left");
    let attempts = world.attempts(id).await;
    let (last, earlier) = attempts.split_last().unwrap();
    // Transient: a frozen worker wrote an artefact just after its takeover.
    let ends = ["crashed", "throttled", "transient"];
    let is_cut_short = |end: &String| ends.contains(&end.as_str());
    assert!(last == "completed" && earlier.iter().all(is_cut_short), "{case}: {attempts:?}");
    let claims = world.column(id, "claims").await.unwrap();
    assert_eq!(claims, attempts.len().to_string(), "{case}: {attempts:?}");
    let ends = "SELECT count(*)::text FROM docmill.attempt WHERE final";
    assert_eq!(number(world, ends).await, 1, "{case}: one end");
    let results = "SELECT count(*)::text FROM docmill.document JOIN docmill.ingestion i
                   ON i.document_id = document.id
                   WHERE document.structured_data = i.structured_data";
    assert_eq!(number(world, results).await, 1, "{case}: one result");
}

async fn run_all(cases: &[SeamCase], deed: Deed) {
    let running = cases.iter().map(|case| run_over_queue(*case, deed));
    futures::stream::iter(running).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_at_any_seam_before_the_end_leaves_one_end_and_pays_no_call_twice() {
    run_all(&BEFORE_THE_END, Deed::Dies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_around_the_commit_and_the_deletion_leaves_one_end_and_no_message() {
    run_all(&AT_THE_END, Deed::Dies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_around_a_renewal_is_taken_over_from() {
    run_all(&RENEWALS, Deed::Dies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_while_it_gives_a_document_back_loses_neither_it_nor_its_message() {
    run_all(&RETURNS, Deed::Dies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_at_a_seam_before_the_end_changes_nothing_afterwards() {
    run_all(&STILL_BEFORE_THE_END, Deed::StandsStill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_around_the_commit_and_the_deletion_ends_nothing_twice() {
    run_all(&AT_THE_END, Deed::StandsStill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_around_a_renewal_finds_its_claim_lost() {
    run_all(&RENEWALS, Deed::StandsStill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_frozen_during_a_release_does_not_take_the_document_from_its_new_holder() {
    run_all(&STILL_RETURNS, Deed::StandsStill).await;
}

/// The program on a bucket or workspace in a folder, without anything of this environment.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars() {
        if name.starts_with("DOCMILL") || name.starts_with("BLOBFORGE") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .arg("--json")
        .env("DOCMILL__BUCKET__PATH", folder.join("bucket"))
        // One that comes back frees at once what it held; another waits for the lock's age.
        .env("BLOBFORGE_WORKER_ID", "desk")
        .stdin(Stdio::null());
    command
}

fn ask(folder: &Path, arguments: &[&str]) -> Value {
    let output = program(folder, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
}

/// A folder with one paper in it.
fn papers() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("papers")).unwrap();
    std::fs::write(folder.path().join("papers/a.pdf"), documents::invoice("F-2")).unwrap();
    folder
}

fn die_at(folder: &Path, arguments: &[&str], point: &str) {
    let mut command = program(folder, arguments);
    command.env("DOCMILL_FAILPOINTS", Deed::Dies.plan(point));
    let died = command.output().unwrap();
    assert_eq!(died.status.signal(), Some(SIGKILL), "{point}: {died:?}");
}

/// Files below a folder, however deep, by their paths.
fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

const OBJECT_SEAMS: [&str; 8] = [
    "claim.after",
    "artefact.before",
    "artefact.after",
    "result.before",
    "result.after",
    "delete.before",
    "delete.after",
    "unlock.before",
];

fn die_over_bucket(point: &str) {
    let dir = papers();
    let folder = dir.path();
    let papers = folder.join("papers").display().to_string();
    ask(folder, &["bucket", "ingest", &papers]);
    let work = ["bucket", "work", "--once", "--jobs", "1"];
    die_at(folder, &work, point);
    ask(folder, &work);
    let standing = ask(folder, &["bucket", "status"]);
    let todo: u64 = standing["todo"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let counts = ["done", "processing", "failed", "dead"].map(|name| standing[name].as_u64());
    assert_eq!((counts, todo), ([Some(1), Some(0), Some(0), Some(0)], 0), "{point}: {standing}");
    let left = files_below(&folder.join("bucket"));
    let out = left.iter().filter(|path| path.contains("/out/") && path.ends_with(".zip")).count();
    assert_eq!(out, 1, "{point}: {left:?}");
    assert!(!left.iter().any(|path| path.contains("/processing/")), "{point}: {left:?}");
}

#[expect(clippy::disallowed_methods, reason = "a thread of a seam, where nothing else runs")]
fn die_over_workspace(point: &str) {
    let dir = papers();
    let folder = dir.path();
    let place = folder.join("ws").display().to_string();
    let papers = folder.join("papers").display().to_string();
    ask(folder, &["workspace", "populate", &place, &papers]);
    let work = ["workspace", "work", &place, "--timeout", "6s"];
    die_at(folder, &work, point);
    ask(folder, &work);
    let standing = ask(folder, &["workspace", "stats", &place]);
    assert_eq!(standing["groups_done"], 1, "{point}: {standing}");
    let results = files_below(&folder.join("ws/results"));
    assert_eq!(results.len(), 1, "{point}: {results:?}");
    let lines = std::fs::read_to_string(&results[0]).unwrap();
    assert_eq!(lines.lines().count(), 1, "{point}: {lines}");
    // Those of a worker that died past its result are abandoned by and by, and go with the next run.
    let began = Instant::now();
    while let Some(lock) = files_below(&folder.join("ws/worker_locks")).pop() {
        assert!(began.elapsed() < SOON, "{point}: {lock} is left");
        std::thread::sleep(Duration::from_millis(500));
        ask(folder, &work);
    }
}

/// All at the same time: most of it is waiting for locks to be abandoned.
fn die_everywhere(die: fn(&str)) {
    std::thread::scope(|scope| {
        for point in OBJECT_SEAMS {
            scope.spawn(move || die(point));
        }
    });
}

#[test]
fn a_worker_of_a_bucket_killed_at_any_seam_leaves_one_result_and_no_mark() {
    die_everywhere(die_over_bucket);
}

#[test]
fn a_worker_of_a_workspace_killed_at_any_seam_leaves_one_result_and_no_lock() {
    die_everywhere(die_over_workspace);
}

#[test]
fn a_plan_that_makes_no_sense_keeps_a_worker_from_starting() {
    let dir = papers();
    let mut command = program(dir.path(), &["bucket", "work", "--once"]);
    let refused = command.env("DOCMILL_FAILPOINTS", "results.after=kill").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("results.after=kill"), "{said}");
}

/// `scripts/image.sh` looks into the program that is shipped; this holds what it is built from.
#[test]
fn no_profile_of_a_release_has_debug_assertions_and_with_them_failpoints() {
    let manifest: toml::Table = std::fs::read_to_string("Cargo.toml").unwrap().parse().unwrap();
    for profile in ["release", "image", "bench"] {
        let Some(settings) = manifest["profile"].get(profile) else { continue };
        assert_eq!(settings.get("debug-assertions"), None, "{profile}");
        let based_on = settings.get("inherits").and_then(toml::Value::as_str);
        assert!(based_on.is_none_or(|base| base == "release"), "{profile}: {based_on:?}");
    }
    let optimised = std::fs::read_to_string("scripts/optimised.toml").unwrap();
    assert!(!optimised.contains("debug-assertions"));
    let module = std::fs::read_to_string("crates/pipeline/src/failpoint.rs").unwrap();
    let (shipped, _) = module.split_once("#[cfg(debug_assertions)]").unwrap();
    let code = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.collect();
    assert!(!code.contains("rustix") && !code.contains("std::env"), "{code}");
}
