//! An expensive answer, shared by all requests within two seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// How old an answer may be.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(2);

/// The last answer to one question. It is asked once at a time, however many want to know.
#[derive(Debug)]
pub(super) struct SharedAnswer<T> {
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone + Send + 'static> SharedAnswer<T> {
    /// Nothing is known yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { last: Mutex::new(None) })
    }

    /// The answer, from `ask` unless a fresh one is there; `None` if asking panicked. Asking
    /// continues after the client has gone: otherwise a client that connects and leaves could
    /// restart it again and again.
    pub(super) async fn find(
        self: &Arc<Self>,
        ask: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(self);
        let asking = tokio::spawn(async move {
            let mut last = shared.last.lock().await;
            if let Some((at, known)) = &*last
                && at.elapsed() < MAX_ANSWER_AGE
            {
                return known.clone();
            }
            let answer = ask.await;
            *last = Some((Instant::now(), answer.clone()));
            answer
        });
        asking.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_who_ask_at_once_cost_one_question_every_two_seconds() {
        let (shared, asked) = (SharedAnswer::new(), Arc::new(AtomicU32::new(0)));
        let ask = || {
            let asked = Arc::clone(&asked);
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                asked.fetch_add(1, Ordering::Relaxed) + 1
            }
        };
        let crowd = futures::future::join_all((0..1_000).map(|_| shared.find(ask()))).await;
        assert!(crowd.iter().all(|answer| *answer == Some(1)));
        tokio::time::sleep(MAX_ANSWER_AGE).await;
        assert_eq!(shared.find(ask()).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_and_leaves_does_not_have_it_asked_again() {
        let (shared, asked) = (SharedAnswer::new(), Arc::new(AtomicU32::new(0)));
        for _ in 0..50 {
            let asked = Arc::clone(&asked);
            let ask = async move {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            let gone = tokio::time::timeout(Duration::from_millis(1), shared.find(ask)).await;
            assert!(gone.is_err());
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
