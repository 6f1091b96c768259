//! What a process gives up before it meets the bytes of documents, for good and for all threads and
//! programs it starts from then on.
//!
//! Limits ([`limit_resources`]) hold everywhere: address space, no core dumps (they would hold
//! documents), few open files. Files, network and system calls ([`restrict_process`]) are taken
//! away where the kernel has Landlock and seccomp: nothing is written, nothing read or run but what
//! [`ProcessPermissions`] names, and of all system calls those are left that reading needs. Where
//! the kernel lacks either, [`ConfinementStatus`] says so, and the configuration what follows.
//!
//! Not promised: protection against bugs of the kernel itself.

#[cfg(target_os = "linux")]
mod calls;
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
    /// System calls that reading does not need are refused (seccomp).
    pub calls: bool,
}

impl ConfinementStatus {
    /// Whether all of them hold; less than that does not count as confined.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.files && self.calls
    }

    /// What the kernel lacks, in words; `None` if nothing.
    #[must_use]
    pub fn missing_parts(self) -> Option<&'static str> {
        match (self.files, self.calls) {
            (true, true) => None,
            (false, true) => Some("Landlock"),
            (true, false) => Some("seccomp"),
            (false, false) => Some("Landlock and seccomp"),
        }
    }
}

/// Makes this process unreadable for others of its user: its memory, its environment and its open
/// files, which hold secrets and the documents of others, are out of reach below `/proc`, no
/// debugger attaches without rights of its own, and a crash leaves no core dump. For every process
/// of ours, before it does anything else; a program that is run afterwards has to do it again.
///
/// # Errors
/// The system refuses it.
pub fn hide_process() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
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
    {
        // Why not is the same for whoever reads it: the kernel lacks it, or is told not to have it.
        let ProcessPermissions { programs, reads } = permissions;
        let files = linux::restrict_files(programs, reads).unwrap_or_default();
        let rights = calls::CallRights {
            programs: !programs.is_empty(),
            scoped_signals: files.scoped_signals,
            pid: rustix::process::getpid().as_raw_nonzero().get(),
        };
        let calls = linux::restrict_calls(rights).is_ok();
        Ok(ConfinementStatus { files: files.enforced, calls })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _none_of_them_can_be_held_here = permissions;
        Ok(ConfinementStatus::default())
    }
}

/// Takes away what starts threads, for all threads of this process, once those that it needs are
/// there. Only where nothing may be run: what talks to a program is a thread as well.
#[must_use]
pub fn forbid_threads(
    permissions: Option<&ProcessPermissions>,
    status: ConfinementStatus,
) -> ConfinementStatus {
    #[cfg(target_os = "linux")]
    if status.calls && permissions.is_some_and(|permissions| permissions.programs.is_empty()) {
        return ConfinementStatus { calls: linux::forbid_threads(), ..status };
    }
    #[cfg(not(target_os = "linux"))]
    let _nothing_is_taken_away_here = permissions;
    status
}
