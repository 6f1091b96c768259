//! Escalation: a model reads, the gate judges, and if its verdict asks for more
//! ([`Verdict::needs_escalation`]) the next model of the chain reads the same pages, inside the
//! same claim.
//!
//! Image repair has happened before the first reading, once. A stronger model's reading never
//! replaces a weaker one's as a whole: the two are merged in both orders so that no populated value
//! is lost, and the gate scores which order is better. If the last model leaves fields empty that
//! the gate requires, it is asked once more, with their names, before a person is. The last of several
//! models is told the broken rules as well, after its own reading: until then readings are independent.
//! An unreachable model ends the escalation as it would end the first reading; paid replies are stored.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::extract::{ExtractionOutcome, UnfinishedExtraction};
use crate::step_error::StepError;
use docmill_core::metrics;
use docmill_core::model::Extraction;
use docmill_extract::{ReadingFaults, combine_extractions, is_blank};
use docmill_gate::Verdict;
use docmill_gate::kinds::RuleConsequence;
use docmill_llm::chain::ChainModel;

/// The reading by one model of the chain. A trait, so that tests script the readings.
#[async_trait]
pub(super) trait EscalationStep: Send {
    /// Has the pages read by this model of the chain.
    async fn read(&mut self, at: usize, model: &ChainModel)
    -> Result<ExtractionOutcome, StepError>;

    /// Whether a model may be asked twice.
    fn may_read_again(&self) -> bool;

    /// Reads the pages with the same model again, with the faults of the readings so far.
    async fn read_again(
        &mut self,
        at: usize,
        model: &ChainModel,
        faults: ReadingFaults,
    ) -> Result<ExtractionOutcome, StepError>;

    /// Has the gate judge an extraction.
    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError>;
}

/// The end of an escalation.
#[derive(Debug)]
pub(super) enum EscalationOutcome {
    /// With data and the verdict on it.
    Judged(Extraction, Box<Verdict>),
    /// No model gave an acceptable reply.
    Unfinished(UnfinishedExtraction),
}

/// Asks stronger models until the gate passes or no further one may help.
///
/// # Errors
/// What a reading or a judgement ended in.
pub(super) async fn escalate(
    models: &[ChainModel],
    step: &mut dyn EscalationStep,
) -> Result<EscalationOutcome, StepError> {
    // On the heap, like all state after a reading: it is held while a job waits for a model.
    let mut so_far: Option<Box<EscalationOutcome>> = None;
    for (at, model) in models.iter().enumerate() {
        let read = step.read(at, model).await?;
        // A model that did not read by itself is not asked for more.
        let has_joined = at > 0 && matches!(read, ExtractionOutcome::Whole(_));
        let before = so_far.map(|so_far| *so_far);
        let now = Box::new(Box::pin(merge_attempt(before, read, step)).await?);
        if at + 1 == models.len() || !may_help(&now) {
            return Box::pin(ask_once_more(*now, at, model, has_joined, step)).await;
        }
        metrics::count_escalation(model.llm.provider());
        tracing::debug!(llm.model = model.llm.model(), "escalating to the next model");
        so_far = Some(now);
    }
    so_far.map(|so_far| *so_far).ok_or_else(|| {
        docmill_core::fault::Error::internal("a chain without a model was asked").into()
    })
}

/// Whether the next model may succeed where this one failed. A reply may also be cut because its
/// model loops.
fn may_help(now: &EscalationOutcome) -> bool {
    match now {
        EscalationOutcome::Judged(_, verdict) => verdict.needs_escalation(),
        EscalationOutcome::Unfinished(_) => true,
    }
}

/// Asks the last model again with the faults of the readings so far: empty fields, and the broken
/// rules where its own reading has joined an earlier one. Without their names it would reply the same.
async fn ask_once_more(
    now: EscalationOutcome,
    at: usize,
    model: &ChainModel,
    has_joined: bool,
    step: &mut dyn EscalationStep,
) -> Result<EscalationOutcome, StepError> {
    let EscalationOutcome::Judged(extraction, verdict) = &now else { return Ok(now) };
    let missing = missing_fields(extraction, verdict);
    let failed = if has_joined { broken_rules(extraction, verdict) } else { Vec::new() };
    let faults = ReadingFaults { missing, failed };
    if faults.is_empty() || !step.may_read_again() {
        return Ok(now);
    }
    tracing::debug!(llm.model = model.llm.model(), "asking the same model again for its faults");
    let read = step.read_again(at, model, faults).await?;
    merge_attempt(Some(now), read, step).await
}

/// The empty fields that the gate refuses for, or those that the reader itself named as unreadable.
/// Empty where another reading would not help.
fn missing_fields(extraction: &Extraction, verdict: &Verdict) -> Vec<String> {
    if !verdict.needs_escalation() {
        return Vec::new();
    }
    let refused = verdict.findings.iter().filter(|it| it.consequence == RuleConsequence::Again);
    let stated = extraction.missing_fields.iter().filter(|_| !extraction.successful);
    let named = refused.filter_map(|finding| finding.field.as_ref()).chain(stated);
    let unique: BTreeSet<&String> =
        named.filter(|name: &&String| extraction.data.get(*name).is_some_and(is_blank)).collect();
    unique.into_iter().cloned().collect()
}

/// Most broken rules that a second question names.
const MAX_NAMED_RULES: usize = 20;

/// The rules that populated fields break, each with its field. Rules about the reader's own word have
/// no field: naming them would only change the word.
fn broken_rules(extraction: &Extraction, verdict: &Verdict) -> Vec<String> {
    if !verdict.needs_escalation() {
        return Vec::new();
    }
    let named = verdict.findings.iter().filter_map(|finding| {
        let field = finding.field.as_deref()?;
        let name = field.split(['[', '.']).next().unwrap_or_default();
        let is_populated = extraction.data.get(name).is_some_and(|value| !is_blank(value));
        is_populated.then(|| format!("{} ({field})", finding.rule))
    });
    named.take(MAX_NAMED_RULES).collect()
}

/// Merges the result of the models so far with a new reading.
async fn merge_attempt(
    before: Option<EscalationOutcome>,
    read: ExtractionOutcome,
    step: &mut dyn EscalationStep,
) -> Result<EscalationOutcome, StepError> {
    Ok(match (before, read) {
        (None, ExtractionOutcome::Whole(reading)) => {
            let verdict = step.judge(&reading).await?;
            EscalationOutcome::Judged(reading, Box::new(verdict))
        }
        (None, ExtractionOutcome::Unfinished(unfinished)) => {
            EscalationOutcome::Unfinished(unfinished)
        }
        (Some(EscalationOutcome::Judged(before, _)), ExtractionOutcome::Whole(new)) => {
            choose_better(&new, &before, step).await?
        }
        // The new reading is whole; what the earlier one had may fill it.
        (Some(EscalationOutcome::Unfinished(before)), ExtractionOutcome::Whole(mut new)) => {
            match before.partial.as_deref() {
                Some(partial) => new = combine_extractions(&new, partial),
                None => new.usage += before.usage,
            }
            let verdict = step.judge(&new).await?;
            EscalationOutcome::Judged(new, Box::new(verdict))
        }
        (
            Some(EscalationOutcome::Judged(mut before, verdict)),
            ExtractionOutcome::Unfinished(new),
        ) => {
            before.usage += new.usage;
            EscalationOutcome::Judged(before, verdict)
        }
        (Some(EscalationOutcome::Unfinished(before)), ExtractionOutcome::Unfinished(new)) => {
            EscalationOutcome::Unfinished(merge_unfinished(before, new))
        }
    })
}

/// Both ways of joining two readings keep every value; the gate decides, and the newer leads where
/// the gate finds no difference.
async fn choose_better(
    new: &Extraction,
    before: &Extraction,
    step: &mut dyn EscalationStep,
) -> Result<EscalationOutcome, StepError> {
    let (newer, older) = (combine_extractions(new, before), combine_extractions(before, new));
    let verdict = step.judge(&newer).await?;
    if !verdict.is_refused() {
        return Ok(EscalationOutcome::Judged(newer, Box::new(verdict)));
    }
    let other = step.judge(&older).await?;
    Ok(if severity(&other) < severity(&verdict) {
        EscalationOutcome::Judged(older, Box::new(other))
    } else {
        EscalationOutcome::Judged(newer, Box::new(verdict))
    })
}

/// How many rules refuse, then how many object at all.
fn severity(verdict: &Verdict) -> (usize, usize) {
    (
        verdict
            .findings
            .iter()
            .filter(|it: &&docmill_gate::GateFinding| it.consequence >= RuleConsequence::Review)
            .count(),
        verdict.findings.len(),
    )
}

/// Two readings of which neither was whole: the later one's reason, the data of both.
fn merge_unfinished(
    before: UnfinishedExtraction,
    new: UnfinishedExtraction,
) -> UnfinishedExtraction {
    let mut usage = before.usage;
    usage += new.usage;
    let partial = match (new.partial, before.partial) {
        (Some(new), Some(before)) => Some(Box::new(combine_extractions(&new, &before))),
        (new, before) => new.or(before),
    };
    UnfinishedExtraction { partial, usage, model: new.model.or(before.model), ..new }
}

#[cfg(test)]
mod tests;
