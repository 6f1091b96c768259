//! A dead-letter queue whose letters reappear during a pass, as when reading takes longer than
//! their hiding.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docmill_core::fault::Result;
use docmill_queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};

/// Letters in it.
const LETTERS: usize = 25;

/// Names no row with any of its letters.
#[derive(Debug, Default)]
pub(crate) struct EndlessLetters {
    next: AtomicUsize,
}

fn each<T>(entries: &[T]) -> Vec<Result<()>> {
    entries.iter().map(|_| Ok(())).collect()
}

#[async_trait]
impl MessageQueue for EndlessLetters {
    fn describe(&self) -> String {
        "letters without end".to_owned()
    }

    async fn receive(&self, _max: usize, _wait: Duration) -> Result<Vec<Delivery>> {
        Ok(Vec::new())
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        _visibility: Duration,
    ) -> Vec<Result<()>> {
        each(receipts)
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        each(receipts)
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        each(receipts)
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        each(messages)
    }

    async fn depth(&self) -> Result<QueueDepth> {
        Ok(QueueDepth { dead: Some(LETTERS as u64), ..QueueDepth::default() })
    }

    fn longest_hide(&self) -> Duration {
        Duration::from_secs(12 * 3600)
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(Some(1000))
    }

    async fn receive_dead(&self, max: usize, _hidden: Duration) -> Result<Vec<DeadLetter>> {
        tokio::task::yield_now().await;
        let letter = |_| {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % LETTERS;
            let delivery = Delivery {
                message_id: format!("letter-{number}"),
                body: format!("00000000-0000-4000-8000-{number:012}"),
                receipt: ReceiptHandle(format!("receipt-{number}")),
                receive_count: 1,
                sent_at: None,
                first_received_at: None,
                received: Instant::now(),
                priority: None,
                tenant: None,
                traceparent: None,
                origin: None,
            };
            DeadLetter { delivery }
        };
        Ok((0..max).map(letter).collect())
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        each(receipts)
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        each(receipts)
    }

    async fn run_maintenance(&self) -> Result<u64> {
        Ok(0)
    }
}
