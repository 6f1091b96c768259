//! The real program as a child process, with a world's addresses in its environment.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::world::World;

/// The program with a world's addresses in its environment; `settings` are more `SECTION__KEY`s.
pub(crate) fn docmill(world: &World, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let config = &world.config;
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command
        .args(arguments)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("DOCMILL__DATABASE__URL", config.database.url.reveal())
        .env("DOCMILL__QUEUE__URL", &config.queue.url)
        .env("DOCMILL__QUEUE__ENDPOINT", &config.queue.endpoint)
        .env("DOCMILL__QUEUE__WAIT", "1s")
        .env("DOCMILL__STORE__BACKEND", "folder")
        .env("DOCMILL__STORE__PATH", &config.store.path)
        .env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0")
        .env("DOCMILL__WORKER__DRAIN", "6s")
        .env("DOCMILL__JANITOR__ENABLED", "false")
        // The same whether the weights of the neural reader are installed or not.
        .env("DOCMILL__OCR__ENGINE", "tesseract")
        .env("DOCMILL__OCR__SECOND_LOOKS", "0");
    if let Some(llm) = &world.llm {
        command
            .env("DOCMILL__LLM__PROVIDER", "openai")
            .env("DOCMILL__LLM__BASE_URL", llm.base_url())
            .env("DOCMILL__LLM__MODEL", "scripted");
    }
    for (key, value) in settings {
        command.env(format!("DOCMILL__{key}"), value);
    }
    command
}

/// A running `docmill worker`; killed when dropped.
pub(crate) struct Process(Child, std::path::PathBuf);

impl Process {
    /// Starts a worker; `settings` are more `SECTION__KEY`s. Its log goes to a file in the
    /// world's folder.
    pub(crate) fn worker(world: &World, settings: &[(&str, &str)]) -> Self {
        Self::worker_at("warn,docmill=info", world, settings)
    }

    /// The same with a file of further settings.
    pub(crate) fn worker_with(world: &World, file: &Path, settings: &[(&str, &str)]) -> Self {
        Self::start(("warn,docmill=info", Some(file)), world, settings)
    }

    /// The same with programs of this folder before those of the system.
    pub(crate) fn worker_seeing(programs: &Path, world: &World, settings: &[(&str, &str)]) -> Self {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = docmill(world, &["worker"], settings);
        command.env("PATH", path);
        Self::spawn(command, "warn,docmill=info", world.logs.path())
    }

    /// The same with another level of its log.
    pub(crate) fn worker_at(level: &str, world: &World, settings: &[(&str, &str)]) -> Self {
        Self::start((level, None), world, settings)
    }

    fn start(
        (level, file): (&str, Option<&Path>),
        world: &World,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut command = docmill(world, &["worker"], settings);
        if let Some(file) = file {
            command.arg("--config").arg(file);
        }
        Self::spawn(command, level, world.logs.path())
    }

    /// Starts what is to be a worker; its log goes to a file in the folder.
    pub(crate) fn spawn(mut command: Command, level: &str, logs: &Path) -> Self {
        let log = logs.join(format!("worker-{}.log", fastrand::u64(..)));
        command
            .env(docmill_client::telemetry::LEVEL_VARIABLE, level)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap());
        Self(command.spawn().unwrap(), log)
    }

    /// The id of the process (PID).
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.1).unwrap()
    }

    /// The address of its health pages, once logged.
    pub(crate) fn pages(&self) -> String {
        let log = self.log();
        let (_, address) = log.split_once("health pages on http://").unwrap();
        let end = address.find(|c: char| !c.is_ascii_digit() && !":.".contains(c));
        address.get(..end.unwrap_or(address.len())).unwrap().to_owned()
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Asks the process to stop, by SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = self.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Whether the process has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the worker has not ended after {patience:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.1).unwrap_or_default());
        }
        // Gone already in most tests.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A fake Tesseract that hangs on its pages as long as `hang` exists; it writes a line to `calls`
/// for each requested page.
pub(crate) fn hanging_tesseract(folder: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("tesseract");
    let (hang, calls) = (folder.join("hang"), folder.join("calls"));
    let text = format!(
        "#!/bin/sh\n\
         case \"$*\" in *--version*|*--list-langs*) exec tesseract \"$@\";; esac\n\
         echo $$ >> '{calls}'\n\
         while [ -e '{hang}' ]; do sleep 0.1; done\n\
         exec tesseract \"$@\"\n",
        calls = calls.display(),
        hang = hang.display(),
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// How often the program was asked to read a page.
pub(crate) fn calls(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("calls")).map_or(0, |text| text.lines().count())
}
