//! Reading the memory of this machine's devices. Blocking: called where blocking is allowed.
//!
//! `nvidia-smi` and `/proc/meminfo` count in MiB and KiB of 1024, `rocm-smi` in bytes. Memory of other
//! programs counts because free memory is read, not computed.

mod amd;
mod main_memory;
mod nvidia;
mod probe;
mod program;

use docmill_core::config::DeviceSource;
use docmill_core::fault::Result;

use super::plan::MemoryDevice;
use amd::AmdProbe;
use main_memory::read_main_memory;
use nvidia::NvidiaProbe;
pub use probe::DeviceProbe;
use program::{MeasuringProgram, PROBE_TIMEOUT};

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

#[cfg(test)]
mod tests {
    use super::*;

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
