//! Permissions that a process gives up before it reads the bytes of documents: for good, and for
//! all threads and programs that it starts from then on.
//!
//! Limits ([`limit_resources`]) hold everywhere: address space, no core dumps (they would hold
//! documents), few open files. [`restrict_process`] removes files, network and system calls where
//! the kernel has Landlock and seccomp. Nothing is written, only files named in
//! [`ProcessPermissions`] are read or run, and only system calls needed for reading remain. Where
//! the kernel lacks either, [`ConfinementStatus`] reports it; the configuration decides what
//! follows.
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
const MAX_OPEN_FILES: u64 = 1024;

/// Files and programs that a confined process may still reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPermissions {
    /// Programs that may be run. Empty: nothing may be run, not even by a compromised thread.
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
    /// Whether both hold; anything less does not count as confined.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.files && self.calls
    }

    /// Names of the mechanisms that the kernel lacks; `None` if it has both.
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
    cap_resource(Resource::Nofile, MAX_OPEN_FILES)
}

fn cap_resource(resource: Resource, value: u64) -> io::Result<()> {
    // A stricter limit stays.
    let value = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// Checks that no thread runs beside this one: it would keep its rights.
///
/// # Errors
/// There is one, or the system does not say so.
pub fn check_single_thread() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a thread runs that cannot be confined"));
    }
    Ok(())
}

/// Removes everything that is not permitted. Running threads keep their rights, so call this before
/// the first is started.
///
/// # Errors
/// The system refuses a limit.
pub fn restrict_process(permissions: &ProcessPermissions) -> io::Result<ConfinementStatus> {
    // Files do not grow; pipes and devices are no files in this sense.
    cap_resource(Resource::Fsize, 0)?;
    #[cfg(target_os = "linux")]
    {
        // The reason does not matter: the kernel lacks it, or has it switched off.
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

/// Forbids all threads of this process to start threads, once those that it needs exist. Only where
/// no program may be run: talking to a program takes a thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_with_a_thread_that_would_keep_its_rights_is_not_confined() {
        std::thread::scope(|scope| {
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || stopped.recv());
            assert!(check_single_thread().is_err());
            drop(stop);
        });
    }
}
