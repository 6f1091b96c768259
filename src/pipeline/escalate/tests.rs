//! An escalation over scripted readings: what each model brings, and what the gate says of it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use docmill_core::fault::{Error, Fault, Result as FaultResult};
use docmill_core::model::{ExtractionMethod, ModelUsage, StatedConfidence};
use docmill_gate::gate::GateFinding;
use docmill_llm::llm::{Llm, ModelReply, Prompt};

/// A model that is only named.
struct Named(&'static str);

#[async_trait]
impl Llm for Named {
    fn provider(&self) -> &'static str {
        "named"
    }

    fn model(&self) -> &str {
        self.0
    }

    async fn complete(&self, _: &Prompt) -> FaultResult<ModelReply> {
        Err(Error::internal("it is never asked here"))
    }
}

fn models(caps: &[u32]) -> Vec<ChainModel> {
    let model = |(at, cap): (usize, &u32)| ChainModel {
        llm: Arc::new(Named(if at == 0 { "small" } else { "large" })),
        kinds: Vec::new(),
        max_output_tokens: *cap,
        batches: None,
    };
    caps.iter().enumerate().map(model).collect()
}

fn reading(data: Value) -> Extraction {
    Extraction {
        reader: ExtractionMethod::Llm,
        model: None,
        kind: "invoice".to_owned(),
        data: data.as_object().unwrap().clone(),
        successful: true,
        confidence: StatedConfidence::High,
        missing_fields: Vec::new(),
        evidence: Vec::new(),
        certainties: Vec::new(),
        usage: ModelUsage { input: 1, ..ModelUsage::default() },
    }
}

fn whole(data: Value) -> Result<ExtractionOutcome, StepError> {
    Ok(ExtractionOutcome::Whole(reading(data)))
}

fn unfinished(
    reason: OutcomeReason,
    partial: Option<Value>,
) -> Result<ExtractionOutcome, StepError> {
    Ok(ExtractionOutcome::Unfinished(UnfinishedExtraction {
        reason,
        detail: String::new(),
        partial: partial.map(|data| Box::new(reading(data))),
        usage: ModelUsage { input: 1, ..ModelUsage::default() },
        model: None,
    }))
}

/// Gives out readings in their order. The gate wants `total` to be 10, `number` to be there, and
/// no `stop`.
struct Scripted {
    readings: VecDeque<Result<ExtractionOutcome, StepError>>,
    asked: Vec<usize>,
}

#[async_trait]
impl EscalationStep for Scripted {
    async fn read(&mut self, at: usize, _: &ChainModel) -> Result<ExtractionOutcome, StepError> {
        self.asked.push(at);
        self.readings.pop_front().unwrap()
    }

    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError> {
        let value = |name: &str| extraction.data.get(name).cloned().unwrap_or(Value::Null);
        let finding = |rule: &str, consequence| GateFinding {
            rule: rule.to_owned(),
            field: None,
            consequence,
        };
        let mut findings = Vec::new();
        if value("total") != json!(10) {
            findings.push(finding("wrong_total", RuleConsequence::Again));
        }
        if value("number").is_null() {
            findings.push(finding("no_number", RuleConsequence::Again));
        }
        if !value("stop").is_null() {
            findings.push(finding("stop", RuleConsequence::Review));
        }
        Ok(Verdict { findings, ..Verdict::default() })
    }
}

async fn climbed(
    caps: &[u32],
    readings: Vec<Result<ExtractionOutcome, StepError>>,
) -> (Result<EscalationOutcome, StepError>, usize) {
    let mut scripted = Scripted { readings: readings.into(), asked: Vec::new() };
    let climbed = escalate(&models(caps), &mut scripted).await;
    assert_eq!(scripted.asked, (0..scripted.asked.len()).collect::<Vec<_>>());
    (climbed, scripted.asked.len())
}

#[tokio::test]
async fn the_next_model_is_asked_where_the_gate_says_again_and_nowhere_else() {
    let (sound, wrong) = (json!({"total": 10, "number": 1}), json!({"total": 9, "number": 1}));
    let person = json!({"total": 9, "number": 1, "stop": 1});
    #[rustfmt::skip]
    let table = [
        // the first reading                                   asked
        ("sound data",           whole(sound.clone()),               1),
        ("a person has to look", whole(person),                      1),
        ("wrong sums",           whole(wrong),                       2),
        ("no readable reply",    unfinished(OutcomeReason::GateRefused, None), 2),
        ("declined",             unfinished(OutcomeReason::ModelRefused, None), 2),
        ("cut",                  unfinished(OutcomeReason::Cut, None),      1),
    ];
    for (name, first, expected) in table {
        let (climbed, asked) = climbed(&[9, 9], vec![first, whole(sound.clone())]).await;
        climbed.unwrap();
        assert_eq!(asked, expected, "{name}");
    }
    let cut = unfinished(OutcomeReason::Cut, None);
    let (_, asked) = climbed(&[9, 20], vec![cut, whole(sound)]).await;
    assert_eq!(asked, 2, "a model with longer replies may hold what was cut");
}

#[tokio::test]
async fn no_populated_value_is_lost_on_the_way_up() {
    let first = json!({"total": 9, "number": 1, "only_first": "a"});
    let second = json!({"total": 10, "number": null, "only_second": "b"});
    let (climbed, _) = climbed(&[9, 9], vec![whole(first), whole(second)]).await;
    let EscalationOutcome::Judged(extraction, verdict) = climbed.unwrap() else {
        panic!("not judged")
    };
    let expected = json!({"total": 10, "number": 1, "only_first": "a", "only_second": "b"});
    assert_eq!(Value::Object(extraction.data.into_iter().collect()), expected);
    assert_eq!(extraction.usage.input, 2, "both calls are counted");
    assert!(verdict.findings.is_empty());
}

#[tokio::test]
async fn a_stronger_model_that_reads_worse_does_not_get_the_say() {
    let first = json!({"total": 10, "number": null, "name": "right"});
    let second = json!({"total": 9, "number": null, "name": "wrong", "more": 1});
    let (climbed, _) = climbed(&[9, 9], vec![whole(first), whole(second)]).await;
    let EscalationOutcome::Judged(extraction, verdict) = climbed.unwrap() else {
        panic!("not judged")
    };
    assert_eq!((&extraction.data["name"], &extraction.data["more"]), (&json!("right"), &json!(1)));
    assert_eq!(verdict.findings.len(), 1);
}

#[tokio::test]
async fn a_stronger_model_that_gives_no_reply_leaves_the_earlier_reading_standing() {
    let first = json!({"total": 9, "number": 1});
    let declined = unfinished(OutcomeReason::ModelRefused, None);
    let (climbed, _) = climbed(&[9, 9], vec![whole(first), declined]).await;
    let EscalationOutcome::Judged(extraction, verdict) = climbed.unwrap() else {
        panic!("not judged")
    };
    assert_eq!((&extraction.data["total"], extraction.usage.input), (&json!(9), 2));
    assert!(verdict.is_refused());
}

#[tokio::test]
async fn what_was_rescued_of_broken_replies_fills_the_reading_that_is_whole() {
    let broken = unfinished(OutcomeReason::GateRefused, Some(json!({"number": 1})));
    let second = json!({"total": 10, "number": null});
    let (climbed, _) = climbed(&[9, 9], vec![broken, whole(second)]).await;
    let EscalationOutcome::Judged(extraction, verdict) = climbed.unwrap() else {
        panic!("not judged")
    };
    assert_eq!((&extraction.data["number"], verdict.findings.len()), (&json!(1), 0));
}

#[tokio::test]
async fn two_broken_readings_end_with_the_data_of_both() {
    let first = unfinished(OutcomeReason::GateRefused, Some(json!({"number": 1})));
    let second = unfinished(OutcomeReason::ModelRefused, None);
    let (climbed, _) = climbed(&[9, 9], vec![first, second]).await;
    let EscalationOutcome::Unfinished(end) = climbed.unwrap() else { panic!("judged") };
    assert_eq!((end.reason, end.usage.input), (OutcomeReason::ModelRefused, 2));
    assert_eq!(end.partial.unwrap().data["number"], 1);
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_ends_the_climb_with_its_fault() {
    let down = Err(StepError::Fault(Error::new(Fault::Denied, "wrong key")));
    let (climbed, asked) = climbed(&[9, 9], vec![whole(json!({"total": 9})), down]).await;
    assert!(matches!(climbed, Err(StepError::Fault(error)) if error.fault == Fault::Denied));
    assert_eq!(asked, 2);
}
