//! A queue that writes down what is done with each receipt, and is real otherwise.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::Result;
use docmill_queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, QueueTier, ReceiptHandle,
};
use tokio::sync::Semaphore;

use super::world::World;

/// The fate of one receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) body: String,
    pub(crate) extended: u32,
    pub(crate) acknowledged: u32,
    pub(crate) hidden: u32,
}

/// A queue that records the calls it gets.
pub(crate) struct RecordingQueue {
    inner: Arc<dyn MessageQueue>,
    fates: Mutex<BTreeMap<String, Fate>>,
    /// Messages handed out beyond the requested number.
    more: usize,
    /// One permit for each request to delete that may pass.
    deletions: Semaphore,
}

impl RecordingQueue {
    pub(crate) fn new(inner: Arc<dyn MessageQueue>) -> Self {
        let deletions = Semaphore::new(Semaphore::MAX_PERMITS);
        Self { inner, fates: Mutex::default(), more: 0, deletions }
    }

    /// One in the place of the world's queue.
    pub(crate) fn install(world: &mut World) -> Arc<Self> {
        let queue = Arc::new(Self::new(Arc::clone(&world.queue)));
        world.queue = Arc::clone(&queue) as Arc<dyn MessageQueue>;
        queue
    }

    /// One that does not answer to deletions until it may.
    pub(crate) fn holding_deletions(inner: Arc<dyn MessageQueue>) -> Self {
        Self { deletions: Semaphore::new(0), ..Self::new(inner) }
    }

    /// From now on it deletes.
    pub(crate) fn let_delete(&self) {
        self.deletions.add_permits(Semaphore::MAX_PERMITS);
    }

    /// A queue that hands out `more` messages than requested.
    pub(crate) fn handing_out(inner: Arc<dyn MessageQueue>, more: usize) -> Self {
        Self { more, ..Self::new(inner) }
    }

    /// Every receipt so far.
    pub(crate) fn fates(&self) -> Vec<Fate> {
        self.fates.lock().unwrap().values().cloned().collect()
    }

    fn note(&self, receipt: &ReceiptHandle, change: impl FnOnce(&mut Fate)) {
        change(self.fates.lock().unwrap().entry(receipt.0.clone()).or_default());
    }
}

#[async_trait]
impl MessageQueue for RecordingQueue {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deliveries = self.inner.receive(max, wait).await?;
        for delivery in &deliveries {
            self.note(&delivery.receipt, |fate| fate.body.clone_from(&delivery.body));
        }
        Ok(deliveries)
    }

    fn tiers(&self) -> Vec<QueueTier> {
        self.inner.tiers()
    }

    async fn receive_from(&self, tier: usize, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deliveries = self.inner.receive_from(tier, max + self.more, wait).await?;
        for delivery in &deliveries {
            self.note(&delivery.receipt, |fate| fate.body.clone_from(&delivery.body));
        }
        Ok(deliveries)
    }

    async fn try_acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<bool>> {
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.acknowledged += 1));
        self.inner.try_acknowledge(receipts).await
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let answers = self.inner.extend_visibility(receipts, visibility).await;
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.extended += 1));
        answers
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.acknowledged += 1));
        let _may = self.deletions.acquire().await.unwrap();
        self.inner.acknowledge(receipts).await
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        receipts.iter().for_each(|(receipt, _)| self.note(receipt, |fate| fate.hidden += 1));
        self.inner.hide(receipts).await
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        self.inner.send(messages).await
    }

    async fn depth(&self) -> Result<QueueDepth> {
        self.inner.depth().await
    }

    fn longest_hide(&self) -> Duration {
        self.inner.longest_hide()
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        self.inner.receives_before_dead().await
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        self.inner.receive_dead(max, hidden).await
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.inner.acknowledge_dead(receipts).await
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.inner.release_dead(receipts).await
    }

    async fn run_maintenance(&self) -> Result<u64> {
        self.inner.run_maintenance().await
    }
}
