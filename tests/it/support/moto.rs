//! A moto server of the test's own: SQS and S3 as somebody else understood them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

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

/// The program: what `DOCMILL_MOTO_SERVER` names, else what the set-up made, else what is on PATH.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("DOCMILL_MOTO_SERVER") {
        return PathBuf::from(named);
    }
    let made = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/moto/bin/moto_server");
    if made.exists() { made } else { PathBuf::from("moto_server") }
}

impl Moto {
    pub(crate) async fn start() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let program = program();
        let child = Command::new(&program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{} does not start ({error}): run `scripts/setup.sh test`, which installs it below \
                     target/tools/moto, or name another by DOCMILL_MOTO_SERVER",
                    program.display()
                )
            });
        let mut server = Self { child, port };
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return server;
            }
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("{} ended at once: {status}", program.display());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} does not listen on port {port} after 60 s", program.display());
    }

    /// `http://127.0.0.1:PORT`, for every service.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
