//! A moto server of this test's own.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use docmill_storage::store::s3::S3Store;

pub(super) struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn start() -> Server {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let child = Command::new("python3")
        .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { child, port };
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return server;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("moto does not start");
}

fn client(server: &Server) -> Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(format!("http://127.0.0.1:{}", server.port))
        .force_path_style(true)
        .build();
    Client::from_conf(config)
}

pub(super) async fn store() -> (Server, S3Store) {
    let server = start().await;
    let client = client(&server);
    let bucket = format!("b-{}", uuid::Uuid::new_v4());
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    (server, S3Store::with_client(client, bucket))
}
