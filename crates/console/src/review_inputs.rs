//! The inputs of a review: doubtful fields first and open, sound ones one line each, empty ones
//! folded. Tables of lines are in `review_lines`.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::fields::FieldValues;
use super::findings::ReviewFinding;
use super::page_sheets::PicturedPages;
use super::review_form::{label_of, shown_text};
use docmill_gate::kinds::{FieldType, Kind};

/// A longer text gets several lines.
const MAX_LINE_CHARS: usize = 70;

/// The source of the form.
pub(super) struct FormSource<'a> {
    /// The kind of the document.
    pub(super) kind: &'a Kind,
    /// The best known data.
    pub(super) data: &'a Map<String, Value>,
    /// The gate's findings.
    pub(super) findings: &'a [ReviewFinding],
    /// The pages, and where on them each value was found.
    pub(super) pages: &'a PicturedPages,
    /// Values typed before, if the form is shown again.
    pub(super) typed: Option<&'a FieldValues>,
    /// Empty lines more than usual, in each table.
    pub(super) added_lines: usize,
    /// The typed value that was refused: its field, and why.
    pub(super) problem: Option<(&'a str, &'a str)>,
}

/// How an input is found, read out and begun with.
#[derive(Clone, Copy)]
pub(super) struct InputPlace<'a> {
    /// Its id.
    pub(super) id: &'a str,
    /// Ids of its descriptions.
    pub(super) described: Option<&'a str>,
    /// Whether the reviewer begins there.
    pub(super) first: bool,
}

fn description<'a>(schema: &'a Value, field: &str) -> Option<&'a str> {
    schema.get("properties")?.get(field)?.get("description")?.as_str()
}

impl FormSource<'_> {
    /// The inputs of all fields but the tables.
    pub(super) fn inputs(&self) -> Markup {
        let fields: Vec<(&str, FieldType)> =
            self.kind.fields().filter(|(name, _)| !self.is_table(name)).collect();
        let (doubtful, sound): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| self.is_doubtful(name));
        let (filled, empty): (Vec<_>, Vec<_>) =
            sound.into_iter().partition(|(name, _)| !self.text_of(name).is_empty());
        let begin = self.first_doubtful();
        html! {
            @if !doubtful.is_empty() {
                h2 { "Needs attention " span.count { (doubtful.len()) } }
                @for (name, field_type) in &doubtful {
                    (self.open_field(name, *field_type, begin == Some(*name))) }
            }
            @if !filled.is_empty() { h2 { "Other fields" } }
            @for (name, field_type) in &filled { (self.field_row(name, *field_type)) }
            @if !empty.is_empty() {
                details.more {
                    summary { "Empty fields " span.count { (empty.len()) } }
                    @for (name, field_type) in &empty { (self.field_row(name, *field_type)) }
                }
            }
        }
    }

    /// Whether the field is a list whose entries have fields.
    pub(super) fn is_table(&self, name: &str) -> bool {
        self.kind.item_types(name).next().is_some()
    }

    /// The findings about a field.
    pub(super) fn findings_of(&self, field: &str) -> Vec<&ReviewFinding> {
        self.findings.iter().filter(|it| it.fields.iter().any(|it| it == field)).collect()
    }

    /// Whether a field has findings, or its typed value was refused.
    pub(super) fn is_doubtful(&self, field: &str) -> bool {
        !self.findings_of(field).is_empty() || self.refusal_of(field).is_some()
    }

    fn refusal_of(&self, field: &str) -> Option<&str> {
        self.problem.filter(|(about, _)| *about == field).map(|(_, words)| words)
    }

    /// The field in which the reviewer begins.
    pub(super) fn first_doubtful(&self) -> Option<&str> {
        let refused = self.problem.map(|(field, _)| field);
        let names = || self.kind.fields().map(|(name, _)| name);
        let field = names().find(|name| !self.is_table(name) && self.is_doubtful(name));
        refused.or(field).or_else(|| names().find(|name| self.is_doubtful(name)))
    }

    /// The text in an input: as it was typed, or else of the data.
    fn text_of(&self, name: &str) -> String {
        let typed = self.typed.and_then(|typed| typed.raw(&format!("field.{name}")));
        typed.unwrap_or_else(|| shown_text(self.data.get(name)))
    }

    /// The findings about a field, as lines above its input.
    pub(super) fn finding_lines(&self, name: &str) -> Markup {
        let id = format!("field-{name}");
        html! {
            @for (at, finding) in self.findings_of(name).iter().enumerate() {
                p.finding id={ (id) "-finding-" (at) } title=(finding.code) { (finding.words) }
            }
            @if let Some(words) = self.refusal_of(name) {
                p.finding id={ (id) "-refused" } role="alert" { (words) }
            }
        }
    }

    /// Ids of the texts that a screen reader reads with the input.
    pub(super) fn described_by(&self, name: &str) -> Option<String> {
        let id = format!("field-{name}");
        let findings = 0..self.findings_of(name).len();
        let mut ids: Vec<String> = findings.map(|at| format!("{id}-finding-{at}")).collect();
        ids.extend(self.refusal_of(name).map(|_| format!("{id}-refused")));
        ids.extend(description(&self.kind.schema, name).map(|_| format!("{id}-hint")));
        Some(ids.join(" ")).filter(|ids| !ids.is_empty())
    }

    /// The meaning of a field, behind a sign.
    pub(super) fn help(&self, name: &str) -> Markup {
        html! {
            @if let Some(hint) = description(&self.kind.schema, name) {
                details.help {
                    summary tabindex="-1" aria-label={ "About " (label_of(name)) } { "?" }
                    p.hint id={ "field-" (name) "-hint" } { (hint) }
                }
            }
        }
    }

    /// A doubtful field: reasons, the place cut out of the page, and the input.
    fn open_field(&self, name: &str, field_type: FieldType, first: bool) -> Markup {
        let (id, described) = (format!("field-{name}"), self.described_by(name));
        let place = InputPlace { id: &id, described: described.as_deref(), first };
        html! {
            div.field.doubtful data-field=(name) data-mark=[self.pages.mark_of(name)] {
                div.head { label for=(id) { (label_of(name)) } (self.pages.describe_place(name)) (self.help(name)) }
                (self.finding_lines(name))
                (self.pages.crop(name))
                (self.input(name, field_type, place))
            }
        }
    }

    /// A field in one line.
    fn field_row(&self, name: &str, field_type: FieldType) -> Markup {
        let (id, described) = (format!("field-{name}"), self.described_by(name));
        let place = InputPlace { id: &id, described: described.as_deref(), first: false };
        html! {
            div.field.row data-field=(name) data-mark=[self.pages.mark_of(name)] {
                label for=(id) { (label_of(name)) }
                (self.input(name, field_type, place))
                (self.pages.short_place(name))
                (self.help(name))
            }
        }
    }

    fn input(&self, name: &str, field_type: FieldType, place: InputPlace<'_>) -> Markup {
        let InputPlace { id, described, first } = place;
        let input_name = format!("field.{name}");
        let text = self.text_of(name);
        let long = text.contains('\n') || text.chars().count() > MAX_LINE_CHARS;
        let wrong = self.refusal_of(name).map(|_| "true");
        html! {
            @match field_type {
                FieldType::Boolean => select id=(id) name=(input_name) aria-describedby=[described] autofocus[first] {
                    @for choice in ["", "true", "false"] {
                        option value=(choice) selected[text == choice] { (choice) } }
                },
                FieldType::Number => input id=(id) name=(input_name) value=(text) data-type="number"
                    inputmode="decimal" aria-describedby=[described] aria-invalid=[wrong] autofocus[first];,
                FieldType::Date => input id=(id) name=(input_name) value=(text) data-type="date"
                    placeholder="YYYY-MM-DD" aria-describedby=[described] aria-invalid=[wrong] autofocus[first];,
                // Lists of texts and objects are shown, and taken, as JSON.
                FieldType::Text | FieldType::List | FieldType::Object => {
                    @if long {
                        // A line feed after the tag is not part of the text.
                        textarea id=(id) name=(input_name) rows="3" aria-describedby=[described] autofocus[first] { "\n" (text) }
                    } @else {
                        input id=(id) name=(input_name) value=(text) aria-describedby=[described] aria-invalid=[wrong] autofocus[first];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review_form::read_changes;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::json;

    #[test]
    fn objects_and_lists_of_texts_are_changed_as_json() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let mut kind = kinds.get("invoice").unwrap().as_ref().clone();
        kind.schema["properties"]["payment"] = json!({"type": ["object", "null"], "properties": {"iban": {"type": ["string", "null"]}}});
        kind.schema["properties"]["tags"] =
            json!({"type": ["array", "null"], "items": {"type": "string"}});
        let data = json!({"payment": {"iban": "x"}, "tags": ["a"]});
        let source = FormSource {
            kind: &kind,
            data: data.as_object().unwrap(),
            findings: &[],
            pages: &PicturedPages::unseen(),
            typed: None,
            added_lines: 0,
            problem: None,
        };
        let shown = source.inputs().into_string();
        assert!(shown.contains("{&quot;iban&quot;:&quot;x&quot;}"), "{shown}");
        let form = "field.payment=%7B%22iban%22%3A%22y%22%7D&field.tags=%5B%22a%22%5D";
        let form = FieldValues::parse(form.as_bytes());
        let changed = read_changes(&kind, data.as_object().unwrap(), &form).unwrap();
        assert_eq!(changed, [("payment".to_owned(), "{\"iban\":\"y\"}".to_owned())].into());
    }
}
