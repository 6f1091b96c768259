//! Reading the memory of this machine's devices. Blocking: called where blocking is allowed.
//!
//! `nvidia-smi` and `/proc/meminfo` count in MiB and KiB of 1024. Memory of other programs counts
//! because free memory is read, not computed.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::plan::MemoryDevice;
use docmill_core::config::DeviceSource;
use docmill_core::fault::{Error, Fault, Result};

/// Asked by us only for what we read.
const QUERY: [&str; 2] =
    ["--query-gpu=index,uuid,memory.total,memory.free", "--format=csv,noheader,nounits"];
/// How long `nvidia-smi` may take: beside a driver that hangs it never ends.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked whether it has ended.
const PROBE_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MEMINFO: &str = "/proc/meminfo";
/// Advice for machines without cards.
const ADVICE: &str = "if models run in main memory, set llm.scheduler.devices = \"memory\"";

/// Reads the memory of devices. Blocking, for ten seconds at most.
pub trait DeviceProbe: Send + Sync {
    /// All devices, as they are now.
    ///
    /// # Errors
    /// They cannot be read; which way, and what to set instead.
    fn read_devices(&self) -> Result<Vec<MemoryDevice>>;
}

/// The graphics cards of this machine, as `nvidia-smi` lists them.
#[derive(Debug)]
struct NvidiaProbe {
    program: PathBuf,
    patience: Duration,
    /// One that was killed for taking too long. Waiting for its end could take as long, and without
    /// it a second one would hang as well.
    given_up: Mutex<Option<Child>>,
}

/// The main memory of this machine.
#[derive(Debug)]
struct MainMemoryProbe;

/// The probe that the configuration asks for.
///
/// # Errors
/// `auto` and an `nvidia-smi` that is there but does not work: whether there are cards is not known
/// then.
pub fn select_probe(source: DeviceSource) -> Result<Box<dyn DeviceProbe>> {
    let nvidia = NvidiaProbe::new("nvidia-smi", PROBE_TIMEOUT);
    Ok(match source {
        DeviceSource::Nvidia => Box::new(nvidia),
        DeviceSource::Memory => Box::new(MainMemoryProbe),
        DeviceSource::Auto => match nvidia.run(&["--list-gpus"]) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(MainMemoryProbe),
            _ => Box::new(nvidia),
        },
    })
}

impl NvidiaProbe {
    fn new(program: impl Into<PathBuf>, patience: Duration) -> Self {
        Self { program: program.into(), patience, given_up: Mutex::new(None) }
    }

    /// The program's output.
    ///
    /// # Errors
    /// It cannot be run; `TimedOut` if it hangs, or an earlier one still does.
    #[expect(clippy::disallowed_methods, reason = "called where blocking is allowed")]
    fn run(&self, arguments: &[&str]) -> io::Result<Output> {
        let mut given_up = self.given_up.lock();
        if let Some(earlier) = given_up.as_mut() {
            if earlier.try_wait()?.is_none() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            *given_up = None;
        }
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let began = Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() >= self.patience {
                let killed = child.kill();
                *given_up = Some(child);
                return killed.and(Err(io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(PROBE_POLL_INTERVAL);
        }
        child.wait_with_output()
    }
}

impl DeviceProbe for NvidiaProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let output = self.run(&QUERY).map_err(|error| {
            let context = match error.kind() {
                io::ErrorKind::TimedOut => {
                    format!("nvidia-smi has not answered within {:.0?}", self.patience)
                }
                _ => format!("nvidia-smi cannot be run; {ADVICE}"),
            };
            Error::new(Fault::Unavailable, context).with_source(error)
        })?;
        list_cards(&output)
    }
}

/// The cards of an answer of `nvidia-smi`.
///
/// # Errors
/// It did not work, or names none.
fn list_cards(output: &Output) -> Result<Vec<MemoryDevice>> {
    match parse_cards(&String::from_utf8_lossy(&output.stdout)) {
        Some(devices) if output.status.success() && !devices.is_empty() => Ok(devices),
        _ => Err(Error::new(
            Fault::Unavailable,
            format!("nvidia-smi lists no graphics cards ({}); {ADVICE}", output.status),
        )),
    }
}

impl DeviceProbe for MainMemoryProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let broken = |why: &str| {
            Error::new(Fault::Unavailable, format!("{MEMINFO} {why}: memory cannot be scheduled"))
        };
        let text = std::fs::read_to_string(MEMINFO)
            .map_err(|error| broken("cannot be read").with_source(error))?;
        let memory = parse_main_memory(&text);
        memory.map(|device| vec![device]).ok_or_else(|| broken("lacks MemTotal or MemAvailable"))
    }
}

/// `0, GPU-6f…, 24576, 21034`; `None` if a line is anything else.
fn parse_cards(text: &str) -> Option<Vec<MemoryDevice>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(parse_card).collect()
}

/// A card, from a line of `nvidia-smi`.
fn parse_card(line: &str) -> Option<MemoryDevice> {
    let mut cells = line.split(',').map(str::trim);
    let (index, uuid) = (cells.next()?, cells.next()?);
    let (total_mib, free_mib) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    // The index alone may name another card in another container.
    let name = format!("gpu{index}-{}", uuid.strip_prefix("GPU-").unwrap_or(uuid));
    cells.next().is_none().then_some(MemoryDevice { name, total_mib, free_mib })
}

fn parse_main_memory(text: &str) -> Option<MemoryDevice> {
    let mib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024)
    };
    let (total_mib, free_mib) = (mib("MemTotal")?, mib("MemAvailable")?);
    Some(MemoryDevice { name: "memory".to_owned(), total_mib, free_mib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_a_device_of_its_own_and_nothing_is_added_up() {
        let text = "0, GPU-aa-1, 24576, 20000\n1, GPU-bb-2, 24576, 24000\n\n";
        let device = |name: &str, free_mib| MemoryDevice {
            name: name.to_owned(),
            total_mib: 24_576,
            free_mib,
        };
        assert_eq!(
            parse_cards(text).unwrap(),
            [device("gpu0-aa-1", 20_000), device("gpu1-bb-2", 24_000)]
        );
        for wrong in ["No devices were found", "0, GPU-a, [N/A], 5", "0, GPU-a, 5", "0,a,1,2,3"] {
            assert_eq!(parse_cards(wrong), None, "{wrong}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn cards_are_accepted_only_from_a_program_that_succeeded_and_listed_some() {
        use std::os::unix::process::ExitStatusExt as _;
        use std::process::ExitStatus;
        for (status, stdout, count) in [
            (0, "0, GPU-aa-1, 24576, 20000", Some(1)),
            (1 << 8, "0, GPU-aa-1, 24576, 20000", None),
            (0, "", None),
            (0, "No devices were found", None),
        ] {
            let (status, stderr) = (ExitStatus::from_raw(status), Vec::new());
            let listed = list_cards(&Output { status, stdout: stdout.into(), stderr });
            assert_eq!(listed.ok().map(|cards| cards.len()), count, "{status}, {stdout}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_given_up_and_asked_again_when_it_has_ended() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (program, healthy) = (folder.path().join("smi"), folder.path().join("healthy"));
        let text = format!(
            "#!/bin/sh\n[ -e {} ] || exec sleep 600\necho 0, GPU-a, 9000, 8000\n",
            healthy.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let probe = NvidiaProbe::new(program, Duration::from_millis(200));
        let error = probe.read_devices().unwrap_err();
        assert_eq!(error.fault, Fault::Unavailable);
        assert!(error.to_string().contains("not answered within 200ms"), "{error}");

        // One that cannot be killed is not joined by others.
        let stuck = Command::new("sleep").arg("600").spawn().unwrap();
        *probe.given_up.lock() = Some(stuck);
        std::fs::write(healthy, "").unwrap();
        probe.read_devices().unwrap_err();
        let mut stuck = probe.given_up.lock().take().unwrap();
        stuck.kill().unwrap();
        stuck.wait().unwrap();
        *probe.given_up.lock() = Some(stuck);
        assert_eq!(probe.read_devices().unwrap().len(), 1);
    }

    #[test]
    fn without_a_card_the_memory_is_the_machines_and_bounded() {
        let text = "MemTotal:       16316412 kB\nMemFree: 1 kB\nMemAvailable:    8158206 kB\n";
        let device = parse_main_memory(text).unwrap();
        assert_eq!((device.total_mib, device.free_mib), (15_933, 7_966));
        assert_eq!(parse_main_memory("MemTotal: 1 kB"), None);
    }
}
