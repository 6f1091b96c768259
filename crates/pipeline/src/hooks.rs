//! Hooks: services of an operator's own that are asked before and after a document is read, and may
//! stop it or add to it.
//!
//! A question has an id made of the ingestion, its opening and the facts asked about. The answer is
//! stored before it is used: a hook is asked once, unless the worker dies in between; then under the
//! same id. A hook without a usable answer never ends a document: it waits, or goes on without the
//! hook. Not promised: that a hook that is asked again gives the same answer.

mod answer;
mod effects;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::artefact::{ArtefactSlot, identity_of};
use crate::context::AttemptContext;
use crate::hook_set::{OpenHook, PipelineHooks};
use answer::{HookAnswer, MAX_ANSWER_BYTES, parse_answer};
pub(super) use effects::HookEffects;

use docmill_client::throttle::{GovernedAnswer, GovernedCall, RateLimitHeaders, TokenEstimate};
use docmill_core::config::{HookConfig, HookFailure, HookMoment};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_storage::keys;

/// How often a question is repeated at once after a passing failure.
const QUICK_RETRIES: u32 = 2;
/// How long the address of an original is good.
const ORIGINAL_LIFETIME: Duration = Duration::from_secs(15 * 60);

/// The facts that hooks are asked about.
pub(super) struct HookQuestion<'a> {
    /// When they are asked.
    pub(super) at: HookMoment,
    /// The kind, if it is known.
    pub(super) kind: Option<&'a str>,
    /// Facts for every hook.
    pub(super) facts: Map<String, Value>,
    /// The data, for hooks that get it.
    pub(super) data: Option<&'a Map<String, Value>>,
}

impl HookQuestion<'_> {
    /// The facts for one hook.
    fn facts_for(&self, attempt: AttemptContext<'_>, hook: &HookConfig) -> Map<String, Value> {
        let claimed = attempt.claimed;
        let own = json!({
            "hook": hook.name,
            "ingestion_id": claimed.id,
            "document_id": claimed.document.id,
            "tenant": claimed.tenant,
            "kind": self.kind,
        });
        let mut facts = own.as_object().cloned().unwrap_or_default();
        facts.extend(self.facts.clone());
        if let Some(data) = self.data.filter(|_| hook.include_data) {
            facts.insert("data".to_owned(), Value::Object(data.clone()));
        }
        facts
    }
}

/// Asks the hooks of a moment, in their order, until one stops the document.
///
/// # Errors
/// `Denied` or `InLine` for a hook without a usable answer that is to be waited for; store errors; a
/// lost claim.
pub(super) async fn ask_hooks(
    attempt: AttemptContext<'_>,
    question: HookQuestion<'_>,
) -> Result<HookEffects> {
    let mut effects = HookEffects::default();
    let Some(all) = attempt.services().hooks.as_deref() else { return Ok(effects) };
    let tenant = attempt.claimed.tenant.as_deref();
    let asked: Vec<&OpenHook> = all
        .hooks
        .iter()
        .filter(|hook| hook.config.at == question.at)
        .filter(|hook| hook.config.concerns(tenant, question.kind))
        .collect();
    if asked.is_empty() {
        return Ok(effects);
    }
    let mut answers = AnswerStore::load(attempt).await?;
    for hook in asked {
        let facts = question.facts_for(attempt, &hook.config);
        match answers.find_or_ask(all, hook, facts).await? {
            Ok(answer) => effects.add_answer(&hook.config.name, answer),
            Err(error) => {
                metrics::count_hook(&hook.config.name, "failed");
                if hook.config.on_failure == HookFailure::Defer {
                    let wait = attempt.config().retry.unavailable_delay;
                    return Err(as_deferral(error, &hook.config.name, wait));
                }
                tracing::warn!(hook = hook.config.name, error = %error, "a hook was skipped");
                effects.note_skipped(&hook.config.name);
            }
        }
        if effects.stop().is_some() {
            break;
        }
    }
    Ok(effects)
}

/// Maps the failure of a hook to a fault that never ends the document. In an outage each retry
/// follows after `outage_wait` plus up to a quarter, so that documents continue soon after
/// recovery.
fn as_deferral(error: Error, hook: &str, outage_wait: Duration) -> Error {
    let fault = match error.fault {
        Fault::Throttled(Some(wait)) | Fault::InLine(wait) => Fault::InLine(wait),
        Fault::Transient | Fault::Unavailable | Fault::Throttled(None) => {
            Fault::InLine(outage_wait.mul_f64(1.0 + fastrand::f64() / 4.0))
        }
        _ => Fault::Denied,
    };
    Error { fault, context: format!("hook `{hook}`: {}", error.context).into(), ..error }
}

/// Answers of one opening of an ingestion, by the ids of their questions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RecordedAnswers {
    answers: BTreeMap<String, HookAnswer>,
}

/// The stored answers of an ingestion.
struct AnswerStore<'a> {
    attempt: AttemptContext<'a>,
    slot: ArtefactSlot<RecordedAnswers>,
    opening: String,
}

impl<'a> AnswerStore<'a> {
    async fn load(attempt: AttemptContext<'a>) -> Result<Self> {
        let opening = attempt.claimed.attempt_limit.to_string();
        let key = keys::hook_answers_key(attempt.claim.id);
        let pool = &attempt.services().pool;
        let identity = identity_of(&["hooks", &opening]);
        let slot = ArtefactSlot::load(attempt.artefacts(), pool, key, identity).await?;
        Ok(Self { attempt, slot, opening })
    }

    /// The stored answer of a hook, or the one it gives, which is stored; within: the hook's failure.
    ///
    /// # Errors
    /// Store errors; a lost claim.
    async fn find_or_ask(
        &mut self,
        all: &PipelineHooks,
        hook: &OpenHook,
        facts: Map<String, Value>,
    ) -> Result<Result<HookAnswer>> {
        let facts = Value::Object(facts);
        // The id of the ingestion, the hook's name and the data are among the facts.
        let id = identity_of(&[hook.config.at.code(), &self.opening, &facts.to_string()]);
        let known = self.slot.content.as_ref().and_then(|stored| stored.answers.get(&id));
        if let Some(answer) = known {
            return Ok(Ok(answer.clone()));
        }
        self.attempt.claim.ensure_live().await?;
        let mut message = HookMessage { id: &id, facts };
        if hook.config.include_original {
            message.add_original(self.attempt).await?;
        }
        let answer = match ask_hook(self.attempt, all, hook, message).await {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(failure)),
        };
        metrics::count_hook(&hook.config.name, answer.code());
        let mut stored = self.slot.content.clone().unwrap_or_default();
        stored.answers.insert(id, answer.clone());
        self.slot.write(self.attempt.artefacts(), self.attempt.claim, stored).await?;
        Ok(Ok(answer))
    }
}

/// A question to one hook.
struct HookMessage<'a> {
    id: &'a str,
    facts: Value,
}

impl HookMessage<'_> {
    /// Adds an address of the original, good for some minutes, if the store gives any.
    async fn add_original(&mut self, attempt: AttemptContext<'_>) -> Result<()> {
        let key = &attempt.claimed.document.file_path;
        let url = attempt.context.documents.presign_read(key, ORIGINAL_LIFETIME).await?;
        let until = written_time(OffsetDateTime::now_utc() + ORIGINAL_LIFETIME);
        if let (Some(url), Some(facts)) = (url, self.facts.as_object_mut()) {
            facts.insert("original".to_owned(), json!({ "url": url, "expires_at": until }));
        }
        Ok(())
    }
}

/// Asks a hook, at the pace and with the breaker of every provider.
async fn ask_hook(
    attempt: AttemptContext<'_>,
    all: &PipelineHooks,
    hook: &OpenHook,
    message: HookMessage<'_>,
) -> Result<HookAnswer> {
    let services = attempt.services();
    let body = json!({
        "type": format!("hook.{}", hook.config.at.code()),
        "timestamp": written_time(OffsetDateTime::now_utc()),
        "data": message.facts,
    });
    let (body, at, kinds) = (body.to_string(), hook.config.at, &services.kinds);
    let call = GovernedCall {
        governor: &services.governor,
        key: &hook.key,
        estimate: TokenEstimate::default(),
        quick_retries: QUICK_RETRIES,
    };
    call.make(|| async {
        let signed = hook.target.sign(message.id, body.clone())?;
        let sending = all.sender.ask_question(hook.target.url(), signed, MAX_ANSWER_BYTES);
        let answer = sending.await?;
        let value = parse_answer(&answer, at, kinds)
            .map_err(|rule| Error::new(Fault::Rejected, format!("no usable answer: {rule}")))?;
        Ok(GovernedAnswer { value, limits: RateLimitHeaders::default(), tokens: None })
    })
    .await
}

fn written_time(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hooks_failure_never_ends_a_document_by_its_age_or_its_attempts() {
        use crate::failure::{RetryAttempt, RetryDecision, decide_retry};
        use docmill_core::config::RetryConfig;
        let wait = Duration::from_secs(7);
        for fault in [
            Fault::Transient,
            Fault::Throttled(Some(wait)),
            Fault::Throttled(None),
            Fault::InLine(wait),
            Fault::Unavailable,
            Fault::Denied,
            Fault::Misconfigured,
            Fault::Missing,
            Fault::Rejected,
            Fault::Internal,
        ] {
            let fault = as_deferral(Error::new(fault, "x"), "spam", wait).fault;
            let deferred_for = Some(Duration::from_secs(365 * 24 * 3600));
            let attempt = RetryAttempt { number: 99, deferred_for, jitter: 0.5 };
            let decided = decide_retry(fault, attempt, &RetryConfig::default());
            assert!(
                matches!(decided, RetryDecision::Again { counted: false, .. }),
                "{fault:?}: {decided:?}"
            );
        }
    }
}
