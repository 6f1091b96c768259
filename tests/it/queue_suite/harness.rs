//! The queues that the suite runs over, each with its way of letting time pass.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill_compat::objects::ObjectQueue;
use docmill_core::config::{QueueConfig, TierConfig};
use docmill_core::model::Priority;
use docmill_queue::MessageQueue;
use docmill_queue::redis::RedisQueue;
use docmill_queue::sqs::SqsQueue;
use docmill_storage::folder::FolderStore;
use docmill_storage::s3::S3Store;
use docmill_testkit::sqs::Server;

use super::Harness;
use crate::support::memory_queue::MemoryQueue;
use crate::support::moto::Moto;
use crate::support::redis::Redis;
use crate::support::sqs::client;
use crate::support::world::s3_client;

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
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
        Arc::new(self.connect(&self.config(dead_after)).await)
    }

    async fn tiered(&self) -> Arc<dyn MessageQueue> {
        let mut config = self.config(None);
        let tier = |name| TierConfig { name, url: self.config(None).url, ..TierConfig::default() };
        config.tiers = [Priority::High, Priority::Low].map(tier).to_vec();
        Arc::new(self.connect(&config).await)
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
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
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

/// The same objects in moto's S3.
pub(crate) struct Bucket {
    moto: Moto,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        Self { moto: Moto::start().await }
    }
}

#[async_trait]
impl Harness for Bucket {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
        let client = s3_client(&self.moto.endpoint());
        let bucket = format!("b-{}", uuid::Uuid::new_v4());
        client.create_bucket().bucket(&bucket).send().await.unwrap();
        let store = S3Store::with_client(client, bucket);
        // Listings are kept as in production, only not as long.
        let queue = ObjectQueue::new(Arc::new(store), self.visibility(), dead_after);
        Arc::new(queue.with_list_pace(Duration::from_millis(200)))
    }

    fn visibility(&self) -> Duration {
        // Longer than many requests to a slow stand-in take between two polls.
        Duration::from_secs(8)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Redis, which lives in real time.
pub(crate) struct RedisServer {
    server: Redis,
}

impl RedisServer {
    pub(crate) async fn start() -> Self {
        Self { server: Redis::start().await }
    }

    fn config(&self, dead_after: Option<u32>) -> QueueConfig {
        QueueConfig {
            visibility: self.visibility(),
            max_receives: dead_after.unwrap_or(0),
            ..self.server.config(&format!("q[{}]", uuid::Uuid::new_v4()))
        }
    }
}

#[async_trait]
impl Harness for RedisServer {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
        Arc::new(RedisQueue::connect(&self.config(dead_after)).await.unwrap())
    }

    async fn tiered(&self) -> Arc<dyn MessageQueue> {
        let mut config = self.config(None);
        let tier = |name| TierConfig { name, ..TierConfig::default() };
        config.tiers = [Priority::High, Priority::Low].map(tier).to_vec();
        Arc::new(RedisQueue::connect(&config).await.unwrap())
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// SQS as moto understands it, in real time.
pub(crate) struct MotoSqs {
    moto: Moto,
}

impl MotoSqs {
    pub(crate) async fn start() -> Self {
        Self { moto: Moto::start().await }
    }

    async fn made(&self, dead_after: Option<u32>) -> QueueConfig {
        use aws_sdk_sqs::types::QueueAttributeName as Name;
        let here = client(&self.moto.endpoint());
        let name = format!("q-{}", uuid::Uuid::new_v4());
        let mut request = here.create_queue().queue_name(&name);
        if let Some(limit) = dead_after {
            let dead = here.create_queue().queue_name(format!("{name}-dead")).send().await;
            let url = dead.unwrap().queue_url.unwrap();
            let asked = here.get_queue_attributes().queue_url(url).attribute_names(Name::QueueArn);
            let arn = asked.send().await.unwrap().attributes.unwrap()[&Name::QueueArn].clone();
            let policy =
                format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"{limit}"}}"#);
            request = request.attributes(Name::RedrivePolicy, policy);
        }
        QueueConfig {
            url: request.send().await.unwrap().queue_url.unwrap(),
            visibility: self.visibility(),
            // moto supports groups on FIFO queues only.
            fair: false,
            ..QueueConfig::default()
        }
    }
}

#[async_trait]
impl Harness for MotoSqs {
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
        let config = self.made(dead_after).await;
        let queue = SqsQueue::with_client(client(&self.moto.endpoint()), &config).await;
        Arc::new(queue.unwrap())
    }

    async fn tiered(&self) -> Arc<dyn MessageQueue> {
        let mut config = self.made(None).await;
        for name in [Priority::High, Priority::Low] {
            let url = self.made(None).await.url;
            config.tiers.push(TierConfig { name, url, ..TierConfig::default() });
        }
        let queue = SqsQueue::with_client(client(&self.moto.endpoint()), &config).await;
        Arc::new(queue.unwrap())
    }

    fn forgets_old_receipts(&self) -> bool {
        false
    }

    fn visibility(&self) -> Duration {
        Duration::from_secs(4)
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
    async fn queue(&self, dead_after: Option<u32>) -> Arc<dyn MessageQueue> {
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
