//! The models of a configuration: each behind the governor, asked at start whether it is there.

use std::sync::Arc;
use std::time::Duration;

use docmill_client::throttle::Governor;
use docmill_core::config::{LlmConfig, LlmProvider, VisionConfig, VisionRecipe};
use docmill_core::fault::{self, Fault};
use docmill_core::model::digest;
use docmill_core::retry::{RetryBackoff, retry};
use docmill_llm::Llm;
use docmill_llm::anthropic::AnthropicClient;
use docmill_llm::anthropic::batches::AnthropicBatches;
use docmill_llm::batch::{BatchApi, GovernedBatches};
use docmill_llm::bedrock::BedrockClient;
use docmill_llm::bedrock::batches::BedrockBatches;
use docmill_llm::chain::{ChainModel, ModelChain};
use docmill_llm::gemini::GeminiClient;
use docmill_llm::gemini::batches::GeminiBatches;
use docmill_llm::governed::GovernedLlm;
use docmill_llm::mistral_ocr::MistralOcrClient;
use docmill_llm::openai::OpenAiClient;
use docmill_llm::openai::batches::OpenAiBatches;
use docmill_llm::traced::TracedLlm;
use docmill_scheduler::Scheduler;

/// How often a model server is asked again at start, a second longer apart each time.
const STARTING: RetryBackoff = RetryBackoff::linear(Duration::from_secs(1)).with_retries(3);

/// The scheduler of local models; `None`: no model is local, or no model is configured or used for pages.
///
/// # Errors
/// As [`Scheduler::start`].
pub(super) fn start_scheduler(
    config: &LlmConfig,
    reads_pages: bool,
) -> fault::Result<Option<Arc<Scheduler>>> {
    if config.provider == LlmProvider::None && !reads_pages {
        return Ok(None);
    }
    Scheduler::start(&config.scheduler)
}

/// A model behind the scheduler, if there is one. Outside of the governor: a call that waits for
/// memory is not yet one to the provider.
pub(super) fn schedule_model(
    llm: Arc<dyn Llm>,
    scheduler: Option<&Arc<Scheduler>>,
) -> Arc<dyn Llm> {
    match scheduler {
        Some(scheduler) => scheduler.wrap_model(llm),
        None => llm,
    }
}

/// The first model and the stronger ones; empty if none is configured.
///
/// # Errors
/// One of them does not answer, or does not take our key.
pub(super) async fn build_chain(
    config: &LlmConfig,
    governor: &Arc<Governor>,
    scheduler: Option<&Arc<Scheduler>>,
) -> fault::Result<ModelChain> {
    if config.provider == LlmProvider::None {
        return Ok(ModelChain::default());
    }
    let mut models = vec![ChainModel {
        llm: schedule_model(build_model(config, governor).await?, scheduler),
        kinds: Vec::new(),
        max_output_tokens: config.max_output_tokens,
        pictures: config.takes_pictures.then(|| config.picture_rule()),
        batches: connect_batches(config, governor).await?,
    }];
    for stronger in &config.chain {
        let whole = stronger.inherit_from(config);
        models.push(ChainModel {
            llm: schedule_model(build_model(&whole, governor).await?, scheduler),
            kinds: stronger.kinds.clone(),
            max_output_tokens: whole.max_output_tokens,
            pictures: whole.takes_pictures.then(|| whole.picture_rule()),
            batches: connect_batches(&whole, governor).await?,
        });
    }
    Ok(ModelChain::new(models))
}

/// The model that reads pages, behind the governor; nothing is sent to it.
///
/// # Errors
/// Its settings are of no use.
pub(super) async fn connect_page_model(
    config: &VisionConfig,
    governor: &Arc<Governor>,
) -> fault::Result<Arc<dyn Llm>> {
    let model_config = config.model_config();
    if config.recipe != VisionRecipe::MistralOcr {
        return connect_model(&model_config, governor).await;
    }
    let model = TracedLlm(MistralOcrClient::new(&model_config)?);
    Ok(Arc::new(GovernedLlm::new(model, Arc::clone(governor), account_id(&model_config))))
}

async fn build_model(config: &LlmConfig, governor: &Arc<Governor>) -> fault::Result<Arc<dyn Llm>> {
    let model = connect_model(config, governor).await?;
    wait_until_answering(async || model.ping().await).await?;
    Ok(model)
}

/// A model behind the governor; nothing is sent to it.
///
/// # Errors
/// Its settings are of no use.
pub(super) async fn connect_model(
    config: &LlmConfig,
    governor: &Arc<Governor>,
) -> fault::Result<Arc<dyn Llm>> {
    let (governor, account) = (Arc::clone(governor), account_id(config));
    let class = config.price_class();
    Ok(match config.provider {
        LlmProvider::Vertex if !config.asks_claude() => {
            let model = TracedLlm(GeminiClient::new(config)?);
            Arc::new(GovernedLlm::new(model, governor, account).with_price_class(class))
        }
        LlmProvider::Anthropic | LlmProvider::Vertex => {
            let model = TracedLlm(AnthropicClient::new(config)?);
            Arc::new(GovernedLlm::new(model, governor, account).with_price_class(class))
        }
        LlmProvider::Bedrock => {
            let model = TracedLlm(BedrockClient::connect(config).await?);
            Arc::new(GovernedLlm::new(model, governor, account).with_price_class(class))
        }
        LlmProvider::Gemini => {
            let model = TracedLlm(GeminiClient::new(config)?);
            Arc::new(GovernedLlm::new(model, governor, account).with_price_class(class))
        }
        LlmProvider::None => {
            let context = "a model of llm.chain or ocr.vision has no provider";
            return Err(fault::Error::new(Fault::Misconfigured, context));
        }
        LlmProvider::Openai => {
            let model = TracedLlm(OpenAiClient::new(config)?);
            Arc::new(GovernedLlm::new(model, governor, account).with_price_class(class))
        }
    })
}

/// Connects a model's batch interface, if allowed; nothing is sent.
///
/// # Errors
/// Invalid settings.
async fn connect_batches(
    config: &LlmConfig,
    governor: &Arc<Governor>,
) -> fault::Result<Option<Arc<dyn BatchApi>>> {
    if !config.batch.enabled {
        return Ok(None);
    }
    let (governor, account) = (Arc::clone(governor), account_id(config));
    let class = config.price_class();
    Ok(match config.provider {
        LlmProvider::Anthropic => {
            let batches = AnthropicBatches::new(config)?;
            Some(Arc::new(GovernedBatches::new(batches, governor, account).with_price_class(class)))
        }
        LlmProvider::Openai => {
            let batches = OpenAiBatches::new(config)?;
            Some(Arc::new(GovernedBatches::new(batches, governor, account).with_price_class(class)))
        }
        LlmProvider::Bedrock => {
            let batches = BedrockBatches::connect(config).await?;
            Some(Arc::new(GovernedBatches::new(batches, governor, account).with_price_class(class)))
        }
        LlmProvider::Gemini => {
            let batches = GeminiBatches::new(config)?;
            Some(Arc::new(GovernedBatches::new(batches, governor, account).with_price_class(class)))
        }
        // Vertex AI takes batches from Google's own storage only; refused with the settings.
        LlmProvider::None | LlmProvider::Vertex => None,
    })
}

/// Identifies an account without its key: the server, and a fingerprint of the key.
fn account_id(config: &LlmConfig) -> String {
    // A key that cannot be read was refused when its model was made.
    let key = config.key_source().current_secret().unwrap_or_default();
    let digest = digest::sha256_hex(key.reveal());
    format!("{}{} {:.8}", config.base_url, config.region, digest)
}

/// Pings a model server a few times, since it may be starting up. Errors that need a person (a
/// wrong key) are not retried.
async fn wait_until_answering(ping: impl AsyncFn() -> fault::Result<()>) -> fault::Result<()> {
    retry(
        |_| ping(),
        |error: &fault::Error, failed| {
            let wait = STARTING.next_wait(failed).filter(|_| !error.fault.needs_person())?;
            tracing::warn!(error = %error, tries = failed + 1, "{error}, retrying");
            Some(wait)
        },
    )
    .await
}
