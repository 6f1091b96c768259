//! A private Postgres server for embedded mode and tests: created, started and stopped without
//! installing anything, or writing outside its folder.
//!
//! It listens on a free port of 127.0.0.1, with a random password stored in the folder. Not
//! promised: tuning, backups, upgrades from another major version. A folder belongs to one process
//! at a time, by a lock that ends with the process; a killed process's server is reused.

mod programs;

use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use programs::PostgresPrograms;

/// Durability in a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashDurability {
    /// A crash loses nothing that was committed.
    Durable,
    /// The whole cluster; for tests.
    Fast,
}

/// Why there is no private Postgres.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Postgres is not installed; holds the program that was not found.
    #[error(
        "Postgres is not installed ({0} not found in $PG_BIN, PATH, /usr/lib/postgresql or \
         Homebrew): run `apt-get install postgresql` or `brew install postgresql@17`, or set \
         database.url to a server of your own"
    )]
    NotInstalled(&'static str),
    /// We are root, and there is no user to run the server as.
    #[error(
        "Postgres refuses to run as root, and there is no user `postgres` to run it as: start \
         docmill as another user, or create that user"
    )]
    NoUser,
    /// Another living process uses the folder.
    #[error("{} is in use by another docmill process", .0.display())]
    InUse(PathBuf),
    /// A program failed; with the end of its output.
    #[error("{program} failed: {said}")]
    Program {
        /// The program that failed: `initdb` or `pg_ctl`.
        program: &'static str,
        /// The end of its output or of the server's log.
        said: String,
    },
    /// The folder could not be prepared.
    #[error("cannot prepare {}: {source}", path.display())]
    Folder {
        /// The file or folder that could not be prepared.
        path: PathBuf,
        /// The error that the system returned.
        source: std::io::Error,
    },
}

/// A running private Postgres; stopped when dropped.
#[derive(Debug)]
pub struct PrivatePostgres {
    programs: PostgresPrograms,
    dir: PathBuf,
    port: u16,
    password: String,
    running: bool,
    /// Locked as long as we live; the system releases it with the process, however that ends.
    _lock: File,
}

/// `initdb` takes seconds on a busy machine; recovery after a crash can take longer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

impl PrivatePostgres {
    /// Creates the cluster in `dir` if missing, starts it, and waits until it answers.
    ///
    /// # Errors
    /// Postgres is not installed, no user to run it as, a folder in use or unusable, or a program
    /// that failed, with the end of its output.
    pub async fn start(dir: &Path, durability: CrashDurability) -> Result<Self, ClusterError> {
        let programs = PostgresPrograms::find()?;
        let created = fs::create_dir_all(dir).and_then(|()| dir.canonicalize());
        let dir =
            created.map_err(|source| ClusterError::Folder { path: dir.to_owned(), source })?;
        let lock = lock_folder(&dir)?;
        programs.change_owner(&dir)?;
        let password = load_password(&dir, &programs)?;
        let mut cluster = Self { programs, dir, port: 0, password, running: false, _lock: lock };
        cluster.init_cluster().await?;
        cluster.port = match cluster.port_of_running().await {
            Some(port) => port,
            None => cluster.launch(durability).await?,
        };
        cluster.running = true;
        Ok(cluster)
    }

    /// The address of a database of this cluster; `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// Stops the server: open transactions are rolled back, everything committed is written.
    ///
    /// # Errors
    /// `pg_ctl` failed; the server may still run.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        self.running = false;
        let output = self.run("pg_ctl", &STOP).await?;
        if output.status.success() { Ok(()) } else { Err(self.failure("pg_ctl", &output)) }
    }

    /// Stops the server, which ends every connection, and starts it again at the same address.
    ///
    /// # Errors
    /// `pg_ctl` failed; the server may be down.
    pub async fn restart(&self) -> Result<(), ClusterError> {
        let log = self.dir.join("log");
        let log = log.to_string_lossy();
        let output = self.run("pg_ctl", &["-m", "fast", "-w", "-s", "-l", &log, "restart"]).await?;
        if output.status.success() { Ok(()) } else { Err(self.failure("pg_ctl", &output)) }
    }

    fn data_folder(&self) -> PathBuf {
        self.dir.join("data")
    }

    async fn run(&self, program: &'static str, arguments: &[&str]) -> Result<Output, ClusterError> {
        let mut command = tokio::process::Command::from(self.programs.command(program));
        command.arg("-D").arg(self.data_folder()).args(arguments).current_dir(&self.dir);
        let said = match tokio::time::timeout(COMMAND_TIMEOUT, command.kill_on_drop(true).output())
            .await
        {
            Ok(Ok(output)) => return Ok(output),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("timed out after {} s", COMMAND_TIMEOUT.as_secs()),
        };
        Err(ClusterError::Program { program, said })
    }

    /// `initdb`, unless it was done. A folder that a killed `initdb` left half made is made anew.
    async fn init_cluster(&self) -> Result<(), ClusterError> {
        if self.dir.join("made").exists() {
            return Ok(());
        }
        let path = self.data_folder();
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|source| ClusterError::Folder { path, source })?;
        }
        let secret = format!("--pwfile={}", self.dir.join("password").display());
        let arguments =
            ["-U", "postgres", "-A", "scram-sha-256", &secret, "-E", "UTF8", "--no-locale"];
        let output = self.run("initdb", &arguments).await?;
        if !output.status.success() {
            return Err(self.failure("initdb", &output));
        }
        let path = self.dir.join("made");
        fs::write(&path, "").map_err(|source| ClusterError::Folder { path, source })
    }

    /// The port of a server that a killed process left running in our folder.
    async fn port_of_running(&self) -> Option<u16> {
        let status = self.run("pg_ctl", &["status"]).await.ok()?;
        if !status.status.success() {
            return None;
        }
        let lines = fs::read_to_string(self.data_folder().join("postmaster.pid")).ok()?;
        lines.lines().nth(3)?.trim().parse().ok()
    }

    /// Starts the server on a free port; retries if another process takes the port.
    async fn launch(&self, durability: CrashDurability) -> Result<u16, ClusterError> {
        let log = self.dir.join("log");
        let log = log.to_string_lossy();
        let mut tries = 0;
        loop {
            let port = free_port()
                .map_err(|source| ClusterError::Folder { path: self.dir.clone(), source })?;
            let options = self.server_options(port, durability);
            let arguments = ["-l", &log, "-w", "-t", "90", "-o", &options, "start"];
            let output = self.run("pg_ctl", &arguments).await?;
            if output.status.success() {
                return Ok(port);
            }
            tries += 1;
            if tries == 3 {
                return Err(self.failure("pg_ctl", &output));
            }
        }
    }

    fn server_options(&self, port: u16, durability: CrashDurability) -> String {
        // A socket's path is limited to 107 bytes; only psql needs it, so long paths go without.
        let socket = self.dir.to_string_lossy();
        let usable = socket.len() < 80 && !socket.contains([' ', '\'', '"', ',', '@']);
        let socket = if usable { socket.as_ref() } else { "''" };
        let fast = match durability {
            CrashDurability::Durable => "",
            CrashDurability::Fast => {
                " -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
            }
        };
        format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={socket} \
             -c max_connections=200{fast}"
        )
    }

    /// A program's or the server's failure, with the end of its output.
    fn failure(&self, program: &'static str, output: &Output) -> ClusterError {
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        if let Ok(log) = fs::read_to_string(self.dir.join("log")) {
            said.push_str(&log);
        }
        let lines: Vec<&str> = said.lines().collect();
        let end = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default();
        ClusterError::Program { program, said: end.join("\n") }
    }
}

/// `fast` ends connections instead of waiting for them.
const STOP: [&str; 5] = ["-m", "fast", "-w", "-s", "stop"];

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if self.running {
            let mut command = self.programs.command("pg_ctl");
            command.arg("-D").arg(self.data_folder()).args(STOP).current_dir(&self.dir);
            if let Err(error) = command.output() {
                tracing::warn!(%error, "cannot stop the private Postgres");
            }
        }
    }
}

fn lock_folder(dir: &Path) -> Result<File, ClusterError> {
    let path = dir.join("lock");
    let failed = |source| ClusterError::Folder { path: path.clone(), source };
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ClusterError::InUse(dir.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// The password of this folder, made once.
fn load_password(dir: &Path, programs: &PostgresPrograms) -> Result<String, ClusterError> {
    let path = dir.join("password");
    if let Ok(password) = fs::read_to_string(&path)
        && !password.trim().is_empty()
    {
        return Ok(password.trim().to_owned());
    }
    let password = uuid::Uuid::new_v4().simple().to_string();
    programs::write_private(&path, &password)
        .map_err(|source| ClusterError::Folder { path: path.clone(), source })?;
    programs.change_owner(&path)?;
    Ok(password)
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
