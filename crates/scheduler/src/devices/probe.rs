//! The port of devices.

use crate::plan::MemoryDevice;
use docmill_core::fault::Result;

/// Advice for machines without cards.
pub(super) const ADVICE: &str =
    "if models run in main memory, set llm.scheduler.devices = \"memory\"";

/// Reads the memory of devices. Blocking, for ten seconds at most per program.
pub trait DeviceProbe: Send + Sync {
    /// All devices, as they are now.
    ///
    /// # Errors
    /// They cannot be read; which way, and what to set instead.
    fn read_devices(&self) -> Result<Vec<MemoryDevice>>;
}
