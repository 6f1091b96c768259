//! The models of a configuration: each behind the governor, asked at start whether it is there.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{LlmConfig, LlmProvider, ThrottleConfig};
use crate::fault::{self, Fault};
use crate::llm::Llm;
use crate::llm::anthropic::Anthropic;
use crate::llm::bedrock::Bedrock;
use crate::llm::chain::{Chain, Rung};
use crate::llm::governed::Governed;
use crate::llm::openai::OpenAi;
use crate::llm::traced::Traced;
use crate::model::digest;
use crate::retry::{Backoff, retry};
use crate::scheduler::Scheduler;
use crate::throttle::Governor;

/// How often a model server is asked again at start, a second longer apart each time.
const STARTING: Backoff = Backoff::linear(Duration::from_secs(1)).with_retries(3);

/// The first model and the stronger ones; empty if none is configured.
///
/// # Errors
/// One of them does not answer, or does not take our key.
pub(super) async fn chain(config: &LlmConfig, throttle: &ThrottleConfig) -> fault::Result<Chain> {
    if config.provider == LlmProvider::None {
        return Ok(Chain::default());
    }
    let governor = Arc::new(Governor::new(throttle.clone()));
    let scheduler = Scheduler::start(&config.scheduler)?;
    // Outside of the governor: a call that waits for memory is not yet one to the provider.
    let scheduled = |llm: Arc<dyn Llm>| match &scheduler {
        Some(scheduler) => scheduler.around(llm),
        None => llm,
    };
    let mut rungs = vec![Rung {
        llm: scheduled(model(config, &governor).await?),
        kinds: Vec::new(),
        max_output_tokens: config.max_output_tokens,
    }];
    for stronger in &config.chain {
        let whole = stronger.over(config);
        rungs.push(Rung {
            llm: scheduled(model(&whole, &governor).await?),
            kinds: stronger.kinds.clone(),
            max_output_tokens: whole.max_output_tokens,
        });
    }
    Ok(Chain::new(rungs))
}

async fn model(config: &LlmConfig, governor: &Arc<Governor>) -> fault::Result<Arc<dyn Llm>> {
    let (governor, account) = (Arc::clone(governor), account(config));
    Ok(match config.provider {
        LlmProvider::Anthropic => {
            let model = Anthropic::new(config)?;
            until_it_answers(async || model.ping().await).await?;
            Arc::new(Governed::new(Traced(model), governor, account))
        }
        LlmProvider::Bedrock => {
            let model = Traced(Bedrock::connect(config).await?);
            Arc::new(Governed::new(model, governor, account))
        }
        LlmProvider::None => {
            let context = "llm.chain: a model of the chain has no provider";
            return Err(fault::Error::new(Fault::Misconfigured, context));
        }
        LlmProvider::Openai => {
            let model = OpenAi::new(config)?;
            until_it_answers(async || model.ping().await).await?;
            Arc::new(Governed::new(Traced(model), governor, account))
        }
    })
}

/// Tells accounts apart without naming their key: the server, and a fingerprint of the key.
fn account(config: &LlmConfig) -> String {
    // A key that cannot be read was refused when its model was made.
    let key = config.key().current().unwrap_or_default();
    let digest = digest::sha256(key.reveal());
    format!("{}{} {:.8}", config.base_url, config.region, digest)
}

/// Asks a model server whether it is there, a few times: it may be starting beside us. What only a
/// person can mend (a wrong key) is not asked twice.
async fn until_it_answers(ping: impl AsyncFn() -> fault::Result<()>) -> fault::Result<()> {
    let wait_after = |error: &fault::Error, failed| {
        let wait = STARTING.next_wait(failed).filter(|_| !error.fault.needs_person())?;
        tracing::warn!(error = %error, tries = failed + 1, "{error}, trying again");
        Some(wait)
    };
    retry(|_| ping(), wait_after).await
}
