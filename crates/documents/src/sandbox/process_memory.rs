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

use super::process_setup::ProcessSetup;
use docmill_core::config::{CpuConfig, LimitsConfig, ProcessSharing};

/// Memory of the worker itself besides documents and texts.
const WORKER_BASE_BYTES: u64 = 256 << 20;
/// Where control groups are mounted: version 2, and the one of version 1 that counts memory.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// Limits of page processes, in bytes of address space, and their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Limit of a process that documents share.
    pub shared_bytes: u64,
    /// Limit of a process that has one document.
    pub own_bytes: u64,
    /// Shared processes at the same time. Where all documents share one: one that is being replaced
    /// may live on beside its successor only if there are two. Where those of a tenant do: so many
    /// tenants have one. Where none do: 0.
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
            shared_processes: most_shared(setup),
            own_processes: setup.threads,
        }
    }

    /// Within `total` bytes, or the least with which documents can be read if that is more.
    pub fn within(total: u64, setup: &ProcessSetup) -> Self {
        let (full, own) = (setup.shared_bytes(), setup.own_bytes());
        let most = most_shared(setup);
        let shared_bytes = total.saturating_sub(own).clamp(own.min(full), full);
        let fitting = count_fitting(total.saturating_sub(own), shared_bytes);
        let shared_processes = fitting.max(1).min(most);
        let left = total.saturating_sub(repeat(shared_bytes, shared_processes));
        let own_processes = count_fitting(left, own).min(setup.threads).max(1);
        Self { shared_bytes, own_bytes: own, shared_processes, own_processes }
    }

    /// The most that all page processes may take together.
    pub fn total_bytes(&self) -> u64 {
        repeat(self.shared_bytes, self.shared_processes)
            .saturating_add(repeat(self.own_bytes, self.own_processes))
    }
}

/// The most processes that documents may share at the same time.
fn most_shared(setup: &ProcessSetup) -> usize {
    match setup.sharing {
        ProcessSharing::All => 2,
        ProcessSharing::Tenant => setup.threads,
        ProcessSharing::None => 0,
    }
}

/// How many processes of so many bytes fit.
fn count_fitting(total: u64, bytes: u64) -> usize {
    usize::try_from(total / bytes.max(1)).unwrap_or(usize::MAX)
}

/// Bytes of `count` processes of `bytes` each.
fn repeat(bytes: u64, count: usize) -> u64 {
    bytes.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The most that the worker itself takes: documents in hand, texts, and the rest.
pub fn worker_bytes(limits: &LimitsConfig) -> u64 {
    let documents = limits.documents_in_memory.0;
    let texts = (documents / 4).max(limits.text_bytes.0);
    WORKER_BASE_BYTES.saturating_add(documents).saturating_add(texts)
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
/// allow, or what the machine has; `None` where the system does not report it.
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
        sharing_setup(threads, ProcessSharing::All)
    }

    fn sharing_setup(threads: usize, shared: ProcessSharing) -> ProcessSetup {
        let recipe = ReadRecipe {
            dpi: 300,
            languages: Vec::new(),
            repairs: RepairSwitches::ALL,
            threshold: 0.7,
        };
        let (cpu, limits) = (CpuConfig { shared, ..Default::default() }, LimitsConfig::default());
        ProcessSetup::new(&cpu, &limits, &OcrConfig::default(), recipe, threads)
    }

    #[test]
    fn all_page_processes_together_keep_within_what_there_is() {
        for (threads, shared) in (1..=16).flat_map(|threads| {
            let all = [ProcessSharing::All, ProcessSharing::Tenant, ProcessSharing::None];
            all.map(|shared| (threads, shared))
        }) {
            let setup = sharing_setup(threads, shared);
            let least = 2 * setup.own_bytes();
            for total in (0..200).map(|step| least + step * 500 * MIB) {
                let plan = ProcessMemory::within(total, &setup);
                let sum = plan.total_bytes();
                assert!(sum <= total, "{threads} threads, {shared:?}: {sum} of {total}, {plan:?}");
                let has_shared = plan.shared_processes >= 1;
                assert!(plan.own_processes >= 1, "{plan:?}");
                assert_eq!(has_shared, shared != ProcessSharing::None, "{plan:?}");
                assert!(plan.shared_bytes >= setup.own_bytes().min(setup.shared_bytes()));
            }
        }
    }

    #[test]
    fn as_many_documents_or_tenants_have_a_process_as_there_is_memory_for() {
        for (shared, gib, expected) in [
            (ProcessSharing::None, 6, (0, 2)),
            (ProcessSharing::None, 64, (0, 4)),
            (ProcessSharing::Tenant, 6, (1, 1)),
            (ProcessSharing::Tenant, 24, (2, 3)),
            (ProcessSharing::Tenant, 64, (4, 4)),
        ] {
            let plan = ProcessMemory::within(gib << 30, &sharing_setup(4, shared));
            let found = (plan.shared_processes, plan.own_processes);
            assert_eq!(found, expected, "{shared:?} within {gib} GiB: {plan:?}");
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
