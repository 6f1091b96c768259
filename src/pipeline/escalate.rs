//! Rung after rung: a model reads, the gate judges, and where it says `again` the next model of the
//! chain reads the same pages, inside the same claim.
//!
//! The pages themselves are as good as they get by then: what repair they call for comes before
//! the first reading, once. A stronger model's reading never replaces a weaker one's as a whole:
//! the two are joined both ways round so that no populated value is lost, and the gate says which
//! way holds better. A model that cannot be reached ends the climb as it would end the first
//! reading; what was paid for until then is stored.

use async_trait::async_trait;

use super::StepError;
use super::extract::{Extracted, Unfinished};
use crate::extract::combined;
use crate::gate::Verdict;
use crate::kinds::Consequence;
use crate::llm::chain::Rung;
use crate::metrics;
use crate::model::{Extraction, Reason};

/// What a climb needs: a claimed ingestion has it, and a document without a ledger.
#[async_trait]
pub(super) trait Climber: Send {
    /// Has the pages read by the model of this rung.
    async fn read(&mut self, at: usize, rung: &Rung) -> Result<Extracted, StepError>;

    /// Asks the gate.
    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError>;
}

/// Where a climb ended.
#[derive(Debug)]
pub(super) enum Climbed {
    /// With data and the verdict on it.
    Judged(Extraction, Verdict),
    /// No model gave an acceptable reply.
    Unfinished(Unfinished),
}

/// Climbs until the gate is content or no further rung may help.
///
/// # Errors
/// What a reading or a judgement ended in.
pub(super) async fn climb(rungs: &[Rung], climber: &mut dyn Climber) -> Result<Climbed, StepError> {
    let mut so_far: Option<Climbed> = None;
    for (at, rung) in rungs.iter().enumerate() {
        let read = climber.read(at, rung).await?;
        let now = joined(so_far, read, climber).await?;
        if !may_help(&now, rungs.get(at + 1), rung) {
            return Ok(now);
        }
        metrics::escalated(rung.llm.provider());
        tracing::debug!(llm.model = rung.llm.model(), "the next model of the chain is asked");
        so_far = Some(now);
    }
    so_far.ok_or_else(|| crate::fault::Error::internal("a chain without a model was asked").into())
}

/// Whether the next rung may bring what this one did not.
fn may_help(now: &Climbed, next: Option<&Rung>, this: &Rung) -> bool {
    let Some(next) = next else { return false };
    match now {
        Climbed::Judged(_, verdict) => verdict.again(),
        // Longer replies may hold what was cut; as many pages as before are cut as before.
        Climbed::Unfinished(unfinished) if unfinished.reason == Reason::Cut => {
            next.max_output_tokens > this.max_output_tokens
        }
        Climbed::Unfinished(_) => true,
    }
}

/// What the rungs so far and a new reading make together.
async fn joined(
    before: Option<Climbed>,
    read: Extracted,
    climber: &mut dyn Climber,
) -> Result<Climbed, StepError> {
    Ok(match (before, read) {
        (None, Extracted::Whole(reading)) => {
            let verdict = climber.judge(&reading).await?;
            Climbed::Judged(reading, verdict)
        }
        (None, Extracted::Unfinished(unfinished)) => Climbed::Unfinished(unfinished),
        (Some(Climbed::Judged(before, _)), Extracted::Whole(new)) => {
            better(&new, &before, climber).await?
        }
        // The new reading is whole; what the earlier one had may fill it.
        (Some(Climbed::Unfinished(before)), Extracted::Whole(mut new)) => {
            match before.partial.as_deref() {
                Some(partial) => new = combined(&new, partial),
                None => new.usage += before.usage,
            }
            let verdict = climber.judge(&new).await?;
            Climbed::Judged(new, verdict)
        }
        (Some(Climbed::Judged(mut before, verdict)), Extracted::Unfinished(new)) => {
            before.usage += new.usage;
            Climbed::Judged(before, verdict)
        }
        (Some(Climbed::Unfinished(before)), Extracted::Unfinished(new)) => {
            Climbed::Unfinished(both(before, new))
        }
    })
}

/// Both ways of joining two readings hold every value; the gate has the say, and the newer leads
/// where it has none.
async fn better(
    new: &Extraction,
    before: &Extraction,
    climber: &mut dyn Climber,
) -> Result<Climbed, StepError> {
    let (newer, older) = (combined(new, before), combined(before, new));
    let verdict = climber.judge(&newer).await?;
    if !verdict.refused() {
        return Ok(Climbed::Judged(newer, verdict));
    }
    let other = climber.judge(&older).await?;
    Ok(if gravity(&other) < gravity(&verdict) {
        Climbed::Judged(older, other)
    } else {
        Climbed::Judged(newer, verdict)
    })
}

/// How many rules refuse, then how many object at all.
fn gravity(verdict: &Verdict) -> (usize, usize) {
    let refusing = |it: &&crate::gate::Finding| it.consequence >= Consequence::Review;
    (verdict.findings.iter().filter(refusing).count(), verdict.findings.len())
}

/// Two readings of which neither was whole: the later one's reason, the data of both.
fn both(before: Unfinished, new: Unfinished) -> Unfinished {
    let mut usage = before.usage;
    usage += new.usage;
    let partial = match (new.partial, before.partial) {
        (Some(new), Some(before)) => Some(Box::new(combined(&new, &before))),
        (new, before) => new.or(before),
    };
    Unfinished { partial, usage, model: new.model.or(before.model), ..new }
}

#[cfg(test)]
mod tests;
