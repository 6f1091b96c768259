//! Paid pages are kept and booked, however the reading ends.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use docmill_core::config::OcrProvider::DocumentAi as Google;
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{EncodedImage, PagePicture, PageText, PageUsage, ProviderReading};
use docmill_documents::ocr::ProviderCallLimits;
use docmill_pipeline::{PageSink, ReadOptions, ReadRequest, StepError};
use tokio::sync::Semaphore;

use super::*;
use crate::support::world::SOON;

/// Reads one page a call, and answers when it is let.
struct Slow {
    begun: AtomicU32,
    may_answer: Semaphore,
    answered: Semaphore,
}

impl Slow {
    fn new() -> Arc<Self> {
        let (may_answer, answered) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { begun: AtomicU32::new(0), may_answer, answered })
    }
}

#[async_trait]
impl RemoteOcrProvider for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn identity(&self) -> String {
        "slow".to_owned()
    }

    fn call_limits(&self) -> ProviderCallLimits {
        ProviderCallLimits { pages: 1, bytes: 1 << 20 }
    }

    async fn read_pictures(
        &self,
        _: &[PagePicture],
    ) -> fault::Result<(Vec<ProviderReading>, PageUsage)> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.may_answer.acquire().await.unwrap().forget();
        self.answered.add_permits(1);
        let bounding_box = BoundingBox { x: 9.0, y: 9.0, w: 90.0, h: 9.0 };
        let word =
            TextWord { text: "word".into(), bounding_box, confidence: 0.9, unwitnessed: false };
        let reading = ProviderReading {
            lines: vec![TextLine { words: vec![word] }],
            score: Some(0.9),
            ..ProviderReading::default()
        };
        Ok((
            vec![reading],
            PageUsage {
                provider: "slow",
                model: "m".to_owned(),
                pages: 1,
                tokens: docmill_core::model::ModelUsage::default(),
                class: docmill_core::model::PriceClass::default(),
            },
        ))
    }

    async fn ping(&self) -> fault::Result<()> {
        Ok(())
    }
}

/// Allows so many calls, which are answered once it is asked for one more, and counts what was kept
/// and booked.
struct Purse {
    slow: Arc<Slow>,
    allowed: u32,
    asked: u32,
    waits_for_answers: bool,
    kept: u32,
    booked: u32,
}

#[async_trait]
impl PageSink for Purse {
    async fn store_page(&mut self, _: &PageText, _: Option<EncodedImage>) -> Result<(), StepError> {
        self.kept += 1;
        Ok(())
    }

    async fn before_call(&mut self) -> Result<(), StepError> {
        self.asked += 1;
        if self.asked <= self.allowed {
            return Ok(());
        }
        self.slow.may_answer.add_permits(100);
        if self.waits_for_answers {
            self.slow.answered.acquire_many(self.allowed).await.unwrap().forget();
        }
        Err(Error::new(Fault::OverBudget(Duration::ZERO), "nothing is left").into())
    }

    async fn after_call(&mut self, _: &PageUsage, _: bool) -> Result<(), StepError> {
        self.booked += 1;
        Ok(())
    }
}

/// Reads until the purse is empty; returns it, and the calls that were begun.
async fn read_until_spent(waits_for_answers: bool) -> (Purse, u32) {
    let slow = Slow::new();
    let provider: Arc<dyn RemoteOcrProvider> = Arc::clone(&slow) as _;
    let reader = reader(&[Google], vec![(Google, provider)]);
    let document = reader.open_document(pictures::scans(9).into(), false).await.unwrap();
    let (finished, sha256, options) = (Vec::new(), "sha".to_owned(), ReadOptions::default());
    let reading = ReadRequest { document, sha256, finished, options };
    let (allowed, asked, kept, booked) = (3, 0, 0, 0);
    let mut purse =
        Purse { slow: Arc::clone(&slow), allowed, asked, waits_for_answers, kept, booked };
    let read = tokio::time::timeout(SOON, reader.read_remaining(reading, &mut purse)).await;
    let Ok(ended) = read else { panic!("calls under way are not looked after while it waits") };
    let Err(StepError::Fault(error)) = ended else { panic!("{ended:?}") };
    assert!(matches!(error.fault, Fault::OverBudget(_)), "{error:?}");
    (purse, slow.begun.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_way_are_kept_and_booked_when_the_budget_says_no_to_the_next() {
    let (purse, begun) = read_until_spent(false).await;
    assert_eq!((begun, purse.booked, purse.kept), (3, 3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_way_go_on_while_their_document_waits_to_be_allowed_the_next() {
    let (purse, begun) = read_until_spent(true).await;
    assert_eq!((begun, purse.booked, purse.kept), (3, 3, 3));
}
