//! A Redis server of the test's own: Debian's.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use docmill_core::config::{QueueBackend, QueueConfig};
use tempfile::TempDir;

/// A running server without files, killed when this is dropped.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    /// Of a server that speaks TLS: where its authority's certificate is.
    keys: Option<TempDir>,
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A free port below the ephemeral range: an ephemeral one could be another test's by the time the
/// server binds it.
fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| fastrand::u16(20_000..32_000));
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).unwrap()
}

impl Redis {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With settings of its own, as on its command line.
    pub(crate) async fn with(settings: &[&str]) -> Self {
        Self::start_at(&["--port"], settings, None).await
    }

    /// A server with TLS only, with a certificate of a private authority.
    pub(crate) async fn over_tls(settings: &[&str]) -> Self {
        let keys = tempfile::tempdir().unwrap();
        make_certificates(keys.path());
        let file = |name: &str| keys.path().join(name).display().to_string();
        let (key, certificate, authority) =
            (file("server.key"), file("server.pem"), file("authority.pem"));
        let tls = ["--tls-key-file", &key, "--tls-cert-file", &certificate].into_iter().chain([
            "--tls-ca-cert-file",
            &authority,
            "--tls-auth-clients",
            "no",
        ]);
        let settings: Vec<&str> = tls.chain(settings.iter().copied()).collect();
        Self::start_at(&["--port", "0", "--tls-port"], &settings, Some(keys)).await
    }

    async fn start_at(port_option: &[&str], settings: &[&str], keys: Option<TempDir>) -> Self {
        let port = free_port();
        let program = std::env::var("DOCMILL_REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".to_owned());
        let child = Command::new(&program)
            .args(port_option)
            .args([&port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} does not start ({error}): run `scripts/setup.sh test`")
            });
        let mut server = Self { child, port, keys };
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

    /// The certificate of the authority that vouches for a server of [`Redis::over_tls`].
    pub(crate) fn authority(&self) -> PathBuf {
        self.keys.as_ref().unwrap().path().join("authority.pem")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The server's address, `127.0.0.1:PORT`.
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

/// An authority, and a certificate by it for `localhost` and `127.0.0.1`, by Debian's openssl.
pub(crate) fn make_certificates(folder: &Path) {
    let run = |arguments: &str| {
        let done = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(folder)
            .output()
            .unwrap_or_else(|error| {
                panic!("openssl does not start ({error}): run `make setup`, which installs it")
            });
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(&format!(
        "req -x509 {curve} -days 2 -subj /CN=docmill-tests -keyout authority.key -out authority.pem \
         -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign"
    ));
    std::fs::write(
        folder.join("names"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n",
    )
    .unwrap();
    run(&format!("req {curve} -subj /CN=localhost -keyout server.key -out server.csr"));
    run("x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
         -extfile names -out server.pem");
}
