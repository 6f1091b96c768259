//! Buckets and workspaces with models: a run that is killed or loses its document pays for no
//! finished call again, its artefacts are deleted with the result, and the day's budget holds.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use docmill::app::App;
use docmill_compat::bucket::{
    self, BlobForgeBucket, ConversionResult, DocumentConverter, OriginalDocument,
};
use docmill_compat::object_pipeline::ObjectPipeline;
use docmill_compat::objects::blobforge::{out_key, raw_key, todo_key};
use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::{WorkspaceFormat, all_lock_keys, result_key};
use docmill_compat::workspace::{
    self, ArchiveLimits, DocumentSources, ReadOutcome, Workspace, WorkspaceReader,
    populate_workspace,
};
use docmill_core::config::{Config, EscalationModelConfig, LlmProvider};
use docmill_core::fault::Fault;
use docmill_core::model::{ClaimToken, IngestionId, Priority, digest};
use docmill_operations::process::LocalPipeline;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, ClaimRenewer, claim_handle};
use docmill_storage::ObjectStore;
use docmill_testkit::models::{Answer, Request, Script, Server, read_document};

use crate::costs::prices;
use crate::support::controlled_store::ControlledStore;
use crate::support::documents;
use crate::support::world::SOON;

/// Everything that is kept while documents are worked on.
const KEPT: &str = "docmill/ingestions/";

/// Two models and a store.
struct Desk {
    store: Arc<ControlledStore>,
    first: Server,
    second: Server,
    config: Config,
}

/// The first model leaves something out, so that the second is asked.
fn without_supplier(request: &Request) -> Answer {
    let mut content = read_document(&request.body);
    content["fields"]["supplier_name"] = serde_json::Value::Null;
    Answer::Ok { content }
}

impl Desk {
    /// The second model answers once as given, and then correctly.
    async fn new(second: Answer) -> Self {
        let first = Server::start(Script::function(without_supplier)).await.unwrap();
        let second = Server::start(Script::of([second])).await.unwrap();
        let mut config = Self::with_model(&first);
        let rung = format!("model = 'stronger'\nbase_url = '{}'\n", second.base_url());
        config.llm.chain = vec![toml::from_str::<EscalationModelConfig>(&rung).unwrap()];
        Self { store: Arc::default(), first, second, config }
    }

    /// Settings with one model.
    fn with_model(server: &Server) -> Config {
        let mut config = Config::default();
        config.cpu.program = crate::support::page_processes::docmill();
        config.llm.provider = LlmProvider::Openai;
        config.llm.base_url = server.base_url();
        config.llm.model = "scripted".to_owned();
        config
    }

    async fn pipeline(&self) -> ObjectPipeline {
        let services = Box::pin(App::new(self.config.clone()).pipeline_services()).await.unwrap();
        ObjectPipeline::new(services, Arc::clone(&self.store) as Arc<dyn ObjectStore>)
    }

    async fn converter(&self) -> bucket::PipelineConverter {
        bucket::PipelineConverter { pipeline: self.pipeline().await }
    }

    async fn reader(&self) -> workspace::PipelineReader {
        workspace::PipelineReader {
            pipeline: self.pipeline().await,
            reading: workspace::WorkspaceReading::default(),
        }
    }

    /// A bucket's worker, always under the same name.
    async fn bucket_work(&self) -> bucket::BucketWorkerSetup {
        let bucket = BlobForgeBucket::new(
            Arc::clone(&self.store) as Arc<dyn ObjectStore>,
            StoreClock::default(),
        );
        let convert = Arc::new(self.converter().await);
        let terms = bucket::BucketWorkerOptions {
            jobs: 1,
            once: true,
            each_list: Duration::from_millis(10),
            longest_pause: Duration::from_millis(50),
            largest: 1 << 20,
            name: Some("w".to_owned()),
            drain: Duration::ZERO,
            windows: bucket::RunWindows::default(),
        };
        bucket::BucketWorkerSetup { bucket: Arc::new(bucket), convert, terms }
    }

    async fn workspace(&self) -> Arc<Workspace> {
        let store = Arc::clone(&self.store) as Arc<dyn ObjectStore>;
        let timeout = Duration::from_secs(1800);
        Arc::new(
            Workspace::open(store, StoreClock::default(), WorkspaceFormat::Both, timeout)
                .await
                .unwrap(),
        )
    }

    async fn workspace_work(&self) -> workspace::WorkspaceWorkerSetup {
        let terms = workspace::WorkspaceOptions {
            jobs: 1,
            tries: 3,
            page_error_rate: 0.004,
            retry_pause: Duration::from_millis(10),
            poll_interval: Duration::from_millis(20),
            leave_locked: false,
            document_time: Duration::from_secs(60),
            drain: Duration::ZERO,
        };
        workspace::WorkspaceWorkerSetup {
            workspace: self.workspace().await,
            reader: Arc::new(self.reader().await),
            sources: Arc::new(DocumentSources {
                s3: None,
                largest: 1 << 20,
                local: true,
                archives: ArchiveLimits::default(),
            }),
            terms,
        }
    }

    /// Runs until the second model is asked, and is killed there.
    async fn killed_at_the_second_model<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) {
        let running = tokio::spawn(work);
        assert!(self.second.arrived(1, SOON).await, "the second model is never asked");
        running.abort();
        assert!(running.await.is_err_and(|died| died.is_cancelled()));
    }

    /// How often each model was asked.
    fn calls(&self) -> (usize, usize) {
        (self.first.calls().len(), self.second.calls().len())
    }
}

fn original(number: &str) -> OriginalDocument {
    let bytes = Bytes::from(documents::invoice(number));
    let hash = digest::sha256_hex(&bytes);
    OriginalDocument { hash, name: format!("{number}.pdf"), tags: Vec::new(), bytes }
}

fn claim() -> (ClaimHandle, ClaimRenewer) {
    let until = Instant::now() + Duration::from_secs(600);
    claim_handle::claim_pair(IngestionId::random(), ClaimToken::random(), until)
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_a_bucket_run_that_is_killed_pays_no_finished_call_twice() {
    let desk = Desk::new(Answer::Hang).await;
    let OriginalDocument { hash, bytes, .. } = original("B-1");
    desk.store.put(&raw_key(&hash, "pdf"), bytes, &BTreeMap::new()).await.unwrap();
    let marker = todo_key(Priority::Normal, &hash);
    desk.store.put(&marker, Bytes::new(), &BTreeMap::new()).await.unwrap();
    let work = desk.bucket_work().await.run(Shutdown::default());
    desk.killed_at_the_second_model(work).await;
    assert!(!desk.store.keys(KEPT).is_empty(), "what was paid for is kept");
    // Its process is no more, so that its name is free.
    desk.store.delete("registry/workers/w-0.json").await.unwrap();
    let tally = desk.bucket_work().await.run(Shutdown::default()).await.unwrap();
    assert_eq!(tally.done, 1);
    assert_eq!(desk.calls(), (1, 2), "one call was interrupted, the other's reply was kept");
    assert!(desk.store.head(&out_key(&hash)).await.unwrap().is_some());
    assert_eq!(desk.store.keys(KEPT), [""; 0], "it goes once the result stands");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_8_a_workspace_run_that_is_killed_pays_no_finished_call_twice() {
    let desk = Desk::new(Answer::Hang).await;
    let papers = tempfile::tempdir().unwrap();
    let path = papers.path().join("in, voice.pdf").display().to_string();
    std::fs::write(&path, documents::invoice("W-1")).unwrap();
    let workspace = desk.workspace().await;
    populate_workspace(&workspace, std::slice::from_ref(&path), 1, false).await.unwrap();
    let group = workspace.load_index().await.unwrap().0.groups.remove(0);
    let work = desk.workspace_work().await.run(Shutdown::default());
    desk.killed_at_the_second_model(work).await;
    assert!(!desk.store.keys(KEPT).is_empty(), "what was paid for is kept");
    for lock in all_lock_keys(&group.hash) {
        desk.store.age(&lock, Duration::from_secs(3600));
    }
    let tally = desk.workspace_work().await.run(Shutdown::default()).await.unwrap();
    assert_eq!((tally.documents, tally.groups), (1, 1));
    assert_eq!(desk.calls(), (1, 2), "one call was interrupted, the other's reply was kept");
    assert!(desk.store.head(&result_key(&group.hash)).await.unwrap().is_some());
    assert_eq!(desk.store.keys(KEPT), [""; 0], "it goes once the text is in the ledger");
}

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_a_run_that_has_lost_its_document_writes_no_artefact_any_more() {
    let desk = Desk::new(Answer::late(Duration::from_millis(300))).await;
    let (converter, original) = (desk.converter().await, original("B-2"));
    let (lost, renewer) = claim();
    // Paid calls are booked anyway, in the record of the current attempt.
    let records = || {
        let keys = desk.store.keys(KEPT).into_iter().filter(|key| key.ends_with("/attempt.json"));
        keys.map(|key| {
            let mut record = desk.store.json(&key);
            record.as_object_mut().unwrap().retain(|name, _| !name.starts_with("spent_"));
            record
        })
        .collect::<Vec<_>>()
    };
    let versions = async || {
        let mut versions = Vec::new();
        for key in desk.store.keys(KEPT) {
            if !key.ends_with("/attempt.json") {
                versions.push((key.clone(), desk.store.head(&key).await.unwrap().unwrap().etag));
            }
        }
        (versions, records())
    };
    let mut before = (Vec::new(), Vec::new());
    let lose = async {
        assert!(desk.second.arrived(1, SOON).await);
        renewer.note_lost();
        before = versions().await;
    };
    let (ended, ()) = tokio::join!(converter.convert(&original, &lost), lose);
    assert_eq!(ended.unwrap_err().fault, Fault::ClaimLost);
    assert_eq!(versions().await, before, "something was written after the loss");
    let (next, _renewer) = claim();
    let converted = converter.convert(&original, &next).await.unwrap();
    assert!(matches!(converted, ConversionResult::Whole(_)));
    assert_eq!(desk.calls(), (1, 2), "the reply that came too late is asked for again, no other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_attempt_takes_the_document_from_one_presumed_dead() {
    let desk = Desk::new(Answer::late(Duration::from_millis(500))).await;
    let (converter, original) = (desk.converter().await, original("B-3"));
    let ((frozen, _one), (owner, _other)) = (claim(), claim());
    // The first is unaware that it lost its lock, as after a suspended machine.
    let takes_over = async {
        assert!(desk.second.arrived(1, SOON).await);
        converter.convert(&original, &owner).await
    };
    let (late, owned) = tokio::join!(converter.convert(&original, &frozen), takes_over);
    assert!(matches!(owned.unwrap(), ConversionResult::Whole(_)));
    let fault = late.unwrap_err().fault;
    assert!(matches!(fault, Fault::ClaimLost | Fault::Transient), "{fault:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_stops_buckets_and_workspaces_also_in_other_processes() {
    let model = Server::start(Script::default()).await.unwrap();
    let mut config = Desk::with_model(&model);
    // One call costs more than this.
    config.cost = prices("0.000001");
    let idle = Server::start(Script::default()).await.unwrap();
    let desk = Desk { store: Arc::default(), first: model, second: idle, config };
    let (claim, _renewer) = claim();
    let convert = async |number: &str| {
        // Of a process of its own each time.
        desk.converter().await.convert(&original(number), &claim).await
    };
    assert!(matches!(convert("B-4").await.unwrap(), ConversionResult::Whole(_)));
    let spent = desk.store.keys("docmill/spending/");
    assert_eq!(spent.len(), 1);
    assert!(desk.store.json(&spent[0])["cost_nanos"].as_u64().unwrap() > 1_000);
    let refused = convert("B-5").await.unwrap_err();
    assert!(matches!(refused.fault, Fault::OverBudget(_)), "{refused}");
    let bytes = Bytes::from(documents::invoice("W-2"));
    let refused =
        desk.reader().await.read_document("w.pdf", bytes.clone(), &claim).await.unwrap_err();
    assert!(matches!(refused.fault, Fault::OverBudget(_)), "{refused}");
    assert_eq!(desk.calls(), (1, 0), "nothing was asked for beyond the budget");

    // The next day: what was read is found again, and the call is made.
    desk.store.delete(&spent[0]).await.unwrap();
    let read = desk.reader().await.read_document("w.pdf", bytes, &claim).await.unwrap();
    assert!(matches!(read, ReadOutcome::Whole(_)));
    assert_eq!(desk.calls(), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_documents_spending_is_read_anew_each_time() {
    let model = Server::start(Script::default()).await.unwrap();
    let mut config = Desk::with_model(&model);
    config.cost = prices("0.000001");
    let services = Box::pin(App::new(config).pipeline_services()).await.unwrap();
    let pipeline = LocalPipeline::new(services);
    let bytes = Bytes::from(documents::invoice("P-1"));
    for asked in 1..=2 {
        let path = std::path::Path::new("invoice.pdf");
        let processed = pipeline.process_file(path, bytes.clone()).await.unwrap();
        assert_eq!(processed.reader.as_deref(), Some("llm"));
        assert_eq!(model.calls().len(), asked);
    }
}
