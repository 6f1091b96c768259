//! A store in a bucket of a moto server of this test's own.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use docmill_storage::s3::S3Store;

use crate::support::moto::Moto;

fn client(server: &Moto) -> Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(server.endpoint())
        .force_path_style(true)
        .build();
    Client::from_conf(config)
}

/// Makes a bucket; its name.
pub(crate) async fn make_bucket(server: &Moto) -> String {
    let bucket = format!("b-{}", uuid::Uuid::new_v4());
    client(server).create_bucket().bucket(&bucket).send().await.unwrap();
    bucket
}

pub(crate) async fn store() -> (Moto, S3Store) {
    let server = Moto::start().await;
    let bucket = make_bucket(&server).await;
    let store = S3Store::with_client(client(&server), bucket);
    (server, store)
}
