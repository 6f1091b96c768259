//! What the interface for programs can do: one table, from which the routes are made and the
//! `OpenAPI` description is written. The forms of answers are written down here by hand; a test holds
//! them against real answers.

use serde_json::{Map, Value, json};

use docmill_core::config::WebRole;

/// Everything that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiOperation {
    Overview,
    Submit,
    Ingestions,
    Ingestion,
    Result,
    Transcript,
    Retry,
    Cancel,
    Reviews,
    Review,
    Decision,
    Undo,
    Description,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApiRoute {
    /// What is done.
    pub(super) operation: ApiOperation,
    /// Its stable name.
    name: &'static str,
    /// `get` or `post`.
    method: &'static str,
    /// Below `/api/v1`.
    pub(super) path: &'static str,
    /// Who may.
    pub(super) role: WebRole,
    /// What it is for, in a line.
    summary: &'static str,
    /// What may stand behind the question mark.
    query: &'static [&'static str],
    /// Schema of the body, if there is one.
    body: Option<&'static str>,
    /// Schema of the answer.
    answer: &'static str,
}

const LIST: &[&str] = &["status", "reason", "kind", "tenant", "since", "cursor", "limit"];
const QUEUE: &[&str] = &["reason", "kind", "tenant", "cursor", "limit"];

const fn get(
    operation: ApiOperation,
    name: &'static str,
    path: &'static str,
    summary: &'static str,
    answer: &'static str,
) -> ApiRoute {
    let (method, role, query, body) = ("get", WebRole::Viewer, &[] as &[_], None);
    ApiRoute { operation, name, method, path, role, summary, query, body, answer }
}

/// Everything that is served.
pub(super) const ROUTES: [ApiRoute; 13] = [
    get(
        ApiOperation::Overview,
        "getOverview",
        "/overview",
        "The service at one glance; at most two seconds old. Not for tokens of one tenant.",
        "Overview",
    ),
    ApiRoute {
        method: "post",
        role: WebRole::Producer,
        query: &["name", "kind", "tenant", "priority"],
        ..get(
            ApiOperation::Submit,
            "submitDocument",
            "/documents",
            "Hands a document in: the body is its bytes. The same bytes of a tenant are one document.",
            "SubmittedDocument",
        )
    },
    ApiRoute {
        query: LIST,
        ..get(
            ApiOperation::Ingestions,
            "listIngestions",
            "/ingestions",
            "Ingestions, newest first.",
            "IngestionPage",
        )
    },
    ApiRoute {
        query: &["wait"],
        ..get(
            ApiOperation::Ingestion,
            "getIngestion",
            "/ingestions/{id}",
            "How an ingestion stands (or the newest of a document), with its attempts.",
            "IngestionHistory",
        )
    },
    get(
        ApiOperation::Result,
        "getResult",
        "/ingestions/{id}/result",
        "What an ingestion read, and what its document carries. 409 while it is in progress.",
        "IngestionResult",
    ),
    get(
        ApiOperation::Transcript,
        "getTranscript",
        "/ingestions/{id}/transcript",
        "The transcript as it is stored. 409 while there is none.",
        "Transcript",
    ),
    ApiRoute {
        method: "post",
        role: WebRole::Operator,
        body: Some("ChangeRequest"),
        ..get(
            ApiOperation::Retry,
            "retryIngestion",
            "/ingestions/{id}/retry",
            "Works on an ingestion once more.",
            "IngestionChange",
        )
    },
    ApiRoute {
        method: "post",
        role: WebRole::Operator,
        body: Some("ChangeRequest"),
        ..get(
            ApiOperation::Cancel,
            "cancelIngestion",
            "/ingestions/{id}/cancel",
            "Withdraws an ingestion that has not ended.",
            "IngestionChange",
        )
    },
    ApiRoute {
        query: QUEUE,
        ..get(
            ApiOperation::Reviews,
            "listReviews",
            "/reviews",
            "Documents that call for a person, those that wait longest first.",
            "ReviewPage",
        )
    },
    get(
        ApiOperation::Review,
        "getReview",
        "/reviews/{document_id}",
        "One document as a reviewer sees it. Its ETag is the version that a decision names.",
        "ReviewCase",
    ),
    ApiRoute {
        method: "post",
        role: WebRole::Reviewer,
        body: Some("DecisionRequest"),
        ..get(
            ApiOperation::Decision,
            "decideReview",
            "/reviews/{document_id}/decision",
            "Accepts, corrects or rejects. If-Match names the version: 428 without, 412 if it changed.",
            "RecordedDecision",
        )
    },
    ApiRoute {
        method: "post",
        role: WebRole::Reviewer,
        ..get(
            ApiOperation::Undo,
            "undoDecision",
            "/reviews/{document_id}/undo",
            "Undoes the token's own last decision, within `review.undo` and if nothing happened since.",
            "RecordedDecision",
        )
    },
    get(
        ApiOperation::Description,
        "getDescription",
        "/openapi.json",
        "This description.",
        "Description",
    ),
];

/// The description, with paths below `base`.
pub(super) fn describe_api(base: &str) -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(route.method.to_owned(), describe_route(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "docmill", "version": env!("CARGO_PKG_VERSION") },
        "servers": [{ "url": format!("{base}/api/v1") }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas(),
        },
    })
}

fn describe_route(route: &ApiRoute) -> Value {
    let content = |schema: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } });
    let problem = json!({
        "description": "Not done; `code` says why.",
        "content": { "application/problem+json": {
            "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        parameters.push(json!({ "name": name, "in": "path", "required": true,
            "schema": { "type": "string", "format": "uuid" } }));
    }
    for name in route.query {
        parameters.push(json!({ "name": name, "in": "query", "schema": query_schema(name) }));
    }
    if route.operation == ApiOperation::Decision {
        parameters.push(json!({ "name": "If-Match", "in": "header", "required": true,
            "schema": { "type": "string" } }));
    }
    if route.operation == ApiOperation::Submit {
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": false,
            "schema": { "type": "string", "minLength": 1, "maxLength": 200 } }));
    }
    let mut described = json!({
        "operationId": route.name,
        "summary": route.summary,
        "description": format!("Role: {}.", role_word(route.role)),
        "parameters": parameters,
        "responses": {
            "200": { "description": "Done.", "content": content(route.answer) },
            "default": problem,
        },
    });
    if let (ApiOperation::Submit, Value::Object(fields)) = (route.operation, &mut described) {
        let bytes = json!({ "type": "string", "format": "binary" });
        let body = json!({ "required": true, "content": { "*/*": { "schema": bytes } } });
        fields.insert("requestBody".to_owned(), body);
    }
    if let (Some(body), Value::Object(fields)) = (route.body, &mut described) {
        let required = route.operation == ApiOperation::Decision;
        let body = json!({ "required": required, "content": content(body) });
        fields.insert("requestBody".to_owned(), body);
    }
    described
}

fn role_word(role: WebRole) -> &'static str {
    match role {
        WebRole::Viewer => "viewer",
        WebRole::Producer => "producer",
        WebRole::Reviewer => "reviewer",
        WebRole::Operator => "operator",
    }
}

fn query_schema(name: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": super::api::LARGEST_PAGE }),
        "wait" => json!({ "type": "integer", "minimum": 0, "maximum": 20,
            "description": "wait so many seconds for its end" }),
        "cursor" => json!({ "type": "string", "description": "next_cursor of the page before" }),
        "status" => json!({ "enum": ["in-progress", "completed", "failed", "cancelled"] }),
        "since" => json!({ "type": "string", "description": "registered within, e.g. 2h" }),
        _ => json!({ "type": "string" }),
    }
}

/// The fields of every object: name and type, `?` for what may be null, `[]` for a list.
const OBJECTS: [(&str, &str); 13] = [
    (
        "SubmittedDocument",
        "document_id:uuid? ingestion_id:uuid? fate:text status:text? problem:text?",
    ),
    ("Problem", "type:text title:text status:int code:text detail:text"),
    ("Overview", "service:any cost_today:any"),
    ("IngestionPage", "items:Ingestion[] next_cursor:uuid?"),
    ("Ingestion", INGESTION),
    (
        "Attempt",
        "claims:int worker:text? started_at:time? ended_at:time stage:text? outcome:text \
        final:bool counted:bool detail:text?",
    ),
    (
        "IngestionResult",
        "ingestion_id:uuid document_id:uuid status:text reason:text? data:any \
        document_data:any needs_human_review:bool review_reasons:text[]",
    ),
    ("IngestionChange", "ingestion_id:uuid change:text problem:text?"),
    ("ReviewPage", "items:ReviewRow[] next_cursor:uuid?"),
    (
        "ReviewRow",
        "document_id:uuid file_path:text original_name:text? tenant:text? kind:text? \
        review_reasons:text[] decided_before:bool since:time status:text? held_by:text? \
        held_since:time?",
    ),
    (
        "ReviewCase",
        "document_id:uuid file_path:text original_name:text? tenant:text? \
        needs_human_review:bool review_reasons:text[] document_data:any version:time \
        ingestion_id:uuid? status:text? reason:text? kind:text? ingestion_data:any \
        transcription_file_path:text? held:any pending:any revisions:Revision[]",
    ),
    (
        "Revision",
        "decided_at:time reviewer:text decision:text why:text awaits_second:bool first_by:text? \
        data_before:any data_after:any",
    ),
    (
        "RecordedDecision",
        "document_id:uuid decision:text data:any awaits_second:bool undo_until:time?",
    ),
];

const INGESTION: &str = "id:uuid document_id:uuid file_path:text original_name:text? status:text \
    reason:text? detail:text? stage:text? kind:text? tenant:text? attempt_count:int crashes:int \
    created_at:time started_at:time? completed_at:time? next_attempt_at:time? \
    lease_expires_at:time? worker:text? needs_human_review:bool review_reasons:text[] reader:text? \
    extraction_model:text? extraction_input_tokens:int? extraction_output_tokens:int? \
    transcription_quality_score:number? transcription_file_path:text? preprocessed_file_path:text? \
    extraction_output_file_path:text? sha256:text? pages:int? gate_score:number? \
    extraction_successful:bool? extraction_confidence:text? missing_fields:text[]? \
    structured_data:any";

fn schemas() -> Value {
    let mut all: Map<String, Value> =
        OBJECTS.iter().map(|(name, fields)| ((*name).to_owned(), object_schema(fields))).collect();
    let history =
        format!("{INGESTION} state:text? explanation:text? attempts:Attempt[] grounded:any");
    all.insert("IngestionHistory".to_owned(), object_schema(&history));
    all.insert("Transcript".to_owned(), json!({ "type": "object" }));
    all.insert("Description".to_owned(), json!({ "type": "object" }));
    let change = json!({
        "type": "object", "additionalProperties": false,
        "properties": { "why": { "type": "string" } },
    });
    all.insert("ChangeRequest".to_owned(), change);
    let decision = json!({
        "type": "object", "additionalProperties": false, "required": ["decision"],
        "properties": {
            "decision": { "enum": ["accepted", "corrected", "rejected"] },
            "why": { "type": "string", "description": "Needed to reject." },
            "newest": { "type": "boolean",
                "description": "With accepted: what the newest ingestion read." },
            "take_over": { "type": "boolean",
                "description": "Also if somebody else has the document open." },
            "data": { "description": "With corrected: the whole data." },
            "fields": { "type": "object",
                "description": "With corrected: these fields, null for none." },
        },
    });
    all.insert("DecisionRequest".to_owned(), decision);
    Value::Object(all)
}

fn object_schema(fields: &str) -> Value {
    let fields = fields.split_whitespace().filter_map(|field| field.split_once(':'));
    let properties: Map<String, Value> =
        fields.map(|(name, kind)| (name.to_owned(), type_schema(kind))).collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "additionalProperties": false, "required": required,
        "properties": properties })
}

fn type_schema(kind: &str) -> Value {
    let (name, null) = match kind.strip_suffix('?') {
        Some(name) => (name, true),
        None => (kind, false),
    };
    if let Some(element) = name.strip_suffix("[]") {
        let kind = if null { json!(["array", "null"]) } else { json!("array") };
        return json!({ "type": kind, "items": type_schema(element) });
    }
    let (plain, format) = match name {
        "any" => return json!({}),
        "text" => ("string", None),
        "uuid" => ("string", Some("uuid")),
        "time" => ("string", Some("date-time")),
        "int" => ("integer", None),
        "number" => ("number", None),
        "bool" => ("boolean", None),
        other => return json!({ "$ref": format!("#/components/schemas/{other}") }),
    };
    let mut schema =
        if null { json!({ "type": [plain, "null"] }) } else { json!({ "type": plain }) };
    if let (Some(format), Value::Object(fields)) = (format, &mut schema) {
        fields.insert("format".to_owned(), Value::from(format));
    }
    schema
}
