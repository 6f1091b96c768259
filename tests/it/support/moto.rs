//! A moto server for one test: an independent implementation of SQS and S3.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server, killed when this is dropped.
pub(crate) struct Moto {
    child: Child,
    port: u16,
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The Python that has moto: beside the server that `DOCMILL_MOTO_SERVER` names, else of what the set-up
/// made.
fn python() -> PathBuf {
    let made =
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/moto/bin/moto_server");
    std::env::var_os("DOCMILL_MOTO_SERVER")
        .map_or_else(made, PathBuf::from)
        .with_file_name("python3")
}

impl Moto {
    /// A server on a port of its own choice, once it listens.
    pub(crate) async fn start() -> Self {
        let program = python();
        // It reports its own port: a port that was just free may be another test's.
        let mut child = Command::new(&program)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/moto_in_turn.py"))
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{} does not start ({error}): run `scripts/setup.sh test`, which installs it below \
                     target/tools/moto, or name another by DOCMILL_MOTO_SERVER",
                    program.display()
                )
            });
        let said = child.stderr.take().unwrap();
        let (listening, told) = tokio::sync::oneshot::channel();
        // To its end: its log lines must not fill the pipe.
        std::thread::spawn(move || {
            let mut listening = Some(listening);
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if let Some(port) = told_port(&line)
                    && let Some(listening) = listening.take()
                {
                    // Unless the test is over.
                    let _late = listening.send(port);
                }
            }
        });
        let told = tokio::time::timeout(Duration::from_secs(60), told).await;
        let mut server = Self { child, port: 0 };
        match told {
            Ok(Ok(port)) => server.port = port,
            Ok(Err(_ended)) => panic!("{} ended at once", program.display()),
            Err(_elapsed) => panic!("{} does not listen after 60 s", program.display()),
        }
        server
    }

    /// `http://127.0.0.1:PORT`, for every service.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The port in ` * Running on http://127.0.0.1:35151`.
fn told_port(line: &str) -> Option<u16> {
    let (_, port) = line.split_once("Running on http://127.0.0.1:")?;
    port.trim().parse().ok()
}
