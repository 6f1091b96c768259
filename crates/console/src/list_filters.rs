//! The filters of the list of ingestions, by their names in addresses and forms.

use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::fields::FieldValues;

/// The names of a list's filter in addresses and forms; the last is not for visitors of one tenant.
const FILTER_NAMES: [&str; 5] = ["status", "reason", "kind", "since", "tenant"];

/// The filter of the list, for a form that is sent next.
pub(super) fn hidden_filter(visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    hidden_fields(wanted, filter_names(visitor))
}

/// The names of the filters that the visitor has.
pub(super) fn filter_names(visitor: &ConsoleVisitor) -> &'static [&'static str] {
    let [own @ .., _] = &FILTER_NAMES;
    if visitor.tenant.is_some() { own } else { &FILTER_NAMES }
}

/// The values of these names, for a form that is sent next.
pub(super) fn hidden_fields(wanted: &FieldValues, names: &[&str]) -> Markup {
    html! {
        @for (name, value) in wanted.pairs().filter(|(name, value)| names.contains(name) && !value.is_empty()) {
            input type="hidden" name=(name) value=(value);
        }
    }
}
