//! The process against its platform: time to stop, memory, and leases that fit together.

use std::time::Duration;

use humantime::format_duration;

use super::DoctorFinding;
use docmill_core::config::{Config, ConfinementMode, OcrConfig, OcrEngineChoice};
use docmill_core::fault;
use docmill_core::model::{ReadRecipe, RepairSwitches};
use docmill_documents::sandbox::confine::ConfinementStatus;
use docmill_documents::sandbox::{ProcessMemory, ProcessSetup, process_memory};

/// The variable in which our manifests pass the platform's grace period after SIGTERM.
pub const STOP_TIMEOUT_VARIABLE: &str = "DOCMILL_STOP_TIMEOUT";
/// Time to release the jobs that are cancelled at the end of the drain.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(8);

/// The platform's grace period, if it is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlatformLimits {
    /// The text of [`STOP_TIMEOUT_VARIABLE`].
    pub stop_timeout: Option<String>,
    /// Bytes of memory that the control group may use, or that the machine has.
    pub memory: Option<u64>,
    /// Threads for page work.
    pub threads: usize,
}

impl PlatformLimits {
    /// Of this process: environment, control group (version 2, else 1), cores.
    pub fn detect(config: &Config) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = config.worker.cpu_threads;
        Self {
            stop_timeout: std::env::var(STOP_TIMEOUT_VARIABLE).ok(),
            memory: process_memory::granted_bytes(),
            threads: if threads == 0 { cores } else { threads },
        }
    }
}

/// A grace period after SIGTERM, in seconds (`120`) or with a unit (`2m`).
fn parse_stop_timeout(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok().map(Duration::from_secs);
    seconds.or_else(|| humantime::parse_duration(text.trim()).ok())
}

/// Every check of the process.
pub fn check(config: &Config, around: &PlatformLimits) -> Vec<DoctorFinding> {
    vec![check_stop_timeout(config, around), check_memory(config, around), check_leases(config)]
}

fn check_stop_timeout(config: &Config, around: &PlatformLimits) -> DoctorFinding {
    const CHECK: &str = "process.stop_timeout";
    let drain = config.worker.drain;
    let wanted = format_duration(drain + RELEASE_TIMEOUT);
    let Some(text) = &around.stop_timeout else {
        return DoctorFinding::warn(
            CHECK,
            format!("{STOP_TIMEOUT_VARIABLE} is not set: nobody says how long the platform waits"),
            format!(
                "set it to what the platform grants after SIGTERM (stopTimeout, \
                 terminationGracePeriodSeconds), at least {wanted}"
            ),
        );
    };
    let granted = parse_stop_timeout(text);
    let advice = format!(
        "grant at least {wanted} (stopTimeout, terminationGracePeriodSeconds), or lower \
         worker.drain: a worker that is killed while it drains costs an attempt of every document \
         in hand"
    );
    match granted {
        None => DoctorFinding::wrong(CHECK, format!("{STOP_TIMEOUT_VARIABLE} is no time"), advice),
        Some(granted) if granted < drain + RELEASE_TIMEOUT => DoctorFinding::wrong(
            CHECK,
            format!(
                "the platform waits {} after SIGTERM, worker.drain is {}",
                format_duration(granted),
                format_duration(drain)
            ),
            advice,
        ),
        Some(granted) => DoctorFinding::ok(CHECK, format!("{} granted", format_duration(granted))),
    }
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// The worker and all its page processes against what they may take.
fn check_memory(config: &Config, around: &PlatformLimits) -> DoctorFinding {
    const CHECK: &str = "process.memory";
    let (cpu, limits) = (&config.cpu, &config.limits);
    let worker = process_memory::worker_bytes(limits);
    let total = process_memory::bytes_for_processes(cpu, limits, around.memory);
    let (Some(granted), Some(total)) = (around.memory, total) else {
        return DoctorFinding::ok(CHECK, "no limit is set for this process");
    };
    let setup = process_setup(config, around.threads);
    let plan = ProcessMemory::within(total, &setup);
    let most = worker.saturating_add(plan.total_bytes());
    let text = format!(
        "{} MiB for the worker, {} for each of {} shared page processes, {} for each of {} of one \
         document, {} MiB are granted",
        mib(worker),
        mib(plan.shared_bytes),
        plan.shared_processes,
        mib(plan.own_bytes),
        plan.own_processes,
        mib(granted)
    );
    if most > granted {
        let advice = format!(
            "give the container at least {} MiB, or lower cpu.page_memory (with \
             limits.page_pixels), limits.documents_in_memory or cpu.memory: the kernel would kill \
             what reads documents, or the container",
            mib(most)
        );
        return DoctorFinding::wrong(CHECK, text, advice);
    }
    if plan.shared_processes > 0 && plan.shared_bytes < setup.shared_bytes() {
        let advice = format!(
            "several of the largest allowed pages at once do not fit: they are read one by one; \
             give {} MiB, or lower worker.cpu_threads or limits.page_pixels",
            mib(worker + setup.shared_bytes() + setup.own_bytes())
        );
        return DoctorFinding::warn(CHECK, text, advice);
    }
    DoctorFinding::ok(CHECK, text)
}

/// As far as memory depends on it.
fn process_setup(config: &Config, threads: usize) -> ProcessSetup {
    let recipe = ReadRecipe {
        dpi: config.ocr.dpi,
        languages: Vec::new(),
        repairs: RepairSwitches::ALL,
        threshold: config.ocr.quality_threshold,
    };
    ProcessSetup::new(&config.cpu, &config.limits, &OcrConfig::default(), recipe, threads)
}

/// Whether documents are isolated from this machine and from secrets; `found` is the report of a
/// page process.
pub fn check_confinement(
    mode: ConfinementMode,
    found: fault::Result<ConfinementStatus>,
) -> DoctorFinding {
    const CHECK: &str = "process.confinement";
    const ADVICE: &str = "run it where the kernel has Landlock (5.13 and later) and seccomp, with \
                          cpu.confine = \"required\"; docs/explanation/confinement.md lists the \
                          remaining rights without it";
    let status = match found {
        Ok(status) => status,
        Err(error) => return DoctorFinding::unusable(CHECK, &error),
    };
    match (mode, status.missing_parts()) {
        (ConfinementMode::Off, _) => DoctorFinding::warn(
            CHECK,
            "page processes are not confined: cpu.confine is off",
            ADVICE,
        ),
        (_, None) => DoctorFinding::ok(CHECK, "page processes are confined"),
        (_, Some(missing)) => DoctorFinding::warn(
            CHECK,
            format!("page processes are not confined: this kernel has no {missing} for them"),
            ADVICE,
        ),
    }
}

/// The OCR readers of this machine; `found` holds their names and whether the neural one is among
/// them.
pub fn check_engines(
    choice: OcrEngineChoice,
    found: fault::Result<(String, bool)>,
) -> DoctorFinding {
    const CHECK: &str = "process.readers";
    let (name, is_neural) = match found {
        Ok(found) => found,
        Err(error) => return DoctorFinding::unusable(CHECK, &error),
    };
    if choice == OcrEngineChoice::Auto && !is_neural {
        let advice = "scripts/models.sh FOLDER fetches them, ocr.models names the folder: without, \
                      bad scans, photographs and receipts are read worse; ocr.engine = \
                      \"tesseract\" if that is meant";
        let found = format!("{name}; the weights of the neural reader are not there");
        return DoctorFinding::warn(CHECK, found, advice);
    }
    DoctorFinding::ok(CHECK, name)
}

/// A message that stays hidden for longer than the lease delays the takeover of a crashed
/// worker's documents.
fn check_leases(config: &Config) -> DoctorFinding {
    const CHECK: &str = "queue.visibility";
    let (visibility, lease) = (config.queue.visibility, config.claim.lease);
    let text = format!(
        "queue.visibility is {}, claim.lease {}",
        format_duration(visibility),
        format_duration(lease)
    );
    if visibility > lease {
        let advice = "set queue.visibility below claim.lease: documents of a worker that died \
                      wait for their message although nobody holds them";
        return DoctorFinding::wrong(CHECK, text, advice);
    }
    DoctorFinding::ok(CHECK, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_platform_that_kills_while_the_worker_drains_is_named() {
        let config = Config::default();
        for (granted, verdict) in [
            (None, Severity::Warn),
            (Some("120"), Severity::Ok),
            (Some("2m"), Severity::Ok),
            (Some("110"), Severity::Wrong),
            (Some("30"), Severity::Wrong),
            (Some("soon"), Severity::Wrong),
        ] {
            let stop_timeout = granted.map(str::to_owned);
            let around = PlatformLimits { stop_timeout, ..PlatformLimits::default() };
            assert_eq!(check_stop_timeout(&config, &around).verdict, verdict, "{granted:?}");
        }
    }

    #[test]
    fn memory_is_held_against_what_the_configuration_may_take() {
        let config = Config::default();
        for (gib, threads, verdict) in [
            (None, 8, Severity::Ok),
            (Some(10), 2, Severity::Ok),
            (Some(6), 2, Severity::Warn),
            (Some(4), 1, Severity::Wrong),
        ] {
            let memory = gib.map(|gib: u64| gib << 30);
            let around = PlatformLimits { memory, threads, ..PlatformLimits::default() };
            assert_eq!(check_memory(&config, &around).verdict, verdict, "{gib:?} {threads}");
        }
    }

    #[test]
    fn weights_that_are_missing_are_a_warning_unless_nobody_wants_them() {
        use OcrEngineChoice::{Auto, Neural, Tesseract};
        use docmill_core::fault::{Error, Fault};
        let refused = || Err(Error::new(Fault::Internal, "no weights"));
        for (choice, found, verdict) in [
            (Auto, Ok(("tesseract 5, neural".to_owned(), true)), Severity::Ok),
            (Auto, Ok(("tesseract 5".to_owned(), false)), Severity::Warn),
            (Tesseract, Ok(("tesseract 5".to_owned(), false)), Severity::Ok),
            (Neural, Ok(("neural".to_owned(), true)), Severity::Ok),
            (Neural, refused(), Severity::Wrong),
        ] {
            let shown = format!("{choice:?} {found:?}");
            assert_eq!(check_engines(choice, found).verdict, verdict, "{shown}");
        }
    }

    #[test]
    fn page_processes_that_are_not_wholly_confined_are_a_finding() {
        use docmill_core::fault::{Error, Fault};
        let status = |files, calls| Ok(ConfinementStatus { files, calls });
        let refused = || Err(Error::new(Fault::Misconfigured, "no Landlock"));
        for (mode, found, verdict) in [
            (ConfinementMode::Required, status(true, true), Severity::Ok),
            (ConfinementMode::Required, refused(), Severity::Wrong),
            (ConfinementMode::Attempted, status(true, true), Severity::Ok),
            (ConfinementMode::Attempted, status(false, true), Severity::Warn),
            (ConfinementMode::Attempted, status(true, false), Severity::Warn),
            (ConfinementMode::Off, status(false, false), Severity::Warn),
        ] {
            let shown = format!("{mode:?} {found:?}");
            assert_eq!(check_confinement(mode, found).verdict, verdict, "{shown}");
        }
    }
}
