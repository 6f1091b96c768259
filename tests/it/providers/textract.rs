//! Textract: pictures, jobs, and what its errors ask for.

use async_trait::async_trait;
use bytes::Bytes;
use docmill_core::config::OcrProvider::Textract as Amazon;
use docmill_core::fault::Fault;
use docmill_core::model::IngestionId;
use docmill_documents::ocr::textract::expense::ExpensePage;
use docmill_documents::ocr::{FileReader, PictureSizes, StoredFile};
use docmill_pipeline::remote_ocr::StoredOriginal;
use docmill_pipeline::{ReadOptions, ReadRequest, StepError};
use docmill_storage::{
    Etag, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult, S3Address,
};
use docmill_testkit::textract::{DETECT, EXPENSE, File, GET, START, Script, Server};

use super::repair::Kept;
use super::*;

const THROUGHPUT: &str = "ProvisionedThroughputExceededException";

fn file(token: &str) -> StoredFile {
    let word = |text: &str| text.to_owned();
    StoredFile { bucket: word("b"), key: word("a.pdf"), version: None, token: word(token) }
}

fn sizes(pages: u32) -> PictureSizes {
    (1..=pages).map(|page| (page, (1000, 2000))).collect()
}

#[tokio::test]
async fn a_job_is_waited_for_and_its_result_read_part_by_part() {
    let job = File { running: 3, part: 7, ..File::of_pages(12) };
    let server = Server::start(Script::default().with_any_file(job)).await.unwrap();
    let (read, usage) = textract(&server).read_file(&file("t"), &sizes(12)).await.unwrap();
    assert_eq!((read.len(), usage.pages, server.jobs()), (12, 12, 1));
    for (number, reading) in &read {
        let lines: Vec<String> = reading.lines.iter().map(TextLine::text).collect();
        assert_eq!(lines, [format!("Seite {number} von 12"), format!("Zürich-{number}")]);
        let place = reading.lines[0].words[1].bounding_box;
        assert!((place.x - 220.0).abs() < 0.5 && (place.y - 200.0).abs() < 0.5, "{place:?}");
        assert_eq!(reading.version.as_deref(), Some("1.0"));
    }
    assert!(server.answered(GET) > 12, "{} parts", server.answered(GET));
}

#[tokio::test]
async fn whoever_comes_with_the_same_token_finds_the_job_that_runs() {
    let job = File { running: 2, ..File::of_pages(2) };
    let server = Server::start(Script::default().with_any_file(job)).await.unwrap();
    for _ in 0..2 {
        let read = textract(&server).read_file(&file("ingestion-1"), &sizes(2)).await;
        assert_eq!(read.unwrap().0.len(), 2);
    }
    assert_eq!((server.answered(START), server.jobs()), (2, 1));
}

#[tokio::test]
async fn a_failed_job_gets_one_successor_and_then_no_third_however_often_it_is_asked_for() {
    let job = File { status: "FAILED", ..File::of_pages(2) };
    let server = Server::start(Script::default().with_any_file(job)).await.unwrap();
    for _ in 0..3 {
        let refused = textract(&server).read_file(&file("t"), &sizes(2)).await.unwrap_err();
        assert_eq!(refused.fault, Fault::Rejected);
    }
    assert_eq!(server.jobs(), 2);
}

#[tokio::test]
async fn a_token_that_stands_for_another_file_is_not_used() {
    let server = Server::start(Script::default().with_any_file(File::of_pages(2))).await.unwrap();
    let provider = textract(&server);
    provider.read_file(&file("t"), &sizes(2)).await.unwrap();
    let other = StoredFile { version: Some("v2".to_owned()), ..file("t") };
    assert_eq!(provider.read_file(&other, &sizes(2)).await.unwrap().0.len(), 2);
    assert_eq!(server.jobs(), 2);
}

#[tokio::test]
async fn failures_in_words_of_amazon_ask_for_the_right_reaction() {
    #[rustfmt::skip]
    let table = [
        // operation, code, status,                       times, calls, fault
        (DETECT, THROUGHPUT,                        400, 1, 1, Some(Fault::Throttled(None))),
        (START,  "LimitExceededException",          400, 1, 1, Some(Fault::Throttled(None))),
        (GET,    THROUGHPUT,                        400, 1, 1, Some(Fault::Throttled(None))),
        (DETECT, "UnsupportedDocumentException",    400, 1, 1, Some(Fault::Rejected)),
        (DETECT, "DocumentTooLargeException",       400, 1, 1, Some(Fault::Rejected)),
        (START,  "InvalidS3ObjectException",        400, 1, 1, Some(Fault::Rejected)),
    ];
    for (operation, code, status, times, calls, fault) in table {
        let script = Script::default().with_any_file(File::of_pages(1));
        let script = script.troubled(operation, vec![(code, status); times]);
        let server = Server::start(script).await.unwrap();
        let provider = textract(&server);
        let ended = if operation == DETECT {
            provider.read_pictures(&[pictures::sent(1)]).await.map(|_| ())
        } else {
            provider.read_file(&file("t"), &sizes(1)).await.map(|_| ())
        };
        let found = ended.err().map(|error| match error.fault {
            Fault::Throttled(_) => Fault::Throttled(None),
            other => other,
        });
        let made = server.calls().into_iter().filter(|call| call.operation == operation).count();
        assert_eq!((made, found), (calls, fault), "{operation} {code}");
    }
}

/// A bucket with one object whose ETag and version are told.
struct Bucket {
    etags: std::sync::Mutex<Vec<&'static str>>,
    version: Option<&'static str>,
}

#[async_trait]
impl ObjectStore for Bucket {
    fn describe(&self) -> String {
        "a bucket".to_owned()
    }

    async fn locate_in_s3(&self, key: &str) -> fault::Result<Option<S3Address>> {
        let mut etags = self.etags.lock().unwrap();
        let etag = if etags.len() > 1 { etags.remove(0) } else { etags[0] };
        Ok(Some(S3Address {
            bucket: "documents".to_owned(),
            key: key.to_owned(),
            version: self.version.map(str::to_owned),
            etag: Etag(etag.to_owned()),
        }))
    }

    async fn head(&self, _: &str) -> fault::Result<Option<ObjectMeta>> {
        unreachable!("nobody asks")
    }

    async fn get(&self, _: &str, _: GetOptions) -> fault::Result<GetResult> {
        unreachable!("nobody asks")
    }

    async fn put(&self, _: &str, _: Bytes, _: &BTreeMap<String, String>) -> fault::Result<Etag> {
        unreachable!("nobody asks")
    }

    async fn put_if_absent(&self, _: &str, _: Bytes) -> fault::Result<PutResult> {
        unreachable!("nobody asks")
    }

    async fn put_if_match(&self, _: &str, _: &Etag, _: Bytes) -> fault::Result<PutResult> {
        unreachable!("nobody asks")
    }

    async fn delete(&self, _: &str) -> fault::Result<()> {
        unreachable!("nobody asks")
    }

    async fn delete_if_match(&self, _: &str, _: &Etag) -> fault::Result<bool> {
        unreachable!("nobody asks")
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> fault::Result<Vec<ObjectEntry>> {
        unreachable!("nobody asks")
    }
}

/// Reads scans that lie in a bucket.
async fn read(
    server: &Server,
    bucket: Bucket,
    document: Vec<u8>,
) -> (Result<Transcript, StepError>, Kept, IngestionId) {
    let reader = reader(&[Amazon], vec![(Amazon, Arc::new(textract(server)))]);
    let id = IngestionId::random();
    let etag = Etag("one".to_owned());
    let original = StoredOriginal::new(Arc::new(bucket), "documents/a.pdf".to_owned(), etag, id);
    let options = ReadOptions { order: None, original: Some(original) };
    let document = reader.open_document(document.into(), false).await.unwrap();
    let (sha256, finished) = ("sha".to_owned(), Vec::new());
    let mut kept = Kept::default();
    let read =
        reader.read_remaining(ReadRequest { document, sha256, finished, options }, &mut kept).await;
    (read, kept, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scanned_pdf_in_a_bucket_is_read_by_a_job_on_exactly_the_version_that_was_seen() {
    let job = File { running: 1, ..File::of_pages(3) };
    let server = Server::start(Script::default().with_any_file(job)).await.unwrap();
    let bucket = Bucket { etags: vec!["one"].into(), version: Some("v7") };
    let (transcript, _, id) = read(&server, bucket, pictures::scans(3)).await;
    let transcript = transcript.unwrap();
    assert_eq!(texts(&transcript)[2], "Seite 3 von 3\nZürich-3");
    assert_eq!((transcript.pages[2].width, server.answered(DETECT)), (243.0, 0));
    let start = server.calls().into_iter().find(|call| call.operation == START).unwrap();
    let expected = serde_json::json!({
        "DocumentLocation":
            {"S3Object": {"Bucket": "documents", "Name": "documents/a.pdf", "Version": "v7"}},
        "ClientRequestToken": id.to_string(),
    });
    assert_eq!(start.request, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_replaced_is_read_from_the_pictures_that_were_seen() {
    for (etags, jobs) in [(vec!["two"], 0), (vec!["one", "two"], 1)] {
        let script = Script::default().with_any_file(File::of_pages(2));
        let server = Server::start(script).await.unwrap();
        let bucket = Bucket { etags: etags.into(), version: None };
        let (transcript, _, _) = read(&server, bucket, pictures::scans(2)).await;
        for (number, text) in (1..).zip(texts(&transcript.unwrap())) {
            assert!(pictures::says(&text, number), "page {number} says {text}");
        }
        assert_eq!((server.jobs(), server.answered(DETECT)), (jobs, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_a_job_could_not_read_are_read_from_their_pictures() {
    let job = File { status: "PARTIAL_SUCCESS", lost: vec![2], ..File::of_pages(3) };
    let server = Server::start(Script::default().with_any_file(job)).await.unwrap();
    let bucket = Bucket { etags: vec!["one"].into(), version: Some("v1") };
    let (transcript, _, _) = read(&server, bucket, pictures::scans(3)).await;
    let texts = texts(&transcript.unwrap());
    assert!(texts[0].starts_with("Seite 1") && texts[2].starts_with("Seite 3"), "{texts:?}");
    assert!(pictures::says(&texts[1], 2), "{texts:?}");
    assert_eq!(server.answered(DETECT), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_textract_cannot_reach_is_read_from_its_pictures() {
    let server = Server::start(Script::default()).await.unwrap();
    let bucket = Bucket { etags: vec!["one"].into(), version: None };
    let (transcript, _, _) = read(&server, bucket, pictures::scans(2)).await;
    assert!(pictures::says(&texts(&transcript.unwrap())[1], 2));
    assert_eq!((server.jobs(), server.answered(DETECT)), (0, 2));
}

#[tokio::test]
async fn the_fields_of_a_page_are_read_with_their_places_and_one_page_is_charged() {
    let script = Script::default()
        .with_summary(&[("TOTAL", "441,87 EUR"), ("OTHER", "x"), ("VENDOR_NAME", "Korkstein")])
        .with_line(&[("ITEM", "Paper"), ("PRICE", "178,00")]);
    let server = Server::start(script).await.unwrap();
    let service = expense_at(&server.endpoint());
    service.ping().await.unwrap();
    let page = ExpensePage { number: 3, width: 600.0, height: 800.0 };
    let image = pictures::sent(1).image;
    let (read, usage) = service.analyze_page(&image, page).await.unwrap();
    let names: Vec<&str> = read.fields.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["TOTAL", "VENDOR_NAME"]);
    let place = read.fields[0].place;
    assert_eq!((place.page, read.lines.len(), read.lines[0].len()), (3, 1, 2));
    let within =
        (place.bounding_box.x - 60.0).abs() < 0.1 && (place.confidence - 0.975).abs() < 0.01;
    assert!(within, "{place:?}");
    assert_eq!((usage.provider, usage.model.as_str(), usage.pages), ("textract", EXPENSE, 1));

    server.set(Script::default().troubled(EXPENSE, [("BadDocumentException", 400)]));
    let refused = service.analyze_page(&image, page).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Rejected);
    server.set(Script::default().troubled(EXPENSE, [("AccessDeniedException", 400)]));
    assert_eq!(service.ping().await.unwrap_err().fault, Fault::Denied);
}
