//! How page processes share the memory that there is, so that all of them together fit into it.
//!
//! Each has a limit of address space of its own; here the limits are chosen so that their sum keeps
//! within what the control group, or a setting, leaves after the worker itself. Where that is less
//! than the largest pages on every thread would take, the shared process gets less: a page that
//! does not fit there kills it, and goes on in a process of its own, where it fits.
//!
//! Not promised: memory that other processes in the same control group take.

use std::io;
use std::path::{Path, PathBuf};

use super::ProcessSetup;
use docmill_core::config::{CpuConfig, LimitsConfig};

/// What the worker itself takes besides documents and texts.
const WORKER: u64 = 256 << 20;
/// Where control groups are mounted: version 2, and the one of version 1 that counts memory.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// Limits of page processes, in bytes of address space, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Limit of the process that documents share.
    pub shared_bytes: u64,
    /// Limit of a process that has one document.
    pub own_bytes: u64,
    /// Shared processes at the same time: one that is being replaced may live on beside its
    /// successor only if there are two.
    pub shared_processes: usize,
    /// Processes of one document each at the same time.
    pub own_processes: usize,
}

impl ProcessMemory {
    /// Without a bound on the sum: one process of each document that needs it, up to one for each
    /// thread.
    pub fn unbounded(setup: &ProcessSetup) -> Self {
        Self {
            shared_bytes: setup.shared_bytes(),
            own_bytes: setup.own_bytes(),
            shared_processes: 2,
            own_processes: setup.threads,
        }
    }

    /// Within `total` bytes, or the least with which documents can be read if that is more.
    pub fn within(total: u64, setup: &ProcessSetup) -> Self {
        let (full, own) = (setup.shared_bytes(), setup.own_bytes());
        let shared_bytes = total.saturating_sub(own).clamp(own.min(full), full);
        let left = total.saturating_sub(shared_bytes).saturating_sub(own);
        let has_two = left >= shared_bytes;
        let left = if has_two { left - shared_bytes } else { left };
        let more = usize::try_from(left / own.max(1)).unwrap_or(usize::MAX);
        Self {
            shared_bytes,
            own_bytes: own,
            shared_processes: 1 + usize::from(has_two),
            own_processes: more.saturating_add(1).min(setup.threads),
        }
    }

    /// The most that all page processes may take together.
    pub fn total_bytes(&self) -> u64 {
        let times = |bytes: u64, count: usize| {
            bytes.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX))
        };
        times(self.shared_bytes, self.shared_processes)
            .saturating_add(times(self.own_bytes, self.own_processes))
    }
}

/// The most that the worker itself takes: documents in hand, texts, and the rest.
pub fn worker_bytes(limits: &LimitsConfig) -> u64 {
    let documents = limits.documents_in_memory.0;
    let texts = (documents / 4).max(limits.text_bytes.0);
    WORKER.saturating_add(documents).saturating_add(texts)
}

/// Bytes for all page processes together: what is set, or what `granted` leaves after the worker;
/// `None`: there is no limit.
pub fn bytes_for_processes(
    cpu: &CpuConfig,
    limits: &LimitsConfig,
    granted: Option<u64>,
) -> Option<u64> {
    match cpu.memory.0 {
        0 => granted.map(|granted| granted.saturating_sub(worker_bytes(limits))),
        set => Some(set),
    }
}

/// Bytes of memory that this process and its children may take: the least that its control groups
/// allow, or what the machine has; `None` where the system does not say.
pub fn granted_bytes() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(parse_total_memory);
    group_bytes(&own, |file| std::fs::read_to_string(file).ok()).into_iter().chain(machine).min()
}

/// The least that the control groups of a process allow, of those named in its `/proc/self/cgroup`,
/// their parents, and the root as a container sees it.
fn group_bytes(own: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let paths = own.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let places = paths.chain([""]).map(|path| path.trim_start_matches('/'));
    let mut least: Option<u64> = None;
    for place in places {
        for (mount, file) in GROUPS {
            let mut folder = PathBuf::from(mount).join(place);
            while folder.starts_with(mount) {
                let limit = read(&folder.join(file)).and_then(|text| parse_limit(&text));
                least = [least, limit].into_iter().flatten().min();
                if !folder.pop() {
                    break;
                }
            }
        }
    }
    least
}

/// A limit as control groups write it; version 1 writes an absurd number for none.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 50)
}

/// `MemTotal:       24094720 kB` of `/proc/meminfo`.
fn parse_total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Asks the kernel to end this process before any other when memory runs out: it can be replaced,
/// the worker cannot.
///
/// # Errors
/// The system has no such thing, or refuses it.
pub fn volunteer_for_oom_kill() -> io::Result<()> {
    std::fs::write("/proc/self/oom_score_adj", "1000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::OcrConfig;
    use docmill_core::model::{ReadRecipe, RepairSwitches};

    const MIB: u64 = 1 << 20;

    fn setup(threads: usize) -> ProcessSetup {
        let recipe = ReadRecipe {
            dpi: 300,
            languages: Vec::new(),
            repairs: RepairSwitches::ALL,
            threshold: 0.7,
        };
        let (cpu, limits) = (CpuConfig::default(), LimitsConfig::default());
        ProcessSetup::new(&cpu, &limits, &OcrConfig::default(), recipe, threads)
    }

    #[test]
    fn all_page_processes_together_keep_within_what_there_is() {
        for threads in 1..=16 {
            let setup = setup(threads);
            let least = 2 * setup.own_bytes();
            for total in (0..200).map(|step| least + step * 500 * MIB) {
                let plan = ProcessMemory::within(total, &setup);
                let sum = plan.total_bytes();
                assert!(sum <= total, "{threads} threads: {sum} of {total}, {plan:?}");
                assert!(plan.own_processes >= 1 && plan.shared_processes >= 1, "{plan:?}");
                assert!(plan.shared_bytes >= setup.own_bytes().min(setup.shared_bytes()));
            }
        }
    }

    #[test]
    fn the_containers_of_our_manifests_hold_the_worker_and_every_page_process() {
        let limits = LimitsConfig::default();
        let granted = 6144 * MIB;
        let total = bytes_for_processes(&CpuConfig::default(), &limits, Some(granted)).unwrap();
        let plan = ProcessMemory::within(total, &setup(2));
        assert!(worker_bytes(&limits) + plan.total_bytes() <= granted, "{plan:?}");
        assert_eq!((plan.shared_processes, plan.own_processes), (1, 1));
        assert_eq!((plan.own_bytes / MIB, plan.shared_bytes / MIB), (2528, 2720));
    }

    #[test]
    fn what_is_set_counts_before_what_the_container_has() {
        let (limits, none) = (LimitsConfig::default(), CpuConfig::default());
        let set = CpuConfig { memory: docmill_core::config::ByteSize(7), ..none.clone() };
        assert_eq!(bytes_for_processes(&set, &limits, Some(6144 * MIB)), Some(7));
        assert_eq!(bytes_for_processes(&none, &limits, None), None);
        let total = bytes_for_processes(&none, &limits, Some(6144 * MIB));
        assert_eq!(total, Some((6144 - 256 - 512 - 128) * MIB));
    }

    #[test]
    fn the_limit_of_a_control_group_is_the_least_on_the_way_to_it() {
        let files: [(&str, &str); 6] = [
            ("/sys/fs/cgroup/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "6442450944\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/j/memory.limit_in_bytes", "2147483648\n"),
            ("/sys/fs/cgroup/c/memory.max", "1024\n"),
        ];
        let read = |file: &Path| {
            let known = files.iter().find(|(name, _)| Path::new(name) == file);
            known.map(|(_, text)| (*text).to_owned())
        };
        for (own, expected) in [
            ("0::/\n", None),
            ("0::/a/b\n", Some(6_442_450_944)),
            ("12:cpu:/x\n9:memory:/j/k\n", Some(2_147_483_648)),
            ("", None),
            ("0::/c\n", Some(1024)),
        ] {
            assert_eq!(group_bytes(own, read), expected, "{own:?}");
        }
        assert_eq!(parse_total_memory("MemFree: 1 kB\nMemTotal:  2048 kB\n"), Some(2 << 20));
    }
}
