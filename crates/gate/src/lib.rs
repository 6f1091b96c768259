//! The deterministic verdict on an extraction: a pure function of the data, the transcript, the
//! kind's rules and the facts that the pipeline looked up.
//!
//! Amounts are compared as exact decimals. Findings name rules and fields, never values. The
//! pipeline carries out the consequences: next model, refusal or flag.

mod checks;
mod einvoice;
mod forms;
mod ground;
mod history;
mod instructions;
pub mod kinds;
mod line_rows;
mod master_match;
mod other_totals;
mod own_companies;
mod payment;
mod reread;
mod rows;
mod score;
mod second_reading;
mod single_source;
mod subject;
mod sums;
mod tax;
mod work_budget;

use std::cell::OnceCell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::Date;

use crate::kinds::{GateRule, Kind, RuleCheck, RuleConsequence};
use docmill_core::expense::ExpenseReading;
use docmill_core::model::{Extraction, IngestionId, RuleReport, Transcript};

pub use self::einvoice::EinvoiceState;
use self::ground::PrintedValues;
pub use self::history::{NumberForm, SupplierHistory, has_number_form, read_number_form};
pub use self::master_match::{fold_mark, master_query, match_master_data};
pub use self::own_companies::OwnCompanies;
use self::payment::PagePayments;
pub use self::payment::fill_from_codes;
pub use self::reread::{
    PictureClaim, RereadClaim, add_reread_lines, confirms_value, unprinted_claims,
};
use self::subject::GateSubject;
pub use docmill_core::model::{GroundedField, PageRegion};

/// The facts that the pipeline looked up for the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct GateLookups {
    /// An earlier document with the same supplier and number, if that is more than flagged: what is
    /// only flagged is looked for as the result is recorded.
    pub duplicate_of: Option<IngestionId>,
    /// The day the verdict is given on.
    pub today: Date,
    /// 0..1: a transcript below it is flagged.
    pub quality_threshold: f32,
    /// The state of the XML in the document.
    pub einvoice: EinvoiceState,
    /// The verdict of official rules on the XML, if it was checked by any.
    pub einvoice_rules: Option<Arc<RuleReport>>,
    /// The model that extracted was shown pictures of pages.
    pub pictures_shown: bool,
    /// Values that the tenant confirmed of this supplier before; may be empty.
    pub history: SupplierHistory,
    /// The tenant's own companies.
    pub own: Arc<OwnCompanies>,
    /// A service's own reading of the fields, if one was asked for.
    pub second_reading: Option<SecondReading>,
    /// The rules reader's own reading, where a model read the data.
    pub rules_reading: Option<Arc<Extraction>>,
}

/// Fields that a service read of the same pages by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondReading {
    /// The fields.
    pub reading: Arc<ExpenseReading>,
    /// Whether another reader read the words of the pages: the service does not confirm its own.
    pub is_independent: bool,
}

impl GateLookups {
    /// Nothing but the day is known: no threshold, no XML, no own companies.
    pub fn on_day(today: Date) -> Self {
        Self {
            duplicate_of: None,
            today,
            quality_threshold: 0.0,
            einvoice: EinvoiceState::Absent,
            einvoice_rules: None,
            pictures_shown: false,
            history: SupplierHistory::default(),
            own: Arc::default(),
            second_reading: None,
            rules_reading: None,
        }
    }
}

/// One rule that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFinding {
    /// Name of the rule.
    pub rule: String,
    /// The field at fault, if it is one.
    pub field: Option<String>,
    /// The consequence for the data.
    pub consequence: RuleConsequence,
}

/// Everything that failed, and how likely the data is right.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In the order of the kind's rules.
    pub findings: Vec<GateFinding>,
    /// 0..1, see the module `score`. One signal beside the rules.
    pub score: f32,
    /// Where the values were found, in the order of the data.
    pub grounded: Vec<GroundedField>,
    /// The least certainty of the fields that a rule wants certain; none if the reader does not
    /// weigh them.
    #[serde(default)]
    pub certainty: Option<f32>,
    /// The kind's rule against a second document of one supplier and number, if it has one and it held:
    /// the recording of the result checks again.
    #[serde(default)]
    pub duplicate_rule: Option<String>,
    /// The kind's rule against near duplicates, if it has one: asked at recording.
    #[serde(default)]
    pub near_rule: Option<String>,
}

impl Verdict {
    /// Whether the data is refused if no stronger model is left to ask.
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.consequence >= RuleConsequence::Review)
    }

    /// Whether another attempt (better pages, stronger model) may help. A rule that demands a
    /// person is not helped by one.
    pub fn needs_escalation(&self) -> bool {
        self.findings.iter().any(|finding| finding.consequence == RuleConsequence::Again)
            && !self.findings.iter().any(|finding| finding.consequence == RuleConsequence::Review)
    }

    /// Whether a person has to review it.
    pub fn needs_review(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Every finding as `rule` or `rule:field`, the grave ones first, each once.
    pub fn review_reasons(&self) -> Vec<String> {
        let mut findings: Vec<&GateFinding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| finding.consequence == RuleConsequence::Flag);
        let mut reasons: Vec<String> = Vec::new();
        for finding in findings {
            let reason = match &finding.field {
                Some(field) => format!("{}:{field}", finding.rule),
                None => finding.rule.clone(),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }
}

/// Findings of one rule that are kept: a long list that is wrong in every line needs no thousand.
const MAX_FINDINGS: usize = 20;

/// Values of which the place is kept; more would be a table of its own.
const MAX_PLACES: usize = 2_000;

/// Applies the kind's rules.
pub fn judge_extraction(
    extraction: &Extraction,
    transcript: &Transcript,
    kind: &Kind,
    lookups: &GateLookups,
) -> Verdict {
    let instructions = instructions::find_instruction_lines(transcript, kind);
    let ground =
        PrintedValues::new(transcript, |page, at| !instructions.contains(&(page.number, at)));
    let instructions = instructions.len();
    let rows = OnceCell::new();
    let payments = PagePayments::from_transcript(transcript);
    let subject =
        GateSubject { extraction, transcript, kind, lookups, ground, instructions, rows, payments };
    let mut otherwise = subject.fields_read_otherwise(kind);
    otherwise.extend(subject.fields_ruled_otherwise(kind));
    let mut corroborated = subject.corroborated_fields(kind);
    corroborated.extend(subject.fields_read_twice(kind));
    let rules: Vec<&GateRule> =
        kind.rules.iter().filter(|rule| rule_applies(rule, &subject)).collect();
    let mut findings = Vec::new();
    for rule in &rules {
        let failed = subject.failed_fields(&rule.check).into_iter();
        let read = failed.filter(|field| !rule.only_ocr || !subject.is_of_file(field.as_deref()));
        let open = read.filter(|field| {
            !rule.check.asks_for_second_source()
                || corroborated.iter().all(|(name, _)| Some(name) != field.as_ref())
        });
        findings.extend(open.take(MAX_FINDINGS).map(|field| finding_of(rule, field)));
    }
    let uncorroborated = single_source::find_uncorroborated(&subject, kind).into_iter();
    findings.extend(uncorroborated.filter(|finding| {
        corroborated.iter().all(|(field, _)| Some(field) != finding.field.as_ref())
    }));
    findings.extend(otherwise);
    let mut grounded = grounded_fields(&subject);
    for (field, place) in corroborated {
        if grounded.iter().all(|known| known.field != field) {
            grounded.push(GroundedField { field, place });
        }
    }
    let score = score::verdict_score(kind, &findings, &best_read_places(&subject, kind, &grounded));
    // Where a rule has failed already, the score only counts if it leads to something graver.
    let gravest = findings.iter().map(|it| it.consequence).max();
    for rule in &rules {
        let low = matches!(rule.check, RuleCheck::Score { least } if score < least);
        if low && gravest.is_none_or(|gravest| rule.consequence > gravest) {
            findings.push(finding_of(rule, None));
        }
    }
    let certainty = least_certainty(extraction, kind);
    let near_rule = rules.iter().find(|rule| matches!(rule.check, RuleCheck::NearDuplicate));
    let near_rule = near_rule.map(|rule| rule.name.clone());
    let mut held = rules.into_iter();
    let duplicate_rule = held.find(|rule| {
        matches!(rule.check, RuleCheck::Duplicate) && subject.failed_fields(&rule.check).is_empty()
    });
    let duplicate_rule = duplicate_rule.map(|rule| rule.name.clone());
    Verdict { findings, score, grounded, certainty, duplicate_rule, near_rule }
}

fn rule_applies(rule: &GateRule, subject: &GateSubject<'_>) -> bool {
    (rule.readers.is_empty() || rule.readers.contains(&subject.extraction.reader))
        && (!rule.only_ocr || subject.has_ocr_page())
}

/// The best-read occurrence of each value. A value that is printed twice, or confirmed by other
/// amounts, was not misread because one of its occurrences is hardly legible.
fn best_read_places(
    subject: &GateSubject<'_>,
    kind: &Kind,
    grounded: &[GroundedField],
) -> Vec<PageRegion> {
    let confirmed: Vec<&String> =
        kind.rules.iter().flat_map(|rule| subject.confirmed_fields(&rule.check)).collect();
    let single = grounded.iter().filter(|it| !it.field.contains('['));
    let open = single.filter(|it| !confirmed.contains(&&it.field));
    let best = open.map(|it| {
        let places = subject.ground.value_places(subject.field_value(&it.field)).into_iter();
        places.fold(it.place, |best, one| {
            if one.confidence > best.confidence && !one.unwitnessed { one } else { best }
        })
    });
    best.collect()
}

fn least_certainty(extraction: &Extraction, kind: &Kind) -> Option<f32> {
    let named = kind.rules.iter().filter_map(|rule| match &rule.check {
        RuleCheck::Certain { fields, .. } => Some(fields),
        _ => None,
    });
    let named: Vec<&String> = named.flatten().collect();
    let weighed = extraction.certainties.iter().filter(|one| named.contains(&&one.field));
    weighed.map(|one| one.certainty).reduce(f32::min)
}

fn finding_of(rule: &GateRule, field: Option<String>) -> GateFinding {
    GateFinding { rule: rule.name.clone(), field, consequence: rule.consequence }
}

/// The names of all fields and of those of lists, as rules name them.
fn field_names(subject: &GateSubject<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (field, value) in &subject.extraction.data {
        subject::names_within(field, value, &mut names);
    }
    names
}

/// The place of every value that is printed: the first, or the first that two readers saw.
fn grounded_fields(subject: &GateSubject<'_>) -> Vec<GroundedField> {
    let names = field_names(subject);
    let values = names.iter().flat_map(|name| subject.named_values(name));
    let found = values.filter_map(|(field, value)| {
        let places = subject.ground.value_places(value);
        let place = places.iter().find(|it| !it.unwitnessed).or(places.first()).copied()?;
        Some(GroundedField { field, place })
    });
    found.take(MAX_PLACES).collect()
}

#[cfg(test)]
mod tests;
