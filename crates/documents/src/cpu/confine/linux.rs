//! Landlock and seccomp.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use libc::c_long;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter};

/// The newest version of Landlock that we know; of an older kernel's, what it has is used.
const KNOWN: ABI = ABI::V6;
/// What the kernel itself opens to start a program: the loaders of glibc and musl.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];
/// Programs turn their unwanted output to the first; seeds come from the second.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];

/// Lets these programs be run and these files and folders be read, and no others; whether the
/// kernel holds it.
pub(super) fn restrict_files(
    programs: &[PathBuf],
    reads: &[PathBuf],
) -> Result<bool, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = AccessFs::ReadFile | AccessFs::Execute;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let programs: Vec<&Path> = match programs.is_empty() {
        true => Vec::new(),
        false => {
            let programs = programs.iter().map(AsRef::as_ref);
            programs.chain(LOADERS.iter().map(Path::new)).collect()
        }
    };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(reads, read))?
        .add_rules(path_beneath_rules(programs, run))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Refused with EPERM, whatever the arguments: connections, other processes, mounts and namespaces,
/// the kernel's keys, programs and modules, the machine's own state. Pairs of connected sockets
/// within the process are left: the async runtime wakes itself through one.
const REFUSED: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_create,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_personality,
];
/// Refused too where nothing may be run.
const STARTS: &[c_long] = &[libc::SYS_execve, libc::SYS_execveat];
/// The same calls by their numbers in the 32-bit ABI of x86-64, on kernels that have it.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: c_long = 0x4000_0000;

/// Refuses system calls that a confined process has no use for; `may_start`: programs may be run.
pub(super) fn restrict_calls(may_start: bool) -> Result<(), seccompiler::Error> {
    let starts = if may_start { &[] } else { STARTS };
    let numbers = REFUSED.iter().chain(starts).copied();
    #[cfg(target_arch = "x86_64")]
    let numbers = numbers.flat_map(|number| [number, number | OTHER_NUMBERS]);
    let rules: BTreeMap<i64, _> = numbers.map(|number| (number, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    let program: BpfProgram = filter.try_into().map_err(|error: BackendError| error)?;
    seccompiler::apply_filter(&program)
}
