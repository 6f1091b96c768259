//! A bad page is repaired once and read again; the better reading stays.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use docmill_core::config::OcrProvider::DocumentAi as Google;
use docmill_core::model::{EncodedImage, PageText, PageUsage};
use docmill_pipeline::{PageSink, ReadOptions, ReadRequest, StepError};
use docmill_testkit::document_ai::{Said, Script, Server, Trouble};

use super::*;

/// Remembers what it was given.
#[derive(Default)]
pub(super) struct Kept {
    pages: Vec<PageText>,
    images: Vec<u32>,
    calls: Vec<(PageUsage, bool)>,
}

#[async_trait]
impl PageSink for Kept {
    async fn store_page(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> Result<(), StepError> {
        self.pages.push(page.clone());
        self.images.extend(repaired.map(|_| page.number));
        Ok(())
    }

    async fn after_call(&mut self, usage: &PageUsage, is_whole: bool) -> Result<(), StepError> {
        self.calls.push((usage.clone(), is_whole));
        Ok(())
    }
}

/// A server that scores the first reading of a page at 0.4, and the second as given.
async fn server(second: (f64, &'static str)) -> Server {
    let calls = AtomicUsize::new(0);
    let script = Script::default().reading(move |seen| {
        let (score, word) = match calls.fetch_add(1, Ordering::SeqCst) {
            0 => (0.4, "first reading of it"),
            _ => second,
        };
        Said { score, lines: vec![word.to_owned()], ..Said::of_size(seen) }
    });
    Server::start(script).await.unwrap()
}

async fn read(
    server: &Server,
    document: Vec<u8>,
    finished: Vec<PageText>,
) -> (Result<Transcript, StepError>, Kept) {
    let provider: Arc<dyn RemoteOcrProvider> = Arc::new(document_ai(server, |_| ()));
    let reader = repairing(reader(&[Google], vec![(Google, provider)]));
    let document = reader.open_document(document.into(), false).await.unwrap();
    let (sha256, options) = ("sha".to_owned(), ReadOptions::default());
    let mut kept = Kept::default();
    let reading = ReadRequest { document, sha256, finished, options };
    (reader.read_remaining(reading, &mut kept).await, kept)
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_threshold_a_page_is_repaired_once_and_the_better_reading_stays() {
    #[rustfmt::skip]
    let table = [
        // second reading                      text that stays         score  repaired
        ((0.9, "second reading of it"),        "second reading of it", 0.9,   true),
        ((0.2, "second reading of it"),        "first reading of it",  0.4,   false),
        // Prettier, but most words are gone.
        ((0.5, "second"),                      "first reading of it",  0.4,   false),
    ];
    for (second, text, score, repaired) in table {
        let server = server(second).await;
        let (transcript, kept) = read(&server, pictures::scans_on(110, 1), Vec::new()).await;
        let page = transcript.unwrap().pages.remove(0);
        assert_eq!((page.text().as_str(), page.quality, page.repaired), (text, score, repaired));
        assert_eq!(server.calls().len(), 2, "once, and never a third time");
        assert_eq!(kept.images, if repaired { vec![1] } else { vec![] });
        let [first, second] = kept.pages.as_slice() else { panic!("{:?}", kept.pages) };
        assert!(first.provider.as_ref().unwrap().provisional, "kept before the second call");
        assert!(!second.provider.as_ref().unwrap().provisional);
        let whole: Vec<bool> = kept.calls.iter().map(|(_, whole)| *whole).collect();
        assert_eq!(whole, [false, true], "the first one is made safe at once");
        assert!(!page.provider.unwrap().provisional);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_above_the_threshold_or_with_nothing_to_repair_is_read_once() {
    let server = Server::start(Script::default()).await.unwrap();
    let (transcript, kept) = read(&server, pictures::scans_on(110, 1), Vec::new()).await;
    assert_eq!((transcript.unwrap().quality, server.calls().len()), (0.92, 1));
    assert_eq!(kept.calls.iter().map(|(_, whole)| *whole).collect::<Vec<_>>(), [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_reading_that_an_earlier_claim_paid_for_is_not_bought_again() {
    let server = server((0.9, "never asked")).await;
    let document = pictures::scans_on(110, 1);
    server.set(
        Script::default()
            .reading(|seen| Said {
                score: 0.4,
                lines: vec!["first reading of it".to_owned()],
                ..Said::of_size(seen)
            })
            .troubled([]),
    );
    let (_, kept) = read(&server, document.clone(), Vec::new()).await;
    let first = kept.pages[0].clone();
    assert!(first.provider.as_ref().unwrap().provisional);
    let before = server.calls().len();
    server.set(Script::default().reading(|seen| Said {
        lines: vec!["second reading of it".to_owned()],
        ..Said::of_size(seen)
    }));
    let (transcript, kept) = read(&server, document, vec![first]).await;
    assert_eq!(server.calls().len(), before + 1, "only the repaired picture is read");
    assert_eq!(
        (texts(&transcript.unwrap()), kept.images),
        (vec!["second reading of it".to_owned()], vec![1])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_goes_down_before_the_second_reading_leaves_the_first() {
    let server = server((0.9, "never read")).await;
    // The first call is answered, those after it are not.
    let calls = AtomicUsize::new(0);
    let script = Script::default().reading(move |seen| {
        calls.fetch_add(1, Ordering::SeqCst);
        Said { score: 0.4, ..Said::of_size(seen) }
    });
    server.set(script.troubled([Trouble::Late(0), Trouble::refused(503, "UNAVAILABLE")]));
    let (transcript, _) = read(&server, pictures::scans_on(110, 1), Vec::new()).await;
    let transcript = transcript.unwrap();
    assert!(pictures::says(&transcript.full_text(), 1));
    assert!(!transcript.pages[0].provider.as_ref().unwrap().provisional);
}
