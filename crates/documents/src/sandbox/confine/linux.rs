//! Landlock and seccomp.
//!
//! Landlock's first version is required: which files are read, written and run. Restrictions of
//! later versions (truncating, connecting, device controls, signals) are used where the kernel has
//! them; elsewhere the list of system calls refuses the same.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::calls::{self, CallRights};

/// Without this version files are not confined.
const REQUIRED: ABI = ABI::V1;
/// The newest version of Landlock that we know; of an older kernel's, what it has is used.
const KNOWN: ABI = ABI::V6;
/// The version that keeps signals within the process and what it started.
const SCOPED: ABI = ABI::V6;
/// Files that the kernel itself opens to start a program: the loaders of glibc and musl.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];
/// Programs turn their unwanted output to the first; seeds come from the second.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];

/// How far the kernel enforces the Landlock rules.
#[derive(Default)]
pub(super) struct FileRestrictions {
    /// Files beyond those that were named are out of reach.
    pub(super) enforced: bool,
    /// Signals reach only the process and what it started.
    pub(super) scoped_signals: bool,
}

/// Allows these programs to be run and these files and folders to be read, and no others. Returns
/// how far the kernel enforces it.
pub(super) fn restrict_files(
    programs: &[PathBuf],
    reads: &[PathBuf],
) -> Result<FileRestrictions, RulesetError> {
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
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(reads, read))?
        .add_rules(path_beneath_rules(programs, run))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .restrict_self()?;
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        _ => ABI::Unsupported,
    };
    let enforced = status.ruleset != RulesetStatus::NotEnforced;
    Ok(FileRestrictions { enforced, scoped_signals: enforced && version >= SCOPED })
}

/// Refuses the system calls that reading does not need.
pub(super) fn restrict_calls(rights: CallRights) -> Result<(), seccompiler::Error> {
    // The list comes last: it does not have what it takes to change Landlock or to be looser.
    seccompiler::apply_filter(&calls::without_clone3()?)?;
    seccompiler::apply_filter(&calls::allow_list(rights)?)
}

/// Forbids all threads of this process to start threads; returns whether the kernel enforces it.
pub(super) fn forbid_threads() -> bool {
    calls::forbid_threads()
        .and_then(|filter| seccompiler::apply_filter_all_threads(&filter))
        .is_ok()
}
