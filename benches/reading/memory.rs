//! Memory of a worker and its children while it reads, one sample per second: the proportional set
//! size (`Pss`), so that pages shared between processes count once.

use std::time::{Duration, Instant};

use super::pictures;
use super::support::documents;
use super::support::process::Process;
use super::support::world::World;

/// Lines of the printed curve.
const LINES: usize = 24;
/// Growth attributed to caches and noise: this share, and this many MB.
const SLACK: (f64, f64) = (0.10, 48.0);
const RUN_TIMEOUT: Duration = Duration::from_secs(3600);

/// One sample of the run.
struct Sample {
    seconds: f64,
    done: usize,
    worker: f64,
    children: f64,
    processes: usize,
}

/// Mixed documents: mostly text, some scans and photos, some mislabelled.
pub(crate) async fn mixed(count: usize) {
    let world = World::new().await;
    for number in 0..count {
        let (name, bytes) = document(number);
        world.submit(name, bytes).await;
    }
    let samples = watch(
        &world,
        "SELECT count(*)::text FROM docmill.ingestion
        WHERE status <> 'in-progress'",
        count,
    )
    .await;
    let ends =
        "SELECT string_agg(line, ', ') FROM (SELECT coalesce(reason, status) || ' ' || count(*)
        AS line FROM docmill.ingestion GROUP BY coalesce(reason, status) ORDER BY 1) AS ends";
    println!("ends: {}", world.scalar(ends).await);
    println!(
        "restarts of the worker: 0 (it is one process), crashed attempts: {}",
        world.scalar("SELECT count(*)::text FROM docmill.attempt WHERE outcome = 'crashed'").await
    );
    verdict(&samples);
}

/// One document of `pages` scans.
pub(crate) async fn long(pages: u32) {
    let world = World::new().await;
    let id = world.submit("long.pdf", pictures::scans(pages, 100)).await;
    let kept = format!(
        "SELECT (CASE WHEN status = 'in-progress' THEN 0 ELSE 1 END)::text
        FROM docmill.ingestion WHERE id = '{id}'"
    );
    let samples = watch(&world, &kept, 1).await;
    println!("pages in the transcript: {}", world.column(id, "pages").await.unwrap_or_default());
    verdict(&samples);
}

/// Starts a worker and samples it until `done` reports `all`.
async fn watch(world: &World, done: &str, all: usize) -> Vec<Sample> {
    let settings = [("WORKER__SLOTS", "8"), ("LIMITS__PAGES", "1000"), ("LLM__PROVIDER", "none")];
    let worker = Process::worker_at("warn", world, &settings);
    let (started, mut samples) = (Instant::now(), Vec::new());
    loop {
        assert!(started.elapsed() < RUN_TIMEOUT, "no end within {RUN_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = world.scalar(done).await.parse().unwrap();
        let family = family(worker.id());
        let (own, children) = family.split_at(family.len().min(1));
        samples.push(Sample {
            seconds: started.elapsed().as_secs_f64(),
            done: now,
            worker: own.iter().map(|pid| megabytes(*pid)).sum(),
            children: children.iter().map(|pid| megabytes(*pid)).sum(),
            processes: family.len(),
        });
        if now >= all {
            return samples;
        }
    }
}

/// The curve, and whether its second half is higher than its first, the start left out.
fn verdict(samples: &[Sample]) {
    println!(
        "{:>8}{:>8}{:>12}{:>13}{:>9}{:>11}",
        "seconds", "done", "worker MB", "children MB", "sum MB", "processes"
    );
    let every = samples.len().div_ceil(LINES).max(1);
    let last = samples.len().saturating_sub(1);
    for (at, sample) in samples.iter().enumerate() {
        if at % every == 0 || at == last {
            let Sample { seconds, done, worker, children, processes } = sample;
            let sum = worker + children;
            println!(
                "{seconds:>8.0}{done:>8}{worker:>12.1}{children:>13.1}{sum:>9.1}{processes:>11}"
            );
        }
    }
    let warm = samples.get(samples.len() / 5..).unwrap_or_default();
    let (first, second) = warm.split_at(warm.len() / 2);
    let (before, after) = (median(first), median(second));
    let peak = samples.iter().map(|s| s.worker + s.children).fold(0.0, f64::max);
    let flat = after <= before * (1.0 + SLACK.0) + SLACK.1;
    let word = if flat { "flat" } else { "RISING" };
    println!("median {before:.0} MB, later {after:.0} MB, peak {peak:.0} MB: {word}");
    if !flat {
        std::process::exit(1);
    }
}

fn median(samples: &[Sample]) -> f64 {
    let mut sums: Vec<f64> = samples.iter().map(|s| s.worker + s.children).collect();
    sums.sort_by(f64::total_cmp);
    sums.get(sums.len() / 2).copied().unwrap_or(0.0)
}

/// A process and everything below it, itself first.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(pid) = family.get(at).copied() {
        at += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    family
}

/// Proportional set size; 0 for a process that is gone.
fn megabytes(pid: u32) -> f64 {
    let text = match std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            panic!("page processes are closed to others of their user: run this as root")
        }
        text => text.unwrap_or_default(),
    };
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

/// The `number`th of a repeating mix.
fn document(number: usize) -> (&'static str, Vec<u8>) {
    let invoice = documents::invoice(&format!("M-{number:06}"));
    let upright =
        |name: &str| documents::pdf(&[(60.0, 60.0, name), (60.0, 90.0, "Total 120.00 EUR")]);
    match number % 20 {
        3 => ("scan.png", documents::scan(invoice, 100.0)),
        8 => ("photo.jpg", pictures::jpeg(upright("Receipt of a photo"), 100)),
        11 => ("scans.pdf", pictures::scans(2, 100)),
        14 => ("cut.pdf", invoice.get(..invoice.len() / 2).unwrap_or_default().to_vec()),
        16 => ("nothing.png", documents::scan(documents::pdf(&[]), 60.0)),
        17 => ("unknown.bin", b"neither PDF nor picture".repeat(100)),
        19 => ("dense.pdf", pictures::dense(&format!("D-{number:06}"))),
        _ => ("invoice.pdf", invoice),
    }
}
