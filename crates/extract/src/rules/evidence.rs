//! The signs of each weighed candidate, for fitting the weights to labelled documents. Not used
//! while documents are processed.

use super::dates::{DateReader, DateSearch};
use super::label_matches::LabelMatches;
use super::layout::CellLayout;
use super::numbers::NumberSearch;
use super::{IdentifyingFields, money, supplier};
use docmill_core::model::Transcript;
use docmill_formats::notation::date;
use docmill_gate::kinds::{FieldRole, Kind};
use serde::Serialize;
use serde_json::Value;

/// A candidate for a field. The value is document content, the signs are not.
#[derive(Debug, Clone)]
pub struct CandidateEvidence {
    /// Name of the field.
    pub field: String,
    /// The value, as it would be put into the data; null: the claim that there is none.
    pub value: Value,
    /// Names of the signs that were seen.
    pub signs: Vec<String>,
}

/// Every candidate of the issuer's name and of each day.
pub fn gather_evidence(transcript: &Transcript, kind: &Kind) -> Vec<CandidateEvidence> {
    let layout = CellLayout::new(transcript);
    let matches = LabelMatches::new(&layout, kind);
    let roles = IdentifyingFields::of_kind(kind);
    let mut evidence = Vec::new();
    let code = money::find_currency(&matches).map(|found| found.value);
    let code = money::currency_of_days(&matches, code);
    let calendar = DateReader::from_matches(&matches, code);
    let search = DateSearch::new(&matches, &calendar);
    let dates: Vec<&str> = roles.dates().collect();
    let mut issued = None;
    for field in &dates {
        let role = roles.date_role(field, &dates);
        for one in search.candidates_for(role, issued) {
            evidence.push(CandidateEvidence {
                field: (*field).to_owned(),
                value: Value::String(date::to_iso(one.date)),
                signs: one.signs.iter().map(sign_name).collect(),
            });
        }
        if role.issued {
            issued = search.find_day(role, None).map(|found| found.value);
        }
    }
    if let Some(field) = roles.number {
        for one in NumberSearch::new(&matches, field).list_candidates() {
            let signs = one.signs.iter().map(sign_name).collect();
            let value = Value::String(one.value);
            evidence.push(CandidateEvidence { field: field.to_owned(), value, signs });
        }
    }
    if kind.has_role(FieldRole::SupplierName) {
        let layout = supplier::layout_of_parties(transcript);
        let matches = LabelMatches::new(&layout, kind);
        for (name, signs) in supplier::name_evidence(&matches) {
            let signs = signs.iter().map(sign_name).collect();
            evidence.push(CandidateEvidence {
                field: kind.field_of(FieldRole::SupplierName).to_owned(),
                value: Value::String(name),
                signs,
            });
        }
    }
    for (field, value, signs) in super::read_signs(transcript, kind) {
        let signs = signs.iter().map(sign_name).collect();
        evidence.push(CandidateEvidence { field, value, signs });
    }
    evidence
}

/// The name of a sign in `config/reader.toml`.
fn sign_name(sign: &impl Serialize) -> String {
    let name = serde_json::to_value(sign).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}
