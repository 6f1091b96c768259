//! The same in a folder and over an independent S3 implementation (moto): many workers, each
//! document once.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::WorkspaceFormat;
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, WorkspaceWorkerSetup, populate_workspace,
};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use docmill_storage::prefixed::PrefixedStore;
use docmill_storage::s3::S3Store;

use super::{Desk, Fake, open, terms};
use crate::support::moto::Moto;

/// Each worker has a connection of its own, as processes would.
async fn many(stores: Vec<Arc<dyn ObjectStore>>, documents: usize) {
    let desk = Desk::over(stores.first().unwrap().clone()).await;
    desk.populate(documents, 1).await;
    let reader = Fake::new();
    let mut workers = Vec::new();
    for store in stores {
        let work = WorkspaceWorkerSetup {
            workspace: open(&store, StoreClock::default(), WorkspaceFormat::Both).await,
            reader: reader.clone(),
            sources: Arc::new(DocumentSources {
                s3: None,
                largest: 1 << 20,
                local: true,
                archives: ArchiveLimits::default(),
            }),
            terms: terms(),
        };
        workers.push(tokio::spawn(work.run(Shutdown::default())));
    }
    let mut groups = 0;
    for worker in workers {
        groups += worker.await.unwrap().unwrap().groups;
    }
    let expected = u32::try_from(documents).unwrap();
    assert_eq!((reader.count(), groups), (expected, u64::from(expected)));
    assert!(desk.store.list("worker_locks/", None, 10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_share_a_folder_read_each_document_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores: Vec<Arc<dyn ObjectStore>> = Vec::new();
    for _ in 0..8 {
        stores.push(Arc::new(FolderStore::open(dir.path()).await.unwrap()));
    }
    many(stores, 60).await;
}

async fn client(server: &Moto) -> Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(server.endpoint())
        .force_path_style(true)
        .build();
    Client::from_conf(config)
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_share_a_bucket_read_each_document_once() {
    let server = Moto::start().await;
    let client = client(&server).await;
    client.create_bucket().bucket("papers").send().await.unwrap();
    let store = || -> Arc<dyn ObjectStore> {
        let whole = Arc::new(S3Store::with_client(client.clone(), "papers"));
        Arc::new(PrefixedStore::new(whole, "odd+ 100% é/ws"))
    };
    many((0..4).map(|_| store()).collect(), 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_s3_are_read_where_they_lie() {
    let server = Moto::start().await;
    let client = client(&server).await;
    client.create_bucket().bucket("papers").send().await.unwrap();
    let whole: Arc<dyn ObjectStore> = Arc::new(S3Store::with_client(client, "papers"));
    whole.put("in/a+b %.pdf", "a paper".into(), &Default::default()).await.unwrap();
    let path = "s3://papers/in/a+b %.pdf".to_owned();
    let desk = Desk::over(Arc::new(PrefixedStore::new(whole.clone(), "ws"))).await;
    populate_workspace(&desk.workspace, &[path], 1, false).await.unwrap();
    let reader = Fake::new();
    let mut work = desk.worker(&reader, terms());
    work.sources = Arc::new(DocumentSources {
        s3: Some(whole),
        largest: 1 << 20,
        local: true,
        archives: ArchiveLimits::default(),
    });
    assert_eq!(work.run(Shutdown::default()).await.unwrap().documents, 1);
}

#[tokio::test]
async fn an_index_that_others_wrote_names_no_files_of_this_machine_unless_that_is_meant() {
    let (desk, _) = Desk::in_memory().await;
    let path = desk.paper(1);
    populate_workspace(&desk.workspace, std::slice::from_ref(&path), 1, false).await.unwrap();
    let reader = Fake::new();
    let mut work = desk.worker(&reader, terms());
    work.sources = Arc::new(DocumentSources {
        s3: None,
        largest: 1 << 20,
        local: false,
        archives: ArchiveLimits::default(),
    });
    assert_eq!(work.run(Shutdown::default()).await.unwrap().documents, 0);
    assert_eq!(reader.calls(&path), 0);
}
