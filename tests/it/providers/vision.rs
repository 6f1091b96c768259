//! A vision model as reader of pages, against a server that says what a model may say: never alone,
//! no digit that the local reader did not see, and everything that models do wrong ends with the next one.

mod beside;
mod failures;
mod turns;

use docmill_core::config::OcrProvider::{Tesseract, Vision};
use docmill_core::config::{LlmConfig, LlmProvider, VisionConfig, VisionRecipe};
use docmill_core::model::{
    EncodedImage, PagePicture, PageReadResult, PageText, PageUsage, ReadRecipe, ReadingRefusal,
};
use docmill_documents::ocr::vision::VisionOcr;
use docmill_documents::sandbox::CpuPool;
use docmill_llm::Llm;
use docmill_llm::anthropic::AnthropicClient;
use docmill_llm::bedrock::BedrockClient;
use docmill_llm::gemini::GeminiClient;
use docmill_llm::governed::GovernedLlm;
use docmill_llm::mistral_ocr::MistralOcrClient;
use docmill_llm::openai::OpenAiClient;
use docmill_pipeline::{PageSink, ReadOptions, ReadRequest, StepError};
use docmill_testkit::mistral_ocr as mistral;
use docmill_testkit::models::{Answer, Request, Script, SentPicture, Server, Vendor};
use docmill_testkit::pictures::Seen;
use serde_json::json;

use super::*;
use crate::support::page_processes::{reader_of, recipe};

/// The text of each row of marks of a page.
const ROWS: [&str; 6] = [
    "Invoice number PG-2041 dated 03.04.2026",
    "Supplier Honest Parts Ltd of Harbour Street",
    "Hinge set forty millimetres 12 3,50 42,00",
    "Net amount 60,00 and tax 12,00 EUR",
    "Total amount due on receipt -72,00 EUR",
    "Pay to IBAN DE89370400440532013000 thank you",
];

/// The rows of a page, each page with a number of its own.
pub(crate) fn rows(page: u32) -> Vec<String> {
    let own = |row: &&str| row.replace("PG-2041", &format!("PG-{}", 2040 + page));
    let mut rows: Vec<String> = ROWS.iter().map(own).collect();
    if page > 1 {
        // Nothing but the head is the same on two pages.
        let turned = |row: String| row.split(' ').map(|word| format!("{word}{page}")).collect();
        let tail: Vec<Vec<String>> = rows.drain(1..).map(turned).collect();
        rows.extend(tail.into_iter().map(|words| words.join(" ")));
    }
    rows
}

/// Reads what stands on the rows of marks, as surely as it is told to.
#[derive(Clone)]
struct LocalReader {
    confidence: f32,
    /// Whether it reads at all.
    reads: bool,
}

impl OcrEngine for LocalReader {
    fn name(&self) -> String {
        "local".to_owned()
    }

    fn identity(&self) -> String {
        "local".to_owned()
    }

    fn make_recogniser(&self) -> fault::Result<Box<dyn PageRecogniser>> {
        Ok(Box::new(self.clone()))
    }
}

impl PageRecogniser for LocalReader {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, page: &PageRaster, _: &[String]) -> fault::Result<Vec<TextLine>> {
        let number = page.width.saturating_sub(pictures::width(0));
        let rows = if self.reads { rows(number) } else { Vec::new() };
        let lines = (1_u8..).zip(&rows).map(|(row, text)| {
            let words: Vec<&str> = text.split(' ').collect();
            let w = 180.0 / words.len() as f32;
            let word = |(at, text): (u8, &&str)| TextWord {
                text: (*text).into(),
                bounding_box: BoundingBox {
                    x: 30.0 + w * f32::from(at),
                    y: 40.0 * f32::from(row),
                    w: w - 1.0,
                    h: 14.0,
                },
                confidence: self.confidence,
                unwitnessed: false,
            };
            TextLine { words: (0..).zip(&words).map(word).collect() }
        });
        Ok(lines.collect())
    }
}

const SURE: LocalReader = LocalReader { confidence: 0.93, reads: true };

fn settings(server: &Server, vendor: Vendor, recipe: VisionRecipe) -> VisionConfig {
    VisionConfig {
        provider: match vendor {
            Vendor::Openai => LlmProvider::Openai,
            Vendor::Anthropic => LlmProvider::Anthropic,
            Vendor::Bedrock => LlmProvider::Bedrock,
            Vendor::Gemini => LlmProvider::Gemini,
            Vendor::VertexGemini | Vendor::VertexClaude => LlmProvider::Vertex,
        },
        base_url: server.base_url(),
        api_key: "key".to_owned().into(),
        region: "us-east-1".to_owned(),
        model: "seer-1".to_owned(),
        recipe,
        timeout: Duration::from_secs(20),
        ..VisionConfig::default()
    }
}

async fn client(config: &LlmConfig) -> Arc<dyn Llm> {
    let governor = Arc::new(Governor::new(impatient()));
    let account = "account".to_owned();
    match config.provider {
        LlmProvider::Anthropic => {
            Arc::new(GovernedLlm::new(AnthropicClient::new(config).unwrap(), governor, account))
        }
        LlmProvider::Bedrock => {
            let model = BedrockClient::connect(config).await.unwrap();
            Arc::new(GovernedLlm::new(model, governor, account))
        }
        LlmProvider::Gemini => {
            Arc::new(GovernedLlm::new(GeminiClient::new(config).unwrap(), governor, account))
        }
        _ => Arc::new(GovernedLlm::new(OpenAiClient::new(config).unwrap(), governor, account)),
    }
}

async fn vision_ocr(config: &VisionConfig) -> VisionOcr {
    let llm = client(&config.model_config()).await;
    VisionOcr::new(llm, config, Arc::new(CpuPool::new(1).unwrap()))
}

/// The real client of a model behind OpenAI's protocol.
pub(crate) async fn provider(server: &Server) -> VisionOcr {
    vision_ocr(&settings(server, Vendor::Openai, VisionRecipe::General)).await
}

/// The Markdown that Mistral OCR makes of a page of marks.
pub(crate) fn markdown_rows(picture: Seen) -> String {
    let rows = rows(picture.width - pictures::width(0));
    format!("![img-0.jpeg](img-0.jpeg)\n\n# {}", rows.join("\n\n"))
}

/// The real client of Mistral OCR.
pub(crate) fn mistral_ocr(server: &mistral::Server) -> VisionOcr {
    let config = VisionConfig {
        base_url: server.base_url(),
        api_key: mistral::KEY.to_owned().into(),
        model: mistral::MODEL.to_owned(),
        recipe: VisionRecipe::MistralOcr,
        timeout: Duration::from_secs(20),
        ..VisionConfig::default()
    };
    let llm = MistralOcrClient::new(&config.model_config()).unwrap();
    let governor = Arc::new(Governor::new(impatient()));
    let llm = Arc::new(GovernedLlm::new(llm, governor, "account".to_owned()));
    VisionOcr::new(llm, &config, Arc::new(CpuPool::new(1).unwrap()))
}

/// A page as it is sent to the model, beside what the local reader reads of it.
pub(crate) fn sent(page: u32) -> PagePicture {
    let mut sent = pictures::sent(page);
    let (width, height) = (pictures::width(page), pictures::HEIGHT);
    let pixels = image::load_from_memory(&sent.image.bytes).unwrap().into_luma8().into_raw();
    let raster = PageRaster { width, height, dpi: 100, pixels };
    let lines = SURE.clone().recognise(&raster, &[]).unwrap();
    let page = PageText::from_native(page, (width as f32, height as f32), 1.0, lines);
    sent.local_reading = Some(Box::new(PageReadResult { page, repaired: None }));
    sent
}

async fn vision_reader(config: &VisionConfig, local: LocalReader) -> DocumentReader {
    let provider: Arc<dyn RemoteOcrProvider> = Arc::new(vision_ocr(config).await);
    let remote_ocr = RemoteOcr::new(
        vec![Vision, Tesseract],
        BTreeMap::from([(Vision, provider)]),
        ByteSize::from_mib(64),
    );
    // Not repaired here either: the picture that is sent is as large as the page.
    let recipe = ReadRecipe { repairs: RepairSwitches::NONE, ..recipe() };
    let here = reader_of(Arc::new(local), LimitsConfig::default(), recipe);
    DocumentReader { remote_ocr, ..here }
}

/// A general model's reply.
pub(crate) fn says(rows: &[String]) -> Answer {
    says_turned(rows, "0")
}

fn says_turned(rows: &[String], turn: &str) -> Answer {
    Answer::Text { content: json!({"turn": turn, "lines": rows}).to_string() }
}

/// Which page a picture shows, told by its width.
pub(crate) fn page_of(picture: &SentPicture) -> u32 {
    picture.width - pictures::width(0)
}

/// Keeps what a reading hands over.
#[derive(Default)]
struct KeptPages {
    pages: Vec<PageText>,
    used: Vec<PageUsage>,
}

#[async_trait::async_trait]
impl PageSink for KeptPages {
    async fn store_page(
        &mut self,
        page: &PageText,
        _: Option<EncodedImage>,
    ) -> Result<(), StepError> {
        self.pages.push(page.clone());
        Ok(())
    }

    async fn after_call(&mut self, usage: &PageUsage, _: bool) -> Result<(), StepError> {
        self.used.push(usage.clone());
        Ok(())
    }
}

impl KeptPages {
    /// Why readings were refused, in their order.
    fn refusals(&self) -> Vec<ReadingRefusal> {
        self.pages.iter().filter_map(|page| page.provider.as_ref()?.refused).collect()
    }
}

/// Reads a document of so many pages of marks, of which these are there already.
async fn read_pages(
    reader: &DocumentReader,
    bytes: Vec<u8>,
    finished: Vec<PageText>,
) -> (Transcript, KeptPages) {
    let document = reader.open_document(bytes.into(), false).await.unwrap();
    let mut kept = KeptPages::default();
    let (sha256, options) = ("sha".to_owned(), ReadOptions::default());
    let reading = ReadRequest { document, sha256, finished, options };
    let read = reader.read_remaining(reading, &mut kept).await.unwrap();
    (read, kept)
}

/// A server that answers so, and what comes of `pages` pages.
async fn read_by(
    script: Script,
    local: LocalReader,
    pages: u32,
) -> (Transcript, KeptPages, Server) {
    let server = Server::start(Script { record: true, ..script }).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::General);
    let reader = vision_reader(&config, local).await;
    let (read, kept) = read_pages(&reader, pictures::scans(pages), Vec::new()).await;
    (read, kept, server)
}
