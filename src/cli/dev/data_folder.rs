//! The data folder: what is in it, who may use it, and the settings that follow.

use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::cluster::{CrashDurability, PrivatePostgres};
use docmill_core::config::{Config, QueueBackend, SecretString, StoreBackend};

/// The subfolders that `--fresh` removes.
const OURS: [&str; 3] = ["postgres", "store", "queue"];

/// A data folder in use by this process.
pub(super) struct DataFolder {
    dir: PathBuf,
    cluster: PrivatePostgres,
    _lock: File,
}

impl DataFolder {
    /// Takes the folder, makes what is missing and starts Postgres.
    pub(super) async fn open(dir: &Path, fresh: bool) -> anyhow::Result<Self> {
        let in_vain = || format!("cannot use {} as data folder (--data)", dir.display());
        fs::create_dir_all(dir).with_context(in_vain)?;
        let dir = dir.canonicalize().with_context(in_vain)?;
        let lock = File::create(dir.join("lock")).with_context(in_vain)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "{} is in use by another `docmill dev`: stop it, or choose another --data",
                dir.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(in_vain),
        }
        if fresh {
            for part in OURS {
                remove_if_there(&dir.join(part)).with_context(in_vain)?;
            }
        }
        let cluster =
            PrivatePostgres::start(&dir.join("postgres"), CrashDurability::Durable).await?;
        Ok(Self { dir, cluster, _lock: lock })
    }

    /// The settings in force, but for what this folder decides.
    pub(super) fn apply_to(&self, mut config: Config) -> Config {
        config.database.url = SecretString::from(self.cluster.url("postgres"));
        config.store.backend = StoreBackend::Folder;
        config.store.path = self.dir.join("store");
        config.queue.backend = QueueBackend::Folder;
        config.queue.path = self.dir.join("queue");
        // Interactive use: stop soon, and release interrupted work soon.
        config.queue.wait = Duration::from_secs(1);
        config.worker.drain = config.worker.drain.min(Duration::from_secs(10));
        // Another one may run beside it.
        if TcpListener::bind(config.web.address).is_err() {
            config.web.address.set_port(0);
        }
        config
    }

    /// Stops Postgres.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.cluster.stop().await.context("stopping the private Postgres")
    }
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
