//! Reading the memory of this machine's devices. Blocking: called where blocking is allowed.
//!
//! `nvidia-smi` and `/proc/meminfo` count in MiB and KiB of 1024. What other programs use is taken
//! into account because free memory is read, not reckoned.

use std::io;
use std::process::{Command, Output};

use super::plan::MemoryDevice;
use docmill_core::config::DeviceSource;
use docmill_core::fault::{Error, Fault, Result};

/// Asked by us only for what we read.
const QUERY: [&str; 2] =
    ["--query-gpu=index,uuid,memory.total,memory.free", "--format=csv,noheader,nounits"];
const MEMINFO: &str = "/proc/meminfo";
/// What helps where there are no cards.
const ADVICE: &str = "if models run in main memory, set llm.scheduler.devices = \"memory\"";

/// Reads the memory of devices. Blocking.
pub trait DeviceProbe: Send + Sync {
    /// All devices, as they are now.
    ///
    /// # Errors
    /// They cannot be read; which way, and what to set instead.
    fn read_devices(&self) -> Result<Vec<MemoryDevice>>;
}

/// The graphics cards of this machine.
#[derive(Debug)]
struct NvidiaProbe;

/// The main memory of this machine.
#[derive(Debug)]
struct MainMemoryProbe;

/// The probe that the configuration asks for.
///
/// # Errors
/// `auto` and an `nvidia-smi` that is there but does not work: whether there are cards is not known
/// then.
pub fn select_probe(source: DeviceSource) -> Result<Box<dyn DeviceProbe>> {
    Ok(match source {
        DeviceSource::Nvidia => Box::new(NvidiaProbe),
        DeviceSource::Memory => Box::new(MainMemoryProbe),
        DeviceSource::Auto => match Command::new("nvidia-smi").arg("--list-gpus").output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(MainMemoryProbe),
            _ => Box::new(NvidiaProbe),
        },
    })
}

impl DeviceProbe for NvidiaProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let output = Command::new("nvidia-smi").args(QUERY).output().map_err(|error| {
            Error::new(Fault::Unavailable, format!("nvidia-smi cannot be run; {ADVICE}"))
                .with_source(error)
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
    let card = |line: &str| {
        let mut cells = line.split(',').map(str::trim);
        let (index, uuid) = (cells.next()?, cells.next()?);
        let (total_mib, free_mib) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        // The index alone may name another card in another container.
        let name = format!("gpu{index}-{}", uuid.strip_prefix("GPU-").unwrap_or(uuid));
        cells.next().is_none().then_some(MemoryDevice { name, total_mib, free_mib })
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(card).collect()
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
    fn cards_are_believed_only_of_a_program_that_ended_well_and_named_some() {
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

    #[test]
    fn without_a_card_the_memory_is_what_is_there_and_not_without_end() {
        let text = "MemTotal:       16316412 kB\nMemFree: 1 kB\nMemAvailable:    8158206 kB\n";
        let device = parse_main_memory(text).unwrap();
        assert_eq!((device.total_mib, device.free_mib), (15_933, 7_966));
        assert_eq!(parse_main_memory("MemTotal: 1 kB"), None);
    }
}
