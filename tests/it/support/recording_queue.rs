//! A queue that writes down what is done with each receipt, and is real otherwise.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill::fault::Result;
use docmill::queue::{DeadLetter, Delivery, Depth, Outgoing, Queue, Receipt, Tier};

/// What became of one receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) body: String,
    pub(crate) extended: u32,
    pub(crate) acknowledged: u32,
    pub(crate) hidden: u32,
}

/// The recorder.
pub(crate) struct RecordingQueue {
    inner: Arc<dyn Queue>,
    fates: Mutex<BTreeMap<String, Fate>>,
}

impl RecordingQueue {
    pub(crate) fn new(inner: Arc<dyn Queue>) -> Self {
        Self { inner, fates: Mutex::default() }
    }

    /// Every receipt so far.
    pub(crate) fn fates(&self) -> Vec<Fate> {
        self.fates.lock().unwrap().values().cloned().collect()
    }

    fn note(&self, receipt: &Receipt, change: impl FnOnce(&mut Fate)) {
        change(self.fates.lock().unwrap().entry(receipt.0.clone()).or_default());
    }
}

#[async_trait]
impl Queue for RecordingQueue {
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

    fn tiers(&self) -> Vec<Tier> {
        self.inner.tiers()
    }

    async fn receive_from(&self, tier: usize, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deliveries = self.inner.receive_from(tier, max, wait).await?;
        for delivery in &deliveries {
            self.note(&delivery.receipt, |fate| fate.body.clone_from(&delivery.body));
        }
        Ok(deliveries)
    }

    async fn win(&self, receipts: &[Receipt]) -> Vec<Result<bool>> {
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.acknowledged += 1));
        self.inner.win(receipts).await
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Vec<Result<()>> {
        let answers = self.inner.extend(receipts, visibility).await;
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.extended += 1));
        answers
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        receipts.iter().for_each(|receipt| self.note(receipt, |fate| fate.acknowledged += 1));
        self.inner.acknowledge(receipts).await
    }

    async fn hide(&self, receipts: &[(Receipt, Duration)]) -> Vec<Result<()>> {
        receipts.iter().for_each(|(receipt, _)| self.note(receipt, |fate| fate.hidden += 1));
        self.inner.hide(receipts).await
    }

    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<()>> {
        self.inner.send(messages).await
    }

    async fn depth(&self) -> Result<Depth> {
        self.inner.depth().await
    }

    fn longest_hide(&self) -> Duration {
        self.inner.longest_hide()
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        self.inner.receives_before_dead().await
    }

    async fn dead_receive(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        self.inner.dead_receive(max, hidden).await
    }

    async fn dead_acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        self.inner.dead_acknowledge(receipts).await
    }

    async fn dead_release(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        self.inner.dead_release(receipts).await
    }

    async fn maintain(&self) -> Result<u64> {
        self.inner.maintain().await
    }
}
