//! A Redis server of the test's own: Debian's.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use docmill::config::{QueueBackend, QueueConfig};

/// A running server without files, killed when this is dropped.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Redis {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With settings of its own, as on its command line.
    pub(crate) async fn with(settings: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let program = std::env::var("DOCMILL_REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".to_owned());
        let child = Command::new(&program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} does not start ({error}): run `scripts/setup.sh test`")
            });
        let mut server = Self { child, port };
        for _ in 0..300 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return server;
            }
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("{program} ended at once: {status}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{program} does not listen on port {port}");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The settings of a queue there.
    pub(crate) fn config(&self, prefix: &str) -> QueueConfig {
        QueueConfig {
            backend: QueueBackend::Redis,
            redis_url: self.url().into(),
            redis_prefix: prefix.to_owned(),
            ..QueueConfig::default()
        }
    }

    /// A plain connection, to look at keys and to break them.
    pub(crate) async fn look(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}
