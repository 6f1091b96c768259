//! The identity of a worker: the machine's fingerprint, its number there, and the start of the
//! process.
//!
//! The fingerprint is BlobForge's: the first 12 hex digits of the SHA-256 of `hostname:machine-id`.
//! In BlobForge it is the whole name, so that two processes on one machine steal each other's work.

use std::path::Path;

use serde::{Deserialize, Serialize};

use docmill_core::machine;
use docmill_core::model::digest;

/// The identity that a worker writes into its locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// The machine's fingerprint and the worker's number on it.
    pub id: String,
    /// This start of the process.
    pub instance: String,
}

impl WorkerIdentity {
    /// A worker of this id, started now.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), instance: uuid::Uuid::new_v4().simple().to_string() }
    }
}

/// This process, described so that others on the same machine can find out whether it still runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProcessIdentity {
    /// The host name of the machine.
    pub(super) hostname: String,
    /// The start of the machine; empty where it cannot be found out.
    pub(super) boot: String,
    /// The id of the process (PID).
    pub(super) pid: u32,
}

impl ProcessIdentity {
    pub(super) fn current() -> Self {
        let boot = machine::read_boot_id().unwrap_or_default();
        Self { hostname: hostname(), boot, pid: std::process::id() }
    }

    /// Whether that process has surely ended: same machine, same start of it, no such process.
    pub(super) fn has_ended(&self) -> bool {
        let here = Self::current();
        let same = !self.boot.is_empty() && self.boot == here.boot;
        let same = same && self.hostname == here.hostname;
        same && self.pid != here.pid && !Path::new(&format!("/proc/{}", self.pid)).exists()
    }
}

/// The first half of a worker's name.
pub(super) fn machine_fingerprint() -> String {
    let machine =
        ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().map(|path| read_trimmed(path));
    let machine = machine.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
    let mut print = digest::sha256_hex(format!("{}:{machine}", hostname()));
    print.truncate(12);
    print
}

fn hostname() -> String {
    let kernel = read_trimmed("/proc/sys/kernel/hostname");
    let named = || std::env::var("HOSTNAME").unwrap_or_default();
    if kernel.is_empty() { named() } else { kernel }
}

fn read_trimmed(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_machine_or_a_living_one_has_not_surely_ended() {
        let this = ProcessIdentity::current();
        assert!(!this.has_ended());
        // Above what Linux gives out.
        let gone = ProcessIdentity { pid: u32::MAX, ..this.clone() };
        assert_eq!(gone.has_ended(), !this.boot.is_empty());
        assert!(!ProcessIdentity { hostname: "elsewhere".to_owned(), ..gone.clone() }.has_ended());
        assert!(!ProcessIdentity { boot: "another start".to_owned(), ..gone }.has_ended());
    }

    #[test]
    fn the_fingerprint_is_twelve_digits_and_stays() {
        assert_eq!(machine_fingerprint().len(), 12);
        assert_eq!(machine_fingerprint(), machine_fingerprint());
    }
}
