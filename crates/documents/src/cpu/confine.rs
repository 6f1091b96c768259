//! What a process gives up before it meets the bytes of documents, for good and for all threads and
//! programs it starts from then on.
//!
//! Limits ([`limit_resources`]) hold everywhere: address space, no core dumps (they would hold
//! documents), few open files. Files, network and system calls ([`restrict_process`]) are taken
//! away where the kernel has Landlock and seccomp: nothing is written, nothing read or run but what
//! [`ProcessPermissions`] names, no socket is opened, nothing of other processes is read. Where it
//! lacks them, [`ConfinementStatus`] says so, for one line in the log.
//!
//! Not promised: protection against bugs of the kernel itself.

#[cfg(target_os = "linux")]
mod linux;

use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Pipes of the page process itself and of the programs that its threads run.
const OPEN_FILES: u64 = 1024;

/// What a confined process may still reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPermissions {
    /// Programs that may be run. None: nothing may be run, not even by a thread gone wrong.
    pub programs: Vec<PathBuf>,
    /// Files, and folders with all that is in them, that may be read.
    pub reads: Vec<PathBuf>,
}

impl ProcessPermissions {
    /// To run this program, with the system's libraries and these files.
    #[must_use]
    pub fn for_program(program: PathBuf, reads: impl IntoIterator<Item = PathBuf>) -> Self {
        let libraries = LIBRARIES.iter().map(PathBuf::from);
        Self { programs: vec![program], reads: libraries.chain(reads).collect() }
    }
}

/// Where shared libraries lie, and what the loader and OpenMP look at; those that exist.
const LIBRARIES: [&str; 11] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/sys/devices/system/cpu",
    "/proc/cpuinfo",
];

/// Which confinements [`restrict_process`] could apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementStatus {
    /// Files and programs beyond the permissions are out of reach (Landlock).
    pub files: bool,
    /// Sockets and other system calls are refused (seccomp).
    pub calls: bool,
}

/// Sets the limits of this process.
///
/// # Errors
/// The system refuses them.
pub fn limit_resources(address_space: u64) -> io::Result<()> {
    cap_resource(Resource::As, address_space)?;
    cap_resource(Resource::Core, 0)?;
    cap_resource(Resource::Nofile, OPEN_FILES)
}

fn cap_resource(resource: Resource, value: u64) -> io::Result<()> {
    // What is stricter already stays as it is.
    let value = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// Takes away what is not among the permissions. Threads that run already keep what they have, so
/// this comes before the first is started.
///
/// # Errors
/// The system refuses a limit.
pub fn restrict_process(permissions: &ProcessPermissions) -> io::Result<ConfinementStatus> {
    // Files do not grow; pipes and devices are no files in this sense.
    cap_resource(Resource::Fsize, 0)?;
    #[cfg(target_os = "linux")]
    return Ok(ConfinementStatus {
        files: linux::restrict_files(&permissions.programs, &permissions.reads).unwrap_or(false),
        calls: linux::restrict_calls(!permissions.programs.is_empty()).is_ok(),
    });
    #[cfg(not(target_os = "linux"))]
    {
        let _none_of_them_can_be_held_here = permissions;
        Ok(ConfinementStatus::default())
    }
}
