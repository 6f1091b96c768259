//! The providers that the suite runs over, each with its stand-in.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use docmill_core::config::OcrProvider;
use docmill_core::model::PagePicture;
use docmill_documents::ocr::RemoteOcrProvider;
use docmill_testkit::document_ai::{self as google, Trouble};
use docmill_testkit::document_intelligence as azure;
use docmill_testkit::mistral_ocr as mistral;
use docmill_testkit::models::{self, Answer};
use docmill_testkit::textract as amazon;

use super::{ProviderHarness, ServiceFailure};
use crate::providers::{self, pictures, vision};

/// Google Document AI.
pub(super) struct DocumentAiStandIn(google::Server);

impl DocumentAiStandIn {
    pub(super) async fn start() -> Self {
        Self(google::Server::start(google::Script::default()).await.unwrap())
    }
}

#[async_trait]
impl ProviderHarness for DocumentAiStandIn {
    fn provider(&self) -> OcrProvider {
        OcrProvider::DocumentAi
    }

    async fn client(&self) -> Arc<dyn RemoteOcrProvider> {
        Arc::new(providers::document_ai(&self.0, |_| ()))
    }

    fn fail(&self, failure: ServiceFailure, times: usize) {
        let trouble = match failure {
            ServiceFailure::Throttled => Trouble::throttled(Some("9")),
            ServiceFailure::Denied => Trouble::refused(403, "PERMISSION_DENIED"),
            ServiceFailure::Rejected => Trouble::refused(400, "INVALID_ARGUMENT"),
            ServiceFailure::Broken => Trouble::refused(500, "INTERNAL"),
        };
        self.0.set(google::Script::default().troubled(vec![trouble; times]));
    }

    fn picture(&self, page: u32) -> PagePicture {
        pictures::sent(page)
    }

    fn text(&self, page: u32) -> String {
        pictures::text(page)
    }

    fn calls(&self) -> usize {
        self.0.calls().len()
    }

    fn pages_read(&self) -> usize {
        self.0.read().len()
    }
}

/// Amazon Textract, page by page.
pub(super) struct TextractStandIn(amazon::Server);

impl TextractStandIn {
    pub(super) async fn start() -> Self {
        Self(amazon::Server::start(amazon::Script::default()).await.unwrap())
    }
}

#[async_trait]
impl ProviderHarness for TextractStandIn {
    fn provider(&self) -> OcrProvider {
        OcrProvider::Textract
    }

    async fn client(&self) -> Arc<dyn RemoteOcrProvider> {
        Arc::new(providers::textract_at(&self.0.endpoint()))
    }

    fn fail(&self, failure: ServiceFailure, times: usize) {
        let trouble = match failure {
            ServiceFailure::Throttled => ("ThrottlingException", 500),
            ServiceFailure::Denied => ("AccessDeniedException", 400),
            ServiceFailure::Rejected => ("BadDocumentException", 400),
            ServiceFailure::Broken => ("InternalServerError", 500),
        };
        self.0.set(amazon::Script::default().troubled(amazon::DETECT, vec![trouble; times]));
    }

    fn picture(&self, page: u32) -> PagePicture {
        pictures::sent(page)
    }

    fn text(&self, page: u32) -> String {
        pictures::text(page)
    }

    fn calls(&self) -> usize {
        self.0.calls().iter().filter(|call| call.operation == amazon::DETECT).count()
    }

    fn pages_read(&self) -> usize {
        self.0.answered(amazon::DETECT)
    }
}

/// Azure AI Document Intelligence.
pub(super) struct DocumentIntelligenceStandIn(azure::Server);

impl DocumentIntelligenceStandIn {
    pub(super) async fn start() -> Self {
        Self(azure::Server::start().await.unwrap())
    }
}

#[async_trait]
impl ProviderHarness for DocumentIntelligenceStandIn {
    fn provider(&self) -> OcrProvider {
        OcrProvider::DocumentIntelligence
    }

    async fn client(&self) -> Arc<dyn RemoteOcrProvider> {
        Arc::new(providers::document_intelligence::document_intelligence(&self.0))
    }

    fn fail(&self, failure: ServiceFailure, times: usize) {
        let (status, code, retry_after) = match failure {
            ServiceFailure::Throttled => (429, "429", Some("9")),
            ServiceFailure::Denied => (401, "401", None),
            ServiceFailure::Rejected => (400, "InvalidRequest", None),
            ServiceFailure::Broken => (500, "InternalServerError", None),
        };
        self.0.refuse(vec![azure::Refusal { status, code, retry_after }; times]);
    }

    fn picture(&self, page: u32) -> PagePicture {
        pictures::sent(page)
    }

    fn text(&self, page: u32) -> String {
        providers::document_intelligence::text(page)
    }

    fn calls(&self) -> usize {
        self.0.analyses()
    }

    fn pages_read(&self) -> usize {
        self.0.read().len()
    }
}

/// A vision model behind OpenAI's protocol, beside a local reading that reads the same rows.
pub(super) struct VisionStandIn {
    server: models::Server,
    read: Arc<AtomicUsize>,
}

impl VisionStandIn {
    pub(super) async fn start() -> Self {
        let server = models::Server::start(models::Script::default()).await.unwrap();
        let stand_in = Self { server, read: Arc::default() };
        stand_in.answer(Vec::new(), None);
        stand_in
    }

    /// These answers first, then the rows of the page that each picture shows.
    fn answer(&self, first: Vec<Answer>, api_key: Option<String>) {
        let read = Arc::clone(&self.read);
        let script = models::Script::function(move |request| {
            read.fetch_add(1, Ordering::Relaxed);
            vision::says(&vision::rows(vision::page_of(&request.picture().unwrap())))
        });
        self.server.set(models::Script { answers: first.into(), api_key, ..script });
    }
}

#[async_trait]
impl ProviderHarness for VisionStandIn {
    fn provider(&self) -> OcrProvider {
        OcrProvider::Vision
    }

    async fn client(&self) -> Arc<dyn RemoteOcrProvider> {
        Arc::new(vision::provider(&self.server).await)
    }

    fn fail(&self, failure: ServiceFailure, times: usize) {
        let answer = match failure {
            ServiceFailure::Throttled => Answer::throttled("9"),
            ServiceFailure::Denied => Answer::status(401),
            ServiceFailure::Rejected => Answer::status(400),
            ServiceFailure::Broken => Answer::status(500),
        };
        self.answer(vec![answer; times], None);
    }

    fn refuse_ping(&self) {
        self.answer(Vec::new(), Some("another".to_owned()));
    }

    fn picture(&self, page: u32) -> PagePicture {
        vision::sent(page)
    }

    fn text(&self, page: u32) -> String {
        vision::rows(page).join("\n")
    }

    fn calls(&self) -> usize {
        self.server.calls().len()
    }

    fn pages_read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

/// Mistral OCR, beside a local reading that reads the same rows.
pub(super) struct MistralOcrStandIn(mistral::Server);

impl MistralOcrStandIn {
    pub(super) async fn start() -> Self {
        Self(mistral::Server::start(vision::markdown_rows).await.unwrap())
    }
}

#[async_trait]
impl ProviderHarness for MistralOcrStandIn {
    fn provider(&self) -> OcrProvider {
        OcrProvider::Vision
    }

    async fn client(&self) -> Arc<dyn RemoteOcrProvider> {
        Arc::new(vision::mistral_ocr(&self.0))
    }

    fn fail(&self, failure: ServiceFailure, times: usize) {
        let refusal = match failure {
            ServiceFailure::Throttled => (429, Some("9")),
            ServiceFailure::Denied => (401, None),
            ServiceFailure::Rejected => (422, None),
            ServiceFailure::Broken => (500, None),
        };
        self.0.refuse(vec![refusal; times]);
    }

    fn refuse_ping(&self) {
        self.0.close();
    }

    fn picture(&self, page: u32) -> PagePicture {
        vision::sent(page)
    }

    fn text(&self, page: u32) -> String {
        vision::rows(page).join("\n")
    }

    fn calls(&self) -> usize {
        self.0.calls()
    }

    fn pages_read(&self) -> usize {
        self.0.exchanges().len()
    }
}
