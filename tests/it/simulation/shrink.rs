//! Shrinks a failing schedule: removes faults while it still fails, half of the list first, then
//! smaller and smaller parts (delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002).
//!
//! Not promised: the globally shortest list, only that no single fault can be removed, unless the
//! runs were used up.

use super::plan::SchedulePlan;
use super::world::{ScheduleEnd, run_schedule};

/// Maximum runs for one schedule.
const MAX_RUNS: usize = 600;
/// Repetitions of the smallest, to see whether it always fails.
const AGAIN: usize = 5;

/// A schedule that was cut down.
pub(super) struct SmallestSchedule {
    pub plan: SchedulePlan,
    pub broken: String,
    /// How often it fell, of five times.
    pub falls: usize,
    runs: usize,
}

impl SmallestSchedule {
    /// The instructions to run it again.
    pub(super) fn describe(&self) -> String {
        let Self { plan, broken, falls, runs } = self;
        format!(
            "schedule {} falls: {broken}\nthe smallest that does, after {runs} runs; it fell {falls} \
             times of {AGAIN}:\n{plan}{}",
            plan.seed,
            plan.command(),
        )
    }
}

/// Runs schedules, and keeps the smallest that fell.
struct ScheduleCutter {
    smallest: SchedulePlan,
    broken: String,
    runs: usize,
}

impl ScheduleCutter {
    /// Whether this one falls, too: then it is the smallest.
    fn try_plan(&mut self, plan: SchedulePlan) -> bool {
        if self.runs >= MAX_RUNS {
            return false;
        }
        self.runs += 1;
        match run_guarded(&plan).broken {
            Ok(()) => false,
            Err(broken) => {
                (self.smallest, self.broken) = (plan, broken);
                true
            }
        }
    }

    fn drop_faults(&mut self) {
        let faults = self.smallest.faults.clone();
        let plan = self.smallest.clone();
        leave_out(faults, &mut |kept| {
            self.try_plan(SchedulePlan { faults: kept.to_vec(), ..plan.clone() })
        });
    }

    fn drop_documents(&mut self) {
        let documents = self.smallest.documents.clone();
        let plan = self.smallest.clone();
        leave_out(documents, &mut |kept| {
            !kept.is_empty()
                && self.try_plan(SchedulePlan { documents: kept.to_vec(), ..plan.clone() })
        });
    }

    fn drop_worker(&mut self) {
        let workers = self.smallest.workers - 1;
        if workers > 0 {
            self.try_plan(SchedulePlan { workers, ..self.smallest.clone() });
        }
    }

    fn size(&self) -> (usize, usize, usize) {
        let plan = &self.smallest;
        (plan.faults.len(), plan.documents.len(), plan.workers)
    }
}

/// Runs a schedule; a panic is one more way to fall.
pub(super) fn run_guarded(plan: &SchedulePlan) -> ScheduleEnd {
    std::panic::catch_unwind(|| run_schedule(plan)).unwrap_or_else(|panic| {
        let says = panic.downcast_ref::<String>().cloned();
        let says = says.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let broken = Err(format!("a panic: {}", says.unwrap_or_default()));
        ScheduleEnd { broken, met: plan.faults.iter().map(|(number, _)| *number).collect() }
    })
}

/// Cuts a schedule down that fell this way.
pub(super) fn shrink(plan: SchedulePlan, end: ScheduleEnd) -> SmallestSchedule {
    let broken = end.broken.err().unwrap_or_default();
    let mut cutter = ScheduleCutter { smallest: plan, broken, runs: 0 };
    // Faults that never struck were irrelevant.
    let mut struck = cutter.smallest.clone();
    struck.faults.retain(|(number, _)| end.met.contains(number));
    cutter.try_plan(struck);
    loop {
        let before = cutter.size();
        cutter.drop_faults();
        cutter.drop_documents();
        cutter.drop_worker();
        if cutter.size() == before {
            break;
        }
    }
    let ScheduleCutter { smallest: plan, broken, runs } = cutter;
    let falls = (0..AGAIN).filter(|_| run_guarded(&plan).broken.is_err()).count();
    SmallestSchedule { plan, broken, falls, runs }
}

/// Leaves out what `falls` does not need: nothing of what is returned can be left out singly.
pub(super) fn leave_out<T: Clone>(
    mut items: Vec<T>,
    falls: &mut impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    if !items.is_empty() && falls(&[]) {
        return Vec::new();
    }
    let mut parts = 2;
    while items.len() > 1 {
        let size = items.len().div_ceil(parts);
        let shorter = (0..items.len()).step_by(size).find_map(|from| {
            let until = (from + size).min(items.len());
            let rest: Vec<T> = [&items[..from], &items[until..]].concat();
            falls(&rest).then_some(rest)
        });
        match shorter {
            Some(rest) => (items, parts) = (rest, (parts - 1).max(2)),
            None if parts >= items.len() => break,
            None => parts = (2 * parts).min(items.len()),
        }
    }
    items
}

#[test]
fn of_a_list_that_falls_nothing_is_left_that_it_does_not_need() {
    for needed in [vec![], vec![17], vec![3, 41], vec![0, 50, 99], vec![7, 8, 9, 60]] {
        let mut runs = 0;
        let left = leave_out((0..100).collect(), &mut |kept: &[i32]| {
            runs += 1;
            needed.iter().all(|item| kept.contains(item))
        });
        assert_eq!(left, needed);
        assert!(runs < 120, "{runs} runs for {needed:?}");
    }
}
