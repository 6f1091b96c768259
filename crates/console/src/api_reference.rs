//! The API for people: every operation with its parameters, bodies, answers and an example to copy, drawn
//! from the served description.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::layout::frame_page;
use super::state::ConsoleState;
use docmill_core::fault::Error;

/// Prefix of a reference to a named schema.
const SCHEMAS: &str = "#/components/schemas/";

/// One operation of the description.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    facts: &'a Value,
}

/// `/api-reference`.
pub(super) async fn show_reference(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    let description = serde_json::to_value(super::describe_api(&state))
        .map_err(|error| Error::internal("the API cannot be described").with_source(error))?;
    let body = reference_body(&description, &state.link("/api/v1/openapi.json"));
    Ok(frame_page(&state, Some(&visitor), "API reference", &body))
}

fn reference_body(description: &Value, source: &str) -> Markup {
    let operations = list_operations(description);
    let base = text_at(description, "/servers/0/url").unwrap_or("/api/v1");
    let tags = items(description.get("tags")).iter().filter_map(|tag| text_at(tag, "/name"));
    html! {
        p { "Programs send " code { "Authorization: Bearer TOKEN" } " to " code { (base) } ". "
            a href=(source) { "OpenAPI 3.1" } " is the same for machines. A failure is a "
            a href="#schema-Problem" { "Problem" } " with a stable " code { "code" } "." }
        @for tag in tags {
            h2 { (tag) }
            @for operation in operations.iter().filter(|it| text_at(it.facts, "/tags/0") == Some(tag)) {
                (operation_section(operation, base))
            }
        }
        h2 { "Schemas" }
        @for (name, schema) in members(description.pointer("/components/schemas")) {
            h3 id=(format!("schema-{name}")) { code { (name) } }
            (schema_body(schema))
        }
    }
}

/// A text of the description; what stands between backticks is code.
fn with_code(text: Option<&str>) -> Markup {
    html! { @for (at, part) in text.unwrap_or_default().split('`').enumerate() {
        @if at % 2 == 1 { code { (part) } } @else { (part) }
    } }
}

fn list_operations(description: &Value) -> Vec<Operation<'_>> {
    let paths = members(description.get("paths"));
    paths
        .flat_map(|(path, item)| {
            members(Some(item)).map(move |(method, facts)| Operation { method, path, facts })
        })
        .collect()
}

fn operation_section(operation: &Operation<'_>, base: &str) -> Markup {
    let Operation { method, path, facts } = operation;
    let parameters = items(facts.get("parameters"));
    html! {
        h3 id=[text_at(facts, "/operationId")] { code { (method.to_uppercase()) " " (path) } }
        p { (with_code(text_at(facts, "/summary"))) " "
            (with_code(text_at(facts, "/description"))) }
        @if !parameters.is_empty() { (parameter_table(parameters)) }
        @for (kind, content) in members(facts.pointer("/requestBody/content")) {
            p { "Body " code { (kind) } ": " (type_of(content.get("schema"))) }
        }
        (answer_table(facts))
        details { summary { "Examples" }
            pre tabindex="0" { (curl_example(operation, base)) }
            pre tabindex="0" { (python_example(operation, base)) }
        }
    }
}

fn parameter_table(parameters: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "parameter" } th { "in" } th { "type" } th { "meaning" } } }
            tbody { @for parameter in parameters { tr {
                td { code { (text_at(parameter, "/name").unwrap_or_default()) }
                    @if is_true(parameter, "/required") { " required" } }
                td { (text_at(parameter, "/in").unwrap_or_default()) }
                td { (type_of(parameter.get("schema"))) }
                td { (with_code(text_at(parameter, "/description"))) }
            } } }
        } }
    }
}

fn answer_table(facts: &Value) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "answer" } th { "type" } th { "meaning" } } }
            tbody { @for (status, answer) in members(facts.get("responses")) { tr {
                td { code { (status) } }
                td { @for (kind, content) in members(answer.get("content")) {
                    code { (kind) } " " (type_of(content.get("schema"))) br;
                } }
                td { (with_code(text_at(answer, "/description"))) }
            } } }
        } }
    }
}

fn schema_body(schema: &Value) -> Markup {
    let required = items(schema.get("required"));
    let fields: Vec<(&str, &Value)> = members(schema.get("properties")).collect();
    html! {
        p { (with_code(text_at(schema, "/description"))) }
        @if fields.is_empty() { p { (type_of(Some(schema))) } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "field" } th { "type" } th { "meaning" } } }
                tbody { @for (name, field) in fields { tr {
                    td { code { (name) } @if !required.iter().any(|it| it == name) { " optional" } }
                    td { (type_of(Some(field))) }
                    td { (with_code(text_at(field, "/description"))) }
                } } }
            } }
        }
    }
}

/// A schema in a few words, with links to those that have a name.
fn type_of(schema: Option<&Value>) -> Markup {
    let Some(schema) = schema else { return html! { "bytes" } };
    if let Some(name) = text_at(schema, "/$ref").and_then(|it| it.strip_prefix(SCHEMAS)) {
        return html! { a href=(format!("#schema-{name}")) { (name) } };
    }
    let choices = ["oneOf", "anyOf", "allOf"].iter().find_map(|word| schema.get(word));
    if let Some(choices) = choices {
        return html! {
            @for (at, choice) in items(Some(choices)).iter().enumerate() {
                @if at > 0 { " or " } (type_of(Some(choice)))
            }
        };
    }
    let values: Vec<&str> = items(schema.get("enum")).iter().filter_map(Value::as_str).collect();
    html! {
        (kind_words(schema))
        @if let Some(entry) = schema.get("items") { " of " (type_of(Some(entry))) }
        @for (at, value) in values.iter().enumerate() {
            @if at == 0 { ": " } @else { ", " } code { (value) }
        }
        (bound_words(schema))
    }
}

/// The types of a schema, and its format.
fn kind_words(schema: &Value) -> String {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => vec!["any JSON value"],
    };
    let format = text_at(schema, "/format").map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{}{format}", kinds.join(" or "))
}

fn bound_words(schema: &Value) -> String {
    let bounds =
        [("minimum", "≥"), ("maximum", "≤"), ("minItems", "at least"), ("maxItems", "at most")];
    let found = bounds.iter().filter_map(|(name, word)| Some((word, schema.get(name)?)));
    found.map(|(word, bound)| format!(", {word} {bound}")).collect()
}

/// A path with the names of its parts as variables, and the parameters that it must have.
fn example_address(operation: &Operation<'_>, base: &str, variable: fn(&str) -> String) -> String {
    let parameters = items(operation.facts.get("parameters"));
    let mut path = operation.path.to_owned();
    let mut query = Vec::new();
    for parameter in parameters {
        let Some(name) = text_at(parameter, "/name") else { continue };
        match text_at(parameter, "/in") {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &variable(name)),
            Some("query") if is_true(parameter, "/required") => {
                query.push(format!("{name}={}", variable(name)));
            }
            _ => {}
        }
    }
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    format!("{base}{path}{query}")
}

fn curl_example(operation: &Operation<'_>, base: &str) -> String {
    let address = example_address(operation, base, shell_variable);
    let method = match operation.method {
        "get" => "",
        _ => "  --request POST \\\n",
    };
    let body = match body_kind(operation.facts) {
        Some("application/json") => {
            "  --header 'Content-Type: application/json' --data @body.json \\\n"
        }
        Some(_) => "  --data-binary @invoice.pdf \\\n",
        None => "",
    };
    format!(
        "curl --fail-with-body --header \"Authorization: Bearer $DOCMILL_TOKEN\" \\\n{method}{body}  \
         \"$DOCMILL_URL{address}\""
    )
}

fn python_example(operation: &Operation<'_>, base: &str) -> String {
    let address = example_address(operation, base, python_variable);
    let (data, kind) = match body_kind(operation.facts) {
        Some("application/json") => (
            ", data=open(\"body.json\", \"rb\").read()",
            ", \"Content-Type\": \"application/json\"",
        ),
        Some(_) => (", data=open(\"invoice.pdf\", \"rb\").read()", ""),
        None => ("", ""),
    };
    let method = operation.method.to_uppercase();
    format!(
        "import os, urllib.request\n\n\
         request = urllib.request.Request(\n    os.environ[\"DOCMILL_URL\"] + f\"{address}\", \
         method=\"{method}\"{data},\n    headers={{\"Authorization\": \"Bearer \" + \
         os.environ[\"DOCMILL_TOKEN\"]{kind}}})\nprint(urllib.request.urlopen(request).read())"
    )
}

fn shell_variable(name: &str) -> String {
    format!("${}", name.to_uppercase())
}

fn python_variable(name: &str) -> String {
    format!("{{{name}}}")
}

/// Media type of the body, if there is one.
fn body_kind(facts: &Value) -> Option<&str> {
    members(facts.pointer("/requestBody/content")).next().map(|(kind, _)| kind)
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool) == Some(true)
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    let object = value.and_then(Value::as_object);
    object.into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::super::api_routes;
    use super::super::openapi::complete_description;
    use super::*;

    fn description() -> Value {
        let api = complete_description(api_routes().into_openapi(), "/x", &["invoice"]);
        serde_json::to_value(api).unwrap()
    }

    #[test]
    fn every_operation_parameter_answer_and_schema_of_the_description_is_on_the_page() {
        let description = description();
        let page = reference_body(&description, "/x/api/v1/openapi.json").into_string();
        let operations = list_operations(&description);
        assert!(operations.len() > 20);
        for Operation { method, path, facts } in operations {
            let id = facts["operationId"].as_str().unwrap();
            let heading = format!("<h3 id=\"{id}\"><code>{} {path}", method.to_uppercase());
            assert!(page.contains(&heading), "{heading}");
            for parameter in items(facts.get("parameters")) {
                let name = parameter["name"].as_str().unwrap();
                assert!(page.contains(&format!("<code>{name}</code>")), "{id} {name}");
            }
        }
        for (name, _) in members(description.pointer("/components/schemas")) {
            assert_eq!(page.matches(&format!("id=\"schema-{name}\"")).count(), 1, "{name}");
        }
        for link in page.split("href=\"#").skip(1) {
            let name = link.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{name}\"")), "no place for the link to {name}");
        }
        assert!(!page.contains("http"), "nothing of a third party is loaded");
    }

    #[test]
    fn examples_name_the_method_the_address_and_the_body() {
        let description = description();
        let operations = list_operations(&description);
        let example = |method: &str, path: &str| {
            let found = operations.iter().find(|it| it.method == method && it.path == path);
            let operation = found.unwrap();
            (curl_example(operation, "/x/api/v1"), python_example(operation, "/x/api/v1"))
        };
        let (curl, python) = example("get", "/ingestions/{id}");
        assert!(curl.ends_with("\"$DOCMILL_URL/x/api/v1/ingestions/$ID\""), "{curl}");
        assert!(!curl.contains("--request"), "{curl}");
        assert!(python.contains("f\"/x/api/v1/ingestions/{id}\", method=\"GET\","), "{python}");
        let (curl, python) = example("post", "/documents");
        assert!(curl.contains("--data-binary @invoice.pdf"), "{curl}");
        assert!(python.contains("data=open(\"invoice.pdf\", \"rb\")"), "{python}");
        let (curl, _) = example("post", "/reviews/{document_id}/decision");
        assert!(curl.contains("Content-Type: application/json"), "{curl}");
    }
}
