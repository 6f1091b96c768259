//! The served `OpenAPI` description: handlers and types describe themselves, the facts that hold for
//! every operation are added here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use docmill_core::config::WebRole;
use docmill_core::model::{IngestionStatus, Priority};
use docmill_operations::bulk_export::BulkExportForm;
use docmill_operations::export::{CsvSeparator, DecimalSign};
use utoipa::openapi::path::{ParameterIn, Paths};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, KnownFormat, SchemaFormat};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::Tag;
use utoipa::openapi::{
    Content, Info, OpenApi, Ref, RefOr, Required, ResponseBuilder, SecurityRequirement, Server,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::UtoipaMethodRouter;

use super::failure::{Problem, ProblemPlace};
use super::state::ConsoleState;

/// A name for a schema that no type of ours has.
macro_rules! named_schema {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        pub(super) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    };
}

named_schema!(
    /// Name of a kind; the served description lists those of the settings.
    KindName,
    ObjectBuilder::new()
);
named_schema!(
    /// A document or picture as bytes.
    BinaryContent,
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
);
named_schema!(
    /// An object of docs/reference/json.md.
    JsonObject,
    ObjectBuilder::new()
);
named_schema!(
    /// A form of the transcript.
    TranscriptFormat,
    words(["json", "text", "markdown", "pdf"])
);
named_schema!(
    /// A language of terms.
    TermLanguageName,
    words(["en", "de", "fr"])
);
named_schema!(
    /// A form of the answer to a sender.
    AnswerFormName,
    words(["invoice-response", "cdar"])
);
named_schema!(
    /// A form of export.
    ExportFormName,
    words(["csv", "csv-lines", "ubl"])
);
named_schema!(
    /// A form of a file of many documents.
    BulkExportFormName,
    words(BulkExportForm::ALL.map(|(name, ..)| name))
);
named_schema!(
    /// Separator of cells of CSV, a comma if it is left out.
    CsvSeparatorName,
    words(CsvSeparator::ALL.map(|(name, _)| name))
);
named_schema!(
    /// Decimal sign of numbers in CSV, a point if it is left out.
    DecimalSignName,
    words(DecimalSign::ALL.map(|(name, _)| name))
);
named_schema!(
    /// Deliveries that have not ended, or dead ones.
    DeliveryFilter,
    words(["open", "dead"])
);
named_schema!(
    /// The order of the review queue.
    ReviewSort,
    words(["age", "amount"])
);
named_schema!(
    /// The priority of a document.
    PriorityName,
    words(Priority::ALL.map(Priority::code))
);
named_schema!(
    /// The status of an ingestion.
    StatusName,
    words(
        [
            IngestionStatus::InProgress,
            IngestionStatus::Completed,
            IngestionStatus::Failed,
            IngestionStatus::Cancelled,
        ]
        .map(IngestionStatus::code)
    )
);

/// First part of the paths of a tag, and the tag.
const TAGS: [(&str, &str); 5] = [
    ("documents", "Documents"),
    ("uploads", "Large documents"),
    ("ingestions", "Ingestions"),
    ("reviews", "Reviews"),
    ("webhooks", "Webhooks"),
];
/// The tag of all other operations.
const OTHER_TAG: &str = "Service";

fn tag_of(path: &str) -> &'static str {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    TAGS.iter().find(|(name, _)| *name == first).map_or(OTHER_TAG, |(_, tag)| tag)
}

/// The tags in the order in which they are read.
fn list_tags() -> Vec<Tag> {
    TAGS.iter().map(|(_, tag)| *tag).chain([OTHER_TAG]).map(Tag::new).collect()
}

fn words<const N: usize>(words: [&'static str; N]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words))
}

/// Up to `most` deliveries to replay by number, or all dead ones of a target.
pub(super) fn replay_schema(most: usize) -> RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
    let numbers = ArrayBuilder::new().items(number).min_items(Some(1)).max_items(Some(most));
    let by_number = choice_object("deliveries", numbers);
    let by_target = choice_object("dead_of", ObjectBuilder::new().schema_type(Type::String));
    OneOfBuilder::new().item(by_number).item(by_target).into()
}

/// A change of up to `most` ingestions by id, or of those that match.
pub(super) fn change_schema(most: usize) -> RefOr<Schema> {
    let names = ["retry", "cancel"].into_iter().chain(Priority::ALL.map(Priority::code));
    let change = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build();
    let id = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
        .build();
    let ids = ArrayBuilder::new().items(id.clone());
    let by_id = choice_object("ids", ids.min_items(Some(1)).max_items(Some(most)));
    let matching = choice_object("filter", Ref::from_schema_name("MatchingRequest"));
    // The `next_cursor` of an answer, which is null before the first and after the last one.
    let cursor =
        ObjectBuilder::from(id).schema_type(SchemaType::from_iter([Type::String, Type::Null]));
    let matching = matching.property("cursor", cursor);
    let [by_id, matching] = [by_id, matching]
        .map(|object| object.property("change", Schema::Object(change.clone())).required("change"));
    OneOfBuilder::new().item(by_id).item(matching).into()
}

/// An object that chooses by `name`, with a reason.
fn choice_object(name: &str, schema: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    ObjectBuilder::new()
        .property(name, schema)
        .required(name)
        .property("why", ObjectBuilder::new().schema_type(Type::String))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

/// Requires a role of the route, and describes it.
pub(super) fn with_role(
    role: WebRole,
    (schemas, mut paths, handler): UtoipaMethodRouter<ConsoleState>,
) -> UtoipaMethodRouter<ConsoleState> {
    let word = role.code();
    for (path, item) in &mut paths.paths {
        for operation in item.get.iter_mut().chain(&mut item.post).chain(&mut item.put) {
            let before = operation.description.take().filter(|text| !text.is_empty());
            let before = before.map(|text| format!("{text} ")).unwrap_or_default();
            operation.description = Some(format!("{before}Role: {word}."));
            operation.tags = Some(vec![tag_of(path).to_owned()]);
            let problem = ResponseBuilder::new().description("Not done; `code` says why.").content(
                "application/problem+json",
                Content::new(Some(Ref::from_schema_name("Problem"))),
            );
            operation.responses.responses.insert("default".to_owned(), problem.into());
            let parameters = operation.parameters.iter_mut().flatten();
            for parameter in parameters.filter_map(|parameter| match parameter {
                RefOr::T(parameter) => parameter.schema.as_mut(),
                RefOr::Ref(_) => None,
            }) {
                remove_null(parameter);
            }
        }
    }
    let names: Arc<[String]> = query_names(&paths).into();
    let known = axum::middleware::from_fn_with_state(names, super::guard::require_known_names);
    let guard = axum::middleware::from_fn_with_state(role, super::guard::require_role);
    (schemas, paths, handler.layer(known).layer(guard))
}

/// The names that the query of these operations may have.
fn query_names(paths: &Paths) -> Vec<String> {
    let operations = paths.paths.values().flat_map(|item| item.get.iter().chain(&item.post));
    let parameters = operations.flat_map(|operation| operation.parameters.iter().flatten());
    let named = parameters.filter_map(|parameter| match parameter {
        RefOr::T(it) if it.parameter_in == ParameterIn::Query => Some(it.name.clone()),
        _ => None,
    });
    named.collect()
}

/// An optional parameter is left out, never null.
fn remove_null(schema: &mut RefOr<Schema>) {
    let RefOr::T(inner) = schema else { return };
    match inner {
        Schema::Object(object) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|kind| *kind != Type::Null);
                if let [single] = types.as_slice() {
                    object.schema_type = SchemaType::Type(single.clone());
                }
            }
        }
        Schema::OneOf(choice) => {
            choice.items.retain(|item| !is_null(item));
            if choice.items.len() == 1
                && let Some(single) = choice.items.pop()
            {
                *schema = single;
            }
        }
        _ => {}
    }
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    let RefOr::T(Schema::Object(object)) = schema else { return false };
    object.schema_type == SchemaType::Type(Type::Null)
}

/// Completes the description for paths below `base` and documents of these kinds.
pub(super) fn complete_description(mut api: OpenApi, base: &str, kinds: &[&str]) -> OpenApi {
    api.info = Info::new("docmill", env!("CARGO_PKG_VERSION"));
    api.servers = Some(vec![Server::new(format!("{base}/api/v1"))]);
    api.tags = Some(list_tags());
    let token = SecurityRequirement::new("token", <[&str; 0]>::default());
    api.security = Some(vec![token]);
    let components = api.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let schemas = &mut components.schemas;
    schemas.insert("Problem".to_owned(), Problem::schema());
    schemas.insert("ProblemPlace".to_owned(), ProblemPlace::schema());
    let kinds = ObjectBuilder::new().enum_values(Some(kinds.iter().copied()));
    schemas.insert("KindName".to_owned(), kinds.schema_type(Type::String).into());
    let known = schemas.clone();
    for item in api.paths.paths.values_mut() {
        let written = item.post.iter_mut().chain(&mut item.put);
        for body in written.filter_map(|operation| operation.request_body.as_mut()) {
            let RefOr::T(body) = body else { continue };
            let needed = body.content.values().any(|content| has_required(content, &known));
            body.required = Some(if needed { Required::True } else { Required::False });
        }
    }
    for (_, schema) in schemas.iter_mut().filter(|(name, _)| !name.ends_with("Request")) {
        if let RefOr::T(schema) = schema {
            close_answer(schema, &known);
        }
    }
    api
}

/// Whether an empty body, which counts as `{}`, lacks a field.
fn has_required(content: &RefOr<Content>, known: &BTreeMap<String, RefOr<Schema>>) -> bool {
    let RefOr::T(Content { schema: Some(RefOr::Ref(named)), .. }) = content else { return true };
    let name = named.ref_location.rsplit('/').next().unwrap_or_default();
    match known.get(name) {
        Some(RefOr::T(Schema::Object(object))) => !object.required.is_empty(),
        _ => true,
    }
}

/// Answers have all their fields, null or not, and no others.
fn close_answer(schema: &mut Schema, known: &BTreeMap<String, RefOr<Schema>>) {
    if let Schema::AllOf(parts) = schema {
        let mut whole = ObjectBuilder::new().description(parts.description.take());
        for part in &parts.items {
            for (field, schema) in fields_of(part, known) {
                whole = whole.property(field, schema.clone());
            }
        }
        *schema = Schema::Object(whole.build());
    }
    if let Schema::Object(object) = schema
        && !object.properties.is_empty()
    {
        object.required = object.properties.keys().cloned().collect();
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    }
}

/// The fields of a part, which may be a named schema.
fn fields_of<'a>(
    part: &'a RefOr<Schema>,
    known: &'a BTreeMap<String, RefOr<Schema>>,
) -> impl Iterator<Item = (&'a String, &'a RefOr<Schema>)> {
    let part = match part {
        RefOr::Ref(named) => named.ref_location.rsplit('/').next().and_then(|it| known.get(it)),
        RefOr::T(_) => Some(part),
    };
    let object = match part {
        Some(RefOr::T(Schema::Object(object))) => Some(object),
        _ => None,
    };
    object.into_iter().flat_map(|object| &object.properties)
}

#[cfg(test)]
mod tests {
    use super::super::{api, api_forms, api_routes, transcripts};
    use super::*;
    use serde_json::{Value, json};

    fn description() -> Value {
        let description = complete_description(api_routes().into_openapi(), "/x", &["invoice"]);
        serde_json::to_value(description).unwrap()
    }

    #[test]
    fn the_described_limits_are_those_of_the_handlers() {
        let described = description();
        let (least, most) = transcripts::CHUNK_TOKENS;
        for (path, name, minimum, maximum) in [
            ("/ingestions", "limit", 1, u64::from(api_forms::MAX_PAGE_ROWS)),
            ("/reviews", "limit", 1, u64::from(api_forms::MAX_PAGE_ROWS)),
            ("/webhooks/{target}/deliveries", "limit", 1, u64::from(api_forms::MAX_PAGE_ROWS)),
            ("/ingestions/{id}", "wait", 0, api::MAX_WAIT_SECONDS),
            ("/ingestions/{id}/chunks", "tokens", u64::from(least), u64::from(most)),
        ] {
            let parameters = described["paths"][path]["get"]["parameters"].as_array().unwrap();
            let schema = &parameters.iter().find(|it| it["name"] == name).unwrap()["schema"];
            assert_eq!(
                (&schema["minimum"], &schema["maximum"]),
                (&json!(minimum), &json!(maximum))
            );
        }
    }

    #[test]
    fn every_operation_names_its_role_and_its_failures_and_every_answer_is_closed() {
        let described = description();
        for (path, methods) in described["paths"].as_object().unwrap() {
            for operation in methods.as_object().unwrap().values() {
                assert!(operation["description"].as_str().unwrap().contains("Role: "), "{path}");
                assert!(operation["responses"]["default"].is_object(), "{path}");
                assert!(operation["operationId"].is_string(), "{path}");
                let tag = &operation["tags"][0];
                let tags = described["tags"].as_array().unwrap();
                assert!(tags.iter().any(|it| it["name"] == *tag), "{path}");
            }
        }
        for (name, schema) in described["components"]["schemas"].as_object().unwrap() {
            if schema.get("properties").is_some() {
                assert_eq!(schema["additionalProperties"], false, "{name}");
            }
        }
        assert_eq!(described["components"]["schemas"]["KindName"]["enum"], json!(["invoice"]));
    }
}
