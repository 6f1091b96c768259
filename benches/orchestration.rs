//! What a job costs when its work costs nothing: jobs a second, the worker's CPU time and its SQS
//! requests for each. No target, figures only.
//!
//! Two variants: `whole`, a one-page PDF with a text layer and a model that answers at once, every
//! step and artefact included; `smallest`, a few bytes of no known format, which are claimed,
//! fetched, refused and recorded. The worker is a process of its own with default settings. SQS is
//! the stand-in, in the first process; Postgres runs without durability; all share the machine, so
//! jobs a second is a floor. CPU time is read from `/proc`, so on Linux only, without Postgres's.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[path = "shared/answering.rs"]
mod answering;
#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/support"]
mod support {
    pub(crate) mod documents;
    pub(crate) mod page_processes;
    pub(crate) mod postgres;
    pub(crate) mod sqs;
    pub(crate) mod world;
}

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill::app::App;
use docmill::pipeline::{PipelineContext, PipelineServices};
use docmill::shutdown::Shutdown;
use docmill::worker::QueueWorker;
use docmill_core::config::{Config, LlmProvider, QueueBackend, StoreBackend};
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_llm::llm::chain::ModelChain;
use docmill_queue::queue::OutgoingMessage;
use docmill_storage::store::folder::FolderStore;
use docmill_testkit::sqs::Counts;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use answering::Answering;
use support::documents;
use support::world::{World, sqs_queue};

/// Jobs of a variant, unless the first argument says otherwise.
const JOBS: usize = 500;
/// Jobs before the clock starts: connections are open, code is in memory.
const WARM: usize = 64;
/// Of the measured messages, by the stand-in's clock.
const DELAY: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(300);
/// Ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux.
const TICKS: f64 = 100.0;

#[derive(Debug, Clone, Copy)]
enum Variant {
    Whole,
    Smallest,
}

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some("worker") {
        return worker(arguments.collect()).await;
    }
    let jobs = first.map_or(JOBS, |jobs| jobs.parse().unwrap());
    let build = if cfg!(debug_assertions) { "with debug assertions" } else { "release" };
    println!("{jobs} jobs each, {} slots, build {build}", Config::default().worker.slots);
    for variant in [Variant::Whole, Variant::Smallest] {
        Box::pin(run(variant, jobs)).await;
    }
}

async fn run(variant: Variant, jobs: usize) {
    let world = World::new().await;
    let mut process = Process::start(&world);
    submit(&world, variant, WARM, Duration::ZERO).await;
    process.expect("ready").await;
    process.say("go").await;
    until_done(&world).await;

    // The worker waits in a long poll meanwhile; all messages become visible at once.
    submit(&world, variant, jobs, DELAY).await;
    let (cpu, requests) = (process.cpu(), world.sqs.counts());
    let started = Instant::now();
    world.sqs.advance(DELAY);
    until_recorded(&world).await;
    let took = started.elapsed();
    until_done(&world).await;
    let spent = process.cpu().zip(cpu).map(|(after, before)| after - before);
    report(variant, jobs, took, spent);
    report_requests(&requests, &world.sqs.counts(), jobs);
    process.end().await;
    verify(&world, variant, jobs).await;
}

fn report(variant: Variant, jobs: usize, took: Duration, cpu: Option<f64>) {
    let jobs = count(jobs);
    let cpu = cpu.map_or("not known here".to_owned(), |seconds| {
        format!("{:.0} us of CPU a job in the worker", seconds * 1e6 / jobs)
    });
    let rate = jobs / took.as_secs_f64();
    println!("{variant:?}: {rate:.0} jobs/s ({:.2} s), {cpu}", took.as_secs_f64());
}

fn report_requests(before: &Counts, after: &Counts, jobs: usize) {
    let before: BTreeMap<_, _> = before.by_name().collect();
    let mut all = 0.0;
    let mut each = Vec::new();
    for (name, requests) in after.by_name() {
        // The producer's, not the worker's.
        if name.starts_with("SendMessage") {
            continue;
        }
        let made = requests - before.get(name).copied().unwrap_or_default();
        if made > 0 {
            let share = f64::from(u32::try_from(made).unwrap()) / count(jobs);
            all += share;
            each.push(format!("{name} {share:.3}"));
        }
    }
    println!("  {all:.3} SQS requests a job: {}", each.join(", "));
}

fn count(jobs: usize) -> f64 {
    f64::from(u32::try_from(jobs).unwrap())
}

/// The figures would be of something else if a job had ended in another way.
async fn verify(world: &World, variant: Variant, jobs: usize) {
    let ends = "SELECT string_agg(DISTINCT status || ' ' || coalesce(reason, ''), ', ') || ' '
        || count(*) || ' ' || sum(attempt_count) FROM docmill.ingestion";
    let end = match variant {
        Variant::Whole => "completed ",
        Variant::Smallest => "failed unsupported_type",
    };
    let all = jobs + WARM;
    assert_eq!(world.scalar(ends).await, format!("{end} {all} {all}"));
}

/// Makes rows and documents, and sends their messages.
async fn submit(world: &World, variant: Variant, jobs: usize, delay: Duration) {
    let mut messages = Vec::new();
    for number in 0..jobs {
        let bytes = match variant {
            // Numbers of another length are other documents: none is taken for a duplicate.
            Variant::Whole => documents::invoice(&format!("N-{jobs}-{number:06}")),
            Variant::Smallest => b"neither PDF nor picture".to_vec(),
        };
        let id = world.insert("document", bytes).await;
        messages.push(OutgoingMessage { delay, ..OutgoingMessage::from_body(id.to_string()) });
    }
    for answer in world.queue.send(&messages).await {
        answer.unwrap();
    }
}

async fn until_recorded(world: &World) {
    let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    let deadline = Instant::now() + PATIENCE;
    while world.scalar(open).await != "0" {
        assert!(Instant::now() < deadline, "no end within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Until the messages are gone as well; asks the stand-in, which costs no request.
async fn until_done(world: &World) {
    until_recorded(world).await;
    let deadline = Instant::now() + PATIENCE;
    let left = || {
        let depth = world.sqs.depth("documents");
        depth.ready + depth.in_flight + depth.delayed
    };
    while left() > 0 {
        assert!(Instant::now() < deadline, "messages are left after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A worker that runs as a process of its own.
struct Process {
    child: Child,
    said: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Process {
    fn start(world: &World) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("worker")
            .args([&world.database.url(), &world.queue_url, &world.sqs.endpoint()])
            .arg(&world.config.store.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    async fn expect(&mut self, word: &str) {
        let line = tokio::time::timeout(PATIENCE, self.said.next_line()).await.unwrap();
        assert_eq!(line.unwrap().as_deref(), Some(word));
    }

    async fn say(&mut self, word: &str) {
        let line = format!("{word}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    /// Seconds of CPU so far, user and system, all threads.
    fn cpu(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        // The name, in brackets, may hold spaces. Then: state is field 3, utime 14, stime 15.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / TICKS)
    }

    async fn end(mut self) {
        drop(self.child.stdin.take());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "the worker ended with {status}");
    }
}

/// The worker's side: works from the first line on standard input to its end.
async fn worker(arguments: Vec<String>) {
    let [database, queue, endpoint, folder] = <[String; 4]>::try_from(arguments).unwrap();
    let mut config = Config::default();
    config.database.url = database.into();
    config.queue.backend = QueueBackend::Sqs;
    config.queue.url = queue;
    config.queue.endpoint = endpoint;
    config.queue.region = "us-east-1".to_owned();
    config.store.backend = StoreBackend::Folder;
    config.store.path = folder.into();
    config.llm.provider = LlmProvider::None;
    // This very program would be started again as a page process, and it knows no such part.
    config.cpu.program = support::page_processes::docmill();

    let services = App::new(config.clone()).pipeline_services().await.unwrap();
    let models = ModelChain::from_single(Arc::new(Answering::new(|_| Duration::ZERO)), 8_192);
    let store = Arc::new(FolderStore::open(&config.store.path).await.unwrap());
    let ledger = Arc::new(PostgresLedger::new(Db::connect(&config.database).await.unwrap()));
    let pipeline = PipelineContext {
        documents: Arc::clone(&store) as _,
        artefacts: store,
        ledger: Arc::clone(&ledger) as _,
        services: Arc::new(PipelineServices { models, ..services }),
    };
    let queue = Arc::new(sqs_queue(&config).await);
    let worker =
        QueueWorker::new(pipeline, ledger, queue, Arc::new(config), "bench".to_owned()).await;

    let mut lines = standard_input();
    println!("ready");
    std::io::stdout().flush().unwrap();
    lines.recv().await;
    let stop = Shutdown::default();
    let work = tokio::spawn(worker.unwrap().run(stop.clone()));
    while lines.recv().await.is_some() {}
    stop.request();
    work.await.unwrap().unwrap();
}

/// Lines of standard input; the channel ends with it.
fn standard_input() -> mpsc::UnboundedReceiver<String> {
    let (lines, inbox) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            drop(lines.send(line));
        }
    });
    inbox
}
