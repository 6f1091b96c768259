//! Who reads when the first one does not.

use docmill_core::config::OcrProvider::{DocumentAi as Google, Tesseract, Textract as Amazon};
use docmill_core::fault::Fault;
use docmill_pipeline::StepError;
use docmill_testkit::document_ai::{Script, Server, Trouble};

use super::*;
use crate::support::whole::ReadWhole as _;

async fn read(
    troubles: Vec<Trouble>,
    order: &[OcrProvider],
) -> (Result<Transcript, StepError>, Server) {
    let server = Server::start(Script::default().troubled(troubles)).await.unwrap();
    let reader = reader(order, vec![(Google, Arc::new(document_ai(&server, |_| ())))]);
    (reader.read(pictures::scans(20).into(), "sha", false).await, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_one_reads_what_the_first_does_not_take_and_only_that() {
    let order = [Google, Tesseract];
    let (read, _server) = read(vec![Trouble::refused(400, "INVALID_ARGUMENT")], &order).await;
    let transcript = read.unwrap();
    let by_first = transcript.pages.iter().filter(|page| page.provider.is_some()).count();
    let by_next: Vec<String> =
        texts(&transcript).into_iter().filter(|text| text == "here").collect();
    assert!(by_first == 5 && by_next.len() == 15 || by_first == 15 && by_next.len() == 5);
    assert!(transcript.provider.contains("document_ai") && transcript.provider.contains("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_or_denies_us_is_not_asked_again_for_the_document() {
    for trouble in
        [Trouble::refused(503, "UNAVAILABLE"), Trouble::refused(403, "PERMISSION_DENIED")]
    {
        let (read, server) = read(vec![trouble; 9], &[Google, Tesseract]).await;
        assert_eq!(texts(&read.unwrap()), vec!["here"; 20]);
        assert!(server.calls().len() <= 2, "{} calls", server.calls().len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_busy_or_stumbles_is_waited_for_and_nobody_steps_in() {
    let busy = Trouble::throttled(Some("60"));
    let (read_busy, _server) = read(vec![busy; 9], &[Google, Tesseract]).await;
    let Err(StepError::Fault(error)) = read_busy else { panic!("{read_busy:?}") };
    assert!(matches!(error.fault, Fault::Throttled(Some(_))), "{error:?}");
    let (read_broken, _server) =
        read(vec![Trouble::refused(500, "INTERNAL"); 99], &[Google, Tesseract]).await;
    let Err(StepError::Fault(error)) = read_broken else { panic!("{read_broken:?}") };
    assert_eq!(error.fault, Fault::Transient);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nobody_left_the_document_ends_as_the_last_one_said() {
    let (read, _server) =
        read(vec![Trouble::refused(403, "PERMISSION_DENIED"); 9], &[Google]).await;
    let Err(StepError::Fault(error)) = read else { panic!("{read:?}") };
    assert_eq!(error.fault, Fault::Denied);
    assert!(error.to_string().contains("credentials"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_in_a_row_are_asked_in_their_order_and_a_document_may_wish_another() {
    let google =
        Server::start(Script::default().troubled(vec![Trouble::refused(503, "UNAVAILABLE"); 9]))
            .await
            .unwrap();
    let amazon = amazon::Server::start(amazon::Script::default()).await.unwrap();
    let reader = reader(
        &[Google, Amazon, Tesseract],
        vec![
            (Google, Arc::new(document_ai(&google, |_| ()))),
            (Amazon, Arc::new(textract(&amazon))),
        ],
    );
    let transcript = reader.read(pictures::scans(3).into(), "sha", false).await.unwrap();
    assert_eq!(transcript.provider, "textract");
    for (number, text) in (1..).zip(texts(&transcript)) {
        assert!(pictures::says(&text, number), "page {number} says {text}");
    }
    assert_eq!(amazon.answered(amazon::DETECT), 3);
    let options = docmill_pipeline::ReadOptions { order: Some(vec![Tesseract]), original: None };
    assert_ne!(reader.reader_identity(&options), reader.reader_identity(&Default::default()));
    let document = reader.open_document(pictures::scans(2).into(), false).await.unwrap();
    let mut sink = repair::Kept::default();
    let (finished, sha256) = (Vec::new(), "sha".to_owned());
    let reading = docmill_pipeline::ReadRequest { document, sha256, finished, options };
    let read = reader.read_remaining(reading, &mut sink).await.unwrap();
    assert_eq!(texts(&read), ["here", "here"]);
}
