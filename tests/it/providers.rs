//! Reading pages by providers, against stand-ins: slices, order, fallback, repair, jobs.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod contract;
mod document_ai;
mod fallback;
mod pictures;
mod ping;
mod repair;
mod textract;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use docmill::config::{
    ByteSize, DocumentAiConfig, LimitsConfig, OcrProvider, TextractConfig, ThrottleConfig,
};
use docmill::fault;
use docmill::model::{BoundingBox, Line, Repairs, Transcript, Word};
use docmill::ocr::document_ai::{Credentials, DocumentAi};
use docmill::ocr::lane::Lane;
use docmill::ocr::textract::{Lanes, Textract};
use docmill::ocr::{Ocr, Provider};
use docmill::pages::{Raster, Recogniser};
use docmill::pipeline::{Elsewhere, Reader};
use docmill::throttle::{Governor, Key};
use docmill_testkit::{document_ai as google, textract as amazon};

use crate::support::cells::reader_here;

/// What reads here if it is asked: it finds one word, and says that it was it.
#[derive(Clone)]
struct Here;

impl Ocr for Here {
    fn name(&self) -> String {
        "here".to_owned()
    }

    fn identity(&self) -> String {
        "here".to_owned()
    }

    fn recogniser(&self) -> fault::Result<Box<dyn Recogniser>> {
        Ok(Box::new(Self))
    }
}

impl Recogniser for Here {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, page: &Raster, _: &[String]) -> fault::Result<Vec<Line>> {
        // Across the whole page, so that it is the same word however a page was enlarged.
        let (w, h) = (page.width as f32, page.height as f32);
        let bounding_box = BoundingBox { x: 0.0, y: 0.0, w, h };
        let word = Word { text: "here".to_owned(), bounding_box, confidence: 0.9 };
        Ok(vec![Line { words: vec![word] }])
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

fn lane(throttle: &ThrottleConfig, operation: &'static str) -> Lane {
    let word = |text: &str| text.to_owned();
    let key = Key { provider: word("p"), account: word("a"), model: word(operation) };
    Lane::new(Arc::new(Governor::new(throttle.clone())), key, operation)
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

/// The real client of a stand-in.
fn document_ai(server: &google::Server, change: impl FnOnce(&mut DocumentAiConfig)) -> DocumentAi {
    let folder = tempfile::tempdir().unwrap();
    let mut config = document_ai_config(server);
    change(&mut config);
    let credentials = Credentials::find(&key_file(server, &folder)).unwrap();
    DocumentAi::new(&config, credentials, lane(&impatient(), "process")).unwrap()
}

/// The real client of a stand-in.
fn textract(server: &amazon::Server) -> Textract {
    use aws_sdk_textract::config::{BehaviorVersion, Builder, Credentials, Region, retry};
    let sdk = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .endpoint_url(server.endpoint())
        .retry_config(retry::RetryConfig::disabled())
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .build();
    let config = TextractConfig { poll: Duration::from_millis(20), ..TextractConfig::default() };
    let throttle = impatient();
    let lanes = Lanes {
        detect: lane(&throttle, "detect"),
        start: lane(&throttle, "start"),
        get: lane(&throttle, "get"),
    };
    Textract::with_client(aws_sdk_textract::Client::from_conf(sdk), &config, true, lanes)
}

/// A reader that asks these in this order, and itself wherever Tesseract is named. It repairs
/// nothing: [`repairing`] does.
fn reader(order: &[OcrProvider], providers: Vec<(OcrProvider, Arc<dyn Provider>)>) -> Reader {
    let providers: BTreeMap<OcrProvider, Arc<dyn Provider>> = providers.into_iter().collect();
    let elsewhere = Elsewhere::new(order.to_vec(), providers, ByteSize::mib(64));
    let mut reader = Reader { elsewhere, ..reader_here(Arc::new(Here), LimitsConfig::default()) };
    reader.recipe.repairs = Repairs::NONE;
    reader
}

fn repairing(mut reader: Reader) -> Reader {
    reader.recipe.repairs = Repairs::ALL;
    reader
}

/// The texts of the pages, in order.
fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.pages.iter().map(docmill::model::PageText::text).collect()
}
