//! Measures the CPU pool: the cost of its idle threads, and of a piece of work beside threads that
//! wait at a condition variable. `cargo bench -p docmill-documents --bench cpu_pool`
//!
//! Both pools run in turn within one process, so that other load on the machine meets both; the
//! ratio is that of the medians.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a measurement fails"
)]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_documents::sandbox::CpuPool;
use parking_lot::{Condvar, Mutex};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Semaphore, oneshot};

const IDLE: Duration = Duration::from_secs(10);
const ROUNDS: usize = 7;

type Work = Box<dyn FnOnce() + Send>;

/// The pool to compare with: a queue, a condition variable and plain threads.
struct CondvarPool {
    queue: Arc<(Mutex<VecDeque<Work>>, Condvar)>,
    free: Arc<Semaphore>,
}

impl CondvarPool {
    fn new(threads: usize) -> Self {
        let queue = Arc::new((Mutex::new(VecDeque::<Work>::new()), Condvar::new()));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || {
                loop {
                    let mut waiting = queue.0.lock();
                    let work = loop {
                        match waiting.pop_front() {
                            Some(work) => break work,
                            None => queue.1.wait(&mut waiting),
                        }
                    };
                    drop(waiting);
                    work();
                }
            });
        }
        Self { queue, free: Arc::new(Semaphore::new(threads)) }
    }

    async fn run(&self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        let permit = Arc::clone(&self.free).acquire_owned().await.unwrap();
        let (answer, receiver) = oneshot::channel();
        self.queue.0.lock().push_back(Box::new(move || {
            let result = work();
            drop(permit);
            answer.send(result).ok();
        }));
        self.queue.1.notify_one();
        receiver.await.unwrap()
    }
}

enum Pool {
    Rayon(CpuPool),
    Condvar(CondvarPool),
}

impl Pool {
    async fn run(&self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        match self {
            Self::Rayon(pool) => pool.run(work).await.unwrap(),
            Self::Condvar(pool) => pool.run(work).await,
        }
    }

    /// One piece of work after the other, with a pause after each.
    async fn run_one_by_one(&self, pieces: u64, pause: Duration) {
        for number in 0..pieces {
            self.run(move || number).await;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    async fn run_all_at_once(&self, pieces: u64) {
        futures::future::join_all((0..pieces).map(|number| self.run(move || number))).await;
    }
}

/// CPU time of this process in µs.
fn process_cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap().as_secs_f64() * 1e6
}

/// CPU time in µs and context switches of all threads of the CPU pool.
fn pool_threads() -> (f64, u64) {
    let (mut cpu, mut switches) = (0.0, 0);
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let read = |name| fs::read_to_string(task.join(name)).unwrap_or_default();
        if !read("comm").starts_with("page-") {
            continue;
        }
        let nanoseconds = read("schedstat").split(' ').next().unwrap().parse::<f64>().unwrap();
        cpu += nanoseconds / 1e3;
        for line in read("status").lines().filter(|line| line.contains("ctxt_switches")) {
            switches += line.rsplit('\t').next().unwrap().parse::<u64>().unwrap();
        }
    }
    (cpu, switches)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn measure_idle(threads: usize) {
    let pool = Pool::Rayon(CpuPool::new(threads).unwrap());
    pool.run_all_at_once(1000).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (cpu, switches) = pool_threads();
    tokio::time::sleep(IDLE).await;
    let (cpu_then, switches_then) = pool_threads();
    let (cpu, switches) = (cpu_then - cpu, switches_then - switches);
    println!("idle {threads} threads, {IDLE:?}: {cpu:.0} µs of CPU, {switches} context switches");
    drop(pool);
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Prints wall and CPU time of a piece of work in each pool.
async fn compare(threads: usize, name: &str, pieces: u64, pause: Option<Duration>) {
    let pools =
        [Pool::Rayon(CpuPool::new(threads).unwrap()), Pool::Condvar(CondvarPool::new(threads))];
    let (mut wall, mut cpu) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (at, pool) in pools.iter().enumerate() {
            let (began, used) = (Instant::now(), process_cpu());
            match pause {
                Some(pause) => pool.run_one_by_one(pieces, pause).await,
                None => pool.run_all_at_once(pieces).await,
            }
            let count = f64::from(u32::try_from(pieces).unwrap());
            wall[at].push(began.elapsed().as_secs_f64() * 1e6 / count);
            cpu[at].push((process_cpu() - used) / count);
        }
    }
    let ([rayon, condvar], [rayon_cpu, condvar_cpu]) = (wall.map(median), cpu.map(median));
    println!(
        "{name}, {threads} threads, µs a piece, rayon and condition variable: \
         wall {rayon:.1} and {condvar:.1} ({:.2}), CPU {rayon_cpu:.1} and {condvar_cpu:.1} ({:.2})",
        rayon / condvar,
        rayon_cpu / condvar_cpu,
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for threads in [1, 2, 8] {
        measure_idle(threads).await;
    }
    for threads in [1, 2, 8] {
        compare(threads, "all at once", 20_000, None).await;
        compare(threads, "one by one", 5_000, Some(Duration::ZERO)).await;
        compare(threads, "one every millisecond", 500, Some(Duration::from_millis(1))).await;
    }
}
