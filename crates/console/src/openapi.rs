//! What the interface for programs can do: one table, from which the routes are made and the
//! `OpenAPI` description is written. The forms of bodies and answers are those of
//! [`openapi_schemas`](super::openapi_schemas).

use serde_json::{Map, Value, json};

use super::openapi_schemas::describe_schemas;
use docmill_core::config::WebRole;

/// Everything that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiOperation {
    Overview,
    Submit,
    Reference,
    Upload,
    Completion,
    Ingestions,
    Ingestion,
    Result,
    Transcript,
    Page,
    Picture,
    Chunks,
    Retry,
    Cancel,
    Reviews,
    Review,
    Decision,
    Undo,
    Webhooks,
    Deliveries,
    Replay,
    Enable,
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
const QUEUE: &[&str] = &["reason", "kind", "tenant", "order", "cursor", "limit"];

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

/// What is posted, for operators unless the row says otherwise: `schemas` are those of body and
/// answer.
const fn post(
    operation: ApiOperation,
    name: &'static str,
    path: &'static str,
    summary: &'static str,
    schemas: [&'static str; 2],
) -> ApiRoute {
    let [body, answer] = schemas;
    let (method, role, query, body) = ("post", WebRole::Operator, &[] as &[_], Some(body));
    ApiRoute { operation, name, method, path, role, summary, query, body, answer }
}

/// Everything that is served.
pub(super) const ROUTES: [ApiRoute; 23] = [
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
        role: WebRole::Producer,
        ..post(
            ApiOperation::Reference,
            "submitReference",
            "/documents/reference",
            "Hands in an object that stays where it is, in a place that `store.allow` names.",
            ["ReferenceRequest", "SubmittedDocument"],
        )
    },
    ApiRoute {
        role: WebRole::Producer,
        ..post(
            ApiOperation::Upload,
            "createUpload",
            "/uploads",
            "An address in the store that takes one document by PUT, for a quarter of an hour.",
            ["UploadRequest", "UploadAddress"],
        )
    },
    ApiRoute {
        role: WebRole::Producer,
        ..post(
            ApiOperation::Completion,
            "completeUpload",
            "/uploads/{upload_id}/complete",
            "Hands in what was sent to that address.",
            ["CompletionRequest", "SubmittedDocument"],
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
    ApiRoute {
        query: &["format"],
        ..get(
            ApiOperation::Transcript,
            "getTranscript",
            "/ingestions/{id}/transcript",
            "The transcript as it is stored, as text or Markdown, or the document as a searchable PDF. \
             409 while there is none.",
            "Transcript",
        )
    },
    get(
        ApiOperation::Page,
        "getPage",
        "/ingestions/{id}/pages/{number}",
        "Lines, words, boxes and blocks of one page of the transcript.",
        "TranscriptPage",
    ),
    get(
        ApiOperation::Picture,
        "getPicture",
        "/ingestions/{id}/pages/{number}/picture",
        "The page as a picture, in grey, as the boxes of its text lie on it. 409 where the original \
         cannot be shown.",
        "PagePicture",
    ),
    ApiRoute {
        query: &["tokens"],
        ..get(
            ApiOperation::Chunks,
            "getChunks",
            "/ingestions/{id}/chunks",
            "The transcript in pieces for retrieval, with page and box.",
            "TranscriptChunks",
        )
    },
    post(
        ApiOperation::Retry,
        "retryIngestion",
        "/ingestions/{id}/retry",
        "Works on an ingestion once more.",
        ["ChangeRequest", "IngestionChange"],
    ),
    post(
        ApiOperation::Cancel,
        "cancelIngestion",
        "/ingestions/{id}/cancel",
        "Withdraws an ingestion that has not ended.",
        ["ChangeRequest", "IngestionChange"],
    ),
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
        role: WebRole::Reviewer,
        ..post(
            ApiOperation::Decision,
            "decideReview",
            "/reviews/{document_id}/decision",
            "Accepts, corrects or rejects. If-Match names the version: 428 without, 412 if it changed.",
            ["DecisionRequest", "RecordedDecision"],
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
    ApiRoute {
        role: WebRole::Operator,
        ..get(
            ApiOperation::Webhooks,
            "listWebhooks",
            "/webhooks",
            "Who is told of outcomes and decisions, and how much each was not told.",
            "WebhookTargets",
        )
    },
    ApiRoute {
        role: WebRole::Operator,
        query: &["state", "cursor", "limit"],
        ..get(
            ApiOperation::Deliveries,
            "listDeliveries",
            "/webhooks/{target}/deliveries",
            "What a target was not told yet, or what was given up, oldest first.",
            "DeliveryPage",
        )
    },
    post(
        ApiOperation::Replay,
        "replayDeliveries",
        "/webhooks/replay",
        "Tells again what is named, or all that was given up of a target.",
        ["ReplayRequest", "ReplayReport"],
    ),
    post(
        ApiOperation::Enable,
        "enableWebhook",
        "/webhooks/{target}/enable",
        "Tells a target again that answered 410.",
        ["ChangeRequest", "EnabledWebhook"],
    ),
    get(
        ApiOperation::Description,
        "getDescription",
        "/openapi.json",
        "This description.",
        "Description",
    ),
];

/// The description, with paths below `base`, for documents of these kinds.
pub(super) fn describe_api(base: &str, kinds: &[&str]) -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(route.method.to_owned(), describe_route(route, kinds));
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
            "schemas": describe_schemas(kinds),
        },
    })
}

fn describe_route(route: &ApiRoute, kinds: &[&str]) -> Value {
    let form =
        |schema: &str| json!({ "schema": { "$ref": format!("#/components/schemas/{schema}") } });
    let content = |schema: &str| json!({ "application/json": form(schema) });
    let problem = json!({
        "description": "Not done; `code` says why.",
        "content": { "application/problem+json": {
            "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut answer = match route.operation {
        ApiOperation::Picture => {
            json!({ "image/png": form(route.answer), "image/jpeg": form(route.answer) })
        }
        _ => content(route.answer),
    };
    if let (ApiOperation::Transcript, Value::Object(forms)) = (route.operation, &mut answer) {
        for kind in ["text/plain", "text/markdown"] {
            forms.insert(kind.to_owned(), json!({ "schema": { "type": "string" } }));
        }
        let copy = json!({ "schema": { "type": "string", "format": "binary" } });
        forms.insert("application/pdf".to_owned(), copy);
    }
    let mut described = json!({
        "operationId": route.name,
        "summary": route.summary,
        "description": format!("Role: {}.", role_word(route.role)),
        "parameters": describe_parameters(route, kinds),
        "responses": {
            "200": { "description": "Done.", "content": answer },
            "default": problem,
        },
    });
    if let (ApiOperation::Submit, Value::Object(fields)) = (route.operation, &mut described) {
        let bytes = json!({ "type": "string", "format": "binary" });
        let body = json!({ "required": true, "content": { "*/*": { "schema": bytes } } });
        fields.insert("requestBody".to_owned(), body);
    }
    if let (Some(body), Value::Object(fields)) = (route.body, &mut described) {
        // Nothing at all stands for an empty object.
        let required = !matches!(body, "ChangeRequest" | "CompletionRequest");
        let body = json!({ "required": required, "content": content(body) });
        fields.insert("requestBody".to_owned(), body);
    }
    described
}

fn describe_parameters(route: &ApiRoute, kinds: &[&str]) -> Vec<Value> {
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        let schema = match name {
            "number" => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
            "target" => json!({ "type": "string", "pattern": "^[a-zA-Z0-9._-]{1,64}$" }),
            _ => json!({ "type": "string", "format": "uuid" }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for name in route.query {
        let schema = match (route.operation, *name) {
            (ApiOperation::Submit, "kind") => json!({ "enum": kinds }),
            (operation, name) => query_schema(operation, name),
        };
        parameters.push(json!({ "name": name, "in": "query", "schema": schema }));
    }
    if route.operation == ApiOperation::Decision {
        parameters.push(json!({ "name": "If-Match", "in": "header", "required": true,
            "schema": { "type": "string" } }));
    }
    let is_named = matches!(
        route.operation,
        ApiOperation::Submit
            | ApiOperation::Reference
            | ApiOperation::Upload
            | ApiOperation::Completion
    );
    if is_named {
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "a name of your own for the request, of plain signs",
            "schema": { "type": "string", "pattern": "^[!#-~][ !#-~]{0,199}$" } }));
    }
    parameters
}

fn role_word(role: WebRole) -> &'static str {
    match role {
        WebRole::Viewer => "viewer",
        WebRole::Producer => "producer",
        WebRole::Reviewer => "reviewer",
        WebRole::Operator => "operator",
    }
}

fn query_schema(operation: ApiOperation, name: &str) -> Value {
    let (fewest, most) = super::transcripts::CHUNK_TOKENS;
    match name {
        "format" => json!({ "enum": ["json", "text", "markdown", "pdf"] }),
        "tokens" => json!({ "type": "integer", "minimum": fewest, "maximum": most,
            "description": "most of a piece, estimated: a quarter of its bytes; 512" }),
        "state" => json!({ "enum": ["open", "dead"] }),
        "order" => json!({ "enum": ["age", "amount"],
            "description": "what waits longest first, or the largest amount, which has no next page" }),
        "cursor" if operation == ApiOperation::Deliveries => {
            json!({ "type": "string", "pattern": "^[0-9]{1,16}-[0-9]{1,18}$",
                "description": "next_cursor of the page before" })
        }
        "priority" => json!({ "enum": ["critical", "high", "normal", "low", "background"] }),
        "limit" => {
            json!({ "type": "integer", "minimum": 1, "maximum": super::api_forms::MAX_PAGE_ROWS })
        }
        "wait" => json!({ "type": "integer", "minimum": 0, "maximum": 20,
            "description": "wait so many seconds for its end" }),
        "cursor" => json!({ "type": "string", "format": "uuid",
            "description": "next_cursor of the page before" }),
        "status" => json!({ "enum": ["in-progress", "completed", "failed", "cancelled"] }),
        "since" => json!({ "type": "string", "pattern": "^[1-9][0-9]{0,2}(s|m|h|days)$",
            "description": "registered within, e.g. 2h" }),
        // Who does not care leaves it out: an empty one is refused.
        _ => json!({ "type": "string", "pattern": "\\S" }),
    }
}
