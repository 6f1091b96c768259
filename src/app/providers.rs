//! The remote OCR providers named by the configuration or a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::models::{connect_page_model, schedule_model};
use docmill_client::access_token::AccessTokenCache;
use docmill_client::access_token::ambient::AmbientVariables;
use docmill_client::access_token::entra::EntraGrant;
use docmill_client::access_token::google::GoogleGrant;
use docmill_client::throttle::{Governor, LimiterKey};
use docmill_core::config::{
    Config, LlmAuth, OcrProvider, SecretSource, StoreBackend, TextractConfig,
};
use docmill_documents::ocr::RemoteOcrProvider;
use docmill_documents::ocr::document_ai::DocumentAi;
use docmill_documents::ocr::document_intelligence::{AzureCredential, DocumentIntelligence};
use docmill_documents::ocr::governed_client::GovernedClient;
use docmill_documents::ocr::textract::expense::TextractExpense;
use docmill_documents::ocr::textract::{OperationClients, TextractOcr};
use docmill_documents::ocr::vision::VisionOcr;
use docmill_documents::sandbox::CpuPool;
use docmill_gate::kinds::KindSet;
use docmill_pipeline::RemoteOcr;
use docmill_scheduler::Scheduler;

/// Sets them up; nothing is sent.
///
/// # Errors
/// The settings of a named one are missing or wrong; the message names them.
pub(super) async fn build_remote_ocr(
    config: &Config,
    kinds: &KindSet,
    pool: &Arc<CpuPool>,
    governor: &Arc<Governor>,
    scheduler: Option<&Arc<Scheduler>>,
) -> anyhow::Result<RemoteOcr> {
    let ocr = &config.ocr;
    let providers = connect_providers(config, kinds, pool, governor, scheduler).await?;
    Ok(RemoteOcr::new(ocr.providers.clone(), providers, ocr.pictures_in_memory))
}

/// All that the configuration or a kind names.
pub(super) fn named_providers(config: &Config, kinds: &KindSet) -> BTreeSet<OcrProvider> {
    let of_kinds = kinds.iter().flat_map(|kind| kind.read_by.iter().flatten());
    config.ocr.providers.iter().chain(of_kinds).copied().collect()
}

/// Those that are named.
///
/// # Errors
/// As [`build_remote_ocr`].
pub(super) async fn connect_providers(
    config: &Config,
    kinds: &KindSet,
    pool: &Arc<CpuPool>,
    governor: &Arc<Governor>,
    scheduler: Option<&Arc<Scheduler>>,
) -> anyhow::Result<BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>>> {
    let ocr = &config.ocr;
    let mut providers: BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>> = BTreeMap::new();
    for name in named_providers(config, kinds) {
        // A kind may name it where `ocr.providers`, which is checked at the start, does not.
        let problems = ocr.provider_problems(name).join(", ");
        anyhow::ensure!(problems.is_empty(), "a kind is read by {}: {problems}", name.name());
        let provider: Arc<dyn RemoteOcrProvider> = match name {
            OcrProvider::Tesseract => continue,
            OcrProvider::DocumentAi => Arc::new(build_document_ai(config, governor.clone())?),
            OcrProvider::Textract => Arc::new(build_textract(config, governor).await),
            OcrProvider::DocumentIntelligence => {
                Arc::new(build_document_intelligence(config, governor.clone())?)
            }
            OcrProvider::Vision => {
                let llm = connect_page_model(&ocr.vision, governor).await?;
                let llm = schedule_model(llm, scheduler);
                Arc::new(VisionOcr::new(llm, &ocr.vision, Arc::clone(pool)))
            }
        };
        providers.insert(name, provider);
    }
    Ok(providers)
}

fn build_document_ai(config: &Config, governor: Arc<Governor>) -> anyhow::Result<DocumentAi> {
    let config = &config.ocr.document_ai;
    let key = LimiterKey {
        provider: DocumentAi::NAME.to_owned(),
        account: format!("{} {}", config.project, config.location),
        model: config.processor.clone(),
    };
    let source = SecretSource::new(&config.credentials_json, &config.credentials);
    let variables = AmbientVariables::from_process();
    let grant = GoogleGrant::find(source, "ocr.document_ai.credentials", &variables)?;
    Ok(DocumentAi::new(
        config,
        AccessTokenCache::new(grant),
        GovernedClient::new(governor, key, DocumentAi::PROCESS),
    )?)
}

fn build_document_intelligence(
    config: &Config,
    governor: Arc<Governor>,
) -> anyhow::Result<DocumentIntelligence> {
    let config = &config.ocr.document_intelligence;
    let key = LimiterKey {
        provider: DocumentIntelligence::NAME.to_owned(),
        account: config.endpoint.clone(),
        model: config.model.clone(),
    };
    let credential = match config.auth {
        LlmAuth::Key => AzureCredential::Key(config.key_source()),
        LlmAuth::Entra => {
            let variables = AmbientVariables::from_process();
            let grant = EntraGrant::find(EntraGrant::COGNITIVE_SERVICES, &variables)?;
            AzureCredential::Token(AccessTokenCache::new(grant))
        }
    };
    let governed = GovernedClient::new(governor, key, DocumentIntelligence::ANALYZE);
    Ok(DocumentIntelligence::new(config, credential, governed)?)
}

async fn build_textract(config: &Config, governor: &Arc<Governor>) -> TextractOcr {
    let (store, config) = (&config.store, &config.ocr.textract);
    // Textract fetches from S3 itself; another service's buckets are nothing to it.
    let is_aws = store.endpoint.is_empty() || !config.endpoint.is_empty();
    let files = store.backend == StoreBackend::S3 && is_aws;
    let clients = OperationClients {
        detect: govern_textract(config, governor, TextractOcr::DETECT),
        start: govern_textract(config, governor, TextractOcr::START),
        get: govern_textract(config, governor, TextractOcr::GET),
    };
    TextractOcr::connect(config, files, clients).await
}

/// Each operation of Textract has a limit of its own.
fn govern_textract(
    config: &TextractConfig,
    governor: &Arc<Governor>,
    operation: &'static str,
) -> GovernedClient {
    let key = LimiterKey {
        provider: TextractOcr::NAME.to_owned(),
        account: format!("aws {}", config.region),
        model: operation.to_owned(),
    };
    GovernedClient::new(Arc::clone(governor), key, operation)
}

/// The service that reads fields a second time, if one is asked for; nothing is sent.
pub(super) async fn connect_expense(
    config: &TextractConfig,
    governor: &Arc<Governor>,
) -> Option<Arc<TextractExpense>> {
    if config.expense_pages == 0 {
        return None;
    }
    let governed = govern_textract(config, governor, TextractExpense::OPERATION);
    Some(Arc::new(TextractExpense::connect(config, governed).await))
}
