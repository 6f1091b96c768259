//! `examples/NAME.txt` and `NAME.json`: documents with their data, shown to a model in its prompt.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::json_lines;
use super::problem::{KindProblem, ProblemReport};

/// A document and its data.
#[derive(Debug, Clone, PartialEq)]
pub struct KindExample {
    /// The document, line by line; ` | ` separates the cells of a row.
    pub text: String,
    /// The kind's fields and their values.
    pub fields: Value,
}

/// Pairs the files of the folder `examples` (their texts by name) and holds the data against the
/// schema.
pub(super) fn read_examples(
    folder: &Path,
    files: &BTreeMap<String, String>,
    schema: Option<&Value>,
) -> Result<Vec<KindExample>, Vec<KindProblem>> {
    let (mut examples, mut problems) = (Vec::new(), Vec::new());
    for (file, text) in files {
        let path = folder.join(file);
        let mut report = ProblemReport::new(&path, text);
        match file.rsplit_once('.') {
            Some((name, "txt")) if files.contains_key(&format!("{name}.json")) => {}
            Some((name, "txt")) => report.report_file(format!("has no {name}.json beside it")),
            Some((name, "json")) => {
                match (
                    files.get(&format!("{name}.txt")),
                    parse_example_data(text, schema, &mut report),
                ) {
                    (Some(document), Some(fields)) => {
                        let text = document.trim_end().to_owned();
                        examples.push(KindExample { text, fields });
                    }
                    (None, _) => report.report_file(format!("has no {name}.txt beside it")),
                    (_, None) => {}
                }
            }
            _ => report.report_file("is neither NAME.txt nor NAME.json"),
        }
        problems.append(&mut report.problems);
    }
    if problems.is_empty() { Ok(examples) } else { Err(problems) }
}

fn parse_example_data(
    text: &str,
    schema: Option<&Value>,
    report: &mut ProblemReport<'_>,
) -> Option<Value> {
    let fields: Value = match serde_json::from_str(text) {
        Ok(fields) => fields,
        Err(error) => {
            report.add(Some(error.line()), error.to_string());
            return None;
        }
    };
    let lines = json_lines::lines_by_pointer(text);
    // A schema that does not compile has been complained about in its own file.
    let validator = schema.and_then(|schema| {
        jsonschema::options().should_validate_formats(true).build(schema).ok()
    })?;
    for error in validator.iter_errors(&fields) {
        let pointer = error.instance_path().to_string();
        report.add(lines.get(&pointer).copied(), format!("does not fit schema.json: {error}"));
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_lacks_nothing_and_fits_the_schema() {
        let schema = serde_json::json!({
            "type": "object", "additionalProperties": false,
            "properties": {"total": {"type": ["number", "null"]}}
        });
        let files = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        for (list, problem) in [
            (&[("a.txt", "x")][..], "examples/a.txt: has no a.json"),
            (&[("a.json", "{}")], "examples/a.json: has no a.txt"),
            (&[("a.md", "")], "examples/a.md: is neither"),
            (&[("a.json", "{\n\"total\": }"), ("a.txt", "x")], "examples/a.json:2: expected"),
            (
                &[("a.json", "{\n\n\"total\": \"1\"}"), ("a.txt", "x")],
                "examples/a.json:3: does not fit",
            ),
        ] {
            let problems =
                read_examples(Path::new("examples"), &files(list), Some(&schema)).unwrap_err();
            assert!(problems[0].to_string().starts_with(problem), "{problems:?}");
        }
        let sound = files(&[("a.json", "{\"total\": 1}"), ("a.txt", "Total 1\n")]);
        let examples = read_examples(Path::new("examples"), &sound, Some(&schema)).unwrap();
        let example =
            KindExample { text: "Total 1".to_owned(), fields: serde_json::json!({"total": 1}) };
        assert_eq!(examples, [example]);
    }
}
