//! The queues that the suite runs over, each with its way of letting time pass.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::config::Credentials;
use docmill::config::QueueConfig;
use docmill::queue::Queue;
use docmill::queue::objects::ObjectQueue;
use docmill::queue::sqs::SqsQueue;
use docmill::store::folder::FolderStore;
use docmill::store::s3::S3Store;
use docmill_testkit::sqs::Server;

use super::Harness;
use crate::support::memory_queue::MemoryQueue;
use crate::support::moto::Moto;
use crate::support::sqs::client;

/// SQS, on the stand-in, whose clock is moved.
pub(crate) struct Sqs {
    pub(crate) server: Server,
}

impl Sqs {
    pub(crate) async fn start() -> Self {
        Self { server: Server::start().await.unwrap() }
    }

    /// The settings of a new queue there.
    pub(crate) fn config(&self, dead_after: Option<u32>) -> QueueConfig {
        let name = format!("q-{}", uuid::Uuid::new_v4());
        let url = match dead_after {
            Some(limit) => self.server.create_queue_with_dead(&name, limit).unwrap(),
            None => self.server.create_queue(&name, &[]).unwrap(),
        };
        QueueConfig {
            url,
            endpoint: self.server.endpoint(),
            visibility: self.visibility(),
            ..QueueConfig::default()
        }
    }

    pub(crate) async fn connect(&self, config: &QueueConfig) -> SqsQueue {
        SqsQueue::with_client(client(&self.server.endpoint()), config).await.unwrap()
    }
}

#[async_trait]
impl Harness for Sqs {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue> {
        Arc::new(self.connect(&self.config(dead_after)).await)
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn pass(&self, time: Duration) {
        self.server.advance(time);
    }
}

/// Marker objects in a folder, which live in real time.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub(crate) async fn start() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
}

#[async_trait]
impl Harness for Folder {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue> {
        let store = FolderStore::open(self.folder.path()).await.unwrap();
        Arc::new(ObjectQueue::new(Arc::new(store), self.visibility(), dead_after))
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Marker objects in a bucket of moto's, a server for each test.
pub(crate) struct Bucket {
    store: Arc<S3Store>,
    _server: Moto,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        let server = Moto::start().await;
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
            .region(aws_sdk_s3::config::Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(server.endpoint())
            .force_path_style(true)
            .build();
        let client = aws_sdk_s3::Client::from_conf(config);
        client.create_bucket().bucket("queue").send().await.unwrap();
        Self { store: Arc::new(S3Store::with_client(client, "queue")), _server: server }
    }
}

#[async_trait]
impl Harness for Bucket {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue> {
        // Listings are kept as in production, only not as long.
        let queue = ObjectQueue::new(self.store.clone(), self.visibility(), dead_after);
        Arc::new(queue.paced(Duration::from_millis(200)))
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(6)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// The memory queue of other tests, whose clock is moved.
pub(crate) struct Memory {
    made: Mutex<Vec<Arc<MemoryQueue>>>,
}

impl Memory {
    pub(crate) async fn start() -> Self {
        Self { made: Mutex::default() }
    }
}

#[async_trait]
impl Harness for Memory {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn Queue> {
        let queue = Arc::new(MemoryQueue::new(self.visibility(), dead_after));
        self.made.lock().unwrap().push(Arc::clone(&queue));
        queue
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn pass(&self, time: Duration) {
        for queue in self.made.lock().unwrap().iter() {
            queue.advance(time);
        }
    }
}
