//! The overhead of a job: jobs per second, CPU time of all processes, SQS requests. Figures only,
//! no target.
//!
//! `orchestration [VARIANT=JOBS]...` runs the named variants in turn; `--json` prints each as one
//! JSON line. For growth: `--rows=N` fills the tables with N ended ingestions first, `--behind=N`
//! leaves N more jobs in the queue behind the measured ones (of `empty`), `--slots=N` sets the
//! worker's slots, `--looks=0` switches second looks at drawn pages off (`ocr.second_looks`).
//!
//! * `empty`: work that does nothing, with every statement, heartbeat and metric of the worker.
//! * `smallest`: a few bytes of no known format, which are claimed, fetched, refused and recorded.
//! * `whole`: a one-page PDF with a text layer and a model that answers at once, every step and
//!   artefact included.
//! * `waiting`: as many slots as jobs, all waiting for the model: the cost of a minute of that,
//!   memory, and the smallest remaining lease.
//!
//! The worker is a separate process with default settings. SQS is the stand-in, in the first
//! process. Postgres is the one of `DOCMILL_TEST_DATABASE_URL`, which `scripts/orchestration.sh`
//! starts with durability; files are in memory. All share the machine, so jobs per second is a
//! lower bound. CPU time is read from `/proc`, so on Linux only.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[path = "shared/answering.rs"]
mod answering;
#[path = "orchestration/costs.rs"]
mod costs;
#[path = "orchestration/growth.rs"]
mod growth;
#[path = "orchestration/worker_side.rs"]
mod worker_side;
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
use std::process::Stdio;
use std::time::{Duration, Instant};

use docmill_queue::OutgoingMessage;
use docmill_testkit::sqs::Counts;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use costs::CpuSeconds;
use support::documents;
use support::world::World;

/// The default variants.
const USUAL: [(Variant, usize); 3] =
    [(Variant::Empty, 20_000), (Variant::Smallest, 4_000), (Variant::Whole, 1_000)];
/// Jobs before the clock starts: connections are open, code is in memory.
const WARM: usize = 64;
/// Delay of the measured messages, by the stand-in's clock.
const DELAY: Duration = Duration::from_secs(600);
const RUN_TIMEOUT: Duration = Duration::from_secs(600);
/// How long waiting jobs are measured.
const WATCHED: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Empty,
    Smallest,
    Whole,
    Waiting,
}

impl Variant {
    const ALL: [Self; 4] = [Self::Empty, Self::Smallest, Self::Whole, Self::Waiting];

    fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Smallest => "smallest",
            Self::Whole => "whole",
            Self::Waiting => "waiting",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// Slots of its worker; `None`: the default.
    fn slots(self, jobs: usize) -> Option<usize> {
        (self == Self::Waiting).then_some(jobs)
    }

    /// Jobs before the clock starts.
    fn warm(self) -> usize {
        if self == Self::Waiting { 0 } else { WARM }
    }
}

/// How large everything around the measured jobs is.
#[derive(Debug, Default, Clone, Copy)]
struct Surroundings {
    /// Ended ingestions in the tables.
    rows: usize,
    /// Messages behind those of the measured jobs.
    behind: usize,
    /// Slots of the worker; `None`: as the variant has it.
    slots: Option<usize>,
    /// Percentage of pages with a second look at their drawing; `None`: the default.
    looks: Option<usize>,
}

impl Surroundings {
    fn from_options(options: &[String]) -> Self {
        let mut around = Self::default();
        for option in options.iter().filter(|option| *option != "--json") {
            let (name, number) = option.split_once('=').unwrap();
            let number = number.parse().unwrap();
            match name {
                "--rows" => around.rows = number,
                "--behind" => around.behind = number,
                "--slots" => around.slots = Some(number),
                "--looks" => around.looks = Some(number),
                _ => panic!("{option}: --json, --rows=N, --behind=N, --slots=N, --looks=N"),
            }
        }
        around
    }
}

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (options, mut words): (Vec<_>, Vec<_>) =
        arguments.partition(|argument| argument.starts_with("--"));
    if words.first().is_some_and(|first| first == "worker") {
        words.remove(0);
        return worker_side::run(words).await;
    }
    let mut wanted: Vec<(Variant, usize)> = words.iter().map(|word| parse_variant(word)).collect();
    if wanted.is_empty() {
        wanted.extend(USUAL);
    }
    let is_json = options.contains(&"--json".to_owned());
    let around = Surroundings::from_options(&options);
    for (variant, jobs) in wanted {
        assert!(around.behind == 0 || variant == Variant::Empty, "--behind is of `empty`");
        let world = World::new().await;
        if around.rows > 0 {
            growth::fill_tables(&world, around.rows).await;
        }
        let measured = match variant {
            Variant::Waiting => Box::pin(watch_waiting(&world, jobs, around)).await,
            _ => Box::pin(run(&world, variant, jobs, around)).await,
        };
        verify(&world, variant, jobs, around).await;
        if is_json { println!("{measured}") } else { print_measured(&measured) }
    }
}

fn parse_variant(word: &str) -> (Variant, usize) {
    let (name, jobs) = word.split_once('=').unwrap();
    (Variant::from_name(name).unwrap(), jobs.parse().unwrap())
}

/// Works through many jobs; what that took.
async fn run(
    world: &World,
    variant: Variant,
    jobs: usize,
    around: Surroundings,
) -> serde_json::Value {
    let mut process = Process::start(world, variant, jobs, around);
    submit(world, variant, variant.warm(), Duration::ZERO).await;
    process.expect("ready").await;
    process.say("go").await;
    until_done(world).await;

    // The worker waits in a long poll meanwhile; all messages become visible at once.
    submit(world, variant, jobs + around.behind, DELAY).await;
    let postmaster = postmaster(world).await;
    let (cpu, requests) = (process.cpu(postmaster), world.sqs.counts());
    let is_counting = growth::begin_counting(world).await;
    let (statements, started) = (statements_so_far(world).await, Instant::now());
    world.sqs.advance(DELAY);
    let (jobs, own_statements) = if around.behind == 0 {
        (jobs, until_recorded(world).await)
    } else {
        until_so_many_ended(world, variant.warm() + jobs).await
    };
    let took = started.elapsed();
    let costs = if is_counting {
        growth::statement_costs(world, count(jobs)).await
    } else {
        serde_json::Value::Null
    };
    if around.behind == 0 {
        until_gone(world).await;
    }
    let spent = process.cpu(postmaster).per_job(&cpu, count(jobs));
    let statements = statements_so_far(world).await - statements - own_statements;
    let requests = requests_per_job(&requests, &world.sqs.counts(), jobs);
    process.end().await;
    let mut measured = json!({
        "variant": variant.name(),
        "jobs": jobs,
        "jobs_per_second": (count(jobs) / took.as_secs_f64()).round(),
        "cpu_us_per_job": json!({
            "worker": spent.worker.round(), "page processes": spent.pages.round(),
            "postgres": spent.postgres.round(), "stand-in for SQS": spent.queue.round(),
        }),
        "statements_per_job": (statements / count(jobs) * 100.0).round() / 100.0,
        "sqs_requests_per_job": requests,
    });
    if let (Some(measured), serde_json::Value::Object(costs)) = (measured.as_object_mut(), costs) {
        measured.extend(costs);
    }
    measured
}

/// Has all jobs wait for the model, and looks on for a minute.
async fn watch_waiting(world: &World, jobs: usize, around: Surroundings) -> serde_json::Value {
    let mut process = Process::start(world, Variant::Waiting, jobs, around);
    submit(world, Variant::Waiting, jobs, Duration::ZERO).await;
    process.expect("ready").await;
    process.say("go").await;
    process.expect("waiting").await;
    let postmaster = postmaster(world).await;
    let (cpu, started) = (process.cpu(postmaster), Instant::now());
    let (mut most, mut least) = (costs::ResidentBytes::default(), f64::INFINITY);
    while started.elapsed() < WATCHED {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let resident = costs::ResidentBytes::measure(process.id());
        most = if resident.all > most.all { resident } else { most };
        let left = "SELECT min(extract(epoch FROM lease_expires_at - docmill.docmill_now()))::text
            FROM docmill.ingestion WHERE status = 'in-progress'";
        least = least.min(world.scalar(left).await.parse().unwrap());
    }
    // Percent of a core.
    let seconds = process.cpu(postmaster).worker - cpu.worker;
    let worker = seconds * 100.0 / started.elapsed().as_secs_f64();
    process.say("answer").await;
    until_done(world).await;
    process.end().await;
    json!({
        "variant": "waiting",
        "jobs": jobs,
        "resident_mb": most.all >> 20,
        "of_program_mb": most.of_program >> 20,
        "percent_of_a_core": (worker * 10.0).round() / 10.0,
        "least_lease_left_s": least.round(),
    })
}

fn print_measured(measured: &serde_json::Value) {
    let build = if cfg!(debug_assertions) { " (with debug assertions)" } else { "" };
    let Some(measured) = measured.as_object() else { return };
    for (name, value) in measured {
        match value.as_object() {
            None if name == "variant" => println!("{}{build}", value.as_str().unwrap_or_default()),
            None => println!("  {name}: {value}"),
            Some(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|(part, value)| format!("{part} {value}")).collect();
                println!("  {name}: {}", parts.join(", "));
            }
        }
    }
}

fn requests_per_job(before: &Counts, after: &Counts, jobs: usize) -> serde_json::Value {
    let before: BTreeMap<_, _> = before.by_name().collect();
    let (mut all, mut each) = (0.0, serde_json::Map::new());
    for (name, requests) in after.by_name() {
        // The producer's, not the worker's.
        if name.starts_with("SendMessage") {
            continue;
        }
        let made = requests - before.get(name).copied().unwrap_or_default();
        if made > 0 {
            let share = f64::from(u32::try_from(made).unwrap()) / count(jobs);
            all += share;
            each.insert(name.to_owned(), rounded(share));
        }
    }
    each.insert("all".to_owned(), rounded(all));
    each.into()
}

fn rounded(share: f64) -> serde_json::Value {
    json!((share * 1000.0).round() / 1000.0)
}

fn count(jobs: usize) -> f64 {
    f64::from(u32::try_from(jobs).unwrap())
}

/// The process of Postgres that all others of it are children of.
async fn postmaster(world: &World) -> u32 {
    let session: u32 = world.scalar("SELECT pg_backend_pid()::text").await.parse().unwrap();
    costs::parent_of(session)
}

/// The figures would be of something else if a job had ended in another way.
async fn verify(world: &World, variant: Variant, jobs: usize, around: Surroundings) {
    let grown = growth::GROWN;
    if around.behind > 0 {
        let others = "SELECT count(*)::text FROM docmill.ingestion
            WHERE completed_at IS NOT NULL AND (status <> 'completed' OR attempt_count <> 1)";
        assert_eq!(world.scalar(others).await, "0");
        return;
    }
    let ends = &format!(
        "SELECT string_agg(DISTINCT status || ' ' || coalesce(reason, ''), ', ') || ' '
        || count(*) || ' ' || sum(attempt_count) FROM docmill.ingestion
        WHERE kind IS DISTINCT FROM '{grown}'"
    );
    let end = match variant {
        Variant::Empty | Variant::Whole | Variant::Waiting => "completed ",
        Variant::Smallest => "failed unsupported_type",
    };
    let all = jobs + variant.warm();
    assert_eq!(world.scalar(ends).await, format!("{end} {all} {all}"));
}

/// Makes rows and documents, and sends their messages.
async fn submit(world: &World, variant: Variant, jobs: usize, delay: Duration) {
    let mut messages = Vec::new();
    for number in 0..jobs {
        let id = match variant {
            Variant::Empty => break,
            // Numbers of another length are other documents, and few have a day in common: none is
            // taken for a duplicate.
            Variant::Whole | Variant::Waiting => {
                let (name, day) = (format!("N-{jobs}-{number:06}"), day_of(number));
                let document = documents::invoice_of_days(&name, [&day, &day], &[]);
                world.insert("document", document).await
            }
            Variant::Smallest => {
                world.insert("document", b"\0neither PDF nor picture".to_vec()).await
            }
        };
        messages.push(OutgoingMessage { delay, ..OutgoingMessage::from_body(id.to_string()) });
    }
    if variant == Variant::Empty {
        for id in insert_rows(world, jobs).await {
            messages.push(OutgoingMessage { delay, ..OutgoingMessage::from_body(id) });
        }
    }
    for answer in world.queue.send(&messages).await {
        answer.unwrap();
    }
}

/// One of 2,016 days, in turn.
fn day_of(number: usize) -> String {
    let (year, month, day) = (2020 + number / 336 % 6, 1 + number / 28 % 12, 1 + number % 28);
    format!("{year}-{month:02}-{day:02}")
}

/// Rows without documents; the ids of the ingestions.
async fn insert_rows(world: &World, jobs: usize) -> Vec<String> {
    let sql = format!(
        "WITH made AS (
            INSERT INTO docmill.document (id, file_path)
            SELECT gen_random_uuid(), 'documents/' || n FROM generate_series(1, {jobs}) n
            RETURNING id
        ), waiting AS (
            INSERT INTO docmill.ingestion (id, document_id)
            SELECT gen_random_uuid(), id FROM made RETURNING id
        )
        SELECT string_agg(id::text, ' ') FROM waiting"
    );
    world.scalar(&sql).await.split_whitespace().map(str::to_owned).collect()
}

/// Statements that the database has committed so far: every one of the worker's is a transaction.
async fn statements_so_far(world: &World) -> f64 {
    // Sessions report statistics after a second of idling.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let sql = "SELECT xact_commit::text FROM pg_stat_database WHERE datname = current_database()";
    world.scalar(sql).await.parse().unwrap()
}

/// Returns how often it has asked the database.
async fn until_recorded(world: &World) -> f64 {
    let open = "SELECT EXISTS (SELECT 1 FROM docmill.ingestion WHERE status = 'in-progress')::text";
    let (deadline, mut asked) = (Instant::now() + RUN_TIMEOUT, 1.0);
    while world.scalar(open).await != "false" {
        assert!(Instant::now() < deadline, "no end within {RUN_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        asked += 1.0;
    }
    asked
}

/// Waits until `wanted` ingestions without an earlier row have ended. Returns how many have,
/// without the warm-up ones, and the number of queries made.
async fn until_so_many_ended(world: &World, wanted: usize) -> (usize, f64) {
    let sql = format!(
        "SELECT count(*)::text FROM docmill.ingestion
        WHERE completed_at IS NOT NULL AND kind IS DISTINCT FROM '{}'",
        growth::GROWN
    );
    let (deadline, mut asked) = (Instant::now() + RUN_TIMEOUT, 1.0);
    loop {
        let ended: usize = world.scalar(&sql).await.parse().unwrap();
        if ended >= wanted {
            return (ended - WARM, asked);
        }
        assert!(Instant::now() < deadline, "no end within {RUN_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        asked += 1.0;
    }
}

async fn until_done(world: &World) {
    until_recorded(world).await;
    until_gone(world).await;
}

/// Waits until the queue is empty; asks the stand-in directly, which costs no request.
async fn until_gone(world: &World) {
    let deadline = Instant::now() + RUN_TIMEOUT;
    let left = || {
        let depth = world.sqs.depth("documents");
        depth.ready + depth.in_flight + depth.delayed
    };
    while left() > 0 {
        assert!(Instant::now() < deadline, "messages are left after {RUN_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many arenas glibc's allocator may have.
const ARENAS: &str = "MALLOC_ARENA_MAX";

/// The image's setting of memory arenas.
fn arenas_of_the_image() -> &'static str {
    let image = include_str!("../Dockerfile").lines();
    let value =
        |line: &'static str| line.strip_prefix("ENV ")?.strip_prefix(ARENAS)?.strip_prefix('=');
    image.filter_map(value).next_back().unwrap()
}

/// A worker that runs as a process of its own.
struct Process {
    child: Child,
    said: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Process {
    fn start(world: &World, variant: Variant, jobs: usize, around: Surroundings) -> Self {
        let [slots, looks] = [around.slots.or(variant.slots(jobs)), around.looks]
            .map(|number| number.map(|number| number.to_string()).unwrap_or_default());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("worker")
            .args([&world.database.url(), &world.queue_url, &world.sqs.endpoint()])
            .arg(&world.config.store.path)
            .args([variant.name(), &jobs.to_string(), &slots, &looks])
            .env(ARENAS, arenas_of_the_image())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    async fn expect(&mut self, word: &str) {
        let line = tokio::time::timeout(RUN_TIMEOUT, self.said.next_line()).await.unwrap();
        assert_eq!(line.unwrap().as_deref(), Some(word));
    }

    async fn say(&mut self, word: &str) {
        let line = format!("{word}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    fn cpu(&self, postmaster: u32) -> CpuSeconds {
        CpuSeconds::measure(self.id(), postmaster)
    }

    async fn end(mut self) {
        drop(self.child.stdin.take());
        let status = tokio::time::timeout(RUN_TIMEOUT, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "the worker ended with {status}");
    }
}
