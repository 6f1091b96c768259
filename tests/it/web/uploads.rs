//! Handing documents in over HTTP.

use docmill_core::config::WebToken;
use docmill_core::model::Priority;
use reqwest::{Method, RequestBuilder, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::desk::{WebConsole, form_fields, send, token_of};
use crate::support::documents;
use crate::support::world::SOON;

fn upload(desk: &WebConsole, query: &str, bytes: Vec<u8>) -> RequestBuilder {
    desk.call(Method::POST, &format!("/documents{query}"), "producer").body(bytes)
}

const DOCUMENTS: &str = "SELECT count(*) FROM document";

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_handed_in_is_stored_queued_and_found_and_the_same_one_is_known() {
    let desk = WebConsole::open().await;
    let query = "?name=../../march%20%2F%3Cb%3E.pdf&kind=invoice&priority=high";
    let done = send(upload(&desk, query, documents::invoice("L-1"))).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    let answer = done.json();
    assert_eq!((&answer["fate"], &answer["status"]), (&"submitted".into(), &"in-progress".into()));
    let id = answer["ingestion_id"].as_str().unwrap();
    assert_eq!(done.location(), format!("/api/v1/ingestions/{id}"));
    let seen = desk.get(&format!("/ingestions/{id}"), "producer").await.json();
    assert_eq!((&seen["tenant"], &seen["kind"]), (&"acme".into(), &"invoice".into()));
    assert_eq!(seen["original_name"], "<b>.pdf");
    let stored = desk.folder.path().join("store").join(seen["file_path"].as_str().unwrap());
    assert_eq!(std::fs::read(stored).unwrap(), documents::invoice("L-1"));
    let again = send(upload(&desk, "?name=b.pdf", documents::invoice("L-1"))).await.json();
    assert_eq!(
        (&again["fate"], &again["ingestion_id"]),
        (&"known".into(), &answer["ingestion_id"])
    );
    for (query, bytes, status) in [
        ("", b"no document\0".to_vec(), StatusCode::UNPROCESSABLE_ENTITY),
        ("", Vec::new(), StatusCode::UNPROCESSABLE_ENTITY),
        ("?kind=nonsense", documents::invoice("L-2"), StatusCode::BAD_REQUEST),
        ("?priority=urgent", documents::invoice("L-2"), StatusCode::BAD_REQUEST),
        ("?tenant=rival", documents::invoice("L-2"), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(send(upload(&desk, query, bytes)).await.status, status, "{query}");
    }
    assert_eq!(desk.scalar(DOCUMENTS).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_named_as_a_script_is_a_name_on_pages_and_no_path_in_the_store() {
    let desk = WebConsole::open().await;
    let viewer = desk.browser("viewer").await;
    for (number, (sent, kept)) in [
        ("<script>alert(1)<|script>.html", "<script>alert(1)<|script>.html"),
        ("\" onfocus=alert(1) autofocus x=\".svg", "\" onfocus=alert(1) autofocus x=\".svg"),
        ("$(touch x);`id`&&.js", "$(touch x);`id`&&.js"),
        ("..\\..\\run.php", "run.php"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("invoice\u{202e}fdp.exe", "invoice\u{202e}fdp.exe"),
    ]
    .into_iter()
    .enumerate()
    {
        let named = percent_encoding::utf8_percent_encode(sent, percent_encoding::NON_ALPHANUMERIC);
        let done = send(upload(
            &desk,
            &format!("?name={named}"),
            documents::invoice(&format!("S-{number}")),
        ))
        .await;
        assert_eq!(done.status, StatusCode::OK, "{sent}: {done:?}");
        let answer = done.json();
        let id = answer["ingestion_id"].as_str().unwrap();
        let seen = desk.get(&format!("/ingestions/{id}"), "producer").await.json();
        assert_eq!(seen["original_name"], kept);
        let document = answer["document_id"].as_str().unwrap();
        let key = seen["file_path"].as_str().unwrap();
        let rest = key.strip_prefix(&format!("documents/{document}")).unwrap();
        let plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '.';
        assert!(rest.chars().all(plain), "{sent} is stored as {key}");
        for page in [format!("/ingestions/{id}"), "/ingestions".to_owned()] {
            let body = viewer.get(&page).await.body;
            for mark in ["<script>alert", "\" onfocus=", "href=\"javascript:"] {
                assert!(!body.contains(mark), "{page} of {sent} has {mark}");
            }
        }
        // Characters that turn the order of others are shown by their numbers.
        let kept = kept.replace('\u{202e}', "[U+202E]");
        let body = viewer.get(&format!("/ingestions/{id}")).await.body;
        let shown = body.split("<bdi>").skip(1).any(|rest| {
            let name = rest.split("</bdi>").next().unwrap();
            name.contains(
                &kept
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;")
                    .replace('"', "&quot;"),
            )
        });
        assert!(shown, "{sent}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_repeated_under_its_key_is_answered_the_same_and_another_is_refused() {
    let desk = WebConsole::open().await;
    let keyed = |number: &str| {
        upload(&desk, "?name=a.pdf", documents::invoice(number)).header("idempotency-key", "k1")
    };
    let first = send(keyed("L-1")).await;
    let second = send(keyed("L-1")).await;
    assert_eq!((first.json(), first.header("idempotency-replayed")), (second.json(), ""));
    assert_eq!(second.header("idempotency-replayed"), "true");
    let other = send(keyed("L-2")).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(other.json()["code"], "idempotency_key_reused");
    let others_key =
        desk.call(Method::POST, "/documents", "operator").body(documents::invoice("L-3"));
    let others_key = send(others_key.header("idempotency-key", "k1")).await;
    assert_eq!(others_key.status, StatusCode::OK, "keys are each visitor's own");
    assert_eq!(desk.scalar(DOCUMENTS).await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_two_gigabytes_is_refused_unread_and_an_endless_one_at_the_limit() {
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = super::desk::tokens();
        config.limits.document_bytes.0 = 1 << 20;
    })
    .await;
    let head = |length: &str| {
        format!(
            "POST /api/v1/documents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{length}\r\n\r\n",
            token_of("producer")
        )
    };
    let mut announced = TcpStream::connect(desk.address).await.unwrap();
    announced.write_all(head("content-length: 2147483648").as_bytes()).await.unwrap();
    let mut said = Vec::new();
    timeout(SOON, announced.read_to_end(&mut said)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&said).starts_with("HTTP/1.1 413"), "before a byte of it came");
    let mut endless = TcpStream::connect(desk.address).await.unwrap();
    endless.write_all(head("transfer-encoding: chunked").as_bytes()).await.unwrap();
    let piece = format!("10000\r\n{}\r\n", "%PDF-xxx".repeat(1 << 13));
    let mut sent = 0;
    while sent < 1000 && endless.write_all(piece.as_bytes()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 1000, "64 MiB were taken where 1 MiB is the limit");
    // The shared room would have stopped that one as well; not one that ends after 17 pieces.
    let mut larger = TcpStream::connect(desk.address).await.unwrap();
    let whole = format!("{}{}0\r\n\r\n", head("transfer-encoding: chunked"), piece.repeat(17));
    let mut said = Vec::new();
    // The answer may come, and the connection end, before all is sent.
    larger.write_all(whole.as_bytes()).await.ok();
    timeout(SOON, larger.read_to_end(&mut said)).await.unwrap().ok();
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
    assert_eq!(desk.scalar(DOCUMENTS).await, "0");
    let right = send(upload(&desk, "", documents::invoice("L-1"))).await;
    assert_eq!(right.status, StatusCode::OK, "its place is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_hands_in_nothing_more_urgent_than_its_row_says() {
    for (highest, refused, usual) in [
        (Priority::Critical, &[][..], "normal"),
        (Priority::Normal, &["critical", "high"], "normal"),
        (Priority::Low, &["critical", "high", "normal"], "low"),
    ] {
        let desk = WebConsole::open_with(|config| {
            let tokens = super::desk::tokens().into_iter();
            let bounded = tokens.map(|token| WebToken { highest_priority: highest, ..token });
            config.web.tokens = bounded.collect();
        })
        .await;
        for (number, priority) in Priority::ALL.into_iter().enumerate() {
            let document = documents::invoice(&format!("P-{number}"));
            let priority = priority.code();
            let answer = send(upload(&desk, &format!("?priority={priority}"), document)).await;
            let is_refused = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(is_refused, refused.contains(&priority), "{highest:?}: {answer:?}");
        }
        let unsaid = send(upload(&desk, "", documents::invoice("P-9"))).await.json();
        let id = unsaid["ingestion_id"].as_str().unwrap();
        let priority = format!("SELECT priority FROM ingestion WHERE id = '{id}'");
        assert_eq!(desk.scalar(&priority).await, usual);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_an_ingestion_is_told_when_it_ends_and_not_later_than_asked() {
    let desk = WebConsole::open().await;
    let (_, ingestion) = desk.waiting("acme", "a.pdf").await;
    // It never ends by itself.
    let path = format!("/ingestions/{ingestion}?wait=1");
    let asked = desk.get(&path, "producer");
    let open = timeout(SOON, asked).await.expect("not later than asked").json();
    assert_eq!(open["status"], "in-progress");
    let path = format!("/ingestions/{ingestion}?wait=20");
    let cancel = format!(
        "UPDATE ingestion SET status = 'cancelled', reason = 'cancelled',
             completed_at = docmill_now() WHERE id = '{ingestion}'"
    );
    let (ended, ()) = tokio::join!(desk.get(&path, "producer"), desk.execute(&cancel));
    assert_eq!(ended.json()["status"], "cancelled");
    for wrong in ["21", "-1", "x"] {
        let path = format!("/ingestions/{ingestion}?wait={wrong}");
        assert_eq!(desk.get(&path, "producer").await.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_unknown_tokens_is_slowed_and_keeps_nobody_out_who_has_one() {
    let desk = WebConsole::open().await;
    let ask = async |name: &str| desk.get("/ingestions", name).await;
    for _ in 0..100 {
        assert_eq!(ask("nobody").await.status, StatusCode::UNAUTHORIZED);
    }
    let refused = ask("nobody").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(ask("producer").await.status, StatusCode::OK);
    assert_eq!(desk.stranger().get("/ingestions").await.status, StatusCode::SEE_OTHER);
}

/// A form with a secret and a file, as a browser sends it.
fn file_form(secret: &str, name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut form = format!(
        "--x\r\ncontent-disposition: form-data; name=\"form_secret\"\r\n\r\n{secret}\r\n\
         --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(bytes);
    form.extend_from_slice(b"\r\n--x--\r\n");
    form
}

#[tokio::test(flavor = "multi_thread")]
async fn files_handed_in_by_a_page_are_the_visitors_tenants_and_a_foreign_form_hands_in_nothing() {
    let desk = WebConsole::open().await;
    let producer = desk.browser("producer").await;
    let page = producer.get("/upload").await.body;
    let secret = form_fields(&page, "/upload")[0].1.clone();
    let pdf = documents::invoice("U-1");
    let post = |secret: &str, name: &str, bytes: &[u8]| {
        let request = producer.request(Method::POST, "/upload");
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        send(request.body(file_form(secret, name, bytes)))
    };
    let count = "SELECT count(*) FROM document WHERE tenant = 'acme'";
    let foreign = post("stolen", "a.pdf", &pdf).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(desk.scalar(count).await, "0");
    let done = post(&secret, "../a.pdf", &pdf).await;
    assert_eq!(done.location(), "/upload?done=1", "{done:?}");
    assert_eq!(desk.scalar("SELECT original_name FROM document").await, "a.pdf");
    let refused = post(&secret, "note.txt", b"no document\0").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.body.contains("<bdi>note.txt</bdi>: "), "{}", refused.body);
    let sample = [("sample", "invoice_en.pdf")];
    let done = producer.submit("/upload", "/upload/sample", &sample).await;
    assert_eq!(done.location(), "/upload?done=1", "{done:?}");
    assert_eq!(desk.scalar(count).await, "2");
    assert!(producer.get("/upload").await.body.contains("invoice_en.pdf"), "it is seen to move");
    assert_eq!(desk.browser("viewer").await.get("/upload").await.status, StatusCode::FORBIDDEN);
}
