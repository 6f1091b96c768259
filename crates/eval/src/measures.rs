//! Every figure of a report under one name, for limits and comparisons.
//!
//! `total` is the F1 of the field over all documents, `inv:total` the same over those whose name
//! begins with `inv_`. Figures that were not measured have no name.

use std::collections::BTreeMap;

use super::GroupReport;

pub(super) fn collect_measures(
    all: &GroupReport,
    groups: &BTreeMap<String, GroupReport>,
) -> BTreeMap<String, f64> {
    let mut measures = BTreeMap::new();
    add_group(&mut measures, "", all);
    for (name, group) in groups {
        add_group(&mut measures, &format!("{name}:"), group);
    }
    measures
}

fn add_group(measures: &mut BTreeMap<String, f64>, prefix: &str, group: &GroupReport) {
    let f1: Vec<f64> = group.fields.values().filter_map(|field| field.f1).collect();
    let all = [
        ("completed", super::share_of(group.completed, group.documents)),
        ("whole_documents", super::share_of(group.whole_documents, group.with_truth)),
        ("silent_errors", (group.with_truth > 0).then_some(group.silent_errors as f64)),
        ("mean_f1", super::report::mean(&f1)),
        ("list_completeness", super::share_of(group.rows.found, group.rows.known)),
        ("word_recall", group.word_recall),
        ("character_error_rate", group.character_error_rate),
        ("auroc", group.calibration.auroc),
        ("calibration_error", group.calibration.expected_error),
    ];
    let fields = group.fields.iter().map(|(field, score)| (field.as_str(), score.f1));
    for (name, value) in all.into_iter().chain(fields) {
        if let Some(value) = value {
            measures.insert(format!("{prefix}{name}"), value);
        }
    }
}
