//! The effects of hooks' answers on a document's record.

use serde_json::{Map, Value};

use super::answer::{HookAddition, HookAnswer};
use docmill_core::model::{IngestionStage, OutcomeReason};
use docmill_ledger::IngestionResult;

use crate::verdict::early_result;

/// The hook that stopped a document, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookStop {
    hook: String,
    reason: String,
}

impl HookStop {
    /// The record of a document that was stopped before it was read.
    pub(crate) fn to_result(&self, sha256: String) -> IngestionResult {
        let (reason, stage) = (OutcomeReason::GateRefused, IngestionStage::Transcribe);
        IngestionResult {
            review_reasons: vec![review_reason(&self.hook, &self.reason)],
            sha256: Some(sha256),
            ..early_result(reason, stage, self.describe())
        }
    }

    fn describe(&self) -> String {
        format!("stopped by hook {}: {}", self.hook, self.reason)
    }
}

/// The effects of all answers so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HookEffects {
    stop: Option<HookStop>,
    /// The kind to read the document as.
    kind: Option<String>,
    /// Reasons for review.
    flags: Vec<String>,
    /// Fields by the name of their hook.
    fields: Map<String, Value>,
    /// Hooks that gave no usable answer.
    skipped: Vec<String>,
}

impl HookEffects {
    /// Adds the answer of a hook; of several kinds the last holds.
    pub(super) fn add_answer(&mut self, hook: &str, answer: HookAnswer) {
        match answer {
            HookAnswer::Continue => {}
            HookAnswer::Stop(reason) => {
                self.stop = Some(HookStop { hook: hook.to_owned(), reason });
            }
            HookAnswer::Add(HookAddition { kind, flags, fields }) => {
                self.kind = kind.or(self.kind.take());
                self.flags.extend(flags.iter().map(|flag| review_reason(hook, flag)));
                if !fields.is_empty() {
                    self.fields.insert(hook.to_owned(), Value::Object(fields));
                }
            }
        }
    }

    /// Notes that the document went on without a hook.
    pub(super) fn note_skipped(&mut self, hook: &str) {
        self.skipped.push(hook.to_owned());
    }

    /// Why the document is stopped, if it is.
    pub(crate) fn stop(&self) -> Option<&HookStop> {
        self.stop.as_ref()
    }

    /// The kind that a hook named.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Adds the effects of later answers.
    pub(crate) fn extend(&mut self, later: Self) {
        let Self { stop, kind, flags, fields, skipped } = later;
        self.stop = stop.or(self.stop.take());
        self.kind = kind.or(self.kind.take());
        self.flags.extend(flags);
        self.fields.extend(fields);
        self.skipped.extend(skipped);
    }

    /// Writes the effects into the record of a document.
    pub(crate) fn note(self, record: &mut IngestionResult) {
        let Self { stop, flags, fields, skipped, kind: _ } = self;
        record.needs_human_review |= !flags.is_empty();
        record.review_reasons.extend(flags);
        if let Some(stop) = stop {
            record.review_reasons.push(review_reason(&stop.hook, &stop.reason));
            record.reason = record.reason.or(Some(OutcomeReason::GateRefused));
            record.needs_human_review = true;
            record.add_detail(&stop.describe());
        }
        if !skipped.is_empty() {
            record.add_detail(&format!("without hook {}", skipped.join(", ")));
        }
        record.hooks = Some(fields).filter(|fields| !fields.is_empty());
    }
}

/// The reason for review by a hook.
fn review_reason(hook: &str, code: &str) -> String {
    format!("hook:{hook}:{code}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> IngestionResult {
        IngestionResult {
            reason: None,
            needs_human_review: false,
            review_reasons: Vec::new(),
            ..early_result(OutcomeReason::Empty, IngestionStage::Record, String::new())
        }
    }

    fn fields(value: &Value) -> HookAnswer {
        let fields = value.as_object().cloned().unwrap_or_default();
        HookAnswer::Add(HookAddition { fields, ..HookAddition::default() })
    }

    #[test]
    fn flags_ask_for_a_person_and_fields_lie_under_the_name_of_their_hook() {
        let mut effects = HookEffects::default();
        effects.add_answer("spam", fields(&json!({"score": 0.1})));
        let mut later = HookEffects::default();
        let flags = vec!["new_supplier".to_owned()];
        let flagged = HookAddition { flags, ..HookAddition::default() };
        later.add_answer("erp", HookAnswer::Add(flagged));
        later.add_answer("cost", fields(&json!({"centre": "4711"})));
        later.note_skipped("late");
        effects.extend(later);
        let mut noted = record();
        effects.note(&mut noted);
        assert_eq!((noted.reason, noted.needs_human_review), (None, true));
        assert_eq!(noted.review_reasons, ["hook:erp:new_supplier"]);
        assert_eq!(noted.detail, "without hook late");
        let all = json!({"spam": {"score": 0.1}, "cost": {"centre": "4711"}});
        assert_eq!(noted.hooks.map(Value::Object), Some(all));
    }

    #[test]
    fn a_stop_refuses_by_the_name_of_its_hook_before_the_reading_and_after() {
        let mut effects = HookEffects::default();
        effects.add_answer("spam", HookAnswer::Stop("not_ours".to_owned()));
        let early = effects.stop().unwrap().to_result("ab".to_owned());
        let mut late = record();
        effects.note(&mut late);
        for stopped in [early, late] {
            assert_eq!(stopped.reason, Some(OutcomeReason::GateRefused));
            assert_eq!(stopped.review_reasons, ["hook:spam:not_ours"]);
            assert_eq!(stopped.detail, "stopped by hook spam: not_ours");
            assert!(stopped.needs_human_review);
        }
        let mut nothing = record();
        HookEffects::default().note(&mut nothing);
        assert_eq!((nothing.reason, nothing.needs_human_review), (None, false));
    }
}
