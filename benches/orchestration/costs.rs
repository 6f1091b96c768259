//! The CPU time and memory of processes so far, from `/proc`: on Linux only.
//!
//! Ticks of ten milliseconds: good for runs of a second and more.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]

use std::collections::BTreeMap;
use std::fs;

/// Ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux.
const TICKS: f64 = 100.0;

/// Seconds of CPU that the parts of a run have taken so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuSeconds {
    /// The worker's process.
    pub(crate) worker: f64,
    /// The processes that it opens documents in.
    pub(crate) pages: f64,
    /// Postgres, all of its processes.
    pub(crate) postgres: f64,
    /// This process: the producer, and the stand-in for SQS.
    pub(crate) queue: f64,
}

impl CpuSeconds {
    /// As of now; `postmaster` is the parent of all processes of Postgres.
    pub(crate) fn measure(worker: u32, postmaster: u32) -> Self {
        let children = children_by_parent();
        let of_children = |parent: u32| -> f64 {
            let all = children.get(&parent).into_iter().flatten();
            all.map(|child| seconds(*child, false)).sum()
        };
        let own = seconds(worker, false);
        Self {
            worker: own,
            // Those that have ended are counted with the worker, which waits for them.
            pages: of_children(worker) + seconds(worker, true) - own,
            // Sessions that have ended are counted with their parent.
            postgres: seconds(postmaster, true) + of_children(postmaster),
            queue: seconds(std::process::id(), false),
        }
    }

    /// The consumption since `before`, in microseconds per job.
    pub(crate) fn per_job(&self, before: &Self, jobs: f64) -> Self {
        Self {
            worker: us_per_job(jobs, self.worker, before.worker),
            pages: us_per_job(jobs, self.pages, before.pages),
            postgres: us_per_job(jobs, self.postgres, before.postgres),
            queue: us_per_job(jobs, self.queue, before.queue),
        }
    }
}

fn us_per_job(jobs: f64, after: f64, before: f64) -> f64 {
    (after - before) * 1e6 / jobs
}

/// Bytes of memory that a process has, its page processes not counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResidentBytes {
    pub(crate) all: u64,
    /// Pages of its program and libraries among them: more of a development build, of which parts are
    /// not optimised, than of a release.
    pub(crate) of_program: u64,
}

impl ResidentBytes {
    pub(crate) fn measure(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let read = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let kibibytes: u64 = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
            kibibytes << 10
        };
        Self { all: read("VmRSS:"), of_program: read("RssFile:") }
    }
}

/// The parent of a process.
pub(crate) fn parent_of(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    field(&stat, 4).unwrap()
}

fn children_by_parent() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = field(&stat, 4) {
            children.entry(parent).or_default().push(process);
        }
    }
    children
}

/// CPU of a process, user and system, all threads; with that of the children that it has waited for
/// if asked.
fn seconds(process: u32, with_ended: bool) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let last = if with_ended { 17 } else { 15 };
    let ticks: u32 = (14..=last).filter_map(|number| field::<u32>(&stat, number)).sum();
    f64::from(ticks) / TICKS
}

/// A field of `/proc/PID/stat` by its number in proc(5). The name, in brackets, may hold spaces.
fn field<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(number - 3)?.parse().ok()
}
