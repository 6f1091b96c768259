//! Reading pages by providers, against stand-ins: slices, order, fallback, repair, jobs.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod contract;
mod document_ai;
pub(crate) mod document_intelligence;
mod fallback;
mod paid;
pub(crate) mod pictures;
mod ping;
mod repair;
mod textract;
pub(crate) mod vision;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use docmill_client::access_token::AccessTokenCache;
use docmill_client::access_token::ambient::AmbientVariables;
use docmill_client::access_token::google::GoogleGrant;
use docmill_client::throttle::{Governor, LimiterKey};
use docmill_core::config::{
    ByteSize, DocumentAiConfig, LimitsConfig, OcrProvider, SecretSource, SecretString,
    TextractConfig, ThrottleConfig,
};
use docmill_core::fault;
use docmill_core::model::{BoundingBox, RepairSwitches, TextLine, TextWord, Transcript};
use docmill_documents::ocr::document_ai::DocumentAi;
use docmill_documents::ocr::governed_client::GovernedClient;
use docmill_documents::ocr::textract::expense::TextractExpense;
use docmill_documents::ocr::textract::{OperationClients, TextractOcr};
use docmill_documents::ocr::{OcrEngine, RemoteOcrProvider};
use docmill_documents::{PageRaster, PageRecogniser};
use docmill_pipeline::{DocumentReader, RemoteOcr};
use docmill_testkit::{document_ai as google, textract as amazon};

use crate::support::page_processes::reader_here;

/// The local reader, if a test has it read: it finds one word, and says that it was it.
#[derive(Clone)]
struct Here;

impl OcrEngine for Here {
    fn name(&self) -> String {
        "here".to_owned()
    }

    fn identity(&self) -> String {
        "here".to_owned()
    }

    fn make_recogniser(&self) -> fault::Result<Box<dyn PageRecogniser>> {
        Ok(Box::new(Self))
    }
}

impl PageRecogniser for Here {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, page: &PageRaster, _: &[String]) -> fault::Result<Vec<TextLine>> {
        // Across the whole page, so that it is the same word however a page was enlarged.
        let (w, h) = (page.width as f32, page.height as f32);
        let bounding_box = BoundingBox { x: 0.0, y: 0.0, w, h };
        let word =
            TextWord { text: "here".into(), bounding_box, confidence: 0.9, unwitnessed: false };
        Ok(vec![TextLine { words: vec![word] }])
    }
}

/// A private key for tests, made once and gone with the process.
fn private_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let options = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
        let made = Command::new("openssl").args(options).output().unwrap();
        assert!(made.status.success(), "openssl makes no key");
        String::from_utf8(made.stdout).unwrap()
    })
}

/// The key file of a service account of this server, in a folder.
fn key_file(server: &google::Server, folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("account.json");
    std::fs::write(&file, server.key_file(private_key())).unwrap();
    file
}

fn lane(throttle: &ThrottleConfig, operation: &'static str) -> GovernedClient {
    let word = |text: &str| text.to_owned();
    let key = LimiterKey { provider: word("p"), account: word("a"), model: word(operation) };
    GovernedClient::new(Arc::new(Governor::new(throttle.clone())), key, operation)
}

/// No wait is waited here.
fn impatient() -> ThrottleConfig {
    ThrottleConfig { longest_wait: Duration::ZERO, failures: 100, ..ThrottleConfig::default() }
}

fn document_ai_config(server: &google::Server) -> DocumentAiConfig {
    DocumentAiConfig {
        project: "project-1".to_owned(),
        processor: "abc123".to_owned(),
        endpoint: server.endpoint(),
        timeout: Duration::from_secs(20),
        ..DocumentAiConfig::default()
    }
}

fn google_tokens(key: SecretSource) -> AccessTokenCache {
    let none = AmbientVariables::default();
    let grant = GoogleGrant::find(key, "ocr.document_ai.credentials", &none).unwrap();
    AccessTokenCache::new(grant)
}

/// The real client of a stand-in.
pub(crate) fn document_ai(
    server: &google::Server,
    change: impl FnOnce(&mut DocumentAiConfig),
) -> DocumentAi {
    let folder = tempfile::tempdir().unwrap();
    let mut config = document_ai_config(server);
    change(&mut config);
    let key = SecretSource::new(&SecretString::default(), &key_file(server, &folder));
    DocumentAi::new(&config, google_tokens(key), lane(&impatient(), "process")).unwrap()
}

/// The same, with a token from whoever is at `tokens`.
pub(crate) fn document_ai_with_tokens_of(server: &google::Server, tokens: &str) -> DocumentAi {
    let key = server.key_file(private_key()).replace(&server.endpoint(), tokens);
    let tokens = google_tokens(SecretSource::new(&key.into(), Path::new("")));
    DocumentAi::new(&document_ai_config(server), tokens, lane(&impatient(), "process")).unwrap()
}

/// The real client of a stand-in.
fn textract(server: &amazon::Server) -> TextractOcr {
    textract_at(&server.endpoint())
}

/// The real client of whoever is there.
pub(crate) fn textract_at(endpoint: &str) -> TextractOcr {
    let config = TextractConfig { poll: Duration::from_millis(20), ..TextractConfig::default() };
    let throttle = impatient();
    let lanes = OperationClients {
        detect: lane(&throttle, "detect"),
        start: lane(&throttle, "start"),
        get: lane(&throttle, "get"),
    };
    TextractOcr::with_client(amazon_client(endpoint), &config, true, lanes)
}

fn amazon_client(endpoint: &str) -> aws_sdk_textract::Client {
    use aws_sdk_textract::config::{BehaviorVersion, Builder, Credentials, Region};
    let sdk = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .endpoint_url(endpoint)
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .build();
    aws_sdk_textract::Client::from_conf(sdk)
}

/// The real client of `AnalyzeExpense` at this address.
pub(crate) fn expense_at(endpoint: &str) -> TextractExpense {
    let governed = lane(&impatient(), "expense");
    TextractExpense::with_client(amazon_client(endpoint), &TextractConfig::default(), governed)
}

/// A reader that asks these in this order, and itself wherever Tesseract is named. It repairs
/// nothing: [`repairing`] does.
fn reader(
    order: &[OcrProvider],
    providers: Vec<(OcrProvider, Arc<dyn RemoteOcrProvider>)>,
) -> DocumentReader {
    let providers: BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>> =
        providers.into_iter().collect();
    let remote_ocr = RemoteOcr::new(order.to_vec(), providers, ByteSize::from_mib(64));
    let mut reader =
        DocumentReader { remote_ocr, ..reader_here(Arc::new(Here), LimitsConfig::default()) };
    reader.recipe.repairs = RepairSwitches::NONE;
    reader
}

fn repairing(mut reader: DocumentReader) -> DocumentReader {
    reader.recipe.repairs = RepairSwitches::ALL;
    reader
}

/// The texts of the pages, in order.
fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.pages.iter().map(docmill_core::model::PageText::text).collect()
}
