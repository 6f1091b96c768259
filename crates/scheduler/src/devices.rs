//! Reading the memory of this machine's devices. Blocking: called where blocking is allowed.
//!
//! `nvidia-smi` and `/proc/meminfo` count in MiB and KiB of 1024, `rocm-smi` in bytes. Memory of other
//! programs counts because free memory is read, not computed.

mod amd;
mod nvidia;
mod program;

use docmill_core::config::DeviceSource;
use docmill_core::fault::{Error, Fault, Result};

use super::plan::MemoryDevice;
use amd::AmdProbe;
use nvidia::NvidiaProbe;
use program::{MeasuringProgram, PROBE_TIMEOUT};

const MEMINFO: &str = "/proc/meminfo";
/// Advice for machines without cards.
const ADVICE: &str = "if models run in main memory, set llm.scheduler.devices = \"memory\"";

/// Reads the memory of devices. Blocking, for ten seconds at most per program.
pub trait DeviceProbe: Send + Sync {
    /// All devices, as they are now.
    ///
    /// # Errors
    /// They cannot be read; which way, and what to set instead.
    fn read_devices(&self) -> Result<Vec<MemoryDevice>>;
}

/// The main memory of this machine.
#[derive(Debug)]
struct MainMemoryProbe;

/// All devices of another probe as one: for servers that split each model over all of them.
struct JoinedProbe(Box<dyn DeviceProbe>);

/// The probe that the configuration asks for; `joined`: its devices count as one.
pub fn select_probe(source: DeviceSource, joined: bool) -> Box<dyn DeviceProbe> {
    let nvidia = MeasuringProgram::new("nvidia-smi", PROBE_TIMEOUT);
    let amd = MeasuringProgram::new("rocm-smi", PROBE_TIMEOUT);
    let probe: Box<dyn DeviceProbe> = match source {
        DeviceSource::Nvidia => Box::new(NvidiaProbe(nvidia)),
        DeviceSource::Amd => Box::new(AmdProbe(amd)),
        DeviceSource::Memory => Box::new(MainMemoryProbe),
        DeviceSource::Auto if nvidia.is_installed(&["--list-gpus"]) => {
            Box::new(NvidiaProbe(nvidia))
        }
        DeviceSource::Auto if amd.is_installed(&["--version"]) => Box::new(AmdProbe(amd)),
        DeviceSource::Auto => Box::new(MainMemoryProbe),
    };
    if joined { Box::new(JoinedProbe(probe)) } else { probe }
}

impl DeviceProbe for JoinedProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        self.0.read_devices().map(|devices| vec![join_devices(&devices)])
    }
}

/// One device with the memory of all.
fn join_devices(devices: &[MemoryDevice]) -> MemoryDevice {
    MemoryDevice {
        name: format!("all-{}", devices.len()),
        total_mib: devices.iter().map(|device| device.total_mib).fold(0, u64::saturating_add),
        free_mib: devices.iter().map(|device| device.free_mib).fold(0, u64::saturating_add),
    }
}

impl DeviceProbe for MainMemoryProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        read_main_memory().map(|device| vec![device])
    }
}

/// The main memory as it is now.
fn read_main_memory() -> Result<MemoryDevice> {
    let broken = |why: &str| {
        Error::new(Fault::Unavailable, format!("{MEMINFO} {why}: memory cannot be scheduled"))
    };
    let text = std::fs::read_to_string(MEMINFO)
        .map_err(|error| broken("cannot be read").with_source(error))?;
    parse_main_memory(&text).ok_or_else(|| broken("lacks MemTotal or MemAvailable"))
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
    fn without_a_card_the_memory_is_the_machines_and_bounded() {
        let text = "MemTotal:       16316412 kB\nMemFree: 1 kB\nMemAvailable:    8158206 kB\n";
        let device = parse_main_memory(text).unwrap();
        assert_eq!((device.total_mib, device.free_mib), (15_933, 7_966));
        assert_eq!(parse_main_memory("MemTotal: 1 kB"), None);
    }

    #[test]
    fn joined_cards_are_one_device_with_the_memory_of_all() {
        let card = |name: &str, free_mib| MemoryDevice {
            name: name.to_owned(),
            total_mib: 24_576,
            free_mib,
        };
        struct Two(Vec<MemoryDevice>);
        impl DeviceProbe for Two {
            fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
                Ok(self.0.clone())
            }
        }
        let two = Two(vec![card("gpu0-a", 20_000), card("gpu1-b", 24_000)]);
        let joined = JoinedProbe(Box::new(two)).read_devices().unwrap();
        let expected =
            MemoryDevice { name: "all-2".to_owned(), total_mib: 49_152, free_mib: 44_000 };
        assert_eq!(joined, [expected]);
    }
}
