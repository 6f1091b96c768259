//! The shared state of the processes of one machine, a folder: what each wants and what it holds.
//!
//! Every process has one file, locked for its lifetime; so a file that can be locked belongs to a
//! dead process, holds nothing and is removed. Reading all files, deciding and writing one's own
//! file happens under one more lock, so that two processes never give away the same memory. Locks
//! are the kernel's (`flock`): they end with the process in every case. The folder must be on a
//! local file system, and in containers on a volume that they share.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::{DeviceMemory, ModelDemand};
use docmill_core::fault::{Error, Fault, Result};

const GATE: &str = "gate.lock";
const ENDING: &str = ".sheet";

/// One process's state, written for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessState {
    /// The process id.
    pub process: u32,
    /// The models it wants or holds memory for.
    pub posts: Vec<ModelDemand>,
    /// The free memory of the devices as it last read it.
    pub reading: DeviceMemory,
}

/// The folder, and this process's own file in it.
#[derive(Debug)]
pub(super) struct SharedState {
    folder: PathBuf,
    own: File,
    own_path: PathBuf,
}

impl SharedState {
    /// Creates the folder if need be, and an empty file for this process.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let wrong = |error| folder_error(folder, error);
        fs::create_dir_all(folder).map_err(wrong)?;
        let name = format!("{}-{:08x}{ENDING}", std::process::id(), fastrand::u32(..));
        let own_path = folder.join(name);
        let gate = lock_folder(folder).map_err(wrong)?;
        let own = OpenOptions::new().read(true).write(true).create_new(true).open(&own_path);
        let own = own.map_err(wrong)?;
        // Under the gate lock no other process has the name yet, so this lock is free.
        own.lock().map_err(wrong)?;
        drop(gate);
        Ok(Self { folder: folder.to_owned(), own, own_path })
    }

    /// Passes the states of the other processes to `change` and writes the state that it returns.
    /// Nobody else writes in between. If writing fails, the result is an error and the caller must
    /// not act on what `change` decided.
    pub(super) fn update_shared<T>(
        &self,
        change: impl FnOnce(Vec<ProcessState>) -> (ProcessState, T),
    ) -> Result<T> {
        let wrong = |error| folder_error(&self.folder, error);
        let _gate = lock_folder(&self.folder).map_err(wrong)?;
        let others = load_states(&self.folder, Some(&self.own_path)).map_err(wrong)?;
        let (sheet, answer) = change(others);
        self.write_state(&sheet).map_err(wrong)?;
        Ok(answer)
    }

    fn write_state(&self, sheet: &ProcessState) -> std::io::Result<()> {
        let text = serde_json::to_vec(sheet)?;
        let mut own = &self.own;
        own.set_len(0)?;
        own.rewind()?;
        own.write_all(&text)
    }
}

impl Drop for SharedState {
    fn drop(&mut self) {
        // A file that stays behind is removed by the next reader: its lock ends with this process.
        if let Err(error) = fs::remove_file(&self.own_path) {
            tracing::debug!(error = %error, "the sheet of the model scheduler was left behind");
        }
    }
}

/// The states of all living processes; empty if there is no such folder.
///
/// # Errors
/// The folder cannot be read.
pub fn read_states(folder: &Path) -> Result<Vec<ProcessState>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let looked = lock_folder(folder).and_then(|_gate| load_states(folder, None));
    looked.map_err(|error| folder_error(folder, error))
}

fn lock_folder(folder: &Path) -> std::io::Result<File> {
    let path = folder.join(GATE);
    let gate = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    gate.lock()?;
    Ok(gate)
}

fn load_states(folder: &Path, except: Option<&Path>) -> std::io::Result<Vec<ProcessState>> {
    let mut sheets = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_sheet = path.to_str().is_some_and(|path| path.ends_with(ENDING));
        if !is_sheet || Some(path.as_path()) == except {
            continue;
        }
        let mut file = match File::open(&path) {
            Ok(file) => file,
            // The process has just ended.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {
                fs::remove_file(&path)?;
                continue;
            }
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // An empty file: the process has not written its state yet.
        if !text.is_empty() {
            sheets.push(serde_json::from_str(&text)?);
        }
    }
    Ok(sheets)
}

fn folder_error(folder: &Path, error: std::io::Error) -> Error {
    Error::new(
        Fault::Unavailable,
        format!(
            "the model scheduler cannot use {} (llm.scheduler.path): {}",
            folder.display(),
            error.kind()
        ),
    )
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MemoryNeed, ModelTurn};

    fn sheet(model: &str) -> ProcessState {
        let turn = ModelTurn { device: "d".into(), began_ms: 1, loaded_ms: None, evicts: false };
        let post = ModelDemand {
            model: model.to_owned(),
            need: MemoryNeed::Mib(5),
            waiting: 0,
            oldest_ms: None,
            running: 1,
            turn: Some(turn),
            idle: None,
            longest_ms: 0,
            ended_ms: 0,
        };
        ProcessState { process: 7, posts: vec![post], reading: DeviceMemory::default() }
    }

    #[test]
    fn the_sheet_of_an_earlier_version_is_understood() {
        let mut earlier = serde_json::to_value(sheet("a")).unwrap();
        let post = earlier["posts"][0].as_object_mut().unwrap();
        for later in ["longest_ms", "ended_ms"] {
            post.remove(later).unwrap();
        }
        assert_eq!(serde_json::from_value::<ProcessState>(earlier).unwrap(), sheet("a"));
    }

    #[test]
    fn each_process_reads_the_others_state_and_not_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| SharedState::create(folder.path()).unwrap());
        one.update_shared(|others| (sheet("a"), assert_eq!(others, []))).unwrap();
        two.update_shared(|others| (sheet("b"), assert_eq!(others, [sheet("a")]))).unwrap();
        one.update_shared(|others| (sheet("c"), assert_eq!(others, [sheet("b")]))).unwrap();
        let mut all = read_states(folder.path()).unwrap();
        all.sort_by(|a, b| a.posts[0].model.cmp(&b.posts[0].model));
        assert_eq!(all, [sheet("b"), sheet("c")]);
    }

    #[test]
    fn a_process_that_ends_takes_its_sheet_along() {
        let folder = tempfile::tempdir().unwrap();
        drop(SharedState::create(folder.path()).unwrap());
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(left.len(), 1, "the lock of the folder: {left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_sheet_that_goes_meanwhile_is_passed_over_and_one_that_cannot_be_read_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &str| {
            let (name, to) = (format!("{name}{ENDING}"), format!("{to}{ENDING}"));
            std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(name)).unwrap();
        };
        link("1-gone", "nowhere");
        assert_eq!(read_states(folder.path()).unwrap(), []);
        link("2-circle", "2-circle");
        assert_eq!(read_states(folder.path()).unwrap_err().fault, Fault::Unavailable);
    }

    #[test]
    fn what_a_dead_process_held_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let living = SharedState::create(folder.path()).unwrap();
        let left = folder.path().join(format!("1-dead{ENDING}"));
        fs::write(&left, serde_json::to_vec(&sheet("a")).unwrap()).unwrap();
        living.update_shared(|others| (sheet("b"), assert_eq!(others, []))).unwrap();
        assert!(!left.exists());
        drop(living);
        assert_eq!(read_states(folder.path()).unwrap(), []);
        assert_eq!(read_states(&folder.path().join("none")).unwrap(), []);
    }
}
