//! Searchable copies: what a worker keeps of a document that it read from its pictures, and what the
//! command line writes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

use lopdf::Document;
use serde_json::Value;

use crate::support::world::{SOON, World, until};
use docmill_core::config::ByteSize;
use docmill_core::model::{IngestionId, digest};
use docmill_storage::{GetOptions, GetResult, keys};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

async fn stored(world: &World, key: &str) -> Option<Vec<u8>> {
    match world.store.get(key, GetOptions { at_most: 1 << 26, if_match: None }).await.unwrap() {
        GetResult::Found(object) => Some(object.bytes.to_vec()),
        _ => None,
    }
}

/// The stored transcript's entry about the copy, once the ingestion has ended.
async fn said_of_copy(world: &World, id: IngestionId) -> Option<Value> {
    until(SOON, || async { world.column(id, "status").await.unwrap() != "in-progress" }).await;
    let transcript = stored(world, &keys::transcription_key(id)).await.unwrap();
    let transcript: Value = serde_json::from_slice(&transcript).unwrap();
    transcript.get("searchable").cloned()
}

/// The words that a page of the file shows, and whether any of them is seen: by the map of its font.
fn words_of(file: &[u8]) -> Vec<String> {
    let document = Document::load_mem(file).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    for page in document.get_pages().into_values() {
        let content = document.get_and_decode_page_content(page).unwrap();
        let seen = content.operations.iter().filter(|it| it.operator == "Tr");
        let modes: Vec<i64> = seen.map(|it| it.operands[0].as_i64().unwrap()).collect();
        assert_eq!(modes, [3], "one mode for all of a page's text: unseen");
    }
    let text = document.extract_text(&pages).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_searchable_copy_is_made_of_scans_only_if_configured() {
    let world = World::new().await;
    let scan = std::fs::read(sample("scan_skewed.pdf")).unwrap();
    let native = std::fs::read(sample("invoice_en.pdf")).unwrap();
    let not_asked = world.submit("before.pdf", [scan.as_slice(), b"\n"].concat()).await;
    let worker = world.worker().await;
    assert_eq!(said_of_copy(&world, not_asked).await, None);
    worker.stop().await;
    assert!(stored(&world, &keys::searchable_key(not_asked)).await.is_none());

    let (scan, native) =
        (world.submit("scan.pdf", scan).await, world.submit("native.pdf", native).await);
    let worker = world.worker_with(|config| config.ocr.searchable_pdf = true).await;
    let said = said_of_copy(&world, scan).await.unwrap();
    assert_eq!(said_of_copy(&world, native).await, None, "it has its text");
    worker.stop().await;
    assert!(stored(&world, &keys::searchable_key(native)).await.is_none());
    assert_eq!(said["path"], keys::searchable_key(scan).as_str());
    let file = stored(&world, &keys::searchable_key(scan)).await.unwrap();
    assert_eq!(said["sha256"], digest::sha256_hex(&file).as_str());
    // Every word of the transcript, in its order.
    let transcript = stored(&world, &keys::transcription_key(scan)).await.unwrap();
    let transcript: docmill_core::model::Transcript = serde_json::from_slice(&transcript).unwrap();
    let expected = transcript.full_text();
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert!(expected.contains(&"PM-7719"), "the scan was read");
    assert_eq!(words_of(&file), expected);
    // The words are placed on this picture.
    let document = Document::load_mem(&file).unwrap();
    let pages: Vec<_> = document.get_pages().into_values().collect();
    for (page, read) in pages.into_iter().zip(&transcript.pages) {
        let image = document.get_page_images(page).unwrap().pop().unwrap();
        let shape = |width: f64, height: f64| width / height;
        #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
        let drawn = shape(image.width as f64, image.height as f64);
        let read_on = shape(f64::from(read.width), f64::from(read.height));
        assert!((drawn / read_on - 1.0).abs() < 0.005, "{drawn} beside {read_on}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_would_be_too_large_is_left_out_and_holds_nothing_up() {
    let world = World::new().await;
    let scan = std::fs::read(sample("receipt.jpg")).unwrap();
    let most = scan.len() as u64;
    let id = world.submit("receipt.jpg", scan).await;
    let worker = world
        .worker_with(|config| {
            config.ocr.searchable_pdf = true;
            config.limits.document_bytes = ByteSize(most);
        })
        .await;
    let said = said_of_copy(&world, id).await.unwrap();
    worker.stop().await;
    assert_eq!(said, serde_json::json!({"left_out": "too_large"}));
    assert!(stored(&world, &keys::searchable_key(id)).await.is_none());
    assert_eq!(
        world.column(id, "status").await.unwrap(),
        "completed",
        "the document itself is read"
    );
}

#[test]
fn the_command_line_writes_a_searchable_copy_of_a_photograph_or_reports_none() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pdf");
    let transcribe = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
        command.arg("transcribe").arg(sample(name)).arg("--searchable").arg(&copy).output().unwrap()
    };
    let output = transcribe("photo.jpg");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<&str> = printed.split_whitespace().collect();
    let file = std::fs::read(&copy).unwrap();
    assert_eq!(words_of(&file), printed);
    assert!(printed.contains(&"OPW-3056"));
    std::fs::remove_file(&copy).unwrap();
    let output = transcribe("invoice_en.pdf");
    assert!(!output.status.success() && !copy.exists());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no searchable copy is made"));
}
