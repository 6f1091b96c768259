//! One tenant leaves the others their share: memory for transcripts, disk for arriving documents,
//! places to draw pages.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use docmill_core::config::{CpuConfig, LimitsConfig, OcrConfig, StoreConfig};
use docmill_core::model::digest::encode_hex;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_documents::sandbox::{ProcessPool, ProcessProgram, ProcessSetup};
use docmill_operations::page_drawing::{OriginalPage, PageDrawer, PageDrawingError};
use docmill_storage::ObjectStore as _;
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use sha2::Digest as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::api::transcript_of_a_word;
use super::desk::{WebConsole, invoice, send, token_of};
use crate::support::controlled_store::ControlledStore;
use crate::support::documents;
use crate::support::page_processes::recipe;
use crate::support::world::{SOON, until};

/// Half of the memory for transcripts has room for four of these, as docs/guides/web.md says.
const LARGE: usize = 32 << 20;
const ROOM_OF_A_TENANT: usize = 4;

async fn open(store: &Arc<ControlledStore>) -> WebConsole {
    Box::pin(WebConsole::open_over_store(store.clone(), |_| {})).await
}

async fn put(store: &ControlledStore, key: &str, bytes: Vec<u8>) {
    store.put(key, bytes.into(), &BTreeMap::new()).await.unwrap();
}

/// Puts this where the ingestion's transcript is.
async fn put_transcript(
    desk: &WebConsole,
    store: &ControlledStore,
    id: IngestionId,
    bytes: Vec<u8>,
) {
    let key = format!("ingestions/{id}/transcription-output.json");
    put(store, &key, bytes).await;
    desk.execute(&format!(
        "UPDATE ingestion SET transcription_file_path = '{key}' WHERE id = '{id}'"
    ))
    .await;
}

/// Asks for something and reads nothing.
async fn ask(desk: &WebConsole, path: &str, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(desk.address).await.unwrap();
    let head = format!(
        "GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        token_of(name)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The status of an answer, of which no more is read.
async fn status_of(stream: &mut TcpStream) -> u16 {
    let mut line = [0; "HTTP/1.1 200".len()];
    timeout(SOON, stream.read_exact(&mut line)).await.unwrap().unwrap();
    std::str::from_utf8(line.last_chunk::<3>().unwrap()).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn transcripts_that_their_clients_do_not_read_take_a_tenants_memory_and_nobody_elses() {
    let store = Arc::new(ControlledStore::default());
    let desk = open(&store).await;
    let (_, large) = desk.waiting("acme", "a.pdf").await;
    put_transcript(&desk, &store, large, vec![b' '; LARGE]).await;
    let (own, own_review) = desk.refused("acme", &invoice(21.0)).await;
    let (rivals, rivals_review) = desk.refused("rival", &invoice(21.0)).await;
    for id in [own_review, rivals_review] {
        put_transcript(&desk, &store, id, transcript_of_a_word().into_bytes()).await;
    }
    let path = format!("/ingestions/{large}/transcript");
    let mut slow = join_all((0..20).map(|_| ask(&desk, &path, "acme"))).await;
    let statuses = join_all(slow.iter_mut().map(status_of)).await;
    let count = |status: u16| statuses.iter().filter(|it| **it == status).count();
    assert_eq!((count(200), count(503)), (ROOM_OF_A_TENANT, 20 - ROOM_OF_A_TENANT), "{statuses:?}");
    assert_eq!(store.held.most.load(SeqCst), u64::try_from(ROOM_OF_A_TENANT).unwrap());
    // Pages of reviews come out of the same room, and are of use without what stands on them.
    let shows_text = async |document: DocumentId, name: &str| {
        let page = desk.browser(name).await.get(&format!("/reviews/{document}")).await;
        assert_eq!(page.status, StatusCode::OK, "{name}");
        page.body.contains("ZIMMER")
    };
    assert!(!shows_text(own, "acme").await);
    assert!(shows_text(rivals, "rival").await && shows_text(own, "viewer").await);
    let theirs = format!("/ingestions/{rivals_review}/transcript?format=text");
    assert_eq!(desk.get(&theirs, "rival").await.status, StatusCode::OK);
    drop(slow);
    until(SOON, || async { store.held.now.load(SeqCst) == 0 }).await;
    assert!(shows_text(own, "acme").await, "what was held is there again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_counts_as_it_lies_in_memory_and_a_large_one_is_given_out_as_stored_alone() {
    let store = Arc::new(ControlledStore::default());
    let desk = open(&store).await;
    let padded = |bytes: usize| {
        let mut transcript = transcript_of_a_word().into_bytes();
        transcript.resize(bytes, b' ');
        transcript
    };
    let (_, held) = desk.waiting("acme", "held.pdf").await;
    put_transcript(&desk, &store, held, vec![b' '; LARGE]).await;
    let (_, largest) = desk.waiting("acme", "largest.pdf").await;
    put_transcript(&desk, &store, largest, padded(16 << 20)).await;
    let (_, larger) = desk.waiting("acme", "larger.pdf").await;
    put_transcript(&desk, &store, larger, padded((16 << 20) + 1)).await;
    let status = async |id: IngestionId, form: &str| {
        desk.get(&format!("/ingestions/{id}/{form}"), "acme").await.status.as_u16()
    };
    assert_eq!(status(larger, "transcript").await, 200);
    for form in ["transcript?format=text", "transcript?format=markdown", "chunks", "pages/1"] {
        assert_eq!(status(larger, form).await, 409, "{form}");
        assert_eq!(status(largest, form).await, 200, "{form}");
    }
    let path = format!("/ingestions/{held}/transcript");
    let mut slow = ask(&desk, &path, "acme").await;
    assert_eq!(status_of(&mut slow).await, 200);
    assert_eq!(status(largest, "transcript").await, 200, "there is room for it as it is stored");
    assert_eq!(status(largest, "chunks").await, 503, "and none for eight times as much");
    drop(slow);
    until(SOON, || async { status(largest, "chunks").await == 200 }).await;
}

/// Hands in a document of a mebibyte, of which most comes at once and the rest never.
async fn begin_large_upload(desk: &WebConsole) -> TcpStream {
    let mut stream = TcpStream::connect(desk.address).await.unwrap();
    let head = format!(
        "POST /api/v1/documents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: {}\r\n\r\n",
        token_of("acme"),
        1 << 20
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A refused client closes.
    stream.write_all(&vec![b'x'; 900 << 10]).await.ok();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_for_one_tenant_fills_no_more_than_half_of_the_disk_that_there_is_for_all() {
    let store = Arc::new(ControlledStore::default());
    let desk = Box::pin(WebConsole::open_over_store(store, |config| {
        config.limits.document_bytes.0 = 1 << 20;
    }))
    .await;
    // Four of the largest may lie there, two of a tenant.
    let mut slow = join_all((0..3).map(|_| begin_large_upload(&desk))).await;
    let answers = slow.iter_mut().map(|stream| Box::pin(status_of(stream)));
    let (first, ..) = futures::future::select_all(answers).await;
    assert_eq!(first, 503, "a third of a tenant's");
    let upload = async |name: &str| {
        let call = desk.call(Method::POST, "/documents?name=a.pdf", name);
        send(call.body(documents::invoice("L-1"))).await.status
    };
    assert_eq!(upload("rival").await, StatusCode::OK);
    drop(slow);
    until(SOON, || async { upload("acme").await == StatusCode::OK }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_that_one_tenant_waits_for_leave_others_a_place() {
    let store = Arc::new(ControlledStore::default());
    let desk = open(&store).await;
    let original = async |tenant: &str, number: &str| {
        let (document, ingestion) = desk.waiting(tenant, "a.pdf").await;
        let (key, bytes) = (format!("documents/{document}.pdf"), documents::invoice(number));
        let sha256 = encode_hex(sha2::Sha256::digest(&bytes));
        put(&store, &key, bytes).await;
        desk.execute(&format!("UPDATE ingestion SET sha256 = '{sha256}' WHERE id = '{ingestion}'"))
            .await;
        (key, format!("/ingestions/{ingestion}/pages/1/picture"))
    };
    let (stuck, stuck_picture) = original("acme", "A-1").await;
    store.silence(&stuck);
    let mut waiting = Vec::new();
    for _ in 0..6 {
        waiting.push(ask(&desk, &stuck_picture, "acme").await);
    }
    until(SOON, || async { store.reads.load(SeqCst) > 0 }).await;
    for number in ["R-1", "R-2", "R-3"] {
        let (_, picture) = original("rival", number).await;
        let answer = desk.call(Method::GET, &picture, "rival").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_takes_long_to_be_drawn_is_not_begun_again_by_the_next_request() {
    let store = Arc::new(ControlledStore::default());
    let bytes = documents::invoice("A-1");
    let page = OriginalPage {
        file_path: "documents/a.pdf".to_owned(),
        sha256: encode_hex(sha2::Sha256::digest(&bytes)),
        tenant: None,
        number: 1,
        repaired: false,
    };
    put(&store, &page.file_path, bytes).await;
    let limits = LimitsConfig::default();
    let setup =
        ProcessSetup::new(&CpuConfig::default(), &limits, &OcrConfig::default(), recipe(), 1);
    // Reads whatever it is asked, and never answers.
    let mute = ProcessProgram::Thread(Arc::new(|mut input, output| {
        std::io::copy(&mut input, &mut std::io::sink()).ok();
        drop(output);
    }));
    let processes = ProcessPool::new(mute, setup, 1);
    let drawer =
        Arc::new(PageDrawer::new(store.clone(), StoreConfig::default(), 1 << 20, processes));
    for _ in 0..2 {
        let place = drawer.wait_for_place(None).await.unwrap();
        let drawn = drawer.draw_page(place, page.clone()).await;
        assert!(matches!(drawn, Err(PageDrawingError::Busy)), "{drawn:?}");
    }
    assert_eq!(store.reads.load(SeqCst), 1);
}
