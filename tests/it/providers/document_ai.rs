//! Document AI: slices, offsets, boxes, and what its errors ask for.

use docmill_core::config::OcrProvider::DocumentAi as Google;
use docmill_core::fault::Fault;
use docmill_core::model::{PageDefectKind, PageSource};
use docmill_testkit::document_ai::{Said, Script, Server, Straightened, Trouble};

use super::pictures::sent;
use super::*;
use crate::reading::papers;
use crate::support::documents;
use crate::support::whole::ReadWhole as _;

#[tokio::test(flavor = "multi_thread")]
async fn forty_pages_go_in_slices_within_the_limit_and_come_back_in_order_with_their_own_text() {
    for (imageless, calls) in [(false, vec![10, 15, 15]), (true, vec![10, 30])] {
        let server = Server::start(Script::default()).await.unwrap();
        let provider = document_ai(&server, |config| config.imageless = imageless);
        let reader = reader(&[Google], vec![(Google, Arc::new(provider))]);
        let transcript = reader.read(pictures::scans(40).into(), "sha", false).await.unwrap();
        let mut sizes: Vec<usize> = server.calls().iter().map(|call| call.pages.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, calls);
        assert_eq!(transcript.pages.len(), 40);
        for (number, page) in (1..).zip(&transcript.pages) {
            let text = page.text();
            assert!(pictures::says(&text, number), "page {number} says {text}");
            let rest = format!("Rechnung INV-{}-𝟚 für Zürich", pictures::width(number));
            assert!(text.ends_with(&rest), "page {number} says {text}");
            assert_eq!((page.number, page.source, page.quality), (number, PageSource::Ocr, 0.92));
            assert_eq!(page.languages, ["deu"]);
        }
        assert_eq!(transcript.provider, "document_ai");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_a_sound_text_layer_is_neither_sent_nor_paid_for() {
    let server = Server::start(Script::default()).await.unwrap();
    let provider = document_ai(&server, |_| ());
    let reader = reader(&[Google], vec![(Google, Arc::new(provider))]);
    let native = reader.read(documents::invoice("I-7").into(), "sha", false).await.unwrap();
    assert!(native.full_text().contains("I-7") && native.pages[0].source == PageSource::Native);
    assert_eq!(server.calls().len(), 0);
    // A hidden layer may say anything: neither is it believed, nor does it leave the house.
    let hidden = papers::scan(
        &papers::picture(papers::pdf(&[&papers::content(&["Total 480.00 EUR"])], "")),
        "hidden words",
        "595 0 0 842 0 0",
    );
    let scan = reader.read(hidden.into(), "sha", false).await.unwrap();
    assert!(scan.full_text().contains("Größe") && !scan.full_text().contains("hidden"));
    let calls = server.calls();
    assert_eq!(calls.len(), 1);
    assert!(!calls[0].request.to_string().contains("hidden"));
    let kind = calls[0].request.pointer("/rawDocument/mimeType").unwrap();
    assert!(kind.as_str().unwrap().starts_with("image/"), "one page goes as its picture");
}

#[tokio::test]
async fn what_was_read_from_a_turned_page_stands_where_it_stands_on_ours() {
    // A quarter turn clockwise of a picture `w` wide and `h` high: (x, y) -> (h - y, x).
    let turned = |seen: google::Seen| {
        let (width, height) = (f64::from(seen.width), f64::from(seen.height));
        let matrix = [0.0, -1.0, height, 1.0, 0.0, 0.0];
        let straightened = Some(Straightened { matrix, size: (height, width) });
        Said { straightened, ..Said::of_size(seen) }
    };
    let server = Server::start(Script::default().reading(turned)).await.unwrap();
    let provider = document_ai(&server, |_| ());
    for pages in [vec![sent(1)], vec![sent(1), sent(2)]] {
        let (readings, usage) = provider.read_pictures(&pages).await.unwrap();
        assert_eq!(usage.pages, u32::try_from(pages.len()).unwrap());
        for (page, reading) in pages.iter().zip(readings) {
            let (width, height) = (page.image.header.width, page.image.header.height);
            assert!(reading.transform.is_some());
            let found = reading.lines[0].words[0].bounding_box;
            let real = |pixels: u32| f32::from(u16::try_from(pixels).unwrap());
            let (x, y) = (0.1 * real(width), 0.1 * real(height));
            let off = [found.x - x, found.y - y, found.w - x, found.h - 0.2 * y];
            assert!(off.iter().all(|off| off.abs() < 1.0), "{found:?}, not at {x}, {y}");
        }
    }
}

#[tokio::test]
async fn scores_and_defects_come_by_their_names() {
    let bad = |seen| Said {
        score: 0.0,
        defects: vec![("blurry", 0.9), ("text_cutoff", 0.4), ("unheard_of", 1.0)],
        ..Said::of_size(seen)
    };
    let server = Server::start(Script::default().reading(bad)).await.unwrap();
    let (readings, _) = document_ai(&server, |_| ()).read_pictures(&[sent(1)]).await.unwrap();
    assert_eq!(readings[0].score, Some(0.0), "left out means zero");
    let kinds: Vec<PageDefectKind> = readings[0].defects.iter().map(|defect| defect.kind).collect();
    assert_eq!(kinds, [PageDefectKind::Blurry, PageDefectKind::TextCutoff]);
}

#[tokio::test]
async fn failures_in_words_of_google_ask_for_the_right_reaction() {
    let refused = Trouble::refused;
    let size = "Received message larger than max (5218782 vs. 4194304)";
    let too_large = Trouble::Refused {
        status: 429,
        code: "RESOURCE_EXHAUSTED",
        retry_after: None,
        message: size,
        reason: None,
    };
    let no_money = Trouble::Refused {
        status: 403,
        code: "PERMISSION_DENIED",
        retry_after: None,
        message: "scripted",
        reason: Some("BILLING_DISABLED"),
    };
    let throttled = |seconds| Fault::Throttled(Some(Duration::from_secs(seconds)));
    #[rustfmt::skip]
    let table = [
        // answer                                  times, calls, fault
        (Trouble::throttled(Some("9")),               1,     1, Some(throttled(9))),
        (Trouble::throttled(None),                    1,     1, Some(Fault::Throttled(None))),
        (too_large,                                   1,     1, Some(Fault::Rejected)),
        (no_money,                                    1,     1, Some(Fault::Denied)),
        (refused(401, "UNAUTHENTICATED"),             1,     1, Some(Fault::Denied)),
        (refused(404, "NOT_FOUND"),                   1,     1, Some(Fault::Denied)),
        (refused(503, "UNAVAILABLE"),                 1,     1, Some(Fault::Unavailable)),
        (refused(504, "DEADLINE_EXCEEDED"),           3,     3, Some(Fault::Transient)),
        (Trouble::Document(3),                        1,     1, Some(Fault::Rejected)),
        (Trouble::Document(14),                       1,     1, Some(Fault::Unavailable)),
        (Trouble::Cut,                                3,     3, Some(Fault::Transient)),
        (Trouble::Silence,                            3,     3, Some(Fault::Transient)),
        (Trouble::PageLost,                           1,     1, Some(Fault::Transient)),
    ];
    let mut runs = tokio::task::JoinSet::new();
    for (trouble, times, calls, fault) in table {
        runs.spawn(async move {
            let script = Script::default().troubled(vec![trouble.clone(); times]);
            let server = Server::start(script).await.unwrap();
            let provider = document_ai(&server, |config| config.timeout = Duration::from_secs(1));
            let ended = provider.read_pictures(&[sent(1), sent(2)]).await.err();
            // The governor spreads the times it tells.
            let found = ended.as_ref().map(|error| match (error.fault, fault) {
                (Fault::Throttled(Some(_)), Some(expected @ Fault::Throttled(_))) => expected,
                (found, _) => found,
            });
            assert_eq!((server.calls().len(), found), (calls, fault), "{trouble:?}");
            if let Some(error) = ended {
                assert!(!error.to_string().contains("scripted"), "{error}");
            }
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

#[tokio::test]
async fn a_version_of_the_processor_is_called_by_its_name_and_is_part_of_the_identity() {
    let server = Server::start(Script::default()).await.unwrap();
    let plain = document_ai(&server, |_| ());
    let version = "pretrained-ocr-v2.1-2024-08-07";
    let provider = document_ai(&server, |config| config.version = version.to_owned());
    let (readings, _) = provider.read_pictures(&[sent(1)]).await.unwrap();
    assert_eq!(readings[0].version.as_deref(), Some(version));
    assert_ne!(plain.identity(), provider.identity());
}
