//! The main memory of this machine.

use crate::plan::MemoryDevice;
use docmill_core::fault::{Error, Fault, Result};

const MEMINFO: &str = "/proc/meminfo";

/// The main memory as it is now.
pub(super) fn read_main_memory() -> Result<MemoryDevice> {
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
}
