//! Escalation over scripted readings: each model's reply, and the gate's verdict.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use docmill_core::fault::{Error, Fault, Result as FaultResult};
use docmill_core::model::{ExtractionMethod, ModelUsage, OutcomeReason, StatedConfidence};
use docmill_gate::GateFinding;
use docmill_llm::{Llm, ModelReply, Prompt};

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
        pictures: None,
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
    /// The faults named to a model; `None`: it may not be asked twice.
    asked_for: Option<Vec<ReadingFaults>>,
}

#[async_trait]
impl EscalationStep for Scripted {
    async fn read(&mut self, at: usize, _: &ChainModel) -> Result<ExtractionOutcome, StepError> {
        self.asked.push(at);
        self.readings.pop_front().unwrap()
    }

    fn may_read_again(&self) -> bool {
        self.asked_for.is_some()
    }

    async fn read_again(
        &mut self,
        at: usize,
        _: &ChainModel,
        faults: ReadingFaults,
    ) -> Result<ExtractionOutcome, StepError> {
        assert_eq!(self.asked.last(), Some(&at), "another model than the last");
        self.asked_for.as_mut().unwrap().push(faults);
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
            let total = Some("total".to_owned());
            findings.push(GateFinding {
                field: total,
                ..finding("wrong_total", RuleConsequence::Again)
            });
        }
        if value("number").is_null() {
            let number = Some("number".to_owned());
            findings.push(GateFinding {
                field: number,
                ..finding("no_number", RuleConsequence::Again)
            });
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
    let mut scripted = Scripted { readings: readings.into(), asked: Vec::new(), asked_for: None };
    let climbed = escalate(&models(caps), &mut scripted).await;
    assert_eq!(scripted.asked, (0..scripted.asked.len()).collect::<Vec<_>>());
    (climbed, scripted.asked.len())
}

#[tokio::test]
async fn the_next_model_is_asked_only_if_the_gate_escalates() {
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
        ("cut",                  unfinished(OutcomeReason::Cut, None),      2),
    ];
    for (name, first, expected) in table {
        let (climbed, asked) = climbed(&[9, 9], vec![first, whole(sound.clone())]).await;
        climbed.unwrap();
        assert_eq!(asked, expected, "{name}");
    }
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
async fn values_from_broken_replies_fill_the_complete_reading() {
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

#[tokio::test]
async fn the_last_model_is_asked_once_more_for_missing_fields_only() {
    let (sound, nameless) =
        (json!({"total": 10, "number": 1}), json!({"total": 10, "number": null}));
    let half = json!({"total": null, "number": null, "due": null});
    let admitted = || {
        let mut read = reading(half.clone());
        (read.successful, read.missing_fields) = (false, vec!["due".into(), "else".into()]);
        Ok(ExtractionOutcome::Whole(read))
    };
    let no: &[&[&str]] = &[];
    #[rustfmt::skip]
    let table = [
        // the readings                                          asked for             whole
        ("nothing is missing",   vec![whole(sound.clone())],                           no, true),
        ("it is found then",     vec![whole(nameless.clone()), whole(sound.clone())],  &[&["number"]], true),
        ("nor the second time",  vec![whole(nameless.clone()), whole(nameless.clone())], &[&["number"]], false),
        ("it said so itself",    vec![admitted(), whole(sound.clone())],               &[&["due", "number", "total"]], true),
        ("wrong, not missing",   vec![whole(json!({"total": 9, "number": 1}))],        no, false),
        ("a person has to look", vec![whole(json!({"total": 10, "number": null, "stop": 1}))], no, false),
        ("declined",             vec![unfinished(OutcomeReason::ModelRefused, None)],  no, false),
    ];
    for (name, readings, asked_for, is_whole) in table {
        let all = readings.len();
        let mut scripted =
            Scripted { readings: readings.into(), asked: Vec::new(), asked_for: Some(Vec::new()) };
        let outcome = escalate(&models(&[9]), &mut scripted).await.unwrap();
        let named: Vec<Vec<String>> =
            scripted.asked_for.unwrap().into_iter().map(|faults| faults.missing).collect();
        assert_eq!(named, asked_for, "{name}");
        let passed = matches!(&outcome, EscalationOutcome::Judged(_, it) if !it.is_refused());
        assert_eq!(passed, is_whole, "{name}");
        if let EscalationOutcome::Judged(extraction, _) = outcome {
            assert_eq!(extraction.usage.input, all as u64, "{name}: every call is counted");
        }
    }
}

#[tokio::test]
async fn a_stronger_model_comes_before_a_repeat_and_repeats_can_be_switched_off() {
    let nameless = || whole(json!({"total": 10, "number": null}));
    let mut scripted = Scripted {
        readings: [nameless(), nameless(), nameless()].into(),
        asked: Vec::new(),
        asked_for: Some(Vec::new()),
    };
    escalate(&models(&[9, 9]), &mut scripted).await.unwrap();
    assert_eq!((scripted.asked, scripted.asked_for.unwrap().len()), (vec![0, 1], 1));
    let (_, asked) = climbed(&[9], vec![nameless()]).await;
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn only_the_last_of_several_models_is_told_the_broken_rules_and_after_its_own_reading() {
    let wrong = || whole(json!({"total": 9, "number": null}));
    let right = || whole(json!({"total": 10, "number": 1}));
    for (models_asked, expected) in [
        (1, ReadingFaults { missing: vec!["number".into()], failed: Vec::new() }),
        (
            2,
            ReadingFaults {
                missing: vec!["number".into()],
                failed: vec!["wrong_total (total)".into()],
            },
        ),
    ] {
        let mut readings: VecDeque<_> = (0..models_asked).map(|_| wrong()).collect();
        readings.push_back(right());
        let mut scripted = Scripted { readings, asked: Vec::new(), asked_for: Some(Vec::new()) };
        let outcome = escalate(&models(&vec![9; models_asked]), &mut scripted).await.unwrap();
        assert_eq!(scripted.asked.len(), models_asked, "every model has read by itself");
        assert_eq!(scripted.asked_for.unwrap(), [expected]);
        assert!(matches!(&outcome, EscalationOutcome::Judged(_, it) if !it.is_refused()));
    }
}
