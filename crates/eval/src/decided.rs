//! Data against data that a person decided: which fields are wrong. Unlike the truth beside a file,
//! it is whole: null says that the document has no such value.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{compare, items};

/// The fields of `given` that are not as decided, by name; a list is one field.
pub fn find_wrong_fields(
    decided: &Map<String, Value>,
    given: &Map<String, Value>,
) -> BTreeSet<String> {
    let names: BTreeSet<&String> = decided.keys().chain(given.keys()).collect();
    let wrong = names.into_iter().filter(|name| {
        let own = value_of(given, name);
        match value_of(decided, name) {
            Value::Array(entries) => !is_same_list(name, entries, own),
            Value::Null => !is_nothing(own),
            known => !compare::same_value(name, known, own),
        }
    });
    wrong.cloned().collect()
}

fn value_of<'a>(data: &'a Map<String, Value>, name: &str) -> &'a Value {
    data.get(name).unwrap_or(&Value::Null)
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn is_same_list(name: &str, known: &[Value], given: &Value) -> bool {
    if known.is_empty() {
        return is_nothing(given);
    }
    let entries = given.as_array().map_or(0, Vec::len);
    let fields = items::score_fields(name, known, given);
    entries == known.len() && fields.values().all(|own| own.wrong + own.missed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_that_the_document_does_not_have_is_as_wrong_as_another_one() {
        let decided =
            json!({"total": 10.0, "iban": null, "line_items": [{"amount": 1}, {"amount": 2}]});
        for (given, wrong) in [
            (json!({"total": 10, "line_items": [{"amount": 1}, {"amount": 2}]}), vec![]),
            (
                json!({"total": 11, "iban": null, "line_items": [{"amount": 1}, {"amount": 2}]}),
                vec!["total"],
            ),
            (
                json!({"total": 10, "iban": "x", "line_items": [{"amount": 1}]}),
                vec!["iban", "line_items"],
            ),
            (json!({"line_items": [{"amount": 1}, {"amount": 3}]}), vec!["line_items", "total"]),
        ] {
            let [decided, given] = [&decided, &given].map(|it| it.as_object().unwrap());
            assert_eq!(
                find_wrong_fields(decided, given),
                wrong.iter().map(|it| (*it).to_owned()).collect(),
                "{given:?}"
            );
        }
    }
}
