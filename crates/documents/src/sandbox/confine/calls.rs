//! The system calls of a page process: an allow list for reading documents; everything else is
//! refused with EPERM. Rules see the numbers of a call, never the memory behind its pointers.
//!
//! Where nothing may be run (the linked Tesseract), the process starts no other, makes no memory
//! executable, and once its threads are there ([`forbid_threads`]) not even a thread. Where a program
//! may be run, that may start others, which stay in the process's group and die with it: nothing
//! leaves the group. Either way no call reaches another process: no signal but to itself and its
//! own group, no limits, priorities or cores of others, no shared memory, no socket.
//!
//! Not promised: a bound on how many processes a program that may be run starts.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// Properties of the process that the filter depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallRights {
    /// Programs may be run.
    pub(super) programs: bool,
    /// The kernel keeps signals within the process and what it started (Landlock 6): then it may
    /// send them, which a program that is over its time needs.
    pub(super) scoped_signals: bool,
    /// The process's own id.
    pub(super) pid: c_int,
}

/// Allowed whatever the arguments: they reach the process's own memory, threads, clock and open
/// files, or return public facts. Landlock decides which files may be opened.
const ALWAYS_ALLOWED: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
    // Answered by `without_clone3`.
    libc::SYS_clone3,
];
/// The same by the names that they had before, which only x86-64 still knows.
#[cfg(target_arch = "x86_64")]
const ALWAYS_ALLOWED_LEGACY_X86: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_ALLOWED_LEGACY_X86: &[c_long] = &[];

/// Allowed as well where programs may be run: to start one, to talk to it, to wait for it. Landlock
/// decides which ones.
const EXEC_ALLOWED: &[c_long] = &[
    libc::SYS_dup3,
    libc::SYS_execve,
    libc::SYS_fstatfs,
    libc::SYS_pipe2,
    libc::SYS_pselect6,
    libc::SYS_statfs,
    libc::SYS_umask,
    libc::SYS_wait4,
    libc::SYS_waitid,
];
#[cfg(target_arch = "x86_64")]
const FOR_PROGRAMS_BEFORE: &[c_long] = &[
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_fork,
    libc::SYS_pipe,
    libc::SYS_select,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const FOR_PROGRAMS_BEFORE: &[c_long] = &[];

/// Namespaces, another parent, a tracer that goes along: never.
const FORBIDDEN_CLONE_FLAGS: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PARENT
    | libc::CLONE_PTRACE;
/// Flags that make a new task a thread.
const THREAD: c_int = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
/// Flags that must not accompany an open for reading.
const NOT_READING: c_int =
    libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);
/// Names for areas of memory, which the C library gives; `linux/prctl.h`.
const PR_SET_VMA: c_int = 0x5356_4d41;

/// The filter of a page process.
///
/// # Errors
/// The architecture is none that filters can be made for.
pub(super) fn allow_list(rights: CallRights) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules = BTreeMap::new();
    allow_freely(&mut rules, ALWAYS_ALLOWED);
    allow_freely(&mut rules, ALWAYS_ALLOWED_LEGACY_X86);
    if rights.programs {
        allow_freely(&mut rules, EXEC_ALLOWED);
        allow_freely(&mut rules, FOR_PROGRAMS_BEFORE);
    }
    allow_memory(&mut rules, rights)?;
    allow_files(&mut rules)?;
    allow_signals(&mut rules, rights)?;
    allow_tasks(&mut rules, rights)?;
    compile(rules, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)
}

/// The filter in which `clone3` is unknown: its flags lie behind a pointer, which no filter can
/// read. The C library then takes `clone`, whose flags can be read.
///
/// # Errors
/// As [`allow_list`].
pub(super) fn without_clone3() -> Result<BpfProgram, seccompiler::Error> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(errno(libc::ENOSYS)))
}

/// The filter in which no task is started any more, for a process whose threads are all there.
///
/// # Errors
/// As [`allow_list`].
pub(super) fn forbid_threads() -> Result<BpfProgram, seccompiler::Error> {
    let rules = BTreeMap::from([(libc::SYS_clone, Vec::new()), (libc::SYS_clone3, Vec::new())]);
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(errno(libc::EPERM)))
}

type CallRules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(
    rules: CallRules,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, others, these, architecture)?;
    Ok(filter.try_into().map_err(|error: BackendError| error)?)
}

fn errno(error: c_int) -> u32 {
    error.unsigned_abs()
}

fn allow_freely(rules: &mut CallRules, calls: &[c_long]) {
    rules.extend(calls.iter().map(|call| (*call, Vec::new())));
}

/// Memory becomes executable only where programs are loaded.
fn allow_memory(rules: &mut CallRules, rights: CallRights) -> Result<(), BackendError> {
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let not_executable = rule(vec![bits(2, libc::PROT_EXEC, 0)?])?;
        rules.insert(call, if rights.programs { Vec::new() } else { vec![not_executable] });
    }
    Ok(())
}

/// The rules of a call that opens files, whose argument `flags` holds the flags.
fn open_rules(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    Ok(vec![
        rule(vec![bits(flags, NOT_READING, libc::O_RDONLY)?])?,
        rule(vec![bits(flags, libc::O_ACCMODE, libc::O_WRONLY)?])?,
        rule(vec![bits(flags, libc::O_ACCMODE, libc::O_RDWR)?])?,
    ])
}

/// Files are opened to be read, or to be written as they are: nothing is made or emptied that
/// Landlock does not allow to be written. A descriptor gets no owner to whom signals would go.
fn allow_files(rules: &mut CallRules) -> Result<(), BackendError> {
    rules.insert(libc::SYS_openat, open_rules(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, open_rules(1)?);
    let commands = [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
    ];
    let commands = commands.iter().map(|command| rule(vec![is(1, *command)?]));
    rules.insert(libc::SYS_fcntl, commands.collect::<Result<_, _>>()?);
    Ok(())
}

/// To the process itself (an abort), to its own group (the end), and with a kernel that keeps them
/// within it, to the programs it runs.
fn allow_signals(rules: &mut CallRules, rights: CallRights) -> Result<(), BackendError> {
    rules.insert(libc::SYS_tgkill, vec![rule(vec![is(0, rights.pid)?])?]);
    let to_all = rights.programs && rights.scoped_signals;
    let to_own_group = rule(vec![is(0, 0)?])?;
    rules.insert(libc::SYS_kill, if to_all { Vec::new() } else { vec![to_own_group] });
    Ok(())
}

/// Threads, and where programs may be run processes; names for them; further filters, which can only
/// take away; the process's own limits, to be read.
fn allow_tasks(rules: &mut CallRules, rights: CallRights) -> Result<(), BackendError> {
    let mut clones = vec![rule(vec![bits(0, THREAD | FORBIDDEN_CLONE_FLAGS, THREAD)?])?];
    if rights.programs {
        clones.push(rule(vec![bits(0, libc::CLONE_THREAD | FORBIDDEN_CLONE_FLAGS, 0)?])?);
    }
    rules.insert(libc::SYS_clone, clones);
    let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_NO_NEW_PRIVS, PR_SET_VMA];
    let names = names.iter().map(|option| rule(vec![is(0, *option)?]));
    rules.insert(libc::SYS_prctl, names.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_seccomp, vec![rule(vec![is(0, 1)?])?]);
    let no_new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![is(0, 0)?, no_new_limit])?]);
    Ok(())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// The argument is this number.
fn is(argument: u8, value: c_int) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// Of these bits of the argument those are set and no others.
fn bits(argument: u8, these: c_int, set: c_int) -> Result<SeccompCondition, BackendError> {
    let compare = SeccompCmpOp::MaskedEq(u64::from(these.cast_unsigned()));
    let set = u64::from(set.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, set)
}

#[cfg(test)]
mod tests {
    use seccompiler::sock_filter;

    use super::*;

    const PID: c_int = 4711;
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000 | libc::EPERM.unsigned_abs();

    /// Emulates the kernel for the few instructions that filters are made of.
    fn answer(program: &[sock_filter], call: c_long, arguments: [u64; 6]) -> u32 {
        let architecture = if cfg!(target_arch = "x86_64") { 0xc000_003e_u32 } else { 0xc000_00b7 };
        let mut data = u32::try_from(call).unwrap().to_le_bytes().to_vec();
        data.extend(architecture.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match code {
                0x20 => {
                    let from = usize::try_from(k).unwrap();
                    value = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x54 => value &= k,
                0x05 => at += usize::try_from(k).unwrap(),
                0x15 => at += jump(value == k),
                0x25 => at += jump(value > k),
                0x35 => at += jump(value >= k),
                0x06 => return k,
                other => panic!("an instruction that is not known here: {other:#x}"),
            }
        }
    }

    fn filters() -> [BpfProgram; 3] {
        let rights = |programs, scoped_signals| CallRights { programs, scoped_signals, pid: PID };
        [rights(false, true), rights(true, false), rights(true, true)]
            .map(|rights| allow_list(rights).unwrap())
    }

    fn flags(flags: c_int) -> u64 {
        u64::from(flags.cast_unsigned())
    }

    #[test]
    fn what_reading_needs_is_allowed_and_what_reaches_others_is_not() {
        const OTHER: u64 = 4712;
        let fork = flags(libc::SIGCHLD);
        let thread = flags(THREAD | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SETTLS);
        let spawn = flags(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
        let own = u64::from(PID.cast_unsigned());
        let create = flags(libc::O_RDONLY | libc::O_CREAT);
        let empty = flags(libc::O_RDONLY | libc::O_TRUNC);
        let write = flags(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
        let code = flags(libc::PROT_READ | libc::PROT_EXEC);
        let user = flags(libc::CLONE_NEWUSER | libc::SIGCHLD);
        let sibling = flags(libc::CLONE_PARENT | libc::SIGCHLD);
        let kill = flags(libc::SIGKILL);
        let limit = 0x7fff_1234_5678;
        #[rustfmt::skip]
        let table = [
            // what                             call                     arguments            linked, program, and with scoped signals
            ("read",                            libc::SYS_read,          [0, 1, 2, 0, 0, 0],  [true, true, true]),
            ("open a file to read it",          libc::SYS_openat,        [0, 1, flags(libc::O_CLOEXEC), 0, 0, 0], [true, true, true]),
            ("open a device to write it",       libc::SYS_openat,        [0, 1, write, 0, 0, 0], [true, true, true]),
            ("make a file by reading it",       libc::SYS_openat,        [0, 1, create, 0, 0, 0], [false, false, false]),
            ("empty a file by reading it",      libc::SYS_openat,        [0, 1, empty, 0, 0, 0], [false, false, false]),
            ("take memory",                     libc::SYS_mmap,          [0, 1, 3, 0, 0, 0],  [true, true, true]),
            ("take memory for code",            libc::SYS_mmap,          [0, 1, code, 0, 0, 0], [false, true, true]),
            ("make memory code",                libc::SYS_mprotect,      [0, 1, code, 0, 0, 0], [false, true, true]),
            ("start a thread",                  libc::SYS_clone,         [thread, 0, 0, 0, 0, 0], [true, true, true]),
            ("fork",                            libc::SYS_clone,         [fork, 0, 0, 0, 0, 0], [false, true, true]),
            ("spawn",                           libc::SYS_clone,         [spawn, 0, 0, 0, 0, 0], [false, true, true]),
            ("be somebody in a namespace",      libc::SYS_clone,         [user, 0, 0, 0, 0, 0], [false, false, false]),
            ("have the worker as a parent",     libc::SYS_clone,         [sibling, 0, 0, 0, 0, 0], [false, false, false]),
            ("run a program",                   libc::SYS_execve,        [0; 6],              [false, true, true]),
            ("run a program by descriptor",     libc::SYS_execveat,      [0; 6],              [false, false, false]),
            ("end its own group",               libc::SYS_kill,          [0, kill, 0, 0, 0, 0], [true, true, true]),
            ("end another",                     libc::SYS_kill,          [OTHER, kill, 0, 0, 0, 0], [false, false, true]),
            ("end all",                         libc::SYS_kill,          [u64::MAX, kill, 0, 0, 0, 0], [false, false, true]),
            ("abort",                           libc::SYS_tgkill,        [own, own, 6, 0, 0, 0], [true, true, true]),
            ("abort another",                   libc::SYS_tgkill,        [OTHER, OTHER, 6, 0, 0, 0], [false, false, false]),
            ("signal a thread",                 libc::SYS_tkill,         [OTHER, 9, 0, 0, 0, 0], [false, false, false]),
            ("signal by descriptor",            libc::SYS_pidfd_send_signal, [3, 9, 0, 0, 0, 0], [false, false, false]),
            ("queue a signal",                  libc::SYS_rt_sigqueueinfo, [OTHER, 9, 0, 0, 0, 0], [false, false, false]),
            ("have signals sent by a file",     libc::SYS_fcntl,         [0, 8, OTHER, 0, 0, 0], [false, false, false]),
            ("know its own limits",             libc::SYS_prlimit64,     [0, 7, 0, limit, 0, 0], [true, true, true]),
            ("change its own limits",           libc::SYS_prlimit64,     [0, 7, limit, 0, 0, 0], [false, false, false]),
            ("know the limits of another",      libc::SYS_prlimit64,     [OTHER, 7, 0, limit, 0, 0], [false, false, false]),
            ("change the limits of another",    libc::SYS_prlimit64,     [OTHER, 7, limit, 0, 0, 0], [false, false, false]),
            ("change a core",                   libc::SYS_sched_setaffinity, [0; 6],          [false, false, false]),
            ("change a priority",               libc::SYS_setpriority,   [0; 6],              [false, false, false]),
            ("change a scheduler",              libc::SYS_sched_setscheduler, [0; 6],         [false, false, false]),
            ("leave the session",               libc::SYS_setsid,        [0; 6],              [false, false, false]),
            ("leave the group",                 libc::SYS_setpgid,       [0; 6],              [false, false, false]),
            ("be traced again",                 libc::SYS_prctl,         [4, 1, 0, 0, 0, 0],  [false, false, false]),
            ("name a thread",                   libc::SYS_prctl,         [15, 0, 0, 0, 0, 0], [true, true, true]),
            ("filter further",                  libc::SYS_seccomp,       [1, 0, 0, 0, 0, 0],  [true, true, true]),
            ("listen to a filter",              libc::SYS_seccomp,       [3, 0, 0, 0, 0, 0],  [false, false, false]),
        ];
        let filters = filters();
        for (name, call, arguments, allowed) in table {
            let answers = [0, 1, 2].map(|at: usize| answer(&filters[at], call, arguments));
            let expected = allowed.map(|is| if is { ALLOW } else { REFUSE });
            assert_eq!(answers, expected, "{name}");
        }
    }

    /// Future system calls are refused too. The number of allowed calls shows when one was added.
    #[test]
    fn a_call_that_nobody_named_is_refused() {
        let never = [
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_connect,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_bind,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_msgget,
            libc::SYS_semget,
            libc::SYS_mq_open,
            libc::SYS_memfd_create,
            libc::SYS_memfd_secret,
            libc::SYS_io_uring_setup,
            libc::SYS_userfaultfd,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_mount,
            libc::SYS_keyctl,
            libc::SYS_ioctl,
            libc::SYS_ioprio_set,
            libc::SYS_move_pages,
            libc::SYS_kcmp,
            libc::SYS_setrlimit,
            libc::SYS_landlock_create_ruleset,
            libc::SYS_openat2,
            libc::SYS_truncate,
            libc::SYS_ftruncate,
            libc::SYS_renameat2,
            libc::SYS_unlinkat,
            libc::SYS_linkat,
            libc::SYS_fchmod,
            libc::SYS_timer_create,
        ];
        for filter in filters() {
            for call in never {
                assert_eq!(answer(&filter, call, [0; 6]), REFUSE, "{call}");
            }
            let allowed = (0..2048).filter(|call| answer(&filter, *call, [0; 6]) == ALLOW).count();
            assert!(allowed < 90, "{allowed} calls of 2048 numbers");
            #[cfg(target_arch = "x86_64")]
            for call in 0..1024 {
                let other = call | 0x4000_0000;
                assert_eq!(answer(&filter, other, [0; 6]), REFUSE, "{call} by its other number");
            }
        }
    }

    #[test]
    fn what_cannot_be_looked_into_is_unknown_and_in_the_end_no_thread_is_started() {
        let unknown = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
        let (first, last) = (without_clone3().unwrap(), forbid_threads().unwrap());
        let thread = [flags(THREAD), 0, 0, 0, 0, 0];
        assert_eq!(answer(&first, libc::SYS_clone3, [0; 6]), unknown);
        assert_eq!(answer(&first, libc::SYS_clone, thread), ALLOW);
        assert_eq!(answer(&last, libc::SYS_clone, thread), REFUSE);
        assert_eq!(answer(&last, libc::SYS_clone3, [0; 6]), REFUSE);
        assert_eq!(answer(&last, libc::SYS_read, [0; 6]), ALLOW);
    }
}
