//! Facts about the machine that a process runs on.
//!
//! Not promised: anything on other systems than Linux.

/// Linux's id of this start of the machine, the same in all of its containers; `None` where there is
/// none. Not the machine's own id: containers made from one image share that, or have none.
pub fn read_boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}
