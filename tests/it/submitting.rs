//! Handing in many documents: in place, from buckets, from lists, interrupted and repeated.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use docmill_core::config::QueueDestination;
use docmill_operations::submit::{
    self, Submission, SubmitContext, SubmitLine, SubmitOptions, SubmitSearch, SubmitStatus,
};
use docmill_storage::ObjectStore;
use docmill_storage::s3::S3Store;
use tokio::sync::mpsc;

use crate::support::moto::Moto;
use crate::support::world::{World, s3_client};

const MANY: usize = 5000;

/// Submits these paths; ends early after `lines` lines, like a killed process.
async fn hand_in(
    world: &World,
    store: &dyn ObjectStore,
    paths: &[&Path],
    (terms, at_most): (&SubmitOptions, usize),
) -> Vec<Submission> {
    let db = world.database.db();
    let desk = SubmitContext {
        db: &db,
        store,
        queue: &*world.queue,
        largest: 1000,
        destination: &QueueDestination::default(),
    };
    let (steps, found) = mpsc::channel(16);
    let (lines, mut inbox) = mpsc::unbounded_channel();
    let all = async {
        let search = async {
            let mut search = SubmitSearch::new(steps, Some(store));
            for path in paths {
                search.search_path(path).await;
            }
        };
        let report = |line| drop(lines.send(line));
        tokio::join!(submit::submit_all(desk, found, terms, report), search).0.unwrap();
        drop(lines);
    };
    let mut done = Vec::new();
    let collect = async {
        while let Some(line) = inbox.recv().await {
            done.extend(match line {
                SubmitLine::Done(done) => Some(done),
                SubmitLine::Skipped(skipped) => panic!("{skipped:?}"),
            });
            if done.len() >= at_most {
                return;
            }
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(all, std::future::pending()) } => {}
        () = collect => {}
    }
    done
}

/// Bodies of all messages; moving the stand-in's clock makes received ones visible again.
async fn bodies(world: &World) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let messages = world.queue.receive(10, Duration::ZERO).await.unwrap();
        if messages.is_empty() {
            return bodies;
        }
        bodies.extend(messages.into_iter().map(|message| message.body));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_unsent_document_is_sent_on_resubmission() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.pdf"), "%PDF-a").unwrap();
    let everything = (&SubmitOptions::default(), usize::MAX);
    let first = hand_in(&world, &*world.store, &[folder.path()], everything).await;
    // As if that run had died between its rows and its messages.
    world.purge().await;
    let again = hand_in(&world, &*world.store, &[folder.path()], everything).await;
    assert_eq!(again[0].fate, SubmitStatus::Known);
    assert_eq!(bodies(&world).await, [first[0].ingestion_id.unwrap().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_files_in_the_store_stay_there_and_a_run_that_died_is_simply_repeated() {
    let world = World::new().await;
    let inbox = world.config.store.path.join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    for number in 0..MANY {
        std::fs::write(inbox.join(format!("{number}.pdf")), format!("%PDF-{number}")).unwrap();
    }
    let terms = SubmitOptions::default();
    let first = hand_in(&world, &*world.store, &[&inbox], (&terms, 1500)).await;
    assert!(first.iter().all(|line| line.fate == SubmitStatus::Submitted) && first.len() < MANY);
    let second = hand_in(&world, &*world.store, &[&inbox], (&terms, usize::MAX)).await;
    let known = second.iter().filter(|line| line.fate == SubmitStatus::Known).count();
    assert!(second.len() == MANY && known >= first.len(), "{known} of {}", second.len());

    let rows = "SELECT count(*) || ' ' || count(DISTINCT document_id) FROM docmill.ingestion";
    assert_eq!(world.scalar(rows).await, format!("{MANY} {MANY}"));
    let copied = world.store.list("documents/", None, 1).await.unwrap();
    assert!(copied.is_empty(), "what lies in the store is not uploaded");
    let path = "SELECT min(file_path) FROM docmill.document WHERE sha256 IS NOT NULL";
    assert_eq!(world.scalar(path).await, "inbox/0.pdf");
    let distinct: BTreeSet<String> = bodies(&world).await.into_iter().collect();
    assert_eq!(distinct.len(), MANY, "each has a message");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_two_names_of_one_batch_are_one_document() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.pdf", "b.pdf", "line\nbreak, \"quote\".pdf"] {
        std::fs::write(folder.path().join(name), "%PDF-same").unwrap();
    }
    let terms = SubmitOptions::default();
    let done = hand_in(&world, &*world.store, &[folder.path()], (&terms, usize::MAX)).await;
    let fates: Vec<_> = done.iter().map(|line| line.fate).collect();
    assert_eq!(fates, [SubmitStatus::Submitted, SubmitStatus::Known, SubmitStatus::Known]);
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.document").await, "1");
    assert_eq!(bodies(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_bucket_are_handed_in_where_they_are_and_once_per_version() {
    let moto = Moto::start().await;
    let world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    for bucket in ["own-bucket", "theirs"] {
        s3.create_bucket().bucket(bucket).send().await.unwrap();
    }
    let put = async |key: &str, text: &str| {
        let body = ByteStream::from(text.to_owned().into_bytes());
        s3.put_object().bucket("theirs").key(key).body(body).send().await.unwrap();
    };
    for key in ["in/a b.pdf", "in/c+%.pdf", "in/folder/", "out/d.pdf"] {
        put(key, if key.ends_with('/') { "" } else { "%PDF-x" }).await;
    }
    let store = S3Store::with_client(s3.clone(), "own-bucket");
    let prefix = Path::new("s3://theirs/in/");
    let all = usize::MAX;
    let terms = SubmitOptions::default();
    let first = hand_in(&world, &store, &[prefix, prefix], (&terms, all)).await;
    let files: Vec<_> = first.iter().map(|line| line.file.display().to_string()).collect();
    assert_eq!(files, ["s3://theirs/in/a b.pdf", "s3://theirs/in/c+%.pdf"], "each once");
    assert!(first.iter().all(|line| line.fate == SubmitStatus::Submitted));
    let again = hand_in(&world, &store, &[prefix], (&terms, all)).await;
    assert!(again.iter().all(|line| line.fate == SubmitStatus::Known));

    let few = hand_in(&world, &store, &[Path::new("s3://theirs/in/c*.pdf")], (&terms, all)).await;
    let files: Vec<_> = few.iter().map(|line| line.file.display().to_string()).collect();
    assert_eq!(files, ["s3://theirs/in/c+%.pdf"], "a pattern");

    put("in/a b.pdf", "%PDF-newer").await;
    let newer = hand_in(&world, &store, &[prefix], (&terms, all)).await;
    let fates: Vec<_> = newer.iter().map(|line| line.fate).collect();
    assert_eq!(
        fates,
        [SubmitStatus::Submitted, SubmitStatus::Known],
        "another version is another ingestion"
    );
    assert_eq!(newer[0].document_id, first[0].document_id);
    let rows = "SELECT string_agg(file_path, ' ' ORDER BY file_path) FROM docmill.document";
    assert_eq!(world.scalar(rows).await, "s3://theirs/in/a b.pdf s3://theirs/in/c+%.pdf");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_about_an_upload_of_submit_makes_no_second_document() {
    let mut world = World::new().await;
    world.config.store.bucket = "documents".to_owned();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pdf");
    std::fs::write(&file, "%PDF-not whole").unwrap();
    let terms = SubmitOptions::default();
    let done = hand_in(&world, &*world.store, &[&file], (&terms, usize::MAX)).await;
    let key = format!("documents/{}.pdf", done[0].document_id.unwrap());
    let event = serde_json::json!({"Records": [{
        "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "documents"},
            "object": {"key": key, "size": 14, "eTag": "e", "sequencer": "0A"}}
    }]});
    world.send(event.to_string()).await;
    let worker = world.worker().await;
    world.until_empty().await;
    worker.stop().await;
    let rows = "SELECT count(*)::text FROM docmill.ingestion";
    assert_eq!(world.scalar(rows).await, "1");
}
