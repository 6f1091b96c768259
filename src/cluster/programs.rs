//! Postgres' programs, and the user that runs them.
//!
//! Postgres refuses to run as root, which is usual in containers. There the server runs as the user
//! `postgres`, which every package creates, through `setpriv`. That user keeps one capability, to
//! pass through folders that it may not enter, because a clone may be below `/root`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ClusterError;

/// The programs and their user.
#[derive(Debug)]
pub(super) struct PostgresPrograms {
    bin: PathBuf,
    /// User and group id of `postgres` if we are root; `None`: as ourselves.
    user: Option<(u32, u32)>,
}

const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

impl PostgresPrograms {
    pub(super) fn find() -> Result<Self, ClusterError> {
        let bin = bin_folders()
            .into_iter()
            .find(|dir| NEEDED.iter().all(|program| dir.join(program).is_file()))
            .ok_or(ClusterError::NotInstalled("initdb"))?;
        let user = if is_root() { Some(postgres_user()?) } else { None };
        Ok(Self { bin, user })
    }

    /// A program, run as the right user.
    pub(super) fn command(&self, program: &str) -> Command {
        let path = self.bin.join(program);
        let mut command = match self.user {
            None => Command::new(path),
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
                command.args(["--clear-groups", "--inh-caps=-all,+dac_override"]);
                command.args(["--ambient-caps=-all,+dac_override"]).arg(path);
                command
            }
        };
        // A developer's own settings must not lead to another server.
        for name in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGSERVICE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        command
    }

    /// Makes the file or folder belong to the server's user.
    pub(super) fn change_owner(&self, path: &Path) -> Result<(), ClusterError> {
        let Some((user, group)) = self.user else { return Ok(()) };
        chown(path, Some(user), Some(group))
            .map_err(|source| ClusterError::Folder { path: path.to_owned(), source })
    }
}

/// Writes a file that only its owner can read.
pub(super) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// By priority: configured, on the path, newest installed.
fn bin_folders() -> Vec<PathBuf> {
    if let Some(asked) = std::env::var_os("PG_BIN") {
        return vec![PathBuf::from(asked)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(newest_first("/usr/lib/postgresql", ""));
    for homebrew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        folders.extend(newest_first(homebrew, "postgresql"));
    }
    folders
}

/// The `bin` folders of the versions below `parent`, newest first.
fn newest_first(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.trim_start_matches('@');
            Some((version.parse().unwrap_or(0), entry.path().join("bin")))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether files we make belong to user 0. There is no safe call for it in the standard library,
/// and `/proc` is not everywhere.
fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn postgres_user() -> Result<(u32, u32), ClusterError> {
    id_of_postgres("-u").zip(id_of_postgres("-g")).ok_or(ClusterError::NoUser)
}

/// `id` of the user `postgres`.
fn id_of_postgres(flag: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, "postgres"]).output().ok()?;
    std::str::from_utf8(output.stdout.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_newest_version_is_tried_first() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["postgresql@9", "postgresql@16", "postgresql@15", "redis"] {
            fs::create_dir_all(dir.path().join(name).join("bin")).unwrap();
        }
        let found = newest_first(dir.path().to_str().unwrap(), "postgresql");
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(dir.path()).unwrap()).collect();
        let expected = ["postgresql@16/bin", "postgresql@15/bin", "postgresql@9/bin"];
        assert_eq!(names, expected.map(Path::new));
    }

    #[test]
    fn the_password_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        write_private(&path, "secret").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
